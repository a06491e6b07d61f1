//! Coordinated shutdown: a service ends in phases. Each phase has tasks, a timeout, and a place behind other phases.
//!
//! [`SystemRef::coordinated_shutdown`](crate::SystemRef::coordinated_shutdown) takes tasks and
//! [runs](CoordinatedShutdown::run) them, once. The phases form a graph that is put in order when the system is built.
//! The tasks of a phase run at the same time, each on a thread of its own. The next phase begins when all are done or
//! the phase's time is over. The phase [`ACTOR_SYSTEM_TERMINATE`](Phase::ACTOR_SYSTEM_TERMINATE) ends every actor.
//! Semantics: Akka's `CoordinatedShutdown`.
//!
//! **Difference from [`System::shutdown`](crate::System::shutdown).** `System::shutdown` ends every actor at once and
//! runs no task: it is for programs that need no phases, for tests, and for joining the threads after a run. Unlike
//! Akka's `terminate` it does not run the phases, since it has a single deadline for all. A system that ends otherwise
//! before a run was begun drops its tasks, and a warning in the log names them.
//!
//! ```
//! use pointsman::prelude::*;
//! use pointsman::shutdown::Phase;
//! use std::time::Duration;
//!
//! # struct Store;
//! # impl Actor for Store {
//! #     type Message = u32;
//! #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::builder("shop").build()?;
//! let intake = system.actor("intake").spawn(|| Store)?;
//! let store = system.actor("store").spawn(|| Store)?;
//!
//! let shutdown = system.coordinated_shutdown();
//! shutdown.add_task(Phase::SERVICE_UNBIND, "close the port", || Ok(()))?;
//! let flow = [&intake, &store].map(|actor| actor.untyped().expect("an actor"));
//! shutdown.add_drain(Phase::SERVICE_REQUESTS_DONE, "drain", flow)?;
//! // With the feature `signals`: shutdown.on_signals()?;
//!
//! intake.tell(7u32);
//! let report = shutdown.run("end of the day").wait()?;
//! println!("{report}");
//! assert_eq!((report.ledger.handled, report.ledger.dead_lettered, report.ledger.balance()), (1, 0, 0));
//! system.shutdown(Duration::from_secs(1))?; // joins the threads
//! # Ok(())
//! # }
//! ```
//!
//! Files:
//!
//! - `coordinated.rs`: the tasks, and the wait for the run.
//! - `run.rs`: runs the phases; their order comes from `settings/phases.rs`.
//! - `report.rs`: the result of a run.
//! - `actors.rs`: tasks that end actors.
//! - `callbacks.rs`: code that runs after all actors have ended.
//! - `signals.rs`: signals that begin a run, with `polled_signals.rs` for Windows.

pub(crate) mod actors;
pub(crate) mod callbacks;
pub(crate) mod coordinated;
#[cfg(all(feature = "signals", not(pointsman_loom), any(windows, test)))]
pub(crate) mod polled_signals;
pub(crate) mod report;
pub(crate) mod run;
#[cfg(all(feature = "signals", not(pointsman_loom)))]
pub(crate) mod signals;

pub use crate::settings::phases::{Phase, Phases};
pub use crate::shutdown::coordinated::{CoordinatedShutdown, ShutdownSetupError};
pub use crate::shutdown::report::{
    PhaseOutcome, PhaseReport, ShutdownReason, ShutdownReport, ShutdownRunError, TaskReport,
};
