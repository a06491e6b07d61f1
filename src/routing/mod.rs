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
//! The reference holds the [logic](RoutingLogic) and the published table of routees. Reading the table costs
//! no read-modify-write; choosing costs what the logic costs; then the message goes straight into the chosen
//! routee's mailbox. The head never sees an ordinary message: it manages.
//!
//! | router | chooses |
//! |---|---|
//! | [`RoundRobin`] | each in turn, one cursor for each sending thread |
//! | [`Random`] | any, with equal chance |
//! | [`SmallestMailbox`] | the one with the least to do |
//! | [`TwoChoices`] | of two drawn at random, the one with less to do |
//! | [`Broadcast`] | all |
//! | [`ScatterGatherFirstCompleted`] | all, and takes the first success |
//! | [`TailChopping`] | one, and another each time that no answer has come for a while |
//! | [`ConsistentHashing`] | by a key in the message, so that equal keys meet the same routee |
//! | [`Balancing`] | nobody: the routees share one queue, and take from it |
//! | [`RoutingLogic`] | what you say |
//!
//! A [`RouterValue`] routes without an actor: inside one, or outside all of them. When to take which, with a drawing and
//! an example of each: [the guide](crate::guide::routers).

// In reading order: `logic.rs` what a logic is; `routees.rs` the table; `reference.rs` the reference that
// routes; `router.rs` the handle that manages, by the messages in `manage.rs`; `builder.rs`, `plan.rs` and
// `create.rs` how a router is described and made, `by_path.rs` over paths; `board.rs` and `head.rs` its head,
// `leaving.rs` how it ends and routees leave, `controller.rs` who else changes it; `value.rs` routing without a head,
// `several.rs` several routees in the place of one; then a file for each logic, and `race.rs` for the two that wait
// for replies; `resizer/` is how a pool's size follows its load, and `deployed/` how a router follows what the system
// says of its path.

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
mod hash_ring;
mod head;
mod key;
mod leaving;
mod logic;
mod manage;
mod plan;
mod race;
mod random;
mod reference;
pub(crate) mod resizer;
mod round_robin;
mod routees;
mod router;
mod scatter_gather;
mod several;
mod smallest_mailbox;
mod tail_chopping;
mod two_choices;
mod value;

pub use balancing::Balancing;
pub use broadcast::Broadcast;
pub use broadcast_if::BroadcastIf;
pub use builder::RouterBuilder;
pub use consistent_hashing::{ConsistentHashing, Keyed};
pub use deployed::SectionFault;
pub(crate) use deployed::{Logics, check_sections};
#[cfg(all(feature = "config", not(pointsman_loom)))]
pub(crate) use deployed::{check_section, key_path};
pub use hash_ring::{Ring, RingError};
pub use key::{HashKey, KeySink};
pub use logic::{Pick, RouteContext, RoutingLogic};
pub use manage::{AddRoutee, AdjustPoolSize, Drain, GetRoutees, Manage, ManageError, RemoveRoutee, ResizeTo};
pub use plan::RouterPlan;
pub use random::Random;
pub use resizer::{
    AskResizer, DefaultResizer, OptimalSizeExploringResizer, Resizer, ResizerError, RouteeLoads,
};
pub use round_robin::RoundRobin;
pub use routees::{Routee, Routees};
pub use router::Router;
pub use scatter_gather::ScatterGatherFirstCompleted;
pub use smallest_mailbox::SmallestMailbox;
pub use tail_chopping::TailChopping;
pub use two_choices::TwoChoices;
pub use value::{LogicError, RouterValue};

pub use crate::deployment::{ExploringResizerSettings, ResizerSettings, RouterSettings};
