//! Routing in a group takes a message to its keys, by the outcome of the key router and the state of each key.

use crate::core::actor_ref::{ActorRef, Load};
use crate::core::any_ref::AnyRef;
use crate::core::error::SendError;
use crate::core::meaning::{Alike, Meaning};
use crate::core::multi_send::{Copies, Counted, Delivery, Spread, Untaken, spread_told};
use crate::core::pending_send::Succession;
use crate::core::recipient::{Accepted, Recipient};
use crate::group::entry::{Seed, StartCause};
use crate::group::forward::ToHeir;
use crate::group::key::GroupKey;
use crate::group::key_name::key_name;
use crate::group::outcome::Outcome;
use crate::group::restart_policy::WhileRestarting;
use crate::group::state::{Board, Created, Openness, Seat};
use crate::util::reclaim;
use std::cmp::Ordering;
use std::hash::Hasher;
use std::sync::Arc as StdArc;

/// This recipient stands behind the reference to a group. Aligned to a cache line, since all senders to the group read
/// it and the heap puts unrelated data beside it.
#[repr(align(64))]
pub struct ToGroup<M: Send + 'static, K: GroupKey>(pub StdArc<Board<M, K>>);

/// This recipient stands behind the reference to a key.
pub struct ToKey<M: Send + 'static, K: GroupKey> {
    board: StdArc<Board<M, K>>,
    key: K,
    hash: u64,
}

/// This type says what a copy has found at its key.
enum Met<M> {
    /// The copy was offered to an actor.
    Actor(Result<(), M>),
    /// The actor of the key waits to be re-created.
    Waiting(M),
    /// The actor of the key is passivated. The copy counts as sent, and is to be offered or refused.
    Retired(M),
    Nobody(M),
}

