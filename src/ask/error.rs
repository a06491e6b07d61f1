//! Why an ask has no answer.

use crate::core::ask_counts::Row;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SendError;
use crate::path::actor_path::ActorPath;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why an ask has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// Every port of the ask was dropped and none had answered: the handler panicked, forgot to answer,
    /// or the request ended as a dead letter.
    NoReply,
    /// The time ran out. The request may still be handled; its reply will be late.
    ///
    /// Unlike Akka's, the error names neither the target nor the type of the message: who asks knows both, and
    /// can add them where it reports the error.
    Timeout {
        /// The time that was given.
        after: Duration,
    },
    /// The target refused the request: it has stopped, or its mailbox was full.
    Undeliverable,
    /// The target is a router, and no routee took the request: it has none, or all have stopped.
    NoRoutees,
    /// The target is a router that asked several routees ([`ScatterGatherFirstCompleted`], [`TailChopping`]),
    /// and none has answered with a success.
    ///
    /// [`ScatterGatherFirstCompleted`]: crate::routing::ScatterGatherFirstCompleted
    /// [`TailChopping`]: crate::routing::TailChopping
    AllFailed {
        /// How each attempt ended, in the order in which they did.
        causes: Arc<Vec<AttemptFailure>>,
    },
    /// Waiting was tried on a work-stealing worker thread, or in a turn on a calling-thread dispatcher, whose
    /// other actors would stand still and perhaps never send the answer. The request was sent; its reply will
    /// be late.
    WouldBlockWorker,
    /// The time given was zero; nothing was sent.
    NoTime,
    /// On a `TestSystem` (feature `testkit`): no actor has anything left to do, or actors keep each other busy for
    /// ever, and the answer is not there. The request was sent; a reply that comes yet will be late.
    Stalled,
}

impl AskError {
    /// Where an ask that ends like this is counted; nowhere if it was never begun.
    pub(crate) fn row(&self) -> Option<Row> {
        match self {
            Self::NoReply | Self::AllFailed { .. } => Some(Row::NoReply),
            Self::Timeout { .. } => Some(Row::TimedOut),
            Self::Undeliverable | Self::NoRoutees => Some(Row::Undeliverable),
            Self::WouldBlockWorker | Self::Stalled => Some(Row::Cancelled),
            Self::NoTime => None,
        }
    }

    /// What an ask fails with whose request was refused so.
    pub(crate) fn refused<M>(refusal: &SendError<M>) -> Self {
        match refusal {
            SendError::NoRoutee(_) => Self::NoRoutees,
            _ => Self::Undeliverable,
        }
    }
}

/// How many causes an error shows; the others are counted.
pub(crate) const CAUSES_SHOWN: usize = 8;

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReply => f.write_str("no reply: every reply port was dropped unanswered"),
            Self::Timeout { after } => write!(f, "no reply within {after:?}: give it more time or ask less"),
            Self::Undeliverable => f.write_str("request undeliverable: the target has stopped or is full"),
            Self::NoRoutees => f.write_str(
                "no routee took the request: the router is empty or all its routees have stopped",
            ),
            Self::AllFailed { causes } => {
                write!(f, "no routee answered with a success, {} attempts failed", causes.len())?;
                for (number, cause) in causes.iter().take(CAUSES_SHOWN).enumerate() {
                    write!(f, "{} {cause}", if number == 0 { ':' } else { ',' })?;
                }
                match causes.len().saturating_sub(CAUSES_SHOWN) {
                    0 => Ok(()),
                    more => write!(f, ", and {more} more"),
                }
            }
            Self::WouldBlockWorker => f.write_str(
                "waiting for a reply would block a work-stealing worker: let the answer arrive as a message \
                 (`ctx.ask`), or run the actor on a blocking or pinned dispatcher",
            ),
            Self::Stalled => f.write_str(
                "no reply, and no turn of the test system brings one: advance its clock first, let another thread \
                 answer before the wait, or look for actors that keep each other busy",
            ),
            Self::NoTime => f.write_str("no time to answer in 0ns: nothing was sent, give more than zero"),
        }
    }
}

impl std::error::Error for AskError {}

/// Why one attempt at an answer came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// Its reply was none that counts as a success: see [`Request::is_success`].
    Unsuccessful,
    /// Every port of it was dropped unanswered: the handler failed, by an error or a panic, or forgot to answer; or
    /// the routee stopped with the message in its mailbox. What a handler failed with is in the log.
    NoReply,
    /// The routee did not take the message.
    Refused(DeadLetterReason),
    /// The routee is a router itself, and this is what it said.
    Failed(AskError),
    /// User code panicked: the message's `Clone` or [`Answerable::fork`], or [`Request::is_success`].
    Panicked,
}

impl AttemptEnd {
    pub(crate) fn without_reply(error: AskError) -> Self {
        match error {
            AskError::NoReply => Self::NoReply,
            AskError::Undeliverable => Self::Refused(DeadLetterReason::Stopped),
            other => Self::Failed(other),
        }
    }
}

/// Which routee did not answer, and why; see [`AskError::AllFailed`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptFailure {
    /// Who was asked.
    pub routee: ActorPath,
    /// How the attempt ended.
    pub end: AttemptEnd,
}

impl fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsuccessful => f.write_str("its reply was no success"),
            Self::NoReply => f.write_str("no reply"),
            Self::Refused(reason) => write!(f, "not taken ({reason})"),
            Self::Failed(error) => write!(f, "failed ({error})"),
            Self::Panicked => f.write_str("a panic in `clone`, `fork` or `is_success`"),
        }
    }
}

/// `/user/cache: no reply`.
impl fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.routee, self.end)
    }
}

/// What an ask ends with.
pub type Outcome<R> = Result<R, AskError>;
