//! Senders wait here for room in a bounded mailbox.
//!
//! A sender announces itself and then looks for room once more. The owner makes room and then looks for announced
//! senders. Between the two steps of each side lies a `SeqCst` fence, so at least one side sees the other:
//!
//! * If the fence of the sender is first, the owner finds the announcement and notifies.
//! * If the fence of the owner is first, the sender finds the room.
//!
//! A notification between the last look of the sender and its sleep is not missed either: the notification changes the
//! ticket that the sender drew before that look.
//!
//! One unit of room wakes one sender. A sender that gives up at its deadline may be the woken one, so it passes the
//! notification on. Another sender may take the room first; the woken sender then waits again.
//!
//! A sender that waits for room in several mailboxes has a bell ([`NotFullNotify`]). Each notification rings all bells
//! and also wakes one sender without a bell. So a sender with a bell takes no notification from another sender, and has none to pass
//! on.

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Arc, Condvar, Mutex, lock};
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct NotFullWait {
    /// Senders between announcement and departure.
    waiting: AtomicUsize,
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inside {
    /// Counts notifications.
    ticket: u64,
    /// The bells of senders that wait for room in several mailboxes.
    bells: Vec<Arc<NotFullNotify>>,
}

impl NotFullWait {
    pub(crate) fn new() -> Self {
        let inside = Mutex::new(Inside { ticket: 0, bells: Vec::new() });
        Self { waiting: AtomicUsize::new(0), inside, changed: Condvar::new() }
    }

    /// Repeats `attempt` until it returns a value or the deadline has passed.
    ///
    /// Models have no clock: in a model a deadline never passes.
    pub(crate) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
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

    /// Sleeps until the ticket changes; returns false if the deadline passed before.
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

    /// Owner: `head` has moved, so there is room; wakes one sender. The senders have no order.
    #[inline]
    pub(crate) fn wake_one(&self) {
        // Ordering: SeqCst; between the store of `head` and the load of `waiting`; mirror of `announce`.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.notify(Condvar::notify_one);
        }
    }

    /// Wakes all waiting senders, because there may be room for all.
    pub(crate) fn wake_all(&self) {
        self.notify(Condvar::notify_all);
    }

    /// Owner: the mailbox has closed, and no sender will find room any more; wakes all senders.
    pub(crate) fn wake_at_close(&self) {
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

    /// Rings `bell` at each notification until `bell` is dismissed. The caller enlists before it looks for room.
    pub(crate) fn enlist(&self, bell: &Arc<NotFullNotify>) {
        lock(&self.inside).bells.push(bell.clone());
        self.announce();
    }

    /// Undoes a single `enlist`.
    pub(crate) fn dismiss(&self, bell: &Arc<NotFullNotify>) {
        let mut inside = lock(&self.inside);
        if let Some(index) = inside.bells.iter().position(|other| Arc::ptr_eq(other, bell)) {
            inside.bells.swap_remove(index);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Counts one more waiting sender.
    fn announce(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Ordering: SeqCst; between the announcement and the next look for room; mirror of `NotFullWait::wake_one`.
        fence(Ordering::SeqCst);
    }
}

/// Counts a sender in `waiting` for as long as the value lives.
struct Announced<'a>(&'a NotFullWait);

impl<'a> Announced<'a> {
    fn new(room: &'a NotFullWait) -> Self {
        room.announce();
        Self(room)
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The wake-up of a sender that waits for room in several mailboxes.
#[derive(Debug)]
pub(crate) struct NotFullNotify {
    /// The number of rings so far.
    rung: Mutex<u64>,
    changed: Condvar,
}

impl NotFullNotify {
    pub(crate) fn new() -> Self {
        Self { rung: Mutex::new(0), changed: Condvar::new() }
    }

    pub(crate) fn ring(&self) {
        *lock(&self.rung) += 1;
        self.changed.notify_one();
    }

    /// Returns the number of rings so far. The sender asks before it looks for room, and then passes the number to
    /// [`wait`](Self::wait).
    pub(crate) fn heard(&self) -> u64 {
        *lock(&self.rung)
    }

    /// Sleeps until the bell has rung more often than `heard`, or the deadline has passed.
    pub(crate) fn wait(&self, heard: u64, deadline: Option<Instant>) {
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
