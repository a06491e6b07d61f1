//! The state of an actor elsewhere, as its senders see it: open, choked until a time, or ended.
//!
//! A sender looks before it encodes. The look alone decides nothing that has to be exact: a message that is sent while the end
//! comes in is refused by the outbox, or at the other node. But a sender that knows of the end, since it was told that the
//! actor has terminated, is refused here.

use crate::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The actor takes messages, as far as this node knows.
const OPEN: u64 = 0;

/// The actor has ended, for good.
const ENDED: u64 = u64::MAX;

/// The state of an actor elsewhere.
#[derive(Debug)]
pub(crate) struct FarState {
    /// [`OPEN`], [`ENDED`], or the nanosecond of the system's clock until which the actor is choked.
    word: AtomicU64,
}

/// The state at the moment of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FarLook {
    Open,
    /// The actor has too many messages, and senders are refused as by a full mailbox.
    Choked,
    Ended,
}

impl FarState {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(OPEN) }
    }

    /// Looks at the state. The time is read if the actor is choked, and then alone.
    pub(crate) fn look(&self, now: impl FnOnce() -> Duration) -> FarLook {
        // Ordering: Relaxed; a sender that was told of the end has the write before its look.
        match self.word.load(Ordering::Relaxed) {
            OPEN => FarLook::Open,
            ENDED => FarLook::Ended,
            until if nanoseconds(now()) < until => FarLook::Choked,
            _ => FarLook::Open,
        }
    }

    /// Whether the actor has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.word.load(Ordering::Relaxed) == ENDED
    }

    /// The actor is choked until this time of the system's clock, unless the peer renews it. An earlier time than before is that
    /// of a late message.
    pub(crate) fn choke(&self, until: Duration) {
        self.change(|word| word.max(nanoseconds(until)));
    }

    /// The actor takes messages again.
    pub(crate) fn unchoke(&self) {
        self.change(|_| OPEN);
    }

    /// The actor has ended. Returns whether this was not known before.
    pub(crate) fn end(&self) -> bool {
        // Ordering: Relaxed; as in `look`.
        self.word.swap(ENDED, Ordering::Relaxed) != ENDED
    }

    /// Changes the state, unless it is the last one.
    fn change(&self, to: impl Fn(u64) -> u64) {
        let change = |word| (word != ENDED).then(|| to(word));
        // Ordering: Relaxed; as in `look`.
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

/// A time as a word, which is neither of the two states without a time.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).clamp(OPEN + 1, ENDED - 1)
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_choke_lapses_is_renewed_and_is_taken_back() {
        let state = FarState::new();
        assert_eq!(state.look(|| panic!("an open state needs no time")), FarLook::Open);
        state.choke(3 * SECOND);
        assert_eq!(state.look(|| 3 * SECOND - Duration::from_nanos(1)), FarLook::Choked);
        assert_eq!(state.look(|| 3 * SECOND), FarLook::Open);
        state.choke(5 * SECOND);
        state.choke(4 * SECOND);
        assert_eq!(state.look(|| 4 * SECOND), FarLook::Choked);
        state.unchoke();
        assert_eq!(state.look(|| 4 * SECOND), FarLook::Open);
    }

    #[test]
    fn an_end_is_told_once_and_stays() {
        let state = FarState::new();
        state.choke(SECOND);
        assert!(!state.has_ended() && state.end() && !state.end() && state.has_ended());
        state.choke(9 * SECOND);
        state.unchoke();
        assert_eq!(state.look(|| Duration::ZERO), FarLook::Ended);
    }

    #[test]
    fn no_time_is_taken_for_an_end_or_for_open() {
        let state = FarState::new();
        state.choke(Duration::MAX);
        assert_eq!(state.look(|| SECOND), FarLook::Choked);
        state.unchoke();
        state.choke(Duration::ZERO);
        assert_eq!(state.look(|| Duration::ZERO), FarLook::Open);
    }
}
