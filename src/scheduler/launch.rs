//! Starts all threads of a pool or none.

use crate::scheduler::affinity::unpinned;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex, lock};
use std::io;

/// The meeting point of a start: each worker reports here and waits for the decision to run.
#[derive(Clone, Debug)]
pub(crate) struct Launch(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reported_count: usize,
    /// The first core that could not be had.
    fault: Option<usize>,
    /// Whether the workers shall run; `None` until that is decided.
    go: Option<bool>,
}

impl Launch {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared { state: Mutex::new(State::default()), changed: Condvar::new() }))
    }

    /// Reports that a worker is in its place, or which core the worker could not have. Returns whether the worker shall
    /// run.
    pub(crate) fn report(&self, fault: Option<usize>) -> bool {
        let mut state = lock(&self.0.state);
        state.reported_count += 1;
        state.fault = state.fault.or(fault);
        self.0.changed.notify_all();
        loop {
            if let Some(go) = state.go {
                return go;
            }
            state = self.0.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Waits for `count` reports; returns the first core that could not be had.
    pub(crate) fn wait_for_all(&self, count: usize) -> Option<usize> {
        let mut state = lock(&self.0.state);
        while state.reported_count < count {
            state = self.0.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        state.fault
    }

    pub(crate) fn decide(&self, go: bool) {
        lock(&self.0.state).go = Some(go);
        self.0.changed.notify_all();
    }
}

/// Starts a thread named after its pool.
pub(crate) fn spawn(
    pool: &str,
    index: usize,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // A zero byte in a thread's name would panic.
    let name = format!("{}-{index}", pool.replace('\0', ""));
    thread::Builder::new().name(name).spawn(unpinned(body))
}

/// Joins a thread of the engine. Such a thread does not unwind. If one does, its message is on stderr already, and the
/// caller goes on to the other threads. A thread whose thread-locals end the pool cannot wait for itself, so it is
/// skipped.
pub(crate) fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != thread::current().id() {
        let _ = thread.join();
    }
}
