//! What an actor of a group is made from, over all its lives.

use super::restart::Tries;
use crate::sync::{Mutex, lock};
use std::time::Duration;

/// Why an actor of a group is being created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartCause {
    /// The group was created, or configured for the first time.
    Mounted,
    /// A message asked for its key.
    OnMessage,
    /// It had failed or ended.
    Restarted,
}

/// What the recipe of a group is given: whose actor it is to make, and why.
#[derive(Debug)]
pub struct Start<'a, K> {
    key: &'a K,
    cause: StartCause,
}

impl<'a, K> Start<'a, K> {
    pub(super) fn new(key: &'a K, cause: StartCause) -> Self {
        Self { key, cause }
    }

    /// The actor's key.
    pub fn key(&self) -> &'a K {
        self.key
    }

    /// Why it is created.
    pub fn cause(&self) -> StartCause {
        self.cause
    }
}

/// A key and what is known of its actor.
pub(super) struct Seed<K> {
    pub key: K,
    pub hash: u64,
    life: Mutex<Life>,
}

pub(super) struct Life {
    pub cause: StartCause,
    pub tries: Tries,
    /// The present life has failed, and is being ended for it.
    pub has_failed: bool,
    /// The state of a new life is not to be made before this has passed.
    pub waits: Option<Duration>,
}

impl<K> Seed<K> {
    pub fn new(key: K, hash: u64, cause: StartCause) -> Self {
        let life = Life { cause, tries: Tries::default(), has_failed: false, waits: None };
        Self { key, hash, life: Mutex::new(life) }
    }

    pub fn life<R>(&self, act: impl FnOnce(&mut Life) -> R) -> R {
        act(&mut lock(&self.life))
    }
}
