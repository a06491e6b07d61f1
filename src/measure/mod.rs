//! Measurements that turns and senders take, and the cells in which they leave them. Knows tasks and times, and neither
//! actors nor systems: `telemetry/` shows the results.
//!
//! A measurement that is off costs a load of [`is_on`](meter::is_on) where a sender comes to a new block or wakes an actor
//! from outside, and nothing elsewhere. All that is on is behind calls that the compiler keeps out of line.

pub(crate) mod buckets; // counts by size, with one writer
pub(crate) mod wake_stamps; // when actors were woken
#[cfg_attr(not(feature = "console"), allow(dead_code, reason = "only a console records"))]
pub(crate) mod flight; // what a thread does for a while, with times
pub(crate) mod meter; // what one system measures, and its clock
pub(crate) mod pulse; // what a thread runs, and how much it has run
#[cfg(any(pointsman_mirror, not(any(pointsman_loom, pointsman_shuttle))))]
pub(crate) mod watch_pause; // watchdogs pause while all threads sleep
pub(crate) mod work_time; // how long a thread has run turns
