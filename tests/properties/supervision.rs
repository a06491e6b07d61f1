//! A family of actors, three generations, against a plain model of who lives, with which state, and who is told
//! what.
//!
//! Actors are created, fail by errors and by panics, are stopped, poisoned, killed, and watch each other; each
//! failure says what each level is to do about it. Strategies, limits and whether children outlive a restart differ
//! from case to case. Compared are all that each actor notes (hooks, messages with the state they met, notices of
//! ends), the order of ends in the family, dead letters and books.
//!
//! Planted faults that it was seen to find, shrunk to two to four commands: an unwatch that leaves the watch; children
//! that are kept over a restart and not restarted; a window of restarts that never opens anew;
//! all-for-one that passes over the siblings' limits.

use crate::support::cases;
use pointsman::prelude::{Actor, ActorRef, Context, Directive, Failure, HandlerResult, Terminated};
use pointsman::testkit::TestSystem;
use pointsman::{AnyActorRef, FailureKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One of the family: `top`, `top/a`, `top/a/b`, by at most two places among [`NAMES`].
type Name = String;

const TOP: &str = "top";
const NAMES: [&str; 2] = ["a", "b"];
const GENERATIONS: usize = 3;

/// How deep one stands: 0 for the top.
fn generation(name: &str) -> usize {
    name.split('/').count() - 1
}

fn parent(name: &str) -> &str {
    name.rsplit_once('/').expect("not the top").0
}

/// How one generation judges the next, and what it does with it when it restarts.
#[derive(Debug, Clone, Copy)]
struct Manners {
    all_for_one: bool,
    keeps_children: bool,
    /// So many restarts, within so many seconds or for life.
    limit: Option<(u32, Option<u64>)>,
}

/// What each generation's failure leads to, if it gets so far: its own, its parent's, …, by generation.
type Verdicts = [Verdict; GENERATIONS];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Resume,
    Restart,
    Stop,
    Escalate,
}

#[derive(Debug, Clone)]
enum Act {
    Say(u32),
    Fail { verdicts: Verdicts, by_panic: bool },
    Spawn(usize),
    Watch(Name),
    Unwatch(Name),
}

#[derive(Debug, Clone)]
enum Command {
    /// All are in the mailbox before the first is handled.
    Tell(Name, Vec<Act>),
    Stop(Name),
    /// After these messages.
    Poison(Name, Vec<Act>),
    Kill(Name),
    Advance(u64),
}

fn name() -> impl Strategy<Value = Name> {
    let one = || (0..NAMES.len()).prop_map(|place| NAMES[place]);
    prop_oneof![
        2 => Just(TOP.to_owned()),
        6 => one().prop_map(|child| format!("{TOP}/{child}")),
        3 => (one(), one()).prop_map(|(child, grandchild)| format!("{TOP}/{child}/{grandchild}")),
    ]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        8 => Just(Verdict::Restart),
        2 => Just(Verdict::Escalate),
        2 => Just(Verdict::Resume),
        1 => Just(Verdict::Stop),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..100_u32).prop_map(Act::Say),
        4 => ([verdict(), verdict(), verdict()], any::<bool>())
            .prop_map(|(verdicts, by_panic)| Act::Fail { verdicts, by_panic }),
        4 => (0..NAMES.len()).prop_map(Act::Spawn),
        2 => name().prop_map(Act::Watch),
        1 => name().prop_map(Act::Unwatch),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        14 => (name(), vec(act(), 1..6)).prop_map(|(to, acts)| Command::Tell(to, acts)),
        1 => name().prop_map(Command::Stop),
        1 => (name(), vec(act(), 0..3)).prop_map(|(to, acts)| Command::Poison(to, acts)),
        1 => name().prop_map(Command::Kill),
        4 => (0..8_u64).prop_map(Command::Advance),
    ]
}

/// Brothers and sisters come, and fail by themselves.
fn sibling_command() -> impl Strategy<Value = Command> {
    let name = (0..NAMES.len()).prop_map(|place| format!("{TOP}/{}", NAMES[place]));
    let act = prop_oneof![
        1 => (0..100_u32).prop_map(Act::Say),
        2 => any::<bool>()
            .prop_map(|by_panic| Act::Fail { verdicts: [Verdict::Restart; GENERATIONS], by_panic }),
    ];
    prop_oneof![
        3 => (0..NAMES.len()).prop_map(|place| Command::Tell(TOP.to_owned(), vec![Act::Spawn(place)])),
        4 => (name, vec(act, 1..3)).prop_map(|(to, acts)| Command::Tell(to, acts)),
        1 => (0..8_u64).prop_map(Command::Advance),
    ]
}

