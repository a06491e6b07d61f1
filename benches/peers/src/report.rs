//! What is shown: each row when it is finished, where we lose, and all as Markdown or JSON.

use crate::latency::{QUANTILES, SHOWN};
use crate::library::{Kind, LIBRARIES, Library, OURS};
use crate::run::{Finished, Outcome, Plan, Summary};
use crate::workload::{Load, Measured, Workload};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// Between these lines a report is put into a file that has them.
const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

/// Where and how figures came about.
pub struct Circumstances {
    pub machine: String,
    pub date: String,
    pub commit: String,
    pub compiler: String,
    pub command: String,
}

impl Circumstances {
    pub fn now() -> Self {
        let cores = std::thread::available_parallelism().map_or(0, |count| count.get());
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
        let model = model.trim_start_matches(['\t', ' ', ':']);
        let words: Vec<String> = std::env::args().skip(1).collect();
        let command = "cargo run --release --manifest-path benches/peers/Cargo.toml";
        let command =
            if words.is_empty() { command.into() } else { format!("{command} -- {}", words.join(" ")) };
        Self {
            machine: format!("{model}, {cores} cores"),
            date: said("date", &["-u", "+%Y-%m-%d"]),
            commit: said("git", &["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"]),
            compiler: said("rustc", &["--version"]),
            command,
        }
    }
}

fn said(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    let said = output.ok().filter(|output| output.status.success());
    said.map_or_else(|| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A figure in as many digits as it deserves.
fn figure(value: f64) -> String {
    let digits = if value < 100.0 { 1 } else { 0 };
    format!("{value:.digits$}")
}

fn ratio(of: Summary, ours: Option<Summary>) -> String {
    ours.map_or_else(String::new, |ours| format!("{:.2}", of.median / ours.median))
}

fn unit(finished: &Finished) -> &'static str {
    match finished.row.workload {
        Workload::IdleBytes => "bytes",
        Workload::Latency { .. } => "µs",
        _ => "ns",
    }
}

fn title(finished: &Finished) -> String {
    let row = finished.row;
    match finished.arrivals_per_second {
        Some(rate) => format!("{}, {rate:.0} arrivals/s ({})", row.title, unit(finished)),
        None => format!("{} ({})", row.title, unit(finished)),
    }
}

impl Finished {
    fn ours(&self) -> Option<&Outcome> {
        self.outcomes.iter().find(|(library, _)| library.name == OURS).map(|(_, outcome)| outcome)
    }

    /// The row's title, and the rate where the title does not tell it.
    fn name(&self) -> String {
        match self.row.workload {
            Workload::Latency { load: Load::PerSecond(rate), .. } => {
                format!("{}, {rate} arrivals/s", self.row.title)
            }
            _ => self.row.title.to_owned(),
        }
    }

    fn is_latency(&self) -> bool {
        matches!(self.row.workload, Workload::Latency { .. })
    }

    /// The figures by which libraries are compared: their names, and how to take them.
    fn figures(&self) -> Vec<(String, Box<dyn Fn(&Outcome) -> Option<Summary>>)> {
        if !self.is_latency() {
            return vec![(self.name(), Box::new(Outcome::summary))];
        }
        let shown = SHOWN.iter().map(|&(place, name)| {
            let take: Box<dyn Fn(&Outcome) -> Option<Summary>> =
                Box::new(move |outcome| outcome.latency(place));
            (format!("{}, {name}", self.name()), take)
        });
        shown.collect()
    }
}

/// Shows one row: who is fast first.
pub fn show(finished: &Finished) {
    println!("\n{}  [{}]", title(finished), finished.row.key);
    if finished.is_latency() {
        let names: Vec<_> = SHOWN.iter().map(|(_, name)| format!("{name:>18}")).collect();
        println!("  {:<16}{}", "", names.concat());
    }
    let key = |outcome: &Outcome| {
        outcome.summary().or(outcome.latency(SHOWN[0].0)).map_or(f64::MAX, |sum| sum.median)
    };
    let mut outcomes: Vec<_> = finished.outcomes.iter().collect();
    outcomes.sort_by(|(_, one), (_, other)| key(one).total_cmp(&key(other)));
    for (library, outcome) in outcomes {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Failed(fault) => println!("  {:<16}{:>10}  {fault}", library.name, "failed"),
            Outcome::Measured(_) if finished.is_latency() => {
                let cells = SHOWN.iter().filter_map(|&(place, _)| outcome.latency(place));
                let cells =
                    cells.map(|sum| format!("{:>10} ±{:>4.0} %", figure(sum.median / 1e3), sum.spread()));
                println!("  {:<16}{}", library.name, cells.collect::<String>());
            }
            Outcome::Measured(_) => {
                let Some(sum) = outcome.summary() else { continue };
                let ratio = ratio(sum, finished.ours().and_then(Outcome::summary));
                println!(
                    "  {:<16}{:>10} ±{:>4.0} %{:>10}",
                    library.name,
                    figure(sum.median),
                    sum.spread(),
                    ratio
                );
            }
        }
    }
    show_absent(finished);
}

