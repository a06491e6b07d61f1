//! Which folder may import from which, and how large a circle of files may be.
//!
//! Each folder, and each file at the top of `src`, has a rank. A file imports from its own folder and from folders of
//! lower ranks. An import names the file that defines: one that goes through a re-export is followed to that file, so no
//! facade hides who knows whom. Unit tests may import from anywhere.

use super::source::{Line, Source, sources};
use std::collections::{BTreeMap, BTreeSet};

/// From the ground up.
const RANKS: &[&[&str]] = &[
    &["sync"],
    &["util"],
    &["failure", "measure", "path", "thread_context"],
    &["mailbox", "scheduler"],
    &["dispatch"],
    &["settings"],
    &["time"],
    &["core"],
    &["ask", "telemetry"],
    &["actor"],
    &["selection", "pattern", "net", "shutdown", "dump", "logs"],
    &["console", "metrics_publisher", "remote"],
    &["routing"],
    &["group"],
    &["topology"],
    &["system_settings"],
    &["config"],
    &["system"],
    &["testkit"],
];

/// What shows the crate to others: its root, the guides, and what exists for models.
const VIEWS: &[&str] = &["lib", "guide", "loom_hooks", "model"];

/// The most files that may import each other in one circle. It lies within one folder by the ranks.
const CIRCLE_MAX: usize = 10;

/// A module of the crate.
#[derive(Default)]
struct Module {
    /// Its file, from `src`.
    file: String,
    /// What the file defines at its top, and the names of its child modules.
    names: BTreeSet<String>,
    /// What it re-exports: the name here, and the path that it stands for.
    exports: BTreeMap<String, Vec<String>>,
}

/// All modules, by their paths within the crate.
struct Tree(BTreeMap<Vec<String>, Module>);

/// An import of one file from another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    from: String,
    to: String,
    line: usize,
    name: String,
}

/// The path of a file's module: `core/cell.rs` is `core::cell`, and `core/mod.rs` is `core`.
fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The folder of a file from `src`, or the file itself without its ending.
fn folder_of(file: &str) -> &str {
    file.split('/').next().map_or("", |first| first.trim_end_matches(".rs"))
}

fn rank_of(folder: &str) -> Option<usize> {
    RANKS.iter().position(|row| row.contains(&folder))
}

/// The code of a file without its unit tests: each line with its number.
fn code(source: &Source) -> Vec<&Line> {
    if source.is_tests() { Vec::new() } else { source.without_tests().iter().collect() }
}

/// The parts of a path, spaces left out.
fn parts(path: &str) -> Vec<String> {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The paths of a `use`, which may have braces: each with the name that it has here.
fn leaves(tree: &str, before: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let tree = tree.trim();
    match tree.find('{') {
        Some(open) => {
            let mut path = before.to_vec();
            path.extend(parts(&tree[..open]));
            let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
            let (mut depth, mut begin) = (0, 0);
            for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
                match character {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        leaves(&inner[begin..at], &path, found);
                        begin = at + 1;
                    }
                    _ => {}
                }
            }
        }
        None if !tree.is_empty() => {
            let (path, alias) =
                tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
            let mut whole = before.to_vec();
            whole.extend(parts(path));
            if whole.last().is_some_and(|last| last == "self") {
                whole.pop();
            }
            let name = alias.map(str::trim).or(whole.last().map(String::as_str)).unwrap_or("").to_owned();
            found.push((whole, name));
        }
        None => {}
    }
}

/// The text of a statement that begins in this line, up to its semicolon.
fn statement(lines: &[&Line], from: usize) -> String {
    let mut text = String::new();
    for line in &lines[from..] {
        text.push_str(line.code.trim());
        text.push(' ');
        if line.code.contains(';') {
            break;
        }
    }
    text
}

