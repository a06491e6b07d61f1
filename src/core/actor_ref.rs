//! The typed reference: the only way to reach an actor, a router, or anything else that takes messages.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::into_message::IntoMessage;
use crate::core::pending_send::PendingSend;
use crate::core::{deferred_send, recipient};

use crate::core::recipient::{DeliveryStatus, OwnRecipient, Recipient};

use crate::core::cell::{Header, Kind, Local};
use crate::core::dead_letter::nowhere;
use crate::core::elsewhere::Elsewhere;
use crate::core::error::SendError;
use crate::core::full_policy::FullPolicy;
use crate::core::recipient::Foreign;
use crate::mailbox::mailbox::{LoadSnapshot, Pushed, Refused};
use crate::mailbox::state::MailboxState;
use crate::mailbox::system_queue::Position;
use crate::path::actor_path::ActorPath;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::Duration;

/// A reference to a recipient of messages of type `M`: an actor, a router, an adapter, a function, or another
/// recipient.
///
/// The type does not tell the kind of recipient. A reference is one word; `Option<ActorRef<M>>` is no larger.
///
/// # Equality
///
/// Equal references mean the same recipient: the same incarnation of the same actor, the same router, the same group or
/// [key](crate::group::Group::key) of it, or the same path of an [empty reference](crate::SystemRef::empty_ref).
/// [Adapters](Self::contramap) are equal if they have the same target and functions of the same type which have
/// captured nothing, as [`narrow`](Self::narrow) has. Adapters with other functions, references to
/// [functions](Self::from_fn) and to [recipients](Self::to_recipient) are equal only if they are clones of one
/// reference. Equal references have equal hashes. References are ordered by their paths (right to left, as in Akka),
/// then by their incarnations. A recipient without a path is at `/deadLetters`, in an order that another run need not
/// have.
///
/// ```
/// # use pointsman::prelude::*;
/// # struct Idle;
/// # impl Actor for Idle {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let idle: ActorRef<u64> = system.actor("idle").spawn(|| Idle)?;
/// assert_eq!(idle.narrow::<u32>(), idle.narrow::<u32>());
/// assert_eq!(idle.contramap(u64::from_be), idle.contramap(u64::from_be));
/// let plus = |number: u64| idle.contramap(move |other: u64| number + other);
/// assert_ne!(plus(1), plus(1)); // captured values cannot be compared
/// # Ok(())
/// # }
/// ```
///
/// # Delivery
///
/// Messages of one sender (a thread, or an actor wherever it runs) to one actor are handled in the order sent. A
/// message that cannot be delivered is a dead letter ([`tell`](Self::tell)) or comes back
/// ([`try_tell`](Self::try_tell)); it never vanishes.
pub struct ActorRef<M>(pub(crate) NonNull<Header>, PhantomData<fn(M)>);

// SAFETY: a reference only hands messages over, so it is as free to move as the messages are.
unsafe impl<M: Send> Send for ActorRef<M> {}
// SAFETY: as above; the mailbox takes messages from many threads at once.
unsafe impl<M: Send> Sync for ActorRef<M> {}

const _: () = assert!(size_of::<Option<ActorRef<()>>>() == size_of::<usize>());

