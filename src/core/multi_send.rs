//! Multi-recipient sends: one message on its way to any number of recipients, by one of elfo's three verbs.
//!
//! The sender opens a [`SendOp`], which holds the facts about the message as a whole: the mode at a full mailbox, the
//! ledger, and the [`SendReport`]. A recipient that passes the message on gets a [`Delivery`] of its type, and offers
//! copies. An offer to a full mailbox that may wait is put aside. So the first pass reaches every recipient that has
//! room, and only then does [`SendOp::finish`] wait for the others, for all of them together.
//!
//! # The ledger
//!
//! Every offer to a mailbox is a delivery of its own, counted as sent. A refused delivery is a dead letter, although
//! the copy itself may be used again for the next recipient. If no recipient takes a copy, one of the refused
//! deliveries is the message that comes back, and its receiver accounts for it.

use crate::core::accounting::{InFlightGuard, OpenDeliveries};
use crate::core::actor_ref::{ActorRef, Target};
use crate::core::cell::Local;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::dead_letters::{asked, unread};
use crate::core::deferred_send;
use crate::core::error::SendError;
use crate::core::full_policy::FullPolicy;
use crate::core::pending_send::{Outcomes, PendingDelivery, PendingSend, SuccessorLookup, wait_for_all};
use crate::core::recipient::DeliveryStatus;
use crate::core::system::SystemCore;
use crate::mailbox::mailbox::Refused;
use crate::path::actor_path::ActorPath;
use crate::util::panic::drop_guarded;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::Duration;

/// The action of a send at a full mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendMode {
    /// Waits for room, in mailboxes that let senders wait ([`OverflowPolicy::Wait`](crate::OverflowPolicy::Wait)), each
    /// for as long as its own policy says; any other mailbox refuses at once. On a thread whose waiting could keep the
    /// room from being made (a work-stealing worker, a turn on a calling-thread dispatcher) a full mailbox refuses at
    /// once as well.
    Wait,
    /// Waits as [`Wait`](Self::Wait) does, for this time instead of the time that the mailboxes say.
    Within(Duration),
    /// Never waits: a full mailbox refuses, also one that lets senders wait.
    Try,
    /// Goes beyond the capacity: for rare messages that must not wait and must not be refused. A displacing mailbox
    /// still drops its oldest message.
    Unbounded,
}

/// The outcomes of the copies of one message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendReport {
    /// Mailboxes that took a copy. A mailbox that [drops its newest](crate::OverflowPolicy::DropNewest) counts also
    /// when it is full and drops this copy: that is its policy, and no refusal.
    pub accepted: usize,
    /// Mailboxes that were full until the end of the wait.
    pub full: usize,
    /// Recipients that had stopped, or took nothing for another reason.
    pub closed: usize,
}

impl SendReport {
    /// Makes the report of a single recipient.
    pub(crate) fn of_one(is_accepted: bool) -> Self {
        Self { accepted: is_accepted.into(), full: 0, closed: (!is_accepted).into() }
    }

    /// The number of recipients.
    pub fn recipients(&self) -> usize {
        self.accepted + self.full + self.closed
    }
}

impl fmt::Display for SendReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} accepted, {} full, {} closed", self.accepted, self.full, self.closed)
    }
}

/// A recipient that passes a message on to several recipients, and so needs the mode of the send. For the engine's own
/// recipients.
pub(crate) trait MultiRecipient<M> {
    /// Passes on copies of the message, by [`Delivery::offer`].
    ///
    /// # Errors
    ///
    /// The message, or a copy, if it is left over: the last recipient that was offered it has refused it, or there was
    /// no recipient to offer it to. This error is no refusal of its own.
    fn spread(&self, message: M, delivery: &Delivery<'_, M>) -> Result<(), M>;
}

/// Distinguishes the copies of one message: each copy of a request must have a reply port of its own.
pub(crate) trait Copier<M> {
    /// Makes a copy of its own out of a clone. Calls user code.
    fn with_own_ports(&self, clone: M) -> M;

