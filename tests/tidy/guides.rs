//! The guides are written once, for the documentation of the crate, and generated from that for other viewers.
//!
//! A file in `src/guide` is what rustdoc includes. The file of its name in `docs` is the same without what only rustdoc
//! understands: hidden lines of examples, and links to items.

use crate::report;
use crate::source::{files, text, top};
use std::collections::BTreeMap;
use std::fs;

/// Where the guides are written.
const WRITTEN: &str = "src/guide";

/// Where they are generated.
const GENERATED: &str = "docs";

/// If this variable is set, the test writes the files that differ.
const WRITE: &str = "POINTSMAN_WRITE_DOCS";

/// How the files are generated anew.
const COMMAND: &str = "POINTSMAN_WRITE_DOCS=1 cargo test -p pointsman --test tidy guides_are_generated";

/// The first line of the generated form of a guide.
fn head(source: &str) -> String {
    format!("<!-- Generated from {source} by the test `guides` of tests/tidy: edit that file. -->")
}

/// A line that begins or ends a fence: how it is indented, its marks, and what stands behind them.
fn fence(line: &str) -> Option<(&str, &str, &str)> {
    let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
    let mark = rest.chars().next().filter(|c| "`~".contains(*c))?;
    let (marks, info) = rest.split_at(rest.len() - rest.trim_start_matches(mark).len());
    (marks.len() >= 3 && !info.contains('`')).then(|| (indent, marks, info.trim()))
}

/// Whether rustdoc takes code behind such a fence for Rust.
fn is_rust(info: &str) -> bool {
    const ATTRIBUTES: [&str; 8] = [
        "rust",
        "ignore",
        "no_run",
        "should_panic",
        "compile_fail",
        "test_harness",
        "standalone_crate",
        "edition",
    ];
    let is_attribute = |word: &str| {
        let is_error = word.strip_prefix('E').is_some_and(|code| code.parse::<u32>().is_ok());
        is_error || ATTRIBUTES.contains(&word.trim_end_matches(|c: char| c.is_numeric()))
    };
    let mut words = info.split([',', ' ']).filter(|word| !word.is_empty());
    info.is_empty() || words.clone().any(|word| word == "rust") || words.all(is_attribute)
}

/// Returns the part of a line of Rust that rustdoc shows; `None` if it hides the line.
fn shown(line: &str) -> Option<String> {
    let begin = line.trim_start();
    match begin.strip_prefix('#') {
        Some(rest) if rest.starts_with('#') => Some(line.replacen("##", "#", 1)),
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => None,
        _ => Some(line.to_owned()),
    }
}

/// The lines of an example that rustdoc shows. Blank lines that only separated hidden lines go with them.
fn example(lines: &[&str]) -> Vec<String> {
    let shown: Vec<String> = lines.iter().filter_map(|line| shown(line)).collect();
    if shown.len() == lines.len() {
        return shown;
    }
    let is_blank = |line: &String| line.trim().is_empty();
    let mut kept: Vec<String> = Vec::new();
    for line in shown {
        if !is_blank(&line) || kept.last().is_some_and(|before| !is_blank(before)) {
            kept.push(line);
        }
    }
    if kept.last().is_some_and(is_blank) {
        kept.pop();
    }
    kept
}

/// Where a link leads.
#[derive(Debug, PartialEq)]
enum Leads {
    /// To an item of the crate: for rustdoc alone.
    ToItem,
    /// To another guide: the file, and the heading with its `#`.
    ToGuide(String),
    /// To a file, a heading or another site.
    Elsewhere,
}

/// Where rustdoc takes a link with this target.
fn leads(target: &str) -> Leads {
    let path = target.split('#').next().unwrap_or_default();
    if let Some(name) = path.strip_prefix("crate::guide::") {
        return Leads::ToGuide(format!("{name}.md{}", &target[path.len()..]));
    }
    if is_item(path) { Leads::ToItem } else { Leads::Elsewhere }
}