fn manners() -> impl Strategy<Value = Manners> {
    let limit = (0..4_u32, proptest::option::of(0..6_u64));
    (any::<bool>(), any::<bool>(), proptest::option::of(limit))
        .prop_map(|(all_for_one, keeps_children, limit)| Manners { all_for_one, keeps_children, limit })
}

/// What one of the family notes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Note {
    Made,
    Started,
    Said { number: u32, state: u32 },
    Refused,
    Restarting,
    Restarted,
    Stopped { state: u32 },
    Lost(Name),
}

/// What all of the family share.
#[derive(Clone)]
struct Family {
    manners: [Manners; GENERATIONS],
    notes: Sender<(Name, Note)>,
    /// The latest of each name.
    members: Arc<Mutex<BTreeMap<Name, ActorRef<Act>>>>,
}

struct Member {
    name: Name,
    family: Family,
    state: u32,
}

/// The cause that the levels decide by.
#[derive(Debug)]
struct Cause(Verdicts);

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Cause {}

/// What the failure of an actor of this generation leads to. What the top cannot pass on restarts it.
fn decide(verdicts: Verdicts, generation: usize) -> Verdict {
    match verdicts[generation] {
        Verdict::Escalate if generation == 0 => Verdict::Restart,
        other => other,
    }
}

fn directive(child: &AnyActorRef, failure: &Failure) -> Directive {
    let path = child.path().to_string();
    let generation = generation(path.strip_prefix("/user/").expect("below /user"));
    let by_panic = failure.panic_payload().and_then(|payload| payload.downcast_ref::<Verdicts>());
    let verdicts = failure.downcast_ref::<Cause>().map(|cause| cause.0).or(by_panic.copied());
    match verdicts.map(|verdicts| decide(verdicts, generation)) {
        None => {
            assert_eq!(failure.kind(), FailureKind::Killed);
            Directive::Stop
        }
        Some(Verdict::Resume) => Directive::Resume,
        Some(Verdict::Restart) => Directive::Restart,
        Some(Verdict::Stop) => Directive::Stop,
        Some(Verdict::Escalate) => Directive::Escalate,
    }
}

impl Member {
    fn note(&self, note: Note) {
        let _ = self.family.notes.send((self.name.clone(), note));
    }

    fn manners(&self) -> Manners {
        self.family.manners[generation(&self.name)]
    }
}

impl Family {
    fn recipe(&self, name: &str) -> impl FnMut() -> Member + Send + use<> {
        let (family, name) = (self.clone(), name.to_owned());
        move || {
            let member = Member { name: name.clone(), family: family.clone(), state: 0 };
            member.note(Note::Made);
            member
        }
    }

    fn member(&self, name: &str) -> Option<ActorRef<Act>> {
        self.members.lock().unwrap().get(name).cloned()
    }
}

impl Actor for Member {
    type Message = Act;

    fn receive(&mut self, act: Act, ctx: &mut Context<Act>) -> HandlerResult {
        match act {
            Act::Say(number) => {
                self.state += 1;
                self.note(Note::Said { number, state: self.state });
            }
            Act::Fail { verdicts, by_panic: true } => std::panic::resume_unwind(Box::new(verdicts)),
            Act::Fail { verdicts, by_panic: false } => return Err(Cause(verdicts).into()),
            Act::Spawn(place) if generation(&self.name) + 1 < GENERATIONS => {
                let name = format!("{}/{}", self.name, NAMES[place]);
                match ctx.actor(NAMES[place]).spawn(self.family.recipe(&name)) {
                    Ok(child) => _ = self.family.members.lock().unwrap().insert(name, child),
                    Err(_) => self.note(Note::Refused),
                }
            }
            Act::Spawn(_) => {}
            Act::Watch(other) => match self.family.member(&other) {
                Some(member) if other != self.name => ctx.watch(&member).expect("no other notice"),
                _ => {}
            },
            Act::Unwatch(other) => {
                if let Some(member) = self.family.member(&other) {
                    ctx.unwatch(&member);
                }
            }
        }
        Ok(())
    }

    fn started(&mut self, _: &mut Context<Act>) -> HandlerResult {
        self.note(Note::Started);
        Ok(())
    }

    fn restarting(&mut self, _: &Failure, ctx: &mut Context<Act>) -> HandlerResult {
        if !self.manners().keeps_children {
            ctx.stop_children();
        }
        self.note(Note::Restarting);
        Ok(())
    }

