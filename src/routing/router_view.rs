//! The view of a router in the statistics of its system.

use crate::core::actor_ref::RecipientLoad;
use crate::failure::guarded;
use crate::routing::routing_ref::SharedRouter;
use crate::telemetry::router_stats::{RouteeStats, RouterStats, RouterView};
use crate::util::panic::drop_guarded;
use crate::util::reclaim;
use std::sync::Arc as StdArc;

/// A router of messages `M`.
pub(crate) struct ViewOfRouter<M: Send + 'static> {
    pub shared: StdArc<SharedRouter<M>>,
    /// The name of the logic.
    pub logic: String,
}

impl<M: Send + 'static> RouterView for ViewOfRouter<M> {
    fn stats(&self) -> RouterStats {
        let (list, version) = {
            let section = reclaim::section();
            let table = self.shared.table.read(&section);
            (table.share(), table.version())
        };
        let routees = list.iter().map(|routee| {
            let actor = routee.watched();
            // The load of another recipient is user code.
            let load = guarded(|| Ok(routee.actor().load())).unwrap_or_else(|failure| {
                drop_guarded(failure);
                RecipientLoad::Unknown
            });
            RouteeStats {
                identity: routee.identity().to_owned(),
                uid: actor.as_ref().map_or(0, |actor| actor.uid()),
                load,
                handled: actor.as_ref().map_or(0, |actor| actor.handled()),
            }
        });
        let routees = routees.collect();
        let counts = &self.shared.info.rare.counts;
        RouterStats {
            path: self.shared.info.head.path(),
            logic: self.logic.clone(),
            version,
            routees,
            refused: counts.refused.get(),
            no_routee: counts.no_routee.get(),
            attempts: counts.attempts.get(),
            late: counts.late.get(),
        }
    }
}