/// Whether a text is the path of an item, as rustdoc reads paths: `method@a::B<C>::d()` is one.
fn is_item(path: &str) -> bool {
    let path = path.split_once('@').map_or(path, |(_, path)| path);
    let path = path.trim_end_matches("()").trim_end_matches('!');
    let mut depth = 0;
    let without_generics: String = path
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '<');
            let kept = depth == 0;
            depth -= i32::from(*c == '>');
            kept
        })
        .collect();
    without_generics.split("::").all(|name| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    })
}

/// A definition of a link for other places of the page: `[label]: target`.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (label, target) = line.trim_start().strip_prefix('[')?.split_once("]: ")?;
    (!label.contains([']', '^'])).then_some((label, target.trim()))
}

/// The end of a paragraph that goes on here.
fn paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

/// How many bytes the code at the beginning of a text takes, with its marks.
fn code(text: &str) -> usize {
    let marks = text.len() - text.trim_start_matches('`').len();
    let mut at = marks;
    let within = paragraph(text);
    while let Some(next) = within[at..].find('`') {
        let rest = &within[at + next..];
        let found = rest.len() - rest.trim_start_matches('`').len();
        at += next + found;
        if found == marks {
            return at;
        }
    }
    marks
}

/// The text in brackets at the beginning of a text, which may contain code and further brackets.
fn bracketed(text: &str) -> Option<&str> {
    let within = paragraph(text);
    let mut depth = 0;
    let mut at = 0;
    while let Some(c) = within[at..].chars().next() {
        match c {
            '`' => {
                at += code(&text[at..]);
                continue;
            }
            '\\' => at += 1,
            '[' => depth += 1,
            ']' if depth == 1 => return Some(&within[1..at]),
            ']' => depth -= 1,
            _ => {}
        }
        at += within[at..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// The text in parentheses at the beginning of a text, which may contain further ones.
fn parenthesized(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in paragraph(text).char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return Some(&text[1..at]);
        }
    }
    None
}

/// Returns the name of a method with its type, if the text of a link is the method's name alone: without the link a
/// reader could not tell whose method it is.
fn owned(text: &str, target: &str) -> Option<String> {
    let name = text.strip_prefix('`')?.strip_suffix('`')?;
    let path = target.strip_suffix(name)?.strip_suffix("::")?;
    let owner = path.rsplit("::").next()?;
    owner.starts_with(char::is_uppercase).then(|| format!("`{owner}::{name}`"))
}

/// Returns the plain form of a link with this text and target; `None` if the link stays.
fn replaced(text: &str, target: &str) -> Option<String> {
    match leads(target) {
        Leads::ToItem => Some(owned(text, target).unwrap_or_else(|| text.to_owned())),
        Leads::ToGuide(file) => Some(format!("[{text}]({file})")),
        Leads::Elsewhere => None,
    }
}

/// The link at the beginning of a text: how many bytes it takes, and what it becomes, unless it stays.
fn link(rest: &str, defined: &BTreeMap<String, String>) -> Option<(usize, Option<String>)> {
    let text = bracketed(rest)?;
    let end = text.len() + 2;
    if rest[end..].starts_with('(') {
        let target = parenthesized(&rest[end..])?;
        let whole = end + target.len() + 2;
        return Some((whole, replaced(text, target)));
    }
    let (label, whole) = match bracketed(&rest[end..]).filter(|_| rest[end..].starts_with('[')) {
        Some("") => (text, end + 2),
        Some(label) => (label, end + label.len() + 2),
        None => (text, end),
    };
    // A label without a definition in the page is the path of an item: rustdoc fails if there is no such item.
    let target = defined.get(&label.to_lowercase()).map_or(label.trim_matches('`'), String::as_str);
    match replaced(text, target) {
        None if whole == end && !defined.contains_key(&label.to_lowercase()) => None,
        becomes => Some((whole, becomes)),
    }
}

/// Prose without links to items.
fn prose(text: &str, defined: &BTreeMap<String, String>) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (taken, becomes) = match c {
            '`' => (code(rest), None),
            '\\' => (1 + rest[1..].chars().next().map_or(0, char::len_utf8), None),
            '[' => link(rest, defined).unwrap_or((1, None)),
            _ => (c.len_utf8(), None),
        };
        plain.push_str(becomes.as_deref().unwrap_or(&rest[..taken]));
        rest = &rest[taken..];
    }
    plain
}

