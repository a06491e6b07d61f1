//! Group loggers choose the records that the program's logger gets, by the group of the actor that logs.

use crate::core::system::SystemRef;
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock, per_thread};
use crate::util::debug_by_display::debug_by_display;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

per_thread! {
    /// The group of the actor that handles a message on this thread.
    static GROUP: RefCell<Option<LogGroup>> = const { RefCell::new(None) };
}

/// The name of the rule for records from outside the groups.
const DEFAULT: &str = "";

/// Group loggers stand in front of the program's logger: see the [module](crate::logs). A clone is another handle to the
/// same loggers.
#[derive(Clone)]
pub struct GroupLoggers {
    shared: StdArc<Shared>,
}

struct Shared {
    behind: Box<dyn Log>,
    system: SystemRef,
    groups: Mutex<BTreeMap<String, StdArc<Rule>>>,
    default: StdArc<Rule>,
}

/// The rule of a group.
struct Rule {
    name: String,
    level: AtomicUsize,
    /// Levels for the targets that begin so, the longest first, and their number.
    targets: Mutex<Vec<(String, LevelFilter)>>,
    target_count: AtomicUsize,
    lines_per_second: AtomicU32,
    /// The second since the start that the count belongs to, and the count.
    second: AtomicU64,
    in_second: AtomicU32,
    omitted: AtomicU64,
}

impl Rule {
    fn new(name: &str, level: LevelFilter) -> Self {
        Self {
            name: name.to_owned(),
            level: AtomicUsize::new(level as usize),
            targets: Mutex::new(Vec::new()),
            target_count: AtomicUsize::new(0),
            lines_per_second: AtomicU32::new(u32::MAX),
            second: AtomicU64::new(0),
            in_second: AtomicU32::new(0),
            omitted: AtomicU64::new(0),
        }
    }

    fn takes(&self, metadata: &Metadata<'_>) -> bool {
        // Ordering: Relaxed; a record that comes while a level changes goes by either.
        if self.target_count.load(Ordering::Relaxed) > 0 {
            let targets = lock(&self.targets);
            let found = targets.iter().find(|(target, _)| metadata.target().starts_with(&**target));
            if let Some((_, level)) = found {
                return metadata.level() <= *level;
            }
        }
        metadata.level() as usize <= self.level.load(Ordering::Relaxed)
    }

    fn set_target(&self, target: &str, level: LevelFilter) {
        let mut targets = lock(&self.targets);
        targets.retain(|(known, _)| known != target);
        targets.push((target.to_owned(), level));
        targets.sort_by_key(|(target, _)| std::cmp::Reverse(target.len()));
        // Ordering: Relaxed; as in `takes`.
        self.target_count.store(targets.len(), Ordering::Relaxed);
    }

    /// Counts a line. Returns the number of lines omitted before it; `None` if this line is omitted.
    fn count(&self, now: Duration) -> Option<u64> {
        let second = now.as_secs();
        // Ordering: Relaxed; lines at the change of a second may count for either.
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.in_second.store(0, Ordering::Relaxed);
        }
        if self.in_second.load(Ordering::Relaxed) >= self.lines_per_second.load(Ordering::Relaxed) {
            self.omitted.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.in_second.fetch_add(1, Ordering::Relaxed);
        Some(self.omitted.swap(0, Ordering::Relaxed))
    }
}

/// A log group is a group of actors for [`GroupLoggers`]: its [`actor`](Self::actor) wraps an actor.
#[derive(Clone)]
pub struct LogGroup {
    rule: StdArc<Rule>,
}

/// The time within which a thread logs for a group.
pub(crate) struct Within(Option<LogGroup>);

impl LogGroup {
    /// Returns the name of the group.
    pub fn name(&self) -> &str {
        &self.rule.name
    }

    /// Lets this thread log for the group until the guard is dropped.
    pub(crate) fn enter(&self) -> Within {
        Within(GROUP.try_with(|group| group.replace(Some(self.clone()))).unwrap_or(None))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        let _ = GROUP.try_with(|group| group.replace(self.0.take()));
    }
}

impl GroupLoggers {
    /// Puts loggers in front of this logger. The default level is `Info`, and there is no limit of lines; limits go by the
    /// clock of the system.
    pub fn around(system: &SystemRef, logger: impl Log + 'static) -> Self {
        let default = StdArc::new(Rule::new(DEFAULT, LevelFilter::Info));
        let (system, groups) = (system.clone(), Mutex::new(BTreeMap::new()));
        Self { shared: StdArc::new(Shared { behind: Box::new(logger), system, groups, default }) }
    }

