//! Attempts: several actors asked one question, each through a port of its own.
//!
//! A router that asks more than one routee gives every copy of the message a child port. The first success
//! goes on to the asker's own port; each attempt's end is reported when it happens, so that the router can
//! try the next routee at once, collect the causes, and name the winner.

use super::ask::AskError;
use super::reply::{Call, ReplySink, ReplyTo, Request, to_sink};
use crate::sync::{Mutex, lock};
use std::fmt;
// A type-erased callback: its count is part of no protocol.
use std::sync::Arc as StdArc;

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// Its reply was the first success, and went to the asker.
    Won,
    /// Its reply was a success, but somebody had answered before, or nobody waited any more.
    Late,
    /// Its reply was none that counts as a success: see [`Request::is_success`].
    Unsuccessful,
    /// It ended without a reply.
    Failed(AskError),
}

type Report = dyn Fn(usize, AttemptEnd) + Send + Sync;

/// One attempt at an answer: which one it is, and who wants to know how it ends.
#[derive(Clone)]
pub struct Attempt {
    index: usize,
    report: StdArc<Report>,
    /// None is made: the message is undelivered, and its port is closed.
    is_refused: bool,
}

impl Attempt {
    /// The attempt number `index`; `report` is called once, with the number and the end, on the thread that
    /// ends it.
    pub fn new(index: usize, report: impl Fn(usize, AttemptEnd) + Send + Sync + 'static) -> Self {
        Self { index, report: StdArc::new(report), is_refused: false }
    }

    /// Another attempt with the same report.
    pub fn with_index(&self, index: usize) -> Self {
        Self { index, ..self.clone() }
    }

    /// No attempt at all: takes the port away, so that its asker is told, and leaves one that is closed.
    pub(crate) fn refused() -> Self {
        Self { is_refused: true, ..Self::new(0, |_, _| {}) }
    }

    /// The number.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("index", &self.index).finish_non_exhaustive()
    }
}

/// A message whose reply port can be found: what `#[derive(Message)]` writes.
///
/// ```
/// use pointsman::prelude::*;
///
/// struct Get(String);
/// impl Request for Get {
///     type Reply = Option<u64>;
/// }
///
/// #[derive(Message)]
/// enum CacheMsg {
///     Get(Call<Get>),
///     Sweep,
/// }
/// # fn takes<M: pointsman::Answerable + From<Call<Get>>>() {}
/// # takes::<CacheMsg>();
/// ```
pub trait Answerable {
    /// Puts a child port in the place of this message's reply port, and returns true; false if the message
    /// has no port.
    fn fork(&mut self, attempt: &Attempt) -> bool;
}

impl<R: Send + 'static> Answerable for ReplyTo<R> {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        fork_port(self, attempt, |_| true);
        true
    }
}

impl<Q: Request> Answerable for Call<Q> {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        fork_port(&mut self.reply_to, attempt, Q::is_success);
        true
    }
}

fn fork_port<R: Send + 'static>(port: &mut ReplyTo<R>, attempt: &Attempt, is_success: fn(&R) -> bool) {
    if attempt.is_refused {
        *port = ReplyTo::closed();
        return;
    }
    let parent = Mutex::new(Some(port.clone()));
    let (child, _handle) = to_sink(Child { parent, attempt: attempt.clone(), is_success });
    *port = child;
}

/// Passes the first success on, and reports.
struct Child<R> {
    /// `None` once the attempt is over, so that a lost attempt keeps no ask waiting.
    parent: Mutex<Option<ReplyTo<R>>>,
    attempt: Attempt,
    is_success: fn(&R) -> bool,
}

impl<R: Send + 'static> ReplySink<R> for Child<R> {
    fn complete(&self, outcome: Result<R, AskError>) {
        let parent = lock(&self.parent).take();
        let end = match (outcome, &parent) {
            (Err(error), _) => AttemptEnd::Failed(error),
            (Ok(reply), _) if !(self.is_success)(&reply) => AttemptEnd::Unsuccessful,
            (Ok(_), None) => AttemptEnd::Late,
            (Ok(reply), Some(parent)) => match parent.clone().send(reply) {
                Ok(()) => AttemptEnd::Won,
                Err(_) => AttemptEnd::Late,
            },
        };
        // Before this attempt's hold on the asker's port ends: who is told of a failure may start the next.
        (self.attempt.report)(self.attempt.index, end);
        drop(parent);
    }

    fn wanted(&self) -> bool {
        lock(&self.parent).as_ref().is_some_and(ReplyTo::wanted)
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::actor_ref::ask::{self, NO_SYSTEM, Timekeeper};

    #[derive(Clone)]
    struct Is(u32);
    impl Request for Is {
        type Reply = u32;
        fn is_success(reply: &u32) -> bool {
            *reply != 0
        }
    }

    #[test]
    fn the_first_success_wins_and_each_end_is_told() {
        let ends = StdArc::new(Mutex::new(Vec::new()));
        let told = ends.clone();
        let attempt = Attempt::new(0, move |index, end| lock(&told).push((index, end)));
        let (reply_to, ask) = ask::begin(Timekeeper::Static(&NO_SYSTEM));
        let call = Call::new(Is(7), reply_to);
        let mut copies: Vec<_> = (0..4).map(|_| call.clone()).collect();
        for (index, copy) in copies.iter_mut().enumerate() {
            assert!(copy.fork(&attempt.with_index(index)));
        }
        drop(call);
        let fourth = copies.pop().expect("four");
        let third = copies.pop().expect("three");
        assert!(third.reply_to.wanted());
        drop(copies.pop());
        copies.pop().expect("one").answer(|_| 0);
        third.answer(|Is(number)| number);
        assert!(!fourth.reply_to.wanted(), "a loser can see that it lost");
        fourth.answer(|_| 9);
        assert_eq!(ask.wait(), Ok(7));
        let expected = [
            (1, AttemptEnd::Failed(AskError::NoReply)),
            (0, AttemptEnd::Unsuccessful),
            (2, AttemptEnd::Won),
            (3, AttemptEnd::Late),
        ];
        assert_eq!(*lock(&ends), expected);
    }

    #[test]
    fn when_all_attempts_fail_the_ask_fails_at_once() {
        let attempt = Attempt::new(0, |_, _| {});
        let (reply_to, ask) = ask::begin::<u32>(Timekeeper::Static(&NO_SYSTEM));
        let mut copies = vec![reply_to.clone(), reply_to];
        copies.iter_mut().for_each(|copy| assert!(copy.fork(&attempt)));
        drop(copies);
        assert_eq!(ask.wait(), Err(AskError::NoReply));
    }
}
