//! Actors: state behind a mailbox, run one message at a time.
//!
//! In reading order: `mod.rs` the [`Actor`] trait; `cell.rs` what an actor is in memory; `turn.rs` what a
//! worker does with it; `lifecycle.rs` how it begins, fails, restarts and ends; `supervise.rs` how it judges its
//! children, and `child_hooks.rs` a parent that does so in its own way; `sender.rs` who it is that sends; `leave_router.rs` how it leaves a router, and `passivate.rs`
//! how it ends when nothing is left to do; `context.rs` what a running actor sees, with `watch.rs`,
//! `timers.rs`, `receive_timeout.rs`, `stash.rs` and `unhandled.rs`; `shared_queue_turn.rs` the part of a routee
//! that shares a queue with others; `builder.rs`, `mailbox_choice.rs`, `spawn.rs`, `children.rs` how actors come to
//! be; `path/` what they are called and `find/` how they are found; `system/` the whole.

pub(crate) mod actor;
pub(crate) mod ask_or_back;
pub(crate) mod builder;
pub(crate) mod capacity;
pub(crate) mod cell;
pub(crate) mod child_hooks;
pub(crate) mod context;
pub(crate) mod guardians;
pub(crate) mod leave_router;
pub(crate) mod lifecycle;
pub(crate) mod mailbox_choice;
pub(crate) mod passivate;
pub(crate) mod private;
#[cfg(any(feature = "testkit", pointsman_loom))]
pub(crate) mod quiet;
pub(crate) mod receive_timeout;
pub(crate) mod recipe;
pub(crate) mod shared_queue_turn;
pub(crate) mod skip_unwanted;
pub(crate) mod spawn;
pub(crate) mod stash;
pub(crate) mod stash_buffer;
pub(crate) mod stepping;
pub(crate) mod supervise;
pub(crate) mod system_end;
pub(crate) mod timer_table;
pub(crate) mod timers;
pub(crate) mod turn;
pub(crate) mod unhandled;
pub(crate) mod watch;
