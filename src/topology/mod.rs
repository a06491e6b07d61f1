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
//! * `send.rs` has the sending verbs.
//! * `request.rs` and `reply_set.rs` bring answers back, by `ask/ask_all.rs`.
//! * `config.rs` takes a configuration to the groups, and `start.rs` gives them their first configuration.
//! * `subscribe.rs` subscribes an actor to the statuses of all groups.
//! * `stop.rs` ends the groups.
//! * `dot.rs` draws the topology, and `error.rs` has the errors.

pub(crate) mod config;
pub(crate) mod dot;
pub(crate) mod error;
pub(crate) mod member;
pub(crate) mod outlet;
pub(crate) mod plan;
pub(crate) mod reply_set;
pub(crate) mod request;
pub(crate) mod send;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod subscribe;
pub(crate) mod wraps;
pub(crate) mod try_ask; // asks that give the request back without a clone

pub use crate::ask::ask_all::AskAll;
pub use crate::core::multi_send::{SendMode, SendReport};
pub use crate::topology::error::TopologyError;
pub use crate::topology::member::GroupMember;
pub use crate::topology::outlet::Outlet;
pub use crate::topology::plan::{DeclaredGroup, GroupInfo, Topology};
pub use crate::topology::request::RequestBuilder;
pub use crate::topology::wraps::Wraps;
