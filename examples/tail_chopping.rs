//! One of three replicas has a bad day. Whoever meets it waits 20 ms, not for ever: then another one is asked, too.
//!
//! ```text
//!                       at once ┌──▶ a replica ── no answer ──▶ …
//!   ask ──▶ replicas (router) ──┤
//!                   after 20 ms └──▶ another ─────────────────▶ the answer
//! ```
//!
//! ```text
//! cargo run --example tail_chopping
//! ```

use pointsman::prelude::*;
use pointsman::routing::TailChopping;
use std::error::Error;
use std::time::{Duration, Instant};

#[derive(Clone)]
struct Read(u64);

impl Request for Read {
    type Reply = u64;
}

/// The first of the replicas keeps its callers waiting.
struct Replica {
    is_stuck: bool,
    waiting: Vec<Call<Read>>,
}

impl Actor for Replica {
    type Message = Call<Read>;

    fn receive(&mut self, call: Call<Read>, _: &mut Context<Call<Read>>) -> HandlerResult {
        // Those whose question another replica has answered meanwhile need nothing any more.
        self.waiting.retain(|call| call.reply_to.wanted());
        if self.is_stuck {
            self.waiting.push(call);
        } else {
            call.answer(|Read(key)| key * 10);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("replicas").build()?;
    let logic = TailChopping::within(Duration::from_secs(5)).interval(Duration::from_millis(20));
    let replicas = system
        .router("replicas")
        .pool(3, |ctx| Replica { is_stuck: ctx.routee_index() == 0, waiting: Vec::new() })
        .logic(logic)
        .spawn()?;

    let mut slowest = Duration::ZERO;
    for key in 1..=20 {
        let began = Instant::now();
        let (reply, replica) = replicas.ask_traced(Read(key)).wait()?;
        slowest = slowest.max(began.elapsed());
        assert_eq!(reply, key * 10);
        assert_ne!(replica, replicas.routees()?[0].path(), "the stuck one");
    }
    println!("20 questions, the slowest answered after {slowest:?}");

    let ledger = system.shutdown(Duration::from_secs(5))?;
    println!("{ledger}");
    assert_eq!(ledger.asks.pending(), 0);
    assert_eq!(ledger.balance(), 0);
    Ok(())
}
