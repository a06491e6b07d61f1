//! Asks whose answer is a message to the asking actor.

use crate::ask::ask::Ask;
use crate::ask::ask_clock::{AskClock, Asked};
use crate::ask::error::{AskError, Outcome};
use crate::ask::reply::{AnsweredBy, Call, ReplyDestination, ReplyTo, Request, SinkHandle, to_sink};
use crate::core::actor_ref::ActorRef;
use crate::core::ask_counts::{AskCounter, count};
use crate::core::deferred_send::{DeferredSend, TimedOutSend, put_off};
use crate::core::pending_send::{Awaited, WaitBound};
use crate::core::system::SystemCore;
use crate::sync::{Mutex, lock};
use crate::time::timers::TimerHandle;
use std::any::Any;
use std::sync::Arc as StdArc;
use std::task::Waker;
use std::time::Duration;

/// Turns the outcome into a message for the asking actor.
struct Answer<M, F> {
    asker: ActorRef<M>,
    asked: Asked,
    state: Mutex<State<F>>,
}

struct State<F> {
    /// `None` once the outcome is there.
    wrap: Option<F>,
    /// Set until the deadline, or until the outcome is there.
    armed: Option<Armed>,
}

struct Armed {
    timer: TimerHandle,
    /// The waker of a thread that still sends the request. It need not send once the outcome is there.
    sender: Option<Waker>,
}

impl<R, M, F> ReplyDestination<R> for Answer<M, F>
where
    M: Send + 'static,
    F: FnOnce(Result<R, AskError>) -> M + Send + 'static,
{
    /// Takes every outcome.
    fn take(&self, mut outcome: Outcome<R>, _: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        let (wrap, armed) = {
            let mut state = lock(&self.state);
            (state.wrap.take(), state.armed.take())
        };
        if let Err(error) = &mut outcome {
            error.note_target(|| self.asked.path());
        }
        if let Some(Armed { timer, sender }) = armed {
            self.asker.cancel_timer(timer);
            if let Some(sender) = sender {
                sender.wake();
            }
        }
        if let Some(wrap) = wrap {
            self.asker.tell(wrap(outcome));
        }
        Ok(())
    }

    fn wanted(&self) -> bool {
        !self.asker.is_closed()
    }

    fn count(&self, row: AskCounter) {
        count(row, self.asker.counting_system().map(SystemCore::ledger));
    }

    fn wake(&self, waker: &Waker) {
        // The waker rings a bell, and so runs no user code.
        if let Some(armed) = &mut lock(&self.state).armed {
            armed.sender = Some(waker.clone());
            return;
        }
        // The outcome is there, or about to come.
        waker.wake_by_ref();
    }
}

impl<M: Send + 'static, F> Answer<M, F> {
    /// Sets the deadline, before the port exists.
    fn arm<R: Send + 'static>(&self, handle: SinkHandle<R>, deadline: Duration) {
        let timer = self.asker.call_after(deadline, Box::new(move || handle.time_out(deadline)));
        let mut state = lock(&self.state);
        match &state.wrap {
            Some(_) => state.armed = timer.map(|timer| Armed { timer, sender: None }),
            // The deadline has passed already.
            None => {
                drop(state);
                if let Some(timer) = timer {
                    self.asker.cancel_timer(timer);
                }
            }
        }
    }
}

impl<R: Send + 'static> Ask<R> {
    /// Asks `target`; the outcome goes to `asker` as the message that `wrap` makes of it, at the latest
    /// after `deadline`.
    pub(crate) fn to_actor<N, Q, M>(
        target: &ActorRef<N>,
        request: Q,
        asker: ActorRef<M>,
        deadline: Option<Duration>,
        wrap: impl FnOnce(Result<R, AskError>) -> M + Send + 'static,
    ) where
        N: From<Call<Q>> + Send + 'static,
        Q: Request<Reply = R>,
        M: Send + 'static,
    {
        let bound = Bound::new(&asker, deadline);
        let Some((reply_to, mut handle)) = Self::port_to_actor(asker, target.asked(), deadline, wrap) else {
            return;
        };
        let message = N::from(Call::new(request, reply_to));
        let sent = match bound.until() {
            // The request waits for room for as long as the mailbox says.
            None => target.send_undeferred(message),
            Some(until) => {
                let (sent, put_off) = put_off(|| target.send_putting_off(message));
                if let Some(put_off) = put_off {
                    let unsent = put_off.returning_by(|| target.way_back()).counted_by(target.system());
                    wait_for_room(unsent, until, deadline, &mut handle);
                }
                sent
            }
        };
        if let Err(refused) = sent {
            // Before the message is dropped: its port would report `NoReply`.
            handle.undeliverable(target.ask_error(&refused));
            target.dead_letter(refused);
        }
    }

    /// Makes a port whose outcome goes to `asker` as the message that `wrap` makes of it, at the latest after
    /// `deadline`. `None` if the deadline is now: then the asker has been told. An error names the path of `asked`.
    pub(crate) fn port_to_actor<M: Send + 'static>(
        asker: ActorRef<M>,
        asked: Asked,
        deadline: Option<Duration>,
        wrap: impl FnOnce(Result<R, AskError>) -> M + Send + 'static,
    ) -> Option<(ReplyTo<R>, SinkHandle<R>)> {
        if deadline.is_some_and(|deadline| deadline.is_zero()) {
            asker.tell(wrap(Err(AskError::NoTime)));
            return None;
        }
        let state = Mutex::new(State { wrap: Some(wrap), armed: None });
        Some(to_sink(Answer { asker, asked, state }, |answer, handle| {
            if let Some(deadline) = deadline {
                answer.arm(handle.clone(), deadline);
            }
        }))
    }
}

