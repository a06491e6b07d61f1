//! What errors say when they are printed: what was wrong, which value it was, and what to do.

use crate::support::*;
use pointsman::actor::Recipient;
use pointsman::ask::{AttemptEnd, NoReplyCause};
use pointsman::dispatch::{DispatcherKind, StartError};
use pointsman::mailbox::MailboxFault;
use pointsman::path::{NameError, PathError};
use pointsman::pattern::{Backoff, PipeError};
use pointsman::prelude::*;
use pointsman::routing::{
    ManageError, Ring, RoundRobin, RouterValue, ScatterGatherFirstCompleted, SectionFault, SettingError,
};
use pointsman::selection::{LookupError, SelectError};
use pointsman::testkit::TestSystem;
use pointsman::timers::ScheduleError;
use pointsman::{ActorPath, BuildError, DeadLetter, DeadLetterReason, SendError};
use std::error::Error;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Each says these things in this order, and nothing of how it is written in the source.
#[track_caller]
fn assert_say(errors: &[(&dyn Error, &[&str])]) {
    for (error, parts) in errors {
        let text = error.to_string();
        let mut rest = text.as_str();
        for part in *parts {
            let Some(at) = rest.find(part) else { panic!("{part:?} is not where it belongs in: {text}") };
            rest = &rest[at + part.len()..];
        }
        assert!(!text.contains("  ") && !text.contains('\n'), "{text}");
        // So `unwrap`, and `main` that returns the error, show the sentence.
        let shown = format!("{error:?}");
        assert!(shown.starts_with(&text), "{shown}");
    }
}

/// What stands behind an error, as text.
fn source(error: &dyn Error) -> Option<String> {
    error.source().map(ToString::to_string)
}

fn path_error(text: &str) -> PathError {
    text.parse::<ActorPath>().expect_err(text)
}

#[test]
fn a_text_that_is_no_path_is_shown_with_the_part_its_place_and_what_may_stand_there() {
    for (text, says) in [
        ("", "invalid path \"\": it is empty, give at least \"/\""),
        (
            "user/a",
            "invalid path \"user/a\": it is relative, begin it with '/' or join it to the path that it is relative to",
        ),
        (
            "akka://shop/user",
            "invalid path \"akka://shop/user\": scheme \"akka\" at byte 0 must be \"pointsman\"",
        ),
        (
            "pointsman:///user",
            "invalid path \"pointsman:///user\": the address at byte 12 names no system, give its name",
        ),
        (
            "pointsman://shop@:1/user",
            "invalid path \"pointsman://shop@:1/user\": there is no host at byte 17, give one behind '@' or leave \
             '@' out",
        ),
        (
            "pointsman://shop@host:65536/user",
            "invalid path \"pointsman://shop@host:65536/user\": no port in \"65536\" at byte 22, give a number from 0 \
             to 65535 behind ':'",
        ),
        ("/user/a#0", "invalid path \"/user/a#0\": uid \"0\" at byte 8 is no number from 1 to 4294967295"),
    ] {
        assert_eq!(path_error(text).to_string(), says);
    }
}

#[test]
fn what_is_looked_up_in_vain_is_named_with_what_is_there_instead() {
    let stage = Stage::turns();
    let puppet = stage.spawn(&stage.role("p"));
    let system = &stage.system;
    let wrong = system.actor_at("/user/a b").unwrap_err();
    let text = path_error("/user/a b").to_string();
    assert_eq!((wrong.to_string(), source(&wrong)), (text.clone(), Some(text)));
    let missing = system.actor_at("/user/q").unwrap_err();
    assert_eq!(source(&missing), None);
    let uid = puppet.uid();
    let old = puppet.path().with_uid(uid + 1);
    let other = system.actor_at(&old.serialized()).unwrap_err();
    let says = format!("the actor at /user/p has uid {uid}: the incarnation /user/p#{} has ended", uid + 1);
    assert_eq!((other.to_string(), source(&other)), (says, None));
    let of_type = system.typed_at::<u32>("/user/p").unwrap_err();
    let takes = std::any::type_name::<Tell>();
    let says = format!("/user/p takes {takes}, not u32: ask for the type that it takes");
    assert_eq!((of_type.to_string(), source(&of_type)), (says.clone(), Some(says.clone())));
    let LookupError::WrongType(actor) = of_type else { panic!("{of_type:?}") };

    // A message for one actor comes back with the same reason.
    let refused = SelectError::OtherType { actor, message: 7 };
    assert_eq!((refused.to_string(), refused.into_inner()), (says, 7));
    let all = system.select("/user/*").unwrap();
    let refused = all.tell_one(noting("never")).unwrap_err();
    assert_say(&[(&refused, &["/user/* has a wildcard", "use `tell`", "`Clone`"])]);
    stage.expect(&["p Started 1"]);
    stage.end(&["p Stopped 1"]);
}

