//! Groups of actors told apart by a key: each outcome of the key router, in each state of the key.

use crate::keyed_support::{
    Do, Note, books, closed, discarded, full, gently, lodgers, noted, plan, to, to_all,
};
use crate::support::{Soon, Stage};
use pointsman::group::{KeyRoute, RestartPolicy, RouterState, Singleton, WhileRestarting};
use pointsman::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A stage with a group in which actor 1 waits to be restarted, and messages for it are refused.
fn with_one_restarting() -> (Stage, pointsman::group::Group<Note, u32>) {
    let stage = Stage::turns();
    let group = plan(&stage)
        .restart(RestartPolicy::on_failure(SECOND, SECOND))
        .while_restarting(WhileRestarting::Refuse)
        .spawn()
        .expect("sound");
    group.tell(to(1, "fails").act(Do::Fail));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 fails", "1 stopped"]);
    (stage, group)
}

#[test]
fn a_unicast_creates_the_actor_that_is_absent_and_is_its_first_message() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.try_tell(to(7, "a")).expect("taken");
    assert_eq!(group.keys(), [7]);
    assert_eq!(noted(&stage), ["7 OnMessage", "7 a"]);
    group.try_tell(to(7, "b")).expect("taken");
    assert_eq!(noted(&stage), ["7 b"]);
    assert_eq!(books(stage).handled, 2);
}

#[test]
fn a_unicast_to_one_that_is_restarting_is_closed_and_starts_nobody() {
    let (stage, group) = with_one_restarting();
    assert_eq!(closed(group.try_tell(to(1, "refused"))), Some("refused"));
    assert_eq!((group.len(), noted(&stage).len()), (1, 0));
    stage.clock.advance(SECOND);
    group.tell(to(1, "taken"));
    assert_eq!(noted(&stage), ["1 Restarted", "1 taken"]);
    assert_eq!(books(stage).handed_back, 1);
}

#[test]
fn a_gentle_unicast_reaches_who_is_there_and_creates_nobody() {
    let (stage, group) = with_one_restarting();
    group.tell(to(2, "a"));
    group.try_tell(gently(2, "b")).expect("taken");
    assert_eq!(closed(group.try_tell(gently(3, "absent"))), Some("absent"));
    assert_eq!(closed(group.try_tell(gently(1, "restarting"))), Some("restarting"));
    assert_eq!(noted(&stage), ["2 OnMessage", "2 a", "2 b"]);
    assert_eq!(group.len(), 2);
    books(stage);
}

#[test]
fn a_multicast_creates_all_that_are_absent_and_reaches_all() {
    let (stage, group) = with_one_restarting();
    group.tell(to(3, "a"));
    group.try_tell(Note::new(KeyRoute::Multicast(vec![2, 1, 3, 4]), "b")).expect("some took it");
    assert_eq!(noted(&stage), ["2 OnMessage", "2 b", "3 OnMessage", "3 a", "3 b", "4 OnMessage", "4 b"]);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (6, 5, 1), "the refused copy is counted");
    assert_eq!(closed(group.try_tell(Note::new(KeyRoute::Multicast(vec![1, 1]), "c"))), Some("c"));
    books(stage);
}

#[test]
fn a_gentle_multicast_passes_over_who_is_absent() {
    let (stage, group) = with_one_restarting();
    group.tell(to(3, "a"));
    group.try_tell(Note::new(KeyRoute::GentleMulticast(vec![2, 1, 3, 4]), "b")).expect("one took it");
    assert_eq!(noted(&stage), ["3 OnMessage", "3 a", "3 b"]);
    assert_eq!(closed(group.try_tell(Note::new(KeyRoute::GentleMulticast(vec![2, 1, 4]), "c"))), Some("c"));
    assert_eq!(group.len(), 2);
    books(stage);
}

#[test]
fn a_broadcast_reaches_everybody_who_is_there() {
    let (stage, group) = with_one_restarting();
    for key in 2..20 {
        group.mount(key).unwrap();
    }
    group.try_tell(to_all("all")).expect("18 took it");
    let notes = noted(&stage);
    assert_eq!(notes.iter().filter(|note| note.ends_with(" all")).count(), 18);
    assert_eq!(notes.iter().filter(|note| note.ends_with(" Mounted")).count(), 18);
    books(stage);
}

