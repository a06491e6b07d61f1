//! Nodes of [pointsman](https://docs.rs/pointsman) over [NATS](https://nats.io) servers.
//!
//! A node of a cluster gets the engine of this crate: [`Nats`] with the addresses of the servers. All nodes of a cluster name
//! servers that are connected with each other.
//!
//! ```
//! use pointsman::remote::Engine;
//! use pointsman_nats::Nats;
//!
//! fn is_engine(_: impl Engine) {}
//!
//! is_engine(Nats::servers(["nats://127.0.0.1:4222"]));
//! is_engine(
//!     Nats::servers(["tls://10.0.0.1:4222", "tls://10.0.0.2:4222"]).ca("ca.pem").certificate("n1.pem", "n1.key"),
//! );
//! ```
//!
//! - **Promises.** Frames of one channel arrive in order, each at most once. A frame that was written to its end is never
//!   written again: when a connection is lost, what was under way is lost with it, and the nodes count it.
//! - **Security.** `tls://` demands that the server's certificate is for its host and signed by the authority of
//!   [`ca`](Nats::ca), and that the server offers TLS before any byte is sent. `nats://` is plain text, and goes to this machine
//!   alone unless [`insecure`](Nats::insecure) allows more. The file `nats-server.conf` of this crate lets each node
//!   publish under its own name alone.
//! - **Faults.** A server that cannot be reached is no error: the engine tries the servers in turn, with pauses of 50 ms to
//!   2 s, and tells the node why ([`ConnectError`]). Settings that can never work are an error when the node starts
//!   ([`SettingsError`]).
//! - **On one machine.** [`DevServer`] starts a server of one's own. The program `pointsman-doctor` says what is reachable,
//!   how fast, and with what permissions.

mod client;
mod codec;
mod connect_error;
mod connection;
mod debug_by_display;
mod dev_server;
mod doctor;
mod engine;
#[doc(hidden)]
pub mod raw_client;
mod server_fault;
mod settings;
mod subjects;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod write_queue;

pub use crate::connect_error::{CertificateFault, CertificateOwner, ConnectError, Stage};
pub use crate::dev_server::{DevServer, DevServerError};
pub use crate::doctor::{Diagnosis, Permission, Report, Throughput};
pub use crate::settings::{Nats, SettingsError};
