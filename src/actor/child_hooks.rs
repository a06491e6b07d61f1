//! A parent of the engine's own that looks after its children itself: it is told what becomes of them in place of
//! judging them by a strategy and watching each. Its children's recipes are told how far their lives have come, and it
//! is the parent who tells those who watch them of their ends, when it has done with them.

use crate::actor::actor::Actor;
use crate::actor::turn::{ActorTurn, Recipe};
use crate::core::any_ref::AnyRef;
use crate::failure::Failure;
use std::sync::Arc as StdArc;

/// Called in the parent's turns. Runs no user code unguarded.
pub(crate) trait Foster: Send + Sync + 'static {
    /// A child has failed. It is suspended until it is sent a verdict.
    fn failed(&self, child: AnyRef, failure: Failure);

    /// A child has ended, and its name is free.
    fn ended(&self, child: AnyRef);
}

/// How far an actor's life has come, as its [`Recipe`] is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its state is made, and the hook for its start has run.
    Started,
    /// It has failed, and waits for a verdict.
    Failed,
    /// It takes no more messages, or handles no more.
    Ending,
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Tells the recipe, if there still is one. Nothing at all for most.
    pub(crate) fn reached(&mut self, stage: Stage) {
        let system = &self.cell.owned.local.core.system;
        self.cell.recipe.with_mut(|recipe| {
            // SAFETY: as in `make_state`; what the recipe does here cannot come back to this actor, whose token is
            // taken.
            if let Some(recipe) = unsafe { &mut *recipe } {
                recipe.reached(stage, system);
            }
        });
    }

    pub(crate) fn foster(&self) -> Option<StdArc<dyn Foster>> {
        self.private(|private| private.extras.as_ref().and_then(|extras| extras.foster.clone()))
    }
}
