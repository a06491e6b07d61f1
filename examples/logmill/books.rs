//! The outcome of each line, counted.
//!
//! A line enters with a [`Ticket`] and keeps it through all stages. The stage that is done with the line says so to the
//! ticket; a ticket that is dropped otherwise says itself that its line is lost, and whether to a panic. So each line
//! that was read is counted once, whatever happens to it.

use crate::receipts::Receipts;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::OwnedSemaphorePermit;

/// Accounts for one line.
#[must_use = "its line is lost when it is dropped"]
pub struct Ticket {
    books: Arc<Books>,
    /// The line's place in the stages, which is free again when the ticket is gone.
    place: Option<OwnedSemaphorePermit>,
    /// The receipts of the message that has brought the line from another node.
    receipts: Option<Arc<Receipts>>,
    is_settled: bool,
}

/// The outcome of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The line is in a file.
    Written,
    /// A panic has taken it down.
    Panicked,
    /// It was dropped.
    Lost,
    /// It was sent to another node, which has gone before it told of the line.
    InDoubt,
    /// The other node has not taken it.
    HandedBack,
}

/// A number that many threads add to.
#[derive(Default)]
pub struct Count(AtomicU64);

/// The counts of lines by their outcome.
#[derive(Default)]
pub struct Books {
    pub connections: Count,
    pub bytes: Count,
    /// Lines cut out of the streams.
    pub read: Count,
    /// Empty ones, which are none.
    pub empty: Count,
    /// How often a connection waited for room at the entrance.
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
    /// Lines that were sent to another node, which has gone before it told of them.
    pub in_doubt: Count,
    /// Lines that another node has not taken.
    pub handed_back: Count,
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

impl Ticket {
    /// For a line that has been read.
    pub fn new(books: &Arc<Books>) -> Self {
        books.read.add(1);
        Self { books: books.clone(), place: None, receipts: None, is_settled: false }
    }

    /// Makes one for a line that came from another node, whose outcome goes into these receipts.
    pub fn received(books: &Arc<Books>, receipts: &Arc<Receipts>) -> Self {
        let mut ticket = Self::new(books);
        ticket.receipts = Some(receipts.clone());
        ticket
    }

    /// The line has this place from now on.
    pub fn has_place(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }

    /// The line is in a file.
    pub fn written(self) {
        self.settle(Fate::Written);
    }

    /// The line has come to this end.
    pub fn settle(mut self, fate: Fate) {
        self.is_settled = true;
        self.count(fate);
    }

    fn count(&self, fate: Fate) {
        self.books.of(fate).add(1);
        if let Some(receipts) = &self.receipts {
            receipts.count(fate);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_settled {
            self.count(if std::thread::panicking() { Fate::Panicked } else { Fate::Lost });
        }
    }
}

impl Books {
    /// The number of lines that have come to this end.
    fn of(&self, fate: Fate) -> &Count {
        match fate {
            Fate::Written => &self.written,
            Fate::Panicked => &self.panicked,
            Fate::Lost => &self.lost,
            Fate::InDoubt => &self.in_doubt,
            Fate::HandedBack => &self.handed_back,
        }
    }

    /// Whether each line that was read has come to one end.
    pub fn are_complete(&self) -> bool {
        let ends = [&self.written, &self.panicked, &self.lost, &self.in_doubt, &self.handed_back];
        self.read.get() == ends.map(Count::get).iter().sum::<u64>()
    }

    /// Whether each line is in one place, and each parsed one in a window.
    pub fn balance(&self) -> bool {
        let [parsed, unparsable] = [&self.parsed, &self.unparsable].map(Count::get);
        self.are_complete()
            && self.written.get() == parsed + unparsable
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
            ("waits for room", &self.waits, "a connection read nothing until the entrance had room"),
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
    use tokio::sync::Semaphore;

    #[test]
    fn each_ticket_counts_once_whatever_becomes_of_it() {
        let books = Arc::<Books>::default();
        let [one, two, three] = [(); 3].map(|()| Ticket::new(&books));
        one.written();
        drop(two);
        let panicking = std::thread::spawn(move || {
            let _line = three;
            std::panic::resume_unwind(Box::new("a parser's fault"));
        });
        assert!(panicking.join().is_err());
        let Books { read, written, lost, panicked, .. } = &*books;
        assert_eq!([read, written, lost, panicked].map(Count::get), [3, 1, 1, 1]);
    }

    #[test]
    fn a_place_is_free_when_its_line_is_written_or_lost() {
        let (books, places) = (Arc::<Books>::default(), Arc::new(Semaphore::new(2)));
        let [one, two] = [(); 2].map(|()| {
            let mut ticket = Ticket::new(&books);
            ticket.has_place(places.clone().try_acquire_owned().expect("a place"));
            ticket
        });
        assert_eq!(places.available_permits(), 0);
        one.written();
        assert_eq!(places.available_permits(), 1);
        drop(two);
        assert_eq!(places.available_permits(), 2);
    }
}
