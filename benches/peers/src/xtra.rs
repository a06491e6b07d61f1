//! xtra: actors are tasks of any runtime, here of tokio's. Actors can share a mailbox, which is its pool.

use crate::peer::{Answer, Handler, Make, Peer, Tell, Words};
use crate::tasks::runtime;
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
    fn share<H: Handler>(&self, size: usize, make: impl Make<H>) -> Address<Worker<H>> {
        let (address, mailbox) = Mailbox::unbounded();
        for number in 0..size {
            self.runtime.spawn(xtra::run(mailbox.clone(), Worker { handle: make(number) }));
        }
        address
    }
}

struct Worker<H> {
    handle: H,
}

impl<H: Handler> Actor for Worker<H> {
    type Stop = ();

    async fn stopped(self) {}
}

#[derive(Clone)]
pub struct Parcel(Words);

impl<H: Handler> xtra::Handler<Parcel> for Worker<H> {
    type Return = ();

    async fn handle(&mut self, Parcel(words): Parcel, _: &mut Context<Self>) {
        (self.handle)(words);
    }
}

/// An address that does not name its actor's type.
impl Tell for MessageChannel<Parcel, ()> {
    fn tell(&self, words: Words) {
        // An unbounded mailbox takes it at once; nobody waits for it to be handled.
        let sent = self.send(Parcel(words)).detach().now_or_never();
        assert!(sent.is_some_and(|sent| sent.is_ok()), "it lives");
    }
}

/// The address of actors that share a mailbox, told all at once.
struct Everybody<H: Handler>(Address<Worker<H>>);

impl<H: Handler> Clone for Everybody<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<H: Handler> Tell for Everybody<H> {
    fn tell(&self, words: Words) {
        let sent = self.0.broadcast(Parcel(words)).now_or_never();
        assert!(sent.is_some_and(|sent| sent.is_ok()), "they live");
    }
}

impl Peer for Xtra {
    type Target = MessageChannel<Parcel, ()>;

    fn spawn<H: Handler>(&self, number: usize, make: impl Make<H>) -> Self::Target {
        let _entered = self.runtime.enter();
        MessageChannel::new(xtra::spawn_tokio(Worker { handle: make(number) }, Mailbox::unbounded()))
    }

    /// An actor ends when nobody has its address.
    fn stop(&self, target: Self::Target) {
        drop(target);
    }

    fn shared_queue<H: Handler>(&self, size: usize, make: impl Make<H>) -> Option<impl Tell> {
        Some(MessageChannel::new(self.share(size, make)))
    }

    fn broadcast<H: Handler>(&self, size: usize, make: impl Make<H>) -> impl Tell {
        Everybody(self.share(size, make))
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

impl xtra::Handler<Next> for Answerer {
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

impl xtra::Handler<Ask> for Asker {
    type Return = ();

    async fn handle(&mut self, ask: Ask, _: &mut Context<Self>) {
        let mut number = 0;
        for _ in 0..ask.asks {
            number = self.answerer.send(Next(number)).await.expect("it answers");
        }
        let _ = ask.result.send(number);
    }
}
