//! Routers that follow what the system says of their paths.

pub(crate) mod known_names; // the names that sections may use
pub(crate) mod logic_registry; // logics of the user's own by name
pub(crate) mod capabilities; // what a plan knows of its messages
pub(crate) mod check; // what is wrong with a section
pub(crate) mod apply; // a section and a plan together
pub(crate) mod from_config; // plans that leave everything to the section
