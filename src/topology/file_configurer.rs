//! A file configurer takes the configuration of a topology's groups from a file, and takes it anew when it is told to.

use crate::failure::guarded;
use crate::topology::config::{Sections, read};
use crate::topology::error::TopologyError;
use crate::topology::plan::Topology;
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::drop_guarded;
use crate::util::stderr_log::report;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc as StdArc;

/// A file configurer gives the groups of a topology the sections `[topology.<name>]` of a file: the first time when it
/// [starts](Self::start) the topology, and again at each [reload](Self::reload), by a call or by SIGHUP
/// (`on_sighup`, feature `signals`). All other sections of the file are left alone, so the file may be the one of the
/// [system](crate::config) or of the program.
///
/// Each reload is [`Topology::reconfigure`]: groups validate their sections, then their actors do
/// ([`validated_by_actors`](crate::group::GroupPlan::validated_by_actors)), and only if none refuses do all groups
/// change. The file is whole again at each reload: a section that is gone is an empty section.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::FileConfigurer;
/// # struct Shard;
/// # impl Actor for Shard {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// # let path = std::env::temp_dir().join(format!("pointsman-configurer-{}.toml", std::process::id()));
/// std::fs::write(&path, "[topology.shards]\ncount = 3")?;
/// let topology = system.topology();
/// let shards = system
///     .group("shards")
///     .by_key(|number: &u64| *number, |_, _| Shard)
///     .config(
///         |config| config.table().get("count").and_then(|count| count.as_integer()).ok_or("no count".to_owned()),
///         |shards, count| (0..count).for_each(|key| drop(shards.mount(key as u64))),
///     )
///     .spawn()?;
/// topology.local("shards")?.mount(&shards);
///
/// let configurer = FileConfigurer::from_path(&topology, &path);
/// configurer.start()?; // instead of `topology.start()`
/// assert_eq!(shards.len(), 3);
///
/// std::fs::write(&path, "[topology.shards]\ncount = 5")?;
/// assert_eq!(configurer.reload()?, ["shards"]);
/// assert_eq!(shards.len(), 5);
///
/// std::fs::write(&path, "[topology.shards]\n")?;
/// let refused = configurer.reload().expect_err("the group cannot read it");
/// assert!(refused.to_string().contains("`topology.shards`: no count"));
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
///
/// A clone is another handle to the same configurer. A thread that must not wait, such as an actor's, reloads by
/// [`pipe_blocking_to_self`](crate::Context::pipe_blocking_to_self) where actors validate.
#[derive(Clone)]
pub struct FileConfigurer {
    shared: StdArc<Shared>,
}

struct Shared {
    topology: Topology,
    path: PathBuf,
}

/// This event tells that a [`FileConfigurer`] has read its file again, and what came of it.
///
/// It is published on the [event stream](crate::events::EventStream) by each reload, the forced and the signalled ones
/// too. A reload that fails is also an error in the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConfigReloaded {
    /// The file.
    pub path: PathBuf,
    /// The names of the groups that follow new sections, or the error.
    pub outcome: Result<Vec<String>, FileConfigurerError>,
}

