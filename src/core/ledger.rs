//! The ledger: it accounts for every message.
//!
//! Each thread has its own counters and counts by a plain load and store. So counting costs about a nanosecond and
//! senders share no cache line. The counters belong to one thread at a time. When that thread ends, the next new thread
//! goes on with them, so the sums never lose anything.
//!
//! Each term is counted at a place of its own; no term is computed as the rest of the others:
//!
//! | term | counted |
//! |---|---|
//! | sent | where a message enters: `tell`, `try_tell`, `ask`; a broadcast to n counts n |
//! | handled | just before a handler gets it |
//! | dead-lettered | where no recipient takes it: refused `tell`s, drained mailboxes |
//! | handed back | where `try_tell` returns it |
//! | dropped | where a full mailbox drops it by its policy |
//! | skipped | where an actor is about to handle it, and its asker or its deadline has gone |
//! | queued | by a walk over all living actors: mailboxes, stashes, inboxes and shared queues |
//!
//! Timer ticks never enter a mailbox and have a term of their own.

use crate::core::ask_counts;
use crate::core::ask_counts::ReplyCounts;
use crate::core::class_counters::ClassCounters;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{CachePadded, Mutex, lock, per_thread, process_wide, thread_index};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::{Arc as StdArc, Weak as StdWeak};

/// The outcomes of all messages of a single system, as [`SystemRef::ledger`](crate::SystemRef::ledger) counted them.
///
/// While messages are on their way, the terms are read one after the other and need not add up. When no message is sent
/// or handled, [`balance`](Self::balance) is 0: no message was lost and none was counted twice.
///
/// There is one exception: a message that enters in one system and ends in another, such as a message that a router of
/// this system gives to a routee of another. It is sent in the ledger of the first and handled in that of the second.
/// Then each balance is off by those messages, also after a shutdown, and the sum of the balances is 0. A send to a
/// reference of another system is not among them: both its start and its end are in the other system's ledger.
///
/// A broadcast to n routees is n deliveries; a message that a router routes again stays one; a request is a
/// message, its reply is not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledger {
    /// Messages that entered.
    pub sent: u64,
    /// Messages that a handler got, regardless of its result.
    pub handled: u64,
    /// Messages that no recipient took. Each was shown to the subscribers of dead letters, with the exceptions named at
    /// [`subscribe`](crate::dead_letters::DeadLetters::subscribe).
    pub dead_lettered: u64,
    /// Messages that `try_tell` gave back, and those that a dropped [`SendFuture`](crate::actor::SendFuture) gave up.
    pub handed_back: u64,
    /// Messages that a full mailbox dropped by its policy.
    pub dropped: u64,
    /// Messages that were unwanted when their turn came, in actors that [skip](crate::Context::skip_unwanted)
    /// them. Each was shown to the subscribers of dead letters, with the reason
    /// [`Expired`](crate::DeadLetterReason::Expired), and is not in `dead_lettered`.
    pub skipped: u64,
    /// Messages in the mailboxes now, in stashes, in [inboxes](crate::pattern::Inbox), and in the queues of
    /// [balancing pools](crate::routing::Balancing), and those that wait to leave for other nodes.
    pub queued: u64,
    /// Messages that were handed to the engine of this [node](crate::SystemRef::address), for another node.
    pub shipped: u64,
    /// Messages that came from another node.
    pub received: u64,
    /// Timer ticks handled, which are in no other term.
    pub ticked: u64,
    /// The outcomes of asks. Their requests are messages and in the terms above; their replies are not.
    pub asks: ReplyCounts,
}

impl Ledger {
    /// The number of messages sent and received without those accounted for: 0 at quiescence. It is off by the messages that have
    /// gone from one [system to another](Self) on their way; the balances of both systems sum to 0.
    #[doc(alias = "is_balanced")]
    pub fn balance(&self) -> i64 {
        let ended = self.handled + self.dead_lettered + self.handed_back + self.dropped + self.skipped;
        let accounted = ended + self.queued + self.shipped;
        (self.sent + self.received).wrapping_sub(accounted) as i64
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sent {}", self.sent)?;
        if self.received > 0 {
            write!(f, " + received {}", self.received)?;
        }
        write!(
            f,
            " = handled {} + dead-lettered {} + handed back {} + dropped {} + skipped {} + queued {}",
            self.handled, self.dead_lettered, self.handed_back, self.dropped, self.skipped, self.queued
        )?;
        if self.shipped > 0 {
            write!(f, " + shipped {}", self.shipped)?;
        }
        write!(f, " (balance {})", self.balance())
    }
}

