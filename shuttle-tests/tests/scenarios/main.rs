//! The whole engine under many schedules.

#[cfg(not(pointsman_shuttle))]
compile_error!("scenarios need the shuttle mirror: run cargo test -p shuttle-tests");

#[path = "../support/cast.rs"]
mod cast;
#[path = "../support/explore.rs"]
mod explore;
mod pools;
