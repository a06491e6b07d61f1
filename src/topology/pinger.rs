//! A pinger asks the actors of a topology's groups again and again whether they are alive, and reports those that do not
//! answer.
//!
//! A ping is a control message with a place among the messages of its actor. The engine answers it, between two messages.
//! So an actor that hangs in a handler does not answer, nor does an actor that has more messages before the ping than it
//! handles within the limit. An actor is not asked again before it has answered.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::failure::guarded;
use crate::path::actor_path::ActorPath;
use crate::sync::HashMap;
use crate::topology::plan::Topology;
use crate::topology::stop::asked;
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::drop_guarded;
use crate::util::stderr_log::report;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// This event tells that an actor, or a whole group, does not answer the pings of a [pinger](Topology::pinger), or that it
/// does again. It is published on the [event stream](crate::events::EventStream); each silence is a warning in the log,
/// too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PingReport {
    /// The name of the group in its topology.
    pub group: String,
    /// The actor; `None` if this is about the group as a whole.
    pub actor: Option<ActorPath>,
    /// The news about the actor or group.
    pub status: PingStatus,
}

/// Says what a [`PingReport`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PingStatus {
    /// The actor has not answered within the limit; of a group, none of its actors has.
    Silent {
        /// How long the answer has been waited for, by the system's clock.
        waited: Duration,
    },
    /// An actor that was reported as silent has answered; of a group, one of its actors has.
    Answers {
        /// How long the answer took.
        after: Duration,
    },
    /// An actor that was reported as silent has ended.
    Ended,
}

impl fmt::Display for PingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, actor, status } = self;
        match actor {
            Some(actor) => write!(f, "actor {actor} of group `{group}` ")?,
            None => write!(f, "group `{group}` ")?,
        }
        match (status, actor) {
            (PingStatus::Silent { waited }, Some(_)) => write!(
                f,
                "has not answered a ping for {waited:?}: it hangs in a handler, or has more messages than it can handle \
                 in that time"
            ),
            (PingStatus::Silent { waited }, None) => {
                write!(f, "is stuck: none of its actors has answered a ping for {waited:?}")
            }
            (PingStatus::Answers { after }, _) => write!(f, "answers pings again, after {after:?}"),
            (PingStatus::Ended, _) => f.write_str("has ended without an answer to its ping"),
        }
    }
}

/// A pinger builder describes a [pinger](Topology::pinger).
#[derive(Debug, Clone)]
#[must_use = "no actor is pinged before `start`"]
pub struct PingerBuilder {
    topology: Topology,
    interval: Duration,
    limit: Option<Duration>,
    groups: Option<Vec<String>>,
}

/// The reason why a pinger has not been started.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum PingerError {
    /// The interval or the limit is zero.
    ZeroTime,
    /// No group of the topology has this name.
    UnknownGroup {
        /// The name.
        name: String,
        /// The groups that exist.
        known: Vec<String>,
    },
    /// The system is ending.
    ShutDown {
        /// The name of the system.
        system: String,
    },
}

impl fmt::Display for PingerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroTime => f.write_str("a pinger's interval and limit must be more than 0"),
            Self::UnknownGroup { name, known } => {
                write!(f, "a pinger cannot ping group {name:?}: choose from the groups {known:?}")
            }
            Self::ShutDown { system } => write!(f, "no pinger can be started: system {system:?} is ending"),
        }
    }
}

impl std::error::Error for PingerError {}

debug_by_display! { PingerError }

/// A handle to a running pinger, which pings until it is [stopped](Self::stop) or the system ends. Dropping the handle
/// changes nothing.
#[derive(Clone)]
pub struct Pinger {
    actor: ActorRef<PingerMessage>,
}

impl Pinger {
    /// Ends the pinger. Actors that are silent now are reported no more.
    pub fn stop(&self) {
        self.actor.stop();
    }
}

impl fmt::Debug for Pinger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinger").field("path", &self.actor.path()).finish()
    }
}

impl Topology {
    /// Describes a pinger, which asks every actor of the mounted groups at each interval whether it is alive, and reports
    /// actors and groups that do not answer, as a [`PingReport`] event and as a warning. It pings the groups that are
    /// mounted at each interval, and of a router the head and the routees that its pool has made. An actor needs no
    /// code for it, no actor is created for it, and the pings are in no ledger. Pingers are elfo's.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let topology = system.topology();
    /// // … groups, and `topology.start()?`
    /// topology.pinger().every(Duration::from_secs(10)).start()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn pinger(&self) -> PingerBuilder {
        let interval = Duration::from_secs(30);
        PingerBuilder { topology: self.clone(), interval, limit: None, groups: None }
    }
}

