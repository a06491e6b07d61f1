//! The readings of a system, and what follows from them: rates, histories, restarts. It knows no clock, no socket and no
//! terminal.

pub mod actors; // actors over time
pub mod classes;
pub mod histogram;
pub mod model;
pub mod routers;
pub mod series; // the last values of one number
pub mod workers;
