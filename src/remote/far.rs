//! References to actors of other nodes.
//!
//! Behind such a reference stands a recipient that encodes each message on the sender's thread, into the open batch of its lane.
//! References are interned by their links: equal references are one allocation.

use crate::core::actor_ref::{ActorRef, RecipientLoad, Target};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Leaving;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::elsewhere::Elsewhere;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, Leave, OwnRecipient};
use crate::core::system::{SystemCore, SystemRef};
use crate::path::actor_path::ActorPath;
use crate::remote::asking_each::asks_each;
use crate::remote::batch::{EnvelopeKind, Place};
use crate::remote::codec::EncodeError;
use crate::remote::control_message::NumberedMessage;
use crate::remote::encoder::{self, Pushed};
use crate::remote::far_state::{FarLook, FarState};
use crate::remote::far_table::{FarKey, Interned};
use crate::remote::leaving;
use crate::remote::link::Link;
use crate::remote::outbox::EntryMemory;
use crate::remote::stand_ins::Slot;
use crate::remote::wire::{Wire, wire_id};
use std::any::Any;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::Weak as StdWeak;

/// An incarnation of an actor of another node, and the type of message that references to it take.
pub(crate) struct Far {
    me: StdWeak<Far>,
    pub(crate) link: Arc<Link>,
    path: Box<str>,
    uid: u32,
    type_id: u64,
    lane: usize,
    memory: EntryMemory,
    pub(crate) state: FarState,
    pub(super) slot: Slot<AnyActorRef>,
}

impl Far {
    pub(crate) fn text(&self) -> &str {
        &self.path
    }

    pub(super) fn type_id(&self) -> u64 {
        self.type_id
    }

    pub(super) fn lane(&self) -> usize {
        self.lane
    }

    pub(super) fn memory(&self) -> &EntryMemory {
        &self.memory
    }

    /// The message that begins or ends a watch.
    pub(super) fn watch_message(&self, is_watched: bool) -> NumberedMessage {
        let (path, uid) = (self.path.to_string(), self.uid);
        if is_watched { NumberedMessage::Watch { path, uid } } else { NumberedMessage::Unwatch { path, uid } }
    }

    /// Whether no message reaches the actor any more.
    fn is_over(&self) -> bool {
        self.link.has_ended() || self.state.has_ended()
    }
}

impl Far {
    /// The actor elsewhere behind a reference.
    pub(super) fn of<M: Send + 'static>(reference: &ActorRef<M>) -> Option<Arc<Self>> {
        match reference.target() {
            Target::Foreign(foreign) => {
                let far = foreign.recipient.elsewhere()?.as_any().downcast_ref::<Self>()?;
                far.me.upgrade()
            }
            Target::Local(_) => None,
        }
    }
}

impl Elsewhere for Far {
    fn path(&self) -> ActorPath {
        self.link.hub.path_at(&self.link.peer, &self.path).with_uid(self.uid)
    }

