//! The stand-in of an actor of another node: a cell here that is watched and stopped in its place.
//!
//! Watchers lie in the stand-in's own list, and are told by its end, as those of any actor. The stand-in passes on what is for the
//! actor itself: the first watch and the last unwatch, a stop, and the pills. It ends when the other node tells of the actor's
//! end, or when the link ends.
//!
//! A stand-in and the reference to its actor keep each other. So each second the link looks for stand-ins to which nothing else
//! refers: those that have ended, and those that no actor watches. It takes them out, under the lock of its list, so that no
//! thread gets a reference meanwhile; the next watch makes another one.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::recipe::Recipe;
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
use crate::remote::outbox::Outgoing;
use crate::remote::wire::Wire;
use crate::sync::atomic::{AtomicBool, Ordering};
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

/// The references to a living stand-in that nothing else refers to: those of its life, its parent, and its [`Far`].
const REFERENCES_AT_REST: u32 = 3;

/// A stand-in, as the actor elsewhere has it.
pub(super) struct StandInRef {
    actor: AnyActorRef,
    is_released: Arc<AtomicBool>,
}

/// The actors of a peer that have stand-ins.
#[derive(Default)]
pub(super) struct StandIns {
    living: Vec<Arc<Far>>,
    /// Those whose stand-ins have ended, and which may still be referred to.
    ended: Vec<Arc<Far>>,
}

/// Passes control on.
struct PassOn {
    far: Arc<Far>,
    /// Whether the stand-in was taken out, so that another one may be there. Written and read with the lock of the link's
    /// stand-ins held.
    is_released: Arc<AtomicBool>,
}

impl Recipe<StandIn> for PassOn {
    const IS_STAND_IN: bool = true;

    fn make(&mut self, _: &mut Context<Never>) -> Result<StandIn, Failure> {
        Ok(StandIn)
    }

    fn pass_on(&mut self, control: Control, ends: bool) -> Option<Control> {
        let far = &*self.far;
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
        self.far.link.watch(&self.far, &self.is_released, watchers > 0);
    }
}

impl Far {
    /// Sends a pill behind the messages that were sent before.
    fn send_pill(&self, kind: EnvelopeKind) {
        let place = Place::Actor { path: self.text(), uid: self.uid(), type_id: self.type_id() };
        // A link that is full loses the pill, as it loses messages.
        let _ = self.link.push(self.lane(), &Outgoing { kind, place, tokens: &[], body: &[] }, self.memory());
    }

    /// The stand-in, which is made if there is none; `None` if the system is at its end. `own` is the reference to the actor.
    pub(crate) fn stand_in<M: Wire>(self: &Arc<Self>, own: &ActorRef<M>) -> Option<AnyActorRef> {
        // The lock keeps a second one from being made.
        let mut all = lock(&self.link.stand_ins);
        if let Some(stand_in) = &*lock(&self.stand_in) {
            return Some(stand_in.actor.clone());
        }
        let system = self.link.hub.system()?;
        let standing = Standing { path: self.path(), reference: Box::new(own.clone()), end: OnceLock::new() };
        let is_released = Arc::new(AtomicBool::new(false));
        let pass_on = PassOn { far: self.clone(), is_released: is_released.clone() };
        let held = spawn_standing::<StandIn, _>(system.system_guardian(), standing, pass_on).ok()?;
        let actor = held.start().any_local();
        *lock(&self.stand_in) = Some(StandInRef { actor: actor.clone(), is_released });
        let is_over = self.link.has_ended() || self.state.has_ended();
        let list = if is_over { &mut all.ended } else { &mut all.living };
        list.push(self.clone());
        drop(all);
        if is_over {
            self.end_stand_in(EndElsewhere { existed: false, node_down: self.link.has_ended() });
        }
        Some(actor)
    }

    /// The actor has ended, or its node is gone.
    pub(crate) fn end_stand_in(&self, end: EndElsewhere) {
        self.state.end();
        let actor = lock(&self.stand_in).as_ref().map(|stand_in| stand_in.actor.clone());
        if let Some(actor) = actor {
            end_cell(&actor, end);
        }
    }

