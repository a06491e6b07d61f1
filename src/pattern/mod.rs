//! Patterns made of actors, for needs that many programs have. The module `actor` does not know of them.
//!
//! - `backoff.rs`: a supervisor that waits before it makes its child anew.
//! - `behavior.rs`: become and unbecome.
//! - `graceful_stop.rs`: stops an actor and waits for its end.
//! - `inbox.rs`: messages for code outside actors.
//! - `listeners.rs`: a set of references that an actor tells of its events.
//! - `pipe.rs`: the result of a future as a message.
//! - `task_timer.rs`: code that runs later, outside actors.
//! - `temp_actor.rs`: a reference that takes a single answer.

pub(crate) mod backoff;
pub(crate) mod behavior;
pub(crate) mod graceful_stop;
pub(crate) mod inbox;
pub(crate) mod listeners;
pub(crate) mod pipe;
pub(crate) mod task_timer;
pub(crate) mod temp_actor;
#[cfg(all(feature = "tracing", not(pointsman_loom)))]
pub(crate) mod traced;

pub use crate::pattern::backoff::{Backoff, BackoffSupervisor};
pub use crate::pattern::behavior::{Behavior, Behaviors, Handled};
pub use crate::pattern::inbox::{Inbox, InboxError};
pub use crate::pattern::listeners::{ListenerMessage, Listeners};
pub use crate::pattern::pipe::PipeError;
#[cfg(all(feature = "tracing", not(pointsman_loom)))]
pub use crate::pattern::traced::{Traced, TracedBuilder};
pub use crate::settings::setting_error::SettingError;
