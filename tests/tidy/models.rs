//! The files of models: each is a module of the binary that its folder is, which refuses to be built without loom,
//! names the faults that it was seen to catch, and has its models in the table. And each file with an ordering that can be
//! weakened has models that judge it.

use crate::report;
use crate::source::{Source, sources, text, top};
use std::collections::BTreeSet;

const TABLE: &str = "loom-tests/README.md";
const JUDGES: &str = "loom-tests/judges.txt";

/// Orderings that models can be asked about: each has a weaker one.
const WEAKENABLE: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

/// Files with orderings that no model has: a fence for the thread sanitizer, which is not there in models.
const NO_MODEL_HAS: [&str; 1] = ["src/sync/mod.rs"];

/// Words that a file names its planted faults with, in a comment.
const SAYS_SO: [&str; 6] =
    ["caught", "seen to fail", "seen to be caught", "seen to catch", "the mutation of", "planted"];

/// A model that is run.
pub struct Model {
    /// The name of the file.
    pub file: String,
    pub name: String,
}

/// The roots of the binaries, and the files of models.
fn roots_and_files() -> (Vec<Source>, Vec<Source>) {
    let mut files = sources("loom-tests/tests");
    files.retain(|source| !source.path.contains("/support/"));
    files.into_iter().partition(|source| source.path.ends_with("/main.rs"))
}

fn files() -> Vec<Source> {
    roots_and_files().1
}

/// All models of the tree.
pub fn all() -> Vec<Model> {
    let files = files();
    let of = |source: &Source| {
        let file = source.path.rsplit('/').next().unwrap_or_default().to_owned();
        let named = names(source).into_iter();
        named.map(|name| Model { file: file.clone(), name }).collect::<Vec<_>>()
    };
    files.iter().flat_map(of).collect()
}

/// The names of a file's models: the first argument of `model`, of a function that passes its own first one, `name`, on
/// to it, or what a variable of that name is set to.
fn names(source: &Source) -> BTreeSet<String> {
    let mut callees = vec!["model(".to_owned()];
    for line in &source.lines {
        if let Some((_, declared)) = line.code.split_once("fn ") {
            // The arguments may begin on the next line.
            let rest = &source.lines[line.number - 1..source.lines.len().min(line.number + 1)];
            let signature: String = rest.iter().map(|line| line.code.trim()).collect();
            let callee = crate::names::identifier(declared);
            if signature.contains("(name: &") {
                callees.push(format!("{callee}("));
            }
        }
    }
    let whole: String =
        source.lines.iter().filter(|line| !line.is_comment()).map(|line| line.whole.trim()).collect();
    let mut names = BTreeSet::new();
    for callee in &callees {
        for (at, _) in whole.match_indices(callee.as_str()) {
            let is_other = whole[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let literal =
                whole[at + callee.len()..].strip_prefix('"').and_then(|rest| rest.split('"').next());
            names.extend(literal.filter(|_| !is_other).map(str::to_owned));
        }
    }
    for (at, _) in whole.match_indices("let name = ") {
        let statement = whole[at..].split(';').next().unwrap_or_default();
        names.extend(statement.split('"').skip(1).step_by(2).map(str::to_owned));
    }
    names
}

fn unguarded(source: &Source) -> Vec<String> {
    let mut opens = source.lines.iter().filter(|line| !line.whole.trim().is_empty() && !line.is_comment());
    let guard =
        ["#[cfg(not(pointsman_loom))]", r#"compile_error!("models need the loom mirror: run cargo loom");"#];
    let guarded = guard.iter().all(|line| opens.next().is_some_and(|open| open.whole == *line));
    let todo = guard.join(" ");
    (!guarded)
        .then(|| source.fault(1, format_args!("does not open with its guard: {todo}")))
        .into_iter()
        .collect()
}

/// The files that no root declares, whose models would never run; and those with the name of another one, by which the
/// table knows them.
fn strays(roots: &[Source], files: &[Source]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut faults = Vec::new();
    for file in files {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or_default();
        let declared = format!("mod {};", name.trim_end_matches(".rs"));
        let mut of_folder = roots.iter().filter(|root| root.path == format!("{folder}/main.rs"));
        if !of_folder.any(|root| root.lines.iter().any(|line| line.whole == declared)) {
            faults.push(
                file.fault(1, format_args!("is in no binary: write `{declared}` into {folder}/main.rs")),
            );
        }
        if !taken.insert(name) {
            faults.push(file.fault(1, "has the name of another file of models: choose one of its own"));
        }
    }
    faults
}

fn names_no_mutation(source: &Source) -> Vec<String> {
    let says_so = source.lines.iter().any(|line| {
        let comment = line.comment.to_lowercase();
        SAYS_SO.iter().any(|words| comment.contains(words))
    });
    let todo = "plant one, see a model fail, and name both in its first comment";
    let fault = || source.fault(1, format_args!("names no fault that it was seen to catch: {todo}"));
    (!says_so).then(fault).into_iter().collect()
}

/// The models without a row in the table, and the rows without a model.
fn differences(models: &[Model], table: &str) -> Vec<String> {
    let listed: BTreeSet<(String, String)> = table
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            Some((cells.next()?.trim_end_matches('`').to_owned(), cells.next()?.to_owned()))
        })
        .collect();
    let written: BTreeSet<(String, String)> =
        models.iter().map(|model| (model.file.clone(), model.name.clone())).collect();
    let run = "run loom-tests/table";
    let missing = written
        .difference(&listed)
        .map(|(file, name)| format!("{TABLE}: no row for {name} of {file}: {run}"));
    let gone =
        listed.difference(&written).map(|(file, name)| format!("{TABLE}: {file} has no model {name}: {run}"));
    missing.chain(gone).collect()
}

