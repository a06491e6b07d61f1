//! Routing in a group takes a message to its keys, by the outcome of the key router and the state of each key.

use crate::core::accounting::InFlightGuard;
use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SendError;
use crate::core::multi_send::{Copies, Delivery, MultiRecipient, RefusedCopy, spread_told};
use crate::core::pending_send::SuccessorLookup;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::recipient_identity::{RecipientIdentity, SameRecipient};
use crate::core::system::SystemCore;
use crate::group::forward::ForwardToSuccessor;
use crate::group::key::GroupKey;
use crate::group::key_entry::{KeyEntry, SpawnCause};
use crate::group::key_name::key_name;
use crate::group::key_route::KeyRoute;
use crate::group::restart_policy::WhileRestarting;
use crate::group::state::{Created, GroupPhase, GroupState, KeySlot};
use crate::util::reclaim;
use std::cmp::Ordering;
use std::hash::Hasher;
use std::sync::Arc as StdArc;

/// This recipient stands behind the reference to a group. Aligned to a cache line, since all senders to the group read
/// it and the heap puts unrelated data beside it.
#[repr(align(64))]
pub(crate) struct ToGroup<M: Send + 'static, K: GroupKey>(pub StdArc<GroupState<M, K>>);

/// This recipient stands behind the reference to a key.
pub(crate) struct ToKey<M: Send + 'static, K: GroupKey> {
    group_state: StdArc<GroupState<M, K>>,
    key: K,
    hash: u64,
}

/// This type says what a copy has found at its key.
enum KeyLookup<M> {
    /// The copy was offered to an actor.
    Actor(Result<(), M>),
    /// The actor of the key waits to be re-created.
    Waiting(M),
    /// The actor of the key is passivated. The copy counts as sent, and is to be offered or refused.
    Passivated(M),
    /// No actor has the key.
    Absent(M),
}

