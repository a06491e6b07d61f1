//! The search for the nodes that mount a remote group: an actor that asks nodes for the group's reference, and watches it.
//!
//! A node is asked as soon as its link is up, and again after a while until it has the group. The group leaves the table when
//! it ends, or its node is lost, and is asked for again. The news come as control, so no ledger counts them; the timer alone
//! sends messages.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::turn::apply;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Terminated;
use crate::core::event_stream::Subscription;
use crate::core::system::SystemRef;
use crate::remote::hub::Hub;
use crate::remote::node_event::NodeEvent;
use crate::remote::resolving::{ResolveError, resolve_at};
use crate::remote::wire::Wire;
use crate::sync::HashMap;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::topology::node_table::NodeTables;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The time after which a node is asked again for the first time. It doubles with each further answer without the group.
const ASKED_AGAIN: Duration = Duration::from_secs(1);

/// The longest time after which a node is asked again.
const ASKED_AGAIN_MAX: Duration = Duration::from_secs(10);

/// The facts that a search goes by.
pub(crate) struct Sought<D> {
    pub hub: StdArc<Hub>,
    /// The group's path at each node.
    pub path: String,
    /// The nodes that the program has named; `None` if every linked node is asked.
    pub only: Option<Vec<String>>,
    pub tables: StdArc<NodeTables<D>>,
}

/// The actor.
struct NodeSearch<D> {
    sought: Sought<D>,
    nodes: HashMap<String, SoughtNode<D>>,
    /// Tells of nodes whose links are up.
    news: Option<Subscription>,
}

/// A node that is asked, or that has the group.
struct SoughtNode<D> {
    /// The group there, and the actor that is watched.
    found: Option<(ActorRef<D>, AnyActorRef)>,
    asked_again: Duration,
    /// Whether the last request is still of use.
    is_asking: StdArc<AtomicBool>,
    /// The last refusal that was logged.
    logged: Option<String>,
}

/// A node is to be asked again.
struct AskAgain(String);

impl<D: Wire> NodeSearch<D> {
    /// Begins to ask a node from the start.
    fn begin(&mut self, node: &str, ctx: &mut Context<AskAgain>) {
        let is_sought = self.sought.only.as_ref().is_none_or(|only| only.iter().any(|name| name == node));
        if is_sought {
            if let Some(known) = self.nodes.get_mut(node) {
                known.asked_again = ASKED_AGAIN;
                known.logged = None;
            }
            self.ask(node, ctx);
        }
    }

    /// Asks a node for the group, or connects with the node first.
    fn ask(&mut self, node: &str, ctx: &mut Context<AskAgain>) {
        let hub = &self.sought.hub;
        let is_up = hub.active_link(node).is_some();
        if !is_up && self.sought.only.is_none() {
            // The news tell when it is up again.
            if self.nodes.get(node).is_some_and(|known| known.found.is_none()) {
                self.nodes.remove(node);
            }
            return;
        }
        let known = self.nodes.entry(node.to_owned()).or_insert_with(|| SoughtNode {
            found: None,
            asked_again: ASKED_AGAIN,
            is_asking: StdArc::default(),
            logged: None,
        });
        ctx.timers().named(node.to_owned()).once(known.asked_again, AskAgain(node.to_owned()));
        known.asked_again = (2 * known.asked_again).min(ASKED_AGAIN_MAX);
        if !is_up {
            return hub.connect(node);
        }
        // Ordering: Relaxed; advice only.
        known.is_asking.store(false, Ordering::Relaxed);
        known.is_asking = StdArc::new(AtomicBool::new(true));
        let (me, name) = (ctx.me().any_local(), node.to_owned());
        resolve_at::<D>(hub, node, &self.sought.path, &known.is_asking, move |answer| {
            let name = name.clone();
            // An actor that has ended needs no answer.
            let _ = me.send_system(apply::<Self>(move |search, ctx| {
                search.take(&name, answer, ctx);
                Ok(())
            }));
        });
    }

