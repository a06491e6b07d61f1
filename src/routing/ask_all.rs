//! Asking every routee, with an answer of each.
//!
//! Each routee gets a message with a reply port of its own, its *place*. A place is filled once: by the first reply
//! through its port, by the end of the port, or by the refusal of the message. The asker waits for a single signal: all
//! places are filled. At the signal, or when its time is up, the asker takes the replies that there are, so no reply
//! that has come is lost.
//!
//! While it sends the messages, the sender holds an additional place. Without that, the end of the places so far would
//! be taken for the end of all. The sender gives its place back also when user code unwinds.
//!
//! No user code runs under the lock.

use crate::actor::context::Context;
use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_all::{Answers, AskAll};
use crate::ask::ask_clock::{AskClock, Asked};
use crate::ask::error::{AskError, Outcome};
use crate::ask::reply::{AnsweredBy, Call, ReplyDestination, ReplyTo, Request};
use crate::ask::to_actor::Bound;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::deferred_send::{DeferredSend, put_off};
use crate::core::pending_send::Watch;
use crate::routing::logic::RoutingLogic;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::routing::router::Router;
use crate::routing::router_info::RouterInfo;
use crate::routing::router_value::RouterValue;
use crate::sync::{Mutex, lock};
use crate::util::panic::{Guarded, drop_guarded};
use crate::util::reclaim;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The answer of a routee: the routee that was asked, and its reply.
type RouteeReply<M, R> = (Routee<M>, Result<R, AskError>);

/// A router whose routees can all be asked: a [`Router`] or a [`RouterValue`].
trait EachRoutee<M: Send + 'static> {
    fn info(&self) -> &RouterInfo;

    /// Shows the routees of this moment; `None` if the router has stopped.
    fn show(&self, act: &mut dyn FnMut(Option<&Routees<M>>));
}

