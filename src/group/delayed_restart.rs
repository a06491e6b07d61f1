//! A delayed restart waits until its time has come, and then restarts or re-creates an actor of a group.

use crate::core::any_ref::AnyRef;
use crate::core::control::Control;
use crate::failure::guarded;
use crate::group::entry::Seed;
use crate::group::key::GroupKey;
use crate::group::pending_restarts::{How, One};
use crate::group::state::{Board, Openness};
use crate::group::status::ActorStatus;
use crate::sync::lock;
use crate::util::panic::drop_guarded;
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::Duration;

impl<M: Send + 'static, K: GroupKey> Board<M, K> {
    /// Restarts the actor of this key entry after `wait`. Returns `how` as the error if the group creates no more
    /// actors.
    pub fn wait(self: &StdArc<Self>, seed: &StdArc<Seed<K>>, how: How, wait: Duration) -> Result<(), How> {
        let timers = self.system.timers();
        let (board, waiter) = (StdArc::downgrade(self), seed.clone());
        // The check runs under the lock: the thread that ends the group empties the list afterwards.
        let mut waiting = lock(&self.waiting);
        if !self.spawns() {
            return Err(how);
        }
        let due = self.system.now().saturating_add(wait);
        waiting.begun += 1;
        let number = waiting.begun;
        let timer = timers.call_at(due, Box::new(move || time_is_up(&board, &waiter, number)));
        let one = One { number, seed: seed.clone(), how, timer };
        let former = waiting.all.insert(StdArc::as_ptr(seed) as usize, one);
        drop(waiting);
        if let Some(One { how: How::InPlace(child, _), timer, .. }) = former {
            // The actor was restarted together with the head before its time, and has failed again. Two failures have
            // suspended the actor, and a single verdict is to come: the earlier suspension is undone here.
            timers.cancel(timer);
            let _ = child.send_system(Control::Resume { judged: false });
        }
        Ok(())
    }

    /// Removes the pending restart of this key entry: its actor has been created, or is not going to be.
    pub fn forget_waiting(&self, seed: &StdArc<Seed<K>>) {
        let one = lock(&self.waiting).take(seed);
        if let Some(one) = one {
            self.system.timers().cancel(one.timer);
            // The failure is the user's, and its drop may panic.
            drop_guarded(one);
        }
    }

    /// Gives up all pending restarts.
    pub fn give_up_waiting(&self) {
        let all = std::mem::take(&mut lock(&self.waiting).all);
        let mut all: Vec<One<K>> = all.into_values().collect();
        // The order of the notes must be an order that a test's seed repeats.
        all.sort_unstable_by_key(|one| one.number);
        for One { seed, how, timer, .. } in all {
            self.system.timers().cancel(timer);
            self.give_up(&seed, how);
            // The key is the user's: a panic of its drop must not keep the rest of the list from being given up.
            drop_guarded(seed);
        }
    }

    /// Frees the key of an actor that is not restarted.
    pub fn give_up(&self, seed: &StdArc<Seed<K>>, how: How) {
        match how {
            How::Anew => self.vacate(seed),
            // The key is free when the actor has ended.
            How::InPlace(child, _) => child.stop(),
        }
    }

    /// Removes the key slot in which an actor of this key entry waits, and notes that the key's actor has terminated.
    /// If a message has created the actor already, nothing happens.
    fn vacate(&self, seed: &StdArc<Seed<K>>) {
        let mut shard = self.table.lock(seed.hash);
        if shard.replace(seed.hash, |seat| seat.awaits(seed), None) {
            // Under the lock, so that this comes before every note about the next actor of the key.
            self.statuses.note(seed, ActorStatus::Terminated, |_| true);
        }
        drop(shard);
        self.statuses.deliver();
    }

    /// Removes the key slot of an actor that has ended for good, unless its successor has the slot, and notes that the
    /// actor has terminated.
    pub fn free(&self, seed: &StdArc<Seed<K>>, ended: &AnyRef) {
        let mut shard = self.table.lock(seed.hash);
        shard.replace(seed.hash, |seat| seat.is_of(ended), None);
        // As in `vacate`.
        self.statuses.note(seed, ActorStatus::Terminated, |_| true);
        drop(shard);
        self.statuses.deliver();
    }

    /// Creates a new actor in the key slot in which an actor of this key entry waits.
    fn renew_waiting(self: &StdArc<Self>, seed: &StdArc<Seed<K>>) {
        if !self.renew(seed, |seat| seat.awaits(seed)) {
            self.vacate(seed);
            self.stop_if_over();
        }
    }

    /// Creates a new actor in the key slot for which `is` holds. Returns false if the actor cannot be created.
    pub fn renew(
        &self,
        seed: &StdArc<Seed<K>>,
        is: impl Fn(&crate::group::state::Seat<M, K>) -> bool,
    ) -> bool {
        let renewed = guarded(|| {
            let mut shard = self.table.lock(seed.hash);
            if !self.spawns() || !shard.has(seed.hash, &is) {
                return Ok(None);
            }
            let held = match self.make(seed) {
                Ok(held) => held,
                Err(error) => {
                    drop(shard);
                    self.log(&error);
                    return Ok(None);
                }
            };
            let seat = self.seat(seed, &held);
            shard.replace(seed.hash, &is, Some(seat));
            Ok(Some(held))
        });
        matches!(renewed, Ok(Some(_)))
    }

    /// Stops the head of a group that ends and has neither a living nor a waiting actor.
    pub fn stop_if_over(&self) {
        if self.openness() >= Openness::Terminating
            && lock(&self.living).is_empty()
            && lock(&self.waiting).is_empty()
        {
            self.head.stop();
        }
    }
}

/// Restarts or re-creates the actor, on the timers' thread.
fn time_is_up<M: Send + 'static, K: GroupKey>(
    board: &StdWeak<Board<M, K>>,
    seed: &StdArc<Seed<K>>,
    number: u64,
) {
    let Some(board) = board.upgrade() else { return };
    // The pending restart has gone if a message has created the actor, or if the group ends.
    let one = lock(&board.waiting).take_numbered(seed, number);
    match one.map(|one| one.how) {
        None => {}
        Some(How::Anew) => board.renew_waiting(seed),
        Some(How::InPlace(child, failure)) => _ = child.send_system(Control::Restart(failure)),
    }
    drop_guarded(board);
}
