//! The request for a reference to an actor that is known by its path, here or at another node.

use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_clock::AskClock;
use crate::ask::error::{AskError, Outcome, RefusedBy};
use crate::ask::reply::{AnsweredBy, ReplyDestination, ReplyTo};
use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::system::SystemRef;
use crate::path::actor_path::ActorPath;
use crate::path::canonical_path::parse_canonical;
use crate::path::error::{PathError, PathFault};
use crate::remote::batch::{EnvelopeKind, Place};
use crate::remote::encoder::{self, Pushed};
use crate::remote::hub::Hub;
use crate::remote::link::Link;
use crate::remote::outbox::EntryMemory;
use crate::remote::reply_ports::ExportedPort;
use crate::remote::wire::{Wire, wire_id};
use crate::selection::lookup::LookupError;
use crate::selection::place_elsewhere::PlaceElsewhere;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::util::debug_by_display::debug_by_display;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The answer of a node to the request for a reference. New answers come last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Identity {
    Found {
        path: String,
        uid: u32,
        system: u64,
    },
    NotFound,
    WrongType {
        takes: String,
    },
    NotAllowed,
    UnknownType,
    /// The answer to a request of the type [`ANY_TYPE`]: the actors of this start of the system that have answered, and `None` for
    /// each that has ended or takes a type of message that is not registered.
    Actors {
        system: u64,
        found: Vec<Option<FoundActor>>,
    },
}

/// An actor that has answered a request for its reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundActor {
    pub(crate) path: String,
    pub(crate) uid: u32,
    pub(crate) type_id: u64,
}

/// The number of the type in a request for references of any type.
pub(crate) const ANY_TYPE: u64 = 0;

impl Identity {
    /// The reason why there is no reference.
    pub(crate) fn refusal(&self) -> Option<DeadLetterReason> {
        match self {
            Self::Found { .. } | Self::Actors { .. } => None,
            Self::NotFound => Some(DeadLetterReason::NoActor),
            Self::WrongType { .. } => Some(DeadLetterReason::OtherType),
            Self::NotAllowed => Some(DeadLetterReason::NotAllowed),
            Self::UnknownType => Some(DeadLetterReason::UnknownType),
        }
    }
}

impl SystemRef {
    /// Asks for the reference to the actor that is now at a path, here or at another node: `pointsman://shop@n2/user/worker`.
    /// The answer is a [`Future`]; a thread can also [`wait`](Resolving::wait) for it. At another node, its
    /// [policy](crate::remote::Policy::allow_path) must list the path. Below a child that its
    /// parent has made at another node, a path goes on there: its path there begins with `/remote`.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::remote::{InProcess, Node, Policy};
    /// use std::time::Duration;
    ///
    /// struct Printer(std::sync::mpsc::Sender<String>);
    /// impl Actor for Printer {
    ///     type Message = String;
    ///     fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
    ///         self.0.send(text)?;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let network = InProcess::new();
    /// let n1 = System::builder("shop").node(Node::new("n1").engine(network.clone())).build()?;
    /// let open_path = Policy::closed().allow_path("/user/printer");
    /// let node = Node::new("n2").engine(network).message::<String>().policy(open_path);
    /// let n2 = System::builder("shop").node(node).build()?;
    /// let (sender, printed) = std::sync::mpsc::channel();
    /// n2.actor("printer").spawn(move || Printer(sender.clone()))?;
    ///
    /// let printer = n1.resolve::<String>("pointsman://shop@n2/user/printer", Duration::from_secs(10)).wait()?;
    /// printer.tell("over the hills");
    /// assert_eq!(printed.recv()?, "over the hills");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ResolveError`], from the answer.
    pub fn resolve<M: Wire>(&self, path: &str, within: Duration) -> Resolving<M> {
        let state = match self.begin_resolving::<M>(path, within) {
            Ok(state) => state,
            Err(error) => State::Ready(Some(Err(error))),
        };
        Resolving { state, message: PhantomData }
    }

