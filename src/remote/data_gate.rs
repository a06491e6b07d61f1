//! Control messages that wait for data: an actor's end is told behind the last messages that it has sent.
//!
//! The sender puts a mark with the number of the control message into each lane, behind what the lane holds. The message may
//! act once each lane has handled a batch that shows the mark, or a later one. Batches may be lost, so it acts in any
//! case when its time is over. The time begins anew with each batch that a lane handles before the mark: messages that are only
//! slow to come, since much waits before them, are not overtaken.

use std::collections::VecDeque;
use std::time::Duration;

/// The bytes of waiting messages from which on no further one is taken: the peer sends it again.
pub(crate) const WAITING_BYTES_MAX: usize = 16 << 20;

/// The bytes that a message has beside its own, at least.
const MESSAGE_REST: usize = 64;

/// The time after which a message acts though not all lanes have shown its mark, and those have handled nothing.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(3);

/// The messages that wait, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct DataGate<T> {
    /// The greatest mark that each lane has handled.
    shown: Box<[u64]>,
    waiting: VecDeque<Waiting<T>>,
    /// The bytes of the messages that wait.
    bytes: usize,
    /// The time when a lane has handled a batch last whose mark is not that of the first message.
    progress: Duration,
    /// The messages that acted before their marks were shown.
    pub(crate) overdue: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    number: u64,
    since: Duration,
    bytes: usize,
    message: T,
}

impl<T> DataGate<T> {
    pub(crate) fn new(lanes: u8) -> Self {
        let shown = vec![0; usize::from(lanes)].into_boxed_slice();
        Self { shown, waiting: VecDeque::new(), bytes: 0, progress: Duration::ZERO, overdue: 0 }
    }

    /// Whether so much waits that no further message is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= WAITING_BYTES_MAX
    }

    /// Lets a control message wait, which has so many bytes of its own. Numbers rise from call to call.
    pub(crate) fn wait(&mut self, number: u64, message: T, bytes: usize, now: Duration) {
        let bytes = bytes + MESSAGE_REST;
        self.bytes += bytes;
        self.waiting.push_back(Waiting { number, since: now, bytes, message });
    }

    /// Drops what waits.
    pub(crate) fn clear(&mut self) {
        (self.waiting, self.bytes) = (VecDeque::new(), 0);
    }

    /// A lane has handled a batch with this mark, and with envelopes or without.
    pub(crate) fn show(&mut self, lane: u8, mark: u64, has_envelopes: bool, now: Duration) {
        if let Some(shown) = self.shown.get_mut(usize::from(lane)) {
            *shown = mark.max(*shown);
            let first = self.waiting.front().map(|waiting| waiting.number);
            if has_envelopes && first.is_some_and(|number| *shown < number) {
                self.progress = now;
            }
        }
    }

    /// The next message that acts now.
    pub(crate) fn next(&mut self, now: Duration) -> Option<T> {
        let Waiting { number, since, .. } = self.waiting.front()?;
        let is_shown = self.shown.iter().all(|shown| shown >= number);
        if !is_shown && now.saturating_sub(self.progress.max(*since)) < WAIT_MAX {
            return None;
        }
        self.overdue += u64::from(!is_shown);
        let Waiting { bytes, message, .. } = self.waiting.pop_front()?;
        self.bytes -= bytes;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn a_message_acts_when_all_lanes_have_shown_its_mark_or_its_time_is_over() {
        let mut gate = DataGate::new(2);
        gate.wait(3, "first", 0, Duration::ZERO);
        gate.wait(5, "second", 0, Duration::ZERO);
        gate.show(0, 5, true, Duration::ZERO);
        assert_eq!(gate.next(Duration::ZERO), None);
        gate.show(1, 4, true, Duration::ZERO);
        // No such lane.
        gate.show(2, 9, true, Duration::ZERO);
        assert_eq!(gate.next(Duration::ZERO), Some("first"));
        assert_eq!(gate.next(WAIT_MAX - Duration::from_nanos(1)), None);
        assert_eq!((gate.overdue, gate.next(WAIT_MAX), gate.overdue), (0, Some("second"), 1));
        assert_eq!(gate.next(WAIT_MAX), None);
    }

    #[test]
    fn the_time_begins_anew_while_messages_before_the_mark_come() {
        let mut gate = DataGate::new(2);
        gate.wait(3, "end", 0, Duration::ZERO);
        gate.show(0, 3, true, Duration::from_secs(1));
        for second in 1..20 {
            gate.show(1, 2, true, Duration::from_secs(second));
            // Probes have nothing, and a lane that has shown the mark is not waited for.
            gate.show(1, 2, false, Duration::from_secs(second + 2));
            gate.show(0, 3, true, Duration::from_secs(second + 2));
            assert_eq!(gate.next(Duration::from_secs(second + 2)), None);
        }
        assert_eq!((gate.next(Duration::from_secs(22)), gate.overdue), (Some("end"), 1));
    }

    #[test]
    fn a_gate_is_full_at_its_limit_and_not_before() {
        let mut gate = DataGate::new(1);
        let each = 1024 + MESSAGE_REST;
        let fitting = WAITING_BYTES_MAX.div_ceil(each) as u64;
        for number in 1..=fitting {
            assert!(!gate.is_full(), "{number}");
            gate.wait(number, (), 1024, Duration::ZERO);
        }
        assert!(gate.is_full());
        gate.show(0, 1, true, Duration::ZERO);
        assert_eq!((gate.next(Duration::ZERO), gate.is_full()), (Some(()), false));
        gate.clear();
        assert_eq!((gate.bytes, gate.next(WAIT_MAX)), (0, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        #[test]
        fn messages_act_in_order_and_behind_their_marks(steps in vec((0u8..4, 0u8..3, 0u64..20), 0..60)) {
            let mut gate = DataGate::new(3);
            let (mut number, mut acted, mut shown) = (0, 0, [0; 3]);
            for (action, lane, mark) in steps {
                if action == 0 {
                    number += 1;
                    gate.wait(number, number, 0, Duration::ZERO);
                } else {
                    gate.show(lane, mark, true, Duration::ZERO);
                    shown[usize::from(lane)] = mark.max(shown[usize::from(lane)]);
                }
                while let Some(next) = gate.next(Duration::ZERO) {
                    acted += 1;
                    prop_assert_eq!(next, acted);
                    prop_assert!(shown.iter().all(|shown| *shown >= next));
                }
                prop_assert!(acted == number || shown.iter().any(|shown| *shown <= acted));
            }
        }
    }
}
