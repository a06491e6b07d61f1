//! The statistics for the recorder of the `metrics` facade.

use crate::support::wait_until;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use pointsman::prelude::*;
use pointsman::telemetry::Telemetry;
use pointsman::time::ManualClock;
use pointsman::timers::ScheduleError;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// The values by the text of their keys. One for all tests, since the recorder is the process's.
#[derive(Default)]
struct Recorded {
    counters: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    samples: BTreeMap<String, Vec<(f64, usize)>>,
    described: BTreeMap<String, String>,
}

fn recorded() -> &'static Mutex<Recorded> {
    static RECORDED: OnceLock<Mutex<Recorded>> = OnceLock::new();
    RECORDED.get_or_init(Mutex::default)
}

struct OwnRecorder;

/// A metric that writes to what is recorded.
struct Metric(String);

impl CounterFn for Metric {
    fn increment(&self, _: u64) {
        panic!("{}: the counts are absolute", self.0);
    }
    fn absolute(&self, value: u64) {
        recorded().lock().unwrap().counters.insert(self.0.clone(), value);
    }
}

impl GaugeFn for Metric {
    fn increment(&self, _: f64) {
        panic!("{}: gauges are set", self.0);
    }
    fn decrement(&self, _: f64) {
        panic!("{}: gauges are set", self.0);
    }
    fn set(&self, value: f64) {
        recorded().lock().unwrap().gauges.insert(self.0.clone(), value);
    }
}

impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }
    fn record_many(&self, value: f64, count: usize) {
        recorded().lock().unwrap().samples.entry(self.0.clone()).or_default().push((value, count));
    }
}

fn metric(key: &Key) -> Arc<Metric> {
    let labels: Vec<String> =
        key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
    Arc::new(Metric(format!("{} {}", key.name(), labels.join(" "))))
}

impl Recorder for OwnRecorder {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, help: SharedString) {
        recorded().lock().unwrap().described.insert(key.as_str().to_owned(), help.into_owned());
    }
    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe_counter(key, unit, help);
    }
    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        assert!(unit.is_some());
        self.describe_counter(key, unit, help);
    }
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(metric(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(metric(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(metric(key))
    }
}

struct Counts;

impl Actor for Counts {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn the_recorder_gets_absolute_counts_gauges_and_new_samples() {
    // Fails where another test has installed it.
    let _ = metrics::set_global_recorder(OwnRecorder);
    let clock = ManualClock::new();
    let telemetry = Telemetry::off().turns(NonZeroU32::MIN);
    let system = System::builder("published").clock(clock.clone()).telemetry(telemetry).build().unwrap();
    let actor = system.actor("counts").class("counted").spawn(|| Counts).unwrap();
    let every = Duration::from_secs(10);
    let publication = system.publish_metrics(every).unwrap();
    let counter = |key: &str| recorded().lock().unwrap().counters.get(key).copied();
    let class = || system.stats().class("counted").cloned().unwrap();
    let mut sent = 0;
    // One message in each turn, until more turns than before are measured: a thread heeds new settings after some turns.
    let mut tell_until_measured = || {
        let before = class().handle.count();
        while class().handle.count() == before {
            actor.tell(sent as u32);
            sent += 1;
            wait_until(|| class().handled == sent);
        }
        (sent, class().handle.count() as usize)
    };
    let handled = "pointsman_handled_total class=counted system=published";
    let key = "pointsman_handle_seconds class=counted system=published";
    let samples = || {
        let recorded = recorded().lock().unwrap();
        recorded.samples.get(key).map_or(0, |samples| samples.iter().map(|(_, count)| count).sum::<usize>())
    };
    let (first, measured) = tell_until_measured();
    assert_eq!((counter(handled), samples()), (None, 0), "nothing is published before its time");
    clock.advance(every);
    wait_until(|| counter(handled) == Some(first) && samples() == measured);
    // A sample comes once: those of the recorder are all that the system has.
    let (second, measured) = tell_until_measured();
    clock.advance(every);
    wait_until(|| counter(handled) == Some(second) && samples() == measured);
    {
        let recorded = recorded().lock().unwrap();
        // The clock stands: each handler took no time, and counts as the middle of the first bucket.
        assert!(
            recorded.samples[key].iter().all(|(value, _)| *value == 40e-9),
            "{:?}",
            recorded.samples[key]
        );
        assert_eq!(recorded.gauges["pointsman_actors class=counted system=published"], 1.0);
        assert_eq!(recorded.gauges["pointsman_system_info name=published system=published"], 1.0);
        assert_eq!(recorded.counters["pointsman_messages_total outcome=dead_lettered system=published"], 0);
        assert!(recorded.described["pointsman_handled_total"].contains("handled"));
        assert!(recorded.described.contains_key("pointsman_handle_seconds"));
        let depths = &recorded.samples["pointsman_turn_messages class=counted system=published"];
        assert!(depths.iter().all(|(value, _)| *value == 1.0), "{depths:?}");
    }
    assert!(publication.cancel());
    tell_until_measured();
    clock.advance(every);
    assert!(publication.is_over());
    assert_eq!(counter(handled), Some(second));
    assert!(matches!(system.publish_metrics(Duration::ZERO), Err(ScheduleError::ZeroPeriod)));
    let ended = SystemRef::clone(&system);
    system.shutdown(crate::support::LONG).unwrap();
    assert!(matches!(ended.publish_metrics(every), Err(ScheduleError::ShutDown { .. })));
}