impl<M: Send + 'static> EachRoutee<M> for Router<M> {
    fn info(&self) -> &RouterInfo {
        &self.shared.info
    }

    fn show(&self, act: &mut dyn FnMut(Option<&Routees<M>>)) {
        if self.is_closed() {
            return act(None);
        }
        {
            let section = reclaim::section();
            act(Some(self.shared.table.read(&section)));
        }
        if let Some(resizing) = &self.shared.info.resizing {
            resizing.sent(&self.shared.info.head);
        }
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> EachRoutee<M> for RouterValue<M, L> {
    fn info(&self) -> &RouterInfo {
        self.router_info()
    }

    fn show(&self, act: &mut dyn FnMut(Option<&Routees<M>>)) {
        act(Some(self.routees()));
    }
}

impl<M: Send + 'static> Router<M> {
    /// Asks every routee, whatever the logic: each gets a copy of the request with a reply port of its own, and the
    /// answers are gathered. The counterpart of [`broadcast`](Self::broadcast) for requests.
    ///
    /// The result has each routee, in the order of the table, with its reply, or the error that explains why there is
    /// none and names the routee, if that stands anywhere: [`Undeliverable`](AskError::Undeliverable) if it did not take
    /// the request, [`NoReply`](AskError::NoReply) if it dropped the reply port, [`Timeout`](AskError::Timeout) if it has
    /// not answered by the limit; from a router among the routees also [`NoRoutees`](AskError::NoRoutees) and
    /// [`AllFailed`](AskError::AllFailed).
    ///
    /// A routee that is a router sends the request on by its own logic and answers with the first reply;
    /// so does a routee that stands for several actors (a path with wildcards, [`Routee::several`]).
    ///
    /// In an actor, which must not wait, use [`Context::ask_all`](crate::Context::ask_all).
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// #[derive(Clone)]
    /// struct Stored;
    /// impl Request for Stored {
    ///     type Reply = u64;
    /// }
    ///
    /// struct Shard(u64);
    /// impl Actor for Shard {
    ///     type Message = Call<Stored>;
    ///     fn receive(&mut self, call: Call<Stored>, _: &mut Context<Call<Stored>>) -> HandlerResult {
    ///         call.answer(|_| self.0);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let shards = system.router("shards").pool(3, |ctx| Shard(ctx.routee_index() as u64)).spawn()?;
    /// let mut total = 0;
    /// for (shard, reply) in shards.ask_all(Stored).within(Duration::from_secs(1)).wait()? {
    ///     match reply {
    ///         Ok(stored) => total += stored,
    ///         Err(error) => eprintln!("{}: {error}", shard.identity()),
    ///     }
    /// }
    /// assert_eq!(total, 0 + 1 + 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Delivery
    ///
    /// Each copy is a delivery of its own. A copy that its routee does not take, or leaves behind when it ends, is a
    /// dead letter, as of a broadcast. The request is a dead letter where the router has no routees or has stopped. In
    /// [`Ledger::asks`](crate::Ledger::asks) all copies together are a single ask. That ask has timed out if any answer
    /// is missing at the limit.
    #[doc(alias = "RouteeReply")]
    pub fn ask_all<Q>(&self, request: Q) -> AskAll<RouteeReply<M, Q::Reply>>
    where
        M: From<Call<Q>>,
        Q: Request + Clone,
    {
        ask_each(self, |reply_to| M::from(Call::new(request.clone(), reply_to)))
    }

    /// As [`ask_all`](Self::ask_all), with a message that is made around each reply port.
    pub fn ask_all_with<R: Send + 'static, N: Into<M>>(
        &self,
        mut make: impl FnMut(ReplyTo<R>) -> N,
    ) -> AskAll<RouteeReply<M, R>> {
        ask_each(self, |reply_to| make(reply_to).into())
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> RouterValue<M, L> {
    /// Asks every routee, whatever the logic, and gathers the answers: as [`Router::ask_all`]. In an actor, which must
    /// not wait, use [`ask_all_in`](Self::ask_all_in).
    pub fn ask_all<Q>(&self, request: Q) -> AskAll<RouteeReply<M, Q::Reply>>
    where
        M: From<Call<Q>>,
        Q: Request + Clone,
    {
        ask_each(self, |reply_to| M::from(Call::new(request.clone(), reply_to)))
    }

    /// As [`ask_all`](Self::ask_all), with a message that is made around each reply port.
    pub fn ask_all_with<R: Send + 'static, N: Into<M>>(
        &self,
        mut make: impl FnMut(ReplyTo<R>) -> N,
    ) -> AskAll<RouteeReply<M, R>> {
        ask_each(self, |reply_to| make(reply_to).into())
    }

    /// Asks every routee from an actor; the answers arrive there as the message that `wrap` makes of them, as of
    /// [`Context::ask_all`], or with a limit of [`Context::ask_all_within`].
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::{RoundRobin, Routee, RouterValue};
    /// # #[derive(Clone)]
    /// # struct Stored;
    /// # impl Request for Stored {
    /// #     type Reply = u64;
    /// # }
    ///
    /// struct Clerk {
    ///     shards: RouterValue<Call<Stored>, RoundRobin>,
    /// }
    /// impl Actor for Clerk {
    ///     type Message = Result<Vec<(Routee<Call<Stored>>, Result<u64, AskError>)>, AskError>;
    ///     fn started(&mut self, ctx: &mut Context<Self::Message>) -> HandlerResult {
    ///         self.shards.ask_all_in(ctx, Stored, None, |all| all);
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, all: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
    ///         println!("{} shards", all?.len());
    ///         Ok(())
    ///     }
    /// }
    /// ```
    #[doc(alias = "EachRoutee")]
    pub fn ask_all_in<N, Q>(
        &self,
        ctx: &mut Context<N>,
        request: Q,
        limit: Option<Duration>,
        wrap: impl FnOnce(Result<Vec<RouteeReply<M, Q::Reply>>, AskError>) -> N + Send + 'static,
    ) where
        N: Send + 'static,
        M: From<Call<Q>>,
        Q: Request + Clone,
    {
        ask_each_in(ctx, self, request, limit, wrap);
    }
}

