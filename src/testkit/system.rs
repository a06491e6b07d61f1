//! A test system: its actors run on the thread of its test.

use crate::ask::error::AskError;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::ledger::Ledger;
use crate::core::polls_within::PollsWithin;
use crate::core::system::SystemRef;
use crate::dispatch::stepping;
use crate::dispatch::stepping::Stepper;
use crate::settings::build_error::BuildError;
use crate::sync::{Mutex, lock};
use crate::system::{System, SystemBuilder};
use crate::testkit::probe::Probe;
use crate::testkit::seeds::{Again, any_seed, seeds};
use crate::testkit::turns::Turns;
use crate::testkit::wait_error::WaitError;
use crate::time::clock::ManualClock;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc as StdArc;
use std::task::{self, Poll, Wake, Waker};
use std::time::Duration;

/// More turns than this without a rest are a livelock, unless the test says otherwise.
const TURN_MAX_DEFAULT: u64 = 1_000_000;

/// At most so many actors are named in a failure.
const NAMED_MAX: usize = 32;

/// A system whose actors all run on the thread of the test, one turn at a time.
///
/// The actor of the next turn is a choice that derives from the [seed](Self::seed), and so is the number of messages
/// that it handles in the turn: two runs with the same seed take the same course, two seeds explore two. Time stands
/// still until it is [moved](Self::advance). Turns run only in [`step`](Self::step),
/// [`run_until_idle`](Self::run_until_idle), [`advance`](Self::advance), and wherever this thread waits for the system:
/// for an [answer](crate::Ask::wait), for a [`Probe`], for room in a mailbox, for the end.
///
/// Dispatchers keep their names and lose their threads: actors on blocking and pinned dispatchers take their turns
/// here, too. A handler on such a dispatcher may wait for an answer, and the other actors get their turns within its
/// own; on a work-stealing or calling-thread dispatcher the wait is refused, as in production.
///
/// It dereferences to [`SystemRef`]; `/user` and its failures, names, timers, routers, and ledger are the engine's own.
/// Other threads may send to its actors, too; then the course depends on them as well.
///
/// # The end
///
/// [`finish`](Self::finish), or else the destructor, fails the test when actors are left running that the test has not
/// [allowed](Self::allow_running), or when messages are unaccounted for.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::testkit::TestSystem;
///
/// struct Echo;
/// impl Actor for Echo {
///     type Message = ActorRef<&'static str>;
///     fn receive(&mut self, from: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
///         from.tell("here");
///         ctx.stop();
///         Ok(())
///     }
/// }
///
/// let system = TestSystem::new();
/// let probe = system.probe();
/// let echo = system.actor("echo").spawn(|| Echo).unwrap();
/// echo.tell(probe.actor_ref().clone());
/// probe.expect("here");
/// system.finish();
/// ```
pub struct TestSystem {
    /// `None` once it has ended.
    system: Option<System>,
    handle: SystemRef,
    turns: StdArc<Turns>,
    clock: ManualClock,
    allowed: Mutex<Allowed>,
    /// It stays on its thread, which runs the turns.
    on_this_thread: PhantomData<*const ()>,
}

/// Describes a [`TestSystem`]; see [`TestSystem::builder`].
#[must_use = "nothing starts before `build`"]
pub struct TestSystemBuilder {
    seed: Option<u64>,
    turn_max: u64,
    configure: Box<dyn FnOnce(SystemBuilder) -> SystemBuilder>,
}

/// The actors that may be left running.
#[derive(Default)]
struct Allowed {
    all: bool,
    /// The actors at these paths, with all below them.
    paths: Vec<String>,
}

/// Whether a future has been woken since it was polled last.
struct Rung(Mutex<bool>);

impl Wake for Rung {
    fn wake(self: StdArc<Self>) {
        *lock(&self.0) = true;
    }
}

impl TestSystem {
    /// A system with the seed of the environment variable `POINTSMAN_SEED`, or with any.
    ///
    /// # Panics
    ///
    /// If the value of the variable is no whole number below 2^64.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A system with this seed.
    pub fn with_seed(seed: u64) -> Self {
        Self::builder().seed(seed).build()
    }

