//! Behaviour of the whole engine, one module per subject. `coverage.md` tells which rule is shown by which test.

mod adapters;
mod ask;
mod attach;
#[cfg(feature = "tower")]
mod axum;
mod backoff;
mod balancing;
mod basics;
mod behavior;
mod compile_errors;
#[cfg(feature = "config")]
mod configuration;
#[cfg(all(feature = "config", feature = "macros", feature = "signals"))]
mod configurers;
#[cfg(feature = "console")]
mod console;
mod coordinated_shutdown;
mod dead_letters;
mod debug;
mod destructors;
mod dispatchers;
#[cfg(feature = "macros")]
mod dumpers;
mod error_texts;
mod events;
#[cfg(feature = "macros")]
mod expired;
mod goakt;
mod group_loggers;
#[cfg(feature = "macros")]
mod hash_keys;
mod hold;
mod inbox;
mod keyed;
mod keyed_life;
mod keyed_mailbox;
mod keyed_order;
mod keyed_policy;
mod keyed_retire;
mod keyed_status;
mod keyed_support;
mod keyed_wait;
mod ledger;
mod lifecycle;
#[cfg(feature = "macros")]
mod limits;
mod listeners;
mod logged;
mod loggers;
mod mailboxes;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
#[cfg(feature = "net")]
mod net;
#[cfg(feature = "net")]
mod net_connect;
#[cfg(feature = "net")]
mod net_datagrams;
#[cfg(feature = "net")]
mod net_drain;
#[cfg(feature = "net")]
mod net_memory;
mod paths;
mod pingers;
mod pipe;
mod polls_within;
mod questions;
mod receive_timeout;
mod references;
#[cfg(feature = "macros")]
mod requests;
mod resizers;
mod router_ask_all;
#[cfg(feature = "config")]
mod router_config;
mod router_controller;
mod router_creation;
mod router_fan_out;
mod router_keyed;
mod router_leftovers;
mod router_logics;
mod router_management;
mod router_paths;
mod router_refusals;
mod router_senders;
mod router_sequences;
mod router_supervision;
mod router_support;
mod router_value;
mod routing;
mod scaling;
mod scheduler_service;
mod selection;
mod send_future;
mod shutdown;
mod signals;
mod startup;
mod stash;
mod stderr_log;
mod stopping;
mod stress;
mod supervision;
mod support;
mod telemetry;
mod tell_many;
mod testkit_order;
mod testkit_probe;
mod testkit_quiet;
mod testkit_supervision;
mod testkit_system;
mod testkit_time;
mod timers;
#[cfg(feature = "macros")]
mod topology;
mod topology_control;
mod topology_failures;
#[cfg(feature = "macros")]
mod topology_outlets;
mod topology_routers;
#[cfg(feature = "config")]
mod topology_start;
mod watch;
