//! How senders count, and tell the head that it is time.
//!
//! Each thread counts what it sends by itself, so that senders share no line. A sender to whom the resizer
//! says that it is time pulls the *trigger*, a flag; whoever finds it loose tells the head. The head sets it
//! loose *before* it looks at the routees. So there is at most one word to the head at a time, and a trigger
//! that was pulled without one is followed by a look that sees what its sender had done before: both sides
//! change the flag by read-modify-writes, of which one comes first. No trigger is lost for good, whatever
//! becomes of the look: the flag is loose again.

use crate::actor::turn::apply;
use crate::core::actor_ref::{ActorRef, Load};
use crate::core::any_ref::AnyRef;
use crate::core::control::Control;
use crate::core::dead_letters::DeadLetterReason;
use crate::core::error::SendError;
use crate::core::recipient::{Accepted, Recipient};
use crate::core::system::SystemRef;
use crate::routing::head::head::Head;
use crate::routing::logic::RoutingLogic;
use crate::routing::resizer::loads::RouteeLoads;
use crate::routing::resizer::resizer::Resizer;
use crate::routing::routees::Routees;
use crate::routing::routing_ref::{LeftoverRouting, Routing, SharedRouter};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::util::panic::Guarded;
use crate::util::per_thread::PerThread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc as StdArc;

/// Whether the head has been told and has not begun.
#[derive(Debug)]
pub struct Trigger(AtomicBool);

impl Trigger {
    /// A loose one.
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Pulls it; true if the caller must tell the head.
    #[must_use = "whoever finds it loose must tell the head"]
    pub fn pull(&self) -> bool {
        // Ordering: Release; pairs with the Acquire in `loosen`, also through the exchanges between, which continue
        // the release sequence: who looks after that sees what each puller did before. A plain look first would
        // save the write and lose this.
        !self.0.swap(true, Ordering::Release)
    }

    /// The head begins: whatever is pulled from now on tells it again.
    pub fn loosen(&self) {
        // Ordering: Acquire; pairs with the Release in `pull`. It tells the pullers nothing.
        self.0.swap(false, Ordering::Acquire);
    }
}

/// A pool's resizer, and what the pool's senders and its head know of each other.
pub struct Resizing {
    pub resizer: Guarded<Box<dyn Resizer>>,
    /// What each thread has sent to the router.
    counts: PerThread<Count>,
    /// Their sum when the resizer was last asked; touched by the head only.
    asked_at: AtomicU64,
    pub trigger: Trigger,
    /// Tells the head that the trigger was pulled.
    word: fn() -> Control,
}

/// What a thread has sent. Written by that thread alone.
#[derive(Default)]
struct Count {
    messages: AtomicU64,
    /// Nobody was there to take the message that is not counted yet.
    is_unheard: AtomicBool,
}

