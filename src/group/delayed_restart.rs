//! A delayed restart waits until its time has come, and then restarts or re-creates an actor of a group.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::failure::guarded;
use crate::group::key::GroupKey;
use crate::group::key_entry::KeyEntry;
use crate::group::pending_restarts::{PendingRestart, RestartMode};
use crate::group::state::{GroupPhase, GroupState};
use crate::group::status::ActorStatus;
use crate::sync::lock;
use crate::util::panic::drop_guarded;
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::Duration;

impl<M: Send + 'static, K: GroupKey> GroupState<M, K> {
    /// Restarts the actor of this key entry after `wait`. Returns `how` as the error if the group creates no more
    /// actors.
    pub(crate) fn wait(
        self: &StdArc<Self>,
        key_entry: &StdArc<KeyEntry<K>>,
        how: RestartMode,
        wait: Duration,
    ) -> Result<(), RestartMode> {
        let timers = self.system.timers();
        let (group_state, waiter) = (StdArc::downgrade(self), key_entry.clone());
        // The check runs under the lock: the thread that ends the group empties the list afterwards.
        let mut waiting = lock(&self.waiting);
        if !self.spawns() {
            return Err(how);
        }
        let due = self.system.now().saturating_add(wait);
        waiting.begun += 1;
        let number = waiting.begun;
        let timer = timers.call_at(due, Box::new(move || restart_due(&group_state, &waiter, number)));
        let one = PendingRestart { number, key_entry: key_entry.clone(), how, timer };
        let former = waiting.all.insert(StdArc::as_ptr(key_entry) as usize, one);
        drop(waiting);
        if let Some(PendingRestart { how: RestartMode::InPlace(child, _), timer, .. }) = former {
            // The actor was restarted together with the head before its time, and has failed again. Two failures have
            // suspended the actor, and a single verdict is to come: the earlier suspension is undone here.
            timers.cancel(timer);
            let _ = child.send_system(Control::Resume { judged: false });
        }
        Ok(())
    }

    /// Removes the pending restart of this key entry: its actor has been created, or is not going to be.
    pub(crate) fn forget_waiting(&self, key_entry: &StdArc<KeyEntry<K>>) {
        let one = lock(&self.waiting).take(key_entry);
        if let Some(one) = one {
            self.system.timers().cancel(one.timer);
            // The failure is the user's, and its drop may panic.
            drop_guarded(one);
        }
    }

    /// Gives up all pending restarts.
    pub(crate) fn end_pending_restarts(&self) {
        let all = std::mem::take(&mut lock(&self.waiting).all);
        let mut all: Vec<PendingRestart<K>> = all.into_values().collect();
        // The order of the notes must be an order that a test's entry repeats.
        all.sort_unstable_by_key(|one| one.number);
        for PendingRestart { key_entry, how, timer, .. } in all {
            self.system.timers().cancel(timer);
            self.end_restart(&key_entry, how);
            // The key is the user's: a panic of its drop must not keep the rest of the list from being given up.
            drop_guarded(key_entry);
        }
    }

    /// Frees the key of an actor that is not restarted.
    pub(crate) fn end_restart(&self, key_entry: &StdArc<KeyEntry<K>>, how: RestartMode) {
        match how {
            RestartMode::Anew => self.free_slot_of(key_entry),
            // The key is free when the actor has ended.
            RestartMode::InPlace(child, _) => child.stop(),
        }
    }

    /// Removes the key slot in which an actor of this key entry waits, and notes that the key's actor has terminated.
    /// If a message has created the actor already, nothing happens.
    fn free_slot_of(&self, key_entry: &StdArc<KeyEntry<K>>) {
        let mut shard = self.table.lock(key_entry.hash);
        if shard.replace(key_entry.hash, |slot| slot.awaits_restart_of(key_entry), None) {
            // Under the lock, so that this comes before every note about the next actor of the key.
            self.statuses.note(key_entry, ActorStatus::Terminated, |_| true);
        }
        drop(shard);
        self.statuses.deliver();
    }

    /// Removes the key slot of an actor that has ended for good, unless its successor has the slot, and notes that the
    /// actor has terminated.
    pub(crate) fn free(&self, key_entry: &StdArc<KeyEntry<K>>, ended: &AnyActorRef) {
        let mut shard = self.table.lock(key_entry.hash);
        shard.replace(key_entry.hash, |slot| slot.is_of(ended), None);
        // As in `free_slot_of`.
        self.statuses.note(key_entry, ActorStatus::Terminated, |_| true);
        drop(shard);
        self.statuses.deliver();
    }

    /// Creates a new actor in the key slot in which an actor of this key entry waits.
    fn recreate_pending(self: &StdArc<Self>, key_entry: &StdArc<KeyEntry<K>>) {
        if !self.recreate(key_entry, |slot| slot.awaits_restart_of(key_entry)) {
            self.free_slot_of(key_entry);
            self.stop_if_over();
        }
    }

    /// Creates a new actor in the key slot for which `is` holds. Returns false if the actor cannot be created.
    pub(crate) fn recreate(
        &self,
        key_entry: &StdArc<KeyEntry<K>>,
        is: impl Fn(&crate::group::state::KeySlot<M, K>) -> bool,
    ) -> bool {
        let renewed = guarded(|| {
            let mut shard = self.table.lock(key_entry.hash);
            if !self.spawns() || !shard.has(key_entry.hash, &is) {
                return Ok(None);
            }
            let held = match self.make(key_entry) {
                Ok(held) => held,
                Err(error) => {
                    drop(shard);
                    self.log(&error);
                    return Ok(None);
                }
            };
            let slot = self.make_slot(key_entry, &held);
            shard.replace(key_entry.hash, &is, Some(slot));
            Ok(Some(held))
        });
        let Ok(Some(held)) = renewed else { return false };
        held.start();
        true
    }

    /// Stops the head of a group that ends and has neither a living nor a waiting actor.
    pub(crate) fn stop_if_over(&self) {
        if self.phase() >= GroupPhase::Terminating
            && lock(&self.living).is_empty()
            && lock(&self.waiting).is_empty()
        {
            self.head.stop();
        }
    }
}

/// Restarts or re-creates the actor, on the timers' thread.
fn restart_due<M: Send + 'static, K: GroupKey>(
    group_state: &StdWeak<GroupState<M, K>>,
    key_entry: &StdArc<KeyEntry<K>>,
    number: u64,
) {
    let Some(group_state) = group_state.upgrade() else { return };
    // The pending restart has gone if a message has created the actor, or if the group ends.
    let one = lock(&group_state.waiting).take_numbered(key_entry, number);
    match one.map(|one| one.how) {
        None => {}
        Some(RestartMode::Anew) => group_state.recreate_pending(key_entry),
        Some(RestartMode::InPlace(child, failure)) => _ = child.send_system(Control::Restart(failure)),
    }
    drop_guarded(group_state);
}
