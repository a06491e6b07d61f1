//! The published table of routees.

use crate::actor::{Found, Selection};
use crate::actor_ref::{ActorRef, AnyRef, Load};
use std::any::Any;
use std::fmt;
use std::sync::Arc as StdArc;

/// One destination of a router.
pub struct Routee<M> {
    actor: ActorRef<M>,
    identity: Box<str>,
    /// It is a path, and this is whoever stands there.
    place: Option<Box<Selection>>,
}

/// The routees of a router at one moment, and what its logic looks up in them.
pub struct Routees<M> {
    list: StdArc<[Routee<M>]>,
    index: Option<Box<dyn Any + Send + Sync>>,
    /// Counts the tables that this router has published.
    version: u64,
}

impl<M: Send + 'static> Routee<M> {
    pub(super) fn new(actor: ActorRef<M>) -> Self {
        let identity = actor.path().as_str().into();
        Self { actor, identity, place: None }
    }

    /// Whoever stands at a path when a message is sent.
    pub(super) fn at(place: Selection, identity: &str, actor: ActorRef<M>) -> Self {
        Self { actor, identity: identity.into(), place: Some(Box::new(place)) }
    }

    /// The actor whose end takes it out of the table; none behind a path or a function.
    pub(super) fn watched(&self) -> Option<AnyRef> {
        if self.place.is_some() { None } else { self.actor.any() }
    }

    /// Whom control that is meant for this routee is sent to.
    pub(super) fn actors(&self) -> Vec<AnyRef> {
        match self.place.as_ref().map(|place| place.resolve()) {
            Some(Found::Actors(actors)) => actors,
            Some(Found::Missing(_)) => Vec::new(),
            None => self.actor.any().into_iter().collect(),
        }
    }

    /// The reference to it.
    #[inline]
    pub fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// What it is known by on hash rings: its path, without the number of its incarnation; in a
    /// [group by path](super::RouterBuilder::group_at) the path as it was written.
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

impl<M: Send + 'static> Routees<M> {
    pub(super) fn new(list: Vec<Routee<M>>, index: Option<Box<dyn Any + Send + Sync>>, version: u64) -> Self {
        Self { list: list.into(), index, version }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The routee of this index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Routee<M>> {
        self.list.get(index)
    }

    /// How much the routee of this index has to do; closed if there is none.
    #[inline]
    pub fn load(&self, index: usize) -> Load {
        self.list.get(index).map_or(Load::Closed, |routee| routee.actor.load())
    }

    /// How much the one with the least to do has to do; closed if there are none.
    pub(super) fn least_load(&self) -> Load {
        let loads = self.iter().map(|routee| routee.actor.load());
        loads.min_by_key(|load| load.rank()).unwrap_or(Load::Closed)
    }

    /// All of them, in the order of the table.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Routee<M>> {
        self.list.iter()
    }

    /// All of them, to be kept after the message's way through the router has ended. Taking and dropping it
    /// each cost a read-modify-write that the router's other senders share.
    pub fn share(&self) -> StdArc<[Routee<M>]> {
        self.list.clone()
    }

    /// What the logic's [`index`](super::RoutingLogic::index) made for this table.
    #[inline]
    pub fn index<T: 'static>(&self) -> Option<&T> {
        self.index.as_deref().and_then(|index| index.downcast_ref())
    }

    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.version
    }
}

impl<M> Clone for Routee<M> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone(), identity: self.identity.clone(), place: self.place.clone() }
    }
}

impl<M: Send + 'static> fmt::Debug for Routee<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Routee({})", self.identity)
    }
}

impl<M: Send + 'static> fmt::Debug for Routees<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter()).finish()
    }
}
