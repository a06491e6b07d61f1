//! Control messages that wait for data: an actor's end is told behind the last messages that it has sent.
//!
//! The sender puts a mark with the number of the control message into each lane, behind what the lane holds. The message may
//! act once each lane has handled a batch that shows the mark, or a later one. Batches may be lost, so it acts in any
//! case when its time is over. The time begins anew with each batch that a lane handles before the mark: messages that are only
//! slow to come, since much waits before them, are not overtaken.

use std::collections::VecDeque;
use std::time::Duration;

/// The time after which a message acts though not all lanes have shown its mark, and those have handled nothing.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(3);

/// The messages that wait, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct DataGate<T> {
    /// The greatest mark that each lane has handled.
    shown: Box<[u64]>,
    waiting: VecDeque<(u64, Duration, T)>,
    /// The time when a lane has handled a batch last whose mark is not that of the first message.
    progress: Duration,
    /// The messages that acted before their marks were shown.
    pub(crate) overdue: u64,
}

impl<T> DataGate<T> {
    pub(crate) fn new(lanes: u8) -> Self {
        let shown = vec![0; usize::from(lanes)].into_boxed_slice();
        Self { shown, waiting: VecDeque::new(), progress: Duration::ZERO, overdue: 0 }
    }

    /// Lets a control message wait. Numbers rise from call to call.
    pub(crate) fn wait(&mut self, number: u64, message: T, now: Duration) {
        self.waiting.push_back((number, now, message));
    }

    /// The number of messages that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A lane has handled a batch with this mark, and with envelopes or without.
    pub(crate) fn show(&mut self, lane: u8, mark: u64, has_envelopes: bool, now: Duration) {
        if let Some(shown) = self.shown.get_mut(usize::from(lane)) {
            *shown = mark.max(*shown);
            let first = self.waiting.front().map(|(number, ..)| *number);
            if has_envelopes && first.is_some_and(|number| *shown < number) {
                self.progress = now;
            }
        }
    }

    /// The next message that acts now.
    pub(crate) fn next(&mut self, now: Duration) -> Option<T> {
        let (number, since, _) = self.waiting.front()?;
        let is_shown = self.shown.iter().all(|shown| shown >= number);
        if !is_shown && now.saturating_sub(self.progress.max(*since)) < WAIT_MAX {
            return None;
        }
        self.overdue += u64::from(!is_shown);
        self.waiting.pop_front().map(|(_, _, message)| message)
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
        gate.wait(3, "first", Duration::ZERO);
        gate.wait(5, "second", Duration::ZERO);
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
        gate.wait(3, "end", Duration::ZERO);
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

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        #[test]
        fn messages_act_in_order_and_behind_their_marks(steps in vec((0u8..4, 0u8..3, 0u64..20), 0..60)) {
            let mut gate = DataGate::new(3);
            let (mut number, mut acted, mut shown) = (0, 0, [0; 3]);
            for (action, lane, mark) in steps {
                if action == 0 {
                    number += 1;
                    gate.wait(number, number, Duration::ZERO);
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