    /// Makes a copy. Calls user code.
    fn copy(&self, message: &M) -> M
    where
        M: Clone,
    {
        self.with_own_ports(message.clone())
    }
}

/// Offers a message of a single type to recipients.
pub(crate) struct Delivery<'a, M> {
    way: &'a SendOp<'a>,
    /// `None`: copies are no more than clones of each other.
    copier: Option<&'a dyn Copier<M>>,
}

/// The state of one message as a whole, regardless of the types that it is changed to on the way.
pub(crate) struct SendOp<'a> {
    pub(crate) mode: SendMode,
    open: OpenDeliveries<&'a SystemCore>,
    report: Cell<SendReport>,
    /// The refusal that is not counted yet: it becomes a dead letter if any recipient takes a copy.
    deferred: RefCell<Option<DeferredRefusal>>,
    /// The deliveries that wait for room.
    later: RefCell<Vec<Box<dyn PendingDelivery>>>,
    /// Whether the offered messages are copies.
    copying: Cell<bool>,
    /// The number of the route by which copies go now. It is needed to turn a waiting copy back into the message.
    route: Cell<usize>,
    /// The number of groups in which no recipient was offered a copy.
    empty: Cell<usize>,
    /// Whether a keyed group has discarded the message.
    discarded: Cell<bool>,
}

/// A refusal.
struct DeferredRefusal {
    reason: DeadLetterReason,
    message_type: &'static str,
    recipient: ActorPath,
}

/// A copy that a single recipient did not take.
pub(crate) enum RefusedCopy<M> {
    /// The refusal is counted.
    Refused(M),
    /// The recipient has retired; the copy still counts as sent.
    Retired(M),
}

/// The remainder of a message that no recipient took.
pub(crate) enum UnsentMessage<M> {
    /// The message, or a copy that was refused at once.
    Message(M),
    /// A message that has waited in vain, as the type that it was offered as, and the number of its route.
    Waited(Box<dyn Any + Send>, usize),
}

impl<M> UnsentMessage<M> {
    /// Returns the message; `turn_back` makes it of a message that has waited in vain. `turn_back` may be user code,
    /// and the caller cannot account for a message that is lost in its panic.
    pub(crate) fn into_message(
        self,
        way: &SendOp<'_>,
        turn_back: impl FnOnce(Box<dyn Any + Send>, usize) -> M,
    ) -> M {
        match self {
            Self::Message(message) => message,
            Self::Waited(message, route) => {
                let counted = InFlightGuard::begin(way.system());
                let message = turn_back(message, route);
                counted.end();
                message
            }
        }
    }
}

/// Spreads a message that was sent by [`ActorRef::tell`] or [`ActorRef::try_tell`], and so is counted as sent. It is
/// the body of [`Recipient::deliver`](crate::actor::Recipient::deliver) for each recipient that spreads. It has no other
/// routes.
///
/// # Errors
///
/// `Full` if any recipient was full; `Discarded` if a keyed group has discarded it, and no recipient was offered it;
/// else `Closed`, also where there was no recipient for the message. So a router over keyed groups chooses another
/// group where the chosen group has stopped or has no actor for the message, and not where that group discards the
/// message.
#[cold]
#[inline(never)]
pub(crate) fn spread_told<M: Send + 'static>(
    system: &SystemCore,
    message: M,
    spread: impl FnOnce(M, &Delivery<'_, M>) -> Result<(), M>,
) -> Result<DeliveryStatus, SendError<M>> {
    spread_copies(system, message, None, spread).1
}

