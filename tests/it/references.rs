//! References to nobody, to dead letters, and promises.

use crate::support::*;
use crate::watch::Confirming;
use pointsman::prelude::*;
use pointsman::routing::{
    ConsistentHashing, DefaultResizer, GetRoutees, Keyed, RoundRobin, Routee, RouteeInfo,
};
use pointsman::selection::LookupError;
use pointsman::topology::Topology;
use pointsman::{ActorPath, DeadLetterReason, SendError};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The dead letters of a stage, as they come.
pub fn letters(stage: &Stage) -> (pointsman::events::Subscription, Receiver<(String, DeadLetterReason)>) {
    let (sender, letters) = channel();
    let subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send((letter.recipient.to_string(), letter.reason));
    });
    (subscription, letters)
}

#[test]
fn a_reference_to_nobody_keeps_its_path_and_makes_dead_letters() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    let path: ActorPath = "/user/no/body#7".parse().unwrap();
    let nobody: ActorRef<u32> = stage.system.empty_ref(&path);
    assert_eq!((nobody.path(), nobody.uid(), nobody.is_closed()), (path, 0, true));
    nobody.tell(1u32);
    assert!(matches!(nobody.try_tell(2u32), Err(SendError::Closed(2))));
    let asked: ActorRef<ReplyTo<()>> = stage.system.empty_ref(&nobody.path());
    assert_eq!(asked.ask_with(|reply_to| reply_to).wait(), Err(AskError::undeliverable()));
    nobody.stop();
    nobody.poison();
    nobody.kill();
    assert_eq!(
        letters.try_iter().collect::<Vec<_>>(),
        vec![("/user/no/body".to_owned(), DeadLetterReason::NoActor); 2]
    );
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.handed_back), (3, 2, 1), "{ledger}");
    // It never comes to mean an actor.
    let role = stage.role("no");
    let actor = stage.spawn(&role);
    let later: ActorRef<Tell> = stage.system.empty_ref(&actor.path());
    assert_ne!(later, actor);
    assert!(later.try_tell(Tell::new(|_, _| Ok(()))).is_err());
    // Untyped, it has its type still.
    let any = nobody.untyped().unwrap();
    assert_eq!(any.typed::<u32>(), Ok(nobody));
    assert!(any.typed::<String>().is_err());
    stage.end(&["no Started 1", "no Stopped 1"]);
}

#[test]
fn who_watches_nobody_is_told_at_once() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    watch(&watcher, &stage.system.empty_ref(&"/user/gone".parse().unwrap()));
    watch(&watcher, &stage.system.dead_letters_ref());
    stage.expect(&["w Started 1", "w lost gone", "w lost deadLetters"]);
    stage.end(&["w Stopped 1"]);
}

#[test]
fn the_notice_about_nobody_confirms_no_existence() {
    let stage = Stage::turns();
    let nobody = stage.system.empty_ref::<u32>(&"/user/gone".parse().unwrap()).untyped().unwrap();
    let (sender, confirmed) = channel();
    let _watcher = stage.system.spawn(move || Confirming(sender.clone(), nobody.clone())).unwrap();
    assert_eq!(confirmed.soon(), Ok(false));
    stage.end(&[]);
}

#[test]
fn what_is_sent_to_dead_letters_is_one() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    stage.system.dead_letters_ref::<u32>().tell(1u32);
    // Found by its path it takes any type.
    stage.system.typed_at::<String>("/deadLetters").unwrap().tell("two");
    assert!(stage.system.actor_at("/deadLetters").unwrap().is_closed());
    assert!(matches!(stage.system.actor_at("/deadLetters/x"), Err(LookupError::NoActor { .. })));
    assert_eq!(
        letters.try_iter().collect::<Vec<_>>(),
        vec![("/deadLetters".to_owned(), DeadLetterReason::NoActor); 2]
    );
    stage.end(&[]);
}

#[test]
fn references_to_nobody_outlive_their_system() {
    let stage = Stage::turns();
    let nobody: ActorRef<u32> = stage.system.empty_ref(&"/user/gone".parse().unwrap());
    let handle = stage.system.handle().clone();
    stage.end(&[]);
    nobody.tell(1u32);
    handle.empty_ref::<u32>(&"/x".parse().unwrap()).tell(2u32);
    assert_eq!(handle.ledger().dead_lettered, 2);
}

