//! The creation of a router, in this order:
//!
//! 1. All that can be known to be wrong is refused.
//! 2. The head, the controller and the routees are made, before their first turns.
//! 3. The table is published.
//! 4. The router can be looked up by its path, and the routees begin.
//!
//! So no message meets a router that is incomplete.

use crate::actor::context::Context;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::ByContext;
use crate::actor::spawn::{Plan, spawn_held};
use crate::actor::turn::apply;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::error::SpawnError;
use crate::failure::Failure;
use crate::routing::head::empty_pool::end_if_found_empty;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::head::old_tables::WaitingChanges;
use crate::routing::head::state::{HeadState, Member, Members, check_size};
use crate::routing::logic::RoutingLogic;
use crate::routing::path_group;
use crate::routing::plan::{Initial, MakeRoutee, RouterPlan};
use crate::routing::resizer::trigger::Resizing;
use crate::routing::routees::Routee;
use crate::routing::router::Router;
use crate::routing::routing_ref::SharedRouter;
use crate::sync::Mutex;
use crate::util::panic::drop_guarded;
use std::sync::{Arc as StdArc, OnceLock};

impl<M: Send + 'static, L: RoutingLogic<M>> RouterPlan<M, L> {
    /// Creates the router with its routees: it routes when this returns.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: a pool of size 0 that does not [stay when empty](Self::stay_when_empty) and has no resizer, a
    /// logic or a resizer with invalid settings, an unknown dispatcher of the head or the routees, an invalid path,
    /// [settings](crate::routing::RouterSettings) of the system that the router cannot have, and the errors of
    /// [`ActorBuilder::spawn`](crate::actor::ActorBuilder::spawn). The name is free when this returns, and actors that were
    /// begun end by themselves; where the plan itself is wrong, no actor was begun.
    pub fn spawn(self) -> Result<Router<M>, SpawnError> {
        let parent = match &self.parent {
            Ok(parent) => parent.clone(),
            Err(system) => return Err(SpawnError::ShutDown { system: system.clone() }),
        };
        let system = parent.core().system.clone();
        match system.section(&parent, self.name.as_deref()) {
            Some(section) => self.create_as_said(parent, section),
            None if self.is_from_config => Err(self.unsaid(&parent)),
            None => self.create(parent),
        }
    }

    /// Creates the router as the plan says.
    pub(crate) fn create(self, parent: AnyActorRef) -> Result<Router<M>, SpawnError> {
        self.check(&parent)?;
        // The head state needs the head's reference, and the head needs its head state: so the head's first turn is
        // held back. The first turn comes in any case, also when the logic's code panics below: without a head state
        // the head fails there, and ends.
        let head_state: StdArc<OnceLock<StdArc<HeadState<M, L>>>> = StdArc::default();
        let late = head_state.clone();
        let plan = Plan {
            parent: Ok(parent),
            name: self.name,
            dispatcher: self.head_dispatcher.clone(),
            mailbox: MailboxKind::Unbounded,
            on_failure: self.head_on_failure,
            routee_index: 0,
            stash_capacity: None,
        };
        let recipe = move |_: &mut Context<Manage<M>>| {
            let head_state =
                late.get().cloned().ok_or_else(|| Failure::msg("the router was not completed"))?;
            Ok(Head { head_state, waiting: WaitingChanges::default() })
        };
        let held = spawn_held::<Head<M, L>, _>(plan, ByContext(recipe))?;
        let head = held.actor().any_local();
        // Dropped before `held`: the drop of `held` lets the head begin.
        let unmade = AbortGuard(Some(head.clone()));
        let resizing = self
            .resizer
            .map(|resizer| StdArc::new(Resizing::new(resizer, || apply(Head::<M, L>::triggered))));
        // A pool with a resizer, which the system may have given to it, grows instead of ending.
        let ends_when_found_empty = self.ends_when_found_empty && resizing.is_none();
        let found_empty = ends_when_found_empty.then(end_if_found_empty::<M, L>);
        let shared = StdArc::new(SharedRouter::<M>::new(head.clone(), resizing, found_empty));
        let logic = StdArc::new(self.logic.into_inner());
        let (reference, handed_back) = crate::routing::counted_routing::references(&shared, &logic);
        let controller = self.controller.map(|make| make(&head, self.head_dispatcher, logic.clone()));
        let settings = self.settings;
        let shares_queue = settings.queue.is_some();
        let (size, others, make) = match self.members {
            Initial::Pool { size, make, .. } => {
                let make: StdArc<MakeRoutee<M>> =
                    StdArc::new(move |head: &AnyActorRef, index| make(head, index, &settings));
                (size, Ok(Vec::new()), Some(make))
            }
            Initial::Group(group) => {
                (0, Ok(group.into_iter().map(|routee| routee.for_router(&shared.info)).collect()), None)
            }
            Initial::Paths { paths, fan_out } => {
                (0, path_group::routees(&paths, fan_out, &shared.info), None)
            }
        };
        let size =
            shared.info.resizing.as_ref().map_or(size, |resizing| resizing.initial_size(size, &shared));
        let made = StdArc::new(HeadState {
            shared: shared.clone(),
            logic,
            make,
            members: Mutex::new(Members::none()),
            stays_when_empty: self.stays_when_empty || shared.info.resizing.is_some(),
            shares_queue,
            strategy: self.strategy,
            leave: self.leave,
            old_tables: self.old_tables,
            controller: controller.as_ref().and_then(|made| Some(made.as_ref().ok()?.actor.clone())),
            reference: handed_back,
        });
        let grown = controller.transpose().and_then(|controller| {
            let others: Vec<Routee<M>> = others?;
            let mut routees = made.make(size)?;
            if !others.is_empty() {
                made.publish(others.into_iter().map(|routee| Member { routee, own: false }).collect());
            } else {
                made.publish_with(&mut routees);
            }
            // A look-up by the router's path finds the reference that routes.
            head.core().children.set_front(reference.clone());
            Ok((routees, controller))
        });
        for member in made.list() {
            if let Some(any) = member.routee.watched() {
                let _ = head.send_system(Control::Adopt(any));
            }
        }
        let _ = head_state.set(made);
        match grown {
            Ok((routees, controller)) => {
                unmade.made();
                let head = held.start();
                drop(routees);
                if let Some(controller) = controller {
                    controller.start();
                }
                Ok(Router { reference, head, shared })
            }
            Err(error) => {
                // `unmade` may hold the last share of the user's values, if the head ends at once on another thread. So
                // it is dropped before the error lies where it is returned.
                drop(unmade);
                drop(held);
                drop_guarded(head_state);
                Err(error)
            }
        }
    }

    /// Refuses faults that can be seen before anything is created.
    fn check(&self, parent: &AnyActorRef) -> Result<(), SpawnError> {
        let path = || self.path(parent);
        let system = &parent.core().system;
        if let Some(fault) = self.fault {
            return Err(SpawnError::Logic { path: path(), fault: fault.to_owned() });
        }
        if let Some(resizer) = &self.resizer {
            crate::routing::resizer::apply::check(&***resizer, &self.members, self.settings.queue.is_some())
                .map_err(|fault| SpawnError::Resizer { path: path(), fault })?;
        }
        self.settings.mailbox.check(&path)?;
        self.logic.check().map_err(|fault| SpawnError::Logic { path: path(), fault })?;
        system.check_dispatcher(self.head_dispatcher.as_deref())?;
        system.check_dispatcher(self.settings.dispatcher.as_deref())?;
        match &self.members {
            Initial::Pool { size: 0, .. } if !self.stays_when_empty && self.resizer.is_none() => {
                return Err(SpawnError::EmptyPool { path: path() });
            }
            Initial::Pool { size, check, .. } => {
                check_size(*size, &path)?;
                check(parent, &self.settings, &path)?;
            }
            Initial::Group(_) => {}
            Initial::Paths { paths, fan_out } => path_group::check(paths, *fan_out, parent, &path)?,
        }
        Ok(())
    }
}

/// The head of a router that is not complete yet. Should the creation fail, also by a panic in the user's code, the
/// head stops: without a head state it could only fail, and its supervisor might restart it for ever. Its name is free
/// at once, since the caller has nothing by which to wait for the end.
struct AbortGuard(Option<AnyActorRef>);

impl AbortGuard {
    fn made(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortGuard {
    fn drop(&mut self) {
        if let Some(head) = &self.0 {
            if let Some(parent) = &head.core().parent {
                parent.core().children.hand_name_over(head);
            }
            head.stop();
        }
    }
}
