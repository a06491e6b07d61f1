//! The turns of a test system: a seeded choice among all actors that have something to do.

use crate::core::dead_letters::turn_within;
use crate::dispatch::dispatcher::DispatcherKind;
use crate::dispatch::stepping::{Identity, Reached, Stepper};
use crate::scheduler::current::standing_for;
use crate::scheduler::task::{Outcome, TaskRef, Turn};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{HashMap, Mutex, lock};
use crate::testkit::wait_error::WaitError;
use crate::thread_context::sender::SenderGuard;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fmt;

/// The number of messages in a turn is 1 with a chance of a half, 2 with a quarter, and so on: a turn often ends
/// between two messages, and now and then a long run of them is seen.
const DOUBLINGS_MAX: u32 = 8;

/// The number of the busiest actors that an error names.
const BUSIEST_NAMED: usize = 5;

/// The actors of a system that wait for a turn, and the choice of the next.
pub(crate) struct Turns {
    seed: u64,
    /// The only thread that runs turns.
    owner: ThreadId,
    /// More turns than this without a rest are a livelock.
    turn_max: u64,
    state: Mutex<State>,
}

struct State {
    /// Sorted by their uids, so that the choice does not depend on the order of their wakes: where a message or hash
    /// map wakes many actors, that order need not repeat itself.
    ready: Vec<Ready>,
    choice: SmallRng,
    /// The uid of each turn's actor.
    trace: Vec<u32>,
    /// Paths by uid. Tasks that are no actors have uid 0.
    paths: HashMap<u32, String>,
    /// Turns that are being run: more than one when a handler waits.
    depth: u32,
}

struct Ready {
    task: TaskRef,
    kind: DispatcherKind,
    uid: u32,
}

impl Turns {
    /// Makes turns that the calling thread runs.
    pub(crate) fn new(seed: u64, turn_max: u64) -> Self {
        Self {
            seed,
            owner: thread::current().id(),
            turn_max,
            state: Mutex::new(State {
                ready: Vec::new(),
                choice: SmallRng::seed_from_u64(seed),
                trace: Vec::new(),
                paths: HashMap::from_iter([(0, "(no actor)".to_owned())]),
                depth: 0,
            }),
        }
    }

    /// Runs one turn; false if there is nothing to do.
    pub(crate) fn step(&self) -> bool {
        let (Ready { task, kind, uid }, turn) = {
            let mut state = lock(&self.state);
            if state.ready.is_empty() {
                return false;
            }
            let count = state.ready.len();
            let index = state.choice.random_range(0..count);
            let doublings = state.choice.random_range(0..1u32 << DOUBLINGS_MAX).trailing_ones();
            let turn = Turn::new(1 << doublings);
            turn.measure_alone();
            let ready = state.ready.remove(index);
            state.trace.push(ready.uid);
            state.depth += 1;
            (ready, turn)
        };
        let stands_for_worker = matches!(kind, DispatcherKind::WorkStealing | DispatcherKind::CallingThread);
        let outcome = {
            let _aside = SenderGuard::step();
            turn_within(|| standing_for(stands_for_worker, || task.run(&turn)))
        };
        let mut state = lock(&self.state);
        state.depth -= 1;
        match outcome {
            Outcome::Idle => {}
            Outcome::Requeue(task) => state.push(Ready { task, kind, uid }),
            Outcome::Busy(task) => {
                state.push(Ready { task, kind, uid });
                drop(state);
                // Another thread is about to finish what it has begun to send.
                thread::yield_now();
            }
        }
        true
    }

    /// Runs turns until no actor has anything to do, and returns how many.
    pub(crate) fn run_until_idle(&self) -> Result<u64, WaitError> {
        let mut turns = 0;
        while self.step() {
            turns += 1;
            if turns == self.turn_max && !lock(&self.state).ready.is_empty() {
                return Err(self.livelock(turns));
            }
        }
        Ok(turns)
    }

    /// Makes the error from the last `turns` turns.
    pub(crate) fn livelock(&self, turns: u64) -> WaitError {
        let state = lock(&self.state);
        let from = state.trace.len().saturating_sub(usize::try_from(turns).unwrap_or(usize::MAX));
        let mut counts: HashMap<u32, u64> = HashMap::default();
        for uid in &state.trace[from..] {
            *counts.entry(*uid).or_default() += 1;
        }
        let mut busiest: Vec<(u32, u64)> = counts.into_iter().collect();
        busiest.sort_unstable_by_key(|(uid, count)| (std::cmp::Reverse(*count), *uid));
        busiest.truncate(BUSIEST_NAMED);
        let busiest = busiest.into_iter().map(|(uid, count)| (state.paths[&uid].clone(), count)).collect();
        WaitError::Livelock { turns, busiest, seed: self.seed }
    }

    /// The paths of the actors that had turns, in order.
    pub(crate) fn trace(&self) -> Vec<String> {
        let state = lock(&self.state);
        state.trace.iter().map(|uid| state.paths[uid].clone()).collect()
    }

    /// Forgets the trace so far.
    pub(crate) fn clear_trace(&self) {
        lock(&self.state).trace.clear();
    }
}

impl State {
    fn push(&mut self, ready: Ready) {
        let place = self.ready.partition_point(|other| other.uid <= ready.uid);
        self.ready.insert(place, ready);
    }
}

impl Stepper for Turns {
    fn schedule(&self, task: TaskRef, kind: DispatcherKind, who: Option<Identity<'_>>) {
        let (uid, path) = who.unwrap_or((0, &String::new));
        let known = lock(&self.state).paths.contains_key(&uid);
        // Made without the lock.
        let path = (!known).then(path);
        let mut state = lock(&self.state);
        if let Some(path) = path {
            state.paths.insert(uid, path);
        }
        state.push(Ready { task, kind, uid });
    }

    fn run_turns(&self, done: &mut dyn FnMut() -> bool) -> Reached {
        if thread::current().id() != self.owner {
            return Reached::Elsewhere;
        }
        for _ in 0..self.turn_max {
            if done() {
                return Reached::Done;
            }
            if !self.step() {
                return Reached::Idle;
            }
        }
        if done() { Reached::Done } else { Reached::Livelock }
    }

    fn is_idle(&self) -> bool {
        lock(&self.state).ready.is_empty()
    }

    fn in_turn(&self) -> bool {
        thread::current().id() == self.owner && lock(&self.state).depth > 0
    }

    fn turn_max(&self) -> u64 {
        self.turn_max
    }

    fn seed(&self) -> u64 {
        self.seed
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns")
            .field("seed", &self.seed)
            .field("ready", &lock(&self.state).ready.len())
            .finish_non_exhaustive()
    }
}
