//! The checker of histories: what the nodes of a cluster have seen, compared with what is promised.
//!
//! Each start of a node writes a log: what its actors have sent, got and been told, in the order in which the node saw it. No
//! clock is shared between logs, so the checker works for a simulation and for processes alike. It knows nothing of how
//! messages go from node to node, and finds:
//!
//! | number | promise |
//! |---|---|
//! | D1 | what was accepted is delivered, or is in the account of the link: lost, refused there, in doubt, or a dead letter here |
//! | D2 | the ledger of each node balances |
//! | D3 | the messages of a sender come in the order in which they were sent, and each at most once |
//! | D4 | a message is delivered to the incarnation that it was sent to, and was sent |
//! | D8 | each live watch is told of the end once |
//! | D9 | no message of an actor comes behind the notice of its end; without loss none of its last ones is missing |
//! | D10 | nothing is delivered between two UIDs of which one has declared the other down |
//! | D18 | an actor that a node has made on another one: see `checker_children.rs` |
//! | asks | each ask ends once; a reply is that of the ask's own handler |

use crate::checker_children::check_children;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One start of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Start {
    /// The number of the node, for its name.
    pub node: u32,
    /// The UID of its start.
    pub uid: u64,
}

/// An incarnation of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    pub start: Start,
    /// The number of the actor's path.
    pub place: u32,
    /// The uid of the actor.
    pub uid: u32,
}

/// An actor that a node has made on another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Child {
    /// The start of the node that has made it.
    pub by: Start,
    /// No other child of any node has this number.
    pub number: u64,
}

/// The end of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The reply has the number of this ask.
    Reply { of: u64 },
    /// The asker has got an error.
    Failed,
}

/// An event in the log of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An actor of this node has sent a numbered message. Numbers of a pair rise. Refused messages come back, or are dead
    /// letters at once.
    Sent {
        from: Incarnation,
        to: Incarnation,
        number: u64,
        accepted: bool,
    },
    /// The actor `at` of this node has got a message that was sent to `to`.
    Delivered {
        at: Incarnation,
        from: Incarnation,
        to: Incarnation,
        number: u64,
    },
    /// An actor of this node watches another one from now on.
    Watched {
        watcher: Incarnation,
        target: Incarnation,
    },
    Unwatched {
        watcher: Incarnation,
        target: Incarnation,
    },
    /// The watcher was told.
    Terminated {
        watcher: Incarnation,
        target: Incarnation,
        node_down: bool,
    },
    /// An actor of this node has ended, behind all that it sends.
    Ended {
        actor: Incarnation,
    },
    Asked {
        asker: Incarnation,
        to: Incarnation,
        ask: u64,
    },
    /// The actor has got an ask and answers it.
    AskHandled {
        at: Incarnation,
        ask: u64,
    },
    AskEnded {
        ask: u64,
        outcome: Outcome,
    },
    /// A parent of this node has made a child on another node.
    Deployed {
        child: Child,
    },
    /// The parent has judged a failure of the child's creation.
    CreationJudged {
        child: Child,
    },
    /// A watcher of this node was told of the end of the child.
    ChildEnded {
        child: Child,
    },
    /// The parent was told of the end of the child.
    NameFreed {
        child: Child,
    },
    /// The parent could make no child, since this one has the name.
    NameTaken {
        child: Child,
    },
    /// A child of a parent of this node when all was quiet, with its restarts, and the number of the last message for it.
    ChildLives {
        child: Child,
        restarts: u64,
        last: u64,
    },
    /// An actor of this node that another one has made has a state: its first one, or another one after a restart.
    StateMade {
        child: Child,
        is_restart: bool,
    },
    /// The actor has no new state: its creation has failed.
    CreationFailed {
        child: Child,
    },
    /// The actor has got the message of this number.
    WorkerGot {
        child: Child,
        number: u64,
    },
    /// The actor has sent the message of this number to the watcher of the child, at the node of its parent.
    WorkerSent {
        child: Child,
        number: u64,
    },
    /// The watcher has got it.
    WatcherGot {
        child: Child,
        number: u64,
    },
    /// A state was dropped. `is_told`: it was told of the restart or the end before.
    StateDropped {
        child: Child,
        is_told: bool,
    },
    /// The actor was there when all was quiet, and handled messages.
    WorkerLives {
        child: Child,
    },
    /// This node has declared another one down.
    Down {
        of: Start,
    },
    /// The account of this start when all was quiet, or at its orderly end.
    Books {
        balance: i64,
    },
    /// The account of the link from this start to another: cumulative, when all was quiet or the link has ended.
    Link {
        to: Start,
        account: Account,
    },
    /// So many envelopes of another start were taken in here, delivered or refused.
    Received {
        from: Start,
        envelopes: u64,
        refused: u64,
    },
}