/// A part of a page.
enum Part<'page> {
    Prose(Vec<&'page str>),
    /// Code, with the line that begins it and the line that ends it.
    Code(&'page str, Vec<&'page str>, &'page str),
}

/// The parts of a page, in their order.
fn parts(page: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut prose = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some((_, begin, _)) = fence(line) else {
            prose.push(line);
            continue;
        };
        parts.push(Part::Prose(std::mem::take(&mut prose)));
        let mut within = Vec::new();
        let ends =
            |line: &str| fence(line).is_some_and(|(_, end, info)| end.starts_with(begin) && info.is_empty());
        let end = loop {
            match lines.next() {
                Some(line) if ends(line) => break line,
                Some(line) => within.push(line),
                None => break begin,
            }
        };
        parts.push(Part::Code(line, within, end));
    }
    parts.push(Part::Prose(prose));
    parts
}

/// A guide without what only rustdoc understands.
fn plain(page: &str) -> String {
    let parts = parts(page);
    let mut defined = BTreeMap::new();
    for part in &parts {
        if let Part::Prose(lines) = part {
            let found = lines.iter().filter_map(|line| definition(line));
            defined.extend(found.map(|(label, target)| (label.to_lowercase(), target.to_owned())));
        }
    }
    let mut plain = String::new();
    for part in &parts {
        match part {
            Part::Prose(lines) => {
                let is_for_rustdoc = |line: &str| {
                    definition(line).is_some_and(|(_, target)| leads(target) != Leads::Elsewhere)
                };
                let mut text = String::new();
                let mut is_left_out = false;
                for line in lines {
                    if is_for_rustdoc(line) {
                        is_left_out = true;
                        continue;
                    }
                    // Definitions stood between two blank lines.
                    let is_second = ["", "\n"].contains(&text.as_str()) || text.ends_with("\n\n");
                    if !(is_left_out && is_second && line.is_empty()) {
                        text.push_str(line);
                        text.push('\n');
                        is_left_out = false;
                    }
                }
                plain.push_str(&prose(&text, &defined));
            }
            Part::Code(begin, lines, end) => {
                let (indent, marks, info) = fence(begin).expect("it begins with a fence");
                let (info, lines) = if is_rust(info) {
                    ("rust", example(lines))
                } else {
                    (info, lines.iter().map(|line| (*line).to_owned()).collect())
                };
                plain.push_str(&format!("{indent}{marks}{info}\n"));
                plain.extend(lines.iter().flat_map(|line| [line, "\n"]));
                plain.push_str(end);
                plain.push('\n');
            }
        }
    }
    format!("{}\n", plain.trim_end())
}

/// The file that is generated from a source.
fn of(source: &str) -> String {
    source.replacen(WRITTEN, GENERATED, 1)
}

/// Returns the text of the file that is generated from this source.
fn generated(source: &str, page: &str) -> String {
    format!("{}\n\n{}", head(source), plain(page))
}

/// The first line in which two texts differ, from 1.
fn difference(one: &str, other: &str) -> Option<usize> {
    let (one, other): (Vec<_>, Vec<_>) = (one.lines().collect(), other.lines().collect());
    let mut lines = 0..one.len().max(other.len());
    lines.find(|at| one.get(*at) != other.get(*at)).map(|at| at + 1)
}

/// The generated file differs from what its source says.
fn stale(source: &str, page: &str, found: &str) -> Option<String> {
    let number = difference(&generated(source, page), found)?;
    let path = of(source);
    Some(format!(
        "{path}:{number}: it is not what {source} generates: edit that, and write this by `{COMMAND}`"
    ))
}

