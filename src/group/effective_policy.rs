//! An effective policy is the restart policy that counts for an actor: its own, or else the configuration's, or else
//! the plan's.

use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::key_entry::KeyEntry;
use crate::group::restart_policy::RestartPolicy;
use crate::group::state::GroupState;
use crate::settings::setting_error::SettingError;
use crate::sync::lock;

impl<M: Send + 'static, K: GroupKey> GroupState<M, K> {
    pub(crate) fn policy_of(&self, key_entry: &KeyEntry<K>) -> RestartPolicy {
        let own = key_entry.life(|life| life.policy.as_deref().copied());
        own.or_else(|| *lock(&self.configured_policy)).unwrap_or(self.policy)
    }
}

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// Sets another restart policy for the actors of this group than the [plan's](crate::group::GroupPlan::restart);
    /// `None` returns to the plan's policy. Call this when the group's
    /// [configuration](crate::group::GroupPlan::config) changes. An actor that has [its own
    /// policy](crate::Context::set_restart_policy) keeps it. The policy holds for failures and ends from now on; a
    /// restart that already waits keeps its time.
    ///
    /// # Errors
    ///
    /// The error says what is wrong with the policy, as at [`GroupPlan::spawn`](crate::group::GroupPlan::spawn).
    /// Nothing changes then.
    pub fn set_restart_policy(&self, policy: Option<RestartPolicy>) -> Result<(), SettingError> {
        policy.as_ref().map_or(Ok(()), RestartPolicy::check)?;
        *lock(&self.group_state.configured_policy) = policy;
        Ok(())
    }
}
