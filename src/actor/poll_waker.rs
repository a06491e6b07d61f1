//! The waker of a future that an actor polls in its own turns.
//!
//! A wake marks the future as due and sends the actor control, unless the mark is there already: then control is on its
//! way. The poll takes the mark first, so it sees the writes before each wake whose mark it takes, and a later wake sends
//! control again.

use crate::core::any_actor_ref::AnyActorRef;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc as StdArc;
use std::task::Wake;

pub(crate) struct PollWaker {
    pub(crate) actor: AnyActorRef,
    /// The number of the future, where the actor may have several.
    pub(crate) number: u64,
    /// Sends the control that makes the actor poll. An actor that has ended needs no poll.
    send_control: fn(&Self),
    /// Set by each wake, and taken by the poll that follows.
    is_due: AtomicBool,
}

impl PollWaker {
    pub(crate) fn new(actor: AnyActorRef, number: u64, send_control: fn(&Self)) -> StdArc<Self> {
        StdArc::new(Self { actor, number, send_control, is_due: AtomicBool::new(false) })
    }

    /// Takes the mark, at the beginning of a poll.
    pub(crate) fn begin_poll(&self) {
        // Ordering: Acquire; pairs with the Release swap in `wake_by_ref`: the poll sees the writes before the wake.
        self.is_due.swap(false, Ordering::Acquire);
    }

    /// Returns whether the future is due. For the turn of the actor.
    pub(crate) fn is_due(&self) -> bool {
        // Ordering: Relaxed; the swap in `begin_poll` has the order.
        self.is_due.load(Ordering::Relaxed)
    }

    /// Marks the future as due. For the turn of the actor, which looks again before it ends.
    pub(crate) fn set_due(&self) {
        // Ordering: Relaxed; this turn reads it again.
        self.is_due.store(true, Ordering::Relaxed);
    }
}

impl Wake for PollWaker {
    fn wake(self: StdArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &StdArc<Self>) {
        // Ordering: Release; pairs with the Acquire swap in `begin_poll`. The waker reads nothing of the poll's.
        if !self.is_due.swap(true, Ordering::Release) {
            (self.send_control)(self);
        }
    }
}
