//! The exploring resizer: it measures.

use crate::actor::timers::next_in_rate;
use crate::core::actor_ref::RecipientLoad;
use crate::routing::resizer::loads::RouteeLoads;
use crate::routing::resizer::resizer::{Resizer, difference};
use crate::settings::resizer::{Look, OptimalSizeExploringResizer, State, Streak};
use crate::settings::setting_error::SettingError;
use crate::sync::lock;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

impl OptimalSizeExploringResizer {
    /// Notes the measurements of this look at the pool.
    fn report(&self, state: &mut State, loads: &RouteeLoads) {
        let (size, now) = (loads.len(), loads.now());
        let in_use = loads
            .iter()
            .filter(|load| matches!(load, RecipientLoad::Busy { .. } | RecipientLoad::Suspended))
            .count();
        let handling = loads.iter().filter(|load| matches!(load, RecipientLoad::Busy { .. })).count();
        let look =
            Look { at: now, messages: loads.messages(), pending: loads.queued().saturating_add(handling) };
        let full = size > 0 && in_use == size;
        let was_full = state.underutilized.is_none();
        state.underutilized = match state.underutilized {
            _ if full => None,
            Some(streak) => Some(Streak { highest: streak.highest.max(in_use), ..streak }),
            None => Some(Streak { since: now, highest: in_use }),
        };
        let before = state.last.replace(look);
        if let (true, true, Some(before)) = (full, was_full, before) {
            let came = look.messages.wrapping_sub(before.messages) as f64;
            let handled = came + before.pending as f64 - look.pending as f64;
            if handled > 0.0 {
                let took = now.saturating_sub(before.at).as_secs_f64() / handled;
                let weight = self.weight_of_latest_metric;
                let noted = state.log.entry(size).or_insert(took);
                *noted = *noted * (1.0 - weight) + took * weight;
            }
        }
    }

    /// Returns the size that the pool should have by the notes.
    fn propose(&self, state: &mut State, loads: &RouteeLoads) -> usize {
        let size = loads.len();
        match state.underutilized {
            Some(streak) => {
                let lasts = loads.now().saturating_sub(streak.since);
                if lasts <= self.downsize_after_underutilized_for {
                    return size;
                }
                // The streak is measured anew from here on, or the load of long ago would keep a pool large for ever.
                state.underutilized = Some(Streak { since: loads.now(), highest: 0 });
                size.min((streak.highest as f64 * self.downsize_ratio) as usize)
            }
            None if state.log.is_empty() => size,
            None => {
                let random = state.random.get_or_insert_with(|| SmallRng::seed_from_u64(loads.seed()));
                if random.random::<f64>() < self.chance_of_exploration {
                    self.explore(random, size)
                } else {
                    self.optimize(&state.log, size)
                }
            }
        }
    }

    fn explore(&self, random: &mut SmallRng, size: usize) -> usize {
        let longest = (size as f64 * self.explore_step_size).ceil() as usize;
        let step = random.random_range(1..=longest.max(1));
        if random.random::<f64>() < self.chance_of_ramping_down_when_full {
            size.saturating_sub(step)
        } else {
            size.saturating_add(step)
        }
    }

    /// Returns half the way to the best size noted, rounded up. Of equally good sizes the smallest is best.
    fn optimize(&self, log: &BTreeMap<usize, f64>, size: usize) -> usize {
        let side = self.optimization_range / 2;
        let below = log.range(..size).rev().take(side);
        let above = log.range(size..).take(side);
        let best = below.chain(above).min_by(|one, other| one.1.total_cmp(other.1).then(one.0.cmp(other.0)));
        match best {
            Some((&best, _)) if best > size => size + (best - size).div_ceil(2),
            Some((&best, _)) => size - (size - best).div_ceil(2),
            None => size,
        }
    }
}

impl Resizer for OptimalSizeExploringResizer {
    /// True only for a new pool: afterwards the tick asks.
    fn is_time_for_resize(&self, messages: u64) -> bool {
        self.enabled && messages == 0
    }

