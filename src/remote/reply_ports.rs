//! Reply ports that cross to other nodes.
//!
//! A port that is sent away stays in this node's table, and a token goes in its place. At the other node a port stands for the
//! token: its reply goes back in an envelope, and if it is dropped, a refusal does. So an answer goes back on the way that the
//! right to answer has come.
//!
//! A port of a request of which [each actor](crate::remote::asking_each) of a group is to answer may be split there. The
//! answer of each part goes back by itself, and the end of the last part ends the port.

use crate::ask::error::{AskError, Outcome, RefusedBy};
use crate::ask::reply::{AnsweredBy, Call, ReplyDestination, ReplyTo, Request};
use crate::core::dead_letter::{DeadLetterReason, nowhere};
use crate::remote::asking_each::asks_each;
use crate::remote::batch::{EnvelopeKind, Place, Token};
use crate::remote::codec::EncodeError;
use crate::remote::decoder::{self, Decoder};
use crate::remote::encoder::{self, Pushed, write_port};
use crate::remote::link::Link;
use crate::remote::ports::Port;
use crate::remote::refused::Refused;
use crate::remote::resolving::Identity;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock, per_thread};
use crate::util::panic::drop_guarded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::sync::Arc;

/// The most answers to a port that was sent for several.
const PARTS_MAX: u32 = 1 << 20;

/// A reply port of this node whose token was sent to a peer.
pub(crate) struct ExportedPort {
    port: Box<dyn AnyPort>,
    /// The answers so far, if the port was sent for several.
    parts: Option<u32>,
}

trait AnyPort: Send {
    fn is_wanted(&self) -> bool;
    /// Decodes the reply, and completes the ask. Returns the reason if the reply is not taken, and its type.
    fn reply(
        self: Box<Self>,
        link: &Arc<Link>,
        tokens: &mut dyn Iterator<Item = Token>,
        body: &[u8],
    ) -> Option<(DeadLetterReason, &'static str)>;
    fn fail(self: Box<Self>, error: AskError);
    /// Makes a port for one of several answers, if there can be several.
    fn part(&self) -> Option<Box<dyn AnyPort>>;
    fn end_parts(self: Box<Self>);
}

impl<R: DeserializeOwned + Send + 'static> AnyPort for ReplyTo<R> {
    fn is_wanted(&self) -> bool {
        self.wanted()
    }

    fn reply(
        self: Box<Self>,
        link: &Arc<Link>,
        tokens: &mut dyn Iterator<Item = Token>,
        body: &[u8],
    ) -> Option<(DeadLetterReason, &'static str)> {
        let reason = match Decoder::default().read::<R>(link, tokens, body) {
            // The port counts a late reply.
            Ok(reply) => self.send(reply).map_err(drop_guarded).err().map(|()| DeadLetterReason::LateReply),
            Err(_) => {
                ReplyTo::fail(*self, AskError::refused_by(RefusedBy::Undecodable));
                Some(DeadLetterReason::Undecodable)
            }
        };
        reason.map(|reason| (reason, std::any::type_name::<R>()))
    }

    fn fail(self: Box<Self>, error: AskError) {
        ReplyTo::fail(*self, error);
    }

    fn part(&self) -> Option<Box<dyn AnyPort>> {
        ReplyTo::part(self).map(|part| Box::new(part) as _)
    }

    fn end_parts(self: Box<Self>) {
        ReplyTo::end_parts(*self);
    }
}

impl ExportedPort {
    pub(crate) fn new<R: DeserializeOwned + Send + 'static>(port: ReplyTo<R>) -> Self {
        Self { port: Box::new(port), parts: asks_each().then_some(0) }
    }

    pub(crate) fn reply(
        self,
        link: &Arc<Link>,
        mut tokens: impl Iterator<Item = Token>,
        body: &[u8],
    ) -> Option<(DeadLetterReason, &'static str)> {
        self.port.reply(link, &mut tokens, body)
    }

    pub(crate) fn fail(self, error: AskError) {
        self.port.fail(error);
    }

    /// Ends the port for a reason that the peer has told.
    pub(crate) fn refuse(self, refused: Refused) {
        match (refused, self.parts) {
            (Refused::Parted, Some(1..)) => self.port.end_parts(),
            _ => self.port.fail(refused.error()),
        }
    }
}

impl Port for ExportedPort {
    fn is_wanted(&self) -> bool {
        self.port.is_wanted()
    }

    fn part(&mut self) -> Option<Self> {
        let parts = self.parts.as_mut().filter(|parts| **parts < PARTS_MAX)?;
        let port = self.port.part()?;
        *parts += 1;
        Some(Self { port, parts: None })
    }
}

/// A port whose token came from a peer. If it is dropped without an answer, the peer is told so.
pub(crate) struct ImportedPort {
    link: Arc<Link>,
    token: Token,
    is_wanted: Arc<AtomicBool>,
    is_answered: bool,
}

