//! Restart policies that are changed at run time.

use crate::keyed_support::{Do, books, lodgers, noted, plan, to};
use crate::support::Stage;
use pointsman::group::RestartPolicy;
use pointsman::prelude::*;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// At once, as often as it fails.
fn at_once() -> RestartPolicy {
    RestartPolicy::on_failure(Duration::ZERO, Duration::ZERO)
}

#[test]
fn the_configurations_policy_goes_before_the_plans() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.tell(to(1, "a").act(Do::Fail));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"], "by the plan: never");
    group.set_restart_policy(Some(at_once())).unwrap();
    group.tell(to(1, "b").act(Do::Fail));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 b", "1 stopped", "1 Restarted"]);
    group.set_restart_policy(None).unwrap();
    group.tell(to(1, "c").act(Do::Fail));
    assert_eq!(noted(&stage), ["1 c", "1 stopped"]);
    assert!(group.is_empty());
    books(stage);
}

/// Has policies of its own, and fails.
struct Wilful(u32);

enum Will {
    Policy(Option<RestartPolicy>),
    Fail,
}

impl Actor for Wilful {
    type Message = Will;

    fn receive(&mut self, will: Will, ctx: &mut Context<Will>) -> HandlerResult {
        match will {
            Will::Policy(policy) => Ok(ctx.set_restart_policy(policy)?),
            Will::Fail => Err(Failure::msg(format!("life {}", self.0))),
        }
    }
}

#[test]
fn an_actors_own_policy_goes_before_all_others_and_ends_with_its_state() {
    let stage = Stage::turns();
    let log = stage.log.clone();
    let group = stage
        .system
        .group("wilful")
        .by_key(
            |_: &Will| 1_u32,
            move |ctx, key: &u32| {
                let _ = log.send(format!("{:?}", ctx.spawn_cause().expect("of a group")));
                Wilful(*key)
            },
        )
        .spawn()
        .unwrap();
    let never = || Will::Policy(Some(RestartPolicy::never()));
    group.tell(Will::Policy(Some(at_once())));
    group.tell(Will::Fail);
    assert_eq!(noted(&stage), ["OnMessage", "Restarted"]);
    group.tell(Will::Fail);
    assert_eq!(noted(&stage), [""; 0], "the new state has the plan's");
    assert!(group.is_empty());
    group.set_restart_policy(Some(at_once())).unwrap();
    [never(), Will::Policy(None), Will::Fail].into_iter().for_each(|will| group.tell(will));
    assert_eq!(noted(&stage), ["OnMessage", "Restarted"], "taken back, the configuration's counts");
    [never(), Will::Fail].into_iter().for_each(|will| group.tell(will));
    assert_eq!(noted(&stage), [""; 0]);
    assert!(group.is_empty(), "its own goes before the configuration's");
    books(stage);
}

#[test]
fn a_policy_that_makes_no_sense_changes_nothing() {
    let stage = Stage::turns();
    let group = plan(&stage).restart(at_once()).spawn().unwrap();
    let wrong = group.set_restart_policy(Some(RestartPolicy::always(SECOND, Duration::ZERO))).unwrap_err();
    assert_eq!(wrong.to_string(), "longest wait before a restart 0ns: must be at least the shortest, 1s");
    group.tell(to(1, "a").act(Do::Fail));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped", "1 Restarted"]);
    books(stage);
}
