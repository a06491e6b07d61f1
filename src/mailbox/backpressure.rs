//! Where senders wait for room in a bounded mailbox.
//!
//! A sender announces itself, then looks for room once more; the owner makes room, then looks for announced
//! senders. Between the two halves of either side lies a `SeqCst` fence, so one of them sees the other:
//! the sender's fence first, and the owner finds the announcement and notifies; the owner's first, and the
//! sender finds the room. A notification between the sender's last look and its sleep is not missed either:
//! it changes the ticket that the sender drew before that look.
//!
//! One unit of room wakes one sender. A sender that gives up at its deadline may have been chosen, so it
//! passes the notification on. Who comes along may take the room first; the chosen one then waits again.
//!
//! A sender that waits for room in several mailboxes has a [`Bell`], which every notification rings, beside waking one
//! of the others: so it takes no notification from them, and has none to pass on.

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Arc, Condvar, Mutex, lock};
use std::time::Instant;

#[derive(Debug)]
pub struct Room {
    /// Senders between announcement and departure.
    waiting: AtomicUsize,
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inside {
    /// Counts notifications.
    ticket: u64,
    /// Of senders who wait for room in several mailboxes.
    bells: Vec<Arc<Bell>>,
}

impl Room {
    pub fn new() -> Self {
        let inside = Mutex::new(Inside { ticket: 0, bells: Vec::new() });
        Self { waiting: AtomicUsize::new(0), inside, changed: Condvar::new() }
    }

    /// Repeats `attempt` until it gives something or the deadline has passed.
    ///
    /// Models have no clock: there a deadline never passes.
    pub fn wait<T>(&self, deadline: Option<Instant>, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
        let _announced = Announced::new(self);
        loop {
            let ticket = lock(&self.inside).ticket;
            if let Some(result) = attempt() {
                return Some(result);
            }
            if !self.sleep(ticket, deadline) {
                let last = attempt();
                if last.is_none() {
                    self.notify(Condvar::notify_one);
                }
                return last;
            }
        }
    }

    /// Sleeps until the ticket changes; false if the deadline passed before.
    fn sleep(&self, ticket: u64, deadline: Option<Instant>) -> bool {
        let mut current = lock(&self.inside);
        while current.ticket == ticket {
            let Some(deadline) = deadline else {
                current = self.changed.wait(current).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            current =
                self.changed.wait_timeout(current, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        true
    }

    /// Owner: `head` has moved.
    #[inline]
    pub fn made(&self) {
        // Ordering: SeqCst; between the store of `head` and the look at `waiting`; mirror of `announce`.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.notify(Condvar::notify_one);
        }
    }

    /// There may be room for all who wait.
    pub fn for_all(&self) {
        self.notify(Condvar::notify_all);
    }

    /// Owner: the mailbox has closed, nobody will find room any more.
    pub fn closed(&self) {
        self.notify(Condvar::notify_all);
    }

    #[cold]
    fn notify(&self, whom: fn(&Condvar)) {
        {
            let mut inside = lock(&self.inside);
            inside.ticket += 1;
            inside.bells.iter().for_each(|bell| bell.ring());
        }
        whom(&self.changed);
    }

    /// Has `bell` rung whenever there may be room, until it is dismissed. To be called before the look for room.
    pub fn enlist(&self, bell: &Arc<Bell>) {
        lock(&self.inside).bells.push(bell.clone());
        self.announce();
    }

    /// Undoes one `enlist`.
    pub fn dismiss(&self, bell: &Arc<Bell>) {
        let mut inside = lock(&self.inside);
        if let Some(index) = inside.bells.iter().position(|other| Arc::ptr_eq(other, bell)) {
            inside.bells.swap_remove(index);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// One more sender waits.
    fn announce(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Ordering: SeqCst; between the announcement and the next look for room; mirror of `Room::made`.
        fence(Ordering::SeqCst);
    }
}

/// Counted in `waiting` for as long as it lives.
struct Announced<'a>(&'a Room);

impl<'a> Announced<'a> {
    fn new(room: &'a Room) -> Self {
        room.announce();
        Self(room)
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a sender listens to that waits for room in several mailboxes.
#[derive(Debug)]
pub struct Bell {
    /// How often it was rung.
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Bell {
    pub fn new() -> Self {
        Self { rung: Mutex::new(0), changed: Condvar::new() }
    }

    pub fn ring(&self) {
        *lock(&self.rung) += 1;
        self.changed.notify_one();
    }

    /// How often it was heard to ring; to be asked before the look for room that comes before [`wait`](Self::wait).
    pub fn heard(&self) -> u64 {
        *lock(&self.rung)
    }

    /// Sleeps until it has rung more often than `heard`, or the deadline has passed.
    pub fn wait(&self, heard: u64, deadline: Option<Instant>) {
        let mut rung = lock(&self.rung);
        while *rung == heard {
            let Some(deadline) = deadline else {
                rung = self.changed.wait(rung).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            rung = self.changed.wait_timeout(rung, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }
}
