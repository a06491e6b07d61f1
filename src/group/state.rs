//! Group state is shared by a group's references, its handle and its head, and creates the actor of a key.

use crate::actor::spawn::Held;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::core::multi_send::Delivery;
use crate::core::system::SystemCore;
use crate::group::config::GroupConfig;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::key_entry::KeyEntry;
use crate::group::key_name::unique_name;
use crate::group::key_route::KeyRouter;
use crate::group::key_table::GroupKeyTable;
use crate::group::pending_restarts::PendingRestarts;
use crate::group::restart_policy::{RestartPolicy, WhileRestarting};
use crate::group::status::Statuses;
use crate::group::successors::KeySuccessors;
use crate::group::validate_config::AsksToValidate;
use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use crate::sync::{CachePadded, HashMap, Mutex, lock};
use crate::util::panic::drop_guarded;
use crate::util::reclaim;
use crate::util::stderr_log::report;
use std::any::Any;
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc as StdArc;

/// Creates the actor of a key under this name, before its first turn. Runs under the lock of a shard.
pub(crate) type Make<M, K> =
    dyn Fn(&AnyActorRef, String, &StdArc<KeyEntry<K>>) -> Result<Held<M>, SpawnError> + Send + Sync;

/// Makes one more copy, in groups whose messages can be cloned.
pub(crate) type Copy<M> = fn(&Delivery<'_, M>, &M) -> M;

pub(crate) struct GroupState<M: Send + 'static, K: GroupKey> {
    pub head: AnyActorRef,
    pub system: StdArc<SystemCore>,
    pub table: GroupKeyTable<KeySlot<M, K>>,
    pub router: KeyRouter<M, K>,
    pub copy: Option<Copy<M>>,
    pub make: Box<Make<M, K>>,
    pub policy: RestartPolicy,
    /// The policy that the configuration has set since.
    pub configured_policy: Mutex<Option<RestartPolicy>>,
    pub statuses: StdArc<Statuses<K>>,
    pub while_restarting: WhileRestarting,
    pub termination: Termination<M>,
    pub configured: Option<Box<dyn ConfigHooks<M, K>>>,
    pub asks_to_validate: Option<AsksToValidate<M>>,
    /// The key of a group of a single actor, which a configuration mounts.
    pub only: Option<K>,
    /// The number of names that tell keys apart which print alike.
    twins: AtomicUsize,
    /// The salt makes the hashes of this group differ from those of other groups.
    salt: u64,
    phase: AtomicU8,
    /// The capacity that the mailboxes have been changed to; 0 before the first change.
    capacity: AtomicUsize,
    /// The actors that have not ended. This lock is taken after a shard's lock, where both are taken. The field, as
    /// `waiting`, has cache lines of its own: it changes when keys come and go, and each message reads its neighbours.
    pub living: CachePadded<Mutex<HashMap<AnyActorRef, StdArc<KeyEntry<K>>>>>,
    pub waiting: CachePadded<Mutex<PendingRestarts<K>>>,
    pub successors: KeySuccessors<M>,
}

/// A key slot holds the entry of a key and its present actor.
pub(crate) struct KeySlot<M: Send + 'static, K> {
    pub key_entry: StdArc<KeyEntry<K>>,
    /// `None` while the actor waits to be re-created.
    pub actor: Option<ActorRef<M>>,
}

/// A group phase says how far a group's end has come, and only ever advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum GroupPhase {
    Open,
    /// No actor is created any more.
    NoSpawn,
    /// No actor is created any more, and the actors are told to end.
    Terminating,
    /// No message is taken.
    Closed,
}

/// The parts make up a group, apart from its head.
pub(crate) struct Parts<M: Send + 'static, K: GroupKey> {
    pub router: KeyRouter<M, K>,
    pub copy: Option<Copy<M>>,
    pub make: Box<Make<M, K>>,
    pub statuses: StdArc<Statuses<K>>,
    pub policy: RestartPolicy,
    pub while_restarting: WhileRestarting,
    pub termination: Termination<M>,
    pub configured: Option<Box<dyn ConfigHooks<M, K>>>,
    pub asks_to_validate: Option<AsksToValidate<M>>,
    pub shard_count: usize,
    pub only: Option<K>,
}

/// The former holder of a key is known by this type while the next actor of the key is created.
enum PreviousActor<K> {
    Vacant,
    /// An actor that waits to be re-created.
    Waiting(StdArc<KeyEntry<K>>),
    /// An actor that is passivated and may not have ended.
    Retired(AnyActorRef),
}

