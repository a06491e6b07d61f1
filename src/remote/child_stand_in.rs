//! Actors that this node makes on others: the child here that stands in for such an actor.
//!
//! The stand-in is a child of the real parent: it has the name, its failures are those of the actor elsewhere, and its parent
//! judges them. It passes the parent's verdicts on, and counts suspensions as the actor itself does. It ends when the actor has
//! ended, or the node of the actor is gone.
//!
//! The reference to the actor is there at once. A message that is sent before the other node has answered waits there behind the request.

use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::{Recipe, StandInStage, by_context};
use crate::actor::spawn::{Held, Plan, spawn_cell, spawn_standing};
use crate::actor::turn::apply;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::deploy_fault::DeployFault;
use crate::core::elsewhere::{Elsewhere, EndElsewhere, Standing};
use crate::core::error::SpawnError;
use crate::failure::Failure;
use crate::mailbox::kind::{Choice, MailboxChoice};
use crate::path::actor_path::check_name;
use crate::path::address::is_node_name;
use crate::path::canonical_path::check_canonical;
use crate::remote::batch::EnvelopeKind;
use crate::remote::codec::EncodeError;
use crate::remote::control_message::NumberedMessage;
use crate::remote::deploy::Deploy;
use crate::remote::deploy_message::{
    DeployRequest, FailureText, Parent, ParentVerdict, REQUEST_MAX, physical_path, text_of,
};
use crate::remote::deployment::Deployment;
use crate::remote::deployment_state::{DeploymentState, FailedThere, Judged};
use crate::remote::encoder;
use crate::remote::far::Far;
use crate::remote::hub::Hub;
use crate::remote::link::Link;
use crate::remote::stand_in::StandIn;
use crate::sync::OnceLock;
use std::sync::Arc;

impl ActorBuilder {
    /// Makes the actor on another node, by the factory that its type names, and returns the reference to it. On the node's own
    /// name the actor is made here, as by [`spawn`](Self::spawn).
    ///
    /// The actor is a child of the parent that it would have here: it has its name among the children, its failures are judged
    /// here, and it ends with its parent. Its [path](crate::ActorRef::path) is that on the other node, below `/remote` and the
    /// name of this node; the path below its parent finds it as well. If the other node is lost, the actor counts as ended, with
    /// [`node_down`](crate::Terminated::node_down).
    ///
    /// The reference can be used at once: messages wait until the actor is made. If the other node refuses, or does not answer
    /// within 10 s, the actor fails in its initialization, and by default is stopped. A verdict to restart asks again.
    ///
    /// The dispatcher, the stash's capacity, and a mailbox that is given by its name, are those of the other node; the other
    /// node's [deployment sections](crate::SystemBuilder::deploy) for paths below `/remote` go before them. The class has no
    /// effect there.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn), and [`SpawnError::Deploy`] if the actor cannot be sent.
    pub fn deploy_on<A: Deploy>(self, node: &str, args: A::Args) -> Result<ActorRef<A::Message>, SpawnError> {
        let parent = self.plan.parent.clone().map_err(|system| SpawnError::ShutDown { system })?;
        let name = self.plan.name.clone();
        if let Some(name) = &name {
            check_name(name)?;
        }
        let refuse = |fault| {
            let parent = parent.path();
            let parent = parent.as_str().trim_end_matches('/');
            SpawnError::Deploy { path: format!("{parent}/{}", name.as_deref().unwrap_or("$")), fault }
        };
        let Some(hub) = parent.core().system.hub().cloned() else { return Err(refuse(DeployFault::NoNode)) };
        if !is_node_name(node) {
            return Err(refuse(DeployFault::NodeName { node: node.to_owned() }));
        }
        if *node == *hub.settings.name.node {
            return spawn_cell::<A, _>(
                self.plan,
                by_context(move |ctx: &mut Context<A::Message>| A::deploy(&args, ctx)),
            );
        }
        let link = hub.link_to(node).ok_or_else(|| refuse(DeployFault::TooManyNodes))?;
        let request = request::<A>(&self.plan, &hub, &link, &parent, &args).map_err(&refuse)?;
        deploy::<A>(self.plan, &hub, &link, parent.clone(), request, &refuse)
    }
}

