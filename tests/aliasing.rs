//! Paths through the unsafe code of actors, references, routers and groups, short enough to be interpreted: Miri runs
//! these (`.ci/sanitizers`) and looks for broken rules of aliasing, reads of what was never written or has been freed,
//! and what nobody frees. On one thread, by `TestSystem`: between threads, models look.
//!
//! Miri's seeds change what it decides, addresses among that; the order of turns has seeds of its own here.

use pointsman::SendError;
use pointsman::actor::Recipient;
use pointsman::group::{Group, RestartPolicy, WhileRestarting};
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, ConsistentHashing};
use pointsman::testkit::TestSystem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// Courses of turns: each is one more run of all.
const COURSES: u64 = if cfg!(miri) { 1 } else { 50 };

fn in_some_courses(test: impl Fn(&TestSystem)) {
    for seed in 0..COURSES {
        let system = TestSystem::with_seed(seed);
        test(&system);
        let ledger = system.finish();
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    }
}

/// Has its state in the heap, so that a use of it after its end is one of freed memory.
struct Puppet {
    handled: Box<usize>,
}

impl Puppet {
    fn new() -> Self {
        Self { handled: Box::new(0) }
    }
}

/// What a puppet is to do.
struct Act(Box<DoAct>);

type DoAct = dyn FnOnce(&mut Puppet, &mut Context<Act>) -> HandlerResult + Send;

fn act(then: impl FnOnce(&mut Puppet, &mut Context<Act>) -> HandlerResult + Send + 'static) -> Act {
    Act(Box::new(then))
}

/// Of what cannot fail.
fn doing(then: impl FnOnce(&mut Puppet, &mut Context<Act>) + Send + 'static) -> Act {
    act(|puppet, ctx| {
        then(puppet, ctx);
        Ok(())
    })
}

fn nothing() -> Act {
    doing(|_, _| ())
}

fn failing() -> Act {
    act(|_, _| Err(Failure::msg("as told")))
}

impl Actor for Puppet {
    type Message = Act;
    fn receive(&mut self, act: Act, ctx: &mut Context<Act>) -> HandlerResult {
        *self.handled += 1;
        (act.0)(self, ctx)
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<Act>) -> HandlerResult {
        Ok(())
    }
    fn supervision(&self) -> Strategy {
        Strategy::default().max_restarts(3).within(SECOND)
    }
}

fn puppet(system: &SystemRef, name: &str) -> ActorRef<Act> {
    system.actor(name).spawn(Puppet::new).expect("the name is free")
}

#[test]
fn actors_live_have_children_fail_are_made_anew_and_end() {
    in_some_courses(|system| {
        let probe = system.probe::<usize>();
        let parent = puppet(system, "parent");
        let to = probe.actor_ref().clone();
        parent.tell(act(move |_, ctx| {
            let child = ctx.actor("child").spawn(Puppet::new)?;
            ctx.watch(&child)?;
            let noted = to.clone();
            child.tell(nothing());
            child.tell(failing());
            child.tell(act(|_, _| panic!("as told")));
            // Only this one is of its third state.
            child.tell(act(move |puppet, ctx| {
                noted.tell(*puppet.handled);
                ctx.stop();
                Ok(())
            }));
            child.tell(nothing());
            ctx.after(SECOND, doing(move |puppet, _| to.tell(100 + *puppet.handled)));
            Ok(())
        }));
        probe.expect(1);
        // Put aside and taken up again, behind what came meanwhile.
        parent.tell(act(|_, ctx| {
            ctx.stash(nothing())?;
            ctx.me().tell(doing(|_, ctx| ctx.unstash_all()));
            Ok(())
        }));
        system.advance(SECOND);
        probe.expect(105);
        // It fails with messages queued, and dies of one failure too many, its children with it.
        parent.tell(doing(|_, ctx| drop(ctx.actor("last").spawn(Puppet::new))));
        (0..5).for_each(|_| [failing(), nothing()].into_iter().for_each(|act| parent.tell(act)));
        parent.kill();
        system.run_until_idle();
        assert!(parent.try_tell(nothing()).is_err());
    });
}

