//! Takes turns: every library once in each round, each repetition in a process of its own, so that no runtime's threads
//! and no heap disturb another's.

use crate::library::{LIBRARIES, Library};
use crate::living::{page_faults, peak};
use crate::scale::Scale;
use crate::workload::{Load, Measured, ROWS, Row, Workload};
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a repetition may take before it counts as failed.
const SOON: Duration = Duration::from_secs(120);
/// How often the runner looks whether a repetition has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The workload whose rate is the capacity of a router: latency is measured at a part of the slowest one's.
pub const CAPACITY: &str = "routed/1";

/// The argument that makes this program a repetition.
pub const REPETITION: &str = "--repetition";

/// What is to be measured.
pub struct Plan {
    pub rows: Vec<&'static Row>,
    pub libraries: Vec<&'static Library>,
    pub rounds: usize,
    pub scale: Scale,
}

/// The findings of one process.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Repetition {
    pub measured: Measured,
    /// The most memory that was in use, in bytes.
    pub peak: usize,
    /// Pages that the kernel had to supply.
    pub page_faults: u64,
}

/// What a library has shown in one workload.
pub enum Outcome {
    /// Each round's result.
    Measured(Vec<Repetition>),
    /// It has nothing for this workload.
    Nothing,
    /// What went wrong.
    Failed(String),
}

/// A row with what each library has shown.
pub struct Finished {
    pub row: &'static Row,
    /// In the order of the plan's libraries.
    pub outcomes: Vec<(&'static Library, Outcome)>,
    /// Arrivals in a second, where there is a timetable.
    pub arrivals_per_second: Option<f64>,
}

impl Plan {
    /// Measures all rows, and shows each one when it is finished.
    pub fn run(&self, mut show: impl FnMut(&Finished)) -> Vec<Finished> {
        let mut finished: Vec<Finished> = Vec::new();
        let mut capacity = None;
        for row in &self.rows {
            let rate = match row.workload {
                Workload::Latency { load: Load::PerSecond(rate), .. } => Some(f64::from(rate)),
                Workload::Latency { load: Load::Percent(percent), .. } => {
                    let known = finished.iter().find(|finished| finished.row.key == CAPACITY);
                    let slowest =
                        *capacity.get_or_insert_with(|| known.map_or_else(|| self.capacity(), slowest));
                    Some(slowest * f64::from(percent) / 100.0)
                }
                _ => None,
            };
            let measured = self.measure(row, rate, self.rounds);
            show(&measured);
            finished.push(measured);
        }
        finished
    }

    /// Messages in a second through the slowest router.
    fn capacity(&self) -> f64 {
        let row = ROWS.iter().find(|row| row.key == CAPACITY).expect("it is a row");
        slowest(&self.measure(row, None, 3.min(self.rounds)))
    }

    fn measure(&self, row: &'static Row, rate: Option<f64>, rounds: usize) -> Finished {
        let outcome = |library: &Library| match (library.takes_part)(row.workload) {
            true => Outcome::Measured(Vec::new()),
            false => Outcome::Nothing,
        };
        let mut outcomes: Vec<_> =
            self.libraries.iter().map(|&library| (library, outcome(library))).collect();
        for _ in 0..rounds {
            for (library, outcome) in &mut outcomes {
                let Outcome::Measured(results) = outcome else { continue };
                match repeat(library, row, &self.scale, rate) {
                    Ok(Some(measured)) => results.push(measured),
                    Ok(None) => *outcome = Outcome::Nothing,
                    Err(fault) => *outcome = Outcome::Failed(fault),
                }
            }
        }
        Finished { row, outcomes, arrivals_per_second: rate }
    }
}

fn slowest(finished: &Finished) -> f64 {
    let nanos =
        finished.outcomes.iter().filter_map(|(_, outcome)| outcome.summary()).map(|summary| summary.median);
    1e9 / nanos.fold(1.0, f64::max)
}

/// One repetition, in a process of its own.
fn repeat(
    library: &Library,
    row: &Row,
    scale: &Scale,
    rate: Option<f64>,
) -> Result<Option<Repetition>, String> {
    let this = std::env::current_exe().map_err(|error| format!("who am I: {error}"))?;
    let rate = rate.unwrap_or(scale.arrivals_per_second).to_string();
    let mut child = Command::new(this)
        .args([REPETITION, library.name, row.key, scale.name, &rate])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("no process: {error}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| format!("lost: {error}"))? {
            Some(status) => break status,
            None if start.elapsed() > SOON => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("not over after {SOON:?}"));
            }
            None => thread::sleep(LOOK_EVERY),
        }
    };
    let read = |stream: Option<&mut dyn Read>| {
        let mut text = String::new();
        stream.map(|stream| stream.read_to_string(&mut text));
        text
    };
    let said = read(child.stdout.as_mut().map(|stream| stream as &mut dyn Read));
    if !status.success() {
        let complaint = read(child.stderr.as_mut().map(|stream| stream as &mut dyn Read));
        return Err(format!("{status}: {}", complaint.trim()));
    }
    // A library may print lines of its own; ours is the last.
    let line = said.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("{line:?} is no result: {error}"))
}

