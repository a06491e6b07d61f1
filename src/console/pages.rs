//! Which page answers which request.

use crate::console::request::{Fault, Method, Request};
use crate::console::response::{Response, Status};
use crate::console::{snapshot, trace, tree};
use crate::core::system::SystemRef;
use crate::sync::{HashMap, Mutex, lock};
use crate::telemetry::actor_filter::{ActorFilter, ActorOrder};
use crate::telemetry::flight_recorder::Recording;
use crate::telemetry::stats::Stats;
use std::net::IpAddr;
use std::time::Duration;

/// Actors of a page, unless the request says otherwise.
const ACTORS_DEFAULT: usize = 500;
/// The most actors of a page.
pub(crate) const ACTORS_MAX: usize = 10_000;

const JSON: &str = "application/json";
const GRAPHVIZ: &str = "text/vnd.graphviz; charset=utf-8";

const INDEX: &str = "\
pointsman
/metrics    statistics, in the format of OpenMetrics
/snapshot   statistics and actors, as JSON: ?path=/user/**&limit=500&order=tree|queued|handled|rate
/tree.dot   the tree of actors, for Graphviz: ?path=/user/**&limit=500
/health     200, or 503 while a handler is stuck
/trace      the turns of the next seconds, for Perfetto: ?seconds=2
";

/// The longest recording, in seconds.
const TRACE_MAX: u64 = 30;

/// An answer to a request.
pub(crate) enum Answer {
    Now(Response),
    /// The page of the recording, when it has run so long.
    After(Duration, Recording),
}

/// The state that the requests to one server share.
pub(crate) struct Pages {
    /// Whether the request must name a host of the loopback.
    is_local: bool,
    /// The counts of the actors when a client last asked for rates.
    rates: Mutex<Option<Rates>>,
}

struct Rates {
    at: Duration,
    handled: HashMap<u32, u64>,
}

impl Pages {
    pub(crate) fn new(is_local: bool) -> Self {
        Self { is_local, rates: Mutex::new(None) }
    }

    /// Answers a request.
    pub(crate) fn answer(&self, request: &Request, system: &SystemRef) -> Answer {
        let response = self.page(request, system);
        // A response without a page has the status and the type of the page, and needs no recording.
        if response.status != Status::Ok || request.path != "/trace" || request.method == Method::Head {
            return Answer::Now(response);
        }
        match seconds(request) {
            Ok(length) => match Recording::begin(system) {
                Some(recording) => Answer::After(length, recording),
                None => {
                    let text = "another trace is being recorded: ask again when it is over\n";
                    Answer::Now(Response::plain(Status::Conflict, text))
                }
            },
            Err(refusal) => Answer::Now(refusal),
        }
    }

    fn page(&self, request: &Request, system: &SystemRef) -> Response {
        if request.method == Method::Other {
            return Response::plain(Status::MethodNotAllowed, "use GET or HEAD\n");
        }
        if self.is_local && !request.host.as_deref().is_none_or(is_loopback) {
            return Response::plain(
                Status::Misdirected,
                "this server answers to localhost and addresses of the loopback: ask for one of these, or let the \
                 program call StatsServerBuilder::anywhere\n",
            );
        }
        match request.path.as_str() {
            "/" => Response::plain(Status::Ok, INDEX),
            "/metrics" => {
                let mut page = String::new();
                // A string takes all.
                let _ = system.stats().write_openmetrics(&mut page);
                Response::ok(Stats::OPENMETRICS_CONTENT_TYPE, page)
            }
            "/snapshot" => self.snapshot(request, system).unwrap_or_else(|refusal| refusal),
            "/tree.dot" => match filter(request) {
                Ok(filter) => Response::ok(GRAPHVIZ, tree::page(system.name(), &system.actors(&filter))),
                Err(refusal) => refusal,
            },
            "/health" => health(system),
            "/trace" => Response::ok(JSON, String::new()),
            _ => Response::plain(Status::NotFound, "no such page: / lists the pages\n"),
        }
    }

    fn snapshot(&self, request: &Request, system: &SystemRef) -> Result<Response, Response> {
        let (mut filter, mut since) = (filter(request)?, None);
        match request.parameter("order").unwrap_or("tree") {
            "tree" => {}
            "queued" => filter = filter.order(ActorOrder::Queued),
            "handled" => filter = filter.order(ActorOrder::Handled),
            "rate" => {
                let rates = Rates { at: system.now(), handled: system.handled_by_uid() };
                let now = rates.at;
                filter = filter.order(ActorOrder::Handled);
                if let Some(before) = lock(&self.rates).replace(rates) {
                    since = Some(now.saturating_sub(before.at));
                    filter = filter.since_counts(before.handled);
                }
            }
            other => {
                return Err(Response::plain(
                    Status::BadRequest,
                    format!("there is no order {other:?}: use tree, queued, handled or rate\n"),
                ));
            }
        }
        let (stats, actors) = (system.stats(), system.actors(&filter));
        Ok(Response::ok(JSON, snapshot::page(&stats, &actors, since)))
    }
}

/// Returns the response to a request that cannot be read.
pub(crate) fn refusal(fault: Fault) -> Response {
    match fault {
        Fault::Malformed => Response::plain(Status::BadRequest, "this is no HTTP request\n"),
        Fault::Version => Response::plain(Status::VersionNotSupported, "use HTTP/1.1\n"),
        Fault::TooLarge => {
            Response::plain(Status::HeadTooLarge, "the request has more than 8 KiB, or than 64 headers\n")
        }
    }
}

/// Returns the filter by the parameters `path` and `limit`.
fn filter(request: &Request) -> Result<ActorFilter, Response> {
    let limit = match request.parameter("limit") {
        None => ACTORS_DEFAULT,
        Some(limit) => limit.parse::<usize>().map_err(|_| {
            Response::plain(
                Status::BadRequest,
                format!("the limit {limit:?} is no number: use 0 to {ACTORS_MAX}\n"),
            )
        })?,
    };
    let filter = ActorFilter::new().limit(limit.min(ACTORS_MAX));
    Ok(match request.parameter("path") {
        Some(path) => filter.path(path),
        None => filter,
    })
}

/// Returns the parameter `seconds`.
fn seconds(request: &Request) -> Result<Duration, Response> {
    let seconds = request.parameter("seconds").unwrap_or("2");
    match seconds.parse::<u64>() {
        Ok(seconds @ 1..=TRACE_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(Response::plain(
            Status::BadRequest,
            format!("a trace cannot take {seconds:?} seconds: use 1 to {TRACE_MAX}\n"),
        )),
    }
}

/// Returns the page of a recording that has run long enough.
pub(crate) fn trace(recording: Recording, system: &SystemRef) -> Response {
    Response::ok(JSON, trace::page(system.name(), &recording.end()))
}

fn health(system: &SystemRef) -> Response {
    let stuck = system.stuck_handlers();
    if stuck.is_empty() {
        return Response::plain(Status::Ok, "ok\n");
    }
    let mut page = String::new();
    for stuck in stuck {
        use std::fmt::Write;
        let _ = writeln!(
            page,
            "a handler of {} (class {}, messages {}) has been running for {:?} on thread {:?}",
            stuck.actor.path, stuck.actor.class, stuck.message_type, stuck.lasted, stuck.thread
        );
    }
    Response::plain(Status::ServiceUnavailable, page)
}

/// Returns whether a host, without its port, is of the loopback.
fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let is_name = host == "localhost" || host == "localhost." || host.ends_with(".localhost");
    is_name || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
