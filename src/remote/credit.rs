//! The credit of a lane, by which a receiver bounds what is under way to it.
//!
//! The receiver grants a *limit*, the bytes up to which the sender may send on the lane: the bytes that it has consumed or
//! counted as lost, and a window. Positions and limits are sums since the beginning of the lane, so a credit message that
//! is lost, repeated or late loses no credit. The receiver sees what was lost by the position of the next batch, which may be
//! an empty one.

use crate::remote::frame::{HEADER_LEN, Position};
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::time::Duration;

/// The fewest bytes that an envelope has.
const ENVELOPE_MIN: u64 = 3;

/// The most batches that may be missing before a batch.
const GAP_MAX: u64 = 1 << 32;

/// The time after which a limit is told again.
pub(crate) const REPEAT_AFTER: Duration = Duration::from_secs(1);

/// The sums of a lane that its receiver tells its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Receipt {
    /// The bytes up to which the sender may send.
    pub(crate) limit: u64,
    /// The envelopes that came.
    pub(crate) received: u64,
    /// The envelopes that did not come and never will.
    pub(crate) lost: u64,
    /// The batches that came again, or behind a later one.
    pub(crate) repeated: u64,
}

/// The receiver's judgement of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is the next one, or `lost` envelopes before it are missing.
    Take { lost: u64 },
    /// This batch, or a later one, was taken before: drop it.
    Repeat,
}

/// A batch, or a credit message, contradicts what was said before: the peer is faulty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreditError {
    /// More batches are missing than can have been sent.
    Gap { missing: u64 },
    /// The sum of the envelopes, or of the bytes, does not continue the one before.
    Sum { told: u64, expected: u64 },
    /// The batch goes beyond the limit.
    Beyond { end: u64, limit: u64 },
    /// The limit is further than a window beyond what was sent.
    Limit { limit: u64, max: u64 },
    /// More envelopes came or were lost than were sent, or fewer than the peer has told before.
    Settled { envelopes: u64, sent: u64 },
}

impl fmt::Display for CreditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreditError::Gap { missing } => {
                write!(f, "{missing} batches are missing, more than can have been sent")
            }
            CreditError::Sum { told, expected } => {
                write!(f, "the peer tells the sum {told}, which does not continue {expected}")
            }
            CreditError::Beyond { end, limit } => {
                write!(f, "the peer sends up to byte {end}, and its credit ends at {limit}")
            }
            CreditError::Limit { limit, max } => {
                write!(f, "the peer grants credit up to byte {limit}, and at most {max} can be granted")
            }
            CreditError::Settled { envelopes, sent } => {
                write!(f, "the peer tells of {envelopes} envelopes, and {sent} were sent")
            }
        }
    }
}

impl std::error::Error for CreditError {}

debug_by_display! { CreditError }

/// The receiver's side of a lane.
#[derive(Debug)]
pub(crate) struct ReceivingLane {
    window: u64,
    /// The window that the peer was told, beyond which it takes no credit.
    largest_window: u64,
    /// The place of the next batch, if nothing is lost.
    sequence: u64,
    first: u64,
    offset: u64,
    /// The bytes that were consumed, or are lost.
    settled: u64,
    receipt: Receipt,
    told: Option<Duration>,
}

impl ReceivingLane {
    pub(crate) fn new(window: u64) -> Self {
        let receipt = Receipt { limit: window, ..Receipt::default() };
        Self {
            window,
            largest_window: window,
            sequence: 1,
            first: 0,
            offset: 0,
            settled: 0,
            receipt,
            told: None,
        }
    }

