//! Pointsman.

use crate::peer::{Answer, Peer, Tell, WORKERS, Words};
use crate::work::{Recipe, Work};
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, SmallestMailbox};
use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

pub struct Pointsman {
    system: System,
}

impl Pointsman {
    /// With the defaults.
    pub fn start() -> Self {
        Self::with(Dispatcher::work_stealing())
    }

    /// With workers that search for so long before they sleep.
    pub fn start_spinning(spin: Duration) -> Self {
        Self::with(Dispatcher::work_stealing().spin(spin))
    }

    fn with(dispatcher: Dispatcher) -> Self {
        let system = System::builder("peers").dispatcher("default", dispatcher.threads(WORKERS)).build();
        Self { system: system.expect("threads can be had") }
    }
}

struct Worker {
    work: Work<ActorRef<Words>>,
}

impl Actor for Worker {
    type Message = Words;
    fn receive(&mut self, words: Words, _: &mut Context<Words>) -> HandlerResult {
        self.work.handle(words);
        Ok(())
    }
}

/// The recipe of a routee.
fn routee(recipe: Recipe<ActorRef<Words>>) -> impl Fn(&mut Context<Words>) -> Worker + Send + Sync + 'static {
    move |ctx| Worker { work: recipe.make(ctx.routee_index()) }
}

impl Tell for ActorRef<Words> {
    fn tell(&self, words: Words) {
        ActorRef::tell(self, words);
    }
}

impl Peer for Pointsman {
    type Target = ActorRef<Words>;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> ActorRef<Words> {
        self.system.spawn(move || Worker { work: recipe.make(number) }).expect("the system lives")
    }

    fn stop(&self, target: ActorRef<Words>) {
        target.stop();
    }

    fn round_robin(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        let router = self.system.router("round-robin").pool(size, routee(recipe)).spawn();
        router.expect("the name is free").to_ref()
    }

    fn shared_queue(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let router = self.system.router("balancing").balancing_pool(size, routee(recipe)).spawn();
        Some(router.expect("the name is free").to_ref())
    }

    fn least_loaded(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let router = self.system.router("smallest-mailbox").pool(size, routee(recipe));
        let router = router.logic(SmallestMailbox::new()).spawn();
        Some(router.expect("the name is free").to_ref())
    }

    fn broadcast(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        let router = self.system.router("broadcast").pool(size, routee(recipe)).logic(Broadcast).spawn();
        router.expect("the name is free").to_ref()
    }

    fn answerer(&self) -> impl Answer {
        self.system.spawn(|| Answerer).expect("the system lives")
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let answerer = self.system.spawn(|| Answerer).expect("the system lives");
        let (result, results) = mpsc::channel();
        let recipe = move || Asker { answerer: answerer.clone(), asks, result: result.clone() };
        let asker = self.system.spawn(recipe).expect("the system lives");
        asker.tell(Ok(0));
        results.recv_timeout(SOON).expect("every ask is answered")
    }

    fn end(self) {
        let ledger = self.system.shutdown(SOON).expect("everything ends");
        assert_eq!(ledger.balance(), 0, "{ledger}");
    }
}

struct Next(u64);

impl Request for Next {
    type Reply = u64;
}

struct Answerer;

impl Actor for Answerer {
    type Message = Call<Next>;
    fn receive(&mut self, call: Call<Next>, _: &mut Context<Call<Next>>) -> HandlerResult {
        call.answer(|Next(number)| number + 1);
        Ok(())
    }
}

impl Answer for ActorRef<Call<Next>> {
    fn ask(&self, number: u64) -> u64 {
        ActorRef::ask(self, Next(number)).wait().expect("it answers")
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        let asks: Vec<_> = numbers.map(|number| ActorRef::ask(self, Next(number))).collect();
        asks.into_iter().map(|ask| ask.wait().expect("it answers")).sum()
    }
}

struct Asker {
    answerer: ActorRef<Call<Next>>,
    asks: u64,
    result: mpsc::Sender<u64>,
}

impl Actor for Asker {
    type Message = Result<u64, AskError>;
    fn receive(&mut self, answer: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
        let number = answer.expect("it answers");
        if number == self.asks {
            let _ = self.result.send(number);
        } else {
            ctx.ask(&self.answerer, Next(number), |answer| answer);
        }
        Ok(())
    }
}
