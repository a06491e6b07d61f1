//! What is made of actors, for needs that many programs have. Nothing in `actor` knows of it.
//!
//! `backoff.rs` a parent that waits before it makes its child anew; `behavior.rs` become and unbecome;
//! `graceful_stop.rs` to stop an actor and know when it has ended; `inbox.rs` messages for code outside actors;
//! `listeners.rs` whom an actor tells; `pipe.rs` the result of a future as a message; `promise.rs` a
//! reference that is answered once.

pub(crate) mod backoff;
pub(crate) mod behavior;
pub(crate) mod graceful_stop;
pub(crate) mod inbox;
pub(crate) mod listeners;
pub(crate) mod pipe;
pub(crate) mod task_timer;
pub(crate) mod temp_actor;

pub use crate::pattern::backoff::{Backoff, BackoffSupervisor};
pub use crate::pattern::behavior::{Behavior, Behaviors, Handled};
pub use crate::pattern::inbox::{Inbox, InboxError};
pub use crate::pattern::listeners::{ListenerMessage, Listeners};
pub use crate::pattern::pipe::PipeError;
pub use crate::settings::backoff_error::BackoffError;
