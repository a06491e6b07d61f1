//! Messages and references that leave the process. This part is under construction: no node can be started yet.
//!
//! The parts so far know no actor, no thread and no clock: times come in as values of the system's clock. In reading order:
//!
//! - `wire.rs`: the trait of messages, with a name and a version.
//! - `guarded_deserializer.rs`, `codec.rs`: messages to bytes and back, within limits.
//! - `registry.rs`: the types that a node knows.
//! - `uid.rs`: how a system is named on the wire.

#[cfg(feature = "remote")]
pub(crate) mod wire; // the trait of messages, with name and version
#[cfg(feature = "remote")]
pub(crate) mod guarded_deserializer; // budgets for nesting and elements
#[cfg(feature = "remote")]
pub(crate) mod codec; // messages to bytes and back
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod registry; // the types that a node knows
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod uid; // the number of one start of a system

#[cfg(feature = "remote")]
pub use crate::remote::wire::{Wire, wire_id};
#[cfg(all(feature = "remote", feature = "macros"))]
pub use pointsman_macros::Wire;
