//! Untyped references: references without the type of the messages.

use crate::core::actor_ref::ActorRef;
use crate::core::cell::{ActorCore, Header, Kind, VTable};
use crate::core::children::Child;
use crate::core::classes::ClassId;
use crate::core::control::{Control, Leaving};
use crate::mailbox::mailbox::LoadSnapshot;
use crate::mailbox::system_queue::Position;
use crate::path::actor_path::{ActorPath, Name};
use crate::sync::atomic::Ordering;
use crate::time::timers::TickTarget;
use crate::util::debug_by_display::debug_by_display;
use std::any::TypeId;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// An untyped reference to an actor: for parents, children and watching.
///
/// Equal references mean the same incarnation of the same actor, or the same path of an empty reference. References are
/// ordered by their paths, then by their incarnations. A reference is one word; `Option<AnyActorRef>` is no larger.
///
/// ```
/// # use pointsman::prelude::*;
/// # struct Idle;
/// # impl Actor for Idle {
/// #     type Message = u32;
/// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let idle: ActorRef<u32> = system.actor("idle").spawn(|| Idle)?;
/// let untyped: AnyActorRef = idle.untyped().expect("an actor stands behind it");
/// assert!(untyped.typed::<u32>().is_ok());
/// assert!(untyped.typed::<String>().unwrap_err().to_string().contains("u32"));
/// # Ok(())
/// # }
/// ```
pub struct AnyActorRef(pub(crate) NonNull<Header>);

impl Child for AnyActorRef {
    fn name(&self) -> Name<'_> {
        self.core().name()
    }

    fn slot(&self) -> u32 {
        self.core().slot
    }
}

impl TickTarget for AnyActorRef {
    fn tick(self, number: u64) {
        // An actor that has ended needs no tick.
        let _ = self.send_positioned(Control::Tick(number));
    }
}

impl AnyActorRef {
    /// Counts one more reference to the actor behind `header`.
    ///
    /// # Safety
    ///
    /// `header` is that of a local actor's cell, which is alive.
    pub(crate) unsafe fn retain(header: NonNull<Header>) -> Self {
        // SAFETY: passed on to the caller.
        unsafe { header.as_ref() }.retain();
        Self(header)
    }

    /// Takes over a reference that is counted already.
    ///
    /// # Safety
    ///
    /// `header` is that of a local actor's cell, and the caller gives up one counted reference.
    pub(crate) unsafe fn from_counted(header: NonNull<Header>) -> Self {
        Self(header)
    }

    /// Gives up a reference that stays counted.
    pub(crate) fn into_counted(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }

    pub(crate) fn core(&self) -> &ActorCore {
        // SAFETY: the reference keeps the cell alive; the vtable of a local cell tells where its core lies.
        unsafe {
            let offset = self.0.as_ref().vtable.core_offset;
            self.0.byte_add(offset).cast::<ActorCore>().as_ref()
        }
    }

    /// The number of references to the cell: its life and its parent have one each, as long as it lives.
    #[cfg(feature = "remote")]
    pub(crate) fn references(&self) -> u32 {
        // SAFETY: the reference keeps the cell alive.
        unsafe { self.0.as_ref() }.references()
    }

    fn gate(&self) -> &crate::core::cell::ActorGate {
        // SAFETY: the reference keeps the cell alive.
        unsafe { crate::core::cell::gate(self.0) }
    }

    /// Makes the actor look for work. Allocates nothing; has no effect when the actor has ended.
    pub(crate) fn request_look(&self) {
        // SAFETY: the reference keeps the cell alive.
        unsafe { crate::core::cell::request_look(self.0) };
    }

    /// Sends immediate control. Hands it back if the actor has ended.
    pub(crate) fn send_system(&self, message: Control) -> Result<(), Control> {
        // SAFETY: the reference keeps the cell alive.
        unsafe { crate::core::cell::send_system(self.0, message, Position::Immediate) }
    }

    /// Sends control that acts behind the messages queued now. Hands it back if the actor has ended.
    pub(crate) fn send_positioned(&self, message: Control) -> Result<(), Control> {
        let is_notice = message.is_notice();
        if is_notice {
            // Before the actor can act upon it.
            self.core().count_notice();
        }
        let position = Position::At(self.gate().position());
        // SAFETY: the reference keeps the cell alive.
        let sent = unsafe { crate::core::cell::send_system(self.0, message, position) };
        if is_notice && sent.is_err() {
            self.core().uncount_notice();
        }
        sent
    }

