//! The families of numbers that exporters show: their names, kinds, labels and values, in a single list.
//!
//! Each exporter is a [`Sink`]: the text of OpenMetrics, and the recorder of the `metrics` facade.

use crate::core::dead_letter::DeadLetterReason;
use crate::telemetry::histogram::{DepthHistogram, Histogram};
use crate::telemetry::link_stats::{LinkStats, NodeStats};
use crate::telemetry::stats::{ClassStats, Stats};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Routees with samples of their own, in all routers together. A router whose routees do not fit behind those of the
/// routers before has samples of the router alone.
pub(crate) const ROUTEES_MAX: usize = 1000;

/// Routers with samples of their own.
pub(crate) const ROUTERS_MAX: usize = 1000;

/// Numbers of the same meaning, told apart by their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Family {
    /// The name, without the ending that a counter's samples have.
    pub name: &'static str,
    pub kind: FamilyKind,
    /// The unit, with which the name ends; empty for plain counts.
    pub unit: &'static str,
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    /// Never falls.
    Counter,
    Gauge,
    Histogram,
    /// A constant 1, whose labels say something.
    Info,
}

/// The value of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Count(u64),
    Time(Duration),
    Times(&'a Histogram),
    Depths(&'a DepthHistogram),
}

/// The labels of a sample.
pub(crate) type Labels<'a> = [(&'static str, &'a str)];

/// An exporter, which takes the samples. All samples of a family come in a row.
pub(crate) trait Sink {
    fn sample(&mut self, family: &Family, labels: &Labels<'_>, value: Value<'_>) -> fmt::Result;
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: FamilyKind::Counter, unit: "", help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: FamilyKind::Gauge, unit: "", help }
}

const fn histogram(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    Family { name, kind: FamilyKind::Histogram, unit, help }
}

/// Returns the label of a reason.
pub(crate) fn reason_label(reason: DeadLetterReason) -> &'static str {
    match reason {
        DeadLetterReason::Stopped => "stopped",
        DeadLetterReason::Full => "full",
        DeadLetterReason::Dropped => "dropped",
        DeadLetterReason::Unhandled => "unhandled",
        DeadLetterReason::Expired => "expired",
        DeadLetterReason::NoRoutee => "no_routee",
        DeadLetterReason::Discarded => "discarded",
        DeadLetterReason::Cycle => "cycle",
        DeadLetterReason::BadPick => "bad_pick",
        DeadLetterReason::Panicked => "panicked",
        DeadLetterReason::NoActor => "no_actor",
        DeadLetterReason::OtherType => "other_type",
        DeadLetterReason::LinkFull => "link_full",
        DeadLetterReason::NodeGone => "node_gone",
        DeadLetterReason::TooLarge => "too_large",
        DeadLetterReason::Unsendable => "unsendable",
        DeadLetterReason::UnknownType => "unknown_type",
        DeadLetterReason::Undecodable => "undecodable",
        DeadLetterReason::NotAllowed => "not_allowed",
        DeadLetterReason::LateReply => "late_reply",
        DeadLetterReason::Incomplete => "incomplete",
    }
}

/// Shows all samples of `stats` to `sink`. No two samples of a family have the same labels.
pub(crate) fn show(stats: &Stats, sink: &mut dyn Sink) -> fmt::Result {
    show_system(stats, sink)?;
    show_classes(&stats.classes, sink)?;
    show_routers(stats, sink)?;
    show_workers(stats, sink)?;
    show_stuck(stats, sink)?;
    stats.node.as_ref().map_or(Ok(()), |node| show_node(stats, node, sink))
}

