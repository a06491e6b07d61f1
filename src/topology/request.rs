//! Requests: asking whatever an address reaches, for any answer or for all of them.

use crate::actor::context::Context;
use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_all::{Answers, AskAll};
use crate::ask::error::AskError;
use crate::ask::fork::{Answerable, Attempt};
use crate::ask::reply::{Call, ReplyTo, Request, SinkHandle};
use crate::ask::to_actor::Bound;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::dead_letters::unread;
use crate::core::multi_send::{Copier, Offered, SendMode};
use crate::core::pending_send::Awaited;
use crate::topology::reply_set::ReplySet;
use crate::topology::send::Target;
use crate::util::panic::drop_guarded;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A request that is about to be sent: see [`Outlet::request`](crate::topology::Outlet::request).
#[must_use = "nothing is sent before `any` or `all`"]
pub struct RequestBuilder<'a, M, Q: Request> {
    target: &'a dyn Target<M>,
    request: Q,
    mode: SendMode,
    limit: Option<Duration>,
}

impl<'a, M, Q> RequestBuilder<'a, M, Q>
where
    M: From<Call<Q>> + Answerable + Send + 'static,
    Q: Request,
{
    pub(crate) fn new(target: &'a dyn Target<M>, request: Q) -> Self {
        Self { target, request, mode: SendMode::Wait, limit: None }
    }

    /// Sends the request by this mode; without it by [`SendMode::Wait`], as elfo does.
    pub fn by(mut self, mode: SendMode) -> Self {
        self.mode = mode;
        self
    }

    /// Gives the answer so long, by the system's clock, from the moment when sending begins: time that is spent waiting
    /// for room counts, and ends with the limit. A copy for which there was no room until then is a dead letter. With a
    /// limit of zero nothing is sent: [`AskError::NoTime`].
    ///
    /// Without it there is no limit, and none is needed for recipients that end: a copy whose actor stops, fails, or
    /// drops it is resolved at once.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sends the request; the answer is the first reply.
    ///
    /// Without any reply the ask fails when no copy is left that could bring one: with [`AskError::NoReply`] if a
    /// recipient has received the request and dropped its port, otherwise with [`AskError::Undeliverable`]. Later
    /// replies are late, dropped and counted; the other recipients are not told. With a [limit](Self::within), a copy
    /// that still waits for room when the reply comes is a dead letter.
    pub fn first(self) -> Ask<Q::Reply> {
        let (asker, mut ask) = self.begin();
        if let Some(asker) = asker {
            self.send(ReplySet::any(asker), &mut ask);
        }
        ask
    }

    /// Sends the request; the answer is the outcome of each copy, in the order of the outcomes: an entry for each
    /// recipient, and a single [`AskError::Undeliverable`] for each group in which no recipient was to
    /// get it. If no recipient at all is reached, the answer is that single entry.
    ///
    /// Where the [limit](Self::within) comes first, the list has the outcomes by then, and for each other copy
    /// [`AskError::Timeout`] at its end. A later reply is late, and counted so.
    ///
    /// A copy without a reply has one of these errors:
    ///
    /// * [`AskError::NoReply`]: the copy was received, and its reply port was dropped without an answer. A copy that is
    ///   dropped because user code panics while the request is being sent (a route's condition, a `Clone`) has this
    ///   error, too: the drop does not show which code dropped the port.
    /// * [`AskError::Undeliverable`]: the copy will not be answered: it was not delivered, or was left unread in a mailbox
    ///   whose actor has ended. This is also the error if the group that asks by an outlet, or the group that is asked,
    ///   is not mounted yet.
    /// * [`AskError::Timeout`]: the time that the request was given was up, and the copy was neither answered nor dropped:
    ///   the copy waits for room, lies in a mailbox, or is held by a recipient.
    /// * The error by which a router among the recipients has ended the copy, such as [`AskError::NoRoutees`] or
    ///   [`AskError::AllFailed`].
    #[doc(alias("Replies", "RequestError"))]
    pub fn all(self) -> AskAll<Result<Q::Reply, AskError>> {
        let reply_set = ReplySet::all();
        let (asker, mut ask) = self.begin();
        if let Some(asker) = asker {
            reply_set.when_over(asker);
            self.send(reply_set.clone(), &mut ask);
        }
        AskAll::new(ask, reply_set)
    }

    /// As [`first`](Self::first), for actors: the answer comes as a message, which `wrap` makes of it.
    pub fn any_in<N: Send + 'static>(
        self,
        ctx: &Context<N>,
        wrap: impl FnOnce(Result<Q::Reply, AskError>) -> N + Send + 'static,
    ) {
        if let Some((asker, mut handle)) = self.port_in(ctx, wrap) {
            self.send(ReplySet::any(asker), &mut handle);
        }
    }

    /// As [`all`](Self::all), for actors: the answer comes as a message, which `wrap` makes of it.
    pub fn all_in<N: Send + 'static>(
        self,
        ctx: &Context<N>,
        wrap: impl FnOnce(Result<Vec<Result<Q::Reply, AskError>>, AskError>) -> N + Send + 'static,
    ) {
        let reply_set = ReplySet::all();
        let taken = reply_set.clone();
        let wrap = move |told| wrap(taken.gathered(told));
        if let Some((asker, mut handle)) = self.port_in(ctx, wrap) {
            reply_set.when_over(asker);
            self.send(reply_set, &mut handle);
        }
    }

    /// Begins the ask; without its port if there is no time for it.
    fn begin<A>(&self) -> (Option<ReplyTo<A>>, Ask<A>) {
        let ask_clock = self.target.ask_clock();
        match self.limit {
            Some(Duration::ZERO) => (None, ask::failed(AskError::NoTime, ask_clock)),
            limit => {
                let (asker, ask) = ask::begin(ask_clock);
                (Some(asker), limit.into_iter().fold(ask, Ask::within))
            }
        }
    }

    fn port_in<A: Send + 'static, N: Send + 'static>(
        &self,
        ctx: &Context<N>,
        wrap: impl FnOnce(Result<A, AskError>) -> N + Send + 'static,
    ) -> Option<(ReplyTo<A>, SinkHandle<A>)> {
        Ask::port_to_actor(ctx.me().clone(), self.target.asked(), self.limit, wrap)
    }

    /// Sends it, and ends the ask if its limit is over before every recipient had room.
    fn send(self, reply_set: StdArc<ReplySet<Q::Reply>>, asked: &mut impl Asked) {
        let bound = Bound::by(self.limit, || self.target.ask_clock());
        let hold = RequestGuard { reply_set: &reply_set, recipients: 0 };
        let message = M::from(Call::new(self.request, reply_set.issue()));
        let offer = || self.target.offer(message, self.mode, Some(&OwnPorts));
        let (offered, in_vain) = bound.send(|| None, || None, asked, offer);
        if let (Some(in_vain), Some(limit)) = (in_vain, self.limit) {
            // Before the copies are dropped, whose ports would tell of something else.
            if in_vain.is_late() {
                asked.time_out(limit);
            }
            unread(|| drop(in_vain));
        }
        let Offered { report, empty, is_discarded, left } = offered;
        match (left, self.target.system()) {
            (Some(message), Some(system)) => {
                system.ledger().for_this_thread().dead_lettered(1);
                let reason = match report {
                    report if report.full > 0 => DeadLetterReason::Full,
                    report if report.closed > 0 => DeadLetterReason::Stopped,
                    _ if is_discarded => DeadLetterReason::Discarded,
                    _ => DeadLetterReason::NoRoutee,
                };
                system.dead_letters().publish_dead_letter(message, reason, || self.target.place());
            }
            (left, _) => unread(|| drop_guarded(left)),
        }
        hold.release(report.recipients() + empty);
    }
}

