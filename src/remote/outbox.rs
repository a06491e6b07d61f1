//! The outbox of a peer: what was sent to it and not yet written, in lanes.
//!
//! A lane has an open batch that senders fill, and sealed batches that wait to be written. Senders of a lane meet at its lock,
//! the only one on their way, and copy a body that they have encoded before. The engine *pulls*: [`Outbox::next`] gives
//! sealed batches of the lanes in turn, and seals an open one when nothing else is there. So whatever is not written yet
//! stays here, where the bounds count it.
//!
//! **Wake.** A sender pushes, and then looks whether `armed` is true; if not, it swaps it to true. The one whose swap has found
//! false wakes the engine. The engine swaps `armed` to false, and then looks through all lanes. The changes of `armed` have an
//! order: behind the true that a sender has found comes a swap of the engine, which looks later; any other sender wakes.
//!
//! **Credit.** A batch is given out only if the peer has room for all of it. A batch without envelopes needs no credit and
//! counts for no bytes: it shows a mark, or it is a *probe*, by which the peer learns how much was lost before. Without
//! probes a lane whose last batches were lost would wait for credit without end. A probe shows the mark of the batches before it
//! again, and goes out for the sake of a mark, too: the batch that showed it may have been lost.
//!
//! **Window.** A batch that is larger than the peer's window would wait for credit without end. So a push that makes such a batch
//! is refused; what was pushed before the window was known is taken out by [`Outbox::open`].
//!
//! **Large messages.** A message that is too large for an envelope is cut into fragments, each of which is a batch that is sealed
//! at once: so its fragments follow each other, and other lanes have their turns between them. All of them wait, or none does.
//! Their bytes are counted apart, or a message that is larger than the lane's bound would refuse all small ones behind it. A
//! message is counted with its last fragment.
//!
//! **Memory.** An engine that gives back the memory of the batches it has written saves its senders their allocations.
//!
//! **Marks and fences.** A control message that waits for data has a number, its *mark*. Each batch that is sealed later than the
//! mark shows it, and all that was pushed before it is in that batch or an earlier one. A batch that is sealed later than a
//! *fence* is handled after the control message of this number. Envelopes that were pushed before the fence are sealed without
//! it, and so is a mark that no batch has shown: otherwise the batch would wait for a control message behind one that waits
//! for the batch.

use crate::remote::batch::{Batch, BatchWriter, Entry, EnvelopeKind, Place, Token};
use crate::remote::fragment;
use crate::remote::frame::{FrameKind, HEADER_LEN, Position, Prefix, WINDOW_MIN};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;

/// The probes that show a mark again: two come in the time for which a notice waits for its mark.
const MARK_PROBES: u8 = 2;

/// The bounds of an outbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutboxLimits {
    /// The bytes that may wait in one lane, without those of large messages.
    pub(crate) lane_bytes: usize,
    /// The bytes of large messages that may wait in one lane.
    pub(crate) large_bytes: usize,
    /// The size at which an open batch is sealed.
    pub(crate) batch_bytes: usize,
}

impl OutboxLimits {
    /// The size at which an open batch is sealed for a peer with this window.
    fn batch_within(&self, window: u64) -> usize {
        usize::try_from(window).map_or(self.batch_bytes, |window| self.batch_bytes.min(window))
    }

    /// The limits with an engine that carries frames of at most so many bytes.
    pub(crate) fn within_frame(self, max_frame: usize) -> Self {
        Self { batch_bytes: self.batch_bytes.min(max_frame), ..self }
    }
}

/// The duty of a thread that has changed an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "wake the engine, or nothing is written"]
pub(crate) enum Wake {
    /// Tell the engine that this outbox has something.
    Engine,
    /// The engine has been told, or there is nothing for it.
    NotNeeded,
}

/// A push was refused; nothing of it is in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushError {
    /// So many bytes wait in the lane, and no more may.
    Full { waiting: usize, max: usize },
    /// The peer has no room for a batch with this envelope. A body of at most `max` bytes would go.
    TooLarge { size: usize, max: usize },
    /// The link has ended.
    Closed,
}

/// An envelope that is pushed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) kind: EnvelopeKind,
    pub(crate) place: Place<'a>,
    pub(crate) tokens: &'a [Token],
    pub(crate) body: &'a [u8],
}

/// Where a place stands in the dictionary of its lane's open batch. It is read and written with the lane's lock held, so its
/// accesses need no order of their own, and a place belongs to one lane of one outbox.
#[derive(Default)]
pub(crate) struct EntryMemory {
    /// The number of the batch, counted from 1, and the index: a batch number has 56 bits.
    word: AtomicU64,
}

impl EntryMemory {
    fn get(&self, batch: u64) -> Option<u8> {
        let word = self.word.load(Ordering::Relaxed);
        (word >> 8 == batch).then_some(word as u8)
    }

    fn set(&self, batch: u64, index: u8) {
        self.word.store(batch << 8 | u64::from(index), Ordering::Relaxed);
    }
}

/// A batch that waits. Its place in the lane is written when it is given out, so that a probe can go before it.
struct Sealed {
    frame: Vec<u8>,
    envelopes: u16,
    /// The messages among the envelopes, which the books count.
    messages: u16,
    mark: u64,
    fence: u64,
    /// Whether it is a fragment of a large message.
    is_large: bool,
    /// Whether the message goes on in the next batch.
    is_part: bool,
}

impl Sealed {
    /// The bytes that it takes of the credit.
    fn charge(&self) -> u64 {
        if self.envelopes == 0 { 0 } else { self.frame.len() as u64 }
    }

    /// The envelopes that the sums of the lane count.
    fn counted(&self) -> u16 {
        if self.is_part { 0 } else { self.envelopes }
    }
}

struct Lane {
    open: BatchWriter,
    /// The number of the open batch, from 1, by which the memory of a place knows it.
    open_number: u64,
    sealed: VecDeque<Sealed>,
    /// The bytes of all sealed batches.
    sealed_bytes: usize,
    /// The bytes of those that are fragments of large messages.
    large_bytes: usize,
    /// The envelopes of all sealed batches.
    sealed_envelopes: u64,
    /// The messages of the open batch, of all batches that wait, and of those that were given out.
    open_messages: u16,
    queued_messages: u64,
    shipped_messages: u64,
    /// The place of the next batch that is given out, but for its mark and fence: the sums over all that were.
    next: Position,
    /// The bytes up to which the peer takes batches.
    limit: u64,
    /// The bytes of the largest batch that the peer takes; `u64::MAX` as long as they are not known.
    window: u64,
    /// The size at which the open batch is sealed.
    batch_bytes: usize,
    /// The memory of batches that were written, for later ones.
    spare: Vec<Vec<u8>>,
    /// So many of them were not needed since the last look for lanes to probe.
    unneeded: usize,
    /// Whether no batch but probes was given out since the last look for lanes to probe.
    is_idle: bool,
    needs_probe: bool,
    /// The mark of the last batch that was given out, which probes show again; 0 when it may not be told.
    given_mark: u64,
    /// The probes that are still to be sent for its sake.
    mark_probes: u8,
    mark: u64,
    /// The greatest mark that a sealed batch shows.
    shown_mark: u64,
    fence: u64,
    is_closed: bool,
}

