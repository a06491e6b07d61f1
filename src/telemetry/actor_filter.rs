//! The actors of a system, as a walk over the tree finds them.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::VTable;
use crate::core::classes::ClassId;
use crate::core::system::SystemRef;
use crate::mailbox::mailbox::LoadSnapshot;
use crate::path::actor_path::ActorPath;
use crate::sync::HashMap;
use std::cmp::Reverse;

/// Says which actors [`SystemRef::actors`] returns, how many of them, and in which order.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::telemetry::{ActorFilter, ActorOrder};
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
/// let busiest = ActorFilter::new().path("/user/workers/*").order(ActorOrder::Queued).limit(2);
/// for actor in system.actors(&busiest) {
///     println!("{} of class {}: {} queued, {} handled", actor.path, actor.class, actor.queued, actor.handled);
/// }
/// assert_eq!(system.actors(&busiest).len(), 2);
/// # drop(workers);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a filter does nothing before it is used"]
pub struct ActorFilter {
    /// The elements of the pattern; `None`: any path.
    path: Option<Vec<String>>,
    class: Option<String>,
    limit: Option<usize>,
    order: ActorOrder,
    /// The messages that the actors of these numbers had handled before.
    before: HashMap<u32, u64>,
}

/// The order of the actors that [`SystemRef::actors`] returns. Where the order leaves a choice, the older actor goes
/// first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActorOrder {
    /// Each parent before its children.
    #[default]
    Tree,
    /// The actors for which most messages wait go first.
    Queued,
    /// The actors that have handled most messages go first.
    Handled,
}

/// An actor as [`SystemRef::actors`] finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorStats {
    /// The place of the actor in the tree.
    pub path: ActorPath,
    /// The number of this incarnation; see [`AnyActorRef::uid`].
    pub uid: u32,
    /// The actor's [class](AnyActorRef::class).
    pub class: String,
    /// Messages and notices that wait for the actor; see [`AnyActorRef::queued`].
    pub queued: u64,
    /// Messages that the actor has handled; see [`AnyActorRef::handled`] and [`ActorFilter::since`].
    pub handled: u64,
    /// How often the actor was restarted.
    pub restarts: u32,
    /// Whether the actor runs.
    pub state: ActorState,
}

/// Whether an actor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActorState {
    /// The actor has nothing to do.
    Idle,
    /// The actor has a turn, or waits for one.
    Busy,
    /// The actor takes no messages for now, as after a failure of it or of its parent.
    Suspended,
    /// The actor takes no more messages, and is ending.
    Closed,
}

impl ActorFilter {
    /// Makes a filter that leaves no actor out.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the actors whose paths match a pattern. An element `*` stands for any name, `**` for any number of names,
    /// and `*` within a name for any characters: `/user/**`, `/user/shards/*`, `/user/cache-*`. A pattern without a `/`
    /// at its beginning begins at the root, too.
    pub fn path(mut self, pattern: &str) -> Self {
        self.path =
            Some(pattern.split('/').filter(|element| !element.is_empty()).map(str::to_owned).collect());
        self
    }

    /// Keeps the actors of this [class](AnyActorRef::class).
    pub fn class(mut self, name: &str) -> Self {
        self.class = Some(name.to_owned());
        self
    }

    /// Returns so many actors at most: the first in the [order](Self::order).
    pub fn limit(mut self, count: usize) -> Self {
        self.limit = Some(count);
        self
    }

    /// Sets the order.
    pub fn order(mut self, order: ActorOrder) -> Self {
        self.order = order;
        self
    }

    /// Counts as [`handled`](ActorStats::handled) what an actor has handled since `before`, an earlier result for the same
    /// system. So [`ActorOrder::Handled`] orders by rate. An actor that is not in `before` counts from its start.
    pub fn since(mut self, before: &[ActorStats]) -> Self {
        self.before = before.iter().map(|actor| (actor.uid, actor.handled)).collect();
        self
    }

    /// As [`since`](Self::since), with what the actors of these numbers had handled.
    #[cfg(feature = "console")]
    pub(crate) fn since_counts(mut self, before: HashMap<u32, u64>) -> Self {
        self.before = before;
        self
    }

    fn takes_path(&self, path: &ActorPath) -> bool {
        let Some(pattern) = &self.path else { return true };
        let names: Vec<&str> = path.elements().collect();
        matches_path(pattern, &names)
    }
}

/// Returns whether the names of a path match the elements of a pattern.
fn matches_path(pattern: &[String], names: &[&str]) -> bool {
    // For each prefix of the pattern: whether it matches the names so far.
    let mut ends: Vec<bool> = vec![false; pattern.len() + 1];
    let skip_rests = |ends: &mut [bool]| {
        for at in 0..pattern.len() {
            ends[at + 1] |= ends[at] && pattern[at] == "**";
        }
    };
    ends[0] = true;
    skip_rests(&mut ends);
    for name in names {
        let mut next = vec![false; ends.len()];
        for (at, element) in pattern.iter().enumerate() {
            next[at + 1] = match element.as_str() {
                "**" => ends[at + 1],
                element => ends[at] && matches_name(element.as_bytes(), name.as_bytes()),
            };
        }
        skip_rests(&mut next);
        ends = next;
    }
    ends[pattern.len()]
}

