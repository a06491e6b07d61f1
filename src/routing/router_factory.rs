//! Routers that one node makes on another.
//!
//! The router is whole there: its head is the child of the parent here, and its routees are below the head. Messages to it cross
//! once, and are routed where the routees are.

use crate::actor::spawn::{Plan, path_below};
use crate::core::actor_ref::ActorRef;
use crate::core::deploy_fault::DeployFault;
use crate::core::error::SpawnError;
use crate::failure::guarded;
use crate::remote::child_stand_in::{HeldElsewhere, IsHeld, NodeOf, deploy_held};
use crate::remote::factories::{Factory, NewActor, RestartTeller, read_args};
use crate::remote::node::Node;
use crate::remote::wire::Wire;
use crate::routing::builder::RouterBuilder;
use crate::routing::create::HeldRouter;
use crate::routing::deployed_head::DeployedHead;
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::RouterPlan;
use crate::util::panic::Guarded;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::{Any, type_name};
use std::sync::Arc as StdArc;

/// Describes a router from arguments.
struct Describe<T, M: Send + 'static>(Box<HoldBy<T, M>>);

/// Makes a router from arguments, before its first turn.
type HoldBy<T, M> =
    dyn Fn(T, RouterBuilder, Option<DeployedHead>) -> Result<HeldRouter<M>, SpawnError> + Send + Sync;

impl Node {
    /// Registers a factory of routers: nodes that the policy [names](crate::remote::Policy::allow_factory) may make routers by it
    /// here, by [`RouterBuilder::deploy_on`]. `describe` gets the arguments and the start of the description, and returns the plan.
    /// The type of the router's messages is registered too, if it is not yet.
    ///
    /// The name is shared with the factories of actors, and has 1 to 64 ASCII letters, digits, `.`, `_` and `-`, of which the first
    /// is a letter or digit. Another name, or one that is taken, is an error when the system is
    /// [built](crate::SystemBuilder::build).
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::remote::{InProcess, Node, Policy};
    ///
    /// struct Counter;
    ///
    /// impl Actor for Counter {
    ///     type Message = String;
    ///     fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
    ///         println!("{} words", text.split(' ').count());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let network = InProcess::new();
    /// let n2 = Node::new("n2")
    ///     .engine(network.clone())
    ///     .router_factory("demo.counters", |size: usize, router| router.pool(size, |_| Counter))
    ///     .policy(Policy::closed().allow_factory("demo.counters", ["n1"]));
    /// let n2 = System::builder("demo").node(n2).build()?;
    /// let n1 = System::builder("demo").node(Node::new("n1").engine(network)).build()?;
    ///
    /// let counters = n1.router("counters").deploy_on::<String>("n2", "demo.counters", 4usize)?;
    /// counters.tell("over the hills and far away".to_owned());
    /// assert_eq!(counters.path().to_string(), "pointsman://demo@n2/remote/demo@n1/%2Fuser/counters");
    /// # Ok(())
    /// # }
    /// ```
    pub fn router_factory<T, M, L>(
        self,
        name: &str,
        describe: impl Fn(T, RouterBuilder) -> RouterPlan<M, L> + Send + Sync + 'static,
    ) -> Self
    where
        T: DeserializeOwned + 'static,
        M: Wire,
        L: RoutingLogic<M>,
    {
        let describe = Guarded::new(describe);
        let hold = move |args: T, builder: RouterBuilder, deployed| {
            let (parent, name) = builder.place();
            // The plan may be another builder's: the place is that which was asked for.
            let plan = RouterPlan { parent, name, deployed, ..describe(args, builder) };
            plan.hold()
        };
        let described = StdArc::new(Describe::<T, M>(Box::new(hold)));
        let (of_peers, factory) = (described.clone(), name.to_owned());
        let make = move |link: &StdArc<_>, args: &[u8], new: NewActor<'_>| {
            let NewActor { plan: Plan { parent, name, .. }, entry } = new;
            let args = read_args::<T>(&factory, link, args)?;
            let (uid, suspensions) = (entry.uid, entry.suspensions);
            let deployed = DeployedHead { uid, suspensions, restarts: RestartTeller::new(link, uid) };
            let builder = RouterBuilder::new(parent, name.as_deref());
            let held = guarded(|| Ok(of_peers.0(args, builder, Some(deployed))))
                .map_err(|panicked| panicked.to_string())?
                .map_err(|error| error.to_string())?;
            entry.enter(held.head.actor().any_local(), move || drop(held.start()));
            Ok(())
        };
        let rust_name = type_name::<RouterPlan<M, L>>();
        let of_routers: StdArc<dyn Any + Send + Sync> = described;
        self.add_factory::<M>(name, Factory { rust_name, make: Box::new(make), of_routers: Some(of_routers) })
    }
}

impl RouterBuilder {
    /// Makes the router on another node, by the [factory of routers](Node::router_factory) that the node has under this name, from
    /// these arguments, and returns the reference to it. On the node's own name the router is made here, by this node's own
    /// factory. The [settings of the system](crate::settings::Deployment::remote) may name another node.
    ///
    /// The router is a child here as an actor is that is [deployed](crate::actor::ActorBuilder::deploy_on). Its own path, and those
    /// of its routees below it, are on the other node, whose [settings](crate::settings::Deployment::router) for paths below
    /// `/remote` apply to it. It is managed there.
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::deploy_on`](crate::actor::ActorBuilder::deploy_on). On this node the arguments and the type of messages
    /// have to be the very types of the factory.
    pub fn deploy_on<M: Wire>(
        self,
        node: &str,
        factory: &str,
        args: impl Serialize + Send + 'static,
    ) -> Result<ActorRef<M>, SpawnError> {
        let (parent, name) = self.place();
        let plan = Plan::new(parent, name);
        match NodeOf::new(&plan, Some(node)) {
            NodeOf::Here => self.deploy_here(factory, args),
            NodeOf::Other(node) => {
                deploy_held(plan, &node, factory, &args, IsHeld::Here).map(HeldElsewhere::start)
            }
        }
    }

    fn deploy_here<M: Wire, T: 'static>(self, factory: &str, args: T) -> Result<ActorRef<M>, SpawnError> {
        let (parent, name) = self.place();
        let parent = parent.map_err(|system| SpawnError::ShutDown { system })?;
        let refuse = |why| SpawnError::Deploy {
            path: path_below(&parent, name.as_deref()),
            fault: DeployFault::RouterFactory { factory: factory.to_owned(), why },
        };
        let hub = parent.core().system.hub();
        let known = hub.and_then(|hub| hub.deploying.router_factory(factory));
        let known = known.ok_or_else(|| refuse("there is none of this name"))?;
        let described = known.downcast::<Describe<T, M>>().map_err(|_| {
            refuse("that of this name has other arguments, or its routers take other messages")
        })?;
        described.0(args, self, None).map(|held| held.start().to_ref())
    }
}
