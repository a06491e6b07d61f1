//! Routers by the settings of the system for their paths, in code or in a configuration file: a [`MatchedDeployment`]
//! wins over the plan, key by key. A router without a section costs a look-up, and none where the system has no sections
//! at all.
//!
//! Where the section names another logic than the code has, the router is built over `Box<dyn RoutingLogic<M>>`. Files:
//!
//! - `capcapabilities.rs` makes the logics that need more of a message than that it can be sent.
//! - `logic_registry.rs` makes the logics that users have given a name.
//! - `check.rs` refuses faults at the system's start, by the names of `known_names.rs`.
//! - `from_config.rs` has the plans that cannot do without a section.
//! - `settings/section_fault.rs` has the faults of a section.

use crate::routing::settings::check;
use crate::routing::settings::logic_registry::LogicRegistry;
use crate::settings::section_fault::SectionFault;

use crate::actor::mailbox_choice::MailboxKind;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::core::system::{SystemCore, SystemRef};
use crate::mailbox::kind::Mailbox;
use crate::routing::balancing;
use crate::routing::create::HeldRouter;
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::random::Random;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::logics::smallest_mailbox::SmallestMailbox;
use crate::routing::logics::two_choices::TwoChoices;
use crate::routing::plan::{Initial, RouterPlan};
use crate::routing::routees::Routee;
use crate::settings::deployment::{Deployment, MatchedDeployment};
use crate::settings::router::RouterSettings;
use crate::util::panic::Guarded;
use std::sync::Arc as StdArc;

