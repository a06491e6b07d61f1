//! The settings of routers are read from a file and printed to a file.

use super::file::{ExploringResizerSection, ResizerSection, RouteesSection, RouterSection};
use crate::config::apply::dispatcher;
use crate::config::error::ConfigError;
use crate::config::print::whole;
use crate::config::values::{PoolDispatcher, Span, Text, Whole};
use crate::routing::settings::apply::key_path;
use crate::routing::settings::check::check_section;
use crate::routing::{ExploringResizerSettings, ResizerSettings};
use crate::settings::router::RouterSettings;
use crate::system_settings::SystemSettings;
use std::time::Duration;

/// Changes the settings of the router at this pattern.
pub(crate) fn apply(
    pattern: &str,
    section: RouterSection,
    says: &mut RouterSettings,
    mut settings: SystemSettings,
) -> Result<SystemSettings, ConfigError> {
    let key = |key: &str| key_path(pattern, key);
    match section.pool_dispatcher {
        None => {}
        Some(PoolDispatcher::Named(name)) => says.pool_dispatcher = Some(name),
        Some(PoolDispatcher::Own(section)) => {
            // The dispatcher is declared like any other, so it starts with the system and prints.
            let name = format!("deployment.{pattern}.pool-dispatcher");
            settings = dispatcher(&key("pool-dispatcher"), name.clone(), *section, settings)?;
            says.pool_dispatcher = Some(name);
        }
    }
    set(&mut says.router, section.router);
    set(&mut says.nr_of_instances, section.nr_of_instances.map(Whole::usize));
    set(&mut says.within, section.within.map(length));
    set(&mut says.virtual_nodes, section.virtual_nodes.map(Whole::u32));
    set(&mut says.interval, section.interval.map(length));
    set(&mut says.first_completion, section.first_completion);
    set(&mut says.wait_for_tick, section.wait_for_tick);
    set(&mut says.head_dispatcher, section.head_dispatcher);
    set(&mut says.queue, section.queue);
    set(&mut says.leave_within, section.leave_within.map(length));
    set(&mut says.stay_when_empty, section.stay_when_empty);
    set(&mut says.routees_paths, section.routees.and_then(|routees| routees.paths));
    if let Some(section) = section.resizer {
        resizer(section, says.resizer.get_or_insert_default());
    }
    if let Some(section) = section.optimal_size_exploring_resizer {
        exploring(section, says.optimal_size_exploring_resizer.get_or_insert_default());
    }
    let options = section.options.into_iter().flatten();
    says.options.extend(options.map(|(name, value)| (name, value.0)));
    check_section(says, &settings.known_names())
        .map_err(|(at, fault)| ConfigError::key(key(&at), fault.to_string()))?;
    Ok(settings)
}

fn resizer(section: ResizerSection, says: &mut ResizerSettings) {
    set(&mut says.enabled, section.enabled);
    set(&mut says.lower_bound, section.lower_bound.map(Whole::usize));
    set(&mut says.upper_bound, section.upper_bound.map(Whole::usize));
    set(&mut says.pressure_threshold, section.pressure_threshold.map(Whole::usize));
    set(&mut says.rampup_rate, section.rampup_rate);
    set(&mut says.backoff_threshold, section.backoff_threshold);
    set(&mut says.backoff_rate, section.backoff_rate);
    set(&mut says.messages_per_resize, section.messages_per_resize.map(|count| count.0));
    set(&mut says.tick_interval, section.tick_interval.map(length));
    set(&mut says.without_ticks, section.without_ticks);
}

fn exploring(section: ExploringResizerSection, says: &mut ExploringResizerSettings) {
    set(&mut says.enabled, section.enabled);
    set(&mut says.lower_bound, section.lower_bound.map(Whole::usize));
    set(&mut says.upper_bound, section.upper_bound.map(Whole::usize));
    set(&mut says.chance_of_ramping_down_when_full, section.chance_of_ramping_down_when_full);
    set(&mut says.action_interval, section.action_interval.map(length));
    let downsize_after = section.downsize_after_underutilized_for.map(length);
    set(&mut says.downsize_after_underutilized_for, downsize_after);
    set(&mut says.explore_step_size, section.explore_step_size);
    set(&mut says.chance_of_exploration, section.chance_of_exploration);
    set(&mut says.downsize_ratio, section.downsize_ratio);
    set(&mut says.optimization_range, section.optimization_range.map(Whole::usize));
    set(&mut says.weight_of_latest_metric, section.weight_of_latest_metric);
}

fn set<T>(place: &mut Option<T>, said: Option<T>) {
    if said.is_some() {
        *place = said;
    }
}

fn length(span: Span) -> Duration {
    span.0
}

/// Returns the section of these settings, if any key is set.
pub(crate) fn print(says: &RouterSettings) -> Option<RouterSection> {
    let options = says.options.iter().map(|(name, value)| (name.clone(), Text(value.clone()))).collect();
    (says != &RouterSettings::new()).then(|| RouterSection {
        router: says.router.clone(),
        nr_of_instances: count(says.nr_of_instances),
        within: says.within.map(Span),
        virtual_nodes: says.virtual_nodes.map(|count| whole(count.into())),
        interval: says.interval.map(Span),
        first_completion: says.first_completion,
        wait_for_tick: says.wait_for_tick,
        head_dispatcher: says.head_dispatcher.clone(),
        pool_dispatcher: says.pool_dispatcher.clone().map(PoolDispatcher::Named),
        queue: says.queue.clone(),
        leave_within: says.leave_within.map(Span),
        stay_when_empty: says.stay_when_empty,
        routees: says.routees_paths.clone().map(|paths| RouteesSection { paths: Some(paths) }),
        resizer: says.resizer.as_ref().map(print_resizer),
        optimal_size_exploring_resizer: says.optimal_size_exploring_resizer.as_ref().map(print_exploring),
        options: (!says.options.is_empty()).then_some(options),
    })
}

fn print_resizer(says: &ResizerSettings) -> ResizerSection {
    ResizerSection {
        enabled: says.enabled,
        lower_bound: count(says.lower_bound),
        upper_bound: count(says.upper_bound),
        pressure_threshold: count(says.pressure_threshold),
        rampup_rate: says.rampup_rate,
        backoff_threshold: says.backoff_threshold,
        backoff_rate: says.backoff_rate,
        messages_per_resize: says.messages_per_resize.map(whole),
        tick_interval: says.tick_interval.map(Span),
        without_ticks: says.without_ticks,
    }
}

fn print_exploring(says: &ExploringResizerSettings) -> ExploringResizerSection {
    ExploringResizerSection {
        enabled: says.enabled,
        lower_bound: count(says.lower_bound),
        upper_bound: count(says.upper_bound),
        chance_of_ramping_down_when_full: says.chance_of_ramping_down_when_full,
        action_interval: says.action_interval.map(Span),
        downsize_after_underutilized_for: says.downsize_after_underutilized_for.map(Span),
        explore_step_size: says.explore_step_size,
        chance_of_exploration: says.chance_of_exploration,
        downsize_ratio: says.downsize_ratio,
        optimization_range: count(says.optimization_range),
        weight_of_latest_metric: says.weight_of_latest_metric,
    }
}

fn count<const MIN: u64, const MAX: u64>(number: Option<usize>) -> Option<Whole<MIN, MAX>> {
    number.map(|number| whole(number as u64))
}
