//! References to the actors that a path or pattern selects at another node. The walk is made there, for each message.

use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::elsewhere::Elsewhere;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::system::SystemRef;
use crate::path::actor_path::ActorPath;
use crate::remote::batch::{EnvelopeKind, Place};
use crate::remote::codec::EncodeError;
use crate::remote::encoder::{self, Pushed};
use crate::remote::hub::Hub;
use crate::remote::link::Link;
use crate::remote::outbox::EntryMemory;
use crate::remote::wire::{Wire, wire_id};
use std::any::Any;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;

struct FarSelection<M> {
    hub: Arc<Hub>,
    node: Box<str>,
    text: Box<str>,
    message: PhantomData<fn(M)>,
}

/// Makes the reference.
pub(crate) fn selection<M: Wire>(hub: &Arc<Hub>, node: &str, text: &str) -> ActorRef<M> {
    let (hub, node, text) = (hub.clone(), node.into(), text.into());
    ActorRef::to_own_recipient(FarSelection { hub, node, text, message: PhantomData })
}

/// Sends a message to what a text selects. It has the lane of an actor whose path is the text.
fn push<M: Wire>(link: &Arc<Link>, text: &str, message: M) -> Result<(), SendError<M>> {
    let type_id = const { wire_id(M::NAME, M::VERSION) };
    let (place, memory) = (Place::Selection { text, type_id }, EntryMemory::default());
    let lane = link.lane_of(text.split('#').next().unwrap_or(text));
    match encoder::push(link, EnvelopeKind::Select, place, &memory, lane, &[], &message) {
        Pushed::Done => Ok(()),
        Pushed::Full => Err(SendError::Full(message)),
        Pushed::Closed => Err(SendError::Closed(message)),
        Pushed::Unfit(EncodeError::TooLarge { size, max }) => Err(SendError::TooLarge { message, size, max }),
        Pushed::Unfit(EncodeError::Refused { why }) => {
            Err(SendError::Unsendable { message, why: why.into() })
        }
        Pushed::Unfit(EncodeError::Panicked(payload)) => {
            if let Some(system) = link.hub.system() {
                system.ledger().for_this_thread().dead_lettered(1);
                let message_type = std::any::type_name::<M>();
                let recipient = || link.hub.path_at(&link.peer, text);
                system.dead_letters().publish(DeadLetterReason::Panicked, message_type, recipient);
            }
            resume_unwind(payload)
        }
    }
}

fn reason<M>(refused: &SendError<M>) -> DeadLetterReason {
    match refused {
        SendError::Full(_) => DeadLetterReason::LinkFull,
        SendError::Closed(_) => DeadLetterReason::NodeGone,
        other => DeadLetterReason::of(other),
    }
}

impl<M: Wire> Elsewhere for FarSelection<M> {
    fn path(&self) -> ActorPath {
        self.hub.path_at(&self.node, &self.text)
    }

    /// A path means whatever incarnation is there.
    fn uid(&self) -> u32 {
        0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<M: Wire> OwnRecipient<M> for FarSelection<M> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        // Messages wait for a node that is not up yet as those to its actors do, in order.
        match self.hub.link_to(&self.node) {
            Some(link) => push(&link, &self.text, message).map(|()| DeliveryStatus::Passed),
            None => Err(SendError::Closed(message)),
        }
    }

    fn elsewhere(&self) -> Option<&dyn Elsewhere> {
        Some(self)
    }

    fn system(&self) -> Option<SystemRef> {
        self.hub.system().map(SystemRef::new)
    }

    fn reason(&self, refused: &SendError<M>) -> DeadLetterReason {
        reason(refused)
    }
}