/// Writes the request to make an actor.
fn request<A: Deploy>(
    plan: &Plan,
    hub: &Hub,
    link: &Arc<Link>,
    parent: &AnyActorRef,
    args: &A::Args,
) -> Result<DeployRequest, DeployFault> {
    let uid = parent.core().system.next_uid();
    let mailbox = match &plan.mailbox {
        MailboxKind::Chosen(None) => None,
        MailboxKind::Chosen(Some(MailboxChoice(Choice::Name(name)))) => Some(name.to_string()),
        _ => return Err(DeployFault::Mailbox),
    };
    let args = encoder::encode_alone(link, args, REQUEST_MAX).map_err(|error| match error {
        EncodeError::TooLarge { size, max } => DeployFault::TooLarge { size, max },
        EncodeError::Refused { why } => DeployFault::Arguments { why },
        EncodeError::Panicked(payload) => std::panic::resume_unwind(payload),
    })?;
    let parent_path = parent.tree_path();
    let request = DeployRequest {
        uid,
        name: plan.name.clone().unwrap_or_else(|| format!("anonymous-{uid}")),
        parent: Parent {
            path: parent_path.as_str().to_owned(),
            uid: parent.uid(),
            type_id: hub.registry.id_of(parent).unwrap_or(0),
        },
        factory: A::FACTORY.to_owned(),
        args,
        suspensions: 0,
        dispatcher: plan.dispatcher.clone(),
        mailbox,
        stash_capacity: plan.stash_capacity,
    };
    let texts = [&request.dispatcher, &request.mailbox].map(|text| text.as_ref().map_or(0, String::len));
    let size =
        request.args.len() + request.parent.path.len() + request.name.len() + texts.iter().sum::<usize>();
    if size > REQUEST_MAX {
        return Err(DeployFault::TooLarge { size, max: REQUEST_MAX });
    }
    Ok(request)
}

/// Makes the stand-in, and sends the request.
fn deploy<A: Deploy>(
    plan: Plan,
    hub: &Hub,
    link: &Arc<Link>,
    parent: AnyActorRef,
    mut request: DeployRequest,
    refuse: &dyn Fn(DeployFault) -> SpawnError,
) -> Result<ActorRef<A::Message>, SpawnError> {
    let name = &hub.settings.name;
    let path = physical_path(&name.system, &name.node, &request.parent.path, &request.name);
    if let Err(fault) = check_canonical(&path, true) {
        return Err(refuse(DeployFault::Path { path, why: fault.to_string() }));
    }
    let own = link.far::<A::Message>(&path, request.uid);
    let message_type = std::any::type_name::<A::Message>();
    let own = own.ok_or_else(|| refuse(DeployFault::MessageName { message_type }))?;
    let far = Far::of(&own).ok_or_else(|| refuse(DeployFault::MessageName { message_type }))?;
    let (mut held, mut error): (Option<Held<Never>>, _) = (None, None);
    let of_stand_in = Arc::new(OnceLock::new());
    let make = |_| {
        let standing = Standing {
            name: plan.name.as_deref().map(Into::into),
            is_child: true,
            path: far.path(),
            reference: Box::new(own.clone()),
            end: OnceLock::new(),
        };
        let recipe = DeployedElsewhere { far: far.clone(), deployment: of_stand_in.clone() };
        match spawn_standing::<StandIn, _>(Ok(parent), standing, plan.on_failure, recipe) {
            Ok(made) => {
                let cell = made.actor().any_local();
                held = Some(made);
                Some(cell)
            }
            Err(refused) => {
                error = Some(refused);
                None
            }
        }
    };
    let made = link.stand_ins.get_or_make(&far, make, || far.end_so_far());
    let (Some(stand_in), Some(mut held)) = (made, held) else {
        // The uid is new, so no other stand-in is there.
        return Err(error.unwrap_or_else(|| refuse(DeployFault::NoNode)));
    };
    request.suspensions = held.suspensions();
    let state = DeploymentState::new(request.suspensions, hub.now());
    let deployment = Arc::new(Deployment { request: request.clone(), path, stand_in, state });
    // Set once: the stand-in has had no turn.
    let _ = of_stand_in.set(deployment.clone());
    if !link.has_ended() {
        link.deployments.add(deployment.clone());
        send(link, &deployment, NumberedMessage::Deploy(Box::new(request)));
        if link.has_ended() {
            link.deployments.take_all();
        }
    }
    held.start();
    Ok(own)
}

