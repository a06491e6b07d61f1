//! What is defined where, so that names in comments can be looked up.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// The names that the files of a tree define: functions, types, traits, modules, constants, macros and fields.
#[derive(Default)]
pub struct Names {
    by_file: BTreeMap<String, BTreeSet<String>>,
    /// The files that define a type or a trait, or implement something for it.
    homes: BTreeMap<String, BTreeSet<String>>,
}

const BEFORE_A_NAME: [&str; 10] =
    ["fn", "struct", "enum", "union", "trait", "type", "static", "const", "mod", "macro_rules!"];

impl Names {
    pub fn of(sources: &[Source]) -> Self {
        let mut names = Self::default();
        for source in sources {
            let mut defined = BTreeSet::new();
            for line in &source.lines {
                let words: Vec<&str> = line.code.split_whitespace().collect();
                for pair in words.windows(2) {
                    if BEFORE_A_NAME.contains(&pair[0]) {
                        defined.insert(identifier(pair[1]).to_owned());
                    }
                }
                defined.extend(field(&line.code).map(str::to_owned));
                if words.first().is_some_and(|word| word.starts_with("impl") || *word == "unsafe") {
                    for name in line.code.split(|c: char| !is_of_name(c)) {
                        names.homes.entry(name.to_owned()).or_default().insert(source.path.clone());
                    }
                }
            }
            for name in &defined {
                names.homes.entry(name.clone()).or_default().insert(source.path.clone());
            }
            names.by_file.insert(source.path.clone(), defined);
        }
        names
    }

    /// Whether a comment in this file may call something by this name: a name alone is of the same file or, in a
    /// module with a folder, of another file there; and a path (`Type::function`, `module::function`) of a file that
    /// has both. A file is told by its name.
    pub fn has(&self, path: &str, name: &str) -> bool {
        let name = name.trim_end_matches("()");
        if name.ends_with(".rs") {
            return self.by_file.keys().any(|file| file == name || file.ends_with(&format!("/{name}")));
        }
        let Some((before, last)) = name.rsplit_once("::") else {
            let last = name.rsplit('.').next().unwrap_or(name);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let mut siblings =
                self.by_file.keys().filter(|file| file.rsplit_once('/').is_some_and(|(of, _)| of == folder));
            return self.defines(path, last)
                || folder != "src" && siblings.any(|file| self.defines(file, last));
        };
        let owner = before.rsplit("::").next().unwrap_or(before);
        let homes = self.homes.get(owner).into_iter().flatten();
        let modules = self.by_file.keys().filter(|file| {
            file.ends_with(&format!("/{owner}.rs")) || file.ends_with(&format!("/{owner}/mod.rs"))
        });
        homes.chain(modules).any(|file| self.defines(file, last))
    }

    /// Whether this file defines the name.
    pub fn defines(&self, path: &str, name: &str) -> bool {
        self.by_file.get(path).is_some_and(|defined| defined.contains(name))
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The name that a word begins with.
pub fn identifier(word: &str) -> &str {
    word.split(|c: char| !is_of_name(c)).next().unwrap_or_default()
}

/// The field that a line declares.
fn field(code: &str) -> Option<&str> {
    let code = code.trim_start();
    let code = match code.strip_prefix("pub(") {
        Some(rest) => rest.split_once(')')?.1.trim_start(),
        None => code.strip_prefix("pub ").unwrap_or(code),
    };
    let name = identifier(code);
    let rest = &code[name.len()..];
    (!name.is_empty() && rest.starts_with(": ")).then_some(name)
}

#[test]
fn names_are_looked_up_where_they_can_be_meant() {
    use crate::source::Source;
    let sources = [
        Source::new(
            "src/gate.rs",
            "pub struct Gate {\n    pub(super) head: u64,\n}\nimpl Gate {\n    fn len(&self) {}\n}",
        ),
        Source::new("src/queue/mod.rs", "fn push() {}"),
        Source::new("src/queue/block.rs", "static NEXT: u8 = 0;"),
    ];
    let names = Names::of(&sources);
    for good in [
        "len",
        "len()",
        "self.head",
        "Gate::len",
        "crate::gate::Gate::len",
        "gate::len",
        "queue::push",
        "gate.rs",
    ] {
        assert!(names.has("src/gate.rs", good), "{good}");
    }
    assert!(names.has("src/queue/mod.rs", "NEXT") && !names.has("src/gate.rs", "NEXT"));
    for bad in ["push", "Gate::push", "Queue::push", "take", "door.rs", "queue::len"] {
        assert!(!names.has("src/gate.rs", bad), "{bad}");
    }
}
