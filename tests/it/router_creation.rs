//! How routers come to be, what they are while they have no routees, and how they end by themselves.

use crate::router_support::*;
use crate::support::*;
use pointsman::actor::RecipientLoad;
use pointsman::mailbox::MailboxRequirement;
use pointsman::prelude::*;
use pointsman::routing::{ManageError, RouteContext, Routee, Routees, RouterSettings, RoutingLogic};
use pointsman::settings::Deployment;
use pointsman::testkit::TestSystem;
use pointsman::{DeadLetterReason, Mailbox, SendError, SpawnError};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// Sends to its router and finds itself while it is made.
struct Eager;

impl Actor for Eager {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn a_hundred_routees_find_themselves_and_are_routed_to_while_they_are_made() {
    let system = System::builder("eager").build().unwrap();
    let (log, got) = channel();
    let make = move |ctx: &mut Context<u64>| {
        let index = ctx.routee_index();
        let me = ctx.system().typed_at::<u64>(ctx.path().as_str()).expect("it stands at its path");
        assert_eq!(&me, ctx.me());
        let parent = ctx.parent().expect("a head").clone();
        assert_eq!(parent.path().to_string(), "/user/pool");
        let router: ActorRef<u64> = parent.typed().expect("what routes stands at its head");
        router.tell(index as u64);
        Worker { number: index, log: log.clone() }
    };
    let router = system.router("pool").pool(100, make).spawn().unwrap();
    let mut all: Vec<u64> = (0..100).map(|_| got.recv_timeout(LONG).expect("all are routed").1).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..100));
    drop(router);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

#[test]
fn routees_are_numbered_in_the_order_of_the_table_and_have_generated_names() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let router = system.router("pool").pool(3, make).spawn().unwrap();
    let routees = router.routees().unwrap();
    let names: Vec<String> = routees.iter().map(|routee| routee.path().name().to_owned()).collect();
    assert!(names.iter().all(|name| name.starts_with('$')), "{names:?}");
    for (number, routee) in routees.iter().enumerate() {
        routee.tell(7u64);
        system.run_until_idle();
        assert_eq!(got.try_recv(), Ok((number, 7)));
        assert_eq!(routee.path().parent().to_string(), "/user/pool");
    }
    // A number is not given twice.
    router.resize_to(2).unwrap();
    router.resize_to(3).unwrap();
    router.routees().unwrap()[2].tell(8u64);
    system.run_until_idle();
    assert_eq!(got.try_recv(), Ok((3, 8)));
    router.drain().unwrap();
    system.finish();
}

#[test]
fn identify_and_look_up_at_a_routers_path_give_the_reference_that_routes() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let router = system.router("pool").pool(1, make).spawn().unwrap();
    let second = std::time::Duration::from_secs(1);
    let found = system.select("/user/p*").unwrap().resolve_one(second).wait().unwrap();
    let routes: ActorRef<u64> = found.typed().unwrap();
    assert_eq!(routes, router.to_ref());
    assert_eq!(system.typed_at::<u64>("/user/pool").unwrap(), router.to_ref());
    routes.tell(5u64);
    system.run_until_idle();
    assert_eq!(got.try_recv(), Ok((0, 5)));
    router.drain().unwrap();
    system.finish();
}

#[test]
fn a_pool_may_begin_empty_if_it_stays_so_and_grows_when_told_to() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let refused = system.router("pool").pool(0, make.clone()).spawn().unwrap_err();
    assert!(matches!(&refused, SpawnError::EmptyPool { path } if path == "/user/pool"), "{refused}");
    let router = system.router("pool").pool(0, make).stay_when_empty().spawn().unwrap();
    assert!(matches!(router.try_tell(1u64), Err(SendError::NoRoutee(1))));
    assert_eq!(router.broadcast(1u64), 0, "nobody takes it: a dead letter");
    assert_eq!(router.adjust(2).unwrap(), 2);
    router.tell(2u64);
    assert_eq!(router.resize_to(0).unwrap(), 0);
    assert_eq!(router.routees().unwrap(), []);
    system.run_until_idle();
    assert_eq!(handled(&got), [2]);
    router.drain().unwrap();
    let ledger = system.finish();
    assert_eq!(ledger.dead_lettered, 1, "{ledger}");
}

