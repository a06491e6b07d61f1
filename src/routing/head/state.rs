//! The head state: the routees and the recipe for more, kept over restarts of the head.

use crate::actor::spawn::Held;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::core::lifecycle::Lifecycle;
use crate::core::strategy::Strategy;
use crate::routing::head::messages::RouteeInfo;
use crate::routing::head::old_tables::{OldTables, WaitingChanges};
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::{HeldBehind, LeavePlan, MakeRoutee, NewRoutee, OldTablesPlan};
use crate::routing::routees::{Routee, Routees};
use crate::routing::routing_ref::SharedRouter;
use crate::sync::{Mutex, lock};
use std::any::Any;
use std::sync::Arc as StdArc;

/// A larger number of routees is a mistake, such as a difference below zero.
pub(crate) const ROUTEES_MAX: usize = 1 << 24;

impl<B: Send + 'static> HeldBehind for Held<B> {
    fn start(self: Box<Self>) {
        Held::start(*self);
    }

    fn skip_unwanted(&mut self, is_wanted: Option<Box<dyn Any>>) {
        if let Some(is_wanted) = is_wanted.and_then(|is_wanted| is_wanted.downcast().ok()) {
            self.skip_unless(*is_wanted);
        }
    }
}

/// The state of a head, kept over its own restarts.
pub(crate) struct HeadState<M: Send + 'static, L> {
    pub shared: StdArc<SharedRouter<M>>,
    pub logic: StdArc<L>,
    /// Makes routees; `None` for a group.
    pub make: Option<StdArc<MakeRoutee<M>>>,
    /// Changed by the head alone.
    pub members: Mutex<Members<M>>,
    pub stays_when_empty: bool,
    /// The routees share a queue, so only the pool can make a routee.
    pub shares_queue: bool,
    pub strategy: Strategy,
    /// The settings for routees that leave.
    pub leave: LeavePlan<M>,
    /// The bounds for tables that were replaced.
    pub old_tables: OldTablesPlan,
    /// The child that is no routee.
    pub controller: Option<AnyActorRef>,
    /// The reference that routes, for the leftovers of a leaving routee.
    pub reference: ActorRef<M>,
}

/// The routees as the head sees them.
pub(crate) struct Members<M: Send + 'static> {
    pub list: Vec<Member<M>>,
    /// The number of the next routee that the pool makes.
    pub next_index: u32,
    pub version: u64,
    /// The router refuses messages and waits for its own routees to end.
    pub is_ending: bool,
    /// The tables that were published.
    pub old_tables: OldTables,
    /// The changes that wait, while the head is restarted; at other times the head has them.
    pub waiting: WaitingChanges<M>,
}

pub(crate) struct Member<M: Send + 'static> {
    pub routee: Routee<M>,
    /// The pool made the routee, so the routee ends when it is removed.
    pub own: bool,
}

impl<M: Send + 'static> Member<M> {
    /// A routee that the pool has made.
    pub(crate) fn new(made: &NewRoutee<M>) -> Self {
        Self { routee: Routee::new(made.actor().clone()), own: true }
    }

    pub(crate) fn into_info(self) -> RouteeInfo<M> {
        let restarts = self.routee.watched().map_or(0, |actor| actor.restarts());
        RouteeInfo { routee: self.routee, is_own: self.own, restarts }
    }
}

impl<M: Send + 'static> Clone for Member<M> {
    fn clone(&self) -> Self {
        Self { routee: self.routee.clone(), own: self.own }
    }
}

impl<M: Send + 'static> Members<M> {
    pub(crate) fn none() -> Self {
        Self {
            list: Vec::new(),
            next_index: 0,
            version: 0,
            is_ending: false,
            old_tables: OldTables::default(),
            waiting: WaitingChanges::default(),
        }
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> HeadState<M, L> {
    /// Returns the routees. No user code runs under the lock: neither code of the routees nor of the logic.
    pub(crate) fn list(&self) -> Vec<Member<M>> {
        lock(&self.members).list.clone()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.members).list.len()
    }

    pub(crate) fn is_ending(&self) -> bool {
        lock(&self.members).is_ending
    }

    /// Makes `count` more routees, or none.
    pub(crate) fn make(&self, count: usize) -> Result<Vec<NewRoutee<M>>, SpawnError> {
        let mut made = Vec::new();
        let Some(make) = &self.make else { return Ok(made) };
        check_size(self.count().saturating_add(count), &|| self.shared.info.head.path().to_string())?;
        made.reserve(count);
        for _ in 0..count {
            let index = {
                let mut members = lock(&self.members);
                let next = members.next_index.wrapping_add(1);
                std::mem::replace(&mut members.next_index, next)
            };
            made.push(make(&self.shared.info.head, index)?);
        }
        Ok(made)
    }

    /// Publishes `list` as the table that senders read from now on. All of the user's code runs before the first step
    /// that can be seen: when the logic's code panics, nothing has changed.
    pub(crate) fn publish(&self, list: Vec<Member<M>>) {
        let routees: Vec<Routee<M>> = list.iter().map(|member| member.routee.clone()).collect();
        let prepared = self.logic.prepare(&routees);
        let index_bytes = prepared.as_deref().map_or(0, |prepared| self.logic.prepared_bytes(prepared));
        let bytes = Routees::<M>::bytes(routees.len()).saturating_add(index_bytes);
        let (former, version, token) = {
            let mut members = lock(&self.members);
            members.version += 1;
            let former = std::mem::replace(&mut members.list, list);
            (former, members.version, members.old_tables.replace(bytes))
        };
        let (from, to) = (former.len(), routees.len());
        self.shared.replace(Routees::new(routees, prepared, version).holding(token));
        drop(former);
        // The first table is no change.
        if from != to && version > 1 {
            let router = || self.shared.info.head.path();
            self.shared.info.system.publish_lifecycle(|| Lifecycle::Resized { router: router(), from, to });
        }
    }

    /// As [`publish`](Self::publish), with routees that are made, and are to be started.
    pub(crate) fn publish_with(&self, made: &[NewRoutee<M>]) {
        let mut list = self.list();
        list.extend(made.iter().map(Member::new));
        self.publish(list);
    }
}

/// Refuses a pool of more routees than there can be.
pub(crate) fn check_size(size: usize, path: &dyn Fn() -> String) -> Result<(), SpawnError> {
    if size > ROUTEES_MAX {
        return Err(SpawnError::PoolTooLarge { path: path(), size, max: ROUTEES_MAX });
    }
    Ok(())
}
