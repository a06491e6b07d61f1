//! The first-reply race: a request with several attempts, the common part of scatter-gather and tail-chopping.
//!
//! A race is open until its outcome: the first success (or, as an option, the first reply), the failure of all, or the
//! deadline. All its data lies in a box behind its lock, [`Open`]. The thread that takes the box out brings the
//! outcome, and no other thread can. So the ports of the losers hold an empty race.
//!
//! ```text
//!            routee 0 ◀── copy, port of attempt 0 ─┐            ┌─ the asker's port
//! message ──▶ routee 1 ◀── copy, port of attempt 1 ─┼─▶ Race ───┤  the routees, the causes
//!            routee 2 ◀── copy, port of attempt 2 ─┘   open     │  the alarm: next tick or deadline
//!                                                               └─ the queue: the message, and the routees not asked yet
//! ```
//!
//! * **The end of an attempt** is reported by its port, wherever that is answered or dropped, or by the thread that
//!   finds that its routee does not take it. It is heard once for each attempt.
//! * **The starter's hold.** While attempts are being started, an additional attempt counts as under way. Without it,
//!   the failure of the attempts so far would be taken for the failure of all. The hold is given back also when user
//!   code unwinds.
//! * **The start of the next attempt.** The starter takes the kept message out of the queue, and puts it back when
//!   nothing is due any more. A thread that finds the message taken only notes that another attempt is due: the starter
//!   looks again before it puts the message back. So attempts are started in sequence, no user code runs under the
//!   lock, and an attempt that fails while it is being started begins the next without recursion.
//! * **The alarm** is a single timer, for the event that comes first. Each setting has a number, and only the number
//!   set last counts: an alarm that rings late, or is dropped by a cancel, finds another number. An alarm that is
//!   dropped with its number still set will never ring, since the system has ended: the time is up then.
//!
//! User code (the message's `Clone`, `Drop` and `fork`, the asker's own sink) runs without the lock: on the
//! sender's thread it may unwind to the sender, elsewhere it is caught.

use crate::ask::error::{AskError, AttemptEnd};
use crate::ask::fork::{Answerable, Answering, AskerPort, Attempt, Question, RouterId};
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::{DeadLetterReason, nowhere};
use crate::core::deferred_send::note_copies;
use crate::failure::guarded;
use crate::path::actor_path::ActorPath;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::routing::router_info::{RareInfo, RouterInfo};
use crate::settings::router::RouterSettings;
use crate::sync::{Mutex, lock};
use crate::thread_context::hops::{hops, with_hops};
use crate::time::timers::TimerHandle;
use crate::util::panic::drop_guarded;
use rand::RngExt;
use rand::rngs::SmallRng;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The rules of a race.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The time until the deadline.
    pub within: Duration,
    /// Any reply wins, also if it is no success.
    pub first_completion: bool,
}

impl Rules {
    pub(crate) fn configure(&mut self, settings: &RouterSettings) {
        self.within = settings.within.unwrap_or(self.within);
        self.first_completion = settings.first_completion.unwrap_or(self.first_completion);
    }
}

/// The default time in which routees answer: as Akka's.
pub(crate) const WITHIN_DEFAULT: Duration = Duration::from_secs(5);
/// How a race that asks one after the other goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailPolicy {
    /// The time from the start of an attempt to the start of the next.
    pub interval: Duration,
    /// A failed attempt does not start the next one.
    pub wait_for_tick: bool,
    /// A tick on the very deadline starts none.
    pub ends_before_deadline: bool,
}

/// A first-reply race: a request and its attempts.
pub(crate) struct Race<M: Send + 'static> {
    router: RouterId,
    /// Counts attempts and late replies.
    rare: StdArc<RareInfo>,
    first_completion: bool,
    /// `None` after the race has its outcome.
    open: Mutex<Option<Box<Open<M>>>>,
}

