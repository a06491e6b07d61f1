//! The statistics of a system, as a plain value.

use crate::core::class_counters::{ClassCounters, ClassCounts};
use crate::core::classes::ClassId;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::ledger::{Ledger, ThreadCounters};
use crate::core::lifecycle::{ActorEvent, Stuck};
use crate::core::system::SystemRef;
use crate::dispatch::dispatcher::DispatcherKind;
use crate::sync::{HashMap, lock};
use crate::telemetry::actor_filter::{ClassesOfTypes, walk};
use crate::telemetry::histogram::{DepthHistogram, Histogram};
use crate::telemetry::link_stats::NodeStats;
use crate::telemetry::router_stats::{RouterStats, ShownRouter};
use crate::telemetry::state::TelemetryState;
use std::collections::BTreeMap;
use std::time::Duration;

/// The class of messages that no actor handles: those of functions and of recipients of the user's own.
const NO_ACTOR: &str = "(no actor)";

/// The numbers of a system at a moment, as [`SystemRef::stats`] takes them.
///
/// They are read one after the other while the system runs, so they need not add up; when no message is sent or handled,
/// they do. The counts never go back from one value to the next, except for [`Ledger::shipped`] when the engine of a node gives
/// messages back.
///
/// ```
/// use pointsman::prelude::*;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
/// let before = system.stats();
/// (0..1000u64).for_each(|number| workers.tell(number));
/// # while system.ledger().handled < 1000 { std::thread::yield_now(); }
/// let since = system.stats().since(&before);
/// for class in &since.classes {
///     println!("{}: {} actors, {} handled, {} queued", class.name, class.actors, class.handled, class.queued);
/// }
/// assert_eq!(since.class("/user/workers").expect("a class").handled, 1000);
/// assert_eq!(since.routers[0].routees.iter().map(|routee| routee.handled).sum::<u64>(), 1000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// The name of the system.
    pub system: String,
    /// The number of this value among those of the system, from 1.
    pub sequence: u64,
    /// When the value was taken, by the system's clock; of a [difference](Self::since) the time between.
    pub at: Duration,
    /// The outcomes of all messages.
    pub ledger: Ledger,
    /// Dead letters by their reasons, without reasons that none has. Those that were dropped, unhandled or expired are
    /// among them, which the ledger counts elsewhere.
    pub dead_letters: Vec<(DeadLetterReason, u64)>,
    /// Actors that have not ended.
    pub living: u64,
    /// Actors that were created, including those that their parents refused.
    pub created: u64,
    /// Actors that have ended, including those that their parents refused.
    pub ended: u64,
    /// Failures of actors.
    pub failures: u64,
    /// Restarts of actors.
    pub restarts: u64,
    /// The classes that have actors or had some, by name. The sum of their handled messages is that of the ledger.
    pub classes: Vec<ClassStats>,
    /// The routers, by path.
    pub routers: Vec<RouterStats>,
    /// The dispatchers, by name.
    pub dispatchers: Vec<DispatcherStats>,
    /// Handlers that were reported as stuck.
    pub stuck_reports: u64,
    /// The handlers that are stuck now.
    pub stuck: Vec<Stuck>,
    /// Present in a system with a node.
    pub(crate) node: Option<NodeStats>,
}

/// The actors of a [class](crate::AnyActorRef::class).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ClassStats {
    /// The name.
    pub name: String,
    /// Actors that have not ended.
    pub actors: u64,
    /// Actors that have ended.
    pub ended: u64,
    /// Messages that the actors have handled.
    pub handled: u64,
    /// Messages that wait for the actors.
    pub queued: u64,
    /// Messages that wait for the actor for which most wait.
    pub queued_max: u64,
    /// Failures.
    pub failures: u64,
    /// Restarts.
    pub restarts: u64,
    /// How long messages have waited in their mailboxes.
    pub wait: Histogram,
    /// How long handlers have taken.
    pub handle: Histogram,
    /// How many messages turns have met.
    pub depth: DepthHistogram,
}

/// A dispatcher and its threads.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DispatcherStats {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: DispatcherKind,
    /// The threads that the dispatcher has now.
    pub workers: Vec<WorkerStats>,
}

/// A thread of a dispatcher.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerStats {
    /// The name of the thread.
    pub thread: String,
    /// Turns of actors.
    pub turns: u64,
    /// Messages that were handled. The messages of an earlier thread, whose counters this thread goes on with, count too.
    pub messages: u64,
    /// How often the thread has gone to sleep.
    pub parks: u64,
    /// How often the thread has taken tasks from another.
    pub steals: u64,
    /// The time that the thread has looked for tasks without one, while times were [measured](crate::telemetry::Telemetry).
    /// Only the workers of work-stealing dispatchers look.
    pub searching: Duration,
    /// The time that the thread has run turns, while times were [measured](crate::telemetry::Telemetry). The share of a
    /// period that a thread was busy is the growth of this time by the length of the period.
    pub busy: Duration,
    /// The actor whose turn runs, or has just ended.
    pub running: Option<ActorEvent>,
}

