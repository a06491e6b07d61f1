//! The last values of one number, a value for each reading.

use std::collections::VecDeque;

/// The readings that are kept.
pub const HISTORY: usize = 120;

/// The last [`HISTORY`] values. A value is missing where there was no answer, or nothing to compare with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series(VecDeque<Option<f64>>);

impl Series {
    /// Appends the value of the newest reading.
    pub fn push(&mut self, value: Option<f64>) {
        if self.0.len() == HISTORY {
            self.0.pop_front();
        }
        self.0.push_back(value.filter(|value| value.is_finite()));
    }

    /// The value of the newest reading.
    pub fn last(&self) -> Option<f64> {
        self.0.back().copied().flatten()
    }

    /// The value of a reading, counted back from the newest one, which is 0.
    pub fn back(&self, readings: usize) -> Option<f64> {
        let at = self.0.len().checked_sub(readings + 1)?;
        self.0[at]
    }

    /// The largest value.
    pub fn max(&self) -> Option<f64> {
        self.0.iter().flatten().copied().reduce(f64::max)
    }

    /// Whether no reading has a value.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_values_go() {
        let mut series = Series::default();
        (0..=HISTORY).for_each(|value| series.push(Some(value as f64)));
        assert_eq!(series.back(0), Some(HISTORY as f64));
        assert_eq!(series.back(HISTORY - 1), Some(1.0));
        assert_eq!(series.back(HISTORY), None);
        assert_eq!(series.max(), Some(HISTORY as f64));
    }

    #[test]
    fn values_that_are_no_numbers_are_missing() {
        let mut series = Series::default();
        for value in [Some(f64::NAN), Some(f64::INFINITY), None] {
            series.push(value);
        }
        assert!(series.is_empty());
        assert_eq!((series.last(), series.max()), (None, None));
    }
}
