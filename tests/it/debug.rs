//! What developers see when they print values with `{:?}`: which one it is, and how it stands. Some take locks for that;
//! so the first test prints them where they are at work, in a handler.

use crate::support::*;
use pointsman::actor::WatchError;
use pointsman::pattern::Backoff;
use pointsman::prelude::*;
use pointsman::routing::{
    AddRoutee, AdjustPoolSize, BroadcastIf, ConsistentHashing, Drain, GetRoutees, KeySink, Manage,
    OptimalSizeExploringResizer, Random, RemoveRoutee, RoundRobin, Routee, RouterValue, SmallestMailbox,
    TailChopping, TwoChoices,
};
use pointsman::selection::SelectError;
use pointsman::time::ManualClock;
use std::fmt::Debug;
use std::sync::mpsc::channel;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Each begins with the name of its type.
#[track_caller]
fn assert_named(values: &[(&str, &dyn Debug)]) {
    for (name, value) in values {
        let text = format!("{value:?}");
        assert!(text.starts_with(name), "{name}: {text}");
    }
}

#[test]
fn what_an_actor_prints_of_itself_and_its_system_says_what_it_is() {
    let stage = Stage::turns();
    let puppet = stage.spawn(&stage.role("p"));
    let me = puppet.clone();
    let printed = query(&puppet, move |_, ctx| {
        let system = ctx.system().clone();
        let scheduler = system.task_timer().expect("the default dispatcher");
        let timer = scheduler.once(SECOND, || ()).expect("soon enough");
        let texts = vec![
            format!("{ctx:?}"),
            format!("{:?}", ctx.timers()),
            format!("{:?}", ctx.actor("child")),
            format!("{me:?}"),
            format!("{:?}", me.untyped().expect("a local actor")),
            format!("{:?}", me.path()),
            format!("{:?}", system.name()),
            format!("{system:?}"),
            format!("{:?}", system.dead_letters()),
            format!("{scheduler:?}"),
            format!("{timer:?}"),
            format!("{:?}", system.select("/user/*").expect("a selection")),
        ];
        timer.cancel();
        texts
    })
    .expect("nobody waits for a lock that it holds itself");
    let uid = puppet.untyped().expect("a local actor").uid();
    let name = stage.system.name();
    let of_type = std::any::type_name::<Tell>();
    let expected = [
        "Context { path: /user/p, .. }".to_owned(),
        "ActorTimers { of: /user/p, .. }".to_owned(),
        "ActorBuilder { parent: ".to_owned(),
        format!("ActorRef<{of_type}>(/user/p#{uid})"),
        format!("AnyActorRef(/user/p#{uid})"),
        "/user/p".to_owned(),
        format!("{name:?}"),
        format!("SystemRef {{ name: {name:?}, .. }}"),
        "DeadLetters { ".to_owned(),
        "Scheduler".to_owned(),
        "Cancellable".to_owned(),
        "Selection(/user/*)".to_owned(),
    ];
    for (text, expected) in printed.iter().zip(&expected) {
        assert!(text.starts_with(expected), "{text} is no {expected}");
    }
    stage.expect(&["p Started 1"]);
    stage.end(&["p Stopped 1"]);
}

