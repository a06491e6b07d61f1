//! Events of the lives of actors and routers, on the event stream.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::strategy::Directive;
use crate::core::system::SystemCore;
use crate::path::actor_path::ActorPath;
use std::time::Duration;

/// An event in the life of an actor or a router, on the [event stream](crate::events::EventStream).
///
/// An event is made only if there is a subscriber for such events. Events are published on the thread on which they happen,
/// within the actor's turn; a subscriber that takes long holds the actor up.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::telemetry::Lifecycle;
/// use std::sync::mpsc;
/// # struct Cache;
/// # impl Actor for Cache {
/// #     type Message = u32;
/// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let (sender, started) = mpsc::channel();
/// let sender = std::sync::Mutex::new(sender);
/// let _subscription = system.events().on(move |event: &Lifecycle| {
///     if let Lifecycle::Started(actor) = event {
///         let _ = sender.lock().expect("no panic").send(actor.path.to_string());
///     }
/// });
/// let cache = system.actor("cache").spawn(|| Cache)?;
/// assert!(started.iter().any(|path| path.starts_with("/user/cache")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Lifecycle {
    /// The state of a new actor is made, and its hook for the start has run.
    Started(ActorEvent),
    /// An actor has failed, and its parent has judged.
    #[non_exhaustive]
    Failed {
        /// The actor.
        actor: ActorEvent,
        /// The decision; `None` where a group decides, by its restart policy.
        verdict: Option<Directive>,
        /// The text of the cause.
        text: String,
    },
    /// An actor has a new state.
    Restarted(ActorEvent),
    /// An actor has ended.
    Stopped(ActorEvent),
    /// A router has another number of routees.
    #[non_exhaustive]
    Resized {
        /// The router.
        router: ActorPath,
        /// The number before.
        from: usize,
        /// The number now.
        to: usize,
    },
    /// A handler runs longer than [`Telemetry::stuck_after`](crate::telemetry::Telemetry::stuck_after) allows.
    Stuck(Stuck),
    /// A handler that was reported as stuck has ended.
    StuckEnded(Stuck),
}

/// The actor that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorEvent {
    /// The place of the actor in the tree.
    pub path: ActorPath,
    /// The number of the incarnation.
    pub uid: u32,
    /// The actor's [class](AnyActorRef::class).
    pub class: String,
}

/// A handler that runs for a long time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The actor.
    pub actor: ActorEvent,
    /// The type of the actor's messages.
    pub message_type: &'static str,
    /// The name of the thread that runs the handler.
    pub thread: String,
    /// When the watchdog first saw the handler run, by the system's clock: at most half of
    /// [`stuck_after`](crate::telemetry::Telemetry::stuck_after) after it began.
    pub since: Duration,
    /// The time from then to the look at which this value was made.
    pub lasted: Duration,
}

impl ActorEvent {
    pub(crate) fn of(actor: &AnyActorRef) -> Self {
        Self { path: actor.path(), uid: actor.uid(), class: actor.class().to_owned() }
    }
}

impl SystemCore {
    /// Publishes an event that is seldom, and is made only if there is a subscriber for it.
    #[inline]
    pub(crate) fn publish_lifecycle(&self, event: impl FnOnce() -> Lifecycle) {
        if self.events.has_counted_subscribers() || wants_traced_warnings() {
            publish(self, event);
        }
    }

    /// As [`publish_lifecycle`](Self::publish_lifecycle), for the starts and ends of actors, which are many.
    #[inline]
    pub(crate) fn publish_life(&self, event: impl FnOnce() -> Lifecycle) {
        if self.events.has_counted_subscribers() || wants_traced_lives() {
            publish(self, event);
        }
    }
}

#[cold]
#[inline(never)]
fn publish(system: &SystemCore, event: impl FnOnce() -> Lifecycle) {
    let event = event();
    #[cfg(all(feature = "tracing", not(any(pointsman_loom, pointsman_shuttle))))]
    crate::core::lifecycle_tracing::emit(&event, &system.name);
    if system.events.has_counted_subscribers() {
        system.events.publish(&event);
    }
}

/// Whether failures, restarts and stuck handlers are told to a subscriber of `tracing`, and so are not logged.
#[cfg(all(feature = "tracing", not(any(pointsman_loom, pointsman_shuttle))))]
pub(crate) fn wants_traced_warnings() -> bool {
    crate::core::lifecycle_tracing::wants_warnings()
}

/// Whether the starts and ends of actors are told to a subscriber of `tracing`.
#[cfg(all(feature = "tracing", not(any(pointsman_loom, pointsman_shuttle))))]
fn wants_traced_lives() -> bool {
    crate::core::lifecycle_tracing::wants_lives()
}

/// Without `tracing`, the subscribers of the event stream are all that there are.
#[cfg(not(all(feature = "tracing", not(any(pointsman_loom, pointsman_shuttle)))))]
pub(crate) fn wants_traced_warnings() -> bool {
    false
}

/// As [`wants_traced_warnings`].
#[cfg(not(all(feature = "tracing", not(any(pointsman_loom, pointsman_shuttle)))))]
fn wants_traced_lives() -> bool {
    false
}
