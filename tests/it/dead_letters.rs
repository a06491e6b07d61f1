//! Dead letters: who is told what, and that nothing goes round.

use crate::logged::{lines, listen};
use crate::router_support::shy;
use crate::support::*;
use pointsman::ask::{Answerable, Attempt};
use pointsman::prelude::*;
use pointsman::routing::{RouteContext, Routees, RoutingLogic};
use pointsman::topology::SendMode;
use pointsman::{AnyActorRef, DeadLetterReason};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

fn dead(stage: &Stage) -> ActorRef<Tell> {
    let actor = stage.spawn(&stage.role("a"));
    actor.stop();
    wait_for_end(stage, &actor);
    actor
}

#[test]
fn a_subscriber_is_told_recipient_type_and_reason_until_it_leaves() {
    let stage = Stage::turns();
    let actor = dead(&stage);
    let (sender, letters) = channel();
    let subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send((letter.recipient.to_string(), letter.message_type, letter.reason));
    });
    note(&actor, "never");
    let letter = letters.try_recv().expect("told on the sender's thread");
    assert_eq!((letter.0.as_str(), letter.2), ("/user/a", DeadLetterReason::Stopped));
    assert!(letter.1.contains("Tell"), "{letter:?}");
    // What comes back is no dead letter.
    assert!(actor.try_tell(Tell::new(|_, _| Ok(()))).is_err());
    assert!(letters.try_recv().is_err());
    drop(subscription);
    note(&actor, "never");
    assert!(letters.try_recv().is_err());
    assert_eq!(stage.system.ledger().dead_lettered, 2);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_subscriber_that_sends_to_a_dead_actor_does_not_go_round() {
    let stage = Stage::turns();
    let actor = dead(&stage);
    let told = Arc::new(AtomicUsize::new(0));
    let (counted, again) = (told.clone(), actor.clone());
    let _subscription = stage.system.dead_letters().subscribe(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        (0..3).for_each(|_| note(&again, "never"));
    });
    note(&actor, "never");
    assert_eq!(told.load(Ordering::SeqCst), 1);
    assert_eq!(stage.system.ledger().dead_lettered, 4);
    note(&actor, "never");
    assert_eq!(told.load(Ordering::SeqCst), 2);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_subscriber_that_panics_harms_neither_sender_nor_other_subscribers() {
    let stage = Stage::turns();
    let actor = dead(&stage);
    let told = Arc::new(AtomicUsize::new(0));
    let counted = told.clone();
    let _first = stage.system.dead_letters().subscribe(|_| panic!("as told"));
    let _second = stage.system.dead_letters().subscribe(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    note(&actor, "never");
    note(&actor, "never");
    assert_eq!(told.load(Ordering::SeqCst), 2);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_subscriber_may_subscribe_and_leave_while_it_is_told() {
    let stage = Stage::turns();
    let actor = dead(&stage);
    let system = stage.system.handle().clone();
    let kept = Arc::new(std::sync::Mutex::new(None));
    let slot = kept.clone();
    let subscription = stage.system.dead_letters().subscribe(move |_| {
        // The first that this replaces is dropped in here.
        let next = system.dead_letters().subscribe(|_| {});
        drop(slot.lock().unwrap().replace(next));
    });
    for _ in 0..3 {
        note(&actor, "never");
    }
    drop(subscription);
    kept.lock().unwrap().take();
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Panics wherever it is asked anything but its system.
struct Explodes(SystemRef);
impl pointsman::actor::Recipient<u64> for Explodes {
    fn deliver(&self, _: u64) -> Result<(), pointsman::SendError<u64>> {
        panic!("as told")
    }
    fn untyped(&self) -> Option<AnyActorRef> {
        panic!("as told")
    }
    fn system(&self) -> Option<SystemRef> {
        Some(self.0.clone())
    }
}

/// Panics at 1, lets every other message fall.
struct Careless;
impl RoutingLogic<u64> for Careless {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        None
    }
    fn route(
        &self,
        message: u64,
        _: &Routees<u64>,
        cx: &RouteContext<'_>,
    ) -> Result<(), pointsman::SendError<u64>> {
        cx.copies(2);
        assert_ne!(message, 1, "as told");
        Ok(())
    }
}

#[test]
fn what_user_code_takes_down_with_it_is_shown_once_and_counted_once() {
    let stage = Stage::turns();
    let (sender, letters) = channel();
    // Runs first, and panics while the sender's thread unwinds already.
    let _panics = stage.system.dead_letters().subscribe(|_| panic!("as told"));
    let _subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send(letter.to_string());
    });
    let explodes: ActorRef<u64> = ActorRef::to_recipient(Explodes(stage.system.handle().clone()));
    let router: Router<u64> =
        stage.system.router("r").group([]).logic(Careless).stay_when_empty().spawn().unwrap();
    let actor = stage.spawn(&stage.role("a"));
    let adapter: ActorRef<u64> = actor.contramap(|_: u64| panic!("as told"));
    let send = |reference: &ActorRef<u64>, message: u64| {
        let sent = std::panic::AssertUnwindSafe(|| reference.tell(message));
        let unwound = std::panic::catch_unwind(sent).is_err();
        (unwound, letters.try_iter().collect::<Vec<_>>())
    };
    let lost = |path: &str| format!("u64 to {path}: lost in a panic");
    assert_eq!(send(&explodes, 1), (true, vec![lost("/deadLetters")]));
    assert_eq!(send(&adapter, 1), (true, vec![lost("/user/a")]));
    assert_eq!(send(&router.to_ref(), 1), (true, vec![lost("/user/r"); 2]));
    let fell = "u64 to /user/r: no routee took it".to_owned();
    assert_eq!(send(&router.to_ref(), 2), (false, vec![fell; 2]));
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (6, 0), "{ledger}");
}

