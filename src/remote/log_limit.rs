//! A limit on lines of the log: one a second, which says how many were left out.

use crate::sync::{Mutex, lock};
use std::time::Duration;

/// The least time between two lines.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Limits the lines about one thing.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    state: Mutex<(Option<Duration>, u64)>,
}

impl LogLimit {
    /// Notes an occasion for a line. `Some`: the line is written now, and so many were left out since the last one.
    pub(crate) fn note(&self, now: Duration) -> Option<u64> {
        let (last, left_out) = &mut *lock(&self.state);
        if last.is_some_and(|last| now.saturating_sub(last) < AGAIN_AFTER) {
            *left_out += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_tells_how_many_were_left_out() {
        let limit = LogLimit::default();
        let noted =
            [0, 0, 999, 1000, 1001, 1999, 3000].map(|millis| limit.note(Duration::from_millis(millis)));
        assert_eq!(noted, [Some(0), None, None, Some(2), None, None, Some(2)]);
    }
}
