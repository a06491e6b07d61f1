//! Channels whose queue lies under a lock, with tasks that receive from them: the crate kanal 0.1.1 on tokio.
//!
//! A thread that does not get a lock spins, pauses, and then sleeps for a millisecond: `mutex.rs`,
//! `backoff.rs: spin_cond`. Meanwhile another thread has the lock's line for itself.

use crate::lines::Line;
use crate::machine::Time;
use crate::paths::{Messages, skewed_work};
use crate::threads::{Simulator, Thread};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Messages of 16 bytes on a line.
const PER_LINE: u64 = 4;

/// Lines of the ring; a longer backlog uses them again.
const RING: u64 = 1 << 14;

/// `sleep(Duration::from_nanos(1 << 20))`, and what the kernel adds.
const SLEEP: Time = (1 << 20) * 1000 + 55_000_000;

/// Instructions to send and to receive, all under the lock: the processor does what comes behind the unlock while the
/// store of the unlock waits.
const SEND: f64 = 62.0;
const RECEIVE: f64 = 22.0;

/// Instructions that tokio takes to schedule a task from a thread outside of it, about.
const SCHEDULE: f64 = 300.0;

/// How long a worker without tasks looks for some before it sleeps.
const SEARCH: Time = 200_000;

#[derive(Debug)]
struct Channel {
    lock: Line,
    /// The queue's indices and the receiver that waits.
    data: Line,
    ring: Line,
    is_held: Cell<bool>,
    /// When the store of the last unlock reaches the line. The holder itself goes on before.
    freed_at: Cell<Time>,
    sent: Cell<u64>,
    taken: Cell<u64>,
    /// Receivers that wait, by their tasks.
    waiting: RefCell<VecDeque<usize>>,
}

/// Tasks that are ready for one worker.
struct Ready {
    line: Line,
    tasks: RefCell<VecDeque<usize>>,
    sleeper: RefCell<Option<Rc<Thread>>>,
}

pub struct Channels {
    all: Vec<Channel>,
    ready: Vec<Ready>,
    /// A sender chooses the shortest queue, in place of the next.
    looks: bool,
    is_skewed: bool,
    messages: Messages,
}

impl Channels {
    /// Task t receives from channel t modulo the number of channels, and belongs to worker t modulo theirs.
    pub fn new(
        simulator: &Simulator,
        [channels, tasks, workers]: [usize; 3],
        [looks, is_skewed]: [bool; 2],
        messages: u64,
    ) -> Self {
        let channel = |_| Channel {
            lock: simulator.add_lines(1),
            data: simulator.add_lines(1),
            ring: simulator.add_lines(RING as usize),
            is_held: Cell::new(false),
            freed_at: Cell::new(0),
            sent: Cell::new(0),
            taken: Cell::new(0),
            waiting: RefCell::default(),
        };
        let ready = |worker| Ready {
            line: simulator.add_lines(1),
            tasks: RefCell::new((worker..tasks).step_by(workers).collect()),
            sleeper: RefCell::default(),
        };
        Self {
            all: (0..channels).map(channel).collect(),
            ready: (0..workers).map(ready).collect(),
            looks,
            is_skewed,
            messages: Messages::new(messages),
        }
    }

    /// Wakes a task, and its worker if that sleeps.
    async fn schedule(&self, thread: &Thread, task: usize) {
        let ready = &self.ready[task % self.ready.len()];
        thread.instructions(SCHEDULE).await;
        thread.change(ready.line).await;
        ready.tasks.borrow_mut().push_back(task);
        let sleeper = ready.sleeper.borrow_mut().take();
        if let Some(sleeper) = sleeper {
            thread.unpark(&sleeper).await;
        }
    }
}

/// The tries of one thread to get a lock.
struct Locking {
    random: u64,
}

impl Locking {
    /// `RawMutexLock::lock`, `spin_cond`.
    async fn lock(&mut self, thread: &Thread, channel: &Channel) {
        for _ in 0..5 {
            if self.try_lock(thread, channel).await {
                return;
            }
            thread.pause(1).await;
        }
        for spins in (3..).map(|doublings| 1_u64 << doublings) {
            self.random = self.random.wrapping_mul(113).wrapping_add(13);
            thread.pause(64 + self.random % 128).await;
            // Once behind the pause, and twice behind a sleep of no time.
            for _ in 0..3 * spins {
                if self.try_lock(thread, channel).await {
                    return;
                }
            }
            thread.sleep(SLEEP).await;
        }
    }

    async fn try_lock(&self, thread: &Thread, channel: &Channel) -> bool {
        thread.change(channel.lock).await;
        thread.now() >= channel.freed_at.get() && !channel.is_held.replace(true)
    }
}

impl Channel {
    fn slot(&self, index: u64) -> Line {
        Line(self.ring.0 + (index / PER_LINE % RING) as u32)
    }

    /// `RawMutexLock::unlock`: a store. The processor does what comes behind it meanwhile, so a holder locks again at
    /// once.
    fn unlock(&self, thread: &Thread) {
        thread.write(self.lock);
        self.is_held.set(false);
        self.freed_at.set(thread.stores_done());
    }

