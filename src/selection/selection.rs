//! A selection is a path with wildcards, and means the actors that stand there at the moment of sending.
//!
//! A selection is resolved anew at each send, by walking the children. The walk goes element by element and keeps the
//! list of actors reached so far. A missing place is reported as long as the list has only one actor. Once a pattern
//! has matched several actors, a place that does not exist below one of them is not reported.

use crate::actor::context::Context;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::{AnyActorRef, WrongType};
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::system::SystemRef;
use crate::path::actor_path::{ActorPath, PARENT, bad_character, elements, parse_uid};
use crate::path::address::SystemAddress;
#[cfg(feature = "remote")]
use crate::path::canonical_path::check_selection_text;
use crate::path::error::{PathError, PathFault};
use crate::selection::place_elsewhere::PlaceElsewhere;
use crate::sync::HashSet;
use crate::util::debug_by_display::debug_by_display;
use std::any::{TypeId, type_name};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc as StdArc;

/// A path to send to, which may have wildcards: `*` stands for any characters of one name, `?` for a single character.
///
/// [`SystemRef::select`] and [`Context::select`] make selections. A selection names places, not actors: it is resolved
/// at each send, and cannot be watched. Two selections are equal when they begin at the same actor and have the same
/// elements.
///
/// ```
/// use pointsman::prelude::*;
/// # struct Till;
/// # impl Actor for Till {
/// #     type Message = u32;
/// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// for name in ["till-1", "till-2", "office"] {
///     system.actor(name).spawn(|| Till)?;
/// }
/// let tills = system.select("/user/till-?")?;
/// assert_eq!(tills.tell(7u32).reached, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Selection {
    system: SystemRef,
    /// The actor at which the path begins; `None` for the root.
    anchor: Option<AnyActorRef>,
    elements: StdArc<[Element]>,
    /// The node whose actors are meant, if it is another one, and the text behind the address.
    elsewhere: Option<StdArc<(SystemAddress, Box<str>)>>,
}

/// One step of the walk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Element {
    Parent,
    Name { name: Box<str>, uid: Option<u32> },
    Pattern(Box<str>),
}

/// The outcome of a send to a [`Selection`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "an actor of another type got no copy, and only this result says so"]
pub struct SelectionDelivery {
    /// The number of actors that took a copy. An actor that refused its copy, since it has stopped or its mailbox is
    /// full, is not counted: that copy is a dead letter.
    pub reached: usize,
    /// The selected actors that take another type of message. Nothing was sent to them.
    pub other_type: Vec<WrongType>,
    /// The path at which no actor is. The message was sent there, and is a dead letter.
    pub missing: Option<ActorPath>,
}

/// A selection did not take a message that it had to send without copying it; the message comes back.
#[non_exhaustive]
pub enum SelectError<M> {
    /// The selection has a wildcard, so copies may be necessary.
    Wildcard {
        /// The message.
        message: M,
        /// The selection.
        selection: ActorPath,
    },
    /// The actor takes another type of message.
    OtherType {
        /// The message.
        message: M,
        /// The actor, with the type that it takes.
        actor: WrongType,
    },
}

/// The result of a walk.
pub(crate) enum Found {
    Actors {
        here: Vec<AnyActorRef>,
        /// Where the path goes on at other nodes, below children there.
        elsewhere: Vec<PlaceElsewhere>,
    },
    /// No actor is at this path.
    Missing(ActorPath),
}

impl SystemRef {
    /// Selects the actors at a path. `*` and `?` are wildcards within one name, `..` goes up, runs of `/` count as one,
    /// and a trailing `/` is ignored; `name#uid` means only that incarnation. A relative path begins at the root.
    ///
    /// At `/temp`, where temporary actors are, only exact names are found. Below a child that its
    /// parent has made at another node, the path goes on there, unless it has `..` behind the child.
    ///
    /// # Errors
    ///
    /// [`PathError`] tells what is wrong with the text, and where; or that the path is in another system.
    pub fn select(&self, path: &str) -> Result<Selection, PathError> {
        Selection::parse(self.clone(), None, path)
    }
}

