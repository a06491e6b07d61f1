//! Threads of an on-demand dispatcher end while it has no actors, and start again for the next actor.
//!
//! One lock guards the threads and the count of actors, since it is taken only when an actor begins or ends:
//! 1. A caller that is about to make an actor [enters](OnDemand::enter). This starts the threads if there are none, and
//!    returns a placement on the threads that run now. The threads are not told to end while the count of actors is above 0.
//! 2. An actor [leaves](OnDemand::leave) in its last turn, when no thread will schedule the actor any more.
//! 3. When no actor has been there for long enough, a [look](OnDemand::look) tells the threads to end.
//!
//! Restarted threads are new threads with queues of their own. The state of ended threads is never reset under a sender
//! that has pushed a task and is about to wake a thread for it. Such a sender may be late, and then wakes no thread,
//! but the memory that it touches is alive: each actor's placement holds on to the queues that it belongs to.
//!
//! Time is an argument. At most one look is pending at a time: [`leave`](OnDemand::leave) and [`look`](OnDemand::look)
//! return the time of the next look.

use crate::dispatch::dispatcher::{Dispatcher, DispatcherKind};
use crate::dispatch::placement::Placement;
use crate::dispatch::running::Running;
use crate::measure::pulse::Pulse;
use crate::scheduler::error::StartError;
use crate::sync::{Mutex, lock};
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A dispatcher whose threads end while it has no actors.
#[derive(Debug)]
pub(crate) struct OnDemand {
    name: String,
    recipe: Dispatcher,
    /// How long the dispatcher must have been without actors before its threads end.
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Now,
    /// Threads that were told to end and are not joined yet.
    ending: Vec<Running>,
    /// The number of actors that have entered and not left.
    actor_count: usize,
    /// The time at which the last actor left; `None` once another has entered.
    empty_since: Option<Duration>,
    /// Whether a look is pending.
    look_is_due: bool,
}

#[derive(Debug)]
enum Now {
    Running(Running),
    /// The threads have ended, until an actor enters.
    Ended,
    /// The threads have ended for good.
    Stopped,
}

/// The reason for which no actor can enter.
#[derive(Debug)]
pub(crate) enum EnterError {
    /// The threads have ended for good.
    Stopped,
    /// The threads could not be started again.
    Start(StartError),
}

impl OnDemand {
    /// Starts the threads, named after `name`. The caller counts as an actor that has entered, and must leave.
    ///
    /// # Errors
    ///
    /// As [`Dispatcher::start`].
    pub(crate) fn start(name: String, recipe: Dispatcher, patience: Duration) -> Result<Self, StartError> {
        let running = start(&name, &recipe)?;
        let state = State {
            now: Now::Running(running),
            ending: Vec::new(),
            actor_count: 1,
            empty_since: None,
            look_is_due: false,
        };
        Ok(Self { name, recipe, patience, state: Mutex::new(state) })
    }

    /// Enters a new actor and returns its place.
    ///
    /// # Errors
    ///
    /// [`EnterError`]; the actor has not entered then.
    pub(crate) fn enter(&self) -> Result<Placement, EnterError> {
        let mut ended = Vec::new();
        let entered = {
            let mut state = lock(&self.state);
            if matches!(state.now, Now::Ended) {
                ended = state.take_ended();
            }
            self.enter_locked(&mut state)
        };
        // Joined without the lock: destructors of the threads' thread-locals may still run, and may enter. These
        // threads have had time to end for as long as their successors ran.
        for running in ended {
            let _ = running.stop_and_join();
        }
        entered
    }

    /// Enters under the lock.
    fn enter_locked(&self, state: &mut State) -> Result<Placement, EnterError> {
        if matches!(state.now, Now::Ended) {
            // Started under the lock, since other callers that enter need the same threads. The new threads run nothing
            // yet.
            let running = start(&self.name, &self.recipe).map_err(EnterError::Start)?;
            state.now = Now::Running(running);
        }
        let Now::Running(running) = &state.now else { return Err(EnterError::Stopped) };
        let placement = running.place_task().map_err(EnterError::Start)?;
        state.actor_count += 1;
        state.empty_since = None;
        Ok(placement)
    }

    /// The kind of the dispatcher.
    pub(crate) fn kind(&self) -> DispatcherKind {
        self.recipe.kind()
    }

    /// The pulses of the threads that run now.
    pub(crate) fn pulses(&self) -> Vec<StdArc<Pulse>> {
        match &lock(&self.state).now {
            Now::Running(running) => running.pulses(),
            Now::Ended | Now::Stopped => Vec::new(),
        }
    }

