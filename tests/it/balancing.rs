//! Balancing pools: one queue for all routees, and a mailbox of its own for each.

use crate::support::{
    Ground, Hook, LONG, Role, Stage, Tell, act, fail, hold, hold_and_fail, noting, query, wait_until,
};
use pointsman::actor::RecipientLoad;
use pointsman::mailbox::MailboxFault;
use pointsman::prelude::*;
use pointsman::routing::{Balancing, DefaultResizer, ManageError, RouterPlan};
use pointsman::testkit::TestSystem;
use pointsman::time::ManualClock;
use pointsman::{DeadLetterReason, SendError, SpawnError};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Executors on which a pool may run, with threads enough for all of its routees to be held.
fn executors() -> [Dispatcher; 4] {
    [
        Dispatcher::work_stealing().threads(4),
        Dispatcher::blocking().thread_range(1..=8),
        Dispatcher::pinned(),
        Dispatcher::work_stealing().threads(4).throughput(1),
    ]
}

fn stage(executor: Dispatcher) -> Stage {
    Stage::threads_with("balancing", |builder| builder.dispatcher("crew", executor))
}

/// What routees are called in notes, by their numbers.
const NAMES: [&str; 9] = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];

/// A pool of puppets that note under their numbers.
fn plan(system: &SystemRef, log: &Sender<String>, size: usize) -> RouterPlan<Tell, Balancing<Tell>> {
    let roles = NAMES.map(|name| Role::new(name, log));
    system.router("pool").balancing_pool(size, move |ctx| roles[ctx.routee_index() % NAMES.len()].recipe()())
}

/// A pool whose routees have all started.
fn pool(stage: &Stage, size: usize) -> Router<Tell> {
    let plan = plan(&stage.system, &stage.log, size).dispatcher("crew");
    let router = plan.on_failure(Strategy::default().max_restarts(100)).spawn().expect("the plan is sound");
    heard(stage, "Started 1", size);
    router
}

/// So many routees note this next; returns which.
#[track_caller]
fn heard(stage: &Stage, text: &str, count: usize) -> Vec<usize> {
    let who = |note: String| {
        let (name, said) = note.split_once(' ').expect("a name and a text");
        assert_eq!(said, text, "{note}");
        name.parse().expect("a number")
    };
    (0..count).map(|_| who(stage.note())).collect()
}

/// Whoever takes it notes its number.
fn who(router: &ActorRef<Tell>) -> usize {
    query(router, |_, ctx| ctx.routee_index()).expect("somebody answers")
}

/// What nobody took: for whom it was, and why.
fn letters(system: &SystemRef) -> (Receiver<(String, DeadLetterReason)>, pointsman::events::Subscription) {
    let (sender, letters) = channel();
    let subscription = system.dead_letters().subscribe(move |letter| {
        let _ = sender.send((letter.recipient.to_string(), letter.reason));
    });
    (letters, subscription)
}

#[test]
fn no_message_waits_behind_a_slow_routee_while_another_is_idle() {
    for executor in executors() {
        let stage = stage(executor);
        let router = pool(&stage, 3);
        // Two of three are held, each by a message that it took from the queue.
        let held = [hold(&router), hold(&router)];
        let free = who(&router);
        assert!((0..100).all(|_| who(&router) == free));
        drop(held);
        wait_until(|| router.load() == RecipientLoad::Idle);
        stage.end(&["0 Stopped 1", "1 Stopped 1", "2 Stopped 1"]);
    }
}

#[test]
fn each_send_wakes_one_more_idle_routee_until_all_are_at_work() {
    let stage = stage(Dispatcher::blocking().thread_range(1..=8));
    let router = pool(&stage, 8);
    // Each `hold` returns when its handler runs, so eight of them are eight routees.
    let held: Vec<_> = (0..8).map(|_| hold(&router)).collect();
    assert_eq!(router.load(), RecipientLoad::Busy { queued: 0 });
    (0..5).for_each(|_| router.tell(noting("late")));
    assert_eq!((router.load(), router.queued()), (RecipientLoad::Busy { queued: 5 }, Some(5)));
    drop(held);
    heard(&stage, "late", 5);
    wait_until(|| router.load() == RecipientLoad::Idle);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn the_books_count_what_is_in_the_shared_queue() {
    let stage = stage(Dispatcher::blocking());
    let router = pool(&stage, 1);
    let held = hold(&router);
    (0..7).for_each(|_| router.tell(noting("late")));
    let ledger = stage.system.ledger();
    assert_eq!((ledger.queued, ledger.balance()), (7, 0), "{ledger}");
    assert_eq!(router.head().queued(), Some(7));
    drop(held);
    heard(&stage, "late", 7);
    wait_until(|| stage.system.ledger().queued == 0);
    stage.end(&["0 Stopped 1"]);
}

#[test]
fn a_bounded_queue_refuses_or_drops_the_newest() {
    for policy in [OverflowPolicy::Reject, OverflowPolicy::DropNewest] {
        let stage = stage(Dispatcher::blocking());
        let (letters, _subscription) = letters(&stage.system);
        let bounded = Mailbox::bounded(3).on_full(policy);
        let router = plan(&stage.system, &stage.log, 1).queue(bounded).dispatcher("crew").spawn().unwrap();
        heard(&stage, "Started 1", 1);
        let held = hold(&router);
        (0..3).for_each(|_| router.tell(noting("kept")));
        router.tell(noting("too many"));
        let reason = if policy == OverflowPolicy::Reject {
            assert!(matches!(router.try_tell(noting("too many")), Err(SendError::Full(_))));
            DeadLetterReason::Full
        } else {
            assert!(router.try_tell(noting("too many")).is_ok(), "dropped, and that is no error");
            DeadLetterReason::Dropped
        };
        assert_eq!(letters.recv_timeout(LONG).unwrap(), ("/user/pool".to_owned(), reason));
        drop(held);
        heard(&stage, "kept", 3);
        let ledger = stage.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (6, 4, 0), "{ledger}");
        let (dead, back, dropped) = if policy == OverflowPolicy::Reject { (1, 1, 0) } else { (0, 0, 2) };
        assert_eq!((ledger.dead_lettered, ledger.handed_back, ledger.dropped), (dead, back, dropped));
    }
}

