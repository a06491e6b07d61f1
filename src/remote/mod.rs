//! Messages and references that leave the process.
//!
//! A [`Node`] makes a system known to others: by a name, an [engine](Engine) that carries frames, and a [policy](Policy) which says
//! what may come in. [`SystemRef::resolve`](crate::SystemRef::resolve) finds an actor of another node by its path; the reference
//! that it returns is told, asked, watched and routed to like any other. Each link to another node has an account,
//! [`LinkReport`], of all that was sent on it. Messages that cross implement [`Wire`]. [`InProcess`] is the engine for systems of one
//! process; the crate `pointsman-nats` has the engine for several machines.
//!
//! [The guide](crate::guide::remoting) shows two nodes, and says what is promised and what is not.
//!
//! # Files
//!
//! The pure parts know no actor, no thread and no clock: times come in as values of the system's clock. In reading order:
//!
//! - `wire.rs`: the trait of messages, with a name and a version.
//! - `guarded_deserializer.rs`, `codec.rs`: messages to bytes and back, within limits.
//! - `registry.rs`: the types that a node knows.
//! - `uid.rs`, and `canonical_path.rs` of `path/`: how systems and actors are named on the wire.
//! - `frame.rs`, `batch.rs`, `fragment.rs`, `control_message.rs`: the layout of frames.
//! - `outbox.rs`: what waits to be written to a peer, in lanes.
//! - `assembly.rs`: large messages from their fragments.
//! - `credit.rs`: how much may be under way in a lane, and what was lost.
//! - `control.rs`, `data_gate.rs`: control messages, once and in order, and behind the data that they wait for.
//! - `limits.rs`, `policy.rs`: how much may come in, and what, from which peers.
//! - `settings.rs`: these and all other settings of a node, as a file has them.
//! - `far_table.rs`, `far_state.rs`: references to actors of a peer, and whether those take messages.
//! - `chokes.rs`: the actors here to which a peer is told to send no more.
//! - `ports.rs`: the reply ports that were sent to others.
//! - `detector.rs`, `tombstones.rs`, `association.rs`: whether the peer is there, and which peer it is.
//!
//! The others put them together:
//!
//! - `engine.rs`, `peer_outbox.rs`: what carries frames between nodes, and how it takes batches; `in_process.rs` is one.
//! - `node.rs`, `remote.rs`: the node as its system describes and sees it.
//! - `hub.rs`, `hub_settings.rs`: the associations of a node, and all that comes in.
//! - `link.rs`, `lane.rs`: the link to one start of a peer, and the actors that handle its batches.
//! - `far.rs`, `encoder.rs`, `decoder.rs`, `reply_ports.rs`, `refused.rs`: references, messages, and reply ports that cross.
//! - `asking_each.rs`, `split_ports.rs`: requests that several actors of a group answer.
//! - `stand_ins.rs`, `stand_in.rs`, `peer_watcher.rs`: how actors are watched and stopped across nodes.
//! - `deploy.rs`, `factories.rs`, `deploy_message.rs`: actors that nodes make on each other, and how they are asked for.
//! - `deployment_state.rs`, `deployment.rs`, `deployments.rs`, `early_messages.rs`: the actors that this node makes on others.
//! - `deployed_table.rs`: the actors that others make here.
//! - `child_stand_in.rs`, `parent_stand_in.rs`: the two ends of their supervision; `deploying.rs` leads messages there.
//! - `resolving.rs`, `far_selection.rs`, `far_identify.rs`: how an actor is found by its path, and how several are.
//! - `node_event.rs`, `link_report.rs`, `refusals.rs`, `log_limit.rs`: what a node tells of itself, and how often it logs.

