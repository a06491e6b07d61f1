//! Properties: random sequences of commands against plain models.
//!
//! Each subject has a model that a reader takes in at a glance, made of lists and maps, and compares with it
//! everything that an actor can see: what was handled, by whom, in which order, what became a dead letter, what the
//! books say. `engine` has all subjects at once, and an account of each message instead of a model. A sequence
//! that fails is made as short as it can be. All runs are on a [`TestSystem`](pointsman::testkit::TestSystem): one
//! thread, whose choices derive from a seed that is part of the case, and a clock moved by hand. The head of each
//! file names faults that were planted and found.

mod engine;
#[cfg(feature = "net")]
mod framers;
mod routers;
mod routes;
mod supervision;
mod support;
mod timers;
mod topology;