type Table<M> = StdArc<[Routee<M>]>;
/// The attempts that have ended, and how.
type Causes = Vec<(u32, AttemptEnd)>;

/// A race without its outcome.
struct Open<M: Send + 'static> {
    asker: StdArc<dyn AskerPort>,
    /// The head of the router; it leads to the system's timers.
    head: AnyActorRef,
    routees: Table<M>,
    /// Counts the attempts that have not ended, and the starter's hold.
    under_way: usize,
    /// How attempts ended, in the order in which they did.
    causes: Causes,
    /// The attempts that have ended without a success.
    lost: BitSet,
    within: Duration,
    deadline: Duration,
    alarm: Alarm,
    /// Present where not all routees are asked at once.
    queue: Option<Queue<M>>,
}

/// The timer that is set, if one is.
struct Alarm {
    /// The number of the last setting.
    number: u64,
    timer: Option<TimerHandle>,
}

/// Attempts to come.
struct Queue<M> {
    pace: TailPolicy,
    rest: Shuffled,
    /// How many attempts are to be started at once.
    due: usize,
    next_tick: Duration,
    /// The message to be cloned; `None` while a thread starts attempts, and when the last attempt was started.
    kept: Option<M>,
    /// The hops of the message so far.
    hops: u32,
}

/// A set of indices. Those below 64 take no memory of their own.
#[derive(Default)]
struct BitSet {
    first: u64,
    others: Vec<u64>,
}

impl BitSet {
    /// Adds an index; returns false if it was there.
    fn set(&mut self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1u64 << (index % 64));
        let marks = match word.checked_sub(1) {
            None => &mut self.first,
            Some(other) => {
                if self.others.len() <= other {
                    self.others.resize(other + 1, 0);
                }
                &mut self.others[other]
            }
        };
        let is_new = *marks & bit == 0;
        *marks |= bit;
        is_new
    }
}

/// Indices in random order, each chosen when it is wanted: the shuffle of Fisher and Yates, step by step.
pub(crate) struct Shuffled {
    indices: Vec<u32>,
    random: SmallRng,
}

impl Shuffled {
    /// The indices below `count`.
    pub(crate) fn new(count: usize, random: SmallRng) -> Self {
        Self { indices: (0..count as u32).collect(), random }
    }

    fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

impl Iterator for Shuffled {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self.indices.len() {
            0 => None,
            count => Some(self.indices.swap_remove(self.random.random_range(0..count))),
        }
    }
}

/// Ends a request that is not to be raced: its router has no routees, or the request is an attempt of the same
/// router's. Then the asker is told at once, and the message is a dead letter; otherwise the message comes back.
pub(crate) fn refuse_at_once<M: Send + 'static>(
    message: M,
    asker: &StdArc<dyn AskerPort>,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) -> Option<M> {
    let (error, reason) = if asker.attempt_of() == Some(cx.id()) {
        // The message was routed in a circle, or a routee sent it back to its own router: all the other routees are
        // asked anyway. (A leftover of a routee comes to `select`.)
        let reason = if hops() > 1 { DeadLetterReason::Cycle } else { DeadLetterReason::Stopped };
        (AskError::refused_for(reason), reason)
    } else if routees.is_empty() {
        cx.nobody_took();
        (AskError::no_routees(), DeadLetterReason::NoRoutee)
    } else {
        return Some(message);
    };
    // Fails the asker before the message is dropped: the drop of its port would say `NoReply`.
    asker.clone().fail_with(error);
    cx.count_dead_letter(message, reason);
    None
}

