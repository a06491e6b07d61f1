//! Groups of actors told apart by a key: how their actors end and begin again, and how groups end.

use crate::keyed_support::{Do, Note, books, closed, full, lodgers, noted, plan, to, to_all};
use crate::support::{Stage, run_turns};
use pointsman::SpawnError;
use pointsman::group::{Group, KeyRoute, RestartPolicy, WhileRestarting};
use pointsman::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// So that no life is long enough to begin the count anew.
fn on_failure() -> RestartPolicy {
    RestartPolicy::on_failure(SECOND, SECOND * 60).auto_reset(Duration::MAX)
}

/// Tells whether a group has ended.
fn end_of(group: &Group<Note, u32>) -> impl Fn() -> bool + use<> {
    let head = group.head().clone();
    move || head.is_closed()
}

#[test]
fn by_default_nobody_is_restarted() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.tell(to(1, "a").act(Do::Fail));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"]);
    stage.clock.advance(SECOND * 1000);
    assert_eq!((noted(&stage).len(), group.len()), (0, 0));
    books(stage);
}

#[test]
fn on_failure_restarts_what_has_failed_and_not_what_has_stopped() {
    for what in [WhileRestarting::Refuse, WhileRestarting::Queue, WhileRestarting::SpawnAnew] {
        let stage = Stage::turns();
        let group = plan(&stage).restart(on_failure()).while_restarting(what).spawn().expect("sound");
        group.tell(to(1, "a").act(Do::Panic));
        group.tell(to(2, "b").act(Do::Stop));
        let ended = ["1 OnMessage", "1 a", "1 stopped", "2 OnMessage", "2 b", "2 stopped"];
        let seen = noted(&stage);
        // In its place it is retired only when it is restarted.
        assert!(seen == ended || seen == [&ended[..2], &ended[3..]].concat(), "{what:?}: {seen:?}");
        assert_eq!(group.keys(), [1], "{what:?}");
        stage.clock.advance(SECOND);
        let seen = noted(&stage);
        assert_eq!(seen.last().map(String::as_str), Some("1 Restarted"), "{what:?}");
        group.tell(to(1, "c"));
        assert_eq!(noted(&stage), ["1 c"], "{what:?}");
        books(stage);
    }
}

#[test]
fn always_restarts_what_has_stopped_too() {
    for what in [WhileRestarting::Refuse, WhileRestarting::Queue, WhileRestarting::SpawnAnew] {
        let stage = Stage::turns();
        let policy = RestartPolicy::always(SECOND, SECOND).auto_reset(Duration::MAX);
        let group = plan(&stage).restart(policy).while_restarting(what).spawn().expect("sound");
        group.tell(to(1, "a").act(Do::Stop));
        assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"], "{what:?}");
        assert_eq!(group.keys(), [1], "{what:?}");
        stage.clock.advance(SECOND);
        assert_eq!(noted(&stage), ["1 Restarted"], "{what:?}");
        books(stage);
    }
}

