//! The start of a topology gives each group its first configuration.
//!
//! Each group gets its first configuration once: from the first [`reconfigure`](Topology::reconfigure) that comes while
//! the topology starts, or else from the system's configuration.

use crate::group::config::GroupConfig;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::topology::config::{ConfiguredGroups, Sections};
use crate::topology::error::TopologyError;
use crate::topology::plan::{Entry, Shared, Topology};
use crate::topology::validation::ask_actors;

/// A course says how far a topology has come.
pub(crate) struct StartState {
    state: Mutex<State>,
    /// Signalled when a configuration is no longer on its way, and when a configurer has ended.
    changed: Condvar,
}

struct State {
    life: Life,
    /// A configuration is on its way to the groups.
    is_busy: bool,
    /// The groups that are not entrypoints have got their first configuration.
    is_configured: bool,
    /// A configurer has ended since the starting thread last looked.
    #[cfg(feature = "config")]
    has_rung: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Described,
    /// The entrypoints get or have their configuration, and may bring a configuration for the other groups.
    Starting,
    Running,
}

/// This type says what the starting thread does about the first configuration.
pub(crate) enum First {
    /// The thread gives the groups the system's configuration, unless another configuration has come.
    Given,
    /// The thread leaves the first configuration to a later `reconfigure`, for which it cannot wait.
    #[cfg(feature = "config")]
    Later,
}

impl StartState {
    pub(crate) fn new() -> Self {
        let state = State {
            life: Life::Described,
            is_busy: false,
            is_configured: false,
            #[cfg(feature = "config")]
            has_rung: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Topology {
    /// Starts the groups. The start checks that every declared group is mounted, gives the
    /// [entrypoints](crate::topology::DeclaredGroup::entrypoint) an empty configuration, and then gives all other groups their first
    /// configuration. The latter goes in two phases: if a group rejects its section, no group gets its section. Each
    /// group is configured once.
    ///
    /// | the first configuration of all other groups is | if |
    /// |---|---|
    /// | the text of the first `reconfigure` | an entrypoint has called `reconfigure`, from the moment on at which the entrypoint gets its own configuration |
    /// | the sections `[topology.<name>]` of the system's configuration | they were given to the [builder](crate::SystemBuilder), and no entrypoint has called `reconfigure` |
    /// | empty | neither |
    ///
    /// If the builder's text has no sections (and with the feature `config`), the start waits for the entrypoints:
    /// until each of their actors has been made and its [`started`](crate::Actor::started) has returned, and for a
    /// configurer (`DeclaredGroup::configurer`) until it has brought a configuration, however long that takes. Meanwhile the
    /// other groups are mounted, have no configuration, and take messages.
    ///
    /// A thread that must not wait for actors, such as an actor's thread, waits for none of this. The start then goes
    /// on as if the entrypoints' actors had called nothing. If there is a configurer, the start returns at once, and
    /// the configurer's first `reconfigure` configures the other groups. The thread of a `TestSystem` (feature
    /// `testkit`) runs all turns that there are instead of waiting.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Unmounted`] names the groups that are not mounted; a message to such a group is refused as if
    /// the group had stopped. [`TopologyError::UnknownSection`], [`TopologyError::Rejected`],
    /// [`TopologyError::Started`]; [`TopologyError::Busy`] while another thread starts the topology;
    /// [`TopologyError::Unconfigured`] if all configurers end and have brought no configuration. After an error the
    /// start may be called again; entrypoints that have started do not start twice.
    ///
    /// [`DeclaredGroup::entrypoint`]: super::DeclaredGroup::entrypoint
    pub fn start(&self) -> Result<(), TopologyError> {
        self.start_with(&self.system().core().extensions.get::<ConfiguredGroups>().0)
    }

    /// Starts the groups, with these sections in the place of the sections of the system's configuration.
    pub(crate) fn start_with(&self, sections: &Sections) -> Result<(), TopologyError> {
        let unmounted = self.unmounted();
        if !unmounted.is_empty() {
            return Err(TopologyError::Unmounted { groups: unmounted });
        }
        let starting = Starting::begin(self.shared())?;
        self.check_names(sections)?;
        self.remote_entries().iter().for_each(|remote| remote.begin_search());
        self.give_to_entrypoints()?;
        let first = self.first_configuration(sections)?;
        let configuring = Configuring::behind_others(self.shared())?;
        let gives = matches!(first, First::Given) && !configuring.is_configured();
        // A rejected section is reported once: a further call of `start` leaves the entrypoint its empty configuration.
        let deferred: Vec<_> =
            self.entries(|entries| entries.iter_mut().map(|entry| entry.deferred.take()).collect());
        let part = |name: &str| sections.get(name).cloned().unwrap_or_default();
        let given = |index: usize, entry: &Entry| match entry.is_entrypoint {
            true => deferred[index].clone(),
            false => gives.then(|| part(&entry.name)),
        };
        self.give_to_indexed(given, |_| Ok(()))?;
        configuring.done(gives);
        starting.done();
        Ok(())
    }

    /// Waits until no configuration is on its way.
    #[cfg(all(feature = "config", feature = "signals", unix, not(pointsman_loom)))]
    pub(crate) fn wait_while_busy(&self) {
        drop(Configuring::behind_others(self.shared()));
    }

    fn unmounted(&self) -> Vec<String> {
        let name = |entry: &Entry| (!entry.is_mounted()).then(|| entry.name.to_string());
        self.entries(|entries| entries.iter().filter_map(name).collect())
    }

    /// Gives the entrypoints an empty configuration, except those that have it from an earlier start that failed.
    fn give_to_entrypoints(&self) -> Result<(), TopologyError> {
        struct Over<'a>(&'a Topology);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.entries(|entries| entries.iter_mut().for_each(|entry| entry.is_starting = false));
            }
        }
        self.entries(|entries| {
            for entry in entries {
                entry.is_starting = entry.is_entrypoint && entry.config.is_none();
            }
        });
        let _over = Over(self);
        self.give_to(|entry| entry.is_starting.then(GroupConfig::default)).map(drop)
    }

