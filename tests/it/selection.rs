//! Selections: whom they reach, and what becomes of the rest.

use crate::references::letters;
use crate::support::*;
use pointsman::path::PathFault;
use pointsman::prelude::*;
use pointsman::selection::{LookupError, SelectError, Selection};
use pointsman::{DeadLetterReason, Terminated};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Notes what it gets, and creates and asks as it is told.
struct Node {
    log: Sender<(String, u32)>,
}

impl Actor for Node {
    type Message = u32;
    fn receive(&mut self, number: u32, ctx: &mut Context<u32>) -> HandlerResult {
        self.log.send((ctx.path().to_string(), number))?;
        Ok(())
    }
}

/// Takes another type.
struct Other;

impl Actor for Other {
    type Message = String;
    fn receive(&mut self, _: String, _: &mut Context<String>) -> HandlerResult {
        Ok(())
    }
}

/// A tree of puppets under `/user`, whose leaves are nodes:
///
/// ```text
/// shop ─┬─ till-1 ─┬─ coin        bank ── till-1 ── coin
///       │          └─ note
///       ├─ till-2 ─── coin
///       └─ office (takes another type)
/// ```
struct Town {
    stage: Stage,
    seen: std::sync::mpsc::Receiver<(String, u32)>,
}

impl Town {
    fn new() -> Self {
        Self::on(Stage::turns())
    }

    fn on(stage: Stage) -> Self {
        let (log, seen) = channel();
        let grow = |parent: &ActorRef<Tell>, leaves: &'static [&'static str]| {
            let log = log.clone();
            query(parent, move |_, ctx| {
                for leaf in leaves {
                    let log = log.clone();
                    ctx.actor(leaf).spawn(move || Node { log: log.clone() }).unwrap();
                }
            })
            .unwrap();
        };
        let shop = stage.spawn(&stage.role("shop"));
        let first = child(&shop, &stage.role("till-1"));
        grow(&first, &["coin", "note"]);
        grow(&child(&shop, &stage.role("till-2")), &["coin"]);
        query(&shop, |_, ctx| ctx.actor("office").spawn(|| Other).unwrap()).unwrap();
        let bank = stage.spawn(&stage.role("bank"));
        grow(&child(&bank, &stage.role("till-1")), &["coin"]);
        Self { stage, seen }
    }

    fn select(&self, path: &str) -> Selection {
        self.stage.system.select(path).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Who gets a message to `path`, sorted.
    fn reached(&self, path: &str) -> Vec<String> {
        let delivered = self.select(path).tell(7u32);
        let all = (0..delivered.reached).map(|_| self.seen.soon().expect("handled").0);
        let mut all: Vec<String> = all.collect();
        all.sort();
        assert!(self.seen.try_recv().is_err(), "{path} reached one more");
        all
    }

    fn end(self) -> pointsman::Ledger {
        let ledger = self.stage.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        ledger
    }
}

#[test]
fn a_selection_reaches_whoever_stands_there() {
    let town = Town::new();
    for (path, reached) in [
        ("/user/shop/till-1/coin", vec!["/user/shop/till-1/coin"]),
        ("user//shop/till-1///coin/", vec!["/user/shop/till-1/coin"]),
        ("/user/shop/till-1/../till-2/coin", vec!["/user/shop/till-2/coin"]),
        ("/../../user/shop/till-2/coin", vec!["/user/shop/till-2/coin"]),
        ("pointsman://test/user/bank/*/coin", vec!["/user/bank/till-1/coin"]),
        ("/user/shop/till-?/coin", vec!["/user/shop/till-1/coin", "/user/shop/till-2/coin"]),
        (
            "/user/*/till-1/?o??",
            vec!["/user/bank/till-1/coin", "/user/shop/till-1/coin", "/user/shop/till-1/note"],
        ),
        ("/*/s*/*1/*", vec!["/user/shop/till-1/coin", "/user/shop/till-1/note"]),
        // A wildcard stays within one name.
        ("/user/*coin", vec![]),
        ("/user/shop/till-1/coin/../note/.././coin", vec![]),
        // Whoever is reached on several ways gets one copy.
        ("/user/shop/till-1/*/../coin", vec!["/user/shop/till-1/coin"]),
    ] {
        assert_eq!(town.reached(path), reached, "{path}");
    }
    let delivered = town.select("/user/shop/*/..").tell(7u32);
    assert_eq!((delivered.reached, delivered.other_type.len()), (0, 1), "the shop, once");
    let uid = town.stage.system.actor_at("/user/shop/till-1/coin").unwrap().uid();
    assert_eq!(town.reached(&format!("/user/*/till-1/coin#{uid}")), ["/user/shop/till-1/coin"]);
    assert!(town.reached(&format!("/user/shop/till-1/coin#{}", uid + 1000)).is_empty());
    town.end();
}