    fn begin_resolving<M: Wire>(&self, text: &str, within: Duration) -> Result<State<M>, ResolveError> {
        let path = parse_canonical(text)?;
        let core = self.core();
        let PlaceElsewhere { node, text: names } = match path.address() {
            Some(address) if !core.is_own_address(address) => {
                let elsewhere = || PathError::new(text, &address.to_string(), 0, PathFault::Elsewhere);
                let is_of_system = address.system() == core.name;
                let node = address.node_name().filter(|_| is_of_system).ok_or_else(elsewhere)?.to_owned();
                let names = match path.uid() {
                    Some(uid) => format!("{}#{uid}", path.as_str()),
                    None => path.as_str().to_owned(),
                };
                PlaceElsewhere { node, text: names }
            }
            _ => match core.place_elsewhere(&path) {
                Some(place) => place,
                None => {
                    let found = core.actor_at(&path).and_then(|actor| Ok(actor.typed::<M>()?));
                    let found = found.map_err(|error| ResolveError::of_lookup(error, path));
                    return Ok(State::Ready(Some(found)));
                }
            },
        };
        let elsewhere = || PathError::new(text, text, 0, PathFault::Elsewhere);
        let hub = core.hub().ok_or_else(elsewhere)?.clone();
        let clock = match core.tree() {
            Some(tree) => AskClock::System(tree.temp),
            None => return Err(ResolveError::NodeGone { node }),
        };
        let (reply_to, ask) = ask::begin::<Identity>(clock);
        let type_id = const { wire_id(M::NAME, M::VERSION) };
        identify(hub.link_to(&node).as_ref(), &names, type_id, &(), reply_to);
        Ok(State::Asked(Asked { ask: ask.within(within), hub, node, path, after: within }))
    }
}

/// Sends the request on a link.
pub(super) fn identify<B: Serialize>(
    link: Option<&Arc<Link>>,
    text: &str,
    type_id: u64,
    body: &B,
    reply_to: ReplyTo<Identity>,
) {
    let gone = AskError::PeerGone { target: None };
    let Some(link) = link else { return reply_to.fail(gone) };
    let Ok(token) = link.export(ExportedPort::new(reply_to.clone())) else {
        return reply_to.fail(AskError::refused_for(DeadLetterReason::LinkFull));
    };
    drop(reply_to);
    let (place, memory) = (Place::Selection { text, type_id }, EntryMemory::default());
    let lane = link.lane_of(text.split('#').next().unwrap_or(text));
    if !matches!(
        encoder::push(link, EnvelopeKind::Identify, place, &memory, lane, &[token], body),
        Pushed::Done
    ) {
        if let Some(port) = link.hub.ports.withdraw(token) {
            port.fail(gone);
        }
    }
}

/// Asks a node for the reference to the actor at a path. `take` gets the answer, on the thread that brings it; there may be
/// none, if a message of a link that lives on is lost. `is_wanted` says whether an answer is still of use.
pub(crate) fn resolve_at<M: Wire>(
    hub: &Arc<Hub>,
    node: &str,
    path: &str,
    is_wanted: &Arc<AtomicBool>,
    take: impl Fn(Result<ActorRef<M>, ResolveError>) + Send + Sync + 'static,
) {
    let type_id = const { wire_id(M::NAME, M::VERSION) };
    let place = hub.path_at(node, path);
    let (hub, node) = (hub.clone(), node.to_owned());
    let link = hub.link_to(&node);
    let is_wanted = is_wanted.clone();
    let taker = Taker { hub, node, path: place, is_wanted, take, message: PhantomData::<fn(M)> };
    identify(link.as_ref(), path, type_id, &(), ReplyTo::to_own_sink(taker));
}

/// Takes the answer of the other node.
struct Taker<M, F> {
    hub: Arc<Hub>,
    node: String,
    path: ActorPath,
    is_wanted: Arc<AtomicBool>,
    take: F,
    message: PhantomData<fn(M)>,
}

impl<M, F> ReplyDestination<Identity> for Taker<M, F>
where
    M: Wire,
    F: Fn(Result<ActorRef<M>, ResolveError>) + Send + Sync,
{
    fn take(&self, outcome: Outcome<Identity>, _: AnsweredBy<'_>) -> Result<(), Outcome<Identity>> {
        (self.take)(resolved(outcome, &self.hub, self.node.clone(), &self.path, Duration::ZERO));
        Ok(())
    }

    fn wanted(&self) -> bool {
        // Ordering: Relaxed; advice only.
        self.is_wanted.load(Ordering::Relaxed)
    }
}

/// A reference on its way, from [`SystemRef::resolve`](crate::SystemRef::resolve).
#[must_use = "the answer is the reference"]
pub struct Resolving<M> {
    state: State<M>,
    message: PhantomData<fn(M)>,
}

enum State<M> {
    /// `None` once the answer was given.
    Ready(Option<Result<ActorRef<M>, ResolveError>>),
    Asked(Asked),
}

struct Asked {
    ask: Ask<Identity>,
    hub: Arc<Hub>,
    node: String,
    path: ActorPath,
    after: Duration,
}

impl<M: Wire> Resolving<M> {
    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// [`ResolveError`]; a thread that must not wait gets [`ResolveError::Ask`] at once.
    pub fn wait(self) -> Result<ActorRef<M>, ResolveError> {
        match self.state {
            State::Ready(found) => found.unwrap_or(Err(ResolveError::Ask(AskError::no_reply()))),
            State::Asked(Asked { ask, hub, node, path, after }) => {
                resolved(ask.wait(), &hub, node, &path, after)
            }
        }
    }
}

