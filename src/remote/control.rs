//! The control stream between two systems: numbered, acknowledged and sent again, so that each message is applied once and in
//! order, though frames be lost or repeated.
//!
//! The numbers belong to the pair of UIDs, and begin with 1. The receiver takes the next number alone: a message behind a gap
//! comes again, since the sender sends again all that is not acknowledged.

use crate::util::debug_by_display::debug_by_display;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The time after which a message that is not acknowledged is sent again.
pub(crate) const RESEND_AFTER: Duration = Duration::from_secs(1);

/// The time without an acknowledgement after which the peer is declared down, though its heartbeats come.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// The most messages that are not acknowledged.
pub(crate) const UNACKED_MAX: usize = 20_000;

/// The control stream cannot go on: the peer is declared down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlError {
    /// Too many messages are not acknowledged.
    Overflow,
    /// A message was not acknowledged for too long.
    NoAck { for_: Duration },
    /// A message is acknowledged that was not sent.
    Ack { upto: u64, sent: u64 },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::Overflow => {
                write!(f, "the peer has not acknowledged {UNACKED_MAX} control messages: it is given up")
            }
            ControlError::NoAck { for_ } => {
                write!(f, "the peer has acknowledged no control message for {for_:?}: it is given up")
            }
            ControlError::Ack { upto, sent } => {
                write!(f, "the peer acknowledges control message {upto}, and {sent} were sent")
            }
        }
    }
}

impl std::error::Error for ControlError {}

debug_by_display! { ControlError }

/// The sender's side.
#[derive(Debug)]
pub(crate) struct ControlSender<T> {
    /// The number of messages so far, which is that of the last one.
    sent: u64,
    /// The messages that are not acknowledged, the oldest first.
    unacked: VecDeque<T>,
    /// The time when all of them were sent last, or the first of them was sent.
    last_sent: Duration,
    /// The time of the last acknowledgement, or that when a first message was sent.
    progress: Duration,
}

impl<T: Clone> ControlSender<T> {
    pub(crate) fn new() -> Self {
        Self { sent: 0, unacked: VecDeque::new(), last_sent: Duration::ZERO, progress: Duration::ZERO }
    }

    /// Gives a message its number, under which it is to be sent now.
    pub(crate) fn push(&mut self, message: T, now: Duration) -> Result<u64, ControlError> {
        if self.unacked.len() == UNACKED_MAX {
            return Err(ControlError::Overflow);
        }
        if self.unacked.is_empty() {
            (self.last_sent, self.progress) = (now, now);
        }
        self.unacked.push_back(message);
        self.sent += 1;
        Ok(self.sent)
    }

    /// The peer has applied all messages up to this number. A smaller number than before is that of a late frame.
    pub(crate) fn acked(&mut self, upto: u64, now: Duration) -> Result<(), ControlError> {
        if upto > self.sent {
            return Err(ControlError::Ack { upto, sent: self.sent });
        }
        let before = self.acknowledged();
        let Some(count) = upto.checked_sub(before).filter(|count| *count > 0) else { return Ok(()) };
        // There are that many: the number is at most that of the last message.
        self.unacked.drain(..usize::try_from(count).unwrap_or(usize::MAX).min(self.unacked.len()));
        self.progress = now;
        Ok(())
    }

    /// The messages that are to be sent again now, with their numbers.
    pub(crate) fn due(&mut self, now: Duration) -> Result<Vec<(u64, T)>, ControlError> {
        let silence = now.saturating_sub(self.progress);
        if self.unacked.is_empty() || now.saturating_sub(self.last_sent) < RESEND_AFTER {
            return Ok(Vec::new());
        }
        if silence >= GIVE_UP_AFTER {
            return Err(ControlError::NoAck { for_: silence });
        }
        self.last_sent = now;
        Ok((self.acknowledged() + 1..).zip(self.unacked.iter().cloned()).collect())
    }

    /// Drops what is not acknowledged: the link has ended.
    pub(crate) fn clear(&mut self) {
        self.sent -= self.unacked.len() as u64;
        self.unacked = VecDeque::new();
    }

    /// The node itself did not run for so long, and the peer could not be heard.
    pub(crate) fn forgive(&mut self, pause: Duration, now: Duration) {
        self.progress = self.progress.saturating_add(pause).min(now);
    }

    fn acknowledged(&self) -> u64 {
        self.sent - self.unacked.len() as u64
    }
}

/// The receiver's judgement of a numbered message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbered {
    /// Apply it, and acknowledge.
    Apply,
    /// It was applied before: acknowledge again, since the acknowledgement may have been lost.
    Repeat,
    /// One before it is missing: drop it, it comes again.
    Gap,
}

/// The receiver's side.
#[derive(Debug, Default)]
pub(crate) struct ControlReceiver {
    applied: u64,
}

impl ControlReceiver {
    pub(crate) fn take(&mut self, number: u64) -> Numbered {
        match number.checked_sub(self.applied) {
            Some(1) => {
                self.applied = number;
                Numbered::Apply
            }
            None | Some(0) => Numbered::Repeat,
            Some(_) => Numbered::Gap,
        }
    }

