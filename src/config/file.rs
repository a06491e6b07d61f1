//! A configuration file has these sections and keys.
//!
//! The keys of most sections are the fields of the settings themselves. Here are those of settings that hold functions
//! or other values that a file cannot express.

use crate::dispatch::dispatcher::Dispatcher;
use crate::util::values::{Count, CountU32, Span, U32};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A whole file: as it is read, with [sections](crate::util::values::Section) that change the settings key by key, or as it is printed, with the
/// settings.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct File<DeadLetters, Dispatcher, Deployment, Shutdown, Telemetry> {
    #[serde(default, with = "crate::util::values::seed")]
    pub seed: Option<u64>,
    #[serde(default, with = "Count")]
    pub inbox_capacity: Option<usize>,
    #[serde(default)]
    pub stderr_without_logger: Option<bool>,
    #[serde(default, deserialize_with = "crate::util::values::section")]
    pub supervision: SupervisionSection,
    #[serde(default)]
    pub dead_letters: DeadLetters,
    #[serde(default)]
    pub dispatcher: BTreeMap<String, Dispatcher>,
    #[serde(default, deserialize_with = "crate::util::values::named_sections")]
    pub mailbox: BTreeMap<String, MailboxSection>,
    #[serde(default)]
    pub deployment: BTreeMap<String, Deployment>,
    #[serde(default)]
    pub shutdown: Shutdown,
    #[serde(default)]
    pub telemetry: Telemetry,
    /// The section of a group; only the group knows its keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub topology: BTreeMap<String, toml::Table>,
    /// The changes of the settings of a node, or those settings.
    #[cfg(feature = "remote")]
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub remote: toml::Table,
}

/// The supervision of actors directly below `/user`.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct SupervisionSection {
    pub on_failure: Option<OnFailure>,
    #[serde(with = "U32")]
    pub restarts: Option<u32>,
    #[serde(with = "Span")]
    pub within: Option<Duration>,
}

/// A dispatcher as it is printed.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum DispatcherSection {
    Declared(Box<Dispatcher>),
    Alias { r#type: DispatcherType, of: String },
}

/// The keys of a dispatcher that is an alias.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alias {
    pub of: Option<String>,
}

/// A named mailbox. A mailbox sorts by a function, which only code can give.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct MailboxSection {
    #[serde(rename = "type")]
    pub kind: Option<MailboxType>,
    #[serde(with = "Count")]
    pub capacity: Option<usize>,
    pub on_full: Option<OnFull>,
    #[serde(with = "Span")]
    pub wait: Option<Duration>,
    #[serde(with = "CountU32")]
    pub guard: Option<u32>,
    #[serde(with = "U32")]
    pub stash_capacity: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnFailure {
    Default,
    Stop,
    Resume,
    Escalate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DispatcherType {
    WorkStealing,
    Blocking,
    Pinned,
    CallingThread,
    Alias,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MailboxType {
    Unbounded,
    Bounded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnFull {
    Reject,
    DropOldest,
    DropNewest,
    Wait,
}
