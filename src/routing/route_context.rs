//! The way of a message through a router: the context of a logic, and the count of the message's deliveries.
//!
//! A routed message is counted as sent once before it comes here, and each outcome is counted once. So the ledger
//! balances whatever a logic does. A context keeps the number of [open](OpenDeliveries) deliveries. The number begins at 1.
//!
//! | event | open | in the ledger |
//! |---|---|---|
//! | the logic announces n [copies](RouteContext::copies) | + n − 1 | n − 1 more are sent |
//! | the logic delivers when no delivery is open | + 1 | one more is sent |
//! | a routee takes a delivery | − 1 | handled, if that routee has handled it at once; else its new holder counts it |
//! | a delivery becomes a dead letter here | − 1 | dead-lettered |
//! | another part accounts for the rest ([`forget_open`](RouteContext::forget_open)) | 0 | nothing |
//! | the logic returns, or user code unwinds, with some open | 0 | those were let fall: dead-lettered |
//! | the logic returns the message | 0 | nothing for that one: the caller that gets it back counts it |

use crate::ask::fork::RouterId;
use crate::core::accounting::{Account, OpenDeliveries};
use crate::core::actor_ref::{ActorRef, Target};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::dead_letters::DeadLetters;
use crate::core::deferred_send::note_copies;
use crate::core::error::SendError;
use crate::core::ledger::ThreadCounters;
use crate::core::recipient::DeliveryStatus;
use crate::core::system::SystemRef;
use crate::mailbox::mailbox::Refused;
use crate::path::actor_path::ActorPath;
use crate::routing::routees::Routees;
use crate::routing::router_info::RouterInfo;
use crate::sync::HashSet;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;

/// The reason why a routee refused although its load did not announce the refusal.
#[derive(Clone, Copy)]
enum PassedOver {
    /// A router without routees, or a recipient that has refused and does not report itself closed.
    Empty,
    /// A router whose routees have no room.
    Full,
}

/// The account of a message that is on its way through a router. The counters are looked up where they are needed: most
/// messages are pushed to one actor, which counts them.
struct RouterAccount<'a> {
    router: &'a RouterInfo,
}

impl Account for RouterAccount<'_> {
    #[inline]
    fn counters(&self) -> Option<(&ThreadCounters, &DeadLetters)> {
        Some((self.router.counters(), self.router.system.dead_letters()))
    }

    fn message_type(&self) -> &'static str {
        (self.router.message_type)()
    }

    fn recipient(&self) -> ActorPath {
        self.router.head.path()
    }

    #[inline(always)]
    fn on_refusal(&self) {
        self.router.count_refused();
    }
}

/// The context of a logic besides the table: the way of a message through a router.
pub struct RouteContext<'a> {
    open: OpenDeliveries<RouterAccount<'a>>,
    /// The deliveries are copies.
    copying: Cell<bool>,
    pub(crate) refusals: Cell<u32>,
    /// Made with the first refusal: hardly any message needs it.
    refused: OnceCell<Box<Refusals>>,
}

/// The routees that have refused a message.
#[derive(Default)]
struct Refusals {
    /// The routee that has refused last.
    by: Cell<usize>,
    /// The reason why routees were passed over: full, if any of them was full.
    passed_over: Cell<Option<PassedOver>>,
    /// The routees that were passed over.
    passed: RefCell<HashSet<usize>>,
}

impl<'a> RouteContext<'a> {
    /// The way of a message that is counted as sent.
    #[inline]
    pub(crate) fn new(router: &'a RouterInfo) -> Self {
        Self {
            open: OpenDeliveries::one(RouterAccount { router }),
            copying: Cell::new(false),
            refusals: Cell::new(0),
            refused: OnceCell::new(),
        }
    }

    /// The way of a message that is sent here: counts it as sent.
    #[inline]
    pub(crate) fn of_new_message(router: &'a RouterInfo) -> Self {
        router.counters().sent(1);
        Self::new(router)
    }