/// Names those that have nothing for a workload.
fn show_absent(finished: &Finished) {
    let absent = finished.outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Nothing));
    let absent: Vec<_> = absent.map(|(library, _)| library.name).collect();
    if !absent.is_empty() {
        println!("  –: {}", absent.join(", "));
    }
}

/// Where somebody else is ahead of us, and by how much.
fn losses(all: &[Finished]) -> Vec<String> {
    let mut losses = Vec::new();
    for finished in all {
        for (name, take) in finished.figures() {
            let Some(ours) = finished.ours().and_then(&take) else { continue };
            let ahead =
                finished.outcomes.iter().filter_map(|(library, outcome)| Some((library, take(outcome)?)));
            let mut ahead: Vec<_> =
                ahead.filter(|(library, sum)| library.package != OURS && sum.median < ours.median).collect();
            ahead.sort_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
            if ahead.is_empty() {
                continue;
            }
            let who = ahead.iter().map(|(library, sum)| {
                let doubt = if sum.high >= ours.low { ", within the spread" } else { "" };
                format!("{} ({:.2} of ours{doubt})", library.name, sum.median / ours.median)
            });
            losses.push(format!("{name}: {}", who.collect::<Vec<_>>().join(", ")));
        }
    }
    losses
}

/// Who is the best of a kind beside us.
fn best(finished: &Finished, kind: Kind) -> String {
    let ours = finished.ours().and_then(Outcome::summary);
    let others =
        finished.outcomes.iter().filter(|(library, _)| library.kind == kind && library.package != OURS);
    let sums = others.filter_map(|(library, outcome)| Some((library, outcome.summary()?)));
    let best = sums.min_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
    best.map_or_else(
        || "–".into(),
        |(library, sum)| format!("{} {} ({})", figure(sum.median), library.name, ratio(sum, ours)),
    )
}

/// Shows the best beside us in each row, and where we lose; says whether all repetitions were right.
pub fn show_end(all: &[Finished]) -> bool {
    println!("\n{:<58}{:>10}  {:<32}{:<32}", "", OURS, "best actors (ratio)", "best channel (ratio)");
    for finished in all.iter().filter(|finished| !finished.is_latency()) {
        let ours = finished
            .ours()
            .and_then(Outcome::summary)
            .map_or_else(|| "failed".into(), |sum| figure(sum.median));
        let (actors, channel) = (best(finished, Kind::Actors), best(finished, Kind::Channel));
        println!("{:<58}{ours:>10}  {actors:<32}{channel:<32}", title(finished));
    }
    match losses(all) {
        losses if losses.is_empty() => println!("\nPointsman is ahead in every row."),
        losses => {
            println!("\nwhere Pointsman loses:");
            losses.iter().for_each(|loss| println!("  {loss}"));
        }
    }
    let failed = failures(all);
    if !failed.is_empty() {
        println!("\nfailed:");
        failed.iter().for_each(|fault| println!("  {fault}"));
    }
    failed.is_empty()
}

