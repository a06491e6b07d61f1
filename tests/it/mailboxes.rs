//! Bounded mailboxes, order, and refusals that hand the message back.

use crate::support::LONG;
use pointsman::mailbox::{MailboxFault, MailboxRequirement};
use pointsman::prelude::*;
use pointsman::topology::SendMode;
use pointsman::{BuildError, DeadLetterReason, SendError, SpawnError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Passes on what it gets, and can be held.
struct Sink(Sender<u64>);

enum Put {
    Number(u64),
    Hold(Sender<()>, Receiver<()>),
    Fail,
}

/// Its tens are the rank or lane of a number; what else there is goes first.
fn tens(put: &Put) -> u64 {
    match put {
        Put::Number(number) => number / 10,
        Put::Hold(..) | Put::Fail => 0,
    }
}

fn by_rank() -> Mailbox {
    Mailbox::priority(|put: &Put| tens(put) as i64)
}

fn control_aware() -> Mailbox {
    Mailbox::control_aware(|put: &Put| tens(put) == 0)
}

fn in_lanes(count: usize) -> Mailbox {
    Mailbox::lanes(count, |put: &Put| tens(put) as usize)
}

/// Each kind of mailbox that sorts.
fn sorting() -> [Mailbox; 4] {
    [by_rank(), control_aware(), in_lanes(3), in_lanes(3).guard(5)]
}

impl From<u64> for Put {
    fn from(number: u64) -> Self {
        Put::Number(number)
    }
}

impl Actor for Sink {
    type Message = Put;
    fn receive(&mut self, put: Put, _: &mut Context<Put>) -> HandlerResult {
        match put {
            Put::Number(number) => self.0.send(number)?,
            Put::Hold(inside, release) => {
                inside.send(())?;
                let _ = release.recv();
            }
            Put::Fail => return Err(Failure::msg("as told")),
        }
        Ok(())
    }
}

fn start(mailbox: Mailbox) -> (System, ActorRef<Put>, Receiver<u64>) {
    start_under(Strategy::default(), mailbox)
}

fn start_under(strategy: Strategy, mailbox: Mailbox) -> (System, ActorRef<Put>, Receiver<u64>) {
    let system = System::builder("boxes")
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .supervision(strategy)
        .build()
        .unwrap();
    let (sender, numbers) = channel();
    let sink = system.actor("sink").mailbox(mailbox).spawn(move || Sink(sender.clone())).unwrap();
    (system, sink, numbers)
}

fn hold(sink: &ActorRef<Put>) -> Sender<()> {
    let (inside, held) = channel();
    let (release, released) = channel();
    sink.tell(Put::Hold(inside, released));
    held.recv_timeout(LONG).unwrap();
    release
}

fn seen(numbers: &Receiver<u64>, count: usize) -> Vec<u64> {
    (0..count).map(|_| numbers.recv_timeout(LONG).unwrap()).collect()
}

#[test]
fn a_full_mailbox_rejects_exactly_what_is_beyond_its_capacity_and_hands_it_back() {
    for capacity in [1, 2, 7, 64] {
        let (system, sink, numbers) = start(Mailbox::bounded(capacity));
        let release = hold(&sink);
        for number in 0..capacity as u64 {
            assert!(sink.try_tell(number).is_ok(), "{number} of {capacity}");
        }
        assert_eq!(sink.queued(), Some(capacity));
        match sink.try_tell(99u64) {
            Err(SendError::Full(Put::Number(99))) => {}
            other => panic!("{other:?}"),
        }
        sink.tell(98u64);
        drop(release);
        assert_eq!(seen(&numbers, capacity), (0..capacity as u64).collect::<Vec<_>>());
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.handed_back, ledger.dead_lettered, ledger.balance()), (1, 1, 0), "{ledger}");
        assert!(numbers.try_recv().is_err());
    }
}