impl SystemRef {
    /// Takes the numbers of the system. The call walks over all actors and stops none, so do not make it every
    /// millisecond.
    pub fn stats(&self) -> Stats {
        let core = self.core();
        let state = core.extensions.get::<TelemetryState>();
        // The ended ones first: an actor that is counted here is not counted by the walk.
        let mut classes: BTreeMap<String, ClassStats> = BTreeMap::new();
        for class in core.classes.all() {
            let name = core.classes.name(class);
            let mut of_class = ClassStats { name: name.to_owned(), ..ClassStats::default() };
            let mut is_known = false;
            core.ledger().each(|row| is_known |= add_row(&mut of_class, row.classes(), class));
            if is_known {
                classes.insert(name.to_owned(), of_class);
            }
        }
        let dispatchers: Vec<_> = core.dispatchers.pulses().collect();
        let mut running: HashMap<usize, Option<ActorEvent>> = HashMap::default();
        for (_, _, pulses) in &dispatchers {
            running.extend(pulses.iter().map(|pulse| (pulse.running(), None)));
        }
        let mut routers = Vec::new();
        let mut types = ClassesOfTypes::default();
        let mut of_ids: HashMap<ClassId, Living> = HashMap::default();
        let mut queued = 0;
        walk(self, |actor| {
            let living = of_ids.entry(types.of(&actor)).or_default();
            let waiting = actor.queued_messages() as u64;
            queued += waiting;
            living.queued += waiting;
            living.queued_max = living.queued_max.max(waiting);
            if !actor.core().is_settled() {
                living.actors += 1;
                living.handled = living.handled.wrapping_add(actor.handled());
            }
            if let Some(shown) = actor.core().children.view::<ShownRouter>() {
                routers.push(shown);
            }
            if let Some(who) = running.get_mut(&actor.address()) {
                *who = Some(ActorEvent::of(&actor));
            }
        });
        for (class, living) in of_ids {
            let name = core.classes.name(class);
            let of_class = classes
                .entry(name.to_owned())
                .or_insert_with(|| ClassStats { name: name.to_owned(), ..ClassStats::default() });
            of_class.actors += living.actors;
            of_class.handled = of_class.handled.wrapping_add(living.handled);
            of_class.queued += living.queued;
            of_class.queued_max = of_class.queued_max.max(living.queued_max);
        }
        // Behind the walk: routers may run user code.
        let mut routers: Vec<RouterStats> = routers.iter().map(|shown| shown.0.stats()).collect();
        routers.sort_by(|one, other| one.path.cmp(&other.path));
        let (created, ended, outside) = core.ledger().lives();
        if outside > 0 {
            let handled = outside;
            classes.insert(
                NO_ACTOR.to_owned(),
                ClassStats { name: NO_ACTOR.to_owned(), handled, ..Default::default() },
            );
        }
        // Locked here only: user code may run above.
        let mut shown = lock(&state.shown);
        for class in classes.values_mut() {
            let before = shown.handled.entry(class.name.clone()).or_default();
            class.handled = class.handled.max(*before);
            *before = class.handled;
        }
        let dispatchers = dispatchers.into_iter().map(|(name, kind, pulses)| {
            let workers = pulses.iter().map(|pulse| {
                let messages = |number| core.ledger().of_thread(number, ThreadCounters::handled_so_far);
                WorkerStats {
                    thread: pulse.name().to_owned(),
                    turns: pulse.turns(),
                    messages: pulse.thread().map_or(0, messages),
                    parks: pulse.parks(),
                    steals: pulse.steals(),
                    searching: pulse.searching(),
                    busy: pulse.busy(),
                    running: running.get(&pulse.running()).cloned().flatten(),
                }
            });
            DispatcherStats { name: name.to_owned(), kind, workers: workers.collect() }
        });
        let dispatchers = dispatchers.collect();
        let mut ledger = core.ledger().sum();
        ledger.queued = queued;
        shown.sequence += 1;
        let sequence = shown.sequence;
        drop(shown);
        // The messages that wait to leave for other nodes, and those that have left.
        core.extensions.each(|feature| feature.add_to_ledger(&mut ledger));
        Stats {
            system: self.name().to_owned(),
            sequence,
            at: self.now(),
            ledger,
            dead_letters: core.dead_letters().by_reason(),
            living: created.saturating_sub(ended),
            created,
            ended,
            failures: classes.values().map(|class| class.failures).sum(),
            restarts: classes.values().map(|class| class.restarts).sum(),
            classes: classes.into_values().collect(),
            routers,
            dispatchers,
            stuck_reports: state.watchdog.reported(),
            stuck: state.watchdog.stuck(),
            node: core.extensions.stats(),
        }
    }
}

/// The actors of a class that the walk has found.
#[derive(Default)]
struct Living {
    actors: u64,
    handled: u64,
    queued: u64,
    queued_max: u64,
}

