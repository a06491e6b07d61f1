//! Who is told how the actors of a group are, and in what order.
//!
//! A key's status lies in its [`Seed`], under the seed's lock, whether anybody wants to know or not. Where somebody does,
//! each change is noted in one list for the group, under that lock, and whoever finds the list without a deliverer
//! delivers it, in its order and with nothing locked. So a subscriber gets the changes of a key in their order,
//! also those of the actors that have it one after the other: the end of one is noted under the lock of the shard under
//! which the next is put in its place.
//!
//! A key tells a subscriber what it is when it first meets it: at a change, or when the subscriber looks at all keys,
//! whichever is first. [`Life::told`](crate::group::entry::Life) is the number of the last subscription that it has met.

use crate::core::actor_ref::ActorRef;
use crate::failure::guarded;
use crate::group::entry::Seed;
use crate::group::key::GroupKey;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::util::panic::drop_guarded;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc as StdArc;

/// How the actor of a key is.
///
/// ```text
/// Initialising ─▶ Normal ◀─▶ Alarming            of its own accord
///      ▲ │           │           │
///      │ └───────────┴─────┬─────┘
///      │                   ▼
///      ├───────────────  Failed                  restarted, in its place
///      │                   ▼
///      └──────────── Terminating ─▶ Terminated   restarted anew, or the key is free
/// ```
///
/// From each of the upper row it may go to `Terminating` directly. The states are elfo's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActorStatus {
    /// Its state is being made, or its [`started`](crate::Actor::started) runs.
    Initialising,
    /// It handles messages.
    Normal,
    /// It handles messages, and [says](crate::Context::set_alarming) that something is wrong.
    Alarming(StdArc<str>),
    /// It has failed. It is restarted, now or when its time has come, or terminates.
    Failed,
    /// It takes no more messages, or handles no more.
    Terminating,
    /// It has ended, and the key is free, or another actor's already: a message for it creates the next one. Not told of
    /// one that is restarted. (In elfo the key may still refuse messages when this is told.)
    Terminated,
}

impl fmt::Display for ActorStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialising => "initialising",
            Self::Normal => "normal",
            Self::Alarming(reason) => return write!(f, "alarming: {reason}"),
            Self::Failed => "failed",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
        })
    }
}

/// Tells how the actor of a key is: the message that a [subscriber](crate::topology::Group::subscribe_statuses) gets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusReport<K> {
    /// The group: the name of its head, or its name in the [topology](super::Topology) if that was subscribed to.
    pub group: StdArc<str>,
    /// Whose actor it is.
    pub key: K,
    /// How it is.
    pub status: ActorStatus,
}

/// Passes a report on, if there is one; false if there is nobody any more.
pub(crate) type Tell<K> = dyn Fn(Option<(&K, ActorStatus)>) -> bool + Send + Sync;

/// The subscriptions to one group.
pub struct Statuses<K> {
    /// As in [`Books`]. 0 while there never was a subscription.
    begun: AtomicU64,
    books: Mutex<Books<K>>,
}

struct Books<K> {
    /// How many subscriptions have begun; the last one's number.
    begun: u64,
    subscribers: Vec<Subscriber<K>>,
    /// What is to be told, in this order.
    queue: VecDeque<Noted<K>>,
    /// Somebody is telling it.
    is_delivered: bool,
}

struct Subscriber<K> {
    number: u64,
    tell: StdArc<Tell<K>>,
}

struct Noted<K> {
    seed: StdArc<Seed<K>>,
    status: ActorStatus,
    /// For subscriptions with numbers above the first one, up to the second.
    above: u64,
    to: u64,
}

impl<K> Default for Statuses<K> {
    fn default() -> Self {
        let books = Books { begun: 0, subscribers: Vec::new(), queue: VecDeque::new(), is_delivered: false };
        Self { begun: AtomicU64::new(0), books: Mutex::new(books) }
    }
}

impl<K: GroupKey> Statuses<K> {
    /// Notes a change, and tells of it.
    pub fn change(&self, seed: &StdArc<Seed<K>>, status: ActorStatus) {
        self.change_if(seed, status, |_| true);
    }

    /// As [`change`](Self::change), if `may` holds for the status before.
    pub fn change_if(
        &self,
        seed: &StdArc<Seed<K>>,
        status: ActorStatus,
        may: impl FnOnce(Option<&ActorStatus>) -> bool,
    ) {
        if self.note(seed, status, may) {
            self.deliver();
        }
    }