    /// Gives the groups their sections of a configuration. An entrypoint that is being started gets its section from
    /// the thread that starts it, behind the empty configuration.
    #[cfg_attr(not(feature = "config"), allow(dead_code))]
    pub(crate) fn configure(&self, sections: &Sections, force: bool) -> Result<Vec<String>, TopologyError> {
        let configuring = Configuring::begin(self.shared())?;
        self.check_names(sections)?;
        let is_starting = |(index, entry): (usize, &Entry)| entry.is_starting.then_some(index);
        let starting: Vec<usize> =
            self.entries(|entries| entries.iter().enumerate().filter_map(is_starting).collect());
        let part = |index: usize, entry: &Entry| {
            let part = sections.get(&*entry.name).cloned().unwrap_or_default();
            let is_due = !starting.contains(&index) && (force || entry.config.as_ref() != Some(&part));
            is_due.then_some(part)
        };
        // As in elfo, actors have no say about the first configuration.
        let asks = !force && configuring.is_configured();
        let changed = self.give_to_indexed(part, |changes| match asks {
            true => ask_actors(changes, self.validation_limit()),
            false => Ok(()),
        })?;
        self.entries(|entries| {
            for index in starting {
                let entry = &mut entries[index];
                entry.deferred = sections.get(&*entry.name).cloned();
            }
        });
        configuring.done(true);
        Ok(changed)
    }

    #[cfg(not(feature = "config"))]
    fn first_configuration(&self, _: &Sections) -> Result<First, TopologyError> {
        Ok(First::Given)
    }
}

#[cfg(feature = "config")]
mod waiting {
    use super::*;
    use crate::ask::ask::Ask;
    use crate::core::any_actor_ref::AnyActorRef;
    use crate::dispatch::stepping::Reached;
    use crate::topology::stop::{ask_if_alive, asked};
    use std::pin::Pin;
    use std::sync::Arc as StdArc;
    use std::task::{Context, Poll, Wake, Waker};

    impl Topology {
        /// Waits until the source of the first configuration is known, if an entrypoint may bring that configuration.
        pub(crate) fn first_configuration(&self, sections: &Sections) -> Result<First, TopologyError> {
            let core = self.system().core();
            if !sections.is_empty() || self.shared().course.is_configured() {
                return Ok(First::Given);
            }
            let may_wait = !crate::dispatch::may_block::must_not_wait() && !core.runs_current_thread();
            let configurers = self.entrypoints(|entry| entry.is_configurer);
            if !configurers.is_empty() {
                return if may_wait { self.wait_for(&configurers) } else { Ok(First::Later) };
            }
            if may_wait {
                // An answer says that the actor has been started. An actor that ends brings no configuration any more.
                let entrypoints = self.entrypoints(|entry| entry.is_entrypoint);
                let actors = entrypoints.iter().filter_map(|(_, member)| asked(|| member.actors()));
                let actors: Vec<AnyActorRef> = actors.flatten().collect();
                if !actors.is_empty() {
                    drop(ask_if_alive(self.ask_clock(), &actors).wait());
                }
            }
            Ok(First::Given)
        }

