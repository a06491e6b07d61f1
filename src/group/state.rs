//! What a group's references, its handle and its head share; and how an actor comes to its key.

use crate::actor::spawn::Held;
use crate::core::actor_ref::ActorRef;
use crate::core::any_ref::AnyRef;
use crate::core::error::SpawnError;
use crate::core::multi_send::Delivery;
use crate::core::system::SystemCore;
use crate::group::config::GroupConfig;
use crate::group::entry::Seed;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::key_name::set_apart;
use crate::group::key_router::InnerRouter;
use crate::group::key_table::Table;
use crate::group::outcome::Outcome;
use crate::group::pending_restarts::Waiting;
use crate::group::restart_policy::{RestartPolicy, WhileRestarting};
use crate::group::status::Statuses;
use crate::group::successors::Heirs;
use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use crate::sync::{CachePadded, HashMap, Mutex, lock};
use crate::util::panic::drop_guarded;
use crate::util::reclaim;
use std::any::Any;
use std::hash::{DefaultHasher, Hasher};
use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc as StdArc;

/// Creates the actor of a key under this name, before its first turn. Runs under the lock of a shard.
pub type Make<M, K> = dyn Fn(&AnyRef, String, &StdArc<Seed<K>>) -> Result<Held<M>, SpawnError> + Send + Sync;

/// How one more copy is made where messages can be cloned.
pub type Copy<M> = fn(&Delivery<'_, M>, &M) -> M;

pub struct Board<M: Send + 'static, K: GroupKey> {
    pub head: AnyRef,
    pub system: StdArc<SystemCore>,
    pub table: Table<Seat<M, K>>,
    pub router: Box<dyn InnerRouter<M, K>>,
    pub copy: Option<Copy<M>>,
    pub make: Box<Make<M, K>>,
    pub policy: RestartPolicy,
    /// What the configuration has said since.
    pub configured_policy: Mutex<Option<RestartPolicy>>,
    pub statuses: StdArc<Statuses<K>>,
    pub while_restarting: WhileRestarting,
    pub termination: Termination<M>,
    pub configured: Option<Box<dyn Configured<M, K>>>,
    /// The key of a group of one, which a configuration mounts.
    pub only: Option<K>,
    /// How many names keys that print alike have been set apart by.
    twins: AtomicUsize,
    /// Sets the hashes of this group apart from those of others.
    salt: u64,
    openness: AtomicU8,
    /// What the mailboxes' capacity has been changed to; 0 if it has not.
    capacity: AtomicUsize,
    /// The actors that have not ended. Locked after a shard, if both are. On lines of its own, as `waiting`: it changes
    /// when keys come and go, and each message reads its neighbours.
    pub living: CachePadded<Mutex<HashMap<AnyRef, StdArc<Seed<K>>>>>,
    pub waiting: CachePadded<Mutex<Waiting<K>>>,
    pub heirs: Heirs<M>,
}

/// Who has a key.
pub struct Seat<M: Send + 'static, K> {
    pub seed: StdArc<Seed<K>>,
    /// `None` while it waits to be created again.
    pub actor: Option<ActorRef<M>>,
}

/// How far a group's end has come. Only ever goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Openness {
    Open,
    /// No actor is created any more.
    NoSpawn,
    /// As before, and the actors are told to end.
    Terminating,
    /// No message is taken.
    Closed,
}

/// What a group is made of, apart from its head.
pub struct Parts<M: Send + 'static, K: GroupKey> {
    pub router: Box<dyn InnerRouter<M, K>>,
    pub copy: Option<Copy<M>>,
    pub make: Box<Make<M, K>>,
    pub statuses: StdArc<Statuses<K>>,
    pub policy: RestartPolicy,
    pub while_restarting: WhileRestarting,
    pub termination: Termination<M>,
    pub configured: Option<Box<dyn Configured<M, K>>>,
    pub shard_count: usize,
    pub only: Option<K>,
}

/// Who has had the key of an actor that is being created.
enum Former<K> {
    Nobody,
    /// One that waits to be created again.
    Waiting(StdArc<Seed<K>>),
    /// One that has retired and may not have ended.
    Retired(AnyRef),
}

/// What came of an attempt to create the actor of a key.
pub enum Created {
    Done,
    /// Somebody has the key.
    Taken,
    /// No actor is created any more, or this one cannot be, which has been logged.
    Refused(SpawnError),
}

