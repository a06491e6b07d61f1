//! The encoding of a message for a link, with the references and reply ports in it.
//!
//! `Serialize` of a reference or a port needs to know where it goes. So the link is noted for the thread while a message is
//! encoded; anywhere else these types are not serialized.

use crate::core::actor_ref::{ActorRef, Target};
use crate::core::elsewhere::Elsewhere;
use crate::path::canonical_path::check_canonical;
use crate::remote::batch::{EnvelopeKind, Place, Token};
use crate::remote::codec::{EncodeError, encode};
use crate::remote::far::Far;
use crate::remote::link::Link;
use crate::remote::outbox::{EntryMemory, Outgoing, PushError};
use crate::remote::reply_ports::ExportedPort;
use crate::remote::wire::{Wire, wire_id};
use crate::sync::per_thread;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The most ports in a message: an envelope has a byte for their number.
const PORTS_MAX: usize = 255;

per_thread! {
    /// The link that the message being encoded goes to.
    static SCOPE: RefCell<Option<Scope>> = RefCell::new(None);
}

per_thread! {
    /// Memory that is kept for the next message.
    static SCRATCH: Cell<Option<Scratch>> = Cell::new(None);
}

struct Scope {
    link: Arc<Link>,
    /// The tokens of the ports in the message so far, behind those that the caller has given.
    tokens: Vec<Token>,
    /// The number of tokens that the caller has given.
    given: usize,
    /// The reason why a part of the message cannot be sent.
    fault: Option<Fault>,
}

/// A part of a message cannot be sent.
enum Fault {
    Unsendable(String),
    /// Too many asks have no answer.
    PortsFull,
}

#[derive(Default)]
struct Scratch {
    body: Vec<u8>,
    tokens: Vec<Token>,
}

/// The outcome of [`push`].
pub(crate) enum Pushed {
    Done,
    /// Too much waits for the peer, or too many asks have no answer.
    Full,
    /// The link has ended.
    Closed,
    Unfit(EncodeError),
}

/// Ends a scope, and begins the one before again.
struct Outer(Option<Scope>);

impl Outer {
    fn begin(scope: Scope) -> Self {
        Self(SCOPE.try_with(|current| current.borrow_mut().replace(scope)).unwrap_or(None))
    }

    fn end(mut self) -> Option<Scope> {
        let outer = self.0.take();
        SCOPE.try_with(|current| std::mem::replace(&mut *current.borrow_mut(), outer)).unwrap_or(None)
    }
}

/// Encodes a message, and puts it into the outbox of a link. The ports in it are exported; if it is refused they are taken back.
pub(crate) fn push<T: Serialize + ?Sized>(
    link: &Arc<Link>,
    kind: EnvelopeKind,
    place: Place<'_>,
    memory: &EntryMemory,
    lane: usize,
    tokens: &[Token],
    message: &T,
) -> Pushed {
    let mut scratch = SCRATCH.try_with(Cell::take).ok().flatten().unwrap_or_default();
    scratch.tokens.extend_from_slice(tokens);
    let given = tokens.len();
    let scope = Scope { link: link.clone(), tokens: std::mem::take(&mut scratch.tokens), given, fault: None };
    let outer = Outer::begin(scope);
    // It catches panics.
    let encoded = encode(message, &mut scratch.body, link.hub.envelope_max());
    let scope = outer.end();
    let (exported, fault) = scope.map_or_else(Default::default, |scope| (scope.tokens, scope.fault));
    scratch.tokens = exported;
    let pushed = match (encoded, fault) {
        (Err(EncodeError::Panicked(payload)), _) => Pushed::Unfit(EncodeError::Panicked(payload)),
        (_, Some(Fault::Unsendable(why))) => Pushed::Unfit(EncodeError::Refused { why }),
        (_, Some(Fault::PortsFull)) => Pushed::Full,
        (Err(error), None) => Pushed::Unfit(error),
        (Ok(_), None) => {
            let envelope = Outgoing { kind, place, tokens: &scratch.tokens, body: &scratch.body };
            match link.push(lane, &envelope, memory) {
                Ok(()) => Pushed::Done,
                Err(PushError::TooLarge { size, max }) => Pushed::Unfit(EncodeError::TooLarge { size, max }),
                Err(PushError::Full { .. }) => Pushed::Full,
                Err(PushError::Closed) => Pushed::Closed,
            }
        }
    };
    if !matches!(pushed, Pushed::Done) {
        for token in scratch.tokens.get(given..).unwrap_or_default() {
            drop(link.hub.ports.withdraw(*token));
        }
    }
    scratch.body.clear();
    scratch.tokens.clear();
    if scratch.body.capacity() > link.hub.settings.limits.scratch {
        scratch.body = Vec::new();
    }
    let _ = SCRATCH.try_with(|kept| kept.set(Some(scratch)));
    pushed
}

