//! The flight recorder of a thread: the turns, sleeps and steals of a short while, with their times.
//!
//! Nothing is recorded unless a recording runs. A worker looks at the switch, [`is_recording`], only where it does
//! something else than the next turn anyway: see `look_up` and `find` in `scheduler/worker.rs`. While a recording
//! runs, the worker runs its turns in a loop of their own, which notes each of them.

use std::collections::VecDeque;
use std::fmt;
use std::time::Instant;

#[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
mod switch {
    use crate::sync::atomic::{AtomicUsize, Ordering};

    /// The recordings of this process that run.
    static RECORDINGS: AtomicUsize = AtomicUsize::new(0);

    /// Returns whether any recording of this process runs.
    #[inline(always)]
    pub(crate) fn is_recording() -> bool {
        // Ordering: Relaxed; a recording that begins a moment late is none.
        RECORDINGS.load(Ordering::Relaxed) != 0
    }

    /// Lets threads record as long as it lives.
    #[derive(Debug)]
    pub(crate) struct RecordingSwitch(());

    impl RecordingSwitch {
        pub(crate) fn on() -> Self {
            // Ordering: Relaxed; see `is_recording`.
            RECORDINGS.fetch_add(1, Ordering::Relaxed);
            Self(())
        }
    }

    impl Drop for RecordingSwitch {
        fn drop(&mut self) {
            // Ordering: Relaxed; see `is_recording`.
            RECORDINGS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
pub(crate) use switch::{RecordingSwitch, is_recording};

/// Without a console there is no recording.
#[cfg(not(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle)))))]
#[inline(always)]
pub(crate) fn is_recording() -> bool {
    false
}

/// The most events of a recording of one thread: 1 MiB. Beyond, the oldest are lost.
const EVENTS_MAX: usize = 1 << 16;

/// The bits of an event's word that hold its number of messages.
const MESSAGES_BITS: u32 = 16;

/// The bits of an event's word that hold its kind.
const KIND_BITS: u32 = 3;

/// An event in a recording, in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlightEvent {
    /// The time since the recording began, in nanoseconds.
    pub at: u64,
    /// The address of a task in units of 8 bytes, a number of messages, and the kind.
    word: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlightEventKind {
    TurnBegins,
    TurnEnds,
    FallsAsleep,
    Wakes,
    Steals,
}

impl FlightEvent {
    fn new(at: u64, kind: FlightEventKind, task: usize, messages: u64) -> Self {
        let messages = messages.min((1 << MESSAGES_BITS) - 1);
        // Addresses are those of cells, which lie at multiples of 8, and have 48 bits.
        let word = (task as u64 >> 3) << (MESSAGES_BITS + KIND_BITS) | messages << KIND_BITS | kind as u64;
        Self { at, word }
    }

    pub(crate) fn kind(self) -> FlightEventKind {
        match self.word & ((1 << KIND_BITS) - 1) {
            0 => FlightEventKind::TurnBegins,
            1 => FlightEventKind::TurnEnds,
            2 => FlightEventKind::FallsAsleep,
            3 => FlightEventKind::Wakes,
            _ => FlightEventKind::Steals,
        }
    }

    /// The address of the task whose turn ends.
    pub(crate) fn task(self) -> usize {
        (self.word >> (MESSAGES_BITS + KIND_BITS) << 3) as usize
    }

    /// The messages that the turn has handled, 65,535 at most.
    pub(crate) fn messages(self) -> u64 {
        self.word >> KIND_BITS & ((1 << MESSAGES_BITS) - 1)
    }
}

/// The recording of one thread.
pub(crate) struct Flight {
    began: Instant,
    events: VecDeque<FlightEvent>,
    /// Older events that were lost.
    pub(crate) lost: u64,
    /// Returns how many messages the calling thread, which is that of the recording, has handled so far.
    handled: Box<dyn Fn() -> u64 + Send>,
    /// The messages at the begin of the turn that runs; `None` between turns.
    before: Option<u64>,
}

impl Flight {
    /// Begins a recording whose times count from `began`.
    pub(crate) fn new(began: Instant, handled: Box<dyn Fn() -> u64 + Send>) -> Self {
        Self { began, events: VecDeque::new(), lost: 0, handled, before: None }
    }

    /// Notes an event. `task` is the address of the task that the thread runs. The end of a turn that no event has begun
    /// is none.
    pub(crate) fn note(&mut self, kind: FlightEventKind, task: usize) {
        let mut messages = 0;
        match kind {
            FlightEventKind::TurnBegins => self.before = Some((self.handled)()),
            FlightEventKind::TurnEnds => match self.before.take() {
                Some(before) => messages = (self.handled)().wrapping_sub(before),
                None => return,
            },
            FlightEventKind::FallsAsleep | FlightEventKind::Wakes | FlightEventKind::Steals => {}
        }
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
            self.lost += 1;
        }
        let at = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.events.push_back(FlightEvent::new(at, kind, task, messages));
    }

    /// The events, the oldest first.
    pub(crate) fn into_events(self) -> Vec<FlightEvent> {
        self.events.into()
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("events", &self.events.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(pointsman_loom, pointsman_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn an_event_keeps_its_parts() {
        assert_eq!(size_of::<FlightEvent>(), 16);
        let address = 0x7fff_dead_bee8;
        for (messages, kept) in [(0, 0), (3, 3), (65_535, 65_535), (1 << 40, 65_535)] {
            let event = FlightEvent::new(7, FlightEventKind::TurnEnds, address, messages);
            assert_eq!(
                (event.at, event.kind(), event.task(), event.messages()),
                (7, FlightEventKind::TurnEnds, address, kept)
            );
        }
    }

    #[test]
    fn turns_count_their_messages_and_the_oldest_events_are_lost() {
        let count = Cell::new(0);
        let handled = move || {
            count.set(count.get() + 5);
            count.get()
        };
        let mut flight = Flight::new(Instant::now(), Box::new(handled));
        flight.note(FlightEventKind::TurnEnds, 8);
        for _ in 0..EVENTS_MAX / 2 {
            flight.note(FlightEventKind::TurnBegins, 0);
            flight.note(FlightEventKind::TurnEnds, 8);
        }
        flight.note(FlightEventKind::Steals, 0);
        assert_eq!(flight.lost, 1);
        let events = flight.into_events();
        assert_eq!(events.len(), EVENTS_MAX);
        assert_eq!((events[0].kind(), events[0].messages()), (FlightEventKind::TurnEnds, 5));
        assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
}
