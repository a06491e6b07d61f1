//! Models of what runs actors: pools of workers, threads that may block, threads that come on demand.

#[cfg(not(pointsman_loom))]
compile_error!("models need the loom mirror: run cargo loom");

mod blocking;
mod event_wait;
mod on_demand;
mod scheduler;
mod sleep;
#[path = "../support/mod.rs"]
mod support;
