//! The message types that a node knows, by the number on the wire and by `TypeId`.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::{AnyActorRef, WrongType};
use crate::core::dead_letter::DeadLetterReason;
use crate::core::recipient::DeliveryStatus;
use crate::remote::batch::Token;
use crate::remote::chokes::{Backlog, Queue};
use crate::remote::codec::{DecodeError, EncodeError, decode, encode};
use crate::remote::decoder::Decoder;
use crate::remote::far_selection::selection;
use crate::remote::hub::Hub;
use crate::remote::leaving;
use crate::remote::link::Link;
use crate::remote::refused::refusing;
use crate::remote::split_ports::forward_to_each;
use crate::remote::wire::{NAME_MAX, Wire, is_name, wire_id};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::quietly;
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Appends a message to the bytes, if it has at most so many.
type Encode = fn(&dyn Any, &mut Vec<u8>, usize) -> Result<usize, EncodeError>;

type Decode = fn(&[u8]) -> Result<Box<dyn Any + Send>, DecodeError>;

/// A reference to an actor or router here, which takes the bodies of messages of one type.
pub(crate) trait Inlet {
    /// Decodes a message of the link, which is counted already, and delivers it. Returns the reason if the recipient has refused
    /// it: it is a dead letter then. `asks_each`: each actor that gets the message is to answer.
    fn deliver(
        &self,
        link: &Arc<Link>,
        decoder: &mut Decoder,
        tokens: &mut dyn Iterator<Item = Token>,
        body: &[u8],
        asks_each: bool,
    ) -> Result<Option<DeadLetterReason>, DecodeError>;

    /// Decodes a request of the link to leave a router, and tells the actor. Returns the time that it has.
    fn leave(
        &self,
        link: &Arc<Link>,
        decoder: &mut Decoder,
        tokens: &mut dyn Iterator<Item = Token>,
        body: &[u8],
    ) -> Result<Option<Duration>, DecodeError>;

    /// The messages that wait in the actor; `None` if they have no bound.
    fn backlog(&self) -> Option<Backlog>;

    /// The actor.
    fn actor(&self) -> Option<AnyActorRef>;
}

impl<M: Wire> Inlet for ActorRef<M> {
    fn deliver(
        &self,
        link: &Arc<Link>,
        decoder: &mut Decoder,
        tokens: &mut dyn Iterator<Item = Token>,
        body: &[u8],
        asks_each: bool,
    ) -> Result<Option<DeadLetterReason>, DecodeError> {
        let message = decoder.read::<M>(link, tokens, body)?;
        let mut reason = None;
        // A router runs code of the user, which accounts for the message when it unwinds.
        let forward = |message| match asks_each {
            true => forward_to_each(self, message),
            false => self.forward_counted(message),
        };
        quietly(|| match forward(message) {
            Ok(DeliveryStatus::Passed) => {}
            Ok(DeliveryStatus::Handled) => {
                if let Some(system) = self.system() {
                    system.ledger().for_this_thread().handled_by_function();
                }
            }
            Err(refused) => {
                let why = DeadLetterReason::of(&refused);
                reason = Some(why);
                refusing(why, || self.dead_letter(refused));
            }
        });
        Ok(reason)
    }

    fn leave(
        &self,
        link: &Arc<Link>,
        decoder: &mut Decoder,
        tokens: &mut dyn Iterator<Item = Token>,
        body: &[u8],
    ) -> Result<Option<Duration>, DecodeError> {
        leaving::tell(self, link, decoder, tokens, body)
    }

    fn backlog(&self) -> Option<Backlog> {
        self.queued_and_capacity().map(|(queued, capacity)| Backlog::new(queued, capacity))
    }

    fn actor(&self) -> Option<AnyActorRef> {
        self.untyped()
    }
}

impl Queue for AnyActorRef {
    fn queued(&self) -> Option<usize> {
        (!self.is_closed()).then(|| AnyActorRef::queued(self))
    }
}

/// Makes an `ActorRef` to what a text selects at a node.
type MakeSelection = fn(&Arc<Hub>, &str, &str) -> Box<dyn Any + Send>;

/// Makes the untyped reference to an incarnation of a peer.
type MakeFar = fn(&Arc<Link>, &str, u32) -> Option<AnyActorRef>;

type MakeInlet = fn(&AnyActorRef) -> Result<Box<dyn Inlet>, WrongType>;

/// A type that is known to a node, without its parameter.
#[derive(Clone, Copy)]
pub(crate) struct WireType {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
    pub(crate) version: u16,
    pub(crate) rust_name: &'static str,
    type_id: TypeId,
    encode: Encode,
    decode: Decode,
    inlet: MakeInlet,
    selection: MakeSelection,
    far: MakeFar,
}

