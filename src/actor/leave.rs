//! How an actor leaves a router, at its head's request. Whatever it does not handle goes to the router again.
//!
//! It ends at the request's position, or handles all that it has been sent, or ends when it thinks fit: see
//! [`Leaving`]. To handle all and to lose nothing it closes its mailbox first: from then on senders are refused and
//! choose again, and the index of the close is the last position that there will be, at which a poison pill waits.

use crate::actor::Actor;
use crate::actor::cell::{Control, Leaving};
use crate::actor::turn::{ActorTurn, Phase, Recipe, drop_guarded};
use crate::actor_ref::ActorRef;
use std::any::Any;

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    pub fn leave(&mut self, router: Box<dyn Any + Send>, leaving: Leaving) {
        self.reroute_to(router);
        match leaving {
            Leaving::ByItself => {}
            Leaving::AtPosition => self.begin_stop(),
            Leaving::WhenEmpty if matches!(self.phase(), Phase::Stopping | Phase::Draining) => {}
            Leaving::WhenEmpty if self.shares => self.leave_when_queue_is_empty(),
            Leaving::WhenEmpty => {
                let end = self.owner().close();
                self.private(|private| {
                    let positioned = &mut private.extras().positioned;
                    let place = positioned.partition_point(|(other, _)| *other <= end);
                    positioned.insert(place, (end, Control::PoisonPill));
                });
            }
        }
    }

    /// A request that this actor did not get to, because it was suspended or stopped, still says where its
    /// messages go.
    pub fn obey_waiting_leave(&mut self) {
        let waiting = self.private(|private| {
            private.extras.as_mut().map(|extras| std::mem::take(&mut extras.positioned)).unwrap_or_default()
        });
        for (_, control) in waiting {
            match control {
                Control::Leave { router, .. } => self.reroute_to(router),
                other => drop_guarded(other),
            }
        }
    }

    fn reroute_to(&mut self, router: Box<dyn Any + Send>) {
        if self.shares {
            // What came through the router is in the queue, so what is in the mailbox was for this actor alone.
            return drop_guarded(router);
        }
        if let Ok(router) = router.downcast::<ActorRef<A::Message>>() {
            let former = self.private(|private| private.extras().reroute.replace(*router));
            drop_guarded(former);
        }
    }
}
