//! Pointsman.
#![cfg_attr(not(pointsman_loom), deny(missing_docs))]

// Internals are `pub` inside private modules, so that `loom_hooks` can show them to the models.
#[cfg(pointsman_loom)]
pub mod loom_hooks;
mod sync;
