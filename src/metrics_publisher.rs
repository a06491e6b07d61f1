//! Hands the statistics of a system to the recorder of the `metrics` facade, again and again.

use crate::actor::schedule_error::ScheduleError;
use crate::core::cancellable::Cancellable;
use crate::core::system::SystemRef;
use crate::telemetry::families::{Family, FamilyKind, Labels, Sink, Value, show};
use crate::telemetry::stats::Stats;
use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit, with_recorder};
use std::fmt;
use std::time::Duration;

const METADATA: Metadata<'static> = Metadata::new("pointsman", Level::INFO, Some(module_path!()));

impl SystemRef {
    /// Hands the statistics of the system to the recorder of the crate `metrics`, after `every` and again so often, by the
    /// system's clock. The names are those of [`Stats::write_openmetrics`]; each sample has a label `system`, too. The
    /// publication ends with the system, or by the [`Cancellable`].
    ///
    /// Counters are set by `absolute`, and gauges are set. Of a histogram, the recorder gets the samples that have come
    /// since the last time, each as the middle of its bucket. Labels that are gone, as those of a removed routee, keep
    /// their last values: let the recorder forget metrics that are idle. The time that workers search is a gauge, since
    /// counters are whole numbers.
    ///
    /// The recorder runs in a task of the [`TaskTimer`](crate::timers::TaskTimer) of the dispatcher `"default"`. A panic of
    /// the recorder ends the publication.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// // A recorder that the program installs, such as that of an exporter, gets the numbers each 10 seconds.
    /// let publication = system.publish_metrics(Duration::from_secs(10))?;
    /// publication.cancel();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ScheduleError::ZeroPeriod`], [`ScheduleError::TooLong`]: `every` is zero, or too long.
    /// [`ScheduleError::ShutDown`]: the system has ended.
    pub fn publish_metrics(&self, every: Duration) -> Result<Cancellable, ScheduleError> {
        let mut before: Option<Stats> = None;
        // Weak: the task must not keep the system that holds it.
        let system = std::sync::Arc::downgrade(self.core());
        let publish = move || {
            let Some(system) = system.upgrade().map(SystemRef::new) else { return };
            let stats = system.stats();
            with_recorder(|recorder| publish(&stats, before.as_ref(), recorder));
            before = Some(stats);
        };
        self.task_timer()?.fixed_rate(every, every, publish)
    }
}

fn publish(stats: &Stats, before: Option<&Stats>, recorder: &dyn Recorder) {
    let mut publication = Publication { recorder, system: &stats.system, described: "", histograms: false };
    // This sink refuses nothing.
    let _ = show(stats, &mut publication);
    publication.histograms = true;
    let _ = match before {
        Some(before) => show(&stats.since(before), &mut publication),
        None => show(stats, &mut publication),
    };
}

/// The sink of one publication.
struct Publication<'a> {
    recorder: &'a dyn Recorder,
    system: &'a str,
    /// The family described last.
    described: &'static str,
    /// Whether to show histograms, or all but histograms.
    histograms: bool,
}

impl Sink for Publication<'_> {
    fn sample(&mut self, family: &Family, labels: &Labels<'_>, value: Value<'_>) -> fmt::Result {
        if (family.kind == FamilyKind::Histogram) != self.histograms {
            return Ok(());
        }
        let whole = matches!(value, Value::Count(_));
        let is_counter = family.kind == FamilyKind::Counter && whole;
        let name = match family.kind {
            FamilyKind::Counter if is_counter => SharedString::from(format!("{}_total", family.name)),
            FamilyKind::Info => SharedString::from(format!("{}_info", family.name)),
            _ => SharedString::const_str(family.name),
        };
        if self.described != family.name {
            self.described = family.name;
            self.describe(family, is_counter, name.clone());
        }
        let labels = labels.iter().map(|(name, text)| Label::new(*name, (*text).to_owned()));
        let labels: Vec<Label> = labels.chain([Label::new("system", self.system.to_owned())]).collect();
        let key = Key::from_parts(name, labels);
        let gauge = |value: f64| self.recorder.register_gauge(&key, &METADATA).set(value);
        match value {
            Value::Count(count) if is_counter => {
                self.recorder.register_counter(&key, &METADATA).absolute(count);
            }
            Value::Count(count) => gauge(count as f64),
            Value::Time(time) => gauge(time.as_secs_f64()),
            Value::Times(times) => {
                let ends = times.buckets().map(|(end, count)| (end.as_secs_f64(), count));
                self.record(&key, 0.0, ends);
            }
            Value::Depths(depths) => {
                self.record(&key, 1.0, depths.buckets().map(|(most, count)| (most as f64, count)));
            }
        }
        Ok(())
    }
}

impl Publication<'_> {
    fn describe(&self, family: &Family, is_counter: bool, name: SharedString) {
        let name = KeyName::from(name);
        let unit = match family.unit {
            "seconds" => Some(Unit::Seconds),
            _ => Some(Unit::Count),
        };
        let help = SharedString::const_str(family.help);
        match family.kind {
            FamilyKind::Counter if is_counter => self.recorder.describe_counter(name, unit, help),
            FamilyKind::Histogram => self.recorder.describe_histogram(name, unit, help),
            FamilyKind::Counter | FamilyKind::Gauge | FamilyKind::Info => {
                self.recorder.describe_gauge(name, unit, help);
            }
        }
    }

    /// Records the samples of buckets, each as the middle of its bucket. A bucket begins `step` behind the end of the
    /// bucket before: numbers of messages are whole.
    fn record(&self, key: &Key, step: f64, buckets: impl Iterator<Item = (f64, u64)>) {
        let histogram = self.recorder.register_histogram(key, &METADATA);
        let mut begin = step;
        for (end, count) in buckets {
            if count > 0 {
                histogram.record_many((begin + end) / 2.0, usize::try_from(count).unwrap_or(usize::MAX));
            }
            begin = end + step;
        }
    }
}
