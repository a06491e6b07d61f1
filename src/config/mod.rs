#![doc = include_str!("../guide/configuration.md")]
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

// Files:
//
// * `engine_config.rs`: settings within a file of the program's own
// * `file.rs`: the sections, and the keys of those that are no settings of their own
// * `key.rs`: how errors name a key
// * `error.rs`: how a fault becomes an error
// * `apply.rs`: applies a file to the settings of a system
// * `print.rs`: prints the settings of a system as a file
//
// Most settings read and write themselves, by `util/values.rs`.

pub(crate) mod apply;
pub(crate) mod engine_config;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod print;

pub use crate::config::engine_config::EngineConfig;
