//! Pipe-to: the result of a future, or of a closure that blocks, as a message to an actor.
//!
//! Each piped future lives in a hidden actor of its own below `/system`, on a dispatcher like any other. Its first turn
//! polls the future; the waker sends the actor a positioned control message, so that the future is polled again in a
//! turn of its own, within the dispatcher's throughput. That control message is not counted: the ledger sees only the
//! result. A pipe that keeps a system from ending is named after the actor that its result is for. A closure is a
//! future that is ready at its first poll, on the dispatcher named `blocking`.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::poll_waker::PollWaker;
use crate::actor::recipe::Recipe;
use crate::actor::spawn::{ClassChoice, Plan, spawn_cell};
use crate::actor::system_end::HelperRole;
use crate::actor::turn::apply;
use crate::ask::call_error::CallError;
use crate::core::actor_ref::ActorRef;
use crate::core::error::SpawnError;
use crate::core::polls_within::PollsWithin;
use crate::core::system::{SystemCore, SystemRef};
use crate::failure::{Failure, guarded};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::{Guarded, quietly};
use crate::util::stderr_log::report;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{self, Poll, Waker};

/// The dispatcher of closures.
const BLOCKING: &str = "blocking";

/// The reason why a piped future or closure has no result.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PipeError {
    /// The future or closure panicked.
    Panicked {
        /// The text of the panic.
        text: String,
    },
    /// The system ended before the future was done; the future was dropped.
    Cancelled,
}

impl fmt::Display for PipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked { text } => f.write_str(text),
            Self::Cancelled => f.write_str("the system ended before the piped future was done"),
        }
    }
}

impl std::error::Error for PipeError {}

impl<E> From<PipeError> for CallError<E> {
    fn from(error: PipeError) -> Self {
        match error {
            PipeError::Panicked { text } => Self::Panicked { text },
            PipeError::Cancelled => Self::Cancelled,
        }
    }
}
debug_by_display! { PipeError }

impl<M: Send + 'static> Context<M> {
    /// Runs a future on the default dispatcher; its result arrives here as the message that `wrap` makes of it. The
    /// actor does not wait: it handles other messages meanwhile. Semantics: Akka's `pipeToSelf`.
    ///
    /// The message comes always: when the future panics or the system ends before it is done, with a [`PipeError`]. The
    /// message takes room like any other: if this actor has stopped by then, or its bounded mailbox is full, it is a
    /// dead letter. No async runtime is needed. For a future that needs one (for its sockets, its timers), the system
    /// must be built with [`polls_within`](crate::SystemBuilder::polls_within).
    ///
    /// ```
    /// use pointsman::pattern::PipeError;
    /// use pointsman::prelude::*;
    ///
    /// enum ShopMsg {
    ///     Open(ReplyTo<u32>),
    ///     Counted(Result<u32, PipeError>, ReplyTo<u32>),
    /// }
    ///
    /// async fn count_stock() -> u32 {
    ///     12
    /// }
    ///
    /// struct Shop;
    /// impl Actor for Shop {
    ///     type Message = ShopMsg;
    ///     fn receive(&mut self, message: ShopMsg, ctx: &mut Context<ShopMsg>) -> HandlerResult {
    ///         match message {
    ///             ShopMsg::Open(reply_to) => {
    ///                 ctx.pipe_to_self(count_stock(), move |stock| ShopMsg::Counted(stock, reply_to))?;
    ///             }
    ///             ShopMsg::Counted(stock, reply_to) => drop(reply_to.send(stock?)),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("trade").build()?;
    /// let shop = system.spawn(|| Shop)?;
    /// assert_eq!(shop.ask_with(ShopMsg::Open).wait()?, 12);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SpawnError::ShutDown`] or [`SpawnError::ParentStopped`] when the system is ending: the future has not run,
    /// and no message comes.
    pub fn pipe_to_self<T: 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        wrap: impl FnOnce(Result<T, PipeError>) -> M + Send + 'static,
    ) -> Result<(), SpawnError> {
        self.core().system.pipe(None, future, self.me().clone(), wrap)
    }

    /// As [`pipe_to_self`](Self::pipe_to_self) for a future whose output is a result: its error and the [`PipeError`] are
    /// one error, so the message has one `Result`. `E` is any error that a `PipeError` converts to: a [`Failure`], a boxed
    /// error, a [`CallError`], or one of your own.
    ///
    /// ```
    /// use pointsman::ask::CallError;
    /// use pointsman::prelude::*;
    ///
    /// struct Price;
    /// impl Request for Price {
    ///     type Reply = Result<u32, String>;
    /// }
    ///
    /// enum ShopMsg {
    ///     Open,
    ///     /// Instead of `Result<Result<Result<u32, String>, AskError>, PipeError>`.
    ///     Priced(Result<u32, CallError<String>>),
    /// }
    ///
    /// struct Shop(ActorRef<Call<Price>>);
    /// impl Actor for Shop {
    ///     type Message = ShopMsg;
    ///     fn receive(&mut self, message: ShopMsg, ctx: &mut Context<ShopMsg>) -> HandlerResult {
    ///         match message {
    ///             ShopMsg::Open => ctx.try_pipe_to_self(self.0.ask(Price).flat(), ShopMsg::Priced)?,
    ///             ShopMsg::Priced(price) => drop(price),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`pipe_to_self`](Self::pipe_to_self).
    pub fn try_pipe_to_self<T: 'static, E: From<PipeError> + 'static>(
        &self,
        future: impl Future<Output = Result<T, E>> + Send + 'static,
        wrap: impl FnOnce(Result<T, E>) -> M + Send + 'static,
    ) -> Result<(), SpawnError> {
        self.pipe_to_self(future, |outcome| wrap(outcome.unwrap_or_else(|error| Err(error.into()))))
    }

    /// As [`pipe_to_self`](Self::pipe_to_self) for a closure that may block, which runs on the dispatcher named
    /// `"blocking"`.
    ///
    /// # Errors
    ///
    /// As [`pipe_to_self`](Self::pipe_to_self); and [`SpawnError::UnknownDispatcher`] if the system has no
    /// dispatcher `"blocking"`: declare it with `.dispatcher("blocking", Dispatcher::blocking())`.
    pub fn pipe_blocking_to_self<T: 'static>(
        &self,
        run: impl FnOnce() -> T + Send + 'static,
        wrap: impl FnOnce(Result<T, PipeError>) -> M + Send + 'static,
    ) -> Result<(), SpawnError> {
        self.core().system.pipe(Some(BLOCKING), async move { run() }, self.me().clone(), wrap)
    }
}

