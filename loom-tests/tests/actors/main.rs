//! Models of actors: how they live, fail and end, what they watch and wait for, and those that are found by a key.

#[cfg(not(pointsman_loom))]
compile_error!("models need the loom mirror: run cargo loom");

mod backoff;
mod cell;
mod events;
mod keyed;
mod stash;
#[path = "../support/mod.rs"]
mod support;
mod timers;
mod watch;
