//! Empty references name paths at which no actor stands; one of them is `/deadLetters`.
//!
//! An empty reference points to a cell that was closed before any other thread knew it: its mailbox and its system
//! queue refuse, and it never has a turn. So sending, watching and stopping need no extra case: a message becomes a
//! dead letter, and a watch is answered at once.

use crate::actor::guardians::Never;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{ActorCore, Header, Kind, Local, Special, SpecialName, SystemLink, VTable};
use crate::core::system::{SystemCore, SystemRef};
use crate::mailbox::mailbox::Mailbox;
use crate::path::actor_path::{ActorPath, Name};
use crate::scheduler::task::{Ran, Task, Turn};
use crate::util::panic::drop_guarded;
use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;

/// The last name of the path whose messages all become dead letters.
pub(crate) const DEAD_LETTERS: &str = "deadLetters";

impl SystemRef {
    /// Returns an empty reference for `path`. A message sent to it is a dead letter with that path as its recipient. A
    /// watcher of it is told at once that it has ended. It never refers to an actor, even if an actor is created at the
    /// path.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let gone: ActorRef<u32> = system.empty_ref(&"/user/gone".parse()?);
    /// gone.tell(7u32);
    /// assert_eq!(system.ledger().dead_lettered, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn empty_ref<M: Send + 'static>(&self, path: &ActorPath) -> ActorRef<M> {
        self.core().empty_ref_at(path.clone())
    }

    /// Returns the reference at `/deadLetters`: each message sent to it is a dead letter.
    pub fn dead_letters_ref<M: Send + 'static>(&self) -> ActorRef<M> {
        self.core().empty_ref_at(dead_letters_path())
    }
}

fn dead_letters_path() -> ActorPath {
    ActorPath::from_names([DEAD_LETTERS.into()].into_iter())
}

impl SystemCore {
    /// Returns an empty reference for `path`.
    pub(crate) fn empty_ref_at<M: Send + 'static>(self: &StdArc<Self>, path: ActorPath) -> ActorRef<M> {
        let header = Header::new(&EmptyRecipient::<M>::VTABLE, std::ptr::null(), 1, Kind::Local);
        let core = ActorCore::new(SystemLink::counted(self.clone()), None, 0)
            .with(Special::of_name(Some(SpecialName::EmptyRef(path))));
        let mailbox = Mailbox::unbounded(header);
        let local = Box::new(Local::<M> { mailbox, core });
        local.core.children.close();
        let fresh = local.mailbox.gate.begin();
        debug_assert!(fresh, "no other thread knows the cell yet");
        // SAFETY: `begin` gave us the token, which we hand to no thread.
        let mut owner = unsafe { local.mailbox.owner() };
        owner.close();
        drop(owner.close_system_queue());
        // SAFETY: the header of a new `Local<M>` with a count of one, which passes over.
        unsafe { ActorRef::from_header(NonNull::from(Box::leak(local)).cast()) }
    }

    /// Returns the reference at `/deadLetters`, not yet of any type of message.
    pub(crate) fn dead_letters_any(self: &StdArc<Self>) -> AnyActorRef {
        self.empty_ref_at::<Never>(dead_letters_path()).any_local()
    }
}

impl ActorCore {
    /// Returns whether this cell belongs to an empty reference, and so never was an actor.
    pub(crate) fn is_empty_ref(&self) -> bool {
        matches!(self.name(), Name::EmptyRef(_))
    }
}

impl AnyActorRef {
    /// Returns the reference that takes `M` although the actor behind this reference does not. For the head of a router
    /// this is the reference of the router. For the cell that stands for an actor elsewhere it is the reference to that actor.
    /// For an empty reference without a type it is an empty reference of any type.
    pub(crate) fn stand_in<M: Send + 'static>(&self, takes: TypeId) -> Option<ActorRef<M>> {
        let core = self.core();
        if let Some(standing) = core.standing() {
            return standing.reference.downcast_ref().cloned();
        }
        match core.name() {
            Name::EmptyRef(path) if takes == TypeId::of::<Never>() => {
                Some(core.system.empty_ref_at(path.clone()))
            }
            _ => core.children.front(),
        }
    }
}

struct EmptyRecipient<M>(PhantomData<fn(M)>);

impl<M: Send + 'static> EmptyRecipient<M> {
    const VTABLE: VTable = VTable {
        run: never_run,
        free: Self::free,
        core_offset: offset_of!(Local<M>, core),
        message_type: TypeId::of::<M>,
        actor_type: || None,
        message_name: std::any::type_name::<M>,
        actor_name: std::any::type_name::<M>,
        displaced: |_| 0,
        referent: None,
    };

    /// # Safety
    ///
    /// The last reference to a `Local<M>` made by [`SystemCore::empty_ref_at`] is gone.
    unsafe fn free(header: NonNull<Header>) -> Option<AnyActorRef> {
        // SAFETY: by contract a boxed `Local<M>` without any other reference to it.
        let mut local = unsafe { Box::from_raw(header.cast::<Local<M>>().as_ptr()) };
        // SAFETY: the link of a cell without a parent is counted, and the cell's end does not use it.
        let system = unsafe { local.core.system.give_back() };
        drop_guarded(local);
        drop_guarded(system);
        None
    }
}

/// # Safety
///
/// Never called: a closed mailbox and a closed system queue wake no actor.
unsafe fn never_run(_: NonNull<Task>, _: &Turn) -> Ran {
    debug_assert!(false, "a closed mailbox wakes no actor");
    Ran::Idle
}