/// Asks all routees, of which there is at least one.
pub(crate) fn ask_all<M: Answerable + Clone + Send + 'static>(
    message: M,
    asker: StdArc<dyn AskerPort>,
    rules: Rules,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) {
    let (race, now) = Race::open(asker, rules, None, routees, cx);
    let starting = Starting { race: &race, is_done: false };
    race.set_alarm();
    cx.copies(routees.len());
    let mut rest = routees.iter().enumerate();
    let last = rest.next_back();
    let mut taken = 0;
    for (index, routee) in rest {
        race.look(|open| open.begin(now));
        taken += usize::from(race.attempt(routee.actor(), index as u32, cx, || message.clone()));
    }
    if let Some((index, routee)) = last {
        race.look(|open| open.begin(now));
        taken += usize::from(race.attempt(routee.actor(), index as u32, cx, || message));
    }
    starting.done();
    if taken == 0 {
        cx.nobody_took_a_copy(routees);
    }
}

/// Asks the routees, of which there is at least one, in the order of `rest`.
pub(crate) fn ask_in_turn<M: Answerable + Clone + Send + 'static>(
    message: M,
    asker: StdArc<dyn AskerPort>,
    rules: Rules,
    pace: TailPolicy,
    mut rest: Shuffled,
    routees: &Routees<M>,
    cx: &RouteContext<'_>,
) {
    let Some((first, routee)) = rest.next().and_then(|first| Some((first, routees.get(first as usize)?)))
    else {
        return;
    };
    let is_last = rest.is_empty();
    let queue = Queue { pace, rest, due: 0, next_tick: Duration::MAX, kept: None, hops: hops() };
    let (race, now) = Race::open(asker, rules, Some(queue), routees, cx);
    let starting = Starting { race: &race, is_done: false };
    race.look(|open| open.begin(now));
    race.set_alarm();
    let is_taken = if is_last {
        race.attempt(routee.actor(), first, cx, || message)
    } else {
        let is_taken = race.attempt(routee.actor(), first, cx, || message.clone());
        race.keep(message);
        is_taken
    };
    // Starts the attempt that the first attempt has made due, if that has failed already.
    let unwound = race.start_due();
    starting.done();
    if !is_taken {
        // Where no routee lives, the routees that are left will not take the message either.
        cx.nobody_took_a_copy(routees);
    }
    if let Some(payload) = unwound {
        resume_unwind(payload);
    }
}

/// The starter's hold.
struct Starting<'a, M: Answerable + Clone + Send + 'static> {
    race: &'a StdArc<Race<M>>,
    is_done: bool,
}

impl<M: Answerable + Clone + Send + 'static> Starting<'_, M> {
    fn done(mut self) {
        self.is_done = true;
    }
}

impl<M: Answerable + Clone + Send + 'static> Drop for Starting<'_, M> {
    fn drop(&mut self) {
        let mut queue = None;
        let ended = {
            let mut open = lock(&self.race.open);
            if let Some(race) = open.as_mut() {
                race.under_way -= 1;
                if !self.is_done {
                    // The sender unwinds, and the message with it: there will be no other attempt.
                    queue = race.queue.take();
                }
            }
            Race::take_if_all_failed(&mut open)
        };
        drop_guarded(queue);
        if let Some(open) = ended {
            open.fail_all();
        }
    }
}

/// An attempt that is being made. User code may unwind in it.
struct Making<'a, M: Answerable + Clone + Send + 'static> {
    race: &'a StdArc<Race<M>>,
    index: u32,
}

impl<M: Answerable + Clone + Send + 'static> Drop for Making<'_, M> {
    fn drop(&mut self) {
        self.race.clone().record_failed_attempt(self.index, AttemptEnd::Panicked);
    }
}

