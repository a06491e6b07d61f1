//! Every `unsafe` has its argument. A lint asks the same of what the compiler sees; this looks at all configurations.

use crate::report;
use crate::source::{Line, Source, all_sources};

/// How far above an `unsafe` its argument may begin: a statement may run over some lines, and so may the argument.
const REACH: usize = 10;

fn without_argument(source: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, line) in source.lines.iter().enumerate() {
        for (start, _) in line.code.match_indices("unsafe") {
            let before = line.code[..start].chars().next_back();
            let rest = &line.code[start + "unsafe".len()..];
            let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
            let is_part = before.is_some_and(is_of_name) || rest.starts_with(is_of_name);
            let rest = rest.trim_start();
            // Types of functions and modules of that name promise nothing.
            if is_part || rest.starts_with("fn(") {
                continue;
            }
            let declares = ["fn ", "trait ", "extern \"\" fn "].iter().any(|word| rest.starts_with(word));
            if declares && !has_contract(&source.lines[..at]) && !is_of_a_trait(source, at) {
                let todo = "say in its documentation, under `# Safety`, what the caller promises";
                faults.push(
                    source.fault(line.number, format_args!("unsafe function without a contract: {todo}")),
                );
            } else if !declares && !has_argument(&source.lines[..=at]) {
                let todo = "say above it `// SAFETY:` why it is right";
                faults.push(source.fault(line.number, format_args!("unsafe without an argument: {todo}")));
            }
        }
    }
    faults
}

/// Whether the documentation that ends here tells what callers promise.
fn has_contract(lines: &[Line]) -> bool {
    let belongs = lines.iter().rev().take_while(|line| line.is_comment() || line.is_attribute());
    belongs.into_iter().any(|line| line.comment.contains("# Safety"))
}

/// Whether it is an implementation of a foreign trait, whose contract stands there.
fn is_of_a_trait(source: &Source, at: usize) -> bool {
    let indent = |line: &Line| line.code.len() - line.code.trim_start().len();
    let depth = indent(&source.lines[at]);
    let outer =
        source.lines[..at].iter().rev().find(|line| !line.code.trim().is_empty() && indent(line) < depth);
    outer.is_some_and(|line| line.code.contains("unsafe impl"))
}

/// Whether an argument stands at the end of these lines, with words behind its mark, or one that holds for several.
fn has_argument(lines: &[Line]) -> bool {
    let near = lines.iter().rev().take(REACH).find(|line| line.comment.contains("SAFETY:"));
    near.and_then(|line| line.comment.split_once("SAFETY:")).is_some_and(|(_, said)| said.trim().len() > 3)
}

#[test]
fn each_unsafe_has_its_argument() {
    report(&all_sources().iter().flat_map(without_argument).collect::<Vec<_>>());
}

#[test]
fn an_unsafe_without_an_argument_is_found() {
    let good = "// SAFETY: it is alive.\nlet a = unsafe { &*b };\n/// # Safety\n///\n/// Alive.\n#[inline]\npub unsafe fn c() {}\n\
                struct D(unsafe fn(u8));\n// unsafe {\n\"unsafe {\";\nlet is_unsafe = 1;\n\
                // SAFETY: nothing is shared.\nunsafe impl Send for D {}";
    assert_eq!(without_argument(&crate::source::snippet(good)), [""; 0]);
    for bad in [
        "let a = unsafe { &*b };",
        "// SAFETY:\nunsafe { a() };",
        "/// Does it.\nunsafe fn a() {}",
        "unsafe impl Send for D {}",
    ] {
        assert_eq!(without_argument(&crate::source::snippet(bad)).len(), 1, "{bad}");
    }
}
