//! The errors of sending, creating, starting and ending; other errors are beside the functions that return them.

use crate::core::deploy_fault::DeployFault;
use crate::mailbox::kind::MailboxFault;
use crate::path::error::NameError;
use crate::scheduler::error::StartError;
use crate::settings::setting_error::SettingError;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::time::Duration;

/// The reason why a message was not accepted; the message comes back.
#[derive(PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError<M> {
    /// The mailbox is bounded and full, and its policy is to refuse. From a router: the mailbox of the chosen routee
    /// is; or no routee was left to choose, and a routee that was passed over was itself a router and full.
    Full(M),
    /// The actor or router has stopped. From a [group](crate::group::Group): the key has no actor and none is
    /// created for it, as the key router or [`stop_spawning`](crate::group::Group::stop_spawning) says.
    Closed(M),
    /// The router has no routee that takes the message: there is none, or each has stopped or is itself a router
    /// without a routee.
    NoRoutee(M),
    /// Routers route to each other in a circle: the message went through 16 routers, one behind the other, or the send
    /// that it belongs to has visited 65,536 routers behind the first one, by all its copies together.
    Cycle(M),
    /// No route of a [topology](crate::topology) leads to a recipient for the message.
    NoRoute(M),
    /// The key router of a keyed group has named no key for the message
    /// ([`KeyRoute::Discard`](crate::group::KeyRoute::Discard),
    /// [`KeyRoute::Default`](crate::group::KeyRoute::Default)). The group lives, and takes other messages.
    Discarded(M),
    /// The actor is on another node, and the message is larger than the limits of this node allow.
    TooLarge {
        /// The message.
        message: M,
        /// Its size in bytes when encoded.
        size: usize,
        /// The largest size.
        max: usize,
    },
    /// The actor is on another node, and the message, or a part of it, cannot go there.
    Unsendable {
        /// The message.
        message: M,
        /// The cause. A boxed text, so that an error is no larger for it.
        why: Box<str>,
    },
    /// A routing logic named a routee that does not exist.
    BadPick {
        /// The message.
        message: M,
        /// The index that the logic returned.
        index: usize,
        /// The number of routees.
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
            | SendError::NoRoute(message)
            | SendError::Discarded(message)
            | SendError::TooLarge { message, .. }
            | SendError::Unsendable { message, .. }
            | SendError::BadPick { message, .. } => message,
        }
    }

    /// Makes the same refusal for the result of `change`.
    pub(crate) fn map<N>(self, change: impl FnOnce(M) -> N) -> SendError<N> {
        match self {
            SendError::Full(message) => SendError::Full(change(message)),
            SendError::Closed(message) => SendError::Closed(change(message)),
            SendError::NoRoutee(message) => SendError::NoRoutee(change(message)),
            SendError::Cycle(message) => SendError::Cycle(change(message)),
            SendError::NoRoute(message) => SendError::NoRoute(change(message)),
            SendError::Discarded(message) => SendError::Discarded(change(message)),
            SendError::TooLarge { message, size, max } => {
                SendError::TooLarge { message: change(message), size, max }
            }
            SendError::Unsendable { message, why } => SendError::Unsendable { message: change(message), why },
            SendError::BadPick { message, index, routees } => {
                SendError::BadPick { message: change(message), index, routees }
            }
        }
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full(_) => f.write_str("mailbox full: try again later or raise its capacity"),
            SendError::Closed(_) => f.write_str("no actor will handle the message: the actor has stopped, or its group creates none for it"),
            SendError::NoRoutee(_) => f.write_str(
                "no routee takes the message: the router has none, or each has stopped or is a router without any",
            ),
            SendError::Cycle(_) => f.write_str(
                "routers route to each other in a circle, 16 deep or over 65,536 routers in one send: take one of them out \
                 of the other's routees",
            ),
            SendError::NoRoute(_) => f.write_str(
                "no route leads anywhere for the message: define one with `route_to` before the group is mounted",
            ),
            SendError::Discarded(_) => f.write_str(
                "message discarded: the group's key router names no key for it, by `Discard` or `Default`",
            ),
            SendError::TooLarge { size, max, .. } => write!(
                f,
                "the message has {size} bytes when encoded, and at most {max} may go to another node: send less at once, or \
                 raise `[remote.limits] large-message` of both nodes"
            ),
            SendError::Unsendable { why, .. } => write!(f, "the message cannot go to another node: {why}"),
            SendError::BadPick { index, routees, .. } => {
                write!(f, "routing logic picked routee {index} of {routees}: must be below {routees}")
            }
        }
    }
}

impl<M> std::error::Error for SendError<M> {}

debug_by_display! { SendError<M> }

