//! The reference of a routee that is a path: it finds the actors there for each message.

use crate::routing::router_info::RouterInfo;
use crate::selection::selection::{Found, Selection};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc as StdArc;

use crate::core::actor_ref::ActorRef;
use crate::core::any_ref::{AnyRef, WrongType};
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SendError;
use crate::core::meaning::{Alike, Meaning};
use crate::core::recipient::{Accepted, Recipient};
use crate::core::system::SystemRef;
use crate::path::actor_path::ActorPath;

/// The reference of the routee of a path, which finds and counts as `info` says.
pub fn path_ref<M: Send + 'static>(path: StdArc<WrittenPath<M>>, info: StdArc<RouterInfo>) -> ActorRef<M> {
    ActorRef::to_own_recipient(PathRecipient { path, info })
}

/// Delivers a copy to each of several actors.
pub type FanOut<M> = fn(&RouterInfo, M, &[ActorRef<M>]);

/// What stands behind the reference of such a routee.
pub(crate) struct PathRecipient<M> {
    path: StdArc<WrittenPath<M>>,
    info: StdArc<RouterInfo>,
}

impl<M: Send + 'static> PathRecipient<M> {
    /// Whom a message goes to now, and where nobody takes it.
    fn find(&self) -> Result<Vec<ActorRef<M>>, Lost> {
        let mut actors = match self.path.selection.resolve() {
            Found::Missing(path) => return Err(Lost::Nobody(path)),
            Found::Actors(actors) => actors,
        };
        if self.path.selection.has_wildcard() {
            actors.retain(|actor| *actor != self.info.head);
        }
        let mut other = None;
        let typed = |actor: AnyRef| actor.typed().map_err(|wrong| other = Some(wrong)).ok();
        let targets: Vec<ActorRef<M>> = actors.into_iter().filter_map(typed).collect();
        match (targets.is_empty(), other) {
            (false, _) => Ok(targets),
            (true, Some(wrong)) => Err(Lost::OtherType(wrong)),
            (true, None) => Err(Lost::Nobody(self.path.selection.path())),
        }
    }

    /// Passes the message on as a copy. It may be one: who sends copies tells the routee so once, and that is the path,
    /// where somebody else may stand by now. So whoever is found by a path is told before each message.
    fn pass_on(target: &ActorRef<M>, message: M) -> Result<Accepted, SendError<M>> {
        target.expect_copies();
        target.pass_on(message)
    }

    fn bury(&self, message: M, reason: DeadLetterReason, path: ActorPath) {
        let system = &self.info.system;
        system.ledger().mine().dead_lettered(1);
        system.dead_letters().bury(message, reason, || path);
    }
}

/// Why nobody is there.
pub(crate) enum Lost {
    Nobody(ActorPath),
    OtherType(WrongType),
}

impl<M: Send + 'static> Recipient<M> for PathRecipient<M> {
    fn deliver(&self, message: M) -> Result<Accepted, SendError<M>> {
        match self.find() {
            Err(Lost::Nobody(path)) => self.bury(message, DeadLetterReason::NoActor, path),
            Err(Lost::OtherType(wrong)) => self.bury(message, DeadLetterReason::OtherType, wrong.path),
            Ok(targets) => match (&*targets, self.path.fan_out) {
                ([_, _, ..], Some(fan_out)) => fan_out(&self.info, message, &targets),
                ([target, ..], _) => match Self::pass_on(target, message) {
                    // It is as if it had gone: the path is taken or not.
                    Err(SendError::Closed(message)) => {
                        self.bury(message, DeadLetterReason::Stopped, target.path());
                    }
                    done => return done,
                },
                ([], _) => unreachable!("somebody was found"),
            },
        }
        Ok(Accepted::Passed)
    }

    /// Who is there now, if it can only be one.
    fn any(&self) -> Option<AnyRef> {
        match self.path.selection.resolve() {
            Found::Actors(mut actors) if !self.path.selection.has_wildcard() => actors.pop(),
            _ => None,
        }
    }

    fn system(&self) -> Option<SystemRef> {
        Some(SystemRef::new(self.info.system.clone()))
    }

    fn meaning(&self) -> Option<&dyn Meaning> {
        Some(self)
    }
}

/// One path of one router is one place.
impl<M: 'static> Alike for PathRecipient<M> {
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

/// A path as it was written, and what it selects.
pub(crate) struct WrittenPath<M> {
    pub selection: Selection,
    /// What hash rings know it by.
    pub text: Box<str>,
    /// There if the selection may have wildcards.
    pub fan_out: Option<FanOut<M>>,
}
