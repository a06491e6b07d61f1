//! Pending sends: deliveries that wait for room, all of them together.
//!
//! Each delivery waits at its own mailbox, and all use the same bell. So the first mailbox that has room gets its
//! message first, however long the others are full.

use crate::core::actor_ref::{ActorRef, Target};
use crate::core::cell::Local;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::deferred_send;
use crate::core::system::SystemCore;
use crate::dispatch::stepping::{Reached, left_to_wait};
use crate::mailbox::backpressure::{NotFullNotify, WakerPlace};
use crate::mailbox::mailbox::{Pushed, Refused};
use crate::sync::Arc;
use crate::time::alarm::{AlarmKey, Alarms};
use crate::util::panic::quietly;
use std::any::{Any, TypeId};
use std::sync::Arc as StdArc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// Finds the successor for a message that waits for room at an actor that retires.
pub(crate) trait SuccessorLookup<M: Send + 'static>: Send {
    /// Offers the message to the successor. The message is counted as sent, and has no outcome. `is_copy`: see
    /// `copies.rs`. Calls user code, and is called without any lock.
    fn offer(&self, message: M, is_copy: bool) -> SuccessorAnswer<M>;
}

/// The answer of the successor.
pub(crate) enum SuccessorAnswer<M: Send + 'static> {
    Accepted,
    /// Its mailbox is full.
    Full(ActorRef<M>, M),
    /// The full actor has ended meanwhile: try once more.
    Again(M),
    /// There is no successor.
    Closed(M),
}

/// The outcome of one more try.
pub(crate) enum RetryOutcome {
    Accepted,
    /// The delivery waits in vain.
    Refused(DeadLetterReason),
    /// The mailbox is still full.
    Full,
    /// The message was sent another way, and waits there; the flag says whether several recipients got copies.
    Elsewhere(Vec<Box<dyn PendingDelivery>>, bool),
}

/// A single delivery that waits, regardless of the type of its message.
pub(crate) trait PendingDelivery: Send {
    fn try_again(&mut self) -> RetryOutcome;

    /// The system of the actor that the delivery waits for, whose clock the time limit uses.
    fn system(&self) -> &StdArc<SystemCore>;

    /// Returns whether the calling thread must not wait for this delivery.
    fn cannot_wait(&self) -> bool;

    /// The longest time that the delivery may wait.
    fn limit(&self) -> Duration;

    /// Enlists the bell, which rings whenever there may be room, until this is dropped.
    fn ring(&mut self, bell: &Arc<NotFullNotify>);

    /// Enters the waker, which is woken when there may be room, before the next try. It is kept until this is dropped.
    fn wake_by(&mut self, waker: &Waker);

    /// Returns whether the message may go back to its sender: it has this type, and is the message that was sent.
    fn is_message_of(&self, message_type: TypeId) -> bool;

    /// Sets a way back: if the message is refused as closed, `way_back` sends it once more, if that is an `ActorRef` of
    /// its type and the message is no copy.
    fn return_by(&mut self, way_back: Box<dyn Any + Send>);

    /// Notes that the wait has ended in vain, but not because its asker stopped waiting.
    fn refused(&self, reason: DeadLetterReason) {
        let _ = reason;
    }

    /// Makes the message a dead letter, in the ledger that has counted it as sent; `None`: in that of its actor's
    /// system.
    fn abandon(self: Box<Self>, counters: Option<&SystemCore>, reason: DeadLetterReason);

    /// Hands the message back, and the number of its route.
    fn into_message(self: Box<Self>) -> (Box<dyn Any + Send>, usize);
}

/// A message that waits for room at an actor.
pub(crate) struct PendingSend<M: Send + 'static> {
    to: ActorRef<M>,
    /// `None` once the message is accepted.
    message: Option<M>,
    limit: Duration,
    route: usize,
    /// The bell that is enlisted.
    bell: Option<Arc<NotFullNotify>>,
    /// The waker that is entered, and its place.
    waker: Option<(Waker, WakerPlace)>,
    /// An adapter has changed the message on its way.
    is_changed: bool,
    succession: Option<Box<dyn SuccessorLookup<M>>>,
    is_copy: bool,
    /// The reference that sends the message once more when it is refused as closed.
    way_back: Option<ActorRef<M>>,
    /// The actor that refused the message then.
    refused_by: Option<ActorRef<M>>,
}

