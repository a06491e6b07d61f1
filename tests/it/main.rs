//! Behaviour of the whole engine, one module per subject.

mod adapters;
mod ask;
mod basics;
mod dead_letters;
mod dispatchers;
mod ledger;
mod lifecycle;
mod routing;
mod mailboxes;
mod names;
mod shutdown;
mod stopping;
mod stress;
mod supervision;
mod support;
mod timers;
mod watch;
#[cfg(feature = "net")]
mod net;
