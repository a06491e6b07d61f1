//! Requests, and the ports by which they are answered.

use crate::ask::error::{AskError, Outcome};
use crate::ask::fork::RouterId;
use crate::ask::slot::{ReplierHalf, quietly};
#[cfg(feature = "remote")]
use crate::ask::split::is_splitting;
use crate::core::ask_counts::{AskCounter, count_late_reply};
use crate::core::pending_send::Awaited;
use crate::failure::Failure;
use crate::path::actor_path::ActorPath;
use crate::sync::atomic::{AtomicUsize, Ordering};
use std::fmt;
// The count of ports, on which the protocol rests, is an atomic of its own; this one only keeps memory,
// and must hold a trait object, which loom's cannot.
use std::sync::Arc;
use std::task::Waker;

/// A request and the type of its reply.
///
/// ```
/// use pointsman::Request;
///
/// struct Get { key: String }
///
/// impl Request for Get {
///     type Reply = Option<String>;
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no request",
    label = "`{Self}` does not say what it is answered with",
    note = "implement it: `impl Request for {Self} {{ type Reply = …; }}`; a message without an answer is sent by `tell`"
)]
pub trait Request: Send + 'static {
    /// The type of the answer.
    type Reply: Send + 'static;

    /// Returns whether `reply` is a success, for routers that ask several actors and take the first success.
    ///
    /// By default every reply is a success.
    fn is_success(reply: &Self::Reply) -> bool {
        let _ = reply;
        true
    }
}

/// A request that an actor of messages `M` can be [asked](crate::ActorRef::ask): `M` is [made](From) from its
/// [`Call`].
///
/// The trait is implemented for all of them, and only there to say what is wrong where a request is none.
#[diagnostic::on_unimplemented(
    message = "an actor whose message is `{M}` cannot be asked `{Self}`",
    label = "no variant of `{M}` takes the request `{Self}`",
    note = "add a variant that holds a `Call<{Self}>` and derive `Message`, or implement `From<Call<{Self}>>` for `{M}`"
)]
pub trait RequestTo<M>: Request {
    /// Makes the message.
    fn into_call(self, reply_to: ReplyTo<Self::Reply>) -> M;
}

#[diagnostic::do_not_recommend]
impl<Q: Request, M: From<Call<Q>>> RequestTo<M> for Q {
    #[inline]
    fn into_call(self, reply_to: ReplyTo<Q::Reply>) -> M {
        M::from(Call::new(self, reply_to))
    }
}

/// A request together with the right to answer it: the form in which an actor receives a request.
#[must_use = "a dropped call fails the ask with `AskError::NoReply`"]
#[doc(alias = "forward")]
pub struct Call<Q: Request> {
    /// The request.
    pub request: Q,
    /// The port that takes the answer.
    pub reply_to: ReplyTo<Q::Reply>,
}

impl<Q: Request> Call<Q> {
    /// Puts a request and its reply port together.
    pub fn new(request: Q, reply_to: ReplyTo<Q::Reply>) -> Self {
        Self { request, reply_to }
    }

    /// Answers with the result of `answer` on the request.
    ///
    /// `answer` runs even when no asker waits any more, since it may do more than answer. To skip work that only serves
    /// the reply, look at [`ReplyTo::wanted`] first. A late reply is dropped and counted. When `answer` panics the ask
    /// fails with [`AskError::NoReply`] at once.
    #[doc(alias = "reply")]
    pub fn answer(self, answer: impl FnOnce(Q) -> Q::Reply) {
        let Self { request, reply_to } = self;
        let late = reply_to.send(answer(request));
        drop(late);
    }