impl Tree {
    fn new(files: &[Source]) -> Self {
        let mut tree = BTreeMap::new();
        for source in files {
            let file = source.path.trim_start_matches("src/").to_owned();
            let lines = code(source);
            let mut module = Module { file: file.clone(), ..Module::default() };
            for (at, line) in lines.iter().enumerate() {
                if line.code.starts_with(char::is_whitespace) {
                    continue;
                }
                let words: Vec<&str> = line.code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
                if line.code.starts_with("pub use ") || line.code.starts_with("pub(crate) use ") {
                    let text = statement(&lines, at);
                    let text = text.split_once(" use ").map_or("", |(_, text)| text).trim();
                    let mut found = Vec::new();
                    leaves(text.trim_end_matches(';'), &[], &mut found);
                    module.exports.extend(found.into_iter().map(|(path, name)| (name, path)));
                    continue;
                }
                let kinds = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod"];
                let kind = words.iter().position(|word| kinds.contains(word) || *word == "macro_rules");
                let name = kind.and_then(|kind| words[kind + 1..].iter().find(|word| !word.is_empty()));
                module.names.extend(name.map(|name| (*name).to_owned()));
            }
            tree.insert(module_of(&file), module);
        }
        Self(tree)
    }

    /// Whether the path names a module, or what the module before its last part has.
    fn has(&self, path: &[String]) -> bool {
        let has_last = |(name, module): (&String, &[String])| {
            let module = self.0.get(module);
            module.is_some_and(|module| module.names.contains(name) || module.exports.contains_key(name))
        };
        self.0.contains_key(path) || path.split_last().is_some_and(has_last)
    }

    /// The file that defines what this path names, followed through re-exports.
    fn definer(&self, path: &[String], depth: usize) -> Option<&str> {
        // The longest beginning that is a module.
        let at = (0..=path.len()).rev().find(|at| self.0.contains_key(&path[..*at]))?;
        let module = &self.0[&path[..at]];
        let Some(name) = path.get(at) else { return Some(&module.file) };
        match module.exports.get(name) {
            Some(other) if depth > 0 => {
                let mut whole = absolute(other, &path[..at]);
                whole.extend_from_slice(&path[at + 1..]);
                self.definer(&whole, depth - 1)
            }
            _ => Some(&module.file),
        }
    }
}

/// A path from the crate's root, of one that is written in this module.
fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut at = module.to_vec();
    let mut rest = path;
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "crate" => at.clear(),
            "super" => _ = at.pop(),
            "self" => {}
            _ => break,
        }
        rest = others;
    }
    at.extend_from_slice(rest);
    at
}

/// The imports of one file, by `use` and by paths within its code. The first path that begins with `crate` or `super` in a
/// piece of code is followed; re-exports that show the crate to others are none.
fn imports(source: &Source, tree: &Tree) -> Vec<Import> {
    let file = source.path.trim_start_matches("src/").to_owned();
    let module = module_of(&file);
    let lines = code(source);
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let text = line.code.trim_start();
        let mut paths = Vec::new();
        if let Some(used) = text.strip_prefix("use ") {
            let whole = statement(&lines, at);
            let whole = if used.contains(';') {
                used.to_owned()
            } else {
                whole.trim_start_matches("use ").to_owned()
            };
            leaves(whole.split(';').next().unwrap_or(""), &[], &mut paths);
            paths.retain(|(path, _)| path.first().is_some_and(|first| first == "crate" || first == "super"));
        } else if text.starts_with("pub use ") || text.starts_with("pub(crate) use ") {
            continue;
        } else {
            for (begin, _) in text.match_indices("crate::").chain(text.match_indices("super::")) {
                let before = text[..begin].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                    continue;
                }
                let end = text[begin..]
                    .find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                    .map_or(text.len(), |end| begin + end);
                paths.push((parts(&text[begin..end]), String::new()));
            }
        }
        for (path, _) in paths {
            let whole = absolute(&path, &module);
            let Some(to) = tree.definer(&whole, 8) else { continue };
            // Within a module of the file itself `super` may lead no further than to the file.
            let is_own = path.first().is_some_and(|first| first == "super") && !tree.has(&whole);
            if to != file && !is_own {
                let name = path.last().cloned().unwrap_or_default();
                found.push(Import { from: file.clone(), to: to.to_owned(), line: line.number, name });
            }
        }
    }
    found
}

