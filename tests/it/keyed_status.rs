//! The statuses of a group's actors, as subscribers are told them.

use crate::keyed_support::{Do, Note, books, lodgers, noted, plan, to};
use crate::support::{Stage, run_turns};
use pointsman::group::{ActorStatus, Group, RestartPolicy, StatusReport, WhileRestarting};
use pointsman::prelude::*;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A subscriber that notes what it is told.
fn reports<K: std::fmt::Display + Send + 'static>() -> (ActorRef<StatusReport<K>>, Receiver<String>) {
    let (sender, receiver) = channel();
    let subscriber = ActorRef::from_fn(move |report: StatusReport<K>| {
        let _ = sender.send(format!("{} {} {}", report.group, report.key, report.status));
    });
    (subscriber, receiver)
}

/// What has been told until nobody has anything to do; that of one key in its order, the keys in theirs.
#[track_caller]
fn told(reports: &Receiver<String>) -> Vec<String> {
    run_turns();
    let mut told: Vec<String> = reports.try_iter().collect();
    let key = |report: &str| report.split(' ').nth(1).map(str::to_owned);
    told.sort_by_key(|report| key(report));
    told
}

fn lodger(key: u32, statuses: &[&str]) -> Vec<String> {
    statuses.iter().map(|status| format!("lodgers {key} {status}")).collect()
}

#[test]
fn each_change_of_an_actors_life_is_told() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let (subscriber, reports) = reports();
    group.subscribe_statuses(&subscriber);
    assert_eq!(told(&reports), [""; 0]);
    group.tell(to(1, "a"));
    assert_eq!(told(&reports), lodger(1, &["initialising", "normal"]));
    group.tell(to(1, "b").act(Do::Fail));
    assert_eq!(told(&reports), lodger(1, &["failed", "terminating", "terminated"]));
    group.tell(to(1, "c").act(Do::Stop));
    assert_eq!(told(&reports), lodger(1, &["initialising", "normal", "terminating", "terminated"]));
    books(stage);
}

#[test]
fn a_subscriber_is_told_first_how_each_actor_is_now() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    (1..=2).for_each(|key| group.tell(to(key, "a")));
    run_turns();
    let (first, firsts) = reports();
    group.subscribe_statuses(&first);
    assert_eq!(told(&firsts), [lodger(1, &["normal"]), lodger(2, &["normal"])].concat());
    let (second, seconds) = reports();
    group.subscribe_statuses(&second);
    assert_eq!(told(&seconds), [lodger(1, &["normal"]), lodger(2, &["normal"])].concat());
    assert_eq!(told(&firsts), [""; 0], "it knows already");
    group.tell(to(2, "b").act(Do::Retire));
    assert_eq!(told(&firsts), lodger(2, &["terminating", "terminated"]));
    assert_eq!(told(&seconds), lodger(2, &["terminating", "terminated"]));
    books(stage);
}

#[test]
fn the_end_is_told_when_the_key_is_free() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let known: Arc<OnceLock<Group<Note, u32>>> = Arc::default();
    let (sender, reports) = channel();
    let anyone = known.clone();
    group.subscribe_statuses(&ActorRef::from_fn(move |report: StatusReport<u32>| {
        let group = anyone.get().expect("set before anything is sent");
        let _ = sender.send(format!("{} {} of {}", report.key, report.status, group.len()));
        if report.status == ActorStatus::Terminated && sender.send("again".to_owned()).is_ok() {
            group.try_tell(to(report.key, "b")).expect("a key that is free takes messages");
        }
    }));
    let _ = known.set(group.clone());
    group.tell(to(1, "a").act(Do::Stop));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped", "1 OnMessage", "1 b"]);
    let told: Vec<String> = reports.try_iter().collect();
    let expected = [
        "1 initialising of 1",
        "1 normal of 1",
        "1 terminating of 1",
        "1 terminated of 0",
        "again",
        "1 initialising of 1",
        "1 normal of 1",
    ];
    assert_eq!(told, expected);
    // Nobody begins again at the end of the system.
    drop(reports);
    assert_eq!(books(stage).dead_lettered, 0);
}

