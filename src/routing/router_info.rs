use crate::ask::fork::RouterId;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::ledger::ThreadCounters;
use crate::core::system::{SystemCore, SystemRef};
use crate::routing::resizer::trigger::{Resizing, Trigger};
use crate::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc as StdArc;
use std::sync::Weak as StdWeak;
/// The part of a router that a message needs on its way and that never changes, without the type of message.
#[repr(align(64))]
pub(crate) struct RouterInfo {
    pub head: AnyActorRef,
    pub system: StdArc<SystemCore>,
    pub message_type: fn() -> &'static str,
    /// The seed of all random numbers in this router.
    pub seed: u64,
    /// The number that tells this router from others of the system.
    pub number: u32,
    /// Present in a pool whose size follows its load.
    pub resizing: Option<StdArc<Resizing>>,
    /// Apart, since few messages need it.
    pub(crate) rare: StdArc<RareInfo>,
    /// Present in a router value: this value itself, which all router values that share a logic share, too.
    pub(crate) value: Option<StdWeak<RouterInfo>>,
}

impl RouterInfo {
    /// Routers of different numbers draw other random numbers.
    pub(crate) fn new<M>(head: AnyActorRef, number: u32) -> Self {
        let system = head.core().system.clone();
        let seed = system.seed() ^ u64::from(number);
        let message_type = std::any::type_name::<M>;
        Self {
            head,
            system,
            message_type,
            seed,
            number,
            resizing: None,
            rare: StdArc::default(),
            value: None,
        }
    }

    /// The info of a router value: its dead letters are at this head.
    pub(crate) fn of_value<M>(head: AnyActorRef, number: u32) -> StdArc<Self> {
        StdArc::new_cyclic(|own| Self { value: Some(own.clone()), ..Self::new::<M>(head, number) })
    }

    /// Whether this belongs to a single router value, which has no clones and from which no other value was made.
    pub(crate) fn is_of_sole_value(&self) -> bool {
        self.value.as_ref().is_some_and(|own| own.strong_count() == 1)
    }

    /// The info of a sender to several recipients that is no router: its dead letters are at `/deadLetters`.
    pub(crate) fn without_router<M: Send + 'static>(system: &SystemRef) -> Self {
        Self::new::<M>(system.dead_letters_ref::<M>().any_local(), 0)
    }

    /// The calling thread's counters of the router's system.
    #[inline]
    pub(crate) fn counters(&self) -> &ThreadCounters {
        self.system.ledger().for_this_thread()
    }

    pub(crate) fn id(&self) -> RouterId {
        RouterId::new(&self.head, self.number)
    }

    pub(crate) fn found_empty(&self) -> Option<&EmptyPoolTrigger> {
        self.rare.found_empty.as_ref()
    }

    /// Counts a message or a copy that a routee has refused.
    // In line: a call would cost each delivery a register that lasts over it.
    #[inline(always)]
    pub(crate) fn count_refused(&self) {
        self.rare.counts.refused.add();
    }

    /// Counts a message that no routee has taken.
    #[cold]
    pub(crate) fn count_no_routee(&self) {
        self.rare.counts.no_routee.add();
    }

    /// A message has found no routee that takes it.
    #[cold]
    pub(crate) fn on_no_routee(&self) {
        if let Some(found_empty) = self.found_empty() {
            found_empty.tell(&self.head);
        }
        if let Some(resizing) = &self.resizing {
            resizing.nobody_took();
        }
    }
}

/// Each routed message reads it: a single line.
const _: () = assert!(size_of::<RouterInfo>() == 64);

/// The part of a router's info that few messages need.
#[derive(Default)]
pub(crate) struct RareInfo {
    /// Present in a pool that ends with the message that finds it empty.
    pub found_empty: Option<EmptyPoolTrigger>,
    pub counts: RouterCounts,
}

/// The counts of a router. Senders share these lines, and write to them only for a message that is refused and for an
/// attempt of a request to several routees.
#[derive(Default)]
pub(crate) struct RouterCounts {
    /// Refusals by routees.
    pub refused: RouterCount,
    /// Messages that no routee has taken.
    pub no_routee: RouterCount,
    /// Attempts of requests to several routees.
    pub attempts: RouterCount,
    /// Replies to requests that had their outcome.
    pub late: RouterCount,
}

/// One of the counts of a router.
#[derive(Default)]
pub(crate) struct RouterCount(AtomicU64);

impl RouterCount {
    #[inline(always)]
    pub(crate) fn add(&self) {
        // Ordering: Relaxed; nothing else is read by it.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Ordering: Relaxed; nothing else is read by it.
        self.0.load(Ordering::Relaxed)
    }
}

/// The trigger by which senders tell the head that the pool is empty.
pub(crate) struct EmptyPoolTrigger {
    /// Pulled by a sender that finds no routee; only the first tells the head.
    trigger: Trigger,
    word: fn() -> Control,
}

impl EmptyPoolTrigger {
    /// For a router whose head runs the control message of `word` when it is told.
    pub(crate) fn new(word: fn() -> Control) -> Self {
        Self { trigger: Trigger::new(), word }
    }

    /// The head begins to look: a sender that finds no routee from now on tells it again.
    pub(crate) fn rearm(&self) {
        self.trigger.loosen();
    }

    /// A message has found no routee. The control message is positioned, so it is behind a change that the same sender
    /// has asked for.
    pub(crate) fn tell(&self, head: &AnyActorRef) {
        if self.trigger.pull() {
            // If the head has ended, so has the pool.
            let _ = head.send_positioned((self.word)());
        }
    }
}
