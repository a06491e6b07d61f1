//! The stand-in of an actor of another node: a cell here that is watched and stopped in its place.
//!
//! Watchers lie in the stand-in's own list, and are told by its end, as those of any actor. The stand-in passes on what is for the
//! actor itself: the first watch and the last unwatch, a stop, and the pills. It ends when the other node tells of the actor's
//! end, or when the link ends.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::recipe::{Recipe, StandInStage};
use crate::actor::spawn::spawn_standing;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::elsewhere::{Elsewhere, EndElsewhere, Standing};
use crate::failure::Failure;
use crate::remote::batch::{EnvelopeKind, Place};
use crate::remote::control_message::NumberedMessage;
use crate::remote::far::Far;
use crate::remote::link::Link;
use crate::remote::outbox::{Outgoing, PushError};
use crate::remote::stand_ins::{Released, Slot, StandInCell, StoodFor};
use crate::remote::wire::Wire;
use crate::sync::OnceLock;
use std::sync::Arc;

/// The state of a stand-in, which takes no messages.
pub(crate) struct StandIn;

impl Actor for StandIn {
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }
}

/// The references to a living stand-in that nothing else refers to: those of its life, its parent, and its [`Far`].
const REFERENCES_AT_REST: u32 = 3;

impl StandInCell for AnyActorRef {
    fn is_at_rest(&self) -> bool {
        let is_child = self.core().standing().is_some_and(|standing| standing.is_child);
        // The references first: a thread that has sent control has given back its own afterwards.
        let is_referred_to = self.references() > REFERENCES_AT_REST;
        !is_referred_to && !self.is_closed() && !is_child && AnyActorRef::is_at_rest(self)
    }

    fn is_forgotten(&self) -> bool {
        self.references() == 1
    }

    fn end(&self, end: EndElsewhere) {
        if let Some(standing) = self.core().standing() {
            let _ = standing.end.set(end);
        }
        self.stop();
    }
}

impl StoodFor for Far {
    type Cell = AnyActorRef;

    fn slot(&self) -> &Slot<AnyActorRef> {
        &self.slot
    }

    fn note_end(&self) {
        self.state.end();
    }
}

/// Passes control on.
struct PassOn {
    far: Arc<Far>,
    is_released: Arc<Released>,
}

impl Recipe<StandIn> for PassOn {
    const IS_STAND_IN: bool = true;

    fn make(&mut self, _: &mut Context<Never>) -> Result<StandIn, Failure> {
        Ok(StandIn)
    }

    fn pass_on(&mut self, control: Control, stage: StandInStage) -> Option<Control> {
        let far = &*self.far;
        let ends = stage != StandInStage::Living || far.link.has_ended();
        match control {
            Control::Stop | Control::PoisonPill | Control::Kill if ends => Some(Control::Stop),
            Control::Stop => {
                let message = NumberedMessage::Stop { path: far.text().to_owned(), uid: far.uid() };
                far.link.hub.send_when_active(&far.link, message);
                None
            }
            Control::PoisonPill => {
                far.send_pill(EnvelopeKind::Pill);
                None
            }
            Control::Kill => {
                far.send_pill(EnvelopeKind::Kill);
                None
            }
            own => Some(own),
        }
    }

    fn watched_by(&mut self, watchers: usize) {
        self.far.link.watch(&self.far, &self.is_released, watchers > 0);
    }
}

impl Far {
    /// Sends a pill behind the messages that were sent before.
    pub(super) fn send_pill(&self, kind: EnvelopeKind) {
        let place = Place::Actor { path: self.text(), uid: self.uid(), type_id: self.type_id() };
        let pill = Outgoing { kind, place, tokens: &[], body: &[] };
        if let Err(PushError::Full { .. }) = self.link.push(self.lane(), &pill, self.memory()) {
            // The control stream has room, and the pill acts behind all that waits for the peer.
            let (path, is_kill) = (self.text().to_owned(), kind == EnvelopeKind::Kill);
            let message = NumberedMessage::Pill { path, uid: self.uid(), is_kill };
            self.link.hub.send_when_active(&self.link, message);
        }
    }

    /// The stand-in, which is made if there is none; `None` if the system is at its end. `own` is the reference to the actor.
    pub(crate) fn stand_in<M: Wire>(self: &Arc<Self>, own: &ActorRef<M>) -> Option<AnyActorRef> {
        let make = |is_released| {
            let system = self.link.hub.system()?;
            let standing = Standing {
                name: None,
                is_child: false,
                path: self.path(),
                reference: Box::new(own.clone()),
                end: OnceLock::new(),
            };
            let pass_on = PassOn { far: self.clone(), is_released };
            let held =
                spawn_standing::<StandIn, _>(system.system_guardian(), standing, None, pass_on).ok()?;
            Some(held.start().any_local())
        };
        self.link.stand_ins.get_or_make(self, make, || self.end_so_far())
    }

    /// The end of the actor, if it has ended, or its node is gone.
    pub(super) fn end_so_far(&self) -> Option<EndElsewhere> {
        let node_down = self.link.has_ended();
        (node_down || self.state.has_ended()).then_some(EndElsewhere { existed: false, node_down })
    }
}

impl Link {
    /// The actor is watched here, or not any more.
    fn watch(self: &Arc<Self>, far: &Far, is_released: &Released, is_watched: bool) {
        let tell = || !self.is_active() || self.hub.try_send_numbered(self, far.watch_message(is_watched));
        if !self.stand_ins.watch(far, is_released, is_watched, tell) {
            self.hub.fault(&self.peer, self.uid());
        }
        // The watch itself greets the peer, though no message goes there.
        if is_watched && !self.is_active() && !self.has_ended() {
            self.hub.want(self);
        }
    }

    /// The link has become active: tells the peer what is watched.
    pub(crate) fn tell_watches(self: &Arc<Self>) {
        if !self.stand_ins.tell_watches(|far| self.hub.try_send_numbered(self, far.watch_message(true))) {
            self.hub.fault(&self.peer, self.uid());
        }
    }

    /// An actor of the peer has ended.
    pub(crate) fn far_ended(&self, path: &str, uid: u32, end: EndElsewhere) {
        self.stand_ins.end_where(|far| far.uid() == uid && far.text() == path, end);
    }

    /// The peer does not watch an actor for this node.
    pub(crate) fn watch_refused(&self, path: &str, uid: u32) {
        self.stand_ins.refuse_where(|far| far.uid() == uid && far.text() == path);
    }

    /// The link has ended: so do all stand-ins.
    pub(crate) fn end_stand_ins(&self) {
        self.stand_ins.end_where(|_| true, EndElsewhere { existed: true, node_down: true });
        if self.hub.is_stopping() {
            self.release_stand_ins(true);
        }
    }

    /// Takes the stand-ins out to which nothing refers, or all that have ended. Called each second.
    pub(crate) fn release_stand_ins(&self, with_all_ended: bool) {
        self.stand_ins.release(with_all_ended);
    }
}
