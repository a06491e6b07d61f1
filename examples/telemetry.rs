//! Shows the numbers of a running system: as a page for Prometheus on standard output, or over HTTP.
//!
//! ```text
//! cargo run --features console --example telemetry                              # prints the page, and ends
//! cargo run --features console --example telemetry -- --serve 127.0.0.1:9464    # serves, until its input ends
//! curl http://127.0.0.1:9464/
//! ```
//!
//! A pool of workers handles orders meanwhile. One class has a name that needs care in each format.

use pointsman::net::SocketAddress;
use pointsman::prelude::*;
use pointsman::routing::SmallestMailbox;
use pointsman::telemetry::Telemetry;
use std::error::Error;
use std::io::Read;
use std::num::NonZeroU32;
use std::time::Duration;

/// Adds up the amounts of its orders.
#[derive(Default)]
struct Worker {
    sum: u64,
}

impl Actor for Worker {
    type Message = u64;
    fn receive(&mut self, amount: u64, _: &mut Context<u64>) -> HandlerResult {
        self.sum += amount;
        Ok(())
    }
}

const ORDERS: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["--serve", address] => Some(SocketAddress::tcp(address)),
        _ => return Err("use --serve ADDRESS, or nothing".into()),
    };
    // Each turn is measured, so that a short run has histograms.
    let telemetry = Telemetry::sampled().turns(NonZeroU32::MIN).waits(NonZeroU32::MIN);
    let system = System::builder("telemetry").telemetry(telemetry).build()?;
    let workers =
        system.router("workers").pool(4, |_| Worker::default()).logic(SmallestMailbox::new()).spawn()?;
    let odd = system.actor("odd").class("a \"class\" of C:\\\nwith a new line").spawn(Worker::default)?;
    odd.tell(1u64);
    (0..ORDERS).for_each(|amount| workers.tell(amount));
    while system.ledger().handled < ORDERS {
        std::thread::sleep(Duration::from_millis(1));
    }
    match address {
        None => {
            let mut page = String::new();
            system.stats().write_openmetrics(&mut page)?;
            print!("{page}");
        }
        Some(address) => {
            let server = system.serve_stats(address)?;
            if let Some(address) = server.local_addr() {
                println!("serving at http://{address}/");
            }
            std::io::stdin().read_to_end(&mut Vec::new())?;
        }
    }
    system.shutdown(Duration::from_secs(5))?;
    Ok(())
}