/// The ask of a request that is being sent.
trait Asked: Awaited {
    /// Ends the ask at its limit.
    fn time_out(&mut self, after: Duration);
}

impl<R> Asked for Ask<R> {
    fn time_out(&mut self, after: Duration) {
        ask::refuse(self, AskError::timeout(after));
    }
}

impl<R> Asked for SinkHandle<R> {
    fn time_out(&mut self, after: Duration) {
        SinkHandle::time_out(self, after);
    }
}

/// The sender's hold; given back also when user code unwinds.
struct RequestGuard<'a, R: Send + 'static> {
    reply_set: &'a ReplySet<R>,
    recipients: usize,
}

impl<R: Send + 'static> RequestGuard<'_, R> {
    fn release(mut self, recipients: usize) {
        self.recipients = recipients;
    }
}

impl<R: Send + 'static> Drop for RequestGuard<'_, R> {
    fn drop(&mut self) {
        self.reply_set.sent_to(self.recipients);
    }
}

/// Gives each copy a token of its own.
struct OwnPorts;

impl<M: Answerable> Copier<M> for OwnPorts {
    fn with_own_ports(&self, mut clone: M) -> M {
        clone.fork(&Attempt::another());
        clone
    }
}

impl<M, Q: Request> fmt::Debug for RequestBuilder<'_, M, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requesting")
            .field("request", &format_args!("{}", std::any::type_name::<Q>()))
            .field("mode", &self.mode)
            .field("limit", &self.limit)
            .finish()
    }
}
