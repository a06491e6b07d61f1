//! A router's list and its routees' mailboxes against a plain model: a list, a queue for each routee, a place in
//! the round robin.
//!
//! Between commands of management, messages are sent and some are handled: one by one, broadcast, failing. Routees
//! are added, removed, stopped, poisoned, killed; the pool is resized, adjusted, drained, stopped. Compared are the
//! list after each command, who handles what in which order, dead letters by recipient, what is handed back, and
//! the books.
//!
//! Planted faults that it was seen to find: a removal that takes the last routee instead of the one that was named; a
//! larger pool whose new routees come first; a broadcast that passes over the first (each shrunk to one step); a routee
//! that leaves without what is in its mailbox.

use crate::support::cases;
use pointsman::SendError;
use pointsman::events::Subscription;
use pointsman::prelude::{Actor, ActorRef, Context, Failure, HandlerResult, Router};
use pointsman::routing::{ManageError, RoundRobin};
use pointsman::testkit::TestSystem;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Routees that no pool has made.
const FOREIGN: usize = 3;

/// A message: its number, and whether the routee fails at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    number: usize,
    fails: bool,
}

#[derive(Debug, Clone, Copy)]
enum Sending {
    One { fails: bool },
    ToAll,
}

#[derive(Debug, Clone)]
enum Change {
    Nothing,
    Add(usize),
    /// One of the list, or a foreign one while that is empty.
    Remove(usize),
    ResizeTo(usize),
    Adjust(isize),
    StopOne(usize),
    PoisonOne(usize),
    PoisonAll,
    KillAll,
    Stop,
    Drain,
}

/// Messages are sent, some are handled, something is changed, more messages are sent, and all comes to rest.
#[derive(Debug, Clone)]
struct Step {
    before: Vec<Sending>,
    turns: usize,
    change: Change,
    after: Vec<Sending>,
}

fn sending() -> impl Strategy<Value = Sending> {
    prop_oneof![
        5 => Just(Sending::One { fails: false }),
        1 => Just(Sending::One { fails: true }),
        1 => Just(Sending::ToAll),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::Nothing),
        6 => (0..FOREIGN).prop_map(Change::Add),
        6 => any::<usize>().prop_map(Change::Remove),
        6 => (0..6_usize).prop_map(Change::ResizeTo),
        6 => (-4..5_isize).prop_map(Change::Adjust),
        4 => any::<usize>().prop_map(Change::StopOne),
        4 => any::<usize>().prop_map(Change::PoisonOne),
        1 => Just(Change::PoisonAll),
        1 => Just(Change::KillAll),
        1 => Just(Change::Stop),
        1 => Just(Change::Drain),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (vec(sending(), 0..6), 0..4_usize, change(), vec(sending(), 0..4))
        .prop_map(|(before, turns, change, after)| Step { before, turns, change, after })
}

/// Who handled what, by path; or for whom it was a dead letter.
type Reports = Receiver<(String, Message)>;

struct Worker(Sender<(String, Message)>);

impl Actor for Worker {
    type Message = Message;
    fn receive(&mut self, it: Message, ctx: &mut Context<Message>) -> HandlerResult {
        self.0.send((ctx.path().to_string(), it))?;
        if it.fails { Err(Failure::msg("as told")) } else { Ok(()) }
    }
}

/// A pool, routees that it has not made, and what is seen of them.
struct Scene<'a> {
    system: &'a TestSystem,
    router: Router<Message>,
    foreign: Vec<ActorRef<Message>>,
    handled: Reports,
    dead: Reports,
    _sink: Subscription,
}

impl<'a> Scene<'a> {
    fn new(system: &'a TestSystem, size: usize, stays: bool) -> Self {
        let (log, handled) = channel();
        let (letters, dead) = channel();
        let take = move |message: Message, letter: pointsman::DeadLetter| {
            let _ = letters.send((letter.recipient.to_string(), message));
        };
        let sink = system.dead_letters().take_by::<Message>(|_| {}, take).unwrap();
        let of_pool = log.clone();
        let restart = || pointsman::Strategy::default().quiet();
        let plan = system.router("pool").pool(size, move |_| Worker(of_pool.clone()));
        // One cursor, so that the model needs to know of no threads.
        let plan = plan.logic(RoundRobin::exact()).on_failure(restart());
        let router = if stays { plan.stay_when_empty() } else { plan }.spawn().unwrap();
        let foreign = (0..FOREIGN).map(|number| {
            let log = log.clone();
            let builder = system.actor(&format!("foreign-{number}")).on_failure(restart());
            builder.spawn(move || Worker(log.clone())).unwrap()
        });
        let foreign = foreign.collect();
        Self { system, router, foreign, handled, dead, _sink: sink }
    }

    fn is_foreign(&self, routee: &ActorRef<Message>) -> bool {
        self.foreign.contains(routee)
    }
}

