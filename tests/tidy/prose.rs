//! The prose of comments and of commit subjects.
//!
//! A sentence of the documentation begins with a noun and a verb, and a comment names a person or a thread by its role.
//! Older comments do not keep this yet, so each folder has a maximum, which may only be lowered.

use crate::report;
use crate::source::{Source, sources, top};
use std::collections::BTreeMap;
use std::process::Command;

/// The largest numbers of a folder: doc sentences that begin badly, and words for unnamed persons. A folder
/// that is not listed has 0 of both. These numbers may only be lowered.
const MAXIMA: [(&str, usize, usize); 0] = [];

/// The words that no doc sentence begins with, alone or with the word behind them.
const OPENINGS: [&str; 6] = ["What", "Who", "Whoever", "Whatever", "That of", "Those who"];

/// The words for persons without a role.
const PERSONS: [&str; 4] = ["nobody", "somebody", "whoever", "anybody"];

/// The last commit whose subject is not checked.
const CHECKED_AFTER: &str = "57c6c8c";

/// The longest subject of a commit.
const SUBJECT_MAX: usize = 72;

/// A place in a file, and the words there.
struct Finding {
    folder: String,
    text: String,
}

/// The sources of the libraries.
fn libraries() -> Vec<Source> {
    let folders = ["src", "pointsman-macros/src", "pointsman-nats/src", "pointsman-top/src"];
    folders.into_iter().flat_map(sources).collect()
}

/// The folder of a file below `src`; files at the top are in `src` itself.
fn folder(path: &str) -> String {
    let mut parts = path.split('/');
    let (top, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    match (second, third) {
        (Some(second), Some(_)) => format!("{top}/{second}"),
        _ => top.to_owned(),
    }
}

fn finding(source: &Source, number: usize, text: &str) -> Finding {
    Finding { folder: folder(&source.path), text: format!("{}:{number}: {text}", source.path) }
}

/// A word of the documentation.
struct Word<'s> {
    line: usize,
    text: &'s str,
    begins_sentence: bool,
}

/// The words of the doc comments of a file, without headings, tables and examples.
fn doc_words(source: &Source) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let (mut begins_sentence, mut is_example) = (true, false);
    for line in &source.lines {
        let text = line.comment.trim();
        if !line.is_doc || text.is_empty() || text.starts_with(['|', '#']) || text.starts_with("```") {
            begins_sentence = true;
            is_example = line.is_doc && (is_example != text.starts_with("```"));
            continue;
        }
        if is_example {
            continue;
        }
        for text in text.split_whitespace() {
            let is_marker = matches!(text, "-" | "*") || text.trim_end_matches('.').parse::<u32>().is_ok();
            if is_marker {
                begins_sentence = true;
                continue;
            }
            words.push(Word { line: line.number, text, begins_sentence });
            begins_sentence = text.trim_end_matches([')', '*', '_', '"']).ends_with(['.', '?', '!']);
        }
    }
    words
}

/// The doc sentences that begin with one of [`OPENINGS`].
fn openings(source: &Source) -> Vec<Finding> {
    let words = doc_words(source);
    let bare = |at: usize| {
        let word = words.get(at).map_or("", |word| word.text);
        word.trim_matches(|c: char| !c.is_alphanumeric())
    };
    let begins_badly = |at: &usize| {
        words[*at].begins_sentence
            && OPENINGS.iter().any(|opening| match opening.split_once(' ') {
                Some((first, second)) => bare(*at) == first && bare(*at + 1) == second,
                None => bare(*at) == *opening,
            })
    };
    let found = (0..words.len()).filter(begins_badly);
    found
        .map(|at| {
            let sentence: Vec<&str> = words[at..].iter().take(8).map(|word| word.text).collect();
            finding(source, words[at].line, &sentence.join(" "))
        })
        .collect()
}

/// The words of [`PERSONS`] in the comments of a file.
fn persons(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in &source.lines {
        for word in line.comment.split(|c: char| !c.is_alphanumeric() && c != '_') {
            if PERSONS.iter().any(|person| word.eq_ignore_ascii_case(person)) {
                found.push(finding(source, line.number, word));
            }
        }
    }
    found
}

/// The folders with more findings than their maximum. `rule` says how to write instead.
fn exceeded(found: Vec<Finding>, maximum: impl Fn(&str) -> usize, rule: &str) -> Vec<String> {
    let mut by_folder: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in found {
        by_folder.entry(finding.folder).or_default().push(finding.text);
    }
    let too_many = by_folder.into_iter().filter(|(folder, places)| places.len() > maximum(folder));
    too_many
        .map(|(folder, places)| {
            let (count, maximum) = (places.len(), maximum(&folder));
            let places = places.join("\n    ");
            format!(
                "{folder}: {count} where `MAXIMA` in tests/tidy/prose.rs allows {maximum}, which may only be lowered. \
                 {rule} The places:\n    {places}"
            )
        })
        .collect()
}

/// The maximum of a folder, by a column of [`MAXIMA`].
fn maximum(folder: &str, column: impl Fn(&(&str, usize, usize)) -> usize) -> usize {
    MAXIMA.iter().find(|(listed, ..)| *listed == folder).map_or(0, column)
}

