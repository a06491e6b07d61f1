//! routing/settings

pub(crate) mod apply;
pub(crate) mod capabilities;
pub(crate) mod check;
pub(crate) mod from_config;
pub(crate) mod known_names;
pub(crate) mod logic_registry;
