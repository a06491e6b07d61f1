//! A group whose messages say themselves whom they are for, and whose actors note what happens to them.

use crate::support::{Stage, run_turns};
use pointsman::group::{Group, GroupPlan, KeyRoute};
use pointsman::prelude::*;
use pointsman::{Ledger, SendError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

/// What an actor does with a message, after it has noted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Do {
    Nothing,
    Fail,
    Panic,
    Stop,
    Retire,
}

/// A message that says whom it is for.
#[derive(Debug)]
pub struct Note {
    pub to: KeyRoute<u32>,
    pub text: &'static str,
    pub act: Do,
    clones: Arc<AtomicUsize>,
}

impl Note {
    pub fn new(to: KeyRoute<u32>, text: &'static str) -> Self {
        Self { to, text, act: Do::Nothing, clones: Arc::default() }
    }

    pub fn act(mut self, act: Do) -> Self {
        self.act = act;
        self
    }

    /// Counts how often it is cloned.
    pub fn counted(mut self, clones: &Arc<AtomicUsize>) -> Self {
        self.clones = clones.clone();
        self
    }
}

impl Clone for Note {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::SeqCst);
        Self { to: self.to.clone(), text: self.text, act: self.act, clones: self.clones.clone() }
    }
}

/// To one key.
pub fn to(key: u32, text: &'static str) -> Note {
    Note::new(KeyRoute::Unicast(key), text)
}

pub fn gently(key: u32, text: &'static str) -> Note {
    Note::new(KeyRoute::GentleUnicast(key), text)
}

pub fn to_all(text: &'static str) -> Note {
    Note::new(KeyRoute::Broadcast, text)
}

pub struct Lodger {
    key: u32,
    log: Sender<String>,
}

impl Lodger {
    pub fn new(key: u32, log: &Sender<String>) -> Self {
        Self { key, log: log.clone() }
    }
}

impl Actor for Lodger {
    type Message = Note;

    fn receive(&mut self, note: Note, ctx: &mut Context<Note>) -> HandlerResult {
        let _ = self.log.send(format!("{} {}", self.key, note.text));
        match note.act {
            Do::Nothing => {}
            Do::Fail => return Err(Failure::msg("told to")),
            Do::Panic => panic!("told to"),
            Do::Stop => ctx.stop(),
            Do::Retire => ctx.passivate(),
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Note>) {
        let _ = self.log.send(format!("{} stopped", self.key));
    }
}

/// A group of such actors at `/user/lodgers`.
pub fn plan(stage: &Stage) -> GroupPlan<Note, u32> {
    let log = stage.log.clone();
    stage.system.group("lodgers").keyed(
        |note: &Note| note.to.clone(),
        move |ctx, key: &u32| {
            let _ = log.send(format!("{key} {:?}", ctx.spawn_cause().expect("of a group")));
            Lodger { key: *key, log: log.clone() }
        },
    )
}

pub fn lodgers(stage: &Stage) -> Group<Note, u32> {
    plan(stage).spawn().expect("the plan is sound")
}

/// Everything noted until nobody has anything to do, in the order of keys where that is unspecified.
#[track_caller]
pub fn noted(stage: &Stage) -> Vec<String> {
    run_turns();
    let mut notes: Vec<String> = stage.notes.try_iter().collect();
    notes.sort_by_key(|note| note.split(' ').next().map(str::to_owned));
    notes
}

/// The text of a message that nobody took, if it came back as closed.
pub fn closed(sent: Result<(), SendError<Note>>) -> Option<&'static str> {
    match sent {
        Err(SendError::Closed(note)) => Some(note.text),
        _ => None,
    }
}

/// The same, if the key router has discarded it.
pub fn discarded(sent: Result<(), SendError<Note>>) -> Option<&'static str> {
    match sent {
        Err(SendError::Discarded(note)) => Some(note.text),
        _ => None,
    }
}

pub fn full(sent: Result<(), SendError<Note>>) -> Option<&'static str> {
    match sent {
        Err(SendError::Full(note)) => Some(note.text),
        _ => None,
    }
}

/// Ends the system; the books are balanced.
#[track_caller]
pub fn books(stage: Stage) -> Ledger {
    let ledger = stage.system.shutdown(crate::support::LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    ledger
}