#[test]
fn one_that_is_restarted_does_not_terminate() {
    for (what, at_failure) in [
        (WhileRestarting::Queue, &["failed"][..]),
        (WhileRestarting::Refuse, &["failed", "terminating"][..]),
        (WhileRestarting::SpawnAnew, &["failed", "terminating"][..]),
    ] {
        let stage = Stage::turns();
        let policy = RestartPolicy::on_failure(SECOND, SECOND).auto_reset(Duration::MAX).max_retries(1);
        let group = plan(&stage).restart(policy).while_restarting(what).spawn().unwrap();
        let (subscriber, reports) = reports();
        group.subscribe_statuses(&subscriber);
        group.tell(to(1, "a").act(Do::Fail));
        let begins = lodger(1, &["initialising", "normal"]);
        assert_eq!(told(&reports), [begins.clone(), lodger(1, at_failure)].concat(), "{what:?}");
        stage.clock.advance(SECOND);
        assert_eq!(told(&reports), begins, "{what:?}");
        group.tell(to(1, "b").act(Do::Fail));
        let ends = lodger(1, &["failed", "terminating", "terminated"]);
        assert_eq!(told(&reports), ends, "{what:?}: given up");
        books(stage);
    }
}

#[test]
fn who_waits_to_be_created_anew_is_told_to_terminate_when_it_is_given_up() {
    for what in [WhileRestarting::Queue, WhileRestarting::Refuse] {
        let stage = Stage::turns();
        let policy = RestartPolicy::always(SECOND, SECOND).auto_reset(Duration::MAX);
        let group = plan(&stage).restart(policy).while_restarting(what).spawn().unwrap();
        group.tell(to(1, "a").act(Do::Stop));
        run_turns();
        let (subscriber, reports) = reports();
        group.subscribe_statuses(&subscriber);
        assert_eq!(told(&reports), lodger(1, &["terminating"]), "{what:?}: its key is not free");
        group.stop_spawning();
        assert_eq!(told(&reports), lodger(1, &["terminated"]), "{what:?}");
        books(stage);
    }
}

#[test]
fn an_heir_begins_when_the_end_of_the_former_has_been_told() {
    let stage = Stage::turns();
    let known: Arc<OnceLock<ActorRef<u32>>> = Arc::default();
    let anyone = known.clone();
    let group = stage
        .system
        .group("lodgers")
        .by_key(|_: &u32| 1, move |_, _: &i32| Parent(anyone.clone()))
        .spawn()
        .unwrap();
    let _ = known.set(group.to_ref());
    let (subscriber, reports) = reports();
    group.subscribe_statuses(&subscriber);
    group.tell(1_u32);
    let begins = ["initialising", "normal"];
    let ends = ["terminating", "terminated"];
    assert_eq!(told(&reports), lodger(1, &[begins, ends, begins].concat()));
    books(stage);
}

/// Retires at 1, and sends 2 to its key when it ends.
struct Parent(Arc<OnceLock<ActorRef<u32>>>);

impl Actor for Parent {
    type Message = u32;

    fn receive(&mut self, number: u32, ctx: &mut Context<u32>) -> HandlerResult {
        if number == 1 {
            ctx.passivate();
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<u32>) {
        // Refused once the group ends.
        let _ = self.0.get().map(|group| group.try_tell(2_u32));
    }
}

/// Says that something is wrong, or that all is well.
struct Sensor;

impl Actor for Sensor {
    type Message = Option<&'static str>;

    fn started(&mut self, ctx: &mut Context<Self::Message>) -> HandlerResult {
        // It is no news that a new actor is normal.
        ctx.set_normal();
        Ok(())
    }

    fn receive(&mut self, alarm: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
        match alarm {
            Some("fail") => return Err(Failure::msg("told to")),
            Some(reason) => ctx.set_alarming(reason),
            None => ctx.set_normal(),
        }
        Ok(())
    }

