//! A queue that an actor shares with others, beside its own mailbox: routees of a balancing pool.
//!
//! The actor keeps its mailbox and its lane, and with them its identity: what is sent to its own reference, its
//! timers and its control concern it alone. When its mailbox is empty, it takes from the shared queue; how no
//! message is left there beside a sleeping actor is told in `dispatch/balancing.rs`.
//!
//! **Neither starves.** The mailbox goes first. But a turn that ends because its throughput is used up, and has taken
//! nothing from the shared queue, takes one message more, from there.
//!
//! **A claim is served or handed on.** A sender that claims an actor [nudges](AnyRef::nudge) it, and counts on it. So
//! the actor looks at the shared queue before its mailbox; and if control comes first, which may suspend or stop
//! it or take long, it hands the claim on to another.

use crate::actor::Actor;
use crate::actor::spawn::Held;
use crate::actor::turn::{Acted, ActorTurn, Phase, Recipe};
use crate::actor_ref::AnyRef;
use crate::dispatch::balancing::{self, Taker, Wake};
use crate::sync::Arc;

/// A queue that actors share.
pub type SharedQueue<M> = balancing::SharedQueue<M, Nudge>;

/// Wakes an actor.
pub struct Nudge(AnyRef);

impl Wake for Nudge {
    #[inline]
    fn wake(&self) {
        self.0.nudge();
    }
}

/// What an actor that shares a queue keeps.
pub struct Balanced<M> {
    taker: Taker<M, Nudge>,
    /// Whether it has taken anything since its throughput was last used up.
    has_taken: bool,
    /// Whether it ends where it would sleep.
    is_last: bool,
}

impl<M: Send + 'static> Held<M> {
    /// Makes the actor take from `queue`, too.
    pub fn share(mut self, queue: &Arc<SharedQueue<M>>) -> Self {
        let taker = Taker::join(queue.clone(), Nudge(self.actor().any_local()));
        let balanced = Balanced { taker, has_taken: false, is_last: false };
        self.private(|private| private.extras().balanced = Some(balanced));
        self
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Looks at or changes what an actor that shares has.
    fn balanced<R>(&self, act: impl FnOnce(&mut Balanced<A::Message>) -> R) -> Option<R> {
        self.private(|private| private.extras.as_mut()?.balanced.as_mut().map(act))
    }

    /// A turn begins.
    pub fn begin_sharing(&mut self) {
        let claimed = self.balanced(|balanced| balanced.taker.withdraw());
        (self.shares, self.owes) = (claimed.is_some(), claimed == Some(true));
    }

    /// Handles a message of the shared queue, if there is one.
    pub fn handle_shared(&mut self) -> Acted {
        if self.balanced(|balanced| balanced.taker.queue().is_empty()) != Some(false) {
            self.owes = false;
            return Acted::NothingDue;
        }
        if self.spend() { self.take_shared() } else { Acted::Budget }
    }

    fn take_shared(&mut self) -> Acted {
        let taken = self.balanced(|balanced| {
            let taken = balanced.taker.take();
            balanced.has_taken |= taken.is_some();
            taken
        });
        self.owes = false;
        let Some(message) = taken.flatten() else { return Acted::NothingDue };
        self.row.handled(1);
        self.deliver(message);
        Acted::Once
    }

    /// As [`handle_shared`](Self::handle_shared); when there is nothing, others may count on this actor.
    pub fn share(&mut self) -> Acted {
        match self.handle_shared() {
            Acted::NothingDue => {}
            acted => return acted,
        }
        if self.balanced(|balanced| balanced.is_last) == Some(true) {
            self.begin_stop();
            return Acted::Once;
        }
        if self.balanced(|balanced| balanced.taker.register()) == Some(false) {
            self.withdraw();
            return Acted::Once;
        }
        Acted::NothingDue
    }

    /// Lays the token down, if there is nothing to do; others count on this actor now.
    pub fn try_idle_sharing(&mut self) -> bool {
        if self.owner().try_idle_unless_nudged().is_ok() {
            return true;
        }
        self.withdraw();
        false
    }

    /// Nobody stays to take what is in the queue: the actor refuses messages of its own, and ends when it has
    /// handled those that it has, and found the queue empty.
    pub fn end_when_queue_is_empty(&mut self) {
        self.owner().close();
        self.balanced(|balanced| balanced.is_last = true);
    }

    fn withdraw(&mut self) {
        self.owes |= self.balanced(|balanced| balanced.taker.withdraw()) == Some(true);
    }

    /// Something else comes first, so another actor is to look at the shared queue.
    pub fn hand_on(&mut self) {
        self.owes = false;
        // Waking others may free one that has ended, so nothing is borrowed.
        if let Some(queue) = self.balanced(|balanced| balanced.taker.queue().clone()) {
            queue.hand_on();
        }
    }

    /// The throughput is used up.
    pub fn end_shared_turn(&mut self) {
        if self.owes {
            self.hand_on();
        }
        if self.balanced(|balanced| std::mem::take(&mut balanced.has_taken)) != Some(false) {
            return;
        }
        self.take_lane();
        if self.phase() == Phase::Alive && self.private(|private| private.suspended == 0) {
            let _ = self.take_shared();
            self.balanced(|balanced| balanced.has_taken = false);
        }
    }

    /// The actor has ended. What is left when nobody else shares the queue, goes to dead letters as the parent's.
    pub fn stop_sharing(&mut self) {
        let balanced = self.private(|private| private.extras.as_mut()?.balanced.take());
        (self.shares, self.owes) = (false, false);
        let Some(balanced) = balanced else { return };
        let messages = balanced.taker.leave();
        let core = self.core();
        let me = self.me();
        let recipient = core.parent.as_ref().unwrap_or(&me);
        for message in messages {
            core.system.dead_letter(self.row, recipient, message);
        }
    }
}