/// A fault, and the key of the router's section that has it.
pub(crate) type Refused = (&'static str, SectionFault);

/// The value of the key `router`.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    FromCode,
    /// A logic of the crate: over the routees of a group, or of a pool.
    Own {
        logic: &'a str,
        group: bool,
    },
    /// A logic that was given a name, over the routees of the code.
    Named(&'a str),
}

/// The names of the crate's logics without their endings.
pub(crate) const LOGIC_NAMES: [&str; 9] = [
    "round-robin",
    "random",
    "balancing",
    "smallest-mailbox",
    "two-choices",
    "broadcast",
    "scatter-gather",
    "tail-chopping",
    "consistent-hashing",
];

/// The logic that makes its routees' queue, so it is no group.
pub(crate) const POOL_ONLY: &str = "balancing";

pub(crate) const FROM_CODE: &str = "from-code";

impl RouterSettings {
    /// The code decides alone, and the section asked for that by name.
    fn leaves_size_to_code(&self) -> bool {
        self.router.as_deref() == Some(FROM_CODE)
    }

    fn has_unheard_size(&self) -> bool {
        let has_resizer = self.resizer.is_some() || self.optimal_size_exploring_resizer.is_some();
        self.leaves_size_to_code() && (self.nr_of_instances.is_some() || has_resizer)
    }
}

impl<'a> Kind<'a> {
    pub(crate) fn of(settings: &'a RouterSettings) -> Self {
        match settings.router.as_deref() {
            None | Some(FROM_CODE) => Self::FromCode,
            Some(name) => Self::own(name).unwrap_or(Self::Named(name)),
        }
    }

    pub(crate) fn own(name: &'a str) -> Option<Self> {
        let (logic, group) = match name.strip_suffix("-group") {
            Some(logic) => (logic, true),
            None => (name.strip_suffix("-pool")?, false),
        };
        let is_known = LOGIC_NAMES.contains(&logic) && !(group && logic == POOL_ONLY);
        is_known.then_some(Self::Own { logic, group })
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> RouterPlan<M, L> {
    /// Creates the router by the settings of the system.
    pub(crate) fn create_as_said(
        mut self,
        parent: AnyActorRef,
        section: &MatchedDeployment,
    ) -> Result<HeldRouter<M>, SpawnError> {
        let path = self.path(&parent);
        #[cfg(feature = "remote")]
        section.check_is_here(&parent, || path.clone())?;
        if section.deployment.router.has_unheard_size() {
            log::warn!(
                target: "pointsman",
                "the size and the resizer at {} have no effect on {path}: its kind of router is {FROM_CODE:?}, leave \
                 them out or name another kind",
                key_path(&section.pattern, "router")
            );
        }
        match self.follow(&section.deployment, &parent.core().system) {
            Ok(None) => self.create(parent),
            Ok(Some(other)) => self.map_logic(|coded| Box::new(coded).replaced_by(other)).create(parent),
            Err((key, fault)) => {
                Err(SpawnError::Section { path, key: key_path(&section.pattern, key), fault })
            }
        }
    }

    /// Takes over the settings. Returns the logic that is to take the place of the coded logic.
    fn follow(
        &mut self,
        says: &Deployment,
        system: &StdArc<SystemCore>,
    ) -> Result<Option<Box<dyn RoutingLogic<M>>>, Refused> {
        let kind = Kind::of(&says.router);
        if self.is_from_config && matches!(kind, Kind::FromCode) {
            return Err(("router", SectionFault::FromCode));
        }
        self.follow_about_routees(says, kind)?;
        self.follow_about_head(&says.router);
        let other = self.other_logic(kind, &says.router, system)?;
        self.follow_about_queue(&says.router, system)?;
        if other.is_none() {
            self.logic.configure(&says.router);
        }
        if let (true, Kind::Named(name)) = (self.leaves_routees_to_logic(says), kind) {
            self.take_routees_of_logic(name, other.as_deref(), system)?;
        }
        Ok(other)
    }

    /// Whether neither the code nor the section names the routees.
    fn leaves_routees_to_logic(&self, says: &Deployment) -> bool {
        let is_pool = matches!(self.members, Initial::Pool { .. });
        self.is_from_config && !is_pool && says.router.routees_paths.is_none()
    }

    /// Takes the routees that a logic of the user's own makes itself. Called last, since they are made here.
    fn take_routees_of_logic(
        &mut self,
        name: &str,
        other: Option<&dyn RoutingLogic<M>>,
        system: &StdArc<SystemCore>,
    ) -> Result<(), Refused> {
        let system = SystemRef::new(system.clone());
        let made = match other {
            Some(other) => other.own_routees(&system),
            None => self.logic.own_routees(&system),
        };
        match made {
            Ok(Some(routees)) => {
                self.members = Initial::Group(routees.into_iter().map(Routee::new).collect());
                Ok(())
            }
            Ok(None) => Err(("routees.paths", SectionFault::NoPaths { name: name.to_owned() })),
            Err(fault) => Err(("router", SectionFault::Refused { name: name.to_owned(), fault })),
        }
    }

    fn follow_about_head(&mut self, says: &RouterSettings) {
        if let Some(name) = &says.head_dispatcher {
            self.head_dispatcher = Some(name.clone());
        }
        self.leave.within = says.leave_within.or(self.leave.within);
        self.stays_when_empty = says.stay_when_empty.unwrap_or(self.stays_when_empty);
        self.ends_when_found_empty &= says.stay_when_empty.is_none();
    }

    fn follow_about_routees(&mut self, says: &Deployment, kind: Kind<'_>) -> Result<(), Refused> {
        let name = || says.router.router.clone().unwrap_or_default();
        let is_pool = matches!(self.members, Initial::Pool { .. });
        let becomes_pool = match kind {
            Kind::Own { group, .. } => !group,
            Kind::FromCode | Kind::Named(_) => is_pool,
        };
        match (&says.router.routees_paths, &self.members) {
            _ if becomes_pool && !is_pool => return Err(("router", SectionFault::NoRecipe { name: name() })),
            _ if becomes_pool => self.follow_about_pool(says),
            (Some(paths), members) => {
                let fan_out = match members {
                    Initial::Paths { fan_out: Some(fan_out), .. } => Some(*fan_out),
                    _ => self.capabilities.fan_out,
                };
                self.members = Initial::Paths { paths: paths.clone(), fan_out };
                // The resizer was that of the pool.
                self.resizer = if is_pool { None } else { self.resizer.take() };
            }
            // Perhaps the logic makes the routees; it is not made yet.
            (None, _) if matches!(kind, Kind::Named(_)) && !is_pool => {}
            (None, _) if is_pool || self.is_from_config => {
                return Err(("routees.paths", SectionFault::NoPaths { name: name() }));
            }
            (None, _) => {}
        }
        #[cfg(feature = "remote")]
        if let Some(nodes) = &says.router.target_nodes {
            if !becomes_pool || !self.settings.nodes.is_deployable {
                return Err(("target.nodes", SectionFault::NotDeployable { nodes: nodes.clone() }));
            }
            self.settings.nodes.replace(nodes);
        }
        Ok(())
    }

    fn follow_about_pool(&mut self, says: &Deployment) {
        let is_size_coded = says.router.leaves_size_to_code();
        if let (Initial::Pool { size, .. }, Some(count), false) =
            (&mut self.members, says.router.nr_of_instances, is_size_coded)
        {
            *size = count;
        }
        let settings = &mut self.settings;
        let coded = settings.dispatcher.take();
        settings.dispatcher = says.dispatcher.clone().or(coded).or(says.router.pool_dispatcher.clone());
        if let Some(name) = &says.mailbox {
            settings.mailbox = MailboxKind::named(name);
        }
        settings.stash_capacity = says.stash_capacity.or(settings.stash_capacity);
        settings.class = says.class.clone().or(settings.class.take());
        if let (Some(resizer), false) = (check::resizer(&says.router), is_size_coded) {
            self.resizer = resizer.map(Guarded::new);
        }
    }

    /// Ignored by routers whose routees share no queue.
    fn follow_about_queue(&mut self, says: &RouterSettings, system: &SystemCore) -> Result<(), Refused> {
        if let (Some(name), Some(queue)) = (&says.queue, &mut self.settings.queue) {
            let refuse = |fault| ("queue", SectionFault::Queue(fault));
            *queue = system.named_mailbox(name).map_err(refuse)?;
            balancing::check_queue(queue).map_err(refuse)?;
        }
        Ok(())
    }

    fn other_logic(
        &mut self,
        kind: Kind<'_>,
        says: &RouterSettings,
        system: &SystemCore,
    ) -> Result<Option<Box<dyn RoutingLogic<M>>>, Refused> {
        let name = match kind {
            Kind::FromCode => return Ok(None),
            Kind::Own { logic, .. } => logic,
            Kind::Named(name) => name,
        };
        if self.logic.name() == Some(name) {
            return Ok(None);
        }
        let asked = || says.router.clone().unwrap_or_default();
        if self.settings.queue.is_some() {
            return Err(("router", SectionFault::SharedQueue { name: asked() }));
        }
        if self.controller.is_some() {
            return Err(("router", SectionFault::Controller { name: asked() }));
        }
        if self.settings.are_behind && matches!(kind, Kind::Own { logic: POOL_ONLY, .. }) {
            return Err(("router", SectionFault::BareMessages { name: asked() }));
        }
        let missing = |method| ("router", SectionFault::Capability { name: asked(), method });
        let mut logic: Box<dyn RoutingLogic<M>> = match kind {
            Kind::Named(name) => system
                .extensions
                .get::<LogicRegistry>()
                .make(name, says)
                .map_err(|fault| ("router", fault))?,
            _ => match name {
                "round-robin" => Box::new(RoundRobin::new()),
                "random" => Box::new(Random::new()),
                "smallest-mailbox" => Box::new(SmallestMailbox::new()),
                "two-choices" => Box::new(TwoChoices::new()),
                "balancing" => self.balance().ok_or_else(|| missing("balancing_pool"))?,
                "broadcast" => self.capabilities.broadcast.ok_or_else(|| missing("cloneable"))?(),
                "scatter-gather" => self.capabilities.scatter_gather.ok_or_else(|| missing("answerable"))?(),
                "tail-chopping" => self.capabilities.tail_chopping.ok_or_else(|| missing("answerable"))?(),
                "consistent-hashing" => self.capabilities.hashing.take().ok_or_else(|| missing("keyed"))?(),
                other => unreachable!("{other:?} is among the names and has no logic"),
            },
        };
        logic.configure(says);
        Ok(Some(logic))
    }

    /// Makes the pool's routees share one queue.
    fn balance(&mut self) -> Option<Box<dyn RoutingLogic<M>>> {
        let Initial::Pool { make, .. } = &mut self.members else { return None };
        let (sharing, logic) = balancing::sharing(make.clone());
        *make = sharing;
        self.settings.queue = Some(Mailbox::unbounded());
        Some(Box::new(logic))
    }

    /// The error of a router that needs a section and has none.
    pub(crate) fn unsaid(&self, parent: &AnyActorRef) -> SpawnError {
        let path = self.path(parent);
        // The path without the guardian.
        let pattern = path.splitn(3, '/').nth(2).map_or_else(|| path.clone(), |rest| format!("/{rest}"));
        SpawnError::Section { key: key_path(&pattern, "router"), path, fault: SectionFault::FromCode }
    }
}

/// Returns a key of a router's section, with the keys around it.
pub(crate) fn key_path(pattern: &str, key: &str) -> String {
    format!("deployment.{pattern:?}.router.{key}")
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::actor::actor::{Actor, HandlerResult};
    use crate::actor::context::Context;
    use crate::routing::builder::RouterBuilder;
    use crate::settings::deployment::Deployment;
    use crate::settings::router::RouterSettings;
    use crate::system::System;

    struct Worker;

    impl Actor for Worker {
        type Message = u64;
        fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
            Ok(())
        }
    }

    #[test]
    fn sections_apply_under_both_guardians() {
        let says = Deployment::new().router(RouterSettings::new().nr_of_instances(3));
        let system = System::builder("both").deploy("/router", says).build().expect("sound settings");
        for guardian in [system.core().user(), system.core().system_guardian()] {
            let parent = guardian.expect("it lives").path().to_string();
            let builder = match parent.as_str() {
                "/user" => system.router("router"),
                _ => RouterBuilder::new(system.core().system_guardian(), Some("router")),
            };
            let router = builder.pool(1, |_| Worker).spawn().expect("a router");
            assert_eq!(router.routees().expect("an answer").len(), 3, "{parent}");
        }
    }
}
