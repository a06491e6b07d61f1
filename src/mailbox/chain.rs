//! The chain links blocks: it decides where a claim leads, what the owner finds next, and when memory comes back.
//!
//! The rules M1 to M7, which comments cite, are in `mailbox/mod.rs`.

use crate::mailbox::block::{Block, Shape};
use crate::mailbox::mailbox::{Gate, Mailbox};
use crate::mailbox::state::{Chain, MailboxState};
use crate::measure::meter::{Measured, is_on};
use crate::sync::atomic::Ordering;
use std::ptr::{self, NonNull};

/// The owner's place in the chain. Both pointers are null or neither is.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The block being consumed.
    pub current: *mut Block,
    /// The first block that is not yet released: `current` or a predecessor of it.
    pub oldest: *mut Block,
}

impl Cursor {
    pub(crate) const NONE: Self = Self { current: ptr::null_mut(), oldest: ptr::null_mut() };
}

/// `block` marked with an epoch in bit 0, as `tail_block` holds it.
#[inline(always)]
fn tag(block: *mut Block, epoch: usize) -> *mut Block {
    block.map_addr(|address| address | epoch)
}

#[inline(always)]
fn untag(tagged: *mut Block) -> *mut Block {
    tagged.map_addr(|address| address & !1)
}

#[inline(always)]
fn has_epoch(tagged: *mut Block, epoch: usize) -> bool {
    tagged.addr() & 1 == epoch
}

/// Where the next message is.
pub(crate) enum ChainPosition<M> {
    Slot(*const crate::mailbox::slot::Slot<M>),
    /// The message is not there: unclaimed, or claimed and not yet published.
    Nowhere,
}

/// The number of blocks that a sender marks at most in one call. The bound limits the time of the sender. It is more
/// than one, to catch up with a long chain that waited for a claim to be published.
const SETTLED_AT_ONCE: usize = if crate::sync::EXPLORED { 2 } else { 8 };

impl<H: Measured, S, M> Mailbox<H, S, M> {
    /// Returns the block that takes message `index`; the caller has claimed the index in state `old` and has not
    /// published it.
    #[inline(always)]
    pub(crate) fn find_block(&self, index: u64, epoch: usize) -> *mut Block {
        // Ordering: Acquire; pairs with the Release of the exchanges in `install` and `advance`, which published
        // the block.
        let tagged = self.gate.tail_block.load(Ordering::Acquire);
        if has_epoch(tagged, epoch) {
            let block = untag(tagged);
            // SAFETY: the block belongs to the chain of our epoch, which cannot be released while our claim is
            // unpublished (M2).
            if index.wrapping_sub(unsafe { Block::start(block) }) < Shape::<M>::SLOTS as u64 {
                return block;
            }
        }
        self.find_block_slow(index, epoch, tagged)
    }

    #[cold]
    #[inline(never)]
    fn find_block_slow(&self, index: u64, epoch: usize, tagged: *mut Block) -> *mut Block {
        let tail = if has_epoch(tagged, epoch) { untag(tagged) } else { self.install(epoch, tagged) };
        // SAFETY: as in `find_block`.
        if index >= unsafe { Block::start(tail) } {
            return self.walk(tail, index, epoch);
        }
        // Other senders have moved `tail_block` past our claim. A sender moves `tail_block` only after it has seen the
        // settled block of this epoch. That block has not passed us, since our claim is not published.
        let settled = self.settled(epoch);
        debug_assert!(!settled.is_null(), "`tail_block` moves only after `settled_block` is set");
        self.follow(settled, index)
    }

    /// Returns the settled block of this epoch, or null if there is none yet. Callable between claim and publishing
    /// only.
    fn settled(&self, epoch: usize) -> *mut Block {
        // Relaxed: it lies before `tail_block` or our own block, and by way of them we have acquired the whole chain.
        let tagged = self.settled_block.load(Ordering::Relaxed);
        if has_epoch(tagged, epoch) { untag(tagged) } else { ptr::null_mut() }
    }