/// As [`spread_told`], with copies that a copier makes. Returns the outcomes of the copies, too.
#[inline(always)]
fn spread_copies<M: Send + 'static>(
    system: &SystemCore,
    message: M,
    copier: Option<&dyn Copier<M>>,
    spread: impl FnOnce(M, &Delivery<'_, M>) -> Result<(), M>,
) -> (SendReport, Result<DeliveryStatus, SendError<M>>) {
    // As the mailboxes' own policies say, but waiting comes last, when the sections of the spreading recipients are
    // closed. A keyed group that is a routee is told inside its router's section, which then stays open meanwhile.
    let way = SendOp::of_counted(system, SendMode::Wait);
    let left = spread(message, &way.delivery(copier)).err();
    let done = way.finish(left).map(|_| DeliveryStatus::Passed).map_err(|left| {
        let message = left.into_message(&way, |message, _| {
            *message.downcast().expect("it waits as the type that it was offered as")
        });
        match way.report() {
            report if report.full > 0 => SendError::Full(message),
            report if report.recipients() == 0 && way.is_discarded() => SendError::Discarded(message),
            _ => SendError::Closed(message),
        }
    });
    (way.report(), done)
}

impl<'a> SendOp<'a> {
    /// Opens the send of a message, and counts the message as sent.
    pub(crate) fn new(system: &'a SystemCore, mode: SendMode) -> Self {
        system.ledger().count_sent();
        Self::of_counted(system, mode)
    }

    /// Opens the send of a message that is counted as sent: by [`ActorRef::tell`] to a recipient that spreads it.
    pub(crate) fn of_counted(system: &'a SystemCore, mode: SendMode) -> Self {
        Self {
            mode,
            open: OpenDeliveries::one(system),
            report: Cell::new(SendReport::default()),
            deferred: RefCell::new(None),
            later: RefCell::new(Vec::new()),
            copying: Cell::new(false),
            route: Cell::new(0),
            empty: Cell::new(0),
            discarded: Cell::new(false),
        }
    }

    /// Offers copies in one group, by the route of this number, and counts the group if no recipient was offered a
    /// copy.
    #[inline]
    pub(crate) fn enter<R>(&self, route: usize, offer: impl FnOnce() -> R) -> R {
        self.route.set(route);
        let before = self.offered();
        let done = offer();
        if self.offered() == before {
            self.empty.set(self.empty.get() + 1);
        }
        done
    }

    /// Notes that the messages offered from now on are copies: see `copies.rs`.
    pub(crate) fn offers_copies(&self) {
        self.copying.set(true);
    }

    fn offered(&self) -> usize {
        self.report.get().recipients() + self.later.borrow().len()
    }

    /// The number of groups in which no recipient was offered a copy.
    pub(crate) fn empty(&self) -> usize {
        self.empty.get()
    }

    /// Returns whether a keyed group has discarded the message.
    pub(crate) fn is_discarded(&self) -> bool {
        self.discarded.get()
    }

    /// Counts an offer to a recipient that does not exist.
    #[cold]
    pub(crate) fn refuse_nowhere<M>(&self, reason: DeadLetterReason) {
        self.open.begin_one();
        self.refuse(reason, std::any::type_name::<M>(), crate::core::dead_letter::nowhere);
    }

    /// Makes the [`Delivery`] for messages of this type.
    pub(crate) fn delivery<'b, M>(&'b self, copier: Option<&'b dyn Copier<M>>) -> Delivery<'b, M> {
        Delivery { way: self, copier }
    }

    /// The outcomes of the copies so far; waiting copies are not included.
    pub(crate) fn report(&self) -> SendReport {
        self.report.get()
    }

