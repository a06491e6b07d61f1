//! An actor that does what it is told and notes what happens to it.

use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use pointsman::time::ManualClock;
use pointsman::{Ledger, ShutdownError, SystemBuilder, Terminated};
use std::cell::RefCell;
use std::fmt::Debug;
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Longer than anything here takes; reached only by a test that fails.
pub const LONG: Duration = Duration::from_secs(30);

/// `/`, `/user`, `/system` and `/temp`.
pub const GUARDIANS: usize = 4;

/// What a puppet handles: something to do.
pub struct Tell(Box<Act>);

type Act = dyn FnOnce(&mut Puppet, &mut Context<Tell>) -> HandlerResult + Send;

impl Tell {
    pub fn new(act: impl FnOnce(&mut Puppet, &mut Context<Tell>) -> HandlerResult + Send + 'static) -> Self {
        Tell(Box::new(act))
    }

    /// Does it, outside of the mailbox.
    pub fn run(self, puppet: &mut Puppet, ctx: &mut Context<Tell>) -> HandlerResult {
        (self.0)(puppet, ctx)
    }
}

/// Which hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    Recipe,
    Started,
    Stopped,
    Restarting,
    Restarted,
    Drop,
}

type OnHook = dyn Fn(Hook, usize) -> HandlerResult + Send + Sync;
type OnStart = dyn Fn(&mut Context<Tell>) + Send + Sync;

/// How a puppet is made, and made again.
#[derive(Clone)]
pub struct Role {
    name: &'static str,
    log: Sender<String>,
    made: Arc<AtomicUsize>,
    on_hook: Arc<OnHook>,
    strategy: Arc<dyn Fn() -> Strategy + Send + Sync>,
    keep_children: bool,
    started: Arc<OnStart>,
}

/// Does what it is told; `value` is state to be lost in a restart.
pub struct Puppet {
    pub value: u64,
    role: Role,
    /// The how many-th state of its role this is.
    number: usize,
}

impl Role {
    pub fn new(name: &'static str, log: &Sender<String>) -> Self {
        Self {
            name,
            log: log.clone(),
            made: Arc::default(),
            on_hook: Arc::new(|_, _| Ok(())),
            strategy: Arc::new(Strategy::default),
            keep_children: false,
            started: Arc::new(|_| {}),
        }
    }

    /// Runs in each hook, with the number of the state, from 1; may fail or panic.
    pub fn on_hook(mut self, act: impl Fn(Hook, usize) -> HandlerResult + Send + Sync + 'static) -> Self {
        self.on_hook = Arc::new(act);
        self
    }

    pub fn strategy(mut self, make: impl Fn() -> Strategy + Send + Sync + 'static) -> Self {
        self.strategy = Arc::new(make);
        self
    }

    pub fn keep_children(mut self) -> Self {
        self.keep_children = true;
        self
    }

    /// Runs in `started`.
    pub fn started(mut self, act: impl Fn(&mut Context<Tell>) + Send + Sync + 'static) -> Self {
        self.started = Arc::new(act);
        self
    }

    pub fn recipe(&self) -> impl FnMut() -> Result<Puppet, Failure> + Send + use<> {
        let role = self.clone();
        move || {
            let number = role.made.fetch_add(1, Ordering::SeqCst) + 1;
            (role.on_hook)(Hook::Recipe, number)?;
            Ok(Puppet { value: 0, role: role.clone(), number })
        }
    }
}

impl Puppet {
    pub fn note(&self, text: impl Debug) {
        let _ = self.role.log.send(format!("{} {text:?}", self.role.name));
    }

    fn hook(&self, hook: Hook) -> HandlerResult {
        let _ = self.role.log.send(format!("{} {hook:?} {}", self.role.name, self.number));
        (self.role.on_hook)(hook, self.number)
    }
}

impl Actor for Puppet {
    type Message = Tell;