#[test]
fn a_selection_begins_where_its_actor_stands() {
    let town = Town::new();
    let till = town.stage.system.typed_at::<Tell>("/user/shop/till-1").unwrap();
    for (path, from_root, reached) in [
        ("*", "/user/shop/till-1/*", 2),
        ("coin", "/user/shop/till-1/coin", 1),
        ("../*/coin", "/user/shop/*/coin", 2),
        ("/user/bank/*/*", "/user/bank/*/*", 1),
    ] {
        let selection = query(&till, move |_, ctx| ctx.select(path).unwrap()).unwrap();
        assert_eq!(selection.tell(7u32).reached, reached, "{path}");
        assert_eq!(selection.path().to_string(), from_root);
        assert_eq!(selection.to_string(), from_root);
    }
    town.end();
}

#[test]
fn selections_are_equal_by_where_they_begin_and_their_elements() {
    let town = Town::new();
    let system = &town.stage.system;
    let till = system.typed_at::<Tell>("/user/shop/till-1").unwrap();
    let from_till = |path: &'static str| query(&till, move |_, ctx| ctx.select(path).unwrap()).unwrap();
    assert_eq!(town.select("/user//shop/*/"), town.select("user/shop/*"));
    assert_eq!(from_till("/user"), town.select("/user"));
    assert_eq!(from_till("../a"), from_till("..//a"));
    // They mean the same, but begin elsewhere.
    assert_ne!(from_till("coin"), town.select("/user/shop/till-1/coin"));
    assert_ne!(town.select("/user/shop"), town.select("/user/shop#1"));
    let elsewhere = Stage::turns();
    assert_ne!(town.select("/user"), elsewhere.system.select("/user").unwrap());
    elsewhere.end(&[]);
    town.end();
}

#[test]
fn a_selection_prints_as_one_that_reaches_the_same() {
    let town = Town::new();
    let till = town.stage.system.typed_at::<Tell>("/user/shop/till-1").unwrap();
    for (text, printed) in [
        ("/", "/"),
        ("/user//shop/", "/user/shop"),
        // Where nobody matches the wildcard, the way up leads nowhere.
        ("/user/no*/../shop", "/user/no*/../shop"),
        ("/user/shop#7/till-?/..", "/user/shop#7/till-?/.."),
        ("..", "/user/shop"),
        ("../../../..", "/"),
        ("../*/../till-2", "/user/shop/*/../till-2"),
    ] {
        let selection = query(&till, move |_, ctx| ctx.select(text).unwrap()).unwrap();
        assert_eq!(selection.to_string(), printed, "{text}");
        let again = town.select(printed);
        assert_eq!(again.to_string(), printed);
        assert_eq!(again.has_wildcard(), selection.has_wildcard());
    }
    town.end();
}

#[test]
fn a_selection_from_an_actor_with_a_star_in_its_name_prints_as_one_from_that_actor() {
    let town = Town::new();
    let shop = town.stage.system.typed_at::<Tell>("/user/shop").unwrap();
    let star = child(&shop, &town.stage.role("till*"));
    child(&star, &town.stage.role("coin"));
    let uid = star.uid();
    for (text, printed) in [
        ("coin", format!("/user/shop/till*#{uid}/coin")),
        ("*", format!("/user/shop/till*#{uid}/*")),
        ("../till-1", "/user/shop/till-1".to_owned()),
    ] {
        let selection = query(&star, move |_, ctx| ctx.select(text).unwrap()).unwrap();
        assert_eq!(selection.to_string(), printed, "{text}");
        let again = town.select(&printed);
        assert_eq!((again.to_string(), again.has_wildcard()), (printed, selection.has_wildcard()));
    }
    town.end();
}

