//! Classes: the actors of one class are counted together.
//!
//! The class of an actor is the class that its builder or its deployment names, or else the path of the router or group
//! that made the actor, or else the name of the actor's type. A class has a small number, so that an actor with a class of
//! its own keeps two bytes, and any other actor keeps nothing: its class is found by its type.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{HashMap, Mutex, OnceLock, lock};
use std::num::NonZeroU16;

/// The number of a class within its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClassId(NonZeroU16);

/// Classes that a system tells apart unless its settings say otherwise.
pub(crate) const CLASSES_MAX_DEFAULT: usize = 256;

/// The most classes that a system can tell apart.
pub(crate) const CLASSES_MAX: usize = SEGMENT * SEGMENT - 1;

/// Classes in a segment of a table by class, and segments.
pub(crate) const SEGMENT: usize = 64;

impl ClassId {
    /// The class of all actors for whose class there is no room.
    pub(crate) const OTHER: Self = Self(NonZeroU16::MIN);

    /// The place in a table by class, below [`CLASSES_MAX`] and one.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0.get()) - 1
    }

    /// The class at this place.
    pub(crate) fn at(index: usize) -> Option<Self> {
        u16::try_from(index + 1).ok().and_then(NonZeroU16::new).map(Self)
    }
}

type Names = [OnceLock<Box<str>>; SEGMENT];

/// The classes of a single system, which only ever grow in number.
pub(crate) struct Classes {
    /// The number of classes beside `other`.
    max: AtomicUsize,
    /// In segments that stay in their place, so that a name can be lent.
    names: Box<[OnceLock<Box<Names>>; SEGMENT]>,
    ids: Mutex<HashMap<Box<str>, ClassId>>,
}

impl Classes {
    pub(crate) fn new() -> Self {
        let classes = Self {
            max: AtomicUsize::new(CLASSES_MAX_DEFAULT),
            names: Box::new([const { OnceLock::new() }; SEGMENT]),
            ids: Mutex::default(),
        };
        classes.set_name(ClassId::OTHER, "other");
        classes
    }

    /// Tells so many classes apart from now on. Classes that are known stay.
    pub(crate) fn set_max(&self, count: usize) {
        // Ordering: Relaxed; a class that is named at the same moment may find the former limit.
        self.max.store(count.min(CLASSES_MAX), Ordering::Relaxed);
    }

    /// Returns the class of this name, or `other` if there is no room for one more.
    pub(crate) fn id_of(&self, name: &str) -> ClassId {
        let mut ids = lock(&self.ids);
        if let Some(id) = ids.get(name) {
            return *id;
        }
        // Ordering: Relaxed; see `set_max`.
        let has_room = ids.len() < self.max.load(Ordering::Relaxed);
        // The first place is that of `other`.
        match ClassId::at(ids.len() + 1).filter(|_| has_room) {
            Some(id) => {
                self.set_name(id, name);
                ids.insert(name.into(), id);
                id
            }
            None => ClassId::OTHER,
        }
    }

    /// Returns the name of a class.
    pub(crate) fn name(&self, id: ClassId) -> &str {
        let segment = self.names[id.index() / SEGMENT].get();
        let name = segment.and_then(|names| names[id.index() % SEGMENT].get());
        name.map_or("other", |name| name)
    }

    /// The classes that are known, `other` included.
    pub(crate) fn all(&self) -> impl Iterator<Item = ClassId> {
        let count = lock(&self.ids).len() + 1;
        (0..count).filter_map(ClassId::at)
    }

    fn set_name(&self, id: ClassId, name: &str) {
        let segment =
            self.names[id.index() / SEGMENT].get_or_init(|| Box::new([const { OnceLock::new() }; SEGMENT]));
        let _ = segment[id.index() % SEGMENT].set(name.into());
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_class_until_there_is_no_room() {
        let classes = Classes::new();
        classes.set_max(100);
        let ids: Vec<ClassId> = (0..100).map(|number| classes.id_of(&number.to_string())).collect();
        assert_eq!(classes.name(ids[99]), "99");
        assert_eq!(classes.id_of("7"), ids[7]);
        assert_eq!(classes.id_of("one more"), ClassId::OTHER);
        assert_eq!(classes.all().count(), 101);
        classes.set_max(0);
        assert_eq!((classes.id_of("7"), classes.id_of("8 more")), (ids[7], ClassId::OTHER));
        classes.set_max(usize::MAX);
        let last = (0..CLASSES_MAX + 10).map(|number| classes.id_of(&format!("n{number}"))).last();
        assert_eq!(last, Some(ClassId::OTHER));
        assert_eq!(
            classes.all().last().map(|id| classes.name(id).to_owned()),
            Some(format!("n{}", CLASSES_MAX - 101))
        );
        assert_eq!(classes.name(ClassId::OTHER), "other");
    }
}
