//! The strategies that a router in GoAkt's words can have.

use crate::ask::fork::Answerable;
use crate::routing::goakt::error::RouterError;
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::broadcast::Broadcast;
use crate::routing::logics::consistent_hashing::ConsistentHashing;
use crate::routing::logics::hash_key::KeySink;
use crate::routing::logics::random::Random;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::logics::scatter_gather::ScatterGatherFirstCompleted;
use crate::routing::logics::tail_chopping::TailChopping;

/// No strategy was chosen: GoAkt's default, to all routees, for messages that can be cloned.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unset;

/// The way in which a described router routes messages `M`. Not to be implemented: for other logics there is
/// [`SystemRef::router`](crate::SystemRef::router).
pub trait RoutingStrategy<M: Send + 'static>: private::Sealed {
    /// The logic of the strategy.
    type Logic: RoutingLogic<M>;

    /// Returns the logic.
    #[doc(hidden)]
    fn into_logic(self) -> Self::Logic;

    /// Refuses faults of the strategy, in the words of GoAkt's validation.
    #[doc(hidden)]
    fn check(&self, router: &str) -> Result<(), RouterError> {
        let _ = router;
        Ok(())
    }
}

mod private {
    /// Keeps other crates from implementing the trait: [`SpawnRouter`](crate::routing::goakt::SpawnRouter) chooses.
    pub trait Sealed {}
}

impl private::Sealed for Unset {}
impl private::Sealed for Broadcast {}
impl private::Sealed for RoundRobin {}
impl private::Sealed for Random {}
impl private::Sealed for ScatterGatherFirstCompleted {}
impl private::Sealed for TailChopping {}
impl<M, F> private::Sealed for ConsistentHashing<M, F> {}

impl<M: Clone + Send + 'static> RoutingStrategy<M> for Unset {
    type Logic = Broadcast;
    fn into_logic(self) -> Broadcast {
        Broadcast
    }
}

impl<M: Clone + Send + 'static> RoutingStrategy<M> for Broadcast {
    type Logic = Self;
    fn into_logic(self) -> Self {
        self
    }
}

impl<M: Send + 'static> RoutingStrategy<M> for RoundRobin {
    type Logic = Self;
    fn into_logic(self) -> Self {
        self
    }
}

impl<M: Send + 'static> RoutingStrategy<M> for Random {
    type Logic = Self;
    fn into_logic(self) -> Self {
        self
    }
}

impl<M, F> RoutingStrategy<M> for ConsistentHashing<M, F>
where
    M: Send + 'static,
    F: Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static,
{
    type Logic = Self;
    fn into_logic(self) -> Self {
        self
    }
}

impl<M: Answerable + Clone + Send + 'static> RoutingStrategy<M> for ScatterGatherFirstCompleted {
    type Logic = Self;
    fn into_logic(self) -> Self {
        self
    }

    fn check(&self, router: &str) -> Result<(), RouterError> {
        RoutingLogic::<M>::check(self).map_err(|fault| RouterError::ScatterGather {
            router: router.to_owned(),
            fault: fault.to_string(),
        })
    }
}

impl<M: Answerable + Clone + Send + 'static> RoutingStrategy<M> for TailChopping {
    type Logic = Self;
    fn into_logic(self) -> Self {
        self
    }

    fn check(&self, router: &str) -> Result<(), RouterError> {
        RoutingLogic::<M>::check(self).map_err(|fault| RouterError::TailChopping {
            router: router.to_owned(),
            fault: fault.to_string(),
        })
    }
}
