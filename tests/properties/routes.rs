//! The routes of a topology against a plain model: for each group a list of routes, and a mailbox.
//!
//! Groups are mounted one after the other, messages are sent without an address before, between and after, some beyond
//! the capacity of mailboxes, and actors stop. Compared are where each message goes by its conditions, the report or the
//! error with the message in it, who handles what in which order, dead letters by recipient, what `start` says, and
//! the books.
//!
//! Planted faults that it was seen to find, shrunk to one or two commands: of several conditions only the first is asked;
//! two routes to one group are kept as two; the last of four copies is dropped and in no books.

use crate::support::cases;
use pointsman::prelude::{Actor, ActorRef, Context, HandlerResult};
use pointsman::testkit::TestSystem;
use pointsman::topology::{DeclaredGroup, Outlet, SendMode, TopologyError};
use pointsman::{Mailbox, OverflowPolicy, SendError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

const GROUPS: usize = 4;

/// A message: its number, and what conditions look at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Message {
    number: usize,
    kind: u8,
}

/// Of so many kinds.
const KINDS: u8 = 4;

/// From one group to another; for messages of these kinds, a bit for each, or for all without asking.
#[derive(Debug, Clone, Copy)]
struct Route {
    from: usize,
    to: usize,
    kinds: Option<u8>,
}

impl Route {
    fn is_for(self, kind: u8) -> bool {
        self.kinds.is_none_or(|kinds| kinds & 1 << kind != 0)
    }
}

/// What the mailbox of a group's actor is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unbounded,
    Refuses(usize),
    DropsNewest(usize),
}

impl Kind {
    fn real(self) -> Mailbox {
        match self {
            Kind::Unbounded => Mailbox::unbounded(),
            Kind::Refuses(capacity) => Mailbox::bounded(capacity).on_full(OverflowPolicy::Reject),
            Kind::DropsNewest(capacity) => Mailbox::bounded(capacity).on_full(OverflowPolicy::DropNewest),
        }
    }

    fn has_room(self, waiting: usize) -> bool {
        match self {
            Kind::Unbounded => true,
            Kind::Refuses(capacity) | Kind::DropsNewest(capacity) => waiting < capacity,
        }
    }
}

#[derive(Debug, Clone)]
enum Command {
    Mount(usize),
    Start,
    /// Beyond the capacity, if it says so.
    Send {
        from: usize,
        kind: u8,
        beyond: bool,
    },
    Rest,
    Stop(usize),
}

fn route() -> impl Strategy<Value = Route> {
    let kinds = prop_oneof![4 => (0..1_u8 << KINDS).prop_map(Some), 1 => Just(None)];
    (0..GROUPS, 0..GROUPS, kinds).prop_map(|(from, to, kinds)| Route { from, to, kinds })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Unbounded),
        (1..4_usize).prop_map(Kind::Refuses),
        (1..4_usize).prop_map(Kind::DropsNewest),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => (0..GROUPS).prop_map(Command::Mount),
        1 => Just(Command::Start),
        16 => (0..GROUPS, 0..KINDS, proptest::bool::weighted(0.2))
            .prop_map(|(from, kind, beyond)| Command::Send { from, kind, beyond }),
        2 => Just(Command::Rest),
        1 => (0..GROUPS).prop_map(Command::Stop),
    ]
}

/// Tells who handled what.
struct Clerk {
    group: usize,
    log: Sender<(usize, usize)>,
}

impl Actor for Clerk {
    type Message = Message;
    fn receive(&mut self, message: Message, _: &mut Context<Message>) -> HandlerResult {
        Ok(self.log.send((self.group, message.number))?)
    }
}

/// What is known of a group.
struct Group {
    kind: Kind,
    is_mounted: bool,
    has_ended: bool,
    waiting: Vec<usize>,
}

/// What becomes of one message.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Copies that were accepted, that found a full mailbox, and that found nobody.
    Report(usize, usize, usize),
    Full,
    Closed,
    NoRoute,
}

struct Model {
    routes: Vec<Route>,
    groups: Vec<Group>,
    has_started: bool,
    handled: BTreeMap<usize, Vec<usize>>,
    dead: Vec<String>,
    handled_count: u64,
    dead_count: u64,
    dropped: u64,
    handed_back: u64,
}

