//! The files of the tree, with code, comments and strings told apart.

use std::fs;
use std::path::Path;

/// A Rust file.
pub struct Source {
    /// From the top of the tree, with slashes.
    pub path: String,
    pub lines: Vec<Line>,
}

/// A line of a Rust file.
#[derive(Default)]
pub struct Line {
    /// From 1.
    pub number: usize,
    /// As it stands in the file.
    pub whole: String,
    /// Without comments; strings and characters are empty.
    pub code: String,
    /// What stands behind `//`, `///` or `//!`, or within a block comment.
    pub comment: String,
    /// A comment for readers of the documentation.
    pub is_doc: bool,
}

impl Line {
    /// Whether there is a comment and nothing else.
    pub fn is_comment(&self) -> bool {
        self.code.trim().is_empty() && !self.whole.trim().is_empty()
    }

    pub fn is_attribute(&self) -> bool {
        self.code.trim_start().starts_with("#[") || self.code.trim_start().starts_with("#![")
    }
}

/// Where the reader of a file is.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Code,
    /// A block comment; they nest.
    Block(usize),
    String,
    /// Ends at a quote and so many hashes.
    Raw(usize),
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let mut lines = Vec::new();
        let mut within = Within::Code;
        for (at, whole) in text.lines().enumerate() {
            let mut line = Line { number: at + 1, whole: whole.to_owned(), ..Line::default() };
            within = line.read(within);
            lines.push(line);
        }
        Self { path: path.to_owned(), lines }
    }

    /// A fault in a line.
    pub fn fault(&self, number: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{number}: {what}", self.path)
    }

    /// Whether it is all unit tests.
    pub fn is_tests(&self) -> bool {
        self.path.ends_with("/tests.rs")
    }

    /// The lines before the module of unit tests.
    pub fn without_tests(&self) -> &[Line] {
        let is_test =
            |line: &Line| line.code.starts_with("#[cfg(test)]") || line.code.starts_with("#[cfg(all(test");
        let is_module = |from: usize| {
            let mut rest = self.lines[from..].iter().filter(|line| !line.is_attribute());
            let module = |line: &Line| line.code.trim_start_matches("pub(crate) ").starts_with("mod ");
            rest.next().is_some_and(module)
        };
        let end = (0..self.lines.len()).find(|at| is_test(&self.lines[*at]) && is_module(*at));
        &self.lines[..end.unwrap_or(self.lines.len())]
    }
}

impl Line {
    /// Tells code, comment and strings apart, from where the line before ended; returns where this one ends.
    fn read(&mut self, mut within: Within) -> Within {
        let text: Vec<char> = self.whole.chars().collect();
        let starts =
            |at: usize, with: &str| with.chars().enumerate().all(|(n, c)| text.get(at + n) == Some(&c));
        let mut at = 0;
        while at < text.len() {
            match within {
                Within::Block(depth) if starts(at, "*/") => {
                    within = if depth == 1 { Within::Code } else { Within::Block(depth - 1) };
                    at += 1;
                }
                Within::Block(depth) if starts(at, "/*") => {
                    within = Within::Block(depth + 1);
                    at += 1;
                }
                Within::Block(_) => self.comment.push(text[at]),
                Within::String if text[at] == '\\' => at += 1,
                Within::String if text[at] == '"' => {
                    self.code.push('"');
                    within = Within::Code;
                }
                Within::Raw(hashes) if starts(at, &format!("\"{}", "#".repeat(hashes))) => {
                    self.code.push('"');
                    at += hashes;
                    within = Within::Code;
                }
                Within::String | Within::Raw(_) => {}
                Within::Code if starts(at, "//") => {
                    self.is_doc = starts(at, "///") || starts(at, "//!");
                    let skipped = at + if self.is_doc { 3 } else { 2 };
                    self.comment.extend(&text[skipped..]);
                    return Within::Code;
                }
                Within::Code if starts(at, "/*") => {
                    within = Within::Block(1);
                    at += 1;
                }
                Within::Code if text[at] == '"' => {
                    self.code.push('"');
                    within = Within::String;
                }
                Within::Code
                    if text[at] == 'r' && !self.code.ends_with(|c: char| c.is_alphanumeric() || c == '_') =>
                {
                    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
                    if text.get(at + 1 + hashes) == Some(&'"') {
                        self.code.push('"');
                        at += 1 + hashes;
                        within = Within::Raw(hashes);
                    } else {
                        self.code.push('r');
                    }
                }
                // A character, and no lifetime.
                Within::Code if text[at] == '\'' && text.get(at + 1) == Some(&'\\') => {
                    let end =
                        text[at + 3..].iter().position(|c| *c == '\'').map_or(text.len(), |end| at + 3 + end);
                    self.code.push_str("''");
                    at = end;
                }
                Within::Code if text[at] == '\'' && text.get(at + 2) == Some(&'\'') => {
                    self.code.push_str("''");
                    at += 2;
                }
                Within::Code => self.code.push(text[at]),
            }
            at += 1;
        }
        within
    }
}

/// The top of the tree.
pub fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file.
pub fn text(path: &str) -> String {
    fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a folder whose names end so, by their paths from the top, sorted.
pub fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![top().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("readable").path();
            let from_top =
                path.strip_prefix(top()).expect("below the top").to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                if !from_top.ends_with("target") {
                    folders.push(path);
                }
            } else if from_top.ends_with(ending) {
                found.push(from_top);
            }
        }
    }
    assert!(!found.is_empty(), "nothing ends in {ending} in {folder}");
    found.sort();
    found
}

/// Every Rust file below a folder.
pub fn sources(folder: &str) -> Vec<Source> {
    files(folder, ".rs").iter().map(|path| Source::new(path, &text(path))).collect()
}

/// All Rust files of the workspace.
pub fn all_sources() -> Vec<Source> {
    let folders = ["src", "tests", "examples", "benches", "loom-tests", "shuttle-tests", "soak"];
    folders.into_iter().chain(["pointsman-macros", "pointsman-top"]).flat_map(sources).collect()
}

/// A snippet as if it were a file in `src`.
#[cfg(test)]
pub fn snippet(text: &str) -> Source {
    Source::new("src/snippet.rs", text)
}

#[test]
fn code_comments_and_strings_are_told_apart() {
    let source = snippet(
        "let a = \"unsafe { // }\"; // why\n/// doc\n/* block /* inner */ still */ b('\"', '\\'', 'x);\nr#\"raw \" \" \
         unsafe\nmore\"# + end",
    );
    let code: Vec<&str> = source.lines.iter().map(|line| line.code.trim()).collect();
    assert_eq!(code, ["let a = \"\";", "", "b('', '', 'x);", "\"", "\" + end"]);
    assert_eq!((source.lines[0].comment.as_str(), source.lines[0].is_doc), (" why", false));
    assert_eq!((source.lines[1].comment.as_str(), source.lines[1].is_doc), (" doc", true));
}

#[test]
fn unit_tests_are_left_out_and_what_is_only_there_for_them_is_not() {
    let source =
        snippet("a\n#[cfg(test)]\nfn for_tests() {}\nb\n#[cfg(all(test, not(x)))]\nmod tests {\nc\n}");
    assert_eq!(source.without_tests().len(), 4);
}