#[test]
fn a_dispatcher_that_does_not_start_says_which_number_is_wrong_and_what_it_may_be() {
    let refused = StartError::Thread(io::Error::other("no more of them"));
    assert_eq!(source(&refused).as_deref(), Some("no more of them"));
    assert_eq!(source(&StartError::ZeroThroughput), None);
    assert_say(&[
        (&refused, &["the operating system refused a thread"]),
        (&StartError::ThreadCount { requested: 0, max: 9 }, &["0 threads", "between 1 and 9"]),
        (&StartError::EmptyThreadRange { min: 4, max: 3 }, &["4 to 3 threads", "must not be below"]),
        (&StartError::ZeroThroughput, &["throughput 0", "at least 1 message"]),
        (
            &StartError::PinCount { thread_count: 3, core_count: 2 },
            &["3 threads pinned to 2 cores", "one core for each thread"],
        ),
        (
            &StartError::Core { core: 4095, available: vec![0, 1] },
            &["core 4095 cannot be had", "[0, 1]", "name one of these"],
        ),
    ]);
    // Who asked for it sees the reason behind the name.
    let error = BuildError::Dispatcher { name: "files".into(), error: StartError::ZeroThroughput };
    assert_say(&[(&error, &["\"files\"", "throughput 0"])]);
    assert_eq!(source(&error), Some(StartError::ZeroThroughput.to_string()));
    let error = BuildError::DispatcherSetting {
        name: "files".into(),
        kind: DispatcherKind::Blocking,
        setting: "spin",
    };
    assert_say(&[(&error, &["\"files\"", "a blocking dispatcher", "`spin`", "leave it out"])]);
    let error = BuildError::Timers(StartError::Thread(std::io::Error::other("no more of them")));
    assert_say(&[(&error, &["the thread of the timers", "refused a thread", "one more thread"])]);
    assert_eq!(source(&error).as_deref(), Some("the operating system refused a thread"));
    let error = SpawnError::Thread(refused);
    assert_say(&[(&error, &["cannot start a thread for the actor", "refused a thread"])]);
    assert_eq!(source(&error).as_deref(), Some("the operating system refused a thread"));
}

