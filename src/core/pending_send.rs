//! Deliveries that wait for room, for all of it together.
//!
//! Each waits at the room of its own mailbox, and all ring one bell: whoever has room first gets its message first,
//! however long the others are full.

use crate::core::actor_ref::{ActorRef, Target};
use crate::core::cell::Local;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::system::SystemCore;
use crate::dispatch::stepping::left_to_wait;
use crate::mailbox::backpressure::Bell;
use crate::mailbox::mailbox::{Pushed, Refused};
use crate::sync::Arc;
use crate::time::alarm::{AlarmKey, Alarms};
use std::any::Any;
use std::sync::Arc as StdArc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// Where a message goes on that waits for room at an actor that retires.
pub trait Succession<M: Send + 'static>: Send {
    /// Offers it to the successor, as the message counts already: sent, and without an outcome. `is_copy`: see
    /// `copies.rs`. Calls user code, and is called without any lock.
    fn offer(&self, message: M, is_copy: bool) -> Next<M>;
}

/// What the successor says.
pub enum Next<M: Send + 'static> {
    Accepted,
    /// Its mailbox is full.
    Full(ActorRef<M>, M),
    /// Whoever was full has gone: try once more.
    Again(M),
    /// There is none.
    Closed(M),
}

/// What has come of one more try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    Accepted,
    Closed,
    /// Still full.
    Full,
}

/// One delivery that waits, whatever the type of its message.
pub trait Later: Send {
    fn try_again(&mut self) -> Tried;

    /// The system of the actor that it waits for, whose clock its limit goes by.
    fn system(&self) -> &StdArc<SystemCore>;

    /// Whether the calling thread must not wait for this.
    fn waits_in_vain(&self) -> bool;

    /// For how long it may wait.
    fn limit(&self) -> Duration;

    /// Has the bell rung whenever there may be room, until this is dropped.
    fn ring(&mut self, bell: &Arc<Bell>);

    /// Makes the message a dead letter, in the books that have counted it as sent; `None`: in those of its actor's system.
    fn give_up(self: Box<Self>, books: Option<&SystemCore>, reason: DeadLetterReason);

    /// Hands the message back, and the number of its route.
    fn into_message(self: Box<Self>) -> (Box<dyn Any + Send>, usize);
}

/// A message that waits for room at an actor.
pub struct Waiter<M: Send + 'static> {
    to: ActorRef<M>,
    /// `None` once it is accepted.
    message: Option<M>,
    limit: Duration,
    route: usize,
    /// Where it is enlisted.
    bell: Option<Arc<Bell>>,
    succession: Option<Box<dyn Succession<M>>>,
    is_copy: bool,
}

impl<M: Send + 'static> Waiter<M> {
    pub fn new(to: ActorRef<M>, message: M, limit: Duration, route: usize) -> Self {
        Self { to, message: Some(message), limit, route, bell: None, succession: None, is_copy: false }
    }

    /// Has it go on to whoever succeeds the actor, if that retires.
    pub fn with_succession(mut self, succession: Option<Box<dyn Succession<M>>>, is_copy: bool) -> Self {
        (self.succession, self.is_copy) = (succession, is_copy);
        self
    }

    /// It was refused as closed: offers it to the successor of one that has retired.
    #[cold]
    fn go_on(&mut self, refused: M) -> Tried {
        let mut message = refused;
        if let Some(succession) = self.succession.as_deref().filter(|_| self.to.is_retired()) {
            loop {
                match succession.offer(message, self.is_copy) {
                    Next::Accepted => return Tried::Accepted,
                    Next::Again(again) => message = again,
                    Next::Closed(again) => {
                        message = again;
                        break;
                    }
                    Next::Full(successor, again) => {
                        self.message = Some(again);
                        self.wait_at(successor);
                        return Tried::Full;
                    }
                }
            }
        }
        self.message = Some(message);
        Tried::Closed
    }

    /// Waits for room at another actor. The next try comes before the bell is waited for.
    fn wait_at(&mut self, actor: ActorRef<M>) {
        let bell = self.dismiss();
        self.to = actor;
        if let Some(bell) = bell {
            self.ring(&bell);
            // There may have been room before it was enlisted.
            bell.ring();
        }
    }

    fn dismiss(&mut self) -> Option<Arc<Bell>> {
        let bell = self.bell.take()?;
        if let Target::Local(local) = self.to.target() {
            local.mailbox.dismiss(&bell);
        }
        Some(bell)
    }
}