#[test]
fn a_text_that_is_no_selection_is_refused() {
    let stage = Stage::turns();
    for (text, element, position, fault) in [
        ("", "", 0, PathFault::Empty),
        ("/user/a b*", "a b*", 7, PathFault::Character { character: ' ' }),
        ("/user/%2?", "%2?", 6, PathFault::Character { character: '%' }),
        ("/user/a#x/b", "x", 8, PathFault::Uid),
        ("/user/#3", "#3", 6, PathFault::Character { character: '#' }),
        ("/user/..#3", "..#3", 8, PathFault::Character { character: '#' }),
        ("/user/a?#3", "a?", 7, PathFault::Character { character: '?' }),
        ("pointsman://other/user", "pointsman://other", 0, PathFault::Elsewhere),
        ("pointsman://refused@host:1/user", "pointsman://refused@host:1", 0, PathFault::Elsewhere),
        ("http://refused/user", "http", 0, PathFault::Scheme),
    ] {
        let error = stage.system.select(text).expect_err(text);
        assert_eq!(
            (error.element.as_str(), error.position, error.fault),
            (element, position, fault),
            "{text}"
        );
    }
    // A uid holds for a name, not for a pattern.
    assert_eq!(stage.system.select("/user/a*#3").unwrap().tell(1u32).reached, 0);
    stage.end(&[]);
}

#[test]
fn what_is_missing_is_a_dead_letter_unless_a_wildcard_has_fanned_out() {
    let town = Town::new();
    let (_subscription, letters) = letters(&town.stage);
    let mut expected = 0;
    for (path, missing) in [
        ("/user/nobody", Some("/user/nobody")),
        ("/user/nobody/x/y", Some("/user/nobody/x/y")),
        ("/user/shop/till-1/../x", Some("/user/shop/x")),
        ("/user/nobody/../shop", Some("/user/shop")),
        ("/user/no*", Some("/user/no*")),
        ("/user/no*/x", Some("/user/no*/x")),
        // One match reports what is missing below it.
        ("/user/s*/nobody", Some("/user/shop/nobody")),
        ("/user/s*/till-1/no?ody", Some("/user/shop/till-1/no?ody")),
        // Several don't, even if one alone is left.
        ("/user/*/nobody", None),
        ("/user/*/office/nobody", None),
        ("/user/*/till-2/no*", None),
        ("/deadLetters/x", Some("/deadLetters/x")),
        ("/deadLetters", None),
    ] {
        let delivered = town.select(path).tell(7u32);
        assert_eq!(delivered.missing.map(|path| path.to_string()).as_deref(), missing, "{path}");
        assert_eq!((delivered.reached, delivered.other_type), (0, vec![]), "{path}");
        let told = letters.try_iter().collect::<Vec<_>>();
        let dead = missing.or((path == "/deadLetters").then_some(path));
        let letter = dead.map(|path| (path.to_owned(), DeadLetterReason::NoActor));
        assert_eq!(told, letter.into_iter().collect::<Vec<_>>(), "{path}");
        expected += told.len() as u64;
        assert_eq!(town.stage.system.ledger().dead_lettered, expected);
    }
    // The root's parent, and nobody's, is the root.
    assert_eq!(town.select("/deadLetters/../user/bank/till-1/coin").tell(1u32).reached, 1);
    town.end();
}

#[test]
fn actors_of_another_type_are_skipped_and_reported() {
    let town = Town::new();
    let before = town.stage.system.ledger().sent;
    let delivered = town.select("/user/shop/*").tell(String::from("hello"));
    assert_eq!(delivered.reached, 1);
    let others: Vec<String> = delivered.other_type.iter().map(|other| other.path.to_string()).collect();
    assert_eq!(others, ["/user/shop/till-1", "/user/shop/till-2"]);
    assert!(delivered.other_type.iter().all(|other| other.takes.ends_with("Tell")));
    // An exact path: nothing is sent either, and the message may come back.
    let delivered = town.select("/user/shop/office").tell(7u32);
    assert_eq!((delivered.reached, delivered.other_type.len(), delivered.missing), (0, 1, None));
    match town.select("/user/shop/office").tell_one(7u32) {
        Err(SelectError::OtherType { message: 7, actor }) => assert!(actor.takes.ends_with("String")),
        other => panic!("{other:?}"),
    }
    // Guardians take nothing at all.
    for guardian in ["/", "/user", "/system", "/temp"] {
        let delivered = town.select(guardian).tell(7u32);
        assert_eq!((delivered.reached, delivered.other_type.len()), (0, 1), "{guardian}");
    }
    assert_eq!(town.stage.system.ledger().sent, before + 1, "one copy was sent");
    town.end();
}

