//! The errors of building a system.

use crate::dispatch::dispatcher::DispatcherKind;
use crate::mailbox::kind::MailboxFault;
use crate::path::error::NameError;
use crate::scheduler::error::StartError;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// The reason why a system could not be started, or why a configuration was not accepted. The error of a key names the
/// key, its value, and the allowed values.
#[non_exhaustive]
pub enum BuildError {
    /// The system's name breaks the rules: a letter or digit first, then letters, digits, `-` and `_`.
    Name {
        /// The name that was asked for.
        name: String,
    },
    /// Two dispatchers have the same name, or an alias has the name of another alias or of a dispatcher.
    DuplicateDispatcher {
        /// The name.
        name: String,
    },
    /// A dispatcher, or an alias of one, has a name that threads cannot have.
    DispatcherName(NameError),
    /// An alias of a dispatcher leads in a circle.
    #[doc(alias = "AliasFault")]
    AliasCircle {
        /// The names on the way, from the alias to the first name that comes a second time.
        chain: Vec<String>,
    },
    /// An alias leads to a name that is neither a dispatcher's nor an alias.
    AliasOfNothing {
        /// The names on the way, from the alias to the last one.
        chain: Vec<String>,
        /// The names that exist.
        known: Vec<String>,
    },
    /// There are too many aliases on the way to a dispatcher.
    AliasTooLong {
        /// The names on the way, as far as they were followed.
        chain: Vec<String>,
        /// The largest number of steps.
        max: usize,
    },
    /// The pattern of a deployment does not begin with `/` and a name.
    #[doc(alias = "PatternError")]
    PatternRelative {
        /// The pattern.
        pattern: String,
    },
    /// An element in the pattern of a deployment is no possible name of an actor.
    PatternElement {
        /// The pattern.
        pattern: String,
        /// The fault of the element.
        error: NameError,
    },
    /// `**` is not the last element in the pattern of a deployment.
    PatternRestInside {
        /// The pattern.
        pattern: String,
    },
    /// The same pattern is deployed twice.
    DuplicateDeployment {
        /// The pattern.
        pattern: String,
    },
    /// Two mailboxes have the same name.
    DuplicateMailbox {
        /// The name.
        name: String,
    },
    /// A mailbox that no actor could have.
    Mailbox {
        /// The owner of the mailbox: a name, or a dispatcher.
        of: String,
        /// The fault of the mailbox.
        fault: MailboxFault,
    },
    /// A dispatcher was given a setting that its kind does not have.
    DispatcherSetting {
        /// The name of the dispatcher.
        name: String,
        /// The kind of the dispatcher.
        kind: DispatcherKind,
        /// The setting: the name of its setter.
        setting: &'static str,
    },
    /// A dispatcher could not be started.
    Dispatcher {
        /// The name of the dispatcher.
        name: String,
        /// The error of the start.
        error: StartError,
    },
    /// The thread of the timers could not be started. A system with a [`ManualClock`](crate::time::ManualClock) needs none.
    Timers(StartError),
    /// A section has settings for an actor at a path, mostly of a router, that no actor can have.
    Section {
        /// The key at fault, with the sections around it.
        key: String,
        /// The fault of the section.
        fault: crate::settings::section_fault::SectionFault,
    },
    /// The configuration file could not be read.
    #[cfg(feature = "config")]
    #[doc(alias = "ConfigError")]
    ConfigFile {
        /// The file.
        file: std::path::PathBuf,
        /// The error of the file system.
        error: std::io::Error,
    },
    /// The text of a configuration is not TOML.
    #[cfg(feature = "config")]
    ConfigSyntax {
        /// The fault with line and column; without them if the text is nested too deeply.
        fault: String,
    },
    /// A key of a configuration is unknown, or has a value that is not allowed.
    #[cfg(feature = "config")]
    ConfigKey {
        /// The key with the sections around it, such as `dispatcher.io.threads`.
        key: String,
        /// The value and the allowed values.
        fault: String,
    },
    /// The node of the system cannot start.
    #[cfg(feature = "remote")]
    Node {
        /// The name of the node.
        node: String,
        /// The cause, a [`NodeError`](crate::remote::NodeError).
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A routing logic was given a name that it cannot have.
    RoutingLogic {
        /// The name.
        name: String,
        /// The fault of the name.
        fault: String,
    },
    /// The default capacity of [inboxes](crate::pattern::Inbox) was set to 0 messages.
    ZeroInboxCapacity,
    /// The phases of the coordinated shutdown depend on each other in a circle.
    PhaseCycle {
        /// The names, each depending on the next; the last is the first again.
        cycle: Vec<String>,
    },
    /// A phase of the coordinated shutdown is named, and no setting describes it.
    UnknownPhase {
        /// The name.
        phase: String,
        /// The phase that depends on it; `None` where [`Phases::change`](crate::shutdown::Phases::change) names it.
        named_by: Option<String>,
        /// The phases that exist.
        known: Vec<String>,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Name { name } => write!(
                f,
                "invalid system name {name:?}: start with a letter or digit, go on with letters, digits, '-' or '_'"
            ),
            BuildError::DuplicateDispatcher { name } => {
                write!(
                    f,
                    "two dispatchers are named {name:?}: give each a name of its own, and call `config` last"
                )
            }
            BuildError::DispatcherName(NameError::Character { name, character, position }) => {
                write!(
                    f,
                    "dispatcher {name:?}: character {character:?} at byte {position} cannot be in a thread's name, \
                 leave control characters out"
                )
            }
            BuildError::DispatcherName(_) => {
                f.write_str("dispatcher \"\": its name is empty, give at least one character")
            }
            BuildError::AliasCircle { chain } => {
                write_alias(f, chain, "it leads in a circle, let one of them be a dispatcher")
            }
            BuildError::AliasOfNothing { chain, known } => {
                let fault = format!("the last one does not exist, declare it or choose one of {known:?}");
                write_alias(f, chain, &fault)
            }
            BuildError::AliasTooLong { chain, max } => {
                let fault = format!("it is longer than {max} steps, let it name the dispatcher itself");
                write_alias(f, chain, &fault)
            }
            BuildError::PatternRelative { pattern } => write!(
                f,
                "{pattern:?} is no pattern of paths: begin with '/', and leave /user out, as in \"/shop/cache\""
            ),
            BuildError::PatternElement { pattern, error } => {
                write!(f, "{pattern:?} is no pattern of paths: {error}")
            }
            BuildError::PatternRestInside { pattern } => {
                write!(f, "{pattern:?} is no pattern of paths: '**' must be its last element")
            }
            BuildError::DuplicateDeployment { pattern } => {
                write!(f, "{pattern:?} is deployed twice: join the two")
            }
            BuildError::DuplicateMailbox { name } => {
                write!(f, "two mailboxes are named {name:?}: give each a name of its own")
            }
            BuildError::Mailbox { of, fault } => write!(f, "{of}: {fault}"),
            BuildError::DispatcherSetting { name, kind, setting } => write!(
                f,
                "dispatcher {name:?}: a {kind} dispatcher has no setting `{setting}`, leave it out or make another kind"
            ),
            BuildError::Dispatcher { name, error } => write!(f, "dispatcher {name:?}: {error}"),
            BuildError::Timers(error) => {
                write!(f, "the thread of the timers: {error}, let this process have one more thread")
            }
            BuildError::Section { key, fault } => write!(f, "key `{key}`: {fault}"),
            #[cfg(feature = "config")]
            BuildError::ConfigFile { file, error } => {
                write!(f, "cannot read the configuration file {}: {error}", file.display())
            }
            #[cfg(feature = "config")]
            BuildError::ConfigSyntax { fault } => write!(f, "the configuration is no TOML: {fault}"),
            #[cfg(feature = "config")]
            BuildError::ConfigKey { key, fault } => write!(f, "configuration key `{key}`: {fault}"),
            #[cfg(feature = "remote")]
            BuildError::Node { node, error } => write!(f, "node {node:?}: {error}"),
            BuildError::RoutingLogic { name, fault } => {
                write!(f, "routing logic {name:?}: {fault}, give it a name of its own")
            }
            BuildError::ZeroInboxCapacity => f.write_str("inbox capacity 0: must be at least 1"),
            BuildError::PhaseCycle { cycle } => {
                write!(f, "shutdown phases depend on each other: {}; drop one of these", cycle.join(" -> "))
            }
            BuildError::UnknownPhase { phase, named_by, known } => {
                write!(f, "shutdown phase {phase:?}")?;
                if let Some(named_by) = named_by {
                    write!(f, ", which {named_by:?} depends on,")?;
                }
                write!(
                    f,
                    " is unknown: must be one of {}; a phase of your own is described by `Phases::phase`, or in a section \
                     of its own in the configuration",
                    known.join(", ")
                )
            }
        }
    }
}

/// Writes the fault of an alias of a dispatcher behind the names on its way.
fn write_alias(f: &mut fmt::Formatter<'_>, chain: &[String], fault: &str) -> fmt::Result {
    write!(f, "dispatcher alias {}: {fault}", chain.join(" -> "))
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Dispatcher { error, .. } | BuildError::Timers(error) => Some(error),
            BuildError::PatternElement { error, .. } => Some(error),
            #[cfg(feature = "config")]
            BuildError::ConfigFile { error, .. } => Some(error),
            BuildError::Mailbox { fault, .. } => Some(fault),
            #[cfg(feature = "remote")]
            BuildError::Node { error, .. } => Some(&**error),
            _ => None,
        }
    }
}

debug_by_display! { BuildError }
