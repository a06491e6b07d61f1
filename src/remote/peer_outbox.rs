//! The outbox of a peer as an engine sees it.

use crate::remote::outbox::Outbox;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::fmt;
use std::sync::Arc;

/// The batches that wait for one peer. A clone is another handle to the same outbox.
///
/// An engine pulls: it takes a batch when it has room to write it, so that all other batches stay where the node's limits
/// count them.
///
/// ```no_run
/// use pointsman::remote::PeerOutbox;
///
/// /// Returns whether to come back when there is room again.
/// fn write_batches(outbox: &PeerOutbox, mut try_write: impl FnMut(&str, &[u8]) -> bool) -> bool {
///     while let Some(batch) = outbox.next(1 << 20) {
///         if !try_write(outbox.peer(), &batch) {
///             outbox.put_back(batch);
///             return true;
///         }
///     }
///     false // `Fabric::wants_out` is called when there is another batch
/// }
/// ```
#[derive(Clone)]
pub struct PeerOutbox(Arc<Shared>);

struct Shared {
    peer: String,
    outbox: Outbox,
    /// The lane whose turn it is.
    turn: AtomicUsize,
    /// The messages of batches that came back after the end of the link.
    returned_late: AtomicU64,
}

impl PeerOutbox {
    pub(crate) fn new(peer: &str, outbox: Outbox) -> Self {
        let shared = Shared {
            peer: peer.to_owned(),
            outbox,
            turn: AtomicUsize::new(0),
            returned_late: AtomicU64::new(0),
        };
        Self(Arc::new(shared))
    }

    /// Makes an outbox without a node, for tests of engines: it gives out one batch for each body, in order.
    ///
    /// ```
    /// use pointsman::remote::PeerOutbox;
    ///
    /// let outbox = PeerOutbox::for_test("n2", &[b"first".as_slice(), b"second"]);
    /// let first = outbox.next(1 << 20).expect("two batches wait");
    /// assert!(first.ends_with(b"first"));
    /// outbox.put_back(first);
    /// let again = outbox.next(1 << 20).expect("it was put back");
    /// assert!(again.ends_with(b"first"));
    /// ```
    #[cfg(feature = "testkit")]
    pub fn for_test(peer: &str, bodies: &[&[u8]]) -> Self {
        use crate::remote::batch::{EnvelopeKind, Place};
        use crate::remote::outbox::{EntryMemory, OutboxLimits, Outgoing};
        let limits = OutboxLimits { lane_bytes: usize::MAX, large_bytes: 0, batch_bytes: 1 };
        let outbox = Outbox::new(1, 2, 1, u64::MAX, limits);
        let place = Place::Actor { path: "/user/test", uid: 1, type_id: 1 };
        for body in bodies {
            let envelope = Outgoing { kind: EnvelopeKind::Tell, place, tokens: &[], body };
            // The lane has no bound that can be reached.
            let pushed = outbox.push(0, &envelope, &EntryMemory::default());
            debug_assert!(pushed.is_ok());
        }
        Self::new(peer, outbox)
    }

    /// The name of the node that the batches are for.
    pub fn peer(&self) -> &str {
        &self.0.peer
    }

    /// Takes the next batch, from one lane after the other. `None` if nothing may be written now; then
    /// [`Fabric::wants_out`](crate::remote::Fabric::wants_out) is called when that has changed.
    ///
    /// A batch of more than `max_frame` bytes is lost, and counted as lost by the peer: an engine says in
    /// [`Inbound::up`](crate::remote::Inbound::up) how much it carries.
    pub fn next(&self, max_frame: usize) -> Option<Vec<u8>> {
        loop {
            let frame = self.take().or_else(|| {
                // Whatever is pushed from here on wakes the engine again, and what was pushed before is seen by this look.
                self.0.outbox.begin_look();
                self.take()
            })?;
            if frame.len() <= max_frame {
                return Some(frame);
            }
            log::error!(
                "a batch of {} bytes for node {} is lost: the engine carries at most {max_frame} bytes; raise its limit, or \
                 lower `[remote.limits] envelope`",
                frame.len(),
                self.0.peer
            );
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        // Ordering: Relaxed; the turn is a hint.
        let turn = self.0.turn.load(Ordering::Relaxed);
        let (lane, frame) = self.0.outbox.next(turn)?;
        // Ordering: Relaxed; as above.
        self.0.turn.store(lane + 1, Ordering::Relaxed);
        Some(frame)
    }

    /// Gives back a batch that was not written, or not to its end: it is the next one of its lane again. Of several batches
    /// the one that was taken last is given back first.
    ///
    /// A batch whose last byte was written must not be given back: it would arrive twice.
    pub fn put_back(&self, batch: Vec<u8>) {
        if let Err(messages) = self.0.outbox.put_back(batch) {
            // Ordering: Relaxed; the books read it at a quiet moment.
            self.0.returned_late.fetch_add(messages, Ordering::Relaxed);
        }
    }

    /// Gives back the memory of a batch whose last byte was written. An engine need not do that: otherwise the senders
    /// allocate memory for each batch.
    ///
    /// ```
    /// # #[cfg(feature = "testkit")] {
    /// use pointsman::remote::PeerOutbox;
    ///
    /// let outbox = PeerOutbox::for_test("n2", &[b"first".as_slice()]);
    /// let batch = outbox.next(1 << 20).expect("a batch waits");
    /// // ... the engine writes it ...
    /// outbox.reuse(batch);
    /// assert!(outbox.next(1 << 20).is_none());
    /// # }
    /// ```
    pub fn reuse(&self, batch: Vec<u8>) {
        self.0.outbox.reuse(batch);
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }

    /// The messages that the engine gave back after the end of the link, since the last call.
    pub(crate) fn take_returned_late(&self) -> u64 {
        // Ordering: Relaxed; see `put_back`.
        self.0.returned_late.swap(0, Ordering::Relaxed)
    }
}

impl PartialEq for PeerOutbox {
    /// Whether both are handles to one outbox.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PeerOutbox {}

impl fmt::Debug for PeerOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerOutbox")
            .field("peer", &self.0.peer)
            .field("counts", &self.0.outbox.counts())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::batch::{Batch, EnvelopeKind, Place};
    use crate::remote::outbox::{EntryMemory, OutboxLimits, Outgoing, Wake};

