//! Attempts: several actors are asked one question, each through a port of its own.
//!
//! A router that asks more than one routee gives every copy of the message a child port. A success goes on to the
//! asker's own port, if it is the first. Any other end of an attempt is reported when it happens, so the router can try
//! the next routee at once, collect the causes, and name the winner. The router decides about the reports: see
//! `routing/logics/first_reply.rs`.

use crate::ask::error::{AskError, AttemptEnd, Outcome};
use crate::ask::reply::{AnsweredBy, Call, ReplyDestination, ReplyTo, Request};
use crate::core::any_actor_ref::AnyActorRef;
use crate::failure::guarded;
use crate::path::actor_path::ActorPath;
use std::any::Any;
use std::cell::Cell;
use std::fmt;
// Type-erased: their counts are part of no protocol.
use std::sync::Arc as StdArc;

/// The operation on a message's reply port. It is made by routers that ask several routees and by actors that skip
/// unwanted messages, and passed on by [`Answerable::fork`].
pub struct Attempt {
    what: AttemptKind,
}

enum AttemptKind {
    /// Lend the port, and leave it in its place.
    Find(Cell<Option<StdArc<dyn AskerPort>>>),
    /// Replace the port by a child port.
    AttemptPort { question: StdArc<dyn Question>, index: u32 },
    /// Replace the port by a closed port: the message is undelivered.
    Close,
    /// Replace the port by another of the same request, if the port can make one: the message is a further copy.
    Another,
    /// Leave the port, and tell whether an answer would still reach an asker.
    Look(Cell<bool>),
}

impl Attempt {
    /// Makes the attempt number `index` at answering `question`.
    pub(crate) fn new(question: StdArc<dyn Question>, index: u32) -> Self {
        Self { what: AttemptKind::AttemptPort { question, index } }
    }

    /// Takes the port away without an attempt, so its asker is told, and leaves a closed port.
    pub(crate) fn refused() -> Self {
        Self { what: AttemptKind::Close }
    }

    /// Makes one more copy of a request, without an attempt; the copy is answered by itself.
    pub(crate) fn another() -> Self {
        Self { what: AttemptKind::Another }
    }

    /// Looks whether the message is still wanted, without an attempt.
    pub(crate) fn look() -> Self {
        Self { what: AttemptKind::Look(Cell::new(true)) }
    }

    /// The result of the look.
    pub(crate) fn is_wanted(&self) -> bool {
        match &self.what {
            AttemptKind::Look(wanted) => wanted.get(),
            _ => true,
        }
    }

    /// Stores in a look whether the message is wanted; returns whether this is a look.
    pub(crate) fn looked(&self, is_wanted: impl FnOnce() -> bool) -> bool {
        match &self.what {
            AttemptKind::Look(wanted) => {
                wanted.set(is_wanted());
                true
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut attempt = f.debug_struct("Attempt");
        if let AttemptKind::AttemptPort { index, .. } = &self.what {
            attempt.field("index", index);
        }
        attempt.finish_non_exhaustive()
    }
}

/// A message whose reply port can be found; `#[derive(Message)]` implements it.
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
/// # fn takes<M: pointsman::ask::Answerable + From<Call<Get>>>() {}
/// # takes::<CacheMsg>();
/// ```
///
/// An implementation by hand passes the call on to the port, or to the value that holds the port:
///
/// ```
/// # use pointsman::prelude::*;
/// use pointsman::ask::{Answerable, Attempt};
/// # struct Get(String);
/// # impl Request for Get {
/// #     type Reply = Option<u64>;
/// # }
/// # enum CacheMsg {
/// #     Get(Call<Get>),
/// #     Sweep,
/// # }
///
/// impl Answerable for CacheMsg {
///     fn fork(&mut self, attempt: &Attempt) -> bool {
///         match self {
///             CacheMsg::Get(call) => call.fork(attempt),
///             CacheMsg::Sweep => false,
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say where its reply ports are",
    note = "derive it with the message: `#[derive(Message)]` implements `Answerable`"
)]
pub trait Answerable {
    /// Applies `attempt` to this message's reply port, and returns true; returns false if the message has no port.
    fn fork(&mut self, attempt: &Attempt) -> bool;

    /// For an envelope: the function by which the message inside tells whether it is wanted. For the engine's own.
    #[doc(hidden)]
    fn is_bare_wanted() -> Option<Box<dyn std::any::Any>>
    where
        Self: Sized + 'static,
    {
        None
    }
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
    match &attempt.what {
        AttemptKind::Look(wanted) => wanted.set(port.wanted()),
        AttemptKind::Find(found) => found.set(Some(StdArc::new(port.clone()))),
        AttemptKind::AttemptPort { question, index } => {
            *port =
                ReplyTo::to_own_sink(AttemptPort { question: question.clone(), index: *index, is_success });
        }
        AttemptKind::Close => *port = ReplyTo::closed(),
        AttemptKind::Another => {
            if let Some(another) = port.another() {
                *port = another;
            }
        }
    }
}