#[test]
fn a_message_comes_back_although_whoever_refused_it_panics_when_asked_who_it_is() {
    let stage = Stage::turns();
    let actor = stage.system.actor("numbers").spawn(|| Numbers).unwrap();
    let (refuses, panics) = shy(&actor);
    panics.store(true, Ordering::Relaxed);
    assert!(matches!(refuses.try_send(7u64), Err(pointsman::SendError::Closed(7))));
    let (report, sent) = refuses.send_by(8u64, SendMode::Unbounded);
    assert!(report.closed == 1 && matches!(sent, Err(pointsman::SendError::Closed(8))));
    panics.store(false, Ordering::Relaxed);
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handed_back, ledger.balance()), (2, 0), "{ledger}");
}

/// Neither sees nor keeps the letters of other types and systems.
struct Numbers;
impl Actor for Numbers {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

fn dead_numbers(stage: &Stage) -> ActorRef<u64> {
    let actor = stage.system.actor("numbers").spawn(|| Numbers).unwrap();
    actor.stop();
    wait_until(|| actor.is_closed());
    actor
}

#[test]
fn a_sink_gets_each_message_once_after_it_was_counted_and_shown() {
    let stage = Stage::turns();
    let actor = dead_numbers(&stage);
    let (sender, taken) = channel();
    let (shown, system) = (sender.clone(), stage.system.handle().clone());
    let _shown = stage.system.dead_letters().subscribe(move |letter| {
        let _ = shown.send(format!("shown {letter}"));
    });
    let subscription = stage
        .system
        .dead_letters()
        .take_by::<u64>(
            |_| {},
            move |message, letter| {
                let counted = system.ledger().dead_lettered;
                let _ = sender.send(format!("took {} {} {counted}", message, letter));
            },
        )
        .unwrap();
    actor.tell(7u64);
    let letter = "u64 to /user/numbers: stopped";
    assert_eq!(
        taken.try_iter().collect::<Vec<_>>(),
        [format!("shown {letter}"), format!("took 7 {letter} 1")]
    );
    // What comes back is nobody else's.
    assert!(actor.try_tell(8u64).is_err());
    assert!(taken.try_recv().is_err());
    let error = stage.system.dead_letters().take_by::<u64>(|_| {}, |_, _| {}).unwrap_err();
    assert_eq!(error.message_type, "u64");
    assert!(error.to_string().contains("u64 have a sink already"), "{error}");
    let _of_another_type = stage.system.dead_letters().take_by::<u32>(|_| {}, |_, _| {}).unwrap();
    drop(subscription);
    actor.tell(9u64);
    assert_eq!(taken.try_iter().collect::<Vec<_>>(), [format!("shown {letter}")]);
    let _again = stage.system.dead_letters().take_by::<u64>(|_| {}, |_, _| {}).unwrap();
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.handed_back, ledger.balance()), (2, 1, 0), "{ledger}");
}

