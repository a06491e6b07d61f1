//! The console: a system tells its statistics over HTTP, on the library's own sockets.
//!
//! | you want | look at |
//! |---|---|
//! | to serve statistics | [`SystemRef::serve_stats`](crate::SystemRef::serve_stats) |
//! | limits, other addresses than the loopback | [`SystemRef::stats_server`](crate::SystemRef::stats_server), [`StatsServerBuilder`] |
//! | the pages and their formats | [the guide](crate::guide::telemetry) |
//!
//! ```
//! use pointsman::net::SocketAddress;
//! use pointsman::prelude::*;
//! use std::io::{Read, Write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::builder("shop").build()?;
//! let server = system.serve_stats(SocketAddress::tcp("127.0.0.1:0"))?;
//!
//! let mut client = std::net::TcpStream::connect(server.local_addr().expect("a TCP port"))?;
//! client.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
//! # Ok(())
//! # }
//! ```
//!
//! # Security
//!
//! A server listens at the loopback or at a Unix socket unless [`anywhere`](StatsServerBuilder::anywhere) lifts that. At
//! the loopback it answers only requests whose `Host` is `localhost` or an address of the loopback, so that a page in a
//! browser cannot reach it under a name of its own. There is no password and no encryption: put a proxy before it where
//! that is needed. The pages can be read, and change nothing.
//!
//! # Memory
//!
//! The memory that clients can make a server hold is bounded:
//!
//! | held | at most |
//! |---|---|
//! | connections | [`max_connections`](StatsServerBuilder::max_connections), 64 by default; a client that takes the last place ends the oldest connection |
//! | the head of a request | 8 KiB, for [`request_within`](StatsServerBuilder::request_within) |
//! | an answer | the page, twice while it is written, for [`response_within`](StatsServerBuilder::response_within) |

pub(crate) mod clients; // which connection gives way to a new one
pub(crate) mod connection; // the actor of a connection
pub(crate) mod pages; // which page answers which request
pub(crate) mod request; // reads the head of a request
pub(crate) mod response;
pub(crate) mod server;
pub(crate) mod snapshot; // the page of all numbers, as JSON
pub(crate) mod trace; // the page of turns, for Perfetto
pub(crate) mod tree; // the page of the tree, for Graphviz

pub use crate::console::server::{ServeError, StatsServer, StatsServerBuilder};
