//! A quick start: one actor that answers a question, and then a pool of four actors behind each common router.
//!
//! ```text
//! cargo run --release --example quickstart
//! cargo run --release --example quickstart -- --messages 200000
//! ```
//!
//! The table shows how many messages each routee (an actor behind a router) has handled, and the time for each message
//! until all of them were handled. `examples/measure.rs` measures with several senders, and latency, too.

use pointsman::prelude::*;
use pointsman::routing::{Broadcast, ConsistentHashing, Random, RoundRobin};
use pointsman::routing::{ScatterGatherFirstCompleted, SmallestMailbox, TailChopping};
use std::time::{Duration, Instant};
use std::{error::Error, ops::RangeInclusive, process::ExitCode};

const DEADLINE: Duration = Duration::from_secs(60);
type Sent = Result<(), AskError>;
type SendOne = fn(&Router<CounterMsg>, u64) -> Sent;

/// The messages of a counter. A router that sends one to several routees clones it.
#[derive(Clone, Message)]
enum CounterMsg {
    Number(u64),               // is counted
    Square(u64, ReplyTo<u64>), // is counted, and answered by the square of the number
    HowMany(ReplyTo<u64>),     // is answered by the count
}

#[derive(Default)]
struct Counter(u64);
impl Actor for Counter {
    type Message = CounterMsg;
    fn receive(&mut self, message: CounterMsg, _: &mut Context<CounterMsg>) -> HandlerResult {
        match message {
            CounterMsg::Number(_) => self.0 += 1,
            CounterMsg::Square(number, reply_to) => {
                self.0 += 1;
                _ = reply_to.send(number * number); // another routee may have answered before
            }
            CounterMsg::HowMany(reply_to) => _ = reply_to.send(self.0),
        }
        Ok(())
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Some(messages) = messages_from_arguments() else {
        eprintln!("quickstart: the only option is `--messages N`, with a number N from 1 to 1000000");
        return Ok(ExitCode::from(2));
    };
    let system = System::builder("quickstart").build()?;

    // One actor: `tell` sends a message and returns at once; `wait` blocks until the question is answered.
    let counter = system.actor("counter").spawn(Counter::default)?;
    (1..=3).for_each(|number| counter.tell(CounterMsg::Number(number)));
    let count = counter.ask_with(CounterMsg::HowMany).within(DEADLINE).wait()?;
    println!("one actor was sent 3 messages, and answers that it has counted {count}\n");
    assert_eq!(count, 3, "the actor has not counted each message once");

    // Pools: a router is used like a reference to one actor, and its logic chooses the routees for each message.
    let pool = |name: &str| system.router(name).pool(4, |_| Counter::default());
    let by_number = ConsistentHashing::by(|message: &CounterMsg, key| match message {
        CounterMsg::Number(number) | CounterMsg::Square(number, _) => key.feed(number),
        CounterMsg::HowMany(_) => {} // each routee is asked, whatever the logic
    });
    println!("{:<20}{:>8}  {:<38}{:>10}", "router", "messages", "handled by each routee", "ns/message");
    row(pool("round-robin").logic(RoundRobin::new()).spawn()?, messages, tell, 1..=1)?;
    row(pool("random").logic(Random::new()).spawn()?, messages, tell, 1..=1)?;
    row(pool("smallest-mailbox").logic(SmallestMailbox::new()).spawn()?, messages, tell, 1..=1)?;
    row(pool("consistent-hashing").logic(by_number).spawn()?, messages, tell, 1..=1)?;
    row(pool("broadcast").logic(Broadcast).spawn()?, messages, tell, 4..=4)?;
    // Questions, one after the other: all routees get each; or one, and after each 10 ms without an answer another.
    row(pool("scatter-gather").logic(ScatterGatherFirstCompleted::new()).spawn()?, messages, ask, 4..=4)?;
    row(pool("tail-chopping").logic(TailChopping::new()).spawn()?, messages, ask, 1..=4)?;
    // The routees of a balancing pool take their messages from one queue.
    let balancing = system.router("balancing").balancing_pool(4, |_| Counter::default()).spawn()?;
    row(balancing, messages, tell, 1..=1)?;

    // The ledger counts each message where it is sent, and again where it ends.
    let ledger = system.shutdown(DEADLINE)?;
    println!("\n{ledger}");
    assert_eq!(ledger.balance(), 0, "messages are missing, or were counted twice");
    Ok(ExitCode::SUCCESS)
}

fn tell(router: &Router<CounterMsg>, number: u64) -> Sent {
    router.tell(CounterMsg::Number(number));
    Ok(())
}

fn ask(router: &Router<CounterMsg>, number: u64) -> Sent {
    let square = router.ask_with(|reply_to| CounterMsg::Square(number, reply_to)).wait()?;
    assert_eq!(square, number * number, "the answer is not the square of {number}");
    Ok(())
}

/// Sends the messages, asks the routees for their counts until all are handled, and prints a row of the table.
fn row(router: Router<CounterMsg>, messages: u64, send: SendOne, copies: RangeInclusive<u64>) -> Sent {
    let began = Instant::now();
    (0..messages).try_for_each(|number| send(&router, number))?;
    let expected = messages * copies.start()..=messages * copies.end();
    let (mut shares, end) = (Vec::new(), Instant::now() + DEADLINE);
    while shares.iter().sum::<u64>() < *expected.start() && Instant::now() < end {
        let replies = router.ask_all_with(CounterMsg::HowMany).within(DEADLINE).wait()?;
        shares = replies.into_iter().map(|(_, reply)| reply).collect::<Result<_, _>>()?;
    }
    let (path, time) = (router.path(), began.elapsed().as_nanos() / u128::from(messages));
    println!("{:<20}{messages:>8}  {:<38}{time:>10}", path.name(), format!("{shares:?}"));
    assert!(expected.contains(&shares.iter().sum()), "{path}: not {expected:?} messages were handled in all");
    Ok(())
}

fn messages_from_arguments() -> Option<u64> {
    let arguments: Vec<_> = std::env::args_os().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    match &arguments[..] {
        [] => Some(10_000),
        [option, n] if option == "--messages" => n.parse().ok().filter(|n| (1..=1_000_000).contains(n)),
        _ => None,
    }
}
