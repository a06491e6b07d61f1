//! The backoff supervisor: it has a single child, and creates the child anew after a delay when the child has ended or
//! failed.
//!
//! The reference belongs to no actor. A message goes from the sender's thread straight into the mailbox of the present
//! child, as through a router. So the message is a single delivery, and costs a single read of the published child. The
//! supervisor is an actor that has that child, watches it, waits, and publishes the next child.
//!
//! The creator of the supervisor makes the first child, before the supervisor's first turn: the reference is good at
//! once, and the order of messages is that of the child's mailbox.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::recipe::{ByContext, IntoActor};
use crate::actor::spawn::spawn_held;
use crate::actor::timer_table::TimerKey;
use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Terminated;
use crate::core::deferred_send::{are_deferred, not_put_off, put_off_as_before};
use crate::core::error::{SendError, SpawnError};
use crate::core::pending_send::Watch;
use crate::core::recipient::{Custom, DeliveryStatus, OwnRecipient};
use crate::core::restart_delay::RestartDelay;
use crate::core::strategy::{Directive, RestartHistory, RestartLimit, Strategy};
use crate::core::system::SystemRef;
use crate::settings::setting_error::SettingError;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::util::panic::Guarded;
use crate::util::reclaim;
use crate::util::reclaim::Published;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// Describes a supervisor that creates its only child anew after a delay that grows; see
/// [`ActorBuilder::spawn_backoff`].
///
/// The n-th creation in a row, from 0, waits for `min(max, min·2ⁿ)`, and up to the [`jitter`](Self::jitter)
/// longer. When the child has been up for [a while](Self::reset_after), n is 0 again. Constraints are checked
/// by `spawn_backoff`: `min` is above 0, `max` not below it, the jitter between 0 and 1, and the reset
/// between `min` and `max`.
///
/// The rules are those of Akka's backoff supervisor.
#[must_use = "nothing is created before `spawn_backoff`"]
pub struct Backoff<M> {
    trigger: Trigger,
    delay: RestartDelay,
    jitter: f64,
    reset: Reset,
    limit: RestartLimit,
    strategy: Strategy,
    child_name: String,
    configure: Option<Box<Configure>>,
    without_child: Option<Box<WithoutChild<M>>>,
    is_last: Option<Box<IsLast<M>>>,
}

type Configure = dyn Fn(ActorBuilder) -> ActorBuilder + Send + Sync;
type WithoutChild<M> = dyn Fn(M) + Send + Sync;
type IsLast<M> = dyn Fn(&M) -> bool + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Stop,
    Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reset {
    AfterMin,
    After(Duration),
    Manual,
}

