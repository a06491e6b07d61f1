//! Nodes of a cluster, simulated by seed and virtual time, and the checker of their histories.
#![cfg(feature = "remote")]

mod accounts;
mod checker;
mod checker_children;
mod checker_faults;
mod cluster;
mod deployments;
mod links;
mod messages;
mod random;
