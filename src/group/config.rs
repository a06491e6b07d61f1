//! A group configuration is the section of the configuration that belongs to a single group.

/// A group configuration is the section `[topology.<name>]` of the configuration. The group itself knows which keys may
/// stand there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupConfig {
    #[cfg(feature = "config")]
    table: toml::Table,
}

/// This limit bounds how deep tables and lists may be nested in a group's section. Deeper tables can be written by
/// dotted keys below a long header; printed, they have a single header that is longer than the parser reads.
#[cfg(feature = "config")]
pub(crate) const DEPTH_MAX: usize = 64;

#[cfg(feature = "config")]
impl GroupConfig {
    /// Reads the section as a value of a type.
    ///
    /// # Errors
    ///
    /// The error names the key and says what is wrong, as a reason to [reject](crate::topology::GroupMember::validate) the
    /// section.
    pub fn decode<C: serde::de::DeserializeOwned>(&self) -> Result<C, String> {
        serde_path_to_error::deserialize(self.table.clone())
            .map_err(|error| format!("key `{}`: {}", error.path(), error.inner()))
    }

    /// Returns the section as it stands in the file.
    pub fn table(&self) -> &toml::Table {
        &self.table
    }

    /// Changes this section as another section says, key by key.
    pub(crate) fn change(&mut self, said: Self) {
        change(&mut self.table, said.table);
    }

    /// Returns the section as it was read, or what is wrong with it.
    pub(crate) fn of(table: toml::Table) -> Result<Self, String> {
        match table.values().map(depth).max() {
            Some(depth) if depth > DEPTH_MAX => Err(format!(
                "tables or lists in it are nested {depth} deep, must be at most {DEPTH_MAX}: flatten it"
            )),
            _ => Ok(Self { table }),
        }
    }
}

/// Changes this table as another says, key by key.
#[cfg(feature = "config")]
pub(crate) fn change(table: &mut toml::Table, said: toml::Table) {
    for (key, value) in said {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(table)), toml::Value::Table(said)) => change(table, said),
            (_, value) => _ = table.insert(key, value),
        }
    }
}

/// Returns how deep tables and lists are nested in this value.
#[cfg(feature = "config")]
pub(crate) fn depth(value: &toml::Value) -> usize {
    match value {
        toml::Value::Table(table) => 1 + table.values().map(depth).max().unwrap_or(0),
        toml::Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
