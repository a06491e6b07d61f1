//! A function in the place of an actor.

use crate::core::actor_ref::ActorRef;
use crate::core::error::SendError;
use crate::core::recipient::Recipient;

/// Handles each message on the thread that sends it.
struct Function<F>(F);

impl<M, F: Fn(M) + Send + Sync + 'static> Recipient<M> for Function<F> {
    fn deliver(&self, message: M) -> Result<(), SendError<M>> {
        (self.0)(message);
        Ok(())
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// A reference to a function, which handles each message on its sender's thread: as a routee, or in a test.
    ///
    /// A message that is sent to the function directly is in no ledger; a router counts the messages that it routes to
    /// the function as handled. When the function panics, the panic unwinds to the sender.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::channel();
    /// let port = ActorRef::from_fn(move |number: u32| sender.send(number).expect("it is kept"));
    /// port.tell(7u32);
    /// assert_eq!(receiver.recv(), Ok(7));
    /// ```
    pub fn from_fn(handle: impl Fn(M) + Send + Sync + 'static) -> Self {
        Self::to_recipient(Function(handle))
    }
}
