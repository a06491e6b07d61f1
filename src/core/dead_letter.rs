//! A dead letter, and the reason why no recipient took the message.

use crate::core::error::SendError;
use crate::path::actor_path::ActorPath;
use std::fmt;

/// A message that no recipient took, that a full mailbox dropped, or that its actor did not handle; the
/// [reason](Self::reason) says which. An event; the message itself goes to the
/// [sink](crate::dead_letters::DeadLetters::take) of its type, or is gone.
#[doc(alias = "AnyDeadLetter")]
#[doc(alias = "Dropped")]
#[doc(alias = "Unhandled")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The intended recipient.
    pub recipient: ActorPath,
    /// The name of the message's type.
    pub message_type: &'static str,
    /// The reason why the message was not taken.
    pub reason: DeadLetterReason,
}

/// The reason why a message was not taken.
// Given by `of` from the error of a refusal, but for
//
// * `Stopped` of leftovers: `core/system.rs`
// * `Dropped`: `core/actor_ref.rs`, `routing/balancing.rs`, `pattern/inbox.rs`
// * `Unhandled`: `actor/unhandled.rs`
// * `Expired`: `actor/skip_unwanted.rs`
// * `Panicked`: `core/accounting.rs`
// * `NoActor`: `core/actor_ref.rs`, `routing/path_routee.rs`
// * `OtherType`: `routing/path_routee.rs`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The recipient had stopped, or stopped with the message in its mailbox.
    Stopped,
    /// The mailbox was full and refused, or is on another node, which has told that its actor has too many messages.
    Full,
    /// The mailbox was full and dropped a message by its policy (counted as dropped, not as dead-lettered).
    Dropped,
    /// The actor got the message and did not handle it: [`Context::unhandled`](crate::Context::unhandled). Counted as
    /// handled, not as dead-lettered.
    Unhandled,
    /// The message was unwanted when its turn came, in an actor that [skips](crate::Context::skip_unwanted) such
    /// messages: its asker has gone, or its deadline is over. Counted as skipped, not as dead-lettered.
    Expired,
    /// The router had no routee that took it.
    NoRoutee,
    /// A keyed group's key router named no key for it: [`KeyRoute::Discard`](crate::group::KeyRoute::Discard),
    /// [`KeyRoute::Default`](crate::group::KeyRoute::Default).
    Discarded,
    /// Routers route to each other in a circle: see [`SendError::Cycle`].
    Cycle,
    /// A routing logic named a routee that does not exist.
    BadPick,
    /// A routing logic, an adapter's function or a custom recipient panicked and took the message with it.
    Panicked,
    /// There is no actor at the recipient's path, and there was none when the reference was made.
    NoActor,
    /// The actor at the path that a [group by path](crate::routing::RouterBuilder::group_at) names takes another
    /// type of message.
    OtherType,
    /// The actor is on another node, and too much waits for that node.
    LinkFull,
    /// The actor was on another node, which is gone, or was started again.
    NodeGone,
    /// The message is larger than the limits of this node, or of the other one, allow between nodes.
    TooLarge,
    /// The message, or a part of it, cannot go to another node.
    Unsendable,
    /// It came from another node, and its type is not registered here.
    UnknownType,
    /// It came from another node, and its bytes are no value of its type.
    Undecodable,
    /// It came from another node, and the policy of this node does not let it in.
    NotAllowed,
    /// An answer came from another node after its ask had ended. Counted as [late](crate::ask::ReplyCounts), not as
    /// dead-lettered.
    LateReply,
    /// It came from another node in fragments, since it is large, and not all of them have come, or too many such messages
    /// came at once.
    Incomplete,
}

impl DeadLetterReason {
    /// All reasons, in their order.
    pub(crate) const ALL: [Self; 21] = [
        Self::Stopped,
        Self::Full,
        Self::Dropped,
        Self::Unhandled,
        Self::Expired,
        Self::NoRoutee,
        Self::Discarded,
        Self::Cycle,
        Self::BadPick,
        Self::Panicked,
        Self::NoActor,
        Self::OtherType,
        Self::LinkFull,
        Self::NodeGone,
        Self::TooLarge,
        Self::Unsendable,
        Self::UnknownType,
        Self::Undecodable,
        Self::NotAllowed,
        Self::LateReply,
        Self::Incomplete,
    ];

    pub(crate) fn of<M>(error: &SendError<M>) -> Self {
        match error {
            SendError::Full(_) => DeadLetterReason::Full,
            SendError::Closed(_) => DeadLetterReason::Stopped,
            SendError::NoRoutee(_) | SendError::NoRoute(_) => DeadLetterReason::NoRoutee,
            SendError::Discarded(_) => DeadLetterReason::Discarded,
            SendError::Cycle(_) => DeadLetterReason::Cycle,
            SendError::TooLarge { .. } => DeadLetterReason::TooLarge,
            SendError::Unsendable { .. } => DeadLetterReason::Unsendable,
            SendError::BadPick { .. } => DeadLetterReason::BadPick,
        }
    }
}

/// The message, its recipient, and the reason: `u64 to /user/cache: stopped`.
impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}: {}", self.message_type, self.recipient, self.reason)
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeadLetterReason::Stopped => "stopped",
            DeadLetterReason::Full => "mailbox full",
            DeadLetterReason::Dropped => "dropped by a full mailbox",
            DeadLetterReason::Unhandled => "unhandled",
            DeadLetterReason::Expired => {
                "expired: its asker had gone or its time was over before its turn came; give it more time"
            }
            DeadLetterReason::NoRoutee => "no routee took it",
            DeadLetterReason::Discarded => "discarded by a group's key router",
            DeadLetterReason::Cycle => "routers in a circle",
            DeadLetterReason::BadPick => "routing logic picked a routee that does not exist",
            DeadLetterReason::Panicked => "lost in a panic",
            DeadLetterReason::NoActor => "no actor there",
            DeadLetterReason::OtherType => "the actor there takes another type of message",
            DeadLetterReason::LinkFull => "too much waits for its node",
            DeadLetterReason::NodeGone => "its node is gone",
            DeadLetterReason::TooLarge => "larger than a message to or from another node may be",
            DeadLetterReason::Unsendable => "it cannot go to another node",
            DeadLetterReason::UnknownType => "its type is not registered here: `Node::message` registers it",
            DeadLetterReason::Undecodable => "its bytes are no value of its type",
            DeadLetterReason::NotAllowed => "the policy of this node does not let it in",
            DeadLetterReason::LateReply => "its ask had ended",
            DeadLetterReason::Incomplete => "it is large, and has not come as a whole",
        })
    }
}

/// The path of a recipient without a place in the tree.
pub(crate) fn nowhere() -> ActorPath {
    ActorPath::from_names(["deadLetters".into()].into_iter())
}
