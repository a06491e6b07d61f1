//! An inbox: messages for code outside actors, with a bound and queries that wait.
//!
//! An inbox has an actor that keeps the messages that no query has asked for yet. Queries reach the actor as control
//! messages, so that they are in no count of messages. They wait in the order in which they came, and each message is
//! offered to them in that order. All code of the user's, and every decision, runs in that actor's turn.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::turn::apply;
use crate::actor::watch::WatchError;
use crate::ask::ask;
use crate::ask::ask_clock::AskClock;
use crate::ask::error::AskError;
use crate::ask::reply::ReplyTo;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Terminated;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SpawnError;
use crate::core::extensions::Extension;
use crate::core::system::SystemRef;
use crate::failure::guarded;
use crate::sync::HashMap;
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::{Guarded, drop_guarded, quietly};
use crate::util::stderr_log::report;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The longest wait of a query with a timeout of zero for the look at the messages that there are: the thread of the
/// inbox's actor may be busy. As Akka waits.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// Receives messages outside actors: in tests, in `main`, in threads of other libraries.
///
/// Made by [`SystemRef::inbox`]. It keeps at most 1000 messages that no query has asked for, or [another
/// number](SystemRef::inbox_with_capacity). A message beyond that is dropped and counted as
/// [dropped](crate::Ledger::dropped), with a single warning in the log. Messages that it keeps count as queued until
/// they are received. Dropping the inbox ends it; the messages that are left in it become dead letters.
///
/// Several threads may wait at once: each message goes to the first of them that accepts it, in the order in which they
/// began to wait.
///
/// ```
/// use pointsman::prelude::*;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let inbox = system.inbox::<u32>()?;
/// let reply_here: &ActorRef<u32> = inbox.as_ref();
/// reply_here.tell(7u32);
/// reply_here.tell(8u32);
/// let second = Duration::from_secs(1);
/// assert_eq!(inbox.select(second, |number| number % 2 == 0)?, 8);
/// assert_eq!(inbox.receive(second)?, 7);
/// # Ok(())
/// # }
/// ```
///
/// # Waiting
///
/// Times go by the system's clock. A work-stealing worker and a turn on a calling-thread dispatcher must not wait:
/// there receiving fails with [`InboxError::WouldBlockWorker`], and takes no message. The same holds on the thread that
/// the inbox's own actor runs on, if there is no other, as where the default or internal dispatcher is a blocking
/// dispatcher of a single thread. With a time of zero the call takes a message that is there already: for that it waits
/// until the inbox's actor has looked, a minute at most.
pub struct Inbox<M: Send + 'static> {
    actor: ActorRef<M>,
}

/// The default number of messages that an inbox keeps.
pub(crate) struct InboxCapacity(pub(crate) usize);

impl Extension for InboxCapacity {}

impl SystemRef {
    /// Opens an inbox for up to 1000 messages, or as many as
    /// [`SystemBuilder::inbox_capacity`](crate::SystemBuilder::inbox_capacity) says.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: the system is shut down.
    pub fn inbox<M: Send + 'static>(&self) -> Result<Inbox<M>, SpawnError> {
        self.inbox_with_capacity(self.core().extensions.get::<InboxCapacity>().0)
    }

    /// Opens an inbox for up to `capacity` messages.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: a capacity of 0, or the system is shut down.
    pub fn inbox_with_capacity<M: Send + 'static>(&self, capacity: usize) -> Result<Inbox<M>, SpawnError> {
        if capacity == 0 {
            return Err(SpawnError::ZeroCapacity { path: "/system/$".to_owned() });
        }
        let actor = ActorBuilder::new(self.core().system_guardian(), None)
            .internal()
            .spawn(move || InboxActor::<M>::new(capacity))?;
        Ok(Inbox { actor })
    }
}

