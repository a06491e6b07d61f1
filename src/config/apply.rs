//! A configuration file changes the settings of a system.

use super::file::DispatcherSection;
use super::file::MailboxSection;
use super::file::PhaseSection;
use super::file::SupervisionSection;
use crate::config::error::ConfigError;
use crate::config::file::{DispatcherType, File, MailboxType, OnFailure, OnFull, Requirement};
use crate::config::values::Span;
use crate::config::{key, router};
use crate::core::strategy::{Directive, Restart, Strategy};
use crate::dispatch::dispatcher::Dispatcher;
use crate::group::config::GroupConfig;
use crate::mailbox::kind::{Mailbox, MailboxRequirement, OverflowPolicy};
use crate::settings::deployment::Deployment;
use crate::settings::phases::Phase;
use crate::system_settings::SystemSettings;

/// Reads the text of a file.
pub(crate) fn read(toml: &str) -> Result<File, ConfigError> {
    let deserializer = toml::Deserializer::parse(toml).map_err(|error| ConfigError::syntax(&error))?;
    serde_path_to_error::deserialize(deserializer)
        .map_err(|error| ConfigError::key(key::whole(error.path()), error.inner().message()))
}

pub(crate) fn apply(file: File, mut settings: SystemSettings) -> Result<SystemSettings, ConfigError> {
    if let Some(seed) = file.seed {
        settings.seed = seed.0;
    }
    if let Some(capacity) = file.inbox_capacity {
        settings.inbox_capacity = capacity.usize();
    }
    settings.supervision = supervision(&file.supervision, settings.supervision)?;
    let letters = &mut settings.log_dead_letters;
    if let Some(log) = file.dead_letters.log {
        letters.count_max = log.0;
    }
    if let Some(pause) = file.dead_letters.pause {
        letters.pause = pause.0;
    }
    if let Some(is_on) = file.dead_letters.log_during_shutdown {
        letters.during_shutdown = is_on;
    }
    for (name, section) in &file.mailbox {
        let known = settings.mailboxes.iter_mut().find(|(known, _)| known == name);
        let changed = mailbox(name, section, known.as_ref().map(|(_, mailbox)| mailbox.clone()))?;
        match known {
            Some((_, mailbox)) => *mailbox = changed,
            None => settings.mailboxes.push((name.clone(), changed)),
        }
    }
    for (name, section) in file.dispatcher {
        let at = format!("dispatcher.{}", key::part(&name));
        settings = dispatcher(&at, name, section, settings)?;
    }
    for (pattern, section) in file.deployment {
        let at = format!("deployment.{}", key::part(&pattern));
        let key = |rest: &str| format!("{at}{rest}");
        let mut deployment =
            settings.deployments.written().get(&pattern).cloned().unwrap_or_else(Deployment::new);
        if let Some(name) = &section.dispatcher {
            check_dispatcher(&key(".dispatcher"), name, &settings)?;
            deployment = deployment.dispatcher(name);
        }
        if let Some(name) = &section.mailbox {
            check_mailbox(&key(".mailbox"), name, &settings)?;
            deployment = deployment.mailbox(name);
        }
        if let Some(capacity) = section.stash_capacity {
            deployment = deployment.stash_capacity(capacity.usize());
        }
        if let Some(section) = section.router {
            settings = router::apply(&pattern, section, &mut deployment.router, settings)?;
        }
        #[cfg(feature = "net")]
        if let Some(section) = &section.listener {
            listener(&key(".listener"), section, &mut deployment.listener)?;
        }
        let replaced = settings.deployments.replace(&pattern, deployment);
        replaced.map_err(|error| ConfigError::key(key(""), error.to_string()))?;
    }
    if let Some(is_on) = file.shutdown.terminate_actor_system {
        settings.shutdown_phases = settings.shutdown_phases.terminate_actor_system(is_on);
    }
    for (name, section) in file.shutdown.phase {
        settings.shutdown_phases = settings.shutdown_phases.change(&name, |known| phase(section, known));
    }
    for (name, table) in file.topology {
        let section = GroupConfig::of(table)
            .map_err(|fault| ConfigError::key(format!("topology.{}", key::part(&name)), fault))?;
        settings.topology.entry(name).or_default().change(section);
    }
    Ok(settings)
}

