#![doc = include_str!("README.md")]

pub(crate) mod pool; // the pool of workers
pub(crate) mod task; // a task and its ownership token
pub(crate) mod worker; // the main loop of a worker
pub(crate) mod injector; // takes tasks from threads outside the pool
pub(crate) mod counters; // which workers sleep, and how many search
pub(crate) mod sleep; // how a worker falls asleep and is woken
#[cfg_attr(not(feature = "net"), allow(dead_code, reason = "only sockets are a source of events"))]
pub(crate) mod event_wait; // sleeping workers wait for outside events
pub(crate) mod wake_sample; // which wakes are measured outside of a worker's turns
pub(crate) mod current; // whether the calling thread is a worker
pub(crate) mod launch; // starts all threads of a pool or none
pub(crate) mod affinity; // pins threads to cores
pub(crate) mod backoff; // waits for a preempted sender
pub(crate) mod gather; // waits until more messages of a stream are there
pub(crate) mod error; // why a pool cannot start or end