fn show_system(stats: &Stats, sink: &mut dyn Sink) -> fmt::Result {
    let info = Family {
        name: "pointsman_system",
        kind: FamilyKind::Info,
        unit: "",
        help: "The name of the system.",
    };
    sink.sample(&info, &[("name", &stats.system)], Value::Count(1))?;
    let ledger = &stats.ledger;
    let sent = counter(
        "pointsman_sent",
        "Messages sent. They and those received are those of each outcome, those queued and those shipped.",
    );
    sink.sample(&sent, &[], Value::Count(ledger.sent))?;
    let received = counter("pointsman_received", "Messages that came from other nodes.");
    sink.sample(&received, &[], Value::Count(ledger.received))?;
    let shipped = counter("pointsman_shipped", "Messages that have left for other nodes.");
    sink.sample(&shipped, &[], Value::Count(ledger.shipped))?;
    let messages = counter("pointsman_messages", "Messages by their outcome.");
    for (outcome, count) in [
        ("handled", ledger.handled),
        ("dead_lettered", ledger.dead_lettered),
        ("handed_back", ledger.handed_back),
        ("dropped", ledger.dropped),
        ("skipped", ledger.skipped),
    ] {
        sink.sample(&messages, &[("outcome", outcome)], Value::Count(count))?;
    }
    let ticks = counter("pointsman_timer_ticks", "Timer ticks handled.");
    sink.sample(&ticks, &[], Value::Count(ledger.ticked))?;
    let letters = counter("pointsman_dead_letters", "Dead letters by their reason.");
    for reason in DeadLetterReason::ALL {
        let count =
            stats.dead_letters.iter().find(|(known, _)| *known == reason).map_or(0, |(_, count)| *count);
        sink.sample(&letters, &[("reason", reason_label(reason))], Value::Count(count))?;
    }
    let begun = counter("pointsman_asks_begun", "Asks whose request was on its way.");
    sink.sample(&begun, &[], Value::Count(ledger.asks.begun))?;
    let asks = counter("pointsman_asks", "Asks that are over, by their outcome.");
    for (outcome, count) in [
        ("answered", ledger.asks.answered),
        ("no_reply", ledger.asks.no_reply),
        ("timed_out", ledger.asks.timed_out),
        ("undeliverable", ledger.asks.undeliverable),
        ("cancelled", ledger.asks.cancelled),
    ] {
        sink.sample(&asks, &[("outcome", outcome)], Value::Count(count))?;
    }
    let late = counter("pointsman_late_replies", "Replies to asks that were over.");
    sink.sample(&late, &[], Value::Count(ledger.asks.late))?;
    let created = counter("pointsman_created_actors", "Actors created.");
    sink.sample(&created, &[], Value::Count(stats.created))?;
    let ended = counter("pointsman_ended_actors", "Actors that have ended.");
    sink.sample(&ended, &[], Value::Count(stats.ended))
}

fn show_classes(classes: &[ClassStats], sink: &mut dyn Sink) -> fmt::Result {
    type Get = fn(&ClassStats) -> u64;
    let counts: [(Family, Get); 6] = [
        (gauge("pointsman_actors", "Living actors, by class."), |class| class.actors),
        (gauge("pointsman_queued", "Messages that wait for the actors of a class."), |class| class.queued),
        (
            gauge("pointsman_queued_max", "Messages that wait for the actor of a class for which most wait."),
            |class| class.queued_max,
        ),
        (counter("pointsman_handled", "Messages that the actors of a class have handled."), |class| {
            class.handled
        }),
        (counter("pointsman_failures", "Failures of actors, by class."), |class| class.failures),
        (counter("pointsman_restarts", "Restarts of actors, by class."), |class| class.restarts),
    ];
    for (family, get) in counts {
        for class in classes {
            sink.sample(&family, &[("class", &class.name)], Value::Count(get(class)))?;
        }
    }
    let wait = histogram(
        "pointsman_wait_seconds",
        "seconds",
        "How long sampled messages waited in their mailboxes.",
    );
    let handle =
        histogram("pointsman_handle_seconds", "seconds", "How long the handlers of sampled turns took.");
    let depth = histogram("pointsman_turn_messages", "messages", "How many messages sampled turns met.");
    type GetTimes = fn(&ClassStats) -> &Histogram;
    let times: [(Family, GetTimes); 2] = [(wait, |class| &class.wait), (handle, |class| &class.handle)];
    for (family, get) in times {
        for class in classes.iter().filter(|class| get(class).count() > 0) {
            sink.sample(&family, &[("class", &class.name)], Value::Times(get(class)))?;
        }
    }
    for class in classes.iter().filter(|class| class.depth.count() > 0) {
        sink.sample(&depth, &[("class", &class.name)], Value::Depths(&class.depth))?;
    }
    Ok(())
}

/// The numbers of all routees of the same identity.
#[derive(Default)]
struct RouteeSum {
    uids: Vec<u32>,
    handled: u64,
    queued: Option<u64>,
}

