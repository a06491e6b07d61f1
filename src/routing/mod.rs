//! Routers: the reference of a router routes each message on the thread of its sender.
//!
//! ```text
//!                     tell                        ┌────────────┐
//!   sender ──▶ ActorRef<M> ── logic.select ──────▶│ routee 0   │
//!   sender ──▶ ActorRef<M> ── over the table ────▶│ routee 1   │◀─┐
//!                     ▲                           └────────────┘  │ creates, watches,
//!                     │ publishes                 ┌────────────┐  │ supervises
//!                     └───────────────────────────│ head actor │──┘
//!                                                 └────────────┘
//! ```
//!
//! The way of a message:
//!
//! 1. [`tell`](crate::ActorRef::tell) counts the message as sent, sees that the recipient behind the reference is no
//!    actor, and hands the message to the `Routing` there (`routing_ref.rs`). `Routing` holds the [logic](RoutingLogic)
//!    and shares the published routee table with the head. A message that comes back is a dead letter; `try_tell` hands
//!    it back.
//! 2. `Routing::deliver` counts a hop, so that a circle of routers is found; refuses if the router has stopped; and
//!    reads the table, without a read-modify-write.
//! 3. [`RoutingLogic::route`] runs over the table, with a [`RouteContext`] that counts the deliveries. By default it
//!    [selects](RoutingLogic::select) a routee, and another for each that turns out to have stopped (`logic.rs`).
//! 4. [`RouteContext::deliver`] pushes the message straight into the mailbox of that routee, and wakes the routee if it
//!    was idle. If the routee is a router, the way of the message begins there at 2.
//! 5. The context settles deliveries that have no outcome yet (`route_context.rs`). Where no routee took the message,
//!    and the head has published another table meanwhile, the message is routed again from 2 on.
//!
//! The head sees no ordinary message: it manages the routees.
//!
//! | logic | chooses | file |
//! |---|---|---|
//! | [`RoundRobin`] | each in turn, one cursor for each sender, an actor or a thread | `round_robin.rs` |
//! | [`Random`] | any, with equal chance | `random.rs` |
//! | [`SmallestMailbox`] | the routee with the least to do | `smallest_mailbox.rs` |
//! | [`TwoChoices`] | of two drawn at random, the routee with less to do | `two_choices.rs` |
//! | [`Balancing`] | none: the routees of a [balancing pool](RouterBuilder::balancing_pool) share a queue, and take from it | `balancing.rs` |
//! | [`Broadcast`] | all | `broadcast.rs` |
//! | [`BroadcastIf`] | all for some messages, and another logic for the rest | `broadcast_if.rs` |
//! | [`ScatterGatherFirstCompleted`] | all, and takes the first success | `scatter_gather.rs` |
//! | [`TailChopping`] | a routee, and another each time that no answer has come for a while | `tail_chopping.rs` |
//! | [`ConsistentHashing`] | by a key in the message, so that equal keys meet the same routee | `consistent_hashing.rs` |
//! | [`RoutingLogic`] | by your own code | `logic.rs` |
//!
//! | router | its routees | file |
//! |---|---|---|
//! | a [pool](RouterBuilder::pool) | are made and supervised by its head; as many as a [`Resizer`] wants, if there is one | `builder.rs`, `resizer/` |
//! | a [keyed pool](RouterBuilder::keyed_pool) | the same, and take the message without the key that it is routed by | `keyed_pool.rs` |
//! | a [deployable pool](RouterBuilder::deployable_pool) | are those of a pool, on this node or on others | `remote_pool.rs` |
//! | a [group](RouterBuilder::group) | are references that others made | `builder.rs` |
//! | a [group by path](RouterBuilder::group_at) | are the actors at a path when a message is sent | `path_group.rs` |
//! | a [`RouterValue`] | are listed in a value that routes without a head, inside an actor or outside all of them | `router_value.rs` |
//!
//! When to take which, with a drawing and an example of each: [the guide](crate::guide::routers).

