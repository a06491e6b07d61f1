//! Behaviour of the whole engine, one module per subject.

mod basics;
mod lifecycle;
#[cfg(feature = "net")]
mod net;
mod routing;
mod stopping;
mod supervision;
mod support;
mod watch;
