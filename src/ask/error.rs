//! The errors of an ask.

use crate::core::ask_counts::AskCounter;
use crate::core::dead_letter::{DeadLetterReason, nowhere};
use crate::core::dead_letters::is_unread;
use crate::core::error::SendError;
use crate::path::actor_path::ActorPath;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// ` from /user/clerk` with the word `from`; nothing where the target is not known.
struct Named<'a>(&'static str, &'a Option<Arc<ActorPath>>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(word, target) = self;
        target.as_ref().map_or(Ok(()), |path| write!(f, " {word} {path}"))
    }
}

/// The reason why an ask has no answer. The text names the target where it is known.
///
/// The [target](Self::target) is not known where there is no actor behind the reference, as behind a function, and for
/// an ask that is for no actor in particular. Errors are compared by their variant, timeout and attempts, and not by
/// their targets and the further reasons: [`is_full`](Self::is_full), [`is_stopped`](Self::is_stopped), or a pattern, tell
/// those.
///
/// ```
/// # use pointsman::prelude::*;
/// # struct Forgetful;
/// # #[derive(Debug)] struct Get;
/// # impl Request for Get { type Reply = u32; }
/// # impl Actor for Forgetful {
/// #     type Message = Call<Get>;
/// #     fn receive(&mut self, _: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let forgetful = system.actor("forgetful").spawn(|| Forgetful)?;
/// let error = forgetful.ask(Get).wait().unwrap_err();
/// assert_eq!(error.to_string(), "no reply from /user/forgetful: every reply port was dropped unanswered");
/// assert_eq!(error.target(), Some(&forgetful.path()));
/// assert_eq!(error, AskError::no_reply());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
#[doc(alias = "AskTarget")]
#[doc(alias = "RequestError")]
pub enum AskError {
    /// Every port of the ask was dropped without an answer: the handler failed, forgot to answer, or the request
    /// ended as a dead letter.
    NoReply {
        /// The way in which the last port was dropped.
        cause: NoReplyCause,
        /// The target of the ask.
        target: Option<Arc<ActorPath>>,
    },
    /// The deadline passed. The request may still be handled; its reply will be late.
    Timeout {
        /// The timeout of the ask.
        after: Duration,
        /// The target of the ask.
        target: Option<Arc<ActorPath>>,
    },
    /// The target refused the request: it has stopped, its mailbox was full, or routers route in a circle or by a wrong
    /// pick.
    Undeliverable {
        /// The reason: [`Full`](DeadLetterReason::Full), [`Stopped`](DeadLetterReason::Stopped), and so on.
        reason: DeadLetterReason,
        /// The target of the ask.
        target: Option<Arc<ActorPath>>,
    },
    /// The target is a router, and no routee took the request: it has none, or all have stopped.
    NoRoutees {
        /// The router.
        target: Option<Arc<ActorPath>>,
    },
    /// The target is a router that asked several routees ([`ScatterGatherFirstCompleted`], [`TailChopping`]), and no
    /// routee has answered with a success.
    ///
    /// [`ScatterGatherFirstCompleted`]: crate::routing::ScatterGatherFirstCompleted
    /// [`TailChopping`]: crate::routing::TailChopping
    AllFailed {
        /// Each routee that was asked, with the end of its attempt, in the order of the ends.
        causes: Arc<Vec<(ActorPath, AttemptEnd)>>,
        /// The router.
        target: Option<Arc<ActorPath>>,
    },
    /// The target is on another node, and that node is gone, or was started again, after the request was sent: it may have been
    /// handled. A request that was not sent ends as [`Undeliverable`](Self::Undeliverable) with the reason
    /// [`NodeGone`](DeadLetterReason::NodeGone).
    PeerGone {
        /// The target of the ask.
        target: Option<Arc<ActorPath>>,
    },
    /// The target is on another node, and that node has refused the request, or the reply cannot come back.
    Refused {
        /// The cause.
        by: RefusedBy,
        /// The target of the ask.
        target: Option<Arc<ActorPath>>,
    },
    /// The wait was tried on a work-stealing worker thread, or in a turn on a calling-thread dispatcher. The other
    /// actors of that thread would stand still and perhaps never send the answer. The request was sent; its reply will
    /// be late.
    WouldBlockWorker,
    /// The timeout was zero; nothing was sent.
    NoTime,
    /// On a `TestSystem` (feature `testkit`): no actor has anything left to do, or actors keep each other busy for
    /// ever, and the answer is not there. The request was sent; a reply that still comes will be late.
    Stalled,
}

impl AskError {
    /// [`NoReply`](Self::NoReply) of no target in particular, by a handler that has forgotten to answer: to compare
    /// with, and for replies that are made up in tests.
    pub const fn no_reply() -> Self {
        Self::NoReply { cause: NoReplyCause::Ignored, target: None }
    }