/// The imports that the ranks do not allow.
fn forbidden(imports: &[Import]) -> Vec<String> {
    let mut faults = Vec::new();
    for Import { from, to, line, name } in imports {
        let (here, there) = (folder_of(from), folder_of(to));
        if here == there || VIEWS.contains(&here) {
            continue;
        }
        match (rank_of(here), rank_of(there)) {
            (Some(own), Some(other)) if other < own => {}
            (Some(_), Some(_)) => faults.push(format!(
                "src/{from}:{line}: {name} is in src/{to}, which is not below {here}: move what is needed down, or the \
                 code that needs it up"
            )),
            _ => faults.push(format!("src/{from}:{line}: {here} or {there} has no rank: give it one in tests/tidy/layers.rs")),
        }
    }
    faults
}

/// The circles of files that import each other, each sorted.
fn circles(imports: &[Import]) -> Vec<Vec<&str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Import { from, to, .. } in imports {
        next.entry(from).or_default().insert(to);
        next.entry(to).or_default();
    }
    let reached = |from: &str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = next.get(from).into_iter().flatten().copied().collect();
        while let Some(file) = open.pop() {
            if seen.insert(file) {
                open.extend(next.get(file).into_iter().flatten());
            }
        }
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|file| (*file, reached(file))).collect();
    let mut found: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (file, seen) in &all {
        if seen.contains(file) {
            found.insert(seen.iter().copied().filter(|other| all[other].contains(file)).collect());
        }
    }
    found.into_iter().collect()
}

/// The modules that are built for unit tests alone, by their paths: those whose declaration says so.
fn only_for_tests(files: &[Source]) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for source in files {
        for pair in source.lines.windows(2) {
            let declared = pair[1].code.trim_start_matches("pub(crate) ").strip_prefix("mod ");
            let name = declared.and_then(|rest| rest.trim_end().strip_suffix(';'));
            if let Some(name) = name.filter(|_| pair[0].is_attribute() && pair[0].code.contains("(test")) {
                let mut path = module_of(source.path.trim_start_matches("src/"));
                path.push(name.to_owned());
                found.insert(path);
            }
        }
    }
    found
}

/// All imports of the library, its views and what is built for unit tests alone left out.
fn of_the_tree() -> Vec<Import> {
    let files = sources("src");
    let (tree, tests) = (Tree::new(&files), only_for_tests(&files));
    let counts = |source: &&Source| {
        let file = source.path.trim_start_matches("src/");
        !VIEWS.contains(&folder_of(file)) && !tests.contains(&module_of(file))
    };
    files.iter().filter(counts).flat_map(|source| imports(source, &tree)).collect()
}

#[test]
fn no_import_runs_upward_or_sideways() {
    super::report(&forbidden(&of_the_tree()));
}

#[test]
fn no_circle_of_files_is_large() {
    let imports = of_the_tree();
    let circles = circles(&imports);
    let folders =
        |circle: &Vec<&str>| circle.iter().map(|file| folder_of(file)).collect::<BTreeSet<_>>().len();
    // `.ci/figures` shows these lines.
    println!("circles of files          {:?}", circles.iter().map(Vec::len).collect::<Vec<_>>());
    println!("folders in one circle     {}", circles.iter().map(folders).max().unwrap_or(1));
    println!("upward imports            {}", forbidden(&imports).len());
    let large: Vec<String> = circles
        .into_iter()
        .filter(|circle| circle.len() > CIRCLE_MAX)
        .map(|circle| {
            format!(
                "{} files import each other, at most {CIRCLE_MAX} may: {}",
                circle.len(),
                circle.join(", ")
            )
        })
        .collect();
    super::report(&large);
}

/// The largest number of names in the crate root, modules not counted.
const ROOT_MAX: usize = 40;

