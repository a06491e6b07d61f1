//! Groups by path: who is there when a message is sent.

use crate::router_support::*;
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, ConsistentHashing};
use pointsman::testkit::TestSystem;
use pointsman::{DeadLetterReason, PathFault, SpawnError};
use std::sync::{Arc, Mutex};

type Letters = Arc<Mutex<Vec<(String, DeadLetterReason)>>>;

/// The dead letters of a system from now on.
fn letters(system: &TestSystem) -> (Letters, pointsman::Subscription) {
    let letters = Letters::default();
    let seen = letters.clone();
    let subscription = system.dead_letters().subscribe(move |letter| {
        seen.lock().unwrap().push((letter.recipient.to_string(), letter.reason));
    });
    (letters, subscription)
}

#[test]
fn each_path_is_one_routee_that_is_found_anew_for_each_message() {
    let system = TestSystem::new();
    let (letters, _subscription) = letters(&system);
    let router: Router<u64> =
        system.router("group").group_at(["/user/a", "../b", "/user/w*"]).spawn().unwrap();
    assert_eq!(router.routees().unwrap().len(), 3);
    (0..3u64).for_each(|n| router.tell(n));
    let nobody = |path: &str| (path.to_owned(), DeadLetterReason::NoActor);
    assert_eq!(*letters.lock().unwrap(), [nobody("/user/a"), nobody("/user/b"), nobody("/user/w*")]);
    let found = ["a", "b", "w1", "w2"].map(|name| foreign(&system, name, 0));
    (3..6u64).for_each(|n| router.tell(n));
    system.run_until_idle();
    let got: Vec<Vec<u64>> = found.iter().map(|(_, got)| handled(got)).collect();
    assert_eq!(got, [vec![3], vec![4], vec![5], vec![5]], "a path with a wildcard is one routee");
    let actors: Vec<_> = router.routees().unwrap().iter().map(ActorRef::any).collect();
    assert_eq!(actors, [found[0].0.any(), found[1].0.any(), None], "and stands for no actor");
    // Nobody is watched: an end takes no path out, and who comes again is found again.
    found[0].0.stop();
    system.run_until_idle();
    assert_eq!(router.routees().unwrap().len(), 3);
    let (again, got) = foreign(&system, "a", 0);
    router.tell(6u64);
    system.run_until_idle();
    assert_eq!(handled(&got), [6]);
    assert_eq!(letters.lock().unwrap().len(), 3);
    router.stop();
    again.stop();
    found.iter().for_each(|(actor, _)| actor.stop());
    let ledger = system.finish();
    assert_eq!(ledger.dead_lettered, 3, "{ledger}");
}

#[test]
fn a_relative_path_begins_at_the_head_and_a_wildcard_leaves_the_router_out() {
    let system = TestSystem::new();
    let (first, first_got) = foreign(&system, "first", 0);
    let (second, second_got) = foreign(&system, "second", 1);
    let router: Router<u64> = system.router("group").group_at(["../*"]).spawn().unwrap();
    router.tell(1u64);
    system.run_until_idle();
    assert_eq!((handled(&first_got), handled(&second_got)), (vec![1], vec![1]));
    assert_eq!(router.poison_routees(), 1);
    system.run_until_idle();
    assert_eq!((first.is_closed(), second.is_closed(), router.is_closed()), (true, true, false));
    router.stop();
    let ledger = system.finish();
    assert_eq!(ledger.dead_lettered, 0, "{ledger}");
}

/// Takes another type.
struct Other;
impl Actor for Other {
    type Message = String;
    fn receive(&mut self, _: String, _: &mut Context<String>) -> Done {
        Ok(())
    }
}

#[test]
fn who_takes_another_type_is_told_of_if_alone_and_passed_over_among_others() {
    let system = TestSystem::new();
    let (letters, _subscription) = letters(&system);
    let other = system.actor("w1").spawn(|| Other).unwrap();
    let router: Router<u64> = system.router("group").group_at(["/user/w*"]).spawn().unwrap();
    router.tell(1u64);
    let expected = [("/user/w1".to_owned(), DeadLetterReason::OtherType)];
    assert_eq!(*letters.lock().unwrap(), expected);
    let (worker, got) = foreign(&system, "w2", 0);
    router.tell(2u64);
    system.run_until_idle();
    assert_eq!((handled(&got), letters.lock().unwrap().len()), (vec![2], 1));
    other.stop();
    worker.stop();
    router.stop();
    system.finish();
}