    /// Makes the loggers those of the process. The highest level of the crate `log` is raised to `Trace`, so that the
    /// rules decide.
    ///
    /// # Errors
    ///
    /// [`LoggerExists`] if the process has a logger already.
    pub fn install(&self) -> Result<(), LoggerExists> {
        // A logger lives as long as the process.
        log::set_logger(Box::leak(Box::new(self.clone()))).map_err(|_| LoggerExists)?;
        log::set_max_level(LevelFilter::Trace);
        Ok(())
    }

    fn rule(&self, group: &str) -> StdArc<Rule> {
        // Ordering: Relaxed; as in `Rule::takes`.
        let level = || match self.shared.default.level.load(Ordering::Relaxed) {
            0 => LevelFilter::Off,
            1 => LevelFilter::Error,
            2 => LevelFilter::Warn,
            3 => LevelFilter::Info,
            4 => LevelFilter::Debug,
            _ => LevelFilter::Trace,
        };
        let mut groups = lock(&self.shared.groups);
        groups.entry(group.to_owned()).or_insert_with(|| StdArc::new(Rule::new(group, level()))).clone()
    }

    /// Returns the group of this name. A new group begins with the default level of that moment, and without a limit.
    pub fn group(&self, name: &str) -> LogGroup {
        LogGroup { rule: self.rule(name) }
    }

    /// Sets the level of a group, from now on.
    pub fn set_level(&self, group: &str, level: LevelFilter) {
        // Ordering: Relaxed; as in `Rule::takes`.
        self.rule(group).level.store(level as usize, Ordering::Relaxed);
    }

    /// Sets the level of those records of a group whose target begins so, such as `shop::ledgers`, from now on. The longest
    /// such target counts.
    pub fn set_target_level(&self, group: &str, target: &str, level: LevelFilter) {
        self.rule(group).set_target(target, level);
    }

    /// Sets the level of records from outside the groups, from now on: of threads that run no actor, and of actors that
    /// belong to no group.
    pub fn set_default_level(&self, level: LevelFilter) {
        // Ordering: Relaxed; as in `Rule::takes`.
        self.shared.default.level.store(level as usize, Ordering::Relaxed);
    }

    /// Sets how many lines of a group go to the program's logger in a second, from now on. The others are omitted; the
    /// next line is preceded by a warning that tells their number.
    pub fn set_lines_per_second(&self, group: &str, lines: u32) {
        // Ordering: Relaxed; as in `Rule::count`.
        self.rule(group).lines_per_second.store(lines, Ordering::Relaxed);
    }

    fn with_rule<R>(&self, act: impl FnOnce(&Rule) -> R) -> R {
        let group = GROUP.try_with(|group| group.try_borrow().ok().and_then(|group| group.clone()));
        match group.ok().flatten() {
            Some(group) => act(&group.rule),
            None => act(&self.shared.default),
        }
    }
}

/// The process has a logger already, so [`GroupLoggers::install`] has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggerExists;

impl fmt::Display for LoggerExists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the process has a logger already: give that logger to `GroupLoggers::around` instead of installing it",
        )
    }
}

impl std::error::Error for LoggerExists {}

debug_by_display! { LoggerExists }

impl Log for GroupLoggers {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.with_rule(|rule| rule.takes(metadata)) && self.shared.behind.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let now = self.shared.system.now();
        let counted = self.with_rule(|rule| rule.count(now).map(|omitted| (omitted, rule.name.clone())));
        let Some((omitted, group)) = counted else { return };
        if omitted > 0 {
            self.shared.behind.log(
                &Record::builder()
                    .level(Level::Warn)
                    .target("pointsman")
                    .args(format_args!(
                        "group `{group}`: {omitted} log lines were omitted, by the limit of the group"
                    ))
                    .build(),
            );
        }
        self.shared.behind.log(record);
    }

    fn flush(&self) {
        self.shared.behind.flush();
    }
}

impl fmt::Debug for GroupLoggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = lock(&self.shared.groups).keys().cloned().collect();
        f.debug_struct("GroupLoggers").field("groups", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for LogGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogGroup").field(&self.rule.name).finish()
    }
}
