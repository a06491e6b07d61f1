//! The actors here that a peer has made, by their uids, and the actors that are in the place of their parents.
//!
//! The table knows nothing of links and cells, so that it is modelled by loom.

use crate::core::any_actor_ref::AnyActorRef;
use crate::sync::{HashMap, Mutex, lock};
use std::time::Duration;

/// An actor, as the table knows it.
pub(crate) trait TableActor: Clone {
    fn uid(&self) -> u32;
}

impl TableActor for AnyActorRef {
    fn uid(&self) -> u32 {
        AnyActorRef::uid(self)
    }
}

/// An actor here that the peer has made.
struct DeployedHere<A> {
    actor: A,
    /// The name of the actor's parent below the guardian of the peer.
    parent: String,
    /// The suspensions that the peer may undo.
    suspensions: u32,
    /// Gives the actor its first turn, for which the peer waits. If this is dropped, the actor ends.
    begin: Option<Begin>,
    /// Whether the actor has been told to leave its router.
    is_leaving: bool,
    /// The time of the system's clock at which the actor stops, though it may not have left its router by then.
    stops_at: Option<Duration>,
}

/// Gives an actor its first turn.
pub(crate) type Begin = Box<dyn FnOnce() + Send>;

/// A parent here in place of a parent at the peer.
struct ParentHere<A> {
    actor: A,
    children: usize,
}

/// The actors here that a peer has made.
pub(crate) struct DeployedTable<A = AnyActorRef>(Mutex<DeployedLists<A>>);

struct DeployedLists<A> {
    by_uid: HashMap<u32, DeployedHere<A>>,
    parents: HashMap<String, ParentHere<A>>,
    /// The guardian of all of them.
    guardian: Option<A>,
    has_ended: bool,
}

/// The peer has deployed as many actors here as it may.
#[derive(Debug)]
pub(crate) struct TooManyDeployed;

impl<A: TableActor> DeployedTable<A> {
    pub(crate) fn new() -> Self {
        let (by_uid, parents) = (HashMap::default(), HashMap::default());
        Self(Mutex::new(DeployedLists { by_uid, parents, guardian: None, has_ended: false }))
    }

    pub(crate) fn has(&self, uid: u32) -> bool {
        lock(&self.0).by_uid.contains_key(&uid)
    }

    pub(crate) fn get(&self, uid: u32) -> Option<A> {
        lock(&self.0).by_uid.get(&uid).map(|deployed| deployed.actor.clone())
    }

    /// Checks that there is room for one more.
    pub(crate) fn check_room(&self, max: usize) -> Result<(), TooManyDeployed> {
        if lock(&self.0).by_uid.len() < max { Ok(()) } else { Err(TooManyDeployed) }
    }

    /// The parent of this name, which counts one child more. `make` makes the guardian, if there is none, and the parent; a parent
    /// that has left the table may still have the name. `None` if that cannot be, or the link has ended.
    pub(crate) fn parent(&self, name: &str, make: impl FnOnce(&mut Option<A>) -> Option<A>) -> Option<A> {
        let mut lists = lock(&self.0);
        if lists.has_ended {
            return None;
        }
        if !lists.parents.contains_key(name) {
            let actor = make(&mut lists.guardian)?;
            lists.parents.insert(name.to_owned(), ParentHere { actor, children: 0 });
        }
        let parent = lists.parents.get_mut(name)?;
        parent.children += 1;
        Some(parent.actor.clone())
    }

    /// Enters an actor, for which the parent has counted one child. `begin` is there if the actor is held back. Once the link has
    /// ended, the actor ends with its parent.
    pub(crate) fn enter(&self, actor: A, parent: &str, suspensions: u32, begin: Option<Begin>) {
        let (uid, parent) = (actor.uid(), parent.to_owned());
        let mut deployed =
            Some(DeployedHere { actor, parent, suspensions, begin, is_leaving: false, stops_at: None });
        let mut lists = lock(&self.0);
        let former =
            if lists.has_ended { None } else { deployed.take().and_then(|it| lists.by_uid.insert(uid, it)) };
        // An actor that is held back ends without the lock.
        drop(lists);
        drop((former, deployed));
    }

    /// Takes out what gives an actor its first turn.
    pub(crate) fn take_begin(&self, uid: u32) -> Option<Begin> {
        lock(&self.0).by_uid.get_mut(&uid)?.begin.take()
    }

    /// The actor of this uid leaves its router. `None` if there is none, or it was told before.
    pub(crate) fn begin_to_leave(&self, uid: u32) -> Option<A> {
        let mut lists = lock(&self.0);
        let deployed = lists.by_uid.get_mut(&uid)?;
        (!std::mem::replace(&mut deployed.is_leaving, true)).then(|| deployed.actor.clone())
    }

    /// An actor that leaves its router stops at this time.
    pub(crate) fn stop_at(&self, uid: u32, time: Duration) {
        if let Some(deployed) = lock(&self.0).by_uid.get_mut(&uid) {
            deployed.stops_at = Some(time);
        }
    }

    /// Returns the actors that are to stop by now, each once.
    pub(crate) fn take_late(&self, now: Duration) -> Vec<A> {
        let mut lists = lock(&self.0);
        let late = |deployed: &mut DeployedHere<A>| {
            deployed.stops_at.take_if(|time| *time <= now).map(|_| deployed.actor.clone())
        };
        lists.by_uid.values_mut().filter_map(late).collect()
    }

    /// An actor has ended. Returns its parent, if that has no other child and is needed no more.
    pub(crate) fn leave(&self, uid: u32) -> Option<A> {
        let ended = lock(&self.0).by_uid.remove(&uid)?;
        self.leave_parent(&ended.parent)
    }

    /// A parent has one child fewer. Returns it, if it has none and is needed no more.
    pub(crate) fn leave_parent(&self, name: &str) -> Option<A> {
        let mut lists = lock(&self.0);
        let parent = lists.parents.get_mut(name)?;
        parent.children -= 1;
        if parent.children > 0 {
            return None;
        }
        lists.parents.remove(name).map(|parent| parent.actor)
    }

    /// Counts a suspension that the peer may undo.
    pub(crate) fn suspended(&self, uid: u32) {
        if let Some(deployed) = lock(&self.0).by_uid.get_mut(&uid) {
            deployed.suspensions = deployed.suspensions.saturating_add(1);
        }
    }

    /// Counts a suspension as undone. Returns false if there is none that the peer may undo.
    pub(crate) fn resumed(&self, uid: u32) -> bool {
        let mut lists = lock(&self.0);
        let Some(deployed) = lists.by_uid.get_mut(&uid) else { return false };
        let is_suspended = deployed.suspensions > 0;
        deployed.suspensions = deployed.suspensions.saturating_sub(1);
        is_suspended
    }

    /// The link has ended. Returns the guardian of the actors, which is to be stopped.
    pub(crate) fn end(&self) -> Option<A> {
        let mut lists = lock(&self.0);
        lists.has_ended = true;
        let DeployedLists { by_uid, parents, guardian, .. } = &mut *lists;
        let taken = (std::mem::take(by_uid), std::mem::take(parents), guardian.take());
        drop(lists);
        taken.2
    }
}
