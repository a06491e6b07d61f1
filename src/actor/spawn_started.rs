//! Creation of an actor that returns when the actor has started, or has failed to.

use crate::actor::actor::Actor;
use crate::actor::builder::{ActorBuilder, without_context};
use crate::actor::context::Context;
use crate::actor::recipe::{IntoActor, LifeStage, Recipe};
use crate::actor::spawn::spawn_held;
use crate::ask::ask;
use crate::ask::ask_clock::AskClock;
use crate::ask::error::AskError;
use crate::ask::reply::ReplyTo;
use crate::core::actor_ref::ActorRef;
use crate::core::error::SpawnError;
use crate::core::system::SystemCore;
use crate::dispatch::may_block::must_not_wait;
use crate::failure::{Failure, guarded};
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::time::Duration;

/// The reason for which [`ActorBuilder::spawn_started`] returns no reference. If there was an actor, it was told to stop.
#[derive(PartialEq)]
#[non_exhaustive]
pub enum StartupError {
    /// There is no actor.
    Spawn(SpawnError),
    /// The recipe or [`started`](Actor::started) failed.
    Failed {
        /// The actor.
        path: String,
        /// The text of the failure.
        text: String,
    },
    /// The actor was stopped before it had started, by another actor or by the end of its parent or its system.
    Stopped {
        /// The actor.
        path: String,
    },
    /// The actor has not started within the limit.
    TimedOut {
        /// The actor.
        path: String,
        /// The limit.
        limit: Duration,
    },
    /// The calling thread may not wait: it is a work-stealing worker, runs code that others wait for, or is the only
    /// thread that could run the actor.
    WouldBlockWorker,
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn(error) => error.fmt(f),
            Self::Failed { path, text } => write!(f, "actor {path} failed to start: {text}"),
            Self::Stopped { path } => write!(f, "actor {path} was stopped before it had started"),
            Self::TimedOut { path, limit } => {
                write!(f, "actor {path} has not started within {limit:?}: raise the limit, or start it with less work")
            }
            Self::WouldBlockWorker => f.write_str(
                "a wait for the start of an actor would block this thread, which others need: use `spawn`, and let the \
                 actor tell that it has started",
            ),
        }
    }
}

impl std::error::Error for StartupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn(error) => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { StartupError }

impl From<SpawnError> for StartupError {
    fn from(error: SpawnError) -> Self {
        Self::Spawn(error)
    }
}

impl ActorBuilder {
    /// Creates the actor as [`spawn`](Self::spawn) does, and waits until its [`started`](Actor::started) has run: the
    /// reference is that of an actor which is ready. `limit` is by the system's clock.
    ///
    /// An actor that fails to start is told to stop, and so is an actor that takes longer than `limit`. Its parent
    /// judges the failure all the same: an escalation and a strategy for all children take effect, and a restart may
    /// run the recipe again before the actor stops.
    ///
    /// A handler on a blocking dispatcher holds a thread of it while it waits. Where all of its threads wait for actors
    /// of the same dispatcher, none of these starts before `limit`: give the children another dispatcher.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::actor::StartupError;
    /// use std::time::Duration;
    ///
    /// struct Reader(std::fs::File);
    /// impl Actor for Reader {
    ///     type Message = u64;
    ///     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").stderr_without_logger(false).build()?;
    /// let reader = system.actor("reader").spawn_started(Duration::from_secs(5), || {
    ///     Ok::<_, Failure>(Reader(std::fs::File::open("no such file")?))
    /// });
    /// assert!(matches!(reader, Err(StartupError::Failed { text, .. }) if text.contains("No such file")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StartupError`]. On a thread that may not wait, such as a work-stealing worker, the recipe does not run.
    #[doc(alias = "wait_for_startup")]
    pub fn spawn_started<A, I>(
        self,
        limit: Duration,
        recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, StartupError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        if must_not_wait() {
            return Err(StartupError::WouldBlockWorker);
        }
        let parent = match &self.plan.parent {
            Ok(parent) => parent.clone(),
            Err(system) => return Err(SpawnError::ShutDown { system: system.clone() }.into()),
        };
        let (port, ask) = ask::begin(AskClock::System(parent));
        let recipe = Startup { recipe: without_context(recipe), port: Some(port) };
        let held = spawn_held::<A, _>(self.plan, recipe)?;
        if held.actor().any_local().runs_only_here() {
            return Err(StartupError::WouldBlockWorker);
        }
        let actor = held.start();
        let path = || actor.path().to_string();
        let error = match ask.within(limit).wait() {
            Ok(Ok(())) => return Ok(actor),
            Ok(Err(text)) => StartupError::Failed { path: path(), text },
            Err(AskError::Timeout { .. } | AskError::NoTime | AskError::Stalled) => {
                StartupError::TimedOut { path: path(), limit }
            }
            Err(AskError::WouldBlockWorker) => StartupError::WouldBlockWorker,
            Err(_) => StartupError::Stopped { path: path() },
        };
        actor.stop();
        Err(error)
    }
}

/// A recipe that tells the creator how the first start went.
struct Startup<F> {
    recipe: F,
    port: Option<ReplyTo<Result<(), String>>>,
}

impl<F> Startup<F> {
    fn tell(&mut self, outcome: Result<(), String>) {
        if let Some(port) = self.port.take() {
            // An answer that comes too late is dropped: the creator has told the actor to stop.
            let _ = port.send(outcome);
        }
    }
}

impl<A: Actor, F: Recipe<A>> Recipe<A> for Startup<F> {
    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure> {
        self.recipe.make(ctx)
    }

    fn failed_to_start(&mut self, failure: &Failure) {
        // The text is user code.
        let text = guarded(|| Ok(failure.to_string()));
        self.tell(Err(text.unwrap_or_default()));
    }

    fn reached_stage(&mut self, stage: LifeStage, _: &SystemCore) {
        match stage {
            LifeStage::Started => self.tell(Ok(())),
            LifeStage::Failed => {}
            // The port tells that there will be no answer.
            LifeStage::Ending => drop(self.port.take()),
        }
    }
}
