//! The head of a router that another node has asked for.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{LifeStage, Recipe};
use crate::core::system::SystemCore;
use crate::failure::Failure;
use crate::remote::factories::RestartTeller;

/// The head of a router, as another node has asked for it.
pub(crate) struct DeployedHead {
    pub(crate) uid: u32,
    pub(crate) suspensions: u32,
    pub(crate) restarts: RestartTeller,
}

/// The recipe of such a head.
pub(crate) struct DeployedRecipe<F> {
    pub(crate) recipe: F,
    pub(crate) restarts: RestartTeller,
}

impl<A: Actor, F: Recipe<A>> Recipe<A> for DeployedRecipe<F> {
    // The parent tells the other node of the end.
    const IS_FOSTERED: bool = true;
    const IS_DEPLOYED: bool = true;

    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure> {
        self.recipe.make(ctx)
    }

    fn reached_stage(&mut self, stage: LifeStage, _: &SystemCore) {
        self.restarts.reached(stage);
    }
}