impl<M: Answerable + Clone + Send + 'static> Race<M> {
    fn open(
        asker: StdArc<dyn AskerPort>,
        rules: Rules,
        queue: Option<Queue<M>>,
        routees: &Routees<M>,
        cx: &RouteContext<'_>,
    ) -> (StdArc<Self>, Duration) {
        let head = cx.head().clone();
        let router = cx.id();
        let now = now(&head);
        let deadline = now.saturating_add(rules.within);
        let open = Open {
            asker,
            head,
            routees: routees.share(),
            under_way: 1,
            causes: Vec::new(),
            lost: BitSet::default(),
            within: rules.within,
            deadline,
            alarm: Alarm { number: 0, timer: None },
            queue,
        };
        let open = Mutex::new(Some(Box::new(open)));
        let rare = cx.router().rare.clone();
        (StdArc::new(Self { router, rare, first_completion: rules.first_completion, open }), now)
    }

    /// Makes an attempt that has begun. Returns whether the routee has taken the copy.
    fn attempt(
        self: &StdArc<Self>,
        routee: &ActorRef<M>,
        index: u32,
        cx: &RouteContext<'_>,
        make: impl FnOnce() -> M,
    ) -> bool {
        self.rare.counts.attempts.add();
        let mut copy = None;
        // Declared after `copy`, so it is dropped before it: the drop of the copy's port would say `NoReply`.
        let making = Making { race: self, index };
        let can_answer = copy.insert(make()).fork(&Attempt::new(self.clone(), index));
        let Some(copy) = copy.take() else { unreachable!("just made") };
        if !can_answer {
            // The clone lacks the port that the message had: no reply of this attempt will come.
            self.clone().record_failed_attempt(index, AttemptEnd::NoReply);
        }
        // Other routees are asked, too.
        note_copies();
        routee.expect_copies();
        let done = cx.deliver(routee, copy);
        std::mem::forget(making);
        let is_taken = done.is_ok();
        if let Err(refused) = done {
            // Records the failure before the copy is dropped.
            self.clone().record_failed_attempt(index, AttemptEnd::Refused(DeadLetterReason::of(&refused)));
            cx.refuse_copy(routee, refused);
        }
        is_taken
    }

    /// Makes an attempt that has begun, as a delivery of its own.
    fn attempt_later(self: &StdArc<Self>, head: &AnyActorRef, start: Start<M>, kept: &Option<M>) {
        let rare = self.rare.clone();
        let info = RouterInfo { rare, ..RouterInfo::new::<M>(head.clone(), self.router.number()) };
        let cx = RouteContext::of_new_message(&info);
        let make = || match (start.last, kept) {
            (Some(last), _) => last,
            (None, Some(kept)) => kept.clone(),
            (None, None) => unreachable!("the thread that starts attempts has the message in hand"),
        };
        with_hops(start.hops, || self.attempt(&start.routee, start.index, &cx, make));
        cx.settle();
    }

    /// Keeps the message for attempts to come.
    fn keep(&self, message: M) {
        let mut message = Some(message);
        self.look(|open| {
            if let Some(queue) = &mut open.queue {
                queue.kept = message.take();
            }
        });
        drop_guarded(message);
    }

    /// Starts all attempts that are due, unless another thread does. Returns the panic of the first attempt that
    /// unwound, if any did: the others go on.
    fn start_due(self: &StdArc<Self>) -> Option<Box<dyn Any + Send>> {
        let mut kept = None;
        let mut unwound = None;
        while let Some(head) =
            self.look(|open| open.take_kept(&mut kept).then(|| open.head.clone())).flatten()
        {
            if !self.is_wanted() {
                self.abandon_race();
                break;
            }
            let now = now(&head);
            let Some(Some(start)) = self.look(|open| open.start(&mut kept, now)) else { break };
            self.set_alarm();
            let made = catch_unwind(AssertUnwindSafe(|| self.attempt_later(&head, start, &kept)));
            match made {
                Err(payload) if unwound.is_none() => unwound = Some(payload),
                Err(payload) => drop_guarded(payload),
                Ok(()) => {}
            }
        }
        // The message is not put back, since the race is over.
        drop_guarded(kept);
        unwound
    }

    /// Sets the alarm for the next tick or the deadline.
    fn set_alarm(self: &StdArc<Self>) {
        let (stale, refused) = {
            let mut open = lock(&self.open);
            let Some(race) = open.as_mut() else { return };
            race.alarm.number += 1;
            let stale = race.alarm.timer.take().map(|timer| (race.head.clone(), timer));
            let ring = AlarmSetting { race: self.clone(), number: race.alarm.number };
            let due = race.next_alarm();
            let timers = race.head.core().system.timers();
            match timers.try_call_at(due, Box::new(move || ring.ring())) {
                Ok(timer) => {
                    race.alarm.timer = Some(timer);
                    (stale, None)
                }
                Err(refused) => (stale, Some(refused)),
            }
        };
        // Both hold alarm settings, and their drops look at the race.
        if let Some((head, timer)) = stale {
            head.core().system.timers().cancel(timer);
        }
        drop(refused);
    }

    /// The alarm of this number rings, on the thread that runs the system's timers.
    fn rings(self: &StdArc<Self>, number: u64) {
        let Some(head) = self.look(|open| (open.alarm.number == number).then(|| open.head.clone())).flatten()
        else {
            return;
        };
        let now = now(&head);
        let is_up = self.look(|open| {
            if open.alarm.number != number {
                return false;
            }
            open.alarm = Alarm { number: number + 1, timer: None };
            open.ring(now)
        });
        if let Some(payload) = self.start_due() {
            drop_guarded(payload);
        }
        if is_up == Some(true) {
            self.time_up();
        } else if self.look(|open| open.alarm.timer.is_none()) == Some(true) {
            // Another thread starts attempts, and may take long over it.
            self.set_alarm();
        }
    }

    fn time_up(&self) {
        let open = lock(&self.open).take();
        if let Some(open) = open {
            let after = open.within;
            open.fail(AskError::timeout(after));
        }
    }

    /// The asker does not wait for the outcome any more.
    fn abandon_race(&self) {
        let open = lock(&self.open).take();
        if let Some(open) = open {
            // The failure is counted where the asker has left.
            open.fail(AskError::no_reply());
        }
    }

    fn take_if_all_failed(open: &mut Option<Box<Open<M>>>) -> Option<Box<Open<M>>> {
        open.take_if(|open| {
            open.under_way == 0 && open.queue.as_ref().is_none_or(|queue| queue.rest.is_empty())
        })
    }
}

