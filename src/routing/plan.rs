//! A router plan: the description of a router before it is created.

use crate::actor::actor::Actor;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::spawn::{ClassChoice, Held, Plan};
use crate::ask::fork::Answerable;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::core::strategy::Strategy;
use crate::mailbox::kind::{Mailbox, MailboxChoice};
#[cfg(feature = "remote")]
use crate::routing::deployed_head::DeployedHead;
use crate::routing::head::controller::HeldController;
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::path_routee::FanOut;
#[cfg(feature = "remote")]
use crate::routing::pool_nodes::PoolNodes;
use crate::routing::resizer::resizer::Resizer;
use crate::routing::routees::Routee;
use crate::util::panic::Guarded;
use std::any::Any;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A described router of messages `M` with logic `L`.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::SmallestMailbox;
/// use std::time::Duration;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo")
///     .dispatcher("heavy", Dispatcher::blocking().thread_range(1..=8))
///     .build()?;
/// let workers = system
///     .router("workers")
///     .pool(4, |_| Worker)
///     .logic(SmallestMailbox::new())
///     .dispatcher("heavy")
///     .mailbox(Mailbox::bounded(1000).on_full(OverflowPolicy::Reject))
///     .on_failure(Strategy::default().max_restarts(10).within(Duration::from_secs(60)))
///     .leave_within(Duration::from_secs(5))
///     .stay_when_empty()
///     .spawn()?;
/// workers.tell(7u64);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is created before `spawn`"]
pub struct RouterPlan<M: Send + 'static, L> {
    pub(crate) parent: Result<AnyActorRef, String>,
    /// `None`: the system generates a name.
    pub(crate) name: Option<String>,
    pub(crate) members: Initial<M>,
    pub(crate) logic: Guarded<L>,
    pub(crate) settings: RouteeSettings,
    pub(crate) strategy: Strategy,
    pub(crate) stays_when_empty: bool,
    /// The router stays when it is empty, until a message finds it empty.
    pub(crate) ends_when_found_empty: bool,
    pub(crate) head_dispatcher: Option<String>,
    /// Decides about failures of the head, instead of the strategy of its parent.
    pub(crate) head_on_failure: Option<Strategy>,
    pub(crate) leave: LeavePlan<M>,
    pub(crate) old_tables: OldTablesPlan,
    pub(crate) controller: Option<Box<MakeController<L>>>,
    /// The fault of a method that was called in an invalid order.
    pub(crate) fault: Option<&'static str>,
    pub(crate) resizer: Option<Guarded<Box<dyn Resizer>>>,
    pub(crate) capabilities: Capcapabilities<M>,
    /// The settings of the system must name the kind of router.
    pub(crate) is_from_config: bool,
    /// The head as another node has asked for it.
    #[cfg(feature = "remote")]
    pub(crate) deployed: Option<DeployedHead>,
}

/// The settings of a pool's routees from the code. The settings from the system are in
/// [`RouterSettings`](crate::routing::RouterSettings) and its deployment.
#[derive(Clone)]
pub(crate) struct RouteeSettings {
    pub dispatcher: Option<String>,
    pub mailbox: MailboxKind,
    pub stash_capacity: Option<u32>,
    /// The class of the routees; `None`: the class of the head.
    pub class: Option<String>,
    /// The queue that the routees of a balancing pool share.
    pub queue: Option<Mailbox>,
    /// The routees are named by their numbers, `r0` and so on; otherwise their names are generated.
    pub are_numbered: bool,
    /// The routees take other messages than the router: each is behind another reference ([`NewRoutee::Behind`]).
    pub are_behind: bool,
    /// The nodes of the routees.
    #[cfg(feature = "remote")]
    pub nodes: PoolNodes,
}

impl RouteeSettings {
    /// The plan of the routee of this number.
    pub(crate) fn plan(&self, head: &AnyActorRef, routee_index: u32) -> Plan {
        let name = self.are_numbered.then(|| format!("r{routee_index}"));
        #[cfg(feature = "remote")]
        let name = self.nodes.of(routee_index).map(|(_, name)| name).or(name);
        Plan {
            parent: Ok(head.clone()),
            name,
            dispatcher: self.dispatcher.clone(),
            mailbox: self.mailbox.clone(),
            on_failure: None,
            routee_index,
            stash_capacity: self.stash_capacity,
            class: self.class.clone().map_or_else(|| ClassChoice::made_by(head), ClassChoice::Named),
        }
    }

    /// Refuses faults that can be known of routees of type `A` and their mailboxes.
    pub(crate) fn check<A: Actor>(
        &self,
        parent: &AnyActorRef,
        path: &dyn Fn() -> String,
    ) -> Result<(), SpawnError> {
        let system = &parent.core().system;
        if system.has_deployments() {
            // The routees may choose another mailbox.
            return Ok(());
        }
        self.mailbox.choose::<A>(system, self.dispatcher.as_deref(), path).map(drop)
    }
}