    /// The system that counts the message.
    fn system(&self) -> &'a SystemCore {
        self.open.account
    }

    fn count(&self, change: impl FnOnce(&mut SendReport)) {
        let mut report = self.report.get();
        change(&mut report);
        self.report.set(report);
    }

    pub(crate) fn accept(&self) {
        self.count(|report| report.accepted += 1);
    }

    /// Counts a refusal in the report.
    pub(crate) fn note(&self, reason: DeadLetterReason) {
        self.count(|report| match reason {
            DeadLetterReason::Full => report.full += 1,
            _ => report.closed += 1,
        });
    }

    /// Notes one more refusal of a copy that may be used again; the refusal before it is a dead letter in any case.
    #[cold]
    fn refuse(
        &self,
        reason: DeadLetterReason,
        message_type: &'static str,
        recipient: impl FnOnce() -> ActorPath,
    ) {
        self.note(reason);
        // The delivery has begun: nothing may unwind before the refusal is stored.
        let recipient = asked(recipient);
        let before = self.deferred.borrow_mut().replace(DeferredRefusal { reason, message_type, recipient });
        self.flush_refusal(before);
    }

    /// Makes a refusal a dead letter.
    fn flush_refusal(&self, deferred: Option<DeferredRefusal>) {
        if let Some(DeferredRefusal { reason, message_type, recipient }) = deferred {
            self.system().ledger().for_this_thread().dead_lettered(1);
            self.system().dead_letters().publish(reason, message_type, || recipient);
        }
    }

    /// Waits for the recipients that must make room, and completes the account. `left` is the remainder of the first
    /// pass.
    ///
    /// # Errors
    ///
    /// If no recipient took a copy: the remainder of the message, for which the caller accounts as for one delivery.
    #[inline]
    pub(crate) fn finish<M: Send + 'static>(&self, left: Option<M>) -> Result<SendReport, UnsentMessage<M>> {
        if left.is_none() && self.has_nothing_aside() {
            return Ok(self.report.get());
        }
        self.finish_rest(left)
    }

    /// Whether no refusal and no waiting delivery is left.
    #[inline]
    fn has_nothing_aside(&self) -> bool {
        self.later.borrow().is_empty() && self.deferred.borrow().is_none()
    }

    fn finish_rest<M: Send + 'static>(&self, left: Option<M>) -> Result<SendReport, UnsentMessage<M>> {
        let mut later = self.later.take();
        if !later.is_empty() && deferred_send::are_deferred() {
            // The sender is an ask: its asker waits for the deliveries, and sets the timeout.
            for later in later.drain(..) {
                self.accept();
                deferred_send::keep(later);
            }
        }
        let waited = if later.is_empty() { None } else { wait_for_all(self, later, left.is_none()) };
        let deferred = self.deferred.take();
        if self.report.get().accepted == 0 {
            match (left, waited) {
                (Some(left), _) => {
                    // One refusal, or the message that was never offered, is the delivery that comes back. If all
                    // offers have waited in vain, and so are dead letters, this copy is one delivery more.
                    if deferred.is_none() {
                        self.open.hand_one_back(DeadLetterReason::Stopped);
                    }
                    return Err(UnsentMessage::Message(left));
                }
                (None, Some((message, route))) => {
                    self.flush_refusal(deferred);
                    return Err(UnsentMessage::Waited(message, route));
                }
                (None, None) => self.flush_refusal(deferred),
            }
        } else {
            match (deferred, left) {
                (Some(deferred), Some(left)) => {
                    self.system().ledger().for_this_thread().dead_lettered(1);
                    self.system()
                        .dead_letters()
                        .publish_dead_letter(left, deferred.reason, || deferred.recipient);
                }
                (deferred, left) => {
                    self.flush_refusal(deferred);
                    unread(|| drop_guarded(left));
                }
            }
        }
        Ok(self.report.get())
    }
}

impl SendOp<'_> {
    /// Makes dead letters of what user code has left by unwinding.
    #[cold]
    fn abandon(&self) {
        let deferred = self.deferred.take();
        self.flush_refusal(deferred);
        for later in self.later.take() {
            later.abandon(Some(self.system()), DeadLetterReason::Panicked);
        }
    }
}

impl Outcomes for SendOp<'_> {
    fn system(&self) -> &SystemCore {
        SendOp::system(self)
    }

    fn accept(&self) {
        SendOp::accept(self);
    }

    fn note(&self, reason: DeadLetterReason) {
        SendOp::note(self, reason);
    }

    fn accepted(&self) -> usize {
        self.report().accepted
    }
}