#[test]
fn a_full_queue_may_drop_the_message_that_has_waited_longest() {
    let stage = stage(Dispatcher::blocking());
    let (letters, _subscription) = letters(&stage.system);
    let bounded = Mailbox::bounded(3).on_full(OverflowPolicy::DropOldest);
    let router = plan(&stage.system, &stage.log, 1).queue(bounded).dispatcher("crew").spawn().unwrap();
    heard(&stage, "Started 1", 1);
    let held = hold(&router);
    for text in ["first", "second", "third", "fourth"] {
        router.tell(noting(text));
    }
    assert!(router.try_tell(noting("fifth")).is_ok(), "an older one is dropped, and that is no error");
    assert_eq!(router.load(), RecipientLoad::Busy { queued: 3 });
    let dropped = ("/user/pool".to_owned(), DeadLetterReason::Dropped);
    assert_eq!(
        (letters.recv_timeout(LONG).unwrap(), letters.recv_timeout(LONG).unwrap()),
        (dropped.clone(), dropped)
    );
    // What a routee has taken is not dropped any more, and what is its own is not in the queue.
    let own = router.routees().unwrap();
    own[0].tell(noting("own"));
    drop(held);
    stage.expect(&["0 own", "0 third", "0 fourth", "0 fifth"]);
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dropped, ledger.dead_lettered, ledger.balance()), (2, 0, 0), "{ledger}");
}

#[test]
fn what_is_sent_to_a_routee_itself_is_for_it_alone() {
    for executor in executors() {
        let stage = stage(executor);
        let router = pool(&stage, 3);
        let routees = router.routees().unwrap();
        for (index, routee) in routees.iter().enumerate() {
            assert_eq!(who(routee), index, "by its reference");
        }
        // Self-sends, timers and answers come back to whoever took the message.
        let (sender, seen) = channel();
        let answering = routees[0].clone();
        act(&router, move |_, ctx| {
            let me = ctx.routee_index();
            let (own, timed, asked) = (sender.clone(), sender.clone(), sender);
            act(&ctx.me().clone(), move |_, ctx| Ok(own.send((me, ctx.routee_index()))?));
            let tick = Tell::new(move |_, ctx| Ok(timed.send((me, ctx.routee_index()))?));
            let _ = ctx.after(Duration::from_millis(5), tick);
            let answer = answering.ask_with(|reply_to: ReplyTo<()>| {
                Tell::new(move |_, _| {
                    let _ = reply_to.send(());
                    Ok(())
                })
            });
            ctx.pipe_to_self(answer, move |_| {
                Tell::new(move |_, ctx| Ok(asked.send((me, ctx.routee_index()))?))
            })?;
            Ok(())
        });
        for expected in 0..3 {
            if expected == 2 {
                stage.clock.advance(Duration::from_millis(5));
            }
            let (sent_by, got_by) = seen.recv_timeout(LONG).unwrap();
            assert_eq!(sent_by, got_by);
        }
        assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn a_pill_and_a_kill_of_one_routee_concern_it_alone_and_keep_their_place() {
    let stage = stage(Dispatcher::blocking().thread_range(1..=8));
    let router = pool(&stage, 3);
    let routees = router.routees().unwrap();
    let held = hold(&routees[1]);
    act(&routees[1], |puppet, _| {
        puppet.note(format_args!("before the pill"));
        Ok(())
    });
    routees[1].poison();
    routees[1].tell(noting("behind the pill"));
    drop(held);
    stage.expect(&["1 before the pill", "1 Stopped 1"]);
    wait_until(|| router.routees().unwrap().len() == 2);
    let held = hold(&routees[0]);
    assert!((0..20).all(|_| who(&router) == 2));
    drop(held);
    // Whoever is killed stops, unless the pool's strategy says otherwise.
    routees[2].kill();
    stage.expect(&["2 Stopped 1"]);
    assert!((0..20).all(|_| who(&router) == 0));
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (1, 0), "{ledger}");
}

#[test]
fn a_broadcast_reaches_each_routee_once_whatever_is_in_the_queue() {
    for executor in executors() {
        let system = System::builder("balancing").dispatcher("crew", executor).build().unwrap();
        let (sender, got) = channel();
        let sender = Mutex::new(sender);
        let router = system
            .router("pool")
            .balancing_pool(4, move |_| Reporter(sender.lock().unwrap().clone()))
            .dispatcher("crew")
            .spawn()
            .unwrap();
        let mut broadcast: HashMap<usize, usize> = HashMap::new();
        (0..500u64).for_each(|n| router.tell(n));
        assert_eq!(router.broadcast(1000u64), 4);
        (500..1000u64).for_each(|n| router.tell(n));
        let mut shared = HashSet::new();
        for _ in 0..1004 {
            match got.recv_timeout(LONG).unwrap() {
                (index, 1000) => *broadcast.entry(index).or_default() += 1,
                (_, number) => assert!(shared.insert(number), "handled twice"),
            }
        }
        assert_eq!(broadcast, (0..4).map(|index| (index, 1)).collect());
        assert_eq!(shared.len(), 1000);
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.handled, ledger.balance()), (1004, 0), "{ledger}");
    }
}

/// Tells a channel who it is and what it got.
struct Reporter(Sender<(usize, u64)>);

impl Actor for Reporter {
    type Message = u64;
    fn receive(&mut self, message: u64, ctx: &mut Context<u64>) -> HandlerResult {
        let _ = self.0.send((ctx.routee_index(), message));
        Ok(())
    }
}

#[test]
fn a_routee_that_restarts_keeps_its_part_and_the_queue() {
    let stage = stage(Dispatcher::blocking());
    let router = pool(&stage, 1);
    let held = hold_and_fail(&router);
    (0..3).for_each(|_| router.tell(noting("kept")));
    drop(held);
    stage.expect(&["0 Restarting 1", "0 Restarted 2"]);
    heard(&stage, "kept", 3);
    stage.end(&["0 Stopped 2"]);
}

