//! The state word decides how many messages are claimed and which thread may run the actor.
//!
//! Each question that two threads could answer differently is settled by one read-modify-write of this word: a claim,
//! the permission to run the actor, and the close. Every other location is only advice.

use crate::sync::atomic::{AtomicU64, Ordering};

/// The state packs one bit per fact; the rest of the word is the tail index.
///
/// ```text
/// 63                             8   7       6         5           4       3        2        1      0
/// ┌───────────────────────────────┬───────┬─────────┬───────────┬───────┬────────┬────────┬──────┬────────┐
/// │ tail index: claims made so far│ FRESH │ LIMITED │ SUSPENDED │ EPOCH │ SYSTEM │ PARKED │ IDLE │ CLOSED │
/// └───────────────────────────────┴───────┴─────────┴───────────┴───────┴────────┴────────┴──────┴────────┘
/// ```
///
/// 56 bits of index last 90 years at 25 million messages a second, which is more than one cache line can take. A carry
/// would leave the word at the top and never run into the bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct MailboxState(u64);

/// No more messages are accepted; the bit is never cleared.
const CLOSED: u64 = 1 << 0;
/// The state word holds the ownership token: no thread runs the actor, and the actor has nothing to do.
const IDLE: u64 = 1 << 1;
/// The state word holds the ownership token: the actor is suspended, and only the system queue may wake it.
const PARKED: u64 = 1 << 2;
/// A push to the system queue came after the owner's last look; the bit keeps the token from being laid down.
const SYSTEM: u64 = 1 << 3;
/// Flips when an idle transition gives the block chain away, and so marks a `tail_block` as stale.
const EPOCH: u64 = 1 << 4;
/// For observers such as routers: the actor takes no user messages for now.
const SUSPENDED: u64 = 1 << 5;
/// A bounded or displacing mailbox; set at construction and never changed.
const LIMITED: u64 = 1 << 6;
/// Set at construction, and cleared by the first claim that is made by an exchange. It leads the first claim away from
/// the usual push, to the inline slot; nothing depends on it for later claims.
const FRESH: u64 = 1 << 7;

const INDEX_SHIFT: u32 = 8;
const ONE_MESSAGE: u64 = 1 << INDEX_SHIFT;

const _: () = assert!(
    CLOSED | IDLE | PARKED | SYSTEM | EPOCH | SUSPENDED | LIMITED | FRESH == ONE_MESSAGE - 1,
    "the bits fill the room below the index and do not overlap"
);

impl MailboxState {
    /// The number of claims made so far, refused claims included; the next claim gets this index.
    #[inline(always)]
    pub(crate) fn index(self) -> u64 {
        self.0 >> INDEX_SHIFT
    }

    #[inline(always)]
    pub(crate) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// The state word holds the token, and the mailbox was empty when the token was laid down.
    #[inline(always)]
    pub(crate) fn is_idle(self) -> bool {
        self.0 & IDLE != 0
    }

    /// No thread holds the token: the mailbox is idle, or parked while suspended.
    #[inline(always)]
    pub(crate) fn is_unowned(self) -> bool {
        self.0 & (IDLE | PARKED) != 0
    }

    #[inline(always)]
    pub(crate) fn has_system_flag(self) -> bool {
        self.0 & SYSTEM != 0
    }

    #[inline(always)]
    pub(crate) fn is_suspended(self) -> bool {
        self.0 & SUSPENDED != 0
    }

    #[inline(always)]
    pub(crate) fn is_limited(self) -> bool {
        self.0 & LIMITED != 0
    }

    /// Neither closed, suspended nor idle: an observer then needs only the number of messages.
    #[inline(always)]
    pub(crate) fn is_busy(self) -> bool {
        self.0 & (CLOSED | SUSPENDED | IDLE) == 0
    }