/// The counters of a single thread.
#[derive(Default)]
pub(crate) struct ThreadCounters {
    counts: CachePadded<Counts>,
    /// The number of the thread that has these counters, or had them last, and one.
    thread: AtomicUsize,
    classes: ClassCounters,
}

#[derive(Debug, Default)]
struct Counts {
    /// Whether several threads add to it: those whose thread-locals are gone. In the cache line that is written anyway.
    shared: bool,
    sent: AtomicU64,
    handled: AtomicU64,
    dead_lettered: AtomicU64,
    handed_back: AtomicU64,
    dropped: AtomicU64,
    skipped: AtomicU64,
    ticked: AtomicU64,
    asks: [AtomicU64; ask_counts::ROW_COUNT],
    received: AtomicU64,
    /// Messages among the handled that no actor had: those of functions and other recipients.
    handled_outside: AtomicU64,
    /// The actions of actors beside handling messages: control taken and acted upon, creations. Grows only.
    worked: AtomicU64,
    /// Actors that were created, and actors that have ended.
    begun: AtomicU64,
    ended: AtomicU64,
    /// Last steps of actors, begun and done.
    ends_begun: AtomicU64,
    ends_done: AtomicU64,
}

/// The work of all actors so far, thread by thread. Two equal values enclose a time in which no actor has begun to
/// handle, act, start or end.
#[cfg(any(feature = "testkit", pointsman_loom))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// The work and the handled messages of each thread. Compared one by one: the count of handled messages sometimes
    /// goes back.
    rows: Vec<(u64, u64)>,
    ends: u64,
}

macro_rules! adders {
    ($($name:ident)*) => {
        $(
            #[inline]
            pub(crate) fn $name(&self, count: u64) {
                self.add(&self.counts.$name, count);
            }
        )*
    };
}

impl ThreadCounters {
    adders! {
        sent handled handled_outside dead_lettered handed_back dropped skipped ticked worked begun ended ends_begun ends_done
    }

    /// Counts messages that came from another node.
    #[cfg(feature = "remote")]
    pub(crate) fn received(&self, count: u64) {
        self.add(&self.counts.received, count);
    }

    /// Counts the outcome of an ask.
    #[inline]
    pub(crate) fn ask(&self, kind: ask_counts::AskCounter) {
        self.add(&self.counts.asks[kind as usize], 1);
    }

    /// Counts a message as handled that no actor had.
    pub(crate) fn handled_by_function(&self) {
        self.handled_outside(1);
        self.handled(1);
    }

    /// The counts by class.
    pub(crate) fn classes(&self) -> &ClassCounters {
        &self.classes
    }

    /// Whether several threads have these counters.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.counts.shared
    }

    /// Adds to a counter of these counters that this file does not know.
    #[inline]
    pub(crate) fn add_to(&self, counter: &AtomicU64, count: u64) {
        self.add(counter, count);
    }

    /// Reads a counter that `add_to` adds to.
    pub(crate) fn read(counter: &AtomicU64) -> u64 {
        // Ordering: Acquire; pairs with the Release store of `add`: a thread that finds the messages of an ended actor in its
        // class finds the actor settled.
        counter.load(Ordering::Acquire)
    }

    /// All that the thread has done for actors: it changes with each message, tick and piece of control.
    pub(crate) fn progress(&self) -> u64 {
        // Ordering: Relaxed; statistics.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counts { handled, skipped, ticked, worked, dead_lettered, .. } = &*self.counts;
        [handled, skipped, ticked, worked, dead_lettered].map(read).into_iter().fold(0, u64::wrapping_add)
    }

    /// Returns the number of messages that were counted as handled here so far.
    #[inline]
    pub(crate) fn handled_so_far(&self) -> u64 {
        self.counts.handled.load(Ordering::Relaxed)
    }

    /// Counts fewer messages as handled: a handler could not keep the messages that it had got.
    pub(crate) fn subtract_handled(&self, count: u64) {
        // Work before and after: `Counters::work` is never equal across a step back.
        self.worked(1);
        // The sum of all rows wraps, too.
        self.add(&self.counts.handled, count.wrapping_neg());
        self.worked(1);
    }

    /// Counts fewer messages as sent: requests that wait with their askers are not sent yet.
    pub(crate) fn subtract_sent(&self, count: u64) {
        // The sum of all rows wraps, too.
        self.add(&self.counts.sent, count.wrapping_neg());
    }

    #[inline]
    fn add(&self, counter: &AtomicU64, count: u64) {
        if self.counts.shared {
            // Ordering: Release; as in `add_own`.
            counter.fetch_add(count, Ordering::Release);
        } else {
            add_own(counter, count);
        }
    }
}

