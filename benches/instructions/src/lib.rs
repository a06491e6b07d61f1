//! What the counted cases share: where counting begins and ends, and actors that take part.
//!
//! Counts are exact because one thread runs all that is counted. Most cases run in the turns of a system with a
//! single worker; the thread that set them off waits meanwhile, and is not counted: callgrind keeps the switch for
//! each thread. The worker has always something to do between the first toggle and the last, so that no search and
//! no sleep is counted. Each case runs once uncounted first: blocks, free lists and thread-locals are there by then.

use pointsman::prelude::*;
use pointsman::telemetry::Telemetry;
use std::hint::black_box;
use std::sync::mpsc;
use std::time::Duration;

/// Operations in a counted stretch; the script divides by it.
pub const OPERATIONS: u64 = 1000;

/// What everything must be done within, by far: valgrind makes it fifty times slower.
const SOON: Duration = Duration::from_secs(100);

/// A message of 16 bytes.
pub type Words = [u64; 2];

// SAFETY: declared as `toggle.c` defines it; it takes nothing, and touches nothing of ours.
unsafe extern "C" {
    safe fn toggle_collect();
}

/// Begins to count on this thread, or ends.
#[inline(always)]
pub fn toggle() {
    toggle_collect();
}

/// Counts what `act` does on this thread.
pub fn counted<R>(act: impl FnOnce() -> R) -> R {
    toggle();
    let result = act();
    toggle();
    result
}

/// Runs what it is sent, in its turns.
struct Runner;

pub struct Job(Box<dyn FnOnce(&mut Context<Job>) + Send>);

impl Actor for Runner {
    type Message = Job;
    fn receive(&mut self, job: Job, ctx: &mut Context<Job>) -> HandlerResult {
        (job.0)(ctx);
        Ok(())
    }
}

/// A system with one worker, and an actor to run things there.
pub struct Stage {
    pub system: System,
    runner: ActorRef<Job>,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(Telemetry::off())
    }

    /// A stage whose system measures so.
    pub fn with(telemetry: Telemetry) -> Self {
        let worker = Dispatcher::work_stealing().threads(1);
        let builder = System::builder("count").dispatcher("default", worker).telemetry(telemetry);
        let system = builder.build().expect("threads can be had");
        let runner = system.spawn(|| Runner).expect("the system lives");
        Self { system, runner }
    }

    /// Runs `job` in one turn on the worker, and returns when everything that came of it is done.
    pub fn run(&self, job: impl FnOnce(&mut Context<Job>) + Send + 'static) {
        self.runner.tell(Job(Box::new(job)));
        self.settle();
    }

    /// Waits until every message is handled.
    fn settle(&self) {
        let start = std::time::Instant::now();
        loop {
            let ledger = self.system.ledger();
            if ledger.balance() == 0 && ledger.queued == 0 {
                break;
            }
            assert!(start.elapsed() < SOON, "{ledger}");
            std::thread::sleep(Duration::from_millis(1));
        }
        // The last turn has handled its message, and may not have ended.
        std::thread::sleep(Duration::from_millis(10));
    }

    /// Ends the system, whose books must balance.
    pub fn end(self) {
        let ledger = self.system.shutdown(SOON).expect("everything ends");
        assert_eq!(ledger.balance(), 0, "{ledger}");
    }
}

/// Takes messages. One that says [`TOGGLE`] begins to count or ends.
pub struct Sink;

/// In the second word of a message.
pub const TOGGLE: u64 = u64::MAX;

impl Actor for Sink {
    type Message = Words;
    fn receive(&mut self, message: Words, _: &mut Context<Words>) -> HandlerResult {
        if message[1] == TOGGLE {
            toggle();
        }
        black_box(message);
        Ok(())
    }
}

/// Plays a message to its partner and back; counts while it is under way.
pub struct Player {
    partner: Option<ActorRef<Ball>>,
    over: mpsc::Sender<()>,
}

pub enum Ball {
    Partner(ActorRef<Ball>),
    Serve { rounds: u64, count: bool },
    Fly { left: u64, count: bool },
}

impl Actor for Player {
    type Message = Ball;
    fn receive(&mut self, ball: Ball, _: &mut Context<Ball>) -> HandlerResult {
        let (left, count) = match ball {
            Ball::Partner(partner) => {
                self.partner = Some(partner);
                return Ok(());
            }
            Ball::Serve { rounds, count } => {
                if count {
                    toggle();
                }
                (rounds, count)
            }
            Ball::Fly { left, count } => (left, count),
        };
        if left > 0 {
            self.partner.as_ref().expect("it was told").tell(Ball::Fly { left: left - 1, count });
        } else {
            if count {
                toggle();
            }
            let _ = self.over.send(());
        }
        Ok(())
    }
}

