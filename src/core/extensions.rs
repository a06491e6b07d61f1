//! What features keep for each system: one value of each feature's own type, found by that type.
//!
//! The core names no feature. The composition root (`system.rs`) puts the values in when the system is built; each feature
//! finds its own by [`Extensions::get`], and hears of the system's end by the hooks of [`Extension`].

use std::any::{Any, TypeId};
use std::time::Instant;

/// A value as one whose type is looked up while the program runs. A cast from `dyn Extension` to `dyn Any` needs a newer
/// compiler than the oldest one that is promised.
pub trait AsAny {
    /// The value itself.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A feature's part of one system.
pub trait Extension: AsAny + Any + Send + Sync {
    /// The last actor has ended. Runs on the thread that ended it, before anyone who waits for the end goes on. `system` is
    /// the system's name.
    fn tree_ended(&self, system: &str) {
        let _ = system;
    }

    /// The owner has given the system up while actors still run. The last of them may never end.
    fn abandoned(&self, system: &str) {
        let _ = system;
    }

    /// The owner waits for the system's threads: ends those of the feature, at `until` at the latest.
    fn stop(&self, until: Option<Instant>) {
        let _ = until;
    }

    /// No thread waits for the system's threads: tells those of the feature to end, and returns at once.
    fn release(&self) {}
}

/// The parts of all features. They are few and found by comparing types one after the other.
#[derive(Default)]
pub struct Extensions(Vec<(TypeId, Box<dyn Extension>)>);

impl Extensions {
    /// Adds a feature's part. Hooks run in the order in which parts were added.
    pub fn add<T: Extension>(&mut self, part: T) {
        debug_assert!(self.find::<T>().is_none(), "a feature has one part of a system");
        self.0.push((TypeId::of::<T>(), Box::new(part)));
    }

    /// A feature's part.
    ///
    /// # Panics
    ///
    /// The composition root has left it out.
    pub fn get<T: Extension>(&self) -> &T {
        self.find().expect("the composition root adds the part of each feature")
    }

    fn find<T: Extension>(&self) -> Option<&T> {
        let (_, part) = self.0.iter().find(|(of, _)| *of == TypeId::of::<T>())?;
        // Through the box: the box has an `as_any` of its own.
        (**part).as_any().downcast_ref()
    }

    /// Runs a hook of each.
    pub fn each(&self, hook: impl Fn(&dyn Extension)) {
        self.0.iter().for_each(|(_, part)| hook(&**part));
    }
}
