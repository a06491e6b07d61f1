//! Dumps show the messages of chosen actors and groups: one JSON object a line in a file, or a record for a function of
//! the program.
//!
//! An actor or a route is dumped because it was wrapped when it was made; all other actors and routes run the code that
//! they ran before, so a dumper costs nothing where it is not used. Dumpers are elfo's.
//!
//! ```text
//!   actor ──▶ Dumped<A> ──┐   limits    queue            thread of the dumper
//!                         ├──▶ Dumper ──▶ records ──▶ file, writer or function
//!   outlet ─▶ dumped route┘
//! ```
//!
//! ```
//! use pointsman::dump::Dumper;
//! use pointsman::prelude::*;
//! use std::sync::mpsc;
//!
//! #[derive(Debug)]
//! struct Deposit(u64);
//!
//! struct Account;
//! impl Actor for Account {
//!     type Message = Deposit;
//!     fn receive(&mut self, _: Deposit, _: &mut Context<Deposit>) -> HandlerResult {
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::builder("bank").build()?;
//! let (sender, lines) = mpsc::channel();
//! let dumper = Dumper::builder(&system)
//!     .lines_per_second(1_000)
//!     .to_fn(move |record| drop(sender.send(record.to_string())))?;
//! let account = {
//!     let dumper = dumper.clone();
//!     system.actor("account").spawn(move || dumper.actor(Account))?
//! };
//! account.tell(Deposit(7));
//! let line = lines.recv()?;
//! assert!(line.contains(r#""direction":"in","path":"/user/account""#));
//! assert!(line.ends_with(r#""message":"Deposit(7)"}"#));
//! # Ok(())
//! # }
//! ```

// Files:
//
// * `dumper.rs` limits and queues records, and has the thread that writes them.
// * `record.rs` is a record, and its line of JSON.
// * `dumped.rs` is the actor around a dumped actor, and the reference in front of a recipient.

pub(crate) mod dumped;
pub(crate) mod dumper;
pub(crate) mod record;

pub use crate::dump::dumped::Dumped;
pub use crate::dump::dumper::{DumpCounts, Dumper, DumperBuilder};
pub use crate::dump::record::{DumpDirection, DumpRecord};