/// What the list and the mailboxes should be.
struct Model {
    list: Vec<ActorRef<Message>>,
    stays: bool,
    has_ended: bool,
    /// Of the round robin.
    place: usize,
    sent: usize,
    handed_back: u64,
    /// What was sent to each routee and is not known to be handled, in order.
    mailboxes: BTreeMap<String, Vec<Message>>,
    /// Routees that were told to end, and how many of their messages they still handle; `None` if that depends on when
    /// they get to know.
    ending: BTreeMap<String, Option<usize>>,
    /// Dead letters of nobody in particular.
    without_routee: Vec<(String, Message)>,
}

impl Model {
    /// Some routee was removed or has ended.
    fn asked_whether_empty(&mut self) {
        self.has_ended |= !self.stays && self.list.is_empty();
    }

    fn unlist(&mut self, routee: &ActorRef<Message>) -> bool {
        let before = self.list.len();
        self.list.retain(|listed| listed != routee);
        self.asked_whether_empty();
        self.list.len() < before
    }

    /// The list has grown by new routees at its end, or shrunk from there.
    fn resized(&mut self, router: &Router<Message>, size: usize) {
        let now = router.routees().unwrap();
        let kept = size.min(self.list.len());
        assert_eq!((now.len(), &now[..kept]), (size, &self.list[..kept]));
        assert!(now[kept..].iter().all(|new| !self.list.contains(new) && !new.is_closed()));
        self.list = now;
    }

    fn delivered(&mut self, to: &ActorRef<Message>, it: Message) {
        self.mailboxes.entry(to.path().to_string()).or_default().push(it);
    }

    fn send(&mut self, scene: &Scene<'_>, sends: &[Sending]) {
        for send in sends {
            self.sent += 1;
            let it = Message { number: self.sent, fails: matches!(send, Sending::One { fails: true }) };
            let router = &scene.router;
            match send {
                Sending::ToAll => {
                    assert_eq!(router.broadcast(it), self.list.len());
                    self.list.clone().iter().for_each(|to| self.delivered(to, it));
                    if self.list.is_empty() {
                        self.without_routee.push((router.path().to_string(), it));
                    }
                }
                Sending::One { .. } => match router.try_tell(it) {
                    Ok(()) => {
                        let to = self.list[self.place % self.list.len()].clone();
                        self.place += 1;
                        self.delivered(&to, it);
                    }
                    Err(SendError::NoRoutee(back)) => {
                        assert_eq!((back, self.list.len()), (it, 0));
                        self.handed_back += 1;
                    }
                    Err(other) => panic!("{other}"),
                },
            }
        }
    }

    /// What has been handled by now is the front of the mailboxes.
    fn look(&mut self, scene: &Scene<'_>) {
        for (path, it) in scene.handled.try_iter() {
            let mailbox = self.mailboxes.get_mut(&path).unwrap_or_else(|| panic!("{path} got {it:?}"));
            assert_eq!(Some(&it), mailbox.first(), "{path}");
            mailbox.remove(0);
            if let Some(Some(left)) = self.ending.get_mut(&path) {
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{path} handled {it:?} after its end"));
            }
        }
    }

    /// A routee ends at once, or after what it has.
    fn ends(&mut self, scene: &Scene<'_>, routee: &ActorRef<Message>, at_once: bool) {
        self.look(scene);
        let path = routee.path().to_string();
        let waiting = if at_once { 0 } else { self.mailboxes.get(&path).map_or(0, Vec::len) };
        let left = self.ending.entry(path).or_insert(Some(waiting));
        *left = left.map(|left| waiting.min(left));
    }

    /// Nobody has anything to do: all is handled, but what was for those that were told to end.
    fn settle(&mut self, scene: &Scene<'_>) {
        scene.system.run_until_idle();
        self.look(scene);
        let dead: Vec<(String, Message)> = scene.dead.try_iter().collect();
        let mut expected = std::mem::take(&mut self.without_routee);
        for (path, mailbox) in std::mem::take(&mut self.mailboxes) {
            let has_ended = matches!(self.ending.get(&path), Some(None | Some(0)));
            assert!(mailbox.is_empty() || has_ended, "{path} has left {mailbox:?}");
            expected.extend(mailbox.into_iter().map(|it| (path.clone(), it)));
        }
        let by_recipient = |mut letters: Vec<(String, Message)>| {
            letters.sort_by(|one, other| one.0.cmp(&other.0));
            letters
        };
        assert_eq!(by_recipient(dead), by_recipient(expected), "in order for each recipient");
    }

