//! The balancing pool: a single queue for all routees.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::mailbox_choice::refuse;
use crate::actor::recipe::{IntoActor, by_context};
use crate::actor::shared_queue_turn::SharedQueue;
use crate::actor::spawn::spawn_held;
use crate::core::actor_ref::RecipientLoad;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::{SendError, SpawnError};
use crate::dispatch::shared_queue::{AtBound, Bound, Pushed, Refused};
use crate::mailbox::kind::{Mailbox, MailboxFault, OverflowPolicy};
use crate::routing::builder::RouterBuilder;
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::{Initial, MakeWith, NewRoutee, RouteeSettings, RouterPlan};
use crate::routing::route_context::RouteContext;
use crate::routing::routees::Routees;
use crate::routing::router_info::RouterInfo;
use crate::sync::Arc;
use crate::util::panic::Guarded;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc as StdArc;

/// The routees of a balancing pool share a queue. An idle routee takes the next message, so no message waits behind a
/// slow routee while another routee has nothing to do. Made by [`balancing_pool`](RouterBuilder::balancing_pool).
///
/// ```text
///   tell ──▶ router ──▶ ▒▒▒▒▒▒▒▒▒ one queue ──▶ routee 0 ◀── ▒ its own mailbox
///   tell ──▶ router ──▶                     ├─▶ routee 1 ◀── ▒
///                                           └─▶ routee 2 ◀── ▒
/// ```
///
/// Each routee keeps a mailbox of its own, and with it its identity. A message concerns that routee alone if it is sent
/// to the routee's own reference, by the routee itself, by its timers, as an answer, or by
/// [`Router::broadcast`](super::Router::broadcast); so does a poison pill or a kill. A routee serves its own mailbox
/// first. It takes single messages from the shared queue, and at least one message in each turn whose throughput its
/// own mailbox uses up.
///
/// # Order
///
/// Routees take messages from the queue in the order sent. But two routees handle two messages at once, so there is no
/// order between routees. State that a conversation needs must not be the state of a routee: use
/// [`ConsistentHashing`](crate::routing::ConsistentHashing) for that.
///
/// # Lifecycle
///
/// A routee that fails keeps its part in the queue while it is restarted, and takes nothing while it is suspended. The
/// messages that it has taken from the queue and [stashed](Context::stash) are its own, and become dead letters when it
/// ends. A routee that is removed handles the messages that its own mailbox held at the removal. A later message to it
/// is a dead letter, since it was for this routee alone. The queue stays for the other routees.
///
/// The last routee that leaves decides about the queue:
///
/// - The routee empties the queue, and no message that was sent before is lost, in these cases: the router
///   [drains](super::Router::drain); routees are removed and none stays; a routee that was to leave others behind turns
///   out to be the last; the last routee [retires](Context::passivate).
/// - The messages that are left become dead letters, with the router as their recipient, when the last routee stops
///   otherwise, or after a [poison pill](super::Router::poison_routees) or a [farewell](RouterPlan::farewell). The same
///   happens to a message that a sender adds at the very moment at which the last routee leaves.
///
/// There is no [resizer](RouterPlan::resizer): loads of routees that share a queue say nothing. A pool that
/// [stays](RouterPlan::stay_when_empty) can grow again. Routees that others made cannot be [added](super::Router::add).
///
/// # Cost
///
/// A `tell` pushes to the queue and looks whether a routee is idle. If so, it wakes the routee that has been idle
/// longest, and scans none. A `tell` wakes a single routee: before the woken routee handles its message, it wakes the
/// next if there is more. A queue without a bound uses a block for every 31 messages, and fewer if they are large;
/// blocks are used again. The list of the idle allocates one for every 31 times that a routee falls idle. A bounded
/// queue allocates all its room at once, and a `tell` to it executes a memory fence.
///
/// A routee that has taken 16 messages in a row waits for 64 spin hints before the next, one to three microseconds, if
/// fewer than 64 are there. A routee that has taken 4 messages since its last wait and finds the queue empty waits as
/// long before it falls idle. Without these waits a push costs twice as much where routees take each message as soon as
/// it comes. A sender that has lost the place in the queue to another sender waits, too, for one to 64 spin hints. All
/// senders write to the same place, which other routers avoid. Taking a message, and waking a routee, may wait briefly
/// for a thread that was preempted in the middle of adding to the queue, or to the list.
///
/// The idea is Akka's `BalancingPool`. In Akka routees have no identity of their own, a broadcast may reach the same
/// routee twice, the pool has a dispatcher for itself, and the messages that the last routee leaves in the queue are
/// lost.
pub struct Balancing<M: Send + 'static> {
    /// Opened when the first routee is made, by the plan's [`RouteeSettings::queue`] of that time.
    queue: Arc<SharedQueue<M>>,
}

