//! The actors that this node has made at a peer, by their uids.
//!
//! The table knows nothing of links and cells, so that it is modelled by loom.

use crate::remote::deployment_state::DeploymentState;
use crate::sync::{Arc, HashMap, Mutex, lock};
use std::time::Duration;

/// An actor that this node has made at a peer, as the table knows it.
pub(crate) trait Deployed {
    fn uid(&self) -> u32;

    fn state(&self) -> &DeploymentState;
}

/// The actors that this node has made at a peer.
pub(crate) struct Deployments<D> {
    by_uid: Mutex<HashMap<u32, Arc<D>>>,
}

impl<D: Deployed> Deployments<D> {
    pub(crate) fn new() -> Self {
        Self { by_uid: Mutex::new(HashMap::default()) }
    }

    pub(crate) fn add(&self, deployment: Arc<D>) {
        lock(&self.by_uid).insert(deployment.uid(), deployment);
    }

    pub(crate) fn get(&self, uid: u32) -> Option<Arc<D>> {
        lock(&self.by_uid).get(&uid).cloned()
    }

    pub(crate) fn remove(&self, uid: u32) -> Option<Arc<D>> {
        lock(&self.by_uid).remove(&uid)
    }

    /// Takes all out: the link has ended.
    pub(crate) fn take_all(&self) -> Vec<Arc<D>> {
        std::mem::take(&mut *lock(&self.by_uid)).into_values().collect()
    }

    /// All of them, in the order in which they were made.
    pub(crate) fn all(&self) -> Vec<Arc<D>> {
        let mut all: Vec<_> = lock(&self.by_uid).values().cloned().collect();
        all.sort_unstable_by_key(|deployment| deployment.uid());
        all
    }

    /// Takes those as refused that the peer has not answered in time, and returns them, in the order in which they were made.
    pub(crate) fn refuse_overdue(&self, now: Duration) -> Vec<Arc<D>> {
        let mut overdue = self.all();
        overdue.retain(|deployment| deployment.state().refuse_overdue(now));
        overdue
    }
}
