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
use crate::core::strategy::{Directive, Strategy};
use crate::failure::{Failure, guarded};
use crate::util::panic::drop_guarded;

/// The target of this crate's log records, except the records of dead letters.
const LOG_TARGET: &str = "pointsman";

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Judges the failure of a child.
    pub(crate) fn judge(&mut self, child: AnyActorRef, failure: Failure) {
        if !self.core().children.contains(&child) {
            return;
        }
        if let Some(child_hooks) = self.parent_hooks() {
            let _ = guarded(|| {
                child_hooks.failed(child, failure);
                Ok(())
            });
            return;
        }
        let strategy = match &child.core().on_failure {
            Some(own) => Ok(Strategy::clone(own)),
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
        self.fail(own, None);
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
        log::log!(target: LOG_TARGET, level, "{} {what}: {failure}", actor.path());
        Ok(())
    });
}
