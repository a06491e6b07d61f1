//! The published table of routees.

use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::recipient_identity::{RecipientIdentity, SameRecipient};
use crate::failure::guarded;
use crate::path::actor_path::ActorPath;
use crate::path::address::SystemAddress;
use crate::routing::path_routee::{WrittenPath, path_ref};
use crate::routing::router_info::RouterInfo;
use crate::routing::table_token::TableToken;
use crate::selection::selection::Found;
use crate::util::panic::drop_guarded;
use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc as StdArc;

/// A destination of a router: an actor, another router, or any other recipient that has a reference.
///
/// | kind | made by | equal to | watched by a router's head |
/// |---|---|---|---|
/// | an actor, a router | `Routee::from(reference)` | the same incarnation | yes |
/// | a function, a [`Recipient`](crate::actor::Recipient), an [adapter](ActorRef::contramap) | the same, from [`ActorRef::from_fn`], [`ActorRef::to_recipient`], [`ActorRef::narrow`] | an [equal](ActorRef#equality) reference | if an actor stands behind |
/// | the same with a name | [`with_identity`](Self::with_identity) | a routee with the same identity | the same |
/// | a path | `Routee::from(selection)`, [`selected`](Self::selected), [`selected_one`](Self::selected_one) | a routee of an equal [`Selection`](crate::selection::Selection) | no |
/// | several | [`several`](Self::several) | a routee of equal elements in the same order | no |
/// | none | [`none`](Self::none) | any other empty routee | no |
pub struct Routee<M> {
    actor: ActorRef<M>,
    identity: Identity<M>,
}

/// The identity that tells a routee from others.
enum Identity<M> {
    /// The reference is the identity; the text is that on hash rings.
    Path(StdArc<str>),
    /// The text is the identity.
    Given(StdArc<str>),
    Several(StdArc<Parts<M>>),
    None,
    /// The selection is the identity; the actors that stand there may change.
    AtPath(StdArc<WrittenPath<M>>),
}

/// The parts of a routee set.
pub(crate) struct Parts<M> {
    pub list: Box<[Routee<M>]>,
    pub identity: String,
    /// Makes a routee set of other parts.
    pub again: fn(Vec<Routee<M>>) -> Routee<M>,
}

/// The routees of a router at a moment, and the index of its logic over them.
// Aligned to a cache line, as in `routing_ref.rs`.
#[repr(align(64))]
pub struct Routees<M> {
    list: StdArc<[Routee<M>]>,
    prepared: Option<Box<dyn Any + Send + Sync>>,
    /// Counts the tables that this router has published.
    version: u64,
    /// Tells the router's head whether it is freed.
    _token: Option<StdArc<TableToken>>,
}

