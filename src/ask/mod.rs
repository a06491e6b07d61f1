//! ask

pub(crate) mod ask;
pub(crate) mod ask_or_back;
pub(crate) mod asking;
pub(crate) mod courtesy;
pub(crate) mod error;
pub(crate) mod expiring;
pub(crate) mod fork;
pub(crate) mod reply;
pub(crate) mod slot;
pub(crate) mod slot_pool;
pub(crate) mod spin;
pub(crate) mod timekeeper;
pub(crate) mod to_actor;
pub(crate) mod traced;
pub(crate) mod undelivered;
