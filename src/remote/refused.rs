//! The reason why an ask of another node gets no reply, as it is written.

use crate::ask::error::{AskError, NoReplyCause, RefusedBy};
use crate::core::dead_letter::DeadLetterReason;
use crate::sync::per_thread;
use crate::util::panic::quietly;
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// The reason why a port is refused, as it is written. New reasons come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refused {
    Failed,
    Ignored,
    Unread,
    Stopped,
    Full,
    NoRoutees,
    NoActor,
    WrongType,
    UnknownType,
    Undecodable,
    NotAllowed,
    ReplyTooLarge,
    Unsendable,
    PeerGone,
    LinkFull,
    TooLarge,
    Incomplete,
    ReplyIncomplete,
    /// The parts of the port have brought all answers.
    Parted,
}

per_thread! {
    /// The reason for which the message that is dropped now was refused.
    static REFUSAL: Cell<Option<Refused>> = Cell::new(None);
}

/// Drops a message by `drop_it`, which was refused for this reason: the asks in it end so.
pub(crate) fn refusing(reason: DeadLetterReason, drop_it: impl FnOnce()) {
    let refused = match reason {
        DeadLetterReason::Full => Refused::Full,
        DeadLetterReason::Stopped => Refused::Stopped,
        DeadLetterReason::NoActor => Refused::NoActor,
        DeadLetterReason::NoRoutee => Refused::NoRoutees,
        _ => return drop_it(),
    };
    let outer = REFUSAL.try_with(|refusal| refusal.replace(Some(refused))).unwrap_or(None);
    quietly(drop_it);
    let _ = REFUSAL.try_with(|refusal| refusal.set(outer));
}

impl Refused {
    pub(crate) fn of(error: &AskError) -> Self {
        match error {
            AskError::NoReply { cause: NoReplyCause::Unread, .. } => {
                REFUSAL.try_with(Cell::get).ok().flatten().unwrap_or(Self::Unread)
            }
            AskError::NoReply { cause: NoReplyCause::Failed, .. } | AskError::AllFailed { .. } => {
                Self::Failed
            }
            AskError::Undeliverable { reason: DeadLetterReason::Full, .. } => Self::Full,
            AskError::Undeliverable { reason: DeadLetterReason::NoActor, .. } => Self::NoActor,
            AskError::Undeliverable { reason: DeadLetterReason::TooLarge, .. } => Self::TooLarge,
            AskError::Undeliverable { reason: DeadLetterReason::Incomplete, .. } => Self::Incomplete,
            AskError::PeerGone { .. }
            | AskError::Undeliverable { reason: DeadLetterReason::NodeGone, .. } => Self::PeerGone,
            AskError::Undeliverable { .. } => Self::Stopped,
            AskError::NoRoutees { .. } => Self::NoRoutees,
            AskError::Refused { by, .. } => match by {
                RefusedBy::WrongType => Self::WrongType,
                RefusedBy::UnknownType => Self::UnknownType,
                RefusedBy::NotAllowed => Self::NotAllowed,
                RefusedBy::ReplyTooLarge => Self::ReplyTooLarge,
                RefusedBy::ReplyUnsendable => Self::Unsendable,
                RefusedBy::Undecodable => Self::Undecodable,
                RefusedBy::LinkFull => Self::LinkFull,
                RefusedBy::ReplyIncomplete => Self::ReplyIncomplete,
            },
            _ => Self::Ignored,
        }
    }

    /// The error of the ask.
    pub(crate) fn error(self) -> AskError {
        let no_reply = |cause| AskError::NoReply { cause, target: None };
        match self {
            Self::Failed => no_reply(NoReplyCause::Failed),
            // Without parts there is no answer.
            Self::Ignored | Self::Parted => no_reply(NoReplyCause::Ignored),
            Self::Unread => no_reply(NoReplyCause::Unread),
            Self::Stopped => AskError::refused_for(DeadLetterReason::Stopped),
            Self::Full => AskError::refused_for(DeadLetterReason::Full),
            Self::NoActor => AskError::refused_for(DeadLetterReason::NoActor),
            Self::NoRoutees => AskError::no_routees(),
            Self::WrongType => AskError::refused_by(RefusedBy::WrongType),
            Self::UnknownType => AskError::refused_by(RefusedBy::UnknownType),
            Self::Undecodable => AskError::refused_by(RefusedBy::Undecodable),
            Self::NotAllowed => AskError::refused_by(RefusedBy::NotAllowed),
            Self::ReplyTooLarge => AskError::refused_by(RefusedBy::ReplyTooLarge),
            Self::Unsendable => AskError::refused_by(RefusedBy::ReplyUnsendable),
            Self::PeerGone => AskError::PeerGone { target: None },
            Self::LinkFull => AskError::refused_by(RefusedBy::LinkFull),
            Self::TooLarge => AskError::refused_for(DeadLetterReason::TooLarge),
            Self::Incomplete => AskError::refused_for(DeadLetterReason::Incomplete),
            Self::ReplyIncomplete => AskError::refused_by(RefusedBy::ReplyIncomplete),
        }
    }
}