#[test]
fn a_suspended_routee_takes_nothing_while_the_others_go_on() {
    let stage = stage(Dispatcher::blocking().thread_range(1..=8));
    let (release, judging) = channel::<()>();
    let judging = Mutex::new(judging);
    // The head waits before it judges; the one that has failed is suspended so long.
    let strategy = Strategy::decide(move |_| {
        let _ = judging.lock().unwrap().recv();
        Directive::Resume
    });
    let router = plan(&stage.system, &stage.log, 2).dispatcher("crew").on_failure(strategy).spawn().unwrap();
    heard(&stage, "Started 1", 2);
    let routees = router.routees().unwrap();
    fail(&routees[0]);
    wait_until(|| routees[0].load() == RecipientLoad::Suspended);
    assert!((0..50).all(|_| who(&router) == 1));
    let held = hold(&router);
    (0..5).for_each(|_| router.tell(noting("later")));
    assert_eq!(router.queued(), Some(5), "the other one is suspended");
    release.send(()).unwrap();
    // Resumed, it takes what is there without any further send.
    heard(&stage, "later", 5);
    drop(held);
    stage.end(&["0 Stopped 1", "1 Stopped 1"]);
}

#[test]
fn when_one_stops_the_others_go_on() {
    for executor in executors() {
        let stage = stage(executor);
        let router = pool(&stage, 3);
        let routees = router.routees().unwrap();
        let held: Vec<_> = (0..3).map(|_| hold(&router)).collect();
        (0..20).for_each(|_| router.tell(noting("kept")));
        routees[0].stop();
        routees[2].stop();
        drop(held);
        let mut seen: Vec<String> = (0..22).map(|_| stage.note()).collect();
        seen.sort();
        let stops: Vec<&String> = seen.iter().filter(|note| note.contains("Stopped")).collect();
        assert_eq!(stops, ["0 Stopped 1", "2 Stopped 1"]);
        assert_eq!(seen.iter().filter(|note| note.ends_with(" kept")).count(), 20);
        assert_eq!(who(&router), 1);
        let ledger = stage.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
    }
}

#[test]
fn resizing_under_load_loses_nothing() {
    for executor in executors() {
        let system = System::builder("balancing").dispatcher("crew", executor).build().unwrap();
        let (sender, got) = channel();
        let sender = Mutex::new(sender);
        let router = system
            .router("pool")
            .balancing_pool(4, move |_| Reporter(sender.lock().unwrap().clone()))
            .dispatcher("crew")
            .spawn()
            .unwrap();
        const EACH: u64 = 10_000;
        let senders: Vec<_> = (0..2)
            .map(|sender| {
                let router = router.to_ref();
                std::thread::spawn(move || (0..EACH).for_each(|n| router.tell(sender * EACH + n)))
            })
            .collect();
        for size in [7, 1, 5, 2, 8, 3].into_iter().cycle().take(30) {
            router.resize_to(size).unwrap();
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        router.resize_to(1).unwrap();
        let seen: HashSet<u64> = (0..2 * EACH).map(|_| got.recv_timeout(LONG).unwrap().1).collect();
        assert_eq!(seen.len() as u64, 2 * EACH);
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
        assert_eq!(got.try_iter().count(), 0);
    }
}

#[test]
fn a_removed_routee_handles_its_own_mailbox_and_hands_none_of_it_on() {
    let stage = stage(Dispatcher::blocking().thread_range(1..=8));
    let router = pool(&stage, 2);
    let routees = router.routees().unwrap();
    let held = hold(&routees[1]);
    routees[1].tell(noting("before"));
    assert!(router.remove(&routees[1]).unwrap());
    routees[1].tell(noting("behind"));
    (0..5).for_each(|_| router.tell(noting("shared")));
    heard(&stage, "shared", 5);
    drop(held);
    stage.expect(&["1 before", "1 behind", "1 Stopped 1"]);
    let system = stage.system.clone();
    stage.end(&["0 Stopped 1"]);
    assert_eq!(system.ledger().dead_lettered, 0);
}

#[test]
fn a_router_that_drains_and_a_pool_that_shrinks_to_nobody_empty_the_queue_first() {
    type End = fn(&Router<Tell>);
    let ends: [End; 2] = [|router| router.drain().unwrap(), |router| _ = router.resize_to(0).unwrap()];
    for end in ends {
        let stage = stage(Dispatcher::blocking().thread_range(1..=8));
        let plan = plan(&stage.system, &stage.log, 2).dispatcher("crew").stay_when_empty();
        let router = plan.spawn().unwrap();
        heard(&stage, "Started 1", 2);
        let routees = router.routees().unwrap();
        let held = [hold(&router), hold(&router)];
        (0..10).for_each(|_| router.tell(noting("shared")));
        routees.iter().for_each(|routee| routee.tell(noting("own")));
        end(&router);
        assert!(router.try_tell(noting("late")).is_err());
        drop(held);
        let mut seen: Vec<String> = (0..14).map(|_| stage.note()).collect();
        let place = |text: &str| seen.iter().position(|note| note == text).expect(text);
        for number in 0..2 {
            assert!(place(&format!("{number} own")) < place(&format!("{number} Stopped 1")));
        }
        seen.retain(|note| note.ends_with(" shared"));
        assert_eq!(seen.len(), 10);
        let ledger = stage.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.dead_lettered, ledger.handed_back, ledger.balance()), (0, 1, 0), "{ledger}");
    }
}

#[test]
fn a_routee_that_leaves_and_turns_out_to_be_the_last_empties_the_queue_first() {
    let stage = stage(Dispatcher::blocking().thread_range(1..=8));
    let router = pool(&stage, 2);
    let routees = router.routees().unwrap();
    let held = [hold(&routees[0]), hold(&routees[1])];
    (0..5).for_each(|_| router.tell(noting("shared")));
    assert_eq!(router.resize_to(1).unwrap(), 1);
    // The one that was to stay ends first.
    routees[0].stop();
    let [first, last] = held;
    drop(first);
    stage.expect(&["0 Stopped 1"]);
    // It takes no part in the queue any more; it still does a moment after it has closed.
    routees[0].when_ended().within(LONG).wait().unwrap();
    drop(last);
    stage.expect(&["1 shared", "1 shared", "1 shared", "1 shared", "1 shared", "1 Stopped 1"]);
    let system = stage.system.clone();
    stage.end(&[]);
    assert_eq!(system.ledger().dead_lettered, 0);
}

