//! Probes: what they take, what they refuse, and what they say then.

use crate::support::{LONG, panic_of};
use pointsman::prelude::*;
use pointsman::testkit::{Probe, TestSystem};
use std::time::Duration;

/// Passes on what it gets, doubled.
struct Doubler(ActorRef<u32>);

impl Actor for Doubler {
    type Message = u32;
    fn receive(&mut self, number: u32, ctx: &mut Context<u32>) -> HandlerResult {
        match number {
            0 => ctx.stop(),
            number => self.0.tell(2 * number),
        }
        Ok(())
    }
}

fn doubler(system: &SystemRef, probe: &Probe<u32>) -> ActorRef<u32> {
    let to = probe.actor_ref().clone();
    system.spawn(move || Doubler(to.clone())).expect("the system runs")
}

fn converse(system: &SystemRef) {
    let probe = Probe::<u32>::on(system);
    let doubler = doubler(system, &probe);
    probe.watch(&doubler);
    (1..=5u32).for_each(|number| doubler.tell(number));
    probe.expect(2);
    assert_eq!(probe.expect_matching(|number| *number > 3), 4);
    assert_eq!(probe.take(), 6);
    assert_eq!(probe.fish_for(|number| Ok(*number == 10)), 10);
    probe.expect_none();
    doubler.tell(7u32);
    doubler.tell(0u32);
    // The end comes after all that was sent before it.
    probe.expect(14);
    probe.expect_terminated(&doubler);
    // Whoever has ended already has ended, too.
    let late = Probe::<()>::on(system);
    late.watch(&doubler);
    late.expect_terminated(&doubler);
}

#[test]
fn a_probe_reads_in_order_what_it_gets() {
    TestSystem::for_seeds(20, |system| converse(system));
}

#[test]
fn a_probe_works_on_a_system_with_threads() {
    let system = System::builder("threads").build().unwrap();
    converse(&system);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// What is said of the mailboxes of actors is said of those under test.
#[test]
fn a_probe_keeps_all_that_comes_whatever_mailbox_the_others_have() {
    let mailboxes = |builder: pointsman::SystemBuilder| {
        let small = Dispatcher::work_stealing().mailbox(Mailbox::bounded(1));
        builder
            .dispatcher("default", small)
            .mailbox("tiny", Mailbox::bounded(1))
            .deploy("/*", pointsman::settings::Deployment::new().mailbox("tiny"))
    };
    let system = TestSystem::builder().configure(mailboxes).build();
    let probe = system.probe::<u32>();
    (1..=3u32).for_each(|number| probe.actor_ref().tell(number));
    (1..=3).for_each(|number| probe.expect(number));
    system.finish();
}

/// Never comes to rest.
struct Restless;

impl Actor for Restless {
    type Message = ();
    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        ctx.me().tell(());
        Ok(())
    }
}

#[test]
fn nobody_knows_that_nothing_comes_while_actors_keep_each_other_busy() {
    let system = TestSystem::builder().seed(12).turn_limit(100).build();
    let probe = system.probe::<u32>();
    let restless = system.spawn(|| Restless).unwrap();
    restless.tell(());
    let fault = panic_of(|| probe.expect_none());
    let again = "(seed 12: run the test again with POINTSMAN_SEED=12)";
    assert_eq!(
        fault,
        format!("expected nothing, came nothing yet, though actors keep each other busy {again}")
    );
    restless.stop();
    probe.expect_none();
    system.finish();
}

#[test]
fn failures_say_what_was_expected_what_came_and_the_seed() {
    let system = TestSystem::with_seed(12);
    let probe = system.probe::<u32>();
    let doubler = doubler(&system, &probe);
    let again = "(seed 12: run the test again with POINTSMAN_SEED=12)";

    let fault = panic_of(|| probe.expect(3));
    assert_eq!(fault, format!("expected 3, came nothing, and no actor has anything left to do {again}"));
    doubler.tell(1u32);
    assert_eq!(panic_of(|| probe.expect(3)), format!("expected 3, came 2 {again}"));
    doubler.tell(1u32);
    assert_eq!(panic_of(|| probe.expect_none()), format!("expected nothing, came 2 {again}"));
    doubler.tell(2u32);
    let fault = panic_of(|| _ = probe.expect_matching(|number| *number == 5));
    assert_eq!(fault, format!("expected a message that matches, came 4 {again}"));
    doubler.tell(3u32);
    let fault = panic_of(|| _ = probe.expect_terminated(&doubler));
    let uid = doubler.uid();
    assert_eq!(fault, format!("expected the end of /user/$a#{uid}, came a message of type u32 {again}"));
    doubler.tell(1u32);
    doubler.tell(2u32);
    let fault = panic_of(|| _ = probe.fish_for(|_| Ok(false)));
    assert_eq!(
        fault,
        format!(
            "expected a message to take, came nothing, and no actor has anything left to do, after [2, 4] {again}"
        )
    );
    doubler.tell(4u32);
    let fault = panic_of(|| _ = probe.fish_for(|_| Err("no fish".into())));
    assert_eq!(fault, format!("expected a message to take, came 8: no fish, after [] {again}"));

    probe.watch(&doubler);
    doubler.stop();
    assert_eq!(
        panic_of(|| _ = probe.take()),
        format!("expected a message, came the end of /user/$a {again}")
    );
    let fault = panic_of(|| _ = probe.expect_terminated(&doubler));
    assert!(fault.contains("came nothing"), "{fault}");
    system.finish();
}