/// Adds what one thread has counted of a class. Returns whether it has counted anything.
fn add_row(to: &mut ClassStats, row: &ClassCounters, class: ClassId) -> bool {
    let Some(counts) = row.get(class) else { return false };
    let read = ThreadCounters::read;
    let ClassCounts { ended, handled, failures, restarts, .. } = counts;
    to.handled = to.handled.wrapping_add(read(handled));
    to.ended += read(ended);
    to.failures += read(failures);
    to.restarts += read(restarts);
    if let Some(histograms) = counts.histograms_so_far() {
        to.wait.add(&histograms.wait);
        to.handle.add(&histograms.handle);
        to.depth.add(&histograms.depth);
    }
    true
}

impl Stats {
    /// The class of this name.
    pub fn class(&self, name: &str) -> Option<&ClassStats> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// The router at this path, such as `/user/workers`.
    pub fn router(&self, path: &str) -> Option<&RouterStats> {
        self.routers.iter().find(|router| router.path.as_str() == path)
    }

    /// Returns what has been counted since `before` was taken. Numbers that are no counts, such as those of living actors
    /// and queued messages, stay as they are; what is new since then counts from 0.
    pub fn since(&self, before: &Stats) -> Stats {
        let mut stats = self.clone();
        stats.at = self.at.saturating_sub(before.at);
        stats.ledger = ledger_since(&self.ledger, &before.ledger);
        for (reason, count) in &mut stats.dead_letters {
            let known = before.dead_letters.iter().find(|(known, _)| known == reason);
            *count -= known.map_or(0, |(_, count)| (*count).min(*count));
        }
        stats.dead_letters.retain(|(_, count)| *count > 0);
        for (count, before) in [
            (&mut stats.created, before.created),
            (&mut stats.ended, before.ended),
            (&mut stats.failures, before.failures),
            (&mut stats.restarts, before.restarts),
            (&mut stats.stuck_reports, before.stuck_reports),
        ] {
            *count = count.saturating_sub(before);
        }
        if let (Some(node), Some(before)) = (&self.node, &before.node) {
            stats.node = Some(node.since(before));
        }
        for class in &mut stats.classes {
            let Some(known) = before.class(&class.name) else { continue };
            class.ended = class.ended.saturating_sub(known.ended);
            class.handled = class.handled.saturating_sub(known.handled);
            class.failures = class.failures.saturating_sub(known.failures);
            class.restarts = class.restarts.saturating_sub(known.restarts);
            class.wait = class.wait.since(&known.wait);
            class.handle = class.handle.since(&known.handle);
            class.depth = class.depth.since(&known.depth);
        }
        for router in &mut stats.routers {
            let Some(known) = before.routers.iter().find(|known| known.path == router.path) else { continue };
            router.refused = router.refused.saturating_sub(known.refused);
            router.no_routee = router.no_routee.saturating_sub(known.no_routee);
            router.attempts = router.attempts.saturating_sub(known.attempts);
            router.late = router.late.saturating_sub(known.late);
            for routee in &mut router.routees {
                let same = |known: &&_| is_same(known, routee);
                let handled = known.routees.iter().find(same).map_or(0, |known| known.handled);
                routee.handled = routee.handled.saturating_sub(handled);
            }
        }
        for dispatcher in &mut stats.dispatchers {
            let Some(known) = before.dispatchers.iter().find(|known| known.name == dispatcher.name) else {
                continue;
            };
            for worker in &mut dispatcher.workers {
                let Some(known) = known.workers.iter().find(|known| known.thread == worker.thread) else {
                    continue;
                };
                worker.turns = worker.turns.saturating_sub(known.turns);
                worker.messages = worker.messages.saturating_sub(known.messages);
                worker.parks = worker.parks.saturating_sub(known.parks);
                worker.steals = worker.steals.saturating_sub(known.steals);
                worker.searching = worker.searching.saturating_sub(known.searching);
                worker.busy = worker.busy.saturating_sub(known.busy);
            }
        }
        stats
    }
}

fn is_same(
    known: &crate::telemetry::router_stats::RouteeStats,
    routee: &crate::telemetry::router_stats::RouteeStats,
) -> bool {
    known.uid == routee.uid && known.identity == routee.identity
}

fn ledger_since(now: &Ledger, before: &Ledger) -> Ledger {
    let mut ledger = *now;
    for (count, before) in [
        (&mut ledger.sent, before.sent),
        (&mut ledger.handled, before.handled),
        (&mut ledger.dead_lettered, before.dead_lettered),
        (&mut ledger.handed_back, before.handed_back),
        (&mut ledger.dropped, before.dropped),
        (&mut ledger.skipped, before.skipped),
        (&mut ledger.shipped, before.shipped),
        (&mut ledger.received, before.received),
        (&mut ledger.ticked, before.ticked),
    ] {
        *count = count.saturating_sub(before);
    }
    ledger.asks = now.asks.since(&before.asks);
    ledger
}
