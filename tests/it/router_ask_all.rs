//! One request to every routee of a router, with an answer of each.

use crate::support::{LONG, panic_of};
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::routing::{ConsistentHashing, RoundRobin, Routee, RouterValue};
use pointsman::testkit::TestSystem;
use pointsman::time::ManualClock;
use pointsman::{DeadLetterReason, SendError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Who are you?
#[derive(Clone)]
struct Who;
impl Request for Who {
    type Reply = usize;
}

/// Says its number, or does what its number says.
struct Shard(usize);

/// Drops the request.
const SILENT: usize = 90;
/// Ends, and the request with it.
const ENDS: usize = 91;

impl Actor for Shard {
    type Message = Call<Who>;
    fn receive(&mut self, call: Call<Who>, ctx: &mut Context<Call<Who>>) -> HandlerResult {
        match self.0 {
            SILENT => drop(call),
            ENDS => {
                ctx.stop();
                // Behind this one.
                ctx.me().tell(call);
            }
            number => call.answer(|_| number),
        }
        Ok(())
    }
}

/// Keeps what it gets.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Call<Who>>>>);
impl Recipient<Call<Who>> for Kept {
    fn deliver(&self, call: Call<Who>) -> Result<(), SendError<Call<Who>>> {
        self.0.lock().unwrap().push(call);
        Ok(())
    }
}
impl Kept {
    fn take(&self) -> Call<Who> {
        self.0.lock().unwrap().remove(0)
    }
    fn routee(&self, name: &str) -> Routee<Call<Who>> {
        Routee::with_identity(ActorRef::to_recipient(self.clone()), name)
    }
}

type All = Result<Vec<(Routee<Call<Who>>, Result<usize, AskError>)>, AskError>;

/// The replies, without who gave them.
fn replies(all: All) -> Vec<Result<usize, AskError>> {
    all.unwrap().into_iter().map(|(_, reply)| reply).collect()
}

#[test]
fn every_routee_answers_and_the_answers_come_in_the_order_of_the_table() {
    let system = TestSystem::new();
    let shards = system.router("shards").pool(3, |ctx| Shard(ctx.routee_index())).spawn().unwrap();
    let routees = shards.routees().unwrap();
    let before = system.ledger().asks;
    let all = shards.ask_all(Who).wait().unwrap();
    let asks = system.ledger().asks;
    assert_eq!((asks.begun, asks.answered), (before.begun + 1, before.answered + 1), "it is one ask");
    for (number, ((asked, reply), routee)) in all.iter().zip(&routees).enumerate() {
        assert_eq!((reply.as_ref(), asked.actor()), (Ok(&number), routee));
        assert_eq!(asked.identity(), routee.path().as_str());
    }
    assert_eq!((all.len(), format!("{:?}", all[0])), (3, "(Routee(/user/shards/$a), Ok(0))".to_owned()));
    // Whatever the logic chooses.
    let one = ConsistentHashing::by(|_: &Call<Who>, key| key.feed(&1));
    let hashed = system.router("hashed").pool(3, |ctx| Shard(ctx.routee_index())).logic(one).spawn().unwrap();
    assert_eq!(replies(hashed.ask_all(Who).wait()), [Ok(0), Ok(1), Ok(2)]);
    [shards, hashed].iter().for_each(Router::stop);
    let ledger = system.finish();
    assert_eq!((ledger.dead_lettered, ledger.asks.pending(), ledger.balance()), (0, 0, 0), "{ledger}");
}

#[test]
fn who_does_not_answer_is_told_with_the_reason() {
    let system = TestSystem::new();
    let [told, silent, ends, gone] =
        [7, SILENT, ENDS, 0].map(|number| system.spawn(move || Shard(number)).unwrap());
    gone.stop();
    system.run_until_idle();
    let nobody = system.router("nobody").group([]).stay_when_empty().spawn().unwrap();
    let group = RouterValue::new(&system, RoundRobin::new()).unwrap();
    let group = group.with_routees([&told, &silent, &ends, &gone, &nobody.to_ref()]);
    let lost = Err(AskError::no_reply());
    let expected = [Ok(7), lost.clone(), lost, Err(AskError::undeliverable()), Err(AskError::no_routees())];
    assert_eq!(replies(group.ask_all(Who).wait()), expected);
    told.stop();
    silent.stop();
    nobody.stop();
    let ledger = system.finish();
    // Left behind by who has ended, refused by who had ended, and by the empty router.
    assert_eq!((ledger.dead_lettered, ledger.asks.pending(), ledger.balance()), (3, 0, 0), "{ledger}");
}

#[test]
fn at_the_limit_the_replies_that_are_there_are_not_lost_and_the_others_are_late() {
    let clock = ManualClock::new();
    let system = System::builder("limit").clock(clock.clone()).build().unwrap();
    let kept = Kept::default();
    let routees = ["a", "b", "c"].map(|name| kept.routee(name));
    let group = system.router("group").group_of(routees).spawn().unwrap();
    let ask = group.ask_all(Who).within(SECOND);
    let first = kept.take();
    assert!(first.reply_to.wanted());
    first.answer(|_| 1);
    drop(kept.take());
    clock.advance(SECOND);
    let all = ask.wait().unwrap();
    let timeout = Err(AskError::timeout(SECOND));
    let named: Vec<_> = all.iter().map(|(routee, reply)| (routee.identity(), reply.clone())).collect();
    assert_eq!(named, [("a", Ok(1)), ("b", Err(AskError::no_reply())), ("c", timeout)]);
    let late = kept.take();
    assert!(!late.reply_to.wanted());
    assert_eq!(late.into_parts().1.send(3), Err(3));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.asks.timed_out, ledger.asks.late, ledger.asks.pending()), (1, 1, 0), "{ledger}");
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