/// The counts of an outbox, for the books of the node and the report of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OutboxCounts {
    /// Envelopes that wait.
    pub(crate) queued: u64,
    /// Envelopes that the engine has taken.
    pub(crate) shipped: u64,
}

pub(crate) struct Outbox {
    from: u64,
    /// The UID of the peer; it may be unknown until the outbox is opened.
    to: AtomicU64,
    limits: OutboxLimits,
    lanes: Box<[Mutex<Lane>]>,
    /// Whether the engine has been told and has not looked since.
    armed: AtomicBool,
    heartbeat: AtomicU32,
}

impl Outbox {
    /// Makes the outbox of an association, whose peer has room for `window` bytes in each lane; 0 if that is not known yet.
    pub(crate) fn new(from: u64, to: u64, lanes: u8, window: u64, limits: OutboxLimits) -> Self {
        let (largest, batch_bytes) = match window {
            0 => (u64::MAX, limits.batch_bytes.min(WINDOW_MIN)),
            _ => (window, limits.batch_within(window)),
        };
        let lane = || {
            Mutex::new(Lane {
                open: BatchWriter::new(),
                open_number: 1,
                sealed: VecDeque::new(),
                sealed_bytes: 0,
                large_bytes: 0,
                sealed_envelopes: 0,
                open_messages: 0,
                queued_messages: 0,
                shipped_messages: 0,
                next: Position { sequence: 1, ..Position::default() },
                limit: window,
                window: largest,
                batch_bytes,
                spare: Vec::new(),
                unneeded: 0,
                is_idle: true,
                needs_probe: false,
                given_mark: 0,
                mark_probes: 0,
                mark: 0,
                shown_mark: 0,
                fence: 0,
                is_closed: false,
            })
        };
        Self {
            from,
            to: AtomicU64::new(to),
            limits,
            lanes: (0..lanes).map(|_| lane()).collect(),
            armed: AtomicBool::new(false),
            heartbeat: AtomicU32::new(0),
        }
    }

