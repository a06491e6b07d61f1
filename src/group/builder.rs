//! A group builder describes and creates a group.

use crate::actor::actor::Actor;
use crate::actor::child_hooks::ChildHooks;
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::mailbox_choice::{Answer, MailboxKind};
use crate::actor::recipe::{ByContext, IntoActor};
use crate::actor::spawn::{ClassChoice, Held, Plan, spawn_held};
use crate::ask::fork::Answerable;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::core::system::SystemRef;
use crate::failure::Failure;
use crate::group::group::Group;
use crate::group::head::Head;
use crate::group::key::GroupKey;
use crate::group::key_entry::{KeyEntry, SpawnCause};
use crate::group::key_name::key_name;
use crate::group::key_route::{KeyRoute, KeyRouter};
use crate::group::recipe::GroupRecipe;
use crate::group::restart_policy::{RestartPolicy, WhileRestarting};
use crate::group::self_report::SelfReport;
use crate::group::state::{ConfigHooks, Copy, Created, GroupState, Parts, Termination};
use crate::group::status::Statuses;
use crate::group::supervision::GroupSupervisor;
use crate::group::to_keys::ToGroup;
use crate::group::validate_config::AsksToValidate;
use crate::mailbox::kind::MailboxChoice;
use crate::util::panic::{Guarded, drop_guarded};
use std::fmt;
use std::sync::{Arc as StdArc, OnceLock};

/// The number of shards of a key table, and of the threads that may create actors of a group at the same time.
const SHARDS: usize = if crate::sync::EXPLORED { 1 } else { 64 };

impl SystemRef {
    /// Starts to describe a group of actors told apart by a key, whose head stands under `/user`.
    pub fn group(&self, name: &str) -> GroupBuilder {
        GroupBuilder { parent: self.core().user(), name: name.to_owned() }
    }
}

impl<M: Send + 'static> Context<M> {
    /// Starts to describe a group of actors told apart by a key, whose head is a child of this actor.
    pub fn group(&self, name: &str) -> GroupBuilder {
        GroupBuilder { parent: Ok(self.me().any_local()), name: name.to_owned() }
    }
}

/// Describes a group that is about to be created, by [`SystemRef::group`] or [`Context::group`].
#[must_use = "nothing is created before `spawn`"]
#[derive(Debug)]
pub struct GroupBuilder {
    parent: Result<AnyActorRef, String>,
    name: String,
}

/// This type is the key of a group's only actor, and prints as `_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Singleton;

impl fmt::Display for Singleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

impl GroupBuilder {
    /// Describes a group whose messages go to the keys that a key router names. `recipe` makes the state of each actor
    /// from its key, in the actor's first turn and again at each restart. All actors share `recipe`: clone the values
    /// that it captures. [`Context::spawn_cause`] says why a state is made.
    ///
    /// A message that goes to several actors is cloned. For messages that cannot be cloned there is
    /// [`by_key`](Self::by_key). A key router whose state changes is made by a
    /// [`RouterState`](crate::group::RouterState).
    ///
    /// # Concurrency
    ///
    /// A key router runs on the senders' threads, many at a time, once for each message. It should be short. A panic
    /// unwinds to the sender, and the message becomes a dead letter.
    ///
    /// # Example
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::group::KeyRoute;
    ///
    /// #[derive(Clone)]
    /// enum LedgerMsg {
    ///     Book { account: u64, amount: i64 },
    ///     CloseDay,
    /// }
    ///
    /// struct Ledger {
    ///     account: u64,
    ///     balance: i64,
    /// }
    /// # impl Actor for Ledger {
    /// #     type Message = LedgerMsg;
    /// #     fn receive(&mut self, message: LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult {
    /// #         if let LedgerMsg::Book { account, amount } = message {
    /// #             assert_eq!(account, self.account);
    /// #             self.balance += amount;
    /// #         }
    /// #         Ok(())
    /// #     }
    /// # }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let ledgers = system
    ///     .group("ledgers")
    ///     .keyed(
    ///         |message: &LedgerMsg| match message {
    ///             LedgerMsg::Book { account, .. } => KeyRoute::Unicast(*account),
    ///             LedgerMsg::CloseDay => KeyRoute::Broadcast,
    ///         },
    ///         |_, key: &u64| Ledger { account: *key, balance: 0 },
    ///     )
    ///     .spawn()?;
    /// ledgers.tell(LedgerMsg::Book { account: 7, amount: 100 }); // creates /user/ledgers/7
    /// ledgers.tell(LedgerMsg::CloseDay);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "KeyRouter")]
    pub fn keyed<A, I, K>(
        self,
        router: impl Fn(&A::Message) -> KeyRoute<K> + Send + Sync + 'static,
        recipe: impl Fn(&mut Context<A::Message>, &K) -> I + Send + Sync + 'static,
    ) -> GroupPlan<A::Message, K>
    where
        A: Actor<Message: Clone>,
        I: IntoActor<Actor = A>,
        K: GroupKey,
    {
        let copy: Copy<A::Message> = |delivery, message| delivery.copy(message);
        self.plan(Guarded::new(Box::new(router)), Some(copy), recipe)
    }

