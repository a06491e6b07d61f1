//! The wait of an asker: in a thread, or as a future under any executor.
//!
//! The order of the steps of [`Waiting::look`] makes parking safe: answer, clock, alarm, and the waiter last. Steps
//! before may park and consume a token (an alarm's lock may), but no step comes between the registration of the waiter
//! and the park. Every return from a park looks again, so a token left from earlier costs only one more round.
//!
//! A deadline belongs to the asker alone: the alarm only wakes it, and the asker compares the clock. The alarm is
//! cancelled as soon as the ask is over, in whichever way it ends (invariant 9).

use crate::ask::ask_clock::{AskClock, ServingActor};
use crate::ask::error::{AskError, Outcome};
use crate::ask::reply::{Call, ReplyTo, Request};
use crate::ask::slot::{AskerHalf, FreeSlot, quietly};
use crate::ask::spin::wait_awake;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::ask_counts::{AskCounter, count};
use crate::core::dead_letter::DeadLetterReason;
use crate::core::deferred_send;
use crate::core::deferred_send::DeferredSend;
use crate::core::pending_send::{Awaited, WaitBound};
use crate::dispatch::stepping::{Reached, run_any_turns};
use crate::sync::{per_thread, thread};
use crate::time::alarm::AlarmKey;
use crate::time::no_system::NO_SYSTEM;
use std::cell::OnceCell;
use std::fmt;
use std::pin::Pin;
// Both as std's `Wake` and trait objects need them; no protocol of ours rests on these counts.
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// An ask: an answer on its way.
///
/// The request was sent when the ask was made; the ask only waits. If the request found a full mailbox that [lets
/// senders wait](crate::OverflowPolicy::Wait), it waits for room as soon as its asker sets a timeout, by
/// [`within`](Self::within), or begins to wait for the answer. Messages that the asker sends to that actor in between
/// go before the request. [`wait`](Self::wait) blocks the thread; as a future the ask runs under any executor. Dropping
/// the ask gives it up: a reply is late then, and [`ReplyTo::wanted`] tells the replier.
#[must_use = "an ask that is dropped is given up; use `tell` if no answer is wanted"]
pub struct Ask<R> {
    waiting: Waiting<R>,
}

impl<R> Ask<R> {
    /// Sets the deadline of the answer to `limit` from now, by the system's clock. Without it an ask waits as long as a
    /// replier may still answer. The last call counts.
    ///
    /// A request that waits for room in a [mailbox that lets senders wait](crate::OverflowPolicy::Wait) does so in this
    /// call, and no longer than `limit`. If there is no room until then, the ask ends with [`AskError::Timeout`], and
    /// the request is a dead letter. An actor never gets a request whose deadline had passed before its mailbox took
    /// it. Nor does it get a copy for which there was no room when another actor had answered.
    pub fn within(mut self, limit: Duration) -> Self {
        self.waiting.set_limit(limit);
        self
    }

    /// Blocks this thread until the ask is over.
    ///
    /// # Errors
    /// [`AskError`] gives the reason why there is no answer. On a work-stealing worker, and in a turn on a
    /// calling-thread dispatcher, it is always [`AskError::WouldBlockWorker`], even if the answer is there already.
    ///
    /// On the thread of a `TestSystem` (feature `testkit`) turns are run instead; an ask that they leave unanswered
    /// ends with [`AskError::Stalled`].
    #[inline]
    pub fn wait(mut self) -> Result<R, AskError> {
        self.waiting.wait().0
    }
}

impl<R> Future for Ask<R> {
    type Output = Result<R, AskError>;

    /// # Panics
    /// When the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.waiting.look(cx.waker(), true).map(|(outcome, _spare)| outcome)
    }
}

impl<R> fmt::Debug for Ask<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("state", &self.waiting.state).finish()
    }
}

/// Begins an ask; the slot comes from the thread's free list.
#[inline]
pub(crate) fn begin<R>(ask_clock: AskClock) -> (ReplyTo<R>, Ask<R>) {
    let (reply_to, waiting) = Waiting::begin(FreeSlot::take(), ask_clock);
    (reply_to, Ask { waiting })
}

/// Makes `actor` end with the ask.
pub(crate) fn served_by<R>(ask: &mut Ask<R>, actor: AnyActorRef) {
    ask.waiting.ask_clock = AskClock::Served(Arc::new(ServingActor(actor)));
}