    /// The number to acknowledge.
    pub(crate) fn applied(&self) -> u64 {
        self.applied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_each_second_and_given_up_after_a_minute() {
        let mut sender = ControlSender::new();
        assert_eq!((sender.push("a", seconds(1)), sender.push("b", seconds(1))), (Ok(1), Ok(2)));
        assert_eq!(sender.due(seconds(2) - Duration::from_nanos(1)), Ok(vec![]));
        assert_eq!(sender.due(seconds(2)), Ok(vec![(1, "a"), (2, "b")]));
        assert_eq!(sender.due(seconds(2)), Ok(vec![]));
        sender.acked(1, seconds(3)).unwrap();
        // A late frame.
        sender.acked(0, seconds(60)).unwrap();
        assert_eq!(sender.due(seconds(63) - Duration::from_nanos(1)), Ok(vec![(2, "b")]));
        assert_eq!(sender.due(seconds(64)), Err(ControlError::NoAck { for_: seconds(61) }));
        sender.forgive(seconds(30), seconds(64));
        assert_eq!(sender.due(seconds(64)), Ok(vec![(2, "b")]));
        sender.acked(2, seconds(65)).unwrap();
        assert_eq!(sender.due(seconds(1000)), Ok(vec![]));
        // The minute begins with the message.
        assert_eq!(sender.push("c", seconds(2000)), Ok(3));
        assert_eq!(sender.due(seconds(2001)), Ok(vec![(3, "c")]));
    }

    #[test]
    fn acknowledgements_beyond_what_was_sent_are_refused() {
        let mut sender = ControlSender::new();
        assert_eq!(sender.acked(1, seconds(0)), Err(ControlError::Ack { upto: 1, sent: 0 }));
        sender.push((), seconds(0)).unwrap();
        assert_eq!(sender.acked(u64::MAX, seconds(0)), Err(ControlError::Ack { upto: u64::MAX, sent: 1 }));
        assert_eq!(sender.acked(1, seconds(0)), Ok(()));
    }

    #[test]
    fn one_message_too_many_is_an_overflow() {
        let mut sender = ControlSender::new();
        for number in 1..=UNACKED_MAX as u64 {
            assert_eq!(sender.push((), seconds(0)), Ok(number));
        }
        assert_eq!(sender.push((), seconds(0)), Err(ControlError::Overflow));
        sender.acked(1, seconds(0)).unwrap();
        assert_eq!(sender.push((), seconds(0)), Ok(UNACKED_MAX as u64 + 1));
    }

    #[test]
    fn numbers_out_of_order_are_not_applied() {
        let mut receiver = ControlReceiver::default();
        let taken = [0, 2, 1, 1, 3, 2, u64::MAX].map(|number| receiver.take(number));
        use Numbered::{Apply, Gap, Repeat};
        assert_eq!(taken, [Repeat, Gap, Apply, Repeat, Gap, Apply, Gap]);
        assert_eq!(receiver.applied(), 2);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        /// A frame on its way arrives, is lost, or arrives and stays on its way.
        Message {
            which: prop::sample::Index,
            fate: u8,
        },
        Ack {
            which: prop::sample::Index,
            fate: u8,
        },
        Wait {
            millis: u64,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => Just(Step::Push),
            4 => (any::<prop::sample::Index>(), 0u8..6).prop_map(|(which, fate)| Step::Message { which, fate }),
            3 => (any::<prop::sample::Index>(), 0u8..6).prop_map(|(which, fate)| Step::Ack { which, fate }),
            1 => (0u64..1500).prop_map(|millis| Step::Wait { millis }),
        ]
    }

    /// The frame that arrives, if one does.
    fn fate<T: Clone>(frames: &mut Vec<T>, which: prop::sample::Index, fate: u8) -> Option<T> {
        if frames.is_empty() {
            return None;
        }
        let at = which.index(frames.len());
        match fate {
            0 | 1 => {
                frames.remove(at);
                None
            }
            2 => Some(frames[at].clone()),
            _ => Some(frames.remove(at)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

        /// Frames are lost, repeated and reordered: what is applied is always a beginning of what was sent, in order, and all
        /// of it once the frames come through.
        #[test]
        fn each_message_is_applied_once_and_in_order(steps in vec(step(), 0..200)) {
            let (mut sender, mut receiver) = (ControlSender::new(), ControlReceiver::default());
            let (mut messages, mut acks): (Vec<(u64, u64)>, Vec<u64>) = (Vec::new(), Vec::new());
            let (mut sent, mut applied, mut now) = (0u64, Vec::new(), Duration::ZERO);
            let mut receive = |receiver: &mut ControlReceiver, (number, value): (u64, u64), acks: &mut Vec<u64>| {
                match receiver.take(number) {
                    Numbered::Apply => {
                        applied.push(value);
                        acks.push(receiver.applied());
                    }
                    Numbered::Repeat => acks.push(receiver.applied()),
                    Numbered::Gap => {}
                }
                assert!(applied.iter().copied().eq(1..=applied.len() as u64), "{applied:?}");
            };
            for step in steps {
                match step {
                    Step::Push => {
                        sent += 1;
                        messages.push((sender.push(sent, now).unwrap(), sent));
                    }
                    Step::Message { which, fate: kind } => {
                        if let Some(message) = fate(&mut messages, which, kind) {
                            receive(&mut receiver, message, &mut acks);
                        }
                    }
                    Step::Ack { which, fate: kind } => {
                        if let Some(upto) = fate(&mut acks, which, kind) {
                            sender.acked(upto, now).unwrap();
                        }
                    }
                    Step::Wait { millis } => {
                        now += Duration::from_millis(millis);
                        // A sender that gave up would end the association.
                        messages.extend(sender.due(now).unwrap_or_default());
                    }
                }
            }
            sender.forgive(now, now);
            now += RESEND_AFTER;
            for message in sender.due(now).unwrap() {
                receive(&mut receiver, message, &mut acks);
            }
            sender.acked(receiver.applied(), now).unwrap();
            prop_assert_eq!(receiver.applied(), sent);
            prop_assert_eq!(sender.due(now + RESEND_AFTER), Ok(vec![]));
        }
    }
}
