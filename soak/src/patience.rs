//! Waiting for what must come, and giving up on what does not.

use std::thread;
use std::time::Duration;

/// Pauses that are waited for.
const PAUSES: u32 = 30_000;
const PAUSE: Duration = Duration::from_millis(1);

/// How long something may take. Counts pauses and not time: a process that is stopped from outside loses none.
pub struct Patience(u32);

impl Patience {
    /// For half a minute at least.
    pub fn new() -> Self {
        Self(PAUSES)
    }

    /// Waits a moment; `false` once that has been often enough.
    #[must_use]
    pub fn wait(&mut self) -> bool {
        thread::sleep(PAUSE);
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }

    /// There is progress: as much as at the beginning.
    pub fn renew(&mut self) {
        *self = Self::new();
    }
}
