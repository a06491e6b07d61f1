//! The errors of configuration files.

use crate::settings::build_error::BuildError;

impl BuildError {
    pub(crate) fn config_syntax(error: &toml::de::Error) -> Self {
        let text = error.to_string();
        let fault = match error.span() {
            Some(_) => text.trim_end().to_owned(),
            // Only the error of the recursion limit has no place.
            None => format!("tables or arrays are nested too deeply ({})", text.trim_end()),
        };
        BuildError::ConfigSyntax { fault }
    }

    pub(crate) fn config_key(key: impl Into<String>, fault: impl Into<String>) -> Self {
        BuildError::ConfigKey { key: key.into(), fault: fault.into() }
    }
}
