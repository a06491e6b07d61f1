//! Deployments set single actors by path, in the system instead of in the code that creates them.

use crate::settings::router::RouterSettings;

use crate::path::actor_path::check_name;
use crate::settings::build_error::BuildError;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc as StdArc;
#[cfg(feature = "net")]
use std::time::Duration;

/// A system's settings of the actors at certain paths; see [`SystemBuilder::deploy`](crate::SystemBuilder::deploy).
///
/// A deployment takes precedence over the code that creates the actor: the operator of a service decides last, as with
/// Akka's deployment sections.
///
/// ```
/// use pointsman::settings::Deployment;
///
/// let deployment = Deployment::new().dispatcher("blocking").mailbox("small").stash_capacity(100);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Deployment {
    pub(crate) dispatcher: Option<String>,
    pub(crate) mailbox: Option<String>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::U32"))]
    pub(crate) stash_capacity: Option<u32>,
    pub(crate) class: Option<String>,
    #[cfg(feature = "remote")]
    pub(crate) remote: Option<String>,
    #[cfg_attr(
        feature = "config",
        serde(
            deserialize_with = "crate::util::values::section",
            skip_serializing_if = "crate::util::values::is_default"
        )
    )]
    pub(crate) router: RouterSettings,
    #[cfg(feature = "net")]
    #[cfg_attr(
        feature = "config",
        serde(
            deserialize_with = "crate::util::values::section",
            skip_serializing_if = "crate::util::values::is_default"
        )
    )]
    pub(crate) listener: ListenerSettings,
}

/// The settings of a [listener](crate::net::Listener) for its connections. Its [builder](crate::net::ListenerBuilder)
/// sets them in code, and [`Deployment::listener`] takes precedence. A setting in neither has its default.
#[cfg(feature = "net")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct ListenerSettings {
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Count"))]
    pub(crate) max_connections: Option<usize>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Usize"))]
    pub(crate) low_mark: Option<usize>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Usize"))]
    pub(crate) high_mark: Option<usize>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) linger: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Usize"))]
    pub(crate) linger_bytes: Option<usize>,
    pub(crate) nodelay: Option<bool>,
}

#[cfg(feature = "net")]
impl ListenerSettings {
    /// Makes settings in which nothing is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the connections that are open at a time; more connections wait in the queue of the operating system until
    /// one ends. A connection whose actor has ended counts until its socket is closed, which may take the [linger
    /// time](Self::linger). The default is no limit; 0 is taken as 1.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = Some(count.max(1));
        self
    }

    /// Sets how many bytes may wait to be sent: above `high` a connection reads nothing until no more than `low` wait.
    /// The defaults are 64 KiB and 256 KiB; `low` above `high` is taken as `high`.
    pub fn marks(mut self, low: usize, high: usize) -> Self {
        // The effective value is stored, so that it prints as a value that a file may have.
        (self.low_mark, self.high_mark) = (Some(low.min(high)), Some(high));
        self
    }

    /// Sets how long the last bytes of a connection whose actor has ended may take to be sent; 2 seconds by default. A
    /// shutdown waits for them too, within its own deadline.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = Some(linger);
        self
    }

    /// Sets how many bytes all lingering connections may hold together; 64 MiB by default. When they hold more,
    /// connections are closed at once, the oldest first, until the rest hold no more. The peers of the closed
    /// connections lose the unsent bytes, and [`linger_cuts`](crate::net::Listener::linger_cuts) counts the closed
    /// connections. A warning in the log reports the first, and each that doubles their number. With 0, a connection
    /// lingers only if the operating system has taken all that it wrote.
    pub fn linger_bytes(mut self, bytes: usize) -> Self {
        self.linger_bytes = Some(bytes);
        self
    }

    /// Sets whether small writes are sent at once (`TCP_NODELAY`); true by default.
    pub fn nodelay(mut self, nodelay: bool) -> Self {
        self.nodelay = Some(nodelay);
        self
    }

    /// Returns these settings, and those of `other` where these have none.
    #[cfg(not(pointsman_loom))]
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self {
            max_connections: self.max_connections.or(other.max_connections),
            low_mark: self.low_mark.or(other.low_mark),
            high_mark: self.high_mark.or(other.high_mark),
            linger: self.linger.or(other.linger),
            linger_bytes: self.linger_bytes.or(other.linger_bytes),
            nodelay: self.nodelay.or(other.nodelay),
        }
    }
}

