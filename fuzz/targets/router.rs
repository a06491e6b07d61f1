//! Sequences of management commands, with messages between them, to a router on one thread.
//!
//! Bytes are commands; see [`Run::command`]. What must hold, against a plain model of the list:
//! - The list of routees is the model's after each rest, and each command returns what the model says.
//! - Every copy of every message is handled once, or a dead letter once, or handed back once.
//! - While no routee ends, each message goes to the routee whose turn it is, and each routee handles its
//!   messages in order.
//! - The ledger balances at each rest, and at the end nothing is left.

use pointsman::prelude::*;
use pointsman::routing::{ManageError, RoundRobin};
use pointsman::testkit::TestSystem;
use pointsman::SendError;
use pointsman::dead_letters::DeadLetterLog;
use pointsman::events::Subscription;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// So that one input ends soon.
const COMMANDS_MAX: usize = 200;
/// A pool of more shows nothing new.
const SIZE_MAX: usize = 12;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Note {
    number: u32,
    fails: bool,
}

struct Worker(Sender<(u32, Note)>);

impl Actor for Worker {
    type Message = Note;
    fn receive(&mut self, note: Note, ctx: &mut Context<Note>) -> HandlerResult {
        self.0.send((ctx.me().uid(), note))?;
        if note.fails { Err(Failure::msg("as told")) } else { Ok(()) }
    }
}

/// What a copy of a message came to, and how often.
#[derive(Debug, Default)]
struct Fate {
    /// Copies made of it.
    copies: usize,
    handled: usize,
    dead: usize,
    back: usize,
}

struct Run<'a> {
    system: &'a TestSystem,
    router: Router<Note>,
    foreign: Vec<ActorRef<Note>>,
    log: Sender<(u32, Note)>,
    handled: Receiver<(u32, Note)>,
    dead: Receiver<Note>,
    _sink: Subscription,
    /// The model: whom the router should list.
    list: Vec<ActorRef<Note>>,
    stays: bool,
    has_ended: bool,
    /// Who may have ended since the last rest.
    doomed: Vec<ActorRef<Note>>,
    /// Whether failing routees stop.
    failure_stops: bool,
    fates: BTreeMap<u32, Fate>,
    /// Of the round robin; unknown once a routee has ended, since who is refused then chooses again.
    place: Option<usize>,
    /// Which routee each message was sent to, while that is certain.
    expected: BTreeMap<u32, u32>,
    /// Some routee ends: who is refused chooses again, and what it leaves is anywhere.
    disturbed: bool,
    /// By routee, while nothing is disturbed.
    last: BTreeMap<u32, u32>,
}

pub fn check(data: &[u8]) {
    let [choice, seed, commands @ ..] = data else { return };
    let plan = TestSystem::builder().seed((*seed).into());
    let quiet = |builder: pointsman::SystemBuilder| {
        let strategy = Strategy::default().quiet();
        builder.supervision(strategy).log_dead_letters(DeadLetterLog::off())
    };
    let system = plan.configure(quiet).build();
    let mut run = Run::new(&system, *choice);
    let mut commands = commands.iter().copied().take(COMMANDS_MAX);
    while let Some(command) = commands.next() {
        if run.has_ended {
            break;
        }
        run.command(command, &mut commands);
    }
    run.end();
    drop(run);
    let ledger = system.finish();
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
}

impl<'a> Run<'a> {
    fn new(system: &'a TestSystem, choice: u8) -> Self {
        let (log, handled) = channel();
        let (letters, dead) = channel();
        let take = move |note: Note, _| _ = letters.send(note);
        let sink = system.dead_letters().take_by::<Note>(|_| {}, take).expect("the only one");
        let of_pool = log.clone();
        let (stays, failure_stops) = (choice & 1 != 0, choice & 2 != 0);
        let plan =
            system.router("pool").pool(1 + usize::from(choice >> 2) % 4, move |_| Worker(of_pool.clone()));
        // One cursor, so that the model needs to know of no threads.
        let plan = plan.logic(RoundRobin::exact());
        let plan = if failure_stops {
            plan.on_failure(Strategy::stop().quiet())
        } else {
            plan.on_failure(Strategy::default().quiet())
        };
        let router = if stays { plan.stay_when_empty() } else { plan }.spawn().expect("it is sound");
        let mut run = Self {
            list: router.routees().expect("it lives"),
            system,
            router,
            foreign: Vec::new(),
            log,
            handled,
            dead,
            _sink: sink,
            stays,
            has_ended: false,
            doomed: Vec::new(),
            failure_stops,
            fates: BTreeMap::new(),
            place: Some(0),
            expected: BTreeMap::new(),
            disturbed: false,
            last: BTreeMap::new(),
        };
        (0..3).for_each(|_| run.new_foreign());
        run
    }

