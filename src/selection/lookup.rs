//! A look-up finds an actor by its path, and never creates an actor.

use crate::actor::context::Context;
use crate::ask::error::AskError;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::{AnyActorRef, WrongType};
use crate::core::system::{SystemCore, SystemRef};
use crate::path::actor_path::{ActorPath, Name};
use crate::path::error::{PathError, PathFault};
use crate::selection::empty_ref::DEAD_LETTERS;
#[cfg(feature = "remote")]
use crate::selection::place_elsewhere::PlaceElsewhere;
use crate::selection::selection::Selection;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::sync::Arc as StdArc;

impl SystemRef {
    /// Returns the actor that is now at a path. A relative path begins at the root: `user/cache` is `/user/cache`. A
    /// path that ends with `#` and a uid means only that incarnation. The actor at the path of a router is its head;
    /// [`typed_at`](Self::typed_at) returns the reference that routes.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Idle;
    /// # impl Actor for Idle {
    /// #     type Message = u32;
    /// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let cache = system.actor("cache").spawn(|| Idle)?;
    /// assert_eq!(system.typed_at::<u32>("/user/cache")?, cache);
    /// assert!(system.actor_at("/user/till").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LookupError`] if the text is no path, the path is in another system, or no actor is there.
    #[doc(alias = "where_is")]
    #[doc(alias = "lookup")]
    pub fn actor_at(&self, path: &str) -> Result<AnyActorRef, LookupError> {
        let root = ActorPath::from_names(std::iter::empty());
        self.core().actor_at(&root.join(path)?)
    }

    /// As [`actor_at`](Self::actor_at), but returns the reference that takes `M`: the actor's, or the reference of a
    /// router that routes `M`.
    ///
    /// # Errors
    ///
    /// [`LookupError`], also when the actor takes another type of message; the error names both.
    pub fn typed_at<M: Send + 'static>(&self, path: &str) -> Result<ActorRef<M>, LookupError> {
        Ok(self.actor_at(path)?.typed()?)
    }
}

impl<M: Send + 'static> Context<M> {
    /// Returns the actor that is now at a path. A relative path begins at this actor: `../sibling`, or `child`.
    /// Otherwise as [`SystemRef::actor_at`].
    ///
    /// # Errors
    ///
    /// [`LookupError`].
    pub fn actor_at(&self, path: &str) -> Result<AnyActorRef, LookupError> {
        self.core().system.actor_at(&self.path().join(path)?)
    }

    /// As [`actor_at`](Self::actor_at), but returns the reference that takes `N`.
    ///
    /// # Errors
    ///
    /// [`LookupError`], also when the actor takes another type of message; the error names both.
    pub fn typed_at<N: Send + 'static>(&self, path: &str) -> Result<ActorRef<N>, LookupError> {
        Ok(self.actor_at(path)?.typed()?)
    }
}

impl SystemCore {
    pub(crate) fn actor_at(self: &StdArc<Self>, path: &ActorPath) -> Result<AnyActorRef, LookupError> {
        self.check_address(path)?;
        let nobody = || LookupError::NoActor { path: path.clone() };
        let mut at = self.tree().ok_or_else(nobody)?.root;
        for name in path.elements() {
            at = self.child_of(&at, name).ok_or_else(nobody)?;
        }
        match path.uid() {
            Some(wanted) if wanted != at.uid() => {
                Err(LookupError::OtherIncarnation { path: path.clone(), found: at.uid() })
            }
            // The actor has ended, and its parent has not heard of the end yet.
            _ if at.is_closed() && !at.core().is_empty_ref() => Err(nobody()),
            _ => Ok(at),
        }
    }

    /// The place at another node to which a path leads, below a child there.
    #[cfg(feature = "remote")]
    pub(crate) fn place_elsewhere(self: &StdArc<Self>, path: &ActorPath) -> Option<PlaceElsewhere> {
        let names: Vec<&str> = path.elements().collect();
        let mut at = self.tree()?.root;
        for (index, name) in names.iter().enumerate() {
            let rest = names[index..].iter().map(ToString::to_string);
            if let Some(mut place) = PlaceElsewhere::below(&at, rest) {
                if let Some(uid) = path.uid() {
                    place.text.push_str(&format!("#{uid}"));
                }
                return Some(place);
            }
            at = self.child_of(&at, name)?;
        }
        None
    }