/// Passes control on to an actor that this node has made elsewhere.
struct DeployedElsewhere {
    far: Arc<Far>,
    /// Set before the first turn.
    deployment: Arc<OnceLock<Arc<Deployment>>>,
}

impl Recipe<StandIn> for DeployedElsewhere {
    const IS_STAND_IN: bool = true;

    fn make(&mut self, _: &mut Context<Never>) -> Result<StandIn, Failure> {
        Ok(StandIn)
    }

    fn pass_on(&mut self, control: Control, stage: StandInStage) -> Option<Control> {
        let is_over = stage == StandInStage::Ended || self.far.link.has_ended();
        let Some(deployment) = self.deployment.get().filter(|_| !is_over).cloned() else {
            return match control {
                Control::PoisonPill | Control::Kill => Some(Control::Stop),
                own => Some(own),
            };
        };
        match &control {
            Control::PoisonPill if !deployment.state.is_refused() => {
                self.far.send_pill(EnvelopeKind::Pill);
                return None;
            }
            Control::Kill if !deployment.state.is_refused() => {
                self.far.send_pill(EnvelopeKind::Kill);
                return None;
            }
            Control::Stop | Control::PoisonPill | Control::Kill => {
                stop(&self.far.link, &deployment);
                return None;
            }
            Control::Suspend => {
                deployment.state.suspended();
                tell(&self.far.link, &deployment, ParentVerdict::Suspend);
            }
            Control::Resume { judged: false } => {
                deployment.state.resumed();
                tell(&self.far.link, &deployment, ParentVerdict::Resume { judged: false });
            }
            Control::Resume { judged: true } => {
                self.judged(&deployment, || ParentVerdict::Resume { judged: true });
            }
            Control::Restart(failure) => {
                self.judged(&deployment, || ParentVerdict::Restart { cause: text_of(failure) });
            }
            _ => {}
        }
        Some(control)
    }
}

impl DeployedElsewhere {
    fn judged(&self, deployment: &Arc<Deployment>, verdict: impl FnOnce() -> ParentVerdict) {
        let link = &self.far.link;
        match deployment.state.judged(link.hub.now()) {
            Judged::Tell => tell(link, deployment, verdict()),
            Judged::AskAgain { suspensions } => {
                let request = DeployRequest { suspensions, ..deployment.request.clone() };
                send(link, deployment, NumberedMessage::Deploy(Box::new(request)));
            }
            Judged::Done => {}
        }
    }
}

/// The stand-in is told to stop. It ends when the peer tells of the end of the actor, or at once if the peer was not asked for it.
fn stop(link: &Arc<Link>, deployment: &Arc<Deployment>) {
    if deployment.state.stop() && link.early.forget(deployment.request.uid) {
        end(link, deployment);
    } else {
        // A request that was not answered in time may still make the actor.
        tell(link, deployment, ParentVerdict::Stop);
    }
}