impl SystemRef {
    /// Runs a future on the default dispatcher; its result goes to `target`, which may be any recipient, as
    /// [`Context::pipe_to_self`] explains.
    ///
    /// ```
    /// use pointsman::pattern::PipeError;
    /// use pointsman::prelude::*;
    /// # use std::sync::mpsc;
    /// # struct Shop(mpsc::Sender<u32>);
    /// # impl Actor for Shop {
    /// #     type Message = Result<u32, PipeError>;
    /// #     fn receive(&mut self, message: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
    /// #         self.0.send(message?)?;
    /// #         Ok(())
    /// #     }
    /// # }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("trade").dispatcher("blocking", Dispatcher::blocking()).build()?;
    /// # let (sender, counts) = mpsc::channel();
    /// let shop: ActorRef<Result<u32, PipeError>> = system.spawn(move || Shop(sender.clone()))?;
    /// system.pipe(async { 12 }, &shop, |count| count)?;
    /// assert_eq!(counts.recv()?, 12);
    /// system.pipe_blocking(|| 13, &shop, |count| count)?; // may read a file meanwhile
    /// assert_eq!(counts.recv()?, 13);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Context::pipe_to_self`].
    pub fn pipe<T: 'static, M: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        target: &ActorRef<M>,
        wrap: impl FnOnce(Result<T, PipeError>) -> M + Send + 'static,
    ) -> Result<(), SpawnError> {
        self.core().pipe(None, future, target.clone(), wrap)
    }

    /// As [`pipe`](Self::pipe) for a closure that may block, which runs on the dispatcher named `"blocking"`.
    ///
    /// # Errors
    ///
    /// As [`Context::pipe_blocking_to_self`].
    pub fn pipe_blocking<T: 'static, M: Send + 'static>(
        &self,
        run: impl FnOnce() -> T + Send + 'static,
        target: &ActorRef<M>,
        wrap: impl FnOnce(Result<T, PipeError>) -> M + Send + 'static,
    ) -> Result<(), SpawnError> {
        self.core().pipe(Some(BLOCKING), async move { run() }, target.clone(), wrap)
    }
}

impl SystemCore {
    fn pipe<T: 'static, M: Send + 'static>(
        &self,
        dispatcher: Option<&str>,
        future: impl Future<Output = T> + Send + 'static,
        target: ActorRef<M>,
        wrap: impl FnOnce(Result<T, PipeError>) -> M + Send + 'static,
    ) -> Result<(), SpawnError> {
        let plan = Plan {
            parent: self.system_guardian(),
            name: None,
            dispatcher: dispatcher.map(str::to_owned),
            mailbox: MailboxKind::Unbounded,
            on_failure: None,
            routee_index: 0,
            stash_capacity: None,
            class: ClassChoice::OfType,
        };
        // Boxed: the future must not move between two polls, and an actor's state does.
        let (future, wrap) = (Guarded::new(Box::pin(future)), Guarded::new(wrap));
        let pipe = Pipe { running: Some(Running { future, wrap, target }), waker: None };
        spawn_cell(plan, Once(Some(pipe))).map(drop)
    }
}

