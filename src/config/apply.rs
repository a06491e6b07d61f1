//! A configuration file changes the settings of a system.

use crate::config::file::{
    Alias, DispatcherType, File, MailboxSection, MailboxType, OnFailure, OnFull, SupervisionSection,
};
use crate::config::key;
use crate::core::strategy::{Directive, Strategy};
use crate::dispatch::dispatcher::{Dispatcher, DispatcherKind};
use crate::group::config::{GroupConfig, change};
use crate::mailbox::kind::{Mailbox, OverflowPolicy};
#[cfg(feature = "remote")]
use crate::remote::settings::RemoteSettings;
use crate::routing::settings::check::check_deployment;
use crate::settings::build_error::BuildError;
use crate::settings::deployment::Deployment;
use crate::settings::phases::Phases;
use crate::system_settings::SystemSettings;
use crate::util::values::Section;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use toml::Value as Toml;

/// A file as it is read.
type Said = File<Section, Section, Section, Section, Section>;

/// Reads the text of a file.
pub(crate) fn read(toml: &str) -> Result<Said, BuildError> {
    said(toml::Deserializer::parse(toml).map_err(|error| BuildError::config_syntax(&error))?)
}

/// Reads a table that has the contents of a file.
pub(crate) fn read_table(table: &toml::Table) -> Result<Said, BuildError> {
    said(table.clone())
}

fn said<'de>(source: impl serde::Deserializer<'de, Error = toml::de::Error>) -> Result<Said, BuildError> {
    serde_path_to_error::deserialize(source)
        .map_err(|error| BuildError::config_key(key::whole(error.path()), error.inner().message()))
}

/// Adds the section around them to the keys in an error.
pub(crate) fn below(section: &str, error: BuildError) -> BuildError {
    match error {
        BuildError::ConfigKey { key, fault } if key.is_empty() => BuildError::config_key(section, fault),
        BuildError::ConfigKey { key, fault } if !section.is_empty() => {
            BuildError::config_key(format!("{section}.{key}"), fault)
        }
        error => error,
    }
}

pub(crate) fn apply(file: Said, mut settings: SystemSettings) -> Result<SystemSettings, BuildError> {
    settings.seed = file.seed.unwrap_or(settings.seed);
    settings.inbox_capacity = file.inbox_capacity.unwrap_or(settings.inbox_capacity);
    settings.stderr_without_logger = file.stderr_without_logger.unwrap_or(settings.stderr_without_logger);
    settings.supervision = supervision(&file.supervision, settings.supervision)?;
    settings.log_dead_letters = changed("dead-letters", &settings.log_dead_letters, file.dead_letters)?;
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
        settings = deployment(&pattern, section, settings)?;
    }
    settings.shutdown_phases = shutdown(&settings.shutdown_phases, file.shutdown)?;
    let telemetry = settings.telemetry.clone().unwrap_or_default();
    let changed_telemetry = changed("telemetry", &telemetry, file.telemetry)?;
    if changed_telemetry != telemetry {
        settings.telemetry = Some(changed_telemetry);
    }
    for (name, table) in file.topology {
        let section = GroupConfig::of(table)
            .map_err(|fault| BuildError::config_key(format!("topology.{}", key::part(&name)), fault))?;
        settings.topology.entry(name).or_default().change(section);
    }
    #[cfg(feature = "remote")]
    {
        change(&mut settings.remote, file.remote);
        // The values alone: what one key requires of another is known when all is set.
        let said = changed("remote", &RemoteSettings::default(), Section(settings.remote.clone()))?;
        said.check_values().map_err(remote_error)?;
    }
    Ok(settings)
}

/// Returns the settings of a node as files have changed them.
#[cfg(feature = "remote")]
pub(crate) fn remote(known: &RemoteSettings, said: &toml::Table) -> Result<RemoteSettings, BuildError> {
    let remote = changed("remote", known, Section(said.clone()))?;
    remote.check().map_err(remote_error)?;
    Ok(remote)
}

