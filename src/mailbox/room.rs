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

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, Mutex, lock};
use std::time::Instant;

#[derive(Debug)]
pub struct Room {
    /// Senders between announcement and departure.
    waiting: AtomicUsize,
    /// Counts notifications.
    ticket: Mutex<u64>,
    changed: Condvar,
}

impl Room {
    pub fn new() -> Self {
        Self { waiting: AtomicUsize::new(0), ticket: Mutex::new(0), changed: Condvar::new() }
    }

    /// Repeats `attempt` until it gives something or the deadline has passed.
    ///
    /// Models have no clock: there a deadline never passes.
    pub fn wait<T>(&self, deadline: Option<Instant>, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
        let _announced = Announced::new(self);
        loop {
            let ticket = *lock(&self.ticket);
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
        let mut current = lock(&self.ticket);
        while *current == ticket {
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
        // Ordering: SeqCst; between the store of `head` and the look at `waiting`; mirror of `Announced::new`.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.notify(Condvar::notify_one);
        }
    }

    /// Owner: the mailbox has closed, nobody will find room any more.
    pub fn closed(&self) {
        self.notify(Condvar::notify_all);
    }

    #[cold]
    fn notify(&self, whom: fn(&Condvar)) {
        *lock(&self.ticket) += 1;
        whom(&self.changed);
    }
}

/// Counted in `waiting` for as long as it lives.
struct Announced<'a>(&'a Room);

impl<'a> Announced<'a> {
    fn new(room: &'a Room) -> Self {
        room.waiting.fetch_add(1, Ordering::Relaxed);
        // Ordering: SeqCst; between the announcement and the next look for room; mirror of `Room::made`.
        fence(Ordering::SeqCst);
        Self(room)
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