/// Makes an ask that failed before its request was sent. It counts as begun, unless its timeout was zero.
pub(crate) fn failed<R>(error: AskError, ask_clock: AskClock) -> Ask<R> {
    if error.counter().is_some() {
        count(AskCounter::Begun, ask_clock.counters());
    }
    let state = State::Failed(error);
    Ask { waiting: Waiting { state, limit: None, alarm: None, ask_clock, refused_for: None } }
}

/// Makes the ask wait for room, when its asker has set a timeout.
#[cold]
pub(crate) fn put_off<R>(ask: &mut Ask<R>, unsent: DeferredSend) {
    ask.waiting.put_off(unsent);
}

/// Marks an ask whose request the target refused. Call it *before* the handed-back message is dropped: the reply port
/// in the message would fail the ask with [`AskError::NoReply`] first.
///
/// An answer that is there already stays.
pub(crate) fn refuse<R>(ask: &mut Ask<R>, error: AskError) {
    ask.waiting.refuse(error);
}

/// An asker that asks again and again with a reply slot of its own, one ask at a time.
///
/// Nothing is allocated as long as each answer comes before the next ask. A slot in which ports are left (of a late
/// replier) is left to them, and the next ask takes a fresh slot.
///
/// ```
/// # use pointsman::prelude::*;
/// # struct Double;
/// # #[derive(Debug)] struct Of(u32);
/// # impl Request for Of { type Reply = u32; }
/// # impl Actor for Double {
/// #     type Message = Call<Of>;
/// #     fn receive(&mut self, call: Call<Of>, _: &mut Context<Call<Of>>) -> HandlerResult {
/// #         call.answer(|Of(x)| 2 * x);
/// #         Ok(())
/// #     }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let double = system.actor("double").spawn(|| Double)?;
/// let mut asker = Asker::new();
/// for x in 0..1000 {
///     assert_eq!(asker.ask(&double, Of(x)).wait()?, 2 * x);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Asker<R> {
    free_slot: Option<FreeSlot<R>>,
}

impl<R> Asker<R> {
    /// Makes an asker without a slot; the first ask takes one.
    pub const fn new() -> Self {
        Self { free_slot: None }
    }
}

impl<R: Send + 'static> Asker<R> {
    /// Sends a request and returns its answer on the way, as [`ActorRef::ask`] does. The request is sent at once;
    /// [`within`](PendingReply::within) sets a deadline. The next ask must wait until this ask is over or dropped.
    #[inline]
    pub fn ask<M, Q>(&mut self, target: &ActorRef<M>, request: Q) -> PendingReply<'_, R>
    where
        M: From<Call<Q>> + Send + 'static,
        Q: Request<Reply = R>,
    {
        self.ask_with(target, |reply_to| M::from(Call::new(request, reply_to)))
    }

    /// Sends a message that is made around a reply port: the primitive under [`ask`](Self::ask).
    pub fn ask_with<M: Send + 'static, N: Into<M>>(
        &mut self,
        target: &ActorRef<M>,
        make: impl FnOnce(ReplyTo<R>) -> N,
    ) -> PendingReply<'_, R> {
        let (reply_to, mut pending) = begin_with(self, target.ask_clock());
        let message = make(reply_to).into();
        let (sent, put_off) = deferred_send::put_off(|| target.send_putting_off(message));
        if let Err(refused) = sent {
            // Before the message is dropped: its port would report `NoReply`.
            refuse_pending(&mut pending, target.ask_error(&refused));
            target.dead_letter(refused);
        }
        if let Some(put_off) = put_off {
            let put_off = put_off.returning_by(|| target.way_back());
            put_off_pending(&mut pending, put_off.counted_by(target.system()));
        }
        pending
    }
}

impl<R> Default for Asker<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> fmt::Debug for Asker<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("has_slot", &self.free_slot.is_some()).finish()
    }
}

/// The answer of an [`Asker`] on its way; like [`Ask`].
#[must_use = "an ask that is dropped is given up; use `tell` if no answer is wanted"]
pub struct PendingReply<'a, R> {
    waiting: Waiting<R>,
    asker: &'a mut Asker<R>,
}

impl<R> PendingReply<'_, R> {
    /// Sets the deadline of the answer to `limit` from now, as [`Ask::within`] does.
    pub fn within(mut self, limit: Duration) -> Self {
        self.waiting.set_limit(limit);
        self
    }

    /// Blocks this thread until the ask is over.
    ///
    /// # Errors
    /// As [`Ask::wait`].
    #[inline]
    pub fn wait(mut self) -> Result<R, AskError> {
        let (outcome, free_slot) = self.waiting.wait();
        self.asker.free_slot = free_slot;
        outcome
    }
}