fn failures(all: &[Finished]) -> Vec<String> {
    let mut failures = Vec::new();
    for finished in all {
        for (library, outcome) in &finished.outcomes {
            if let Outcome::Failed(fault) = outcome {
                failures.push(format!("{}, {}: {fault}", finished.row.key, library.name));
            }
        }
    }
    failures
}

// ---- Markdown

/// Writes the figures as Markdown: between the marks of a file that has them, or else as the whole file.
pub fn write_markdown(
    file: &Path,
    all: &[Finished],
    plan: &Plan,
    circumstances: &Circumstances,
) -> io::Result<()> {
    let figures = markdown(all, plan, circumstances);
    let text = match fs::read_to_string(file) {
        Ok(text) => match (text.find(BEGIN), text.find(END)) {
            (Some(begin), Some(end)) if begin < end => {
                format!("{}\n\n{figures}\n{}", &text[..begin + BEGIN.len()], &text[end..])
            }
            _ => figures,
        },
        Err(_) => figures,
    };
    fs::write(file, text)
}

fn markdown(all: &[Finished], plan: &Plan, circumstances: &Circumstances) -> String {
    let Circumstances { machine, date, commit, compiler, command } = circumstances;
    let versions = plan.libraries.iter().filter(|library| library.package != OURS);
    let mut versions: Vec<_> =
        versions.map(|library| format!("{} {}", library.package, library.version())).collect();
    versions.dedup();
    let mut text = format!(
        "{machine}; {date}; commit {commit}; {compiler}; {} interleaved rounds.\n\n```sh\n{command}\n```\n\nVersions: {}.\n",
        plan.rounds,
        versions.join(", ")
    );
    for (heading, kind) in [("Actors", Kind::Actors), ("Channels", Kind::Channel)] {
        table(&mut text, heading, all, plan, kind);
    }
    backlog_table(&mut text, all, plan);
    let latencies: Vec<_> = all.iter().filter(|finished| finished.is_latency()).collect();
    if !latencies.is_empty() {
        text.push_str("\n### Latency\n");
        latencies.iter().for_each(|finished| latency_table(&mut text, finished));
    }
    text.push_str("\n### Where Pointsman loses\n\n");
    let losses = losses(all);
    losses.iter().for_each(|loss| _ = writeln!(text, "- {loss}"));
    if losses.is_empty() {
        text.push_str("In no row.\n");
    }
    for fault in failures(all) {
        let _ = writeln!(text, "- failed: {fault}");
    }
    text
}

