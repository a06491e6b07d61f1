//! How a router is created.

use super::board::{Board, MakeRoutee, Member, Members};
use super::head::Head;
use super::plan::{Initial, RouterPlan, Settings};
use super::reference::{Routing, Shared};
use super::{Manage, Routee, Router, RoutingLogic};
use crate::actor::{ByContext, Context, Control, MailboxKind, Plan, spawn_held};
use crate::actor_ref::{ActorRef, AnyRef};
use crate::error::SpawnError;
use crate::supervision::Failure;
use crate::sync::Mutex;
use std::sync::{Arc as StdArc, OnceLock};

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
        let recipe = move |_: &mut Context<Manage<M>>| {
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
