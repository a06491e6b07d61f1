//! The turns of an actor that shares a queue with others, beside its own mailbox: a routee of a balancing pool.
//!
//! The actor keeps its mailbox and its system queue, and with them its identity: messages to its own reference, its
//! timers and its control concern it alone. When its mailbox is empty, the actor takes from the shared queue.
//! `dispatch/shared_queue.rs` tells why no message is left there beside a sleeping actor.
//!
//! **The way of a message.** The router [pushes](shared_queue::SharedQueue::push) it on the sender's thread. If a
//! routee sleeps, the sender claims the routee and wakes it. The routee's turn begins:
//! [`begin_sharing`](ActorTurn::begin_sharing) finds the claim. [`answer_by_taking`](ActorTurn::answer_by_taking) takes
//! the message, wakes the next routee if there are more messages, and hands the message to the actor. Then the turn
//! goes on as any other. When nothing else is left, [`share`](ActorTurn::share) handles more of the queue. When the
//! queue is empty too, the routee registers as idle and sleeps.
//!
//! **Neither queue starves.** The mailbox goes first. But a turn that ends because its throughput is used up, and has
//! taken nothing from the shared queue, takes one message more from there. Unstashed messages, if there are any, go
//! before that.
//!
//! **Routees do not chase the senders.** Where routees are as fast as the senders, the queue holds a few messages all
//! the time. Each look for the next message takes the cache line from the senders that are to push to it. So a routee
//! waits a moment after a [run](RUN) of messages if there are few, and once more before it falls idle after a
//! [stream](STREAM) of messages. Without the first wait a message from one thread took 150 ns instead of 75.
//!
//! **A claim is answered soon.** No other routee is woken before the answer. So the actor looks at the shared queue
//! before its mailbox. If control comes first, which may suspend or stop the actor or take long, the actor answers
//! before the control. A thread that wakes a routee leaves it where any worker of its dispatcher can take it.

use crate::actor::actor::Actor;
use crate::actor::private::{Phase, SharedQueueState, Wakeup};
use crate::actor::recipe::Recipe;
use crate::actor::skip_unwanted::TakenFrom;
use crate::actor::spawn::Held;
use crate::actor::turn::{ActorTurn, StepOutcome};
use crate::core::cell::Header;
use crate::core::control::Control;
use crate::dispatch::shared_queue;
use crate::dispatch::shared_queue::Taker;
use crate::failure::{Failure, caught};
use crate::mailbox::mailbox::Owner;
use crate::sync::{Arc, hint};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// After so many messages of the shared queue in a row the routee looks at the length of the queue.
const RUN: u32 = 16;

/// A routee that finds the queue empty after so many messages looks once more after a pause.
const STREAM: u32 = 4;

/// The length below which the queue counts as short: two of its blocks. From another block than the last one, messages
/// are taken without a look at the end to which senders push.
const SHORT: usize = 64;

/// The length of the pause, in spin hints: one to three microseconds.
const PAUSE: u32 = if crate::sync::EXPLORED { 0 } else { 64 };

/// A queue that actors share.
pub(crate) type SharedQueue<M> = shared_queue::SharedQueue<M, Wakeup>;

/// The reason why no message of the shared queue is to be handled.
enum NoneTaken {
    Empty,
    /// Skipped messages have used up the throughput, and there may be more.
    Budget,
}

/// The reason why the handling of messages of the shared queue paused.
enum SharePause {
    /// Something that goes first may be due.
    Due,
    Empty,
    /// The throughput is used up.
    Budget,
    Failed(Failure),
}

/// Leaves the lines of the queue to the senders for a moment.
#[cold]
fn pause() {
    (0..PAUSE).for_each(|_| hint::spin_loop());
}

