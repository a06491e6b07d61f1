//! The table of reply ports that were sent to other nodes.
//!
//! A port that leaves the node stays here, and a *token* of 16 bytes goes in its place. The token names the slot, and the
//! generation of the slot, so that a late answer never meets the slot's next port. It has a keyed hash of both, so that a
//! peer can use the tokens that it was given and make none. The first answer takes the port out: a reply or a refusal of the
//! peer, the loss of the peer, a new UID of this node, or the sweep after the asker has stopped waiting.
//!
//! ```text
//! index: 3 bytes | generation: 5 bytes | keyed hash: 8 bytes, all little-endian
//! ```

use crate::remote::batch::{TOKEN_LEN, Token};
use crate::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

/// The bits of a slot's index in a token.
const INDEX_BITS: u32 = 24;

/// The last generation of a slot: the slot is not used again behind it.
const GENERATION_MAX: u64 = (1 << (64 - INDEX_BITS)) - 1;

/// A reply port in the table.
pub(crate) trait Port {
    /// Whether the asker still waits.
    fn is_wanted(&self) -> bool;

    /// Makes a port for one of several answers, if the port was sent for several.
    fn part(&mut self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// The reason why an answer has no port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPort {
    /// The port was answered before, or the asker has stopped waiting.
    Late,
    /// This node has given no such token to the peer.
    Forged,
}

/// The table has so many ports that are waited for, and no more are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortsFull {
    pub(crate) max: usize,
}

/// A port that was swept, since the asker has stopped waiting.
#[derive(Debug)]
pub(crate) struct Unwanted<P> {
    /// The UID of the peer that has the token.
    pub(crate) peer: u64,
    pub(crate) token: Token,
    pub(crate) port: P,
}

/// The counts of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PortCounts {
    /// The ports that are waited for.
    pub(crate) pending: usize,
    /// The answers that came too late.
    pub(crate) late: u64,
    /// The answers with tokens that were not given to their senders.
    pub(crate) forged: u64,
}

/// The reply ports of a node that were sent to others. Ports leave it by value, and are completed and dropped without its
/// lock.
pub(crate) struct Ports<P> {
    secret: RandomState,
    slots: Mutex<Slots<P>>,
}

struct Slots<P> {
    all: Vec<Slot<P>>,
    /// The free ones, the longest free first: a generation lasts the longer.
    free: VecDeque<u32>,
    max: usize,
    counts: PortCounts,
    /// The number of ports at which an insertion sweeps.
    swept_from: usize,
}

struct Slot<P> {
    /// The generation of the port that is there, or of the next one.
    generation: u64,
    entry: Option<Entry<P>>,
}

struct Entry<P> {
    port: P,
    /// The UID of the peer that has the token.
    peer: u64,
}

impl<P: Port> Ports<P> {
    /// Makes a table of at most `max` ports, and of at most 2^24.
    pub(crate) fn new(max: usize) -> Self {
        let max = max.min(1 << INDEX_BITS);
        let slots = Slots {
            all: Vec::new(),
            free: VecDeque::new(),
            max,
            counts: PortCounts::default(),
            swept_from: max / 2,
        };
        Self { secret: RandomState::new(), slots: Mutex::new(slots) }
    }

