//! Pools whose size follows their load.
//!
//! A `Resizer` says when a pool's size is to be looked at, and what it should be.
//!
//! - `resizer.rs`: the trait.
//! - `loads.rs`: the loads that a resizer sees.
//! - `default.rs` and `exploring.rs`: the two resizers of the crate; `settings/setting_error.rs` has the error of their settings.
//! - `trigger.rs`: the count of the senders, and their signal to the head.
//! - `apply.rs`: the work of the head upon the signal.

pub(crate) mod apply;
pub(crate) mod default;
pub(crate) mod exploring;
pub(crate) mod loads;
pub(crate) mod resizer;
pub(crate) mod trigger;
