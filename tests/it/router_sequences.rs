//! Random sequences of management, with messages between its commands, against a plain model of the list and of the
//! mailboxes.

use pointsman::SendError;
use pointsman::events::Subscription;
use pointsman::prelude::*;
use pointsman::routing::{ManageError, RoundRobin};
use pointsman::testkit::TestSystem;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A small generator of our own: the same numbers for the same seed, whatever else the system draws.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// A message: the sender, its count there, and whether the routee fails at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    sender: usize,
    number: usize,
    fails: bool,
}

/// Who handled what, by path; or for whom it was a dead letter.
type Reports = Receiver<(String, Sent)>;

struct Worker(Sender<(String, Sent)>);

impl Actor for Worker {
    type Message = Sent;
    fn receive(&mut self, it: Sent, ctx: &mut Context<Sent>) -> HandlerResult {
        self.0.send((ctx.path().to_string(), it))?;
        if it.fails { Err(Failure::msg("as told")) } else { Ok(()) }
    }
}

/// A pool, three routees that it has not made, and what is seen of them.
struct Scene<'a> {
    system: &'a TestSystem,
    router: Router<Sent>,
    foreign: [ActorRef<Sent>; 3],
    handled: Reports,
    dead: Reports,
    _sink: Subscription,
}

impl<'a> Scene<'a> {
    fn new(system: &'a TestSystem, size: usize, stays: bool) -> Self {
        let (log, handled) = channel();
        let (letters, dead) = channel();
        let take = move |sent: Sent, letter: pointsman::DeadLetter| {
            let _ = letters.send((letter.recipient.to_string(), sent));
        };
        let sink = system.dead_letters().take_by::<Sent>(|_| {}, take);
        let of_pool = log.clone();
        let plan = system.router("pool").pool(size, move |_| Worker(of_pool.clone()));
        // One cursor, so that the model needs to know of no threads.
        let plan = plan.logic(RoundRobin::exact()).on_failure(Strategy::default().quiet());
        let router = if stays { plan.stay_when_empty() } else { plan }.spawn().unwrap();
        let foreign = [0, 1, 2].map(|number| {
            let log = log.clone();
            system.actor(&format!("foreign-{number}")).spawn(move || Worker(log.clone())).unwrap()
        });
        Self { system, router, foreign, handled, dead, _sink: sink.unwrap() }
    }
}

/// What the list and the mailboxes should be.
struct Model {
    list: Vec<ActorRef<Sent>>,
    stays: bool,
    has_ended: bool,
    /// Of the round robin.
    place: usize,
    sent: usize,
    /// What was sent to each routee and is not known to be handled, in order.
    mailboxes: BTreeMap<String, Vec<Sent>>,
    /// Routees that were told to end, and how many of their messages they still handle.
    ending: BTreeMap<String, usize>,
}

impl Model {
    /// Some routee was removed or has ended.
    fn asked_whether_empty(&mut self) {
        self.has_ended |= !self.stays && self.list.is_empty();
    }

    fn without(&mut self, routee: &ActorRef<Sent>) -> bool {
        let before = self.list.len();
        self.list.retain(|listed| listed != routee);
        self.asked_whether_empty();
        self.list.len() < before
    }

    /// The list has grown by new routees at its end, or shrunk from there.
    fn resized(&mut self, router: &Router<Sent>, size: usize) {
        let now = router.routees().unwrap();
        let kept = size.min(self.list.len());
        assert_eq!((now.len(), &now[..kept]), (size, &self.list[..kept]));
        assert!(now[kept..].iter().all(|new| !self.list.contains(new) && !new.is_closed()));
        self.list = now;
    }

