//! The part of an actor's state that only the holder of the ownership token touches, as data.

use crate::actor::child_hooks::ChildHooks;
use crate::actor::held_futures::Holds;
use crate::actor::stash_buffer::Stash;
use crate::actor::task_table::OwnTasks;
use crate::actor::timer_table::OwnTimers;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::strategy::RestartHistory;
use crate::dispatch::shared_queue::{Taker, Wake};
use crate::failure::Failure;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{HashMap, HashSet};
use crate::time::timers::TimerHandle;
use std::collections::VecDeque;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The phase of an actor's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The state is not made yet.
    Unborn,
    /// Handles messages unless suspended.
    Alive,
    /// The old state waits for its children to end.
    Restarting,
    /// Waits for its children to end, then ends.
    Stopping,
    /// Has ended; the rest of the mailbox is being drained.
    Draining,
}

/// The reasons why an actor handles no messages, in one word: suspensions, which are counted, and a hold.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pause(u32);

impl Pause {
    /// The actor holds for a future.
    const HELD: u32 = 1 << 31;

    /// Returns whether there is any reason.
    #[inline(always)]
    pub(crate) fn is_any(self) -> bool {
        self.0 > 0
    }

    /// The number of suspensions and failures that are not undone.
    pub(crate) fn suspensions(self) -> u32 {
        self.0 & !Self::HELD
    }

    pub(crate) fn is_held(self) -> bool {
        self.0 & Self::HELD != 0
    }

    pub(crate) fn is_only_held(self) -> bool {
        self.0 == Self::HELD
    }

    pub(crate) fn set_held(&mut self, is_held: bool) {
        self.0 = self.suspensions() | if is_held { Self::HELD } else { 0 };
    }

    pub(crate) fn set_suspensions(&mut self, count: u32) {
        debug_assert!(count < Self::HELD, "as many suspensions as no system has");
        self.0 = (self.0 & Self::HELD) | count;
    }
}

/// The data that only the holder of the ownership token touches.
pub(crate) struct Private<M> {
    pub phase: Phase,
    /// The reasons why the actor handles no messages.
    pub pause: Pause,
    /// Whether this actor has failed and waits for its parent's verdict.
    pub failed: bool,
    /// Whether a state was ever made and started: before that, a restart is a creation.
    pub created: bool,
    /// The data that most actors never need.
    pub extras: Option<Box<Extras<M>>>,
}

/// Owner-only data that is allocated when it is first needed.
pub(crate) struct Extras<M> {
    /// Positioned control that the head has not reached, by position; equal positions in order of arrival.
    pub positioned: VecDeque<(u64, Control)>,
    /// The watchers, which are told when this actor ends.
    pub watchers: HashSet<AnyActorRef>,
    /// The actors that this actor watches, each with the message to get instead of the hook.
    pub watching: HashMap<AnyActorRef, Option<M>>,
    pub timers: OwnTimers<M>,
    pub stash: Stash<M>,
    pub receive_timeout: Option<ReceiveTimeout<M>>,
    /// Restarts of children that have failed.
    pub histories: HashMap<AnyActorRef, RestartHistory>,
    /// The failure that a restart in progress is about.
    pub restart: Option<Failure>,
    /// Control that waits until the restart in progress is over.
    pub deferred: Vec<Control>,
    /// Children that the restart in progress waits for.
    pub stopping: HashSet<AnyActorRef>,
    /// The children whose failures this actor has escalated.
    pub culprits: Vec<AnyActorRef>,
    /// The router that gets the messages left in the mailbox, instead of dead letters.
    pub reroute: Option<ActorRef<M>>,
    /// Whether this state has got a farewell, upon which it is to stop itself.
    pub heard_farewell: bool,
    /// The queue that this actor shares with others.
    pub balanced: Option<SharedQueueState<M>>,
    /// The hooks that replace the actor's own judgement of its children, if any.
    pub child_hooks: Option<StdArc<dyn ChildHooks>>,
    /// Tells whether a message is still wanted, if this actor skips unwanted messages.
    pub is_wanted: Option<IsWanted<M>>,
    /// See [`count_beside`](crate::actor::context::Context::count_beside).
    pub handled_beside: Option<StdArc<AtomicU64>>,
    /// The futures that the actor holds for.
    pub holds: Holds,
    /// Attached streams, and sends that wait for room.
    pub tasks: OwnTasks<M>,
}

