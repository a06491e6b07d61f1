//! The flight recorder of a system: it lets the threads of its dispatchers record for a while, and names the actors of the turns.

use crate::core::lifecycle::ActorEvent;
use crate::core::system::SystemRef;
use crate::measure::flight::{Flight, FlightEvent, RecordingSwitch};
use crate::measure::pulse::Pulse;
use crate::telemetry::actor_filter::walk;
use std::collections::HashMap;
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

/// A recording that runs. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Recording {
    system: SystemRef,
    began: Instant,
    threads: Vec<StdArc<Pulse>>,
    _switch: RecordingSwitch,
}

/// A recording that is over.
pub(crate) struct Recorded {
    pub length: Duration,
    pub threads: Vec<RecordedThread>,
    /// The actors that live at the end, by the addresses of their tasks.
    pub actors: HashMap<usize, ActorEvent>,
}

pub(crate) struct RecordedThread {
    pub name: String,
    pub events: Vec<FlightEvent>,
    /// Older events that were lost.
    pub lost: u64,
}

impl Recording {
    /// Begins to record the threads of all dispatchers that run now; `None` while another recording of the system runs.
    pub(crate) fn begin(system: &SystemRef) -> Option<Self> {
        let began = Instant::now();
        let switch = RecordingSwitch::on();
        let mut recording = Self { system: system.clone(), began, threads: Vec::new(), _switch: switch };
        for (_, _, pulses) in system.core().dispatchers.pulses() {
            for pulse in pulses {
                let core = StdArc::downgrade(system.core());
                // The thread of the pulse calls it.
                let handled =
                    move || core.upgrade().map_or(0, |core| core.ledger().for_this_thread().handled_so_far());
                if !pulse.begin_flight(Flight::new(began, Box::new(handled))) {
                    return None;
                }
                recording.threads.push(pulse);
            }
        }
        Some(recording)
    }

    /// Ends the recording.
    pub(crate) fn end(mut self) -> Recorded {
        let length = self.began.elapsed();
        let threads = std::mem::take(&mut self.threads).into_iter().filter_map(|pulse| {
            let flight = pulse.end_flight()?;
            let (name, lost) = (pulse.name().to_owned(), flight.lost);
            Some(RecordedThread { name, lost, events: flight.into_events() })
        });
        let threads = threads.collect();
        let mut actors = HashMap::new();
        walk(&self.system, |actor| _ = actors.insert(actor.address(), ActorEvent::of(&actor)));
        Recorded { length, threads, actors }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.threads.iter().for_each(|pulse| drop(pulse.end_flight()));
    }
}
