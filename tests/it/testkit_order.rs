//! The order of messages, control and ends, in many courses.

use crate::support::{Role, Tell, act, child, note};
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, RoundRobin};
use pointsman::testkit::TestSystem;
use std::sync::mpsc::channel;

const SEEDS: u64 = 20;

/// Sends each number on to all of the next stage.
struct Stage(Vec<ActorRef<(u32, u32)>>);

impl Actor for Stage {
    type Message = (u32, u32);
    fn receive(&mut self, numbered: (u32, u32), _: &mut Context<(u32, u32)>) -> HandlerResult {
        self.0.iter().for_each(|next| next.tell(numbered));
        Ok(())
    }
}

#[test]
fn the_messages_of_each_sender_arrive_in_order_through_any_number_of_actors() {
    TestSystem::for_seeds(SEEDS, |system| {
        let probe = system.probe::<(u32, u32)>();
        let mut next = vec![probe.actor_ref().clone()];
        for _ in 0..3 {
            let targets = next.clone();
            next = vec![system.spawn(move || Stage(targets.clone())).unwrap()];
        }
        let stages: Vec<_> = (0..4)
            .map(|_| {
                let targets = next.clone();
                system.spawn(move || Stage(targets.clone())).unwrap()
            })
            .collect();
        for number in 0..50 {
            for (source, stage) in (0u32..).zip(&stages) {
                stage.tell((source, number));
            }
        }
        let mut seen = [0; 4];
        for _ in 0..200 {
            let (source, number) = probe.take();
            assert_eq!(number, seen[source as usize]);
            seen[source as usize] += 1;
        }
        probe.expect_none();
        system.allow_running();
    });
}

#[test]
fn the_notice_of_an_end_comes_behind_all_that_the_ended_one_has_sent() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, _notes) = channel();
        let probe = system.probe::<u32>();
        let to = probe.actor_ref().clone();
        let puppet: ActorRef<Tell> = system.actor("a").spawn(Role::new("a", &log).recipe()).unwrap();
        probe.watch(&puppet);
        act(&puppet, move |_, ctx| {
            (0..10u32).for_each(|number| to.tell(number));
            ctx.stop();
            Ok(())
        });
        (0..10).for_each(|number| probe.expect(number));
        probe.expect_terminated(&puppet);
        probe.expect_none();
    });
}

#[test]
fn a_tree_ends_from_the_leaves_up() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let spawn = |name| -> ActorRef<Tell> {
            system.actor(name).spawn(Role::new(name, &log).recipe()).expect("the name is free")
        };
        let top = spawn("top");
        for (middle, leaves) in [("m1", ["x1", "x2"]), ("m2", ["x3", "x4"])] {
            let middle = child(&top, &Role::new(middle, &log));
            for leaf in leaves {
                child(&middle, &Role::new(leaf, &log));
            }
        }
        system.run_until_idle();
        assert_eq!(notes.try_iter().count(), 7);
        top.stop();
        system.run_until_idle();
        let notes: Vec<String> = notes.try_iter().collect();
        let place = |name: &str| {
            let stopped = format!("{name} Stopped 1");
            notes.iter().position(|note| *note == stopped).unwrap_or_else(|| panic!("{name}: {notes:?}"))
        };
        for (below, above) in
            [("x1", "m1"), ("x2", "m1"), ("x3", "m2"), ("x4", "m2"), ("m1", "top"), ("m2", "top")]
        {
            assert!(place(below) < place(above), "{notes:?}");
        }
        assert_eq!(notes.len(), 7, "{notes:?}");
    });
}

