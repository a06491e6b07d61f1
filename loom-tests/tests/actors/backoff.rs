//! The reference of a backoff supervisor where a sender meets the end of the child, in whole actors: whoever
//! wakes an actor runs it. How the child is published is modelled in `util/reclaim.rs`.
//!
//! Faults seen to be caught: a last message that is counted only once the child has accepted it
//! (`backoff_last_message_races_end`); a message that is taken for delivered although there is no child
//! (`backoff_message_races_creation`); a child that is taken back after the next one is counted, and a count that is
//! read Relaxed (`backoff_count_races_look`).

use crate::support::model;
use loom::thread;
use pointsman::loom_hooks::{calling_dispatcher, section};
use pointsman::pattern::{Backoff, BackoffSupervisor};
use pointsman::prelude::*;
use pointsman::time::ManualClock;
// Counters that the models look at when all is over; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

struct Child(Arc<AtomicUsize>);

impl Actor for Child {
    type Message = bool;
    fn receive(&mut self, is_last: bool, ctx: &mut Context<bool>) -> HandlerResult {
        self.0.fetch_add(1, SeqCst);
        if is_last {
            ctx.stop();
        }
        Ok(())
    }
}

fn supervised(clock: &ManualClock) -> (System, BackoffSupervisor<bool>, Arc<AtomicUsize>) {
    let system = System::builder("model")
        .clock(clock.clone())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound");
    let handled = Arc::new(AtomicUsize::new(0));
    let made = handled.clone();
    let backoff = Backoff::on_stop(SECOND, SECOND).manual_reset().last_message(|is_last: &bool| *is_last);
    let supervisor = system
        .actor("supervisor")
        .spawn_backoff(backoff, move |_: &mut Context<bool>| Child(made.clone()))
        .expect("the settings are sound");
    (system, supervisor, handled)
}

// Bound 2: two threads, but two actors' turns and two ends; bound 3 takes more than 25 s.
#[test]
fn a_last_message_that_races_the_end_of_the_child_ends_the_supervisor() {
    model("backoff_last_message_races_end", &[1, 6], 2, 5_000, || {
        let (system, supervisor, handled) = supervised(&ManualClock::new());
        let child = supervisor.child().expect("the first one is there at once");
        let end = thread::spawn(move || child.stop());
        supervisor.tell(true);
        end.join().unwrap();
        assert!(supervisor.is_closed(), "no child comes after a last message");
        let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        let handled = handled.load(SeqCst) as u64;
        assert_eq!(
            (ledger.sent, ledger.handled, ledger.dead_lettered),
            (1, handled, 1 - handled),
            "{ledger}"
        );
    });
}

// Bound 3: two threads.
#[test]
fn who_sees_that_a_child_is_to_come_does_not_see_the_one_before() {
    model("backoff_count_races_look", &[15], 3, 80, || {
        let (system, supervisor, _) = supervised(&ManualClock::new());
        let child = supervisor.child().expect("the first one is there at once");
        let end = thread::spawn(move || child.stop());
        // The section of the look is an inner one then, which fences nothing.
        let outer = section();
        if supervisor.restarts() == 1 {
            assert!(supervisor.child().is_none());
        }
        drop(outer);
        end.join().unwrap();
        drop(supervisor);
        system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    });
}

// Bound 3: two threads.
#[test]
fn a_message_that_races_the_next_child_is_handled_or_a_dead_letter() {
    model("backoff_message_races_creation", &[1], 3, 2_400, || {
        let clock = ManualClock::new();
        let (system, supervisor, handled) = supervised(&clock);
        supervisor.child().expect("the first one is there at once").stop();
        assert_eq!(supervisor.restarts(), 1);
        let sender = {
            let anyone = supervisor.to_ref();
            thread::spawn(move || anyone.tell(false))
        };
        clock.advance(SECOND);
        sender.join().unwrap();
        assert!(supervisor.child().is_some());
        drop(supervisor);
        let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        let handled = handled.load(SeqCst) as u64;
        assert_eq!(
            (ledger.sent, ledger.handled, ledger.dead_lettered),
            (1, handled, 1 - handled),
            "{ledger}"
        );
    });
}