    /// Takes in a batch of so many envelopes, whose frame has `bytes` bytes.
    pub(crate) fn arrive(
        &mut self,
        position: &Position,
        envelopes: u16,
        bytes: usize,
    ) -> Result<Arrival, CreditError> {
        if position.sequence < self.sequence {
            self.receipt.repeated += 1;
            return Ok(Arrival::Repeat);
        }
        let missing = position.sequence - self.sequence;
        if missing > GAP_MAX {
            return Err(CreditError::Gap { missing });
        }
        let difference = |told: u64, expected: u64| {
            told.checked_sub(expected)
                .filter(|more| missing > 0 || *more == 0)
                .ok_or(CreditError::Sum { told, expected })
        };
        let (lost, lost_bytes) =
            (difference(position.first, self.first)?, difference(position.offset, self.offset)?);
        let counted = u64::from(position.counted(envelopes));
        let charge = charge(envelopes, bytes);
        // The limit bounds all sums, so no later addition overflows.
        match position.offset.checked_add(charge) {
            Some(end) if end <= self.receipt.limit => {}
            end => {
                return Err(CreditError::Beyond { end: end.unwrap_or(u64::MAX), limit: self.receipt.limit });
            }
        }
        // Each batch that has envelopes has a header.
        let room = lost_bytes.saturating_sub(HEADER_LEN as u64) / ENVELOPE_MIN;
        if lost > room {
            return Err(CreditError::Sum { told: position.first, expected: self.first });
        }
        self.sequence = position.sequence + 1;
        self.first = position.first + counted;
        self.offset = position.offset + charge;
        self.settled += lost_bytes;
        self.receipt.received += counted;
        self.receipt.lost += lost;
        Ok(Arrival::Take { lost })
    }

    /// A batch that was taken is handled.
    pub(crate) fn consumed(&mut self, envelopes: u16, bytes: usize) {
        self.settled += charge(envelopes, bytes);
    }

    /// The envelopes that came.
    pub(crate) fn received(&self) -> u64 {
        self.receipt.received
    }

    /// The bytes that came and are not consumed.
    pub(crate) fn under_way(&self) -> u64 {
        self.offset - self.settled
    }

    /// Returns the receipt that the sender is to be told now: a limit that has moved by half a window, and each second what has changed, or is
    /// told again since the message may have been lost.
    pub(crate) fn due(&mut self, now: Duration) -> Option<Receipt> {
        let has_moved = self.limit() - self.receipt.limit >= (self.window / 2).max(1);
        let is_late = self.told.is_none_or(|told| now.saturating_sub(told) >= REPEAT_AFTER);
        (has_moved || is_late).then(|| self.tell(now))
    }

    /// Returns the receipt, whether it is due or not.
    pub(crate) fn tell(&mut self, now: Duration) -> Receipt {
        (self.receipt.limit, self.told) = (self.limit(), Some(now));
        self.receipt
    }

    /// Grants less, or up to as much as at first, from now on. A limit that was granted stays: the bytes under way become fewer
    /// as they are consumed.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.window = window.min(self.largest_window);
    }

    /// The limit that is granted now.
    fn limit(&self) -> u64 {
        (self.settled + self.window).max(self.receipt.limit)
    }
}

/// The bytes that a batch takes of the credit: none, if it has no envelopes.
fn charge(envelopes: u16, bytes: usize) -> u64 {
    if envelopes == 0 { 0 } else { bytes as u64 }
}

/// The sender's side of a lane, with the last receipt.
#[derive(Debug)]
pub(crate) struct SendingLane {
    window: u64,
    receipt: Receipt,
}

impl SendingLane {
    pub(crate) fn new(window: u64) -> Self {
        Self { window, receipt: Receipt { limit: window, ..Receipt::default() } }
    }