#[cfg(feature = "remote")]
pub(crate) mod wire; // the trait of messages, with name and version
#[cfg(feature = "remote")]
pub(crate) mod guarded_deserializer; // budgets for nesting and elements
#[cfg(feature = "remote")]
pub(crate) mod codec; // messages to bytes and back
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "messages without their type are encoded by tests alone"))]
pub(crate) mod registry; // the types that a node knows
#[cfg(feature = "remote")]
pub(crate) mod uid; // the number of one start of a system
pub(crate) mod frame; // the beginning of each frame
pub(crate) mod batch; // the envelopes of a frame, with their dictionary
pub(crate) mod fragment; // the pieces of a message that is too large for an envelope
#[cfg(feature = "remote")]
pub(crate) mod deploy_message; // the parts of control messages about deployed actors
#[cfg(feature = "remote")]
pub(crate) mod control_message; // the messages of control frames
pub(crate) mod outbox; // what waits to be written to a peer, in lanes
#[cfg(feature = "remote")]
pub(crate) mod assembly; // a large message from its fragments
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "reports of lanes are not built yet"))]
pub(crate) mod credit; // how much may be under way in a lane
#[cfg(feature = "remote")]
pub(crate) mod control; // the numbered stream of control messages
#[cfg(feature = "remote")]
pub(crate) mod data_gate; // control messages that wait for data
#[cfg(feature = "remote")]
pub(crate) mod detector; // how suspicious a silence is
#[cfg(feature = "remote")]
pub(crate) mod tombstones; // systems that were declared down
#[cfg(feature = "remote")]
pub(crate) mod association; // greeting, suspicion, quarantine and a new beginning
#[cfg(feature = "remote")]
pub(crate) mod limits; // what a node takes in, keeps and sends at most
#[cfg(feature = "remote")]
#[cfg_attr(not(test), expect(dead_code, reason = "notices come in without a question to the policy"))]
pub(crate) mod policy; // what may come in, from which peers
#[cfg_attr(not(any(test, pointsman_mirror)), expect(dead_code, reason = "references are not counted yet"))]
pub(crate) mod far_table; // the references to actors of a peer, each once
pub(crate) mod far_state; // whether an actor elsewhere takes messages
#[cfg(feature = "remote")]
pub(crate) mod chokes; // the actors that have too many messages of a peer
#[cfg_attr(not(any(test, pointsman_mirror)), expect(dead_code, reason = "ports are not reported yet"))]
pub(crate) mod ports; // the reply ports that were sent to others
#[cfg(feature = "remote")]
pub(crate) mod engine; // what carries frames between nodes
#[cfg(feature = "remote")]
pub(crate) mod peer_outbox; // an outbox as the engine sees it
#[cfg(all(feature = "remote", feature = "testkit"))]
#[doc(hidden)]
pub mod fuzz_hooks; // functions for the fuzz targets of this repository

