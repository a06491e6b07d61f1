//! Two choices: of two routees drawn at random, the one with less to do. Nearly as even as to look at all of them, at a
//! cost that does not grow with their number.
//!
//! ```text
//!               ┌────────────────┐
//!               │ 0  ■■■         │
//!            ┌┈▶│ 1  ■■■■        │  drawn, has more
//!   job ──?──┤  │ 2  ■■          │
//!            └─▶│ 3  ■■■         │  drawn, has less: gets it
//!               │ …              │
//!               └────────────────┘
//! ```
//!
//! ```text
//! cargo run --example two_choices
//! ```

use pointsman::SendError;
use pointsman::actor::{Recipient, RecipientLoad};
use pointsman::prelude::*;
use pointsman::routing::{Random, RouterValue, RoutingLogic, TwoChoices};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const QUEUES: usize = 100;
const JOBS: usize = 10_000;

/// A queue that nobody empties, so that what the logic does can be seen.
#[derive(Clone, Default)]
struct Queue(Arc<AtomicUsize>);

impl Recipient<u64> for Queue {
    fn deliver(&self, _: u64) -> Result<(), SendError<u64>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn load(&self) -> RecipientLoad {
        RecipientLoad::Busy { queued: self.0.load(Ordering::Relaxed) }
    }
}

/// The longest queue after all jobs.
fn longest(system: &SystemRef, logic: impl RoutingLogic<u64>) -> Result<usize, Box<dyn Error>> {
    let queues: Vec<Queue> = (0..QUEUES).map(|_| Queue::default()).collect();
    let ports = queues.iter().cloned().map(ActorRef::to_recipient);
    let router = RouterValue::new(system, logic)?.with_routees(ports);
    (0..JOBS as u64).for_each(|job| router.route(job));
    Ok(queues.iter().map(|queue| queue.0.load(Ordering::Relaxed)).max().unwrap_or(0))
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("jobs").build()?;
    let (one, two) = (longest(&system, Random::seeded(1))?, longest(&system, TwoChoices::seeded(1))?);
    println!("{JOBS} jobs in {QUEUES} queues, {} each on average", JOBS / QUEUES);
    println!("the longest, drawn at random:    {one}\nthe longest, of two drawn:       {two}");
    assert!(two <= JOBS / QUEUES + 4 && one > two + 10);
    assert_eq!(system.shutdown(Duration::from_secs(5))?.balance(), 0);
    Ok(())
}
