//! A price is asked of five markets in GoAkt's words: the first success is the outcome, and comes to the buyer as a
//! message like others; or the question comes back with what has gone wrong.
//!
//! ```text
//!                        ┌──▶ r0 ── sold out
//!   buyer ──▶ markets ───┼──▶ r1 ── 17 ──▶ the buyer, as BuyerMsg::Outcome(Ok(17))
//!            (router)    └──▶ …  ── too late
//! ```
//!
//! ```text
//! cargo run --example goakt
//! ```

use pointsman::ask::AskFailedWith;
use pointsman::prelude::*;
use std::error::Error;
use std::time::Duration;

#[derive(Debug, Clone)]
struct Price(&'static str);

impl Request for Price {
    type Reply = Option<u32>;

    /// Sold out is no answer that the buyer is waiting for.
    fn is_success(reply: &Option<u32>) -> bool {
        reply.is_some()
    }
}

struct Market {
    number: u32,
}

impl Actor for Market {
    type Message = Call<Price>;

    fn receive(&mut self, call: Call<Price>, _: &mut Context<Call<Price>>) -> HandlerResult {
        match call.request.0 {
            "apples" if self.number > 0 => call.answer(|_| Some(16 + self.number)),
            "apples" => call.answer(|_| None),
            // The question that a market fails at is a failed attempt at once.
            other => return Err(Failure::msg(format!("what are {other}?"))),
        }
        Ok(())
    }
}

struct Buyer {
    markets: ActorRef<Call<Price>>,
    bill: std::sync::mpsc::Sender<Result<u32, String>>,
}

enum BuyerMsg {
    Buy(&'static str),
    Outcome(Result<Option<u32>, AskFailedWith<Price>>),
}

impl Actor for Buyer {
    type Message = BuyerMsg;

    fn receive(&mut self, message: BuyerMsg, ctx: &mut Context<BuyerMsg>) -> HandlerResult {
        match message {
            BuyerMsg::Buy(what) => ctx.ask_or_back(&self.markets, Price(what), BuyerMsg::Outcome),
            BuyerMsg::Outcome(Ok(price)) => self.bill.send(Ok(price.unwrap_or_default()))?,
            BuyerMsg::Outcome(Err(failure)) => {
                self.bill.send(Err(format!("no {}: {}", failure.message.0, failure.error)))?;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("market").build()?;
    let markets: Router<Call<Price>> = system
        .spawn_router("markets", 5, |number| Market { number: number as u32 })
        .scatter_gather_first(Duration::from_secs(5))
        .resume_on_failure()
        .spawn()?;
    let (bill, bills) = std::sync::mpsc::channel();
    let reference = markets.to_ref();
    let buyer =
        system.actor("buyer").spawn(move || Buyer { markets: reference.clone(), bill: bill.clone() })?;

    buyer.tell(BuyerMsg::Buy("apples"));
    let price = bills.recv()?;
    println!("apples: {price:?}");
    assert!((17..=20).contains(&price?));

    buyer.tell(BuyerMsg::Buy("pears"));
    let refused = bills.recv()?.unwrap_err();
    println!("{refused}");
    assert!(
        refused
            .starts_with("no pears: no routee of /user/markets answered with a success, 5 attempts failed")
    );

    // GoAkt's control messages.
    assert_eq!(markets.routee_names()?, ["r0", "r1", "r2", "r3", "r4"]);
    assert_eq!(markets.adjust(-3)?, 2);
    assert_eq!(markets.adjust(1)?, 3);
    assert_eq!(markets.routee_names()?, ["r0", "r1", "r5"]);

    // Empty it lives, until a message finds it so.
    assert_eq!(markets.adjust(-9)?, 0);
    assert!(!markets.is_closed());
    assert_eq!(markets.ask(Price("apples")).wait(), Err(AskError::no_routees()));

    let ledger = system.shutdown(Duration::from_secs(5))?;
    println!("{ledger}");
    assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0));
    Ok(())
}