#[test]
fn a_queue_waits_for_the_restart_and_keeps_its_order() {
    let stage = Stage::turns();
    let group = plan(&stage).restart(on_failure()).spawn().expect("sound");
    group.tell(to(1, "a").act(Do::Fail));
    group.tell(to(1, "b"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a"]);
    group.try_tell(to(1, "c")).expect("it waits in the mailbox");
    stage.clock.advance(SECOND - Duration::from_millis(1));
    assert_eq!(noted(&stage).len(), 0, "not before its time");
    stage.clock.advance(Duration::from_millis(1));
    assert_eq!(noted(&stage), ["1 stopped", "1 Restarted", "1 b", "1 c"]);
    assert_eq!(books(stage).handled, 3);
}

#[test]
fn messages_queue_for_one_that_has_stopped_and_is_always_restarted() {
    let stage = Stage::turns();
    let policy = RestartPolicy::always(SECOND, SECOND).auto_reset(Duration::MAX);
    let group = plan(&stage).restart(policy).spawn().expect("sound");
    group.tell(to(1, "a").act(Do::Stop));
    group.tell(to(1, "lost"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"]);
    group.try_tell(to(1, "b")).expect("it waits for the next life");
    assert_eq!(noted(&stage).len(), 0);
    stage.clock.advance(SECOND);
    assert_eq!(noted(&stage), ["1 Restarted", "1 b"]);
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered), (2, 1));
}

#[test]
fn a_message_spawns_anew_what_waits_to_be_restarted() {
    let stage = Stage::turns();
    let group = plan(&stage)
        .restart(on_failure())
        .while_restarting(WhileRestarting::SpawnAnew)
        .spawn()
        .expect("sound");
    group.tell(to(1, "a").act(Do::Fail));
    noted(&stage);
    group.try_tell(to(1, "b")).expect("at once");
    assert_eq!(noted(&stage), ["1 Restarted", "1 b"]);
    stage.clock.advance(SECOND * 10);
    assert_eq!(noted(&stage).len(), 0, "the timer is void");
    books(stage);
}

#[test]
fn a_queue_is_dead_letters_when_its_actor_is_given_up_and_the_next_message_begins_afresh() {
    let stage = Stage::turns();
    let group = plan(&stage).restart(on_failure().max_retries(1)).spawn().expect("sound");
    group.tell(to(1, "a").act(Do::Fail));
    group.tell(to(1, "b").act(Do::Fail));
    group.tell(to(1, "lost"));
    noted(&stage);
    stage.clock.advance(SECOND);
    assert_eq!(noted(&stage), ["1 stopped", "1 Restarted", "1 b", "1 stopped"]);
    assert!(group.is_empty());
    group.tell(to(1, "c"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 c"]);
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered), (3, 1));
}

#[test]
fn waits_grow_and_a_long_life_begins_the_count_anew() {
    let stage = Stage::turns();
    let policy = RestartPolicy::on_failure(SECOND, SECOND * 60).auto_reset(SECOND * 5);
    let group =
        plan(&stage).restart(policy).while_restarting(WhileRestarting::Refuse).spawn().expect("sound");
    for wait in [1, 2, 4] {
        group.tell(to(1, "a").act(Do::Fail));
        noted(&stage);
        stage.clock.advance(SECOND * wait - Duration::from_millis(1));
        assert_eq!(noted(&stage).len(), 0, "{wait}");
        stage.clock.advance(Duration::from_millis(1));
        assert_eq!(noted(&stage), ["1 Restarted"], "{wait}");
    }
    stage.clock.advance(SECOND * 5);
    group.tell(to(1, "a").act(Do::Fail));
    assert_eq!(noted(&stage), ["1 a", "1 stopped", "1 Restarted"], "at once");
    books(stage);
}

#[test]
fn a_recipe_that_fails_is_tried_again_by_the_policy() {
    for what in [WhileRestarting::Refuse, WhileRestarting::Queue] {
        let stage = Stage::turns();
        let (tries, log) = (Arc::new(AtomicUsize::new(0)), stage.log.clone());
        let group = stage
            .system
            .group("lodgers")
            .keyed(
                |note: &Note| note.to.clone(),
                move |_, key| match tries.fetch_add(1, Ordering::SeqCst) {
                    0 | 1 => Err(Failure::msg("not yet")),
                    _ => Ok(crate::keyed_support::Lodger::new(*key, &log)),
                },
            )
            .restart(on_failure())
            .while_restarting(what)
            .spawn()
            .expect("sound");
        group.tell(to(1, "a"));
        assert_eq!(noted(&stage).len(), 0);
        stage.clock.advance(SECOND);
        run_turns();
        stage.clock.advance(SECOND * 2);
        run_turns();
        group.tell(to(1, "b"));
        let seen = noted(&stage);
        match what {
            WhileRestarting::Queue => assert_eq!(seen, ["1 a", "1 b"]),
            _ => assert_eq!(seen, ["1 b"], "what its first life had in its mailbox is lost"),
        }
        books(stage);
    }
}

#[test]
fn one_that_is_stopped_while_it_waits_frees_its_key() {
    let stage = Stage::turns();
    let group = plan(&stage).restart(on_failure()).spawn().expect("sound");
    group.tell(to(1, "a").act(Do::Fail));
    group.tell(to(1, "lost"));
    noted(&stage);
    stage.system.actor_at("/user/lodgers/1").expect("it waits").stop();
    assert_eq!(noted(&stage), ["1 stopped"]);
    assert!(group.is_empty());
    stage.clock.advance(SECOND * 10);
    assert_eq!(noted(&stage).len(), 0);
    assert_eq!(books(stage).dead_lettered, 1);
}

#[test]
fn to_wait_for_a_restart_is_no_life() {
    let stage = Stage::turns();
    let policy = RestartPolicy::always(SECOND, SECOND * 60).max_retries(2);
    let group = plan(&stage).restart(policy).spawn().expect("sound");
    group.tell(to(1, "a").act(Do::Fail));
    group.tell(to(1, "b").act(Do::Fail));
    noted(&stage);
    stage.clock.advance(SECOND);
    assert_eq!(noted(&stage), ["1 stopped", "1 Restarted", "1 b"]);
    // It waits for two seconds, and is stopped when more than the one has passed that a life would have to last.
    stage.clock.advance(Duration::from_millis(1_500));
    stage.system.actor_at("/user/lodgers/1").expect("it waits").stop();
    assert_eq!(noted(&stage), ["1 stopped"], "given up");
    assert!(group.is_empty());
    books(stage);
}

/// Fails at each message, and takes its time to end.
struct Slow(pointsman::time::ManualClock);

impl Actor for Slow {
    type Message = u32;

    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Err(Failure::msg("at once"))
    }

    fn stopped(&mut self, _: &mut Context<u32>) {
        self.0.advance(SECOND);
    }
}

#[test]
fn the_time_that_an_actor_takes_to_end_is_no_life() {
    for what in [WhileRestarting::Refuse, WhileRestarting::SpawnAnew] {
        let stage = Stage::turns();
        let (log, clock) = (stage.log.clone(), stage.clock.clone());
        let group = stage
            .system
            .group("slow")
            .by_key(
                |key: &u32| *key,
                move |ctx, key| {
                    let _ = log.send(format!("{key} {:?}", ctx.spawn_cause().expect("of a group")));
                    Slow(clock.clone())
                },
            )
            .restart(RestartPolicy::on_failure(SECOND, SECOND * 60))
            .while_restarting(what)
            .spawn()
            .expect("sound");
        group.tell(1_u32);
        assert_eq!(noted(&stage), ["1 OnMessage"], "{what:?}: not restarted at once");
        stage.clock.advance(SECOND);
        assert_eq!(noted(&stage), ["1 Restarted"], "{what:?}");
        books(stage);
    }
}

/// Keeps its children when it is restarted, among them a group.
struct Landlord<F> {
    plan: F,
}

impl<F: Fn(&mut Context<Do>) + Send + 'static> Actor for Landlord<F> {
    type Message = Do;

    fn started(&mut self, ctx: &mut Context<Do>) -> HandlerResult {
        (self.plan)(ctx);
        Ok(())
    }

    fn receive(&mut self, _: Do, _: &mut Context<Do>) -> HandlerResult {
        Err(Failure::msg("told to"))
    }

    fn restarting(&mut self, _: &Failure, _: &mut Context<Do>) -> HandlerResult {
        Ok(())
    }

    fn restarted(&mut self, _: &Failure, _: &mut Context<Do>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn one_that_fails_again_while_it_waits_for_its_restart_is_not_suspended_for_ever() {
    let stage = Stage::turns();
    let (log, tries) = (stage.log.clone(), Arc::new(AtomicUsize::new(0)));
    let (send, groups) = channel();
    let landlord = stage
        .system
        .actor("landlord")
        .spawn(move || {
            let (log, tries, send) = (log.clone(), tries.clone(), send.clone());
            let plan = move |ctx: &mut Context<Do>| {
                let (log, tries) = (log.clone(), tries.clone());
                let group = ctx
                    .group("lodgers")
                    .by_key(
                        |_: &Note| 1_u32,
                        move |_, key| match tries.fetch_add(1, Ordering::SeqCst) {
                            1 => Err(Failure::msg("not yet")),
                            _ => Ok(crate::keyed_support::Lodger::new(*key, &log)),
                        },
                    )
                    .restart(on_failure())
                    .spawn()
                    .expect("sound");
                let _ = send.send(group);
            };
            Landlord { plan }
        })
        .expect("the name is free");
    run_turns();
    let group = groups.try_recv().expect("it has started");
    group.tell(to(1, "a").act(Do::Fail));
    group.tell(to(1, "b"));
    assert_eq!(noted(&stage), ["1 a"]);
    // All below it are restarted, also who waits for that already; and that one fails.
    landlord.tell(Do::Fail);
    run_turns();
    stage.clock.advance(SECOND * 10);
    run_turns();
    assert_eq!(noted(&stage).last().map(String::as_str), Some("1 b"), "it goes on");
    books(stage);
}

// ---- the end of a group

#[test]
fn stop_spawning_closes_the_keys_that_nobody_has_and_no_others() {
    let stage = Stage::turns();
    let group =
        plan(&stage).restart(on_failure()).while_restarting(WhileRestarting::Refuse).spawn().expect("sound");
    group.tell(to(1, "a"));
    group.tell(to(2, "b").act(Do::Fail));
    noted(&stage);
    group.stop_spawning();
    assert_eq!(group.keys(), [1], "whoever waited to be restarted is given up");
    assert_eq!(closed(group.try_tell(to(3, "absent"))), Some("absent"));
    assert_eq!(closed(group.key(4).try_tell(to(4, "absent"))), Some("absent"));
    group.try_tell(to(1, "c").act(Do::Fail)).expect("it goes on");
    stage.clock.advance(SECOND * 10);
    assert_eq!(noted(&stage), ["1 c", "1 stopped"], "and is not restarted");
    assert!(!group.is_closed());
    books(stage);
}

#[test]
fn a_copy_for_a_key_that_nobody_is_created_for_is_a_dead_letter_if_another_copy_is_taken() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let letters = stage.system.dead_letters();
    let (sender, dead) = channel();
    let _subscription = letters.subscribe(move |letter| _ = sender.send(letter.recipient.to_string()));
    group.tell(to(1, "a"));
    group.stop_spawning();
    group.try_tell(Note::new(KeyRoute::Multicast(vec![2, 1, 3]), "b")).expect("1 takes it");
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 b"]);
    assert_eq!(dead.try_iter().collect::<Vec<_>>(), ["/user/lodgers"; 2]);
    let neither = Note::new(KeyRoute::Multicast(vec![2, 3]), "c");
    assert_eq!(closed(group.try_tell(neither)), Some("c"), "one comes back, and one is a dead letter");
    let ledger = books(stage);
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered, ledger.handed_back), (6, 2, 3, 1));
}

