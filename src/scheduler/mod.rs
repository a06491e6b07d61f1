#![doc = include_str!("README.md")]

pub(crate) mod pool; // the pool of workers
pub mod task; // what runs
pub mod worker; // the main loop of a worker
pub mod injector; // the way in from other threads
pub mod counters; // who is asleep
pub mod sleep; // how a worker falls asleep and is woken
pub mod current; // what the calling thread is
pub(crate) mod launch; // starts threads all or none
pub mod affinity; // pins threads to cores
pub(crate) mod backoff; // waits for a preempted sender
pub mod error; // why a pool cannot start or end