    /// Takes a receipt of a lane that has sent so many bytes and envelopes. Returns whether it is newer than the last one.
    pub(crate) fn told(
        &mut self,
        receipt: &Receipt,
        sent_bytes: u64,
        sent: u64,
    ) -> Result<bool, CreditError> {
        let max = sent_bytes.saturating_add(self.window);
        if receipt.limit > max {
            return Err(CreditError::Limit { limit: receipt.limit, max });
        }
        let envelopes = receipt.received.saturating_add(receipt.lost);
        if envelopes > sent {
            return Err(CreditError::Settled { envelopes, sent });
        }
        let had = self.receipt;
        let is_newer = receipt.limit >= had.limit
            && receipt.received >= had.received
            && receipt.lost >= had.lost
            && receipt.repeated >= had.repeated;
        let is_older = receipt.limit <= had.limit
            && receipt.received <= had.received
            && receipt.lost <= had.lost
            && receipt.repeated <= had.repeated;
        match (is_newer, is_older) {
            (true, false) => {
                self.receipt = *receipt;
                Ok(true)
            }
            // An older message that came late, or the same again.
            (_, true) => Ok(false),
            (false, false) => Err(CreditError::Settled { envelopes, sent }),
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.receipt.limit
    }

    /// The bytes that the receiver has consumed or counted as lost.
    pub(crate) fn settled_bytes(&self) -> u64 {
        self.receipt.limit - self.window
    }

    /// The envelopes of which the receiver has not told yet, of so many that were sent.
    pub(crate) fn in_doubt(&self, sent: u64) -> u64 {
        sent - self.receipt.received - self.receipt.lost
    }

    pub(crate) fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::batch::{Batch, EnvelopeKind, Place};
    use crate::remote::outbox::{EntryMemory, Outbox, OutboxLimits, Outgoing};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const WINDOW: u64 = 1000;

    fn at(sequence: u64, first: u64, offset: u64) -> Position {
        Position { sequence, first, offset, ..Position::default() }
    }

    #[test]
    fn a_gap_tells_exactly_what_was_lost() {
        let mut lane = ReceivingLane::new(WINDOW);
        assert_eq!(lane.arrive(&at(1, 0, 0), 2, 100), Ok(Arrival::Take { lost: 0 }));
        assert_eq!(lane.arrive(&at(4, 7, 350), 1, 90), Ok(Arrival::Take { lost: 5 }));
        assert_eq!(lane.arrive(&at(2, 2, 100), 2, 100), Ok(Arrival::Repeat));
        assert_eq!(lane.arrive(&at(4, 7, 350), 1, 90), Ok(Arrival::Repeat));
        assert_eq!(lane.under_way(), 190);
        lane.consumed(2, 100);
        lane.consumed(1, 90);
        let receipt = Receipt { limit: 440 + WINDOW, received: 3, lost: 5, repeated: 2 };
        assert_eq!(lane.due(Duration::ZERO), Some(receipt));
        assert_eq!(lane.due(REPEAT_AFTER - Duration::from_nanos(1)), None);
        assert_eq!(lane.due(REPEAT_AFTER), Some(receipt));
    }

    #[test]
    fn a_smaller_window_takes_no_credit_back_and_bounds_what_comes_later() {
        let (mut lane, mut sender) = (ReceivingLane::new(WINDOW), SendingLane::new(WINDOW));
        lane.set_window(200);
        assert_eq!(lane.due(Duration::ZERO).map(|receipt| receipt.limit), Some(WINDOW), "it was granted");
        // The sender uses up what it has, and the receiver consumes it.
        for batch in 0..10 {
            let sent = batch * 100;
            assert_eq!(lane.arrive(&at(batch + 1, batch, sent), 1, 100), Ok(Arrival::Take { lost: 0 }));
            lane.consumed(1, 100);
            let receipt = lane.tell(Duration::from_secs(batch));
            assert_eq!(receipt.limit, WINDOW.max(sent + 100 + 200));
            assert!(sender.told(&receipt, sent + 100, batch + 1).is_ok());
        }
        assert_eq!(sender.limit(), 1200);
        // The greatest window is that of the beginning.
        lane.set_window(9 * WINDOW);
        let receipt = lane.tell(Duration::from_secs(20));
        assert_eq!((receipt.limit, sender.told(&receipt, 1000, 10)), (1000 + WINDOW, Ok(true)));
    }

    #[test]
    fn positions_that_contradict_each_other_are_refused_and_change_nothing() {
        let mut lane = ReceivingLane::new(WINDOW);
        lane.arrive(&at(1, 0, 0), 2, 100).unwrap();
        let before = format!("{lane:?}");
        for (position, envelopes, bytes, fault) in [
            // Forwards by 2^63.
            (at(2 + (1 << 63), 2, 100), 0, 72, CreditError::Gap { missing: 1 << 63 }),
            (at(3 + GAP_MAX, 2, 100), 0, 72, CreditError::Gap { missing: 1 + GAP_MAX }),
            // Sums that go back, that move without a gap, and that are more than the gap can hold.
            (at(3, 1, 100), 1, 80, CreditError::Sum { told: 1, expected: 2 }),
            (at(3, 2, 99), 1, 80, CreditError::Sum { told: 99, expected: 100 }),
            (at(2, 3, 100), 1, 80, CreditError::Sum { told: 3, expected: 2 }),
            (at(2, 2, 101), 1, 80, CreditError::Sum { told: 101, expected: 100 }),
            (at(3, 4, 177), 1, 80, CreditError::Sum { told: 4, expected: 2 }),
            (at(3, u64::MAX, 200), 1, 80, CreditError::Sum { told: u64::MAX, expected: 2 }),
            // Beyond the credit by a byte.
            (at(2, 2, 100), 1, 901, CreditError::Beyond { end: 1001, limit: 1000 }),
            (at(3, 2, 1001), 0, 72, CreditError::Beyond { end: 1001, limit: 1000 }),
            (at(3, 2, u64::MAX), 1, 80, CreditError::Beyond { end: u64::MAX, limit: 1000 }),
        ] {
            assert_eq!(lane.arrive(&position, envelopes, bytes), Err(fault), "{position:?}");
        }
        assert_eq!(format!("{lane:?}"), before);
        // At the limits.
        assert_eq!(lane.arrive(&at(3, 4, 178), 1, 822), Ok(Arrival::Take { lost: 2 }));
        assert_eq!(lane.arrive(&at(4 + GAP_MAX, 5, 1000), 0, 72), Ok(Arrival::Take { lost: 0 }));
    }

    #[test]
    fn receipts_beyond_what_was_sent_are_refused_and_late_ones_ignored() {
        let mut lane = SendingLane::new(WINDOW);
        let receipt = |limit, received, lost| Receipt { limit, received, lost, repeated: 0 };
        assert_eq!(
            lane.told(&receipt(1501, 5, 0), 500, 10),
            Err(CreditError::Limit { limit: 1501, max: 1500 })
        );
        assert_eq!(lane.told(&receipt(u64::MAX, 5, 0), u64::MAX, 10), Ok(true));
        let mut lane = SendingLane::new(WINDOW);
        assert_eq!(
            lane.told(&receipt(1500, 5, 6), 500, 10),
            Err(CreditError::Settled { envelopes: 11, sent: 10 })
        );
        assert_eq!(
            lane.told(&receipt(1500, u64::MAX, 1), 500, 10),
            Err(CreditError::Settled { envelopes: u64::MAX, sent: 10 })
        );
        assert_eq!(lane.told(&receipt(1500, 5, 4), 500, 10), Ok(true));
        assert_eq!((lane.limit(), lane.settled_bytes(), lane.in_doubt(10)), (1500, 500, 1));
        assert_eq!(lane.told(&receipt(1400, 5, 1), 500, 10), Ok(false));
        assert_eq!(
            lane.told(&receipt(1500, 4, 5), 500, 10),
            Err(CreditError::Settled { envelopes: 9, sent: 10 })
        );
        assert_eq!((lane.limit(), lane.receipt().lost), (1500, 4));
    }

    /// A sender, a receiver, and the frames and receipts between them.
    struct Link {
        outbox: Outbox,
        memory: EntryMemory,
        sending: SendingLane,
        receiving: ReceivingLane,
        frames: VecDeque<Vec<u8>>,
        /// Batches that came and are not consumed.
        unconsumed: VecDeque<(u16, usize)>,
        receipts: VecDeque<Receipt>,
        pushed: u64,
        now: Duration,
    }

    impl Link {
        fn new() -> Self {
            let limits = OutboxLimits { lane_bytes: 3000, large_bytes: 30_000, batch_bytes: 250 };
            Self {
                outbox: Outbox::new(1, 2, 1, WINDOW, limits),
                memory: EntryMemory::default(),
                sending: SendingLane::new(WINDOW),
                receiving: ReceivingLane::new(WINDOW),
                frames: VecDeque::new(),
                unconsumed: VecDeque::new(),
                receipts: VecDeque::new(),
                pushed: 0,
                now: Duration::ZERO,
            }
        }

        fn push(&mut self, size: usize) {
            let place = Place::Actor { path: "/user/a", uid: 1, type_id: 2 };
            let body = vec![0; size];
            let envelope = Outgoing { kind: EnvelopeKind::Tell, place, tokens: &[], body: &body };
            self.pushed += u64::from(self.outbox.push(0, &envelope, &self.memory).is_ok());
        }

        fn write(&mut self) {
            self.frames.extend(self.outbox.next(0).map(|(_, frame)| frame));
        }

        fn arrive(&mut self, fate: u8) {
            let Some(frame) = self.frames.pop_front() else { return };
            // Three of eight are lost, and one comes twice.
            let copies = match fate % 8 {
                0..=2 => 0,
                3 => 2,
                _ => 1,
            };
            for _ in 0..copies {
                let batch = Batch::read(&frame, 1, 1000).unwrap();
                let envelopes = batch.prefix.envelopes;
                if let Arrival::Take { .. } =
                    self.receiving.arrive(&batch.position, envelopes, frame.len()).unwrap()
                {
                    self.unconsumed.push_back((envelopes, frame.len()));
                }
            }
            assert!(self.receiving.under_way() <= WINDOW);
        }

        fn consume(&mut self) {
            if let Some((envelopes, bytes)) = self.unconsumed.pop_front() {
                self.receiving.consumed(envelopes, bytes);
            }
        }

        fn tick(&mut self, millis: u64) {
            self.now += Duration::from_millis(millis);
            self.receipts.extend(self.receiving.due(self.now));
            let _ = self.outbox.probe(0, self.sending.settled_bytes());
        }

        fn told(&mut self, fate: u8) {
            let Some(receipt) = self.receipts.pop_front() else { return };
            if fate % 4 == 0 {
                return;
            }
            let shipped = self.outbox.counts().shipped;
            // The bytes that were sent are at most the limit.
            self.sending.told(&receipt, self.sending.limit(), shipped).unwrap();
            let _ = self.outbox.grant(0, self.sending.limit());
        }

        fn step(&mut self, action: u8, fate: u8) {
            match action % 8 {
                0 | 1 => self.push(usize::from(fate)),
                2 | 3 => self.write(),
                4 => self.arrive(fate),
                5 => self.consume(),
                6 => self.tick(u64::from(fate) * 4),
                _ => self.told(fate),
            }
            let sent = self.outbox.counts();
            assert_eq!(sent.queued + sent.shipped, self.pushed);
        }

        /// Nothing is lost any more, and nothing is pushed: all of the window comes back.
        fn settle(&mut self) {
            for _ in 0..200 {
                for _ in 0..20 {
                    self.write();
                    self.arrive(7);
                    self.consume();
                }
                self.tick(1000);
                while !self.receipts.is_empty() {
                    self.told(1);
                }
            }
            let counts = self.outbox.counts();
            assert_eq!((counts.queued, counts.shipped), (0, self.pushed));
            let receipt = self.sending.receipt();
            assert_eq!(receipt.received + receipt.lost, self.pushed);
            assert_eq!(self.sending.in_doubt(self.pushed), 0);
            assert_eq!(
                (self.receiving.under_way(), self.sending.limit()),
                (0, self.receiving.settled + WINDOW)
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        #[test]
        fn credit_never_exceeds_the_window_and_all_of_it_comes_back(
            steps in prop::collection::vec((any::<u8>(), any::<u8>()), 0..300),
        ) {
            let mut link = Link::new();
            steps.into_iter().for_each(|(action, fate)| link.step(action, fate));
            link.settle();
        }
    }

    /// Without the probes the lane stands still after some 200 messages: all that was under way is lost, and no later batch
    /// tells of it.
    #[test]
    fn a_million_lossy_steps_leak_no_credit() {
        let mut link = Link::new();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..1_000_000 {
            // Xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            link.step((state >> 20) as u8, (state >> 40) as u8);
        }
        link.settle();
        assert!(link.pushed > 10_000, "{}", link.pushed);
    }
}