/// Changes the node of the code as files say.
#[cfg(feature = "remote")]
pub(crate) fn apply_to_node(mut settings: SystemSettings) -> Result<SystemSettings, BuildError> {
    let Some(node) = settings.node.take() else {
        if settings.remote.is_empty() {
            return Ok(settings);
        }
        let fault =
            "the system has no node: describe one by `SystemBuilder::node`, with its engine and its messages";
        return Err(BuildError::config_key("remote", fault));
    };
    // The node itself is checked when it starts.
    let (node, changed) = if settings.remote.is_empty() {
        let known = node.settings();
        (node, known)
    } else {
        let changed = remote(&node.settings(), &settings.remote)?;
        (node.with_settings(changed.clone()), changed)
    };
    settings.remote = toml::Table::try_from(changed)
        .map_err(|error| BuildError::config_key("remote", error.to_string()))?;
    settings.node = Some(node);
    Ok(settings)
}

#[cfg(feature = "remote")]
fn remote_error((key, fault): (String, String)) -> BuildError {
    BuildError::config_key(format!("remote.{key}"), fault)
}

/// Changes these settings by their section at `at`, key by key.
fn changed<T: Serialize + DeserializeOwned>(
    at: &str,
    known: &T,
    Section(said): Section,
) -> Result<T, BuildError> {
    let mut table =
        toml::Table::try_from(known).map_err(|error| BuildError::config_key(at, error.to_string()))?;
    change(&mut table, said);
    serde_path_to_error::deserialize(table).map_err(|error| {
        let key = key::whole(error.path());
        let key = if key.is_empty() { at.to_owned() } else { format!("{at}.{key}") };
        BuildError::config_key(key, error.inner().message())
    })
}

/// Changes the phases of the coordinated shutdown. A new phase has a place among the others; a section of a name that is
/// mistyped has none.
fn shutdown(known: &Phases, section: Section) -> Result<Phases, BuildError> {
    let said = section.0.get("phase").and_then(Toml::as_table).map(toml::Table::keys);
    let said: Vec<String> = said.into_iter().flatten().cloned().collect();
    let phases: Phases = changed("shutdown", known, section)?;
    let phases = phases.with_unknown_of(known);
    let known = known.known();
    match said.into_iter().find(|name| !known.contains(name) && !phases.is_connected(name)) {
        Some(name) => Err(BuildError::config_key(
            format!("shutdown.phase.{}", key::part(&name)),
            format!(
                "no such phase: must be one of {}; a phase of your own has `depends-on`, or another depends on it",
                known.join(", ")
            ),
        )),
        None => Ok(phases),
    }
}

/// Changes the settings of the actors at this pattern.
fn deployment(
    pattern: &str,
    Section(mut said): Section,
    mut settings: SystemSettings,
) -> Result<SystemSettings, BuildError> {
    let at = format!("deployment.{}", key::part(pattern));
    let mut known = settings.deployments.written().get(pattern).cloned().unwrap_or_default();
    if let Some(Toml::Table(router)) = said.get_mut("router") {
        if router.contains_key("virtual-nodes-factor") {
            // Akka's word for the same: serde would take the two for one key that is there twice.
            known.router.virtual_nodes = None;
        }
        let key = format!("{at}.router.pool-dispatcher");
        match router.get_mut("pool-dispatcher") {
            None | Some(Toml::String(_)) => {}
            Some(Toml::Table(own)) => {
                // The dispatcher is declared like any other, so it starts with the system and prints.
                let name = format!("deployment.{pattern}.pool-dispatcher");
                let own = Section(std::mem::take(own));
                settings = dispatcher(&key, name.clone(), own, settings)?;
                router.insert("pool-dispatcher".to_owned(), Toml::String(name));
            }
            Some(other) => {
                let fault = format!("it is {other}: must be the name of a dispatcher, or the keys of one");
                return Err(BuildError::config_key(key, fault));
            }
        }
    }
    #[cfg(feature = "net")]
    let sets_low_mark = said.get("listener").is_some_and(|listener| listener.get("low-mark").is_some());
    let deployment: Deployment = changed(&at, &known, Section(said))?;
    check_deployment(&deployment, &settings.names_of_file())
        .map_err(|(key, fault)| BuildError::config_key(format!("{at}.{key}"), fault.to_string()))?;
    #[cfg(feature = "net")]
    if let (Some(low), Some(high)) = (deployment.listener.low_mark, deployment.listener.high_mark) {
        if low > high {
            let name = if sets_low_mark { "low-mark" } else { "high-mark" };
            let fault = format!("low-mark {low} is above high-mark {high}");
            return Err(BuildError::config_key(format!("{at}.listener.{name}"), fault));
        }
    }
    let replaced = settings.deployments.replace(pattern, deployment);
    replaced.map_err(|error| BuildError::config_key(at, error.to_string()))?;
    Ok(settings)
}

