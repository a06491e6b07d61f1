//! How long messages take that arrive by a timetable.
//!
//! One thread sends at a steady rate through a round robin of eight actors, whether or not those before have been
//! handled (an *open* loop). A message's latency begins when the timetable says that it arrives, not when it is sent:
//! a sender that was held up, or preempted, does not hide what those behind it waited (*coordinated omission*).
//!
//! With one stuck actor, that of number 0 blocks its thread from its first message to the end of the run, as a handler
//! does that waits for something that does not come. Messages to it are not counted among the latencies, since they
//! wait for it by definition; all others are, and so is whatever they wait because a worker is gone.

use crate::peer::Tell;
use crate::scale::Scale;
use crate::tally::wait_until;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The parts of all messages whose latency is told: in a table those of [`SHOWN`], in curves all.
pub const QUANTILES: [f64; 16] =
    [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99999, 1.0];

/// Which of [`QUANTILES`] a table shows, and how it calls them.
pub const SHOWN: [(usize, &str); 4] = [(2, "p50"), (7, "p99"), (10, "p99.9"), (15, "max")];

/// The arrivals of this first part of the time are not counted.
const WARM_UP: f64 = 0.2;
/// The stuck actor looks so often whether it may go on.
const STUCK_LOOKS: Duration = Duration::from_millis(1);
/// In place of a latency: handled by the stuck actor.
const NOT_COUNTED: u64 = u64::MAX;

/// A timetable and what became of each message.
#[derive(Clone)]
pub struct OpenLoop {
    shared: Arc<Shared>,
}

struct Shared {
    /// Nanoseconds between two arrivals.
    every: f64,
    start: Instant,
    /// Nanoseconds from arrival to handler, plus 1; 0: not handled yet.
    latencies: Vec<AtomicU64>,
    is_stuck: bool,
    is_released: AtomicBool,
}

impl OpenLoop {
    pub fn new(scale: &Scale, is_stuck: bool) -> Self {
        let per_second = scale.arrivals_per_second;
        let messages = (scale.arrivals.as_secs_f64() * (1.0 + WARM_UP) * per_second) as usize;
        assert!(messages > 0, "a rate of {per_second}/s brings no message");
        let shared = Shared {
            every: 1e9 / per_second,
            start: Instant::now(),
            latencies: (0..messages).map(|_| AtomicU64::new(0)).collect(),
            is_stuck,
            is_released: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What the actor of this number does with a message, which has a number and a time of arrival.
    pub fn handle(&self, actor: usize, arrives: u64, message: u64) {
        let shared = &self.shared;
        let is_stuck = shared.is_stuck && actor == 0;
        while is_stuck && !shared.is_released.load(Ordering::Acquire) {
            thread::sleep(STUCK_LOOKS);
        }
        let late = || shared.now().saturating_sub(arrives).saturating_add(1);
        let latency = if is_stuck { NOT_COUNTED } else { late() };
        let before = shared.latencies[message as usize].swap(latency, Ordering::Release);
        assert_eq!(before, 0, "a message was handled twice");
    }

    /// Sends by the timetable, waits until all is handled, and returns the latency at each of [`QUANTILES`] in ns.
    pub fn run(&self, target: &impl Tell) -> Vec<f64> {
        let shared = &self.shared;
        // In a moment: the first messages are not to be late already.
        let first = shared.now() + 1_000_000;
        for message in 0..shared.latencies.len() {
            let arrives = first + (message as f64 * shared.every) as u64;
            while shared.now() < arrives {
                // Not a spin: this thread shares its core with workers.
                thread::yield_now();
            }
            target.tell([arrives, message as u64]);
        }
        let end = Instant::now();
        // Whatever waits for nothing but the stuck actor would wait for ever.
        let patience = Duration::from_millis(500);
        let handled =
            || shared.latencies.iter().filter(|latency| latency.load(Ordering::Acquire) > 0).count();
        while shared.is_stuck && end.elapsed() < patience {
            thread::sleep(STUCK_LOOKS);
        }
        shared.is_released.store(true, Ordering::Release);
        let all = shared.latencies.len();
        wait_until(|| handled() == all, || format!("{} of {all} handled", handled()));
        self.quantiles()
    }

    fn quantiles(&self) -> Vec<f64> {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits are allowed");
        let warm_up = (self.shared.latencies.len() as f64 * WARM_UP / (1.0 + WARM_UP)) as usize;
        for latency in &self.shared.latencies[warm_up..] {
            match latency.load(Ordering::Acquire) {
                NOT_COUNTED => {}
                latency => histogram.record(latency - 1).expect("the histogram grows"),
            }
        }
        QUANTILES.iter().map(|&quantile| histogram.value_at_quantile(quantile) as f64).collect()
    }
}

impl Shared {
    /// Nanoseconds since the beginning.
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}