/// Ends the only routee of a loaded pool by `end`.
fn leaves_to_dead_letters(end: impl Fn(&Router<Tell>)) {
    // The head runs on this thread: what it is told to do is done.
    let (log, notes) = channel();
    let builder = System::builder("balancing").dispatcher("default", Dispatcher::calling_thread());
    let system = builder.dispatcher("crew", Dispatcher::blocking()).build().unwrap();
    let stage = Stage { system: Ground::Threads(system), clock: ManualClock::new(), log, notes };
    let (letters, _subscription) = letters(&stage.system);
    let router = pool(&stage, 1);
    let held = hold(&router);
    (0..5).for_each(|_| router.tell(noting("never")));
    let asked = router.ask_with(|reply_to: ReplyTo<()>| {
        Tell::new(move |_, _| {
            drop(reply_to);
            Ok(())
        })
    });
    end(&router);
    drop(held);
    assert_eq!(stage.note(), "0 Stopped 1");
    for _ in 0..6 {
        let letter = letters.recv_timeout(LONG).unwrap();
        assert_eq!(letter, ("/user/pool".to_owned(), DeadLetterReason::Stopped));
    }
    assert_eq!(asked.wait(), Err(AskError::no_reply()));
    wait_until(|| router.is_closed());
    assert!(matches!(router.try_tell(noting("late")), Err(SendError::Closed(_))));
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.handed_back, ledger.balance()), (6, 1, 0), "{ledger}");
}

#[test]
fn the_end_of_the_last_routee_makes_dead_letters_of_the_queue() {
    leaves_to_dead_letters(|router| router.routees().unwrap()[0].stop());
}

#[test]
fn the_end_of_the_router_makes_dead_letters_of_the_queue() {
    leaves_to_dead_letters(Router::stop);
}

#[test]
fn a_pool_that_stays_when_it_is_empty_refuses_and_can_grow_again() {
    let stage = stage(Dispatcher::blocking());
    let router = plan(&stage.system, &stage.log, 2).dispatcher("crew").stay_when_empty().spawn().unwrap();
    heard(&stage, "Started 1", 2);
    for round in 1..=3u64 {
        router.routees().unwrap().iter().for_each(ActorRef::stop);
        heard(&stage, "Stopped 1", 2);
        wait_until(|| router.routees().unwrap().is_empty());
        assert!(matches!(router.try_tell(noting("to nobody")), Err(SendError::NoRoutee(_))));
        router.tell(noting("to nobody"));
        assert_eq!(router.load(), RecipientLoad::Closed);
        assert_eq!(router.resize_to(2).unwrap(), 2);
        heard(&stage, "Started 1", 2);
        router.tell(noting("again"));
        heard(&stage, "again", 1);
        let ledger = stage.system.ledger();
        assert_eq!((ledger.dead_lettered, ledger.handed_back), (round, round), "{ledger}");
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_routee_busy_with_its_own_mailbox_still_takes_from_the_queue() {
    fn again(turns: Arc<AtomicU64>) -> Tell {
        Tell::new(move |puppet, ctx| {
            turns.fetch_add(1, Ordering::Relaxed);
            // Until a message of the queue has been handled.
            if puppet.value == 0 {
                ctx.me().tell(again(turns));
            }
            Ok(())
        })
    }
    for executor in executors() {
        let stage = stage(executor);
        let router = pool(&stage, 1);
        let turns = Arc::<AtomicU64>::default();
        router.routees().unwrap()[0].tell(again(turns.clone()));
        wait_until(|| turns.load(Ordering::Relaxed) > 200);
        act(&router, |puppet, _| {
            puppet.value = 1;
            puppet.note(format_args!("taken"));
            Ok(())
        });
        heard(&stage, "taken", 1);
        stage.end(&["0 Stopped 1"]);
    }
}

#[test]
fn a_routee_busy_with_the_queue_still_handles_its_own_mailbox() {
    fn again(router: ActorRef<Tell>, turns: Arc<AtomicU64>) -> Tell {
        Tell::new(move |puppet, _| {
            turns.fetch_add(1, Ordering::Relaxed);
            if puppet.value == 0 {
                router.clone().tell(again(router, turns));
            }
            Ok(())
        })
    }
    for executor in executors() {
        let stage = stage(executor);
        let router = pool(&stage, 1);
        let turns = Arc::<AtomicU64>::default();
        router.tell(again(router.to_ref(), turns.clone()));
        wait_until(|| turns.load(Ordering::Relaxed) > 200);
        act(&router.routees().unwrap()[0], |puppet, _| {
            puppet.value = 1;
            puppet.note(format_args!("handled"));
            Ok(())
        });
        heard(&stage, "handled", 1);
        stage.end(&["0 Stopped 1"]);
    }
}

#[test]
fn control_is_looked_at_before_each_message_of_the_queue() {
    let stage = stage(Dispatcher::blocking().throughput(1000));
    let router = pool(&stage, 1);
    let held = hold(&router);
    (0..10).for_each(|_| router.tell(noting("never")));
    router.routees().unwrap()[0].stop();
    drop(held);
    stage.expect(&["0 Stopped 1"]);
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (10, 0), "{ledger}");
}

#[test]
fn a_turn_takes_no_more_messages_than_the_dispatchers_throughput() {
    // One thread: another actor's turn comes after so many messages, and not after all of them.
    let stage = stage(Dispatcher::work_stealing().threads(1).throughput(3));
    let router = pool(&stage, 1);
    let other = stage.role("other");
    let other = stage.system.actor("other").dispatcher("crew").spawn(other.recipe()).unwrap();
    stage.expect(&["other Started 1"]);
    let told = other.clone();
    act(&router, move |_, ctx| {
        let router = ctx.parent().expect("the head").typed::<Tell>().expect("the router");
        (0..6).for_each(|_| router.tell(noting("shared")));
        told.tell(noting("between"));
        Ok(())
    });
    // The first turn takes the message above and two more.
    stage.expect(&["0 shared", "0 shared", "other between"]);
    heard(&stage, "shared", 4);
    stage.end(&["0 Stopped 1", "other Stopped 1"]);
}

/// A question, or the order to ask so many that nobody waits for, and then to tell another one.
enum Backlog {
    Question(Call<Asked>),
    Pile(usize, ActorRef<()>),
}

// As `#[derive(Message)]` writes it; this runs without the feature `macros`, too.
impl From<Call<Asked>> for Backlog {
    fn from(call: Call<Asked>) -> Self {
        Self::Question(call)
    }
}

impl pointsman::ask::Answerable for Backlog {
    fn fork(&mut self, attempt: &pointsman::ask::Attempt) -> bool {
        match self {
            Self::Question(call) => call.fork(attempt),
            Self::Pile(..) => false,
        }
    }
}

struct Asked;

impl Request for Asked {
    type Reply = ();
}

/// A routee.
struct Piles;

impl Actor for Piles {
    type Message = Backlog;
    fn receive(&mut self, message: Backlog, ctx: &mut Context<Backlog>) -> HandlerResult {
        match message {
            Backlog::Question(call) => call.answer(|Asked| ()),
            Backlog::Pile(count, other) => {
                let router = ctx.parent().expect("the head").typed::<Backlog>().expect("the router");
                (0..count).for_each(|_| drop(router.ask(Asked)));
                other.tell(());
            }
        }
        Ok(())
    }
}

/// Tells how many messages were skipped when it had its turn.
struct Counts(Sender<u64>);

impl Actor for Counts {
    type Message = ();
    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        self.0.send(ctx.system().ledger().skipped)?;
        Ok(())
    }
}