/// The files with orderings that can be weakened and no judges, the rows for files that are not there, and the judges
/// that are not.
fn unjudged(sources: &[Source], judges: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let rows: Vec<(&str, &str)> = judges
        .lines()
        .filter(|line| line.starts_with("src/"))
        .filter_map(|line| line.split_once(':'))
        .map(|(path, judges)| (path, judges.trim()))
        .collect();
    let needs_judges = |source: &&Source| {
        let lines = source.without_tests();
        let can_be_weakened =
            |code: &str| WEAKENABLE.iter().any(|one| code.contains(&format!("Ordering::{one}")));
        lines.iter().any(|line| can_be_weakened(&line.code)) && !NO_MODEL_HAS.contains(&source.path.as_str())
    };
    let mut faults = Vec::new();
    for source in sources.iter().filter(needs_judges) {
        if !rows.iter().any(|(path, judges)| *path == source.path && !judges.is_empty()) {
            faults.push(format!(
                "{JUDGES}: no judges for {}: name the models that judge its orderings",
                source.path
            ));
        }
    }
    for (path, judges) in rows {
        if !exists(path) {
            faults.push(format!("{JUDGES}: there is no {path}: take its row out"));
        }
        for judge in judges.split_whitespace() {
            if !exists(&format!("loom-tests/tests/{}.rs", judge.replace("::", "/"))) {
                faults
                    .push(format!("{JUDGES}: there is no file of models {judge}, which is to judge {path}"));
            }
        }
    }
    faults
}

#[test]
fn models_refuse_to_be_built_without_loom() {
    report(&roots_and_files().0.iter().flat_map(unguarded).collect::<Vec<_>>());
}

#[test]
fn each_file_of_models_is_in_a_binary() {
    let (roots, files) = roots_and_files();
    report(&strays(&roots, &files));
}

#[test]
fn each_file_of_models_names_the_mutations_that_it_caught() {
    report(&files().iter().flat_map(names_no_mutation).collect::<Vec<_>>());
}