impl<M: Send + 'static> ActorRef<M> {
    /// Takes over one counted reference.
    ///
    /// # Safety
    ///
    /// `header` is that of a `Local<M>` or of a `Foreign<M>`, and the caller gives up one counted reference
    /// (or never drops the result).
    pub(crate) unsafe fn from_header(header: NonNull<Header>) -> Self {
        Self(header, PhantomData)
    }

    /// A reference to anything that takes messages.
    pub fn to_recipient(recipient: impl Recipient<M>) -> Self {
        Self::to_own_recipient(recipient::Custom::new(recipient::ByUser(recipient)))
    }

    /// A reference to a recipient that accounts for its messages itself when user code in it unwinds.
    pub(crate) fn to_own_recipient(recipient: impl OwnRecipient<M>) -> Self {
        // SAFETY: the header is that of a new `Foreign<M>` with a count of one, which passes over.
        unsafe { Self::from_header(Foreign::allocate(Box::new(recipient))) }
    }

    /// Returns whether no other reference to this recipient exists, see [`Header::has_one_reference`].
    #[cfg(any(feature = "remote", pointsman_loom))]
    pub(crate) fn is_only_reference(&self) -> bool {
        // SAFETY: this reference keeps the allocation alive.
        unsafe { self.0.as_ref() }.has_one_reference()
    }

    /// Returns the recipient behind the reference: an actor's cell, or a recipient of another kind.
    #[inline]
    pub(crate) fn target(&self) -> Target<'_, M> {
        // SAFETY: the reference keeps the allocation alive.
        let kind = unsafe { self.0.as_ref() }.kind;
        match kind {
            // SAFETY: the kind says that it is a cell, and its type of message is this reference's.
            Kind::Local => Target::Local(unsafe { self.0.cast::<Local<M>>().as_ref() }),
            // SAFETY: the kind says that it is foreign, and its type of message is this reference's.
            Kind::Foreign => Target::Foreign(unsafe { self.0.cast::<Foreign<M>>().as_ref() }),
        }
    }

    /// Sends a message. Never blocks (but see [`OverflowPolicy::Wait`](crate::OverflowPolicy::Wait)) and never fails: a
    /// message that cannot be delivered is a dead letter, counted and shown to
    /// [`dead_letters`](crate::SystemRef::dead_letters).
    #[inline]
    pub fn tell(&self, message: impl IntoMessage<M>) {
        self.send_undeferred(message.into_message()).unwrap_or_else(|refused| self.dead_letter(refused));
    }

    /// Sends a message, and gets it back if it is not accepted.
    ///
    /// # Errors
    ///
    /// Each error holds the message. [`SendError::Full`] when the mailbox is bounded, full, and refuses;
    /// [`SendError::Closed`] when the actor has stopped.
    ///
    /// A router returns:
    ///
    /// - `Full` when the mailbox of the chosen routee is full, or the queue of a [balancing
    ///   pool](crate::routing::Balancing). No other routee is tried.
    /// - [`SendError::NoRoutee`] when there is no routee, or all have stopped. For each stopped routee, the next routee
    ///   is tried.
    /// - `Closed` when the router itself has stopped or [drains](crate::Router::drain).
    /// - [`SendError::Cycle`] and [`SendError::BadPick`] when routers, or a logic, are wrong.
    ///
    /// A router among the routees that is full, or has no routee, is passed over like a stopped routee. If no routee is
    /// left then, the error is `Full` if any of those routers was full. A router that sends copies returns no error for
    /// a copy: a refused copy is a dead letter. A [group by path](crate::routing::RouterBuilder::group_at) returns no
    /// error if there is no actor at its paths.
    ///
    /// A keyed [group](crate::group::Group) returns [`SendError::Discarded`], whether the message comes to the group
    /// directly or through a router, when its key router names no key for the message.
    #[inline]
    pub fn try_tell(&self, message: impl IntoMessage<M>) -> Result<(), SendError<M>> {
        self.send_undeferred(message.into_message()).inspect_err(|_| {
            if let Some(system) = self.system() {
                system.ledger().for_this_thread().handed_back(1);
            }
        })
    }

    /// Counts a message as sent and delivers it. A wait for room that begins at an actor is done here, and never
    /// deferred.
    #[inline]
    pub(crate) fn send_undeferred(&self, message: M) -> Result<(), SendError<M>> {
        self.count_and_send::<false>(message)
    }

    /// Sends as [`send_undeferred`](Self::send_undeferred) does, where waits for room may be [deferred](deferred_send::put_off).
    #[inline(always)]
    pub(crate) fn send_putting_off(&self, message: M) -> Result<(), SendError<M>> {
        self.count_and_send::<true>(message)
    }

    #[inline(always)]
    fn count_and_send<const PUTS_OFF: bool>(&self, message: M) -> Result<(), SendError<M>> {
        match self.target() {
            Target::Local(local) => {
                local.core.system.ledger().count_sent();
                self.push::<PUTS_OFF>(local, message)
            }
            Target::Foreign(foreign) => {
                if let Some(system) = &foreign.system {
                    system.core().ledger().count_sent();
                }
                self.hand_over(foreign, message).map(drop)
            }
        }
    }

    /// Delivers a message that is counted as sent already: on its way through a router or an adapter.
    #[inline]
    pub(crate) fn forward_counted(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        match self.target() {
            Target::Local(local) => self.push::<true>(local, message).map(|()| DeliveryStatus::Passed),
            Target::Foreign(foreign) => self.hand_over(foreign, message),
        }
    }

    /// Forwards as [`forward_counted`](Self::forward_counted) does, for a part of a send that defers waits for room: a
    /// message that waits behind this reference goes [back](Self::way_back) to it.
    #[cold]
    pub(crate) fn pass_on_returning(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let (done, put_off) = deferred_send::put_off_as_before(|| self.forward_counted(message));
        if let Some(put_off) = put_off {
            put_off.returning_by(|| self.way_back()).keep();
        }
        done
    }

    /// Returns the reference by which a message is sent once more, after it has waited for room behind this reference
    /// and was refused since its actor has ended: an `ActorRef` to the recipient that chooses. `None` if no recipient
    /// behind this reference chooses.
    #[cold]
    pub(crate) fn way_back(&self) -> Option<Box<dyn std::any::Any + Send>> {
        let Target::Foreign(foreign) = self.target() else { return None };
        let recipient = &foreign.recipient;
        match recipient.is_router() || recipient.passes_on() {
            true => Some(Box::new(self.clone())),
            false => recipient.way_back(),
        }
    }

    /// Delivers a message to a recipient that is no actor. Returns `Handled` only where no ledger has counted the
    /// message.
    #[inline]
    fn hand_over(&self, foreign: &Foreign<M>, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let accepted = foreign.recipient.deliver(message)?;
        if let (DeliveryStatus::Handled, Some(system)) = (accepted, &foreign.system) {
            system.core().ledger().for_this_thread().handled_by_function();
            return Ok(DeliveryStatus::Passed);
        }
        Ok(accepted)
    }

    /// Returns whether the recipient is a router.
    pub(crate) fn is_router(&self) -> bool {
        match self.target() {
            Target::Local(_) => false,
            Target::Foreign(foreign) => foreign.recipient.is_router(),
        }
    }

    /// Returns whether a ledger counts the messages sent here; the sender must count messages that no ledger counts.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        match self.target() {
            Target::Local(_) => true,
            Target::Foreign(foreign) => foreign.system.is_some(),
        }
    }

    /// Puts a message into an actor's mailbox, and schedules the actor if that woke it. `PUTS_OFF`: the wait for room
    /// may be [deferred](deferred_send::put_off).
    // Always: a call of its own costs each send 12 instructions, and whether it is inlined otherwise changed with code
    // that has nothing to do with it.
    #[inline(always)]
    pub(crate) fn push<const PUTS_OFF: bool>(
        &self,
        local: &Local<M>,
        message: M,
    ) -> Result<(), SendError<M>> {
        local.mailbox.push_or(
            message,
            || Ok(()),
            |claimed, message| self.send_slow::<PUTS_OFF>(local, claimed, message).map_or(Ok(()), Err),
        )
    }

    /// Handles all cases but the usual push: see [`Mailbox::push_or`](crate::mailbox::mailbox::Mailbox::push_or).
    /// Returns the refused message, as do the other functions off the fast path of a send: the place of a result would
    /// be that of the usual `Ok`, too, and be copied with it from one caller to the next, a message's size and more.
    #[inline(never)]
    fn send_slow<const PUTS_OFF: bool>(
        &self,
        local: &Local<M>,
        claimed: Option<MailboxState>,
        message: M,
    ) -> Option<SendError<M>> {
        let refused = self.settle(local, local.mailbox.push_slow(claimed, message)).err()?;
        self.refused::<PUTS_OFF>(local, refused)
    }

    /// Handles a message that the mailbox has refused. A full mailbox may take it yet, by its policy.
    #[cold]
    pub(crate) fn refused<const PUTS_OFF: bool>(
        &self,
        local: &Local<M>,
        refused: Refused<M>,
    ) -> Option<SendError<M>> {
        match refused {
            Refused::Closed(message) => Some(SendError::Closed(message)),
            Refused::Full(message) => self.full::<PUTS_OFF>(local, message).err(),
        }
    }

    /// Takes the steps that an accepted push requires of its caller.
    #[inline]
    pub(crate) fn settle(
        &self,
        local: &Local<M>,
        pushed: Result<Pushed<M>, Refused<M>>,
    ) -> Result<(), Refused<M>> {
        match pushed? {
            Pushed::Queued => {}
            Pushed::Wake => self.schedule(),
            displaced => self.displaced(local, displaced),
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn schedule(&self) {
        // SAFETY: this reference keeps the cell alive, and the push has just given us the token.
        unsafe { crate::core::cell::schedule(self.0) };
    }

    /// Accounts for the oldest message, which a displacing mailbox dropped to make room.
    #[cold]
    pub(crate) fn displaced(&self, local: &Local<M>, pushed: Pushed<M>) {
        if let Pushed::Displaced { oldest, wake } = pushed {
            if wake {
                self.schedule();
            }
            self.drop_by_policy(local, oldest);
        }
    }

    #[cold]
    pub(crate) fn drop_by_policy(&self, local: &Local<M>, message: M) {
        let system = &local.core.system;
        system.ledger().for_this_thread().dropped(1);
        system.dead_letters().publish_dead_letter(message, DeadLetterReason::Dropped, || self.path());
    }

    #[cold]
    fn full<const PUTS_OFF: bool>(&self, local: &Local<M>, message: M) -> Result<(), SendError<M>> {
        match local.core.full() {
            FullPolicy::Refuse | FullPolicy::Wait(_) if PUTS_OFF && deferred_send::are_awaited() => {
                deferred_send::keep(Box::new(PendingSend::new(self.clone(), message, Duration::MAX, 0)));
                Ok(())
            }
            FullPolicy::Refuse => Err(SendError::Full(message)),
            FullPolicy::DropNewest => {
                self.drop_by_policy(local, message);
                Ok(())
            }
            // A worker that waited could be the one that has to make the room.
            FullPolicy::Wait(_) if self.waits_in_vain() => Err(SendError::Full(message)),
            FullPolicy::Wait(limit) if PUTS_OFF && deferred_send::are_deferred() => {
                deferred_send::keep(Box::new(PendingSend::new(self.clone(), message, limit, 0)));
                Ok(())
            }
            FullPolicy::Wait(limit) => {
                match crate::core::pending_send::push_waiting(self, local, message, limit) {
                    Ok(Pushed::Wake) => {
                        self.schedule();
                        Ok(())
                    }
                    Ok(_) => Ok(()),
                    Err(Refused::Full(message)) => Err(SendError::Full(message)),
                    Err(Refused::Closed(message)) => Err(SendError::Closed(message)),
                }
            }
        }
    }

    /// Returns whether the calling thread must not wait for this local actor to make room, or would wait for ever.
    pub(crate) fn waits_in_vain(&self) -> bool {
        crate::dispatch::may_block::must_not_wait() || self.any_local().runs_only_here()
    }

    #[cold]
    pub(crate) fn dead_letter(&self, refused: SendError<M>) {
        match self.system() {
            Some(system) => {
                let reason = self.dead_letter_reason(&refused);
                system.ledger().for_this_thread().dead_lettered(1);
                system.dead_letters().publish_dead_letter(refused.into_inner(), reason, || self.path());
            }
            None => crate::util::panic::drop_guarded(refused),
        }
    }

    /// The reason for a dead letter of a message that came back.
    pub(crate) fn dead_letter_reason(&self, refused: &SendError<M>) -> DeadLetterReason {
        match self.target() {
            Target::Local(local) if local.core.is_empty_ref() => DeadLetterReason::NoActor,
            Target::Local(_) => DeadLetterReason::of(refused),
            Target::Foreign(foreign) => foreign.recipient.reason(refused),
        }
    }

    /// The system that counts the messages sent here.
    pub(crate) fn system(&self) -> Option<std::sync::Arc<crate::core::system::SystemCore>> {
        match self.target() {
            Target::Local(local) => Some(local.core.system.clone()),
            Target::Foreign(foreign) => foreign.system.as_ref().map(|system| system.core().clone()),
        }
    }

    // ---- identity and load

    /// The untyped reference to the actor behind this reference; for a router, its head. `None` if there is no actor,
    /// as behind a function.
    pub fn untyped(&self) -> Option<AnyActorRef> {
        match self.target() {
            Target::Local(_) => Some(self.any_local()),
            Target::Foreign(foreign) => foreign.recipient.untyped_of(self),
        }
    }

    /// As [`untyped`](Self::untyped), where the kind is known.
    pub(crate) fn any_local(&self) -> AnyActorRef {
        debug_assert!(matches!(self.target(), Target::Local(_)));
        // SAFETY: this reference keeps the cell alive.
        unsafe { AnyActorRef::retain(self.0) }
    }

    /// The path in the tree of actors; `/deadLetters` for a recipient without a place in the tree.
    pub fn path(&self) -> ActorPath {
        if let Some(elsewhere) = self.elsewhere() {
            return elsewhere.path();
        }
        match self.untyped() {
            Some(any) => any.path(),
            None => nowhere(),
        }
    }

    /// A number that distinguishes this incarnation from others at the same path; 0 for a recipient without a place in
    /// the tree.
    pub fn uid(&self) -> u32 {
        if let Some(elsewhere) = self.elsewhere() {
            return elsewhere.uid();
        }
        self.untyped().map_or(0, |any| any.uid())
    }

    /// The actor of another system behind this reference, if there is one.
    pub(crate) fn elsewhere(&self) -> Option<&dyn Elsewhere> {
        match self.target() {
            Target::Local(_) => None,
            Target::Foreign(foreign) => foreign.recipient.elsewhere(),
        }
    }

    /// Returns whether the recipient is in this process, and not at another [node](crate::SystemRef::address).
    pub fn is_here(&self) -> bool {
        self.elsewhere().is_none()
    }

    /// Returns whether messages are refused: the actor or the router has stopped.
    #[inline]
    #[doc(alias("is_alive", "is_stopped", "is_terminated"))]
    pub fn is_closed(&self) -> bool {
        match self.target() {
            Target::Local(local) => local.mailbox.gate.is_closed(),
            Target::Foreign(foreign) => foreign.recipient.is_closed(),
        }
    }

    /// The load of the recipient; a router's load is that of its least loaded routee.
    #[inline]
    pub fn load(&self) -> RecipientLoad {
        match self.target() {
            Target::Local(local) => RecipientLoad::of(local.mailbox.gate.load_snapshot()),
            Target::Foreign(foreign) => foreign.recipient.load(),
        }
    }

    /// The [rank](RecipientLoad::rank) of the load. It is computed without a `RecipientLoad`, for comparisons of many
    /// recipients.
    #[inline]
    pub(crate) fn rank(&self) -> u64 {
        match self.target() {
            Target::Local(local) => RecipientLoad::of(local.mailbox.gate.load_snapshot()).rank(),
            Target::Foreign(foreign) => foreign.recipient.load().rank(),
        }
    }

    /// The rank of an actor's load; `None` for any other recipient, whose own code tells it.
    #[inline]
    pub(crate) fn rank_of_actor(&self) -> Option<u64> {
        match self.target() {
            Target::Local(_) => Some(self.rank()),
            Target::Foreign(_) => None,
        }
    }

    /// The number of entries that wait for the actor, without the message being handled: messages in the mailbox and
    /// [stashed](crate::Context::stash), ticks that are due, and termination notices, as [`AnyActorRef::queued`] says.
    /// `None` where there is no count.
    pub fn queued(&self) -> Option<usize> {
        if let Target::Local(_) = self.target() {
            return Some(self.any_local().queued());
        }
        match self.load() {
            RecipientLoad::Busy { queued } => Some(queued),
            RecipientLoad::Idle => Some(0),
            RecipientLoad::Suspended | RecipientLoad::Closed => self.untyped().map(|any| any.queued()),
            RecipientLoad::Unknown => None,
        }
    }

    /// Ends the actor after the message being handled. The rest of its mailbox becomes dead letters.
    #[inline]
    pub fn stop(&self) {
        if let Target::Local(_) = self.target() {
            // Not a counted reference, but it is not dropped.
            ManuallyDrop::new(AnyActorRef(self.0)).stop();
        } else {
            self.stop_foreign();
        }
    }

    #[cold]
    fn stop_foreign(&self) {
        if let Some(any) = self.untyped() {
            any.stop();
        }
    }

    /// Ends the actor once it has handled all messages that this thread has sent so far.
    ///
    /// The actor behind a router's reference, or behind a [backoff supervisor's](crate::pattern::Backoff), is one that messages
    /// do not pass through: it ends at once, and its children with it, regardless of the messages in their mailboxes.
    pub fn poison(&self) {
        if let Some(any) = self.untyped() {
            any.poison();
        }
    }

    /// Makes the actor fail once it has handled all messages that this thread has sent so far. Its parent decides what
    /// happens then; by default the actor stops.
    pub fn kill(&self) {
        if let Some(any) = self.untyped() {
            any.kill();
        }
    }

    /// The address of the recipient as a number, which is unique as long as this reference is kept.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    // ---- adapters

    /// Makes a reference that takes only a part of the protocol: it takes `N`, and `M` arrives. Two such references
    /// made of the same reference are [equal](#equality).
    pub fn narrow<N>(&self) -> ActorRef<N>
    where
        N: Send + 'static,
        M: From<N>,
    {
        self.contramap(M::from)
    }

    /// Makes a reference that takes `N` and sends the result of `change`. `change` runs on the sender's thread and may
    /// capture values. When it panics, the message is lost and counted as a dead letter. A message that the target
    /// refuses is a dead letter too, even for [`try_tell`](Self::try_tell): it cannot be changed back.
    ///
    /// Two adapters of the same reference are [equal](#equality) if `change` is the same function, or the same closure
    /// that captures nothing. With a closure that captures something, or a pointer to a function, only clones of one
    /// adapter are equal: keep the adapter if it is needed again, for example to unsubscribe it.
    ///
    /// An adapter calls its target, so a long chain of adapters of adapters takes more and more of the sender's stack:
    /// a thousand are no harm, many thousands overflow it. Make adapters of the reference behind all of them instead.
    pub fn contramap<N: Send + 'static>(
        &self,
        change: impl Fn(N) -> M + Send + Sync + 'static,
    ) -> ActorRef<N> {
        ActorRef::to_own_recipient(recipient::Adapter { target: self.clone(), change })
    }
}