impl<N: Send + 'static> Context<N> {
    /// Asks every routee of a router; the answers arrive here as the message that `wrap` makes of them. Otherwise as
    /// [`Router::ask_all`]. The entries come when every routee has answered or can answer no more; for a limit use
    /// [`ask_all_within`](Self::ask_all_within), and for a router value [`RouterValue::ask_all_in`].
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::Routee;
    ///
    /// #[derive(Clone)]
    /// struct Stored;
    /// impl Request for Stored {
    ///     type Reply = u64;
    /// }
    /// # struct Shard;
    /// # impl Actor for Shard {
    /// #     type Message = Call<Stored>;
    /// #     fn receive(&mut self, call: Call<Stored>, _: &mut Context<Call<Stored>>) -> HandlerResult {
    /// #         call.answer(|_| 7);
    /// #         Ok(())
    /// #     }
    /// # }
    ///
    /// enum Inventory {
    ///     Take(ReplyTo<u64>),
    ///     Taken(Result<Vec<(Routee<Call<Stored>>, Result<u64, AskError>)>, AskError>, ReplyTo<u64>),
    /// }
    ///
    /// struct Clerk {
    ///     shards: Router<Call<Stored>>,
    /// }
    /// impl Actor for Clerk {
    ///     type Message = Inventory;
    ///     fn receive(&mut self, message: Inventory, ctx: &mut Context<Inventory>) -> HandlerResult {
    ///         match message {
    ///             Inventory::Take(asker) => {
    ///                 ctx.ask_all(&self.shards, Stored, move |all| Inventory::Taken(all, asker));
    ///             }
    ///             Inventory::Taken(all, asker) => {
    ///                 let total = all?.into_iter().filter_map(|(_, reply)| reply.ok()).sum();
    ///                 let _ = asker.send(total);
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let shards = system.router("shards").pool(3, |_| Shard).spawn()?;
    /// let clerk = system.spawn(move || Clerk { shards: shards.clone() })?;
    /// assert_eq!(clerk.ask_with(Inventory::Take).wait()?, 21);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ask_all<M, Q>(
        &mut self,
        router: &Router<M>,
        request: Q,
        wrap: impl FnOnce(Result<Vec<RouteeReply<M, Q::Reply>>, AskError>) -> N + Send + 'static,
    ) where
        M: From<Call<Q>> + Send + 'static,
        Q: Request + Clone,
    {
        ask_each_in(self, router, request, None, wrap);
    }

    /// As [`ask_all`](Self::ask_all), with a limit: the routees that have not answered after `limit` have the entry
    /// [`AskError::Timeout`], and their replies are late. The limit bounds the wait for room in full mailboxes, too, where
    /// this thread may wait. With a limit of zero nothing is sent: [`AskError::NoTime`].
    pub fn ask_all_within<M, Q>(
        &mut self,
        router: &Router<M>,
        request: Q,
        limit: Duration,
        wrap: impl FnOnce(Result<Vec<RouteeReply<M, Q::Reply>>, AskError>) -> N + Send + 'static,
    ) where
        M: From<Call<Q>> + Send + 'static,
        Q: Request + Clone,
    {
        ask_each_in(self, router, request, Some(limit), wrap);
    }
}

fn ask_each<M: Send + 'static, R: Send + 'static>(
    target: &impl EachRoutee<M>,
    make: impl FnMut(ReplyTo<R>) -> M,
) -> AskAll<RouteeReply<M, R>> {
    let (asker, mut ask) = ask::begin(AskClock::Target(target.info().head.clone()));
    let gather = RouteeReplyCollector::new(asker);
    if let Some(unsent) = send_to_each(target, &gather, make) {
        ask::put_off(&mut ask, unsent);
    }
    AskAll::new(ask, gather)
}

fn ask_each_in<N, M, Q>(
    ctx: &Context<N>,
    target: &impl EachRoutee<M>,
    request: Q,
    limit: Option<Duration>,
    wrap: impl FnOnce(Result<Vec<RouteeReply<M, Q::Reply>>, AskError>) -> N + Send + 'static,
) where
    N: Send + 'static,
    M: From<Call<Q>> + Send + 'static,
    Q: Request + Clone,
{
    let gather = RouteeReplyCollector::empty();
    let taken = gather.clone();
    let wrap = move |told| wrap(taken.gathered(told));
    let bound = Bound::new(ctx.me(), limit);
    let asked = Asked::Actor(target.info().head.clone());
    let Some((asker, mut handle)) = Ask::port_to_actor(ctx.me().clone(), asked, limit, wrap) else { return };
    lock(&gather.state).asker = Some(asker);
    let make = |reply_to| M::from(Call::new(request.clone(), reply_to));
    let Some(unsent) = send_to_each(target, &gather, make) else { return };
    let in_vain = unsent.wait(bound.until(), &mut handle);
    if let Some(limit) = limit.filter(|_| in_vain.is_late()) {
        // Times out before the requests are dropped: the drop of their ports would fill the places with `NoReply`.
        handle.time_out(limit);
    }
}