    /// [`Refused`](Self::Refused) by another node.
    #[cfg(feature = "remote")]
    pub(crate) const fn refused_by(by: RefusedBy) -> Self {
        Self::Refused { by, target: None }
    }

    /// The error of a request whose last port is dropped now, on this thread.
    pub(crate) fn dropped() -> Self {
        let cause = if is_unread() {
            NoReplyCause::Unread
        } else if crate::sync::thread::panicking() {
            NoReplyCause::Failed
        } else {
            NoReplyCause::Ignored
        };
        Self::NoReply { cause, target: None }
    }

    /// The error of a request whose handler has returned an error.
    pub(crate) const fn failed() -> Self {
        Self::NoReply { cause: NoReplyCause::Failed, target: None }
    }

    /// [`Timeout`](Self::Timeout) of no target in particular.
    pub const fn timeout(after: Duration) -> Self {
        Self::Timeout { after, target: None }
    }

    /// [`Undeliverable`](Self::Undeliverable) of no target in particular, which has stopped.
    pub const fn undeliverable() -> Self {
        Self::Undeliverable { reason: DeadLetterReason::Stopped, target: None }
    }

    /// The error of an ask whose request was not taken for this reason.
    pub(crate) const fn refused_for(reason: DeadLetterReason) -> Self {
        match reason {
            DeadLetterReason::NoRoutee => Self::no_routees(),
            reason => Self::Undeliverable { reason, target: None },
        }
    }

    /// Returns whether the mailbox of the target was full, and the request may be tried again later.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Undeliverable { reason: DeadLetterReason::Full, .. })
    }

    /// Returns whether the target has stopped, or the request was dropped [unread](NoReplyCause::Unread): by an actor
    /// that stopped, or by a mailbox that drops messages for room.
    pub fn is_stopped(&self) -> bool {
        matches!(
            self,
            Self::Undeliverable { reason: DeadLetterReason::Stopped | DeadLetterReason::NoActor, .. }
                | Self::NoReply { cause: NoReplyCause::Unread, .. }
        )
    }

    /// [`NoRoutees`](Self::NoRoutees) of no router in particular.
    pub const fn no_routees() -> Self {
        Self::NoRoutees { target: None }
    }

    /// The path of the target, if the error knows it.
    pub fn target(&self) -> Option<&ActorPath> {
        match self {
            Self::NoReply { target, .. }
            | Self::Timeout { target, .. }
            | Self::Undeliverable { target, .. }
            | Self::NoRoutees { target }
            | Self::PeerGone { target }
            | Self::Refused { target, .. }
            | Self::AllFailed { target, .. } => target.as_deref(),
            Self::WouldBlockWorker | Self::NoTime | Self::Stalled => None,
        }
    }

    /// Notes the target of the ask, where the error has a place for it and does not know it yet. `/deadLetters` is the
    /// path of each recipient without a place in the tree, and so names no target.
    pub(crate) fn note_target(&mut self, asked: impl FnOnce() -> Option<ActorPath>) {
        match self {
            Self::NoReply { target, .. }
            | Self::Timeout { target, .. }
            | Self::Undeliverable { target, .. }
            | Self::NoRoutees { target }
            | Self::PeerGone { target }
            | Self::Refused { target, .. }
            | Self::AllFailed { target, .. } => {
                if target.is_none() {
                    *target = asked().filter(|path| *path != nowhere()).map(Arc::new);
                }
            }
            Self::WouldBlockWorker | Self::NoTime | Self::Stalled => {}
        }
    }

    /// The counter of an ask that ends with this error; none if the ask was never begun.
    pub(super) fn counter(&self) -> Option<AskCounter> {
        match self {
            Self::NoReply { .. } | Self::AllFailed { .. } | Self::PeerGone { .. } | Self::Refused { .. } => {
                Some(AskCounter::NoReply)
            }
            Self::Timeout { .. } => Some(AskCounter::TimedOut),
            Self::Undeliverable { .. } | Self::NoRoutees { .. } => Some(AskCounter::Undeliverable),
            Self::WouldBlockWorker | Self::Stalled => Some(AskCounter::Cancelled),
            Self::NoTime => None,
        }
    }

    /// The error of an ask whose request was refused for this reason.
    pub(crate) fn refused<M>(refusal: &SendError<M>) -> Self {
        match refusal {
            SendError::NoRoutee(_) => Self::no_routees(),
            SendError::NoRoute(_) => Self::Undeliverable { reason: DeadLetterReason::NoRoutee, target: None },
            refusal => Self::refused_for(DeadLetterReason::of(refusal)),
        }
    }
}

