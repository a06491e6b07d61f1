//! What a routing logic is.

use super::reference::About;
use super::{Routee, Routees, RouterSettings};
use crate::actor::{ActorPath, SystemRef};
use crate::actor_ref::{Accepted, ActorRef, AnyRef, DeadLetterReason, Load, RouterId};
use crate::error::SendError;
use crate::ledger::Row;
use std::any::Any;
use std::cell::Cell;
use std::fmt;

/// What a logic answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pick {
    /// The routee of this index.
    One(usize),
    /// Nobody: the message becomes a dead letter, or comes back to `try_tell`.
    None,
}

/// Chooses a routee for each message.
///
/// [`select`](Self::select) is all that most logics write:
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{Pick, RouteContext, Routees, RoutingLogic};
///
/// /// Even numbers left, odd numbers right.
/// struct ByParity;
///
/// impl RoutingLogic<u64> for ByParity {
///     fn select(&self, number: &u64, routees: &Routees<u64>, _: &RouteContext) -> Pick {
///         match routees.len() {
///             0 => Pick::None,
///             n => Pick::One(*number as usize % 2 % n),
///         }
///     }
/// }
/// ```
///
/// One that picks several routees, or makes the routee itself, overrides [`route`](Self::route) and delivers by
/// [`RouteContext::deliver_to_each`] or [`RouteContext::deliver`]: see the [guide](crate::guide::routers#a-logic-of-your-own).
///
/// # Concurrency
///
/// Everything here but [`index`](Self::index) runs on the senders' threads, many at a time. A panic unwinds to the
/// sender; the message is a dead letter.
///
/// # What routees leave behind
///
/// What a routee that ends before it is done leaves behind goes to one other, by [`select`](Self::select), whatever `route`
/// does: it was for one. Where `select` picks nobody it is a dead letter.
pub trait RoutingLogic<M: Send + 'static>: Send + Sync + 'static {
    /// Chooses one routee. An index that does not exist makes the message a dead letter that says so.
    ///
    /// Called again, with a higher [`RouteContext::attempt`], when the chosen routee has stopped, or is a router that is
    /// empty or full.
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Pick;

    /// Routes one message. By default: [`select`](Self::select), and once more for each routee that turns out
    /// to have stopped. A logic that needs the message by value (to clone it, say) overrides this, and
    /// delivers by [`RouteContext::deliver`].
    ///
    /// # Errors
    ///
    /// The message comes back if nobody took it.
    #[inline]
    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        route_to_one(self, message, routees, cx)
    }

    /// Makes what the logic wants to look up in a new table, such as a hash ring: kept with the table, found
    /// by [`Routees::index`]. Runs whenever the routees change, on the thread that changes them.
    fn index(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        let _ = routees;
        None
    }

    /// How much there is to do behind a router of this logic: by default as much as its least loaded routee has.
    fn load(&self, routees: &Routees<M>) -> Load {
        routees.least_load()
    }

    /// Says what is wrong with the logic's own settings: the router is not created then.
    ///
    /// # Errors
    ///
    /// What is wrong, the value, the bound.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The name by which [`RouterSettings::router`] asks for this logic, without `-pool` or `-group`: a router whose code
    /// has the logic that its settings name keeps it. By default none.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Takes what the router's settings say of this logic. Called once, before the router is created, if the system
    /// says anything of it; by default nothing is taken.
    fn configure(&mut self, settings: &RouterSettings) {
        let _ = settings;
    }

    /// What the router gets whose settings name `other`: by default that. A logic around another keeps itself around
    /// `other`.
    fn replaced_by(self: Box<Self>, other: Box<dyn RoutingLogic<M>>) -> Box<dyn RoutingLogic<M>> {
        other
    }
}

/// A logic that is chosen when the program runs.
impl<M: Send + 'static, L: RoutingLogic<M> + ?Sized> RoutingLogic<M> for Box<L> {
    #[inline]
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Pick {
        (**self).select(message, routees, cx)
    }

    #[inline]
    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        (**self).route(message, routees, cx)
    }

    fn index(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        (**self).index(routees)
    }

    fn load(&self, routees: &Routees<M>) -> Load {
        (**self).load(routees)
    }

    fn check(&self) -> Result<(), String> {
        (**self).check()
    }

    fn name(&self) -> Option<&str> {
        (**self).name()
    }

    fn configure(&mut self, settings: &RouterSettings) {
        (**self).configure(settings);
    }

    fn replaced_by(self: Box<Self>, other: Box<dyn RoutingLogic<M>>) -> Box<dyn RoutingLogic<M>> {
        (*self).replaced_by(other)
    }
}

