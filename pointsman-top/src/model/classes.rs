//! Classes of actors over time.

use crate::model::histogram::Histogram;
use crate::model::series::Series;
use crate::snapshot::{Class, Snapshot};
use std::collections::BTreeMap;

/// The classes that the snapshots have, by their names.
#[derive(Debug, Clone, Default)]
pub struct Classes(BTreeMap<String, ClassHistory>);

/// A class over time.
#[derive(Debug, Clone, Default)]
pub struct ClassHistory {
    handled: Option<u64>,
    /// Messages a second.
    pub rates: Series,
    /// The 99th percentiles of the waits of each interval, in nanoseconds.
    pub wait_p99: Series,
    /// The 99th percentiles of the handlers of each interval, in nanoseconds.
    pub handle_p99: Series,
    /// The waits since the system began.
    pub wait: Histogram,
    /// The handlers since the system began.
    pub handle: Histogram,
    /// The waits since the reading before.
    pub wait_lately: Histogram,
    /// The handlers since the reading before.
    pub handle_lately: Histogram,
}

impl Classes {
    /// The history of a class.
    pub fn get(&self, name: &str) -> Option<&ClassHistory> {
        self.0.get(name)
    }

    /// Takes the classes of a snapshot, `span` seconds after the last one.
    pub(super) fn take(&mut self, snapshot: &Snapshot, span: Option<f64>) {
        let mut before = std::mem::take(&mut self.0);
        for class in &snapshot.classes {
            let mut history = before.remove(&class.name).unwrap_or_default();
            history.take(class, span);
            self.0.insert(class.name.clone(), history);
        }
    }

    /// Notes a reading without an answer.
    pub(super) fn miss(&mut self) {
        for history in self.0.values_mut() {
            history.push(None);
        }
    }

    /// Forgets the counts: the next ones are of a new system.
    pub(super) fn forget_counts(&mut self) {
        for history in self.0.values_mut() {
            history.handled = None;
            history.wait = Histogram::default();
            history.handle = Histogram::default();
        }
    }
}

impl ClassHistory {
    fn take(&mut self, class: &Class, span: Option<f64>) {
        let rate = match (self.handled, span) {
            (Some(before), Some(span)) => {
                class.handled.checked_sub(before).map(|handled| handled as f64 / span)
            }
            _ => None,
        };
        let (wait, handle) = (Histogram::of(&class.wait), Histogram::of(&class.handle));
        self.wait_lately = wait.since(&self.wait);
        self.handle_lately = handle.since(&self.handle);
        self.handled = Some(class.handled);
        self.wait = wait;
        self.handle = handle;
        self.push(rate);
    }

    fn push(&mut self, rate: Option<f64>) {
        let p99 = |histogram: &Histogram| histogram.quantile(0.99).map(|nanos| nanos as f64);
        self.rates.push(rate);
        self.wait_p99.push(rate.and_then(|_| p99(&self.wait_lately)));
        self.handle_p99.push(rate.and_then(|_| p99(&self.handle_lately)));
    }
}