    fn held(&self) -> MutexGuard<'_, Slots<P>> {
        lock(&self.slots)
    }

    /// Keeps a port for the peer of this UID, and returns its token. `swept` gets the ports that are not waited for any more, if
    /// the table has been swept for room. If it is full, the port comes back.
    pub(crate) fn export(
        &self,
        port: P,
        peer: u64,
        swept: &mut Vec<Unwanted<P>>,
    ) -> Result<Token, (P, PortsFull)> {
        let mut held = self.held();
        if held.counts.pending >= held.swept_from {
            self.sweep_held(&mut held, swept);
            // The next sweep pays off when half of what is left is used up. A full table is swept each second alone.
            let pending = held.counts.pending;
            held.swept_from = (held.max / 2).max(pending + (held.max - pending).div_ceil(2));
            if pending == held.max {
                held.swept_from = usize::MAX;
            }
        }
        if held.counts.pending >= held.max {
            return Err((port, PortsFull { max: held.max }));
        }
        let index = match held.free.pop_front() {
            Some(index) => index,
            // Slots whose generations are used up are in no list, so there may be more slots than ports.
            None if held.all.len() < 1 << INDEX_BITS => {
                held.all.push(Slot { generation: 0, entry: None });
                // There are at most 2^24.
                (held.all.len() - 1) as u32
            }
            None => return Err((port, PortsFull { max: held.max })),
        };
        held.counts.pending += 1;
        let slot = &mut held.all[index as usize];
        debug_assert!(slot.entry.is_none());
        slot.entry = Some(Entry { port, peer });
        let token = self.token(index, slot.generation);
        Ok(token)
    }

    /// Takes the port of an answer from the peer of this UID.
    pub(crate) fn take(&self, token: Token, peer: u64) -> Result<P, NoPort> {
        let named = self.read(token);
        let mut held = self.held();
        let found = match named {
            None => Err(NoPort::Forged),
            Some((index, generation)) => held.take(index, generation, Some(peer)),
        };
        match found {
            Ok(_) => {}
            Err(NoPort::Late) => held.counts.late += 1,
            Err(NoPort::Forged) => held.counts.forged += 1,
        }
        found
    }

    /// Makes a port for one of several answers to a port, which stays. `None` if the port takes one answer.
    pub(crate) fn part(&self, token: Token, peer: u64) -> Result<Option<P>, NoPort> {
        let named = self.read(token);
        let mut held = self.held();
        let found = match named {
            None => Err(NoPort::Forged),
            Some((index, generation)) => held.part(index, generation, peer),
        };
        match found {
            Ok(_) => {}
            Err(NoPort::Late) => held.counts.late += 1,
            Err(NoPort::Forged) => held.counts.forged += 1,
        }
        found
    }

    /// Takes a port back whose token was not sent.
    pub(crate) fn withdraw(&self, token: Token) -> Option<P> {
        let (index, generation) = self.read(token)?;
        self.held().take(index, generation, None).ok()
    }

    /// Whether the asker of this token still waits.
    pub(crate) fn is_wanted(&self, token: Token) -> bool {
        let Some((index, generation)) = self.read(token) else { return false };
        let held = self.held();
        let slot = held.all.get(index as usize).filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.entry.as_ref()).is_some_and(|entry| entry.port.is_wanted())
    }

    /// Takes the ports out that wait for the peer of this UID, which is gone.
    pub(crate) fn peer_down(&self, peer: u64) -> Vec<P> {
        self.held()
            .take_where(|entry| entry.peer == peer)
            .into_iter()
            .map(|(_, _, entry)| entry.port)
            .collect()
    }

    /// Takes all ports out: this node has a new UID.
    pub(crate) fn take_all(&self) -> Vec<P> {
        self.held().take_where(|_| true).into_iter().map(|(_, _, entry)| entry.port).collect()
    }

    /// Takes the ports out whose askers have stopped waiting. Called each second.
    pub(crate) fn sweep(&self) -> Vec<Unwanted<P>> {
        let mut swept = Vec::new();
        let mut held = self.held();
        self.sweep_held(&mut held, &mut swept);
        held.swept_from = held.max / 2;
        swept
    }

    pub(crate) fn counts(&self) -> PortCounts {
        self.held().counts
    }

    fn sweep_held(&self, held: &mut Slots<P>, swept: &mut Vec<Unwanted<P>>) {
        let taken = held.take_where(|entry| !entry.port.is_wanted()).into_iter();
        swept.extend(taken.map(|(index, generation, Entry { port, peer })| {
            let token = self.token(index, generation);
            Unwanted { peer, token, port }
        }));
    }

    fn token(&self, index: u32, generation: u64) -> Token {
        let place = u64::from(index) | generation << INDEX_BITS;
        let mut token = [0; TOKEN_LEN];
        let (head, tail) = token.split_at_mut(size_of::<u64>());
        head.copy_from_slice(&place.to_le_bytes());
        tail.copy_from_slice(&self.secret.hash_one(place).to_le_bytes());
        token
    }

    /// The slot and the generation of a token that this table has made.
    fn read(&self, token: Token) -> Option<(u32, u64)> {
        let mut place = [0; size_of::<u64>()];
        place.copy_from_slice(&token[..size_of::<u64>()]);
        let place = u64::from_le_bytes(place);
        let index = (place & ((1 << INDEX_BITS) - 1)) as u32;
        let generation = place >> INDEX_BITS;
        (self.token(index, generation) == token).then_some((index, generation))
    }
}