    fn lane(&self, lane: usize) -> MutexGuard<'_, Lane> {
        lock(&self.lanes[lane])
    }

    /// Puts an envelope behind all others of its lane. `memory` is that of the envelope's place.
    pub(crate) fn push(
        &self,
        lane: usize,
        envelope: &Outgoing<'_>,
        memory: &EntryMemory,
    ) -> Result<Wake, PushError> {
        let Outgoing { kind, place, tokens, body } = *envelope;
        let mut held = self.lane(lane);
        if held.is_closed {
            return Err(PushError::Closed);
        }
        let mut entry = memory.get(held.open_number).map_or(Entry::New(place), Entry::Known);
        let size = BatchWriter::size_max(&entry, tokens.len(), body.len());
        let is_beyond = held.open.len() + size > held.batch_bytes;
        if held.open.envelopes() > 0 && (is_beyond || held.open.is_full(matches!(entry, Entry::New(_)))) {
            held.seal();
            entry = Entry::New(place);
        }
        let waiting = held.waiting() - held.large_bytes;
        let size = BatchWriter::size_max(&entry, tokens.len(), body.len());
        if waiting > 0 && waiting + size > self.limits.lane_bytes {
            // A batch may have been sealed, which the engine would have done.
            return Err(PushError::Full { waiting, max: self.limits.lane_bytes });
        }
        // Only an envelope that is alone in its batch can be as large.
        let frame = held.open.len() + size;
        if frame as u64 > held.window {
            let rest = frame - body.len();
            let max = held.window.saturating_sub(rest as u64) as usize;
            return Err(PushError::TooLarge { size: body.len(), max });
        }
        let index = held.open.push(kind, &entry, tokens, body);
        memory.set(held.open_number, index);
        if kind.is_message() {
            held.open_messages += 1;
            held.queued_messages += 1;
        }
        drop(held);
        Ok(self.wake())
    }

    /// Puts a large message behind all envelopes of its lane, in fragments.
    pub(crate) fn push_large(&self, lane: usize, message: &Outgoing<'_>) -> Result<Wake, PushError> {
        let size = message.body.len();
        let (frame_max, window) = {
            let held = self.lane(lane);
            held.check_large(size, self.limits.large_bytes)?;
            (held.batch_bytes.max(WINDOW_MIN), held.window)
        };
        // Without the lock, for which other senders of the lane would wait meanwhile.
        let within = usize::try_from(window).map_or(frame_max, |window| frame_max.min(window));
        let Some(frames) = fragment::cut(message, within) else {
            let rest =
                HEADER_LEN + BatchWriter::size_max(&Entry::New(message.place), message.tokens.len(), 0);
            return Err(PushError::TooLarge { size, max: within.saturating_sub(rest) });
        };
        let mut held = self.lane(lane);
        held.check_large(frames.iter().map(Vec::len).sum(), self.limits.large_bytes)?;
        if held.open.envelopes() > 0 {
            held.seal();
        }
        let mut left = frames.len();
        for frame in frames {
            left -= 1;
            let is_part = left > 0;
            let messages = u16::from(!is_part && message.kind.is_message());
            let (mark, fence) = (held.mark, held.fence);
            held.queued_messages += u64::from(messages);
            held.keep(Sealed { frame, envelopes: 1, messages, mark, fence, is_large: true, is_part });
        }
        drop(held);
        Ok(self.wake())
    }

    /// Tells the engine, unless it has been told.
    fn wake(&self) -> Wake {
        // Ordering: Relaxed; the lock of the lane orders. Were the engine's look before this thread's push by the lock, so would
        // the swap of `begin_look` be before this load and this swap, and both would find false, or the true of another thread
        // that has found false later, and wakes.
        if self.armed.load(Ordering::Relaxed) || self.armed.swap(true, Ordering::Relaxed) {
            Wake::NotNeeded
        } else {
            Wake::Engine
        }
    }

    /// The engine begins to look: a push that it may miss wakes it again.
    pub(crate) fn begin_look(&self) {
        // Ordering: Relaxed; see `wake`.
        self.armed.swap(false, Ordering::Relaxed);
    }

    /// The next batch of the lanes from `first` on, in turn, and its lane. `None` if all of them are empty, or wait for
    /// credit. The engine goes on with the lane behind it.
    pub(crate) fn next(&self, first: usize) -> Option<(usize, Vec<u8>)> {
        let count = self.lanes.len();
        (0..count).map(|step| (first + step) % count).find_map(|lane| Some((lane, self.next_of(lane)?)))
    }

    fn next_of(&self, lane: usize) -> Option<Vec<u8>> {
        let mut held = self.lane(lane);
        let batch = if held.needs_probe {
            held.needs_probe = false;
            // It shows no mark of the batches that it goes before, and waits for none of their fences.
            let mark = held.given_mark;
            let frame = vec![0; HEADER_LEN];
            Sealed { frame, envelopes: 0, messages: 0, mark, fence: 0, is_large: false, is_part: false }
        } else {
            if held.sealed.is_empty() && held.has_unsealed() {
                held.seal();
            }
            let charge = held.sealed.front()?.charge();
            if charge > 0 && held.next.offset + charge > held.limit {
                return None;
            }
            let batch = held.sealed.pop_front()?;
            held.forget(&batch);
            held.is_idle = false;
            batch
        };
        let (charge, counted) = (batch.charge(), batch.counted());
        let Sealed { mut frame, envelopes, messages, mark, fence, is_part, .. } = batch;
        if mark > held.given_mark {
            (held.given_mark, held.mark_probes) = (mark, MARK_PROBES);
        }
        held.queued_messages -= u64::from(messages);
        held.shipped_messages += u64::from(messages);
        let heartbeat = self.heartbeat.load(Ordering::Relaxed);
        let position = Position { mark, fence, heartbeat, is_part, ..held.next };
        held.next = Position {
            sequence: position.sequence + 1,
            first: position.first + u64::from(counted),
            offset: position.offset + charge,
            is_part: false,
            ..position
        };
        drop(held);
        // There are at most 256 lanes.
        let prefix =
            Prefix { kind: FrameKind::Batch, lane: lane as u8, envelopes, from: self.from, to: self.to() };
        prefix.write(&mut frame);
        position.write(&mut frame);
        Some(frame)
    }

    /// Takes back the batch that the engine has taken last of its lane, and not begun to write: it goes before all others.
    ///
    /// After the end of the link it is not taken: the error is the number of messages that are lost.
    pub(crate) fn put_back(&self, frame: Vec<u8>) -> Result<(), u64> {
        let (Ok(prefix), Ok(position)) = (Prefix::read(&frame, u8::MAX), Position::read(&frame)) else {
            debug_assert!(false, "no frame of an outbox");
            return Ok(());
        };
        let Prefix { envelopes, lane, .. } = prefix;
        let (messages, is_large) = contents_of(&frame);
        let mut held = self.lane(usize::from(lane));
        debug_assert_eq!(position.sequence + 1, held.next.sequence, "another batch was taken behind it");
        held.next = position;
        // A probe would show the mark of this batch before it.
        held.given_mark = 0;
        held.shipped_messages -= u64::from(messages);
        if held.is_closed {
            return Err(messages.into());
        }
        held.queued_messages += u64::from(messages);
        let Position { mark, fence, is_part, .. } = position;
        let batch = Sealed { frame, envelopes, messages, mark, fence, is_large, is_part };
        held.count(&batch);
        held.sealed.push_front(batch);
        Ok(())
    }

    /// Keeps the memory of a batch that was written, for a later one.
    pub(crate) fn reuse(&self, frame: Vec<u8>) {
        let Some(lane) =
            Prefix::read(&frame, u8::MAX).ok().and_then(|it| self.lanes.get(usize::from(it.lane)))
        else {
            debug_assert!(false, "no frame of an outbox");
            return;
        };
        let mut held = lock(lane);
        let is_usual = frame.capacity() <= 2 * self.limits.batch_bytes;
        // As many as a full lane has.
        let max = (self.limits.lane_bytes / self.limits.batch_bytes).saturating_add(1);
        if is_usual && held.spare.len() < max && !held.is_closed {
            held.spare.push(frame);
        }
    }

    /// The engine carries frames of at most so many bytes from now on.
    pub(crate) fn set_max_frame(&self, max_frame: usize) {
        for lane in 0..self.lanes.len() {
            let mut held = self.lane(lane);
            held.batch_bytes = held.batch_bytes.min(max_frame);
            if held.open.len() > max_frame {
                held.seal();
            }
        }
    }

    fn to(&self) -> u64 {
        // Ordering: Relaxed; the lock of a lane orders.
        self.to.load(Ordering::Relaxed)
    }

    /// The peer has told its UID, and its window, the room that it has in each lane. Batches that are larger are taken out: `see` gets each of
    /// them, as from [`end_with`](Self::end_with).
    pub(crate) fn open(&self, to: u64, window: u64, mut see: impl FnMut(Vec<u8>, u16)) -> Wake {
        // Ordering: Relaxed; see `to`.
        self.to.store(to, Ordering::Relaxed);
        let (mut taken, mut has_some) = (Vec::new(), false);
        for lane in 0..self.lanes.len() {
            let mut held = self.lane(lane);
            (held.limit, held.window) = (window, window);
            held.batch_bytes = self.limits.batch_within(window);
            if held.open.len() as u64 > window {
                held.seal();
            }
            let (large, kept): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut held.sealed).into_iter().partition(|batch| batch.charge() > window);
            // The next batch shows the marks of those that are taken out.
            held.shown_mark = kept.iter().map(|batch| batch.mark).max().unwrap_or(0);
            held.sealed = kept;
            for batch in large {
                held.forget(&batch);
                held.queued_messages -= u64::from(batch.messages);
                taken.push(batch);
            }
            has_some |= !held.sealed.is_empty() || held.has_unsealed();
        }
        self.show(taken, &mut see);
        if has_some { self.wake() } else { Wake::NotNeeded }
    }

    /// Puts a mark behind all that the lanes hold.
    pub(crate) fn mark(&self, number: u64) -> Wake {
        for lane in 0..self.lanes.len() {
            let mut held = self.lane(lane);
            if !held.is_closed {
                held.mark = held.mark.max(number);
            }
        }
        self.wake()
    }

    /// Makes all that is pushed from now on wait at the peer for the control message of this number.
    pub(crate) fn fence(&self, number: u64) -> Wake {
        for lane in 0..self.lanes.len() {
            let mut held = self.lane(lane);
            if held.has_unsealed() && !held.is_closed {
                held.seal();
            }
            held.fence = held.fence.max(number);
        }
        self.wake()
    }

    /// Makes all that waits, and all that is pushed from now on, wait at the peer for the control message of this number.
    pub(crate) fn fence_all(&self, number: u64) {
        for lane in 0..self.lanes.len() {
            let mut held = self.lane(lane);
            held.fence = held.fence.max(number);
            held.sealed.iter_mut().for_each(|batch| batch.fence = batch.fence.max(number));
        }
    }

    /// The peer takes batches of a lane up to this byte. A smaller limit than before is that of an older message.
    pub(crate) fn grant(&self, lane: usize, limit: u64) -> Wake {
        let mut held = self.lane(lane);
        let is_more = limit > held.limit;
        held.limit = held.limit.max(limit);
        let has_some = !held.sealed.is_empty() || held.has_unsealed();
        drop(held);
        if is_more && has_some { self.wake() } else { Wake::NotNeeded }
    }

    /// Called once for each interval between probes, with the bytes that the peer has confirmed or counted as lost: a lane that
    /// has given out more, or a mark, and nothing since the last call, shows its position by an empty batch.
    pub(crate) fn probe(&self, lane: usize, settled_bytes: u64) -> Wake {
        let mut held = self.lane(lane);
        held.forget_unneeded();
        let was_idle = std::mem::replace(&mut held.is_idle, true);
        if !was_idle || held.is_closed || held.next.offset <= settled_bytes && held.mark_probes == 0 {
            return Wake::NotNeeded;
        }
        held.mark_probes = held.mark_probes.saturating_sub(1);
        held.needs_probe = true;
        drop(held);
        self.wake()
    }

    /// The number of heartbeats so far, which each batch shows.
    pub(crate) fn set_heartbeat(&self, number: u32) {
        self.heartbeat.store(number, Ordering::Relaxed);
    }

    /// Ends the link: refuses all pushes from now on, and drops what waits. Returns the number of envelopes that waited.
    pub(crate) fn close(&self) -> u64 {
        self.end_with(true, |_, _| {})
    }

    /// Takes out what waits, of which `see` gets each batch and its number of envelopes. The batches have no place in their lanes.
    /// Returns the number of all envelopes. `is_end`: all pushes are refused from now on.
    pub(crate) fn end_with(&self, is_end: bool, mut see: impl FnMut(Vec<u8>, u16)) -> u64 {
        let mut taken = Vec::new();
        let close = |lane| {
            let mut held = self.lane(lane);
            let queued = held.queued();
            if held.open.envelopes() > 0 {
                held.seal();
            }
            taken.extend(std::mem::take(&mut held.sealed).into_iter().filter(|batch| batch.envelopes > 0));
            held.is_closed |= is_end;
            (held.sealed_bytes, held.large_bytes) = (0, 0);
            (held.sealed_envelopes, held.queued_messages) = (0, 0);
            (held.shown_mark, held.needs_probe) = (held.mark, false);
            held.spare = Vec::new();
            queued
        };
        let queued = (0..self.lanes.len()).map(close).sum();
        self.show(taken, &mut see);
        queued
    }

    /// Writes headers for batches that have no place in their lanes.
    fn show(&self, taken: Vec<Sealed>, see: &mut impl FnMut(Vec<u8>, u16)) {
        for Sealed { mut frame, envelopes, is_part, .. } in taken {
            let prefix =
                Prefix { kind: FrameKind::Batch, lane: 0, envelopes, from: self.from, to: self.to() };
            prefix.write(&mut frame);
            Position { sequence: 1, is_part, ..Position::default() }.write(&mut frame);
            see(frame, envelopes);
        }
    }

    /// The counts of all lanes, of messages alone.
    pub(crate) fn message_counts(&self) -> OutboxCounts {
        (0..self.lanes.len()).fold(OutboxCounts::default(), |sum, lane| {
            let held = self.lane(lane);
            OutboxCounts {
                queued: sum.queued + held.queued_messages,
                shipped: sum.shipped + held.shipped_messages,
            }
        })
    }

    /// The counts of one lane, and the bytes that were given out.
    pub(crate) fn lane_counts(&self, lane: usize) -> (OutboxCounts, u64) {
        let held = self.lane(lane);
        (OutboxCounts { queued: held.queued(), shipped: held.next.first }, held.next.offset)
    }

    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The counts of all lanes, one after the other.
    pub(crate) fn counts(&self) -> OutboxCounts {
        (0..self.lanes.len()).fold(OutboxCounts::default(), |sum, lane| {
            let held = self.lane(lane);
            OutboxCounts { queued: sum.queued + held.queued(), shipped: sum.shipped + held.next.first }
        })
    }
}

