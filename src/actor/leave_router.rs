//! The leave of a routee: the actor leaves a router at the request of the router's head.
//!
//! The routee handles all messages that it has been sent, and then ends. To lose no message it closes its mailbox
//! first: from then on senders are refused and choose again, and no message has a later position than the index of the
//! close, at which the routee ends. It closes at the position of the request, so messages that it sends to itself
//! before that position reach it; or it closes at once; or it gets a farewell message, and ends when it decides to: see
//! [`Leaving`].
//!
//! Messages may lie between the position of the request and the close. The routee handles these, too, and the router
//! does not route them again: a mailbox cannot distinguish messages that came through the router from messages sent to this actor directly, for instance by
//! itself.
//!
//! A routee that ends earlier, because it is stopped, fails, or stops itself, hands its remaining messages to the
//! router again. If copies may be among them (`core/copies.rs`), the messages become dead letters instead.

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

    /// Closes the mailbox, and ends once the accepted messages have been handled.
    fn end_when_done(&mut self) {
        let end = self.owner().close();
        self.reached(LifeStage::Ending);
        self.private(|private| {
            let positioned = &mut private.extras().positioned;
            let place = positioned.partition_point(|(other, _)| *other <= end);
            positioned.insert(place, (end, Control::HasLeft));
        });
    }

    /// Ends after all messages that the actor was sent are handled. An actor that shares a queue ends only if other
    /// takers remain for the messages in the queue, and they may have ended meanwhile: the last taker empties the queue
    /// first.
    pub(crate) fn end_leaving(&mut self) {
        if self.shares { self.end_unless_last() } else { self.begin_stop() }
    }

    /// Ends an actor whose new state does not know of the farewell, without waiting for the state to stop itself.
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
        // Until now the farewell was control, and was not counted in the ledger.
        self.row.sent(1);
        self.row.handled(1);
        self.ctx.count_beside(1);
        match self.receive(message) {
            Ok(()) => self.private(|private| private.extras().heard_farewell = true),
            Err(failure) => {
                // After a resume or a restart the actor ends without waiting for the farewell.
                self.end_when_done();
                self.fail(failure, None);
            }
        }
    }

    /// Applies a leave request that this actor did not reach because it was suspended or stopped: the request still
    /// says where the actor's messages go.
    pub(crate) fn apply_pending_leave(&mut self) {
        let waiting = self.private(|private| Some(std::mem::take(&mut private.extras.as_mut()?.positioned)));
        let Some(waiting) = waiting else { return };
        for (_, control) in waiting {
            match control {
                Control::Leave { leave, .. } => drop_guarded(self.reroute_to(leave)),
                other => self.core().drop_control(other),
            }
        }
    }

    /// Stores the router for the leftovers, if the actor leaves a router; returns the farewell.
    fn reroute_to(&mut self, leave: Box<dyn Any + Send>) -> Option<A::Message> {
        let Ok(leave) = leave.downcast::<Leave<A::Message>>() else { return None };
        let Leave { router, farewell, .. } = *leave;
        if self.shares {
            // The messages that came through the router are in the shared queue, so the messages in the mailbox were
            // for this actor alone.
            drop_guarded(router);
        } else {
            let former = self.private(|private| private.extras().reroute.replace(router));
            drop_guarded(former);
        }
        farewell
    }

    /// The router that gets a message which this actor leaves behind; `None` for dead letters.
    pub(crate) fn router_for_leftovers(&self) -> Option<ActorRef<A::Message>> {
        // Ordering: Relaxed; the mark was set, or seen set, by the copy's sender before its push, with which this turn
        // has synchronised to get the message.
        if self.core().takes_copies.load(Ordering::Relaxed) {
            return None;
        }
        self.private(|private| private.extras.as_ref().and_then(|extras| extras.reroute.clone()))
    }
}
