//! Sending verbs take a message to an outlet, a group or an actor.

use crate::ask::ask_clock::{AskClock, Asked};
use crate::ask::fork::Answerable;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::nowhere;
use crate::core::error::SendError;
use crate::core::multi_send::{Copier, Offered, SendMode, SendOp, SendReport, settled};
use crate::core::system::SystemCore;
use crate::path::actor_path::ActorPath;
use crate::time::no_system::NO_SYSTEM;
use crate::topology::error::SendRefused;
use crate::topology::outlet::Outlet;
use crate::topology::request::RequestBuilder;
use std::time::Duration;

/// elfo's sending verbs are `send`, `try_send` and `unbounded_send`. The target is an [`Outlet`] (the topology says
/// which groups get the message), a group's reference (the key router says which actors get the message), or an actor's
/// reference.
///
/// Each verb is done as soon as a recipient has accepted the message; if no recipient has, the message comes back.
/// Copies that are refused while others are accepted are dead letters, counted and shown. [`send_by`](Self::send_by)
/// tells how many copies had each outcome.
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
/// recipient: n recipients cost n − 1 clones at most.
///
/// A reference that changes messages ([`narrow`](ActorRef::narrow)), a function's reference, and a router's reference
/// follow the policies of the mailboxes behind them, in every mode.
///
/// # Ledger
///
/// A message to n recipients is n deliveries.
///
/// Implemented for [`Outlet`] and [`ActorRef`] only.
pub trait SendExt<M: Send + 'static>: Target<M> {
    /// Sends by a mode, and returns the outcomes of the copies.
    ///
    /// # Errors
    ///
    /// [`SendRefused`] with the message, if no recipient has accepted the message.
    ///
    /// # Panics
    ///
    /// When user code panics on the way: a route's condition, the message's `Clone`, a key router. The message is a
    /// dead letter then, and copies that were accepted before stay accepted.
    fn send_by(&self, message: impl Into<M>, mode: SendMode) -> Result<SendReport, SendRefused<M>>;

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
    fn send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Wait).map(drop).map_err(SendRefused::into_error)
    }

    /// As [`send`](Self::send), but waits for `limit` instead of for as long as the mailboxes say.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn send_within(&self, message: impl Into<M>, limit: Duration) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Within(limit)).map(drop).map_err(SendRefused::into_error)
    }

    /// Sends without waiting.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn try_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Try).map(drop).map_err(SendRefused::into_error)
    }

    /// Sends beyond the capacity of mailboxes, and takes a regular place if there is one. For rare messages that must
    /// neither wait nor be refused.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), but never [`SendError::Full`].
    fn unbounded_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, SendMode::Unbounded).map(drop).map_err(SendRefused::into_error)
    }

    /// Begins to describe a request to all recipients behind this target, which [`any`](RequestBuilder::first) and
    /// [`all`](RequestBuilder::all) send.
    ///
    /// Every recipient gets a copy with its own reply port. The end of each reply port is counted exactly once: by the
    /// first reply through it, or by its drop. A router on the way that makes copies counts as a single recipient: the
    /// first reply of its routees is the router's reply.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::topology::SendExt;
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
    fn request<Q>(&self, request: Q) -> RequestBuilder<'_, Self, M, Q>
    where
        Self: Sized,
        M: From<Call<Q>> + Answerable,
        Q: Request,
    {
        RequestBuilder::new(self, request)
    }
}

/// A target takes messages that were sent as an `M`.
pub trait Target<M> {
    /// Offers the message, accounts for it unless it comes back, and returns how many groups had no recipient.
    #[doc(hidden)]
    fn offer(&self, message: M, mode: SendMode, copier: Option<&dyn Copier<M>>) -> Offered<M>;

    /// Returns the system that counts the message.
    #[doc(hidden)]
    fn system(&self) -> Option<&SystemCore>;

    /// Returns the ask_clock whose clock the deadlines of requests are read from.
    #[doc(hidden)]
    fn ask_clock(&self) -> AskClock;

    /// Returns the reference by which the error of a request finds the path that it names.
    #[doc(hidden)]
    fn asked(&self) -> Asked;

    /// Returns the path that dead letters name.
    #[doc(hidden)]
    fn place(&self) -> ActorPath;
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
) -> Result<SendReport, SendRefused<M>> {
    let Offered { report, empty, is_discarded, left } = target.offer(message, mode, None);
    let Some(message) = left else { return Ok(report) };
    if let Some(system) = target.system() {
        system.ledger().for_this_thread().handed_back(1);
    }
    Err(SendRefused { message, report, has_route: report.recipients() + empty > 0, is_discarded })
}

impl<M: Send + 'static> SendExt<M> for Outlet<M> {
    fn send_by(&self, message: impl Into<M>, mode: SendMode) -> Result<SendReport, SendRefused<M>> {
        send_by(self, message.into(), mode)
    }
}

impl<M: Send + 'static> SendExt<M> for ActorRef<M> {
    fn send_by(&self, message: impl Into<M>, mode: SendMode) -> Result<SendReport, SendRefused<M>> {
        send_by(self, message.into(), mode)
    }
}
