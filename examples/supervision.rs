//! One actor and its parent, who decides what its failures cost: no router yet.
//!
//! ```text
//!   main ──"3"──▶ /user/office ──▶ /user/office/adder     an Err: the line is lost, the sum stays   (resume)
//!                   decides, and        adds              a panic: the sum is lost, too             (restart)
//!                   hears of the end                      the second one within a minute: the end   (stop)
//! ```
//!
//! ```text
//! cargo run --example supervision
//! ```

use pointsman::prelude::*;
use std::error::Error;
use std::num::ParseIntError;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Adds up numbers, and fails at what is none.
#[derive(Default)]
struct Adder {
    sum: u32,
}

enum AdderMsg {
    Line(&'static str),
    Sum(ReplyTo<u32>),
}

impl Actor for Adder {
    type Message = AdderMsg;
    fn receive(&mut self, message: AdderMsg, _: &mut Context<AdderMsg>) -> HandlerResult {
        match message {
            AdderMsg::Line("bug") => panic!("a bug"),
            AdderMsg::Line(line) => self.sum += line.parse::<u32>()?,
            AdderMsg::Sum(reply_to) => drop(reply_to.send(self.sum)),
        }
        Ok(())
    }
}

/// Creates the adder, passes everything on to it, and tells of its end.
struct Office {
    adder: ActorRef<AdderMsg>,
    ended: Sender<String>,
}

impl Office {
    fn open(ended: Sender<String>, ctx: &mut Context<AdderMsg>) -> Result<Self, Failure> {
        let adder = ctx.actor("adder").spawn(Adder::default)?;
        ctx.watch(&adder)?;
        Ok(Self { adder, ended })
    }
}

impl Actor for Office {
    type Message = AdderMsg;
    fn receive(&mut self, message: AdderMsg, _: &mut Context<AdderMsg>) -> HandlerResult {
        self.adder.tell(message);
        Ok(())
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<AdderMsg>) -> HandlerResult {
        self.ended.send(terminated.actor.path().to_string())?;
        Ok(())
    }

    fn supervision(&self) -> Strategy {
        let decide = |failure: &Failure| {
            if failure.is::<ParseIntError>() { Directive::Resume } else { Directive::Restart }
        };
        Strategy::decide(decide).max_restarts(1).within(Duration::from_secs(60))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("office").build()?;
    let (ended, ends) = channel();
    let office = system.actor("office").spawn_with(move |ctx| Office::open(ended.clone(), ctx))?;
    let sum_after = |lines: &[&'static str]| {
        lines.iter().for_each(|line| office.tell(AdderMsg::Line(line)));
        office.ask_with(AdderMsg::Sum).within(Duration::from_secs(5)).wait()
    };

    let sum = sum_after(&["1", "two", "3"])?;
    println!("1, two, 3: {sum}; what is no number cost itself alone");
    assert_eq!(sum, 4);

    let sum = sum_after(&["bug", "5"])?;
    println!("bug, 5:    {sum}; a panic cost the sum, and the reference is the same");
    assert_eq!(sum, 5);

    office.tell(AdderMsg::Line("bug"));
    let who = ends.recv_timeout(Duration::from_secs(5))?;
    println!("bug:       {who} has ended, since it was the second panic within a minute");
    assert_eq!(who, "/user/office/adder");

    // A message at which an actor fails counts as handled: it is not handled again, and not missing.
    let ledger = system.shutdown(Duration::from_secs(5))?;
    println!("{ledger}");
    assert_eq!(ledger.balance(), 0);
    Ok(())
}
