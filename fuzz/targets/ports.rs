//! The table of reply ports that were sent to other nodes.
//!
//! The input is commands of two bytes, and tokens that are changed in one bit. The following must hold:
//! - The table is a map from tokens to ports: each port leaves it once, for its own token and from its own peer.
//! - No token comes twice, and no token that was not given takes a port.
//! - The table has at most as many ports as it may, and refuses only when all of them are waited for since the last sweep.

use pointsman::remote::fuzz_hooks::PortTable;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PORTS_MAX: usize = 6;

/// A port that was given out, and not answered.
struct Known {
    number: u32,
    peer: u64,
    is_wanted: Arc<AtomicBool>,
}

pub fn check(data: &[u8]) {
    let table = PortTable::new(PORTS_MAX);
    let mut known: HashMap<[u8; 16], Known> = HashMap::new();
    let mut given: Vec<([u8; 16], u64)> = Vec::new();
    for (number, command) in (0..).zip(data.chunks_exact(2)) {
        let (command, which) = (command[0], usize::from(command[1]));
        let peer = (which % 3) as u64;
        let some = (!given.is_empty()).then(|| given[which % given.len().max(1)]);
        match (command % 8, some) {
            (0..=2, _) => {
                let (is_wanted, mut swept) = (Arc::new(AtomicBool::new(true)), Vec::new());
                let token = table.export(number, is_wanted.clone(), peer, &mut swept);
                take_swept(&mut known, swept);
                match token {
                    Some(token) => {
                        assert!(given.iter().all(|(other, _)| *other != token), "a token comes twice");
                        given.push((token, peer));
                        known.insert(token, Known { number, peer, is_wanted });
                    }
                    None => assert_eq!(known.len(), PORTS_MAX),
                }
            }
            (3, Some((token, peer))) => {
                let expected = known.remove(&token).map(|known| known.number);
                assert_eq!(table.take(token, peer), expected.ok_or(true));
            }
            (4, Some((token, peer))) => {
                // Another peer, and another token.
                if known.contains_key(&token) {
                    assert_eq!(table.take(token, peer + 1), Err(false));
                }
                let mut forged = token;
                forged[usize::from(command / 8) % 16] ^= 1 << (which % 8);
                assert_eq!(table.take(forged, peer), Err(false));
                assert!(table.withdraw(forged).is_none() && !table.is_wanted(forged));
            }
            (5, Some((token, _))) => match known.get(&token) {
                Some(known) => known.is_wanted.store(false, Ordering::Relaxed),
                None => assert!(!table.is_wanted(token)),
            },
            (6, _) => {
                let mut down = table.peer_down(peer);
                let mut expected: Vec<u32> =
                    known.values().filter(|known| known.peer == peer).map(|known| known.number).collect();
                known.retain(|_, known| known.peer != peer);
                (down.sort_unstable(), expected.sort_unstable());
                assert_eq!(down, expected);
            }
            (_, Some((token, _))) if which % 2 == 0 => {
                let expected = known.remove(&token).map(|known| known.number);
                assert_eq!(table.withdraw(token), expected);
            }
            _ => {
                take_swept(&mut known, table.sweep());
                assert!(known.values().all(|known| known.is_wanted.load(Ordering::Relaxed)));
            }
        }
        assert_eq!(table.pending(), known.len());
    }
}

fn take_swept(known: &mut HashMap<[u8; 16], Known>, swept: Vec<(u64, [u8; 16], u32)>) {
    for (peer, token, number) in swept {
        let taken = known.remove(&token).expect("it was in the table");
        assert_eq!((taken.peer, taken.number), (peer, number));
        assert!(!taken.is_wanted.load(Ordering::Relaxed), "a port that is waited for was swept");
    }
}
