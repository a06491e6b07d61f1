//! The sections and keys of a configuration file.

use super::values::{Span, Whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A whole file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct File {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Whole<0, { i64::MAX as u64 }>>,
    pub supervision: SupervisionSection,
    pub dead_letters: DeadLettersSection,
    pub dispatcher: BTreeMap<String, DispatcherSection>,
    pub mailbox: BTreeMap<String, MailboxSection>,
    pub deployment: BTreeMap<String, DeploymentSection>,
    pub shutdown: ShutdownSection,
}

/// What happens to failing actors directly below `/user`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SupervisionSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Whole<0, { u32::MAX as u64 }>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    Default,
    Stop,
    Resume,
    Escalate,
    /// Only printed: a function cannot be written down.
    #[serde(skip_deserializing)]
    Custom,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DeadLettersSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Whole<0, { u32::MAX as u64 }>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_during_shutdown: Option<bool>,
}

/// One dispatcher. Which keys may stand here depends on the type.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DispatcherSection {
    #[serde(rename = "type")]
    pub kind: DispatcherType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Whole<1, 1024>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads_min: Option<Whole<1, 4096>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads_max: Option<Whole<1, 4096>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin_to: Option<Vec<Whole<0, 65535>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Whole<1, { u32::MAX as u64 }>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spin: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifo: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_shutdown: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailbox: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DispatcherType {
    #[default]
    WorkStealing,
    Blocking,
    Pinned,
    CallingThread,
    Alias,
}

/// One named mailbox. Mailboxes that order their messages need a function and are declared in code.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MailboxSection {
    #[serde(rename = "type")]
    pub kind: MailboxType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Whole<1, { i64::MAX as u64 }>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_full: Option<OnFull>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MailboxType {
    #[default]
    Unbounded,
    Bounded,
    /// Only printed.
    #[serde(skip_deserializing)]
    Ordered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFull {
    Reject,
    DropOldest,
    DropNewest,
    Wait,
}

/// What is said of the actors at one pattern of paths.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DeploymentSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatcher: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailbox: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stash_capacity: Option<Whole<0, { i64::MAX as u64 }>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ShutdownSection {
    pub phase: BTreeMap<String, PhaseSection>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PhaseSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recover: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}
