//! The runtime of all libraries that have none of their own.

use crate::peer::WORKERS;
use tokio::runtime::{Builder, Runtime};

/// tokio's work-stealing runtime with as many workers as everybody has.
pub fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build();
    runtime.expect("threads can be had")
}
