//! A keyed group against a plain model: for each key nobody, an actor, or one that waits to be restarted.
//!
//! Messages go to one key, to several or to all, gently or not, some all before anybody has a turn; they fail,
//! stop, retire, alarm or change the policy of the actor that gets them. Policies change, keys are mounted, time
//! passes, the group stops creating and ends. Compared are who handles what in which life and why that life began,
//! every status told, dead letters, what was handed back, the keys that are taken, and the books.
//!
//! Planted faults that it was seen to find, shrunk to one to four commands: a count of retries that a long life
//! does not begin anew; a wait that does not double; a policy that outlives the state which had set it; a waiting
//! key that `stop_spawning` and `terminate` forget; a copy for a key that nobody is created for, in no books (it
//! was found so).

use crate::support::cases;
use pointsman::SendError;
use pointsman::group::{
    ActorStatus, Group, GroupPlan, KeyRoute, RestartPolicy, SpawnCause, StatusReport, WhileRestarting,
};
use pointsman::prelude::{Actor, ActorRef, Context, Failure, HandlerResult};
use pointsman::testkit::TestSystem;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const KEYS: u32 = 3;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Whom a message is for.
#[derive(Debug, Clone)]
enum Target {
    One(u32),
    OneGently(u32),
    Some(BTreeSet<u32>),
    SomeGently(BTreeSet<u32>),
    All,
    /// By the reference of the key.
    Key(u32),
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Nothing,
    Fail,
    Panic,
    Stop,
    Retire,
    Alarm,
    Calm,
    /// One's own policy.
    Follow(Option<Policy>),
}

/// A policy in plain numbers: seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Policy {
    when: When,
    min: u64,
    max: u64,
    retries: Option<u32>,
    auto_reset: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Never,
    OnFailure,
    Always,
}

impl Policy {
    fn real(self) -> RestartPolicy {
        let (min, max) = (seconds(self.min), seconds(self.max));
        let mut policy = match self.when {
            When::Never => RestartPolicy::never(),
            When::OnFailure => RestartPolicy::on_failure(min, max),
            When::Always => RestartPolicy::always(min, max),
        };
        if let Some(count) = self.retries {
            policy = policy.max_retries(count);
        }
        match self.auto_reset {
            Some(lived) => policy.auto_reset(seconds(lived)),
            None => policy,
        }
    }
}

#[derive(Debug, Clone)]
struct Message {
    number: usize,
    outcome: KeyRoute<u32>,
    act: Act,
}

#[derive(Debug, Clone)]
enum Command {
    /// All are sent before anybody has a turn; by `try_tell` where it says so.
    Send(Vec<(Target, Act, bool)>),
    Advance(u64),
    Mount(u32),
    SetPolicy(Option<Policy>),
    StopSpawning,
    Terminate,
    Stop,
}

fn target() -> impl Strategy<Value = Target> {
    let keys = || btree_set(0..KEYS, 1..=KEYS as usize);
    prop_oneof![
        8 => (0..KEYS).prop_map(Target::One),
        2 => (0..KEYS).prop_map(Target::OneGently),
        2 => keys().prop_map(Target::Some),
        2 => keys().prop_map(Target::SomeGently),
        2 => Just(Target::All),
        3 => (0..KEYS).prop_map(Target::Key),
        1 => Just(Target::Nobody),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let when = prop_oneof![Just(When::Never), Just(When::OnFailure), Just(When::Always)];
    let limits = (proptest::option::of(0..4_u32), proptest::option::of(1..12_u64));
    (when, 1..6_u64, 0..20_u64, limits).prop_map(|(when, min, more, (retries, auto_reset))| Policy {
        when,
        min,
        max: min + more,
        retries,
        auto_reset,
    })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => Just(Act::Nothing),
        4 => Just(Act::Fail),
        1 => Just(Act::Panic),
        2 => Just(Act::Stop),
        3 => Just(Act::Retire),
        1 => Just(Act::Alarm),
        1 => Just(Act::Calm),
        1 => proptest::option::of(policy()).prop_map(Act::Follow),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        40 => vec((target(), act(), any::<bool>()), 1..6).prop_map(Command::Send),
        20 => (0..15_u64).prop_map(Command::Advance),
        4 => (0..KEYS).prop_map(Command::Mount),
        4 => proptest::option::of(policy()).prop_map(Command::SetPolicy),
        1 => Just(Command::StopSpawning),
        1 => Just(Command::Terminate),
        1 => Just(Command::Stop),
    ]
}

