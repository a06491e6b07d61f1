//! A parent's children: who they are, which names are taken, and whether more may come.
//!
//! Guarded by a lock, since any thread may create an actor; taken at creation, termination and look-up
//! only, never for a message.

use crate::path::actor_path::{Name, generated_number};
use crate::sync::{Mutex, lock};
use slab::Slab;
use std::any::Any;
use std::collections::BTreeMap;

/// A child, as its parent's list knows it.
pub(crate) trait Child: Clone + PartialEq {
    /// Its name.
    fn name(&self) -> &Name;

    /// Its place among the children with generated names.
    fn slot(&self) -> u32;
}

/// The children of one actor.
pub(crate) struct Children<C>(Mutex<Inner<C>>);

struct Inner<C> {
    /// `None` until the first child, since most actors have none.
    children: Option<Box<ChildTable<C>>>,
    /// The parent is ending: no more children.
    closed: bool,
    /// How often the parent is suspended; a new child starts so too.
    suspended: u32,
}

struct ChildTable<C> {
    /// In order, so that what a parent does to all its children it does in the same order in each run.
    named: BTreeMap<Box<str>, C>,
    anonymous: Slab<C>,
    /// Those whose names have passed on; they are ending.
    nameless: Vec<C>,
    /// How many names were generated so far.
    generated: u64,
    /// The reference that the parent is known by where it is not its own: a router's, of its head.
    front: Option<Box<dyn Any + Send>>,
    /// What its children find of their parent, whoever it is.
    parent_data: Option<Box<dyn Any + Send>>,
    /// How many messages wait for whichever child takes them.
    queued: Option<Box<dyn Fn() -> usize + Send>>,
}

/// Why a child was not taken in.
pub(crate) enum Refusal {
    Closed,
    NameTaken,
}

/// What a parent tells a child that is about to be made.
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

impl<C: Child> Children<C> {
    /// Those of a parent that starts suspended so often.
    pub(crate) fn of_suspended(suspended: u32) -> Self {
        Self(Mutex::new(Inner { children: None, closed: false, suspended }))
    }

    /// Makes a child by `make` and takes it in under `name`, or under a generated one. Nobody else can
    /// take the name meanwhile.
    pub(crate) fn adopt<E>(
        &self,
        name: Option<&str>,
        make: impl FnOnce(ChildStart) -> Result<C, E>,
    ) -> Result<Result<(), E>, Refusal> {
        let mut inner = lock(&self.0);
        if inner.closed {
            return Err(Refusal::Closed);
        }
        let suspended = inner.suspended;
        let children = inner.children.get_or_insert_default();
        match name {
            Some(name) => {
                if children.named.contains_key(name) {
                    return Err(Refusal::NameTaken);
                }
                let key: Box<str> = name.into();
                let start = ChildStart { name: Name::Given(key.clone()), slot: 0, suspended };
                Ok(make(start).map(|child| {
                    children.named.insert(key, child);
                }))
            }
            None => {
                let number = children.generated;
                let entry = children.anonymous.vacant_entry();
                let slot = u32::try_from(entry.key()).expect("fewer than 2^32 living children");
                let start = ChildStart { name: Name::Generated(number), slot, suspended };
                Ok(make(start).map(|child| {
                    entry.insert(child);
                    children.generated += 1;
                }))
            }
        }
    }

    /// Forgets a child that has ended. Returns it if it was one; its name is free from now on.
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

    /// Whether `child` is one.
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

    /// All of them, now.
    pub(crate) fn all(&self) -> Vec<C> {
        lock(&self.0).all()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let inner = lock(&self.0);
        inner.children.as_ref().is_none_or(|children| {
            children.named.is_empty() && children.anonymous.is_empty() && children.nameless.is_empty()
        })
    }

    /// Whether no more children are taken.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// Takes no more children from now on. Returns the front and the parent_data, to be dropped: they refer to the parent.
    pub(crate) fn close(&self) -> [Option<Box<dyn Any + Send>>; 2] {
        let mut inner = lock(&self.0);
        inner.closed = true;
        inner
            .children
            .as_mut()
            .map(|children| [children.front.take(), children.parent_data.take()])
            .unwrap_or_default()
    }

    /// Says what children find of their parent.
    pub(crate) fn set_parent_data<T: Clone + Send + 'static>(&self, parent_data: T) {
        lock(&self.0).children.get_or_insert_default().parent_data = Some(Box::new(parent_data));
    }

    /// What children find of their parent, if it is a `T`.
    pub(crate) fn parent_data<T: Clone + 'static>(&self) -> Option<T> {
        lock(&self.0).children.as_ref()?.parent_data.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// Says which reference the parent is known by to those who look for one of its type.
    pub(crate) fn set_front<T: Clone + Send + 'static>(&self, front: T) {
        lock(&self.0).children.get_or_insert_default().front = Some(Box::new(front));
    }

    /// Says how to count the messages that wait for whichever child takes them.
    pub(crate) fn set_queued(&self, count: impl Fn() -> usize + Send + 'static) {
        lock(&self.0).children.get_or_insert_default().queued = Some(Box::new(count));
    }

    /// Messages that wait for whichever child takes them.
    pub(crate) fn queued(&self) -> usize {
        let inner = lock(&self.0);
        let count = inner.children.as_ref().and_then(|children| children.queued.as_ref());
        count.map_or(0, |count| count())
    }

    /// The parent's front, if it is a `T`.
    pub(crate) fn front<T: Clone + 'static>(&self) -> Option<T> {
        lock(&self.0).children.as_ref()?.front.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// Sets how often children made from now on start suspended, and returns those that exist.
    /// One critical section: a child made meanwhile is either in the list or starts suspended, never both.
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
