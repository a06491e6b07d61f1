//! How actors are found: by a path (`lookup.rs`), by a path with wildcards (`selection.rs`), by asking who is there
//! (`identify.rs`). And what stands for those who are not: `empty.rs`.

pub(crate) mod empty;
pub(crate) mod identify;
pub(crate) mod lookup;
pub(crate) mod selection;

use crate::actor::find::identify::{ActorIdentity, ActorNotFound, Resolution};
use crate::actor::find::lookup::LookupError;
use crate::actor::find::selection::{Delivered, SelectError, Selection};
