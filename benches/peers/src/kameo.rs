//! kameo: actors are tokio tasks, and a mailbox is tokio's channel. Mailboxes are unbounded, as everybody's are here.

use crate::peer::{Answer, Peer, Tell, Words};
use crate::tasks::runtime;
use crate::work::{Recipe, Work};
use kameo::mailbox::unbounded;
use kameo::prelude::*;
use kameo_actors::pool::{ActorPool, Dispatch};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

pub struct Kameo {
    runtime: Runtime,
}

impl Kameo {
    pub fn start() -> Self {
        Self { runtime: runtime() }
    }
}

#[derive(Actor)]
pub struct Worker {
    work: Work<ActorRef<Worker>>,
}

struct Parcel(Words);

impl Message<Parcel> for Worker {
    type Reply = ();

    async fn handle(&mut self, Parcel(words): Parcel, _: &mut Context<Self, ()>) {
        self.work.handle(words);
    }
}

impl Tell for ActorRef<Worker> {
    fn tell(&self, words: Words) {
        ActorRef::tell(self, Parcel(words)).try_send().expect("it lives");
    }
}

/// A reference to the pool's actor.
#[derive(Clone)]
struct Pool(ActorRef<ActorPool<Worker>>);

impl Tell for Pool {
    fn tell(&self, words: Words) {
        self.0.tell(Dispatch(Parcel(words))).try_send().expect("it lives");
    }
}

impl Peer for Kameo {
    type Target = ActorRef<Worker>;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Self::Target {
        let _entered = self.runtime.enter();
        Worker::spawn_with_mailbox(Worker { work: recipe.make(number) }, unbounded())
    }

    /// An actor ends when nobody refers to it.
    fn stop(&self, target: Self::Target) {
        drop(target);
    }

    fn least_loaded(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let _entered = self.runtime.enter();
        let next = Arc::new(AtomicUsize::new(0));
        let worker = move || {
            let work = recipe.make(next.fetch_add(1, Ordering::Relaxed));
            Worker::spawn_with_mailbox(Worker { work }, unbounded())
        };
        Some(Pool(ActorPool::spawn_with_mailbox(ActorPool::new(size, worker), unbounded())))
    }

    fn answerer(&self) -> impl Answer {
        let _entered = self.runtime.enter();
        Asked {
            answerer: Answerer::spawn_with_mailbox(Answerer, unbounded()),
            runtime: self.runtime.handle().clone(),
        }
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let _entered = self.runtime.enter();
        let answerer = Answerer::spawn_with_mailbox(Answerer, unbounded());
        let asker = Asker::spawn_with_mailbox(Asker { answerer }, unbounded());
        let (result, results) = oneshot::channel();
        asker.tell(Ask { asks, result }).try_send().expect("it lives");
        results.blocking_recv().expect("every ask is answered")
    }
}

#[derive(Actor)]
struct Answerer;

struct Next(u64);

impl Message<Next> for Answerer {
    type Reply = u64;

    async fn handle(&mut self, Next(number): Next, _: &mut Context<Self, u64>) -> u64 {
        number + 1
    }
}

#[derive(Clone)]
struct Asked {
    answerer: ActorRef<Answerer>,
    runtime: Handle,
}

impl Answer for Asked {
    fn ask(&self, number: u64) -> u64 {
        self.answerer.ask(Next(number)).blocking_send().expect("it answers")
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        self.runtime.block_on(async {
            let mut pending = Vec::with_capacity((numbers.end - numbers.start) as usize);
            for number in numbers {
                pending.push(self.answerer.ask(Next(number)).enqueue().await.expect("it lives"));
            }
            let mut sum = 0;
            for answer in pending {
                sum += answer.await.expect("it answers");
            }
            sum
        })
    }
}

#[derive(Actor)]
struct Asker {
    answerer: ActorRef<Answerer>,
}

struct Ask {
    asks: u64,
    result: oneshot::Sender<u64>,
}

impl Message<Ask> for Asker {
    type Reply = ();

    async fn handle(&mut self, ask: Ask, _: &mut Context<Self, ()>) {
        let mut number = 0;
        for _ in 0..ask.asks {
            number = self.answerer.ask(Next(number)).await.expect("it answers");
        }
        let _ = ask.result.send(number);
    }
}
