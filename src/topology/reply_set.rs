//! Where the copies of one request answer.
//!
//! Every copy has a reply port of its own, its token. A token is resolved exactly once: by the first reply that comes
//! through it or a clone of it, or by the drop of the last clone. While the request is being sent, one more is counted
//! as open, so that the end of those so far is not taken for the end of all.

use crate::ask::error::{AskError, Outcome};
use crate::ask::reply::{Behind, By, ReplyTo};
use crate::core::dead_letters::is_unread;
use crate::sync::{Mutex, lock};
use crate::util::panic::drop_guarded;
use std::fmt;
use std::sync::Arc as StdArc;

/// How a copy of a request ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// Nobody will answer it: it was not delivered, or was left unread in a mailbox whose actor has ended. Also where the
    /// group that asks by an outlet, or the one that is asked, is not mounted yet.
    Failed,
    /// It was received, and its reply port was dropped without an answer. A copy that is dropped because user code panics
    /// while the request is being sent (a route's condition, a `Clone`) counts as this, too: who drops it is not told
    /// apart.
    Ignored,
    /// The time that the request was [given](super::Requesting::within) was up, and the copy was neither answered nor
    /// dropped: it waits for room or in a mailbox, or somebody has it.
    TimedOut,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "failed: nobody has received this copy of the request",
            Self::Ignored => "ignored: whoever received this copy of the request has not answered",
            Self::TimedOut => "timed out: this copy of the request was under way when its time was up",
        })
    }
}

impl std::error::Error for RequestError {}

impl RequestError {
    fn of(error: &AskError) -> Self {
        match error {
            AskError::Undeliverable { .. } | AskError::NoRoutees { .. } => Self::Failed,
            _ if is_unread() => Self::Failed,
            _ => Self::Ignored,
        }
    }
}

/// What each copy came to, in the order in which they did.
pub type Replies<R> = Vec<Result<R, RequestError>>;

/// One request that is asked of several.
pub struct Tokens<R> {
    state: Mutex<State<R>>,
}

struct State<R> {
    /// Tokens that are not resolved, and the sender's hold.
    open: usize,
    /// The sender has its hold.
    is_sending: bool,
    /// How many there were in all.
    made: usize,
    /// What is done with what they bring; `None` once the asker has it.
    gathering: Option<Gathering<R>>,
}

enum Gathering<R> {
    Any {
        asker: ReplyTo<R>,
        is_ignored: bool,
    },
    /// The replies stay here until they are [taken](Tokens::take_all): the asker is told only that it may, so that none
    /// is lost when its time is up just then.
    All {
        /// `None` before the request is sent, and once it is told.
        asker: Option<ReplyTo<()>>,
        replies: Replies<R>,
    },
}