impl<M: Send + 'static> Routee<M> {
    pub(crate) fn new(actor: ActorRef<M>) -> Self {
        let path = actor.path();
        let identity = match actor.system().and_then(|system| system.node_address()) {
            None => path.as_str().into(),
            Some(own) => text_for_nodes(path, own).into(),
        };
        Self { actor, identity: Identity::Path(identity) }
    }

    /// The routee of a path, which finds actors and counts copies as `info` says.
    pub(crate) fn at_path(path: StdArc<WrittenPath<M>>, info: StdArc<RouterInfo>) -> Self {
        let actor = path_ref(path.clone(), info);
        Self { actor, identity: Identity::AtPath(path) }
    }

    /// This routee as a routee of this router: a path with wildcards leaves the router itself out, and counts as the
    /// router. A path in another system stays as it is.
    pub(crate) fn for_router(self, info: &StdArc<RouterInfo>) -> Self {
        match &self.identity {
            Identity::AtPath(path) if StdArc::ptr_eq(path.selection.system().core(), &info.system) => {
                Self::at_path(path.clone(), info.clone())
            }
            Identity::Several(parts) if parts.list.iter().any(Self::has_path) => {
                (parts.again)(parts.list.iter().map(|part| part.clone().for_router(info)).collect())
            }
            _ => self,
        }
    }

    fn has_path(&self) -> bool {
        match &self.identity {
            Identity::AtPath(_) => true,
            Identity::Several(parts) => parts.list.iter().any(Self::has_path),
            Identity::Path(_) | Identity::Given(_) | Identity::None => false,
        }
    }

    /// The actor whose end takes it out of the table; none behind a path, a function, or several.
    pub(crate) fn watched(&self) -> Option<AnyActorRef> {
        match &self.identity {
            Identity::Path(_) | Identity::Given(_) => self.any(),
            Identity::Several(_) | Identity::None | Identity::AtPath(_) => None,
        }
    }

    /// The actor behind the routee, if it tells of one. A user's recipient is asked itself and may panic, in the middle
    /// of a change that is all or nothing, or of a walk over all routees.
    fn any(&self) -> Option<AnyActorRef> {
        guarded(|| Ok(self.actor.untyped())).unwrap_or_else(|failure| {
            drop_guarded(failure);
            None
        })
    }

    /// Whether `other` means this routee: an equal routee means it, and a plain reference means every routee that has
    /// that reference.
    pub(crate) fn is_meant_by(&self, other: &Routee<M>) -> bool {
        self == other || (matches!(other.identity, Identity::Path(_)) && self.actor == other.actor)
    }

    /// Returns the actors that control messages for this routee are sent to.
    pub(crate) fn actors(&self) -> Vec<AnyActorRef> {
        match &self.identity {
            Identity::AtPath(path) => match path.selection.resolve() {
                Found::Actors { here, .. } => here,
                Found::Missing(_) => Vec::new(),
            },
            Identity::Several(parts) => parts.list.iter().flat_map(Routee::actors).collect(),
            Identity::Path(_) | Identity::Given(_) | Identity::None => self.any().into_iter().collect(),
        }
    }

    /// A routee with an identity of its own: for a recipient without a path, such as a function, so that hash rings can
    /// tell it from others.
    pub fn with_identity(actor: ActorRef<M>, identity: &str) -> Self {
        Self { actor, identity: Identity::Given(identity.into()) }
    }

    /// No routee: a message that a logic sends here becomes a dead letter, or comes back to `try_tell`.
    pub fn none() -> Self {
        Self { actor: ActorRef::to_own_recipient(EmptyRoutee), identity: Identity::None }
    }

    pub(crate) fn of_parts(actor: ActorRef<M>, parts: StdArc<Parts<M>>) -> Self {
        Self { actor, identity: Identity::Several(parts) }
    }

    /// The reference of the routee.
    #[inline]
    pub fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// Returns the identity of the routee on hash rings: its path without the number of its incarnation, the [given
    /// identity](Self::with_identity), the text of a [selection](Self::selected), or in a [group by
    /// path](super::RouterBuilder::group_at) the path as it was written.
    ///
    /// In a system with a node, the identity is the whole path with the address of its node,
    /// `pointsman://demo@n1/user/worker`, for a routee of this node too, and for a routee that is given by a path however the
    /// path is written. So all nodes draw the same ring.
    pub fn identity(&self) -> &str {
        match &self.identity {
            Identity::Path(text) | Identity::Given(text) => text,
            Identity::Several(parts) => &parts.identity,
            Identity::None => "none",
            Identity::AtPath(path) => &path.text,
        }
    }
}

/// The identity of a path in a system with a node, whose own address is `own`: all nodes have the same one.
pub(crate) fn text_for_nodes(path: ActorPath, own: SystemAddress) -> String {
    match path.address() {
        Some(_) => path.to_string(),
        None => path.with_address(own).to_string(),
    }
}

