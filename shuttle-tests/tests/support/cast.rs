//! Whom a scenario is made of: a small system, actors that do what their messages say, and the books of it all.

use pointsman::ask::{Answerable, Attempt};
use pointsman::dead_letters::DeadLetterLog;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use pointsman::{Ledger, SystemBuilder};
use shuttle::thread::{self, JoinHandle, Thread};
use std::collections::HashMap;
// None of these is a step: they only count, and no schedule depends on them.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Workers of most scenarios.
pub const WORKERS: usize = 4;

/// What became of the letters of one schedule.
#[derive(Default)]
pub struct Tally {
    /// Letters that exist.
    alive: AtomicUsize,
    /// Each letter that was handled, and how often.
    handled: Mutex<HashMap<(usize, usize), usize>>,
    /// For an actor and a sender, the number of the letter handled last.
    latest: Mutex<HashMap<(usize, usize), usize>>,
    /// Actors in a handler.
    busy: Mutex<HashMap<usize, bool>>,
    /// Who waits until so many letters have been handled.
    waiting: Mutex<Option<(usize, Thread)>>,
}

/// The `number`th letter of a sender. The one copy of it is in one place; a broadcast makes others.
pub struct Letter {
    sender: usize,
    number: usize,
    tally: Arc<Tally>,
}

/// What an actor does with a letter.
#[derive(Clone)]
pub enum Job {
    Read(Letter),
    /// Fails, and is restarted, resumed or stopped as its supervisor decides.
    Fail(Letter),
    /// Stops itself.
    Stop(Letter),
    /// Ends if nothing else is in the mailbox.
    Retire(Letter),
    /// Sends these letters.
    Pass(Letter, Vec<(ActorRef<Job>, Job)>),
    Ask(Call<Question>),
}

/// Is answered with the number of the letter.
#[derive(Clone)]
pub struct Question(pub Letter);

impl Request for Question {
    type Reply = usize;
}

impl Answerable for Job {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        match self {
            Job::Ask(call) => call.fork(attempt),
            _ => false,
        }
    }
}

impl Job {
    /// Who has sent it.
    pub fn sender(&self) -> usize {
        match self {
            Job::Read(letter) | Job::Fail(letter) | Job::Stop(letter) => letter.sender,
            Job::Retire(letter) | Job::Pass(letter, _) => letter.sender,
            Job::Ask(call) => call.request.0.sender,
        }
    }
}

impl From<Call<Question>> for Job {
    fn from(call: Call<Question>) -> Self {
        Job::Ask(call)
    }
}

impl Letter {
    fn made(sender: usize, number: usize, tally: &Arc<Tally>) -> Self {
        tally.alive.fetch_add(1, SeqCst);
        Self { sender, number, tally: tally.clone() }
    }

    /// Notes that this actor handles it.
    pub fn read(&self, reader: usize) {
        *self.tally.handled.lock().unwrap().entry((self.sender, self.number)).or_default() += 1;
        let mut latest = self.tally.latest.lock().unwrap();
        if let Some(before) = latest.insert((reader, self.sender), self.number) {
            let (sender, number) = (self.sender, self.number);
            assert!(before < number, "actor {reader}: letter {number} of {sender} after letter {before}");
        }
        drop(latest);
        self.tally.tell_who_waits();
    }
}

impl Clone for Letter {
    fn clone(&self) -> Self {
        Self::made(self.sender, self.number, &self.tally)
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        self.tally.alive.fetch_sub(1, SeqCst);
    }
}

impl Tally {
    pub fn handled(&self) -> usize {
        self.handled.lock().unwrap().values().sum()
    }

    /// How often this letter was handled.
    pub fn times(&self, sender: usize, number: usize) -> usize {
        self.handled.lock().unwrap().get(&(sender, number)).copied().unwrap_or(0)
    }

    /// Waits until so many letters have been handled; one that is lost, or that nobody is woken for, is a deadlock.
    pub fn wait_for(&self, letters: usize) {
        *self.waiting.lock().unwrap() = Some((letters, thread::current()));
        while self.handled() < letters {
            thread::park();
        }
    }

    fn tell_who_waits(&self) {
        let handled = self.handled();
        let waits = self.waiting.lock().unwrap().clone();
        if let Some((letters, thread)) = waits {
            if handled >= letters {
                thread.unpark();
            }
        }
    }

    fn most(&self) -> usize {
        self.handled.lock().unwrap().values().copied().max().unwrap_or(0)
    }
}

/// Does what its letters say; `name` is the same in each of its lives.
pub struct Clerk {
    name: usize,
    tally: Arc<Tally>,
}

impl Clerk {
    pub fn new(name: usize, tally: &Arc<Tally>) -> Self {
        Self { name, tally: tally.clone() }
    }