/// Delivers to the routee that the logic selects, and to another one for each that turns out to have stopped.
#[inline(always)]
pub(super) fn route_to_one<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    cx.attempt.set(0);
    match attempt(logic, message, routees, cx) {
        Err(SendError::Closed(refused)) => attempt_again(logic, refused, routees, cx),
        done => done,
    }
}

/// Delivers to the routee that the logic chooses.
#[inline(always)]
fn attempt<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    let index = match logic.select(&message, routees, cx) {
        Pick::One(index) => index,
        Pick::None => return Err(SendError::NoRoutee(message)),
    };
    match routees.get(index) {
        Some(routee) => cx.deliver(routee.actor(), message).map_err(|refused| cx.judge(routee, refused)),
        None => Err(SendError::BadPick { message, index, routees: routees.len() }),
    }
}

/// The routee chosen first has stopped. Out of the way, so that a message that needs one attempt is not copied for more.
#[cold]
#[inline(never)]
fn attempt_again<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    let mut message = message;
    // Each routee may have stopped once; one attempt more finds that nobody is left.
    for number in 1..=routees.len() {
        cx.attempt.set(number);
        match attempt(logic, message, routees, cx) {
            Err(SendError::Closed(refused)) => message = refused,
            done => return done,
        }
    }
    let Some(nested) = cx.nested.get() else { return Err(SendError::NoRoutee(message)) };
    // The logic may have chosen the same router each time.
    for routee in routees.iter().filter(|routee| !routee.actor().is_closed()) {
        match cx.deliver(routee.actor(), message) {
            Ok(()) => return Ok(()),
            Err(refused) => message = refused.into_inner(),
        }
    }
    Err(match nested {
        Nested::Full => SendError::Full(message),
        Nested::Empty => SendError::NoRoutee(message),
    })
}

/// Why a router among the routees has not taken the message.
#[derive(Clone, Copy)]
enum Nested {
    Empty,
    Full,
}

/// What a logic may know and do besides the table: one message's way through one router.
pub struct RouteContext<'a> {
    pub(super) row: &'a Row,
    router: &'a About,
    /// Deliveries that are counted as sent and have no outcome yet.
    open: Cell<u64>,
    /// What is delivered are copies.
    copying: Cell<bool>,
    /// A router among the routees is passed over.
    nested: Cell<Option<Nested>>,
    pub(super) attempt: Cell<usize>,
}

impl<'a> RouteContext<'a> {
    /// The way of a message that is counted as sent.
    #[inline]
    pub(super) fn new(row: &'a Row, router: &'a About) -> Self {
        Self {
            row,
            router,
            open: Cell::new(1),
            copying: Cell::new(false),
            nested: Cell::new(None),
            attempt: Cell::new(0),
        }
    }

