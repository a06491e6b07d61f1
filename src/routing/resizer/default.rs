//! The default resizer: it counts busy routees.

use crate::core::actor_ref::RecipientLoad;
use crate::routing::resizer::loads::RouteeLoads;
use crate::routing::resizer::resizer::{Resizer, difference};
use crate::settings::resizer::DefaultResizer;
use crate::settings::setting_error::SettingError;
use std::time::Duration;

impl DefaultResizer {
    /// Returns the number of busy routees.
    fn pressure(&self, loads: &RouteeLoads) -> usize {
        let busy = |load: &RecipientLoad| match load {
            RecipientLoad::Busy { queued } => *queued >= self.pressure_threshold,
            // It would work if it could: a pool must not shrink because its routees have failed.
            RecipientLoad::Suspended => true,
            RecipientLoad::Idle | RecipientLoad::Closed | RecipientLoad::Unknown => false,
        };
        loads.iter().filter(busy).count()
    }

    fn rampup(&self, pressure: usize, size: usize) -> usize {
        if pressure < size { 0 } else { (self.rampup_rate * size as f64).ceil() as usize }
    }

    fn backoff(&self, pressure: usize, size: usize) -> usize {
        let few = size > 0 && (pressure as f64) / (size as f64) < self.backoff_threshold;
        if few { (self.backoff_rate * size as f64).ceil() as usize } else { 0 }
    }
}

impl Resizer for DefaultResizer {
    fn is_time_for_resize(&self, messages: u64) -> bool {
        self.enabled && messages.checked_rem(self.messages_per_resize) == Some(0)
    }

    fn resize(&self, loads: &RouteeLoads) -> isize {
        if !self.enabled {
            return 0;
        }
        let (size, pressure) = (loads.len(), self.pressure(loads));
        let rampup = if loads.is_starved() { 1 } else { self.rampup(pressure, size) };
        let proposed = size.saturating_add(rampup).saturating_sub(self.backoff(pressure, size));
        difference(self.clamp(proposed), size)
    }

    fn clamp(&self, size: usize) -> usize {
        if self.enabled { size.max(self.lower_bound).min(self.upper_bound) } else { size }
    }