    /// Describes a group in which each message goes to the actor of its key. Messages need not be cloned.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// # struct Session(String);
    /// # struct Line { user: String, text: String }
    /// # impl Actor for Session {
    /// #     type Message = Line;
    /// #     fn receive(&mut self, line: Line, _: &mut Context<Line>) -> HandlerResult { assert_eq!(line.user, self.0); drop(line.text); Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let sessions = system
    ///     .group("sessions")
    ///     .by_key(|line: &Line| line.user.clone(), |_, key| Session(key.clone()))
    ///     .spawn()?;
    /// sessions.tell(Line { user: "ada".into(), text: "hello".into() });
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_key<A, I, K>(
        self,
        key: impl Fn(&A::Message) -> K + Send + Sync + 'static,
        recipe: impl Fn(&mut Context<A::Message>, &K) -> I + Send + Sync + 'static,
    ) -> GroupPlan<A::Message, K>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
        K: GroupKey,
    {
        let router = move |message: &A::Message| KeyRoute::Unicast(key(message));
        self.plan(Guarded::new(Box::new(router)), None, recipe)
    }

    /// Describes a group of a single actor, as in elfo. The first message creates the actor, and the next message after
    /// the actor's end creates it again. In a [topology](crate::topology::Topology) the group's configuration creates
    /// the actor, too: at the start, and when the group's section changes.
    pub fn singleton<A, I>(
        self,
        recipe: impl Fn(&mut Context<A::Message>) -> I + Send + Sync + 'static,
    ) -> GroupPlan<A::Message, Singleton>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        let router = |_: &A::Message| KeyRoute::Unicast(Singleton);
        GroupPlan {
            shard_count: 1,
            only: Some(Singleton),
            ..self.plan(Guarded::new(Box::new(router)), None, move |ctx, _| recipe(ctx))
        }
    }

    fn plan<A, I, K>(
        self,
        router: KeyRouter<A::Message, K>,
        copy: Option<Copy<A::Message>>,
        recipe: impl Fn(&mut Context<A::Message>, &K) -> I + Send + Sync + 'static,
    ) -> GroupPlan<A::Message, K>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
        K: GroupKey,
    {
        let recipe = Guarded::new(recipe);
        let recipe = move |ctx: &mut Context<A::Message>, key: &K| recipe(ctx, key).into_actor();
        let recipe = StdArc::new(recipe);
        let statuses: StdArc<Statuses<K>> = StdArc::default();
        let known = statuses.clone();
        let make = move |plan: Plan, key_entry: &StdArc<KeyEntry<K>>| {
            spawn_held::<A, _>(plan, GroupRecipe::new(&recipe, key_entry, &known))
        };
        let check = |parent: &AnyActorRef, settings: &MemberSettings, path: &dyn Fn() -> String| {
            let system = &parent.core().system;
            // The type is asked once and here, since actors are created under a lock.
            let answer = Answer::of::<A>();
            if !system.has_deployments() {
                // Deployments may choose another mailbox.
                let asked = settings.mailbox.clone().asked(answer.clone());
                asked.choose::<A>(system, settings.dispatcher.as_deref(), path)?;
            }
            Ok(answer)
        };
        GroupPlan {
            parent: self.parent,
            name: self.name,
            router,
            copy,
            make: Box::new(make),
            statuses,
            check,
            settings: MemberSettings {
                dispatcher: None,
                mailbox: MailboxKind::Chosen(None),
                stash_capacity: None,
            },
            policy: RestartPolicy::never(),
            while_restarting: WhileRestarting::default(),
            termination: Termination::Closing,
            configured: None,
            asks_to_validate: None,
            shard_count: SHARDS,
            only: None,
        }
    }
}

