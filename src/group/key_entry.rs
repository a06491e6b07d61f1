//! A key entry keeps the key, the name and the restart count over all lives of an actor.

use crate::failure::Failure;
use crate::group::restart_policy::{RestartPolicy, Tries};
use crate::group::status::ActorStatus;
use crate::sync::{Mutex, lock};
use std::time::Duration;

/// A spawn cause says why the present state of an actor of a group was made:
/// [`Context::spawn_cause`](crate::Context::spawn_cause).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnCause {
    /// The key was [mounted](crate::group::Group::mount), by user code or by the group's configuration.
    Mounted,
    /// A message came for the key.
    OnMessage,
    /// The actor had failed or ended.
    Restarted,
}

/// A key entry keeps a key and the data of its actor over all lives.
pub(crate) struct KeyEntry<K> {
    pub key: K,
    pub hash: u64,
    /// The name of the actor, unless a key that prints alike has the name.
    pub name: Box<str>,
    life: Mutex<KeyLife>,
}

pub(crate) struct KeyLife {
    /// The cause of the present life, or of the first life before it has begun.
    pub cause: SpawnCause,
    has_begun: bool,
    pub tries: Tries,
    pub end: EndCause,
    /// The wait before the state of a new life may be made; `None` if there is no wait.
    pub waits: Option<Duration>,
    /// The restart policy that the present actor has set for itself.
    pub policy: Option<Box<RestartPolicy>>,
    /// The actor's status; `None` before its first turn.
    pub status: Option<ActorStatus>,
    /// The number of the last subscription that has been told.
    pub told: u64,
}

/// An end says why the present life is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EndCause {
    /// The actor ends by itself, or was stopped from outside.
    #[default]
    Other,
    Failed,
    /// The actor has failed more often than its policy allows.
    GivenUp,
}

impl<K> KeyEntry<K> {
    pub(crate) fn new(key: K, hash: u64, name: String, cause: SpawnCause) -> Self {
        let life = KeyLife {
            cause,
            has_begun: false,
            tries: Tries::default(),
            end: EndCause::Other,
            waits: None,
            policy: None,
            status: None,
            told: 0,
        };
        Self { key, hash, name: name.into(), life: Mutex::new(life) }
    }

    pub(crate) fn life<R>(&self, act: impl FnOnce(&mut KeyLife) -> R) -> R {
        act(&mut lock(&self.life))
    }

    /// Begins a life: the state of the actor is being made.
    ///
    /// # Errors
    ///
    /// A failure if the state is not to be made yet. The head recognises this failure by `KeyLife::waits`.
    pub(crate) fn begin(&self, now: Duration) -> Result<(), Failure> {
        self.life(|life| {
            if std::mem::replace(&mut life.has_begun, true) {
                life.cause = SpawnCause::Restarted;
            }
            if life.waits.is_some() {
                return Err(Failure::msg("it is not its time yet"));
            }
            life.tries.begin(now);
            life.policy = None;
            Ok(())
        })
    }
}