impl<R> Future for PendingReply<'_, R> {
    type Output = Result<R, AskError>;

    /// # Panics
    /// When the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.waiting.look(cx.waker(), true).map(|(outcome, free_slot)| {
            this.asker.free_slot = free_slot;
            outcome
        })
    }
}

impl<R> fmt::Debug for PendingReply<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReply").field("state", &self.waiting.state).finish()
    }
}

/// Begins an ask in the asker's slot.
#[inline]
pub(crate) fn begin_with<R>(asker: &mut Asker<R>, ask_clock: AskClock) -> (ReplyTo<R>, PendingReply<'_, R>) {
    let free_slot = asker.free_slot.take().unwrap_or_else(FreeSlot::take);
    let (reply_to, waiting) = Waiting::begin(free_slot, ask_clock);
    (reply_to, PendingReply { waiting, asker })
}

/// Makes a pending ask wait for room, as [`put_off`] does.
#[cold]
pub(crate) fn put_off_pending<R>(pending: &mut PendingReply<'_, R>, unsent: DeferredSend) {
    pending.waiting.put_off(unsent);
}

/// Marks a pending ask whose request the target refused, as [`refuse`] does.
pub(crate) fn refuse_pending<R>(pending: &mut PendingReply<'_, R>, error: AskError) {
    pending.waiting.refuse(error);
}

/// The part that [`Ask`] and [`PendingReply`] have in common.
struct Waiting<R> {
    state: State<R>,
    limit: Option<Limit>,
    alarm: Option<Alarm>,
    ask_clock: AskClock,
    /// The reason why the request has waited for room in vain, if it has.
    refused_for: Option<DeadLetterReason>,
}

enum State<R> {
    Pending(AskerHalf<R>),
    /// The request waits for room, and its asker has set no timeout.
    Unsent(AskerHalf<R>, Box<DeferredSend>),
    /// The ask is over without an answer, and the asker has not been told.
    Failed(AskError),
    /// The asker has been told.
    Over,
}

impl<R> fmt::Debug for State<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending(half) if half.is_answered() => f.write_str("Answered"),
            Self::Pending(_) => f.write_str("Pending"),
            Self::Unsent(..) => f.write_str("Unsent"),
            Self::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
            Self::Over => f.write_str("Over"),
        }
    }
}

#[derive(Clone, Copy)]
struct Limit {
    after: Duration,
    at: Duration,
}

/// An alarm that is set, and the waker that it was set for.
struct Alarm {
    key: AlarmKey,
    waker: Waker,
}

/// The end of an ask: the outcome for the asker, and the slot if it can be used again.
type End<R> = (Outcome<R>, Option<FreeSlot<R>>);

impl<R> Waiting<R> {
    #[inline]
    fn begin(free_slot: FreeSlot<R>, ask_clock: AskClock) -> (ReplyTo<R>, Self) {
        count(AskCounter::Begun, ask_clock.counters());
        let (half, port) = free_slot.begin();
        let state = State::Pending(half);
        (port.into(), Self { state, limit: None, alarm: None, ask_clock, refused_for: None })
    }

    fn set_limit(&mut self, after: Duration) {
        self.cancel_alarm();
        // A sum too large for a `Duration` is as good as no deadline.
        self.limit = self.ask_clock.now().checked_add(after).map(|at| Limit { after, at });
        self.send_now();
    }

