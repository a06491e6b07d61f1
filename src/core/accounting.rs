//! The accounts of messages that are *open*: counted as sent, and without an outcome yet.
//!
//! User code on a message's way may unwind and take the message down: a logic, a condition, a key's equality, a
//! recipient, an adapter's function. So each place that calls such code keeps an account of what is open there. A
//! message is in one account at a time, and that account counts it.
//!
//! | state | how a message comes to it | in the ledger |
//! |---|---|---|
//! | open | it comes here counted as sent, or is [announced](OpenDeliveries::announce) here | sent |
//! | settled | it is handed over, or has its outcome | the place that has it counts its outcome |
//! | taken back | the place that it was handed to refuses it: it is open again | nothing |
//! | handed back | the sender gets it with the error | the sender counts it |
//! | lost | the account ends while it is open: user code has unwound, or has dropped it | dead-lettered |
//!
//! A message is settled *before* it is handed to a place that has an account or a mailbox of its own. So of several accounts
//! behind each other, only the account whose user code unwinds counts the message. The message is settled *after* it is
//! handed to a place that counts nothing.

use crate::core::dead_letter::{DeadLetterReason, nowhere};
use crate::core::dead_letters::DeadLetters;
use crate::core::ledger::ThreadCounters;
use crate::path::actor_path::ActorPath;
use std::cell::Cell;

/// An account says where open messages are counted and what their dead letters say. It owns nothing.
pub(crate) trait Account {
    /// This thread's counters and the dead letters of the system that counts them; `None`: no system counts.
    fn counters(&self) -> Option<(&ThreadCounters, &DeadLetters)>;

    fn message_type(&self) -> &'static str {
        "a message"
    }

    fn recipient(&self) -> ActorPath {
        nowhere()
    }

    /// A place that a message was handed to has refused it.
    #[inline]
    fn on_refusal(&self) {}
}

/// Dead letters of messages that are gone. Nothing unwinds out of here.
#[cold]
fn lose(account: &impl Account, count: u64, reason: DeadLetterReason) {
    let Some((counters, dead_letters)) = account.counters() else { return };
    counters.dead_lettered(count);
    for _ in 0..count {
        dead_letters.publish(reason, account.message_type(), || account.recipient());
    }
}

/// The number of open deliveries. A drop counts those that are left as lost in a panic.
pub(crate) struct OpenDeliveries<A: Account> {
    pub(crate) account: A,
    count: Cell<u64>,
}

impl<A: Account> OpenDeliveries<A> {
    /// The account of one message that is counted as sent.
    #[inline]
    pub(crate) fn one(account: A) -> Self {
        Self { account, count: Cell::new(1) }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    #[inline]
    fn count_sent(&self, count: u64) {
        if let Some((counters, _)) = self.account.counters() {
            counters.sent(count);
        }
    }

    /// Counts more deliveries as sent.
    #[inline]
    pub(crate) fn announce(&self, count: u64) {
        self.count_sent(count);
        self.count.set(self.count.get() + count);
    }

    /// A delivery has its outcome, or is handed over.
    #[inline]
    pub(crate) fn settle_one(&self) {
        self.count.set(self.count.get().saturating_sub(1));
    }

    /// A delivery is handed over, and at least one is open.
    #[inline]
    pub(crate) fn settle_counted(&self) {
        debug_assert!(!self.is_empty(), "a delivery is open");
        self.count.set(self.count.get().wrapping_sub(1));
    }

    /// A delivery is handed over. It is counted as sent now if none is open.
    #[inline]
    pub(crate) fn begin_one(&self) {
        match self.count.get() {
            0 => self.count_sent(1),
            open => self.count.set(open - 1),
        }
    }

    /// A delivery that was handed over comes back.
    #[inline]
    pub(crate) fn take_back(&self) {
        self.count.set(self.count.get() + 1);
        self.account.on_refusal();
    }

    /// All are handed over to what accounts for them.
    #[inline]
    pub(crate) fn settle_all(&self) {
        self.count.set(0);
    }

    /// All open deliveries are lost for this reason.
    #[inline]
    pub(crate) fn lose_rest(&self, reason: DeadLetterReason) {
        let lost = self.count.replace(0);
        if lost > 0 {
            lose(&self.account, lost, reason);
        }
    }

    /// Ends the account: what is open is lost for this reason.
    #[inline]
    pub(crate) fn end(self, reason: DeadLetterReason) {
        self.lose_rest(reason);
        // The drop would look once more.
        std::mem::forget(self);
    }

    /// Hands one delivery back, whose outcome the sender counts, and loses the others for this reason. If none is open,
    /// one more is counted as sent.
    #[cold]
    pub(crate) fn hand_one_back(&self, reason: DeadLetterReason) {
        match self.count.replace(0) {
            0 => self.count_sent(1),
            1 => {}
            more => lose(&self.account, more - 1, reason),
        }
    }
}

impl<A: Account> Drop for OpenDeliveries<A> {
    /// User code has unwound: the messages that it held are gone, and the ledger counts them.
    #[inline]
    fn drop(&mut self) {
        self.lose_rest(DeadLetterReason::Panicked);
    }
}

/// A single delivery that is open while this guard exists, and needs no count.
pub(crate) struct InFlightGuard<A: Account>(A);

impl<A: Account> InFlightGuard<A> {
    #[inline]
    pub(crate) fn begin(account: A) -> Self {
        Self(account)
    }

    /// Ends the guard: user code has not lost the message.
    #[inline]
    pub(crate) fn end(self) {
        std::mem::forget(self);
    }
}

impl<A: Account> Drop for InFlightGuard<A> {
    /// As [`OpenDeliveries::drop`].
    #[cold]
    fn drop(&mut self) {
        lose(&self.0, 1, DeadLetterReason::Panicked);
    }
}
