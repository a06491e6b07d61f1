//! Supervision strategies: a parent decides about a failed actor.
//!
//! An actor fails when a hook or handler returns `Err` or panics. It is suspended together with its
//! children, and its parent gets a [`Failure`] to judge by a [`Strategy`]: the child goes on with its state
//! ([`Directive::Resume`]), gets a new state behind the same reference and mailbox
//! ([`Directive::Restart`]), ends ([`Directive::Stop`]), or the parent fails in its place
//! ([`Directive::Escalate`]). The message that was being handled is not handled again.
//!
//! The rules are Akka's; the limits follow its fixed window.

use crate::failure::{Failure, FailureKind};

use crate::core::any_actor_ref::AnyActorRef;
use crate::util::panic::Guarded;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The decision of a parent about a failed child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    /// The child keeps its state and goes on with the next message.
    Resume,
    /// The child gets a new state; reference, path, mailbox and watchers stay.
    Restart,
    /// The child ends.
    Stop,
    /// The parent fails with the same cause, and its own parent decides.
    Escalate,
}

/// A restart limit: a child may be restarted at most `count` times in each window of time, or in its life. See
/// [`Strategy::within`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RestartLimit {
    pub(crate) count: Option<u32>,
    pub(crate) window: Option<Duration>,
}

/// A child's restarts so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RestartHistory {
    count: u32,
    opened: Option<Duration>,
}

impl RestartHistory {
    /// Returns whether `limit` allows a restart at `now`; counts the restart if so.
    pub(crate) fn allows(&mut self, limit: RestartLimit, now: Duration) -> bool {
        // A window without a count means one restart in each.
        let allowed = match (limit.count, limit.window) {
            (None, None) => return true,
            (Some(count), _) => count,
            (None, Some(_)) => 1,
        };
        if let Some(window) = limit.window {
            match self.opened {
                Some(opened) if now.saturating_sub(opened) <= window => {}
                _ => {
                    self.opened = Some(now);
                    self.count = 0;
                }
            }
        }
        if self.count >= allowed {
            return false;
        }
        self.count += 1;
        true
    }
}

type Function = dyn Fn(&AnyActorRef, &Failure) -> Directive + Send + Sync;

/// The source of the directive for a failure.
#[derive(Clone)]
enum Decider {
    /// Akka's default.
    Default,
    /// The same directive for every failure.
    Always(Directive),
    Function(StdArc<Function>),
}

/// The strategy of a parent for the failures of a child: the directive for each failure, the limit of restarts, and
/// whether the siblings are restarted and stopped too.
///
/// There are two places for a strategy: [`Actor::supervision`](crate::Actor::supervision) of the parent, for all its
/// children, and [`ActorBuilder::on_failure`](crate::actor::ActorBuilder::on_failure) of a single child. The child's
/// own takes precedence.
///
/// One for one, the default, acts on the failing child alone. After [`all_for_one`](Self::all_for_one) a restart or a
/// stop of one child is a restart or a stop of all children.
///
/// Each verdict is logged with the target `pointsman`: a restart and a stop as errors, a resume as a warning. An
/// escalation is not logged, since the last judging parent logs its own verdict. [`quiet`](Self::quiet) switches the
/// log off.
///
/// ```
/// use pointsman::prelude::*;
///
/// // The default: a child that failed while it was created, was killed, or died of a watched actor's death stops;
/// // everything else restarts.
/// let default = Strategy::default();
/// let stopping = Strategy::stop();
/// let custom = Strategy::decide(|failure| {
///     if failure.is::<std::io::Error>() { Directive::Restart } else { Directive::Escalate }
/// })
/// .max_restarts(5);
/// // The stages of a pipeline are of no use without each other.
/// let pipeline = Strategy::default().max_restarts(3).all_for_one();
/// ```
#[derive(Clone)]
pub struct Strategy {
    decider: Decider,
    limit: RestartLimit,
    all_for_one: bool,
    quiet: bool,
}

impl Strategy {
    /// Judges by a function. It runs in the parent; when it panics, the child stops and the parent fails.
    pub fn decide(decider: impl Fn(&Failure) -> Directive + Send + Sync + 'static) -> Self {
        Self::decide_for(move |_, failure| decider(failure))
    }

    /// Judges by a function as [`decide`](Self::decide) does; the function also gets the child that has failed.
    pub fn decide_for(decider: impl Fn(&AnyActorRef, &Failure) -> Directive + Send + Sync + 'static) -> Self {
        let decider = Guarded::new(decider);
        let decider = move |child: &AnyActorRef, failure: &Failure| decider(child, failure);
        Self { decider: Decider::Function(StdArc::new(decider)), ..Self::default() }
    }

    /// Every failure stops the child: Akka's stopping strategy.
    pub fn stop() -> Self {
        Self::always(Directive::Stop)
    }

    /// Every failure is passed over: the child keeps its state. A child that failed while it was created
    /// has none, and is created anew.
    pub fn resume() -> Self {
        Self::always(Directive::Resume)
    }

    /// Every failure becomes the parent's own.
    pub fn escalate() -> Self {
        Self::always(Directive::Escalate)
    }

    fn always(directive: Directive) -> Self {
        Self { decider: Decider::Always(directive), ..Self::default() }
    }

