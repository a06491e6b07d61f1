//! ractor, plain and with its factory: actors are tokio tasks.

use crate::peer::{Answer, Peer, Tell, Words};
use crate::tasks::runtime;
use crate::work::{Recipe, Work};
use futures_util::future::join_all;
use ractor::factory::queues::DefaultQueue;
use ractor::factory::routing::{QueuerRouting, RoundRobinRouting, Router};
use ractor::factory::{
    self, Factory, FactoryArguments, FactoryMessage, FactoryRef, Job, WorkerId, worker_builder,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, ActorRuntime, RpcReplyPort};
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

/// An actor's behaviour; its work is its state.
struct Worker;

type Works = Work<ActorRef<Words>>;

impl Actor for Worker {
    type Msg = Words;
    type State = Works;
    type Arguments = Works;

    async fn pre_start(&self, _: ActorRef<Words>, work: Works) -> Result<Works, ActorProcessingErr> {
        Ok(work)
    }

    async fn handle(
        &self,
        _: ActorRef<Words>,
        words: Words,
        work: &mut Works,
    ) -> Result<(), ActorProcessingErr> {
        work.handle(words);
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

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> ActorRef<Words> {
        let _entered = self.runtime.enter();
        let spawned = ActorRuntime::spawn_instant(None, Worker, recipe.make(number));
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

    fn factory<R: Router<(), Words> + Default>(
        &self,
        size: usize,
        recipe: Recipe<ActorRef<Words>>,
    ) -> Dispatching {
        let arguments = FactoryArguments::builder()
            .worker_builder(Box::new(worker_builder(move |number: WorkerId| {
                (FactoryWorker, recipe.make(number))
            })))
            .queue(DefaultQueue::default())
            .router(R::default())
            .num_initial_workers(size)
            .build();
        let factory = Factory::<(), Words, Works, FactoryWorker, R, DefaultQueue<(), Words>>::default();
        let started = self.0.runtime.block_on(Actor::spawn(None, factory, arguments));
        Dispatching(started.expect("a factory starts").0)
    }
}

struct FactoryWorker;

impl factory::Worker for FactoryWorker {
    type Key = ();
    type Message = Words;
    type Arguments = Works;
    type State = Works;

    async fn pre_start(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<(), Words>>,
        work: Works,
    ) -> Result<Works, ActorProcessingErr> {
        Ok(work)
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<(), Words>>,
        job: Job<(), Words>,
        work: &mut Works,
    ) -> Result<(), ActorProcessingErr> {
        work.handle(job.msg);
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

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> ActorRef<Words> {
        self.0.spawn(number, recipe)
    }

    fn stop(&self, target: ActorRef<Words>) {
        self.0.stop(target);
    }

    fn round_robin(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        self.factory::<RoundRobinRouting<(), Words>>(size, recipe)
    }

    fn shared_queue(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        Some(self.factory::<QueuerRouting<(), Words>>(size, recipe))
    }

    fn answerer(&self) -> impl Answer {
        self.0.answerer()
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        self.0.ask_from_actor(asks)
    }
}
