//! Errors show their sentence by `Debug`, too, so that `unwrap` and `main` print it.

use crate::report;
use crate::source::{Source, sources};

/// The name of the type that a line makes an error.
fn error_of(code: &str) -> Option<&str> {
    let (head, rest) = code.split_once("Error for ")?;
    let is_of_std = ["std::error::", "error::", " "].iter().any(|path| head.ends_with(path));
    if !head.starts_with("impl") || !is_of_std {
        return None;
    }
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!name.is_empty()).then_some(name)
}

/// The error types of a file whose `Debug` is not that of their sentence.
fn silent_errors(source: &Source) -> Vec<String> {
    let lines = source.without_tests();
    // An error with a parameter that need not be an error writes its sentence by hand.
    let shows = |name: &str| {
        let by_hand = format!(" fmt::Debug for {name}<");
        lines.iter().any(|line| {
            let told = line.code.strip_prefix("debug_by_display! { ");
            told.is_some_and(|rest| rest.split([' ', '<']).next() == Some(name))
                || line.code.contains(&by_hand)
        })
    };
    let silent = lines.iter().filter_map(|line| Some((line.number, error_of(&line.code)?)));
    let silent = silent.filter(|(_, name)| !shows(name));
    silent
        .map(|(number, name)| {
            source.fault(number, format_args!("`{name}` is an error: say `debug_by_display! {{ {name} }}`"))
        })
        .collect()
}

#[test]
fn errors_show_their_sentence() {
    let sources = sources("src");
    let count = sources
        .iter()
        .flat_map(|source| source.without_tests())
        .filter(|line| error_of(&line.code).is_some());
    assert!(count.count() >= 27, "the errors are not found any more");
    report(&sources.iter().flat_map(silent_errors).collect::<Vec<_>>());
}

#[test]
fn errors_without_a_sentence_are_found() {
    let source = Source::new(
        "src/snippet.rs",
        "impl std::error::Error for A {}\ndebug_by_display! { A }\nimpl<M> std::error::Error for B<M> {\n}\n\
         debug_by_display! { B<M> }\nimpl Error for Other {}\nimpl fmt::Display for Error {}",
    );
    let faults = silent_errors(&source);
    assert!(faults.len() == 1 && faults[0].contains("`Other`"), "{faults:?}");
}