#[test]
fn to_mount_a_key_says_why_nobody_is_created() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.mount(1).unwrap();
    group.mount(1).expect("somebody has it");
    let refused = |group: &Group<Note, u32>| match group.mount(2) {
        Err(SpawnError::ParentStopped { path }) => path,
        other => panic!("{other:?}"),
    };
    group.stop_spawning();
    assert_eq!(refused(&group), "/user/lodgers");
    group.mount(1).expect("somebody has it still");
    group.terminate("over");
    run_turns();
    assert_eq!(refused(&group), "/user/lodgers");
    assert_eq!((noted(&stage).len(), group.len()), (2, 0), "it was mounted, and has stopped");
    books(stage);
}

#[test]
fn a_terminated_group_handles_what_it_has_and_refuses_the_rest() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let ended = end_of(&group);
    for key in [1, 2] {
        group.tell(to(key, "a"));
        group.tell(to(key, "b"));
    }
    group.terminate("the day is over");
    assert_eq!(closed(group.try_tell(to(1, "late"))), Some("late"));
    assert!(group.is_closed() && group.key(1).is_closed());
    let lives = ["OnMessage", "a", "b", "stopped"];
    let expected: Vec<String> =
        [1, 2].iter().flat_map(|key| lives.map(|what| format!("{key} {what}"))).collect();
    assert_eq!(noted(&stage), expected);
    assert!(ended());
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered, ledger.handed_back), (4, 0, 1));
}