/// Tells the peer of a verdict.
fn tell(link: &Arc<Link>, deployment: &Arc<Deployment>, verdict: ParentVerdict) {
    send(link, deployment, NumberedMessage::Verdict { uid: deployment.request.uid, verdict });
}

/// Sends a message about the actor. If too many wait for the link, nothing about the actor goes out: a verdict that is lost would
/// leave the actor suspended, or not.
fn send(link: &Arc<Link>, deployment: &Arc<Deployment>, message: NumberedMessage) {
    if !link.hub.send_when_active(link, message) {
        deployment.state.refused();
        give_up(link, deployment, format!("too much waits for the link to node {}", link.peer));
    }
}

/// The request was refused here.
fn give_up(link: &Arc<Link>, deployment: &Arc<Deployment>, why: String) {
    // A request that has not gone out does not go out later.
    if link.early.forget(deployment.request.uid) && deployment.state.is_stopping() {
        end(link, deployment);
    } else {
        fail_here(deployment, why);
    }
}

/// The actor is not there, or not any more: ends its stand-in.
fn end(link: &Arc<Link>, deployment: &Deployment) {
    let uid = deployment.request.uid;
    if link.deployments.remove(uid).is_some() {
        link.far_ended(&deployment.path, uid, EndElsewhere { existed: true, node_down: false });
    }
}

/// The peer has answered that it has made the actor.
pub(crate) fn made(link: &Arc<Link>, uid: u32) {
    if let Some(deployment) = link.deployments.get(uid) {
        deployment.state.made();
    }
}

/// The peer has not made the actor.
pub(crate) fn refused(link: &Arc<Link>, uid: u32, why: String) {
    if let Some(deployment) = link.deployments.get(uid) {
        deployment.state.refused();
        fail_here(&deployment, why);
    }
}

/// A request has failed, of which the peer knows nothing: the parent here judges.
fn fail_here(deployment: &Arc<Deployment>, why: String) {
    let of = deployment.clone();
    fail(deployment, move |is_failed| {
        // The stop of one that is told to stop is on its way to the peer, which tells of the end.
        if is_failed || of.state.is_stopping() {
            return Ok(());
        }
        of.state.fails_here();
        Err(Failure::msg(why).during_initialization())
    });
}

/// The actor has failed: its parent here judges.
pub(crate) fn failed(link: &Arc<Link>, uid: u32, failure: FailureText) {
    let Some(deployment) = link.deployments.get(uid) else { return };
    let (link, of) = (link.clone(), deployment.clone());
    fail(&deployment, move |is_failed| match of.state.failed_there(is_failed) {
        FailedThere::Fails => Err(failure.failure()),
        FailedThere::Waits => Ok(()),
        FailedThere::Undone => {
            tell(&link, &of, ParentVerdict::Resume { judged: false });
            Ok(())
        }
    });
}

/// Calls `outcome` in a turn of the stand-in, which fails by its error. The argument says whether the stand-in waits for a verdict.
fn fail(deployment: &Deployment, outcome: impl FnOnce(bool) -> Result<(), Failure> + Send + 'static) {
    let act = move |_: &mut StandIn, ctx: &mut Context<Never>| outcome(ctx.private(|private| private.failed));
    // One that has ended fails no more.
    let _ = deployment.stand_in.send_system(apply::<StandIn>(act));
}

/// The actor has ended.
pub(crate) fn ended(link: &Arc<Link>, uid: u32) {
    let Some(deployment) = link.deployments.get(uid) else { return };
    if deployment.state.is_repeated() {
        // A later request may have made it anew.
        tell(link, &deployment, ParentVerdict::Stop);
    }
    end(link, &deployment);
}

/// Refuses what the peer has not answered in time.
pub(crate) fn refuse_overdue(link: &Arc<Link>) {
    for deployment in link.deployments.refuse_overdue(link.hub.now()) {
        let why = format!("node {} has not answered the request to make it", link.peer);
        give_up(link, &deployment, why);
    }
}
