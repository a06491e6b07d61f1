//! Holds: the messages of an actor wait until a future is done.
//!
//! The future belongs to the actor: the actor's own turns poll it, one poll a turn's share of the throughput. So no
//! other actor and no message takes part, and the future ends with the state that it was made for. While an actor
//! holds, its turns go the way of a suspended actor's: they act on immediate control only, and lay the token down under
//! PARKED. The actor's children and the load that routers see are not those of a suspended actor.
//!
//! **The waker** ([`PollWaker`]) sends a [`Wakeup`](crate::core::control::Control::Wakeup). The turn takes the control
//! before it looks at the mark, and lays the token down only when no control is left. So it polls after each wake, or the
//! wake comes before the poll, and the poll sees the cause of the wake.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::held_futures::{Ended, HeldFuture};
use crate::actor::poll_waker::PollWaker;
use crate::actor::recipe::Recipe;
use crate::actor::turn::{ActorTurn, StepOutcome};
use crate::core::control::Control;
use crate::core::polls_within::PollsWithin;
use crate::core::system::SystemCore;
use crate::failure::{Failure, guarded};
use crate::util::panic::{Guarded, drop_guarded, quietly};
use std::any::TypeId;
use std::pin::Pin;
use std::task::{self, Poll, Waker};

/// The last part of the handling that a hold has put off.
type Then<A> = dyn FnOnce(&mut A, &mut Context<<A as Actor>::Message>) -> HandlerResult;

struct HeldFor<A, F, N> {
    future: Guarded<Pin<Box<F>>>,
    /// `None` once the future is done.
    then: Option<Guarded<N>>,
    actor: std::marker::PhantomData<fn(A)>,
}

impl<A, F, N> HeldFuture for HeldFor<A, F, N>
where
    A: Actor,
    F: Future<Output: 'static> + Send + 'static,
    N: FnOnce(&mut A, F::Output, &mut Context<A::Message>) -> HandlerResult + Send + 'static,
{
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Ended> {
        let output = std::task::ready!(self.future.as_mut().poll(cx));
        let then = self.then.take().expect("a hold ends once").into_inner();
        let then: Box<Then<A>> = Box::new(move |actor, ctx| then(actor, output, ctx));
        Poll::Ready(Box::new(then))
    }
}

impl<M: Send + 'static> Context<M> {
    /// Handles no further message until `future` is done, and then runs `then` with its output, as a part of this actor:
    /// an `await` in the middle of a handler. Semantics: actix's `ctx.wait`.
    ///
    /// The messages wait in the mailbox, in their order, and so do ticks of timers and termination notices. Control does
    /// not wait: the actor can be stopped, restarted and watched meanwhile, and its children go on. A bounded mailbox
    /// fills up, and its senders see that. No thread is blocked: the actor's own turns poll the future, within
    /// [`polls_within`](crate::SystemBuilder::polls_within). A future that has to run beside the actor's messages is for
    /// [`pipe_to_self`](Self::pipe_to_self).
    ///
    /// The hold begins when the handler or hook has returned.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// enum AccountMsg {
    ///     Withdraw(u32, ReplyTo<bool>),
    ///     Balance(ReplyTo<u32>),
    /// }
    ///
    /// async fn is_allowed(amount: u32) -> bool {
    ///     amount < 100 // a question to a remote service
    /// }
    ///
    /// struct Account(u32);
    /// impl Actor for Account {
    ///     type Message = AccountMsg;
    ///     fn receive(&mut self, message: AccountMsg, ctx: &mut Context<AccountMsg>) -> HandlerResult {
    ///         match message {
    ///             AccountMsg::Withdraw(amount, reply_to) => {
    ///                 // No other message can change the account until the answer is there.
    ///                 ctx.hold(is_allowed(amount), move |account: &mut Account, is_allowed, _| {
    ///                     let is_done = is_allowed && account.0 >= amount;
    ///                     if is_done {
    ///                         account.0 -= amount;
    ///                     }
    ///                     drop(reply_to.send(is_done));
    ///                     Ok(())
    ///                 });
    ///             }
    ///             AccountMsg::Balance(reply_to) => drop(reply_to.send(self.0)),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("bank").build()?;
    /// let account = system.spawn(|| Account(120))?;
    /// let withdrawal = account.ask_with(|reply_to| AccountMsg::Withdraw(70, reply_to));
    /// assert_eq!(account.ask_with(AccountMsg::Balance).wait()?, 50);
    /// assert!(withdrawal.wait()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # What ends a hold
    ///
    /// | event during the hold | effect |
    /// |---|---|
    /// | the future is done | `then` runs; an error or panic of it fails the actor, as that of a handler does |
    /// | the future panics | the actor fails, and the hold is over; `then` is dropped |
    /// | the actor stops, or is told to | the future and `then` are dropped; the messages that waited become dead letters |
    /// | the actor restarts | the future and `then` are dropped; the new state handles the messages that waited |
    /// | the actor is suspended, by a failure of its own or of its parent | the future is not polled until the actor is resumed; after that the hold goes on |
    /// | a further hold, also one that `then` begins | it begins when all earlier holds of this actor are over |
    ///
    /// A hold of an actor that is stopping is dropped. [`passivate`](Self::passivate) has no effect during a hold, and
    /// [`poison`](crate::ActorRef::poison) acts after it, behind the messages sent before.
    ///
    /// The ledger does not see a hold: the message that began it has been counted as handled, and those that wait are
    /// queued.
    ///
    /// # Panics
    ///
    /// When `A` is not the type of this actor. An actor that another actor wraps can only use
    /// [`pipe_to_self`](Self::pipe_to_self).
    pub fn hold<A, T: 'static>(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut A, T, &mut Context<M>) -> HandlerResult + Send + 'static,
    ) where
        A: Actor<Message = M>,
    {
        // Guarded: either may be dropped while the other unwinds.
        let (future, then) = (Guarded::new(Box::pin(future)), Guarded::new(then));
        assert!(
            self.is_context_of(TypeId::of::<A>()),
            "`hold` in {} got a function for a {}, and the actor is of another type: name the type of the actor itself",
            self.path(),
            std::any::type_name::<A>()
        );
        let held = HeldFor { future, then: Some(then), actor: std::marker::PhantomData };
        let actor = self.me().any_local();
        self.private(|private| {
            let holds = &mut private.extras().holds;
            let waker = holds.waker.get_or_insert_with(|| {
                PollWaker::new(actor, 0, |waker| {
                    let _ = waker.actor.send_system(Control::Wakeup);
                })
            });
            waker.set_due();
            holds.queue.push_back(Box::new(held));
            private.pause.set_held(true);
        });
        // The turn leaves the loop that handles messages.
        self.request_look();
    }

    /// Returns whether this actor holds for a future: messages that come now wait.
    pub fn is_holding(&self) -> bool {
        self.private(|private| private.pause.is_held())
    }

    /// Drops all holds.
    #[cold]
    pub(crate) fn drop_holds(&mut self) {
        let dropped = self.private(|private| {
            private.pause.set_held(false);
            private.extras.as_mut().map(|extras| std::mem::take(&mut extras.holds.queue))
        });
        for held in dropped.into_iter().flatten() {
            drop_held(&self.core().system, held);
        }
    }
}