    fn receive(&mut self, message: Tell, ctx: &mut Context<Tell>) -> HandlerResult {
        (message.0)(self, ctx)
    }

    fn started(&mut self, ctx: &mut Context<Tell>) -> HandlerResult {
        let start = self.role.started.clone();
        start(ctx);
        self.hook(Hook::Started)
    }

    fn stopped(&mut self, _: &mut Context<Tell>) {
        let _ = self.hook(Hook::Stopped);
    }

    fn restarting(&mut self, _: &Failure, ctx: &mut Context<Tell>) -> HandlerResult {
        if !self.role.keep_children {
            ctx.stop_children();
        }
        self.hook(Hook::Restarting)
    }

    fn restarted(&mut self, _: &Failure, _: &mut Context<Tell>) -> HandlerResult {
        self.hook(Hook::Restarted)
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Tell>) -> HandlerResult {
        self.note(format_args!("lost {}", terminated.actor.path().name()));
        Ok(())
    }

    fn supervision(&self) -> Strategy {
        (self.role.strategy)()
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        let _ = (self.role.on_hook)(Hook::Drop, self.number);
    }
}

/// A small system and its puppets' notes.
///
/// On [`turns`](Self::turns) unless a test needs threads: then each run takes the course of another seed, which a
/// failure names.
pub struct Stage {
    pub system: Ground,
    pub clock: ManualClock,
    pub log: Sender<String>,
    pub notes: Receiver<String>,
}

/// What a stage stands on.
pub enum Ground {
    Threads(System),
    Turns(Rc<TestSystem>),
}

thread_local! {
    /// The test system of this thread's stage.
    static TURNS: RefCell<Weak<TestSystem>> = const { RefCell::new(Weak::new()) };
}

/// Gives the actors of this thread's stage their turns, if they don't run by themselves.
pub fn run_turns() {
    if let Some(system) = TURNS.with_borrow(Weak::upgrade) {
        system.run_until_idle();
    }
}

/// Something that comes soon, or never.
pub trait Soon<T> {
    fn soon(&self) -> Result<T, RecvTimeoutError>;
}

impl<T> Soon<T> for Receiver<T> {
    fn soon(&self) -> Result<T, RecvTimeoutError> {
        // What is there already came before what the next turns bring.
        self.try_recv().or_else(|_| {
            run_turns();
            self.recv_timeout(LONG)
        })
    }
}

impl Deref for Ground {
    type Target = SystemRef;

    fn deref(&self) -> &SystemRef {
        match self {
            Ground::Threads(system) => system,
            Ground::Turns(system) => system,
        }
    }
}

impl Ground {
    pub fn handle(&self) -> &SystemRef {
        self
    }

    /// For what only a system with threads can do.
    pub fn into_threads(self) -> System {
        match self {
            Ground::Threads(system) => system,
            Ground::Turns(_) => panic!("the stage was made without threads"),
        }
    }

    pub fn shutdown(self, limit: Duration) -> Result<Ledger, ShutdownError> {
        match self {
            Ground::Threads(system) => system.shutdown(limit),
            Ground::Turns(system) => {
                system.allow_running();
                let system = Rc::into_inner(system).expect("only the stage has it");
                Ok(system.finish())
            }
        }
    }
}

impl Stage {
    /// One thread, the test's own; a seeded choice of who is next.
    pub fn turns() -> Self {
        Self::turns_with(|builder| builder)
    }

    pub fn turns_with(change: impl FnOnce(SystemBuilder) -> SystemBuilder + 'static) -> Self {
        Self::on(TestSystem::builder().configure(change).build())
    }

    /// The course of this seed in each run.
    pub fn turns_of(seed: u64, change: impl FnOnce(SystemBuilder) -> SystemBuilder + 'static) -> Self {
        Self::on(TestSystem::builder().seed(seed).configure(change).build())
    }

