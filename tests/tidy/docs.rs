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

/// The patterns of the files that the package contains, as the manifest has them.
fn packaged_patterns(manifest: &str) -> Vec<&str> {
    let list = manifest.split("\ninclude = [").nth(1).and_then(|rest| rest.split(']').next());
    list.expect("a list of files").split('"').skip(1).step_by(2).collect()
}

/// Whether a pattern of the manifest includes this path: `**` stands for all below a folder, and `*` for any part of one
/// name. A slash before a pattern binds it to the top, and patterns of files need one, since cargo looks below each folder else.
fn includes(pattern: &str, path: &str) -> bool {
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    if let Some(folder) = pattern.strip_suffix("**") {
        return path.starts_with(folder);
    }
    let Some((before, after)) = pattern.split_once('*') else { return pattern == path };
    path.len() >= before.len() + after.len()
        && path.starts_with(before)
        && path.ends_with(after)
        && !path[before.len()..path.len() - after.len()].contains('/')
}

/// The path from the top that a link of a page leads to.
fn target(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The links of a packaged page to files that the package does not contain.
fn links_out_of_the_package(path: &str, page: &str, patterns: &[&str]) -> Vec<String> {
    let out = links(page).filter(|link| {
        is_of_the_tree(link) && !patterns.iter().any(|pattern| includes(pattern, &target(path, link)))
    });
    out.map(|link| format!("{path}: the package does not contain {link}: name the file without a link"))
        .collect()
}

#[test]
fn packaged_pages_link_to_packaged_files() {
    let manifest = text("Cargo.toml");
    let patterns = packaged_patterns(&manifest);
    let mut pages = files("docs", ".md");
    pages.extend(std::fs::read_dir(top()).expect("readable").filter_map(|entry| {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        name.ends_with(".md").then_some(name)
    }));
    pages.retain(|page| patterns.iter().any(|pattern| includes(pattern, page)));
    assert!(pages.contains(&ENTRANCE.to_owned()), "the package has no {ENTRANCE}");
    let faults = pages.iter().flat_map(|page| links_out_of_the_package(page, &text(page), &patterns));
    report(&faults.collect::<Vec<_>>());
}

#[test]
fn links_out_of_the_package_are_found() {
    let patterns = packaged_patterns("[package]\ninclude = [\"docs/**\", \"benches/*.rs\", \"/*.md\"]\n");
    let page = "[a](b.md) [b](../README.md#x) [c](../benches/tell.rs) [d](../benches/peers/main.rs) [e](../fuzz/README.md)";
    let faults = links_out_of_the_package("docs/a.md", page, &patterns);
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("peers") && faults[1].contains("fuzz"), "{faults:?}");
}

#[test]
fn examples_benchmarks_and_guides_are_listed() {
    let mut wanted = programs("examples");
    let (packaged, apart): (Vec<_>, Vec<_>) =
        programs("benches").into_iter().partition(|path| path.matches('/').count() == 1);
    wanted.extend(packaged);
    wanted.extend(files("docs", ".md"));
    wanted.extend(["UNSAFE.md".to_owned(), "CHANGELOG.md".to_owned()]);
    let page = text(ENTRANCE);
    let mut faults = unlisted(&page, &wanted);
    // Packages of their own, which the package does not contain: named without a link.
    let named =
        apart.iter().filter_map(|path| path.strip_suffix("/src/main.rs")).chain(["loom-tests/README.md"]);
    let missing = named.filter(|name| !page.contains(&format!("`{name}`")));
    faults.extend(
        missing.map(|name| format!("{ENTRANCE}: no mention of {name}: name it where its readers look")),
    );
    report(&faults);
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
