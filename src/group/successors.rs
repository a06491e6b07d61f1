//! Those who are to have their first turns when the retired actors before them have ended.
//!
//! An actor that [retires](crate::Context::retire) keeps its seat until it has ended. Whoever sends to the key
//! meanwhile is refused by a closed mailbox, and puts the next actor, its heir, into the seat: under the
//! name of the one that retires, with the message in its mailbox, and without its first turn. The head gives it that
//! when the former one has ended. The lock of the shard decides: either the head finds the seat changed, and an heir
//! here, or it takes the seat away and the sender finds the key free.

use crate::actor::spawn::Held;
use crate::core::any_ref::AnyRef;
use crate::sync::{HashMap, Mutex, lock};

/// By whose end they wait for.
pub struct Heirs<M: Send + 'static>(Mutex<HashMap<AnyRef, Held<M>>>);

impl<M: Send + 'static> Default for Heirs<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M: Send + 'static> Heirs<M> {
    pub fn add(&self, retired: &AnyRef, heir: Option<Held<M>>) {
        lock(&self.0).extend(heir.map(|heir| (retired.clone(), heir)));
    }

    /// It has ended: its heir, if there is one, has its first turn.
    pub fn begin_after(&self, ended: &AnyRef) {
        let heir = lock(&self.0).remove(ended);
        drop(heir);
    }
}
