//! The actor that handles the batches of one lane of a peer, in order.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::turn::apply;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::ask_counts::count_late_reply;
use crate::core::dead_letter::{DeadLetterReason, nowhere};
use crate::core::system::{SystemCore, SystemRef};
use crate::path::actor_path::ActorPath;
use crate::remote::assembly::Assembled;
use crate::remote::batch::{Batch, Envelope, EnvelopeKind, Place};
use crate::remote::codec::decode;
use crate::remote::control_message::ControlMessage;
use crate::remote::decoder::Decoder;
use crate::remote::fragment::Fragment;
use crate::remote::frame::Prefix;
use crate::remote::leaving;
use crate::remote::link::{Link, counted_of};
use crate::remote::policy::{Incoming, NotAllowed};
use crate::remote::ports::NoPort;
use crate::remote::refused::Refused;
use crate::remote::registry::{Inlet, WireType};
use crate::remote::reply_ports::ImportedPort;
use crate::remote::resolving::{ANY_TYPE, FoundActor, Identity};
use crate::selection::selection::Found as Selected;
use crate::sync::{Mutex, lock};
use crate::util::panic::quietly;
use std::sync::Arc;

/// The batches that a lane handles before other actors have their turn.
const BATCHES_A_TURN: usize = 4;

/// Handles the batches of a lane.
pub(crate) struct Lane {
    link: Arc<Link>,
    number: u8,
    decoder: Decoder,
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
    /// The policy does not let the messages in.
    NotAllowed(NotAllowed),
}

