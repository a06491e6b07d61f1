//! The verbs of sending, at each depth of addressing.

use crate::ask::fork::Answerable;
use crate::ask::reply::{Call, Request};
use crate::ask::timekeeper::{Asked, Timekeeper};
use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::nowhere;
use crate::core::error::SendError;
use crate::core::multi_send::{Copier, Mode, Offered, Report, Way, settled};
use crate::core::system::SystemCore;
use crate::path::actor_path::ActorPath;
use crate::time::no_system::NO_SYSTEM;
use crate::topology::error::Refusal;
use crate::topology::outlet::Outlet;
use crate::topology::request::Requesting;
use std::time::Duration;

/// elfo's verbs: `send`, `try_send` and `unbounded_send`, to an [`Outlet`] (no address: the topology says which groups
/// get it), to a group's reference (its inner router says which actors get it), or to an actor's.
///
/// Each is done as soon as anybody has accepted the message; if nobody has, it comes back. Copies that are
/// refused while others are accepted are dead letters, counted and shown. How many there are of each,
/// [`send_by`](Self::send_by) tells.
///
/// | verb | at a full mailbox | mode |
/// |---|---|---|
/// | [`send`](Self::send) | waits for room, if the mailbox lets senders wait and the thread may | [`Mode::Wait`] |
/// | [`send_within`](Self::send_within) | the same, for so long | [`Mode::Within`] |
/// | [`try_send`](Self::try_send) | is refused | [`Mode::Try`] |
/// | [`unbounded_send`](Self::unbounded_send) | goes beyond its capacity | [`Mode::Unbounded`] |
///
/// With several recipients all of them are tried before any full one is waited for, and all full ones are waited for
/// together. The copy for the last recipient is the message itself, and a copy that is refused goes to the next
/// recipient: n recipients cost n − 1 clones at most.
///
/// A reference that changes messages ([`narrow`](ActorRef::narrow)), a function's, and a router's go by the policies of
/// the mailboxes behind them, whatever the mode.
///
/// # Ledger
///
/// A message to n recipients is n deliveries.
///
/// For [`Outlet`] and [`ActorRef`] only.
pub trait Sending<M: Send + 'static>: Target<M> {
    /// Sends by a mode, and tells what became of the copies.
    ///
    /// # Errors
    ///
    /// [`Refusal`] with the message, if nobody has accepted it.
    ///
    /// # Panics
    ///
    /// When user code panics on the way: a route's condition, the message's `Clone`, an inner router. The message is a
    /// dead letter then, and copies that were accepted before stay so.
    fn send_by(&self, message: impl Into<M>, mode: Mode) -> Result<Report, Refusal<M>>;

    /// Sends, and waits for room where mailboxes are full and let senders wait, for as long as each of them says.
    ///
    /// # Errors
    ///
    /// Nobody has accepted the message, which comes back: [`SendError::Full`] if anybody was full until the end,
    /// [`SendError::Discarded`] if there was nobody because a keyed group's inner router has discarded it,
    /// [`SendError::Closed`] if all had stopped or their keys were absent, [`SendError::NoRoute`] if there was no group.
    fn send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, Mode::Wait).map(drop).map_err(Refusal::into_error)
    }

    /// As [`send`](Self::send), but waits for `limit` and not for as long as the mailboxes say.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn send_within(&self, message: impl Into<M>, limit: Duration) -> Result<(), SendError<M>> {
        self.send_by(message, Mode::Within(limit)).map(drop).map_err(Refusal::into_error)
    }

    /// Sends without waiting.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn try_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, Mode::Try).map(drop).map_err(Refusal::into_error)
    }

    /// Sends beyond the capacity of mailboxes: takes a regular place if there is one. For rare messages that must
    /// neither wait nor be refused.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), but never [`SendError::Full`].
    fn unbounded_send(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send_by(message, Mode::Unbounded).map(drop).map_err(Refusal::into_error)
    }

    /// Asks whatever is reached here: begins to describe a request, which [`any`](Requesting::any) and
    /// [`all`](Requesting::all) send.
    ///
    /// Every recipient gets a copy with a reply port of its own, whose end is counted exactly once: by the first reply
    /// through it, or when it is dropped. A router on the way that makes copies counts as one recipient: the
    /// first reply of its routees is its.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::topology::Sending;
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
    ///     fn receive(&mut self, call: Call<Check>, _: &mut Context<Call<Check>>) -> Done {
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
    fn request<Q>(&self, request: Q) -> Requesting<'_, Self, M, Q>
    where
        Self: Sized,
        M: From<Call<Q>> + Answerable,
        Q: Request,
    {
        Requesting::new(self, request)
    }
}

/// What a message goes to, and what it was when it was sent.
pub trait Target<M> {
    /// Offers the message, settles the books but for a message that comes back, and says how many groups had nobody.
    #[doc(hidden)]
    fn offer(&self, message: M, mode: Mode, copier: Option<&dyn Copier<M>>) -> Offered<M>;

    /// Who counts it.
    #[doc(hidden)]
    fn system(&self) -> Option<&SystemCore>;

    /// Whose clock deadlines of requests are read from.
    #[doc(hidden)]
    fn timekeeper(&self) -> Timekeeper;

    /// The reference by which the error of a request finds the path that it names.
    #[doc(hidden)]
    fn asked(&self) -> Asked;

    /// What dead letters name.
    #[doc(hidden)]
    fn place(&self) -> ActorPath;
}

impl<M: Send + 'static> Target<M> for Outlet<M> {
    #[inline]
    fn offer(&self, message: M, mode: Mode, copier: Option<&dyn Copier<M>>) -> Offered<M> {
        let way = Way::new(self.table.system.core(), mode);
        let left = self.table.offer(message, &way, copier).err();
        settled(&way, left, |message, route| self.table.turn_back(message, route))
    }

    fn system(&self) -> Option<&SystemCore> {
        Some(self.table.system.core())
    }

    fn timekeeper(&self) -> Timekeeper {
        match self.table.system.user() {
            Some(user) => Timekeeper::System(user),
            None => Timekeeper::Static(&NO_SYSTEM),
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
    fn offer(&self, message: M, mode: Mode, copier: Option<&dyn Copier<M>>) -> Offered<M> {
        self.offer_by(message, mode, copier)
    }

    fn system(&self) -> Option<&SystemCore> {
        self.counting_system()
    }

    fn timekeeper(&self) -> Timekeeper {
        ActorRef::timekeeper(self)
    }

    fn asked(&self) -> Asked {
        ActorRef::asked(self)
    }

    fn place(&self) -> ActorPath {
        self.path()
    }
}

/// The one way in which all of them send.
fn send_by<M: Send + 'static>(target: &impl Target<M>, message: M, mode: Mode) -> Result<Report, Refusal<M>> {
    let Offered { report, empty, is_discarded, left } = target.offer(message, mode, None);
    let Some(message) = left else { return Ok(report) };
    if let Some(system) = target.system() {
        system.ledger().mine().handed_back(1);
    }
    Err(Refusal { message, report, has_route: report.recipients() + empty > 0, is_discarded })
}

impl<M: Send + 'static> Sending<M> for Outlet<M> {
    fn send_by(&self, message: impl Into<M>, mode: Mode) -> Result<Report, Refusal<M>> {
        send_by(self, message.into(), mode)
    }
}

impl<M: Send + 'static> Sending<M> for ActorRef<M> {
    fn send_by(&self, message: impl Into<M>, mode: Mode) -> Result<Report, Refusal<M>> {
        send_by(self, message.into(), mode)
    }
}
