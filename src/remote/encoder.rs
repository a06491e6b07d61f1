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
use std::sync::Weak;

/// The most ports in a message: an envelope has a byte for their number.
const PORTS_MAX: usize = 255;

per_thread! {
    /// The link that the message being encoded goes to.
    static SCOPE: RefCell<Option<Box<Scope>>> = RefCell::new(None);
}

per_thread! {
    /// Memory that is kept for the next message.
    static KEPT: Cell<Option<Box<Scope>>> = Cell::new(None);
}

/// A message that is encoded. It is moved as one pointer.
#[derive(Default)]
struct Scope {
    /// Between two messages a thread keeps the memory of the link, and not the link: a clone for each message would be two
    /// atomic operations.
    link: Weak<Link>,
    /// The tokens of the ports in the message so far, behind those that the caller has given.
    tokens: Vec<Token>,
    /// The number of tokens that the caller has given.
    given: usize,
    /// The reason why a part of the message cannot be sent.
    fault: Option<Fault>,
    /// The memory of the encoded message, which is elsewhere while it is written.
    body: Vec<u8>,
}

/// A part of a message cannot be sent.
enum Fault {
    Unsendable(String),
    /// Too many asks have no answer.
    PortsFull,
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

/// Sets the scope of this thread, and returns the one before.
fn replace_scope(scope: Option<Box<Scope>>) -> Option<Box<Scope>> {
    SCOPE.try_with(|current| std::mem::replace(&mut *current.borrow_mut(), scope)).unwrap_or(None)
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
    let mut scope = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    if !std::ptr::eq(scope.link.as_ptr(), Arc::as_ptr(link)) {
        scope.link = Arc::downgrade(link);
    }
    scope.tokens.extend_from_slice(tokens);
    scope.given = tokens.len();
    let mut body = std::mem::take(&mut scope.body);
    let outer = replace_scope(Some(scope));
    let envelope_max = link.hub.envelope_max();
    let max = if kind.may_be_large() { link.hub.message_max() } else { envelope_max };
    // It catches panics.
    let encoded = encode(message, &mut body, max);
    // There is none if the thread ends.
    let mut scope = replace_scope(outer).unwrap_or_default();
    let pushed = match (encoded, scope.fault.take()) {
        (Err(EncodeError::Panicked(payload)), _) => Pushed::Unfit(EncodeError::Panicked(payload)),
        (_, Some(Fault::Unsendable(why))) => Pushed::Unfit(EncodeError::Refused { why }),
        (_, Some(Fault::PortsFull)) => Pushed::Full,
        (Err(error), None) => Pushed::Unfit(error),
        (Ok(size), None) => {
            let envelope = Outgoing { kind, place, tokens: &scope.tokens, body: &body };
            let pushed = if size > envelope_max {
                link.push_large(lane, &envelope)
            } else {
                match link.push(lane, &envelope, memory) {
                    // It is larger than the window of the peer.
                    Err(PushError::TooLarge { .. }) if max > envelope_max => link.push_large(lane, &envelope),
                    pushed => pushed,
                }
            };
            match pushed {
                Ok(()) => Pushed::Done,
                Err(PushError::TooLarge { size, max }) => Pushed::Unfit(EncodeError::TooLarge { size, max }),
                Err(PushError::Full { .. }) => Pushed::Full,
                Err(PushError::Closed) => Pushed::Closed,
            }
        }
    };
    if !matches!(pushed, Pushed::Done) {
        for token in scope.tokens.get(scope.given..).unwrap_or_default() {
            drop(link.hub.ports.withdraw(*token));
        }
    }
    scope.tokens.clear();
    body.clear();
    if body.capacity() <= link.hub.settings.limits.scratch {
        scope.body = body;
    }
    let _ = KEPT.try_with(|kept| kept.set(Some(scope)));
    pushed
}

/// Encodes a value that goes to a link outside of any message. Reply ports cannot be in it.
pub(crate) fn encode_alone<T: Serialize + ?Sized>(
    link: &Arc<Link>,
    value: &T,
    max: usize,
) -> Result<Vec<u8>, EncodeError> {
    let tokens = vec![Token::default(); PORTS_MAX];
    let scope = Scope { link: Arc::downgrade(link), tokens, given: PORTS_MAX, ..Scope::default() };
    let outer = replace_scope(Some(Box::new(scope)));
    let mut bytes = Vec::new();
    let encoded = encode(value, &mut bytes, max);
    let fault = replace_scope(outer).and_then(|scope| scope.fault);
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

/// Runs `act` with the scope of the message being encoded and its link, or says why a value cannot be encoded.
fn in_scope<R, E: serde::ser::Error>(
    kind: &str,
    act: impl FnOnce(&mut Scope, Arc<Link>) -> Result<R, String>,
) -> Result<R, E> {
    let outcome = SCOPE.try_with(|current| match current.borrow_mut().as_deref_mut() {
        // The caller of `push` has the link.
        Some(scope) => scope.link.upgrade().ok_or_else(|| "the link has ended".to_owned()).and_then(|link| {
            act(scope, link).inspect_err(|why| {
                scope.fault.get_or_insert_with(|| Fault::Unsendable(why.clone()));
            })
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
                        return in_scope("an ActorRef", |_, _| {
                            Err("a reference to an adapter or a function cannot go to another node: send one to an actor"
                                .to_owned())
                        });
                    }
                };
                text = found;
                if let Some(actor) = actor.filter(|_| text.as_str().starts_with("/temp/")) {
                    let link = in_scope("an ActorRef", |_, link| Ok(link))?;
                    link.hub.note_export(&actor);
                }
                (None, text.as_str(), uid, 0)
            }
        };
        in_scope("an ActorRef", |_, _| {
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
    let (link, number) = in_scope("a reply port", |scope, link| {
        let number = scope.tokens.len() - scope.given;
        if scope.given == PORTS_MAX {
            return Err("reply ports are sent in messages alone".to_owned());
        }
        if number + scope.given >= PORTS_MAX {
            return Err(format!("a message has at most {PORTS_MAX} reply ports"));
        }
        Ok((link, number as u8))
    })?;
    // Without the scope: ports that are swept for room may run code of their askers.
    let exported = link.export(port());
    in_scope("a reply port", |scope, _| match exported {
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
