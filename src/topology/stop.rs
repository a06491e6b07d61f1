//! A stop ends the groups of a topology, and a ping asks whether their actors are alive.

use crate::actor::actor::HandlerResult;
use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_all::AskAll;
use crate::ask::ask_clock::AskClock;
use crate::ask::error::AskError;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cancellable::Cancellable;
use crate::failure::guarded;
use crate::shutdown::coordinated::ShutdownSetupError;
use crate::time::timers::{TimerHandle, Timers};
use crate::topology::member::GroupMember;
use crate::topology::plan::Topology;
use crate::topology::reply_set::ReplySet;
use crate::util::panic::drop_guarded;
use std::time::Duration;

impl Topology {
    /// Ends the groups in ascending [order](super::DeclaredGroup::stop_order), groups of the same order together. Each group is
    /// told to end, and is told again when `patience` is over, by the system's clock. The future is done when all
    /// groups have ended; a group that ends in neither way keeps the later groups waiting. If the caller drops the
    /// future, no group is told any more; groups that have been told to end do so.
    ///
    /// Nothing is done before the future is polled. A thread without an executor calls [`stop_in`](Self::stop_in) and
    /// runs the shutdown.
    ///
    /// A group that gets messages from another group should have the higher number: then the messages that are on their
    /// way are handled to the end.
    ///
    /// # Errors
    ///
    /// An error if the system ends before the groups have ended.
    pub fn stop(
        &self,
        reason: &str,
        patience: Duration,
    ) -> impl Future<Output = HandlerResult> + Send + use<> {
        let (topology, reason) = (self.clone(), reason.to_owned());
        async move {
            for members in topology.members_by_stop_order() {
                let ends: Vec<Ask<()>> = members
                    .iter()
                    .filter_map(|member| Some(asked(|| member.watched()).flatten()?.when_ended()))
                    .collect();
                members.iter().for_each(|member| terminate(&**member, &reason));
                let core = topology.system().core();
                let due = core.timers().now().saturating_add(patience);
                let impatient = reason.clone();
                let again = move || {
                    for member in members {
                        // This runs on the thread of all timers.
                        terminate(&*member, &impatient);
                        drop_guarded(member);
                    }
                };
                let timers = core.timers();
                let patience = SecondCall { timers, timer: Some(timers.call_at(due, Box::new(again))) };
                let mut done = Ok(());
                for end in ends {
                    done = done.and(end.await);
                }
                drop(patience);
                done?;
            }
            Ok(())
        }
    }

    /// Adds a task to the [coordinated shutdown](crate::shutdown) that [stops](Self::stop) the groups in this phase.
    /// The phase's timeout bounds the task: groups that are left then end with the system.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::shutdown::Phase;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let topology = system.topology();
    /// // … groups, routes, and `topology.start()?`
    /// topology.stop_in(Phase::SERVICE_STOP, Duration::from_secs(1))?;
    /// let report = system.coordinated_shutdown().run("the day is over").wait()?;
    /// assert_eq!(report.ledger.dead_lettered, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`CoordinatedShutdown::add_task`](crate::shutdown::CoordinatedShutdown::add_task).
    pub fn stop_in(&self, phase: &str, patience: Duration) -> Result<Cancellable, ShutdownSetupError> {
        let topology = self.clone();
        let stop = move || topology.stop("shutdown", patience);
        self.system().coordinated_shutdown().add_future(phase, "stop the topology", stop)
    }

    /// Asks all actors of all groups whether they are alive. The engine answers, between two messages of the actor, and
    /// the actor's code does not see the question. The result has an entry with the actor for each actor that answers,
    /// in the order of answers; the entry of an actor that ends first is [`AskError::Undeliverable`]. No actor is
    /// created for a ping. Give the ping a limit by [`within`](AskAll::within): an actor that hangs in a handler does
    /// not answer, and its entry is [`AskError::Timeout`].
    ///
    /// Of a mounted [router](crate::routing) the head alone is asked, and not its routees.
    pub fn ping(&self) -> AskAll<Result<AnyActorRef, AskError>> {
        ask_if_alive(self.ask_clock(), &self.actors())
    }
}

/// Asks these actors whether they are alive. Each actor answers once it has been started and has handled the messages
/// before the question.
pub(crate) fn ask_if_alive(
    ask_clock: AskClock,
    actors: &[AnyActorRef],
) -> AskAll<Result<AnyActorRef, AskError>> {
    let (asker, ask) = ask::begin(ask_clock);
    let reply_set = ReplySet::all();
    reply_set.when_over(asker);
    for actor in actors {
        let token = reply_set.issue();
        actor.inquire(move |answer| match answer {
            Some(actor) => drop(token.clone().send(actor)),
            None => token.clone().fail(AskError::undeliverable()),
        });
    }
    reply_set.sent_to(actors.len());
    AskAll::new(ask, reply_set)
}

/// Tells a single group to end.
fn terminate(member: &dyn GroupMember, reason: &str) {
    asked(|| member.terminate(reason));
}

/// Calls the code of a single group under a guard: a panic is logged, and does not keep the other groups from being
/// told. Returns `None` after a panic.
pub(crate) fn asked<R>(group: impl FnOnce() -> R) -> Option<R> {
    let done = guarded(|| Ok(group()));
    // The logger and the text of the cause are user code, too.
    let logged = guarded(|| {
        if let Err(failure) = &done {
            log::error!(target: "pointsman", "a group panicked in the code of its end: {failure}");
        }
        Ok(())
    });
    drop_guarded(logged);
    done.map_err(drop_guarded).ok()
}

/// This guard cancels the second call when no caller waits for the end any more.
struct SecondCall<'a> {
    timers: &'a Timers<AnyActorRef>,
    timer: Option<TimerHandle>,
}

impl Drop for SecondCall<'_> {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            self.timers.cancel(timer);
        }
    }
}
