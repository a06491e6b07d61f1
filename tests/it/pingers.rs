//! Pingers: actors and groups that do not answer are reported, and their recovery too.

use crate::support::{LONG, Puppet, Stage, Tell, act, hold, hold_then, note, query, run_turns, wait_until};
use pointsman::events::Subscription;
use pointsman::prelude::*;
use pointsman::topology::{PingReport, PingStatus, PingerError, Topology};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The reports, as texts without times.
struct Reports {
    reports: Receiver<PingReport>,
    _subscription: Subscription,
}

impl Reports {
    fn of(stage: &Stage) -> Self {
        let (sender, reports) = channel();
        let seen = move |report: &PingReport| drop(sender.send(report.clone()));
        Self { reports, _subscription: stage.system.events().on(seen) }
    }

    fn text(report: &PingReport) -> String {
        let status = match report.status {
            PingStatus::Silent { waited } if waited >= 5 * SECOND => "silent",
            PingStatus::Answers { after } if after >= 5 * SECOND => "answers",
            PingStatus::Ended => "ended",
            _ => panic!("too early: {report:?}"),
        };
        let actor = report.actor.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} {actor} {status}", report.group)
    }

    /// The next reports, while time passes second by second. In each, the actors of `living` handle what they have got, so
    /// no load of the machine keeps them from answering in time.
    fn expect(&self, stage: &Stage, living: &[&ActorRef<Tell>], texts: &[&str]) {
        self.expect_while(stage, || living.iter().for_each(|actor| handle_all(actor)), texts);
    }

    /// As [`expect`](Self::expect). In each second, `handled` waits until each living actor has handled what it has got.
    fn expect_while(&self, stage: &Stage, handled: impl Fn(), texts: &[&str]) {
        let mut seen: Vec<String> = Vec::new();
        wait_until(|| {
            stage.clock.advance(SECOND);
            handled();
            seen.extend(self.reports.try_iter().map(|report| Self::text(&report)));
            seen.len() >= texts.len()
        });
        assert_eq!(seen, texts);
    }
}

/// Waits until the actor has handled what it has got.
fn handle_all(actor: &ActorRef<Tell>) {
    assert_eq!(query(actor, |_, _| 0), Ok(0));
}

/// A puppet mounted alone.
fn mount(stage: &Stage, topology: &Topology, name: &'static str) -> ActorRef<Tell> {
    let puppet = stage.spawn(&stage.role(name));
    topology.local(name).expect("a free name").mount(&puppet)
}

#[test]
fn actors_that_answer_are_not_reported_and_see_no_ping() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let puppet = mount(&stage, &topology, "a");
    let reports = Reports::of(&stage);
    topology.pinger().every(10 * SECOND).within(5 * SECOND).start().expect("sound");
    let before = stage.system.ledger().sent;
    for _ in 0..20 {
        stage.clock.advance(5 * SECOND);
        run_turns();
    }
    assert!(reports.reports.try_recv().is_err());
    assert!(stage.system.ledger().sent - before <= 60, "ticks and answers of the pinger, no pings");
    note(&puppet, "lives");
    stage.expect(&["a Started 1", "a lives"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn an_actor_that_hangs_is_reported_with_its_group_and_so_is_its_recovery() {
    let stage = Stage::threads("hangs");
    let topology = stage.system.topology();
    let stuck = mount(&stage, &topology, "stuck");
    let fine = mount(&stage, &topology, "fine");
    let reports = Reports::of(&stage);
    let release = hold(&stuck);
    topology.pinger().every(10 * SECOND).within(5 * SECOND).start().expect("sound");
    reports.expect(&stage, &[&fine], &["stuck /user/stuck silent", "stuck  silent"]);
    drop(release);
    reports.expect(&stage, &[&fine, &stuck], &["stuck /user/stuck answers", "stuck  answers"]);
    // It is pinged again, and reported again.
    let release = hold(&stuck);
    reports.expect(&stage, &[&fine], &["stuck /user/stuck silent", "stuck  silent"]);
    drop(release);
    reports.expect(&stage, &[&fine, &stuck], &["stuck /user/stuck answers", "stuck  answers"]);
    stage.system.shutdown(LONG).expect("all end");
}

#[test]
fn a_group_with_an_actor_that_answers_is_not_stuck_and_an_end_is_told() {
    let stage = Stage::threads("pool");
    let topology = stage.system.topology();
    let role = stage.role("worker");
    let workers = stage.system.router("workers").pool(2, {
        let recipe = std::sync::Mutex::new(role.recipe());
        move |_| -> Result<Puppet, pointsman::Failure> { (recipe.lock().expect("no test panics here"))() }
    });
    let workers = workers.spawn().expect("a free name");
    topology.local("workers").expect("free").mount(&workers);
    wait_until(|| workers.routees().expect("it lives").len() == 2);
    let [other, routee] = <[_; 2]>::try_from(workers.routees().expect("it lives")).expect("two");
    let reports = Reports::of(&stage);
    let release = hold_then(&routee, |ctx| {
        ctx.stop();
        Ok(())
    });
    topology.pinger().every(10 * SECOND).within(5 * SECOND).start().expect("sound");
    // The head of the router is pinged, too.
    let handled = || {
        handle_all(&other);
        workers.routees_info().expect("it lives");
    };
    reports.expect_while(&stage, handled, &[&format!("workers {} silent", routee.path())]);
    drop(release);
    reports.expect_while(&stage, handled, &[&format!("workers {} ended", routee.path())]);
    stage.system.shutdown(LONG).expect("all end");
}

#[test]
fn only_the_named_groups_are_pinged_and_a_stopped_pinger_pings_no_more() {
    let stage = Stage::threads("named");
    let topology = stage.system.topology();
    let (one, other) = (mount(&stage, &topology, "one"), mount(&stage, &topology, "other"));
    let reports = Reports::of(&stage);
    let held = [hold(&one), hold(&other)];
    let pinger = topology.pinger().every(10 * SECOND).within(5 * SECOND).groups(["other"]).start();
    let pinger = pinger.expect("sound");
    reports.expect(&stage, &[], &["other /user/other silent", "other  silent"]);
    assert!(format!("{pinger:?}").contains("/system/"), "{pinger:?}");
    pinger.stop();
    drop(held);
    act(&other, |_, ctx| {
        ctx.stop();
        Ok(())
    });
    stage.system.shutdown(LONG).expect("all end");
    assert!(reports.reports.try_recv().is_err());
}

#[test]
fn a_pinger_that_makes_no_sense_is_an_error() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    mount(&stage, &topology, "a");
    assert_eq!(topology.pinger().every(Duration::ZERO).start().expect_err("zero"), PingerError::ZeroTime);
    assert_eq!(topology.pinger().within(Duration::ZERO).start().expect_err("zero"), PingerError::ZeroTime);
    let error = topology.pinger().groups(["b"]).start().expect_err("there is no b");
    assert!(error.to_string().contains("\"b\": choose from the groups [\"a\"]"), "{error}");
    stage.end(&["a Started 1", "a Stopped 1"]);
}