#[test]
fn answers_given_up_are_not_wanted_and_one_port_answers_once() {
    let system = System::builder("given-up").build().unwrap();
    let kept = Kept::default();
    let group = system.router("group").group_of([kept.routee("a"), kept.routee("b")]).spawn().unwrap();
    drop(group.ask_all(Who));
    let [a, b] = [kept.take(), kept.take()];
    assert!(!a.reply_to.wanted() && a.into_parts().1.send(1).is_err());
    drop(b);
    let ask = group.ask_all(Who);
    let [a, b] = [kept.take(), kept.take()];
    let second = a.reply_to.clone();
    a.answer(|_| 1);
    assert!(!second.wanted() && second.send(2).is_err(), "its place is filled");
    // The other one is waited for.
    let waiting = std::thread::spawn(move || replies(ask.wait()));
    b.answer(|_| 3);
    assert_eq!(waiting.join().unwrap(), [Ok(1), Ok(3)]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.asks.cancelled, ledger.asks.answered, ledger.asks.late), (1, 1, 2), "{ledger}");
}

#[test]
fn answers_can_be_awaited() {
    let system = TestSystem::new();
    let shards = system.router("shards").pool(2, |ctx| Shard(ctx.routee_index())).spawn().unwrap();
    let mut ask = Box::pin(shards.ask_all(Who).within(SECOND));
    let mut look = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ask.as_mut().poll(&mut look).is_pending());
    system.run_until_idle();
    let std::task::Poll::Ready(all) = ask.as_mut().poll(&mut look) else { panic!("all have answered") };
    assert_eq!(replies(all), [Ok(0), Ok(1)]);
    shards.stop();
    system.finish();
}

#[test]
fn an_empty_and_a_stopped_router_say_so_at_once_and_the_request_is_a_dead_letter() {
    let system = TestSystem::new();
    let letters = Arc::new(Mutex::new(Vec::new()));
    let seen = letters.clone();
    let _subscription = system
        .dead_letters()
        .subscribe(move |letter| seen.lock().unwrap().push((letter.recipient.to_string(), letter.reason)));
    let empty: Router<Call<Who>> = system.router("empty").group([]).stay_when_empty().spawn().unwrap();
    assert_eq!(empty.ask_all(Who).wait().unwrap_err(), AskError::no_routees());
    empty.stop();
    system.run_until_idle();
    assert_eq!(empty.ask_all(Who).wait().unwrap_err(), AskError::undeliverable());
    let value: RouterValue<Call<Who>, _> = RouterValue::new(&system, RoundRobin::new()).unwrap();
    assert_eq!(value.ask_all(Who).wait().unwrap_err(), AskError::no_routees());
    let at = |path: &str, reason| (path.to_owned(), reason);
    let expected = [
        at("/user/empty", DeadLetterReason::NoRoutee),
        at("/user/empty", DeadLetterReason::Stopped),
        at("/deadLetters", DeadLetterReason::NoRoutee),
    ];
    assert_eq!(*letters.lock().unwrap(), expected);
    let ledger = system.finish();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.asks.pending()), (3, 3, 0), "{ledger}");
}

