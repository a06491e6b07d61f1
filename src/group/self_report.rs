//! A self report lets an actor of a group set its own status and restart policy, by its context.

use crate::actor::context::Context;
use crate::core::any_ref::AnyRef;
use crate::group::entry::Seed;
use crate::group::key::GroupKey;
use crate::group::restart_policy::RestartPolicy;
use crate::group::status::ActorStatus;
use crate::group::supervision::Keeper;
use crate::sync::lock;
use std::sync::Arc as StdArc;

/// The parent of an actor takes the actor's self reports by this trait.
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
                // An actor that is starting is not normal yet.
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

    /// Reports that something is wrong with this actor, which continues to work. The
    /// [subscribers](crate::topology::Group::subscribe_statuses) of its group are told. The report holds until
    /// [`set_normal`](Self::set_normal), another reason, or the end of the present state. Nothing happens for an actor
    /// that is in no [group](crate::topology::Group), has failed, or is ending.
    pub fn set_alarming(&self, reason: &str) {
        if let Some(ward) = self.ward() {
            ward.say_status(&self.me().any_local(), ActorStatus::Alarming(reason.into()));
        }
    }

    /// Takes back the report of [`set_alarming`](Self::set_alarming).
    pub fn set_normal(&self) {
        if let Some(ward) = self.ward() {
            ward.say_status(&self.me().any_local(), ActorStatus::Normal);
        }
    }

    /// Sets a restart policy for this actor alone, in the place of its [group's](crate::topology::GroupPlan::restart);
    /// `None` returns to the group's policy. The policy holds for the present state: the next state begins with the
    /// group's policy. Nothing happens for an actor that is in no [group](crate::topology::Group).
    ///
    /// The order of precedence is elfo's: the actor's own policy goes before the policy of the
    /// [configuration](crate::topology::Group::set_restart_policy), which goes before the plan's.
    ///
    /// # Errors
    ///
    /// The error says what is wrong with the policy, as at [`GroupPlan::spawn`](crate::topology::GroupPlan::spawn).
    /// Nothing changes then.
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
