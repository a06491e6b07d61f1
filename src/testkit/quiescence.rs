//! Waiting until a system with threads has nothing left to do.

use crate::actor::quiescence::Unrest;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::system::SystemRef;
use crate::dispatch::stepping::Reached;
use crate::sync::thread;
use crate::testkit::wait_error::WaitError;
use std::time::{Duration, Instant};

/// At most so many actors are named in an error.
const NAMED_MAX: usize = 8;

/// The number of looks that follow each other at once, before the thread rests between two.
const EAGER_LOOKS: u32 = 32;
/// The first and the longest rest.
const REST: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));

impl SystemRef {
    /// Waits until the system is quiet: no message is in a mailbox or in a queue that a pool shares, no handler runs,
    /// and no control message (stops, watches, ticks, notices of ends) is on its way. Then a test may look at the
    /// outcome of all messages.
    ///
    /// The answer is exact for the messages that were sent before the call, and for all that followed from them,
    /// through any number of actors: a message between two queues is not overlooked. Of messages that other threads
    /// send meanwhile, the answer tells the state at a moment within the call.
    ///
    /// Quiet systems may have more to come: timers that are not due, futures that are
    /// [piped](crate::Context::pipe_to_self) and wait for something outside, data in sockets, messages that an actor
    /// has [stashed](crate::Context::stash) or an [`Inbox`](crate::pattern::Inbox) keeps. A timer that fires by a
    /// [`ManualClock`](crate::time::ManualClock) is seen, since the thread that moves the clock fires it. An actor that
    /// is suspended with messages in its mailbox is not quiet.
    ///
    /// On a [`TestSystem`](crate::testkit::TestSystem) turns are run until idle, and the call does not wait.
    ///
    /// The call looks at all actors again and again, so it is for tests. Neither Akka's nor GoAkt's testkit has it:
    /// theirs repeat an assertion until it holds (`awaitAssert`), which tells nothing about later events.
    ///
    /// # Errors
    ///
    /// [`WaitError::Busy`] after `limit`, by the machine's clock, with the actors that are still busy.
    /// [`WaitError::OwnThread`] on a thread that runs actors of this system.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::time::Duration;
    ///
    /// struct Adder(Arc<AtomicU32>);
    /// impl Actor for Adder {
    ///     type Message = u32;
    ///     fn receive(&mut self, number: u32, _: &mut Context<u32>) -> HandlerResult {
    ///         self.0.fetch_add(number, Ordering::Relaxed);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("sums").build()?;
    /// let sum = Arc::new(AtomicU32::new(0));
    /// let shared = sum.clone();
    /// let adders = system.router("adders").pool(4, move |_| Adder(shared.clone())).spawn()?;
    /// (1..=100u32).for_each(|number| adders.tell(number));
    /// system.wait_until_quiet(Duration::from_secs(30))?;
    /// assert_eq!(sum.load(Ordering::Relaxed), 5050);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_until_quiet(&self, limit: Duration) -> Result<(), WaitError> {
        let core = self.core();
        if crate::dispatch::may_block::must_not_wait() || core.runs_current_thread() {
            return Err(WaitError::OwnThread);
        }
        let reached = core.run_turns(&mut || false);
        let began = Instant::now();
        let until = began.checked_add(limit);
        // The busy actors of the last look that has found any.
        let mut last = Vec::new();
        let (mut looks, mut rest) = (0, REST.0);
        loop {
            match core.look_for_quiet() {
                Ok(()) => return Ok(()),
                Err(Unrest::Actors(actors)) => last = actors,
                Err(Unrest::Timers | Unrest::Between) => {}
            }
            if reached != Reached::Elsewhere || until.is_some_and(|until| Instant::now() >= until) {
                let (suspended, running): (Vec<_>, Vec<_>) =
                    last.iter().take(NAMED_MAX).partition(|actor| actor.has_no_turn());
                return Err(WaitError::Busy {
                    waited: began.elapsed(),
                    running: running.into_iter().map(with_queued).collect(),
                    suspended: suspended.into_iter().map(with_queued).collect(),
                    more: last.len().saturating_sub(NAMED_MAX),
                });
            }
            looks += 1;
            if looks < EAGER_LOOKS {
                thread::yield_now();
            } else {
                let left = until.map_or(rest, |until| until.saturating_duration_since(Instant::now()));
                thread::sleep(rest.min(left));
                rest = (2 * rest).min(REST.1);
            }
        }
    }
}

/// Returns the path of an actor, with the number of messages that wait for it.
fn with_queued(actor: &AnyActorRef) -> (String, usize) {
    (actor.path().to_string(), actor.queued())
}
