//! Recipients behind a reference that are no actors.

use crate::core::accounting::{Account, InFlightGuard};
use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{Header, Kind, Referent, VTable};
use crate::core::control::Leaving;
use crate::core::dead_letter::{DeadLetterReason, nowhere};
use crate::core::dead_letters::DeadLetters;
use crate::core::deferred_send::{not_put_off, note_changed};
use crate::core::elsewhere::Elsewhere;
use crate::core::error::SendError;
use crate::core::ledger::ThreadCounters;
use crate::core::multi_send::MultiRecipient;
use crate::core::recipient_identity::{RecipientIdentity, SameRecipient};
use crate::core::routed_asks::{Routed, RoutedAsks};
use crate::core::system::{SystemCore, SystemRef};
use crate::path::actor_path::ActorPath;
use crate::scheduler::task::{Ran, Task, Turn};
use crate::sync::atomic::AtomicBool;
use crate::util::panic::drop_guarded;
use std::any::Any;
use std::any::TypeId;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A recipient of messages: implement it to put a recipient of your own behind an [`ActorRef`].
///
/// # Concurrency
///
/// [`deliver`](Self::deliver) runs on the senders' threads, many at a time, and should be short. Its own sends wait for
/// room in a full mailbox for as long as [the mailbox says](crate::OverflowPolicy::Wait), regardless of the deadline of
/// an asker.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::SendError;
/// use pointsman::actor::Recipient;
/// use std::sync::mpsc;
///
/// struct ToChannel(mpsc::Sender<u32>);
///
/// impl Recipient<u32> for ToChannel {
///     fn deliver(&self, message: u32) -> Result<(), SendError<u32>> {
///         self.0.send(message).map_err(|error| SendError::Closed(error.0))
///     }
/// }
///
/// let (sender, receiver) = mpsc::channel();
/// let port: ActorRef<u32> = ActorRef::to_recipient(ToChannel(sender));
/// port.tell(7u32);
/// assert_eq!(receiver.recv(), Ok(7));
/// ```
#[doc(alias = "DeliveryStatus")]
pub trait Recipient<M>: Send + Sync + 'static {
    /// Takes a single message, which counts as handled then. A message that it tells to another reference is another
    /// delivery.
    ///
    /// # Errors
    ///
    /// A message that is not accepted comes back.
    fn deliver(&self, message: M) -> Result<(), SendError<M>>;

    /// Returns whether no more messages are taken.
    fn is_closed(&self) -> bool {
        false
    }

    /// The load of the recipient.
    fn load(&self) -> RecipientLoad {
        RecipientLoad::Unknown
    }

    /// The actor behind the recipient, if there is one.
    fn untyped(&self) -> Option<AnyActorRef> {
        None
    }

    /// The system whose ledger counts the messages sent here; `None` if no ledger does. Called once, when the reference
    /// is made.
    fn system(&self) -> Option<SystemRef> {
        self.untyped().map(|any| SystemRef::new(any.core().system.clone()))
    }
}

/// The outcome of a message that an [`OwnRecipient`] accepted, for the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryStatus {
    /// The message is still the same delivery, and its next receiver counts it.
    Passed,
    /// The message was handled here and now, or was told to another reference.
    Handled,
}

/// A recipient of the engine: unlike a user's [`Recipient`], it may pass a delivery on, and takes part in routing.
pub(crate) trait OwnRecipient<M>: Send + Sync + 'static {
    /// Takes a single message.
    ///
    /// # Errors
    ///
    /// A message that is not accepted comes back.
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>>;

    /// As [`Recipient::is_closed`].
    fn is_closed(&self) -> bool {
        false
    }

    /// As [`Recipient::load`].
    fn load(&self) -> RecipientLoad {
        RecipientLoad::Unknown
    }

    /// As [`Recipient::untyped`].
    fn untyped(&self) -> Option<AnyActorRef> {
        None
    }

    /// As [`untyped`](Self::untyped), for a recipient whose actor leads back to `own`, the reference to this recipient.
    fn untyped_of(&self, own: &ActorRef<M>) -> Option<AnyActorRef> {
        let _ = own;
        self.untyped()
    }

    /// As [`Recipient::system`].
    fn system(&self) -> Option<SystemRef> {
        self.untyped().map(|any| SystemRef::new(any.core().system.clone()))
    }

    /// Returns whether it is a router. An empty or full router says nothing about the other routees of an outer router.
    fn is_router(&self) -> bool {
        false
    }

    /// Returns whether [`deliver`](Self::deliver) only passes a message on, so a wait for room behind it belongs to the
    /// send.
    fn passes_on(&self) -> bool {
        false
    }

    /// The `ActorRef` of any type behind the recipient that chooses the receiver of a message, if there is one.
    fn way_back(&self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Announces copies of messages that others get too. Called once, before the first copy. For recipients with
    /// actors behind them that [`untyped`](Self::untyped) does not name.
    fn expect_copies(&self) {}

    /// Asks the routee behind the recipient to leave its router. For recipients in front of a routee that its pool has
    /// made.
    fn leave(&self, leave: Leave<M>, leaving: Leaving) {
        let _ = leaving;
        drop_guarded(leave);
    }

    /// The recipient as one that passes a message on to several, and so needs the mode of the send.
    fn spread(&self) -> Option<&dyn MultiRecipient<M>> {
        None
    }

    /// The identity that the recipient shares with others of its type; `None` if only the very same recipient is equal.
    fn meaning(&self) -> Option<&dyn RecipientIdentity> {
        None
    }

    /// The actor behind the recipient, if that is the same for as long as the recipient exists.
    fn place(&self) -> Option<AnyActorRef> {
        None
    }

    /// The actor of another system that the recipient stands for.
    fn elsewhere(&self) -> Option<&dyn Elsewhere> {
        None
    }

    /// The reason for a dead letter of a message that came back.
    fn reason(&self, refused: &SendError<M>) -> DeadLetterReason {
        DeadLetterReason::of(refused)
    }
}