    /// A number of this router's own that derives from the system's seed.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.router.seed
    }

    /// The system, whose clock and scheduler a logic uses that delivers copies later, too: by
    /// [`ActorRef::tell`], which counts them. Costs a read-modify-write that the whole system shares.
    pub fn system(&self) -> SystemRef {
        SystemRef::new(self.router.system.clone())
    }

    /// The router's head.
    pub(super) fn head(&self) -> &AnyRef {
        &self.router.head
    }

    /// Nobody takes the message, and the logic sees to it itself.
    pub(super) fn nobody_took(&self) {
        self.router.nobody_took();
    }

    /// Which router this is.
    pub(super) fn id(&self) -> RouterId {
        self.router.id()
    }

    /// How many routees have refused this message: they had stopped, or were routers that were empty or full.
    #[inline]
    pub fn attempt(&self) -> usize {
        self.attempt.get()
    }

    /// Counts the message as `copies` deliveries instead of one. To be called before they are delivered: what a routee
    /// leaves behind is routed again, but for copies, which become dead letters.
    #[inline]
    pub fn copies(&self, copies: usize) {
        let more = copies as u64;
        if more > 1 {
            self.row.sent(more - 1);
            self.open.set(self.open.get() + more - 1);
            self.copying.set(true);
        }
    }

    /// One delivery more than was counted.
    #[cold]
    fn count_another(&self) {
        self.row.sent(1);
        self.open.set(1);
        self.copying.set(true);
    }

    /// Delivers one message. What a logic delivers beyond what it has counted by [`copies`](Self::copies) is counted
    /// here, as one delivery more.
    ///
    /// # Errors
    ///
    /// It comes back if the routee does not take it.
    #[inline(always)]
    pub fn deliver<M: Send + 'static>(&self, routee: &ActorRef<M>, message: M) -> Result<(), SendError<M>> {
        if self.open.get() == 0 {
            self.count_another();
        }
        if self.copying.get() {
            routee.expect_copies();
        }
        let counted = routee.is_counted();
        if counted {
            // Settled before, so that of several routers behind each other only the one whose user code unwinds
            // counts the message; and taken back if it comes back.
            self.open.set(self.open.get().saturating_sub(1));
        }
        match routee.pass_on(message) {
            Ok(accepted) => {
                if !counted {
                    self.open.set(self.open.get().saturating_sub(1));
                }
                if accepted == Accepted::Handled {
                    self.row.handled(1);
                }
                Ok(())
            }
            Err(refused) => {
                if counted {
                    self.open.set(self.open.get() + 1);
                }
                Err(refused)
            }
        }
    }

    /// A router among the routees that is empty or full is passed over like one that has stopped; what an actor or
    /// anything else answers is final.
    #[cold]
    fn judge<M: Send + 'static>(&self, routee: &Routee<M>, refused: SendError<M>) -> SendError<M> {
        let nested = match refused {
            SendError::NoRoutee(_) => Nested::Empty,
            SendError::Full(_) => Nested::Full,
            _ => return refused,
        };
        if routee.actor().is_local() || routee.watched().is_none() {
            return refused;
        }
        self.nested.set(Some(nested));
        SendError::Closed(refused.into_inner())
    }

    /// Delivers one of several copies; one that is not taken becomes a dead letter, and the others go on. Returns
    /// whether it was taken.
    #[inline]
    pub fn deliver_copy<M: Send + 'static>(&self, routee: &ActorRef<M>, message: M) -> bool {
        let done = self.deliver(routee, message);
        let is_taken = done.is_ok();
        if let Err(refused) = done {
            self.refuse_copy(routee, refused);
        }
        is_taken
    }

    /// Makes a copy that came back a dead letter.
    pub(super) fn refuse_copy<M: Send + 'static>(&self, routee: &ActorRef<M>, refused: SendError<M>) {
        if routee.is_counted() {
            self.open.set(self.open.get().saturating_sub(1));
            routee.dead_letter(refused);
        } else {
            let reason = DeadLetterReason::of(&refused);
            self.bury_for(refused.into_inner(), reason, || routee.path());
        }
    }

    /// Makes the message a dead letter of the router's.
    pub(super) fn bury<M: Send + 'static>(&self, message: M, reason: DeadLetterReason) {
        self.bury_for(message, reason, || self.router.head.path());
    }

    fn bury_for<M: Send + 'static>(
        &self,
        message: M,
        reason: DeadLetterReason,
        recipient: impl FnOnce() -> ActorPath,
    ) {
        self.open.set(self.open.get().saturating_sub(1));
        self.row.dead_lettered(1);
        self.router.system.dead_letters().bury(message, reason, recipient);
    }

    /// How many have none, and what is left here takes them.
    #[inline]
    pub(super) fn take_open(&self) -> u64 {
        self.open.replace(0)
    }
}

impl RouteContext<'_> {
    /// The logic is done. A message that it returns is accounted for by whoever gets it; what else has no outcome was let
    /// fall, and is a dead letter.
    #[inline]
    pub(super) fn end<M>(&self, done: &Result<(), SendError<M>>) {
        match done {
            Ok(()) => self.settle(),
            Err(_) => self.hand_back(),
        }
    }

    #[cold]
    fn hand_back(&self) {
        match self.take_open() {
            // The logic has delivered the message, and returns another.
            0 => self.row.sent(1),
            1 => {}
            more => self.lose(more - 1, DeadLetterReason::NoRoutee),
        }
    }

    /// The logic says that it is done: what it has let fall is a dead letter.
    #[inline]
    pub(super) fn settle(&self) {
        let lost = self.take_open();
        if lost > 0 {
            self.lose(lost, DeadLetterReason::NoRoutee);
        }
    }

    #[cold]
    fn lose(&self, lost: u64, reason: DeadLetterReason) {
        self.row.dead_lettered(lost);
        for _ in 0..lost {
            let router = self.router;
            router.system.dead_letters().publish(reason, router.message_type, || router.head.path());
        }
    }
}

impl Drop for RouteContext<'_> {
    /// User code has unwound: what it held is gone, and must not be gone from the books.
    #[inline]
    fn drop(&mut self) {
        let lost = self.take_open();
        if lost > 0 {
            self.lose(lost, DeadLetterReason::Panicked);
        }
    }
}

impl fmt::Debug for RouteContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteContext").field("attempt", &self.attempt()).finish_non_exhaustive()
    }
}
