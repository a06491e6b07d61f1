//! Pointsman beside the libraries that its users would pick instead: the same work, in one run, in turns.
//!
//! ```sh
//! cargo run --release --manifest-path benches/peers/Cargo.toml
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- --quick --only routed --only crossbeam
//! ```
//!
//! * [`peer`]: what a library shows of itself; each has a file: [`pointsman`], [`kameo`], [`ractor`], …
//! * [`workload`], [`work`]: what is measured and what actors do, the same code for all. [`latency`] is the one that takes no time but tells it.
//! * [`run`]: who runs when, each repetition in a process of its own.
//! * [`report`], [`plot`]: what is shown.

mod actix;
mod channels;
mod elfo;
mod kameo;
mod kompact;
mod latency;
mod library;
mod living;
mod peer;
mod plot;
mod pointsman;
mod ractor;
mod report;
mod run;
mod scale;
mod tally;
mod tasks;
#[cfg(test)]
mod tests;
mod work;
mod workload;
mod xtra;

use library::LIBRARIES;
use pico_args::Arguments;
use report::Circumstances;
use run::{Plan, REPETITION, select};
use scale::Scale;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use workload::ROWS;

const HELP: &str = "\
Measures Pointsman beside its peers, in turns, and shows where each stands.

Usage: cargo run --release --manifest-path benches/peers/Cargo.toml -- [options]

  --only <name>      this workload (or all of one kind, as \"routed\") or this library alone; may be repeated;
                     pointsman itself always takes part
  --quick            fewer workloads, three rounds, shorter ones
  --rounds <n>       rounds, 1 to 1000  [default: 7]
  --json <file>      write all figures as JSON
  --markdown <file>  write the tables as Markdown; into a file that has marks for them, between those
  --plot <folder>    draw bars and curves of latency as SVG
  --list             name all workloads and libraries
  --help             print this
";

/// Rounds without and with `--quick`.
const ROUNDS: usize = 7;
const QUICK_ROUNDS: usize = 3;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(REPETITION) {
        return run::repetition(words);
    }
    let options = match Options::parse(Arguments::from_env()) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("peers: {fault}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match compare(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and shows; whether every repetition was right.
fn compare(options: &Options) -> Result<bool, Box<dyn Error>> {
    let (plan, circumstances) = (&options.plan, Circumstances::now());
    println!("{}; {} rounds", circumstances.machine, plan.rounds);
    let all = plan.run(report::show);
    let all_right = report::show_end(&all);
    if let Some(file) = &options.json {
        let value = report::json(&all, plan, &circumstances);
        std::fs::write(file, serde_json::to_string_pretty(&value)?)?;
    }
    if let Some(file) = &options.markdown {
        report::write_markdown(file, &all, plan, &circumstances)?;
    }
    if let Some(folder) = &options.plot {
        plot::draw(folder, &all)?;
    }
    Ok(all_right)
}

struct Options {
    plan: Plan,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
    plot: Option<PathBuf>,
}

impl Options {
    /// What the arguments ask for; `None` if that is shown already.
    fn parse(mut arguments: Arguments) -> Result<Option<Self>, Box<dyn Error>> {
        if arguments.contains(["-h", "--help"]) {
            print!("{HELP}");
            return Ok(None);
        }
        if arguments.contains("--list") {
            list();
            return Ok(None);
        }
        let is_quick = arguments.contains("--quick");
        let only: Vec<String> = arguments.values_from_str("--only")?;
        let rounds = arguments.opt_value_from_str("--rounds")?;
        let rounds = rounds.unwrap_or(if is_quick { QUICK_ROUNDS } else { ROUNDS });
        if !(1..=1000).contains(&rounds) {
            return Err(format!("--rounds {rounds}: must be a number from 1 to 1000").into());
        }
        let scale = Scale::named(if is_quick { "quick" } else { "full" }).expect("they exist");
        let (rows, libraries) = select(&only, is_quick)?;
        let options = Self {
            plan: Plan { rows, libraries, rounds, scale },
            json: arguments.opt_value_from_str("--json")?,
            markdown: arguments.opt_value_from_str("--markdown")?,
            plot: arguments.opt_value_from_str("--plot")?,
        };
        match arguments.finish() {
            rest if rest.is_empty() => Ok(Some(options)),
            rest => Err(format!("unknown arguments {rest:?}").into()),
        }
    }
}

fn list() {
    println!("workloads (* with --quick, too):");
    for row in ROWS {
        println!("  {:<18}{} {}", row.key, if row.is_quick { '*' } else { ' ' }, row.title);
    }
    println!("\nlibraries:");
    for library in LIBRARIES {
        println!("  {:<18}{} {}", library.name, library.package, library.version());
    }
}
