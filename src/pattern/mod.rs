//! What is made of actors, for needs that many programs have. Nothing in `actor` knows of it.
//!
//! `backoff.rs` a parent that waits before it makes its child anew; `behavior.rs` become and unbecome;
//! `graceful_stop.rs` to stop an actor and know when it has ended; `inbox.rs` messages for code outside actors;
//! `listeners.rs` whom an actor tells; `pipe.rs` the result of a future as a message; `promise.rs` a
//! reference that is answered once.

mod backoff;
mod behavior;
mod graceful_stop;
mod inbox;
mod listeners;
mod pipe;
mod promise;

pub use backoff::{Backoff, BackoffError, BackoffSupervisor};
pub use behavior::{Behavior, Behaviors, Handling};
pub use inbox::{Inbox, InboxError};
pub use listeners::{Listeners, Listening};
pub use pipe::PipeError;
