//! References to the actors that a path or pattern selects at another node. The walk is made there, for each message.

use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::system::{SystemCore, SystemRef};
use crate::remote::batch::{EnvelopeKind, Place};
use crate::remote::codec::EncodeError;
use crate::remote::encoder::{self, Pushed};
use crate::remote::hub::Hub;
use crate::remote::link::Link;
use crate::remote::outbox::EntryMemory;
use crate::remote::wire::{Wire, wire_id};
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;

struct FarSelection<M> {
    hub: Arc<Hub>,
    node: Box<str>,
    text: Arc<str>,
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

fn dead_letter<M: Send + 'static>(
    system: &SystemCore,
    hub: &Hub,
    node: &str,
    text: &str,
    refused: SendError<M>,
) {
    system.ledger().for_this_thread().dead_lettered(1);
    let why = reason(&refused);
    system.dead_letters().publish_dead_letter(refused.into_inner(), why, || hub.path_at(node, text));
}

impl<M: Wire> OwnRecipient<M> for FarSelection<M> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        if let Some(link) = self.hub.active_link(&self.node) {
            return push(&link, &self.text, message).map(|()| DeliveryStatus::Passed);
        }
        let Some(waits) = self.hub.begin_waiting() else { return Err(SendError::Full(message)) };
        let (hub, node, text) = (self.hub.clone(), self.node.clone(), self.text.clone());
        self.hub.when_up(
            &self.node,
            Box::new(move |link| {
                drop(waits);
                let Some(system) = hub.system() else { return };
                let sent = match link {
                    Some(link) => push(link, &text, message),
                    None => Err(SendError::Closed(message)),
                };
                if let Err(refused) = sent {
                    dead_letter(&system, &hub, &node, &text, refused);
                }
            }),
        );
        Ok(DeliveryStatus::Passed)
    }

    fn system(&self) -> Option<SystemRef> {
        self.hub.system().map(SystemRef::new)
    }

    fn reason(&self, refused: &SendError<M>) -> DeadLetterReason {
        reason(refused)
    }
}
