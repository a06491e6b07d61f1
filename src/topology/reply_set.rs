//! A reply set gathers the answers to the copies of a request.
//!
//! Every copy has its own reply port, its token. A token is resolved exactly once: by the first reply that comes
//! through it or a clone of it, or by the drop of the last clone. While the request is being sent, the sender's hold
//! counts as one more open token, so that the end of the tokens so far is not taken for the end of all.

use crate::ask::ask_all::Answers;
use crate::ask::error::{AskError, Outcome};
use crate::ask::reply::{AnsweredBy, ReplyDestination, ReplyTo};
use crate::core::dead_letters::is_unread;
use crate::sync::{Mutex, lock};
use crate::util::panic::Guarded;
use std::sync::Arc as StdArc;

/// A copy that ended without a reply: the reason, or `None` if the time of the asker was up.
type Unanswered = Option<AskError>;

/// This set gathers the answers to a request that has several recipients.
pub(crate) struct ReplySet<R> {
    state: Mutex<State<R>>,
}

struct State<R> {
    /// The number of tokens that are not resolved, and of the sender's hold.
    open: usize,
    /// The sender has its hold.
    is_sending: bool,
    /// The number of tokens in all.
    made: usize,
    /// The use that outcomes are put to; `None` once the asker has them.
    gathering: Option<ReplyCollector<R>>,
}

enum ReplyCollector<R> {
    Any {
        asker: ReplyTo<R>,
        is_ignored: bool,
    },
    /// The replies stay here until they are [taken](ReplySet::take_all). The asker is told only that it may take them, so
    /// that no reply is lost if the asker's time is up at that moment.
    All {
        /// `None` before the request is sent, and once the asker has been told.
        asker: Option<ReplyTo<()>>,
        replies: Vec<Guarded<Result<R, Unanswered>>>,
    },
}

impl<R: Send + 'static> Answers<Result<R, AskError>> for ReplySet<R> {
    fn gathered(&self, told: Result<(), AskError>) -> Result<Vec<Result<R, AskError>>, AskError> {
        match told {
            // Every copy has an outcome.
            Ok(()) => Ok(self.take_all(&AskError::no_reply())),
            Err(error @ AskError::Timeout { .. }) => Ok(self.take_all(&error)),
            Err(error) => Err(error),
        }
    }
}

