//! What the configuration says of groups, and how it gets to them: in two phases.
//!
//! First every group is asked whether it could go by its part. Only if none rejects do all of them get it. A
//! group whose part has not changed is left out, unless it is forced.

use crate::core::extensions::Extension;
use crate::failure::guarded;
use crate::group::config::GroupConfig;
use crate::topology::error::{Rejection, TopologyError};
use crate::topology::member::Member;
use crate::topology::plan::Topology;
use crate::util::panic::drop_guarded;
use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

/// The parts of all groups, by their names.
pub type Sections = BTreeMap<String, GroupConfig>;

/// The parts that the system was built with.
pub(crate) struct ConfiguredGroups(pub(crate) Sections);

impl Extension for ConfiguredGroups {}

/// Reads the sections `[topology.<name>]` of a configuration; all others are left alone.
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

/// A group that is to get a configuration.
pub(crate) struct Change {
    pub name: String,
    pub member: StdArc<dyn Member>,
    pub config: GroupConfig,
}

/// Gives each group its part, or none of them. Tells of each whether it goes by it: one that panics does not, and keeps
/// nobody from theirs.
pub(crate) fn give(changes: &[Change]) -> Result<Vec<bool>, TopologyError> {
    let mut rejections = Vec::new();
    let mut prepared = Vec::with_capacity(changes.len());
    for change in changes {
        let found = guarded(|| Ok(change.member.prepare(&change.config)));
        match found.unwrap_or_else(|failure| Err(format!("it panicked: {failure}"))) {
            Ok(update) => prepared.push(update),
            Err(reason) => rejections.push(Rejection { group: change.name.clone(), reason }),
        }
    }
    if !rejections.is_empty() {
        // What they have read is the user's.
        prepared.into_iter().for_each(drop_guarded);
        return Err(TopologyError::Rejected { rejections });
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

/// Says that a group has found its configuration sound and does not go by it.
pub(crate) fn log_failure(group: &str, failure: &dyn std::fmt::Display) {
    // The logger and the text of the cause are user code.
    let logged = guarded(|| {
        log::error!(target: "pointsman", "group `{group}` does not go by its configuration: {failure}");
        Ok(())
    });
    drop_guarded(logged);
}

impl Topology {
    /// Gives the groups a new configuration: the sections `[topology.<name>]` of this text. In two phases:
    /// each group is asked whether it could go by its part; only if none rejects do all of them get it. The text is the
    /// whole configuration, not a change of it.
    /// Groups whose part has not changed are left out of both, unless `force`. A group without a section has
    /// an empty one. A keyed group without [`config`](crate::topology::GroupPlan::config) looks at nothing in its section.
    ///
    /// An [entrypoint](super::Local::entrypoint) calls this from the moment on at which it gets its own, empty
    /// configuration, while the topology still [starts](Self::start): then this is the first configuration that the
    /// others get. A section for the entrypoint itself reaches it from the thread that starts the topology, behind the
    /// empty one; then it is not among the names that this returns, and a rejection of it is the error of `start`.
    ///
    /// Returns the names of the groups that go by theirs now, in the order of declaration. One whose
    /// [`update`](super::Member::update) panics is logged as an error and not among them; the next configuration counts
    /// as changed for it, whatever it says.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Rejected`] with the reasons of all that reject: then no group has got anything.
    /// [`TopologyError::Syntax`], [`TopologyError::UnknownSection`]; [`TopologyError::NotStarted`] before
    /// [`start`](Self::start) has given the entrypoints theirs; [`TopologyError::Busy`] while another configuration is
    /// under way.
    #[cfg(feature = "config")]
    pub fn reconfigure(&self, toml: &str, force: bool) -> Result<Vec<String>, TopologyError> {
        let sections = read(toml)?;
        self.configure(&sections, force)
    }
}
