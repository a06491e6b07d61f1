//! Guides: what the parts do together. The folder `docs` of the source has them for readers outside this documentation.
//!
//! | about actors | about routers | about the whole |
//! |---|---|---|
//! | [`lifecycle`] | [`routers`]: which one, when, what it costs | [`delivery`] |
//! | [`supervision`] | [`resizing`]: pools whose size follows their load | [`shutdown`] |
//! | | [`topology`]: groups of actors by key, and the routes between them | [`words`] of other systems |
//! | | [`goakt`]: routers for those who come from GoAkt | [`latency`]: what `spin`, `throughput` and `pin_to` buy |
//! | | | [`glossary`]: the terms of this engine, and all ways to end |
//! | [`tokio`]: actors beside an async runtime | [`telemetry`]: what a running system tells of itself | [`net`]: sockets of a service |
//! | [`actix`]: from actix, with code before and after | [`elfo`]: system groups, for those who come from elfo | [`models`]: code of yours, checked by loom |
//!
//! The guide `remoting`, with the feature `remote`, tells how messages cross between nodes.
//!
//! Configuration and testing are told where their features are: in the modules `config` and `testkit`.

#[doc = include_str!("guide/lifecycle.md")]
pub mod lifecycle {}

#[doc = include_str!("guide/supervision.md")]
pub mod supervision {}

#[doc = include_str!("guide/routers.md")]
pub mod routers {}

#[doc = include_str!("guide/resizing.md")]
pub mod resizing {}

#[cfg(feature = "goakt")]
#[doc = include_str!("guide/goakt.md")]
pub mod goakt {}

#[doc = include_str!("guide/topology.md")]
pub mod topology {}

#[doc = include_str!("guide/delivery.md")]
pub mod delivery {}

#[doc = include_str!("guide/shutdown.md")]
pub mod shutdown {}

#[cfg(feature = "net")]
#[doc = include_str!("guide/net.md")]
pub mod net {}

#[cfg(feature = "remote")]
#[doc = include_str!("guide/remoting.md")]
pub mod remoting {}

#[doc = include_str!("guide/words.md")]
pub mod words {}

#[doc = include_str!("../docs/glossary.md")]
pub mod glossary {}

#[doc = include_str!("guide/latency.md")]
pub mod latency {}

#[doc = include_str!("guide/telemetry.md")]
pub mod telemetry {}

#[doc = include_str!("guide/tokio.md")]
pub mod tokio {}

#[doc = include_str!("guide/actix.md")]
pub mod actix {}

#[doc = include_str!("guide/elfo.md")]
pub mod elfo {}

#[doc = include_str!("guide/models.md")]
pub mod models {}
