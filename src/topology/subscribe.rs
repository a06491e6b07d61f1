//! A subscription to a topology tells an actor the statuses of the actors of all groups.

use crate::core::actor_ref::ActorRef;
use crate::group::status::StatusReport;
use crate::topology::plan::Topology;

impl Topology {
    /// [Subscribes](crate::group::Group::subscribe_statuses) an actor to the keyed groups that are mounted now. Keys
    /// come in their printed form. Other mounted recipients, an actor or a router, report nothing.
    pub fn subscribe_statuses(&self, subscriber: &ActorRef<StatusReport<String>>) {
        for (name, member) in self.members() {
            member.subscribe_statuses(&name, subscriber);
        }
    }
}
