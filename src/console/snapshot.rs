//! The page `/snapshot`: all statistics, and the actors that the client asks for, as JSON. The guide has the format.

use crate::core::actor_ref::RecipientLoad;
use crate::core::lifecycle::ActorEvent;
use crate::telemetry::actor_filter::{ActorState, ActorStats};
use crate::telemetry::families::reason_label;
use crate::telemetry::histogram::{DepthHistogram, Histogram};
use crate::telemetry::link_stats::LinkStats;
use crate::telemetry::router_stats::RouterStats;
use crate::telemetry::stats::{ClassStats, DispatcherStats, Stats};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The number of the format. It grows when a field goes or changes its meaning; new fields may come at any time.
pub(crate) const VERSION: u32 = 1;

/// Returns the page. `since` is the time over which the messages of the actors are counted; `None`: since their starts.
pub(crate) fn page(stats: &Stats, actors: &[ActorStats], since: Option<Duration>) -> String {
    let ledger = &stats.ledger;
    let letters: Map<String, Value> = stats
        .dead_letters
        .iter()
        .map(|(reason, count)| (reason_label(*reason).to_owned(), json!(count)))
        .collect();
    let asks = &ledger.asks;
    let stuck = stats.stuck.iter().map(|stuck| {
        json!({
            "actor": event(&stuck.actor),
            "message_type": stuck.message_type,
            "thread": stuck.thread,
            "since": stuck.since.as_secs_f64(),
            "lasted": stuck.lasted.as_secs_f64(),
        })
    });
    let mut page = json!({
        "version": VERSION,
        "system": stats.system,
        "sequence": stats.sequence,
        "at": stats.at.as_secs_f64(),
        "ledger": {
            "sent": ledger.sent,
            "handled": ledger.handled,
            "dead_lettered": ledger.dead_lettered,
            "handed_back": ledger.handed_back,
            "dropped": ledger.dropped,
            "skipped": ledger.skipped,
            "queued": ledger.queued,
            "shipped": ledger.shipped,
            "received": ledger.received,
            "ticked": ledger.ticked,
        },
        "asks": {
            "begun": asks.begun,
            "answered": asks.answered,
            "no_reply": asks.no_reply,
            "timed_out": asks.timed_out,
            "undeliverable": asks.undeliverable,
            "cancelled": asks.cancelled,
            "late": asks.late,
        },
        "dead_letters": letters,
        "living": stats.living,
        "created": stats.created,
        "ended": stats.ended,
        "failures": stats.failures,
        "restarts": stats.restarts,
        "classes": stats.classes.iter().map(class).collect::<Vec<_>>(),
        "routers": stats.routers.iter().map(router).collect::<Vec<_>>(),
        "dispatchers": stats.dispatchers.iter().map(dispatcher).collect::<Vec<_>>(),
        "stuck_reports": stats.stuck_reports,
        "stuck": stuck.collect::<Vec<_>>(),
        "actors_since": since.map(|since| since.as_secs_f64()),
        "actors": actors.iter().map(actor).collect::<Vec<_>>(),
    });
    if let Some(node) = &stats.node {
        page["links"] = node.links.iter().map(link).collect();
    }
    page.to_string()
}

fn link(link: &LinkStats) -> Value {
    let refused: Map<String, Value> =
        link.refused.iter().map(|(reason, count)| (reason_label(*reason).to_owned(), json!(count))).collect();
    let counts = &link.counts;
    json!({
        "node": link.node,
        "uid": link.uid,
        "state": link.state,
        "queued": link.queued,
        "shipped": counts.shipped,
        "confirmed": counts.confirmed,
        "lost": counts.lost,
        "repeated": counts.repeated,
        "in_doubt": link.in_doubt,
        "received": counts.received,
        "refused": refused,
        "refused_control": counts.refused_control,
        "lost_replies": counts.lost_replies,
        "overdue": counts.overdue,
        "incomplete": counts.incomplete,
        "choked": link.choked,
        "choked_sends": counts.choked_sends,
        "malformed": counts.malformed,
        "stale": counts.stale,
    })
}

fn class(class: &ClassStats) -> Value {
    json!({
        "name": class.name,
        "actors": class.actors,
        "ended": class.ended,
        "handled": class.handled,
        "queued": class.queued,
        "queued_max": class.queued_max,
        "failures": class.failures,
        "restarts": class.restarts,
        "wait": times(&class.wait),
        "handle": times(&class.handle),
        "depth": depths(&class.depth),
    })
}

/// The buckets that have samples: their upper ends in nanoseconds, and the numbers of samples.
fn times(times: &Histogram) -> Value {
    let buckets = times.buckets().filter(|(_, count)| *count > 0);
    buckets.map(|(end, count)| json!([u64::try_from(end.as_nanos()).unwrap_or(u64::MAX), count])).collect()
}

/// The buckets that have samples: their largest numbers of messages, and the numbers of samples.
fn depths(depths: &DepthHistogram) -> Value {
    depths.buckets().filter(|(_, count)| *count > 0).map(|(most, count)| json!([most, count])).collect()
}

fn router(router: &RouterStats) -> Value {
    let routees = router.routees.iter().map(|routee| {
        let (load, queued) = match routee.load {
            RecipientLoad::Idle => ("idle", Some(0)),
            RecipientLoad::Busy { queued } => ("busy", Some(queued)),
            RecipientLoad::Suspended => ("suspended", None),
            RecipientLoad::Closed => ("closed", None),
            RecipientLoad::Unknown => ("unknown", None),
        };
        json!({
            "identity": routee.identity,
            "uid": routee.uid,
            "load": load,
            "queued": queued,
            "handled": routee.handled,
        })
    });
    json!({
        "path": router.path.as_str(),
        "logic": router.logic,
        "version": router.version,
        "routees": routees.collect::<Vec<_>>(),
        "refused": router.refused,
        "no_routee": router.no_routee,
        "attempts": router.attempts,
        "late": router.late,
    })
}

fn dispatcher(dispatcher: &DispatcherStats) -> Value {
    let workers = dispatcher.workers.iter().map(|worker| {
        json!({
            "thread": worker.thread,
            "turns": worker.turns,
            "messages": worker.messages,
            "parks": worker.parks,
            "steals": worker.steals,
            "searching": worker.searching.as_secs_f64(),
            "busy": worker.busy.as_secs_f64(),
            "running": worker.running.as_ref().map(event),
        })
    });
    json!({
        "name": dispatcher.name,
        "kind": dispatcher.kind.to_string(),
        "workers": workers.collect::<Vec<_>>(),
    })
}

fn event(actor: &ActorEvent) -> Value {
    json!({ "path": actor.path.as_str(), "uid": actor.uid, "class": actor.class })
}

fn actor(actor: &ActorStats) -> Value {
    let state = match actor.state {
        ActorState::Idle => "idle",
        ActorState::Busy => "busy",
        ActorState::Suspended => "suspended",
        ActorState::Closed => "closed",
    };
    json!({
        "path": actor.path.as_str(),
        "uid": actor.uid,
        "class": actor.class,
        "queued": actor.queued,
        "handled": actor.handled,
        "restarts": actor.restarts,
        "state": state,
    })
}
