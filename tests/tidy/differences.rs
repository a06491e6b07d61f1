//! What differs from other systems stands in the guides that users get, and not only beside the tests.

use crate::report;
use crate::source::text;

/// Where each rule of another system stands with its tests, or with what differs.
const PAGE: &str = "tests/it/coverage.md";

/// How a row tells that something is different or not there.
const WORDS: [&str; 4] = ["differs", "differ:", "out of scope", "cannot be written"];

/// The definitions of links at the end of the page: a label, the guide it leads to, and the heading there.
fn labels(page: &str) -> Vec<(&str, &str, &str)> {
    let defined = page.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    let into_guides =
        defined.filter_map(|(label, to)| Some((label, to.strip_prefix("../../")?.split_once('#')?)));
    into_guides.map(|(label, (guide, heading))| (label, guide, heading)).collect()
}

/// What a link to a heading says of it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// How many rows the tables under a heading have; `None` if there is no such heading.
fn rows_under(guide: &str, wanted: &str) -> Option<usize> {
    let title = |line: &str| line.starts_with('#').then(|| anchor(line.trim_start_matches('#').trim()));
    let mut lines = guide.lines().skip_while(|line| title(line).as_deref() != Some(wanted));
    lines.next()?;
    let below = lines.take_while(|line| !line.starts_with('#'));
    let rows = below.filter(|line| line.starts_with("| ")).count();
    // The first row names the columns.
    Some(rows.saturating_sub(1))
}

/// Rows that tell of a difference and lead to no guide, and guides that tell of fewer differences than lead to them.
fn untold(page: &str, guide: impl Fn(&str) -> String) -> Vec<String> {
    let labels = labels(page);
    let mut faults = Vec::new();
    let rows: Vec<_> = page.lines().enumerate().filter(|(_, line)| line.starts_with("| ")).collect();
    let leads = |row: &str, label: &str| row.contains(&format!("[{label}]"));
    for (at, row) in &rows {
        // Names of tests have such words, too.
        let prose: String = row.split('`').step_by(2).collect();
        let differs = WORDS.iter().any(|word| prose.contains(word));
        if differs && !labels.iter().any(|(label, ..)| leads(row, label)) {
            faults.push(format!(
                "{PAGE}:{}: it tells of a difference and leads to no guide: tell users in a table of src/guide/words.md, and \
                 link to its heading by a label from the end of the page",
                at + 1
            ));
        }
    }
    for (label, path, heading) in &labels {
        let cited = rows.iter().filter(|(_, row)| leads(row, label)).count();
        match rows_under(&guide(path), heading) {
            None => faults.push(format!("{PAGE}: [{label}]: {path} has no heading #{heading}")),
            Some(told) if told < cited => faults.push(format!(
                "{path}#{heading}: {told} rows tell of what {cited} rows of {PAGE} lead here for: add the others"
            )),
            Some(_) => {}
        }
    }
    faults
}

#[test]
fn users_are_told_what_differs() {
    let page = text(PAGE);
    assert!(labels(&page).len() > 10, "{PAGE} defines where its labels lead");
    report(&untold(&page, text));
}

#[test]
fn differences_that_users_are_not_told_are_found() {
    let guide = |_: &str| {
        "# First, and why\n| a | b |\n|---|---|\n| 1 | 2 |\n## Second\n| a | b |\n|---|---|\n".to_owned()
    };
    let labels = "[first]: ../../docs/w.md#first-and-why\n[second]: ../../docs/w.md#second\n";
    let faults = |rows: &str, more: &str| untold(&format!("{rows}\n{labels}{more}"), guide);
    assert!(
        faults("| rule | tests |\n| one | differs: so ([first]) |\n| two | `a::it_differs` |", "").is_empty()
    );
    assert_eq!(
        faults("| one | differs: so |", "")[0].split(": ").next(),
        Some("tests/it/coverage.md:1"),
        "no label"
    );
    assert!(faults("| one | differs: so ([third]) |", "")[0].contains("leads to no guide"), "no such label");
    assert!(
        faults("| one | differs ([second]) |", "")[0].contains("0 rows tell of what 1 rows"),
        "an empty table"
    );
    assert!(
        faults("| one | differs ([first]) |\n| two | out of scope ([first]) |", "")[0]
            .contains("1 rows tell")
    );
    assert!(faults("", "[gone]: ../../docs/w.md#third")[0].contains("has no heading #third"));
}
