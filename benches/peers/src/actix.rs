//! actix: an actor lives on one *arbiter*, a thread with a runtime of its own, and never leaves it. So arbiters are its
//! workers, and whoever starts actors spreads them: here those that talk to each other share one.

use crate::peer::{Answer, Handler, Make, Peer, Tell, WORKERS, Words};
use actix::prelude::*;
use futures_util::future::join_all;
use std::cell::Cell;
use std::ops::Range;
use std::sync::mpsc;
use std::thread;

/// Questions that may wait at the answerer; actix's default of 16 would only park the asker.
const OUTSTANDING: usize = 4096;

pub struct Actix {
    arbiters: Vec<Arbiter>,
    next: Cell<usize>,
}

impl Actix {
    pub fn start() -> Self {
        // The system has a thread of its own, and little to do there.
        let (started, system) = mpsc::channel();
        thread::spawn(move || {
            let runner = System::new();
            let _ = started.send(System::current());
            runner.run()
        });
        System::set_current(system.recv().expect("a thread can be had"));
        Self { arbiters: (0..WORKERS).map(|_| Arbiter::new()).collect(), next: Cell::new(0) }
    }

    fn spawn_at<H: Handler>(&self, arbiter: usize, number: usize, make: impl Make<H>) -> Recipient<Parcel> {
        let arbiter = self.arbiters[arbiter % WORKERS].handle();
        Worker::start_in_arbiter(&arbiter, move |_| Worker { handle: make(number) }).recipient()
    }
}

struct Worker<H> {
    handle: H,
}

impl<H: Handler> Actor for Worker<H> {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
pub struct Parcel(Words);

impl<H: Handler> actix::Handler<Parcel> for Worker<H> {
    type Result = ();

    fn handle(&mut self, Parcel(words): Parcel, _: &mut Context<Self>) {
        (self.handle)(words);
    }
}

/// A worker of a pool of threads.
struct SyncWorker<H> {
    handle: H,
}

impl<H: Handler> Actor for SyncWorker<H> {
    type Context = SyncContext<Self>;
}

impl<H: Handler> actix::Handler<Parcel> for SyncWorker<H> {
    type Result = ();

    fn handle(&mut self, Parcel(words): Parcel, _: &mut SyncContext<Self>) {
        (self.handle)(words);
    }
}

/// A recipient, since an address names its actor's type.
impl Tell for Recipient<Parcel> {
    fn tell(&self, words: Words) {
        self.do_send(Parcel(words));
    }
}

impl Peer for Actix {
    type Target = Recipient<Parcel>;

    fn spawn<H: Handler>(&self, number: usize, make: impl Make<H>) -> Recipient<Parcel> {
        self.next.set(self.next.get() + 1);
        self.spawn_at(self.next.get(), number, make)
    }

    fn spawn_all<H: Handler>(&self, count: usize, make: impl Make<H>) -> Vec<Recipient<Parcel>> {
        // At least a pair.
        let together = count.div_ceil(WORKERS).max(2);
        (0..count).map(|number| self.spawn_at(number / together, number, make.clone())).collect()
    }

    /// An actor ends when nobody has its address.
    fn stop(&self, target: Recipient<Parcel>) {
        drop(target);
    }

    /// A thread for each worker, as actix has it.
    fn shared_queue<H: Handler>(&self, size: usize, make: impl Make<H>) -> Option<impl Tell> {
        let (numbers, next) = mpsc::channel();
        (0..size).for_each(|number| numbers.send(number).expect("we hold the receiver"));
        let next = std::sync::Mutex::new(next);
        let worker = move || {
            let number = next.lock().expect("nobody panics").recv().expect("there are as many numbers as workers");
            SyncWorker { handle: make(number) }
        };
        Some(SyncArbiter::start(size, worker).recipient())
    }

    fn answerer(&self) -> impl Answer {
        Asked(Answerer::start_in_arbiter(&self.arbiters[0].handle(), |_| Answerer))
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let here = self.arbiters[0].handle();
        let answerer = Answerer::start_in_arbiter(&here, |_| Answerer);
        let asker = Asker::start_in_arbiter(&here, |_| Asker { answerer });
        let (result, results) = mpsc::channel();
        asker.do_send(Ask { asks, result });
        results.recv().expect("every ask is answered")
    }
}

struct Answerer;

impl Actor for Answerer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(OUTSTANDING);
    }
}

#[derive(Message)]
#[rtype(result = "u64")]
struct Next(u64);

impl actix::Handler<Next> for Answerer {
    type Result = u64;

    fn handle(&mut self, Next(number): Next, _: &mut Context<Self>) -> u64 {
        number + 1
    }
}

#[derive(Clone)]
struct Asked(Addr<Answerer>);

impl Answer for Asked {
    fn ask(&self, number: u64) -> u64 {
        futures_executor::block_on(self.0.send(Next(number))).expect("it answers")
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        let asks: Vec<_> = numbers.map(|number| self.0.send(Next(number))).collect();
        futures_executor::block_on(join_all(asks)).into_iter().map(|answer| answer.expect("it answers")).sum()
    }
}

struct Asker {
    answerer: Addr<Answerer>,
}

impl Actor for Asker {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Ask {
    asks: u64,
    result: mpsc::Sender<u64>,
}

impl actix::Handler<Ask> for Asker {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, ask: Ask, _: &mut Context<Self>) -> ResponseFuture<()> {
        let answerer = self.answerer.clone();
        Box::pin(async move {
            let mut number = 0;
            for _ in 0..ask.asks {
                number = answerer.send(Next(number)).await.expect("it answers");
            }
            let _ = ask.result.send(number);
        })
    }
}
