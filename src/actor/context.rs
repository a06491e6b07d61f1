//! The context: the access of a running actor to itself and the system. The timers are in `timers.rs`, the watches in
//! `watch.rs`.

use crate::actor::cell::Owned;
use crate::actor::private::{Extras, Private};
use crate::ask::ask::Ask;
use crate::ask::error::AskError;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{ActorCore, Header};
use crate::core::ledger::ThreadCounters;
use crate::core::system::SystemRef;
use crate::path::actor_path::ActorPath;
use crate::sync::EXPLORED;
use crate::sync::atomic::Ordering;
use std::any::TypeId;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::Duration;

/// The access of a running actor to itself, its children, timers and watches.
///
/// Every hook and handler of an [`Actor`](crate::Actor) gets it. `M` is the actor's message type, so wrappers and tests
/// can pass a context on without naming the actor's own type.
pub struct Context<M: Send + 'static> {
    owned: NonNull<Owned<M>>,
    /// Borrows the life's own reference: never dropped.
    me: ManuallyDrop<ActorRef<M>>,
}

impl<M: Send + 'static> Context<M> {
    /// Makes the context of a turn of the actor behind `header`, which outlives the context.
    pub(crate) fn new(header: NonNull<Header>, owned: NonNull<Owned<M>>) -> Self {
        // SAFETY: not a counted reference, but it is never dropped, and the turn that owns this context
        // ends before the life's own reference is given back.
        let me = ManuallyDrop::new(unsafe { ActorRef::from_header(header) });
        Self { owned, me }
    }

    pub(crate) fn core(&self) -> &ActorCore {
        // SAFETY: the cell outlives the turn, and the core is only read.
        unsafe { &(*self.owned.as_ptr()).local.core }
    }

    /// Reads or changes the data that only the owner touches. `act` runs no user code.
    pub(crate) fn private<R>(&self, act: impl FnOnce(&mut Private<M>) -> R) -> R {
        // SAFETY: a context exists only within a turn, which holds the ownership token, and `act` runs
        // nothing that comes back here.
        unsafe { &(*self.owned.as_ptr()).private }.with_mut(|private| act(unsafe { &mut *private }))
    }

    pub(crate) fn extras<R>(&self, act: impl FnOnce(&mut Extras<M>) -> R) -> R {
        self.private(|private| act(private.extras()))
    }

    /// The counters of this thread in the system's ledger.
    pub(crate) fn row(&self) -> &ThreadCounters {
        self.core().system.ledger().for_this_thread()
    }

    /// Adds to the number of messages that this actor has handled without taking them from its mailbox; messages that it
    /// has taken and not handled are subtracted.
    #[cold]
    pub(crate) fn count_beside(&self, more: i64) {
        // Models have no use for the number, and each access makes them larger.
        if EXPLORED {
            return;
        }
        let beside = &self.core().children;
        self.extras(|extras| {
            if extras.handled_beside.is_none() {
                extras.handled_beside = beside.handled_beside();
            }
            if let Some(counter) = &extras.handled_beside {
                // Ordering: Relaxed, both; a statistic that this turn alone writes.
                let before = counter.load(Ordering::Relaxed);
                counter.store(before.wrapping_add_signed(more), Ordering::Relaxed);
            }
        });
    }

    /// Makes a dead letter of the message being handled, which has been counted as handled.
    pub(crate) fn handled_to_dead_letter(&self, message: M) {
        let row = self.row();
        row.subtract_handled(1);
        self.count_beside(-1);
        self.core().system.dead_letter(row, &self.me.any_local(), message);
    }

    /// Returns whether the actor's state is of this type.
    pub(crate) fn is_context_of(&self, actor: TypeId) -> bool {
        // SAFETY: the cell outlives the turn.
        (unsafe { self.me.0.as_ref() }.vtable.actor_type)() == Some(actor)
    }

    // ---- itself

    /// A reference to this actor. Clone it to pass it on.
    #[doc(alias = "myself")]
    #[doc(alias = "actor_ref")]
    #[doc(alias = "self_ref")]
    pub fn me(&self) -> &ActorRef<M> {
        &self.me
    }

    /// The path of this actor.
    pub fn path(&self) -> ActorPath {
        self.core().path()
    }

    /// The actor that created this actor; `None` for the root alone.
    pub fn parent(&self) -> Option<&AnyActorRef> {
        let parent = self.core().parent.as_ref()?;
        Some(parent.core().parent_elsewhere().unwrap_or(parent))
    }

    /// This actor's number in the pool that made it, from 0; 0 for other actors.
    pub fn routee_index(&self) -> usize {
        self.core().routee_index() as usize
    }

    /// The system that this actor lives in.
    pub fn system(&self) -> SystemRef {
        SystemRef::new(self.core().system.clone())
    }

    /// Time since the system's start by the system's clock.
    pub fn now(&self) -> Duration {
        self.core().system.now()
    }

    /// Ends this actor after the message being handled. The messages left in its mailbox become dead letters.
    pub fn stop(&self) {
        self.me.stop();
    }

    // ---- children
    /// The children that have not ended.
    pub fn children(&self) -> Vec<AnyActorRef> {
        self.core().children.all()
    }

    /// The child of this name.
    pub fn child(&self, name: &str) -> Option<AnyActorRef> {
        self.core().children.get(name)
    }

    /// Tells all children to stop, and takes back watches of them: no notice about a child that ends by this call
    /// reaches a new state. A notice about a child that had ended just before may. A restart
    /// [waits](crate::Actor::restarting) until the children have ended.
    pub fn stop_children(&mut self) {
        for child in self.core().children.all() {
            self.end_watch(&child);
            child.stop();
        }
    }

    /// Tells a single child to stop, as [`AnyActorRef::stop`] does. Returns whether the given actor is a child of this
    /// actor that has not ended. An actor that is no child is left alone. A second call for the same child changes
    /// nothing.
    ///
    /// The name of the child is free when the child has ended. A restart of this actor
    /// [waits](crate::Actor::restarting) for that end. A [watch](Self::watch) of the child stays, so this actor can
    /// wait for the end. If the new state must not get the notice, [unwatch](Self::unwatch) the child first, as
    /// [`stop_children`](Self::stop_children) does. (Akka's `context.stop(child)`.)
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = ();
    /// #     fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult { Ok(()) }
    /// # }
    ///
    /// /// Keeps its archive over a restart, and has a new worker.
    /// struct Office;
    /// impl Actor for Office {
    ///     type Message = ();
    ///     fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
    ///         ctx.actor("worker").spawn(|| Worker)?;
    ///         if ctx.child("archive").is_none() {
    ///             ctx.actor("archive").spawn(|| Worker)?;
    ///         }
    ///         Ok(())
    ///     }
    ///     fn restarting(&mut self, _: &Failure, ctx: &mut Context<()>) -> HandlerResult {
    ///         if let Some(worker) = ctx.child("worker") {
    ///             ctx.stop_child(&worker);
    ///         }
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
    ///         Err(Failure::msg("made anew"))
    ///     }
    /// }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("firm").build()?;
    /// # system.spawn(|| Office)?.tell(());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop_child(&self, child: impl Into<Option<AnyActorRef>>) -> bool {
        let child: Option<AnyActorRef> = child.into();
        let child = child.filter(|child| self.core().children.contains(child));
        child.inspect(AnyActorRef::stop).is_some()
    }

    // ---- asking

    /// Asks `target`. The answer arrives at this actor as the message that `wrap` makes of it.
    ///
    /// The actor does not wait: it handles other messages meanwhile. The answer is `Err` when the last reply port is
    /// dropped unanswered, for example because the target stops or panics. For a deadline use
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
    ///     fn receive(&mut self, call: Call<Stock>, _: &mut Context<Call<Stock>>) -> HandlerResult {
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
    ///     fn receive(&mut self, message: ShopMsg, ctx: &mut Context<ShopMsg>) -> HandlerResult {
    ///         match message {
    ///             // The closure carries the data that the answer is needed for.
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

    /// Asks as [`ask`](Self::ask) does, with a deadline: after `deadline` the answer is [`AskError::Timeout`], and a
    /// later reply is dropped and counted as late.
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

    /// Runs code that waits for something outside the actors. Tasks that wait for this worker are handed to other
    /// workers first. For more than the occasional call, use the blocking dispatcher.
    pub fn blocking<R>(&self, run: impl FnOnce() -> R) -> R {
        crate::scheduler::current::blocking(run)
    }
}

impl<M: Send + 'static> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("path", &self.path()).finish_non_exhaustive()
    }
}
