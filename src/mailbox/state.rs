//! The word that decides: how many messages were claimed, and who may run the actor.
//!
//! Whatever two threads can disagree about is settled by one read-modify-write of this word: a claim, the
//! permission to run the actor, and the close. Every other location is advice.

use crate::sync::atomic::{AtomicU64, Ordering};

/// One bit per fact; the rest of the word is the tail index.
///
/// ```text
/// 63                                   7   6         5           4       3      2        1      0
/// ┌─────────────────────────────────────┬─────────┬───────────┬───────┬──────┬────────┬──────┬────────┐
/// │ tail index: claims made so far      │ LIMITED │ SUSPENDED │ EPOCH │ LANE │ PARKED │ IDLE │ CLOSED │
/// └─────────────────────────────────────┴─────────┴───────────┴───────┴──────┴────────┴──────┴────────┘
/// ```
///
/// 57 bits of index last 180 years at 25 million messages a second, more than one line can take; the
/// carry would leave the word at the top, never run into the bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(u64);

/// No more messages; never taken back.
const CLOSED: u64 = 1 << 0;
/// The ownership token lies here: nobody runs the actor, and it has nothing to do.
const IDLE: u64 = 1 << 1;
/// The ownership token lies here: the actor is suspended, and only the lane may wake it.
const PARKED: u64 = 1 << 2;
/// Something was pushed to the system lane after the owner last looked; keeps the token from being laid down.
const LANE: u64 = 1 << 3;
/// Flips when an idle transition gives the block chain away, and so tells a stale `tail_block`.
const EPOCH: u64 = 1 << 4;
/// For onlookers such as routers: the actor takes no user messages for now.
const SUSPENDED: u64 = 1 << 5;
/// A bounded mailbox or a ring; set at construction and never changed.
const LIMITED: u64 = 1 << 6;

const INDEX_SHIFT: u32 = 7;
const ONE_MESSAGE: u64 = 1 << INDEX_SHIFT;

const _: () = assert!(
    CLOSED | IDLE | PARKED | LANE | EPOCH | SUSPENDED | LIMITED == ONE_MESSAGE - 1,
    "the bits fill the room below the index and do not overlap"
);

impl State {
    /// Claims made so far, refused ones included; the index that the next claim gets.
    #[inline(always)]
    pub fn index(self) -> u64 {
        self.0 >> INDEX_SHIFT
    }

    #[inline(always)]
    pub fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// The token lies in the word and the mailbox was empty when it was laid down.
    #[inline(always)]
    pub fn is_idle(self) -> bool {
        self.0 & IDLE != 0
    }

    /// Nobody holds the token: idle, or parked while suspended.
    #[inline(always)]
    pub fn is_unowned(self) -> bool {
        self.0 & (IDLE | PARKED) != 0
    }

    #[inline(always)]
    pub fn has_lane(self) -> bool {
        self.0 & LANE != 0
    }

    #[inline(always)]
    pub fn is_suspended(self) -> bool {
        self.0 & SUSPENDED != 0
    }

    #[inline(always)]
    pub fn is_limited(self) -> bool {
        self.0 & LIMITED != 0
    }

    /// Neither closed, suspended nor idle: an onlooker need only ask how many messages there are.
    #[inline(always)]
    pub fn is_busy(self) -> bool {
        self.0 & (CLOSED | SUSPENDED | IDLE) == 0
    }

    /// Neither idle nor closed: the claim needs nothing but a place.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        self.0 & (IDLE | CLOSED) == 0
    }

    /// As [`is_plain`](Self::is_plain), and without a bound.
    #[inline(always)]
    pub fn is_plain_and_unbounded(self) -> bool {
        self.0 & (IDLE | CLOSED | LIMITED) == 0
    }

    /// The token lies under IDLE, the mailbox is open, and it has no bound.
    #[inline(always)]
    pub fn is_idle_and_unbounded(self) -> bool {
        self.0 & (IDLE | CLOSED | LIMITED) == IDLE
    }

    /// 0 or 1.
    #[inline(always)]
    pub fn epoch(self) -> usize {
        usize::from(self.0 & EPOCH != 0)
    }

    /// One more claim; takes the token if it lay under IDLE.
    fn claimed(self) -> Self {
        Self((self.0 + ONE_MESSAGE) & !IDLE)
    }
}

/// What happens to the block chain when the actor goes idle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// No chain was installed in this epoch: the epoch stays.
    None,
    /// The chain is given away: the epoch flips.
    Released,
}

