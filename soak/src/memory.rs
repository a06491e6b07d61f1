//! Whether memory is flat over a run.

/// Rounds of mixes that it takes to judge.
const ROUNDS_MIN: usize = 12;
/// What is allocated at the end of a round may grow by so many bytes from the second quarter of a run to its last: the
/// caches of the process settle late.
const LIVE_MORE: i64 = 1 << 20;
/// What is resident may grow by so much, since heaps fragment, and by a quarter.
const RESIDENT_MORE: u64 = 16 << 20;

/// What was in use when each round had ended.
#[derive(Default)]
pub struct Memory {
    samples: Vec<(i64, u64)>,
}

impl Memory {
    /// Notes bytes allocated and resident.
    pub fn note(&mut self, live: i64, resident: u64) {
        self.samples.push((live, resident));
    }

    /// Judges the run at its end.
    ///
    /// # Errors
    ///
    /// The error says by how much memory has grown. The least values of the second quarter of the run are compared with
    /// those of the last quarter. The run counts from the round `first` on: the rounds before it fill the caches of the
    /// process.
    pub fn judge(&self, first: usize) -> Result<String, String> {
        let judged = self.samples.get(first..).unwrap_or_default();
        let count = judged.len();
        if count < ROUNDS_MIN {
            return Ok(format!(
                "memory is judged over {ROUNDS_MIN} rounds from round {first} on: there were {count}"
            ));
        }
        let least = |range: std::ops::Range<usize>| {
            let samples = &judged[range];
            let live = samples.iter().map(|sample| sample.0).min().unwrap_or(0);
            let resident = samples.iter().map(|sample| sample.1).min().unwrap_or(0);
            (live, resident)
        };
        let early = least(count / 4..count / 2);
        let late = least(count - count / 4..count);
        let text = format!(
            "allocated {:.2} MB in the second quarter, {:.2} MB in the last (at most {:.0} MB more); resident {:.1} \
             MB, {:.1} MB (at most a quarter and {:.0} MB more)",
            early.0 as f64 / 1e6,
            late.0 as f64 / 1e6,
            LIVE_MORE as f64 / 1e6,
            early.1 as f64 / 1e6,
            late.1 as f64 / 1e6,
            RESIDENT_MORE as f64 / 1e6,
        );
        let is_flat = late.0 <= early.0 + LIVE_MORE && late.1 <= early.1 + early.1 / 4 + RESIDENT_MORE;
        if is_flat { Ok(format!("memory is flat: {text}")) } else { Err(format!("memory grows: {text}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(rounds: i64, live: impl Fn(i64) -> i64) -> Memory {
        let mut memory = Memory::default();
        (0..rounds).for_each(|round| memory.note(live(round), 50 << 20));
        memory
    }

    #[test]
    fn a_steady_leak_is_told_and_caches_that_settle_are_not() {
        assert!(over(100, |round| round * 50_000).judge(0).is_err());
        assert!(over(100, |round| 3_000_000 + round.min(20) * 100_000).judge(0).is_ok());
        assert!(over(4, |round| round * 1_000_000).judge(0).is_ok(), "too few to judge");
        assert!(over(100, |round| round * 50_000).judge(90).is_ok(), "too few after the first ones");
        assert!(over(40, |round| 3_000_000 + round.min(14) * 200_000).judge(14).is_ok());
        assert!(over(40, |round| 3_000_000 + round.max(14) * 100_000).judge(14).is_err());
    }

    #[test]
    fn what_is_resident_counts_too() {
        let mut memory = Memory::default();
        (0..100_u64).for_each(|round| memory.note(0, round << 20));
        assert!(memory.judge(0).is_err());
    }
}
