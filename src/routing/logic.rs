//! The trait of routing logics, and the run of a logic that picks a routee: `select`, deliver, and select again where
//! that routee has stopped.

use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::error::SendError;
use crate::core::system::SystemRef;
use crate::mailbox::mailbox::Refused;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::settings::router::RouterSettings;
use crate::settings::setting_error::SettingError;
use std::any::Any;

/// Chooses a routee for each message.
///
/// [`select`](Self::select) is all that most logics write:
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{RouteContext, Routees, RoutingLogic};
///
/// /// Even numbers left, odd numbers right.
/// struct ByParity;
///
/// impl RoutingLogic<u64> for ByParity {
///     fn select(&self, number: &u64, routees: &Routees<u64>, _: &RouteContext) -> Option<usize> {
///         match routees.len() {
///             0 => None,
///             n => Some(*number as usize % 2 % n),
///         }
///     }
/// }
/// ```
///
/// A logic that picks several routees, or makes the routee itself, overrides [`route`](Self::route) and delivers by
/// [`RouteContext::deliver_to_each`] or [`RouteContext::deliver`]: see the
/// [guide](crate::guide::routers#a-logic-of-your-own).
///
/// # Concurrency
///
/// [`select`](Self::select), [`route`](Self::route) and [`load`](Self::load) run on the senders' threads, many at a
/// time. A panic unwinds to the sender; the message is a dead letter. All other methods run where the router is
/// created, and [`prepare`](Self::prepare) also where its routees change.
///
/// # Leftovers
///
/// A routee that ends before it is done leaves messages behind. Each of these was for a single routee, so it goes to a
/// single other routee by [`select`](Self::select), whatever `route` does. Where `select` picks none it is a dead
/// letter.
pub trait RoutingLogic<M: Send + 'static>: Send + Sync + 'static {
    /// Chooses a routee by its index in the table. With `None` the message becomes a dead letter, or comes back to
    /// `try_tell`; so it does with an index that does not exist, and has that reason.
    ///
    /// Called again, with a higher [`RouteContext::refusals`], when the chosen routee has stopped, or is a router that
    /// is empty or full; as often as there are routees. Only a routee that this method chooses gets the message.
    #[doc(alias = "Pick")]
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize>;

    /// Routes a message. By default: [`select`](Self::select), and once more for each routee that turns out to have
    /// stopped. A logic that needs the message by value (to clone it, say) overrides this, and delivers by
    /// [`RouteContext::deliver`].
    ///
    /// # Errors
    ///
    /// The message comes back if no routee took it.
    #[inline(always)]
    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        route_to_one(self, message, routees, cx)
    }

    /// Makes the index that the logic looks up in a new table, such as a hash ring. The index is kept with the table,
    /// and found by [`Routees::prepared`]. Runs whenever the routees change, on the thread that changes them.
    fn prepare(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        let _ = routees;
        None
    }

    /// Returns the size in bytes of the index that [`prepare`](Self::prepare) has made. The size counts where replaced
    /// tables are [bounded](super::RouterPlan::old_tables_max). By default it is the size of the value itself; a logic
    /// whose index has memory of its own, such as a `Vec`, adds that.
    fn prepared_bytes(&self, prepared: &(dyn Any + Send + Sync)) -> usize {
        size_of_val(prepared)
    }

    /// Returns the load of a router of this logic: by default the load of its least loaded routee.
    fn load(&self, routees: &Routees<M>) -> RecipientLoad {
        routees.least_load()
    }

    /// Checks the logic's own settings: with an error the router is not created.
    ///
    /// # Errors
    ///
    /// The error says the setting, its value, and the allowed values.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }

    /// Returns the name by which [`RouterSettings::router`] asks for this logic. The name of a logic of this crate has
    /// no `-pool` or `-group`; a [registered](crate::SystemBuilder::routing_logic) logic is asked for by exactly its
    /// name. A router whose code has the logic that its settings name keeps it. By default none.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Takes the router's settings for this logic. Called once, before the router is created, if the system has
    /// settings for the router; by default nothing is taken.
    fn configure(&mut self, settings: &RouterSettings) {
        let _ = settings;
    }

    /// Makes or finds the routees of this logic, for a [group by
    /// configuration](super::RouterBuilder::group_from_config) whose settings name the logic and no
    /// [paths](RouterSettings::routees_paths). Called once, after [`configure`](Self::configure) and before the router
    /// is created, on the thread that creates it. The references are those of a group: the creators of the actors end
    /// them, also if the router cannot be created.
    ///
    /// An empty list is a group without routees: for a logic that overrides [`route`](Self::route) and delivers to
    /// references of its own. By default `None`: the logic makes no routees, and the router is refused since it has no
    /// paths.
    ///
    /// # Errors
    ///
    /// A text that says the fault, for people: the router is not created, and
    /// [`SectionFault::Refused`](crate::settings::section_fault::SectionFault::Refused) carries the text.
    fn own_routees(&self, system: &SystemRef) -> Result<Option<Vec<ActorRef<M>>>, String> {
        let _ = system;
        Ok(None)
    }

    /// Returns the logic of a router whose settings name `other`: by default `other`. A logic that wraps another logic
    /// wraps `other` instead.
    fn replaced_by(self: Box<Self>, other: Box<dyn RoutingLogic<M>>) -> Box<dyn RoutingLogic<M>> {
        other
    }
}

