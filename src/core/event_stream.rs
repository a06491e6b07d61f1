//! The event stream: it publishes the events of a system to the subscribers of their types.
//!
//! A publisher takes the list of subscribers of its event's type under a lock, and calls them without the lock, on its
//! own thread. Lists are replaced, never changed. So a publisher that took a list before a subscriber left may still
//! call that subscriber; a publisher that begins afterwards does not.
//!
//! The comparison of two references may call user code. So it is done without the lock, and each reference has a
//! number: under the lock, entries are compared by the numbers of their references.
//!
//! Akka matches a type and its subtypes. Here an [`EventGroup`] stands for several types, and a subscriber of the group is
//! entered under each of them.
//!
//! A reference may be entered under one type several times, by the type and by groups. It is told once, by the first of
//! these entries. The others are kept as *followers*: the next of them tells the reference when the first is taken
//! back.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{HashMap, Mutex, lock};
use crate::util::panic::{Guarded, quietly};
use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc as StdArc, Weak as StdWeak};

/// The event stream of a single system. A clone is a handle to the same stream.
///
/// Any type that is `Clone + Send + 'static` can be an event: publish your own. The engine publishes
/// [`DeadLetter`](crate::DeadLetter), [`SuppressedDeadLetter`](crate::dead_letters::SuppressedDeadLetter) and
/// [`Lifecycle`](crate::telemetry::Lifecycle).
///
/// # Delivery
///
/// A subscribed actor gets the event on the publishing thread, by an ordinary `tell` that the ledger counts. An actor
/// that has stopped is removed at the next event. An event that is published while a subscriber comes or leaves on
/// another thread may reach it or not; an event that is published after [`unsubscribe`](Self::unsubscribe) has returned
/// does not. Publishing without any subscriber costs one load. The semantics are those of Akka's `EventStream`.
///
/// ```
/// use pointsman::prelude::*;
/// use std::sync::mpsc;
///
/// #[derive(Clone)]
/// struct Sold(u32);
///
/// struct Till(u32, mpsc::Sender<u32>);
/// impl Actor for Till {
///     type Message = Sold;
///     fn receive(&mut self, Sold(cents): Sold, _: &mut Context<Sold>) -> HandlerResult {
///         self.0 += cents;
///         self.1.send(self.0)?;
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let (sender, sums) = mpsc::channel();
/// let till = system.spawn(move || Till(0, sender.clone()))?;
/// assert!(system.events().subscribe::<Sold, _>(&till), "newly added");
/// system.events().publish(&Sold(250));
/// system.events().publish(&Sold(150));
/// assert_eq!(sums.recv()?, 250);
/// assert_eq!(sums.recv()?, 400);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct EventStream {
    pub(crate) shared: StdArc<Shared>,
}

#[derive(Default)]
pub(crate) struct Shared {
    /// The number of entries, so publishing without any costs one load.
    entry_count: AtomicUsize,
    /// The type of event whose entries are counted apart: that of the lives of actors, which begin and end often.
    counted: Option<TypeId>,
    counted_count: AtomicUsize,
    topics: Mutex<Topics>,
}

#[derive(Default)]
pub(crate) struct Topics {
    by_event: HashMap<TypeId, StdArc<[Entry]>>,
    /// The number of the next function, or of the next reference that has none.
    next_number: u64,
    /// The system has ended: references would keep it in memory.
    ended: bool,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) who: Who,
    /// The subscription: the event's type, or a group that it belongs to.
    pub(crate) by: TypeId,
    /// Whether an earlier entry tells the same reference.
    follows: bool,
    subscriber: Guarded<StdArc<dyn Subscriber>>,
}

/// The number of a subscriber. Equal references have the same number, as long as there is an entry of any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Reference(u64),
    Function(u64),
}

impl Who {
    fn is_reference(self) -> bool {
        matches!(self, Self::Reference(_))
    }
}

/// All entries at one moment.
pub(crate) struct Snapshot {
    lists: Vec<StdArc<[Entry]>>,
    /// [`Topics::next_number`] at that moment.
    next_number: u64,
}

impl Snapshot {
    /// Returns the numbers, not below `first`, of the entries that tell this `ActorRef`. May run user code.
    pub(crate) fn telling<'a>(
        &'a self,
        reference: &'a dyn Any,
        first: u64,
    ) -> impl Iterator<Item = Who> + 'a {
        let all = self.lists.iter().flat_map(|entries| entries.iter());
        let of_references =
            all.filter(move |entry| matches!(entry.who, Who::Reference(number) if number >= first));
        of_references.filter(|entry| entry.subscriber.tells(reference)).map(|entry| entry.who)
    }
}