pub(crate) type MakeWith<M> =
    dyn Fn(&AnyActorRef, u32, &RouteeSettings) -> Result<NewRoutee<M>, SpawnError> + Send + Sync;

/// Refuses faults that can be known of routees before there is one. Gets the parent of the head.
pub(crate) type CheckRoutee =
    fn(&AnyActorRef, &RouteeSettings, &dyn Fn() -> String) -> Result<(), SpawnError>;

pub(crate) enum Initial<M: Send + 'static> {
    Pool { size: usize, make: StdArc<MakeWith<M>>, check: CheckRoutee },
    Group(Vec<Routee<M>>),
    Paths { paths: Vec<String>, fan_out: Option<FanOut<M>> },
}

/// The restarts of a failing routee by default.
const RESTARTS: u32 = 3;
const RESTART_WINDOW: Duration = Duration::from_secs(60);

impl<M: Send + 'static> RouterPlan<M, RoundRobin> {
    pub(crate) fn new(
        parent: Result<AnyActorRef, String>,
        name: Option<String>,
        members: Initial<M>,
    ) -> Self {
        Self {
            parent,
            name,
            members,
            logic: Guarded::new(RoundRobin::new()),
            settings: RouteeSettings {
                dispatcher: None,
                mailbox: MailboxKind::Chosen(None),
                stash_capacity: None,
                class: None,
                queue: None,
                are_numbered: false,
                are_behind: false,
                #[cfg(feature = "remote")]
                nodes: PoolNodes::default(),
            },
            strategy: Strategy::default().max_restarts(RESTARTS).within(RESTART_WINDOW),
            stays_when_empty: false,
            ends_when_found_empty: false,
            head_dispatcher: None,
            head_on_failure: None,
            leave: LeavePlan::default(),
            old_tables: OldTablesPlan::default(),
            controller: None,
            fault: None,
            resizer: None,
            capabilities: Capcapabilities::default(),
            is_from_config: false,
            #[cfg(feature = "remote")]
            deployed: None,
        }
    }
}

/// A plan's logic in whose place another may be chosen: that with which pools and groups begin.
#[diagnostic::on_unimplemented(
    message = "a router that routes by `{Self}` takes no other logic",
    label = "its logic is chosen already",
    note = "a balancing pool has a queue that its routees share, and no logic: `pool` makes a pool for this one; \
            otherwise call `logic` once"
)]
pub trait ReplaceableLogic {}

impl ReplaceableLogic for RoundRobin {}