impl<M: Send + 'static> Race<M> {
    /// Runs `look` on a race that is open. `look` runs no user code.
    fn look<R>(&self, look: impl FnOnce(&mut Open<M>) -> R) -> Option<R> {
        lock(&self.open).as_deref_mut().map(look)
    }
}

/// A setting of the alarm.
struct AlarmSetting<M: Answerable + Clone + Send + 'static> {
    race: StdArc<Race<M>>,
    number: u64,
}

impl<M: Answerable + Clone + Send + 'static> AlarmSetting<M> {
    fn ring(self) {
        self.race.rings(self.number);
    }
}

impl<M: Answerable + Clone + Send + 'static> Drop for AlarmSetting<M> {
    /// The setting was dropped without having rung, and no other setting exists: the system's timers have ended.
    fn drop(&mut self) {
        if self.race.look(|open| open.alarm.number) == Some(self.number) {
            self.race.time_up();
        }
    }
}

/// The data that starts an attempt.
struct Start<M> {
    index: u32,
    routee: ActorRef<M>,
    /// The message itself, for the last attempt.
    last: Option<M>,
    hops: u32,
}

impl<M: Send + 'static> Open<M> {
    /// Another attempt has begun.
    fn begin(&mut self, now: Duration) {
        self.under_way += 1;
        if let Some(queue) = &mut self.queue {
            queue.next_tick = now.saturating_add(queue.pace.interval);
        }
    }

    /// Takes the kept message into `hand`, if an attempt is due and no other thread has it; puts it back if none is due
    /// any more. Returns true if it is in hand.
    fn take_kept(&mut self, hand: &mut Option<M>) -> bool {
        let Some(queue) = &mut self.queue else { return false };
        if queue.due > 0 && hand.is_none() {
            *hand = queue.kept.take();
        } else if queue.due == 0 && hand.is_some() {
            queue.kept = hand.take();
        }
        hand.is_some()
    }

    /// Begins an attempt that is due.
    fn start(&mut self, hand: &mut Option<M>, now: Duration) -> Option<Start<M>> {
        let queue = self.queue.as_mut()?;
        queue.due = queue.due.checked_sub(1)?;
        let index = queue.rest.next()?;
        let last = if queue.rest.is_empty() { hand.take() } else { None };
        let start = Start {
            index,
            routee: self.routees.get(index as usize)?.actor().clone(),
            last,
            hops: queue.hops,
        };
        self.begin(now);
        Some(start)
    }

    fn next_alarm(&self) -> Duration {
        match &self.queue {
            Some(queue) if !queue.rest.is_empty() => queue.next_tick.min(self.deadline),
            _ => self.deadline,
        }
    }

    /// The alarm rings: makes an attempt due if it is time for an attempt. Returns true if the time is up.
    fn ring(&mut self, now: Duration) -> bool {
        let is_up = now >= self.deadline;
        if let Some(queue) = &mut self.queue {
            // A tick on the very deadline counts by default: 1 + within / interval routees are asked.
            let is_tick = if is_up {
                queue.next_tick == self.deadline && !queue.pace.ends_before_deadline
            } else {
                now >= queue.next_tick
            };
            if is_tick {
                queue.make_due();
                // The next tick comes after the attempt that this tick makes due.
                queue.next_tick = Duration::MAX;
            }
        }
        is_up
    }

    /// Lets go of all data that the outcome does not need, before the outcome is known to any other thread.
    fn close(self) -> (StdArc<dyn AskerPort>, Table<M>, Causes) {
        let Self { asker, head, routees, causes, alarm, queue, .. } = self;
        if let Some(timer) = alarm.timer {
            head.core().system.timers().cancel(timer);
        }
        drop_guarded(queue);
        (asker, routees, causes)
    }

    fn fail(self, error: AskError) {
        let (asker, routees, _) = self.close();
        drop_guarded(routees);
        asker.fail_with(error);
    }

    fn fail_all(self) {
        let (asker, routees, causes) = self.close();
        let name = |(index, end): (u32, AttemptEnd)| {
            let routee = routees.get(index as usize)?;
            Some((path_of(routee), end))
        };
        let causes = causes.into_iter().filter_map(name).collect();
        drop_guarded(routees);
        asker.fail_with(AskError::AllFailed { causes: StdArc::new(causes), target: None });
    }
}

