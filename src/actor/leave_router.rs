//! How an actor leaves a router, at its head's request.
//!
//! It handles everything that it has been sent, and then ends. To lose nothing it closes its mailbox first:
//! from then on senders are refused and choose again, and the index of the close is the last position that
//! there will be, at which it ends. It closes at the request's position, so that what it sends
//! itself on the way there reaches it, or at once; or it is told farewell, and ends when it thinks fit: see
//! [`Leaving`].
//!
//! What lies behind the position is handled here, too, and not routed again, since a mailbox cannot tell what
//! came through the router from what was sent to this actor alone, by itself for instance.
//!
//! One that ends earlier, because it is stopped, fails, or stops itself, hands what it has left to the router again,
//! unless copies may be among it (`core/copies.rs`): then it becomes dead letters.

use crate::actor::actor::Actor;
use crate::actor::private::Phase;
use crate::actor::recipe::{LifeStage, Recipe};
use crate::actor::turn::ActorTurn;
use crate::core::actor_ref::ActorRef;
use crate::core::control::{Control, Leaving};
use crate::core::recipient::Leave;
use crate::sync::atomic::Ordering;
use crate::util::panic::drop_guarded;
use std::any::Any;

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    pub(crate) fn leave(&mut self, leave: Box<dyn Any + Send>, leaving: Leaving) {
        let farewell = self.reroute_to(leave);
        if matches!(self.phase(), Phase::Stopping | Phase::Draining) {
            return drop_guarded(farewell);
        }
        match leaving {
            Leaving::ByItself => self.on_farewell(farewell),
            Leaving::AtOnce if self.shares => self.leave_when_queue_is_empty(),
            Leaving::AtOnce | Leaving::AtPosition => self.end_when_done(),
        }
    }

    /// Takes no more messages, and ends once those that there are have been handled.
    fn end_when_done(&mut self) {
        let end = self.owner().close();
        self.reached(LifeStage::Ending);
        self.private(|private| {
            let positioned = &mut private.extras().positioned;
            let place = positioned.partition_point(|(other, _)| *other <= end);
            positioned.insert(place, (end, Control::HasLeft));
        });
    }

    /// All that it was sent is handled. One that shares a queue ends only if others are there for what is in it, which
    /// may have gone while it got here: as the last it empties the queue first.
    pub(crate) fn end_leaving(&mut self) {
        if self.shares { self.end_unless_last() } else { self.begin_stop() }
    }

    /// A new state was made, which knows of no farewell: it ends without.
    pub(crate) fn leave_after_farewell(&mut self) {
        let was_told = self.private(|private| {
            private.extras.as_mut().is_some_and(|e| std::mem::take(&mut e.heard_farewell))
        });
        if was_told {
            self.end_when_done();
        }
    }

    fn on_farewell(&mut self, farewell: Option<A::Message>) {
        let Some(message) = farewell else { return };
        // Until now it was control, and in no books.
        self.row.sent(1);
        self.row.handled(1);
        match self.receive(message) {
            Ok(()) => self.private(|private| private.extras().heard_farewell = true),
            Err(failure) => {
                // Resumed or made anew, it ends without.
                self.end_when_done();
                self.fail(failure, None);
            }
        }
    }

    /// A request that this actor did not get to, because it was suspended or stopped, still says where its
    /// messages go.
    pub(crate) fn apply_pending_leave(&mut self) {
        let waiting = self.private(|private| {
            private.extras.as_mut().map(|extras| std::mem::take(&mut extras.positioned)).unwrap_or_default()
        });
        for (_, control) in waiting {
            match control {
                Control::Leave { leave, .. } => drop_guarded(self.reroute_to(leave)),
                other => self.core().drop_control(other),
            }
        }
    }

    /// Remembers the router, if it leaves one; returns the farewell.
    fn reroute_to(&mut self, leave: Box<dyn Any + Send>) -> Option<A::Message> {
        let Ok(leave) = leave.downcast::<Leave<A::Message>>() else { return None };
        let Leave { router, farewell } = *leave;
        if self.shares {
            // What came through the router is in the queue, so what is in the mailbox was for this actor alone.
            drop_guarded(router);
        } else {
            let former = self.private(|private| private.extras().reroute.replace(router));
            drop_guarded(former);
        }
        farewell
    }

    /// Where a message goes that this actor leaves behind, if not to dead letters.
    pub(crate) fn router_for_leftovers(&self) -> Option<ActorRef<A::Message>> {
        // Ordering: Relaxed; the mark was set, or seen set, by the copy's sender before its push, with which we have
        // synchronised to get the message.
        if self.core().takes_copies.load(Ordering::Relaxed) {
            return None;
        }
        self.private(|private| private.extras.as_ref().and_then(|extras| extras.reroute.clone()))
    }
}
