//! Recipes: they make the state of an actor, at its creation and at each restart.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::core::system::SystemCore;
use crate::failure::Failure;

/// A recipe: makes an actor's state, at its creation and at each restart.
pub(crate) trait Recipe<A: Actor>: Send + 'static {
    /// Whether those who watch the actor are told of its end by the parent, when that has done with it.
    const IS_FOSTERED: bool = false;

    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure>;

    /// The actor's life has come so far. Runs in its turns, and never unwinds.
    fn reached_stage(&mut self, stage: LifeStage, system: &SystemCore) {
        let _ = (stage, system);
    }
}

/// A recipe from a closure.
pub(crate) struct ByContext<F>(pub F);

impl<A: Actor, I: IntoActor<Actor = A>, F> Recipe<A> for ByContext<F>
where
    F: FnMut(&mut Context<A::Message>) -> I + Send + 'static,
{
    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure> {
        (self.0)(ctx).into_actor()
    }
}

/// How far an actor's life has come, as its [`Recipe`] is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifeStage {
    /// Its state is made, and the hook for its start has run.
    Started,
    /// It has failed, and waits for a verdict.
    Failed,
    /// It takes no more messages, or handles no more.
    Ending,
}

/// What a recipe may return: an actor, or a failure to make one.
///
/// Implemented for every [`Actor`] and for `Result<impl Actor, Failure>`.
pub trait IntoActor {
    /// The actor that comes out.
    type Actor: Actor;

    /// The actor, or why there is none.
    ///
    /// # Errors
    ///
    /// A failure of initialization.
    fn into_actor(self) -> Result<Self::Actor, Failure>;
}