#[test]
fn the_first_message_to_a_promise_is_the_answer_and_later_ones_are_dead_letters() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    let (reference, reply) = stage.system.promise::<u32>();
    assert_eq!(reference.path().to_string(), "/temp/$a");
    assert_eq!(stage.system.typed_at::<u32>("/temp/$a"), Ok(reference.clone()));
    let watcher = stage.spawn(&stage.role("w"));
    let watched = reference.untyped().unwrap();
    query(&watcher, move |_, ctx| ctx.watch(&watched)).unwrap().unwrap();
    for number in 1..=3 {
        reference.tell(number as u32);
    }
    assert_eq!(reply.wait(), Ok(1));
    stage.expect(&["w Started 1", "w lost $a"]);
    reference.tell(4u32);
    let late = vec![("/temp/$a".to_owned(), DeadLetterReason::Stopped); 3];
    assert_eq!(letters.try_iter().collect::<Vec<_>>(), late);
    let (next, _reply) = stage.system.promise::<u32>();
    assert_eq!(next.path().name(), "$b");
    stage.end(&["w Stopped 1"]);
}

#[test]
fn a_promise_ends_at_its_deadline_and_when_it_is_given_up() {
    let stage = Stage::turns();
    let living = stage.system.living_actors();
    let (reference, reply) = stage.system.promise::<u32>();
    let waiter = std::thread::spawn(move || reply.within(SECOND).wait());
    while !waiter.is_finished() {
        stage.clock.advance(SECOND);
        std::thread::yield_now();
    }
    assert_eq!(waiter.join().unwrap(), Err(AskError::timeout(SECOND)));
    wait_until(|| reference.is_closed());
    reference.tell(1u32);

    let (reference, reply) = stage.system.promise::<u32>();
    drop(reply);
    wait_until(|| reference.is_closed());
    reference.tell(2u32);
    wait_until(|| stage.system.living_actors() == living);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.dead_lettered), (2, 2), "{ledger}");
    stage.end(&[]);
}

#[test]
fn a_promise_ends_at_its_deadline_although_the_future_is_kept() {
    let stage = Stage::turns();
    let (reference, reply) = stage.system.promise::<u32>();
    let mut reply = reply.within(SECOND);
    let mut poll = || {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(&mut reply).poll(&mut cx)
    };
    assert!(poll().is_pending());
    stage.clock.advance(SECOND);
    assert_eq!(poll(), std::task::Poll::Ready(Err(AskError::timeout(SECOND))));
    run_turns();
    assert!(reference.is_closed());
    let ledger = stage.system.ledger();
    assert_eq!((ledger.asks.begun, ledger.asks.timed_out, ledger.asks.pending()), (1, 1, 0));
    drop(reply);
    stage.end(&[]);
}

#[test]
fn a_promise_that_is_stopped_fails_at_once() {
    let stage = Stage::turns();
    let (reference, reply) = stage.system.promise::<u32>();
    reference.poison();
    assert_eq!(reply.wait(), Err(AskError::no_reply()));
    let (_reference, at_the_end) = stage.system.promise::<u32>();
    let handle = stage.system.handle().clone();
    stage.end(&[]);
    assert_eq!(at_the_end.wait(), Err(AskError::no_reply()));
    let (reference, after_the_end) = handle.promise::<u32>();
    reference.tell(1u32);
    assert_eq!(after_the_end.wait(), Err(AskError::no_reply()));
    assert_eq!(handle.ledger().balance(), 0);
}

#[test]
fn an_ask_by_a_promise_counts_however_it_ends() {
    let stage = Stage::turns();
    let (reference, answered) = stage.system.promise::<u32>();
    reference.tell(1u32);
    assert_eq!(answered.wait(), Ok(1));
    let (reference, stopped) = stage.system.promise::<u32>();
    reference.poison();
    assert_eq!(stopped.wait(), Err(AskError::no_reply()));
    let (_reference, late) = stage.system.promise::<u32>();
    let late = late.within(SECOND);
    stage.clock.advance(SECOND);
    assert_eq!(late.wait(), Err(AskError::timeout(SECOND)));
    let (_reference, given_up) = stage.system.promise::<u32>();
    drop(given_up);
    let asks = stage.system.ledger().asks;
    assert_eq!((asks.begun, asks.answered, asks.no_reply), (4, 1, 1), "{asks:?}");
    assert_eq!((asks.timed_out, asks.cancelled, asks.pending()), (1, 1, 0), "{asks:?}");
    stage.end(&[]);
}