impl<P: Port> Slots<P> {
    fn part(&mut self, index: u32, generation: u64, peer: u64) -> Result<Option<P>, NoPort> {
        let slot = self.all.get_mut(index as usize).ok_or(NoPort::Forged)?;
        match &mut slot.entry {
            Some(entry) if slot.generation == generation && entry.peer != peer => Err(NoPort::Forged),
            Some(entry) if slot.generation == generation => Ok(entry.port.part()),
            _ => Err(NoPort::Late),
        }
    }
}

impl<P> Slots<P> {
    /// Takes the port of this generation, if the peer is that of the token.
    fn take(&mut self, index: u32, generation: u64, peer: Option<u64>) -> Result<P, NoPort> {
        let slot = self.all.get_mut(index as usize).ok_or(NoPort::Forged)?;
        if slot.generation != generation {
            return Err(NoPort::Late);
        }
        match &slot.entry {
            None => return Err(NoPort::Late),
            Some(entry) if peer.is_some_and(|peer| peer != entry.peer) => return Err(NoPort::Forged),
            Some(_) => {}
        }
        let entry = slot.entry.take().ok_or(NoPort::Late)?;
        self.freed(index);
        Ok(entry.port)
    }

    /// Takes the entries out that `is_taken` names, with their slots and generations.
    fn take_where(&mut self, is_taken: impl Fn(&Entry<P>) -> bool) -> Vec<(u32, u64, Entry<P>)> {
        let mut taken = Vec::new();
        for (index, slot) in (0..).zip(&mut self.all) {
            let generation = slot.generation;
            taken.extend(slot.entry.take_if(|entry| is_taken(entry)).map(|entry| (index, generation, entry)));
        }
        for (index, ..) in &taken {
            self.freed(*index);
        }
        taken
    }

