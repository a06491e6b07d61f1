//! Routers that follow the settings of the system for their paths.

pub(crate) mod known_names; // the names that sections may use
pub(crate) mod logic_registry; // logics of the user's own by name
pub(crate) mod capabilities; // the capabilities of a plan's messages
pub(crate) mod check; // the checks of a section
pub(crate) mod apply; // a section and a plan together
pub(crate) mod from_config; // plans that leave everything to the section