impl RouterBuilder {
    /// A router that creates its routees, as [`pool`](Self::pool), which take their messages from one
    /// [shared queue](Balancing). It has no bound unless told otherwise by [`queue`](RouterPlan::queue).
    ///
    /// The routees run where [`dispatcher`](RouterPlan::dispatcher) says, and take as many messages in a turn
    /// as its throughput allows.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Resize {
    ///     image: String,
    ///     done: std::sync::mpsc::Sender<usize>,
    /// }
    /// impl Actor for Resizer {
    ///     type Message = Resize;
    ///     fn receive(&mut self, job: Resize, _: &mut Context<Resize>) -> HandlerResult {
    ///         job.done.send(job.image.len())?; // some take long, some don't
    ///         Ok(())
    ///     }
    /// }
    /// struct Resizer;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("images")
    ///     .dispatcher("heavy", Dispatcher::blocking().throughput(1))
    ///     .build()?;
    /// let resizers = system
    ///     .router("resizers")
    ///     .balancing_pool(4, |_| Resizer)
    ///     .queue(Mailbox::bounded(1000).on_full(OverflowPolicy::Reject))
    ///     .dispatcher("heavy")
    ///     .spawn()?;
    /// let (done, sizes) = std::sync::mpsc::channel();
    /// for image in ["apple.png", "pear.png"] {
    ///     resizers.tell(Resize { image: image.into(), done: done.clone() });
    /// }
    /// assert_eq!(sizes.recv()? + sizes.recv()?, 17);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// No other logic can be chosen:
    ///
    /// ```compile_fail,E0277
    /// # use pointsman::prelude::*;
    /// # use pointsman::routing::Random;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let workers = system.router("workers").balancing_pool(4, |_| Worker).logic(Random::new()).spawn()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn balancing_pool<A, I>(
        self,
        size: usize,
        recipe: impl Fn(&mut Context<A::Message>) -> I + Send + Sync + 'static,
    ) -> RouterPlan<A::Message, Balancing<A::Message>>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        let recipe = StdArc::new(Guarded::new(recipe));
        let make = move |head: &AnyActorRef, routee_index: u32, settings: &RouteeSettings| {
            let recipe = recipe.clone();
            let recipe = by_context(move |ctx: &mut Context<A::Message>| recipe(ctx));
            spawn_held::<A, _>(settings.plan(head, routee_index), recipe).map(NewRoutee::Own)
        };
        let (make, logic) = sharing(StdArc::new(make));
        let check = |parent: &AnyActorRef, settings: &RouteeSettings, path: &dyn Fn() -> String| {
            check(settings, path)?;
            settings.check::<A>(parent, path)
        };
        let mut plan = self.plan(Initial::Pool { size, make, check }).logic(logic);
        plan.settings.queue = Some(Mailbox::unbounded());
        plan
    }
}

impl<M: Send + 'static> RouterPlan<M, Balancing<M>> {
    /// Makes the routees share a queue of this kind: [`Mailbox::unbounded`], or [`Mailbox::bounded`] with
    /// [`OverflowPolicy::Reject`], [`OverflowPolicy::DropNewest`] or [`OverflowPolicy::DropOldest`]. A dropped message
    /// is counted, and is a dead letter of the router's with the reason [`Dropped`](DeadLetterReason::Dropped). The
    /// oldest message is the message that has waited longest; a message that a routee has taken is not dropped any
    /// more.
    ///
    /// Other mailboxes are an error when the router is created ([`MailboxFault::NotShareable`]): routees cannot agree
    /// on an order by rank, and a sender cannot wait for room that any of many routees may make. The mailboxes of the
    /// single routees are chosen by [`mailbox`](Self::mailbox). A bounded queue allocates all its room at once, so it
    /// may hold at most 2^24 messages ([`MailboxFault::LargeCapacity`]). In a configuration file the key is `queue`
    /// ([`RouterSettings::queue`](crate::routing::RouterSettings::queue)).
    pub fn queue(mut self, mailbox: Mailbox) -> Self {
        self.settings.queue = Some(mailbox);
        self
    }
}

/// The same recipe, whose routees share the queue of the logic that is returned with it.
pub(crate) fn sharing<M: Send + 'static>(make: StdArc<MakeWith<M>>) -> (StdArc<MakeWith<M>>, Balancing<M>) {
    let queue = Arc::new(SharedQueue::new());
    let logic = Balancing { queue: queue.clone() };
    let make = move |head: &AnyActorRef, routee_index: u32, settings: &RouteeSettings| {
        queue.open(settings.queue.as_ref().and_then(bound));
        let counted = queue.clone();
        head.core().children.set_queued(move || counted.len());
        Ok(match make(head, routee_index, settings)? {
            NewRoutee::Own(held) => NewRoutee::Own(held.share(&queue)),
            behind => unreachable!(
                "no plan shares a queue among routees of other messages: {}",
                behind.actor().path()
            ),
        })
    };
    (StdArc::new(make), logic)
}

