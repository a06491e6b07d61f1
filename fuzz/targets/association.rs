//! The association of a node with a peer: greetings, frames, refusals and time in any order.
//!
//! The input is a row of steps of four bytes: the kind, the UID of the sender, the UID of the receiver, and the time that goes by
//! before. The following must hold:
//! - An association is active with one UID at a time, and ends before it is active with another.
//! - A UID that has ended is never active again, unless this node has taken a new UID or an hour is over.
//! - Frames are handled of the active UID alone, and only if they are for this node's UID or for all.
//! - Only an active UID is suspected or reachable.

use pointsman::remote::fuzz_hooks::{Associated, Followed};
use std::collections::BTreeSet;
use std::time::Duration;

/// Less than the time for which a UID that has ended is remembered.
const AN_HOUR: Duration = Duration::from_secs(3600);

pub fn check(data: &[u8]) {
    let (mut associated, mut now, mut own) = (Associated::new(), Duration::ZERO, 1);
    let (mut active, mut dead) = (None, BTreeSet::new());
    for step in data.chunks_exact(4) {
        let [kind, from, to, time] = *step else { return };
        now += Duration::from_millis(u64::from(time) * 40);
        // Few UIDs, so that they meet. Those of this node are no other's.
        let from = u64::from(from % 5) + 100;
        let to = if to % 4 == 0 { 0 } else if to % 4 == 3 { 99 } else { own };
        let followed = match kind % 16 {
            0..=9 => associated.input(kind % 16 % 8, from, to, now),
            15 if kind == 255 => {
                own += 1;
                let followed = associated.rejoin(own, now);
                dead.clear();
                followed
            }
            _ => {
                let (is_handled, followed) = associated.frame(from, to, now);
                assert!(!is_handled || associated.peer() == Some(from) && (to == own || to == 0));
                followed
            }
        };
        for effect in followed {
            match effect {
                Followed::Activated(uid) => {
                    assert!(active.is_none(), "{uid} beside {active:?}");
                    assert!(!dead.contains(&uid) || now >= AN_HOUR, "{uid} has ended");
                    active = Some(uid);
                }
                Followed::Ended(uid) => {
                    assert_eq!(active.take(), Some(uid));
                    if kind != 255 {
                        dead.insert(uid);
                    }
                }
                Followed::Suspected(uid) | Followed::Reachable(uid) => assert_eq!(active, Some(uid)),
                Followed::GiveWay | Followed::Other => {}
            }
        }
        assert_eq!(associated.peer(), active);
        assert!(active.is_none_or(|uid| !associated.is_dead(uid)));
    }
}
