//! The stash: messages that an actor puts aside until it can handle them.
//!
//! Stashed messages lie in `held`. [`unstash_all`](Context::unstash_all) moves them to `front`, which the turn handles
//! before it looks at the mailbox. Only the owner touches both, so no mailbox has to be a deque.
//!
//! The loop that handles messages does not look at `front`. The code that fills `front` sends the actor a
//! [`Wakeup`](Control::Wakeup) through the actor's own system queue, which that loop looks at before each message
//! anyway. The turn comes back to that loop only when `front` is empty. So an actor without a stash pays nothing for
//! it.
//!
//! In the ledger a stashed message is a message that the actor sent to itself: `sent` when it is stashed, `queued`
//! while it waits, and then handled or dead-lettered. The handler that stashed it was counted separately. So it does
//! not matter whether the handler was given the message or made it.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::Recipe;
use crate::actor::skip_unwanted::TakenFrom;
use crate::actor::stash_buffer::{Stash, Stashed};
use crate::actor::turn::{ActorTurn, StepOutcome};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::ActorCore;
use crate::core::control::{Control, Terminated};
use crate::sync::atomic::Ordering;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;

impl ActorCore {
    /// Returns the number of messages that the actor holds outside its mailbox.
    pub(crate) fn held(&self) -> usize {
        // Ordering: Relaxed; a statistic. A thread that sees a message counted as sent or handled sees it here too,
        // since the count in the ledger is stored after this one and with Release.
        self.held.load(Ordering::Relaxed) as usize
    }

    /// Adds to the count of held messages. Only the owner calls this.
    pub(crate) fn add_held(&self, more: i32) {
        // Ordering: Relaxed, both; only the owner writes, and see `held`.
        let held = self.held.load(Ordering::Relaxed);
        self.held.store(held.wrapping_add_signed(more), Ordering::Relaxed);
    }
}