#[test]
fn a_section_that_a_router_cannot_follow_says_what_is_at_odds_and_how_to_settle_it() {
    let name = || "random-pool".to_owned();
    let known = || vec!["one".to_owned(), "two".to_owned()];
    let path = path_error("/user/a b");
    for (fault, parts) in [
        (
            SectionFault::Unknown { name: name(), known: known() },
            &["\"random-pool\"", "routing_logic(\"random-pool\", ..)", "[\"one\", \"two\"]"][..],
        ),
        (SectionFault::FromCode, &["the code leaves it to the configuration", "\"random-pool\""]),
        (
            SectionFault::Capability { name: name(), method: "keyed" },
            &["\"random-pool\"", "call `keyed`", "choose another kind"],
        ),
        (
            SectionFault::NoRecipe { name: name() },
            &["\"random-pool\" needs a recipe", "choose a group, or call `pool`"],
        ),
        (SectionFault::NoPaths { name: name() }, &["\"random-pool\" needs paths", "at least one routee"]),
        (
            SectionFault::SharedQueue { name: name() },
            &["\"random-pool\" cannot take the place of a balancing pool", "call `pool`"],
        ),
        (
            SectionFault::Controller { name: name() },
            &["\"random-pool\"", "logic with a controller", "leave `controller` out"],
        ),
        (
            SectionFault::OtherMessage { name: name(), message: "Job", known: vec!["u32"] },
            &["\"random-pool\"", "messages Job", "[\"u32\"]", "routing_logic(\"random-pool\", ..)"],
        ),
        (SectionFault::Refused { name: name(), fault: "no".into() }, &["the logic \"random-pool\": no"]),
        (SectionFault::Value { value: "7".into(), allowed: "8".into() }, &["it is 7: must be 8"]),
        (SectionFault::BothResizers, &["`optimal-size-exploring-resizer`", "enabled = false"]),
        (
            SectionFault::Dispatcher { name: "fast".into(), known: known() },
            &["no dispatcher is named \"fast\"", "declare it", "[\"one\", \"two\"]"],
        ),
        (
            SectionFault::Mailbox { name: "fast".into(), known: known() },
            &["no mailbox is named \"fast\"", "declare it", "[\"one\", \"two\"]"],
        ),
        (SectionFault::Path(path.clone()), &["\"/user/a b\"", "at byte 7"]),
        (SectionFault::Queue(MailboxFault::ZeroCapacity), &["capacity 0", "at least 1"]),
        (
            SectionFault::Queue(MailboxFault::LargeCapacity { capacity: usize::MAX }),
            &["allocated at once", "at most 16777216"],
        ),
    ] {
        let text = fault.to_string();
        // The errors of `spawn` and of `build` name the key, and say the same.
        let (path, key) = ("/user/r".to_owned(), "deployment.\"/r\".router".to_owned());
        let spawned = SpawnError::Section { path, key: key.clone(), fault: fault.clone() };
        assert_eq!(spawned.to_string(), format!("/user/r, key `{key}`: {text}"));
        let built = BuildError::Section { key: key.clone(), fault };
        assert_eq!(built.to_string(), format!("key `{key}`: {text}"));
        assert_say(&[(&spawned, parts), (&built, parts)]);
    }
}

#[test]
fn a_router_that_is_not_managed_is_named_with_what_to_do() {
    let path = || "/user/r".to_owned();
    for (error, parts) in [
        (ManageError::Stopped { path: path() }, &["has stopped or is draining", "create it anew"][..]),
        (
            ManageError::HeadFailed { path: path() },
            &["failed at the request", "the routees have not changed", "look for a panic", "`prepare`"],
        ),
        (
            ManageError::WouldBlockWorker { path: path() },
            &["waits for its head", "ask `router.head()` with `ctx.ask`", "blocking or pinned dispatcher"],
        ),
        (ManageError::EmptyPool { path: path() }, &["at least 1", "`stay_when_empty`"]),
        (ManageError::NotAPool { path: path() }, &["is a group", "add and remove routees"]),
        (ManageError::SharedQueue { path: path() }, &["share a queue", "resize it"]),
        (
            ManageError::OldTables { path: path(), waiting: 1024 },
            &["was not changed", "1024 old tables", "a handler that does not return"],
        ),
        (
            ManageError::Spawn(SpawnError::EmptyPool { path: path() }),
            &["cannot create a routee", "pool size 0 for /user/r"],
        ),
    ] {
        assert_say(&[(&error, parts), (&error, &["/user/r"])]);
    }
}

#[test]
fn a_router_in_goakts_words_that_is_not_spawned_is_named_with_its_fault() {
    let path = || "/user/desks".to_owned();
    let size = SpawnError::EmptyPool { path: path() };
    let logic = SpawnError::Logic { path: path(), fault: "interval 0".into() };
    let two = SpawnError::TwoDirectives { path: path(), options: ["a", "b"] };
    assert_say(&[
        (&size, &["pool size 0", "/user/desks", "at least 1"]),
        (&logic, &["routing logic", "/user/desks", "interval 0"]),
        (&two, &["/user/desks", "`a` and `b`", "one of them, once"]),
    ]);
    assert_eq!([&size, &logic, &two].map(|error| source(error)), [const { None }; 3]);
}

