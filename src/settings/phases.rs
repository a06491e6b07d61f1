//! A coordinated shutdown has phases, whose order follows from their dependencies.

use crate::settings::build_error::BuildError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
const TIMEOUT_LONG: Duration = Duration::from_secs(10);

/// The default phases, each behind the one above it.
const DEFAULTS: [(&str, Duration); 12] = [
    (Phase::BEFORE_SERVICE_UNBIND, TIMEOUT_DEFAULT),
    (Phase::SERVICE_UNBIND, TIMEOUT_DEFAULT),
    (Phase::SERVICE_REQUESTS_DONE, TIMEOUT_DEFAULT),
    (Phase::SERVICE_STOP, TIMEOUT_DEFAULT),
    (Phase::BEFORE_CLUSTER_SHUTDOWN, TIMEOUT_DEFAULT),
    (Phase::CLUSTER_SHARDING_SHUTDOWN_REGION, TIMEOUT_LONG),
    (Phase::CLUSTER_LEAVE, TIMEOUT_DEFAULT),
    (Phase::CLUSTER_EXITING, TIMEOUT_LONG),
    (Phase::CLUSTER_EXITING_DONE, TIMEOUT_DEFAULT),
    (Phase::CLUSTER_SHUTDOWN, TIMEOUT_DEFAULT),
    (Phase::BEFORE_ACTOR_SYSTEM_TERMINATE, TIMEOUT_DEFAULT),
    (Phase::ACTOR_SYSTEM_TERMINATE, TIMEOUT_LONG),
];

/// A phase of a coordinated shutdown: its dependencies, its timeout, and the reaction to a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
#[must_use]
pub struct Phase {
    pub(crate) depends_on: Vec<String>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) timeout: Duration,
    pub(crate) recover: bool,
    pub(crate) enabled: bool,
}

/// The names of the default phases, in their order. The phases about clusters are names only: nothing in this crate
/// fills them, and a program with a cluster layer of its own finds their places. The three `BEFORE_…` phases are meant
/// for applications.
impl Phase {
    /// The first phase, for the application's own preparations.
    pub const BEFORE_SERVICE_UNBIND: &str = "before-service-unbind";
    /// Services take no new connections from here on.
    pub const SERVICE_UNBIND: &str = "service-unbind";
    /// Requests in progress are awaited.
    pub const SERVICE_REQUESTS_DONE: &str = "service-requests-done";
    /// Connections are closed.
    pub const SERVICE_STOP: &str = "service-stop";
    /// For the application: the last phase in the cluster.
    pub const BEFORE_CLUSTER_SHUTDOWN: &str = "before-cluster-shutdown";
    /// Shards are handed over. Timeout: 10 s.
    pub const CLUSTER_SHARDING_SHUTDOWN_REGION: &str = "cluster-sharding-shutdown-region";
    /// The node leaves the cluster.
    pub const CLUSTER_LEAVE: &str = "cluster-leave";
    /// Cluster singletons are handed over. Timeout: 10 s.
    pub const CLUSTER_EXITING: &str = "cluster-exiting";
    /// The node waits until the other nodes know that it exits.
    pub const CLUSTER_EXITING_DONE: &str = "cluster-exiting-done";
    /// The cluster layer stops.
    pub const CLUSTER_SHUTDOWN: &str = "cluster-shutdown";
    /// For the application: the last phase with actors.
    pub const BEFORE_ACTOR_SYSTEM_TERMINATE: &str = "before-actor-system-terminate";
    /// All actors end. Timeout: 10 s.
    pub const ACTOR_SYSTEM_TERMINATE: &str = "actor-system-terminate";
}

impl Phase {
    /// Makes a phase that depends on no other phase, has a timeout of 5 s, and is recovered from.
    pub fn new() -> Self {
        Self { depends_on: Vec::new(), timeout: TIMEOUT_DEFAULT, recover: true, enabled: true }
    }

    /// Runs the phase after the phase of this name, which [`build`](crate::SystemBuilder::build) refuses if no setting
    /// describes it.
    pub fn after(mut self, phase: &str) -> Self {
        self.depends_on.push(phase.to_owned());
        self
    }

    /// Sets how long the tasks of the phase may take together, by the system's clock. Default: 5 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether the run goes on when a task of the phase fails or its timeout ends. Default: yes, with a warning.
    pub fn recover(mut self, is_on: bool) -> Self {
        self.recover = is_on;
        self
    }

    /// Sets whether the tasks of the phase run. Default: yes.
    pub fn enabled(mut self, is_on: bool) -> Self {
        self.enabled = is_on;
        self
    }
}

impl Default for Phase {
    fn default() -> Self {
        Self::new()
    }
}

