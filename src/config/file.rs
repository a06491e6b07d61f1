//! A configuration file has these sections and keys.

use crate::config::values::{Count, LetterCount, PoolDispatcher, Seed, Span, Text, Whole};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Accepts only a table for a section. serde would also accept a list, as the keys in the order of the struct's fields.
///
/// For structs that derive their reading and writing as functions of their own (`remote = "Self"`), which are called
/// here.
macro_rules! tables_only {
    ($($name:ident)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Section;
                impl<'de> Visitor<'de> for Section {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a section with keys")
                    }
                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        $name::deserialize(MapAccessDeserializer::new(map))
                    }
                }
                deserializer.deserialize_map(Section)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }
    )*};
}

macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident { $($(#[$key_doc:meta])* $key:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default, remote = "Self")]
        pub(crate) struct $name {
            $(
                $(#[$key_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub(crate) $key: Option<$kind>,
            )*
        }

        tables_only! { $name }
    )*};
}

/// A whole file.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct File {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbox_capacity: Option<Count>,
    pub supervision: SupervisionSection,
    pub dead_letters: DeadLettersSection,
    pub dispatcher: BTreeMap<String, DispatcherSection>,
    pub mailbox: BTreeMap<String, MailboxSection>,
    pub deployment: BTreeMap<String, DeploymentSection>,
    pub shutdown: ShutdownSection,
    /// The section of a group; only the group knows its keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub topology: BTreeMap<String, toml::Table>,
}

sections! {
    /// The supervision of actors directly below `/user`.
    SupervisionSection {
        on_failure: OnFailure,
        restarts: Whole<0, { u32::MAX as u64 }>,
        within: Span,
    }

    DeadLettersSection {
        log: LetterCount,
        pause: Span,
        log_during_shutdown: bool,
    }

    /// A dispatcher. The allowed keys depend on the type.
    DispatcherSection {
        #[serde(rename = "type")]
        kind: DispatcherType,
        of: String,
        threads: Whole<1, 1024>,
        threads_min: Whole<1, 4096>,
        threads_max: Whole<1, 4096>,
        pin_to: Vec<Whole<0, 65535>>,
        throughput: Whole<1, { u32::MAX as u64 }>,
        deadline: Span,
        spin: Span,
        lifo: bool,
        keep_alive: Span,
        idle_shutdown: Span,
        mailbox: String,
        requires_mailbox: Requirement,
    }

    /// A named mailbox. A mailbox sorts by a function, which only code can give.
    MailboxSection {
        #[serde(rename = "type")]
        kind: MailboxType,
        capacity: Count,
        on_full: OnFull,
        wait: Span,
        guard: Whole<1, { u32::MAX as u64 }>,
        stash_capacity: Whole<0, { u32::MAX as u64 }>,
    }

    /// The settings of the actors at one pattern of paths.
    DeploymentSection {
        dispatcher: String,
        mailbox: String,
        stash_capacity: Whole<0, { u32::MAX as u64 }>,
        router: RouterSection,
        #[cfg(feature = "net")]
        listener: ListenerSection,
    }

    /// The kind and the settings of the router at the path.
    RouterSection {
        router: String,
        nr_of_instances: Whole<0, { 1 << 24 }>,
        within: Span,
        /// The name of Akka is accepted, too.
        #[serde(alias = "virtual-nodes-factor")]
        virtual_nodes: Whole<1, 65536>,
        interval: Span,
        first_completion: bool,
        wait_for_tick: bool,
        head_dispatcher: String,
        pool_dispatcher: PoolDispatcher,
        queue: String,
        leave_within: Span,
        stay_when_empty: bool,
        routees: RouteesSection,
        resizer: ResizerSection,
        optimal_size_exploring_resizer: ExploringResizerSection,
        options: BTreeMap<String, Text>,
    }

    RouteesSection {
        paths: Vec<String>,
    }

    ResizerSection {
        enabled: bool,
        lower_bound: Whole<0, { i64::MAX as u64 }>,
        upper_bound: Whole<0, { i64::MAX as u64 }>,
        pressure_threshold: Whole<0, { i64::MAX as u64 }>,
        rampup_rate: f64,
        backoff_threshold: f64,
        backoff_rate: f64,
        messages_per_resize: Count,
        tick_interval: Span,
        without_ticks: bool,
    }

    ExploringResizerSection {
        enabled: bool,
        lower_bound: Whole<0, { i64::MAX as u64 }>,
        upper_bound: Whole<0, { i64::MAX as u64 }>,
        chance_of_ramping_down_when_full: f64,
        action_interval: Span,
        downsize_after_underutilized_for: Span,
        explore_step_size: f64,
        chance_of_exploration: f64,
        downsize_ratio: f64,
        optimization_range: Whole<2, { i64::MAX as u64 }>,
        weight_of_latest_metric: f64,
    }
}

#[cfg(feature = "net")]
sections! {
    /// The settings of a listener for its connections.
    ListenerSection {
        max_connections: Count,
        low_mark: Whole<0, { i64::MAX as u64 }>,
        high_mark: Whole<0, { i64::MAX as u64 }>,
        linger: Span,
        linger_bytes: Whole<0, { i64::MAX as u64 }>,
        nodelay: bool,
    }
}

sections! {
    PhaseSection {
        depends_on: Vec<String>,
        timeout: Span,
        recover: bool,
        enabled: bool,
    }
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default, remote = "Self")]
pub(crate) struct ShutdownSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate_actor_system: Option<bool>,
    pub phase: BTreeMap<String, PhaseSection>,
}

tables_only! { ShutdownSection }

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
pub(crate) enum Requirement {
    Bounded,
    Unbounded,
    Sorted,
    ControlAware,
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