#[test]
fn one_message_that_cannot_be_copied_goes_to_an_exact_path() {
    struct Parcel;
    struct Taker(Sender<()>);
    impl Actor for Taker {
        type Message = Parcel;
        fn receive(&mut self, _: Parcel, _: &mut Context<Parcel>) -> HandlerResult {
            self.0.send(())?;
            Ok(())
        }
    }
    let stage = Stage::turns();
    let (sender, taken) = channel();
    stage.system.actor("taker").spawn(move || Taker(sender.clone())).unwrap();
    let select = |path| stage.system.select(path).unwrap();
    assert_eq!(select("/user/taker").tell_one(Parcel).unwrap().reached, 1);
    assert_eq!(taken.soon(), Ok(()));
    let delivered = select("/user/nobody").tell_one(Parcel).unwrap();
    assert_eq!(delivered.missing.unwrap().to_string(), "/user/nobody");
    let error = select("/user/t*").tell_one(Parcel).unwrap_err();
    assert!(matches!(error, SelectError::Wildcard { .. }), "{error:?}");
    let Parcel = error.into_inner();
    stage.end(&[]);
}

#[test]
fn every_copy_is_one_delivery() {
    let town = Town::new();
    let before = town.stage.system.ledger();
    let coin = town.stage.system.typed_at::<u32>("/user/shop/till-2/coin").unwrap();
    coin.graceful_stop(SECOND).wait().unwrap();
    assert_eq!(town.reached("/user/*/*/*").len(), 3);
    let ledger = town.end();
    // The actor that has ended may be listed still; then its copy is a dead letter.
    let (sent, dead) = (ledger.sent - before.sent, ledger.dead_lettered - before.dead_lettered);
    assert_eq!(ledger.handled - before.handled, 3, "{ledger}");
    assert_eq!((sent - dead, dead <= 1), (3, true), "{ledger}");
}

#[test]
fn a_clone_that_panics_unwinds_to_the_sender_with_all_copies_accounted_for() {
    struct Fragile;
    impl Clone for Fragile {
        fn clone(&self) -> Self {
            panic!("planted")
        }
    }
    struct Taker;
    impl Actor for Taker {
        type Message = Fragile;
        fn receive(&mut self, _: Fragile, _: &mut Context<Fragile>) -> HandlerResult {
            Ok(())
        }
    }
    let stage = Stage::turns();
    for name in ["a", "b"] {
        stage.system.actor(name).spawn(|| Taker).unwrap();
    }
    let selection = stage.system.select("/user/*").unwrap();
    let sent = std::panic::catch_unwind(AssertUnwindSafe(|| selection.tell(Fragile)));
    assert!(sent.is_err());
    stage.end(&[]);
}

#[test]
fn temp_is_searched_by_exact_name_alone() {
    let stage = Stage::turns();
    let (reference, reply) = stage.system.promise::<u32>();
    for pattern in ["/temp/*", "/temp/?a", "/t*/$?"] {
        let delivered = stage.system.select(pattern).unwrap().tell(1u32);
        assert_eq!((delivered.reached, delivered.missing.is_some()), (0, true), "{pattern}");
    }
    let name = reference.path().to_string();
    assert_eq!(stage.system.select(&name).unwrap().tell(2u32).reached, 1);
    assert_eq!(reply.wait(), Ok(2));
    stage.end(&[]);
}

#[test]
fn a_router_routes_what_is_sent_to_its_path_and_its_routees_stand_below() {
    let stage = Stage::turns();
    let (log, seen) = channel();
    let make = move |_: &mut Context<u32>| Node { log: log.clone() };
    let router = stage.system.router("r").pool(3, make).spawn().unwrap();
    for (path, reached) in [("/user/r", 1), ("/user/r/*", 3), ("/user/*", 1)] {
        assert_eq!(stage.system.select(path).unwrap().tell(7u32).reached, reached, "{path}");
        for _ in 0..reached {
            let (routee, _) = seen.soon().unwrap();
            assert!(routee.starts_with("/user/r/$"), "{routee}");
        }
    }
    drop(router);
    stage.end(&[]);
}

