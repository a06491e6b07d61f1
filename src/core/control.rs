//! Control messages, which govern an actor's life. They travel in the system queue of its mailbox.

use crate::core::any_actor_ref::AnyActorRef;
use crate::failure::Failure;
use std::any::Any;

/// A control message. It travels in the system queue.
pub(crate) enum Control {
    /// End now: the rest of the mailbox becomes dead letters.
    Stop,
    /// End now if there is nothing left to handle; otherwise do nothing.
    Retire,
    /// Handle no messages until resumed; nests.
    Suspend,
    /// Undoes one `Suspend` or one failure.
    Resume {
        /// Whether the verdict is on the failure of this very actor.
        judged: bool,
    },
    /// Make a new state; the failure is the cause.
    Restart(Failure),
    /// A child has failed and waits for a verdict.
    ChildFailed { child: AnyActorRef, failure: Failure },
    /// A child has ended. The parent tells these watchers, if the child does not tell them itself.
    ChildStopped { child: AnyActorRef, watchers: Box<[AnyActorRef]> },
    /// Tell this actor when you end.
    Watch(AnyActorRef),
    /// Do not tell this actor when you end.
    Unwatch(AnyActorRef),
    /// Watch this actor, as if by `Context::watch`.
    Adopt(AnyActorRef),
    /// There is work that only the actor itself knows of.
    Wakeup,
    /// Positioned: a watched actor has ended.
    Terminated(Terminated),
    /// Positioned: end, once all messages before it are handled.
    PoisonPill,
    /// Positioned: fail.
    Kill,
    /// Positioned: a timer of this number has fired.
    Tick(u64),
    /// Positioned: poll the task of this number.
    Poll(u64),
    /// Leave a router (a [`Leave<M>`](crate::core::recipient::Leave)); see [`Leaving`] for the position.
    Leave { leave: Box<dyn Any + Send>, leaving: Leaving },
    /// Positioned: the end of an actor that leaves, at the close of its mailbox.
    HasLeft,
    /// Positioned: answer with your reference.
    Identify(Box<dyn Inquiry>),
    /// Positioned: run this on the state, a `Box<Act<A>>` of `actor/turn.rs`. For the engine's own actors.
    Apply(Box<dyn Any + Send>),
}

impl Control {
    /// Returns whether it waits in the queue as a message does: a timer's tick, or a termination notice.
    pub(crate) fn is_notice(&self) -> bool {
        matches!(self, Control::Tick(_) | Control::Terminated(_))
    }
}

/// A question for an actor's reference. If it is dropped before it is answered, the answer is that there is no actor.
pub(crate) trait Inquiry: Send {
    /// Answers that the actor exists.
    fn answer(self: Box<Self>, actor: AnyActorRef);
}

/// The way in which an actor leaves a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Positioned: the actor takes no more messages from there on, and ends once it has handled its accepted messages.
    AtPosition,
    /// Immediate: the actor takes no more messages, and ends once it has handled its accepted messages.
    AtOnce,
    /// Positioned: the actor gets the farewell, and stops itself when it decides to.
    ByItself,
}

/// The notice that a watched actor has ended for good (a restart is no end).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Terminated {
    /// The actor that has ended.
    pub actor: AnyActorRef,
    /// Whether the actor was alive when the watch began; false when it had ended before.
    pub existence_confirmed: bool,
    /// Whether the node of the actor is gone, or is not heard any more: the actor itself may live on.
    pub node_down: bool,
}
