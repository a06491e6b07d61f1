//! A group recipe makes the state of an actor of a group from its key.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{Recipe, Stage};
use crate::core::system::SystemCore;
use crate::failure::Failure;
use crate::group::entry::{Seed, Start};
use crate::group::key::GroupKey;
use crate::group::status::{ActorStatus, Statuses};
use std::sync::Arc as StdArc;

/// This recipe makes the actor of a key entry by the group's recipe, and notes its statuses.
pub struct Sown<F, K> {
    recipe: StdArc<F>,
    seed: StdArc<Seed<K>>,
    statuses: StdArc<Statuses<K>>,
}

impl<F, K: GroupKey> Sown<F, K> {
    pub fn new(recipe: &StdArc<F>, seed: &StdArc<Seed<K>>, statuses: &StdArc<Statuses<K>>) -> Self {
        Self { recipe: recipe.clone(), seed: seed.clone(), statuses: statuses.clone() }
    }
}

impl<A, F, K> Recipe<A> for Sown<F, K>
where
    A: Actor,
    K: GroupKey,
    F: Fn(&mut Context<A::Message>, &Start<'_, K>) -> Result<A, Failure> + Send + Sync + 'static,
{
    const IS_FOSTERED: bool = true;

    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure> {
        let cause = self.seed.begin(ctx.now())?;
        self.statuses.change(&self.seed, ActorStatus::Initialising);
        (self.recipe)(ctx, &Start::new(&self.seed.key, cause))
    }

    fn reached(&mut self, stage: Stage, system: &SystemCore) {
        let (statuses, seed) = (&self.statuses, &self.seed);
        if matches!(stage, Stage::Failed | Stage::Ending) {
            let now = system.now();
            seed.life(|life| life.tries.end(now));
        }
        match stage {
            // An actor that has been alarming since its start stays alarming.
            Stage::Started => statuses
                .change_if(seed, ActorStatus::Normal, |before| before == Some(&ActorStatus::Initialising)),
            // A state that is not made before its time is no failure: see `Seed::begin`.
            Stage::Failed if seed.life(|life| life.waits.is_some()) => {}
            Stage::Failed => statuses.change(seed, ActorStatus::Failed),
            Stage::Ending => statuses.change(seed, ActorStatus::Terminating),
        }
    }
}