    /// Checks that a path is in this system.
    pub(crate) fn check_address(&self, path: &ActorPath) -> Result<(), PathError> {
        match path.address() {
            Some(address) if !self.is_own_address(address) => {
                Err(PathError::new(&path.to_string(), &address.to_string(), 0, PathFault::Elsewhere))
            }
            _ => Ok(()),
        }
    }

    /// Returns the child of this name. The root has `/deadLetters` in addition, which is no actor.
    pub(crate) fn child_of(self: &StdArc<Self>, parent: &AnyActorRef, name: &str) -> Option<AnyActorRef> {
        let core = parent.core();
        let is_root = core.parent.is_none() && !matches!(core.name(), Name::EmptyRef(_));
        if is_root && name == DEAD_LETTERS {
            return Some(self.dead_letters_any());
        }
        core.children.get(name)
    }
}

/// A path leads to no actor, or not to a single one, or a selection to none that answers.
#[doc(alias("ActorNotFound", "WildcardError"))]
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// The text is no path, or a path in another system.
    Path(PathError),
    /// No actor is at the path, or the actor there has ended.
    NoActor {
        /// The path.
        path: ActorPath,
    },
    /// The actor at the path is another incarnation than the requested one.
    OtherIncarnation {
        /// The path with the requested uid.
        path: ActorPath,
        /// The uid of the actor that is there.
        found: u32,
    },
    /// The actor takes another type of message than the requested one.
    WrongType(WrongType),
    /// No actor has answered a [request](crate::selection::Selection::resolve_one) for its reference.
    NoAnswer {
        /// The path of the selection, with its wildcards.
        path: ActorPath,
        /// The cause. [`Timeout`](AskError::Timeout): the actors there did not get to the request in time.
        /// [`Undeliverable`](AskError::Undeliverable): the system has ended.
        cause: AskError,
    },
    /// The selection has a wildcard, and stands in the place of a single actor: see
    /// [`Routee::selected_one`](crate::routing::Routee::selected_one).
    Wildcard {
        /// The selection.
        selection: Selection,
    },
}

impl LookupError {
    /// The error of a request for the reference of an actor at `path`.
    pub(crate) fn unanswered(path: ActorPath, cause: AskError) -> Self {
        match cause {
            AskError::NoReply { .. } => LookupError::NoActor { path },
            cause => LookupError::NoAnswer { path, cause },
        }
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::Path(error) => error.fmt(f),
            LookupError::NoActor { path } => {
                write!(f, "no actor at {path}: create it first, or check the names")
            }
            LookupError::OtherIncarnation { path, found } => write!(
                f,
                "the actor at {path} has uid {found}: the incarnation {} has ended",
                path.serialized()
            ),
            LookupError::WrongType(error) => error.fmt(f),
            LookupError::NoAnswer { path, cause: AskError::Timeout { after, .. } } => {
                write!(f, "no actor at {path} answered within {after:?}: it is busy or suspended")
            }
            LookupError::NoAnswer { path, cause: AskError::Undeliverable { .. } } => {
                write!(f, "no actor at {path}: the system has ended")
            }
            LookupError::NoAnswer { path, cause } => write!(f, "no actor at {path} found: {cause}"),
            LookupError::Wildcard { selection } => write!(
                f,
                "{selection} has a wildcard, so that each message may need copies: name one actor, or use \
                 `Routee::selected`, for which the message must be `Clone`"
            ),
        }
    }
}

impl std::error::Error for LookupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LookupError::Path(error) => Some(error),
            LookupError::WrongType(error) => Some(error),
            LookupError::NoAnswer { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

debug_by_display! { LookupError }

impl From<PathError> for LookupError {
    fn from(error: PathError) -> Self {
        LookupError::Path(error)
    }
}

impl From<WrongType> for LookupError {
    fn from(error: WrongType) -> Self {
        LookupError::WrongType(error)
    }
}
