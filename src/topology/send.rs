//! Sending verbs take a message to an outlet, a group or an actor.

use crate::ask::ask_clock::{AskClock, Asked};
use crate::ask::fork::Answerable;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::nowhere;
use crate::core::error::SendError;
use crate::core::multi_send::{Copier, Offered, SendMode, SendOp, SendReport, settled};
use crate::core::send_future::SendFuture;
use crate::core::system::SystemCore;
use crate::path::actor_path::ActorPath;
use crate::time::no_system::NO_SYSTEM;
use crate::topology::outlet::Outlet;
use crate::topology::request::RequestBuilder;
use std::time::Duration;

/// All verbs are done as soon as a recipient has accepted the message; if no recipient has, the message comes back in
/// the error. Copies that are refused while others are accepted are dead letters, counted and shown.
/// [`send_by`](Self::send_by) tells how many copies had each outcome.
///
/// | verb | at a full mailbox | mode |
/// |---|---|---|
/// | [`send`](Self::send) | waits for room, if the mailbox lets senders wait and the thread may | [`SendMode::Wait`] |
/// | [`send_within`](Self::send_within) | the same, for `limit` | [`SendMode::Within`] |
/// | [`try_send`](Self::try_send) | is refused | [`SendMode::Try`] |
/// | [`unbounded_send`](Self::unbounded_send) | goes beyond the mailbox's capacity | [`SendMode::Unbounded`] |
///
/// With several recipients, all recipients are tried before any full recipient is waited for, and all full recipients
/// are waited for together. The copy for the last recipient is the message itself, and a refused copy goes to the next
/// recipient: n recipients cost n − 1 clones at most. A message to n recipients is n deliveries in the ledger.
///
/// The verbs are elfo's. A [reference](ActorRef::send_by) has the same verbs; its [`send`](ActorRef::send) is a future,
/// and [waits](SendFuture::wait) in a thread as well.
impl<M: Send + 'static> Outlet<M> {
    /// Sends by a mode. Returns the outcomes of the copies, and whether a recipient has accepted the message.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), in the second value.
    ///
    /// # Panics
    ///
    /// When user code panics on the way: a route's condition, the message's `Clone`, a key router. The message is a
    /// dead letter then, and copies that were accepted before stay accepted.
    #[doc(alias = "SendRefused")]
    pub fn send_by(&self, message: impl Into<M>, mode: SendMode) -> (SendReport, Result<(), SendError<M>>) {
        send_by(self, message.into(), mode)
    }

    /// Sends, and waits for room in full mailboxes that let senders wait, for as long as each mailbox says.
    ///
    /// # Errors
    ///
    /// If no recipient has accepted the message, the message comes back:
    ///
    /// * [`SendError::Full`] if a recipient was full until the end.
    /// * [`SendError::Discarded`] if there was no recipient because a keyed group's key router has discarded the
    ///   message.
    /// * [`SendError::Closed`] if all recipients had stopped, or their keys were absent.
    /// * [`SendError::NoRoute`] if there was no group.
    pub fn send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Wait).1
    }

    /// As [`send`](Self::send), but waits for `limit` instead of for as long as the mailboxes say.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_within(&self, message: impl Into<M>, limit: Duration) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Within(limit)).1
    }

    /// Sends without waiting.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn try_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Try).1
    }

    /// Sends beyond the capacity of mailboxes, and takes a regular place if there is one. For rare messages that must
    /// neither wait nor be refused.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), but never [`SendError::Full`].
    pub fn unbounded_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Unbounded).1
    }

    /// Begins to describe a request to all recipients behind this outlet, which [`first`](RequestBuilder::first) and
    /// [`all`](RequestBuilder::all) send.
    ///
    /// Every recipient gets a copy with its own reply port. The end of each reply port is counted exactly once: by the
    /// first reply through it, or by its drop. A router on the way that makes copies counts as a single recipient: the
    /// first reply of its routees is the router's reply.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// #[derive(Clone)]
    /// struct Check(u64);
    /// impl Request for Check {
    ///     type Reply = bool;
    /// }
    ///
    /// struct Limit(u64);
    /// impl Actor for Limit {
    ///     type Message = Call<Check>;
    ///     fn receive(&mut self, call: Call<Check>, _: &mut Context<Call<Check>>) -> HandlerResult {
    ///         call.answer(|Check(amount)| amount <= self.0);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let topology = system.topology();
    /// let gateway = topology.local::<u32>("gateway")?;
    /// for (name, limit) in [("risk", 1_000), ("fraud", 50)] {
    ///     let group = topology.local(name)?;
    ///     gateway.route_all_to::<Call<Check>, _>(&group);
    ///     group.mount(&system.actor(name).spawn(move || Limit(limit))?);
    /// }
    /// let checks = gateway.outlet::<Call<Check>>();
    /// gateway.mount(&ActorRef::from_fn(|_: u32| {})); // until then its outlets lead nowhere
    /// let mut answers = checks.request(Check(100)).all().wait()?;
    /// answers.sort_by_key(|answer| *answer == Ok(true));
    /// assert_eq!(answers, [Ok(false), Ok(true)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn request<Q>(&self, request: Q) -> RequestBuilder<'_, M, Q>
    where
        M: From<Call<Q>> + Answerable,
        Q: Request,
    {
        RequestBuilder::new(self, request)
    }
}