impl<M: Send + 'static> PendingSend<M> {
    pub(crate) fn new(to: ActorRef<M>, message: M, limit: Duration, route: usize) -> Self {
        Self {
            to,
            message: Some(message),
            limit,
            route,
            bell: None,
            waker: None,
            is_changed: deferred_send::is_changed(),
            succession: None,
            is_copy: false,
            way_back: None,
            refused_by: None,
        }
    }

    /// Lets the message go on to the successor of the actor, if the actor retires.
    pub(crate) fn with_succession(
        mut self,
        succession: Option<Box<dyn SuccessorLookup<M>>>,
        is_copy: bool,
    ) -> Self {
        (self.succession, self.is_copy) = (succession, is_copy);
        self
    }

    /// Handles a message that was refused as closed: offers it to the successor of a retired actor, or sends it once
    /// more.
    #[cold]
    fn retry(&mut self, refused: M) -> RetryOutcome {
        let mut message = refused;
        if let Some(succession) = self.succession.as_deref().filter(|_| self.to.is_retired()) {
            loop {
                match succession.offer(message, self.is_copy) {
                    SuccessorAnswer::Accepted => return RetryOutcome::Accepted,
                    SuccessorAnswer::Again(again) => message = again,
                    SuccessorAnswer::Closed(again) => {
                        message = again;
                        break;
                    }
                    SuccessorAnswer::Full(successor, again) => {
                        self.message = Some(again);
                        self.wait_at(successor);
                        return RetryOutcome::Full;
                    }
                }
            }
        }
        match self.way_back.take() {
            Some(way_back) => self.go_back(way_back, message),
            None => {
                self.message = Some(message);
                RetryOutcome::Refused(DeadLetterReason::Stopped)
            }
        }
    }

    /// Sends the message once more, counted as it is. Calls user code, and is called without any lock.
    fn go_back(&mut self, way_back: ActorRef<M>, message: M) -> RetryOutcome {
        let (sent, put_off) = deferred_send::put_off_as_before(|| match self.is_changed {
            true => deferred_send::note_changed(|| way_back.forward_counted(message)),
            false => way_back.forward_counted(message),
        });
        match (sent, put_off) {
            (Ok(_), None) => RetryOutcome::Accepted,
            (Ok(_), Some(put_off)) => {
                let put_off = put_off.returning_by(move || Some(Box::new(way_back) as _));
                let are_copies = put_off.are_copies();
                RetryOutcome::Elsewhere(put_off.into_later(), are_copies)
            }
            (Err(refused), put_off) => {
                // The other deferred deliveries are no more than a part of the message that comes back.
                drop(put_off.map(|put_off| put_off.counted_by(None)));
                let reason = DeadLetterReason::of(&refused);
                (self.message, self.refused_by) = (Some(refused.into_inner()), Some(way_back));
                RetryOutcome::Refused(reason)
            }
        }
    }

    /// Waits for room at another actor. The next try comes before the wait for the bell.
    fn wait_at(&mut self, actor: ActorRef<M>) {
        let (bell, waker) = self.dismiss();
        self.to = actor;
        if let Some(bell) = bell {
            self.ring(&bell);
            // There may have been room before the bell was enlisted.
            bell.ring();
        }
        if let Some(waker) = waker {
            self.wake_by(&waker);
            // As above.
            quietly(|| waker.wake());
        }
    }

    fn dismiss(&mut self) -> (Option<Arc<NotFullNotify>>, Option<Waker>) {
        let (bell, waker) = (self.bell.take(), self.waker.take());
        let Target::Local(local) = self.to.target() else { return (None, None) };
        if let Some(bell) = &bell {
            local.mailbox.dismiss(bell);
        }
        let waker = waker.map(|(waker, mut place)| {
            local.mailbox.leave_wakers(&mut place);
            waker
        });
        (bell, waker)
    }
}

