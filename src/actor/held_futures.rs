//! The futures that an actor holds for, as data. `hold.rs` tells how they are polled.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc as StdArc;
use std::task::{self, Poll, Wake};

/// The holds of an actor: the first is polled, the others wait for it.
#[derive(Default)]
pub(crate) struct Holds {
    pub(crate) queue: VecDeque<Box<dyn HeldFuture>>,
    pub(crate) alarm: Option<StdArc<Alarm>>,
}

/// A future, and the function that takes its output.
pub(crate) trait HeldFuture: Send {
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Ended>;
}

/// The function with the output, a `Box<Then<A>>` of `hold.rs`. It does not leave the turn that has polled.
pub(crate) type Ended = Box<dyn Any>;

/// The waker of a held future.
pub(crate) struct Alarm {
    pub(crate) actor: AnyActorRef,
    /// Set by each wake, and taken by the poll that follows.
    pub(crate) is_due: AtomicBool,
}

impl Wake for Alarm {
    fn wake(self: StdArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &StdArc<Self>) {
        // Ordering: Release; pairs with the Acquire swap in `ActorTurn::poll_hold`: the poll sees the writes before the
        // wake.
        if !self.is_due.swap(true, Ordering::Release) {
            // An actor that has ended needs no poll.
            let _ = self.actor.send_system(Control::Wakeup);
        }
    }
}
