//! What is wrong with a section whatever router it is for.

use super::super::board::ROUTEES_MAX;
use super::super::hash_ring::VIRTUAL_NODES_MAX;
use super::super::{DefaultResizer, OptimalSizeExploringResizer, Resizer, ResizerError, RouterSettings};
use super::named::Logics;
use super::{FROM_CODE, Kind, POOLS, POOLS_ONLY, SectionFault, key_path};
use crate::deployment::Deployments;
use crate::error::BuildError;
use std::time::Duration;

/// Refuses what no router could be.
pub fn check_sections(sections: &Deployments, logics: &Logics) -> Result<(), BuildError> {
    logics.check()?;
    for (pattern, says) in sections.written() {
        check_section(&says.router, logics)
            .map_err(|(key, fault)| BuildError::Section { key: key_path(pattern, &key), fault })?;
    }
    Ok(())
}

/// Says what no router could be, and its key.
pub fn check_section(says: &RouterSettings, logics: &Logics) -> Result<(), (String, SectionFault)> {
    let value = |key: &str, value: String, allowed: String| {
        Err((key.to_owned(), SectionFault::Value { value, allowed }))
    };
    if let Kind::Named(name) = Kind::of(says) {
        if !logics.has(name) {
            let known = names().chain(logics.names()).collect();
            return Err(("router".to_owned(), SectionFault::Unknown { name: name.to_owned(), known }));
        }
    }
    if let Some(count) = says.nr_of_instances.filter(|count| *count > ROUTEES_MAX) {
        return value("nr-of-instances", count.to_string(), format!("at most {ROUTEES_MAX}"));
    }
    for (key, span) in [("within", says.within), ("interval", says.interval)] {
        if span == Some(Duration::ZERO) {
            return value(key, "0".to_owned(), "more than 0".to_owned());
        }
    }
    if let Some(count) = says.virtual_nodes.filter(|count| !(1..=VIRTUAL_NODES_MAX).contains(count)) {
        return value("virtual-nodes", count.to_string(), format!("from 1 to {VIRTUAL_NODES_MAX}"));
    }
    let default = default_resizer(says);
    let exploring = exploring_resizer(says);
    for (key, checked) in [
        ("resizer", default.as_ref().map(Resizer::check)),
        ("optimal-size-exploring-resizer", exploring.as_ref().map(Resizer::check)),
    ] {
        if let Some(Err(ResizerError::Parameter { name, value: is, allowed })) = checked {
            let key = format!("{key}.{}", name.replace('_', "-"));
            return value(&key, is, allowed.replace('_', "-"));
        }
    }
    if default.is_some() && exploring.is_some() {
        return Err(("resizer".to_owned(), SectionFault::BothResizers));
    }
    Ok(())
}

/// The names of the crate's kinds of routers.
pub fn names() -> impl Iterator<Item = String> {
    let groups = POOLS.iter().filter(|logic| !POOLS_ONLY.contains(logic));
    let pools = POOLS.iter().map(|logic| format!("{logic}-pool"));
    std::iter::once(FROM_CODE.to_owned()).chain(pools).chain(groups.map(|logic| format!("{logic}-group")))
}

/// What is said of a pool's resizer: nothing, that there is none, or this.
pub fn resizer(says: &RouterSettings) -> Option<Option<Box<dyn Resizer>>> {
    if says.resizer.is_none() && says.optimal_size_exploring_resizer.is_none() {
        return None;
    }
    let default = default_resizer(says).map(|resizer| Box::new(resizer) as Box<dyn Resizer>);
    Some(default.or_else(|| exploring_resizer(says).map(|resizer| Box::new(resizer) as _)))
}

macro_rules! take {
    ($resizer:ident, $says:ident: $($key:ident)*) => {$(
        if let Some(value) = $says.$key {
            $resizer = $resizer.$key(value);
        }
    )*};
}

/// If it is on.
fn default_resizer(says: &RouterSettings) -> Option<DefaultResizer> {
    let says = says.resizer.as_ref().filter(|says| says.enabled != Some(false))?;
    let mut resizer = DefaultResizer::new();
    take!(resizer, says: lower_bound upper_bound pressure_threshold rampup_rate backoff_threshold backoff_rate
        messages_per_resize tick_interval);
    Some(if says.without_ticks == Some(true) { resizer.without_ticks() } else { resizer })
}

/// If it is on.
fn exploring_resizer(says: &RouterSettings) -> Option<OptimalSizeExploringResizer> {
    let says = says.optimal_size_exploring_resizer.as_ref().filter(|says| says.enabled != Some(false))?;
    let mut resizer = OptimalSizeExploringResizer::new();
    take!(resizer, says: lower_bound upper_bound chance_of_ramping_down_when_full action_interval
        downsize_after_underutilized_for explore_step_size chance_of_exploration downsize_ratio optimization_range
        weight_of_latest_metric);
    Some(resizer)
}