#[test]
fn a_turn_skips_no_more_messages_than_the_dispatchers_throughput() {
    let executor: Dispatcher = Dispatcher::work_stealing().threads(1).throughput(3);
    let system = System::builder("balancing").dispatcher("crew", executor).build().unwrap();
    let pool = system.router("pool").balancing_pool(1, |_| Piles).dispatcher("crew").skip_unwanted();
    let pool = pool.spawn().unwrap();
    let (sender, skipped) = channel();
    let other = system.actor("other").dispatcher("crew").spawn(move || Counts(sender.clone())).unwrap();
    pool.tell(Backlog::Pile(1000, other));
    // The first turn takes the order and two questions.
    assert_eq!(skipped.recv_timeout(LONG), Ok(2));
    wait_until(|| system.ledger().skipped == 1000);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

/// Asks a pool so many questions that nobody waits for, and then tells how many were skipped whenever it has a turn,
/// until all are.
struct Asks {
    pool: ActorRef<Backlog>,
    count: u64,
    skipped: Sender<u64>,
}

impl Actor for Asks {
    type Message = bool;
    fn receive(&mut self, asks: bool, ctx: &mut Context<bool>) -> HandlerResult {
        if asks {
            (0..self.count).for_each(|_| drop(self.pool.ask(Asked)));
        }
        let skipped = ctx.system().ledger().skipped;
        self.skipped.send(skipped)?;
        if skipped < self.count {
            ctx.me().tell(false);
        }
        Ok(())
    }
}

#[test]
fn a_turn_that_begins_with_a_call_to_the_queue_skips_no_more_messages_than_the_throughput() {
    const THROUGHPUT: u64 = 3;
    const COUNT: u64 = 100 * THROUGHPUT;
    let executor = Dispatcher::work_stealing().threads(1).throughput(THROUGHPUT as u32);
    let system = System::builder("balancing").dispatcher("crew", executor).build().unwrap();
    let pool = system.router("pool").balancing_pool(1, |_| Piles).dispatcher("crew").skip_unwanted();
    let pool = pool.spawn().unwrap();
    assert_eq!(pool.ask(Asked).wait(), Ok(()));
    // It sleeps, so the first question calls it. It cannot come before the actor that asks has asked all.
    wait_until(|| pool.load() == RecipientLoad::Idle);
    let (skipped, counts) = channel();
    let to = pool.to_ref();
    let asks = move || Asks { pool: to.clone(), count: COUNT, skipped: skipped.clone() };
    system.actor("asks").dispatcher("crew").spawn(asks).unwrap().tell(true);
    let mut between = 0;
    loop {
        match counts.recv_timeout(LONG).expect("it has turns") {
            COUNT => break,
            skipped => {
                assert_eq!(skipped % THROUGHPUT, 0, "{skipped}");
                between += u64::from(skipped > 0);
            }
        }
    }
    assert_ne!(between, 0, "the pool left it no turn");
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.skipped, ledger.dead_lettered, ledger.balance()), (COUNT, 0, 0), "{ledger}");
}

#[test]
fn stash_and_receive_timeout_work_with_messages_of_the_queue() {
    let stage = stage(Dispatcher::blocking());
    let router = pool(&stage, 1);
    act(&router, |_, ctx| {
        ctx.stash(noting("stashed")).map_err(|_| Failure::msg("no room"))?;
        ctx.set_receive_timeout(Duration::from_millis(10), |_| noting("idle"))?;
        Ok(())
    });
    router.tell(noting("first"));
    act(&router, |_, ctx| {
        ctx.unstash_all();
        Ok(())
    });
    router.tell(noting("last"));
    stage.expect(&["0 first", "0 stashed", "0 last"]);
    // A message of the queue ends the idle time, as any.
    let settled = || wait_until(|| router.load() == RecipientLoad::Idle);
    settled();
    for _ in 0..2 {
        stage.clock.advance(Duration::from_millis(9));
        assert_eq!(who(&router), 0);
        settled();
    }
    stage.clock.advance(Duration::from_millis(10));
    stage.expect(&["0 idle"]);
    stage.end(&["0 Stopped 1"]);
}