impl<M: Send + 'static, K: GroupKey> Board<M, K> {
    pub fn find<'s>(
        &'s self,
        key: &K,
        hash: u64,
        section: &'s reclaim::Section<'_>,
    ) -> Option<&'s Seat<M, K>> {
        self.table.find(hash, section, |seat| seat.seed.key == *key)
    }

    /// Puts a message into the mailbox of the key's actor, if the actor is there and has room. Most messages need
    /// nothing else; the caller does the rest for a message that it gets back. Keys are compared while the message is
    /// `counted`.
    #[inline]
    fn push_at_once(&self, key: &K, hash: u64, message: M, counted: Counted<'_>) -> Result<(), M> {
        let section = reclaim::section();
        let seat = self.find(key, hash, &section);
        counted.end();
        match seat {
            Some(Seat { actor: Some(actor), .. }) => actor.push_at_once(message),
            _ => Err(message),
        }
    }

    /// Offers a copy to the actor that has the key now. If the copy waits there for room and the actor is passivated,
    /// the copy goes on to the next actor of the key, if `creates` allows its creation.
    #[inline]
    fn meet(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        creates: bool,
        delivery: &Delivery<'_, M>,
    ) -> Met<M> {
        let section = reclaim::section();
        match self.find(key, hash, &section) {
            Some(Seat { actor: Some(actor), seed }) => {
                let succession = || -> Option<Box<dyn Succession<M>>> {
                    creates.then(|| Box::new(ToHeir { board: self.clone(), seed: seed.clone() }) as _)
                };
                match delivery.offer_unless_retired(actor, message, succession) {
                    Ok(()) => Met::Actor(Ok(())),
                    Err(Untaken::Refused(message)) => Met::Actor(Err(message)),
                    Err(Untaken::Retired(message)) => Met::Retired(message),
                }
            }
            Some(_) => Met::Waiting(message),
            None => Met::Nobody(message),
        }
    }

    /// Offers the message to the actor of the key, which is created if it is absent.
    #[inline]
    pub fn to_key(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        delivery: &Delivery<'_, M>,
        own: impl FnOnce() -> K,
    ) -> Result<(), M> {
        self.to_key_counting(key, hash, message, false, delivery, own)
    }

    /// As [`to_key`](Self::to_key); `counts` as at [`to_new`](Self::to_new).
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
        match self.meet(key, hash, message, true, delivery) {
            Met::Actor(done) => done,
            Met::Waiting(message) if self.while_restarting != WhileRestarting::SpawnAnew => {
                self.refuse(message, delivery)
            }
            Met::Waiting(message) | Met::Nobody(message) => {
                self.to_new(own(), hash, message, counts, delivery)
            }
            Met::Retired(message) => self.to_new(own(), hash, message, true, delivery),
        }
    }

    /// As [`to_key`](Self::to_key), but no actor is created.
    fn gently(
        self: &StdArc<Self>,
        key: &K,
        hash: u64,
        message: M,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M> {
        match self.meet(key, hash, message, false, delivery) {
            Met::Actor(done) => done,
            Met::Waiting(message) | Met::Retired(message) => self.refuse(message, delivery),
            Met::Nobody(message) => Err(message),
        }
    }

    /// Creates the actor of the key with this message as its first, or offers the message to the actor that another
    /// thread has created meanwhile. If `counts` is set, the message is offered or refused in any case: it is one of
    /// several copies, which is a delivery regardless of the other copies, or it was offered to a passivated actor.
    #[cold]
    #[inline(never)]
    fn to_new(
        self: &StdArc<Self>,
        key: K,
        hash: u64,
        message: M,
        mut counts: bool,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M> {
        let nobody = |message, counts| match counts {
            true => self.refuse(message, delivery),
            false => Err(message),
        };
        if !self.spawns() {
            return nobody(message, counts);
        }
        let name = key_name(&key.to_string());
        let seed = StdArc::new(Seed::new(key, hash, name, StartCause::OnMessage));
        let takes_over = self.while_restarting == WhileRestarting::SpawnAnew;
        let mut message = Some(message);
        loop {
            let created = self.create(&seed, takes_over, |actor| {
                if let Some(first) = message.take() {
                    message = delivery.offer(actor, first).err();
                }
            });
            let Some(again) = message.take() else { return Ok(()) };
            match created {
                Created::Done => return Err(again),
                Created::Refused(_) => return nobody(again, counts),
                Created::Taken => {}
            }
            match self.meet(&seed.key, hash, again, true, delivery) {
                Met::Actor(done) => return done,
                Met::Waiting(again) if !takes_over => return self.refuse(again, delivery),
                // The actor has gone meanwhile.
                Met::Waiting(again) | Met::Nobody(again) => message = Some(again),
                Met::Retired(again) => (message, counts) = (Some(again), true),
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
        let copy = self.copy.expect("whoever names several keys can clone messages");
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
            let refused = self.to_new(key, hash, next(&mut copies), true, delivery).err();
            copies.take_back(refused);
        }
        for (hash, key) in present {
            let copy = next(&mut copies);
            let refused = self.to_key_counting(&key, hash, copy, true, delivery, || key.clone()).err();
            copies.take_back(refused);
        }
        copies.left_over()
    }

    /// Sends a copy to the actor of each of these key slots.
    fn to_seats<'s>(
        &self,
        visit: impl FnOnce(&mut dyn FnMut(&'s Seat<M, K>)),
        message: M,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M>
    where
        Self: 's,
    {
        let copy = self.copy.expect("whoever names several keys can clone messages");
        let mut copies = Copies::of(message);
        // Each actor gets its copy when the next actor is found: only then is its copy known not to be the last.
        let mut held: Option<&ActorRef<M>> = None;
        visit(&mut |seat| match &seat.actor {
            Some(actor) => {
                if let Some(before) = held.replace(actor) {
                    let one = copies.next(|message| copy(delivery, message));
                    copies.take_back(delivery.offer(before, one).err());
                }
            }
            None => delivery.refuse(|| self.head.path()),
        });
        if let Some(last) = held {
            let one = copies.last();
            copies.take_back(delivery.offer(last, one).err());
        }
        copies.left_over()
    }

    /// Passes a message on to the keys that the key router names.
    fn route(self: &StdArc<Self>, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        if self.openness() == Openness::Closed {
            delivery.refuse(|| self.head.path());
            return Err(message);
        }
        let outcome = self.router.route(&message);
        self.route_as(outcome, message, delivery)
    }

    /// Passes a message on to the keys that this outcome names.
    fn route_as(
        self: &StdArc<Self>,
        outcome: Outcome<K>,
        message: M,
        delivery: &Delivery<'_, M>,
    ) -> Result<(), M> {
        match outcome {
            Outcome::Unicast(key) => {
                let hash = self.hash(&key);
                match self.meet(&key, hash, message, true, delivery) {
                    Met::Actor(done) => done,
                    Met::Waiting(message) if self.while_restarting != WhileRestarting::SpawnAnew => {
                        self.refuse(message, delivery)
                    }
                    Met::Waiting(message) | Met::Nobody(message) => {
                        self.to_new(key, hash, message, false, delivery)
                    }
                    Met::Retired(message) => self.to_new(key, hash, message, true, delivery),
                }
            }
            Outcome::GentleUnicast(key) => self.gently(&key, self.hash(&key), message, delivery),
            Outcome::Multicast(keys) => self.to_each(keys, message, delivery),
            Outcome::GentleMulticast(keys) => {
                let keys: Vec<(u64, K)> = keys.into_iter().map(|key| (self.hash(&key), key)).collect();
                let section = reclaim::section();
                let visit = |look: &mut dyn FnMut(_)| {
                    let seats = keys.iter().filter_map(|(hash, key)| self.find(key, *hash, &section));
                    seats.for_each(look);
                };
                self.to_seats(visit, message, delivery)
            }
            Outcome::Broadcast => {
                let section = reclaim::section();
                self.to_seats(|look| self.table.for_each(&section, look), message, delivery)
            }
            Outcome::Discard | Outcome::Default => {
                delivery.discard();
                Err(message)
            }
        }
    }

    pub fn is_closed(&self) -> bool {
        self.openness() == Openness::Closed
    }
}

impl<M: Send + 'static, K: GroupKey> ToKey<M, K> {
    pub fn new(board: StdArc<Board<M, K>>, key: K) -> Self {
        let hash = board.hash(&key);
        Self { board, key, hash }
    }
}

impl<M: Send + 'static, K: GroupKey> Spread<M> for ToGroup<M, K> {
    fn spread(&self, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        self.0.route(message, delivery)
    }
}

impl<M: Send + 'static, K: GroupKey> Spread<M> for ToKey<M, K> {
    fn spread(&self, message: M, delivery: &Delivery<'_, M>) -> Result<(), M> {
        if self.board.is_closed() {
            delivery.refuse(|| self.board.head.path());
            return Err(message);
        }
        self.board.to_key(&self.key, self.hash, message, delivery, || self.key.clone())
    }
}

impl<M: Send + 'static, K: GroupKey> Recipient<M> for ToGroup<M, K> {
    fn deliver(&self, message: M) -> Result<Accepted, SendError<M>> {
        let board = &self.0;
        if board.is_closed() {
            return Err(SendError::Closed(message));
        }
        let counted = Counted::begin(&board.system);
        let outcome = board.router.route(&message);
        let done = match &outcome {
            Outcome::Unicast(key) | Outcome::GentleUnicast(key) => {
                board.push_at_once(key, board.hash(key), message, counted)
            }
            _ => {
                counted.end();
                Err(message)
            }
        };
        done.map(|()| Accepted::Passed).or_else(|message| {
            spread_told(&board.system, message, |message, delivery| {
                board.route_as(outcome, message, delivery)
            })
        })
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn any(&self) -> Option<AnyRef> {
        Some(self.0.head.clone())
    }

    fn place(&self) -> Option<AnyRef> {
        Some(self.0.head.clone())
    }

    fn spread(&self) -> Option<&dyn Spread<M>> {
        Some(self)
    }
}

impl<M: Send + 'static, K: GroupKey> Recipient<M> for ToKey<M, K> {
    fn deliver(&self, message: M) -> Result<Accepted, SendError<M>> {
        if self.board.is_closed() {
            return Err(SendError::Closed(message));
        }
        let counted = Counted::begin(&self.board.system);
        let done = self.board.push_at_once(&self.key, self.hash, message, counted);
        done.map(|()| Accepted::Passed).or_else(|message| {
            spread_told(&self.board.system, message, |message, delivery| {
                Spread::spread(self, message, delivery)
            })
        })
    }

    fn is_closed(&self) -> bool {
        self.board.is_closed()
    }

    /// Returns the load of the key's actor. An actor that would be created has nothing to do, also in the place of a
    /// passivated actor.
    fn load(&self) -> Load {
        if self.board.is_closed() {
            return Load::Closed;
        }
        let section = reclaim::section();
        match self.board.find(&self.key, self.hash, &section) {
            Some(Seat { actor: Some(actor), .. }) if !actor.is_retired() => actor.load(),
            Some(Seat { actor: None, .. }) => Load::Suspended,
            // Without the lock that `spawns` takes: a message that is refused nevertheless goes to the next routee.
            Some(_) | None if self.board.openness() == Openness::Open => Load::Idle,
            Some(_) | None => Load::Closed,
        }
    }

    fn any(&self) -> Option<AnyRef> {
        Some(self.board.head.clone())
    }

    fn meaning(&self) -> Option<&dyn Meaning> {
        Some(self)
    }

    fn place(&self) -> Option<AnyRef> {
        Some(self.board.head.clone())
    }

    fn spread(&self) -> Option<&dyn Spread<M>> {
        Some(self)
    }
}

/// References to the same key of the same group are alike.
impl<M: Send + 'static, K: GroupKey> Alike for ToKey<M, K> {
    fn is_like(&self, other: &Self) -> bool {
        StdArc::ptr_eq(&self.board, &other.board) && self.hash == other.hash && self.key == other.key
    }

    fn feed(&self, state: &mut dyn Hasher) {
        state.write_u64(self.hash);
    }

    /// Orders by the group, and then by the printed key, which the name of the actor is made from.
    fn order(&self, other: &Self) -> Ordering {
        let board = |at: &Self| StdArc::as_ptr(&at.board) as usize;
        let by_name = || self.key.to_string().cmp(&other.key.to_string());
        board(self).cmp(&board(other)).then_with(by_name).then_with(|| self.hash.cmp(&other.hash))
    }
}