impl<M: Send + 'static> Later for Waiter<M> {
    fn try_again(&mut self) -> Tried {
        let Target::Local(local) = self.to.target() else { return Tried::Closed };
        let Some(message) = self.message.take() else { return Tried::Accepted };
        match local.mailbox.push(message) {
            Ok(Pushed::Queued) => Tried::Accepted,
            Ok(Pushed::Wake) => {
                self.to.schedule();
                Tried::Accepted
            }
            Ok(displaced) => {
                self.to.displaced(local, displaced);
                Tried::Accepted
            }
            Err(Refused::Closed(message)) => self.go_on(message),
            Err(Refused::Full(message)) => {
                self.message = Some(message);
                Tried::Full
            }
        }
    }

    fn system(&self) -> &StdArc<SystemCore> {
        match self.to.target() {
            Target::Local(local) => &local.core.system,
            Target::Foreign(_) => unreachable!("only an actor's mailbox lets senders wait"),
        }
    }

    fn waits_in_vain(&self) -> bool {
        self.to.waits_in_vain()
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn ring(&mut self, bell: &Arc<Bell>) {
        if let Target::Local(local) = self.to.target() {
            local.mailbox.enlist(bell);
            self.bell = Some(bell.clone());
        }
    }

    fn give_up(mut self: Box<Self>, books: Option<&SystemCore>, reason: DeadLetterReason) {
        if let Some(message) = self.message.take() {
            let system = books.unwrap_or_else(|| &**self.system());
            system.ledger().mine().dead_lettered(1);
            system.dead_letters().bury(message, reason, || self.to.path());
        }
    }

    fn into_message(mut self: Box<Self>) -> (Box<dyn Any + Send>, usize) {
        let message = self.message.take().expect("it was not accepted");
        (Box::new(message), self.route)
    }
}

impl<M: Send + 'static> Drop for Waiter<M> {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// Rings a bell when an alarm does.
struct Ring(Arc<Bell>);

impl Wake for Ring {
    fn wake(self: StdArc<Self>) {
        self.0.ring();
    }
}

/// Counts the outcomes of a send to several recipients.
pub trait Outcomes {
    /// The system whose books have counted the message as sent.
    fn system(&self) -> &SystemCore;

    /// One recipient has accepted.
    fn accept(&self);

    /// One recipient has refused.
    fn note(&self, reason: DeadLetterReason);

    /// How many have accepted.
    fn accepted(&self) -> usize;
}

/// Those that still wait, and those that have waited in vain.
struct Waiting<'a> {
    /// What counts the outcomes, where the send is not over yet.
    counter: Option<&'a dyn Outcomes>,
    /// For all of them.
    until: Option<Until<'a>>,
    /// Each until its deadline, if it has one, by the clock of its own system.
    open: Vec<(Box<dyn Later>, Option<Duration>)>,
    over: Vec<(Box<dyn Later>, DeadLetterReason)>,
}

impl<'a> Waiting<'a> {
    fn new(later: Vec<Box<dyn Later>>, counter: Option<&'a dyn Outcomes>, until: Option<Until<'a>>) -> Self {
        let open = later.into_iter().map(|later| (later, None)).collect();
        Self { counter, until, open, over: Vec::new() }
    }

