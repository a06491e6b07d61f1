//! delivery

pub(crate) mod multi_send;
