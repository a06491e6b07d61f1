//! Status reports tell subscribers how the actors of a group are, in a fixed order for each key.
//!
//! A key's status lies in its [`KeyEntry`], under the lock of that key entry, with or without subscribers. If there are
//! subscribers, each change is also noted in a single list of the group, under that lock. A thread that finds the list
//! without a deliverer delivers it, in its order and with nothing locked. A subscriber therefore gets the changes of a
//! key in their order, across all actors that have the key one after the other: the end of an actor is noted under the
//! lock of the shard under which the next actor is put in its place.
//!
//! A key reports its present status to a subscriber at their first meeting: at a change, or when the subscriber looks
//! at all keys, whichever is first. [`Life::told`](crate::group::key_entry::KeyLife) is the number of the last subscription
//! that the key has met.

use crate::core::actor_ref::ActorRef;
use crate::failure::guarded;
use crate::group::key::GroupKey;
use crate::group::key_entry::KeyEntry;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::util::panic::drop_guarded;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc as StdArc;

/// An actor status says how the actor of a key is.
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
/// From each state of the upper row an actor may go to `Terminating` directly. The states are elfo's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActorStatus {
    /// The actor's state is being made, or its [`started`](crate::Actor::started) runs.
    Initialising,
    /// The actor handles messages.
    Normal,
    /// The actor handles messages, and [reports](crate::Context::set_alarming) that something is wrong.
    Alarming(StdArc<str>),
    /// The actor has failed. The actor is restarted, now or when its time has come, or terminates.
    Failed,
    /// The actor takes no more messages, or handles no more.
    Terminating,
    /// The actor has ended. Its key is free, or belongs to another actor already: a message for a free key creates the
    /// next actor. This status is not reported for an actor that is restarted or re-created. (In elfo the key may still
    /// refuse messages when this status is reported.)
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

/// A status report tells a [subscriber](crate::group::Group::subscribe_statuses) how the actor of a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusReport<K> {
    /// The group: the name of its head, or its name in the [topology](crate::topology::Topology) if the subscription is
    /// to the topology.
    pub group: StdArc<str>,
    /// The actor's key.
    pub key: K,
    /// The actor's status.
    pub status: ActorStatus,
}

/// Passes a report on, if there is a report. Returns false if the subscriber has ended.
pub(crate) type Tell<K> = dyn Fn(Option<(&K, ActorStatus)>) -> bool + Send + Sync;

/// Statuses hold the subscriptions to a single group.
pub(crate) struct Statuses<K> {
    /// The same number as in [`StatusTable`]; 0 until the first subscription.
    begun: AtomicU64,
    counters: Mutex<StatusTable<K>>,
}

struct StatusTable<K> {
    /// The number of subscriptions that have begun, and of the last one.
    begun: u64,
    subscribers: Vec<Subscriber<K>>,
    /// The reports to be delivered, in this order.
    queue: VecDeque<StatusRecord<K>>,
    /// A thread is delivering the reports.
    is_delivered: bool,
}

struct Subscriber<K> {
    number: u64,
    tell: StdArc<Tell<K>>,
}

struct StatusRecord<K> {
    key_entry: StdArc<KeyEntry<K>>,
    status: ActorStatus,
    /// The report is for subscriptions with numbers above `above`, up to `to`.
    above: u64,
    to: u64,
}

impl<K> Default for Statuses<K> {
    fn default() -> Self {
        let counters =
            StatusTable { begun: 0, subscribers: Vec::new(), queue: VecDeque::new(), is_delivered: false };
        Self { begun: AtomicU64::new(0), counters: Mutex::new(counters) }
    }
}

impl<K: GroupKey> Statuses<K> {
    /// Notes a change, and delivers it.
    pub(crate) fn change(&self, key_entry: &StdArc<KeyEntry<K>>, status: ActorStatus) {
        self.change_if(key_entry, status, |_| true);
    }

    /// As [`change`](Self::change), if `may` holds for the status before.
    pub(crate) fn change_if(
        &self,
        key_entry: &StdArc<KeyEntry<K>>,
        status: ActorStatus,
        may: impl FnOnce(Option<&ActorStatus>) -> bool,
    ) {
        if self.note(key_entry, status, may) {
            self.deliver();
        }
    }

