//! The whole engine under many schedules: systems of 4 to 8 workers, with real routers, pools and groups.
//!
//! In each scenario the books balance in the end: every letter is handled once, a dead letter, handed back, or dropped
//! by its mailbox's policy; none is left. One sender's letters reach an actor in their order, one thread at a time runs
//! an actor, and no thread is left when the system has ended: shuttle calls that a deadlock, as it does when nobody is
//! woken for a letter that the scenario waits for.

#[cfg(not(pointsman_shuttle))]
compile_error!("scenarios need the shuttle mirror: run cargo test -p shuttle-tests");

mod actors;
mod asks;
mod balancing;
#[path = "../support/cast.rs"]
mod cast;
#[path = "../support/explore.rs"]
mod explore;
mod keyed;
mod pools;
mod systems;
