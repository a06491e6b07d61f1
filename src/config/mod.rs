#![doc = include_str!("../../docs/configuration.md")]

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
