//! The clock and the alarms here serve asks through references that belong to no system.

use crate::sync::process_wide;
use crate::time::alarm::{AlarmKey, Alarms};
use crate::time::clock::Clock;
use crate::time::timers::Timers;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The clock of asks through references that belong to no system.
pub(crate) static NO_SYSTEM: NoSystem = NoSystem;

/// Measures by the machine's clock, and rings alarms from a thread that starts with the first alarm and never ends.
pub(crate) struct NoSystem;

process_wide! {
    /// The alarms of [`NO_SYSTEM`].
    static ALARMS: Timers<Infallible> = Timers::new("pointsman", Arc::new(Machine));
}

/// The clock of [`ALARMS`].
pub(crate) struct Machine;

impl Clock for Machine {
    fn now(&self) -> Duration {
        NO_SYSTEM.now()
    }
}

impl Alarms for NoSystem {
    fn now(&self) -> Duration {
        static START: std::sync::LazyLock<std::time::Instant> =
            std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }

    fn is_real(&self) -> bool {
        true
    }

    fn wake_at(&self, at: Duration, waker: Waker) -> AlarmKey {
        match ALARMS.start() {
            Ok(()) => ALARMS.wake_at(at, waker),
            // Without a thread, only its answer wakes the future.
            Err(_) => AlarmKey((0, 0)),
        }
    }

    fn is_set(&self, key: AlarmKey) -> bool {
        ALARMS.is_set(key)
    }

    fn cancel(&self, key: AlarmKey) {
        let alarms: &Timers<Infallible> = &ALARMS;
        Alarms::cancel(alarms, key);
    }
}
