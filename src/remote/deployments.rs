//! The actors that this node has made at a peer, and those that the peer has made here.
//!
//! Each is known by its uid, which the deploying node has chosen. These tables know nothing of links, so that links have them.

use crate::core::any_actor_ref::AnyActorRef;
use crate::remote::control_message::NumberedMessage;
use crate::remote::deploy_message::DeployRequest;
use crate::sync::{HashMap, Mutex, lock};
use crate::util::panic::drop_guarded;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// The time within which a peer answers a request to make an actor.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The state of an actor that this node has asked a peer to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeploymentState {
    /// The peer has not answered since this time of the system's clock.
    Asked(Duration),
    Made,
    /// The peer has refused, or has not answered in time: there is no actor.
    Refused,
}

/// An actor that this node has asked a peer to make.
pub(crate) struct Deployment {
    pub(crate) request: DeployRequest,
    /// The path of the actor at the peer.
    pub(crate) path: String,
    /// The child here that stands in for the actor.
    pub(crate) stand_in: AnyActorRef,
    state: Mutex<DeploymentState>,
    /// The request to leave a router, for which the link had no room.
    leave: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Deployment {
    pub(crate) fn new(request: DeployRequest, path: String, stand_in: AnyActorRef, now: Duration) -> Self {
        let state = Mutex::new(DeploymentState::Asked(now));
        Self { request, path, stand_in, state, leave: Mutex::new(None) }
    }

    /// Keeps a request to leave a router until the link has room.
    pub(crate) fn keep_leave(&self, leave: Box<dyn Any + Send>) {
        let former = lock(&self.leave).replace(leave);
        drop_guarded(former);
    }

    pub(crate) fn take_leave(&self) -> Option<Box<dyn Any + Send>> {
        lock(&self.leave).take()
    }

    pub(crate) fn state(&self) -> DeploymentState {
        *lock(&self.state)
    }

    pub(crate) fn set(&self, state: DeploymentState) {
        *lock(&self.state) = state;
    }

    /// Refuses the deployment if the peer has not answered in time. Returns whether it has not.
    fn is_overdue(&self, now: Duration) -> bool {
        let mut state = lock(&self.state);
        let is_overdue =
            matches!(*state, DeploymentState::Asked(since) if now.saturating_sub(since) >= ANSWER_WITHIN);
        if is_overdue {
            *state = DeploymentState::Refused;
        }
        is_overdue
    }
}

/// The actors that this node has made at a peer.
#[derive(Default)]
pub(crate) struct Deployments {
    by_uid: Mutex<HashMap<u32, Arc<Deployment>>>,
}

impl Deployments {
    pub(crate) fn add(&self, deployment: Arc<Deployment>) {
        lock(&self.by_uid).insert(deployment.request.uid, deployment);
    }

    pub(crate) fn get(&self, uid: u32) -> Option<Arc<Deployment>> {
        lock(&self.by_uid).get(&uid).cloned()
    }

    pub(crate) fn remove(&self, uid: u32) -> Option<Arc<Deployment>> {
        lock(&self.by_uid).remove(&uid)
    }

    /// Takes all out: the link has ended.
    pub(crate) fn take_all(&self) -> Vec<Arc<Deployment>> {
        std::mem::take(&mut *lock(&self.by_uid)).into_values().collect()
    }

    /// All of them, in the order in which they were made.
    pub(crate) fn all(&self) -> Vec<Arc<Deployment>> {
        let mut all: Vec<_> = lock(&self.by_uid).values().cloned().collect();
        all.sort_unstable_by_key(|deployment| deployment.request.uid);
        all
    }

    /// Refuses those that the peer has not answered in time, and returns them, in the order in which they were made.
    pub(crate) fn refuse_overdue(&self, now: Duration) -> Vec<Arc<Deployment>> {
        let mut overdue = self.all();
        overdue.retain(|deployment| deployment.is_overdue(now));
        overdue
    }
}

/// The most messages that wait until a link is active.
pub(crate) const EARLY_MAX: usize = 10_000;

/// The fate of a message that may have to wait until its link is active.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Early {
    Kept,
    /// The link is active: the message is to be sent.
    Active(NumberedMessage),
    /// Too many messages wait.
    Full,
}

/// The messages of the numbered stream that wait until the link is active; `None` once it is.
pub(crate) struct EarlyMessages(Mutex<Option<Vec<NumberedMessage>>>);

impl EarlyMessages {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    /// Keeps a message, unless the link is active.
    pub(crate) fn keep(&self, message: NumberedMessage) -> Early {
        match &mut *lock(&self.0) {
            // A stop that is repeated is one. Suspensions are counted.
            Some(kept)
                if matches!(message, NumberedMessage::Stop { .. }) && kept.last() == Some(&message) =>
            {
                Early::Kept
            }
            Some(kept) if kept.len() >= EARLY_MAX => Early::Full,
            Some(kept) => {
                kept.push(message);
                Early::Kept
            }
            None => Early::Active(message),
        }
    }

    /// Forgets the messages about an actor.
    pub(crate) fn forget(&self, uid: u32) {
        if let Some(kept) = &mut *lock(&self.0) {
            kept.retain(|message| message.deployed_uid() != Some(uid));
        }
    }