/// The page has something that only rustdoc understands, or says that it is generated and has no source.
fn for_rustdoc(path: &str, page: &str, sources: &[String]) -> Option<String> {
    let source = path.replacen(GENERATED, WRITTEN, 1);
    let is_generated = page.starts_with(&head(&source));
    if is_generated && !sources.contains(&source) {
        return Some(format!("{path}:1: there is no {source}: remove this, or bring that back"));
    }
    let link = page.lines().position(|line| line.contains("](crate::") || line.contains("]: crate::"));
    let number = match link {
        Some(at) => at + 1,
        // A `#` that its source escapes would look like the mark of a hidden line.
        None if is_generated => return None,
        None => difference(&plain(page), page)?,
    };
    Some(format!(
        "{path}:{number}: a plain viewer shows a link to an item, a hidden line, or a fence without a language: write \
         it plainly, or move the guide to {WRITTEN}"
    ))
}

#[test]
fn guides_are_generated() {
    let mut faults = Vec::new();
    for source in files(WRITTEN, ".md") {
        let page = text(&source);
        let path = top().join(of(&source));
        let found = fs::read_to_string(&path).unwrap_or_default();
        let Some(fault) = stale(&source, &page, &found) else { continue };
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, generated(&source, &page)).expect("the folder is there");
        } else {
            faults.push(fault);
        }
    }
    report(&faults);
}

#[test]
fn guides_in_docs_are_plain() {
    let sources = files(WRITTEN, ".md");
    let pages = files(GENERATED, ".md");
    report(&pages.iter().filter_map(|path| for_rustdoc(path, &text(path), &sources)).collect::<Vec<_>>());
}

#[test]
fn hidden_lines_are_left_out() {
    let page = "```\n# use a;\n\n#[derive(B)]\nstruct C; // # d\n#\n\n  # e\n\n## f\n#g\n# h\n\n```\n";
    assert_eq!(plain(page), "```rust\n#[derive(B)]\nstruct C; // # d\n\n# f\n#g\n```\n");
    let other = "# Heading\n\n```toml\n# comment\n\n\na = 1\n```\n\n# Heading\n";
    assert_eq!(plain(other), other);
}

#[test]
fn fences_keep_their_language_alone() {
    for rust in
        ["", "rust", "no_run", "ignore", "rust,ignore", "compile_fail,E0277", "should_panic edition2024"]
    {
        assert_eq!(plain(&format!("```{rust}\na\n```\n")), "```rust\na\n```\n", "{rust}");
    }
    for other in ["text", "toml", "go", "rusty"] {
        let page = format!("```{other}\n# a [`B`](crate::B)\n```\n");
        assert_eq!(plain(&page), page);
    }
    let indented = "- a\n\n  ~~~~no_run\n  ```\n  # b\n  ~~~\n  ~~~~\n";
    assert_eq!(plain(indented), "- a\n\n  ~~~~rust\n  ```\n  ~~~\n  ~~~~\n");
}

#[test]
fn links_to_items_become_their_text() {
    for (link, becomes) in [
        ("[the sink](crate::DeadLetters::take)", "the sink"),
        ("[`ActorRef<M>`](crate::ActorRef)", "`ActorRef<M>`"),
        ("[order](crate::Mailbox#order)", "order"),
        ("[there is\n[nothing] `]`](crate::a::B::c())", "there is\n[nothing] `]`"),
        ("[`ask`](TestSystem::ask)", "`TestSystem::ask`"),
        ("[`send`](crate::topology::Outlet::send)", "`Outlet::send`"),
        ("[`select`](crate::routing::select)", "`select`"),
        ("[errors](BuildError)", "errors"),
        ("[a](struct@B) [c](d!)", "a c"),
        ("[`Context::spawn`]", "`Context::spawn`"),
        ("[`Self::x`], [`f()`] and [`Vec<Option<T>>`]", "`Self::x`, `f()` and `Vec<Option<T>>`"),
        ("[a text][`X::y`] [`Z`][]", "a text `Z`"),
        ("[see [`X`](crate::X), too: 1]", "[see `X`, too: 1]"),
        ("a [ [`X`]", "a [ `X`"),
        ("| [`X`](crate::X) | é [`Y`] |", "| `X` | é `Y` |"),
    ] {
        assert_eq!(plain(&format!("{link}\n")), format!("{becomes}\n"), "{link}");
    }
}