    /// Answers with the result of `answer`, as [`answer`](Self::answer) does. When `answer` returns an error, the ask
    /// fails with [`AskError::NoReply`] and the cause [`Failed`](crate::ask::NoReplyCause::Failed), and the error comes
    /// back: for handlers that fail with it.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Parse(String);
    /// impl Request for Parse {
    ///     type Reply = u32;
    /// }
    ///
    /// struct Parser;
    /// impl Actor for Parser {
    ///     type Message = Call<Parse>;
    ///     fn receive(&mut self, call: Call<Parse>, _: &mut Context<Call<Parse>>) -> HandlerResult {
    ///         call.try_answer(|Parse(text)| Ok(text.parse()?))
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let parser = system.spawn(|| Parser)?;
    /// let error = parser.ask(Parse("x".into())).wait().unwrap_err();
    /// assert!(error.to_string().contains("its handler failed"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error that `answer` has returned.
    pub fn try_answer(self, answer: impl FnOnce(Q) -> Result<Q::Reply, Failure>) -> Result<(), Failure> {
        let Self { request, reply_to } = self;
        match answer(request) {
            Ok(reply) => {
                let late = reply_to.send(reply);
                drop(late);
                Ok(())
            }
            Err(failure) => {
                reply_to.fail(AskError::failed());
                Err(failure)
            }
        }
    }

    /// Takes the call apart, to answer later or from another place.
    pub fn into_parts(self) -> (Q, ReplyTo<Q::Reply>) {
        (self.request, self.reply_to)
    }
}

impl<Q: Request + Clone> Clone for Call<Q> {
    fn clone(&self) -> Self {
        Self { request: self.request.clone(), reply_to: self.reply_to.clone() }
    }
}

impl<Q: Request> fmt::Debug for Call<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("request", &format_args!("{}", std::any::type_name::<Q>()))
            .field("reply_to", &self.reply_to)
            .finish()
    }
}

/// The right to answer an ask.
///
/// It can be cloned and passed on; the first reply wins. When the last clone is dropped without a reply, the ask fails
/// with [`AskError::NoReply`] at once, without waiting for its deadline. So a handler that panics, or a message that
/// ends as a dead letter, fails the ask immediately.
#[must_use = "dropping the last `ReplyTo` of an ask fails it with `AskError::NoReply`"]
pub struct ReplyTo<R> {
    destination: Destination<R>,
}

enum Destination<R> {
    Slot(ReplierHalf<R>),
    Sink(SinkPort<R>),
}

impl<R> ReplyTo<R> {
    /// Answers.
    ///
    /// # Errors
    /// A late reply comes back: the ask has been answered already, its time is up, or its asker has given it up. The
    /// late reply is counted.
    #[inline]
    #[doc(alias = "reply")]
    #[doc(alias = "LateReply")]
    pub fn send(self, reply: R) -> Result<(), R> {
        self.deliver(reply, None).inspect_err(|_| count_late_reply())
    }

    /// Answers, and names the replier to askers that need its path; a late reply comes back and is not counted.
    #[inline]
    pub(crate) fn deliver(self, reply: R, by: AnsweredBy<'_>) -> Result<(), R> {
        let refused = match self.destination {
            Destination::Slot(port) => port.answer(Ok(reply)),
            Destination::Sink(port) => port.answer(Ok(reply), by),
        };
        match refused {
            Err(Ok(reply)) => Err(reply),
            // The outcome comes back with the same variant.
            _ => Ok(()),
        }
    }

    /// Ends the ask without an answer, if it is not over.
    pub(crate) fn fail(self, error: AskError) {
        let _ = match self.destination {
            // The asker counts the error when it is told.
            Destination::Slot(port) => port.answer(Err(error)),
            Destination::Sink(port) => port.answer(Err(error), None),
        };
    }

    /// The router whose attempt this port belongs to, if it is an attempt's.
    pub(crate) fn attempt_of(&self) -> Option<RouterId> {
        match &self.destination {
            Destination::Slot(_) => None,
            Destination::Sink(port) => port.cell.sink.attempt_of(),
        }
    }

    /// Returns whether an answer would still reach an asker: `false` once an answer was given or no asker waits any
    /// more.
    ///
    /// After `true` this may change at any moment. After `false`, work that only serves the reply can be skipped.
    pub fn wanted(&self) -> bool {
        match &self.destination {
            Destination::Slot(port) => port.is_wanted(),
            Destination::Sink(port) => port.is_wanted(),
        }
    }
}

impl<R> ReplyTo<R> {
    /// Returns the port of one more copy of a request that counts its copies.
    pub(crate) fn another(&self) -> Option<Self> {
        match &self.destination {
            Destination::Slot(_) => None,
            Destination::Sink(port) => port.cell.sink.another(),
        }
    }

