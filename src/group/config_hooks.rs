//! A keyed group that goes by a part of the configuration.

use crate::group::builder::GroupPlan;
use crate::group::config::GroupConfig;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::state::Configured;
use crate::util::panic::Guarded;
use std::any::Any;
use std::marker::PhantomData;

struct By<C, D, A>(Guarded<D>, Guarded<A>, PhantomData<fn() -> C>);

impl<M, K, C, D, A> Configured<M, K> for By<C, D, A>
where
    M: Send + 'static,
    K: GroupKey,
    C: 'static,
    D: Fn(&GroupConfig) -> Result<C, String> + Send + Sync,
    A: Fn(&Group<M, K>, C) + Send + Sync,
{
    fn decode(&self, config: &GroupConfig) -> Result<Box<dyn Any>, String> {
        Ok(Box::new((self.0)(config)?))
    }

    fn apply(&self, group: &Group<M, K>, decoded: Box<dyn Any>) {
        if let Ok(decoded) = decoded.downcast::<C>() {
            (self.1)(group, *decoded);
        }
    }
}

impl<M: Send + 'static, K: GroupKey> GroupPlan<M, K> {
    /// Has the group go by its part of the [topology's](super::Topology) configuration, which changes in two
    /// phases: all groups `decode` theirs, and if none rejects it, each applies it.
    ///
    /// `decode` changes nothing; an error of it is the reason to reject the configuration as a whole. `apply` gets what
    /// was decoded and makes it count: it [replaces the state](crate::topology::RouterState::update) of the inner router first,
    /// [mounts](Group::mount) the keys that are to be there (an error is in the log, too), and tells the actors, by a message that the
    /// router sends to all: a dead letter while there are none. An actor that a message creates meanwhile is not
    /// told by it, so recipes read the state. Both run on the thread that brings the configuration, and never at
    /// once for one group. If `apply` panics, that is logged, and the next configuration counts as changed for this
    /// group.
    ///
    /// elfo's `ValidateConfig` and `UpdateConfig`, of which the second is routed by the new state.
    pub fn config<C: 'static>(
        mut self,
        decode: impl Fn(&GroupConfig) -> Result<C, String> + Send + Sync + 'static,
        apply: impl Fn(&Group<M, K>, C) + Send + Sync + 'static,
    ) -> Self {
        self.configured = Some(Box::new(By(Guarded::new(decode), Guarded::new(apply), PhantomData)));
        self
    }
}

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// Reads the configuration, and returns what makes it count.
    pub(crate) fn prepare_config(&self, config: &GroupConfig) -> Result<Box<dyn FnOnce() + '_>, String> {
        let configured = self.board.configured.as_deref();
        let decoded =
            configured.map(|configured| configured.decode(config).map(|decoded| (configured, decoded)));
        let decoded = decoded.transpose()?;
        Ok(Box::new(move || {
            if let Some((configured, decoded)) = decoded {
                configured.apply(self, decoded);
            }
            if let Some(only) = &self.board.only {
                // A group that ends needs it no more; what else is wrong has been logged.
                let _ = self.board.mount(only.clone());
            }
        }))
    }
}
