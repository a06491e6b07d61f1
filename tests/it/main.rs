//! Behaviour of the whole engine, one module per subject.

mod adapters;
mod ask;
mod basics;
mod dead_letters;
mod dispatchers;
mod inbox;
mod ledger;
mod lifecycle;
mod mailboxes;
mod names;
#[cfg(feature = "net")]
mod net;
mod paths;
mod references;
mod routing;
mod selection;
mod shutdown;
mod stopping;
mod stress;
mod supervision;
mod support;
mod timers;
mod watch;