impl<M: Send + 'static, K: GroupKey> GroupState<M, K> {
    pub(crate) fn find<'s>(
        &'s self,
        key: &K,
        hash: u64,
        section: &'s reclaim::Section<'_>,
    ) -> Option<&'s KeySlot<M, K>> {
        self.table.find(hash, section, |slot| slot.key_entry.key == *key)
    }

    /// Puts a message into the mailbox of the key's actor, if the actor is there and has room. Most messages need
    /// nothing else; the caller does the rest for a message that it gets back. Keys are compared while the message is
    /// `counted`.
    #[inline]
    fn push_at_once(
        &self,
        key: &K,
        hash: u64,
        message: M,
        counted: InFlightGuard<&SystemCore>,
    ) -> Result<(), M> {
        let section = reclaim::section();
        let slot = self.find(key, hash, &section);
        counted.end();
        match slot {
            Some(KeySlot { actor: Some(actor), .. }) => actor.push_at_once(message),
            _ => Err(message),
        }
    }

    /// Offers a copy to the actor that has the key now. If the copy waits there for room and the actor is passivated,
    /// the copy goes on to the next actor of the key, if `creates` allows its creation.
    #[inline]
    fn look_up_key(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        creates: bool,
        delivery: &Delivery<'_, M>,
    ) -> KeyLookup<M> {
        let section = reclaim::section();
        match self.find(key, hash, &section) {
            Some(KeySlot { actor: Some(actor), key_entry }) => {
                let succession = || -> Option<Box<dyn SuccessorLookup<M>>> {
                    creates.then(|| {
                        Box::new(ForwardToSuccessor {
                            group_state: self.clone(),
                            key_entry: key_entry.clone(),
                        }) as _
                    })
                };
                match delivery.offer_unless_retired(actor, message, succession) {
                    Ok(()) => KeyLookup::Actor(Ok(())),
                    Err(RefusedCopy::Refused(message)) => KeyLookup::Actor(Err(message)),
                    Err(RefusedCopy::Retired(message)) => KeyLookup::Passivated(message),
                }
            }
            Some(_) => KeyLookup::Waiting(message),
            None => KeyLookup::Absent(message),
        }
    }

    /// Offers the message to the actor of the key, which is created if it is absent.
    #[inline]
    pub(crate) fn to_key(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        delivery: &Delivery<'_, M>,
        own: impl FnOnce() -> K,
    ) -> Result<(), M> {
        self.to_key_counting(key, hash, message, false, delivery, own)
    }

    /// As [`to_key`](Self::to_key); `counts` as at [`to_created`](Self::to_created).
    #[inline]
    fn to_key_counting(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        counts: bool,
        delivery: &Delivery<'_, M>,
        own: impl FnOnce() -> K,
    ) -> Result<(), M> {
        match self.unless_absent(key, hash, message, counts, delivery) {
            Ok(done) => done,
            Err((message, counts)) => self.to_created(own(), hash, message, counts, delivery),
        }
    }

    /// Offers a copy to the actor of the key. The error says that the actor is to be created first: it has the copy, and
    /// `counts` as at [`to_created`](Self::to_created).
    #[inline]
    fn unless_absent(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        counts: bool,
        delivery: &Delivery<'_, M>,
    ) -> Result<Result<(), M>, (M, bool)> {
        match self.look_up_key(key, hash, message, true, delivery) {
            KeyLookup::Actor(done) => Ok(done),
            KeyLookup::Waiting(message) if self.while_restarting != WhileRestarting::SpawnAnew => {
                Ok(self.refuse(message, delivery))
            }
            KeyLookup::Waiting(message) | KeyLookup::Absent(message) => Err((message, counts)),
            KeyLookup::Passivated(message) => Err((message, true)),
        }
    }

    /// As [`to_key`](Self::to_key), but no actor is created.
    fn to_present_key(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M> {
        match self.look_up_key(key, hash, message, false, delivery) {
            KeyLookup::Actor(done) => done,
            KeyLookup::Waiting(message) | KeyLookup::Passivated(message) => self.refuse(message, delivery),
            KeyLookup::Absent(message) => Err(message),
        }
    }

    /// Creates the actor of the key with this message as its first, or offers the message to the actor that another
    /// thread has created meanwhile. `counts`: the send already counts this message as a delivery (a copy of several, or
    /// offered to a passivated actor). So a refusal is reported to `delivery`; otherwise the message comes back.
    #[cold]
    #[inline(never)]
    fn to_created(
        self: &StdArc<Self>,
        key: K,
        hash: u64,
        message: M,
        mut counts: bool,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M> {
        let refused = |message, counts| match counts {
            true => self.refuse(message, delivery),
            false => Err(message),
        };
        if !self.spawns() {
            return refused(message, counts);
        }
        let name = key_name(&key.to_string());
        let key_entry = StdArc::new(KeyEntry::new(key, hash, name, SpawnCause::OnMessage));
        let takes_over = self.while_restarting == WhileRestarting::SpawnAnew;
        let mut message = Some(message);
        loop {
            let created = self.create(&key_entry, takes_over, |actor| {
                if let Some(first) = message.take() {
                    message = delivery.offer(actor, first).err();
                }
            });
            let Some(again) = message.take() else { return Ok(()) };
            match created {
                Created::Done => return Err(again),
                Created::Refused(_) => return refused(again, counts),
                Created::Taken => {}
            }
            match self.look_up_key(&key_entry.key, hash, again, true, delivery) {
                KeyLookup::Actor(done) => return done,
                KeyLookup::Waiting(again) if !takes_over => return self.refuse(again, delivery),
                // The actor has gone meanwhile.
                KeyLookup::Waiting(again) | KeyLookup::Absent(again) => message = Some(again),
                KeyLookup::Passivated(again) => (message, counts) = (Some(again), true),
            }
        }
    }

    /// Refuses a copy for a key whose actor takes nothing at the moment.
    fn refuse(&self, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        delivery.refuse(|| self.head.path());
        Err(message)
    }

    /// Sends a copy to each key of the list. Absent actors are created first, each with its copy as its first message.
    fn to_each(self: &StdArc<Self>, keys: Vec<K>, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        let copy = self.copy.expect("a key router that names several keys has a copy function");
        let mut left = keys.len();
        let mut copies = Copies::of(message);
        let mut next = |copies: &mut Copies<M>| {
            left -= 1;
            match left {
                0 => copies.last(),
                _ => copies.next(|message| copy(delivery, message)),
            }
        };
        let keys: Vec<(u64, K)> = keys.into_iter().map(|key| (self.hash(&key), key)).collect();
        let mut present = Vec::with_capacity(keys.len());
        for (hash, key) in keys {
            if self.find(&key, hash, &reclaim::section()).is_some() {
                present.push((hash, key));
                continue;
            }
            let refused = self.to_created(key, hash, next(&mut copies), true, delivery).err();
            copies.reclaim_copy(refused);
        }
        for (hash, key) in present {
            let copy = next(&mut copies);
            let refused = self.to_key_counting(&key, hash, copy, true, delivery, || key.clone()).err();
            copies.reclaim_copy(refused);
        }
        copies.into_unsent()
    }

    /// Sends a copy to the actor of each of these key slots.
    fn to_slots<'s>(
        &self,
        visit: impl FnOnce(&mut dyn FnMut(&'s KeySlot<M, K>)),
        message: M,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M>
    where
        Self: 's,
    {
        let copy = self.copy.expect("a key router that names several keys has a copy function");
        let mut copies = Copies::of(message);
        // Each actor gets its copy when the next actor is found: only then is its copy known not to be the last.
        let mut held: Option<&ActorRef<M>> = None;
        visit(&mut |slot| match &slot.actor {
            Some(actor) => {
                if let Some(before) = held.replace(actor) {
                    let one = copies.next(|message| copy(delivery, message));
                    copies.reclaim_copy(delivery.offer(before, one).err());
                }
            }
            None => delivery.refuse(|| self.head.path()),
        });
        if let Some(last) = held {
            let one = copies.last();
            copies.reclaim_copy(delivery.offer(last, one).err());
        }
        copies.into_unsent()
    }

    /// Passes a message on to the keys that the key router names.
    fn route(self: &StdArc<Self>, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        if self.phase() == GroupPhase::Closed {
            delivery.refuse(|| self.head.path());
            return Err(message);
        }
        let outcome = (self.router)(&message);
        self.route_as(outcome, message, delivery)
    }

    /// Passes a message on to the keys that this outcome names.
    fn route_as(
        self: &StdArc<Self>,
        outcome: KeyRoute<K>,
        message: M,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M> {
        match outcome {
            KeyRoute::Unicast(key) => {
                let hash = self.hash(&key);
                match self.unless_absent(&key, hash, message, false, delivery) {
                    Ok(done) => done,
                    Err((message, counts)) => self.to_created(key, hash, message, counts, delivery),
                }
            }
            KeyRoute::GentleUnicast(key) => self.to_present_key(&key, self.hash(&key), message, delivery),
            KeyRoute::Multicast(keys) => self.to_each(keys, message, delivery),
            KeyRoute::GentleMulticast(keys) => {
                let keys: Vec<(u64, K)> = keys.into_iter().map(|key| (self.hash(&key), key)).collect();
                let section = reclaim::section();
                let visit = |look: &mut dyn FnMut(_)| {
                    let slots = keys.iter().filter_map(|(hash, key)| self.find(key, *hash, &section));
                    slots.for_each(look);
                };
                self.to_slots(visit, message, delivery)
            }
            KeyRoute::Broadcast => {
                let section = reclaim::section();
                self.to_slots(|look| self.table.for_each(&section, look), message, delivery)
            }
            KeyRoute::Discard | KeyRoute::Default => {
                delivery.discard();
                Err(message)
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase() == GroupPhase::Closed
    }
}

impl<M: Send + 'static, K: GroupKey> ToKey<M, K> {
    pub(crate) fn new(group_state: StdArc<GroupState<M, K>>, key: K) -> Self {
        let hash = group_state.hash(&key);
        Self { group_state, key, hash }
    }
}

impl<M: Send + 'static, K: GroupKey> MultiRecipient<M> for ToGroup<M, K> {
    fn spread(&self, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        self.0.route(message, delivery)
    }
}

impl<M: Send + 'static, K: GroupKey> MultiRecipient<M> for ToKey<M, K> {
    fn spread(&self, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        if self.group_state.is_closed() {
            delivery.refuse(|| self.group_state.head.path());
            return Err(message);
        }
        self.group_state.to_key(&self.key, self.hash, message, delivery, || self.key.clone())
    }
}

impl<M: Send + 'static, K: GroupKey> OwnRecipient<M> for ToGroup<M, K> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let group_state = &self.0;
        if group_state.is_closed() {
            return Err(SendError::Closed(message));
        }
        let counted = InFlightGuard::begin(&*group_state.system);
        let outcome = (group_state.router)(&message);
        let done = match &outcome {
            KeyRoute::Unicast(key) | KeyRoute::GentleUnicast(key) => {
                group_state.push_at_once(key, group_state.hash(key), message, counted)
            }
            _ => {
                counted.end();
                Err(message)
            }
        };
        done.map(|()| DeliveryStatus::Passed).or_else(|message| {
            spread_told(&group_state.system, message, |message, delivery| {
                group_state.route_as(outcome, message, delivery)
            })
        })
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        Some(self.0.head.clone())
    }

    fn place(&self) -> Option<AnyActorRef> {
        Some(self.0.head.clone())
    }

    fn spread(&self) -> Option<&dyn MultiRecipient<M>> {
        Some(self)
    }
}

impl<M: Send + 'static, K: GroupKey> OwnRecipient<M> for ToKey<M, K> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        if self.group_state.is_closed() {
            return Err(SendError::Closed(message));
        }
        let counted = InFlightGuard::begin(&*self.group_state.system);
        let done = self.group_state.push_at_once(&self.key, self.hash, message, counted);
        done.map(|()| DeliveryStatus::Passed).or_else(|message| {
            spread_told(&self.group_state.system, message, |message, delivery| {
                MultiRecipient::spread(self, message, delivery)
            })
        })
    }

    fn is_closed(&self) -> bool {
        self.group_state.is_closed()
    }

    /// Returns the load of the key's actor. An actor that would be created has nothing to do, also in the place of a
    /// passivated actor.
    fn load(&self) -> RecipientLoad {
        if self.group_state.is_closed() {
            return RecipientLoad::Closed;
        }
        let section = reclaim::section();
        match self.group_state.find(&self.key, self.hash, &section) {
            Some(KeySlot { actor: Some(actor), .. }) if !actor.is_retired() => actor.load(),
            Some(KeySlot { actor: None, .. }) => RecipientLoad::Suspended,
            // Without the lock that `spawns` takes: a message that is refused nevertheless goes to the next routee.
            Some(_) | None if self.group_state.phase() == GroupPhase::Open => RecipientLoad::Idle,
            Some(_) | None => RecipientLoad::Closed,
        }
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        Some(self.group_state.head.clone())
    }

    fn meaning(&self) -> Option<&dyn RecipientIdentity> {
        Some(self)
    }

    fn place(&self) -> Option<AnyActorRef> {
        Some(self.group_state.head.clone())
    }

    fn spread(&self) -> Option<&dyn MultiRecipient<M>> {
        Some(self)
    }
}

/// References to the same key of the same group are alike.
impl<M: Send + 'static, K: GroupKey> SameRecipient for ToKey<M, K> {
    fn is_like(&self, other: &Self) -> bool {
        StdArc::ptr_eq(&self.group_state, &other.group_state)
            && self.hash == other.hash
            && self.key == other.key
    }

    fn feed(&self, state: &mut dyn Hasher) {
        state.write_u64(self.hash);
    }

    /// Orders by the group, and then by the printed key, which the name of the actor is made from.
    fn order(&self, other: &Self) -> Ordering {
        let group_state = |at: &Self| StdArc::as_ptr(&at.group_state) as usize;
        let by_name = || self.key.to_string().cmp(&other.key.to_string());
        group_state(self).cmp(&group_state(other)).then_with(by_name).then_with(|| self.hash.cmp(&other.hash))
    }
}
