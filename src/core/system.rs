//! The core of a system: dispatchers, the tree of actors, clock, ledger, and an orderly end.
//!
//! - `actor/guardians.rs` has the top of the tree;
//! - `dispatchers.rs` has the placement of actors;
//! - `actor/system_end.rs` has the end of a system;
//! - `actor/stepping.rs` is for systems whose actors run on the thread of a test;
//! - `actor/quiescence.rs` is for tests that wait until nothing is left to do.

use crate::core::dispatchers::{OwnedPlacement, ResolvedPlacement};
use crate::core::extensions::Extensions;
use crate::dispatch::on_demand::OnDemand;
use std::sync::Weak as StdWeak;

use crate::core::accounting::Account;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::classes::Classes;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::dead_letter_log::{DeadLetterLog, LetterLog};
use crate::core::dead_letters::DeadLetters;
use crate::core::dispatchers::Dispatchers;
use crate::core::error::{ShutdownError, SpawnError};
use crate::core::event_stream::EventStream;
use crate::core::ledger::{Counters, Ledger, ThreadCounters};
use crate::core::named_mailboxes::Mailboxes;
use crate::measure::meter::Meter;
use crate::path::address::SystemAddress;
use crate::settings::deployment::Deployments;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{CachePadded, Condvar, Mutex, lock};
use crate::time::clock::Clock;
use crate::time::timers::Timers;
use crate::util::stderr_log::StderrLog;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

const CHECKED_NAMES: &str = "the names were checked when the system was built";

/// A handle to a system: creates top-level actors, reads the ledger.
#[derive(Clone)]
pub struct SystemRef(StdArc<SystemCore>);

/// The parts that a system is made of.
pub(crate) struct Parts {
    pub name: String,
    pub seed: u64,
    pub clock: StdArc<dyn Clock>,
    pub meter: StdArc<Meter>,
    /// Counts the subscribers for the lives of actors.
    pub events: EventStream,
    pub log_dead_letters: DeadLetterLog,
    pub stderr: StderrLog,
    pub dispatchers: Dispatchers,
    pub mailboxes: Mailboxes,
    pub deployments: Deployments,
    pub extensions: Extensions,
}

/// The state that all actors of a system share.
pub(crate) struct SystemCore {
    pub(crate) name: String,
    seed: u64,
    pub(crate) stderr: StderrLog,
    pub(crate) counters: Counters,
    pub(crate) events: EventStream,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) timers: Timers<AnyActorRef>,
    pub(crate) classes: Classes,
    pub(crate) meter: StdArc<Meter>,
    pub(crate) dispatchers: Dispatchers,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) deployments: Deployments,
    /// The values that features keep for this system.
    pub(crate) extensions: Extensions,
    /// `None` once the system has ended, or the tree and this would keep each other alive.
    pub(crate) tree: Mutex<Option<Tree>>,
    /// On a line of its own: threads that create actors write it, and each turn reads the counters.
    next_uid: CachePadded<AtomicU32>,
    /// Whether no more actors are accepted.
    pub(crate) closed: AtomicBool,
    pub(crate) end: Mutex<End>,
    pub(crate) ended: Condvar,
}

impl SystemRef {
    pub(crate) fn new(core: StdArc<SystemCore>) -> Self {
        Self(core)
    }

    pub(crate) fn core(&self) -> &StdArc<SystemCore> {
        &self.0
    }

    /// The system's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The system's address: its name, and the name of its node if it is one.
    pub fn address(&self) -> SystemAddress {
        let local = || SystemAddress::local(&self.0.name).expect(CHECKED_NAMES);
        self.0.node_address().unwrap_or_else(local)
    }

    /// The guardian of top-level actors, `/user`. It exists until the system's threads have ended, and is `None`
    /// afterwards: once [`System::shutdown`](crate::System::shutdown) or the [`System`](crate::System)'s destructor has
    /// returned, or, if the destructor has given up waiting, once the last actor has ended.
    ///
    /// After [`stop`](Self::stop) it still exists, but is [closed](AnyActorRef::is_closed): it takes no more children.
    pub fn user(&self) -> Option<AnyActorRef> {
        self.0.user().ok()
    }

