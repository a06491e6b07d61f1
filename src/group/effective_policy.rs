//! An effective policy is the restart policy that counts for an actor: its own, or else the configuration's, or else
//! the plan's.

use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::key_entry::KeyEntry;
use crate::group::restart_policy::RestartPolicy;
use crate::group::state::GroupState;
use crate::sync::lock;
use std::fmt;

/// A policy error says that a restart policy makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyError {
    /// The fault in the policy.
    pub fault: String,
}

impl PolicyError {
    pub(crate) fn check(policy: Option<&RestartPolicy>) -> Result<(), Self> {
        policy.map_or(Ok(()), RestartPolicy::check).map_err(|fault| Self { fault })
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "restart policy: {}", self.fault)
    }
}

impl std::error::Error for PolicyError {}

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
    pub fn set_restart_policy(&self, policy: Option<RestartPolicy>) -> Result<(), PolicyError> {
        PolicyError::check(policy.as_ref())?;
        *lock(&self.group_state.configured_policy) = policy;
        Ok(())
    }
}