    fn send(&mut self, scene: &Scene<'_>, numbers: &mut Numbers) {
        for _ in 0..numbers.below(6) {
            let it = Sent { sender: 0, number: self.sent, fails: numbers.below(8) == 0 };
            self.sent += 1;
            match scene.router.try_tell(it) {
                Ok(()) => {
                    let to = &self.list[self.place % self.list.len()];
                    self.place += 1;
                    self.mailboxes.entry(to.path().to_string()).or_default().push(it);
                }
                Err(SendError::NoRoutee(back)) => assert_eq!((back, self.list.len()), (it, 0)),
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// What has been handled by now is the front of the mailboxes.
    fn look(&mut self, scene: &Scene<'_>) {
        for (path, it) in scene.handled.try_iter() {
            let mailbox = self.mailboxes.get_mut(&path).unwrap_or_else(|| panic!("{path} got {it:?}"));
            assert_eq!(Some(&it), mailbox.first(), "{path}");
            mailbox.remove(0);
            if let Some(left) = self.ending.get_mut(&path) {
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{path} handled {it:?} after its end"));
            }
        }
    }

    /// A routee ends at once, or after what it has.
    fn ends(&mut self, scene: &Scene<'_>, routee: &ActorRef<Sent>, at_once: bool) {
        self.look(scene);
        let path = routee.path().to_string();
        let waiting = if at_once { 0 } else { self.mailboxes.get(&path).map_or(0, Vec::len) };
        let left = self.ending.entry(path).or_insert(waiting);
        *left = waiting.min(*left);
    }

    /// Nobody has anything to do: all is handled, but what was for those that were told to end.
    fn settle(&mut self, scene: &Scene<'_>) {
        scene.system.run_until_idle();
        self.look(scene);
        let dead: Vec<(String, Sent)> = scene.dead.try_iter().collect();
        let mut expected: Vec<(String, Sent)> = Vec::new();
        for (path, mailbox) in std::mem::take(&mut self.mailboxes) {
            assert!(mailbox.is_empty() || self.ending.get(&path) == Some(&0), "{path} has left {mailbox:?}");
            expected.extend(mailbox.into_iter().map(|it| (path.clone(), it)));
        }
        let by_recipient = |mut letters: Vec<(String, Sent)>| {
            letters.sort_by(|one, other| one.0.cmp(&other.0));
            letters
        };
        assert_eq!(by_recipient(dead), expected, "in order for each recipient");
    }
}

fn run_sequence(system: &TestSystem, seed: u64) {
    let mut numbers = Numbers(seed);
    let stays = numbers.below(2) == 0;
    let scene = Scene::new(system, 1 + numbers.below(3), stays);
    let Scene { router, foreign, .. } = &scene;
    let mut model = Model {
        list: router.routees().unwrap(),
        stays,
        has_ended: false,
        place: 0,
        sent: 0,
        mailboxes: BTreeMap::new(),
        ending: BTreeMap::new(),
    };
    for _ in 0..14 {
        if model.has_ended {
            break;
        }
        model.send(&scene, &mut numbers);
        // Some of it is handled when the command comes.
        (0..numbers.below(4)).for_each(|_| _ = system.step());
        let before = model.list.len();
        let any = |numbers: &mut Numbers, model: &Model| match model.list.len() {
            0 => foreign[0].clone(),
            count => model.list[numbers.below(count)].clone(),
        };
        match numbers.below(8) {
            0 | 1 => {
                let routee = &foreign[numbers.below(foreign.len())];
                assert_eq!(router.add(routee.clone()).unwrap(), before + 1);
                model.list.push(routee.clone());
                if routee.is_closed() {
                    model.without(routee);
                    model.settle(&scene);
                }
            }
            2 => {
                let routee = any(&mut numbers, &model);
                let removed = router.remove(&routee).unwrap();
                assert_eq!(removed, model.without(&routee));
            }
            3 => {
                let size = numbers.below(5);
                match router.resize_to(size) {
                    Ok(now) => {
                        assert_eq!(now, size);
                        model.resized(router, size);
                    }
                    Err(ManageError::EmptyPool { .. }) => assert!(size == 0 && !stays),
                    Err(other) => panic!("{other}"),
                }
            }
            4 => {
                let delta = numbers.below(7) as isize - 3;
                let least = usize::from(before > 0 && !stays);
                let size = before.saturating_add_signed(delta).max(least);
                assert_eq!(router.adjust(delta).unwrap(), size);
                model.resized(router, size);
            }
            5 | 6 => {
                let routee = any(&mut numbers, &model);
                let at_once = numbers.below(2) == 0;
                model.ends(&scene, &routee, at_once);
                if at_once {
                    routee.stop()
                } else {
                    routee.poison()
                }
                // It is listed until it has ended.
                model.send(&scene, &mut numbers);
                model.settle(&scene);
                // One that is not listed is not watched.
                if model.list.contains(&routee) {
                    model.without(&routee);
                }
            }
            _ if numbers.below(4) == 0 => {
                model.list.clone().iter().for_each(|routee| model.ends(&scene, routee, false));
                assert_eq!(router.poison_routees(), before);
                model.send(&scene, &mut numbers);
                model.settle(&scene);
                if before > 0 {
                    model.list.clear();
                    model.asked_whether_empty();
                }
            }
            _ => {}
        }
        // Messages also meet routees that are about to leave.
        if !model.has_ended && numbers.below(2) == 0 {
            model.send(&scene, &mut numbers);
        }
        model.settle(&scene);
        match router.routees() {
            Ok(list) => assert_eq!((list, false), (model.list.clone(), model.has_ended)),
            Err(ManageError::Stopped { .. }) => assert!(model.has_ended),
            Err(other) => panic!("{other}"),
        }
    }
    if !model.has_ended {
        model.send(&scene, &mut numbers);
        router.drain().unwrap();
    }
    model.settle(&scene);
    foreign.iter().for_each(ActorRef::stop);
    system.run_until_idle();
    assert!(router.is_closed() && system.actor_at("/user/pool").is_err());
}

#[test]
fn any_sequence_of_management_leaves_the_list_of_the_model_and_each_message_where_the_model_has_it() {
    TestSystem::for_seeds(600, |system| run_sequence(system, system.seed()));
}

/// Sends as many messages as it is told.
struct Relay {
    to: ActorRef<Sent>,
    sender: usize,
    sent: usize,
    back: Sender<Sent>,
}

impl Actor for Relay {
    type Message = usize;
    fn receive(&mut self, count: usize, _: &mut Context<usize>) -> HandlerResult {
        for _ in 0..count {
            let it = Sent { sender: self.sender, number: self.sent, fails: self.sent % 9 == 8 };
            self.sent += 1;
            if let Err(refused) = self.to.try_tell(it) {
                self.back.send(refused.into_inner())?;
            }
        }
        Ok(())
    }
}

/// Actors send at moments that no model knows; what they may rely on holds.
fn run_with_relays(system: &TestSystem, seed: u64) {
    let mut numbers = Numbers(!seed);
    let scene = Scene::new(system, 1 + numbers.below(3), true);
    let Scene { router, foreign, .. } = &scene;
    let (back, returned) = channel();
    let relays = [1, 2].map(|sender| {
        let (to, back) = (router.to_ref(), back.clone());
        system.spawn(move || Relay { to: to.clone(), sender, sent: 0, back: back.clone() }).unwrap()
    });
    let mut told = [0; 2];
    // Of a routee that is stopped while it leaves, the rest is routed again, which is no order.
    let some_end = numbers.below(2) == 0;
    let mut ending = Vec::new();
    for _ in 0..20 {
        for (relay, told) in relays.iter().zip(&mut told) {
            let count = numbers.below(5);
            *told += count;
            relay.tell(count);
        }
        (0..numbers.below(6)).for_each(|_| _ = system.step());
        let list = router.routees().unwrap();
        let any = |numbers: &mut Numbers| match list.len() {
            0 => foreign[0].clone(),
            count => list[numbers.below(count)].clone(),
        };
        match numbers.below(6) {
            0 | 1 => _ = router.resize_to(numbers.below(5)).unwrap(),
            2 => _ = router.add(foreign[numbers.below(3)].clone()).unwrap(),
            3 => _ = router.remove(any(&mut numbers)).unwrap(),
            4 if some_end => {
                let routee = any(&mut numbers);
                ending.push(routee.path().to_string());
                if numbers.below(2) == 0 { routee.stop() } else { routee.poison() }
            }
            _ => _ = system.run_until_idle(),
        }
    }
    system.run_until_idle();
    router.drain().unwrap();
    system.run_until_idle();
    let mut all: Vec<Sent> = returned.try_iter().collect();
    let mut last: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for (path, it) in scene.handled.try_iter() {
        // Nobody here sends by an old table.
        let before = last.insert((path.clone(), it.sender), it.number);
        assert!(some_end || before < Some(it.number), "{path} got {it:?} after {before:?}");
        all.push(it);
    }
    for (path, it) in scene.dead.try_iter() {
        assert!(ending.contains(&path), "{it:?} is a dead letter of {path}");
        all.push(it);
    }
    all.sort_unstable();
    let all: Vec<(usize, usize)> = all.iter().map(|it| (it.sender, it.number)).collect();
    let expected = [(1, told[0]), (2, told[1])];
    let expected =
        expected.into_iter().flat_map(|(sender, count)| (0..count).map(move |number| (sender, number)));
    assert_eq!(all, expected.collect::<Vec<_>>(), "each once");
    relays.iter().for_each(ActorRef::stop);
    foreign.iter().for_each(ActorRef::stop);
    system.run_until_idle();
}

#[test]
fn whenever_actors_send_each_message_is_in_one_place_and_in_order() {
    TestSystem::for_seeds(300, |system| run_with_relays(system, system.seed()));
}
