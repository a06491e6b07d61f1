//! What an actor of a group is made from, over all its lives.

use crate::failure::Failure;
use crate::group::restart_policy::{RestartPolicy, Tries};
use crate::group::status::ActorStatus;
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
    pub(crate) fn new(key: &'a K, cause: StartCause) -> Self {
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
pub struct Seed<K> {
    pub key: K,
    pub hash: u64,
    /// What its actor is called, unless a key that prints alike is called so.
    pub name: Box<str>,
    life: Mutex<Life>,
}

pub struct Life {
    cause: StartCause,
    pub tries: Tries,
    pub end: End,
    /// The state of a new life is not to be made before so much time has passed.
    pub waits: Option<Duration>,
    /// How the present actor is to be restarted, if it has said so itself.
    pub policy: Option<Box<RestartPolicy>>,
    /// How it is; `None` before its first turn.
    pub status: Option<ActorStatus>,
    /// The number of the last subscription that has been told.
    pub told: u64,
}

/// Why the present life is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// It ends by itself, or was stopped from outside.
    #[default]
    Other,
    Failed,
    /// It has failed more often than it may.
    GivenUp,
}

impl<K> Seed<K> {
    pub fn new(key: K, hash: u64, name: String, cause: StartCause) -> Self {
        let life = Life {
            cause,
            tries: Tries::default(),
            end: End::Other,
            waits: None,
            policy: None,
            status: None,
            told: 0,
        };
        Self { key, hash, name: name.into(), life: Mutex::new(life) }
    }

    pub fn life<R>(&self, act: impl FnOnce(&mut Life) -> R) -> R {
        act(&mut lock(&self.life))
    }

    /// A life begins: its state is being made.
    ///
    /// # Errors
    ///
    /// It is not to be made yet. The head takes this for what it is.
    pub fn begin(&self, now: Duration) -> Result<StartCause, Failure> {
        self.life(|life| {
            if life.waits.is_some() {
                life.cause = StartCause::Restarted;
                return Err(Failure::msg("it is not its time yet"));
            }
            life.tries.begin(now);
            life.policy = None;
            Ok(std::mem::replace(&mut life.cause, StartCause::Restarted))
        })
    }
}
