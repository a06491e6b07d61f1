//! Models of asking: the slot between asker and repliers, the ways to wait, and sinks.
//!
//! Seen to fail here, each by itself: FULL set by a plain store; a waiter replaced without withdrawing it; a
//! port that leaves by a blind subtraction; a slot used again though ports are left; GONE set blindly over
//! FULL; no claim among several ports; a port that leaves before it takes the waiter; a spare made before
//! the count is looked at; a waiter kept by whoever leaves, or taken though it is the replier's; a silent
//! last drop; a publication that ignores GONE; a wake left out, or not caught when it panics; the
//! publication without its Release or its Acquire; the asker's look, its leave, another port's leave and
//! the waiter's registration Relaxed; the last port's leave, and GONE after an answer, without either half;
//! in sinks, a last port that does not claim, every port reporting, a reply without a claim; an alarm that
//! is not set; the last port of a sink that leaves without Acquire (`sink_learns_of_no_reply_…`).
//!
//! Every payload and every waker holds a count that must be back at one in the end, and slot memory comes
//! from loom's allocator, which reports leaks and double frees.

use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::thread;
use pointsman::AskError;
use pointsman::loom_hooks::ask::{self, Ask, Asker};
use pointsman::loom_hooks::reply::{AnsweredBy, ReplyDestination, ReplyTo, to_sink};
use pointsman::loom_hooks::slot::{AskerHalf, FreeSlot, ReplierHalf};
use pointsman::loom_hooks::{AlarmKey, Alarms, AskClock};
use std::panic::{AssertUnwindSafe, catch_unwind};
// Counts lives only; no protocol rests on it.
use std::sync::Arc;
use std::sync::Mutex;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Two threads, all of a short protocol: three preemptions are exhaustive in practice.
const TWO: usize = 3;
/// Three threads: a third preemption multiplies the executions by ten and more.
const THREE: usize = 2;

/// A value whose life is counted.
struct Payload {
    number: u32,
    _life: Arc<()>,
}

/// Gives payloads and wakers and sees to it that none is left.
struct Lives(Arc<()>);

impl Lives {
    fn new() -> Self {
        Self(Arc::new(()))
    }

    fn payload(&self, number: u32) -> Payload {
        Payload { number, _life: self.0.clone() }
    }

    fn bell(&self) -> (Arc<NotFullNotify>, Waker) {
        let bell = Arc::new(NotFullNotify { notify: Notify::new(), _life: self.0.clone() });
        let waker = Waker::from(bell.clone());
        (bell, waker)
    }

    /// Polls to the end as an executor does.
    fn block_on<F: Future + Unpin>(&self, mut future: F) -> F::Output {
        let (bell, waker) = self.bell();
        loop {
            match poll(&mut future, &waker) {
                Poll::Ready(output) => break output,
                Poll::Pending => bell.notify.wait(),
            }
        }
    }

    fn all_gone(self) {
        assert_eq!(Arc::strong_count(&self.0), 1, "a payload or a waker was leaked");
    }
}

/// A clock that stands still and is slept by as if real, for asks without a limit.
struct NoClock;

impl Alarms for NoClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn is_real(&self) -> bool {
        true
    }
    fn wake_at(&self, _: Duration, _: Waker) -> AlarmKey {
        unreachable!("no limit, no alarm")
    }
    fn cancel(&self, _: AlarmKey) {
        unreachable!("no limit, no alarm")
    }
}

fn no_clock() -> AskClock {
    AskClock::Static(&NoClock)
}

fn begin() -> (ReplyTo<Payload>, Ask<Payload>) {
    ask::begin(no_clock())
}

fn promise() -> (AskerHalf<Payload>, ReplierHalf<Payload>) {
    FreeSlot::take().begin()
}

fn number(outcome: Result<Payload, AskError>) -> Result<u32, AskError> {
    outcome.map(|payload| payload.number)
}

/// A waker that can be waited for.
struct NotFullNotify {
    notify: Notify,
    _life: Arc<()>,
}

impl Wake for NotFullNotify {
    fn wake(self: Arc<Self>) {
        self.notify.notify();
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(waker))
}

