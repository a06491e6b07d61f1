//! The tables of `docs/scaling.md`.

use crate::machine::Machine;
use crate::pairs::PAIRS;
use crate::paths::shared_queue::Claim;
use crate::workload::{Library, Outcome, Scenario, Workload};
use std::fmt::Write;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Routees of the routers of `benches/peers`, and its workers.
const ROUTEES: usize = 8;
const WORKERS: usize = 2;

/// Messages of a run on two cores, where threads have turns, and of a prediction. Threads that wait for a lock sleep for
/// a millisecond, and need a longer run.
const MESSAGES: u64 = 500_000;
const PREDICTED_MESSAGES: u64 = 40_000;
const LOCK_MESSAGES: u64 = 250_000;

const OURS: Library = Library::Pointsman(Claim::Exchange);

/// A workload on two cores, and what `benches/peers` measured on the machine of the constants, in nanoseconds for each
/// message: for the library and for kanal; 0 where kanal has no such row.
type Row = (&'static str, Workload, usize, [f64; 2]);

const ROWS: &[Row] = &[
    ("`to-one/1`", Workload::ToOne, 1, [23.7, 25.5]),
    ("`to-one/2`", Workload::ToOne, 2, [43.2, 25.2]),
    ("`to-one/4`", Workload::ToOne, 4, [49.5, 26.2]),
    ("`to-one/16`", Workload::ToOne, 16, [55.7, 28.9]),
    ("`routed/1`", Workload::RoundRobin, 1, [77.4, 34.0]),
    ("`routed/2`", Workload::RoundRobin, 2, [76.9, 39.9]),
    ("`routed/4`", Workload::RoundRobin, 4, [73.1, 41.8]),
    ("`routed/16`", Workload::RoundRobin, 16, [72.8, 41.0]),
    ("`least-loaded/1`", Workload::SmallestMailbox, 1, [88.6, 0.0]),
    ("`least-loaded/4`", Workload::SmallestMailbox, 4, [110.0, 0.0]),
    ("`shared-queue/1`", Workload::SharedQueue, 1, [53.9, 31.1]),
    ("`shared-queue/4`", Workload::SharedQueue, 4, [48.6, 31.3]),
];

/// Runs all scenarios, two at a time.
fn run_all(machine: &Machine, scenarios: &[Scenario]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let run = || -> Vec<(usize, Outcome)> {
        let numbers = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        numbers.map_while(|number| Some((number, scenarios.get(number)?.run(machine)))).collect()
    };
    let mut outcomes = thread::scope(|scope| {
        let other = scope.spawn(run);
        let mut outcomes = run();
        outcomes.extend(other.join().expect("a run ends"));
        outcomes
    });
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The model beside the measurement of two threads that disturb each other.
pub fn pairs(machine: &Machine, measured: [f64; PAIRS.len()]) -> String {
    let mut table = "| two threads that | model | measured |\n|---|--:|--:|".to_owned();
    for ((pair, name), measured) in PAIRS.into_iter().zip(measured) {
        write!(table, "\n| {name} | {:.0} | {measured:.0} |", pair.simulate(machine)).expect("a string");
    }
    table
}

/// The model beside the measurement, on two cores.
pub fn two_cores(machine: &Machine) -> String {
    let run = |library, messages| {
        let scenario = |(_, workload, senders, _): &Row| Scenario {
            workload: *workload,
            library,
            cores: 2,
            senders: *senders,
            workers: WORKERS,
            targets: if *workload == Workload::ToOne { 1 } else { ROUTEES },
            messages,
            seed: 0,
        };
        run_all(machine, &ROWS.iter().map(scenario).collect::<Vec<_>>())
    };
    let (ours, lock) = (run(OURS, MESSAGES), run(Library::Lock, LOCK_MESSAGES));
    let mut table =
        "| row | model | measured | off | a lock: model | measured | off |\n|---|--:|--:|--:|--:|--:|--:|"
            .to_owned();
    for (((name, _, _, measured), ours), lock) in ROWS.iter().zip(ours).zip(lock) {
        write!(table, "\n| {name} |").expect("a string");
        for (Outcome { nanoseconds, .. }, measured) in [ours, lock].into_iter().zip(measured) {
            let (shown, off) = match measured {
                0.0 => ("–".to_owned(), "–".to_owned()),
                measured => {
                    (format!("{measured:.0}"), format!("{:+.0} %", (nanoseconds / measured - 1.0) * 100.0))
                }
            };
            write!(table, " {nanoseconds:.0} | {shown} | {off} |").expect("a string");
        }
    }
    table
}

/// The prediction for more cores, each of which has one thread; also for a machine with lines that move half as fast.
pub fn more_cores(machine: &Machine) -> String {
    let additions = Library::Pointsman(Claim::Addition);
    let mut cases = Vec::new();
    for (name, workload, library) in [
        ("N to one", Workload::ToOne, OURS),
        ("N to one, a lock", Workload::ToOne, Library::Lock),
        ("N to one, a mailbox for each sender", Workload::ToOne, OURS),
        ("round robin", Workload::RoundRobin, OURS),
        ("round robin, a lock", Workload::RoundRobin, Library::Lock),
        ("smallest mailbox", Workload::SmallestMailbox, OURS),
        ("smallest mailbox, a lock", Workload::SmallestMailbox, Library::Lock),
        ("shared queue", Workload::SharedQueue, OURS),
        ("shared queue with additions", Workload::SharedQueue, additions),
        ("shared queue, a lock", Workload::SharedQueue, Library::Lock),
    ] {
        for cores in [2, 16, 64] {
            let workers = if workload == Workload::ToOne { 1 } else { cores / 2 };
            let senders = cores - workers;
            let targets = match workload {
                Workload::ToOne if name.ends_with("sender") => senders,
                // A routee for each worker.
                _ => workers,
            };
            let is_lock = library == Library::Lock;
            let messages = if is_lock { LOCK_MESSAGES } else { PREDICTED_MESSAGES };
            cases.push((
                name,
                Scenario { workload, library, cores, senders, workers, targets, messages, seed: 0 },
            ));
        }
    }
    let scenarios: Vec<Scenario> = cases.iter().map(|(_, scenario)| *scenario).collect();
    let slower = machine.with_slower_lines(2.0);
    let [outcomes, slower] = [machine, &slower].map(|machine| run_all(machine, &scenarios));
    let mut table =
        "| workload | cores | senders, workers | ns | moves | ns where lines take twice as long |\n\
                     |---|--:|--:|--:|--:|--:|"
            .to_owned();
    for (((name, scenario), Outcome { nanoseconds, moves }), slower) in cases.iter().zip(outcomes).zip(slower)
    {
        let Scenario { cores, senders, workers, .. } = scenario;
        let slower = slower.nanoseconds;
        let figures = format!("{nanoseconds:.0} | {moves:.1} | {slower:.0}");
        write!(table, "\n| {name} | {cores} | {senders}, {workers} | {figures} |").expect("a string");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{more_cores, two_cores};
    use crate::machine::XEON;

    #[test]
    fn the_tables_of_the_guide_are_those_of_the_model() {
        let guide = include_str!("../../../docs/scaling.md");
        for table in [two_cores(&XEON), more_cores(&XEON)] {
            assert!(guide.contains(&table), "docs/scaling.md lacks\n{table}");
        }
    }
}
