//! Why a system cannot be built.

use crate::mailbox::kind::MailboxFault;
use crate::path::error::NameFault;
use crate::scheduler::error::StartError;
use std::fmt;

/// Why a system could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The system's name breaks the rules: a letter or digit first, then letters, digits, `-` and `_`.
    Name {
        /// The name that was asked for.
        name: String,
    },
    /// Two dispatchers have one name, or an alias has that of another or of a dispatcher.
    DuplicateDispatcher {
        /// The name.
        name: String,
    },
    /// A dispatcher, or an alias of one, has a name that threads cannot have.
    DispatcherName {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// An alias leads to no dispatcher.
    DispatcherAlias {
        /// The names on the way, from the alias to the last one.
        chain: Vec<String>,
        /// What is wrong with it.
        fault: AliasFault,
    },
    /// Something was said of actors at a path that is none.
    Deployment(crate::settings::deployment::PatternError),
    /// Two mailboxes have one name.
    DuplicateMailbox {
        /// The name.
        name: String,
    },
    /// A mailbox is one that no actor could have.
    Mailbox {
        /// Whose it is: a name's, or a dispatcher's.
        of: String,
        /// What is wrong with it.
        fault: MailboxFault,
    },
    /// A dispatcher could not be started.
    Dispatcher {
        /// Its name.
        name: String,
        /// Why not.
        error: StartError,
    },
    /// The thread of the timers could not be started. A system with a [`ManualClock`](crate::time::ManualClock) needs none.
    Timers(StartError),
    /// Something was said of actors at a path, mostly of a router, that none can be.
    Section {
        /// The key at fault, with the sections around it.
        key: String,
        /// What is wrong.
        fault: crate::settings::section_fault::SectionFault,
    },
    /// A routing logic was given a name that it cannot have.
    RoutingLogic {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: String,
    },
    /// [Inboxes](crate::pattern::Inbox) that are given no other number were to keep 0 messages.
    ZeroInboxCapacity,
    /// The phases of the coordinated shutdown depend on each other in a circle.
    PhaseCycle(crate::settings::phases::PhaseCycle),
}

/// Why an alias leads to no dispatcher.
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
        /// How many steps there may be.
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
