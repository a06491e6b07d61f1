//! The settings of a system come from the builder and the configuration file.

use crate::core::dead_letter_log::DeadLetterLog;
use crate::core::dispatchers::Declared;
use crate::core::strategy::Strategy;
use crate::mailbox::kind::Mailbox;
use crate::routing::settings::known_names::KnownNames;
use crate::routing::settings::logic_registry::LogicRegistry;
use crate::settings::deployment::Deployments;
use crate::settings::phases::Phases;
use crate::telemetry::telemetry::Telemetry;
use crate::topology::config::Sections;

/// The number of messages that an inbox keeps by default; Akka's.
const INBOX_CAPACITY: usize = 1000;

/// All settings of a single system.
pub(crate) struct SystemSettings {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) dispatchers: Declared,
    pub(crate) mailboxes: Vec<(String, Mailbox)>,
    pub(crate) deployments: Deployments,
    pub(crate) routing_logics: LogicRegistry,
    pub(crate) supervision: Strategy,
    pub(crate) log_dead_letters: DeadLetterLog,
    pub(crate) stderr_without_logger: bool,
    pub(crate) inbox_capacity: usize,
    pub(crate) shutdown_phases: Phases,
    /// The configuration of each group, by its name.
    pub(crate) topology: Sections,
    /// `None`: the default, where the clock is the system's own.
    pub(crate) telemetry: Option<Telemetry>,
    #[cfg(feature = "remote")]
    pub(crate) node: Option<crate::remote::Node>,
    /// The changes of the settings of a node, which has its settings from the code.
    #[cfg(all(feature = "config", feature = "remote"))]
    pub(crate) remote: toml::Table,
}

impl SystemSettings {
    /// Makes the default settings of a system of this name.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            seed: 0,
            dispatchers: Declared::default(),
            mailboxes: Vec::new(),
            deployments: Deployments::default(),
            routing_logics: LogicRegistry::default(),
            supervision: Strategy::default(),
            log_dead_letters: DeadLetterLog::default(),
            stderr_without_logger: true,
            inbox_capacity: INBOX_CAPACITY,
            shutdown_phases: Phases::default(),
            topology: Sections::default(),
            telemetry: None,
            #[cfg(feature = "remote")]
            node: None,
            #[cfg(all(feature = "config", feature = "remote"))]
            remote: toml::Table::new(),
        }
    }

    /// The name of the node, which a file may have changed.
    #[cfg(feature = "remote")]
    fn node_name(&self) -> Option<&str> {
        let coded = self.node.as_ref()?.name();
        #[cfg(feature = "config")]
        let coded = self.remote.get("node").and_then(toml::Value::as_str).unwrap_or(coded);
        Some(coded)
    }

    #[cfg(not(feature = "remote"))]
    fn node_name(&self) -> Option<&str> {
        None
    }

    /// Returns the names that sections of routers and actors may use.
    pub(crate) fn known_names(&self) -> KnownNames<'_> {
        self.names_at(self.node_name())
    }

    /// As [`known_names`](Self::known_names), for a file: the builder may get the node later, so paths may lead to any node.
    #[cfg(feature = "config")]
    pub(crate) fn names_of_file(&self) -> KnownNames<'_> {
        self.names_at(if cfg!(feature = "remote") { Some("node") } else { None })
    }

    fn names_at<'a>(&'a self, node: Option<&str>) -> KnownNames<'a> {
        KnownNames::new(&self.name, node, &self.routing_logics, &self.dispatchers, &self.mailboxes)
    }
}
