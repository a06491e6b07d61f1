//! group

pub(crate) mod builder;
pub(crate) mod config;
pub(crate) mod config_hooks;
pub(crate) mod delayed_restart;
pub(crate) mod effective_policy;
pub(crate) mod entry;
pub(crate) mod forward;
pub(crate) mod group;
pub(crate) mod head;
pub(crate) mod key;
pub(crate) mod key_name;
pub(crate) mod key_router;
pub(crate) mod key_table;
pub(crate) mod outcome;
pub(crate) mod pending_restarts;
pub(crate) mod recipe;
pub(crate) mod restart_policy;
pub(crate) mod route;
pub(crate) mod self_report;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod subscribe;
pub(crate) mod successors;
pub(crate) mod supervision;
pub(crate) mod termination;