fn supervision(section: &SupervisionSection, mut strategy: Strategy) -> Result<Strategy, ConfigError> {
    let directive = match section.on_failure {
        None => None,
        Some(OnFailure::Default) => Some(None),
        Some(OnFailure::Stop) => Some(Some(Directive::Stop)),
        Some(OnFailure::Resume) => Some(Some(Directive::Resume)),
        Some(OnFailure::Escalate) => Some(Some(Directive::Escalate)),
    };
    if let Some(directive) = directive {
        strategy.set_always(directive);
    }
    if section.restarts.is_none() && section.within.is_none() {
        return Ok(strategy);
    }
    if matches!(strategy.as_always(), Ok(Some(_))) {
        let key = if section.restarts.is_some() { "supervision.restarts" } else { "supervision.within" };
        return Err(ConfigError::key(
            key,
            "nothing is restarted: leave it out, or say on-failure = \"default\"",
        ));
    }
    let (count, window) = strategy.restart_limit().parts();
    let count = section.restarts.map(|count| count.u32()).or(count);
    let limit = count.map_or(Restart::always(), Restart::up_to);
    Ok(strategy.limit(match section.within.map(|window| window.0).or(window) {
        Some(window) => limit.within(window),
        None => limit,
    }))
}

fn mailbox(name: &str, section: &MailboxSection, known: Option<Mailbox>) -> Result<Mailbox, ConfigError> {
    let at = format!("mailbox.{}", key::part(name));
    let key = |key: &str| format!("{at}.{key}");
    let mut mailbox = match (section.kind, known) {
        (None, Some(known)) => known,
        // The known mailbox is of this type, and keeps its other properties, such as sorting, which a file cannot
        // express.
        (Some(MailboxType::Bounded), Some(known)) if known.capacity.is_some() => known,
        (Some(MailboxType::Unbounded), Some(known)) if known.capacity.is_none() => known,
        (None | Some(MailboxType::Unbounded), _) => Mailbox::unbounded(),
        (Some(MailboxType::Bounded), _) => match section.capacity {
            Some(capacity) => Mailbox::bounded(capacity.usize()),
            None => return Err(ConfigError::key(key("capacity"), "a bounded mailbox needs one: at least 1")),
        },
    };
    if section.kind == Some(MailboxType::Unbounded) && section.capacity.is_some() {
        return Err(ConfigError::key(
            key("capacity"),
            "an unbounded mailbox has none: say type = \"bounded\"",
        ));
    }
    if let Some(capacity) = section.capacity {
        mailbox = mailbox.capacity(capacity.usize());
    }
    let waits = matches!(mailbox.on_full, OverflowPolicy::Wait(_));
    mailbox = match (section.on_full, section.wait) {
        (None, None) => mailbox,
        (Some(OnFull::Wait), Some(limit)) => mailbox.on_full(OverflowPolicy::Wait(limit.0)),
        // The other key has the value of the code.
        (None, Some(limit)) if waits => mailbox.on_full(OverflowPolicy::Wait(limit.0)),
        (Some(OnFull::Wait), None) if waits => mailbox,
        (Some(OnFull::Wait), None) => {
            return Err(ConfigError::key(
                key("wait"),
                "on-full = \"wait\" needs it: how long senders wait, as \"10s\"",
            ));
        }
        (_, Some(_)) => {
            return Err(ConfigError::key(key("wait"), "senders wait only with on-full = \"wait\""));
        }
        (Some(OnFull::Reject), None) => mailbox.on_full(OverflowPolicy::Reject),
        (Some(OnFull::DropOldest), None) => mailbox.on_full(OverflowPolicy::DropOldest),
        (Some(OnFull::DropNewest), None) => mailbox.on_full(OverflowPolicy::DropNewest),
    };
    if let Some(guard) = section.guard {
        mailbox = mailbox.guard(guard.u32());
    }
    if let Some(capacity) = section.stash_capacity {
        mailbox = mailbox.stash_capacity(capacity.usize());
    }
    mailbox.check().map_err(|fault| ConfigError::key(at, fault.to_string()))?;
    Ok(mailbox)
}

