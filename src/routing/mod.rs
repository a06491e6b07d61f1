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
//!    is no actor, and hands it to the `Routing` there (`reference.rs`), which holds the
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
//! | a [group by path](RouterBuilder::group_at) | are whoever stands at a path when a message is sent | `by_path.rs` |
//! | a [`RouterValue`] | are listed in a value that routes without a head, inside an actor or outside all of them | `value.rs` |
//!
//! When to take which, with a drawing and an example of each: [the guide](crate::guide::routers).

// In reading order:
//
// - What routes: `logic.rs` what a logic is, `routees.rs` the table that it chooses from, `reference.rs` what
//   stands behind the reference and runs it, `route_context.rs` one message's way and its books; then a file
//   for each logic. What several logics need: `generators.rs`, random numbers; `race.rs`, one question to
//   several routees; `key.rs` and `hash_ring.rs`, consistent hashing. Outside this folder:
//   `actor_ref/attempt.rs`, one routee's part in a race; `actor_ref/copies.rs`, which messages are not routed
//   again; `dispatch/balancing.rs`, the queue that a balancing pool shares, and `actor/balanced.rs`, a
//   routee's turn with it.
// - `ask_all.rs`: one request to every routee, with an answer of each.
// - What may be a routee besides a reference: `by_path.rs` the actors at a path, `several.rs` several and
//   none.
// - How a router comes to be: `builder.rs` says what its routees are, `plan.rs` all else, `create.rs` makes
//   it. `deployed/` is how it follows what the system says of its path: its `mod.rs` names the files.
// - What manages it: `router.rs` the handle, `manage.rs` the messages to the head, `head.rs` the head,
//   `board.rs` what the head keeps over its restarts; `leaving.rs` how routees leave and a router ends, with
//   `actor/leave.rs` for the routee's part; `old_tables.rs` how changes wait for memory; `controller.rs` an actor that changes the logic; `resizer/` how a
//   pool's size follows its load; `found_empty.rs` pools that end with the message that finds them empty.
// - `value.rs`: routing without a head.
// - `goakt/`: all this described in GoAkt's words.

mod ask_all;
mod balancing;
mod board;
mod broadcast;
mod broadcast_if;
mod builder;
mod by_path;
mod consistent_hashing;
mod controller;
mod create;
mod deployed;
mod found_empty;
mod generators;
pub mod goakt;
mod hash_ring;
mod head;
mod hops;
mod key;
mod keyed_pool;
mod leaving;
mod logic;
mod manage;
mod old_tables;
mod plan;
mod race;
mod random;
mod reference;
pub(crate) mod resizer;
mod round_robin;
mod route_context;
mod routees;
mod router;
mod scatter_gather;
mod several;
mod smallest_mailbox;
mod tail_chopping;
mod two_choices;
mod value;

pub use ask_all::{AskEach, EachRoutee, RouteeReply};
pub use balancing::Balancing;
pub use broadcast::Broadcast;
pub use broadcast_if::BroadcastIf;
pub use builder::RouterBuilder;
pub use by_path::WildcardError;
pub use consistent_hashing::{ConsistentHashing, Keyed, WithoutKey};
pub use deployed::SectionFault;
#[cfg(feature = "config")]
pub(crate) use deployed::{Known, check_section, key_path};
pub(crate) use deployed::{Logics, check_sections};
pub use hash_ring::{Ring, RingError};
pub(crate) use hops::apart;
pub use key::{HashKey, KeySink};
pub use logic::{Pick, RoutingLogic};
pub use manage::{
    AddRoutee, AdjustPoolSize, Drain, GetRoutees, GetRouteesInfo, Manage, ManageError, RemoveRoutee,
    ResizeTo, RouteeInfo,
};
pub use plan::RouterPlan;
#[cfg(feature = "macros")]
pub use pointsman_macros::HashKey;
pub use random::Random;
pub use resizer::{
    AskResizer, DefaultResizer, OptimalSizeExploringResizer, Resizer, ResizerError, RouteeLoads,
};
pub use round_robin::RoundRobin;
pub use route_context::RouteContext;
pub use routees::{Routee, Routees};
pub use router::Router;
pub use scatter_gather::ScatterGatherFirstCompleted;
pub use smallest_mailbox::SmallestMailbox;
pub use tail_chopping::TailChopping;
pub use two_choices::TwoChoices;
pub use value::{LogicError, RouterValue};

pub use crate::deployment::{ExploringResizerSettings, ResizerSettings, RouterSettings};
