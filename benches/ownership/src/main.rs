//! Simulates which core has which line of memory while messages are sent, and predicts what they take on more cores.
//!
//! `docs/scaling.md`, *What a model predicts*, has the method, the tables and their limits.
//!
//! * [`paths`] has the lines that each path uses, in their order. A change of the library's paths belongs there, too.
//! * [`machine`] has the times of the accesses, and [`measure`] measures them.
//! * [`lines`] and [`threads`] are the simulator.
//! * [`workload`] has the workloads, [`pairs`] two threads that are simulated and measured, and [`report`] the tables.

mod lines;
mod machine;
mod measure;
mod pairs;
mod paths;
mod report;
mod threads;
mod workload;

use machine::{Machine, XEON};
use std::process::ExitCode;

const HELP: &str = "\
Simulates which core has which line of memory while messages are sent.

Usage: cargo run --release --manifest-path benches/ownership/Cargo.toml -- [--measure]

  --measure  take the constants of this machine, measured with two idle cores, in place of the table's
  --help     print this";

/// The nanoseconds of the pairs of threads on the machine of the table, with `--measure`.
const PAIRS_OF_XEON: [f64; 4] = [36.5, 42.8, 113.5, 148.7];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => show(&XEON, PAIRS_OF_XEON),
        ["--measure"] => show(&measure::machine(), measure::pairs()),
        ["--help"] => println!("{HELP}"),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn show(machine: &Machine, pairs: [f64; 4]) {
    println!("{machine:#?}\n\nnanoseconds for each operation of one of\n");
    println!("{}\n", report::pairs(machine, pairs));
    println!("nanoseconds for each message, on two cores:\n\n{}\n", report::two_cores(machine));
    println!("with a core for each thread, predicted:\n\n{}", report::more_cores(machine));
}
