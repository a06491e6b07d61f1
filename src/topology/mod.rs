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

mod ask_all;
mod board;
mod builder;
mod carries;
mod config;
mod configured;
mod drawing;
mod error;
mod group;
mod head;
mod heirs;
mod inner;
mod keeper;
mod key;
mod key_name;
mod member;
mod outcome;
mod outlet;
mod plan;
mod policy;
mod request;
mod restart;
mod seed;
mod sending;
mod sown;
mod spread;
mod start;
mod status;
mod stop;
mod subscribe;
mod succession;
pub(crate) mod table;
mod termination;
mod tokens;
mod waiting;
mod ward;

pub use crate::actor_ref::{Mode, Report};
pub use ask_all::AskAll;
pub use builder::{GroupBuilder, GroupPlan, Singleton};
pub use carries::Carries;
pub use config::GroupConfig;
pub(crate) use config::Sections;
pub use drawing::Connection;
pub use error::{Refusal, Rejection, TopologyError};
pub use group::Group;
pub use inner::{InnerRouter, MapRouter, RouterState};
pub use key::GroupKey;
pub use member::{Member, Mount};
pub use outcome::Outcome;
pub use outlet::Outlet;
pub use plan::{GroupInfo, Local, Mounted, Topology};
pub use policy::PolicyError;
pub use request::Requesting;
pub use restart::{RestartPolicy, WhileRestarting};
pub use seed::{Start, StartCause};
pub use sending::Sending;
pub use status::{ActorStatus, StatusReport};
pub use tokens::{Replies, RequestError};