    fn take(&mut self, node: &str, answer: Result<ActorRef<D>, ResolveError>, ctx: &mut Context<AskAgain>) {
        let Some(known) = self.nodes.get_mut(node) else { return };
        let group = match answer {
            Ok(group) => group,
            Err(error) => return known.log(node, &self.sought.path, &error),
        };
        if known.found.as_ref().is_some_and(|(found, _)| *found == group) {
            return;
        }
        // There is none if its node was lost meanwhile: the timer asks again.
        let Some(watched) = group.untyped() else { return };
        if ctx.watch(&watched).is_err() {
            return;
        }
        if let Some((_, before)) = known.found.replace((group.clone(), watched)) {
            ctx.unwatch(&before);
        }
        ctx.timers().cancel(node.to_owned());
        known.asked_again = ASKED_AGAIN;
        known.logged = None;
        log::info!(target: "pointsman", "node {node} mounts the group at {}", self.sought.path);
        self.sought.tables.enter(node, group);
    }
}

impl<D> SoughtNode<D> {
    /// Logs a refusal, once until it changes.
    fn log(&mut self, node: &str, path: &str, error: &ResolveError) {
        // A group that is not mounted yet, and a node that goes, are no news.
        if matches!(error, ResolveError::NotFound { .. } | ResolveError::NodeGone { .. }) {
            return;
        }
        let text = error.to_string();
        if self.logged.as_ref() != Some(&text) {
            log::warn!(target: "pointsman", "node {node} does not give out the group at {path}: {text}");
            self.logged = Some(text);
        }
    }
}

impl<D: Wire> Actor for NodeSearch<D> {
    type Message = AskAgain;

    fn started(&mut self, ctx: &mut Context<AskAgain>) -> HandlerResult {
        // A restarted search knows nothing of the nodes before.
        self.sought.tables.clear();
        let me = ctx.me().any_local();
        // First the news, and then the nodes that are up already: none is missed.
        self.news = Some(ctx.system().events().on(move |event: &NodeEvent| {
            if let NodeEvent::Up { node, .. } = event {
                let node = node.clone();
                let _ = me.send_system(apply::<Self>(move |search, ctx| {
                    search.begin(&node, ctx);
                    Ok(())
                }));
            }
        }));
        let nodes = self.sought.only.clone().unwrap_or_else(|| self.sought.hub.active_peers());
        nodes.iter().for_each(|node| self.begin(node, ctx));
        Ok(())
    }

    fn receive(&mut self, AskAgain(node): AskAgain, ctx: &mut Context<AskAgain>) -> HandlerResult {
        if self.nodes.get(&node).is_some_and(|known| known.found.is_none()) {
            self.ask(&node, ctx);
        }
        Ok(())
    }

    fn terminated(&mut self, end: Terminated, ctx: &mut Context<AskAgain>) -> HandlerResult {
        let is_of = |known: &SoughtNode<D>| known.found.as_ref().is_some_and(|(_, it)| *it == end.actor);
        let ended = self.nodes.iter().find(|(_, known)| is_of(known)).map(|(node, _)| node.clone());
        if let Some(node) = ended {
            log::info!(target: "pointsman", "node {node} does not mount the group at {} any more", self.sought.path);
            self.sought.tables.remove(&node);
            if let Some(known) = self.nodes.get_mut(&node) {
                known.found = None;
            }
            self.begin(&node, ctx);
        }
        Ok(())
    }
}

/// Begins the search of a system. A system that is at its end looks for nothing.
pub(crate) fn begin<D: Wire>(system: &SystemRef, sought: impl Fn() -> Sought<D> + Send + Sync + 'static) {
    let recipe = move || NodeSearch { sought: sought(), nodes: HashMap::default(), news: None };
    let made = ActorBuilder::new(system.core().system_guardian(), None).internal().spawn(recipe);
    if let Err(error) = made {
        log::warn!(target: "pointsman", "the search for the nodes of a remote group does not begin: {error}");
    }
}