impl PingerBuilder {
    /// Sets the interval between two pings, by the system's clock; 30 s by default.
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets how long an answer may take; as long as the interval by default.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Pings these groups alone.
    pub fn groups(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.groups = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Starts the pinger, a hidden actor on the engine's own dispatcher. The first pings go out after the first interval.
    ///
    /// # Errors
    ///
    /// [`PingerError::ZeroTime`], [`PingerError::UnknownGroup`], and [`PingerError::ShutDown`].
    pub fn start(self) -> Result<Pinger, PingerError> {
        let Self { topology, interval, limit, groups } = self;
        let limit = limit.unwrap_or(interval);
        if interval.is_zero() || limit.is_zero() {
            return Err(PingerError::ZeroTime);
        }
        let known: Vec<String> =
            topology.entries(|entries| entries.iter().map(|entry| entry.name.to_string()).collect());
        if let Some(name) = groups.iter().flatten().find(|name| !known.contains(name)) {
            return Err(PingerError::UnknownGroup { name: name.clone(), known });
        }
        let system = topology.system().core().clone();
        let recipe = move || Pinging {
            topology: topology.clone(),
            interval,
            limit,
            groups: groups.clone(),
            asked: HashMap::default(),
            silent_groups: BTreeMap::new(),
        };
        let builder = ActorBuilder::new(system.system_guardian(), None).internal();
        match builder.spawn(recipe) {
            Ok(actor) => Ok(Pinger { actor }),
            Err(_) => Err(PingerError::ShutDown { system: system.name.clone() }),
        }
    }
}

/// The state of a pinger.
struct Pinging {
    topology: Topology,
    interval: Duration,
    limit: Duration,
    groups: Option<Vec<String>>,
    /// The actors that have not answered their last ping, or were reported as silent.
    asked: HashMap<AnyActorRef, Asked>,
    /// The groups that were reported as silent, and since when the answer of their actors was waited for.
    silent_groups: BTreeMap<StdArc<str>, Duration>,
}

/// A ping without an answer.
struct Asked {
    group: StdArc<str>,
    at: Duration,
    is_silent: bool,
}

/// A message to a pinger.
enum PingerMessage {
    /// An interval is over.
    Tick,
    /// The limit of a round of pings is over.
    Due,
    /// The actor has answered; or it has ended, if it is not alive.
    Answer { actor: AnyActorRef, is_alive: bool },
}

impl Actor for Pinging {
    type Message = PingerMessage;

    fn started(&mut self, ctx: &mut Context<PingerMessage>) -> HandlerResult {
        ctx.every(self.interval, || PingerMessage::Tick);
        Ok(())
    }

    fn receive(&mut self, message: PingerMessage, ctx: &mut Context<PingerMessage>) -> HandlerResult {
        match message {
            PingerMessage::Tick => self.ping(ctx),
            PingerMessage::Due => self.look(ctx),
            PingerMessage::Answer { actor, is_alive } => self.answer(&actor, is_alive, ctx),
        }
        Ok(())
    }
}

impl Pinging {
    fn members(&self) -> Vec<(StdArc<str>, Vec<AnyActorRef>)> {
        let is_pinged =
            |name: &str| self.groups.as_ref().is_none_or(|names| names.iter().any(|one| one == name));
        let members = self.topology.members().into_iter().filter(|(name, _)| is_pinged(name));
        members.map(|(name, member)| (name, asked(|| member.pinged()).unwrap_or_default())).collect()
    }

    fn ping(&mut self, ctx: &mut Context<PingerMessage>) {
        let now = ctx.now();
        for (group, actors) in self.members() {
            for actor in actors {
                if self.asked.contains_key(&actor) {
                    continue;
                }
                let (pinger, asked) = (ctx.me().clone(), actor.clone());
                self.asked.insert(actor.clone(), Asked { group: group.clone(), at: now, is_silent: false });
                actor.inquire(move |answer| {
                    pinger.tell(PingerMessage::Answer { actor: asked.clone(), is_alive: answer.is_some() });
                });
            }
        }
        ctx.after(self.limit, PingerMessage::Due);
    }

    /// Reports the actors whose time is over.
    fn look(&mut self, ctx: &mut Context<PingerMessage>) {
        let now = ctx.now();
        let mut reports = Vec::new();
        for (actor, asked) in &mut self.asked {
            let waited = now.saturating_sub(asked.at);
            if !asked.is_silent && waited >= self.limit {
                asked.is_silent = true;
                reports.push((asked.group.clone(), actor.path(), waited));
            }
        }
        reports.sort_by(|(_, one, _), (_, other, _)| one.cmp(other));
        let groups: Vec<StdArc<str>> = reports.iter().map(|(group, ..)| group.clone()).collect();
        for (group, actor, waited) in reports {
            self.report(&group, Some(actor), PingStatus::Silent { waited }, ctx);
        }
        for (group, actors) in self.members() {
            let mut first = now;
            let is_silent = |actor: &AnyActorRef| match self.asked.get(actor) {
                Some(asked) if asked.is_silent => {
                    first = first.min(asked.at);
                    true
                }
                _ => false,
            };
            let are_silent = !actors.is_empty() && actors.iter().all(is_silent);
            if are_silent && groups.contains(&group) && !self.silent_groups.contains_key(&group) {
                self.silent_groups.insert(group.clone(), first);
                let waited = now.saturating_sub(first);
                self.report(&group, None, PingStatus::Silent { waited }, ctx);
            }
        }
    }

    fn answer(&mut self, actor: &AnyActorRef, is_alive: bool, ctx: &mut Context<PingerMessage>) {
        let Some(Asked { group, at, is_silent }) = self.asked.remove(actor) else { return };
        let now = ctx.now();
        if is_silent {
            let status = match is_alive {
                true => PingStatus::Answers { after: now.saturating_sub(at) },
                false => PingStatus::Ended,
            };
            self.report(&group, Some(actor.path()), status, ctx);
        }
        if is_alive {
            if let Some(since) = self.silent_groups.remove(&group) {
                let after = now.saturating_sub(since);
                self.report(&group, None, PingStatus::Answers { after }, ctx);
            }
        }
    }

    fn report(
        &self,
        group: &str,
        actor: Option<ActorPath>,
        status: PingStatus,
        ctx: &Context<PingerMessage>,
    ) {
        let report = PingReport { group: group.to_owned(), actor, status };
        let system = ctx.system();
        // The logger and the subscribers are user code.
        let told = guarded(|| {
            match status {
                PingStatus::Silent { .. } => {
                    report!(system.core().stderr, Warning, log::Level::Warn, "{report}");
                }
                PingStatus::Answers { .. } | PingStatus::Ended => {
                    log::info!(target: "pointsman", "{report}");
                }
            }
            system.events().publish(&report);
            Ok(())
        });
        drop_guarded(told);
    }
}