    fn change(&mut self, scene: &Scene<'_>, step: &Step) {
        let Scene { router, foreign, .. } = scene;
        let before = self.list.len();
        let any = |list: &[ActorRef<Message>], which: usize| match list.len() {
            0 => foreign[which % FOREIGN].clone(),
            count => list[which % count].clone(),
        };
        let list = self.list.clone();
        match step.change {
            Change::Nothing => {}
            Change::Add(which) => {
                let routee = &foreign[which];
                assert_eq!(router.add(routee.clone()).unwrap(), before + 1);
                self.list.push(routee.clone());
                if routee.is_closed() {
                    self.unlist(routee);
                    self.settle(scene);
                }
            }
            Change::Remove(which) => {
                let routee = any(&list, which);
                // As in Akka it is asked whether the pool is empty also where nobody was removed.
                assert_eq!(router.remove(&routee).unwrap(), self.unlist(&routee));
            }
            Change::ResizeTo(size) => match router.resize_to(size) {
                Ok(now) => {
                    assert_eq!(now, size);
                    self.resized(router, size);
                }
                Err(ManageError::EmptyPool { .. }) => assert!(size == 0 && !self.stays),
                Err(other) => panic!("{other}"),
            },
            Change::Adjust(delta) => {
                // A pool that does not stay when empty keeps one routee.
                let least = usize::from(!self.stays && before > 0);
                let size = before.saturating_add_signed(delta).max(least);
                assert_eq!(router.adjust(delta).unwrap(), size);
                self.resized(router, size);
            }
            Change::StopOne(which) | Change::PoisonOne(which) => {
                let routee = any(&list, which);
                let at_once = matches!(step.change, Change::StopOne(_));
                self.ends(scene, &routee, at_once);
                if at_once {
                    routee.stop()
                } else {
                    routee.poison()
                }
                // It is listed until it has ended.
                self.send(scene, &step.after);
                self.settle(scene);
                // One that is not listed is not watched.
                if self.list.contains(&routee) {
                    self.unlist(&routee);
                }
            }
            Change::PoisonAll | Change::KillAll => {
                list.iter().for_each(|routee| self.ends(scene, routee, false));
                let told = match step.change {
                    Change::PoisonAll => router.poison_routees(),
                    _ => router.kill_routees(),
                };
                assert_eq!(told, before);
                self.send(scene, &step.after);
                self.settle(scene);
                if before > 0 {
                    self.list.clear();
                    self.asked_whether_empty();
                }
            }
            Change::Stop => {
                // The router learns of it first, and each routee when it has its next turn.
                let own = list.iter().filter(|routee| !scene.is_foreign(routee));
                self.ending.extend(own.map(|routee| (routee.path().to_string(), None)));
                router.stop();
                self.send(scene, &step.after);
                self.settle(scene);
                self.has_ended = true;
            }
            Change::Drain => {
                router.drain().unwrap();
                self.settle(scene);
                self.has_ended = true;
            }
        }
    }
}

fn run(seed: u64, size: usize, stays: bool, steps: Vec<Step>) {
    let system = TestSystem::with_seed(seed);
    let scene = Scene::new(&system, size, stays);
    let Scene { router, foreign, .. } = &scene;
    let mut model = Model {
        list: router.routees().unwrap(),
        stays,
        has_ended: false,
        place: 0,
        sent: 0,
        handed_back: 0,
        mailboxes: BTreeMap::new(),
        ending: BTreeMap::new(),
        without_routee: Vec::new(),
    };
    for step in steps {
        model.send(&scene, &step.before);
        (0..step.turns).for_each(|_| _ = system.step());
        model.change(&scene, &step);
        // Messages also meet routees that are about to leave.
        if !model.has_ended {
            model.send(&scene, &step.after);
        }
        model.settle(&scene);
        match router.routees() {
            Ok(list) => assert_eq!((list, false), (model.list.clone(), model.has_ended)),
            Err(ManageError::Stopped { .. }) => assert!(model.has_ended),
            Err(other) => panic!("{other}"),
        }
        if model.has_ended {
            break;
        }
    }
    if !model.has_ended {
        model.send(&scene, &[Sending::One { fails: false }; 5]);
        router.drain().unwrap();
    }
    model.settle(&scene);
    assert!(router.is_closed() && system.actor_at("/user/pool").is_err());
    let dead: BTreeSet<&str> = model.ending.keys().map(String::as_str).collect();
    for routee in foreign {
        let is_dead = dead.contains(routee.path().to_string().as_str());
        assert_eq!(
            routee.is_closed(),
            is_dead,
            "{}: a router ends nobody whom it has not made",
            routee.path()
        );
        routee.stop();
    }
    system.run_until_idle();
    drop(scene);
    let ledger = system.finish();
    assert_eq!(ledger.handed_back, model.handed_back, "{ledger}");
}

proptest! {
    #![proptest_config(cases("tests/properties/routers.seeds"))]

    #[test]
    fn who_is_a_routee_and_where_each_message_is_is_what_the_list_says(
        seed in any::<u64>(),
        size in 1..4_usize,
        stays in any::<bool>(),
        steps in vec(step(), 1..20),
    ) {
        run(seed, size, stays, steps);
    }
}