/// Returns the keys that the section of a dispatcher of this type may have.
fn keys(kind: DispatcherType) -> &'static [&'static str] {
    const ALL: [&str; 5] = ["type", "throughput", "deadline", "mailbox", "requires-mailbox"];
    match kind {
        DispatcherType::WorkStealing => {
            &[ALL[0], ALL[1], ALL[2], ALL[3], ALL[4], "threads", "pin-to", "spin", "lifo", "idle-shutdown"]
        }
        DispatcherType::Blocking => &[
            ALL[0],
            ALL[1],
            ALL[2],
            ALL[3],
            ALL[4],
            "threads-min",
            "threads-max",
            "keep-alive",
            "idle-shutdown",
        ],
        DispatcherType::Pinned | DispatcherType::CallingThread => &ALL,
        DispatcherType::Alias => &["type", "of"],
    }
}

/// Declares or changes the dispatcher of this name by the section at `at`.
pub(crate) fn dispatcher(
    at: &str,
    name: String,
    section: DispatcherSection,
    mut settings: SystemSettings,
) -> Result<SystemSettings, ConfigError> {
    let key = |key: &str| format!("{at}.{key}");
    let place = settings.dispatchers.dispatchers.iter().position(|(known, _)| *known == name);
    let known = place.map(|place| settings.dispatchers.dispatchers[place].1.clone());
    let aliases = &settings.dispatchers.aliases;
    let known_target = aliases.iter().find(|(known, _)| *known == name).map(|(_, target)| target.clone());
    let known_alias = known_target.as_ref().map(|_| DispatcherType::Alias);
    let known_kind = known.as_ref().map(kind_of).or(known_alias);
    let kind = section.kind.or(known_kind).unwrap_or(DispatcherType::WorkStealing);
    let said = toml::Table::try_from(&section).unwrap_or_default();
    let allowed = keys(kind);
    if let Some(stray) = said.keys().find(|said| !allowed.contains(&said.as_str())) {
        let text = written(&kind);
        return Err(ConfigError::key(
            key(stray),
            format!("a dispatcher of type {text} has none; it has {allowed:?}"),
        ));
    }
    if let Some(mailbox) = &section.mailbox {
        check_mailbox(&key("mailbox"), mailbox, &settings)?;
    }
    let known = known.filter(|_| known_kind == Some(kind));
    let recipe = match kind {
        DispatcherType::Alias => {
            let Some(of) = section.of.or(known_target) else {
                return Err(ConfigError::key(
                    key("of"),
                    "an alias needs it: the name of the dispatcher it stands for",
                ));
            };
            settings.dispatchers.dispatchers.retain(|(known, _)| *known != name);
            settings.dispatchers.aliases.retain(|(known, _)| *known != name);
            settings.dispatchers.aliases.push((name, of));
            return Ok(settings);
        }
        _ => recipe(at, kind, &section, known)?,
    };
    settings.dispatchers.aliases.retain(|(known, _)| *known != name);
    match place {
        Some(place) => settings.dispatchers.dispatchers[place].1 = recipe,
        None => settings.dispatchers.dispatchers.push((name, recipe)),
    }
    Ok(settings)
}