/// What is seen of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Note {
    Began(SpawnCause),
    /// A message, and the how many-th of this state it is.
    Got(usize, usize),
}

struct Lodger {
    key: u32,
    handled: usize,
    notes: Sender<(u32, Note)>,
}

impl Actor for Lodger {
    type Message = Message;
    fn receive(&mut self, message: Message, ctx: &mut Context<Message>) -> HandlerResult {
        self.handled += 1;
        self.notes.send((self.key, Note::Got(message.number, self.handled)))?;
        match message.act {
            Act::Nothing => {}
            Act::Fail => return Err(Failure::msg("as told")),
            Act::Panic => std::panic::resume_unwind(Box::new("as told")),
            Act::Stop => ctx.stop(),
            Act::Retire => ctx.passivate(),
            Act::Alarm => ctx.set_alarming("told"),
            Act::Calm => ctx.set_normal(),
            Act::Follow(policy) => ctx.set_restart_policy(policy.map(Policy::real))?,
        }
        Ok(())
    }
}

/// An actor, or one that waits to be.
#[derive(Debug)]
struct Lodging {
    mailbox: VecDeque<(usize, Act)>,
    handled: usize,
    /// When its present life began.
    began: u64,
    restarts: u32,
    power: u32,
    own_policy: Option<Policy>,
    status: ActorStatus,
    /// When it is restarted, if it waits for that.
    waits_until: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Openness {
    Open,
    NoSpawn,
    Closed,
}

struct Model {
    now: u64,
    keys: BTreeMap<u32, Lodging>,
    plan: Policy,
    told_policy: Option<Policy>,
    while_restarting: WhileRestarting,
    openness: Openness,
    notes: BTreeMap<u32, Vec<Note>>,
    statuses: BTreeMap<u32, Vec<ActorStatus>>,
    dead: Vec<usize>,
    /// Copies that were refused and may have been used again for another key: they are counted, not shown.
    refused: Vec<usize>,
    dead_letters: u64,
    handed_back: u64,
    handled: u64,
}

/// What became of a message that was sent.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Taken,
    Closed,
    Discarded,
}

impl Model {
    fn note(&mut self, key: u32, note: Note) {
        self.notes.entry(key).or_default().push(note);
    }

    /// Changes are told, and nothing else is.
    fn status(&mut self, key: u32, status: ActorStatus) {
        let before = std::mem::replace(&mut self.keys.get_mut(&key).unwrap().status, status.clone());
        if before != status {
            self.statuses.entry(key).or_default().push(status);
        }
    }

    fn spawns(&self) -> bool {
        self.openness == Openness::Open
    }

    /// A state is made.
    fn begin(&mut self, key: u32, cause: SpawnCause) {
        let now = self.now;
        let lodging = self.keys.get_mut(&key).unwrap();
        lodging.waits_until = None;
        lodging.handled = 0;
        lodging.began = now;
        lodging.own_policy = None;
        self.note(key, Note::Began(cause));
        self.status(key, ActorStatus::Initialising);
        self.status(key, ActorStatus::Normal);
    }

    fn create(&mut self, key: u32, cause: SpawnCause) {
        let lodging = Lodging {
            mailbox: VecDeque::new(),
            handled: 0,
            began: 0,
            restarts: 0,
            power: 0,
            own_policy: None,
            status: ActorStatus::Terminated,
            waits_until: None,
        };
        self.keys.insert(key, lodging);
        self.begin(key, cause);
    }

    /// Offers to one key; false if it is closed.
    fn offer(&mut self, key: u32, number: usize, act: Act, creates: bool) -> bool {
        match self.keys.get(&key).map(|lodging| lodging.waits_until.is_some()) {
            None if creates && self.spawns() => self.create(key, SpawnCause::OnMessage),
            None => return false,
            Some(true) => match self.while_restarting {
                WhileRestarting::Queue => {}
                WhileRestarting::SpawnAnew if creates => self.begin(key, SpawnCause::Restarted),
                _ => return false,
            },
            Some(false) => {}
        }
        self.keys.get_mut(&key).unwrap().mailbox.push_back((number, act));
        true
    }