    fn tick(&self) -> Option<Duration> {
        (self.enabled && !self.without_ticks).then_some(self.tick_interval)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.check_parameters()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    fn loads(idle: usize, busy: usize) -> RouteeLoads {
        let idle = std::iter::repeat_n(RecipientLoad::Idle, idle);
        RouteeLoads::new(idle.chain(std::iter::repeat_n(RecipientLoad::Busy { queued: 1 }, busy)))
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let table = DefaultResizer {
            enabled: true,
            lower_bound: 1,
            upper_bound: 10,
            pressure_threshold: 1,
            rampup_rate: 0.2,
            backoff_threshold: 0.3,
            backoff_rate: 0.1,
            messages_per_resize: 10,
            tick_interval: Duration::from_secs(10),
            without_ticks: false,
        };
        assert_eq!((DefaultResizer::new(), DefaultResizer::default()), (table.clone(), table));
    }

    /// Returns the sizes that a pool takes until its size stays.
    fn way(resizer: &DefaultResizer, from: usize, loads: impl Fn(usize) -> RouteeLoads) -> Vec<usize> {
        let mut sizes = vec![from];
        loop {
            let size = sizes[sizes.len() - 1];
            let next = size.checked_add_signed(resizer.resize(&loads(size))).expect("a size");
            if next == size {
                return sizes;
            }
            sizes.push(next);
        }
    }

    #[test]
    fn under_full_load_it_grows_by_a_fifth_and_when_idle_it_shrinks_by_a_tenth() {
        let resizer = DefaultResizer::new();
        assert_eq!(way(&resizer, 1, |size| loads(0, size)), [1, 2, 3, 4, 5, 6, 8, 10]);
        assert_eq!(way(&resizer, 10, |size| loads(size, 0)), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn it_shrinks_below_the_threshold_only_and_grows_when_nobody_is_free() {
        let resizer = DefaultResizer::new();
        assert_eq!(resizer.resize(&loads(7, 3)), 0, "exactly 30 percent");
        assert_eq!(resizer.resize(&loads(8, 2)), -1);
        assert_eq!(resizer.resize(&loads(1, 4)), 0, "one is free");
        assert_eq!(resizer.resize(&loads(0, 5)), 1);
        let steep = DefaultResizer::new().rampup_rate(0.5).upper_bound(100).backoff_rate(0.25);
        assert_eq!((steep.resize(&loads(0, 7)), steep.resize(&loads(7, 0))), (4, -2));
    }

    #[test]
    fn rates_of_nothing_switch_growing_and_shrinking_off() {
        let still = DefaultResizer::new().rampup_rate(0.0).backoff_rate(0.0);
        assert_eq!((still.resize(&loads(0, 5)), still.resize(&loads(5, 0))), (0, 0));
        assert_eq!(DefaultResizer::new().backoff_threshold(0.0).resize(&loads(5, 0)), 0);
        assert_eq!(DefaultResizer::new().backoff_threshold(-1.0).resize(&loads(5, 0)), 0);
    }

    #[test]
    fn a_new_pool_is_idle_and_within_the_bounds() {
        let resizer = DefaultResizer::new().lower_bound(2).upper_bound(15);
        for (asked, made) in [(5, 4), (15, 13), (0, 2), (1, 2), (2, 2), (40, 15)] {
            let delta = resizer.resize(&loads(asked, 0));
            assert_eq!(asked.checked_add_signed(delta), Some(made), "{asked} routees asked for");
        }
    }

    #[test]
    fn the_bounds_hold_whatever_the_load() {
        let resizer = DefaultResizer::new().lower_bound(3).upper_bound(4);
        assert_eq!((resizer.resize(&loads(0, 4)), resizer.resize(&loads(3, 0))), (0, 0));
        assert_eq!((resizer.resize(&loads(9, 0)), resizer.resize(&loads(0, 1))), (-5, 2));
        assert_eq!([0, 3, 4, 5, usize::MAX].map(|size| resizer.clamp(size)), [3, 3, 4, 4, 4]);
    }

    #[test]
    fn what_is_busy_depends_on_the_threshold() {
        let all = [
            RecipientLoad::Idle,
            RecipientLoad::Busy { queued: 0 },
            RecipientLoad::Busy { queued: 1 },
            RecipientLoad::Busy { queued: 4 },
            RecipientLoad::Suspended,
            RecipientLoad::Closed,
            RecipientLoad::Unknown,
        ];
        let pressure =
            |threshold| DefaultResizer::new().pressure_threshold(threshold).pressure(&RouteeLoads::new(all));
        // Handling; something behind that; four behind that. The suspended one always.
        assert_eq!([0, 1, 2, 4, 5].map(pressure), [4, 3, 2, 2, 1]);
    }

    #[test]
    fn suspended_routees_let_the_pool_grow() {
        let suspended = RouteeLoads::new([RecipientLoad::Suspended; 5]);
        assert_eq!(DefaultResizer::new().resize(&suspended), 1);
    }

    #[test]
    fn an_empty_pool_grows_when_messages_come_and_not_before() {
        let resizer = DefaultResizer::new().lower_bound(0);
        assert_eq!(resizer.resize(&loads(1, 0)), -1, "nothing is busy");
        assert_eq!(resizer.resize(&loads(0, 0).with_messages(7, 0)), 0);
        assert_eq!(resizer.resize(&loads(0, 0).with_messages(8, 1)), 1);
        assert_eq!(resizer.upper_bound(0).resize(&loads(0, 0).with_messages(8, 1)), 0, "it may not");
    }

    #[test]
    fn it_is_time_at_each_multiple() {
        let resizer = DefaultResizer::new().messages_per_resize(3);
        let due: Vec<u64> = (0..10).filter(|count| resizer.is_time_for_resize(*count)).collect();
        assert_eq!(due, [0, 3, 6, 9]);
    }

    #[test]
    fn settings_that_make_no_sense_are_named_with_what_is_allowed() {
        let faults = [
            (
                DefaultResizer::new().lower_bound(5).upper_bound(3),
                "upper_bound 3: must be at least lower_bound, 5",
            ),
            (DefaultResizer::new().rampup_rate(-0.1), "rampup_rate -0.1: must be finite and at least 0"),
            (DefaultResizer::new().rampup_rate(f64::NAN), "rampup_rate NaN: must be finite and at least 0"),
            (DefaultResizer::new().backoff_threshold(1.1), "backoff_threshold 1.1: must be at most 1"),
            (DefaultResizer::new().backoff_threshold(f64::NAN), "backoff_threshold NaN: must be at most 1"),
            (
                DefaultResizer::new().backoff_rate(f64::INFINITY),
                "backoff_rate inf: must be finite and at least 0",
            ),
            (DefaultResizer::new().messages_per_resize(0), "messages_per_resize 0: must be at least 1"),
            (DefaultResizer::new().tick_interval(Duration::ZERO), "tick_interval 0: must be more than zero"),
        ];
        for (resizer, text) in faults {
            assert_eq!(resizer.check().expect_err(text).to_string(), text);
        }
        let edges =
            DefaultResizer::new().lower_bound(0).upper_bound(0).rampup_rate(0.0).backoff_threshold(1.0);
        assert_eq!((DefaultResizer::new().check(), edges.check()), (Ok(()), Ok(())));
    }
}