impl<M: Send + 'static> Context<M> {
    /// Selects the actors at a path. A relative path begins at this actor: `*` means its children, `../*` its siblings
    /// and itself. Otherwise as [`SystemRef::select`].
    ///
    /// # Errors
    ///
    /// [`PathError`].
    pub fn select(&self, path: &str) -> Result<Selection, PathError> {
        Selection::parse(self.system(), Some(self.me().any_local()), path)
    }
}

/// The position behind the address, the address of another node, and the elements.
type ParsedSelection = (usize, Option<SystemAddress>, StdArc<[Element]>);

impl Element {
    /// Returns the position of the first element, behind the address if there is one, and the elements.
    fn parse_all(text: &str, system: impl FnOnce() -> SystemAddress) -> Result<ParsedSelection, PathError> {
        if text.is_empty() {
            return Err(PathError::new(text, text, 0, PathFault::Empty));
        }
        let (begin, elsewhere) = match SystemAddress::split(text)? {
            None => (0, None),
            Some((address, begin)) => {
                let own = system();
                let is_own = address.system() == own.system();
                match (address.node_name(), own.node_name()) {
                    _ if address == own || is_own && address.is_local() => (begin, None),
                    // To another node of this system's cluster, in the one form that paths have there.
                    (Some(_), Some(_)) if is_own => {
                        #[cfg(feature = "remote")]
                        check_selection_text(text, begin)?;
                        (begin, Some(address))
                    }
                    _ => return Err(PathError::new(text, &text[..begin], 0, PathFault::Elsewhere)),
                }
            }
        };
        let elements: Result<StdArc<[Self]>, PathError> = elements(&text[begin..])
            .map(|(position, element)| {
                let fault = |part: &str, offset: usize, fault| {
                    Err(PathError::new(text, part, begin + position + offset, fault))
                };
                if element == PARENT {
                    return Ok(Self::Parent);
                }
                let (name, uid) = match element.split_once('#') {
                    Some((name, uid)) => match parse_uid(uid) {
                        Some(number) => (name, Some(number)),
                        None => return fault(uid, name.len() + 1, PathFault::Uid),
                    },
                    None => (element, None),
                };
                // A wildcard may stand wherever a letter may. But with a uid it is not allowed, since no actor has a
                // wildcard in its name.
                let letters = if uid.is_none() { name.replace('?', "x") } else { name.to_owned() };
                if let Some((offset, character)) = bad_character(&letters) {
                    return fault(name, offset, PathFault::Character { character });
                }
                match uid {
                    // An empty name and `..` have no incarnation either.
                    Some(_) if name.is_empty() || name == PARENT => {
                        fault(element, name.len(), PathFault::Character { character: '#' })
                    }
                    None if name.contains(['*', '?']) => Ok(Self::Pattern(name.into())),
                    _ => Ok(Self::Name { name: name.into(), uid }),
                }
            })
            .collect();
        Ok((begin, elsewhere, elements?))
    }
}

impl Selection {
    /// Selects from `anchor`, or from the root if the text begins there.
    pub(crate) fn from_actor(anchor: &AnyActorRef, text: &str) -> Result<Self, PathError> {
        Self::parse(SystemRef::new(anchor.core().system.clone()), Some(anchor.clone()), text)
    }

    fn parse(system: SystemRef, anchor: Option<AnyActorRef>, text: &str) -> Result<Self, PathError> {
        let (begin, elsewhere, elements) = Element::parse_all(text, || system.address())?;
        let elsewhere = elsewhere.map(|address| StdArc::new((address, text[begin..].into())));
        let anchor = if begin > 0 || text.starts_with('/') { None } else { anchor };
        Ok(Self { system, anchor, elements, elsewhere })
    }

    /// Checks the text of a selection in the system of this address.
    pub(crate) fn check(text: &str, address: &SystemAddress) -> Result<(), PathError> {
        Element::parse_all(text, || address.clone()).map(drop)
    }

    /// Returns the path from the root, with its wildcards. `..` removes the element before it, also a wildcard.
    pub fn path(&self) -> ActorPath {
        let anchor = self.anchor.as_ref().map(AnyActorRef::path);
        let path = requested(anchor, &self.elements);
        match &self.elsewhere {
            Some(elsewhere) => path.with_address(elsewhere.0.clone()),
            None => path,
        }
    }