fn supervision(section: &SupervisionSection, mut strategy: Strategy) -> Result<Strategy, BuildError> {
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
        return Err(BuildError::config_key(
            key,
            "nothing is restarted: leave it out, or say on-failure = \"default\"",
        ));
    }
    if let Some(count) = section.restarts {
        strategy = strategy.max_restarts(count);
    }
    if let Some(window) = section.within {
        strategy = strategy.within(window);
    }
    Ok(strategy)
}

fn mailbox(name: &str, section: &MailboxSection, known: Option<Mailbox>) -> Result<Mailbox, BuildError> {
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
            Some(capacity) => Mailbox::bounded(capacity),
            None => {
                return Err(BuildError::config_key(
                    key("capacity"),
                    "a bounded mailbox needs one: at least 1",
                ));
            }
        },
    };
    if section.kind == Some(MailboxType::Unbounded) && section.capacity.is_some() {
        return Err(BuildError::config_key(
            key("capacity"),
            "an unbounded mailbox has none: say type = \"bounded\"",
        ));
    }
    if let Some(capacity) = section.capacity {
        mailbox = mailbox.capacity(capacity);
    }
    let waits = matches!(mailbox.on_full, OverflowPolicy::Wait(_));
    mailbox = match (section.on_full, section.wait) {
        (None, None) => mailbox,
        (Some(OnFull::Wait), Some(limit)) => mailbox.on_full(OverflowPolicy::Wait(limit)),
        // The other key has the value of the code.
        (None, Some(limit)) if waits => mailbox.on_full(OverflowPolicy::Wait(limit)),
        (Some(OnFull::Wait), None) if waits => mailbox,
        (Some(OnFull::Wait), None) => {
            return Err(BuildError::config_key(
                key("wait"),
                "on-full = \"wait\" needs it: how long senders wait, as \"10s\"",
            ));
        }
        (_, Some(_)) => {
            return Err(BuildError::config_key(key("wait"), "senders wait only with on-full = \"wait\""));
        }
        (Some(OnFull::Reject), None) => mailbox.on_full(OverflowPolicy::Reject),
        (Some(OnFull::DropOldest), None) => mailbox.on_full(OverflowPolicy::DropOldest),
        (Some(OnFull::DropNewest), None) => mailbox.on_full(OverflowPolicy::DropNewest),
    };
    if let Some(guard) = section.guard {
        mailbox = mailbox.guard(guard);
    }
    mailbox.stash_capacity = section.stash_capacity.or(mailbox.stash_capacity);
    mailbox.check().map_err(|fault| BuildError::config_key(at, fault.to_string()))?;
    Ok(mailbox)
}