impl FileConfigurer {
    /// Makes a configurer for this file, which is read when the configurer [starts](Self::start).
    pub fn from_path(topology: &Topology, path: impl Into<PathBuf>) -> Self {
        Self { shared: StdArc::new(Shared { topology: topology.clone(), path: path.into() }) }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Reads the file and [starts](Topology::start) the topology with it: the file's sections take the place of the
    /// sections of the system's configuration. Actors are not asked to validate a first configuration.
    ///
    /// # Errors
    ///
    /// [`FileConfigurerError::Read`] if the file cannot be read, and otherwise the errors of [`Topology::start`].
    pub fn start(&self) -> Result<(), FileConfigurerError> {
        let sections = self.read()?;
        self.shared.topology.start_with(&sections).map_err(|error| self.fault(error))
    }

    /// Reads the file again, and gives all groups whose sections have changed their new sections, unless a group or an
    /// actor refuses: then no group changes. Returns the names of the groups that follow new sections.
    ///
    /// # Errors
    ///
    /// [`FileConfigurerError::Read`] if the file cannot be read, and otherwise the errors of [`Topology::reconfigure`],
    /// which name group, actor and reason.
    pub fn reload(&self) -> Result<Vec<String>, FileConfigurerError> {
        self.reload_by(false)
    }

    /// Reads the file again, and gives all groups their sections: unchanged ones too, and without asking actors to
    /// validate them. A section that its group cannot read is still refused, since there is nothing to apply.
    ///
    /// # Errors
    ///
    /// As [`reload`](Self::reload).
    pub fn force(&self) -> Result<Vec<String>, FileConfigurerError> {
        self.reload_by(true)
    }

    fn reload_by(&self, force: bool) -> Result<Vec<String>, FileConfigurerError> {
        let configure = |sections: Sections| self.shared.topology.configure(&sections, force);
        let outcome = self.read().and_then(|sections| configure(sections).map_err(|error| self.fault(error)));
        let system = self.shared.topology.system();
        // The logger and the subscribers are user code.
        let told = guarded(|| {
            match &outcome {
                Ok(groups) => {
                    log::info!(target: "pointsman", "file {:?}: read again, new sections for {groups:?}", self.path())
                }
                Err(error) => report!(system.core().stderr, Warning, log::Level::Error, "{error}"),
            }
            system
                .events()
                .publish(&ConfigReloaded { path: self.path().to_owned(), outcome: outcome.clone() });
            Ok(())
        });
        drop_guarded(told);
        outcome
    }

    fn read(&self) -> Result<Sections, FileConfigurerError> {
        let text = std::fs::read_to_string(self.path()).map_err(|error| FileConfigurerError::Read {
            path: self.path().to_owned(),
            kind: error.kind(),
            fault: error.to_string(),
        })?;
        read(&text).map_err(|error| self.fault(error))
    }

    fn fault(&self, error: TopologyError) -> FileConfigurerError {
        FileConfigurerError::Topology { path: self.path().to_owned(), error }
    }

    /// Reloads on SIGHUP from now on, until the actors of the system have ended; then SIGHUP has its default effect
    /// again. A signal that comes during another configuration is served after it. The outcome is in the log, and a
    /// [`ConfigReloaded`] event. Needs the feature `signals`, and a Unix system.
    ///
    /// # Errors
    ///
    /// If the operating system refuses the handler or a thread; or if the system has ended.
    #[cfg(all(feature = "signals", unix, not(pointsman_loom)))]
    pub fn on_sighup(&self) -> std::io::Result<()> {
        let configurer = self.clone();
        let reload = move |_| {
            let busy = |outcome: Result<_, FileConfigurerError>| {
                matches!(outcome, Err(FileConfigurerError::Topology { error: TopologyError::Busy, .. }))
            };
            while busy(configurer.reload()) {
                configurer.shared.topology.wait_while_busy();
            }
        };
        crate::shutdown::signals::listen(
            self.shared.topology.system(),
            "pointsman-sighup",
            &[signal_hook::consts::SIGHUP],
            reload,
        )
    }
}

impl fmt::Debug for FileConfigurer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileConfigurer").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// The reason why a [`FileConfigurer`] has changed no group.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum FileConfigurerError {
    /// The file cannot be read.
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The kind of the fault.
        kind: std::io::ErrorKind,
        /// The fault.
        fault: String,
    },
    /// The topology does not take the configuration.
    Topology {
        /// The path of the file.
        path: PathBuf,
        /// The fault, with the groups and actors that refuse.
        error: TopologyError,
    },
}

impl fmt::Display for FileConfigurerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, fault, .. } => {
                write!(f, "file {path:?} cannot be read: {fault}; the groups keep their configuration")
            }
            Self::Topology { path, error } => write!(f, "file {path:?}: {error}"),
        }
    }
}

impl std::error::Error for FileConfigurerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { .. } => None,
            Self::Topology { error, .. } => Some(error),
        }
    }
}

debug_by_display! { FileConfigurerError }