    fn stopped(&mut self, ctx: &mut Context<Self::Message>) {
        ctx.set_alarming("too late");
    }
}

#[test]
fn an_actor_says_itself_that_something_is_wrong() {
    let stage = Stage::turns();
    let group = stage.system.group("lodgers").by_key(|_: &Option<_>| 7_u32, |_, _| Sensor);
    let policy =
        RestartPolicy::on_failure(Duration::ZERO, Duration::ZERO).max_retries(1).auto_reset(Duration::MAX);
    let group = group.restart(policy).spawn().unwrap();
    let (subscriber, reports) = reports();
    group.subscribe_statuses(&subscriber);
    for alarm in [Some("hot"), Some("hot"), Some("hotter"), None, None] {
        group.tell(alarm);
    }
    let expected = ["initialising", "normal", "alarming: hot", "alarming: hotter", "normal"];
    assert_eq!(told(&reports), lodger(7, &expected));
    group.tell(Some("wet"));
    run_turns();
    let (late, lates) = self::reports();
    group.subscribe_statuses(&late);
    assert_eq!(told(&lates), lodger(7, &["alarming: wet"]));
    group.tell(Some("fail"));
    assert_eq!(told(&lates), lodger(7, &["failed", "initialising", "normal"]), "a new state has no alarm");
    group.tell(Some("fail"));
    assert_eq!(told(&lates), lodger(7, &["failed", "terminating", "terminated"]));
    books(stage);
}

#[test]
fn an_actor_of_no_group_may_say_what_it_likes() {
    let stage = Stage::turns();
    let sensor = stage.system.actor("sensor").spawn(|| Sensor).unwrap();
    sensor.tell(Some("hot"));
    sensor.tell(None);
    assert_eq!(books(stage).handled, 2);
}

#[test]
fn a_subscriber_that_has_ended_is_told_nothing_and_one_that_panics_harms_nobody() {
    struct Ear;
    impl Actor for Ear {
        type Message = StatusReport<u32>;
        fn receive(&mut self, _: StatusReport<u32>, _: &mut Context<StatusReport<u32>>) -> HandlerResult {
            Ok(())
        }
    }
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let ear = stage.system.actor("ear").spawn(|| Ear).unwrap();
    group.subscribe_statuses(&ear);
    group.subscribe_statuses(&ActorRef::from_fn(|_: StatusReport<u32>| panic!("a subscriber's own fault")));
    let (last, reports) = reports();
    group.subscribe_statuses(&last);
    group.tell(to(1, "a"));
    assert_eq!(told(&reports), lodger(1, &["initialising", "normal"]));
    assert_eq!(stage.system.ledger().handled, 3, "a message and two reports");
    ear.stop();
    run_turns();
    group.tell(to(1, "b").act(Do::Stop));
    assert_eq!(told(&reports), lodger(1, &["terminating", "terminated"]));
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered), (4, 0), "{ledger}");
}

#[test]
fn the_actors_of_a_group_that_ends_terminate() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    (1..=2).for_each(|key| group.tell(to(key, "a")));
    run_turns();
    let (subscriber, reports) = reports();
    group.subscribe_statuses(&subscriber);
    told(&reports);
    group.terminate("over");
    let ends = ["terminating", "terminated"];
    assert_eq!(told(&reports), [lodger(1, &ends), lodger(2, &ends)].concat());
    books(stage);
}

#[test]
fn a_topology_subscribes_to_its_keyed_groups_by_their_names() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let (keyed, plain) = (topology.local("keyed").unwrap(), topology.local("plain").unwrap());
    let group = lodgers(&stage);
    keyed.mount(&group);
    plain.mount(&stage.system.actor("sensor").spawn(|| Sensor).unwrap());
    let (subscriber, reports) = reports::<String>();
    topology.subscribe_statuses(&subscriber);
    group.tell(to(1, "a"));
    assert_eq!(told(&reports), ["keyed 1 initialising", "keyed 1 normal"]);
    books(stage);
}

#[test]
fn who_watches_an_actor_of_a_group_hears_of_its_end_when_the_key_is_free() {
    struct Watcher(Group<Note, u32>);
    impl Actor for Watcher {
        type Message = AnyActorRef;
        fn receive(&mut self, actor: AnyActorRef, ctx: &mut Context<AnyActorRef>) -> HandlerResult {
            ctx.watch(&actor)?;
            Ok(())
        }
        fn terminated(
            &mut self,
            ended: pointsman::Terminated,
            _: &mut Context<AnyActorRef>,
        ) -> HandlerResult {
            assert!(ended.existence_confirmed);
            let was_free = self.0.is_empty();
            self.0.try_tell(to(1, if was_free { "next" } else { "too early" }))?;
            Ok(())
        }
    }
    for seed in 0..32 {
        let stage = Stage::turns_of(seed, |builder| builder);
        let group = lodgers(&stage);
        group.tell(to(1, "a"));
        run_turns();
        let of = group.clone();
        let watcher = stage.system.actor("watcher").spawn(move || Watcher(of.clone())).unwrap();
        watcher.tell(stage.system.actor_at("/user/lodgers/1").expect("it is there"));
        run_turns();
        group.tell(to(1, "b").act(Do::Stop));
        let expected = ["1 OnMessage", "1 a", "1 b", "1 stopped", "1 OnMessage", "1 next"];
        assert_eq!(noted(&stage), expected, "seed {seed}");
        books(stage);
    }
}
