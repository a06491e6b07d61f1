//! How a router is described and created.

use super::head::{Board, Head, MakeRoutee, Member, Members};
use super::router::{Router, Routing, Shared};
use super::{RoundRobin, Routee, RoutingLogic};
use crate::actor::{
    Actor, ByContext, Context, Control, IntoActor, MailboxChoice, MailboxKind, Plan, spawn_cell, spawn_held,
};
use crate::actor_ref::{ActorRef, AnyRef};
use crate::error::SpawnError;
use crate::supervision::{Failure, Restart, Strategy};
use crate::sync::Mutex;
use std::fmt;
use std::sync::{Arc as StdArc, OnceLock};
use std::time::Duration;

/// Describes a router that is about to be created, by [`SystemRef::router`](crate::SystemRef::router) or
/// [`Context::router`].
#[must_use = "nothing is created before `spawn`"]
#[derive(Debug)]
pub struct RouterBuilder {
    parent: Result<AnyRef, String>,
    name: String,
}

/// A described router of messages `M` with logic `L`.
#[must_use = "nothing is created before `spawn`"]
pub struct RouterPlan<M: Send + 'static, L> {
    parent: Result<AnyRef, String>,
    name: String,
    members: Initial<M>,
    logic: L,
    settings: Settings,
    strategy: Strategy,
    stays_when_empty: bool,
}

/// How a pool's routees run.
#[derive(Clone)]
struct Settings {
    dispatcher: Option<String>,
    mailbox: MailboxKind,
}

type MakeWith<M> = dyn Fn(&AnyRef, u32, &Settings) -> Result<ActorRef<M>, SpawnError> + Send + Sync;

enum Initial<M: Send + 'static> {
    Pool { size: usize, make: StdArc<MakeWith<M>> },
    Group(Vec<ActorRef<M>>),
}

/// Restarts of a failing routee, unless told otherwise.
const RESTARTS: u32 = 3;
const RESTART_WINDOW: Duration = Duration::from_secs(60);

impl RouterBuilder {
    pub(crate) fn new(parent: Result<AnyRef, String>, name: &str) -> Self {
        Self { parent, name: name.to_owned() }
    }