impl<M: Send + 'static, L> RouterPlan<M, L> {
    /// Routes by this logic instead of [`RoundRobin`].
    pub fn logic<N: RoutingLogic<M>>(self, logic: N) -> RouterPlan<M, N>
    where
        L: ReplaceableLogic,
    {
        self.map_logic(|_| logic)
    }

    /// The same plan with the logic that `change` makes of its logic.
    pub(crate) fn map_logic<N>(self, change: impl FnOnce(L) -> N) -> RouterPlan<M, N> {
        let fault =
            self.controller.map(|_| "a controller was given before it: call `controller` after `logic`");
        RouterPlan {
            parent: self.parent,
            name: self.name,
            members: self.members,
            logic: Guarded::new(change(self.logic.into_inner())),
            settings: self.settings,
            strategy: self.strategy,
            stays_when_empty: self.stays_when_empty,
            ends_when_found_empty: self.ends_when_found_empty,
            head_dispatcher: self.head_dispatcher,
            head_on_failure: self.head_on_failure,
            leave: self.leave,
            old_tables: self.old_tables,
            controller: None,
            fault: fault.or(self.fault),
            resizer: self.resizer,
            capabilities: self.capabilities,
            is_from_config: self.is_from_config,
            #[cfg(feature = "remote")]
            deployed: self.deployed,
        }
    }

    /// Returns the path of the router below this parent; a generated name is not known yet.
    pub(crate) fn path(&self, parent: &AnyActorRef) -> String {
        format!("{}/{}", parent.path().as_str().trim_end_matches('/'), self.shown_name())
    }

    /// Returns the name, or the word that errors use before a name is generated.
    pub(crate) fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or("$")
    }

    /// Runs a pool's routees on the dispatcher of this name instead of `"default"`.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.settings.dispatcher = Some(name.to_owned());
        self
    }

    /// Gives a pool's routees this mailbox, or the one that the system knows by this name: as
    /// [`ActorBuilder::mailbox`](crate::actor::ActorBuilder::mailbox).
    pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
        self.settings.mailbox = MailboxKind::Chosen(Some(mailbox.into()));
        self
    }

    /// Runs the router's head on the dispatcher of this name instead of `"default"`, whatever the dispatcher of the
    /// routees. No message passes through the head: this is for management that must not wait behind other actors.
    pub fn head_dispatcher(mut self, name: &str) -> Self {
        self.head_dispatcher = Some(name.to_owned());
        self
    }

    /// Decides about a failing routee of a pool: by default it is restarted, at most 3 times a minute, and the others
    /// are left alone. A restart keeps the routee in its place: same reference, mailbox and number.
    ///
    /// This is the only place for it: routees have no builder of their own, and routees added from elsewhere are judged
    /// by their own parents. A routee that fails while it is made is stopped, unless a [decider](Strategy::decide) says
    /// otherwise.
    ///
    /// A routee that is stopped, for instance beyond its restart limit, leaves the table, and no routee takes its
    /// place: the pool is smaller by a routee until it is [resized](super::Router::resize_to) or its
    /// [resizer](Self::resizer) grows it. When the last routee has stopped the pool ends, unless it [stays when
    /// empty](Self::stay_when_empty) or has a resizer.
    ///
    /// With [`Strategy::escalate`], Akka's default, the head fails with the same cause, and its parent decides for the
    /// router as a whole. A resume lets all routees go on, the failing one with its state. A restart keeps the list and
    /// restarts every routee in its place. A stop ends the router. Meanwhile all own routees pause, and messages are
    /// routed into their mailboxes. The strategy of the parent for the router limits such restarts.
    pub fn on_failure(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Bounds the time in which a removed routee of a pool handles its mailbox; unbounded by default. After that time
    /// the routee stops after its current message, and its leftovers are routed again. With zero it does so at once. In
    /// a router that [drains](super::Router::drain), the leftovers are dead letters.
    ///
    /// Costs one timer for each routee that leaves; it waits until it is due even if the routee has ended.
    pub fn leave_within(mut self, deadline: Duration) -> Self {
        self.leave.within = Some(deadline);
        self
    }

    /// Tells a pool's routee by a message that it has been removed, instead of ending it. The routee gets the message
    /// that `make` makes as its last message from the router, and is to [stop](crate::Context::stop) itself when it is
    /// done. It handles later arrivals as long as it runs; the leftovers in its mailbox are then routed again.
    ///
    /// A routee that never stops keeps a draining router from ending, unless there is a [deadline](Self::leave_within).
    /// When `make` panics, no routee is removed.
    pub fn farewell(mut self, make: impl Fn() -> M + Send + Sync + 'static) -> Self {
        let make = Guarded::new(make);
        self.leave.farewell = Some(StdArc::new(move || (*make)()));
        self
    }

    /// Has a pool's routees skip unwanted messages when their turn comes, as
    /// [`Context::skip_unwanted`](crate::Context::skip_unwanted) does: requests whose asker has gone, the
    /// copies of a request that another routee has answered
    /// ([`ScatterGatherFirstCompleted`](crate::routing::ScatterGatherFirstCompleted),
    /// [`TailChopping`](crate::routing::TailChopping)), and [`Expiring`](crate::ask::Expiring) messages whose time is over.
    /// The routees of a group decide that themselves: for a group this is an error of `spawn`.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::ScatterGatherFirstCompleted;
    /// use std::time::Duration;
    /// # #[derive(Debug, Clone)]
    /// # struct Lookup(u64);
    /// # impl Request for Lookup { type Reply = u64; }
    /// # struct Replica;
    /// # impl Actor for Replica {
    /// #     type Message = Call<Lookup>;
    /// #     fn receive(&mut self, call: Call<Lookup>, _: &mut Context<Call<Lookup>>) -> HandlerResult {
    /// #         call.answer(|Lookup(key)| key);
    /// #         Ok(())
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let replicas = system
    ///     .router("replicas")
    ///     .pool(3, |_| Replica)
    ///     .logic(ScatterGatherFirstCompleted::within(Duration::from_secs(1)))
    ///     .skip_unwanted()
    ///     .spawn()?;
    /// assert_eq!(replicas.ask(Lookup(7)).wait()?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn skip_unwanted(mut self) -> Self
    where
        M: Answerable,
    {
        #[cfg(feature = "remote")]
        {
            self.settings.nodes.skips_unwanted = true;
        }
        match &mut self.members {
            Initial::Pool { make, .. } => {
                let plain = make.clone();
                *make = StdArc::new(move |head: &AnyActorRef, index, settings: &RouteeSettings| {
                    plain(head, index, settings).map(NewRoutee::skip_unwanted)
                });
            }
            _ => {
                self.fault = Some(
                    "`skip_unwanted` is for the routees of a pool: those of a group are created elsewhere, so call it there",
                );
            }
        }
        self
    }

    /// Keeps the router when its last routee has gone, instead of ending it; a pool may then also begin with
    /// size 0.
    ///
    /// Without this the router ends where a routee is [removed](super::Router::remove) or has ended and none is left,
    /// as in Akka. It does not end when it is created empty. It ends without loss, as by
    /// [`drain`](super::Router::drain). [`adjust`](super::Router::adjust) keeps a routee in such a pool, and
    /// [`resize_to`](super::Router::resize_to) refuses 0.
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
            Initial::Paths { paths, .. } => format!("group at {paths:?}"),
        };
        f.debug_struct("RouterPlan")
            .field("name", &self.shown_name())
            .field("members", &members)
            .finish_non_exhaustive()
    }
}