fn show_routers(stats: &Stats, sink: &mut dyn Sink) -> fmt::Result {
    use crate::core::actor_ref::RecipientLoad;
    // An ended router may be there beside the one that has its path now, behind it.
    let routers: BTreeMap<&str, _> =
        stats.routers.iter().map(|router| (router.path.as_str(), router)).collect();
    let all = gauge("pointsman_routers", "Routers.");
    sink.sample(&all, &[], Value::Count(routers.len() as u64))?;
    let shown: Vec<_> = routers.into_iter().take(ROUTERS_MAX).collect();
    type Get = fn(&crate::telemetry::router_stats::RouterStats) -> u64;
    let counts: [(Family, Get); 6] = [
        (gauge("pointsman_router_routees", "Routees of a router."), |router| router.routees.len() as u64),
        (counter("pointsman_router_tables", "Tables of routees that a router has published."), |router| {
            router.version
        }),
        (counter("pointsman_router_refused", "Messages and copies that a routee has refused."), |router| {
            router.refused
        }),
        (counter("pointsman_router_no_routee", "Messages that no routee has taken."), |router| {
            router.no_routee
        }),
        (
            counter("pointsman_router_attempts", "Attempts of requests to routers that make several."),
            |router| router.attempts,
        ),
        (
            counter("pointsman_router_late", "Replies that came after the outcome of such a request."),
            |router| router.late,
        ),
    ];
    for (family, get) in counts {
        for (path, router) in &shown {
            sink.sample(&family, &[("router", path)], Value::Count(get(router)))?;
        }
    }
    let mut room = ROUTEES_MAX;
    let mut of_routers: Vec<(&str, BTreeMap<&str, RouteeSum>)> = Vec::new();
    for (path, router) in shown {
        let mut routees: BTreeMap<&str, RouteeSum> = BTreeMap::new();
        for routee in &router.routees {
            let sum = routees.entry(routee.identity.as_str()).or_default();
            // A routee may be in the table several times.
            if routee.uid != 0 && sum.uids.contains(&routee.uid) {
                continue;
            }
            sum.uids.push(routee.uid);
            sum.handled += routee.handled;
            if let RecipientLoad::Busy { queued } = routee.load {
                *sum.queued.get_or_insert(0) += queued as u64;
            } else if routee.load == RecipientLoad::Idle {
                sum.queued.get_or_insert(0);
            }
        }
        if routees.len() <= room {
            room -= routees.len();
            of_routers.push((path, routees));
        }
    }
    let handled = counter(
        "pointsman_routee_handled",
        "Messages that a routee has handled, from the router and others.",
    );
    for (path, routees) in &of_routers {
        for (identity, sum) in routees {
            sink.sample(&handled, &[("router", path), ("routee", identity)], Value::Count(sum.handled))?;
        }
    }
    let queued = gauge("pointsman_routee_queued", "Messages that wait for a routee that is idle or busy.");
    for (path, routees) in &of_routers {
        for (identity, sum) in routees {
            if let Some(count) = sum.queued {
                sink.sample(&queued, &[("router", path), ("routee", identity)], Value::Count(count))?;
            }
        }
    }
    Ok(())
}

/// The numbers of all threads of the same name.
#[derive(Default)]
struct WorkerSum {
    turns: u64,
    messages: u64,
    parks: u64,
    steals: u64,
    searching: Duration,
    busy: Duration,
}

fn show_workers(stats: &Stats, sink: &mut dyn Sink) -> fmt::Result {
    let mut workers: BTreeMap<(&str, &str), WorkerSum> = BTreeMap::new();
    for dispatcher in &stats.dispatchers {
        for worker in &dispatcher.workers {
            let sum = workers.entry((dispatcher.name.as_str(), worker.thread.as_str())).or_default();
            sum.turns += worker.turns;
            sum.messages += worker.messages;
            sum.parks += worker.parks;
            sum.steals += worker.steals;
            sum.searching += worker.searching;
            sum.busy += worker.busy;
        }
    }
    type Get = fn(&WorkerSum) -> Value<'static>;
    let searching = Family {
        unit: "seconds",
        ..counter(
            "pointsman_worker_searching_seconds",
            "Time that a thread has looked for tasks, where it is measured.",
        )
    };
    let busy = Family {
        unit: "seconds",
        ..counter("pointsman_worker_busy_seconds", "Time that a thread has run turns, where it is measured.")
    };
    let families: [(Family, Get); 6] = [
        (counter("pointsman_worker_turns", "Turns that a thread has run."), |worker| {
            Value::Count(worker.turns)
        }),
        (counter("pointsman_worker_messages", "Messages that a thread has handled."), |worker| {
            Value::Count(worker.messages)
        }),
        (counter("pointsman_worker_parks", "How often a thread has gone to sleep."), |worker| {
            Value::Count(worker.parks)
        }),
        (counter("pointsman_worker_steals", "How often a thread has taken tasks from another."), |worker| {
            Value::Count(worker.steals)
        }),
        (searching, |worker| Value::Time(worker.searching)),
        (busy, |worker| Value::Time(worker.busy)),
    ];
    for (family, get) in families {
        for ((dispatcher, thread), worker) in &workers {
            sink.sample(&family, &[("dispatcher", dispatcher), ("worker", thread)], get(worker))?;
        }
    }
    Ok(())
}