/// Adds to a counter that the calling thread alone writes.
#[inline]
pub(crate) fn add_own(counter: &AtomicU64, count: u64) {
    // The load sees the latest value. Ordering: Release; pairs with the Acquire loads of `Counters::sum` and
    // `Counters::work`: a thread that sees a message handled also sees it sent.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Release);
}

/// The thread counters of a single system.
pub(crate) struct Counters {
    id: u64,
    registry: StdArc<CounterRegistry>,
    /// For threads whose thread-locals are gone.
    common: ThreadCounters,
}

#[derive(Default)]
struct CounterRegistry {
    rows: Mutex<CounterRows>,
}

#[derive(Default)]
struct CounterRows {
    /// Behind a pointer, so thread counters stay in their place.
    all: Vec<StdArc<ThreadCounters>>,
    /// Thread counters whose thread has ended.
    free: Vec<StdArc<ThreadCounters>>,
}

process_wide! {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
}

per_thread! {
    /// The counters used last on this thread, and its thread counters there. The thread counters are alive as long as
    /// the counters of this number are, and numbers are never used again.
    static LATEST: Cell<(u64, *const ThreadCounters)> = Cell::new((0, std::ptr::null()));
}

per_thread! {
    static LEASES: CounterRegistrations = CounterRegistrations(RefCell::new(Vec::new()));
}

/// The thread counters that this thread writes; given back when it ends.
struct CounterRegistrations(RefCell<Vec<CounterRegistration>>);

/// The number of some counters, their registry, and the thread counters of this thread.
type CounterRegistration = (u64, StdWeak<CounterRegistry>, StdArc<ThreadCounters>);

impl Drop for CounterRegistrations {
    fn drop(&mut self) {
        // Destructors of other thread-locals may still send: they must not use thread counters that have a new writer.
        let _ = LATEST.try_with(|latest| latest.set((0, std::ptr::null())));
        for (_, registry, row) in self.0.get_mut().drain(..) {
            if let Some(registry) = registry.upgrade() {
                lock(&registry.rows).free.push(row);
            }
        }
    }
}

/// Counts a late reply, in the thread counters that this thread used last.
#[inline]
pub(crate) fn count_late() {
    let latest = LATEST.try_with(Cell::get).map_or(std::ptr::null(), |(_, row)| row);
    // SAFETY: not null only after `find` stored thread counters that this thread's registrations keep alive. The
    // registrations let go of thread counters only in `find`, which then stores others, and when they are dropped,
    // which stores null.
    let row = unsafe { latest.as_ref() };
    if let Some(row) = row {
        row.ask(ask_counts::AskCounter::Late);
    }
}

impl Counters {
    pub(crate) fn new() -> Self {
        // Ordering: Relaxed; only uniqueness matters.
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let counts = Counts { shared: true, ..Counts::default() };
        let counts = CachePadded::new(counts);
        Self {
            id,
            registry: StdArc::default(),
            common: ThreadCounters { counts, ..ThreadCounters::default() },
        }
    }

    /// Counts a message as sent by the calling thread.
    #[inline]
    pub(crate) fn count_sent(&self) {
        match LATEST.try_with(Cell::get) {
            Ok((id, row)) if id == self.id => {
                // SAFETY: as in `for_this_thread`. `LATEST` names no shared counters.
                add_own(&unsafe { &*row }.counts.sent, 1);
            }
            _ => self.find().sent(1),
        }
    }

