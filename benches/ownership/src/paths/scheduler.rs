//! Workers, and the tasks that they run: `src/scheduler` and `src/actor/turn.rs`.

use crate::lines::Line;
use crate::machine::Time;
use crate::paths::blocks::{Depot, ThreadCache};
use crate::paths::gather::Gather;
use crate::paths::mailbox::{Mailbox, Ready};
use crate::paths::{Messages, skewed_work};
use crate::threads::{Simulator, Thread};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Instructions to take a message and hand it to the handler: `benches/instructions/table.txt`, `receive`.
const RECEIVE: f64 = 80.6;

/// Instructions of a turn beside its messages, and of a schedule from outside, about.
const TURN: f64 = 100.0;
const SCHEDULE: f64 = 120.0;

/// Instructions of a sweep, about: with the clock and two fences of crossbeam-epoch.
const SWEEP: f64 = 600.0;

/// The throughput of a dispatcher that was told nothing else.
const THROUGHPUT: u64 = 64;

/// `worker.rs: GATHER`, `PAUSE_MAX` in hints, `SOON` in picoseconds.
const GATHER: u64 = 64;
const PAUSE_MAX: u64 = 32;
const SOON: Time = 20_000_000;

/// `backoff.rs: Wait::after`: so many hints before a yield.
const BUSY_SPINS: u64 = 8;

/// A pool of up to 32 workers, and the actors that they run.
pub struct Pool {
    pub actors: Vec<Mailbox>,
    pub is_skewed: bool,
    pub depot: Depot,
    /// I: `Injector.newest`.
    injector: Line,
    injected: RefCell<VecDeque<usize>>,
    /// Z: `IdleWord.word`.
    idle_word: Line,
    searching: Cell<usize>,
    sleepers: RefCell<Vec<Rc<Thread>>>,
    /// D of each worker: crossbeam-deque's `front` and `back`.
    deques: Vec<(Line, RefCell<VecDeque<usize>>)>,
    pub messages: Messages,
}

impl Pool {
    pub fn new(simulator: &Simulator, [workers, actors]: [usize; 2], is_skewed: bool, messages: u64) -> Self {
        Self {
            actors: (0..actors).map(|_| Mailbox::new(simulator)).collect(),
            is_skewed,
            depot: Depot::new(simulator),
            injector: simulator.add_lines(1),
            injected: RefCell::default(),
            idle_word: simulator.add_lines(1),
            searching: Cell::new(0),
            sleepers: RefCell::default(),
            deques: (0..workers).map(|_| (simulator.add_lines(1), RefCell::default())).collect(),
            messages: Messages::new(messages),
        }
    }

    /// `injector.rs: push`, from a thread that is no worker.
    pub async fn schedule(&self, thread: &Thread, actor: usize) {
        thread.instructions(SCHEDULE).await;
        // `Task.next` lies on W.
        thread.write(self.actors[actor].word);
        thread.change(self.injector).await;
        self.injected.borrow_mut().push_back(actor);
        self.notify(thread).await;
    }

    /// `sleep.rs: notify`.
    async fn notify(&self, thread: &Thread) {
        thread.fence().await;
        thread.read(self.idle_word).await;
        if self.searching.get() > 0 {
            return;
        }
        let sleeper = self.sleepers.borrow_mut().pop();
        if let Some(sleeper) = sleeper {
            self.searching.set(self.searching.get() + 1);
            thread.change(self.idle_word).await;
            thread.unpark(&sleeper).await;
        }
    }

    fn has_work(&self) -> bool {
        !self.injected.borrow().is_empty() || self.deques.iter().any(|(_, tasks)| !tasks.borrow().is_empty())
    }
}

/// A worker: `worker.rs: Core`.
pub struct Worker {
    pool: Rc<Pool>,
    thread: Rc<Thread>,
    number: usize,
    cache: ThreadCache,
    is_searching: bool,
    /// The injector held several tasks the last time.
    is_crowded: bool,
    busy_run: u64,
    handled: u64,
    gather: Gather,
}

impl Worker {
    pub fn new(pool: Rc<Pool>, thread: Rc<Thread>, number: usize) -> Self {
        Self {
            pool,
            thread,
            number,
            cache: ThreadCache::default(),
            is_searching: false,
            is_crowded: false,
            busy_run: 0,
            handled: 0,
            gather: Gather::new(),
        }
    }

    /// `worker.rs: main_loop`.
    pub async fn run(mut self) {
        loop {
            let actor = self.next_task().await;
            self.leave_search().await;
            self.turn(actor).await;
        }
    }

    /// `worker.rs: next_task`.
    async fn next_task(&mut self) -> usize {
        if let Some(actor) = self.pop().await {
            return actor;
        }
        // `worker.rs: take_gathered`.
        if std::mem::take(&mut self.is_crowded) {
            self.join_search().await;
            self.thread.pause(GATHER).await;
        }
        match self.take_injected().await {
            Some(actor) => actor,
            None => self.find().await,
        }
    }

    fn deque(&self) -> &(Line, RefCell<VecDeque<usize>>) {
        &self.pool.deques[self.number]
    }

    async fn pop(&self) -> Option<usize> {
        let (line, tasks) = self.deque();
        if tasks.borrow().is_empty() {
            return None;
        }
        self.thread.change(*line).await;
        tasks.borrow_mut().pop_front()
    }

    /// `worker.rs: push_untold`.
    fn push(&self, actor: usize) {
        let (line, tasks) = self.deque();
        self.thread.write(*line);
        tasks.borrow_mut().push_back(actor);
    }