#[test]
fn drop_oldest_keeps_the_newest_and_drop_newest_the_oldest() {
    for (policy, kept) in [(OverflowPolicy::DropOldest, [2, 3, 4]), (OverflowPolicy::DropNewest, [0, 1, 2])] {
        let (system, sink, numbers) = start(Mailbox::bounded(3).on_full(policy));
        let (letter, letters) = channel();
        let _subscription = system.dead_letters().subscribe(move |dead| {
            let _ = letter.send(dead.reason);
        });
        let release = hold(&sink);
        for number in 0..5u64 {
            assert!(sink.try_tell(number).is_ok(), "the policy takes it");
        }
        drop(release);
        assert_eq!(seen(&numbers, 3), kept, "{policy:?}");
        let ledger = system.ledger();
        assert_eq!((ledger.sent, ledger.dropped, ledger.dead_lettered), (6, 2, 0), "{ledger}");
        assert_eq!(letters.try_iter().collect::<Vec<_>>(), [DeadLetterReason::Dropped; 2]);
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn a_sender_waits_for_room_until_its_deadline() {
    let (system, sink, numbers) = start(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG)));
    let release = hold(&sink);
    sink.tell(0u64);
    let sender = std::thread::spawn({
        let sink = sink.clone();
        move || (1..200u64).for_each(|number| assert!(sink.try_tell(number).is_ok()))
    });
    drop(release);
    sender.join().unwrap();
    assert_eq!(seen(&numbers, 200), (0..200).collect::<Vec<_>>());
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);

    let (system, sink, _numbers) =
        start(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::from_millis(2))));
    let release = hold(&sink);
    sink.tell(0u64);
    assert!(matches!(sink.try_tell(1u64), Err(SendError::Full(_))));
    drop(release);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn what_is_told_and_finds_no_room_until_its_deadline_is_one_dead_letter() {
    let (system, sink, numbers) =
        start(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::from_millis(1))));
    let release = hold(&sink);
    sink.tell(0u64);
    sink.tell(1u64);
    assert_eq!(system.ledger().dead_lettered, 1);
    drop(release);
    assert_eq!(seen(&numbers, 1), [0]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.handed_back, ledger.balance()), (1, 0, 0), "{ledger}");
}

#[test]
fn a_waiting_sender_is_refused_when_the_actor_stops() {
    let (system, sink, _numbers) = start(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG)));
    let release = hold(&sink);
    sink.tell(0u64);
    let (sender, outcome) = channel();
    let waiting = std::thread::spawn({
        let sink = sink.clone();
        move || sender.send(matches!(sink.try_tell(1u64), Err(SendError::Closed(_)))).unwrap()
    });
    sink.stop();
    drop(release);
    assert_eq!(outcome.recv_timeout(LONG), Ok(true));
    waiting.join().unwrap();
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Sends to a full mailbox from inside an actor.
struct Pusher(ActorRef<Put>, Sender<bool>);

impl Actor for Pusher {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        self.1.send(matches!(self.0.try_tell(1u64), Err(SendError::Full(_))))?;
        Ok(())
    }
}

#[test]
fn on_a_worker_waiting_is_refused_at_once() {
    let (system, sink, _numbers) = start(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX)));
    let release = hold(&sink);
    sink.tell(0u64);
    let (sender, refused) = channel();
    let pusher = system.spawn(move || Pusher(sink.clone(), sender.clone())).unwrap();
    pusher.tell(());
    assert_eq!(refused.recv_timeout(LONG), Ok(true));
    drop(release);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Fills its own mailbox, and then tells whether one more is refused: first by itself, then by what spreads it.
struct Own(Sender<bool>);

impl Actor for Own {
    type Message = u64;
    fn receive(&mut self, number: u64, ctx: &mut Context<u64>) -> HandlerResult {
        if number == 0 {
            ctx.me().try_tell(1u64)?;
            self.0.send(matches!(ctx.me().try_tell(2u64), Err(SendError::Full(2))))?;
            let (report, sent) = ctx.me().send_by(2u64, SendMode::Wait);
            self.0.send(report.full == 1 && sent.is_err())?;
        }
        Ok(())
    }
}