    /// Notes a change. Returns whether a thread that holds no lock is to [deliver](Self::deliver) it. Runs no user
    /// code.
    pub(crate) fn note(
        &self,
        key_entry: &StdArc<KeyEntry<K>>,
        status: ActorStatus,
        may: impl FnOnce(Option<&ActorStatus>) -> bool,
    ) -> bool {
        key_entry.life(|life| {
            if life.status.as_ref() == Some(&status) || !may(life.status.as_ref()) {
                return false;
            }
            life.status = Some(status.clone());
            // Relaxed: a subscriber takes the lock of the key entry after it has written this count. If the subscriber
            // has had the lock already, the lock shows the count here; otherwise the subscriber finds the new status.
            if self.begun.load(Ordering::Relaxed) == 0 {
                return false;
            }
            let mut counters = lock(&self.counters);
            life.told = counters.begun;
            let to = counters.begun;
            if !counters.subscribers.is_empty() {
                counters.queue.push_back(StatusRecord { key_entry: key_entry.clone(), status, above: 0, to });
            }
            true
        })
    }

    /// Delivers the noted reports, unless another thread is delivering them. The caller holds no lock. This never
    /// unwinds.
    pub(crate) fn deliver(&self) {
        let mut is_mine = false;
        loop {
            let (noted, tells) = {
                let mut counters = lock(&self.counters);
                if counters.is_delivered && !is_mine {
                    return;
                }
                let noted = counters.queue.pop_front();
                is_mine = noted.is_some();
                counters.is_delivered = is_mine;
                let Some(noted) = noted else { return };
                let meant = |one: &&Subscriber<K>| one.number > noted.above && one.number <= noted.to;
                let tells: Vec<_> = counters
                    .subscribers
                    .iter()
                    .filter(meant)
                    .map(|one| (one.number, one.tell.clone()))
                    .collect();
                (noted, tells)
            };
            for (number, tell) in &tells {
                // The subscriber may be a function, and the key's `Clone` is user code.
                let told = guarded(|| Ok(tell(Some((&noted.key_entry.key, noted.status.clone())))));
                if matches!(told, Ok(false)) {
                    self.forget(*number);
                }
                drop_guarded(told);
            }
            drop_guarded((noted, tells));
        }
    }

    /// Forgets ended subscribers: in a group without changes, no delivery notices that a subscriber has ended.
    fn forget_ended(&self) {
        let known: Vec<_> = {
            let counters = lock(&self.counters);
            counters.subscribers.iter().map(|one| (one.number, one.tell.clone())).collect()
        };
        let ended = known.iter().filter(|(_, tell)| matches!(guarded(|| Ok(tell(None))), Ok(false)));
        ended.for_each(|(number, _)| self.forget(*number));
        drop_guarded(known);
    }

    fn forget(&self, number: u64) {
        let gone = {
            let mut counters = lock(&self.counters);
            let at = counters.subscribers.iter().position(|one| one.number == number);
            at.map(|at| counters.subscribers.remove(at))
        };
        drop_guarded(gone);
    }

    /// Adds a subscriber, which is told of every change from now on.
    pub(crate) fn add(&self, tell: StdArc<Tell<K>>) {
        self.forget_ended();
        let mut counters = lock(&self.counters);
        counters.begun += 1;
        let number = counters.begun;
        counters.subscribers.push(Subscriber { number, tell });
        // Relaxed: see `note`.
        self.begun.store(number, Ordering::Relaxed);
    }

    /// Notes the present status for the subscribers that this key has not met.
    pub(crate) fn introduce(&self, key_entry: &StdArc<KeyEntry<K>>) {
        key_entry.life(|life| {
            let Some(status) = life.status.clone() else { return };
            let mut counters = lock(&self.counters);
            let (above, to) = (life.told, counters.begun);
            if above < to && status != ActorStatus::Terminated {
                life.told = to;
                counters.queue.push_back(StatusRecord { key_entry: key_entry.clone(), status, above, to });
            }
        });
    }
}

/// Returns a function that sends reports to an actor, with keys as `key` makes them.
pub(crate) fn reports_to<K: GroupKey, N: Send + 'static>(
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
        assert_eq!(lock(&statuses.counters).subscribers.len(), 2);
        is_there.store(false, Ordering::Relaxed);
        statuses.add(StdArc::new(|_| true));
        assert_eq!(lock(&statuses.counters).subscribers.len(), 2);
    }
}