fn recipe(
    at: &str,
    kind: DispatcherType,
    section: &DispatcherSection,
    known: Option<Dispatcher>,
) -> Result<Dispatcher, ConfigError> {
    let mut recipe = known.unwrap_or_else(|| match kind {
        DispatcherType::Blocking => Dispatcher::blocking().into(),
        DispatcherType::Pinned => Dispatcher::pinned().into(),
        DispatcherType::CallingThread => Dispatcher::calling_thread().into(),
        DispatcherType::WorkStealing | DispatcherType::Alias => Dispatcher::work_stealing().into(),
    });
    // The keys that all types have.
    let options = recipe.options_mut();
    if let Some(messages) = section.throughput {
        options.throughput = messages.u32();
    }
    set(&mut options.deadline, section.deadline);
    if let Some(mailbox) = &section.mailbox {
        options.mailbox = Some(mailbox.as_str().into());
    }
    if let Some(requirement) = section.requires_mailbox {
        options.required_mailbox = Some(match requirement {
            Requirement::Bounded => MailboxRequirement::Bounded,
            Requirement::Unbounded => MailboxRequirement::Unbounded,
            Requirement::Sorted => MailboxRequirement::Sorted,
            Requirement::ControlAware => MailboxRequirement::ControlAware,
        });
    }
    match &mut recipe {
        Dispatcher::WorkStealing(it) => {
            if let Some(threads) = section.threads {
                it.thread_count = Some(threads.usize());
            }
            if let Some(cores) = &section.pin_to {
                it.pin_to = Some(cores.iter().map(|core| core.usize()).collect());
            }
            if let Some(spin) = section.spin {
                it.spin = spin.0;
            }
            if let Some(is_on) = section.lifo {
                it.lifo = is_on;
            }
            set(&mut it.idle_shutdown, section.idle_shutdown);
        }
        Dispatcher::Blocking(it) => {
            let min = section.threads_min.map_or(*it.thread_count.start(), |min| min.usize());
            let max = section.threads_max.map_or(*it.thread_count.end(), |max| max.usize());
            if min > max {
                let key = if section.threads_max.is_some() { "threads-max" } else { "threads-min" };
                let fault = format!("threads-min {min} is above threads-max {max}");
                return Err(ConfigError::key(format!("{at}.{key}"), fault));
            }
            it.thread_count = min..=max;
            if let Some(length) = section.keep_alive {
                it.keep_alive = length.0;
            }
            set(&mut it.idle_shutdown, section.idle_shutdown);
        }
        Dispatcher::Pinned(_) | Dispatcher::CallingThread(_) => {}
    }
    Ok(recipe)
}

#[cfg(feature = "net")]
fn listener(
    key: &str,
    section: &super::file::ListenerSection,
    settings: &mut crate::settings::deployment::ListenerSettings,
) -> Result<(), ConfigError> {
    settings.max_connections =
        section.max_connections.map(|count| count.usize()).or(settings.max_connections);
    settings.low_mark = section.low_mark.map(|bytes| bytes.usize()).or(settings.low_mark);
    settings.high_mark = section.high_mark.map(|bytes| bytes.usize()).or(settings.high_mark);
    settings.linger = section.linger.map(|length| length.0).or(settings.linger);
    settings.linger_bytes = section.linger_bytes.map(|bytes| bytes.usize()).or(settings.linger_bytes);
    settings.nodelay = section.nodelay.or(settings.nodelay);
    match (settings.low_mark, settings.high_mark) {
        (Some(low), Some(high)) if low > high => {
            let name = if section.low_mark.is_some() { "low-mark" } else { "high-mark" };
            let fault = format!("low-mark {low} is above high-mark {high}");
            Err(ConfigError::key(format!("{key}.{name}"), fault))
        }
        _ => Ok(()),
    }
}

pub(crate) fn kind_of(dispatcher: &Dispatcher) -> DispatcherType {
    match dispatcher {
        Dispatcher::WorkStealing(_) => DispatcherType::WorkStealing,
        Dispatcher::Blocking(_) => DispatcherType::Blocking,
        Dispatcher::Pinned(_) => DispatcherType::Pinned,
        Dispatcher::CallingThread(_) => DispatcherType::CallingThread,
    }
}

/// Returns the type as a file writes it.
fn written(kind: &DispatcherType) -> String {
    toml::Value::try_from(kind).map_or_else(|_| format!("{kind:?}"), |value| value.to_string())
}

fn set(place: &mut Option<std::time::Duration>, span: Option<Span>) {
    if let Some(span) = span {
        *place = Some(span.0);
    }
}

fn phase(section: PhaseSection, mut known: Phase) -> Phase {
    if let Some(names) = section.depends_on {
        known.depends_on = names;
    }
    if let Some(timeout) = section.timeout {
        known.timeout = timeout.0;
    }
    if let Some(is_on) = section.recover {
        known.recover = is_on;
    }
    if let Some(is_on) = section.enabled {
        known.enabled = is_on;
    }
    known
}

fn check_dispatcher(key: &str, name: &str, settings: &SystemSettings) -> Result<(), ConfigError> {
    settings.known_names().check_dispatcher(name).map_err(|fault| ConfigError::key(key, fault.to_string()))
}

fn check_mailbox(key: &str, name: &str, settings: &SystemSettings) -> Result<(), ConfigError> {
    settings.known_names().check_mailbox(name).map_err(|fault| ConfigError::key(key, fault.to_string()))
}
