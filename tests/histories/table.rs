//! A router's table as a list that some threads change and others send by.
//!
//! A send takes effect at one moment, and goes to whoever is in the list then: one that begins after a removal was
//! acknowledged never reaches who was removed, and one that begins after an addition may. A broadcast goes to the
//! list of one moment, whole.
//!
//! Planted faults that were found: a removal that is acknowledged before the smaller table is published; a broadcast that
//! passes over the first.

use crate::recorder::{Clock, Dice, LONG, Timed, assert_linearizable, in_turn, is_linearizable, together};
use crossbeam_channel::{Receiver, Sender, unbounded};
use pointsman::SendError;
use pointsman::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use todc_utils::specifications::Specification;

const HISTORIES: u64 = if cfg!(debug_assertions) { 300 } else { 4_000 };

/// By each sender.
const SENDS: usize = 12;

/// By each manager.
const CHANGES: usize = 8;

/// The name of a routee.
type Name = String;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    /// At the end; there are so many then.
    Add(Name, usize),
    /// Every entry; whether there was one.
    Remove(Name, bool),
    /// To these, where nobody else changes them.
    Resize(Vec<Name>),
    Routees(Vec<Name>),
    /// To whom the message went; to nobody where there is nobody.
    Route(Option<Name>),
    /// To whom the copies went, sorted.
    Broadcast(Vec<Name>),
}

use Operation::*;

struct List;

impl Specification for List {
    type State = Vec<Name>;
    type Operation = Operation;

    fn init() -> Vec<Name> {
        Vec::new()
    }

    fn apply(operation: &Operation, list: &Vec<Name>) -> (bool, Vec<Name>) {
        let mut after = list.clone();
        let legal = match operation {
            Add(name, count) => {
                after.push(name.clone());
                after.len() == *count
            }
            Remove(name, was_listed) => {
                after.retain(|listed| listed != name);
                (after.len() < list.len()) == *was_listed
            }
            Resize(names) => {
                after.clone_from(names);
                true
            }
            Routees(names) => names == list,
            Route(None) => list.is_empty(),
            Route(Some(name)) => list.contains(name),
            Broadcast(names) => {
                let mut sorted = list.clone();
                sorted.sort();
                *names == sorted
            }
        };
        if legal { (true, after) } else { (false, list.clone()) }
    }
}

/// A message: of which history, and which one there.
type Message = (u64, usize);

/// Tells who got what, and when.
struct Worker {
    name: Name,
    clock: Arc<Clock>,
    got: Sender<(Name, Message, u64)>,
}

impl Actor for Worker {
    type Message = Message;
    fn receive(&mut self, message: Message, _: &mut Context<Message>) -> HandlerResult {
        Ok(self.got.send((self.name.clone(), message, self.clock.now()))?)
    }
}

/// A send whose routees are not known yet.
struct Sent {
    number: usize,
    is_broadcast: bool,
    /// How many copies there are.
    copies: usize,
}

/// What a thread has done, in the making.
enum Step {
    Done(Operation),
    Sent(Sent),
}

struct Scene {
    system: System,
    clock: Arc<Clock>,
    log: Sender<(Name, Message, u64)>,
    got: Receiver<(Name, Message, u64)>,
}

impl Scene {
    fn new() -> Self {
        let system = System::builder("tables")
            .dispatcher("default", Dispatcher::work_stealing().threads(2))
            .build()
            .expect("sound");
        let (log, got) = unbounded();
        Self { system, clock: Arc::default(), log, got }
    }

