//! Subscriptions to the statuses of the actors of all groups of a topology.

use crate::core::actor_ref::ActorRef;
use crate::group::status::StatusReport;
use crate::topology::plan::Topology;

impl Topology {
    /// [Subscribes](crate::topology::Group::subscribe_statuses) to the keyed groups that are mounted now. Keys come as they are printed.
    /// Of what else is mounted nothing is told: an actor, a router.
    pub fn subscribe_statuses(&self, subscriber: &ActorRef<StatusReport<String>>) {
        for (name, member) in self.members() {
            member.subscribe_statuses(&name, subscriber);
        }
    }
}
