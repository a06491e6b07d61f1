//! The actor that handles the batches of one lane of a peer, in order.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::turn::apply;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::system::SystemCore;
use crate::remote::batch::{Batch, Envelope, EnvelopeKind, Place};
use crate::remote::control_message::ControlMessage;
use crate::remote::link::Link;
use crate::remote::policy::{Incoming, NotAllowed, Target};
use crate::remote::registry::{Inlet, WireType};
use std::sync::Arc;

/// The batches that a lane handles before other actors have their turn.
const BATCHES_A_TURN: usize = 4;

/// Handles the batches of a lane.
pub(crate) struct Lane {
    link: Arc<Link>,
    number: u8,
}

impl Actor for Lane {
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }
}

/// Where the messages of a place of a batch go.
enum Found {
    /// The actor or router, and the type of its messages.
    Inlet(Box<dyn Inlet>),
    /// The messages are dead letters, for this reason.
    Refused(DeadLetterReason),
}

impl Lane {
    /// Makes the actor of a lane; `None` if the system is at its end.
    pub(crate) fn spawn(link: &Arc<Link>, number: u8) -> Option<AnyActorRef> {
        let system = link.hub.system()?;
        let link = link.clone();
        let made = ActorBuilder::new(system.system_guardian(), None)
            .internal()
            .spawn(move || Lane { link: link.clone(), number });
        made.ok().map(|lane| lane.any_local())
    }

    /// Tells the actor of a lane that batches wait. This is control, which no ledger counts.
    pub(crate) fn tell(lane: &AnyActorRef) {
        // One that has ended handles no batches: its link or its system has ended.
        let _ = lane.send_system(apply::<Lane>(|lane, ctx| {
            lane.handle_some(ctx);
            Ok(())
        }));
    }

    fn handle_some(&mut self, ctx: &mut Context<Never>) {
        for _ in 0..BATCHES_A_TURN {
            let Some(frame) = self.link.next_batch(self.number) else { return };
            self.handle(&frame, &ctx.core().system);
        }
        Lane::tell(&ctx.me().any_local());
    }

    fn handle(&self, frame: &[u8], system: &Arc<SystemCore>) {
        let link = &self.link;
        let lanes = link.incoming_lanes();
        let envelopes = match Batch::read(frame, lanes, link.hub.settings.limits.envelope) {
            Ok(batch) => {
                let mut found: Vec<Option<Found>> = batch.places().iter().map(|_| None).collect();
                for envelope in batch.envelopes() {
                    let place = &mut found[usize::from(envelope.entry)];
                    self.take(&envelope, place, system);
                }
                link.hub.mark_shown(link, self.number, batch.position.mark);
                batch.prefix.envelopes
            }
            Err(_) => {
                link.count_malformed();
                crate::remote::frame::Prefix::read(frame, lanes).map_or(0, |prefix| prefix.envelopes)
            }
        };
        if let Some(receipt) = link.consumed(self.number, envelopes, frame.len(), system.now()) {
            link.hub.send_on(link, &ControlMessage::Credit(vec![receipt]));
        }
    }

    fn take(&self, envelope: &Envelope<'_>, found: &mut Option<Found>, system: &Arc<SystemCore>) {
        if link_is_over(&self.link) {
            return;
        }
        if let (EnvelopeKind::Tell, Place::Actor { path, type_id, .. }) = (envelope.kind, envelope.place) {
            let found = found.get_or_insert_with(|| self.find(&envelope.place, system));
            let row = system.ledger().for_this_thread();
            row.received(1);
            let reason = match found {
                Found::Inlet(inlet) => match inlet.deliver(envelope.body) {
                    Ok(()) => return,
                    Err(_) => DeadLetterReason::Undecodable,
                },
                Found::Refused(reason) => *reason,
            };
            row.dead_lettered(1);
            let known = self.link.hub.registry.by_id(type_id);
            let message_type = known.map_or("an unknown type", |known| known.rust_name);
            let recipient = || path.parse().unwrap_or_else(|_| crate::core::dead_letter::nowhere());
            system.dead_letters().publish(reason, message_type, recipient);
        }
    }

    /// Looks up where the messages of a place go.
    fn find(&self, place: &Place<'_>, system: &Arc<SystemCore>) -> Found {
        let Place::Actor { path, uid, type_id } = *place else {
            return Found::Refused(DeadLetterReason::NoActor);
        };
        let Ok(known) = self.link.hub.registry.by_id(type_id) else {
            self.link.hub.send_on(&self.link, &ControlMessage::UnknownType { id: type_id });
            return Found::Refused(DeadLetterReason::UnknownType);
        };
        let target = Target { path, is_export: false, is_deployed: false };
        if self.allows(Incoming::Message(target)).is_err() {
            return Found::Refused(DeadLetterReason::NotAllowed);
        }
        Self::inlet(system, path, uid, known)
    }

    fn allows(&self, incoming: Incoming<'_>) -> Result<(), NotAllowed> {
        self.link.access().decide(incoming)
    }

    fn inlet(system: &Arc<SystemCore>, path: &str, uid: u32, known: &WireType) -> Found {
        let Ok(path) = path.parse::<crate::path::actor_path::ActorPath>() else {
            return Found::Refused(DeadLetterReason::NoActor);
        };
        match system.actor_at(&path.with_uid(uid)) {
            // The actor that was there has ended, and perhaps another one is there.
            Err(_) => Found::Refused(DeadLetterReason::Stopped),
            Ok(actor) => match known.inlet(&actor) {
                Ok(inlet) => Found::Inlet(inlet),
                Err(_) => Found::Refused(DeadLetterReason::OtherType),
            },
        }
    }
}

/// Whether nothing of the peer is delivered any more.
fn link_is_over(link: &Link) -> bool {
    link.has_ended()
}
