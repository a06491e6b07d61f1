//! An identify request asks the actors at a path for their references. Each actor answers itself, when the request has
//! its turn among its messages.

use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_clock::AskClock;
use crate::ask::error::AskError;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::{Control, Inquiry};
use crate::core::system::SystemCore;
use crate::failure::guarded;
use crate::path::actor_path::ActorPath;
use crate::selection::lookup::LookupError;
use crate::selection::selection::{Found, Selection};
use crate::util::panic::{drop_guarded, quietly};
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

/// The function that takes the answers to a single request.
type Answer = dyn Fn(Option<AnyActorRef>) + Send + Sync;

impl AnyActorRef {
    /// Asks the actor for its reference, behind the messages in its mailbox. The actor answers between two messages;
    /// `answer` gets `None` if the actor ends before.
    pub(crate) fn inquire(&self, answer: impl Fn(Option<AnyActorRef>) + Send + Sync + 'static) {
        // A refused request is dropped, and its drop answers with `None`.
        let _ = self.send_positioned(Control::Identify(Box::new(Question(Some(StdArc::new(answer))))));
    }
}

/// The request to a single actor. A request that is dropped unanswered, because its actor has ended, answers with
/// `None`.
struct Question(Option<StdArc<Answer>>);

impl Inquiry for Question {
    fn answer(mut self: Box<Self>, actor: AnyActorRef) {
        self.end(Some(actor));
    }
}

impl Question {
    fn end(&mut self, actor: Option<AnyActorRef>) {
        if let Some(answer) = self.0.take() {
            // The function that makes a message of the answer is user code.
            let told = guarded(|| {
                answer(actor);
                Ok(())
            });
            drop_guarded(told);
            drop_guarded(answer);
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Selection {
    /// Asks each selected actor for its reference. Each actor answers itself, behind the messages that this thread has
    /// sent it before. `wrap` makes messages of the answers, and `to` receives them. `wrap` captures whatever
    /// identifies the request, such as the [path](Self::path) of the selection.
    ///
    /// Where no actor is, or an actor ends before it answers, the answer is `None`. After a wildcard that matched
    /// more than one actor, places without an actor below the matches get no answer.
    ///
    /// `wrap` runs in the turn of the answering actor. If it panics, that answer is lost.
    ///
    /// At another node, all answers come together, when the last of the actors has answered there. Actors whose type of message is
    /// not registered at both nodes have no reference here: their answer is `None`.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Found(Option<AnyActorRef>);
    /// struct Finder;
    /// impl Actor for Finder {
    ///     type Message = Found;
    ///     fn started(&mut self, ctx: &mut Context<Found>) -> HandlerResult {
    ///         ctx.select("../*")?.identify(ctx.me(), Found);
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, Found(actor): Found, _: &mut Context<Found>) -> HandlerResult {
    ///         println!("{actor:?}");
    ///         Ok(())
    ///     }
    /// }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("shop").build()?;
    /// system.actor("finder").spawn(|| Finder)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "ActorIdentity")]
    pub fn identify<N: Send + 'static>(
        &self,
        to: &ActorRef<N>,
        wrap: impl Fn(Option<AnyActorRef>) -> N + Send + Sync + 'static,
    ) {
        let (to, asker) = (to.clone(), to.clone());
        self.inquire(false, move |actor| to.tell(wrap(actor)), move || !asker.is_closed());
    }

    /// Asks the selected actors for their references and returns the first answer.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Idle;
    /// # impl Actor for Idle {
    /// #     type Message = u32;
    /// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("shop").build()?;
    /// let cache = system.actor("cache").spawn(|| Idle)?;
    /// let second = std::time::Duration::from_secs(1);
    /// let found = system.select("/user/c*")?.resolve_one(second).wait()?;
    /// assert_eq!(found.typed::<u32>()?, cache);
    /// assert!(system.select("/user/till")?.resolve_one(second).wait().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn resolve_one(&self, timeout: Duration) -> Resolution {
        let selection = self.path();
        let core = self.system().core();
        let ask = match ask_clock(core) {
            Some(ask_clock) if timeout.is_zero() => ask::failed(AskError::NoTime, ask_clock),
            Some(ask_clock) => {
                let (reply_to, ask) = ask::begin(ask_clock);
                // The reply port is dropped with the last request: when all requests are answered, and none by an
                // actor, the ask has failed.
                let asker = reply_to.clone();
                let answer = move |actor| {
                    if let Some(actor) = actor {
                        let late = reply_to.clone().send(actor);
                        drop(late);
                    }
                };
                self.inquire(true, answer, move || asker.wanted());
                ask.within(timeout)
            }
            None => {
                ask::failed(AskError::undeliverable(), AskClock::Static(&crate::time::no_system::NO_SYSTEM))
            }
        };
        Resolution { ask, selection }
    }

    fn ask_at(&self, node: &str, text: &str, is_one: bool, to: &StdArc<dyn IdentityReceiver>) {
        if !self.system().core().extensions.identify_at(node, text, is_one, to) {
            to.take(None);
        }
    }

    /// Asks the actors, here or at another node. `is_one`: the first answer is enough; `is_wanted`: whether one still is.
    fn inquire(
        &self,
        is_one: bool,
        answer: impl Fn(Option<AnyActorRef>) + Send + Sync + 'static,
        is_wanted: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        if let Some((node, text)) = self.at_node() {
            let to: StdArc<dyn IdentityReceiver> = StdArc::new(Asker { answer, is_wanted });
            self.ask_at(node, text, is_one, &to);
            return drop_guarded(to);
        }
        let answer: StdArc<Answer> = StdArc::new(answer);
        match self.resolve() {
            Found::Missing(_) => drop(Question(Some(answer))),
            Found::Actors { here, elsewhere } => {
                for actor in here {
                    // A request that an actor refuses is dropped, and its drop answers with `None`.
                    let _ =
                        actor.send_positioned(Control::Identify(Box::new(Question(Some(answer.clone())))));
                }
                if !elsewhere.is_empty() {
                    let of_all = answer.clone();
                    let asker = Asker { answer: move |actor| of_all(actor), is_wanted };
                    let to: StdArc<dyn IdentityReceiver> = StdArc::new(asker);
                    elsewhere.iter().for_each(|place| self.ask_at(&place.node, &place.text, is_one, &to));
                    drop_guarded(to);
                }
                drop_guarded(answer);
            }
        }
    }
}

/// Takes the references of actors of another node that were asked for them.
pub(crate) trait IdentityReceiver: Send + Sync {
    /// `None`: no actor is there, or it has ended before its answer. User code that panics is caught.
    fn take(&self, actor: Option<AnyActorRef>);