#[test]
fn an_actor_that_is_not_spawned_is_named_with_its_fault_and_the_fault_behind_it() {
    let path = || "/user/a".to_owned();
    let name = NameError::Character { name: "a b".into(), character: ' ', position: 1 };
    let setting = || SettingError::new("target", -1, "at least 0");
    for (error, parts, behind) in [
        (SpawnError::from(name.clone()), &["\"a b\"", "' ' at byte 1"][..], Some(name.to_string())),
        (
            SpawnError::Mailbox { path: path(), fault: MailboxFault::ZeroCapacity },
            &["mailbox of /user/a", "capacity 0"],
            Some(MailboxFault::ZeroCapacity.to_string()),
        ),
        (
            SpawnError::Backoff(setting()),
            &["backoff supervisor", "target -1", "at least 0"],
            Some(setting().to_string()),
        ),
        (
            SpawnError::RouteePath { router: path(), error: path_error("b") },
            &["routee of router /user/a", "\"b\"", "relative"],
            Some(path_error("b").to_string()),
        ),
        (
            SpawnError::Resizer { path: path(), fault: setting() },
            &["resizer of /user/a", "target -1", "at least 0"],
            Some(setting().to_string()),
        ),
        (
            SpawnError::Group { path: path(), fault: setting() },
            &["group /user/a", "target -1", "at least 0"],
            Some(setting().to_string()),
        ),
        (
            SpawnError::ResizerOfGroup { path: path() },
            &["resizer of /user/a", "a group makes no routees", "make the router a pool"],
            None,
        ),
        (
            SpawnError::ResizerOfSharedQueue { path: path() },
            &["resizer of /user/a", "share one queue", "make it another pool"],
            None,
        ),
        (SpawnError::ZeroCapacity { path: path() }, &["capacity 0 for /user/a", "at least 1"], None),
        (
            SpawnError::Routee { router: path(), number: 2, fault: "none".into() },
            &["routee 2 of router /user/a", "could not be made: none"],
            None,
        ),
        (
            SpawnError::RouteeWildcard { router: path(), path: "/user/*".into() },
            &["routee /user/* of router /user/a", "can be cloned", "`group_at`"],
            None,
        ),
        (SpawnError::ParentStopped { path: path() }, &["parent /user/a takes no more children"], None),
        (SpawnError::ShutDown { system: "shop".into() }, &["system \"shop\" is shut down"], None),
    ] {
        assert_say(&[(&error, parts)]);
        assert_eq!(source(&error), behind);
    }
    let later = ScheduleError::Dispatcher(SpawnError::ShutDown { system: "shop".into() });
    assert_say(&[(&later, &["scheduled tasks", "\"shop\" is shut down"])]);
    assert!(source(&later).is_some_and(|text| text.contains("\"shop\"")));
}

#[test]
fn a_backoff_that_makes_no_sense_says_which_value_and_its_bounds() {
    let system = TestSystem::new();
    let refused = |backoff: Backoff<Call<Price>>| {
        system.actor("a").spawn_backoff(backoff, |_: &mut Context<_>| Clerk::Forgets).unwrap_err()
    };
    assert_say(&[
        (&refused(Backoff::on_stop(Duration::ZERO, SECOND)), &["shortest delay 0", "above 0"]),
        (&refused(Backoff::on_stop(2 * SECOND, SECOND)), &["longest delay 1s", "at least the shortest, 2s"]),
        (&refused(Backoff::on_stop(SECOND, SECOND).jitter(1.5)), &["jitter 1.5", "between 0 and 1"]),
    ]);
    system.finish();
}

#[test]
fn a_ring_that_cannot_be_says_who_has_no_points_or_how_many_there_would_be() {
    let none = Ring::new([("a", 1), ("b", 0)]).unwrap_err();
    assert_eq!(
        none,
        SettingError::new("virtual nodes of member \"b\"", 0, "at least 1, or it would own no key")
    );
    let many = Ring::new([("a", u32::MAX), ("b", 1)]).unwrap_err();
    assert_eq!((many.setting.as_str(), many.value.as_str()), ("points of the ring", "4294967296"));
    assert_say(&[
        (&none, &["virtual nodes of member \"b\" 0", "at least 1"]),
        (&many, &["points of the ring 4294967296", "at most 4294967294", "fewer virtual nodes"]),
    ]);
}

