//! Sending, asking, ordering, and the books.

use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Counter {
    sum: u64,
}

struct Read;
impl Request for Read {
    type Reply = u64;
}

enum CounterMsg {
    Add(u64),
    Read(Call<Read>),
    Panic,
}

impl From<Call<Read>> for CounterMsg {
    fn from(call: Call<Read>) -> Self {
        CounterMsg::Read(call)
    }
}

impl Actor for Counter {
    type Message = CounterMsg;
    fn receive(&mut self, message: CounterMsg, _: &mut Context<CounterMsg>) -> HandlerResult {
        match message {
            CounterMsg::Add(more) => self.sum += more,
            CounterMsg::Read(call) => call.answer(|Read| self.sum),
            CounterMsg::Panic => panic!("as told"),
        }
        Ok(())
    }
}

#[test]
fn what_is_told_is_handled_and_the_books_balance() {
    let system = System::builder("basics").build().unwrap();
    let counter = system.actor("counter").spawn(Counter::default).unwrap();
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let counter = counter.clone();
            std::thread::spawn(move || (0..10_000).for_each(|_| counter.tell(CounterMsg::Add(1))))
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert_eq!(counter.ask(Read).within(LONG).wait(), Ok(40_000));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (40_001, 40_001, 0));
}

#[test]
fn a_panic_restarts_the_actor_and_loses_that_message_only() {
    TestSystem::for_seeds(20, |system| {
        let counter = system.actor("counter").spawn(Counter::default).unwrap();
        counter.tell(CounterMsg::Add(5));
        counter.tell(CounterMsg::Panic);
        counter.tell(CounterMsg::Add(2));
        assert_eq!(system.ask(&counter, Read), Ok(2));
        counter.stop();
    });
}

#[test]
fn a_stopped_actor_refuses_and_its_mailbox_becomes_dead_letters() {
    TestSystem::for_seeds(20, |system| {
        let counter = system.actor("counter").spawn(Counter::default).unwrap();
        counter.stop();
        // The messages lie in the mailbox when it closes, or find it closed.
        let closed = system.seed() % 2 == 0;
        if closed {
            system.run_until_idle();
        }
        counter.tell(CounterMsg::Add(1));
        let asked = system.ask(&counter, Read);
        assert_eq!(asked, Err(if closed { AskError::undeliverable() } else { AskError::no_reply() }));
        let ledger = system.ledger();
        assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (2, 2, 0), "{ledger}");
    });
}
