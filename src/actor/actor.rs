//! The [`Actor`] trait, which users implement.

use crate::actor::context::Context;
use crate::core::control::Terminated;
use crate::mailbox::kind::{Mailbox, MailboxRequirement};

use crate::core::strategy::Strategy;
use crate::failure::Failure;

/// The result of a handler or hook: `Err` fails the actor, and its parent decides what happens.
pub type HandlerResult = Result<(), Failure>;

/// State that handles messages of a single type, one at a time.
///
/// Only [`receive`](Self::receive) must be written. The hooks have Akka's defaults.
///
/// ```
/// use pointsman::prelude::*;
///
/// struct Counter {
///     count: u64,
/// }
///
/// struct Read;
/// impl Request for Read {
///     type Reply = u64;
/// }
///
/// enum CounterMsg {
///     Add(u64),
///     Read(Call<Read>),
/// }
///
/// impl From<Call<Read>> for CounterMsg {
///     fn from(call: Call<Read>) -> Self {
///         CounterMsg::Read(call)
///     }
/// }
///
/// impl Actor for Counter {
///     type Message = CounterMsg;
///     fn receive(&mut self, message: CounterMsg, _: &mut Context<CounterMsg>) -> HandlerResult {
///         match message {
///             CounterMsg::Add(more) => self.count += more,
///             CounterMsg::Read(call) => call.answer(|Read| self.count),
///         }
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("sums").build()?;
/// let counter = system.actor("counter").spawn(|| Counter { count: 0 })?;
/// counter.tell(CounterMsg::Add(40));
/// counter.tell(CounterMsg::Add(2));
/// assert_eq!(counter.ask(Read).wait()?, 42);
/// # Ok(())
/// # }
/// ```
///
/// # Delivery
///
/// Messages of one sender are handled in the order in which it sent them. A message is handled at most once; a message
/// that is not handled becomes a dead letter, counted in the [`Ledger`](crate::Ledger).
///
/// # Panics
///
/// A panic in a handler, hook or recipe is a failure of the actor. A panic in a destructor is caught and has no further
/// effect: the destructor of the state, of the recipe, or of a message in a mailbox that is emptied. Rust sets two
/// limits. A destructor that panics while its thread unwinds from another panic ends the process, for example when a
/// handler panics and then the message that it holds panics in its `drop`. A program that is built to abort on panics
/// ends with the first panic.
pub trait Actor: Send + Sized + 'static {
    /// The type of message that the actor handles. The only demand is that a message can go to another thread.
    type Message: Send + 'static;

    /// Handles one message.
    ///
    /// # Errors
    ///
    /// An error, like a panic, fails the actor: see [`Strategy`]. The message is not handled again.
    fn receive(&mut self, message: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult;

    /// Runs before the first message of a new actor.
    ///
    /// # Errors
    ///
    /// An error is a [`FailureKind::Initialization`](crate::FailureKind), which stops the actor by default.
    fn started(&mut self, ctx: &mut Context<Self::Message>) -> HandlerResult {
        let _ = ctx;
        Ok(())
    }

    /// Runs when the actor has stopped: no message is handled after it. Its children have ended already.
    fn stopped(&mut self, ctx: &mut Context<Self::Message>) {
        let _ = ctx;
    }

    /// Runs on the old state before a restart. By default it calls [`default_restarting`](Self::default_restarting),
    /// which stops all children and calls [`stopped`](Self::stopped).
    ///
    /// The new state is made when every child that has been told to stop by then has ended, so the names of these
    /// children are free. The order to stop may come from this hook or from earlier, for all children [at
    /// once](Context::stop_children) or for a [single child](Context::stop_child), and from this actor or from another
    /// ([`AnyActorRef::stop`](crate::AnyActorRef::stop)). Children that an overriding hook keeps are restarted with
    /// their parent. A child that was only [poisoned](crate::AnyActorRef::poison) is kept: it is suspended, and has
    /// messages to handle before it ends.
    ///
    /// # Errors
    ///
    /// An error or panic here changes nothing: the restart goes on.
    fn restarting(&mut self, failure: &Failure, ctx: &mut Context<Self::Message>) -> HandlerResult {
        self.default_restarting(failure, ctx)
    }

    /// The default behaviour of [`restarting`](Self::restarting), for a hook that overrides `restarting` and wants the
    /// default, too. Do not override this function: the engine calls only `restarting`.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Till {
    ///     sold: u32,
    /// }
    ///
    /// impl Actor for Till {
    ///     type Message = u32;
    ///     fn receive(&mut self, cents: u32, _: &mut Context<u32>) -> HandlerResult {
    ///         self.sold += cents;
    ///         Ok(())
    ///     }
    ///     fn restarting(&mut self, failure: &Failure, ctx: &mut Context<u32>) -> HandlerResult {
    ///         println!("{failure}: {} are forgotten", self.sold);
    ///         self.default_restarting(failure, ctx)
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// None. It returns what `restarting` does.
    fn default_restarting(&mut self, failure: &Failure, ctx: &mut Context<Self::Message>) -> HandlerResult {
        let _ = failure;
        ctx.stop_children();
        self.stopped(ctx);
        Ok(())
    }

    /// Runs on the new state after a restart; by default it calls [`started`](Self::started).
    ///
    /// # Errors
    ///
    /// An error is a failure of initialization, as in [`started`](Self::started).
    fn restarted(&mut self, failure: &Failure, ctx: &mut Context<Self::Message>) -> HandlerResult {
        let _ = failure;
        self.started(ctx)
    }

    /// Runs when an actor that this actor [watches](Context::watch) has ended. By default the notice is a failure (a
    /// death pact), which stops this actor too.
    ///
    /// # Errors
    ///
    /// As in [`receive`](Self::receive).
    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Self::Message>) -> HandlerResult {
        let _ = ctx;
        Err(Failure::death_pact(terminated.actor.path().as_str()))
    }

    /// Returns whether this message ends the idle time that [`Context::set_receive_timeout`] measures. By default every
    /// message does. The engine asks only while a receive timeout is set, before the message is handled.
    fn influences_receive_timeout(&self, message: &Self::Message) -> bool {
        let _ = message;
        true
    }

    /// The mailbox of an actor of this type for which neither its builder nor its dispatcher has chosen one. The engine
    /// calls this function when it creates an actor.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// enum Job {
    ///     Cancel(u64),
    ///     Run(u64),
    /// }
    ///
    /// struct Worker;
    /// impl Actor for Worker {
    ///     type Message = Job;
    ///     fn receive(&mut self, job: Job, _: &mut Context<Job>) -> HandlerResult {
    ///         // ...
    ///         # let _ = job;
    ///         Ok(())
    ///     }
    ///     fn mailbox() -> Option<Mailbox> {
    ///         Some(Mailbox::control_aware(|job: &Job| matches!(job, Job::Cancel(_))))
    ///     }
    /// }
    /// # let _ = (Job::Cancel(0), Job::Run(0));
    /// ```
    fn mailbox() -> Option<Mailbox> {
        None
    }

    /// The properties that this actor demands of its mailbox. A mailbox without them is an error when the actor is
    /// created, whether the builder, the dispatcher or the actor chose it. Without a choice, the engine [may
    /// make](MailboxRequirement) a mailbox that has them.
    fn mailbox_requirement() -> Option<MailboxRequirement> {
        None
    }

    /// The strategy by which this actor judges the failures of its children. The engine asks at each failure.
    fn supervision(&self) -> Strategy {
        Strategy::default()
    }
}