impl<M: Send + 'static> Context<M> {
    /// Puts a message aside until [`unstash_all`](Self::unstash_all).
    ///
    /// A stashed message survives a restart; after the restart it is handled without a call of `unstash_all`. When the
    /// actor stops, the message becomes a dead letter (or goes back to the router that the actor leaves). A message
    /// cannot be stashed twice: it moves into the stash.
    ///
    /// The [`Ledger`](crate::Ledger) counts a stashed message as sent by the actor to itself: it counts as sent once
    /// more, is `queued` while it waits, and is then handled. [`queued`](crate::ActorRef::queued) includes it.
    /// [`load`](crate::ActorRef::load) does not: a message that waits for an event needs none of the actor's time, and
    /// routers should not read a second cache line for each routee.
    ///
    /// Stash and unstash are Akka's, but need no special mailbox.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// enum StoreMsg {
    ///     Opened(String),
    ///     Read(ReplyTo<String>),
    /// }
    ///
    /// /// Can't answer before it is open.
    /// #[derive(Default)]
    /// struct Store {
    ///     content: Option<String>,
    /// }
    ///
    /// impl Actor for Store {
    ///     type Message = StoreMsg;
    ///     fn receive(&mut self, message: StoreMsg, ctx: &mut Context<StoreMsg>) -> HandlerResult {
    ///         match (message, &self.content) {
    ///             (StoreMsg::Opened(content), _) => {
    ///                 self.content = Some(content);
    ///                 ctx.unstash_all();
    ///             }
    ///             (StoreMsg::Read(reply_to), Some(content)) => drop(reply_to.send(content.clone())),
    ///             // A full stash hands it back; dropped here, its reply port tells the asker.
    ///             (read, None) => drop(ctx.stash(read)),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let store = system.actor("store").stash_capacity(1000).spawn(Store::default)?;
    /// let early = store.ask_with(StoreMsg::Read);
    /// store.tell(StoreMsg::Opened("apples".into()));
    /// assert_eq!(early.wait()?, "apples");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StashError`] with the message when the stash is full. Its capacity comes from the
    /// [deployment](crate::settings::Deployment::stash_capacity), or else from the
    /// [builder](crate::actor::ActorBuilder::stash_capacity), or else from the [mailbox](crate::Mailbox::stash_capacity).
    ///
    /// With `?` a full stash fails the actor: by default the actor restarts, and handles all stashed messages again.
    pub fn stash(&mut self, message: M) -> Result<(), StashError<M>> {
        if let Err(capacity) = self.has_room_in_stash() {
            return Err(StashError { message, capacity });
        }
        self.extras(|extras| extras.stash.held.push_back(Stashed::Message(message)));
        self.core().add_held(1);
        self.core().system.ledger().count_sent();
        Ok(())
    }

    /// Stashes the notice that [`Actor::terminated`] was given, as [`stash`](Self::stash) does for a message. The hook
    /// runs again with this notice after [`unstash_all`](Self::unstash_all), unless the actor is
    /// [unwatched](Self::unwatch) before. (The message of [`watch_with`](Self::watch_with) is a message like any
    /// other.)
    ///
    /// # Errors
    ///
    /// As [`stash`](Self::stash).
    pub fn stash_terminated(&mut self, terminated: Terminated) -> Result<(), StashError<Terminated>> {
        if let Err(capacity) = self.has_room_in_stash() {
            return Err(StashError { message: terminated, capacity });
        }
        self.extras(|extras| extras.stash.held.push_back(Stashed::Notice(terminated)));
        Ok(())
    }

    /// Puts all stashed messages in front of the mailbox, in the order in which they were stashed. They are handled
    /// next, also before the messages that an earlier call has put there. The stash is empty afterwards.
    ///
    /// This takes no room in a bounded mailbox: even if the mailbox is full, nothing is refused, dropped or lost. (In
    /// Akka a message that finds no room becomes a dead letter.)
    pub fn unstash_all(&mut self) {
        let fills_front = self.private(|private| {
            let Some(extras) = &mut private.extras else { return false };
            let Stash { held, front, .. } = &mut extras.stash;
            let was_empty = front.is_empty();
            std::mem::swap(held, front);
            front.append(held);
            was_empty && !front.is_empty()
        });
        if fills_front {
            self.request_look();
        }
    }

    /// The number of messages and notices that are stashed; unstashed messages do not count.
    pub fn stashed(&self) -> usize {
        self.private(|private| private.extras.as_ref().map_or(0, |extras| extras.stash.held.len()))
    }

    /// Returns the capacity as an error if it is used up.
    fn has_room_in_stash(&self) -> Result<(), usize> {
        self.extras(|extras| {
            let Stash { held, front, capacity } = &extras.stash;
            // The count in the core includes both queues.
            let full = held.len() >= *capacity as usize
                || held.len() + front.len() >= Stash::<M>::UNBOUNDED as usize;
            if full { Err(*capacity as usize) } else { Ok(()) }
        })
    }

    /// Makes the turn leave the loop that handles messages, and look for other work.
    pub(crate) fn request_look(&self) {
        // The nudge is refused after the end, when nothing is handled any more.
        let _ = self.me().any_local().send_system(Control::Wakeup);
    }

    /// Forgets stashed notices about `actor`.
    pub(crate) fn forget_stashed(&mut self, actor: &AnyActorRef) {
        let forgotten: Vec<Stashed<M>> = self.private(|private| {
            let Some(extras) = &mut private.extras else { return Vec::new() };
            let Stash { held, front, .. } = &mut extras.stash;
            let is_about =
                |stashed: &Stashed<M>| matches!(stashed, Stashed::Notice(notice) if notice.actor == *actor);
            let mut forgotten = Vec::new();
            for queue in [held, front] {
                if queue.iter().any(is_about) {
                    let (about, rest) = std::mem::take(queue).into_iter().partition(is_about);
                    forgotten.push(about);
                    *queue = rest;
                }
            }
            forgotten.into_iter().flatten().collect::<Vec<_>>()
        });
        drop(forgotten);
    }

    /// Takes the next unstashed message or notice.
    fn next_unstashed(&mut self) -> Option<Stashed<M>> {
        let next = self.private(|private| private.extras.as_mut()?.stash.front.pop_front());
        if let Some(Stashed::Message(_)) = &next {
            self.core().add_held(-1);
        }
        next
    }

    /// A message that the actor leaves behind at its end.
    pub(crate) fn left_in_stash(&mut self) -> Option<M> {
        loop {
            if self.stashed() > 0 {
                self.append_stashed();
            }
            if let Stashed::Message(message) = self.next_unstashed()? {
                return Some(message);
            }
        }
    }

    /// Moves everything stashed behind the unstashed messages, since it is newer.
    fn append_stashed(&mut self) {
        self.extras(|extras| {
            let Stash { held, front, .. } = &mut extras.stash;
            front.append(held);
        });
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    pub(crate) fn has_unstashed(&self) -> bool {
        self.private(|private| private.extras.as_ref().is_some_and(|extras| extras.stash.has_unstashed()))
    }

    /// Handles the next unstashed message. It counts as a message of this turn, as others do.
    pub(crate) fn handle_unstashed(&mut self) -> StepOutcome {
        if !self.has_unstashed() {
            return StepOutcome::NothingDue;
        }
        if !self.use_budget() {
            return StepOutcome::Budget;
        }
        match self.ctx.next_unstashed() {
            Some(Stashed::Message(message)) => {
                if let Some(message) = self.unless_unwanted(message, TakenFrom::Elsewhere) {
                    self.deliver(message);
                }
            }
            Some(Stashed::Notice(notice)) => self.notify(notice),
            None => {}
        }
        StepOutcome::Once
    }
}

/// The error of a full stash: the message was not stashed, and comes back.
pub struct StashError<M> {
    /// The message, or the notice.
    pub message: M,
    /// The number of messages that the stash may hold.
    pub capacity: usize,
}

impl<M> fmt::Display for StashError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stash full: {} are stashed, unstash or refuse the message, or raise ActorBuilder::stash_capacity, or that of \
             the deployment or mailbox",
            self.capacity
        )
    }
}

impl<M> std::error::Error for StashError<M> {}

debug_by_display! { StashError<M> }