impl<M: Send + 'static> Backoff<M> {
    /// Creates the child anew whenever it has ended, for whatever reason.
    ///
    /// Its failures are judged by [`supervision`](Self::supervision) as any child's: by the default strategy most of
    /// them restart it in place and without delay. With [`Strategy::stop`] each failure is an end, too.
    pub fn on_stop(min: Duration, max: Duration) -> Self {
        Self::new(Trigger::Stop, min, max)
    }

    /// Creates the child anew when it has failed and the directive of [`supervision`](Self::supervision) is a restart:
    /// instead, the child is stopped, and made again after the delay. A child that ends otherwise ends the supervisor.
    ///
    /// By the default strategy, a child that fails while it is created stops. To wait after such a failure, set
    /// `.supervision(Strategy::decide(|_| Directive::Restart))`.
    pub fn on_failure(min: Duration, max: Duration) -> Self {
        Self::new(Trigger::Failure, min, max)
    }

    fn new(trigger: Trigger, min: Duration, max: Duration) -> Self {
        Self {
            trigger,
            delay: RestartDelay::doubling(min, max),
            jitter: 0.0,
            reset: Reset::AfterMin,
            limit: RestartLimit::default(),
            strategy: Strategy::default(),
            child_name: "child".to_owned(),
            configure: None,
            without_child: None,
            is_last: None,
        }
    }

    /// Lengthens each delay by a random part of itself, up to `factor`, so that many children that fail together are
    /// not created together. The default is 0; 0.2 changes 10 s to a value between 10 and 12 s, which may be above
    /// `max`. Derives from the system's seed.
    pub fn jitter(mut self, factor: f64) -> Self {
        self.jitter = factor;
        self
    }

    /// Forgets the creations so far, for the delay and for the [limit](Self::max_restarts), when the child has been up
    /// for `quiet` without a break. The default is the shortest delay.
    pub fn reset_after(mut self, quiet: Duration) -> Self {
        self.reset = Reset::After(quiet);
        self
    }

    /// Forgets the creations so far only when [`BackoffSupervisor::reset`] says so.
    pub fn manual_reset(mut self) -> Self {
        self.reset = Reset::Manual;
        self
    }

    /// Creates the child anew at most `count` times until the creations are [forgotten](Self::reset_after), or in each
    /// window given by [`within`](Self::within); beyond, the supervisor stops. There is no limit by default.
    #[doc(alias = "limit")]
    pub fn max_restarts(mut self, count: u32) -> Self {
        self.limit.count = Some(count);
        self
    }

    /// Counts creations in windows of this length, as [`Strategy::within`].
    pub fn within(mut self, window: Duration) -> Self {
        self.limit.window = Some(window);
        self
    }

    /// Sets the strategy for failures of the child. With [`on_failure`](Self::on_failure), only the directive of the
    /// strategy counts, since the child never restarts in place; its limit is [`max_restarts`](Self::max_restarts).
    pub fn supervision(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets the child's name, `child` by default.
    pub fn child_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.child_name);
        self
    }

    /// Changes how each child is made: its mailbox, its dispatcher. Its strategy is [`supervision`](Self::supervision).
    /// Several calls add up, in their order.
    pub fn child(mut self, configure: impl Fn(ActorBuilder) -> ActorBuilder + Send + Sync + 'static) -> Self {
        let (before, configure) = (self.configure.take(), Guarded::new(configure));
        self.configure = Some(Box::new(move |child| {
            let configure = &*configure;
            configure(match &before {
                Some(before) => before(child),
                None => child,
            })
        }));
        self
    }

    /// Handles messages that come while there is no child, on the sender's thread; a reply to a request, fixed or not,
    /// is given here. By default such messages are not accepted: they are dead letters of `tell`, and `try_tell` hands
    /// them back.
    ///
    /// The messages in the child's mailbox at its end are dead letters in any case.
    ///
    /// When `handle` panics, the message is a dead letter, and the panic unwinds to the sender.
    pub fn without_child(mut self, handle: impl Fn(M) + Send + Sync + 'static) -> Self {
        let handle = Guarded::new(handle);
        self.without_child = Some(Box::new(move |message| {
            let handle = &*handle;
            handle(message);
        }));
        self
    }

    /// Ends the supervisor with its child after an accepted message for which `is_last` is true: the supervisor does
    /// not make the child anew, and the child must stop itself. If there is no child the supervisor ends at once, and
    /// the message is a dead letter unless [`without_child`](Self::without_child) takes it. `is_last` is called for
    /// each message on the sender's thread.
    pub fn last_message(mut self, is_last: impl Fn(&M) -> bool + Send + Sync + 'static) -> Self {
        let is_last = Guarded::new(is_last);
        self.is_last = Some(Box::new(move |message| is_last(message)));
        self
    }

    fn check(&self) -> Result<(), SettingError> {
        let RestartDelay { min, max, .. } = self.delay;
        if min.is_zero() {
            return Err(SettingError::new("shortest delay", 0, "above 0"));
        }
        self.delay.check("longest delay")?;
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(SettingError::new("jitter", self.jitter, "between 0 and 1"));
        }
        match self.reset {
            Reset::After(after) if !(min..=max).contains(&after) => Err(SettingError::new(
                "reset after",
                format_args!("{after:?}"),
                format!("between {min:?} and {max:?}, or manual"),
            )),
            _ => Ok(()),
        }
    }

    fn quiet(&self) -> Option<Duration> {
        match self.reset {
            Reset::AfterMin => Some(self.delay.min),
            Reset::After(quiet) => Some(quiet),
            Reset::Manual => None,
        }
    }
}

/// Lengthens a delay by a part of itself; `random` is from 0 to 1. A sum that overflows is `longest`.
fn with_jitter(delay: Duration, jitter: f64, random: f64, longest: Duration) -> Duration {
    let more = Duration::try_from_secs_f64(delay.as_secs_f64() * jitter * random);
    more.ok().and_then(|more| delay.checked_add(more)).unwrap_or(longest)
}