    /// Returns a port for one of several answers to this port, if the port can be split.
    #[cfg(feature = "remote")]
    pub(crate) fn part(&self) -> Option<Self> {
        match &self.destination {
            Destination::Slot(_) => None,
            Destination::Sink(port) => port.cell.sink.part(),
        }
    }

    /// Ends a port whose answers its parts have brought.
    #[cfg(feature = "remote")]
    pub(crate) fn end_parts(self) {
        if let Destination::Sink(port) = &self.destination {
            if port.cell.claim() {
                quietly(|| port.cell.sink.end_parts());
            }
        }
    }
}

impl<R> Clone for ReplyTo<R> {
    fn clone(&self) -> Self {
        let destination = match &self.destination {
            Destination::Slot(port) => Destination::Slot(port.clone()),
            Destination::Sink(port) => {
                #[cfg(feature = "remote")]
                if is_splitting() {
                    if let Some(part) = port.cell.sink.part() {
                        return part;
                    }
                }
                Destination::Sink(port.clone())
            }
        };
        Self { destination }
    }
}

impl<R> From<ReplierHalf<R>> for ReplyTo<R> {
    #[inline]
    fn from(port: ReplierHalf<R>) -> Self {
        Self { destination: Destination::Slot(port) }
    }
}

impl<R> fmt::Debug for ReplyTo<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyTo").field("wanted", &self.wanted()).finish()
    }
}

/// The path of the replier, for askers that need it. A function, since most do not.
pub(crate) type AnsweredBy<'a> = Option<&'a dyn Fn() -> ActorPath>;

/// A reply destination: it takes the outcome of a port that has no reply slot, for example for an actor that gets the
/// answer as a message.
pub(crate) trait ReplyDestination<R>: Send + Sync {
    /// Takes the outcome, once at most, in the thread that answers or drops the last port; gives back an outcome that
    /// comes too late.
    ///
    /// A panic in this function is caught: it belongs to the asker, not to the replier.
    fn take(&self, outcome: Outcome<R>, by: AnsweredBy<'_>) -> Result<(), Outcome<R>>;

    /// Returns whether an answer is still of use; called only while there is none.
    fn wanted(&self) -> bool {
        true
    }

    /// Counts the beginning or the outcome, if this is an ask of its own and not a part of another.
    fn count(&self, row: AskCounter) {
        let _ = row;
    }

    /// Registers `waker`, which is woken once the outcome is here, for a thread that still sends the request. By
    /// default this does nothing.
    fn wake(&self, waker: &Waker) {
        let _ = waker;
    }

    /// As [`ReplyTo::attempt_of`].
    fn attempt_of(&self) -> Option<RouterId> {
        None
    }

    /// As [`ReplyTo::another`].
    fn another(&self) -> Option<ReplyTo<R>> {
        None
    }

    /// As [`ReplyTo::part`].
    #[cfg(feature = "remote")]
    fn part(&self) -> Option<ReplyTo<R>> {
        None
    }

    /// Ends this port without an outcome of its own; called once at most, in the place of [`take`](Self::take), and only after
    /// [`part`](Self::part) has made one.
    #[cfg(feature = "remote")]
    fn end_parts(&self) {}
}

/// Makes a reply port whose answer goes to `sink`, and the handle for the owner of the sink. `prepare` sees both before
/// the port exists.
///
/// The sink gets the first reply, or [`AskError::NoReply`] when the last port is dropped without a reply. It gets
/// neither, if the handle ends the ask first.
#[inline(always)]
pub(crate) fn to_sink<R, S>(sink: S, prepare: impl FnOnce(&S, &SinkHandle<R>)) -> (ReplyTo<R>, SinkHandle<R>)
where
    S: ReplyDestination<R> + 'static,
{
    sink.count(AskCounter::Begun);
    let cell = Arc::new(SinkCell { state: AtomicUsize::new(PORT), sink });
    let handle = SinkHandle { cell: cell.clone() };
    prepare(&cell.sink, &handle);
    (ReplyTo { destination: Destination::Sink(SinkPort { cell }) }, handle)
}

/// A destination that takes no outcome.
struct NullSink;

impl<R> ReplyDestination<R> for NullSink {
    fn take(&self, outcome: Outcome<R>, _: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        Err(outcome)
    }