#[test]
fn a_stop_overtakes_what_is_queued_and_a_poison_pill_keeps_its_place() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let stopped = |end: fn(&ActorRef<Tell>)| {
            let puppet: ActorRef<Tell> = system.spawn(Role::new("a", &log).recipe()).unwrap();
            system.run_until_idle();
            note(&puppet, "before");
            end(&puppet);
            note(&puppet, "behind");
            system.run_until_idle();
            notes.try_iter().collect::<Vec<_>>()
        };
        assert_eq!(stopped(ActorRef::stop), ["a Started 1", "a Stopped 1"]);
        assert_eq!(stopped(ActorRef::poison), ["a Started 1", "a before", "a Stopped 1"]);
        let ledger = system.ledger();
        assert_eq!((ledger.handled, ledger.dead_lettered), (1, 3), "{ledger}");
    });
}

#[test]
fn a_pool_that_changes_its_size_under_way_loses_and_doubles_nothing() {
    struct Worker(ActorRef<u32>);
    impl Actor for Worker {
        type Message = u32;
        fn receive(&mut self, number: u32, _: &mut Context<u32>) -> HandlerResult {
            self.0.tell(number);
            Ok(())
        }
    }
    TestSystem::for_seeds(SEEDS, |system| {
        let probe = system.probe::<u32>();
        let to = probe.actor_ref().clone();
        let pool = system
            .router("pool")
            .pool(3, move |_| Worker(to.clone()))
            .logic(RoundRobin::new())
            .spawn()
            .unwrap();
        for (round, size) in [(0u32, 5), (1, 2), (2, 4), (3, 1)] {
            (0..20).for_each(|number| pool.tell(20 * round + number));
            // Some were handled when the table changes.
            (0..10 * round).for_each(|_| _ = system.step());
            pool.resize_to(size).unwrap();
            assert_eq!(pool.routees().unwrap().len(), size);
        }
        let mut seen: Vec<u32> = (0..80).map(|_| probe.take()).collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..80), "{seen:?}");
        probe.expect_none();
        pool.stop();
    });
}

#[test]
fn one_seed_is_one_course_of_routers_too() {
    let course = |seed| {
        let system = pointsman::testkit::TestSystem::with_seed(seed);
        let (log, notes) = channel();
        let role = Role::new("routee", &log);
        let pool = |name: &str| {
            let role = role.clone();
            system.router(name).pool(4, move |_| role.recipe()())
        };
        let random = pool("random").logic(pointsman::routing::Random::new()).spawn().unwrap();
        let all = pool("all").logic(RoundRobin::new()).spawn().unwrap();
        for number in 0..20 {
            let told = move || {
                Tell::new(move |puppet: &mut crate::support::Puppet, ctx: &mut Context<Tell>| {
                    puppet.note(format_args!("{} at {}", number, ctx.path()));
                    Ok(())
                })
            };
            random.tell(told());
            all.tell(told());
        }
        random.stop();
        system.run_until_idle();
        all.stop();
        system.run_until_idle();
        let trace = system.trace();
        system.finish();
        (trace, notes.try_iter().collect::<Vec<_>>())
    };
    let first = course(3);
    assert_eq!(course(3), first);
    assert_ne!(course(4), first);
    // From another thread, too.
    assert_eq!(std::thread::spawn(move || course(3)).join().unwrap(), first);
}

#[test]
fn a_broadcast_reaches_each_routee_in_order() {
    struct Worker(ActorRef<(usize, u32)>);
    impl Actor for Worker {
        type Message = u32;
        fn receive(&mut self, number: u32, ctx: &mut Context<u32>) -> HandlerResult {
            self.0.tell((ctx.routee_index(), number));
            Ok(())
        }
    }
    TestSystem::for_seeds(SEEDS, |system| {
        let probe = system.probe::<(usize, u32)>();
        let to = probe.actor_ref().clone();
        let pool =
            system.router("all").pool(4, move |_| Worker(to.clone())).logic(Broadcast).spawn().unwrap();
        (0..10u32).for_each(|number| pool.tell(number));
        let mut next = [0; 4];
        for _ in 0..40 {
            let (routee, number) = probe.take();
            assert_eq!(number, next[routee]);
            next[routee] += 1;
        }
        probe.expect_none();
        pool.stop();
    });
}
