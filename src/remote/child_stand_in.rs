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
use crate::actor::spawn::{Held, Plan, path_below, spawn_cell, spawn_standing};
use crate::actor::turn::apply;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::{Control, Leaving};
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
use crate::remote::leaving;
use crate::remote::link::Link;
use crate::remote::stand_in::StandIn;
use crate::remote::wire::Wire;
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, OnceLock};
use crate::util::panic::{Guarded, drop_guarded};
use serde::Serialize;
use std::any::Any;
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
        self.deploy_at::<A>(Some(node), args)
    }

    /// Makes the actor by the factory that its type names, on the node that the [settings of the
    /// system](crate::settings::Deployment::remote) name for its path, or else here. As [`deploy_on`](Self::deploy_on), which
    /// follows these settings, too.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::remote::{Deploy, InProcess, Node, Policy};
    /// use pointsman::settings::Deployment;
    ///
    /// struct Audit;
    ///
    /// impl Actor for Audit {
    ///     type Message = String;
    ///     fn receive(&mut self, _: String, _: &mut Context<String>) -> HandlerResult {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// impl Deploy for Audit {
    ///     const FACTORY: &'static str = "demo.Audit";
    ///     type Args = ();
    ///     fn deploy(_: &(), _: &mut Context<String>) -> Result<Self, Failure> {
    ///         Ok(Self)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let network = InProcess::new();
    /// let n1 = System::builder("demo")
    ///     .node(Node::new("n1").engine(network))
    ///     .deploy("/audit", Deployment::new().remote("n2"))
    ///     .build()?;
    /// let here = n1.actor("here").deploy::<Audit>(())?;
    /// let there = n1.actor("audit").deploy::<Audit>(())?;
    /// assert!(here.is_here() && !there.is_here());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`deploy_on`](Self::deploy_on).
    pub fn deploy<A: Deploy>(self, args: A::Args) -> Result<ActorRef<A::Message>, SpawnError> {
        self.deploy_at::<A>(None, args)
    }

    /// As [`deploy_on`](Self::deploy_on), with arguments that others share.
    pub(crate) fn deploy_shared<A: Deploy<Args: Sync>>(
        self,
        node: &str,
        args: &Arc<Guarded<A::Args>>,
    ) -> Result<ActorRef<A::Message>, SpawnError> {
        match NodeOf::new(&self.plan, Some(node)) {
            NodeOf::Here => {
                let args = args.clone();
                spawn_cell::<A, _>(
                    self.plan,
                    by_context(move |ctx: &mut Context<A::Message>| A::deploy(&args, ctx)),
                )
            }
            NodeOf::Other(node) => {
                deploy_held(self.plan, &node, A::FACTORY, &***args, IsHeld::Here).map(HeldElsewhere::start)
            }
        }
    }

    fn deploy_at<A: Deploy>(
        self,
        node: Option<&str>,
        args: A::Args,
    ) -> Result<ActorRef<A::Message>, SpawnError> {
        match NodeOf::new(&self.plan, node) {
            NodeOf::Here => spawn_cell::<A, _>(
                self.plan,
                by_context(move |ctx: &mut Context<A::Message>| A::deploy(&args, ctx)),
            ),
            NodeOf::Other(node) => {
                deploy_held(self.plan, &node, A::FACTORY, &args, IsHeld::Here).map(HeldElsewhere::start)
            }
        }
    }
}

/// The node of a new actor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NodeOf {
    /// The node of the actor's own system.
    Here,
    Other(String),
}

impl NodeOf {
    /// The node that the settings of the system name for an actor, or else this one. `None`: the actor is here.
    pub(crate) fn new(plan: &Plan, node: Option<&str>) -> Self {
        let Ok(parent) = &plan.parent else { return Self::Here };
        let system = &parent.core().system;
        let section = system.section(parent, plan.name.as_deref());
        let chosen = section.and_then(|section| section.deployment.remote.as_deref()).or(node);
        match chosen.filter(|node| system.extensions.node_name() != Some(*node)) {
            Some(node) => Self::Other(node.to_owned()),
            None => Self::Here,
        }
    }
}

/// Whether an actor that is made elsewhere waits for [`HeldElsewhere::start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsHeld {
    /// The actor begins at once. Its stand-in waits.
    Here,
    /// Both wait.
    There,
}

/// An actor that is asked for at another node, and its stand-in before the first turn. If this is dropped, both end.
#[must_use = "an actor that is not started ends"]
pub(crate) struct HeldElsewhere<M: Send + 'static> {
    reference: ActorRef<M>,
    stand_in: Held<Never>,
    link: Arc<Link>,
    uid: u32,
    is_held: IsHeld,
}