/// Returns whether a name matches an element, in which `*` stands for any characters.
fn matches_name(element: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut last_star = None;
    while of < name.len() {
        if element.get(at) == Some(&b'*') {
            last_star = Some((at, of));
            at += 1;
        } else if element.get(at) == Some(&name[of]) {
            (at, of) = (at + 1, of + 1);
        } else if let Some((star, taken)) = last_star {
            // The star stands for one character more.
            last_star = Some((star, taken + 1));
            (at, of) = (star + 1, taken + 1);
        } else {
            return false;
        }
    }
    element[at..].iter().all(|rest| *rest == b'*')
}

/// The classes of the actors of a walk, found once for each type.
#[derive(Default)]
pub(crate) struct ClassesOfTypes(HashMap<*const VTable, ClassId>);

impl ClassesOfTypes {
    /// Returns the class of an actor.
    pub(crate) fn of(&mut self, actor: &AnyActorRef) -> ClassId {
        match actor.core().own_class() {
            Some(own) => own,
            None => *self.0.entry(actor.type_key()).or_insert_with(|| actor.class_id()),
        }
    }
}

/// Calls `see` with each living actor of the system, each parent before its children.
pub(crate) fn walk(system: &SystemRef, mut see: impl FnMut(AnyActorRef)) {
    let mut open: Vec<AnyActorRef> = system.core().tree().into_iter().map(|tree| tree.root).collect();
    while let Some(actor) = open.pop() {
        open.extend(actor.core().children.all().into_iter().rev());
        see(actor);
    }
}

impl SystemRef {
    /// Returns what each living actor has handled, by its number.
    #[cfg(feature = "console")]
    pub(crate) fn handled_by_uid(&self) -> HashMap<u32, u64> {
        let mut handled = HashMap::default();
        walk(self, |actor| _ = handled.insert(actor.uid(), actor.handled()));
        handled
    }

    /// Returns the actors that a filter keeps, as they are now. The call walks over the tree of actors and
    /// stops none, so do not make it every millisecond.
    pub fn actors(&self, which: &ActorFilter) -> Vec<ActorStats> {
        struct Found {
            actor: AnyActorRef,
            class: ClassId,
            queued: u64,
            handled: u64,
        }
        let mut classes = ClassesOfTypes::default();
        let mut found: Vec<Found> = Vec::new();
        let names = &self.core().classes;
        walk(self, |actor| {
            let class = classes.of(&actor);
            let is_in_class = which.class.as_ref().is_none_or(|wanted| names.name(class) == wanted);
            let is_at_path = || which.path.is_none() || which.takes_path(&actor.path());
            if is_in_class && is_at_path() {
                let before = which.before.get(&actor.uid()).copied().unwrap_or(0);
                let (queued, handled) = (actor.queued() as u64, actor.handled().saturating_sub(before));
                found.push(Found { actor, class, queued, handled });
            }
        });
        match which.order {
            ActorOrder::Tree => {}
            ActorOrder::Queued => found.sort_by_key(|one| (Reverse(one.queued), one.actor.uid())),
            ActorOrder::Handled => found.sort_by_key(|one| (Reverse(one.handled), one.actor.uid())),
        }
        found.truncate(which.limit.unwrap_or(usize::MAX));
        let stats = found.into_iter().map(|Found { actor, class, queued, handled }| ActorStats {
            path: actor.path(),
            uid: actor.uid(),
            class: names.name(class).to_owned(),
            queued,
            handled,
            restarts: actor.restarts(),
            state: match actor.load_snapshot() {
                LoadSnapshot::Closed => ActorState::Closed,
                LoadSnapshot::Suspended => ActorState::Suspended,
                LoadSnapshot::Idle => ActorState::Idle,
                LoadSnapshot::Busy { .. } => ActorState::Busy,
            },
        });
        stats.collect()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_runs_of_names() {
        let matches = |pattern: &str, path: &str| {
            let of = ActorFilter::new().path(pattern).path.expect("it was set");
            matches_path(&of, &path.split('/').filter(|name| !name.is_empty()).collect::<Vec<_>>())
        };
        for (pattern, path) in [
            ("/user/**", "/user/a/b/c"),
            ("/user/**", "/user"),
            ("user/*", "/user/a"),
            ("/**/c", "/user/a/b/c"),
            ("/user/**/b/*", "/user/a/b/b/c"),
            ("/user/ca*e-*", "/user/cache-12"),
            ("/user/*a*a", "/user/banana"),
            ("/", "/"),
            ("/**", "/"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/user/*", "/user/a/b"),
            ("/user/*", "/user"),
            ("/user/**/b", "/user/a/b/c"),
            ("/user/ca*e-*", "/user/cache12"),
            ("/", "/user"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }
}
