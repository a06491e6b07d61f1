//! Behaviour of several nodes on a network within this process, one module per subject.
#![cfg(feature = "remote")]

#[cfg(all(feature = "macros", feature = "testkit"))]
mod alike;
mod books;
mod choke;
mod deploy;
mod find;
mod forwards;
mod large;
mod links;
mod network;
#[cfg(feature = "macros")]
mod pools;
mod refs;
#[cfg(feature = "macros")]
mod router_factories;
#[cfg(feature = "macros")]
mod routers;
#[cfg(all(feature = "macros", feature = "testkit"))]
mod same_pool;
mod statistics;
mod third;
#[cfg(feature = "macros")]
mod topologies;
mod upgrades;
mod watch;