#[test]
fn the_crate_root_has_few_names() {
    let root =
        sources("src").into_iter().find(|source| source.path == "src/lib.rs").expect("the root is there");
    let code: String = root.lines.iter().map(|line| line.code.as_str()).collect::<Vec<_>>().join("\n");
    // Modules and what they show are indented.
    let shown = code.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let names: Vec<&str> = shown
        .flat_map(|path| path.rsplit("::").next().unwrap_or_default().split(','))
        .map(|name| name.trim_matches(|c: char| c.is_whitespace() || "{}".contains(c)))
        .filter(|name| !name.is_empty())
        .collect();
    assert!(
        (10..=ROOT_MAX).contains(&names.len()),
        "{} names in the root, at most {ROOT_MAX}: {names:?}",
        names.len()
    );
}

#[test]
fn each_folder_has_one_rank_and_is_there() {
    let folders: BTreeSet<String> = sources("src")
        .iter()
        .map(|source| folder_of(source.path.trim_start_matches("src/")).to_owned())
        .collect();
    let ranked: Vec<&str> =
        RANKS.iter().flat_map(|row| row.iter().copied()).chain(VIEWS.iter().copied()).collect();
    let all: BTreeSet<String> = ranked.iter().map(|folder| (*folder).to_owned()).collect();
    assert_eq!(ranked.len(), all.len(), "a folder has two ranks");
    assert_eq!(folders, all);
}

#[cfg(test)]
fn snippets(files: &[(&str, &str)]) -> Vec<Import> {
    let files: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let tree = Tree::new(&files);
    files.iter().flat_map(|source| imports(source, &tree)).collect()
}

#[test]
fn imports_that_run_upward_are_found_behind_facades_braces_and_in_code() {
    let imports = snippets(&[
        ("src/mailbox/mod.rs", "pub(crate) mod gate;\n"),
        (
            "src/mailbox/gate.rs",
            "use crate::core::{cell::Cell,\n    error::{self, SendError}};\npub struct Gate;\n",
        ),
        ("src/core/mod.rs", "pub(crate) mod cell;\npub(crate) mod error;\npub use self::cell::Cell;\n"),
        ("src/core/cell.rs", "use crate::mailbox::gate::Gate;\npub struct Cell;\n"),
        ("src/core/error.rs", "pub enum SendError {}\n"),
        (
            "src/util/panic.rs",
            "fn f() {\n    crate::core::Cell;\n}\n#[cfg(test)]\nmod tests {\n    use crate::topology;\n}\n",
        ),
        ("src/lib.rs", "pub use crate::core::cell::Cell;\n"),
        ("src/time/clock.rs", "use crate::Cell;\n"),
    ]);
    let faults = forbidden(&imports);
    let said: Vec<String> =
        faults.iter().map(|fault| fault.split(", which").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        said,
        [
            "src/mailbox/gate.rs:1: Cell is in src/core/cell.rs",
            "src/mailbox/gate.rs:1: error is in src/core/error.rs",
            "src/mailbox/gate.rs:1: SendError is in src/core/error.rs",
            "src/util/panic.rs:2: Cell is in src/core/cell.rs",
            "src/time/clock.rs:1: Cell is in src/core/cell.rs",
        ]
    );
}

#[test]
fn modules_that_are_built_for_tests_alone_are_found() {
    let text = "#[cfg(all(test, not(pointsman_loom)))]\npub(crate) mod scripted;\npub(crate) mod socket;\n";
    let files = [Source::new("src/net/mod.rs", text)];
    assert_eq!(only_for_tests(&files).into_iter().collect::<Vec<_>>(), [["net", "scripted"]]);
}

#[test]
fn circles_are_found_with_all_their_files() {
    let imports = snippets(&[
        ("src/core/a.rs", "use crate::core::b::B;\npub struct A;\n"),
        ("src/core/b.rs", "use super::c::C;\npub struct B;\n"),
        ("src/core/c.rs", "use crate::core::a::A;\npub struct C;\n"),
        ("src/core/d.rs", "use crate::core::a::A;\n"),
    ]);
    assert_eq!(circles(&imports), [["core/a.rs", "core/b.rs", "core/c.rs"]]);
}
