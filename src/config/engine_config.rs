//! The settings of the engine as a part of a file of the program's own.

use crate::util::values::Section;
use serde::{Deserialize, Deserializer};

/// Settings of the engine in a section of a file that is the program's own: the field of a struct that serde reads.
///
/// The keys are those of a [configuration](crate::config). They are checked when
/// [`SystemBuilder::config_section`](crate::SystemBuilder::config_section) applies them, and not when they are read.
///
/// ```
/// use pointsman::config::EngineConfig;
/// use pointsman::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Config {
///     port: u16,
///     #[serde(default)]
///     engine: EngineConfig,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config: Config = toml::from_str(
///     r#"
///     port = 7000
///
///     [engine.dispatcher.default]
///     threads = 2
///     "#,
/// )?;
/// let system = System::builder("shop").config_section("engine", &config.engine)?.build()?;
/// assert!(system.settings().contains("threads = 2"));
/// # assert_eq!(config.port, 7000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineConfig(toml::Table);

impl EngineConfig {
    /// Makes settings of a table, such as a section of a file that is already read.
    pub fn from_table(table: toml::Table) -> Self {
        Self(table)
    }

    /// Returns the settings as a table.
    pub fn as_table(&self) -> &toml::Table {
        &self.0
    }
}

impl From<toml::Table> for EngineConfig {
    fn from(table: toml::Table) -> Self {
        Self::from_table(table)
    }
}

impl<'de> Deserialize<'de> for EngineConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Section::deserialize(deserializer).map(|Section(table)| Self(table))
    }
}