/// The deadline of an ask, which bounds its wait for room as well.
pub(crate) struct Bound {
    /// The time of the deadline, and its clock.
    at: Option<(Duration, AskClock)>,
}

impl Bound {
    /// Sets the deadline from now, by the clock of the asker's system.
    pub(crate) fn new<M: Send + 'static>(asker: &ActorRef<M>, limit: Option<Duration>) -> Self {
        Self::by(limit, || asker.ask_clock())
    }

    /// Sets the deadline from now, by this clock.
    pub(crate) fn by(limit: Option<Duration>, clock: impl FnOnce() -> AskClock) -> Self {
        let at = limit.and_then(|limit| {
            let clock = clock();
            clock.now().checked_add(limit).map(|at| (at, clock))
        });
        Self { at }
    }

    /// The bound of a wait for room, if there is a deadline.
    pub(crate) fn until(&self) -> Option<WaitBound<'_>> {
        self.at.as_ref().map(|(at, clock)| WaitBound { at: *at, clock: &**clock })
    }

    /// Sends by `send`, and waits for room until the deadline, or until `awaited` is there. Returns the deliveries that
    /// have waited in vain, if there are any. A message that is refused meanwhile is sent once more by `way_back`.
    pub(crate) fn send<R>(
        &self,
        counters: impl FnOnce() -> Option<StdArc<SystemCore>>,
        way_back: impl FnOnce() -> Option<Box<dyn Any + Send>>,
        awaited: &mut dyn Awaited,
        send: impl FnOnce() -> R,
    ) -> (R, Option<TimedOutSend>) {
        let Some(until) = self.until() else { return (send(), None) };
        let (sent, put_off) = put_off(send);
        let in_vain =
            put_off.map(|it| it.returning_by(way_back).counted_by(counters()).wait(Some(until), awaited));
        (sent, in_vain.filter(|in_vain| !in_vain.is_empty()))
    }
}

/// Waits for room until the deadline, and tells the outcome of the request unless it is accepted.
#[cold]
fn wait_for_room<R>(
    unsent: DeferredSend,
    until: WaitBound<'_>,
    limit: Option<Duration>,
    handle: &mut SinkHandle<R>,
) {
    let in_vain = unsent.wait(Some(until), handle);
    // Before the request is dropped: its port would report `NoReply`.
    match limit {
        _ if in_vain.is_empty() => {}
        Some(limit) if in_vain.is_late() => handle.time_out(limit),
        _ if in_vain.found_no_routee() => handle.undeliverable(AskError::no_routees()),
        _ => in_vain
            .reason()
            .into_iter()
            .for_each(|reason| handle.undeliverable(AskError::refused_for(reason))),
    }
}

impl<M: Send + 'static> ActorRef<M> {
    fn call_after(&self, delay: Duration, call: Box<dyn FnOnce() + Send>) -> Option<TimerHandle> {
        let any = self.untyped()?;
        let timers = any.core().system.timers();
        Some(timers.call_at(timers.now().saturating_add(delay), call))
    }

    fn cancel_timer(&self, timer: TimerHandle) {
        if let Some(any) = self.untyped() {
            any.core().system.timers().cancel(timer);
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::ask::ask_clock::Asked;
    use crate::prelude::*;
    use crate::time::clock::ManualClock;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(30);

    struct Notes(Sender<Result<u32, AskError>>);

    impl Actor for Notes {
        type Message = Result<u32, AskError>;
        fn receive(&mut self, outcome: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
            Ok(self.0.send(outcome)?)
        }
    }

    #[test]
    fn no_deadline_outlives_the_outcome() {
        let system = System::builder("deadlines").clock(ManualClock::new()).build().expect("sound");
        let (notes, outcomes) = channel();
        let asker = system.actor("asker").spawn(move || Notes(notes.clone())).expect("the name is free");
        let timers = || system.core().timers().len();
        let ask = || {
            crate::ask::ask::Ask::<u32>::port_to_actor(asker.clone(), Asked::Unknown, Some(LONG), |outcome| {
                outcome
            })
        };

        let (answered, _handle) = ask().expect("there is time");
        let (forgotten, _handle) = ask().expect("there is time");
        assert_eq!(timers(), 2);
        answered.send(5).expect("in time");
        assert_eq!((timers(), outcomes.recv_timeout(LONG)), (1, Ok(Ok(5))));
        drop(forgotten);
        assert_eq!((timers(), outcomes.recv_timeout(LONG)), (0, Ok(Err(AskError::no_reply()))));
        let ledger = system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
    }
}
