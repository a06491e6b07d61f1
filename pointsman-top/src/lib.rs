//! `pointsman-top`, a terminal console for running systems of [`pointsman`]: it reads the page `/snapshot` of a system that
//! calls [`serve_stats`](pointsman::SystemRef::serve_stats), and shows actors, routers, times, threads and books.
//!
//! The program is described in its README. The parts of this library are for the program and its tests, and no promise.
//!
//! | part | has |
//! |---|---|
//! | [`client`], [`snapshot`] | what a server sends |
//! | [`model`] | what follows from the readings: rates, histories, new starts |
//! | [`view`] | what the user has chosen |
//! | [`pages`], [`screen`] | functions from these two to the screen |

pub mod app; // the program without its terminal
pub mod client;
pub mod demo; // a system to look at
pub mod fault;
pub mod filter;
pub mod format; // numbers and names as the pages show them
pub mod model;
pub mod options;
pub mod pages;
pub mod picture; // a drawn screen as an SVG
pub mod printed; // pages for files and scripts
pub mod query; // the actors that a server is asked for
pub mod reader; // reads a server again and again
pub mod reading;
pub mod recording; // readings in a file
pub mod screen;
pub mod server_address;
pub mod snapshot;
pub mod style;
pub mod terminal;
pub mod text; // a drawn screen as plain text
pub mod view;