impl<M: Send + 'static> PendingDelivery for PendingSend<M> {
    fn try_again(&mut self) -> RetryOutcome {
        let Target::Local(local) = self.to.target() else {
            return RetryOutcome::Refused(DeadLetterReason::Stopped);
        };
        let Some(message) = self.message.take() else { return RetryOutcome::Accepted };
        match local.mailbox.push(message) {
            Ok(Pushed::Queued) => RetryOutcome::Accepted,
            Ok(Pushed::Wake) => {
                self.to.schedule();
                RetryOutcome::Accepted
            }
            Ok(displaced) => {
                self.to.displaced(local, displaced);
                RetryOutcome::Accepted
            }
            Err(Refused::Closed(message)) => self.retry(message),
            Err(Refused::Full(message)) => {
                self.message = Some(message);
                RetryOutcome::Full
            }
        }
    }

    fn system(&self) -> &StdArc<SystemCore> {
        match self.to.target() {
            Target::Local(local) => &local.core.system,
            Target::Foreign(_) => unreachable!("only an actor's mailbox lets senders wait"),
        }
    }

    fn cannot_wait(&self) -> bool {
        self.to.waits_in_vain()
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn ring(&mut self, bell: &Arc<NotFullNotify>) {
        if let Target::Local(local) = self.to.target() {
            local.mailbox.enlist(bell);
            self.bell = Some(bell.clone());
        }
    }

    fn wake_by(&mut self, waker: &Waker) {
        let Target::Local(local) = self.to.target() else { return };
        // In its field while foreign code runs: a panic there must not lose the place.
        let (_, place) = self.waker.get_or_insert_with(|| (waker.clone(), WakerPlace::default()));
        let is_certain = local.mailbox.enter_waker(place, waker);
        if let Some((kept, _)) = self.waker.as_mut().filter(|(kept, _)| !kept.will_wake(waker)) {
            let former = std::mem::replace(kept, waker.clone());
            quietly(|| drop(former));
        }
        if !is_certain {
            // A kernel that refuses the fence leaves this: the future looks again and again.
            waker.wake_by_ref();
        }
    }

    fn is_message_of(&self, message_type: TypeId) -> bool {
        !self.is_changed && TypeId::of::<M>() == message_type
    }

    fn return_by(&mut self, way_back: Box<dyn Any + Send>) {
        if let (Ok(way_back), false) = (way_back.downcast(), self.is_copy) {
            self.way_back = Some(*way_back);
        }
    }

    fn abandon(mut self: Box<Self>, counters: Option<&SystemCore>, reason: DeadLetterReason) {
        if let Some(message) = self.message.take() {
            let system = counters.unwrap_or_else(|| &**self.system());
            system.ledger().for_this_thread().dead_lettered(1);
            let recipient = self.refused_by.as_ref().unwrap_or(&self.to);
            system.dead_letters().publish_dead_letter(message, reason, || recipient.path());
        }
    }

    fn into_message(mut self: Box<Self>) -> (Box<dyn Any + Send>, usize) {
        let message = self.message.take().expect("it was not accepted");
        (Box::new(message), self.route)
    }
}

impl<M: Send + 'static> Drop for PendingSend<M> {
    fn drop(&mut self) {
        let (_, waker) = self.dismiss();
        quietly(|| drop(waker));
    }
}

/// Observes the outcome of a delivery that waits.
pub(crate) trait Watch: Send {
    /// The delivery is about to be tried.
    fn tries(&self) {}

    /// The delivery was not accepted at that try.
    fn is_not_accepted(&self) {}

    /// As [`PendingDelivery::refused`].
    fn is_refused(&self, reason: DeadLetterReason) {
        let _ = reason;
    }
}

/// A delivery that is watched.
pub(crate) struct Watched {
    later: Box<dyn PendingDelivery>,
    /// `None` once the observed message has gone elsewhere.
    watch: Option<Box<dyn Watch>>,
}

impl Watched {
    /// Wraps a single delivery so that it is observed; of several deliveries each is only a part.
    pub(crate) fn wrap(
        later: Vec<Box<dyn PendingDelivery>>,
        watch: Box<dyn Watch>,
    ) -> Vec<Box<dyn PendingDelivery>> {
        match <[_; 1]>::try_from(later) {
            Ok([later]) => vec![Box::new(Self { later, watch: Some(watch) })],
            Err(several) => several,
        }
    }
}

impl PendingDelivery for Watched {
    fn try_again(&mut self) -> RetryOutcome {
        let Some(watch) = &self.watch else { return self.later.try_again() };
        watch.tries();
        let tried = self.later.try_again();
        if !matches!(tried, RetryOutcome::Accepted) {
            watch.is_not_accepted();
        }
        match (tried, self.watch.take()) {
            (RetryOutcome::Elsewhere(later, are_copies), Some(watch)) => {
                RetryOutcome::Elsewhere(Self::wrap(later, watch), are_copies)
            }
            (tried, watch) => {
                self.watch = watch;
                tried
            }
        }
    }

