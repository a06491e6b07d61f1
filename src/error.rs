//! Every error that is not about one message type alone; send and ask errors live beside what returns them.

use crate::mailbox::recipe::MailboxFault;
use crate::scheduler::StartError;
use std::fmt;
use std::time::Duration;

/// Why a message was not accepted; the message comes back.
#[non_exhaustive]
pub enum SendError<M> {
    /// The mailbox is bounded and full, and its policy is to refuse.
    Full(M),
    /// The actor or router has stopped.
    Closed(M),
    /// The router has no routee that takes the message.
    NoRoutee(M),
    /// The message went through more routers than the hop limit allows: routers route to each other in a
    /// circle.
    Cycle(M),
    /// A routing logic named a routee that does not exist.
    BadPick {
        /// The message.
        message: M,
        /// The index that the logic returned.
        index: usize,
        /// How many routees there were.
        routees: usize,
    },
}

impl<M> SendError<M> {
    /// The message that was not accepted.
    pub fn into_inner(self) -> M {
        match self {
            SendError::Full(message)
            | SendError::Closed(message)
            | SendError::NoRoutee(message)
            | SendError::Cycle(message)
            | SendError::BadPick { message, .. } => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full(_) => f.write_str("Full(..)"),
            SendError::Closed(_) => f.write_str("Closed(..)"),
            SendError::NoRoutee(_) => f.write_str("NoRoutee(..)"),
            SendError::Cycle(_) => f.write_str("Cycle(..)"),
            SendError::BadPick { index, routees, .. } => {
                write!(f, "BadPick {{ index: {index}, routees: {routees}, .. }}")
            }
        }
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full(_) => f.write_str("mailbox full: try again later or raise its capacity"),
            SendError::Closed(_) => f.write_str("actor stopped: nobody will handle the message"),
            SendError::NoRoutee(_) => f.write_str(
                "no routee takes the message: the router is empty or all its routees have stopped",
            ),
            SendError::Cycle(_) => f.write_str(
                "routers route to each other in a circle: take one of them out of the other's routees",
            ),
            SendError::BadPick { index, routees, .. } => {
                write!(f, "routing logic picked routee {index} of {routees}: must be below {routees}")
            }
        }
    }
}

impl<M> std::error::Error for SendError<M> {}

/// A name that an actor cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameError {
    /// The name that was asked for.
    pub name: String,
    /// What is wrong with it.
    pub fault: NameFault,
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameFault {
    /// It is empty.
    Empty,
    /// It starts with `$`, which is kept for generated names.
    Reserved,
    /// It has a character that paths cannot hold.
    Character {
        /// The character.
        character: char,
        /// Its byte position in the name, from 0.
        position: usize,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid actor name {:?}: ", self.name)?;
        match self.fault {
            NameFault::Empty => f.write_str("it is empty, give at least one character"),
            NameFault::Reserved => f.write_str("names that start with '$' are kept for generated ones"),
            NameFault::Character { character, position } => write!(
                f,
                "character {character:?} at byte {position} is not allowed, use ASCII letters, digits, one of \
                 -_.*$+:@&=,!~'; or % with two hex digits"
            ),
        }
    }
}

impl std::error::Error for NameError {}

