//! The tests that tables of what is shown cite exist.

use crate::names::Names;
use crate::report;
use crate::source::{sources, text};

/// The pages with such tables.
const PAGES: [&str; 2] = ["tests/it/coverage.md", "fuzz/README.md"];

/// The tests that a page cites in its tables: `module::test`, behind `loom: ` those of models, and `file.rs: test`.
fn cited(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let rows = page.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    let quoted = rows.flat_map(|(at, row)| row.split('`').skip(1).step_by(2).map(move |name| (at + 1, name)));
    quoted.filter(|(_, name)| {
        let (before, test) = name.rsplit_once("::").or_else(|| name.rsplit_once(".rs: ")).unwrap_or_default();
        // What has capitals is of the library, and so is a path from the crate on.
        test.contains('_')
            && name.chars().all(|c| c.is_lowercase() || c.is_ascii_digit() || "_:/. ".contains(c))
            && !before.starts_with("crate")
    })
}

/// Those that are not there. `has(folder, file, test)` looks in the files of a folder whose path ends so.
fn missing(path: &str, page: &str, has: impl Fn(&str, &str, &str) -> bool) -> Vec<String> {
    let gone = cited(page).filter(|(_, name)| {
        let (folder, name) = match name.strip_prefix("loom: ") {
            Some(name) => ("loom-tests/tests", name),
            None => ("", *name),
        };
        let (file, test) = match name.split_once(".rs: ") {
            Some((file, test)) => (file.to_owned(), test),
            None => {
                // Between file and test there may be modules within the file.
                let mut parts = name.split("::");
                let file = parts.next().expect("a text has a first part");
                (format!("/{file}"), parts.last().expect("a name without two parts is not cited"))
            }
        };
        !has(folder, &format!("{file}.rs"), test)
    });
    gone.map(|(row, name)| format!("{path}:{row}: there is no test `{name}`: name the one that shows it"))
        .collect()
}

#[test]
fn the_tests_that_are_cited_exist() {
    let all: Vec<_> =
        ["tests", "loom-tests/tests", "src", "examples"].into_iter().flat_map(sources).collect();
    let names = Names::of(&all);
    let has = |folder: &str, file: &str, test: &str| {
        let mut paths = all.iter().map(|source| source.path.as_str());
        paths.any(|path| path.starts_with(folder) && path.ends_with(file) && names.defines(path, test))
    };
    report(&PAGES.iter().flat_map(|path| missing(path, &text(path), has)).collect::<Vec<_>>());
}

#[test]
fn tests_that_are_cited_and_gone_are_found() {
    let page = "`gone::not_in_a_table`\n| rule | `basics::it_is` · `loom: keyed::it_was` · `src/a.rs: it_may` |\n\
                | ours: `Group::at_key` | `basics::it_was` |";
    let there = [
        ("", "/basics.rs", "it_is"),
        ("loom-tests/tests", "/keyed.rs", "it_was"),
        ("", "src/a.rs", "it_may"),
    ];
    let has = |folder: &str, file: &str, test: &str| there.contains(&(folder, file, test));
    let faults = missing("page.md", page, has);
    assert_eq!(faults, ["page.md:3: there is no test `basics::it_was`: name the one that shows it"]);
}