/// The target of a reference to a recipient. Aligned to a cache line: all senders through a router's reference read it,
/// and the heap puts unrelated data beside it.
#[repr(C, align(64))]
pub(crate) struct Foreign<M> {
    header: Header,
    /// Asked for once, since it is needed for every message.
    pub system: Option<SystemRef>,
    /// Whether the actor behind, if there is one, has been told that it gets copies; see `copies.rs`.
    pub told_of_copies: AtomicBool,
    routed_asks: RoutedAsks<SystemRef, AnyActorRef>,
    pub recipient: Box<dyn OwnRecipient<M>>,
}

impl<M: 'static> Foreign<M> {
    const VTABLE: VTable = VTable {
        run: never_run,
        free: Self::free,
        core_offset: 0,
        message_type: TypeId::of::<M>,
        actor_type: || None,
        message_name: std::any::type_name::<M>,
        actor_name: std::any::type_name::<M>,
        displaced: |_| 0,
        referent: Some(Self::referent),
    };

    /// # Safety
    ///
    /// `header` is that of a living `Foreign<M>`.
    unsafe fn referent(header: NonNull<Header>) -> NonNull<dyn Referent> {
        // SAFETY: passed on to the caller; the header is the first field, and the pointer valid for the whole.
        let foreign: &Self = unsafe { header.cast::<Self>().as_ref() };
        let referent: &dyn Referent = foreign;
        NonNull::from(referent)
    }

    /// Makes a target with a count of one.
    pub(crate) fn allocate(recipient: Box<dyn OwnRecipient<M>>) -> NonNull<Header> {
        let header = Header::new(&Self::VTABLE, std::ptr::null(), 1, Kind::Foreign);
        let system = recipient.system();
        NonNull::from(Box::leak(Box::new(Self {
            header,
            system,
            told_of_copies: AtomicBool::new(false),
            routed_asks: RoutedAsks::new(),
            recipient,
        })))
        .cast()
    }

    /// Returns the reference that an ask through this router, or of an actor elsewhere, counts; `None` for others.
    pub(crate) fn routed_ask(&self) -> Option<StdArc<Routed<SystemRef, AnyActorRef>>> {
        let is_counted_here = self.recipient.is_router() || self.recipient.elsewhere().is_some();
        let system = self.system.as_ref().filter(|_| is_counted_here)?;
        Some(self.routed_asks.begin(system, || self.recipient.place()))
    }

    /// # Safety
    ///
    /// The last reference to a `Foreign<M>` made by [`allocate`](Self::allocate) is gone.
    unsafe fn free(header: NonNull<Header>) -> Option<AnyActorRef> {
        // SAFETY: by contract a boxed `Foreign<M>` whose last reference is gone.
        let foreign = unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) };
        drop_guarded(foreign);
        None
    }
}

impl<M: 'static> Referent for Foreign<M> {
    fn meaning(&self) -> Option<&dyn RecipientIdentity> {
        self.recipient.meaning()
    }

    fn place(&self) -> Option<AnyActorRef> {
        self.recipient.place()
    }
}

/// # Safety
///
/// Never called: nothing schedules a foreign recipient.
unsafe fn never_run(_: NonNull<Task>, _: &Turn) -> Ran {
    debug_assert!(false, "a recipient was scheduled");
    Ran::Idle
}

/// The account of messages `M` that code of the user's has in its hands, which stands behind a reference.
struct CodeAccount<'a, M, S, P> {
    system: S,
    recipient: P,
    message: PhantomData<fn(M)>,
    counting: PhantomData<&'a SystemCore>,
}

impl<'a, M, S: Fn() -> Option<&'a SystemCore>, P: Fn() -> ActorPath> CodeAccount<'a, M, S, P> {
    #[inline]
    fn new(system: S, recipient: P) -> Self {
        Self { system, recipient, message: PhantomData, counting: PhantomData }
    }
}

