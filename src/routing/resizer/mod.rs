//! Pools whose size follows their load.
//!
//! A `Resizer` says when a pool's size is to be looked at, and what it should be. `loads.rs` is what it is
//! shown, `default.rs` and `exploring.rs` are the two that come with the crate, `core/error.rs` is what can be
//! wrong with their settings; `trigger.rs` is how the senders count and tell the head, `apply.rs` what the
//! head does then.

pub(crate) mod apply;
pub(crate) mod default;
pub(crate) mod exploring;
pub(crate) mod loads;
pub(crate) mod resizer;
pub(crate) mod trigger;