/// The hidden actor around a future.
struct Pipe<F, W, M> {
    /// `None` after the result is on its way.
    running: Option<Running<F, W, M>>,
    waker: Option<StdArc<PollWaker>>,
}

struct Running<F, W, M> {
    future: Guarded<Pin<Box<F>>>,
    wrap: Guarded<W>,
    target: ActorRef<M>,
}

impl<F, W, M, T> Pipe<F, W, M>
where
    F: Future<Output = T>,
    W: FnOnce(Result<T, PipeError>) -> M,
    M: Send + 'static,
{
    fn poll(&mut self, ctx: &mut Context<Never>) {
        let (Some(running), Some(poll_waker)) = (&mut self.running, &self.waker) else { return };
        poll_waker.begin_poll();
        let waker = Waker::from(poll_waker.clone());
        let future = running.future.as_mut();
        let within = PollsWithin::of(&ctx.core().system);
        match guarded(|| Ok(within.run(|| future.poll(&mut task::Context::from_waker(&waker))))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(value)) => self.finish(Ok(value), ctx),
            Err(failure) => self.finish(Err(PipeError::Panicked { text: text(&failure) }), ctx),
        }
    }

    fn finish(&mut self, outcome: Result<T, PipeError>, ctx: &mut Context<Never>) {
        let Some(Running { future, wrap, target }) = self.running.take() else { return };
        // Dropped before the message is sent: the receiver finds released what the future held.
        // The future may need its runtime in its destructor, too.
        quietly(|| PollsWithin::of(&ctx.core().system).run(|| drop(future)));
        match guarded(|| Ok((wrap.into_inner())(outcome))) {
            Ok(message) => target.tell(message),
            // The logger is user code.
            Err(failure) => quietly(|| {
                report!(
                    ctx.system().core().stderr,
                    Warning,
                    log::Level::Warn,
                    "system {:?}: the result of a piped future is lost: the function that makes the message for {} {}",
                    ctx.system().name(),
                    target.path(),
                    text(&failure)
                );
            }),
        }
        ctx.stop();
    }
}

/// Returns the text of a failure; user code may have a part in it.
fn text(failure: &Failure) -> String {
    guarded(|| Ok(failure.to_string())).unwrap_or_default()
}

impl<F, W, M, T> Actor for Pipe<F, W, M>
where
    F: Future<Output = T> + Send + 'static,
    W: FnOnce(Result<T, PipeError>) -> M + Send + 'static,
    M: Send + 'static,
{
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }

    fn started(&mut self, ctx: &mut Context<Never>) -> HandlerResult {
        let pipe = ctx.me().any_local();
        // Named before the future runs, which may never end.
        if let Some(owner) = self.running.as_ref().and_then(|running| running.target.untyped()) {
            ctx.core().children.set_front(HelperRole("pipe", owner));
        }
        self.waker = Some(PollWaker::new(pipe, 0, |waker| {
            let _ = waker.actor.send_positioned(apply(|pipe: &mut Self, ctx| {
                pipe.poll(ctx);
                Ok(())
            }));
        }));
        self.poll(ctx);
        Ok(())
    }

    fn stopped(&mut self, ctx: &mut Context<Never>) {
        self.finish(Err(PipeError::Cancelled), ctx);
    }
}

/// A recipe for a single state.
struct Once<A>(Option<A>);

impl<F, W, M, T> Recipe<Pipe<F, W, M>> for Once<Pipe<F, W, M>>
where
    F: Future<Output = T> + Send + 'static,
    W: FnOnce(Result<T, PipeError>) -> M + Send + 'static,
    M: Send + 'static,
{
    fn make(&mut self, _: &mut Context<Never>) -> Result<Pipe<F, W, M>, Failure> {
        self.0.take().ok_or_else(|| Failure::msg("a piped future runs once"))
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::core::actor_ref::ActorRef;
    use crate::system::System;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    struct Bomb(Arc<AtomicUsize>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("planted");
        }
    }

    /// Of two panics at once the second would abort the process.
    #[test]
    fn a_future_that_is_refused_and_what_wraps_its_outcome_are_dropped_each_for_itself() {
        let system = System::builder("bombs").build().expect("threads can be had");
        let handle = system.handle().clone();
        system.shutdown(Duration::from_secs(30)).expect("nothing is stuck");
        let dropped = Arc::new(AtomicUsize::new(0));
        let (in_future, in_wrap) = (Bomb(dropped.clone()), Bomb(dropped.clone()));
        let future = async move {
            let _ = &in_future;
        };
        let target: ActorRef<u32> = ActorRef::from_fn(|_: u32| {});
        let refused = handle.pipe(future, &target, move |_| {
            let _ = &in_wrap;
            7
        });
        assert!(refused.is_err());
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    }
}