impl<'a, M, S: Fn() -> Option<&'a SystemCore>, P: Fn() -> ActorPath> Account for CodeAccount<'a, M, S, P> {
    fn counters(&self) -> Option<(&ThreadCounters, &DeadLetters)> {
        let system = (self.system)()?;
        Some((system.ledger().for_this_thread(), system.dead_letters()))
    }

    fn message_type(&self) -> &'static str {
        std::any::type_name::<M>()
    }

    fn recipient(&self) -> ActorPath {
        (self.recipient)()
    }
}

/// A recipient of the user.
pub(crate) struct ByUser<R>(pub R);

impl<M: Send + 'static, R: Recipient<M>> OwnRecipient<M> for ByUser<R> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        self.0.deliver(message).map(|()| DeliveryStatus::Handled)
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn load(&self) -> RecipientLoad {
        self.0.load()
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        self.0.untyped()
    }

    fn system(&self) -> Option<SystemRef> {
        self.0.system()
    }
}

/// A recipient that runs code of the user. When it unwinds, its message is accounted for, in the ledger in which the
/// message was sent.
/// Its own sends wait for room by themselves.
pub(crate) struct Custom<R> {
    recipient: R,
    system: Option<SystemRef>,
}

impl<R> Custom<R> {
    pub(crate) fn new<M>(recipient: R) -> Self
    where
        R: OwnRecipient<M>,
    {
        let system = recipient.system();
        Self { recipient, system }
    }
}

impl<M: Send + 'static, R: OwnRecipient<M>> OwnRecipient<M> for Custom<R> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let in_hands = InFlightGuard::begin(CodeAccount::<M, _, _>::new(
            || self.system.as_ref().map(|system| &**system.core()),
            || self.recipient.untyped().map_or_else(nowhere, |any| any.path()),
        ));
        let done = match self.recipient.passes_on() {
            true => self.recipient.deliver(message),
            // The recipient sends on its own account.
            false => not_put_off(|| self.recipient.deliver(message)),
        };
        in_hands.end();
        done
    }

    fn is_closed(&self) -> bool {
        self.recipient.is_closed()
    }

    fn load(&self) -> RecipientLoad {
        self.recipient.load()
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        self.recipient.untyped()
    }

    fn system(&self) -> Option<SystemRef> {
        self.system.clone()
    }

    fn passes_on(&self) -> bool {
        self.recipient.passes_on()
    }

    fn place(&self) -> Option<AnyActorRef> {
        self.recipient.place()
    }
}

/// Changes messages on their way to another reference.
pub(crate) struct Adapter<M, F> {
    pub target: ActorRef<M>,
    pub change: F,
}

impl<M, N, F> OwnRecipient<N> for Adapter<M, F>
where
    M: Send + 'static,
    N: Send + 'static,
    F: Fn(N) -> M + Send + Sync + 'static,
{
    fn deliver(&self, message: N) -> Result<DeliveryStatus, SendError<N>> {
        let account = CodeAccount::<N, _, _>::new(|| self.target.counting_system(), || self.target.path());
        let in_hands = InFlightGuard::begin(account);
        let changed = (self.change)(message);
        in_hands.end();
        match note_changed(|| self.target.forward_counted(changed)) {
            Ok(accepted) => Ok(accepted),
            Err(refused) => {
                // The message cannot be changed back, so it ends here.
                self.target.dead_letter(refused);
                Ok(DeliveryStatus::Passed)
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.target.is_closed()
    }

    fn load(&self) -> RecipientLoad {
        self.target.load()
    }

    fn expect_copies(&self) {
        self.target.expect_copies();
    }

    fn way_back(&self) -> Option<Box<dyn Any + Send>> {
        self.target.way_back()
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        self.target.untyped()
    }

    fn system(&self) -> Option<SystemRef> {
        // Not through `untyped`: the target may be counted and yet be no actor.
        self.target.system().map(SystemRef::new)
    }

    /// The captured values of a function cannot be compared.
    fn meaning(&self) -> Option<&dyn RecipientIdentity> {
        (size_of::<F>() == 0).then_some(self)
    }

    fn place(&self) -> Option<AnyActorRef> {
        self.target.place()
    }
}

/// Functions of one type that have captured nothing are one function.
impl<M: 'static, F: 'static> SameRecipient for Adapter<M, F> {
    fn is_like(&self, other: &Self) -> bool {
        self.target == other.target
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        self.target.hash(&mut state);
    }

    fn order(&self, other: &Self) -> Ordering {
        self.target.cmp(&other.target)
    }
}

// The data that references share between threads, behind a pointer that tells the compiler nothing about it.
const _: () = {
    const fn may_be_shared<T: Send + Sync>() {}
    may_be_shared::<Option<SystemRef>>();
    may_be_shared::<RoutedAsks<SystemRef, AnyActorRef>>();
    may_be_shared::<Box<dyn OwnRecipient<()>>>();
};

/// The request of a head that a routee leaves.
pub(crate) struct Leave<M> {
    /// Takes the messages that the actor does not handle.
    pub router: ActorRef<M>,
    /// The last message of the router to the actor: no mailbox can refuse it.
    pub farewell: Option<M>,
    /// The time after which an actor elsewhere stops. The head sees to that of an actor here.
    pub within: Option<Duration>,
}