/// The number of causes that an error shows; the others are counted.
const CAUSES_SHOWN: usize = 8;

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReply { cause, target } => write!(f, "no reply{}: {cause}", Named("from", target)),
            Self::Timeout { after, target } => {
                write!(f, "no reply{} within {after:?}: give it more time or ask less", Named("from", target))
            }
            Self::Undeliverable { reason, target } => {
                f.write_str("request undeliverable: ")?;
                match target {
                    Some(path) => path.fmt(f)?,
                    None => f.write_str("the target")?,
                }
                match reason {
                    DeadLetterReason::Stopped => f.write_str(" has stopped"),
                    DeadLetterReason::Full => {
                        f.write_str(" has a full mailbox: try again later, or raise its capacity")
                    }
                    other => write!(f, " did not take it: {other}"),
                }
            }
            Self::NoRoutees { target } => write!(
                f,
                "no routee{} took the request: the router is empty or all its routees have stopped",
                Named("of", target)
            ),
            Self::AllFailed { causes, target } => {
                write!(
                    f,
                    "no routee{} answered with a success, {} attempts failed",
                    Named("of", target),
                    causes.len()
                )?;
                for (number, (routee, end)) in causes.iter().take(CAUSES_SHOWN).enumerate() {
                    write!(f, "{} {routee}: {end}", if number == 0 { ':' } else { ',' })?;
                }
                match causes.len().saturating_sub(CAUSES_SHOWN) {
                    0 => Ok(()),
                    more => write!(f, ", and {more} more"),
                }
            }
            Self::PeerGone { target } => write!(
                f,
                "no reply{}: its node is gone or was started again, and the request may have been handled",
                Named("from", target)
            ),
            Self::Refused { by, target } => write!(f, "no reply{}: {by}", Named("from", target)),
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

debug_by_display! { AskError }

impl PartialEq for AskError {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Timeout { after, .. }, Self::Timeout { after: limit, .. }) => after == limit,
            (Self::AllFailed { causes, .. }, Self::AllFailed { causes: ends, .. }) => causes == ends,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for AskError {}

/// The way in which a request was left without an answer: see [`AskError::NoReply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoReplyCause {
    /// The handler failed: it panicked, or [`Call::try_answer`](crate::Call::try_answer) got an error. A handler that
    /// drops the call and then returns an error of its own counts as [`Ignored`](Self::Ignored).
    Failed,
    /// The call was dropped without an answer.
    Ignored,
    /// The request was dropped before any handler read it: its actor stopped with the request in its mailbox, or the
    /// mailbox dropped it.
    Unread,
}

impl fmt::Display for NoReplyCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "its handler failed, and the log has the failure",
            Self::Ignored => "every reply port was dropped unanswered",
            Self::Unread => "the request was dropped unread, as by an actor that stops",
        })
    }
}

/// The cause of a refusal by another node: see [`AskError::Refused`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusedBy {
    /// The actor takes another type of message.
    WrongType,
    /// The type of the message is not registered at the other node.
    UnknownType,
    /// The bytes of the request, or of the reply, are no value of its type at the node that got them.
    Undecodable,
    /// The policy of the other node does not let the request in.
    NotAllowed,
    /// The reply is larger than the limits of the other node allow.
    ReplyTooLarge,
    /// The reply, or a part of it, cannot go to another node.
    ReplyUnsendable,
    /// Too much waits at the other node for the node of the asker, so the reply is lost.
    LinkFull,
    /// The reply is so large that it comes in fragments, and not all of them have come.
    ReplyIncomplete,
}

impl fmt::Display for RefusedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongType => "the actor takes another type of message",
            Self::UnknownType => "its node does not know the type of the message: register it there",
            Self::Undecodable => "the bytes are no value of the type: compare its versions on both nodes",
            Self::NotAllowed => "the policy of its node does not let the request in",
            Self::ReplyTooLarge => "the reply is larger than the limits of its node allow",
            Self::ReplyUnsendable => "the reply cannot go to another node",
            Self::LinkFull => "its reply is lost, since too much waits there for this node",
            Self::ReplyIncomplete => "the large reply has not come as a whole: ask again",
        })
    }
}

/// The reason why one attempt at an answer failed: see [`AskError::AllFailed`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "AttemptFailure")]
pub enum AttemptEnd {
    /// Its reply does not count as a success: see [`Request::is_success`](crate::ask::reply::Request::is_success).
    Unsuccessful,
    /// Every port of it was dropped unanswered: the handler failed, by an error or a panic, or forgot to answer; or the
    /// routee stopped with the message in its mailbox. The failure of a handler is in the log.
    NoReply,
    /// The routee did not take the message.
    Refused(DeadLetterReason),
    /// The routee is a router itself, and this is its error.
    Failed(AskError),
    /// User code panicked: the message's `Clone` or [`Answerable::fork`](crate::ask::Answerable::fork), or
    /// [`Request::is_success`](crate::ask::reply::Request::is_success).
    Panicked,
}

impl AttemptEnd {
    pub(crate) fn without_reply(error: AskError) -> Self {
        match error {
            AskError::NoReply { .. } => Self::NoReply,
            AskError::Undeliverable { reason, .. } => Self::Refused(reason),
            other => Self::Failed(other),
        }
    }
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

/// The outcome of an ask.
pub(crate) type Outcome<R> = Result<R, AskError>;