    /// Runs a test on `count` fresh systems, each with a seed of its own, and [finishes](Self::finish) each.
    ///
    /// The seeds are those of [`seeds`](Self::seeds): other seeds in each run, or the seed of `POINTSMAN_SEED` alone if
    /// that is set.
    ///
    /// # Panics
    ///
    /// When `test` does, or a system does not finish cleanly; the failing seed is printed.
    ///
    /// ```
    /// use pointsman::testkit::{Probe, TestSystem};
    ///
    /// TestSystem::for_seeds(20, |system| {
    ///     let probe: Probe<u32> = system.probe();
    ///     probe.actor_ref().tell(1u32);
    ///     probe.actor_ref().tell(2u32);
    ///     probe.expect(1);
    ///     probe.expect(2);
    /// });
    /// ```
    pub fn for_seeds(count: u64, mut test: impl FnMut(&Self)) {
        for seed in Self::seeds(count) {
            let system = Self::with_seed(seed);
            test(&system);
            system.finish();
        }
    }

    /// Returns `count` seeds, for tests that describe their systems themselves: the seed of the environment variable
    /// `POINTSMAN_SEED` alone, if that is set, and otherwise other seeds in each run.
    ///
    /// # Panics
    ///
    /// If the value of the variable is no whole number below 2^64.
    ///
    /// ```
    /// use pointsman::Dispatcher;
    /// use pointsman::testkit::TestSystem;
    ///
    /// for seed in TestSystem::seeds(3) {
    ///     let system = TestSystem::builder()
    ///         .seed(seed)
    ///         .configure(|builder| builder.dispatcher("blocking", Dispatcher::blocking()))
    ///         .build();
    ///     system.finish();
    /// }
    /// ```
    pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
        seeds(count)
    }

    /// Starts to describe a system.
    pub fn builder() -> TestSystemBuilder {
        TestSystemBuilder { seed: None, turn_max: TURN_MAX_DEFAULT, configure: Box::new(|builder| builder) }
    }

    /// Returns the seed of all choices.
    pub fn seed(&self) -> u64 {
        self.handle.core().seed()
    }

    /// Returns the system's clock. [`advance`](Self::advance) moves it too, and lets everything happen at its time.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Runs a turn of an actor; returns false if no actor has anything to do.
    pub fn step(&self) -> bool {
        self.turns.step()
    }

    /// Runs turns until no actor has anything to do, and returns how many. Time does not pass.
    ///
    /// # Panics
    ///
    /// On a [`WaitError::Livelock`].
    #[track_caller]
    pub fn run_until_idle(&self) -> u64 {
        self.try_run_until_idle().unwrap_or_else(|livelock| panic!("{livelock}"))
    }

    /// As [`run_until_idle`](Self::run_until_idle), for tests that expect a livelock.
    ///
    /// # Errors
    ///
    /// [`WaitError::Livelock`] after a million turns, or as many as the
    /// [description](TestSystemBuilder::turn_limit) says.
    pub fn try_run_until_idle(&self) -> Result<u64, WaitError> {
        self.turns.run_until_idle()
    }

    /// Moves the clock by this length, in steps: from one deadline to the next, with turns run until idle at each. So
    /// everything happens at its time, and its consequences have happened before the next deadline.
    ///
    /// Timers count milliseconds: an entry that is due within a millisecond comes at its end.
    ///
    /// # Panics
    ///
    /// On a [`WaitError::Livelock`], also a livelock of timers that are due again at once.
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let end = self.now().saturating_add(by);
        let mut turns = self.run_until_idle();
        while let Some(deadline) = self.handle.core().timers().next_deadline() {
            let now = self.now();
            if deadline > end {
                break;
            }
            if deadline > now {
                turns = 0;
            }
            self.clock.advance(deadline.saturating_sub(now));
            // Counts the move itself too, which may fire timers that give no actor a turn.
            turns += 1 + self.run_until_idle();
            if turns > self.turns.turn_max() {
                panic!("{}", self.turns.livelock(turns));
            }
        }
        self.clock.advance(end.saturating_sub(self.now()));
        self.run_until_idle();
    }

    /// Lets time pass until a future is ready, and returns its output: turns are run until idle, then the clock moves
    /// to the next deadline, and so on, over `within` at most. So a test can await an [`Ask`](crate::Ask) whose answer
    /// takes time by the system's clock; [`wait`](crate::Ask::wait) and [`ask`](Self::ask) let none pass. The clock
    /// stops where the future was ready.
    ///
    /// Other due timers fire meanwhile too, each at its time, as in [`advance`](Self::advance). Give a future that is
    /// to be used further as `&mut future`.
    ///
    /// # Errors
    ///
    /// [`WaitError::NotReady`] when `within` has passed, or when the future waits for something that no actor and no
    /// timer brings. All of `within` has passed then.
    ///
    /// # Panics
    ///
    /// On a [`WaitError::Livelock`].
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::testkit::TestSystem;
    /// use std::time::Duration;
    ///
    /// /// Answers after a minute.
    /// struct Oracle(Option<ReplyTo<u32>>);
    /// enum OracleMsg {
    ///     Question(ReplyTo<u32>),
    ///     Thought,
    /// }
    /// impl Actor for Oracle {
    ///     type Message = OracleMsg;
    ///     fn receive(&mut self, message: OracleMsg, ctx: &mut Context<OracleMsg>) -> HandlerResult {
    ///         match message {
    ///             OracleMsg::Question(reply_to) => {
    ///                 self.0 = Some(reply_to);
    ///                 ctx.after(Duration::from_secs(60), OracleMsg::Thought);
    ///             }
    ///             OracleMsg::Thought => drop(self.0.take().map(|reply_to| reply_to.send(42))),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let system = TestSystem::new();
    /// let oracle = system.spawn(|| Oracle(None)).unwrap();
    /// let ask = oracle.ask_with(OracleMsg::Question);
    /// let answer = system.advance_until(ask, Duration::from_secs(300)).expect("five minutes are enough");
    /// assert_eq!((answer, system.now()), (Ok(42), Duration::from_secs(60)));
    /// # oracle.stop();
    /// # system.finish();
    /// ```
    #[track_caller]
    pub fn advance_until<F: IntoFuture>(&self, future: F, within: Duration) -> Result<F::Output, WaitError> {
        let mut future = pin!(future.into_future());
        let rung = StdArc::new(Rung(Mutex::new(true)));
        let waker = Waker::from(rung.clone());
        let mut context = task::Context::from_waker(&waker);
        let began = self.now();
        let end = began.saturating_add(within);
        let within_scope = PollsWithin::of(self.handle.core());
        let mut turns = 0;
        loop {
            // Without the lock: the future may wake itself.
            let is_rung = std::mem::take(&mut *lock(&rung.0));
            if is_rung {
                if let Poll::Ready(output) = within_scope.run(|| future.as_mut().poll(&mut context)) {
                    return Ok(output);
                }
            }
            turns += 1;
            if turns > self.turns.turn_max() {
                panic!("{}", self.turns.livelock(turns));
            }
            if self.step() {
                continue;
            }
            let now = self.now();
            match self.handle.core().timers().next_deadline() {
                Some(deadline) if deadline <= end => {
                    if deadline > now {
                        turns = 0;
                    }
                    self.clock.advance(deadline.saturating_sub(now));
                }
                // Another thread may have woken it after the last look.
                _ if *lock(&rung.0) => {}
                _ => {
                    self.clock.advance(end.saturating_sub(now));
                    return Err(WaitError::NotReady { waited: within, seed: self.seed() });
                }
            }
        }
    }

    /// Asks, and runs turns until the answer is there: `target.ask(request).wait()`, which does the same.
    ///
    /// # Errors
    ///
    /// [`AskError::Stalled`] when no actor has anything left to do and the answer is not there; the others as
    /// everywhere.
    pub fn ask<M, Q>(&self, target: &ActorRef<M>, request: Q) -> Result<Q::Reply, AskError>
    where
        M: From<Call<Q>> + Send + 'static,
        Q: Request,
    {
        target.ask(request).wait()
    }

    /// A probe in this system: [`Probe::on`].
    pub fn probe<M: Send + 'static>(&self) -> Probe<M> {
        Probe::on(self)
    }

    /// Returns the paths of the actors that had turns so far, in order. The same for the same seed, as long as the test
    /// itself does the same and no other thread sends.
    pub fn trace(&self) -> Vec<String> {
        self.turns.trace()
    }

    /// Lets actors be left running at the end.
    pub fn allow_running(&self) {
        lock(&self.allowed).all = true;
    }

    /// Lets the actor at this path, and all below it, be left running at the end.
    pub fn allow_running_at(&self, path: &str) {
        lock(&self.allowed).paths.push(path.to_owned());
    }

    /// Runs until idle, stops the actors that are allowed to run, and returns the final ledger.
    ///
    /// # Panics
    ///
    /// On a [`WaitError::Livelock`]; when an actor below `/user` is left running that the test has not allowed; when
    /// messages are unaccounted for; when the system does not end. The text names them, and the seed.
    #[track_caller]
    pub fn finish(mut self) -> Ledger {
        match self.end() {
            Ok(ledger) => ledger,
            Err(fault) => panic!("{fault} ({})", Again(self.seed())),
        }
    }

    fn end(&mut self) -> Result<Ledger, String> {
        let Some(system) = self.system.take() else { return Ok(self.handle.ledger()) };
        self.turns.run_until_idle().map_err(|livelock| livelock.to_string())?;
        let ledger = system.ledger();
        if ledger.balance() != 0 {
            return Err(format!("messages are unaccounted for: {ledger}"));
        }
        let running = self.running();
        if !running.is_empty() {
            return Err(format!(
                "actors are left running, stop them or call allow_running(): {}",
                running.join(", ")
            ));
        }
        // No wait goes by the machine's clock.
        let ledger = system.shutdown(Duration::ZERO).map_err(|error| error.to_string())?;
        if ledger.balance() != 0 || ledger.queued != 0 {
            return Err(format!("messages are unaccounted for at the end: {ledger}"));
        }
        Ok(ledger)
    }

    /// Returns the running actors that the test has not allowed, parents before their children.
    fn running(&self) -> Vec<String> {
        let allowed = lock(&self.allowed);
        let mut running = Vec::new();
        let mut open: Vec<AnyActorRef> = self.handle.user().into_iter().flat_map(children).collect();
        while let Some(actor) = open.pop() {
            let path = actor.path().to_string();
            if allowed.all || allowed.paths.contains(&path) {
                continue;
            }
            if running.len() < NAMED_MAX {
                running.push(path);
            }
            open.extend(children(actor));
        }
        running
    }
}

