//! settings

pub(crate) mod backoff_error;
pub(crate) mod deployment;
pub(crate) mod phases;
pub(crate) mod resizer_error;
pub(crate) mod router;
pub(crate) mod section_fault;