/// What a map goes by.
fn hash_of(key: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

#[test]
fn references_are_equal_for_the_same_incarnation_alone() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let found = stage.system.typed_at::<Tell>("/user/a").unwrap();
    assert_eq!((&actor, hash_of(&actor)), (&found, hash_of(&found)));
    assert_ne!(actor, stage.system.empty_ref::<Tell>(&actor.path()));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn references_to_many_actors_have_as_many_hashes() {
    let stage = Stage::turns();
    let actors: Vec<ActorRef<u32>> = (0..10).map(|_| stage.system.promise().0).collect();
    let typed: HashSet<u64> = actors.iter().map(hash_of).collect();
    let untyped: HashSet<u64> = actors.iter().map(|actor| hash_of(&actor.untyped().unwrap())).collect();
    assert_eq!((typed.len(), untyped.len()), (10, 10), "a map of them is no list");
    stage.end(&[]);
}

/// Makes so many more below itself, each the child of the one before.
struct Link(u32, std::sync::mpsc::Sender<ActorRef<()>>);

impl Actor for Link {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        let (left, sender) = (self.0, self.1.clone());
        if left == 0 {
            sender.send(ctx.me().clone())?;
        } else {
            ctx.spawn(move || Link(left - 1, sender.clone()))?;
        }
        Ok(())
    }
}

#[test]
fn who_has_the_last_reference_below_a_deep_tree_needs_no_deep_stack_to_drop_it() {
    const DEPTH: u32 = 2_000;
    let stage = Stage::turns();
    let (sender, leaves) = std::sync::mpsc::channel();
    stage.system.spawn(move || Link(DEPTH, sender.clone())).unwrap();
    let leaf = leaves.soon().unwrap();
    stage.end(&[]);
    let small = std::thread::Builder::new().stack_size(64 << 10);
    small.spawn(move || drop(leaf)).unwrap().join().unwrap();
}

/// Two references that mean the same, made or found on two ways.
#[track_caller]
fn mean_the_same<M: Send + 'static>(one: &ActorRef<M>, two: &ActorRef<M>) {
    assert_eq!(one, two);
    assert_eq!(hash_of(one), hash_of(two), "{one:?}");
    for clone in [one.clone(), two.clone()] {
        assert_eq!((&clone, hash_of(&clone)), (one, hash_of(one)));
    }
    assert_eq!((one.cmp(two), two.cmp(one)), (Ordering::Equal, Ordering::Equal));
    assert_eq!(one.untyped(), two.untyped());
    assert_eq!(one.untyped().cmp(&two.untyped()), Ordering::Equal);
    assert_eq!(one.untyped().as_ref().map(hash_of), two.untyped().as_ref().map(hash_of));
    let set: HashSet<_> = [one.clone(), two.clone()].into();
    assert_eq!(set.len(), 1);
}

/// References that all mean something else.
#[track_caller]
fn mean_different_things<M: Send + 'static>(all: &[ActorRef<M>]) {
    for (at, one) in all.iter().enumerate() {
        for (other_at, other) in all.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{at} and {other_at}: {one:?}, {other:?}");
            assert_eq!(one.cmp(other), other.cmp(one).reverse());
            assert_eq!(one.cmp(other).is_eq(), at == other_at, "{at} and {other_at}: {one:?}, {other:?}");
        }
    }
    let set: BTreeSet<_> = all.iter().cloned().collect();
    assert!(all.iter().all(|one| set.contains(one)) && set.len() == all.len());
    assert_eq!(all.iter().cloned().collect::<HashSet<_>>().len(), all.len());
}

/// Takes a part of [`Whole`].
#[derive(Debug, Clone, Copy)]
struct Part(u32);

enum Whole {
    Part(Part),
    Number(u32),
}

impl From<Part> for Whole {
    fn from(part: Part) -> Self {
        Whole::Part(part)
    }
}