#[test]
fn an_empty_group_ends_when_it_is_terminated() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let ended = end_of(&group);
    group.terminate("unused");
    run_turns();
    assert!(ended());
    books(stage);
}

#[test]
fn termination_ends_those_who_wait_to_be_restarted() {
    for what in [WhileRestarting::Refuse, WhileRestarting::Queue] {
        let stage = Stage::turns();
        let group = plan(&stage).restart(on_failure()).while_restarting(what).spawn().expect("sound");
        let ended = end_of(&group);
        group.tell(to(1, "a").act(Do::Fail));
        noted(&stage);
        group.terminate("over");
        noted(&stage);
        assert!(ended(), "{what:?}");
        stage.clock.advance(SECOND * 10);
        assert_eq!(noted(&stage).len(), 0);
        books(stage);
    }
}

#[test]
fn restarts_cease_when_a_group_terminates() {
    let stage = Stage::turns();
    let group = plan(&stage).restart(on_failure()).spawn().expect("sound");
    let ended = end_of(&group);
    group.tell(to(1, "a").act(Do::Fail));
    group.tell(to(1, "lost"));
    group.terminate("over");
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"]);
    assert!(ended());
    assert_eq!(books(stage).dead_lettered, 1);
}

#[test]
fn manual_termination_is_a_message_and_the_second_one_closes() {
    let stage = Stage::turns();
    let reasons = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = reasons.clone();
    let make = move |reason: &str| {
        heard.lock().expect("not poisoned").push(reason.to_owned());
        Note::new(KeyRoute::Discard, "terminate")
    };
    let group = plan(&stage).terminate_by(make).spawn().expect("sound");
    let ended = end_of(&group);
    group.tell(to_all("nobody"));
    group.tell(to(1, "a"));
    noted(&stage);
    group.terminate("over");
    assert_eq!(noted(&stage), ["1 terminate"]);
    group.try_tell(to(1, "b")).expect("it goes on until it thinks fit");
    assert_eq!(closed(group.try_tell(to(2, "absent"))), Some("absent"));
    assert_eq!((noted(&stage), ended()), (vec!["1 b".to_owned()], false));
    group.tell(to(1, "c"));
    group.terminate("at last");
    assert_eq!(noted(&stage), ["1 c", "1 stopped"]);
    assert!(ended());
    assert_eq!(*reasons.lock().expect("not poisoned"), ["over"]);
    books(stage);
}