/// The reason why an actor could not be created.
#[derive(PartialEq)]
#[non_exhaustive]
pub enum SpawnError {
    /// The name breaks the rules for names.
    Name(NameError),
    /// The actor cannot be made on another node.
    Deploy {
        /// The actor's path here.
        path: String,
        /// The reason.
        fault: DeployFault,
    },
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
        /// The fault of the mailbox.
        fault: MailboxFault,
    },
    /// A pool was asked for with 0 routees, and without
    /// [`stay_when_empty`](crate::routing::RouterPlan::stay_when_empty).
    EmptyPool {
        /// The router's path.
        path: String,
    },
    /// A pool was asked for with more routees than there can be.
    PoolTooLarge {
        /// The router's path.
        path: String,
        /// The size that was asked for.
        size: usize,
        /// The largest size.
        max: usize,
    },
    /// The path that was given for a router's routee is invalid.
    RouteePath {
        /// The router's path.
        router: String,
        /// The fault of the routee's path.
        error: crate::path::error::PathError,
    },
    /// The path of a routee has a wildcard, but the messages cannot be cloned.
    RouteeWildcard {
        /// The router's path.
        router: String,
        /// The routee's path.
        path: String,
    },
    /// A routee that is made before its first turn, as in [`goakt`](crate::routing::goakt), could not be made: its factory
    /// returned an error, or panicked.
    Routee {
        /// The router's path.
        router: String,
        /// The routee's number.
        number: usize,
        /// The error or panic of the factory.
        fault: String,
    },
    /// A router's logic has settings that make no sense, such as a hash ring without points.
    Logic {
        /// The router's path.
        path: String,
        /// The fault of the settings.
        fault: String,
    },
    /// Two options of a router in [GoAkt's words](crate::routing::goakt) decide about a failing routee. In GoAkt the
    /// last option counts.
    TwoDirectives {
        /// The router's path.
        path: String,
        /// The options, in the order in which they were given.
        options: [&'static str; 2],
    },
    /// A pool's resizer has settings that make no sense.
    Resizer {
        /// The router's path.
        path: String,
        /// The fault of the settings.
        fault: SettingError,
    },
    /// A resizer was given to a group, which makes no routees.
    ResizerOfGroup {
        /// The router's path.
        path: String,
    },
    /// A resizer was given to a pool whose routees [share one queue](crate::routing::Balancing), so that their own
    /// mailboxes show no load.
    ResizerOfSharedQueue {
        /// The router's path.
        path: String,
    },
    /// The settings of a group are invalid.
    Group {
        /// The group's path.
        path: String,
        /// The fault of the settings.
        fault: SettingError,
    },
    /// The system's settings for the actor or the router at this path are impossible for it.
    Section {
        /// The path.
        path: String,
        /// The key at fault, with the sections around it.
        key: String,
        /// The fault of the section.
        fault: crate::settings::section_fault::SectionFault,
    },
    /// The parent is stopping or has stopped, or is a [group](crate::group::Group::mount) that creates no more
    /// actors.
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
    /// The backoff of a supervisor is invalid.
    Backoff(SettingError),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Name(error) => error.fmt(f),
            SpawnError::Deploy { path, fault } => {
                write!(f, "{path} cannot be made on another node: {fault}")
            }
            SpawnError::NameTaken { path } => write!(
                f,
                "name taken: {path} exists or is still stopping, choose another name, or create it when its parent has \
                 got the notice of its termination"
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
            SpawnError::EmptyPool { path } => {
                write!(f, "pool size 0 for {path}: must be at least 1, or call `stay_when_empty`")
            }
            SpawnError::PoolTooLarge { path, size, max } => {
                write!(f, "pool size {size} for {path}: must be at most {max}")
            }
            SpawnError::RouteePath { router, error } => write!(f, "routee of router {router}: {error}"),
            SpawnError::RouteeWildcard { router, path } => write!(
                f,
                "routee {path} of router {router}: wildcards need messages that can be cloned, name each path or \
                 use `group_at`"
            ),
            SpawnError::Routee { router, number, fault } => {
                write!(f, "routee {number} of router {router} could not be made: {fault}")
            }
            SpawnError::Logic { path, fault } => write!(f, "routing logic of {path}: {fault}"),
            SpawnError::TwoDirectives { path, options: [one, other] } => {
                write!(f, "router {path} has both `{one}` and `{other}`: give one of them, once")
            }
            SpawnError::Resizer { path, fault } => write!(f, "resizer of {path}: {fault}"),
            SpawnError::ResizerOfGroup { path } => write!(
                f,
                "resizer of {path}: a group makes no routees: leave the resizer out, or make the router a pool"
            ),
            SpawnError::ResizerOfSharedQueue { path } => write!(
                f,
                "resizer of {path}: the routees of a balancing pool share one queue, so their loads say nothing: leave \
                 the resizer out, or make it another pool"
            ),
            SpawnError::Group { path, fault } => write!(f, "group {path}: {fault}"),
            SpawnError::Section { path, key, fault } => write!(f, "{path}, key `{key}`: {fault}"),
            SpawnError::ParentStopped { path } => {
                write!(f, "parent {path} takes no more children: it ends, or was told to create none")
            }
            SpawnError::ShutDown { system } => {
                write!(f, "system {system:?} is shut down: it takes no more actors")
            }
            SpawnError::Thread(error) => write!(f, "cannot start a thread for the actor: {error}"),
            SpawnError::Backoff(error) => write!(f, "backoff supervisor: {error}"),
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SpawnError::Name(error) => Some(error),
            SpawnError::Thread(error) => Some(error),
            SpawnError::Backoff(error) => Some(error),
            SpawnError::Mailbox { fault, .. } => Some(fault),
            SpawnError::Resizer { fault, .. } | SpawnError::Group { fault, .. } => Some(fault),
            SpawnError::RouteePath { error, .. } => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { SpawnError }

impl From<NameError> for SpawnError {
    fn from(error: NameError) -> Self {
        SpawnError::Name(error)
    }
}

/// The reason why a system did not end in time.
#[non_exhaustive]
pub enum ShutdownError {
    /// Some actors were still running when the deadline passed.
    Stuck {
        /// The time for which the caller waited.
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

debug_by_display! { ShutdownError }