        fn entrypoints(&self, is_one: impl Fn(&Entry) -> bool) -> Vec<Named> {
            let named = |entry: &Entry| Some((entry.name.to_string(), entry.member.clone()?));
            self.entries(|entries| entries.iter().filter(|entry| is_one(entry)).filter_map(named).collect())
        }

        /// Waits for the configuration that these entrypoints are to bring.
        fn wait_for(&self, configurers: &[Named]) -> Result<First, TopologyError> {
            let shared = self.shared();
            let end = |(_, member): &Named| {
                let watched = asked(|| member.watched()).flatten();
                Some(watched.or_else(|| self.system().core().user().ok())?.when_ended())
            };
            let mut ends: Vec<Ask<()>> = configurers.iter().filter_map(end).collect();
            let waker = Waker::from(StdArc::new(Rings(self.clone())));
            loop {
                let reached = self.system().core().run_turns(&mut || shared.course.is_configured());
                // Each end is told once, so a told end is removed and not polled again. Without a lock, since the waker
                // may run at once.
                ends.retain_mut(|end| {
                    matches!(Pin::new(end).poll(&mut Context::from_waker(&waker)), Poll::Pending)
                });
                let mut state = lock(&shared.course.state);
                loop {
                    if state.is_configured {
                        return Ok(First::Given);
                    }
                    if ends.is_empty() && !state.is_busy {
                        let entrypoints = configurers.iter().map(|(name, _)| name.clone()).collect();
                        return Err(TopologyError::Unconfigured { entrypoints });
                    }
                    if reached != Reached::Elsewhere {
                        return Ok(First::Later);
                    }
                    if std::mem::take(&mut state.has_rung) {
                        break;
                    }
                    state = shared.course.wait(state);
                }
            }
        }
    }

    /// A group and its name.
    type Named = (String, StdArc<dyn super::super::GroupMember>);

    impl StartState {
        pub(crate) fn is_configured(&self) -> bool {
            lock(&self.state).is_configured
        }
    }

    /// Wakes the thread that starts the topology.
    struct Rings(Topology);

    impl Wake for Rings {
        fn wake(self: StdArc<Self>) {
            let course = &self.0.shared().course;
            lock(&course.state).has_rung = true;
            course.changed.notify_all();
        }
    }
}

/// This guard is the right to start the groups.
struct Starting<'a> {
    course: &'a StartState,
    next: Life,
}

impl<'a> Starting<'a> {
    fn begin(shared: &'a Shared) -> Result<Self, TopologyError> {
        let course = &shared.course;
        let mut state = lock(&course.state);
        match state.life {
            Life::Described => state.life = Life::Starting,
            Life::Starting => return Err(TopologyError::Busy),
            Life::Running => return Err(TopologyError::Started),
        }
        Ok(Self { course, next: Life::Described })
    }

    fn done(mut self) {
        self.next = Life::Running;
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        lock(&self.course.state).life = self.next;
    }
}

/// This guard is the right to give the groups a configuration.
struct Configuring<'a> {
    course: &'a StartState,
    configures: bool,
}

impl<'a> Configuring<'a> {
    #[cfg_attr(not(feature = "config"), allow(dead_code))]
    fn begin(shared: &'a Shared) -> Result<Self, TopologyError> {
        let course = &shared.course;
        let mut state = lock(&course.state);
        if state.life == Life::Described {
            return Err(TopologyError::NotStarted);
        }
        if state.is_busy {
            return Err(TopologyError::Busy);
        }
        state.is_busy = true;
        Ok(Self { course, configures: false })
    }

    /// Takes the right for the thread that starts the groups, once the configuration that is on its way has arrived.
    fn behind_others(shared: &'a Shared) -> Result<Self, TopologyError> {
        let course = &shared.course;
        let mut state = lock(&course.state);
        while state.is_busy {
            if crate::dispatch::may_block::must_not_wait() {
                return Err(TopologyError::Busy);
            }
            state = course.wait(state);
        }
        state.is_busy = true;
        Ok(Self { course, configures: false })
    }

    fn is_configured(&self) -> bool {
        lock(&self.course.state).is_configured
    }

    /// Notes that the configuration has been given; `all` is set if it was not given to entrypoints alone.
    fn done(mut self, all: bool) {
        self.configures = all;
    }
}

impl Drop for Configuring<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.course.state);
        state.is_busy = false;
        state.is_configured |= self.configures;
        drop(state);
        self.course.changed.notify_all();
    }
}
