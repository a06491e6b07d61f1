//! When an actor of a group is created again, and how long that waits.

use std::time::Duration;

const FACTOR_DEFAULT: f64 = 2.0;

/// Whether an actor of a group that has ended is created again, and after how long.
///
/// The k-th restart in a row, from 0, waits for `min × factor^k`, and no longer than `max`. An actor that has lived
/// for [a while](Self::auto_reset) is restarted at once, and the count begins anew.
///
/// ```
/// use pointsman::topology::RestartPolicy;
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
    min: Duration,
    max: Duration,
    factor: f64,
    max_retries: Option<u32>,
    auto_reset: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    OnFailure,
    Always,
}

/// What becomes of messages for an actor that has failed or ended and is about to be created again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WhileRestarting {
    /// They are refused as closed, and what the actor had in its mailbox is dead letters. elfo's way.
    Refuse,
    /// They wait in its mailbox, within its capacity, and the actor keeps what it had there when it fails: it is
    /// restarted in its place, with the same reference. If it is given up, they are dead letters. An actor that ends
    /// by itself is created anew, and those messages wait that come from then on.
    #[default]
    Queue,
    /// The first one creates the actor at once, instead of when the wait is over. What the actor had in its mailbox
    /// is dead letters.
    SpawnAnew,
}

impl RestartPolicy {
    /// Nothing is restarted: the key is free when its actor has ended.
    pub fn never() -> Self {
        Self::new(When::Never, Duration::ZERO, Duration::ZERO)
    }

    /// Restarts what has failed: panicked, or returned an error. `max` is not below `min`.
    pub fn on_failure(min: Duration, max: Duration) -> Self {
        Self::new(When::OnFailure, min, max)
    }

    /// Restarts whatever has ended, for any reason but its [retirement](crate::Context::retire) or the group's end.
    /// `max` is not below `min`.
    pub fn always(min: Duration, max: Duration) -> Self {
        Self::new(When::Always, min, max)
    }

    fn new(when: When, min: Duration, max: Duration) -> Self {
        Self { when, min, max, factor: FACTOR_DEFAULT, max_retries: None, auto_reset: None }
    }

    /// By how much each wait is longer than the one before; 2 unless said otherwise. What is negative or no number
    /// counts as 0, so that each wait is the shortest, and is logged.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = if factor >= 0.0 {
            factor
        } else {
            log::warn!(target: "pointsman", "restart factor {factor} counts as 0: must be 0 or above");
            0.0
        };
        self
    }

    /// Gives an actor up when it has been restarted so often in a row; never, unless said otherwise. The key is free
    /// then, and the next message that asks for it creates its actor afresh.
    ///
    /// Refused where no life is too short for the count to begin anew: where `min` is 0, and [`auto_reset`](Self::auto_reset)
    /// is not said.
    pub fn max_retries(mut self, count: u32) -> Self {
        self.max_retries = Some(count);
        self
    }

    /// How long an actor has to live for the count to begin anew; `min` unless said otherwise. Its life ends when it
    /// fails, or begins to end: to wait for a restart is no part of it, nor what [`stopped`](crate::Actor::stopped) does.
    pub fn auto_reset(mut self, lived: Duration) -> Self {
        self.auto_reset = Some(lived);
        self
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.max < self.min {
            return Err(format!(
                "longest wait before a restart {:?}: must be at least the shortest, {:?}",
                self.max, self.min
            ));
        }
        // Each restart would begin the count anew: an actor that fails at once would be restarted at once, for ever.
        match self.max_retries {
            Some(count @ 1..) if self.when != When::Never && self.lived_enough().is_zero() => Err(format!(
                "at most {count} restarts in a row, of which each begins the count anew: say by auto_reset how long an \
                 actor has to live for that"
            )),
            _ => Ok(()),
        }
    }

    /// How long a life begins the count anew.
    fn lived_enough(&self) -> Duration {
        self.auto_reset.unwrap_or(self.min)
    }

    /// How long the next restart waits; `None` if there is none. Counts it.
    pub(crate) fn next(&self, tries: &mut Tries) -> Option<Duration> {
        // Each life is counted once: to be stopped while waiting for a restart is the end of no other.
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
        let seconds = self.min.as_secs_f64() * self.factor.powi(tries.power);
        tries.power = tries.power.saturating_add(1);
        // Zero times a power without bound is no number.
        let longest = if self.min.is_zero() { Duration::ZERO } else { self.max };
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(longest);
        Some(wait.clamp(self.min, self.max))
    }
}

/// The restarts of one actor in a row.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tries {
    /// When its present life began; `None` while it has none.
    began: Option<Duration>,
    /// How long its last life was, until that is counted.
    lived: Duration,
    count: u32,
    power: i32,
}

impl Tries {
    pub fn begin(&mut self, now: Duration) {
        self.began = Some(now);
    }

    /// It has failed, or begins to end; what it does until it has ended is no part of its life.
    pub fn end(&mut self, now: Duration) {
        if let Some(began) = self.began.take() {
            self.lived = now.saturating_sub(began);
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The waits of an actor that lives for so many seconds each time.
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
        assert_eq!(waits(policy, &[0; 2000]).last(), Some(&Some(30.0)), "no power overflows");
        let at_once = RestartPolicy::on_failure(Duration::ZERO, SECOND * 30).auto_reset(SECOND);
        assert_eq!(waits(at_once, &[0; 2000]).last(), Some(&Some(0.0)), "nor does it make much of nothing");
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
            fault,
            "at most 2 restarts in a row, of which each begins the count anew: say by auto_reset how long an actor has \
             to live for that"
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
