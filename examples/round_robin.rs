//! Round robin: each routee in turn.
//!
//! ```text
//!            1, 4, 7 ┌───────────┐
//!           ┌───────▶│ teller 0  │
//!  customer │ 2, 5, 8├───────────┤
//!  ─────────┼───────▶│ teller 1  │
//!           │ 3, 6, 9├───────────┤
//!           └───────▶│ teller 2  │
//!                    └───────────┘
//! ```
//!
//! ```text
//! cargo run --example round_robin
//! ```

use pointsman::prelude::*;
use pointsman::routing::RoundRobin;
use std::error::Error;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

struct Teller {
    number: usize,
    served: Sender<(usize, u32)>,
}

impl Actor for Teller {
    type Message = u32;
    fn receive(&mut self, customer: u32, _: &mut Context<u32>) -> HandlerResult {
        self.served.send((self.number, customer))?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("bank").build()?;
    let (served, log) = channel();
    let tellers = system
        .router("tellers")
        .pool(3, move |ctx| Teller { number: ctx.routee_index(), served: served.clone() })
        .logic(RoundRobin::new()) // the default: it need not be said
        .spawn()?;
    for customer in 1..=9u32 {
        tellers.tell(customer);
    }

    let mut all = Vec::new();
    for _ in 1..=9 {
        all.push(log.recv_timeout(Duration::from_secs(5))?);
    }
    all.sort_unstable();
    println!("(teller, customer): {all:?}");
    assert_eq!(all, [(0, 1), (0, 4), (0, 7), (1, 2), (1, 5), (1, 8), (2, 3), (2, 6), (2, 9)]);
    assert_eq!(system.shutdown(Duration::from_secs(5))?.balance(), 0);
    Ok(())
}
