//! The children of a parent: their references and names, and whether the parent accepts more.
//!
//! A lock guards the list, since any thread may create an actor. It is taken at creation, termination and look-up only,
//! never for a message.

use crate::path::actor_path::{Name, generated_number};
use crate::sync::{Mutex, MutexGuard, lock};
use slab::Slab;
use std::any::Any;
use std::collections::BTreeMap;

/// A child, as its parent's list stores it.
pub(crate) trait Child: Clone + PartialEq {
    /// The child's name.
    fn name(&self) -> &Name;

    /// The child's slot among the children with generated names.
    fn slot(&self) -> u32;
}

/// The children of a single actor.
pub(crate) struct Children<C>(Mutex<Inner<C>>);

struct Inner<C> {
    /// `None` until the first child, since most actors have none.
    children: Option<Box<ChildTable<C>>>,
    /// The parent is ending: no more children.
    closed: bool,
    /// The number of suspensions of the parent; a new child starts with as many.
    suspended: u32,
}

struct ChildTable<C> {
    /// In order: a parent acts on its children in the same order in each run.
    named: BTreeMap<Box<str>, C>,
    anonymous: Slab<C>,
    /// The children whose names have passed on to their successors; they are ending.
    nameless: Vec<C>,
    /// The number of names generated so far.
    generated: u64,
    /// The reference that stands for the parent, where it is not the parent's own: a router's, for its head.
    front: Option<Box<dyn Any + Send>>,
    /// The data that children find at their parent, of any type.
    parent_data: Option<Box<dyn Any + Send>>,
    /// Counts the messages that wait for any of the children.
    queued: Option<Box<dyn Fn() -> usize + Send>>,
}

/// The reason why a child was refused.
pub(crate) enum Refusal {
    Closed,
    NameTaken,
}

/// A place in the list, which is locked for as long as this exists.
pub(crate) struct ReservedPlace<'a, C> {
    inner: MutexGuard<'a, Inner<C>>,
    pub start: ChildStart,
}

/// The start data that a parent gives to a child before it is made.
#[derive(Clone)]
pub(crate) struct ChildStart {
    pub name: Name,
    pub slot: u32,
    pub suspended: u32,
}

impl<C> Default for Children<C> {
    fn default() -> Self {
        Self(Mutex::new(Inner { children: None, closed: false, suspended: 0 }))
    }
}

impl<C> Default for ChildTable<C> {
    fn default() -> Self {
        Self {
            named: BTreeMap::new(),
            anonymous: Slab::new(),
            nameless: Vec::new(),
            generated: 0,
            front: None,
            parent_data: None,
            queued: None,
        }
    }
}

impl<C> ReservedPlace<'_, C> {
    /// Takes the child in.
    #[inline]
    pub(crate) fn fill(mut self, child: C) {
        let children = self.inner.children.get_or_insert_default();
        match self.start.name {
            Name::Given(name) => _ = children.named.insert(name, child),
            Name::Generated(_) | Name::Nobody(_) => {
                children.anonymous.insert(child);
                children.generated += 1;
            }
        }
    }
}

impl<C: Child> Children<C> {
    /// Makes the list of a parent that starts with so many suspensions.
    pub(crate) fn of_suspended(suspended: u32) -> Self {
        Self(Mutex::new(Inner { children: None, closed: false, suspended }))
    }

