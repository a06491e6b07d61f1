//! A home is where an actor runs, and what is measured there.

use crate::dispatch::placement::Placement;
use crate::measure::meter::Meter;
use std::sync::Arc as StdArc;

/// The placement of one actor or of many, with the meter of their system. The cells of actors point to it.
#[derive(Debug)]
pub(crate) struct Home {
    pub placement: Placement,
    pub meter: StdArc<Meter>,
}