#[test]
fn each_model_is_in_the_table() {
    report(&differences(&all(), &text(TABLE)));
}

#[test]
fn each_file_with_orderings_has_judges() {
    let mut all = sources("src");
    all.retain(|source| !source.is_tests());
    report(&unjudged(&all, &text(JUDGES), |path| top().join(path).exists()));
}

#[test]
fn files_of_models_without_guard_or_mutation_are_found() {
    let good = "//! Caught: a lost wake.\n\n#[cfg(not(pointsman_loom))]\ncompile_error!(\"models need the loom mirror: run \
                cargo loom\");\n\nmod support;";
    let good = crate::source::snippet(good);
    assert!(unguarded(&good).is_empty() && names_no_mutation(&good).is_empty());
    // `default` has a fault in it.
    let bad = crate::source::snippet("//! Models.\n#[derive(Default)]\nstruct Caught;");
    assert!(!unguarded(&bad).is_empty() && !names_no_mutation(&bad).is_empty());
}

#[test]
fn files_of_models_that_are_in_no_binary_are_found() {
    let file = |path| Source::new(path, "");
    let root = |path| Source::new(path, "mod one;\n// mod two;\n");
    let roots = [root("a/main.rs"), root("b/main.rs")];
    assert!(strays(&roots, &[file("a/one.rs")]).is_empty());
    let faults = strays(&roots, &["a/two.rs", "c/one.rs"].map(file));
    assert!(faults.len() == 2 && faults.iter().all(|fault| fault.contains("in no binary")), "{faults:?}");
    let faults = strays(&roots, &["a/one.rs", "b/one.rs"].map(file));
    assert!(faults.len() == 1 && faults[0].contains("another file"), "{faults:?}");
}

#[test]
fn names_of_models_are_found_wherever_they_come_from() {
    let source = crate::source::snippet(
        "fn a() {\n model(\"one\", 1, || ());\n model(\n  \"two\",\n 2);\n must_fail(\"no\", 1);\n // model(\"no\")\n}\n\
         fn each(name: &str, n: u8) {\n model(name, n);\n}\nfn b() {\n each(\"three\", 3);\n let name = if a { \"four\" } \
         else { \"five\" };\n model(name);\n system(\"no\");\n}",
    );
    let found: Vec<String> = names(&source).into_iter().collect();
    assert_eq!(found, ["five", "four", "one", "three", "two"]);
}

#[test]
fn a_table_that_does_not_have_the_models_is_found() {
    let model = |name: &str| Model { file: "a.rs".to_owned(), name: name.to_owned() };
    let table = "| file | model |\n|---|---|\n| `a.rs` | one | 3 |\n";
    assert!(differences(&[model("one")], table).is_empty());
    let faults = differences(&[model("two")], table);
    assert!(
        faults.len() == 2 && faults.iter().all(|fault| fault.ends_with("run loom-tests/table")),
        "{faults:?}"
    );
}

#[test]
fn files_that_nobody_judges_and_judges_that_are_not_there_are_found() {
    let sources = [crate::source::snippet("a.load(Ordering::Acquire);")];
    let exists = |path: &str| ["src/snippet.rs", "loom-tests/tests/a/b.rs"].contains(&path);
    assert_eq!(unjudged(&sources, "# A comment.\nsrc/snippet.rs: a::b\n", exists), [""; 0]);
    let relaxed = [crate::source::snippet("a.load(Ordering::Relaxed); // Ordering::Acquire")];
    assert_eq!(unjudged(&relaxed, "", exists), [""; 0]);
    for bad in ["", "src/snippet.rs:", "miri src/snippet.rs: a::b", "src/snippet.rs: a::c"] {
        assert_eq!(unjudged(&sources, bad, exists).len(), 1, "{bad}");
    }
    assert_eq!(unjudged(&relaxed, "src/gone.rs: a::b", exists).len(), 1);
}
