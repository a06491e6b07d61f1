//! The lines of memory, and which cores have them.
//!
//! One core has a line and may change it, or several cores have it and may read it, as in the protocol MESI. A core
//! without the line asks for it and gets it one transfer later. A line serves one request at a time, in the order of the
//! requests. The core that had the line goes on with it for a part of the transfer, as if nothing had been asked.

use crate::machine::{Machine, Random, Time, picoseconds};

/// The number of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line(pub u32);

/// A use of a line by a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    /// A read that the processor begins early, since no earlier result decides about it.
    ReadAhead,
    /// A read-modify-write.
    Change,
    /// A store, or a prefetch for one. The thread does not wait.
    Write,
    /// A store to a line whose address depends on the read-modify-write before, so the processor cannot ask for it early.
    WriteClaimed,
}

/// Cores that still use a line which another core has asked for: those that had it last.
#[derive(Debug, Clone, Copy)]
struct Retained {
    cores: u128,
    is_exclusive: bool,
    until: Time,
}

#[derive(Debug, Clone, Default)]
struct State {
    /// The cores that have the line, a bit for each; one bit if it is exclusive.
    cores: u128,
    is_exclusive: bool,
    /// The core that has it exclusively has changed it.
    is_changed: bool,
    /// The last transfer ends then.
    arrives: Time,
    changed_at: Time,
    changed_by: usize,
    retained: Option<Retained>,
}

/// All lines of a run.
#[derive(Debug)]
pub struct Lines {
    machine: Machine,
    lines: Vec<State>,
    moves: u64,
    random: Random,
}

impl Lines {
    pub fn new(machine: &Machine, seed: u64) -> Self {
        Self { machine: *machine, lines: Vec::new(), moves: 0, random: Random::new(seed) }
    }

    /// Adds lines that no core has; returns the first.
    pub fn add(&mut self, count: usize) -> Line {
        let first = Line(self.lines.len() as u32);
        self.lines.resize_with(self.lines.len() + count, State::default);
        first
    }

    /// The number of transfers so far.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Lets a core that asks at `now` use a line. Returns the time at which the access is done.
    pub fn access(&mut self, core: usize, line: Line, access: Access, now: Time) -> Time {
        let line = &mut self.lines[line.0 as usize];
        let bit = 1_u128 << core;
        let reads = matches!(access, Access::Read | Access::ReadAhead);
        let own = if access == Access::Change { picoseconds(self.machine.change) } else { 0 };
        if line.cores & bit != 0 && (reads || line.is_exclusive) {
            // A line that was asked for by a store may still be under way.
            let done = if line.is_exclusive { now.max(line.arrives) } else { now };
            if !reads {
                (line.changed_at, line.changed_by, line.is_changed) = (done, core, true);
            }
            return done + own;
        }
        let is_retained = |retained: Retained| {
            now < retained.until && retained.cores & bit != 0 && (reads || retained.is_exclusive)
        };
        if line.retained.is_some_and(is_retained) {
            return now + own;
        }
        if line.cores == 0 {
            // Memory that no core has used yet; the allocation has its own cost.
            (line.cores, line.is_exclusive, line.is_changed, line.changed_at) = (bit, true, !reads, now);
            return now + own;
        }
        self.moves += 1;
        // A line moves to one reader after the other only if it moves from a core that may change it.
        let start = if reads && !line.is_exclusive { now } else { now.max(line.arrives) };
        let is_new = line.changed_at + picoseconds(self.machine.far_read) > now || line.arrives > now;
        let transfer = match access {
            // The processor has asked for the line before now, if the line was ready by then.
            Access::ReadAhead if !is_new => self.machine.ahead,
            Access::Read | Access::ReadAhead => self.machine.far_read,
            Access::WriteClaimed if is_new && line.changed_by != core => self.machine.crowded,
            Access::WriteClaimed => self.machine.far_store,
            Access::Change | Access::Write => self.machine.far_change,
        };
        let arrives = start + picoseconds(transfer);
        if line.is_exclusive || !reads {
            let until = start + self.random.vary(picoseconds(self.machine.retained));
            line.retained = Some(Retained { cores: line.cores, is_exclusive: line.is_exclusive, until });
            line.arrives = arrives;
        }
        if reads && !(line.is_exclusive && line.is_changed) {
            line.cores |= bit;
            line.is_exclusive = false;
        } else {
            // A line that was changed moves as a whole to its first reader, which may change it at once.
            (line.cores, line.is_exclusive, line.is_changed) = (bit, true, !reads);
        }
        if !reads {
            (line.changed_at, line.changed_by) = (arrives, core);
        }
        arrives + own
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Lines};
    use crate::machine::{Machine, Time, XEON};

    const MACHINE: Machine = Machine {
        far_read: 0.04,
        far_change: 0.06,
        far_store: 0.06,
        crowded: 0.09,
        ahead: 0.006,
        change: 0.005,
        retained: 0.03,
        ..XEON
    };

    /// Accesses by core, and the times at which they are asked for and done, all to one line.
    fn check(accesses: &[(usize, Access, Time, Time)]) -> u64 {
        let mut lines = Lines::new(&MACHINE, 0);
        let line = lines.add(1);
        for (number, (core, access, now, done)) in accesses.iter().enumerate() {
            assert_eq!(lines.access(*core, line, *access, *now), *done, "access {number}");
        }
        lines.moves()
    }

    #[test]
    fn a_line_that_a_core_has_costs_the_change_alone() {
        let moves = check(&[(0, Access::Change, 0, 5), (0, Access::Read, 5, 5), (0, Access::Change, 5, 10)]);
        assert_eq!(moves, 0);
    }

    #[test]
    fn a_line_serves_one_core_at_a_time() {
        let moves = check(&[
            (0, Access::Change, 0, 5),
            // Core 0 has the line for 15 to 45 of the transfer of 60.
            (1, Access::Change, 100, 165),
            (0, Access::Change, 114, 119),
            (2, Access::Change, 134, 225),
            (0, Access::Change, 206, 285),
        ]);
        assert_eq!(moves, 3);
    }

    #[test]
    fn several_cores_read_at_once_and_a_change_takes_the_line_from_all() {
        check(&[
            (0, Access::Change, 0, 5),
            (1, Access::Read, 100, 140),
            (2, Access::Read, 200, 240),
            (3, Access::Read, 241, 281),
            (4, Access::Read, 241, 281),
            (0, Access::Change, 300, 365),
            (1, Access::Read, 400, 440),
        ]);
    }

    #[test]
    fn a_read_that_begins_early_waits_for_a_line_that_was_just_changed() {
        check(&[(0, Access::Write, 100, 100), (1, Access::ReadAhead, 139, 179)]);
        check(&[(0, Access::Write, 100, 100), (1, Access::ReadAhead, 140, 146)]);
    }

    #[test]
    fn a_line_that_was_asked_for_early_is_there_when_it_has_arrived() {
        check(&[
            (0, Access::Change, 0, 5),
            (1, Access::Write, 100, 160),
            (1, Access::Change, 110, 165),
            (1, Access::Change, 170, 175),
        ]);
    }
}