/// Takes events of a type that it knows.
pub(crate) trait Subscriber: Send + Sync {
    /// Takes one event.
    fn take(&self, event: &dyn Any);

    /// Returns whether the subscriber has stopped for good.
    fn is_gone(&self) -> bool {
        false
    }

    /// Returns whether the subscriber tells this `ActorRef`. May run user code, which compares.
    fn tells(&self, reference: &dyn Any) -> bool {
        let _ = reference;
        false
    }
}

/// Several types of events for a single subscription, each of which can be turned into a `G`.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::events::EventGroup;
///
/// #[derive(Clone)]
/// struct Opened(u32);
/// #[derive(Clone)]
/// struct Closed(u32);
///
/// enum Door {
///     Opened(Opened),
///     Closed(Closed),
/// }
/// impl From<Opened> for Door {
///     fn from(event: Opened) -> Self {
///         Door::Opened(event)
///     }
/// }
/// impl From<Closed> for Door {
///     fn from(event: Closed) -> Self {
///         Door::Closed(event)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("doors").build()?;
/// let doors = EventGroup::new().with::<Opened>().with::<Closed>();
/// let _subscription = system.events().on_group(doors, |door: &Door| match door {
///     Door::Opened(Opened(number)) => println!("door {number} opened"),
///     Door::Closed(Closed(number)) => println!("door {number} closed"),
/// });
/// system.events().publish(&Opened(7));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "EventTypes")]
#[must_use = "a group has no effect before a subscription to it"]
pub struct EventGroup<G>(pub(crate) Vec<Member<G>>);

/// The type of an event, and the function that makes a `G` of the event.
pub(crate) type Member<G> = (TypeId, fn(&dyn Any) -> Option<G>);

impl<G> EventGroup<G> {
    /// Makes a group without any type.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a type.
    pub fn with<E>(mut self) -> Self
    where
        E: Clone + Send + 'static,
        G: From<E>,
    {
        self.0.push((TypeId::of::<E>(), |event| event.downcast_ref::<E>().cloned().map(G::from)));
        self
    }
}

impl<G> Default for EventGroup<G> {
    fn default() -> Self {
        Self::new()
    }
}

impl<G> Clone for EventGroup<G> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<G> fmt::Debug for EventGroup<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventGroup").field("types", &self.0.len()).finish()
    }
}

impl EventStream {
    /// Calls `function` for every event of type `E` from now on, on the publishing thread, until the
    /// subscription is dropped. A function that panics is passed over.
    pub fn on<E: 'static>(&self, function: impl Fn(&E) + Send + Sync + 'static) -> Subscription {
        let by = TypeId::of::<E>();
        self.add_function(by, vec![(by, StdArc::new(ByFunction::new(function)))])
    }

    /// Calls `function` as [`on`](Self::on) does, for every type of the group.
    pub fn on_group<G: Send + 'static>(
        &self,
        group: EventGroup<G>,
        function: impl Fn(&G) + Send + Sync + 'static,
    ) -> Subscription {
        let function = StdArc::new(function);
        let subscribers = group.0.into_iter().map(|(event, convert)| {
            let subscriber: StdArc<dyn Subscriber> =
                StdArc::new(ByGroupFunction { function: function.clone(), convert });
            (event, subscriber)
        });
        self.add_function(TypeId::of::<G>(), subscribers.collect())
    }

    /// Publishes the event to all subscribers of the type `E` and of groups that it belongs to, on this thread, in the
    /// order of their subscriptions. A subscriber that panics is passed over.
    pub fn publish<E: Clone + Send + 'static>(&self, event: &E) {
        if self.has_subscribers() {
            self.shared.publish(TypeId::of::<E>(), event);
        }
    }

    /// Returns whether there is any subscriber.
    #[inline]
    pub(crate) fn has_subscribers(&self) -> bool {
        // Ordering: Relaxed; a subscriber that comes or leaves at the same moment may be told or not, and a thread that
        // knows that it has happened reads this later in the count's own order.
        self.shared.entry_count.load(Ordering::Relaxed) > 0
    }

    /// Makes a stream that knows without a lock whether there is any subscriber for the type `E`.
    pub(crate) fn counting<E: 'static>() -> Self {
        Self { shared: StdArc::new(Shared { counted: Some(TypeId::of::<E>()), ..Shared::default() }) }
    }

    /// Returns whether there is any subscriber for the type that this stream [counts](Self::counting).
    #[inline]
    pub(crate) fn has_counted_subscribers(&self) -> bool {
        // Ordering: Relaxed; see `has_subscribers`.
        self.shared.counted_count.load(Ordering::Relaxed) > 0
    }

    /// Enters a function under several types of events.
    pub(crate) fn add_function(
        &self,
        by: TypeId,
        subscribers: Vec<(TypeId, StdArc<dyn Subscriber>)>,
    ) -> Subscription {
        let (who, left_over) = {
            let mut topics = lock(&self.shared.topics);
            let who = Who::Function(topics.new_number());
            (who, self.shared.enter(&mut topics, who, by, &subscribers))
        };
        drop(left_over);
        let shared: StdWeak<Shared> = StdArc::downgrade(&self.shared);
        Subscription::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.remove(|_, entry| entry.who == who);
            }
        })
    }

    /// Drops all references of a system that has ended, since they would keep the system in memory. Functions stay: a
    /// message that is sent from now on is a dead letter, and may be shown.
    pub(crate) fn let_references_go(&self) {
        lock(&self.shared.topics).ended = true;
        self.shared.remove(|_, entry| entry.who.is_reference());
    }
}

