//! The books: rows that pass from ended threads to new ones, and sums that are taken meanwhile.
//!
//! Mutation seen to be caught: a row leased to a second thread while its first still counts in it
//! (`a_row_taken_over_loses_and_doubles_nothing`); a Relaxed store in `AskCounter::add`, and Relaxed loads in `Counters::sum`
//! (`who_sees_a_message_handled_sees_it_sent`); asks that have begun added up before those that have ended, and the same
//! loads Relaxed (`who_sees_an_ask_ended_sees_it_begun`).

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use pointsman::loom_hooks::Counters;
use pointsman::loom_hooks::ask_counts::AskCounter;

fn count(books: &Arc<Counters>, act: impl FnOnce(&Counters) + Send + 'static) -> thread::JoinHandle<()> {
    let books = books.clone();
    thread::spawn(move || act(&books))
}

// Bound 3: two threads.
#[test]
fn one_sender_one_message() {
    model("ledger_one_message", &[15], 3, 2, || {
        let books = Arc::new(Counters::new());
        let sender = count(&books, |books| books.for_this_thread().sent(1));
        assert!(books.sum().sent <= 1);
        sender.join().unwrap();
        books.for_this_thread().handled(1);
        assert_eq!((books.sum().sent, books.sum().handled), (1, 1));
    });
}

// Bound 3: three threads, few steps each. Two count, and either may go on with the row of the other; main adds up meanwhile.
#[test]
fn a_row_taken_over_loses_and_doubles_nothing() {
    model("ledger_row_taken_over", &[15], 3, 1_900, || {
        let books = Arc::new(Counters::new());
        let twice = |books: &Counters| {
            books.for_this_thread().sent(1);
            books.for_this_thread().sent(1);
        };
        let first = count(&books, twice);
        let second = count(&books, twice);
        let before = books.sum().sent;
        let after = books.sum().sent;
        assert!(before <= after && after <= 4, "{before} {after}");
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(books.sum().sent, 4);
    });
}

// Bound 3: three threads, but each does little.
#[test]
fn who_sees_a_message_handled_sees_it_sent() {
    model("ledger_sent_before_handled", &[17], 3, 50, || {
        let books = Arc::new(Counters::new());
        let mail = Arc::new(AtomicBool::new(false));
        let sender = {
            let mail = mail.clone();
            count(&books, move |books| {
                books.for_this_thread().sent(1);
                mail.store(true, Ordering::Release);
            })
        };
        let receiver = {
            let mail = mail.clone();
            count(&books, move |books| {
                // Its row is there before the mail is: taking one locks the shelf, which `sum` locks too, and so would
                // order the count that is looked for.
                let row = books.for_this_thread();
                if mail.load(Ordering::Acquire) {
                    row.handled(1);
                }
            })
        };
        let ledger = books.sum();
        assert!(ledger.handled <= ledger.sent, "{ledger}");
        sender.join().unwrap();
        receiver.join().unwrap();
    });
}

// Bound 3: as above.
#[test]
fn who_sees_an_ask_ended_sees_it_begun() {
    model("ledger_begun_before_ended", &[17], 3, 50, || {
        let books = Arc::new(Counters::new());
        let mail = Arc::new(AtomicBool::new(false));
        let asker = {
            let mail = mail.clone();
            count(&books, move |books| {
                books.for_this_thread().ask(AskCounter::Begun);
                mail.store(true, Ordering::Release);
            })
        };
        let replier = {
            let mail = mail.clone();
            count(&books, move |books| {
                // As above.
                let row = books.for_this_thread();
                if mail.load(Ordering::Acquire) {
                    row.ask(AskCounter::Answered);
                }
            })
        };
        let asks = books.sum().asks;
        assert!(asks.pending() <= 1, "{asks:?}");
        asker.join().unwrap();
        replier.join().unwrap();
    });
}