/// The number of a request, and an answer to it.
type Numbered = (u8, Option<AnyActorRef>);

/// Keeps the answers that it gets.
struct Finder(Sender<Numbered>);

impl Actor for Finder {
    type Message = Numbered;
    fn receive(&mut self, message: Numbered, _: &mut Context<Numbered>) -> HandlerResult {
        self.0.send(message)?;
        Ok(())
    }
}

#[test]
fn every_actor_identifies_itself() {
    let town = Town::new();
    let system = &town.stage.system;
    let (sender, identities) = channel();
    let finder = system.spawn(move || Finder(sender.clone())).unwrap();
    let mut number = 0;
    let mut found = |path: &str, count: usize| {
        number += 1;
        let sent = number;
        town.select(path).identify(&finder, move |actor| (sent, actor));
        let mut found: Vec<Option<String>> = (0..count)
            .map(|_| {
                let (received, actor) = identities.soon().unwrap();
                assert_eq!(received, sent);
                actor.map(|actor| actor.path().to_string())
            })
            .collect();
        found.sort();
        found
    };
    let some = |path: &str| Some(path.to_owned());
    assert_eq!(found("/user/shop", 1), [some("/user/shop")]);
    assert_eq!(
        found("/user/shop/*", 3),
        [some("/user/shop/office"), some("/user/shop/till-1"), some("/user/shop/till-2")]
    );
    // Nobody, and nobody below the one match; silence below several.
    assert_eq!(found("/user/nobody", 1), [None]);
    assert_eq!(found("/user/s*/nobody", 1), [None]);
    assert_eq!(found("/deadLetters", 1), [None]);
    assert_eq!(found("/user/*/nobody", 0), []);
    assert_eq!(found("/user", 1), [some("/user")]);
    town.end();
}