#[test]
fn a_sink_that_sends_to_the_dead_or_panics_does_not_go_round() {
    let stage = Stage::turns();
    let actor = dead_numbers(&stage);
    let taken = Arc::new(AtomicUsize::new(0));
    let (counted, again) = (taken.clone(), actor.clone());
    let _subscription = stage
        .system
        .dead_letters()
        .take_by::<u64>(
            |_| {},
            move |message, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                again.tell(message + 1);
                panic!("as told");
            },
        )
        .unwrap();
    actor.tell(1u64);
    actor.tell(1u64);
    assert_eq!(taken.load(Ordering::SeqCst), 2);
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (4, 0), "{ledger}");
}

struct Add(u32);
impl Request for Add {
    type Reply = u32;
}

enum SumMsg {
    Add(Call<Add>),
    Hold(std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>),
}

// As `#[derive(Message)]` writes it; this runs without the feature `macros`, too.
impl From<Call<Add>> for SumMsg {
    fn from(call: Call<Add>) -> Self {
        SumMsg::Add(call)
    }
}

impl Answerable for SumMsg {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        match self {
            SumMsg::Add(call) => call.fork(attempt),
            SumMsg::Hold(..) => false,
        }
    }
}

struct Sum(u32);
impl Actor for Sum {
    type Message = SumMsg;
    fn receive(&mut self, message: SumMsg, _: &mut Context<SumMsg>) -> HandlerResult {
        match message {
            SumMsg::Add(call) => call.answer(|Add(number)| self.0 + number),
            SumMsg::Hold(until, inside) => {
                inside.send(())?;
                let _ = until.recv();
            }
        }
        Ok(())
    }
}

#[test]
fn a_sink_that_keeps_a_message_keeps_no_asker_waiting() {
    let stage = Stage::threads("sink-asks");
    let (sender, kept) = channel();
    let _subscription = stage
        .system
        .dead_letters()
        .take::<SumMsg>(move |message, letter| {
            let SumMsg::Add(call) = message else { return };
            let _ = sender.send((call, letter.reason));
        })
        .unwrap();
    let sum = stage.system.actor("sum").spawn(|| Sum(0)).unwrap();
    let (release, until) = channel();
    let (sender, inside) = channel();
    sum.tell(SumMsg::Hold(until, sender));
    inside.recv().unwrap();
    let queued = sum.ask(Add(1));
    sum.stop();
    drop(release);
    // Found in the mailbox: the asker is told although its message lives on.
    assert_eq!(queued.wait(), Err(AskError::no_reply()));
    let (drained, reason) = kept.soon().unwrap();
    assert_eq!((drained.request.0, reason), (1, DeadLetterReason::Stopped));
    assert!(!drained.reply_to.wanted());
    wait_until(|| sum.is_closed());
    // Refused.
    assert_eq!(sum.ask(Add(2)).wait(), Err(AskError::undeliverable()));
    let (refused, _) = kept.soon().unwrap();
    assert!(!refused.reply_to.wanted());
    for call in [drained, refused] {
        let (Add(number), reply_to) = call.into_parts();
        assert_eq!(reply_to.send(number), Err(number), "late");
    }
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (2, 0), "{ledger}");
    assert_eq!((ledger.asks.begun, ledger.asks.no_reply, ledger.asks.undeliverable), (2, 1, 1));
}

#[test]
fn suppressed_messages_are_counted_and_shown_only_to_who_asks_for_them() {
    let stage = Stage::turns();
    let actor = dead_numbers(&stage);
    let (sender, shown) = channel();
    let told = sender.clone();
    let _letters = stage.system.dead_letters().subscribe(move |letter| {
        let _ = told.send(("letter", letter.message_type));
    });
    let _suppressed =
        stage.system.events().on(move |letter: &pointsman::dead_letters::SuppressedDeadLetter| {
            let _ = sender.send(("suppressed", letter.0.message_type));
        });
    stage.system.dead_letters().suppress(|number: &u64| *number < 10);
    actor.tell(1u64);
    actor.tell(10u64);
    assert_eq!(shown.try_iter().collect::<Vec<_>>(), [("suppressed", "u64"), ("letter", "u64")]);
    // A mark that panics marks nothing.
    stage.system.dead_letters().suppress(|_: &u64| panic!("as told"));
    actor.tell(1u64);
    assert_eq!(shown.try_iter().collect::<Vec<_>>(), [("letter", "u64")]);
    // Control is no message.
    actor.stop();
    actor.poison();
    actor.kill();
    assert!(shown.try_recv().is_err());
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (3, 3, 0), "{ledger}");
}