    /// Returns whether the actor runs on the calling thread and on no other, as on a blocking dispatcher of one thread,
    /// or in this very turn: then a wait for the actor on this thread would never end.
    pub(crate) fn runs_only_here(&self) -> bool {
        // SAFETY: the reference keeps the cell alive.
        unsafe { self.0.as_ref() }.runs_only_here()
    }

    /// Closes the actor's mailbox at once; the actor ends when it has handled the messages in it. Has no effect when
    /// the actor has ended.
    pub(crate) fn close_and_end(&self) {
        // The actor leaves no router: the messages that it does not handle become dead letters.
        let leave = Control::Leave { leave: Box::new(()), leaving: Leaving::AtOnce };
        let _ = self.send_system(leave);
    }

    /// Returns whether this is the actor behind `actor`.
    pub(crate) fn is<M: Send + 'static>(&self, actor: &ActorRef<M>) -> bool {
        self.0.as_ptr() as usize == actor.address()
    }

    /// The number of entries that wait for the actor, without the message being handled: messages in the mailbox and
    /// [stashed](crate::Context::stash), ticks of its timers that are due, and termination notices of the actors that
    /// it watches. The head of a [balancing pool](crate::routing::Balancing) includes the queue of its routees.
    ///
    /// [`Ledger::queued`](crate::Ledger::queued) counts messages alone.
    pub fn queued(&self) -> usize {
        self.queued_messages() + self.core().notices()
    }

    /// As [`queued`](Self::queued), without ticks and notices: the entries that the ledger counts.
    pub(crate) fn queued_messages(&self) -> usize {
        self.gate().len() as usize + self.core().held() + self.core().children.queued()
    }

    /// The number of messages that the actor has handled so far, including those in whose handlers it failed. Read
    /// while the actor runs, the number is a moment old.
    ///
    /// Of an actor that has ended it includes the messages that were left in the mailbox and became dead letters.
    pub fn handled(&self) -> u64 {
        // SAFETY: the reference keeps the cell alive, and the vtable is the cell's own.
        let displaced = unsafe { (self.0.as_ref().vtable.displaced)(self.0) };
        // Ordering: Relaxed; a statistic.
        let taken = self.gate().head.load(Ordering::Relaxed);
        let handled =
            taken.wrapping_sub(displaced).wrapping_add(self.core().children.handled_beside_so_far());
        // The parts are read one after the other, so the sum may be below 0 for a moment.
        if handled > u64::MAX / 2 { 0 } else { handled }
    }

    /// The name of the actor's class: the actors of a class are counted together. It is the class that the
    /// [builder](crate::actor::ActorBuilder::class) or the [deployment](crate::settings::Deployment::class) names, or
    /// else the path of the router or group that made the actor, or else the name of the actor's type; and `other` when
    /// the system tells [no more classes](crate::telemetry::Telemetry::classes_max) apart.
    pub fn class(&self) -> &str {
        self.core().system.classes.name(self.class_id())
    }

    /// The number of the actor's class.
    pub(crate) fn class_id(&self) -> ClassId {
        let core = self.core();
        core.own_class().unwrap_or_else(|| core.system.classes.id_of(self.type_name()))
    }

    /// The name of the actor's type.
    pub(crate) fn type_name(&self) -> &'static str {
        // SAFETY: the reference keeps the cell alive.
        (unsafe { self.0.as_ref() }.vtable.actor_name)()
    }

    /// Tells actors of different types apart. Two actors of a type may differ, too.
    pub(crate) fn type_key(&self) -> *const VTable {
        // SAFETY: the reference keeps the cell alive.
        unsafe { self.0.as_ref() }.vtable
    }

    /// The children that have not ended.
    pub fn children(&self) -> Vec<AnyActorRef> {
        self.core().children.all()
    }

    /// The address of the actor's task.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// The name of the type of the actor's messages.
    pub(crate) fn message_type_name(&self) -> &'static str {
        // SAFETY: the reference keeps the cell alive.
        (unsafe { self.0.as_ref() }.vtable.message_name)()
    }

    /// The present state of the mailbox.
    pub(crate) fn load_snapshot(&self) -> LoadSnapshot {
        self.gate().load_snapshot()
    }

    /// Returns whether the actor has no turn, and no message or control waits for it or its children: for
    /// `SystemCore::look_for_quiet`.
    #[cfg(any(feature = "testkit", feature = "remote", pointsman_loom))]
    pub(crate) fn is_at_rest(&self) -> bool {
        self.gate().is_at_rest() && self.core().children.queued() == 0
    }

    /// Returns whether the actor has no turn, and is not about to have one.
    #[cfg(feature = "testkit")]
    pub(crate) fn has_no_turn(&self) -> bool {
        self.gate().has_no_turn()
    }

    /// The path of the actor in the tree.
    pub fn path(&self) -> ActorPath {
        self.core().path()
    }

    /// The path of the actor by its place in this tree, where a stand-in has a path of its own.
    #[cfg(feature = "remote")]
    pub(crate) fn tree_path(&self) -> ActorPath {
        self.core().tree_path()
    }

    /// A number that distinguishes this incarnation from others at the same path; 0 for an empty reference, as from
    /// [`SystemRef::empty_ref`](crate::SystemRef::empty_ref).
    pub fn uid(&self) -> u32 {
        self.core().uid
    }

    /// The number of restarts of the actor: its state was made anew after it had been completely created. (GoAkt's
    /// `RestartCount`.)
    pub fn restarts(&self) -> u32 {
        // Ordering: Relaxed; a count.
        self.core().restarts.load(Ordering::Relaxed)
    }

    /// Returns whether the actor takes no more messages.
    #[doc(alias = "is_alive")]
    pub fn is_closed(&self) -> bool {
        self.gate().is_closed()
    }

    /// Ends the actor after the message being handled. The rest of its mailbox becomes dead letters.
    pub fn stop(&self) {
        // First: a restart of the parent that is told after this finds it.
        self.core().note_stop();
        // An actor that has ended refuses; only then there is a value to drop.
        if let Err(refused) = self.send_system(Control::Stop) {
            drop(refused);
        }
    }

    /// Ends the actor once it has handled all messages that this thread has sent so far. For heads of routers and
    /// backoff supervisors see [`ActorRef::poison`](crate::ActorRef::poison).
    pub fn poison(&self) {
        let _ = self.send_positioned(Control::PoisonPill);
    }

    /// Makes the actor fail once it has handled all messages that this thread has sent so far. Its parent decides what
    /// happens then; by default the actor stops.
    pub fn kill(&self) {
        let _ = self.send_positioned(Control::Kill);
    }

    /// Returns the typed reference. A router's head takes management messages itself; for the head this also returns
    /// the reference that routes.
    ///
    /// # Errors
    ///
    /// [`WrongType`] if the actor takes another type of message; the error names both.
    pub fn typed<M: Send + 'static>(&self) -> Result<ActorRef<M>, WrongType> {
        // SAFETY: the reference keeps the cell alive.
        let vtable = unsafe { self.0.as_ref() }.vtable;
        if (vtable.message_type)() == TypeId::of::<M>() {
            let counted = ManuallyDrop::new(self.clone());
            // SAFETY: the type of message is checked, and the clone's count passes over.
            Ok(unsafe { ActorRef::from_header(counted.0) })
        } else if let Some(stand_in) = self.stand_in((vtable.message_type)()) {
            Ok(stand_in)
        } else {
            Err(WrongType {
                path: self.path(),
                takes: (vtable.message_name)(),
                wanted: std::any::type_name::<M>(),
            })
        }
    }
}

