//! Three mirrors are asked at once, and the first success is the answer.
//!
//! ```text
//!                              ┌──▶ /user/mirrors/$a   "not here": no success
//!   ask ──▶ mirrors (router) ──┼──▶ /user/mirrors/$b   fails: no reply
//!                              └──▶ /user/mirrors/$c   has it ──▶ the answer
//! ```
//!
//! ```text
//! cargo run --example scatter_gather
//! ```

use pointsman::prelude::*;
use pointsman::routing::ScatterGatherFirstCompleted;
use std::error::Error;
use std::time::Duration;

/// Fetches a file; `None` if a mirror does not have it.
#[derive(Clone)]
struct Fetch(&'static str);

impl Request for Fetch {
    type Reply = Option<String>;

    fn is_success(reply: &Option<String>) -> bool {
        reply.is_some()
    }
}

/// One of three, each with a character of its own.
struct Mirror {
    index: usize,
}

impl Actor for Mirror {
    type Message = Call<Fetch>;

    fn receive(&mut self, call: Call<Fetch>, _: &mut Context<Call<Fetch>>) -> HandlerResult {
        match self.index % 3 {
            0 => call.answer(|_| None),
            // The call is dropped: that attempt is over.
            1 => return Err(Failure::msg("disk error")),
            _ => call.answer(|Fetch(file)| (file != "missing").then(|| format!("contents of {file}"))),
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("mirrors").build()?;
    let mirrors = system
        .router("mirrors")
        .pool(3, |ctx| Mirror { index: ctx.routee_index() })
        .logic(ScatterGatherFirstCompleted::within(Duration::from_secs(1)))
        .spawn()?;

    let (reply, mirror) = mirrors.ask_traced(Fetch("index.html")).wait()?;
    println!("{mirror}: {reply:?}");
    assert_eq!(reply.as_deref(), Some("contents of index.html"));
    assert_eq!(mirror, mirrors.routees()?[2].path());

    // Nobody has it: that is known as soon as the last one has said so, and each cause with it.
    let failed = mirrors.ask(Fetch("missing")).wait();
    let Err(AskError::AllFailed { causes, .. }) = &failed else { return Err("somebody has it".into()) };
    causes.iter().for_each(|(mirror, end)| println!("{mirror}: {end}"));
    assert_eq!(causes.len(), 3);

    let ledger = system.shutdown(Duration::from_secs(5))?;
    println!("{ledger}");
    assert_eq!((ledger.sent - ledger.handled, ledger.balance()), (0, 0));
    Ok(())
}
