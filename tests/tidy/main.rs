//! The house rules that no lint knows, executed.
//!
//! Each rule is a function from a [`Source`](source::Source), or from all of them, to the faults in it. A fault says
//! where it is and what to do. Each rule has a test on good and bad snippets, and a test that runs it on the tree.
//! Nothing here needs a crate, so that a change of a rule is tried in a second:
//! `CARGO_MANIFEST_DIR=. rustc --edition 2024 --test tests/tidy/main.rs -o target/tidy && target/tidy`.

mod coverage;
mod differences;
mod docs;
mod errors;
mod guides;
mod layers;
mod models;
mod names;
mod ordering;
mod prose;
mod reasons;
mod safety;
mod seam;
mod source;
mod unsafe_list;

/// Ends a test that runs a rule on the tree.
fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// What a rule says of a snippet, as faults without the snippet's name.
#[cfg(test)]
fn said(faults: &[String]) -> Vec<&str> {
    faults.iter().map(|fault| fault.trim_start_matches("src/snippet.rs:")).collect()
}