#[test]
fn the_question_keeps_its_place_among_the_messages() {
    let stage = Stage::threads("place");
    let (sender, identities) = channel();
    let finder = stage.system.spawn(move || Finder(sender.clone())).unwrap();
    let actor = stage.spawn(&stage.role("a"));
    let release = hold(&actor);
    stage.system.select("/user/a").unwrap().identify(&finder, |actor| (1, actor));
    // Ended by a message behind it, the actor has answered; the second question comes too late.
    actor.poison();
    stage.system.select("/user/a").unwrap().identify(&finder, |actor| (2, actor));
    drop(release);
    let answers: Vec<_> = (0..2).map(|_| identities.soon().unwrap()).collect();
    assert_eq!(answers, [(1, actor.untyped()), (2, None)]);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn one_actor_is_resolved_or_not_found() {
    let town = Town::on(Stage::threads("resolved"));
    let resolve = |path: &str| town.select(path).resolve_one(SECOND).wait();
    let unanswered = |path: &str, cause| Err(LookupError::NoAnswer { path: path.parse().unwrap(), cause });
    let coin = resolve("/user/bank/*/coin").unwrap();
    assert_eq!(coin.path().to_string(), "/user/bank/till-1/coin");
    assert!(coin.typed::<u32>().is_ok());
    assert!(resolve("/user/*/till-1").is_ok(), "the first of two");
    for missing in ["/user/nobody", "/user/*/nobody", "/user/no*"] {
        let error = resolve(missing).unwrap_err();
        assert!(matches!(&error, LookupError::NoActor { path } if path.to_string() == missing), "{error:?}");
        assert!(error.to_string().starts_with(&format!("no actor at {missing}")), "{error}");
    }
    let zero = town.select("/user/shop").resolve_one(Duration::ZERO).wait();
    assert_eq!(zero, unanswered("/user/shop", AskError::NoTime));

    // Whoever is busy is late.
    let shop = town.stage.system.typed_at::<Tell>("/user/shop").unwrap();
    let release = hold(&shop);
    let resolution = town.select("/user/shop").resolve_one(SECOND);
    let waiter = std::thread::spawn(move || resolution.wait());
    while !waiter.is_finished() {
        town.stage.clock.advance(SECOND);
        std::thread::yield_now();
    }
    let late = waiter.join().unwrap();
    assert_eq!(late, unanswered("/user/shop", AskError::timeout(SECOND)));
    let late = late.unwrap_err();
    let LookupError::NoAnswer { cause, .. } = &late else { panic!("{late:?}") };
    let behind = std::error::Error::source(&late).map(ToString::to_string);
    assert_eq!(behind, Some(cause.to_string()));
    let text = late.to_string();
    assert!(text.ends_with("answered within 1s: it is busy or suspended"), "{text}");
    // A worker must not wait.
    drop(release);
    let on_worker = query(&shop, |_, ctx| ctx.select("/user/bank").unwrap().resolve_one(SECOND).wait());
    assert_eq!(on_worker.unwrap(), unanswered("/user/bank", AskError::WouldBlockWorker));

    let handle = town.stage.system.handle().clone();
    town.end();
    let gone = handle.select("/user/shop").unwrap();
    let ended = gone.resolve_one(SECOND).wait();
    assert_eq!(ended, unanswered("/user/shop", AskError::undeliverable()));
    assert_eq!(ended.unwrap_err().to_string(), "no actor at /user/shop: the system has ended");
    assert_eq!(gone.tell(7u32).missing.unwrap().to_string(), "/user/shop");
}

#[test]
fn selections_of_the_same_actors_are_one_key() {
    let stage = Stage::turns();
    let select = |text: &str| stage.system.select(text).unwrap();
    #[allow(clippy::mutable_key_type)] // where it begins and its elements never change
    let keys: std::collections::HashSet<Selection> =
        ["/user/a", "/user//a/", "/user/*", "/user/*", "/user/?"].map(select).into();
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert!(keys.contains(&select("/user/a")) && !keys.contains(&select("/user/b")));
    stage.end(&[]);
}

#[test]
fn a_resolution_can_be_awaited() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let mut resolution = stage.system.select("/user/a").unwrap().resolve_one(SECOND);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut found = None;
    wait_until(|| {
        if let std::task::Poll::Ready(ready) = std::pin::Pin::new(&mut resolution).poll(&mut cx) {
            found = Some(ready);
        }
        found.is_some()
    });
    assert_eq!(found.unwrap(), Ok(actor.untyped().unwrap()));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn an_actor_that_fails_to_make_a_message_of_the_answer_harms_nobody() {
    let stage = Stage::turns();
    let (sender, identities) = channel();
    let finder = stage.system.spawn(move || Finder(sender.clone())).unwrap();
    let actor = stage.spawn(&stage.role("a"));
    stage.system.select("/user/a").unwrap().identify(&finder, |_| panic!("planted"));
    assert_eq!(query(&actor, |_, _| ()), Ok(()), "it lives on");
    assert!(identities.try_recv().is_err());
    stage.end(&["a Started 1", "a Stopped 1"]);
}

/// Watches what it resolves: a selection itself cannot be.
#[test]
fn what_a_selection_resolves_to_can_be_watched() {
    struct Watcher {
        selection: Selection,
        ended: Sender<String>,
    }
    impl Actor for Watcher {
        type Message = Option<AnyActorRef>;
        fn started(&mut self, ctx: &mut Context<Self::Message>) -> HandlerResult {
            self.selection.identify(ctx.me(), |actor| actor);
            Ok(())
        }
        fn receive(&mut self, actor: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
            if let Some(actor) = actor {
                let _ = ctx.watch(&actor);
                actor.stop();
            }
            Ok(())
        }
        fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self::Message>) -> HandlerResult {
            self.ended.send(terminated.actor.path().to_string())?;
            Ok(())
        }
    }
    let stage = Stage::turns();
    let _actor = stage.spawn(&stage.role("a"));
    let selection = stage.system.select("/user/a").unwrap();
    let (sender, ended) = channel();
    let recipe = move || Watcher { selection: selection.clone(), ended: sender.clone() };
    stage.system.actor("watcher").spawn(recipe).unwrap();
    assert_eq!(ended.soon().as_deref(), Ok("/user/a"));
    stage.end(&["a Started 1", "a Stopped 1"]);
}
