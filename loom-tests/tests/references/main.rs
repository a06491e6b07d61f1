//! Models of references, and of questions and their answers.

#[cfg(not(pointsman_loom))]
compile_error!("models need the loom mirror: run cargo loom");

mod ask;
mod attempts;
mod copies;
mod requests;
mod selection;
#[path = "../support/mod.rs"]
mod support;