#[cfg(feature = "remote")]
pub(crate) mod in_process; // the engine for systems of one process
#[cfg(feature = "remote")]
pub(crate) mod node; // the description of a node
#[cfg(feature = "remote")]
pub(crate) mod on_quarantine; // the reaction of a node that was declared down
#[cfg(feature = "remote")]
pub(crate) mod remote; // the handle to a node
#[cfg(feature = "remote")]
pub(crate) mod hub_settings; // what a hub goes by
#[cfg(feature = "remote")]
pub(crate) mod hub; // the associations of a node
#[cfg(feature = "remote")]
pub(crate) mod link; // the link to one start of a peer
#[cfg(feature = "remote")]
pub(crate) mod lane; // the actor that handles the batches of a lane
#[cfg(feature = "remote")]
pub(crate) mod far; // references to actors of other nodes
#[cfg(feature = "remote")]
pub(crate) mod encoder; // a message and the references in it, to bytes
#[cfg(feature = "remote")]
pub(crate) mod decoder; // the same, from bytes
#[cfg(feature = "remote")]
pub(crate) mod asking_each; // requests of which each actor of a group answers
#[cfg(feature = "remote")]
pub(crate) mod split_ports; // the ports of such a request, among its copies
#[cfg(feature = "remote")]
pub(crate) mod refused; // why an ask gets no reply, as it is written
#[cfg(feature = "remote")]
pub(crate) mod reply_ports; // reply ports that cross to other nodes
#[cfg(feature = "remote")]
pub(crate) mod resolving; // the request for a reference by its path
#[cfg(feature = "remote")]
pub(crate) mod far_selection; // what a path or pattern selects at another node
#[cfg(feature = "remote")]
pub(crate) mod far_identify; // the request to actors elsewhere for their references
pub(crate) mod stand_ins; // the stand-ins of a link, each of which ends once
#[cfg(feature = "remote")]
pub(crate) mod stand_in; // the cell that is watched in the place of an actor elsewhere
#[cfg(feature = "remote")]
pub(crate) mod peer_watcher; // the actor that watches for a peer
#[cfg(feature = "remote")]
pub(crate) mod deploy; // the trait of actors that other nodes may make
#[cfg(feature = "remote")]
pub(crate) mod factories; // the types of actors that other nodes may make here
pub(crate) mod deployment_state; // an actor that this node has asked a peer to make, as its stand-in sees it
#[cfg(feature = "remote")]
pub(crate) mod deployment; // an actor that this node has asked a peer to make
pub(crate) mod deployments; // all of them, for one peer
pub(crate) mod early_messages; // numbered messages that wait until their link is active
pub(crate) mod deployed_table; // the actors here that a peer has made
#[cfg(feature = "remote")]
pub(crate) mod deploy_backoff; // backoff supervisors of such actors
#[cfg(feature = "remote")]
pub(crate) mod child_stand_in; // the child in the place of an actor that this node has made elsewhere
#[cfg(feature = "remote")]
pub(crate) mod parent_stand_in; // the parent of an actor that another node has made here
#[cfg(feature = "remote")]
pub(crate) mod leaving; // routees elsewhere that leave their router
#[cfg(feature = "remote")]
pub(crate) mod deploying; // where messages about deployments go
#[cfg(feature = "remote")]
pub(crate) mod node_event; // events of a node
#[cfg(feature = "remote")]
pub(crate) mod link_report; // the account of a link
#[cfg(feature = "remote")]
pub(crate) mod refusals; // what was refused on a link, by reasons
#[cfg(feature = "remote")]
pub(crate) mod log_limit; // a line of the log a second

#[cfg(all(test, feature = "remote"))]
mod hostile_peer; // a peer that sends whatever it likes

#[cfg(all(feature = "config", feature = "remote"))]
pub(crate) mod settings; // the settings of a node, and their keys in a file

#[cfg(feature = "remote")]
pub use crate::remote::deploy::Deploy;
#[cfg(feature = "remote")]
pub use crate::remote::detector::{DetectorError, DetectorSettings};
#[cfg(feature = "remote")]
pub use crate::remote::engine::{
    Channel, ChannelKind, Engine, EngineError, Fabric, Identity, Inbound, NotNow,
};
#[cfg(feature = "remote")]
pub use crate::remote::in_process::InProcess;
#[cfg(feature = "remote")]
pub use crate::remote::limits::{LimitError, Limits};
#[cfg(feature = "remote")]
pub use crate::remote::link_report::{LinkReport, LinkState};
#[cfg(feature = "remote")]
pub use crate::remote::node::{Node, NodeError};
#[cfg(feature = "remote")]
pub use crate::remote::node_event::{DownReason, NodeEvent, RefusalReason};
#[cfg(feature = "remote")]
pub use crate::remote::on_quarantine::OnQuarantine;
#[cfg(feature = "remote")]
pub use crate::remote::peer_outbox::PeerOutbox;
#[cfg(feature = "remote")]
pub use crate::remote::policy::{Policy, PolicyError};
#[cfg(feature = "remote")]
pub use crate::remote::refusals::Refusals;
#[cfg(feature = "remote")]
pub use crate::remote::remote::Remote;
#[cfg(feature = "remote")]
pub use crate::remote::resolving::{ResolveError, Resolving};
#[cfg(feature = "remote")]
pub use crate::remote::wire::{Wire, wire_id};
#[cfg(all(feature = "remote", feature = "macros"))]
pub use pointsman_macros::Wire;
