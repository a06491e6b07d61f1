//! Nodes of pointsman over NATS servers. This crate is under construction.

#[cfg_attr(not(test), allow(dead_code))] // the client is not built yet
mod codec;