    fn wanted(&self) -> bool {
        false
    }
}

impl<R> ReplyTo<R> {
    /// Makes a port whose outcome goes to `sink`.
    pub(crate) fn to_own_sink(sink: impl ReplyDestination<R> + 'static) -> Self {
        let cell = Arc::new(SinkCell { state: AtomicUsize::new(PORT), sink });
        Self { destination: Destination::Sink(SinkPort { cell }) }
    }

    /// Makes a port of an ask that is over: every reply is late.
    pub(crate) fn closed() -> Self {
        let cell = Arc::new(SinkCell { state: AtomicUsize::new(PORT | CLAIMED), sink: NullSink });
        Self { destination: Destination::Sink(SinkPort { cell }) }
    }
}

/// One outcome on its way to a sink. The claim decides which side brings it: the first reply, the `NoReply` of the last
/// port, or the owner, which then keeps the outcome to itself.
struct SinkCell<S: ?Sized> {
    /// Bit 0: CLAIMED; above: the number of living ports.
    state: AtomicUsize,
    sink: S,
}

/// A side has won the right to bring the outcome.
const CLAIMED: usize = 1;
/// One port.
const PORT: usize = 2;
/// More ports than any program holds at once.
const PORTS_MAX: usize = usize::MAX / 2;

impl<S: ?Sized> SinkCell<S> {
    fn is_claimed(&self) -> bool {
        // Ordering: Relaxed; advice only, the claim itself decides.
        self.state.load(Ordering::Relaxed) & CLAIMED != 0
    }

    /// Returns `true` for the first call.
    fn claim(&self) -> bool {
        // Ordering: Relaxed; the claim passes on a right and no data: the side that wins it brings the outcome itself.
        self.state.fetch_or(CLAIMED, Ordering::Relaxed) & CLAIMED == 0
    }
}

struct SinkPort<R> {
    cell: Arc<SinkCell<dyn ReplyDestination<R>>>,
}

impl<R> SinkPort<R> {
    fn is_wanted(&self) -> bool {
        !self.cell.is_claimed() && self.cell.sink.wanted()
    }

    fn answer(self, outcome: Outcome<R>, by: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        if self.cell.is_claimed() || !self.cell.claim() {
            return Err(outcome);
        }
        self.complete(outcome, by)
    }

    fn complete(&self, outcome: Outcome<R>, by: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        let row = match &outcome {
            Ok(_) => Some(AskCounter::Answered),
            Err(error) => error.counter(),
        };
        row.into_iter().for_each(|row| self.cell.sink.count(row));
        let mut taken = Ok(());
        quietly(|| taken = self.cell.sink.take(outcome, by));
        taken
    }
}

impl<R> Clone for SinkPort<R> {
    fn clone(&self) -> Self {
        // Ordering: Relaxed; this port is in the count until the new one is.
        let before = self.cell.state.fetch_add(PORT, Ordering::Relaxed);
        if before >= PORTS_MAX {
            // Only forgotten ports get here; going on would end in an ask failed while ports are left.
            std::process::abort();
        }
        Self { cell: self.cell.clone() }
    }
}

impl<R> Drop for SinkPort<R> {
    fn drop(&mut self) {
        // Ordering: AcqRel; pairs with the decrements of the other ports here: the last port reports that there was no
        // reply after all actions of the others.
        let before = self.cell.state.fetch_sub(PORT, Ordering::AcqRel);
        // The claim of the last port or of the owner wins; the other ports are gone.
        if before == PORT && self.cell.claim() {
            let _ = self.complete(Err(AskError::dropped()), None);
        }
    }
}

/// The side of an ask that belongs to the owner of the sink.
pub(crate) struct SinkHandle<R> {
    cell: Arc<SinkCell<dyn ReplyDestination<R>>>,
}

impl<R> SinkHandle<R> {
    /// Ends the ask from the owner's side, at its deadline; returns `true` if no outcome was first.
    ///
    /// After `true` the sink is never called, and every reply is late; the owner knows the outcome.
    #[must_use = "after `false` the sink has the outcome or is about to get it"]
    pub(crate) fn expire(&self) -> bool {
        self.end(AskCounter::TimedOut)
    }

