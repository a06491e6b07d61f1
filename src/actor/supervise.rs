//! Supervision: a parent judges the failure of a child, and carries the verdict out.
//!
//! The strategy is the child's own, or else the parent's for all children. Its decider is user code of the parent: when
//! the decider panics, the parent fails. The panic is caught here, so control that waits behind the notice in the same
//! batch is still acted upon.
//!
//! One for one: the verdict goes to the failing child. All for one: a restart or a stop goes to every child. The
//! siblings, which have not failed, are suspended first, so no sibling handles a message beside a sibling that has
//! already restarted. A sibling may fail while the verdict is on its way to it. Then it gets two verdicts for two
//! suspensions, and their order makes no difference to the count.

use crate::actor::actor::Actor;
use crate::actor::recipe::Recipe;
use crate::actor::turn::ActorTurn;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::core::lifecycle::{ActorEvent, Lifecycle, wants_traced_warnings};
use crate::core::strategy::{Directive, Strategy};
use crate::failure::{Failure, guarded};
use crate::util::panic::drop_guarded;
use crate::util::stderr_log::report;

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Judges the failure of a child.
    pub(crate) fn judge(&mut self, child: AnyActorRef, failure: Failure) {
        if !self.core().children.contains(&child) {
            return;
        }
        if let Some(child_hooks) = self.parent_hooks() {
            self.publish_failure(&child, None, &failure);
            let _ = guarded(|| {
                child_hooks.failed(child, failure);
                Ok(())
            });
            return;
        }
        // The history of its restarts is dropped when it has ended.
        self.core().children.want_notices();
        let strategy = match child.core().on_failure() {
            Some(own) => Ok(own.clone()),
            // Without a state this actor has no strategy; it has failed itself, or is ending.
            None => self.with_actor(|actor, _| Ok(actor.supervision())).unwrap_or(Ok(Strategy::stop())),
        };
        let strategy = match strategy {
            Ok(strategy) => strategy,
            Err(own) => return self.stop_after_decider_panic(&child, own),
        };
        match guarded(|| Ok(strategy.directive(&child, &failure))) {
            Ok(directive) => self.carry_out(directive, &strategy, child, failure),
            Err(own) => self.stop_after_decider_panic(&child, own),
        }
        // This may be the last reference to the values that the decider captured.
        drop_guarded(strategy);
    }

    /// Stops the child after a panic of the decider: the child needs a verdict, and the decider has given none.
    fn stop_after_decider_panic(&mut self, child: &AnyActorRef, own: Failure) {
        child.stop();
        self.publish_failure(child, Some(Directive::Stop), &own);
        self.fail(own, None);
    }

    fn publish_failure(&self, child: &AnyActorRef, verdict: Option<Directive>, failure: &Failure) {
        self.core().system.publish_lifecycle(|| {
            // User code makes the text of the cause.
            let text = guarded(|| Ok(failure.to_string())).unwrap_or_default();
            Lifecycle::Failed { actor: ActorEvent::of(child), verdict, text }
        });
    }

    fn carry_out(&mut self, directive: Directive, strategy: &Strategy, child: AnyActorRef, failure: Failure) {
        let mut siblings = Vec::new();
        if strategy.is_all_for_one() && matches!(directive, Directive::Restart | Directive::Stop) {
            siblings = self.core().children.all();
            siblings.retain(|sibling| *sibling != child);
        }
        let beyond = directive == Directive::Restart && !self.may_restart(strategy, &child, &siblings);
        let directive = if beyond { Directive::Stop } else { directive };
        if !strategy.is_quiet() {
            log_verdict(directive, beyond, &child, &failure);
        }
        self.publish_failure(&child, Some(directive), &failure);
        // A child that has ended meanwhile needs no verdict: the control that it refuses is dropped.
        match directive {
            Directive::Resume => drop(child.send_system(Control::Resume { judged: true })),
            Directive::Restart => {
                for sibling in &siblings {
                    let _ = sibling.send_system(Control::Suspend);
                }
                // User code makes the text of the cause.
                let text = guarded(|| Ok(failure.to_string())).unwrap_or_default();
                let _ = child.send_system(Control::Restart(failure));
                for sibling in siblings {
                    let cause = Failure::msg(format!("sibling {} failed: {text}", child.path()));
                    let _ = sibling.send_system(Control::Restart(cause));
                }
            }
            Directive::Stop => {
                child.stop();
                siblings.iter().for_each(AnyActorRef::stop);
            }
            Directive::Escalate if self.private(|private| private.failed) => {
                // This actor waits for a verdict already, which will be the verdict on this child too. Its failure has
                // suspended the child once more than an escalation does: undo that.
                let _ = child.send_system(Control::Resume { judged: false });
                self.private(|private| private.extras().culprits.push(child));
            }
            Directive::Escalate => self.fail(failure, Some(child)),
        }
    }

    /// Returns whether the limit allows one more restart of the child and of the siblings that are restarted with it;
    /// counts the restart.
    fn may_restart(&mut self, strategy: &Strategy, child: &AnyActorRef, siblings: &[AnyActorRef]) -> bool {
        let (limit, now) = (strategy.restart_limit(), self.core().system.now());
        self.private(|private| {
            let histories = &mut private.extras().histories;
            std::iter::once(child)
                .chain(siblings)
                .all(|child| histories.entry(child.clone()).or_default().allows(limit, now))
        })
    }
}