/// The atomic around [`State`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// Open, idle, empty.
    ///
    /// The first epoch is 1 while the null of a fresh `tail_block` reads as epoch 0, so that "no block yet"
    /// needs no test of its own.
    pub fn new(limited: bool) -> Self {
        Self(AtomicU64::new(IDLE | EPOCH | if limited { LIMITED } else { 0 }))
    }

    #[inline(always)]
    pub fn look(&self) -> State {
        State(self.0.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub fn look_acquire(&self) -> State {
        // Ordering: Acquire; pairs with the Release half of `claim` and of `close`. Whoever sees an index
        // sees the `head` that its claimer saw. It also pairs with the Release of `lay_down` and of `park`: who sees the
        // token there sees what its last holder did (`Gate::is_at_rest`).
        State(self.0.load(Ordering::Acquire))
    }

    /// Claims one index unconditionally; on a closed word the claim is void and the index only grows.
    #[inline(always)]
    #[must_use = "the old state tells whether the claim holds and where it goes"]
    pub fn claim(&self) -> State {
        // Ordering: Acquire; pairs with the Release of `lay_down`, so that we see `inline_index` and `head` of
        // the last idle transition, and with the Release of `mark_advance`, so that a claim behind it sees the
        // `tail_block` advanced before it. AcqRel and not Acquire, so that `len` and `look_acquire` may
        // conclude from an index to everything its claimer knew.
        State(self.0.fetch_add(ONE_MESSAGE, Ordering::AcqRel))
    }

    /// Claims one index and with it the token if it lay under IDLE, provided the word is still `seen`.
    #[inline]
    pub fn try_claim(&self, seen: State) -> Result<(), State> {
        // Ordering: as `claim`. Acquire on failure as well: a bounded sender that retries with the new index
        // must see the `head` that made the other claim possible, or it would refuse although never full.
        self.0
            .compare_exchange(seen.0, seen.claimed().0, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(State)
    }

    /// Takes the token if it still lies under IDLE; a late attempt wins a real token or nothing.
    #[must_use = "who holds the token must schedule the actor"]
    pub fn wake_idle(&self) -> bool {
        // Ordering: Acquire; pairs with the Release of `lay_down`: the new owner continues where the last one
        // stopped. Not Release: nobody is to see what the waker did, and what `lay_down` released is passed on.
        State(self.0.fetch_and(!IDLE, Ordering::Acquire)).is_idle()
    }

    /// Announces a push to the system lane; true if the caller took the token and must schedule.
    #[must_use = "who holds the token must schedule the actor"]
    pub fn announce_lane(&self) -> bool {
        // Ordering: Release; pairs with the Acquire of `forget_lane`: the owner that clears our LANE finds our
        // node in the lane.
        let old = State(self.0.fetch_or(LANE, Ordering::Release));
        // Ordering: Acquire; as `wake_idle`.
        old.is_unowned() && State(self.0.fetch_and(!(IDLE | PARKED), Ordering::Acquire)).is_unowned()
    }

    /// Owner only: clears LANE. A look at the lane must follow before the token is laid down.
    pub fn forget_lane(&self) -> State {
        // Ordering: Acquire; pairs with the Release of `announce_lane`.
        State(self.0.fetch_and(!LANE, Ordering::Acquire) & !LANE)
    }

    /// Owner only: lays the token down under IDLE if the word is still `seen`.
    #[inline]
    pub fn lay_down(&self, seen: State, chain: Chain) -> bool {
        let flip = if chain == Chain::Released { EPOCH } else { 0 };
        // Ordering: Release; pairs with the Acquire of `claim`, `try_claim`, `wake_idle` and `announce_lane`: they
        // see everything the owner did. Not Acquire: what senders did to the chain that we are about to take apart, they
        // did before they published (M2), and we have seen all claims published.
        self.0.compare_exchange(seen.0, (seen.0 | IDLE) ^ flip, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Owner only: lays the token down under PARKED if the word is still `seen`.
    pub fn park(&self, seen: State) -> Result<(), State> {
        // Ordering: Release; pairs with the Acquire of `announce_lane`, the only way out.
        self.0
            .compare_exchange(seen.0, seen.0 | PARKED, Ordering::Release, Ordering::Relaxed)
            .map(drop)
            .map_err(State)
    }

    /// Owner only: no claim holds from here on. The old state has the exact number of those that do.
    pub fn close(&self) -> State {
        // Ordering: Release; pairs with the Acquire of `look_acquire`. What claims lead to, their stamps show.
        State(self.0.fetch_or(CLOSED, Ordering::Release))
    }

    /// Owner only: as [`close`](Self::close), if the word is still `seen`.
    pub fn try_close(&self, seen: State) -> bool {
        // Ordering: Release; as `close`.
        self.0.compare_exchange(seen.0, seen.0 | CLOSED, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Owner only.
    pub fn set_suspended(&self, suspended: bool) {
        if suspended {
            self.0.fetch_or(SUSPENDED, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!SUSPENDED, Ordering::Relaxed);
        }
    }

    /// Called after `tail_block` moved past a block: the index from which on every claim sees the move.
    pub fn mark_advance(&self) -> u64 {
        // Ordering: Release; pairs with the Acquire of `claim`, for those behind it.
        State(self.0.fetch_add(0, Ordering::Release)).index()
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("index", &self.index())
            .field("closed", &self.is_closed())
            .field("idle", &self.is_idle())
            .field("parked", &(self.0 & PARKED != 0))
            .field("lane", &self.has_lane())
            .field("epoch", &self.epoch())
            .field("suspended", &self.is_suspended())
            .field("limited", &self.is_limited())
            .finish()
    }
}
