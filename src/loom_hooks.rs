//! Internals for the models in `loom-tests`; exists only under `--cfg pointsman_loom`.

pub use crate::actor_ref::{ask, promise, reply, reply_counts, slot_memory};
pub use crate::dispatch::blocking::{BlockingPool, Settings as BlockingSettings};
pub use crate::dispatch::pinned::PinnedThreads;
pub use crate::grace;
pub use crate::mailbox;
pub use crate::net::readiness;
pub use crate::scheduler::{self, Pool, Ran, Settings, Task, TaskRef, Turn, TurnHooks};