/// Member settings say how the actors of a group run.
struct MemberSettings {
    dispatcher: Option<String>,
    mailbox: MailboxKind,
    stash_capacity: Option<u32>,
}

type MakeBy<M, K> = dyn Fn(Plan, &StdArc<KeyEntry<K>>) -> Result<Held<M>, SpawnError> + Send + Sync;
type Check = fn(&AnyActorRef, &MemberSettings, &dyn Fn() -> String) -> Result<Answer, SpawnError>;

/// A group plan describes a group of messages `M` and keys `K`.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::group::{RestartPolicy, WhileRestarting};
/// use std::time::Duration;
/// # struct Session;
/// # impl Actor for Session {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let sessions = system
///     .group("sessions")
///     .by_key(|user: &u64| *user, |_, _| Session)
///     .mailbox(Mailbox::bounded(100).on_full(OverflowPolicy::Reject))
///     .restart(RestartPolicy::on_failure(Duration::from_secs(1), Duration::from_secs(60)))
///     .while_restarting(WhileRestarting::Queue)
///     .spawn()?;
/// sessions.tell(7_u64);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is created before `spawn`"]
pub struct GroupPlan<M: Send + 'static, K: GroupKey> {
    parent: Result<AnyActorRef, String>,
    name: String,
    router: KeyRouter<M, K>,
    copy: Option<Copy<M>>,
    make: Box<MakeBy<M, K>>,
    statuses: StdArc<Statuses<K>>,
    check: Check,
    settings: MemberSettings,
    policy: RestartPolicy,
    while_restarting: WhileRestarting,
    termination: Termination<M>,
    pub(crate) configured: Option<Box<dyn ConfigHooks<M, K>>>,
    pub(crate) asks_to_validate: Option<AsksToValidate<M>>,
    shard_count: usize,
    /// The key of a group of a single actor.
    only: Option<K>,
}

