//! What can be wrong with a configuration file.

use std::fmt;
use std::path::PathBuf;

/// Why a configuration was not accepted. Names the key, what stands there, and what may stand there.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The text is no TOML.
    Syntax {
        /// What is wrong, with line and column; without them if it is nested too deeply.
        fault: String,
    },
    /// A key that nobody knows, or a value that its key cannot have.
    Key {
        /// The key with the sections around it, such as `dispatcher.io.threads`.
        key: String,
        /// What stands there and what may stand there.
        fault: String,
    },
}

impl ConfigError {
    pub(crate) fn syntax(error: &toml::de::Error) -> Self {
        let text = error.to_string();
        let fault = match error.span() {
            Some(_) => text.trim_end().to_owned(),
            // Only its limit of recursion has no place.
            None => format!("tables or arrays are nested too deeply ({})", text.trim_end()),
        };
        ConfigError::Syntax { fault }
    }

    pub(crate) fn key(key: impl Into<String>, fault: impl Into<String>) -> Self {
        ConfigError::Key { key: key.into(), fault: fault.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Read { file, error } => {
                write!(f, "cannot read the configuration file {}: {error}", file.display())
            }
            ConfigError::Syntax { fault } => write!(f, "the configuration is no TOML: {fault}"),
            ConfigError::Key { key, fault } => write!(f, "configuration key `{key}`: {fault}"),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConfigError::Read { error, .. } => Some(error),
            _ => None,
        }
    }
}