    /// Sends by a router, one by one and some of them to all, which is what one thread does.
    fn send(
        &self,
        router: &Router<Message>,
        history: u64,
        sender: usize,
        some_to_all: bool,
    ) -> Vec<Timed<Step>> {
        let mut dice = Dice::new(history << 8 | sender as u64);
        let mut steps = Vec::new();
        for number in sender * SENDS..(sender + 1) * SENDS {
            dice.pause();
            let is_broadcast = some_to_all && dice.roll(4) == 0;
            let send = || match is_broadcast {
                true => router.broadcast((history, number)),
                false => match router.try_tell((history, number)) {
                    Ok(()) => 1,
                    Err(SendError::NoRoutee(_)) => 0,
                    Err(other) => panic!("{other}"),
                },
            };
            let describe = |copies| Step::Sent(Sent { number, is_broadcast, copies });
            steps.push(self.clock.time(send, describe));
        }
        steps
    }

    /// Waits until all that was sent is handled, and gives the operations. Until it is handled a message may go on to
    /// another routee, if `until_handled`.
    fn resolve(&self, history: u64, steps: Vec<Timed<Step>>, until_handled: bool) -> Vec<Timed<Operation>> {
        let mut operations = Vec::new();
        let copies: usize = steps
            .iter()
            .map(|timed| if let Step::Sent(sent) = &timed.operation { sent.copies } else { 0 })
            .sum();
        let mut routees: BTreeMap<usize, Vec<(Name, u64)>> = BTreeMap::new();
        for _ in 0..copies {
            let (name, (of, number), at) = self.got.recv_timeout(LONG).expect("each copy is handled");
            assert_eq!(of, history, "handled twice");
            routees.entry(number).or_default().push((name, at));
        }
        for Timed { called, mut returned, operation } in steps {
            let operation = match operation {
                Step::Done(operation) => operation,
                Step::Sent(Sent { number, is_broadcast, copies }) => {
                    let got = routees.remove(&number).unwrap_or_default();
                    assert_eq!(got.len(), copies, "each copy once");
                    if until_handled {
                        returned = got.iter().map(|(_, at)| *at).fold(returned, u64::max);
                    }
                    let mut names: Vec<Name> = got.into_iter().map(|(name, _)| name).collect();
                    names.sort();
                    if is_broadcast { Broadcast(names) } else { Route(names.pop()) }
                }
            };
            operations.push(Timed { called, returned, operation });
        }
        operations
    }

    fn end(self) {
        let ledger = self.system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        assert!(self.got.try_recv().is_err(), "handled twice");
    }
}

#[test]
fn a_table_is_a_list_that_each_send_reads_at_one_moment() {
    let scene = Scene::new();
    let names: Vec<Name> = (0..4).map(|number| format!("routee-{number}")).collect();
    let routees: Vec<ActorRef<Message>> = names
        .iter()
        .map(|name| {
            let (name, clock, got) = (name.clone(), scene.clock.clone(), scene.log.clone());
            let recipe = move || Worker { name: name.clone(), clock: clock.clone(), got: got.clone() };
            scene.system.spawn(recipe).expect("room")
        })
        .collect();
    let name_of = |routee: &ActorRef<Message>| {
        names[routees.iter().position(|known| known == routee).expect("one of ours")].clone()
    };
    for history in 0..HISTORIES {
        let plan = scene.system.router(&format!("router-{history}")).group(Vec::<ActorRef<Message>>::new());
        let router = &plan.stay_when_empty().spawn().expect("sound");
        let change = |manager: u64| {
            let (scene, names, routees, name_of) = (&scene, &names, &routees, &name_of);
            move || {
                let mut dice = Dice::new(history << 8 | 0x80 | manager);
                let mut steps = Vec::new();
                for _ in 0..CHANGES {
                    dice.pause();
                    let which = dice.roll(4) as usize;
                    let (name, routee) = (names[which].clone(), &routees[which]);
                    let step = match dice.roll(5) {
                        0 | 1 => scene.clock.time(
                            || router.add(routee.clone()).expect("it is open"),
                            |count| Add(name, count),
                        ),
                        2 | 3 => scene.clock.time(
                            || router.remove(routee).expect("it is open"),
                            |was_listed| Remove(name, was_listed),
                        ),
                        _ => scene.clock.time(
                            || router.routees().expect("it is open"),
                            |list| Routees(list.iter().map(name_of).collect()),
                        ),
                    };
                    let Timed { called, returned, operation } = step;
                    steps.push(Timed { called, returned, operation: Step::Done(operation) });
                }
                steps
            }
        };
        let scene = &scene;
        let steps = together(vec![
            Box::new(change(1)),
            Box::new(change(2)),
            Box::new(move || scene.send(router, history, 0, true)),
            Box::new(move || scene.send(router, history, 1, true)),
        ]);
        assert_linearizable::<List>(scene.resolve(history, steps, false));
        router.stop();
    }
    scene.end();
}