    fn uid(&self) -> u32 {
        self.uid
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The recipient behind a reference to an actor of another node.
struct FarRecipient<M> {
    far: Arc<Far>,
    system: Option<SystemRef>,
    message: PhantomData<fn(M)>,
}

impl<M: Wire> OwnRecipient<M> for FarRecipient<M> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let far = &*self.far;
        let link = &far.link;
        if link.has_ended() {
            return Err(SendError::Closed(message));
        }
        match far.state.look(|| link.hub.now()) {
            FarLook::Open => {}
            FarLook::Choked => {
                link.count_choked_send();
                return Err(SendError::Full(message));
            }
            FarLook::Ended => return Err(SendError::Closed(message)),
        }
        let place = Place::Actor { path: &far.path, uid: far.uid, type_id: far.type_id };
        let kind = if asks_each() { EnvelopeKind::AskEach } else { EnvelopeKind::Tell };
        match encoder::push(link, kind, place, &far.memory, far.lane, &[], &message) {
            Pushed::Done => Ok(DeliveryStatus::Passed),
            Pushed::Full => Err(SendError::Full(message)),
            Pushed::Closed => Err(SendError::Closed(message)),
            Pushed::Unfit(EncodeError::TooLarge { size, max }) => {
                Err(SendError::TooLarge { message, size, max })
            }
            Pushed::Unfit(EncodeError::Refused { why }) => {
                Err(SendError::Unsendable { message, why: why.into() })
            }
            Pushed::Unfit(EncodeError::Panicked(payload)) => {
                if let Some(system) = &self.system {
                    lost_in_panic::<M>(system.core(), far);
                }
                resume_unwind(payload)
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.far.is_over()
    }

    fn load(&self) -> RecipientLoad {
        if self.far.is_over() { RecipientLoad::Closed } else { RecipientLoad::Unknown }
    }

    fn system(&self) -> Option<SystemRef> {
        self.system.clone()
    }

    fn untyped_of(&self, own: &ActorRef<M>) -> Option<AnyActorRef> {
        self.far.stand_in(own)
    }

    fn elsewhere(&self) -> Option<&dyn Elsewhere> {
        Some(&*self.far)
    }

    fn leave(&self, leave: Leave<M>, leaving: Leaving) {
        leaving::leave(&self.far, leave, leaving);
    }

    fn reason(&self, refused: &SendError<M>) -> DeadLetterReason {
        match refused {
            SendError::Full(_) if self.far.state.look(|| self.far.link.hub.now()) == FarLook::Choked => {
                DeadLetterReason::Full
            }
            SendError::Full(_) => DeadLetterReason::LinkFull,
            SendError::Closed(_) if self.far.link.has_ended() => DeadLetterReason::NodeGone,
            other => DeadLetterReason::of(other),
        }
    }
}

/// Counts a message whose `Serialize` has panicked, and which the unwinding sender loses.
#[cold]
fn lost_in_panic<M>(system: &SystemCore, far: &Far) {
    system.ledger().for_this_thread().dead_lettered(1);
    let message_type = std::any::type_name::<M>();
    system.dead_letters().publish(DeadLetterReason::Panicked, message_type, || far.path());
}

/// A reference to an actor elsewhere, as the table of its link keeps it.
pub(crate) struct InternedFar {
    pub(crate) far: Arc<Far>,
    reference: Box<dyn AnyFarRef>,
}

/// An `ActorRef` of any type to an actor elsewhere.
trait AnyFarRef: Send + Sync {
    fn is_only_reference(&self) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<M: Wire> AnyFarRef for ActorRef<M> {
    fn is_only_reference(&self) -> bool {
        ActorRef::is_only_reference(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Interned for InternedFar {
    fn key(&self) -> FarKey<'_> {
        FarKey { path: &self.far.path, uid: self.far.uid, type_id: self.far.type_id }
    }

    fn is_alone(&self) -> bool {
        // A stand-in has a reference, too.
        !self.far.slot.has_stand_in() && self.reference.is_only_reference()
    }
}

impl Link {
    /// The reference to an incarnation at the peer. `None` if another type here has the name of `M` on the wire.
    ///
    /// The caller has checked that the path is canonical.
    pub(crate) fn far<M: Wire>(self: &Arc<Self>, path: &str, uid: u32) -> Option<ActorRef<M>> {
        let type_id = const { wire_id(M::NAME, M::VERSION) };
        let clone = |known: &InternedFar| known.reference.as_any().downcast_ref::<ActorRef<M>>().cloned();
        let make_both = || {
            let state = FarState::new();
            // No actor has the uid 0.
            if uid == 0 {
                state.end();
            }
            let (lane, memory) = (self.lane_of(path), EntryMemory::default());
            let (link, path) = (self.clone(), path.into());
            let far = Arc::new_cyclic(|me| {
                let (me, slot) = (me.clone(), Slot::new());
                Far { me, link, path, uid, type_id, lane, memory, state, slot }
            });
            let system = self.hub.system().map(SystemRef::new);
            let recipient = FarRecipient::<M> { far: far.clone(), system, message: PhantomData };
            (far, ActorRef::to_own_recipient(recipient))
        };
        if self.has_ended() {
            // The table would keep the reference, which keeps the link.
            return Some(make_both().1);
        }
        let make = || {
            let (far, reference) = make_both();
            InternedFar { far, reference: Box::new(reference) }
        };
        let found = self.fars.get_or_make(FarKey { path, uid, type_id }, clone, make);
        if self.has_ended() {
            // It has ended meanwhile, and may have taken the others out before.
            drop(self.fars.take_all());
        }
        found
    }
}
