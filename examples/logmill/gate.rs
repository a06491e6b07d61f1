//! How many lines are in the mill, and what became of each.
//!
//! A line enters with a [`Ticket`] and keeps it through all stages. Whoever is done with the line says so to the
//! ticket; a ticket that is dropped otherwise says itself that its line is lost, and whether to a panic. So each line
//! that was read is counted once, whatever happens to it.
//!
//! Tickets are also what bounds the mill: when all are out, connections wait, read nothing more from their sockets, and
//! TCP makes the senders wait. They go on when half of the tickets are back.

use crate::connection::IntakeMsg;
use pointsman::prelude::*;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The way into the mill.
pub struct Gate {
    lines_max: usize,
    inside: AtomicUsize,
    waiting: Mutex<Vec<ActorRef<IntakeMsg>>>,
    pub books: Books,
}

/// Admits one line, and accounts for it.
#[must_use = "its line is lost when it is dropped"]
pub struct Ticket {
    gate: Arc<Gate>,
    is_settled: bool,
}

/// A number that many threads add to.
#[derive(Default)]
pub struct Count(AtomicU64);

/// What became of the lines.
#[derive(Default)]
pub struct Books {
    pub connections: Count,
    pub bytes: Count,
    /// Lines cut out of the streams.
    pub read: Count,
    /// Empty ones, which are none.
    pub empty: Count,
    /// How often a connection waited for the mill.
    pub waits: Count,
    pub parsed: Count,
    pub unparsable: Count,
    /// Parsed lines that were added to their host's window.
    pub aggregated: Count,
    /// Actors of hosts that were created.
    pub hosts: Count,
    /// Windows that were closed, and the lines in them.
    pub windows: Count,
    pub in_windows: Count,
    /// Lines that are in a file, parsed or raw.
    pub written: Count,
    /// Lines that a panic took down.
    pub panicked: Count,
    /// Lines that nobody can account for: none, unless a deadline was too short or a disk stayed full.
    pub lost: Count,
}

impl Count {
    pub fn add(&self, count: u64) {
        // Ordering: Relaxed; a statistic. It is read when all who add have ended.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// One more; returns how many there are then.
    pub fn next(&self) -> u64 {
        // Ordering: Relaxed; only the number matters.
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn get(&self) -> u64 {
        // Ordering: Relaxed; as above.
        self.0.load(Ordering::Relaxed)
    }
}

impl Gate {
    /// Lets `lines_max` lines in at a time, at least 1.
    pub fn new(lines_max: usize) -> Arc<Gate> {
        Arc::new(Gate {
            lines_max: lines_max.max(1),
            inside: AtomicUsize::new(0),
            waiting: Mutex::new(Vec::new()),
            books: Books::default(),
        })
    }

    /// Those who wait are woken when no more lines than this are left.
    fn low(&self) -> usize {
        self.lines_max / 2
    }

    /// How many lines the first queue may hold: fewer than the mill, and more than are left when the waiting are woken,
    /// so that whoever finds it full will be.
    pub fn queue_capacity(&self) -> usize {
        self.lines_max - self.lines_max / 4
    }

    /// Lets one more line in, unless the mill is full.
    pub fn enter(self: &Arc<Self>) -> Option<Ticket> {
        let one_more = |inside: usize| (inside < self.lines_max).then_some(inside + 1);
        // Ordering: Relaxed; the number alone matters, and the lock below orders what waiting rests on.
        let entered = self.inside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        entered.ok().map(|_| Ticket { gate: self.clone(), is_settled: false })
    }

    /// Has `connection` told once there is room. False if there is room already: nobody is told then.
    pub fn wait(&self, connection: &ActorRef<IntakeMsg>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Ordering: Relaxed. Whoever leaves as the last above the mark takes the lock after that: either it finds us in
        // the list, or we took the lock after it and see what it had done before.
        let must_wait = self.inside.load(Ordering::Relaxed) > self.low();
        if must_wait {
            waiting.push(connection.clone());
        }
        must_wait
    }

    fn leave(&self) {
        // Ordering: Relaxed; as in `wait`.
        if self.inside.fetch_sub(1, Ordering::Relaxed) == self.low() + 1 {
            let woken = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            woken.iter().for_each(|connection| connection.tell(IntakeMsg::Room));
        }
    }
}

impl Ticket {
    /// The line is in a file.
    pub fn written(mut self) {
        self.gate.books.written.add(1);
        self.is_settled = true;
    }

    /// There was no line.
    pub fn unused(mut self) {
        self.is_settled = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_settled {
            let books = &self.gate.books;
            let fate = if std::thread::panicking() { &books.panicked } else { &books.lost };
            fate.add(1);
        }
        self.gate.leave();
    }
}

impl Books {
    /// Whether each line is in one place, and each parsed one in a window.
    pub fn balance(&self) -> bool {
        let [read, written] = [&self.read, &self.written].map(Count::get);
        let [parsed, unparsable] = [&self.parsed, &self.unparsable].map(Count::get);
        read == written + self.panicked.get() + self.lost.get()
            && written == parsed + unparsable
            && [&self.aggregated, &self.in_windows].map(Count::get) == [parsed; 2]
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("read", &self.read, "lines"),
            ("  parsed", &self.parsed, ""),
            ("  unparsable", &self.unparsable, "written as they came"),
            ("  lost to panics", &self.panicked, ""),
            ("  lost otherwise", &self.lost, ""),
            ("aggregated", &self.aggregated, ""),
            ("in closed windows", &self.in_windows, ""),
            ("written", &self.written, ""),
            ("connections", &self.connections, ""),
            ("bytes read", &self.bytes, ""),
            ("empty lines", &self.empty, "not counted as lines"),
            ("waits for room", &self.waits, "a connection read nothing until half of the mill was free"),
            ("hosts created", &self.hosts, ""),
            ("windows", &self.windows, ""),
        ];
        for (name, count, remark) in rows {
            writeln!(f, "{}", format!("{name:<20}{:>12}  {remark}", count.get()).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn each_ticket_counts_once_whatever_becomes_of_it() {
        let gate = Gate::new(3);
        let [one, two, three] = [(); 3].map(|()| gate.enter().expect("room"));
        assert!(gate.enter().is_none());
        one.written();
        drop(two);
        let panicking = std::thread::spawn(move || {
            let _line = three;
            std::panic::resume_unwind(Box::new("a parser's fault"));
        });
        assert!(panicking.join().is_err());
        gate.enter().expect("room again").unused();
        let books = &gate.books;
        assert_eq!([&books.written, &books.lost, &books.panicked].map(Count::get), [1, 1, 1]);
    }

    #[test]
    fn who_waits_is_told_when_half_of_the_tickets_are_back_and_nobody_waits_for_nothing() {
        let (told, messages) = channel();
        let connection = ActorRef::from_fn(move |_: IntakeMsg| told.send(()).expect("the test listens"));
        for max in 1..20 {
            let gate = Gate::new(max);
            let mut tickets: Vec<_> = std::iter::from_fn(|| gate.enter()).collect();
            assert_eq!(tickets.len(), max);
            assert!(gate.queue_capacity() > max / 2 || max == 1);
            assert!(gate.wait(&connection));
            while tickets.len() > max / 2 {
                assert!(messages.try_recv().is_err());
                tickets.pop().expect("some are left").unused();
            }
            assert!(messages.try_recv().is_ok(), "{max}");
            assert!(!gate.wait(&connection), "there is room");
            tickets.into_iter().for_each(Ticket::unused);
            assert!(messages.try_recv().is_err(), "told once");
        }
    }
}