    /// Compares by a total order in which equal selections are equal.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let system = |at: &Self| StdArc::as_ptr(at.system.core()) as usize;
        let elements =
            || self.elements.cmp(&other.elements).then_with(|| self.elsewhere.cmp(&other.elsewhere));
        self.anchor.cmp(&other.anchor).then_with(elements).then_with(|| system(self).cmp(&system(other)))
    }

    /// Returns whether the selection has a wildcard.
    pub fn has_wildcard(&self) -> bool {
        self.elements.iter().any(|element| matches!(element, Element::Pattern(_)))
    }

    pub(crate) fn system(&self) -> &SystemRef {
        &self.system
    }

    /// Sends a copy of a message to each actor that is selected now and takes its type.
    ///
    /// # Delivery
    ///
    /// Each copy is a message of its own, also in the [`Ledger`](crate::Ledger). Where no actor is, the message is a
    /// dead letter whose recipient is the requested path. After a wildcard that matched more than one actor, places
    /// without an actor below the matches are skipped without a dead letter. Actors of another type are skipped and
    /// [reported](SelectionDelivery::other_type); nothing is sent to them, and so nothing is counted.
    pub fn tell<M: Clone + Send + 'static>(&self, message: M) -> SelectionDelivery {
        let mut delivered = SelectionDelivery::default();
        let targets = self.targets::<M>(&mut delivered);
        let Some((last, others)) = targets.split_last() else { return delivered };
        if !others.is_empty() {
            targets.iter().for_each(ActorRef::expect_copies);
        }
        for target in others {
            delivered.send(target, message.clone());
        }
        delivered.send(last, message);
        delivered
    }

    /// Sends a message, which need not be `Clone`, to the single actor at a path without wildcards.
    ///
    /// # Delivery
    ///
    /// Where no actor is, the message is a dead letter whose recipient is the requested path.
    ///
    /// # Errors
    ///
    /// [`SelectError`] hands the message back if the path has a wildcard, or the actor takes another type.
    pub fn tell_one<M: Send + 'static>(&self, message: M) -> Result<SelectionDelivery, SelectError<M>> {
        if self.has_wildcard() {
            return Err(SelectError::Wildcard { message, selection: self.path() });
        }
        let mut delivered = SelectionDelivery::default();
        let targets = self.targets::<M>(&mut delivered);
        match (targets.first(), delivered.other_type.pop()) {
            (Some(target), _) => {
                delivered.send(target, message);
                Ok(delivered)
            }
            (None, Some(actor)) => Err(SelectError::OtherType { message, actor }),
            (None, None) => unreachable!("a path without wildcards leads to one actor or to none"),
        }
    }

    /// Returns the recipients of the message: an empty reference where no actor is.
    fn targets<M: Send + 'static>(&self, delivered: &mut SelectionDelivery) -> Vec<ActorRef<M>> {
        if let Some(elsewhere) = self.elsewhere::<M>() {
            return vec![elsewhere];
        }
        match self.resolve() {
            Found::Missing(path) => {
                delivered.missing = Some(path.clone());
                vec![self.system.empty_ref(&path)]
            }
            Found::Actors { here, elsewhere } => {
                let typed =
                    |actor: AnyActorRef| actor.typed().map_err(|other| delivered.other_type.push(other)).ok();
                let mut targets: Vec<ActorRef<M>> = here.into_iter().filter_map(typed).collect();
                targets.extend(elsewhere.iter().map(|place| self.reference_to(place)));
                targets
            }
        }
    }

    /// The reference to the actors that are selected at another node; `None` for a selection in this system. A message whose
    /// type is not [registered](crate::SystemRef::address) at this node is a dead letter.
    pub(crate) fn elsewhere<M: Send + 'static>(&self) -> Option<ActorRef<M>> {
        let (address, text) = &**self.elsewhere.as_ref()?;
        Some(self.reference_at(address.node_name().unwrap_or_default(), text))
    }

    /// The reference to the actors of a place at another node.
    pub(crate) fn reference_to<M: Send + 'static>(&self, place: &PlaceElsewhere) -> ActorRef<M> {
        self.reference_at(&place.node, &place.text)
    }

    fn reference_at<M: Send + 'static>(&self, node: &str, text: &str) -> ActorRef<M> {
        let extensions = &self.system.core().extensions;
        let found = extensions.selection_at::<ActorRef<M>>(node, text, TypeId::of::<M>());
        found.unwrap_or_else(|| ActorRef::to_own_recipient(NotRegistered(self.clone())))
    }

    /// The node whose actors are meant, if it is another one, and the text behind its address.
    pub(crate) fn at_node(&self) -> Option<(&str, &str)> {
        let (address, text) = &**self.elsewhere.as_ref()?;
        Some((address.node_name()?, text))
    }

    /// Whether messages `M` can go to what is selected: at another node, only those whose type is registered at this one.
    pub(crate) fn takes<M: Send + 'static>(&self) -> bool {
        self.at_node().is_none_or(|(node, text)| {
            let found =
                self.system.core().extensions.selection_at::<ActorRef<M>>(node, text, TypeId::of::<M>());
            found.is_some()
        })
    }

    /// Walks the tree and returns the actors reached. None are here, if they are at another node. Below a child that its parent has
    /// made at another node, the walk goes on there, as far as the path has no `..` behind the child.
    pub(crate) fn resolve(&self) -> Found {
        let core = self.system.core();
        let tree = core.tree().filter(|_| self.elsewhere.is_none());
        let Some(tree) = tree else { return Found::Missing(self.path()) };
        let mut reached = vec![self.anchor.clone().unwrap_or_else(|| tree.root.clone())];
        let mut elsewhere = Vec::new();
        let mut fanned_out = false;
        for (index, element) in self.elements.iter().enumerate() {
            let mut next = Vec::new();
            for actor in &reached {
                let before = next.len();
                let rest = || self.elements[index..].iter().map(ToString::to_string);
                let place = (*element != Element::Parent).then(|| PlaceElsewhere::below(actor, rest()));
                if let Some(Some(place)) = place {
                    elsewhere.push(place);
                    continue;
                }
                match element {
                    // The root's parent is the root.
                    Element::Parent => next.push(actor.core().parent.as_ref().unwrap_or(&tree.root).clone()),
                    Element::Name { name, uid } => {
                        let child = core.child_of(actor, name);
                        next.extend(child.filter(|child| uid.is_none_or(|uid| uid == child.uid())));
                    }
                    // A temporary actor is found by its exact name alone.
                    Element::Pattern(_) if *actor == tree.temp => {}
                    Element::Pattern(pattern) => {
                        let matches = |child: &AnyActorRef| is_match(pattern, &child.core().name().text());
                        next.extend(actor.core().children.all().into_iter().filter(matches));
                    }
                }
                if next.len() == before && !fanned_out {
                    return Found::Missing(requested(Some(actor.path()), &self.elements[index..]));
                }
            }
            if *element == Element::Parent {
                // Siblings have one parent.
                let mut seen: HashSet<AnyActorRef> = HashSet::default();
                next.retain(|actor| seen.insert(actor.clone()));
            }
            fanned_out |= next.len() + elsewhere.len() > 1;
            reached = next;
        }
        Found::Actors { here: reached, elsewhere }
    }
}