/// Creates the controller of a logic as a child of the head, on the head's dispatcher.
pub(crate) type MakeController<L> =
    dyn FnOnce(&AnyActorRef, Option<String>, StdArc<L>) -> Result<HeldController, SpawnError> + Send;

/// The largest size of the old tables of a router by default.
pub(crate) const BYTES_MAX: usize = 16 << 20;

/// The longest wait of a change by default.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// The settings of a plan for old tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OldTablesPlan {
    /// The largest size of the old tables in bytes.
    pub bytes_max: usize,
    /// The longest wait of a change.
    pub within: Duration,
}

impl Default for OldTablesPlan {
    fn default() -> Self {
        Self { bytes_max: BYTES_MAX, within: WITHIN }
    }
}

/// The settings of a plan for routees that leave.
pub(crate) struct LeavePlan<M> {
    /// The longest time that a routee may take to leave.
    pub within: Option<Duration>,
    /// Makes the farewell, the message that tells a routee to end.
    pub farewell: Option<StdArc<dyn Fn() -> M + Send + Sync>>,
}

impl<M> Default for LeavePlan<M> {
    fn default() -> Self {
        Self { within: None, farewell: None }
    }
}

/// Makes logics that need more of the messages than that they can be sent.
pub(crate) struct Capcapabilities<M: Send + 'static> {
    pub broadcast: Option<MakeLogic<M>>,
    pub scatter_gather: Option<MakeLogic<M>>,
    pub tail_chopping: Option<MakeLogic<M>>,
    pub hashing: Option<MakeLogicWith<M>>,
    /// For routees at paths with wildcards.
    pub fan_out: Option<FanOut<M>>,
}

impl<M: Send + 'static> Default for Capcapabilities<M> {
    fn default() -> Self {
        Self { broadcast: None, scatter_gather: None, tail_chopping: None, hashing: None, fan_out: None }
    }
}

/// A routee that a pool has made, before its first turn.
pub(crate) enum NewRoutee<M: Send + 'static> {
    /// It takes the router's messages.
    Own(Held<M>),
    /// It takes messages that another reference makes of those of the router.
    Behind { actor: ActorRef<M>, held: Box<dyn HeldBehind> },
}

impl<M: Send + 'static> NewRoutee<M> {
    /// The reference that is in the table.
    pub(crate) fn actor(&self) -> &ActorRef<M> {
        match self {
            Self::Own(held) => held.actor(),
            Self::Behind { actor, .. } => actor,
        }
    }

    /// Gives the routee its first turn.
    pub(crate) fn start(self) {
        match self {
            Self::Own(held) => drop(held.start()),
            Self::Behind { held, .. } => held.start(),
        }
    }
}

impl<M: Answerable + Send + 'static> NewRoutee<M> {
    /// Has the routee skip unwanted messages.
    pub(crate) fn skip_unwanted(self) -> Self {
        match self {
            Self::Own(held) => Self::Own(held.skip_unwanted()),
            Self::Behind { actor, mut held } => {
                held.skip_unwanted(M::is_bare_wanted());
                Self::Behind { actor, held }
            }
        }
    }
}

/// Creates a routee of a pool as a child of the head, before its first turn.
pub(crate) type MakeRoutee<M> = dyn Fn(&AnyActorRef, u32) -> Result<NewRoutee<M>, SpawnError> + Send + Sync;

/// An actor before its first turn whose messages are not those of the router.
pub(crate) trait HeldBehind: Send {
    /// Gives the routee its first turn.
    fn start(self: Box<Self>);

    /// Has the routee skip messages that no asker wants any more, as [`Answerable::is_bare_wanted`] says.
    fn skip_unwanted(&mut self, is_wanted: Option<Box<dyn Any>>);
}

/// Makes a logic that needs more of `M` than that it can be sent.
pub(crate) type MakeLogic<M> = fn() -> Box<dyn RoutingLogic<M>>;

/// Makes a logic that needs a function of the user's.
pub(crate) type MakeLogicWith<M> = Box<dyn FnOnce() -> Box<dyn RoutingLogic<M>> + Send>;