/// The [verbs of an outlet](Outlet::send_by), to a single reference: of a group, where the key router says which actors
/// get the message, or of an actor.
///
/// A reference that changes messages ([`narrow`](ActorRef::narrow)), a function's reference, and a router's reference
/// follow the policies of the mailboxes behind them, in every mode.
impl<M: Send + 'static> ActorRef<M> {
    /// Sends by a mode. Returns the outcomes of the copies, and whether a recipient has accepted the message: as
    /// [`Outlet::send_by`].
    ///
    /// # Errors
    ///
    /// As [`Outlet::send`], in the second value.
    ///
    /// # Panics
    ///
    /// When user code panics on the way: the message's `Clone`, a key router. The message is a dead letter then, and
    /// copies that were accepted before stay accepted.
    pub fn send_by(&self, message: impl Into<M>, mode: SendMode) -> (SendReport, Result<(), SendError<M>>) {
        send_by(self, message.into(), mode)
    }

    /// Sends, and blocks the thread while full mailboxes that let senders wait have no room, for `limit` at most: as
    /// [`Outlet::send_within`].
    ///
    /// # Errors
    ///
    /// As [`Outlet::send`].
    pub fn send_within(&self, message: impl Into<M>, limit: Duration) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Within(limit)).1
    }

    /// As [`send_within`](Self::send_within), but never waits: a full mailbox refuses.
    ///
    /// # Errors
    ///
    /// As [`Outlet::send`].
    pub fn try_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Try).1
    }

    /// Sends beyond the capacity of mailboxes: as [`Outlet::unbounded_send`].
    ///
    /// # Errors
    ///
    /// As [`Outlet::send`], but never [`SendError::Full`].
    pub fn unbounded_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Unbounded).1
    }

    /// Begins to describe a request to all recipients behind this reference: as [`Outlet::request`]. A request to a
    /// single actor is an [`ask`](ActorRef::ask).
    pub fn request<Q>(&self, request: Q) -> RequestBuilder<'_, M, Q>
    where
        M: From<Call<Q>> + Answerable,
        Q: Request,
    {
        RequestBuilder::new(self, request)
    }
}

/// A target takes messages that were sent as an `M`.
pub(crate) trait Target<M>: Sync {
    /// Offers the message, accounts for it unless it comes back, and returns how many groups had no recipient.
    fn offer(&self, message: M, mode: SendMode, copier: Option<&dyn Copier<M>>) -> Offered<M>;

    /// Returns the system that counts the message.
    fn system(&self) -> Option<&SystemCore>;

    /// Returns the ask_clock whose clock the deadlines of requests are read from.
    fn ask_clock(&self) -> AskClock;

    /// Returns the reference by which the error of a request finds the path that it names.
    fn asked(&self) -> Asked;

    /// Returns the path that dead letters name.
    fn place(&self) -> ActorPath;
}

impl<M: Send + 'static> SendFuture<M> {
    /// Blocks this thread until the message is taken: as [`Outlet::send`], it waits for room in full mailboxes that let
    /// senders wait, for as long as each mailbox says. A mailbox that refuses when it is full refuses at once, and so
    /// does any full mailbox where the thread [must not wait](crate::OverflowPolicy::Wait).
    ///
    /// # Errors
    ///
    /// If no recipient has accepted the message, the message comes back, as at [`Outlet::send`].
    ///
    /// # Panics
    ///
    /// When the future has been polled before: then it must be polled to its end, or dropped.
    pub fn wait(self) -> Result<(), SendError<M>> {
        let (to, message) = self.into_unsent();
        to.send_by(message, SendMode::Wait).1
    }
}

impl<M: Send + 'static> Target<M> for Outlet<M> {
    #[inline]
    fn offer(&self, message: M, mode: SendMode, copier: Option<&dyn Copier<M>>) -> Offered<M> {
        let way = SendOp::new(self.table.system.core(), mode);
        let left = self.table.offer(message, &way, copier).err();
        settled(&way, left, |message, route| self.table.restore(message, route))
    }

    fn system(&self) -> Option<&SystemCore> {
        Some(self.table.system.core())
    }

    fn ask_clock(&self) -> AskClock {
        match self.table.system.user() {
            Some(user) => AskClock::System(user),
            None => AskClock::Static(&NO_SYSTEM),
        }
    }

    fn asked(&self) -> Asked {
        Asked::Unknown
    }

    fn place(&self) -> ActorPath {
        nowhere()
    }
}

impl<M: Send + 'static> Target<M> for ActorRef<M> {
    #[inline]
    fn offer(&self, message: M, mode: SendMode, copier: Option<&dyn Copier<M>>) -> Offered<M> {
        self.offer_by(message, mode, copier)
    }

    fn system(&self) -> Option<&SystemCore> {
        self.counting_system()
    }

    fn ask_clock(&self) -> AskClock {
        ActorRef::ask_clock(self)
    }

    fn asked(&self) -> Asked {
        ActorRef::asked(self)
    }

    fn place(&self) -> ActorPath {
        self.path()
    }
}

/// All verbs send by this function.
fn send_by<M: Send + 'static>(
    target: &impl Target<M>,
    message: M,
    mode: SendMode,
) -> (SendReport, Result<(), SendError<M>>) {
    let Offered { report, empty, is_discarded, left } = target.offer(message, mode, None);
    let Some(message) = left else { return (report, Ok(())) };
    if let Some(system) = target.system() {
        system.ledger().for_this_thread().handed_back(1);
    }
    let error = match report {
        report if report.full > 0 => SendError::Full(message),
        report if report.recipients() > 0 => SendError::Closed(message),
        _ if empty == 0 => SendError::NoRoute(message),
        _ if is_discarded => SendError::Discarded(message),
        _ => SendError::Closed(message),
    };
    (report, Err(error))
}