#[test]
fn a_pool_ends_with_its_last_routee_and_is_only_asked_about_it_where_one_goes() {
    for stays in [false, true] {
        let system = TestSystem::new();
        let (make, _got) = workers();
        let plan = system.router("pool").pool(2, make);
        let router = if stays { plan.stay_when_empty() } else { plan }.spawn().unwrap();
        router.routees().unwrap()[0].stop();
        system.run_until_idle();
        assert!(!router.is_closed());
        router.routees().unwrap()[0].poison();
        system.run_until_idle();
        assert_eq!(router.is_closed(), !stays);
        assert_eq!(system.actor_at("/user/pool").is_ok(), stays);
        router.stop();
        system.finish();
    }
    // Not after a change of size.
    let system = TestSystem::new();
    let (make, got) = workers();
    let router = system.router("pool").pool(2, make).stay_when_empty().spawn().unwrap();
    assert_eq!(router.adjust(-5).unwrap(), 0);
    system.run_until_idle();
    assert_eq!((router.is_closed(), router.adjust(-1).unwrap(), router.adjust(0).unwrap()), (false, 0, 0));
    assert_eq!(router.adjust(1).unwrap(), 1);
    router.tell(4u64);
    system.run_until_idle();
    assert_eq!(handled(&got), [4]);
    // Not at the beginning: but the removal of somebody unknown asks.
    let group: Router<u64> = system.router("group").group([]).spawn().unwrap();
    system.run_until_idle();
    assert!(!group.is_closed());
    assert!(!group.remove(router.to_ref()).unwrap());
    system.run_until_idle();
    assert!(group.is_closed());
    router.drain().unwrap();
    system.finish();
}

#[test]
fn foreign_routees_of_a_pool_are_watched_and_not_ended_with_it() {
    let system = TestSystem::new();
    let (make, _got) = workers();
    let router = system.router("pool").pool(1, make).spawn().unwrap();
    let (first, _) = foreign(&system, "first", 10);
    let (second, _) = foreign(&system, "second", 11);
    router.add(first.clone()).unwrap();
    router.add(second.clone()).unwrap();
    router.routees().unwrap()[0].stop();
    first.stop();
    system.run_until_idle();
    assert_eq!(router.routees().unwrap(), std::slice::from_ref(&second), "not empty yet");
    assert!(router.remove(&second).unwrap());
    system.run_until_idle();
    assert!(router.is_closed() && !second.is_closed());
    second.stop();
    system.finish();
}

#[test]
fn a_stopped_router_is_the_recipient_of_what_is_sent_to_it_also_if_it_is_a_group() {
    let system = TestSystem::new();
    let letters: Arc<Mutex<Vec<_>>> = Arc::default();
    let seen = letters.clone();
    let _subscription = system
        .dead_letters()
        .subscribe(move |letter| seen.lock().unwrap().push((letter.recipient.to_string(), letter.reason)));
    let (make, _pool_got) = workers();
    let (routee, got) = foreign(&system, "routee", 0);
    let pool = system.router("pool").pool(2, make).spawn().unwrap();
    let group = system.router("group").group([routee.clone()]).spawn().unwrap();
    pool.stop();
    group.stop();
    system.run_until_idle();
    pool.tell(1u64);
    assert_eq!(group.broadcast(2u64), 0);
    assert!(matches!(group.try_tell(3u64), Err(SendError::Closed(3))));
    assert!(matches!(group.routees(), Err(ManageError::Stopped { path }) if path == "/user/group"));
    system.run_until_idle();
    let expected = ["/user/pool", "/user/group"].map(|path| (path.to_owned(), DeadLetterReason::Stopped));
    // The last one is what the head was asked.
    assert_eq!(letters.lock().unwrap()[..2], expected);
    assert!(got.try_recv().is_err() && !routee.is_closed());
    routee.stop();
    system.finish();
}