#[test]
fn what_is_wrong_with_a_pool_is_told_when_it_is_made() {
    let stage = Stage::threads("balancing");
    let living = stage.system.living_actors();
    let empty = plan(&stage.system, &stage.log, 0).spawn().unwrap_err();
    assert!(matches!(empty, SpawnError::EmptyPool { .. }), "{empty}");
    let zero = plan(&stage.system, &stage.log, 1).queue(Mailbox::bounded(0)).spawn().unwrap_err();
    assert!(matches!(zero, SpawnError::ZeroCapacity { .. }), "{zero}");
    let unfit = [
        Mailbox::priority(|_: &Tell| 0),
        Mailbox::control_aware(|_: &Tell| false),
        Mailbox::bounded(5).on_full(OverflowPolicy::Wait(LONG)),
    ];
    for mailbox in unfit {
        let error = plan(&stage.system, &stage.log, 1).queue(mailbox).spawn().unwrap_err();
        assert!(error.to_string().contains("use Mailbox::unbounded()"), "{error}");
        let fault = matches!(error, SpawnError::Mailbox { fault: MailboxFault::NotShareable { .. }, .. });
        assert!(fault, "{error}");
    }
    for policy in [OverflowPolicy::Reject, OverflowPolicy::DropOldest] {
        let endless = Mailbox::bounded(usize::MAX).on_full(policy);
        let error = plan(&stage.system, &stage.log, 1).queue(endless).spawn().unwrap_err();
        let fault = matches!(error, SpawnError::Mailbox { fault: MailboxFault::LargeCapacity { .. }, .. });
        assert!(fault, "{error}");
    }
    let resized = plan(&stage.system, &stage.log, 1).resizer(DefaultResizer::new()).spawn().unwrap_err();
    let fault = matches!(resized, SpawnError::ResizerOfSharedQueue { .. });
    assert!(fault && resized.to_string().contains("leave the resizer out"), "{resized}");
    assert_eq!(stage.system.living_actors(), living);
    // The mailboxes of the routees themselves may be of any kind.
    let router = plan(&stage.system, &stage.log, 1).mailbox(Mailbox::priority(|_: &Tell| 0)).spawn().unwrap();
    let stranger = stage.spawn(&stage.role("stranger"));
    let refused = router.add(stranger).unwrap_err();
    assert!(matches!(refused, ManageError::SharedQueue { .. }), "{refused}");
    assert!(matches!(router.resize_to(0), Err(ManageError::EmptyPool { .. })));
    assert_eq!(who(&router), 0);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_pool_may_run_on_the_senders_threads() {
    let stage = stage(Dispatcher::calling_thread());
    let router = pool(&stage, 2);
    // A routee notes its start in a turn of the thread that made it: until that is over, it takes messages there.
    wait_until(|| {
        let routees = router.routees().unwrap();
        routees.len() == 2 && routees.iter().all(|routee| routee.load() == RecipientLoad::Idle)
    });
    (0..4).for_each(|_| router.tell(noting("at once")));
    let seen: Vec<String> = stage.notes.try_iter().collect();
    assert_eq!(seen.iter().filter(|note| note.ends_with(" at once")).count(), 4);
    stage.end(&["0 Stopped 1", "1 Stopped 1"]);
}

#[test]
fn a_pool_is_a_routee_like_any() {
    let stage = stage(Dispatcher::blocking());
    let inner = pool(&stage, 2);
    let outer = stage.system.router("outer").group([inner.to_ref()]).spawn().unwrap();
    (0..4).for_each(|_| outer.tell(noting("through two")));
    heard(&stage, "through two", 4);
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (4, 4, 0), "{ledger}");
}

#[test]
fn in_whatever_order_turns_come_nobody_sleeps_beside_a_message() {
    TestSystem::for_seeds(100, |system: &TestSystem| {
        let (log, notes) = channel();
        let plan = plan(system, &log, 3).on_failure(Strategy::default().max_restarts(1000)).stay_when_empty();
        let router = plan.spawn().unwrap();
        let (mut sent, handled) = (0, Arc::<AtomicUsize>::default());
        for round in 0..30u64 {
            for _ in 0..round % 4 {
                let handled = handled.clone();
                act(&router, move |_, _| {
                    handled.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                });
                sent += 1;
            }
            let routees = router.routees().unwrap();
            match ((round * 7 + system.seed()) % 8, &routees[..]) {
                (0, _) => fail(&router),
                (1, [first, ..]) => fail(first),
                (2, [first, ..]) => first.poison(),
                (3, [.., last]) => last.stop(),
                (4, [.., last]) => act(last, |_, _| Ok(())),
                (5 | 6, _) => _ = router.resize_to(1 + round as usize % 4).unwrap(),
                _ => {}
            }
            (0..round % 5).for_each(|_| _ = system.step());
        }
        // Whoever was told to stop has done so.
        system.run_until_idle();
        let _ = router.resize_to(2).unwrap();
        system.run_until_idle();
        assert_eq!((router.queued(), router.load()), (Some(0), RecipientLoad::Idle));
        let ledger = system.ledger();
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        if ledger.dead_lettered == 0 {
            assert_eq!(handled.load(Ordering::Relaxed), sent);
        }
        router.stop();
        system.run_until_idle();
        drop(notes);
    });
}

#[test]
fn a_routee_that_was_woken_for_the_queue_looks_there_before_its_own_mailbox() {
    let system = TestSystem::with_seed(1);
    let (log, notes) = channel();
    let router = plan(&system, &log, 2).spawn().unwrap();
    system.run_until_idle();
    let routees = router.routees().unwrap();
    router.tell(noting("shared"));
    let loads = [routees[0].load(), routees[1].load()];
    assert_eq!(loads.iter().filter(|load| **load == RecipientLoad::Idle).count(), 1, "one message wakes one");
    let woken = usize::from(loads[0] == RecipientLoad::Idle);
    routees[woken].tell(noting("own"));
    system.run_until_idle();
    let said: Vec<String> = notes.try_iter().filter(|note| !note.contains("Started")).collect();
    assert_eq!(said, [format!("{woken} shared"), format!("{woken} own")]);
    system.allow_running();
}

#[test]
fn a_routee_that_was_woken_for_the_queue_and_has_control_to_obey_first_wakes_another() {
    let system = TestSystem::with_seed(1);
    let (log, notes) = channel();
    let (other, given) =
        (Arc::new(Mutex::new(None::<ActorRef<Tell>>)), Arc::<Mutex<Vec<RecipientLoad>>>::default());
    let roles = NAMES.map(|name| {
        let (other, given) = (other.clone(), given.clone());
        Role::new(name, &log).on_hook(move |hook, _| {
            if let (Hook::Stopped, Some(other)) = (hook, &*other.lock().unwrap()) {
                given.lock().unwrap().push(other.load());
            }
            Ok(())
        })
    });
    let pool = system.router("pool").balancing_pool(2, move |ctx| roles[ctx.routee_index()].recipe()());
    let router = pool.spawn().unwrap();
    system.run_until_idle();
    let routees = router.routees().unwrap();
    router.tell(noting("shared"));
    let woken = usize::from(routees[0].load() == RecipientLoad::Idle);
    *other.lock().unwrap() = Some(routees[1 - woken].clone());
    routees[woken].stop();
    assert_eq!(routees[1 - woken].load(), RecipientLoad::Idle);
    system.run_until_idle();
    assert_eq!(*given.lock().unwrap(), [RecipientLoad::Busy { queued: 0 }], "woken before the hook runs");
    assert!(notes.try_iter().any(|note| note == format!("{} shared", 1 - woken)));
    *other.lock().unwrap() = None;
    system.allow_running();
}

