//! Recipes: they make the state of an actor, at its creation and at each restart.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::core::control::Control;
use crate::core::system::SystemCore;
use crate::failure::Failure;

/// A recipe: makes an actor's state, at its creation and at each restart.
pub(crate) trait Recipe<A: Actor>: Send + 'static {
    /// Whether the parent tells the watchers of the actor's end, when the parent has finished with the actor.
    const IS_FOSTERED: bool = false;

    /// Whether the actor stands for one in another system, to which the recipe passes control on.
    const IS_STAND_IN: bool = false;

    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure>;

    /// Whether another system has chosen the name and uid of the actor.
    const IS_DEPLOYED: bool = false;

    /// Passes control of a stand-in on. Returns control that is for the stand-in itself. Never unwinds.
    fn pass_on(&mut self, control: Control, stage: StandInStage) -> Option<Control> {
        let _ = stage;
        Some(control)
    }

    /// Tells a stand-in the number of its watchers. Never unwinds.
    fn watched_by(&mut self, watchers: usize) {
        let _ = watchers;
    }

    /// Tells the recipe the stage of the actor's life. Runs in the actor's turns, and never unwinds.
    fn reached_stage(&mut self, stage: LifeStage, system: &SystemCore) {
        let _ = (stage, system);
    }

    /// Tells the recipe the failure of the actor's first start, before the parent learns of it. Runs as
    /// [`reached_stage`](Self::reached_stage) does.
    fn failed_to_start(&mut self, failure: &Failure) {
        let _ = failure;
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

/// Makes the recipe of a user's closure.
///
/// With debug assertions the closure is boxed, which costs an allocation at each spawn. So all recipes of an actor type have
/// one type, and the compiler generates an actor's code once for each actor type, instead of once for each closure: 659 times
/// in the largest test program, where it was 926.
pub(crate) fn by_context<A, I, F>(closure: F) -> impl Recipe<A>
where
    A: Actor,
    I: IntoActor<Actor = A>,
    F: FnMut(&mut Context<A::Message>) -> I + Send + 'static,
{
    #[cfg(debug_assertions)]
    let closure = boxed(closure);
    ByContext(closure)
}

#[cfg(debug_assertions)]
type BoxedClosure<A> = Box<dyn FnMut(&mut Context<<A as Actor>::Message>) -> Result<A, Failure> + Send>;

#[cfg(debug_assertions)]
fn boxed<A, I>(mut closure: impl FnMut(&mut Context<A::Message>) -> I + Send + 'static) -> BoxedClosure<A>
where
    A: Actor,
    I: IntoActor<Actor = A>,
{
    Box::new(move |ctx| closure(ctx).into_actor())
}

/// The stage of the life of a stand-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandInStage {
    Living,
    /// The parent of the stand-in ends.
    ParentEnds,
    /// The actor that it stands for has ended.
    Ended,
}

/// The stage of an actor's life, as its [`Recipe`] is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifeStage {
    /// The state is made, and the hook for the start has run.
    Started,
    /// The actor has failed, and waits for a verdict.
    Failed,
    /// The actor takes no more messages, or handles no more.
    Ending,
}

/// The return type of a recipe: an actor, or a failure to make one.
///
/// Implemented for every [`Actor`] and for `Result<impl Actor, Failure>`.
pub trait IntoActor {
    /// The type of the actor.
    type Actor: Actor;

    /// Returns the actor, or the failure that prevented it.
    ///
    /// # Errors
    ///
    /// A failure of initialization.
    fn into_actor(self) -> Result<Self::Actor, Failure>;
}
