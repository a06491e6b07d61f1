//! How actors are found: by a path (`lookup.rs`), by a path with wildcards (`selection.rs`), by asking who is there
//! (`identify.rs`). And what stands for those who are not: `empty.rs`.

pub(crate) mod empty;
pub(crate) mod identify;
pub(crate) mod lookup;
pub(crate) mod selection;
