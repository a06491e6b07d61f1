//! A dumper limits the rate of records, queues them, and writes them on a thread of its own.

use crate::core::system::SystemRef;
use crate::dump::record::{DumpDirection, DumpRecord, OmittedAtEnd, text_of};
use crate::failure::{Failure, guarded};
use crate::scheduler::affinity::unpinned;
use crate::sync::{Condvar, Mutex, MutexGuard, lock, thread};
use crate::util::panic::drop_guarded;
use crate::util::stderr_log::{StderrLog, report};
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc as StdArc;
use std::time::{Duration, SystemTime};

const LINES_PER_SECOND: u32 = 100_000;
const TEXT_LIMIT: usize = 64 * 1024;
const QUEUE_LIMIT: usize = 8 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// A dumper takes records of messages from the actors, references and routes that were made with it, and writes them
/// elsewhere: see the [module](crate::dump). A clone is another handle to the same dumper.
///
/// Records are queued, so no actor waits for the file. A record for which the rate or the queue leaves no room is omitted
/// and counted: the next record says how many were. When the last handle is dropped, the thread of the dumper writes the
/// rest and ends; dumped actors and routes have handles. A program that is about to exit calls [`flush`](Self::flush).
#[derive(Clone)]
pub struct Dumper {
    shared: StdArc<Shared>,
    /// The last handle to be dropped closes the queue.
    _closes: StdArc<Closes>,
}

struct Shared {
    system: SystemRef,
    /// The time of the machine when the time of the system was `start`.
    base: SystemTime,
    start: Duration,
    lines_per_second: u32,
    text_limit: usize,
    queue_limit: usize,
    state: Mutex<State>,
    /// Signalled when there is a record, when the queue is closed, and when the thread has written all.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<DumpRecord>,
    /// Records that have a place in the queue and whose text is being made.
    reserved: usize,
    /// The beginning of the present second, and how many records it has had.
    second: Duration,
    in_second: u32,
    /// Records omitted since the last one that was not.
    omitted: u64,
    counts: DumpCounts,
    is_writing: bool,
    is_closed: bool,
}

/// The numbers of records of a [`Dumper`] so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpCounts {
    /// Records that were written, or taken by the function.
    pub written: u64,
    /// Records that were omitted because of the rate or of a full queue.
    pub omitted: u64,
    /// Records that were lost because the file could not be written or the function panicked. The first loss is in the
    /// log.
    pub lost: u64,
}

struct Closes(StdArc<Shared>);

impl Drop for Closes {
    fn drop(&mut self) {
        lock(&self.0.state).is_closed = true;
        self.0.changed.notify_all();
    }
}

/// A dumper builder has the limits of a [`Dumper`].
#[derive(Debug, Clone)]
#[must_use = "nothing is dumped before `to_file`, `to_writer` or `to_fn`"]
pub struct DumperBuilder {
    system: SystemRef,
    lines_per_second: u32,
    text_limit: usize,
    queue_limit: usize,
}

/// The end of a record's way.
trait Sink: Send {
    fn take(&mut self, record: &DumpRecord) -> Result<(), Failure>;

    /// Runs when there is no further record for now.
    fn rest(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn end(&mut self, omitted: &OmittedAtEnd) -> Result<(), Failure> {
        let _ = omitted;
        Ok(())
    }
}

struct ToFn<F>(F);

impl<F: FnMut(&DumpRecord) + Send> Sink for ToFn<F> {
    fn take(&mut self, record: &DumpRecord) -> Result<(), Failure> {
        (self.0)(record);
        Ok(())
    }
}

struct ToWriter<W>(W);

impl<W: Write + Send> Sink for ToWriter<W> {
    fn take(&mut self, record: &DumpRecord) -> Result<(), Failure> {
        Ok(writeln!(self.0, "{record}")?)
    }

    fn rest(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    fn end(&mut self, omitted: &OmittedAtEnd) -> Result<(), Failure> {
        writeln!(self.0, "{omitted}")?;
        Ok(self.0.flush()?)
    }
}

impl DumperBuilder {
    /// Sets how many records are written in a second, by the system's clock; 100,000 by default. The others are omitted
    /// and counted. 0 omits all.
    pub fn lines_per_second(mut self, lines: u32) -> Self {
        self.lines_per_second = lines;
        self
    }

    /// Sets how many bytes of a message's text are kept; 64 KiB by default. The rest is cut and counted.
    pub fn text_limit(mut self, bytes: usize) -> Self {
        self.text_limit = bytes;
        self
    }

    /// Sets how many records may wait for the thread that writes them, at least 1; 8,192 by default. The others are
    /// omitted and counted.
    pub fn queue_limit(mut self, records: usize) -> Self {
        self.queue_limit = records.max(1);
        self
    }

    /// Appends lines to a file, which is created if it is absent.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or the operating system refuses a thread.
    pub fn to_file(self, path: impl AsRef<Path>) -> io::Result<Dumper> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        self.to_writer(BufWriter::new(file))
    }

    /// Writes lines to this writer, which is flushed whenever no further record waits.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub fn to_writer(self, writer: impl Write + Send + 'static) -> io::Result<Dumper> {
        self.begin(ToWriter(writer))
    }

