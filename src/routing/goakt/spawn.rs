//! The description of a router in GoAkt's words.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{IntoActor, by_context};
use crate::actor::spawn::{Held, spawn_held};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::core::strategy::{Directive, Strategy};
use crate::core::system::SystemRef;
use crate::failure::{FailureKind, guarded};
use crate::mailbox::kind::MailboxChoice;
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::broadcast::Broadcast;
use crate::routing::logics::consistent_hashing::ConsistentHashing;
use crate::routing::logics::hash_key::KeySink;
use crate::routing::logics::random::Random;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::logics::scatter_gather::ScatterGatherFirstCompleted;
use crate::routing::logics::tail_chopping::TailChopping;
use crate::routing::plan::{Initial, NewRoutee, RouteeSettings, RouterPlan};
use crate::routing::router::Router;
use crate::util::panic::Guarded;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// How often [`restart_on_failure`](SpawnRouter::restart_on_failure) restarts a routee within
/// [`RETRY_WINDOW`]: GoAkt's default.
const MAX_RETRIES: u32 = 3;

/// See [`MAX_RETRIES`].
const RETRY_WINDOW: Duration = Duration::from_secs(1);

/// How many points each routee has on the ring of [`consistent_hash`](SpawnRouter::consistent_hash), unless
/// told otherwise: GoAkt's default.
const VIRTUAL_NODES: u32 = 150;

/// Describes a router that is about to be created, by [`SystemRef::spawn_router`].
///
/// The order of the options decides nothing. A strategy can be chosen once, and its options only after it; without a
/// strategy, messages go to all routees. `S` is the logic of the strategy. Each option names GoAkt's beside it.
///
/// ```
/// # use pointsman::prelude::*;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let workers = system.spawn_router("workers", 10, |_| Worker).round_robin().resume_on_failure().spawn()?;
/// workers.tell(7u64);
/// # Ok(())
/// # }
/// ```
///
/// Two strategies do not compile:
///
/// ```compile_fail,E0599
/// # use pointsman::prelude::*;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # let system = System::builder("demo").build().unwrap();
/// let workers = system.spawn_router("workers", 10, |_| Worker).round_robin().random();
/// ```
#[doc(alias = "RoutingStrategy")]
#[must_use = "nothing is created before `spawn`"]
pub struct SpawnRouter<M: Send + 'static, S> {
    plan: RouterPlan<M, RoundRobin>,
    strategy: S,
    pool_size: usize,
    /// The option that decides about a failing routee.
    directive: Option<&'static str>,
    two_directives: Option<[&'static str; 2]>,
}

impl SystemRef {
    /// Starts to describe a top-level router of `pool_size` routees that `factory` makes, in GoAkt's words
    /// and with its defaults: see [`goakt`](crate::routing::goakt). GoAkt's `SpawnRouter`.
    ///
    /// The factory gets the routee's number, from 0. It makes the first routees before the router routes, on the thread
    /// that calls [`spawn`](SpawnRouter::spawn), so a factory that fails makes `spawn` fail. It makes later routees,
    /// and restarted routees, on the engine's threads.
    pub fn spawn_router<A, I>(
        &self,
        name: &str,
        pool_size: usize,
        factory: impl Fn(usize) -> I + Send + Sync + 'static,
    ) -> SpawnRouter<A::Message, Broadcast>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        let factory = StdArc::new(Guarded::new(factory));
        let make = move |head: &AnyActorRef, number: u32, settings: &RouteeSettings| {
            make_routee::<A, I, _>(&factory, head, number, settings).map(NewRoutee::Own)
        };
        let check = |parent: &AnyActorRef, settings: &RouteeSettings, path: &dyn Fn() -> String| {
            settings.check::<A>(parent, path)
        };
        let mut plan =
            self.router(name).plan(Initial::Pool { size: pool_size, make: StdArc::new(make), check });
        plan.strategy = Strategy::stop();
        plan.settings.are_numbered = true;
        plan.stays_when_empty = true;
        plan.ends_when_found_empty = true;
        plan.head_on_failure = Some(Strategy::resume());
        SpawnRouter { plan, strategy: Broadcast, pool_size, directive: None, two_directives: None }
    }
}

/// Makes a routee's first state here and now, and the state of each restart at the restart.
fn make_routee<A, I, F>(
    factory: &StdArc<Guarded<F>>,
    head: &AnyActorRef,
    number: u32,
    settings: &RouteeSettings,
) -> Result<Held<A::Message>, SpawnError>
where
    A: Actor,
    I: IntoActor<Actor = A>,
    F: Fn(usize) -> I + Send + Sync + 'static,
{
    let index = number as usize;
    let first = guarded(|| factory(index).into_actor()).map_err(|failure| SpawnError::Routee {
        router: head.path().to_string(),
        number: index,
        // User code makes the text.
        fault: guarded(|| Ok(failure.to_string())).unwrap_or_default(),
    })?;
    let (mut first, factory) = (Some(first), factory.clone());
    let recipe = move |_: &mut Context<A::Message>| match first.take() {
        Some(first) => Ok(first),
        None => factory(index).into_actor(),
    };
    spawn_held::<A, _>(settings.plan(head, number), by_context(recipe))
}

