//! The futures that an actor holds for, as data. `hold.rs` tells how they are polled.

use crate::actor::poll_waker::PollWaker;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc as StdArc;
use std::task::{self, Poll};

/// The holds of an actor: the first is polled, the others wait for it.
#[derive(Default)]
pub(crate) struct Holds {
    pub(crate) queue: VecDeque<Box<dyn HeldFuture>>,
    pub(crate) waker: Option<StdArc<PollWaker>>,
}

/// A future, and the function that takes its output.
pub(crate) trait HeldFuture: Send {
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Ended>;
}

/// The function with the output, a `Box<Then<A>>` of `hold.rs`. It does not leave the turn that has polled.
pub(crate) type Ended = Box<dyn Any>;