/// What a message of the storm makes its routee do.
#[derive(Clone, Copy)]
struct Job {
    number: usize,
    spins: u32,
    fails: bool,
}

struct Worker {
    seen: Arc<Vec<AtomicU64>>,
}

impl Actor for Worker {
    type Message = Job;
    fn receive(&mut self, job: Job, _: &mut Context<Job>) -> HandlerResult {
        self.seen[job.number].fetch_add(1, Ordering::Relaxed);
        (0..job.spins).for_each(|_| std::hint::spin_loop());
        if job.fails { Err(Failure::msg("as told")) } else { Ok(()) }
    }
}

/// Skewed work from several threads, while routees fail, restart, stop, come and go.
fn storm(executor: Dispatcher, queue: Mailbox) {
    const SENDERS: usize = 3;
    const EACH: usize = 40_000;
    let system = System::builder("storm").dispatcher("crew", executor).build().unwrap();
    let seen: Arc<Vec<AtomicU64>> = Arc::new((0..SENDERS * EACH).map(|_| AtomicU64::new(0)).collect());
    let given = seen.clone();
    let router = system
        .router("pool")
        .balancing_pool(4, move |_| Worker { seen: given.clone() })
        .queue(queue)
        .dispatcher("crew")
        .on_failure(Strategy::default().max_restarts(u32::MAX))
        .stay_when_empty()
        .spawn()
        .unwrap();
    let running = Arc::new(AtomicUsize::new(SENDERS));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (router, running) = (router.to_ref(), running.clone());
            std::thread::spawn(move || {
                let mut back = 0;
                for number in sender * EACH..(sender + 1) * EACH {
                    let spins = if number % 97 == 0 { 5_000 } else { (number % 13) as u32 };
                    let job = Job { number, spins, fails: number % 211 == 0 };
                    match number % 3 {
                        0 => back += u64::from(router.try_tell(job).is_err()),
                        _ => router.tell(job),
                    }
                }
                running.fetch_sub(1, Ordering::Relaxed);
                back
            })
        })
        .collect();
    let mut asked = 0;
    for round in 0.. {
        if running.load(Ordering::Relaxed) == 0 {
            break;
        }
        let routees = router.routees().unwrap();
        match (round % 7, routees.first()) {
            (0, Some(first)) => first.stop(),
            (1, Some(first)) => first.poison(),
            // Now and then nobody is left.
            (2, _) if round % 5 == 0 => routees.iter().for_each(ActorRef::stop),
            (3, Some(first)) => {
                first.stop();
                router.remove(first).unwrap();
                asked += 1;
            }
            (size, _) => {
                router.resize_to(size + 1).unwrap();
                asked += 1;
            }
        }
    }
    let back: u64 = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    // Again and again, for those that stay may have been told to stop; and a last one that has left may still be
    // parting with what it found in the queue.
    wait_until(|| {
        router.resize_to(2).unwrap();
        asked += 1;
        let ledger = system.ledger();
        router.load() == RecipientLoad::Idle && (ledger.balance(), ledger.queued) == (0, 0)
    });
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    assert_eq!((ledger.sent, ledger.handed_back), ((SENDERS * EACH) as u64 + asked, back), "{ledger}");
    let times = |count: u64| seen.iter().filter(|seen| seen.load(Ordering::Relaxed) == count).count() as u64;
    assert_eq!(times(0) + times(1), (SENDERS * EACH) as u64, "handled twice");
    assert_eq!(ledger.handled, times(1) + asked, "{ledger}");
}

#[test]
fn storms_of_failures_and_resizes_lose_and_double_nothing_on_workers() {
    storm(Dispatcher::work_stealing().threads(2).throughput(5), Mailbox::unbounded());
}

#[test]
fn storms_of_failures_and_resizes_lose_and_double_nothing_on_blocking_threads() {
    storm(
        Dispatcher::blocking().thread_range(1..=4),
        Mailbox::bounded(64).on_full(OverflowPolicy::DropNewest),
    );
}

#[test]
fn storms_over_a_queue_that_drops_the_oldest_lose_and_double_nothing_else() {
    storm(
        Dispatcher::blocking().thread_range(1..=4),
        Mailbox::bounded(8).on_full(OverflowPolicy::DropOldest),
    );
}

/// Counts of what became of each message, by its number.
struct Once {
    seen: Arc<Vec<AtomicU64>>,
}

impl Actor for Once {
    type Message = usize;
    fn receive(&mut self, number: usize, _: &mut Context<usize>) -> HandlerResult {
        self.seen[number].fetch_add(1, Ordering::SeqCst);
        if number % 1013 == 0 { Err(Failure::msg("as told")) } else { Ok(()) }
    }
}