#[test]
fn a_broadcast_that_only_meets_those_who_refuse_is_closed() {
    let (stage, group) = with_one_restarting();
    assert_eq!(closed(group.try_tell(to_all("nobody"))), Some("nobody"));
    books(stage);
}

#[test]
fn discard_and_default_are_discarded_and_empty_lists_are_closed() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    for outcome in [KeyRoute::Discard, KeyRoute::Default] {
        let told = format!("{outcome:?}");
        assert_eq!(discarded(group.try_tell(Note::new(outcome.clone(), "back"))), Some("back"), "{told}");
        assert_eq!(discarded(group.to_ref().try_send(Note::new(outcome, "back"))), Some("back"), "{told}");
    }
    let nobody = [KeyRoute::Multicast(vec![]), KeyRoute::GentleMulticast(vec![]), KeyRoute::Broadcast];
    for outcome in nobody {
        let told = format!("{outcome:?}");
        assert_eq!(closed(group.try_tell(Note::new(outcome, "back"))), Some("back"), "{told}");
    }
    group.tell(Note::new(KeyRoute::Discard, "gone"));
    assert!(group.is_empty());
    let ledger = books(stage);
    assert_eq!((ledger.handed_back, ledger.dead_lettered), (7, 1));
}

#[test]
fn a_key_that_comes_twice_in_a_list_gets_two_copies_and_is_created_once() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.try_tell(Note::new(KeyRoute::Multicast(vec![5, 5, 6]), "a")).expect("taken");
    assert_eq!(noted(&stage), ["5 OnMessage", "5 a", "5 a", "6 OnMessage", "6 a"]);
    group.try_tell(Note::new(KeyRoute::GentleMulticast(vec![6, 6]), "b")).expect("taken");
    assert_eq!(noted(&stage), ["6 b", "6 b"]);
    books(stage);
}

#[test]
fn n_recipients_cost_one_clone_less() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let clones = Arc::new(AtomicUsize::new(0));
    let count = |outcome| {
        group.tell(Note::new(outcome, "a").counted(&clones));
        clones.swap(0, Ordering::SeqCst)
    };
    assert_eq!(count(KeyRoute::Unicast(1)), 0);
    assert_eq!(count(KeyRoute::Multicast(vec![1])), 0);
    assert_eq!(count(KeyRoute::Multicast(vec![1, 2])), 1);
    assert_eq!(count(KeyRoute::Multicast(vec![1, 2, 3, 4, 5])), 4);
    assert_eq!(count(KeyRoute::GentleMulticast(vec![1, 9, 2, 8])), 1);
    assert_eq!(count(KeyRoute::Broadcast), 4);
    noted(&stage);
    books(stage);
}

#[test]
fn a_refused_copy_goes_to_the_next_recipient() {
    let (stage, group) = with_one_restarting();
    let clones = Arc::new(AtomicUsize::new(0));
    group.tell(Note::new(KeyRoute::Multicast(vec![1, 1, 2, 3]), "a").counted(&clones));
    assert_eq!(noted(&stage), ["2 OnMessage", "2 a", "3 OnMessage", "3 a"]);
    assert!(clones.load(Ordering::SeqCst) <= 3);
    books(stage);
}

#[test]
fn a_full_mailbox_is_full_and_one_of_two_is_enough() {
    let stage = Stage::turns();
    let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let group = plan(&stage).mailbox(mailbox).spawn().expect("sound");
    group.tell(to(1, "a"));
    assert_eq!(full(group.try_tell(to(1, "b"))), Some("b"));
    group.try_tell(Note::new(KeyRoute::Multicast(vec![1, 2]), "c")).expect("2 has room");
    assert_eq!(full(group.try_tell(to_all("d"))), Some("d"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "2 OnMessage", "2 c"]);
    let ledger = books(stage);
    assert_eq!(
        (ledger.dead_lettered, ledger.handed_back),
        (2, 2),
        "of each that reached some, the other copy"
    );
}

#[test]
fn the_reference_to_a_key_survives_its_actor() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let seven = group.key(7);
    assert_eq!((seven.load(), seven.is_closed()), (pointsman::actor::RecipientLoad::Idle, false));
    seven.tell(Note::new(KeyRoute::Discard, "a").act(Do::Stop));
    assert_eq!(noted(&stage), ["7 OnMessage", "7 a", "7 stopped"]);
    assert!(group.is_empty());
    seven.tell(Note::new(KeyRoute::Discard, "b"));
    assert_eq!(noted(&stage), ["7 OnMessage", "7 b"]);
    books(stage);
}