impl<M> fmt::Debug for Backoff<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backoff")
            .field("trigger", &self.trigger)
            .field("min", &self.delay.min)
            .field("max", &self.delay.max)
            .field("jitter", &self.jitter)
            .field("reset", &self.reset)
            .field("limit", &self.limit)
            .field("child_name", &self.child_name)
            .finish_non_exhaustive()
    }
}

/// The state that supervisor, references and handle share.
struct Shared<M> {
    settings: Backoff<M>,
    child: Published<Option<ActorRef<M>>>,
    /// Creations since the last reset, the first one left out.
    restarts: AtomicU32,
    /// The number of last messages that were sent.
    last_sent: AtomicU32,
    /// The child was stopped where its strategy said restart.
    failed: AtomicBool,
}

impl<M: Send + 'static> Shared<M> {
    fn child(&self) -> Option<ActorRef<M>> {
        self.child.read(&reclaim::section()).clone()
    }

    fn finished(&self) -> bool {
        // Ordering: Relaxed; it was written before the message was pushed that ended the child. The mailbox carries it
        // to the child's turn, and the notice of its end from there to the supervisor's.
        self.last_sent.load(Ordering::Relaxed) > 0
    }

    /// Returns the strategy of the settings. With `on_failure` a restart becomes a stop that a creation follows.
    fn strategy(shared: &StdArc<Self>) -> Strategy {
        let inner = shared.settings.strategy.clone();
        if shared.settings.trigger == Trigger::Stop {
            return inner;
        }
        let (shared, quiet) = (shared.clone(), inner.is_quiet());
        let outer = Strategy::decide_for(move |child, failure| match inner.directive(child, failure) {
            Directive::Restart => {
                // Ordering: Relaxed; deciders and notices run in the supervisor's own turns.
                shared.failed.store(true, Ordering::Relaxed);
                Directive::Stop
            }
            other => other,
        });
        if quiet { outer.quiet() } else { outer }
    }
}

/// Makes a child of the given supervisor.
type Make<M> = dyn Fn(AnyActorRef) -> Result<ActorRef<M>, SpawnError> + Send + Sync;

/// The messages to the supervisor, from itself and its handle.
enum Manage {
    Create,
    Reset,
}

struct Supervisor<M: Send + 'static> {
    shared: StdArc<Shared<M>>,
    make: StdArc<Make<M>>,
    /// The first state after the creation, which finds the first child made already.
    first: bool,
    child: Option<ActorRef<M>>,
    /// Creations since the last reset: the exponent.
    count: u32,
    /// The creations, counted against the limit.
    history: RestartHistory,
    quiet: Option<TimerKey>,
    random: SmallRng,
}

impl<M: Send + 'static> Supervisor<M> {
    fn has(&mut self, child: ActorRef<M>, ctx: &mut Context<Manage>) -> HandlerResult {
        ctx.watch(&child)?;
        self.quiet = self.shared.settings.quiet().map(|quiet| ctx.after(quiet, Manage::Reset));
        self.child = Some(child);
        Ok(())
    }

    fn create(&mut self, ctx: &mut Context<Manage>) -> HandlerResult {
        if self.shared.finished() {
            ctx.stop();
            return Ok(());
        }
        let child = (self.make)(ctx.me().any_local())?;
        self.has(child.clone(), ctx)?;
        self.shared.child.replace(Some(child));
        Ok(())
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        // Ordering: Release; pairs with the Acquire load in `BackoffSupervisor::restarts`. A thread that sees that a
        // child is to come finds its timer set, and not the child before it.
        self.shared.restarts.store(count, Ordering::Release);
    }
}

