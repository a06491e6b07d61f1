//! The watchdog reports handlers that run for a long time.
//!
//! A thread of the engine stores the address of a task when a turn of it begins, and counts its turns ([`Pulse`]). The
//! ledger counts what the thread handles, before each handler. A timer looks at both: if neither has changed for long
//! enough, a single handler has been running since. Only then does the watchdog look for the actor, by its address, in the
//! tree of living actors, so no reference is held meanwhile. The pulse is read once more behind that: if it has not
//! changed, the turn is still that of the actor found.
//!
//! While all threads sleep there is no timer: the next thread that wakes up sets it again
//! ([`watch_pause`](crate::measure::watch_pause)).

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::ledger::ThreadCounters;
use crate::core::lifecycle::{ActorEvent, Lifecycle, Stuck, wants_traced_warnings};
use crate::core::system::{SystemCore, SystemRef};
use crate::measure::pulse::{Pulse, pause_watch};
use crate::sync::{Mutex, lock};
use crate::telemetry::actor_filter::walk;
use crate::util::panic::quietly;
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::Duration;

/// The watchdog of one system.
#[derive(Default)]
pub(crate) struct Watchdog {
    settings: Mutex<Settings>,
    /// Locked for the length of a look, in which the last reference to an actor may go. So code of the user's may run, which
    /// must not wait for this lock.
    seen: Mutex<Seen>,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Settings {
    /// How long a handler may run; `None`: the watchdog does not look.
    patience: Option<Duration>,
    /// The number of the settings: a timer of former settings looks no more.
    number: u64,
}

/// The threads that ran a turn at the last look.
#[derive(Default)]
struct Seen {
    threads: Vec<SeenThread>,
    /// The number of the settings by which that look went.
    settings: u64,
}

/// A thread that runs a turn.
struct SeenThread {
    pulse: StdArc<Pulse>,
    /// The address of the task.
    running: usize,
    progress: u64,
    /// When the thread was first seen like that.
    since: Duration,
    stuck: Option<Stuck>,
}

/// The result of the last look.
#[derive(Default)]
struct Shown {
    stuck: Vec<Stuck>,
    reported: u64,
}

impl Watchdog {
    /// Changes how long a handler may run; `None`: the watchdog does not look. The threads that were seen are forgotten.
    pub(crate) fn set(self: &StdArc<Self>, system: &StdArc<SystemCore>, patience: Option<Duration>) {
        let number = {
            let mut settings = lock(&self.settings);
            if settings.patience == patience {
                return;
            }
            *settings = Settings { patience, number: settings.number + 1 };
            settings.number
        };
        lock(&self.shown).stuck.clear();
        self.look_later(system, number);
    }

    /// The handlers that are reported and have not ended, as the last look found them.
    pub(crate) fn stuck(&self) -> Vec<Stuck> {
        lock(&self.shown).stuck.clone()
    }

    /// The number of handlers that were reported so far.
    pub(crate) fn reported(&self) -> u64 {
        lock(&self.shown).reported
    }

    /// How long a handler may run by the settings of this number; `None` if these are former settings.
    fn patience(&self, number: u64) -> Option<Duration> {
        let settings = lock(&self.settings);
        settings.patience.filter(|_| settings.number == number)
    }

    fn look_later(self: &StdArc<Self>, system: &StdArc<SystemCore>, number: u64) {
        let Some(patience) = self.patience(number) else { return };
        let due = system.now().saturating_add(patience / 2);
        let watchdog = self.clone();
        // Weak: a timer that is set after the end of the system never fires.
        let weak: StdWeak<SystemCore> = StdArc::downgrade(system);
        let look = move || {
            let Some(system) = weak.upgrade() else { return };
            if let Some(patience) = watchdog.patience(number) {
                watchdog.look(&system, patience, number);
                watchdog.look_on(&system, number);
            }
        };
        let _ = system.timers().try_call_at(due, Box::new(look));
    }

    /// Goes on looking. While all threads sleep, the watchdog pauses.
    fn look_on(self: &StdArc<Self>, system: &StdArc<SystemCore>, number: u64) {
        if is_any_awake(system) {
            return self.look_later(system, number);
        }
        let watchdog = self.clone();
        let weak = StdArc::downgrade(system);
        let resumption = move || {
            if let Some(system) = weak.upgrade() {
                watchdog.look_later(&system, number);
            }
        };
        pause_watch(Box::new(resumption), || is_any_awake(system));
    }