    fn new_foreign(&mut self) {
        let log = self.log.clone();
        let actor = self.system.actor(&format!("foreign-{}", self.foreign.len()));
        self.foreign.push(actor.spawn(move || Worker(log.clone())).expect("the name is free"));
    }

    /// One command: its low bits say which, the high ones how much; some have another byte.
    fn command(&mut self, byte: u8, more: &mut impl Iterator<Item = u8>) {
        let amount = usize::from(byte >> 4);
        match byte & 15 {
            0 => (0..=amount).for_each(|_| self.tell(false)),
            1 => (0..=amount % 4).for_each(|_| self.tell(true)),
            2 => self.broadcast(amount % 4 == 3),
            3 => self.add(amount),
            4 => self.remove(amount),
            5 => self.resize(amount % SIZE_MAX),
            6 => self.adjust(more.next().unwrap_or(0)),
            7 => self.end_one(amount, ActorRef::poison),
            8 => self.end_one(amount, ActorRef::stop),
            9 => self.end_one(amount, ActorRef::kill),
            10 if amount < 3 => self.end_all(Router::poison_routees),
            10 if amount < 6 => self.end_all(Router::kill_routees),
            10 if amount == 15 => self.leave(Router::stop),
            10 if amount == 14 => self.leave(|router| router.drain().expect("it is no controller")),
            11 => self.direct(amount),
            12 => (0..=amount).for_each(|_| _ = self.system.step()),
            13 if self.foreign.len() < 16 => self.new_foreign(),
            _ => self.rest(),
        }
    }

    fn note(&mut self, copies: usize, fails: bool) -> Note {
        let number = self.fates.len() as u32;
        self.fates.insert(number, Fate { copies, ..Fate::default() });
        if fails && self.failure_stops {
            self.disturbed = true;
            self.doomed.extend(self.list.iter().cloned());
        }
        Note { number, fails }
    }

    fn tell(&mut self, fails: bool) {
        let note = self.note(1, fails);
        match self.router.try_tell(note) {
            Ok(()) => {
                if let (Some(place), false) = (&mut self.place, self.disturbed) {
                    self.expected.insert(note.number, self.list[*place % self.list.len()].uid());
                    *place += 1;
                }
            }
            Err(refused) => {
                let nobody = matches!(refused, SendError::NoRoutee(_));
                // One that lists nobody any more, or only those that are about to leave.
                assert!(self.disturbed || (nobody && self.list.is_empty()), "{refused}");
                assert_eq!(refused.into_inner(), note);
                self.fate(note).back += 1;
            }
        }
    }

    fn broadcast(&mut self, fails: bool) {
        let note = self.note(0, fails);
        let count = self.router.broadcast(note);
        assert!(self.disturbed || count == self.list.len());
        self.fate(note).copies = count.max(1);
    }

    /// Past the router.
    fn direct(&mut self, which: usize) {
        let Some(to) = self.any(which) else { return };
        let note = self.note(1, false);
        if !self.disturbed && !to.is_closed() {
            self.expected.insert(note.number, to.uid());
        }
        to.tell(note);
    }

    fn add(&mut self, which: usize) {
        self.rest_if_doomed();
        let routee = self.foreign[which % self.foreign.len()].clone();
        let before = self.list.len();
        if before >= SIZE_MAX {
            return;
        }
        match self.router.add(routee.clone()) {
            Ok(count) => assert_eq!(count, before + 1),
            Err(error) => return self.refused(&error),
        }
        self.list.push(routee.clone());
        if routee.is_closed() {
            // It is found to have ended.
            self.doomed.push(routee);
            self.disturbed = true;
            self.rest();
        }
    }

    fn remove(&mut self, which: usize) {
        self.rest_if_doomed();
        let Some(routee) = self.any(which) else { return };
        match self.router.remove(&routee) {
            Ok(was_listed) => assert_eq!(was_listed, self.list.contains(&routee)),
            Err(error) => return self.refused(&error),
        }
        self.list.retain(|listed| *listed != routee);
        self.removed();
    }

    fn resize(&mut self, size: usize) {
        self.rest_if_doomed();
        match self.router.resize_to(size) {
            Ok(now) => assert_eq!(now, size),
            Err(ManageError::EmptyPool { .. }) => return assert!(size == 0 && !self.stays),
            Err(error) => return self.refused(&error),
        }
        self.resized(size);
    }

    fn adjust(&mut self, delta: u8) {
        self.rest_if_doomed();
        let delta = isize::from(delta as i8) % 9;
        let least = usize::from(!self.stays && !self.list.is_empty());
        let size = self.list.len().saturating_add_signed(delta).max(least);
        if size > SIZE_MAX {
            return;
        }
        match self.router.adjust(delta) {
            Ok(now) => assert_eq!(now, size),
            Err(error) => return self.refused(&error),
        }
        self.resized(size);
    }