/// Why an actor could not be created.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// The name breaks the rules for names.
    Name(NameError),
    /// A sibling has the name, or had it and has not ended yet.
    NameTaken {
        /// The path that is taken.
        path: String,
    },
    /// The system has no dispatcher of this name.
    UnknownDispatcher {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A bounded mailbox was asked for with capacity 0.
    ZeroCapacity {
        /// The actor's path.
        path: String,
    },
    /// The mailbox is not one that the actor can have.
    Mailbox {
        /// The actor's path.
        path: String,
        /// What is wrong with the mailbox.
        fault: MailboxFault,
    },
    /// A pool was asked for with 0 routees.
    EmptyPool {
        /// The router's path.
        path: String,
    },
    /// A router's logic has settings that make no sense, such as a hash ring without points.
    Logic {
        /// The router's path.
        path: String,
        /// What is wrong.
        fault: String,
    },
    /// The parent is stopping or has stopped.
    ParentStopped {
        /// The parent's path.
        path: String,
    },
    /// The system is shutting down or has shut down.
    ShutDown {
        /// The system's name.
        system: String,
    },
    /// A thread that the actor needs could not be started.
    Thread(StartError),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Name(error) => error.fmt(f),
            SpawnError::NameTaken { path } => write!(
                f,
                "name taken: {path} exists or is still stopping, choose another name or wait for its termination"
            ),
            SpawnError::UnknownDispatcher { name, known } => write!(
                f,
                "unknown dispatcher {name:?}: declare it with System::builder(..).dispatcher({name:?}, ..), \
                 there are {known:?}"
            ),
            SpawnError::ZeroCapacity { path } => {
                write!(f, "mailbox capacity 0 for {path}: must be at least 1")
            }
            SpawnError::Mailbox { path, fault } => write!(f, "mailbox of {path}: {fault}"),
            SpawnError::EmptyPool { path } => write!(f, "pool size 0 for {path}: must be at least 1"),
            SpawnError::Logic { path, fault } => write!(f, "routing logic of {path}: {fault}"),
            SpawnError::ParentStopped { path } => {
                write!(f, "parent {path} is stopping: it takes no more children")
            }
            SpawnError::ShutDown { system } => {
                write!(f, "system {system:?} is shut down: it takes no more actors")
            }
            SpawnError::Thread(error) => write!(f, "cannot start a thread for the actor: {error}"),
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SpawnError::Name(error) => Some(error),
            SpawnError::Thread(error) => Some(error),
            SpawnError::Mailbox { fault, .. } => Some(fault),
            _ => None,
        }
    }
}

impl From<NameError> for SpawnError {
    fn from(error: NameError) -> Self {
        SpawnError::Name(error)
    }
}

/// Why a system could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The system's name breaks the rules: a letter or digit first, then letters, digits, `-` and `_`.
    Name {
        /// The name that was asked for.
        name: String,
    },
    /// Two dispatchers have one name.
    DuplicateDispatcher {
        /// The name.
        name: String,
    },
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
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Name { name } => write!(
                f,
                "invalid system name {name:?}: start with a letter or digit, go on with letters, digits, '-' or '_'"
            ),
            BuildError::DuplicateDispatcher { name } => {
                write!(f, "two dispatchers are named {name:?}: give each a name of its own")
            }
            BuildError::DuplicateMailbox { name } => {
                write!(f, "two mailboxes are named {name:?}: give each a name of its own")
            }
            BuildError::Mailbox { of, fault } => write!(f, "{of}: {fault}"),
            BuildError::Dispatcher { name, error } => write!(f, "dispatcher {name:?}: {error}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Dispatcher { error, .. } => Some(error),
            BuildError::Mailbox { fault, .. } => Some(fault),
            _ => None,
        }
    }
}

/// Why a system did not end in time.
#[derive(Debug)]
#[non_exhaustive]
pub enum ShutdownError {
    /// Some actors were still running when the deadline passed.
    Stuck {
        /// How long was waited.
        waited: Duration,
        /// The paths of actors that have not ended, at most 32 of them.
        actors: Vec<String>,
    },
    /// Called on a thread of the system itself, which cannot wait for its own end.
    OwnThread,
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShutdownError::Stuck { waited, actors } => write!(
                f,
                "system did not end within {waited:?}: still running {actors:?}, look for handlers that block"
            ),
            ShutdownError::OwnThread => f.write_str(
                "shutdown was called on a thread of the system, which cannot wait for its own end: call stop(), \
                 or shut down from another thread",
            ),
        }
    }
}

impl std::error::Error for ShutdownError {}