#[test]
fn what_is_printed_of_an_ask_says_whether_it_is_answered() {
    let stage = Stage::turns();
    let puppet = stage.spawn(&stage.role("p"));
    let (sender, receiver) = channel();
    let ask = puppet.ask_with(|reply_to: ReplyTo<u64>| {
        Tell::new(move |_, _| {
            sender.send(reply_to)?;
            Ok(())
        })
    });
    let reply_to = receiver.soon().expect("the actor hands it on");
    assert_eq!(
        (format!("{ask:?}"), format!("{reply_to:?}")),
        ("Ask { state: Pending }".into(), "ReplyTo { wanted: true }".into())
    );
    assert_eq!(reply_to.send(7), Ok(()));
    assert_eq!(format!("{ask:?}"), "Ask { state: Answered }");
    assert_eq!(ask.wait(), Ok(7));

    let mut asker = Asker::<u64>::new();
    assert_named(&[("Asker { has_slot: ", &asker)]);
    puppet.stop();
    wait_for_end(&stage, &puppet);
    let pending = asker.ask_with(&puppet, |reply_to| {
        Tell::new(move |_, _| {
            drop(reply_to);
            Ok(())
        })
    });
    assert_named(&[("PendingReply { state: ", &pending)]);
    drop(pending);
    stage.expect(&["p Started 1", "p Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn what_is_printed_of_a_refusal_leaves_the_message_out() {
    let selection = ActorRef::from_fn(|(): ()| ()).path();
    let of_watch = WatchError::NoActor { notice: "a secret" };
    let of_selection = SelectError::Wildcard { selection, message: "a secret" };
    for (text, sentence) in [
        (format!("{of_watch:?}"), of_watch.to_string()),
        (format!("{of_selection:?}"), of_selection.to_string()),
    ] {
        assert!(text == sentence && !text.contains("a secret"), "{text}");
    }
}

#[test]
fn what_is_printed_of_a_router_its_parts_and_its_logics_names_them() {
    let stage = Stage::turns();
    let puppet = stage.spawn(&stage.role("p"));
    let system = stage.system.handle();
    let role = stage.role("r");
    let plan = system.router("plan").pool(2, move |_| role.recipe()());
    let value = RouterValue::<Tell, _>::new(system, RoundRobin::new()).expect("its settings make sense");
    let value = value.add_routee(&puppet);
    let routee = value.routees().iter().next().expect("the one").clone();
    let hashing = ConsistentHashing::by(|message: &u64, key| key.feed(message));
    assert_named(&[
        ("RoundRobin", &RoundRobin::new()),
        ("Random", &Random::new()),
        ("SmallestMailbox", &SmallestMailbox::new()),
        ("TwoChoices", &TwoChoices::new()),
        ("TailChopping", &TailChopping::new()),
        ("ConsistentHashing { virtual_nodes: ", &hashing),
        ("BroadcastIf { logic: RoundRobin", &BroadcastIf::new(|_: &u64| true, RoundRobin::new())),
        ("OptimalSizeExploringResizer", &OptimalSizeExploringResizer::new()),
        ("RouterValue { routees: [Routee(", &value),
        ("Routee(", &routee),
        ("RouterPlan", &plan),
    ]);
    drop((plan, value, routee));
    stage.expect(&["p Started 1"]);
    stage.end(&["p Stopped 1"]);
}

#[test]
fn what_is_printed_of_settings_shows_them() {
    assert_named(&[
        ("SystemBuilder { name: \"named\"", &System::builder("named")),
        ("Strategy { ", &Strategy::default()),
        ("Backoff { trigger: ", &Backoff::<u64>::on_failure(SECOND, 2 * SECOND)),
        ("Failure", &Failure::msg("as told")),
        ("ManualClock", &ManualClock::new()),
        ("Mailbox { capacity: Some(7), ", &Mailbox::bounded(7)),
    ]);
}

#[test]
fn what_is_printed_of_calls_and_of_a_routers_control_names_the_request_and_shows_none_of_it() {
    struct Secret;
    impl Request for Secret {
        type Reply = ();
    }
    let (sender, printed) = channel();
    let calls = sender.clone();
    let callee = ActorRef::from_fn(move |call: Call<Secret>| calls.send(format!("{call:?}")).unwrap());
    drop(callee.ask(Secret));
    let secret = std::any::type_name::<Secret>();
    let text = printed.try_recv().unwrap();
    assert!(text.starts_with(&format!("Call {{ request: {secret}, reply_to: ReplyTo {{")), "{text}");

    let head = ActorRef::from_fn(move |control: Manage<u64>| sender.send(format!("{control:?}")).unwrap());
    let routee = || Routee::from(&ActorRef::from_fn(|_: u64| ()));
    drop(head.ask(AdjustPoolSize::To(3)));
    drop(head.ask(AdjustPoolSize::By(3)));
    drop(head.ask(AddRoutee { routee: routee() }));
    drop(head.ask(RemoveRoutee { routee: routee() }));
    drop(head.ask(GetRoutees::default()));
    drop(head.ask(Drain));
    assert_eq!(
        printed.try_iter().collect::<Vec<_>>(),
        ["Adjust", "Adjust", "Add", "Remove", "Routees", "Drain"]
    );
}

#[test]
fn what_is_printed_of_routers_and_supervisors_says_where_they_stand() {
    let stage = Stage::turns();
    let system = stage.system.handle();
    let role = stage.role("r");
    let router = system.router("plain").pool(1, move |_| role.recipe()()).spawn().unwrap();
    let plan = system.spawn_router("goakt", 2, |_| Silent);
    let text = format!("{plan:?}");
    let of_goakt = plan.spawn().unwrap();
    let role = stage.role("c");
    let recipe = std::sync::Mutex::new(role.recipe());
    let supervisor = system
        .actor("s")
        .spawn_backoff(Backoff::on_failure(SECOND, 2 * SECOND), move |_: &mut Context<Tell>| {
            recipe.lock().unwrap()()
        })
        .unwrap();
    let mut begun = [stage.note(), stage.note()];
    begun.sort();
    assert_eq!(begun, ["c Started 1", "r Started 1"]);
    assert_eq!(text, "SpawnRouter { name: \"goakt\", pool_size: 2, .. }");
    assert_named(&[
        ("Router { path: /user/plain, .. }", &router),
        ("Router { path: /user/goakt, .. }", &of_goakt),
        ("Router { path: /user/goakt, .. }", &of_goakt.clone()),
        ("BackoffSupervisor { path: /user/s, child: Some(", &supervisor),
        ("KeySink { hash: ", &KeySink::default()),
    ]);
    stage.end(&["c Stopped 1", "r Stopped 1"]);
}

/// Takes numbers.
struct Silent;

impl Actor for Silent {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}