impl<R: Send + 'static> Tokens<R> {
    /// A request that is answered with its first reply.
    pub fn any(asker: ReplyTo<R>) -> StdArc<Self> {
        Self::new(Gathering::Any { asker, is_ignored: false })
    }

    /// A request of which what all copies came to is [taken](Self::take_all).
    pub fn all() -> StdArc<Self> {
        Self::new(Gathering::All { asker: None, replies: Vec::new() })
    }

    /// Whom to tell when that may be done; to be called before the request is sent.
    pub fn when_over(&self, tell: ReplyTo<()>) {
        if let Some(Gathering::All { asker, .. }) = &mut lock(&self.state).gathering {
            *asker = Some(tell);
        }
    }

    /// What the copies came to: once all have, or the time is up, which those are told by that have not.
    pub fn take_all(&self) -> Replies<R> {
        let mut state = lock(&self.state);
        let gathering = state.gathering.take();
        let left = state.open - usize::from(state.is_sending);
        drop(state);
        match gathering {
            Some(Gathering::All { asker: _, mut replies }) => {
                replies.extend((0..left).map(|_| Err(RequestError::TimedOut)));
                replies
            }
            _ => Vec::new(),
        }
    }

    fn new(gathering: Gathering<R>) -> StdArc<Self> {
        let state = State { open: 1, is_sending: true, made: 0, gathering: Some(gathering) };
        StdArc::new(Self { state: Mutex::new(state) })
    }

    /// One more token.
    pub fn issue(self: &StdArc<Self>) -> ReplyTo<R> {
        let mut state = lock(&self.state);
        state.open += 1;
        state.made += 1;
        drop(state);
        ReplyTo::to_own_sink(Token(self.clone()))
    }

    /// A token is resolved; a reply that comes too late is handed back.
    fn resolve(&self, outcome: Outcome<R>) -> Result<(), Outcome<R>> {
        let mut late = None;
        let ended = {
            let mut state = lock(&self.state);
            state.open -= 1;
            match (&mut state.gathering, outcome) {
                (Some(Gathering::Any { asker, .. }), Ok(reply)) if asker.wanted() => {
                    let Some(Gathering::Any { asker, .. }) = state.gathering.take() else {
                        unreachable!("just seen")
                    };
                    Some(Ended::Reply(asker, reply))
                }
                (Some(Gathering::All { asker: Some(asker), replies }), Ok(reply)) if asker.wanted() => {
                    replies.push(Ok(reply));
                    state.take_if_over()
                }
                // Nobody waits any more.
                (_, Ok(reply)) => {
                    late = Some(Ok(reply));
                    state.fail(1, RequestError::TimedOut);
                    state.take_if_over()
                }
                // The asker's time is up.
                (Some(Gathering::All { asker: Some(asker), .. }), Err(_)) if !asker.wanted() => {
                    state.fail(1, RequestError::TimedOut);
                    state.take_if_over()
                }
                (_, Err(error)) => {
                    state.fail(1, RequestError::of(&error));
                    state.take_if_over()
                }
            }
        };
        if let Some(ended) = ended {
            // A race between the look and the answer: the reply is late, too.
            late = late.or(ended.tell().map(Ok));
        }
        late.map_or(Ok(()), Err)
    }

    /// All copies are on their way: of `recipients`, those for whom no copy was made have failed.
    pub fn sent_to(&self, recipients: usize) {
        let ended = {
            let mut state = lock(&self.state);
            state.open -= 1;
            state.is_sending = false;
            let missing = recipients.saturating_sub(state.made);
            state.fail(missing, RequestError::Failed);
            state.take_if_over()
        };
        if let Some(ended) = ended {
            // Nobody has replied: there is nothing to hand back.
            let _ = ended.tell();
        }
    }
}

impl<R: Send + 'static> State<R> {
    fn fail(&mut self, count: usize, error: RequestError) {
        match &mut self.gathering {
            Some(Gathering::Any { is_ignored, .. }) => {
                *is_ignored |= count > 0 && error == RequestError::Ignored
            }
            Some(Gathering::All { replies, .. }) => replies.extend((0..count).map(|_| Err(error))),
            None => {}
        }
    }

    fn take_if_over(&mut self) -> Option<Ended<R>> {
        if self.open > 0 {
            return None;
        }
        if let Some(Gathering::All { asker, .. }) = &mut self.gathering {
            return asker.take().map(Ended::All);
        }
        let Some(Gathering::Any { asker, is_ignored }) = self.gathering.take() else { return None };
        Some(Ended::Failure(asker, if is_ignored { AskError::no_reply() } else { AskError::undeliverable() }))
    }
}

impl<R> Drop for State<R> {
    /// Replies that nobody has taken are the user's, each of which may panic when it is dropped: of two panics at once the
    /// second would abort the process.
    fn drop(&mut self) {
        if let Some(Gathering::All { replies, .. }) = self.gathering.take() {
            replies.into_iter().for_each(drop_guarded);
        }
    }
}

/// What the asker is told, without the lock.
enum Ended<R> {
    Reply(ReplyTo<R>, R),
    Failure(ReplyTo<R>, AskError),
    All(ReplyTo<()>),
}

impl<R: Send + 'static> Ended<R> {
    /// Hands the one reply back if it is late.
    fn tell(self) -> Option<R> {
        match self {
            Self::Reply(asker, reply) => asker.deliver(reply, None).err(),
            Self::Failure(asker, error) => {
                asker.fail(error);
                None
            }
            Self::All(asker) => {
                // An asker whose time is up has taken them.
                let _ = asker.deliver((), None);
                None
            }
        }
    }
}

/// The reply port of one copy.
struct Token<R>(StdArc<Tokens<R>>);

impl<R: Send + 'static> Behind<R> for Token<R> {
    fn take(&self, outcome: Outcome<R>, _: By<'_>) -> Result<(), Outcome<R>> {
        self.0.resolve(outcome)
    }

    fn wanted(&self) -> bool {
        match &lock(&self.0.state).gathering {
            Some(Gathering::Any { asker, .. }) => asker.wanted(),
            Some(Gathering::All { asker, .. }) => asker.as_ref().is_some_and(ReplyTo::wanted),
            None => false,
        }
    }

    fn another(&self) -> Option<ReplyTo<R>> {
        Some(self.0.issue())
    }
}
