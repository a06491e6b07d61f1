//! Paths that go on at another node: those below a child that its parent here has made there.

use crate::core::any_actor_ref::AnyActorRef;
#[cfg(feature = "remote")]
use crate::path::canonical_path::check_canonical_selection;

/// A place at another node, which a path leads to that begins here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nodes alone have such places"))]
pub(crate) struct PlaceElsewhere {
    pub(crate) node: String,
    /// The path there, which may have wildcards.
    pub(crate) text: String,
}

impl PlaceElsewhere {
    /// The place to which these names lead from an actor. `None` if the actor runs here, or the names have no form in which they go to
    /// another node: `..` has none.
    #[cfg(feature = "remote")]
    pub(crate) fn below(actor: &AnyActorRef, names: impl Iterator<Item = String>) -> Option<Self> {
        let standing = actor.core().standing().filter(|standing| standing.is_child)?;
        let node = standing.path.address()?.node_name()?.to_owned();
        let mut text = standing.path.as_str().to_owned();
        for name in names {
            text.push('/');
            text.push_str(&name);
        }
        check_canonical_selection(&text).ok()?;
        Some(Self { node, text })
    }

    /// All actors run here.
    #[cfg(not(feature = "remote"))]
    pub(crate) fn below(_: &AnyActorRef, _: impl Iterator<Item = String>) -> Option<Self> {
        None
    }
}