    /// Undoes one [`enter`](Self::enter), at the time `now`. Returns when to [look](Self::look), if the caller must
    /// arrange that look.
    #[must_use = "without a look the threads never end"]
    pub(crate) fn leave(&self, now: Duration) -> Option<Duration> {
        let mut state = lock(&self.state);
        state.actor_count -= 1;
        if state.actor_count > 0 || matches!(state.now, Now::Stopped) {
            return None;
        }
        state.empty_since = Some(now);
        let is_due_already = std::mem::replace(&mut state.look_is_due, true);
        (!is_due_already).then(|| now.saturating_add(self.patience))
    }

    /// Tells the threads to end if, at the time `now`, no actor has been there for long enough. Returns when to look
    /// again, if the caller must arrange another look.
    #[must_use = "without a look the threads never end"]
    pub(crate) fn look(&self, now: Duration) -> Option<Duration> {
        let mut state = lock(&self.state);
        state.look_is_due = false;
        if matches!(state.now, Now::Stopped) {
            return None;
        }
        let due = state.empty_since?.saturating_add(self.patience);
        if now < due {
            state.look_is_due = true;
            return Some(due);
        }
        state.end(Now::Ended);
        None
    }

    /// Tells the threads to end once there is nothing left to run. No threads start any more. Never blocks.
    pub(crate) fn stop(&self) {
        lock(&self.state).end(Now::Stopped);
    }

    /// Stops, and waits until every thread has ended except the calling thread, if it is one of them.
    pub(crate) fn stop_and_join(&self) {
        self.stop();
        let ending = std::mem::take(&mut lock(&self.state).ending);
        for running in ending {
            let _ = running.stop_and_join();
        }
    }

    /// Returns whether the calling thread is one of the dispatcher's.
    pub(crate) fn runs_current_thread(&self) -> bool {
        let state = lock(&self.state);
        let running = match &state.now {
            Now::Running(running) => Some(running),
            Now::Ended | Now::Stopped => None,
        };
        running.into_iter().chain(&state.ending).any(Running::runs_current_thread)
    }
}

impl State {
    /// Tells the running threads to end.
    fn end(&mut self, next: Now) {
        if let Now::Running(running) = std::mem::replace(&mut self.now, next) {
            running.stop();
            self.ending.push(running);
        }
    }

    /// Takes the threads that have ended, to be joined, except the last of them. The last ones may still run
    /// destructors of their thread-locals, and these may wait for the very actor that makes another actor here. Threads
    /// that have not ended are still in the end of an actor's last turn, and no caller shall wait for that.
    fn take_ended(&mut self) -> Vec<Running> {
        let (mut ended, ending): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ending).into_iter().partition(Running::has_ended);
        self.ending = ended.pop().into_iter().chain(ending).collect();
        ended
    }
}

fn start(name: &str, recipe: &Dispatcher) -> Result<Running, StartError> {
    recipe.start(name, crate::util::reclaim::go_online)
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::prelude::*;
    use crate::time::clock::ManualClock;
    use std::cell::RefCell;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);

    /// Reports that its thread destroys its thread-locals, and keeps the thread from ending.
    struct Late(Sender<()>, Receiver<()>);

    impl Drop for Late {
        fn drop(&mut self) {
            let _ = self.0.send(());
            let _ = self.1.recv();
        }
    }

    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }

    /// Stores its message in a thread-local, and ends.
    struct Brief;

    impl Actor for Brief {
        type Message = Late;
        fn receive(&mut self, late: Late, ctx: &mut Context<Late>) -> HandlerResult {
            LATE.with(|slot| *slot.borrow_mut() = Some(late));
            ctx.stop();
            Ok(())
        }
    }

    /// For example, destructors of the thread-locals ask the very actor that makes the next actor.
    #[test]
    fn who_makes_the_actor_for_which_threads_start_again_does_not_wait_for_thread_locals() {
        let stealing = Dispatcher::work_stealing().threads(1).idle_shutdown(SECOND);
        let blocking = Dispatcher::blocking().thread_range(1..=1).idle_shutdown(SECOND);
        for recipe in [stealing, blocking] {
            let (clock, recipe): (_, Dispatcher) = (ManualClock::new(), recipe);
            let builder = System::builder("late").clock(clock.clone()).dispatcher("w", recipe);
            let system = builder.build().expect("threads can be had");
            let make = |system: &SystemRef| system.actor("brief").dispatcher("w").spawn(|| Brief);
            let ((ends, is_ending), (release, waits)) = (channel(), channel());
            let first = make(&system).expect("a thread");
            first.tell(Late(ends, waits));
            first.when_ended().wait().expect("the system lives");
            clock.advance(SECOND);
            assert_eq!(is_ending.recv_timeout(LONG), Ok(()));
            let ((made, makes), handle) = (channel(), system.handle().clone());
            let maker = std::thread::spawn(move || made.send(make(&handle).is_ok()));
            let outcome = makes.recv_timeout(LONG);
            drop(release);
            assert_eq!(outcome, Ok(true));
            maker.join().expect("no panic").expect("the test listens");
            system.shutdown(LONG).expect("nothing is stuck");
        }
    }
}
