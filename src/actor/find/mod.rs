//! How actors are found: by a path (`lookup.rs`), by a path with wildcards (`selection.rs`), by asking who is there
//! (`identify.rs`). And what stands for those who are not: `empty.rs`.

pub(in crate::actor) mod empty;
pub(in crate::actor) mod identify;
mod lookup;
mod selection;

pub use identify::{ActorIdentity, ActorNotFound, Resolution};
pub use lookup::LookupError;
pub(crate) use selection::Found;
pub use selection::{Delivered, SelectError, Selection};
