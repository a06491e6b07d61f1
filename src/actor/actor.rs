//! The [`Actor`] trait: what a user writes.

use crate::actor::context::Context;
use crate::core::control::Terminated;
use crate::mailbox::kind::{Mailbox, MailboxRequirement};

use crate::core::strategy::Strategy;
use crate::failure::Failure;

/// What a handler or hook returns: `Err` fails the actor, and its parent decides what happens.
pub type HandlerResult = Result<(), Failure>;

/// State that handles messages of one type, one at a time.
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
/// Messages of one sender are handled in the order in which it sent them. A message is handled at most
/// once; one that is not handled becomes a dead letter, counted in the [`Ledger`](crate::Ledger).
///
/// # Panics
///
/// A panic in a handler, hook or recipe is a failure of the actor. A panic in a destructor, be it of the
/// state, of a message in a mailbox that is emptied, or of the recipe, goes no further. Two limits are
/// Rust's: a destructor that panics while its thread unwinds from another panic ends the process, as when a
/// handler panics and then the message that it holds panics in its `drop`; and a program that is built to
/// abort on panics ends with the first one.
pub trait Actor: Send + Sized + 'static {
    /// What it handles. Nothing is demanded of it but that it can go to another thread.
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

    /// Runs on the old state before a restart. By default it does what
    /// [`default_restarting`](Self::default_restarting) does: it stops all children and calls [`stopped`](Self::stopped).
    ///
    /// The new state is made once every child has ended that has been told to stop by then: here or earlier, all
    /// [at once](Context::stop_children) or [one by one](Context::stop_child), by this actor or by others
    /// ([`AnyActorRef::stop`](crate::AnyActorRef::stop)). So their names are free. Children that an overriding hook keeps are restarted with their
    /// parent. A child that was only [poisoned](crate::AnyActorRef::poison) is kept: it is suspended, and has messages to handle
    /// before it ends.
    ///
    /// # Errors
    ///
    /// An error or panic here changes nothing: the restart goes on.
    fn restarting(&mut self, failure: &Failure, ctx: &mut Context<Self::Message>) -> HandlerResult {
        self.default_restarting(failure, ctx)
    }

    /// Does what [`restarting`](Self::restarting) does by default, for a hook that overrides it and wants that, too.
    /// There is no use in overriding this one: only `restarting` is called.
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

    /// Runs when an actor that this one [watches](Context::watch) has ended. By default that is a failure
    /// (a death pact), which stops this actor too.
    ///
    /// # Errors
    ///
    /// As in [`receive`](Self::receive).
    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Self::Message>) -> HandlerResult {
        let _ = ctx;
        Err(Failure::death_pact(terminated.actor.path().as_str()))
    }

    /// Whether this message ends the idle time that [`Context::set_receive_timeout`] measures. By default every
    /// message does. Asked only while a receive timeout is set, before the message is handled.
    fn influences_receive_timeout(&self, message: &Self::Message) -> bool {
        let _ = message;
        true
    }

    /// The mailbox of an actor of this type for which neither its builder nor its dispatcher has chosen one.
    /// Asked when one is created.
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

    /// What this actor demands of its mailbox, whoever chooses it; a mailbox that is not so is an error when the
    /// actor is created. Where nobody chooses one, it [may be made](MailboxRequirement) as it is demanded.
    fn mailbox_requirement() -> Option<MailboxRequirement> {
        None
    }

    /// How this actor judges the failures of its children. Asked at each failure.
    fn supervision(&self) -> Strategy {
        Strategy::default()
    }
}