/// Routees fail, stop, go and come back under load, all of them again and again, and at last the router
/// drains. What was accepted while it was open is handled.
fn storm_of_ends(executor: Dispatcher, queue: Mailbox) {
    const SENDERS: usize = 2;
    const EACH: usize = 1_000_000;
    let system = System::builder("ends").dispatcher("crew", executor).build().unwrap();
    let seen: Arc<Vec<AtomicU64>> = Arc::new((0..SENDERS * EACH).map(|_| AtomicU64::new(0)).collect());
    let given = seen.clone();
    let router = system
        .router("pool")
        .balancing_pool(4, move |_| Once { seen: given.clone() })
        .queue(queue)
        .dispatcher("crew")
        .on_failure(Strategy::default().max_restarts(u32::MAX))
        .stay_when_empty()
        .spawn()
        .unwrap();
    // Odd while there may be nobody.
    let closes = Arc::new(AtomicUsize::new(0));
    let sent = Arc::new([const { AtomicU64::new(0) }; SENDERS]);
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (router, closes, sent) = (router.to_ref(), closes.clone(), sent.clone());
            std::thread::spawn(move || {
                let (mut sure, mut back) = (Vec::new(), 0);
                let mut number = sender * EACH;
                while number < (sender + 1) * EACH {
                    let before = closes.load(Ordering::SeqCst);
                    let outcome = router.try_tell(number);
                    let is_open = before % 2 == 0 && closes.load(Ordering::SeqCst) == before;
                    sent[sender].fetch_add(1, Ordering::SeqCst);
                    match outcome {
                        Ok(()) => {
                            sure.extend(is_open.then_some(number));
                            number += 1;
                        }
                        Err(SendError::Closed(_)) => return (sure, back + 1),
                        Err(_) => {
                            back += 1;
                            std::thread::yield_now();
                        }
                    }
                }
                (sure, back)
            })
        })
        .collect();
    // By each of them, twice: what it was about is over.
    let more_is_sent = || {
        let counts = || sent.each_ref().map(|count| count.load(Ordering::SeqCst));
        let before = counts();
        let went_on =
            |(sender, count): (usize, u64)| count > before[sender] + 50 || senders[sender].is_finished();
        wait_until(|| counts().into_iter().enumerate().all(went_on));
    };
    let mut dead = 0;
    for round in 0..40 {
        more_is_sent();
        match round % 4 {
            0 => {
                let routees = router.routees().unwrap();
                routees[0].stop();
                wait_until(|| router.routees().unwrap().len() < routees.len());
            }
            1 => _ = router.resize_to(1).unwrap(),
            2 => {
                let first = router.routees().unwrap()[0].clone();
                router.resize_to(6).unwrap();
                router.remove(&first).unwrap();
            }
            _ => {
                assert_eq!(system.ledger().dead_lettered, dead, "before it closes");
                closes.fetch_add(1, Ordering::SeqCst);
                router.resize_to(0).unwrap();
                // Those that leave may still be at it when others come.
                if round % 8 == 3 {
                    wait_until(|| router.queued() == Some(0));
                }
                router.resize_to(4).unwrap();
                // A sender that has met the last one leaving is through with it then.
                more_is_sent();
                dead = system.ledger().dead_lettered;
                closes.fetch_add(1, Ordering::SeqCst);
            }
        }
        router.resize_to(4).unwrap();
    }
    more_is_sent();
    assert_eq!(system.ledger().dead_lettered, dead, "before it closes");
    closes.fetch_add(1, Ordering::SeqCst);
    router.drain().unwrap();
    let outcomes: Vec<_> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    wait_until(|| router.head().is_closed());
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    assert_eq!(ledger.handed_back, outcomes.iter().map(|(_, back)| back).sum::<u64>(), "{ledger}");
    let times = |number: &usize| seen[*number].load(Ordering::SeqCst);
    assert!(outcomes.iter().flat_map(|(sure, _)| sure).all(|number| times(number) == 1), "accepted and lost");
    assert!((0..SENDERS * EACH).all(|number| times(&number) <= 1), "handled twice");
}

#[test]
fn whatever_ends_under_load_what_was_accepted_before_is_handled_on_workers() {
    storm_of_ends(Dispatcher::work_stealing().threads(2).throughput(5), Mailbox::bounded(256));
}

#[test]
fn whatever_ends_under_load_what_was_accepted_before_is_handled_on_blocking_threads() {
    storm_of_ends(Dispatcher::blocking().thread_range(1..=4), Mailbox::bounded(64));
}

#[test]
fn a_routee_that_finds_more_than_it_takes_wakes_another_before_it_begins() {
    // Each pair needs two at once, and nobody wakes the second one for it but the first.
    for executor in executors() {
        let stage = stage(executor);
        let router = pool(&stage, 2);
        let met_count = Arc::<AtomicUsize>::default();
        for pair in 1..=200 {
            let (meet, met) = channel();
            let counted = met_count.clone();
            act(&router, move |_, _| {
                met.recv_timeout(LONG)?;
                counted.fetch_add(1, Ordering::SeqCst);
                Ok(())
            });
            act(&router, move |_, _| Ok(meet.send(())?));
            if pair % 10 == 0 {
                wait_until(|| met_count.load(Ordering::SeqCst) == pair);
            }
        }
        assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

/// Retires at each message.
struct Retiring;

impl Actor for Retiring {
    type Message = u64;
    fn receive(&mut self, _: u64, ctx: &mut Context<u64>) -> HandlerResult {
        ctx.passivate();
        Ok(())
    }
}

#[test]
fn the_last_routee_that_retires_leaves_nothing_in_the_queue() {
    let system = TestSystem::new();
    let router = system.router("pool").balancing_pool(2, |_| Retiring).spawn().unwrap();
    (0..5u64).for_each(|message| router.tell(message));
    system.run_until_idle();
    let ledger = system.ledger();
    assert_eq!((ledger.handled, ledger.dead_lettered), (5, 0), "{ledger}");
    assert!(router.is_closed());
    system.finish();
}

/// Puts its orders aside until the shop opens.
struct Shop {
    is_open: bool,
    log: Sender<u32>,
}

enum Order {
    Do(u32),
    Open,
}

impl Actor for Shop {
    type Message = Order;
    fn receive(&mut self, order: Order, ctx: &mut Context<Order>) -> HandlerResult {
        match order {
            Order::Open => {
                self.is_open = true;
                ctx.unstash_all();
            }
            Order::Do(number) if self.is_open => self.log.send(number)?,
            early => ctx.stash(early)?,
        }
        Ok(())
    }
}

#[test]
fn what_is_unstashed_is_handled_before_more_of_the_queue_is_taken() {
    TestSystem::for_seeds(30, |system: &TestSystem| {
        let (log, done) = channel();
        let plan =
            system.router("shops").balancing_pool(1, move |_| Shop { is_open: false, log: log.clone() });
        let router = plan.spawn().unwrap();
        let shop = router.routees().unwrap().remove(0);
        (0..3).for_each(|number| router.tell(Order::Do(number)));
        system.run_until_idle();
        shop.tell(Order::Open);
        (3..6).for_each(|number| router.tell(Order::Do(number)));
        system.run_until_idle();
        assert_eq!(done.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        router.drain().unwrap();
    });
}
