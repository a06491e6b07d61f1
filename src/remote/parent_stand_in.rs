//! Actors that a peer makes here: their guardian, and the actors that stand in for their parents.
//!
//! The actors live below `/remote`, the name of the peer, and the path of the parent there as one name. An actor of the engine is
//! in the place of each parent. It judges nothing: it tells the peer of the failures and ends of its children, and carries out
//! the verdicts that come back.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::child_hooks::ChildHooks;
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::Recipe;
use crate::actor::spawn::{Plan, spawn_in_place};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::InPlaceOf;
use crate::core::control::Control;
use crate::failure::Failure;
use crate::path::canonical_path::check_canonical;
use crate::remote::control_message::NumberedMessage;
use crate::remote::deploy_message::{
    DeployRequest, FailureText, Parent, ParentVerdict, REQUEST_MAX, cut, parent_names, physical_path,
};
use crate::remote::factories::{Entry, Factories, NewActor};
use crate::remote::hub_settings::NodeName;
use crate::remote::link::Link;
use crate::remote::policy::Incoming;
use crate::remote::wire::Wire;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most suspensions with which an actor begins.
const SUSPENSIONS_MAX: u32 = 1 << 20;

/// The type of message of a parent elsewhere whose type is not known here. It takes none.
#[derive(Serialize, Deserialize)]
struct UnknownMessage(());

impl Wire for UnknownMessage {
    const NAME: &'static str = "pointsman.unknown";
}

/// The guardian of the actors that a peer has made here, or the actor in the place of a parent.
struct Keeper;

impl Actor for Keeper {
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }
}

struct KeeperRecipe;

impl Recipe<Keeper> for KeeperRecipe {
    fn make(&mut self, _: &mut Context<Never>) -> Result<Keeper, Failure> {
        Ok(Keeper)
    }
}

/// Tells the peer of the children of an actor that is in the place of a parent.
struct TellPeer {
    link: Arc<Link>,
}

impl ChildHooks for TellPeer {
    fn failed(&self, child: AnyActorRef, failure: Failure) {
        let (link, uid) = (&self.link, child.uid());
        link.deployed.suspended(uid);
        let failure = FailureText::of(&failure);
        link.hub.send_numbered(link, NumberedMessage::Failed { uid, failure });
    }

    fn ended(&self, child: AnyActorRef) {
        let (link, uid) = (&self.link, child.uid());
        // A router that could not be made whole: the answer to its request says so.
        if !link.deployed.has(uid) {
            return;
        }
        if let Some(parent) = link.deployed.leave(uid) {
            stop_parent(&parent);
        }
        link.hub.send_numbered(link, NumberedMessage::Ended { uid });
    }
}

/// Ends an actor in the place of a parent. Its name is free for a successor at once.
fn stop_parent(parent: &AnyActorRef) {
    free_name(parent);
    parent.stop();
}

fn free_name(actor: &AnyActorRef) {
    if let Some(parent) = &actor.core().parent {
        parent.core().children.hand_name_over(actor);
    }
}

/// Makes an actor for the peer, and answers.
pub(crate) fn deploy(factories: &Factories, link: &Arc<Link>, request: DeployRequest) {
    let uid = request.uid;
    let answer = match try_deploy(factories, link, request) {
        Ok(()) => NumberedMessage::Deployed { uid },
        Err(why) => NumberedMessage::DeployRefused { uid, why: cut(why) },
    };
    link.hub.send_numbered(link, answer);
}

