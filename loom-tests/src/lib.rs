//! The engine's own source on loom, as the build script has copied it.

// Sizes that are shrunk for the models leave loops and comparisons empty, and what is public here is not for users.
#![allow(
    missing_docs,
    clippy::absurd_extreme_comparisons,
    clippy::len_without_is_empty,
    clippy::new_without_default,
    clippy::result_unit_err,
    clippy::reversed_empty_ranges,
    clippy::unnecessary_literal_unwrap
)]

include!(concat!(env!("OUT_DIR"), "/engine/lib.rs"));
