//! Behaviour of the whole engine, one module per subject.

mod basics;
#[cfg(feature = "net")]
mod net;
mod routing;