fn try_deploy(factories: &Factories, link: &Arc<Link>, request: DeployRequest) -> Result<(), String> {
    let DeployRequest { uid, name, parent, factory, args, suspensions, is_held, .. } = request;
    let DeployRequest { dispatcher, mailbox, stash_capacity, routee_index, .. } = request;
    let hub = &link.hub;
    let incoming = Incoming::Deploy { factory: &factory, node: &link.peer, roles: link.roles() };
    if let Err(why) = link.access().decide(incoming) {
        link.log_not_allowed(&format!("the factory {factory:?}"), why);
        link.count_refused_control();
        return Err(format!("node {} does not allow it: {why}", hub.settings.name.node));
    }
    // A request that is repeated finds its actor.
    if link.deployed.has(uid) {
        return Ok(());
    }
    let refuse = |why: String| {
        link.count_refused_control();
        Err(why)
    };
    let max = hub.settings.limits.deployed_per_peer;
    if link.deployed.check_room(max).is_err() {
        return refuse(format!(
            "node {} has {max} actors of this node already: raise its `[remote.limits] deployed-per-peer`",
            hub.settings.name.node
        ));
    }
    let NodeName { system, node, .. } = &hub.settings.name;
    let path = physical_path(system, &link.peer, &parent.path, &name);
    let is_path = parent.uid > 0
        && check_canonical(&parent.path, true).is_ok()
        && check_canonical(&path, true).is_ok()
        && !name.contains('/');
    if uid == 0 || !is_path || suspensions > SUSPENSIONS_MAX || args.len() > REQUEST_MAX {
        return refuse("the request is malformed".to_owned());
    }
    let [_, deployer, coded] = parent_names(system, &link.peer, &parent.path);
    let in_place = link.deployed.parent(&coded, |guardian| {
        if guardian.as_ref().is_none_or(AnyActorRef::is_closed) {
            *guardian = peer_guardian(link, &deployer);
        }
        in_place_of(link, guardian.as_ref()?, &coded, &parent)
    });
    let Some(in_place) = in_place else {
        return refuse(format!("node {node} ends"));
    };
    let mut plan = Plan::new(Ok(in_place), Some(name));
    plan.dispatcher = dispatcher;
    plan.stash_capacity = stash_capacity;
    plan.routee_index = routee_index;
    if let Some(mailbox) = mailbox {
        plan.mailbox = MailboxKind::named(&mailbox);
    }
    let mut enter = |actor, begin| link.deployed.enter(actor, &coded, suspensions, begin);
    let entry = Entry { uid, suspensions, is_held, enter: &mut enter };
    let made = factories.make(&factory, link, &args, NewActor { plan, entry });
    if let Err(why) = made {
        if let Some(parent) = link.deployed.leave_parent(&coded) {
            stop_parent(&parent);
        }
        return refuse(why);
    }
    Ok(())
}

/// Makes the guardian of the actors of a peer.
fn peer_guardian(link: &Arc<Link>, deployer: &str) -> Option<AnyActorRef> {
    let all = link.hub.system()?.guardian_of_deployed()?;
    let children = &all.core().children;
    // That of an earlier start of the peer ends.
    if let Some(old) = children.get(deployer) {
        free_name(&old);
    }
    let made = ActorBuilder::new(Ok(all), Some(deployer)).internal().spawn(|| Keeper).ok()?;
    Some(made.any_local())
}

/// Makes the actor in the place of a parent.
fn in_place_of(link: &Arc<Link>, guardian: &AnyActorRef, name: &str, parent: &Parent) -> Option<AnyActorRef> {
    let Parent { path, uid, type_id } = parent;
    let known = link.hub.registry.by_id(*type_id).ok();
    let real = match known.and_then(|known| known.far(link, path, *uid)) {
        Some(real) => real,
        None => link.far::<UnknownMessage>(path, *uid)?.untyped()?,
    };
    // One without children has left the table, and has the name until another thread has freed it.
    if let Some(old) = guardian.core().children.get(name) {
        free_name(&old);
    }
    let place = InPlaceOf { name: name.into(), parent: real };
    let mut held = spawn_in_place::<Keeper, _>(guardian.clone(), place, KeeperRecipe).ok()?;
    let hooks = Arc::new(TellPeer { link: link.clone() });
    held.private(|private| private.extras().child_hooks = Some(hooks));
    Some(held.start().any_local())
}

/// Carries out the verdict of a parent at the peer.
pub(crate) fn carry_out(link: &Arc<Link>, uid: u32, verdict: ParentVerdict) {
    let Some(actor) = link.deployed.get(uid) else {
        // It has ended, or was never there; a parent that waits for its end is told.
        if verdict == ParentVerdict::Stop {
            link.hub.send_numbered(link, NumberedMessage::Ended { uid });
        }
        return;
    };
    let may_resume = || {
        let is_suspended = link.deployed.resumed(uid);
        if !is_suspended {
            link.count_refused_control();
        }
        is_suspended
    };
    // One that has ended meanwhile needs no verdict.
    match verdict {
        ParentVerdict::Suspend => {
            link.deployed.suspended(uid);
            let _ = actor.send_system(Control::Suspend);
        }
        ParentVerdict::Resume { judged } if may_resume() => {
            let _ = actor.send_system(Control::Resume { judged });
        }
        ParentVerdict::Restart { cause } if may_resume() => {
            let _ = actor.send_system(Control::Restart(Failure::msg(cause)));
        }
        ParentVerdict::Resume { .. } | ParentVerdict::Restart { .. } => {}
        ParentVerdict::Begin => {
            if let Some(begin) = link.deployed.take_begin(uid) {
                begin();
            }
        }
        ParentVerdict::Stop => {
            // An actor that is held back ends by this.
            drop(link.deployed.take_begin(uid));
            actor.stop();
        }
    }
}

/// The link has ended: all actors that the peer has made here end.
pub(crate) fn end_all(link: &Link) {
    if let Some(guardian) = link.deployed.end() {
        free_name(&guardian);
        guardian.stop();
    }
}