#[test]
fn an_actor_that_ends_itself_at_a_manual_termination_ends_the_group() {
    let stage = Stage::turns();
    let make = |_: &str| Note::new(KeyRoute::Discard, "terminate").act(Do::Stop);
    let group = plan(&stage).terminate_by(make).spawn().expect("sound");
    let ended = end_of(&group);
    group.tell(to(1, "a"));
    group.terminate("over");
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 terminate", "1 stopped"]);
    assert!(ended());
    books(stage);
}

#[test]
fn a_full_mailbox_keeps_no_actor_from_the_message_that_terminates_it() {
    let stage = Stage::turns();
    let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let make = |_: &str| Note::new(KeyRoute::Discard, "terminate").act(Do::Stop);
    let group = plan(&stage).mailbox(mailbox).terminate_by(make).spawn().expect("sound");
    group.tell(to(1, "a"));
    group.terminate("over");
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 terminate", "1 stopped"]);
    assert_eq!(books(stage).dead_lettered, 0);
}

#[test]
fn a_group_that_is_stopped_buries_what_its_actors_have() {
    let stage = Stage::turns();
    let group = plan(&stage).restart(RestartPolicy::always(SECOND, SECOND)).spawn().expect("sound");
    let ended = end_of(&group);
    group.tell(to(1, "a"));
    group.tell(to(1, "b"));
    group.stop();
    assert_eq!(closed(group.try_tell(to(1, "late"))), Some("late"));
    noted(&stage);
    assert!(ended());
    assert!(group.is_empty());
    stage.clock.advance(SECOND * 10);
    assert_eq!(noted(&stage).len(), 0);
    books(stage);
}