    fn resize(&self, loads: &RouteeLoads) -> isize {
        if !self.enabled {
            return 0;
        }
        let size = loads.len();
        let mut state = lock(&self.memory.0);
        let too_early = state.due.is_some_and(|due| loads.now() < due);
        let proposed = if loads.is_starved() {
            1
        } else if too_early {
            size
        } else {
            let before = state.due.unwrap_or(loads.now());
            // The caller may have checked nothing.
            let interval = self.action_interval.max(Duration::from_nanos(1));
            state.due = Some(next_in_rate(before, interval, loads.now()));
            self.report(&mut state, loads);
            self.propose(&mut state, loads)
        };
        difference(self.clamp(proposed), size)
    }

    fn clamp(&self, size: usize) -> usize {
        if self.enabled { size.max(self.lower_bound).min(self.upper_bound) } else { size }
    }

    fn tick(&self) -> Option<Duration> {
        self.enabled.then_some(self.action_interval)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.check_parameters()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A look each second, at the worst moment of a day for a pool of any size.
    fn resizer() -> OptimalSizeExploringResizer {
        OptimalSizeExploringResizer::new().upper_bound(100).action_interval(SECOND)
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let OptimalSizeExploringResizer {
            enabled,
            lower_bound,
            upper_bound,
            chance_of_ramping_down_when_full,
            action_interval,
            downsize_after_underutilized_for,
            explore_step_size,
            chance_of_exploration,
            downsize_ratio,
            optimization_range,
            weight_of_latest_metric,
            memory: _,
        } = OptimalSizeExploringResizer::new();
        assert!(enabled);
        assert_eq!((lower_bound, upper_bound, optimization_range), (1, 10, 16));
        assert_eq!((chance_of_ramping_down_when_full, chance_of_exploration), (0.2, 0.4));
        assert_eq!((explore_step_size, downsize_ratio, weight_of_latest_metric), (0.1, 0.8, 0.5));
        assert_eq!(action_interval, 5 * SECOND);
        assert_eq!(downsize_after_underutilized_for, 72 * 3600 * SECOND);
    }

    fn full(size: usize, queued: usize) -> RouteeLoads {
        RouteeLoads::new(vec![RecipientLoad::Busy { queued }; size])
    }

    fn part(busy: usize, size: usize) -> RouteeLoads {
        let idle = std::iter::repeat_n(RecipientLoad::Idle, size - busy);
        RouteeLoads::new(idle.chain(std::iter::repeat_n(RecipientLoad::Busy { queued: 0 }, busy)))
    }

    fn note(resizer: &OptimalSizeExploringResizer, log: &[(usize, f64)]) {
        lock(&resizer.memory.0).log = log.iter().copied().collect();
    }

    fn noted(resizer: &OptimalSizeExploringResizer) -> Vec<(usize, f64)> {
        lock(&resizer.memory.0).log.iter().map(|(size, took)| (*size, *took)).collect()
    }

    #[test]
    fn it_moves_half_the_way_to_the_best_size_and_away_from_zero() {
        let resizer = resizer().chance_of_exploration(0.0);
        let log = [(7, 5.0), (10, 3.0), (11, 2.0), (12, 4.0)];
        note(&resizer, &log);
        let mut now = SECOND;
        for (size, delta) in [(10, 1), (12, -1), (7, 2), (11, 0), (20, -5)] {
            assert_eq!(resizer.resize(&full(size, 1).at(now)), delta, "from {size}");
            // The notes of this look must not count in the next.
            note(&resizer, &log);
            now += SECOND;
        }
    }

    #[test]
    fn only_sizes_near_by_count() {
        let resizer = resizer().chance_of_exploration(0.0).optimization_range(2);
        let log: BTreeMap<usize, f64> = [(2, 1.0), (5, 4.0), (8, 3.0), (11, 0.5)].into();
        // The next size below and the next at or above.
        assert_eq!(resizer.optimize(&log, 6), 7);
        assert_eq!(resizer.optimize(&log, 8), 8);
        assert_eq!(resizer.optimize(&log, 3), 2, "2 is the best");
        assert_eq!(resizer.optimize(&[(4, 1.0), (8, 1.0)].into(), 6), 5, "of equals the smallest");
    }

    #[test]
    fn a_message_takes_the_time_passed_by_the_messages_handled() {
        let resizer = resizer().chance_of_exploration(0.0).weight_of_latest_metric(0.25);
        // The first look has nothing before it.
        assert_eq!(resizer.resize(&full(4, 2).with_messages(100, 100).at(SECOND)), 0);
        assert_eq!(noted(&resizer), []);
        // 28 came, 12 were pending and 20 are: 20 were handled in two seconds.
        assert_eq!(resizer.resize(&full(4, 4).with_messages(128, 28).at(3 * SECOND)), 0);
        assert_eq!(noted(&resizer), [(4, 0.1)]);
        // 50 in one second; it counts for a quarter.
        assert_eq!(resizer.resize(&full(4, 4).with_messages(178, 50).at(4 * SECOND)), 0);
        let took = noted(&resizer)[0].1;
        assert!((took - (0.1 * 0.75 + 0.02 * 0.25)).abs() < 1e-12, "{took}");
        // None handled: nothing is learned.
        resizer.resize(&full(4, 5).with_messages(182, 4).at(5 * SECOND));
        assert_eq!(noted(&resizer)[0].1, took);
    }

    #[test]
    fn nothing_is_noted_right_after_an_idle_time() {
        let resizer = resizer().chance_of_exploration(0.0);
        resizer.resize(&part(3, 4).at(SECOND));
        resizer.resize(&full(4, 1).with_messages(50, 50).at(2 * SECOND));
        assert_eq!(noted(&resizer), []);
        resizer.resize(&full(4, 1).with_messages(60, 10).at(3 * SECOND));
        assert_eq!(noted(&resizer), [(4, 0.1)]);
    }

    #[test]
    fn exploring_steps_are_within_their_bounds_and_go_both_ways() {
        let resizer = resizer().explore_step_size(0.3).chance_of_ramping_down_when_full(0.5);
        let mut random = SmallRng::seed_from_u64(7);
        for size in [0usize, 1, 3, 10, 25] {
            let longest = ((size as f64 * 0.3).ceil() as usize).max(1) as isize;
            let steps: std::collections::BTreeSet<isize> =
                (0..2_000).map(|_| difference(resizer.explore(&mut random, size), size)).collect();
            let down = if size == 0 { 0 } else { -longest };
            assert_eq!(
                (steps.first(), steps.last()),
                (Some(&down), Some(&longest)),
                "size {size}: {steps:?}"
            );
            assert!(size == 0 || !steps.contains(&0), "size {size}: {steps:?}");
        }
        let up = resizer.chance_of_ramping_down_when_full(0.0);
        assert!((0..500).all(|_| up.explore(&mut random, 10) > 10));
    }

    #[test]
    fn a_chance_of_1_explores_and_the_same_seed_walks_the_same_way() {
        let walk = |seed: u64| {
            let resizer = resizer().chance_of_exploration(1.0).explore_step_size(0.5);
            note(&resizer, &[(20, 1.0)]);
            let mut size = 20usize;
            let step = |at: u32| {
                let delta = resizer.resize(&full(size, 1).with_seed(seed).at(at * SECOND));
                assert_ne!(delta, 0, "it explores");
                size = size.checked_add_signed(delta).expect("a size");
                size
            };
            (1..20)
                .map_while({
                    let mut step = step;
                    move |at| {
                        let size = step(at);
                        (size < 60).then_some(size)
                    }
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(walk(3), walk(3));
        assert_ne!(walk(3), walk(4));
    }

    #[test]
    fn a_pool_long_underutilized_shrinks_to_what_was_in_use() {
        let resizer = resizer().downsize_after_underutilized_for(10 * SECOND);
        for (at, in_use, delta) in [(1, 2, 0), (2, 5, 0), (5, 3, 0), (11, 1, 0), (12, 0, -16)] {
            // 8 tenths of 5, the most.
            assert_eq!(resizer.resize(&part(in_use, 20).at(at * SECOND)), delta, "at {at}");
        }
        // From then on the most routees in use are counted anew.
        assert_eq!(resizer.resize(&part(3, 4).at(13 * SECOND)), 0);
        assert_eq!(resizer.resize(&part(1, 4).at(22 * SECOND)), 0);
        assert_eq!(resizer.resize(&part(1, 4).at(23 * SECOND)), -2, "8 tenths of 3");
        assert_eq!(resizer.resize(&part(4, 5).at(34 * SECOND)), -2, "8 tenths of 4");
        // All routees are in use: the streak is over.
        resizer.resize(&full(20, 1).at(45 * SECOND));
        assert_eq!(resizer.resize(&part(1, 20).at(56 * SECOND)), 0);
        let bounded = resizer.lower_bound(6);
        assert_eq!(bounded.resize(&part(1, 20).at(67 * SECOND)), -14);
    }

    #[test]
    fn between_two_looks_it_only_keeps_the_bounds() {
        let resizer = resizer().lower_bound(2).chance_of_exploration(1.0);
        note(&resizer, &[(4, 1.0)]);
        assert_ne!(resizer.resize(&full(4, 1).at(SECOND)), 0);
        assert_eq!(resizer.resize(&full(4, 1).at(SECOND + SECOND / 2)), 0);
        assert_eq!(resizer.resize(&full(1, 1).at(SECOND + SECOND / 2)), 1);
        assert_ne!(resizer.resize(&full(4, 1).at(2 * SECOND)), 0);
    }

    #[test]
    fn an_empty_pool_grows_when_messages_come_and_not_before() {
        let resizer = resizer().lower_bound(0);
        assert_eq!(resizer.resize(&RouteeLoads::new([]).at(SECOND)), 0);
        assert_eq!(resizer.resize(&RouteeLoads::new([]).at(SECOND).with_messages(1, 1)), 1, "at once");
        assert_eq!(resizer.resize(&RouteeLoads::new([]).at(3 * SECOND).with_messages(1, 0)), 0);
    }

    #[test]
    fn settings_that_make_no_sense_are_named_with_what_is_allowed() {
        type Plan = OptimalSizeExploringResizer;
        let new = Plan::new;
        let share = "must be at least 0 and at most 1";
        let faults = [
            (new().lower_bound(11), "upper_bound 10: must be at least lower_bound, 11".to_owned()),
            (
                new().chance_of_ramping_down_when_full(1.5),
                format!("chance_of_ramping_down_when_full 1.5: {share}"),
            ),
            (new().action_interval(Duration::ZERO), "action_interval 0: must be more than zero".to_owned()),
            (new().explore_step_size(-1.0), "explore_step_size -1: must be finite and at least 0".to_owned()),
            (new().chance_of_exploration(f64::NAN), format!("chance_of_exploration NaN: {share}")),
            (new().downsize_ratio(-0.1), format!("downsize_ratio -0.1: {share}")),
            (new().optimization_range(1), "optimization_range 1: must be at least 2".to_owned()),
            (new().weight_of_latest_metric(2.0), format!("weight_of_latest_metric 2: {share}")),
        ];
        for (resizer, text) in faults {
            assert_eq!(resizer.check().expect_err(&text).to_string(), text);
        }
        let edges = new().chance_of_exploration(1.0).downsize_ratio(0.0).optimization_range(2);
        assert_eq!((new().check(), edges.check()), (Ok(()), Ok(())));
    }
}
