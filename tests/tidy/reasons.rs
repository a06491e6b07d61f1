//! No leftovers, and a reason for each exception.

use crate::report;
use crate::source::{Source, all_sources};

fn leftovers(source: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    for line in &source.lines {
        for (mark, todo) in [
            ("todo!", "write it"),
            ("unimplemented!", "write it"),
            ("dbg!", "take it out"),
            ("#[ignore]", "say why: `#[ignore = \"…\"]`"),
        ] {
            if line.code.contains(mark) {
                faults.push(source.fault(line.number, format_args!("`{mark}`: {todo}")));
            }
        }
    }
    faults
}

/// An exception from a lint has its reason as `reason = "…"`, in a comment on its line, or in one on the line above,
/// which may be that of the exception before.
fn exceptions(source: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    let mut explained = false;
    for line in &source.lines {
        let is_one = ["allow(", "expect("].iter().any(|kind| {
            line.is_attribute() && line.code.contains(&format!("[{kind}"))
                || line.code.contains(&format!(", {kind}lint"))
        }) || line
            .code
            .split_once("(#[")
            .is_some_and(|(_, rest)| rest.starts_with("allow(") || rest.starts_with("expect("));
        let has_own = !line.comment.is_empty() && !line.is_doc || line.code.contains("reason =");
        if is_one && !has_own && !explained {
            let todo = "say why, in a comment on its line or above";
            faults.push(
                source.fault(line.number, format_args!("an exception from a lint without a reason: {todo}")),
            );
        }
        explained = has_own || (explained && is_one);
    }
    faults
}

#[test]
fn nothing_is_left_over() {
    report(&all_sources().iter().flat_map(leftovers).collect::<Vec<_>>());
}

#[test]
fn each_exception_from_a_lint_has_a_reason() {
    report(&all_sources().iter().flat_map(exceptions).collect::<Vec<_>>());
}

#[test]
fn leftovers_are_found() {
    let good = "// todo!()\n\"dbg!\";\n#[ignore = \"takes an hour\"]\nfn a() {}";
    assert!(leftovers(&crate::source::snippet(good)).is_empty());
    // Written so that this file has none.
    for bad in [concat!("todo", "!()"), concat!("dbg", "!(a)"), concat!("unimplemented", "!()"), "#[ignore]"]
    {
        assert_eq!(leftovers(&crate::source::snippet(bad)).len(), 1, "{bad}");
    }
}

#[test]
fn exceptions_without_reasons_are_found() {
    let good = "#[allow(dead_code)] // used by models\nfn a() {}\n// Part of an interface.\n#[allow(b)]\n#[expect(c)]\nmod d;\n\
                #[expect(e, reason = \"f\")]\nstruct G(#[allow(h)] u8); // kept alive";
    assert_eq!(exceptions(&crate::source::snippet(good)), [""; 0]);
    for bad in [
        "#[allow(dead_code)]\nfn a() {}",
        "/// Doc.\n#[expect(b)]\nc",
        "struct G(#[allow(h)] u8);",
        "#![allow(b)]",
    ] {
        assert_eq!(exceptions(&crate::source::snippet(bad)).len(), 1, "{bad}");
    }
}
