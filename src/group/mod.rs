//! Groups are level two of the routing: a group runs an actor for each key, and takes messages to the actors of keys.
//!
//! ```text
//!              reference      key router                key table
//!   sender ──▶ ActorRef<M> ── KeyRoute::Unicast(k) ───▶ actor of key k ──▶ mailbox
//!                                                       created if absent
//! ```
//!
//! All actors of a group are of a single kind. The group's reference is an [`ActorRef`](crate::ActorRef). The sender's
//! thread routes each message: the group's key router answers with a [`KeyRoute`] that names keys,
//! and the message goes straight into the mailboxes of their actors. An absent actor is created on the way. At most one
//! actor is created for a key, however many senders race, and the message that created the actor is its first message.
//!
//! Level one, routes between groups, is in [`topology`](crate::topology). Two-level routing is elfo's; the typed form
//! is ours.

// The user's side:
//
// * `builder.rs` describes and creates a group, and `group.rs` is its handle.
// * `key.rs` says which types can be keys, and `key_name.rs` makes the name of an actor from its key.
// * `key_route.rs` is the answer of a key router, and `router_state.rs` is a state that it may have.
//
// A message's way:
//
// * `to_keys.rs` takes a message to its keys.
// * `key_table.rs` finds the actor of a key.
// * `state.rs` is shared by the references, the handle and the head, and creates the actor of a key.
// * `key_entry.rs` keeps the key, the name and the restart count over all lives of an actor, and `recipe.rs` makes the
//   actor's state.
// * `successors.rs` keeps the actors that wait for the end of a passivated actor, and `forward.rs` takes a waiting
//   message to the next actor of its key.
//
// Failures and ends:
//
// * `head.rs` is the parent of the actors, and `supervision.rs` decides about failed and ended actors.
// * `restart_policy.rs` says when an actor comes again, and `effective_policy.rs` says which policy counts.
// * `pending_restarts.rs` lists the actors that wait for their restart, and `delayed_restart.rs` restarts them.
// * `termination.rs` ends a group.
//
// Statuses and configuration:
//
// * `status.rs` keeps the statuses of actors and tells subscribers, and `subscribe.rs` adds subscribers.
// * `self_report.rs` lets an actor set its own status and restart policy.
// * `config.rs` is a group's section of the configuration, and `config_hooks.rs` lets a group follow it.
// * `validate_config.rs` asks actors whether they could follow a section.

pub(crate) mod builder;
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod key_name;
pub(crate) mod key_route;
pub(crate) mod router_state;
pub(crate) mod state;
pub(crate) mod key_table;
pub(crate) mod key_entry;
pub(crate) mod recipe;
pub(crate) mod to_keys;
pub(crate) mod forward;
pub(crate) mod successors;
pub(crate) mod head;
pub(crate) mod supervision;
pub(crate) mod restart_policy;
pub(crate) mod effective_policy;
pub(crate) mod pending_restarts;
pub(crate) mod delayed_restart;
pub(crate) mod termination;
pub(crate) mod status;
pub(crate) mod subscribe;
pub(crate) mod self_report;
pub(crate) mod config;
pub(crate) mod config_hooks;
pub(crate) mod validate_config;

pub use crate::group::builder::{GroupBuilder, GroupPlan, Singleton};
pub use crate::group::config::GroupConfig;
pub use crate::group::group::Group;
pub use crate::group::key::GroupKey;
pub use crate::group::key_entry::SpawnCause;
pub use crate::group::key_route::KeyRoute;
pub use crate::group::restart_policy::{RestartPolicy, WhileRestarting};
pub use crate::group::router_state::RouterState;
pub use crate::group::status::{ActorStatus, StatusReport};
pub use crate::group::validate_config::ValidateConfig;
pub use crate::settings::setting_error::SettingError;