    /// Whether an answer is still of use.
    #[cfg_attr(
        not(any(feature = "remote", pointsman_loom)),
        expect(dead_code, reason = "other nodes ask for it")
    )]
    fn is_wanted(&self) -> bool;
}

struct Asker<A, W> {
    answer: A,
    is_wanted: W,
}

impl<A, W> IdentityReceiver for Asker<A, W>
where
    A: Fn(Option<AnyActorRef>) + Send + Sync,
    W: Fn() -> bool + Send + Sync,
{
    fn take(&self, actor: Option<AnyActorRef>) {
        // The function that makes a message of the answer is user code.
        quietly(|| (self.answer)(actor));
    }

    fn is_wanted(&self) -> bool {
        (self.is_wanted)()
    }
}

/// Returns the clock of a system that has not ended.
fn ask_clock(core: &SystemCore) -> Option<AskClock> {
    core.tree().map(|tree| AskClock::System(tree.root))
}

/// The pending answer to [`Selection::resolve_one`]: [`wait`](Self::wait) for it, or await it under any executor.
#[must_use = "a resolution that is dropped is given up"]
#[derive(Debug)]
pub struct Resolution {
    ask: Ask<AnyActorRef>,
    selection: ActorPath,
}

impl Resolution {
    /// Blocks this thread until an actor has answered.
    ///
    /// # Errors
    ///
    /// [`LookupError::NoActor`] if no actor is there; [`LookupError::NoAnswer`] if no actor answered in time, or if this
    /// is a work-stealing worker, which must not wait.
    pub fn wait(self) -> Result<AnyActorRef, LookupError> {
        let Self { ask, selection } = self;
        ask.wait().map_err(|cause| LookupError::unanswered(selection, cause))
    }
}

impl Future for Resolution {
    type Output = Result<AnyActorRef, LookupError>;

    /// # Panics
    ///
    /// When polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        Pin::new(&mut this.ask)
            .poll(cx)
            .map_err(|cause| LookupError::unanswered(this.selection.clone(), cause))
    }
}