    fn on(system: TestSystem) -> Self {
        let system = Rc::new(system);
        TURNS.set(Rc::downgrade(&system));
        let (log, notes) = channel();
        Self { clock: system.clock().clone(), system: Ground::Turns(system), log, notes }
    }

    /// Threads of its own: for tests that hold an actor in its handler, or that are about threads.
    pub fn threads(name: &str) -> Self {
        Self::threads_with(name, |builder| builder)
    }

    pub fn threads_with(name: &str, change: impl FnOnce(SystemBuilder) -> SystemBuilder) -> Self {
        Self::threads_of(name, 4, change)
    }

    /// As [`threads`](Self::threads), with two workers: while the test holds an actor, the other worker runs all else.
    pub fn two_threads(name: &str) -> Self {
        Self::threads_of(name, 2, |builder| builder)
    }

    fn threads_of(name: &str, threads: usize, change: impl FnOnce(SystemBuilder) -> SystemBuilder) -> Self {
        let clock = ManualClock::new();
        // Deciders are held here, too: the tasks that such a turn has woken must not wait for its end.
        let builder = System::builder(name)
            .clock(clock.clone())
            .dispatcher("default", Dispatcher::work_stealing().threads(threads).lifo(false));
        let system = Ground::Threads(change(builder).build().expect("the settings are sound"));
        let (log, notes) = channel();
        Self { system, clock, log, notes }
    }

    pub fn role(&self, name: &'static str) -> Role {
        Role::new(name, &self.log)
    }

    pub fn spawn(&self, role: &Role) -> ActorRef<Tell> {
        self.system.actor(role.name).spawn(role.recipe()).expect("the name is free")
    }

    /// The next note.
    #[track_caller]
    pub fn note(&self) -> String {
        self.notes.soon().expect("something is noted")
    }

    #[track_caller]
    pub fn expect(&self, notes: &[&str]) {
        let seen: Vec<String> = notes.iter().map(|_| self.note()).collect();
        assert_eq!(seen, notes);
    }

    /// Ends the system: nothing is lost, and nobody has anything more to note but these.
    #[track_caller]
    pub fn end(self, notes: &[&str]) {
        let ledger = self.system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!(ledger.balance(), 0, "{ledger}");
        assert_eq!(ledger.queued, 0, "{ledger}");
        let mut seen: Vec<String> = self.notes.try_iter().collect();
        seen.sort();
        assert_eq!(seen, notes);
    }
}

/// Tells a puppet what to do.
pub fn act(
    puppet: &ActorRef<Tell>,
    act: impl FnOnce(&mut Puppet, &mut Context<Tell>) -> HandlerResult + Send + 'static,
) {
    puppet.tell(Tell::new(act));
}

/// Tells a puppet to note something.
pub fn note(puppet: &ActorRef<Tell>, text: &'static str) {
    puppet.tell(noting(text));
}

/// The message that makes a puppet note something.
pub fn noting(text: &'static str) -> Tell {
    Tell::new(move |puppet, _| {
        puppet.note(format_args!("{text}"));
        Ok(())
    })
}

pub fn fail(puppet: &ActorRef<Tell>) {
    act(puppet, |_, _| Err(Failure::msg("as told")));
}

/// Asks a puppet for what `find` finds.
pub fn query<R: Send + 'static>(
    puppet: &ActorRef<Tell>,
    find: impl FnOnce(&mut Puppet, &mut Context<Tell>) -> R + Send + 'static,
) -> Result<R, AskError> {
    puppet
        .ask_with(|reply_to: ReplyTo<R>| {
            Tell::new(move |puppet, ctx| {
                let late = reply_to.send(find(puppet, ctx));
                drop(late);
                Ok(())
            })
        })
        .within(LONG_BY_HAND)
        .wait()
}

/// By a manual clock that nobody moves so far.
const LONG_BY_HAND: Duration = Duration::from_secs(1 << 40);

