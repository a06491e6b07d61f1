//! The outcome of each line, counted.
//!
//! A line enters with a [`Ticket`] and keeps it through all stages. The stage that is done with the line says so to the
//! ticket; a ticket that is dropped otherwise says itself that its line is lost, and whether to a panic. So each line
//! that was read is counted once, whatever happens to it.

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
    is_settled: bool,
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
        Self { books: books.clone(), place: None, is_settled: false }
    }

    /// The line has this place from now on.
    pub fn has_place(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }

    /// The line is in a file.
    pub fn written(mut self) {
        self.books.written.add(1);
        self.is_settled = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_settled {
            let books = &self.books;
            let fate = if std::thread::panicking() { &books.panicked } else { &books.lost };
            fate.add(1);
        }
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