    fn outbox(lanes: u8) -> PeerOutbox {
        let limits = OutboxLimits { lane_bytes: 1 << 20, large_bytes: 0, batch_bytes: 200 };
        PeerOutbox::new("n2", Outbox::new(1, 2, lanes, u64::MAX, limits))
    }

    fn push(outbox: &PeerOutbox, lane: usize, body: &[u8]) -> Wake {
        let place = Place::Actor { path: "/user/a", uid: 1, type_id: 2 };
        let envelope = Outgoing { kind: EnvelopeKind::Tell, place, tokens: &[], body };
        outbox.outbox().push(lane, &envelope, &EntryMemory::default()).expect("there is room")
    }

    fn bodies(frame: &[u8]) -> Vec<Vec<u8>> {
        let batch = Batch::read(frame, 8, 10_000).expect("it was sealed here");
        batch.envelopes().map(|envelope| envelope.body.to_vec()).collect()
    }

    #[test]
    fn an_engine_is_woken_again_only_after_it_has_found_nothing() {
        let outbox = outbox(1);
        assert_eq!(push(&outbox, 0, b"a"), Wake::Engine);
        assert!(outbox.next(1000).is_some());
        // The engine is still at it.
        assert_eq!(push(&outbox, 0, b"b"), Wake::NotNeeded);
        assert_eq!(outbox.next(1000).map(|frame| bodies(&frame)), Some(vec![b"b".to_vec()]));
        assert_eq!(outbox.next(1000), None);
        assert_eq!(push(&outbox, 0, b"c"), Wake::Engine);
    }

    #[test]
    fn lanes_have_turns() {
        let outbox = outbox(2);
        for body in [[0; 150], [1; 150]] {
            for lane in [0, 1] {
                let _ = push(&outbox, lane, &body);
            }
        }
        let lanes: Vec<u8> = std::iter::from_fn(|| outbox.next(1000)).map(|frame| frame[4]).collect();
        assert_eq!(lanes, [0, 1, 0, 1]);
    }

    #[test]
    fn a_batch_beyond_the_engines_limit_is_skipped_and_its_number_with_it() {
        let outbox = outbox(1);
        let _ = push(&outbox, 0, &[7; 500]);
        let _ = push(&outbox, 0, b"small");
        let frame = outbox.next(300).expect("the second batch");
        assert_eq!(bodies(&frame), [b"small".to_vec()]);
        let batch = Batch::read(&frame, 1, 1000).expect("it was sealed here");
        assert_eq!((batch.position.sequence, batch.position.first), (2, 1));
    }

    #[test]
    fn what_comes_back_after_the_end_is_counted_once() {
        let outbox = outbox(1);
        let _ = push(&outbox, 0, b"a");
        let _ = push(&outbox, 0, b"b");
        let frame = outbox.next(1000).expect("a batch");
        assert_eq!(outbox.outbox().close(), 0);
        outbox.put_back(frame);
        assert_eq!((outbox.take_returned_late(), outbox.take_returned_late()), (2, 0));
        assert_eq!(outbox.outbox().counts().shipped, 0);
        assert!(outbox.clone() == outbox && outbox.peer() == "n2");
    }
}
