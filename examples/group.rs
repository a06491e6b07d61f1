//! A group: a router over actors that others have made, of which it stops none.
//!
//! ```text
//!                  ┌── group ──┐
//!   tell ─────────▶│  in turn  │─────▶ /user/north   (an actor)
//!                  │           │─────▶ /user/south   (an actor)
//!                  │           │─────▶ /user/west    (a router of its own: in turn, too)
//!                  └───────────┘          └──▶ $a, $b
//! ```
//!
//! ```text
//! cargo run --example group
//! ```

use pointsman::prelude::*;
use std::error::Error;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

struct Depot {
    got: Sender<(String, u32)>,
}

impl Actor for Depot {
    type Message = u32;
    fn receive(&mut self, parcel: u32, ctx: &mut Context<u32>) -> HandlerResult {
        self.got.send((ctx.path().to_string(), parcel))?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("post").build()?;
    let (got, parcels) = channel();
    let depot = move || Depot { got: got.clone() };
    let north = system.actor("north").spawn(depot.clone())?;
    let south = system.actor("south").spawn(depot.clone())?;
    let west = system.router("west").pool(2, move |_| depot()).spawn()?;
    let depots = system.router("depots").group([north.clone(), south, west.to_ref()]).spawn()?;

    for parcel in 1..=6u32 {
        depots.tell(parcel);
    }
    let mut all = Vec::new();
    for _ in 1..=6 {
        all.push(parcels.recv_timeout(Duration::from_secs(5))?);
    }
    all.sort();
    for (depot, parcel) in &all {
        println!("{depot:<14} got parcel {parcel}");
    }
    let expected = [
        ("/user/north", 1),
        ("/user/north", 4),
        ("/user/south", 2),
        ("/user/south", 5),
        ("/user/west/$a", 3),
        ("/user/west/$b", 6),
    ];
    assert_eq!(all, expected.map(|(depot, parcel)| (depot.to_owned(), parcel)));

    depots.remove(&north)?;
    assert!(!north.is_closed(), "only unlisted: a group stops nobody");
    assert_eq!(depots.routees()?.len(), 2);
    assert_eq!(system.shutdown(Duration::from_secs(5))?.balance(), 0);
    Ok(())
}
