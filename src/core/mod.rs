//! core

pub(crate) mod actor_ref;
pub(crate) mod any_ref;
pub(crate) mod ask_counts;
pub(crate) mod cell;
pub(crate) mod children;
pub(crate) mod control;
pub(crate) mod copies;
pub(crate) mod dead_letter_log;
pub(crate) mod dead_letters;
pub(crate) mod deferred_send;
pub(crate) mod dispatchers;
pub(crate) mod error;
pub(crate) mod event_stream;
pub(crate) mod fn_recipient;
pub(crate) mod full_policy;
pub(crate) mod ledger;
pub(crate) mod passivated;
pub(crate) mod pending_send;
pub(crate) mod recipient;
pub(crate) mod ref_identity;
pub(crate) mod routed_asks;
pub(crate) mod strategy;
pub(crate) mod system;
pub(crate) mod wait_for_room;
