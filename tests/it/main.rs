//! Behaviour of the whole engine, one module per subject.

mod basics;
mod lifecycle;
mod routing;
mod stopping;
mod supervision;
mod support;
mod watch;
#[cfg(feature = "net")]
mod net;