    fn send(&mut self, number: usize, target: &Target, act: Act, hands_back: bool) -> Sent {
        let all: Vec<u32> = self.keys.keys().copied().collect();
        let (keys, creates) = match target {
            _ if self.openness == Openness::Closed => (Vec::new(), false),
            Target::One(key) | Target::Key(key) => (vec![*key], true),
            Target::OneGently(key) => (vec![*key], false),
            Target::Some(keys) => (keys.iter().copied().collect(), true),
            // Those that are absent are passed over.
            Target::SomeGently(keys) => {
                (keys.iter().copied().filter(|key| all.contains(key)).collect(), false)
            }
            Target::All => (all, false),
            Target::Nobody => (Vec::new(), false),
        };
        let taken: Vec<bool> = keys.iter().map(|key| self.offer(*key, number, act, creates)).collect();
        let refused = taken.iter().filter(|taken| !**taken).count();
        if refused < taken.len() {
            self.refused.extend(vec![number; refused]);
            return Sent::Taken;
        }
        // The last refusal is the message's own.
        self.refused.extend(vec![number; refused.saturating_sub(1)]);
        match hands_back {
            true => self.handed_back += 1,
            false => self.dead.push(number),
        }
        match target {
            Target::Nobody if self.openness != Openness::Closed => Sent::Discarded,
            _ => Sent::Closed,
        }
    }

    /// After how long one that has failed or ended is restarted.
    fn wait(&mut self, key: u32, has_failed: bool) -> Option<u64> {
        let (now, spawns) = (self.now, self.spawns());
        let lodging = self.keys.get_mut(&key).unwrap();
        let policy = lodging.own_policy.or(self.told_policy).unwrap_or(self.plan);
        let applies = match policy.when {
            When::Never => false,
            When::OnFailure => has_failed,
            When::Always => true,
        };
        if !applies || !spawns {
            return None;
        }
        let has_lived = now - lodging.began >= policy.auto_reset.unwrap_or(policy.min);
        if has_lived {
            lodging.restarts = 0;
            lodging.power = 0;
        }
        if policy.retries.is_some_and(|retries| lodging.restarts >= retries) {
            return None;
        }
        lodging.restarts += 1;
        if has_lived {
            return Some(0);
        }
        let wait = (policy.min << lodging.power).min(policy.max);
        lodging.power += 1;
        Some(wait)
    }

    /// What is in the mailbox is dead.
    fn bury(&mut self, key: u32) {
        let left = std::mem::take(&mut self.keys.get_mut(&key).unwrap().mailbox);
        self.dead.extend(left.into_iter().map(|(number, _)| number));
    }

    /// The key is free.
    fn end(&mut self, key: u32) {
        self.bury(key);
        self.status(key, ActorStatus::Terminating);
        self.status(key, ActorStatus::Terminated);
        self.keys.remove(&key);
    }

    /// It has failed, or stopped.
    fn ended(&mut self, key: u32, has_failed: bool) {
        if has_failed {
            self.status(key, ActorStatus::Failed);
        }
        let Some(wait) = self.wait(key, has_failed) else { return self.end(key) };
        let stays_in_place = has_failed && self.while_restarting == WhileRestarting::Queue;
        if !stays_in_place {
            self.bury(key);
            self.status(key, ActorStatus::Terminating);
        }
        let until = self.now + wait;
        self.keys.get_mut(&key).unwrap().waits_until = Some(until);
        if wait == 0 {
            self.begin(key, SpawnCause::Restarted);
        }
    }

    fn handle(&mut self, key: u32, number: usize, act: Act) {
        self.handled += 1;
        let lodging = self.keys.get_mut(&key).unwrap();
        lodging.handled += 1;
        let handled = lodging.handled;
        let is_empty = lodging.mailbox.is_empty();
        let is_alarmed = matches!(lodging.status, ActorStatus::Alarming(_));
        if let Act::Follow(policy) = act {
            lodging.own_policy = policy;
        }
        self.note(key, Note::Got(number, handled));
        match act {
            Act::Nothing | Act::Follow(_) => {}
            Act::Fail | Act::Panic => self.ended(key, true),
            Act::Stop => self.ended(key, false),
            Act::Retire if is_empty => self.end(key),
            Act::Retire => {}
            Act::Alarm => self.status(key, ActorStatus::Alarming("told".into())),
            Act::Calm if is_alarmed => self.status(key, ActorStatus::Normal),
            Act::Calm => {}
        }
    }