/// Encodes a value that goes to a link outside of any message. Reply ports cannot be in it.
pub(crate) fn encode_alone<T: Serialize + ?Sized>(
    link: &Arc<Link>,
    value: &T,
    max: usize,
) -> Result<Vec<u8>, EncodeError> {
    let tokens = vec![Token::default(); PORTS_MAX];
    let outer = Outer::begin(Scope { link: link.clone(), tokens, given: PORTS_MAX, fault: None });
    let mut bytes = Vec::new();
    let encoded = encode(value, &mut bytes, max);
    let fault = outer.end().and_then(|scope| scope.fault);
    match (encoded, fault) {
        (Err(panicked @ EncodeError::Panicked(_)), _) => Err(panicked),
        (_, Some(Fault::Unsendable(why))) => Err(EncodeError::Refused { why }),
        (encoded, _) => encoded.map(|_| bytes),
    }
}

/// A reference as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireRef<'a> {
    /// The name of the actor's node; `None` for the node that has written it.
    pub(crate) node: Option<Cow<'a, str>>,
    pub(crate) path: Cow<'a, str>,
    /// 0 for a reference that reaches no actor.
    pub(crate) uid: u32,
    /// The UID of the system; 0 for that of the node that has written it.
    pub(crate) system: u64,
    pub(crate) type_id: u64,
}

/// Runs `act` with the scope of the message being encoded, or says why a value cannot be encoded.
fn in_scope<R, E: serde::ser::Error>(
    kind: &str,
    act: impl FnOnce(&mut Scope) -> Result<R, String>,
) -> Result<R, E> {
    let outcome = SCOPE.try_with(|scope| match &mut *scope.borrow_mut() {
        Some(scope) => act(scope).inspect_err(|why| {
            scope.fault.get_or_insert_with(|| Fault::Unsendable(why.clone()));
        }),
        None => Err(format!("{kind} is serialized only while it is sent to another node")),
    });
    outcome.unwrap_or_else(|_| Err("the thread ends".to_owned())).map_err(E::custom)
}

impl<M: Wire> Serialize for ActorRef<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text;
        let (node, path, uid, system) = match self.target() {
            Target::Foreign(foreign) if foreign.recipient.elsewhere().is_some() => {
                let far = foreign.recipient.elsewhere().and_then(|far| far.as_any().downcast_ref::<Far>());
                let Some(far) = far else {
                    return Err(serde::ser::Error::custom(
                        "a reference to a path at another node cannot go further: resolve it first",
                    ));
                };
                (Some(far.link.peer.as_str()), far.text(), far.uid(), far.link.uid())
            }
            _ => {
                let actor = self.untyped().filter(|actor| actor.typed::<M>().is_ok_and(|same| same == *self));
                let (found, uid) = match &actor {
                    Some(actor) => (actor.path(), actor.uid()),
                    None => {
                        return in_scope("an ActorRef", |_| {
                            Err("a reference to an adapter or a function cannot go to another node: send one to an actor"
                                .to_owned())
                        });
                    }
                };
                text = found;
                if let Some(actor) = actor.filter(|_| text.as_str().starts_with("/temp/")) {
                    let link = in_scope("an ActorRef", |scope| Ok(scope.link.clone()))?;
                    link.hub.note_export(&actor);
                }
                (None, text.as_str(), uid, 0)
            }
        };
        in_scope("an ActorRef", |_| {
            check_canonical(path, uid > 0)
                .map_err(|fault| format!("the path {path} cannot go to another node: {fault}"))
        })?;
        let type_id = const { wire_id(M::NAME, M::VERSION) };
        WireRef { node: node.map(Cow::Borrowed), path: Cow::Borrowed(path), uid, system, type_id }
            .serialize(serializer)
    }
}

/// Exports a reply port, and writes its number among the tokens of the envelope.
pub(crate) fn write_port<S: Serializer>(
    serializer: S,
    port: impl FnOnce() -> ExportedPort,
) -> Result<S::Ok, S::Error> {
    let (link, number) = in_scope("a reply port", |scope| {
        let number = scope.tokens.len() - scope.given;
        if number + scope.given >= PORTS_MAX {
            return Err(format!("a message has at most {PORTS_MAX} reply ports"));
        }
        Ok((scope.link.clone(), number as u8))
    })?;
    // Without the scope: ports that are swept for room may run code of their askers.
    let exported = link.export(port());
    in_scope("a reply port", |scope| match exported {
        Ok(token) => {
            scope.tokens.push(token);
            Ok(())
        }
        Err(_) => {
            scope.fault = Some(Fault::PortsFull);
            Err("too many asks have no answer".to_owned())
        }
    })?;
    serializer.serialize_u8(number)
}