impl<R: Send + 'static> ReplySet<R> {
    /// Returns the reply set of a request that is answered with its first reply.
    pub(crate) fn any(asker: ReplyTo<R>) -> StdArc<Self> {
        Self::new(ReplyCollector::Any { asker, is_ignored: false })
    }

    /// Returns the reply set of a request whose outcomes are [taken](Self::take_all) together.
    pub(crate) fn all() -> StdArc<Self> {
        Self::new(ReplyCollector::All { asker: None, replies: Vec::new() })
    }

    /// Sets the port to tell when the outcomes may be taken; to be called before the request is sent.
    pub(crate) fn when_over(&self, tell: ReplyTo<()>) {
        if let Some(ReplyCollector::All { asker, .. }) = &mut lock(&self.state).gathering {
            *asker = Some(tell);
        }
    }

    /// Takes the outcomes of the copies, once all copies have an outcome or the time is up. `time_out` is the error of
    /// each copy without an outcome.
    fn take_all(&self, time_out: &AskError) -> Vec<Result<R, AskError>> {
        let mut state = lock(&self.state);
        let gathering = state.gathering.take();
        let left = state.open - usize::from(state.is_sending);
        drop(state);
        match gathering {
            Some(ReplyCollector::All { asker: _, replies }) => {
                let timed_out = (0..left).map(|_| Err(None));
                let all = replies.into_iter().map(Guarded::into_inner).chain(timed_out);
                all.map(|reply| reply.map_err(|error| error.unwrap_or_else(|| time_out.clone()))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn new(gathering: ReplyCollector<R>) -> StdArc<Self> {
        let state = State { open: 1, is_sending: true, made: 0, gathering: Some(gathering) };
        StdArc::new(Self { state: Mutex::new(state) })
    }

    /// Issues one more token.
    pub(crate) fn issue(self: &StdArc<Self>) -> ReplyTo<R> {
        let mut state = lock(&self.state);
        state.open += 1;
        state.made += 1;
        drop(state);
        ReplyTo::to_own_sink(ReplySetPort(self.clone()))
    }

    /// Issues a token for one of several answers to another token, which counts for the sender as none.
    #[cfg(feature = "remote")]
    fn issue_part(self: &StdArc<Self>) -> ReplyTo<R> {
        lock(&self.state).open += 1;
        ReplyTo::to_own_sink(ReplySetPort(self.clone()))
    }

    /// Resolves a token whose answers have come by its parts.
    #[cfg(feature = "remote")]
    fn end_parts(&self) {
        let ended = {
            let mut state = lock(&self.state);
            state.open -= 1;
            state.take_if_over()
        };
        if let Some(ended) = ended {
            // There is no reply, so there is nothing to hand back.
            let _ = ended.tell();
        }
    }

    /// Resolves a token, and hands back a reply that comes too late.
    fn resolve(&self, outcome: Outcome<R>) -> Result<(), Outcome<R>> {
        let mut late = None;
        let ended = {
            let mut state = lock(&self.state);
            state.open -= 1;
            match (&mut state.gathering, outcome) {
                (Some(ReplyCollector::Any { asker, .. }), Ok(reply)) if asker.wanted() => {
                    let Some(ReplyCollector::Any { asker, .. }) = state.gathering.take() else {
                        unreachable!("just seen")
                    };
                    Some(ReplySetCompletion::Reply(asker, reply))
                }
                (Some(ReplyCollector::All { asker: Some(asker), replies }), Ok(reply)) if asker.wanted() => {
                    replies.push(Guarded::new(Ok(reply)));
                    state.take_if_over()
                }
                // The asker does not wait any more.
                (_, Ok(reply)) => {
                    late = Some(Ok(reply));
                    state.fail(1, None);
                    state.take_if_over()
                }
                // The asker's time is up.
                (Some(ReplyCollector::All { asker: Some(asker), .. }), Err(_)) if !asker.wanted() => {
                    state.fail(1, None);
                    state.take_if_over()
                }
                (_, Err(error)) => {
                    state.fail(1, Some(unless_unread(error)));
                    state.take_if_over()
                }
            }
        };
        if let Some(ended) = ended {
            // The asker has gone between the look and the answer: the reply is late, too.
            late = late.or(ended.tell().map(Ok));
        }
        late.map_or(Ok(()), Err)
    }

    /// Notes that all copies are on their way: of `recipients`, those without a copy have failed.
    pub(crate) fn sent_to(&self, recipients: usize) {
        let ended = {
            let mut state = lock(&self.state);
            state.open -= 1;
            state.is_sending = false;
            let missing = recipients.saturating_sub(state.made);
            state.fail(missing, Some(AskError::undeliverable()));
            state.take_if_over()
        };
        if let Some(ended) = ended {
            // There is no reply, so there is nothing to hand back.
            let _ = ended.tell();
        }
    }
}

impl<R: Send + 'static> State<R> {
    fn fail(&mut self, count: usize, error: Unanswered) {
        match &mut self.gathering {
            Some(ReplyCollector::Any { is_ignored, .. }) => {
                *is_ignored |= count > 0 && error.is_some_and(|error| !is_undelivered(&error))
            }
            Some(ReplyCollector::All { replies, .. }) => {
                replies.extend((0..count).map(|_| Guarded::new(Err(error.clone()))));
            }
            None => {}
        }
    }

    fn take_if_over(&mut self) -> Option<ReplySetCompletion<R>> {
        if self.open > 0 {
            return None;
        }
        if let Some(ReplyCollector::All { asker, .. }) = &mut self.gathering {
            return asker.take().map(ReplySetCompletion::All);
        }
        let Some(ReplyCollector::Any { asker, is_ignored }) = self.gathering.take() else { return None };
        Some(ReplySetCompletion::Failure(
            asker,
            if is_ignored { AskError::no_reply() } else { AskError::undeliverable() },
        ))
    }
}

fn is_undelivered(error: &AskError) -> bool {
    matches!(error, AskError::Undeliverable { .. } | AskError::NoRoutees { .. })
}

/// Returns the error of a copy whose port was dropped, which no recipient may have read.
fn unless_unread(error: AskError) -> AskError {
    if is_unread() && !is_undelivered(&error) { AskError::undeliverable() } else { error }
}

/// This type is the news for the asker, which is told without the lock.
enum ReplySetCompletion<R> {
    Reply(ReplyTo<R>, R),
    Failure(ReplyTo<R>, AskError),
    All(ReplyTo<()>),
}

impl<R: Send + 'static> ReplySetCompletion<R> {
    /// Tells the asker, and hands back a reply that is late.
    fn tell(self) -> Option<R> {
        match self {
            Self::Reply(asker, reply) => asker.deliver(reply, None).err(),
            Self::Failure(asker, error) => {
                asker.fail(error);
                None
            }
            Self::All(asker) => {
                // An asker whose time is up has taken the replies.
                let _ = asker.deliver((), None);
                None
            }
        }
    }
}

/// A token is the reply port of a single copy.
struct ReplySetPort<R>(StdArc<ReplySet<R>>);

impl<R: Send + 'static> ReplyDestination<R> for ReplySetPort<R> {
    fn take(&self, outcome: Outcome<R>, _: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        self.0.resolve(outcome)
    }

    fn wanted(&self) -> bool {
        match &lock(&self.0.state).gathering {
            Some(ReplyCollector::Any { asker, .. }) => asker.wanted(),
            Some(ReplyCollector::All { asker, .. }) => asker.as_ref().is_some_and(ReplyTo::wanted),
            None => false,
        }
    }

    fn another(&self) -> Option<ReplyTo<R>> {
        Some(self.0.issue())
    }

    #[cfg(feature = "remote")]
    fn part(&self) -> Option<ReplyTo<R>> {
        Some(self.0.issue_part())
    }

    #[cfg(feature = "remote")]
    fn end_parts(&self) {
        self.0.end_parts();
    }
}
