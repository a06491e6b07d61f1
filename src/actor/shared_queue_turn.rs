//! A queue that an actor shares with others, beside its own mailbox: routees of a balancing pool.
//!
//! The actor keeps its mailbox and its lane, and with them its identity: what is sent to its own reference, its
//! timers and its control concern it alone. When its mailbox is empty, it takes from the shared queue; how no
//! message is left there beside a sleeping actor is told in `dispatch/shared_queue.rs`.
//!
//! **A message's way.** [`push`](shared_queue::SharedQueue::push) by the router, on the sender's thread; if a
//! routee sleeps, the sender claims it and nudges it. The routee's turn begins:
//! [`begin_sharing`](ActorTurn::begin_sharing) finds the claim.
//! [`answer_by_taking`](ActorTurn::answer_by_taking) takes the message, wakes the next routee if there is
//! more, and hands it to the actor. Then the turn goes on as any, and when nothing else is left,
//! [`share`](ActorTurn::share) handles more of the queue. When that is empty too, the routee registers as
//! idle and sleeps.
//!
//! **Neither starves.** The mailbox goes first. But a turn that ends because its throughput is used up, and has taken
//! nothing from the shared queue, takes one message more, from there, unless something is unstashed, which goes first.
//!
//! **Senders are not chased.** Where routees are as fast as the senders, the queue holds a few messages all the time, and
//! each look for the next one takes the line from the senders that they are to push to: a message from one thread took 76
//! ns, and takes 41 since a routee waits a moment after a [run](RUN) of messages if there are few.
//!
//! **A claim is answered soon.** No other routee is woken before. So the actor looks at the shared queue before its
//! mailbox; if control comes first, which may suspend or stop it or take long, it answers before that. And
//! whoever wakes a routee leaves it where any worker of its dispatcher can take it.

use crate::actor::actor::Actor;
use crate::actor::private::{Phase, SharedQueueState, Wakeup};
use crate::actor::recipe::Recipe;
use crate::actor::spawn::Held;
use crate::actor::turn::{ActorTurn, StepOutcome};
use crate::dispatch::shared_queue;
use crate::dispatch::shared_queue::Taker;
use crate::sync::{Arc, hint};

/// After so many messages of the shared queue in a row the routee looks how long that is.
const RUN: u32 = 16;

/// The queue is short then: two of its blocks. From another block than the last one, messages are taken without a look at
/// the end to which senders push.
const SHORT: usize = 64;

/// The pause then, in spin hints: one or two microseconds.
const PAUSE: u32 = if crate::sync::EXPLORED { 0 } else { 64 };

/// A queue that actors share.
pub(crate) type SharedQueue<M> = shared_queue::SharedQueue<M, Wakeup>;

/// Why no message of the shared queue is to be handled.
enum NoneTaken {
    Empty,
    /// What was skipped has used up the throughput, and there may be more.
    Budget,
}