/// The recipient of messages for another node whose type is not registered here.
struct NotRegistered(Selection);

impl<M: Send + 'static> OwnRecipient<M> for NotRegistered {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let why =
            format!("{} is not registered at this node: `Node::message` registers it", type_name::<M>());
        Err(SendError::Unsendable { message, why: why.into() })
    }

    fn system(&self) -> Option<SystemRef> {
        Some(self.0.system.clone())
    }
}

impl SelectionDelivery {
    fn send<M: Send + 'static>(&mut self, target: &ActorRef<M>, message: M) {
        match target.send_undeferred(message) {
            Ok(()) => self.reached += 1,
            Err(refused) => target.dead_letter(refused),
        }
    }
}

/// Returns the path that elements mean, from `base` or from the root.
fn requested(base: Option<ActorPath>, elements: &[Element]) -> ActorPath {
    let mut names: Vec<&str> = base.as_ref().map(|base| base.elements().collect()).unwrap_or_default();
    let mut last_uid = 0;
    for element in elements {
        last_uid = 0;
        match element {
            Element::Parent => _ = names.pop(),
            Element::Name { name, uid } => {
                names.push(name);
                last_uid = uid.unwrap_or(0);
            }
            Element::Pattern(pattern) => names.push(pattern),
        }
    }
    ActorPath::from_names(names.into_iter().map(Into::into)).with_uid(last_uid)
}

