#![doc = include_str!("README.md")]

pub(crate) mod pool; // the pool of workers
pub mod task; // a task and its ownership token
pub mod worker; // the main loop of a worker
pub mod injector; // takes tasks from threads outside the pool
pub mod counters; // which workers sleep, and how many search
pub mod sleep; // how a worker falls asleep and is woken
pub mod current; // whether the calling thread is a worker
pub(crate) mod launch; // starts all threads of a pool or none
pub mod affinity; // pins threads to cores
pub(crate) mod backoff; // waits for a preempted sender
pub mod error; // why a pool cannot start or end
