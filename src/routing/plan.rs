//! A described router: all that is said of it before it is created.

use super::board::NewRoutee;
use super::by_path::FanOut;
use super::controller::MakeController;
use super::deployed::Abilities;
use super::leaving::LeavePlan;
use super::old_tables::OldTablesPlan;
use super::{Resizer, RoundRobin, Routee, RoutingLogic};
use crate::actor::{Actor, Mailbox, MailboxChoice, MailboxKind, Plan};
use crate::actor_ref::{Answerable, AnyRef};
use crate::error::SpawnError;
use crate::payload::Guarded;
use crate::supervision::{Restart, Strategy};
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
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo")
///     .dispatcher("heavy", Dispatcher::blocking().threads(1..=8))
///     .build()?;
/// let workers = system
///     .router("workers")
///     .pool(4, |_| Worker)
///     .logic(SmallestMailbox::new())
///     .dispatcher("heavy")
///     .mailbox(Mailbox::bounded(1000).on_full(Full::Reject))
///     .on_failure(Restart::up_to(10).within(Duration::from_secs(60)))
///     .leave_within(Duration::from_secs(5))
///     .stay_when_empty()
///     .spawn()?;
/// workers.tell(7u64);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is created before `spawn`"]
pub struct RouterPlan<M: Send + 'static, L> {
    pub(super) parent: Result<AnyRef, String>,
    /// `None`: it is given one.
    pub(super) name: Option<String>,
    pub(super) members: Initial<M>,
    pub(super) logic: Guarded<L>,
    pub(super) settings: RouteeSettings,
    pub(super) strategy: Strategy,
    pub(super) stays_when_empty: bool,
    /// It stays, until a message finds it empty.
    pub(super) ends_when_found_empty: bool,
    pub(super) head_dispatcher: Option<String>,
    /// What is done about a failure of the head, instead of what its parent would do.
    pub(super) head_on_failure: Option<Strategy>,
    pub(super) leave: LeavePlan<M>,
    pub(super) old_tables: OldTablesPlan,
    pub(super) controller: Option<Box<MakeController<L>>>,
    /// What was said in an order that makes no sense.
    pub(super) fault: Option<&'static str>,
    pub(super) resizer: Option<Guarded<Box<dyn Resizer>>>,
    pub(super) abilities: Abilities<M>,
    /// The system must say what kind of router it is.
    pub(super) is_from_config: bool,
}

/// How a pool's routees run, as the code says; what the system says of them is in
/// [`RouterSettings`](super::RouterSettings) and its deployment.
#[derive(Clone)]
pub struct RouteeSettings {
    pub dispatcher: Option<String>,
    pub mailbox: MailboxKind,
    pub stash_capacity: Option<u32>,
    /// The queue that they share, in a balancing pool.
    pub queue: Option<Mailbox>,
    /// They are named by their numbers, `r0` and so on; otherwise their names are generated.
    pub are_numbered: bool,
    /// They take other messages than the router: they are [`NewRoutee::Behind`] another reference.
    pub are_behind: bool,
}

impl RouteeSettings {
    /// Of the routee of this number.
    pub fn plan(&self, head: &AnyRef, routee_index: u32) -> Plan {
        Plan {
            parent: Ok(head.clone()),
            name: self.are_numbered.then(|| format!("r{routee_index}")),
            dispatcher: self.dispatcher.clone(),
            mailbox: self.mailbox.clone(),
            on_failure: None,
            routee_index,
            stash_capacity: self.stash_capacity,
        }
    }

    /// Says what can be known to be wrong with routees of type `A` and their mailboxes.
    pub fn check<A: Actor>(&self, parent: &AnyRef, path: &dyn Fn() -> String) -> Result<(), SpawnError> {
        let system = &parent.core().system;
        if system.has_deployments() {
            // They may choose another mailbox.
            return Ok(());
        }
        self.mailbox.choose::<A>(system, self.dispatcher.as_deref(), path).map(drop)
    }
}

pub type MakeWith<M> =
    dyn Fn(&AnyRef, u32, &RouteeSettings) -> Result<NewRoutee<M>, SpawnError> + Send + Sync;

/// Says what can be known to be wrong with routees before there is one. Gets the parent of the head.
pub type CheckRoutee = fn(&AnyRef, &RouteeSettings, &dyn Fn() -> String) -> Result<(), SpawnError>;

pub enum Initial<M: Send + 'static> {
    Pool { size: usize, make: StdArc<MakeWith<M>>, check: CheckRoutee },
    Group(Vec<Routee<M>>),
    Paths { paths: Vec<String>, fan_out: Option<FanOut<M>> },
}

/// Restarts of a failing routee, unless told otherwise.
const RESTARTS: u32 = 3;
const RESTART_WINDOW: Duration = Duration::from_secs(60);