#[test]
fn an_ask_without_an_answer_says_why_and_what_may_help() {
    for (error, parts) in [
        (AskError::no_reply(), &["every reply port was dropped unanswered"][..]),
        (AskError::timeout(SECOND), &["no reply within 1s", "more time"]),
        (AskError::undeliverable(), &["undeliverable: the target has stopped"]),
        (
            AskError::Undeliverable { reason: DeadLetterReason::Full, target: None },
            &["undeliverable: the target has a full mailbox", "try again later", "capacity"],
        ),
        (
            AskError::Undeliverable { reason: DeadLetterReason::Cycle, target: None },
            &["undeliverable: the target did not take it", "in a circle"],
        ),
        (
            AskError::NoReply { cause: NoReplyCause::Failed, target: None },
            &["no reply: its handler failed", "the log has the failure"],
        ),
        (AskError::NoReply { cause: NoReplyCause::Unread, target: None }, &["no reply", "dropped unread"]),
        (AskError::no_routees(), &["no routee took the request", "empty"]),
        (AskError::WouldBlockWorker, &["work-stealing worker", "`ctx.ask`", "blocking or pinned dispatcher"]),
        (AskError::Stalled, &["no turn of the test system brings one", "advance its clock"]),
        (AskError::NoTime, &["0ns", "nothing was sent", "more than zero"]),
    ] {
        assert_say(&[(&error, parts)]);
    }
    let expired = DeadLetterReason::Expired.to_string();
    assert_eq!(
        expired,
        "expired: its asker had gone or its time was over before its turn came; give it more time"
    );
    let ends = [
        (AttemptEnd::Unsuccessful, "its reply was no success".to_owned()),
        (AttemptEnd::NoReply, "no reply".to_owned()),
        (AttemptEnd::Refused(DeadLetterReason::Full), format!("not taken ({})", DeadLetterReason::Full)),
        (AttemptEnd::Failed(AskError::no_routees()), format!("failed ({})", AskError::no_routees())),
        (AttemptEnd::Panicked, "a panic in `clone`, `fork` or `is_success`".to_owned()),
    ];
    for (end, text) in ends {
        assert_eq!(end.to_string(), text);
    }
    let text = "panicked: as told".to_owned();
    assert_say(&[
        (&PipeError::Panicked { text }, &["panicked: as told"]),
        (&PipeError::Cancelled, &["the system ended", "was done"]),
    ]);
}

#[derive(Clone)]
struct Price;
impl Request for Price {
    type Reply = u32;
}

/// Answers no question: drops each, or keeps it.
enum Clerk {
    Forgets,
    Keeps(Vec<Call<Price>>),
}
impl Actor for Clerk {
    type Message = Call<Price>;
    fn receive(&mut self, call: Call<Price>, _: &mut Context<Call<Price>>) -> HandlerResult {
        match self {
            Self::Forgets => drop(call),
            Self::Keeps(kept) => kept.push(call),
        }
        Ok(())
    }
}

/// Whom the tests ask in vain: an actor that forgets, one that keeps what it is asked, one that has stopped, an empty
/// router, and a router that asks them all.
struct Silent {
    forgets: ActorRef<Call<Price>>,
    keeps: ActorRef<Call<Price>>,
    gone: ActorRef<Call<Price>>,
    empty: Router<Call<Price>>,
    race: Router<Call<Price>>,
}

impl Silent {
    fn in_system(system: &TestSystem) -> Self {
        let forgets = system.actor("forgets").spawn(|| Clerk::Forgets).unwrap();
        let keeps = system.actor("keeps").spawn(|| Clerk::Keeps(Vec::new())).unwrap();
        let gone = system.actor("gone").spawn(|| Clerk::Forgets).unwrap();
        gone.stop();
        system.run_until_idle();
        let empty = system.router("empty").group([]).stay_when_empty().spawn().unwrap();
        let logic = ScatterGatherFirstCompleted::within(SECOND);
        let race = system.router("race").group([forgets.clone()]).logic(logic).spawn().unwrap();
        Self { forgets, keeps, gone, empty, race }
    }