impl<M: Send + 'static> SpawnRouter<M, Broadcast> {
    /// Sends to all routees, each copy in its routee's mailbox before the next: the default. GoAkt's `FanOutRouting`.
    /// [`Router::fan_out`] tells how many have taken it.
    // The type is hidden, so that another strategy after it does not compile.
    pub fn fan_out(self) -> SpawnRouter<M, impl RoutingLogic<M>>
    where
        M: Clone,
    {
        self.strategy(Broadcast)
    }

    /// Sends to each routee in turn. GoAkt's `RoundRobinRouting`. Each sending actor, or thread, goes round by itself:
    /// [`RoundRobin::new`](crate::routing::RoundRobin::new).
    pub fn round_robin(self) -> SpawnRouter<M, RoundRobin> {
        self.strategy(RoundRobin::new())
    }

    /// Sends to any routee, with equal chance. GoAkt's `RandomRouting`.
    pub fn random(self) -> SpawnRouter<M, Random> {
        self.strategy(Random::new())
    }

    /// Sends to the routee that owns the key which `key` extracts; to any routee, with equal chance, if the key is
    /// empty. GoAkt's `AsConsistentHashRouter`.
    ///
    /// When the owner has ended, the next living routee on the ring gets the message.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// struct Put {
    ///     name: String,
    ///     value: u64,
    /// }
    /// # struct Shard;
    /// # impl Actor for Shard {
    /// #     type Message = Put;
    /// #     fn receive(&mut self, put: Put, _: &mut Context<Put>) -> HandlerResult { let _ = put.value; Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let shards = system
    ///     .spawn_router("shards", 4, |_| Shard)
    ///     .consistent_hash(|put: &Put| put.name.as_str())
    ///     .virtual_nodes(300)
    ///     .spawn()?;
    /// shards.tell(Put { name: "pear".into(), value: 7 });
    /// # Ok(())
    /// # }
    /// ```
    pub fn consistent_hash(
        self,
        key: impl Fn(&M) -> &str + Send + Sync + 'static,
    ) -> SpawnRouter<M, ConsistentHashing<M, impl Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static>> {
        self.consistent_hash_by(move |message: &M, to: &mut KeySink| {
            let key = key(message);
            (!key.is_empty()).then(|| to.feed(key))
        })
    }

    /// As [`consistent_hash`](Self::consistent_hash), by a key of any type: `key` feeds it, or returns `None`
    /// if the message has none.
    pub fn consistent_hash_by(
        self,
        key: impl Fn(&M, &mut KeySink) -> Option<()> + Send + Sync + 'static,
    ) -> SpawnRouter<M, ConsistentHashing<M, impl Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static>> {
        self.strategy(ConsistentHashing::by_option(key).virtual_nodes(VIRTUAL_NODES).random_without_key())
    }

    /// Asks all routees, and the first success is the outcome. Without a success `within` the given time the ask fails.
    /// GoAkt's `AsScatterGatherFirst`. See [`ScatterGatherFirstCompleted`], and for the failure with the original
    /// message [`ask_or_back`](crate::ActorRef::ask_or_back), outside actors and [within](crate::Context::ask_or_back).
    pub fn scatter_gather_first(self, within: Duration) -> SpawnRouter<M, ScatterGatherFirstCompleted> {
        self.strategy(ScatterGatherFirstCompleted::within(within))
    }

    /// Asks the routees in turn, in random order, another after each `interval`, until the first success. Without a
    /// success `within` the given time the ask fails. GoAkt's `AsTailChopping`. See [`TailChopping`].
    ///
    /// No routee is asked at the deadline or later. So with an interval of `within` or more a single routee is asked,
    /// and another only if an attempt has failed.
    pub fn tail_chopping(self, within: Duration, interval: Duration) -> SpawnRouter<M, TailChopping> {
        self.strategy(TailChopping::within(within).interval(interval).ends_before_deadline())
    }

    fn strategy<S>(self, strategy: S) -> SpawnRouter<M, S> {
        self.map_strategy(|Broadcast| strategy)
    }
}

impl<M, F> SpawnRouter<M, ConsistentHashing<M, F>>
where
    M: Send + 'static,
    F: Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static,
{
    /// How many points each routee has on the ring: 150 (GoAkt's default) unless told otherwise, also if told 0;
    /// at most 65,536. GoAkt's `WithConsistentHashVirtualNodes`.
    pub fn virtual_nodes(self, count: u32) -> Self {
        let count = if count == 0 { VIRTUAL_NODES } else { count };
        self.map_strategy(|logic| logic.virtual_nodes(count))
    }

    /// Hashes by `hash` instead of xxh3-64: see [`ConsistentHashing::hasher`]. GoAkt's
    /// `WithConsistentHashHasher`.
    pub fn hasher(self, hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static) -> Self {
        self.map_strategy(|logic| logic.hasher(hash))
    }

    /// Refuses messages without a key, instead of sending them to any routee: they are dead letters, or come back to
    /// `try_tell`.
    pub fn refuse_without_key(self) -> Self {
        self.map_strategy(ConsistentHashing::refuse_without_key)
    }
}

