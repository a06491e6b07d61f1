//! A restart policy says when an actor of a group comes again, and how long that waits.

use crate::core::restart_delay::RestartDelay;
use crate::settings::setting_error::SettingError;
use std::time::Duration;

/// A restart policy says whether an actor of a group that has failed or ended comes again, and after which wait.
///
/// The k-th restart in a row, counted from 0, waits for `min × factor^k`, and no longer than `max`. An actor that has
/// lived for [long enough](Self::auto_reset) is restarted at once, and the count begins anew.
///
/// ```
/// use pointsman::group::RestartPolicy;
/// use std::time::Duration;
///
/// let policy = RestartPolicy::on_failure(Duration::from_secs(1), Duration::from_secs(60)).max_retries(5);
/// ```
///
/// The rules are elfo's.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct RestartPolicy {
    pub(crate) when: When,
    delay: RestartDelay,
    max_retries: Option<u32>,
    auto_reset: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    OnFailure,
    Always,
}

/// This mode says what happens to messages for an actor that has failed or ended and waits for its restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WhileRestarting {
    /// Messages are refused as closed, and the messages in the actor's mailbox become dead letters. elfo does the same.
    Refuse,
    /// Messages wait in the actor's mailbox, within its capacity. An actor that fails is restarted in its place, with
    /// the same reference, and keeps the messages in its mailbox; if the actor is given up, these messages become dead
    /// letters. An actor that ends by itself is re-created, and messages wait that come after its end.
    #[default]
    Queue,
    /// The first message creates the actor at once, before the wait is over. The messages in the mailbox of the former
    /// actor become dead letters.
    SpawnAnew,
}

impl RestartPolicy {
    /// Restarts nothing: the key is free when its actor has ended.
    pub fn never() -> Self {
        Self::new(When::Never, Duration::ZERO, Duration::ZERO)
    }

    /// Restarts an actor that has failed, by a panic or by an error. `max` must not be below `min`.
    pub fn on_failure(min: Duration, max: Duration) -> Self {
        Self::new(When::OnFailure, min, max)
    }

    /// Restarts an actor that has failed or ended for any reason but its [passivation](crate::Context::passivate) or the
    /// group's end. `max` must not be below `min`.
    pub fn always(min: Duration, max: Duration) -> Self {
        Self::new(When::Always, min, max)
    }

    fn new(when: When, min: Duration, max: Duration) -> Self {
        Self { when, delay: RestartDelay::doubling(min, max), max_retries: None, auto_reset: None }
    }

    /// Sets the factor by which each wait is longer than the wait before; the default is 2. A factor that is negative
    /// or not a number counts as 0, which makes each wait the shortest, and is logged.
    pub fn factor(mut self, factor: f64) -> Self {
        self.delay.factor = if factor >= 0.0 {
            factor
        } else {
            log::warn!(target: "pointsman", "restart factor {factor} counts as 0: must be 0 or above");
            0.0
        };
        self
    }

    /// Limits the restarts of an actor in a row; the default is no limit. An actor beyond the limit is given up: its
    /// key is free, and the next message for the key creates the actor afresh.
    ///
    /// [`GroupPlan::spawn`](crate::group::GroupPlan::spawn) refuses a limit above 0 if every life, however short,
    /// would begin the count anew: if `min` is 0 and [`auto_reset`](Self::auto_reset) is not set, or if `auto_reset` is
    /// 0.
    pub fn max_retries(mut self, count: u32) -> Self {
        self.max_retries = Some(count);
        self
    }

    /// Sets how long an actor has to live for the count to begin anew; the default is `min`. A life ends when the actor
    /// fails, or begins to end. The wait for a restart is no part of a life, and neither is the work of
    /// [`stopped`](crate::Actor::stopped).
    pub fn auto_reset(mut self, lived: Duration) -> Self {
        self.auto_reset = Some(lived);
        self
    }

    pub(crate) fn check(&self) -> Result<(), SettingError> {
        self.delay.check("longest wait before a restart")?;
        // Each restart would begin the count anew: an actor that fails at once would be restarted at once, for ever.
        match self.max_retries {
            Some(count @ 1..) if self.when != When::Never && self.lived_enough().is_zero() => {
                let allowed = format!(
                    "above 0, since each of at most {count} restarts in a row would begin the count anew"
                );
                Err(SettingError::new("auto_reset", 0, allowed))
            }
            _ => Ok(()),
        }
    }

    /// Returns how long an actor has to live for the count to begin anew.
    fn lived_enough(&self) -> Duration {
        self.auto_reset.unwrap_or(self.delay.min)
    }