    fn system(&self) -> &StdArc<SystemCore> {
        self.later.system()
    }

    fn cannot_wait(&self) -> bool {
        self.later.cannot_wait()
    }

    fn limit(&self) -> Duration {
        self.later.limit()
    }

    fn ring(&mut self, bell: &Arc<NotFullNotify>) {
        self.later.ring(bell);
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.later.wake_by(waker);
    }

    fn is_message_of(&self, message_type: TypeId) -> bool {
        self.later.is_message_of(message_type)
    }

    fn return_by(&mut self, way_back: Box<dyn Any + Send>) {
        self.later.return_by(way_back);
    }

    fn refused(&self, reason: DeadLetterReason) {
        if let Some(watch) = &self.watch {
            watch.is_refused(reason);
        }
        self.later.refused(reason);
    }

    fn abandon(self: Box<Self>, counters: Option<&SystemCore>, reason: DeadLetterReason) {
        self.later.abandon(counters, reason);
    }

    fn into_message(self: Box<Self>) -> (Box<dyn Any + Send>, usize) {
        self.later.into_message()
    }
}

/// Rings a bell when an alarm fires, or when the awaited answer comes.
struct NotifyWaker(Arc<NotFullNotify>);

impl Wake for NotifyWaker {
    fn wake(self: StdArc<Self>) {
        self.0.ring();
    }
}

/// Counts the outcomes of a send to several recipients.
pub(crate) trait Outcomes {
    /// The system whose ledger has counted the message as sent.
    fn system(&self) -> &SystemCore;

    /// Counts a recipient that has accepted.
    fn accept(&self);

    /// Counts a recipient that has refused.
    fn note(&self, reason: DeadLetterReason);

    /// The number of recipients that have accepted.
    fn accepted(&self) -> usize;
}

/// The deliveries that still wait, and those that have waited in vain.
struct Waiting<'a> {
    /// Counts the outcomes, where the send is not over yet.
    counter: Option<&'a dyn Outcomes>,
    /// The end of the wait of all deliveries.
    until: Option<WaitBound<'a>>,
    /// The answer that ends the wait of all deliveries.
    awaited: Option<&'a mut dyn Awaited>,
    /// The open deliveries, each with its deadline, if it has one, by the clock of its own system.
    open: Vec<(Box<dyn PendingDelivery>, Option<Duration>)>,
    over: Vec<(Box<dyn PendingDelivery>, DeadLetterReason)>,
    /// The bell of all deliveries, and how far this thread has run the actors itself before; `None` until then.
    bell: Option<(Arc<NotFullNotify>, Reached)>,
}

impl<'a> Waiting<'a> {
    fn new(
        later: Vec<Box<dyn PendingDelivery>>,
        counter: Option<&'a dyn Outcomes>,
        until: Option<WaitBound<'a>>,
    ) -> Self {
        let open = later.into_iter().map(|later| (later, None)).collect();
        Self { counter, until, awaited: None, open, over: Vec::new(), bell: None }
    }

    /// Waits until no delivery is open.
    fn wait(&mut self, steps: &SystemCore) {
        // A thread that runs the actors itself does so.
        let reached = steps.run_turns(&mut || {
            self.try_again();
            self.open.is_empty()
        });
        let bell = Arc::new(NotFullNotify::new());
        if let Some(awaited) = &mut self.awaited {
            // An answer that is there already is seen below.
            awaited.wake(&Waker::from(StdArc::new(NotifyWaker(bell.clone()))));
        }
        self.bell = Some((bell.clone(), reached));
        for (later, deadline) in &mut self.open {
            *deadline = begin(&mut **later, &bell, reached);
        }
        while !self.open.is_empty() {
            let heard = bell.heard();
            self.try_again();
            self.time_up();
            if !self.open.is_empty() {
                self.sleep(&bell, heard);
            }
        }
    }