    fn end(self, system: TestSystem) {
        let Self { forgets, keeps, gone: _, empty, race } = self;
        [forgets, keeps].iter().for_each(ActorRef::stop);
        [empty, race].iter().for_each(Router::stop);
        let ledger = system.finish();
        assert_eq!((ledger.asks.pending(), ledger.balance()), (0, 0), "{ledger}");
    }
}

const FORGOTTEN: &str = "no reply from /user/forgets: every reply port was dropped unanswered";
const LATE: &str = "no reply from /user/keeps within 1s: give it more time or ask less";
const GONE: &str = "request undeliverable: /user/gone has stopped";
const EMPTY: &str =
    "no routee of /user/empty took the request: the router is empty or all its routees have stopped";
const FAILED: &str =
    "no routee of /user/race answered with a success, 1 attempts failed: /user/forgets: no reply";
const UNNAMED: &str = "no reply: every reply port was dropped unanswered";

#[test]
fn an_ask_without_an_answer_names_whom_it_was_for_where_that_is_known() {
    let system = TestSystem::new();
    let silent = Silent::in_system(&system);
    let text = |ask: Ask<u32>| ask.wait().unwrap_err().to_string();
    assert_eq!(text(silent.forgets.ask(Price)), FORGOTTEN);
    assert_eq!(text(silent.forgets.contramap(|call: Call<Price>| call).ask(Price)), FORGOTTEN);
    assert_eq!(Asker::new().ask(&silent.forgets, Price).wait().unwrap_err().to_string(), FORGOTTEN);
    let failure = silent.forgets.ask_or_back(Price).wait().unwrap_err();
    assert_eq!(failure.error.to_string(), FORGOTTEN);
    assert_eq!(text(silent.forgets.request(Price).first()), FORGOTTEN);
    let late = silent.keeps.ask(Price).within(SECOND);
    system.run_until_idle();
    system.advance(SECOND);
    assert_eq!(text(late), LATE);
    assert_eq!(text(silent.gone.ask(Price)), GONE);
    assert_eq!(text(silent.empty.ask(Price)), EMPTY);
    assert_eq!(text(silent.race.ask(Price)), FAILED);
    let at_the_path: ActorRef<Call<Price>> = system.empty_ref(&"/user/nobody".parse().unwrap());
    assert!(text(at_the_path.ask(Price)).starts_with("request undeliverable: /user/nobody has stopped"));
    silent.end(system);
}

#[test]
fn an_ask_that_is_for_no_actor_in_particular_names_none() {
    let system = TestSystem::new();
    let function: ActorRef<Call<Price>> = ActorRef::from_fn(|_| ());
    assert_eq!(function.ask(Price).wait().unwrap_err().to_string(), UNNAMED);
    let (_reply_here, reply) = system.promise::<u32>();
    let reply = reply.within(SECOND);
    system.advance(SECOND);
    assert_eq!(reply.wait().unwrap_err().to_string(), "no reply within 1s: give it more time or ask less");
    let nobody = function.graceful_stop(SECOND).wait().unwrap_err().to_string();
    assert!(nobody.contains("the target has stopped"), "{nobody}");
    let value: RouterValue<Call<Price>, _> = RouterValue::new(&system, RoundRobin::new()).unwrap();
    let empty = value.ask_all(Price).wait().err().unwrap().to_string();
    assert!(empty.starts_with("no routee took the request"), "{empty}");
    system.finish();
}