    /// Neither idle nor closed: the claim needs nothing but a place.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & (IDLE | CLOSED) == 0
    }

    /// As [`is_plain`](Self::is_plain), for a mailbox without a bound that has had a claim.
    #[inline(always)]
    pub(crate) fn is_plain_and_unbounded(self) -> bool {
        self.0 & (IDLE | CLOSED | LIMITED | FRESH) == 0
    }

    /// The mailbox has had no claim, unless FRESH is left over from it, and is open, owned, and without a bound.
    #[inline(always)]
    pub(crate) fn is_fresh_and_unbounded(self) -> bool {
        self.0 & (IDLE | CLOSED | LIMITED | FRESH) == FRESH
    }

    /// The claim made in this state is the first.
    #[inline(always)]
    pub(crate) fn is_first(self) -> bool {
        self.index() == 0
    }

    /// The token lies under IDLE, the mailbox is open, and the mailbox has no bound.
    #[inline(always)]
    pub(crate) fn is_idle_and_unbounded(self) -> bool {
        self.0 & (IDLE | CLOSED | LIMITED) == IDLE
    }

    /// 0 or 1.
    #[inline(always)]
    pub(crate) fn epoch(self) -> usize {
        usize::from(self.0 & EPOCH != 0)
    }

    /// Adds a claim; takes the token if it lay under IDLE.
    fn claimed(self) -> Self {
        Self((self.0 + ONE_MESSAGE) & !(IDLE | FRESH))
    }
}

/// The fate of the block chain when the actor goes idle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chain {
    /// No chain was installed in this epoch: the epoch stays.
    None,
    /// The chain is given away: the epoch flips.
    Released,
}

/// The atomic around [`MailboxState`].
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct StateWord(AtomicU64);

impl StateWord {
    /// Makes the word of a mailbox that is open, idle and empty.
    ///
    /// The first epoch is 1, while the null of a fresh `tail_block` reads as epoch 0. So "no block yet" needs no test
    /// of its own.
    pub(crate) fn new(limited: bool) -> Self {
        Self(AtomicU64::new(FRESH | IDLE | EPOCH | if limited { LIMITED } else { 0 }))
    }