impl<M> Queue<M> {
    /// Another attempt is to be started, if a routee is left.
    fn make_due(&mut self) {
        self.due = (self.due + 1).min(self.rest.indices.len());
    }
}

impl<M: Answerable + Clone + Send + 'static> Question for Race<M> {
    fn is_wanted(&self) -> bool {
        let Some(asker) = self.look(|open| open.asker.clone()) else { return false };
        // An asker that cannot say counts as present.
        guarded(|| Ok(asker.is_wanted())).unwrap_or(true)
    }

    fn takes_any_reply(&self) -> bool {
        self.first_completion
    }

    fn win(&self, index: u32, answer: &mut Answering<'_>) {
        let open = lock(&self.open).take();
        let Some(open) = open else {
            self.rare.counts.late.add();
            return;
        };
        let (asker, routees, _) = open.close();
        let routee = routees.get(index as usize).cloned();
        drop_guarded(routees);
        answer(asker, &|| routee.as_ref().map_or_else(nowhere, path_of));
        drop_guarded(routee);
    }

    fn record_failed_attempt(self: StdArc<Self>, index: u32, end: AttemptEnd) {
        let ended = {
            let mut open = lock(&self.open);
            let Some(race) = open.as_mut() else { return };
            if !race.lost.set(index) {
                return;
            }
            race.causes.push((index, end));
            race.under_way -= 1;
            if let Some(queue) = race.queue.as_mut().filter(|queue| !queue.pace.wait_for_tick) {
                queue.make_due();
            }
            Self::take_if_all_failed(&mut open)
        };
        match ended {
            Some(open) => open.fail_all(),
            None => drop_guarded(self.start_due()),
        }
    }

    fn router(&self) -> RouterId {
        self.router
    }
}