    /// Returns the thread counters of the calling thread.
    #[inline]
    pub(crate) fn for_this_thread(&self) -> &ThreadCounters {
        match LATEST.try_with(Cell::get) {
            Ok((id, row)) if id == self.id => {
                // SAFETY: the pair was stored by `find` for counters of this number, which are these; their registry
                // keeps all thread counters for as long as they live.
                unsafe { &*row }
            }
            _ => self.find(),
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> &ThreadCounters {
        let found = LEASES.try_with(|leases| {
            let mut leases = leases.0.borrow_mut();
            if let Some((_, _, row)) = leases.iter().find(|(id, ..)| *id == self.id) {
                return StdArc::as_ptr(row);
            }
            // Counters that are gone need no registration.
            leases.retain(|(_, registry, _)| registry.strong_count() > 0);
            let row = {
                let mut rows = lock(&self.registry.rows);
                rows.free.pop().unwrap_or_else(|| {
                    let row = StdArc::new(ThreadCounters::default());
                    rows.all.push(row.clone());
                    row
                })
            };
            let number = thread_index::current().map_or(0, |number| number + 1);
            // Ordering: Relaxed; a statistic.
            row.thread.store(number, Ordering::Relaxed);
            let pointer = StdArc::as_ptr(&row);
            leases.push((self.id, StdArc::downgrade(&self.registry), row));
            pointer
        });
        match found {
            Ok(row) => {
                let _ = LATEST.try_with(|latest| latest.set((self.id, row)));
                // SAFETY: the registry of these counters keeps the thread counters.
                unsafe { &*row }
            }
            Err(_) => &self.common,
        }
    }

    /// Returns the work of all actors by now, to be compared with [`work_after`](Self::work_after).
    #[cfg(any(feature = "testkit", pointsman_loom))]
    pub(crate) fn work_before(&self) -> Work {
        self.work(|counts| &counts.ends_done)
    }

    /// Returns the work as [`work_before`](Self::work_before) does, for the end of the time in between: an end that has
    /// begun by now and was not done by then makes a difference.
    #[cfg(any(feature = "testkit", pointsman_loom))]
    pub(crate) fn work_after(&self) -> Work {
        self.work(|counts| &counts.ends_begun)
    }

    #[cfg(any(feature = "testkit", pointsman_loom))]
    fn work(&self, ends: fn(&Counts) -> &AtomicU64) -> Work {
        let rows = lock(&self.registry.rows).all.clone();
        let all = || rows.iter().map(|row| &row.counts).chain([&self.common.counts]);
        // Ordering: Acquire in each; pairs with the Release store of `ThreadCounters::add`. The caller sees the actions
        // of each thread before its last count, and their causes.
        let read = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        // A skipped message is dropped, which may fail an ask.
        let done = |counts: &Counts| read(&counts.handled).wrapping_add(read(&counts.skipped));
        Work {
            rows: all().map(|counts| (read(&counts.worked), done(counts))).collect(),
            ends: all().map(|counts| read(ends(counts))).sum(),
        }
    }

    /// The number of actors that have not ended.
    pub(crate) fn living(&self) -> usize {
        let total = |counter: fn(&Counts) -> &AtomicU64| {
            let rows = lock(&self.registry.rows).all.clone();
            let all = rows.iter().map(|row| &row.counts).chain([&self.common.counts]);
            // Ordering: Acquire; pairs with the Release store of `ThreadCounters::add`: a thread that sees an end also
            // sees the beginning.
            all.map(|counts| counter(counts).load(Ordering::Acquire)).fold(0, u64::wrapping_add)
        };
        // The ends first: an actor whose end is counted here is counted among the beginnings, too.
        let ended = total(|counts| &counts.ended);
        total(|counts| &counts.begun).wrapping_sub(ended) as usize
    }

    /// Calls `see` with the counters of each thread.
    pub(crate) fn each(&self, mut see: impl FnMut(&ThreadCounters)) {
        let rows = lock(&self.registry.rows).all.clone();
        rows.iter().for_each(|row| see(row));
        see(&self.common);
    }

    /// Returns the sum of a count over the counters that the thread of this number has, and those that another thread of
    /// this number had last.
    pub(crate) fn of_thread(&self, number: usize, count: impl Fn(&ThreadCounters) -> u64) -> u64 {
        let mut sum = 0_u64;
        self.each(|row| {
            // Ordering: Relaxed; a statistic.
            if row.thread.load(Ordering::Relaxed) == number + 1 {
                sum = sum.wrapping_add(count(row));
            }
        });
        sum
    }

    /// Returns the numbers of actors that were created, and that have ended, and of messages that no actor had.
    pub(crate) fn lives(&self) -> (u64, u64, u64) {
        let (mut begun, mut ended, mut outside) = (0_u64, 0_u64, 0_u64);
        // Ordering: Acquire; as in `living`.
        self.each(|row| {
            ended = ended.wrapping_add(row.counts.ended.load(Ordering::Acquire));
            outside = outside.wrapping_add(row.counts.handled_outside.load(Ordering::Acquire));
        });
        // Ordering: Acquire; as in `living`.
        self.each(|row| begun = begun.wrapping_add(row.counts.begun.load(Ordering::Acquire)));
        (begun, ended, outside)
    }

    /// Adds up all thread counters. `queued` is left 0: the counters do not know the mailboxes.
    pub(crate) fn sum(&self) -> Ledger {
        let rows = lock(&self.registry.rows).all.clone();
        let mut ledger = Ledger::default();
        let all = || rows.iter().map(|row| &**row).chain([&self.common]);
        // Ordering: Acquire in each; pairs with the Release store of `ThreadCounters::add`. The outcomes of messages
        // are read before the sends, so a balance taken meanwhile is never below the number of messages on their way.
        let total = |counter: fn(&Counts) -> &AtomicU64| {
            all().map(|row| counter(&row.counts).load(Ordering::Acquire)).fold(0, u64::wrapping_add)
        };
        ledger.handled = total(|counts| &counts.handled);
        ledger.dead_lettered = total(|counts| &counts.dead_lettered);
        ledger.handed_back = total(|counts| &counts.handed_back);
        ledger.dropped = total(|counts| &counts.dropped);
        ledger.skipped = total(|counts| &counts.skipped);
        ledger.ticked = total(|counts| &counts.ticked);
        ledger.asks = ReplyCounts::from_rows(|row| {
            // Ordering: Acquire; as above, of asks that have ended and begun.
            all().map(|one| one.counts.asks[row as usize].load(Ordering::Acquire)).sum()
        });
        ledger.received = total(|counts| &counts.received);
        ledger.sent = total(|counts| &counts.sent);
        ledger
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn rows_of_ended_threads_stay_in_the_sum_and_are_used_again() {
        let counters = StdArc::new(Counters::new());
        for _ in 0..10 {
            let counters = counters.clone();
            thread::spawn(move || counters.for_this_thread().sent(3)).join().expect("no panic");
        }
        assert_eq!(counters.sum().sent, 30);
        assert_eq!(lock(&counters.registry.rows).all.len(), 1);
    }

    #[test]
    fn two_books_on_one_thread_stay_apart() {
        let (first, second) = (Counters::new(), Counters::new());
        for _ in 0..5 {
            first.for_this_thread().sent(1);
            second.for_this_thread().handled(1);
        }
        assert_eq!((first.sum().sent, first.sum().handled), (5, 0));
        assert_eq!((second.sum().sent, second.sum().handled), (0, 5));
    }

    /// Counts a late reply when its thread ends.
    struct LastWords;

    impl Drop for LastWords {
        fn drop(&mut self) {
            count_late();
        }
    }

    // The platform decides the order in which they are dropped: one before the thread counters are given back, one
    // after.
    thread_local! {
        static FIRST: LastWords = const { LastWords };
        static LAST: LastWords = const { LastWords };
    }

    #[test]
    fn a_late_reply_finds_the_row_that_its_thread_used_last_though_the_books_are_gone() {
        let late = |counters: &Counters| counters.sum().asks.late;
        thread::spawn(move || {
            FIRST.with(|_| ());
            count_late(); // no row yet
            let (first, second) = (Counters::new(), Counters::new());
            first.for_this_thread();
            count_late();
            assert_eq!(late(&first), 1);
            drop(first);
            count_late();
            // This call gives up the registration of the first counters.
            second.for_this_thread();
            count_late();
            assert_eq!(late(&second), 1);
            LAST.with(|_| ());
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_balance_is_what_is_missing() {
        let ledger = Ledger { sent: 10, handled: 4, dead_lettered: 3, dropped: 1, ..Ledger::default() };
        assert_eq!(ledger.balance(), 2);
        assert!(ledger.to_string().ends_with("(balance 2)"));
    }
}
