//! The messages about actors that one node has made on another, and where they go.

use crate::remote::child_stand_in;
use crate::remote::control_message::NumberedMessage;
use crate::remote::factories::Factories;
use crate::remote::hub::Deploying;
use crate::remote::leaving;
use crate::remote::link::Link;
use crate::remote::parent_stand_in;
use std::any::Any;
use std::sync::Arc;

impl Deploying for Factories {
    fn take(&self, link: &Arc<Link>, message: NumberedMessage) {
        match message {
            NumberedMessage::Deploy(request) => parent_stand_in::deploy(self, link, *request),
            NumberedMessage::Verdict { uid, verdict } => parent_stand_in::carry_out(link, uid, verdict),
            NumberedMessage::Deployed { uid } => child_stand_in::made(link, uid),
            NumberedMessage::DeployRefused { uid, why } => child_stand_in::refused(link, uid, why),
            NumberedMessage::Failed { uid, failure } => child_stand_in::failed(link, uid, failure),
            NumberedMessage::Restarted { uid } => child_stand_in::restarted(link, uid),
            NumberedMessage::Ended { uid } => child_stand_in::ended(link, uid),
            // The hub handles the others itself.
            _ => debug_assert!(false, "this is about no deployment"),
        }
    }

    fn tick(&self, link: &Arc<Link>) {
        child_stand_in::refuse_overdue(link);
        child_stand_in::leave_again(link);
        leaving::stop_late(link);
    }

    fn link_ended(&self, link: &Arc<Link>) {
        // The stand-ins of actors at the peer have ended with those of watched actors.
        link.deployments.take_all();
        parent_stand_in::end_all(link);
    }

    fn router_factory(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        self.of_routers(name)
    }
}