impl Resizing {
    /// For a router whose head is a `Head<M, L>`.
    pub fn new<M: Send + 'static, L: RoutingLogic<M>>(resizer: Guarded<Box<dyn Resizer>>) -> Self {
        Self {
            resizer,
            counts: PerThread::new(),
            asked_at: AtomicU64::new(0),
            trigger: Trigger::new(),
            word: || apply(Head::<M, L>::triggered),
        }
    }

    /// Nobody was there to take a message that this thread is sending. It is noted, and the head is told when the message
    /// is [counted](Self::sent), so that the look finds it in the count.
    #[cold]
    pub fn nobody_took(&self) {
        // Relaxed: as in `sent`.
        self.counts.with(|_| Count::default(), |count| count.is_unheard.store(true, Ordering::Relaxed));
    }

    /// Counts a message that this thread has sent to the router, and tells the head if it is time, or if nobody was
    /// there to take it.
    ///
    /// Runs the resizer's code.
    #[inline]
    pub fn sent(&self, head: &AnyRef) {
        let (count, is_unheard) = self.counts.with(
            |_| Count::default(),
            |count| {
                // Relaxed: only the thread whose it is writes it, and the head's sum may be a little old.
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
            // Where the head has ended, so has the pool.
            let _ = head.send_positioned((self.word)());
        }
    }

    /// What the resizer is shown. Runs code of foreign routees.
    pub fn loads<M: Send + 'static>(&self, table: &Routees<M>, shared: &SharedRouter<M>) -> RouteeLoads {
        let mut loads = self.no_loads(shared);
        for routee in table.iter() {
            let load = routee.actor().load();
            let queued = match load {
                Load::Busy { queued } => queued,
                Load::Suspended => routee.actor().queued().unwrap_or(0),
                _ => 0,
            };
            loads.push(load, queued);
        }
        loads
    }

    /// The same for a pool without routees; counts the asking.
    pub fn no_loads<M: Send + 'static>(&self, shared: &SharedRouter<M>) -> RouteeLoads {
        let mut messages = 0u64;
        // Relaxed: see `sent`.
        self.counts
            .for_each(|count| messages = messages.wrapping_add(count.messages.load(Ordering::Relaxed)));
        // Relaxed: the head's own.
        let before = self.asked_at.load(Ordering::Relaxed);
        self.asked_at.store(messages, Ordering::Relaxed);
        RouteeLoads::default()
            .with_messages(messages, messages.wrapping_sub(before))
            .at(shared.info.system.now())
            .with_seed(shared.info.seed)
    }
}

/// The reference that others hold, and the one by which a leaving routee hands back what is counted already.
pub fn references<M: Send + 'static, L: RoutingLogic<M>>(
    shared: &StdArc<SharedRouter<M>>,
    logic: &StdArc<L>,
) -> (ActorRef<M>, ActorRef<M>) {
    let routing = || Routing { shared: shared.clone(), logic: logic.clone() };
    let reference = match &shared.info.resizing {
        Some(resizing) => {
            ActorRef::to_own_recipient(CountedRouting { routing: routing(), resizing: resizing.clone() })
        }
        None => ActorRef::to_own_recipient(routing()),
    };
    (reference, ActorRef::to_own_recipient(LeftoverRouting(routing())))
}

/// What stands behind an `ActorRef<M>` to a pool with a resizer: routes, and counts what is sent.
struct CountedRouting<M: Send + 'static, L> {
    routing: Routing<M, L>,
    resizing: StdArc<Resizing>,
}

impl<M: Send + 'static, L: RoutingLogic<M>> CountedRouting<M, L> {
    fn sent(&self) {
        self.resizing.sent(&self.routing.shared.info.head);
    }

    /// A message that nobody took counts too. It comes back, unless the resizer panics.
    #[cold]
    fn refused(&self, refused: SendError<M>) -> SendError<M> {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.sent())) {
            let info = &self.routing.shared.info;
            let reason = DeadLetterReason::of(&refused);
            info.system.ledger().mine().dead_lettered(1);
            info.system.dead_letters().bury(refused.into_inner(), reason, || info.head.path());
            resume_unwind(panic);
        }
        refused
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Recipient<M> for CountedRouting<M, L> {
    /// The message goes by the table that there is; then it counts.
    #[inline]
    fn deliver(&self, message: M) -> Result<Accepted, SendError<M>> {
        match self.routing.deliver(message) {
            Ok(accepted) => {
                self.sent();
                Ok(accepted)
            }
            Err(refused) => Err(self.refused(refused)),
        }
    }

    fn is_closed(&self) -> bool {
        self.routing.is_closed()
    }

    fn load(&self) -> Load {
        self.routing.load()
    }

    fn any(&self) -> Option<AnyRef> {
        self.routing.any()
    }

    fn is_router(&self) -> bool {
        true
    }

    fn system(&self) -> Option<SystemRef> {
        self.routing.system()
    }

    fn place(&self) -> Option<AnyRef> {
        self.routing.place()
    }
}