/// Passes on to whom it stands before.
struct Front(ActorRef<Act>);

impl Recipient<Act> for Front {
    fn deliver(&self, act: Act) -> Result<(), SendError<Act>> {
        self.0.try_tell(act)
    }
}

#[test]
fn references_outlive_their_actors_whatever_they_stand_for() {
    in_some_courses(|system| {
        let probe = system.probe::<u32>();
        let actor = puppet(system, "actor");
        let numbers = actor.contramap({
            let to = probe.actor_ref().clone();
            move |number: u32| {
                let to = to.clone();
                doing(move |_, _| to.tell(number))
            }
        });
        numbers.clone().tell(1u32);
        probe.expect(1);
        ActorRef::to_recipient(Front(actor.clone())).tell(nothing());
        let any = actor.untyped().expect("an actor");
        assert!(any.typed::<String>().is_err());
        any.clone().typed::<Act>().expect("its type").tell(nothing());
        // An answer, a port dropped, and an answer that comes too late.
        let answered = actor.ask_with(|to: ReplyTo<Box<u32>>| doing(move |_, _| _ = to.send(Box::new(7))));
        assert_eq!(answered.wait(), Ok(Box::new(7)));
        let ignored = actor.ask_with(|to: ReplyTo<Box<u32>>| doing(move |_, _| drop(to)));
        assert!(ignored.wait().is_err());
        drop(actor.ask_with(|to: ReplyTo<Box<u32>>| doing(move |_, _| _ = to.send(Box::new(8)))));
        // Who is not there, with the type of who might be.
        let nobody: ActorRef<Act> = system.empty_ref(&"/user/nobody".parse().expect("a path"));
        nobody.tell(nothing());
        assert_eq!(nobody.untyped().expect("typed").typed::<Act>(), Ok(nobody.clone()));
        assert_eq!(system.select("/user/act*").expect("a selection").tell(0u32).reached, 0);
        system.run_until_idle();
        actor.poison();
        system.run_until_idle();
        numbers.tell(2u32);
        assert!(numbers.is_closed() && any.typed::<Act>() == Ok(actor));
    });
}

/// In the heap, as a puppet's state is.
#[derive(Clone)]
struct Number(Box<usize>);

impl Number {
    fn new(number: usize) -> Self {
        Self(Box::new(number))
    }
}

/// Counts what it gets.
struct Counter(Arc<AtomicUsize>);