    /// `worker.rs: take_injected`, `injector.rs: take`.
    async fn take_injected(&mut self) -> Option<usize> {
        let pool = self.pool.clone();
        self.thread.read(pool.injector).await;
        if pool.injected.borrow().is_empty() {
            return None;
        }
        self.thread.change(pool.injector).await;
        let first = pool.injected.borrow_mut().pop_front()?;
        let rest: Vec<usize> = pool.injected.borrow_mut().drain(..).collect();
        self.is_crowded = !rest.is_empty();
        for actor in rest {
            // `Task.next` lies on W.
            self.thread.read(pool.actors[actor].word).await;
            self.push(actor);
        }
        if self.is_crowded {
            pool.notify(&self.thread).await;
        }
        Some(first)
    }

    /// `worker.rs: join_search`, `sleep.rs: may_search`.
    async fn join_search(&mut self) {
        let (pool, searching) = (&self.pool, self.pool.searching.get());
        if !self.is_searching && (searching < 2 || 2 * searching < pool.deques.len()) {
            self.is_searching = true;
            pool.searching.set(searching + 1);
            self.thread.change(pool.idle_word).await;
        }
    }

    /// `worker.rs: leave_search`.
    async fn leave_search(&mut self) {
        if std::mem::take(&mut self.is_searching) {
            self.pool.searching.set(self.pool.searching.get() - 1);
            self.thread.change(self.pool.idle_word).await;
            if self.pool.searching.get() == 0 && self.pool.has_work() {
                self.pool.notify(&self.thread).await;
            }
        }
    }

    /// `worker.rs: find`.
    async fn find(&mut self) -> usize {
        loop {
            self.join_search().await;
            let found = if self.is_searching { self.search().await } else { None };
            if let Some(actor) = found {
                return actor;
            }
            self.fall_asleep().await;
        }
    }

    /// `worker.rs: search`, where tasks come soon.
    async fn search(&mut self) -> Option<usize> {
        let ends = self.thread.now() + SOON;
        let mut pause = 1;
        loop {
            if let Some(actor) = self.sweep().await {
                return Some(actor);
            }
            self.thread.instructions(SWEEP).await;
            if self.thread.now() >= ends {
                return None;
            }
            if pause <= PAUSE_MAX {
                self.thread.pause(pause).await;
                pause *= 2;
            } else {
                self.thread.yield_now().await;
            }
        }
    }

    /// `worker.rs: sweep`, `steal_from`.
    async fn sweep(&mut self) -> Option<usize> {
        let (pool, count) = (self.pool.clone(), self.pool.deques.len());
        let victims = || (1..count).map(|distance| &pool.deques[(self.number + distance) % count]);
        self.thread.read_all(victims().map(|(line, _)| *line)).await;
        if let Some((line, tasks)) = victims().find(|(_, tasks)| !tasks.borrow().is_empty()) {
            self.thread.change(*line).await;
            let half = tasks.borrow().len().div_ceil(2);
            let mut stolen: VecDeque<usize> = tasks.borrow_mut().drain(..half).collect();
            if let Some(first) = stolen.pop_front() {
                self.deque().1.borrow_mut().extend(stolen);
                return Some(first);
            }
        }
        self.take_injected().await
    }

    /// `sleep.rs: fall_asleep`.
    async fn fall_asleep(&mut self) {
        let pool = self.pool.clone();
        if std::mem::take(&mut self.is_searching) {
            pool.searching.set(pool.searching.get() - 1);
        }
        pool.sleepers.borrow_mut().push(self.thread.clone());
        self.thread.change(pool.idle_word).await;
        self.thread.fence().await;
        self.thread.read(pool.injector).await;
        if pool.has_work() {
            let mut sleepers = pool.sleepers.borrow_mut();
            if let Some(place) = sleepers.iter().position(|sleeper| Rc::ptr_eq(sleeper, &self.thread)) {
                sleepers.remove(place);
                self.is_searching = true;
                pool.searching.set(pool.searching.get() + 1);
                return;
            }
        }
        self.thread.park().await;
        // The waker has counted this worker as searching.
        self.is_searching = true;
    }

    /// `src/actor/turn.rs: ActorTurn::run`.
    async fn turn(&mut self, number: usize) {
        let (pool, thread) = (self.pool.clone(), self.thread.clone());
        let actor = &pool.actors[number];
        thread.read(actor.word).await;
        thread.instructions(TURN).await;
        let mut budget = THROUGHPUT;
        while budget > 0 {
            let head = actor.head();
            match actor.take(&thread, &pool.depot, &self.cache).await {
                Ready::Message => {
                    budget -= 1;
                    self.handled += 1;
                    self.busy_run = 0;
                    let handler = if pool.is_skewed { skewed_work(head) } else { 0.0 };
                    thread.instructions(RECEIVE + handler).await;
                    pool.messages.handle(&thread);
                }
                _ if self.gather().await => {}
                Ready::Empty => {
                    if actor.try_idle(&thread, &pool.depot, &self.cache).await {
                        return;
                    }
                }
                Ready::Busy => {
                    self.push(number);
                    return self.wait_for_sender().await;
                }
            }
        }
        // `worker.rs: main_loop`, requeue: other tasks first.
        self.push(number);
        if let Some(injected) = self.take_injected().await {
            self.deque().1.borrow_mut().push_front(injected);
        }
    }

    /// `turn.rs: gather`. Returns whether it has waited.
    async fn gather(&mut self) -> bool {
        if !self.deque().1.borrow().is_empty() {
            return false;
        }
        let length = self.gather.length_at(self.handled, self.thread.now());
        if length > 0 {
            self.thread.pause(length).await;
        }
        length > 0
    }

    /// `worker.rs: wait_for_sender`.
    async fn wait_for_sender(&mut self) {
        self.busy_run += 1;
        if self.busy_run <= BUSY_SPINS {
            self.thread.pause(1).await;
        } else {
            self.thread.yield_now().await;
        }
    }
}