impl<M: Send + 'static> Held<M> {
    /// Makes the actor take from `queue`, too.
    pub(crate) fn share(mut self, queue: &Arc<SharedQueue<M>>) -> Self {
        let taker = Some(Taker::join(queue.clone(), Wakeup(self.actor().any_local())));
        let balanced = SharedQueueState { taker, has_taken: false, ends_when_empty: false };
        self.private(|private| private.extras().balanced = Some(balanced));
        self
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Looks at or changes what an actor that shares has.
    #[inline]
    fn balanced<R>(&self, act: impl FnOnce(&mut SharedQueueState<A::Message>) -> R) -> Option<R> {
        self.private(|private| private.extras.as_mut()?.balanced.as_mut().map(act))
    }

    /// As [`balanced`](Self::balanced), for one that has not left.
    #[inline]
    fn taker<R>(&self, act: impl FnOnce(&mut Taker<A::Message, Wakeup>) -> R) -> Option<R> {
        self.balanced(|balanced| balanced.taker.as_mut().map(act)).flatten()
    }

    /// A turn begins.
    pub(crate) fn begin_sharing(&mut self) {
        self.shares = self.balanced(|_| ()).is_some();
        if self.shares {
            self.skips = self.does_skip();
            self.withdraw();
        }
    }

    /// The actor is awake.
    fn withdraw(&mut self) {
        // Before the look at the claim, so that the wakeup forgotten is not that of a later one.
        self.owner().clear_wakeups();
        self.owes |= self.taker(Taker::withdraw) == Some(true);
    }

    /// Takes a message of the shared queue, counts it, and answers a claim. What nobody wants any more is skipped, where
    /// this actor does so, and spends of the throughput as what is handled does.
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
                return Ok(message);
            }
            if let Some(message) = self.unless_unwanted(message) {
                return Ok(message);
            }
            if !self.use_budget() {
                return Err(NoneTaken::Budget);
            }
        }
    }

    /// Lets others be woken, and wakes one if there is something in the queue.
    pub(crate) fn answer(&mut self) {
        self.owes = false;
        // Waking others may free one that has ended, so nothing is borrowed.
        if let Some(queue) = self.taker(|taker| taker.queue().clone()) {
            queue.answer();
        }
    }

    /// The claim is what comes first: one message is handled, if it is still there.
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

    /// The actor has nothing else to do: handles messages of the shared queue until something goes before them. When
    /// there is none, others may count on this actor: it sleeps, or ends if it was told so.
    pub(crate) fn share(&mut self) -> StepOutcome {
        let mut run = 0;
        while self.use_budget() {
            if run == RUN {
                run = 0;
                self.pause_for_batch();
            }
            run += 1;
            let message = match self.take_shared() {
                Ok(message) => message,
                Err(NoneTaken::Budget) => return StepOutcome::Budget,
                Err(NoneTaken::Empty) => {
                    self.return_budget();
                    return self.wait_for_shared();
                }
            };
            if let Err(failure) = self.receive(message) {
                self.fail(failure, None);
                return StepOutcome::Once;
            }
            // All else that a handler can have made due comes by the lane, too.
            if self.owner().has_system() || self.owner().has_claims() {
                return StepOutcome::Once;
            }
        }
        StepOutcome::Budget
    }

    /// Waits a moment if the queue is short.
    fn pause_for_batch(&self) {
        if self.taker(|taker| taker.queue().len() < SHORT) == Some(true) {
            (0..PAUSE).for_each(|_| hint::spin_loop());
        }
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

    /// Lays the token down, if there is nothing to do; others count on this actor now.
    pub(crate) fn try_idle_sharing(&mut self) -> bool {
        if self.owner().try_idle_unless_woken().is_ok() {
            return true;
        }
        self.withdraw();
        false
    }

    /// It refuses messages of its own, and ends when it has handled those that it has, and found the queue empty.
    pub(crate) fn leave_when_queue_is_empty(&mut self) {
        self.owner().close();
        self.balanced(|balanced| balanced.ends_when_empty = true);
    }

    /// Ends now, if others take from the queue or there is nothing in it; else once it has emptied that.
    pub(crate) fn end_unless_last(&mut self) {
        if self.owes {
            self.answer();
        }
        self.balanced(|balanced| balanced.ends_when_empty = true);
        if let StepOutcome::NothingDue = self.end_when_empty() {
            self.begin_stop();
        }
    }

    /// Ends, if nobody has pushed after this actor's last look who counts on it alone.
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

    /// The throughput is used up.
    pub(crate) fn end_shared_turn(&mut self) {
        if self.owes {
            self.answer();
        }
        if self.balanced(|balanced| std::mem::take(&mut balanced.has_taken)) != Some(false) {
            return;
        }
        self.take_system_queue();
        if self.has_unstashed() {
            // It goes before all that comes from elsewhere.
            return;
        }
        if self.phase() == Phase::Alive && self.private(|private| private.suspended == 0) {
            if let Ok(message) = self.take_shared() {
                self.deliver(message);
            }
            self.balanced(|balanced| balanced.has_taken = false);
        }
    }

    /// The actor has ended. What is left when nobody else shares the queue, goes to dead letters as the parent's.
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