#[test]
fn one_ask_one_reply() {
    model("one_ask_one_reply", &[9, 16], TWO, 47, || {
        let lives = Lives::new();
        let (reply_to, ask) = begin();
        let reply = lives.payload(7);
        let replier = thread::spawn(move || assert!(reply_to.send(reply).is_ok()));
        let asker = thread::spawn(move || assert_eq!(number(ask.wait()), Ok(7)));
        asker.join().unwrap();
        replier.join().unwrap();
        lives.all_gone();
    });
}

#[test]
fn reply_races_poll() {
    model("reply_races_poll", &[9, 16], TWO, 119, || {
        let lives = Lives::new();
        let (reply_to, ask) = begin();
        let reply = lives.payload(7);
        let replier = thread::spawn(move || assert!(reply_to.send(reply).is_ok()));
        assert_eq!(number(lives.block_on(ask)), Ok(7));
        replier.join().unwrap();
        lives.all_gone();
    });
}

#[test]
fn last_port_dropped_races_poll() {
    model("last_port_dropped_races_poll", &[9, 16], TWO, 119, || {
        let lives = Lives::new();
        let (reply_to, ask) = begin();
        let replier = thread::spawn(move || drop(reply_to));
        assert_eq!(number(lives.block_on(ask)), Err(AskError::no_reply()));
        replier.join().unwrap();
        lives.all_gone();
    });
}

/// As actors do that skip what nobody wants: a port that is not wanted is dropped unanswered. The asker must not miss
/// an answer by that.
#[test]
fn a_port_is_unwanted_only_once_another_one_answers() {
    model("a_port_is_unwanted_only_once_another_one_answers", &[9], TWO, 52, || {
        let lives = Lives::new();
        let (reply_to, ask) = begin();
        let other = reply_to.clone();
        let replies = [lives.payload(1), lives.payload(2)];
        let answer = |port: ReplyTo<Payload>, reply| {
            if port.wanted() {
                drop(port.send(reply));
            }
        };
        let [first, second] = replies;
        let skips = thread::spawn(move || answer(other, second));
        answer(reply_to, first);
        skips.join().unwrap();
        assert!(matches!(number(ask.wait()), Ok(1 | 2)));
        lives.all_gone();
    });
}

/// The asker goes while the actor looks: the question is skipped, or its reply is late.
#[test]
fn a_question_that_is_skipped_has_no_asker() {
    model("a_question_that_is_skipped_has_no_asker", &[9], TWO, 12, || {
        let lives = Lives::new();
        let (promise, port) = promise();
        let reply = lives.payload(7);
        let skips = thread::spawn(move || {
            let wanted = port.is_wanted();
            let answered = if wanted { port.answer(Ok(reply)).is_ok() } else { false };
            (wanted, answered)
        });
        let left = promise.leave();
        let (wanted, answered) = skips.join().unwrap();
        // No other port exists: an outcome is the reply, or that there is none, after the asker has gone.
        assert_eq!(left.outcome.is_some(), answered);
        assert!(wanted || !answered);
        drop(left);
        lives.all_gone();
    });
}

#[test]
fn reply_races_leave() {
    model("reply_races_leave", &[9], TWO, 8, || {
        let lives = Lives::new();
        let (promise, port) = promise();
        let reply = lives.payload(7);
        let replier = thread::spawn(move || port.answer(Ok(reply)).is_ok());
        let left = promise.leave();
        let taken = replier.join().unwrap();
        assert_eq!(left.outcome.is_some(), taken, "taken by the asker or handed back, never both");
        drop(left);
        lives.all_gone();
    });
}

#[test]
fn future_dropped_while_answering() {
    model("future_dropped_while_answering", &[9], TWO, 44, || {
        let lives = Lives::new();
        let (reply_to, mut ask) = begin();
        let (bell, waker) = lives.bell();
        assert!(poll(&mut ask, &waker).is_pending());
        drop(waker);
        let reply = lives.payload(7);
        let replier = thread::spawn(move || drop(reply_to.send(reply)));
        drop(ask);
        replier.join().unwrap();
        assert_eq!(Arc::strong_count(&bell), 1, "the waker was left behind");
        drop(bell);
        lives.all_gone();
    });
}

