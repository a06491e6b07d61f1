//! Reply ports that cross to other nodes.
//!
//! A port that is sent away stays in this node's table, and a token goes in its place. At the other node a port stands for the
//! token: its reply goes back in an envelope, and if it is dropped, a refusal does. So an answer goes back on the way that the
//! right to answer has come.

use crate::ask::error::{AskError, NoReplyCause, Outcome, RefusedBy};
use crate::ask::reply::{AnsweredBy, Call, ReplyDestination, ReplyTo, Request};
use crate::core::dead_letter::DeadLetterReason;
use crate::remote::batch::{EnvelopeKind, Place, Token};
use crate::remote::codec::EncodeError;
use crate::remote::decoder;
use crate::remote::encoder::{self, Pushed, write_port};
use crate::remote::link::Link;
use crate::remote::ports::Port;
use crate::remote::resolving::Identity;
use crate::sync::atomic::{AtomicBool, Ordering};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// A reply port of this node whose token was sent to a peer.
pub(crate) struct ExportedPort(Box<dyn AnyPort>);

trait AnyPort: Send {
    fn is_wanted(&self) -> bool;
    /// Decodes the reply, and completes the ask.
    fn reply(self: Box<Self>, link: &Arc<Link>, tokens: &mut dyn Iterator<Item = Token>, body: &[u8]);
    fn fail(self: Box<Self>, error: AskError);
}

impl<R: DeserializeOwned + Send + 'static> AnyPort for ReplyTo<R> {
    fn is_wanted(&self) -> bool {
        self.wanted()
    }

    fn reply(self: Box<Self>, link: &Arc<Link>, tokens: &mut dyn Iterator<Item = Token>, body: &[u8]) {
        match decoder::read::<R>(link, tokens, body) {
            // A late reply is counted by the port.
            Ok(reply) => drop(self.send(reply)),
            Err(_) => ReplyTo::fail(*self, AskError::refused_by(RefusedBy::Undecodable)),
        }
    }

    fn fail(self: Box<Self>, error: AskError) {
        ReplyTo::fail(*self, error);
    }
}

impl ExportedPort {
    pub(crate) fn new<R: DeserializeOwned + Send + 'static>(port: ReplyTo<R>) -> Self {
        Self(Box::new(port))
    }

    pub(crate) fn reply(self, link: &Arc<Link>, mut tokens: impl Iterator<Item = Token>, body: &[u8]) {
        self.0.reply(link, &mut tokens, body);
    }

    pub(crate) fn fail(self, error: AskError) {
        self.0.fail(error);
    }
}

impl Port for ExportedPort {
    fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}

/// The reason why a port is refused, as it is written. New reasons come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refused {
    Failed,
    Ignored,
    Unread,
    Stopped,
    Full,
    NoRoutees,
    NoActor,
    WrongType,
    UnknownType,
    Undecodable,
    NotAllowed,
    ReplyTooLarge,
    Unsendable,
    PeerGone,
}

impl Refused {
    fn of(error: &AskError) -> Self {
        match error {
            AskError::NoReply { cause: NoReplyCause::Failed, .. } | AskError::AllFailed { .. } => {
                Self::Failed
            }
            AskError::NoReply { cause: NoReplyCause::Unread, .. } => Self::Unread,
            AskError::Undeliverable { reason: DeadLetterReason::Full, .. } => Self::Full,
            AskError::Undeliverable { reason: DeadLetterReason::NoActor, .. } => Self::NoActor,
            AskError::Undeliverable { .. } => Self::Stopped,
            AskError::NoRoutees { .. } => Self::NoRoutees,
            AskError::PeerGone { .. } => Self::PeerGone,
            AskError::Refused { by, .. } => match by {
                RefusedBy::WrongType => Self::WrongType,
                RefusedBy::UnknownType => Self::UnknownType,
                RefusedBy::NotAllowed => Self::NotAllowed,
                RefusedBy::ReplyTooLarge => Self::ReplyTooLarge,
                RefusedBy::ReplyUnsendable => Self::Unsendable,
                RefusedBy::Undecodable => Self::Undecodable,
            },
            _ => Self::Ignored,
        }
    }

    /// The error of the ask.
    pub(crate) fn error(self) -> AskError {
        let no_reply = |cause| AskError::NoReply { cause, target: None };
        match self {
            Self::Failed => no_reply(NoReplyCause::Failed),
            Self::Ignored => no_reply(NoReplyCause::Ignored),
            Self::Unread => no_reply(NoReplyCause::Unread),
            Self::Stopped => AskError::refused_for(DeadLetterReason::Stopped),
            Self::Full => AskError::refused_for(DeadLetterReason::Full),
            Self::NoActor => AskError::refused_for(DeadLetterReason::NoActor),
            Self::NoRoutees => AskError::no_routees(),
            Self::WrongType => AskError::refused_by(RefusedBy::WrongType),
            Self::UnknownType => AskError::refused_by(RefusedBy::UnknownType),
            Self::Undecodable => AskError::refused_by(RefusedBy::Undecodable),
            Self::NotAllowed => AskError::refused_by(RefusedBy::NotAllowed),
            Self::ReplyTooLarge => AskError::refused_by(RefusedBy::ReplyTooLarge),
            Self::Unsendable => AskError::refused_by(RefusedBy::ReplyUnsendable),
            Self::PeerGone => AskError::PeerGone { target: None },
        }
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

    fn send<T: Serialize>(&mut self, kind: EnvelopeKind, body: &T) -> Pushed {
        let lane = self.link.lane_of_port(&self.token);
        let memory = self.link.port_memory(lane);
        encoder::push(&self.link, kind, Place::Port, memory, lane, &[self.token], body)
    }

    /// Answers with a reply.
    pub(crate) fn answer<R: Serialize>(mut self, reply: &R) {
        self.is_answered = true;
        let refused = match self.send(EnvelopeKind::Reply, reply) {
            // A full outbox loses the reply: the asker's time ends, or the link does.
            Pushed::Done | Pushed::Refused(_) => return,
            Pushed::Unfit(EncodeError::TooLarge { .. }) => Refused::ReplyTooLarge,
            Pushed::Unfit(_) => Refused::Unsendable,
        };
        self.tell_refused(refused);
    }

    /// Answers the request for a reference.
    pub(crate) fn identify(mut self, identity: &Identity) {
        self.is_answered = true;
        let _ = self.send(EnvelopeKind::Identity, identity);
    }

    /// Ends the ask without a reply.
    pub(crate) fn refuse(mut self, refused: Refused) {
        self.is_answered = true;
        self.tell_refused(refused);
    }

    fn tell_refused(&mut self, refused: Refused) {
        let _ = self.send(EnvelopeKind::RefusedReply, &refused);
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

/// The destination of a reply port that came from a peer.
struct RemotePort(crate::sync::Mutex<Option<ImportedPort>>);

impl<R: Serialize + Send> ReplyDestination<R> for RemotePort {
    fn take(&self, outcome: Outcome<R>, _: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        let Some(port) = crate::sync::lock(&self.0).take() else { return Err(outcome) };
        match outcome {
            Ok(reply) => port.answer(&reply),
            Err(error) => port.refuse(Refused::of(&error)),
        }
        Ok(())
    }

    fn wanted(&self) -> bool {
        crate::sync::lock(&self.0).as_ref().is_some_and(ImportedPort::is_wanted)
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
        Ok(ReplyTo::to_own_sink(RemotePort(crate::sync::Mutex::new(Some(port)))))
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