#[test]
fn a_suspended_head_routes_on_its_own_routees_pause_and_others_work() {
    let stage = Stage::threads("suspended");
    let (release, held) = channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let judged = move || {
        let held = held.clone();
        Strategy::decide(move |_| {
            let _ = held.lock().unwrap().recv();
            Directive::Resume
        })
    };
    let top = stage.spawn(&stage.role("top").strategy(judged));
    let parent = child(&top, &stage.role("parent").keep_children());
    let (make, pool_got) = workers();
    let (routee, group_got) = foreign(&stage.system, "routee", 9);
    let given = routee.clone();
    let (pool, group) = query(&parent, move |_, ctx| {
        let pool = ctx.router("pool").pool(2, make).spawn().unwrap();
        (pool, ctx.router("group").group([given]).spawn().unwrap())
    })
    .unwrap();
    let routees = pool.routees().unwrap();
    fail(&parent);
    wait_until(|| routees.iter().all(|routee| routee.load() == RecipientLoad::Suspended));
    wait_until(|| group.head().load() == RecipientLoad::Suspended);
    (0..4u64).for_each(|n| pool.tell(n));
    assert_eq!(routees.iter().map(|routee| routee.queued()).collect::<Vec<_>>(), [Some(2), Some(2)]);
    group.tell(4u64);
    assert_eq!(group_got.recv_timeout(LONG), Ok((9, 4)));
    assert!(pool_got.try_recv().is_err());
    release.send(()).unwrap();
    assert_eq!(shares(&pool_got, 4).len(), 2);
    while stage.notes.try_recv().is_ok() {}
    drop((pool, group));
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.dead_lettered), (0, 0), "{ledger}");
}

#[test]
fn heads_and_routees_run_where_they_are_told_to_and_unknown_places_are_refused_before_anything_begins() {
    let system = System::builder("places")
        .dispatcher("heads", Dispatcher::blocking().thread_range(1..=2))
        .dispatcher("work", Dispatcher::blocking().thread_range(1..=2))
        .build()
        .unwrap();
    let (log, threads) = channel();
    let plan = || {
        let log = log.clone();
        system.router("pool").pool(1, move |ctx: &mut Context<u64>| {
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            log.send((ctx.path().to_string(), thread)).unwrap();
            Eager
        })
    };
    let living = system.living_actors();
    let seen: Arc<Mutex<String>> = Arc::default();
    for plan in [plan().head_dispatcher("none"), plan().dispatcher("none")] {
        let refused = plan.spawn().unwrap_err();
        assert!(
            matches!(&refused, SpawnError::UnknownDispatcher { name, .. } if name == "none"),
            "{refused}"
        );
        assert_eq!(system.living_actors(), living);
    }
    let router =
        plan().head_dispatcher("heads").dispatcher("work").logic(HeadThread(seen.clone())).spawn().unwrap();
    let (_, thread) = threads.recv_timeout(LONG).unwrap();
    assert!(thread.contains("work"), "{thread}");
    router.resize_to(2).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.contains("heads"), "{seen}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Notes on which thread the routees change.
struct HeadThread(Arc<Mutex<String>>);

impl RoutingLogic<u64> for HeadThread {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        None
    }
    fn prepare(&self, _: &[Routee<u64>]) -> Option<Box<dyn std::any::Any + Send + Sync>> {
        *self.0.lock().unwrap() = std::thread::current().name().unwrap_or_default().to_owned();
        None
    }
}

/// Demands a bounded mailbox.
struct Demanding;

impl Actor for Demanding {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
    fn mailbox_requirement() -> Option<MailboxRequirement> {
        Some(MailboxRequirement::Bounded)
    }
}

#[test]
fn impossible_pools_are_refused_before_anything_begins_and_the_name_is_free() {
    let system = TestSystem::new();
    let living = system.living_actors();
    let (make, _got) = workers();
    let large = system.router("pool").pool(usize::MAX, make.clone()).spawn().unwrap_err();
    assert!(large.to_string().contains("must be at most"), "{large}");
    let unmet = system.router("pool").pool(1, |_| Demanding).mailbox(Mailbox::unbounded()).spawn();
    assert!(matches!(unmet, Err(SpawnError::Mailbox { .. })), "{unmet:?}");
    assert_eq!(system.living_actors(), living);
    let router = system.router("pool").pool(1, make).spawn().unwrap();
    let grown = router.adjust(isize::MAX).unwrap_err();
    assert!(matches!(&grown, ManageError::Spawn(SpawnError::PoolTooLarge { .. })), "{grown}");
    assert_eq!(router.routees().unwrap().len(), 1);
    router.drain().unwrap();
    system.finish();
}

/// Panics at the first list that is not empty.
struct Broken;

impl RoutingLogic<u64> for Broken {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        None
    }
    fn prepare(&self, routees: &[Routee<u64>]) -> Option<Box<dyn std::any::Any + Send + Sync>> {
        assert!(routees.is_empty(), "planted");
        None
    }
}

