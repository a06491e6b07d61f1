//! The mailbox that the actors of a group ask for.

use crate::support::LONG;
use pointsman::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static ASKED: AtomicUsize = AtomicUsize::new(0);

struct Small;

impl Actor for Small {
    type Message = u32;

    fn mailbox() -> Option<Mailbox> {
        ASKED.fetch_add(1, SeqCst);
        Some(Mailbox::bounded(1).on_full(OverflowPolicy::Reject))
    }

    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn actors_of_a_group_are_asked_for_their_mailbox_when_the_group_is_created_and_not_under_its_locks() {
    let system = System::builder("asked").build().unwrap();
    let group = system.group("small").by_key(|key: &u32| *key, |_, _| Small).spawn().unwrap();
    assert_eq!(ASKED.load(SeqCst), 1);
    (0_u32..3).for_each(|key| group.tell(key));
    assert_eq!((group.len(), ASKED.load(SeqCst)), (3, 1));
    drop(group);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}