    /// Waits until none is open.
    fn wait(&mut self, steps: &SystemCore) {
        // A thread that is itself the one to run the actors does so.
        let reached = steps.run_turns(&mut || {
            self.try_again();
            self.open.is_empty()
        });
        let bell = Arc::new(Bell::new());
        for (later, deadline) in &mut self.open {
            let limit = if later.waits_in_vain() { Duration::ZERO } else { later.limit() };
            let limit = left_to_wait(reached, limit);
            // A sum too large for a `Duration` is as good as no limit.
            let began = later.system().timers().now();
            *deadline = if limit == Duration::MAX { None } else { began.checked_add(limit) };
            later.ring(&bell);
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

    /// Tries all that are open once more; none, if the time of all is up.
    fn try_again(&mut self) {
        if self.until.is_some_and(|until| until.is_over()) {
            while !self.open.is_empty() {
                self.end(0, DeadLetterReason::Full);
            }
        }
        let mut index = 0;
        while let Some((later, _)) = self.open.get_mut(index) {
            match later.try_again() {
                Tried::Full => index += 1,
                Tried::Accepted => {
                    if let Some(counter) = self.counter {
                        counter.accept();
                    }
                    drop(self.open.swap_remove(index));
                }
                Tried::Closed => self.end(index, DeadLetterReason::Stopped),
            }
        }
    }

    fn end(&mut self, index: usize, reason: DeadLetterReason) {
        if let Some(counter) = self.counter {
            counter.note(reason);
        }
        let (later, _) = self.open.swap_remove(index);
        self.over.push((later, reason));
    }

    /// Ends those whose own time is up.
    fn time_up(&mut self) {
        let is_over = |(later, deadline): &(Box<dyn Later>, Option<Duration>)| {
            deadline.is_some_and(|deadline| later.system().timers().now() >= deadline)
        };
        while let Some(index) = self.open.iter().position(is_over) {
            self.end(index, DeadLetterReason::Full);
        }
    }

    /// Sleeps until the bell has rung more often than `heard`, or a deadline has come.
    fn sleep(&self, bell: &Arc<Bell>, heard: u64) {
        let own = self.open.iter().filter_map(|(later, deadline)| {
            let clock: &dyn Alarms = later.system().timers();
            deadline.map(|at| Until { at, clock })
        });
        let mut rest = None;
        let mut alarms = AlarmsSet(Vec::new());
        for Until { at, clock } in own.chain(self.until) {
            if clock.is_real() {
                // Such a clock goes as fast as the one that threads sleep by.
                let left = at.saturating_sub(clock.now());
                rest = Some(rest.map_or(left, |rest: Duration| rest.min(left)));
            } else {
                let waker = Waker::from(StdArc::new(Ring(bell.clone())));
                alarms.0.push((clock, clock.wake_at(at, waker)));
            }
        }
        bell.wait(heard, rest.and_then(|rest| Instant::now().checked_add(rest)));
    }
}

/// Alarms of clocks that don't go by themselves, cancelled when the sleep is over.
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
        let books = self.counter.map(|counter| counter.system());
        for (later, _) in self.open.drain(..) {
            later.give_up(books, DeadLetterReason::Panicked);
        }
        for (later, reason) in self.over.drain(..) {
            later.give_up(books, reason);
        }
    }
}

/// Waits until each of them is accepted, refused, or has waited for as long as it may.
///
/// What has waited in vain is a dead letter; but if `keep`, and nobody at all has accepted, one message is returned.
pub fn wait_for_all(
    counter: &dyn Outcomes,
    later: Vec<Box<dyn Later>>,
    keep: bool,
) -> Option<(Box<dyn Any + Send>, usize)> {
    let mut waiting = Waiting::new(later, Some(counter), None);
    waiting.wait(counter.system());
    let is_kept = keep && counter.accepted() == 0;
    let kept = if is_kept { waiting.over.pop() } else { None };
    kept.map(|(later, _)| later.into_message())
}

/// As [`wait_for_all`] without a way, and no longer than `until`; returns what has waited in vain.
pub fn wait_until(
    later: Vec<Box<dyn Later>>,
    until: Option<Until<'_>>,
) -> Vec<(Box<dyn Later>, DeadLetterReason)> {
    let Some(steps) = later.first().map(|later| later.system().clone()) else { return Vec::new() };
    let mut waiting = Waiting::new(later, None, until);
    waiting.wait(&steps);
    std::mem::take(&mut waiting.over)
}

/// Waits for room at one actor, by a clock that does not go by itself.
///
/// # Errors
///
/// The message: why it was refused.
pub fn wait_alone<M: Send + 'static>(waiter: Waiter<M>) -> Result<(), Refused<M>> {
    let mut over = wait_until(vec![Box::new(waiter)], None);
    let Some((later, reason)) = over.pop() else { return Ok(()) };
    let (message, _) = later.into_message();
    let message = *message.downcast().expect("it waits as what it was sent as");
    Err(match reason {
        DeadLetterReason::Full => Refused::Full(message),
        _ => Refused::Closed(message),
    })
}

/// Pushes as soon as there is room, within `limit` by the system's clock.
///
/// A thread that is itself the one to run the system's actors (a test's) does so until there is room; a message that
/// still finds none is refused at once.
pub fn push_waiting<M: Send + 'static>(
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
        // Such a clock goes as fast as the one that threads sleep by.
        return local.mailbox.push_waiting(message, Instant::now().checked_add(limit));
    }
    wait_alone(Waiter::new(to.clone(), message, limit, 0)).map(|()| Pushed::Queued)
}

/// Until when is waited, and by which clock.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    pub at: Duration,
    pub clock: &'a dyn Alarms,
}

impl Until<'_> {
    pub fn is_over(&self) -> bool {
        self.clock.now() >= self.at
    }
}
