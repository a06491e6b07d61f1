//! The faults of a system's settings of a router.

use crate::mailbox::kind::MailboxFault;
use crate::path::error::PathError;
use std::fmt;

/// A section cannot apply to its actor, mostly a router. [`SpawnError::Section`](crate::SpawnError::Section) and
/// [`BuildError::Section`](crate::settings::build_error::BuildError::Section) hold the fault and name the key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SectionFault {
    /// No kind of router has this name.
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The code leaves the kind of router to the system, and the system names none, or `from-code`.
    FromCode,
    /// The plan does not declare that its messages can be routed so.
    Capability {
        /// The kind of router.
        name: String,
        /// The method of the plan that declares it.
        method: &'static str,
    },
    /// The section asks for a pool, but the code has a group, which has no recipe for routees.
    NoRecipe {
        /// The kind of router.
        name: String,
    },
    /// The section asks for a group, and neither the code nor the section names a routee.
    NoPaths {
        /// The kind of router.
        name: String,
    },
    /// The section asks for another logic for a balancing pool, whose routees share a queue by their recipe.
    SharedQueue {
        /// The kind of router.
        name: String,
    },
    /// The section asks for a balancing pool, but the code has a [keyed
    /// pool](crate::routing::RouterBuilder::keyed_pool), whose routees take other messages than the router.
    BareMessages {
        /// The kind of router.
        name: String,
    },
    /// The section asks for another logic for a router whose logic has a controller of its own kind.
    Controller {
        /// The kind of router.
        name: String,
    },
    /// The section names other nodes, and the code does not say how they make the actor or the routees.
    NotDeployable {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// A logic of this name was registered for other messages only.
    OtherMessage {
        /// The name.
        name: String,
        /// The type of the router's messages.
        message: &'static str,
        /// The types of messages for which the logic was registered.
        known: Vec<&'static str>,
    },
    /// The function that makes the logic of this name refused the section.
    Refused {
        /// The name.
        name: String,
        /// The fault.
        fault: String,
    },
    /// The key cannot have this value.
    Value {
        /// The value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// Both resizers are on.
    BothResizers,
    /// The system has no dispatcher of this name.
    Dispatcher {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The system has no mailbox of this name.
    Mailbox {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The path of a routee is not a path in this system.
    Path(PathError),
    /// The named mailbox cannot be the queue of a balancing pool, or no mailbox has this name.
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
                "the code leaves it to the configuration to name a kind of router: name one, such as \"random-pool\"",
            ),
            SectionFault::Capability { name, method } => write!(
                f,
                "{name:?} needs a capability of the messages that the code does not declare: call `{method}` on the \
                 router's plan, or choose another kind"
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
                "{name:?} cannot take the place of a balancing pool: call `pool` in the code, of which \
                 \"balancing-pool\" makes a balancing pool"
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
            SectionFault::NotDeployable { nodes } => write!(
                f,
                "it is {nodes:?}, and the code does not say how other nodes make this: make an actor by `deploy`, and a pool \
                 by `deployable_pool`, or leave the key out"
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
                "it is on, as is `optimal-size-exploring-resizer`: a pool has one, set `enabled = false` in the other",
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