impl Deployment {
    /// Makes a deployment that sets nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the dispatcher to run on, by name.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.dispatcher = Some(name.to_owned());
        self
    }

    /// Sets the mailbox, by the name declared with [`SystemBuilder::mailbox`](crate::SystemBuilder::mailbox).
    pub fn mailbox(mut self, name: &str) -> Self {
        self.mailbox = Some(name.to_owned());
        self
    }

    /// Sets how many messages may be stashed, whatever the code and the [mailbox](crate::Mailbox::stash_capacity) say.
    pub fn stash_capacity(mut self, messages: usize) -> Self {
        self.stash_capacity = Some(u32::try_from(messages).unwrap_or(u32::MAX));
        self
    }

    /// Sets the class in which the actor is counted: see [`telemetry`](crate::telemetry). Of a router at this path it is
    /// the class of the routees that a pool makes.
    pub fn class(mut self, name: &str) -> Self {
        self.class = Some(name.to_owned());
        self
    }

    /// Sets the node that the actor at this path is made on, in place of the one that the code names. The code makes the actor by
    /// [`deploy`](crate::actor::ActorBuilder::deploy) or [`deploy_on`](crate::actor::ActorBuilder::deploy_on); for an actor that
    /// is made in another way this is [an error](crate::routing::SectionFault::NotDeployable), unless the node is the actor's own.
    /// A router that the code makes by [`deploy_on`](crate::routing::RouterBuilder::deploy_on) follows it, too. The other settings
    /// of this path have no effect on an actor elsewhere: the node that it is made on has its own.
    ///
    /// (Akka's `remote` in a deployment section.)
    #[cfg(feature = "remote")]
    pub fn remote(mut self, node: &str) -> Self {
        self.remote = Some(node.to_owned());
        self
    }

    /// Sets the kind and the settings of the router at this path. For an actor that is no router, the only effect is a
    /// warning in the log, or an error for [the nodes of routees](RouterSettings::target_nodes).
    ///
    /// The other settings of this path apply to the routees that a pool makes, not to the router's head, unless the
    /// path of a routee has settings: `/shards/*` takes precedence over `/shards`. (Akka ignores those of `/shards`.)
    pub fn router(mut self, settings: RouterSettings) -> Self {
        self.router = settings;
        self
    }

    /// Sets how the listener at this path treats its connections. The dispatcher of the connections is a setting of the
    /// listener's children: of `/gate/*` for the listener `/gate`.
    #[cfg(feature = "net")]
    pub fn listener(mut self, settings: ListenerSettings) -> Self {
        self.listener = settings;
        self
    }
}

/// The deployments hold all sections of a system, found by path.
///
/// The rules are Akka's. A pattern is a path below `/user` (or `/system`). An element is a name, `*` (any single name)
/// or `prefix*`; the last element may be `**`, one or more elements. At each level a name beats `*`, which beats
/// `prefix*`; a passed-over alternative is not tried again. `**` counts only where nothing else matches, the deepest
/// first.
#[derive(Debug, Clone)]
pub(crate) struct Deployments {
    /// All levels; the first is the top. They lie in a list and are not nested, because a pattern may have any number
    /// of elements: nested levels would be dropped and cloned with as much stack.
    levels: Vec<Level>,
    /// The deployments as they were written, for the settings that the system prints.
    written: BTreeMap<String, Deployment>,
}

/// The section of a single pattern.
#[derive(Debug, Clone)]
pub(crate) struct MatchedDeployment {
    pub pattern: String,
    pub deployment: Deployment,
    /// True once a warning has reported an actor here that is no router.
    is_misplaced: StdArc<AtomicBool>,
}

impl MatchedDeployment {
    fn new(pattern: &str, deployment: Deployment) -> Self {
        Self { pattern: pattern.to_owned(), deployment, is_misplaced: StdArc::new(AtomicBool::new(false)) }
    }

    /// Returns the text of a warning that the actor at `path` is no router, so the router settings of the section have
    /// no effect. Returns it once, for there may be many such actors.
    pub(crate) fn warning_for_no_router(&self, path: impl FnOnce() -> String) -> Option<Box<str>> {
        // Ordering: Relaxed; only the first caller matters.
        if self.deployment.router == RouterSettings::new() || self.is_misplaced.swap(true, Ordering::Relaxed)
        {
            return None;
        }
        let warning = format!(
            "{} is no router: deployment.{:?}.router has no effect on it, leave it out or create a router in the code",
            path(),
            self.pattern
        );
        Some(warning.into())
    }
}