    /// A router that creates its routees: `size` children of its head, each made by `recipe`, again at each
    /// restart.
    ///
    /// The recipe gets the routee's context, unlike that of [`ActorBuilder::spawn`](crate::ActorBuilder::spawn),
    /// and all routees share it: clone what it captures.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// use std::sync::Arc;
    ///
    /// struct Shard {
    ///     index: usize,
    ///     name: Arc<str>,
    /// }
    /// # impl Actor for Shard {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let name: Arc<str> = "fruit".into();
    /// let shards = system
    ///     .router("shards")
    ///     .pool(4, move |ctx| Shard { index: ctx.routee_index(), name: name.clone() })
    ///     .spawn()?;
    /// shards.tell(7u64);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pool<A, I>(
        self,
        size: usize,
        recipe: impl Fn(&mut Context<A::Message>) -> I + Send + Sync + 'static,
    ) -> RouterPlan<A::Message, RoundRobin>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        let recipe = StdArc::new(recipe);
        let make = move |head: &AnyRef, routee_index: u32, settings: &Settings| {
            let plan = Plan {
                parent: Ok(head.clone()),
                name: None,
                dispatcher: settings.dispatcher.clone(),
                mailbox: settings.mailbox.clone(),
                on_failure: None,
                routee_index,
                stash_capacity: None,
            };
            let recipe = recipe.clone();
            spawn_cell::<A, _>(plan, ByContext(move |ctx: &mut Context<A::Message>| recipe(ctx)))
        };
        self.plan(Initial::Pool { size, make: StdArc::new(make) })
    }

    /// A router over references that others made. They are watched, but never stopped by the router; any of
    /// them may itself be a router.
    pub fn group<M: Send + 'static>(
        self,
        routees: impl IntoIterator<Item = ActorRef<M>>,
    ) -> RouterPlan<M, RoundRobin> {
        self.plan(Initial::Group(routees.into_iter().collect()))
    }

    fn plan<M: Send + 'static>(self, members: Initial<M>) -> RouterPlan<M, RoundRobin> {
        RouterPlan {
            parent: self.parent,
            name: self.name,
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

impl<M: Send + 'static, L: RoutingLogic<M>> RouterPlan<M, L> {
    /// Creates the router with its routees: it routes when this returns.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: a pool of size 0, and what is said at
    /// [`ActorBuilder::spawn`](crate::ActorBuilder::spawn). Nothing is left behind, and the name is free once
    /// what was begun has ended.
    pub fn spawn(self) -> Result<Router<M>, SpawnError> {
        let Self { parent, name, members, logic, settings, strategy, stays_when_empty } = self;
        let parent = parent.map_err(|system| SpawnError::ShutDown { system })?;
        check(&parent, &name, &members, &settings, &logic)?;
        // The board needs the head's reference, and the head its board: its first turn is kept back. It comes in
        // any case, also when the logic's code panics below: without a board the head then ends.
        let board: StdArc<OnceLock<StdArc<Board<M, L>>>> = StdArc::default();
        let late = board.clone();
        let plan = Plan {
            parent: Ok(parent),
            name: Some(name),
            dispatcher: None,
            mailbox: MailboxKind::Unbounded,
            on_failure: None,
            routee_index: 0,
            stash_capacity: None,
        };
        let recipe = move |_: &mut Context<super::Manage<M>>| {
            let board = late.get().cloned().ok_or_else(|| Failure::msg("the router was not completed"))?;
            Ok(Head { board })
        };
        let head = spawn_held::<Head<M, L>, _>(plan, ByContext(recipe))?;
        let shared = StdArc::new(Shared::new(head.actor().any_local()));
        let logic = StdArc::new(logic);
        let reference = ActorRef::to_own_recipient(Routing { shared: shared.clone(), logic: logic.clone() });
        // Who looks the router up by its path finds what routes.
        shared.about.head.core().children.set_front(reference.clone());
        let (size, group, make) = match members {
            Initial::Pool { size, make } => {
                let make: StdArc<MakeRoutee<M>> =
                    StdArc::new(move |head: &AnyRef, index| make(head, index, &settings));
                (size, Vec::new(), Some(make))
            }
            Initial::Group(group) => (0, group, None),
        };
        let group = group.into_iter().map(|actor| Member { routee: Routee::new(actor), own: false });
        let mut first = Members { list: group.collect(), next_index: 0, version: 0 };
        let made = Board {
            shared: shared.clone(),
            logic,
            make,
            members: Mutex::new(Members { list: Vec::new(), next_index: 0, version: 0 }),
            stays_when_empty,
            strategy,
            reference: reference.clone(),
        };
        let grown = made.make(&mut first, size).map(|routees| made.publish_with(&mut first, routees));
        for member in &first.list {
            if let Some(any) = member.routee.actor().any() {
                let _ = shared.about.head.send_system(Control::Adopt(any));
            }
        }
        *crate::sync::lock(&made.members) = first;
        let _ = board.set(StdArc::new(made));
        let head = head.start();
        if let Err(error) = grown {
            head.stop();
            return Err(error);
        }
        Ok(Router { reference, head, shared })
    }
}

/// Refuses what can be seen to be wrong before anything is created.
fn check<M: Send + 'static>(
    parent: &AnyRef,
    name: &str,
    members: &Initial<M>,
    settings: &Settings,
    logic: &impl RoutingLogic<M>,
) -> Result<(), SpawnError> {
    let path = || format!("{}/{name}", parent.path().as_str().trim_end_matches('/'));
    if let Initial::Pool { size: 0, .. } = members {
        return Err(SpawnError::EmptyPool { path: path() });
    }
    settings.mailbox.check(&path)?;
    logic.check().map_err(|fault| SpawnError::Logic { path: path(), fault })?;
    parent.core().system.check_dispatcher(settings.dispatcher.as_deref())
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
