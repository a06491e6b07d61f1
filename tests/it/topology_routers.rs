//! Routers and keyed groups together: groups as routees, routers as members of a topology.

use crate::keyed_support::{Lodger, Note};
use crate::keyed_support::{books, closed, discarded, gently, noted, plan, to, to_all};
use crate::support::{Stage, run_turns};
use pointsman::group::{Group, KeyRoute};
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, RoundRobin, SmallestMailbox};
use pointsman::{DeadLetter, DeadLetterReason};

/// Two groups of which one discards everything, and the other routes as messages say.
fn strict_and_open(stage: &Stage) -> [Group<Note, u32>; 2] {
    let log = stage.log.clone();
    let strict = stage
        .system
        .group("strict")
        .keyed(|_: &Note| KeyRoute::Discard, move |_, key: &u32| Lodger::new(*key, &log));
    [strict.spawn().expect("sound"), plan(stage).spawn().expect("sound")]
}

#[test]
fn what_a_group_discards_goes_to_no_other_group_of_the_router() {
    let stage = Stage::turns();
    let [strict, open] = strict_and_open(&stage);
    let router = stage
        .system
        .router("both")
        .group([strict.to_ref(), open.to_ref()])
        .logic(RoundRobin::exact())
        .spawn()
        .expect("sound");
    run_turns();
    assert_eq!(discarded(router.try_tell(to(1, "a"))), Some("a"));
    router.try_tell(to(1, "b")).expect("the other takes it");
    assert_eq!(discarded(router.try_tell(to(1, "c"))), Some("c"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 b"]);
    router.stop();
    assert_eq!(books(stage).handed_back, 2);
}

#[test]
fn what_a_group_discards_is_a_dead_letter_of_tell_that_says_so() {
    let stage = Stage::turns();
    let [strict, open] = strict_and_open(&stage);
    let (seen, letters) = std::sync::mpsc::channel();
    let seen = move |letter: &DeadLetter| seen.send(letter.reason).expect("it is kept");
    let subscription = stage.system.dead_letters().subscribe(seen);
    let router = stage
        .system
        .router("all")
        .group([strict.to_ref(), open.to_ref()])
        .logic(Broadcast)
        .spawn()
        .expect("sound");
    run_turns();
    router.tell(to(1, "a"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a"]);
    assert_eq!(letters.try_iter().collect::<Vec<_>>(), [DeadLetterReason::Discarded]);
    drop(subscription);
    router.stop();
    books(stage);
}

#[test]
fn where_nobody_is_there_in_a_group_the_router_chooses_another() {
    let stage = Stage::turns();
    let [first, second] = ["first", "second"].map(|name| {
        let log = stage.log.clone();
        let make = move |_: &mut Context<Note>, key: &u32| Lodger::new(*key, &log);
        stage.system.group(name).keyed(|note: &Note| note.to.clone(), make).spawn().expect("sound")
    });
    second.tell(to(1, "made"));
    let router = stage
        .system
        .router("both")
        .group([first.to_ref(), second.to_ref()])
        .logic(SmallestMailbox::new())
        .spawn()
        .expect("sound");
    run_turns();
    for _ in 0..2 {
        router.try_tell(gently(1, "gently")).expect("the second has it");
        router.try_tell(to_all("to all")).expect("the second has it");
    }
    assert_eq!(closed(first.try_tell(gently(1, "alone"))), Some("alone"));
    assert_eq!(noted(&stage), ["1 made", "1 gently", "1 to all", "1 gently", "1 to all"]);
    router.stop();
    books(stage);
}
