//! Standard error stands in for a logger where the program has installed none: the first lines of each kind go there.
//!
//! Without it, a program whose actors fail would say nothing, since the crate `log` drops all records until a logger is
//! installed. The numbers of lines are the process's, since a logger is, too.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::process_wide;
use crate::util::panic::quietly;
use std::fmt;
use std::io::Write;

/// The most lines of each kind.
const LINES_MAX: u32 = 5;

/// The most bytes of a line's text.
const TEXT_MAX: usize = 2048;

/// The kinds of lines. Each has lines of its own, so that a flood of one kind hides no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// An actor has failed, and its supervisor's verdict.
    Failure,
    /// A message has become a dead letter.
    DeadLetter,
    /// A router, a pool or a system has ended by itself.
    End,
    /// Any other warning or error.
    Warning,
}

impl Notice {
    const COUNT: usize = 4;

    /// The name of such lines.
    fn plural(self) -> &'static str {
        match self {
            Self::Failure => "failures",
            Self::DeadLetter => "dead letters",
            Self::End => "ends",
            Self::Warning => "warnings",
        }
    }
}

/// The lines written so far.
#[derive(Default)]
struct Written {
    by_kind: [AtomicU32; Notice::COUNT],
    /// The hint to install a logger comes once.
    hints: AtomicU32,
}

process_wide! {
    static WRITTEN: Written = Written::default();
}

/// Whether a system writes to standard error while no logger is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StderrLog {
    pub(crate) is_on: bool,
}

impl StderrLog {
    /// Returns whether a line of this kind would be written now.
    #[inline]
    pub(crate) fn takes(self, kind: Notice) -> bool {
        // The models have no logger, and must not meet these counters.
        !crate::sync::EXPLORED
            && self.is_on
            && log::max_level() == log::LevelFilter::Off
            // Ordering: Relaxed; a statistic.
            && WRITTEN.by_kind[kind as usize].load(Ordering::Relaxed) < LINES_MAX
            && is_logger_missing()
    }

    /// Writes a line if no logger is installed, and the lines of its kind are not used up. Runs code of the user's where
    /// the text does.
    pub(crate) fn write(self, kind: Notice, level: log::Level, text: fmt::Arguments<'_>) {
        if !self.takes(kind) {
            return;
        }
        // Ordering: Relaxed; only the count matters.
        let before = WRITTEN.by_kind[kind as usize].fetch_add(1, Ordering::Relaxed);
        if before >= LINES_MAX {
            return;
        }
        // The text runs code of users: it is made before the lock of standard error is taken.
        quietly(|| {
            let mut text = text.to_string();
            if text.len() > TEXT_MAX {
                let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                text.truncate(end);
                text.push('…');
            }
            let mut lines = String::new();
            // Ordering: Relaxed; only the count matters.
            if WRITTEN.hints.fetch_add(1, Ordering::Relaxed) == 0 {
                lines = format!(
                    "pointsman: no logger is installed, so the first {LINES_MAX} lines of each kind go to standard \
                     error; install a logger of the crate `log`, such as env_logger, to read all of them, or turn this \
                     off by `SystemBuilder::stderr_without_logger(false)`\n"
                );
            }
            let level = level.as_str().to_ascii_lowercase();
            lines.push_str(&format!("pointsman: {level}: {text}"));
            if before + 1 == LINES_MAX {
                lines.push_str(&format!("; no more {} are written", kind.plural()));
            }
            lines.push('\n');
            // Standard error may be closed. `eprintln!` would panic then, and end a program that aborts on panics.
            let _ = std::io::stderr().write_all(lines.as_bytes());
        });
    }
}

/// Returns whether the logger is the one of the crate `log` that drops all records: its type has no size. An installed
/// logger that is silenced by its level has a size, as a rule.
fn is_logger_missing() -> bool {
    std::mem::size_of_val(log::logger()) == 0
}

/// Logs a line, or writes it to standard error where no logger is installed: `report!(stderr, kind, level, text..)`. It
/// runs the user's logger, and so the caller guards it.
macro_rules! report {
    ($stderr:expr, $kind:ident, $level:expr, $($text:tt)+) => {{
        let (stderr, level) = ($stderr, $level);
        log::log!(target: "pointsman", level, $($text)+);
        // Asked here: the arguments of a line that is not written are not made.
        if stderr.takes($crate::util::stderr_log::Notice::$kind) {
            stderr.write($crate::util::stderr_log::Notice::$kind, level, format_args!($($text)+));
        }
    }};
}
pub(crate) use report;