#[test]
fn an_error_of_an_ask_tells_the_target_and_is_compared_without_it() {
    let system = TestSystem::new();
    let silent = Silent::in_system(&system);
    let error = |ask: Ask<u32>| ask.wait().unwrap_err();
    for (error, alike, target) in [
        (error(silent.forgets.ask(Price)), AskError::no_reply(), silent.forgets.path()),
        (error(silent.gone.ask(Price)), AskError::undeliverable(), silent.gone.path()),
        (error(silent.empty.ask(Price)), AskError::no_routees(), silent.empty.path()),
    ] {
        assert_eq!((error.target(), alike.target()), (Some(&target), None));
        assert_eq!(error, alike);
    }
    let shown = |error: AskError| format!("{error:?}");
    assert_eq!(shown(error(silent.gone.ask(Price))), error(silent.gone.ask(Price)).to_string());
    assert!(shown(error(silent.gone.ask(Price))).contains("/user/gone"));
    assert!(!shown(AskError::undeliverable()).contains("/user/gone"));
    assert_ne!(AskError::no_reply(), AskError::undeliverable());
    assert_ne!(AskError::timeout(SECOND), AskError::timeout(2 * SECOND));
    assert_eq!((AskError::Stalled.target(), AskError::NoTime.target()), (None, None));
    silent.end(system);
}

/// Asks when it starts, and passes on why there is no answer.
struct Buyer<F>(F, Sender<AskError>);
impl<F: FnMut(&mut Context<AskError>) + Send + 'static> Actor for Buyer<F> {
    type Message = AskError;
    fn started(&mut self, ctx: &mut Context<AskError>) -> HandlerResult {
        (self.0)(ctx);
        Ok(())
    }
    fn receive(&mut self, error: AskError, ctx: &mut Context<AskError>) -> HandlerResult {
        self.1.send(error)?;
        ctx.stop();
        Ok(())
    }
}

/// Asks in an actor.
fn ask_in(
    system: &TestSystem,
    ask: impl FnMut(&mut Context<AskError>) + Clone + Send + 'static,
) -> Receiver<AskError> {
    let (log, errors) = channel();
    system.spawn(move || Buyer(ask.clone(), log.clone())).unwrap();
    system.run_until_idle();
    errors
}

/// A user's recipient, of which nobody has asked yet what stands behind it.
struct Shy;
impl Recipient<Call<Price>> for Shy {
    fn deliver(&self, _: Call<Price>) -> Result<(), SendError<Call<Price>>> {
        Ok(())
    }
    fn untyped(&self) -> Option<AnyActorRef> {
        panic!("it was asked what stands behind it")
    }
    fn system(&self) -> Option<SystemRef> {
        None
    }
}

#[test]
fn an_error_that_comes_to_an_actor_names_whom_it_has_asked() {
    let system = TestSystem::new();
    let silent = Silent::in_system(&system);
    let asked = |target: &ActorRef<Call<Price>>| {
        let target = target.clone();
        ask_in(&system, move |ctx| ctx.ask_within(&target, Price, SECOND, Result::unwrap_err))
    };
    let text = |errors: Receiver<AskError>| errors.try_recv().expect("it is over").to_string();
    assert_eq!(text(asked(&silent.forgets)), FORGOTTEN);
    assert_eq!(text(asked(&silent.gone)), GONE);
    assert_eq!(text(asked(&silent.empty)), EMPTY);
    assert_eq!(text(asked(&silent.race)), FAILED);
    assert_eq!(text(asked(&ActorRef::from_fn(|_| ()))), UNNAMED);
    assert_eq!(text(asked(&ActorRef::to_recipient(Shy))), UNNAMED);
    let late = asked(&silent.keeps);
    system.advance(SECOND);
    system.run_until_idle();
    assert_eq!(text(late), LATE);
    let gone = silent.gone.clone();
    let without_limit = ask_in(&system, move |ctx| ctx.ask(&gone, Price, Result::unwrap_err));
    assert_eq!(text(without_limit), GONE);
    let forgets = silent.forgets.clone();
    let requested = ask_in(&system, move |ctx| forgets.request(Price).any_in(ctx, Result::unwrap_err));
    assert_eq!(text(requested), FORGOTTEN);
    let empty = silent.empty.clone();
    let of_all = ask_in(&system, move |ctx| ctx.ask_all(&empty, Price, |all| all.expect_err("it is empty")));
    assert_eq!(text(of_all), EMPTY);
    silent.end(system);
}

