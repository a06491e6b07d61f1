//! Behaviour of several nodes on a network within this process, one module per subject.
#![cfg(feature = "remote")]

mod books;
mod deploy;
mod find;
mod forwards;
mod links;
mod network;
mod refs;
#[cfg(feature = "macros")]
mod routers;
mod statistics;
mod third;
#[cfg(feature = "macros")]
mod topologies;
mod upgrades;
mod watch;