impl Drop for SendOp<'_> {
    /// After [`finish`](Self::finish) nothing is left here; otherwise user code has unwound, and `open` counts the rest.
    #[inline]
    fn drop(&mut self) {
        if !self.has_nothing_aside() {
            self.abandon();
        }
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// Offers a message to the recipient behind this reference, by this mode.
    #[inline]
    pub(crate) fn offer_by(&self, message: M, mode: SendMode, copier: Option<&dyn Copier<M>>) -> Offered<M> {
        let Some(system) = self.counting_system() else {
            let left = self.send_undeferred(message).map_err(SendError::into_inner).err();
            let report = SendReport::of_one(left.is_none());
            return Offered { report, empty: 0, is_discarded: false, left };
        };
        let way = SendOp::new(system, mode);
        let left = way.enter(0, || way.delivery(copier).offer(self, message)).err();
        settled(&way, left, |message, _| *message.downcast().expect("one type all the way"))
    }

    /// As [`forward_counted`](Self::forward_counted); if the recipient spreads the message, the copier makes the copies.
    /// Returns the number of recipients, too.
    #[cfg(feature = "remote")]
    pub(crate) fn forward_copied(
        &self,
        message: M,
        copier: &dyn Copier<M>,
    ) -> (usize, Result<DeliveryStatus, SendError<M>>) {
        if let (Target::Foreign(foreign), Some(system)) = (self.target(), self.counting_system()) {
            if let Some(several) = foreign.recipient.spread().filter(|_| !self.is_closed()) {
                let spread = |message, delivery: &Delivery<'_, M>| several.spread(message, delivery);
                let (report, done) = spread_copies(system, message, Some(copier), spread);
                return (report.recipients(), done);
            }
        }
        (1, self.forward_counted(message))
    }

    /// Sends a message beyond the capacity of the mailbox. A message that an actor refuses after its end counts as
    /// handed back.
    #[cfg(all(feature = "net", not(pointsman_loom)))]
    pub(crate) fn send_beyond_capacity(&self, message: M) {
        let refused = self.offer_by(message, SendMode::Unbounded, None).left.is_some();
        if let (true, Some(system)) = (refused, self.counting_system()) {
            system.ledger().for_this_thread().handed_back(1);
        }
    }
}

impl<M: Send + 'static> Delivery<'_, M> {
    /// Offers a copy to a single recipient. A copy that may wait for room counts as taken for now.
    ///
    /// # Errors
    ///
    /// The refused copy, to be offered to the next recipient. The refusal is counted.
    #[inline]
    pub(crate) fn offer(&self, to: &ActorRef<M>, message: M) -> Result<(), M> {
        match to.target() {
            Target::Local(local) => {
                self.offer_local(to, local, message, || None).map_err(|refused| self.refused(to, refused))
            }
            Target::Foreign(foreign) => match foreign.recipient.spread() {
                Some(several) => several.spread(message, self),
                None => self.offer_foreign(to, message),
            },
        }
    }

    /// Offers as [`offer`](Self::offer) does, but the refusal of a [retired](crate::Context::passivate) actor is not
    /// counted: the copy must still be offered to another recipient, or [refused](Self::refuse). If the copy waits for
    /// room and the recipient retires meanwhile, the copy goes on by `succession`.
    ///
    /// # Errors
    ///
    /// The copy.
    #[inline]
    pub(crate) fn offer_unless_retired(
        &self,
        to: &ActorRef<M>,
        message: M,
        succession: impl FnOnce() -> Option<Box<dyn SuccessorLookup<M>>>,
    ) -> Result<(), RefusedCopy<M>> {
        let Target::Local(local) = to.target() else {
            return self.offer(to, message).map_err(RefusedCopy::Refused);
        };
        self.offer_local(to, local, message, succession).map_err(|refused| {
            if !to.is_retired() {
                return RefusedCopy::Refused(self.refused(to, refused));
            }
            self.way.open.take_back();
            RefusedCopy::Retired(refused.into_inner())
        })
    }

