//! A RESP2 cache server on Pointsman: the parts that know nothing of the engine.
//!
//! Reading order: [`bytes`] (short byte strings), [`resp`] (bytes to requests, replies to bytes),
//! [`command`] (requests to what has to be done, and by whom), [`keyspace`] (one shard's data),
//! [`glob`] (the patterns of KEYS and CONFIG GET).

#[allow(dead_code)]
mod bytes;
#[allow(dead_code)]
mod command;
#[allow(dead_code)]
mod glob;
#[allow(dead_code)]
mod keyspace;
#[allow(dead_code)]
mod resp;

#[cfg(test)]
mod tests;

fn main() {}
