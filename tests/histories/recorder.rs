//! Records histories and has them checked.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

/// Longer than anything here takes; reached only by a test that fails.
pub const LONG: Duration = Duration::from_secs(60);

/// The order of all calls and returns.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    pub fn now(&self) -> u64 {
        // One counter, and sequentially consistent: what returns before another thing is called has the lower number.
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Does it, and tells when. What it was depends on what comes of it.
    pub fn time<R, O>(&self, act: impl FnOnce() -> R, describe: impl FnOnce(R) -> O) -> Timed<O> {
        let called = self.now();
        let outcome = act();
        let returned = self.now();
        Timed { called, returned, operation: describe(outcome) }
    }
}

/// An operation, and when it was called and returned.
#[derive(Debug, Clone)]
pub struct Timed<O> {
    pub called: u64,
    pub returned: u64,
    pub operation: O,
}

/// Whether there is an order of these operations that the specification allows and that contradicts no time.
pub fn is_linearizable<S: Specification>(history: &[Timed<S::Operation>]) -> bool {
    let mut events: Vec<(u64, usize, bool)> = Vec::new();
    for (number, timed) in history.iter().enumerate() {
        events.push((timed.called, number, true));
        events.push((timed.returned, number, false));
    }
    events.sort_unstable();
    // Each operation may be a process of its own: the times say all.
    let actions = events.into_iter().map(|(_, number, is_call)| {
        let operation = history[number].operation.clone();
        (number, if is_call { Action::Call(operation) } else { Action::Response(operation) })
    });
    WGLChecker::<S>::is_linearizable(History::from_actions(actions.collect()))
}

#[track_caller]
pub fn assert_linearizable<S: Specification>(mut history: Vec<Timed<S::Operation>>) {
    history.sort_by_key(|timed| timed.called);
    if !is_linearizable::<S>(&history) {
        let told: String = history
            .iter()
            .map(|Timed { called, returned, operation }| {
                format!("{called:4} to {returned:4}: {operation:?}\n")
            })
            .collect();
        panic!("no order of these operations is legal:\n{told}");
    }
}

/// Operations one after another, as those of one thread.
pub fn in_turn<O>(operations: impl IntoIterator<Item = O>) -> Vec<Timed<O>> {
    let clock = Clock::default();
    operations.into_iter().map(|operation| clock.time(|| operation, |operation| operation)).collect()
}

/// A stream of numbers, the same in each run.
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    /// A pause of some length: so that threads meet in different ways, also where there are fewer cores than threads.
    pub fn pause(&mut self) {
        match self.roll(8) {
            0 => std::thread::yield_now(),
            1..4 => (0..self.roll(300)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}

/// Runs what each of these does, all at once, and gives all that they have recorded.
pub fn together<O: Send>(threads: Vec<Box<dyn FnOnce() -> Vec<Timed<O>> + Send + '_>>) -> Vec<Timed<O>> {
    let barrier = &Barrier::new(threads.len());
    std::thread::scope(|scope| {
        let running: Vec<_> = threads
            .into_iter()
            .map(|act| {
                scope.spawn(move || {
                    barrier.wait();
                    act()
                })
            })
            .collect();
        running.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    })
}