    #[inline]
    fn offer_local(
        &self,
        to: &ActorRef<M>,
        local: &Local<M>,
        message: M,
        succession: impl FnOnce() -> Option<Box<dyn SuccessorLookup<M>>>,
    ) -> Result<(), SendError<M>> {
        if self.way.copying.get() {
            to.expect_copies();
        }
        self.way.open.begin_one();
        match to.push_by(local, message, self.way.mode) {
            Ok(()) => {
                self.way.accept();
                Ok(())
            }
            Err(PushFailure::Refused(refused)) => Err(refused),
            Err(PushFailure::MayWait(message, own)) => {
                let limit = match self.way.mode {
                    SendMode::Within(limit) => limit,
                    _ => own,
                };
                let later = PendingSend::new(to.clone(), message, limit, self.way.route.get())
                    .with_succession(succession(), self.way.copying.get());
                self.way.later.borrow_mut().push(Box::new(later));
                Ok(())
            }
        }
    }

    /// Notes that the group's key router has named no key for the message.
    pub(crate) fn discard(&self) {
        self.way.discarded.set(true);
    }

    /// Counts a recipient that takes nothing and that the message cannot be offered to.
    pub(crate) fn refuse(&self, recipient: impl FnOnce() -> ActorPath) {
        self.way.open.begin_one();
        self.way.refuse(DeadLetterReason::Stopped, std::any::type_name::<M>(), recipient);
    }

    fn offer_foreign(&self, to: &ActorRef<M>, message: M) -> Result<(), M> {
        let way = self.way;
        if way.copying.get() {
            deferred_send::note_copies();
            to.expect_copies();
        }
        way.open.begin_one();
        let counted = to.is_counted();
        if !counted {
            // When it unwinds, no other code has counted the message.
            way.open.take_back();
        }
        let done = match self.copier {
            Some(_) if deferred_send::are_deferred() => to.pass_on_returning(message),
            _ => to.forward_counted(message),
        };
        if !counted {
            way.open.settle_one();
        }
        match done {
            Ok(accepted) => {
                if accepted == DeliveryStatus::Handled {
                    way.system().ledger().for_this_thread().handled_by_function();
                }
                way.accept();
                Ok(())
            }
            Err(refused) => Err(self.refused(to, refused)),
        }
    }

    #[cold]
    fn refused(&self, to: &ActorRef<M>, refused: SendError<M>) -> M {
        let reason = DeadLetterReason::of(&refused);
        self.way.refuse(reason, std::any::type_name::<M>(), || to.path());
        refused.into_inner()
    }
}

impl<M: Clone + Send + 'static> Delivery<'_, M> {
    /// Makes one more copy of the message.
    pub(crate) fn copy(&self, message: &M) -> M {
        self.way.offers_copies();
        match self.copier {
            None => message.clone(),
            Some(copier) => copier.copy(message),
        }
    }
}

/// A message, and a copy that was refused.
pub(crate) struct Copies<M> {
    message: Option<M>,
    spare: Option<M>,
}

impl<M> Copies<M> {
    pub(crate) fn of(message: M) -> Self {
        Self { message: Some(message), spare: None }
    }

    /// The message, until the [last](Self::last) recipient has got it.
    pub(crate) fn message(&self) -> Option<&M> {
        self.message.as_ref()
    }

    /// Returns a copy for a recipient that is not the last.
    pub(crate) fn next(&mut self, copy: impl FnOnce(&M) -> M) -> M {
        match (self.spare.take(), &self.message) {
            (Some(spare), _) => spare,
            (None, Some(message)) => copy(message),
            (None, None) => unreachable!("the last one has got the message"),
        }
    }