/// Drops a hold; a future may need its runtime for that.
fn drop_held(system: &SystemCore, held: Box<dyn HeldFuture>) {
    quietly(|| PollsWithin::of(system).run(|| drop(held)));
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Polls the future that the actor holds for, if it is due and no suspension is in force.
    #[inline(never)]
    pub(crate) fn poll_hold(&mut self) -> StepOutcome {
        let poll_waker = self.private(|private| {
            if !private.pause.is_only_held() {
                return None;
            }
            private.extras.as_ref()?.holds.waker.clone()
        });
        let Some(poll_waker) = poll_waker.filter(|waker| waker.is_due()) else {
            return StepOutcome::NothingDue;
        };
        if !self.use_budget() {
            return StepOutcome::Budget;
        }
        poll_waker.begin_poll();
        // Taken out while user code runs.
        let held = self.private(|private| private.extras().holds.queue.pop_front());
        let Some(mut held) = held else {
            self.private(|private| private.pause.set_held(false));
            return StepOutcome::Once;
        };
        self.row.worked(1);
        let waker = Waker::from(poll_waker.clone());
        let system = &self.core().system;
        let polled =
            guarded(|| Ok(PollsWithin::of(system).run(|| held.poll(&mut task::Context::from_waker(&waker)))));
        match polled {
            Ok(Poll::Pending) => self.private(|private| private.extras().holds.queue.push_front(held)),
            Ok(Poll::Ready(then)) => {
                // Before `then` runs: it finds released what the future held.
                drop_held(system, held);
                self.end_hold(&poll_waker);
                self.finish_hold(then);
            }
            Err(failure) => {
                drop_held(system, held);
                self.end_hold(&poll_waker);
                self.fail(failure, None);
            }
        }
        StepOutcome::Once
    }

    /// Ends the first hold; the next hold is due.
    fn end_hold(&self, waker: &PollWaker) {
        self.private(|private| {
            let is_held = !private.extras().holds.queue.is_empty();
            private.pause.set_held(is_held);
        });
        waker.set_due();
    }

    fn finish_hold(&mut self, then: Ended) {
        let timed = self.ctx.receive_timeout().is_some();
        match then.downcast::<Box<Then<A>>>() {
            Ok(then) => self.call(*then),
            // `hold` has checked the type.
            Err(other) => {
                drop_guarded(other);
                self.fail(Failure::msg("a hold of another type of actor"), None);
            }
        }
        if timed {
            // The hold was part of the handling of its message.
            self.ctx.begin_idle_time();
        }
    }
}
