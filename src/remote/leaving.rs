//! Routees elsewhere that leave their router.
//!
//! The router sends the request when no sender can read a table that has the routee any more. It lies in the routee's lane behind
//! all that was routed to the routee, which handles that, and ends. Messages that the routee does not handle, since it has to
//! end before, go back to the router, as those of a routee here do.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::{Control, Leaving};
use crate::core::dead_letter::DeadLetterReason;
use crate::core::elsewhere::Elsewhere;
use crate::core::recipient::Leave;
use crate::core::system::SystemCore;
use crate::remote::batch::{Envelope, EnvelopeKind, Place, Token};
use crate::remote::codec::{DecodeError, EncodeError};
use crate::remote::decoder::Decoder;
use crate::remote::encoder::{self, Pushed};
use crate::remote::far::Far;
use crate::remote::link::Link;
use crate::remote::wire::Wire;
use crate::util::panic::drop_guarded;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// The request, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct LeaveElsewhere<M: Wire> {
    /// Takes the messages that the routee does not handle; `None` for dead letters.
    router: Option<ActorRef<M>>,
    farewell: Option<M>,
    /// The time after which the routee stops, whatever it has.
    within: Option<Duration>,
}

/// Asks the actor elsewhere to leave its router. Its stand-in sends the request.
pub(crate) fn leave<M: Wire>(far: &Arc<Far>, leave: Leave<M>, leaving: Leaving) {
    let Leave { router, farewell, within } = leave;
    // The reference by which routees hand back is none that can be sent: it is known by the head.
    let router = router.untyped().and_then(|head| head.typed::<M>().ok());
    let request: Box<dyn Any + Send> = Box::new(LeaveElsewhere { router, farewell, within });
    let control = Control::Leave { leave: request, leaving };
    match far.link.stand_ins.get_or_make(far, |_| None, || None) {
        // A stand-in that has ended asks nothing.
        Some(stand_in) => drop_guarded(stand_in.send_system(control).err()),
        None => drop_guarded(control),
    }
}

/// Sends a request to the lane of the actor. Returns the request if there is no room.
pub(super) fn send<M: Wire>(far: &Arc<Far>, request: Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>> {
    let Ok(request) = request.downcast::<LeaveElsewhere<M>>() else { return Ok(()) };
    let place = Place::Actor { path: far.text(), uid: far.uid(), type_id: Far::type_id(far) };
    let push = |request: &LeaveElsewhere<M>| {
        encoder::push(&far.link, EnvelopeKind::Leave, place, far.memory(), far.lane(), &[], request)
    };
    let why = match push(&request) {
        Pushed::Done | Pushed::Closed => {
            drop_guarded(request);
            return Ok(());
        }
        Pushed::Full => return Err(request),
        Pushed::Unfit(EncodeError::TooLarge { size, max }) => format!("{size} bytes, and at most {max} go"),
        Pushed::Unfit(EncodeError::Refused { why }) => why,
        Pushed::Unfit(EncodeError::Panicked(payload)) => {
            drop_guarded(payload);
            "its serialization has panicked".to_owned()
        }
    };
    let LeaveElsewhere { router, farewell, within } = *request;
    let had_farewell = farewell.is_some();
    drop_guarded(farewell);
    if !had_farewell && router.is_none() {
        log::error!("{} cannot be asked to leave its router: {why}", far.path());
        return Ok(());
    }
    log::warn!("{} leaves its router without a farewell, which cannot be sent: {why}", far.path());
    // Without what cannot be sent: first the farewell, and then the router.
    let router = if had_farewell { router } else { None };
    send::<M>(far, Box::new(LeaveElsewhere::<M> { router, farewell: None, within }))
}

/// Tells an actor here to leave the router of a peer. Returns the time that it has.
pub(super) fn tell<M: Wire>(
    actor: &ActorRef<M>,
    link: &Arc<Link>,
    decoder: &mut Decoder,
    tokens: &mut dyn Iterator<Item = Token>,
    body: &[u8],
) -> Result<Option<Duration>, DecodeError> {
    let LeaveElsewhere { router, farewell, within } = decoder.read(link, tokens, body)?;
    let leaving = if farewell.is_some() { Leaving::ByItself } else { Leaving::AtPosition };
    let system = link.hub.system();
    let nowhere = || system.map_or_else(|| actor.clone(), |system| system.empty_ref_at(actor.path()));
    let router = router.unwrap_or_else(nowhere);
    actor.send_leave(Leave { router, farewell, within: None }, leaving);
    Ok(within)
}

/// Carries out the request of a peer that an actor which the peer has made here leaves its router.
pub(super) fn take(
    link: &Arc<Link>,
    envelope: &Envelope<'_>,
    system: &Arc<SystemCore>,
    decoder: &mut Decoder,
) -> Result<(), DeadLetterReason> {
    let Place::Actor { path, uid, type_id } = envelope.place else {
        return Err(DeadLetterReason::Undecodable);
    };
    if !link.hub.target(link, path, uid).is_deployed {
        return Err(DeadLetterReason::NotAllowed);
    }
    let Some(actor) = link.deployed.begin_to_leave(uid) else { return Err(DeadLetterReason::NotAllowed) };
    match told(link, envelope, decoder, &actor, type_id) {
        Ok(None) => {}
        Ok(Some(Duration::ZERO)) => actor.stop(),
        Ok(Some(within)) => link.deployed.stop_at(uid, system.now().saturating_add(within)),
        Err(reason) => {
            // Its router waits for its end, also where the request cannot be read.
            actor.close_and_end();
            return Err(reason);
        }
    }
    Ok(())
}

/// Reads the request, and tells the actor. Returns the time that it has.
fn told(
    link: &Arc<Link>,
    envelope: &Envelope<'_>,
    decoder: &mut Decoder,
    actor: &AnyActorRef,
    type_id: u64,
) -> Result<Option<Duration>, DeadLetterReason> {
    let known = link.hub.registry.by_id(type_id).map_err(|_| DeadLetterReason::UnknownType)?;
    let inlet = known.inlet(actor).map_err(|_| DeadLetterReason::OtherType)?;
    let mut tokens = envelope.tokens.iter();
    inlet.leave(link, decoder, &mut tokens, envelope.body).map_err(|_| DeadLetterReason::Undecodable)
}

/// Stops the actors whose time to leave their routers is over. Called each second.
pub(super) fn stop_late(link: &Link) {
    link.deployed.take_late(link.hub.now()).iter().for_each(AnyActorRef::stop);
}