impl Lane {
    /// Makes the actor of a lane; `None` if the system is at its end.
    pub(crate) fn spawn(link: &Arc<Link>, number: u8) -> Option<AnyActorRef> {
        let system = link.hub.system()?;
        let link = link.clone();
        let made = ActorBuilder::new(system.system_guardian(), None).internal().spawn(move || Lane {
            link: link.clone(),
            number,
            decoder: Decoder::default(),
        });
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

    /// Handles what has come, on this thread: all actors have ended, so messages are refused.
    pub(crate) fn handle_rest(link: &Arc<Link>, number: u8) {
        let Some(system) = link.hub.system() else { return };
        let mut lane = Lane { link: link.clone(), number, decoder: Decoder::default() };
        while let Some(frame) = link.next_batch(number) {
            lane.handle(&frame, &system);
        }
    }

    fn handle_some(&mut self, ctx: &mut Context<Never>) {
        for _ in 0..BATCHES_A_TURN {
            let Some(frame) = self.link.next_batch(self.number) else { return };
            self.handle(&frame, &ctx.core().system);
        }
        Lane::tell(&ctx.me().any_local());
    }

    fn handle(&mut self, frame: &[u8], system: &Arc<SystemCore>) {
        let mut decoder = std::mem::take(&mut self.decoder);
        self.handle_batch(frame, system, &mut decoder);
        self.decoder = decoder;
    }

    fn handle_batch(&self, frame: &[u8], system: &Arc<SystemCore>, decoder: &mut Decoder) {
        let link = &self.link;
        let lanes = link.incoming_lanes();
        let max = link.hub.settings.limits.large_message;
        // A frame has a greatest size already.
        let envelopes = match Batch::read(frame, lanes, usize::MAX) {
            Ok(batch) => {
                let first = batch.envelopes().next().map(|envelope| envelope.kind);
                link.begin_batch(self.number, frame, first == Some(EnvelopeKind::Fragment));
                let mut found: Vec<Option<Found>> = batch.places().iter().map(|_| None).collect();
                for envelope in batch.envelopes() {
                    let place = &mut found[usize::from(envelope.entry)];
                    if envelope.kind == EnvelopeKind::Fragment {
                        self.take_fragment(&envelope, place, system, decoder);
                    } else if envelope.body.len() > max {
                        self.refuse(&envelope, DeadLetterReason::TooLarge, system, decoder);
                    } else {
                        self.take(&envelope, place, system, decoder);
                    }
                }
                link.hub.mark_shown(link, self.number, batch.position.mark, batch.prefix.envelopes > 0);
                batch.prefix.envelopes
            }
            Err(_) => {
                link.count_malformed();
                link.begin_batch(self.number, frame, false);
                link.refused.count(DeadLetterReason::Undecodable, counted_of(frame).into());
                Prefix::read(frame, lanes).map_or(0, |prefix| prefix.envelopes)
            }
        };
        if let Some(receipt) = link.consumed(self.number, envelopes, frame.len(), system.now()) {
            link.hub.send_on(link, &ControlMessage::Credit(vec![receipt]));
        }
    }

    /// Takes a fragment, and with the last one the message.
    fn take_fragment(
        &self,
        envelope: &Envelope<'_>,
        found: &mut Option<Found>,
        system: &Arc<SystemCore>,
        decoder: &mut Decoder,
    ) {
        // The batch was checked as a whole.
        let Some(fragment) = Fragment::read(envelope.body) else { return };
        let kind = fragment.kind;
        match self.link.assemble(self.number, &fragment) {
            Assembled::Part => {}
            Assembled::Whole(body) => {
                self.take(&Envelope { kind, body: &body, ..*envelope }, found, system, decoder);
            }
            Assembled::Refused(reason) => {
                self.refuse(&Envelope { kind, body: &[], ..*envelope }, reason, system, decoder);
            }
        }
    }

    /// Refuses an envelope that is larger than this node takes, or is not whole. The asks in it end.
    fn refuse(
        &self,
        envelope: &Envelope<'_>,
        reason: DeadLetterReason,
        system: &Arc<SystemCore>,
        decoder: &mut Decoder,
    ) {
        let link = &self.link;
        let (refused, reply_refused) = match reason {
            DeadLetterReason::Incomplete => (Refused::Incomplete, Refused::ReplyIncomplete),
            _ => (Refused::TooLarge, Refused::ReplyTooLarge),
        };
        match (envelope.kind, envelope.place) {
            (EnvelopeKind::Tell | EnvelopeKind::AskEach, Place::Actor { path: text, type_id, .. })
            | (EnvelopeKind::Select, Place::Selection { text, type_id }) => {
                self.tell_actor(envelope, &Found::Refused(reason), system, decoder, (text, type_id));
            }
            (EnvelopeKind::PartReply, Place::Port) => {
                link.refused.count(reason, 1);
                let mut tokens = envelope.tokens.iter();
                let part = tokens.next().map(|token| link.hub.ports.part(token, link.port_owner));
                if let Some(Ok(Some(part))) = part {
                    quietly(|| part.refuse(Refused::ReplyTooLarge));
                }
                tokens.for_each(|token| link.import(token).refuse(Refused::TooLarge));
            }
            (EnvelopeKind::Reply, Place::Port) => {
                link.refused.count(reason, 1);
                let mut tokens = envelope.tokens.iter();
                if let Some(Ok(port)) = tokens.next().map(|token| link.hub.ports.take(token, link.port_owner))
                {
                    quietly(|| port.fail(reply_refused.error()));
                }
                tokens.for_each(|token| link.import(token).refuse(refused));
            }
            _ => {
                link.refused.count(reason, 1);
                envelope.tokens.iter().for_each(|token| link.import(token).refuse(refused));
            }
        }
    }

    fn take(
        &self,
        envelope: &Envelope<'_>,
        found: &mut Option<Found>,
        system: &Arc<SystemCore>,
        decoder: &mut Decoder,
    ) {
        let link = &self.link;
        // Nothing of a peer whose link has ended is delivered any more.
        if link.has_ended() {
            return link.refused.count(DeadLetterReason::NodeGone, 1);
        }
        match (envelope.kind, envelope.place) {
            (EnvelopeKind::Tell | EnvelopeKind::AskEach, Place::Actor { path, type_id, .. }) => {
                let found = found.get_or_insert_with(|| self.find(&envelope.place, system));
                self.tell_actor(envelope, found, system, decoder, (path, type_id));
            }
            (EnvelopeKind::Reply | EnvelopeKind::PartReply | EnvelopeKind::Identity, Place::Port) => {
                self.complete(envelope, system);
            }
            (EnvelopeKind::RefusedReply | EnvelopeKind::RefusedPart, Place::Port) => {
                let ports = &link.hub.ports;
                let port = envelope.tokens.iter().next().map(|token| match envelope.kind {
                    EnvelopeKind::RefusedPart => ports.part(token, link.port_owner),
                    _ => ports.take(token, link.port_owner).map(Some),
                });
                match port {
                    Some(Ok(Some(port))) => {
                        let refused = decode::<Refused>(envelope.body).unwrap_or(Refused::Undecodable);
                        quietly(|| port.refuse(refused));
                    }
                    // A port for one answer waits for another actor's, or for the end of all.
                    Some(Ok(None)) => {}
                    Some(Err(NoPort::Late)) => link.refused.count(DeadLetterReason::LateReply, 1),
                    Some(Err(NoPort::Forged)) | None => link.refused.count(DeadLetterReason::NotAllowed, 1),
                }
            }
            (EnvelopeKind::Select, Place::Selection { text, type_id }) => {
                self.select(envelope, system, decoder, (text, type_id));
            }
            (EnvelopeKind::Identify, Place::Selection { text, type_id: ANY_TYPE }) => {
                if let Some(token) = envelope.tokens.iter().next() {
                    self.identify_all(link.import(token), system, text, envelope.body);
                }
            }
            (EnvelopeKind::Identify, Place::Selection { text, type_id }) => {
                let identity = self.identity(system, text, type_id);
                if let Some(reason) = identity.refusal() {
                    link.refused.count(reason, 1);
                }
                let port = envelope.tokens.iter().next().map(|token| link.import(token));
                if let Some(port) = port {
                    port.identify(&identity);
                }
            }
            (EnvelopeKind::Pill | EnvelopeKind::Kill, Place::Actor { path, uid, .. }) => {
                let target = link.hub.target(link, path, uid);
                match link.hub.actor_for(link, Incoming::End(target), path, uid) {
                    Ok(actor) if envelope.kind == EnvelopeKind::Pill => actor.poison(),
                    Ok(actor) => actor.kill(),
                    Err(reason) => link.refused.count(reason, 1),
                }
            }
            (EnvelopeKind::Leave, _) => {
                if let Err(reason) = leaving::take(link, envelope, system, decoder) {
                    link.refused.count(reason, 1);
                }
            }
            // Those that this version does not send.
            _ => {
                link.refused.count(DeadLetterReason::Undecodable, 1);
                envelope.tokens.iter().for_each(|token| drop(link.import(token)));
            }
        }
    }

    /// Completes the ask that the envelope answers.
    fn complete(&self, envelope: &Envelope<'_>, system: &Arc<SystemCore>) {
        let link = &self.link;
        let mut tokens = envelope.tokens.iter();
        let ports = &link.hub.ports;
        let take = |token| match envelope.kind {
            EnvelopeKind::PartReply => match ports.part(token, link.port_owner) {
                // A port for one answer takes the first one.
                Ok(None) => ports.take(token, link.port_owner),
                part => part.and_then(|part| part.ok_or(NoPort::Late)),
            },
            _ => ports.take(token, link.port_owner),
        };
        let refused = match tokens.next().map(take) {
            Some(Ok(port)) => {
                let mut refused = None;
                // The port counts a late reply where this thread has counted last.
                let _row = system.ledger().for_this_thread();
                quietly(|| refused = port.reply(link, tokens, envelope.body));
                refused
            }
            taken => {
                // Ports in a late reply are dropped, which refuses them.
                tokens.for_each(|token| drop(link.import(token)));
                match taken {
                    Some(Err(NoPort::Late)) if envelope.kind != EnvelopeKind::Identity => {
                        let _row = system.ledger().for_this_thread();
                        count_late_reply();
                        Some((DeadLetterReason::LateReply, "a reply"))
                    }
                    Some(Err(NoPort::Late)) => Some((DeadLetterReason::LateReply, "a reference")),
                    _ => Some((DeadLetterReason::NotAllowed, "a reply")),
                }
            }
        };
        let Some((reason, reply_type)) = refused else { return };
        link.refused.count(reason, 1);
        if reason == DeadLetterReason::LateReply {
            system.dead_letters().publish(reason, reply_type, nowhere);
        }
    }

    fn tell_actor(
        &self,
        envelope: &Envelope<'_>,
        found: &Found,
        system: &Arc<SystemCore>,
        decoder: &mut Decoder,
        (path, type_id): (&str, u64),
    ) {
        system.ledger().for_this_thread().received(1);
        let mut tokens = envelope.tokens.iter();
        let reason = match found {
            Found::Inlet(inlet) => match inlet.deliver(
                &self.link,
                decoder,
                &mut tokens,
                envelope.body,
                envelope.kind == EnvelopeKind::AskEach,
            ) {
                Ok(None) => return,
                // It is a dead letter already.
                Ok(Some(reason)) => return self.link.refused.count(reason, 1),
                Err(_) => DeadLetterReason::Undecodable,
            },
            Found::Refused(reason) => {
                let refused = match reason {
                    DeadLetterReason::UnknownType => Refused::UnknownType,
                    DeadLetterReason::OtherType => Refused::WrongType,
                    DeadLetterReason::NoActor => Refused::NoActor,
                    DeadLetterReason::TooLarge => Refused::TooLarge,
                    DeadLetterReason::Incomplete => Refused::Incomplete,
                    _ => Refused::Stopped,
                };
                tokens.for_each(|token| self.link.import(token).refuse(refused));
                *reason
            }
            Found::NotAllowed(why) => {
                self.link.log_not_allowed(path, *why);
                tokens.for_each(|token| self.link.import(token).refuse(Refused::NotAllowed));
                DeadLetterReason::NotAllowed
            }
        };
        self.link.refused.count(reason, 1);
        system.ledger().for_this_thread().dead_lettered(1);
        let known = self.link.hub.registry.by_id(type_id);
        let message_type = known.map_or("an unknown type", |known| known.rust_name);
        system.dead_letters().publish(reason, message_type, || path.parse().unwrap_or_else(|_| nowhere()));
    }

    /// Delivers a message to all actors that the text selects now: each gets a copy of its own.
    fn select(
        &self,
        envelope: &Envelope<'_>,
        system: &Arc<SystemCore>,
        decoder: &mut Decoder,
        (text, type_id): (&str, u64),
    ) {
        let refused = |reason| vec![Found::Refused(reason)];
        let allowed = self.link.access().decide(Incoming::Select { text });
        let known = self.link.hub.registry.by_id(type_id);
        let selected = SystemRef::new(system.clone()).select(text);
        let found = match (known, selected) {
            _ if allowed.is_err() => allowed.err().map(Found::NotAllowed).into_iter().collect(),
            (Err(_), _) => {
                self.link.tell_unknown_type(type_id);
                refused(DeadLetterReason::UnknownType)
            }
            (_, Err(_)) => refused(DeadLetterReason::NoActor),
            (Ok(known), Ok(selected)) => match selected.resolve() {
                Selected::Missing(_) => refused(DeadLetterReason::NoActor),
                // A path does not go on to a third node.
                Selected::Actors { here, elsewhere } if here.is_empty() && !elsewhere.is_empty() => {
                    refused(DeadLetterReason::NoActor)
                }
                Selected::Actors { here, .. } => {
                    // Actors of another type get no copy.
                    let inlets: Vec<Found> =
                        here.iter().filter_map(|actor| known.inlet(actor).ok()).map(Found::Inlet).collect();
                    if inlets.is_empty() { refused(DeadLetterReason::OtherType) } else { inlets }
                }
            },
        };
        found.iter().for_each(|found| self.tell_actor(envelope, found, system, decoder, (text, type_id)));
    }

    /// The answer to the request for a reference.
    fn identity(&self, system: &Arc<SystemCore>, text: &str, type_id: u64) -> Identity {
        if let Err(why) = self.link.access().decide(Incoming::Identify { text }) {
            self.link.log_not_allowed(text, why);
            return Identity::NotAllowed;
        }
        let Ok(known) = self.link.hub.registry.by_id(type_id) else { return Identity::UnknownType };
        let actor = text.parse().ok().and_then(|path| system.actor_at(&path).ok());
        let Some(actor) = actor else { return Identity::NotFound };
        match known.inlet(&actor) {
            Ok(_) => {
                let path = actor.tree_path().as_str().to_owned();
                Identity::Found { path, uid: actor.uid(), system: self.link.own_uid }
            }
            Err(error) => Identity::WrongType { takes: error.takes.to_owned() },
        }
    }

    /// Asks all actors that the text selects for their references, on behalf of the peer.
    fn identify_all(&self, port: ImportedPort, system: &Arc<SystemCore>, text: &str, body: &[u8]) {
        let refuse = |identity: Identity| {
            if let Some(reason) = identity.refusal() {
                self.link.refused.count(reason, 1);
            }
            identity
        };
        if let Err(why) = self.link.access().decide(Incoming::Identify { text }) {
            self.link.log_not_allowed(text, why);
            return port.identify(&refuse(Identity::NotAllowed));
        }
        let selected = SystemRef::new(system.clone()).select(text).map(|selected| selected.resolve());
        let Ok(Selected::Actors { here: actors, .. }) = selected else {
            return port.identify(&refuse(Identity::NotFound));
        };
        let is_one = decode::<bool>(body).unwrap_or(false);
        let answered = Mutex::new(Answered { port: Some(port), found: Vec::new(), bytes: 0 });
        let asked = Arc::new(Answers { link: self.link.clone(), is_one, answered });
        for actor in actors {
            let asked = asked.clone();
            actor.inquire(move |actor| asked.take(actor));
        }
    }

    /// Looks up where the messages of a place go.
    fn find(&self, place: &Place<'_>, system: &Arc<SystemCore>) -> Found {
        let Place::Actor { path, uid, type_id } = *place else {
            return Found::Refused(DeadLetterReason::NoActor);
        };
        let Ok(known) = self.link.hub.registry.by_id(type_id) else {
            self.link.tell_unknown_type(type_id);
            return Found::Refused(DeadLetterReason::UnknownType);
        };
        let target = self.link.hub.target(&self.link, path, uid);
        if let Err(why) = self.link.access().decide(Incoming::Message(target)) {
            return Found::NotAllowed(why);
        }
        let found = Self::inlet(system, path, uid, known);
        if let Found::Inlet(inlet) = &found {
            let long = inlet.backlog().filter(|backlog| backlog.is_long());
            if let Some(backlog) = long {
                self.link.choke((path, uid), backlog.max, || inlet.actor());
            }
        }
        found
    }

    fn inlet(system: &Arc<SystemCore>, path: &str, uid: u32, known: &WireType) -> Found {
        let Ok(path) = path.parse::<ActorPath>() else {
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

/// The answers of actors that a peer asks for their references. The last answer sends them.
struct Answers {
    link: Arc<Link>,
    /// Whether the first reference is enough.
    is_one: bool,
    answered: Mutex<Answered>,
}

struct Answered {
    /// `None` once the peer was told.
    port: Option<ImportedPort>,
    found: Vec<Option<FoundActor>>,
    /// About as many as they have when they are encoded.
    bytes: usize,
}

/// The most bytes of a found actor beside its path.
const FOUND_REST: usize = 20;

impl Answers {
    fn take(&self, actor: Option<AnyActorRef>) {
        let found = actor.and_then(|actor| {
            let type_id = self.link.hub.registry.id_of(&actor)?;
            Some(FoundActor { path: actor.tree_path().as_str().to_owned(), uid: actor.uid(), type_id })
        });
        let (is_found, bytes) =
            (found.is_some(), found.as_ref().map_or(0, |found| found.path.len()) + FOUND_REST);
        let port = {
            let mut answered = lock(&self.answered);
            // As many as a message holds.
            if answered.bytes + bytes + FOUND_REST <= self.link.hub.envelope_max() {
                answered.bytes += bytes;
                answered.found.push(found);
            }
            if self.is_one && is_found { answered.port.take().zip(answered.found.pop()) } else { None }
        };
        if let Some((port, found)) = port {
            port.identify(&Identity::Actors { system: self.link.own_uid, found: vec![found] });
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let (port, found) = {
            let mut answered = lock(&self.answered);
            (answered.port.take(), std::mem::take(&mut answered.found))
        };
        if let Some(port) = port {
            port.identify(&Identity::Actors { system: self.link.own_uid, found });
        }
    }
}