    /// The slot is empty: its next port has another generation.
    fn freed(&mut self, index: u32) {
        self.counts.pending -= 1;
        let slot = &mut self.all[index as usize];
        slot.generation += 1;
        if slot.generation <= GENERATION_MAX {
            self.free.push_back(index);
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A port with a number, whose asker may stop waiting.
    #[derive(Debug, Clone)]
    struct Ask(u32, Arc<AtomicBool>);

    impl Ask {
        fn new(number: u32) -> Self {
            Self(number, Arc::new(AtomicBool::new(true)))
        }

        fn stop_waiting(&self) {
            self.1.store(false, Ordering::Relaxed);
        }
    }

    impl Port for Ask {
        fn is_wanted(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }

        fn part(&mut self) -> Option<Self> {
            (self.0 >= 100).then(|| Self::new(self.0 + 1))
        }
    }

    fn export(ports: &Ports<Ask>, number: u32, peer: u64) -> Token {
        ports.export(Ask::new(number), peer, &mut Vec::new()).map_err(|(_, full)| full).unwrap()
    }

    fn number(taken: Result<Ask, NoPort>) -> Result<u32, NoPort> {
        taken.map(|Ask(number, _)| number)
    }

    #[test]
    fn the_first_answer_of_the_peer_takes_the_port_and_a_second_is_late() {
        let ports = Ports::new(10);
        let (one, other) = (export(&ports, 1, 7), export(&ports, 2, 8));
        assert_ne!(one, other);
        assert_eq!(number(ports.take(one, 8)), Err(NoPort::Forged));
        assert!(ports.is_wanted(one));
        assert_eq!(number(ports.take(one, 7)), Ok(1));
        assert_eq!(number(ports.take(one, 7)), Err(NoPort::Late));
        // The slot's next port has another token.
        let next = export(&ports, 3, 7);
        assert_eq!((next[..3].to_vec(), next == one), (one[..3].to_vec(), false));
        assert_eq!(number(ports.take(one, 7)), Err(NoPort::Late));
        assert_eq!((ports.is_wanted(one), ports.is_wanted(next)), (false, true));
        assert_eq!(ports.counts(), PortCounts { pending: 2, late: 2, forged: 1 });
    }

    #[test]
    fn a_port_for_several_answers_stays_until_it_is_taken() {
        let ports = Ports::new(10);
        let (several, one) = (export(&ports, 100, 7), export(&ports, 1, 7));
        let part = |token, peer| ports.part(token, peer).map(|part| part.map(|Ask(number, _)| number));
        assert_eq!((part(several, 7), part(several, 7)), (Ok(Some(101)), Ok(Some(101))));
        assert_eq!((part(several, 8), part([3; TOKEN_LEN], 7)), (Err(NoPort::Forged), Err(NoPort::Forged)));
        assert_eq!((part(one, 7), number(ports.take(one, 7))), (Ok(None), Ok(1)));
        assert_eq!((number(ports.take(several, 7)), part(several, 7)), (Ok(100), Err(NoPort::Late)));
        assert_eq!(ports.counts(), PortCounts { pending: 0, late: 1, forged: 2 });
    }

    /// A token of another slot, of another generation, of another table, and each of its bits.
    #[test]
    fn a_token_that_was_not_given_finds_nothing() {
        let ports = Ports::new(10);
        let token = export(&ports, 1, 7);
        export(&ports, 2, 7);
        for bit in 0..8 * TOKEN_LEN {
            let mut forged = token;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(number(ports.take(forged, 7)), Err(NoPort::Forged), "bit {bit}");
            assert!(!ports.is_wanted(forged) && ports.withdraw(forged).is_none());
        }
        let other = Ports::new(10);
        assert_eq!(number(other.take(token, 7)), Err(NoPort::Forged));
        export(&other, 3, 7);
        assert_eq!(number(other.take(token, 7)), Err(NoPort::Forged));
        assert_eq!(ports.counts(), PortCounts { pending: 2, late: 0, forged: 128 });
        assert_eq!(number(ports.take(token, 7)), Ok(1));
    }

    #[test]
    fn one_port_more_than_the_limit_comes_back() {
        let ports = Ports::new(3);
        let tokens: Vec<Token> = (0..3).map(|number| export(&ports, number, 7)).collect();
        let (back, full) = ports.export(Ask::new(9), 7, &mut Vec::new()).unwrap_err();
        assert_eq!((back.0, full), (9, PortsFull { max: 3 }));
        assert_eq!(ports.withdraw(tokens[1]).unwrap().0, 1);
        export(&ports, 4, 7);
        assert!(ports.export(Ask::new(9), 7, &mut Vec::new()).is_err());
        assert_eq!(ports.counts(), PortCounts { pending: 3, late: 0, forged: 0 });
    }

    #[test]
    fn ports_that_are_not_waited_for_are_swept_for_room_and_each_second() {
        let ports = Ports::new(4);
        let mut swept = Vec::new();
        let asks: Vec<Ask> = (0..3).map(Ask::new).collect();
        let mut tokens = Vec::new();
        for (peer, ask) in (70..).zip(&asks) {
            tokens.push(ports.export(ask.clone(), peer, &mut swept).unwrap());
        }
        asks[0].stop_waiting();
        asks[2].stop_waiting();
        assert!(swept.is_empty());
        ports.export(Ask::new(3), 73, &mut swept).unwrap();
        let named: Vec<_> = swept.iter().map(|swept| (swept.peer, swept.token, swept.port.0)).collect();
        assert_eq!(named, [(70, tokens[0], 0), (72, tokens[2], 2)]);
        assert_eq!(number(ports.take(tokens[0], 70)), Err(NoPort::Late));
        asks[1].stop_waiting();
        let swept = ports.sweep();
        assert_eq!(swept.iter().map(|swept| swept.peer).collect::<Vec<_>>(), [71]);
        assert_eq!(ports.counts(), PortCounts { pending: 1, late: 1, forged: 0 });
    }

    #[test]
    fn a_full_table_is_swept_once_until_the_next_second() {
        let ports = Ports::new(2);
        let asks: Vec<Ask> = (0..2).map(Ask::new).collect();
        for ask in &asks {
            ports.export(ask.clone(), 7, &mut Vec::new()).unwrap();
        }
        assert!(ports.export(Ask::new(9), 7, &mut Vec::new()).is_err());
        asks[0].stop_waiting();
        assert!(ports.export(Ask::new(9), 7, &mut Vec::new()).is_err());
        assert_eq!(ports.sweep().len(), 1);
        asks[1].stop_waiting();
        let mut swept = Vec::new();
        assert!(ports.export(Ask::new(9), 7, &mut swept).is_ok());
        assert_eq!(swept.len(), 1);
    }

    #[test]
    fn a_peer_that_is_gone_leaves_the_ports_of_others() {
        let ports = Ports::new(10);
        let tokens: Vec<Token> = (0..6).map(|number| export(&ports, number, u64::from(number % 2))).collect();
        let gone: Vec<u32> = ports.peer_down(1).into_iter().map(|ask| ask.0).collect();
        assert_eq!(gone, [1, 3, 5]);
        assert!(ports.peer_down(1).is_empty());
        assert_eq!(number(ports.take(tokens[1], 1)), Err(NoPort::Late));
        assert_eq!(number(ports.take(tokens[0], 0)), Ok(0));
        assert_eq!(ports.take_all().len(), 2);
        assert_eq!(ports.counts(), PortCounts { pending: 0, late: 1, forged: 0 });
    }

    #[test]
    fn a_slot_whose_generations_are_used_up_is_not_used_again() {
        let ports = Ports::new(10);
        let first = export(&ports, 0, 7);
        ports.take(first, 7).unwrap();
        ports.held().all[0].generation = GENERATION_MAX;
        let last = export(&ports, 1, 7);
        assert_eq!(last[..8], [0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(number(ports.take(last, 7)), Ok(1));
        let next = export(&ports, 2, 7);
        assert_eq!(next[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(number(ports.take(last, 7)), Err(NoPort::Late));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        /// Against a plain map from tokens to ports: each port leaves the table once, for its own token.
        #[test]
        fn the_table_is_a_map_from_tokens_to_ports(steps in vec((0..7u8, 0..4u64, any::<prop::sample::Index>()), 1..80)) {
            let ports = Ports::new(8);
            let mut known: HashMap<Token, (Ask, u64)> = HashMap::new();
            let mut given: Vec<(Token, u64)> = Vec::new();
            let mut late = 0;
            for (number, (step, peer, which)) in (0..).zip(steps) {
                match step {
                    0..=2 => {
                        let (ask, mut swept) = (Ask::new(number), Vec::new());
                        let exported = ports.export(ask.clone(), peer, &mut swept);
                        for Unwanted { peer, token, port } in swept {
                            let (ask, of) = known.remove(&token).expect("it was in the table");
                            prop_assert!(ask.0 == port.0 && of == peer && !ask.is_wanted());
                        }
                        match exported {
                            Ok(token) => {
                                prop_assert!(given.iter().all(|(other, _)| *other != token), "a token twice");
                                given.push((token, peer));
                                known.insert(token, (ask, peer));
                            }
                            Err(_) => prop_assert_eq!(known.len(), 8),
                        }
                    }
                    3 if !given.is_empty() => {
                        let (token, peer) = given[which.index(given.len())];
                        let expected = known.remove(&token).map(|(ask, _)| ask.0);
                        late += u64::from(expected.is_none());
                        prop_assert_eq!(number_of(ports.take(token, peer)), expected);
                    }
                    4 => {
                        let mut gone: Vec<u32> = ports.peer_down(peer).iter().map(|ask| ask.0).collect();
                        let mut expected: Vec<u32> =
                            known.values().filter(|(_, of)| *of == peer).map(|(ask, _)| ask.0).collect();
                        known.retain(|_, (_, of)| *of != peer);
                        gone.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(gone, expected);
                    }
                    5 => known.values().take(2).for_each(|(ask, _)| ask.stop_waiting()),
                    _ => {
                        for swept in ports.sweep() {
                            prop_assert!(known.remove(&swept.token).is_some());
                        }
                        prop_assert!(known.values().all(|(ask, _)| ask.is_wanted()));
                    }
                }
                prop_assert_eq!(ports.counts(), PortCounts { pending: known.len(), late, forged: 0 });
            }
        }
    }

    fn number_of(taken: Result<Ask, NoPort>) -> Option<u32> {
        taken.ok().map(|ask| ask.0)
    }
}