impl ImportedPort {
    pub(crate) fn new(link: Arc<Link>, token: Token, is_wanted: Arc<AtomicBool>) -> Self {
        Self { link, token, is_wanted, is_answered: false }
    }

    fn is_wanted(&self) -> bool {
        // Ordering: Relaxed; advice only.
        self.is_wanted.load(Ordering::Relaxed) && !self.link.has_ended()
    }

    fn send<T: Serialize>(&self, kind: EnvelopeKind, body: &T) -> Pushed {
        let lane = self.link.lane_of_port(&self.token);
        let memory = self.link.port_memory(lane);
        encoder::push(&self.link, kind, Place::Port, memory, lane, &[self.token], body)
    }

    /// Answers with a reply.
    pub(crate) fn answer<R: Serialize>(mut self, reply: &R) {
        self.is_answered = true;
        let refused = match self.send(EnvelopeKind::Reply, reply) {
            Pushed::Done => return,
            Pushed::Full => {
                self.link.refuse_later(self.token, Refused::LinkFull);
                return self.reply_lost::<R>(DeadLetterReason::LinkFull);
            }
            Pushed::Closed => return self.reply_lost::<R>(DeadLetterReason::NodeGone),
            Pushed::Unfit(EncodeError::TooLarge { .. }) => Refused::ReplyTooLarge,
            Pushed::Unfit(_) => Refused::Unsendable,
        };
        self.tell_refused(refused);
    }

    /// Answers the request for a reference.
    pub(crate) fn identify(mut self, identity: &Identity) {
        self.is_answered = true;
        match self.send(EnvelopeKind::Identity, identity) {
            Pushed::Full => self.link.refuse_later(self.token, Refused::LinkFull),
            Pushed::Unfit(_) => self.tell_refused(Refused::ReplyTooLarge),
            Pushed::Done | Pushed::Closed => {}
        }
    }

    /// The reply cannot go out: it is shown as a dead letter.
    #[cold]
    fn reply_lost<R>(&self, reason: DeadLetterReason) {
        self.link.count_lost_reply();
        if let Some(system) = self.link.hub.system() {
            system.dead_letters().publish(reason, std::any::type_name::<R>(), nowhere);
        }
    }

    /// Ends the ask without a reply.
    pub(crate) fn refuse(mut self, refused: Refused) {
        self.is_answered = true;
        self.tell_refused(refused);
    }

    /// Answers one part of the port. Returns whether there was no room for the answer.
    fn answer_part<R: Serialize>(&self, outcome: Outcome<R>) -> bool {
        let pushed = match &outcome {
            Ok(reply) => self.send(EnvelopeKind::PartReply, reply),
            Err(error) => self.send(EnvelopeKind::RefusedPart, &Refused::of(error)),
        };
        let refused = match pushed {
            Pushed::Done => return false,
            Pushed::Closed => {
                self.part_lost(&outcome, DeadLetterReason::NodeGone);
                return false;
            }
            Pushed::Full => {
                self.part_lost(&outcome, DeadLetterReason::LinkFull);
                return true;
            }
            Pushed::Unfit(EncodeError::TooLarge { .. }) => Refused::ReplyTooLarge,
            Pushed::Unfit(_) => Refused::Unsendable,
        };
        matches!(self.send(EnvelopeKind::RefusedPart, &refused), Pushed::Full)
    }

    fn part_lost<R>(&self, outcome: &Outcome<R>, reason: DeadLetterReason) {
        if outcome.is_ok() {
            self.reply_lost::<R>(reason);
        }
    }

    /// Ends a port all of whose parts are answered. For `lost` of them there was no room.
    fn end_parts(&mut self, lost: usize) {
        self.is_answered = true;
        let tell_lost = || matches!(self.send(EnvelopeKind::RefusedPart, &Refused::LinkFull), Pushed::Full);
        if (0..lost).any(|_| tell_lost()) {
            // One refusal stands for the rest.
            return self.link.refuse_later(self.token, Refused::LinkFull);
        }
        self.tell_refused(Refused::Parted);
    }

    fn tell_refused(&self, refused: Refused) {
        if let Pushed::Full = self.send(EnvelopeKind::RefusedReply, &refused) {
            self.link.refuse_later(self.token, refused);
        }
    }
}

impl Drop for ImportedPort {
    fn drop(&mut self) {
        if !self.is_answered {
            self.tell_refused(Refused::of(&AskError::dropped()));
        }
        self.link.forget_import(&self.token);
    }
}

/// A port that came from a peer and was split. The end of the last part drops it, which ends the port.
struct SplitPort {
    port: ImportedPort,
    /// The answers for which there was no room.
    lost: AtomicUsize,
}

