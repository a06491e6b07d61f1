#![doc = include_str!("../../docs/configuration.md")]

// `file.rs` has the sections and keys, `values.rs` what may stand there, `error.rs` what is said if it may not, and
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

use crate::config::file::File;
use crate::core::system::{SystemBuilder, SystemRef};
use std::path::Path;

impl SystemBuilder {
    /// Changes what was set so far as a [configuration](crate::config) in TOML says.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: the text is no TOML, or a key or value in it is wrong. What can only be known when all is
    /// said, such as a circle of aliases or of phases, is an error of [`build`](Self::build).
    pub fn config(self, toml: &str) -> Result<Self, ConfigError> {
        let deserializer = toml::Deserializer::parse(toml).map_err(|error| ConfigError::syntax(&error))?;
        let file: File = serde_path_to_error::deserialize(deserializer)
            .map_err(|error| ConfigError::key(key::whole(error.path()), error.inner().message()))?;
        apply::apply(file, self)
    }

    /// As [`config`](Self::config), from a file.
    ///
    /// # Errors
    ///
    /// As [`config`](Self::config); and [`ConfigError::Read`].
    pub fn config_file(self, file: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let file = file.as_ref();
        let text = std::fs::read_to_string(file)
            .map_err(|error| ConfigError::Read { file: file.to_owned(), error })?;
        self.config(&text)
    }
}

impl SystemRef {
    /// All settings of the system, whoever has made them. It prints as a [configuration](crate::config) that
    /// makes the same system, but for what a file cannot say, as a function: comments at its beginning name that.
    pub fn settings(&self) -> &Settings {
        &self.core().settings
    }
}
