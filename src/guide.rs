//! Guides: what the parts do together. Their text is in the folder `docs` of the source.

#[doc = include_str!("../docs/lifecycle.md")]
pub mod lifecycle {}

#[doc = include_str!("../docs/supervision.md")]
pub mod supervision {}

#[doc = include_str!("../docs/delivery.md")]
pub mod delivery {}

#[doc = include_str!("../docs/words.md")]
pub mod words {}
