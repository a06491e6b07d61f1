//! Routers in GoAkt's words, and with GoAkt's defaults.
//!
//! [`SystemRef::spawn_router`](crate::SystemRef::spawn_router) describes a router by name, size and factory, as GoAkt's
//! `SpawnRouter` does. The result is a router as any other of this crate, and routes on its senders' threads. The
//! [guide](crate::guide::goakt) puts each of GoAkt's options, messages and defaults beside ours, and lists the
//! differences.
//!
//! ```
//! use pointsman::prelude::*;
//! use std::time::Duration;
//!
//! #[derive(Clone)]
//! struct Lookup(String);
//! impl Request for Lookup {
//!     type Reply = usize;
//! }
//!
//! struct Shard {
//!     index: usize,
//! }
//! impl Actor for Shard {
//!     type Message = Call<Lookup>;
//!     fn receive(&mut self, call: Call<Lookup>, _: &mut Context<Call<Lookup>>) -> HandlerResult {
//!         call.answer(|Lookup(name)| name.len() + self.index - self.index);
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::builder("demo").build()?;
//! let lookup = system
//!     .spawn_router("lookup", 5, |index| Shard { index })
//!     .scatter_gather_first(Duration::from_secs(5))
//!     .restart_on_failure()
//!     .spawn()?;
//! assert_eq!(lookup.ask(Lookup("pear".into())).wait()?, 4);
//! assert_eq!(lookup.routee_names()?, ["r0", "r1", "r2", "r3", "r4"]);
//! assert_eq!(lookup.adjust(-2)?, 3);
//! # Ok(())
//! # }
//! ```

pub(crate) mod router;
pub(crate) mod spawn;

pub use crate::ask::ask_or_back::{AskFailedWith, AskOrBack};
pub use crate::routing::goakt::spawn::SpawnRouter;
