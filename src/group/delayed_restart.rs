//! Actors of a group that wait to be restarted, and what happens when their time has come.

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
    /// Restarts the actor of this seed after a while; gives `how` back if the group is ending.
    pub fn wait(self: &StdArc<Self>, seed: &StdArc<Seed<K>>, how: How, wait: Duration) -> Result<(), How> {
        let timers = self.system.timers();
        let (board, waiter) = (StdArc::downgrade(self), seed.clone());
        // A look under the lock: who ends the group empties the list afterwards.
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
            // It was restarted together with the head before its time, and has failed again: suspended by two failures,
            // it is to get one verdict.
            timers.cancel(timer);
            let _ = child.send_system(Control::Resume { judged: false });
        }
        Ok(())
    }

    /// The actor of this seed has been created, or will not be.
    pub fn forget_waiting(&self, seed: &StdArc<Seed<K>>) {
        let one = lock(&self.waiting).take(seed);
        if let Some(one) = one {
            self.system.timers().cancel(one.timer);
            // The failure is the user's.
            drop_guarded(one);
        }
    }

    /// Gives up all who wait.
    pub fn give_up_waiting(&self) {
        let all = std::mem::take(&mut lock(&self.waiting).all);
        let mut all: Vec<One<K>> = all.into_values().collect();
        // What is told of them comes in an order that a test's seed repeats.
        all.sort_unstable_by_key(|one| one.number);
        for One { seed, how, timer, .. } in all {
            self.system.timers().cancel(timer);
            self.give_up(&seed, how);
            // The key is the user's, and the others are to be given up in any case.
            drop_guarded(seed);
        }
    }

    /// Frees the key of one that is not restarted.
    pub fn give_up(&self, seed: &StdArc<Seed<K>>, how: How) {
        match how {
            How::Anew => self.vacate(seed),
            // The key is free when it has ended.
            How::InPlace(child, _) => child.stop(),
        }
    }

    /// Takes the seat away in which an actor of this seed waits, and tells that the key's actor is no more. If a
    /// message was faster and has created the actor, nothing happens.
    fn vacate(&self, seed: &StdArc<Seed<K>>) {
        let mut shard = self.table.lock(seed.hash);
        if shard.replace(seed.hash, |seat| seat.awaits(seed), None) {
            // Under the lock: before anything is noted of whoever has the key next.
            self.statuses.note(seed, ActorStatus::Terminated, |_| true);
        }
        drop(shard);
        self.statuses.deliver();
    }

    /// An actor of this seed has ended for good: takes its seat away, unless its heir has it, and tells that it is no
    /// more.
    pub fn free(&self, seed: &StdArc<Seed<K>>, ended: &AnyRef) {
        let mut shard = self.table.lock(seed.hash);
        shard.replace(seed.hash, |seat| seat.is_of(ended), None);
        // As in `vacate`.
        self.statuses.note(seed, ActorStatus::Terminated, |_| true);
        drop(shard);
        self.statuses.deliver();
    }

    /// Creates the actor anew that waits in its seat.
    fn renew_waiting(self: &StdArc<Self>, seed: &StdArc<Seed<K>>) {
        if !self.renew(seed, |seat| seat.awaits(seed)) {
            self.vacate(seed);
            self.stop_if_over();
        }
    }

    /// Creates an actor anew in the seat for which `is` holds; false if it cannot be.
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

    /// Stops the head of a group that ends and has nobody left.
    pub fn stop_if_over(&self) {
        if self.openness() >= Openness::Terminating
            && lock(&self.living).is_empty()
            && lock(&self.waiting).is_empty()
        {
            self.head.stop();
        }
    }
}

/// On the timers' thread.
fn time_is_up<M: Send + 'static, K: GroupKey>(
    board: &StdWeak<Board<M, K>>,
    seed: &StdArc<Seed<K>>,
    number: u64,
) {
    let Some(board) = board.upgrade() else { return };
    // Nobody there: it was created by a message, or the group ends.
    let one = lock(&board.waiting).take_numbered(seed, number);
    match one.map(|one| one.how) {
        None => {}
        Some(How::Anew) => board.renew_waiting(seed),
        Some(How::InPlace(child, failure)) => _ = child.send_system(Control::Restart(failure)),
    }
    drop_guarded(board);
}