    /// Takes the stand-in out, if `is_meant` holds for it.
    fn take_stand_in(&self, is_meant: impl FnOnce(&AnyActorRef) -> bool) -> Option<StandInRef> {
        lock(&self.stand_in).take_if(|stand_in| is_meant(&stand_in.actor))
    }
}

/// Ends a stand-in. `end` is told to those who watch it.
fn end_cell(actor: &AnyActorRef, end: EndElsewhere) {
    if let Some(standing) = actor.core().standing() {
        let _ = standing.end.set(end);
    }
    actor.stop();
}

impl Link {
    /// The actor is watched here, or not any more.
    fn watch(self: &Arc<Self>, far: &Far, is_released: &AtomicBool, is_watched: bool) {
        let has_failed = {
            // The lock orders this with `tell_watches`, and with the message of another stand-in of this actor.
            let _all = lock(&self.stand_ins);
            // Ordering: Relaxed; the lock orders.
            !is_released.load(Ordering::Relaxed)
                && far.set_watched(is_watched) != is_watched
                && self.is_active()
                && !self.hub.try_send_numbered(self, far.watch_message(is_watched))
        };
        if has_failed {
            self.hub.fault(&self.peer, self.uid);
        }
    }

    /// The link has become active: tells the peer what is watched.
    pub(crate) fn tell_watches(self: &Arc<Self>) {
        let has_failed = {
            let all = lock(&self.stand_ins);
            let mut watched = all.living.iter().filter(|far| far.is_watched());
            watched.any(|far| !self.hub.try_send_numbered(self, far.watch_message(true)))
        };
        if has_failed {
            self.hub.fault(&self.peer, self.uid);
        }
    }

    /// An actor of the peer has ended.
    pub(crate) fn far_ended(&self, path: &str, uid: u32, end: EndElsewhere) {
        let ended: Vec<Arc<Far>> = {
            let mut all = lock(&self.stand_ins);
            let (ended, living) = std::mem::take(&mut all.living)
                .into_iter()
                .partition(|far| far.uid() == uid && far.text() == path);
            all.living = living;
            all.ended.extend_from_slice(&ended);
            ended
        };
        ended.iter().for_each(|far| far.end_stand_in(end));
    }

    /// The link has ended: so do all stand-ins.
    pub(crate) fn end_stand_ins(&self) {
        let ended = {
            let mut all = lock(&self.stand_ins);
            let ended = std::mem::take(&mut all.living);
            all.ended.extend_from_slice(&ended);
            ended
        };
        ended.iter().for_each(|far| far.end_stand_in(EndElsewhere { existed: true, node_down: true }));
        if self.hub.is_stopping() {
            self.release_stand_ins(true);
        }
    }

    /// Takes the stand-ins out to which nothing refers, or all that have ended. Called each second.
    pub(crate) fn release_stand_ins(&self, with_all_ended: bool) {
        // They are dropped without the lock.
        let mut released = Vec::new();
        {
            let mut all = lock(&self.stand_ins);
            let StandIns { living, ended } = &mut *all;
            ended.retain(|far| {
                let taken = far.take_stand_in(|actor| with_all_ended || actor.references() == 1);
                let is_taken = taken.is_some();
                released.extend(taken.map(|stand_in| (far.clone(), stand_in)));
                !is_taken
            });
            living.retain(|far| {
                let is_at_rest =
                    |actor: &AnyActorRef| actor.references() <= REFERENCES_AT_REST && !actor.is_closed();
                // A watcher has a reference.
                let taken = if far.is_watched() { None } else { far.take_stand_in(is_at_rest) };
                let is_taken = taken.is_some();
                released.extend(taken.map(|stand_in| {
                    // Ordering: Relaxed; the lock orders.
                    stand_in.is_released.store(true, Ordering::Relaxed);
                    (far.clone(), stand_in)
                }));
                !is_taken
            });
        }
        for (_, stand_in) in &released {
            // One that has ended is told of no second end.
            end_cell(&stand_in.actor, EndElsewhere { existed: true, node_down: false });
        }
    }
}