    /// This thread's counters of the router's system.
    #[inline]
    pub(crate) fn counters(&self) -> &'a ThreadCounters {
        self.router().counters()
    }

    #[inline]
    pub(in crate::routing) fn router(&self) -> &'a RouterInfo {
        self.open.account.router
    }

    /// Whether the message goes through a router value, which has an owner.
    #[inline]
    pub(crate) fn is_of_value(&self) -> bool {
        self.router().value.is_some()
    }

    /// Whether the message goes through a router value that shares its logic with no other router value.
    pub(super) fn is_of_sole_value(&self) -> bool {
        self.router().is_of_sole_value()
    }

    /// A number of this router's own that derives from the system's seed.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.router().seed
    }

    /// The system, by whose clock and scheduler a logic may deliver later, too. Such a delivery is sent by
    /// [`ActorRef::tell`], which counts it, and copies are announced by [`copies_later`](Self::copies_later). Costs a
    /// read-modify-write on a line that the whole system shares.
    pub fn system(&self) -> SystemRef {
        SystemRef::new(self.router().system.clone())
    }

    /// The router's path, for the log; a router value has none.
    pub(crate) fn name(&self) -> Cow<'static, str> {
        if self.is_of_value() {
            "a router value".into()
        } else {
            format!("router {}", self.router().head.path()).into()
        }
    }

    /// The router's head.
    pub(crate) fn head(&self) -> &AnyActorRef {
        &self.router().head
    }

    /// No routee takes the message, and the logic itself accounts for it.
    pub(crate) fn nobody_took(&self) {
        self.router().count_no_routee();
        self.router().on_no_routee();
    }

    /// Identifies this router.
    pub(crate) fn id(&self) -> RouterId {
        self.router().id()
    }

    /// Returns how many routees have refused this message: they had stopped, or were routers that were empty or full.
    #[inline]
    pub fn refusals(&self) -> usize {
        self.refusals.get() as usize
    }

    /// Counts the message as `copies` deliveries instead of one. To be called before they are delivered: leftovers of a
    /// routee are routed again, but not where copies may be among them. A single delivery is no copy.
    #[inline]
    pub fn copies(&self, copies: usize) {
        let more = copies as u64;
        if more > 1 {
            self.open.announce(more - 1);
            self.copying.set(true);
            note_copies();
        }
    }

    /// Announces that this routee will be sent copies of messages which other recipients get, too, after the message's
    /// way through the router has ended: by [`ActorRef::tell`], which cannot tell that a message is a copy. To be
    /// called before each such copy is sent, from here or by the deliverer. From then on the leftovers of the routee
    /// become dead letters, as after [`copies`](Self::copies). May run code of the user's, that of a
    /// [`Recipient`](crate::actor::Recipient).
    #[inline]
    pub fn copies_later<M: Send + 'static>(&self, routee: &ActorRef<M>) {
        routee.expect_copies();
    }

    /// Counts a delivery beyond those that were announced.
    #[cold]
    fn count_another(&self) {
        self.open.announce(1);
        self.copying.set(true);
        note_copies();
    }

    /// Delivers a message. A delivery beyond those that [`copies`](Self::copies) has counted is counted here as one
    /// delivery more.
    ///
    /// # Errors
    ///
    /// The message comes back if the routee does not take it.
    #[inline(always)]
    pub fn deliver<M: Send + 'static>(&self, routee: &ActorRef<M>, message: M) -> Result<(), SendError<M>> {
        if self.open.is_empty() {
            self.count_another();
        }
        if self.copying.get() {
            routee.expect_copies();
        }
        match routee.target() {
            Target::Local(actor) => {
                self.open.settle_counted();
                // Not by `inspect_err` and the like, here and in `logic.rs`: they move the room of an error, a message's
                // size and more, on the way of a message that is taken.
                let Err(refused) = routee.push::<true>(actor, message) else { return Ok(()) };
                self.open.take_back();
                Err(refused)
            }
            Target::Foreign(_) => self.pass_on(routee, message).map_or(Ok(()), Err),
        }
    }

    /// Handles a message that the mailbox of an actor has refused. A full mailbox may take it yet, by its policy.
    pub(crate) fn deliver_refused<M: Send + 'static>(
        &self,
        routee: &ActorRef<M>,
        refused: Refused<M>,
    ) -> Result<(), SendError<M>> {
        let Target::Local(actor) = routee.target() else { unreachable!("only an actor has a mailbox") };
        self.open.settle_counted();
        let Some(refused) = routee.refused::<true>(actor, refused) else { return Ok(()) };
        self.open.take_back();
        Err(refused)
    }

    /// Delivers a message to a recipient that is no actor. Apart from the path of deliveries to actors. Returns the
    /// refused message.
    #[inline(never)]
    fn pass_on<M: Send + 'static>(&self, routee: &ActorRef<M>, message: M) -> Option<SendError<M>> {
        let counted = routee.is_counted();
        if counted {
            self.open.settle_one();
        }
        match routee.forward_counted(message) {
            Ok(accepted) => {
                if !counted {
                    self.open.settle_one();
                }
                if accepted == DeliveryStatus::Handled {
                    self.counters().handled_by_function();
                }
                None
            }
            Err(refused) => {
                match counted {
                    true => self.open.take_back(),
                    false => self.router().count_refused(),
                }
                Some(refused)
            }
        }
    }

    /// Decides whether a refusal by the routee of this index makes the logic choose again: then the result is `Closed`.
    /// A router that is empty or full is passed over like a routee that has stopped. So is a recipient that refuses as
    /// stopped and does not report itself closed. Any other answer, of an actor or of anything else, is final.
    #[cold]
    pub(crate) fn pass_over<M: Send + 'static>(
        &self,
        index: usize,
        routee: &ActorRef<M>,
        refused: SendError<M>,
    ) -> SendError<M> {
        let all = self.refused.get_or_init(Box::default);
        all.by.set(index);
        let why = match refused {
            SendError::NoRoutee(_) if routee.is_router() => PassedOver::Empty,
            SendError::Full(_) if routee.is_router() => PassedOver::Full,
            // The recipient refused but does not report itself closed, so by its load it would be selected again;
            // remember that it refused.
            SendError::Closed(_) if !routee.is_closed() => PassedOver::Empty,
            _ => return refused,
        };
        all.passed.borrow_mut().insert(index);
        if !matches!(all.passed_over.get(), Some(PassedOver::Full)) {
            all.passed_over.set(Some(why));
        }
        SendError::Closed(refused.into_inner())
    }

    /// Returns the error of the sender when no routee is left to choose. The error says that there is no room if any
    /// router had none, since that router may come to have room.
    pub(crate) fn no_routee_error<M>(&self, message: M) -> SendError<M> {
        match self.passed_over() {
            Some(PassedOver::Full) => SendError::Full(message),
            Some(PassedOver::Empty) | None => SendError::NoRoutee(message),
        }
    }

    /// Returns the first routee that has not stopped, behind the routee that has refused last, going round: repeated
    /// calls try all routees in turn.
    pub(crate) fn next_in_turn<M: Send + 'static>(&self, routees: &Routees<M>) -> Option<usize> {
        match self.refused_by() + 1 {
            next if self.refusals() > 0 && next < routees.len() => routees.first_open(next),
            _ => routees.first_open(0),
        }
    }

    /// The index of the routee that has refused last.
    pub(crate) fn refused_by(&self) -> usize {
        self.refused.get().map_or(0, |all| all.by.get())
    }

    #[inline]
    fn passed_over(&self) -> Option<PassedOver> {
        self.refused.get()?.passed_over.get()
    }

    /// Whether a routee was passed over whose load did not announce its refusal: a router that is empty or full, or a
    /// recipient that does not report that it takes nothing.
    #[inline]
    pub(crate) fn has_passed_over(&self) -> bool {
        self.passed_over().is_some()
    }

    /// Whether the routee of this index was passed over.
    pub(crate) fn was_passed_over(&self, index: usize) -> bool {
        self.refused.get().is_some_and(|all| all.passed.borrow().contains(&index))
    }

    /// Delivers one of several copies; a copy that is not taken becomes a dead letter, and the others go on. Returns
    /// whether it was taken.
    #[inline]
    pub fn deliver_copy<M: Send + 'static>(&self, routee: &ActorRef<M>, message: M) -> bool {
        let done = self.deliver(routee, message);
        let is_taken = done.is_ok();
        if let Err(refused) = done {
            self.refuse_copy(routee, refused);
        }
        is_taken
    }

    /// Makes a copy that came back a dead letter.
    pub(crate) fn refuse_copy<M: Send + 'static>(&self, routee: &ActorRef<M>, refused: SendError<M>) {
        if routee.is_counted() {
            self.open.settle_one();
            routee.dead_letter(refused);
        } else {
            let reason = DeadLetterReason::of(&refused);
            self.bury_for(refused.into_inner(), reason, || routee.path());
        }
    }

    /// Makes the message a dead letter of the router's.
    pub(crate) fn count_dead_letter<M: Send + 'static>(&self, message: M, reason: DeadLetterReason) {
        self.bury_for(message, reason, || self.router().head.path());
    }

    fn bury_for<M: Send + 'static>(
        &self,
        message: M,
        reason: DeadLetterReason,
        recipient: impl FnOnce() -> ActorPath,
    ) {
        self.open.settle_one();
        self.counters().dead_lettered(1);
        self.router().system.dead_letters().publish_dead_letter(message, reason, recipient);
    }

    /// Another part accounts for the open deliveries.
    #[inline]
    pub(crate) fn forget_open(&self) {
        self.open.settle_all();
    }
}

/// The end of the way.
impl RouteContext<'_> {
    /// The logic is done. The caller that gets a returned message back accounts for it; each other delivery without an
    /// outcome was let fall, and is a dead letter.
    #[inline]
    pub(crate) fn finish<M>(&self, done: &Result<(), SendError<M>>) {
        match done {
            Ok(()) => self.settle(),
            Err(_) => self.hand_one_back(),
        }
    }

    /// As [`finish`](Self::finish), of a logic that has returned the message.
    pub(crate) fn hand_one_back(&self) {
        self.open.hand_one_back(DeadLetterReason::NoRoutee);
    }

    /// The logic is done, and returns nothing: a message that it has let fall is a dead letter.
    #[inline]
    pub(crate) fn settle(&self) {
        self.open.lose_rest(DeadLetterReason::NoRoutee);
    }

    /// Settles, and ends the way.
    #[inline]
    pub(crate) fn end(self) {
        self.open.end(DeadLetterReason::NoRoutee);
    }
}

impl fmt::Debug for RouteContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteContext").field("refusals", &self.refusals()).finish_non_exhaustive()
    }
}
