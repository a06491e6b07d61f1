//! Guides: what the parts do together. Their text is in the folder `docs` of the source.
//!
//! | about actors | about routers | about the whole |
//! |---|---|---|
//! | [`lifecycle`] | [`routers`]: which one, when, what it costs | [`delivery`] |
//! | [`supervision`] | [`resizing`]: pools whose size follows their load | [`shutdown`] |
//! | | [`topology`]: groups of actors by key, and the routes between them | [`words`] of other systems |
//! | | [`goakt`]: routers for those who come from GoAkt | [`latency`]: what `spin`, `throughput` and `pin_to` buy |
//! | | | [`glossary`]: the terms of this engine, and all ways to end |
//! | | | [`models`]: code of yours, checked by loom |
//!
//! Configuration and testing are told where their features are: in the modules `config` and `testkit`.

#[doc = include_str!("../docs/lifecycle.md")]
pub mod lifecycle {}

#[doc = include_str!("../docs/supervision.md")]
pub mod supervision {}

#[doc = include_str!("../docs/routers.md")]
pub mod routers {}

#[doc = include_str!("../docs/resizing.md")]
pub mod resizing {}

#[cfg(feature = "goakt")]
#[doc = include_str!("../docs/goakt.md")]
pub mod goakt {}

#[doc = include_str!("../docs/topology.md")]
pub mod topology {}

#[doc = include_str!("../docs/delivery.md")]
pub mod delivery {}

#[doc = include_str!("../docs/shutdown.md")]
pub mod shutdown {}

#[doc = include_str!("../docs/words.md")]
pub mod words {}

#[doc = include_str!("../docs/glossary.md")]
pub mod glossary {}

#[doc = include_str!("../docs/latency.md")]
pub mod latency {}

#[doc = include_str!("../docs/models.md")]
pub mod models {}