    /// The present state of the ledger: every message accounted for. The call walks over all mailboxes, so do not make
    /// it every millisecond.
    pub fn ledger(&self) -> Ledger {
        self.0.ledger_now()
    }

    /// The dead letters of the system, to subscribe to.
    pub fn dead_letters(&self) -> &DeadLetters {
        &self.0.dead_letters
    }

    /// The event stream of the system.
    pub fn events(&self) -> &EventStream {
        &self.0.events
    }

    /// Time since the system's clock started.
    pub fn now(&self) -> Duration {
        self.0.now()
    }

    /// Actors that have not ended, the guardians `/`, `/user`, `/system` and `/temp` included.
    pub fn living_actors(&self) -> usize {
        self.0.counters.living()
    }

    /// Begins to stop every actor and returns at once; an actor may call it. Threads are joined by
    /// [`System::shutdown`](crate::System::shutdown) or the [`System`](crate::System)'s destructor.
    pub fn stop(&self) {
        self.0.begin_end();
    }

    /// Waits until every actor has ended, regardless of the cause.
    ///
    /// # Errors
    ///
    /// [`ShutdownError::Stuck`] after `deadline`; [`ShutdownError::OwnThread`] as for
    /// [`System::shutdown`](crate::System::shutdown).
    pub fn wait_until_ended(&self, deadline: Duration) -> Result<(), ShutdownError> {
        self.0.wait_for_end(deadline)
    }
}

impl fmt::Debug for SystemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemRef").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl SystemCore {
    /// Makes a system whose threads run; its tree of actors must still be made.
    pub(crate) fn new(parts: Parts) -> StdArc<Self> {
        let letter_log =
            LetterLog::new(parts.name.clone(), parts.log_dead_letters, parts.stderr, parts.clock.clone());
        let events = parts.events;
        StdArc::new(Self {
            seed: parts.seed,
            stderr: parts.stderr,
            counters: Counters::new(),
            dead_letters: DeadLetters::new(events.clone(), letter_log),
            events,
            timers: Timers::new(&parts.name, parts.clock),
            classes: Classes::new(),
            meter: parts.meter,
            name: parts.name,
            dispatchers: parts.dispatchers,
            mailboxes: parts.mailboxes,
            deployments: parts.deployments,
            extensions: parts.extensions,
            tree: Mutex::new(None),
            next_uid: CachePadded::new(AtomicU32::new(1)),
            closed: AtomicBool::new(false),
            end: Mutex::new(End::NotYet),
            ended: Condvar::new(),
        })
    }

    pub(crate) fn tree(&self) -> Option<Tree> {
        lock(&self.tree).clone()
    }

    /// The parent of top-level actors, or the name of this system if it has shut down.
    pub(crate) fn user(&self) -> Result<AnyActorRef, String> {
        match &*lock(&self.tree) {
            Some(tree) => Ok(tree.user.clone()),
            None => Err(self.name.clone()),
        }
    }

    #[inline]
    pub(crate) fn ledger(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn dead_letters(&self) -> &DeadLetters {
        &self.dead_letters
    }

    pub(crate) fn timers(&self) -> &Timers<AnyActorRef> {
        &self.timers
    }

    pub(crate) fn now(&self) -> Duration {
        self.timers.now()
    }

    /// Checks that there is a dispatcher of this name, or an alias.
    pub(crate) fn check_dispatcher(&self, dispatcher: Option<&str>) -> Result<(), SpawnError> {
        self.dispatchers.find(dispatcher).map(|_| ())
    }

    /// Returns the placement of a new actor that names this dispatcher.
    pub(crate) fn place(&self, dispatcher: Option<&str>) -> Result<ResolvedPlacement, SpawnError> {
        self.dispatchers.place(dispatcher, &self.name)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns a number for an incarnation, never 0.
    pub(crate) fn next_uid(&self) -> u32 {
        loop {
            // Ordering: Relaxed; only uniqueness matters.
            let uid = self.next_uid.fetch_add(1, Ordering::Relaxed);
            if uid != 0 {
                return uid;
            }
        }
    }

    /// Counts one more living actor.
    pub(crate) fn actor_begins(&self) -> Result<(), SpawnError> {
        self.ledger().for_this_thread().begun(1);
        // Ordering: Relaxed; an actor that slips in is stopped by its parent.
        if self.closed.load(Ordering::Relaxed) && self.user().map_or(true, |user| user.is_closed()) {
            self.actor_ended();
            return Err(SpawnError::ShutDown { system: self.name.clone() });
        }
        Ok(())
    }

    /// Counts one living actor fewer.
    pub(crate) fn actor_ended(&self) {
        self.ledger().for_this_thread().ended(1);
    }

    /// Counts and publishes a dead letter, and drops the message.
    pub(crate) fn dead_letter<M: Send + 'static>(
        &self,
        row: &ThreadCounters,
        recipient: &AnyActorRef,
        message: M,
    ) {
        row.dead_lettered(1);
        self.dead_letters.publish_dead_letter(message, DeadLetterReason::Stopped, || recipient.path());
    }

    pub(crate) fn ledger_now(&self) -> Ledger {
        let mut ledger = self.counters.sum();
        let mut open: Vec<AnyActorRef> = self.tree().into_iter().map(|tree| tree.root).collect();
        while let Some(actor) = open.pop() {
            ledger.queued += actor.queued_messages() as u64;
            open.extend(actor.core().children.all());
        }
        self.extensions.each(|feature| feature.add_to_ledger(&mut ledger));
        ledger
    }

    /// The address by which other nodes know the system; `None` if it is no node.
    pub(crate) fn node_address(&self) -> Option<SystemAddress> {
        let node = self.extensions.node_name()?;
        Some(SystemAddress::node(&self.name, node).expect(CHECKED_NAMES))
    }

    /// Returns whether an address is that of this system.
    pub(crate) fn is_own_address(&self, address: &SystemAddress) -> bool {
        let is_here = match address.node_name() {
            Some(node) => self.extensions.node_name() == Some(node),
            None => address.is_local(),
        };
        is_here && address.system() == self.name
    }
}

