//! Threads, the cores that run them, and the order of events.
//!
//! The program of a thread is an async function. It awaits each access to a line, and changes the shared state between
//! two accesses. The simulator says when an access is done. A thread waits for its reads and changes. A store waits in
//! the core, and the next read-modify-write of the thread waits for it. Threads that share a core take turns.

use crate::lines::{Access, Line, Lines};
use crate::machine::{Machine, Random, Time, picoseconds};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// How long a thread runs while another waits for a core, on average: a tick of a kernel with 250 of them in a second.
const SLICE: Time = 4_000_000_000;

/// The time in which a core changes to another thread.
const SWITCH: Time = 1_000_000;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The thread of a core goes on.
    Continue { core: usize },
    /// A thread is woken that is parked or will park.
    Unpark { thread: usize },
}

/// The part that the simulator and the handles of all threads share.
struct Shared {
    machine: Machine,
    lines: RefCell<Lines>,
    now: Cell<Time>,
    /// The events to come, with numbers that break ties, so that a run is the same each time.
    events: RefCell<BinaryHeap<Reverse<(Time, u64, Event)>>>,
    number: Cell<u64>,
    /// The time of the first event.
    next_event: Cell<Time>,
    random: RefCell<Random>,
    finished_at: Cell<Option<Time>>,
}

impl Shared {
    fn add_event(&self, time: Time, event: Event) {
        self.number.set(self.number.get() + 1);
        self.next_event.set(self.next_event.get().min(time));
        self.events.borrow_mut().push(Reverse((time, self.number.get(), event)));
    }

    fn take_event(&self) -> Option<Event> {
        let mut events = self.events.borrow_mut();
        let Reverse((time, _, event)) = events.pop()?;
        self.next_event.set(events.peek().map_or(Time::MAX, |Reverse((time, _, _))| *time));
        self.now.set(time);
        Some(event)
    }

    fn vary(&self, time: Time) -> Time {
        self.random.borrow_mut().vary(time)
    }
}

/// The reason why a thread waits.
#[derive(Debug, Clone, Copy)]
enum Wait {
    Until(Time),
    /// Another thread may have the core first.
    Yield(Time),
    /// The core is free for others until another thread wakes this one.
    Park,
}

/// A thread, as its program sees it.
pub struct Thread {
    shared: Rc<Shared>,
    number: usize,
    core: Cell<usize>,
    slice_ends: Cell<Time>,
    stores_done: Cell<Time>,
    wait: Cell<Option<Wait>>,
    is_parked: Cell<bool>,
    /// Woken before it parked.
    is_woken: Cell<bool>,
}

/// A wait of a thread that is not over.
pub struct Waiting<'a> {
    thread: &'a Thread,
    wait: Option<Wait>,
}

impl Future for Waiting<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let Some(wait) = self.wait.take() else { return Poll::Ready(()) };
        let shared = &self.thread.shared;
        if let Wait::Until(done) = wait {
            // No other thread does anything until then.
            let ends = shared.next_event.get().min(self.thread.slice_ends.get());
            if done < ends && shared.finished_at.get().is_none() {
                shared.now.set(done);
                return Poll::Ready(());
            }
        }
        self.thread.wait.set(Some(wait));
        Poll::Pending
    }
}

impl Thread {
    pub fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    pub fn now(&self) -> Time {
        self.shared.now.get()
    }

    /// Adds lines that no core has; returns the first.
    pub fn add_lines(&self, count: usize) -> Line {
        self.shared.lines.borrow_mut().add(count)
    }