// In reading order:
//
// - `logic.rs`: the trait of logics.
// - `routees.rs`, `routee_set.rs`, `path_group.rs`, `path_routee.rs`: the table, and routees that are more than a
//   reference.
// - `routing_ref.rs`, `router_info.rs`: the recipient behind the reference of a router, which runs the logic, and the
//   part that never changes. `counted_routing.rs`: the same for a pool with a resizer.
// - `route_context.rs`: the way of a message, and the count of its deliveries.
// - `logics/`: a file for each logic but `balancing.rs`, which makes its routees' queue. Several logics share `thread_rng.rs` (random numbers), `first_reply.rs` (a
//   request to several routees), `hash_key.rs` and `hash_ring.rs` (consistent hashing).
// - `ask_all.rs`: a request to every routee, with an answer of each.
// - `builder.rs`, `plan.rs`, `create.rs`: the kind of the routees, all else of the description, and the creation.
// - `keyed_pool.rs`: pools whose routees take the bare message of a keyed one.
// - `remote_pool.rs`, `pool_nodes.rs`: pools whose routees other nodes may make. `router_factory.rs`, `deployed_head.rs`: routers
//   that other nodes may make.
// - `settings/`: routers that follow the settings of the system for their paths.
// - `router.rs`: the handle.
// - `table_token.rs`: tells when no sender can read a table any more.
// - `head/`: the head, its messages, its state, the removal of routees, and the controller.
// - `resizer/`: pools whose size follows their load.
// - `router_value.rs`: routing without a head.
// - `goakt/`: routers in GoAkt's words.
//
// Outside this folder:
//
// - `ask/fork.rs`: the part of a routee in a first-reply race.
// - `core/copies.rs`: messages that are not routed again.
// - `actor/leave_router.rs`: the part of a routee in its removal.
// - `dispatch/shared_queue.rs`, `actor/shared_queue_turn.rs`: the queue of a balancing pool, and a routee's turn with
//   it.

pub(crate) mod ask_all;
pub(crate) mod balancing;
pub(crate) mod builder;
pub(crate) mod counted_routing;
pub(crate) mod create;
#[cfg(feature = "remote")]
pub(crate) mod deployed_head;
#[cfg(feature = "goakt")]
pub mod goakt;
pub(crate) mod head;
pub(crate) mod keyed_pool;
pub(crate) mod logic;
pub(crate) mod logics;
pub(crate) mod path_group;
pub(crate) mod path_routee;
pub(crate) mod plan;
#[cfg(feature = "remote")]
pub(crate) mod pool_nodes;
#[cfg(feature = "remote")]
pub(crate) mod remote_pool;
pub(crate) mod resizer;
pub(crate) mod route_context;
pub(crate) mod routee_set;
pub(crate) mod routees;
pub(crate) mod router;
#[cfg(feature = "remote")]
pub(crate) mod router_factory;
pub(crate) mod router_info;
pub(crate) mod router_value;
pub(crate) mod router_view;
pub(crate) mod routing_ref;
pub(crate) mod settings;
pub(crate) mod table_token;

pub use crate::ask::ask_all::AskAll;
pub use crate::core::actor_ref::RecipientLoad;
pub use crate::routing::balancing::Balancing;
pub use crate::routing::builder::RouterBuilder;
pub use crate::routing::head::messages::{
    AddRoutee, AdjustPoolSize, Drain, GetRoutees, Manage, ManageError, RemoveRoutee, RouteeInfo,
};
pub use crate::routing::logic::RoutingLogic;
pub use crate::routing::logics::broadcast::Broadcast;
pub use crate::routing::logics::broadcast_if::BroadcastIf;
pub use crate::routing::logics::consistent_hashing::{ConsistentHashing, Keyed};
pub use crate::routing::logics::hash_key::{HashKey, KeySink};
pub use crate::routing::logics::hash_ring::Ring;
pub use crate::routing::logics::random::Random;
pub use crate::routing::logics::round_robin::RoundRobin;
pub use crate::routing::logics::scatter_gather::ScatterGatherFirstCompleted;
pub use crate::routing::logics::smallest_mailbox::SmallestMailbox;
pub use crate::routing::logics::tail_chopping::TailChopping;
pub use crate::routing::logics::two_choices::TwoChoices;
pub use crate::routing::plan::{ReplaceableLogic, RouterPlan};
pub use crate::routing::resizer::loads::RouteeLoads;
pub use crate::routing::resizer::resizer::Resizer;
pub use crate::routing::route_context::RouteContext;
pub use crate::routing::routees::{Routee, Routees};
pub use crate::routing::router::Router;
pub use crate::routing::router_value::RouterValue;
pub use crate::settings::resizer::{DefaultResizer, OptimalSizeExploringResizer};
pub use crate::settings::router::RouterSettings;
pub use crate::settings::section_fault::SectionFault;
pub use crate::settings::setting_error::SettingError;
#[cfg(feature = "macros")]
pub use pointsman_macros::HashKey;