/// What this program does as a repetition: runs it and prints one line of JSON.
pub fn repetition(mut words: impl Iterator<Item = String>) -> ExitCode {
    let mut word = || words.next().unwrap_or_default();
    let (library, key, scale, rate) = (word(), word(), word(), word());
    let library = Library::named(&library);
    let row = ROWS.iter().find(|row| row.key == key);
    let (Some(library), Some(row), Some(mut scale)) = (library, row, Scale::named(&scale)) else {
        eprintln!("{REPETITION} is for the runner: {REPETITION} <library> <workload> <scale> <rate>");
        return ExitCode::from(2);
    };
    scale.arrivals_per_second = rate.parse().unwrap_or(scale.arrivals_per_second);
    let measured = (library.run)(row.workload, &scale);
    let found = measured.map(|measured| Repetition { measured, peak: peak(), page_faults: page_faults() });
    println!("{}", serde_json::to_string(&found).expect("numbers can be written"));
    io::stdout().flush().expect("the runner listens");
    // What still runs has nothing left to do.
    std::process::exit(0)
}

/// The middle of several rounds, and how far they lie apart.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Summary {
    pub median: f64,
    /// The quartiles; with three rounds, the least and the most.
    pub low: f64,
    pub high: f64,
}

impl Summary {
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        Some(Self {
            median: values[values.len() / 2],
            low: values[values.len() / 4],
            high: values[last - values.len() / 4],
        })
    }

    /// Half the distance between the quartiles, in percent of the median.
    pub fn spread(self) -> f64 {
        50.0 * (self.high - self.low) / self.median
    }
}

impl Outcome {
    /// Nanoseconds or bytes.
    pub fn summary(&self) -> Option<Summary> {
        self.summary_of(|found| match &found.measured {
            Measured::Nanos(value) | Measured::Bytes(value) => Some(*value),
            Measured::Latency(_) => None,
        })
    }

    /// Nanoseconds at the quantile of this place in [`QUANTILES`](crate::latency::QUANTILES).
    pub fn latency(&self, quantile: usize) -> Option<Summary> {
        self.summary_of(|found| match &found.measured {
            Measured::Latency(values) => values.get(quantile).copied(),
            Measured::Nanos(_) | Measured::Bytes(_) => None,
        })
    }

    /// The most memory that was in use, in bytes.
    pub fn peak(&self) -> Option<Summary> {
        self.summary_of(|found| Some(found.peak as f64))
    }

    /// Pages that the kernel had to supply.
    pub fn page_faults(&self) -> Option<Summary> {
        self.summary_of(|found| Some(found.page_faults as f64))
    }

    fn summary_of(&self, value: impl Fn(&Repetition) -> Option<f64>) -> Option<Summary> {
        let Self::Measured(results) = self else { return None };
        Summary::of(results.iter().filter_map(value).collect())
    }
}

/// Everybody whom a selection names, or all; ours takes part always.
pub fn select(only: &[String], is_quick: bool) -> Result<(Vec<&'static Row>, Vec<&'static Library>), String> {
    let mut rows: Vec<&Row> = Vec::new();
    let mut libraries: Vec<&Library> = Vec::new();
    for name in only {
        let named_rows =
            ROWS.iter().filter(|row| row.key == name || row.key.starts_with(&format!("{name}/")));
        let named_libraries = LIBRARIES.iter().filter(|library| library.name == name);
        let before = rows.len() + libraries.len();
        rows.extend(named_rows);
        libraries.extend(named_libraries);
        if rows.len() + libraries.len() == before {
            return Err(format!("{name:?} is neither a workload nor a library: see --list"));
        }
    }
    let all_rows = rows.is_empty();
    let is_meant = |row: &&Row| match all_rows {
        true => row.is_quick || !is_quick,
        false => rows.iter().any(|meant| meant.key == row.key),
    };
    let all_libraries = libraries.is_empty();
    let takes_part = |library: &&Library| {
        all_libraries
            || library.name == crate::library::OURS
            || libraries.iter().any(|meant| meant.name == library.name)
    };
    Ok((ROWS.iter().filter(is_meant).collect(), LIBRARIES.iter().filter(takes_part).collect()))
}
