//! The page `/snapshot` of a server, as the guide to telemetry describes it.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of the format that this program reads.
pub const VERSION: u32 = 1;

/// All numbers of a system at one moment. Fields that are not known here are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of the format.
    pub version: u32,
    /// The name of the system.
    pub system: String,
    /// The number of the snapshot, of all that the system has made.
    pub sequence: u64,
    /// Seconds since the system began.
    pub at: f64,
    /// The counts of messages.
    pub ledger: Ledger,
    /// The counts of asks.
    pub asks: Asks,
    /// Dead letters by reason.
    pub dead_letters: BTreeMap<String, u64>,
    /// The actors that live.
    pub living: u64,
    /// The actors made so far.
    pub created: u64,
    /// The actors that have ended.
    pub ended: u64,
    /// The failures of actors.
    pub failures: u64,
    /// The restarts of actors.
    pub restarts: u64,
    /// The classes of actors.
    pub classes: Vec<Class>,
    /// The routers.
    pub routers: Vec<Router>,
    /// The dispatchers.
    pub dispatchers: Vec<Dispatcher>,
    /// The handlers that were reported as stuck.
    pub stuck_reports: u64,
    /// The handlers that are stuck.
    pub stuck: Vec<Stuck>,
    /// The seconds over which `handled` of the actors is counted; `None`: since each actor began.
    pub actors_since: Option<f64>,
    /// The actors that were asked for.
    pub actors: Vec<Actor>,
}

/// The counts of messages by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the ledger, which the guide describes")]
pub struct Ledger {
    pub sent: u64,
    pub handled: u64,
    pub dead_lettered: u64,
    pub handed_back: u64,
    pub dropped: u64,
    pub skipped: u64,
    pub queued: u64,
    /// Servers without nodes may leave it out, and so do recordings of older ones.
    #[serde(default)]
    pub shipped: u64,
    /// As `shipped`.
    #[serde(default)]
    pub received: u64,
    pub ticked: u64,
}

/// The counts of asks by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the ledger, which the guide describes")]
pub struct Asks {
    pub begun: u64,
    pub answered: u64,
    pub no_reply: u64,
    pub timed_out: u64,
    pub undeliverable: u64,
    pub cancelled: u64,
    pub late: u64,
}

/// A class of actors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Class {
    pub name: String,
    pub actors: u64,
    pub ended: u64,
    pub handled: u64,
    pub queued: u64,
    pub queued_max: u64,
    pub failures: u64,
    pub restarts: u64,
    /// The buckets of waits: their ends in nanoseconds, and their samples.
    pub wait: Vec<(u64, u64)>,
    /// The buckets of handlers, likewise.
    pub handle: Vec<(u64, u64)>,
    /// The buckets of messages that a turn meets: their largest numbers, and their samples.
    pub depth: Vec<(u64, u64)>,
}

/// A router.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Router {
    pub path: String,
    pub logic: String,
    pub version: u64,
    pub routees: Vec<Routee>,
    pub refused: u64,
    pub no_routee: u64,
    pub attempts: u64,
    pub late: u64,
}

/// A routee of a router.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Routee {
    pub identity: String,
    pub uid: u32,
    pub load: String,
    pub queued: Option<u64>,
    pub handled: u64,
}

/// A dispatcher.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Dispatcher {
    pub name: String,
    pub kind: String,
    pub workers: Vec<Worker>,
}

/// A thread of a dispatcher.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Worker {
    pub thread: String,
    pub turns: u64,
    pub messages: u64,
    pub parks: u64,
    pub steals: u64,
    pub searching: f64,
    pub running: Option<Running>,
}

/// The actor that a thread runs, or in which a handler is stuck.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Running {
    pub path: String,
    pub uid: u32,
    pub class: String,
}

/// A handler that is stuck.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Stuck {
    pub actor: Running,
    pub message_type: String,
    pub thread: String,
    pub since: f64,
    pub lasted: f64,
}

/// An actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the statistics, which the guide describes")]
pub struct Actor {
    pub path: String,
    pub uid: u32,
    pub class: String,
    pub queued: u64,
    pub handled: u64,
    pub restarts: u32,
    pub state: String,
}