    /// Looks at all threads, unless another look does.
    fn look(&self, system: &StdArc<SystemCore>, patience: Duration, number: u64) {
        let Ok(mut seen) = self.seen.try_lock() else { return };
        let mut before = std::mem::take(&mut seen.threads);
        if std::mem::replace(&mut seen.settings, number) != number {
            before.clear();
        }
        let now = system.now();
        let mut events = Vec::new();
        for (_, _, pulses) in system.dispatchers.pulses() {
            for pulse in pulses {
                let (running, progress) = state_of(&pulse, system);
                let is_same = |known: &SeenThread| {
                    StdArc::ptr_eq(&known.pulse, &pulse)
                        && (known.running, known.progress) == (running, progress)
                };
                let known = before.iter().position(is_same);
                if running != 0 {
                    let thread = known.map(|at| before.swap_remove(at));
                    seen.threads.push(thread.unwrap_or(SeenThread {
                        pulse,
                        running,
                        progress,
                        since: now,
                        stuck: None,
                    }));
                }
            }
        }
        for thread in &mut seen.threads {
            let lasted = now.saturating_sub(thread.since);
            match &mut thread.stuck {
                Some(stuck) => stuck.lasted = lasted,
                None if lasted >= patience => {
                    thread.stuck = report(thread, lasted, system);
                    events.extend(thread.stuck.clone().map(Lifecycle::Stuck));
                }
                None => {}
            }
        }
        {
            let mut shown = lock(&self.shown);
            shown.reported += events.len() as u64;
            shown.stuck = seen.threads.iter().filter_map(|thread| thread.stuck.clone()).collect();
        }
        drop(seen);
        // The rest of those seen before run something else now.
        events.extend(before.into_iter().filter_map(|thread| {
            let lasted = now.saturating_sub(thread.since);
            thread.stuck.map(|stuck| Lifecycle::StuckEnded(Stuck { lasted, ..stuck }))
        }));
        // Without a lock: the logger and the subscribers are user code.
        for event in events {
            log_event(&event, &system.name);
            system.publish_lifecycle(|| event);
        }
    }
}

fn is_any_awake(system: &SystemCore) -> bool {
    system.dispatchers.pulses().any(|(_, _, pulses)| pulses.iter().any(|pulse| pulse.is_awake()))
}

/// Returns the address of the task that a thread runs, and a count of all that the thread has done.
fn state_of(pulse: &Pulse, system: &SystemCore) -> (usize, u64) {
    let progress =
        pulse.thread().map_or(0, |number| system.ledger().of_thread(number, ThreadCounters::progress));
    (pulse.running(), progress)
}

/// Finds the actor whose handler runs; `None` if the turn is over meanwhile.
fn report(seen: &SeenThread, lasted: Duration, system: &StdArc<SystemCore>) -> Option<Stuck> {
    let mut found: Option<AnyActorRef> = None;
    walk(&SystemRef::new(system.clone()), |actor| {
        if actor.address() == seen.running {
            found = Some(actor);
        }
    });
    let actor = found?;
    // The address is that of this actor only if the turn was not over when the actor was found.
    if state_of(&seen.pulse, system) != (seen.running, seen.progress) {
        return None;
    }
    Some(Stuck {
        actor: ActorEvent::of(&actor),
        message_type: actor.message_type_name(),
        thread: seen.pulse.name().to_owned(),
        since: seen.since,
        lasted,
    })
}

fn log_event(event: &Lifecycle, system: &str) {
    // The event says the same.
    if wants_traced_warnings() {
        return;
    }
    quietly(|| match event {
        Lifecycle::Stuck(Stuck { actor, message_type, thread, lasted, .. }) => log::warn!(
            target: "pointsman",
            "system {system:?}: a handler of {} (class {}, messages {message_type}) has been running for {lasted:?} on \
             thread {thread:?}: let it wait on a blocking dispatcher, or raise Telemetry::stuck_after",
            actor.path,
            actor.class,
        ),
        Lifecycle::StuckEnded(Stuck { actor, lasted, .. }) => log::warn!(
            target: "pointsman",
            "system {system:?}: the handler of {} that was stuck has ended after about {lasted:?}",
            actor.path,
        ),
        _ => {}
    });
}
