//! A probe: an actor whose messages the test reads.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::{Control, Terminated};
use crate::core::system::SystemRef;
use crate::dispatch::stepping::Reached;
use crate::sync::{Condvar, Mutex, lock};
use crate::testkit::seeds::Again;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

/// The longest wait of a probe on a system with threads: longer than anything takes, and reached only by a test that
/// fails.
const LIMIT: Duration = Duration::from_secs(30);

/// An actor that keeps the messages that it gets, for the test to read in order.
///
/// Code under test gets [`actor_ref`](Self::actor_ref) where it wants a recipient; the test then says which messages
/// must have come. Messages and notices of watched actors are read in the order in which they came: an unexpected next
/// event is a failure.
///
/// On a [`TestSystem`](crate::testkit::TestSystem) the methods run turns until an event has come or no actor has
/// anything left to do; they never wait. On a system with threads they wait, up to 30 seconds of the machine's time.
///
/// There is no last sender to reply to: a sender that wants an answer sends a port along. So a probe of `Call<Q>`
/// answers by the call that it [takes](Self::take):
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::testkit::{Probe, TestSystem};
///
/// #[derive(Debug)]
/// struct Price(&'static str);
/// impl Request for Price {
///     type Reply = u32;
/// }
///
/// let system = TestSystem::new();
/// let shop: Probe<Call<Price>> = system.probe();
/// let price = shop.actor_ref().ask(Price("apples"));
/// shop.take().answer(|Price(article)| article.len() as u32);
/// assert_eq!(price.wait(), Ok(6));
/// system.finish();
/// ```
///
/// A probe is a child of `/system`, so that it may be left running, and stops when it is dropped.
pub struct Probe<M: Send + 'static> {
    actor: ActorRef<M>,
    system: SystemRef,
    inbox: StdArc<Inbox<M>>,
}

struct Inbox<M> {
    events: Mutex<VecDeque<Event<M>>>,
    /// Signalled with each event.
    came: Condvar,
}

enum Event<M> {
    Message(M),
    Terminated(Terminated),
}

/// The actor behind a probe.
struct ProbeActor<M>(StdArc<Inbox<M>>);

impl<M> Inbox<M> {
    fn put(&self, event: Event<M>) {
        lock(&self.events).push_back(event);
        self.came.notify_all();
    }
}

impl<M: Send + 'static> Actor for ProbeActor<M> {
    type Message = M;

    fn receive(&mut self, message: M, _: &mut Context<M>) -> HandlerResult {
        self.0.put(Event::Message(message));
        Ok(())
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<M>) -> HandlerResult {
        self.0.put(Event::Terminated(terminated));
        Ok(())
    }
}

impl<M: Debug> Debug for Event<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Message(message) => message.fmt(f),
            Event::Terminated(ended) => write!(f, "the end of {}", ended.actor.path()),
        }
    }
}

