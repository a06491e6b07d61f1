//! `UNSAFE.md` lists all unsafe code of the library, and names only checks that exist.

use crate::models;
use crate::names::{Names, identifier};
use crate::report;
use crate::source::{self, Source, all_sources, sources};
use std::collections::{BTreeMap, BTreeSet};

const LIST: &str = "UNSAFE.md";

/// What is unsafe in an item.
#[derive(Default, Debug, PartialEq, Clone)]
struct Amount {
    is_fn: bool,
    is_impl: bool,
    blocks: usize,
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.is_fn.then(|| "fn".to_owned()));
        parts.extend(self.is_impl.then(|| "impl".to_owned()));
        parts.extend((self.blocks > 0).then(|| self.blocks.to_string()));
        f.write_str(&parts.join(" + "))
    }
}

/// What a brace closes.
enum Scope {
    Function(String),
    Type(String),
    Other,
}

/// The items of a file that have unsafe code, by their names: `function`, `Type::function`, `Trait for Type`.
fn items(source: &Source) -> BTreeMap<String, Amount> {
    let tokens = tokens(source);
    let mut found: BTreeMap<String, Amount> = BTreeMap::new();
    let mut scopes: Vec<Scope> = Vec::new();
    let mut next = None;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| &tokens[before]);
        let behind = |distance: usize| tokens.get(at + distance).map_or("", String::as_str);
        match token.as_str() {
            "fn" if behind(1) != "(" => next = Some(Scope::Function(behind(1).to_owned())),
            "impl" if ["", "}", ";", "{", "]", "unsafe"].contains(&before) => {
                next = Some(Scope::Type(implemented(&tokens[at..]).1));
            }
            "trait" | "mod" => next = Some(Scope::Type(behind(1).to_owned())),
            "{" => scopes.push(next.take().unwrap_or(Scope::Other)),
            "}" => drop(scopes.pop()),
            ";" => next = None,
            "unsafe" => match behind(1) {
                "{" => found.entry(item(&scopes)).or_default().blocks += 1,
                "impl" => {
                    let (of, name) = implemented(&tokens[at + 1..]);
                    found.entry(format!("{} for {name}", of.unwrap_or_default())).or_default().is_impl = true;
                }
                "fn" if behind(2) != "(" => {
                    scopes.push(Scope::Function(behind(2).to_owned()));
                    found.entry(item(&scopes)).or_default().is_fn = true;
                    scopes.pop();
                }
                _ => {}
            },
            _ => {}
        }
    }
    found
}

/// The trait and the type of an implementation that begins here.
fn implemented(tokens: &[String]) -> (Option<String>, String) {
    let mut depth = 0;
    let (mut of, mut name) = (None, String::new());
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match token.as_str() {
            "<" => depth += 1,
            ">" if tokens[at - 1] != "-" => depth -= 1,
            "{" | "where" if depth == 0 => break,
            "for" if depth == 0 => of = Some(std::mem::take(&mut name)),
            word if depth == 0 && !identifier(word).is_empty() => name = word.to_owned(),
            _ => {}
        }
    }
    (of, name)
}

/// The name of the innermost function, with its type's.
fn item(scopes: &[Scope]) -> String {
    let mut name = None;
    for scope in scopes.iter().rev() {
        match (scope, &name) {
            (Scope::Function(function), None) => name = Some(function.clone()),
            (Scope::Type(of), Some(function)) if of.starts_with(char::is_uppercase) => {
                return format!("{of}::{function}");
            }
            (Scope::Type(of), None) => return of.clone(),
            _ => {}
        }
    }
    name.unwrap_or_else(|| "top".to_owned())
}

/// Words, and other characters one by one.
fn tokens(source: &Source) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for line in source.without_tests() {
        let mut in_word = false;
        for c in line.code.chars() {
            let is_word = c.is_alphanumeric() || c == '_';
            match tokens.last_mut() {
                Some(word) if is_word && in_word => word.push(c),
                _ if !c.is_whitespace() => tokens.push(c.to_string()),
                _ => {}
            }
            in_word = is_word;
        }
    }
    tokens
}

/// A row of the list.
struct Row<'t> {
    number: usize,
    file: &'t str,
    item: &'t str,
    amount: &'t str,
    why: &'t str,
    checks: &'t str,
}

/// The rows below the headings that name files.
fn rows(list: &str) -> Vec<Row<'_>> {
    let mut file = "";
    let mut rows = Vec::new();
    for (at, line) in list.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            file = heading.trim_matches('`');
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let ([item, amount, why, checks], true) =
            (&cells[..], line.starts_with("| `") && file.ends_with(".rs"))
        {
            rows.push(Row { number: at + 1, file, item: item.trim_matches('`'), amount, why, checks });
        }
    }
    rows
}