    fn work(&self, job: Job, ctx: &mut Context<Job>) -> HandlerResult {
        match job {
            Job::Read(letter) => letter.read(self.name),
            Job::Fail(letter) => {
                letter.read(self.name);
                return Err(Failure::msg("as told"));
            }
            Job::Stop(letter) => {
                letter.read(self.name);
                ctx.stop();
            }
            Job::Retire(letter) => {
                letter.read(self.name);
                ctx.passivate();
            }
            Job::Pass(letter, next) => {
                letter.read(self.name);
                next.into_iter().for_each(|(to, job)| to.tell(job));
            }
            Job::Ask(call) => {
                let (Question(letter), reply_to) = call.into_parts();
                letter.read(self.name);
                let _ = reply_to.send(letter.number);
            }
        }
        Ok(())
    }
}

impl Actor for Clerk {
    type Message = Job;
    fn receive(&mut self, job: Job, ctx: &mut Context<Job>) -> HandlerResult {
        let was_busy = self.tally.busy.lock().unwrap().insert(self.name, true);
        assert_ne!(was_busy, Some(true), "two threads run actor {}", self.name);
        // Others may come meanwhile.
        thread::sleep(Duration::ZERO);
        let done = self.work(job, ctx);
        self.tally.busy.lock().unwrap().insert(self.name, false);
        done
    }
}

/// A system of few workers, and the books of its letters.
pub struct Stage {
    pub system: System,
    pub clock: ManualClock,
    pub tally: Arc<Tally>,
}

/// A system with so many workers.
pub fn stage(workers: usize) -> Stage {
    stage_with(workers, |builder| builder)
}

pub fn stage_with(workers: usize, change: impl FnOnce(SystemBuilder) -> SystemBuilder) -> Stage {
    let clock = ManualClock::new();
    let pool = Dispatcher::work_stealing().threads(workers).spin(Duration::ZERO).throughput(2);
    let builder = System::builder("shuttle")
        .clock(clock.clone())
        .log_dead_letters(DeadLetterLog::off())
        .supervision(Strategy::decide(|_| Directive::Restart).quiet())
        .dispatcher("default", pool);
    let system = change(builder).build().expect("the settings are sound");
    Stage { system, clock, tally: Arc::default() }
}

impl Stage {
    pub fn letter(&self, sender: usize, number: usize) -> Letter {
        Letter::made(sender, number, &self.tally)
    }

    pub fn read(&self, sender: usize, number: usize) -> Job {
        Job::Read(self.letter(sender, number))
    }

    /// Makes the clerk of this name, again and again.
    pub fn clerk(&self, name: usize) -> impl FnMut() -> Clerk + Send + use<> {
        let tally = self.tally.clone();
        move || Clerk::new(name, &tally)
    }

    /// Makes the routees of a pool, each named by its index.
    pub fn clerks(&self) -> impl Fn(&mut Context<Job>) -> Clerk + Send + Sync + use<> {
        let tally = self.tally.clone();
        move |ctx| Clerk::new(ctx.routee_index(), &tally)
    }

    /// A thread that sends so many letters, numbered from 1, each by `tell`.
    pub fn tells(&self, sender: usize, count: usize, to: &ActorRef<Job>) -> JoinHandle<()> {
        let (to, tally) = (to.clone(), self.tally.clone());
        thread::spawn(move || {
            for number in 1..=count {
                to.tell(Job::Read(Letter::made(sender, number, &tally)));
            }
        })
    }

    /// The same by `try_tell`; how many came back.
    pub fn tries(&self, sender: usize, count: usize, to: &ActorRef<Job>) -> JoinHandle<usize> {
        let (to, tally) = (to.clone(), self.tally.clone());
        thread::spawn(move || {
            let job = |number| Job::Read(Letter::made(sender, number, &tally));
            (1..=count).filter(|number| to.try_tell(job(*number)).is_err()).count()
        })
    }

    /// Ends the system. The books balance, none of its letters is left, and none was handled more than `times`.
    /// `asked` are messages other than letters that were handled.
    pub fn end_after(self, times: usize, asked: usize) -> Ledger {
        let Self { system, clock: _, tally } = self;
        let ledger = system.shutdown(Duration::MAX).expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        assert_eq!(ledger.handled as usize, tally.handled() + asked, "{ledger}");
        assert_eq!(tally.alive.load(SeqCst), 0, "letters are left: {ledger}");
        assert!(tally.most() <= times, "a letter was handled {} times: {ledger}", tally.most());
        assert_eq!(ledger.asks.pending(), 0, "{ledger}");
        ledger
    }

    pub fn end(self, asked: usize) -> Ledger {
        self.end_after(1, asked)
    }
}

/// Waits for all of them.
pub fn join<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("no sender panics")).collect()
}