#[test]
fn links_between_guides_lead_to_files() {
    let page =
        "[`a`](crate::guide::a), [b\nc](crate::guide::d#the-e) and [f][crate::guide::f]; [g](crate::guide)\n";
    assert_eq!(plain(page), "[`a`](a.md), [b\nc](d.md#the-e) and [f](f.md); g\n");
}

#[test]
fn other_links_and_texts_stay() {
    for page in [
        "[a](https://docs.rs/a) ![b](b.png) [c](#c-d) [e](../E.md#f) [g](e.html) <https://h>\n",
        "`[x](crate::x)` ``[`y`]`` and `[Z]` \\[`W`\\]\n",
        "[0], [0.3 0.4], [least most]: and [`a b`], […]\n",
        "[a] and [b][a]\n\n[a]: https://a.org/b\n",
        "a `b [c](d.md)\n",
    ] {
        assert_eq!(plain(page), page);
    }
    let blank = "a\n\n\nb\n\n```rust\n\nc\n\n\nd\n```\n\n\ne\n";
    assert_eq!(plain(blank), blank);
    // A mark of code that nothing ends is a character; a paragraph ends everything.
    assert_eq!(plain("a ` b [`c`]\n"), "a ` b [`c`]\n");
    assert_eq!(plain("[a ` b\n\n[`c`] ` ]\n"), "[a ` b\n\n`c` ` ]\n");
}

#[test]
fn definitions_of_items_are_left_out_with_their_uses() {
    let items = "[`X`], [y][Y] and [z]\n\n[`X`]: crate::a::X\n[y]: crate::Y\n\n[z]: https://z.org\n";
    assert_eq!(plain(items), "`X`, y and [z]\n\n[z]: https://z.org\n");
    assert_eq!(plain("[u], [v][u]\n\n[u]: crate::guide::u\n"), "[u](u.md), [v](u.md)\n");
    assert_eq!(plain("```text\n```\n\n[a]: crate::A\n\nb\n"), "```text\n```\n\nb\n");
}

#[test]
fn generated_files_that_differ_are_found() {
    let good =
        "<!-- Generated from src/guide/a.md by the test `guides` of tests/tidy: edit that file. -->\n\n`B`\n";
    assert_eq!(generated("src/guide/a.md", "[`B`]\n"), good);
    assert_eq!(stale("src/guide/a.md", "[`B`]\n", good), None);
    for (bad, line) in
        [("", 1), (&good[1..], 1), (&good.replace("`B`", "`C`"), 3), (&format!("{good}c\n"), 4)]
    {
        let fault = stale("src/guide/a.md", "[`B`]\n", bad).expect("it differs");
        assert!(fault.starts_with(&format!("docs/a.md:{line}: ")) && fault.contains(COMMAND), "{fault}");
    }
}

#[test]
fn pages_that_are_not_plain_are_found() {
    let sources = ["src/guide/a.md".to_owned()];
    let page = generated("src/guide/a.md", "a\n");
    assert_eq!(for_rustdoc("docs/a.md", &page, &sources), None);
    assert_eq!(for_rustdoc("docs/b.md", "# A\n\n```text\n# b\n```\n", &sources), None);
    let without_source = for_rustdoc("docs/a.md", &page, &[]).expect("a fault");
    assert!(without_source.starts_with("docs/a.md:1: there is no src/guide/a.md"), "{without_source}");
    let escaped = generated("src/guide/a.md", "```\n## a\n```\n");
    assert_eq!(for_rustdoc("docs/a.md", &escaped, &sources), None);
    assert!(for_rustdoc("docs/a.md", &format!("{page}[b](crate::B)\n"), &sources).is_some());
    for bad in ["[`B`](crate::B)", "[`B`]", "```rust\n# b\n```", "```\nb\n```", "[b]: crate::B"] {
        let fault = for_rustdoc("docs/b.md", &format!("a\n\n{bad}\n"), &sources).expect(bad);
        assert!(fault.starts_with("docs/b.md:"), "{fault}");
    }
}