/// Sends each routee its request. Returns the requests that wait for room.
fn send_to_each<M: Send + 'static, R: Send + 'static>(
    target: &impl EachRoutee<M>,
    gather: &StdArc<RouteeReplyCollector<M, R>>,
    mut make: impl FnMut(ReplyTo<R>) -> M,
) -> Option<DeferredSend> {
    let info = target.info();
    let mut unsent = None;
    target.show(&mut |routees| {
        let cx = RouteContext::of_new_message(info);
        match routees.filter(|routees| !routees.is_empty()) {
            Some(routees) => send_copies(routees, gather, &mut make, &cx, &mut unsent),
            None => {
                let (error, reason) = match routees {
                    Some(_) => (AskError::no_routees(), DeadLetterReason::NoRoutee),
                    None => (AskError::undeliverable(), DeadLetterReason::Stopped),
                };
                gather.fail(error);
                if routees.is_some() {
                    cx.nobody_took();
                }
                cx.count_dead_letter(make(ReplyTo::closed()), reason);
            }
        }
        cx.settle();
    });
    unsent
}

fn send_copies<M: Send + 'static, R: Send + 'static>(
    routees: &Routees<M>,
    gather: &StdArc<RouteeReplyCollector<M, R>>,
    make: &mut impl FnMut(ReplyTo<R>) -> M,
    cx: &RouteContext<'_>,
    unsent: &mut Option<DeferredSend>,
) {
    let mut hold = RouteeReplyCollector::begin(gather, routees);
    cx.copies(routees.len());
    let mut taken = 0;
    for routee in routees.iter() {
        let index = hold.made;
        let message = make(hold.port());
        // Each send puts off its own wait, also where making the message sends messages itself.
        let (sent, put_off) = put_off(|| cx.deliver(routee.actor(), message));
        if let Some(put_off) = put_off {
            let waits = Waits { gather: gather.clone(), index };
            let put_off = put_off.returning_by(|| routee.actor().way_back()).watched_by(waits);
            let waiting = put_off.counted_by(Some(cx.head().core().system.clone()));
            match unsent {
                Some(all) => all.join(waiting),
                None => *unsent = Some(waiting),
            }
        }
        match sent {
            Ok(()) => taken += 1,
            Err(refused) => {
                // Fills the place before the message is dropped: the drop of its port would fill it with `NoReply`.
                drop_guarded(gather.fill(index, Err(AskError::refused(&refused))));
                cx.refuse_copy(routee.actor(), refused);
            }
        }
    }
    if taken == 0 {
        cx.nobody_took_a_copy(routees);
    }
}

/// The request of a routee, while it waits for room.
struct Waits<M, R> {
    gather: StdArc<RouteeReplyCollector<M, R>>,
    index: usize,
}

impl<M: Send + 'static, R: Send + 'static> Watch for Waits<M, R> {
    fn is_refused(&self, reason: DeadLetterReason) {
        // Fills the place before the request is dropped: the drop of its port would fill it with `NoReply`.
        drop_guarded(self.gather.fill(self.index, Err(AskError::refused_for(reason))));
    }
}

/// Collects the answers that the routees have given so far.
struct RouteeReplyCollector<M, R> {
    state: Mutex<State<M, R>>,
}

struct State<M, R> {
    routees: StdArc<[Routee<M>]>,
    /// One for each routee.
    places: Vec<Option<Guarded<Outcome<R>>>>,
    /// Places that are not filled, and the sender's hold.
    open: usize,
    /// `None` after the asker has been told.
    asker: Option<ReplyTo<()>>,
}

impl<M: Send + 'static, R: Send + 'static> Answers<RouteeReply<M, R>> for RouteeReplyCollector<M, R> {
    fn gathered(&self, told: Result<(), AskError>) -> Result<Vec<RouteeReply<M, R>>, AskError> {
        match told {
            // All places are filled.
            Ok(()) => Ok(self.take_all(&AskError::no_reply())),
            Err(AskError::Timeout { after, .. }) => Ok(self.take_all(&AskError::timeout(after))),
            Err(AskError::Stalled) => Ok(self.take_all(&AskError::Stalled)),
            Err(error) => Err(error),
        }
    }
}

impl<M: Send + 'static, R: Send + 'static> RouteeReplyCollector<M, R> {
    fn new(asker: ReplyTo<()>) -> StdArc<Self> {
        let gather = Self::empty();
        lock(&gather.state).asker = Some(asker);
        gather
    }

    fn empty() -> StdArc<Self> {
        let state = State { routees: StdArc::new([]), places: Vec::new(), open: 0, asker: None };
        StdArc::new(Self { state: Mutex::new(state) })
    }

