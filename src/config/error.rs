//! Errors of configuration files.

use std::fmt;
use std::path::PathBuf;

/// A configuration was not accepted. The error names the key, its value, and the allowed values.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the file system.
        error: std::io::Error,
    },
    /// The text is not TOML.
    Syntax {
        /// The fault with line and column; without them if the text is nested too deeply.
        fault: String,
    },
    /// A key is unknown, or has a value that is not allowed.
    Key {
        /// The key with the sections around it, such as `dispatcher.io.threads`.
        key: String,
        /// The value and the allowed values.
        fault: String,
    },
}

impl ConfigError {
    pub(crate) fn syntax(error: &toml::de::Error) -> Self {
        let text = error.to_string();
        let fault = match error.span() {
            Some(_) => text.trim_end().to_owned(),
            // Only the error of the recursion limit has no place.
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
