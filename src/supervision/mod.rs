//! What happens when an actor fails: its parent decides.
//!
//! An actor fails when a hook or handler returns `Err` or panics. It is suspended together with its
//! children, and its parent gets a [`Failure`] to judge by a [`Strategy`]: the child goes on with its state
//! ([`Directive::Resume`]), gets a new state behind the same reference and mailbox
//! ([`Directive::Restart`]), ends ([`Directive::Stop`]), or the parent fails in its place
//! ([`Directive::Escalate`]). The message that was being handled is not handled again.
//!
//! The rules are Akka's; the limits follow its fixed window.

mod failure;

pub use failure::{Failure, FailureKind};

use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// What a parent does about a failed child.
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

/// How often a child may be restarted: at most `count` times within a window of time.
///
/// The window is fixed, as in Akka: it opens at the first failure; inside it at most `count` restarts
/// happen, and the next failure stops the child; the first failure after it opens a new one.
///
/// ```
/// use pointsman::prelude::*;
/// use std::time::Duration;
///
/// let strategy: Strategy = Restart::up_to(3).within(Duration::from_secs(60)).into();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    count: Option<u32>,
    window: Option<Duration>,
}

impl Restart {
    /// Restarts without a limit, unless [`within`](Self::within) sets one.
    pub fn always() -> Self {
        Self { count: None, window: None }
    }

    /// At most `count` restarts in the child's life, or in each window given by [`within`](Self::within).
    /// 0 means never.
    pub fn up_to(count: u32) -> Self {
        Self { count: Some(count), window: None }
    }

    /// Counts restarts in windows of this length instead of the child's whole life.
    ///
    /// After [`always`](Self::always), which names no count, one restart is allowed in each window, as in
    /// Akka.
    pub fn within(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }
}

/// A child's restarts so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestartHistory {
    count: u32,
    opened: Option<Duration>,
}

impl RestartHistory {
    /// Whether `limit` allows a restart at `now`; counts it if so.
    pub fn allows(&mut self, limit: Restart, now: Duration) -> bool {
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

type Decider = dyn Fn(&Failure) -> Directive + Send + Sync;

/// How a parent judges the failures of a child (one for one: the siblings are left alone).
///
/// ```
/// use pointsman::prelude::*;
///
/// // The default: what failed while it was created, was killed, or died of a watched actor's death stops;
/// // everything else restarts.
/// let default = Strategy::default();
/// let stopping = Strategy::stop();
/// let custom = Strategy::decide(|failure| {
///     if failure.is::<std::io::Error>() { Directive::Restart } else { Directive::Escalate }
/// })
/// .limit(Restart::up_to(5));
/// ```
#[derive(Clone)]
pub struct Strategy {
    /// `None`: the default decider.
    decider: Option<StdArc<Decider>>,
    limit: Restart,
}

impl Strategy {
    /// Judges by a function. It runs in the parent; when it panics, the parent fails.
    pub fn decide(decider: impl Fn(&Failure) -> Directive + Send + Sync + 'static) -> Self {
        Self { decider: Some(StdArc::new(decider)), limit: Restart::always() }
    }

    /// Every failure stops the child.
    pub fn stop() -> Self {
        Self::decide(|_| Directive::Stop)
    }

    /// Every failure is passed over: the child keeps its state. A child that failed while it was created
    /// has none, and is created anew.
    pub fn resume() -> Self {
        Self::decide(|_| Directive::Resume)
    }

    /// Every failure becomes the parent's own.
    pub fn escalate() -> Self {
        Self::decide(|_| Directive::Escalate)
    }

    /// Limits how often [`Directive::Restart`] is followed; beyond the limit the child stops.
    pub fn limit(mut self, limit: Restart) -> Self {
        self.limit = limit;
        self
    }

    /// The verdict on a failure at `now`, the limit included.
    pub(crate) fn judge(&self, failure: &Failure, history: &mut RestartHistory, now: Duration) -> Directive {
        let directive = match &self.decider {
            Some(decider) => decider(failure),
            None => default_decider(failure),
        };
        if directive == Directive::Restart && !history.allows(self.limit, now) {
            return Directive::Stop;
        }
        directive
    }
}

impl Default for Strategy {
    /// Akka's default: initialization failures, kills and death pacts stop, everything else restarts,
    /// without a limit.
    fn default() -> Self {
        Self { decider: None, limit: Restart::always() }
    }
}

impl From<Restart> for Strategy {
    /// The default decider with a limit.
    fn from(limit: Restart) -> Self {
        Self { decider: None, limit }
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strategy")
            .field("decider", &if self.decider.is_some() { "custom" } else { "default" })
            .field("limit", &self.limit)
            .finish()
    }
}

/// What Akka's default decider says.
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

    fn history(limit: Restart, failures: &[u64]) -> Vec<bool> {
        let mut history = RestartHistory::default();
        failures.iter().map(|&at| history.allows(limit, SECOND * at as u32)).collect()
    }

    #[test]
    fn a_count_without_a_window_holds_for_life() {
        assert_eq!(history(Restart::up_to(2), &[0, 1000, 2000]), [true, true, false]);
        assert_eq!(history(Restart::up_to(0), &[0]), [false]);
        assert!(history(Restart::always(), &[0; 50]).into_iter().all(|allowed| allowed));
    }

    #[test]
    fn the_window_opens_at_the_first_failure_and_a_new_one_after_it() {
        let limit = Restart::up_to(2).within(SECOND * 10);
        assert_eq!(history(limit, &[0, 5, 10]), [true, true, false]);
        assert_eq!(history(limit, &[0, 5, 11, 12, 13]), [true, true, true, true, false]);
    }

    #[test]
    fn a_window_without_a_count_allows_one_restart_in_each() {
        let limit = Restart::always().within(SECOND * 10);
        assert_eq!(history(limit, &[0, 5]), [true, false]);
        assert_eq!(history(limit, &[0, 11]), [true, true]);
    }

    #[test]
    fn a_very_long_window_does_not_overflow() {
        let limit = Restart::up_to(1).within(Duration::MAX);
        assert_eq!(history(limit, &[0, u64::from(u32::MAX)]), [true, false]);
    }
}