/// The recipient behind a reference: an actor, by its cell, or a recipient of another kind.
pub(crate) enum Target<'a, M> {
    Local(&'a Local<M>),
    Foreign(&'a Foreign<M>),
}

/// The load of the recipient behind a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecipientLoad {
    /// Nothing queued, nothing being handled.
    Idle,
    /// A message is being handled (or about to be), and this many messages are behind it.
    Busy {
        /// Messages in the mailbox.
        queued: usize,
    },
    /// Suspended by a failure: handles nothing for now.
    Suspended,
    /// Stopped.
    Closed,
    /// No count exists, as for a function, or for a routee that is a path.
    Unknown,
}

impl RecipientLoad {
    #[inline]
    fn of(glance: LoadSnapshot) -> Self {
        match glance {
            LoadSnapshot::Closed => Self::Closed,
            LoadSnapshot::Suspended => Self::Suspended,
            LoadSnapshot::Idle => Self::Idle,
            LoadSnapshot::Busy { queued } => Self::Busy { queued: queued as usize },
        }
    }

    /// The order of preference: smaller is better.
    #[inline]
    pub(crate) fn rank(self) -> u64 {
        match self {
            RecipientLoad::Idle => 0,
            RecipientLoad::Busy { queued } => 1 + queued as u64,
            RecipientLoad::Unknown => u64::MAX - 2,
            RecipientLoad::Suspended => u64::MAX - 1,
            RecipientLoad::Closed => u64::MAX,
        }
    }
}