    /// Makes a place for each routee.
    fn begin(this: &StdArc<Self>, routees: &Routees<M>) -> SendGuard<M, R> {
        let mut state = lock(&this.state);
        state.routees = routees.share();
        state.places = routees.iter().map(|_| None).collect();
        state.open = routees.len() + 1;
        drop(state);
        SendGuard { gather: this.clone(), made: 0 }
    }

    /// Ends the ask before any routee was asked.
    fn fail(&self, error: AskError) {
        let asker = lock(&self.state).asker.take();
        if let Some(asker) = asker {
            asker.fail(error);
        }
    }

    /// Fills a place. An outcome that comes too late is handed back.
    fn fill(&self, index: usize, outcome: Outcome<R>) -> Result<(), Outcome<R>> {
        let told = {
            let mut state = lock(&self.state);
            if !state.asker.as_ref().is_some_and(ReplyTo::wanted) {
                return Err(outcome);
            }
            match state.places.get_mut(index) {
                Some(place @ None) => *place = Some(Guarded::new(outcome)),
                _ => return Err(outcome),
            }
            state.close_attempts(1)
        };
        tell(told);
        Ok(())
    }

    /// Takes the outcomes that there are; `missing` is the error of the routees that have not answered.
    fn take_all(&self, missing: &AskError) -> Vec<RouteeReply<M, R>> {
        let (asker, routees, places) = {
            let mut state = lock(&self.state);
            let routees = std::mem::replace(&mut state.routees, StdArc::new([]));
            (state.asker.take(), routees, std::mem::take(&mut state.places))
        };
        drop(asker);
        let entry = |(routee, place): (&Routee<M>, Option<Guarded<Outcome<R>>>)| {
            let mut reply = place.map_or_else(|| Err(missing.clone()), Guarded::into_inner);
            if let Err(error) = &mut reply {
                // Does not ask `any`, which may be user code.
                error.note_target(|| Some(routee.actor().place()?.path()));
            }
            (routee.clone(), reply)
        };
        routees.iter().zip(places).map(entry).collect()
    }
}

impl<M, R> State<M, R> {
    /// Returns the asker if no place is open any more, to be told.
    fn close_attempts(&mut self, count: usize) -> Option<ReplyTo<()>> {
        self.open -= count;
        if self.open == 0 { self.asker.take() } else { None }
    }
}

/// Without the lock. An asker whose time is up takes what there is.
fn tell(asker: Option<ReplyTo<()>>) {
    if let Some(asker) = asker {
        let _ = asker.deliver((), None);
    }
}

/// The hold of the sender.
struct SendGuard<M: Send + 'static, R: Send + 'static> {
    gather: StdArc<RouteeReplyCollector<M, R>>,
    /// Counts the ports that were made so far.
    made: usize,
}

impl<M: Send + 'static, R: Send + 'static> SendGuard<M, R> {
    fn port(&mut self) -> ReplyTo<R> {
        let index = self.made;
        self.made += 1;
        ReplyTo::to_own_sink(RouteeReplyPort { gather: self.gather.clone(), index })
    }
}

impl<M: Send + 'static, R: Send + 'static> Drop for SendGuard<M, R> {
    fn drop(&mut self) {
        let told = {
            let mut state = lock(&self.gather.state);
            // The sender has unwound before these routees were asked. The list is empty if the asker has taken all
            // meanwhile.
            let unasked = state.places.len().saturating_sub(self.made);
            state
                .places
                .iter_mut()
                .skip(self.made)
                .for_each(|place| *place = Some(Guarded::new(Err(AskError::no_reply()))));
            state.close_attempts(unasked + 1)
        };
        tell(told);
    }
}

/// The reply port of one routee.
struct RouteeReplyPort<M: Send + 'static, R: Send + 'static> {
    gather: StdArc<RouteeReplyCollector<M, R>>,
    index: usize,
}

impl<M: Send + 'static, R: Send + 'static> ReplyDestination<R> for RouteeReplyPort<M, R> {
    fn take(&self, outcome: Outcome<R>, _: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        self.gather.fill(self.index, outcome)
    }

    fn wanted(&self) -> bool {
        let state = lock(&self.gather.state);
        matches!(state.places.get(self.index), Some(None))
            && state.asker.as_ref().is_some_and(ReplyTo::wanted)
    }
}