/// The account of a link, in envelopes that are messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    pub queued: u64,
    pub shipped: u64,
    pub confirmed: u64,
    pub lost: u64,
    pub in_doubt: u64,
    /// Accepted, and a dead letter here, since the link has ended.
    pub dead_here: u64,
}

/// The log of one start of a node.
#[derive(Debug, Clone)]
pub struct Log {
    /// The number of the process. A process whose node takes a new UID has a log for each.
    pub process: usize,
    pub start: Start,
    pub events: Vec<Event>,
    /// The process was killed: what it would have told later is unknown.
    pub is_cut_off: bool,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The number of the promise, as `D3`, or its name.
    pub promise: &'static str,
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.text)
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}:{:x}", self.node, self.uid)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.start, self.place, self.uid)
    }
}

/// A sender and a receiver.
type Pair = (Incarnation, Incarnation);

/// The logs, sorted for the checks.
struct History<'l> {
    logs: &'l [Log],
    violations: BTreeSet<Violation>,
    /// The numbers that were accepted.
    accepted: BTreeMap<Pair, BTreeSet<u64>>,
    /// All numbers that were sent, accepted or not: a number that was refused is delivered never.
    refused: BTreeMap<Pair, BTreeSet<u64>>,
    /// In the order of the receiver.
    delivered: BTreeMap<Pair, Vec<u64>>,
    accounts: BTreeMap<(Start, Start), Account>,
    received: BTreeMap<(Start, Start), (u64, u64)>,
    /// The first is known to have declared the second down.
    downs: BTreeSet<(Start, Start)>,
}

/// Checks the logs of all starts. An empty list: all promises were kept.
pub fn check(logs: &[Log]) -> Vec<Violation> {
    let mut history = History {
        logs,
        violations: BTreeSet::new(),
        accepted: BTreeMap::new(),
        refused: BTreeMap::new(),
        delivered: BTreeMap::new(),
        accounts: BTreeMap::new(),
        received: BTreeMap::new(),
        downs: BTreeSet::new(),
    };
    history.sort();
    history.books();
    history.links();
    history.deliveries();
    history.ends();
    history.watches();
    history.downs();
    history.asks();
    history.violations.extend(check_children(logs));
    history.violations.into_iter().collect()
}

impl<'l> History<'l> {
    fn violation(&mut self, promise: &'static str, text: impl Into<String>) {
        self.violations.insert(Violation { promise, text: text.into() });
    }