    /// `Sender::send`. Returns the task to wake, if one waits.
    async fn send(&self, thread: &Thread, locking: &mut Locking) -> Option<usize> {
        locking.lock(thread, self).await;
        thread.read(self.data).await;
        thread.write(self.data);
        thread.write(self.slot(self.sent.get()));
        thread.instructions(SEND).await;
        self.sent.set(self.sent.get() + 1);
        let waiting = self.waiting.borrow_mut().pop_front();
        self.unlock(thread);
        waiting
    }

    /// `AsyncReceiver::recv` of a task, which waits if there is no message. Returns the number of the message.
    async fn receive(&self, thread: &Thread, locking: &mut Locking, task: usize) -> Option<u64> {
        locking.lock(thread, self).await;
        thread.read(self.data).await;
        thread.write(self.data);
        let index = self.taken.get();
        let has_message = index < self.sent.get();
        if has_message {
            thread.read_ahead(self.slot(index)).await;
            self.taken.set(index + 1);
        } else {
            self.waiting.borrow_mut().push_back(task);
        }
        thread.instructions(RECEIVE).await;
        self.unlock(thread);
        has_message.then_some(index)
    }
}

/// A thread that sends to the channels in turn, or to the shortest.
pub async fn send(channels: Rc<Channels>, thread: Rc<Thread>, number: usize) {
    let mut locking = Locking { random: number as u64 };
    let mut next = number;
    while channels.messages.send() {
        next = (next + 1) % channels.all.len();
        if channels.looks {
            // The lengths, read without the lock.
            thread.read_all(channels.all.iter().map(|channel| channel.data)).await;
            let order = (next..channels.all.len()).chain(0..next);
            let length =
                |number: &usize| channels.all[*number].sent.get() - channels.all[*number].taken.get();
            next = order.min_by_key(length).unwrap_or(next);
        }
        if let Some(task) = channels.all[next].send(&thread, &mut locking).await {
            channels.schedule(&thread, task).await;
        }
    }
}

/// A worker, which runs tasks that receive until their channel is empty.
pub async fn work(channels: Rc<Channels>, thread: Rc<Thread>, number: usize) {
    let mut locking = Locking { random: 7 * number as u64 + 3 };
    loop {
        let task = next_task(&channels.ready[number], &thread).await;
        let channel = &channels.all[task % channels.all.len()];
        while let Some(index) = channel.receive(&thread, &mut locking, task).await {
            let handler = if channels.is_skewed { skewed_work(index) } else { 0.0 };
            thread.instructions(handler).await;
            channels.messages.handle(&thread);
        }
    }
}

async fn next_task(ready: &Ready, thread: &Rc<Thread>) -> usize {
    let mut ends = thread.now() + SEARCH;
    loop {
        thread.read(ready.line).await;
        let task = ready.tasks.borrow_mut().pop_front();
        if let Some(task) = task {
            thread.change(ready.line).await;
            return task;
        }
        if thread.now() < ends {
            thread.pause(16).await;
        } else {
            *ready.sleeper.borrow_mut() = Some(thread.clone());
            thread.park().await;
            ends = thread.now() + SEARCH;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Channels, Locking, SLEEP};
    use crate::machine::XEON;
    use crate::threads::{Ended, Simulator};
    use std::rc::Rc;

    /// A thread has the lock of a channel for so many nanoseconds; the run ends when another thread gets it.
    fn waits(held: f64) -> Ended {
        let mut simulator = Simulator::new(XEON, 2, 0);
        let channels = Rc::new(Channels::new(&simulator, [1, 0, 1], [false; 2], 0));
        for number in 0..2 {
            let channels = channels.clone();
            simulator.add(|thread| async move {
                thread.work(number as f64).await;
                Locking { random: 0 }.lock(&thread, &channels.all[0]).await;
                if number == 1 {
                    return thread.finish();
                }
                thread.work(held).await;
                channels.all[0].unlock(&thread);
            });
        }
        simulator.run()
    }

    #[test]
    fn a_thread_spins_behind_a_short_holder_and_sleeps_behind_a_long_one() {
        let short = waits(300.0);
        assert!(short.is_finished && short.time < 2_500_000, "it has spun: {short:?}");
        let long = waits(500_000.0);
        assert!(long.is_finished && (SLEEP..SLEEP + 10_000_000).contains(&long.time), "{long:?}");
    }

    /// A thread locks a channel a thousand times; another one tries in vain so many times.
    fn locks(tries: u64) -> Ended {
        let mut simulator = Simulator::new(XEON, 2, 0);
        let channels = Rc::new(Channels::new(&simulator, [1, 0, 1], [false; 2], 0));
        let tried = channels.clone();
        simulator.add(|thread| async move {
            for _ in 0..1000 {
                Locking { random: 0 }.lock(&thread, &channels.all[0]).await;
                thread.work(10.0).await;
                channels.all[0].unlock(&thread);
            }
            thread.finish();
        });
        simulator.add(|thread| async move {
            for _ in 0..tries {
                thread.change(tried.all[0].lock).await;
            }
        });
        simulator.run()
    }

    #[test]
    fn a_vain_try_takes_the_line_from_the_holder() {
        let (alone, disturbed) = (locks(0), locks(u64::MAX));
        assert_eq!(alone.moves, 0);
        assert!(disturbed.moves > 500 && disturbed.time > 2 * alone.time, "{alone:?} {disturbed:?}");
    }
}