/// Declares or changes the dispatcher of this name by the section at `at`.
fn dispatcher(
    at: &str,
    name: String,
    Section(mut said): Section,
    mut settings: SystemSettings,
) -> Result<SystemSettings, BuildError> {
    let key = |key: &str| format!("{at}.{key}");
    let place = settings.dispatchers.dispatchers.iter().position(|(known, _)| *known == name);
    let known = place.map(|place| settings.dispatchers.dispatchers[place].1.clone());
    let aliases = &settings.dispatchers.aliases;
    let known_target = aliases.iter().find(|(known, _)| *known == name).map(|(_, target)| target.clone());
    let known_alias = known_target.as_ref().map(|_| DispatcherType::Alias);
    let kind = match said.remove("type") {
        Some(kind) => DispatcherType::deserialize(kind)
            .map_err(|error| BuildError::config_key(key("type"), error.message()))?,
        None => known
            .as_ref()
            .map(|known| type_of(known.kind()))
            .or(known_alias)
            .unwrap_or(DispatcherType::WorkStealing),
    };
    if kind == DispatcherType::Alias {
        let alias =
            changed(at, &Alias { of: known_target }, Section(said)).map_err(|error| for_type(error, kind))?;
        let Some(of) = alias.of else {
            return Err(BuildError::config_key(
                key("of"),
                "an alias needs it: the name of the dispatcher it stands for",
            ));
        };
        settings.dispatchers.dispatchers.retain(|(known, _)| *known != name);
        settings.dispatchers.aliases.retain(|(known, _)| *known != name);
        settings.dispatchers.aliases.push((name, of));
        return Ok(settings);
    }
    if let Some(Toml::String(mailbox)) = said.get("mailbox") {
        let known = settings.known_names().check_mailbox(mailbox);
        known.map_err(|fault| BuildError::config_key(key("mailbox"), fault.to_string()))?;
    }
    let known = known.filter(|known| type_of(known.kind()) == kind).unwrap_or_else(|| match kind {
        DispatcherType::Blocking => Dispatcher::blocking(),
        DispatcherType::Pinned => Dispatcher::pinned(),
        DispatcherType::CallingThread => Dispatcher::calling_thread(),
        DispatcherType::WorkStealing | DispatcherType::Alias => Dispatcher::work_stealing(),
    });
    let recipe = recipe(at, known, said).map_err(|error| for_type(error, kind))?;
    settings.dispatchers.aliases.retain(|(known, _)| *known != name);
    match place {
        Some(place) => settings.dispatchers.dispatchers[place].1 = recipe,
        None => settings.dispatchers.dispatchers.push((name, recipe)),
    }
    Ok(settings)
}

fn recipe(at: &str, mut known: Dispatcher, said: toml::Table) -> Result<Dispatcher, BuildError> {
    let (sets_mailbox, sets_max) = (said.contains_key("mailbox"), said.contains_key("threads-max"));
    let keys = known.kind().keys();
    if let Some(key) = said.keys().find(|key| !keys.contains(&key.as_str())) {
        let error = toml::de::Error::unknown_field(key, keys);
        return Err(BuildError::config_key(format!("{at}.{}", key::part(key)), error.message()));
    }
    let mut recipe = changed(at, &known, Section(said))?;
    if let (Some(min), Some(max)) = (recipe.threads_min, recipe.threads_max) {
        if min > max {
            let key = if sets_max { "threads-max" } else { "threads-min" };
            let fault = format!("threads-min {min} is above threads-max {max}");
            return Err(BuildError::config_key(format!("{at}.{key}"), fault));
        }
    }
    if !sets_mailbox {
        // A mailbox without a name is in no table.
        recipe.mailbox = known.mailbox.take();
    }
    Ok(recipe)
}

/// Adds the type of the dispatcher, which decides what keys there are.
fn for_type(error: BuildError, kind: DispatcherType) -> BuildError {
    match (error, Toml::try_from(kind)) {
        (BuildError::ConfigKey { key, fault }, Ok(kind)) => {
            BuildError::config_key(key, format!("{fault}, for a dispatcher of type {kind}"))
        }
        (error, _) => error,
    }
}

fn type_of(kind: DispatcherKind) -> DispatcherType {
    match kind {
        DispatcherKind::WorkStealing => DispatcherType::WorkStealing,
        DispatcherKind::Blocking => DispatcherType::Blocking,
        DispatcherKind::Pinned => DispatcherType::Pinned,
        DispatcherKind::CallingThread => DispatcherType::CallingThread,
    }
}
