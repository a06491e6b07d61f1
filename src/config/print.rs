//! The settings of a system print as a configuration file.

use super::file::DeadLettersSection;
use super::file::DeploymentSection;
use super::file::DispatcherSection;
use super::file::MailboxSection;
use super::file::PhaseSection;
use super::file::SupervisionSection;
use crate::actor::spawn::stash_limit;
use crate::config::apply::kind_of;
use crate::config::file::{
    DispatcherType, File, MailboxType, OnFailure, OnFull, Requirement, ShutdownSection,
};
use crate::config::values::{LetterCount, Seed, Span, Whole};
use crate::config::{key, router};
use crate::core::extensions::Extension;
use crate::core::strategy::{Directive, Strategy};
use crate::core::system::SystemRef;
use crate::dispatch::dispatcher::{Dispatcher, default_thread_count};
use crate::dispatch::options::DispatcherOptions;
use crate::mailbox::kind::{Choice, Mailbox, MailboxRequirement, OverflowPolicy};
use crate::settings::deployment::Deployment;
use crate::system_settings::SystemSettings;
use std::fmt;

/// All settings of one system; see [`SystemRef::settings`](crate::SystemRef::settings).
///
/// A setting that a file cannot express, such as a function, is not printed; a comment says so.
#[derive(Debug, Clone)]
pub struct Settings {
    file: File,
    /// The settings that the file cannot express.
    notes: Vec<String>,
}

impl Extension for Settings {}

impl SystemRef {
    /// Returns all settings of the system, from code and files. They print as a [configuration](crate::config) that
    /// makes the same system, except for settings that a file cannot express, such as functions. Comments at its
    /// beginning name these settings.
    pub fn settings(&self) -> &Settings {
        self.core().extensions.get()
    }
}

impl Settings {
    pub(crate) fn of(settings: &SystemSettings) -> Self {
        let mut notes = Vec::new();
        let mut file = File {
            seed: Some(Seed(settings.seed)),
            inbox_capacity: Some(whole(settings.inbox_capacity as u64)),
            supervision: supervision(&settings.supervision, &mut notes),
            dead_letters: DeadLettersSection {
                log: Some(LetterCount(settings.log_dead_letters.count_max)),
                pause: Some(Span(settings.log_dead_letters.pause)),
                log_during_shutdown: Some(settings.log_dead_letters.during_shutdown),
            },
            shutdown: ShutdownSection {
                terminate_actor_system: Some(settings.shutdown_phases.terminates_system),
                ..ShutdownSection::default()
            },
            ..File::default()
        };
        for (alias, target) in &settings.dispatchers.aliases {
            let section = DispatcherSection {
                kind: Some(DispatcherType::Alias),
                of: Some(target.clone()),
                ..DispatcherSection::default()
            };
            file.dispatcher.insert(alias.clone(), section);
        }
        for (name, recipe) in &settings.dispatchers.dispatchers {
            file.dispatcher.insert(name.clone(), dispatcher(name, recipe, &mut notes));
        }
        if !file.dispatcher.contains_key("default") {
            let recipe = Dispatcher::work_stealing().into();
            file.dispatcher.insert("default".to_owned(), dispatcher("default", &recipe, &mut notes));
        }
        for (name, known) in &settings.mailboxes {
            file.mailbox.insert(name.clone(), mailbox(name, known, &mut notes));
        }
        for (pattern, known) in settings.deployments.written() {
            file.deployment.insert(pattern.clone(), deployment(known));
        }
        for (name, phase) in &settings.shutdown_phases.by_name {
            let section = PhaseSection {
                depends_on: Some(phase.depends_on.clone()),
                timeout: Some(Span(phase.timeout)),
                recover: Some(phase.recover),
                enabled: Some(phase.enabled),
            };
            file.shutdown.phase.insert(name.clone(), section);
        }
        for (name, section) in &settings.topology {
            file.topology.insert(name.clone(), section.table().clone());
        }
        Self { file, notes }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(f, "# {note}")?;
        }
        f.write_str(&toml::to_string(&self.file).map_err(|_| fmt::Error)?)
    }
}

pub(crate) fn whole<const MIN: u64, const MAX: u64>(number: u64) -> Whole<MIN, MAX> {
    Whole(number)
}

fn supervision(strategy: &Strategy, notes: &mut Vec<String>) -> SupervisionSection {
    let (count, window) = strategy.restart_limit().parts();
    let on_failure = match strategy.as_always() {
        Ok(None) => Some(OnFailure::Default),
        Ok(Some(Directive::Stop)) => Some(OnFailure::Stop),
        Ok(Some(Directive::Resume)) => Some(OnFailure::Resume),
        Ok(Some(Directive::Escalate)) => Some(OnFailure::Escalate),
        Ok(Some(Directive::Restart)) | Err(()) => {
            notes.push("supervision.on-failure: a function in the code decides".to_owned());
            None
        }
    };
    if strategy.is_all_for_one() {
        notes.push("supervision: all for one, in the code".to_owned());
    }
    if strategy.is_quiet() {
        notes.push("supervision: quiet, in the code".to_owned());
    }
    let restarts = matches!(strategy.as_always(), Ok(None) | Err(()));
    SupervisionSection {
        on_failure,
        restarts: count.filter(|_| restarts).map(|count| whole(count.into())),
        within: window.filter(|_| restarts).map(Span),
    }
}

