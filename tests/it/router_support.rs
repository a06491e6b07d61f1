//! Routees for the tests of routers, and what they got.

use crate::support::LONG;
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::{AnyActorRef, SendError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Who got what: the number of a routee, and the message.
pub type Got = Receiver<(usize, u64)>;

/// Makes a worker fail.
pub const FAIL: u64 = u64::MAX;

/// Makes a worker end.
pub const END: u64 = u64::MAX - 1;

/// Reports what it gets.
pub struct Worker {
    pub number: usize,
    pub log: Sender<(usize, u64)>,
}

impl Actor for Worker {
    type Message = u64;
    fn receive(&mut self, message: u64, ctx: &mut Context<u64>) -> HandlerResult {
        self.log.send((self.number, message))?;
        match message {
            FAIL => Err(Failure::msg("as told")),
            END => {
                ctx.stop();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The recipe of workers that report, and what they report.
pub fn workers() -> (impl Fn(&mut Context<u64>) -> Worker + Clone + Send + Sync + 'static, Got) {
    let (log, got) = channel();
    (move |ctx: &mut Context<u64>| Worker { number: ctx.routee_index(), log: log.clone() }, got)
}

/// A worker that no pool made.
pub fn foreign(system: &SystemRef, name: &str, number: usize) -> (ActorRef<u64>, Got) {
    let (log, got) = channel();
    let worker =
        system.actor(name).spawn(move || Worker { number, log: log.clone() }).expect("the name is free");
    (worker, got)
}

/// How many of the next `messages` each got.
pub fn shares(got: &Got, messages: usize) -> BTreeMap<usize, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..messages {
        let (number, _) = got.recv_timeout(LONG).expect("every message is handled");
        *shares.entry(number).or_default() += 1;
    }
    shares
}

/// The messages that have been handled, in order of their numbers.
pub fn handled(got: &Got) -> Vec<u64> {
    let mut handled: Vec<u64> = got.try_iter().map(|(_, message)| message).collect();
    handled.sort_unstable();
    handled
}

/// Takes nothing, and panics when it is asked who stands behind it, once it is told to.
pub struct Shy {
    behind: ActorRef<u64>,
    panics: Arc<AtomicBool>,
}

impl Recipient<u64> for Shy {
    fn deliver(&self, message: u64) -> Result<(), SendError<u64>> {
        Err(SendError::Closed(message))
    }
    fn untyped(&self) -> Option<AnyActorRef> {
        assert!(!self.panics.load(Ordering::Relaxed), "as told");
        self.behind.untyped()
    }
}

/// A recipient before this actor, and what makes it panic.
pub fn shy(behind: &ActorRef<u64>) -> (ActorRef<u64>, Arc<AtomicBool>) {
    let panics = Arc::new(AtomicBool::new(false));
    (ActorRef::to_recipient(Shy { behind: behind.clone(), panics: panics.clone() }), panics)
}
