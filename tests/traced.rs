//! Traced actors, and lifecycle events of `tracing`. In a process of its own: a subscriber of `tracing` takes the place of
//! log lines.
#![cfg(feature = "tracing")]

use pointsman::pattern::Traced;
use pointsman::prelude::*;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, Once, OnceLock};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Longer than anything here takes; reached only by a test that fails.
const LONG: Duration = Duration::from_secs(30);

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "it does not come about");
        std::thread::yield_now();
    }
}

/// Notes the lines of the crate `log`.
struct Lines;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        LINES.lock().unwrap().push(record.args().to_string());
    }
    fn flush(&self) {}
}

/// A span as it was made.
#[derive(Debug, Clone)]
struct Made {
    name: &'static str,
    fields: String,
    /// The number of spans around it, as the subscriber sees them.
    depth: usize,
    /// The spans that it follows from.
    follows: Vec<u64>,
    /// Whether it is over.
    is_closed: bool,
}

/// The spans and events that the layer has seen, by the fields of spans that tell tests apart. One for all tests, since threads of systems
/// have the subscriber of the process.
#[derive(Default)]
struct Seen {
    spans: HashMap<u64, Made>,
    /// Spans that are over, since their numbers are used again.
    closed: Vec<(u64, Made)>,
    events: Vec<String>,
}

fn seen() -> &'static Mutex<Seen> {
    static SEEN: OnceLock<Mutex<Seen>> = OnceLock::new();
    SEEN.get_or_init(Mutex::default)
}

struct Notes;

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Notes {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: LayerContext<'_, S>) {
        let mut text = Text(String::new());
        attributes.record(&mut text);
        let depth = ctx.span(id).map_or(0, |span| span.scope().count());
        let name = attributes.metadata().name();
        let made = Made { name, fields: text.0, depth, follows: Vec::new(), is_closed: false };
        seen().lock().unwrap().spans.insert(id.into_u64(), made);
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, _: LayerContext<'_, S>) {
        let mut seen = seen().lock().unwrap();
        if let Some(made) = seen.spans.get_mut(&id.into_u64()) {
            made.follows.push(follows.into_u64());
        }
    }

    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        if event.metadata().target() == "pointsman" {
            let mut text = Text(format!("{} ", event.metadata().level()));
            event.record(&mut text);
            seen().lock().unwrap().events.push(text.0);
        }
    }

    fn on_close(&self, id: Id, _: LayerContext<'_, S>) {
        let mut seen = seen().lock().unwrap();
        if let Some(mut made) = seen.spans.remove(&id.into_u64()) {
            made.is_closed = true;
            seen.closed.push((id.into_u64(), made));
        }
    }
}

fn subscribe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Lines).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Notes)).unwrap();
    });
}

/// The spans of an actor's messages.
fn spans_of(actor: &str) -> Vec<Made> {
    let seen = seen().lock().unwrap();
    let of_actor = |made: &Made| made.name == "message" && made.fields.contains(&format!("actor={actor} "));
    let closed = seen.closed.iter().map(|(_, made)| made);
    closed.chain(seen.spans.values()).filter(|made| of_actor(made)).cloned().collect()
}

enum Step {
    /// Sends itself so many more.
    Repeat(u32),
    /// Tells the sender whether a span is entered.
    Tell(Sender<bool>),
    Fail,
}

struct Worker;

impl Actor for Worker {
    type Message = Traced<Step>;
    fn receive(&mut self, step: Traced<Step>, ctx: &mut Context<Traced<Step>>) -> HandlerResult {
        assert!(step.sender().is_none(), "the span follows from it already");
        match step.into_inner() {
            Step::Repeat(0) => {}
            Step::Repeat(left) => ctx.me().tell(Step::Repeat(left - 1)),
            Step::Tell(to) => to.send(!tracing::Span::current().is_none())?,
            Step::Fail => return Err(Failure::msg("as told")),
        }
        Ok(())
    }
}

struct Untraced;

impl Actor for Untraced {
    type Message = Sender<bool>;
    fn receive(&mut self, to: Sender<bool>, _: &mut Context<Sender<bool>>) -> HandlerResult {
        to.send(!tracing::Span::current().is_none())?;
        Ok(())
    }
}

fn tell_and_hear(tell: impl FnOnce(Sender<bool>)) -> bool {
    let (to, heard) = channel();
    tell(to);
    heard.recv_timeout(LONG).unwrap()
}

