//! Answers that are results themselves: a single result in place of nested ones.

use crate::ask::ask::Ask;
use crate::ask::error::AskError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The error of a request whose reply is a result itself: the replier's own error, or the reason why there is no reply.
///
/// [`Ask::flat`] and [`flatten`] make it, so that the asker has one `Result` instead of one in another.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The replier answered with this error.
    Replied(E),
    /// There is no reply.
    Ask(AskError),
    /// A [piped](crate::Context::try_pipe_to_self) future panicked.
    Panicked {
        /// The text of the panic.
        text: String,
    },
    /// The system ended before a piped future was done.
    Cancelled,
}

impl<E> CallError<E> {
    /// The replier's own error, if it has answered with one.
    ///
    /// # Errors
    ///
    /// This error, if there was no reply.
    pub fn replied(self) -> Result<E, Self> {
        match self {
            Self::Replied(error) => Ok(error),
            other => Err(other),
        }
    }
}

impl<E> From<AskError> for CallError<E> {
    fn from(error: AskError) -> Self {
        Self::Ask(error)
    }
}

impl<E> CallError<E> {
    /// Writes the sentence of the error; `replied` writes the replier's own.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        replied: impl FnOnce(&E, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> fmt::Result {
        match self {
            Self::Replied(error) => replied(error, f),
            Self::Ask(error) => fmt::Display::fmt(error, f),
            Self::Panicked { text } => f.write_str(text),
            Self::Cancelled => f.write_str("the system ended before the piped future was done"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, E::fmt)
    }
}

/// As the sentence of the error. The replier's own error shows itself in its own way.
impl<E: fmt::Debug> fmt::Debug for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, E::fmt)
    }
}

impl<E: std::error::Error + 'static> std::error::Error for CallError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Replied(error) => error.source(),
            Self::Ask(error) => error.source(),
            Self::Panicked { .. } | Self::Cancelled => None,
        }
    }
}

/// Makes one result of the outcome of an ask whose reply is a result: for the outcomes of
/// [`Context::ask`](crate::Context::ask), and of asks of many.
///
/// ```
/// use pointsman::AskError;
/// use pointsman::ask::{CallError, flatten};
///
/// let outcome: Result<Result<u32, String>, AskError> = Ok(Err("sold out".to_owned()));
/// assert_eq!(flatten(outcome), Err(CallError::Replied("sold out".to_owned())));
/// ```
pub fn flatten<T, E>(outcome: Result<Result<T, E>, AskError>) -> Result<T, CallError<E>> {
    match outcome {
        Ok(reply) => reply.map_err(CallError::Replied),
        Err(error) => Err(CallError::Ask(error)),
    }
}

impl<T, E> Ask<Result<T, E>> {
    /// Makes one result of two: for a request whose reply is a result itself. The outcome is the reply's value, or a
    /// [`CallError`] that tells the replier's own error from the reasons why there is no reply.
    ///
    /// ```
    /// use pointsman::ask::CallError;
    /// use pointsman::prelude::*;
    ///
    /// struct Buy(u32);
    /// impl Request for Buy {
    ///     type Reply = Result<u32, String>;
    /// }
    ///
    /// struct Shop;
    /// impl Actor for Shop {
    ///     type Message = Call<Buy>;
    ///     fn receive(&mut self, call: Call<Buy>, _: &mut Context<Call<Buy>>) -> HandlerResult {
    ///         call.answer(|Buy(count)| count.checked_sub(10).ok_or("at least 10".to_owned()));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let shop = system.spawn(|| Shop)?;
    /// assert_eq!(shop.ask(Buy(12)).flat().wait(), Ok(2));
    /// assert_eq!(shop.ask(Buy(1)).flat().wait(), Err(CallError::Replied("at least 10".to_owned())));
    /// # Ok(())
    /// # }
    /// ```
    pub fn flat(self) -> FlatAsk<T, E> {
        FlatAsk(self)
    }
}

/// An [`Ask`] of a reply that is a result, with one result: see [`Ask::flat`].
#[must_use = "an ask that is dropped is given up; use `tell` if no answer is wanted"]
pub struct FlatAsk<T, E>(Ask<Result<T, E>>);

impl<T, E> FlatAsk<T, E> {
    /// Sets the deadline of the answer to `limit` from now, as [`Ask::within`] does.
    pub fn within(self, limit: Duration) -> Self {
        Self(self.0.within(limit))
    }

    /// Blocks this thread until the ask is over, as [`Ask::wait`] does.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub fn wait(self) -> Result<T, CallError<E>> {
        flatten(self.0.wait())
    }
}

impl<T, E> Future for FlatAsk<T, E> {
    type Output = Result<T, CallError<E>>;

    /// # Panics
    /// When the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(flatten)
    }
}

impl<T, E> fmt::Debug for FlatAsk<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FlatAsk").field(&self.0).finish()
    }
}