    fn wait(&self, wait: Wait) -> Waiting<'_> {
        Waiting { thread: self, wait: Some(wait) }
    }

    fn access_at(&self, now: Time, access: Access, line: Line) -> Time {
        self.shared.lines.borrow_mut().access(self.core.get(), line, access, now)
    }

    /// Computes on what the core has.
    pub fn work(&self, nanoseconds: f64) -> Waiting<'_> {
        self.wait(Wait::Until(self.now() + self.shared.vary(picoseconds(nanoseconds))))
    }

    pub fn instructions(&self, count: f64) -> Waiting<'_> {
        self.work(self.machine().instruction * count)
    }

    /// Waits for so many hints of a loop.
    pub fn pause(&self, count: u64) -> Waiting<'_> {
        self.work(self.machine().pause * count as f64)
    }

    /// A fence takes as long as a read-modify-write on an own line.
    pub fn fence(&self) -> Waiting<'_> {
        self.wait(Wait::Until(self.stores_done() + picoseconds(self.machine().change)))
    }

    pub fn read(&self, line: Line) -> Waiting<'_> {
        self.read_all([line])
    }

    /// Reads lines at once: none waits for another.
    pub fn read_all(&self, lines: impl IntoIterator<Item = Line>) -> Waiting<'_> {
        let now = self.now();
        let done = lines.into_iter().map(|line| self.access_at(now, Access::Read, line)).max();
        self.wait(Wait::Until(done.unwrap_or(now)))
    }

    /// Reads a line whose address the processor knows long before.
    pub fn read_ahead(&self, line: Line) -> Waiting<'_> {
        self.wait(Wait::Until(self.access_at(self.now(), Access::ReadAhead, line)))
    }

    /// A read-modify-write, for which all stores before must be done.
    pub fn change(&self, line: Line) -> Waiting<'_> {
        self.wait(Wait::Until(self.access_at(self.stores_done(), Access::Change, line)))
    }

    fn store(&self, access: Access, line: Line) {
        let done = self.access_at(self.now(), access, line);
        self.stores_done.set(done.max(self.stores_done.get()));
    }

    /// When all stores so far will be done.
    pub fn stores_done(&self) -> Time {
        self.stores_done.get().max(self.now())
    }

    /// Stores to a line.
    pub fn write(&self, line: Line) {
        self.store(Access::Write, line);
    }

    /// Stores to a value that the read-modify-write before has found, in the first and the last of its lines.
    pub fn write_claimed(&self, [first, last]: [Line; 2]) {
        self.store(Access::WriteClaimed, last);
        if first != last {
            self.store(Access::WriteClaimed, first);
        }
    }

    /// Asks for a line to which this thread will store.
    pub fn prefetch(&self, line: Line) {
        self.access_at(self.now(), Access::Write, line);
    }

    /// Gives the core to a thread that waits for one.
    pub fn yield_now(&self) -> Waiting<'_> {
        self.wait(Wait::Yield(self.now() + picoseconds(self.machine().yielding)))
    }

    /// Waits until another thread wakes this one.
    pub fn park(&self) -> Waiting<'_> {
        self.wait(Wait::Park)
    }

    /// Parks for so long, if no other thread wakes this one.
    pub fn sleep(&self, time: Time) -> Waiting<'_> {
        self.shared.add_event(self.now() + time, Event::Unpark { thread: self.number });
        self.park()
    }

    /// Wakes a thread that is parked or will park.
    pub fn unpark(&self, thread: &Thread) -> Waiting<'_> {
        let runs = self.now() + picoseconds(self.machine().wake_latency);
        self.shared.add_event(runs, Event::Unpark { thread: thread.number });
        self.work(self.machine().wake)
    }

    /// Ends the run.
    pub fn finish(&self) {
        self.shared.finished_at.set(Some(self.now()));
    }
}

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// False if all threads have ended or wait for each other.
    pub is_finished: bool,
    pub time: Time,
    /// Transfers of lines.
    pub moves: u64,
}

#[derive(Debug, Default)]
struct Core {
    running: Option<usize>,
    /// Threads that wait for this core.
    waiting: VecDeque<usize>,
}

type Program = Pin<Box<dyn Future<Output = ()>>>;

pub struct Simulator {
    shared: Rc<Shared>,
    threads: Vec<(Rc<Thread>, Option<Program>)>,
    cores: Vec<Core>,
}

