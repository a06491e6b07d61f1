//! A topology is level one of the routing: it names groups, and routes messages between them.
//!
//! ```text
//!              outlet          routes
//!   sender ──▶ Outlet<M> ──┬── condition holds ──▶ wrapped as the group's type ──▶ group's reference
//!                          └── condition holds ──▶ wrapped as the group's type ──▶ group's reference
//! ```
//!
//! A group is declared with a name, gets its routes, and is then mounted: a keyed [`Group`](crate::group::Group), an actor or a router
//! stands behind it. A member of a group sends a message by an [`Outlet`], without naming a recipient. The message
//! goes, in the sender's thread, to each group to which a route of the sender's group holds. There it is wrapped as a
//! message of that group's type, and is sent to the group's reference.
//!
//! Level two, from a keyed group to its actors, is told at [`Group`](crate::group::Group). Two-level routing is elfo's; the typed form is
//! ours.
//!
//! The files, in reading order:
//!
//! * `plan.rs` declares groups and routes, and `member.rs` says what can be mounted.
//! * `outlet.rs` is the routing table of a sending group, and `wraps.rs` makes a message of a group's type.
//!   `shown_route.rs` shows messages on their way to a dumper.
//! * `send.rs` has the sending verbs, and `group_outlets.rs` has all outlets of a group in a single object.
//! * `request.rs` and `reply_set.rs` bring answers back, by `ask/ask_all.rs`.
//! * `config.rs` takes a configuration to the groups, and `start.rs` gives them their first configuration.
//! * `validation.rs` asks the actors about a configuration, and `file_configurer.rs` takes the configuration from a file.
//! * `subscribe.rs` subscribes an actor to the statuses of all groups.
//! * `stop.rs` ends the groups, and `pinger.rs` looks whether their actors are alive.
//! * `remote_group.rs` is a group that other nodes mount. `node_route.rs` and `node_choices.rs` say which nodes get a
//!   message, `node_table.rs` and `node_search.rs` which nodes there are, and `remote_entry.rs` shows the group to its
//!   topology.
//! * `dot.rs` draws the topology, and `error.rs` has the errors.

pub(crate) mod config;
#[cfg(feature = "config")]
pub(crate) mod file_configurer;
pub(crate) mod dot;
pub(crate) mod error;
pub(crate) mod group_outlets;
pub(crate) mod member;
#[cfg(feature = "remote")]
pub(crate) mod node_choices;
#[cfg(feature = "remote")]
pub(crate) mod node_route;
#[cfg(feature = "remote")]
pub(crate) mod node_search;
#[cfg(feature = "remote")]
pub(crate) mod node_table;
pub(crate) mod outlet;
pub(crate) mod pinger;
pub(crate) mod plan;
pub(crate) mod remote_entry;
#[cfg(feature = "remote")]
pub(crate) mod remote_group;
pub(crate) mod reply_set;
pub(crate) mod request;
pub(crate) mod send;
pub(crate) mod shown_route;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod subscribe;
pub(crate) mod validation;
pub(crate) mod wraps;
pub(crate) mod try_ask; // asks that give the request back without a clone

pub use crate::ask::ask_all::AskAll;
pub use crate::core::multi_send::{SendMode, SendReport};
pub use crate::topology::error::{ConfigRefusal, TopologyError};
#[cfg(feature = "config")]
pub use crate::topology::file_configurer::{ConfigReloaded, FileConfigurer, FileConfigurerError};
pub use crate::topology::group_outlets::{GroupOutlets, GroupSendError, UnroutedType};
pub use crate::topology::member::GroupMember;
#[cfg(feature = "remote")]
pub use crate::topology::node_route::NodeRoute;
pub use crate::topology::outlet::Outlet;
pub use crate::topology::pinger::{PingReport, PingStatus, Pinger, PingerBuilder, PingerError};
pub use crate::topology::plan::{DeclaredGroup, GroupInfo, Topology};
pub use crate::topology::remote_entry::RemoteGroupInfo;
#[cfg(feature = "remote")]
pub use crate::topology::remote_group::RemoteGroup;
pub use crate::topology::request::RequestBuilder;
pub use crate::topology::validation::{ConfiguredActor, UpdateConfig};
pub use crate::topology::wraps::Wraps;
