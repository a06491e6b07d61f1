//! What a routing logic is, and how one that picks a routee is run: `select`, deliver, and select again where
//! that routee has stopped.

use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::error::SendError;
use crate::core::system::SystemRef;
use crate::routing::pick::Pick;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::settings::router::RouterSettings;
use std::any::Any;

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
/// One that picks several routees, or makes the routee itself, overrides [`route`](Self::route) and delivers
/// by [`RouteContext::deliver_to_each`] or [`RouteContext::deliver`]: see the
/// [guide](crate::guide::routers#a-logic-of-your-own).
///
/// # Concurrency
///
/// [`select`](Self::select), [`route`](Self::route) and [`load`](Self::load) run on the senders' threads, many
/// at a time. A panic unwinds to the sender; the message is a dead letter. All else runs where the router is
/// created, and [`prepare`](Self::prepare) also where its routees change.
///
/// # What routees leave behind
///
/// What a routee that ends before it is done leaves behind goes to one other, by [`select`](Self::select),
/// whatever `route` does: it was for one. Where `select` picks nobody it is a dead letter.
pub trait RoutingLogic<M: Send + 'static>: Send + Sync + 'static {
    /// Chooses one routee. An index that does not exist makes the message a dead letter that says so.
    ///
    /// Called again, with a higher [`RouteContext::refusals`], when the chosen routee has stopped, or is a
    /// router that is empty or full; as often as there are routees. Nobody gets the message whom this does not
    /// choose.
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Pick;

    /// Routes one message. By default: [`select`](Self::select), and once more for each routee that turns out
    /// to have stopped. A logic that needs the message by value (to clone it, say) overrides this, and
    /// delivers by [`RouteContext::deliver`].
    ///
    /// # Errors
    ///
    /// The message comes back if nobody took it.
    #[inline(always)]
    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        route_to_one(self, message, routees, cx)
    }

    /// Makes what the logic wants to look up in a new table, such as a hash ring: kept with the table, found
    /// by [`Routees::prepared`]. Runs whenever the routees change, on the thread that changes them.
    fn prepare(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        let _ = routees;
        None
    }

    /// How many bytes take what [`prepare`](Self::prepare) has made: counted where replaced tables are
    /// [bounded](super::RouterPlan::old_tables_max). By default the size of the value itself; a logic whose index has
    /// memory of its own, such as a `Vec`, adds that.
    fn prepared_bytes(&self, prepared: &(dyn Any + Send + Sync)) -> usize {
        size_of_val(prepared)
    }

    /// How much there is to do behind a router of this logic: by default as much as its least loaded routee
    /// has.
    fn load(&self, routees: &Routees<M>) -> RecipientLoad {
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

    /// The name by which [`RouterSettings::router`] asks for this logic: of one of this crate's without `-pool` or
    /// `-group`; one that is [registered](crate::SystemBuilder::routing_logic) is asked for by exactly its name. A
    /// router whose code has the logic that its settings name keeps it. By default none.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Takes what the router's settings say of this logic. Called once, before the router is created, if the
    /// system says anything of it; by default nothing is taken.
    fn configure(&mut self, settings: &RouterSettings) {
        let _ = settings;
    }

    /// The routees that this logic finds or makes itself, for a
    /// [group by configuration](super::RouterBuilder::group_from_config) whose settings name the logic and no
    /// [paths](RouterSettings::routees_paths). Called once, after [`configure`](Self::configure) and before the router is
    /// created, on the thread that creates it. The references are a group's: whoever made the actors ends them, also
    /// if the router cannot be created.
    ///
    /// An empty list is a group without routees: for a logic that overrides [`route`](Self::route) and delivers to
    /// references of its own. By default `None`: the logic makes none, and the router is refused for want of paths.
    ///
    /// # Errors
    ///
    /// What is wrong, for people: the router is not created, and
    /// [`SectionFault::Refused`](crate::settings::section_fault::SectionFault::Refused) says so.
    fn own_routees(&self, system: &SystemRef) -> Result<Option<Vec<ActorRef<M>>>, String> {
        let _ = system;
        Ok(None)
    }

    /// What the router gets whose settings name `other`: by default that. A logic around another keeps itself
    /// around `other`.
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

    fn prepare(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        (**self).prepare(routees)
    }

    fn prepared_bytes(&self, prepared: &(dyn Any + Send + Sync)) -> usize {
        (**self).prepared_bytes(prepared)
    }

    fn load(&self, routees: &Routees<M>) -> RecipientLoad {
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

    fn own_routees(&self, system: &SystemRef) -> Result<Option<Vec<ActorRef<M>>>, String> {
        (**self).own_routees(system)
    }

    fn replaced_by(self: Box<Self>, other: Box<dyn RoutingLogic<M>>) -> Box<dyn RoutingLogic<M>> {
        (*self).replaced_by(other)
    }
}

/// Delivers to the routee that the logic selects, and to another one for each that turns out to have stopped.
#[inline(always)]
pub(crate) fn route_to_one<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    cx.refusals.set(0);
    match deliver_to_selected(logic, message, routees, cx) {
        Err(SendError::Closed(refused)) => select_again(logic, refused, routees, cx).map_or(Ok(()), Err),
        done => done,
    }
}

/// Delivers to the routee that the logic selects. `Closed` says that another one is to be selected.
#[inline(always)]
fn deliver_to_selected<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    match logic.select(&message, routees, cx) {
        Pick::One(index) => deliver_to(index, message, routees, cx),
        Pick::None => Err(SendError::NoRoutee(message)),
    }
}

/// Delivers to the routee of this index. `Closed` says that another one is to be chosen.
#[inline(always)]
pub(crate) fn deliver_to<M: Send + 'static>(
    index: usize,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    match routees.get(index) {
        Some(routee) => {
            let routee = routee.actor();
            cx.deliver(routee, message).map_err(|refused| cx.pass_over(index, routee, refused))
        }
        None => Err(SendError::BadPick { message, index, routees: routees.len() }),
    }
}

/// The routee selected first has stopped. Out of the way, so that a message whose first routee takes it is
/// not moved for the others. Returns what was refused.
#[cold]
#[inline(never)]
fn select_again<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Option<SendError<M>> {
    let mut message = message;
    // Each routee may have stopped once; one selection more finds that nobody is left.
    for refusals in 1..=routees.len() {
        cx.refusals.set(refusals);
        let index = match logic.select(&message, routees, cx) {
            Pick::One(index) => index,
            Pick::None => break,
        };
        match deliver_to(index, message, routees, cx) {
            Err(SendError::Closed(refused)) => message = refused,
            done => return done.err(),
        }
    }
    Some(cx.no_routee_error(message))
}