#[test]
fn nobody_waits_for_room_that_only_the_waiting_thread_could_make() {
    for dispatcher in
        [Dispatcher::pinned(), Dispatcher::blocking(), Dispatcher::blocking().thread_range(1..=1)]
    {
        let system = System::builder("own").dispatcher("slow", dispatcher.clone()).build().unwrap();
        let (sender, refused) = channel();
        let builder = system.actor("own").dispatcher("slow");
        let own = builder.mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX)));
        own.spawn(move || Own(sender.clone())).unwrap().tell(0u64);
        assert_eq!([refused.recv_timeout(LONG), refused.recv_timeout(LONG)], [Ok(true); 2], "{dispatcher:?}");
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn messages_of_one_sender_stay_in_order_in_every_kind_of_mailbox() {
    const EACH: u64 = 20_000;
    for mailbox in [
        Mailbox::unbounded(),
        Mailbox::bounded(3).on_full(OverflowPolicy::Wait(LONG)),
        Mailbox::bounded(50_000),
        Mailbox::bounded(5).on_full(OverflowPolicy::DropOldest),
        Mailbox::priority(|_: &Put| 0),
        Mailbox::lanes(2, |_: &Put| 1).guard(1).capacity(3).on_full(OverflowPolicy::Wait(LONG)),
    ] {
        let lossless = !matches!(format!("{mailbox:?}"), text if text.contains("DropOldest"));
        let (system, sink, numbers) = start(mailbox);
        let senders: Vec<_> = (0..2u64)
            .map(|sender| {
                let sink = sink.clone();
                std::thread::spawn(move || (0..EACH).for_each(|number| sink.tell(sender << 32 | number)))
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        sink.poison();
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
        let mut last = [None; 2];
        let mut count = 0;
        for number in numbers.try_iter() {
            let (sender, number) = ((number >> 32) as usize, number & 0xffff_ffff);
            assert!(last[sender] < Some(number), "{last:?} {number}");
            last[sender] = Some(number);
            count += 1;
        }
        if lossless {
            // `shutdown` stops `/user`, which may overtake: what came is in order and without gaps.
            assert!(last.iter().flatten().map(|last| last + 1).sum::<u64>() == count);
        }
    }
}

#[test]
fn a_closed_mailbox_hands_the_message_back() {
    let (system, sink, numbers) = start(Mailbox::unbounded());
    sink.stop();
    crate::support::wait_until(|| sink.is_closed());
    assert!(matches!(sink.try_tell(5u64), Err(SendError::Closed(Put::Number(5)))));
    assert_eq!(sink.load(), pointsman::actor::RecipientLoad::Closed);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handed_back, ledger.balance()), (1, 1, 0));
    assert!(numbers.try_recv().is_err());
}

/// Sends the numbers to a sink that is held, and returns them as they are handled.
fn handled(mailbox: Mailbox, numbers: &[u64]) -> Vec<u64> {
    let (system, sink, seen_by_sink) = start(mailbox);
    let release = hold(&sink);
    numbers.iter().for_each(|number| sink.tell(*number));
    drop(release);
    let seen = seen(&seen_by_sink, numbers.len());
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handled, ledger.balance()), (numbers.len() as u64 + 1, 0), "{ledger}");
    seen
}

#[test]
fn urgent_messages_overtake_and_equal_ones_keep_their_order() {
    const SENT: [u64; 8] = [20, 11, 30, 10, 1, 21, 31, 0];
    assert_eq!(handled(by_rank(), &SENT), [1, 0, 11, 10, 20, 21, 30, 31]);
    assert_eq!(handled(control_aware(), &SENT), [1, 0, 20, 11, 30, 10, 21, 31]);
    // The third lane takes what is beyond it.
    assert_eq!(handled(in_lanes(3), &SENT), [1, 0, 11, 10, 20, 30, 21, 31]);
}

#[test]
fn a_guard_lets_lanes_that_wait_have_their_turn() {
    let sent = [10, 20, 11, 21, 1, 2, 3, 4, 5];
    assert_eq!(handled(in_lanes(3).guard(2), &sent), [1, 2, 10, 20, 3, 4, 11, 21, 5]);
    let sent = [10, 11, 1, 2, 3, 4];
    assert_eq!(handled(control_aware().guard(3), &sent), [1, 2, 3, 10, 4, 11]);
}

#[test]
fn a_bounded_mailbox_that_sorts_holds_exactly_its_capacity() {
    for mailbox in sorting() {
        let (system, sink, numbers) = start(mailbox.clone().capacity(3));
        let release = hold(&sink);
        for number in [20, 10, 0] {
            assert!(sink.try_tell(number).is_ok());
        }
        assert_eq!(sink.queued(), Some(3));
        assert!(matches!(sink.try_tell(1u64), Err(SendError::Full(Put::Number(1)))), "{mailbox}");
        sink.tell(2u64);
        drop(release);
        let mut handled = seen(&numbers, 3);
        handled.sort_unstable();
        assert_eq!(handled, [0, 10, 20]);
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.handed_back, ledger.dead_lettered, ledger.balance()), (1, 1, 0), "{ledger}");

        let (system, sink, numbers) = start(mailbox.clone().capacity(2).on_full(OverflowPolicy::DropNewest));
        let release = hold(&sink);
        for number in [10, 11, 0] {
            assert!(sink.try_tell(number).is_ok());
        }
        drop(release);
        assert_eq!(seen(&numbers, 2), [10, 11], "{mailbox}");
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.dropped, ledger.balance()), (1, 0), "{ledger}");

        let (system, sink, numbers) = start(mailbox.capacity(1).on_full(OverflowPolicy::Wait(LONG)));
        let release = hold(&sink);
        sink.tell(0u64);
        let sender = std::thread::spawn({
            let sink = sink.clone();
            move || (1..200u64).for_each(|number| assert!(sink.try_tell(number).is_ok()))
        });
        drop(release);
        sender.join().unwrap();
        assert_eq!(seen(&numbers, 200), Vec::from_iter(0..200));
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

