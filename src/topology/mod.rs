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
//! mounted; `outlet.rs` the table by which a message goes, and `carries.rs` how it becomes one of the group's type;
//! `sending.rs` the verbs; `request.rs`, `tokens.rs` and `ask_all.rs` how answers come back; `config.rs` how a
//! configuration gets to the groups, `start.rs` how they get their first one, and `stop.rs` how they end; `drawing.rs` and `error.rs`.
//!
//! Level two, actors by key: `builder.rs` and `group.rs` what the user has in hand; `inner.rs` and `outcome.rs` the
//! inner router; `spread.rs` a message's way to its keys; `board.rs` what all parts share, and how an actor is created;
//! `table.rs` the keys, with `key.rs` and `key_name.rs`; `seed.rs` and `sown.rs` what an actor is made from. What
//! becomes of it: `head.rs` and `keeper.rs` when it fails or ends, `waiting.rs` until it is restarted, by `restart.rs`
//! and `policy.rs`; `heirs.rs` and `succession.rs` when it retires; `termination.rs` when the group ends. `status.rs`
//! and `subscribe.rs` tell how it is, `ward.rs` what it says of that itself; `configured.rs` is for groups that go by a
//! configuration.

pub(crate) mod ask_all;
pub(crate) mod board;
pub(crate) mod builder;
pub(crate) mod carries;
pub(crate) mod config;
pub(crate) mod configured;
pub(crate) mod drawing;
pub(crate) mod error;
pub(crate) mod group;
pub(crate) mod head;
pub(crate) mod heirs;
pub(crate) mod inner;
pub(crate) mod keeper;
pub(crate) mod key;
pub(crate) mod key_name;
pub(crate) mod member;
pub(crate) mod outcome;
pub(crate) mod outlet;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod request;
pub(crate) mod restart;
pub(crate) mod seed;
pub(crate) mod sending;
pub(crate) mod sown;
pub(crate) mod spread;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod subscribe;
pub(crate) mod succession;
pub(crate) mod table;
pub(crate) mod termination;
pub(crate) mod tokens;
pub(crate) mod waiting;
pub(crate) mod ward;

pub use crate::actor_ref::delivery::{Mode, Report};
pub use crate::topology::ask_all::AskAll;
pub use crate::topology::builder::{GroupBuilder, GroupPlan, Singleton};
pub use crate::topology::carries::Carries;
pub use crate::topology::config::GroupConfig;
pub use crate::topology::drawing::Connection;
pub use crate::topology::error::{Refusal, Rejection, TopologyError};
pub use crate::topology::group::Group;
pub use crate::topology::inner::{InnerRouter, MapRouter, RouterState};
pub use crate::topology::key::GroupKey;
pub use crate::topology::member::{Member, Mount};
pub use crate::topology::outcome::Outcome;
pub use crate::topology::outlet::Outlet;
pub use crate::topology::plan::{GroupInfo, Local, Mounted, Topology};
pub use crate::topology::policy::PolicyError;
pub use crate::topology::request::Requesting;
pub use crate::topology::restart::{RestartPolicy, WhileRestarting};
pub use crate::topology::seed::{Start, StartCause};
pub use crate::topology::sending::Sending;
pub use crate::topology::status::{ActorStatus, StatusReport};
pub use crate::topology::tokens::{Replies, RequestError};
