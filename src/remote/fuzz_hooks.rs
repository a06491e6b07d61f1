//! The parts of this folder that fuzz targets drive, as functions of plain values. They are for this repository alone.
#![allow(missing_docs)] // the targets in `fuzz/targets` say what each of them is for

use crate::path::canonical_path;
use crate::path::{ActorPath, PathError};
use crate::remote::association::{
    Association, AssociationSettings, Effect, Greeting, Input, PROTOCOL, Refusal, Side, Verdict,
};
use crate::remote::batch::{Batch, BatchWriter, Entry, Token};
use crate::remote::codec::{decode_within, encode};
use crate::remote::control_message::ControlMessage;
use crate::remote::frame::{PREFIX_LEN, Prefix};
use crate::remote::policy::{Incoming, Policy, Target};
use crate::remote::ports::{NoPort, Port, Ports, Unwanted};
use crate::sync::atomic::{AtomicBool, Ordering};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

pub fn canonical(text: &str) -> Result<ActorPath, PathError> {
    canonical_path::parse_canonical(text)
}

pub fn is_canonical_selection(text: &str) -> bool {
    canonical_path::check_canonical_selection(text).is_ok()
}

/// The kinds of what comes in, by number.
pub const INCOMING_KINDS: u8 = 8;

/// Returns whether a kind of message may come in, to an actor at a path or to a selection. `sort` has two bits: that the actor was
/// exported, and that the peer has deployed it.
pub fn is_allowed(policy: &Policy, node: &str, roles: &[String], kind: u8, text: &str, sort: u8) -> bool {
    let target = Target { path: text, is_export: sort & 1 != 0, is_deployed: sort & 2 != 0 };
    let incoming = match kind % INCOMING_KINDS {
        0 => Incoming::Message(target),
        1 => Incoming::Watch(target),
        2 => Incoming::Select { text },
        3 => Incoming::Identify { text },
        4 => Incoming::End(target),
        5 => Incoming::Verdict(target),
        6 => Incoming::Deploy { factory: text, node, roles },
        _ => Incoming::Answer,
    };
    policy.access(node, roles).decide(incoming).is_ok()
}

/// Reads a batch, and writes it anew. `None` if it is refused.
pub fn rewrite_batch(frame: &[u8], lanes: u8, body_max: usize) -> Option<Vec<u8>> {
    let batch = Batch::read(frame, lanes, body_max).ok()?;
    let mut writer = BatchWriter::new();
    let mut known = 0;
    for envelope in batch.envelopes() {
        let index = usize::from(envelope.entry);
        let entry = if index == known { Entry::New(envelope.place) } else { Entry::Known(envelope.entry) };
        known = known.max(index + 1);
        let tokens: Vec<Token> = envelope.tokens.iter().collect();
        writer.push(envelope.kind, &entry, &tokens, envelope.body);
    }
    assert_eq!(known, batch.places().len(), "an entry without an envelope");
    let mut frame = writer.into_frame();
    batch.prefix.write(&mut frame);
    batch.position.write(&mut frame);
    Some(frame)
}

/// Reads a control frame, and writes it anew. `None` if it is refused.
pub fn rewrite_control(frame: &[u8]) -> Option<Vec<u8>> {
    let prefix = Prefix::read(frame, 1).ok()?;
    Some(ControlMessage::read(frame).ok()?.frame(prefix.from, prefix.to))
}

/// The most levels of a body that is read.
pub const BODY_DEPTH: u32 = 64;

/// Reads the body of a message. `None` if it is refused.
pub fn read_body<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    decode_within(bytes, BODY_DEPTH).ok()
}

/// Writes the body of a message.
pub fn write_body<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = encode(value, &mut bytes, usize::MAX);
    assert!(written.is_ok(), "it has no limit");
    bytes
}

/// The bytes before the message of a control frame.
pub const CONTROL_PREFIX: usize = PREFIX_LEN;

/// The association of a node, of UID 1, with a peer.
pub struct Associated(Association);

/// A consequence of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    Activated(u64),
    Ended(u64),
    Suspected(u64),
    Reachable(u64),
    GiveWay,
    /// Messages go to the peer, or what waits for it is given up.
    Other,
}