#[test]
fn a_message_has_a_root_span_that_follows_from_its_senders() {
    subscribe();
    let system = System::builder("linked").build().unwrap();
    let worker: ActorRef<Step> = system.actor("linked").traced().spawn(|| Worker).unwrap();
    let class = worker.untyped().unwrap().class().to_owned();
    assert!(class.ends_with("::Worker"), "{class}");
    // Sent in no span.
    assert!(tell_and_hear(|to| worker.tell(Step::Tell(to))));
    let sender = tracing::info_span!("sender");
    let id = sender.id().unwrap().into_u64();
    assert!(sender.in_scope(|| tell_and_hear(|to| worker.tell(Step::Tell(to)))));
    // A span that is not enabled is none.
    let disabled = tracing::Span::none();
    assert!(disabled.in_scope(|| tell_and_hear(|to| worker.tell(Step::Tell(to)))));
    wait_until(|| spans_of("/user/linked").iter().filter(|made| made.is_closed).count() == 3);
    let spans = spans_of("/user/linked");
    assert!(spans.iter().all(|made| made.depth == 1), "each is a root: {spans:?}");
    assert!(spans.iter().all(|made| made.fields.contains("message_type=") && made.fields.contains("Step")));
    let links: Vec<&[u64]> = spans.iter().map(|made| made.follows.as_slice()).collect();
    assert_eq!(links, [&[][..], &[id][..], &[][..]]);
    system.shutdown(LONG).unwrap();
}

#[test]
fn untraced_actors_have_no_spans() {
    subscribe();
    let system = System::builder("untraced").build().unwrap();
    let plain = system.actor("untraced").spawn(|| Untraced).unwrap();
    let sender = tracing::info_span!("sender");
    assert!(!sender.in_scope(|| tell_and_hear(|to| plain.tell(to))));
    assert!(spans_of("/user/untraced").is_empty());
    system.shutdown(LONG).unwrap();
}

#[test]
fn spans_of_self_sends_do_not_nest() {
    subscribe();
    const SENDS: u32 = 20_000;
    let system = System::builder("loops").build().unwrap();
    let worker = system.actor("loops").traced().spawn(|| Worker).unwrap();
    worker.tell(Step::Repeat(SENDS));
    let closed = || spans_of("/user/loops").iter().filter(|made| made.is_closed).count();
    wait_until(|| system.ledger().handled == u64::from(SENDS) + 1 && closed() == SENDS as usize + 1);
    let spans = spans_of("/user/loops");
    assert!(spans.iter().all(|made| made.depth == 1));
    // Each but the first follows from the one before.
    assert_eq!(spans.iter().filter(|made| made.follows.len() == 1).count(), SENDS as usize);
    assert_eq!(spans.iter().filter(|made| made.follows.is_empty()).count(), 1);
    system.shutdown(LONG).unwrap();
}

#[test]
fn lives_of_actors_are_events_with_fields() {
    subscribe();
    let system = System::builder("lives").build().unwrap();
    let worker = system.actor("lives").class("worker").traced().spawn(|| Worker).unwrap();
    let uid = worker.untyped().unwrap().uid();
    worker.tell(Step::Fail);
    assert!(tell_and_hear(|to| worker.tell(Step::Tell(to))));
    let pool = system.router("lives-pool").pool(2, |_| Untraced).spawn().unwrap();
    pool.adjust(1).unwrap();
    system.shutdown(LONG).unwrap();
    let seen = seen().lock().unwrap();
    let events: Vec<&str> =
        seen.events.iter().filter(|text| text.contains("system=\"lives\"")).map(String::as_str).collect();
    let of_worker: Vec<&&str> = events.iter().filter(|text| text.contains("actor=/user/lives ")).collect();
    let expected = [
        format!("DEBUG message=actor started system=\"lives\" actor=/user/lives uid={uid} class=\"worker\" "),
        format!(
            "WARN message=actor failed system=\"lives\" actor=/user/lives uid={uid} class=\"worker\" \
             verdict=\"restart\" cause=\"as told\" "
        ),
        format!(
            "INFO message=actor restarted system=\"lives\" actor=/user/lives uid={uid} class=\"worker\" "
        ),
        format!("DEBUG message=actor stopped system=\"lives\" actor=/user/lives uid={uid} class=\"worker\" "),
    ];
    assert_eq!(of_worker, expected.iter().collect::<Vec<_>>());
    let resized = "INFO message=router resized system=\"lives\" router=/user/lives-pool from=2 to=3 ";
    assert!(events.contains(&resized), "{events:#?}");
    let lines = LINES.lock().unwrap();
    assert!(!lines.iter().any(|line| line.contains("/user/lives")), "no line says the same: {lines:#?}");
}
