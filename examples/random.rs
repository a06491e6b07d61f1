//! Random: any routee, with equal chance; the same ones again with the same seed.
//!
//! ```text
//!                 ┌──────────┐
//!            ┌───▶│ urn 0    │ about a quarter
//!   ball ──?─┤    ├──────────┤
//!            ├───▶│ urn 1    │ about a quarter
//!            ├───▶│ …        │
//!            ┊    └──────────┘
//! ```
//!
//! ```text
//! cargo run --example random
//! ```

use pointsman::prelude::*;
use pointsman::routing::{Random, RouterValue};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const BALLS: u32 = 10_000;

/// Throws balls into four urns.
fn throw(system: &SystemRef, seed: u64) -> Result<[u32; 4], Box<dyn Error>> {
    let urns: [Arc<AtomicU32>; 4] = Default::default();
    let ports =
        urns.clone().map(|urn| ActorRef::from_fn(move |balls| _ = urn.fetch_add(balls, Ordering::Relaxed)));
    // Not an actor but a value: enough where nobody must supervise the routees.
    let router = RouterValue::new(system, Random::seeded(seed))?.with_routees(&ports);
    for _ in 0..BALLS {
        router.route(1u32);
    }
    Ok(urns.map(|urn| urn.load(Ordering::Relaxed)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("urns").build()?;
    let urns = throw(&system, 42)?;
    println!("balls in each urn: {urns:?}");
    assert_eq!(urns.iter().sum::<u32>(), BALLS);
    assert!(urns.iter().all(|balls| balls.abs_diff(BALLS / 4) < BALLS / 40), "all about a quarter");
    assert_eq!(urns, throw(&system, 42)?, "the same seed, the same urns");
    assert_ne!(urns, throw(&system, 43)?);
    assert_eq!(system.shutdown(Duration::from_secs(5))?.balance(), 0);
    Ok(())
}