    /// Ends the ask because its target refused the request, as [`expire`](Self::expire) does at a deadline. Call it
    /// before the handed-back message is dropped: the port in the message would report [`AskError::NoReply`] first.
    #[must_use = "after `false` the sink has the outcome or is about to get it"]
    pub(crate) fn refuse(&self) -> bool {
        self.end(AskCounter::Undeliverable)
    }

    /// Ends the ask at its deadline: the sink gets [`AskError::Timeout`], if no outcome was first.
    pub(crate) fn time_out(&self, after: std::time::Duration) {
        if self.expire() {
            quietly(|| drop(self.cell.sink.take(Err(AskError::timeout(after)), None)));
        }
    }

    /// Ends the ask because its target refused the request: the sink gets this error, if no outcome was first.
    pub(crate) fn undeliverable(&self, error: AskError) {
        if self.refuse() {
            quietly(|| drop(self.cell.sink.take(Err(error), None)));
        }
    }

    fn end(&self, row: AskCounter) -> bool {
        let won = self.cell.claim();
        if won {
            self.cell.sink.count(row);
        }
        won
    }

    /// Returns whether the ask is over.
    pub(crate) fn is_over(&self) -> bool {
        self.cell.is_claimed()
    }
}

impl<R> Awaited for SinkHandle<R> {
    fn is_there(&self) -> bool {
        self.is_over()
    }

    fn wake(&mut self, waker: &Waker) {
        self.cell.sink.wake(waker);
    }
}

impl<R> Clone for SinkHandle<R> {
    fn clone(&self) -> Self {
        Self { cell: self.cell.clone() }
    }
}

impl<R> fmt::Debug for SinkHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkHandle").field("over", &self.is_over()).finish()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::ask::slot::FreeSlot;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    struct Double(u32);

    impl Request for Double {
        type Reply = u32;
    }

    #[test]
    fn a_call_answers_with_what_the_handler_makes_of_it() {
        let (promise, port) = FreeSlot::take().begin();
        Call::new(Double(21), port.into()).answer(|double| double.0 * 2);
        let (outcome, _) = promise.take().expect("answered");
        assert_eq!(outcome, Ok(42));
    }

    #[test]
    fn a_handler_that_panics_fails_the_ask_at_once() {
        let (promise, port) = FreeSlot::take().begin();
        let call = Call::new(Double(21), port.into());
        catch_unwind(AssertUnwindSafe(|| call.answer(|_| panic!("planted")))).expect_err("planted");
        let (outcome, _) = promise.take().expect("over");
        assert_eq!(outcome, Err(AskError::no_reply()));
    }

    /// Keeps the replies; panics on a failure.
    struct Kept(Arc<Mutex<Vec<u32>>>);

    impl ReplyDestination<u32> for Kept {
        fn take(&self, outcome: Outcome<u32>, _: AnsweredBy<'_>) -> Result<(), Outcome<u32>> {
            let reply = outcome.expect("planted");
            self.0.lock().expect("no panic while locked").push(reply);
            Ok(())
        }
    }

    #[test]
    fn a_sink_gets_the_first_reply_only() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (reply_to, handle) = to_sink(Kept(kept.clone()), |_, _| {});
        let late = reply_to.clone();
        assert!(reply_to.wanted() && !handle.is_over());
        reply_to.send(1).expect("first");
        assert!(!late.wanted() && handle.is_over() && !handle.expire());
        assert_eq!(late.send(2), Err(2));
        assert_eq!(*kept.lock().expect("no panic while locked"), [1]);
    }

    #[test]
    fn a_sink_that_panics_does_not_hurt_the_replier() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (reply_to, handle) = to_sink(Kept(kept.clone()), |_, _| {});
        drop(reply_to);
        assert!(handle.is_over());
        drop(handle);
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn a_refused_request_leaves_the_sink_alone() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (reply_to, handle) = to_sink(Kept(kept.clone()), |_, _| {});
        assert!(handle.refuse());
        assert!(!reply_to.wanted() && !handle.expire());
        assert_eq!(reply_to.send(1), Err(1));
        assert!(kept.lock().expect("no panic while locked").is_empty());
    }

    #[test]
    fn a_port_takes_two_words_in_every_message() {
        assert_eq!(size_of::<ReplyTo<u64>>(), 2 * size_of::<usize>());
    }
}
