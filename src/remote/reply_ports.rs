//! Reply ports that cross to other nodes.
//!
//! A port that is sent away stays in this node's table, and a token goes in its place. At the other node a port stands for the
//! token: its reply goes back in an envelope, and if it is dropped, a refusal does. So an answer goes back on the way that the
//! right to answer has come.

use crate::ask::error::{AskError, Outcome, RefusedBy};
use crate::ask::reply::{AnsweredBy, Call, ReplyDestination, ReplyTo, Request};
use crate::core::dead_letter::{DeadLetterReason, nowhere};
use crate::remote::batch::{EnvelopeKind, Place, Token};
use crate::remote::codec::EncodeError;
use crate::remote::decoder::{self, Decoder};
use crate::remote::encoder::{self, Pushed, write_port};
use crate::remote::link::Link;
use crate::remote::ports::Port;
use crate::remote::refused::Refused;
use crate::remote::resolving::Identity;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::util::panic::drop_guarded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// A reply port of this node whose token was sent to a peer.
pub(crate) struct ExportedPort(Box<dyn AnyPort>);

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
}

impl ExportedPort {
    pub(crate) fn new<R: DeserializeOwned + Send + 'static>(port: ReplyTo<R>) -> Self {
        Self(Box::new(port))
    }

    pub(crate) fn reply(
        self,
        link: &Arc<Link>,
        mut tokens: impl Iterator<Item = Token>,
        body: &[u8],
    ) -> Option<(DeadLetterReason, &'static str)> {
        self.0.reply(link, &mut tokens, body)
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

    fn tell_refused(&mut self, refused: Refused) {
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
