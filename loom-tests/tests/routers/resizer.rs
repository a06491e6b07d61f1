//! Resizers' triggers: senders that say it is time against a head that begins to look.
//!
//! Mutations that were planted and caught: the trigger loosened after the look instead of before
//! (`resizer_pull_races_look`, `resizer_senders_race_the_head`); a load and a store instead of the exchange in `pull`
//! (`resizer_two_pulls_one_word`); a plain look before the exchange, and Relaxed instead of Release in `pull` or Acquire in
//! `loosen` (`resizer_pull_races_look`); a store instead of the exchange in `loosen` (`resizer_pull_races_look`).

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use loom::thread;
use pointsman::loom_hooks::{ResizeTrigger, calling_dispatcher};
use pointsman::prelude::*;
use pointsman::routing::{Resizer, RouteeLoads};
use pointsman::time::ManualClock;
// Notes that the models look at when all is over; they order nothing.
use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::time::Duration;

/// Senders' work, the trigger, and the words to the head.
struct Desk {
    work: [AtomicUsize; 2],
    trigger: ResizeTrigger,
    words: AtomicUsize,
}

impl Desk {
    fn new() -> Arc<Self> {
        let work = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Arc::new(Self { work, trigger: ResizeTrigger::new(), words: AtomicUsize::new(0) })
    }

    /// What a sender does, whose message is its work: nothing but the trigger orders it.
    fn send(&self, sender: usize) {
        self.work[sender].store(1, Relaxed);
        if self.trigger.pull() {
            self.words.fetch_add(1, AcqRel);
        }
    }

    /// What the head does when it has got a word: the look that a resizer is shown.
    fn look(&self) -> [usize; 2] {
        self.trigger.loosen();
        [self.work[0].load(Relaxed), self.work[1].load(Relaxed)]
    }
}

// Bound 3: nothing but the flag.
#[test]
fn two_senders_tell_the_head_once() {
    model("resizer_two_pulls_one_word", &[16], 3, 4, || {
        let desk = Desk::new();
        let other = desk.clone();
        let sender = thread::spawn(move || other.send(0));
        desk.send(1);
        sender.join().unwrap();
        assert_eq!(desk.words.load(Acquire), 1);
        desk.look();
        desk.send(0);
        assert_eq!(desk.words.load(Acquire), 2, "loose again");
    });
}

// Bound 3: nothing but the flag.
#[test]
fn what_a_sender_did_is_seen_by_a_look_that_follows_its_pull() {
    model("resizer_pull_races_look", &[16], 3, 500, || {
        let desk = Desk::new();
        let senders = [0, 1].map(|number| {
            let desk = desk.clone();
            thread::spawn(move || desk.send(number))
        });
        // The head: as many looks as there are words, some of them while senders are at it.
        let mut seen = [0, 0];
        let mut looks = 0;
        for _ in 0..2 {
            if looks < desk.words.load(Acquire) {
                seen = desk.look();
                looks += 1;
            }
        }
        let last = (looks, seen);
        for sender in senders {
            sender.join().unwrap();
        }
        // A word that is left brings a look that sees all; without one the last look must have.
        let words = desk.words.load(Acquire);
        assert!(words == 1 || words == 2, "{words}");
        assert!(last.0 < words || last.1 == [1, 1], "{last:?} of {words}");
    });
}

/// Asks for a look after each message, and notes what it is shown.
struct Notes(StdArc<StdMutex<Vec<u64>>>);

impl Resizer for Notes {
    fn is_time_for_resize(&self, messages: u64) -> bool {
        messages > 0
    }

    fn resize(&self, loads: &RouteeLoads) -> isize {
        self.0.lock().unwrap().push(loads.messages());
        0
    }

    fn tick(&self) -> Option<Duration> {
        None
    }
}

struct Routee;

impl Actor for Routee {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

// Bound 1: a router's creation and end are part of each execution, and the two senders run the head by turns.
#[test]
fn the_last_look_sees_all_messages_and_none_is_lost() {
    model("resizer_senders_race_the_head", &[1, 16], 1, 400, || {
        let system = System::builder("model")
            .clock(ManualClock::new())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        let notes: StdArc<StdMutex<Vec<u64>>> = StdArc::default();
        let router = system
            .router("pool")
            .pool(1, |_| Routee)
            .resizer(Notes(notes.clone()))
            .spawn()
            .expect("the name is free");
        let reference = router.to_ref();
        let sender = thread::spawn(move || reference.tell(1u32));
        router.tell(2u32);
        sender.join().unwrap();
        let asked = notes.lock().unwrap().clone();
        assert!(asked.len() <= 2 && asked.last() == Some(&2), "{asked:?}");
        drop(router);
        let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (2, 2, 0), "{ledger}");
    });
}