fn show_stuck(stats: &Stats, sink: &mut dyn Sink) -> fmt::Result {
    let reports = counter("pointsman_stuck_reports", "Handlers that were reported as stuck.");
    sink.sample(&reports, &[], Value::Count(stats.stuck_reports))?;
    let now = gauge("pointsman_stuck", "Handlers that are stuck now.");
    sink.sample(&now, &[], Value::Count(stats.stuck.len() as u64))?;
    let lasted = Family {
        unit: "seconds",
        ..gauge("pointsman_stuck_seconds", "How long a handler that is stuck was seen to run.")
    };
    let stuck: BTreeMap<_, _> = stats
        .stuck
        .iter()
        .map(|stuck| {
            ((stuck.actor.path.as_str(), stuck.actor.class.as_str(), stuck.thread.as_str()), stuck.lasted)
        })
        .collect();
    for ((actor, class, thread), time) in stuck {
        sink.sample(&lasted, &[("actor", actor), ("class", class), ("thread", thread)], Value::Time(time))?;
    }
    Ok(())
}

fn show_node(stats: &Stats, node: &NodeStats, sink: &mut dyn Sink) -> fmt::Result {
    // The classes have what waits for the actors of this system.
    let of_actors = stats.classes.iter().map(|class| class.queued).sum();
    let outgoing = gauge("pointsman_outgoing", "Messages that wait to leave for other nodes.");
    sink.sample(&outgoing, &[], Value::Count(stats.ledger.queued.saturating_sub(of_actors)))?;
    type Get = fn(&LinkStats) -> u64;
    let families: [(Family, Get); 15] = [
        (gauge("pointsman_link_queued", "Envelopes that wait to leave for a start of a node."), |link| {
            link.queued
        }),
        (counter("pointsman_link_shipped", "Envelopes that the engine has taken for it."), |link| {
            link.counts.shipped
        }),
        (counter("pointsman_link_confirmed", "Shipped envelopes that have come there."), |link| {
            link.counts.confirmed
        }),
        (counter("pointsman_link_lost", "Shipped envelopes that have not come there."), |link| {
            link.counts.lost
        }),
        (gauge("pointsman_link_in_doubt", "Shipped envelopes of which it has not told."), |link| {
            link.in_doubt
        }),
        (counter("pointsman_link_repeated", "Batches that came there a second time, or too late."), |link| {
            link.counts.repeated
        }),
        (counter("pointsman_link_received", "Envelopes that came from a start of a node."), |link| {
            link.counts.received
        }),
        (
            counter("pointsman_link_refused_control", "Watches and stops from there that were refused."),
            |link| link.counts.refused_control,
        ),
        (counter("pointsman_link_lost_replies", "Replies that were lost on their way there."), |link| {
            link.counts.lost_replies
        }),
        (
            counter("pointsman_link_overdue", "Notices that did not wait for the messages before them."),
            |link| link.counts.overdue,
        ),
        (
            counter(
                "pointsman_link_incomplete",
                "Large messages from there that were given up before they were whole.",
            ),
            |link| link.counts.incomplete,
        ),
        (gauge("pointsman_link_choked", "Actors here that it is told to send no more."), |link| link.choked),
        (
            counter("pointsman_link_choked_sends", "Sends to choked actors there that were refused here."),
            |link| link.counts.choked_sends,
        ),
        (counter("pointsman_link_malformed", "Frames from there that could not be read."), |link| {
            link.counts.malformed
        }),
        (counter("pointsman_link_stale", "Frames of another start of either system."), |link| {
            link.counts.stale
        }),
    ];
    for (family, get) in families {
        for link in &node.links {
            sink.sample(&family, &[("node", &link.node), ("uid", &link.uid)], Value::Count(get(link)))?;
        }
    }
    let refused = counter("pointsman_link_refused", "Envelopes from there that were refused, by the reason.");
    for link in &node.links {
        for (reason, count) in &link.refused {
            let labels = [("node", &*link.node), ("uid", &*link.uid), ("reason", reason_label(*reason))];
            sink.sample(&refused, &labels, Value::Count(*count))?;
        }
    }
    Ok(())
}