/// The phases of a system's coordinated shutdown; see
/// [`SystemBuilder::shutdown_phases`](crate::SystemBuilder::shutdown_phases).
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::shutdown::{Phase, Phases};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let phases = Phases::default()
///     .phase("flush", Phase::new().after(Phase::SERVICE_STOP).timeout(Duration::from_secs(30)))
///     .change(Phase::BEFORE_CLUSTER_SHUTDOWN, |before| before.after("flush"));
/// let system = System::builder("shop").shutdown_phases(phases).build()?;
/// let shutdown = system.coordinated_shutdown();
/// let order = shutdown.phases();
/// assert_eq!(order[3..6], [Phase::SERVICE_STOP, "flush", Phase::BEFORE_CLUSTER_SHUTDOWN]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
#[must_use]
pub struct Phases {
    #[cfg_attr(feature = "config", serde(rename = "terminate-actor-system"))]
    pub(crate) terminates_system: bool,
    #[cfg_attr(
        feature = "config",
        serde(rename = "phase", deserialize_with = "crate::util::values::named_sections")
    )]
    pub(crate) by_name: BTreeMap<String, Phase>,
    /// A name that was to be changed and is that of no phase.
    #[cfg_attr(feature = "config", serde(skip))]
    unknown: Option<String>,
}

#[cfg(feature = "config")]
impl Phases {
    /// Takes over the unknown name of `before`, which settings that were read again do not hold.
    pub(crate) fn with_unknown_of(mut self, before: &Self) -> Self {
        self.unknown.clone_from(&before.unknown);
        self
    }
}

impl Default for Phases {
    /// Makes the default phases in a line: each depends on the phase before it.
    fn default() -> Self {
        let mut by_name = BTreeMap::new();
        let mut before: Option<&str> = None;
        for (name, timeout) in DEFAULTS {
            let phase = Phase::new().timeout(timeout);
            by_name.insert(name.to_owned(), before.map_or(phase.clone(), |before| phase.after(before)));
            before = Some(name);
        }
        Self { by_name, terminates_system: true, unknown: None }
    }
}

impl Phases {
    /// Adds a phase, or replaces the phase of this name.
    pub fn phase(mut self, name: &str, phase: Phase) -> Self {
        self.by_name.insert(name.to_owned(), phase);
        self
    }

    /// Changes the phase of this name. [`build`](crate::SystemBuilder::build) refuses the name if there is no such
    /// phase: [`phase`](Self::phase) adds one.
    pub fn change(mut self, name: &str, change: impl FnOnce(Phase) -> Phase) -> Self {
        match self.by_name.remove(name) {
            Some(phase) => self.phase(name, change(phase)),
            None => {
                self.unknown.get_or_insert_with(|| name.to_owned());
                self
            }
        }
    }

    /// Sets whether [`ACTOR_SYSTEM_TERMINATE`](Phase::ACTOR_SYSTEM_TERMINATE) ends the system. Default: yes.
    pub fn terminate_actor_system(mut self, is_on: bool) -> Self {
        self.terminates_system = is_on;
        self
    }

    /// Returns the names of all phases that a setting describes: the default ones in their order, then all others.
    pub(crate) fn known(&self) -> Vec<String> {
        let is_default = |name: &str| DEFAULTS.iter().any(|(default, _)| *default == name);
        let defaults = DEFAULTS.iter().map(|(name, _)| *name).filter(|name| self.by_name.contains_key(*name));
        let others = self.by_name.keys().map(String::as_str).filter(|name| !is_default(name));
        defaults.chain(others).map(str::to_owned).collect()
    }

    /// Checks that each phase which is named is described.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let depends = |(name, phase): (&String, &Phase)| {
            let unknown = phase.depends_on.iter().find(|before| !self.by_name.contains_key(*before));
            unknown.map(|before| (before.clone(), Some(name.clone())))
        };
        let unknown = self.unknown.clone().map(|name| (name, None));
        match unknown.or_else(|| self.by_name.iter().find_map(depends)) {
            Some((phase, named_by)) => Err(BuildError::UnknownPhase { phase, named_by, known: self.known() }),
            None => Ok(()),
        }
    }

    /// Returns whether the phase of this name depends on another, or another on it.
    #[cfg(feature = "config")]
    pub(crate) fn is_connected(&self, name: &str) -> bool {
        let of = |phase: &Phase| !phase.depends_on.is_empty();
        self.by_name.get(name).is_some_and(of)
            || self.by_name.values().any(|phase| phase.depends_on.iter().any(|before| before == name))
    }

    /// Returns the phases, each behind all its dependencies; phases that could run next are ordered by name. The error
    /// is a cycle of names, each depending on the next; the last is the first again.
    pub(crate) fn in_order(mut self) -> Result<Vec<(String, Phase)>, Vec<String>> {
        let named: BTreeSet<String> =
            self.by_name.values().flat_map(|phase| phase.depends_on.iter().cloned()).collect();
        for name in named {
            self.by_name.entry(name).or_default();
        }
        let mut walk = Walk {
            phases: &self.by_name,
            path: Vec::new(),
            met: BTreeSet::new(),
            done: BTreeSet::new(),
            order: Vec::new(),
        };
        for name in self.by_name.keys() {
            walk.visit(name)?;
        }
        let order: Vec<String> = walk.order.into_iter().map(str::to_owned).collect();
        Ok(order
            .into_iter()
            .filter_map(|name| self.by_name.remove(&name).map(|phase| (name, phase)))
            .collect())
    }
}