fn incomplete(list: &str, sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rows: BTreeMap<(String, String), Row<'_>> =
        rows(list).into_iter().map(|row| ((row.file.to_owned(), row.item.to_owned()), row)).collect();
    for source in sources {
        for (item, amount) in items(source) {
            match rows.remove(&(source.path.clone(), item.clone())) {
                None => faults.push(format!(
                    "{LIST}: no row for {}: write | `{item}` | {amount} | what it rests on | who checks it |",
                    source.path
                )),
                Some(row) if row.amount != amount.to_string() => faults.push(format!(
                    "{LIST}:{}: `{item}` of {} has {amount}, not {}: look at what has changed, and write the new number",
                    row.number, source.path, row.amount
                )),
                Some(row) if row.why.is_empty() || row.checks.is_empty() => faults.push(format!(
                    "{LIST}:{}: `{item}`: say what it rests on and who checks it; if nobody does: nobody",
                    row.number
                )),
                Some(_) => {}
            }
        }
    }
    faults.extend(rows.into_values().map(|row| {
        format!(
            "{LIST}:{}: nothing is unsafe in `{}` of {}: take the row out",
            row.number, row.item, row.file
        )
    }));
    faults
}

/// The checks that are named in the last column and are no model, no function and no file.
fn unknown_checks(list: &str, known: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for row in rows(list) {
        for name in row.checks.split('`').skip(1).step_by(2).filter(|name| !known(name)) {
            faults.push(format!(
                "{LIST}:{}: there is no check `{name}`: name a model, a test or a file",
                row.number
            ));
        }
    }
    faults
}

#[test]
fn all_unsafe_code_is_listed() {
    let mut sources = sources("src");
    sources.retain(|source| !source.is_tests());
    report(&incomplete(&source::text(LIST), &sources));
}

#[test]
fn the_checks_of_unsafe_code_exist() {
    let sources = all_sources();
    let names = Names::of(&sources);
    let models: BTreeSet<String> = models::all().into_iter().map(|model| model.name).collect();
    let known = |name: &str| {
        models.contains(name)
            || source::top().join(name).exists()
            || sources.iter().any(|source| names.has(&source.path, name))
    };
    report(&unknown_checks(&source::text(LIST), known));
}

#[test]
fn unsafe_items_are_found_by_their_names() {
    let source = source::snippet(
        "unsafe impl<M: Send> Send for Slot<M> {}\nimpl<M> Drop for Slot<M> {\n fn drop(&mut self) {\n unsafe { a() };\n \
         unsafe { b() };\n }\n}\nmod cache {\n pub unsafe fn put(f: unsafe fn(u8)) {}\n}\nfn c(f: impl Fn() -> u8) { d(|| \
         unsafe { e() }) }\n#[cfg(test)]\nmod tests {\n fn f() { unsafe { g() } }\n}",
    );
    let found: Vec<String> =
        items(&source).iter().map(|(item, amount)| format!("{item}: {amount}")).collect();
    assert_eq!(found, ["Send for Slot: impl", "Slot::drop: 2", "c: 1", "put: fn"]);
}

#[test]
fn what_the_list_lacks_and_what_it_has_too_much_is_found() {
    let sources = [source::snippet("fn a() { unsafe { b() } }\nfn c() { unsafe { d() } }")];
    let list = |rows: &str| {
        format!("# Unsafe\n\n## `src/snippet.rs`\n\n| item | unsafe | rests on | checked by |\n{rows}")
    };
    let good = list("| `a` | 1 | a reference | `look` and nobody |\n| `c` | 1 | a lock | nobody |\n");
    assert_eq!(incomplete(&good, &sources), [""; 0]);
    assert_eq!(unknown_checks(&good, |name| name == "look"), [""; 0]);
    assert_eq!(unknown_checks(&good, |_| false).len(), 1);
    for bad in [
        "| `a` | 1 | a reference | nobody |\n",
        "| `a` | 2 | a reference | nobody |\n| `c` | 1 | a lock | nobody |\n",
        "| `a` | 1 | a reference | nobody |\n| `c` | 1 | a lock | nobody |\n| `d` | 1 | a lock | nobody |\n",
        "| `a` | 1 | | nobody |\n| `c` | 1 | a lock | nobody |\n",
    ] {
        assert_eq!(incomplete(&list(bad), &sources).len(), 1, "{bad}");
    }
}
