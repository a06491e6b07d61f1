//! ractor, plain and with its factory: actors are tokio tasks.

use crate::peer::{Answer, Handler, Make, Peer, Tell, Words};
use crate::tasks::runtime;
use futures_util::future::join_all;
use ractor::factory::queues::DefaultQueue;
use ractor::factory::routing::{QueuerRouting, RoundRobinRouting, Router};
use ractor::factory::{
    Factory, FactoryArguments, FactoryMessage, FactoryRef, Job, Worker, WorkerId, worker_builder,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, ActorRuntime, RpcReplyPort};
use std::marker::PhantomData;
use std::ops::Range;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

pub struct Ractor {
    runtime: Runtime,
}

impl Ractor {
    pub fn start() -> Self {
        Self { runtime: runtime() }
    }
}

/// An actor's behaviour; what it handles with is its state.
struct Sink<H>(PhantomData<fn() -> H>);

impl<H: Handler> Actor for Sink<H> {
    type Msg = Words;
    type State = H;
    type Arguments = H;

    async fn pre_start(&self, _: ActorRef<Words>, handler: H) -> Result<H, ActorProcessingErr> {
        Ok(handler)
    }

    async fn handle(
        &self,
        _: ActorRef<Words>,
        words: Words,
        handler: &mut H,
    ) -> Result<(), ActorProcessingErr> {
        handler(words);
        Ok(())
    }
}

impl Tell for ActorRef<Words> {
    fn tell(&self, words: Words) {
        self.cast(words).expect("it lives");
    }
}

impl Peer for Ractor {
    type Target = ActorRef<Words>;

    fn spawn<H: Handler>(&self, number: usize, make: impl Make<H>) -> ActorRef<Words> {
        let _entered = self.runtime.enter();
        let spawned = ActorRuntime::spawn_instant(None, Sink(PhantomData), make(number));
        spawned.expect("it has no name").0
    }

    fn stop(&self, target: ActorRef<Words>) {
        target.stop(None);
    }

    fn answerer(&self) -> impl Answer {
        Asked { answerer: self.spawn_answerer(), runtime: self.runtime.handle().clone() }
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let answerer = self.spawn_answerer();
        let _entered = self.runtime.enter();
        let (asker, _) = ActorRuntime::spawn_instant(None, Asker, answerer).expect("it has no name");
        let (result, results) = oneshot::channel();
        asker.cast(Ask { asks, result }).expect("it lives");
        results.blocking_recv().expect("every ask is answered")
    }
}

impl Ractor {
    fn spawn_answerer(&self) -> ActorRef<Next> {
        let _entered = self.runtime.enter();
        ActorRuntime::spawn_instant(None, Answerer, ()).expect("it has no name").0
    }
}

struct Next(u64, RpcReplyPort<u64>);

struct Answerer;

impl Actor for Answerer {
    type Msg = Next;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Next>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<Next>, next: Next, (): &mut ()) -> Result<(), ActorProcessingErr> {
        let Next(number, reply) = next;
        reply.send(number + 1)?;
        Ok(())
    }
}

#[derive(Clone)]
struct Asked {
    answerer: ActorRef<Next>,
    runtime: Handle,
}

impl Answer for Asked {
    fn ask(&self, number: u64) -> u64 {
        let ask = self.answerer.call(|reply| Next(number, reply), None);
        self.runtime.block_on(ask).expect("it lives").expect("it answers")
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        self.runtime.block_on(async {
            let asks = numbers.map(|number| self.answerer.call(move |reply| Next(number, reply), None));
            join_all(asks)
                .await
                .into_iter()
                .map(|answer| answer.expect("it lives").expect("it answers"))
                .sum()
        })
    }
}

struct Asker;

struct Ask {
    asks: u64,
    result: oneshot::Sender<u64>,
}

impl Actor for Asker {
    type Msg = Ask;
    type State = ActorRef<Next>;
    type Arguments = ActorRef<Next>;

    async fn pre_start(
        &self,
        _: ActorRef<Ask>,
        answerer: ActorRef<Next>,
    ) -> Result<ActorRef<Next>, ActorProcessingErr> {
        Ok(answerer)
    }

    async fn handle(
        &self,
        _: ActorRef<Ask>,
        ask: Ask,
        answerer: &mut ActorRef<Next>,
    ) -> Result<(), ActorProcessingErr> {
        let mut number = 0;
        for _ in 0..ask.asks {
            let answer = answerer.call(|reply| Next(number, reply), None).await?;
            number = answer.expect("it answers");
        }
        let _ = ask.result.send(number);
        Ok(())
    }
}

/// The factory: an actor in front of workers.
pub struct RactorFactory(Ractor);

impl RactorFactory {
    pub fn start() -> Self {
        Self(Ractor::start())
    }

    fn factory<H: Handler, R: Router<(), Words> + Default>(
        &self,
        size: usize,
        make: impl Make<H>,
    ) -> Dispatching {
        let arguments = FactoryArguments::builder()
            .worker_builder(Box::new(worker_builder(move |number: WorkerId| {
                (FactoryWorker(PhantomData), Held(make(number)))
            })))
            .queue(DefaultQueue::default())
            .router(R::default())
            .num_initial_workers(size)
            .build();
        let factory = Factory::<(), Words, Held<H>, FactoryWorker<H>, R, DefaultQueue<(), Words>>::default();
        let started = self.0.runtime.block_on(Actor::spawn(None, factory, arguments));
        Dispatching(started.expect("a factory starts").0)
    }
}

/// A handler on its way to its worker.
struct Held<H>(H);

struct FactoryWorker<H>(PhantomData<fn() -> H>);

impl<H: Handler> Worker for FactoryWorker<H> {
    type Key = ();
    type Message = Words;
    type Arguments = Held<H>;
    type State = H;

    async fn pre_start(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<(), Words>>,
        held: Held<H>,
    ) -> Result<H, ActorProcessingErr> {
        Ok(held.0)
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<(), Words>>,
        job: Job<(), Words>,
        handler: &mut H,
    ) -> Result<(), ActorProcessingErr> {
        handler(job.msg);
        Ok(())
    }
}

#[derive(Clone)]
struct Dispatching(FactoryRef<(), Words>);

impl Tell for Dispatching {
    fn tell(&self, words: Words) {
        self.0.dispatch((), words).expect("it lives");
    }
}

impl Peer for RactorFactory {
    type Target = ActorRef<Words>;

    fn spawn<H: Handler>(&self, number: usize, make: impl Make<H>) -> ActorRef<Words> {
        self.0.spawn(number, make)
    }

    fn stop(&self, target: ActorRef<Words>) {
        self.0.stop(target);
    }

    fn round_robin<H: Handler>(&self, size: usize, make: impl Make<H>) -> impl Tell {
        self.factory::<H, RoundRobinRouting<(), Words>>(size, make)
    }

    fn shared_queue<H: Handler>(&self, size: usize, make: impl Make<H>) -> Option<impl Tell> {
        Some(self.factory::<H, QueuerRouting<(), Words>>(size, make))
    }

    fn answerer(&self) -> impl Answer {
        self.0.answerer()
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        self.0.ask_from_actor(asks)
    }
}