    fn put_off(&mut self, unsent: DeferredSend) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Pending(half) => self.state = State::Unsent(half, Box::new(unsent)),
            // The ask is over already: the request is given up with it.
            other => self.state = other,
        }
    }

    /// Waits for room, if the request has to.
    #[inline]
    fn send_now(&mut self) {
        if matches!(self.state, State::Unsent(..)) {
            self.wait_for_room();
        }
    }

    #[cold]
    fn wait_for_room(&mut self) {
        let (half, unsent) = match std::mem::replace(&mut self.state, State::Over) {
            State::Unsent(half, unsent) => (half, unsent),
            other => return self.state = other,
        };
        self.state = State::Pending(half);
        let State::Pending(half) = &mut self.state else { unreachable!("just set") };
        let until = self.limit.map(|limit| WaitBound { at: limit.at, clock: &*self.ask_clock });
        let in_vain = unsent.wait(until, half);
        match self.limit {
            Some(limit) if in_vain.is_late() => self.refuse(AskError::timeout(limit.after)),
            _ if in_vain.found_no_routee() => self.refuse(AskError::no_routees()),
            _ => self.refused_for = in_vain.reason(),
        }
    }

    fn refuse(&mut self, error: AskError) {
        if let State::Pending(half) = &self.state {
            if !half.is_answered() {
                // Counted when the asker is told. The half leaves here, so its port is late.
                self.state = State::Failed(error);
            }
        }
    }

    #[inline]
    fn is_answered(&self) -> bool {
        match &self.state {
            State::Pending(half) => half.is_answered(),
            State::Unsent(..) => false,
            State::Failed(_) | State::Over => true,
        }
    }

    #[inline]
    fn wait(&mut self) -> End<R> {
        self.send_now();
        if matches!(self.state, State::Pending(_)) && !may_block() {
            return self.end(Err(AskError::WouldBlockWorker), None);
        }
        if self.run_turns() != Reached::Elsewhere {
            return self.end_now();
        }
        wait_awake(|| self.is_answered());
        self.try_end().unwrap_or_else(|| self.park())
    }

    /// Runs the turns of the asked actors, if this thread is the one that runs them, instead of waiting for them.
    #[inline]
    fn run_turns(&self) -> Reached {
        match &self.ask_clock {
            AskClock::Target(actor) | AskClock::System(actor) => {
                actor.core().system.run_turns(&mut || self.is_answered())
            }
            AskClock::Routed(routed) => routed.system.core().run_turns(&mut || self.is_answered()),
            // The replier is not known: this thread waits for an answer that its own turns do not bring.
            _ => {
                run_any_turns(&mut || self.is_answered());
                Reached::Elsewhere
            }
        }
    }

    /// Ends the ask in its present state: all turns were run.
    #[cold]
    fn end_now(&mut self) -> End<R> {
        if let Some(end) = self.try_end() {
            return end;
        }
        match self.limit {
            Some(limit) if self.ask_clock.now() >= limit.at => self.time_out(limit),
            _ => self.end(Err(AskError::Stalled), None),
        }
    }

    /// Waits on after the first looks.
    fn park(&mut self) -> End<R> {
        let waker = thread_waker();
        let real = self.ask_clock.is_real();
        loop {
            // By a real clock the park itself ends at the deadline; another clock needs the alarm. The time is read
            // before the waiter is registered, so nothing comes between that and the park.
            let rest = self.limit.filter(|_| real).map(|it| it.at.saturating_sub(self.ask_clock.now()));
            match self.look(&waker, !real) {
                Poll::Ready(end) => return end,
                Poll::Pending => match rest {
                    Some(rest) => thread::park_timeout(rest),
                    None => thread::park(),
                },
            }
        }
    }

    /// Looks at the answer, then at the clock; if neither ends the ask, registers `waker` with both.
    fn look(&mut self, waker: &Waker, by_alarm: bool) -> Poll<End<R>> {
        self.send_now();
        if let Some(end) = self.try_end() {
            return Poll::Ready(end);
        }
        if let Some(limit) = self.limit {
            if self.ask_clock.now() >= limit.at {
                return Poll::Ready(self.time_out(limit));
            }
            if by_alarm {
                self.set_alarm(limit, waker);
            }
        }
        let State::Pending(half) = &mut self.state else { unreachable!("`try_end` ends all others") };
        if half.register(waker) {
            return Poll::Ready(self.try_end().expect("the half has just shown its answer"));
        }
        Poll::Pending
    }

    /// Ends the ask if its answer is there.
    #[inline]
    fn try_end(&mut self) -> Option<End<R>> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Pending(half) => match half.take() {
                Ok((outcome, free_slot)) => Some(self.end(outcome, free_slot)),
                Err(half) => {
                    self.state = State::Pending(half);
                    None
                }
            },
            unsent @ State::Unsent(..) => {
                self.state = unsent;
                None
            }
            State::Failed(error) => Some(self.end(Err(error), None)),
            State::Over => panic!("an ask was polled after it had given its answer"),
        }
    }

    /// Ends the ask at its deadline, or with an answer that came before the asker could leave.
    fn time_out(&mut self, limit: Limit) -> End<R> {
        let State::Pending(half) = std::mem::replace(&mut self.state, State::Over) else {
            unreachable!("`try_end` ends all others")
        };
        let left = half.leave();
        let end = self.end(left.outcome.unwrap_or(Err(AskError::timeout(limit.after))), left.free_slot);
        if matches!(self.ask_clock, AskClock::Served(_)) {
            // The actor that serves the ask ends now, and not when a future that has given its answer is dropped.
            self.ask_clock = AskClock::Static(&NO_SYSTEM);
        }
        end
    }

    #[inline]
    fn end(&mut self, mut outcome: Outcome<R>, free_slot: Option<FreeSlot<R>>) -> End<R> {
        self.cancel_alarm();
        let row = match &mut outcome {
            Ok(_) => Some(AskCounter::Answered),
            Err(error) => self.explain(error),
        };
        self.count(row);
        if !matches!(self.state, State::Over) {
            // Last: this drops an answer that comes too late for this end, and its destructor may panic.
            self.state = State::Over;
        }
        (outcome, free_slot)
    }

    /// Adds the known facts about the ask to an error; returns the counter of the error. This runs only where the ask
    /// has failed, so an ask with an answer pays nothing for it.
    #[cold]
    fn explain(&self, error: &mut AskError) -> Option<AskCounter> {
        if let (Some(reason), AskError::NoReply { .. }) = (self.refused_for, &*error) {
            // Its port was dropped with the request.
            *error = AskError::refused_for(reason);
        }
        error.note_target(|| self.ask_clock.asked());
        error.counter()
    }

    #[inline]
    fn count(&self, row: Option<AskCounter>) {
        row.into_iter().for_each(|row| count(row, self.ask_clock.counters()));
    }

    fn set_alarm(&mut self, limit: Limit, waker: &Waker) {
        let is_set = |alarm: &Alarm| alarm.waker.will_wake(waker) && self.ask_clock.is_set(alarm.key);
        if self.alarm.as_ref().is_some_and(is_set) {
            return;
        }
        self.cancel_alarm();
        // The clones call user code, so they come before any change here.
        let (waker, kept) = (waker.clone(), waker.clone());
        let key = self.ask_clock.wake_at(limit.at, waker);
        self.alarm = Some(Alarm { key, waker: kept });
    }

    #[inline]
    fn cancel_alarm(&mut self) {
        if let Some(Alarm { key, waker }) = self.alarm.take() {
            self.ask_clock.cancel(key);
            // A panic of the waker must not keep the ask from being counted.
            quietly(|| drop(waker));
        }
    }
}

