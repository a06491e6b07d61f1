//! The clock of an ask, and the counters that count the ask.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::ledger::Counters;
use crate::core::routed_asks::Routed;
use crate::core::system::SystemRef;
use crate::path::actor_path::ActorPath;
use crate::time::alarm::Alarms;
use std::ops::Deref;
use std::sync::Arc;

/// An asker's reference to its clock. A shared reference costs two read-modify-writes for each ask, in a cache line
/// that all askers write; a reference that lives for ever costs nothing.
#[derive(Clone)]
pub(crate) enum AskClock {
    /// Lives for ever.
    Static(&'static dyn Alarms),
    /// The clock of the system that the asked actor lives in. The count is in the cache line that every message to that
    /// actor writes anyway.
    Target(AnyActorRef),
    /// The clock of the system that this actor lives in. The ask is not for this actor.
    System(AnyActorRef),
    /// The clock of the asked actor's system, through a router: the count is in a cache line of the thread that asks.
    Routed(Arc<Routed<SystemRef, AnyActorRef>>),
    /// The clock of its system, for an ask that an actor under `/temp` serves: that actor ends with the ask.
    Served(Arc<ServingActor>),
    /// Lives as long as its last holder: for tests, which have no system.
    #[cfg(any(test, pointsman_loom))]
    Shared(Arc<dyn Alarms>),
}

impl AskClock {
    /// The counters of asks by this clock.
    #[inline]
    pub(crate) fn counters(&self) -> Option<&Counters> {
        match self {
            Self::Target(actor) | Self::System(actor) => Some(actor.core().system.ledger()),
            Self::Routed(routed) => Some(routed.system.core().ledger()),
            Self::Served(server) => Some(server.0.core().system.ledger()),
            _ => None,
        }
    }

    /// The path of the asked actor or router, if the ask is known to be for one. Calls no user code.
    pub(crate) fn asked(&self) -> Option<ActorPath> {
        match self {
            Self::Target(actor) => Some(actor.path()),
            Self::Routed(routed) => routed.head.as_ref().map(AnyActorRef::path),
            _ => None,
        }
    }
}

/// The reference by which the error of an ask finds the path of its target, where the ask has no [`AskClock`] of its
/// own. It is counted as there.
pub(crate) enum Asked {
    Actor(AnyActorRef),
    Router(Arc<Routed<SystemRef, AnyActorRef>>),
    Unknown,
}

impl Asked {
    pub(super) fn path(&self) -> Option<ActorPath> {
        match self {
            Self::Actor(actor) => Some(actor.path()),
            Self::Router(routed) => routed.head.as_ref().map(AnyActorRef::path),
            Self::Unknown => None,
        }
    }
}

impl Deref for AskClock {
    type Target = dyn Alarms;

    fn deref(&self) -> &(dyn Alarms + 'static) {
        match self {
            Self::Static(alarms) => *alarms,
            Self::Target(actor) | Self::System(actor) => actor.core().system.timers(),
            Self::Routed(routed) => routed.system.core().timers(),
            Self::Served(server) => server.0.core().system.timers(),
            #[cfg(any(test, pointsman_loom))]
            Self::Shared(alarms) => &**alarms,
        }
    }
}

/// The temporary actor that serves an ask. It ends when the ask is over.
pub(crate) struct ServingActor(pub(crate) AnyActorRef);

impl Drop for ServingActor {
    fn drop(&mut self) {
        self.0.stop();
    }
}