impl<M: Send + 'static> Actor for Supervisor<M> {
    type Message = Manage;

    fn started(&mut self, ctx: &mut Context<Manage>) -> HandlerResult {
        self.set_count(0);
        // A restart of this actor has settled it, and the notice of that child's end does not come any more. Ordering:
        // Relaxed; see `strategy`.
        self.shared.failed.store(false, Ordering::Relaxed);
        match self.shared.child() {
            Some(child) if self.first => self.has(child, ctx),
            _ => self.create(ctx),
        }
    }

    fn receive(&mut self, message: Manage, ctx: &mut Context<Manage>) -> HandlerResult {
        match message {
            Manage::Create => self.create(ctx),
            Manage::Reset => {
                self.set_count(0);
                self.history = RestartHistory::default();
                Ok(())
            }
        }
    }

    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Manage>) -> HandlerResult {
        if self.child.as_ref().and_then(ActorRef::untyped) != Some(terminated.actor) {
            return Ok(());
        }
        self.child = None;
        self.shared.child.replace(None);
        if let Some(quiet) = self.quiet.take() {
            ctx.timers().cancel(quiet);
        }
        // Ordering: Relaxed in both; see `strategy`.
        let failed = self.shared.failed.load(Ordering::Relaxed);
        self.shared.failed.store(false, Ordering::Relaxed);
        let settings = &self.shared.settings;
        let again = failed || settings.trigger == Trigger::Stop;
        if !again || self.shared.finished() || !self.history.allows(settings.limit, ctx.now()) {
            ctx.stop();
            return Ok(());
        }
        let random = self.random.random();
        let delay = settings.delay.after(self.count);
        ctx.after(with_jitter(delay, settings.jitter, random, settings.delay.max), Manage::Create);
        self.set_count(self.count.saturating_add(1));
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Manage>) {
        self.shared.child.replace(None);
    }
}

/// The recipient behind the reference.
struct ToChild<M: Send + 'static> {
    shared: StdArc<Shared<M>>,
    supervisor: ActorRef<Manage>,
}

impl<M: Send + 'static> ToChild<M> {
    fn to_child(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let section = reclaim::section();
        match self.shared.child.read(&section) {
            Some(child) => child.forward_counted(message),
            None => Err(SendError::Closed(message)),
        }
    }

    /// As [`to_child`](Self::to_child), for a last message that is counted as sent.
    #[cold]
    fn last_to_child(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        if !are_deferred() {
            return self.to_child(message);
        }
        let (outcome, put_off) = put_off_as_before(|| self.to_child(message));
        if let Some(put_off) = put_off {
            let last = Last(self.shared.clone());
            last.is_not_accepted();
            put_off.watched_by(last).keep();
        }
        outcome
    }
}

/// A last message that waits for room at the child.
struct Last<M>(StdArc<Shared<M>>);

impl<M: Send + 'static> Watch for Last<M> {
    fn tries(&self) {
        // Ordering: Relaxed; see `finished`.
        self.0.last_sent.fetch_add(1, Ordering::Relaxed);
    }

    fn is_not_accepted(&self) {
        // Ordering: Relaxed; it was not sent.
        self.0.last_sent.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<M: Send + 'static> OwnRecipient<M> for ToChild<M> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let shared = &*self.shared;
        let is_last = shared.settings.is_last.as_ref();
        let is_last = is_last.is_some_and(|is_last| not_put_off(|| is_last(&message)));
        if is_last {
            // Ordering: Relaxed; see `finished`.
            shared.last_sent.fetch_add(1, Ordering::Relaxed);
        }
        let outcome = if is_last { self.last_to_child(message) } else { self.to_child(message) };
        let message = match outcome {
            // There is no child, or it is about to go.
            Err(SendError::Closed(message)) => message,
            Ok(accepted) => return Ok(accepted),
            Err(refused) => {
                if is_last {
                    // Ordering: Relaxed; a message that is handed back was not sent.
                    shared.last_sent.fetch_sub(1, Ordering::Relaxed);
                }
                return Err(refused);
            }
        };
        // Looks before the supervisor is told to stop, which it may do at once.
        let handle = shared.settings.without_child.as_ref().filter(|_| !self.supervisor.is_closed());
        if is_last {
            self.supervisor.stop();
        }
        match handle {
            Some(handle) => {
                not_put_off(|| handle(message));
                Ok(DeliveryStatus::Handled)
            }
            None => Err(SendError::Closed(message)),
        }
    }

    fn is_closed(&self) -> bool {
        self.supervisor.is_closed()
    }

    fn passes_on(&self) -> bool {
        true
    }

    fn load(&self) -> RecipientLoad {
        if self.supervisor.is_closed() {
            return RecipientLoad::Closed;
        }
        let section = reclaim::section();
        match self.shared.child.read(&section).as_ref().map(ActorRef::load) {
            // The load of a failed actor that waits for its directive: messages are better sent elsewhere.
            None | Some(RecipientLoad::Closed) => RecipientLoad::Suspended,
            Some(load) => load,
        }
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        Some(self.supervisor.any_local())
    }

    fn place(&self) -> Option<AnyActorRef> {
        self.untyped()
    }

    fn system(&self) -> Option<SystemRef> {
        Some(SystemRef::new(self.supervisor.any_local().core().system.clone()))
    }
}