/// The sections for the elements at one place; it names further levels by their numbers.
#[derive(Debug, Clone, Default)]
struct Level {
    deployment: Option<MatchedDeployment>,
    by_name: BTreeMap<String, usize>,
    any: Option<usize>,
    /// By prefix, the longest first.
    by_prefix: Vec<(String, usize)>,
    /// The section of `**` at this place.
    rest: Option<MatchedDeployment>,
}

/// The number of the level where patterns begin.
const TOP: usize = 0;

impl Default for Deployments {
    fn default() -> Self {
        Self { levels: vec![Level::default()], written: BTreeMap::new() }
    }
}

impl Deployments {
    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Adds a section.
    pub(crate) fn add(&mut self, pattern: &str, deployment: Deployment) -> Result<(), BuildError> {
        self.put(pattern, deployment, false)
    }

    /// Adds a section, or replaces the section of the same pattern.
    #[cfg(feature = "config")]
    pub(crate) fn replace(&mut self, pattern: &str, deployment: Deployment) -> Result<(), BuildError> {
        self.put(pattern, deployment, true)
    }

    fn put(&mut self, pattern: &str, deployment: Deployment, replaces: bool) -> Result<(), BuildError> {
        let elements = pattern.strip_prefix('/').filter(|rest| !rest.is_empty());
        let Some(elements) = elements else {
            return Err(BuildError::PatternRelative { pattern: pattern.to_owned() });
        };
        if elements.starts_with("user/") || elements.starts_with("system/") {
            // This is no error: an actor below `/user` may have such a name.
            log::warn!(
                target: "pointsman",
                "deployment {pattern:?} is meant for /user{pattern}: leave the guardian out of the pattern"
            );
        }
        let mut at = TOP;
        let mut elements = elements.split('/');
        let place = loop {
            let Some(element) = elements.next() else { break &mut self.levels[at].deployment };
            if element == "**" {
                if elements.next().is_some() {
                    return Err(BuildError::PatternRestInside { pattern: pattern.to_owned() });
                }
                break &mut self.levels[at].rest;
            }
            let next = self.levels.len();
            let level = &mut self.levels[at];
            at = match element.strip_suffix('*') {
                Some("") => *level.any.get_or_insert(next),
                Some(prefix) => {
                    checked(pattern, prefix)?;
                    level.with_prefix(prefix, next)
                }
                None => {
                    checked(pattern, element)?;
                    *level.by_name.entry(element.to_owned()).or_insert(next)
                }
            };
            if at == next {
                self.levels.push(Level::default());
            }
        };
        if place.is_some() && !replaces {
            return Err(BuildError::DuplicateDeployment { pattern: pattern.to_owned() });
        }
        *place = Some(MatchedDeployment::new(pattern, deployment.clone()));
        self.written.insert(pattern.to_owned(), deployment);
        Ok(())
    }

    /// Returns the section of the actor at these names, given from below the guardian down.
    pub(crate) fn find<'p>(&self, names: impl Iterator<Item = &'p str>) -> Option<&MatchedDeployment> {
        if self.written.is_empty() {
            return None;
        }
        let mut level = Some(&self.levels[TOP]);
        let mut rest = None;
        for name in names {
            let Some(at) = level else {
                // Only a `**` further up can still match.
                return rest;
            };
            rest = at.rest.as_ref().or(rest);
            level = at.next(name).map(|number| &self.levels[number]);
        }
        level.and_then(|level| level.deployment.as_ref()).or(rest)
    }

    /// Returns all deployments as they were written, by pattern.
    pub(crate) fn written(&self) -> &BTreeMap<String, Deployment> {
        &self.written
    }
}

impl Level {
    /// Returns the level of this prefix; it is `next` if there was none.
    fn with_prefix(&mut self, prefix: &str, next: usize) -> usize {
        let place = match self.by_prefix.iter().position(|(known, _)| known == prefix) {
            Some(place) => place,
            None => {
                let place = self.by_prefix.partition_point(|(known, _)| known.len() >= prefix.len());
                self.by_prefix.insert(place, (prefix.to_owned(), next));
                place
            }
        };
        self.by_prefix[place].1
    }

    fn next(&self, name: &str) -> Option<usize> {
        let by_prefix = || self.by_prefix.iter().find(|(prefix, _)| name.starts_with(prefix.as_str()));
        self.by_name.get(name).copied().or(self.any).or_else(|| by_prefix().map(|(_, level)| *level))
    }
}

