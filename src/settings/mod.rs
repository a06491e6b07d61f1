//! Settings as plain data, and what can be wrong with them. They know no actor.

pub(crate) mod deployment; // settings of an actor by its path
pub(crate) mod router; // settings of a router
pub(crate) mod section_fault; // what is wrong with the settings of a router
pub(crate) mod resizer_error; // what is wrong with a resizer
pub(crate) mod backoff_error; // what is wrong with a backoff supervisor
pub(crate) mod phases; // the phases of a coordinated shutdown