/// The handle of a supervisor with a [`Backoff`]. It dereferences to the [`ActorRef`] whose messages go to the present
/// child; stopping and watching that reference concern the supervisor, which outlives its children.
pub struct BackoffSupervisor<M: Send + 'static> {
    reference: ActorRef<M>,
    supervisor: ActorRef<Manage>,
    shared: StdArc<Shared<M>>,
}

impl<M: Send + 'static> BackoffSupervisor<M> {
    /// Returns the reference, for other users.
    pub fn to_ref(&self) -> ActorRef<M> {
        self.reference.clone()
    }

    /// Returns the present child; `None` while the supervisor waits before the next child.
    pub fn child(&self) -> Option<ActorRef<M>> {
        self.shared.child()
    }

    /// Returns how often the child was created anew, or is about to be, since the last reset. When this has grown, the
    /// timer of the next creation is set: a test moves its [`ManualClock`](crate::time::ManualClock) then.
    pub fn restarts(&self) -> u32 {
        // Ordering: Acquire; pairs with the Release store in `set_count`.
        self.shared.restarts.load(Ordering::Acquire)
    }

    /// Forgets the creations so far, for the delay and for the limit. The call counts as a message to the supervisor.
    pub fn reset(&self) {
        self.supervisor.tell(Manage::Reset);
    }
}

impl<M: Send + 'static> Deref for BackoffSupervisor<M> {
    type Target = ActorRef<M>;
    fn deref(&self) -> &ActorRef<M> {
        &self.reference
    }
}

impl<M: Send + 'static> Clone for BackoffSupervisor<M> {
    fn clone(&self) -> Self {
        Self {
            reference: self.reference.clone(),
            supervisor: self.supervisor.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<M: Send + 'static> From<&BackoffSupervisor<M>> for Option<AnyActorRef> {
    fn from(supervisor: &BackoffSupervisor<M>) -> Self {
        Some(supervisor.supervisor.any_local())
    }
}

impl<M: Send + 'static> fmt::Debug for BackoffSupervisor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackoffSupervisor")
            .field("path", &self.supervisor.path())
            .field("child", &self.child())
            .field("restarts", &self.restarts())
            .finish()
    }
}

