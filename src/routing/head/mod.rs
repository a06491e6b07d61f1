//! routing/head

pub(crate) mod controller;
pub(crate) mod empty_pool;
pub(crate) mod head;
pub(crate) mod messages;
pub(crate) mod old_tables;
pub(crate) mod removal;
pub(crate) mod state;
