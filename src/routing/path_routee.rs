//! The reference of a routee that is a path: it finds the actors there for each message.

use crate::routing::router_info::RouterInfo;
use crate::selection::selection::{Found, Selection};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc as StdArc;

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::{AnyActorRef, WrongType};
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::recipient_identity::{RecipientIdentity, SameRecipient};
use crate::core::system::SystemRef;
use crate::path::actor_path::ActorPath;
use crate::sync::OnceLock;

/// The reference of the routee of a path, which finds and counts as `info` says.
pub(crate) fn path_ref<M: Send + 'static>(
    path: StdArc<WrittenPath<M>>,
    info: StdArc<RouterInfo>,
) -> ActorRef<M> {
    ActorRef::to_own_recipient(PathRecipient { path, info })
}

/// Delivers a copy to each of several actors.
pub(crate) type FanOut<M> = fn(&RouterInfo, M, &[ActorRef<M>]);

/// The recipient behind the reference of such a routee.
pub(crate) struct PathRecipient<M> {
    path: StdArc<WrittenPath<M>>,
    info: StdArc<RouterInfo>,
}

impl<M: Send + 'static> PathRecipient<M> {
    /// Returns the actors that a message goes to now, or the reason why there is none.
    fn find(&self) -> Result<Vec<ActorRef<M>>, PathLookupFailure> {
        if let Some(elsewhere) = self.path.elsewhere.get_or_init(|| self.path.selection.elsewhere()) {
            return Ok(vec![elsewhere.clone()]);
        }
        let (mut actors, elsewhere) = match self.path.selection.resolve() {
            Found::Missing(path) => return Err(PathLookupFailure::NoActor(path)),
            Found::Actors { here, elsewhere } => (here, elsewhere),
        };
        if self.path.selection.has_wildcard() {
            actors.retain(|actor| *actor != self.info.head);
        }
        let mut other = None;
        let typed = |actor: AnyActorRef| actor.typed().map_err(|wrong| other = Some(wrong)).ok();
        let mut targets: Vec<ActorRef<M>> = actors.into_iter().filter_map(typed).collect();
        targets.extend(elsewhere.iter().map(|place| self.path.selection.reference_to(place)));
        match (targets.is_empty(), other) {
            (false, _) => Ok(targets),
            (true, Some(wrong)) => Err(PathLookupFailure::OtherType(wrong)),
            (true, None) => Err(PathLookupFailure::NoActor(self.path.selection.path())),
        }
    }

    /// Passes the message on as a copy. A sender of copies announces them to the routee once. Here the routee is the
    /// path, and another actor may stand at the path by now. So each actor that the path finds is told before each
    /// message.
    fn pass_on(target: &ActorRef<M>, message: M) -> Result<DeliveryStatus, SendError<M>> {
        target.expect_copies();
        target.forward_counted(message)
    }

    fn refuse_at_path(&self, message: M, reason: DeadLetterReason, path: ActorPath) {
        let system = &self.info.system;
        system.ledger().for_this_thread().dead_lettered(1);
        system.dead_letters().publish_dead_letter(message, reason, || path);
    }
}

/// The reason why a path found no actor.
pub(crate) enum PathLookupFailure {
    NoActor(ActorPath),
    OtherType(WrongType),
}

impl<M: Send + 'static> OwnRecipient<M> for PathRecipient<M> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        match self.find() {
            Err(PathLookupFailure::NoActor(path)) => {
                self.refuse_at_path(message, DeadLetterReason::NoActor, path)
            }
            Err(PathLookupFailure::OtherType(wrong)) => {
                self.refuse_at_path(message, DeadLetterReason::OtherType, wrong.path)
            }
            Ok(targets) => match (&*targets, self.path.fan_out) {
                ([_, _, ..], Some(fan_out)) => fan_out(&self.info, message, &targets),
                ([target, ..], _) => match Self::pass_on(target, message) {
                    // The same outcome as if the actor had gone: either an actor at the path takes the message, or none
                    // does.
                    Err(SendError::Closed(message)) => {
                        self.refuse_at_path(message, DeadLetterReason::Stopped, target.path());
                    }
                    done => return done,
                },
                ([], _) => unreachable!("an actor was found"),
            },
        }
        Ok(DeliveryStatus::Passed)
    }

    /// Returns the actor at the path now, if the path can only stand for a single actor.
    fn untyped(&self) -> Option<AnyActorRef> {
        match self.path.selection.resolve() {
            Found::Actors { mut here, .. } if !self.path.selection.has_wildcard() => here.pop(),
            _ => None,
        }
    }

    fn system(&self) -> Option<SystemRef> {
        Some(SystemRef::new(self.info.system.clone()))
    }

    fn meaning(&self) -> Option<&dyn RecipientIdentity> {
        Some(self)
    }
}

/// The same path of the same router is the same recipient.
impl<M: 'static> SameRecipient for PathRecipient<M> {
    fn is_like(&self, other: &Self) -> bool {
        self.path.selection == other.path.selection && self.info.head == other.info.head
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        self.path.selection.hash(&mut state);
    }

    fn order(&self, other: &Self) -> Ordering {
        self.info.head.cmp(&other.info.head).then_with(|| self.path.selection.order(&other.path.selection))
    }
}

/// A path as it was written, and the actors that it selects.
pub(crate) struct WrittenPath<M> {
    pub selection: Selection,
    /// The identity on hash rings.
    pub text: Box<str>,
    /// There if the selection may have wildcards.
    pub fan_out: Option<FanOut<M>>,
    /// The reference to the actors at another node, if they are at one; made with the first message.
    pub elsewhere: OnceLock<Option<ActorRef<M>>>,
}