impl From<&AnyActorRef> for Option<AnyActorRef> {
    fn from(actor: &AnyActorRef) -> Self {
        Some(actor.clone())
    }
}

/// Returns the actor behind the reference; `None` if there is none, as behind a function.
impl<M: Send + 'static> From<&ActorRef<M>> for Option<AnyActorRef> {
    fn from(actor: &ActorRef<M>) -> Self {
        actor.untyped()
    }
}

impl Clone for AnyActorRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: this reference keeps the cell alive.
        unsafe { Self::retain(self.0) }
    }
}

impl Drop for AnyActorRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: each `AnyActorRef` owns one counted reference and is not used after this.
        unsafe { Header::release(self.0) };
    }
}

impl fmt::Debug for AnyActorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyActorRef({}#{})", self.path(), self.uid())
    }
}

// SAFETY: only the gate and the core can be reached through it, which are shared between threads by their own means;
// messages are touched only through typed references.
unsafe impl Send for AnyActorRef {}
// SAFETY: as above.
unsafe impl Sync for AnyActorRef {}

/// The error of a typed reference to an actor that takes another type of message.
#[derive(Clone, PartialEq, Eq)]
pub struct WrongType {
    /// The actor.
    pub path: ActorPath,
    /// The type of message that the actor takes.
    pub takes: &'static str,
    /// The type of message that was asked for.
    pub wanted: &'static str,
}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} takes {}, not {}: ask for the type that it takes", self.path, self.takes, self.wanted)
    }
}

impl std::error::Error for WrongType {}

debug_by_display! { WrongType }

const _: () = {
    assert!(size_of::<Option<AnyActorRef>>() == size_of::<usize>());
    assert!(Kind::Local as u8 == 0);
};
