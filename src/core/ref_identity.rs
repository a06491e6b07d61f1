//! Reference identity: it tells which references mean the same recipient.
//!
//! Most references are compared by the address that they point to: an actor's cell, a router's entrance, a function.
//! Some are made anew for each request, and mean the same recipient nevertheless:
//!
//! | reference | means the same as another reference |
//! |---|---|
//! | an empty reference | of the same path, system and type of message |
//! | an adapter | of the same target, by a function of the same type that has captured nothing |
//! | to a key of a group | of the same group and an equal key |
//! | to a routee that is a path | of the same router and path |
//! | to a routee of several | of equal parts in the same order |
//! | to no routee | of the same type of message |
//!
//! These compare by a [`RecipientIdentity`], all others by address. A message's way uses none of this.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{ActorCore, Header, Kind, Referent};
use crate::core::dead_letter::nowhere;
use crate::core::recipient_identity::{RecipientIdentity, SameRecipient};
use crate::path::actor_path::ActorPath;
use std::any::{Any, TypeId};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;

impl<T: SameRecipient> RecipientIdentity for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_same(&self, other: &dyn RecipientIdentity) -> bool {
        other.as_any().downcast_ref().is_some_and(|other| self.is_like(other))
    }

    fn hash(&self, mut state: &mut dyn Hasher) {
        TypeId::of::<T>().hash(&mut state);
        self.feed(state);
    }

    fn order(&self, other: &dyn RecipientIdentity) -> Ordering {
        match other.as_any().downcast_ref() {
            Some(other) => SameRecipient::order(self, other),
            None => TypeId::of::<T>().cmp(&other.as_any().type_id()),
        }
    }
}

/// The target of a reference, to be compared.
#[derive(Clone, Copy)]
pub(crate) struct Pointee<'a>(NonNull<Header>, PhantomData<&'a Header>);

impl<'a> Pointee<'a> {
    /// # Safety
    ///
    /// A reference to the target that begins with this header is kept for as long as `'a`.
    pub(crate) unsafe fn new(header: NonNull<Header>) -> Self {
        Self(header, PhantomData)
    }

    fn header(self) -> &'a Header {
        // SAFETY: by `new` the allocation lives.
        unsafe { self.0.as_ref() }
    }

    /// The core of an actor, or of an empty reference.
    pub(crate) fn core(self) -> Option<&'a ActorCore> {
        let Header { kind: Kind::Local, vtable, .. } = self.header() else { return None };
        // SAFETY: by `new` the cell lives; the vtable of a local cell tells where its core lies.
        Some(unsafe { self.0.byte_add(vtable.core_offset).cast::<ActorCore>().as_ref() })
    }

    fn referent(self) -> Option<&'a dyn Referent> {
        let referent = self.header().vtable.referent?;
        // SAFETY: the function is that of this header's vtable, and by `new` the allocation lives.
        Some(unsafe { referent(self.0).as_ref() })
    }

    /// The core of an empty reference, which has no cell of its own to be compared by.
    fn empty_ref_core(self) -> Option<&'a ActorCore> {
        self.core().filter(|core| core.is_empty_ref())
    }

    fn meaning(self) -> Option<&'a dyn RecipientIdentity> {
        self.referent()?.meaning()
    }

    fn message_type(self) -> TypeId {
        (self.header().vtable.message_type)()
    }

    /// Returns whether both mean the same recipient.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.0 == other.0 || self.is_same_elsewhere(other)
    }

    #[inline(never)]
    fn is_same_elsewhere(self, other: Self) -> bool {
        if let (Some(one), Some(two)) = (self.empty_ref_core(), other.empty_ref_core()) {
            let (path, other_path) = (one.path(), two.path());
            return StdArc::ptr_eq(&one.system, &two.system)
                && self.message_type() == other.message_type()
                && path == other_path
                && path.uid() == other_path.uid();
        }
        match (self.meaning(), other.meaning()) {
            (Some(one), Some(two)) => one.is_same(two),
            _ => false,
        }
    }

    pub(crate) fn hash(self, state: &mut impl Hasher) {
        match (self.empty_ref_core(), self.meaning()) {
            (Some(nobody), _) => nobody.path().hash(state),
            (None, Some(meaning)) => meaning.hash(state),
            (None, None) => self.0.hash(state),
        }
    }

    /// The actor behind the reference, if that is the same for as long as the target exists.
    pub(crate) fn place(self) -> Option<AnyActorRef> {
        match self.core() {
            // SAFETY: the header of a local actor's cell, which lives by `new`.
            Some(_) => Some(unsafe { AnyActorRef::retain(self.0) }),
            None => self.referent()?.place(),
        }
    }

    /// Compares by path and uid, if there is an actor, and then by identity. Only references that mean the same
    /// recipient are equal.
    pub(crate) fn order(self, other: Self) -> Ordering {
        if self.is_same(other) {
            return Ordering::Equal;
        }
        let by_path = || {
            let place = |at: Self| -> (ActorPath, u32, usize) {
                at.place().map_or_else(
                    || (nowhere(), 0, 0),
                    |any| {
                        let (path, core) = (any.path(), any.core());
                        let uid = path.uid().unwrap_or(core.uid);
                        (path, uid, StdArc::as_ptr(&core.system) as usize)
                    },
                )
            };
            place(self).cmp(&place(other))
        };
        let by_meaning = || match (self.meaning(), other.meaning()) {
            (Some(one), Some(two)) => one.order(two),
            (one, two) => one.is_some().cmp(&two.is_some()),
        };
        by_path()
            .then_with(|| (self.header().kind as u8).cmp(&(other.header().kind as u8)))
            .then_with(|| self.message_type().cmp(&other.message_type()))
            .then_with(by_meaning)
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl<M> ActorRef<M> {
    #[inline]
    fn pointee(&self) -> Pointee<'_> {
        // SAFETY: this reference keeps the allocation alive.
        unsafe { Pointee::new(self.0) }
    }

    /// The actor behind the reference, if that is the same for as long as the reference exists.
    pub(crate) fn place(&self) -> Option<AnyActorRef> {
        self.pointee().place()
    }
}

impl<M> PartialEq for ActorRef<M> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.pointee().is_same(other.pointee())
    }
}

impl<M> Eq for ActorRef<M> {}

impl<M> Hash for ActorRef<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pointee().hash(state);
    }
}

impl<M> Ord for ActorRef<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pointee().order(other.pointee())
    }
}

impl<M> PartialOrd for ActorRef<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl AnyActorRef {
    #[inline]
    fn pointee(&self) -> Pointee<'_> {
        // SAFETY: the reference keeps the cell alive.
        unsafe { Pointee::new(self.0) }
    }
}

impl PartialEq for AnyActorRef {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.pointee().is_same(other.pointee())
    }
}

impl Eq for AnyActorRef {}

impl Hash for AnyActorRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Not the address, which differs between two executions of one model.
        self.uid().hash(state);
    }
}

impl Ord for AnyActorRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pointee().order(other.pointee())
    }
}

impl PartialOrd for AnyActorRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
