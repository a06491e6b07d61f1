//! Configuration hooks let a keyed group follow its section of the configuration.

use crate::group::builder::GroupPlan;
use crate::group::config::GroupConfig;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::state::ConfigHooks;
use crate::util::panic::Guarded;
use std::any::Any;
use std::marker::PhantomData;

struct ConfigFunctions<C, D, A>(Guarded<D>, Guarded<A>, PhantomData<fn() -> C>);

impl<M, K, C, D, A> ConfigHooks<M, K> for ConfigFunctions<C, D, A>
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
    /// Lets the group follow its section of the [topology's](crate::topology::Topology) configuration, which changes in
    /// two phases: all groups `decode` their sections, and if no group rejects its section, each group applies it.
    ///
    /// `decode` changes nothing; its error is the reason to reject the configuration as a whole. `apply` gets the
    /// decoded value and puts it into effect:
    ///
    /// * First it [replaces the state](crate::group::RouterState::update) of the key router.
    /// * Then it [mounts](Group::mount) the keys that must have an actor. An error of this is in the log, too.
    /// * Then it tells the actors, by a message that the key router sends to all; without actors the message is a dead
    ///   letter.
    ///
    /// An actor that a message creates meanwhile does not get that last message, so recipes should read the state. Both
    /// hooks run on the thread that brings the configuration, and never at the same time for the same group. A panic of
    /// `apply` is logged, and the next configuration then counts as changed for this group.
    ///
    /// The hooks are elfo's `ValidateConfig` and `UpdateConfig`, of which `UpdateConfig` is routed by the new state.
    pub fn config<C: 'static>(
        mut self,
        decode: impl Fn(&GroupConfig) -> Result<C, String> + Send + Sync + 'static,
        apply: impl Fn(&Group<M, K>, C) + Send + Sync + 'static,
    ) -> Self {
        self.configured =
            Some(Box::new(ConfigFunctions(Guarded::new(decode), Guarded::new(apply), PhantomData)));
        self
    }
}

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// Decodes the configuration, and returns the function that puts it into effect.
    pub(crate) fn prepare_config(&self, config: &GroupConfig) -> Result<Box<dyn FnOnce() + '_>, String> {
        let configured = self.group_state.configured.as_deref();
        let decoded =
            configured.map(|configured| configured.decode(config).map(|decoded| (configured, decoded)));
        let decoded = decoded.transpose()?;
        Ok(Box::new(move || {
            if let Some((configured, decoded)) = decoded {
                configured.apply(self, decoded);
            }
            if let Some(only) = &self.group_state.only {
                // A group that ends needs the actor no more; any other error has been logged.
                let _ = self.group_state.mount(only.clone());
            }
        }))
    }
}