impl Simulator {
    pub fn new(machine: Machine, cores: usize, seed: u64) -> Self {
        let shared = Shared {
            machine,
            lines: RefCell::new(Lines::new(&machine, seed)),
            now: Cell::new(0),
            events: RefCell::default(),
            number: Cell::new(0),
            next_event: Cell::new(Time::MAX),
            random: RefCell::new(Random::new(seed)),
            finished_at: Cell::new(None),
        };
        let cores = (0..cores).map(|_| Core::default()).collect();
        Self { shared: Rc::new(shared), threads: Vec::new(), cores }
    }

    /// Adds lines that no core has; returns the first.
    pub fn add_lines(&self, count: usize) -> Line {
        self.shared.lines.borrow_mut().add(count)
    }

    /// Adds a thread, on the next core in turn, that will run the program that `begin` returns.
    pub fn add<P: Future<Output = ()> + 'static>(&mut self, begin: impl FnOnce(Rc<Thread>) -> P) {
        let number = self.threads.len();
        let thread = Rc::new(Thread {
            shared: self.shared.clone(),
            number,
            core: Cell::new(0),
            slice_ends: Cell::new(0),
            stores_done: Cell::new(0),
            wait: Cell::new(None),
            is_parked: Cell::new(false),
            is_woken: Cell::new(false),
        });
        let core = number % self.cores.len();
        self.cores[core].waiting.push_back(number);
        self.threads.push((thread.clone(), Some(Box::pin(begin(thread)))));
    }

    /// Runs until a thread finishes the run, or all threads have ended or wait for each other.
    pub fn run(mut self) -> Ended {
        (0..self.cores.len()).for_each(|core| self.begin_next(core));
        while self.shared.finished_at.get().is_none() {
            match self.shared.take_event() {
                Some(Event::Continue { core }) => self.go_on(core),
                Some(Event::Unpark { thread }) => self.unpark(thread),
                None => break,
            }
        }
        Ended {
            is_finished: self.shared.finished_at.get().is_some(),
            time: self.shared.now.get(),
            moves: self.shared.lines.borrow().moves(),
        }
    }

    /// Gives a core without a thread the next one, that of another core if no thread waits for this one.
    fn begin_next(&mut self, core: usize) {
        let next = self.cores[core]
            .waiting
            .pop_front()
            .or_else(|| self.cores.iter_mut().max_by_key(|other| other.waiting.len())?.waiting.pop_back());
        self.cores[core].running = next;
        if let Some(number) = next {
            let (thread, now) = (&self.threads[number].0, self.shared.now.get());
            thread.core.set(core);
            thread.slice_ends.set(now + self.shared.vary(SLICE));
            let begins = if now == 0 { 0 } else { now + SWITCH };
            self.shared.add_event(begins, Event::Continue { core });
        }
    }

    fn unpark(&mut self, number: usize) {
        let thread = &self.threads[number].0;
        if !thread.is_parked.replace(false) {
            return thread.is_woken.set(true);
        }
        let last = thread.core.get();
        let idle = |core: &usize| self.cores[*core].running.is_none();
        let core = std::iter::once(last).chain(0..self.cores.len()).find(idle);
        self.cores[core.unwrap_or(last)].waiting.push_back(number);
        if let Some(core) = core {
            self.begin_next(core);
        }
    }

    /// Lets another thread have the core of this one, which waits for a core.
    fn pass_on(&mut self, core: usize, number: usize) {
        self.cores[core].waiting.push_back(number);
        self.begin_next(core);
    }

    /// Runs the thread of a core until it waits.
    fn go_on(&mut self, core: usize) {
        let Some(number) = self.cores[core].running else { return };
        let is_alone = self.cores[core].waiting.is_empty();
        let (thread, program) = &mut self.threads[number];
        if self.shared.now.get() >= thread.slice_ends.get() {
            if !is_alone {
                return self.pass_on(core, number);
            }
            thread.slice_ends.set(self.shared.now.get() + self.shared.vary(SLICE));
        }
        let Some(running) = program else { return };
        if running.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            *program = None;
            return self.begin_next(core);
        }
        match thread.wait.take().expect("a thread waits for the simulator alone") {
            Wait::Yield(_) if !is_alone => self.pass_on(core, number),
            Wait::Until(time) | Wait::Yield(time) => self.shared.add_event(time, Event::Continue { core }),
            Wait::Park if thread.is_woken.replace(false) => {
                self.shared.add_event(self.shared.now.get(), Event::Continue { core });
            }
            Wait::Park => {
                thread.is_parked.set(true);
                self.begin_next(core);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ended, Simulator, Thread};
    use crate::lines::Line;
    use crate::machine::{Machine, Time, XEON};
    use std::cell::RefCell;
    use std::rc::Rc;

    const MACHINE: Machine =
        Machine { far_read: 40.0, far_change: 60.0, change: 5.0, retained: 30.0, ..XEON };

    async fn change(thread: Rc<Thread>, line: Line, times: usize) {
        for _ in 0..times {
            thread.change(line).await;
        }
    }

    #[test]
    fn one_thread_changes_its_own_line() {
        let mut simulator = Simulator::new(MACHINE, 1, 0);
        let line = simulator.add_lines(1);
        simulator.add(|thread| change(thread, line, 10));
        assert_eq!(simulator.run().time, 50_000);
    }

    #[test]
    fn two_cores_that_change_one_line_pass_it_to_and_fro() {
        let mut simulator = Simulator::new(MACHINE, 2, 0);
        let line = simulator.add_lines(1);
        (0..2).for_each(|_| simulator.add(|thread| change(thread, line, 1000)));
        let Ended { time, moves, .. } = simulator.run();
        // A core has the line for 15 to 45 of the 60 of a transfer, which is enough for six changes on average.
        assert!((60 / 7..=60 / 6 + 1).contains(&(time / 1000 / 2000)), "{time}");
        assert!((2000 / 8..=2000 / 5).contains(&(moves as usize)), "{moves}");
    }

    #[test]
    fn a_change_waits_for_the_store_before_it_and_work_does_not() {
        let mut simulator = Simulator::new(MACHINE, 2, 0);
        let (line, own) = (simulator.add_lines(1), simulator.add_lines(1));
        let seen = Rc::new(RefCell::new(Vec::new()));
        let noted = seen.clone();
        simulator.add(|thread| async move { thread.write(line) });
        simulator.add(|thread| async move {
            thread.work(1000.0).await;
            let begun = thread.now();
            thread.write(line);
            noted.borrow_mut().push(thread.now() - begun);
            thread.change(own).await;
            noted.borrow_mut().push(thread.now() - begun);
        });
        simulator.run();
        assert_eq!(*seen.borrow(), [0, 65_000]);
    }

    #[test]
    fn threads_that_share_a_core_take_turns() {
        let mut simulator = Simulator::new(MACHINE, 1, 0);
        let order = Rc::new(RefCell::new(Vec::new()));
        for number in 0..3 {
            let order = order.clone();
            simulator.add(move |thread| async move {
                for _ in 0..2 {
                    order.borrow_mut().push(number);
                    thread.yield_now().await;
                }
            });
        }
        simulator.run();
        assert_eq!(*order.borrow(), [0, 1, 2, 0, 1, 2]);
    }

    /// A thread parks after so long, and another one wakes it after so long; returns the time of the end.
    fn parks(after: Time, woken_after: Time) -> Time {
        let mut simulator = Simulator::new(MACHINE, 2, 0);
        let sleeper = Rc::new(RefCell::new(None::<Rc<Thread>>));
        let known = sleeper.clone();
        simulator.add(move |thread| async move {
            *known.borrow_mut() = Some(thread.clone());
            thread.work(after as f64).await;
            thread.park().await;
            thread.finish();
        });
        simulator.add(move |thread| async move {
            thread.work(woken_after as f64).await;
            let sleeper = sleeper.borrow_mut().take().expect("it has begun");
            thread.unpark(&sleeper).await;
        });
        let ended = simulator.run();
        assert!(ended.is_finished, "{ended:?}");
        ended.time / 1000
    }

    #[test]
    fn a_thread_that_parks_waits_for_another_one_unless_that_was_sooner() {
        assert!((50_000..160_000).contains(&parks(1, 100_000)));
        assert!((50_000..160_000).contains(&parks(100_000, 1)));
    }
}