    /// Calls a function with each record, on the thread of the dumper.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub fn to_fn(self, function: impl FnMut(&DumpRecord) + Send + 'static) -> io::Result<Dumper> {
        self.begin(ToFn(function))
    }

    fn begin(self, sink: impl Sink + 'static) -> io::Result<Dumper> {
        let Self { system, lines_per_second, text_limit, queue_limit } = self;
        let (base, start) = (SystemTime::now(), system.now());
        let state = Mutex::new(State { second: start, ..State::default() });
        let changed = Condvar::new();
        let name = format!("{}-dump", system.name());
        let shared =
            Shared { system, base, start, lines_per_second, text_limit, queue_limit, state, changed };
        let shared = StdArc::new(shared);
        let write = {
            let shared = shared.clone();
            move || shared.write(sink)
        };
        thread::Builder::new().name(name).spawn(unpinned(write))?;
        Ok(Dumper { _closes: StdArc::new(Closes(shared.clone())), shared })
    }
}

impl Dumper {
    /// Begins to describe a dumper of messages of this system.
    pub fn builder(system: &SystemRef) -> DumperBuilder {
        DumperBuilder {
            system: system.clone(),
            lines_per_second: LINES_PER_SECOND,
            text_limit: TEXT_LIMIT,
            queue_limit: QUEUE_LIMIT,
        }
    }

    /// Dumps a message.
    pub(crate) fn dump<M: Debug>(
        &self,
        direction: DumpDirection,
        message: &M,
        place: impl FnOnce() -> (String, Option<String>),
    ) {
        let shared = &*self.shared;
        let now = shared.system.now();
        let Some(omitted) = shared.reserve(now) else { return };
        let (message, cut) = text_of(message, shared.text_limit);
        let (path, to) = place();
        let (time, message_type) = (shared.time_at(now), std::any::type_name::<M>());
        let record = DumpRecord { time, direction, path, to, message_type, message, cut, omitted };
        let mut state = lock(&shared.state);
        state.reserved -= 1;
        state.queue.push_back(record);
        drop(state);
        shared.changed.notify_all();
    }

    /// Returns the numbers of records so far.
    pub fn counts(&self) -> DumpCounts {
        lock(&self.shared.state).counts
    }

    /// Waits until all records that were made before are written. Blocks the thread for as long as the file does, so it
    /// is not for actors.
    pub fn flush(&self) {
        let mut state = lock(&self.shared.state);
        while state.is_writing || state.reserved > 0 || !state.queue.is_empty() {
            state = self.shared.wait(state);
        }
    }
}

impl Shared {
    fn time_at(&self, now: Duration) -> SystemTime {
        self.base + now.saturating_sub(self.start)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes a place in the queue and in the present second, and returns how many records were omitted before; `None` if
    /// there is no place.
    fn reserve(&self, now: Duration) -> Option<u64> {
        let mut state = lock(&self.state);
        if now.saturating_sub(state.second) >= SECOND {
            (state.second, state.in_second) = (now, 0);
        }
        if state.in_second >= self.lines_per_second || state.queue.len() + state.reserved >= self.queue_limit
        {
            state.omitted += 1;
            state.counts.omitted += 1;
            return None;
        }
        state.in_second += 1;
        state.reserved += 1;
        Some(std::mem::take(&mut state.omitted))
    }

    /// The thread of the dumper.
    fn write(&self, mut sink: impl Sink) {
        let mut has_failed = false;
        loop {
            let mut state = lock(&self.state);
            while state.queue.is_empty() && !state.is_closed {
                state = self.wait(state);
            }
            let records = std::mem::take(&mut state.queue);
            if records.is_empty() {
                let (omitted, time) = (state.omitted, self.time_at(self.system.now()));
                drop(state);
                if omitted > 0 {
                    self.note(guarded(|| sink.end(&OmittedAtEnd { time, omitted })), &mut has_failed);
                }
                drop_guarded(sink);
                return;
            }
            state.is_writing = true;
            drop(state);
            let (mut written, mut lost) = (0, 0);
            for record in &records {
                match self.note(guarded(|| sink.take(record)), &mut has_failed) {
                    true => written += 1,
                    false => lost += 1,
                }
            }
            self.note(guarded(|| sink.rest()), &mut has_failed);
            let mut state = lock(&self.state);
            state.counts.written += written;
            state.counts.lost += lost;
            state.is_writing = false;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Returns whether it was done; the first failure is logged.
    fn note(&self, done: Result<(), Failure>, has_failed: &mut bool) -> bool {
        let Err(failure) = done else { return true };
        if !std::mem::replace(has_failed, true) {
            let stderr: StderrLog = self.system.core().stderr;
            // The logger is user code.
            let logged = guarded(|| {
                report!(
                    stderr,
                    Warning,
                    log::Level::Error,
                    "system {:?}: a dumper loses records, which its `counts` tell: {failure}",
                    self.system.name()
                );
                Ok(())
            });
            drop_guarded(logged);
        }
        drop_guarded(failure);
        false
    }
}

impl fmt::Debug for Dumper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dumper").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
