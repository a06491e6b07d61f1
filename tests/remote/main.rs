//! Behaviour of several nodes on a network within this process, one module per subject.
#![cfg(feature = "remote")]

mod books;
mod choke;
mod deploy;
mod find;
mod forwards;
mod large;
mod links;
mod network;
mod refs;
#[cfg(feature = "macros")]
mod routers;
mod statistics;
mod third;
mod upgrades;
mod watch;
