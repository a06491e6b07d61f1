//! Messages and references that leave the process. This part is under construction: no node can be started yet.
//!
//! The parts so far know no actor, no thread and no clock: times come in as values of the system's clock. In reading order:
//!
//! - `wire.rs`: the trait of messages, with a name and a version.
//! - `guarded_deserializer.rs`, `codec.rs`: messages to bytes and back, within limits.
//! - `registry.rs`: the types that a node knows.
//! - `uid.rs`, `canonical_path.rs`: how systems and actors are named on the wire.
//! - `frame.rs`, `batch.rs`: the layout of frames.
//! - `outbox.rs`: what waits to be written to a peer, in lanes.
//! - `engine.rs`, `peer_outbox.rs`: what carries frames between nodes, and how it takes batches.
//! - `credit.rs`: how much may be under way in a lane, and what was lost.
//! - `control.rs`, `data_gate.rs`: control messages, once and in order, and behind the data that they wait for.
//! - `detector.rs`, `tombstones.rs`, `association.rs`: whether the peer is there, and which peer it is.

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
pub(crate) mod canonical_path; // the one form of a path on the wire
pub(crate) mod frame; // the beginning of each frame
#[cfg_attr(not(any(test, pointsman_mirror)), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod batch; // the envelopes of a frame, with their dictionary
#[cfg_attr(not(any(test, pointsman_mirror)), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod outbox; // what waits to be written to a peer, in lanes
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod credit; // how much may be under way in a lane
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod control; // the numbered stream of control messages
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod data_gate; // control messages that wait for data
#[cfg(feature = "remote")]
pub(crate) mod detector; // how suspicious a silence is
#[cfg(feature = "remote")]
pub(crate) mod tombstones; // systems that were declared down
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "nodes are not built yet"))]
pub(crate) mod association; // greeting, suspicion, quarantine and a new beginning

#[cfg(feature = "remote")]
pub(crate) mod engine; // what carries frames between nodes
#[cfg(feature = "remote")]
pub(crate) mod peer_outbox; // an outbox as the engine sees it

#[cfg(feature = "remote")]
pub use crate::remote::engine::{
    Channel, ChannelKind, Engine, EngineError, Fabric, Identity, Inbound, NotNow,
};
#[cfg(feature = "remote")]
pub use crate::remote::peer_outbox::PeerOutbox;
#[cfg(feature = "remote")]
pub use crate::remote::wire::{Wire, wire_id};
#[cfg(all(feature = "remote", feature = "macros"))]
pub use pointsman_macros::Wire;
