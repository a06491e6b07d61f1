//! Models of what the rest of the engine stands on, and of the models' own helper (`canary`).

#[cfg(not(pointsman_loom))]
compile_error!("models need the loom mirror: run cargo loom");

mod buckets;
mod canary;
mod deployed_children;
mod far_state;
mod far_table;
mod ledger;
mod net_readiness;
mod outbox;
mod per_thread;
mod ports;
mod reclaim;
mod slabs;
mod stand_in_end;
#[path = "../support/mod.rs"]
mod support;
mod watch_pause;
