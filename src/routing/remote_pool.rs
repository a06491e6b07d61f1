//! Pools whose routees other nodes may make.
//!
//! A routee elsewhere is a child of the head here, by its stand-in: its failures are judged here, and its name is that of a
//! routee here. The table has the reference to the actor itself, so senders pass no stand-in.

use crate::actor::context::Context;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::by_context;
use crate::actor::spawn::spawn_held;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::deploy_fault::DeployFault;
use crate::mailbox::kind::{Choice, MailboxChoice};
use crate::path::address::is_node_name;
use crate::remote::child_stand_in::{HeldElsewhere, IsHeld, NodeOf, deploy_held};
use crate::remote::deploy::Deploy;
use crate::routing::builder::RouterBuilder;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::plan::{HeldBehind, Initial, NewRoutee, RouteeSettings, RouterPlan};
use crate::util::panic::Guarded;
use std::any::Any;
use std::sync::Arc as StdArc;

impl RouteeSettings {
    /// Refuses nodes that this pool cannot have.
    pub(crate) fn check_nodes(&self, parent: &AnyActorRef) -> Result<(), DeployFault> {
        let Some(names) = self.nodes.names() else { return Ok(()) };
        let hub = parent.core().system.hub().ok_or(DeployFault::NoNode);
        if !self.nodes.is_deployable {
            return Err(DeployFault::NotDeployable);
        }
        if self.nodes.are_nested {
            return Err(DeployFault::RemotePoolOfRemotePool);
        }
        if names.is_empty() {
            return Err(DeployFault::NoNodes);
        }
        if self.queue.is_some() {
            return Err(DeployFault::SharedQueue);
        }
        if self.nodes.skips_unwanted {
            return Err(DeployFault::SkipUnwanted);
        }
        let own = &hub?.settings.name.node;
        if let Some(node) = names.iter().find(|node| !is_node_name(node)) {
            return Err(DeployFault::NodeName { node: node.clone() });
        }
        let has_name = matches!(
            &self.mailbox,
            MailboxKind::Chosen(None) | MailboxKind::Chosen(Some(MailboxChoice(Choice::Name(_))))
        );
        if !has_name && names.iter().any(|node| node != own) {
            return Err(DeployFault::Mailbox);
        }
        Ok(())
    }
}

impl RouterBuilder {
    /// As [`pool`](Self::pool), of routees that other nodes can make: by the factory that their type names, from these arguments.
    /// All routees get the same arguments, and each again at each restart. Without [nodes](RouterPlan::on_nodes) the routees are
    /// here.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::remote::{Deploy, InProcess, Node, Policy};
    ///
    /// /// Counts the words of texts.
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
    /// impl Deploy for Counter {
    ///     const FACTORY: &'static str = "demo.Counter";
    ///     type Args = ();
    ///     fn deploy(_: &(), _: &mut Context<String>) -> Result<Self, Failure> {
    ///         Ok(Self)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let network = InProcess::new();
    /// let policy = Policy::closed().allow_factory("demo.Counter", ["n1"]);
    /// let n2 = Node::new("n2").engine(network.clone()).factory::<Counter>().policy(policy);
    /// let n2 = System::builder("demo").node(n2).build()?;
    /// let n1 = System::builder("demo").node(Node::new("n1").engine(network)).build()?;
    ///
    /// let counters = n1.router("counters").deployable_pool::<Counter>(4, ()).on_nodes(["n1", "n2"]).spawn()?;
    /// counters.tell("over the hills and far away".to_owned());
    /// assert_eq!(counters.routees()?[1].path().to_string(), "pointsman://demo@n2/remote/demo@n1/%2Fuser%2Fcounters/c2");
    /// counters.drain()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn deployable_pool<A>(self, size: usize, args: A::Args) -> RouterPlan<A::Message, RoundRobin>
    where
        A: Deploy<Args: Sync>,
    {
        let args = StdArc::new(Guarded::new(args));
        let make = move |head: &AnyActorRef, routee_index: u32, settings: &RouteeSettings| {
            let plan = settings.plan(head, routee_index);
            match NodeOf::new(&plan, settings.nodes.of(routee_index).map(|(node, _)| node)) {
                NodeOf::Other(node) => {
                    let held = deploy_held(plan, &node, A::FACTORY, &**args, IsHeld::There)?;
                    Ok(NewRoutee::Behind { actor: held.actor().clone(), held: Box::new(held) })
                }
                NodeOf::Here => {
                    let args = args.clone();
                    let recipe = by_context(move |ctx: &mut Context<A::Message>| A::deploy(&args, ctx));
                    spawn_held::<A, _>(plan, recipe).map(NewRoutee::Own)
                }
            }
        };
        let check =
            |parent: &AnyActorRef, settings: &RouteeSettings, path: &dyn Fn() -> String| match settings
                .nodes
                .are_all_elsewhere(parent)
            {
                true => Ok(()),
                false => settings.check::<A>(parent, path),
            };
        let mut plan = self.plan(Initial::Pool { size, make: StdArc::new(make), check });
        plan.settings.nodes.is_deployable = true;
        plan
    }
}

impl<M: Send + 'static, L> RouterPlan<M, L> {
    /// Makes the routees of a [deployable pool](RouterBuilder::deployable_pool) on these nodes, one node after the other, and with
    /// the first again after the last. Routees that are made later, by a resize, go on where the last ones have ended. The node of
    /// the router's own system stands for ordinary children here. (Akka's `RemoteRouterConfig`.)
    ///
    /// The routees are named `c1`, `c2` and so on. They are supervised by this router as routees here are, and are watched: if a
    /// node is lost, its routees leave the table, and no others take their places, as for routees that are
    /// [stopped](Self::on_failure).
    ///
    /// The dispatcher, the mailbox, which must have a name, and the stash's capacity are those of the other nodes. A message type
    /// that is [registered](crate::remote::Node::message) at this node comes back from routees that leave before they have handled
    /// all; others are dead letters there.
    ///
    /// # Errors
    ///
    /// Of [`spawn`](Self::spawn): [`SpawnError::Deploy`](crate::SpawnError::Deploy) for another pool, or a group; without a node;
    /// for a second call of `on_nodes`, which would be a remote pool of a remote pool; for a pool that shares a queue; with
    /// [`skip_unwanted`](Self::skip_unwanted), which routees elsewhere ask for themselves; and where an actor cannot be
    /// [deployed](crate::actor::ActorBuilder::deploy_on).
    pub fn on_nodes(mut self, nodes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.nodes.name(nodes.into_iter().map(Into::into).collect());
        self
    }
}

impl<M: Send + 'static> HeldBehind for HeldElsewhere<M> {
    fn start(self: Box<Self>) {
        drop(HeldElsewhere::start(*self));
    }

    /// A plan that asks for this is refused.
    fn skip_unwanted(&mut self, _: Option<Box<dyn Any>>) {}
}