impl Actor for Counter {
    type Message = Number;
    fn receive(&mut self, number: Number, _: &mut Context<Number>) -> HandlerResult {
        assert!(*number.0 < 100);
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn mailboxes_of_each_kind_hand_over_what_they_were_given_and_drop_the_rest() {
    fn rank(number: &Number) -> i64 {
        (*number.0 % 3) as i64
    }
    let kinds: [fn() -> Mailbox; 8] = [
        Mailbox::unbounded,
        || Mailbox::bounded(3),
        || Mailbox::bounded(3).on_full(OverflowPolicy::DropOldest),
        || Mailbox::bounded(3).on_full(OverflowPolicy::DropNewest),
        || Mailbox::bounded(3).on_full(OverflowPolicy::Wait(SECOND)),
        || Mailbox::priority(rank),
        || Mailbox::control_aware(|number: &Number| rank(number) == 0),
        || Mailbox::lanes(3, |number: &Number| rank(number) as usize).guard(2),
    ];
    for kind in kinds {
        in_some_courses(|system| {
            let count = Arc::new(AtomicUsize::new(0));
            let given = count.clone();
            let plan = system.actor("counter").mailbox(kind());
            let counter = plan.spawn(move || Counter(given.clone())).expect("sound");
            // More than a block of messages, and more than a turn of them; the last ones are never handled.
            let refused = (0..70).filter(|number| counter.try_tell(Number::new(*number)).is_err()).count();
            system.run_until_idle();
            assert!(refused < 70 && count.load(Ordering::Relaxed) > 0);
            (0..10).for_each(|number| counter.tell(Number::new(number)));
            counter.stop();
        });
    }
}

#[test]
fn routers_change_their_routees_while_messages_are_on_their_way() {
    in_some_courses(|system| {
        let (count, sent) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let recipe = {
            let count = count.clone();
            move |_: &mut Context<Number>| Counter(count.clone())
        };
        let send = |to: &ActorRef<Number>, number| {
            to.tell(Number::new(number));
            sent.fetch_add(1, Ordering::Relaxed);
        };
        let shared = {
            let recipe = count.clone();
            system
                .router("shared")
                .balancing_pool(2, move |_| Counter(recipe.clone()))
                .spawn()
                .expect("sound")
        };
        let given = count.clone();
        let plan = system.router("pool").pool(2, move |_| Counter(given.clone()));
        // Keys of several lengths: what is gathered of them is hashed at once or in parts.
        let by_key = ConsistentHashing::by(|number: &Number, key| key.feed(&"key".repeat(*number.0 * 90)));
        let pool = plan.logic(by_key).spawn().expect("sound");
        let lone = system.actor("lone").spawn_with(recipe).expect("sound");
        let group = system.router("group").group([pool.to_ref(), lone.clone()]);
        let group = group.logic(Broadcast).spawn().expect("sound");
        for round in 0..4 {
            for router in [&shared, &pool] {
                (0..3).for_each(|step| send(&router.to_ref(), round + step));
                router.resize_to(1 + round % 3).expect("a pool");
                system.step();
            }
            group.tell(Number::new(round));
            sent.fetch_add(2, Ordering::Relaxed);
        }
        system.run_until_idle();
        let ledger = system.ledger();
        assert_eq!(count.load(Ordering::Relaxed) as u64 + ledger.dead_lettered, sent.into_inner() as u64);
        [&shared, &pool, &group].into_iter().for_each(|router| router.stop());
        lone.stop();
    });
}

/// Of a group, for one key.
struct Lodger {
    key: u64,
    handled: Arc<AtomicUsize>,
}

/// To a key, and whether to fail at it.
#[derive(Clone)]
struct Note(u64, Option<bool>);

impl Actor for Lodger {
    type Message = Note;
    fn receive(&mut self, note: Note, ctx: &mut Context<Note>) -> HandlerResult {
        assert_eq!(note.0, self.key);
        self.handled.fetch_add(1, Ordering::Relaxed);
        match note.1 {
            Some(true) => return Err(Failure::msg("as told")),
            Some(false) => ctx.passivate(),
            None => {}
        }
        Ok(())
    }
}

#[test]
fn groups_make_their_actors_at_the_first_message_and_let_them_go() {
    const KEYS: u64 = if cfg!(miri) { 12 } else { 400 };
    in_some_courses(|system| {
        let handled = Arc::new(AtomicUsize::new(0));
        let given = handled.clone();
        let recipe = move |_: &mut Context<Note>, key: &u64| Lodger { key: *key, handled: given.clone() };
        let group: Group<Note, u64> = system
            .group("lodgers")
            .by_key(|note: &Note| note.0, recipe)
            .restart(RestartPolicy::on_failure(SECOND, SECOND))
            .while_restarting(WhileRestarting::Queue)
            .spawn()
            .expect("sound");
        // Shards of the table grow, and lose again what they have.
        (0..KEYS).for_each(|key| group.tell(Note(key, (key % 4 != 0).then_some(key % 4 == 1))));
        system.run_until_idle();
        (0..KEYS).for_each(|key| group.tell(Note(key, None)));
        system.run_until_idle();
        system.advance(SECOND);
        assert_eq!(group.len(), KEYS as usize);
        group.mount(KEYS).expect("it is free");
        assert_eq!(handled.load(Ordering::Relaxed), 2 * KEYS as usize);
        group.stop();
    });
}