#[test]
fn waker_is_gone_after_the_reply_while_a_port_is_kept() {
    model("waker_is_gone_after_the_reply_while_a_port_is_kept", &[9, 16], TWO, 100, || {
        let lives = Lives::new();
        let (reply_to, ask) = begin();
        let kept = reply_to.clone();
        let reply = lives.payload(7);
        let replier = thread::spawn(move || assert!(reply_to.send(reply).is_ok()));
        assert_eq!(number(lives.block_on(ask)), Ok(7));
        replier.join().unwrap();
        lives.all_gone();
        drop(kept);
    });
}

#[test]
fn clone_races_leave() {
    model("clone_races_leave", &[9], TWO, 92, || {
        let lives = Lives::new();
        let (promise, port) = promise();
        let reply = lives.payload(7);
        let replier = thread::spawn(move || {
            let other = port.clone();
            drop(port);
            other.answer(Ok(reply)).is_ok()
        });
        let left = promise.leave();
        assert_eq!(left.outcome.is_some(), replier.join().unwrap());
        drop(left);
        lives.all_gone();
    });
}

#[test]
fn waker_is_gone_while_a_port_is_kept() {
    model("waker_is_gone_while_a_port_is_kept", &[9], TWO, 19, || {
        let lives = Lives::new();
        let (reply_to, mut ask) = begin();
        let (bell, waker) = lives.bell();
        assert!(poll(&mut ask, &waker).is_pending());
        drop(waker);
        let kept = reply_to.clone();
        let replier = thread::spawn(move || drop(reply_to));
        drop(ask);
        assert_eq!(Arc::strong_count(&bell), 1, "the waker waits for a port");
        replier.join().unwrap();
        assert!(!kept.wanted());
        drop(bell);
        lives.all_gone();
    });
}

#[test]
fn waker_replaced_while_answering() {
    model("waker_replaced_while_answering", &[9, 16], TWO, 337, || {
        let lives = Lives::new();
        let (reply_to, mut ask) = begin();
        let (bell, waker) = lives.bell();
        assert!(poll(&mut ask, &waker).is_pending());
        drop(waker);
        let reply = lives.payload(7);
        let replier = thread::spawn(move || assert!(reply_to.send(reply).is_ok()));
        // A lost wake-up would be a deadlock here.
        assert_eq!(number(lives.block_on(ask)), Ok(7));
        replier.join().unwrap();
        assert_eq!(Arc::strong_count(&bell), 1, "the first waker was left behind");
        drop(bell);
        lives.all_gone();
    });
}

/// What each of two ports does.
#[derive(Clone, Copy)]
enum Act {
    Answer(u32),
    Drop,
}

/// Two ports act, each in a thread of its own; gives how many replies were accepted.
fn two_ports(lives: &Lives, port: ReplierHalf<Payload>, acts: [Act; 2]) -> impl FnOnce() -> usize + use<> {
    let other = port.clone();
    let [first, second] = [(port, acts[0]), (other, acts[1])].map(|(port, act)| {
        let reply = match act {
            Act::Answer(number) => Some(lives.payload(number)),
            Act::Drop => None,
        };
        thread::spawn(move || match reply {
            Some(reply) => usize::from(port.answer(Ok(reply)).is_ok()),
            None => {
                drop(port);
                0
            }
        })
    });
    move || first.join().unwrap() + second.join().unwrap()
}

fn two_ports_and_an_asker(name: &str, acts: [Act; 2], accepted: usize, floor: usize) {
    model(name, &[9, 16], THREE, floor, move || {
        let lives = Lives::new();
        let (mut promise, port) = promise();
        let join = two_ports(&lives, port, acts);
        let (bell, waker) = lives.bell();
        while !promise.register(&waker) {
            bell.notify.wait();
        }
        let Ok((outcome, spare)) = promise.take() else { panic!("registered as answered") };
        match (&outcome, accepted) {
            (Ok(_), 1) | (Err(AskError::NoReply { .. }), 0) => {}
            (other, _) => panic!("wrong outcome: {:?}", other.as_ref().map(|reply| reply.number)),
        }
        drop((spare, outcome, waker));
        assert_eq!(join(), accepted);
        drop(bell);
        lives.all_gone();
    });
}

