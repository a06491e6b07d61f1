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
//!
//! # Wakers
//!
//! A sender that is a future has a [`WakerPlace`] in a list of wakers. Each notification also takes the first waker out
//! of the list and wakes it, so wakers, threads and bells take no notification from each other.
//!
//! 1. The future enters its waker before each look for room. A waker that was taken out goes back to its old place, so
//!    the list keeps the order of arrival. The future has used up the earlier notification then: it looks now.
//! 2. If it finds room, or is dropped, it leaves the list. If its waker is no longer there, a notification has come
//!    that it has not used, and it passes the notification on.
//!
//! A service looks for room and takes none. So its waker is in a list of its own: each notification wakes all of that
//! list, and takes nothing from the futures.
//!
//! Nothing hands the room to the woken future: another sender may take it, and then the future waits on at its old
//! place. A waker lies in the list only while its future waits, and is called and dropped without the lock.
//!
//! # The cost for the owner
//!
//! Between the two steps of the owner lies a fence for each message, in a mailbox in which threads wait. A mailbox that
//! refuses at its bound has only wakers, which are rare: there the fence is [asymmetric](crate::sync::asymmetric_fence),
//! and the future that enters its waker pays for both sides.

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Arc, Condvar, Mutex, asymmetric_fence, lock};
use crate::util::panic::quietly;
use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct NotFullWait {
    /// Whether threads and bells may wait here, and not only wakers.
    has_threads: bool,
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
    /// The wakers of futures, by their places.
    wakers: BTreeMap<u64, Waker>,
    /// The wakers of services, which look for room and take none, by their places.
    onlookers: BTreeMap<u64, Waker>,
    next_place: u64,
}

/// The place of a future in a list of wakers of one mailbox.
#[derive(Debug, Default)]
pub(crate) struct WakerPlace {
    /// `None` before it has waited there.
    number: Option<u64>,
    /// It takes no notification from others.
    only_looks: bool,
    /// The fence after the announcement has failed.
    is_uncertain: bool,
}

impl WakerPlace {
    /// The place of a service: each notification wakes it, and it takes none.
    #[cfg(any(feature = "tower", pointsman_loom))]
    pub(crate) fn of_onlooker() -> Self {
        Self { only_looks: true, ..Self::default() }
    }
}

impl Inside {
    fn list_of(&mut self, place: &WakerPlace) -> &mut BTreeMap<u64, Waker> {
        if place.only_looks { &mut self.onlookers } else { &mut self.wakers }
    }
}

/// The number of senders that a notification wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wakes {
    One,
    All,
}

impl NotFullWait {
    pub(crate) fn new(has_threads: bool) -> Self {
        let inside = Inside {
            ticket: 0,
            bells: Vec::new(),
            wakers: BTreeMap::new(),
            onlookers: BTreeMap::new(),
            next_place: 0,
        };
        let (waiting, inside) = (AtomicUsize::new(0), Mutex::new(inside));
        Self { has_threads, waiting, inside, changed: Condvar::new() }
    }

    /// Returns whether threads and bells may wait here.
    pub(crate) fn has_threads(&self) -> bool {
        self.has_threads
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
                    self.notify(Wakes::One);
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
    #[inline(never)]
    pub(crate) fn wake_one(&self) {
        if self.has_threads {
            // Ordering: SeqCst; between the store of `head` and the load of `waiting`; mirror of `announce`.
            fence(Ordering::SeqCst);
        } else {
            asymmetric_fence::light();
        }
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.notify(Wakes::One);
        }
    }

    /// Wakes all waiting senders, because there may be room for all.
    pub(crate) fn wake_all(&self) {
        self.notify(Wakes::All);
    }

    /// Owner: the mailbox has closed, and no sender will find room any more; wakes all senders.
    pub(crate) fn wake_at_close(&self) {
        self.notify(Wakes::All);
    }

    #[cold]
    fn notify(&self, whom: Wakes) {
        let (first, others, onlookers) = {
            let mut inside = lock(&self.inside);
            inside.ticket += 1;
            inside.bells.iter().for_each(|bell| bell.ring());
            let first = inside.wakers.pop_first();
            let others = match whom {
                Wakes::One => BTreeMap::new(),
                Wakes::All => std::mem::take(&mut inside.wakers),
            };
            let onlookers = std::mem::take(&mut inside.onlookers);
            let count = usize::from(first.is_some()) + others.len() + onlookers.len();
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            (first, others, onlookers)
        };
        match whom {
            Wakes::One => self.changed.notify_one(),
            Wakes::All => self.changed.notify_all(),
        }
        // A waker is foreign code.
        first.into_iter().chain(others).chain(onlookers).for_each(|(_, waker)| quietly(|| waker.wake()));
    }

    /// Enters the waker of a future, which looks for room next. Returns false if a later notification may be missed:
    /// the future must then look again without one.
    #[must_use = "without the fence a notification may be missed"]
    pub(crate) fn enter(&self, place: &mut WakerPlace, waker: &Waker) -> bool {
        // Cloned and dropped without the lock: both are foreign code.
        let waker = waker.clone();
        let former = {
            let mut inside = lock(&self.inside);
            let number = *place.number.get_or_insert_with(|| {
                inside.next_place += 1;
                inside.next_place
            });
            let former = inside.list_of(place).insert(number, waker);
            if former.is_none() {
                self.waiting.fetch_add(1, Ordering::Relaxed);
            }
            former
        };
        match former {
            // It has been announced since its last look.
            Some(former) => quietly(|| drop(former)),
            None => place.is_uncertain = !self.fence_after_announcement(),
        }
        !place.is_uncertain
    }

    /// Takes the waker of a future out of the list. If a notification has come that the future has not used, passes it
    /// on.
    pub(crate) fn leave(&self, place: &mut WakerPlace) {
        let Some(number) = place.number.take() else { return };
        let former = {
            let mut inside = lock(&self.inside);
            let former = inside.list_of(place).remove(&number);
            if former.is_some() {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            former
        };
        match former {
            Some(former) => quietly(|| drop(former)),
            None if place.only_looks => {}
            None => self.notify(Wakes::One),
        }
    }

    /// Between an announcement and the next look for room; mirror of `wake_one`. Returns false if nothing is ordered.
    fn fence_after_announcement(&self) -> bool {
        if self.has_threads {
            // Ordering: SeqCst; between the announcement and the next look for room; mirror of `NotFullWait::wake_one`.
            fence(Ordering::SeqCst);
            true
        } else {
            asymmetric_fence::heavy()
        }
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
        debug_assert!(self.has_threads, "a thread waits only where the owner executes its fence");
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.fence_after_announcement();
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