impl<M> Extras<M> {
    /// The messages that the actor has handled beside those of its mailbox; the number wraps.
    #[cold]
    pub(crate) fn handled_beside(&self) -> u64 {
        // Ordering: Relaxed; a statistic that this turn alone writes.
        self.handled_beside.as_ref().map_or(0, |beside| beside.load(Ordering::Relaxed))
    }
}

impl<M> Default for Extras<M> {
    fn default() -> Self {
        Self {
            positioned: VecDeque::new(),
            watchers: HashSet::default(),
            watching: HashMap::default(),
            timers: OwnTimers::default(),
            stash: Stash::default(),
            receive_timeout: None,
            histories: HashMap::default(),
            restart: None,
            deferred: Vec::new(),
            stopping: HashSet::default(),
            culprits: Vec::new(),
            reroute: None,
            heard_farewell: false,
            balanced: None,
            child_hooks: None,
            is_wanted: None,
            handled_beside: None,
            holds: Holds::default(),
            tasks: OwnTasks::default(),
        }
    }
}

impl<M> Private<M> {
    /// The data of a new actor whose stash holds so many messages; `None` for any number.
    pub(crate) fn new(stash_capacity: Option<u32>) -> Self {
        let stash = stash_capacity.map(Stash::new);
        let extras = stash.map(|stash| Box::new(Extras { stash, ..Extras::default() }));
        Self { phase: Phase::Unborn, pause: Pause::default(), failed: false, created: false, extras }
    }

    pub(crate) fn extras(&mut self) -> &mut Extras<M> {
        self.extras.get_or_insert_default()
    }

    /// Whether each message needs a step beside its handling.
    pub(crate) fn looks_at_each(&self) -> bool {
        self.extras
            .as_ref()
            .is_some_and(|extras| extras.receive_timeout.is_some() || extras.is_wanted.is_some())
    }

    /// The actor's place at the queue that it shares with others; `None` if there is none, or the actor has left it.
    #[inline]
    pub(crate) fn taker(&self) -> Option<&Taker<M, Wakeup>> {
        self.extras.as_ref()?.balanced.as_ref()?.taker.as_ref()
    }

    /// The head index at which the next positioned control acts.
    pub(crate) fn next_position(&self) -> u64 {
        self.extras
            .as_ref()
            .and_then(|extras| extras.positioned.front())
            .map_or(u64::MAX, |(position, _)| *position)
    }
}

/// The receive timeout of a single actor, and its timer.
pub(crate) struct ReceiveTimeout<M> {
    pub(crate) after: Duration,
    pub(crate) make: Box<dyn FnMut(Duration) -> M + Send>,
    /// The time at which the last message that counts had been handled.
    pub(crate) idle_since: Duration,
    /// The number that the tick will bring; `None` while the actor restarts.
    pub(crate) armed: Option<(u64, TimerHandle)>,
}

/// The data of an actor that shares a queue.
pub(crate) struct SharedQueueState<M> {
    /// `None` once the actor has left the queue.
    pub(crate) taker: Option<Taker<M, Wakeup>>,
    /// Whether the actor has taken anything since its throughput was last used up.
    pub(crate) has_taken: bool,
    /// Whether the actor ends at the point where it would sleep.
    pub(crate) ends_when_empty: bool,
}

/// Tells whether a message is still wanted.
pub(crate) type IsWanted<M> = fn(&mut M) -> bool;

/// Wakes an actor.
pub(crate) struct Wakeup(pub(crate) AnyActorRef);

impl Wake for Wakeup {
    #[inline]
    fn wake(&self) {
        // Not behind the turn that is running here: its handler may take long.
        crate::scheduler::current::outside_lifo(|| self.0.request_look());
    }
}
