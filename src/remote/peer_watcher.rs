//! The actor that watches actors of this node on behalf of a peer.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::turn::apply;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Terminated;
use crate::remote::control_message::NumberedMessage;
use crate::remote::link::{Link, WaitingWatch};
use crate::sync::HashSet;
use std::sync::Arc;

pub(crate) struct PeerWatcher {
    link: Arc<Link>,
    watched: HashSet<AnyActorRef>,
}

impl Actor for PeerWatcher {
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }

    fn terminated(&mut self, end: Terminated, _: &mut Context<Never>) -> HandlerResult {
        self.watched.remove(&end.actor);
        let path = end.actor.tree_path().as_str().to_owned();
        let existed = end.existence_confirmed;
        let message = NumberedMessage::Terminated { path, uid: end.actor.uid(), existed };
        self.link.hub.send_numbered(&self.link, message);
        Ok(())
    }
}

impl PeerWatcher {
    /// Makes the watcher of a link; `None` if the system is at its end.
    pub(crate) fn spawn(link: &Arc<Link>) -> Option<AnyActorRef> {
        let system = link.hub.system()?;
        let link = link.clone();
        let recipe = move || PeerWatcher { link: link.clone(), watched: HashSet::default() };
        let made = ActorBuilder::new(system.system_guardian(), None).internal().spawn(recipe);
        made.ok().map(|watcher| watcher.any_local())
    }

    /// Watches an actor for the peer. A watch beyond the limit is refused.
    pub(crate) fn watch(watcher: &AnyActorRef, actor: AnyActorRef, waiting: WaitingWatch) {
        let _ = watcher.send_system(apply::<PeerWatcher>(move |watcher, ctx| {
            drop(waiting);
            let link = &watcher.link;
            if watcher.watched.len() >= link.hub.settings.limits.watches_per_peer
                && !watcher.watched.contains(&actor)
            {
                link.count_refused_control();
                link.log_watches_full();
                let path = actor.tree_path().as_str().to_owned();
                let message = NumberedMessage::WatchRefused { path, uid: actor.uid() };
                link.hub.send_numbered(link, message);
                return Ok(());
            }
            watcher.watched.insert(actor.clone());
            Ok(ctx.watch(&actor)?)
        }));
    }

    pub(crate) fn unwatch(watcher: &AnyActorRef, actor: AnyActorRef, waiting: WaitingWatch) {
        let _ = watcher.send_system(apply::<PeerWatcher>(move |watcher, ctx| {
            drop(waiting);
            watcher.watched.remove(&actor);
            ctx.unwatch(&actor);
            Ok(())
        }));
    }
}
