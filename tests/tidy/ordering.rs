//! What the comments of orderings say.
//!
//! Legal forms, each in one comment and at most [`REACH`] lines above its ordering:
//!
//! * `Ordering: Release; pairs with the Acquire load in `name`.` For one that pairs: a function, type, field or file
//!   that exists: one of the same file or module, or a path that says whose it is (`Type::name`, `file.rs`). Or
//!   `below`, `above`, `here`: what is in the same function, and `others`: more of the same.
//! * `mirror of `name`` says the same of a fence.
//! * `as in `name``, `as `name``, `see `name``, `as above`, `as below`: what is said there holds here.
//! * `Ordering: Relaxed; why`: no pair.

use crate::names::Names;
use crate::report;
use crate::source::{Line, Source, sources};

/// How far above an ordering its comment may begin.
const REACH: usize = 8;

const PAIRING: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

fn unexplained(source: &Source) -> Vec<String> {
    let lines = source.without_tests();
    let faults = lines.iter().enumerate().filter_map(|(at, line)| {
        let order = PAIRING.iter().find(|order| line.code.contains(&format!("Ordering::{order}")))?;
        let explained =
            lines[at.saturating_sub(REACH)..=at].iter().any(|line| line.comment.contains("Ordering:"));
        (!explained).then(|| {
            let todo = "say above it `// Ordering: …; pairs with … in `name`.`";
            source.fault(line.number, format_args!("`Ordering::{order}` without its comment: {todo}"))
        })
    });
    faults.collect()
}

/// The comments of a file that are not documentation, joined over their lines; each with its first line's number.
fn comments(lines: &[Line]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let is_one = !line.comment.is_empty() && !line.is_doc;
        match found.last_mut() {
            Some((_, text)) if is_one && goes_on && line.is_comment() => text.push_str(&line.comment),
            _ if is_one => found.push((line.number, line.comment.clone())),
            _ => {}
        }
        goes_on = is_one;
    }
    found
}

/// What a comment refers to: the rest of the sentence behind each phrase that does so.
fn references(comment: &str) -> Vec<&str> {
    let phrases = ["pairs with", "mirror of", "as in ", "as `", "see `", "as above", "as below", "see above"];
    let found = phrases.iter().flat_map(|phrase| comment.match_indices(phrase));
    // Dots inside names are followed by no space.
    found.map(|(at, _)| comment[at..].split(". ").next().unwrap_or_default()).collect()
}

fn refers_to_nothing(source: &Source, names: &Names) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, comment) in comments(source.without_tests()) {
        let Some((_, said)) = comment.split_once("Ordering:") else { continue };
        let references = references(said);
        let pairs =
            PAIRING.iter().any(|order| said.contains(order)) && !said.trim_start().starts_with("Relaxed");
        if pairs && references.is_empty() {
            let todo = "say what it pairs with, or `as in `name``";
            faults.push(source.fault(number, format_args!("an ordering that refers to nothing: {todo}")));
        }
        for sentence in references {
            let quoted: Vec<&str> = sentence.split('`').skip(1).step_by(2).collect();
            let is_near = ["below", "above", "here", "others"].iter().any(|near| sentence.contains(near));
            if quoted.is_empty() && !is_near {
                let todo = "name a function, type or file in backquotes";
                faults.push(source.fault(number, format_args!("`{}`: {todo}", sentence.trim())));
            }
            for name in quoted.into_iter().filter(|name| !names.has(&source.path, name)) {
                let todo = "name what exists: of this module, or with its type or file";
                faults.push(source.fault(number, format_args!("`{name}` is not there: {todo}")));
            }
        }
    }
    faults
}

/// The files that are no protocol of ours: the stand-ins of the models.
fn judged() -> Vec<Source> {
    let mut all = sources("src");
    all.retain(|source| !source.is_tests() && source.path != "src/sync/model.rs");
    all
}

#[test]
fn each_ordering_says_what_it_is_for() {
    report(&judged().iter().flat_map(unexplained).collect::<Vec<_>>());
}

#[test]
fn what_an_ordering_pairs_with_exists() {
    let names = Names::of(&sources("src"));
    report(&judged().iter().flat_map(|source| refers_to_nothing(source, &names)).collect::<Vec<_>>());
}

#[test]
fn an_ordering_without_its_comment_is_found() {
    let good = "// Ordering: Release; pairs with `look`.\na.store(1, Ordering::Release);\nb.load(Ordering::Relaxed);";
    assert!(unexplained(&crate::source::snippet(good)).is_empty());
    let bad = crate::source::snippet(
        "// Publishes it.\na.store(1, Ordering::Release);\nfence(Ordering::SeqCst); // now",
    );
    let faults = unexplained(&bad);
    let said = crate::said(&faults);
    assert!(
        said[0].starts_with("2: `Ordering::Release`") && said[1].starts_with("3: `Ordering::SeqCst`"),
        "{said:?}"
    );
}

#[test]
fn a_pair_that_does_not_exist_is_found() {
    let says = |comment: &str| {
        let source = crate::source::snippet(&format!("fn look() {{}}\n// {comment}\n"));
        refers_to_nothing(&source, &Names::of(std::slice::from_ref(&source)))
    };
    for good in [
        "Ordering: Release; pairs with the Acquire load in `look`. More of `other`.",
        "Ordering: Release; pairs with the fence below.",
        "Ordering: Relaxed; a statistic.",
        "Ordering: SeqCst; mirror of `look`.",
        "Ordering: Acquire; as in `look`.",
        "Speaks of `other` and of no ordering.",
    ] {
        assert!(says(good).is_empty(), "{good}: {:?}", says(good));
    }
    for bad in [
        "Ordering: Release; pairs with the Acquire load in `other`.",
        "Ordering: Release; pairs with the load.",
        "Ordering: Release; so that it is seen.",
        "Ordering: Relaxed; see `other`.",
    ] {
        assert_eq!(says(bad).len(), 1, "{bad}: {:?}", says(bad));
    }
}