    /// Returns whether the asker has stopped waiting for the deliveries.
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until.is_over())
            || self.awaited.as_ref().is_some_and(|awaited| awaited.is_there())
    }

    /// Tries all open deliveries once more; none, if the asker has stopped waiting.
    fn try_again(&mut self) {
        if self.is_over() {
            while !self.open.is_empty() {
                self.end(0, DeadLetterReason::Full);
            }
        }
        let mut index = 0;
        while let Some((later, _)) = self.open.get_mut(index) {
            match later.try_again() {
                RetryOutcome::Full => index += 1,
                RetryOutcome::Accepted => {
                    if let Some(counter) = self.counter {
                        counter.accept();
                    }
                    drop(self.open.swap_remove(index));
                }
                RetryOutcome::Refused(reason) => self.refuse(index, reason),
                RetryOutcome::Elsewhere(later, _) => {
                    drop(self.open.swap_remove(index));
                    // The new deliveries are tried below, after the bell is enlisted.
                    let bell = self.bell.as_ref();
                    self.open.extend(later.into_iter().map(|mut later| {
                        let deadline = bell.and_then(|(bell, reached)| begin(&mut *later, bell, *reached));
                        (later, deadline)
                    }));
                }
            }
        }
    }

    /// Ends a delivery that has waited in vain.
    fn refuse(&mut self, index: usize, reason: DeadLetterReason) {
        if let Some((later, _)) = self.open.get(index) {
            later.refused(reason);
        }
        self.end(index, reason);
    }

    fn end(&mut self, index: usize, reason: DeadLetterReason) {
        if let Some(counter) = self.counter {
            counter.note(reason);
        }
        let (later, _) = self.open.swap_remove(index);
        self.over.push((later, reason));
    }

    /// Ends the deliveries whose own deadlines have passed.
    fn time_up(&mut self) {
        let is_over = |(later, deadline): &(Box<dyn PendingDelivery>, Option<Duration>)| {
            deadline.is_some_and(|deadline| later.system().timers().now() >= deadline)
        };
        while let Some(index) = self.open.iter().position(is_over) {
            self.refuse(index, DeadLetterReason::Full);
        }
    }

    /// Sleeps until the bell has rung more often than `heard`, or a deadline has come.
    fn sleep(&self, bell: &Arc<NotFullNotify>, heard: u64) {
        let own = self.open.iter().filter_map(|(later, deadline)| {
            let clock: &dyn Alarms = later.system().timers();
            deadline.map(|at| WaitBound { at, clock })
        });
        let mut rest = None;
        let mut alarms = AlarmsSet(Vec::new());
        for WaitBound { at, clock } in own.chain(self.until) {
            if clock.is_real() {
                // Such a clock goes as fast as the clock by which threads sleep.
                let left = at.saturating_sub(clock.now());
                rest = Some(rest.map_or(left, |rest: Duration| rest.min(left)));
            } else {
                let waker = Waker::from(StdArc::new(NotifyWaker(bell.clone())));
                alarms.0.push((clock, clock.wake_at(at, waker)));
            }
        }
        bell.wait(heard, rest.and_then(|rest| Instant::now().checked_add(rest)));
    }
}

/// Begins the wait of a delivery. Returns its deadline, by which it has waited for as long as its mailbox says.
fn begin(later: &mut dyn PendingDelivery, bell: &Arc<NotFullNotify>, reached: Reached) -> Option<Duration> {
    let limit = if later.cannot_wait() { Duration::ZERO } else { later.limit() };
    let limit = left_to_wait(reached, limit);
    let began = later.system().timers().now();
    later.ring(bell);
    // A sum too large for a `Duration` is as good as no limit.
    if limit == Duration::MAX { None } else { began.checked_add(limit) }
}

/// Alarms of clocks that do not advance by themselves, cancelled when the sleep is over.
struct AlarmsSet<'a>(Vec<(&'a dyn Alarms, AlarmKey)>);

impl Drop for AlarmsSet<'_> {
    fn drop(&mut self) {
        for (clock, key) in self.0.drain(..) {
            clock.cancel(key);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let counters = self.counter.map(|counter| counter.system());
        for (later, _) in self.open.drain(..) {
            later.abandon(counters, DeadLetterReason::Panicked);
        }
        for (later, reason) in self.over.drain(..) {
            later.abandon(counters, reason);
        }
    }
}