struct Taker;

impl Actor for Taker {
    type Message = Whole;
    fn receive(&mut self, message: Whole, _: &mut Context<Whole>) -> HandlerResult {
        match message {
            Whole::Part(Part(number)) | Whole::Number(number) => assert!(number < u32::MAX),
        }
        Ok(())
    }
}

fn twice(number: u32) -> Whole {
    Whole::Number(2 * number)
}

#[test]
fn adapters_of_one_actor_with_one_function_mean_the_same() {
    let stage = Stage::turns();
    let [a, b] = ["a", "b"].map(|name| stage.system.actor(name).spawn(|| Taker).unwrap());
    let number = |actor: &ActorRef<Whole>| actor.contramap(Whole::Number);
    mean_the_same(&a.narrow::<Part>(), &a.narrow());
    mean_the_same(&a.contramap(twice), &a.contramap(twice));
    mean_the_same(&number(&a), &number(&a));
    let found = stage.system.typed_at::<Whole>("/user/a").unwrap();
    mean_the_same(&a.narrow::<Part>(), &found.narrow());
    // Of adapters, too.
    let of_two = |actor: &ActorRef<Whole>| actor.narrow::<Part>().contramap(Part);
    mean_the_same(&of_two(&a), &of_two(&a));
    // What a function has captured cannot be compared: only clones mean the same.
    let plus = |count: u32| a.contramap(move |number: u32| Whole::Number(number + count));
    let one = plus(1);
    mean_the_same(&one, &one.clone());
    // Nor can where a pointer leads, which may be the same for two functions, and differ for one.
    let by_pointer = || a.contramap(twice as fn(u32) -> Whole);
    let other = |actor: &ActorRef<Whole>| actor.contramap(|number: u32| Whole::Number(number));
    mean_different_things(&[
        one,
        plus(1),
        plus(2),
        number(&a),
        number(&b),
        other(&a),
        a.contramap(twice),
        of_two(&a),
        of_two(&b),
        by_pointer(),
        by_pointer(),
    ]);
    stage.end(&[]);
}

#[test]
fn references_to_nobody_mean_the_same_by_their_paths() {
    let stage = Stage::turns();
    let system = &stage.system;
    let (path, other): (ActorPath, ActorPath) = ("/user/no".parse().unwrap(), "/user/yes".parse().unwrap());
    mean_the_same(&system.empty_ref::<u32>(&path), &system.empty_ref(&path));
    mean_the_same(&system.dead_letters_ref::<u32>(), &system.dead_letters_ref());
    mean_the_same(&system.dead_letters_ref::<u32>(), &system.typed_at("/deadLetters").unwrap());
    let elsewhere = System::builder("elsewhere").build().unwrap();
    let incarnation: ActorPath = "/user/no#7".parse().unwrap();
    mean_different_things(&[
        system.empty_ref::<u32>(&path),
        system.empty_ref(&other),
        system.empty_ref(&incarnation),
        system.dead_letters_ref(),
        elsewhere.empty_ref(&path),
    ]);
    // Of another type of message it takes other messages.
    assert_ne!(system.empty_ref::<u32>(&path).untyped(), system.empty_ref::<u64>(&path).untyped());
    elsewhere.shutdown(LONG).unwrap();
    stage.end(&[]);
}

#[test]
fn references_to_keys_mean_the_same_by_group_and_key() {
    let stage = Stage::turns();
    let group = |name: &str| stage.system.group(name).by_key(|key: &u32| *key, |_, _| Idle).spawn().unwrap();
    let (one, two) = (group("one"), group("two"));
    mean_the_same(&one.key(1), &one.key(1));
    mean_the_same(&one.key(1).contramap(twice_as_many), &one.key(1).contramap(twice_as_many));
    mean_the_same(&one.to_ref(), &one.to_ref());
    mean_the_same(&one.to_ref(), &stage.system.typed_at("/user/one").unwrap());
    mean_different_things(&[one.key(1), one.key(2), two.key(1), one.to_ref(), two.to_ref()]);
    stage.end(&[]);
}

fn twice_as_many(number: u32) -> u32 {
    2 * number
}

struct Idle;