    /// The link becomes active: `send` is called with each message, in order, before any later one can be sent.
    pub(crate) fn send_all(&self, send: impl FnMut(NumberedMessage)) {
        let mut kept = lock(&self.0);
        kept.take().into_iter().flatten().for_each(send);
    }
}

/// An actor here that the peer has made.
struct DeployedHere {
    actor: AnyActorRef,
    /// The name of the actor's parent below the guardian of the peer.
    parent: String,
    /// The suspensions that the peer may undo.
    suspensions: u32,
    /// Gives the actor its first turn, for which the peer waits. If this is dropped, the actor ends.
    begin: Option<Begin>,
    /// Whether the actor has been told to leave its router.
    is_leaving: bool,
}

/// Gives an actor its first turn.
pub(crate) type Begin = Box<dyn FnOnce() + Send>;

/// A parent here in place of a parent at the peer.
struct ParentHere {
    actor: AnyActorRef,
    children: usize,
}

/// The actors here that a peer has made.
#[derive(Default)]
pub(crate) struct DeployedTable(Mutex<DeployedLists>);

#[derive(Default)]
struct DeployedLists {
    by_uid: HashMap<u32, DeployedHere>,
    parents: HashMap<String, ParentHere>,
    /// The guardian of all of them.
    guardian: Option<AnyActorRef>,
    has_ended: bool,
}

/// The peer has deployed as many actors here as it may.
pub(crate) struct TooManyDeployed;

impl DeployedTable {
    pub(crate) fn has(&self, uid: u32) -> bool {
        lock(&self.0).by_uid.contains_key(&uid)
    }

    pub(crate) fn get(&self, uid: u32) -> Option<AnyActorRef> {
        lock(&self.0).by_uid.get(&uid).map(|deployed| deployed.actor.clone())
    }

    /// Checks that there is room for one more.
    pub(crate) fn check_room(&self, max: usize) -> Result<(), TooManyDeployed> {
        if lock(&self.0).by_uid.len() < max { Ok(()) } else { Err(TooManyDeployed) }
    }

    /// The parent of this name, which counts one child more. `make` makes the guardian, if there is none, and the parent.
    /// `None` if that cannot be, or the link has ended.
    pub(crate) fn parent(
        &self,
        name: &str,
        make: impl FnOnce(&mut Option<AnyActorRef>) -> Option<AnyActorRef>,
    ) -> Option<AnyActorRef> {
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

    /// Enters an actor, for which the parent has counted one child. `begin` is there if the actor is held back.
    pub(crate) fn enter(&self, actor: AnyActorRef, parent: &str, suspensions: u32, begin: Option<Begin>) {
        let uid = actor.uid();
        let parent = parent.to_owned();
        let deployed = DeployedHere { actor, parent, suspensions, begin, is_leaving: false };
        let former = lock(&self.0).by_uid.insert(uid, deployed);
        drop(former);
    }

    /// Takes out what gives an actor its first turn.
    pub(crate) fn take_begin(&self, uid: u32) -> Option<Begin> {
        lock(&self.0).by_uid.get_mut(&uid)?.begin.take()
    }

    /// The actor of this uid leaves its router. `None` if there is none, or it was told before.
    pub(crate) fn begin_to_leave(&self, uid: u32) -> Option<AnyActorRef> {
        let mut lists = lock(&self.0);
        let deployed = lists.by_uid.get_mut(&uid)?;
        (!std::mem::replace(&mut deployed.is_leaving, true)).then(|| deployed.actor.clone())
    }

    /// An actor has ended. Returns its parent, if that has no other child and is needed no more.
    pub(crate) fn leave(&self, uid: u32) -> Option<AnyActorRef> {
        let ended = lock(&self.0).by_uid.remove(&uid)?;
        self.leave_parent(&ended.parent)
    }

    /// A parent has one child fewer. Returns it, if it has none and is needed no more.
    pub(crate) fn leave_parent(&self, name: &str) -> Option<AnyActorRef> {
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
    pub(crate) fn end(&self) -> Option<AnyActorRef> {
        let mut lists = lock(&self.0);
        lists.has_ended = true;
        let DeployedLists { by_uid, parents, guardian, .. } = &mut *lists;
        let taken = (std::mem::take(by_uid), std::mem::take(parents), guardian.take());
        drop(lists);
        taken.2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::deploy_message::ParentVerdict;

    #[test]
    fn early_messages_are_bounded_kept_in_order_and_sent_once() {
        let early = EarlyMessages::new();
        let stop = |uid| NumberedMessage::Stop { path: "/a".to_owned(), uid };
        let suspend = || NumberedMessage::Verdict { uid: 1, verdict: ParentVerdict::Suspend };
        assert_eq!((early.keep(suspend()), early.keep(suspend())), (Early::Kept, Early::Kept));
        for uid in 2..EARLY_MAX as u32 {
            assert_eq!(early.keep(stop(uid)), Early::Kept);
            // The same again takes no room.
            assert_eq!(early.keep(stop(uid)), Early::Kept);
        }
        assert_eq!(early.keep(stop(0)), Early::Full);
        let mut sent = Vec::new();
        early.send_all(|message| sent.push(message));
        assert_eq!(sent[..2], [suspend(), suspend()]);
        assert!(sent.into_iter().skip(2).eq((2..EARLY_MAX as u32).map(stop)));
        assert_eq!(early.keep(stop(1)), Early::Active(stop(1)));
        early.send_all(|message| panic!("{message:?} is sent again"));
    }
}