    /// Keeps the place of a child that is about to be made: under `name`, or under a generated one. No other thread
    /// takes the name, or looks at the list, before the place is filled or given up.
    #[inline]
    pub(crate) fn reserve(&self, name: Option<&str>) -> Result<ReservedPlace<'_, C>, Refusal> {
        let mut inner = lock(&self.0);
        if inner.closed {
            return Err(Refusal::Closed);
        }
        let suspended = inner.suspended;
        let children = inner.children.get_or_insert_default();
        let (name, slot) = match name {
            Some(name) if children.named.contains_key(name) => return Err(Refusal::NameTaken),
            Some(name) => (Name::Given(name.into()), 0),
            None => {
                let slot = u32::try_from(children.anonymous.vacant_key());
                (Name::Generated(children.generated), slot.expect("fewer than 2^32 living children"))
            }
        };
        Ok(ReservedPlace { inner, start: ChildStart { name, slot, suspended } })
    }

    /// Removes a child that has ended. Returns it if it was a child; its name is free from now on.
    pub(crate) fn remove(&self, child: &C) -> Option<C> {
        let mut inner = lock(&self.0);
        let children = inner.children.as_mut()?;
        match child.name() {
            Name::Given(name) => match children.named.get(name) {
                Some(known) if known == child => children.named.remove(name),
                _ => {
                    let at = children.nameless.iter().position(|known| known == child)?;
                    Some(children.nameless.swap_remove(at))
                }
            },
            Name::Generated(_) => match children.anonymous.get(child.slot() as usize) {
                Some(known) if known == child => Some(children.anonymous.remove(child.slot() as usize)),
                _ => None,
            },
            Name::Nobody(_) => None,
        }
    }

    /// Frees the name of a child that is ending, for its successor.
    pub(crate) fn hand_name_over(&self, child: &C) {
        let mut inner = lock(&self.0);
        let Some(children) = &mut inner.children else { return };
        let Name::Given(name) = child.name() else { return };
        if children.named.get(name) == Some(child) {
            children.nameless.extend(children.named.remove(name));
        }
    }

    /// Returns whether `child` is a child of this parent.
    pub(crate) fn contains(&self, child: &C) -> bool {
        let inner = lock(&self.0);
        let Some(children) = &inner.children else { return false };
        match child.name() {
            Name::Given(name) => children.named.get(name) == Some(child) || children.nameless.contains(child),
            Name::Generated(_) => children.anonymous.get(child.slot() as usize) == Some(child),
            Name::Nobody(_) => false,
        }
    }

    /// The child of this name, given or generated.
    pub(crate) fn get(&self, name: &str) -> Option<C> {
        let inner = lock(&self.0);
        let children = inner.children.as_ref()?;
        if let Some(child) = children.named.get(name) {
            return Some(child.clone());
        }
        let number = generated_number(name)?;
        let is_it = |child: &C| matches!(child.name(), Name::Generated(other) if *other == number);
        children.anonymous.iter().map(|(_, child)| child).find(|child| is_it(child)).cloned()
    }

    /// All children, now.
    pub(crate) fn all(&self) -> Vec<C> {
        lock(&self.0).all()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let inner = lock(&self.0);
        inner.children.as_ref().is_none_or(|children| {
            children.named.is_empty() && children.anonymous.is_empty() && children.nameless.is_empty()
        })
    }

    /// Returns whether the parent accepts no more children.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// Accepts no more children from now on. Returns `front` and `parent_data` to be dropped, since they refer to the
    /// parent.
    pub(crate) fn close(&self) -> [Option<Box<dyn Any + Send>>; 2] {
        let mut inner = lock(&self.0);
        inner.closed = true;
        inner
            .children
            .as_mut()
            .map(|children| [children.front.take(), children.parent_data.take()])
            .unwrap_or_default()
    }

    /// Sets the data that children find at their parent.
    pub(crate) fn set_parent_data<T: Clone + Send + 'static>(&self, parent_data: T) {
        lock(&self.0).children.get_or_insert_default().parent_data = Some(Box::new(parent_data));
    }

    /// The data that children find at their parent, if it is a `T`.
    pub(crate) fn parent_data<T: Clone + 'static>(&self) -> Option<T> {
        lock(&self.0).children.as_ref()?.parent_data.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// Sets the reference that a search for a reference of its type finds in place of the parent's own.
    pub(crate) fn set_front<T: Clone + Send + 'static>(&self, front: T) {
        lock(&self.0).children.get_or_insert_default().front = Some(Box::new(front));
    }

    /// Sets the function that counts the messages waiting for any of the children.
    pub(crate) fn set_queued(&self, count: impl Fn() -> usize + Send + 'static) {
        lock(&self.0).children.get_or_insert_default().queued = Some(Box::new(count));
    }

    /// The number of messages that wait for any of the children.
    pub(crate) fn queued(&self) -> usize {
        let inner = lock(&self.0);
        let count = inner.children.as_ref().and_then(|children| children.queued.as_ref());
        count.map_or(0, |count| count())
    }

    /// The parent's front, if it is a `T`.
    pub(crate) fn front<T: Clone + 'static>(&self) -> Option<T> {
        lock(&self.0).children.as_ref()?.front.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// Sets the number of suspensions with which new children start, and returns the existing children. One critical
    /// section: a child made meanwhile is either in the list or starts suspended, never both.
    pub(crate) fn set_suspended(&self, suspended: u32) -> Vec<C> {
        let mut inner = lock(&self.0);
        inner.suspended = suspended;
        inner.all()
    }
}

impl<C: Child> Inner<C> {
    fn all(&self) -> Vec<C> {
        self.children.as_ref().map_or_else(Vec::new, |children| {
            let anonymous = children.anonymous.iter().map(|(_, child)| child);
            children.named.values().chain(anonymous).chain(&children.nameless).cloned().collect()
        })
    }
}
