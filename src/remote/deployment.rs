//! An actor that this node has asked a peer to make.

use crate::core::any_actor_ref::AnyActorRef;
use crate::remote::deploy_message::DeployRequest;
use crate::remote::deployment_state::DeploymentState;
use crate::remote::deployments::Deployed;
use crate::sync::{Mutex, lock};
use crate::util::panic::drop_guarded;
use std::any::Any;

/// An actor that this node has asked a peer to make.
pub(crate) struct Deployment {
    pub(crate) request: DeployRequest,
    /// The path of the actor at the peer.
    pub(crate) path: String,
    /// The child here that stands in for the actor.
    pub(crate) stand_in: AnyActorRef,
    pub(crate) state: DeploymentState,
    /// The request to leave a router, for which the link had no room.
    pub(crate) leave: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Deployment {
    /// Keeps a request to leave a router until the link has room.
    pub(crate) fn keep_leave(&self, leave: Box<dyn Any + Send>) {
        let former = lock(&self.leave).replace(leave);
        drop_guarded(former);
    }

    pub(crate) fn take_leave(&self) -> Option<Box<dyn Any + Send>> {
        lock(&self.leave).take()
    }
}

impl Deployed for Deployment {
    fn uid(&self) -> u32 {
        self.request.uid
    }

    fn state(&self) -> &DeploymentState {
        &self.state
    }
}
