//! What an actor of a group says of itself, by its context.

use crate::actor::context::Context;
use crate::core::any_ref::AnyRef;
use crate::group::entry::Seed;
use crate::group::key::GroupKey;
use crate::group::restart_policy::RestartPolicy;
use crate::group::status::ActorStatus;
use crate::group::supervision::Keeper;
use crate::sync::lock;
use std::sync::Arc as StdArc;

/// The head of a group, as its actors find it.
pub trait Ward: Send + Sync + 'static {
    fn say_status(&self, actor: &AnyRef, status: ActorStatus);

    fn say_policy(&self, actor: &AnyRef, policy: Option<RestartPolicy>);
}

impl<M: Send + 'static, K: GroupKey> Keeper<M, K> {
    fn seed_of(&self, actor: &AnyRef) -> Option<StdArc<Seed<K>>> {
        lock(&self.0.living).get(actor).cloned()
    }
}

impl<M: Send + 'static, K: GroupKey> Ward for Keeper<M, K> {
    fn say_status(&self, actor: &AnyRef, status: ActorStatus) {
        let Some(seed) = self.seed_of(actor) else { return };
        let is_at_work = |before: Option<&ActorStatus>| {
            use crate::group::status::ActorStatus::{Alarming, Initialising, Normal};
            match status {
                // While it starts it is not normal yet.
                Normal => matches!(before, Some(Alarming(_))),
                _ => matches!(before, Some(Initialising | Normal | Alarming(_))),
            }
        };
        self.0.statuses.change_if(&seed, status.clone(), is_at_work);
    }

    fn say_policy(&self, actor: &AnyRef, policy: Option<RestartPolicy>) {
        if let Some(seed) = self.seed_of(actor) {
            seed.life(|life| life.policy = policy.map(Box::new));
        }
    }
}

impl<M: Send + 'static> Context<M> {
    fn ward(&self) -> Option<StdArc<dyn Ward>> {
        self.parent()?.core().children.keeper()
    }

    /// Says that something is wrong with this actor, which works on: whoever has
    /// [subscribed](crate::topology::Group::subscribe_statuses) to its group is told. It holds until
    /// [`set_normal`](Self::set_normal), another reason, or the end of this state. Nothing happens for actors of no
    /// [group](crate::topology::Group), or while the actor has failed or ends.
    pub fn set_alarming(&self, reason: &str) {
        if let Some(ward) = self.ward() {
            ward.say_status(&self.me().any_local(), ActorStatus::Alarming(reason.into()));
        }
    }

    /// Takes back what [`set_alarming`](Self::set_alarming) has said.
    pub fn set_normal(&self) {
        if let Some(ward) = self.ward() {
            ward.say_status(&self.me().any_local(), ActorStatus::Normal);
        }
    }

    /// Has this actor restarted by another policy than its [group's](crate::topology::GroupPlan::restart), or by that
    /// one again (`None`). Holds for the present state: the next one begins with the group's. Nothing happens for actors
    /// of no [group](crate::topology::Group).
    ///
    /// The order of precedence is elfo's: what the actor says goes before what the
    /// [configuration](crate::topology::Group::set_restart_policy) says, and that before the plan.
    ///
    /// # Errors
    ///
    /// What is wrong with the policy, as at [`GroupPlan::spawn`](crate::topology::GroupPlan::spawn). Then nothing
    /// changes.
    pub fn set_restart_policy(
        &self,
        policy: Option<RestartPolicy>,
    ) -> Result<(), crate::group::effective_policy::PolicyError> {
        crate::group::effective_policy::PolicyError::check(policy.as_ref())?;
        if let Some(ward) = self.ward() {
            ward.say_policy(&self.me().any_local(), policy);
        }
        Ok(())
    }
}