fn two_ports_and_a_leaving_asker(name: &str, acts: [Act; 2], floor: usize) {
    model(name, &[9], THREE, floor, move || {
        let lives = Lives::new();
        let (mut promise, port) = promise();
        let (bell, waker) = lives.bell();
        assert!(!promise.register(&waker));
        drop(waker);
        let join = two_ports(&lives, port, acts);
        let left = promise.leave();
        let answered = matches!(left.outcome, Some(Ok(_)));
        drop(left);
        assert_eq!(join(), usize::from(answered));
        assert_eq!(Arc::strong_count(&bell), 1, "the waker was left behind");
        drop(bell);
        lives.all_gone();
    });
}

#[test]
fn two_replies_one_wins() {
    two_ports_and_an_asker("two_replies_one_wins", [Act::Answer(1), Act::Answer(2)], 1, 20589);
}

#[test]
fn reply_races_drop_of_the_other_port() {
    two_ports_and_an_asker("reply_races_drop_of_the_other_port", [Act::Answer(1), Act::Drop], 1, 6595);
}

#[test]
fn two_drops_no_reply() {
    two_ports_and_an_asker("two_drops_no_reply", [Act::Drop, Act::Drop], 0, 1350);
}

#[test]
fn two_replies_race_leave() {
    two_ports_and_a_leaving_asker("two_replies_race_leave", [Act::Answer(1), Act::Answer(2)], 1142);
}

#[test]
fn reply_and_drop_race_leave() {
    two_ports_and_a_leaving_asker("reply_and_drop_race_leave", [Act::Answer(1), Act::Drop], 577);
}

#[test]
fn two_drops_race_leave() {
    two_ports_and_a_leaving_asker("two_drops_race_leave", [Act::Drop, Act::Drop], 461);
}

#[test]
fn late_reply_never_hits_a_reused_slot() {
    model("late_reply_never_hits_a_reused_slot", &[9, 13, 16], TWO, 123, || {
        let lives = Lives::new();
        let mut asker = Asker::new();
        let (reply_to, pending) = ask::begin_with(&mut asker, no_clock());
        let (late, reply) = (reply_to.clone(), lives.payload(9));
        let other = thread::spawn(move || drop(late.send(reply)));
        drop(reply_to.send(lives.payload(1)));
        assert!(matches!(number(lives.block_on(pending)), Ok(1 | 9)));
        // The next ask takes the same slot if it is free, and another one if not.
        let (reply_to, pending) = ask::begin_with(&mut asker, no_clock());
        assert!(reply_to.send(lives.payload(2)).is_ok());
        assert_eq!(number(lives.block_on(pending)), Ok(2));
        other.join().unwrap();
        drop(asker);
        lives.all_gone();
    });
}

#[test]
fn late_reply_after_a_timeout_never_hits_a_reused_slot() {
    model("late_reply_after_a_timeout_never_hits_a_reused_slot", &[9, 13], TWO, 8, || {
        let lives = Lives::new();
        let (first, late) = promise();
        let reply = lives.payload(9);
        let other = thread::spawn(move || drop(late.answer(Ok(reply))));
        drop(first.leave());
        let (second, port) = promise();
        assert!(port.answer(Ok(lives.payload(2))).is_ok());
        let Ok((outcome, spare)) = second.take() else { panic!("answered above") };
        assert_eq!(number(outcome), Ok(2));
        drop(spare);
        other.join().unwrap();
        lives.all_gone();
    });
}

#[test]
fn asker_reuses_its_slot() {
    model("asker_reuses_its_slot", &[9, 13, 16], THREE, 1476, || {
        let lives = Lives::new();
        let mut asker = Asker::new();
        let repliers = [1, 2].map(|number_sent| {
            let (reply_to, pending) = ask::begin_with(&mut asker, no_clock());
            let reply = lives.payload(number_sent);
            let replier = thread::spawn(move || assert!(reply_to.send(reply).is_ok()));
            assert_eq!(number(lives.block_on(pending)), Ok(number_sent));
            replier
        });
        for replier in repliers {
            replier.join().unwrap();
        }
        drop(asker);
        lives.all_gone();
    });
}

/// A waker that panics.
struct Spiteful {
    _life: Arc<()>,
}

impl Wake for Spiteful {
    fn wake(self: Arc<Self>) {
        panic!("a planted panic of a waker");
    }
}