impl Topics {
    fn new_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn has(&self, who: Who) -> bool {
        self.by_event.values().any(|entries| entries.iter().any(|entry| entry.who == who))
    }
}

/// Subscribers, each with the type of event that it gets.
type Subscribers = [(TypeId, StdArc<dyn Subscriber>)];

/// Lists that were replaced. They are dropped without the lock, since subscribers hold user values.
pub(crate) struct Replaced {
    lists: Vec<StdArc<[Entry]>>,
    /// Whether any entry is new.
    is_new: bool,
}

impl Shared {
    /// Enters a reference. Returns whether any entry is new.
    pub(crate) fn add_reference(
        &self,
        by: TypeId,
        subscribers: Vec<(TypeId, StdArc<dyn Subscriber>)>,
        reference: &dyn Any,
    ) -> bool {
        // The reference is compared with each of the others once, also with those that come meanwhile.
        let mut first = 0;
        loop {
            let snapshot = self.snapshot();
            let known = snapshot.telling(reference, first).next();
            let replaced = {
                let mut topics = lock(&self.topics);
                if topics.ended {
                    return false;
                }
                let is_current = topics.next_number == snapshot.next_number;
                match known {
                    Some(who) if is_current || topics.has(who) => {
                        Some(self.enter(&mut topics, who, by, &subscribers))
                    }
                    None if is_current => {
                        let who = Who::Reference(topics.new_number());
                        Some(self.enter(&mut topics, who, by, &subscribers))
                    }
                    // The reference may have left and come back under another number.
                    Some(_) => {
                        first = 0;
                        None
                    }
                    None => {
                        first = snapshot.next_number;
                        None
                    }
                }
            };
            if let Some(replaced) = replaced {
                return replaced.is_new;
            }
        }
    }

    /// Enters a subscriber under several types of events, except where it has the same subscription already.
    pub(crate) fn enter(
        &self,
        topics: &mut Topics,
        who: Who,
        by: TypeId,
        subscribers: &Subscribers,
    ) -> Replaced {
        let mut replaced = Replaced { lists: Vec::new(), is_new: false };
        for (event, subscriber) in subscribers {
            let known = topics.by_event.get(event);
            let known = known.iter().flat_map(|known| known.iter());
            let mut same = known.clone().filter(|entry| entry.who == who).peekable();
            let follows = same.peek().is_some();
            if same.any(|entry| entry.by == by) {
                continue;
            }
            let entry = Entry { who, by, follows, subscriber: Guarded::new(subscriber.clone()) };
            let more = known.cloned().chain([entry]).collect();
            // Ordering: Relaxed; see `has_subscribers`.
            self.entry_count.fetch_add(1, Ordering::Relaxed);
            if self.counted == Some(*event) {
                // Ordering: Relaxed; see `has_subscribers`.
                self.counted_count.fetch_add(1, Ordering::Relaxed);
            }
            replaced.is_new = true;
            replaced.lists.extend(topics.by_event.insert(*event, more));
        }
        replaced
    }

