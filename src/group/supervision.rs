//! Group supervision decides about failed and ended actors of a group.
//!
//! | the actor | policy | then |
//! |---|---|---|
//! | fails | never, or the group creates no more actors | it stops |
//! | fails | messages queue while it restarts | it stays suspended until its time has come, and restarts in its place |
//! | fails | otherwise | it stops, and is restarted as an actor that has ended |
//! | has ended | it is not to be restarted | its key is free |
//! | has ended | it was passivated | its key is free, or its successor begins |
//! | has ended | messages queue while it restarts | it is re-created at once, and makes no state before its time |
//! | has ended | otherwise | its key slot is kept until its time has come; then it is re-created |

use crate::actor::child_hooks::ChildHooks;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::failure::{Failure, guarded};
use crate::group::key::GroupKey;
use crate::group::key_entry::{EndCause, KeyEntry};
use crate::group::pending_restarts::RestartMode;
use crate::group::restart_policy::{When, WhileRestarting};
use crate::group::state::{GroupState, KeySlot};
use crate::sync::lock;
use crate::util::panic::drop_guarded;
use crate::util::stderr_log::report;
use std::sync::Arc as StdArc;
use std::time::Duration;

pub(crate) struct GroupSupervisor<M: Send + 'static, K: GroupKey>(pub StdArc<GroupState<M, K>>);

impl<M: Send + 'static, K: GroupKey> ChildHooks for GroupSupervisor<M, K> {
    fn failed(&self, child: AnyActorRef, failure: Failure) {
        let group_state = &self.0;
        let key_entry = lock(&group_state.living).get(&child).cloned();
        let Some(key_entry) = key_entry else { return child.stop() };
        if let Some(wait) = key_entry.life(|life| life.waits.take()) {
            // The actor is re-created, and its state is not to be made yet.
            return self.restart_in_place(&key_entry, child, failure, wait);
        }
        log_failure(&child, &failure);
        if group_state.policy_of(&key_entry).when == When::Never || !group_state.spawns() {
            return child.stop();
        }
        if group_state.while_restarting != WhileRestarting::Queue {
            key_entry.life(|life| life.end = EndCause::Failed);
            return child.stop();
        }
        match self.next(&key_entry) {
            Some(wait) => self.restart_in_place(&key_entry, child, failure, wait),
            None => {
                key_entry.life(|life| life.end = EndCause::GivenUp);
                child.stop();
            }
        }
    }

    fn ended(&self, child: AnyActorRef) {
        let group_state = &self.0;
        let key_entry = lock(&group_state.living).remove(&child);
        if let Some(key_entry) = key_entry {
            // The actor may have been stopped while it waited for its restart.
            group_state.forget_waiting(&key_entry);
            let end = key_entry.life(|life| std::mem::take(&mut life.end));
            let is_restarted = match group_state.policy_of(&key_entry).when {
                _ if child.is_retired() => false,
                When::Never => false,
                When::OnFailure => end == EndCause::Failed,
                When::Always => end != EndCause::GivenUp,
            };
            let wait = if is_restarted && group_state.spawns() { self.next(&key_entry) } else { None };
            if !wait.is_some_and(|wait| self.restart(&key_entry, &child, wait)) {
                group_state.free(&key_entry, &child);
                group_state.successors.start_successor_of(&child);
            }
            // The key is the user's: a panic of its drop must not skip the steps that follow.
            drop_guarded(key_entry);
        }
        group_state.stop_if_over();
    }
}

impl<M: Send + 'static, K: GroupKey> GroupSupervisor<M, K> {
    fn next(&self, key_entry: &KeyEntry<K>) -> Option<Duration> {
        let policy = self.0.policy_of(key_entry);
        key_entry.life(|life| policy.next(&mut life.tries))
    }

    fn restart_in_place(
        &self,
        key_entry: &StdArc<KeyEntry<K>>,
        child: AnyActorRef,
        failure: Failure,
        wait: Duration,
    ) {
        if wait.is_zero() {
            return drop(child.send_system(Control::Restart(failure)));
        }
        if let Err(how) = self.0.wait(key_entry, RestartMode::InPlace(child, failure), wait) {
            self.0.end_restart(key_entry, how);
        }
    }

    /// Restarts an actor that has ended. Returns false if the actor cannot be re-created at once.
    fn restart(&self, key_entry: &StdArc<KeyEntry<K>>, ended: &AnyActorRef, wait: Duration) -> bool {
        let group_state = &self.0;
        if wait.is_zero() || group_state.while_restarting == WhileRestarting::Queue {
            key_entry.life(|life| life.waits = Some(wait).filter(|wait| !wait.is_zero()));
            return group_state.recreate(key_entry, |slot| slot.is_of(ended));
        }
        let waits = KeySlot { key_entry: key_entry.clone(), actor: None };
        group_state.table.lock(key_entry.hash).replace(key_entry.hash, |slot| slot.is_of(ended), Some(waits));
        if let Err(how) = group_state.wait(key_entry, RestartMode::Anew, wait) {
            group_state.end_restart(key_entry, how);
        } else if !group_state
            .table
            .lock(key_entry.hash)
            .has(key_entry.hash, |slot| slot.awaits_restart_of(key_entry))
        {
            // A message has created the actor before its pending restart was in the list.
            group_state.forget_waiting(key_entry);
        }
        true
    }
}

fn log_failure(child: &AnyActorRef, failure: &Failure) {
    // The logger and the text of the cause are user code.
    let _ = guarded(|| {
        report!(child.core().system.stderr, Failure, log::Level::Error, "{} failed: {failure}", child.path());
        Ok(())
    });
}
