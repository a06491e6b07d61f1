//! The extensions of a system: each feature keeps one value of its own type for each system, found by that type.
//!
//! The core names no feature. The composition root (`system.rs`) puts the values in when the system is built. Each
//! feature finds its own by [`Extensions::get`], and is told of the system's end by the hooks of [`Extension`].

use crate::core::ledger::Ledger;
use std::any::{Any, TypeId};
use std::time::Instant;

/// A value whose type is looked up while the program runs. A cast from `dyn Extension` to `dyn Any` needs a newer
/// compiler than the oldest supported compiler.
pub(crate) trait AsAny {
    /// The value itself.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A feature's part of one system.
pub(crate) trait Extension: AsAny + Any + Send + Sync {
    /// Runs when the last actor has ended, on the thread that ended it, before any thread that waits for the end goes
    /// on. `system` is the system's name.
    fn tree_ended(&self, system: &str) {
        let _ = system;
    }

    /// Runs when the owner has given the system up while actors still run. The last of them may never end.
    fn abandoned(&self, system: &str) {
        let _ = system;
    }

    /// Runs when the owner waits for the system's threads: ends the threads of the feature, at `until` at the latest.
    fn stop(&self, until: Option<Instant>) {
        let _ = until;
    }

    /// Runs when no thread waits for the system's threads: tells the threads of the feature to end, and returns at
    /// once.
    fn release(&self) {}

    /// Adds the messages that wait in the feature, and those that it has taken out of the system.
    fn add_to_ledger(&self, ledger: &mut Ledger) {
        let _ = ledger;
    }

    /// The reference to the actors that a text selects at another node: an `ActorRef` of the type of message. `None` if the type
    /// cannot go there.
    fn selection_at(&self, node: &str, text: &str, message: TypeId) -> Option<Box<dyn Any + Send>> {
        let _ = (node, text, message);
        None
    }

    /// Asks the actors that a text selects at another node for their references; `is_one`: the first answer is enough. `to` is an
    /// `Arc<dyn IdentityReceiver>`. Returns false if the feature knows of no other nodes.
    fn identify_at(&self, node: &str, text: &str, is_one: bool, to: &dyn Any) -> bool {
        let _ = (node, text, is_one, to);
        false
    }

    /// The feature's own statistics, for the exporters that know their type.
    fn stats(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// The name by which other systems know this one, if it is a node.
    fn node_name(&self) -> Option<&str> {
        None
    }
}

/// The values of all features. They are few, and are found by a comparison of their types in a row.
#[derive(Default)]
pub(crate) struct Extensions(Vec<(TypeId, Box<dyn Extension>)>);

impl Extensions {
    /// Adds a feature's value. Hooks run in the order in which values were added.
    pub(crate) fn add<T: Extension>(&mut self, part: T) {
        debug_assert!(self.find::<T>().is_none(), "a feature has one part of a system");
        self.0.push((TypeId::of::<T>(), Box::new(part)));
    }

    /// Returns a feature's value.
    ///
    /// # Panics
    ///
    /// The composition root has not added it.
    pub(crate) fn get<T: Extension>(&self) -> &T {
        self.find().expect("the composition root adds the part of each feature")
    }

    fn find<T: Extension>(&self) -> Option<&T> {
        let (_, part) = self.0.iter().find(|(of, _)| *of == TypeId::of::<T>())?;
        // Through the box: the box has an `as_any` of its own.
        (**part).as_any().downcast_ref()
    }

    /// The reference to the actors that a text selects at another node.
    pub(crate) fn selection_at<R: Any>(&self, node: &str, text: &str, message: TypeId) -> Option<R> {
        let found = self.0.iter().find_map(|(_, part)| part.selection_at(node, text, message))?;
        let found: Box<dyn Any> = found;
        found.downcast::<R>().ok().map(|reference| *reference)
    }

    /// Asks the actors that a text selects at another node for their references. Returns false if no feature can.
    pub(crate) fn identify_at(&self, node: &str, text: &str, is_one: bool, to: &dyn Any) -> bool {
        self.0.iter().any(|(_, part)| part.identify_at(node, text, is_one, to))
    }

    /// The name of the node that the system is.
    pub(crate) fn node_name(&self) -> Option<&str> {
        self.0.iter().find_map(|(_, part)| part.node_name())
    }

    /// The statistics of the feature that has some of this type.
    pub(crate) fn stats<S: Any>(&self) -> Option<S> {
        let mut all = self.0.iter().filter_map(|(_, part)| part.stats());
        all.find_map(|stats| stats.downcast().ok()).map(|stats| *stats)
    }

    /// Runs a hook of each value.
    pub(crate) fn each(&self, mut hook: impl FnMut(&dyn Extension)) {
        self.0.iter().for_each(|(_, part)| hook(&**part));
    }
}