fn now(head: &AnyActorRef) -> Duration {
    head.core().system.timers().now()
}

/// Returns the path of a routee. A routee that is no actor reports it itself, by user code.
fn path_of<M: Send + 'static>(routee: &Routee<M>) -> ActorPath {
    guarded(|| Ok(routee.actor().path())).unwrap_or_else(|failure| {
        drop_guarded(failure);
        nowhere()
    })
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::core::error::SendError;
    use crate::core::recipient::Recipient;
    use crate::prelude::*;
    use crate::routing::logic::RoutingLogic;
    use crate::routing::logics::scatter_gather::ScatterGatherFirstCompleted;
    use crate::routing::logics::tail_chopping::TailChopping;
    use crate::sync::{Mutex, lock};
    use crate::time::clock::ManualClock;
    use std::sync::Arc;
    use std::time::Duration;

    #[derive(Clone)]
    struct Get;
    impl Request for Get {
        type Reply = u32;
    }

    /// Keeps the messages that it gets.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Call<Get>>>>);

    impl Recipient<Call<Get>> for Kept {
        fn deliver(&self, call: Call<Get>) -> Result<(), SendError<Call<Get>>> {
            lock(&self.0).push(call);
            Ok(())
        }
    }

    fn timers_end(name: &str, logic: impl RoutingLogic<Call<Get>>) {
        let clock = ManualClock::new();
        let system = System::builder(name).clock(clock.clone()).build().expect("sound");
        let timers = || system.core().timers().len();
        let kept = Kept::default();
        let group = (0..3).map(|_| ActorRef::to_recipient(kept.clone()));
        let router = system.router("all").group(group).logic(logic).spawn().expect("the name is free");

        let won = router.ask(Get);
        clock.advance(Duration::from_millis(15));
        assert_eq!(timers(), 1);
        let mut calls = std::mem::take(&mut *lock(&kept.0));
        calls.pop().expect("one").answer(|_| 1);
        assert_eq!((timers(), won.wait()), (0, Ok(1)));
        drop(calls);

        let failed = router.ask(Get);
        while timers() > 0 {
            let calls = std::mem::take(&mut *lock(&kept.0));
            // Dropped without the lock: the next attempt comes at once.
            drop(calls);
        }
        assert!(failed.wait().is_err());

        let asks: Vec<_> = (0..100_000).map(|_| router.ask(Get)).collect();
        assert_eq!(timers(), 100_000);
        clock.advance(Duration::from_secs(5));
        assert_eq!(timers(), 0);
        let after = Duration::from_secs(5);
        assert!(asks.into_iter().all(|ask| ask.wait() == Err(AskError::timeout(after))));
        let ledger = system.shutdown(Duration::from_secs(30)).expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
    }

    #[test]
    fn no_timer_outlives_the_outcome() {
        timers_end("scatter", ScatterGatherFirstCompleted::new());
        timers_end("chop", TailChopping::new());
    }

    #[test]
    fn each_index_is_new_once() {
        let mut marks = super::BitSet::default();
        let indices = [0, 63, 64, 1000, 127, 128, 1];
        for is_new in [true, false] {
            assert!(indices.iter().all(|index| marks.set(*index) == is_new));
        }
        assert!(marks.set(999) && marks.set(62));
    }

    #[test]
    fn a_losers_port_keeps_little() {
        // The lock and the box behind it, the router and its counts, and the way of counting.
        assert!(size_of::<super::Race<Call<Get>>>() <= 48, "{}", size_of::<super::Race<Call<Get>>>());
    }
}