fn log_verdict(directive: Directive, beyond: bool, child: &AnyActorRef, failure: &Failure) {
    // The event says the same.
    if wants_traced_warnings() {
        return;
    }
    let (level, verdict) = match directive {
        Directive::Resume => (log::Level::Warn, "failed and goes on"),
        Directive::Restart => (log::Level::Error, "failed and is restarted"),
        Directive::Stop if beyond => {
            (log::Level::Error, "failed beyond its limit of restarts and is stopped")
        }
        Directive::Stop => (log::Level::Error, "failed and is stopped"),
        Directive::Escalate => return,
    };
    log_failure(level, child, verdict, failure);
}

/// Logs the failure of a hook whose failures change nothing.
pub(crate) fn log_ignored(actor: &AnyActorRef, hook: &str, failure: &Failure) {
    log_failure(log::Level::Error, actor, &format!("failed in `{hook}` and goes on with it"), failure);
}

fn log_failure(level: log::Level, actor: &AnyActorRef, what: &str, failure: &Failure) {
    // The logger and the text of the cause are user code.
    let _ = guarded(|| {
        report!(actor.core().system.stderr, Failure, level, "{} {what}: {failure}", actor.path());
        Ok(())
    });
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::prelude::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    /// Tells that it fails, and fails.
    struct Child;

    impl Actor for Child {
        type Message = Sender<()>;
        fn receive(&mut self, failing: Sender<()>, _: &mut Context<Sender<()>>) -> HandlerResult {
            failing.send(())?;
            Err(Failure::msg("as told"))
        }
    }

    /// Asks for the number of children, and of the children of whose restarts there is a history.
    struct Counts;

    impl Request for Counts {
        type Reply = (usize, usize);
    }

    enum ParentDo {
        Counts(Call<Counts>),
        WaitFor(Receiver<()>),
    }

    impl From<Call<Counts>> for ParentDo {
        fn from(call: Call<Counts>) -> Self {
            Self::Counts(call)
        }
    }

    struct Parent {
        child: Sender<ActorRef<Sender<()>>>,
        judged: Sender<()>,
    }

    impl Actor for Parent {
        type Message = ParentDo;
        fn started(&mut self, ctx: &mut Context<ParentDo>) -> HandlerResult {
            self.child.send(ctx.spawn(|| Child)?)?;
            Ok(())
        }
        fn receive(&mut self, message: ParentDo, ctx: &mut Context<ParentDo>) -> HandlerResult {
            match message {
                ParentDo::Counts(call) => {
                    let histories = ctx.private(|private| {
                        private.extras.as_ref().map_or(0, |extras| extras.histories.len())
                    });
                    call.answer(|_| (ctx.children().len(), histories));
                }
                ParentDo::WaitFor(signal) => signal.recv()?,
            }
            Ok(())
        }
        fn supervision(&self) -> Strategy {
            let judged = std::sync::Mutex::new(self.judged.clone());
            let note = move |_: &Failure| {
                judged.lock().expect("no panic").send(()).expect("the test listens");
                Directive::Restart
            };
            Strategy::decide(note).max_restarts(5).quiet()
        }
    }

    fn family(system: &System) -> (ActorRef<ParentDo>, ActorRef<Sender<()>>, Receiver<()>) {
        let ((child, children), (judged, verdicts)) = (channel(), channel());
        let recipe = move || Parent { child: child.clone(), judged: judged.clone() };
        let parent = system.spawn(recipe).expect("there is room");
        (parent, children.recv().expect("it has started"), verdicts)
    }

    #[test]
    fn the_history_of_a_child_that_has_ended_is_forgotten() {
        let system = System::builder("histories").build().expect("the settings are sound");
        let (parent, child, verdicts) = family(&system);
        let counts = || parent.ask(Counts).wait().expect("it lives");
        child.tell(channel().0);
        verdicts.recv().expect("it is judged");
        assert_eq!(counts(), (1, 1));
        child.stop();
        let start = Instant::now();
        while counts() != (0, 0) {
            assert!(start.elapsed() < Duration::from_secs(60), "{:?} are left", counts());
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_failure_is_judged_though_its_actor_has_ended_by_then() {
        // The child must not wait in the LIFO slot of the worker that the parent holds.
        let two = Dispatcher::work_stealing().threads(2).lifo(false);
        let system =
            System::builder("judges").dispatcher("default", two).build().expect("the settings are sound");
        let (parent, child, verdicts) = family(&system);
        let ((signal, signals), (failing, failures)) = (channel(), channel());
        parent.tell(ParentDo::WaitFor(signals));
        child.tell(failing);
        // The failure goes before any control that comes from now on.
        failures.recv_timeout(Duration::from_secs(60)).expect("it fails");
        child.stop();
        child.when_ended().wait().expect("it was told to stop");
        signal.send(()).expect("it waits");
        verdicts.recv_timeout(Duration::from_secs(60)).expect("the failure is judged");
        assert_eq!(parent.ask(Counts).wait().expect("it lives"), (0, 0));
    }
}