fn name(group: usize) -> String {
    format!("group-{group}")
}

/// What dead letters name for a group that is not mounted.
const NOWHERE: &str = "/deadLetters";

/// What they name for the actor of one that is.
fn path(group: usize) -> String {
    format!("/user/{}", name(group))
}

impl Model {
    /// The groups that those of `from` send to, each once, in the order in which the first route to it was defined.
    fn destinations(&self, from: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for route in self.routes.iter().filter(|route| route.from == from && self.groups[from].is_mounted) {
            if !found.contains(&route.to) {
                found.push(route.to);
            }
        }
        found
    }

    fn send(&mut self, from: usize, number: usize, kind: u8, beyond: bool) -> Outcome {
        let is_wanted = |to: &usize| {
            let mut between = self.routes.iter().filter(|route| (route.from, route.to) == (from, *to));
            between.any(|route| route.is_for(kind))
        };
        let wanted: Vec<usize> = self.destinations(from).into_iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            self.handed_back += 1;
            return Outcome::NoRoute;
        }
        let (mut accepted, mut full, mut closed) = (0, 0, 0);
        let mut refused = Vec::new();
        for to in wanted {
            let group = &mut self.groups[to];
            let has_room = beyond || group.kind.has_room(group.waiting.len());
            if !group.is_mounted || group.has_ended {
                closed += 1;
                refused.push(to);
            } else if has_room {
                accepted += 1;
                group.waiting.push(number);
            } else if let Kind::DropsNewest(_) = group.kind {
                accepted += 1;
                // Shown as a dead letter with that reason, and counted on its own.
                self.dropped += 1;
                self.dead.push(path(to));
            } else {
                full += 1;
                refused.push(to);
            }
        }
        if accepted == 0 {
            // The last one's is the message itself, which comes back.
            refused.pop();
            self.handed_back += 1;
        }
        self.dead_count += refused.len() as u64;
        self.dead.extend(refused.into_iter().map(|to| match self.groups[to].is_mounted {
            true => path(to),
            false => NOWHERE.to_owned(),
        }));
        match (accepted, full) {
            (0, 0) => Outcome::Closed,
            (0, _) => Outcome::Full,
            _ => Outcome::Report(accepted, full, closed),
        }
    }

    fn rest(&mut self) {
        for (number, group) in self.groups.iter_mut().enumerate() {
            let done = std::mem::take(&mut group.waiting);
            self.handled_count += done.len() as u64;
            self.handled.entry(number).or_default().extend(done);
        }
    }

    /// What it has not handled is dead.
    fn stop(&mut self, number: usize) {
        let group = &mut self.groups[number];
        group.has_ended = true;
        let left = std::mem::take(&mut group.waiting);
        self.dead_count += left.len() as u64;
        self.dead.extend(left.iter().map(|_| path(number)));
        self.rest();
    }
}

/// What is seen.
struct Scene {
    handled: Receiver<(usize, usize)>,
    /// For whom each dead letter is: a copy that is refused may go on to another one, and is none by itself.
    dead: Receiver<String>,
}

impl Scene {
    #[track_caller]
    fn check(&self, model: &mut Model) {
        let mut handled: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        self.handled.try_iter().for_each(|(group, number)| handled.entry(group).or_default().push(number));
        model.handled.retain(|_, numbers| !numbers.is_empty());
        assert_eq!(handled, std::mem::take(&mut model.handled));
        let mut dead: Vec<String> = self.dead.try_iter().collect();
        let mut expected = std::mem::take(&mut model.dead);
        dead.sort();
        expected.sort();
        assert_eq!(dead, expected);
    }
}

fn send(outlet: &Outlet<Message>, message: Message, beyond: bool) -> Outcome {
    let sent = message.clone();
    let mode = if beyond { SendMode::Unbounded } else { SendMode::Try };
    match outlet.send_by(message, mode) {
        (report, Ok(())) => Outcome::Report(report.accepted, report.full, report.closed),
        (_, Err(SendError::Full(back))) if back == sent => Outcome::Full,
        (_, Err(SendError::Closed(back))) if back == sent => Outcome::Closed,
        (_, Err(SendError::NoRoute(back))) if back == sent => Outcome::NoRoute,
        (_, Err(other)) => panic!("{other}"),
    }
}