impl<M: Send + 'static> HeldElsewhere<M> {
    /// The actor.
    pub(crate) fn actor(&self) -> &ActorRef<M> {
        &self.reference
    }

    /// Gives the actor and its stand-in their first turns.
    pub(crate) fn start(self) -> ActorRef<M> {
        let Self { reference, stand_in, link, uid, is_held } = self;
        if is_held == IsHeld::There {
            let begin = NumberedMessage::Verdict { uid, verdict: ParentVerdict::Begin };
            if let Some(deployment) = link.deployments.get(uid) {
                send(&link, &deployment, begin);
            }
        }
        stand_in.start();
        reference
    }
}

/// Asks a node to make an actor that is a child here, by the factory of this name.
pub(crate) fn deploy_held<M: Wire, T: Serialize>(
    plan: Plan,
    node: &str,
    factory: &str,
    args: &T,
    is_held: IsHeld,
) -> Result<HeldElsewhere<M>, SpawnError> {
    let parent = plan.parent.clone().map_err(|system| SpawnError::ShutDown { system })?;
    let name = plan.name.clone();
    if let Some(name) = &name {
        check_name(name)?;
    }
    let path = || path_below(&parent, name.as_deref());
    let refuse = |fault| SpawnError::Deploy { path: path(), fault };
    if let Some(section) = parent.core().system.section(&parent, name.as_deref()) {
        section.check_has_no_routees(path)?;
    }
    let Some(hub) = parent.core().system.hub().cloned() else { return Err(refuse(DeployFault::NoNode)) };
    if !is_node_name(node) {
        return Err(refuse(DeployFault::NodeName { node: node.to_owned() }));
    }
    let link = hub.link_to(node).ok_or_else(|| refuse(DeployFault::TooManyNodes))?;
    let args = encode_args(&link, args).map_err(&refuse)?;
    let mut request = request(&plan, &hub, &parent, factory, args).map_err(&refuse)?;
    request.is_held = is_held == IsHeld::There;
    deploy::<M>(plan, &hub, &link, parent.clone(), request, &refuse)
}

/// Writes the arguments of a factory.
fn encode_args<T: Serialize>(link: &Arc<Link>, args: &T) -> Result<Vec<u8>, DeployFault> {
    encoder::encode_alone(link, args, REQUEST_MAX).map_err(|error| match error {
        EncodeError::TooLarge { size, max } => DeployFault::TooLarge { size, max },
        EncodeError::Refused { why } => DeployFault::Arguments { why },
        EncodeError::Panicked(payload) => std::panic::resume_unwind(payload),
    })
}