impl WireType {
    pub(crate) fn of<M: Wire>() -> Self {
        Self {
            id: wire_id(M::NAME, M::VERSION),
            name: M::NAME,
            version: M::VERSION,
            rust_name: type_name::<M>(),
            type_id: TypeId::of::<M>(),
            encode: |message, to, max| match message.downcast_ref::<M>() {
                Some(message) => encode(message, to, max),
                None => Err(EncodeError::Refused { why: format!("it is no {}", type_name::<M>()) }),
            },
            decode: |bytes| decode::<M>(bytes).map(|message| Box::new(message) as _),
            selection: |hub, node, text| Box::new(selection::<M>(hub, node, text)),
            far: |link, path, uid| link.far::<M>(path, uid)?.untyped(),
            inlet: |actor| actor.typed::<M>().map(|actor| Box::new(actor) as _),
        }
    }

    /// Encodes a message whose type has no bound at the caller.
    pub(crate) fn encode(
        &self,
        message: &dyn Any,
        to: &mut Vec<u8>,
        max: usize,
    ) -> Result<usize, EncodeError> {
        (self.encode)(message, to, max)
    }

    /// Returns the reference that takes messages of this type.
    pub(crate) fn inlet(&self, actor: &AnyActorRef) -> Result<Box<dyn Inlet>, WrongType> {
        (self.inlet)(actor)
    }

    /// Returns the untyped reference to an incarnation of a peer that takes messages of this type.
    pub(crate) fn far(&self, link: &Arc<Link>, path: &str, uid: u32) -> Option<AnyActorRef> {
        (self.far)(link, path, uid)
    }

    /// Decodes a message of this type.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<Box<dyn Any + Send>, DecodeError> {
        (self.decode)(bytes)
    }
}

/// A type cannot be registered.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum RegisterError {
    /// The name is none.
    Name { name: &'static str, rust_name: &'static str },
    /// The version is 0.
    Version { name: &'static str, rust_name: &'static str },
    /// The type is registered already.
    Again { rust_name: &'static str },
    /// Another type has this name and version.
    Taken { name: &'static str, version: u16, by: &'static str, rust_name: &'static str },
    /// Another name and version have the same number.
    SameId { name: &'static str, version: u16, other: &'static str, other_version: u16 },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Name { name, rust_name } => write!(
                f,
                "{name:?} of {rust_name} is no name on the wire: use 1 to {NAME_MAX} ASCII letters, digits, '.', '_' and \
                 '-', the first of them a letter or digit"
            ),
            RegisterError::Version { name, rust_name } => {
                write!(f, "{name:?} of {rust_name} has the version 0: versions begin with 1")
            }
            RegisterError::Again { rust_name } => {
                write!(f, "{rust_name} is registered already: register each type once")
            }
            RegisterError::Taken { name, version, by, rust_name } => write!(
                f,
                "{name:?} in version {version} is {by} and cannot be {rust_name} too: give one of them another name or \
                 version"
            ),
            RegisterError::SameId { name, version, other, other_version } => write!(
                f,
                "{name:?} in version {version} and {other:?} in version {other_version} have the same number on the wire: \
                 rename one of them"
            ),
        }
    }
}

impl std::error::Error for RegisterError {}

debug_by_display! { RegisterError }

/// A type, or a number on the wire, is not registered.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum UnknownType {
    Id { id: u64 },
    Type { rust_name: &'static str },
}

impl fmt::Display for UnknownType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownType::Id { id } => write!(
                f,
                "no type with the number {id:#018x} is registered at this node: register it, in the version of the sender"
            ),
            UnknownType::Type { rust_name } => {
                write!(f, "{rust_name} is not registered at this node: register it before it is sent")
            }
        }
    }
}

impl std::error::Error for UnknownType {}

debug_by_display! { UnknownType }

/// All types of a node. It is filled before the node starts, and never changes afterwards.
#[derive(Default)]
pub(crate) struct Registry {
    by_id: HashMap<u64, WireType>,
    by_type: HashMap<TypeId, u64>,
}

impl Registry {
    pub(crate) fn register<M: Wire>(&mut self) -> Result<(), RegisterError> {
        self.add(WireType::of::<M>())
    }

