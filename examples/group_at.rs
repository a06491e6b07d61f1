//! A group by path: a router over whoever stands at a path when a message is sent, so that actors may come and
//! go, before it and after it.
//!
//! ```text
//!                  ┌─── group ───┐
//!   tell ─────────▶│   in turn   │┈┈┈┈▶ "/user/north"      whoever is there now
//!                  │             │┈┈┬┈▶ "/user/west/*"     one routee: a copy for each
//!                  └─────────────┘  └┈▶                    child of /user/west
//! ```
//!
//! ```text
//! cargo run --example group_at
//! ```

use pointsman::prelude::*;
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

#[derive(Clone)]
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

const SOON: Duration = Duration::from_secs(5);

/// The next so many parcels, by depot.
fn arrived(parcels: &Receiver<(String, u32)>, count: usize) -> Result<Vec<(String, u32)>, Box<dyn Error>> {
    let mut all = (0..count).map(|_| parcels.recv_timeout(SOON)).collect::<Result<Vec<_>, _>>()?;
    all.sort();
    for (depot, parcel) in &all {
        println!("{depot:<14} got parcel {parcel}");
    }
    Ok(all)
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("post").build()?;
    let (lost, dead) = channel();
    let _subscription = system.dead_letters().subscribe(move |letter| {
        let _ = lost.send(letter.recipient.to_string());
    });
    let (got, parcels) = channel();
    let depot = Depot { got };

    // The router comes first: there is no depot yet, and nobody has a reference to one.
    let depots: Router<u32> = system.router("depots").group_at(["/user/north", "/user/west/*"]).spawn()?;
    depots.tell(1u32);
    assert_eq!(dead.recv_timeout(SOON)?, "/user/north"); // a dead letter for the path
    println!("parcel 1 was for nobody");

    let made = depot.clone();
    let north = system.actor("north").spawn(move || made.clone())?;
    let west = system.router("west").pool(2, move |_| depot.clone()).spawn()?;
    depots.tell(2u32); // to both children of /user/west
    depots.tell(3u32); // to /user/north
    let both = [("/user/north", 3), ("/user/west/$a", 2), ("/user/west/$b", 2)];
    assert_eq!(arrived(&parcels, 3)?, both.map(|(depot, parcel)| (depot.to_owned(), parcel)));

    // They come and go, and the router need not be told.
    west.resize_to(3)?;
    depots.tell(4u32); // to three now
    arrived(&parcels, 3)?;
    north.graceful_stop(SOON).wait()?;
    depots.tell(5u32);
    assert_eq!(dead.recv_timeout(SOON)?, "/user/north");
    println!("parcel 5 was for nobody");

    assert_eq!(depots.routees()?.len(), 2, "paths stay, whoever is there");
    assert_eq!(system.shutdown(SOON)?.balance(), 0);
    Ok(())
}
