//! A configuration gets to the groups of a topology in two phases.
//!
//! First every group validates its section. Only if no group rejects its section do all groups get theirs. A group
//! whose section has not changed is left out, unless the change is forced.

use crate::core::extensions::Extension;
use crate::failure::guarded;
use crate::group::config::GroupConfig;
use crate::topology::error::TopologyError;
use crate::topology::member::GroupMember;
use crate::topology::plan::Topology;
use crate::util::panic::drop_guarded;
use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

/// Sections are the parts of a configuration by the names of their groups.
pub(crate) type Sections = BTreeMap<String, GroupConfig>;

/// This extension keeps the sections that the system was built with.
pub(crate) struct ConfiguredGroups(pub(crate) Sections);

impl Extension for ConfiguredGroups {}

/// Reads the sections `[topology.<name>]` of a configuration; all other sections are left alone.
#[cfg(feature = "config")]
pub(crate) fn read(toml: &str) -> Result<Sections, TopologyError> {
    #[derive(serde::Deserialize)]
    struct File {
        #[serde(default)]
        topology: BTreeMap<String, toml::Table>,
    }
    let file: File = toml::from_str(toml)
        .map_err(|error| TopologyError::Syntax { fault: error.to_string().trim_end().to_owned() })?;
    let section = |(name, table)| match GroupConfig::of(table) {
        Ok(section) => Ok((name, section)),
        Err(fault) => Err(TopologyError::Syntax { fault: format!("section `topology.{name}`: {fault}") }),
    };
    file.topology.into_iter().map(section).collect()
}

/// A change is a group with the configuration that the group is to get.
pub(crate) struct Change {
    pub name: String,
    pub member: StdArc<dyn GroupMember>,
    pub config: GroupConfig,
}

/// Gives each group its section, or gives no group anything. Returns for each group whether it follows its section now:
/// a group that panics does not, and keeps no other group from its section.
///
/// `validate` runs when all groups can follow their sections, and before any group does.
pub(crate) fn give(
    changes: &[Change],
    validate: impl FnOnce(&[Change]) -> Result<(), TopologyError>,
) -> Result<Vec<bool>, TopologyError> {
    let mut rejections = Vec::new();
    let mut prepared = Vec::with_capacity(changes.len());
    for change in changes {
        let found = guarded(|| Ok(change.member.prepare(&change.config)));
        match found.unwrap_or_else(|failure| Err(format!("it panicked: {failure}"))) {
            Ok(update) => prepared.push(update),
            Err(reason) => rejections.push((change.name.clone(), reason)),
        }
    }
    let validated = match rejections.is_empty() {
        true => validate(changes),
        false => Err(TopologyError::Rejected { rejections }),
    };
    if let Err(error) = validated {
        // The decoded values are the user's.
        prepared.into_iter().for_each(drop_guarded);
        return Err(error);
    }
    let update = |(change, update): (&Change, Box<dyn FnOnce() + '_>)| {
        let updated = guarded(|| {
            update();
            Ok(())
        });
        let failure = updated.err();
        let is_done = failure.is_none();
        if let Some(failure) = failure {
            log_failure(&change.name, &failure);
            drop_guarded(failure);
        }
        is_done
    };
    Ok(changes.iter().zip(prepared).map(update).collect())
}

/// Logs that a group has validated its configuration and does not follow it.
pub(crate) fn log_failure(group: &str, failure: &dyn std::fmt::Display) {
    // The logger and the text of the cause are user code.
    let logged = guarded(|| {
        log::error!(target: "pointsman", "group `{group}` does not follow its configuration: {failure}");
        Ok(())
    });
    drop_guarded(logged);
}

impl Topology {
    /// Gives the groups a new configuration: the sections `[topology.<name>]` of this text. The text is the whole
    /// configuration, not a change of it.
    ///
    /// The configuration goes to the groups in two phases: each group validates its section, and then its actors do,
    /// where [they are asked](crate::group::GroupPlan::validated_by_actors). Only if none refuses do all groups get their
    /// sections. A group whose section has not changed is left out of both phases. With `force` no group is left out, and
    /// no actor is asked; nor is an actor asked about the first configuration. A group without a section has an empty section. A keyed group without
    /// [`config`](crate::group::GroupPlan::config) looks at nothing in its section.
    ///
    /// An [entrypoint](super::DeclaredGroup::entrypoint) may call this from the moment on at which it gets its own, empty
    /// configuration, while the topology still [starts](Self::start). The text is then the first configuration of the
    /// other groups. A section for the entrypoint itself reaches the entrypoint from the thread that starts the
    /// topology, behind the empty configuration. In this case the entrypoint is not among the names that this returns,
    /// and a rejection by the entrypoint is the error of `start`.
    ///
    /// Returns the names of the groups that follow their new sections, in the order of declaration. A group whose
    /// [`update`](super::GroupMember::update) panics is logged as an error and is not among these names; the next
    /// configuration counts as changed for that group, whatever it says.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Rejected`] with the reasons of all groups that reject, and [`TopologyError::Refused`] with those
    /// of all actors: then no group has got anything. [`TopologyError::MustNotWait`] on a thread that must not wait for
    /// the actors that are asked.
    /// [`TopologyError::Syntax`], [`TopologyError::UnknownSection`]; [`TopologyError::NotStarted`] unless
    /// [`start`](Self::start) is running or has succeeded; [`TopologyError::Busy`] while another configuration is under
    /// way.
    #[cfg(feature = "config")]
    pub fn reconfigure(&self, toml: &str, force: bool) -> Result<Vec<String>, TopologyError> {
        let sections = read(toml)?;
        self.configure(&sections, force)
    }
}