impl Actor for Idle {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn references_to_routers_mean_the_same_wherever_they_come_from() {
    let stage = Stage::turns();
    let system = &stage.system;
    let router = |name: &str| system.router(name).pool(2, |_| Idle).spawn().unwrap();
    let (one, two) = (router("one"), router("two"));
    mean_the_same(&one.to_ref(), &one.clone().to_ref());
    mean_the_same(&one.to_ref(), &system.typed_at("/user/one").unwrap());
    mean_the_same(&one.to_ref(), &one.head().untyped().unwrap().typed().unwrap());
    mean_the_same(one.head(), &system.typed_at("/user/one").unwrap());
    mean_the_same(&one.contramap(twice_as_many), &one.contramap(twice_as_many));
    mean_different_things(&[one.to_ref(), two.to_ref()]);
    stage.end(&[]);
}

#[test]
fn references_to_routers_with_a_resizer_and_to_their_controllers_and_mounts_mean_the_same() {
    let stage = Stage::turns();
    let system = &stage.system;
    let router = |name: &str| {
        let plan = system.router(name).pool(2, |_| Idle).resizer(DefaultResizer::new().without_ticks(true));
        plan.controller(|_: &Arc<RoundRobin>, _: &mut Context<u32>| Idle).spawn().unwrap()
    };
    let (one, two) = (router("one"), router("two"));
    // One that counts for the resizer stands before what routes.
    mean_the_same(&one.to_ref(), &one.clone().to_ref());
    mean_the_same(&one.to_ref(), &system.typed_at("/user/one").unwrap());
    mean_the_same(&one.to_ref(), &one.head().untyped().unwrap().typed().unwrap());
    let controller = |router: &Router<u32>| router.controller::<u32>().unwrap();
    mean_the_same(&controller(&one), &controller(&one));
    mean_the_same(&controller(&one), &system.typed_at(controller(&one).path().as_str()).unwrap());
    let topology = Topology::new(system);
    let mounted = |name: &str, router: &Router<u32>| topology.local::<u32>(name).unwrap().mount(router);
    mean_the_same(&mounted("first", &one), &one.to_ref());
    let again = mounted("second", &one);
    mean_the_same(&again, &again.clone());
    mean_different_things(&[one.to_ref(), mounted("third", &two), controller(&one), controller(&two)]);
    stage.end(&[]);
}

#[test]
fn references_to_routees_of_a_keyed_pool_mean_the_same_by_the_routee() {
    let stage = Stage::turns();
    let keyed = stage.system.router("keyed").keyed_pool(2, |_| Idle).logic(ConsistentHashing::new());
    let router: Router<Keyed<u32, u32>> = keyed.spawn().unwrap();
    let routees = || {
        let asked = router.head().ask(GetRoutees::new());
        run_turns();
        let actor = |info: RouteeInfo<_>| info.routee.actor().clone();
        asked.wait().unwrap().into_iter().map(actor).collect::<Vec<_>>()
    };
    let (once, again) = (routees(), routees());
    mean_the_same(&once[0], &again[0]);
    mean_the_same(&once[1], &again[1]);
    mean_different_things(&[once[0].clone(), once[1].clone(), router.to_ref()]);
    stage.end(&[]);
}

/// What takes the messages of a routee.
fn behind<M: Send + 'static>(routee: Routee<M>) -> ActorRef<M> {
    routee.actor().clone()
}

#[test]
fn references_to_routees_of_several_and_of_none_mean_the_same_by_their_parts() {
    let stage = Stage::turns();
    let [a, b] = ["a", "b"].map(|name| stage.system.actor(name).spawn(|| Idle).unwrap());
    mean_the_same(&behind::<u32>(Routee::none()), &behind(Routee::none()));
    let several = |parts: &[&ActorRef<u32>]| behind(Routee::several(parts.iter().copied()));
    mean_the_same(&several(&[&a, &b]), &several(&[&a, &b]));
    let nested = || behind(Routee::several([Routee::several([&a, &b]), Routee::from(&a), Routee::none()]));
    mean_the_same(&nested(), &nested());
    let named = |name: &str| behind(Routee::several([Routee::with_identity(a.clone(), name), (&b).into()]));
    mean_the_same(&named("x"), &named("x"));
    mean_different_things(&[
        a.clone(),
        several(&[&a]),
        several(&[&a, &b]),
        several(&[&b, &a]),
        nested(),
        named("x"),
        named("y"),
        behind(Routee::none()),
    ]);
    stage.end(&[]);
}

