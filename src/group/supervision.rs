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

use crate::actor::child_hooks::Foster;
use crate::core::any_ref::AnyRef;
use crate::core::control::Control;
use crate::failure::{Failure, guarded};
use crate::group::entry::{End, Seed};
use crate::group::key::GroupKey;
use crate::group::pending_restarts::How;
use crate::group::restart_policy::{When, WhileRestarting};
use crate::group::state::{Board, Seat};
use crate::sync::lock;
use crate::util::panic::drop_guarded;
use std::sync::Arc as StdArc;
use std::time::Duration;

pub struct Keeper<M: Send + 'static, K: GroupKey>(pub StdArc<Board<M, K>>);

impl<M: Send + 'static, K: GroupKey> Foster for Keeper<M, K> {
    fn failed(&self, child: AnyRef, failure: Failure) {
        let board = &self.0;
        let seed = lock(&board.living).get(&child).cloned();
        let Some(seed) = seed else { return child.stop() };
        if let Some(wait) = seed.life(|life| life.waits.take()) {
            // The actor is re-created, and its state is not to be made yet.
            return self.restart_in_place(&seed, child, failure, wait);
        }
        log_failure(&child, &failure);
        if board.policy_of(&seed).when == When::Never || !board.spawns() {
            return child.stop();
        }
        if board.while_restarting != WhileRestarting::Queue {
            seed.life(|life| life.end = End::Failed);
            return child.stop();
        }
        match self.next(&seed) {
            Some(wait) => self.restart_in_place(&seed, child, failure, wait),
            None => {
                seed.life(|life| life.end = End::GivenUp);
                child.stop();
            }
        }
    }

    fn ended(&self, child: AnyRef) {
        let board = &self.0;
        let seed = lock(&board.living).remove(&child);
        if let Some(seed) = seed {
            // The actor may have been stopped while it waited for its restart.
            board.forget_waiting(&seed);
            let end = seed.life(|life| std::mem::take(&mut life.end));
            let is_restarted = match board.policy_of(&seed).when {
                _ if child.is_retired() => false,
                When::Never => false,
                When::OnFailure => end == End::Failed,
                When::Always => end != End::GivenUp,
            };
            let wait = if is_restarted && board.spawns() { self.next(&seed) } else { None };
            if !wait.is_some_and(|wait| self.restart(&seed, &child, wait)) {
                board.free(&seed, &child);
                board.heirs.begin_after(&child);
            }
            // The key is the user's: a panic of its drop must not skip the steps that follow.
            drop_guarded(seed);
        }
        board.stop_if_over();
    }
}

impl<M: Send + 'static, K: GroupKey> Keeper<M, K> {
    fn next(&self, seed: &Seed<K>) -> Option<Duration> {
        let policy = self.0.policy_of(seed);
        seed.life(|life| policy.next(&mut life.tries))
    }

    fn restart_in_place(&self, seed: &StdArc<Seed<K>>, child: AnyRef, failure: Failure, wait: Duration) {
        if wait.is_zero() {
            return drop(child.send_system(Control::Restart(failure)));
        }
        if let Err(how) = self.0.wait(seed, How::InPlace(child, failure), wait) {
            self.0.give_up(seed, how);
        }
    }

    /// Restarts an actor that has ended. Returns false if the actor cannot be re-created at once.
    fn restart(&self, seed: &StdArc<Seed<K>>, ended: &AnyRef, wait: Duration) -> bool {
        let board = &self.0;
        if wait.is_zero() || board.while_restarting == WhileRestarting::Queue {
            seed.life(|life| life.waits = Some(wait).filter(|wait| !wait.is_zero()));
            return board.renew(seed, |seat| seat.is_of(ended));
        }
        let waits = Seat { seed: seed.clone(), actor: None };
        board.table.lock(seed.hash).replace(seed.hash, |seat| seat.is_of(ended), Some(waits));
        if let Err(how) = board.wait(seed, How::Anew, wait) {
            board.give_up(seed, how);
        } else if !board.table.lock(seed.hash).has(seed.hash, |seat| seat.awaits(seed)) {
            // A message has created the actor before its pending restart was in the list.
            board.forget_waiting(seed);
        }
        true
    }
}

fn log_failure(child: &AnyRef, failure: &Failure) {
    // The logger and the text of the cause are user code.
    let _ = guarded(|| {
        log::error!(target: "pointsman", "{} failed: {failure}", child.path());
        Ok(())
    });
}