#[test]
fn whoever_stops_the_head_ends_the_group() {
    let stage = Stage::turns();
    let group = plan(&stage).restart(on_failure()).spawn().expect("sound");
    group.tell(to(1, "a").act(Do::Fail));
    noted(&stage);
    group.head().stop();
    run_turns();
    assert_eq!(closed(group.try_tell(to(1, "late"))), Some("late"));
    assert!(group.is_closed());
    books(stage);
}

// ---- the capacity of their mailboxes

#[test]
fn a_smaller_capacity_drops_nothing_and_a_larger_one_holds_for_those_to_come() {
    let stage = Stage::turns();
    let mailbox = Mailbox::bounded(3).on_full(OverflowPolicy::Reject);
    let group = plan(&stage).mailbox(mailbox).spawn().expect("sound");
    for text in ["a", "b", "c"] {
        group.tell(to(1, text));
    }
    group.set_mailbox_capacity(1);
    assert_eq!(full(group.try_tell(to(1, "d"))), Some("d"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 b", "1 c"]);
    group.try_tell(to(1, "e")).expect("empty");
    assert_eq!(full(group.try_tell(to(1, "f"))), Some("f"), "the smaller one has sunk in");
    group.tell(to(2, "g"));
    assert_eq!(full(group.try_tell(to(2, "h"))), Some("h"), "it holds for the next actor, too");
    group.set_mailbox_capacity(2);
    group.try_tell(to(2, "i")).expect("there is more room");
    noted(&stage);
    books(stage);
}

#[test]
fn growing_wakes_a_sender_that_waits() {
    let stage = Stage::threads("growing");
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let group = stage
        .system
        .group("held")
        .singleton(move |_: &mut Context<u32>| Held(held.clone()))
        // Without end: nothing but room wakes who waits.
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX)))
        .spawn()
        .expect("sound");
    group.tell(0_u32);
    // Until the first is in its handler.
    group.tell(1_u32);
    let (done, is_done) = std::sync::mpsc::channel();
    let sender = group.to_ref();
    std::thread::spawn(move || done.send(sender.try_tell(2_u32).is_ok()));
    // It is counted before it waits. No event tells when it sleeps: so it gets the processor some more times.
    crate::support::wait_until(|| stage.system.ledger().sent == 3);
    (0..10_000).for_each(|_| std::thread::yield_now());
    group.set_mailbox_capacity(2);
    assert_eq!(crate::support::Soon::soon(&is_done), Ok(true), "nothing was taken out meanwhile");
    drop(release);
    let ledger = books(stage);
    // As many as are handled before the system stops the actor.
    assert_eq!((ledger.handled + ledger.dead_lettered, ledger.handed_back), (3, 0));
}

/// Waits in its handler until it is released.
struct Held(Arc<std::sync::Mutex<std::sync::mpsc::Receiver<()>>>);

impl Actor for Held {
    type Message = u32;
    fn receive(&mut self, _: u32, ctx: &mut Context<u32>) -> HandlerResult {
        let _ = ctx.blocking(|| self.0.lock().expect("not poisoned").recv());
        Ok(())
    }
}

#[test]
fn an_actor_changes_its_own_capacity() {
    let stage = Stage::turns();
    let group = stage
        .system
        .group("own")
        .singleton(|ctx: &mut Context<u32>| {
            assert!(ctx.set_mailbox_capacity(2));
            Held(Arc::new(std::sync::Mutex::new(std::sync::mpsc::channel().1)))
        })
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Reject))
        .spawn()
        .expect("sound");
    group.tell(0_u32);
    run_turns();
    group.try_tell(1_u32).expect("room");
    group.try_tell(2_u32).expect("room for two");
    assert!(group.try_tell(3_u32).is_err());
    books(stage);
}