impl Drop for SplitPort {
    fn drop(&mut self) {
        // Ordering: Relaxed; the count of the parts orders it.
        let lost = self.lost.load(Ordering::Relaxed);
        self.port.end_parts(lost);
    }
}

per_thread! {
    /// The ports that are split while a message of a peer is passed on.
    static NOTED: RefCell<Option<Vec<Arc<SplitPort>>>> = RefCell::new(None);
}

/// Notes which ports this thread splits, until it is dropped or [used](Self::refuse).
pub(crate) struct SplitNotes {
    outer: Option<Vec<Arc<SplitPort>>>,
}

impl SplitNotes {
    pub(crate) fn begin() -> Self {
        Self { outer: NOTED.try_with(|noted| noted.replace(Some(Vec::new()))).unwrap_or(None) }
    }

    /// Ends so many answers of each port without a reply: their recipients have refused their copies.
    pub(crate) fn refuse(self, count: usize) {
        let noted = NOTED.try_with(|noted| noted.borrow_mut().take()).ok().flatten().unwrap_or_default();
        for split in noted {
            (0..count).for_each(|_| split.refuse_part(Refused::Stopped));
        }
    }

    fn note(split: &Arc<SplitPort>) {
        let _ = NOTED.try_with(|noted| {
            if let Some(noted) = &mut *noted.borrow_mut() {
                if !noted.iter().any(|known| Arc::ptr_eq(known, split)) {
                    noted.push(split.clone());
                }
            }
        });
    }
}

impl Drop for SplitNotes {
    fn drop(&mut self) {
        let noted = NOTED.try_with(|noted| noted.replace(self.outer.take()));
        // Without the borrow: the end of a port is sent by its drop.
        drop(noted);
    }
}

impl SplitPort {
    fn refuse_part(&self, refused: Refused) {
        if matches!(self.port.send(EnvelopeKind::RefusedPart, &refused), Pushed::Full) {
            self.note_lost();
        }
    }

    fn note_lost(&self) {
        // Ordering: Relaxed; see the drop.
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The share of a reply port that came from a peer.
enum Held {
    Whole(ImportedPort),
    Part(Arc<SplitPort>),
    /// It is answered.
    Over,
}

/// The destination of a reply port that came from a peer, or of a part of one.
struct RemotePort(Mutex<Held>);

impl<R: Serialize + Send + 'static> ReplyDestination<R> for RemotePort {
    fn take(&self, outcome: Outcome<R>, _: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        let held = std::mem::replace(&mut *lock(&self.0), Held::Over);
        match (held, outcome) {
            (Held::Whole(port), Ok(reply)) => port.answer(&reply),
            (Held::Whole(port), Err(error)) => port.refuse(Refused::of(&error)),
            (Held::Part(split), outcome) => {
                if split.port.answer_part(outcome) {
                    split.note_lost();
                }
            }
            (Held::Over, outcome) => return Err(outcome),
        }
        Ok(())
    }

    fn wanted(&self) -> bool {
        match &*lock(&self.0) {
            Held::Whole(port) => port.is_wanted(),
            Held::Part(split) => split.port.is_wanted(),
            Held::Over => false,
        }
    }

    fn part(&self) -> Option<ReplyTo<R>> {
        let mut held = lock(&self.0);
        let split = match std::mem::replace(&mut *held, Held::Over) {
            Held::Whole(port) => Arc::new(SplitPort { port, lost: AtomicUsize::new(0) }),
            Held::Part(split) => split,
            Held::Over => return None,
        };
        *held = Held::Part(split.clone());
        SplitNotes::note(&split);
        Some(ReplyTo::to_own_sink(RemotePort(Mutex::new(Held::Part(split)))))
    }

    fn end_parts(&self) {
        // The drop of a part tells of the end; a port that was not split is refused by its drop.
        let held = std::mem::replace(&mut *lock(&self.0), Held::Over);
        drop(held);
    }
}

impl<R: Serialize + DeserializeOwned + Send + 'static> Serialize for ReplyTo<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_port(serializer, || ExportedPort::new(self.clone()))
    }
}

impl<'de, R: Serialize + DeserializeOwned + Send + 'static> Deserialize<'de> for ReplyTo<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let port = decoder::read_port(deserializer)?;
        Ok(ReplyTo::to_own_sink(RemotePort(Mutex::new(Held::Whole(port)))))
    }
}

impl<Q> Serialize for Call<Q>
where
    Q: Request<Reply: Serialize + DeserializeOwned> + Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.request, &self.reply_to).serialize(serializer)
    }
}

impl<'de, Q> Deserialize<'de> for Call<Q>
where
    Q: Request<Reply: Serialize + DeserializeOwned> + DeserializeOwned,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (request, reply_to) = <(Q, ReplyTo<Q::Reply>)>::deserialize(deserializer)?;
        Ok(Call::new(request, reply_to))
    }
}
