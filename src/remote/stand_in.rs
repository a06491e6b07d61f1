//! The stand-in of an actor of another node: a cell here that is watched and stopped in its place.
//!
//! Watchers lie in the stand-in's own list, and are told by its end, as those of any actor. The stand-in passes on what is for the
//! actor itself: the first watch and the last unwatch, a stop, and the pills. It ends when the other node tells of the actor's
//! end, or when the link ends.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::recipe::Recipe;
use crate::actor::spawn::spawn_standing;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::elsewhere::{Elsewhere, EndElsewhere, Standing};
use crate::failure::Failure;
use crate::remote::batch::{EnvelopeKind, Place};
use crate::remote::control_message::NumberedMessage;
use crate::remote::far::Far;
use crate::remote::link::Link;
use crate::remote::outbox::Outgoing;
use crate::remote::wire::Wire;
use crate::sync::{OnceLock, lock};
use std::sync::Arc;

/// The state of a stand-in, which takes no messages.
pub(crate) struct StandIn;

impl Actor for StandIn {
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }
}

/// Passes control on.
struct PassOn(Arc<Far>);

impl Recipe<StandIn> for PassOn {
    const IS_STAND_IN: bool = true;

    fn make(&mut self, _: &mut Context<Never>) -> Result<StandIn, Failure> {
        Ok(StandIn)
    }

    fn pass_on(&mut self, control: Control, ends: bool) -> Option<Control> {
        let far = &*self.0;
        match control {
            Control::Stop | Control::PoisonPill | Control::Kill if ends || far.link.has_ended() => {
                Some(Control::Stop)
            }
            Control::Stop => {
                let message = NumberedMessage::Stop { path: far.text().to_owned(), uid: far.uid() };
                far.link.hub.send_numbered(&far.link, message);
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
        self.0.link.watch(&self.0, watchers > 0);
    }
}

impl Far {
    /// Sends a pill behind the messages that were sent before.
    fn send_pill(&self, kind: EnvelopeKind) {
        let place = Place::Actor { path: self.text(), uid: self.uid(), type_id: self.type_id() };
        // A link that is full loses the pill, as it loses messages.
        let _ = self.link.push(self.lane(), &Outgoing { kind, place, tokens: &[], body: &[] }, self.memory());
    }

    /// The stand-in, which is made once; `None` if the system is at its end.
    pub(crate) fn stand_in<M: Wire>(self: &Arc<Self>) -> Option<AnyActorRef> {
        if let Some(stand_in) = self.stand_in.get() {
            return Some(stand_in.clone());
        }
        // The lock keeps a second one from being made.
        let mut all = lock(&self.link.stand_ins);
        if let Some(stand_in) = self.stand_in.get() {
            return Some(stand_in.clone());
        }
        let system = self.link.hub.system()?;
        let standing = Standing { path: self.path(), end: OnceLock::new() };
        let held =
            spawn_standing::<StandIn, _>(system.system_guardian(), standing, PassOn(self.clone())).ok()?;
        let stand_in = held.start().any_local();
        let _ = self.stand_in.set(stand_in.clone());
        all.push(self.clone());
        drop(all);
        if self.link.has_ended() || self.state.has_ended() {
            self.end_stand_in(EndElsewhere { existed: false, node_down: self.link.has_ended() });
        } else if let Some(own) = self.link.far::<M>(self.text(), self.uid()) {
            // By it the untyped reference finds the typed one.
            stand_in.core().children.set_front(own);
        }
        Some(stand_in)
    }

    /// The actor has ended, or its node is gone.
    pub(crate) fn end_stand_in(&self, end: EndElsewhere) {
        self.state.end();
        if let Some(stand_in) = self.stand_in.get() {
            if let Some(standing) = stand_in.core().standing() {
                let _ = standing.end.set(end);
            }
            stand_in.stop();
        }
    }
}

impl Link {
    /// The actor is watched here, or not any more.
    fn watch(self: &Arc<Self>, far: &Far, is_watched: bool) {
        let has_changed = {
            // The lock orders this with `tell_watches`: one of both tells the peer.
            let _all = lock(&self.stand_ins);
            far.set_watched(is_watched) != is_watched
        };
        if has_changed && self.is_active() {
            self.hub.send_numbered(self, far.watch_message(is_watched));
        }
    }

    /// The link has become active: tells the peer what is watched.
    pub(crate) fn tell_watches(self: &Arc<Self>) {
        let watched: Vec<Arc<Far>> =
            lock(&self.stand_ins).iter().filter(|far| far.is_watched()).cloned().collect();
        for far in watched {
            self.hub.send_numbered(self, far.watch_message(true));
        }
    }

    /// An actor of the peer has ended.
    pub(crate) fn far_ended(&self, path: &str, uid: u32, end: EndElsewhere) {
        let ended = {
            let mut all = lock(&self.stand_ins);
            let (ended, left) = std::mem::take(&mut *all)
                .into_iter()
                .partition(|far: &Arc<Far>| far.uid() == uid && far.text() == path);
            *all = left;
            ended
        };
        ended.iter().for_each(|far: &Arc<Far>| far.end_stand_in(end));
    }

    /// The link has ended: so do all stand-ins.
    pub(crate) fn end_stand_ins(&self) {
        let all = std::mem::take(&mut *lock(&self.stand_ins));
        all.iter().for_each(|far| far.end_stand_in(EndElsewhere { existed: true, node_down: true }));
    }
}