impl<M: Send + 'static> Inbox<M> {
    /// Returns the reference that fills the inbox, for other users.
    pub fn to_ref(&self) -> ActorRef<M> {
        self.actor.clone()
    }

    /// Takes the oldest message, and waits for a message if there is none.
    ///
    /// # Errors
    ///
    /// [`InboxError`]: none came in time, this thread must not wait, or the inbox has ended.
    pub fn receive(&self, timeout: Duration) -> Result<M, InboxError> {
        self.query(timeout, None)
    }

    /// Takes the oldest message for which `accepts` returns true, and waits for such a message if there is none. The
    /// others stay.
    ///
    /// `accepts` runs in the turn of the inbox's actor and should be short.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive); and [`InboxError::PredicatePanicked`], which leaves all messages where they
    /// are.
    pub fn select(
        &self,
        timeout: Duration,
        accepts: impl FnMut(&M) -> bool + Send + 'static,
    ) -> Result<M, InboxError> {
        self.query(timeout, Some(Box::new(accepts)))
    }

    fn query(&self, timeout: Duration, accepts: Option<Box<Predicate<M>>>) -> Result<M, InboxError> {
        let any = self.actor.any_local();
        if crate::dispatch::may_block::must_not_wait() || any.runs_only_here() {
            return Err(InboxError::WouldBlockWorker);
        }
        // A query that does not wait for a message waits for the look at the messages that there are.
        let at_once = timeout.is_zero();
        let limit = if at_once { LOOK_MAX } else { timeout };
        let (port, ask) = ask::begin(AskClock::Target(any));
        let query = Query { accepts: accepts.map(Guarded::new), at_once, port };
        self.apply(move |inbox, ctx| inbox.serve(query, ctx));
        match ask.within(limit).wait() {
            Ok(Answer::Message(message)) => Ok(message),
            Ok(Answer::PredicatePanicked) => Err(InboxError::PredicatePanicked),
            Ok(Answer::Nothing) | Err(AskError::Timeout { .. }) => {
                Err(InboxError::Timeout { after: timeout })
            }
            Err(AskError::WouldBlockWorker) => Err(InboxError::WouldBlockWorker),
            Err(AskError::Stalled) => Err(InboxError::Stalled),
            Err(_) => Err(InboxError::Closed),
        }
    }

    /// Puts the termination notice of an actor into the inbox, as the message that it converts to: at once if the actor
    /// has ended already.
    ///
    /// # Errors
    ///
    /// [`WatchError::NoActor`] if there is nothing to watch, as behind a function.
    pub fn watch(&self, actor: impl Into<Option<AnyActorRef>>) -> Result<(), WatchError>
    where
        M: From<Terminated>,
    {
        let Some(actor) = actor.into() else { return Err(WatchError::NoActor { notice: () }) };
        self.begin_watch(actor, Box::new(M::from));
        Ok(())
    }

    /// As [`watch`](Self::watch), but the notice is `message`. The latest call for an actor counts.
    ///
    /// # Errors
    ///
    /// Gives the message back if there is nothing to watch.
    pub fn watch_with(&self, actor: impl Into<Option<AnyActorRef>>, message: M) -> Result<(), WatchError<M>> {
        let Some(actor) = actor.into() else { return Err(WatchError::NoActor { notice: message }) };
        self.begin_watch(actor, Box::new(|_| message));
        Ok(())
    }

    fn begin_watch(&self, actor: AnyActorRef, notice: Box<MakeNotice<M>>) {
        self.apply(move |inbox, ctx| {
            // An error says that the actor is watched already, which is the aim.
            let _ = ctx.watch(&actor);
            drop_guarded(inbox.notices.insert(actor, Guarded::new(notice)));
        });
    }

    /// Takes a watch back: no notice about `actor` is put into the inbox from now on.
    pub fn unwatch(&self, actor: impl Into<Option<AnyActorRef>>) {
        let Some(actor) = actor.into() else { return };
        self.apply(move |inbox, ctx| {
            ctx.unwatch(&actor);
            drop_guarded(inbox.notices.remove(&actor));
        });
    }

    /// Runs `act` in the inbox's actor behind the messages that this thread has sent it. An inbox that has ended runs
    /// nothing.
    fn apply(&self, act: impl FnOnce(&mut InboxActor<M>, &mut Context<M>) + Send + 'static) {
        let act = apply(move |inbox: &mut InboxActor<M>, ctx| {
            act(inbox, ctx);
            Ok(())
        });
        let _ = self.actor.any_local().send_positioned(act);
    }
}

