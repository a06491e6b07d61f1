//! A self report lets an actor of a group set its own status and restart policy, and ask why it was created, by its
//! context.

use crate::actor::context::Context;
use crate::core::any_actor_ref::AnyActorRef;
use crate::group::key::GroupKey;
use crate::group::key_entry::{KeyEntry, SpawnCause};
use crate::group::restart_policy::RestartPolicy;
use crate::group::status::ActorStatus;
use crate::group::supervision::GroupSupervisor;
use crate::settings::setting_error::SettingError;
use crate::sync::lock;
use std::sync::Arc as StdArc;

/// The parent of an actor takes the actor's self reports, and answers the actor, by this trait.
pub(crate) trait SelfReport: Send + Sync + 'static {
    fn report_status(&self, actor: &AnyActorRef, status: ActorStatus);

    fn report_policy(&self, actor: &AnyActorRef, policy: Option<RestartPolicy>);

    fn spawn_cause(&self, actor: &AnyActorRef) -> Option<SpawnCause>;
}

impl<M: Send + 'static, K: GroupKey> GroupSupervisor<M, K> {
    fn entry_of(&self, actor: &AnyActorRef) -> Option<StdArc<KeyEntry<K>>> {
        lock(&self.0.living).get(actor).cloned()
    }
}

impl<M: Send + 'static, K: GroupKey> SelfReport for GroupSupervisor<M, K> {
    fn report_status(&self, actor: &AnyActorRef, status: ActorStatus) {
        let Some(key_entry) = self.entry_of(actor) else { return };
        let is_at_work = |before: Option<&ActorStatus>| {
            use crate::group::status::ActorStatus::{Alarming, Initialising, Normal};
            match status {
                // An actor that is starting is not normal yet.
                Normal => matches!(before, Some(Alarming(_))),
                _ => matches!(before, Some(Initialising | Normal | Alarming(_))),
            }
        };
        self.0.statuses.change_if(&key_entry, status.clone(), is_at_work);
    }

    fn report_policy(&self, actor: &AnyActorRef, policy: Option<RestartPolicy>) {
        if let Some(key_entry) = self.entry_of(actor) {
            key_entry.life(|life| life.policy = policy.map(Box::new));
        }
    }

    fn spawn_cause(&self, actor: &AnyActorRef) -> Option<SpawnCause> {
        Some(self.entry_of(actor)?.life(|life| life.cause))
    }
}

impl<M: Send + 'static> Context<M> {
    fn group_report(&self) -> Option<StdArc<dyn SelfReport>> {
        self.parent()?.core().children.parent_data()
    }

    /// Returns why the present state of this actor was made, also while its group's recipe makes the state; `None` for
    /// an actor that is in no [group](crate::group::Group).
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::group::SpawnCause;
    /// # struct Session;
    /// # impl Actor for Session {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let recipe = |ctx: &mut Context<u64>, _: &u64| {
    ///     assert_eq!(ctx.spawn_cause(), Some(SpawnCause::OnMessage));
    ///     Session
    /// };
    /// let sessions = system.group("sessions").by_key(|user: &u64| *user, recipe).spawn()?;
    /// sessions.tell(7_u64);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// elfo's `start_info`.
    #[doc(alias = "start_info")]
    #[doc(alias = "SpawnInfo")]
    pub fn spawn_cause(&self) -> Option<SpawnCause> {
        self.group_report()?.spawn_cause(&self.me().any_local())
    }

    /// Reports that something is wrong with this actor, which continues to work. The
    /// [subscribers](crate::group::Group::subscribe_statuses) of its group are told. The report holds until
    /// [`set_normal`](Self::set_normal), another reason, or the end of the present state. Nothing happens for an actor
    /// that is in no [group](crate::group::Group), has failed, or is ending.
    pub fn set_alarming(&self, reason: &str) {
        if let Some(report) = self.group_report() {
            report.report_status(&self.me().any_local(), ActorStatus::Alarming(reason.into()));
        }
    }

    /// Takes back the report of [`set_alarming`](Self::set_alarming).
    pub fn set_normal(&self) {
        if let Some(report) = self.group_report() {
            report.report_status(&self.me().any_local(), ActorStatus::Normal);
        }
    }

    /// Sets a restart policy for this actor alone, in the place of its [group's](crate::group::GroupPlan::restart);
    /// `None` returns to the group's policy. The policy holds for the present state: the next state begins with the
    /// group's policy. Nothing happens for an actor that is in no [group](crate::group::Group).
    ///
    /// The order of precedence is elfo's: the actor's own policy goes before the policy of the
    /// [configuration](crate::group::Group::set_restart_policy), which goes before the plan's.
    ///
    /// # Errors
    ///
    /// The error says what is wrong with the policy, as at [`GroupPlan::spawn`](crate::group::GroupPlan::spawn).
    /// Nothing changes then.
    pub fn set_restart_policy(&self, policy: Option<RestartPolicy>) -> Result<(), SettingError> {
        policy.as_ref().map_or(Ok(()), RestartPolicy::check)?;
        if let Some(report) = self.group_report() {
            report.report_policy(&self.me().any_local(), policy);
        }
        Ok(())
    }
}