    /// Begins the chain of this epoch, or finds that another sender has begun it.
    fn install(&self, epoch: usize, stale: *mut Block) -> *mut Block {
        // Relaxed: the chain must cover all claims that need a place. For that any value will do between `head` at the
        // last idle transition, which our claim has made visible, and the oldest unpublished claim, which `head` cannot
        // pass. In a priority mailbox `head` may lie further back, but not before that transition either.
        let fresh = Shape::<M>::allocate(self.gate.head.load(Ordering::Relaxed));
        if is_on() {
            self.stamp_block(fresh);
        }
        // Ordering: Release; pairs with the Acquire load in `find_block`: a sender that sees the block sees its header.
        // Nothing is read through the replaced pointer. Acquire on failure: the winner's header.
        match self.gate.tail_block.compare_exchange(
            stale,
            tag(fresh, epoch),
            Ordering::Release,
            Ordering::Acquire,
        ) {
            Ok(_) => {
                // Ordering: Release; pairs with the Acquire load in `adopt`.
                self.gate.first_block.store(fresh, Ordering::Release);
                // Relaxed: a sender that reads `settled_block` has acquired a `tail_block` that another sender moved
                // after it had seen this store.
                self.settled_block.store(tag(fresh, epoch), Ordering::Relaxed);
                fresh
            }
            Err(winner) => {
                // SAFETY: never published.
                unsafe { Shape::<M>::release(fresh) };
                untag(winner)
            }
        }
    }

    /// Follows the chain from the tail block to the block of `index`, growing it and advancing `tail_block`.
    fn walk(&self, mut block: *mut Block, index: u64, epoch: usize) -> *mut Block {
        let slots = Shape::<M>::SLOTS as u64;
        // SAFETY: as in `find_block`.
        let distance = index - unsafe { Block::start(block) };
        // Only senders far behind the end try to advance `tail_block`, and those with early slots try sooner. A few at
        // a time are enough, and the other senders keep off the cache line.
        let should_advance = distance / slots > distance % slots && !self.settled(epoch).is_null();
        if !should_advance {
            return self.follow(block, index);
        }
        for _ in 0..distance / slots {
            let next = self.next_or_grow(block);
            if !self.advance(block, next, epoch) {
                return self.follow(next, index);
            }
            if is_on() {
                self.stamp_block(next);
            }
            block = next;
        }
        self.settle(epoch);
        block
    }

    /// Follows the chain from `block` to the block of `index`, growing it.
    fn follow(&self, mut block: *mut Block, index: u64) -> *mut Block {
        // SAFETY: as in `find_block`; the same holds for every block reached from it.
        while index - unsafe { Block::start(block) } >= Shape::<M>::SLOTS as u64 {
            block = self.next_or_grow(block);
        }
        block
    }

    fn next_or_grow(&self, block: *mut Block) -> *mut Block {
        // SAFETY: alive, see `follow`.
        let link = unsafe { &(*block).next };
        // Ordering: Acquire; pairs with the Release of the exchange below.
        let next = link.load(Ordering::Acquire);
        if !next.is_null() {
            return next;
        }
        // SAFETY: alive, see `follow`.
        let fresh = Shape::<M>::allocate(unsafe { Block::start(block) } + Shape::<M>::SLOTS as u64);
        // Ordering: Release; pairs with the Acquire loads of `next`: a thread that sees the block sees its header.
        // Acquire on failure: the winner's header.
        match link.compare_exchange(ptr::null_mut(), fresh, Ordering::Release, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(winner) => {
                // SAFETY: never published.
                unsafe { Shape::<M>::release(fresh) };
                winner
            }
        }
    }

    /// Returns true if each claim that leads into the block is published.
    fn is_final(&self, block: *mut Block) -> bool {
        // SAFETY: alive, see `follow`.
        let (start, generation) = unsafe { (Block::start(block), Block::generation(block)) };
        let mut numbers = 0..Shape::<M>::SLOTS;
        let mut first_open = || {
            numbers.find(|number| {
                // SAFETY: alive, and the number is in range.
                let slot = unsafe { &*Shape::<M>::slot(block, *number) };
                slot.stamp() != generation
            })
        };
        // The message that woke the actor travelled inline; its index leaves a hole in the first block.
        match first_open() {
            None => true,
            Some(number) => start + number as u64 + 1 == self.inline.stamp() && first_open().is_none(),
        }
    }

    /// Keeps the time at which the first sender comes to a block, if the block is one of those that are measured.
    #[cold]
    #[inline(never)]
    fn stamp_block(&self, block: *mut Block) {
        // SAFETY: alive, see `follow`.
        let (start, entered) = unsafe { (Block::start(block), &(*block).entered) };
        let number = start / Shape::<M>::SLOTS as u64;
        if let Some(now) = self.gate.header.meter().and_then(|meter| meter.stamp_of_block(number)) {
            // Relaxed: an owner that does not see the time does not measure.
            entered.store(now, Ordering::Relaxed);
        }
    }