#[test]
fn wake_unwinds() {
    model("wake_unwinds", &[9], TWO, 8, || {
        let lives = Lives::new();
        let life = Arc::new(());
        let (reply_to, mut ask) = begin();
        let waker = Waker::from(Arc::new(Spiteful { _life: life.clone() }));
        let reply = lives.payload(7);
        let replier = thread::spawn(move || assert!(reply_to.send(reply).is_ok()));
        let early = poll(&mut ask, &waker);
        drop(waker);
        replier.join().unwrap();
        let outcome = match early {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => lives.block_on(ask),
        };
        assert_eq!(number(outcome), Ok(7));
        assert_eq!(Arc::strong_count(&life), 1, "the waker was left behind");
        lives.all_gone();
    });
}

/// A reply that panics when it is dropped.
struct Bomb {
    _life: Arc<()>,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a planted panic of a reply's drop");
    }
}

#[test]
fn reply_drop_unwinds() {
    model("reply_drop_unwinds", &[9], TWO, 11, || {
        let life = Arc::new(());
        let (promise, port) = FreeSlot::<Bomb>::take().begin();
        let kept = port.clone();
        let reply = Bomb { _life: life.clone() };
        let replier = thread::spawn(move || {
            // A late reply comes back, and goes off here.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(port.answer(Ok(reply)))));
        });
        // One that was in time goes off here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(promise)));
        replier.join().unwrap();
        assert_eq!(Arc::strong_count(&life), 1, "the reply was leaked");
        assert!(!kept.is_wanted());
    });
}

/// Notes what comes, and counts its own life.
struct Notes {
    outcomes: Arc<Outcomes>,
}

type Outcome = Result<Payload, AskError>;
type Outcomes = Mutex<Vec<Result<u32, AskError>>>;

impl ReplyDestination<Payload> for Notes {
    fn take(&self, outcome: Outcome, _: AnsweredBy<'_>) -> Result<(), Outcome> {
        self.outcomes.lock().unwrap().push(number(outcome));
        Ok(())
    }
}

fn notes() -> (Notes, Arc<Outcomes>) {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    (Notes { outcomes: outcomes.clone() }, outcomes)
}

#[test]
fn sink_expire_races_reply() {
    model("sink_expire_races_reply", &[9], TWO, 6, || {
        let lives = Lives::new();
        let (sink, outcomes) = notes();
        let (reply_to, handle) = to_sink(sink, |_, _| {});
        let reply = lives.payload(7);
        let replier = thread::spawn(move || reply_to.send(reply).is_ok());
        let expired = handle.expire();
        let accepted = replier.join().unwrap();
        assert_ne!(expired, accepted, "one of the two has the outcome");
        let expected = if accepted { vec![Ok(7)] } else { vec![] };
        assert_eq!(*outcomes.lock().unwrap(), expected);
        drop(handle);
        assert_eq!(Arc::strong_count(&outcomes), 1, "the sink was leaked");
        lives.all_gone();
    });
}

#[test]
fn sink_expire_races_last_ports() {
    model("sink_expire_races_last_ports", &[9], THREE, 24, || {
        let (sink, outcomes) = notes();
        let (reply_to, handle) = to_sink(sink, |_, _| {});
        let other = reply_to.clone();
        let droppers = [reply_to, other].map(|port| thread::spawn(move || drop(port)));
        let expired = handle.expire();
        for dropper in droppers {
            dropper.join().unwrap();
        }
        let expected = if expired { vec![] } else { vec![Err(AskError::no_reply())] };
        assert_eq!(*outcomes.lock().unwrap(), expected);
    });
}

/// Reads, when it learns of the end, what a replier wrote that then dropped its port.
struct Reads(Arc<Work>);

struct Work {
    written: UnsafeCell<u32>,
    read: Mutex<Vec<u32>>,
}

// SAFETY: loom fails the model where `written` is read beside its writer; that is what it is for.
unsafe impl Sync for Work {}

impl ReplyDestination<Payload> for Reads {
    fn take(&self, outcome: Outcome, _: AnsweredBy<'_>) -> Result<(), Outcome> {
        assert_eq!(number(outcome), Err(AskError::no_reply()));
        // SAFETY: as above.
        let written = self.0.written.with(|written| unsafe { *written });
        self.0.read.lock().unwrap().push(written);
        Ok(())
    }
}

