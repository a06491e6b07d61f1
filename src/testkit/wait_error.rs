//! The error of a wait of a test.

use crate::testkit::seeds::Again;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::time::Duration;

/// The reason why a wait of a test has failed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "NotQuiet")]
pub enum WaitError {
    /// Actors were busy at the last look of [`wait_until_quiet`](crate::SystemRef::wait_until_quiet), at the end of the
    /// limit. At most 8 actors are named.
    #[doc(alias = "StillBusy")]
    Busy {
        /// How long the call has waited.
        waited: Duration,
        /// The actors that were in a handler or had a turn to come, by their paths, with the numbers of messages that
        /// [wait](crate::AnyActorRef::queued) for them. Parents come before their children.
        running: Vec<(String, usize)>,
        /// The same of the actors that have messages and no turn: they are suspended, and wait for their supervisors.
        suspended: Vec<(String, usize)>,
        /// How many more busy actors there were.
        more: usize,
    },
    /// Actors keep each other busy: the [`TestSystem`](crate::testkit::TestSystem) did not come to rest.
    Livelock {
        /// How many turns were run.
        turns: u64,
        /// The actors that had the most turns, with their numbers, at most 5.
        busiest: Vec<(String, u64)>,
        /// The system's seed.
        seed: u64,
    },
    /// The future of [`TestSystem::advance_until`](crate::testkit::TestSystem::advance_until) was not ready in time.
    NotReady {
        /// The time of the system that has passed.
        waited: Duration,
        /// The system's seed.
        seed: u64,
    },
    /// The calling thread runs actors of this system, or other actors that those may wait for: it cannot wait for
    /// itself.
    OwnThread,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { waited, running, suspended, more } => {
                write!(f, "not quiet after {waited:?}: ")?;
                let running = running.iter().map(|actor| ("runs", actor));
                let suspended = suspended.iter().map(|actor| ("is suspended", actor));
                let mut comma = "";
                for (state, (path, queued)) in running.chain(suspended) {
                    write!(f, "{comma}{path} {state} with {queued} queued")?;
                    comma = ", ";
                }
                if *more > 0 {
                    write!(f, ", and {more} more")?;
                }
                if comma.is_empty() {
                    f.write_str("timers fire again and again")?;
                }
                f.write_str("; look for actors that keep each other busy, or for a handler that waits")
            }
            Self::Livelock { turns, busiest, seed } => {
                write!(f, "not idle after {turns} turns, look for actors that keep each other busy: ")?;
                for (path, turns) in busiest {
                    write!(f, "{path} had {turns}, ")?;
                }
                write!(f, "{}", Again(*seed))
            }
            Self::NotReady { waited, seed } => write!(
                f,
                "not ready after {waited:?} of the system's time, and no actor has anything left to do: let more time \
                 pass, or look for the actor that is to answer ({})",
                Again(*seed)
            ),
            Self::OwnThread => f.write_str(
                "a thread that runs actors of this system cannot wait until they are quiet: call it from the test",
            ),
        }
    }
}

impl std::error::Error for WaitError {}

debug_by_display! { WaitError }
