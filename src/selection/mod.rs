//! selection

pub(crate) mod empty_ref;
pub(crate) mod identify;
pub(crate) mod lookup;
pub(crate) mod selection;