impl<M> Clone for ActorRef<M> {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: this reference keeps the allocation alive.
        unsafe { self.0.as_ref() }.retain();
        Self(self.0, PhantomData)
    }
}

impl<M> Drop for ActorRef<M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: each `ActorRef` owns one counted reference and is not used after this.
        unsafe { Header::release(self.0) };
    }
}

impl<M: Send + 'static> fmt::Debug for ActorRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorRef<{}>({}#{})", std::any::type_name::<M>(), self.path(), self.uid())
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// Asks the actor behind, if there is one, to leave a router.
    pub(crate) fn send_leave(
        &self,
        leave: crate::core::recipient::Leave<M>,
        leaving: crate::core::control::Leaving,
    ) {
        let local = match self.target() {
            Target::Local(local) => local,
            Target::Foreign(foreign) => return foreign.recipient.leave(leave, leaving),
        };
        let position = match leaving {
            crate::core::control::Leaving::AtOnce => Position::Immediate,
            crate::core::control::Leaving::AtPosition | crate::core::control::Leaving::ByItself => {
                Position::At(local.mailbox.gate.position())
            }
        };
        let leave = crate::core::control::Control::Leave { leave: Box::new(leave), leaving };
        // SAFETY: this reference keeps the cell alive.
        let sent = unsafe { crate::core::cell::send_system(self.0, leave, position) };
        // A recipient that has ended has left.
        crate::util::panic::drop_guarded(sent.err());
    }
}