impl<M: Send + 'static> AsRef<ActorRef<M>> for Inbox<M> {
    fn as_ref(&self) -> &ActorRef<M> {
        &self.actor
    }
}

impl<M: Send + 'static> Drop for Inbox<M> {
    fn drop(&mut self) {
        self.actor.stop();
    }
}

impl<M: Send + 'static> fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("path", &self.actor.path()).finish_non_exhaustive()
    }
}

type Predicate<M> = dyn FnMut(&M) -> bool + Send;
type MakeNotice<M> = dyn FnOnce(Terminated) -> M + Send;

enum Answer<M> {
    Message(M),
    PredicatePanicked,
    /// The answer to a query that does not wait.
    Nothing,
}

/// A thread that waits for a message.
struct Query<M> {
    /// `None`: any message is accepted.
    accepts: Option<Guarded<Box<Predicate<M>>>>,
    /// The query takes a message that is there, or none.
    at_once: bool,
    port: ReplyTo<Answer<M>>,
}

impl<M> Query<M> {
    /// Whether this query takes `message`; an error if its predicate panics.
    fn accepts(&mut self, message: &M) -> Result<bool, ()> {
        let Some(accepts) = &mut self.accepts else { return Ok(true) };
        guarded(|| Ok(accepts(message))).map_err(drop_guarded)
    }

    /// Answers with `message`, or gives it back since no thread waits for the query any more.
    fn answer(self, message: M) -> Result<(), M> {
        drop_guarded(self.accepts);
        self.port.send(Answer::Message(message)).map_err(|late| match late {
            Answer::Message(message) => message,
            _ => unreachable!("it comes back as it was given"),
        })
    }

    /// Answers without a message.
    fn refuse(self, answer: Answer<M>) {
        let late = self.port.send(answer);
        drop(late);
        drop_guarded(self.accepts);
    }
}

/// The actor behind an inbox.
struct InboxActor<M> {
    /// The messages that no query has accepted, oldest first.
    messages: VecDeque<M>,
    /// The queries that wait, oldest first. Each has been offered all of `messages`.
    queries: VecDeque<Query<M>>,
    capacity: usize,
    warned: bool,
    notices: HashMap<AnyActorRef, Guarded<Box<MakeNotice<M>>>>,
}

