//! Nodes of pointsman over NATS servers. This crate is under construction.

mod client;
mod codec;
mod connect_error;
mod connection;
mod debug_by_display;
mod dev_server;
mod engine;
mod server_fault;
mod settings;
mod subjects;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod write_queue;

pub use crate::connect_error::{CertificateFault, CertificateOwner, ConnectError, Stage};
pub use crate::dev_server::{DevServer, DevServerError};
pub use crate::settings::{Nats, SettingsError};