impl<M: Wire> Future for Resolving<M> {
    type Output = Result<ActorRef<M>, ResolveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().state {
            State::Ready(found) => {
                Poll::Ready(found.take().unwrap_or(Err(ResolveError::Ask(AskError::no_reply()))))
            }
            State::Asked(asked) => Pin::new(&mut asked.ask)
                .poll(cx)
                .map(|answer| resolved(answer, &asked.hub, asked.node.clone(), &asked.path, asked.after)),
        }
    }
}

impl<M> fmt::Debug for Resolving<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Resolving");
        if let State::Asked(asked) = &self.state {
            shown.field("path", &asked.path);
        }
        shown.finish_non_exhaustive()
    }
}

/// Makes the reference of an answer.
fn resolved<M: Wire>(
    answer: Result<Identity, AskError>,
    hub: &Arc<Hub>,
    node: String,
    path: &ActorPath,
    after: Duration,
) -> Result<ActorRef<M>, ResolveError> {
    match answer {
        Ok(Identity::Found { path: found, uid, system }) => {
            let gone = || ResolveError::NodeGone { node: node.clone() };
            let link = hub.link(&node, system).ok_or_else(gone)?;
            let is_canonical = crate::path::canonical_path::check_canonical(&found, uid > 0).is_ok();
            let far = if is_canonical { link.far(&found, uid) } else { None };
            far.ok_or(ResolveError::Refused { by: RefusedBy::Undecodable })
        }
        Ok(Identity::Actors { .. }) => Err(ResolveError::Refused { by: RefusedBy::Undecodable }),
        Ok(Identity::NotFound) => Err(ResolveError::NotFound { path: path.clone() }),
        Ok(Identity::WrongType { takes }) => {
            Err(ResolveError::WrongType { path: path.clone(), takes, wanted: std::any::type_name::<M>() })
        }
        Ok(Identity::NotAllowed) => Err(ResolveError::Refused { by: RefusedBy::NotAllowed }),
        Ok(Identity::UnknownType) => Err(ResolveError::Refused { by: RefusedBy::UnknownType }),
        Err(AskError::Timeout { .. }) => Err(ResolveError::Timeout { after }),
        Err(
            AskError::PeerGone { .. } | AskError::Undeliverable { reason: DeadLetterReason::NodeGone, .. },
        ) => Err(ResolveError::NodeGone { node }),
        Err(AskError::Refused { by, .. }) => Err(ResolveError::Refused { by }),
        Err(other) => Err(ResolveError::Ask(other)),
    }
}

/// The reason why [`SystemRef::resolve`](crate::SystemRef::resolve) has no reference.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// The text is no canonical path, or one in a system that is no node of this cluster.
    Path(PathError),
    /// No actor is at the path.
    NotFound {
        /// The path.
        path: ActorPath,
    },
    /// The actor takes another type of message.
    WrongType {
        /// The path.
        path: ActorPath,
        /// The type that it takes.
        takes: String,
        /// The type that was asked for.
        wanted: &'static str,
    },
    /// No answer came in time.
    Timeout {
        /// The time.
        after: Duration,
    },
    /// There is no such node, it refuses this one, or it went while it was asked.
    NodeGone {
        /// The name of the node.
        node: String,
    },
    /// The node refuses to tell.
    Refused {
        /// The cause.
        by: RefusedBy,
    },
    /// The request could not be waited for, or was lost with the end of the system.
    Ask(AskError),
}

impl ResolveError {
    fn of_lookup(error: LookupError, path: ActorPath) -> Self {
        match error {
            LookupError::Path(error) => Self::Path(error),
            LookupError::WrongType(error) => {
                Self::WrongType { path, takes: error.takes.to_owned(), wanted: error.wanted }
            }
            _ => Self::NotFound { path },
        }
    }
}

impl From<PathError> for ResolveError {
    fn from(error: PathError) -> Self {
        Self::Path(error)
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::NotFound { path } => write!(f, "no actor at {path}: create it first, or check the names"),
            Self::WrongType { path, takes, wanted } => {
                write!(f, "{path} takes {takes}, not {wanted}: ask for the type that it takes")
            }
            Self::Timeout { after } => {
                write!(
                    f,
                    "no answer within {after:?}: look whether the node runs, and whether its name is right"
                )
            }
            Self::NodeGone { node } => {
                write!(
                    f,
                    "node {node:?} does not answer, refuses this node, or is gone: look whether it runs"
                )
            }
            Self::Refused { by: RefusedBy::NotAllowed } => f.write_str(
                "the node does not let this path be asked for: list it by `Policy::allow_path` there",
            ),
            Self::Refused { by } => write!(f, "the node refuses: {by}"),
            Self::Ask(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ResolveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Path(error) => Some(error),
            Self::Ask(error) => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { ResolveError }
