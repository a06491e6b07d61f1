//! Nodes of pointsman over NATS servers. This crate is under construction.

mod client;
mod codec;
mod connect_error;
mod debug_by_display;
mod server_fault;
mod settings;
mod write_queue;

pub use crate::connect_error::{CertificateFault, CertificateOwner, ConnectError, Stage};
pub use crate::settings::{Nats, SettingsError};