    /// Notes a change, to be [told](Self::deliver) by whoever holds no lock. Runs no user code.
    pub fn note(
        &self,
        seed: &StdArc<Seed<K>>,
        status: ActorStatus,
        may: impl FnOnce(Option<&ActorStatus>) -> bool,
    ) -> bool {
        seed.life(|life| {
            if life.status.as_ref() == Some(&status) || !may(life.status.as_ref()) {
                return false;
            }
            life.status = Some(status.clone());
            // Relaxed: a subscriber takes the seed's lock after it has written this. If it has done so already, the lock
            // shows it here; otherwise it finds the new status.
            if self.begun.load(Ordering::Relaxed) == 0 {
                return false;
            }
            let mut books = lock(&self.books);
            life.told = books.begun;
            let to = books.begun;
            if !books.subscribers.is_empty() {
                books.queue.push_back(Noted { seed: seed.clone(), status, above: 0, to });
            }
            true
        })
    }

    /// Tells what has been noted, unless somebody does already. Called without any lock; never unwinds.
    pub fn deliver(&self) {
        let mut is_mine = false;
        loop {
            let (noted, tells) = {
                let mut books = lock(&self.books);
                if books.is_delivered && !is_mine {
                    return;
                }
                let noted = books.queue.pop_front();
                is_mine = noted.is_some();
                books.is_delivered = is_mine;
                let Some(noted) = noted else { return };
                let meant = |one: &&Subscriber<K>| one.number > noted.above && one.number <= noted.to;
                let tells: Vec<_> = books
                    .subscribers
                    .iter()
                    .filter(meant)
                    .map(|one| (one.number, one.tell.clone()))
                    .collect();
                (noted, tells)
            };
            for (number, tell) in &tells {
                // The subscriber may be a function, and the key's `Clone` is the user's.
                let told = guarded(|| Ok(tell(Some((&noted.seed.key, noted.status.clone())))));
                if matches!(told, Ok(false)) {
                    self.forget(*number);
                }
                drop_guarded(told);
            }
            drop_guarded((noted, tells));
        }
    }

    /// Where nothing changes nobody is told, and so it is not noticed who has ended.
    fn forget_ended(&self) {
        let known: Vec<_> = {
            let books = lock(&self.books);
            books.subscribers.iter().map(|one| (one.number, one.tell.clone())).collect()
        };
        let ended = known.iter().filter(|(_, tell)| matches!(guarded(|| Ok(tell(None))), Ok(false)));
        ended.for_each(|(number, _)| self.forget(*number));
        drop_guarded(known);
    }

    fn forget(&self, number: u64) {
        let gone = {
            let mut books = lock(&self.books);
            let at = books.subscribers.iter().position(|one| one.number == number);
            at.map(|at| books.subscribers.remove(at))
        };
        drop_guarded(gone);
    }

    /// One more subscriber, who is told of every change from now on.
    pub(crate) fn add(&self, tell: StdArc<Tell<K>>) {
        self.forget_ended();
        let mut books = lock(&self.books);
        books.begun += 1;
        let number = books.begun;
        books.subscribers.push(Subscriber { number, tell });
        // Relaxed: see `note`.
        self.begun.store(number, Ordering::Relaxed);
    }

    /// Notes the present status for the subscribers that this key has not met.
    pub(crate) fn introduce(&self, seed: &StdArc<Seed<K>>) {
        seed.life(|life| {
            let Some(status) = life.status.clone() else { return };
            let mut books = lock(&self.books);
            let (above, to) = (life.told, books.begun);
            if above < to && status != ActorStatus::Terminated {
                life.told = to;
                books.queue.push_back(Noted { seed: seed.clone(), status, above, to });
            }
        });
    }
}

/// Sends reports to an actor, of keys as `key` makes them.
pub fn reports_to<K: GroupKey, N: Send + 'static>(
    group: &str,
    subscriber: &ActorRef<StatusReport<N>>,
    key: impl Fn(&K) -> N + Send + Sync + 'static,
) -> StdArc<Tell<K>> {
    let (group, subscriber): (StdArc<str>, _) = (group.into(), subscriber.clone());
    StdArc::new(move |report| {
        if subscriber.is_closed() {
            return false;
        }
        if let Some((of, status)) = report {
            subscriber.tell(StatusReport { group: group.clone(), key: key(of), status });
        }
        true
    })
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicBool;

    #[test]
    fn who_has_ended_is_forgotten_at_the_next_subscription_also_where_nothing_changes() {
        let (statuses, is_there) = (Statuses::<u32>::default(), StdArc::new(AtomicBool::new(true)));
        let there = is_there.clone();
        statuses.add(StdArc::new(move |_| there.load(Ordering::Relaxed)));
        statuses.add(StdArc::new(|_| true));
        assert_eq!(lock(&statuses.books).subscribers.len(), 2);
        is_there.store(false, Ordering::Relaxed);
        statuses.add(StdArc::new(|_| true));
        assert_eq!(lock(&statuses.books).subscribers.len(), 2);
    }
}