impl<M: Send + 'static> Probe<M> {
    /// Makes a probe in this system: a [`TestSystem`](crate::testkit::TestSystem) or a system with threads.
    ///
    /// # Panics
    ///
    /// If the system has shut down.
    #[track_caller]
    pub fn on(system: &SystemRef) -> Self {
        let inbox = StdArc::new(Inbox { events: Mutex::default(), came: Condvar::new() });
        let kept = inbox.clone();
        // Internal: a mailbox that is meant for the actors under test could refuse the messages that the probe is to
        // keep.
        let builder = ActorBuilder::new(system.core().system_guardian(), None).internal();
        let actor = builder.spawn(move || ProbeActor(kept.clone()));
        let actor = actor.unwrap_or_else(|error| panic!("cannot make a probe: {error}"));
        Self { actor, system: system.clone(), inbox }
    }

    /// Returns the reference that code under test sends to.
    pub fn actor_ref(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// Watches an actor: its end is an event for [`expect_terminated`](Self::expect_terminated).
    ///
    /// # Panics
    ///
    /// If there is no actor behind the reference, or the system has shut down.
    #[track_caller]
    pub fn watch(&self, actor: impl Into<Option<AnyActorRef>>) {
        let watched: Option<AnyActorRef> = actor.into();
        let sent = watched.is_some_and(|actor| self.me().send_system(Control::Adopt(actor)).is_ok());
        assert!(
            sent,
            "nothing to watch: there is no actor behind the reference, or the system has shut down"
        );
    }

    /// Returns the next message, whatever it is.
    ///
    /// # Panics
    ///
    /// If no message comes, or the end of a watched actor does.
    #[track_caller]
    pub fn take(&self) -> M {
        match self.next() {
            Ok(Event::Message(message)) => message,
            Ok(Event::Terminated(ended)) => {
                self.fail("a message", format_args!("the end of {}", ended.actor.path()))
            }
            Err(nothing) => self.fail("a message", nothing),
        }
    }

    /// Checks that the next event is the end of this actor, which is [watched](Self::watch), and returns the notice.
    /// Its [`existence_confirmed`](Terminated::existence_confirmed) is false where the actor had ended before the watch
    /// began. Akka's `expectTerminated` returns it too.
    ///
    /// # Panics
    ///
    /// If something else comes next, or nothing.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::testkit::{Probe, TestSystem};
    ///
    /// struct Clerk;
    /// impl Actor for Clerk {
    ///     type Message = ();
    ///     fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult { Ok(()) }
    /// }
    ///
    /// let system = TestSystem::new();
    /// let clerk = system.spawn(|| Clerk).unwrap();
    /// let (early, late): (Probe<()>, Probe<()>) = (system.probe(), system.probe());
    /// early.watch(&clerk);
    /// system.run_until_idle();
    /// clerk.stop();
    /// assert!(early.expect_terminated(&clerk).existence_confirmed);
    /// late.watch(&clerk);
    /// assert!(!late.expect_terminated(&clerk).existence_confirmed);
    /// system.finish();
    /// ```
    #[track_caller]
    pub fn expect_terminated(&self, actor: impl Into<Option<AnyActorRef>>) -> Terminated {
        let Some(actor) = actor.into() else {
            panic!("nothing to expect the end of: there is no actor behind the reference")
        };
        let wanted = format_args!("the end of {}#{}", actor.path(), actor.uid()).to_string();
        match self.next() {
            Ok(Event::Terminated(ended)) if ended.actor == actor => ended,
            Ok(Event::Terminated(Terminated { actor: other, .. })) => {
                self.fail(wanted, format_args!("the end of {}#{}", other.path(), other.uid()))
            }
            // No code of messages runs here, such as their printing.
            Ok(Event::Message(_)) => {
                self.fail(wanted, format_args!("a message of type {}", std::any::type_name::<M>()))
            }
            Err(nothing) => self.fail(wanted, nothing),
        }
    }

    /// Returns the next event, or the reason why there is none.
    fn next(&self) -> Result<Event<M>, &'static str> {
        let reached = self.system.core().run_turns(&mut || !lock(&self.inbox.events).is_empty());
        let deadline = (reached == Reached::Elsewhere).then(|| Instant::now() + LIMIT);
        let mut events = lock(&self.inbox.events);
        loop {
            if let Some(event) = events.pop_front() {
                return Ok(event);
            }
            let left = deadline.map_or(Duration::ZERO, |it| it.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(match reached {
                    Reached::Livelock => "nothing, though actors keep each other busy",
                    Reached::Elsewhere => "nothing within 30 s",
                    _ => "nothing, and no actor has anything left to do",
                });
            }
            let waited = self.inbox.came.wait_timeout(events, left);
            events = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    fn me(&self) -> AnyActorRef {
        self.actor.any_local()
    }

    #[track_caller]
    fn fail(&self, wanted: impl fmt::Display, came: impl fmt::Display) -> ! {
        let core = self.system.core();
        match core.stepper() {
            Some(stepper) => panic!("expected {wanted}, came {came} ({})", Again(stepper.seed())),
            None => panic!("expected {wanted}, came {came}"),
        }
    }
}

impl<M: Debug + Send + 'static> Probe<M> {
    /// Checks that this message comes next.
    ///
    /// # Panics
    ///
    /// If something else comes next, or nothing.
    #[track_caller]
    pub fn expect(&self, message: M)
    where
        M: PartialEq,
    {
        match self.next() {
            Ok(Event::Message(came)) if came == message => {}
            Ok(other) => self.fail(format_args!("{message:?}"), format_args!("{other:?}")),
            Err(nothing) => self.fail(format_args!("{message:?}"), nothing),
        }
    }

    /// Checks that these messages come next, each once and no other between them, in any order. Returns them in the
    /// order in which they came. Akka's `expectMsgAllOf`.
    ///
    /// # Panics
    ///
    /// If something else comes before all of them are there, or nothing. The text names the messages that have come and
    /// those that are missing.
    ///
    /// ```
    /// use pointsman::testkit::{Probe, TestSystem};
    ///
    /// let system = TestSystem::new();
    /// let probe: Probe<u32> = system.probe();
    /// for number in [2u32, 1, 2, 9] {
    ///     probe.actor_ref().tell(number);
    /// }
    /// assert_eq!(probe.expect_in_any_order([1, 2, 2]), [2, 1, 2]);
    /// probe.expect(9);
    /// system.finish();
    /// ```
    #[track_caller]
    pub fn expect_in_any_order(&self, messages: impl IntoIterator<Item = M>) -> Vec<M>
    where
        M: PartialEq,
    {
        let mut missing: Vec<M> = messages.into_iter().collect();
        let mut came = Vec::new();
        while !missing.is_empty() {
            let other = match self.next() {
                Ok(Event::Message(message)) => match missing.iter().position(|wanted| *wanted == message) {
                    Some(index) => {
                        missing.remove(index);
                        came.push(message);
                        continue;
                    }
                    None => format!("{message:?}"),
                },
                Ok(terminated) => format!("{terminated:?}"),
                Err(nothing) => nothing.to_owned(),
            };
            self.fail(format_args!("{missing:?} in any order"), format_args!("{other}, after {came:?}"));
        }
        came
    }

    /// Checks that a message comes next for which `is_wanted` returns true, and returns it.
    ///
    /// # Panics
    ///
    /// If something else comes next, or nothing.
    #[track_caller]
    pub fn expect_matching(&self, is_wanted: impl FnOnce(&M) -> bool) -> M {
        match self.next() {
            Ok(Event::Message(came)) if is_wanted(&came) => came,
            Ok(other) => self.fail("a message that matches", format_args!("{other:?}")),
            Err(nothing) => self.fail("a message that matches", nothing),
        }
    }

    /// Checks that no unread message has come. On a [`TestSystem`](crate::testkit::TestSystem) that holds until time
    /// moves or the test sends something. On a system with threads it is a look at the messages so far, and says
    /// nothing about later messages: first wait for an event that comes after them.
    ///
    /// # Panics
    ///
    /// If a message has come; or if actors keep each other busy, so that a message may yet come.
    #[track_caller]
    pub fn expect_none(&self) {
        let reached = self.system.core().run_turns(&mut || false);
        let came = lock(&self.inbox.events).pop_front();
        if let Some(came) = came {
            self.fail("nothing", format_args!("{came:?}"));
        }
        if reached == Reached::Livelock {
            self.fail("nothing", "nothing yet, though actors keep each other busy");
        }
    }

    /// Reads messages until one is taken, and returns it. `judge` takes a message by `Ok(true)`, and skips it by
    /// `Ok(false)`. An error says that the message must not come, and why: the test fails.
    ///
    /// # Panics
    ///
    /// If `judge` says so, if no more messages come, or the end of a watched actor does. The text names the messages
    /// that were skipped before.
    ///
    /// ```
    /// use pointsman::testkit::{Probe, TestSystem};
    ///
    /// let system = TestSystem::new();
    /// let probe: Probe<u32> = system.probe();
    /// for number in [3u32, 1, 40, 5] {
    ///     probe.actor_ref().tell(number);
    /// }
    /// let large = probe.fish_for(|number| match number {
    ///     0 => Err("no zeros".into()),
    ///     number => Ok(*number >= 10),
    /// });
    /// assert_eq!(large, 40);
    /// probe.expect(5);
    /// system.finish();
    /// ```
    #[doc(alias = "FishOutcome")]
    #[track_caller]
    pub fn fish_for(&self, mut judge: impl FnMut(&M) -> Result<bool, String>) -> M {
        let mut skipped = Vec::new();
        loop {
            let event = self.next();
            let came = match event {
                Ok(Event::Message(message)) => match judge(&message) {
                    Ok(true) => return message,
                    Ok(false) => {
                        skipped.push(message);
                        continue;
                    }
                    Err(reason) => format!("{message:?}: {reason}"),
                },
                Ok(terminated) => format!("{terminated:?}"),
                Err(nothing) => nothing.to_owned(),
            };
            self.fail("a message to take", format_args!("{came}, after {skipped:?}"));
        }
    }
}

impl<M: Send + 'static> Drop for Probe<M> {
    fn drop(&mut self) {
        self.actor.stop();
    }
}

impl<M: Send + 'static> Debug for Probe<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("path", &self.actor.path()).finish_non_exhaustive()
    }
}