/// Asks all shards, and passes on what comes.
struct Clerk {
    shards: Router<Call<Who>>,
    limit: Option<Duration>,
    log: std::sync::mpsc::Sender<Result<Vec<Result<usize, AskError>>, AskError>>,
}
impl Actor for Clerk {
    type Message = All;
    fn started(&mut self, ctx: &mut Context<All>) -> HandlerResult {
        match self.limit {
            Some(limit) => ctx.ask_all_within(&self.shards, Who, limit, |all| all),
            None => ctx.ask_all(&self.shards, Who, |all| all),
        }
        // A worker must not wait.
        assert!(matches!(self.shards.ask_all(Who).wait(), Err(AskError::WouldBlockWorker)));
        Ok(())
    }
    fn receive(&mut self, all: All, ctx: &mut Context<All>) -> HandlerResult {
        self.log.send(all.map(|all| all.into_iter().map(|(_, reply)| reply).collect()))?;
        ctx.stop();
        Ok(())
    }
}

/// Asks all routees of a router value, and passes on what comes.
struct ValueClerk {
    value: RouterValue<Call<Who>, RoundRobin>,
    limit: Option<Duration>,
    log: std::sync::mpsc::Sender<Result<Vec<Result<usize, AskError>>, AskError>>,
}
impl Actor for ValueClerk {
    type Message = All;
    fn started(&mut self, ctx: &mut Context<All>) -> HandlerResult {
        self.value.ask_all_in(ctx, Who, self.limit, |all| all);
        Ok(())
    }
    fn receive(&mut self, all: All, ctx: &mut Context<All>) -> HandlerResult {
        self.log.send(all.map(|all| all.into_iter().map(|(_, reply)| reply).collect()))?;
        ctx.stop();
        Ok(())
    }
}

#[test]
fn an_actor_gets_all_answers_as_one_message() {
    let system = TestSystem::new();
    let (log, notes) = channel();
    let kept = Kept::default();
    let shard = system.spawn(|| Shard(5)).unwrap();
    let shards =
        system.router("shards").group_of([Routee::from(&shard), kept.routee("kept")]).spawn().unwrap();
    let clerk = |limit| {
        let (shards, log) = (shards.clone(), log.clone());
        system.spawn(move || Clerk { shards: shards.clone(), limit, log: log.clone() }).unwrap();
        system.run_until_idle();
    };
    clerk(None);
    assert!(notes.try_recv().is_err());
    kept.take().answer(|_| 6);
    system.run_until_idle();
    assert_eq!(notes.try_recv(), Ok(Ok(vec![Ok(5), Ok(6)])));
    drop(kept.take());
    clerk(Some(SECOND));
    assert!(notes.try_recv().is_err());
    system.advance(SECOND);
    system.run_until_idle();
    assert_eq!(notes.try_recv(), Ok(Ok(vec![Ok(5), Err(AskError::timeout(SECOND))])));
    clerk(Some(Duration::ZERO));
    assert_eq!(notes.try_recv(), Ok(Err(AskError::NoTime)));
    // A router value is asked in the same way.
    let value = RouterValue::new(&system, RoundRobin::new()).unwrap().with_routees([&shard]);
    let (log, notes) = channel();
    for limit in [None, Some(SECOND), Some(Duration::ZERO)] {
        let (value, log) = (value.clone(), log.clone());
        system.spawn(move || ValueClerk { value: value.clone(), limit, log: log.clone() }).unwrap();
        system.run_until_idle();
    }
    assert_eq!(
        notes.try_iter().collect::<Vec<_>>(),
        [Ok(vec![Ok(5)]), Ok(vec![Ok(5)]), Err(AskError::NoTime)]
    );
    kept.0.lock().unwrap().clear();
    shard.stop();
    shards.stop();
    let ledger = system.finish();
    assert_eq!((ledger.asks.pending(), ledger.balance()), (0, 0), "{ledger}");
}