    /// The logs of each process, in their order.
    fn processes(&self) -> Vec<Vec<&'l Log>> {
        let mut processes: BTreeMap<usize, Vec<&'l Log>> = BTreeMap::new();
        for log in self.logs {
            processes.entry(log.process).or_default().push(log);
        }
        processes.into_values().collect()
    }

    fn log(&self, start: Start) -> Option<&Log> {
        self.logs.iter().find(|log| log.start == start)
    }

    fn sort(&mut self) {
        for log in self.logs {
            for event in &log.events {
                match *event {
                    Event::Sent { from, to, number, accepted } => {
                        let side = if accepted { &mut self.accepted } else { &mut self.refused };
                        side.entry((from, to)).or_default().insert(number);
                    }
                    Event::Delivered { from, to, number, .. } => {
                        self.delivered.entry((from, to)).or_default().push(number);
                    }
                    // The last one is the final one: the sums only rise.
                    Event::Link { to, account } => _ = self.accounts.insert((log.start, to), account),
                    Event::Received { from, envelopes, refused } => {
                        self.received.insert((from, log.start), (envelopes, refused));
                    }
                    Event::Down { of } => _ = self.downs.insert((log.start, of)),
                    _ => {}
                }
            }
        }
    }

    /// D2.
    fn books(&mut self) {
        for log in self.logs {
            for event in &log.events {
                if let Event::Books { balance } = event {
                    if *balance != 0 {
                        self.violation("D2", format!("the ledger of {} is off by {balance}", log.start));
                    }
                }
            }
        }
    }

    /// D1, for each link: the account adds up, and fits to what was sent here and delivered there.
    fn links(&mut self) {
        for ((from, to), account) in self.accounts.clone() {
            let Account { queued, shipped, confirmed, lost, in_doubt, dead_here } = account;
            let link = format!("the link {from} -> {to} ({account:?})");
            if shipped != confirmed + lost + in_doubt {
                self.violation("D1", format!("{link}: shipped is not confirmed + lost + in doubt"));
            }
            let between = |pairs: &BTreeMap<Pair, BTreeSet<u64>>| -> u64 {
                let of_link = |pair: &Pair| pair.0.start == from && pair.1.start == to;
                pairs.iter().filter(|(pair, _)| of_link(pair)).map(|(_, numbers)| numbers.len() as u64).sum()
            };
            let accepted = between(&self.accepted);
            if accepted != queued + shipped + dead_here {
                self.violation(
                    "D1",
                    format!("{link}: {accepted} were accepted, not queued + shipped + dead here"),
                );
            }
            let of_link = |pair: &Pair| pair.0.start == from && pair.1.start == to;
            let delivered: u64 = self
                .delivered
                .iter()
                .filter(|(pair, _)| of_link(pair))
                .map(|(_, numbers)| numbers.len() as u64)
                .sum();
            match self.received.get(&(from, to)) {
                Some(&(envelopes, refused)) => {
                    if delivered + refused != envelopes {
                        self.violation(
                            "D1",
                            format!(
                                "{link}: {envelopes} came, {delivered} were delivered and {refused} refused"
                            ),
                        );
                    }
                    if envelopes < confirmed || envelopes > confirmed + in_doubt {
                        self.violation(
                            "D1",
                            format!("{link}: {envelopes} came, beyond what is confirmed or in doubt"),
                        );
                    }
                }
                // The receiver was killed, and may have had more than it has told of.
                None if delivered > confirmed + in_doubt => {
                    self.violation(
                        "D1",
                        format!("{link}: {delivered} were delivered, more than were in doubt"),
                    );
                }
                None => {}
            }
        }
    }

    /// D3 and D4.
    fn deliveries(&mut self) {
        for log in self.logs {
            for event in &log.events {
                let Event::Delivered { at, from, to, number } = *event else { continue };
                if at != to {
                    self.violation(
                        "D4",
                        format!("message {number} of {from} for {to} was delivered to {at}"),
                    );
                }
                if at.start != log.start {
                    self.violation("D4", format!("{at} is no actor of {}", log.start));
                }
                if self.refused.get(&(from, to)).is_some_and(|refused| refused.contains(&number)) {
                    self.violation(
                        "D4",
                        format!("message {number} of {from} for {to} was refused and delivered"),
                    );
                }
                // The log of a killed process may lack its last lines.
                let is_known = self.log(from.start).is_some_and(|log| !log.is_cut_off);
                let is_sent = self.accepted.get(&(from, to)).is_some_and(|sent| sent.contains(&number));
                if is_known && !is_sent {
                    self.violation("D4", format!("message {number} of {from} for {to} was never sent"));
                }
            }
        }
        for ((from, to), numbers) in self.delivered.clone() {
            for pair in numbers.windows(2) {
                match pair[0].cmp(&pair[1]) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => {
                        self.violation("D3", format!("message {} of {from} came to {to} twice", pair[0]));
                    }
                    std::cmp::Ordering::Greater => self.violation(
                        "D3",
                        format!("message {} of {from} came to {to} behind message {}", pair[1], pair[0]),
                    ),
                }
            }
        }
    }

    /// Whether the link has lost nothing, as its sender knows for sure.
    fn is_lossless(&self, from: Start, to: Start) -> bool {
        let refused = self.received.get(&(from, to)).is_some_and(|(_, refused)| *refused > 0);
        let account = self.accounts.get(&(from, to)).filter(|_| !refused);
        account
            .is_some_and(|account| account.lost + account.in_doubt + account.queued + account.dead_here == 0)
    }

    /// D9.
    fn ends(&mut self) {
        for logs in self.processes() {
            let mut told: BTreeSet<(Incarnation, Incarnation)> = BTreeSet::new();
            for event in logs.iter().flat_map(|log| &log.events) {
                match *event {
                    Event::Terminated { watcher, target, node_down } => {
                        told.insert((watcher, target));
                        // Messages that a node refuses, since the actor has ended there, are not missing.
                        if !node_down && self.is_lossless(target.start, watcher.start) {
                            let pair = (target, watcher);
                            let before = delivered_before(&logs, event, pair);
                            let sent = self.accepted.get(&pair).cloned().unwrap_or_default();
                            let missing: Vec<u64> = sent.difference(&before).copied().collect();
                            if !missing.is_empty() {
                                self.violation(
                                    "D9",
                                    format!("{watcher} was told of the end of {target} before its messages {missing:?}"),
                                );
                            }
                        }
                    }
                    Event::Delivered { at, from, number, .. } if told.contains(&(at, from)) => self
                        .violation(
                            "D9",
                            format!("message {number} of {from} came to {at} behind the notice of its end"),
                        ),
                    _ => {}
                }
            }
        }
    }

    /// D8: each watch that was not taken back is told of once, if the target has ended or its node was declared down here.
    fn watches(&mut self) {
        let ended: BTreeSet<Incarnation> = self
            .logs
            .iter()
            .flat_map(|log| &log.events)
            .filter_map(|event| match event {
                Event::Ended { actor } => Some(*actor),
                _ => None,
            })
            .collect();
        for logs in self.processes() {
            // Whether the watch stands.
            let mut watches: BTreeMap<(Incarnation, Incarnation), bool> = BTreeMap::new();
            for event in logs.iter().flat_map(|log| &log.events) {
                match *event {
                    Event::Watched { watcher, target } => _ = watches.insert((watcher, target), true),
                    Event::Unwatched { watcher, target } => _ = watches.insert((watcher, target), false),
                    Event::Terminated { watcher, target, .. } => match watches
                        .insert((watcher, target), false)
                    {
                        Some(true) => {}
                        _ => self.violation(
                            "D8",
                            format!("{watcher} was told of the end of {target} without a watch, or again"),
                        ),
                    },
                    _ => {}
                }
            }
            let left = watches.into_iter().filter(|(_, stands)| *stands).map(|(watch, _)| watch);
            for (watcher, target) in left.collect::<Vec<_>>() {
                // A node that takes a new UID has lost all others.
                let has_rejoined = logs.last().is_some_and(|last| last.start != watcher.start);
                let is_down = self.downs.contains(&(watcher.start, target.start));
                let is_over = ended.contains(&target) || is_down || has_rejoined;
                let is_cut_off = logs.iter().any(|log| log.is_cut_off);
                if is_over && !is_cut_off && !ended.contains(&watcher) {
                    self.violation("D8", format!("{watcher} was never told of the end of {target}"));
                }
            }
        }
    }

    /// D10.
    fn downs(&mut self) {
        for log in self.logs {
            let mut down: BTreeSet<Start> = BTreeSet::new();
            for event in &log.events {
                match *event {
                    Event::Down { of } => _ = down.insert(of),
                    Event::Delivered { from, to, number, .. } if down.contains(&from.start) => self
                        .violation(
                            "D10",
                            format!(
                                "message {number} of {from} came to {to} after {} had declared its node down",
                                log.start
                            ),
                        ),
                    Event::Sent { from, to, number, accepted: true } if down.contains(&to.start) => {
                        let came = self.delivered.get(&(from, to)).is_some_and(|came| came.contains(&number));
                        if came {
                            self.violation(
                                "D10",
                                format!("message {number} of {from} came to {to}, whose node its own had declared down"),
                            );
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The promise of asks, which has no number.
    fn asks(&mut self) {
        let mut asked: BTreeMap<u64, (Incarnation, Incarnation)> = BTreeMap::new();
        let mut handled: BTreeMap<u64, Vec<Incarnation>> = BTreeMap::new();
        let mut ends: BTreeMap<u64, Vec<Outcome>> = BTreeMap::new();
        for log in self.logs {
            for event in &log.events {
                match *event {
                    Event::Asked { asker, to, ask } => _ = asked.insert(ask, (asker, to)),
                    Event::AskHandled { at, ask } => handled.entry(ask).or_default().push(at),
                    Event::AskEnded { ask, outcome } => ends.entry(ask).or_default().push(outcome),
                    _ => {}
                }
            }
        }
        for (ask, (asker, to)) in asked {
            let ends = ends.remove(&ask).unwrap_or_default();
            let is_cut_off = self.log(asker.start).is_some_and(|log| log.is_cut_off);
            if ends.len() > 1 || ends.is_empty() && !is_cut_off {
                self.violation("asks", format!("ask {ask} of {asker} has ended {} times", ends.len()));
            }
            let handled = handled.remove(&ask).unwrap_or_default();
            if handled.len() > 1 {
                self.violation("asks", format!("ask {ask} was handled {} times", handled.len()));
            }
            if let Some(other) = handled.iter().find(|at| **at != to) {
                self.violation("D4", format!("ask {ask} for {to} was handled by {other}"));
            }
            for outcome in ends {
                if let Outcome::Reply { of } = outcome {
                    let to_is_cut_off = self.log(to.start).is_some_and(|log| log.is_cut_off);
                    if of != ask || handled.is_empty() && !to_is_cut_off {
                        self.violation(
                            "asks",
                            format!("ask {ask} has got the reply of ask {of}, or of none"),
                        );
                    }
                }
            }
        }
        if self.logs.iter().any(|log| log.is_cut_off) {
            // It may have asked what it has not told of.
            return;
        }
        for ask in ends.into_keys().chain(handled.into_keys()).collect::<Vec<_>>() {
            self.violation("asks", format!("ask {ask} was never asked"));
        }
    }
}

/// The numbers of a pair that the logs have before an event.
fn delivered_before(logs: &[&Log], event: &Event, pair: Pair) -> BTreeSet<u64> {
    let before = logs.iter().flat_map(|log| &log.events).take_while(|other| !std::ptr::eq(*other, event));
    before
        .filter_map(|event| match *event {
            Event::Delivered { from, to, number, .. } if (from, to) == pair => Some(number),
            _ => None,
        })
        .collect()
}
