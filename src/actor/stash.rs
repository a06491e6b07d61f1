//! The stash: messages that an actor puts aside until it can handle them.
//!
//! What is stashed lies in `held`; [`unstash_all`](Context::unstash_all) moves it to `front`, which the turn
//! handles before it looks at the mailbox. Both are the owner's alone, so no mailbox has to be a deque.
//!
//! The loop that handles messages does not look at `front`. Whatever fills it sends the actor a
//! [`Wakeup`](Control::Wakeup) through its own lane, which that loop looks at before each message anyway; and the
//! turn comes back to that loop only when `front` is empty. So an actor without a stash pays for none.
//!
//! In the books a stashed message is one that the actor sent itself: `sent` when it is stashed, `queued` while
//! it waits, and then handled or dead-lettered. The handler that stashed it was counted on its own, so it does
//! not matter whether it was given the message or made it.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::Recipe;
use crate::actor::stash_buffer::{Stash, Stashed};
use crate::actor::turn::{ActorTurn, StepOutcome};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::ActorCore;
use crate::core::control::{Control, Terminated};
use crate::sync::atomic::Ordering;
use std::fmt;

impl ActorCore {
    /// How many messages the actor holds outside its mailbox.
    pub(crate) fn held(&self) -> usize {
        // Ordering: Relaxed; a statistic. Who sees a message counted as sent or handled sees it here too,
        // since the count in the books is stored after this one and with Release.
        self.held.load(Ordering::Relaxed) as usize
    }

    /// Owner only.
    pub(crate) fn add_held(&self, more: i32) {
        // Ordering: Relaxed, both; only the owner writes, and see `held`.
        let held = self.held.load(Ordering::Relaxed);
        self.held.store(held.wrapping_add_signed(more), Ordering::Relaxed);
    }
}

impl<M: Send + 'static> Context<M> {
    /// Puts a message aside until [`unstash_all`](Self::unstash_all).
    ///
    /// A stashed message survives a restart, after which it is handled without being asked for. When the actor
    /// stops, it becomes a dead letter (or goes back to the router that the actor leaves). Messages can't be
    /// stashed twice: the message moves here, and there is no other to stash.
    ///
    /// In the [`Ledger`](crate::Ledger) to stash is to send oneself a message: it counts as sent once more, is
    /// `queued` while it waits, and then handled. [`queued`](crate::ActorRef::queued) includes it;
    /// [`load`](crate::ActorRef::load) does not, since what waits for an event asks for none of the actor's
    /// time, and routers should not read a second line of memory for each routee.
    ///
    /// Stash and unstash are Akka's; but no special mailbox is needed.
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
    /// [`StashError`] with the message when the stash is full; its capacity is said by the
    /// [deployment](crate::settings::Deployment::stash_capacity), the [builder](crate::actor::ActorBuilder::stash_capacity) or the
    /// [mailbox](crate::Mailbox::stash_capacity), the first of them that says something.
    ///
    /// With `?` a full stash fails the actor: by default it restarts, and handles all that it has stashed again.
    pub fn stash(&mut self, message: M) -> Result<(), StashError<M>> {
        if let Err(capacity) = self.has_room_in_stash() {
            return Err(StashError { message, capacity });
        }
        self.extras(|extras| extras.stash.held.push_back(Stashed::Message(message)));
        self.core().add_held(1);
        self.core().system.ledger().for_this_thread().sent(1);
        Ok(())
    }

    /// As [`stash`](Self::stash), for the notice that [`Actor::terminated`] was given: it runs again with this
    /// notice after [`unstash_all`](Self::unstash_all), unless the actor is [unwatched](Self::unwatch) before.
    /// (What [`watch_with`](Self::watch_with) sends is a message like any other.)
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

    /// Puts everything stashed in front of the mailbox, in the order in which it was stashed; it is handled
    /// next, also before what an earlier call has put there. The stash is empty afterwards.
    ///
    /// This takes no room in a bounded mailbox: however full that is, nothing is refused, dropped or lost. (In
    /// Akka what finds no room becomes a dead letter.)
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

    /// How many messages and notices are stashed; what is unstashed already is not.
    pub fn stashed(&self) -> usize {
        self.private(|private| private.extras.as_ref().map_or(0, |extras| extras.stash.held.len()))
    }

    /// The capacity if it is used up.
    fn has_room_in_stash(&self) -> Result<(), usize> {
        self.extras(|extras| {
            let Stash { held, front, capacity } = &extras.stash;
            // The count in the core holds both.
            let full = held.len() >= *capacity as usize
                || held.len() + front.len() >= Stash::<M>::UNBOUNDED as usize;
            if full { Err(*capacity as usize) } else { Ok(()) }
        })
    }

    /// Makes the turn leave the loop that handles messages, and look at what else there is.
    pub(crate) fn request_look(&self) {
        // Refused after the end, when nothing is handled any more.
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

    /// The next one unstashed.
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

    /// Moves everything stashed behind what is unstashed: it is newer.
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

    /// Handles the next message that was unstashed. It counts as a message of this turn, as others do.
    pub(crate) fn handle_unstashed(&mut self) -> StepOutcome {
        if !self.has_unstashed() {
            return StepOutcome::NothingDue;
        }
        if !self.use_budget() {
            return StepOutcome::Budget;
        }
        match self.ctx.next_unstashed() {
            Some(Stashed::Message(message)) => {
                if let Some(message) = self.unless_unwanted(message) {
                    self.deliver(message);
                }
            }
            Some(Stashed::Notice(notice)) => self.notify(notice),
            None => {}
        }
        StepOutcome::Once
    }
}

/// A message that was not stashed, since the stash is full; it comes back.
pub struct StashError<M> {
    /// The message, or the notice.
    pub message: M,
    /// How many may be stashed.
    pub capacity: usize,
}

impl<M> fmt::Debug for StashError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StashError").field("capacity", &self.capacity).finish_non_exhaustive()
    }
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
