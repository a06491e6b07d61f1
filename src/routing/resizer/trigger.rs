//! The trigger: senders count their messages, and tell the head when it is time to look.
//!
//! Each thread counts its own messages, so that senders share no line. When the resizer says that it is time, the
//! sender pulls the *trigger*, a flag; a sender that finds the flag loose tells the head. The head sets the flag loose
//! *before* it looks at the routees. So there is at most one control message to the head at a time. A pull without a
//! control message is followed by a look that sees the earlier work of its sender: both sides change the flag by
//! read-modify-writes, of which one comes first. No trigger is lost for good, whatever happens to the look: the flag is
//! loose again.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::routing::resizer::resizer::Resizer;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::util::panic::Guarded;
use crate::util::per_thread::PerThread;

/// Whether the head has been told and has not begun.
#[derive(Debug)]
pub(crate) struct Trigger(AtomicBool);

impl Trigger {
    /// Makes a loose trigger.
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Pulls the trigger; true if the caller must tell the head.
    #[must_use = "the caller that finds it loose must tell the head"]
    pub(crate) fn pull(&self) -> bool {
        // Ordering: Release; pairs with the Acquire in `loosen`, also through the exchanges between, which continue the
        // release sequence: a head that looks after that sees the earlier work of each puller. A plain look first would
        // save the write and lose this.
        !self.0.swap(true, Ordering::Release)
    }

    /// The head begins: a later pull tells it again.
    pub(crate) fn loosen(&self) {
        // Ordering: Acquire; pairs with the Release in `pull`. It tells the pullers nothing.
        self.0.swap(false, Ordering::Acquire);
    }
}

/// A pool's resizer, and the state that the pool's senders share with its head.
pub(crate) struct Resizing {
    pub resizer: Guarded<Box<dyn Resizer>>,
    /// The number of messages that each thread has sent to the router.
    pub(crate) counts: PerThread<Count>,
    /// Their sum when the resizer was last asked; touched by the head only.
    pub(crate) asked_at: AtomicU64,
    pub trigger: Trigger,
    /// Tells the head that the trigger was pulled.
    word: fn() -> Control,
}

/// The count of a thread. Written by that thread alone.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) messages: AtomicU64,
    /// No routee was there to take the message that is not counted yet.
    is_unheard: AtomicBool,
}

impl Resizing {
    /// For a router whose head runs the control message of `word` when the trigger was pulled.
    pub(crate) fn new(resizer: Guarded<Box<dyn Resizer>>, word: fn() -> Control) -> Self {
        Self { resizer, counts: PerThread::new(), asked_at: AtomicU64::new(0), trigger: Trigger::new(), word }
    }

    /// No routee was there to take a message that this thread is sending. That is noted, and the head is told when the
    /// message is [counted](Self::sent), so that the look finds it in the count.
    #[cold]
    pub(crate) fn nobody_took(&self) {
        // Relaxed: as in `sent`.
        self.counts.with(|_| Count::default(), |count| count.is_unheard.store(true, Ordering::Relaxed));
    }

    /// Counts a message that this thread has sent to the router. Tells the head if it is time, or if no routee was
    /// there to take the message.
    ///
    /// Runs the resizer's code.
    #[inline]
    pub(crate) fn sent(&self, head: &AnyActorRef) {
        let (count, is_unheard) = self.counts.with(
            |_| Count::default(),
            |count| {
                // Relaxed: only the thread of the count writes it, and the head's sum may be a little old.
                let messages = count.messages.load(Ordering::Relaxed).wrapping_add(1);
                count.messages.store(messages, Ordering::Relaxed);
                let is_unheard = count.is_unheard.load(Ordering::Relaxed);
                if is_unheard {
                    count.is_unheard.store(false, Ordering::Relaxed);
                }
                (messages, is_unheard)
            },
        );
        if (self.resizer.is_time_for_resize(count) || is_unheard) && self.trigger.pull() {
            // If the head has ended, so has the pool.
            let _ = head.send_positioned((self.word)());
        }
    }
}
