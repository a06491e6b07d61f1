//! What a running actor sees of itself and the system.

use crate::actor::builder::{ActorBuilder, IntoActor};
use crate::actor::cell::{Control, Core, Header, Local};
use crate::actor::turn::{Extras, Private, drop_guarded, guarded};
use crate::actor::{Actor, ActorPath, SystemRef, Terminated};
use crate::actor_ref::{ActorRef, AnyRef, Ask, AskError, Call, Request, Watchable};
use crate::error::SpawnError;
use crate::routing::RouterBuilder;
use crate::supervision::Failure;
use crate::sync::HashMap;
use crate::time::TimerHandle;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::Duration;

/// What a running actor sees: itself, its children, timers, watches.
///
/// Handed to every hook and handler of an [`Actor`]. `M` is the actor's message type, so that wrappers and
/// tests can hand a context on without naming the actor's own type.
pub struct Context<M: Send + 'static> {
    local: NonNull<Local<M>>,
    /// Borrows the life's own reference: never dropped.
    me: ManuallyDrop<ActorRef<M>>,
}

/// Names one timer of one actor, to cancel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey(u64);

/// The timers of one actor.
pub struct Timers<M> {
    next: u64,
    armed: HashMap<u64, Timer<M>>,
}

struct Timer<M> {
    what: What<M>,
    handle: TimerHandle,
}

enum What<M> {
    Once(M),
    Every { period: Duration, due: Duration, make: Box<dyn FnMut() -> M + Send> },
}

impl<M> Default for Timers<M> {
    fn default() -> Self {
        Self { next: 0, armed: HashMap::default() }
    }
}