    #[inline(always)]
    pub(crate) fn look(&self) -> MailboxState {
        MailboxState(self.0.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn look_acquire(&self) -> MailboxState {
        // Ordering: Acquire; pairs with the Release half of `claim` and of `close`: a reader that sees an index sees
        // the `head` that the claiming sender saw. The load also pairs with the Release of `lay_down` and of `park`: a
        // reader that sees the token in the word sees what its last holder did (`Gate::is_at_rest`).
        MailboxState(self.0.load(Ordering::Acquire))
    }

    /// Claims one index unconditionally. On a closed word the claim is void, and only the index grows.
    #[inline(always)]
    #[must_use = "the old state tells whether the claim holds and where it goes"]
    pub(crate) fn claim(&self) -> MailboxState {
        // Ordering: Acquire; pairs with the Release of `lay_down`, which makes `inline_index` and `head` of the last
        // idle transition visible, and with the Release of `mark_advance`, which lets a claim behind it see the
        // `tail_block` advanced before it. AcqRel and not Acquire: `len` and `look_acquire` conclude from an index to
        // everything that its claimer knew.
        MailboxState(self.0.fetch_add(ONE_MESSAGE, Ordering::AcqRel))
    }

    /// Claims `count` indices in a row, as [`claim`](Self::claim) claims one; `count` is at least 1.
    #[inline]
    #[must_use = "the old state tells whether the claims hold and where they go"]
    pub(crate) fn claim_many(&self, count: usize) -> MailboxState {
        // Ordering: as `claim`. All indices are claimed by one change of the word, so a close, an idle transition and
        // `mark_advance` come before all of them or behind all of them.
        MailboxState(self.0.fetch_add(count as u64 * ONE_MESSAGE, Ordering::AcqRel))
    }

    /// Claims one index if the word is still `seen`, and with the index the token if it lay under IDLE.
    #[inline]
    pub(crate) fn try_claim(&self, seen: MailboxState) -> Result<(), MailboxState> {
        // Ordering: as `claim`. Acquire on failure as well: a bounded sender that retries with the new index must see
        // the `head` that made the other claim possible. Otherwise it would refuse although the mailbox was never full.
        self.0
            .compare_exchange(seen.0, seen.claimed().0, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(MailboxState)
    }

    /// Takes the token if it still lies under IDLE. A late attempt wins a real token or nothing.
    #[must_use = "who holds the token must schedule the actor"]
    pub(crate) fn wake_idle(&self) -> bool {
        // Ordering: Acquire; pairs with the Release of `lay_down`: the new owner continues where the last owner
        // stopped. Not Release: no thread needs to see what the waker did, and a read-modify-write passes on what
        // `lay_down` released.
        MailboxState(self.0.fetch_and(!IDLE, Ordering::Acquire)).is_idle()
    }

    /// Announces a push to the system queue; returns true if the caller took the token and must schedule the actor.
    #[must_use = "who holds the token must schedule the actor"]
    pub(crate) fn announce_system(&self) -> bool {
        // Ordering: Release; pairs with the Acquire of `clear_system`: the owner that clears our SYSTEM finds our node in
        // the queue.
        let old = MailboxState(self.0.fetch_or(SYSTEM, Ordering::Release));
        // Ordering: Acquire; as `wake_idle`.
        old.is_unowned() && MailboxState(self.0.fetch_and(!(IDLE | PARKED), Ordering::Acquire)).is_unowned()
    }

    /// Owner only: clears SYSTEM. A look at the system queue must follow before the token is laid down.
    pub(crate) fn clear_system(&self) -> MailboxState {
        // Ordering: Acquire; pairs with the Release of `announce_system`.
        MailboxState(self.0.fetch_and(!SYSTEM, Ordering::Acquire) & !SYSTEM)
    }

    /// Owner only: lays the token down under IDLE if the word is still `seen`.
    #[inline]
    pub(crate) fn lay_down(&self, seen: MailboxState, chain: Chain) -> bool {
        let flip = if chain == Chain::Released { EPOCH } else { 0 };
        // Ordering: Release; pairs with the Acquire of `claim`, `try_claim`, `wake_idle` and `announce_system`: their
        // callers see everything that the owner did. Not Acquire: the owner is about to take the chain apart, but
        // senders finished their work on the chain before they published (M2), and the owner has seen all claims
        // published.
        self.0.compare_exchange(seen.0, (seen.0 | IDLE) ^ flip, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Owner only: lays the token down under PARKED if the word is still `seen`.
    pub(crate) fn park(&self, seen: MailboxState) -> Result<(), MailboxState> {
        // Ordering: Release; pairs with the Acquire of `announce_system`, the only way out.
        self.0
            .compare_exchange(seen.0, seen.0 | PARKED, Ordering::Release, Ordering::Relaxed)
            .map(drop)
            .map_err(MailboxState)
    }

    /// Owner only: voids all later claims. The old state has the exact number of claims that hold.
    pub(crate) fn close(&self) -> MailboxState {
        // Ordering: Release; pairs with the Acquire of `look_acquire`. Messages behind claims are made visible by their
        // stamps.
        MailboxState(self.0.fetch_or(CLOSED, Ordering::Release))
    }

    /// Owner only: as [`close`](Self::close), if the word is still `seen`.
    pub(crate) fn try_close(&self, seen: MailboxState) -> bool {
        // Ordering: Release; as `close`.
        self.0.compare_exchange(seen.0, seen.0 | CLOSED, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Owner only: sets or clears SUSPENDED.
    pub(crate) fn set_suspended(&self, suspended: bool) {
        if suspended {
            self.0.fetch_or(SUSPENDED, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!SUSPENDED, Ordering::Relaxed);
        }
    }

    /// Returns the index from which on each claim sees that `tail_block` moved past a block; called after the move.
    pub(crate) fn mark_advance(&self) -> u64 {
        // Ordering: Release; pairs with the Acquire of `claim`, for the claims behind this one.
        MailboxState(self.0.fetch_add(0, Ordering::Release)).index()
    }
}

impl std::fmt::Debug for MailboxState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("index", &self.index())
            .field("closed", &self.is_closed())
            .field("idle", &self.is_idle())
            .field("parked", &(self.0 & PARKED != 0))
            .field("system", &self.has_system_flag())
            .field("epoch", &self.epoch())
            .field("suspended", &self.is_suspended())
            .field("limited", &self.is_limited())
            .finish()
    }
}