#[test]
fn of_all_that_a_router_has_asked_each_error_names_its_routee() {
    let system = TestSystem::new();
    let silent = Silent::in_system(&system);
    let inner = silent.empty.to_ref();
    let routees = [&silent.forgets, &silent.gone, &silent.keeps, &inner, &ActorRef::from_fn(|_| ())];
    let all = RouterValue::new(&system, RoundRobin::new()).unwrap().with_routees(routees);
    let ask = all.ask_all(Price).within(SECOND);
    system.run_until_idle();
    system.advance(SECOND);
    let texts: Vec<_> =
        ask.wait().unwrap().into_iter().map(|(_, reply)| reply.unwrap_err().to_string()).collect();
    assert_eq!(texts, [FORGOTTEN, GONE, LATE, EMPTY, UNNAMED]);
    let group = system.router("group").group([silent.keeps.clone()]).spawn().unwrap();
    let ask = group.ask_all(Price).within(SECOND);
    system.run_until_idle();
    system.advance(SECOND);
    let entry = ask.wait().unwrap().remove(0);
    assert_eq!(entry.1.unwrap_err().to_string(), LATE, "the routee, and not the router");
    group.stop();
    silent.end(system);
}

#[test]
fn a_send_that_is_refused_says_why_and_the_message_stays_out_of_it() {
    for (error, parts) in [
        (SendError::Full("a secret"), &["mailbox full", "try again later"][..]),
        (SendError::Closed("a secret"), &["no actor will handle the message", "has stopped"]),
        (SendError::NoRoutee("a secret"), &["no routee takes the message", "has none"]),
        (SendError::Cycle("a secret"), &["in a circle", "take one of them out"]),
        (SendError::NoRoute("a secret"), &["no route leads anywhere", "`route_to`"]),
        (SendError::Discarded("a secret"), &["discarded", "`Discard` or `Default`"]),
        (SendError::BadPick { message: "a secret", index: 5, routees: 3 }, &["routee 5 of 3", "below 3"]),
    ] {
        assert_say(&[(&error, parts)]);
        let texts = format!("{error} {error:?}");
        assert!(!texts.contains("a secret"), "{texts}");
        assert_eq!(error.into_inner(), "a secret");
    }
}

#[test]
fn each_kind_of_dead_letter_is_printed_as_the_letter_that_it_is() {
    let stage = Stage::turns();
    let (sender, letters) = channel();
    let _letters = stage.system.events().on(move |letter: &DeadLetter| {
        let _ = sender.send(letter.to_string());
    });
    let puppet = stage.spawn(&stage.role("p"));
    query(&puppet, |_, ctx| ctx.unhandled(7u64)).unwrap();
    assert_eq!(letters.soon().unwrap(), "u64 to /user/p: unhandled");
    puppet.stop();
    wait_for_end(&stage, &puppet);
    note(&puppet, "never");
    let of_type = std::any::type_name::<Tell>();
    assert_eq!(letters.soon().unwrap(), format!("{of_type} to /user/p: stopped"));
    stage.expect(&["p Started 1", "p Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn errors_of_sending_and_managing_are_equal_if_they_say_the_same() {
    let system = System::builder("equal").build().expect("sound");
    let stopped: ActorRef<u32> = system.empty_ref(&"/user/nobody".parse().expect("a path"));
    assert_eq!(stopped.try_tell(7u32), Err(SendError::Closed(7)));
    assert_ne!(stopped.try_tell(7u32), Err(SendError::Closed(8)));
    assert_ne!(stopped.try_tell(7u32), Err(SendError::Full(7)));

    // The group ends with its last routee, so this one never ends.
    let lasting = ActorRef::from_fn(|_: u32| {});
    let group = system.router("group").group([lasting]).spawn().expect("the name is free");
    let not_a_pool = || ManageError::NotAPool { path: "/user/group".to_owned() };
    assert_eq!(group.resize_to(2), Err(not_a_pool()));
    assert_ne!(group.resize_to(2), Err(ManageError::NotAPool { path: "/user/another".to_owned() }));
    let refused =
        |code| ManageError::Spawn(SpawnError::Thread(StartError::Thread(io::Error::from_raw_os_error(code))));
    assert_eq!(refused(11), refused(11));
    assert_ne!(refused(11), refused(12));
    assert_ne!(refused(11), not_a_pool());
    assert_eq!(system.shutdown(LONG).expect("nothing is stuck").balance(), 0);
}
