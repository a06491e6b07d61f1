//! Engines over real servers, and over servers that are made up and hostile.
//!
//! Tests that need `nats-server` say so and pass where it is not installed; `.ci/nats` installs it and demands it by
//! `POINTSMAN_NATS_DEMANDED=1`.

mod alike;
#[allow(dead_code)] // these histories have no asks, and no actors made elsewhere
#[path = "../../../tests/simulation/checker.rs"]
mod checker;
#[allow(dead_code)] // as above
#[path = "../../../tests/simulation/checker_children.rs"]
mod checker_children;
mod doctor;
mod histories;
mod hostile;
mod servers;
mod support;
mod systems;
#[cfg(feature = "tls")]
mod tls;
