//! kompact: components on a work-stealing pool of its own, without an async runtime.

use crate::peer::{Answer, Peer, Tell, WORKERS, Words};
use crate::work::{Recipe, Work};
use kompact::config_keys::system::THREADS;
use kompact::prelude::*;
use std::ops::Range;
use std::sync::{Arc, mpsc};

pub struct Kompact {
    system: KompactSystem,
}

impl Kompact {
    pub fn start() -> Self {
        let mut config = KompactConfig::default();
        config.set_config_value(&THREADS, WORKERS);
        Self { system: config.build().wait().expect("threads can be had") }
    }

    fn spawn_answerer(&self) -> ActorRefStrong<Next> {
        let answerer = self.system.create(|| Answerer { ctx: ComponentContext::uninitialised() });
        self.system.start(&answerer);
        answerer.actor_ref().hold().expect("it lives")
    }
}

#[derive(ComponentDefinition)]
struct Worker {
    ctx: ComponentContext<Self>,
    work: Work<Target>,
}

ignore_lifecycle!(Worker);

impl Actor for Worker {
    type Message = Words;

    fn receive_local(&mut self, words: Words) -> HandlerResult {
        self.work.handle(words);
        Handled::OK
    }
}

/// A strong reference, which spares each message an upgrade, and what the system stops it by.
#[derive(Clone)]
pub struct Target {
    actor: ActorRefStrong<Words>,
    component: Arc<Component<Worker>>,
}

impl Tell for Target {
    fn tell(&self, words: Words) {
        self.actor.tell(words);
    }
}

impl Peer for Kompact {
    type Target = Target;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Target {
        let worker = || Worker { ctx: ComponentContext::uninitialised(), work: recipe.make(number) };
        let component = self.system.create(worker);
        self.system.start(&component);
        Target { actor: component.actor_ref().hold().expect("it lives"), component }
    }

    fn stop(&self, target: Target) {
        self.system.kill(target.component);
    }

    fn answerer(&self) -> impl Answer {
        Asked(self.spawn_answerer())
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let answerer = self.spawn_answerer();
        let asker = self.system.create(|| Asker { ctx: ComponentContext::uninitialised(), answerer });
        self.system.start(&asker);
        let (result, results) = mpsc::channel();
        asker.actor_ref().tell(Asks { asks, result });
        results.recv().expect("every ask is answered")
    }
}

type Next = Ask<u64, u64>;

#[derive(ComponentDefinition)]
struct Answerer {
    ctx: ComponentContext<Self>,
}

ignore_lifecycle!(Answerer);

impl Actor for Answerer {
    type Message = Next;

    fn receive_local(&mut self, next: Next) -> HandlerResult {
        next.complete(|number| number + 1).expect("somebody waits");
        Handled::OK
    }
}

#[derive(Clone)]
struct Asked(ActorRefStrong<Next>);

impl Answer for Asked {
    fn ask(&self, number: u64) -> u64 {
        self.0.ask_with(Ask::of(number)).wait()
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        let asks: Vec<_> = numbers.map(|number| self.0.ask_with(Ask::of(number))).collect();
        asks.into_iter().map(|answer| answer.wait()).sum()
    }
}

#[derive(ComponentDefinition)]
struct Asker {
    ctx: ComponentContext<Self>,
    answerer: ActorRefStrong<Next>,
}

ignore_lifecycle!(Asker);

#[derive(Debug)]
struct Asks {
    asks: u64,
    result: mpsc::Sender<u64>,
}

impl Actor for Asker {
    type Message = Asks;

    fn receive_local(&mut self, asks: Asks) -> HandlerResult {
        let answerer = self.answerer.clone();
        Handled::block_on(self, move |_| async move {
            let mut number = 0;
            for _ in 0..asks.asks {
                number = answerer.ask_with(Ask::of(number)).await.expect("it answers");
            }
            let _ = asks.result.send(number);
            Handled::OK
        })
    }
}
