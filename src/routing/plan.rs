//! A described router: its settings.

use super::{RoundRobin, RoutingLogic};
use crate::actor::{MailboxChoice, MailboxKind};
use crate::actor_ref::{ActorRef, AnyRef};
use crate::error::SpawnError;
use crate::supervision::{Restart, Strategy};
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A described router of messages `M` with logic `L`.
#[must_use = "nothing is created before `spawn`"]
pub struct RouterPlan<M: Send + 'static, L> {
    pub(super) parent: Result<AnyRef, String>,
    pub(super) name: String,
    pub(super) members: Initial<M>,
    pub(super) logic: L,
    pub(super) settings: Settings,
    pub(super) strategy: Strategy,
    pub(super) stays_when_empty: bool,
}

/// How a pool's routees run.
#[derive(Clone)]
pub struct Settings {
    pub dispatcher: Option<String>,
    pub mailbox: MailboxKind,
}

pub type MakeWith<M> = dyn Fn(&AnyRef, u32, &Settings) -> Result<ActorRef<M>, SpawnError> + Send + Sync;

pub enum Initial<M: Send + 'static> {
    Pool { size: usize, make: StdArc<MakeWith<M>> },
    Group(Vec<ActorRef<M>>),
}

/// Restarts of a failing routee, unless told otherwise.
const RESTARTS: u32 = 3;
const RESTART_WINDOW: Duration = Duration::from_secs(60);

impl<M: Send + 'static> RouterPlan<M, RoundRobin> {
    pub(super) fn new(parent: Result<AnyRef, String>, name: String, members: Initial<M>) -> Self {
        Self {
            parent,
            name,
            members,
            logic: RoundRobin::new(),
            settings: Settings { dispatcher: None, mailbox: MailboxKind::Chosen(None) },
            strategy: Restart::up_to(RESTARTS).within(RESTART_WINDOW).into(),
            stays_when_empty: false,
        }
    }
}

impl<M: Send + 'static, L> RouterPlan<M, L> {
    /// Routes by this logic instead of [`RoundRobin`].
    pub fn logic<N: RoutingLogic<M>>(self, logic: N) -> RouterPlan<M, N> {
        let Self { parent, name, members, logic: _, settings, strategy, stays_when_empty } = self;
        RouterPlan { parent, name, members, logic, settings, strategy, stays_when_empty }
    }

    /// Runs a pool's routees on the dispatcher of this name instead of `"default"`.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.settings.dispatcher = Some(name.to_owned());
        self
    }

    /// Gives a pool's routees this mailbox, or the one that the system knows by this name: as
    /// [`ActorBuilder::mailbox`](crate::ActorBuilder::mailbox).
    pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
        self.settings.mailbox = MailboxKind::Chosen(Some(mailbox.into()));
        self
    }

    /// Says what happens to a failing routee of a pool: by default it is restarted, at most 3 times a minute,
    /// and the others are left alone.
    pub fn on_failure(mut self, strategy: impl Into<Strategy>) -> Self {
        self.strategy = strategy.into();
        self
    }

    /// Keeps the router when its last routee has gone, instead of stopping it.
    pub fn stay_when_empty(mut self) -> Self {
        self.stays_when_empty = true;
        self
    }
}

impl<M: Send + 'static, L> fmt::Debug for RouterPlan<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = match &self.members {
            Initial::Pool { size, .. } => format!("pool of {size}"),
            Initial::Group(group) => format!("group of {}", group.len()),
        };
        f.debug_struct("RouterPlan")
            .field("name", &self.name)
            .field("members", &members)
            .finish_non_exhaustive()
    }
}