/// The fault of a commit's subject, which is to be `area: imperative`.
fn subject_fault(subject: &str) -> Option<&'static str> {
    let length = subject.chars().count();
    let Some((area, rest)) = subject.split_once(": ") else {
        return Some("begin it with an area and a colon, as in `routing: refuse empty pools`");
    };
    let is_area = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/.".contains(c);
    let verb = rest.split_whitespace().next().unwrap_or_default();
    // A few verbs end as participles do.
    let is_bare =
        ["need", "feed", "seed", "speed", "embed", "shed", "bring", "ping", "string"].contains(&verb);
    if area.is_empty() || !area.chars().all(is_area) {
        Some("let the area be a single word in small letters")
    } else if !verb.starts_with(|c: char| c.is_lowercase()) {
        Some("put a verb in small letters behind the area")
    } else if !is_bare && (verb.ends_with("ed") || verb.ends_with("ing")) {
        Some("use the imperative behind the area: `add`, not `added` or `adding`")
    } else if rest.ends_with('.') {
        Some("leave the full stop out")
    } else if length > SUBJECT_MAX {
        Some("shorten it to at most 72 characters")
    } else {
        None
    }
}

/// The subjects of the commits to be checked; `None` without git or without the first of these commits, as in a package
/// or in a shallow clone.
fn subjects() -> Option<Vec<String>> {
    let range = format!("{CHECKED_AFTER}..HEAD");
    let log = Command::new("git")
        .current_dir(top())
        .args(["log", "--no-merges", "--format=%h %s", &range, "--"])
        .output()
        .ok()?;
    let text = String::from_utf8(log.stdout).ok()?;
    log.status.success().then(|| text.lines().map(str::to_owned).collect())
}

#[test]
fn doc_sentences_begin_with_a_noun_and_a_verb() {
    let found = libraries().iter().flat_map(openings).collect();
    let rule = "Begin each sentence with a noun and a verb instead of What, Who, Whoever, Whatever, That of or \
                Those who.";
    report(&exceeded(found, |folder| maximum(folder, |(_, openings, _)| *openings), rule));
}

#[test]
fn comments_name_roles() {
    let found = libraries().iter().flat_map(persons).collect();
    let rule =
        "Name the role (the sender, the owner, the caller) instead of nobody, somebody, whoever or anybody.";
    report(&exceeded(found, |folder| maximum(folder, |(.., persons)| *persons), rule));
}

#[test]
fn commit_subjects_have_an_area_and_an_imperative() {
    let Some(subjects) = subjects() else { return };
    let judged = subjects.iter().filter_map(|line| {
        let (commit, subject) = line.split_once(' ')?;
        subject_fault(subject).map(|fault| format!("commit {commit}: {subject:?}: {fault}"))
    });
    report(&judged.collect::<Vec<_>>());
}

#[test]
fn sentences_that_begin_badly_are_counted() {
    let text = "//! What it is.\n//!\n//! Who\n//! waits. See what waits. (Whatever) comes.\n\n\
                /// - That of\n///   the head. That which\n/// ```\n/// What();\n/// ```\n\
                /// # What now\n/// | What | Who |\n/// It is. Those\n/// who wait. Those that wait.\n\
                // What is no documentation.\nlet text = \"/// What\";";
    let source = Source::new("src/routing/snippet.rs", text);
    let found: Vec<String> = openings(&source).into_iter().map(|finding| finding.text).collect();
    let lines: Vec<&str> = found.iter().filter_map(|text| text.split(':').nth(1)).collect();
    assert_eq!(lines, ["1", "3", "4", "6", "13"], "{found:?}");
}

#[test]
fn words_for_persons_are_counted_in_all_comments() {
    let text = "/// Nobody waits, and somebody's turn comes.\nlet nobody = \"whoever\"; // for whoever waits\n\
                // The name is nobody_took. Everybody waits, but not anybody.";
    let found = persons(&Source::new("src/lib.rs", text));
    let found: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
    let expected =
        ["src/lib.rs:1: Nobody", "src/lib.rs:1: somebody", "src/lib.rs:2: whoever", "src/lib.rs:3: anybody"];
    assert_eq!(found, expected);
}

#[test]
fn folders_are_told_apart() {
    assert_eq!(folder("src/routing/logics/random.rs"), "src/routing");
    assert_eq!(folder("src/routing/router.rs"), "src/routing");
    assert_eq!(folder("src/system.rs"), "src");
}

#[test]
fn a_folder_beyond_its_maximum_is_reported_with_its_places() {
    let sources = [
        Source::new("src/a/one.rs", "// For whoever\n// and nobody."),
        Source::new("src/a/two.rs", "// For whoever."),
        Source::new("src/b/one.rs", "// For whoever."),
    ];
    let found = || sources.iter().flat_map(persons).collect::<Vec<_>>();
    assert_eq!(exceeded(found(), |folder| if folder == "src/a" { 3 } else { 1 }, "Name it."), [""; 0]);
    let faults = exceeded(found(), |folder| if folder == "src/a" { 2 } else { 1 }, "Name it.");
    let expected = "src/a: 3 where `MAXIMA` in tests/tidy/prose.rs allows 2, which may only be lowered. Name it. The \
                    places:\n    src/a/one.rs:1: whoever\n    src/a/one.rs:2: nobody\n    src/a/two.rs:1: whoever";
    assert_eq!(faults, [expected]);
}

#[test]
fn subjects_without_the_form_are_found() {
    let long = format!("docs: say {}", "a".repeat(62));
    for good in ["routing: refuse empty pools", "loom-tests: bring back a model", "v0.1: a", &long] {
        assert_eq!(subject_fault(good), None, "{good}");
    }
    let longer = format!("{long}a");
    for bad in [
        "refuse empty pools",
        "Routing: refuse",
        "two words: refuse",
        ": refuse",
        "routing: Refuse",
        "routing: refused empty pools",
        "routing: refusing empty pools",
        "routing: refuse empty pools.",
        "routing: ",
        &longer,
    ] {
        assert!(subject_fault(bad).is_some(), "{bad}");
    }
}
