//! The choked actors of a link: actors here that have so many messages that the peer is told to send them no more.
//!
//! The lane of an actor looks at its queue with the first message of each batch. While any actor is choked, the queues of all that
//! are choked are looked at again and again: one that has become short is told at once. A choke lapses at the peer unless it
//! is renewed, so an actor that ends, or a message that is lost, stops no sender for long.

use crate::sync::HashMap;
use std::time::Duration;

/// The most messages that wait in an actor which is not choked.
pub(crate) const QUEUED_MAX: usize = 4096;

/// The most actors that are choked for one peer at a time. Further ones are not.
pub(crate) const CHOKED_MAX: usize = 1024;

/// The time for which a peer holds an actor for choked.
pub(crate) const LAPSES_AFTER: Duration = Duration::from_secs(3);

/// The time after which a choke is told again.
pub(crate) const RENEWED_AFTER: Duration = Duration::from_secs(1);

/// The time between two looks at the queues of choked actors.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The messages that wait in an actor, and the most with which it is not choked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) queued: usize,
    pub(crate) max: usize,
}

impl Backlog {
    /// The backlog of an actor whose mailbox has this capacity, if it has one.
    pub(crate) fn new(queued: usize, capacity: Option<usize>) -> Self {
        let of_capacity = capacity.map_or(QUEUED_MAX, |capacity| capacity / 4 * 3 + capacity % 4 * 3 / 4);
        Self { queued, max: of_capacity.clamp(1, QUEUED_MAX) }
    }

    pub(crate) fn is_long(self) -> bool {
        self.queued > self.max
    }
}

/// An actor whose queue is looked at.
pub(crate) trait Queue {
    /// The messages that wait; `None` if the actor has ended.
    fn queued(&self) -> Option<usize>;
}

/// The choked actors of a link, by their uids.
pub(crate) struct Chokes<Q> {
    choked: HashMap<u32, Choked<Q>>,
    /// Whether the queues will be looked at again.
    is_looking: bool,
}

struct Choked<Q> {
    path: Box<str>,
    queue: Q,
    max: usize,
    told: Duration,
}

/// The news of an actor for the peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChokeNews {
    pub(crate) path: String,
    pub(crate) uid: u32,
    pub(crate) is_choked: bool,
}

impl<Q> Default for Chokes<Q> {
    fn default() -> Self {
        Self { choked: HashMap::default(), is_looking: false }
    }
}

impl<Q: Queue> Chokes<Q> {
    /// An actor has a long queue. Returns whether the peer is to be told.
    pub(crate) fn add(
        &mut self,
        (path, uid): (&str, u32),
        max: usize,
        queue: impl FnOnce() -> Option<Q>,
        now: Duration,
    ) -> bool {
        if self.choked.len() >= CHOKED_MAX || self.choked.contains_key(&uid) {
            return false;
        }
        let Some(queue) = queue() else { return false };
        self.choked.insert(uid, Choked { path: path.into(), queue, max, told: now });
        true
    }

    /// Returns whether the caller is to see to a look at the queues; then no other one does.
    pub(crate) fn begin_looking(&mut self) -> bool {
        !self.choked.is_empty() && !std::mem::replace(&mut self.is_looking, true)
    }

    /// Looks at the queues. The actors whose chokes end leave the list; the caller drops them without a lock.
    pub(crate) fn look(&mut self, now: Duration) -> (Vec<ChokeNews>, Vec<Q>) {
        let mut news = Vec::new();
        self.is_looking = false;
        for (uid, choked) in &mut self.choked {
            let is_choked = choked.queue.queued().is_some_and(|queued| queued > choked.max / 2);
            let is_due = now.saturating_sub(choked.told) >= RENEWED_AFTER;
            if is_due || !is_choked {
                choked.told = now;
                news.push(ChokeNews { path: choked.path.to_string(), uid: *uid, is_choked });
            }
        }
        let over = news.iter().filter(|news| !news.is_choked);
        let ended = over.filter_map(|news| self.choked.remove(&news.uid)).map(|choked| choked.queue);
        let ended = ended.collect();
        (news, ended)
    }

    /// Forgets all: the link has ended.
    pub(crate) fn clear(&mut self) -> Vec<Q> {
        std::mem::take(&mut self.choked).into_values().map(|choked| choked.queue).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.choked.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    impl Queue for Rc<Cell<Option<usize>>> {
        fn queued(&self) -> Option<usize> {
            self.get()
        }
    }

    fn news(uid: u32, is_choked: bool) -> ChokeNews {
        ChokeNews { path: "/user/a".to_owned(), uid, is_choked }
    }

    #[test]
    fn a_backlog_is_long_above_4096_or_three_quarters_of_a_capacity() {
        for (capacity, max) in [
            (None, 4096),
            (Some(1), 1),
            (Some(2), 1),
            (Some(3), 2),
            (Some(4), 3),
            (Some(1000), 750),
            (Some(5461), 4095),
            (Some(5462), 4096),
            (Some(usize::MAX), 4096),
        ] {
            assert_eq!(Backlog::new(0, capacity), Backlog { queued: 0, max }, "{capacity:?}");
            assert!(!Backlog::new(max, capacity).is_long() && Backlog::new(max + 1, capacity).is_long());
        }
    }

    #[test]
    fn a_choke_is_renewed_each_second_and_ends_at_half_of_its_limit() {
        let (mut chokes, queue) = (Chokes::default(), Rc::new(Cell::new(Some(101))));
        let (second, milli) = (Duration::from_secs(1), Duration::from_millis(1));
        let add = |chokes: &mut Chokes<_>, now| chokes.add(("/user/a", 1), 100, || Some(queue.clone()), now);
        let look = |chokes: &mut Chokes<_>, now| chokes.look(now).0;
        assert!(!chokes.begin_looking());
        assert!(add(&mut chokes, second) && !add(&mut chokes, second));
        assert!(chokes.begin_looking() && !chokes.begin_looking());
        assert_eq!((look(&mut chokes, 2 * second - milli), chokes.len()), (vec![], 1));
        assert!(chokes.begin_looking());
        queue.set(Some(51));
        assert_eq!(look(&mut chokes, 2 * second), [news(1, true)]);
        assert_eq!(look(&mut chokes, 3 * second - milli), []);
        queue.set(Some(50));
        assert_eq!((look(&mut chokes, 3 * second - milli), chokes.len()), (vec![news(1, false)], 0));
        assert!(!chokes.begin_looking());
        // An actor that has ended.
        assert!(add(&mut chokes, second));
        queue.set(None);
        assert_eq!((look(&mut chokes, second), chokes.len()), (vec![news(1, false)], 0));
    }

    #[test]
    fn so_many_actors_are_choked_and_no_more() {
        let mut chokes = Chokes::default();
        let queue = || Some(Rc::new(Cell::new(Some(9))));
        for uid in 1..=CHOKED_MAX as u32 {
            assert!(chokes.add(("/user/a", uid), 1, queue, Duration::ZERO));
        }
        assert!(!chokes.add(("/user/a", 9999), 1, queue, Duration::ZERO));
        assert_eq!((chokes.len(), chokes.clear().len(), chokes.len()), (CHOKED_MAX, CHOKED_MAX, 0));
        assert!(chokes.add(("/user/a", 9999), 1, queue, Duration::ZERO));
        // There is none at the path any more.
        assert!(!chokes.add(("/user/a", 8), 1, || None, Duration::ZERO));
    }
}