/// One by one: of a broadcast the copy for a routee that has just left is a dead letter.
#[test]
fn a_pool_that_is_resized_is_such_a_list_until_a_message_is_handled() {
    let scene = Scene::new();
    for history in 0..HISTORIES {
        let (clock, got) = (scene.clock.clone(), scene.log.clone());
        let recipe = move |ctx: &mut Context<Message>| Worker {
            name: ctx.path().name().to_owned(),
            clock: clock.clone(),
            got: got.clone(),
        };
        let plan = scene.system.router(&format!("pool-{history}")).pool(1, recipe);
        let router = &plan.stay_when_empty().spawn().expect("sound");
        let routees = || -> Vec<Name> {
            let list = router.routees().expect("it is open");
            list.iter().map(|routee| routee.path().name().to_owned()).collect()
        };
        let begin = scene.clock.time(routees, |list| Step::Done(Resize(list)));
        let scene = &scene;
        let resize = move || {
            let mut dice = Dice::new(history << 8 | 0x80);
            let mut steps = vec![begin];
            for _ in 0..CHANGES {
                dice.pause();
                let size = dice.roll(4) as usize;
                let called = scene.clock.now();
                router.resize_to(size).expect("it is open");
                let returned = scene.clock.now();
                // Nobody else changes it.
                steps.push(Timed { called, returned, operation: Step::Done(Resize(routees())) });
            }
            steps
        };
        let steps = together(vec![
            Box::new(resize),
            Box::new(move || scene.send(router, history, 0, false)),
            Box::new(move || scene.send(router, history, 1, false)),
        ]);
        assert_linearizable::<List>(scene.resolve(history, steps, true));
        router.stop();
    }
    scene.end();
}

#[test]
fn histories_of_no_list_are_rejected() {
    let name = |text: &str| text.to_owned();
    let both = || vec![name("a"), name("b")];
    let legal = |history: Vec<Operation>| is_linearizable::<List>(&in_turn(history));
    let begin = || vec![Add(name("a"), 1), Add(name("b"), 2)];
    let with = |more: Vec<Operation>| [begin(), more].concat();
    assert!(legal(with(vec![Route(Some(name("b"))), Remove(name("a"), true), Broadcast(vec![name("b")])])));
    assert!(!legal(with(vec![Remove(name("b"), true), Route(Some(name("b")))])), "sent to who was removed");
    assert!(!legal(vec![Route(Some(name("a")))]), "sent to who was not added");
    assert!(!legal(with(vec![Route(None)])), "refused although there was one");
    assert!(!legal(with(vec![Broadcast(vec![name("b")])])), "to some of them");
    assert!(!legal(with(vec![Remove(name("a"), true), Routees(both())])), "listed after the removal");
    assert!(!legal(with(vec![Remove(name("a"), true), Remove(name("a"), true)])), "removed twice");
    // While the removal is under way, both are legal.
    let mut history = in_turn(with(vec![Route(Some(name("b"))), Route(Some(name("a")))]));
    let end = history.len() as u64 * 2;
    history.push(Timed { called: 3, returned: end, operation: Remove(name("b"), true) });
    history[1].returned = 3;
    history.last_mut().expect("just pushed").called = 4;
    assert!(is_linearizable::<List>(&history));
}
