//! The assembly of a large message from its fragments. A lane is in order, so it has at most one.
//!
//! An unfinished message is given up when another envelope comes in its place, when bytes of the lane are missing, and when no
//! further fragment comes in time. Its last fragment, if that comes, is refused in the place of the message: so each message is
//! counted once, however many of its fragments were lost.
//!
//! A peer says how large a message is before its pieces come. So many bytes are taken from the budget of its link; memory is
//! taken as pieces come.

use crate::core::dead_letter::DeadLetterReason;
use crate::remote::batch::EnvelopeKind;
use crate::remote::fragment::Fragment;
use crate::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The time without a further fragment after which a message is given up.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// The bytes of the unfinished messages of one link.
pub(crate) struct AssemblyBudget {
    taken: AtomicUsize,
    max: AtomicUsize,
}

impl AssemblyBudget {
    pub(crate) fn new(max: usize) -> Self {
        Self { taken: AtomicUsize::new(0), max: AtomicUsize::new(max) }
    }

    pub(crate) fn set_max(&self, max: usize) {
        // Ordering: Relaxed; a limit that is looked at later.
        self.max.store(max, Ordering::Relaxed);
    }

    /// Takes so many bytes, if they are there.
    fn take(&self, bytes: usize) -> bool {
        // Ordering: Relaxed, here and below; a count alone.
        let max = self.max.load(Ordering::Relaxed);
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The outcome of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// The message is not whole, or is refused when its last fragment comes.
    Part,
    /// The body of the message.
    Whole(Vec<u8>),
    /// The message ends with this fragment, and is refused.
    Refused(DeadLetterReason),
}

/// The unfinished message of a lane on which a peer sends.
#[derive(Default)]
pub(crate) struct Assembly {
    /// The byte of the lane at which the next batch begins, if nothing is lost.
    next: u64,
    unfinished: Option<Unfinished>,
    /// The messages that were given up.
    given_up: u64,
}

struct Unfinished {
    kind: EnvelopeKind,
    size: usize,
    body: Vec<u8>,
    /// The time when a fragment came last.
    progress: Duration,
}

impl Assembly {
    /// A batch begins at byte `offset` of the lane and takes `charge` bytes of it. `goes_on`: its first envelope is a fragment.
    pub(crate) fn begin_batch(&mut self, offset: u64, charge: u64, goes_on: bool, budget: &AssemblyBudget) {
        // One without envelopes takes no bytes, and nothing can be missing at its place that is not missing at the next one's.
        if charge > 0 {
            if offset != self.next || !goes_on {
                self.give_up(budget);
            }
            self.next = offset.saturating_add(charge);
        }
    }

    /// Takes a fragment of the batch that was begun last. A message has at most `max` bytes.
    pub(crate) fn take(
        &mut self,
        fragment: &Fragment<'_>,
        max: usize,
        budget: &AssemblyBudget,
        now: Duration,
    ) -> Assembled {
        let Fragment { kind, offset, size, piece } = *fragment;
        let refused = |reason| if fragment.is_last() { Assembled::Refused(reason) } else { Assembled::Part };
        if offset == 0 || size > max {
            self.give_up(budget);
        }
        if size > max {
            return refused(DeadLetterReason::TooLarge);
        }
        if offset == 0 && budget.take(size) {
            self.unfinished = Some(Unfinished { kind, size, body: Vec::new(), progress: now });
        }
        let goes_on = |unfinished: &&mut Unfinished| {
            (unfinished.kind, unfinished.size, unfinished.body.len()) == (kind, size, offset)
        };
        let Some(unfinished) = self.unfinished.as_mut().filter(goes_on) else {
            self.give_up(budget);
            return refused(DeadLetterReason::Incomplete);
        };
        let body = &mut unfinished.body;
        if body.capacity() < body.len() + piece.len() {
            let room = (2 * body.capacity()).clamp(body.len() + piece.len(), size);
            body.reserve_exact(room - body.len());
        }
        body.extend_from_slice(piece);
        unfinished.progress = now;
        if !fragment.is_last() {
            return Assembled::Part;
        }
        budget.give_back(size);
        self.unfinished.take().map_or(Assembled::Part, |whole| Assembled::Whole(whole.body))
    }

    /// Gives the message up if no fragment has come for too long.
    pub(crate) fn expire(&mut self, budget: &AssemblyBudget, now: Duration) {
        let is_late = |it: &Unfinished| now.saturating_sub(it.progress) >= WAIT_MAX;
        if self.unfinished.as_ref().is_some_and(is_late) {
            self.give_up(budget);
        }
    }

    /// Gives the message up, if there is one.
    pub(crate) fn give_up(&mut self, budget: &AssemblyBudget) {
        if let Some(unfinished) = self.unfinished.take() {
            budget.give_back(unfinished.size);
            self.given_up += 1;
        }
    }

    /// The messages that were given up.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const MAX: usize = 100;

    fn fragment(offset: usize, size: usize, piece: &[u8]) -> Fragment<'_> {
        Fragment { kind: EnvelopeKind::Tell, offset, size, piece }
    }

    struct Lane {
        assembly: Assembly,
        budget: AssemblyBudget,
        offset: u64,
    }

    impl Lane {
        fn new() -> Self {
            Self { assembly: Assembly::default(), budget: AssemblyBudget::new(150), offset: 0 }
        }

        fn batch(&mut self, goes_on: bool) {
            self.assembly.begin_batch(self.offset, 10, goes_on, &self.budget);
            self.offset += 10;
        }