    /// Counts the next restart, and returns its wait; `None` if there is no further restart.
    pub(crate) fn next(&self, tries: &mut Tries) -> Option<Duration> {
        // Each life is counted once: an actor that is stopped while it waits for a restart ends no second life.
        let lived = std::mem::take(&mut tries.lived);
        let begins_anew = lived >= self.lived_enough();
        if begins_anew {
            *tries = Tries { began: tries.began, ..Tries::default() };
        }
        if self.max_retries.is_some_and(|max| tries.count >= max) {
            return None;
        }
        tries.count = tries.count.saturating_add(1);
        if begins_anew {
            return Some(Duration::ZERO);
        }
        let wait = self.delay.after(tries.delayed);
        tries.delayed = tries.delayed.saturating_add(1);
        Some(wait)
    }
}

/// Tries count the restarts of a single actor in a row.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tries {
    /// The start of the present life; `None` between two lives.
    began: Option<Duration>,
    /// The length of the last life, until `RestartPolicy::next` has counted it.
    lived: Duration,
    count: u32,
    /// The restarts among them that waited.
    delayed: u32,
}

impl Tries {
    pub(crate) fn begin(&mut self, now: Duration) {
        self.began = Some(now);
    }

    /// Ends the present life: the actor has failed, or begins to end. The actor's work until it has ended is no part of
    /// its life.
    pub(crate) fn end(&mut self, now: Duration) {
        if let Some(began) = self.began.take() {
            self.lived = now.saturating_sub(began);
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the waits of an actor that lives for this number of seconds each time.
    fn waits(policy: RestartPolicy, lives: &[u32]) -> Vec<Option<f64>> {
        let (mut tries, mut now) = (Tries::default(), Duration::ZERO);
        let wait = |&life: &u32| {
            tries.begin(now);
            now += SECOND * life;
            tries.end(now);
            let wait = policy.next(&mut tries)?;
            now += wait;
            Some(wait.as_secs_f64())
        };
        lives.iter().map(wait).collect()
    }

    #[test]
    fn each_wait_is_longer_up_to_the_longest() {
        let policy = RestartPolicy::on_failure(SECOND * 5, SECOND * 30);
        assert_eq!(waits(policy, &[0, 1, 4, 0, 0]), [5.0, 10.0, 20.0, 30.0, 30.0].map(Some));
        let slow = policy.factor(1.5);
        assert_eq!(waits(slow, &[0, 0, 0]), [5.0, 7.5, 11.25].map(Some));
    }

    #[test]
    fn a_life_that_was_long_enough_begins_the_count_anew() {
        let policy = RestartPolicy::on_failure(SECOND * 5, SECOND * 30);
        assert_eq!(waits(policy, &[0, 0, 5, 0, 0]), [5.0, 10.0, 0.0, 5.0, 10.0].map(Some));
        let late = policy.auto_reset(SECOND * 7);
        assert_eq!(waits(late, &[0, 6, 7]), [5.0, 10.0, 0.0].map(Some));
    }

    #[test]
    fn beyond_its_retries_an_actor_is_given_up() {
        let policy = RestartPolicy::on_failure(SECOND * 5, SECOND * 30).max_retries(2);
        assert_eq!(waits(policy, &[0, 0, 0]), [Some(5.0), Some(10.0), None]);
        assert_eq!(waits(policy, &[0, 9, 0, 0]), [Some(5.0), Some(0.0), Some(5.0), None]);
        assert_eq!(waits(policy.max_retries(0), &[9]), [None]);
    }

    #[test]
    fn retries_of_which_each_would_begin_the_count_anew_are_refused() {
        let at_once = RestartPolicy::on_failure(Duration::ZERO, SECOND).max_retries(2);
        assert_eq!(waits(at_once, &[0; 9]), [Some(0.0); 9], "it would never be given up");
        let fault = at_once.check().expect_err("no restart counts");
        assert_eq!(
            fault.to_string(),
            "auto_reset 0: must be above 0, since each of at most 2 restarts in a row would begin the count anew"
        );
        assert!(at_once.auto_reset(Duration::ZERO).check().is_err());
        let counted = at_once.auto_reset(SECOND);
        assert!(counted.check().is_ok());
        assert_eq!(waits(counted, &[0; 3]), [Some(0.0), Some(0.0), None]);
        assert!(at_once.max_retries(0).check().is_ok());
        assert!(RestartPolicy::never().max_retries(2).check().is_ok());
    }

    #[test]
    fn a_factor_that_is_none_counts_as_zero() {
        let policy = RestartPolicy::always(SECOND * 5, SECOND * 30);
        for factor in [-1.0, f64::NAN] {
            assert_eq!(waits(policy.factor(factor), &[0, 0, 0]), [5.0, 5.0, 5.0].map(Some));
        }
        assert_eq!(waits(policy.factor(f64::INFINITY), &[0, 0]), [5.0, 30.0].map(Some));
    }

    #[test]
    fn the_longest_wait_is_checked() {
        assert!(RestartPolicy::always(SECOND * 5, SECOND).check().is_err());
        assert!(RestartPolicy::always(SECOND, SECOND).check().is_ok());
    }
}