/// The walk visits phases depth first, dependencies before their dependents. It does not recurse: each of many phases
/// may depend on the phase before it.
struct Walk<'a> {
    phases: &'a BTreeMap<String, Phase>,
    /// The path from the start of the walk to its present place: each name with its dependencies that are not visited
    /// yet.
    path: Vec<(&'a str, std::slice::Iter<'a, String>)>,
    /// The names on the path, and the names that are done.
    met: BTreeSet<&'a str>,
    done: BTreeSet<&'a str>,
    order: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, name: &'a str) -> Result<(), Vec<String>> {
        self.enter(name)?;
        while let Some((name, left)) = self.path.last_mut() {
            let name = *name;
            match left.next() {
                Some(before) => self.enter(before)?,
                None => {
                    self.path.pop();
                    self.done.insert(name);
                    self.order.push(name);
                }
            }
        }
        Ok(())
    }

    /// Goes on to the phase of this name, unless it is done.
    fn enter(&mut self, name: &'a str) -> Result<(), Vec<String>> {
        if self.done.contains(name) {
            return Ok(());
        }
        if !self.met.insert(name) {
            let begin = self.path.iter().position(|(other, _)| *other == name).unwrap_or(0);
            let names = self.path[begin..].iter().map(|(name, _)| *name);
            return Err(names.chain([name]).map(str::to_owned).collect());
        }
        let depends_on = self.phases.get(name).map_or(&[][..], |phase| &phase.depends_on);
        self.path.push((name, depends_on.iter()));
        Ok(())
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    fn only() -> Phases {
        Phases { by_name: BTreeMap::new(), terminates_system: true, unknown: None }
    }

    fn names(phases: Phases) -> Vec<String> {
        phases.in_order().expect("no cycle").into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn the_default_phases_are_in_the_documented_order() {
        assert_eq!(names(Phases::default()), DEFAULTS.map(|(name, _)| name));
        let ordered = Phases::default().in_order().expect("no cycle");
        let long: Vec<&str> = ordered
            .iter()
            .filter(|(_, phase)| phase.timeout == TIMEOUT_LONG)
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(
            long,
            [Phase::CLUSTER_SHARDING_SHUTDOWN_REGION, Phase::CLUSTER_EXITING, Phase::ACTOR_SYSTEM_TERMINATE]
        );
        assert!(ordered.iter().all(|(_, phase)| phase.recover && phase.enabled));
    }

    #[test]
    fn a_phase_comes_behind_all_that_it_depends_on() {
        let phases = only()
            .phase("z", Phase::new())
            .phase("a", Phase::new().after("c").after("b"))
            .phase("b", Phase::new().after("z"))
            .phase("c", Phase::new().after("z"))
            .phase("d", Phase::new());
        assert_eq!(names(phases), ["z", "c", "b", "a", "d"]);
    }

    /// Each phase depends on the next, which is met first.
    #[test]
    fn a_long_line_of_phases_needs_no_deep_stack() {
        const LENGTH: usize = if cfg!(miri) { 100 } else { 20_000 };
        let name = |number: usize| format!("{number:05}");
        let mut line = only();
        for number in 1..LENGTH {
            line = line.phase(&name(number - 1), Phase::new().after(&name(number)));
        }
        assert_eq!(names(line), (0..LENGTH).rev().map(name).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_of_no_phase_is_refused_with_the_known_ones() {
        let refused = |phases: Phases| match phases.check() {
            Err(BuildError::UnknownPhase { phase, named_by, known }) => (phase, named_by, known),
            other => panic!("{other:?}"),
        };
        let pair = only().phase("a", Phase::new()).phase("b", Phase::new().after("a"));
        assert!(pair.check().is_ok() && Phases::default().check().is_ok());
        let mistyped = pair.clone().phase("c", Phase::new().after("bb"));
        let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(refused(mistyped), ("bb".to_owned(), Some("c".to_owned()), known(&["a", "b", "c"])));
        let changed = pair.change("aa", |phase| phase.recover(false));
        assert_eq!(refused(changed), ("aa".to_owned(), None, known(&["a", "b"])));
    }

    #[test]
    fn a_cycle_is_named() {
        let phases = Phases::default()
            .phase("x", Phase::new().after("y"))
            .phase("y", Phase::new().after("z"))
            .phase("z", Phase::new().after("x"));
        assert_eq!(phases.in_order().unwrap_err(), ["x", "y", "z", "x"]);
        let own = Phases::default().phase("x", Phase::new().after("x")).in_order().unwrap_err();
        assert_eq!(own, ["x", "x"]);
    }
}
