//! The model of `docs/scaling.md`: its tables are what this computes.
//!
//! Senders send one message after the other. A line that several of them change serves one at a time, so it is a
//! station with a queue; what a sender does meanwhile on lines of its own is a delay. Of such a closed network the
//! *mean value analysis* (Reiser and Lavenberg, 1980) gives the time that a message takes its sender.

use std::fmt::Write;

/// One read-modify-write on a line that is there, in ns: measured, 9 to 11.
const CHANGE: f64 = 10.0;

/// What else a routed `tell` does: about half of the 45 ns of the benchmark `logics`, which counts the handler too.
const ROUTED_TELL: f64 = 20.0;

/// How much of that is the choice.
const CHOICE: f64 = 10.0;

/// Slots of 24 bytes on a line of 64: who takes messages in a row moves the line once for all of them.
const LINES_PER_TAKEN_MESSAGE: f64 = 24.0 / 64.0;

/// Lines that a message's sender changes, of which each message takes one.
struct Lines {
    /// Messages spread evenly over so many.
    count: usize,
    /// How long one message holds it, in ns, if no line moves.
    work: f64,
    /// How many lines move, if another sender was the last to change it.
    moves: f64,
}

/// A way to route.
struct Design {
    name: String,
    /// What a sender does alone, in ns.
    alone: f64,
    /// Lines that move to a sender while nobody has to wait for it.
    moves_aside: f64,
    shared: Vec<Lines>,
    /// What one thread does for each message of all senders: work in ns, and lines that move.
    thread: (f64, f64),
}

/// The word of a mailbox: read, then changed, which may move the line twice.
fn mailboxes(count: usize) -> Lines {
    Lines { count, work: CHANGE, moves: 2.0 }
}

fn designs() -> Vec<Design> {
    let routed = |routees: usize| Design {
        name: format!("routed, {routees} routees"),
        alone: ROUTED_TELL,
        // The slot's neighbours are other senders'.
        moves_aside: 1.0,
        shared: vec![mailboxes(routees)],
        thread: (0.0, 0.0),
    };
    let counter = Lines { count: 1, work: CHANGE, moves: 1.0 };
    let exact = Design { name: "exact, 64".to_owned(), shared: vec![counter, mailboxes(64)], ..routed(64) };
    let actor = Design {
        name: "router actor, 64".to_owned(),
        alone: ROUTED_TELL - CHOICE,
        shared: vec![mailboxes(1)],
        // Takes the message, chooses, pushes.
        thread: (ROUTED_TELL + CHANGE, LINES_PER_TAKEN_MESSAGE),
        ..routed(64)
    };
    // The lock's line, and under it the mailbox's and the slot's.
    let held = Lines { count: 1, work: CHANGE + CHOICE + CHANGE, moves: 1.0 + 2.0 + 1.0 };
    let lock = Design {
        name: "a lock, 64".to_owned(),
        alone: ROUTED_TELL - CHOICE,
        moves_aside: 0.0,
        shared: vec![held],
        ..routed(64)
    };
    vec![routed(8), routed(64), exact, actor, lock]
}

impl Design {
    /// What a message takes its sender, in ns, where `senders` send; a line moves in so many ns.
    fn time(&self, senders: usize, line_moves_in: f64) -> f64 {
        // Of so many the last one to change a line was mostly another.
        let moves = |lines: f64| lines * line_moves_in * (senders - 1) as f64 / senders as f64;
        let delay = self.alone + moves(self.moves_aside);
        let service: Vec<f64> = self.shared.iter().map(|lines| lines.work + moves(lines.moves)).collect();
        let mut queued = vec![0.0; service.len()];
        let mut time = 0.0;
        for present in 1..=senders {
            // Who arrives finds what one sender fewer would leave there.
            let stays: Vec<f64> =
                service.iter().zip(&queued).map(|(time, queue)| time * (1.0 + queue)).collect();
            time = delay + stays.iter().sum::<f64>();
            let rate = present as f64 / time;
            queued = stays
                .iter()
                .zip(&self.shared)
                .map(|(stay, lines)| rate * stay / lines.count as f64)
                .collect();
        }
        let (work, lines) = self.thread;
        // A thread in the middle reads lines that senders wrote, however few they are.
        time.max((work + lines * line_moves_in) * senders as f64)
    }
}

/// The table for lines that move in so many ns.
fn table(line_moves_in: f64) -> String {
    let designs = designs();
    let mut table = "| senders |".to_owned();
    designs.iter().for_each(|design| write!(table, " {} |", design.name).expect("a string"));
    table.push_str("\n|--:|");
    designs.iter().for_each(|_| table.push_str("--:|"));
    let mut row = |name: &str, value: &dyn Fn(&Design) -> String| {
        write!(table, "\n| {name} |").expect("a string");
        designs.iter().for_each(|design| write!(table, " {} |", value(design)).expect("a string"));
    };
    for senders in [1, 2, 4, 8, 16, 32, 64] {
        row(&senders.to_string(), &|design| format!("{:.0}", design.time(senders, line_moves_in)));
    }
    row("the 64th adds", &|design| {
        format!("{:.1}", design.time(64, line_moves_in) - design.time(63, line_moves_in))
    });
    row("M/s at 64", &|design| format!("{:.0}", 64e3 / design.time(64, line_moves_in)));
    table
}

#[test]
fn the_tables_of_the_guide_are_those_of_the_model() {
    let guide = include_str!("../../docs/scaling.md");
    for line_moves_in in [12.0, 80.0] {
        let table = table(line_moves_in);
        assert!(guide.contains(&table), "docs/scaling.md lacks\n{table}");
    }
}

#[test]
fn one_line_serves_one_at_a_time() {
    let line = Lines { count: 1, work: 7.0, moves: 0.0 };
    let design =
        Design { name: String::new(), alone: 0.0, moves_aside: 0.0, shared: vec![line], thread: (0.0, 0.0) };
    assert!(
        [1, 2, 64].iter().all(|senders| (design.time(*senders, 80.0) - 7.0 * *senders as f64).abs() < 1e-9)
    );
}

#[test]
fn routing_beats_what_has_a_line_in_common_even_if_only_our_lines_are_slow() {
    let designs = designs();
    let ours = designs[1].time(64, 80.0);
    assert!(designs[2..].iter().all(|other| other.time(64, 12.0) > 1.5 * ours));
}