/// A logic that is chosen when the program runs.
impl<M: Send + 'static, L: RoutingLogic<M> + ?Sized> RoutingLogic<M> for Box<L> {
    #[inline]
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
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

    fn check(&self) -> Result<(), SettingError> {
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

/// Delivers to the routee that the logic selects, and selects again for each routee that turns out to have stopped.
#[inline(always)]
pub(crate) fn route_to_one<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    cx.refusals.set(0);
    let Err(refused) = deliver_to_selected(logic, message, routees, cx) else { return Ok(()) };
    match refused {
        SendError::Closed(refused) => select_again(logic, refused, routees, cx).map_or(Ok(()), Err),
        other => Err(other),
    }
}

/// Delivers to the routee that the logic selects. `Closed` says that another routee is to be selected.
#[inline(always)]
fn deliver_to_selected<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    match logic.select(&message, routees, cx) {
        Some(index) => deliver_to(index, message, routees, cx),
        None => Err(SendError::NoRoutee(message)),
    }
}

/// Routes a message for which the logic has selected the routee of this index, as [`route_to_one`] does.
pub(crate) fn route_to_selected<M: Send + 'static, L: RoutingLogic<M>>(
    logic: &L,
    index: usize,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    match deliver_to(index, message, routees, cx) {
        Err(SendError::Closed(refused)) => select_again(logic, refused, routees, cx).map_or(Ok(()), Err),
        done => done,
    }
}

/// Routes a message that the mailbox of the selected routee, an actor, has refused, as [`route_to_one`] does.
pub(crate) fn route_refused<M: Send + 'static, L: RoutingLogic<M>>(
    logic: &L,
    index: usize,
    refused: Refused<M>,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    let routee = routees.as_slice()[index].actor();
    let Err(refused) = cx.deliver_refused(routee, refused) else { return Ok(()) };
    route_returned(logic, index, refused, routees, cx)
}

/// Routes a message that the selected routee, which is no actor, has refused, as [`route_to_one`] does.
pub(crate) fn route_returned<M: Send + 'static, L: RoutingLogic<M>>(
    logic: &L,
    index: usize,
    refused: SendError<M>,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Result<(), SendError<M>> {
    match cx.pass_over(index, routees.as_slice()[index].actor(), refused) {
        SendError::Closed(refused) => select_again(logic, refused, routees, cx).map_or(Ok(()), Err),
        other => Err(other),
    }
}

/// Delivers to the routee of this index. `Closed` says that another routee is to be chosen.
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
            let Err(refused) = cx.deliver(routee, message) else { return Ok(()) };
            Err(cx.pass_over(index, routee, refused))
        }
        None => Err(SendError::BadPick { message, index, routees: routees.len() }),
    }
}

/// Selects again after the first routee has stopped. This function is apart from the ordinary path, so a message that
/// its first routee takes is not moved for the others. Returns the refused message.
#[cold]
#[inline(never)]
fn select_again<M: Send + 'static, L: RoutingLogic<M> + ?Sized>(
    logic: &L,
    message: M,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Option<SendError<M>> {
    let mut message = message;
    // Each routee may have stopped once; a last selection finds that none is left.
    for refusals in 1..=routees.len() {
        cx.refusals.set(refusals as u32);
        let index = match logic.select(&message, routees, cx) {
            Some(index) => index,
            None => break,
        };
        match deliver_to(index, message, routees, cx) {
            Err(SendError::Closed(refused)) => message = refused,
            done => return done.err(),
        }
    }
    Some(cx.no_routee_error(message))
}
