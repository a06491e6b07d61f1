//! Routers: a message is routed in its sender's thread, by the reference that it is sent through.
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
//! One message's way:
//!
//! 1. [`tell`](crate::ActorRef::tell) counts the message as sent, sees that what stands behind the reference
//!    is no actor, and hands it to the `Routing` there (`routing_ref.rs`), which holds the
//!    [logic](RoutingLogic) and shares with the head the published table of routees. What comes back from it
//!    is a dead letter; `try_tell` hands it back.
//! 2. `Routing::deliver` counts a hop, so that a circle of routers is found; refuses if the router has
//!    stopped; and reads the table, without a read-modify-write.
//! 3. [`RoutingLogic::route`] runs over the table, with a [`RouteContext`] that keeps the books. By default
//!    it [selects](RoutingLogic::select) one routee, and another for each that turns out to have stopped
//!    (`logic.rs`).
//! 4. [`RouteContext::deliver`] pushes the message straight into that routee's mailbox, and wakes it if it
//!    was idle. If the routee is a router, its way begins here at 2.
//! 5. The context settles what has no outcome yet (`route_context.rs`). Where nobody took the message, and
//!    the head has published another table meanwhile, it is routed again from 2 on.
//!
//! The head never sees an ordinary message: it manages.
//!
//! | logic | chooses | file |
//! |---|---|---|
//! | [`RoundRobin`] | each in turn, one cursor for each sender, an actor or a thread | `round_robin.rs` |
//! | [`Random`] | any, with equal chance | `random.rs` |
//! | [`SmallestMailbox`] | the one with the least to do | `smallest_mailbox.rs` |
//! | [`TwoChoices`] | of two drawn at random, the one with less to do | `two_choices.rs` |
//! | [`Balancing`] | nobody: the routees of a [balancing pool](RouterBuilder::balancing_pool) share one queue, and take from it | `balancing.rs` |
//! | [`Broadcast`] | all | `broadcast.rs` |
//! | [`BroadcastIf`] | all for some messages, and another logic for the rest | `broadcast_if.rs` |
//! | [`ScatterGatherFirstCompleted`] | all, and takes the first success | `scatter_gather.rs` |
//! | [`TailChopping`] | one, and another each time that no answer has come for a while | `tail_chopping.rs` |
//! | [`ConsistentHashing`] | by a key in the message, so that equal keys meet the same routee | `consistent_hashing.rs` |
//! | [`RoutingLogic`] | what you say | `logic.rs` |
//!
//! | router | whose routees | file |
//! |---|---|---|
//! | a [pool](RouterBuilder::pool) | are made and supervised by its head; as many as a [`Resizer`] wants, if there is one | `builder.rs`, `resizer/` |
//! | a [keyed pool](RouterBuilder::keyed_pool) | the same, and take the message without the key that it is routed by | `keyed_pool.rs` |
//! | a [group](RouterBuilder::group) | are references that others made | `builder.rs` |
//! | a [group by path](RouterBuilder::group_at) | are whoever stands at a path when a message is sent | `path_group.rs` |
//! | a [`RouterValue`] | are listed in a value that routes without a head, inside an actor or outside all of them | `router_value.rs` |
//!
//! When to take which, with a drawing and an example of each: [the guide](crate::guide::routers).

