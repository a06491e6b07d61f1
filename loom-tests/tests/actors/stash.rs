//! Messages put aside while others send, stop and poison: each is handled once or a dead letter once, the books
//! say so at every quiet moment, and what was unstashed needs no further send.
//!
//! Faults that were planted, and caught:
//! * no nudge when something is unstashed: it waits for the next send, and the pill overtakes it;
//! * control that is due before a look at the lane, once the mailbox is empty: the pill overtakes what is unstashed;
//! * a stash that is not drained at the end, and a count of held messages that never falls: the books.

use crate::support::model;
use loom::thread;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
// What the models look at when all is over; it orders nothing.
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy)]
enum Msg {
    Item(u32),
    Open,
    /// Unstashes, and stays shut.
    Shake,
}

#[derive(Default)]
struct Seen(Mutex<Vec<u32>>);

impl Seen {
    fn sorted(&self) -> Vec<u32> {
        let mut seen = self.0.lock().unwrap().clone();
        seen.sort_unstable();
        seen
    }
}

/// Puts items aside until it is open.
struct Door {
    open: bool,
    seen: Arc<Seen>,
}

impl Actor for Door {
    type Message = Msg;
    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match message {
            Msg::Item(item) if self.open => self.seen.0.lock().unwrap().push(item),
            Msg::Item(_) => ctx.stash(message)?,
            Msg::Open => {
                self.open = true;
                ctx.unstash_all();
            }
            Msg::Shake => ctx.unstash_all(),
        }
        Ok(())
    }
}

fn scene() -> (System, ActorRef<Msg>, Arc<Seen>) {
    let system = System::builder("model")
        .clock(ManualClock::new())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound");
    let seen = Arc::new(Seen::default());
    let made = seen.clone();
    let door = system.actor("door").spawn(move || Door { open: false, seen: made.clone() });
    (system, door.expect("the name is free"), seen)
}

fn tell(actor: &ActorRef<Msg>, message: Msg) -> thread::JoinHandle<()> {
    let actor = actor.clone();
    thread::spawn(move || actor.tell(message))
}

/// Ends the system and checks the books.
fn end(system: System) -> pointsman::Ledger {
    let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    ledger
}

// Bound 2: two threads and three messages; bound 3 takes 42,000 executions and most of a minute.
#[test]
fn what_is_unstashed_is_handled_without_a_further_send() {
    model("stash_unstash_races_tell", &[1, 4, 8], 2, 4_000, || {
        let (system, door, seen) = scene();
        let sender = tell(&door, Msg::Item(2));
        door.tell(Msg::Item(1));
        door.tell(Msg::Open);
        sender.join().unwrap();
        assert_eq!(seen.sorted(), [1, 2]);
        let ledger = system.ledger();
        assert_eq!((ledger.balance(), ledger.queued, door.queued()), (0, 0, Some(0)), "{ledger}");
        end(system);
    });
}

// Bound 3: two threads.
#[test]
fn what_is_stashed_is_queued_in_the_books() {
    model("stash_books", &[1, 8], 3, 6_000, || {
        let (system, door, _) = scene();
        let sender = tell(&door, Msg::Item(2));
        door.tell(Msg::Item(1));
        // An onlooker may count one twice that moves from the mailbox to the stash, but never wraps below 0.
        assert!(door.queued().expect("an actor") <= 4);
        sender.join().unwrap();
        assert_eq!(door.queued(), Some(2));
        let ledger = system.ledger();
        assert_eq!((ledger.sent, ledger.handled, ledger.queued), (4, 2, 2), "{ledger}");
        assert_eq!(end(system).dead_lettered, 2);
    });
}

// Bound 3: two threads.
#[test]
fn an_item_that_races_the_stop_is_a_dead_letter_once() {
    model("stash_races_stop", &[1, 6], 3, 900, || {
        let (system, door, seen) = scene();
        let sender = tell(&door, Msg::Item(1));
        door.stop();
        sender.join().unwrap();
        assert!(door.is_closed());
        assert_eq!(seen.sorted(), [0; 0]);
        // Refused or drained unhandled, or handled once and left in the stash.
        assert_eq!(end(system).dead_lettered, 1);
    });
}

// Bound 3: two threads.
#[test]
fn an_unstash_that_races_the_stop_leaves_each_item_in_one_place() {
    model("stash_unstash_races_stop", &[1, 6], 3, 6_600, || {
        let (system, door, seen) = scene();
        door.tell(Msg::Item(1));
        let opener = tell(&door, Msg::Open);
        door.stop();
        opener.join().unwrap();
        assert!(door.is_closed());
        let ledger = end(system);
        // The opener, if it came too late, and the item, if it was not seen.
        let opened = ledger.handled - 1 - seen.sorted().len() as u64;
        assert_eq!(ledger.dead_lettered, 2 - opened - seen.sorted().len() as u64, "{ledger}");
    });
}

// Bound 2: as above.
#[test]
fn what_is_unstashed_goes_before_a_pill_and_the_stash_behind_it_is_dead_letters() {
    model("stash_pill", &[1, 4, 5], 2, 8_000, || {
        let (system, door, seen) = scene();
        let shaker = tell(&door, Msg::Shake);
        door.tell(Msg::Item(1));
        door.tell(Msg::Open);
        door.poison();
        shaker.join().unwrap();
        assert!(door.is_closed(), "the pill acts without any further send");
        assert_eq!(seen.sorted(), [1]);
        end(system);
    });
}