fn checked(pattern: &str, element: &str) -> Result<(), BuildError> {
    check_name(element).map_err(|error| BuildError::PatternElement { pattern: pattern.to_owned(), error })
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::path::error::NameError;

    /// Deployments whose dispatcher is named after the pattern.
    fn deployments(patterns: &[&str]) -> Deployments {
        let mut deployments = Deployments::default();
        for pattern in patterns {
            deployments.add(pattern, Deployment::new().dispatcher(pattern)).expect("a good pattern");
        }
        deployments
    }

    fn found(deployments: &Deployments, path: &str) -> Option<String> {
        deployments.find(path.split('/').skip(1)).and_then(|found| found.deployment.dispatcher.clone())
    }

    #[test]
    fn a_name_beats_a_star_which_beats_a_prefix() {
        let all = deployments(&["/a/b", "/a/*", "/a/b*"]);
        assert_eq!(found(&all, "/a/b").as_deref(), Some("/a/b"));
        assert_eq!(found(&all, "/a/bc").as_deref(), Some("/a/*"));
        let prefixes = deployments(&["/a/b*", "/a/bc*"]);
        assert_eq!(found(&prefixes, "/a/bcd").as_deref(), Some("/a/bc*"), "the longest prefix");
        assert_eq!(found(&prefixes, "/a/bx").as_deref(), Some("/a/b*"));
        assert_eq!(found(&prefixes, "/a/x"), None);
    }

    #[test]
    fn what_was_passed_over_is_not_tried_again() {
        let all = deployments(&["/a/b/c", "/*/b/d"]);
        assert_eq!(found(&all, "/a/b/d"), None);
        assert_eq!(found(&all, "/x/b/d").as_deref(), Some("/*/b/d"));
    }

    #[test]
    fn the_deepest_rest_counts_only_where_nothing_else_matches() {
        let all = deployments(&["/a/**", "/a/b/**", "/a/b/c"]);
        assert_eq!(found(&all, "/a"), None, "not the parent itself");
        assert_eq!(found(&all, "/a/x").as_deref(), Some("/a/**"));
        assert_eq!(found(&all, "/a/x/y/z").as_deref(), Some("/a/**"));
        assert_eq!(found(&all, "/a/b").as_deref(), Some("/a/**"));
        assert_eq!(found(&all, "/a/b/c").as_deref(), Some("/a/b/c"));
        assert_eq!(found(&all, "/a/b/c/d").as_deref(), Some("/a/b/**"));
    }

    /// Replacing must not make all sections anew: for a file of ten thousand that would take minutes.
    #[cfg(feature = "config")]
    #[test]
    fn to_replace_one_leaves_the_others_as_they_are() {
        let mut all = deployments(&["/a", "/b", "/b/**"]);
        let of = |all: &Deployments, path: &str| {
            let section = all.find(path.split('/').skip(1)).expect("it is deployed");
            (section.is_misplaced.clone(), section.deployment.dispatcher.clone())
        };
        let (a, _) = of(&all, "/a");
        for (pattern, path) in [("/b", "/b"), ("/b/**", "/b/c"), ("/new", "/new")] {
            all.replace(pattern, Deployment::new().dispatcher("other")).expect("a good pattern");
            assert_eq!(of(&all, path).1.as_deref(), Some("other"));
        }
        assert!(StdArc::ptr_eq(&a, &of(&all, "/a").0));
        assert_eq!(all.written().len(), 4);
    }

    #[test]
    fn a_pattern_may_have_any_number_of_elements() {
        let long = "/a".repeat(if cfg!(miri) { 100 } else { 200_000 });
        let all = deployments(&[&long, "/a/*"]);
        let copy = all.clone();
        drop(all);
        assert_eq!(found(&copy, &long), Some(long));
        assert_eq!(found(&copy, "/a/b").as_deref(), Some("/a/*"));
    }

    #[test]
    fn bad_patterns_say_what_is_wrong() {
        let mut all = deployments(&["/a", "/b/**"]);
        let mut add = |pattern: &str| all.add(pattern, Deployment::new()).unwrap_err();
        assert!(matches!(add("a/b"), BuildError::PatternRelative { .. }));
        assert!(matches!(add("/"), BuildError::PatternRelative { .. }));
        assert!(
            matches!(add("/a//b"), BuildError::PatternElement { error, .. } if error == NameError::Empty)
        );
        assert!(matches!(add("/a/ä"), BuildError::PatternElement { .. }));
        assert!(matches!(add("/a/**/b"), BuildError::PatternRestInside { .. }));
        assert!(matches!(add("/a"), BuildError::DuplicateDeployment { .. }));
        assert_eq!(add("/b/**").to_string(), "\"/b/**\" is deployed twice: join the two");
    }
}