impl<M: Send + 'static, K: GroupKey> GroupPlan<M, K> {
    /// Runs the group's actors on the dispatcher of this name instead of `"default"`.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.settings.dispatcher = Some(name.to_owned());
        self
    }

    /// Gives each actor of the group this mailbox, or the one that the system knows by this name: as
    /// [`ActorBuilder::mailbox`](crate::actor::ActorBuilder::mailbox).
    pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
        self.settings.mailbox = MailboxKind::Chosen(Some(mailbox.into()));
        self
    }

    /// Limits how many messages each actor may [stash](Context::stash) at a time; the default is no limit.
    pub fn stash_capacity(mut self, message_count: usize) -> Self {
        self.settings.stash_capacity = Some(crate::actor::spawn::stash_limit(message_count));
        self
    }

    /// Lets each actor skip messages that are not wanted any more when their turn comes, as
    /// [`Context::skip_unwanted`](crate::Context::skip_unwanted) does: requests whose asker has gone, and
    /// [`Expiring`](crate::ask::Expiring) messages whose time is over.
    pub fn skip_unwanted(mut self) -> Self
    where
        M: Answerable,
    {
        let make = self.make;
        self.make = Box::new(move |plan: Plan, key_entry: &StdArc<KeyEntry<K>>| {
            make(plan, key_entry).map(Held::skip_unwanted)
        });
        self
    }

    /// Sets whether actors that have failed or ended are restarted; the default is never. The policy may change at run
    /// time, for the [group](Group::set_restart_policy) or by an [actor](Context::set_restart_policy) for itself.
    pub fn restart(mut self, policy: RestartPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets what happens to messages for an actor that waits for its restart; by default they
    /// [queue](WhileRestarting::Queue).
    pub fn while_restarting(mut self, what: WhileRestarting) -> Self {
        self.while_restarting = what;
        self
    }

    /// Sends each actor a message, made of the reason, when the group is [terminated](Group::terminate), instead of
    /// closing the actor's mailbox. The actor decides when it ends. This is elfo's manual termination.
    pub fn terminate_by(mut self, make: impl Fn(&str) -> M + Send + Sync + 'static) -> Self {
        let make = Guarded::new(make);
        self.termination = Termination::Manual(Box::new(move |reason| make(reason)));
        self
    }

    /// Creates the group, which routes when this returns.
    ///
    /// # Errors
    ///
    /// [`SpawnError`] for a restart policy that makes no sense, an unknown dispatcher, a mailbox that the actors cannot
    /// have, and in the cases of [`ActorBuilder::spawn`](crate::actor::ActorBuilder::spawn). Nothing is left behind.
    pub fn spawn(self) -> Result<Group<M, K>, SpawnError> {
        let parent = self.parent.map_err(|system| SpawnError::ShutDown { system })?;
        let system = parent.core().system.clone();
        let path = || format!("{}/{}", parent.path().as_str().trim_end_matches('/'), self.name);
        self.policy.check().map_err(|fault| SpawnError::Group { path: path(), fault })?;
        self.settings.mailbox.check(&path)?;
        system.check_dispatcher(self.settings.dispatcher.as_deref())?;
        let answer = (self.check)(&parent, &self.settings, &path)?;
        // The group state needs the head's reference, and the head needs the group state: the head's first turn is held
        // back.
        let group_state: StdArc<OnceLock<StdArc<GroupState<M, K>>>> = StdArc::default();
        let late = group_state.clone();
        let plan = Plan {
            parent: Ok(parent),
            name: Some(self.name),
            dispatcher: None,
            mailbox: MailboxKind::Unbounded,
            on_failure: None,
            routee_index: 0,
            stash_capacity: None,
            class: ClassChoice::OfPath,
        };
        let recipe = move |_: &mut Context<Never>| {
            let group_state =
                late.get().cloned().ok_or_else(|| Failure::msg("the group was not completed"))?;
            Ok(Head(group_state))
        };
        let mut held = spawn_held::<Head<M, K>, _>(plan, ByContext(recipe))?;
        let head = held.actor().any_local();
        let (mut settings, make) = (self.settings, self.make);
        settings.mailbox = settings.mailbox.asked(answer);
        let make = move |head: &AnyActorRef, name: String, key_entry: &StdArc<KeyEntry<K>>| {
            let plan = Plan {
                parent: Ok(head.clone()),
                name: Some(name),
                dispatcher: settings.dispatcher.clone(),
                mailbox: settings.mailbox.clone(),
                on_failure: None,
                routee_index: 0,
                stash_capacity: settings.stash_capacity,
                class: ClassChoice::made_by(head),
            };
            make(plan, key_entry)
        };
        let parts = Parts {
            router: self.router,
            copy: self.copy,
            make: Box::new(make),
            statuses: self.statuses,
            policy: self.policy,
            while_restarting: self.while_restarting,
            termination: self.termination,
            configured: self.configured,
            asks_to_validate: self.asks_to_validate,
            shard_count: self.shard_count,
            only: self.only,
        };
        let made = StdArc::new(GroupState::new(head.clone(), parts));
        let reference = ActorRef::to_own_recipient(ToGroup(made.clone()));
        let supervisor = StdArc::new(GroupSupervisor(made.clone()));
        let (child_hooks, report): (StdArc<dyn ChildHooks>, StdArc<dyn SelfReport>) =
            (supervisor.clone(), supervisor);
        held.private(|private| private.extras().child_hooks = Some(child_hooks));
        head.core().children.set_parent_data(report);
        // The hooks hear of each end.
        head.core().children.want_notices();
        // A look-up by the group's path finds the reference that routes.
        head.core().children.set_front(reference.clone());
        let _ = group_state.set(made.clone());
        held.start();
        Ok(Group { reference, group_state: made })
    }
}

impl<M: Send + 'static, K: GroupKey> GroupState<M, K> {
    /// Creates the actor of a key, if the key is free.
    pub(crate) fn mount(&self, key: K) -> Result<(), SpawnError> {
        let name = key_name(&key.to_string());
        let hash = self.hash(&key);
        let key_entry = StdArc::new(KeyEntry::new(key, hash, name, SpawnCause::Mounted));
        match self.create(&key_entry, false, |_| {}) {
            Created::Done | Created::Taken => Ok(()),
            Created::Refused(error) => {
                // The key is the user's: drop it before the error lies in the place of the return value.
                drop_guarded(key_entry);
                Err(error)
            }
        }
    }
}

impl<M: Send + 'static, K: GroupKey> fmt::Debug for GroupPlan<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupPlan")
            .field("name", &self.name)
            .field("restart", &self.policy)
            .finish_non_exhaustive()
    }
}