#[test]
fn a_probe_waits_for_no_clock() {
    TestSystem::for_seeds(5, |system| {
        let probe = system.probe::<u32>();
        struct Later(ActorRef<u32>);
        impl Actor for Later {
            type Message = ();
            fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
                ctx.after(Duration::from_secs(3600), ());
                Ok(())
            }
            fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
                self.0.tell(1u32);
                ctx.stop();
                Ok(())
            }
        }
        let to = probe.actor_ref().clone();
        system.spawn(move || Later(to.clone())).unwrap();
        probe.expect_none();
        system.advance(Duration::from_secs(3599));
        probe.expect_none();
        system.advance(Duration::from_secs(1));
        probe.expect(1);
    });
}

#[test]
fn a_probe_ends_when_it_is_dropped_and_may_be_left_running() {
    let system = TestSystem::new();
    let left = system.probe::<u32>();
    let dropped = system.probe::<u32>();
    let to_dropped = dropped.actor_ref().clone();
    assert!(to_dropped.path().as_str().starts_with("/system/"), "{to_dropped:?}");
    drop(dropped);
    system.run_until_idle();
    assert!(to_dropped.is_closed() && !left.actor_ref().is_closed());
    system.finish();
    assert!(panic_of(|| left.watch(&to_dropped)).contains("the system has shut down"));
    assert!(panic_of(|| left.expect(1)).contains("came nothing"));
}

#[test]
fn messages_are_expected_in_any_order_each_once() {
    TestSystem::for_seeds(20, |system| {
        let probe = system.probe::<u32>();
        let doublers = [doubler(system, &probe), doubler(system, &probe), doubler(system, &probe)];
        doublers[0].tell(1u32);
        doublers[1].tell(2u32);
        doublers[2].tell(1u32);
        let mut came = probe.expect_in_any_order([4, 2, 2]);
        came.sort_unstable();
        assert_eq!(came, [2, 2, 4]);
        // None at all are there at once.
        assert!(probe.expect_in_any_order([]).is_empty());
        doublers.iter().for_each(ActorRef::stop);
    });
}

#[test]
fn of_messages_in_any_order_one_too_few_or_another_one_is_a_failure() {
    let system = TestSystem::with_seed(12);
    let probe = system.probe::<u32>();
    let doubler = doubler(&system, &probe);
    let again = "(seed 12: run the test again with POINTSMAN_SEED=12)";
    doubler.tell(1u32);
    let fault = panic_of(|| _ = probe.expect_in_any_order([2, 4]));
    let nothing = "nothing, and no actor has anything left to do";
    assert_eq!(fault, format!("expected [4] in any order, came {nothing}, after [2] {again}"));
    (1..=3u32).for_each(|number| doubler.tell(number));
    // A message counts once, however often it is expected.
    let fault = panic_of(|| _ = probe.expect_in_any_order([2, 2, 4]));
    assert_eq!(fault, format!("expected [2] in any order, came 6, after [2, 4] {again}"));
    probe.watch(&doubler);
    doubler.stop();
    let fault = panic_of(|| _ = probe.expect_in_any_order([2]));
    let path = doubler.path();
    assert_eq!(fault, format!("expected [2] in any order, came the end of {path}, after [] {again}"));
    system.finish();
}

#[test]
fn the_notice_of_an_end_tells_whether_the_actor_was_alive_when_the_watch_began() {
    TestSystem::for_seeds(20, |system| {
        let (early, late) = (system.probe::<u32>(), system.probe::<u32>());
        let doubler = doubler(system, &early);
        early.watch(&doubler);
        // The watch begins in a turn of the probe.
        system.run_until_idle();
        doubler.stop();
        let notice = early.expect_terminated(&doubler);
        assert!(notice.existence_confirmed && doubler.untyped().is_some_and(|any| any == notice.actor));
        late.watch(&doubler);
        assert!(!late.expect_terminated(&doubler).existence_confirmed);
    });
}