impl<M: Send + 'static> Routees<M> {
    pub(crate) fn new(
        list: Vec<Routee<M>>,
        prepared: Option<Box<dyn Any + Send + Sync>>,
        version: u64,
    ) -> Self {
        Self { list: list.into(), prepared, version, _token: None }
    }

    /// This table, which holds `token` until it is freed.
    pub(crate) fn holding(self, token: StdArc<TableToken>) -> Self {
        Self { _token: Some(token), ..self }
    }

    /// Returns the bytes of a table of so many routees, without the index of the logic.
    pub(crate) fn bytes(count: usize) -> usize {
        size_of::<Self>().saturating_add(count.saturating_mul(size_of::<Routee<M>>()))
    }

    /// Returns the number of routees.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no routees.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The routee of this index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Routee<M>> {
        self.list.get(index)
    }

    /// Returns the load of the routee of this index; closed if there is none.
    #[inline]
    pub fn load(&self, index: usize) -> RecipientLoad {
        self.list.get(index).map_or(RecipientLoad::Closed, |routee| routee.actor.load())
    }

    /// Returns the routee that a logic has picked; `None` if it has picked none, or an index that does not exist.
    #[inline]
    pub fn picked(&self, pick: Option<usize>) -> Option<&Routee<M>> {
        self.get(pick?)
    }

    /// Returns the first routee from `start` on, going round, that has not stopped: a logic that draws at random goes
    /// on there when the routee that it drew has stopped. `start` is below [`len`](Self::len).
    pub(crate) fn first_open(&self, start: usize) -> Option<usize> {
        let is_open = |index: &usize| self.get(*index).is_some_and(|routee| !routee.actor.is_closed());
        (start..self.len()).chain(0..start).find(is_open)
    }

    /// Whether no routee lives, so that no routee could have taken a message.
    pub(crate) fn have_all_ended(&self) -> bool {
        // The check may be user code, and a message may be in hand.
        guarded(|| Ok(self.iter().all(|routee| routee.actor.is_closed()))).unwrap_or_else(|failure| {
            drop_guarded(failure);
            false
        })
    }

    /// Returns the load of the routee with the least to do; closed if there are none.
    pub(crate) fn least_load(&self) -> RecipientLoad {
        let loads = self.iter().map(|routee| routee.actor.load());
        loads.min_by_key(|load| load.rank()).unwrap_or(RecipientLoad::Closed)
    }

    /// Iterates over the routees, in the order of the table.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Routee<M>> {
        self.list.iter()
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Routee<M>] {
        &self.list
    }

    /// Returns all routees, to be kept after the message's way through the router has ended. Taking and dropping the
    /// list each cost a read-modify-write that the router's other senders share.
    pub fn share(&self) -> StdArc<[Routee<M>]> {
        self.list.clone()
    }

    /// Returns the index that the logic's [`prepare`](super::RoutingLogic::prepare) made for this table.
    #[inline]
    pub fn prepared<T: 'static>(&self) -> Option<&T> {
        self.prepared.as_deref().and_then(|prepared| prepared.downcast_ref())
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

impl<M> Clone for Routee<M> {
    fn clone(&self) -> Self {
        let identity = match &self.identity {
            Identity::Path(text) => Identity::Path(text.clone()),
            Identity::Given(text) => Identity::Given(text.clone()),
            Identity::Several(parts) => Identity::Several(parts.clone()),
            Identity::None => Identity::None,
            Identity::AtPath(path) => Identity::AtPath(path.clone()),
        };
        Self { actor: self.actor.clone(), identity }
    }
}

impl<M> PartialEq for Routee<M> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.identity, &other.identity) {
            (Identity::Path(_), Identity::Path(_)) => self.actor == other.actor,
            (Identity::Given(one), Identity::Given(two)) => one == two,
            (Identity::Several(one), Identity::Several(two)) => one.list == two.list,
            (Identity::None, Identity::None) => true,
            (Identity::AtPath(one), Identity::AtPath(two)) => one.selection == two.selection,
            _ => false,
        }
    }
}

impl<M> Eq for Routee<M> {}

impl<M> Routee<M> {
    /// Feeds the parts of the identity that equal routees have in common.
    pub(crate) fn feed(&self, mut state: &mut dyn Hasher) {
        match &self.identity {
            Identity::Path(_) => self.actor.hash(&mut state),
            Identity::Given(text) => text.hash(&mut state),
            Identity::Several(parts) => parts.list.iter().for_each(|part| part.feed(state)),
            Identity::None => {}
            Identity::AtPath(path) => path.selection.hash(&mut state),
        }
    }

    /// The rank of this kind of identity in the order.
    fn rank(&self) -> u8 {
        match &self.identity {
            Identity::Path(_) => 0,
            Identity::Given(_) => 1,
            Identity::Several(_) => 2,
            Identity::None => 3,
            Identity::AtPath(_) => 4,
        }
    }
}