// In reading order:
//
// - What routes: `logic.rs` what a logic is, `routees.rs` the table that it chooses from, `routing_ref.rs` what
//   stands behind the reference and runs it, `route_context.rs` one message's way and its books; then a file
//   for each logic. What several logics need: `thread_rng.rs`, random numbers; `first_reply.rs`, one question to
//   several routees; `key.rs` and `hash_ring.rs`, consistent hashing. Outside this folder:
//   `ask/fork.rs`, one routee's part in a race; `core/copies.rs`, which messages are not routed
//   again; `dispatch/shared_queue.rs`, the queue that a balancing pool shares, and `actor/shared_queue_turn.rs`, a
//   routee's turn with it.
// - `ask_all.rs`: one request to every routee, with an answer of each.
// - What may be a routee besides a reference: `path_group.rs` the actors at a path, `routee_set.rs` several and
//   none.
// - How a router comes to be: `builder.rs` says what its routees are, `plan.rs` all else, `create.rs` makes
//   it. `deployed/` is how it follows what the system says of its path: its `mod.rs` names the files.
// - What manages it: `router.rs` the handle, `messages.rs` the messages to the head, `head.rs` the head,
//   `head_state.rs` what the head keeps over its restarts; `removal.rs` how routees leave and a router ends, with
//   `actor/leave_router.rs` for the routee's part; `old_tables.rs` how changes wait for memory; `controller.rs` an actor that changes the logic; `resizer/` how a
//   pool's size follows its load; `empty_pool.rs` pools that end with the message that finds them empty.
// - `router_value.rs`: routing without a head.
// - `goakt/`: all this described in GoAkt's words.

pub(crate) mod ask_all;
pub(crate) mod balancing;
pub(crate) mod builder;
pub(crate) mod counted_routing;
pub(crate) mod create;
#[cfg(feature = "goakt")]
pub mod goakt;
pub(crate) mod head;
pub(crate) mod keyed_pool;
pub(crate) mod logic;
pub(crate) mod logics;
pub(crate) mod path_group;
pub(crate) mod path_routee;
pub(crate) mod pick;
pub(crate) mod plan;
pub(crate) mod resizer;
pub(crate) mod route_context;
pub(crate) mod routee_set;
pub(crate) mod routees;
pub(crate) mod router;
pub(crate) mod router_info;
pub(crate) mod router_value;
pub(crate) mod routing_ref;
pub(crate) mod settings;

pub use crate::routing::ask_all::{AskEach, EachRoutee, RouteeReply};
pub use crate::routing::balancing::Balancing;
pub use crate::routing::builder::RouterBuilder;
pub use crate::routing::head::messages::{
    AddRoutee, AdjustPoolSize, AskResizer, Drain, GetRoutees, GetRouteesInfo, Manage, ManageError,
    RemoveRoutee, ResizeTo, RouteeInfo,
};
pub use crate::routing::logic::RoutingLogic;
pub use crate::routing::logics::broadcast::Broadcast;
pub use crate::routing::logics::broadcast_if::BroadcastIf;
pub use crate::routing::logics::consistent_hashing::{ConsistentHashing, Keyed, WithoutKey};
pub use crate::routing::logics::hash_key::{HashKey, KeySink};
pub use crate::routing::logics::hash_ring::{Ring, RingError};
pub use crate::routing::logics::random::Random;
pub use crate::routing::logics::round_robin::RoundRobin;
pub use crate::routing::logics::scatter_gather::ScatterGatherFirstCompleted;
pub use crate::routing::logics::smallest_mailbox::SmallestMailbox;
pub use crate::routing::logics::tail_chopping::TailChopping;
pub use crate::routing::logics::two_choices::TwoChoices;
pub use crate::routing::path_group::WildcardError;
pub use crate::routing::pick::Pick;
pub use crate::routing::plan::RouterPlan;
pub use crate::routing::resizer::default::DefaultResizer;
pub use crate::routing::resizer::exploring::OptimalSizeExploringResizer;
pub use crate::routing::resizer::loads::RouteeLoads;
pub use crate::routing::resizer::resizer::Resizer;
pub use crate::routing::route_context::RouteContext;
pub use crate::routing::routees::{Routee, Routees};
pub use crate::routing::router::Router;
pub use crate::routing::router_value::{LogicError, RouterValue};
pub use crate::settings::resizer_error::ResizerError;
pub use crate::settings::router::{ExploringResizerSettings, ResizerSettings, RouterSettings};
pub use crate::settings::section_fault::SectionFault;
#[cfg(feature = "macros")]
pub use pointsman_macros::HashKey;
