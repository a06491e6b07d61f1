//! actix: an actor lives on one *arbiter*, a thread with a runtime of its own, and never leaves it. So arbiters are its
//! workers, and whoever starts actors spreads them: here those that talk to each other share one.

use crate::peer::{Answer, Peer, Tell, WORKERS, Words};
use crate::work::{Recipe, Work};
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

    fn spawn_at(&self, arbiter: usize, number: usize, recipe: Recipe<Addr<Worker>>) -> Addr<Worker> {
        let arbiter = self.arbiters[arbiter % WORKERS].handle();
        Worker::start_in_arbiter(&arbiter, move |_| Worker { work: recipe.make(number) })
    }
}

pub struct Worker {
    work: Work<Addr<Worker>>,
}

impl Actor for Worker {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Parcel(Words);

impl Handler<Parcel> for Worker {
    type Result = ();

    fn handle(&mut self, Parcel(words): Parcel, _: &mut Context<Self>) {
        self.work.handle(words);
    }
}

/// A worker of a pool of threads.
struct SyncWorker {
    work: Work<Addr<Worker>>,
}

impl Actor for SyncWorker {
    type Context = SyncContext<Self>;
}

impl Handler<Parcel> for SyncWorker {
    type Result = ();

    fn handle(&mut self, Parcel(words): Parcel, _: &mut SyncContext<Self>) {
        self.work.handle(words);
    }
}

impl Tell for Addr<Worker> {
    fn tell(&self, words: Words) {
        self.do_send(Parcel(words));
    }
}

impl Tell for Addr<SyncWorker> {
    fn tell(&self, words: Words) {
        self.do_send(Parcel(words));
    }
}

impl Peer for Actix {
    type Target = Addr<Worker>;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Addr<Worker> {
        self.next.set(self.next.get() + 1);
        self.spawn_at(self.next.get(), number, recipe)
    }

    fn spawn_all(&self, count: usize, recipe: Recipe<Self::Target>) -> Vec<Addr<Worker>> {
        // At least a pair.
        let together = count.div_ceil(WORKERS).max(2);
        (0..count).map(|number| self.spawn_at(number / together, number, recipe.clone())).collect()
    }

    /// An actor ends when nobody has its address.
    fn stop(&self, target: Addr<Worker>) {
        drop(target);
    }

    /// A thread for each worker, as actix has it.
    fn shared_queue(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let (numbers, next) = mpsc::channel();
        (0..size).for_each(|number| numbers.send(number).expect("we hold the receiver"));
        let next = std::sync::Mutex::new(next);
        let worker = move || {
            let number =
                next.lock().expect("nobody panics").recv().expect("there are as many numbers as workers");
            SyncWorker { work: recipe.make(number) }
        };
        Some(SyncArbiter::start(size, worker))
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

impl Handler<Next> for Answerer {
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

impl Handler<Ask> for Asker {
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
