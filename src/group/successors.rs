//! A successor is the next actor of a key, and has its first turn when the passivated actor before it has ended.
//!
//! An actor that [passivates itself](crate::Context::passivate) keeps its key slot until it has ended, with a closed
//! mailbox. The next sender to the key is refused by that mailbox, and puts the successor into the key slot: under the
//! name of the passivated actor, with the message in its mailbox, and without its first turn. The head starts that turn
//! when the passivated actor has ended.
//!
//! The lock of the shard decides the race. Either the head finds the key slot changed, and a successor here; or the
//! head removes the key slot, and the sender finds the key free.

use crate::actor::spawn::Held;
use crate::core::any_actor_ref::AnyActorRef;
use crate::sync::{HashMap, Mutex, lock};

/// This map holds the successors, keyed by the passivated actor whose end each successor waits for.
pub(crate) struct KeySuccessors<M: Send + 'static>(Mutex<HashMap<AnyActorRef, Held<M>>>);

impl<M: Send + 'static> Default for KeySuccessors<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M: Send + 'static> KeySuccessors<M> {
    pub(crate) fn add(&self, retired: &AnyActorRef, successor: Option<Held<M>>) {
        lock(&self.0).extend(successor.map(|successor| (retired.clone(), successor)));
    }

    /// Starts the first turn of the successor of this actor, which has ended, if there is a successor.
    pub(crate) fn start_successor_of(&self, ended: &AnyActorRef) {
        let successor = lock(&self.0).remove(ended);
        successor.map(Held::start);
    }
}
