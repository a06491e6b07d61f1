//! Loggers give each group of actors a level of its own and a limit of log lines, both of which change at run time.
//!
//! [`GroupLoggers`] stand in front of the program's logger of the crate `log`. A record that is logged while an actor of a
//! group handles a message goes by the rule of the group, and any other record by the default rule. An actor belongs to a
//! group because it was wrapped when it was made: a turn of any other actor runs the code that it ran before. Loggers
//! are elfo's.
//!
//! ```
//! use log::LevelFilter;
//! use pointsman::logs::GroupLoggers;
//! use pointsman::prelude::*;
//!
//! struct Ledger;
//! impl Actor for Ledger {
//!     type Message = u64;
//!     fn receive(&mut self, amount: u64, _: &mut Context<u64>) -> HandlerResult {
//!         log::debug!("books {amount}");
//!         Ok(())
//!     }
//! }
//!
//! # struct Quiet;
//! # impl log::Log for Quiet {
//! #     fn enabled(&self, _: &log::Metadata<'_>) -> bool { true }
//! #     fn log(&self, _: &log::Record<'_>) {}
//! #     fn flush(&self) {}
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let system = System::builder("bank").build()?;
//! # let your_logger = Quiet;
//! let loggers = GroupLoggers::around(&system, your_logger); // such as the one that env_logger builds
//! loggers.install()?;
//! let group = loggers.group("ledgers");
//! let ledgers = system.actor("ledger").spawn(move || group.actor(Ledger))?;
//!
//! loggers.set_level("ledgers", LevelFilter::Debug); // at any time
//! loggers.set_lines_per_second("ledgers", 100);
//! # ledgers.stop();
//! # Ok(())
//! # }
//! ```

// Files:
//
// * `loggers.rs` has the rules of groups, and is the logger.
// * `logged_actor.rs` is the actor around an actor of a group.

pub(crate) mod logged_actor;
pub(crate) mod loggers;

pub use crate::logs::logged_actor::Logged;
pub use crate::logs::loggers::{GroupLoggers, LogGroup, LoggerExists};