        fn take(&mut self, offset: usize, size: usize, piece: &[u8]) -> Assembled {
            self.batch(true);
            self.assembly.take(&fragment(offset, size, piece), MAX, &self.budget, Duration::ZERO)
        }

        fn taken(&self) -> (usize, u64) {
            (self.budget.taken.load(Ordering::Relaxed), self.assembly.given_up())
        }
    }

    const INCOMPLETE: Assembled = Assembled::Refused(DeadLetterReason::Incomplete);

    #[test]
    fn pieces_in_order_are_a_message_and_any_others_are_refused_with_the_last_one() {
        let mut lane = Lane::new();
        assert_eq!(lane.take(0, 3, b"a"), Assembled::Part);
        // An empty batch is no gap.
        lane.assembly.begin_batch(lane.offset, 0, false, &lane.budget);
        assert_eq!((lane.take(1, 3, b"b"), lane.taken()), (Assembled::Part, (3, 0)));
        assert_eq!((lane.take(2, 3, b"c"), lane.taken()), (Assembled::Whole(b"abc".to_vec()), (0, 0)));
        // The beginning is missing; one comes twice; the size changes; a batch is lost.
        assert_eq!((lane.take(1, 2, b"b"), lane.taken()), (INCOMPLETE, (0, 0)));
        for (offset, size) in [(0, 3), (1, 4), (1, 3)] {
            assert_eq!(lane.take(0, 3, b"a"), Assembled::Part);
            assert_eq!(lane.take(1, 3, b"b"), Assembled::Part);
            let _ = lane.take(offset, size, b"x");
        }
        assert_eq!(lane.taken(), (0, 4));
        assert_eq!(lane.take(0, 2, b"a"), Assembled::Part);
        lane.offset += 1;
        assert_eq!((lane.take(1, 2, b"b"), lane.taken()), (INCOMPLETE, (0, 5)));
        // Another envelope comes between two pieces.
        assert_eq!(lane.take(0, 2, b"a"), Assembled::Part);
        lane.batch(false);
        assert_eq!((lane.take(1, 2, b"b"), lane.taken()), (INCOMPLETE, (0, 6)));
    }

    #[test]
    fn sizes_are_bounded_one_by_one_and_together() {
        let mut lane = Lane::new();
        assert_eq!(lane.take(0, MAX, &[1; MAX - 1]), Assembled::Part);
        assert_eq!(lane.take(MAX - 1, MAX, &[1]), Assembled::Whole(vec![1; MAX]));
        for size in [MAX + 1, u32::MAX as usize] {
            assert_eq!((lane.take(0, size, &[1]), lane.taken()), (Assembled::Part, (0, 0)));
            let too_large = Assembled::Refused(DeadLetterReason::TooLarge);
            assert_eq!(lane.take(size - 1, size, &[1]), too_large);
        }
        // Another lane of the link has taken a part of the budget.
        for (other, is_whole) in [(150 - MAX, true), (151 - MAX, false)] {
            assert!(lane.budget.take(other));
            let _ = lane.take(0, MAX, &[1; MAX - 1]);
            let outcome = lane.take(MAX - 1, MAX, &[1]);
            assert_eq!(outcome == Assembled::Whole(vec![1; MAX]), is_whole);
            assert_eq!(outcome == INCOMPLETE, !is_whole);
            lane.budget.give_back(other);
        }
        lane.budget.set_max(MAX - 1);
        let _ = lane.take(0, MAX, &[1]);
        assert_eq!(lane.taken().0, 0);
    }

    #[test]
    fn a_message_waits_ten_seconds_for_each_fragment() {
        let (mut lane, nano) = (Lane::new(), Duration::from_nanos(1));
        let _ = lane.take(0, 3, b"a");
        lane.assembly.expire(&lane.budget, WAIT_MAX - nano);
        assert_eq!(lane.taken(), (3, 0));
        lane.batch(true);
        let _ = lane.assembly.take(&fragment(1, 3, b"b"), MAX, &lane.budget, WAIT_MAX);
        lane.assembly.expire(&lane.budget, 2 * WAIT_MAX - nano);
        assert_eq!(lane.taken(), (3, 0));
        lane.assembly.expire(&lane.budget, 2 * WAIT_MAX);
        assert_eq!(lane.taken(), (0, 1));
        lane.assembly.expire(&lane.budget, 9 * WAIT_MAX);
        assert_eq!((lane.take(2, 3, b"c"), lane.taken()), (INCOMPLETE, (0, 1)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        /// Messages of several fragments, of which some are lost: a last fragment that comes is the whole message if all others
        /// have come, and otherwise refused. The budget is given back.
        #[test]
        fn a_message_is_whole_or_refused_and_never_mixed(
            messages in vec((2usize..6, vec(prop::bool::weighted(0.9), 6)), 0..30),
        ) {
            let mut lane = Lane::new();
            for (number, (pieces, comes)) in messages.into_iter().enumerate() {
                let body = vec![number as u8; pieces];
                let mut outcome = None;
                for at in 0..pieces {
                    if comes[at] {
                        outcome = Some(lane.take(at, pieces, &body[at..=at]));
                    } else {
                        lane.offset += 10;
                    }
                }
                let is_whole = comes[..pieces].iter().all(|comes| *comes);
                if comes[pieces - 1] {
                    let expected = if is_whole { Assembled::Whole(body) } else { INCOMPLETE };
                    prop_assert_eq!(outcome, Some(expected));
                }
                prop_assert!(lane.taken().0 <= 5);
            }
            lane.assembly.give_up(&lane.budget);
            prop_assert_eq!(lane.taken().0, 0);
        }
    }
}