/// Each kind that sorts, with room for two, and a first class that is never discarded.
fn sparing() -> [Mailbox; 4] {
    sorting().map(|mailbox| mailbox.capacity(2).never_discard(0))
}

#[test]
fn a_class_that_is_never_discarded_is_taken_beyond_the_capacity_whatever_the_policy() {
    for mailbox in sparing() {
        for policy in [OverflowPolicy::DropNewest, OverflowPolicy::Reject, OverflowPolicy::Wait(LONG)] {
            let (system, sink, numbers) = start(mailbox.clone().on_full(policy));
            let release = hold(&sink);
            assert!(sink.try_tell(11u64).is_ok() && sink.try_tell(12u64).is_ok());
            // Full, and yet at once: a sender that waited would do so until the release.
            for number in 0..4u64 {
                assert!(sink.try_tell(number).is_ok(), "{number} under {policy:?}");
            }
            assert_eq!(sink.queued(), Some(6));
            match policy {
                OverflowPolicy::DropNewest => sink.tell(13u64),
                OverflowPolicy::Reject => {
                    assert!(matches!(sink.try_tell(13u64), Err(SendError::Full(Put::Number(13)))))
                }
                // Another's wait is no matter of these.
                _ => {}
            }
            drop(release);
            assert_eq!(seen(&numbers, 6), [0, 1, 2, 3, 11, 12]);
            let ledger = system.shutdown(LONG).unwrap();
            let lost = (ledger.dropped, ledger.handed_back);
            let expected = match policy {
                OverflowPolicy::DropNewest => (1, 0),
                OverflowPolicy::Reject => (0, 1),
                _ => (0, 0),
            };
            assert_eq!((lost, ledger.dead_lettered, ledger.balance()), (expected, 0, 0), "{ledger}");
        }
    }
}