    fn restarted(&mut self, _: &Failure, _: &mut Context<Act>) -> HandlerResult {
        self.note(Note::Restarted);
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Act>) {
        self.note(Note::Stopped { state: self.state });
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Act>) -> HandlerResult {
        let path = terminated.actor.path().to_string();
        self.note(Note::Lost(path.strip_prefix("/user/").expect("below /user").to_owned()));
        Ok(())
    }

    fn supervision(&self) -> pointsman::Strategy {
        let manners = self.manners();
        let mut strategy = pointsman::Strategy::decide_for(directive).quiet();
        if let Some((count, window)) = manners.limit {
            strategy = strategy.max_restarts(count);
            if let Some(seconds) = window {
                strategy = strategy.within(Duration::from_secs(seconds));
            }
        }
        if manners.all_for_one { strategy.all_for_one() } else { strategy }
    }
}

/// A living one.
#[derive(Default)]
struct Life {
    /// Tells it from others of its name.
    number: u64,
    state: u32,
    /// By name and number.
    watched: BTreeSet<(Name, u64)>,
    restarts: u32,
    window_opened: Option<u64>,
}

struct Model {
    manners: [Manners; GENERATIONS],
    now: u64,
    living: BTreeMap<Name, Life>,
    /// The latest of each name.
    numbers: BTreeMap<Name, u64>,
    made: u64,
    notes: BTreeMap<Name, Vec<Note>>,
    /// Those who have ended since the last rest.
    ended: BTreeSet<Name>,
    /// What they may have been told before.
    may_have_lost: BTreeSet<(Name, Name)>,
    told: u64,
    dead_letters: u64,
}

impl Model {
    fn new(manners: [Manners; GENERATIONS]) -> Self {
        let mut model = Self {
            manners,
            now: 0,
            living: BTreeMap::new(),
            numbers: BTreeMap::new(),
            made: 0,
            notes: BTreeMap::new(),
            ended: BTreeSet::new(),
            may_have_lost: BTreeSet::new(),
            told: 0,
            dead_letters: 0,
        };
        model.create(TOP);
        model
    }

    fn note(&mut self, name: &str, note: Note) {
        self.notes.entry(name.to_owned()).or_default().push(note);
    }

    fn create(&mut self, name: &str) {
        self.made += 1;
        self.numbers.insert(name.to_owned(), self.made);
        self.living.insert(name.to_owned(), Life { number: self.made, ..Life::default() });
        self.note(name, Note::Made);
        self.note(name, Note::Started);
    }

    fn children(&self, name: &str) -> Vec<Name> {
        let is_child = |other: &&Name| generation(other) > 0 && parent(other) == name;
        self.living.keys().filter(is_child).cloned().collect()
    }

    fn end(&mut self, name: &str) {
        self.children(name).iter().for_each(|child| self.end(child));
        let Some(life) = self.living.remove(name) else { return };
        self.note(name, Note::Stopped { state: life.state });
        self.ended.insert(name.to_owned());
        self.may_have_lost.extend(life.watched.into_iter().map(|(lost, _)| (name.to_owned(), lost)));
    }

    fn restart(&mut self, name: &str) {
        let children = self.children(name);
        let keeps = self.manners[generation(name)].keeps_children;
        if !keeps {
            for child in &children {
                let number = self.living[child].number;
                self.living.get_mut(name).unwrap().watched.remove(&(child.clone(), number));
                self.end(child);
            }
        }
        self.living.get_mut(name).unwrap().state = 0;
        for note in [Note::Restarting, Note::Made, Note::Restarted] {
            self.note(name, note);
        }
        if keeps {
            children.iter().for_each(|child| self.restart(child));
        }
    }

    /// Whether one may be restarted once more, which counts.
    fn may_restart(&mut self, name: &str) -> bool {
        if name == TOP {
            return true;
        }
        let Some((count, window)) = self.manners[generation(name) - 1].limit else { return true };
        let life = self.living.get_mut(name).unwrap();
        if let Some(window) = window {
            if life.window_opened.is_none_or(|opened| self.now - opened > window) {
                life.window_opened = Some(self.now);
                life.restarts = 0;
            }
        }
        life.restarts += 1;
        life.restarts <= count
    }