/// Sorted in the order in which a stack gives them back by name.
fn children(actor: AnyActorRef) -> impl Iterator<Item = AnyActorRef> {
    actor.core().children.all().into_iter().rev()
}

impl Default for TestSystem {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for TestSystem {
    type Target = SystemRef;
    fn deref(&self) -> &SystemRef {
        &self.handle
    }
}

impl Drop for TestSystem {
    fn drop(&mut self) {
        if self.system.is_none() {
            return;
        }
        if crate::sync::thread::panicking() {
            eprintln!("pointsman: {}", Again(self.seed()));
            // The system's own destructor gives its actors their last turns.
            return;
        }
        if let Err(fault) = self.end() {
            panic!("{fault} ({})", Again(self.seed()));
        }
    }
}

impl fmt::Debug for TestSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSystem").field("seed", &self.seed()).finish_non_exhaustive()
    }
}

impl TestSystemBuilder {
    /// Sets the seed of all choices. Default: the environment variable `POINTSMAN_SEED`, or a random seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the number of turns without a rest beyond which they are a [`WaitError::Livelock`], at least 1. Default: a
    /// million.
    pub fn turn_limit(mut self, turns: u64) -> Self {
        self.turn_max = turns.max(1);
        self
    }

    /// Changes the system underneath: dispatchers that the code under test names, supervision. Clock and seed are the
    /// test system's own. Several calls add up, in their order.
    pub fn configure(mut self, configure: impl FnOnce(SystemBuilder) -> SystemBuilder + 'static) -> Self {
        let before = self.configure;
        self.configure = Box::new(move |builder| configure(before(builder)));
        self
    }

