//! The errors of building a system.

use crate::dispatch::dispatcher::DispatcherKind;
use crate::mailbox::kind::MailboxFault;
use crate::path::error::NameFault;
use crate::scheduler::error::StartError;
use std::fmt;

/// The reason why a system could not be started.
#[derive(Debug)]
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
    DispatcherName {
        /// The name.
        name: String,
        /// The fault of the name.
        fault: NameFault,
    },
    /// An alias leads to no dispatcher.
    DispatcherAlias {
        /// The names on the way, from the alias to the last one.
        chain: Vec<String>,
        /// The fault of the alias.
        fault: AliasFault,
    },
    /// A deployment names an invalid path.
    Deployment(crate::settings::deployment::PatternError),
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
    PhaseCycle(crate::settings::phases::PhaseCycle),
}

/// The reason why an alias leads to no dispatcher.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AliasFault {
    /// A name comes twice on the way.
    Circle,
    /// The last name is neither a dispatcher's nor an alias.
    Unknown {
        /// The names that exist.
        known: Vec<String>,
    },
    /// There are too many aliases on the way.
    TooLong {
        /// The largest number of steps.
        max: usize,
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
            BuildError::DispatcherName { name, fault: NameFault::Character { character, position } } => {
                write!(
                    f,
                    "dispatcher {name:?}: character {character:?} at byte {position} cannot be in a thread's name, \
                 leave control characters out"
                )
            }
            BuildError::DispatcherName { name, fault: _ } => {
                write!(f, "dispatcher {name:?}: its name is empty, give at least one character")
            }
            BuildError::DispatcherAlias { chain, fault } => {
                write!(f, "dispatcher alias {}: ", chain.join(" -> "))?;
                match fault {
                    AliasFault::Circle => {
                        f.write_str("it leads in a circle, let one of them be a dispatcher")
                    }
                    AliasFault::Unknown { known } => {
                        write!(f, "the last one does not exist, declare it or choose one of {known:?}")
                    }
                    AliasFault::TooLong { max } => {
                        write!(f, "it is longer than {max} steps, let it name the dispatcher itself")
                    }
                }
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
            BuildError::Deployment(error) => error.fmt(f),
            BuildError::Section { key, fault } => write!(f, "key `{key}`: {fault}"),
            BuildError::RoutingLogic { name, fault } => {
                write!(f, "routing logic {name:?}: {fault}, give it a name of its own")
            }
            BuildError::ZeroInboxCapacity => f.write_str("inbox capacity 0: must be at least 1"),
            BuildError::PhaseCycle(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Dispatcher { error, .. } | BuildError::Timers(error) => Some(error),
            BuildError::Deployment(error) => Some(error),
            BuildError::PhaseCycle(error) => Some(error),
            BuildError::Mailbox { fault, .. } => Some(fault),
            _ => None,
        }
    }
}
