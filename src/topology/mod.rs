//! Groups of actors that are told apart by a key, and the routes between groups.
//!
//! ```text
//!              outlet                     inner router            key table
//!   sender ──▶ which groups? ──▶ group ── Outcome::Unicast(k) ──▶ actor of key k ──▶ mailbox
//!              (level one)                (level two)             created if absent
//! ```
//!
//! A *group* runs one kind of actor, one for each key. Its reference is an [`ActorRef`](crate::ActorRef): a message
//! sent to it is routed in the sender's thread by the group's inner router, whose [`Outcome`] names keys, and goes
//! straight into the mailboxes of their actors. An actor whose key is absent is created on the way, at most one
//! however many senders race, and the message that did it is its first.
//!
//! Two-level routing is elfo's; the typed form is ours.
//!
//! In reading order, level one, between groups: `plan.rs` how groups and routes are declared, and `member.rs` what is
//! mounted; `outlet.rs` the table by which a message goes, and `wraps.rs` how it becomes one of the group's type;
//! `send.rs` the verbs; `request.rs`, `reply_set.rs` and `ask_all.rs` how answers come back; `config.rs` how a
//! configuration gets to the groups, `start.rs` how they get their first one, and `stop.rs` how they end; `dot.rs` and `error.rs`.
//!
//! Level two, actors by key: `builder.rs` and `group.rs` what the user has in hand; `key_router.rs` and `outcome.rs` the
//! inner router; `route.rs` a message's way to its keys; `board.rs` what all parts share, and how an actor is created;
//! `key_table.rs` the keys, with `key.rs` and `key_name.rs`; `entry.rs` and `recipe.rs` what an actor is made from. What
//! becomes of it: `head.rs` and `supervision.rs` when it fails or ends, `delayed_restart.rs` until it is restarted, by `restart_policy.rs`
//! and `policy.rs`; `successors.rs` and `forward.rs` when it retires; `termination.rs` when the group ends. `status.rs`
//! and `subscribe.rs` tell how it is, `self_report.rs` what it says of that itself; `config_hooks.rs` is for groups that go by a
//! configuration.

pub(crate) mod ask_all;
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

pub use crate::core::multi_send::{Mode, Report};
pub use crate::group::builder::{GroupBuilder, GroupPlan, Singleton};
pub use crate::group::config::GroupConfig;
pub use crate::group::effective_policy::PolicyError;
pub use crate::group::entry::{Start, StartCause};
pub use crate::group::group::Group;
pub use crate::group::key::GroupKey;
pub use crate::group::key_router::{InnerRouter, MapRouter, RouterState};
pub use crate::group::outcome::Outcome;
pub use crate::group::restart_policy::{RestartPolicy, WhileRestarting};
pub use crate::group::status::{ActorStatus, StatusReport};
pub use crate::topology::ask_all::AskAll;
pub use crate::topology::dot::Connection;
pub use crate::topology::error::{Refusal, Rejection, TopologyError};
pub use crate::topology::member::{Member, Mount};
pub use crate::topology::outlet::Outlet;
pub use crate::topology::plan::{GroupInfo, Local, Mounted, Topology};
pub use crate::topology::reply_set::{Replies, RequestError};
pub use crate::topology::request::Requesting;
pub use crate::topology::send::Sending;
pub use crate::topology::wraps::Carries;