#[test]
fn a_letter_that_cannot_be_delivered_is_counted_and_discarded() {
    let stage = Stage::turns();
    let actor = dead_numbers(&stage);
    struct Reader;
    impl Actor for Reader {
        type Message = pointsman::DeadLetter;
        fn receive(&mut self, _: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
            Ok(())
        }
    }
    // Full at once, so that telling it makes a dead letter.
    let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let reader = stage.system.actor("reader").mailbox(mailbox).spawn(|| Reader).unwrap();
    let (sender, shown) = channel();
    let last = Arc::new(std::sync::Mutex::new(None));
    let keep = last.clone();
    let _subscription = stage.system.dead_letters().subscribe(move |letter| {
        *keep.lock().unwrap() = Some(letter.clone());
        let _ = sender.send(letter.recipient.to_string());
    });
    assert!(stage.system.events().subscribe::<pointsman::DeadLetter, _>(&reader));
    for _ in 0..200 {
        actor.tell(1u64);
    }
    let letters: Vec<_> = shown.try_iter().collect();
    assert_eq!(letters, vec!["/user/numbers"; 200], "no letter about a letter");
    // One that is sent by hand.
    let letter = last.lock().unwrap().take().expect("the last of them");
    reader.stop();
    wait_until(|| reader.is_closed());
    reader.tell(letter);
    assert!(shown.try_recv().is_err());
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn the_log_tells_the_first_letters_then_pauses_and_resumes_with_the_number_missed() {
    listen();
    let stage = Stage::threads("logged");
    let actor = dead_numbers(&stage);
    let letter = "u64 to /user/numbers: stopped";
    for number in 0..15u64 {
        actor.tell(number);
    }
    let told = lines("logged");
    assert_eq!(told.len(), 10);
    assert!(told[..9].iter().all(|line| line == letter), "{told:?}");
    assert_eq!(told[9], format!("{letter}; no more dead letters are logged for 300s"));
    stage.clock.advance(std::time::Duration::from_secs(299));
    actor.tell(0u64);
    assert_eq!(lines("logged"), Vec::<String>::new());
    stage.clock.advance(std::time::Duration::from_secs(1));
    actor.tell(0u64);
    let resumed = format!("{letter}; 6 dead letters before it were not logged, counting begins anew");
    assert_eq!(lines("logged"), [resumed]);
    // Suppressed ones are no lines, unhandled ones are.
    stage.system.dead_letters().suppress(|number: &u64| *number == 0);
    actor.tell(0u64);
    let living = stage.spawn(&stage.role("a"));
    query(&living, |_, ctx| ctx.unhandled(1u8)).unwrap();
    assert_eq!(lines("logged"), ["u8 to /user/a: unhandled"]);
    stage.system.stop();
    stage.system.wait_until_ended(LONG).unwrap();
    actor.tell(1u64);
    assert_eq!(lines("logged"), Vec::<String>::new(), "off during shutdown");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);

    let set = pointsman::dead_letters::DeadLetterLog::first(2).during_shutdown(true);
    let stage = Stage::threads_with("logged-set", |builder| builder.log_dead_letters(set));
    let actor = dead_numbers(&stage);
    stage.system.stop();
    stage.system.wait_until_ended(LONG).unwrap();
    for number in 0..5u64 {
        actor.tell(number);
    }
    assert_eq!(lines("logged-set").len(), 2);
    let stage = Stage::threads_with("logged-off", |builder| {
        builder.log_dead_letters(pointsman::dead_letters::DeadLetterLog::off())
    });
    dead_numbers(&stage).tell(1u64);
    assert!(lines("logged-off").is_empty());
}
