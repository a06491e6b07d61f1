//! Deliveries that wait for room, for all of it together.
//!
//! Each waits at the room of its own mailbox, and all ring one bell: whoever has room first gets its message first,
//! however long the others are full.

use super::delivery::Way;
use super::{ActorRef, DeadLetterReason, Target};
use crate::actor::left_to_wait;
use crate::mailbox::{Bell, Pushed, Refused};
use crate::sync::Arc;
use std::any::Any;
use std::time::{Duration, Instant};

/// Where a message goes on that waits for room at an actor that retires.
pub trait Succession<M: Send + 'static> {
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
pub trait Later {
    fn try_again(&mut self) -> Tried;

    /// For how long it may wait.
    fn limit(&self) -> Duration;

    /// Has the bell rung whenever there may be room, until this is dropped.
    fn ring(&mut self, bell: &Arc<Bell>);

    /// Makes the message a dead letter.
    fn give_up(self: Box<Self>, way: &Way<'_>, reason: DeadLetterReason);

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

    fn limit(&self) -> Duration {
        self.limit
    }

    fn ring(&mut self, bell: &Arc<Bell>) {
        if let Target::Local(local) = self.to.target() {
            local.mailbox.enlist(bell);
            self.bell = Some(bell.clone());
        }
    }

    fn give_up(mut self: Box<Self>, way: &Way<'_>, reason: DeadLetterReason) {
        if let Some(message) = self.message.take() {
            way.system.ledger().mine().dead_lettered(1);
            way.system.dead_letters().bury(message, reason, || self.to.path());
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

/// Those that still wait, and those that have waited in vain.
struct Waiting<'a> {
    way: &'a Way<'a>,
    /// Each until its deadline, if it has one.
    open: Vec<(Box<dyn Later>, Option<Instant>)>,
    over: Vec<(Box<dyn Later>, DeadLetterReason)>,
}

impl Waiting<'_> {
    /// Tries all that are open once more.
    fn try_again(&mut self) {
        let mut index = 0;
        while let Some((later, _)) = self.open.get_mut(index) {
            match later.try_again() {
                Tried::Full => index += 1,
                Tried::Accepted => {
                    self.way.accept();
                    drop(self.open.swap_remove(index));
                }
                Tried::Closed => self.end(index, DeadLetterReason::Stopped),
            }
        }
    }

    fn end(&mut self, index: usize, reason: DeadLetterReason) {
        self.way.note(reason);
        let (later, _) = self.open.swap_remove(index);
        self.over.push((later, reason));
    }

    /// Ends those whose time is up; the earliest deadline of the others.
    fn time_up(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while let Some(index) =
            self.open.iter().position(|(_, deadline)| deadline.is_some_and(|deadline| deadline <= now))
        {
            self.end(index, DeadLetterReason::Full);
        }
        self.open.iter().filter_map(|(_, deadline)| *deadline).min()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        for (later, _) in self.open.drain(..) {
            later.give_up(self.way, DeadLetterReason::Panicked);
        }
        for (later, reason) in self.over.drain(..) {
            later.give_up(self.way, reason);
        }
    }
}

/// Waits until each of them is accepted, refused, or has waited for as long as it may.
///
/// What has waited in vain is a dead letter; but if `keep`, and nobody at all has accepted, one message is returned.
pub fn wait_for_all(
    way: &Way<'_>,
    later: Vec<Box<dyn Later>>,
    keep: bool,
) -> Option<(Box<dyn Any + Send>, usize)> {
    let open = later.into_iter().map(|later| (later, None)).collect();
    let mut waiting = Waiting { way, open, over: Vec::new() };
    // A thread that is itself the one to run the actors does so.
    let reached = way.system.run_turns(&mut || {
        waiting.try_again();
        waiting.open.is_empty()
    });
    let began = Instant::now();
    let bell = Arc::new(Bell::new());
    for (later, deadline) in &mut waiting.open {
        *deadline = began.checked_add(left_to_wait(reached, later.limit()));
        later.ring(&bell);
    }
    while !waiting.open.is_empty() {
        let heard = bell.heard();
        waiting.try_again();
        let until = waiting.time_up();
        if !waiting.open.is_empty() {
            bell.wait(heard, until);
        }
    }
    let is_kept = keep && way.report().accepted == 0;
    let kept = if is_kept { waiting.over.pop() } else { None };
    kept.map(|(later, _)| later.into_message())
}
