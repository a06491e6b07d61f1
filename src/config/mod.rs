//! Settings from a TOML file.
//!
//! Whatever can be set in code can be set in the file, but for what is a function (a decider, the order of a
//! mailbox, a clock); and everything that the file says can be said in code. The file has the last word: apply it
//! to a builder that has been told all else, and it changes what the code has said, key by key.
//!
//! ```
//! use pointsman::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::builder("shop")
//!     .dispatcher("blocking", Dispatcher::blocking().threads(1..=64))
//!     .config(
//!         r#"
//!         seed = 42
//!
//!         [dispatcher.blocking]
//!         threads-max = 8               # the lower bound stays
//!
//!         [mailbox.small]
//!         type = "bounded"
//!         capacity = 100
//!
//!         [deployment."/files/*"]       # all actors below /user/files
//!         dispatcher = "blocking"
//!         mailbox = "small"
//!         "#,
//!     )?
//!     .build()?;
//! println!("{}", system.settings()); // all settings, as a file
//! # Ok(())
//! # }
//! ```
//!
//! A key that nobody knows and a value that its key cannot have are [errors](ConfigError) that name the key with
//! the sections around it, what stands there, and what may stand there.
//!
//! # Keys
//!
//! Lengths of time are texts with a unit: `"250ms"`, `"5s"`, `"1h 30m"`.
//!
//! | key | values | default | in code |
//! |---|---|---|---|
//! | `seed` | a whole number | 0 | [`seed`](SystemBuilder::seed) |
//! | `inbox-capacity` | at least 1 | 1000 | [`inbox_capacity`](SystemBuilder::inbox_capacity) |
//! | `supervision.on-failure` | `"default"`, `"stop"`, `"resume"`, `"escalate"` | `"default"` | [`supervision`](SystemBuilder::supervision) |
//! | `supervision.restarts`, `.within` | a number, a length of time | no limit | [`Restart`](crate::Restart) |
//! | `dead-letters.log` | a number, or `"all"` | 10 | [`DeadLetterLog`](crate::DeadLetterLog) |
//! | `dead-letters.pause` | a length of time | `"5m"` | the same |
//! | `dead-letters.log-during-shutdown` | true, false | false | the same |
//! | `dispatcher.NAME.type` | `"work-stealing"`, `"blocking"`, `"pinned"`, `"calling-thread"`, `"alias"` | what the code says, or `"work-stealing"` | [`Dispatcher`](crate::Dispatcher) |
//! | `….threads`, `.pin-to` | 1 to 1024, a list of cores | a thread for each core | [`WorkStealing`](crate::WorkStealing) |
//! | `….spin`, `.lifo` | a length of time; true, false | `"5us"`, true | the same |
//! | `….threads-min`, `.threads-max` | 1 to 4096 | 1, 64 | [`Blocking`](crate::Blocking) |
//! | `….keep-alive` | a length of time | `"10s"` | the same |
//! | `….idle-shutdown` | a length of time | never | both |
//! | `….throughput`, `.deadline` | at least 1, a length of time | 64, none | all |
//! | `….mailbox`, `.requires-mailbox` | a mailbox's name; `"bounded"`, `"unbounded"`, `"sorted"`, `"control-aware"` | none | all |
//! | `….of` | the dispatcher that an alias stands for | | [`dispatcher_alias`](SystemBuilder::dispatcher_alias) |
//! | `mailbox.NAME.type` | `"unbounded"`, `"bounded"` | what the code says, or `"unbounded"` | [`mailbox`](SystemBuilder::mailbox) |
//! | `….capacity`, `.on-full` | at least 1; `"reject"`, `"drop-oldest"`, `"drop-newest"`, `"wait"` | `"reject"` | [`Mailbox`](crate::Mailbox), [`Full`](crate::Full) |
//! | `….wait`, `.guard` | how long senders wait; at least 1 | | the same |
//! | `deployment."PATTERN".dispatcher`, `.mailbox`, `.stash-capacity` | a name, a name, a number | | [`deploy`](SystemBuilder::deploy) |
//! | `shutdown.terminate-actor-system` | true, false | true | [`Phases`](crate::shutdown::Phases) |
//! | `shutdown.phase.NAME.depends-on` | a list of phases | | [`Phase`](crate::shutdown::Phase) |
//! | `….timeout`, `.recover`, `.enabled` | a length of time; true, false | `"5s"`, true, true | the same |

mod apply;
mod error;
mod file;
mod print;
mod values;

pub use error::ConfigError;
pub use print::Settings;

use crate::{SystemBuilder, SystemRef};
use file::File;
use std::path::Path;

impl SystemBuilder {
    /// Changes what was set so far as a [configuration](crate::config) in TOML says.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: the text is no TOML, or a key or value in it is wrong. What can only be known when all is
    /// said, such as a circle of aliases or of phases, is an error of [`build`](Self::build).
    pub fn config(self, toml: &str) -> Result<Self, ConfigError> {
        let deserializer = toml::Deserializer::parse(toml)
            .map_err(|error| ConfigError::Syntax { fault: error.to_string().trim_end().to_owned() })?;
        let file: File = serde_path_to_error::deserialize(deserializer)
            .map_err(|error| ConfigError::key(error.path().to_string(), error.inner().message()))?;
        apply::apply(file, self)
    }

    /// As [`config`](Self::config), from a file.
    ///
    /// # Errors
    ///
    /// As [`config`](Self::config); and [`ConfigError::Read`].
    pub fn config_file(self, file: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let file = file.as_ref();
        let text = std::fs::read_to_string(file)
            .map_err(|error| ConfigError::Read { file: file.to_owned(), error })?;
        self.config(&text)
    }
}

impl SystemRef {
    /// All settings of the system, whoever has made them. It prints as a [configuration](crate::config) that
    /// makes the same system, but for what is a function.
    pub fn settings(&self) -> &Settings {
        &self.core().settings
    }
}
