//! The selection by those logics of this crate that run no code of the user's.
//!
//! Nothing can unwind, route again or wait between such a selection and the push to an actor. So a message that is
//! routed directly needs no account and no hop: see `deliver_directly` in `routing_ref.rs`.

use crate::routing::logics::random::Random;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::logics::smallest_mailbox::SmallestMailbox;
use crate::routing::logics::two_choices::TwoChoices;
use crate::routing::routees::Routee;
use std::any::{Any, TypeId};

/// Whether logics of this type select directly. Known when the program is compiled.
#[inline(always)]
pub(crate) fn selects_directly<L: 'static>() -> bool {
    [
        TypeId::of::<RoundRobin>(),
        TypeId::of::<Random>(),
        TypeId::of::<SmallestMailbox>(),
        TypeId::of::<TwoChoices>(),
    ]
    .contains(&TypeId::of::<L>())
}

/// Selects the first routee of a message that is not routed by a router value; `seed` is that of the router. `None`: the
/// logic is another, there is no routee, or the selection would have to ask a recipient that is no actor.
#[inline(always)]
pub(crate) fn select_directly<M: Send + 'static, L: 'static>(
    logic: &L,
    routees: &[Routee<M>],
    seed: u64,
) -> Option<usize> {
    let logic: &dyn Any = logic;
    if let Some(round_robin) = logic.downcast_ref::<RoundRobin>() {
        return round_robin.select_directly(routees);
    }
    if let Some(random) = logic.downcast_ref::<Random>() {
        return random.select_directly(routees, seed);
    }
    if let Some(two_choices) = logic.downcast_ref::<TwoChoices>() {
        return two_choices.select_directly(routees, seed);
    }
    logic.downcast_ref::<SmallestMailbox>()?.select_directly(routees)
}