/// Two players on the stage's worker.
pub fn play(stage: &Stage) {
    let (over, is_over) = mpsc::channel();
    let player = move || Player { partner: None, over: over.clone() };
    let (ping, pong) = (stage.system.spawn(player.clone()), stage.system.spawn(player));
    let (ping, pong) = (ping.expect("the system lives"), pong.expect("the system lives"));
    ping.tell(Ball::Partner(pong.clone()));
    pong.tell(Ball::Partner(ping.clone()));
    for count in [false, true] {
        stage.settle();
        ping.tell(Ball::Serve { rounds: OPERATIONS, count });
        is_over.recv_timeout(SOON).expect("the ball comes back");
    }
}

/// One more than its number.
pub struct Next(pub u64);

impl Request for Next {
    type Reply = u64;
}

pub struct Answerer;

impl Actor for Answerer {
    type Message = Call<Next>;
    fn receive(&mut self, call: Call<Next>, _: &mut Context<Call<Next>>) -> HandlerResult {
        call.answer(|Next(number)| number + 1);
        Ok(())
    }
}

/// Asks from its turns, each time with what it was answered.
struct Curious {
    answerer: ActorRef<Call<Next>>,
    count: bool,
    over: mpsc::Sender<()>,
}

enum Curiosity {
    Start { count: bool },
    Answer(Result<u64, AskError>),
}

impl Actor for Curious {
    type Message = Curiosity;
    fn receive(&mut self, message: Curiosity, ctx: &mut Context<Curiosity>) -> HandlerResult {
        let number = match message {
            Curiosity::Start { count } => {
                self.count = count;
                if count {
                    toggle();
                }
                0
            }
            Curiosity::Answer(number) => number?,
        };
        if number < OPERATIONS {
            ctx.ask(&self.answerer, Next(number), Curiosity::Answer);
        } else {
            if self.count {
                toggle();
            }
            let _ = self.over.send(());
        }
        Ok(())
    }
}

/// Asks from an actor on the stage's worker to another one.
pub fn ask_around(stage: &Stage) {
    let (over, is_over) = mpsc::channel();
    let answerer = stage.system.spawn(|| Answerer).expect("the system lives");
    let recipe = move || Curious { answerer: answerer.clone(), count: false, over: over.clone() };
    let curious = stage.system.spawn(recipe).expect("the system lives");
    for count in [false, true] {
        stage.settle();
        curious.tell(Curiosity::Start { count });
        is_over.recv_timeout(SOON).expect("every ask is answered");
    }
}

/// Does nothing, with 64 bytes of state.
pub struct Idler {
    _state: [u64; 8],
}

impl Actor for Idler {
    type Message = Words;
    fn receive(&mut self, _: Words, _: &mut Context<Words>) -> HandlerResult {
        Ok(())
    }
}

pub fn idler() -> Idler {
    Idler { _state: [0; 8] }
}

/// Creates children and stops them, and looks again and again whether they have ended.
struct Parent {
    count: bool,
    living: usize,
    over: mpsc::Sender<()>,
}

enum Family {
    Start { count: bool },
    Look,
}

impl Actor for Parent {
    type Message = Family;
    fn receive(&mut self, message: Family, ctx: &mut Context<Family>) -> HandlerResult {
        if let Family::Start { count } = message {
            (self.count, self.living) = (count, ctx.system().living_actors());
            if count {
                toggle();
            }
            for _ in 0..OPERATIONS {
                ctx.spawn(idler)?.stop();
            }
        }
        if ctx.system().living_actors() > self.living {
            ctx.me().tell(Family::Look);
        } else {
            if self.count {
                toggle();
            }
            let _ = self.over.send(());
        }
        Ok(())
    }
}

/// Spawns and stops on the stage's worker.
pub fn come_and_go(stage: &Stage) {
    let (over, is_over) = mpsc::channel();
    let recipe = move || Parent { count: false, living: 0, over: over.clone() };
    let parent = stage.system.spawn(recipe).expect("the system lives");
    for count in [false, true] {
        stage.settle();
        parent.tell(Family::Start { count });
        is_over.recv_timeout(SOON).expect("all children end");
    }
}