    /// The list has grown by new routees at its end, or shrunk from there.
    fn resized(&mut self, size: usize) {
        let now = self.router.routees().expect("it has just answered");
        let kept = size.min(self.list.len());
        assert_eq!((now.len(), &now[..kept]), (size, &self.list[..kept]));
        assert!(now[kept..].iter().all(|new| !self.list.contains(new) && !new.is_closed()));
        self.list = now;
    }

    fn end_one(&mut self, which: usize, end: impl Fn(&ActorRef<Note>)) {
        let Some(routee) = self.any(which) else { return };
        end(&routee);
        self.doomed.push(routee);
        self.disturbed = true;
    }

    fn end_all(&mut self, end: impl Fn(&Router<Note>) -> usize) {
        self.rest_if_doomed();
        if self.has_ended {
            return;
        }
        assert_eq!(end(&self.router), self.list.len());
        self.doomed.extend(self.list.iter().cloned());
        self.disturbed = true;
    }

    fn leave(&mut self, end: impl Fn(&Router<Note>)) {
        self.rest_if_doomed();
        if self.has_ended {
            return;
        }
        end(&self.router);
        self.doomed.extend(self.list.iter().cloned());
        self.has_ended = true;
        self.disturbed = true;
        // It refuses from now on.
        self.tell(false);
        self.broadcast(false);
        self.system.run_until_idle();
        let own = self.list.iter().filter(|routee| !self.foreign.contains(routee));
        assert!(own.into_iter().all(ActorRef::is_closed));
    }

    /// A listed routee, or one that is not.
    fn any(&self, which: usize) -> Option<ActorRef<Note>> {
        let all: Vec<&ActorRef<Note>> = self.list.iter().chain(&self.foreign).collect();
        all.get(which % all.len().max(1)).map(|routee| (*routee).clone())
    }

    fn fate(&mut self, note: Note) -> &mut Fate {
        self.fates.get_mut(&note.number).expect("it was sent")
    }

    /// Some routee was removed.
    fn removed(&mut self) {
        if self.list.is_empty() && !self.stays {
            self.has_ended = true;
        }
    }

    fn refused(&mut self, error: &ManageError) {
        assert!(self.has_ended && matches!(error, ManageError::Stopped { .. }), "{error}");
    }

    /// What a command meets is certain only when those that end have ended.
    fn rest_if_doomed(&mut self) {
        if self.disturbed {
            self.rest();
        }
    }

    /// Lets everything happen, and compares.
    fn rest(&mut self) {
        self.system.run_until_idle();
        for (uid, note) in self.handled.try_iter().collect::<Vec<_>>() {
            self.fate(note).handled += 1;
            if let Some(expected) = self.expected.remove(&note.number) {
                assert!(
                    self.disturbed || uid == expected,
                    "{note:?} is handled by {uid} instead of {expected}"
                );
            }
            // A routee that is listed twice gets two copies.
            let last = self.last.insert(uid, note.number);
            assert!(self.disturbed || last <= Some(note.number), "{note:?} after {last:?}");
        }
        for note in self.dead.try_iter().collect::<Vec<_>>() {
            self.fate(note).dead += 1;
            assert!(self.disturbed || !self.expected.contains_key(&note.number), "{note:?} is a dead letter");
        }
        self.expected.clear();
        for (number, fate) in &self.fates {
            assert_eq!(fate.copies, fate.handled + fate.dead + fate.back, "message {number}: {fate:?}");
        }
        let ledger = self.system.ledger();
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        // Who was told to end has, and nobody else.
        let before = self.list.len();
        let doomed = std::mem::take(&mut self.doomed);
        for routee in &self.list {
            assert!(!routee.is_closed() || doomed.contains(routee), "{routee:?} has ended by itself");
        }
        self.list.retain(|routee| !routee.is_closed());
        if self.list.len() < before {
            self.removed();
        }
        match self.router.routees() {
            Ok(list) => assert_eq!((list, false), (self.list.clone(), self.has_ended)),
            Err(ManageError::Stopped { .. }) => assert!(self.has_ended),
            Err(error) => panic!("{error}"),
        }
        if self.disturbed {
            self.place = None;
        }
        self.disturbed = self.has_ended;
    }

    fn end(&mut self) {
        self.rest();
        if !self.has_ended {
            self.leave(|router| router.drain().expect("it is no controller"));
        }
        self.list.clear();
        self.foreign.iter().for_each(ActorRef::stop);
        self.rest();
        assert!(self.router.is_closed() && self.system.actor_at("/user/pool").is_err());
    }
}
