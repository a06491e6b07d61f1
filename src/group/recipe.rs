//! A group recipe makes the state of an actor of a group from its key.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{LifeStage, Recipe};
use crate::core::system::SystemCore;
use crate::failure::Failure;
use crate::group::key::GroupKey;
use crate::group::key_entry::KeyEntry;
use crate::group::status::{ActorStatus, Statuses};
use std::sync::Arc as StdArc;

/// This recipe makes the actor of a key entry by the group's recipe, and notes its statuses.
pub(crate) struct GroupRecipe<F, K> {
    recipe: StdArc<F>,
    key_entry: StdArc<KeyEntry<K>>,
    statuses: StdArc<Statuses<K>>,
}

impl<F, K: GroupKey> GroupRecipe<F, K> {
    pub(crate) fn new(
        recipe: &StdArc<F>,
        key_entry: &StdArc<KeyEntry<K>>,
        statuses: &StdArc<Statuses<K>>,
    ) -> Self {
        Self { recipe: recipe.clone(), key_entry: key_entry.clone(), statuses: statuses.clone() }
    }
}

impl<A, F, K> Recipe<A> for GroupRecipe<F, K>
where
    A: Actor,
    K: GroupKey,
    F: Fn(&mut Context<A::Message>, &K) -> Result<A, Failure> + Send + Sync + 'static,
{
    const IS_FOSTERED: bool = true;

    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure> {
        self.key_entry.begin(ctx.now())?;
        self.statuses.change(&self.key_entry, ActorStatus::Initialising);
        (self.recipe)(ctx, &self.key_entry.key)
    }

    fn reached_stage(&mut self, stage: LifeStage, system: &SystemCore) {
        let (statuses, key_entry) = (&self.statuses, &self.key_entry);
        if matches!(stage, LifeStage::Failed | LifeStage::Ending) {
            let now = system.now();
            key_entry.life(|life| life.tries.end(now));
        }
        match stage {
            // An actor that has been alarming since its start stays alarming.
            LifeStage::Started => statuses.change_if(key_entry, ActorStatus::Normal, |before| {
                before == Some(&ActorStatus::Initialising)
            }),
            // A state that is not made before its time is no failure: see `KeyEntry::begin`.
            LifeStage::Failed if key_entry.life(|life| life.waits.is_some()) => {}
            LifeStage::Failed => statuses.change(key_entry, ActorStatus::Failed),
            LifeStage::Ending => statuses.change(key_entry, ActorStatus::Terminating),
        }
    }
}