impl<M: Send + 'static> InboxActor<M> {
    fn new(capacity: usize) -> Self {
        Self {
            messages: VecDeque::new(),
            queries: VecDeque::new(),
            capacity,
            warned: false,
            notices: HashMap::default(),
        }
    }

    /// Answers a query with a message that is there, or lets the query wait.
    fn serve(&mut self, mut query: Query<M>, ctx: &mut Context<M>) {
        self.queries.retain(|query| query.port.wanted());
        for index in 0..self.messages.len() {
            match query.accepts(&self.messages[index]) {
                Ok(true) => {
                    let Some(message) = self.messages.remove(index) else { return };
                    // Counted before the answer, so that the receiver of the message finds it counted.
                    ctx.core().add_held(-1);
                    ctx.row().handled(1);
                    ctx.count_beside(1);
                    if let Err(message) = query.answer(message) {
                        ctx.row().subtract_handled(1);
                        ctx.count_beside(-1);
                        ctx.core().add_held(1);
                        self.messages.insert(index, message);
                    }
                    return;
                }
                Ok(false) => {}
                Err(()) => return query.refuse(Answer::PredicatePanicked),
            }
        }
        match query.at_once {
            true => query.refuse(Answer::Nothing),
            false => self.queries.push_back(query),
        }
    }

    /// Offers a message, which is counted as handled, to the queries that wait.
    fn offer(&mut self, mut message: M, ctx: &mut Context<M>) {
        let mut index = 0;
        while let Some(query) = self.queries.get_mut(index) {
            let accepted = query.port.wanted().then(|| query.accepts(&message));
            if let Some(Ok(false)) = accepted {
                index += 1;
                continue;
            }
            let Some(query) = self.queries.remove(index) else { break };
            match accepted {
                Some(Ok(_)) => match query.answer(message) {
                    Ok(()) => return,
                    Err(refused) => message = refused,
                },
                Some(Err(())) => query.refuse(Answer::PredicatePanicked),
                None => drop_guarded(query),
            }
        }
        let row = ctx.row();
        row.subtract_handled(1);
        ctx.count_beside(-1);
        if self.messages.len() < self.capacity {
            ctx.core().add_held(1);
            self.messages.push_back(message);
        } else {
            row.dropped(1);
            ctx.core()
                .system
                .dead_letters()
                .publish_dead_letter(message, DeadLetterReason::Dropped, || ctx.path());
            self.warn_of_overflow(ctx);
        }
    }

    fn warn_of_overflow(&mut self, ctx: &Context<M>) {
        if !std::mem::replace(&mut self.warned, true) {
            let (path, capacity) = (ctx.path(), self.capacity);
            // The logger is user code.
            quietly(|| {
                report!(
                    ctx.system().core().stderr,
                    Warning,
                    log::Level::Warn,
                    "system {:?}: inbox {path} is full with {capacity} messages and drops further ones: receive more \
                     often, or give it a larger capacity",
                    ctx.system().name()
                );
            });
        }
    }
}

impl<M: Send + 'static> Actor for InboxActor<M> {
    type Message = M;

    fn receive(&mut self, message: M, ctx: &mut Context<M>) -> HandlerResult {
        self.offer(message, ctx);
        Ok(())
    }

    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<M>) -> HandlerResult {
        let Some(notice) = self.notices.remove(&terminated.actor) else { return Ok(()) };
        match guarded(|| Ok(notice.into_inner()(terminated))) {
            Ok(message) => {
                // The message enters here, and goes on like any other message.
                let row = ctx.row();
                row.sent(1);
                row.handled(1);
                ctx.count_beside(1);
                self.offer(message, ctx);
            }
            Err(failure) => drop_guarded(failure),
        }
        Ok(())
    }

    fn stopped(&mut self, ctx: &mut Context<M>) {
        let row = ctx.row();
        for message in self.messages.drain(..) {
            ctx.core().add_held(-1);
            ctx.core().system.dead_letter(row, &ctx.me().any_local(), message);
        }
    }
}

/// The reason why an inbox gave no message.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InboxError {
    /// No message came in time.
    Timeout {
        /// The time that was given.
        after: Duration,
    },
    /// The call was made on a work-stealing worker, or in a turn on a calling-thread dispatcher, whose other actors
    /// would stand still and perhaps never send the message; or on the only thread that the inbox's own actor runs on.
    WouldBlockWorker,
    /// On a `TestSystem` (feature `testkit`): no actor has anything left to do, or actors keep each other busy for
    /// ever, and no message is there.
    Stalled,
    /// The predicate panicked. The messages are where they were.
    PredicatePanicked,
    /// The inbox was stopped by its reference, or its system has shut down.
    Closed,
}

impl fmt::Display for InboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InboxError::Timeout { after } => write!(f, "no message within {after:?}: give it more time"),
            InboxError::WouldBlockWorker => f.write_str(
                "receiving from an inbox would block a work-stealing worker: let the messages go to the actor \
                 itself, or run it on a blocking or pinned dispatcher",
            ),
            InboxError::Stalled => f.write_str(
                "no message, and no turn of the test system brings one: send it, or advance the clock first",
            ),
            InboxError::PredicatePanicked => {
                f.write_str("the predicate panicked and no message was taken: mend it")
            }
            InboxError::Closed => f.write_str("the inbox has ended: it was stopped, or its system was shut down"),
        }
    }
}

impl std::error::Error for InboxError {}

debug_by_display! { InboxError }
