//! The recipients behind a reference that routes.
//!
//! | type | meaning | holder |
//! |---|---|---|
//! | [`Routing`] | a router's recipient: runs the logic over the table | the reference of users |
//! | [`LeftoverRouting`] | the same, to a single routee whatever the logic | the reference by which leaving routees hand back |
//! | [`SharedRouter`] | the table, and whether the router has stopped | both of these, the handle, the head |
//! | [`RouterInfo`] | the part of a router that never changes, without the type of message | the above, and routers without a head |
//!
//! A pool with a resizer has another recipient around its `Routing`, which counts: `counted_routing.rs`.
//!
//! Each routed message reads all of them and changes none. So they are aligned to lines: other threads may write often
//! to the memory that the heap puts beside them, and to the counts of references before them.

use crate::core::actor_ref::{RecipientLoad, Target};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::system::SystemRef;
use crate::dispatch::shared_queue;
use crate::mailbox::state::MailboxState;
use crate::routing::balancing::Balancing;
use crate::routing::logic;
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::direct_select::{select_directly, selects_directly};
use crate::routing::resizer::trigger::Resizing;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::Routees;
use crate::routing::router_info::{EmptyPoolTrigger, RareInfo, RouterInfo};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::thread_context::hops::HopGuard;
use crate::util::reclaim;
use crate::util::reclaim::Published;
use std::any::Any;
use std::sync::Arc as StdArc;

/// The part of a router that its references, its handle and its head share, and that changes while it routes.
#[repr(align(64))]
pub(crate) struct SharedRouter<M: Send + 'static> {
    pub table: Published<Routees<M>>,
    /// The router has stopped: everything sent to it is a dead letter.
    closed: AtomicBool,
    /// Whether the present table has routees: all that a logic without a choice asks of the table.
    has_routees: AtomicBool,
    pub info: StdArc<RouterInfo>,
}

impl<M: Send + 'static> SharedRouter<M> {
    pub(crate) fn new(
        head: AnyActorRef,
        resizing: Option<StdArc<Resizing>>,
        found_empty: Option<EmptyPoolTrigger>,
    ) -> Self {
        let table = Published::new(Routees::new(Vec::new(), None, 0));
        let number = head.uid();
        let rare = StdArc::new(RareInfo { found_empty, ..RareInfo::default() });
        let info = StdArc::new(RouterInfo { resizing, rare, ..RouterInfo::new::<M>(head, number) });
        Self { table, closed: AtomicBool::new(false), has_routees: AtomicBool::new(false), info }
    }

    /// Publishes a table.
    pub(crate) fn replace(&self, table: Routees<M>) {
        // Ordering: Release; pairs with the Acquire in `has_routees`: a sender that sees routees sees what made them.
        self.has_routees.store(!table.is_empty(), Ordering::Release);
        self.table.replace(table);
    }

    /// Returns whether the present table has routees.
    #[inline]
    fn has_routees(&self) -> bool {
        // Ordering: Acquire; pairs with the Release in `replace`.
        self.has_routees.load(Ordering::Acquire)
    }

    /// Refuses everything from now on, and lets go of the routees.
    pub(crate) fn close(&self) {
        // Ordering: Relaxed; a thread that reads too early finds routees that refuse, or the empty table below.
        self.closed.store(true, Ordering::Relaxed);
        let version = self.table.read(&reclaim::section()).version();
        self.replace(Routees::new(Vec::new(), None, version + 1));
    }
}

/// The recipient behind an `ActorRef<M>` to a router.
#[repr(align(64))]
pub(crate) struct Routing<M: Send + 'static, L> {
    pub shared: StdArc<SharedRouter<M>>,
    pub logic: StdArc<L>,
}

/// The way in which a message finds its routees. A type and not a function that is handed on: the compiler may call
/// such a function instead of inlining it.
trait Route<M: Send + 'static, L> {
    fn route(logic: &L, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>>;
}

/// Routes by the logic.
struct ByLogic;

impl<M: Send + 'static, L: RoutingLogic<M>> Route<M, L> for ByLogic {
    #[inline(always)]
    fn route(logic: &L, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        logic.route(message, routees, cx)
    }
}

/// Routes to a single routee that the logic selects, whatever else the logic does with messages.
struct ToOne;

