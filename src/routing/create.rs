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
#[cfg(feature = "remote")]
use crate::actor::spawn::spawn_deployed;
use crate::actor::spawn::{ClassChoice, Held, Plan, spawn_held};
use crate::actor::turn::apply;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::error::SpawnError;
#[cfg(feature = "remote")]
use crate::routing::deployed_head::{DeployedHead, DeployedRecipe};
use crate::routing::head::controller::HeldController;
use crate::routing::head::empty_pool::end_if_found_empty;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::head::old_tables::WaitingChanges;
use crate::routing::head::state::{HeadState, Member, Members, check_size};
use crate::routing::logic::RoutingLogic;
use crate::routing::path_group;
use crate::routing::plan::{Initial, MakeRoutee, NewRoutee, RouteeSettings, RouterPlan};
use crate::routing::resizer::trigger::Resizing;
use crate::routing::routees::Routee;
use crate::routing::router::Router;
use crate::routing::router_view::ViewOfRouter;
use crate::routing::routing_ref::SharedRouter;
use crate::sync::Mutex;
use crate::telemetry::router_stats::ShownRouter;
use crate::util::panic::Guarded;
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
        self.hold().map(HeldRouter::start)
    }

    /// As [`spawn`](Self::spawn), before the first turns of the head and of the routees.
    pub(crate) fn hold(self) -> Result<HeldRouter<M>, SpawnError> {
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
    pub(crate) fn create(mut self, parent: AnyActorRef) -> Result<HeldRouter<M>, SpawnError> {
        self.check(&parent)?;
        // Guarded, as the logic below: after a refusal this may be the last to have what is the user's, if the head ends at
        // once on another thread.
        let late = Guarded::new(LateState::default());
        let head = self.hold_head(parent, &late)?;
        let shared = self.share(head.actor().any_local());
        let logic = Guarded::new(StdArc::new(self.logic.into_inner()));
        let (reference, handed_back) = crate::routing::counted_routing::references(&shared, &logic);
        let controller =
            self.controller.map(|make| make(&shared.info.head, self.head_dispatcher, StdArc::clone(&logic)));
        let controller = controller.transpose()?;
        let shares_queue = self.settings.queue.is_some();
        let (size, others, make) = self.members.begin(self.settings, &shared)?;
        let head_state = late.get_or_init(|| {
            StdArc::new(HeadState {
                shared: shared.clone(),
                logic: StdArc::clone(&logic),
                make,
                members: Mutex::new(Members::none()),
                stays_when_empty: self.stays_when_empty || shared.info.resizing.is_some(),
                shares_queue,
                strategy: self.strategy,
                leave: self.leave,
                old_tables: self.old_tables,
                controller: controller.as_ref().map(|made| made.actor.clone()),
                reference: handed_back,
            })
        });
        let routees = head_state.make(size)?;
        let others = others.into_iter().map(|routee| Member { routee, own: false });
        head_state.publish(others.chain(routees.iter().map(Member::new)).collect());
        // A look-up of the router's path finds the reference that routes.
        shared.info.head.core().children.set_front(reference.clone());
        let logic_name = logic.name().unwrap_or(std::any::type_name::<L>()).to_owned();
        let view = StdArc::new(ViewOfRouter { shared: shared.clone(), logic: logic_name });
        shared.info.head.core().children.set_view(ShownRouter(view));
        for actor in head_state.list().iter().filter_map(|member| member.routee.watched()) {
            let _ = shared.info.head.send_system(Control::Adopt(actor));
        }
        Ok(HeldRouter { reference, head, shared, routees, controller })
    }

    /// Creates the head, which ends, should the router come to nothing, also by a panic in the user's code.
    ///
    /// The head state needs the head's reference, and the head its head state: so the head begins when it is there.
    fn hold_head(
        &mut self,
        parent: AnyActorRef,
        late: &LateState<M, L>,
    ) -> Result<Held<Manage<M>>, SpawnError> {
        let plan = Plan {
            parent: Ok(parent),
            name: self.name.take(),
            dispatcher: self.head_dispatcher.clone(),
            mailbox: MailboxKind::Unbounded,
            on_failure: self.head_on_failure.take(),
            routee_index: 0,
            stash_capacity: None,
            class: ClassChoice::OfPath,
        };
        let late = late.clone();
        let recipe = move |_: &mut Context<Manage<M>>| {
            let head_state = late.get().expect("the router is whole when its head begins").clone();
            Head { head_state, waiting: WaitingChanges::default() }
        };
        #[cfg(feature = "remote")]
        if let Some(DeployedHead { uid, suspensions, restarts }) = self.deployed.take() {
            let recipe = DeployedRecipe { recipe: ByContext(recipe), restarts };
            let mut head = spawn_deployed::<Head<M, L>, _>(plan, uid, recipe)?;
            head.suspend(suspensions);
            return Ok(head);
        }
        spawn_held::<Head<M, L>, _>(plan, ByContext(recipe))
    }

    /// Makes the state that the router's reference and its head share.
    fn share(&mut self, head: AnyActorRef) -> StdArc<SharedRouter<M>> {
        let resizing = self
            .resizer
            .take()
            .map(|resizer| StdArc::new(Resizing::new(resizer, || apply(Head::<M, L>::triggered))));
        // A pool with a resizer, which the system may have given to it, grows instead of ending.
        let ends_when_found_empty = self.ends_when_found_empty && resizing.is_none();
        let found_empty = ends_when_found_empty.then(end_if_found_empty::<M, L>);
        StdArc::new(SharedRouter::new(head, resizing, found_empty))
    }

    /// Refuses faults that can be seen before anything is created.
    fn check(&self, parent: &AnyActorRef) -> Result<(), SpawnError> {
        let path = || self.path(parent);
        let system = &parent.core().system;
        if let Some(fault) = self.fault {
            return Err(SpawnError::Logic { path: path(), fault: fault.to_owned() });
        }
        if let Some(resizer) = &self.resizer {
            let shares_queue = self.settings.queue.is_some();
            crate::routing::resizer::apply::check(&***resizer, &self.members, shares_queue, &path)?;
        }
        self.settings.mailbox.check(&path)?;
        self.logic.check().map_err(|fault| SpawnError::Logic { path: path(), fault: fault.to_string() })?;
        system.check_dispatcher(self.head_dispatcher.as_deref())?;
        #[cfg(feature = "remote")]
        let is_of_others = self.settings.nodes.are_all_elsewhere(parent);
        #[cfg(not(feature = "remote"))]
        let is_of_others = false;
        if !is_of_others {
            system.check_dispatcher(self.settings.dispatcher.as_deref())?;
        }
        #[cfg(feature = "remote")]
        self.settings.check_nodes(parent).map_err(|fault| SpawnError::Deploy { path: path(), fault })?;
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

/// A router that is whole, before the first turns of its head and routees. If this is dropped, they end.
#[must_use = "a router that is not started ends"]
pub(crate) struct HeldRouter<M: Send + 'static> {
    reference: ActorRef<M>,
    pub(crate) head: Held<Manage<M>>,
    shared: StdArc<SharedRouter<M>>,
    routees: Vec<NewRoutee<M>>,
    controller: Option<HeldController>,
}

impl<M: Send + 'static> HeldRouter<M> {
    /// Gives the head and the routees their first turns.
    pub(crate) fn start(self) -> Router<M> {
        let Self { reference, head, shared, routees, controller } = self;
        let head = head.start();
        routees.into_iter().for_each(NewRoutee::start);
        if let Some(controller) = controller {
            controller.held.start();
        }
        Router { reference, head, shared }
    }
}

/// The head state, which comes when there is a head.
type LateState<M, L> = StdArc<OnceLock<StdArc<HeadState<M, L>>>>;

impl<M: Send + 'static> Initial<M> {
    /// How many routees are to be made, those that exist, and how more are made.
    fn begin(
        self,
        settings: RouteeSettings,
        shared: &SharedRouter<M>,
    ) -> Result<FirstMembers<M>, SpawnError> {
        let info = &shared.info;
        Ok(match self {
            Self::Pool { size, make, .. } => {
                let size =
                    info.resizing.as_ref().map_or(size, |resizing| resizing.initial_size(size, shared));
                let make: StdArc<MakeRoutee<M>> =
                    StdArc::new(move |head: &AnyActorRef, index| make(head, index, &settings));
                (size, Vec::new(), Some(make))
            }
            Self::Group(group) => {
                (0, group.into_iter().map(|routee| routee.for_router(info)).collect(), None)
            }
            Self::Paths { paths, fan_out } => (0, path_group::routees(&paths, fan_out, info)?, None),
        })
    }
}

type FirstMembers<M> = (usize, Vec<Routee<M>>, Option<StdArc<MakeRoutee<M>>>);