/// Returns whether a name matches a pattern.
fn is_match(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut position) = (0, 0);
    // The positions to resume at when the last `*` has to take one character more.
    let mut again: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                again = Some((at + 1, position));
                at += 1;
            }
            Some(expected) if *expected == b'?' || *expected == name[position] => {
                at += 1;
                position += 1;
            }
            _ => match again {
                Some((behind, taken)) => {
                    again = Some((behind, taken + 1));
                    (at, position) = (behind, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

impl PartialEq for Selection {
    fn eq(&self, other: &Self) -> bool {
        StdArc::ptr_eq(self.system.core(), other.system.core())
            && self.anchor == other.anchor
            && self.elements == other.elements
            && self.elsewhere == other.elsewhere
    }
}

impl Eq for Selection {}

impl Hash for Selection {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.anchor.hash(state);
        self.elements.hash(state);
        self.elsewhere.hash(state);
    }
}

/// Writes the selection from the root, and otherwise as it was written. The text parses to a selection that reaches the
/// same actors.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(elsewhere) = &self.elsewhere {
            return write!(f, "{}{}", elsewhere.0, elsewhere.1);
        }
        // The parents of the anchor are known, so leading `..` elements are resolved.
        let ups = self.elements.iter().take_while(|element| **element == Element::Parent).count();
        let up = |actor: &AnyActorRef| actor.core().parent.clone();
        let mut base = (0..ups).fold(self.anchor.clone(), |at, _| at.as_ref().and_then(up));
        let mut names = Vec::new();
        // The root has no parent and no name.
        while let Some(parent) = base.as_ref().and_then(up) {
            names.extend(base.replace(parent));
        }
        let written = &self.elements[ups..];
        if names.is_empty() && written.is_empty() {
            return f.write_str("/");
        }
        for actor in names.iter().rev() {
            let name = actor.core().name().text();
            write!(f, "/{name}")?;
            // Names may contain `*`, too; it means itself only where the uid is given.
            if name.contains('*') {
                write!(f, "#{}", actor.uid())?;
            }
        }
        written.iter().try_for_each(|element| write!(f, "/{element}"))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Parent => f.write_str(PARENT),
            Element::Name { name, uid: Some(uid) } => write!(f, "{name}#{uid}"),
            Element::Name { name, uid: None } => f.write_str(name),
            Element::Pattern(pattern) => f.write_str(pattern),
        }
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({self})")
    }
}

impl<M> SelectError<M> {
    /// Returns the message that was not sent.
    pub fn into_inner(self) -> M {
        match self {
            SelectError::Wildcard { message, .. } | SelectError::OtherType { message, .. } => message,
        }
    }
}

impl<M> fmt::Display for SelectError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Wildcard { selection, .. } => {
                write!(f, "{selection} has a wildcard: use `tell`, for which the message must be `Clone`")
            }
            SelectError::OtherType { actor, .. } => actor.fmt(f),
        }
    }
}

impl<M> std::error::Error for SelectError<M> {}

debug_by_display! { SelectError<M> }

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_within_a_name() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "abc", true),
            ("?", "", false),
            ("?", "a", true),
            ("?", "ab", false),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "bana", true),
            ("*an*a", "banana", true),
            ("*an*b", "banana", false),
            ("a?c*e", "abcde", true),
            ("a?c*e", "acde", false),
            ("**", "x", true),
            ("w-?*", "w-", false),
            ("w-?*", "w-10", true),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