#[test]
fn references_to_paths_mean_the_same_by_router_and_path() {
    let stage = Stage::turns();
    let group = |name: &str| {
        let paths = ["/user/a", "/user/a", "/user/b"];
        let router: Router<u32> = stage.system.router(name).group_at(paths).spawn().unwrap();
        run_turns();
        router
    };
    let (one, two) = (group("one"), group("two"));
    let routees = |router: &Router<u32>| {
        let asked = router.head().ask(GetRoutees::new());
        run_turns();
        let actor = |info: RouteeInfo<_>| info.routee.actor().clone();
        asked.wait().unwrap().into_iter().map(actor).collect::<Vec<_>>()
    };
    let (ones, twos) = (routees(&one), routees(&two));
    mean_the_same(&ones[0], &ones[1]);
    mean_different_things(&[ones[0].clone(), ones[2].clone(), twos[0].clone()]);
    stage.end(&[]);
}

#[test]
fn references_to_selections_mean_the_same_by_what_is_selected() {
    let stage = Stage::turns();
    let select = |path: &str| stage.system.select(path).unwrap();
    let routee = |path: &str| Routee::<u32>::selected(select(path));
    mean_the_same(&behind(routee("/user/a*")), &behind(routee("/user//a*/")));
    let several = |path: &str| behind(Routee::several([routee(path), routee("/user/b")]));
    mean_the_same(&several("/user/a"), &several("/user/a/"));
    mean_different_things(&[
        behind(routee("/user/a")),
        behind(routee("/user/b")),
        several("/user/a"),
        several("/user/b"),
    ]);
    stage.end(&[]);
}

#[test]
fn references_to_functions_and_recipients_mean_the_same_as_their_clones_alone() {
    let function = || ActorRef::from_fn(|_: u32| ());
    let one = function();
    mean_the_same(&one, &one.clone());
    mean_the_same(&one.contramap(twice_as_many), &one.contramap(twice_as_many));
    mean_different_things(&[one, function(), function().contramap(twice_as_many)]);
}

#[test]
fn references_of_inboxes_promises_and_backoffs_mean_the_same_wherever_they_come_from() {
    let stage = Stage::turns();
    let system = &stage.system;
    let inbox = system.inbox::<u32>().unwrap();
    mean_the_same(&inbox.to_ref(), inbox.as_ref());
    mean_the_same(&inbox.to_ref(), &system.typed_at(inbox.to_ref().path().as_str()).unwrap());
    let (promise, asked) = system.promise::<u32>();
    mean_the_same(&promise, &promise.untyped().unwrap().typed().unwrap());
    let backoff = pointsman::pattern::Backoff::on_stop(SECOND, SECOND);
    let supervisor = system.actor("idle").spawn_backoff(backoff, |_: &mut Context<u32>| Idle).unwrap();
    mean_the_same(&supervisor.to_ref(), &supervisor.to_ref());
    let child = supervisor.child().unwrap();
    mean_the_same(&child, &child.untyped().unwrap().typed().unwrap());
    mean_different_things(&[inbox.to_ref(), promise, supervisor.to_ref(), child]);
    drop((inbox, asked));
    stage.end(&[]);
}

#[test]
fn references_are_in_the_order_of_their_paths_and_incarnations() {
    let stage = Stage::turns();
    let actor = |name: &str| stage.system.actor(name).spawn(|| Idle).unwrap();
    let first_b = actor("b");
    first_b.stop();
    run_turns();
    let mut all = [actor("c"), ActorRef::from_fn(|_| ()), actor("b"), first_b, actor("a").narrow::<u32>()];
    all.sort();
    let paths = all.each_ref().map(|one| one.path().to_string());
    assert_eq!(paths, ["/user/a", "/user/b", "/user/b", "/user/c", "/deadLetters"]);
    assert!(all[1].uid() < all[2].uid());
    let untyped: Vec<AnyActorRef> = all.iter().filter_map(ActorRef::untyped).collect();
    assert!(untyped.is_sorted() && untyped.len() == 4);
    stage.end(&[]);
}