/// Returns the capacity of a queue of this kind.
fn bound(queue: &Mailbox) -> Option<Bound> {
    let capacity = queue.capacity.and_then(NonZeroUsize::new)?;
    let at_bound = match queue.on_full {
        OverflowPolicy::DropNewest => AtBound::DropNewest,
        OverflowPolicy::DropOldest => AtBound::DropOldest,
        // `check_queue` has refused a policy that waits.
        OverflowPolicy::Reject | OverflowPolicy::Wait(_) => AtBound::Refuse,
    };
    Some(Bound { capacity, at_bound })
}

/// Refuses a queue that cannot be shared.
fn check(settings: &RouteeSettings, path: &dyn Fn() -> String) -> Result<(), SpawnError> {
    let Some(queue) = &settings.queue else { return Ok(()) };
    check_queue(queue).map_err(|fault| refuse(path, fault))
}

/// Says what is wrong with a mailbox as the queue that routees share.
pub(crate) fn check_queue(queue: &Mailbox) -> Result<(), MailboxFault> {
    queue.check()?;
    if queue.is_shareable() {
        return queue.check_room_at_once();
    }
    Err(MailboxFault::NotShareable { mailbox: queue.to_string() })
}

impl<M: Send + 'static> Balancing<M> {
    /// Pushes a message that is counted as sent and is in no account, as [`route`](RoutingLogic::route) does for a
    /// message in an account. Calls `queued` after the usual push, and `otherwise` with any other result, of which
    /// [`finish`](Self::finish) takes care.
    #[inline(always)]
    pub(crate) fn push_directly<R>(
        &self,
        message: M,
        queued: impl FnOnce() -> R,
        otherwise: impl FnOnce(Result<Pushed<M>, Refused<M>>) -> R,
    ) -> R {
        self.queue.push_or(message, queued, otherwise)
    }

    /// Accounts for the messages that a push has removed from the queue, or that the full queue drops. The messages are
    /// in no account any more. Returns the error for the sender if the message was refused.
    pub(crate) fn finish(
        pushed: Result<Pushed<M>, Refused<M>>,
        router: &RouterInfo,
    ) -> Result<(), SendError<M>> {
        match pushed {
            Ok(Pushed::Queued) => {}
            Ok(Pushed::Displaced(oldest)) => Self::drop_by_policy(oldest, router),
            Ok(Pushed::Stranded(messages)) => Self::stranded(messages, router),
            Err(Refused::ToDrop(message)) => Self::drop_by_policy(message, router),
            Err(Refused::Full(message)) => return Err(SendError::Full(message)),
            Err(Refused::NoTaker(message)) => return Err(SendError::NoRoutee(message)),
        }
        Ok(())
    }

    /// Counts a message that the full queue drops.
    #[cold]
    fn drop_by_policy(message: M, router: &RouterInfo) {
        router.counters().dropped(1);
        let head = &router.head;
        router.system.dead_letters().publish_dead_letter(message, DeadLetterReason::Dropped, || head.path());
    }

    /// The last routee has left while the message was pushed.
    #[cold]
    fn stranded(messages: Vec<M>, router: &RouterInfo) {
        for message in messages {
            router.system.dead_letter(router.counters(), &router.head, message);
        }
    }
}

impl<M: Send + 'static> RoutingLogic<M> for Balancing<M> {
    /// Never called: [`route`](Self::route) takes every message.
    fn select(&self, _: &M, _: &Routees<M>, _: &RouteContext<'_>) -> Option<usize> {
        None
    }

    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        if routees.is_empty() {
            // Routees that leave empty the queue before they end, so it must not be filled any more.
            return Err(SendError::NoRoutee(message));
        }
        let pushed = self.queue.push(message);
        if let Ok(_) | Err(Refused::ToDrop(_)) = &pushed {
            // The routee that takes the message from the queue accounts for it, or `finish` does.
            cx.forget_open();
        }
        Self::finish(pushed, cx.router())
    }

    /// The load is the length of the queue, and idle only if a routee is idle.
    fn load(&self, routees: &Routees<M>) -> RecipientLoad {
        let queued = self.queue.len();
        match routees.least_load() {
            RecipientLoad::Idle if queued == 0 => RecipientLoad::Idle,
            RecipientLoad::Idle | RecipientLoad::Busy { .. } => RecipientLoad::Busy { queued },
            none => none,
        }
    }

    fn name(&self) -> Option<&str> {
        Some("balancing")
    }
}

impl<M: Send + 'static> fmt::Debug for Balancing<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balancing").field("queued", &self.queue.len()).finish_non_exhaustive()
    }
}