impl<M: Send + 'static> SpawnRouter<M, TailChopping> {
    /// Waits for the next interval also when an attempt has failed, as GoAkt does. Otherwise the next routee
    /// is asked at once.
    pub fn wait_for_tick(self) -> Self {
        self.map_strategy(TailChopping::wait_for_tick)
    }
}

impl<M: Send + 'static, S> SpawnRouter<M, S> {
    fn map_strategy<T>(self, change: impl FnOnce(S) -> T) -> SpawnRouter<M, T> {
        let Self { plan, strategy, pool_size, directive, two_directives } = self;
        SpawnRouter { plan, strategy: change(strategy), pool_size, directive, two_directives }
    }

    /// Ends a routee that fails, and takes it out of the pool: the default. The messages in its mailbox become dead
    /// letters. GoAkt's `WithStopRouteeOnFailure`.
    pub fn stop_on_failure(self) -> Self {
        self.directive("stop_on_failure", Strategy::stop())
    }

    /// Restarts a routee that fails, up to 3 times within a second (GoAkt's default): see
    /// [`restart_on_failure_up_to`](Self::restart_on_failure_up_to).
    pub fn restart_on_failure(self) -> Self {
        self.restart_on_failure_up_to(MAX_RETRIES, RETRY_WINDOW)
    }

    /// Restarts a routee that fails, up to `max_retries` times within `window`; with the next failure it ends. The
    /// window is that of [`Strategy::within`]: it opens at the first failure. The routee keeps its name, its place and
    /// its mailbox, and the message that it failed at is not handled again. GoAkt's `WithRestartRouteeOnFailure`.
    pub fn restart_on_failure_up_to(self, max_retries: u32, window: Duration) -> Self {
        self.directive("restart_on_failure", Strategy::default().max_restarts(max_retries).within(window))
    }

    /// Lets a routee that fails go on with the next message, with its state. GoAkt's
    /// `WithResumeRouteeOnFailure`.
    pub fn resume_on_failure(self) -> Self {
        // A routee that could not begin has no state to go on with.
        let resume = Strategy::decide(|failure| match failure.kind() {
            FailureKind::Error | FailureKind::Panic => Directive::Resume,
            FailureKind::Initialization | FailureKind::Killed | FailureKind::DeathPact => Directive::Stop,
        });
        self.directive("resume_on_failure", resume)
    }

    fn directive(mut self, option: &'static str, strategy: Strategy) -> Self {
        self.plan.strategy = strategy;
        match self.directive.replace(option) {
            Some(former) if self.two_directives.is_none() => self.two_directives = Some([former, option]),
            _ => {}
        }
        self
    }

    /// Keeps the router when it has no routees left. Without this option the router ends with the message that finds it
    /// empty, as in GoAkt: that message is a dead letter, and then the name is free. Until such a message
    /// [`Router::adjust`] can revive the router. A router that stays may begin with 0 routees.
    pub fn stay_when_empty(mut self) -> Self {
        self.plan.ends_when_found_empty = false;
        self
    }

    /// Runs the routees on the dispatcher of this name, as [`RouterPlan::dispatcher`].
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.plan = self.plan.dispatcher(name);
        self
    }

    /// Gives the routees this mailbox, as [`RouterPlan::mailbox`].
    pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
        self.plan = self.plan.mailbox(mailbox);
        self
    }

    /// Creates the router with its routees: it routes when this returns.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]. The first fault of these is reported: 0 routees for a router that does not
    /// [stay when empty](Self::stay_when_empty), a [strategy](SpawnError::Logic) with a time of 0 or too many points,
    /// [two options](SpawnError::TwoDirectives) that decide about a failing routee, and then the faults that any router
    /// can have. GoAkt's fourth fault, consistent hashing without an extractor of keys, cannot be written down here.
    ///
    /// The name is free when this returns, and actors that were begun end by themselves; where options are wrong, no
    /// actor was begun.
    #[doc(alias = "RouterError")]
    pub fn spawn(self) -> Result<Router<M>, SpawnError>
    where
        S: RoutingLogic<M>,
    {
        if let Ok(parent) = &self.plan.parent {
            let path = || self.plan.path(parent);
            if self.pool_size == 0 && self.plan.ends_when_found_empty {
                return Err(SpawnError::EmptyPool { path: path() });
            }
            if let Err(fault) = self.strategy.check() {
                return Err(SpawnError::Logic { path: path(), fault: fault.to_string() });
            }
            if let Some(options) = self.two_directives {
                return Err(SpawnError::TwoDirectives { path: path(), options });
            }
        }
        self.plan.logic(self.strategy).spawn()
    }
}

impl<M: Send + 'static, S> fmt::Debug for SpawnRouter<M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnRouter")
            .field("name", &self.plan.shown_name())
            .field("pool_size", &self.pool_size)
            .finish_non_exhaustive()
    }
}