fn followed(effects: Vec<Effect>) -> Vec<Followed> {
    let one = |effect| match effect {
        Effect::Activated { uid, .. } => Followed::Activated(uid),
        Effect::Ended { uid, .. } => Followed::Ended(uid),
        Effect::Suspected { uid } => Followed::Suspected(uid),
        Effect::Reachable { uid } => Followed::Reachable(uid),
        Effect::GiveWay { .. } => Followed::GiveWay,
        _ => Followed::Other,
    };
    effects.into_iter().map(one).collect()
}

impl Associated {
    pub fn new() -> Self {
        let own = Self::greeting("a", 1, 0);
        let side = Side { members: 1, least: "a".to_owned() };
        Self(Association::new(own, side, AssociationSettings::default(), Duration::ZERO))
    }

    fn greeting(node: &str, uid: u64, to: u64) -> Greeting {
        Greeting {
            protocol: PROTOCOL,
            cluster: "c".to_owned(),
            system: "s".to_owned(),
            node: node.to_owned(),
            uid,
            lanes: 2,
            window: 1000,
            to,
        }
    }

    /// An input by number, of or to these UIDs.
    pub fn input(&mut self, kind: u8, from: u64, to: u64, now: Duration) -> Vec<Followed> {
        let input = match kind % 8 {
            0 => Input::Wanted,
            1 => Input::Hello(Self::greeting("b", from, to)),
            2 => Input::Welcome(Self::greeting("b", from, to)),
            3 => Input::Refused { to, why: Refusal::DuplicateName },
            4 => Input::Quarantined { from, to, side: Side { members: 1, least: "b".to_owned() } },
            5 => Input::Goodbye { from },
            6 => Input::Fault,
            _ => Input::Tick,
        };
        followed(self.0.on(input, now))
    }

    /// A frame that is no greeting. Returns whether it is handled.
    pub fn frame(&mut self, from: u64, to: u64, now: Duration) -> (bool, Vec<Followed>) {
        let (verdict, effects) = self.0.frame(from, to, now);
        (verdict == Verdict::Handle, followed(effects))
    }

    pub fn rejoin(&mut self, uid: u64, now: Duration) -> Vec<Followed> {
        followed(self.0.rejoin(uid, now))
    }

    pub fn peer(&self) -> Option<u64> {
        self.0.peer()
    }

    pub fn is_dead(&self, uid: u64) -> bool {
        self.0.is_dead(uid)
    }
}

impl Default for Associated {
    fn default() -> Self {
        Self::new()
    }
}

/// A table of ports, each of which is a number.
pub struct PortTable(Ports<Number>);

struct Number {
    number: u32,
    is_wanted: Arc<AtomicBool>,
}

impl Port for Number {
    fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }
}

impl PortTable {
    pub fn new(max: usize) -> Self {
        Self(Ports::new(max))
    }

    /// `None` if the table is full. `swept` gets the peers, tokens and numbers that were swept for room.
    pub fn export(
        &self,
        number: u32,
        is_wanted: Arc<AtomicBool>,
        peer: u64,
        swept: &mut Vec<(u64, [u8; 16], u32)>,
    ) -> Option<[u8; 16]> {
        let mut unwanted = Vec::new();
        let token = self.0.export(Number { number, is_wanted }, peer, &mut unwanted).ok();
        swept.extend(unwanted.into_iter().map(|Unwanted { peer, token, port }| (peer, token, port.number)));
        token
    }

    /// The number, or whether the answer is late: otherwise its token is forged.
    pub fn take(&self, token: [u8; 16], peer: u64) -> Result<u32, bool> {
        self.0.take(token, peer).map(|port| port.number).map_err(|why| why == NoPort::Late)
    }

    pub fn withdraw(&self, token: [u8; 16]) -> Option<u32> {
        self.0.withdraw(token).map(|port| port.number)
    }

    pub fn is_wanted(&self, token: [u8; 16]) -> bool {
        self.0.is_wanted(token)
    }

    pub fn peer_down(&self, peer: u64) -> Vec<u32> {
        self.0.peer_down(peer).into_iter().map(|port| port.number).collect()
    }

    pub fn sweep(&self) -> Vec<(u64, [u8; 16], u32)> {
        self.0.sweep().into_iter().map(|Unwanted { peer, token, port }| (peer, token, port.number)).collect()
    }

    pub fn pending(&self) -> usize {
        self.0.counts().pending
    }
}
