//! Behaviour of the whole engine, one module per subject.

mod adapters;
mod ask;
mod basics;
mod dead_letters;
mod dispatchers;
mod ledger;
mod lifecycle;
mod mailboxes;
mod names;
#[cfg(feature = "net")]
mod net;
mod routing;
mod shutdown;
mod stopping;
mod stress;
mod supervision;
mod support;
mod testkit_order;
mod testkit_probe;
mod testkit_supervision;
mod testkit_system;
mod testkit_time;
mod timers;
mod watch;