impl<M: Send + 'static> Held<M> {
    /// Makes the actor take from `queue`, beside its mailbox.
    pub(crate) fn share(mut self, queue: &Arc<SharedQueue<M>>) -> Self {
        let taker = Some(Taker::join(queue.clone(), Wakeup(self.actor().any_local())));
        let balanced = SharedQueueState { taker, has_taken: false, ends_when_empty: false };
        self.private(|private| private.extras().balanced = Some(balanced));
        self
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Reads or changes the data of an actor that shares a queue.
    #[inline]
    fn balanced<R>(&self, act: impl FnOnce(&mut SharedQueueState<A::Message>) -> R) -> Option<R> {
        self.private(|private| private.extras.as_mut()?.balanced.as_mut().map(act))
    }

    /// As [`balanced`](Self::balanced), for an actor that has not left the queue.
    #[inline]
    fn taker<R>(&self, act: impl FnOnce(&mut Taker<A::Message, Wakeup>) -> R) -> Option<R> {
        self.balanced(|balanced| balanced.taker.as_mut().map(act)).flatten()
    }

    /// Begins a turn: finds whether the actor shares a queue, and marks it as awake.
    pub(crate) fn begin_sharing(&mut self) {
        self.shares = self.balanced(|_| ()).is_some();
        if self.shares {
            self.skips = self.does_skip();
            self.withdraw();
        }
    }

    /// Marks the actor as awake.
    fn withdraw(&mut self) {
        // Before the look at the claim: the wakeup that is cleared must not be that of a later claim.
        self.owner().clear_wakeups();
        self.owes |= self.taker(Taker::withdraw) == Some(true);
    }

    /// Takes a message of the shared queue, counts it, and answers a claim. If this actor skips unwanted messages, it
    /// skips them here too; a skipped message spends as much of the throughput as a handled message.
    #[inline]
    fn take_shared(&mut self) -> Result<A::Message, NoneTaken> {
        loop {
            let taken = self.balanced(|balanced| {
                let taken = balanced.taker.as_mut()?.take();
                balanced.has_taken |= taken.is_some();
                taken
            });
            if self.owes {
                self.answer();
            }
            let message = taken.flatten().ok_or(NoneTaken::Empty)?;
            if !self.skips {
                self.row.handled(1);
                self.ctx.count_beside(1);
                return Ok(message);
            }
            if let Some(message) = self.unless_unwanted(message, TakenFrom::Elsewhere) {
                return Ok(message);
            }
            if !self.use_budget() {
                return Err(NoneTaken::Budget);
            }
        }
    }

    /// Allows other actors to be woken, and wakes one of them if there is a message in the queue.
    pub(crate) fn answer(&mut self) {
        self.owes = false;
        // To wake another actor may free an actor that has ended, so nothing is borrowed here.
        if let Some(queue) = self.taker(|taker| taker.queue().clone()) {
            queue.answer();
        }
    }

    /// Answers the claim before anything else: handles one message, if it is still there.
    pub(crate) fn answer_by_taking(&mut self) -> StepOutcome {
        if !self.use_budget() {
            return StepOutcome::Budget;
        }
        match self.take_shared() {
            Ok(message) => {
                self.deliver(message);
                StepOutcome::Once
            }
            Err(NoneTaken::Budget) => StepOutcome::Budget,
            Err(NoneTaken::Empty) => {
                self.return_budget();
                StepOutcome::NothingDue
            }
        }
    }

    /// Handles messages of the shared queue until something goes before them; the actor has nothing else to do. When
    /// the queue is empty, senders may count on this actor: it sleeps, or ends if it was told so.
    pub(crate) fn share(&mut self) -> StepOutcome {
        // A message from the mailbox.
        self.end_of_messages();
        let pause = match self.private(|private| private.looks_at_each()) || self.owes {
            true => self.share_one(),
            false => self.share_many(),
        };
        self.end_of_messages();
        match pause {
            SharePause::Due => StepOutcome::Once,
            SharePause::Budget => StepOutcome::Budget,
            SharePause::Empty => self.wait_for_shared(),
            SharePause::Failed(failure) => {
                self.fail(failure, None);
                StepOutcome::Once
            }
        }
    }

    /// Handles one message of the shared queue, for an actor that needs a step beside the handling of each message.
    fn share_one(&mut self) -> SharePause {
        if !self.use_budget() {
            return SharePause::Budget;
        }
        match self.take_shared() {
            Ok(message) => self.receive(message).map_or_else(SharePause::Failed, |()| SharePause::Due),
            Err(NoneTaken::Budget) => SharePause::Budget,
            Err(NoneTaken::Empty) => {
                self.return_budget();
                SharePause::Empty
            }
        }
    }

    /// Handles messages of the shared queue, as `handle_messages` handles those of the mailbox.
    fn share_many(&mut self) -> SharePause {
        let Self { header, cell, row, ctx, turn, left, .. } = self;
        let header = *header;
        // SAFETY: as in `owner`, which would borrow all of `self`.
        let owner = unsafe { Owner::<Header, Control, A::Message>::from_raw(header.cast()) };
        let (mut taken, mut taken_before_pause) = (0, 0);
        let handling = AssertUnwindSafe(|| {
            cell.actor.with_mut(|actor| {
                // SAFETY: as in `with_actor`.
                let Some(actor) = (unsafe { &mut *actor }) else { return SharePause::Empty };
                loop {
                    // SAFETY: this turn runs the actor.
                    if *left == 0 || unsafe { turn.should_yield(header) } {
                        return SharePause::Budget;
                    }
                    let message = cell.owned.private.with_mut(|private| {
                        // SAFETY: as in `private`, which would borrow all of `self`.
                        let taker = unsafe { &*private }.taker()?;
                        if taken % RUN == 0 && taken > 0 && taker.queue().len() < SHORT {
                            pause();
                        }
                        taker.take()
                    });
                    let Some(message) = message else {
                        if taken - taken_before_pause < STREAM {
                            return SharePause::Empty;
                        }
                        taken_before_pause = taken;
                        pause();
                        continue;
                    };
                    taken += 1;
                    *left -= 1;
                    // Before the handler, so an actor that sees the handler's effects finds the message counted.
                    row.handled(1);
                    if let Err(failure) = actor.receive(message, ctx) {
                        return SharePause::Failed(failure);
                    }
                    // Everything else that a handler can have made due comes through the system queue, too.
                    if owner.has_system() || owner.has_claims() {
                        return SharePause::Due;
                    }
                }
            })
        });
        let pause = catch_unwind(handling).unwrap_or_else(|payload| SharePause::Failed(caught(payload)));
        if taken > 0 {
            self.ctx.count_beside(i64::from(taken));
            self.balanced(|balanced| balanced.has_taken = true);
        }
        pause
    }

    fn wait_for_shared(&mut self) -> StepOutcome {
        if self.balanced(|balanced| balanced.ends_when_empty) == Some(true) {
            return self.end_when_empty();
        }
        if self.taker(Taker::register) == Some(false) {
            self.withdraw();
            return StepOutcome::Once;
        }
        StepOutcome::NothingDue
    }

    /// Lays the token down, if there is nothing to do; from now on senders count on this actor.
    pub(crate) fn try_idle_sharing(&mut self) -> bool {
        if self.owner().try_idle_unless_woken().is_ok() {
            return true;
        }
        self.withdraw();
        false
    }

    /// Closes the mailbox. The actor ends when it has handled its accepted messages and has found the queue empty.
    pub(crate) fn leave_when_queue_is_empty(&mut self) {
        self.owner().close();
        self.balanced(|balanced| balanced.ends_when_empty = true);
    }

    /// Ends now, if other actors take from the queue or the queue is empty; otherwise once it has emptied the queue.
    pub(crate) fn end_unless_last(&mut self) {
        if self.owes {
            self.answer();
        }
        self.balanced(|balanced| balanced.ends_when_empty = true);
        if let StepOutcome::NothingDue = self.end_when_empty() {
            self.begin_stop();
        }
    }

    /// Ends, unless a sender that counts on this actor alone has pushed after the actor's last look.
    fn end_when_empty(&mut self) -> StepOutcome {
        let Some(taker) = self.balanced(|balanced| balanced.taker.take()).flatten() else {
            return StepOutcome::NothingDue;
        };
        match taker.leave_when_empty() {
            Ok(()) => self.begin_stop(),
            Err(taker) => _ = self.balanced(|balanced| balanced.taker = Some(taker)),
        }
        StepOutcome::Once
    }

    /// Ends a turn whose throughput is used up.
    pub(crate) fn end_shared_turn(&mut self) {
        if self.owes {
            self.answer();
        }
        if self.balanced(|balanced| std::mem::take(&mut balanced.has_taken)) != Some(false) {
            return;
        }
        self.take_system_queue();
        if self.has_unstashed() {
            // Unstashed messages go before all that comes from elsewhere.
            return;
        }
        if self.phase() == Phase::Alive && !self.private(|private| private.pause.is_any()) {
            if let Ok(message) = self.take_shared() {
                self.deliver(message);
            }
            self.balanced(|balanced| balanced.has_taken = false);
        }
    }

    /// Leaves the queue at the actor's end. Messages left in a queue that no other actor shares become dead letters of
    /// the parent.
    pub(crate) fn stop_sharing(&mut self) {
        if self.owes {
            self.answer();
        }
        self.shares = false;
        let balanced = self.private(|private| private.extras.as_mut()?.balanced.take());
        let Some(taker) = balanced.and_then(|balanced| balanced.taker) else { return };
        let messages = taker.leave();
        let core = self.core();
        let me = self.me();
        let recipient = core.parent.as_ref().unwrap_or(&me);
        for message in messages {
            core.system.dead_letter(self.row, recipient, message);
        }
    }
}