/// A row for each workload, a column for Pointsman and for each library of this kind.
fn table(text: &mut String, heading: &str, all: &[Finished], plan: &Plan, kind: Kind) {
    let has_figures = |library: &&Library| {
        let outcomes = all.iter().flat_map(|finished| &finished.outcomes);
        let mut own = outcomes.filter(|(other, _)| other.name == library.name);
        own.any(|(_, outcome)| outcome.summary().is_some())
    };
    let libraries =
        plan.libraries.iter().copied().filter(|library| library.kind == kind || library.name == OURS);
    let libraries: Vec<&Library> = libraries.filter(has_figures).collect();
    let names: Vec<_> = libraries.iter().map(|library| library.name).collect();
    let _ = writeln!(text, "\n### {heading}\n\n| workload | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(libraries.len()));
    for finished in all.iter().filter(|finished| !finished.is_latency()) {
        let ours = finished.ours().and_then(Outcome::summary);
        let _ = write!(text, "| {} |", title(finished));
        for library in &libraries {
            let outcome = finished.outcomes.iter().find(|(other, _)| other.name == library.name);
            let cell = match outcome.and_then(|(_, outcome)| outcome.summary()) {
                Some(sum) if library.name == OURS => format!("{} ±{:.0} %", figure(sum.median), sum.spread()),
                Some(sum) => format!("{} ±{:.0} %, {}×", figure(sum.median), sum.spread(), ratio(sum, ours)),
                None => "–".into(),
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
}

/// The memory of rows in which messages wait without a bound: the most that was in use, and page faults.
fn backlog_table(text: &mut String, all: &[Finished], plan: &Plan) {
    let rows: Vec<_> = all.iter().filter(|finished| finished.row.workload.has_backlog()).collect();
    if rows.is_empty() {
        return;
    }
    let names: Vec<_> = plan.libraries.iter().map(|library| library.name).collect();
    let _ = writeln!(text, "\n### Memory of a backlog\n\nMedians of the peak of resident memory in MB, and of thousands of page faults, of a \
         repetition:\n\n| workload | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(names.len()));
    for finished in rows {
        let _ = write!(text, "| {} |", finished.row.title);
        for (_, outcome) in &finished.outcomes {
            let cell = match (outcome.peak(), outcome.page_faults()) {
                (Some(peak), Some(faults)) => {
                    format!("{:.0}, {:.1}", peak.median / 1e6, faults.median / 1e3)
                }
                _ => "–".into(),
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
}

fn latency_table(text: &mut String, finished: &Finished) {
    let names: Vec<_> = SHOWN.iter().map(|(_, name)| *name).collect();
    let _ = writeln!(text, "\n{}:\n\n| library | {} |", title(finished), names.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(SHOWN.len()));
    for (library, outcome) in &finished.outcomes {
        let cells = SHOWN.iter().filter_map(|&(place, _)| outcome.latency(place));
        let cells: Vec<_> =
            cells.map(|sum| format!("{} ±{:.0} %", figure(sum.median / 1e3), sum.spread())).collect();
        if !cells.is_empty() {
            let _ = writeln!(text, "| {} | {} |", library.name, cells.join(" | "));
        }
    }
}

// ---- JSON

/// Everything, each round's figures included.
pub fn json(all: &[Finished], plan: &Plan, circumstances: &Circumstances) -> Value {
    let versions: Map<_, _> =
        LIBRARIES.iter().map(|library| (library.name.to_owned(), json!(library.version()))).collect();
    let rows: Vec<_> = all.iter().map(row_json).collect();
    json!({
        "machine": circumstances.machine,
        "date": circumstances.date,
        "commit": circumstances.commit,
        "compiler": circumstances.compiler,
        "command": circumstances.command,
        "rounds": plan.rounds,
        "scale": plan.scale.name,
        "versions": versions,
        "latency_quantiles": QUANTILES,
        "rows": rows,
        "losses": losses(all),
        "failures": failures(all),
    })
}

fn row_json(finished: &Finished) -> Value {
    let libraries = finished.outcomes.iter().map(|(library, outcome)| {
        let value = match outcome {
            Outcome::Nothing => Value::Null,
            Outcome::Failed(fault) => json!({ "failed": fault }),
            Outcome::Measured(rounds) => {
                let values = rounds.iter().map(|found| match &found.measured {
                    Measured::Nanos(value) | Measured::Bytes(value) => json!(value),
                    Measured::Latency(values) => json!(values),
                });
                json!({
                    "rounds": values.collect::<Vec<_>>(),
                    "summary": outcome.summary(),
                    "peak_bytes": outcome.peak(),
                    "page_faults": outcome.page_faults(),
                })
            }
        };
        (library.name.to_owned(), value)
    });
    json!({
        "key": finished.row.key,
        "title": finished.row.title,
        "unit": if unit(finished) == "bytes" { "bytes" } else { "ns" },
        "arrivals_per_second": finished.arrivals_per_second,
        "libraries": libraries.collect::<Map<_, _>>(),
    })
}
