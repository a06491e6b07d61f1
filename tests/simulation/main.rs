//! Nodes of a cluster, simulated by seed and virtual time, and the checker of their histories.

mod checker;
mod checker_faults;
mod random;