#[test]
fn an_ended_actors_queue_is_dead_letters_and_its_key_is_free() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.tell(to(7, "a").act(Do::Panic));
    group.tell(to(7, "lost"));
    assert_eq!(noted(&stage), ["7 OnMessage", "7 a", "7 stopped"]);
    group.tell(to(7, "b"));
    assert_eq!(noted(&stage), ["7 OnMessage", "7 b"]);
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered), (2, 1));
}

#[test]
fn actors_are_found_by_paths_that_are_their_printed_keys() {
    let stage = Stage::turns();
    let group = stage
        .system
        .group("hosts")
        .by_key(
            |host: &String| host.clone(),
            |ctx: &mut Context<String>, key: &String| {
                assert_eq!(ctx.parent().expect("the head").path().to_string(), "/user/hosts");
                assert!(ctx.path().to_string().starts_with("/user/hosts/"));
                assert!(!key.is_empty());
                Idle
            },
        )
        .spawn()
        .expect("sound");
    group.tell("10.0.0.7:514".to_owned());
    group.tell("a/b".to_owned());
    crate::support::run_turns();
    assert!(stage.system.actor_at("/user/hosts/10.0.0.7:514").is_ok());
    assert!(stage.system.actor_at("/user/hosts/a%2Fb").is_ok());
    let by_path = stage.system.actor_at("/user/hosts").expect("the group");
    assert_eq!(by_path.typed::<String>().expect("its type"), group.to_ref());
    assert_eq!(group.key("x".to_owned()).path().to_string(), "/user/hosts");
    books(stage);
}

struct Idle;
impl Actor for Idle {
    type Message = String;
    fn receive(&mut self, _: String, _: &mut Context<String>) -> HandlerResult {
        Ok(())
    }
}

/// A key that prints as another does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Alike(u8);

impl std::fmt::Display for Alike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("same")
    }
}

#[test]
fn keys_that_print_alike_are_set_apart() {
    let stage = Stage::turns();
    let group =
        stage.system.group("g").by_key(|_: &String| Alike(0), |_, _: &Alike| Idle).spawn().expect("sound");
    for number in 0..3 {
        group.key(Alike(number)).tell(String::new());
    }
    crate::support::run_turns();
    for name in ["same", "same~2", "same~3"] {
        assert!(stage.system.actor_at(&format!("/user/g/{name}")).is_ok(), "{name}");
    }
    books(stage);
}

#[test]
fn a_group_without_an_inner_router_has_one_actor() {
    let stage = Stage::turns();
    let log = stage.log.clone();
    let group = stage
        .system
        .group("one")
        .singleton(move |ctx: &mut Context<String>| {
            let _ = log.send(ctx.path().to_string());
            Idle
        })
        .spawn()
        .expect("sound");
    assert!(group.is_empty(), "nobody before the first message");
    group.tell("a".to_owned());
    group.tell("b".to_owned());
    assert_eq!(stage.notes.soon().expect("noted"), "/user/one/_");
    assert_eq!((group.len(), group.keys()), (1, vec![Singleton]));
    assert_eq!(books(stage).handled, 2);
}

#[test]
fn a_routers_state_is_replaced_while_messages_are_routed_by_the_old_one() {
    let stage = Stage::turns();
    let log = stage.log.clone();
    let state = RouterState::new(2_u64);
    let router = state.router(|count, text: &String| KeyRoute::Unicast(text.len() as u64 % count));
    let recipe = move |_: &mut Context<String>, key: &u64| {
        let _ = log.send(key.to_string());
        Idle
    };
    let group = stage.system.group("g").keyed(router, recipe).spawn().expect("sound");
    group.tell("1234567".to_owned());
    let during = group.to_ref();
    state.update(|count| {
        during.tell("12345678".to_owned());
        count * 2
    });
    assert_eq!(state.read(|count| *count), 4);
    group.tell("1234567".to_owned());
    assert_eq!(noted(&stage), ["0", "1", "3"]);
    let panic = catch_unwind(AssertUnwindSafe(|| state.update(|_| panic!("planted"))));
    assert!(panic.is_err());
    assert_eq!(state.read(|count| *count), 4, "the old state stays");
    books(stage);
}

