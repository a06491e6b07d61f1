//! What is there for readers can be found by them.

use crate::report;
use crate::source::{files, text, top};

/// Where readers begin.
const ENTRANCE: &str = "README.md";

/// The targets of the links of a page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    // A link may break its line between its text and nowhere else.
    page.match_indices("](").filter_map(|(at, _)| page[at + 2..].split([')', '#']).next())
}

/// What a page must link to and does not.
fn unlisted(page: &str, wanted: &[String]) -> Vec<String> {
    let missing = wanted.iter().filter(|path| !links(page).any(|link| link == path.as_str()));
    missing.map(|path| format!("{ENTRANCE}: no link to {path}: list it where its readers look")).collect()
}

/// The links of a page to what is not there.
fn dead_links(path: &str, page: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let dead = links(page).filter(|link| is_of_the_tree(link) && !exists(link));
    dead.map(|link| format!("{path}: the link to {link} leads nowhere: mend it")).collect()
}

/// Whether a link leads to a file here: to no other site, and to no item of the documentation of the crate.
fn is_of_the_tree(link: &str) -> bool {
    !link.is_empty()
        && !link.contains("::")
        && !link.contains(':')
        && (link.contains('.') || link.contains('/'))
}

/// Of a folder: its files, and its folders that have a `main.rs` by that.
fn programs(folder: &str) -> Vec<String> {
    let mut found = files(folder, ".rs");
    found.retain(|path| path.matches('/').count() == 1 || path.ends_with("/main.rs"));
    found
}

#[test]
fn examples_benchmarks_and_guides_are_listed() {
    let mut wanted = programs("examples");
    wanted.extend(programs("benches"));
    wanted.extend(files("docs", ".md"));
    wanted.extend(["UNSAFE.md".to_owned(), "loom-tests/README.md".to_owned(), "CHANGELOG.md".to_owned()]);
    report(&unlisted(&text(ENTRANCE), &wanted));
}

#[test]
fn links_lead_somewhere() {
    let mut pages = vec![ENTRANCE.to_owned(), "UNSAFE.md".to_owned(), "loom-tests/README.md".to_owned()];
    pages.extend(files("docs", ".md"));
    let of = |path: &String| {
        let folder = top().join(path).parent().expect("a file").to_owned();
        dead_links(path, &text(path), |link| folder.join(link).exists())
    };
    report(&pages.iter().flat_map(of).collect::<Vec<_>>());
}

#[test]
fn what_is_not_listed_is_found() {
    let page = "See [a](docs/a.md), [b](docs/b.md#part) and `docs/c.md`.";
    let wanted = ["docs/a.md".to_owned(), "docs/b.md".to_owned()];
    assert!(unlisted(page, &wanted).is_empty());
    assert_eq!(unlisted(page, &["docs/c.md".to_owned()]).len(), 1);
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let page = "[a](docs/a.md) [b](https://example.org/b.md) [c](crate::c) [d](#d) [e](docs/e.md)";
    let faults = dead_links("README.md", page, |link| link == "docs/a.md");
    assert_eq!(faults.len(), 1, "{faults:?}");
}