impl<M: Send + 'static, K: GroupKey> Seat<M, K> {
    pub fn is_of(&self, actor: &AnyRef) -> bool {
        self.actor.as_ref().is_some_and(|own| actor.is(own))
    }

    /// Whether an actor of this seed waits in it to be created again.
    pub fn awaits(&self, seed: &StdArc<Seed<K>>) -> bool {
        self.actor.is_none() && StdArc::ptr_eq(&self.seed, seed)
    }
}

impl<M: Send + 'static, K: GroupKey> Drop for Board<M, K> {
    /// What makes a group is the user's, and each part may panic when it is dropped: of two panics at once the second
    /// would abort the process.
    fn drop(&mut self) {
        drop_guarded(mem::replace(&mut self.router, Box::new(|_: &M| Outcome::Discard)));
        let never = |head: &AnyRef, _: String, _: &StdArc<Seed<K>>| {
            Err(SpawnError::ParentStopped { path: head.path().to_string() })
        };
        drop_guarded(mem::replace(&mut self.make, Box::new(never)));
        drop_guarded(mem::replace(&mut self.termination, Termination::Closing));
        drop_guarded(self.configured.take());
    }
}

impl<M: Send + 'static, K: GroupKey> Board<M, K> {
    pub fn new(head: AnyRef, parts: Parts<M, K>) -> Self {
        let system = head.core().system.clone();
        Self {
            salt: system.seed() ^ u64::from(head.uid()),
            head,
            system,
            table: Table::new(parts.shard_count),
            router: parts.router,
            copy: parts.copy,
            make: parts.make,
            policy: parts.policy,
            configured_policy: Mutex::new(None),
            statuses: parts.statuses,
            while_restarting: parts.while_restarting,
            termination: parts.termination,
            configured: parts.configured,
            only: parts.only,
            twins: AtomicUsize::new(0),
            openness: AtomicU8::new(Openness::Open as u8),
            capacity: AtomicUsize::new(0),
            living: CachePadded::default(),
            waiting: CachePadded::default(),
            heirs: Heirs::default(),
        }
    }

    #[inline]
    pub fn hash(&self, key: &K) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.salt);
        key.hash(&mut hasher);
        hasher.finish()
    }

    #[inline]
    pub fn openness(&self) -> Openness {
        // Relaxed: whoever has to know for sure looks under the lock of a shard, or of those who wait.
        match self.openness.load(Ordering::Relaxed) {
            0 => Openness::Open,
            1 => Openness::NoSpawn,
            2 => Openness::Terminating,
            _ => Openness::Closed,
        }
    }

    /// Goes on to `next`; returns what was before. When this returns, no actor is being created that has not seen it.
    pub fn advance(&self, next: Openness) -> Openness {
        // Relaxed: the locks taken below put it before whatever is done under them later.
        let before = self.openness.fetch_max(next as u8, Ordering::Relaxed);
        self.table.pass_through();
        match before {
            0 => Openness::Open,
            1 => Openness::NoSpawn,
            2 => Openness::Terminating,
            _ => Openness::Closed,
        }
    }

    /// Whether actors are created, and created again.
    pub fn spawns(&self) -> bool {
        self.openness() == Openness::Open && !self.head.core().children.is_closed()
    }

    /// Creates the actor of a key that nobody has, and lets `first` have it before anybody finds it, and before its
    /// first turn. If somebody waits to be created again for the key, it is done now, when `takes_over`. If the one who
    /// has the key has retired, the new one has its first turn when that one has ended.
    ///
    /// `first` runs under the lock of the shard, so it runs no user code.
    pub fn create(
        &self,
        seed: &StdArc<Seed<K>>,
        takes_over: bool,
        mut first: impl FnMut(&ActorRef<M>),
    ) -> Created {
        loop {
            let version = self.table.version(seed.hash);
            let former = {
                let section = reclaim::section();
                match self.table.find(seed.hash, &section, |seat| seat.seed.key == seed.key) {
                    Some(Seat { actor: Some(actor), .. }) if actor.is_retired() => {
                        Former::Retired(actor.any_local())
                    }
                    Some(Seat { actor: Some(_), .. }) => return Created::Taken,
                    Some(_) if !takes_over => return Created::Taken,
                    Some(seat) => Former::Waiting(seat.seed.clone()),
                    None => Former::Nobody,
                }
            };
            let mut shard = self.table.lock(seed.hash);
            if !shard.is_unchanged(version) {
                continue;
            }
            if !self.spawns() {
                drop(shard);
                drop_guarded(former);
                return Created::Refused(SpawnError::ParentStopped { path: self.head.path().to_string() });
            }
            // Whoever waits keeps the count of its restarts.
            let seed = if let Former::Waiting(waiting) = &former { waiting } else { seed };
            if let Former::Retired(retired) = &former {
                self.head.core().children.pass_on_name(retired);
            }
            let held = match self.make(seed) {
                Ok(held) => held,
                Err(error) => {
                    drop(shard);
                    self.log(&error);
                    // It may be the last to have a key of the user's: before the error lies where it is returned.
                    drop_guarded(former);
                    return Created::Refused(error);
                }
            };
            first(held.actor());
            let seat = self.seat(seed, &held);
            let mut now = Some(held);
            match &former {
                Former::Nobody => shard.insert(seed.hash, seat),
                Former::Waiting(waiting) => {
                    shard.replace(seed.hash, |seat| StdArc::ptr_eq(&seat.seed, waiting), Some(seat));
                }
                Former::Retired(retired) => {
                    shard.replace(seed.hash, |seat| seat.is_of(retired), Some(seat));
                    // Its end is not noticed before the lock is given back: it looks at the seat.
                    self.heirs.add(retired, now.take());
                }
            }
            drop(shard);
            if let Former::Waiting(waiting) = &former {
                self.forget_waiting(waiting);
            }
            // Its first turn, unless that has to wait.
            drop(now);
            return Created::Done;
        }
    }

    /// Creates the actor of this seed under the first of its names that is free.
    pub fn make(&self, seed: &StdArc<Seed<K>>) -> Result<Held<M>, SpawnError> {
        let mut number = 0;
        loop {
            match (self.make)(&self.head, set_apart(&seed.name, number), seed) {
                // A key that prints alike has it. No number is given twice, so that nobody tries those of others.
                // Relaxed: only different numbers matter.
                Err(SpawnError::NameTaken { .. }) => {
                    number = self.twins.fetch_add(1, Ordering::Relaxed) as u64 + 1
                }
                done => return done,
            }
        }
    }

    /// Notes a new actor, and makes its seat.
    pub fn seat(&self, seed: &StdArc<Seed<K>>, held: &Held<M>) -> Seat<M, K> {
        let mut living = lock(&self.living);
        living.insert(held.actor().any_local(), seed.clone());
        // Relaxed: the lock orders it; see `set_capacity`.
        if let Some(capacity) = NonZeroUsize::new(self.capacity.load(Ordering::Relaxed)) {
            held.actor().set_capacity(capacity);
        }
        drop(living);
        Seat { seed: seed.clone(), actor: Some(held.actor().clone()) }
    }

    /// Changes the capacity of all mailboxes, also of those that are yet to be.
    pub fn set_capacity(&self, capacity: NonZeroUsize) {
        let living = lock(&self.living);
        // Relaxed: written under the lock under which it is read.
        self.capacity.store(capacity.get(), Ordering::Relaxed);
        // Under the lock, too: of two changes at once the same one counts for all.
        for actor in living.keys() {
            if let Ok(actor) = actor.typed::<M>() {
                actor.set_capacity(capacity);
            }
        }
    }

    /// The actors that have not ended, in the order of their creation.
    pub fn actors(&self) -> Vec<AnyRef> {
        let mut actors: Vec<AnyRef> = lock(&self.living).keys().cloned().collect();
        actors.sort_unstable_by_key(AnyRef::uid);
        actors
    }

    pub fn log(&self, error: &SpawnError) {
        let _ = crate::failure::guarded(|| {
            log::error!(target: "pointsman", "{}: an actor could not be created: {error}", self.head.path());
            Ok(())
        });
    }
}

/// What a group makes of its configuration.
pub trait Configured<M: Send + 'static, K: GroupKey>: Send + Sync {
    /// Reads it.
    fn decode(&self, config: &GroupConfig) -> Result<Box<dyn Any>, String>;

    /// Goes by what was read.
    fn apply(&self, group: &Group<M, K>, decoded: Box<dyn Any>);
}

/// How the actors of a group are told to end.
pub enum Termination<M> {
    /// Their mailboxes close behind what is in them.
    Closing,
    /// They get this message, and end when they think fit.
    Manual(Box<dyn Fn(&str) -> M + Send + Sync>),
}