#[test]
fn a_message_is_accounted_for_when_the_inner_router_panics() {
    let stage = Stage::turns();
    let router = |text: &String| -> KeyRoute<u32> { panic!("planted: {text}") };
    let group = stage.system.group("g").keyed(router, |_, _: &u32| Idle).spawn().expect("sound");
    let panic = catch_unwind(AssertUnwindSafe(|| group.tell("a".to_owned())));
    assert!(panic.is_err());
    assert_eq!(books(stage).dead_lettered, 1);
}

#[test]
fn a_group_that_makes_no_sense_is_refused() {
    let stage = Stage::turns();
    let policy = RestartPolicy::always(SECOND * 2, SECOND);
    let error = plan(&stage).restart(policy).spawn().expect_err("the longest wait is too short");
    assert!(error.to_string().contains("/user/lodgers"), "{error}");
    let error = plan(&stage).dispatcher("none").spawn().expect_err("no such dispatcher");
    assert!(error.to_string().contains("none"), "{error}");
    let error = plan(&stage).mailbox(Mailbox::bounded(0)).spawn().expect_err("no capacity");
    assert!(error.to_string().contains("capacity 0"), "{error}");
    let group = lodgers(&stage);
    assert!(plan(&stage).spawn().is_err(), "the name is taken");
    drop(group);
    books(stage);
}

#[test]
fn a_router_may_send_to_its_own_group() {
    let stage = Stage::turns();
    let inner = Arc::new(std::sync::OnceLock::<ActorRef<Note>>::new());
    let again = inner.clone();
    let log = stage.log.clone();
    let group = stage
        .system
        .group("lodgers")
        .keyed(
            move |note: &Note| {
                if note.text == "outer" {
                    again.get().expect("set").tell(to(7, "inner"));
                }
                note.to.clone()
            },
            move |_, key: &u32| {
                let _ = log.send(key.to_string());
                crate::keyed_support::Lodger::new(*key, &log)
            },
        )
        .spawn()
        .expect("sound");
    inner.set(group.to_ref()).expect("once");
    group.tell(to(7, "outer"));
    assert_eq!(noted(&stage), ["7", "7 inner", "7 outer"]);
    books(stage);
}

#[cfg(feature = "config")]
#[test]
fn a_group_goes_by_its_configuration_as_soon_as_it_is_accepted() {
    let stage =
        Stage::turns_with(|builder| builder.config("[topology.shards]\ncount = 2").expect("well formed"));
    let log = stage.log.clone();
    let route = |count: &u64, text: &String| match count {
        0 => KeyRoute::Discard,
        count => KeyRoute::Unicast(text.len() as u64 % count),
    };
    let count = RouterState::new(0);
    let router = count.router(route);
    let recipe = move |ctx: &mut Context<String>, key: &u64| {
        let _ = log.send(format!("{key} {:?}", ctx.spawn_cause().expect("of a group")));
        Idle
    };
    let topology = stage.system.topology();
    let shards = topology.local::<String>("shards").expect("a new name");
    let group = stage
        .system
        .group("shards")
        .keyed(router, recipe)
        .config(
            |config| match config.table().get("count").and_then(|count| count.as_integer()) {
                Some(count @ 1..) => Ok(count as u64),
                other => Err(format!("count is {other:?}: must be at least 1")),
            },
            move |group, shards| {
                count.update(|_| shards);
                (0..shards).for_each(|shard| group.mount(shard).unwrap());
            },
        )
        .spawn()
        .expect("sound");
    let _mounted = shards.mount(&group);
    assert!(group.is_empty(), "nobody is created before the first configuration");
    topology.start().expect("its part is sound");
    assert_eq!(noted(&stage), ["0 Mounted", "1 Mounted"]);
    topology.reconfigure("[topology.shards]\ncount = 3", false).expect("sound");
    group.tell("12".to_owned());
    assert_eq!(noted(&stage), ["2 Mounted"]);
    let error = topology.reconfigure("[topology.shards]\ncount = 0", false).expect_err("rejected");
    assert!(error.to_string().contains("must be at least 1"), "{error}");
    group.try_tell("12".to_owned()).expect("it goes on by the old one");
    assert_eq!(books(stage).handled, 2);
}