#[test]
fn a_panic_while_a_router_is_made_leaves_nothing_behind_whatever_its_parent_does_about_failures() {
    let system = TestSystem::builder().turn_limit(1000).build();
    let (log, _notes) = channel();
    let (tell, told) = channel();
    let strategies: [fn() -> Strategy; 3] =
        [Strategy::resume, Strategy::default, || Strategy::decide(|_| pointsman::Directive::Restart)];
    for strategy in strategies {
        let parent = system.spawn(Role::new("parent", &log).strategy(strategy).recipe()).unwrap();
        let tell = tell.clone();
        parent.tell(Tell::new(move |_, ctx| {
            let (make, _got) = workers();
            let text = panic_of(|| drop(ctx.router("pool").pool(2, make).logic(Broken).spawn()));
            Ok(tell.send(text)?)
        }));
        system.run_until_idle();
        assert!(told.recv().unwrap().contains("planted"));
        let path = parent.path().join("pool").unwrap().to_string();
        assert!(system.actor_at(&path).is_err(), "{path}");
        parent.stop();
    }
    // The head of a router in GoAkt's words is resumed by a strategy of its own.
    let by_hash = |hash: fn(&[u8]) -> u64| {
        let plan = system.spawn_router("goakt", 2, |_| Demanding);
        plan.consistent_hash_by(|number: &u64, key| {
            key.feed(number);
            Some(())
        })
        .hasher(hash)
        .mailbox(Mailbox::bounded(9))
        .spawn()
    };
    assert!(panic_of(|| drop(by_hash(|_| panic!("planted")))).contains("planted"));
    system.run_until_idle();
    by_hash(|_| 7).unwrap().stop();
    system.finish();
}

#[test]
fn a_router_without_a_name_is_given_one_as_an_actor_is() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let pools: Vec<Router<u64>> =
        (0..3).map(|_| system.router_anonymous().pool(1, make.clone()).spawn().unwrap()).collect();
    let names: Vec<String> = pools.iter().map(|pool| pool.path().to_string()).collect();
    assert_eq!(names, ["/user/$a", "/user/$b", "/user/$c"]);
    for (number, pool) in (1u64..).zip(&pools) {
        let found: ActorRef<u64> = system.typed_at(pool.path().as_str()).unwrap();
        assert_eq!(found, pool.to_ref());
        found.tell(number);
    }
    system.run_until_idle();
    let handled = handled(&got);
    assert_eq!(handled, [1, 2, 3]);
    // What is wrong with it is told of the place that it would have had.
    let refused = system.router_anonymous().pool(0, make).spawn().unwrap_err();
    assert!(matches!(&refused, SpawnError::EmptyPool { path } if path == "/user/$"), "{refused}");
    pools.iter().for_each(Router::stop);
    system.finish();
}

/// Makes a router of its own for each message.
struct Fanner;
impl Actor for Fanner {
    type Message = ReplyTo<String>;
    fn receive(&mut self, reply_to: ReplyTo<String>, ctx: &mut Context<ReplyTo<String>>) -> HandlerResult {
        let router = ctx.router_anonymous().group::<u64>([]).stay_when_empty().spawn()?;
        let _ = reply_to.send(router.path().to_string());
        Ok(())
    }
}

#[test]
fn an_actor_makes_routers_without_names_below_itself() {
    let system = TestSystem::new();
    let fanner = system.actor("fanner").spawn(|| Fanner).unwrap();
    let paths = [0; 2].map(|_| fanner.ask_with(|reply_to| reply_to).wait().unwrap());
    assert_eq!(paths, ["/user/fanner/$a", "/user/fanner/$b"]);
    fanner.stop();
    system.finish();
}

#[test]
fn a_section_for_any_name_holds_for_a_router_without_one() {
    let says = |routees| Deployment::new().router(RouterSettings::new().nr_of_instances(routees));
    let system = System::builder("sections").deploy("/*", says(3)).deploy("/named", says(2)).build().unwrap();
    let (make, _got) = workers();
    let router = system.router_anonymous().pool(1, make.clone()).spawn().unwrap();
    assert_eq!(router.routees().unwrap().len(), 3);
    let named = system.router("named").pool(1, make).spawn().unwrap();
    assert_eq!(named.routees().unwrap().len(), 2);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