    /// Returns the numbers of the entries that tell this `ActorRef`. May run user code.
    pub(crate) fn telling(&self, reference: &dyn Any) -> Vec<Who> {
        self.snapshot().telling(reference, 0).collect()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let topics = lock(&self.topics);
        Snapshot { lists: topics.by_event.values().cloned().collect(), next_number: topics.next_number }
    }

    /// Removes the entries for which `meant` returns true; it gets the type of event too. Returns whether there were
    /// any. `meant` runs no user code.
    pub(crate) fn remove(&self, meant: impl Fn(TypeId, &Entry) -> bool) -> bool {
        let mut replaced = Vec::new();
        let mut removed_count = 0;
        {
            let mut topics = lock(&self.topics);
            for (event, entries) in &mut topics.by_event {
                if entries.iter().any(|entry| meant(*event, entry)) {
                    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
                    for entry in entries.iter().filter(|entry| !meant(*event, entry)) {
                        // The entry that it has followed may be gone.
                        let follows = entry.follows && kept.iter().any(|before| before.who == entry.who);
                        kept.push(Entry { follows, ..entry.clone() });
                    }
                    let removed = entries.len() - kept.len();
                    removed_count += removed;
                    if self.counted == Some(*event) {
                        // Ordering: Relaxed; see `has_subscribers`.
                        self.counted_count.fetch_sub(removed, Ordering::Relaxed);
                    }
                    replaced.push(std::mem::replace(entries, kept.into()));
                }
            }
            topics.by_event.retain(|_, entries| !entries.is_empty());
            // Ordering: Relaxed; see `has_subscribers`.
            self.entry_count.fetch_sub(removed_count, Ordering::Relaxed);
        }
        // Without the lock: subscribers hold user values.
        drop(replaced);
        removed_count > 0
    }

    fn entries(&self, event: TypeId) -> Option<StdArc<[Entry]>> {
        lock(&self.topics).by_event.get(&event).cloned()
    }

    /// Removes the stopped subscribers of one type, which may be a type that is hardly ever published.
    pub(crate) fn sweep(&self, event: TypeId) {
        let Some(entries) = self.entries(event) else { return };
        let gone = entries.iter().filter(|entry| is_gone(entry)).map(|entry| entry.who);
        self.forget(&gone.collect::<Vec<_>>());
    }

    fn forget(&self, gone: &[Who]) {
        if !gone.is_empty() {
            self.remove(|_, entry| gone.contains(&entry.who));
        }
    }

    fn publish(&self, event_type: TypeId, event: &dyn Any) {
        let Some(entries) = self.entries(event_type) else { return };
        let mut gone = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.follows) {
            if is_gone(entry) {
                gone.push(entry.who);
            } else {
                quietly(|| entry.subscriber.take(event));
            }
        }
        self.forget(&gone);
    }
}

fn is_gone(entry: &Entry) -> bool {
    let mut gone = false;
    quietly(|| gone = entry.subscriber.is_gone());
    gone
}

/// A function on events of a single type.
pub(crate) struct ByFunction<E, F> {
    function: F,
    event: PhantomData<fn(&E)>,
}

impl<E, F: Fn(&E)> ByFunction<E, F> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, event: PhantomData }
    }
}

impl<E: 'static, F: Fn(&E) + Send + Sync> Subscriber for ByFunction<E, F> {
    fn take(&self, event: &dyn Any) {
        if let Some(event) = event.downcast_ref() {
            (self.function)(event);
        }
    }
}

struct ByGroupFunction<G, F> {
    function: StdArc<F>,
    convert: fn(&dyn Any) -> Option<G>,
}

impl<G, F: Fn(&G) + Send + Sync> Subscriber for ByGroupFunction<G, F> {
    fn take(&self, event: &dyn Any) {
        if let Some(event) = (self.convert)(event) {
            (self.function)(&event);
        }
    }
}

/// Ends its subscription when it is dropped.
#[must_use = "a subscription ends when it is dropped: bind it to a name and keep it"]
pub struct Subscription {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Subscription {
    pub(crate) fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { end: Some(Box::new(end)) }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed; a statistic.
        let entries = self.shared.entry_count.load(Ordering::Relaxed);
        f.debug_struct("EventStream").field("entries", &entries).finish()
    }
}