/// Writes the request to make an actor.
fn request(
    plan: &Plan,
    hub: &Hub,
    parent: &AnyActorRef,
    factory: &str,
    args: Vec<u8>,
) -> Result<DeployRequest, DeployFault> {
    let uid = parent.core().system.next_uid();
    let mailbox = match &plan.mailbox {
        MailboxKind::Chosen(None) => None,
        MailboxKind::Chosen(Some(MailboxChoice(Choice::Name(name)))) => Some(name.to_string()),
        _ => return Err(DeployFault::Mailbox),
    };
    let parent_path = parent.tree_path();
    let request = DeployRequest {
        uid,
        name: plan.name.clone().unwrap_or_else(|| format!("anonymous-{uid}")),
        parent: Parent {
            path: parent_path.as_str().to_owned(),
            uid: parent.uid(),
            type_id: hub.registry.id_of(parent).unwrap_or(0),
        },
        factory: factory.to_owned(),
        args,
        suspensions: 0,
        dispatcher: plan.dispatcher.clone(),
        mailbox,
        stash_capacity: plan.stash_capacity,
        routee_index: plan.routee_index,
        is_held: false,
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
fn deploy<M: Wire>(
    plan: Plan,
    hub: &Hub,
    link: &Arc<Link>,
    parent: AnyActorRef,
    mut request: DeployRequest,
    refuse: &dyn Fn(DeployFault) -> SpawnError,
) -> Result<HeldElsewhere<M>, SpawnError> {
    let name = &hub.settings.name;
    let path = physical_path(&name.system, &name.node, &request.parent.path, &request.name);
    if let Err(fault) = check_canonical(&path, true) {
        return Err(refuse(DeployFault::Path { path, why: fault.to_string() }));
    }
    let own = link.far::<M>(&path, request.uid);
    let message_type = std::any::type_name::<M>();
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
        let recipe = DeployedElsewhere {
            far: far.clone(),
            deployment: of_stand_in.clone(),
            send_leave: leaving::send::<M>,
        };
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
    let uid = request.uid;
    let is_held = if request.is_held { IsHeld::There } else { IsHeld::Here };
    let state = DeploymentState::new(request.suspensions, hub.now());
    let deployment =
        Arc::new(Deployment { request: request.clone(), path, stand_in, state, leave: Mutex::new(None) });
    // Set once: the stand-in has had no turn.
    let _ = of_stand_in.set(deployment.clone());
    if !link.has_ended() {
        link.deployments.add(deployment.clone());
        send(link, &deployment, NumberedMessage::Deploy(Box::new(request)));
        if link.has_ended() {
            link.deployments.take_all();
        }
    }
    Ok(HeldElsewhere { reference: own, stand_in: held, link: link.clone(), uid, is_held })
}

/// Passes control on to an actor that this node has made elsewhere.
struct DeployedElsewhere {
    far: Arc<Far>,
    /// Set before the first turn.
    deployment: Arc<OnceLock<Arc<Deployment>>>,
    send_leave: SendLeave,
}

/// Sends the request to leave a router, or returns it if there is no room.
type SendLeave = fn(&Arc<Far>, Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>>;

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
                // It leaves by its end.
                Control::Leave { leave, .. } => {
                    drop_guarded(leave);
                    None
                }
                own => Some(own),
            };
        };
        if let Control::Leave { leave, .. } = control {
            self.leave(&deployment, leave);
            return None;
        }
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
    /// Asks the actor to leave its router, now or when there is room. One that was not made ends.
    fn leave(&self, deployment: &Arc<Deployment>, leave: Box<dyn Any + Send>) {
        if deployment.state.is_refused() {
            drop_guarded(leave);
            stop(&self.far.link, deployment);
        } else if let Err(leave) = (self.send_leave)(&self.far, leave) {
            deployment.keep_leave(leave);
        }
    }

    fn judged(&self, deployment: &Arc<Deployment>, verdict: impl FnOnce() -> ParentVerdict) {
        let link = &self.far.link;
        match deployment.state.judged(link.hub.now()) {
            Judged::Tell => tell(link, deployment, verdict()),
            Judged::AskAgain { suspensions } => {
                let request = DeployRequest { suspensions, is_held: false, ..deployment.request.clone() };
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
    let of = deployment.clone();
    fail(&deployment, move |is_failed| match of.state.failed_there(is_failed) {
        FailedThere::Fails => Err(failure.failure()),
        FailedThere::Waits => Ok(()),
    });
}

/// Calls `outcome` in a turn of the stand-in, which fails by its error. The argument says whether the stand-in waits for a verdict.
fn fail(deployment: &Deployment, outcome: impl FnOnce(bool) -> Result<(), Failure> + Send + 'static) {
    let act = move |_: &mut StandIn, ctx: &mut Context<Never>| outcome(ctx.private(|private| private.failed));
    // One that has ended fails no more.
    let _ = deployment.stand_in.send_system(apply::<StandIn>(act));
}

/// The actor was restarted.
pub(crate) fn restarted(link: &Arc<Link>, uid: u32) {
    if let Some(deployment) = link.deployments.get(uid) {
        // One that has ended is not counted for any more.
        let _ = deployment.stand_in.send_system(apply::<StandIn>(|_, ctx| {
            // Ordering: Relaxed; a count, and this turn alone writes it.
            let restarts = ctx.core().restarts.load(Ordering::Relaxed);
            ctx.core().restarts.store(restarts.saturating_add(1), Ordering::Relaxed);
            Ok(())
        }));
    }
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

/// Looks once more whether there is room for requests to leave routers.
pub(crate) fn leave_again(link: &Arc<Link>) {
    for deployment in link.deployments.all() {
        if let Some(leave) = deployment.take_leave() {
            let control = Control::Leave { leave, leaving: Leaving::AtPosition };
            drop_guarded(deployment.stand_in.send_system(control).err());
        }
    }
}

/// Refuses what the peer has not answered in time.
pub(crate) fn refuse_overdue(link: &Arc<Link>) {
    for deployment in link.deployments.refuse_overdue(link.hub.now()) {
        let why = format!("node {} has not answered the request to make it", link.peer);
        give_up(link, &deployment, why);
    }
}