#[test]
fn a_request_that_panics_when_it_is_made_leaves_all_accounted_for() {
    let system = System::builder("panics").build().unwrap();
    let kept = Kept::default();
    let group =
        system.router("group").group_of(["a", "b", "c"].map(|name| kept.routee(name))).spawn().unwrap();
    let mut made = 0;
    let unwound = panic_of(|| {
        drop(group.ask_all_with(|reply_to| {
            made += 1;
            assert!(made < 2, "the second");
            Call::new(Who, reply_to)
        }));
    });
    assert!(unwound.contains("the second"), "{unwound}");
    assert!(!kept.take().reply_to.wanted());
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (3, 1, 2), "{ledger}");
    assert_eq!((ledger.asks.pending(), ledger.balance()), (0, 0), "{ledger}");
}

/// Counts replies that are dropped, and panics at it.
struct Sore(Arc<Mutex<u32>>);
impl Drop for Sore {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
        panic!("planted");
    }
}

#[test]
fn replies_that_are_not_taken_are_dropped_once_each_though_each_panics() {
    let system = System::builder("sore").build().unwrap();
    let drops = Arc::new(Mutex::new(0));
    let ports = Arc::new(Mutex::new(Vec::<ReplyTo<Sore>>::new()));
    let to = || {
        let ports = ports.clone();
        ActorRef::from_fn(move |port: ReplyTo<Sore>| ports.lock().unwrap().push(port))
    };
    let group = system.router("group").group([to(), to()]).spawn().unwrap();
    let ask = group.ask_all_with(|port: ReplyTo<Sore>| port);
    let taken = std::mem::take(&mut *ports.lock().unwrap());
    taken.into_iter().for_each(|port| assert!(port.send(Sore(drops.clone())).is_ok()));
    drop(ask);
    assert_eq!(*drops.lock().unwrap(), 2);
    assert_eq!(system.shutdown(LONG).unwrap().asks.pending(), 0);
}

#[test]
fn a_copy_that_a_leaving_routee_leaves_behind_is_answered_by_nobody_else() {
    let left_behind = AtomicU64::new(0);
    TestSystem::for_seeds(20, |system| {
        let plan = system.router("shards").pool(2, |ctx| Shard(ctx.routee_index()));
        let shards = plan.leave_within(Duration::ZERO).spawn().unwrap();
        let ask = shards.ask_all(Who);
        // The last one leaves at once. Whether it has answered by then is up to the seed.
        assert_eq!(shards.resize_to(1).unwrap(), 1);
        let replies = replies(ask.wait());
        let lost = system.ledger().dead_lettered;
        let expected = if lost == 0 { Ok(1) } else { Err(AskError::no_reply()) };
        assert_eq!(replies, [Ok(0), expected]);
        left_behind.fetch_add(lost, Ordering::Relaxed);
        shards.stop();
    });
    assert_ne!(left_behind.load(Ordering::Relaxed), 0, "no seed has tried it");
}

#[test]
fn a_router_among_the_routees_and_several_in_one_place_answer_once() {
    let system = TestSystem::new();
    let inner = system.router("inner").pool(2, |_| Shard(1)).spawn().unwrap();
    let [a, b] = [2, 2].map(|number| system.spawn(move || Shard(number)).unwrap());
    let routees = [Routee::from(inner.to_ref()), Routee::several([&a, &b])];
    let outer = system.router("outer").group_of(routees).spawn().unwrap();
    assert_eq!(replies(outer.ask_all(Who).wait()), [Ok(1), Ok(2)]);
    system.run_until_idle();
    [&inner, &outer].into_iter().for_each(Router::stop);
    [a, b].iter().for_each(ActorRef::stop);
    let ledger = system.finish();
    assert_eq!((ledger.asks.late, ledger.handled, ledger.balance()), (1, 3, 0), "{ledger}");
}

#[test]
fn all_answers_of_threads_that_ask_at_once_come_home() {
    let system = System::builder("threads").build().unwrap();
    let shards = system.router("shards").pool(4, |ctx| Shard(ctx.routee_index())).spawn().unwrap();
    let asking: Vec<_> = (0..2)
        .map(|_| {
            let shards = shards.clone();
            std::thread::spawn(move || {
                for _ in 0..200 {
                    assert_eq!(
                        replies(shards.ask_all(Who).within(LONG).wait()),
                        [Ok(0), Ok(1), Ok(2), Ok(3)]
                    );
                }
            })
        })
        .collect();
    asking.into_iter().for_each(|thread| thread.join().unwrap());
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.asks.answered, ledger.handled, ledger.balance()), (400, 1600, 0), "{ledger}");
}
