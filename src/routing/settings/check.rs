//! The checks of a section that hold for any router.

#[cfg(feature = "remote")]
use crate::path::address::is_node_name;
use crate::routing::head::state::ROUTEES_MAX;
use crate::routing::logics::hash_ring::VIRTUAL_NODES_MAX;
use crate::routing::resizer::resizer::Resizer;
use crate::routing::settings::apply::{FROM_CODE, Kind, LOGIC_NAMES, POOL_ONLY};
use crate::routing::settings::known_names::KnownNames;
use crate::settings::build_error::BuildError;
use crate::settings::deployment::{Deployment, Deployments};
use crate::settings::resizer::{DefaultResizer, OptimalSizeExploringResizer};
use crate::settings::router::RouterSettings;
use crate::settings::section_fault::SectionFault;
use crate::settings::setting_error::SettingError;
use std::time::Duration;

/// Refuses settings that no router could have, and names that lead nowhere.
pub(crate) fn check_sections(deployments: &Deployments, known: &KnownNames<'_>) -> Result<(), BuildError> {
    known.logics.check()?;
    for (pattern, says) in deployments.written() {
        check_deployment(says, known).map_err(|(key, fault)| BuildError::Section {
            key: format!("deployment.{pattern:?}.{key}"),
            fault,
        })?;
    }
    Ok(())
}

/// Says what no actor could be, and its key in the section.
pub(crate) fn check_deployment(
    says: &Deployment,
    known: &KnownNames<'_>,
) -> Result<(), (String, SectionFault)> {
    if let Some(name) = &says.dispatcher {
        known.check_dispatcher(name).map_err(|fault| ("dispatcher".to_owned(), fault))?;
    }
    if let Some(name) = &says.mailbox {
        known.check_mailbox(name).map_err(|fault| ("mailbox".to_owned(), fault))?;
    }
    #[cfg(feature = "remote")]
    for (key, nodes) in [
        ("remote", says.remote.as_slice()),
        ("router.target.nodes", says.router.target_nodes.as_deref().unwrap_or_default()),
    ] {
        if let Some(node) = nodes.iter().find(|node| !is_node_name(node)) {
            let allowed = "a name of a node: 1 to 64 ASCII letters, digits, '_' and '-', the first of them a letter or digit";
            let fault = SectionFault::Value { value: format!("{node:?}"), allowed: allowed.to_owned() };
            return Err((key.to_owned(), fault));
        }
    }
    check_router(&says.router, known).map_err(|(key, fault)| (format!("router.{key}"), fault))
}

/// Says what no router could be, and its key.
fn check_router(says: &RouterSettings, known: &KnownNames<'_>) -> Result<(), (String, SectionFault)> {
    for (key, name) in
        [("head-dispatcher", &says.head_dispatcher), ("pool-dispatcher", &says.pool_dispatcher)]
    {
        if let Some(name) = name {
            known.check_dispatcher(name).map_err(|fault| (key.to_owned(), fault))?;
        }
    }
    if let Some(name) = &says.queue {
        known.check_mailbox(name).map_err(|fault| ("queue".to_owned(), fault))?;
    }
    for path in says.routees_paths.iter().flatten() {
        known.check_path(path).map_err(|fault| ("routees.paths".to_owned(), fault))?;
    }
    let value = |key: &str, value: String, allowed: String| {
        Err((key.to_owned(), SectionFault::Value { value, allowed }))
    };
    if let Kind::Named(name) = Kind::of(says) {
        if !known.logics.has(name) {
            let known = names().chain(known.logics.names()).collect();
            return Err(("router".to_owned(), SectionFault::Unknown { name: name.to_owned(), known }));
        }
    }
    if let Some(count) = says.nr_of_instances.filter(|count| *count > ROUTEES_MAX) {
        return value("nr-of-instances", count.to_string(), format!("at most {ROUTEES_MAX}"));
    }
    #[cfg(feature = "remote")]
    if says.target_nodes.as_ref().is_some_and(Vec::is_empty) {
        return value("target.nodes", "[]".to_owned(), "at least one node".to_owned());
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
        ("resizer", default.map(DefaultResizer::check_parameters)),
        ("optimal-size-exploring-resizer", exploring.map(OptimalSizeExploringResizer::check_parameters)),
    ] {
        if let Some(Err(SettingError { setting, value: is, allowed })) = checked {
            let key = format!("{key}.{}", setting.replace('_', "-"));
            return value(&key, is, allowed.replace('_', "-"));
        }
    }
    if default.is_some() && exploring.is_some() {
        return Err(("resizer".to_owned(), SectionFault::BothResizers));
    }
    Ok(())
}

/// The names of the crate's kinds of routers.
pub(crate) fn names() -> impl Iterator<Item = String> {
    let groups = LOGIC_NAMES.iter().filter(|logic| **logic != POOL_ONLY);
    let pools = LOGIC_NAMES.iter().map(|logic| format!("{logic}-pool"));
    std::iter::once(FROM_CODE.to_owned()).chain(pools).chain(groups.map(|logic| format!("{logic}-group")))
}

/// Returns the section's decision about a pool's resizer: none, no resizer, or this resizer.
pub(crate) fn resizer(says: &RouterSettings) -> Option<Option<Box<dyn Resizer>>> {
    if says.resizer.is_none() && says.optimal_size_exploring_resizer.is_none() {
        return None;
    }
    let default = default_resizer(says).map(|resizer| Box::new(resizer.clone()) as Box<dyn Resizer>);
    Some(default.or_else(|| exploring_resizer(says).map(|resizer| Box::new(resizer.clone()) as _)))
}

/// If it is on.
fn default_resizer(says: &RouterSettings) -> Option<&DefaultResizer> {
    says.resizer.as_ref().filter(|resizer| resizer.enabled)
}

/// If it is on.
fn exploring_resizer(says: &RouterSettings) -> Option<&OptimalSizeExploringResizer> {
    says.optimal_size_exploring_resizer.as_ref().filter(|resizer| resizer.enabled)
}