/// The part of a page that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Snapshot {
    /// Reads a page.
    ///
    /// # Errors
    ///
    /// [`Fault::Version`]: the page has another format. [`Fault::Page`]: it is no snapshot.
    pub fn read(page: &[u8]) -> Result<Self, Fault> {
        let Versioned { version } =
            serde_json::from_slice(page).map_err(|error| Fault::Page(error.to_string()))?;
        if version != VERSION {
            return Err(Fault::Version(version));
        }
        serde_json::from_slice(page).map_err(|error| Fault::Page(error.to_string()))
    }

    /// The messages that are in no count: those that are on their way at this moment.
    pub fn balance(&self) -> i128 {
        let ledger = &self.ledger;
        let terms = [
            ledger.handled,
            ledger.dead_lettered,
            ledger.handed_back,
            ledger.dropped,
            ledger.skipped,
            ledger.queued,
            ledger.shipped,
        ];
        i128::from(ledger.sent) + i128::from(ledger.received)
            - terms.into_iter().map(i128::from).sum::<i128>()
    }

    /// Whether this is a snapshot of a system that began after `before` was taken.
    pub fn is_new_start(&self, before: &Snapshot) -> bool {
        let counts = |snapshot: &Snapshot| {
            let ledger = &snapshot.ledger;
            [
                snapshot.sequence,
                ledger.sent,
                ledger.handled,
                ledger.dead_lettered,
                snapshot.created,
                snapshot.ended,
                snapshot.stuck_reports,
            ]
        };
        let has_fallen = counts(self).iter().zip(counts(before)).any(|(now, before)| *now < before);
        self.system != before.system || self.at < before.at || has_fallen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(snapshot: &Snapshot) -> String {
        serde_json::to_string(snapshot).expect("plain data")
    }

    fn snapshot() -> Snapshot {
        Snapshot { version: VERSION, system: "shop".to_owned(), at: 2.0, sequence: 2, ..Snapshot::default() }
    }

    #[test]
    fn unknown_fields_are_left_out() {
        let with_more = page(&snapshot()).replacen('{', "{\"colour\":\"red\",", 1);
        assert_eq!(Snapshot::read(with_more.as_bytes()).expect("a snapshot"), snapshot());
    }

    #[test]
    fn other_versions_are_told_apart() {
        let fault = Snapshot::read(b"{\"version\":2,\"ledger\":[]}").expect_err("another version");
        assert_eq!(
            fault.to_string(),
            "the server speaks version 2 of the format, and this program version 1"
        );
    }

    #[test]
    fn other_pages_are_refused() {
        let whole = page(&snapshot());
        let negative = whole.replacen("\"living\":0", "\"living\":-1", 1);
        let nested = "[".repeat(100_000);
        for bad in ["", "{}", "[]", "null", "<html>", &whole[..whole.len() / 2], &negative, &nested] {
            let fault = Snapshot::read(bad.as_bytes()).expect_err("no snapshot");
            assert!(matches!(fault, Fault::Page(_)), "{fault:?}");
        }
    }

    #[test]
    fn counts_that_fall_are_a_new_start() {
        let (before, mut after) = (snapshot(), snapshot());
        after.sequence = 3;
        after.at = 3.0;
        assert!(!after.is_new_start(&before));
        assert!(before.is_new_start(&after));
        let mut other = after.clone();
        other.system = "office".to_owned();
        assert!(other.is_new_start(&after));
        let mut fallen = after.clone();
        after.ledger.handled = 5;
        fallen.ledger.handled = 4;
        fallen.at = 4.0;
        assert!(fallen.is_new_start(&after));
    }

    #[test]
    fn gauges_may_fall() {
        let (mut before, after) = (snapshot(), snapshot());
        before.ledger.queued = 7;
        before.living = 7;
        assert!(!after.is_new_start(&before));
    }

    #[test]
    fn a_node_that_has_shipped_and_received_is_in_balance() {
        let mut node = snapshot();
        node.ledger =
            Ledger { sent: 10, received: 4, handled: 7, queued: 1, shipped: 6, ..Ledger::default() };
        assert_eq!(node.balance(), 0);
        assert_eq!(Snapshot::read(page(&node).as_bytes()).expect("a snapshot"), node);
    }

    #[test]
    fn a_ledger_without_the_counts_of_nodes_is_read() {
        let older = page(&snapshot()).replace("\"shipped\":0,\"received\":0,", "");
        assert!(!older.contains("shipped"));
        assert_eq!(Snapshot::read(older.as_bytes()).expect("a snapshot"), snapshot());
    }

    #[test]
    fn the_balance_of_the_largest_counts_is_exact() {
        let mut odd = snapshot();
        odd.ledger.handled = u64::MAX;
        odd.ledger.queued = u64::MAX;
        assert_eq!(odd.balance(), -2 * i128::from(u64::MAX));
    }
}