/// Returns a reference to the port of a message; `None` if it has none. Calls user code.
pub(crate) fn port_of<M: Answerable>(message: &mut M) -> Option<StdArc<dyn AskerPort>> {
    let attempt = Attempt { what: AttemptKind::Find(Cell::new(None)) };
    let AttemptKind::Find(found) = &attempt.what else { unreachable!("just made") };
    if message.fork(&attempt) { found.take() } else { None }
}

/// The identity of a router, without keeping its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouterId {
    /// The address of its head's cell. With the number beside it, a later cell at the same place has another identity,
    /// and so do values without a head.
    place: usize,
    number: u32,
}

impl RouterId {
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    pub(crate) fn new(head: &AnyActorRef, number: u32) -> Self {
        Self { place: std::ptr::from_ref(head.core()) as usize, number }
    }
}

/// The port of an asker, regardless of the type of the reply.
pub(crate) trait AskerPort: Send + Sync {
    /// Returns whether an answer would still reach an asker. May be user code.
    fn is_wanted(&self) -> bool;

    /// Ends the ask without an answer. May be user code.
    fn fail_with(self: StdArc<Self>, error: AskError);

    /// The router whose attempt the port belongs to, if it is an attempt's port.
    fn attempt_of(&self) -> Option<RouterId>;

    /// Returns the port for code that knows its type.
    fn into_any(self: StdArc<Self>) -> StdArc<dyn Any + Send + Sync>;
}

impl<R: Send + 'static> AskerPort for ReplyTo<R> {
    fn is_wanted(&self) -> bool {
        self.wanted()
    }

    fn fail_with(self: StdArc<Self>, error: AskError) {
        taken_out(self).fail(error);
    }

    fn attempt_of(&self) -> Option<RouterId> {
        ReplyTo::attempt_of(self)
    }

    fn into_any(self: StdArc<Self>) -> StdArc<dyn Any + Send + Sync> {
        self
    }
}

/// Returns the port itself, or a clone if other code is looking at it.
fn taken_out<R>(port: StdArc<ReplyTo<R>>) -> ReplyTo<R> {
    StdArc::try_unwrap(port).unwrap_or_else(|shared| ReplyTo::clone(&shared))
}

/// A single question with several attempts.
pub(crate) trait Question: Send + Sync {
    /// Returns whether an answer would still reach an asker. May call user code.
    fn is_wanted(&self) -> bool;

    /// Returns whether any reply will do, without a test for success.
    fn takes_any_reply(&self) -> bool;

    /// Ends the question in favour of one attempt: `answer` gets the asker's port, and the function that names the
    /// routee. `answer` is not called if the question is over.
    fn win(&self, index: u32, answer: &mut Answering<'_>);

    /// Notes an attempt that has ended without a success. It counts once for each attempt; repeated and late calls are
    /// ignored.
    fn record_failed_attempt(self: StdArc<Self>, index: u32, end: AttemptEnd);

    /// The router that asks.
    fn router(&self) -> RouterId;
}

/// The winner's use of the asker's port.
pub(crate) type Answering<'a> = dyn FnMut(StdArc<dyn AskerPort>, &dyn Fn() -> ActorPath) + 'a;

/// The port of a single attempt.
struct AttemptPort<R> {
    question: StdArc<dyn Question>,
    index: u32,
    is_success: fn(&R) -> bool,
}

impl<R: Send + 'static> ReplyDestination<R> for AttemptPort<R> {
    fn take(&self, outcome: Outcome<R>, by: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        let reply = match outcome {
            Ok(reply) => reply,
            Err(error) => {
                self.question.clone().record_failed_attempt(self.index, AttemptEnd::without_reply(error));
                return Ok(());
            }
        };
        if !self.question.takes_any_reply() {
            let end = match guarded(|| Ok((self.is_success)(&reply))) {
                Ok(true) => None,
                Ok(false) => Some(AttemptEnd::Unsuccessful),
                Err(_) => Some(AttemptEnd::Panicked),
            };
            if let Some(end) = end {
                self.question.clone().record_failed_attempt(self.index, end);
                return Ok(());
            }
        }
        let mut left = Some(reply);
        self.question.win(self.index, &mut |asker, routee| {
            // The type is always the asker's, unless `fork` found two ports in clones of one message.
            let Ok(asker) = asker.into_any().downcast::<ReplyTo<R>>() else { return };
            let Some(reply) = left.take() else { return };
            // A router below that has asked several routees knows the replier more exactly.
            left = taken_out(asker).deliver(reply, by.or(Some(routee))).err();
        });
        left.map_or(Ok(()), |late| Err(Ok(late)))
    }

    fn wanted(&self) -> bool {
        self.question.is_wanted()
    }

    fn attempt_of(&self) -> Option<RouterId> {
        Some(self.question.router())
    }
}