impl<M: Send + 'static> Context<M> {
    /// The context of a turn of the actor behind `header`, which outlives it.
    pub(crate) fn new(header: NonNull<Header>, local: NonNull<Local<M>>) -> Self {
        // SAFETY: not a counted reference, but it is never dropped, and the turn that owns this context
        // ends before the life's own reference is given back.
        let me = ManuallyDrop::new(unsafe { ActorRef::from_header(header) });
        Self { local, me }
    }

    fn core(&self) -> &Core {
        // SAFETY: the cell outlives the turn, and the core is only read.
        unsafe { &(*self.local.as_ptr()).core }
    }

    /// Looks at or changes what only the owner touches. `act` runs no user code.
    fn private<R>(&self, act: impl FnOnce(&mut Private<M>) -> R) -> R {
        // SAFETY: a context exists only within a turn, which holds the ownership token, and `act` runs
        // nothing that comes back here.
        unsafe { &(*self.local.as_ptr()).private }.with_mut(|private| act(unsafe { &mut *private }))
    }

    fn extras<R>(&self, act: impl FnOnce(&mut Extras<M>) -> R) -> R {
        self.private(|private| act(private.extras()))
    }

    // ---- itself

    /// A reference to this actor. Clone it to hand it on.
    pub fn me(&self) -> &ActorRef<M> {
        &self.me
    }

    /// Where this actor stands in the tree.
    pub fn path(&self) -> ActorPath {
        self.core().path()
    }

    /// Who created this actor; `None` for the root alone.
    pub fn parent(&self) -> Option<&AnyRef> {
        self.core().parent.as_ref()
    }

    /// This actor's number in the pool that made it, from 0; 0 for other actors.
    pub fn routee_index(&self) -> usize {
        self.core().routee_index as usize
    }

    /// The system that this actor lives in.
    pub fn system(&self) -> SystemRef {
        SystemRef::new(self.core().system.clone())
    }

    /// Time since the system's start by the system's clock.
    pub fn now(&self) -> Duration {
        self.core().system.now()
    }

    /// Ends this actor after the message being handled. What is left in its mailbox becomes dead letters.
    pub fn stop(&self) {
        self.me.stop();
    }

    // ---- children

    /// Starts to describe a child of this actor under the given name.
    pub fn actor(&self, name: &str) -> ActorBuilder {
        ActorBuilder::new(Ok(self.me.any_local()), Some(name))
    }

    /// Creates a child under a generated name, with the defaults.
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn<A, I>(
        &self,
        recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        ActorBuilder::new(Ok(self.me.any_local()), None).spawn(recipe)
    }

    /// Starts to describe a router that is a child of this actor.
    pub fn router(&self, name: &str) -> RouterBuilder {
        RouterBuilder::new(Ok(self.me.any_local()), name)
    }

    /// The children that have not ended.
    pub fn children(&self) -> Vec<AnyRef> {
        self.core().children.all()
    }

    /// The child of this name.
    pub fn child(&self, name: &str) -> Option<AnyRef> {
        self.core().children.get(name)
    }

    /// Tells all children to stop, and takes back watches of them: no notice of an old child reaches a new
    /// state. Within [`Actor::restarting`] the restart waits until they have ended.
    pub fn stop_children(&mut self) {
        let children = self.core().children.all();
        if children.is_empty() {
            return;
        }
        self.extras(|extras| extras.stopping.extend(children.iter().cloned()));
        for child in children {
            self.end_watch(&child);
            let _ = child.send_system(Control::Stop);
        }
    }

    // ---- watching

    /// Asks for one [`Terminated`] when `actor` has ended for good; at once if it has already. Watching
    /// oneself or an actor that is watched already changes nothing.
    ///
    /// Takes an [`AnyRef`], an [`ActorRef`] or a [`Router`](crate::Router). Behind a reference to what is no
    /// actor there is nothing to watch: false then.
    pub fn watch(&mut self, actor: &(impl Watchable + ?Sized)) -> bool {
        let Some(actor) = actor.watched() else { return false };
        self.begin_watch(&actor, None);
        true
    }

    /// As [`watch`](Self::watch), but the notice is `message`, which goes to [`Actor::receive`]. The
    /// latest call for an actor counts.
    ///
    /// # Errors
    ///
    /// Gives the message back if there is nothing to watch.
    pub fn watch_with(&mut self, actor: &(impl Watchable + ?Sized), message: M) -> Result<(), M> {
        let Some(actor) = actor.watched() else { return Err(message) };
        self.begin_watch(&actor, Some(message));
        Ok(())
    }

    fn begin_watch(&mut self, actor: &AnyRef, message: Option<M>) {
        let me = self.me.any_local();
        if *actor == me {
            drop_guarded(message);
            return;
        }
        let (known, replaced) = self.extras(|extras| match extras.watching.entry(actor.clone()) {
            std::collections::hash_map::Entry::Occupied(mut entry) => match message {
                Some(message) => (true, entry.insert(Some(message))),
                None => (true, None),
            },
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(message);
                (false, None)
            }
        });
        drop_guarded(replaced);
        if !known && actor.send_system(Control::Watch(me.clone())).is_err() {
            me.notify_terminated(actor.clone());
        }
    }

    /// Takes a watch back: no notice about `actor` arrives from now on, not even one on its way.
    pub fn unwatch(&mut self, actor: &(impl Watchable + ?Sized)) {
        if let Some(actor) = actor.watched() {
            self.end_watch(&actor);
        }
    }

    fn end_watch(&mut self, actor: &AnyRef) {
        let watched =
            self.private(|private| private.extras.as_mut().and_then(|extras| extras.watching.remove(actor)));
        if let Some(message) = watched {
            drop_guarded(message);
            let _ = actor.send_system(Control::Unwatch(self.me.any_local()));
        }
    }

    pub(crate) fn unwatch_all(&mut self) {
        let watched = self
            .private(|private| private.extras.as_mut().map(|extras| std::mem::take(&mut extras.watching)));
        let me = self.me.any_local();
        for (actor, message) in watched.into_iter().flatten() {
            drop_guarded(message);
            let _ = actor.send_system(Control::Unwatch(me.clone()));
        }
    }

    // ---- timers

    /// Sends `message` to this actor once, `delay` from now, never early. It takes its place in the
    /// mailbox when the time has come. Cancelled when the actor restarts or stops.
    pub fn after(&mut self, delay: Duration, message: M) -> TimerKey {
        let due = self.now().saturating_add(delay);
        self.arm(due, What::Once(message))
    }

    /// Sends a message made by `make` every `period` from now on, at a fixed rate: a tick that is handled
    /// late does not delay the next one, and ticks that are missed altogether are skipped: the next one is set
    /// when this one is handled. So after a [`ManualClock`](crate::ManualClock) was moved, let the actor handle
    /// its tick (an ask will show) before moving it again.
    ///
    /// A period below 1 millisecond is taken as 1 millisecond.
    ///
    /// ```
    /// use pointsman::ManualClock;
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// struct Sweeper {
    ///     sweeps: u32,
    /// }
    /// enum SweeperMsg {
    ///     Sweep,
    ///     Count(ReplyTo<u32>),
    /// }
    /// impl Actor for Sweeper {
    ///     type Message = SweeperMsg;
    ///     fn started(&mut self, ctx: &mut Context<SweeperMsg>) -> Done {
    ///         ctx.every(Duration::from_secs(60), || SweeperMsg::Sweep);
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, message: SweeperMsg, _: &mut Context<SweeperMsg>) -> Done {
    ///         match message {
    ///             SweeperMsg::Sweep => self.sweeps += 1,
    ///             SweeperMsg::Count(reply_to) => drop(reply_to.send(self.sweeps)),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let system = System::builder("house").clock(clock.clone()).build()?;
    /// let sweeper = system.spawn(|| Sweeper { sweeps: 0 })?;
    /// for sweeps in 0..3 {
    ///     assert_eq!(sweeper.ask_with(SweeperMsg::Count).wait()?, sweeps);
    ///     clock.advance(Duration::from_secs(60));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn every(&mut self, period: Duration, make: impl FnMut() -> M + Send + 'static) -> TimerKey {
        let period = period.max(Duration::from_millis(1));
        let due = self.now().saturating_add(period);
        self.arm(due, What::Every { period, due, make: Box::new(make) })
    }

    fn arm(&mut self, due: Duration, what: What<M>) -> TimerKey {
        let number = self.extras(|extras| {
            extras.timers.next += 1;
            extras.timers.next
        });
        let handle = self.core().system.timers().tick_at(due, self.me.any_local(), number);
        self.extras(|extras| extras.timers.armed.insert(number, Timer { what, handle }));
        TimerKey(number)
    }

    /// Cancels a timer. True if its message will not arrive, although it may have been on its way; false if
    /// it has arrived already (or, for a repeated one, was cancelled before).
    pub fn cancel(&mut self, timer: TimerKey) -> bool {
        let armed = self.private(|private| {
            private.extras.as_mut().and_then(|extras| extras.timers.armed.remove(&timer.0))
        });
        let Some(armed) = armed else { return false };
        self.core().system.timers().cancel(armed.handle);
        drop_guarded(armed.what);
        true
    }

    pub(crate) fn cancel_all_timers(&mut self) {
        let armed = self.private(|private| {
            private.extras.as_mut().map(|extras| std::mem::take(&mut extras.timers.armed))
        });
        for (_, timer) in armed.into_iter().flatten() {
            self.core().system.timers().cancel(timer.handle);
            drop_guarded(timer.what);
        }
    }

    /// The message of a timer that has fired; `None` if it was cancelled meanwhile.
    ///
    /// # Errors
    ///
    /// What makes the messages of a repeated timer has panicked; the timer is gone.
    pub(crate) fn fired(&mut self, number: u64) -> Result<Option<M>, Failure> {
        let armed = self.private(|private| private.extras.as_mut()?.timers.armed.remove(&number));
        let Some(timer) = armed else { return Ok(None) };
        match timer.what {
            What::Once(message) => Ok(Some(message)),
            What::Every { period, due, mut make } => {
                let made = match guarded(|| Ok(make())) {
                    Ok(made) => made,
                    Err(failure) => {
                        drop_guarded(make);
                        return Err(failure);
                    }
                };
                // The next multiple of the period that lies ahead.
                let now = self.now();
                let into_period = now.saturating_sub(due).as_nanos() % period.as_nanos();
                let due = now.saturating_add(period - from_nanos(into_period));
                let handle = self.core().system.timers().tick_at(due, self.me.any_local(), number);
                let what = What::Every { period, due, make };
                self.extras(|extras| extras.timers.armed.insert(number, Timer { what, handle }));
                Ok(Some(made))
            }
        }
    }

    // ---- asking

    /// Asks `target`; the answer arrives here as the message that `wrap` makes of it.
    ///
    /// Nothing waits: other messages are handled meanwhile. The answer is `Err` when the last reply port is
    /// dropped unanswered, as when the target stops or panics. For a deadline use
    /// [`ask_within`](Self::ask_within).
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Stock(String);
    /// impl Request for Stock {
    ///     type Reply = u32;
    /// }
    ///
    /// struct Warehouse;
    /// impl Actor for Warehouse {
    ///     type Message = Call<Stock>;
    ///     fn receive(&mut self, call: Call<Stock>, _: &mut Context<Call<Stock>>) -> Done {
    ///         call.answer(|Stock(article)| article.len() as u32);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// enum ShopMsg {
    ///     Order(String, ReplyTo<bool>),
    ///     Stocked(Result<u32, AskError>, ReplyTo<bool>),
    /// }
    ///
    /// struct Shop {
    ///     warehouse: ActorRef<Call<Stock>>,
    /// }
    /// impl Actor for Shop {
    ///     type Message = ShopMsg;
    ///     fn receive(&mut self, message: ShopMsg, ctx: &mut Context<ShopMsg>) -> Done {
    ///         match message {
    ///             // What the answer will be needed for travels in the closure.
    ///             ShopMsg::Order(article, customer) => {
    ///                 ctx.ask(&self.warehouse, Stock(article), move |stock| ShopMsg::Stocked(stock, customer));
    ///             }
    ///             ShopMsg::Stocked(stock, customer) => {
    ///                 let _ = customer.send(stock.is_ok_and(|count| count > 0));
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("trade").build()?;
    /// let warehouse = system.actor("warehouse").spawn(|| Warehouse)?;
    /// let shop = system.actor("shop").spawn(move || Shop { warehouse: warehouse.clone() })?;
    /// assert!(shop.ask_with(|customer| ShopMsg::Order("apples".into(), customer)).wait()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ask<N, Q>(
        &mut self,
        target: &ActorRef<N>,
        request: Q,
        wrap: impl FnOnce(Result<Q::Reply, AskError>) -> M + Send + 'static,
    ) where
        N: From<Call<Q>> + Send + 'static,
        Q: Request,
    {
        Ask::to_actor(target, request, ActorRef::clone(&self.me), None, wrap);
    }

    /// As [`ask`](Self::ask), with a deadline: after `deadline` the answer is [`AskError::Timeout`], and
    /// one that comes later is dropped, counted as late.
    pub fn ask_within<N, Q>(
        &mut self,
        target: &ActorRef<N>,
        request: Q,
        deadline: Duration,
        wrap: impl FnOnce(Result<Q::Reply, AskError>) -> M + Send + 'static,
    ) where
        N: From<Call<Q>> + Send + 'static,
        Q: Request,
    {
        Ask::to_actor(target, request, ActorRef::clone(&self.me), Some(deadline), wrap);
    }

    // ---- blocking

    /// Runs code that waits for something outside: other actors that wait for this worker are handed to
    /// other workers first. Better for more than the odd call: the blocking dispatcher.
    pub fn blocking<R>(&self, run: impl FnOnce() -> R) -> R {
        crate::scheduler::blocking(run)
    }
}

/// A duration that is known to fit.
fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
}

impl<M: Send + 'static> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl AnyRef {
    /// Tells this actor that another one has ended. The notice takes its place behind what is queued.
    pub(crate) fn notify_terminated(&self, actor: AnyRef) {
        let _ = self.send_positioned(Control::Terminated(Terminated { actor }));
    }
}
