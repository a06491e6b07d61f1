//! The page `/trace`: the turns of the workers, as Chrome's trace viewer and Perfetto read them.

use crate::measure::flight::FlightEventKind;
use crate::telemetry::flight_recorder::{Recorded, RecordedThread};
use serde_json::{Value, json};
use std::fmt::Write;

/// Returns the page. Times are in microseconds.
pub(crate) fn page(system: &str, recorded: &Recorded) -> String {
    let mut page = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    let name = json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": system } });
    let _ = write!(page, "{name}");
    for (number, thread) in recorded.threads.iter().enumerate() {
        show_thread(number + 1, thread, recorded, &mut page);
    }
    let lost: u64 = recorded.threads.iter().map(|thread| thread.lost).sum();
    let other = json!({ "seconds": recorded.length.as_secs_f64(), "lost_events": lost });
    let _ = writeln!(page, "\n],\"otherData\":{other}}}");
    page
}

fn show_thread(tid: usize, thread: &RecordedThread, recorded: &Recorded, page: &mut String) {
    let mut show = |event: Value| _ = write!(page, ",\n{event}");
    show(json!({ "ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": { "name": thread.name } }));
    let micros = |nanos: u64| nanos as f64 / 1000.0;
    let (mut turn, mut sleep) = (None, None);
    for event in &thread.events {
        match event.kind() {
            FlightEventKind::TurnBegins => turn = Some(event.at),
            FlightEventKind::FallsAsleep => sleep = Some(event.at),
            FlightEventKind::TurnEnds => {
                let Some(began) = turn.take() else { continue };
                let actor = recorded.actors.get(&event.task());
                let (name, class) = match actor {
                    Some(actor) => (actor.path.as_str(), actor.class.as_str()),
                    None => ("(ended)", ""),
                };
                show(json!({
                    "ph": "X",
                    "pid": 1,
                    "tid": tid,
                    "cat": "turn",
                    "name": name,
                    "ts": micros(began),
                    "dur": micros(event.at - began),
                    "args": { "messages": event.messages(), "class": class },
                }));
            }
            FlightEventKind::Wakes => {
                let Some(began) = sleep.take() else { continue };
                show(json!({
                    "ph": "X",
                    "pid": 1,
                    "tid": tid,
                    "cat": "sleep",
                    "name": "asleep",
                    "ts": micros(began),
                    "dur": micros(event.at - began),
                }));
            }
            FlightEventKind::Steals => show(json!({
                "ph": "i", "pid": 1, "tid": tid, "cat": "steal", "name": "steal", "s": "t", "ts": micros(event.at),
            })),
        }
    }
}