/// A total order of lists, in which equal lists are equal.
pub(crate) fn order<M>(one: &[Routee<M>], two: &[Routee<M>]) -> Ordering {
    let of_parts = |(one, two): (&Routee<M>, &Routee<M>)| match (&one.identity, &two.identity) {
        (Identity::Path(_), Identity::Path(_)) => one.actor.cmp(&two.actor),
        (Identity::Given(one), Identity::Given(two)) => one.cmp(two),
        (Identity::Several(one), Identity::Several(two)) => order(&one.list, &two.list),
        (Identity::AtPath(one), Identity::AtPath(two)) => one.selection.order(&two.selection),
        _ => one.rank().cmp(&two.rank()),
    };
    let pairs = one.iter().zip(two).map(of_parts);
    pairs.fold(one.len().cmp(&two.len()), Ordering::then)
}

impl<M: Send + 'static> From<ActorRef<M>> for Routee<M> {
    fn from(actor: ActorRef<M>) -> Self {
        Self::new(actor)
    }
}

impl<M: Send + 'static> From<&ActorRef<M>> for Routee<M> {
    fn from(actor: &ActorRef<M>) -> Self {
        Self::new(actor.clone())
    }
}

impl<M: Send + 'static> From<&Routee<M>> for Routee<M> {
    fn from(routee: &Routee<M>) -> Self {
        routee.clone()
    }
}

impl<M: Send + 'static> fmt::Debug for Routee<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Routee({})", self.identity())
    }
}

impl<M: Send + 'static> fmt::Debug for Routees<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter()).finish()
    }
}

/// The recipient of the empty routee: it refuses each message.
pub(crate) struct EmptyRoutee;

impl<M> OwnRecipient<M> for EmptyRoutee {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        Err(SendError::NoRoutee(message))
    }

    fn meaning(&self) -> Option<&dyn RecipientIdentity> {
        Some(self)
    }
}

/// All empty routees are equal.
impl SameRecipient for EmptyRoutee {
    fn is_like(&self, _: &Self) -> bool {
        true
    }

    fn feed(&self, _: &mut dyn Hasher) {}

    fn order(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::actor::actor::{Actor, HandlerResult};
    use crate::actor::context::Context;
    use crate::routing::router::Router;
    use crate::system::System;

    struct Idle;

    impl Actor for Idle {
        type Message = u8;
        fn receive(&mut self, _: u8, _: &mut Context<u8>) -> HandlerResult {
            Ok(())
        }
    }

    /// The identities of routees of a system: an actor by its reference, behind an adapter, and by its path, a path with a wildcard,
    /// a function, two together, and a relative path of a group.
    fn identities(system: &System) -> Vec<String> {
        let actor = system.actor("worker").spawn(|| Idle).unwrap();
        let selected = |path: &str| Routee::<u8>::from(system.select(path).unwrap());
        let routees = [
            Routee::from(&actor),
            Routee::from(actor.contramap(|number: u8| number)),
            selected("/user//worker"),
            selected("/user/w?rker"),
            Routee::from(ActorRef::from_fn(|_: u8| ())),
            Routee::several([Routee::from(&actor), Routee::with_identity(actor.clone(), "given")]),
        ];
        let _group: Router<u8> = system.router("group").group_at(["../worker"]).spawn().unwrap();
        let of_group = system.stats().routers[0].routees[0].identity.clone();
        routees.iter().map(|routee| routee.identity().to_owned()).chain([of_group]).collect()
    }

    #[test]
    fn a_system_without_a_node_has_paths_without_addresses() {
        let system = System::builder("demo").build().unwrap();
        let worker = "/user/worker";
        let several = "(/user/worker, given)";
        let expected = [worker, worker, worker, "/user/w?rker", "/deadLetters", several, "../worker"];
        assert_eq!(identities(&system), expected);
    }

    #[cfg(feature = "remote")]
    #[test]
    fn a_system_with_a_node_has_paths_with_its_address() {
        use crate::remote::{InProcess, Node};
        let node = Node::new("n1").engine(InProcess::new());
        let system = System::builder("demo").node(node).build().unwrap();
        let worker = "pointsman://demo@n1/user/worker";
        let expected = [
            worker,
            worker,
            worker,
            "pointsman://demo@n1/user/w?rker",
            "/deadLetters",
            "(pointsman://demo@n1/user/worker, given)",
            worker,
        ];
        assert_eq!(identities(&system), expected);
    }
}