    /// Starts the system, idle and with an empty trace.
    ///
    /// # Panics
    ///
    /// When the system of [`configure`](Self::configure) cannot be built, with the [error](crate::BuildError); when
    /// `POINTSMAN_SEED` is no whole number below 2^64.
    #[track_caller]
    pub fn build(self) -> TestSystem {
        self.try_build().unwrap_or_else(|error| panic!("cannot build the test system: {error}"))
    }

    /// As [`build`](Self::build), for tests that expect that it cannot be built.
    ///
    /// # Errors
    ///
    /// [`BuildError`], as [`SystemBuilder::build`].
    ///
    /// # Panics
    ///
    /// When `POINTSMAN_SEED` is no whole number below 2^64.
    pub fn try_build(self) -> Result<TestSystem, BuildError> {
        let seed = self.seed.unwrap_or_else(any_seed);
        let turns = StdArc::new(Turns::new(seed, self.turn_max));
        let stepper: StdArc<dyn Stepper> = turns.clone();
        stepping::attach(&stepper);
        let clock = ManualClock::new();
        let builder =
            (self.configure)(System::builder("test")).clock(clock.clone()).seed(seed).stepper(stepper);
        let system = builder.build()?;
        let handle = system.handle().clone();
        let test = TestSystem {
            system: Some(system),
            handle,
            turns,
            clock,
            allowed: Mutex::new(Allowed::default()),
            on_this_thread: PhantomData,
        };
        test.run_until_idle();
        test.turns.clear_trace();
        Ok(test)
    }
}

impl fmt::Debug for TestSystemBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSystemBuilder")
            .field("seed", &self.seed)
            .field("turn_limit", &self.turn_max)
            .finish_non_exhaustive()
    }
}