    fn judge(&mut self, name: &str, verdicts: Verdicts) {
        let generation = generation(name);
        let mut verdict = decide(verdicts, generation);
        let mut concerned = vec![name.to_owned()];
        if generation > 0 && self.manners[generation - 1].all_for_one {
            concerned = self.children(parent(name));
        }
        if verdict == Verdict::Restart && !concerned.iter().all(|one| self.may_restart(one)) {
            verdict = Verdict::Stop;
        }
        match verdict {
            Verdict::Resume => {}
            Verdict::Restart => concerned.iter().for_each(|one| self.restart(one)),
            Verdict::Stop => concerned.iter().for_each(|one| self.end(one)),
            Verdict::Escalate => self.judge(parent(name), verdicts),
        }
    }

    fn act(&mut self, name: &str, act: Act) {
        self.told += 1;
        let Some(life) = self.living.get_mut(name) else {
            self.dead_letters += 1;
            return;
        };
        match act {
            Act::Say(number) => {
                life.state += 1;
                let state = life.state;
                self.note(name, Note::Said { number, state });
            }
            Act::Fail { verdicts, .. } => self.judge(name, verdicts),
            Act::Spawn(place) if generation(name) + 1 < GENERATIONS => {
                let child = format!("{name}/{}", NAMES[place]);
                match self.living.contains_key(&child) {
                    true => self.note(name, Note::Refused),
                    false => self.create(&child),
                }
            }
            Act::Spawn(_) => {}
            Act::Watch(other) if other == name => {}
            Act::Watch(other) => {
                if let Some(number) = self.numbers.get(&other) {
                    life.watched.insert((other, *number));
                }
            }
            Act::Unwatch(other) => {
                if let Some(number) = self.numbers.get(&other) {
                    life.watched.remove(&(other, *number));
                }
            }
        }
    }

    /// Nobody has anything left to do: who watches one that has ended has been told.
    fn rest(&mut self) {
        let living: BTreeSet<u64> = self.living.values().map(|life| life.number).collect();
        for (name, life) in &mut self.living {
            let (watched, ended) = std::mem::take(&mut life.watched)
                .into_iter()
                .partition(|(_, number)| living.contains(number));
            life.watched = watched;
            let lost = ended.into_iter().map(|(lost, _): (Name, u64)| Note::Lost(lost));
            self.notes.entry(name.clone()).or_default().extend(lost);
        }
    }

    /// Compares. When a notice comes among the other notes of its actor is not known.
    fn check(&mut self, seen: &Receiver<(Name, Note)>, alive: &mut BTreeSet<Name>) {
        self.rest();
        let mut notes: BTreeMap<Name, Vec<Note>> = BTreeMap::new();
        for (name, note) in seen.try_iter() {
            let is_below = |other: &Name| other.starts_with(&format!("{name}/"));
            match note {
                Note::Made => {
                    let keeps = self.manners[generation(&name)].keeps_children;
                    assert!(
                        keeps || !alive.iter().any(is_below),
                        "{name} began anew before its children's end"
                    );
                    alive.insert(name.clone());
                }
                // Its state is as good as gone.
                Note::Restarting => assert!(alive.remove(&name), "{name} has no state to retire"),
                Note::Stopped { .. } => {
                    assert!(!alive.iter().any(is_below), "{name} ended before its children: {alive:?}");
                    assert!(alive.remove(&name), "{name} ended twice");
                }
                _ => {}
            }
            notes.entry(name).or_default().push(note);
        }
        let is_notice = |note: &Note| matches!(note, Note::Lost(_));
        for (name, mut expected) in std::mem::take(&mut self.notes) {
            let mut seen = notes.remove(&name).unwrap_or_default();
            for list in [&mut expected, &mut seen] {
                let mut notices: Vec<Note> = list.extract_if_all(is_notice);
                notices.sort();
                list.append(&mut notices);
            }
            // One that ends now may be told first of others that do.
            seen.retain(|note| match note {
                Note::Lost(lost) => {
                    expected.contains(note) || !self.may_have_lost.contains(&(name.clone(), lost.clone()))
                }
                _ => true,
            });
            // One whose end comes while its restart waits for its children has no other state.
            if self.ended.contains(&name) && seen != expected {
                if let Some(Note::Stopped { state: 0 }) = expected.last() {
                    let last = expected.len().saturating_sub(3);
                    assert_eq!(
                        expected.split_off(last)[..2],
                        [Note::Made, Note::Restarted],
                        "{name} {seen:?}"
                    );
                    // Restarts that its parent asked for meanwhile wait for the first restart, and end with it.
                    let waiting = [Note::Made, Note::Restarted, Note::Restarting];
                    while expected.len() > seen.len() && expected.ends_with(&waiting) {
                        expected.truncate(expected.len() - waiting.len());
                    }
                }
            }
            assert_eq!(seen, expected, "{name}");
        }
        assert!(notes.is_empty(), "nobody expected {notes:?}");
        self.ended.clear();
        self.may_have_lost.clear();
    }
}