impl<R> Drop for Waiting<R> {
    fn drop(&mut self) {
        self.cancel_alarm();
        let row = match &self.state {
            State::Pending(_) | State::Unsent(..) => Some(AskCounter::Cancelled),
            State::Failed(error) => error.counter(),
            State::Over => None,
        };
        self.count(row);
    }
}

impl<R> Awaited for AskerHalf<R> {
    fn is_there(&self) -> bool {
        self.is_answered()
    }

    fn wake(&mut self, waker: &Waker) {
        let _ = self.register(waker);
    }
}

impl<R> Awaited for Ask<R> {
    fn is_there(&self) -> bool {
        self.waiting.is_answered()
    }

    fn wake(&mut self, waker: &Waker) {
        if let State::Pending(half) = &mut self.waiting.state {
            half.wake(waker);
        }
    }
}

/// Returns whether the calling thread may wait for replies.
fn may_block() -> bool {
    !crate::dispatch::may_block::must_not_wait()
}

/// Wakes a parked thread.
struct ThreadWaker(thread::Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

per_thread! {
    static THREAD_WAKER: OnceCell<Waker> = OnceCell::new();
}

/// The calling thread's waker, made once for each thread.
pub(crate) fn thread_waker() -> Waker {
    fn make() -> Waker {
        Waker::from(Arc::new(ThreadWaker(thread::current())))
    }
    THREAD_WAKER.try_with(|cached| cached.get_or_init(make).clone()).unwrap_or_else(|_| make())
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::core::ask_counts;
    use crate::sync::{Mutex, lock};
    use crate::time::alarm::Alarms;

    /// A clock that stays at the time that a test sets, and lists its alarms.
    #[derive(Default)]
    struct HandClock {
        inside: Mutex<Inside>,
    }

    #[derive(Default)]
    struct Inside {
        now: Duration,
        made: u64,
        alarms: Vec<(AlarmKey, Duration)>,
    }

    impl HandClock {
        fn alarms(&self) -> Vec<Duration> {
            lock(&self.inside).alarms.iter().map(|(_, at)| *at).collect()
        }
    }

    impl Alarms for HandClock {
        fn now(&self) -> Duration {
            lock(&self.inside).now
        }
        fn is_real(&self) -> bool {
            false
        }
        fn wake_at(&self, at: Duration, _: Waker) -> AlarmKey {
            let mut inside = lock(&self.inside);
            inside.made += 1;
            let key = AlarmKey((inside.made, 0));
            inside.alarms.push((key, at));
            key
        }
        fn cancel(&self, key: AlarmKey) {
            lock(&self.inside).alarms.retain(|(other, _)| *other != key);
        }
    }

    /// A clock that advances by a millisecond at each read, and claims to be real.
    #[derive(Default)]
    struct Hasty(Mutex<Duration>);

    impl Alarms for Hasty {
        fn now(&self) -> Duration {
            let mut now = lock(&self.0);
            *now += Duration::from_millis(1);
            *now
        }
        fn is_real(&self) -> bool {
            true
        }
        fn wake_at(&self, _: Duration, _: Waker) -> AlarmKey {
            unreachable!("a thread sleeps by a real clock itself")
        }
        fn cancel(&self, _: AlarmKey) {
            unreachable!("no alarm was set")
        }
    }

    fn hand_clock() -> (Arc<HandClock>, AskClock) {
        let clock = Arc::new(HandClock::default());
        (clock.clone(), AskClock::Shared(clock))
    }

    fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_polled_ask_times_out_by_its_own_clock_and_leaves_no_alarm() {
        let (clock, ask_clock) = hand_clock();
        lock(&clock.inside).now = 5 * SECOND;
        let (reply_to, ask) = begin::<u8>(ask_clock);
        let mut ask = ask.within(SECOND);
        assert!(poll(&mut ask).is_pending());
        assert!(poll(&mut ask).is_pending());
        assert_eq!(clock.alarms(), [6 * SECOND]);
        assert!(reply_to.wanted());
        lock(&clock.inside).now = 6 * SECOND;
        assert_eq!(poll(&mut ask), Poll::Ready(Err(AskError::timeout(SECOND))));
        assert!(clock.alarms().is_empty());
        assert!(!reply_to.wanted());
        assert_eq!(reply_to.send(1), Err(1));
    }

    #[test]
    fn an_answer_a_drop_and_a_new_limit_cancel_the_alarm() {
        let (clock, ask_clock) = hand_clock();
        let (reply_to, ask) = begin::<u8>(ask_clock.clone());
        let mut ask = ask.within(SECOND);
        assert!(poll(&mut ask).is_pending());
        let mut ask = ask.within(3 * SECOND);
        assert!(poll(&mut ask).is_pending());
        assert_eq!(clock.alarms(), [3 * SECOND]);
        reply_to.send(1).expect("in time");
        assert_eq!(poll(&mut ask), Poll::Ready(Ok(1)));
        assert!(clock.alarms().is_empty());

        let (_reply_to, ask) = begin::<u8>(ask_clock);
        let mut ask = ask.within(SECOND);
        assert!(poll(&mut ask).is_pending());
        drop(ask);
        assert!(clock.alarms().is_empty());
    }

    #[test]
    fn an_answer_that_is_there_wins_over_a_limit_that_has_passed() {
        let (clock, ask_clock) = hand_clock();
        let (reply_to, ask) = begin(ask_clock);
        let ask = ask.within(SECOND);
        reply_to.send(1).expect("in time");
        lock(&clock.inside).now = 2 * SECOND;
        assert_eq!(ask.wait(), Ok(1));
    }

    /// A waker that panics with the last of its clones.
    struct Sore;

    impl Wake for Sore {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Sore {
        fn drop(&mut self) {
            panic!("planted");
        }
    }

    #[test]
    fn an_ask_whose_waker_panics_when_it_is_let_go_of_is_counted_all_the_same() {
        let counted = thread::spawn(|| {
            let (_, ask_clock) = hand_clock();
            let (reply_to, ask) = begin::<u8>(ask_clock);
            let mut ask = ask.within(SECOND);
            let waker = Waker::from(Arc::new(Sore));
            assert!(Pin::new(&mut ask).poll(&mut Context::from_waker(&waker)).is_pending());
            drop(waker);
            // Takes the waker in the slot, so the alarm's waker is the last.
            reply_to.send(1).expect("in time");
            assert_eq!(poll(&mut ask), Poll::Ready(Ok(1)));
            ask_counts::tests::take()
        })
        .join()
        .expect("no panic");
        assert_eq!((counted.begun, counted.answered), (1, 1));
    }

    #[test]
    fn an_ask_that_must_not_wait_is_counted_once_though_its_answer_panics_when_it_is_dropped() {
        let counted = thread::spawn(|| {
            let (reply_to, ask) = begin::<Sore>(hand_clock().1);
            assert!(reply_to.send(Sore).is_ok());
            let wait = std::panic::AssertUnwindSafe(|| {
                crate::dispatch::may_block::without_waiting(|| ask.wait().map(drop))
            });
            drop(std::panic::catch_unwind(wait));
            ask_counts::tests::take()
        })
        .join()
        .expect("no panic");
        assert_eq!((counted.begun, counted.cancelled, counted.pending()), (1, 1, 0));
    }

    #[test]
    fn a_thread_sleeps_by_a_real_clock() {
        let (_reply_to, ask) = begin::<u8>(AskClock::Shared(Arc::new(Hasty::default())));
        let after = Duration::from_millis(3);
        assert_eq!(ask.within(after).wait(), Err(AskError::timeout(after)));
    }

    #[test]
    fn a_refused_request_is_undeliverable_though_its_port_is_dropped() {
        let (_, ask_clock) = hand_clock();
        let (reply_to, mut ask) = begin::<u8>(ask_clock);
        refuse(&mut ask, AskError::undeliverable());
        drop(reply_to);
        assert_eq!(ask.wait(), Err(AskError::undeliverable()));
    }

    #[test]
    fn an_asker_keeps_its_slot_only_when_nobody_else_has_it() {
        let (_, ask_clock) = hand_clock();
        let mut asker = Asker::new();
        let (reply_to, pending) = begin_with(&mut asker, ask_clock.clone());
        reply_to.send(1).expect("in time");
        assert_eq!(pending.wait(), Ok(1));
        assert!(asker.free_slot.is_some());

        let (reply_to, pending) = begin_with(&mut asker, ask_clock.clone());
        let late = reply_to.clone();
        reply_to.send(2).expect("in time");
        assert_eq!(pending.wait(), Ok(2));
        assert!(asker.free_slot.is_none());

        let (reply_to, pending) = begin_with(&mut asker, ask_clock);
        late.send(3).expect_err("late");
        reply_to.send(4).expect("in time");
        assert_eq!(pending.wait(), Ok(4));
    }

    #[test]
    fn every_ask_that_was_begun_is_counted_where_it_ended() {
        // In a thread of its own, whose counts are its own.
        let counted = thread::spawn(|| {
            let (clock, ask_clock) = hand_clock();
            let ask = || begin::<u8>(ask_clock.clone());

            let (reply_to, answered) = ask();
            let late = reply_to.clone();
            reply_to.send(1).expect("in time");
            answered.wait().expect("answered");
            late.send(2).expect_err("late");

            let (reply_to, no_reply) = ask();
            drop(reply_to);
            no_reply.wait().expect_err("unanswered");

            let (_reply_to, timed_out) = ask();
            let mut timed_out = timed_out.within(SECOND);
            lock(&clock.inside).now += SECOND;
            assert!(poll(&mut timed_out).is_ready());

            let (reply_to, mut refused) = ask();
            refuse(&mut refused, AskError::undeliverable());
            drop(reply_to);
            drop(refused);

            let (_reply_to, cancelled) = ask();
            drop(cancelled);

            drop(failed::<u8>(AskError::undeliverable(), ask_clock.clone()));
            drop(failed::<u8>(AskError::NoTime, ask_clock.clone()));
            ask_counts::tests::take()
        })
        .join()
        .expect("no panic");
        assert_eq!(
            counted,
            ask_counts::ReplyCounts {
                begun: 6,
                answered: 1,
                no_reply: 1,
                timed_out: 1,
                undeliverable: 2,
                cancelled: 1,
                late: 1,
            }
        );
    }

    #[test]
    fn errors_say_what_to_do() {
        let timeout = AskError::timeout(Duration::from_millis(50));
        assert_eq!(timeout.to_string(), "no reply within 50ms: give it more time or ask less");
        assert!(AskError::WouldBlockWorker.to_string().contains("ctx.ask"));
    }
}
