//! Control messages, which govern an actor's life. They travel on the system lane of its mailbox.

use crate::core::any_actor_ref::AnyActorRef;
use crate::failure::Failure;
use std::any::Any;

/// What governs an actor's life. Travels on the system lane.
pub enum Control {
    /// End now: the rest of the mailbox becomes dead letters.
    Stop,
    /// End now if there is nothing left to handle; otherwise do nothing.
    Retire,
    /// Handle no messages until resumed; nests.
    Suspend,
    /// Undoes one `Suspend` or one failure.
    Resume {
        /// Whether the failure of this very actor is what was judged.
        judged: bool,
    },
    /// Make a new state; the failure is what led to it.
    Restart(Failure),
    /// A child has failed and waits for a verdict.
    ChildFailed { child: AnyActorRef, failure: Failure },
    /// A child has ended; these watch it and are to be told, if it is not to tell them itself.
    ChildStopped { child: AnyActorRef, watchers: Box<[AnyActorRef]> },
    /// Tell this actor when you end.
    Watch(AnyActorRef),
    /// Don't.
    Unwatch(AnyActorRef),
    /// Watch this actor, as if by `Context::watch`.
    Adopt(AnyActorRef),
    /// There is something to do that only the actor itself knows of.
    Wakeup,
    /// Positioned: a watched actor has ended.
    Terminated(Terminated),
    /// Positioned: end, once everything before it is handled.
    PoisonPill,
    /// Positioned: fail.
    Kill,
    /// Positioned: a timer of this number has fired.
    Tick(u64),
    /// Leave a router (a [`Leave<M>`](crate::core::recipient::Leave)); see [`Leaving`] for the position.
    Leave { leave: Box<dyn Any + Send>, leaving: Leaving },
    /// Positioned: the end of one that leaves, where its mailbox was closed.
    HasLeft,
    /// Positioned: say who you are.
    Identify(Box<dyn Inquiry>),
    /// Positioned: run this on the state, a `Box<Act<A>>` of `actor/turn.rs`. For the engine's own actors.
    Apply(Box<dyn Any + Send>),
}

impl Control {
    /// Whether it waits in the queue as a message does: a timer's tick, the notice of an end.
    pub fn is_notice(&self) -> bool {
        matches!(self, Control::Tick(_) | Control::Terminated(_))
    }
}

/// A question for an actor's reference. Dropped before it is answered, it says that there is no actor.
pub trait Inquiry: Send {
    /// The actor is there.
    fn answer(self: Box<Self>, actor: AnyActorRef);
}

/// How an actor leaves a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// Positioned: it takes no more messages from there on, and ends once it has handled those that it has.
    AtPosition,
    /// Immediate: it takes no more messages, and ends once it has handled those that it has.
    AtOnce,
    /// Positioned: it gets the farewell, and ends when it thinks fit.
    ByItself,
}

/// The notice that a watched actor has ended for good (a restart is no end).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Terminated {
    /// Who has ended.
    pub actor: AnyActorRef,
    /// Whether it was alive when the watch began: false when it had ended before.
    pub existence_confirmed: bool,
}
