//! Behaviour of the whole engine, one module per subject.

mod basics;
mod routing;
