//! Models of routers and their pools.

#[cfg(not(pointsman_loom))]
compile_error!("models need the loom mirror: run cargo loom");

mod balancing;
mod block_queue;
mod empty_pool;
mod logics;
mod resizer;
mod routing;
mod routing_leave;
#[path = "../support/mod.rs"]
mod support;
