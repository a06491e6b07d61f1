//! Waiting for what must come, and giving up on what does not.

use std::thread;
use std::time::Duration;

/// Pauses that are waited for: short ones first, since most of what is waited for comes soon.
const SHORT: (u32, Duration) = (500, Duration::from_millis(1));
const LONG: (u32, Duration) = (3_000, Duration::from_millis(10));

/// How long something may take. Counts pauses and not time: a process that is stopped from outside loses none.
#[derive(Default)]
pub struct Patience {
    paused: u32,
}

impl Patience {
    /// For half a minute at least.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits a moment; `false` once that has been often enough.
    #[must_use]
    pub fn wait(&mut self) -> bool {
        thread::sleep(if self.paused < SHORT.0 { SHORT.1 } else { LONG.1 });
        self.paused += 1;
        self.paused < SHORT.0 + LONG.0
    }

    /// There is progress: as much as at the beginning.
    pub fn renew(&mut self) {
        *self = Self::new();
    }
}
