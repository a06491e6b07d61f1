//! The wait of a turn that has caught up with a stream: `src/scheduler/gather.rs`.

use crate::machine::Time;

/// The constants of the same names, in picoseconds and in hints.
const STREAM_GAP: Time = 250_000;
const DENSE_GAP: Time = 100_000;
const REST: u64 = 256;
const SHORTEST: u64 = 32;
const LONGEST: u64 = 256;

/// `Gather`.
#[derive(Debug)]
pub struct Gather {
    due_at: u64,
    handled: u64,
    since: Time,
    length: u64,
}

impl Gather {
    pub fn new() -> Self {
        Self { due_at: REST, handled: 0, since: 0, length: 0 }
    }

    /// `is_due`, `look`: the hints to wait for, after so many messages.
    pub fn length_at(&mut self, handled: u64, now: Time) -> u64 {
        if handled < self.due_at {
            return 0;
        }
        let count = handled - self.handled;
        let gap = (now - self.since) / count;
        self.length = match self.length {
            _ if gap > STREAM_GAP => 0,
            0 => SHORTEST,
            last if count < (last / 16).max(4) => 0,
            last if gap <= DENSE_GAP => (last * 2).min(LONGEST),
            last => last,
        };
        (self.handled, self.since) = (handled, now);
        self.due_at = handled + if self.length == 0 { REST } else { 1 };
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::{DENSE_GAP, Gather, LONGEST, REST, SHORTEST, STREAM_GAP};

    #[test]
    fn waits_grow_in_a_stream_and_end_with_it() {
        let (mut gather, mut handled, mut now) = (Gather::new(), 0, 0);
        let mut look = |count: u64, gap| {
            (handled, now) = (handled + count, now + count * gap);
            gather.length_at(handled, now)
        };
        assert_eq!(look(REST, STREAM_GAP + 1), 0);
        assert_eq!(look(REST, DENSE_GAP), SHORTEST);
        assert_eq!([(); 4].map(|()| look(20, DENSE_GAP)), [64, 128, LONGEST, LONGEST]);
        assert_eq!(look(15, DENSE_GAP), 0, "too few messages came");
        assert_eq!(look(REST - 1, DENSE_GAP), 0, "not due");
    }
}
