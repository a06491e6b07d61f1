//! The checks of actors that nodes have made on each other (D18): what their parents were told, compared with what the nodes of
//! the actors have seen.
//!
//! - A child ends once at its parent, and only if it was made. Its name is free when the parent is told.
//! - When all is quiet, a child that has not ended has its actor, which takes messages; and an actor there has its child. The child
//!   of a start that the actor's node has declared down, or that has ended, has no actor.
//! - A state that is dropped was told of the restart or the end.
//! - An actor is restarted as often as its parent has restarted the child; less often, if its creation has failed: an actor that
//!   is not there is not restarted.
//! - The messages of a parent come to the actor in their order, each at most once, and so do those of the actor to its watcher.
//! - No message of the actor comes behind the notice of its end; without loss none of its last ones is missing (D9).

use crate::checker::{Child, Event, Log, Start, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

impl fmt::Display for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "child {} of {}", self.number, self.by)
    }
}

/// The life of a child, as all logs tell it.
#[derive(Default)]
struct Life {
    is_deployed: bool,
    /// The ends that a watcher at the parent's node was told of, and those among them that came behind the last look.
    ends: usize,
    late_ends: usize,
    /// The parent was told of the end.
    is_name_free: bool,
    /// The failures of its creation that were judged here, and those that came about there.
    failed_creations: u64,
    /// The restarts of the child, and the number of its last message, if it lives.
    lives_here: Option<(u64, u64)>,
    restarts_there: u64,
    lives_there: usize,
    /// The numbers of its messages, by the start of the node that got them.
    got: BTreeMap<Start, Vec<u64>>,
    /// The numbers of the messages that it has sent to its watcher, and of those that the watcher has got.
    sent: BTreeSet<u64>,
    watcher_got: Vec<u64>,
    /// The first that the watcher has got behind the notice of the end.
    late: Option<u64>,
}

/// Checks the logs of all starts.
pub fn check_children(logs: &[Log]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut fault = |text: String| violations.push(Violation { promise: "D18", text });
    let lives = lives(logs, &mut fault);
    for (child, life) in &lives {
        check_child(logs, *child, life, &mut fault);
    }
    let late = |(child, life): (&Child, &Life)| {
        let text = format!("message {} of {child} came behind the notice of its end", life.late?);
        Some(Violation { promise: "D9", text })
    };
    violations.extend(lives.iter().filter_map(late));
    violations
}

/// Checks the logs of starts between which nothing was lost and that have all ended in order: the watcher of a child has got all
/// its messages.
pub fn check_last_messages(logs: &[Log]) -> Vec<Violation> {
    let missing = |(child, life): (Child, Life)| {
        let got = life.watcher_got.into_iter().collect();
        let missing: Vec<u64> = life.sent.difference(&got).copied().collect();
        let text = format!("the messages {missing:?} of {child} are missing");
        (!missing.is_empty()).then_some(Violation { promise: "D9", text })
    };
    lives(logs, &mut |_| {}).into_iter().filter_map(missing).collect()
}

/// Sorts the events by children.
fn lives(logs: &[Log], fault: &mut impl FnMut(String)) -> BTreeMap<Child, Life> {
    let mut lives: BTreeMap<Child, Life> = BTreeMap::new();
    for log in logs {
        for event in &log.events {
            match *event {
                Event::Deployed { child } => lives.entry(child).or_default().is_deployed = true,
                Event::CreationJudged { child } | Event::CreationFailed { child } => {
                    lives.entry(child).or_default().failed_creations += 1;
                }
                Event::ChildEnded { child } => {
                    let life = lives.entry(child).or_default();
                    life.ends += 1;
                    life.late_ends += usize::from(life.lives_here.is_some());
                }
                Event::NameFreed { child } => lives.entry(child).or_default().is_name_free = true,
                Event::NameTaken { child } if lives.entry(child).or_default().is_name_free => {
                    fault(format!("{child} has its name still, though its parent was told of the end"));
                }
                Event::ChildLives { child, restarts, last } => {
                    lives.entry(child).or_default().lives_here = Some((restarts, last));
                }
                Event::StateMade { child, is_restart } => {
                    lives.entry(child).or_default().restarts_there += u64::from(is_restart);
                }
                Event::WorkerGot { child, number } => {
                    lives.entry(child).or_default().got.entry(log.start).or_default().push(number);
                }
                Event::WorkerSent { child, number } => {
                    lives.entry(child).or_default().sent.insert(number);
                }
                Event::WatcherGot { child, number } => {
                    let life = lives.entry(child).or_default();
                    life.watcher_got.push(number);
                    if life.ends > 0 {
                        life.late.get_or_insert(number);
                    }
                }
                Event::StateDropped { child, is_told: false } if !log.is_cut_off => {
                    fault(format!("the state of {child} at {} was dropped untold", log.start));
                }
                Event::WorkerLives { child } => {
                    lives.entry(child).or_default().lives_there += 1;
                    if is_down(log, child.by) {
                        fault(format!(
                            "{child} lives at {}, which has declared its parent's node down",
                            log.start
                        ));
                    }
                }
                _ => {}
            }
        }
    }
    lives
}

fn is_down(log: &Log, of: Start) -> bool {
    log.events.contains(&Event::Down { of })
}

fn check_child(logs: &[Log], child: Child, life: &Life, fault: &mut impl FnMut(String)) {
    let by = logs.iter().find(|log| log.start == child.by);
    if by.is_none_or(|log| log.is_cut_off) {
        // The log of its last moments is unknown. A killed process has no living children.
        if life.lives_there > 0 {
            fault(format!("{child} has an actor, though the process of its parent has ended"));
        }
        return;
    }
    if !life.is_deployed {
        fault(format!("{child} was never made"));
    }
    if life.ends > 1 || life.ends == 0 && life.lives_here.is_none() {
        fault(format!("{child} has ended {} times", life.ends));
    }
    if life.lives_here.is_some() && life.ends > life.late_ends {
        fault(format!("{child} has ended, and is a child still"));
    }
    match (life.lives_here, life.lives_there) {
        (Some(_), 1) | (None, 0) => {}
        (Some(_), count) => fault(format!("{child} lives, and has {count} actors that take its messages")),
        (None, count) => fault(format!("{child} has ended, and {count} actors of it live")),
    }
    if let Some((restarts, last)) = life.lives_here {
        let there = life.restarts_there;
        if there > restarts || life.failed_creations == 0 && there < restarts {
            fault(format!("{child} was restarted {restarts} times, and its actor {there} times"));
        }
        if !life.got.values().flatten().any(|number| *number == last) {
            fault(format!("message {last} never came to {child}"));
        }
    }
    for numbers in life.got.values().chain([&life.watcher_got]) {
        let seen: BTreeSet<&u64> = numbers.iter().collect();
        if seen.len() < numbers.len() || !numbers.is_sorted() {
            fault(format!("the messages of {child} came as {numbers:?}"));
        }
    }
}