impl<M: Send + 'static, L: RoutingLogic<M>> Route<M, L> for ToOne {
    #[inline(always)]
    fn route(logic: &L, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        logic::route_to_one(logic, message, routees, cx)
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Routing<M, L> {
    /// Routes by the present table, unless that is the table which was tried before. Writes the version of the table to
    /// `tried` if no routee takes the message.
    #[inline(always)]
    fn route_once<R: Route<M, L>>(&self, message: M, tried: &mut Option<u64>) -> Result<(), SendError<M>> {
        // Ordering: Relaxed; see `SharedRouter::close`.
        if self.shared.closed.load(Ordering::Relaxed) {
            return Err(SendError::Closed(message));
        }
        let cx = RouteContext::new(&self.shared.info);
        let section = reclaim::section();
        let table = self.shared.table.read(&section);
        // No routee took the message, and no table has changed since: no routee will.
        let done = if *tried == Some(table.version()) {
            Err(SendError::NoRoutee(message))
        } else {
            R::route(&self.logic, message, table, &cx)
        };
        match done {
            Ok(()) => {
                drop(section);
                cx.end();
                Ok(())
            }
            Err(refused) => {
                *tried = Some(version_of(table));
                drop(section);
                cx.hand_one_back();
                Err(refused)
            }
        }
    }

    /// Routes a message that no routee took from a table that may be older than the present table.
    #[cold]
    #[inline(never)]
    fn route_again<R: Route<M, L>>(
        &self,
        refused: SendError<M>,
        tried: Option<u64>,
    ) -> Result<DeliveryStatus, SendError<M>> {
        let (mut refused, mut tried) = (refused, tried);
        while let SendError::NoRoutee(message) = refused {
            let before = tried;
            match self.route_once::<R>(message, &mut tried) {
                Ok(()) => return Ok(DeliveryStatus::Passed),
                Err(again) if tried == before => {
                    self.shared.info.count_no_routee();
                    // A sender that ends a pool which was found empty looks for itself.
                    if self.shared.info.resizing.is_none() || self.has_no_living_routee() {
                        self.shared.info.on_no_routee();
                    }
                    return Err(again);
                }
                Err(again) => refused = again,
            }
        }
        Err(refused)
    }

    /// Whether no routee lives, so that no routee could have taken a message. A logic may also choose none.
    fn has_no_living_routee(&self) -> bool {
        let section = reclaim::section();
        self.shared.table.read(&section).have_all_ended()
    }

    /// Routes a message by a logic that [selects directly](select_directly), to an actor whose mailbox is open and
    /// unbounded. Nothing on that way can unwind, so the message needs no account; nothing routes, so it needs no hop.
    /// All other messages go by the logic's `route`.
    #[inline(always)]
    fn deliver_directly(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        // A router behind a router counts its hop.
        if !HopGuard::is_outermost() {
            return self.deliver_by_logic(message);
        }
        let Some(section) = reclaim::member_section() else { return self.deliver_by_logic(message) };
        let table = self.shared.table.read(&section);
        let routees = table.as_slice();
        // A router that has stopped has an empty table.
        let Some(index) = select_directly(&*self.logic, routees, self.shared.info.seed) else {
            return self.deliver_by_logic(message);
        };
        let routee = routees[index].actor();
        let Target::Local(actor) = routee.target() else {
            return self.deliver_to_recipient(table, index, message);
        };
        actor.mailbox.push_or(
            message,
            || Ok(DeliveryStatus::Passed),
            move |claimed, message| self.push_slow(table, index, claimed, message),
        )
    }

    /// Routes a message to a balancing pool: pushes it to the queue that the routees share. Nothing runs before the
    /// message is in the queue, and no routee is chosen, so the message needs no account, no hop and no table. All other
    /// results of the push are settled on a way of their own, with the hop.
    #[inline(always)]
    fn deliver_to_queue(&self, balancing: &Balancing<M>, message: M) -> Result<DeliveryStatus, SendError<M>> {
        // A router behind a router counts its hop. Routees that leave empty the queue before they end, so it must not
        // be filled any more when the table is empty.
        if !HopGuard::is_outermost() || !self.shared.has_routees() {
            return self.deliver_by_logic(message);
        }
        balancing.push_directly(message, || Ok(DeliveryStatus::Passed), |pushed| self.finish_queued(pushed))
    }

    /// Handles all cases but the usual push to the queue that routees share.
    #[inline(never)]
    fn finish_queued(
        &self,
        pushed: Result<shared_queue::Pushed<M>, shared_queue::Refused<M>>,
    ) -> Result<DeliveryStatus, SendError<M>> {
        match pushed {
            Ok(shared_queue::Pushed::Queued) => Ok(DeliveryStatus::Passed),
            // The table may have changed, or change soon: the usual way looks at it.
            Err(shared_queue::Refused::NoTaker(message)) => self.deliver_by_logic(message),
            pushed => {
                // User code may run: the drop of a message, or a subscriber of dead letters. There is always a hop left:
                // this is the outermost router.
                let _hop = HopGuard::take();
                Balancing::finish(pushed, &self.shared.info).map(|()| DeliveryStatus::Passed)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn deliver_by_logic(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        self.deliver_by::<ByLogic>(message)
    }

    /// Handles all cases but the usual push: see [`Mailbox::push_or`](crate::mailbox::mailbox::Mailbox::push_or).
    #[inline(never)]
    fn push_slow(
        &self,
        table: &Routees<M>,
        index: usize,
        claimed: Option<MailboxState>,
        message: M,
    ) -> Result<DeliveryStatus, SendError<M>> {
        let routee = table.as_slice()[index].actor();
        let Target::Local(actor) = routee.target() else { unreachable!("the push began at an actor") };
        let Err(refused) = routee.settle(actor, actor.mailbox.push_slow(claimed, message)) else {
            return Ok(DeliveryStatus::Passed);
        };
        self.go_on(table, |cx| logic::route_refused(&*self.logic, index, refused, table, cx))
    }

    /// Routes a message for which the logic has selected a routee of this table that is no actor of this system.
    #[inline(never)]
    fn deliver_to_recipient(
        &self,
        table: &Routees<M>,
        index: usize,
        message: M,
    ) -> Result<DeliveryStatus, SendError<M>> {
        let routee = table.as_slice()[index].actor();
        if !routee.is_counted() {
            return self.go_on(table, |cx| logic::route_to_selected(&*self.logic, index, message, table, cx));
        }
        // There is always one left: this is the outermost router.
        let hop = HopGuard::take();
        // The recipient accounts for a message that it has, also when its code unwinds.
        let refused = match routee.forward_counted(message) {
            Ok(DeliveryStatus::Passed) => return Ok(DeliveryStatus::Passed),
            Ok(DeliveryStatus::Handled) => {
                self.shared.info.counters().handled_by_function();
                return Ok(DeliveryStatus::Passed);
            }
            Err(refused) => refused,
        };
        drop(hop);
        self.go_on(table, |cx| logic::route_returned(&*self.logic, index, refused, table, cx))
    }

    /// Routes a message on for which the logic has selected a routee of this table. The caller's section keeps the table.
    #[cold]
    fn go_on(
        &self,
        table: &Routees<M>,
        route: impl FnOnce(&RouteContext<'_>) -> Result<(), SendError<M>>,
    ) -> Result<DeliveryStatus, SendError<M>> {
        // There is always one left: this is the outermost router.
        let _hop = HopGuard::take();
        let refused = {
            let cx = RouteContext::new(&self.shared.info);
            let done = route(&cx);
            cx.finish(&done);
            match done {
                Ok(()) => return Ok(DeliveryStatus::Passed),
                Err(refused) => refused,
            }
        };
        self.route_again::<ByLogic>(refused, Some(table.version()))
    }

    #[inline(always)]
    fn deliver_by<R: Route<M, L>>(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let Some(_hop) = HopGuard::take() else { return Err(SendError::Cycle(message)) };
        let mut tried = None;
        match self.route_once::<R>(message, &mut tried) {
            Ok(()) => Ok(DeliveryStatus::Passed),
            Err(refused) => self.route_again::<R>(refused, tried),
        }
    }
}

/// Apart, so that only a message that no routee takes pays for the look.
#[cold]
#[inline(never)]
fn version_of<M: Send + 'static>(table: &Routees<M>) -> u64 {
    table.version()
}

/// Routes the leftovers of a routee: each message was for a single routee, and goes to a single routee, by `select`.
pub(crate) struct LeftoverRouting<M: Send + 'static, L>(pub Routing<M, L>);

impl<M: Send + 'static, L: RoutingLogic<M>> OwnRecipient<M> for LeftoverRouting<M, L> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        self.0.deliver_by::<ToOne>(message)
    }

    fn is_closed(&self) -> bool {
        OwnRecipient::is_closed(&self.0)
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        self.0.untyped()
    }

    fn system(&self) -> Option<SystemRef> {
        self.0.system()
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> OwnRecipient<M> for Routing<M, L> {
    #[inline]
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        if selects_directly::<L>() {
            return self.deliver_directly(message);
        }
        // Known when the program is compiled, too.
        let logic: &dyn Any = &*self.logic;
        match logic.downcast_ref::<Balancing<M>>() {
            Some(balancing) => self.deliver_to_queue(balancing, message),
            None => self.deliver_by::<ByLogic>(message),
        }
    }

    fn is_closed(&self) -> bool {
        // Ordering: Relaxed; see `SharedRouter::close`.
        self.shared.closed.load(Ordering::Relaxed)
    }

    fn load(&self) -> RecipientLoad {
        if OwnRecipient::is_closed(self) {
            return RecipientLoad::Closed;
        }
        let Some(_hop) = HopGuard::take() else { return RecipientLoad::Unknown };
        let section = reclaim::section();
        self.logic.load(self.shared.table.read(&section))
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        Some(self.shared.info.head.clone())
    }

    fn is_router(&self) -> bool {
        true
    }

    fn system(&self) -> Option<SystemRef> {
        Some(SystemRef::new(self.shared.info.system.clone()))
    }

    fn place(&self) -> Option<AnyActorRef> {
        OwnRecipient::untyped(self)
    }
}