#[test]
fn what_is_beyond_the_capacity_counts_until_it_is_handled() {
    let (system, sink, numbers) = start(by_rank().capacity(2).never_discard(0));
    let release = hold(&sink);
    (0..5u64).for_each(|number| sink.tell(number));
    // Five urgent ones leave no room for others, and none was wanted for them.
    assert!(matches!(sink.try_tell(20u64), Err(SendError::Full(_))));
    assert!(sink.try_send(21u64).is_err() && sink.try_send(5u64).is_ok(), "by elfo's verbs as well");
    assert!(sink.send_by(6u64, SendMode::Wait).1.is_ok());
    drop(release);
    assert_eq!(seen(&numbers, 7), (0..7).collect::<Vec<_>>());
    assert!(sink.send(22u64).wait().is_ok());
    assert_eq!(seen(&numbers, 1), [22]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn routees_never_discard_the_class_either() {
    let system = System::builder("boxes").build().unwrap();
    let (sender, numbers) = channel();
    let mailbox = by_rank().capacity(1).on_full(OverflowPolicy::DropNewest).never_discard(0);
    let make = move |_: &mut Context<Put>| Sink(sender.clone());
    let router = system.router("pool").pool(1, make).mailbox(mailbox).spawn().unwrap();
    let release = hold(&router);
    [11, 12, 1, 13, 2].into_iter().for_each(|number: u64| router.tell(number));
    drop(release);
    assert_eq!(seen(&numbers, 3), [1, 2, 11]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dropped, ledger.balance()), (2, 0), "{ledger}");
}

#[test]
fn a_ranking_function_that_panics_for_a_sender_makes_no_exception_and_harms_it_not() {
    let panics = Arc::new(AtomicBool::new(false));
    let shared = panics.clone();
    let rank = move |put: &Put| {
        assert!(!shared.load(Ordering::SeqCst), "planted");
        tens(put) as i64
    };
    let mailbox = Mailbox::priority(rank).capacity(1).never_discard(0);
    let (system, sink, numbers) = start(mailbox);
    let release = hold(&sink);
    sink.tell(11u64);
    panics.store(true, Ordering::SeqCst);
    assert!(matches!(sink.try_tell(1u64), Err(SendError::Full(Put::Number(1)))));
    panics.store(false, Ordering::SeqCst);
    assert!(sink.try_tell(2u64).is_ok());
    drop(release);
    assert_eq!(seen(&numbers, 2), [2, 11]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_mailbox_says_which_class_it_never_discards() {
    let says = |mailbox: Mailbox| mailbox.to_string();
    assert_eq!(
        says(by_rank().capacity(5).never_discard(-3)),
        "bounded priority mailbox (capacity 5, on full Reject, never discards up to class -3)"
    );
    assert_eq!(says(by_rank().capacity(5)), "bounded priority mailbox (capacity 5, on full Reject)");
    assert_eq!(
        says(control_aware().never_discard(0)),
        "unbounded control-aware mailbox (never discards up to class 0)"
    );
    assert_eq!(says(Mailbox::unbounded()), "unbounded mailbox");
}

#[test]
fn a_class_that_cannot_be_spared_is_refused_with_the_reason() {
    let system = System::builder("boxes").build().unwrap();
    let unfit = [
        Mailbox::bounded(5).never_discard(0),
        Mailbox::unbounded().never_discard(0),
        by_rank().never_discard(0),
        by_rank().capacity(5).never_discard(i64::MAX),
        control_aware().capacity(5).never_discard(1),
        control_aware().capacity(5).never_discard(-1),
        in_lanes(3).capacity(5).never_discard(2),
        in_lanes(1).capacity(5).never_discard(0),
    ];
    for mailbox in unfit {
        let (sender, _numbers) = channel();
        let refused = system.actor("sink").mailbox(mailbox.clone()).spawn(move || Sink(sender.clone()));
        let refused = refused.err().unwrap_or_else(|| panic!("{mailbox:?}"));
        let SpawnError::Mailbox { fault: MailboxFault::NeverDiscard { .. }, .. } = &refused else {
            panic!("{refused}")
        };
        assert!(refused.to_string().contains("it must sort, have a capacity"), "{refused}");
    }
    for fit in [by_rank().capacity(5).never_discard(-3), in_lanes(3).capacity(5).never_discard(1)] {
        let (sender, _numbers) = channel();
        let fit = system.actor("fit").mailbox(fit).spawn(move || Sink(sender.clone())).unwrap();
        fit.stop();
        fit.when_ended().wait().unwrap();
    }
    system.shutdown(LONG).unwrap();
}

/// A poison pill waits for what was sent before it, however little urgent; what was sent later overtakes if it
/// is urgent, and is a dead letter if not.
#[test]
fn a_poison_pill_waits_for_all_that_was_sent_before_it() {
    for mailbox in sorting() {
        let (system, sink, numbers) = start(mailbox.clone());
        let release = hold(&sink);
        [20, 21, 1].into_iter().for_each(|number: u64| sink.tell(number));
        sink.poison();
        [22, 2].into_iter().for_each(|number: u64| sink.tell(number));
        drop(release);
        crate::support::wait_until(|| sink.is_closed());
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!(numbers.try_iter().collect::<Vec<_>>(), [1, 2, 20, 21], "{mailbox}");
        assert_eq!((ledger.handled, ledger.dead_lettered, ledger.balance()), (5, 1, 0), "{ledger}");
    }
}

#[test]
fn what_is_sorted_when_the_actor_stops_becomes_dead_letters() {
    for mailbox in sorting() {
        let (system, sink, numbers) = start(mailbox);
        let release = hold(&sink);
        // Sorted while the second hold is looked for.
        [20, 10, 21].into_iter().for_each(|number: u64| sink.tell(number));
        let (inside, held) = channel();
        let (second_release, released) = channel();
        sink.tell(Put::Hold(inside, released));
        drop(release);
        held.recv_timeout(LONG).unwrap();
        sink.tell(22u64);
        sink.stop();
        drop(second_release);
        crate::support::wait_until(|| sink.is_closed());
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!(numbers.try_iter().count(), 0);
        assert_eq!((ledger.handled, ledger.dead_lettered, ledger.balance()), (2, 4, 0), "{ledger}");
    }
}

#[test]
fn a_restart_keeps_what_is_sorted() {
    for mailbox in sorting() {
        let (system, sink, numbers) = start_under(Strategy::default(), mailbox.clone());
        let release = hold(&sink);
        [20, 10].into_iter().for_each(|number: u64| sink.tell(number));
        sink.tell(Put::Fail);
        sink.tell(1u64);
        drop(release);
        let handled = seen(&numbers, 3);
        assert_eq!(handled[0], 1, "{mailbox}");
        assert_eq!(handled.iter().sum::<u64>(), 31);
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.handled, ledger.balance()), (5, 0), "{ledger}");
    }
}

#[test]
fn what_comes_while_the_actor_is_suspended_is_sorted_when_it_goes_on() {
    for mailbox in sorting() {
        let (asked, verdict_wanted) = channel();
        let (give, verdict) = channel::<()>();
        let verdict = std::sync::Mutex::new(verdict);
        let slow = Strategy::decide(move |_| {
            asked.send(()).unwrap();
            let _ = verdict.lock().unwrap().recv_timeout(LONG);
            Directive::Resume
        });
        let (system, sink, numbers) = start_under(slow, mailbox.clone());
        let release = hold(&sink);
        sink.tell(Put::Fail);
        sink.tell(10u64);
        drop(release);
        verdict_wanted.recv_timeout(LONG).unwrap();
        [11, 0].into_iter().for_each(|number: u64| sink.tell(number));
        assert_eq!(sink.queued(), Some(3));
        give.send(()).unwrap();
        assert_eq!(seen(&numbers, 3), [0, 10, 11], "{mailbox}");
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

/// The message is not lost: it goes last; the actor fails, and is restarted.
#[test]
fn a_ranking_function_that_panics_fails_the_actor_and_loses_nothing() {
    let broken = Arc::new(AtomicBool::new(true));
    let mailbox = Mailbox::priority(move |put: &Put| {
        assert!(tens(put) != 5 || !broken.swap(false, Ordering::SeqCst), "as told");
        tens(put) as i64
    });
    let (told, failures) = channel();
    let noting = Strategy::decide(move |failure| {
        told.send(failure.to_string()).unwrap();
        Directive::Restart
    });
    let (system, sink, numbers) = start_under(noting, mailbox);
    let release = hold(&sink);
    [50, 90, 51].into_iter().for_each(|number: u64| sink.tell(number));
    drop(release);
    assert_eq!(seen(&numbers, 3), [51, 90, 50]);
    assert!(failures.recv_timeout(LONG).unwrap().contains("as told"));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handled, ledger.balance()), (4, 0), "{ledger}");
    assert!(failures.try_recv().is_err(), "one failure");
}

#[test]
fn a_mailbox_that_no_actor_can_have_is_refused_with_its_fault() {
    let system = System::builder("boxes").build().unwrap();
    let fault = |mailbox: Mailbox| {
        let (sender, _numbers) = channel();
        let refused = system.actor("sink").mailbox(mailbox.clone()).spawn(move || Sink(sender.clone()));
        let Err(SpawnError::Mailbox { path, fault }) = refused else { panic!("{refused:?}") };
        assert_eq!(path, "/user/sink");
        // A pool says it before it creates anything, too, unless it takes an actor to see it.
        let (sender, _numbers) = channel();
        let pool = system.router("pool").pool(2, move |_| Sink(sender.clone())).mailbox(mailbox).spawn();
        let of_pool = pool.unwrap_err();
        assert!(of_pool.to_string().ends_with(&fault.to_string()), "{of_pool}");
        fault
    };
    assert_eq!(fault(in_lanes(0)), MailboxFault::LaneCount { count: 0 });
    assert_eq!(fault(in_lanes(65)), MailboxFault::LaneCount { count: 65 });
    assert_eq!(fault(in_lanes(2).guard(0)), MailboxFault::Guard { guard: 0, lanes: 2 });
    assert_eq!(fault(by_rank().guard(3)), MailboxFault::Guard { guard: 3, lanes: 0 });
    assert_eq!(fault(Mailbox::bounded(3).guard(3)), MailboxFault::Guard { guard: 3, lanes: 0 });
    assert_eq!(fault(by_rank().capacity(3).on_full(OverflowPolicy::DropOldest)), MailboxFault::DropOldest);
    // Such room can be had nowhere, or not counted in bytes.
    for capacity in [(1 << 24) + 1, 1 << 40, usize::MAX] {
        let at_once = Mailbox::bounded(capacity).on_full(OverflowPolicy::DropOldest);
        assert_eq!(fault(at_once), MailboxFault::LargeCapacity { capacity });
    }
    let other = fault(Mailbox::priority(|number: &u32| i64::from(*number)));
    assert_eq!(other, MailboxFault::MessageType { mailbox: "u32", actor: std::any::type_name::<Put>() });
    assert_eq!(
        other.to_string(),
        format!(
            "it sorts messages of type u32, and the actor handles {}: make one for these",
            std::any::type_name::<Put>()
        )
    );
    let (sender, _numbers) = channel();
    let zero = system.actor("sink").mailbox(by_rank().capacity(0)).spawn(move || Sink(sender.clone()));
    assert!(matches!(zero, Err(SpawnError::ZeroCapacity { .. })), "{zero:?}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Tells which mailbox it has by its order and its capacity.
struct Numbers<const KIND: u8>(Sender<u64>);

impl<const KIND: u8> Actor for Numbers<KIND> {
    type Message = Put;
    fn receive(&mut self, put: Put, ctx: &mut Context<Put>) -> HandlerResult {
        Sink(self.0.clone()).receive(put, ctx)
    }
    fn mailbox() -> Option<Mailbox> {
        (KIND == 1).then(|| Mailbox::bounded(11))
    }
    fn mailbox_requirement() -> Option<MailboxRequirement> {
        match KIND {
            2 => Some(MailboxRequirement::Bounded),
            3 => Some(MailboxRequirement::ControlAware),
            4 => Some(MailboxRequirement::Unbounded),
            _ => None,
        }
    }
}

/// How many messages a sink takes while it is held, up to 2,000.
fn room_of<const KIND: u8>(
    system: &System,
    dispatcher: &str,
    mailbox: Option<pointsman::mailbox::MailboxChoice>,
) -> Result<usize, SpawnError> {
    let (sender, _numbers) = channel();
    // A name is free again a little later than its actor has ended.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("sink-{}", NEXT.fetch_add(1, Ordering::SeqCst));
    let mut builder = system.actor(&name).dispatcher(dispatcher);
    if let Some(mailbox) = mailbox {
        builder = builder.mailbox(mailbox);
    }
    let sink = builder.spawn(move || Numbers::<KIND>(sender.clone()))?;
    let release = hold(&sink);
    let room = (0..2000u64).take_while(|number| sink.try_tell(*number).is_ok()).count();
    drop(release);
    sink.stop();
    Ok(room)
}

#[test]
fn the_builder_chooses_before_the_dispatcher_the_actor_and_what_is_required() {
    let system = System::builder("boxes")
        .mailbox("eight", Mailbox::bounded(8))
        .dispatcher("plain", Dispatcher::blocking())
        .dispatcher("own", Dispatcher::blocking().mailbox("eight"))
        .dispatcher("bounded", Dispatcher::blocking().requires_mailbox(MailboxRequirement::Bounded))
        .build()
        .unwrap();
    let five = || Some(Mailbox::bounded(5).into());
    // Builder, by itself and by name; dispatcher's own; the actor's; required by actor, by dispatcher; default.
    assert_eq!(room_of::<1>(&system, "own", five()).unwrap(), 5);
    assert_eq!(room_of::<1>(&system, "plain", Some("eight".into())).unwrap(), 8);
    assert_eq!(room_of::<1>(&system, "own", None).unwrap(), 8);
    assert_eq!(room_of::<1>(&system, "plain", None).unwrap(), 11);
    assert_eq!(room_of::<1>(&system, "bounded", None).unwrap(), 11);
    assert_eq!(room_of::<2>(&system, "plain", None).unwrap(), 1000);
    assert_eq!(room_of::<0>(&system, "bounded", None).unwrap(), 1000);
    assert_eq!(room_of::<0>(&system, "plain", None).unwrap(), 2000);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_mailbox_that_is_not_what_is_required_is_refused_at_creation() {
    let system = System::builder("boxes")
        .dispatcher("plain", Dispatcher::blocking())
        .dispatcher("bounded", Dispatcher::blocking().requires_mailbox(MailboxRequirement::Bounded))
        .dispatcher("sorted", Dispatcher::pinned().requires_mailbox(MailboxRequirement::Sorted))
        .build()
        .unwrap();
    let refused = |refused: Result<usize, SpawnError>| match refused {
        Err(error @ SpawnError::Mailbox { fault: MailboxFault::Unmet { .. }, .. }) => {
            error.to_string().split_once(": ").expect("the path comes first").1.to_owned()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(room_of::<2>(&system, "plain", Some(Mailbox::unbounded().into()))),
        "the actor requires a bounded mailbox, and it was to have this: unbounded mailbox; \
         choose another mailbox"
    );
    assert_eq!(
        refused(room_of::<4>(&system, "bounded", None)),
        "dispatcher \"bounded\" requires a bounded mailbox, and it was to have this: \
         unbounded mailbox; choose another mailbox"
    );
    refused(room_of::<3>(&system, "plain", None));
    refused(room_of::<3>(&system, "plain", Some(in_lanes(2).into())));
    refused(room_of::<4>(&system, "plain", Some(Mailbox::bounded(7).into())));
    refused(room_of::<0>(&system, "sorted", None));
    assert_eq!(room_of::<3>(&system, "sorted", Some(control_aware().capacity(9).into())).unwrap(), 9);
    assert_eq!(room_of::<0>(&system, "sorted", Some(by_rank().capacity(9).into())).unwrap(), 9);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Guardians and the heads of routers take no users' messages: what is said of mailboxes is not for them.
#[test]
fn the_engines_own_actors_have_their_own_mailboxes_whatever_a_dispatcher_requires() {
    let bounded = Dispatcher::work_stealing().threads(2).mailbox(Mailbox::bounded(4));
    let system = System::builder("boxes")
        .dispatcher("default", bounded.requires_mailbox(MailboxRequirement::Bounded))
        .build()
        .unwrap();
    let (sender, numbers) = channel();
    let sinks = system.router("sinks").pool(1, move |_| Sink(sender.clone())).spawn().unwrap();
    let release = hold(&sinks);
    let accepted = (0..10u64).take_while(|number| sinks.try_tell(*number).is_ok()).count();
    drop(release);
    assert_eq!((accepted, seen(&numbers, 4)), (4, vec![0, 1, 2, 3]));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn mailboxes_have_names_that_are_known_and_given_once() {
    let twice = System::builder("boxes")
        .mailbox("small", Mailbox::bounded(1))
        .mailbox("small", Mailbox::bounded(2))
        .build();
    assert!(matches!(twice, Err(BuildError::DuplicateMailbox { ref name }) if name == "small"), "{twice:?}");
    let bad = System::builder("boxes").mailbox("none", Mailbox::bounded(0)).build().unwrap_err();
    assert_eq!(bad.to_string(), "mailbox \"none\": capacity 0: must be at least 1");
    let unknown = System::builder("boxes")
        .dispatcher("files", Dispatcher::blocking().mailbox("small"))
        .build()
        .unwrap_err();
    assert!(unknown.to_string().starts_with("dispatcher \"files\": unknown mailbox \"small\""), "{unknown}");

    let system = System::builder("boxes").mailbox("urgent", by_rank()).build().unwrap();
    let refused = room_of::<0>(&system, "default", Some("urgnet".into()));
    assert!(
        matches!(
            refused,
            Err(SpawnError::Mailbox { fault: MailboxFault::UnknownName { ref name, ref known }, .. })
                if name == "urgnet" && *known == ["urgent"]
        ),
        "{refused:?}"
    );
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn routees_of_a_pool_sort_too() {
    let system = System::builder("boxes").mailbox("urgent", control_aware()).build().unwrap();
    let (sender, numbers) = channel();
    let sinks =
        system.router("sinks").pool(1, move |_| Sink(sender.clone())).mailbox("urgent").spawn().unwrap();
    let release = hold(&sinks);
    [20, 1, 21, 2].into_iter().for_each(|number: u64| sinks.tell(number));
    drop(release);
    assert_eq!(seen(&numbers, 4), [1, 2, 20, 21]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Senders, urgent and not, while the pool shrinks and grows: what a leaving routee has sorted and not handled is
/// routed again.
#[test]
fn nothing_is_lost_when_routees_that_sort_come_and_go() {
    const EACH: u64 = 3_000;
    for mailbox in sorting() {
        let system = System::builder("boxes")
            .dispatcher("default", Dispatcher::work_stealing().threads(2))
            .build()
            .unwrap();
        let (sender, numbers) = channel();
        let sinks =
            system.router("sinks").pool(3, move |_| Sink(sender.clone())).mailbox(mailbox).spawn().unwrap();
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let sinks = sinks.to_ref();
                std::thread::spawn(move || (0..EACH).for_each(|number| sinks.tell(number % 30)))
            })
            .collect();
        for size in [1, 3, 2, 4, 1, 2].repeat(5) {
            sinks.resize_to(size).unwrap();
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(seen(&numbers, 2 * EACH as usize).len(), 2 * EACH as usize);
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
    }
}
