#![doc = include_str!("../../docs/configuration.md")]
//!
//! [`SystemBuilder`]: crate::SystemBuilder
//! [`SystemBuilder::config_file`]: crate::SystemBuilder::config_file
//! [`SystemBuilder::deploy`]: crate::SystemBuilder::deploy
//! [`SystemBuilder::dispatcher`]: crate::SystemBuilder::dispatcher
//! [`SystemBuilder::seed`]: crate::SystemBuilder::seed
//! [`SystemBuilder::inbox_capacity`]: crate::SystemBuilder::inbox_capacity
//! [`SystemBuilder::supervision`]: crate::SystemBuilder::supervision
//! [`SystemBuilder::dispatcher_alias`]: crate::SystemBuilder::dispatcher_alias
//! [`SystemBuilder::mailbox`]: crate::SystemBuilder::mailbox
//! [`SystemBuilder::routing_logic`]: crate::SystemBuilder::routing_logic

// `file.rs` has the sections and keys, `values.rs` what may stand there, `core/error.rs` what is said if it may not, and
// `key.rs` of which key; `apply.rs` does to a builder what a file says, and `print.rs` is the way back; `router.rs` is
// both for routers.

pub(crate) mod apply;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod print;
pub(crate) mod router;
pub(crate) mod values;

pub use crate::config::error::ConfigError;
pub use crate::config::print::Settings;