#[test]
fn sink_learns_of_no_reply_after_all_who_have_dropped_a_port() {
    model("sink_no_reply_comes_last", &[9], TWO, 3, || {
        let work = Arc::new(Work { written: UnsafeCell::new(0), read: Mutex::new(Vec::new()) });
        let (reply_to, _handle) = to_sink(Reads(work.clone()), |_, _| {});
        let other = reply_to.clone();
        let worker = {
            let work = work.clone();
            thread::spawn(move || {
                // SAFETY: as above.
                work.written.with_mut(|written| unsafe { *written = 7 });
                drop(reply_to);
            })
        };
        drop(other);
        worker.join().unwrap();
        assert_eq!(*work.read.lock().unwrap(), [7]);
    });
}

#[test]
fn sink_reply_races_drop_of_the_other_port() {
    model("sink_reply_races_drop_of_the_other_port", &[9], TWO, 6, || {
        let lives = Lives::new();
        let (sink, outcomes) = notes();
        let (reply_to, _handle) = to_sink(sink, |_, _| {});
        let other = reply_to.clone();
        let reply = lives.payload(7);
        let replier = thread::spawn(move || assert!(reply_to.send(reply).is_ok()));
        drop(other);
        replier.join().unwrap();
        assert_eq!(*outcomes.lock().unwrap(), [Ok(7)]);
        lives.all_gone();
    });
}

/// A clock moved by hand, with room for one alarm.
struct HandClock {
    now: loom::sync::Mutex<(Duration, Option<Waker>)>,
}

impl HandClock {
    fn move_to(&self, now: Duration) {
        let waker = {
            let mut inside = self.now.lock().unwrap();
            inside.0 = now;
            inside.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Alarms for HandClock {
    fn now(&self) -> Duration {
        self.now.lock().unwrap().0
    }
    fn is_real(&self) -> bool {
        false
    }
    fn wake_at(&self, at: Duration, waker: Waker) -> AlarmKey {
        let mut inside = self.now.lock().unwrap();
        if inside.0 >= at {
            waker.wake();
        } else {
            inside.1 = Some(waker);
        }
        AlarmKey((0, 0))
    }
    fn cancel(&self, _: AlarmKey) {
        self.now.lock().unwrap().1 = None;
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Reply and alarm race, and the asker parks or polls.
fn reply_races_alarm(
    name: &str,
    floor: usize,
    finish: fn(Ask<Payload>, &Lives) -> Result<Payload, AskError>,
) {
    model(name, &[9, 16], THREE, floor, move || {
        let lives = Lives::new();
        let clock = Arc::new(HandClock { now: loom::sync::Mutex::new((Duration::ZERO, None)) });
        let (reply_to, ask) = ask::begin(AskClock::Shared(clock.clone()));
        let ask = ask.within(SECOND);
        let reply = lives.payload(7);
        let replier = thread::spawn(move || reply_to.send(reply).is_ok());
        let asker_lives = Lives(lives.0.clone());
        let asker = thread::spawn(move || number(finish(ask, &asker_lives)));
        clock.move_to(SECOND);
        match asker.join().unwrap() {
            Ok(7) => assert!(replier.join().unwrap()),
            Err(AskError::Timeout { after: SECOND, .. }) => assert!(!replier.join().unwrap()),
            other => panic!("wrong outcome: {other:?}"),
        }
        assert!(clock.now.lock().unwrap().1.is_none(), "the alarm was left behind");
        assert_eq!(Arc::strong_count(&clock), 1);
        lives.all_gone();
    });
}

#[test]
fn reply_races_alarm_of_a_parked_asker() {
    reply_races_alarm("reply_races_alarm_of_a_parked_asker", 128, |ask, _| ask.wait());
}

#[test]
fn reply_races_alarm_of_a_polled_ask() {
    reply_races_alarm("reply_races_alarm_of_a_polled_ask", 244, |ask, lives| lives.block_on(ask));
}

/// A token left over from before costs a round and no more; `Ask::wait` must not return on it.
#[test]
fn leftover_park_token() {
    model("leftover_park_token", &[9, 16], TWO, 19, || {
        let (reply_to, ask) = begin();
        let asker = thread::spawn(move || {
            thread::current().unpark();
            number(ask.wait())
        });
        drop(reply_to);
        assert_eq!(asker.join().unwrap(), Err(AskError::no_reply()));
    });
}
