//! Behaviour of the whole engine, one module per subject.

mod adapters;
mod ask;
mod backoff;
mod basics;
mod behavior;
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
mod receive_timeout;
mod references;
mod routing;
mod scheduler_service;
mod selection;
mod shutdown;
mod stash;
mod stopping;
mod stress;
mod supervision;
mod support;
mod timers;
mod watch;
