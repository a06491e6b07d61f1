//! The look for quiescence: it tells, on a system with threads, whether nothing is left to do.
//!
//! One walk over the actors is not enough. An actor that was seen at rest may get a message from an actor that is seen
//! later and rests by then: at each step of the walk the message is somewhere else. Sums are not enough either: they
//! are read one after the other, and none of them includes control.
//!
//! # Protocol
//!
//! 1. All messages that timers have taken out have been sent, or the look fails.
//! 2. Read the work of each thread so far ([`Counters::work_before`](crate::core::ledger::Counters::work_before)).
//! 3. Walk over all actors: each is [at rest](crate::AnyActorRef::is_at_rest), or the look fails.
//! 4. Walk over them again.
//! 5. Read the work of each thread ([`Counters::work_after`](crate::core::ledger::Counters::work_after)): the same as
//!    in 2, or the look fails.
//!
//! # Why that is exact
//!
//! An actor counts each message, control, and creation before it acts upon it, in the counters of its thread. It lays
//! its token down (Release) after it has acted. A thread that sees the token there (Acquire) sees all of the actor's
//! effects, counts included.
//!
//! Take the messages that have been sent before the look, and those that follow from them. Assume that the look
//! succeeds and that one of these has not been handled. Then there is a first such message: its sender has been counted
//! as handling its cause, or has sent it before the look. Step 5 equals step 2, so each count that either walk has made
//! visible was visible in step 2, and the cause of the message with it. The receiver of the cause was seen at rest in
//! step 3, so step 4 sees the message sent. There the receiver of the message is at rest, hence has handled it, hence
//! has counted it. So the message was handled after all.
//!
//! An actor that ends leaves the tree before it has told all its watchers. So its last step is counted twice: when the
//! end begins and when it is done. Step 2 reads the count of ends done and step 5 the count of ends begun. They are
//! equal only if each end that the walks can have missed was done before the walks.
//!
//! Threads outside the system may send at any time: then the look describes the moment at which it began. The driver of
//! sockets is such a thread.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::system::SystemCore;

/// The actors or timers that a look has found not at rest.
pub(crate) enum Unrest {
    /// These actors run, or have something to handle.
    Actors(Vec<AnyActorRef>),
    /// Timers are being fired.
    Timers,
    /// Each actor was seen at rest, and some have worked meanwhile.
    Between,
}

impl SystemCore {
    /// Returns whether no actor runs and no actor has anything to handle.
    pub(crate) fn look_for_quiet(&self) -> Result<(), Unrest> {
        if self.timers.is_firing() {
            return Err(Unrest::Timers);
        }
        let before = self.counters.work_before();
        for _ in 0..2 {
            let restless = self.busy_actors();
            if !restless.is_empty() {
                return Err(Unrest::Actors(restless));
            }
        }
        if self.counters.work_after() == before { Ok(()) } else { Err(Unrest::Between) }
    }

    fn busy_actors(&self) -> Vec<AnyActorRef> {
        let mut restless = Vec::new();
        let mut open: Vec<AnyActorRef> = self.tree().into_iter().map(|tree| tree.root).collect();
        while let Some(actor) = open.pop() {
            // Before its children are listed: a child that has taken a message from the queue that they share is among
            // them.
            let rests = actor.is_at_rest();
            open.extend(actor.core().children.all().into_iter().rev());
            if !rests {
                restless.push(actor);
            }
        }
        restless
    }
}
