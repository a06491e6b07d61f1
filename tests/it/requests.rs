//! Requests through the topology: any and all, and the exact end of each copy.

use crate::support::{Soon, Stage, run_turns};
use pointsman::prelude::*;
use pointsman::topology::Outlet;
use pointsman::{Mailbox, OverflowPolicy};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// What is to be done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answer(u32),
    Drop,
    Panic,
    Keep,
}

/// Asks each to behave as it is told by its name.
struct Behave {
    manners: HashMap<&'static str, Manner>,
    clones: Arc<AtomicUsize>,
}

impl Request for Behave {
    type Reply = u32;
}

impl Clone for Behave {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::SeqCst);
        Self { manners: self.manners.clone(), clones: self.clones.clone() }
    }
}

fn behave<const N: usize>(manners: [(&'static str, Manner); N]) -> Behave {
    Behave { manners: manners.into(), clones: Arc::default() }
}

#[derive(Clone, Message)]
enum Msg {
    Behave(Call<Behave>),
}

struct Asked {
    name: &'static str,
    kept: Sender<Call<Behave>>,
}

impl Actor for Asked {
    type Message = Msg;
    fn receive(&mut self, Msg::Behave(call): Msg, _: &mut Context<Msg>) -> HandlerResult {
        match call.request.manners.get(self.name) {
            Some(Manner::Answer(reply)) => {
                let reply = *reply;
                call.answer(|_| reply);
            }
            Some(Manner::Keep) => self.kept.send(call)?,
            Some(Manner::Panic) => panic!("planted"),
            Some(Manner::Drop) | None => drop(call),
        }
        Ok(())
    }
}

struct Court {
    stage: Stage,
    actors: Vec<ActorRef<Msg>>,
    outlet: Outlet<Call<Behave>>,
    kept: std::sync::mpsc::Receiver<Call<Behave>>,
}

impl Court {
    fn new(names: &[&'static str]) -> Self {
        Self::on(Stage::turns(), names, &[])
    }

    /// With groups that are declared and never mounted.
    fn on(stage: Stage, names: &[&'static str], unmounted: &[&str]) -> Self {
        let topology = stage.system.topology();
        let source = topology.local::<u32>("source").expect("free");
        let (keeps, kept) = channel();
        for name in unmounted {
            let group = topology.local::<Msg>(name).expect("free");
            source.route_all_to::<Call<Behave>, _>(&group);
        }
        let spawn = |name: &&'static str| {
            let (name, kept) = (*name, keeps.clone());
            let actor =
                stage.system.actor(name).spawn(move || Asked { name, kept: kept.clone() }).expect("free");
            let group = topology.local(name).expect("free");
            source.route_all_to::<Call<Behave>, _>(&group);
            group.mount(&actor);
            actor
        };
        let actors = names.iter().map(spawn).collect();
        let outlet = source.outlet();
        source.mount(&ActorRef::from_fn(|_| {}));
        Self { stage, actors, outlet, kept }
    }

    #[track_caller]
    fn end(self) {
        let Self { stage, actors, outlet, kept } = self;
        drop((actors, outlet, kept));
        run_turns();
        let asks = stage.system.ledger().asks;
        assert_eq!(asks.pending(), 0, "{asks:?}");
        stage.end(&[]);
    }
}

use Manner::{Answer, Drop, Keep, Panic};

/// The copy was received, and its port was dropped.
const IGNORED: AskError = AskError::no_reply();
/// No recipient has received the copy.
const FAILED: AskError = AskError::undeliverable();

#[test]
fn any_is_answered_by_the_first_reply_at_once() {
    let court = Court::new(&["a", "b", "c"]);
    let ask = court.outlet.request(behave([("a", Keep), ("b", Answer(2)), ("c", Keep)])).first();
    run_turns();
    assert_eq!(ask.wait(), Ok(2));
    // The others are not told, and come too late.
    for call in court.kept.try_iter().collect::<Vec<_>>() {
        assert!(!call.reply_to.wanted());
        call.reply_to.send(9).expect_err("late");
    }
    assert_eq!(court.stage.system.ledger().asks.late, 2);
    court.end();
}

#[test]
fn any_without_a_reply_is_ignored_before_it_is_failed() {
    let court = Court::on(Stage::turns(), &["a", "b"], &["nobody"]);
    let any = |request: Behave| {
        let ask = court.outlet.request(request).first();
        run_turns();
        ask.wait()
    };
    assert_eq!(any(behave([("a", Drop), ("b", Answer(1))])), Ok(1));
    assert_eq!(any(behave([("a", Drop), ("b", Drop)])), Err(AskError::no_reply()));
    court.actors[0].stop();
    run_turns();
    assert_eq!(any(behave([("b", Drop)])), Err(AskError::no_reply()));
    court.actors[1].stop();
    run_turns();
    assert_eq!(any(behave([])), Err(AskError::undeliverable()));
    court.end();
}

#[test]
fn any_waits_for_every_copy_before_it_says_that_there_is_no_reply() {
    let court = Court::new(&["a", "b"]);
    let ask = court.outlet.request(behave([("a", Drop), ("b", Keep)])).first();
    run_turns();
    let call = court.kept.soon().expect("kept");
    assert!(call.reply_to.wanted(), "although the other one is over");
    call.answer(|_| 7);
    assert_eq!(ask.wait(), Ok(7));
    court.end();
}

#[test]
fn all_has_an_entry_for_each_copy_in_the_order_of_arrival() {
    let court = Court::new(&["a", "b", "c", "d"]);
    let request = behave([("a", Keep), ("b", Keep), ("c", Keep), ("d", Keep)]);
    let clones = request.clones.clone();
    let ask = court.outlet.request(request).all();
    run_turns();
    assert_eq!(clones.load(Ordering::SeqCst), 3);
    let mut calls: Vec<_> = court.kept.try_iter().collect();
    calls.pop().expect("four").answer(|_| 4);
    drop(calls.pop().expect("three"));
    calls.pop().expect("two").answer(|_| 2);
    calls.pop().expect("one").answer(|_| 1);
    assert_eq!(ask.wait(), Ok(vec![Ok(4), Err(IGNORED), Ok(2), Ok(1)]));
    court.end();
}

#[test]
fn all_has_a_failure_for_each_group_in_which_nobody_gets_it() {
    let court = Court::on(Stage::turns(), &["a"], &["x", "y"]);
    let ask = court.outlet.request(behave([("a", Answer(3))])).all();
    run_turns();
    assert_eq!(ask.wait(), Ok(vec![Err(FAILED), Err(FAILED), Ok(3)]));
    court.end();
}

#[test]
fn all_has_an_entry_for_each_recipient_that_refuses() {
    let court = Court::new(&["a", "b", "c"]);
    court.actors.iter().for_each(ActorRef::stop);
    run_turns();
    let ask = court.outlet.request(behave([])).all();
    assert_eq!(ask.wait(), Ok(vec![Err(FAILED); 3]));
    assert_eq!(court.stage.system.ledger().dead_lettered, 3);
    court.end();
}

/// elfo's #116: such a request did not come back.
#[test]
fn a_request_that_reaches_nobody_fails_at_once() {
    let court = Court::new(&[]);
    assert_eq!(court.outlet.request(behave([])).first().wait(), Err(AskError::undeliverable()));
    assert_eq!(court.outlet.request(behave([])).all().wait(), Ok(vec![Err(FAILED)]));
    court.end();
}

/// elfo's #110: copies of an envelope had one token.
#[test]
fn each_copy_has_a_token_of_its_own() {
    let court = Court::new(&["a", "b"]);
    let ask = court.outlet.request(behave([("a", Keep), ("b", Keep)])).all();
    run_turns();
    let mut calls: Vec<_> = court.kept.try_iter().collect();
    let (second, first) = (calls.pop().expect("two"), calls.pop().expect("one"));
    let clone = first.reply_to.clone();
    first.answer(|_| 1);
    clone.send(1).expect_err("a clone of a port is no copy of the request");
    assert!(second.reply_to.wanted());
    second.answer(|_| 2);
    assert_eq!(ask.wait(), Ok(vec![Ok(1), Ok(2)]));
    court.end();
}

/// elfo's #127: collect-all over several groups hung.
#[test]
fn all_over_groups_of_which_some_refuse_and_some_drop_comes_back() {
    let court = Court::on(Stage::turns(), &["a", "b", "c"], &["nobody"]);
    court.actors[1].stop();
    run_turns();
    let ask = court.outlet.request(behave([("a", Drop), ("c", Answer(3))])).all();
    run_turns();
    let mut replies = ask.wait().expect("it comes back");
    replies.sort_by_key(|reply| format!("{reply:?}"));
    assert_eq!(replies, [Err(IGNORED), Err(FAILED), Err(FAILED), Ok(3)]);
    court.end();
}

/// elfo's #68: requests in the mailbox of an actor that failed stayed pending.
#[test]
fn a_request_in_a_mailbox_whose_actor_ends_has_failed() {
    let court = Court::new(&["a"]);
    let panics = court.actors[0].request(behave([("a", Panic)])).all();
    let queued = court.actors[0].request(behave([("a", Answer(1))])).all();
    court.actors[0].poison();
    let behind = court.actors[0].request(behave([("a", Answer(1))])).all();
    run_turns();
    assert_eq!(panics.wait(), Ok(vec![Err(IGNORED)]));
    assert_eq!(queued.wait(), Ok(vec![Ok(1)]), "a restart keeps the mailbox");
    assert_eq!(behind.wait(), Ok(vec![Err(FAILED)]));
    court.end();
}

#[test]
fn unread_is_failed_and_read_is_ignored() {
    let court = Court::new(&["a"]);
    // Not a turn has been run: the message is queued when the actor ends.
    let unread = court.actors[0].request(behave([("a", Answer(1))])).all();
    court.actors[0].stop();
    run_turns();
    assert_eq!(unread.wait(), Ok(vec![Err(FAILED)]));
    court.end();
    let court = Court::new(&["a"]);
    let read = court.actors[0].request(behave([("a", Panic)])).all();
    run_turns();
    assert_eq!(read.wait(), Ok(vec![Err(IGNORED)]));
    court.end();
}

/// Keeps a request until a question of its own has its outcome.
#[derive(Default)]
struct Keeper(Option<Call<Behave>>);

#[derive(Clone, Message)]
enum KeeperMsg {
    Behave(Call<Behave>),
    Ask(ActorRef<Msg>),
    Over(Result<u32, AskError>),
    Drop(ReplyTo<()>),
}

impl Actor for Keeper {
    type Message = KeeperMsg;
    fn receive(&mut self, message: KeeperMsg, ctx: &mut Context<KeeperMsg>) -> HandlerResult {
        match message {
            KeeperMsg::Behave(call) => self.0 = Some(call),
            KeeperMsg::Ask(other) => ctx.ask(&other, behave([]), KeeperMsg::Over),
            KeeperMsg::Over(outcome) => {
                assert_eq!(outcome, Err(AskError::no_reply()));
                self.0 = None;
            }
            KeeperMsg::Drop(done) => {
                self.0 = None;
                let _ = done.send(());
            }
        }
        Ok(())
    }
}

/// Whoever hears of a dead letter may wait on a blocking dispatcher, and on the thread of a test.
#[test]
fn what_is_dropped_while_somebody_waits_who_hears_of_a_dead_letter_was_read() {
    let stage = Stage::turns();
    let keeper = stage.system.actor("keeper").spawn(Keeper::default).unwrap();
    let asked = keeper.request(behave([])).all();
    let over = keeper.clone();
    let hear = move |_, _| over.ask_with(KeeperMsg::Drop).wait().expect("it lives");
    let _sink = stage.system.dead_letters().take::<KeeperMsg>(hear).unwrap();
    let ended = stage.system.spawn(Keeper::default).unwrap();
    ended.stop();
    run_turns();
    ended.tell(KeeperMsg::Over(Err(AskError::no_reply())));
    assert_eq!(asked.wait(), Ok(vec![Err(IGNORED)]));
    assert_eq!(stage.system.shutdown(Duration::from_secs(30)).unwrap().balance(), 0);
}

/// A test system has no calling thread.
#[test]
fn what_a_turn_drops_that_a_dead_letter_has_led_to_on_this_very_thread_was_read() {
    let system = System::builder("court").dispatcher("here", Dispatcher::calling_thread()).build().unwrap();
    let keeper = system.actor("keeper").dispatcher("here").spawn(Keeper::default).unwrap();
    let asked = keeper.request(behave([])).all();
    let (sender, _kept) = channel();
    // Not started before it has been asked and told to stop: the question lies in its mailbox then.
    let (start, starts) = channel::<()>();
    let mut starts = Some(starts);
    let other = system.actor("other").spawn_with(move |ctx: &mut Context<Msg>| {
        starts.take().expect("it is made once").recv().expect("the test lets it start");
        ctx.stop();
        Asked { name: "other", kept: sender.clone() }
    });
    let other = other.unwrap();
    keeper.tell(KeeperMsg::Ask(other));
    start.send(()).unwrap();
    assert_eq!(asked.wait(), Ok(vec![Err(IGNORED)]));
    assert_eq!(system.shutdown(Duration::from_secs(30)).unwrap().balance(), 0);
}

#[test]
fn a_message_that_a_mailbox_lets_go_by_its_policy_has_failed() {
    let stage = Stage::turns();
    let (keeps, _kept) = channel();
    let actor = stage
        .system
        .actor("asked")
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::DropNewest))
        .spawn(move || Asked { name: "asked", kept: keeps.clone() })
        .expect("free");
    let first = actor.request(behave([("asked", Answer(1))])).all();
    let second = actor.request(behave([("asked", Answer(2))])).all();
    assert_eq!(second.wait(), Ok(vec![Err(FAILED)]));
    assert_eq!(first.wait(), Ok(vec![Ok(1)]));
    stage.end(&[]);
}

#[test]
fn a_token_may_be_answered_later_by_somebody_else() {
    let court = Court::new(&["a"]);
    let ask = court.outlet.request(behave([("a", Keep)])).first();
    run_turns();
    let call = court.kept.soon().expect("kept");
    let answers = std::thread::spawn(move || call.answer(|_| 5));
    answers.join().expect("no panic");
    assert_eq!(ask.wait(), Ok(5));
    court.end();
}

#[test]
fn a_request_with_a_limit_ends_there_and_what_comes_later_is_late() {
    let court = Court::new(&["a", "b"]);
    let second = Duration::from_secs(1);
    let any = court.outlet.request(behave([("a", Keep), ("b", Drop)])).within(second).first();
    let all = court.outlet.request(behave([("a", Keep), ("b", Answer(2))])).within(second).all();
    run_turns();
    court.stage.clock.advance(second);
    assert_eq!(any.wait(), Err(AskError::timeout(second)));
    assert_eq!(all.wait(), Ok(vec![Ok(2), Err(AskError::timeout(second))]));
    for call in court.kept.try_iter().collect::<Vec<_>>() {
        assert!(!call.reply_to.wanted());
        call.reply_to.send(1).expect_err("late");
    }
    let asks = court.stage.system.ledger().asks;
    assert_eq!((asks.timed_out, asks.late), (2, 2), "{asks:?}");
    court.end();
}

#[test]
fn all_with_a_limit_lists_what_there_is_by_then_and_what_is_under_way() {
    let court = Court::on(Stage::turns(), &["a", "b", "c", "d"], &["nobody"]);
    let second = Duration::from_secs(1);
    let manners = [("a", Keep), ("b", Answer(2)), ("c", Drop), ("d", Keep)];
    let all = court.outlet.request(behave(manners)).within(second).all();
    run_turns();
    court.stage.clock.advance(second);
    let mut answers = all.wait().expect("what there is");
    assert_eq!(answers.split_off(3), [Err(AskError::timeout(second)), Err(AskError::timeout(second))]);
    answers.sort_by_key(|answer| format!("{answer:?}"));
    assert_eq!(answers, [Err(IGNORED), Err(FAILED), Ok(2)]);
    for call in court.kept.try_iter().collect::<Vec<_>>() {
        assert!(!call.reply_to.wanted());
        call.reply_to.send(9).expect_err("late");
    }
    let asks = court.stage.system.ledger().asks;
    assert_eq!((asks.timed_out, asks.late), (1, 2), "{asks:?}");
    court.end();
}

#[test]
fn all_may_be_awaited_and_is_given_up_by_dropping_it() {
    let court = Court::new(&["a", "b"]);
    let kept = court.outlet.request(behave([("a", Keep), ("b", Answer(2))])).all();
    run_turns();
    drop(kept);
    let call = court.kept.try_recv().expect("it is kept");
    assert!(!call.reply_to.wanted());
    drop(call);
    let mut all = Box::pin(court.outlet.request(behave([("a", Answer(1)), ("b", Answer(1))])).all());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(all.as_mut().poll(&mut cx).is_pending());
    run_turns();
    assert_eq!(all.as_mut().poll(&mut cx), std::task::Poll::Ready(Ok(vec![Ok(1), Ok(1)])));
    court.end();
}

#[test]
fn an_actor_gets_the_answer_as_a_message() {
    enum AskerMsg {
        Go,
        Any(Result<u32, AskError>),
        All(Result<Vec<Result<u32, AskError>>, AskError>),
        Late(Result<u32, AskError>),
        Part(Result<Vec<Result<u32, AskError>>, AskError>),
    }
    struct Asker(Outlet<Call<Behave>>, Sender<String>);
    impl Actor for Asker {
        type Message = AskerMsg;
        fn receive(&mut self, message: AskerMsg, ctx: &mut Context<AskerMsg>) -> HandlerResult {
            match message {
                AskerMsg::Go => {
                    self.0.request(behave([("a", Answer(1)), ("b", Drop)])).any_in(ctx, AskerMsg::Any);
                    self.0.request(behave([("a", Answer(1)), ("b", Answer(2))])).all_in(ctx, AskerMsg::All);
                    let second = Duration::from_secs(1);
                    self.0.request(behave([("a", Keep)])).within(second).any_in(ctx, AskerMsg::Late);
                    let part = self.0.request(behave([("a", Keep), ("b", Answer(3))]));
                    part.within(2 * second).all_in(ctx, AskerMsg::Part);
                }
                AskerMsg::Any(answer) => self.1.send(format!("any {answer:?}"))?,
                AskerMsg::All(answers) => {
                    let mut answers = answers?;
                    answers.sort_by_key(|answer| *answer == Ok(2));
                    self.1.send(format!("all {answers:?}"))?;
                }
                AskerMsg::Part(answers) => self.1.send(format!("part {answers:?}"))?,
                AskerMsg::Late(answer) => self.1.send(format!("late {answer:?}"))?,
            }
            Ok(())
        }
    }
    let court = Court::new(&["a", "b"]);
    let (outlet, log) = (court.outlet.clone(), court.stage.log.clone());
    let asker = court.stage.system.spawn(move || Asker(outlet.clone(), log.clone())).expect("room");
    asker.tell(AskerMsg::Go);
    run_turns();
    let mut notes = [court.stage.note(), court.stage.note()];
    notes.sort();
    assert_eq!(notes, ["all [Ok(1), Ok(2)]", "any Ok(1)"]);
    court.stage.clock.advance(Duration::from_secs(1));
    court.stage.expect(&["late Err(no reply within 1s: give it more time or ask less)"]);
    court.stage.clock.advance(Duration::from_secs(1));
    court.stage.expect(&["part Ok([Ok(3), Err(no reply within 2s: give it more time or ask less)])"]);
    court.end();
}

#[test]
fn any_number_of_requests_may_be_under_way() {
    let court = Court::new(&["a", "b"]);
    let asks: Vec<_> =
        (0..1000).map(|n| court.outlet.request(behave([("a", Answer(n)), ("b", Answer(n))])).all()).collect();
    run_turns();
    for (n, ask) in asks.into_iter().enumerate() {
        assert_eq!(ask.wait(), Ok(vec![Ok(n as u32); 2]));
    }
    court.end();
}

#[test]
fn an_address_is_asked_as_an_outlet_is() {
    let court = Court::new(&["a"]);
    let any = court.actors[0].request(behave([("a", Answer(1))])).first();
    let all = court.actors[0].request(behave([("a", Answer(1))])).all();
    assert_eq!((any.wait(), all.wait()), (Ok(1), Ok(vec![Ok(1)])));
    let function = ActorRef::from_fn(|Msg::Behave(call): Msg| call.answer(|_| 8));
    assert_eq!(function.request(behave([])).all().wait(), Ok(vec![Ok(8)]));
    court.end();
}

#[test]
fn a_router_on_the_way_counts_as_one_recipient() {
    let stage = Stage::turns();
    let routees = [1, 2].map(|reply| ActorRef::from_fn(move |Msg::Behave(call): Msg| call.answer(|_| reply)));
    let router =
        stage.system.router("all").group(routees).logic(pointsman::routing::Broadcast).spawn().expect("free");
    let all = router.to_ref().request(behave([])).all();
    assert_eq!(all.wait(), Ok(vec![Ok(1)]));
    stage.end(&[]);
}

#[test]
fn a_clone_that_panics_unwinds_to_the_asker_and_nothing_is_left_pending() {
    struct Bad;
    impl Request for Bad {
        type Reply = u32;
    }
    impl Clone for Bad {
        fn clone(&self) -> Self {
            panic!("planted")
        }
    }
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let source = topology.local::<u32>("source").expect("free");
    for name in ["a", "b"] {
        let group = topology.local(name).expect("free");
        source.route_all_to::<Call<Bad>, _>(&group);
        group.mount(&ActorRef::from_fn(|call: Call<Bad>| call.answer(|_| 1)));
    }
    let outlet = source.outlet::<Call<Bad>>();
    source.mount(&ActorRef::from_fn(|_| {}));
    assert_eq!(crate::support::panic_of(|| drop(outlet.request(Bad).all())), "planted");
    let ledger = stage.system.ledger();
    assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger} {:?}", ledger.asks);
    stage.end(&[]);
}

#[test]
fn a_request_without_any_time_is_not_sent() {
    let system = System::builder("no-time").build().unwrap();
    let (kept, _asked) = channel();
    let asked = system.spawn(move || Asked { name: "a", kept: kept.clone() }).unwrap();
    let sent = system.ledger().sent;
    let request = || asked.request(behave([("a", Manner::Answer(1))])).within(Duration::ZERO);
    assert_eq!(request().first().wait(), Err(AskError::NoTime));
    assert_eq!(request().all().wait(), Err(AskError::NoTime));
    let ledger = system.ledger();
    assert_eq!((ledger.sent, ledger.asks.begun), (sent, 0), "{ledger}");
    system.shutdown(crate::support::LONG).unwrap();
}
