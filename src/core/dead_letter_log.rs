//! The log of dead letters: the first few are logged, then a pause follows, so a flood of them does no harm.

use crate::sync::{Mutex, lock};
use crate::time::clock::Clock;
use crate::util::stderr_log::{Notice, StderrLog};
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The target of the lines, for filters.
pub(crate) const TARGET: &str = "pointsman::dead_letters";

/// The settings of the log of dead letters; see [`SystemBuilder::log_dead_letters`](crate::SystemBuilder::log_dead_letters).
///
/// By default (Akka's) the first 10 letters are logged, then none for 5 minutes by the system's clock. The first letter
/// after that is logged with the number of letters that were not, and counting begins anew. Nothing is logged while the
/// system ends. Lines have the level `info` and the target `pointsman::dead_letters`. Dropped and unhandled messages
/// are logged as dead letters are; suppressed messages are never logged.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::dead_letters::DeadLetterLog;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop")
///     .log_dead_letters(DeadLetterLog::first(100).pause(Duration::from_secs(60)).during_shutdown(true))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
#[must_use]
pub struct DeadLetterLog {
    /// `None`: all of them.
    #[cfg_attr(feature = "config", serde(rename = "log", with = "crate::util::values::number_or_all"))]
    pub(crate) count_max: Option<u64>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) pause: Duration,
    #[cfg_attr(feature = "config", serde(rename = "log-during-shutdown"))]
    pub(crate) during_shutdown: bool,
}

impl DeadLetterLog {
    /// Logs so many letters before each pause; 0 logs none at all.
    pub fn first(letter_count: u64) -> Self {
        Self { count_max: Some(letter_count), pause: Duration::from_secs(5 * 60), during_shutdown: false }
    }

    /// Logs every letter, without a pause.
    pub fn all() -> Self {
        Self { count_max: None, ..Self::first(0) }
    }

    /// Logs none.
    pub fn off() -> Self {
        Self::first(0)
    }

    /// Sets the length of the pause after the last of the first letters. Default: 5 minutes.
    pub fn pause(mut self, length: Duration) -> Self {
        self.pause = length;
        self
    }

    /// Sets whether letters are logged while the system ends, too. Default: no.
    pub fn during_shutdown(mut self, is_on: bool) -> Self {
        self.during_shutdown = is_on;
        self
    }
}

impl Default for DeadLetterLog {
    fn default() -> Self {
        Self::first(10)
    }
}

/// The log of a single system's dead letters.
pub(crate) struct LetterLog {
    system: String,
    settings: DeadLetterLog,
    stderr: StderrLog,
    clock: StdArc<dyn Clock>,
    count: Mutex<Count>,
}

#[derive(Debug, Default)]
struct Count {
    /// Letters since the log began or was resumed.
    letters: u64,
    /// The end of the present pause.
    silent_until: Option<Duration>,
}

/// The verdict on a single letter.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Say,
    /// Log it; it is the last letter before the pause.
    SayLast,
    /// Log it with the number of letters that were not logged; it is the first letter after the pause.
    Resume {
        missed: u64,
    },
    Silence,
}

impl LetterLog {
    pub(crate) fn new(
        system: String,
        settings: DeadLetterLog,
        stderr: StderrLog,
        clock: StdArc<dyn Clock>,
    ) -> Self {
        Self { system, settings, stderr, clock, count: Mutex::new(Count::default()) }
    }

    /// Returns whether any logger reads the lines, or standard error takes them instead.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.settings.count_max != Some(0)
            && (log::max_level() >= log::LevelFilter::Info || self.stderr.takes(Notice::DeadLetter))
    }

    /// Logs a letter, if the settings allow it now. Calls the user's logger and clock.
    pub(crate) fn note(&self, letter: &dyn fmt::Display, is_ending: bool) {
        if !self.is_read() || (is_ending && !self.settings.during_shutdown) {
            return;
        }
        let is_logged = log::log_enabled!(target: TARGET, log::Level::Info);
        if !is_logged && !self.stderr.takes(Notice::DeadLetter) {
            return;
        }
        let Self { system, settings, .. } = self;
        let now = self.clock.now();
        let verdict = lock(&self.count).judge(settings, now);
        if verdict != Verdict::Silence {
            self.stderr.write(
                Notice::DeadLetter,
                log::Level::Info,
                format_args!("dead letter in system {system:?}: {letter}"),
            );
        }
        match verdict {
            Verdict::Silence => {}
            Verdict::Say => log::info!(target: TARGET, "system {system:?}: {letter}"),
            Verdict::SayLast => log::info!(
                target: TARGET,
                "system {system:?}: {letter}; no more dead letters are logged for {:?}",
                settings.pause
            ),
            Verdict::Resume { missed } => log::info!(
                target: TARGET,
                "system {system:?}: {letter}; {missed} dead letters before it were not logged, counting begins anew"
            ),
        }
    }
}

impl Count {
    fn judge(&mut self, settings: &DeadLetterLog, now: Duration) -> Verdict {
        let Some(count_max) = settings.count_max else { return Verdict::Say };
        self.letters += 1;
        match self.silent_until {
            Some(until) if now < until => Verdict::Silence,
            Some(_) => {
                let missed = self.letters - count_max - 1;
                *self = Self::default();
                Verdict::Resume { missed }
            }
            None if self.letters < count_max => Verdict::Say,
            None => {
                self.silent_until = Some(now.saturating_add(settings.pause));
                Verdict::SayLast
            }
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn after_the_first_letters_comes_a_pause_and_then_the_number_missed() {
        let settings = DeadLetterLog::first(3).pause(5 * MINUTE);
        let mut count = Count::default();
        let mut judge = |now| count.judge(&settings, now);
        assert_eq!(
            [judge(MINUTE), judge(MINUTE), judge(MINUTE)],
            [Verdict::Say, Verdict::Say, Verdict::SayLast]
        );
        assert_eq!([judge(MINUTE), judge(5 * MINUTE)], [Verdict::Silence, Verdict::Silence]);
        assert_eq!(judge(6 * MINUTE), Verdict::Resume { missed: 2 });
        // Counting begins anew behind the letter that resumed it.
        assert_eq!(
            [judge(6 * MINUTE), judge(6 * MINUTE), judge(6 * MINUTE), judge(6 * MINUTE)],
            [Verdict::Say, Verdict::Say, Verdict::SayLast, Verdict::Silence]
        );
        assert_eq!(judge(12 * MINUTE), Verdict::Resume { missed: 1 });
    }

    #[test]
    fn a_log_of_all_letters_never_pauses() {
        let mut count = Count::default();
        assert!((0..1000).all(|_| count.judge(&DeadLetterLog::all(), MINUTE) == Verdict::Say));
    }
}