    /// Returns the message or a copy for the last recipient.
    pub(crate) fn last(&mut self) -> M {
        self.spare.take().or_else(|| self.message.take()).expect("only the last one gets the message")
    }

    pub(crate) fn reclaim_copy(&mut self, refused: Option<M>) {
        if refused.is_some() {
            self.spare = refused;
        }
    }

    /// # Errors
    ///
    /// The remainder, if there is any.
    pub(crate) fn into_unsent(self) -> Result<(), M> {
        let Self { message, spare } = self;
        match message.is_some() {
            true => unread(|| drop(spare)),
            false => return spare.map_or(Ok(()), Err),
        }
        message.map_or(Ok(()), Err)
    }
}

/// The reason why a push by a [`SendMode`] was not done.
enum PushFailure<M> {
    Refused(SendError<M>),
    /// The sender may wait, for so long.
    MayWait(M, Duration),
}

impl<M: Send + 'static> ActorRef<M> {
    /// The system that counts the messages sent here, for as long as this reference is kept.
    #[inline]
    pub(crate) fn counting_system(&self) -> Option<&SystemCore> {
        match self.target() {
            Target::Local(local) => Some(&local.core.system),
            Target::Foreign(foreign) => foreign.system.as_ref().map(|system| &**system.core()),
        }
    }

    /// Puts a message into an actor's mailbox that has room, and gives the message back if any other step is needed.
    #[inline]
    pub(crate) fn push_at_once(&self, message: M) -> Result<(), M> {
        let Target::Local(local) = self.target() else { return Err(message) };
        match self.settle(local, local.mailbox.push(message)) {
            Ok(()) => Ok(()),
            Err(Refused::Closed(message) | Refused::Full(message)) => Err(message),
        }
    }

    #[inline]
    fn push_by(&self, local: &Local<M>, message: M, mode: SendMode) -> Result<(), PushFailure<M>> {
        let pushed = match mode {
            SendMode::Unbounded => local.mailbox.push_beyond(message),
            _ => local.mailbox.push(message),
        };
        match self.settle(local, pushed) {
            Ok(()) => Ok(()),
            Err(Refused::Closed(message)) => Err(PushFailure::Refused(SendError::Closed(message))),
            Err(Refused::Full(message)) => self.full_by(local, message, mode),
        }
    }

    #[cold]
    fn full_by(&self, local: &Local<M>, message: M, mode: SendMode) -> Result<(), PushFailure<M>> {
        match (local.core.full(), mode) {
            (FullPolicy::DropNewest, _) => {
                self.drop_by_policy(local, message);
                Ok(())
            }
            (FullPolicy::Refuse | FullPolicy::Wait(_), SendMode::Wait) if deferred_send::are_awaited() => {
                Err(PushFailure::MayWait(message, Duration::MAX))
            }
            (FullPolicy::Wait(limit), SendMode::Wait | SendMode::Within(_)) if !self.waits_in_vain() => {
                Err(PushFailure::MayWait(message, limit))
            }
            _ => Err(PushFailure::Refused(SendError::Full(message))),
        }
    }
}

/// The outcome of an offer.
pub(crate) struct Offered<M> {
    pub report: SendReport,
    /// The number of destination groups without a recipient.
    pub empty: usize,
    /// Whether a keyed group has discarded the message.
    pub is_discarded: bool,
    /// The message, if no recipient took it.
    pub left: Option<M>,
}

#[inline]
pub(crate) fn settled<M: Send + 'static>(
    way: &SendOp<'_>,
    left: Option<M>,
    turn_back: impl FnOnce(Box<dyn Any + Send>, usize) -> M,
) -> Offered<M> {
    let left = way.finish(left).err().map(|left: UnsentMessage<M>| left.into_message(way, turn_back));
    Offered { report: way.report(), empty: way.empty(), is_discarded: way.is_discarded(), left }
}