impl<M: Send + 'static> RouterPlan<M, RoundRobin> {
    pub(super) fn new(parent: Result<AnyRef, String>, name: Option<String>, members: Initial<M>) -> Self {
        Self {
            parent,
            name,
            members,
            logic: Guarded::new(RoundRobin::new()),
            settings: RouteeSettings {
                dispatcher: None,
                mailbox: MailboxKind::Chosen(None),
                stash_capacity: None,
                queue: None,
                are_numbered: false,
                are_behind: false,
            },
            strategy: Restart::up_to(RESTARTS).within(RESTART_WINDOW).into(),
            stays_when_empty: false,
            ends_when_found_empty: false,
            head_dispatcher: None,
            head_on_failure: None,
            leave: LeavePlan::default(),
            old_tables: OldTablesPlan::default(),
            controller: None,
            fault: None,
            resizer: None,
            abilities: Abilities::default(),
            is_from_config: false,
        }
    }

    /// Routes by this logic instead of [`RoundRobin`].
    pub fn logic<N: RoutingLogic<M>>(self, logic: N) -> RouterPlan<M, N> {
        self.map_logic(|_| logic)
    }
}

impl<M: Send + 'static, L> RouterPlan<M, L> {
    /// The same with the logic that `change` makes of its own.
    pub(super) fn map_logic<N>(self, change: impl FnOnce(L) -> N) -> RouterPlan<M, N> {
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
            abilities: self.abilities,
            is_from_config: self.is_from_config,
        }
    }

    /// Where the router will stand below this parent; a name that it is given is not known yet.
    pub(super) fn path(&self, parent: &AnyRef) -> String {
        format!("{}/{}", parent.path().as_str().trim_end_matches('/'), self.shown_name())
    }

    /// The name, or what errors call it before it is given one.
    pub(super) fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or("$")
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

    /// Runs the router's head on the dispatcher of this name instead of `"default"`, whatever the routees run
    /// on. No message passes through the head: this is for management that must not wait behind other actors.
    pub fn head_dispatcher(mut self, name: &str) -> Self {
        self.head_dispatcher = Some(name.to_owned());
        self
    }

    /// Says what happens to a failing routee of a pool: by default it is restarted, at most 3 times a minute,
    /// and the others are left alone. A restart keeps the routee in its place: same reference, mailbox and
    /// number.
    ///
    /// This is the one place to say it: routees have no builder of their own, and routees added from
    /// elsewhere are judged by their own parents. A routee that fails while it is made is stopped, unless a
    /// [decider](Strategy::decide) says otherwise.
    ///
    /// A routee that is stopped, for instance beyond its limit of restarts, leaves the table, and nobody takes its
    /// place: the pool is one smaller until it is [resized](super::Router::resize_to) or its
    /// [resizer](Self::resizer) grows it. When the last one has stopped the pool ends, unless it
    /// [stays when empty](Self::stay_when_empty) or has a resizer.
    ///
    /// With [`Strategy::escalate`], Akka's default, the head fails with the same cause, and its parent
    /// decides for the router as a whole: resume lets all go on, the failing one with its state; a restart
    /// keeps the list and restarts every routee in its place; a stop ends the router. Meanwhile all own
    /// routees pause, and messages are routed into their mailboxes. What limits such restarts is what the
    /// parent says of the router.
    pub fn on_failure(mut self, strategy: impl Into<Strategy>) -> Self {
        self.strategy = strategy.into();
        self
    }

    /// How long a pool's routee may take to handle what it has when it is removed; as long as it likes,
    /// unless said otherwise. Then it stops after its current message, and what it has left is routed again.
    /// With zero it does so at once. In a router that [drains](super::Router::drain), what is left then are
    /// dead letters.
    ///
    /// Costs one timer for each routee that leaves; it waits until it is due even if the routee has ended.
    pub fn leave_within(mut self, deadline: Duration) -> Self {
        self.leave.within = Some(deadline);
        self
    }

    /// Tells a pool's routee by a message that it has been removed, instead of ending it: it gets what `make`
    /// makes as its last message from the router, and is to [stop](crate::Context::stop) itself when it is
    /// done. What arrives behind that it handles as long as it runs; what is left in its mailbox then is
    /// routed again.
    ///
    /// A routee that never stops keeps a draining router from ending, unless there is a
    /// [deadline](Self::leave_within). When `make` panics, nobody is removed.
    pub fn farewell(mut self, make: impl Fn() -> M + Send + Sync + 'static) -> Self {
        let make = Guarded::new(make);
        self.leave.farewell = Some(StdArc::new(move || (*make)()));
        self
    }

    /// Has a pool's routees skip messages that nobody wants any more when their turn comes, as
    /// [`ActorBuilder::skip_unwanted`](crate::ActorBuilder::skip_unwanted) does: questions whose asker has gone, the copies
    /// of a question that another routee has answered ([`ScatterGatherFirstCompleted`](super::ScatterGatherFirstCompleted),
    /// [`TailChopping`](super::TailChopping)), and [`Expiring`](crate::Expiring) messages whose time is over. The routees of
    /// a group say it themselves: for a group this is an error of `spawn`.
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
    /// #     fn receive(&mut self, call: Call<Lookup>, _: &mut Context<Call<Lookup>>) -> Done {
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
        match &mut self.members {
            Initial::Pool { make, .. } => {
                let plain = make.clone();
                *make = StdArc::new(move |head: &AnyRef, index, settings: &RouteeSettings| {
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
    /// Without this the router ends where a routee is [removed](super::Router::remove) or has ended and none
    /// is left, as in Akka: not when it is created empty. It ends without loss, as by
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
