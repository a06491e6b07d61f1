//! What can be wrong with what a system says of a router.

use crate::mailbox::kind::MailboxFault;
use crate::path::error::PathError;
use std::fmt;

/// Why an actor, mostly a router, cannot be as the system says of it: in
/// [`SpawnError::Section`](crate::SpawnError::Section) and
/// [`BuildError::Section`](crate::core::build_error::BuildError::Section), which name the key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SectionFault {
    /// No kind of router has this name.
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The code leaves it to the system to say what kind of router it is, and the system says nothing, or
    /// `from-code`.
    FromCode,
    /// The plan was not told that its messages can be routed so.
    Ability {
        /// The kind of router.
        name: String,
        /// The method of the plan that says it.
        method: &'static str,
    },
    /// A pool is asked for, and the code has a group: nobody knows how its routees are made.
    NoRecipe {
        /// The kind of router.
        name: String,
    },
    /// A group is asked for, and neither the code nor the section names a routee.
    NoPaths {
        /// The kind of router.
        name: String,
    },
    /// Another logic is asked for a balancing pool, whose routees share a queue by their recipe.
    SharedQueue {
        /// The kind of router.
        name: String,
    },
    /// A balancing pool is asked for, and the code has a [keyed pool](crate::routing::RouterBuilder::keyed_pool), whose
    /// routees take other messages than the router.
    BareMessages {
        /// The kind of router.
        name: String,
    },
    /// Another logic is asked for a router whose logic has a controller of its own kind.
    Controller {
        /// The kind of router.
        name: String,
    },
    /// A logic of this name was given for other messages only.
    OtherMessage {
        /// The name.
        name: String,
        /// The router's messages.
        message: &'static str,
        /// The messages that it was given for.
        known: Vec<&'static str>,
    },
    /// Whoever makes the logic of this name refused what the section says.
    Refused {
        /// The name.
        name: String,
        /// What is wrong.
        fault: String,
    },
    /// A value that its key cannot have.
    Value {
        /// The value.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// Both resizers are on.
    BothResizers,
    /// The system has no dispatcher of this name.
    Dispatcher {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The system has no mailbox of this name.
    Mailbox {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A routee's path that is none in this system.
    Path(PathError),
    /// The mailbox named cannot be the queue of a balancing pool, or there is none of this name.
    Queue(MailboxFault),
}

impl fmt::Display for SectionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SectionFault::Unknown { name, known } => write!(
                f,
                "no router is called {name:?}: before `config`, give it a logic with System::builder(..).routing_logic({name:?}, ..), \
                 or choose one of {known:?}"
            ),
            SectionFault::FromCode => f.write_str(
                "the code leaves it to the configuration what kind of router it is: say one, such as \"random-pool\"",
            ),
            SectionFault::Ability { name, method } => write!(
                f,
                "{name:?} needs what the code does not say of the messages: call `{method}` on the router's plan, or \
                 choose another kind"
            ),
            SectionFault::NoRecipe { name } => write!(
                f,
                "{name:?} needs a recipe, and the code has a group: choose a group, or call `pool` in the code"
            ),
            SectionFault::NoPaths { name } => {
                write!(
                    f,
                    "{name:?} needs paths, and the code has none: name at least one routee, or choose a logic of your own \
                     that makes its routees itself (`RoutingLogic::own_routees`)"
                )
            }
            SectionFault::SharedQueue { name } => write!(
                f,
                "{name:?} cannot take the place of a balancing pool: call `pool` in the code, which \"balancing-pool\" \
                 can make one"
            ),
            SectionFault::BareMessages { name } => write!(
                f,
                "{name:?} has routees that take the router's own messages from a queue, and the code has a keyed pool: \
                 call `pool` in the code, or choose another kind"
            ),
            SectionFault::Controller { name } => write!(
                f,
                "{name:?} cannot take the place of a logic with a controller: leave `controller` out in the code, or \
                 choose \"from-code\""
            ),
            SectionFault::OtherMessage { name, message, known } => write!(
                f,
                "the logic {name:?} was not given for messages {message}, but for {known:?}: call \
                 System::builder(..).routing_logic({name:?}, ..) for them, too"
            ),
            SectionFault::Refused { name, fault } => write!(f, "the logic {name:?}: {fault}"),
            SectionFault::Value { value, allowed } => write!(f, "it is {value}: must be {allowed}"),
            SectionFault::Queue(fault) => write!(f, "{fault}"),
            SectionFault::BothResizers => f.write_str(
                "it is on, as is `optimal-size-exploring-resizer`: a pool has one, let the other be enabled = false",
            ),
            SectionFault::Dispatcher { name, known } => {
                write!(f, "no dispatcher is named {name:?}: declare it, or choose one of {known:?}")
            }
            SectionFault::Mailbox { name, known } => {
                write!(f, "no mailbox is named {name:?}: declare it, or choose one of {known:?}")
            }
            SectionFault::Path(error) => error.fmt(f),
        }
    }
}
