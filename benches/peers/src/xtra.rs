//! xtra: actors are tasks of any runtime, here of tokio's. Actors can share a mailbox, which is its pool.

use crate::peer::{Answer, Peer, Tell, Words};
use crate::tasks::runtime;
use crate::work::{Recipe, Work};
use futures_util::FutureExt;
use std::ops::Range;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use xtra::prelude::*;

pub struct Xtra {
    runtime: Runtime,
}

impl Xtra {
    pub fn start() -> Self {
        Self { runtime: runtime() }
    }

    fn spawn_answerer(&self) -> Address<Answerer> {
        let _entered = self.runtime.enter();
        xtra::spawn_tokio(Answerer, Mailbox::unbounded())
    }

    /// Actors that share one mailbox.
    fn share(&self, size: usize, recipe: Recipe<Address<Worker>>) -> Address<Worker> {
        let (address, mailbox) = Mailbox::unbounded();
        for number in 0..size {
            self.runtime.spawn(xtra::run(mailbox.clone(), Worker { work: recipe.make(number) }));
        }
        address
    }
}

#[derive(xtra::Actor)]
pub struct Worker {
    work: Work<Address<Worker>>,
}

#[derive(Clone)]
struct Parcel(Words);

impl Handler<Parcel> for Worker {
    type Return = ();

    async fn handle(&mut self, Parcel(words): Parcel, _: &mut Context<Self>) {
        self.work.handle(words);
    }
}

impl Tell for Address<Worker> {
    fn tell(&self, words: Words) {
        // An unbounded mailbox takes it at once; nobody waits for it to be handled.
        let sent = self.send(Parcel(words)).detach().now_or_never();
        assert!(sent.is_some_and(|sent| sent.is_ok()), "it lives");
    }
}

/// The address of actors that share a mailbox, told all at once.
#[derive(Clone)]
struct Everybody(Address<Worker>);

impl Tell for Everybody {
    fn tell(&self, words: Words) {
        let sent = self.0.broadcast(Parcel(words)).now_or_never();
        assert!(sent.is_some_and(|sent| sent.is_ok()), "they live");
    }
}

impl Peer for Xtra {
    type Target = Address<Worker>;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Self::Target {
        let _entered = self.runtime.enter();
        xtra::spawn_tokio(Worker { work: recipe.make(number) }, Mailbox::unbounded())
    }

    /// An actor ends when nobody has its address.
    fn stop(&self, target: Self::Target) {
        drop(target);
    }

    fn shared_queue(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        Some(self.share(size, recipe))
    }

    fn broadcast(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        Everybody(self.share(size, recipe))
    }

    fn answerer(&self) -> impl Answer {
        Asked { answerer: self.spawn_answerer(), runtime: self.runtime.handle().clone() }
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let answerer = self.spawn_answerer();
        let _entered = self.runtime.enter();
        let asker = xtra::spawn_tokio(Asker { answerer }, Mailbox::unbounded());
        let (result, results) = oneshot::channel();
        assert!(asker.send(Ask { asks, result }).detach().now_or_never().is_some(), "it lives");
        results.blocking_recv().expect("every ask is answered")
    }
}

#[derive(xtra::Actor)]
struct Answerer;

struct Next(u64);

impl Handler<Next> for Answerer {
    type Return = u64;

    async fn handle(&mut self, Next(number): Next, _: &mut Context<Self>) -> u64 {
        number + 1
    }
}

#[derive(Clone)]
struct Asked {
    answerer: Address<Answerer>,
    runtime: Handle,
}

impl Answer for Asked {
    fn ask(&self, number: u64) -> u64 {
        self.runtime.block_on(self.answerer.send(Next(number)).into_future()).expect("it answers")
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        self.runtime.block_on(async {
            let mut asks = Vec::with_capacity((numbers.end - numbers.start) as usize);
            for number in numbers {
                asks.push(self.answerer.send(Next(number)).detach().await.expect("it lives"));
            }
            let mut sum = 0;
            for answer in asks {
                sum += answer.await.expect("it answers");
            }
            sum
        })
    }
}

#[derive(xtra::Actor)]
struct Asker {
    answerer: Address<Answerer>,
}

struct Ask {
    asks: u64,
    result: oneshot::Sender<u64>,
}

impl Handler<Ask> for Asker {
    type Return = ();

    async fn handle(&mut self, ask: Ask, _: &mut Context<Self>) {
        let mut number = 0;
        for _ in 0..ask.asks {
            number = self.answerer.send(Next(number)).await.expect("it answers");
        }
        let _ = ask.result.send(number);
    }
}
