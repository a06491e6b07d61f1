//! The start of a router's description: the kind of its routees.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{IntoActor, by_context};
use crate::actor::spawn::spawn_held;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::system::SystemRef;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::plan::{Initial, NewRoutee, RouteeSettings, RouterPlan};
use crate::routing::routees::Routee;
use crate::util::panic::Guarded;
use std::sync::Arc as StdArc;

/// Describes a router that is about to be created, by [`SystemRef::router`](crate::SystemRef::router) or
/// [`Context::router`], or with a generated name by [`SystemRef::router_anonymous`](crate::SystemRef::router_anonymous) or
/// [`Context::router_anonymous`].
#[must_use = "nothing is created before `spawn`"]
#[derive(Debug)]
pub struct RouterBuilder {
    parent: Result<AnyActorRef, String>,
    /// `None`: the system generates a name.
    name: Option<String>,
}

impl SystemRef {
    /// Starts to describe a top-level router under `/user`.
    pub fn router(&self, name: &str) -> RouterBuilder {
        RouterBuilder::new(self.core().user(), Some(name))
    }

    /// Starts to describe a top-level router that is given a name: as [`Context::router_anonymous`](crate::Context::router_anonymous).
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let one = system.router_anonymous().pool(2, |_| Worker).spawn()?;
    /// let other = system.router_anonymous().pool(2, |_| Worker).spawn()?;
    /// assert_ne!(one.path(), other.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn router_anonymous(&self) -> RouterBuilder {
        RouterBuilder::new(self.core().user(), None)
    }
}

impl<M: Send + 'static> Context<M> {
    /// Starts to describe a router that is a child of this actor.
    pub fn router(&self, name: &str) -> RouterBuilder {
        RouterBuilder::new(Ok(self.me().any_local()), Some(name))
    }

    /// Starts to describe a router that is a child of this actor and is given a name: `$a`, `$b` and so on, as the actors
    /// of [`spawn`](Self::spawn) are. So any number of them can be made in one place.
    ///
    /// Settings of the system for routers by path hold for it where a pattern matches any name.
    pub fn router_anonymous(&self) -> RouterBuilder {
        RouterBuilder::new(Ok(self.me().any_local()), None)
    }
}

impl RouterBuilder {
    pub(crate) fn new(parent: Result<AnyActorRef, String>, name: Option<&str>) -> Self {
        Self { parent, name: name.map(str::to_owned) }
    }

    /// The parent and the name of the router.
    #[cfg(feature = "remote")]
    pub(crate) fn place(&self) -> (Result<AnyActorRef, String>, Option<String>) {
        (self.parent.clone(), self.name.clone())
    }

    /// A router that creates its routees: `size` children of its head, each made by `recipe`, again at each
    /// restart.
    ///
    /// The recipe gets the routee's context, unlike that of
    /// [`ActorBuilder::spawn`](crate::actor::ActorBuilder::spawn), and all routees share it: clone what it captures.
    ///
    /// The routees are numbered in the order of their creation ([`Context::routee_index`]), and have generated names.
    /// They begin when the router routes already: while a routee is made, it finds its path, its parent and the router
    /// itself, and its messages to the router are routed.
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
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
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
        let recipe = StdArc::new(Guarded::new(recipe));
        let make = move |head: &AnyActorRef, routee_index: u32, settings: &RouteeSettings| {
            let recipe = recipe.clone();
            let plan = settings.plan(head, routee_index);
            spawn_held::<A, _>(plan, by_context(move |ctx: &mut Context<A::Message>| recipe(ctx)))
                .map(NewRoutee::Own)
        };
        let check = |parent: &AnyActorRef, settings: &RouteeSettings, path: &dyn Fn() -> String| {
            settings.check::<A>(parent, path)
        };
        self.plan(Initial::Pool { size, make: StdArc::new(make), check })
    }

    /// A router over references that others made. The router watches the routees and never stops them; any routee may
    /// itself be a router.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Depot;
    /// # impl Actor for Depot {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let north = system.actor("north").spawn(|| Depot)?;
    /// let west = system.router("west").pool(2, |_| Depot).spawn()?;
    /// let depots = system.router("depots").group([north, west.to_ref()]).spawn()?;
    /// depots.tell(7u64);
    /// # Ok(())
    /// # }
    /// ```
    pub fn group<M: Send + 'static>(
        self,
        routees: impl IntoIterator<Item = ActorRef<M>>,
    ) -> RouterPlan<M, RoundRobin> {
        self.group_of(routees.into_iter().map(Routee::from))
    }

    /// As [`group`](Self::group), with routees that are more than a reference: functions [with an
    /// identity](Routee::with_identity), by which consistent hashing and [`Router::remove`](crate::Router::remove) tell
    /// them apart, or [several](Routee::several) recipients in the place of a single routee.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::{ConsistentHashing, Routee};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let (sender, got) = std::sync::mpsc::channel();
    /// let store = |name: &'static str| {
    ///     let sender = sender.clone();
    ///     let store = ActorRef::from_fn(move |number: u64| sender.send((name, number)).expect("it is kept"));
    ///     Routee::with_identity(store, name)
    /// };
    /// let stores = system
    ///     .router("stores")
    ///     .group_of([store("north"), store("south")])
    ///     .logic(ConsistentHashing::by(|number: &u64, key| key.feed(number)))
    ///     .spawn()?;
    /// stores.tell(7u64);
    /// stores.tell(7u64);
    /// assert_eq!(got.recv()?, got.recv()?, "equal keys, the same store");
    /// stores.remove(store("north"))?;
    /// assert_eq!(stores.routees()?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn group_of<M: Send + 'static>(
        self,
        routees: impl IntoIterator<Item = Routee<M>>,
    ) -> RouterPlan<M, RoundRobin> {
        self.plan(Initial::Group(routees.into_iter().collect()))
    }

    pub(crate) fn plan<M: Send + 'static>(self, members: Initial<M>) -> RouterPlan<M, RoundRobin> {
        RouterPlan::new(self.parent, self.name, members)
    }
}