/// This type says how an attempt to create the actor of a key has ended.
pub(crate) enum Created {
    Done,
    /// Another actor has the key.
    Taken,
    /// The group creates no more actors, or this actor cannot be created, which has been logged.
    Refused(SpawnError),
}

impl<M: Send + 'static, K: GroupKey> KeySlot<M, K> {
    pub(crate) fn is_of(&self, actor: &AnyActorRef) -> bool {
        self.actor.as_ref().is_some_and(|own| actor.is(own))
    }

    /// Returns whether an actor of this key entry waits in this slot to be re-created.
    pub(crate) fn awaits_restart_of(&self, key_entry: &StdArc<KeyEntry<K>>) -> bool {
        self.actor.is_none() && StdArc::ptr_eq(&self.key_entry, key_entry)
    }
}

impl<M: Send + 'static, K: GroupKey> GroupState<M, K> {
    pub(crate) fn new(head: AnyActorRef, parts: Parts<M, K>) -> Self {
        let system = head.core().system.clone();
        Self {
            salt: system.seed() ^ u64::from(head.uid()),
            head,
            system,
            table: GroupKeyTable::new(parts.shard_count),
            router: parts.router,
            copy: parts.copy,
            make: parts.make,
            policy: parts.policy,
            configured_policy: Mutex::new(None),
            statuses: parts.statuses,
            while_restarting: parts.while_restarting,
            termination: parts.termination,
            configured: parts.configured,
            asks_to_validate: parts.asks_to_validate,
            only: parts.only,
            twins: AtomicUsize::new(0),
            phase: AtomicU8::new(GroupPhase::Open as u8),
            capacity: AtomicUsize::new(0),
            living: CachePadded::default(),
            waiting: CachePadded::default(),
            successors: KeySuccessors::default(),
        }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &K) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.salt);
        key.hash(&mut hasher);
        hasher.finish()
    }

    #[inline]
    pub(crate) fn phase(&self) -> GroupPhase {
        // Relaxed: a caller that needs a certain answer reads this under the lock of a shard, or of the pending
        // restarts.
        match self.phase.load(Ordering::Relaxed) {
            0 => GroupPhase::Open,
            1 => GroupPhase::NoSpawn,
            2 => GroupPhase::Terminating,
            _ => GroupPhase::Closed,
        }
    }

    /// Advances the phase to `next`, and returns the phase before. When this returns, no actor is being created
    /// by a thread that has not seen `next`.
    pub(crate) fn advance(&self, next: GroupPhase) -> GroupPhase {
        // Relaxed: the locks taken below put this before all later work under them.
        let before = self.phase.fetch_max(next as u8, Ordering::Relaxed);
        self.table.pass_through();
        match before {
            0 => GroupPhase::Open,
            1 => GroupPhase::NoSpawn,
            2 => GroupPhase::Terminating,
            _ => GroupPhase::Closed,
        }
    }

    /// Returns whether actors are created and re-created.
    pub(crate) fn spawns(&self) -> bool {
        self.phase() == GroupPhase::Open && !self.head.core().children.is_closed()
    }

    /// Creates the actor of a free key, and passes it to `first` before any thread finds the actor, and before its
    /// first turn.
    ///
    /// * If an actor waits to be re-created for the key, and `takes_over` is set, it is re-created now.
    /// * If the key's actor is passivated, the new actor is its successor, and has its first turn when the passivated
    ///   actor has ended.
    ///
    /// `first` runs under the lock of the shard, so it runs no user code.
    pub(crate) fn create(
        &self,
        key_entry: &StdArc<KeyEntry<K>>,
        takes_over: bool,
        mut first: impl FnMut(&ActorRef<M>),
    ) -> Created {
        loop {
            let version = self.table.version(key_entry.hash);
            let former = {
                let section = reclaim::section();
                match self.table.find(key_entry.hash, &section, |slot| slot.key_entry.key == key_entry.key) {
                    Some(KeySlot { actor: Some(actor), .. }) if actor.is_retired() => {
                        PreviousActor::Retired(actor.any_local())
                    }
                    Some(KeySlot { actor: Some(_), .. }) => return Created::Taken,
                    Some(_) if !takes_over => return Created::Taken,
                    Some(slot) => PreviousActor::Waiting(slot.key_entry.clone()),
                    None => PreviousActor::Vacant,
                }
            };
            let mut shard = self.table.lock(key_entry.hash);
            if !shard.is_unchanged(version) {
                continue;
            }
            if !self.spawns() {
                drop(shard);
                drop_guarded(former);
                return Created::Refused(SpawnError::ParentStopped { path: self.head.path().to_string() });
            }
            // An actor that waits to be re-created keeps the count of its restarts.
            let key_entry = if let PreviousActor::Waiting(waiting) = &former { waiting } else { key_entry };
            if let PreviousActor::Retired(retired) = &former {
                self.head.core().children.hand_name_over(retired);
            }
            let held = match self.make(key_entry) {
                Ok(held) => held,
                Err(error) => {
                    drop(shard);
                    self.log(&error);
                    // `former` may be the last owner of a key of the user's: drop it before the error lies in the place
                    // of the return value.
                    drop_guarded(former);
                    return Created::Refused(error);
                }
            };
            first(held.actor());
            let slot = self.make_slot(key_entry, &held);
            let mut now = Some(held);
            match &former {
                PreviousActor::Vacant => shard.insert(key_entry.hash, slot),
                PreviousActor::Waiting(waiting) => {
                    shard.replace(
                        key_entry.hash,
                        |slot| StdArc::ptr_eq(&slot.key_entry, waiting),
                        Some(slot),
                    );
                }
                PreviousActor::Retired(retired) => {
                    shard.replace(key_entry.hash, |slot| slot.is_of(retired), Some(slot));
                    // The head looks at the slot when the passivated actor ends, so it waits for this lock.
                    self.successors.add(retired, now.take());
                }
            }
            drop(shard);
            if let PreviousActor::Waiting(waiting) = &former {
                self.forget_waiting(waiting);
            }
            // The actor has its first turn now, unless it is a successor.
            now.map(Held::start);
            return Created::Done;
        }
    }

    /// Creates the actor of this key entry under the first of its names that is free.
    pub(crate) fn make(&self, key_entry: &StdArc<KeyEntry<K>>) -> Result<Held<M>, SpawnError> {
        let mut number = 0;
        loop {
            match (self.make)(&self.head, unique_name(&key_entry.name, number), key_entry) {
                // A key that prints alike has this name. No number is given twice, so no key tries the number of
                // another key.
                // Relaxed: only different numbers matter.
                Err(SpawnError::NameTaken { .. }) => {
                    number = self.twins.fetch_add(1, Ordering::Relaxed) as u64 + 1
                }
                done => return done,
            }
        }
    }

    /// Notes a new actor, and returns its key slot.
    pub(crate) fn make_slot(&self, key_entry: &StdArc<KeyEntry<K>>, held: &Held<M>) -> KeySlot<M, K> {
        let mut living = lock(&self.living);
        living.insert(held.actor().any_local(), key_entry.clone());
        // Relaxed: the lock orders it; see `set_capacity`.
        if let Some(capacity) = NonZeroUsize::new(self.capacity.load(Ordering::Relaxed)) {
            held.actor().set_capacity(capacity);
        }
        drop(living);
        KeySlot { key_entry: key_entry.clone(), actor: Some(held.actor().clone()) }
    }

    /// Changes the capacity of all mailboxes, also of those that are yet to be created.
    pub(crate) fn set_capacity(&self, capacity: NonZeroUsize) {
        let living = lock(&self.living);
        // Relaxed: written under the lock under which it is read.
        self.capacity.store(capacity.get(), Ordering::Relaxed);
        // The loop runs under the lock, too: of two changes at once the same change counts for all mailboxes.
        for actor in living.keys() {
            if let Ok(actor) = actor.typed::<M>() {
                actor.set_capacity(capacity);
            }
        }
    }

    /// Returns the actors that have not ended, in the order of their creation.
    pub(crate) fn actors(&self) -> Vec<AnyActorRef> {
        let mut actors: Vec<AnyActorRef> = lock(&self.living).keys().cloned().collect();
        actors.sort_unstable_by_key(AnyActorRef::uid);
        actors
    }

    pub(crate) fn log(&self, error: &SpawnError) {
        let _ = crate::failure::guarded(|| {
            let (stderr, head) = (self.head.core().system.stderr, self.head.path());
            report!(stderr, Warning, log::Level::Error, "{head}: an actor could not be created: {error}");
            Ok(())
        });
    }
}

/// This trait decodes and applies the configuration of a group.
pub(crate) trait ConfigHooks<M: Send + 'static, K: GroupKey>: Send + Sync {
    /// Decodes the group's section.
    fn decode(&self, config: &GroupConfig) -> Result<Box<dyn Any>, String>;

    /// Applies a section that was decoded.
    fn apply(&self, group: &Group<M, K>, decoded: Box<dyn Any>);
}

/// This type says how the actors of a group are told to end.
pub(crate) enum Termination<M> {
    /// Each mailbox closes behind the messages in it.
    Closing,
    /// Each actor gets this message, and decides when it ends.
    Manual(Box<dyn Fn(&str) -> M + Send + Sync>),
}