    fn add(&mut self, new: WireType) -> Result<(), RegisterError> {
        let WireType { id, name, version, rust_name, type_id, .. } = new;
        if !is_name(name) {
            return Err(RegisterError::Name { name, rust_name });
        }
        if version == 0 {
            return Err(RegisterError::Version { name, rust_name });
        }
        if self.by_type.contains_key(&type_id) {
            return Err(RegisterError::Again { rust_name });
        }
        if let Some(had) = self.by_id.get(&id) {
            return Err(if (had.name, had.version) == (name, version) {
                RegisterError::Taken { name, version, by: had.rust_name, rust_name }
            } else {
                RegisterError::SameId { name, version, other: had.name, other_version: had.version }
            });
        }
        self.by_id.insert(id, new);
        self.by_type.insert(type_id, id);
        Ok(())
    }

    /// The type of this number, which stands in a batch.
    pub(crate) fn by_id(&self, id: u64) -> Result<&WireType, UnknownType> {
        self.by_id.get(&id).ok_or(UnknownType::Id { id })
    }

    /// The number of the type of message that an actor or router takes, if it is registered.
    pub(crate) fn id_of(&self, actor: &AnyActorRef) -> Option<u64> {
        self.by_id.values().find(|known| known.inlet(actor).is_ok()).map(|known| known.id)
    }

    /// The reference to what a text selects at a node, if messages of this type are registered.
    pub(crate) fn selection(
        &self,
        hub: &Arc<Hub>,
        node: &str,
        text: &str,
        message: TypeId,
    ) -> Option<Box<dyn Any + Send>> {
        let known = self.by_id.get(self.by_type.get(&message)?)?;
        Some((known.selection)(hub, node, text))
    }

    /// The number of `M`, which need not have the bound.
    pub(crate) fn of<M: 'static>(&self) -> Result<&WireType, UnknownType> {
        let id = self.by_type.get(&TypeId::of::<M>());
        let found = id.and_then(|id| self.by_id.get(id));
        found.ok_or(UnknownType::Type { rust_name: type_name::<M>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    macro_rules! wire_types {
        ($($type:ident = $name:expr, $version:literal;)*) => {
            $(#[derive(Debug, PartialEq, Serialize, Deserialize)]
            struct $type(u32);
            impl Wire for $type {
                const NAME: &'static str = $name;
                const VERSION: u16 = $version;
            })*
        };
    }

    wire_types! {
        Order = "shop.Order", 1;
        NewOrder = "shop.Order", 2;
        Thief = "shop.Order", 1;
        Spaced = "shop Order", 1;
        Unborn = "shop.Unborn", 0;
    }

    #[test]
    fn types_are_found_by_number_and_by_type() {
        let mut registry = Registry::default();
        registry.register::<Order>().unwrap();
        registry.register::<NewOrder>().unwrap();
        let order = *registry.by_id(wire_id("shop.Order", 1)).unwrap();
        assert_eq!((order.name, order.version), ("shop.Order", 1));
        let new = *registry.of::<NewOrder>().unwrap();
        assert_eq!((new.id, new.version), (wire_id("shop.Order", 2), 2));
        let mut bytes = Vec::new();
        assert!(matches!(new.encode(&NewOrder(300), &mut bytes, 10), Ok(2)));
        assert_eq!(new.decode(&bytes).unwrap().downcast_ref(), Some(&NewOrder(300)));
        assert!(matches!(new.encode(&Order(300), &mut bytes, 10), Err(EncodeError::Refused { .. })));
    }

    #[test]
    fn refusals_say_what_to_do() {
        let mut registry = Registry::default();
        registry.register::<Order>().unwrap();
        let said = [
            registry.register::<Order>(),
            registry.register::<Thief>(),
            registry.register::<Spaced>(),
            registry.register::<Unborn>(),
        ]
        .map(|outcome| outcome.expect_err("refused").to_string());
        for (text, part) in said.iter().zip([
            "register each type once",
            "give one of them another name or version",
            "use 1 to 64 ASCII letters",
            "versions begin with 1",
        ]) {
            assert!(text.contains(part), "{text}");
        }
        // Two names of one number, which would take a search to find.
        let other =
            WireType { name: "shop.Other", type_id: TypeId::of::<Thief>(), ..WireType::of::<Order>() };
        let fault = registry.add(other).expect_err("the number is taken");
        assert!(matches!(fault, RegisterError::SameId { other: "shop.Order", .. }), "{fault}");
        let unknown = registry.by_id(7).err().expect("there is none").to_string();
        assert!(unknown.contains("0x0000000000000007"), "{unknown}");
        let unknown = registry.of::<String>().err().expect("there is none").to_string();
        assert!(unknown.contains("String is not registered"), "{unknown}");
    }
}