fn run(seed: u64, kinds: [Kind; GROUPS], routes: Vec<Route>, commands: Vec<Command>) {
    let system = TestSystem::with_seed(seed);
    let (letters, dead) = channel();
    let _subscription = system.dead_letters().subscribe(move |letter| {
        if letter.message_type == std::any::type_name::<Message>() {
            let _ = letters.send(letter.recipient.to_string());
        }
    });
    let (log, handled) = channel();
    let scene = Scene { handled, dead };
    let topology = system.topology();
    let mut locals: Vec<Option<DeclaredGroup<Message>>> =
        (0..GROUPS).map(|group| Some(topology.local(&name(group)).unwrap())).collect();
    for Route { from, to, kinds } in &routes {
        let (from, to) = (locals[*from].as_ref().unwrap(), locals[*to].as_ref().unwrap());
        match *kinds {
            None => from.route_all_to::<Message, _>(to),
            Some(kinds) => from.route_to(to, move |message: &Message| kinds & 1 << message.kind != 0),
        };
    }
    let outlets: Vec<Outlet<Message>> =
        locals.iter().map(|local| local.as_ref().unwrap().outlet::<Message>()).collect();
    let actors: Vec<ActorRef<Message>> = kinds
        .iter()
        .enumerate()
        .map(|(group, kind)| {
            let log = log.clone();
            let recipe = move || Clerk { group, log: log.clone() };
            system.actor(&name(group)).mailbox(kind.real()).spawn(recipe).unwrap()
        })
        .collect();
    system.run_until_idle();
    let group = |kind: &Kind| Group { kind: *kind, is_mounted: false, has_ended: false, waiting: Vec::new() };
    let mut model = Model {
        routes,
        groups: kinds.iter().map(group).collect(),
        has_started: false,
        handled: BTreeMap::new(),
        dead: Vec::new(),
        handled_count: 0,
        dead_count: 0,
        dropped: 0,
        handed_back: 0,
    };
    for (number, command) in commands.into_iter().enumerate() {
        match command {
            Command::Mount(group) => {
                if let Some(local) = locals[group].take() {
                    local.mount(&actors[group]);
                    model.groups[group].is_mounted = true;
                }
            }
            Command::Start => {
                let missing = (0..GROUPS).filter(|group| !model.groups[*group].is_mounted).map(name);
                let missing: Vec<String> = missing.collect();
                let expected = match model.has_started {
                    _ if !missing.is_empty() => Err(TopologyError::Unmounted { groups: missing }),
                    true => Err(TopologyError::Started),
                    false => Ok(()),
                };
                model.has_started |= expected.is_ok();
                assert_eq!(topology.start(), expected);
            }
            Command::Send { from, kind, beyond } => {
                let expected = model.send(from, number, kind, beyond);
                assert_eq!(send(&outlets[from], Message { number, kind }, beyond), expected, "{number}");
                let names: Vec<String> = model.destinations(from).into_iter().map(name).collect();
                assert_eq!(outlets[from].destinations(), names);
            }
            Command::Rest => {
                system.run_until_idle();
                model.rest();
            }
            Command::Stop(group) => {
                actors[group].stop();
                system.run_until_idle();
                model.stop(group);
            }
        }
        scene.check(&mut model);
    }
    system.run_until_idle();
    model.rest();
    scene.check(&mut model);
    actors.iter().for_each(ActorRef::stop);
    system.run_until_idle();
    let ledger = system.finish();
    assert_eq!(
        (ledger.handled, ledger.dead_lettered, ledger.dropped, ledger.handed_back),
        (model.handled_count, model.dead_count, model.dropped, model.handed_back),
        "{ledger}"
    );
}

proptest! {
    #![proptest_config(cases("tests/properties/routes.seeds"))]

    #[test]
    fn where_a_message_without_an_address_goes_and_what_becomes_of_it_is_what_the_list_of_routes_says(
        seed in any::<u64>(),
        kinds in [kind(), kind(), kind(), kind()],
        routes in vec(route(), 0..12),
        commands in vec(command(), 1..60),
    ) {
        run(seed, kinds, routes, commands);
    }
}