impl ActorBuilder {
    /// Creates a supervisor of this name, and its child. `recipe` makes the child, and makes it anew after a delay as
    /// the [`Backoff`] says. The settings of this builder are for the supervisor; the settings of its child are in
    /// [`Backoff::child`].
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::pattern::Backoff;
    /// use std::time::Duration;
    ///
    /// struct Printer;
    /// impl Actor for Printer {
    ///     type Message = &'static str;
    ///     fn receive(&mut self, text: &'static str, _: &mut Context<&'static str>) -> HandlerResult {
    ///         if text == "jam" { Err(Failure::msg("paper jam")) } else { Ok(()) }
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("office").build()?;
    /// let (min, max) = (Duration::from_millis(100), Duration::from_secs(10));
    /// let printer = system
    ///     .actor("printer")
    ///     .spawn_backoff(Backoff::on_failure(min, max).jitter(0.2), |_: &mut Context<_>| Printer)?;
    /// let anyone: ActorRef<&'static str> = printer.to_ref(); // stays good when the next child is there
    /// anyone.tell("hello");
    /// anyone.tell("jam"); // a new printer in 100 to 120 ms
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Delivery
    ///
    /// A message told to the reference is a single delivery, to the mailbox of the present child. When there is none:
    /// see [`Backoff::without_child`].
    ///
    /// # Errors
    ///
    /// [`SpawnError::Backoff`] for invalid settings, and the errors of [`spawn`](Self::spawn), for supervisor and
    /// child. No actor is left after the actors that were begun have ended.
    pub fn spawn_backoff<A, I>(
        self,
        backoff: Backoff<A::Message>,
        recipe: impl Fn(&mut Context<A::Message>) -> I + Send + Sync + 'static,
    ) -> Result<BackoffSupervisor<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        // A refused recipe is dropped while the error is on its way.
        let recipe = StdArc::new(Guarded::new(recipe));
        self.supervise(backoff, move |child: ActorBuilder| {
            let recipe = recipe.clone();
            child.spawn_with(move |ctx: &mut Context<A::Message>| recipe(ctx))
        })
    }

    /// Creates a supervisor, and its child by `make_child`, which is also called for each further child.
    pub(crate) fn supervise<M: Send + 'static>(
        self,
        backoff: Backoff<M>,
        make_child: impl Fn(ActorBuilder) -> Result<ActorRef<M>, SpawnError> + Send + Sync + 'static,
    ) -> Result<BackoffSupervisor<M>, SpawnError> {
        backoff.check().map_err(SpawnError::Backoff)?;
        let shared = StdArc::new(Shared {
            settings: backoff,
            child: Published::new(None),
            restarts: AtomicU32::new(0),
            last_sent: AtomicU32::new(0),
            failed: AtomicBool::new(false),
        });
        let about = shared.clone();
        let make: StdArc<Make<M>> = StdArc::new(move |supervisor: AnyActorRef| {
            let builder = ActorBuilder::new(Ok(supervisor), Some(&about.settings.child_name));
            let builder = match &about.settings.configure {
                Some(configure) => configure(builder),
                None => builder,
            };
            make_child(builder.on_failure(Shared::strategy(&about)))
        });
        let (for_recipe, for_first) = (shared.clone(), make.clone());
        let mut first = true;
        let supervisor = ByContext(move |ctx: &mut Context<Manage>| Supervisor {
            shared: for_recipe.clone(),
            make: make.clone(),
            first: std::mem::take(&mut first),
            child: None,
            count: 0,
            history: RestartHistory::default(),
            quiet: None,
            random: SmallRng::seed_from_u64(ctx.core().system.seed() ^ u64::from(ctx.me().uid())),
        });
        // Its first turn comes after the first child.
        let supervisor = spawn_held::<Supervisor<M>, _>(self.plan, supervisor)?;
        let child = for_first(supervisor.actor().any_local())?;
        shared.child.replace(Some(child));
        let supervisor = supervisor.start();
        let reference = ActorRef::to_own_recipient(Custom::new(ToChild {
            shared: shared.clone(),
            supervisor: supervisor.clone(),
        }));
        Ok(BackoffSupervisor { reference, supervisor, shared })
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::dispatch::dispatcher::Dispatcher;
    use crate::sync::thread;
    use crate::system::System;
    use crate::time::clock::ManualClock;

    const SECOND: Duration = Duration::from_secs(1);

    struct Child;

    impl Actor for Child {
        type Message = ();
        fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
            Ok(())
        }
    }

    #[test]
    fn who_sees_that_a_child_is_to_come_sees_the_one_before_no_more_not_even_in_a_section() {
        let system = System::builder("backoff")
            .clock(ManualClock::new())
            .dispatcher("default", Dispatcher::pinned())
            .build()
            .expect("the settings are sound");
        let backoff = Backoff::on_stop(SECOND, SECOND).manual_reset();
        let supervisor = system
            .actor("supervisor")
            .spawn_backoff(backoff, |_: &mut Context<()>| Child)
            .expect("the settings are sound");
        // The sections of the looks are inner ones then, which fence nothing.
        let outer = reclaim::section();
        supervisor.child().expect("the first one is there at once").stop();
        while supervisor.restarts() == 0 {
            thread::yield_now();
        }
        assert!(supervisor.child().is_none());
        drop(outer);
        drop(supervisor);
        system.shutdown(Duration::MAX).expect("all end");
    }

    #[test]
    fn the_jitter_comes_after_the_cap_and_an_overflow_is_the_longest_delay() {
        assert_eq!(with_jitter(10 * SECOND, 0.5, 1.0, 10 * SECOND), 15 * SECOND);
        assert_eq!(with_jitter(SECOND, 1.0, 0.5, 10 * SECOND), 3 * SECOND / 2);
        assert_eq!(with_jitter(SECOND, 0.0, 0.5, 10 * SECOND), SECOND);
        assert_eq!(with_jitter(Duration::MAX, 1.0, 1.0, Duration::MAX), Duration::MAX);
    }
}