/// Waits until each delivery is accepted, refused, or has waited for as long as it may.
///
/// A message that has waited in vain is a dead letter; but if `keep`, and no recipient has accepted, one message is
/// returned.
pub(crate) fn wait_for_all(
    counter: &dyn Outcomes,
    later: Vec<Box<dyn PendingDelivery>>,
    keep: bool,
) -> Option<(Box<dyn Any + Send>, usize)> {
    let mut waiting = Waiting::new(later, Some(counter), None);
    waiting.wait(counter.system());
    let is_kept = keep && counter.accepted() == 0;
    let kept = if is_kept { waiting.over.pop() } else { None };
    kept.map(|(later, _)| later.into_message())
}

/// Waits as [`wait_for_all`] does, without a counter, and no longer than `until`, or until `awaited` is there. Returns
/// the deliveries that have waited in vain.
pub(crate) fn wait_until<'a>(
    later: Vec<Box<dyn PendingDelivery>>,
    until: Option<WaitBound<'a>>,
    awaited: Option<&'a mut dyn Awaited>,
) -> Vec<(Box<dyn PendingDelivery>, DeadLetterReason)> {
    let Some(steps) = later.first().map(|later| later.system().clone()) else { return Vec::new() };
    let mut waiting = Waiting::new(later, None, until);
    waiting.awaited = awaited;
    waiting.wait(&steps);
    std::mem::take(&mut waiting.over)
}

/// Waits for room at a single actor, by a clock that does not advance by itself.
///
/// # Errors
///
/// The message, with the reason of the refusal.
pub(crate) fn wait_alone<M: Send + 'static>(waiter: PendingSend<M>) -> Result<(), Refused<M>> {
    let mut over = wait_until(vec![Box::new(waiter)], None, None);
    let Some((later, reason)) = over.pop() else { return Ok(()) };
    let (message, _) = later.into_message();
    let message = *message.downcast().expect("it waits as the type that it was sent as");
    Err(match reason {
        DeadLetterReason::Full => Refused::Full(message),
        _ => Refused::Closed(message),
    })
}

/// Pushes as soon as there is room, within `limit` by the system's clock.
///
/// A thread that runs the system's actors itself (a test's thread) does so until there is room; a message that still
/// finds no room is refused at once.
pub(crate) fn push_waiting<M: Send + 'static>(
    to: &ActorRef<M>,
    local: &Local<M>,
    message: M,
    limit: Duration,
) -> Result<Pushed<M>, Refused<M>> {
    let mut message = Some(message);
    let mut pushed = None;
    let reached =
        local.core.system.run_turns(&mut || match message.take().map(|it| local.mailbox.push(it)) {
            Some(Err(Refused::Full(refused))) => {
                message = Some(refused);
                false
            }
            done => {
                pushed = done;
                true
            }
        });
    match (pushed, message) {
        (Some(pushed), _) => pushed,
        (None, Some(message)) => wait_on(to, local, message, left_to_wait(reached, limit)),
        (None, None) => unreachable!("the message is either pushed or kept"),
    }
}

pub(crate) fn wait_on<M: Send + 'static>(
    to: &ActorRef<M>,
    local: &Local<M>,
    message: M,
    limit: Duration,
) -> Result<Pushed<M>, Refused<M>> {
    if limit == Duration::MAX {
        return local.mailbox.push_waiting(message, None);
    }
    if limit.is_zero() || local.core.system.timers().is_real() {
        // Such a clock goes as fast as the clock by which threads sleep.
        return local.mailbox.push_waiting(message, Instant::now().checked_add(limit));
    }
    wait_alone(PendingSend::new(to.clone(), message, limit, 0)).map(|()| Pushed::Queued)
}

/// The end of a wait, and the clock that measures it.
#[derive(Clone, Copy)]
pub(crate) struct WaitBound<'a> {
    pub at: Duration,
    pub clock: &'a dyn Alarms,
}

impl WaitBound<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.clock.now() >= self.at
    }
}

/// An answer that may come before a message is sent, and makes the send unnecessary.
pub(crate) trait Awaited {
    /// Returns whether the answer is there.
    fn is_there(&self) -> bool;

    /// Registers `waker`, which is woken when the answer comes; the answer may be there already.
    fn wake(&mut self, waker: &Waker);
}

/// No answer is awaited.
impl Awaited for () {
    fn is_there(&self) -> bool {
        false
    }

    fn wake(&mut self, _: &Waker) {}
}
