//! The workloads: who sends to whom, by which path, on how many cores.

use crate::machine::Machine;
use crate::paths::lock::{self, Channels};
use crate::paths::scheduler::{Pool, Worker};
use crate::paths::senders::{self, Choice};
use crate::paths::shared_queue::{self, Claim, SharedQueue};
use crate::threads::{Ended, Simulator};
use std::rc::Rc;

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Each sender sends to the target of its number, in turn if there are fewer.
    ToOne,
    RoundRobin,
    /// With a skewed handler.
    SmallestMailbox,
    /// With a skewed handler.
    SharedQueue,
}

/// The library that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// With such claims at both ends of a shared queue.
    Pointsman(Claim),
    /// A channel under a lock.
    Lock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    pub workload: Workload,
    pub library: Library,
    pub cores: usize,
    pub senders: usize,
    pub workers: usize,
    /// Actors, or receivers of channels.
    pub targets: usize,
    pub messages: u64,
    pub seed: u64,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Nanoseconds for each message of all senders.
    pub nanoseconds: f64,
    /// Lines that moved for each message.
    pub moves: f64,
}

impl Scenario {
    pub fn run(&self, machine: &Machine) -> Outcome {
        let mut simulator = Simulator::new(*machine, self.cores, self.seed);
        match self.library {
            Library::Pointsman(claim) if self.workload == Workload::SharedQueue => {
                self.add_shared_queue(&mut simulator, claim);
            }
            Library::Pointsman(_) => self.add_actors(&mut simulator),
            Library::Lock => self.add_channels(&mut simulator),
        }
        let Ended { is_finished, time, moves } = simulator.run();
        assert!(is_finished, "messages are left: {self:?}");
        let messages = self.messages as f64;
        Outcome { nanoseconds: time as f64 / 1000.0 / messages, moves: moves as f64 / messages }
    }

    fn is_skewed(&self) -> bool {
        matches!(self.workload, Workload::SmallestMailbox | Workload::SharedQueue)
    }

    fn add_shared_queue(&self, simulator: &mut Simulator, claim: Claim) {
        let queue = Rc::new(SharedQueue::new(simulator, claim, self.workers, self.messages));
        for number in 0..self.workers {
            simulator.add(|thread| shared_queue::take(queue.clone(), thread, number));
        }
        for _ in 0..self.senders {
            simulator.add(|thread| shared_queue::send(queue.clone(), thread));
        }
    }

    fn add_actors(&self, simulator: &mut Simulator) {
        let choice = match self.workload {
            Workload::RoundRobin => Choice::RoundRobin,
            Workload::SmallestMailbox => Choice::SmallestMailbox,
            Workload::ToOne | Workload::SharedQueue => Choice::Direct,
        };
        let pool =
            Rc::new(Pool::new(simulator, [self.workers, self.targets], self.is_skewed(), self.messages));
        for number in 0..self.workers {
            simulator.add(|thread| Worker::new(pool.clone(), thread, number).run());
        }
        for number in 0..self.senders {
            simulator.add(|thread| senders::send(pool.clone(), thread, choice, number));
        }
    }

    fn add_channels(&self, simulator: &mut Simulator) {
        let channels = if self.workload == Workload::SharedQueue { 1 } else { self.targets };
        let flags = [self.workload == Workload::SmallestMailbox, self.is_skewed()];
        let channels = Channels::new(simulator, [channels, self.targets, self.workers], flags, self.messages);
        let channels = Rc::new(channels);
        for number in 0..self.workers {
            simulator.add(|thread| lock::work(channels.clone(), thread, number));
        }
        for number in 0..self.senders {
            simulator.add(|thread| lock::send(channels.clone(), thread, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Library, Outcome, Scenario, Workload};
    use crate::machine::{Machine, XEON};
    use crate::paths::shared_queue::Claim;

    const OURS: Library = Library::Pointsman(Claim::Exchange);
    const ADDING: Library = Library::Pointsman(Claim::Addition);

    fn run_on(machine: &Machine, workload: Workload, library: Library, counts: [usize; 3]) -> Outcome {
        let [senders, workers, targets] = counts;
        let cores = senders + workers;
        Scenario { workload, library, cores, senders, workers, targets, messages: 12_000, seed: 1 }
            .run(machine)
    }

    fn run(workload: Workload, library: Library, counts: [usize; 3]) -> Outcome {
        run_on(&XEON, workload, library, counts)
    }

    #[test]
    fn all_messages_are_handled_and_a_run_is_the_same_each_time() {
        for workload in
            [Workload::ToOne, Workload::RoundRobin, Workload::SmallestMailbox, Workload::SharedQueue]
        {
            for library in [OURS, ADDING, Library::Lock] {
                // Threads outnumber the cores, too.
                for cores in [2, 6] {
                    let scenario = Scenario {
                        workload,
                        library,
                        cores,
                        senders: 3,
                        workers: 2,
                        targets: if workload == Workload::ToOne { 1 } else { 4 },
                        messages: 12_000,
                        seed: 1,
                    };
                    assert_eq!(scenario.run(&XEON), scenario.run(&XEON), "{scenario:?}");
                }
            }
        }
    }

    #[test]
    fn further_senders_to_one_mailbox_neither_help_nor_harm() {
        let [one, some, many] =
            [1, 15, 60].map(|senders| run(Workload::ToOne, OURS, [senders, 1, 1]).nanoseconds);
        assert!(some > 1.5 * one, "they take the line from each other: {one} {some}");
        assert!((some / many - 1.0).abs() < 0.2, "{some} {many}");
    }

    #[test]
    fn the_line_is_the_limit_of_one_mailbox() {
        let slower = XEON.with_slower_lines(2.0);
        let [fast, slow] =
            [&XEON, &slower].map(|machine| run_on(machine, Workload::ToOne, OURS, [15, 1, 1]).nanoseconds);
        assert!((1.7..2.2).contains(&(slow / fast)), "{fast} {slow}");
    }

    #[test]
    fn senders_with_mailboxes_of_their_own_move_fewer_lines() {
        let [one, many] = [1, 7].map(|targets| run(Workload::ToOne, OURS, [7, 1, targets]));
        assert!(many.moves < one.moves / 2.0, "{one:?} {many:?}");
    }

    #[test]
    fn round_robin_gains_from_more_cores() {
        let [few, many] = [4, 16].map(|half| run(Workload::RoundRobin, OURS, [half, half, half]).nanoseconds);
        assert!(many < 0.5 * few, "{few} {many}");
    }

    #[test]
    fn smallest_mailbox_reads_more_lines_the_more_there_are() {
        let [few, many] = [4, 16].map(|half| run(Workload::SmallestMailbox, OURS, [half, half, half]).moves);
        assert!(many > few, "{few} {many}");
    }

    #[test]
    fn many_threads_lose_exchanges_and_no_additions() {
        let [exchanges, additions] =
            [OURS, ADDING].map(|library| run(Workload::SharedQueue, library, [32, 32, 32]).nanoseconds);
        assert!(exchanges > 4.0 * additions, "{exchanges} {additions}");
    }
}
