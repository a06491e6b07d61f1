//! A system whose actors run on the thread of a test: instead of waiting for them it runs them.

use crate::core::system::SystemCore;
use crate::dispatch::stepping::Reached;
use std::time::Duration;

#[cfg(not(feature = "testkit"))]
impl SystemCore {
    /// Runs turns until `done`, where that is the calling thread's business: nowhere without the testkit.
    #[inline(always)]
    pub fn run_turns(&self, done: &mut dyn FnMut() -> bool) -> Reached {
        let _ = done;
        Reached::Elsewhere
    }
}

#[cfg(feature = "testkit")]
pub(crate) mod with_testkit {
    use super::*;
    use crate::core::any_ref::AnyRef;
    use crate::core::cell::Header;
    use crate::core::dispatchers::Dispatch;
    use crate::core::system::SystemBuilder;
    use crate::dispatch::dispatcher::Kind;
    use crate::dispatch::placement::Home;
    use crate::dispatch::running::Running;
    use crate::dispatch::stepping::Stepper;
    use crate::scheduler::task::{Task, TaskRef};
    use std::ptr::NonNull;
    use std::sync::Arc as StdArc;

    impl SystemCore {
        /// Runs turns until `done`, if the calling thread is the one that runs this system's actors.
        pub fn run_turns(&self, done: &mut dyn FnMut() -> bool) -> Reached {
            self.stepper().map_or(Reached::Elsewhere, |stepper| stepper.run_turns(done))
        }

        /// Who runs its actors, if it is a system for tests.
        pub fn stepper(&self) -> Option<&dyn Stepper> {
            match self.dispatchers.find(None).ok()? {
                Dispatch::Lasting { running: Running::Stepping(stepper, _), .. } => Some(&**stepper),
                _ => None,
            }
        }
    }

    impl SystemBuilder {
        /// Runs all actors by `stepper`, whatever dispatcher they name.
        pub(crate) fn stepper(mut self, stepper: StdArc<dyn Stepper>) -> Self {
            self.dispatchers.stepper = Some(stepper);
            self
        }
    }

    impl Dispatch {
        /// In the place of a dispatcher of this kind.
        pub(crate) fn stepping(stepper: &StdArc<dyn Stepper>, kind: Kind) -> Self {
            Self::Lasting {
                running: Running::Stepping(stepper.clone(), kind),
                home: Some(Box::new(Home::Stepping(stepper.clone(), kind))),
            }
        }
    }

    /// Hands a woken actor to whoever steps its system, and says who it is.
    ///
    /// # Safety
    ///
    /// As for [`schedule`](crate::core::cell::schedule).
    #[cold]
    pub unsafe fn schedule_stepping(header: NonNull<Header>, stepper: &dyn Stepper, kind: Kind) {
        // SAFETY: passed on to the caller.
        let actor = unsafe { AnyRef::retain(header) };
        // SAFETY: passed on to the caller.
        let task = unsafe { TaskRef::new(header.cast::<Task>()) };
        stepper.schedule(task, kind, Some((actor.uid(), &|| actor.path().to_string())));
    }
}

/// How long a thread may wait that was to wait for `limit`: not at all, where it has run all turns itself.
pub fn left_to_wait(reached: Reached, limit: Duration) -> Duration {
    if reached == Reached::Elsewhere { limit } else { Duration::ZERO }
}