fn dispatcher(name: &str, recipe: &Dispatcher, notes: &mut Vec<String>) -> DispatcherSection {
    let DispatcherOptions { throughput, deadline, mailbox, required_mailbox } = recipe.options();
    let mut section = DispatcherSection {
        kind: Some(kind_of(recipe)),
        throughput: Some(whole((*throughput).into())),
        deadline: deadline.map(Span),
        idle_shutdown: recipe.idle_shutdown().map(Span),
        requires_mailbox: required_mailbox.map(|required| match required {
            MailboxRequirement::Bounded => Requirement::Bounded,
            MailboxRequirement::Unbounded => Requirement::Unbounded,
            MailboxRequirement::Sorted => Requirement::Sorted,
            MailboxRequirement::ControlAware => Requirement::ControlAware,
        }),
        ..DispatcherSection::default()
    };
    match mailbox.as_ref().map(|mailbox| &mailbox.0) {
        None => {}
        Some(Choice::Name(mailbox)) => section.mailbox = Some(mailbox.clone()),
        Some(Choice::Recipe(mailbox)) => {
            let name = key::part(name);
            notes.push(format!("dispatcher.{name}.mailbox: without a name, in the code: {mailbox}"));
        }
    }
    match recipe {
        Dispatcher::WorkStealing(it) => {
            let cores = it.pin_to.as_ref();
            let threads = it.thread_count.or(cores.map(Vec::len)).unwrap_or_else(default_thread_count);
            section.threads = Some(whole(threads as u64));
            section.pin_to = cores.map(|cores| cores.iter().map(|core| whole(*core as u64)).collect());
            section.spin = Some(Span(it.spin));
            section.lifo = Some(it.lifo);
        }
        Dispatcher::Blocking(it) => {
            section.threads_min = Some(whole(*it.thread_count.start() as u64));
            section.threads_max = Some(whole(*it.thread_count.end() as u64));
            section.keep_alive = Some(Span(it.keep_alive));
        }
        Dispatcher::Pinned(_) | Dispatcher::CallingThread(_) => {}
    }
    section
}

fn mailbox(name: &str, mailbox: &Mailbox, notes: &mut Vec<String>) -> MailboxSection {
    if mailbox.sorts() {
        // A name may have line breaks, and the text behind a line break would be no comment.
        let name = key::part(name);
        notes.push(format!("mailbox.{name}: sorts by a function in the code: {mailbox}"));
    }
    let kind = if mailbox.capacity.is_some() { MailboxType::Bounded } else { MailboxType::Unbounded };
    let (on_full, wait) = match mailbox.on_full {
        OverflowPolicy::Reject => (OnFull::Reject, None),
        OverflowPolicy::DropOldest => (OnFull::DropOldest, None),
        OverflowPolicy::DropNewest => (OnFull::DropNewest, None),
        OverflowPolicy::Wait(limit) => (OnFull::Wait, Some(Span(limit))),
    };
    MailboxSection {
        // Without a type the file changes the mailbox that the code has declared.
        kind: (!mailbox.sorts()).then_some(kind),
        capacity: mailbox.capacity.map(|capacity| whole(capacity as u64)),
        on_full: Some(on_full),
        wait,
        guard: mailbox.guard.map(|guard| whole(guard.into())),
        stash_capacity: mailbox.stash_capacity.map(|capacity| whole(capacity.into())),
    }
}

fn deployment(deployment: &Deployment) -> DeploymentSection {
    DeploymentSection {
        dispatcher: deployment.dispatcher.clone(),
        mailbox: deployment.mailbox.clone(),
        stash_capacity: deployment.stash_capacity.map(|capacity| whole(stash_limit(capacity).into())),
        router: router::print(&deployment.router),
        #[cfg(feature = "net")]
        listener: listener(&deployment.listener),
    }
}

#[cfg(feature = "net")]
fn listener(
    settings: &crate::settings::deployment::ListenerSettings,
) -> Option<super::file::ListenerSection> {
    let said = settings != &crate::settings::deployment::ListenerSettings::new();
    said.then(|| super::file::ListenerSection {
        max_connections: settings.max_connections.map(|count| whole(count as u64)),
        low_mark: settings.low_mark.map(|bytes| whole(bytes as u64)),
        high_mark: settings.high_mark.map(|bytes| whole(bytes as u64)),
        linger: settings.linger.map(Span),
        linger_bytes: settings.linger_bytes.map(|bytes| whole(bytes as u64)),
        nodelay: settings.nodelay,
    })
}