    fn rest(&mut self) {
        for key in 0..KEYS {
            while let Some(lodging) = self.keys.get_mut(&key) {
                match lodging.mailbox.pop_front() {
                    Some((number, act)) if lodging.waits_until.is_none() => self.handle(key, number, act),
                    Some(waiting) => {
                        lodging.mailbox.push_front(waiting);
                        break;
                    }
                    None => break,
                }
            }
        }
    }

    fn advance(&mut self, by: u64) {
        let end = self.now + by;
        loop {
            let waiting = self.keys.iter().filter_map(|(key, lodging)| Some((lodging.waits_until?, *key)));
            let Some((until, key)) = waiting.min().filter(|(until, _)| *until <= end) else { break };
            self.now = until;
            self.begin(key, SpawnCause::Restarted);
            self.rest();
        }
        self.now = end;
    }

    /// No actor is created or restarted from now on.
    fn close(&mut self, openness: Openness) {
        self.openness = self.openness_or(openness);
        for key in 0..KEYS {
            if self.keys.get(&key).is_some_and(|lodging| lodging.waits_until.is_some()) {
                self.end(key);
            }
        }
        if self.openness == Openness::Closed {
            (0..KEYS)
                .filter(|key| self.keys.contains_key(key))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|key| self.end(key));
        }
    }

    fn openness_or(&mut self, openness: Openness) -> Openness {
        std::mem::replace(&mut self.openness, Openness::Open).max(openness)
    }
}

/// What is seen of the group.
struct Scene {
    group: Group<Message, u32>,
    notes: Receiver<(u32, Note)>,
    statuses: Receiver<(u32, ActorStatus)>,
    dead: Receiver<usize>,
}

impl Scene {
    #[track_caller]
    fn check(&self, model: &mut Model) {
        fn by_key<T>(seen: &Receiver<(u32, T)>) -> BTreeMap<u32, Vec<T>> {
            let mut by_key: BTreeMap<u32, Vec<T>> = BTreeMap::new();
            seen.try_iter().for_each(|(key, note)| by_key.entry(key).or_default().push(note));
            by_key
        }
        assert_eq!(by_key(&self.notes), std::mem::take(&mut model.notes));
        assert_eq!(by_key(&self.statuses), std::mem::take(&mut model.statuses));
        let mut dead: Vec<usize> = self.dead.try_iter().collect();
        model.dead_letters += (model.dead.len() + model.refused.len()) as u64;
        for number in model.dead.drain(..) {
            let shown = dead.iter().position(|dead| *dead == number);
            dead.remove(shown.unwrap_or_else(|| panic!("{number} is no dead letter")));
        }
        for number in dead {
            let refused = model.refused.iter().position(|refused| *refused == number);
            model.refused.remove(refused.unwrap_or_else(|| panic!("{number} is a dead letter")));
        }
        model.refused.clear();
        let mut keys = self.group.keys();
        keys.sort_unstable();
        assert_eq!(keys, model.keys.keys().copied().collect::<Vec<_>>());
        assert_eq!(self.group.len(), keys.len());
    }

    fn send(&self, number: usize, target: &Target, act: Act, hands_back: bool) -> Option<Sent> {
        let outcome = match target.clone() {
            Target::One(key) => KeyRoute::Unicast(key),
            Target::OneGently(key) => KeyRoute::GentleUnicast(key),
            Target::Some(keys) => KeyRoute::Multicast(keys.into_iter().collect()),
            Target::SomeGently(keys) => KeyRoute::GentleMulticast(keys.into_iter().collect()),
            Target::All => KeyRoute::Broadcast,
            Target::Key(_) | Target::Nobody => KeyRoute::Discard,
        };
        let to = match target {
            Target::Key(key) => self.group.key(*key),
            _ => self.group.to_ref(),
        };
        let message = Message { number, outcome, act };
        if !hands_back {
            to.tell(message);
            return None;
        }
        Some(match to.try_tell(message) {
            Ok(()) => Sent::Taken,
            Err(SendError::Closed(back)) if back.number == number => Sent::Closed,
            Err(SendError::Discarded(back)) if back.number == number => Sent::Discarded,
            Err(other) => panic!("{other}"),
        })
    }
}

