//! The settings of a system print as a configuration file.

use crate::config::file::{
    DispatcherSection, DispatcherType, File, MailboxSection, MailboxType, OnFailure, OnFull,
    SupervisionSection,
};
use crate::config::key;
use crate::core::dead_letter_log::DeadLetterLog;
use crate::core::extensions::Extension;
use crate::core::strategy::{Directive, RestartLimit, Strategy};
use crate::core::system::SystemRef;
use crate::dispatch::dispatcher::{Dispatcher, DispatcherKind};
use crate::mailbox::kind::{Choice, Mailbox, OverflowPolicy};
use crate::settings::deployment::Deployment;
use crate::settings::phases::Phases;
use crate::system_settings::SystemSettings;
use crate::telemetry::telemetry::Telemetry;
use std::collections::BTreeMap;
use std::fmt;

/// All settings of one system, as [`SystemRef::settings`] prints them.
#[derive(Debug)]
pub(crate) struct Settings {
    file: File<DeadLetterLog, DispatcherSection, Deployment, Phases, Telemetry>,
    /// The settings that the file cannot express.
    notes: Vec<String>,
}

impl Extension for Settings {}

impl SystemRef {
    /// Returns all settings of the system, from code and files, as the text of a [configuration](crate::config) that
    /// makes the same system, except for settings that a file cannot express, such as functions, and for the users and
    /// passwords of NATS servers, which are left out. Comments at its beginning name these settings.
    #[doc(alias = "Settings")]
    pub fn settings(&self) -> String {
        self.core().extensions.get::<Settings>().to_string()
    }
}

impl Settings {
    pub(crate) fn of(settings: &SystemSettings) -> Self {
        let mut notes = Vec::new();
        let mut dispatchers = BTreeMap::new();
        for (alias, target) in &settings.dispatchers.aliases {
            let section = DispatcherSection::Alias { r#type: DispatcherType::Alias, of: target.clone() };
            dispatchers.insert(alias.clone(), section);
        }
        for (name, recipe) in &settings.dispatchers.dispatchers {
            dispatchers.insert(name.clone(), dispatcher(name, recipe.clone(), &mut notes));
        }
        dispatchers
            .entry("default".to_owned())
            .or_insert_with(|| dispatcher("default", Dispatcher::work_stealing(), &mut notes));
        #[cfg(feature = "remote")]
        let remote = {
            let mut remote = settings.remote.clone();
            let nats = remote.get_mut("nats").and_then(toml::Value::as_table_mut);
            if nats.is_some_and(crate::remote::settings::hide_logins) {
                notes.push("remote.nats: users and passwords are not shown".to_owned());
            }
            remote
        };
        let file = File {
            seed: Some(settings.seed),
            inbox_capacity: Some(settings.inbox_capacity),
            stderr_without_logger: Some(settings.stderr_without_logger),
            supervision: supervision(&settings.supervision, &mut notes),
            dead_letters: settings.log_dead_letters.clone(),
            dispatcher: dispatchers,
            mailbox: settings
                .mailboxes
                .iter()
                .map(|(name, known)| (name.clone(), mailbox(name, known, &mut notes)))
                .collect(),
            deployment: settings.deployments.written().clone(),
            shutdown: settings.shutdown_phases.clone(),
            telemetry: settings.telemetry.clone().unwrap_or_default(),
            topology: settings
                .topology
                .iter()
                .map(|(name, section)| (name.clone(), section.table().clone()))
                .collect(),
            #[cfg(feature = "remote")]
            remote,
        };
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

fn supervision(strategy: &Strategy, notes: &mut Vec<String>) -> SupervisionSection {
    let RestartLimit { count, window } = strategy.restart_limit();
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
        restarts: count.filter(|_| restarts),
        within: window.filter(|_| restarts),
    }
}

fn dispatcher(name: &str, mut recipe: Dispatcher, notes: &mut Vec<String>) -> DispatcherSection {
    if let Some(Choice::Recipe(mailbox)) = &recipe.mailbox.as_ref().map(|own| &own.0) {
        let name = key::part(name);
        notes.push(format!("dispatcher.{name}.mailbox: without a name, in the code: {mailbox}"));
    }
    if recipe.kind() == DispatcherKind::WorkStealing {
        recipe.thread_count = Some(recipe.effective_thread_count());
    }
    DispatcherSection::Declared(Box::new(recipe))
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
        OverflowPolicy::Wait(limit) => (OnFull::Wait, Some(limit)),
    };
    MailboxSection {
        // Without a type the file changes the mailbox that the code has declared.
        kind: (!mailbox.sorts()).then_some(kind),
        capacity: mailbox.capacity,
        on_full: Some(on_full),
        wait,
        guard: mailbox.guard,
        stash_capacity: mailbox.stash_capacity,
    }
}
