//! The head of a router that another node has asked for.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::Recipe;
use crate::failure::Failure;

/// The head of a router, as another node has asked for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeployedHead {
    pub(crate) uid: u32,
    pub(crate) suspensions: u32,
}

/// The recipe of such a head.
pub(crate) struct DeployedRecipe<F>(pub(crate) F);

impl<A: Actor, F: Recipe<A>> Recipe<A> for DeployedRecipe<F> {
    // The parent tells the other node of the end.
    const IS_FOSTERED: bool = true;
    const IS_DEPLOYED: bool = true;

    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure> {
        self.0.make(ctx)
    }
}
