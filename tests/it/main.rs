//! Behaviour of the whole engine, one module per subject.

mod adapters;
mod ask;
mod basics;
mod coordinated_shutdown;
mod dead_letters;
mod dispatchers;
mod events;
mod ledger;
mod lifecycle;
mod logged;
mod mailboxes;
mod names;
#[cfg(feature = "net")]
mod net;
mod pipe;
mod routing;
mod shutdown;
mod signals;
mod stopping;
mod stress;
mod supervision;
mod support;
mod timers;
mod watch;
