//! Behaviour of the whole engine, one module per subject. `coverage.md` tells which rule is shown by which test.

mod adapters;
mod ask;
mod backoff;
mod basics;
mod behavior;
#[cfg(feature = "config")]
mod configuration;
mod coordinated_shutdown;
mod dead_letters;
mod dispatchers;
mod events;
mod inbox;
mod ledger;
mod lifecycle;
mod logged;
mod mailboxes;
mod names;
#[cfg(feature = "net")]
mod net;
mod paths;
mod pipe;
mod questions;
mod receive_timeout;
mod references;
mod routing;
mod scheduler_service;
mod selection;
mod shutdown;
mod signals;
mod stash;
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
