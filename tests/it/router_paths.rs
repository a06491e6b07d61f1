//! Groups by path: who is there when a message is sent.

use crate::router_support::*;
use crate::support::LONG;
use pointsman::path::PathFault;
use pointsman::prelude::*;
use pointsman::routing::{
    AddRoutee, Broadcast, ConsistentHashing, ManageError, Random, RemoveRoutee, RoundRobin, Routee,
    RouterValue, ScatterGatherFirstCompleted, SmallestMailbox, TailChopping, TwoChoices,
};
use pointsman::selection::{LookupError, Selection};
use pointsman::testkit::TestSystem;
use pointsman::{DeadLetterReason, SpawnError};
use std::sync::{Arc, Mutex};

type Letters = Arc<Mutex<Vec<(String, DeadLetterReason)>>>;

/// The dead letters of a system from now on.
fn letters(system: &TestSystem) -> (Letters, pointsman::events::Subscription) {
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
    let actors: Vec<_> = router.routees().unwrap().iter().map(ActorRef::untyped).collect();
    assert_eq!(actors, [found[0].0.untyped(), found[1].0.untyped(), None], "and stands for no actor");
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
    fn receive(&mut self, _: String, _: &mut Context<String>) -> HandlerResult {
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
    fn receive(&mut self, _: Once, ctx: &mut Context<Once>) -> HandlerResult {
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
    fn receive(&mut self, _: Fragile, ctx: &mut Context<Fragile>) -> HandlerResult {
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

/// A selection whose text is sound.
fn at(system: &SystemRef, path: &str) -> Selection {
    system.select(path).expect(path)
}

#[test]
fn a_selection_is_added_to_a_pool_and_a_group_and_removed_by_an_equal_one() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let (spare, spare_got) = foreign(&system, "spare", 0);
    let pool = system.router("pool").pool(1, make).spawn().unwrap();
    let group: Router<u64> =
        system.router("group").group_at(["/user/spare"]).stay_when_empty().spawn().unwrap();
    assert_eq!(pool.add(at(&system, "/user/spare")).unwrap(), 2);
    assert_eq!(group.add(at(&system, "/user/spare")).unwrap(), 2);
    (0..4u64).for_each(|n| pool.tell(n));
    (4..6u64).for_each(|n| group.tell(n));
    system.run_until_idle();
    assert_eq!((handled(&got), handled(&spare_got)), (vec![0, 2], vec![1, 3, 4, 5]));
    // Its actor is another routee than its path, and its end is not the path's.
    assert!(!pool.remove(&spare).unwrap());
    spare.stop();
    system.run_until_idle();
    assert_eq!((pool.routees().unwrap().len(), group.routees().unwrap().len()), (2, 2));
    let (again, again_got) = foreign(&system, "spare", 0);
    (0..2u64).for_each(|n| pool.tell(n));
    system.run_until_idle();
    assert_eq!((handled(&got), handled(&again_got)), (vec![0], vec![1]));
    // Every entry of an equal selection goes, that of a path in the code of the group too.
    assert!(!pool.remove(at(&system, "/user/other")).unwrap());
    assert!(pool.remove(at(&system, "/user//spare/")).unwrap(), "as selections are compared");
    assert!(group.remove(at(&system, "/user/spare")).unwrap());
    assert_eq!((pool.routees().unwrap().len(), group.routees().unwrap().len()), (1, 0));
    again.stop();
    [pool, group].iter().for_each(Router::stop);
    let ledger = system.finish();
    assert_eq!(ledger.dead_lettered, 0, "{ledger}");
}

#[test]
fn selections_are_routees_of_every_logic() {
    type Plan = pointsman::routing::RouterPlan<Call<Get>, RoundRobin>;
    let system = TestSystem::new();
    let names = ["a", "b", "c"];
    let actors = names.map(|name| system.actor(name).spawn(move || Named(name)).unwrap());
    let mut asked = 0;
    let mut check = |logic: &str, create: &dyn Fn(Plan) -> Result<Router<Call<Get>>, SpawnError>| {
        let routees = names.map(|name| Routee::from(at(&system, &format!("/user/{name}"))));
        let router = create(system.router(logic).group_of(routees)).unwrap();
        for _ in 0..3 {
            let answer = router.ask(Get).wait();
            assert!(answer.as_ref().is_ok_and(|name| names.contains(name)), "{logic}: {answer:?}");
            asked += 1;
        }
        router.stop();
    };
    check("round-robin", &|plan| plan.spawn());
    check("random", &|plan| plan.logic(Random::new()).spawn());
    check("smallest", &|plan| plan.logic(SmallestMailbox::new()).spawn());
    check("two-choices", &|plan| plan.logic(TwoChoices::new()).spawn());
    check("broadcast", &|plan| plan.logic(Broadcast).spawn());
    check("scatter", &|plan| plan.logic(ScatterGatherFirstCompleted::new()).spawn());
    check("chopping", &|plan| plan.logic(TailChopping::new()).spawn());
    check("hashing", &|plan| plan.logic(ConsistentHashing::by(|_: &Call<Get>, key| key.feed(&7))).spawn());
    assert_eq!(asked, 24);
    actors.iter().for_each(ActorRef::stop);
    system.finish();
}

#[derive(Clone)]
struct Get;
impl Request for Get {
    type Reply = &'static str;
}
struct Named(&'static str);
impl Actor for Named {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        call.answer(|_| self.0);
        Ok(())
    }
}

#[test]
fn the_smallest_mailbox_takes_a_selection_after_every_actor_that_lives() {
    let system = TestSystem::new();
    let (near, near_got) = foreign(&system, "near", 0);
    let (far, far_got) = foreign(&system, "far", 0);
    let routees = [Routee::from(at(&system, "/user/far")), Routee::from(&near)];
    let router = system.router("group").group_of(routees).logic(SmallestMailbox::new()).spawn().unwrap();
    // Whatever waits at the actor of which something is known.
    (0..5u64).for_each(|n| router.tell(n));
    system.run_until_idle();
    assert_eq!((handled(&near_got), handled(&far_got)), (vec![0, 1, 2, 3, 4], vec![]));
    near.stop();
    system.run_until_idle();
    router.tell(5u64);
    system.run_until_idle();
    assert_eq!(handled(&far_got), [5]);
    far.stop();
    router.stop();
    system.finish();
}

#[test]
fn a_selection_with_a_wildcard_is_one_routee_and_never_means_its_router() {
    let system = TestSystem::new();
    let found = ["w1", "w2"].map(|name| foreign(&system, name, 0));
    let router: Router<u64> = system.router("w-router").group([]).stay_when_empty().spawn().unwrap();
    let routee = Routee::from(at(&system, "/user/w*"));
    assert_eq!(router.add(&routee).unwrap(), 1);
    router.tell(1u64);
    system.run_until_idle();
    assert_eq!(found.each_ref().map(|(_, got)| handled(got)), [vec![1], vec![1]]);
    assert_eq!(router.poison_routees(), 1);
    system.run_until_idle();
    assert!(found.iter().all(|(actor, _)| actor.is_closed()) && !router.is_closed());
    assert!(router.remove(&routee).unwrap(), "it is the same though it belongs to a router");
    router.stop();
    let ledger = system.finish();
    assert_eq!(ledger.dead_lettered, 0, "{ledger}");
}

#[test]
fn a_wildcard_among_several_leaves_the_router_out_too() {
    let system = TestSystem::new();
    let found = ["w1", "w2"].map(|name| foreign(&system, name, 0));
    let router: Router<u64> = system.router("w-router").group([]).stay_when_empty().spawn().unwrap();
    let routee = Routee::several([at(&system, "/user/w*"), at(&system, "/user/w1")]);
    router.add(&routee).unwrap();
    router.tell(1u64);
    system.run_until_idle();
    assert_eq!(found.each_ref().map(|(_, got)| handled(got)), [vec![1, 1], vec![1]]);
    assert!(router.remove(&routee).unwrap());
    found.iter().for_each(|(actor, _)| actor.stop());
    router.stop();
    let ledger = system.finish();
    assert_eq!(ledger.dead_lettered, 0, "{ledger}");
}

#[test]
fn a_router_value_takes_selections_and_lets_go_of_equal_ones() {
    let system = TestSystem::new();
    let (letters, _subscription) = letters(&system);
    let (a, got) = foreign(&system, "a", 0);
    let empty: RouterValue<u64, RoundRobin> = RouterValue::new(&system, RoundRobin::new()).unwrap();
    let two = empty.with_routees([at(&system, "/user/a"), at(&system, "/user/b")]);
    let identities: Vec<&str> = two.routees().iter().map(Routee::identity).collect();
    assert_eq!(identities, ["/user/a", "/user/b"]);
    (0..2u64).for_each(|n| two.route(n));
    assert_eq!(*letters.lock().unwrap(), [("/user/b".to_owned(), DeadLetterReason::NoActor)]);
    let one = two.remove_routee(at(&system, "/user/b"));
    (2..4u64).for_each(|n| one.route(n));
    system.run_until_idle();
    assert_eq!((handled(&got), one.routees().len()), (vec![0, 2, 3], 1));
    a.stop();
    let ledger = system.finish();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (4, 1, 0), "{ledger}");
}

/// Adds a path to a router, and removes it when a message has gone there.
struct Caretaker {
    router: Router<u64>,
    log: std::sync::mpsc::Sender<String>,
}
enum CaretakerMsg {
    Added(Result<Result<usize, ManageError>, AskError>),
    Removed(Result<Result<bool, ManageError>, AskError>),
}
impl Actor for Caretaker {
    type Message = CaretakerMsg;
    fn started(&mut self, ctx: &mut Context<CaretakerMsg>) -> HandlerResult {
        // From here on: a sibling.
        let routee = ctx.select("../a")?.into();
        ctx.ask(self.router.head(), AddRoutee { routee }, CaretakerMsg::Added);
        Ok(())
    }
    fn receive(&mut self, message: CaretakerMsg, ctx: &mut Context<CaretakerMsg>) -> HandlerResult {
        match message {
            CaretakerMsg::Added(count) => {
                self.log.send(format!("{:?}", count??))?;
                self.router.tell(7u64);
                let routee = ctx.select("../a")?.into();
                ctx.ask(self.router.head(), RemoveRoutee { routee }, CaretakerMsg::Removed);
            }
            CaretakerMsg::Removed(was) => {
                self.log.send(format!("{:?}", was??))?;
                ctx.stop();
            }
        }
        Ok(())
    }
}

#[test]
fn an_actor_adds_and_removes_a_path_that_begins_where_it_stands() {
    let system = TestSystem::new();
    let (a, got) = foreign(&system, "a", 0);
    let router: Router<u64> = system.router("group").group([]).stay_when_empty().spawn().unwrap();
    let (log, notes) = std::sync::mpsc::channel();
    let given = router.clone();
    system.actor("c").spawn(move || Caretaker { router: given.clone(), log: log.clone() }).unwrap();
    system.run_until_idle();
    assert_eq!(notes.try_iter().collect::<Vec<_>>(), ["1", "true"]);
    assert_eq!((handled(&got), router.routees().unwrap().len()), (vec![7], 0));
    a.stop();
    router.stop();
    system.finish();
}

#[test]
fn a_selection_is_no_routee_of_a_pool_that_shares_a_queue() {
    let system = TestSystem::new();
    let (make, _got) = workers();
    let pool = system.router("pool").balancing_pool(2, make).spawn().unwrap();
    let refused = pool.add(at(&system, "/user/a")).unwrap_err();
    assert!(matches!(refused, ManageError::SharedQueue { .. }), "{refused}");
    pool.stop();
    system.finish();
}

#[test]
fn a_selection_for_messages_that_cannot_be_cloned_has_no_wildcard() {
    let system = TestSystem::new();
    let a = system.actor("a").spawn(|| TakesOnce).unwrap();
    let refused = Routee::<Once>::selected_one(at(&system, "/user/w*")).unwrap_err();
    assert_eq!(refused, LookupError::Wildcard { selection: at(&system, "/user/w*") });
    let text = refused.to_string();
    assert!(text.contains("/user/w* has a wildcard") && text.contains("Routee::selected"), "{text}");
    let router: Router<Once> = system.router("group").group_of([]).stay_when_empty().spawn().unwrap();
    let routee = Routee::selected_one(at(&system, "/user/a")).unwrap();
    assert_eq!(router.add(&routee).unwrap(), 1);
    router.tell(Once);
    system.run_until_idle();
    assert!(a.is_closed());
    assert!(router.remove(Routee::selected_one(at(&system, "/user/a")).unwrap()).unwrap());
    router.stop();
    system.finish();
}

#[test]
fn a_path_in_another_system_leads_there_and_both_books_balance_together() {
    let here = System::builder("here").build().unwrap();
    let there = System::builder("there").build().unwrap();
    let (a, got) = foreign(&there, "a", 0);
    let router: Router<u64> = here.router("group").group([]).stay_when_empty().spawn().unwrap();
    router.add(at(&there, "/user/?")).unwrap();
    (0..3u64).for_each(|n| router.tell(n));
    let shares = shares(&got, 3);
    assert_eq!(shares[&0], 3);
    a.stop();
    assert!(router.remove(at(&there, "/user/?")).unwrap());
    let (here, there) = (here.shutdown(LONG).unwrap(), there.shutdown(LONG).unwrap());
    assert_eq!(here.balance() + there.balance(), 0, "{here} {there}");
}
