//! The telemetry of one system: its settings, its watchdog, and what was shown before.

use crate::core::extensions::Extension;
use crate::core::system::{SystemCore, SystemRef};
use crate::sync::{HashMap, Mutex, lock};
use crate::telemetry::telemetry::Telemetry;
use crate::telemetry::watchdog::Watchdog;
use std::sync::Arc as StdArc;

/// The part of a system that this folder keeps.
pub(crate) struct TelemetryState {
    settings: Mutex<Telemetry>,
    pub(crate) watchdog: StdArc<Watchdog>,
    pub(crate) shown: Mutex<Shown>,
}

/// The numbers that the last statistics have shown.
#[derive(Default)]
pub(crate) struct Shown {
    /// The number of statistics made so far.
    pub sequence: u64,
    /// The handled messages of each class. An actor that ends between two steps of the count is missed by both, and its
    /// messages must not seem to be gone.
    pub handled: HashMap<String, u64>,
}

impl Extension for TelemetryState {}

impl TelemetryState {
    /// Measures nothing, and has no watchdog.
    pub(crate) fn off() -> Self {
        Self { settings: Mutex::new(Telemetry::off()), watchdog: StdArc::default(), shown: Mutex::default() }
    }

    /// Applies settings from now on.
    pub(crate) fn set(&self, system: &StdArc<SystemCore>, telemetry: Telemetry) {
        let mut settings = lock(&self.settings);
        system.classes.set_max(telemetry.class_count_max());
        system.meter.set(telemetry.one_block_in(), telemetry.one_turn_in());
        self.watchdog.set(system, telemetry.patience());
        *settings = telemetry;
    }
}

impl SystemRef {
    /// Changes the settings of the system's telemetry while it runs. A thread heeds it within 64 turns.
    pub fn set_telemetry(&self, telemetry: Telemetry) {
        self.core().extensions.get::<TelemetryState>().set(self.core(), telemetry);
    }

    /// The handlers that are stuck now, without a walk over the actors.
    #[cfg(feature = "console")]
    pub(crate) fn stuck_handlers(&self) -> Vec<crate::core::lifecycle::Stuck> {
        self.core().extensions.get::<TelemetryState>().watchdog.stuck()
    }

    /// The settings of the system's telemetry.
    pub fn telemetry(&self) -> Telemetry {
        lock(&self.core().extensions.get::<TelemetryState>().settings).clone()
    }
}