/// Takes out what matches, in order.
trait ExtractAll<T> {
    fn extract_if_all(&mut self, matches: impl Fn(&T) -> bool) -> Vec<T>;
}

impl<T> ExtractAll<T> for Vec<T> {
    fn extract_if_all(&mut self, matches: impl Fn(&T) -> bool) -> Vec<T> {
        let (taken, left) = std::mem::take(self).into_iter().partition(matches);
        *self = left;
        taken
    }
}

fn run(seed: u64, manners: [Manners; GENERATIONS], commands: Vec<Command>) {
    let system = TestSystem::with_seed(seed);
    let (sender, notes) = channel();
    let family = Family { manners, notes: sender, members: Arc::default() };
    let strategy = pointsman::Strategy::decide_for(directive).quiet();
    let top = system.actor(TOP).on_failure(strategy).spawn(family.recipe(TOP)).unwrap();
    family.members.lock().unwrap().insert(TOP.to_owned(), top);
    system.run_until_idle();
    let mut alive = BTreeSet::new();
    let mut model = Model::new(manners);
    model.check(&notes, &mut alive);
    for command in commands {
        match command {
            Command::Advance(seconds) => {
                system.advance(Duration::from_secs(seconds));
                model.now += seconds;
            }
            Command::Tell(name, acts) => {
                let Some(member) = family.member(&name) else { continue };
                acts.iter().for_each(|act| member.tell(act.clone()));
                acts.into_iter().for_each(|act| model.act(&name, act));
            }
            Command::Poison(name, acts) => {
                let Some(member) = family.member(&name) else { continue };
                acts.iter().for_each(|act| member.tell(act.clone()));
                member.poison();
                acts.into_iter().for_each(|act| model.act(&name, act));
                model.end(&name);
            }
            Command::Stop(name) => {
                let Some(member) = family.member(&name) else { continue };
                member.stop();
                model.end(&name);
            }
            Command::Kill(name) => {
                let Some(member) = family.member(&name) else { continue };
                let lives = model.living.contains_key(&name);
                member.kill();
                if lives {
                    model.judge(&name, [Verdict::Stop; GENERATIONS]);
                }
            }
        }
        system.run_until_idle();
        model.check(&notes, &mut alive);
        assert_eq!(alive, model.living.keys().cloned().collect());
    }
    family.member(TOP).unwrap().stop();
    model.end(TOP);
    system.run_until_idle();
    model.check(&notes, &mut alive);
    let ledger = system.finish();
    let handled = model.told - model.dead_letters;
    assert_eq!(
        (ledger.sent, ledger.handled, ledger.dead_lettered),
        (model.told, handled, model.dead_letters),
        "{ledger}"
    );
}

proptest! {
    #![proptest_config(cases("tests/properties/supervision.seeds"))]

    #[test]
    fn who_lives_with_which_state_and_who_is_told_is_what_the_family_says(
        seed in any::<u64>(),
        manners in [manners(), manners(), manners()],
        commands in vec(command(), 1..40),
    ) {
        run(seed, manners, commands);
    }

    #[test]
    fn siblings_who_share_their_fate_end_together_when_one_is_beyond_its_limit(
        seed in any::<u64>(),
        limit in (1..3_u32, proptest::option::of(1..6_u64)),
        commands in vec(sibling_command(), 1..40),
    ) {
        let manners = Manners { all_for_one: true, keeps_children: true, limit: Some(limit) };
        run(seed, [manners; GENERATIONS], commands);
    }
}

/// The parent restarts twice and ends, while the child's first restart waits for the grandchild's end.
#[test]
fn an_end_overtakes_restarts_that_wait_for_the_end_of_children() {
    let keeps = |keeps_children| Manners { all_for_one: false, keeps_children, limit: None };
    let fail = |verdict| Act::Fail { verdicts: [verdict; GENERATIONS], by_panic: false };
    for seed in 0..200 {
        let commands = vec![
            Command::Tell(TOP.to_owned(), vec![Act::Spawn(0)]),
            Command::Tell("top/a".to_owned(), vec![Act::Spawn(1)]),
            Command::Tell(
                TOP.to_owned(),
                vec![fail(Verdict::Restart), fail(Verdict::Restart), fail(Verdict::Stop)],
            ),
        ];
        run(seed, [keeps(true), keeps(false), keeps(false)], commands);
    }
}
