//! The decoding of a message of a link, with the references and reply ports in it.

use crate::core::actor_ref::ActorRef;
use crate::path::actor_path::ActorPath;
use crate::path::address::is_node_name;
use crate::path::canonical_path::check_canonical;
use crate::remote::batch::Token;
use crate::remote::codec::{DecodeError, decode_within};
use crate::remote::encoder::WireRef;
use crate::remote::link::Link;
use crate::remote::refused::Refused;
use crate::remote::reply_ports::ImportedPort;
use crate::remote::wire::{Wire, wire_id};
use crate::sync::per_thread;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use std::cell::RefCell;
use std::sync::Arc;

per_thread! {
    /// The link from which the message being decoded came.
    static SCOPE: RefCell<Option<Box<Scope>>> = RefCell::new(None);
}

struct Scope {
    link: Arc<Link>,
    /// The ports of the envelope; those that the message has taken are gone.
    ports: Vec<Option<ImportedPort>>,
}

/// Decodes the messages of one link after the other, and keeps the memory that each of them needs.
#[derive(Default)]
pub(crate) struct Decoder(Option<Box<Scope>>);

impl Decoder {
    /// Decodes a message of the peer. All ports of its envelope that it does not take are refused for this reason.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        link: &Arc<Link>,
        tokens: impl Iterator<Item = Token>,
        body: &[u8],
    ) -> Result<T, DecodeError> {
        let kept = self.0.take().filter(|scope| Arc::ptr_eq(&scope.link, link));
        let mut scope = kept.unwrap_or_else(|| Box::new(Scope { link: link.clone(), ports: Vec::new() }));
        for token in tokens {
            scope.ports.push(Some(link.import(token)));
        }
        let outer = SCOPE.try_with(|current| current.borrow_mut().replace(scope)).unwrap_or(None);
        // It catches panics.
        // A limit is at most 128.
        let decoded = decode_within::<T>(body, link.hub.settings.limits.depth as u32);
        self.0 =
            SCOPE.try_with(|current| std::mem::replace(&mut *current.borrow_mut(), outer)).unwrap_or(None);
        if let Some(scope) = self.0.as_deref_mut().filter(|scope| !scope.ports.is_empty()) {
            for port in scope.ports.drain(..).flatten() {
                match &decoded {
                    Ok(_) => drop(port),
                    Err(_) => port.refuse(Refused::Undecodable),
                }
            }
        }
        decoded
    }
}

fn in_scope<R, E: Error>(kind: &str, act: impl FnOnce(&mut Scope) -> Result<R, String>) -> Result<R, E> {
    let outcome = SCOPE.try_with(|scope| match &mut *scope.borrow_mut() {
        Some(scope) => act(scope),
        None => Err(format!("{kind} is deserialized only in a message of another node")),
    });
    outcome.unwrap_or_else(|_| Err("the thread ends".to_owned())).map_err(E::custom)
}

/// Takes the port of this number out of the envelope that is being decoded.
pub(crate) fn read_port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ImportedPort, D::Error> {
    let number = u8::deserialize(deserializer)?;
    in_scope("a reply port", |scope| {
        let port = scope.ports.get_mut(usize::from(number)).and_then(Option::take);
        port.ok_or_else(|| format!("the envelope has no port {number}, or it is taken"))
    })
}

impl<'de, M: Wire> Deserialize<'de> for ActorRef<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = WireRef::deserialize(deserializer)?;
        if read.type_id != const { wire_id(M::NAME, M::VERSION) } {
            return Err(D::Error::custom("the reference takes another type of message"));
        }
        let link = in_scope("an ActorRef", |scope| Ok(scope.link.clone()))?;
        resolve(&link, &read).map_err(D::Error::custom)
    }
}

/// The reference that a peer has written.
fn resolve<M: Wire>(link: &Arc<Link>, read: &WireRef<'_>) -> Result<ActorRef<M>, String> {
    let WireRef { node, path, uid, system, .. } = read;
    check_canonical(path, *uid > 0).map_err(|fault| format!("a path is not canonical: {fault}"))?;
    let hub = &link.hub;
    let node = match node {
        // Its own, at the start that has sent it.
        None => return link.far(path, *uid).ok_or_else(same_name::<M>),
        Some(node) => node,
    };
    if !is_node_name(node) {
        return Err("a reference has the name of no node".to_owned());
    }
    if **node != hub.settings.name.node {
        // 0: the writer did not know the node either, and means its present start.
        let link = if *system == 0 { hub.link_to(node) } else { hub.link(node, *system) };
        let link = link.ok_or("the node ends")?;
        return link.far(path, *uid).ok_or_else(same_name::<M>);
    }
    let core = hub.system().ok_or("the system has ended")?;
    let path: ActorPath = path.parse().map_err(|_| "a path cannot be read")?;
    let path = path.with_uid(*uid);
    let living =
        if *uid > 0 && (*system == 0 || hub.was_uid(*system)) { core.actor_at(&path).ok() } else { None };
    match living.map(|actor| actor.typed::<M>()) {
        Some(Ok(actor)) => Ok(actor),
        Some(Err(_)) => Err("the actor takes another type of message".to_owned()),
        None => Ok(core.empty_ref_at(path)),
    }
}

fn same_name<M: Wire>() -> String {
    format!("two types here have the name {:?} in version {}", M::NAME, M::VERSION)
}