fn run(seed: u64, plan: Policy, while_restarting: WhileRestarting, commands: Vec<Command>) {
    let system = TestSystem::with_seed(seed);
    let (letters, dead) = channel();
    let take = move |message: Message, _| _ = letters.send(message.number);
    let _sink = system.dead_letters().take_by::<Message>(|_| {}, take).unwrap();
    let (sender, notes) = channel();
    let group_plan: GroupPlan<Message, u32> = system.group("lodgers").keyed(
        |message: &Message| message.outcome.clone(),
        move |ctx, key: &u32| {
            let _ = sender.send((*key, Note::Began(ctx.spawn_cause().expect("of a group"))));
            Lodger { key: *key, handled: 0, notes: sender.clone() }
        },
    );
    let group = group_plan.restart(plan.real()).while_restarting(while_restarting).spawn().unwrap();
    let (sender, statuses) = channel();
    group.subscribe_statuses(&ActorRef::from_fn(move |report: StatusReport<u32>| {
        let _ = sender.send((report.key, report.status));
    }));
    let scene = Scene { group, notes, statuses, dead };
    let group = &scene.group;
    let mut model = Model {
        now: 0,
        keys: BTreeMap::new(),
        plan,
        told_policy: None,
        while_restarting,
        openness: Openness::Open,
        notes: BTreeMap::new(),
        statuses: BTreeMap::new(),
        dead: Vec::new(),
        refused: Vec::new(),
        dead_letters: 0,
        handed_back: 0,
        handled: 0,
    };
    let mut sent = 0;
    for command in commands {
        match command {
            Command::Send(messages) => {
                for (target, act, hands_back) in messages {
                    sent += 1;
                    let expected = model.send(sent, &target, act, hands_back);
                    let seen = scene.send(sent, &target, act, hands_back);
                    assert!(seen.is_none_or(|seen| seen == expected), "{sent} was {expected:?}");
                }
            }
            Command::Advance(by) => {
                system.advance(seconds(by));
                model.advance(by);
            }
            Command::Mount(key) => {
                let mounted = group.mount(key).is_ok();
                let is_taken = model.keys.contains_key(&key);
                assert_eq!(mounted, is_taken || model.spawns());
                if mounted && !is_taken {
                    model.create(key, SpawnCause::Mounted);
                }
            }
            Command::SetPolicy(policy) => {
                group.set_restart_policy(policy.map(Policy::real)).unwrap();
                model.told_policy = policy;
            }
            Command::StopSpawning => {
                group.stop_spawning();
                model.close(Openness::NoSpawn);
            }
            Command::Terminate => {
                group.terminate("told");
                model.close(Openness::Closed);
            }
            Command::Stop => {
                group.stop();
                model.close(Openness::Closed);
            }
        }
        system.run_until_idle();
        model.rest();
        scene.check(&mut model);
    }
    group.terminate("the end");
    model.close(Openness::Closed);
    system.run_until_idle();
    scene.check(&mut model);
    let ledger = system.finish();
    assert_eq!(
        (ledger.handled, ledger.dead_lettered, ledger.handed_back),
        (model.handled, model.dead_letters, model.handed_back),
        "{ledger}"
    );
}

proptest! {
    #![proptest_config(cases("tests/properties/topology.seeds"))]

    #[test]
    fn who_has_which_key_and_what_becomes_of_each_message_is_what_the_list_of_keys_says(
        seed in any::<u64>(),
        plan in policy(),
        while_restarting in prop_oneof![
            Just(WhileRestarting::Queue),
            Just(WhileRestarting::Refuse),
            Just(WhileRestarting::SpawnAnew),
        ],
        commands in vec(command(), 1..40),
    ) {
        run(seed, plan, while_restarting, commands);
    }
}