    /// Moves `tail_block` from `block` to `next`; returns false if another sender has moved it.
    fn advance(&self, block: *mut Block, next: *mut Block, epoch: usize) -> bool {
        // Ordering: Release; pairs with the Acquire load in `find_block`: the header of `next`, which we have
        // acquired, comes along, and `settled_block` of this epoch. Relaxed on failure: nothing is read through the
        // value.
        self.gate
            .tail_block
            .compare_exchange(tag(block, epoch), tag(next, epoch), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Moves `settled_block` over blocks whose claims are all published, and marks the blocks that it leaves behind.
    ///
    /// The caller is a sender that has moved `tail_block` as far as its own block. So both pointers are beyond the
    /// marked blocks. `settled_block` cannot pass the caller's own block, because the caller's claim is still
    /// unpublished.
    fn settle(&self, epoch: usize) {
        let first = self.settled(epoch);
        let mut last = first;
        for _ in 0..SETTLED_AT_ONCE {
            if !self.is_final(last) {
                break;
            }
            last = self.next_or_grow(last);
        }
        if last == first {
            return;
        }
        // Relaxed: see `settled`. On failure another sender has moved `settled_block`, and marks the blocks that it has
        // left behind.
        let moved = self.settled_block.compare_exchange(
            tag(first, epoch),
            tag(last, epoch),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if moved.is_err() {
            return;
        }
        let observed = self.gate.word.mark_advance();
        let mut block = first;
        while block != last {
            // SAFETY: a block without a mark is not reclaimed, and this one gets its mark below.
            let Block { next, observed: mark, .. } = unsafe { &*block };
            // Relaxed: acquired above.
            block = next.load(Ordering::Relaxed);
            // Relaxed: see `reclaim`.
            mark.store(observed + 1, Ordering::Relaxed);
        }
    }

    /// Owner: returns the place of message `head`, the next message that was not yet moved out of a slot. With `MEASURES`,
    /// the wait of a message whose time was kept ends now, and is recorded.
    ///
    /// # Safety
    /// `this` is the owner's pointer to its mailbox, as for [`Owner::from_raw`](crate::mailbox::mailbox::Owner::from_raw).
    #[inline]
    pub(crate) unsafe fn locate<const MEASURES: bool>(this: NonNull<Self>, head: u64) -> ChainPosition<M> {
        // SAFETY: alive by the caller's promise.
        let mailbox = unsafe { this.as_ref() };
        if mailbox.inline.stamp() == head + 1 {
            return ChainPosition::Slot(&mailbox.inline);
        }
        // SAFETY: only the owner touches the cursor.
        let mut block = mailbox.gate.cursor.with(|cursor| unsafe { (*cursor).current });
        if block.is_null() {
            block = mailbox.adopt();
            if block.is_null() {
                return ChainPosition::Nowhere;
            }
            if MEASURES && is_on() {
                // SAFETY: passed on to the caller.
                unsafe { Self::end_wait_in(this, block) };
            }
        }
        // SAFETY: blocks from `current` on are released by the owner alone.
        let mut number = head - unsafe { Block::start(block) };
        if number >= Shape::<M>::SLOTS as u64 {
            block = mailbox.step(block, head);
            if block.is_null() {
                return ChainPosition::Nowhere;
            }
            if MEASURES && is_on() {
                // SAFETY: passed on to the caller.
                unsafe { Self::end_wait_in(this, block) };
            }
            number = 0;
        }
        // SAFETY: as above; the number is in range.
        let slot = unsafe { Shape::<M>::slot(block, number as usize) };
        // SAFETY: as above.
        if unsafe { (*slot).stamp() == Block::generation(block) } {
            ChainPosition::Slot(slot)
        } else {
            ChainPosition::Nowhere
        }
    }

    /// Records the wait of the first message of a block that the owner comes to, if its time was kept.
    ///
    /// # Safety
    /// As for [`locate`](Self::locate); the block is the owner's current one.
    #[cold]
    #[inline(never)]
    unsafe fn end_wait_in(this: NonNull<Self>, block: *mut Block) {
        // SAFETY: passed on to the caller. Relaxed: see `stamp_block`.
        let entered = unsafe { (*block).entered.load(Ordering::Relaxed) };
        if entered == 0 {
            return;
        }
        // SAFETY: as in `end_wait_of_wake`.
        if let Some(meter) = unsafe { (*this.as_ptr()).gate.header.meter() } {
            let waited = meter.now().saturating_sub(entered);
            // SAFETY: as in `end_wait_of_wake`.
            unsafe { H::record_wait(this.cast(), waited) };
        }
    }

    /// Makes the chain that a sender installed in this epoch the owner's chain. Returns null if there is none.
    #[cold]
    fn adopt(&self) -> *mut Block {
        // Ordering: Acquire; pairs with the Release store in `install`.
        let first = self.gate.first_block.load(Ordering::Acquire);
        if !first.is_null() {
            // Relaxed: the next to write it is the installer of a later epoch, which has seen the idle
            // transition in between.
            self.gate.first_block.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: only the owner touches the cursor.
            self.gate.cursor.with_mut(|cursor| unsafe { *cursor = Cursor { current: first, oldest: first } });
        }
        first
    }

    /// Goes on to the block after `block`, all of whose messages are taken. Returns null if there is no next block yet.
    #[cold]
    fn step(&self, block: *mut Block, head: u64) -> *mut Block {
        // SAFETY: as in `locate`.
        let link = unsafe { &(*block).next };
        // Ordering: Acquire; pairs with the Release of the exchange in `next_or_grow`.
        let next = link.load(Ordering::Acquire);
        if !next.is_null() {
            // SAFETY: only the owner touches the cursor.
            self.gate.cursor.with_mut(|cursor| unsafe { (*cursor).current = next });
            self.reclaim(head, next);
        }
        next
    }

    /// Releases the blocks before `current` that no sender can reach any more.
    fn reclaim(&self, head: u64, current: *mut Block) {
        // SAFETY: only the owner touches the cursor.
        let mut oldest = self.gate.cursor.with(|cursor| unsafe { (*cursor).oldest });
        while oldest != current {
            // SAFETY: blocks from `oldest` on are released by the owner alone.
            let mark = unsafe { &(*oldest).observed };
            // Relaxed: the sender that made the mark had claimed an index below it, and is done with blocks when that
            // claim is published (M2). The owner has acquired that publishing if `head` has reached the mark.
            let observed = mark.load(Ordering::Relaxed);
            // A claim at or behind the observed index saw `tail_block` and `settled_block` beyond the block. All claims
            // before the observed index are published once `head`, the next index to be moved out of a slot, has
            // reached it. Their senders are then done with blocks (M2).
            if observed == 0 || observed - 1 > head {
                break;
            }
            // SAFETY: as above. Relaxed: the cursor has gone this way before.
            let next = unsafe { (*oldest).next.load(Ordering::Relaxed) };
            // SAFETY: unreachable by the argument above, hence ours alone; its messages are taken.
            unsafe { Shape::<M>::release(oldest) };
            oldest = next;
        }
        // SAFETY: only the owner touches the cursor.
        self.gate.cursor.with_mut(|cursor| unsafe { (*cursor).oldest = oldest });
    }

    /// Owner: lays the token down under IDLE if the state word is still `seen`: all claims are taken, and the owner has
    /// looked at the system queue. Returns the chain, or null if there is none, to the caller.
    ///
    /// # Safety
    /// `gate` belongs to a mailbox for `M` whose owner is the caller. After `Ok` the caller owns nothing of the
    /// mailbox, and the mailbox may be gone (M3).
    pub(crate) unsafe fn lay_down(gate: *const Gate<H, S>, seen: MailboxState) -> Result<*mut Block, ()> {
        let Cursor { current, oldest } = {
            // SAFETY: we are the owner.
            let gate = unsafe { &*gate };
            // Relaxed: published by the exchange below. A sender that saw IDLE reads it before the owner can
            // come here again, because its claim is not taken before.
            gate.inline_index.store(seen.index(), Ordering::Relaxed);
            // SAFETY: only the owner touches the cursor. It is emptied before the exchange, for the next
            // owner may come with it.
            gate.cursor.with_mut(|cursor| unsafe { std::mem::replace(&mut *cursor, Cursor::NONE) })
        };
        // The epoch flips if and only if a chain was installed in it. Otherwise a later claim would take a chain
        // released earlier for its own: after two flips the epoch bit is back where it was. `current` tells exactly
        // whether there was a chain: a chain is installed only for a claim that goes into it, the owner gets here only
        // when that claim is taken, and messages in blocks are taken only through `current`.
        let chain = if current.is_null() { Chain::None } else { Chain::Released };
        // SAFETY: we are the owner; the reference to the word lives for the exchange only.
        if unsafe { (*gate).word.lay_down(seen, chain) } {
            return Ok(oldest);
        }
        // SAFETY: the exchange failed, we are still the owner, as for the cursor.
        unsafe { (*gate).cursor.with_mut(|cursor| *cursor = Cursor { current, oldest }) };
        Err(())
    }
}