/// The messages among the envelopes of a batch that was sealed here, and whether it is a fragment of a large one.
fn contents_of(frame: &[u8]) -> (u16, bool) {
    let Ok(batch) = Batch::read(frame, u8::MAX, usize::MAX) else { return (0, false) };
    // A batch has at most 65,535 envelopes.
    let messages = batch.envelopes().filter(|envelope| envelope.ends().is_message()).count() as u16;
    (messages, batch.envelopes().any(|envelope| envelope.kind == EnvelopeKind::Fragment))
}

impl Lane {
    /// Seals the open batch, though it be empty.
    fn seal(&mut self) {
        // Without a batch that came back, the next one is as large as this one.
        let memory = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.open.len()));
        self.unneeded = self.unneeded.min(self.spare.len());
        let open = std::mem::replace(&mut self.open, BatchWriter::within(memory));
        let (envelopes, frame) = (open.envelopes(), open.into_frame());
        self.open_number += 1;
        let messages = std::mem::take(&mut self.open_messages);
        let (mark, fence) = (self.mark, self.fence);
        self.keep(Sealed { frame, envelopes, messages, mark, fence, is_large: false, is_part: false });
    }

    /// Puts a sealed batch, which shows the mark, behind the others.
    fn keep(&mut self, batch: Sealed) {
        self.shown_mark = self.mark;
        self.count(&batch);
        self.sealed.push_back(batch);
    }

    /// A sealed batch waits in the lane.
    fn count(&mut self, batch: &Sealed) {
        self.sealed_bytes += batch.frame.len();
        self.sealed_envelopes += u64::from(batch.counted());
        self.large_bytes += if batch.is_large { batch.frame.len() } else { 0 };
    }

    /// A sealed batch waits no more.
    fn forget(&mut self, batch: &Sealed) {
        self.sealed_bytes -= batch.frame.len();
        self.sealed_envelopes -= u64::from(batch.counted());
        self.large_bytes -= if batch.is_large { batch.frame.len() } else { 0 };
    }

    /// Whether a large message of this size may be pushed, beside at most `max` bytes of others.
    fn check_large(&self, size: usize, max: usize) -> Result<(), PushError> {
        match self.large_bytes {
            _ if self.is_closed => Err(PushError::Closed),
            waiting if waiting > 0 && waiting + size > max => Err(PushError::Full { waiting, max }),
            _ => Ok(()),
        }
    }

    /// Frees the memory that no batch has needed since the last call, so that what a flood has left goes back.
    fn forget_unneeded(&mut self) {
        let needed = self.spare.len() - self.unneeded.min(self.spare.len());
        self.spare.truncate(needed);
        self.unneeded = needed;
    }

    /// Whether the open batch has something to tell.
    fn has_unsealed(&self) -> bool {
        self.open.envelopes() > 0 || self.mark > self.shown_mark
    }

    /// The bytes that wait, without the header of an open batch that is empty.
    fn waiting(&self) -> usize {
        let open = if self.open.envelopes() > 0 { self.open.len() } else { 0 };
        self.sealed_bytes + open
    }

    fn queued(&self) -> u64 {
        self.sealed_envelopes + u64::from(self.open.envelopes())
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::remote::fragment::Fragment;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const LIMITS: OutboxLimits = OutboxLimits { lane_bytes: 2000, large_bytes: 100_000, batch_bytes: 300 };
    const A: Place<'_> = Place::Actor { path: "/user/a", uid: 1, type_id: 2 };

    fn tell(body: &[u8]) -> Outgoing<'_> {
        Outgoing { kind: EnvelopeKind::Tell, place: A, tokens: &[], body }
    }

    fn outbox(lanes: u8, window: u64) -> Outbox {
        Outbox::new(1, 2, lanes, window, LIMITS)
    }

    /// The position and the bodies of each batch that the outbox gives out now.
    fn taken(outbox: &Outbox) -> Vec<(Position, Vec<Vec<u8>>)> {
        std::iter::from_fn(|| outbox.next(0)).map(|(_, frame)| read(&frame)).collect()
    }

    fn read(frame: &[u8]) -> (Position, Vec<Vec<u8>>) {
        let batch = Batch::read(frame, 8, 10_000).expect("it was sealed here");
        (batch.position, batch.envelopes().map(|envelope| envelope.body.to_vec()).collect())
    }

    #[test]
    fn the_memory_of_a_batch_that_was_written_is_that_of_a_later_one() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        let next = || {
            let _ = outbox.push(0, &tell(&[1; 90]), &memory).unwrap();
            outbox.next(0).expect("there is credit").1
        };
        let first = next();
        let address = first.as_ptr();
        outbox.reuse(first);
        // It was begun before.
        let second = next();
        let third = next();
        assert_eq!((third.as_ptr(), second.as_ptr() == address), (address, false));
        assert_eq!(read(&third).1, [vec![1; 90]]);
        // No more than a full lane has, none that is larger than usual, and none after the end.
        for _ in 0..100 {
            let mut batch = third.clone();
            batch.reserve(100);
            outbox.reuse(batch);
        }
        let max = LIMITS.lane_bytes / LIMITS.batch_bytes + 1;
        assert_eq!(outbox.lane(0).spare.len(), max);
        // Memory that was not needed between two looks is freed.
        let _ = outbox.probe(0, 0);
        let _ = outbox.probe(0, 0);
        assert_eq!(outbox.lane(0).spare.len(), 0);
        for _ in 0..max {
            outbox.reuse(third.clone());
        }
        let _ = outbox.probe(0, 0);
        drop(next());
        drop(next());
        let _ = outbox.probe(0, 0);
        assert_eq!(outbox.lane(0).spare.len(), 0);
        let mut large = third;
        large.reserve(3 * LIMITS.batch_bytes);
        outbox.lane(0).spare.clear();
        outbox.reuse(large);
        assert_eq!(outbox.lane(0).spare.len(), 0);
        let _ = outbox.close();
        outbox.reuse(second);
        assert_eq!(outbox.lane(0).spare.len(), 0);
    }

    #[test]
    fn batches_fit_into_the_frames_of_an_engine_that_carries_less_than_before() {
        let limits = OutboxLimits { lane_bytes: 1 << 20, batch_bytes: 1 << 16, ..LIMITS };
        let (outbox, memory) = (Outbox::new(1, 2, 1, 1 << 20, limits), EntryMemory::default());
        let push = |count| {
            for _ in 0..count {
                let _ = outbox.push(0, &tell(&[7; 1000]), &memory).unwrap();
            }
        };
        push(10);
        outbox.set_max_frame(1 << 12);
        push(10);
        let lens: Vec<_> = std::iter::from_fn(|| outbox.next(0).map(|(_, frame)| frame.len())).collect();
        // The one that was open is not cut.
        assert!(lens[0] > 10_000 && lens[1..].iter().all(|len| *len <= 1 << 12), "{lens:?}");
        assert_eq!(lens[1..].len(), 4);
        assert_eq!(limits.within_frame(1 << 12).batch_bytes, 1 << 12);
    }

    #[test]
    fn batches_beyond_the_window_are_taken_out_when_it_is_told_and_refused_later() {
        let limits = OutboxLimits { lane_bytes: 1 << 20, batch_bytes: 1 << 20, ..LIMITS };
        let (outbox, memory) = (Outbox::new(1, 2, 1, 0, limits), EntryMemory::default());
        let large = vec![7; 20_000];
        // Small ones fill no batch beyond the least window, whatever the own limit is.
        for body in [&[1; 4000][..], &[2; 4000], &[3; 4000], &large, &[4; 10], &large] {
            let _ = outbox.push(0, &tell(body), &memory).unwrap();
        }
        let _ = outbox.mark(9);
        assert!(outbox.next(0).is_none(), "there is no credit yet");
        let mut seen = Vec::new();
        let window = WINDOW_MIN as u64;
        outbox.begin_look();
        assert_eq!(outbox.open(2, window, |frame, count| seen.push((read_any(&frame), count))), Wake::Engine);
        assert_eq!(seen, [(vec![large.clone()], 1), (vec![large.clone()], 1)]);
        assert_eq!(outbox.message_counts(), OutboxCounts { queued: 4, shipped: 0 });
        let mut mark = 0;
        let lens: Vec<Vec<usize>> = std::iter::from_fn(|| {
            let (lane, frame) = outbox.next(0)?;
            assert!(frame.len() as u64 <= window);
            mark = Position::read(&frame).expect("a header").mark;
            let given = outbox.lane_counts(lane).1;
            let _ = outbox.grant(lane, given + window);
            Some(read_any(&frame).iter().map(Vec::len).collect())
        })
        .collect();
        assert_eq!((lens.concat(), mark), (vec![4000, 4000, 4000, 10], 9));
        // Each message that goes is the largest that goes, and not a byte more.
        let Err(PushError::TooLarge { size: 20_000, max }) = outbox.push(0, &tell(&large), &memory) else {
            panic!("it is too large");
        };
        let refused = outbox.push(0, &tell(&large[..=max]), &memory);
        assert_eq!(refused, Err(PushError::TooLarge { size: max + 1, max }));
        let _ = outbox.push(0, &tell(&large[..max]), &memory).unwrap();
        let given = outbox.lane_counts(0).1;
        let _ = outbox.grant(0, given + window);
        assert_eq!(read_any(&outbox.next(0).expect("it fits").1), [&large[..max]]);
        assert_eq!(outbox.close(), 0);
    }

    fn read_any(frame: &[u8]) -> Vec<Vec<u8>> {
        let batch = Batch::read(frame, 8, usize::MAX).expect("it was sealed here");
        batch.envelopes().map(|envelope| envelope.body.to_vec()).collect()
    }

    /// The message of fragments that follow each other, and the count of each batch.
    fn whole(batches: &[Vec<u8>]) -> (Vec<u8>, Vec<u64>) {
        let mut body = Vec::new();
        let firsts = batches.iter().map(|frame| {
            let batch = Batch::read(frame, 8, 10_000).expect("it was sealed here");
            let envelope = batch.envelopes().next().expect("there is one");
            let fragment = Fragment::read(envelope.body).expect("it is one");
            assert_eq!((fragment.offset, batch.prefix.envelopes), (body.len(), 1));
            body.extend_from_slice(fragment.piece);
            batch.position.first
        });
        let firsts = firsts.collect();
        (body, firsts)
    }

    #[test]
    fn a_large_message_goes_in_fragments_and_is_counted_with_the_last_one() {
        let (outbox, memory) = (outbox(1, 500), EntryMemory::default());
        let body: Vec<u8> = (0..1000).map(|at| at as u8).collect();
        let counts = |queued, shipped| OutboxCounts { queued, shipped };
        let _ = outbox.push(0, &tell(b"before"), &memory).unwrap();
        assert_eq!(outbox.push_large(0, &tell(&body)), Ok(Wake::NotNeeded));
        let _ = outbox.push(0, &tell(b"behind"), &memory).unwrap();
        let _ = outbox.mark(7);
        assert_eq!((outbox.counts(), outbox.message_counts()), (counts(3, 0), counts(3, 0)));
        let _ = outbox.grant(0, 100_000);
        let mut frames: Vec<Vec<u8>> = Vec::new();
        while let Some((_, frame)) = outbox.next(0) {
            // Each comes back once.
            outbox.put_back(frame.clone()).unwrap();
            assert_eq!(outbox.next(0), Some((0, frame.clone())));
            assert!(frame.len() <= 500);
            frames.push(frame);
        }
        let [first, fragments @ .., last] = &frames[..] else { panic!("{} batches", frames.len()) };
        assert_eq!((read(first).1, read(last).1), (vec![b"before".to_vec()], vec![b"behind".to_vec()]));
        let (whole, firsts) = whole(fragments);
        assert_eq!((whole == body, firsts.len() > 2), (true, true));
        assert!(firsts.iter().all(|first| *first == 1) && read(last).0.first == 2);
        // The mark is behind it.
        assert!(fragments.iter().all(|frame| read(frame).0.mark == 0) && read(last).0.mark == 7);
        assert_eq!((outbox.counts(), outbox.message_counts()), (counts(0, 3), counts(0, 3)));
        assert_eq!(outbox.lane(0).large_bytes, 0);
    }

    #[test]
    fn a_large_message_whose_last_fragment_waits_is_one_that_waits() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        let _ = outbox.push_large(0, &tell(&[7; 30_000])).unwrap();
        let (_, first) = outbox.next(0).expect("there is credit");
        assert_eq!(outbox.counts(), OutboxCounts { queued: 1, shipped: 0 });
        let mut ends = 0;
        let left = outbox.end_with(true, |frame, _| {
            let batch = Batch::read(&frame, 1, 10_000).expect("it was sealed here");
            ends += batch.envelopes().filter(|envelope| envelope.ends() == EnvelopeKind::Tell).count();
        });
        assert_eq!((left, ends, outbox.put_back(first)), (1, 1, Err(0)));
        assert_eq!(outbox.push_large(0, &tell(&[7; 30_000])), Err(PushError::Closed));
        assert_eq!(outbox.push(0, &tell(b"a"), &memory), Err(PushError::Closed));
        assert_eq!(outbox.counts(), OutboxCounts::default());
    }

    #[test]
    fn large_messages_have_a_bound_of_their_own_and_go_whole_or_not_at_all() {
        let (outbox, memory) = (outbox(1, 500), EntryMemory::default());
        // One alone may be larger.
        assert!(self::outbox(1, 500).push_large(0, &tell(&[7; 200_000])).is_ok());
        let mut pushed = 0;
        let refused = loop {
            match outbox.push_large(0, &tell(&[7; 20_000])) {
                Ok(_) => pushed += 1,
                Err(refused) => break refused,
            }
        };
        assert!(
            matches!(refused, PushError::Full { max: 100_000, waiting } if waiting > 70_000),
            "{refused:?}"
        );
        assert_eq!(outbox.counts().queued, pushed);
        // Small ones have room behind them.
        let mut small = 0;
        while outbox.push(0, &tell(&[0; 90]), &memory).is_ok() {
            small += 1;
        }
        assert!(small > 10 && outbox.lane(0).waiting() <= 100_000 + LIMITS.lane_bytes);
        assert_eq!(outbox.counts().queued, pushed + small);
        // A window without room for a piece.
        let narrow = self::outbox(1, 300);
        let Err(PushError::TooLarge { size: 5000, max }) = narrow.push_large(0, &tell(&[7; 5000])) else {
            panic!("it is too large");
        };
        assert!(
            (1..300).contains(&max) && narrow.push(0, &tell(&vec![7; max]), &EntryMemory::default()).is_ok()
        );
    }

    #[test]
    fn fragments_fit_into_the_least_window_before_the_peer_has_told_its_own() {
        let outbox = outbox(1, 0);
        let _ = outbox.push_large(0, &tell(&[7; 100_000])).unwrap();
        let taken_out = outbox.open(2, WINDOW_MIN as u64, |_, _| panic!("all of them fit"));
        assert_eq!((taken_out, outbox.counts().queued), (Wake::NotNeeded, 1));
        let _ = outbox.grant(0, 1 << 20);
        let frames: Vec<_> = std::iter::from_fn(|| outbox.next(0).map(|(_, frame)| frame)).collect();
        assert_eq!(whole(&frames).0, [7; 100_000]);
    }

    #[test]
    fn messages_are_counted_apart_from_other_envelopes() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        let port = EntryMemory::default();
        let reply =
            |body| Outgoing { kind: EnvelopeKind::Reply, place: Place::Port, tokens: &[[7; 16]], body };
        let counts = |queued, shipped| OutboxCounts { queued, shipped };
        for body in [b"a".as_slice(), b"b"] {
            assert!(outbox.push(0, &tell(body), &memory).is_ok());
            assert!(outbox.push(0, &reply(body), &port).is_ok());
        }
        assert_eq!((outbox.counts(), outbox.message_counts()), (counts(4, 0), counts(2, 0)));
        let (_, frame) = outbox.next(0).expect("a batch");
        assert_eq!((outbox.counts(), outbox.message_counts()), (counts(0, 4), counts(0, 2)));
        assert_eq!(outbox.put_back(frame), Ok(()));
        assert_eq!((outbox.counts(), outbox.message_counts()), (counts(4, 0), counts(2, 0)));
        let (_, frame) = outbox.next(0).expect("the batch");
        assert!(outbox.push(0, &tell(b"c"), &memory).is_ok());
        assert_eq!((outbox.close(), outbox.message_counts()), (1, counts(0, 2)));
        assert_eq!(outbox.put_back(frame), Err(2));
        assert_eq!(outbox.message_counts(), counts(0, 0));
    }

    #[test]
    fn the_first_push_wakes_the_engine_and_the_others_do_not() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        assert_eq!(outbox.push(0, &tell(b"a"), &memory), Ok(Wake::Engine));
        assert_eq!(outbox.push(0, &tell(b"b"), &memory), Ok(Wake::NotNeeded));
        outbox.begin_look();
        assert_eq!(outbox.push(0, &tell(b"c"), &memory), Ok(Wake::Engine));
        let batches = taken(&outbox);
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].1, [b"a", b"b", b"c"]);
        assert_eq!(outbox.counts(), OutboxCounts { queued: 0, shipped: 3 });
    }

    #[test]
    fn a_batch_is_sealed_before_it_is_too_large_and_a_large_message_goes_alone() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        for body in [&[1; 100][..], &[2; 100], &[3; 900], &[4; 1]] {
            let _ = outbox.push(0, &tell(body), &memory).unwrap();
        }
        let batches = taken(&outbox);
        assert_eq!(batches.iter().map(|(_, bodies)| bodies.len()).collect::<Vec<_>>(), [1, 1, 1, 1]);
        let sequences: Vec<_> =
            batches.iter().map(|(position, _)| (position.sequence, position.first)).collect();
        assert_eq!(sequences, [(1, 0), (2, 1), (3, 2), (4, 3)]);
    }

    #[test]
    fn a_full_lane_refuses_and_takes_again_when_it_is_emptied() {
        let (outbox, memory) = (outbox(2, 10_000), EntryMemory::default());
        let mut pushed = 0;
        let refused = loop {
            match outbox.push(0, &tell(&[0; 90]), &memory) {
                Ok(_) => pushed += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, PushError::Full { waiting, max: 2000 } if waiting <= 2000), "{refused:?}");
        assert_eq!(outbox.counts().queued, pushed);
        // The other lane has room.
        assert!(outbox.push(1, &tell(b"x"), &EntryMemory::default()).is_ok());
        assert!(outbox.next(0).is_some());
        assert!(outbox.push(0, &tell(&[0; 90]), &memory).is_ok());
        // A message beyond the bound goes into an empty lane alone.
        let alone = self::outbox(1, 10_000);
        assert!(alone.push(0, &tell(&[0; 5000]), &EntryMemory::default()).is_ok());
        assert!(alone.push(0, &tell(b""), &EntryMemory::default()).is_err());
    }

    #[test]
    fn nothing_is_given_out_beyond_the_credit() {
        let (outbox, memory) = (outbox(1, 0), EntryMemory::default());
        let _ = outbox.push(0, &tell(b"a"), &memory).unwrap();
        outbox.begin_look();
        assert_eq!(outbox.next(0), None);
        let size = outbox.lane(0).waiting() as u64;
        assert_eq!(outbox.grant(0, size - 1), Wake::Engine);
        outbox.begin_look();
        assert_eq!(outbox.next(0), None);
        // An older message is nothing.
        assert_eq!(outbox.grant(0, 1), Wake::NotNeeded);
        assert_eq!(outbox.grant(0, size), Wake::Engine);
        assert!(outbox.next(0).is_some());
        // A mark needs no credit.
        let _ = outbox.mark(7);
        assert_eq!(outbox.next(0).map(|(_, frame)| read(&frame).0.mark), Some(7));
        assert_eq!(outbox.next(0), None);
    }

    #[test]
    fn a_batch_that_is_put_back_is_given_out_again_as_it_was() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        let _ = outbox.push(0, &tell(&[1; 200]), &memory).unwrap();
        let _ = outbox.push(0, &tell(&[2; 200]), &memory).unwrap();
        let (_, frame) = outbox.next(0).unwrap();
        outbox.put_back(frame.clone()).unwrap();
        assert_eq!(outbox.counts(), OutboxCounts { queued: 2, shipped: 0 });
        assert_eq!(outbox.next(0), Some((0, frame.clone())));
        assert_eq!(outbox.close(), 1);
        assert_eq!(outbox.put_back(frame), Err(1));
        assert_eq!(outbox.counts(), OutboxCounts::default());
        assert_eq!(outbox.push(0, &tell(b"a"), &memory), Err(PushError::Closed));
        assert_eq!(outbox.next(0), None);
    }

    #[test]
    fn a_batch_shows_the_heartbeat_of_the_time_when_it_is_given_out() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        let _ = outbox.push(0, &tell(b"a"), &memory).unwrap();
        outbox.set_heartbeat(7);
        assert_eq!(taken(&outbox)[0].0.heartbeat, 7);
    }

    /// A batch with a fence must not be the one that shows an earlier mark: the control message of the mark would wait for the
    /// batch, and the batch for a control message behind it.
    #[test]
    fn a_mark_is_shown_before_a_later_fence() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        let _ = outbox.push(0, &tell(b"a"), &memory).unwrap();
        let _ = outbox.mark(1);
        let _ = outbox.fence(2);
        let _ = outbox.push(0, &tell(b"b"), &memory).unwrap();
        taken_marks(&outbox, &[(1, 0), (1, 2)]);
        let _ = outbox.mark(3);
        let _ = outbox.fence(4);
        let _ = outbox.push(0, &tell(b"c"), &memory).unwrap();
        taken_marks(&outbox, &[(3, 2), (3, 4)]);
    }

    fn taken_marks(outbox: &Outbox, expected: &[(u64, u64)]) {
        let found: Vec<_> =
            taken(outbox).iter().map(|(position, _)| (position.mark, position.fence)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_lane_without_credit_shows_its_position_by_a_probe_when_it_is_idle() {
        let (outbox, memory) = (outbox(1, 200), EntryMemory::default());
        let _ = outbox.push(0, &tell(&[1; 90]), &memory).unwrap();
        let (_, first) = outbox.next(0).expect("there is credit");
        let size = first.len() as u64;
        let _ = outbox.push(0, &tell(&[2; 90]), &memory).unwrap();
        assert_eq!(outbox.next(0), None);
        outbox.begin_look();
        // Something was given out since the last call; then all of it was confirmed.
        assert_eq!(outbox.probe(0, 0), Wake::NotNeeded);
        assert_eq!(outbox.probe(0, size), Wake::NotNeeded);
        assert_eq!(outbox.next(0), None);
        assert_eq!(outbox.probe(0, size - 1), Wake::Engine);
        let (_, probe) = outbox.next(0).expect("a probe needs no credit");
        let (position, bodies) = read(&probe);
        assert_eq!((position.sequence, position.first, position.offset, bodies.len()), (2, 1, size, 0));
        assert_eq!(outbox.next(0), None);
        let _ = outbox.grant(0, 10_000);
        let (position, bodies) = read(&outbox.next(0).expect("there is credit").1);
        assert_eq!((position.sequence, position.first, position.offset, bodies.len()), (3, 1, size, 1));
    }

    #[test]
    fn a_mark_is_shown_again_by_two_probes_and_not_before_its_batch() {
        let (outbox, memory) = (outbox(1, 10_000), EntryMemory::default());
        let mark = |outbox: &Outbox| outbox.next(0).map(|(_, frame)| read(&frame).0.mark);
        let _ = outbox.push(0, &tell(&[1]), &memory).unwrap();
        let _ = outbox.mark(7);
        let (_, frame) = outbox.next(0).expect("there is credit");
        let size = frame.len() as u64;
        // It comes back: a probe goes before it, and does not show its mark.
        outbox.put_back(frame).unwrap();
        let _ = (outbox.probe(0, size), outbox.probe(0, size));
        assert_eq!((mark(&outbox), mark(&outbox), mark(&outbox)), (Some(0), Some(7), None));
        // All is confirmed, but the batch with the mark may have been lost.
        let _ = outbox.probe(0, size);
        for _ in 0..2 {
            let _ = outbox.probe(0, size);
            assert_eq!((mark(&outbox), mark(&outbox)), (Some(7), None));
        }
        assert_eq!(outbox.probe(0, size), Wake::NotNeeded);
        assert_eq!(mark(&outbox), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push {
            lane: usize,
            actor: usize,
            size: usize,
        },
        PushLarge {
            lane: usize,
            size: usize,
        },
        Next {
            first: usize,
        },
        /// Takes a batch and puts it back.
        Return {
            first: usize,
        },
        Grant {
            lane: usize,
            more: u64,
        },
        Mark,
        Fence,
        Probe {
            lane: usize,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..2usize, 0..3usize, 0..400usize).prop_map(|(lane, actor, size)| Step::Push { lane, actor, size }),
            1 => (0..2usize, 500..3000usize).prop_map(|(lane, size)| Step::PushLarge { lane, size }),
            3 => (0..2usize).prop_map(|first| Step::Next { first }),
            1 => (0..2usize).prop_map(|first| Step::Return { first }),
            2 => (0..2usize, 0..800u64).prop_map(|(lane, more)| Step::Grant { lane, more }),
            1 => Just(Step::Mark),
            1 => Just(Step::Fence),
            1 => (0..2usize).prop_map(|lane| Step::Probe { lane }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

        /// Each envelope that was taken in is given out once, in the order of its lane and to its place, or is counted at the
        /// end. Positions add up. Nothing goes beyond the credit, and each mark is shown behind all that was before it.
        #[test]
        fn an_outbox_is_queues_with_credit(steps in vec(step(), 0..120)) {
            const PATHS: [&str; 3] = ["/user/a", "/user/b", "/user/c"];
            let outbox = outbox(2, 500);
            let memories: Vec<Vec<EntryMemory>> =
                (0..2).map(|_| (0..3).map(|_| EntryMemory::default()).collect()).collect();
            let mut queues = [VecDeque::new(), VecDeque::new()];
            let mut limits = [500u64; 2];
            // The bytes, envelopes and batches that were given out, and the control number that the lane has shown.
            let (mut bytes, mut given, mut sequences) = ([0u64; 2], [0u64; 2], [0u64; 2]);
            // The envelopes that were pushed before each mark and each fence.
            let (mut pushed, mut number) = ([0u64; 2], 0u64);
            let (mut marks, mut fences) = (Vec::new(), Vec::new());
            let mut serial = 0u32;
            let mut unfinished = [Vec::new(), Vec::new()];
            for step in steps {
                match step {
                    Step::PushLarge { lane, size } => {
                        serial += 1;
                        let mut body = serial.to_le_bytes().to_vec();
                        body.resize(4 + size, 0);
                        if outbox.push_large(lane, &tell(&body)).is_ok() {
                            queues[lane].push_back((PATHS[0], body));
                            pushed[lane] += 1;
                        }
                    }
                    Step::Push { lane, actor, size } => {
                        serial += 1;
                        let mut body = serial.to_le_bytes().to_vec();
                        body.resize(4 + size, 0);
                        let place = Place::Actor { path: PATHS[actor], uid: 1, type_id: 2 };
                        let envelope = Outgoing { kind: EnvelopeKind::Tell, place, tokens: &[], body: &body };
                        if outbox.push(lane, &envelope, &memories[lane][actor]).is_ok() {
                            queues[lane].push_back((PATHS[actor], body));
                            pushed[lane] += 1;
                            let held = outbox.lane(lane);
                            prop_assert!(held.waiting() - held.large_bytes <= LIMITS.lane_bytes + HEADER_LEN);
                        }
                    }
                    Step::Next { first } => {
                        let Some((lane, frame)) = outbox.next(first) else { continue };
                        let batch = Batch::read(&frame, 2, 10_000).unwrap();
                        let position = batch.position;
                        prop_assert_eq!(
                            (position.sequence, position.first, position.offset),
                            (sequences[lane] + 1, given[lane], bytes[lane])
                        );
                        for (mark, before) in &marks {
                            let before: &[u64; 2] = before;
                            if position.mark >= *mark {
                                let end = given[lane] + u64::from(position.counted(batch.prefix.envelopes));
                                prop_assert!(end >= before[lane], "a mark is shown too early");
                            }
                        }
                        for (fence, before) in &fences {
                            let before: &[u64; 2] = before;
                            let is_behind = given[lane] + u64::from(batch.prefix.envelopes) > before[lane];
                            prop_assert_eq!(is_behind && batch.prefix.envelopes > 0, position.fence >= *fence && batch.prefix.envelopes > 0);
                        }
                        for envelope in batch.envelopes() {
                            let mut came = envelope.body.to_vec();
                            if let Some(fragment) = Fragment::read(envelope.body).filter(|_| envelope.kind == EnvelopeKind::Fragment) {
                                prop_assert_eq!(fragment.offset, unfinished[lane].len());
                                unfinished[lane].extend_from_slice(fragment.piece);
                                if !fragment.is_last() {
                                    continue;
                                }
                                came = std::mem::take(&mut unfinished[lane]);
                            }
                            let (path, body) = queues[lane].pop_front().expect("it was pushed");
                            prop_assert_eq!(envelope.place, Place::Actor { path, uid: 1, type_id: 2 });
                            prop_assert_eq!(came, body);
                        }
                        sequences[lane] += 1;
                        given[lane] += u64::from(position.counted(batch.prefix.envelopes));
                        bytes[lane] += if batch.prefix.envelopes == 0 { 0 } else { frame.len() as u64 };
                        prop_assert!(bytes[lane] <= limits[lane]);
                    }
                    Step::Return { first } => {
                        let Some((_, frame)) = outbox.next(first) else { continue };
                        outbox.put_back(frame).unwrap();
                    }
                    Step::Grant { lane, more } => {
                        limits[lane] += more;
                        let _ = outbox.grant(lane, limits[lane]);
                    }
                    Step::Probe { lane } => {
                        let _ = outbox.probe(lane, 0);
                    }
                    Step::Mark => {
                        number += 1;
                        marks.push((number, pushed));
                        let _ = outbox.mark(number);
                    }
                    Step::Fence => {
                        number += 1;
                        fences.push((number, pushed));
                        let _ = outbox.fence(number);
                    }
                }
                let counts = outbox.counts();
                prop_assert_eq!(counts.queued, queues.iter().map(|queue| queue.len() as u64).sum::<u64>());
                prop_assert_eq!(counts.shipped, given.iter().sum::<u64>());
            }
            let left: u64 = queues.iter().map(|queue| queue.len() as u64).sum();
            prop_assert_eq!(outbox.close(), left);
        }
    }
}
