//! The run of a system's turns on the thread of a test: the test does not wait for the actors but runs them.

use crate::core::system::SystemCore;
use crate::dispatch::stepping::Reached;

#[cfg(not(feature = "testkit"))]
impl SystemCore {
    /// Runs turns until `done`, if the calling thread runs this system's actors: never without the testkit.
    #[inline(always)]
    pub(crate) fn run_turns(&self, done: &mut dyn FnMut() -> bool) -> Reached {
        let _ = done;
        Reached::Elsewhere
    }
}

#[cfg(feature = "testkit")]
pub(crate) mod with_testkit {
    use super::*;

    use crate::core::dispatchers::Dispatch;
    use crate::core::home::Home;
    use crate::dispatch::dispatcher::DispatcherKind;
    use crate::dispatch::placement::Placement;
    use crate::dispatch::running::Running;
    use crate::dispatch::stepping::Stepper;
    use crate::measure::meter::Meter;

    use std::sync::Arc as StdArc;

    impl SystemCore {
        /// Runs turns until `done`, if the calling thread is the one that runs this system's actors.
        pub(crate) fn run_turns(&self, done: &mut dyn FnMut() -> bool) -> Reached {
            self.stepper().map_or(Reached::Elsewhere, |stepper| stepper.run_turns(done))
        }

        /// The stepper that runs the actors, if this is a system for tests.
        pub(crate) fn stepper(&self) -> Option<&dyn Stepper> {
            match self.dispatchers.find(None).ok()? {
                Dispatch::Lasting { running: Running::Stepping(stepper, _), .. } => Some(&**stepper),
                _ => None,
            }
        }
    }

    impl Dispatch {
        /// Makes the stepper stand in the place of a dispatcher of this kind.
        pub(crate) fn stepping(
            stepper: &StdArc<dyn Stepper>,
            kind: DispatcherKind,
            meter: &StdArc<Meter>,
        ) -> Self {
            let placement = Placement::Stepping(stepper.clone(), kind);
            Self::Lasting {
                running: Running::Stepping(stepper.clone(), kind),
                home: Some(Box::new(Home { placement, meter: meter.clone() })),
            }
        }
    }
}