    /// Limits the restarts by [`Directive::Restart`] to at most `count` in the child's life, or in each window given by
    /// [`within`](Self::within); beyond the limit the child stops. 0 means never. There is no limit by default.
    /// Restarts are counted for each child, and forgotten when the child ends.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// let strategy = Strategy::default().max_restarts(3).within(Duration::from_secs(60));
    /// ```
    #[doc(alias("Restart", "limit", "restart"))]
    pub fn max_restarts(mut self, count: u32) -> Self {
        self.limit.count = Some(count);
        self
    }

    /// Counts restarts in windows of this length instead of the child's whole life.
    ///
    /// The window is fixed, as in Akka. It opens at the first failure. Inside it at most as many restarts happen as
    /// [`max_restarts`](Self::max_restarts) allows, and the next failure stops the child. The first failure after the
    /// window opens a new one. Without `max_restarts` one restart is allowed in each window, as in Akka.
    pub fn within(mut self, window: Duration) -> Self {
        self.limit.window = Some(window);
        self
    }

    /// Makes the children share restarts and stops, as Akka's all-for-one strategy does: when one child is restarted or
    /// stopped for its failure, all are. The siblings are suspended before the first of them restarts, and their cause
    /// of failure names the child that failed. Resume acts on the failing child alone.
    ///
    /// The [limit](Self::max_restarts) still counts for each child, and a restart counts for all of them: when one
    /// child has used up its own limit, all stop.
    pub fn all_for_one(mut self) -> Self {
        self.all_for_one = true;
        self
    }

    /// Logs no verdicts.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Returns the directive of the decider. Runs user code.
    pub(crate) fn directive(&self, child: &AnyActorRef, failure: &Failure) -> Directive {
        match &self.decider {
            Decider::Function(decide) => decide(child, failure),
            Decider::Always(directive) => *directive,
            Decider::Default => default_decider(failure),
        }
    }

    /// Judges as the default does, or the same way every time; the limit and the other settings stay.
    #[cfg(feature = "config")]
    pub(crate) fn set_always(&mut self, directive: Option<Directive>) {
        self.decider = directive.map_or(Decider::Default, Decider::Always);
    }

    /// Returns the directive for every failure; `Ok(None)` for the default decider. An error if a function judges.
    #[cfg(feature = "config")]
    pub(crate) fn as_always(&self) -> Result<Option<Directive>, ()> {
        match self.decider {
            Decider::Default => Ok(None),
            Decider::Always(directive) => Ok(Some(directive)),
            Decider::Function(_) => Err(()),
        }
    }

    pub(crate) fn restart_limit(&self) -> RestartLimit {
        self.limit
    }

    pub(crate) fn is_all_for_one(&self) -> bool {
        self.all_for_one
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

impl Default for Strategy {
    /// Akka's default: initialization failures, kills and death pacts stop, everything else restarts,
    /// without a limit.
    fn default() -> Self {
        Self { decider: Decider::Default, limit: RestartLimit::default(), all_for_one: false, quiet: false }
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strategy")
            .field("decider", &self.decider)
            .field("limit", &self.limit)
            .field("all_for_one", &self.all_for_one)
            .finish()
    }
}

impl fmt::Debug for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("Default"),
            Self::Always(directive) => write!(f, "Always({directive:?})"),
            Self::Function(_) => f.write_str("Function(..)"),
        }
    }
}

/// Returns the directive of Akka's default decider.
fn default_decider(failure: &Failure) -> Directive {
    match failure.kind() {
        FailureKind::Initialization | FailureKind::Killed | FailureKind::DeathPact => Directive::Stop,
        FailureKind::Error | FailureKind::Panic => Directive::Restart,
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn history(strategy: Strategy, failures: &[u64]) -> Vec<bool> {
        let mut history = RestartHistory::default();
        failures.iter().map(|&at| history.allows(strategy.restart_limit(), SECOND * at as u32)).collect()
    }

    #[test]
    fn a_count_without_a_window_holds_for_life() {
        assert_eq!(history(Strategy::default().max_restarts(2), &[0, 1000, 2000]), [true, true, false]);
        assert_eq!(history(Strategy::default().max_restarts(0), &[0]), [false]);
        assert!(history(Strategy::default(), &[0; 50]).into_iter().all(|allowed| allowed));
    }

    #[test]
    fn the_window_opens_at_the_first_failure_and_a_new_one_after_it() {
        let strategy = || Strategy::default().max_restarts(2).within(SECOND * 10);
        assert_eq!(history(strategy(), &[0, 5, 10]), [true, true, false]);
        assert_eq!(history(strategy(), &[0, 5, 11, 12, 13]), [true, true, true, true, false]);
    }

    #[test]
    fn a_window_without_a_count_allows_one_restart_in_each() {
        let strategy = || Strategy::default().within(SECOND * 10);
        assert_eq!(history(strategy(), &[0, 5]), [true, false]);
        assert_eq!(history(strategy(), &[0, 11]), [true, true]);
    }

    #[test]
    fn a_very_long_window_does_not_overflow() {
        let strategy = || Strategy::default().max_restarts(1).within(Duration::MAX);
        assert_eq!(history(strategy(), &[0, u64::from(u32::MAX)]), [true, false]);
    }
}