/// Creates a child of a puppet.
pub fn child(parent: &ActorRef<Tell>, role: &Role) -> ActorRef<Tell> {
    let (name, recipe) = (role.name, role.recipe());
    query(parent, move |_, ctx| ctx.actor(name).spawn(recipe).expect("the name is free"))
        .expect("the parent answers")
}

/// Makes `watcher` watch.
pub fn watch(watcher: &ActorRef<Tell>, actor: &ActorRef<Tell>) {
    let actor = actor.untyped().expect("a local actor");
    query(watcher, move |_, ctx| ctx.watch(&actor).expect("no other notice")).expect("the watcher answers");
}

/// Waits until an actor has ended for good.
pub fn wait_for_end(stage: &Stage, actor: &ActorRef<Tell>) {
    let (sender, receiver) = channel();
    let watched = actor.untyped().expect("a local actor");
    let watcher = Watcher { watched, ended: sender };
    let mut watcher = Some(watcher);
    let me = stage.system.spawn(move || watcher.take().ok_or(Failure::msg("made once"))).expect("room");
    receiver.soon().expect("it ends");
    me.stop();
}

struct Watcher {
    watched: AnyActorRef,
    ended: Sender<()>,
}

impl Actor for Watcher {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        ctx.watch(&self.watched)?;
        Ok(())
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<()>) -> HandlerResult {
        self.ended.send(())?;
        Ok(())
    }
}

/// Holds a puppet in a handler until the returned sender is used or dropped.
pub fn hold(puppet: &ActorRef<Tell>) -> Sender<()> {
    hold_then(puppet, |_| Ok(()))
}

/// As [`hold`]; the handler fails when it is released.
pub fn hold_and_fail(puppet: &ActorRef<Tell>) -> Sender<()> {
    hold_then(puppet, |_| Err(Failure::msg("as told")))
}

/// As [`hold`]; the handler does `then` when it is released.
pub fn hold_then(
    puppet: &ActorRef<Tell>,
    then: impl FnOnce(&mut Context<Tell>) -> HandlerResult + Send + 'static,
) -> Sender<()> {
    let (release, held) = channel::<()>();
    let (sender, inside) = channel();
    act(puppet, move |_, ctx| {
        sender.send(())?;
        // Whoever this turn has woken would wait for its end, on this very worker. Either way is a release.
        let _ = ctx.blocking(|| held.recv());
        then(ctx)
    });
    inside.soon().expect("the handler runs");
    release
}

/// Waits for what no event tells.
#[track_caller]
pub fn wait_until(mut seen: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !seen() {
        run_turns();
        assert!(began.elapsed() < LONG, "it never comes");
        std::thread::yield_now();
    }
}

/// Runs while time passes by itself on a clock that is moved by hand.
pub fn while_time_passes<R>(clock: &ManualClock, run: impl FnOnce() -> R) -> R {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                clock.advance(Duration::from_secs(1));
                std::thread::yield_now();
            }
        });
        run()
    })
}

/// What a panic says.
#[track_caller]
pub fn panic_of(run: impl FnOnce()) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let payload = caught.expect_err("it panics");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast::<&str>().expect("a text").to_string(),
    }
}

/// Panics when it is dropped.
pub struct Sore;

impl Drop for Sore {
    fn drop(&mut self) {
        panic!("planted");
    }
}

/// Lists the routees by way of the head, so after every change that was asked for before, and every end that the head has
/// been told of.
pub trait ListsByHead<M: Send + 'static> {
    fn routees_by_head(&self) -> Result<Vec<ActorRef<M>>, pointsman::routing::ManageError>;
}

impl<M: Send + 'static> ListsByHead<M> for Router<M> {
    fn routees_by_head(&self) -> Result<Vec<ActorRef<M>>, pointsman::routing::ManageError> {
        let routees = self.routees_info()?;
        Ok(routees.into_iter().map(|info| info.routee.actor().clone()).collect())
    }
}