impl Account for &SystemCore {
    #[inline]
    fn counters(&self) -> Option<(&ThreadCounters, &DeadLetters)> {
        Some((self.ledger().for_this_thread(), self.dead_letters()))
    }
}

/// The tree of a system: the references to its guardians.
#[derive(Clone)]
pub(crate) struct Tree {
    pub root: AnyActorRef,
    pub user: AnyActorRef,
    pub system: AnyActorRef,
    /// The parent of temporary actors.
    pub temp: AnyActorRef,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    NotYet,
    /// Not yet, and the [`System`](crate::System) is gone: no thread will join the system's threads, so they end by
    /// themselves.
    Orphaned,
    /// The root has ended, and with it every actor.
    TreeEnded,
    /// The threads have been joined.
    Joined,
}

impl SystemCore {
    /// Counts the builder as gone: from now on only actors keep the threads alive that run on demand.
    pub(crate) fn count_builder_ended(self: &StdArc<Self>) {
        self.dispatchers.on_demand().for_each(|threads| self.leave(threads));
    }

    /// Releases the placement of an actor that is gone and will not be scheduled again. Threads that it shared may end
    /// when the last actor has left.
    pub(crate) fn release_placement(self: &StdArc<Self>, placement: &OwnedPlacement) {
        if let Some(threads) = placement.release() {
            self.leave(threads);
        }
    }

    fn leave(self: &StdArc<Self>, threads: &StdArc<OnDemand>) {
        if let Some(due) = threads.leave(self.now()) {
            self.look_at(due, threads);
        }
    }

    /// Arranges a look at threads that no actor uses.
    fn look_at(self: &StdArc<Self>, due: Duration, threads: &StdArc<OnDemand>) {
        let threads = threads.clone();
        // Weak, or a timer that is set after the system's end, and so never fires, would keep the system for ever.
        let weak: StdWeak<Self> = StdArc::downgrade(self);
        let look = move || {
            let Some(system) = weak.upgrade() else { return };
            if let Some(due) = threads.look(system.now()) {
                system.look_at(due, &threads);
            }
        };
        self.timers().call_at(due, Box::new(look));
    }
}
