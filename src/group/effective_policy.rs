//! Which restart policy counts for an actor: its own, the configuration's, or the plan's.

use crate::group::entry::Seed;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::restart_policy::RestartPolicy;
use crate::group::state::Board;
use crate::sync::lock;
use std::fmt;

/// A restart policy makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyError {
    /// What is wrong.
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

impl<M: Send + 'static, K: GroupKey> Board<M, K> {
    pub fn policy_of(&self, seed: &Seed<K>) -> RestartPolicy {
        let own = seed.life(|life| life.policy.as_deref().copied());
        own.or_else(|| *lock(&self.configured_policy)).unwrap_or(self.policy)
    }
}

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// Has the actors of this group restarted by another policy than the [plan's](crate::topology::GroupPlan::restart), or by that
    /// one again (`None`): to be called when the group's [configuration](crate::topology::GroupPlan::config) changes. An actor
    /// that has [its own](crate::Context::set_restart_policy) keeps it. Holds for what fails or ends from now on;
    /// who waits already for its restart is restarted when it was to be.
    ///
    /// # Errors
    ///
    /// What is wrong with the policy, as at [`GroupPlan::spawn`](crate::topology::GroupPlan::spawn). Then nothing changes.
    pub fn set_restart_policy(&self, policy: Option<RestartPolicy>) -> Result<(), PolicyError> {
        PolicyError::check(policy.as_ref())?;
        *lock(&self.board.configured_policy) = policy;
        Ok(())
    }
}