#[test]
fn a_path_is_its_own_identity_and_logics_work_over_paths() {
    let system = TestSystem::new();
    let nodes = ["a", "b", "c"].map(|name| foreign(&system, name, 0));
    let hashing = ConsistentHashing::by(|number: &u64, key| key.feed(number));
    let by_path: Router<u64> =
        system.router("paths").group_at(["/user/a", "/user/b", "/user/c"]).logic(hashing).spawn().unwrap();
    (0..60u64).for_each(|n| by_path.tell(n));
    system.run_until_idle();
    let owners: Vec<Vec<u64>> = nodes.iter().map(|(_, got)| handled(got)).collect();
    let hashing = ConsistentHashing::by(|number: &u64, key| key.feed(number));
    let references = nodes.iter().map(|(node, _)| node.clone());
    let by_reference = system.router("references").group(references).logic(hashing).spawn().unwrap();
    (0..60u64).for_each(|n| by_reference.tell(n));
    system.run_until_idle();
    assert_eq!(owners, nodes.iter().map(|(_, got)| handled(got)).collect::<Vec<_>>());
    let all: Router<u64> =
        system.router("all").group_at(["/user/a", "../?"]).logic(Broadcast).spawn().unwrap();
    all.tell(7u64);
    system.run_until_idle();
    assert_eq!(nodes.each_ref().map(|(_, got)| handled(got)), [vec![7, 7], vec![7], vec![7]]);
    // Pills go to whoever is there.
    assert_eq!(all.poison_routees(), 2);
    [by_path, by_reference, all].iter().for_each(Router::stop);
    system.finish();
}

#[test]
fn a_routee_at_a_path_can_be_removed() {
    let system = TestSystem::new();
    let (a, got) = foreign(&system, "a", 0);
    let router: Router<u64> = system.router("group").group_at(["/user/a", "/user/b"]).spawn().unwrap();
    let routees = router.routees().unwrap();
    assert_eq!(routees[0].path().to_string(), "/user/a");
    assert!(router.remove(&routees[1]).unwrap());
    (0..4u64).for_each(|n| router.tell(n));
    system.run_until_idle();
    assert_eq!(handled(&got), [0, 1, 2, 3]);
    a.stop();
    router.stop();
    system.finish();
}

/// A message that cannot be copied.
struct Once;
struct TakesOnce;
impl Actor for TakesOnce {
    type Message = Once;
    fn receive(&mut self, _: Once, ctx: &mut Context<Once>) -> Done {
        ctx.stop();
        Ok(())
    }
}

#[test]
fn messages_that_cannot_be_cloned_are_for_exact_paths() {
    let system = TestSystem::new();
    let living = system.living_actors();
    let refused = system.router("group").group_at_exact::<Once>(["/user/a", "/user/w?"]).spawn().unwrap_err();
    assert!(
        matches!(&refused, SpawnError::RouteeWildcard { router, path } if router == "/user/group" && path == "/user/w?"),
        "{refused}"
    );
    let broken = system.router("group").group_at::<u64>(["/user/a b"]).spawn().unwrap_err();
    let SpawnError::RouteePath { router, error } = &broken else { panic!("{broken}") };
    assert_eq!((router.as_str(), &error.fault), ("/user/group", &PathFault::Character { character: ' ' }));
    assert!(matches!(
        system.router("group").group_at::<u64>([""]).spawn(),
        Err(SpawnError::RouteePath { .. })
    ));
    assert_eq!(system.living_actors(), living);
    let router = system.router("group").group_at_exact::<Once>(["/user/a"]).spawn().unwrap();
    let a = system.actor("a").spawn(|| TakesOnce).unwrap();
    router.tell(Once);
    system.run_until_idle();
    assert!(a.is_closed());
    router.stop();
    system.finish();
}

/// A message whose second clone panics.
struct Fragile(Arc<Mutex<u32>>);
impl Clone for Fragile {
    fn clone(&self) -> Self {
        let mut clones = self.0.lock().unwrap();
        *clones += 1;
        assert!(*clones < 2, "the second clone");
        drop(clones);
        Self(self.0.clone())
    }
}
struct Takes;
impl Actor for Takes {
    type Message = Fragile;
    fn receive(&mut self, _: Fragile, ctx: &mut Context<Fragile>) -> Done {
        ctx.stop();
        Ok(())
    }
}

#[test]
fn a_clone_that_panics_on_the_way_to_many_leaves_every_copy_accounted_for() {
    let system = TestSystem::new();
    let takes = ["w1", "w2", "w3"].map(|name| system.actor(name).spawn(|| Takes).unwrap());
    let router: Router<Fragile> = system.router("group").group_at(["/user/w*"]).spawn().unwrap();
    let unwound =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| router.tell(Fragile(Arc::default()))));
    assert!(unwound.is_err());
    system.run_until_idle();
    let ledger = system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (3, 1, 2), "{ledger}");
    takes.iter().for_each(ActorRef::stop);
    router.stop();
    system.finish();
}
