//! The engine of a node: two connections on one thread.
//!
//! Batches have a connection of their own, and everything else has the other one: no bulk delays a heartbeat. Batches are
//! taken from the outboxes only while little waits for the socket; all others stay where the node's limits count them.

use crate::client::ClientOptions;
use crate::codec::{Message, Subject, put_pub};
use crate::connection::{Connection, Lost, Owner, Surroundings};
use crate::server_fault::ServerFault;
use crate::settings::{Nats, SettingsError};
use crate::subjects::{Subjects, asked, sender};
use crate::write_queue::WriteQueue;
use mio::{Events, Poll, Token, Waker};
use pointsman::remote::{
    Channel, ChannelKind, Engine, EngineError, Fabric, Identity, Inbound, NotNow, PeerOutbox,
};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The bytes that may wait for a socket before batches are left in their outboxes.
const QUEUE_MAX: usize = 256 * 1024;
/// A batch that is shorter, and shorter than half of the longest so far, was taken while it was being filled.
const SMALL_BATCH: usize = 8 * 1024;
/// The bytes of control, heartbeats and names that may wait for the engine's thread.
const REQUESTS_MAX: usize = 4 * 1024 * 1024;
/// The longest frame that is carried, whatever a server takes.
const FRAME_MAX: usize = 1024 * 1024;
/// Reasons that are told once for each time without a connection.
const REASONS_MAX: usize = 16;
/// The least time between two lines of the log of one kind.
const LOG_EVERY: Duration = Duration::from_secs(1);

const WAKE: Token = Token(0);
const DATA: Token = Token(1);
const OTHER: Token = Token(2);

/// The numbers of the subscriptions of a connection.
const SID_DATA: u64 = 1;
const SID_CONTROL: u64 = 1;
const SID_HEARTBEAT: u64 = 2;
const SID_REGISTRY: u64 = 3;
const SID_ANSWERS: u64 = 4;
/// The first number for questions: each UID of the node has its own.
const SID_QUESTIONS: u64 = 5;

impl Engine for Nats {
    /// # Errors
    ///
    /// An [`EngineError`] whose source is a [`SettingsError`].
    fn configure(&mut self, section: &str, toml: &str) -> Result<(), EngineError> {
        if section != "nats" {
            return Err(EngineError::new(format!(
                "`[remote.{section}]` is not for the engine of pointsman-nats"
            )));
        }
        let table = toml.parse().map_err(|error| EngineError::new(SettingsError::syntax(&error)))?;
        *self = self.clone().with_table(&table).map_err(EngineError::new)?;
        Ok(())
    }

    /// # Errors
    ///
    /// An [`EngineError`] whose source is a [`SettingsError`].
    fn start(
        self: Box<Self>,
        node: &Identity,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Arc<dyn Fabric>, EngineError> {
        let started = start(&self, node, inbound).map_err(EngineError::new)?;
        Ok(Arc::new(started))
    }
}

fn start(nats: &Nats, node: &Identity, inbound: Arc<dyn Inbound>) -> Result<NatsFabric, SettingsError> {
    let servers = nats.addresses()?;
    let subjects = Subjects::new(&node.cluster, &node.node)?;
    let system = |error: std::io::Error| SettingsError::System { why: error.to_string() };
    #[cfg(feature = "tls")]
    let tls = match servers.iter().any(|server| server.tls) {
        true => Some(crate::tls::TlsConfig::load(&nats.files)?),
        false => None,
    };
    let poll = Poll::new().map_err(system)?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKE).map_err(system)?);
    let now = Instant::now();
    let connection = |token, part, subscriptions| {
        let options = ClientOptions {
            name: format!("{}/{}/{part}", node.cluster, node.node),
            echo: false,
            tls: false,
            has_certificate: false,
            user: None,
            password: None,
            subscriptions,
        };
        Connection::new(token, options, servers.clone(), now)
    };
    let data = connection(DATA, "data", vec![(subjects.all_data(), SID_DATA)]);
    let other = connection(
        OTHER,
        "control",
        vec![
            (subjects.all_control(), SID_CONTROL),
            (subjects.all_heartbeats(), SID_HEARTBEAT),
            (subjects.all_registries(), SID_REGISTRY),
            (subjects.answers(), SID_ANSWERS),
            (subjects.questions(node.uid), SID_QUESTIONS),
        ],
    );
    let shared = Arc::new(Shared { waker, requests: Mutex::default(), subjects: subjects.clone() });
    let driver = Driver {
        shared: shared.clone(),
        poll,
        insecure: nats.insecure,
        #[cfg(feature = "tls")]
        tls,
        data,
        other,
        of_data: DataOwner {
            inbound: inbound.clone(),
            subjects: subjects.clone(),
            outboxes: VecDeque::new(),
            wanting: Vec::new(),
            max_frame: 0,
            longest: 0,
            state: LinkState::default(),
        },
        of_other: OtherOwner {
            inbound: inbound.clone(),
            shared: shared.clone(),
            waiting: VecDeque::new(),
            state: LinkState::default(),
            sid_questions: SID_QUESTIONS,
        },
        inbound,
        told_up: None,
        told_reasons: Vec::new(),
    };
    let run = move || {
        let shared = driver.shared.clone();
        if catch_unwind(AssertUnwindSafe(|| driver.run())).is_err() {
            log::error!("NATS: the engine's thread has panicked: the node carries nothing any more");
        }
        let mut requests = shared.requests();
        *requests = Requests { has_ended: true, ..Requests::default() };
    };
    let thread = thread::Builder::new().name(format!("{}-nats", node.node)).spawn(run).map_err(system)?;
    Ok(NatsFabric { shared, thread: Mutex::new(Some(thread)) })
}

/// A frame for the second connection.
struct Outgoing {
    subject: Subject,
    reply: Option<Subject>,
    frame: Vec<u8>,
}

/// The requests of other threads to the engine's thread.
#[derive(Default)]
struct Requests {
    frames: VecDeque<Outgoing>,
    /// The bytes of these.
    bytes: usize,
    outboxes: Vec<PeerOutbox>,
    uid: Option<u64>,
    stop: Option<Instant>,
    /// The connection for frames is up.
    is_up: bool,
    /// The engine's thread was woken, and has not looked since.
    is_woken: bool,
    has_ended: bool,
}

struct Shared {
    waker: Arc<Waker>,
    requests: Mutex<Requests>,
    subjects: Subjects,
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the requests, and wakes the engine's thread unless it was woken.
    fn ask(&self, change: impl FnOnce(&mut Requests)) {
        let mut requests = self.requests();
        change(&mut requests);
        if !std::mem::replace(&mut requests.is_woken, true) {
            drop(requests);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            log::error!("NATS: the engine's thread cannot be woken: {error}");
        }
    }
}

/// The started engine.
struct NatsFabric {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Fabric for NatsFabric {
    fn publish(&self, to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow> {
        let subjects = &self.shared.subjects;
        let (subject, reply, frame) = match to {
            Channel::Control(node) => (subjects.control_to(node).ok_or(NotNow)?, None, frame),
            Channel::Heartbeat => (subjects.heartbeat(), None, frame),
            Channel::Registry => (subjects.registry(), None, frame),
            Channel::Probe { node, uid } => {
                let (question, answer) = subjects.probe(node, uid).ok_or(NotNow)?;
                (question, Some(answer), Vec::new())
            }
            _ => return Err(NotNow),
        };
        let mut requests = self.shared.requests();
        if !requests.is_up || frame.len() > FRAME_MAX || requests.bytes + frame.len() > REQUESTS_MAX {
            return Err(NotNow);
        }
        requests.bytes += frame.len();
        requests.frames.push_back(Outgoing { subject, reply, frame });
        if !std::mem::replace(&mut requests.is_woken, true) {
            drop(requests);
            self.shared.wake();
        }
        Ok(())
    }

    fn wants_out(&self, outbox: &PeerOutbox) {
        self.shared.ask(|requests| {
            if !requests.has_ended {
                requests.outboxes.push(outbox.clone());
            }
        });
    }

    fn set_uid(&self, uid: u64) {
        self.shared.ask(|requests| requests.uid = Some(uid));
    }

    fn stop(&self, by: Duration) {
        let now = Instant::now();
        let until = now.checked_add(by).unwrap_or(now + Duration::from_secs(3600));
        self.shared.ask(|requests| requests.stop = Some(until));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|handle| handle.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for NatsFabric {
    /// A node that is dropped without an end leaves no thread behind.
    fn drop(&mut self) {
        self.shared.ask(|requests| requests.stop = Some(Instant::now()));
    }
}

/// The state of one of the two connections.
#[derive(Default)]
struct LinkState {
    /// The payload that its server takes, while it is up.
    max_payload: Option<usize>,
    flush: Flush,
    logged: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Flush {
    #[default]
    NotAsked,
    Asked,
    Done,
}

impl LinkState {
    /// Says in the log what the server refuses.
    fn refused(&mut self, fault: &ServerFault) {
        let now = Instant::now();
        if self.logged.is_some_and(|before| now.duration_since(before) < LOG_EVERY) {
            return;
        }
        self.logged = Some(now);
        match fault {
            ServerFault::Publish { subject } => log::error!(
                "NATS: the server does not let this node publish to `{subject}`: allow it in the permissions of its user"
            ),
            other => log::error!("NATS: the server refuses something: {other:?}"),
        }
    }
}

/// Takes batches from outboxes, and hands on those that come.
struct DataOwner {
    inbound: Arc<dyn Inbound>,
    subjects: Subjects,
    /// Those that have something, in turns.
    outboxes: VecDeque<PeerOutbox>,
    /// Those of which senders have told since the last look.
    wanting: Vec<PeerOutbox>,
    max_frame: usize,
    /// The length of the longest batch so far.
    longest: usize,
    state: LinkState,
}

impl Owner for DataOwner {
    fn up(&mut self, max_payload: usize) {
        self.state.max_payload = Some(max_payload);
        self.max_frame = max_payload.min(FRAME_MAX);
    }

    fn message(&mut self, message: Message<'_>) {
        // An empty one is a question of `pointsman-doctor` whether it may be sent.
        if let Some(from) = sender(message.subject).filter(|_| !message.payload.is_empty()) {
            self.inbound.frame(from, ChannelKind::Batch, message.payload.to_vec());
        }
    }

    fn refused(&mut self, fault: ServerFault) {
        self.state.refused(&fault);
    }

    fn flushed(&mut self) {
        self.state.flush = Flush::Done;
    }

    fn fill(&mut self, queue: &mut WriteQueue<PeerOutbox>) {
        // A small batch is one that its senders were still filling. While it is written they fill the next one: taken at once,
        // it would have a few messages, and cost as much as a full one.
        let mut small = 0;
        while queue.len() < QUEUE_MAX && small < self.outboxes.len().max(1) {
            let Some(outbox) = self.outboxes.pop_front() else { break };
            let Some(frame) = outbox.next(self.max_frame) else { continue };
            self.longest = self.longest.max(frame.len());
            small += usize::from(frame.len() < SMALL_BATCH.min(self.longest / 2));
            let Some(subject) = self.subjects.data_to(outbox.peer()) else {
                log::error!("NATS: a batch is lost: `{}` is no name of a node", outbox.peer());
                continue;
            };
            let mut head = Vec::with_capacity(64);
            put_pub(&mut head, &subject, None, frame.len());
            queue.push(head, frame, Some(outbox.clone()));
            self.outboxes.push_back(outbox);
        }
    }
}

/// Sends control, heartbeats and names, and hands on those that come.
struct OtherOwner {
    inbound: Arc<dyn Inbound>,
    shared: Arc<Shared>,
    waiting: VecDeque<Outgoing>,
    state: LinkState,
    sid_questions: u64,
}

impl Owner for OtherOwner {
    fn up(&mut self, max_payload: usize) {
        self.state.max_payload = Some(max_payload);
        self.shared.requests().is_up = true;
    }

    fn message(&mut self, message: Message<'_>) {
        let kind = match message.sid {
            SID_CONTROL => ChannelKind::Control,
            SID_HEARTBEAT => ChannelKind::Heartbeat,
            SID_REGISTRY => ChannelKind::Registry,
            SID_ANSWERS => {
                if let Some((node, uid)) = asked(message.subject).filter(|_| message.status() == Some(503)) {
                    self.inbound.no_listener(node, uid);
                }
                return;
            }
            // A question: that this node listens is answer enough.
            _ => return,
        };
        if let Some(from) = sender(message.subject).filter(|_| !message.payload.is_empty()) {
            self.inbound.frame(from, kind, message.payload.to_vec());
        }
    }

    fn refused(&mut self, fault: ServerFault) {
        self.state.refused(&fault);
    }

    fn flushed(&mut self) {
        self.state.flush = Flush::Done;
    }

    fn fill(&mut self, queue: &mut WriteQueue<PeerOutbox>) {
        let max = self.state.max_payload.unwrap_or(0);
        while queue.len() < QUEUE_MAX {
            if self.waiting.is_empty() {
                let mut requests = self.shared.requests();
                requests.bytes = 0;
                self.waiting = std::mem::take(&mut requests.frames);
            }
            let Some(Outgoing { subject, reply, frame }) = self.waiting.pop_front() else { break };
            if frame.len() > max {
                log::error!(
                    "NATS: a frame of {} bytes for `{subject}` is lost: the server takes {max}",
                    frame.len()
                );
                continue;
            }
            let mut head = Vec::with_capacity(64);
            put_pub(&mut head, &subject, reply.as_ref(), frame.len());
            queue.push(head, frame, None);
        }
    }
}

/// The engine's thread.
struct Driver {
    shared: Arc<Shared>,
    poll: Poll,
    insecure: bool,
    #[cfg(feature = "tls")]
    tls: Option<crate::tls::TlsConfig>,
    data: Connection,
    other: Connection,
    of_data: DataOwner,
    of_other: OtherOwner,
    inbound: Arc<dyn Inbound>,
    /// The bytes of a frame, as the node was told while both connections are up.
    told_up: Option<usize>,
    /// Reasons for having no connection that the node was told since.
    told_reasons: Vec<String>,
}

impl Driver {
    fn run(mut self) {
        let mut events = Events::with_capacity(16);
        let mut has_more = true;
        let mut stop = None;
        loop {
            let next = self.data.next_step().min(self.other.next_step());
            let next = stop.map_or(next, |stop: Instant| next.min(stop));
            let pause =
                if has_more { Duration::ZERO } else { next.saturating_duration_since(Instant::now()) };
            let polled = self.poll.poll(&mut events, Some(pause));
            if let Err(error) = polled.or_else(|error| match error.kind() {
                std::io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            }) {
                log::error!("NATS: the engine's thread ends, since it cannot wait for its sockets: {error}");
                self.inbound.down(&error.to_string());
                break;
            }
            for event in &events {
                let readable = event.is_readable() || event.is_read_closed() || event.is_error();
                let writable = event.is_writable() || event.is_write_closed() || event.is_error();
                for connection in [&mut self.data, &mut self.other] {
                    if connection.token() == event.token() {
                        connection.ready(readable, writable);
                    }
                }
            }
            self.take_requests(&mut stop);
            has_more = self.step();
            if stop.is_some_and(|until| self.is_flushed() || Instant::now() >= until) {
                break;
            }
        }
        self.data.close(self.poll.registry());
        self.other.close(self.poll.registry());
    }

    fn take_requests(&mut self, stop: &mut Option<Instant>) {
        let mut requests = self.shared.requests();
        requests.is_woken = false;
        // Both lists keep their memory, so that a sender that wakes this thread allocates nothing.
        std::mem::swap(&mut requests.outboxes, &mut self.of_data.wanting);
        let uid = requests.uid.take();
        *stop = requests.stop;
        drop(requests);
        let DataOwner { outboxes, wanting, .. } = &mut self.of_data;
        for outbox in wanting.drain(..) {
            if !outboxes.contains(&outbox) {
                outboxes.push_back(outbox);
            }
        }
        if let Some(uid) = uid {
            let old = self.of_other.sid_questions;
            self.of_other.sid_questions += 1;
            let pattern = self.shared.subjects.questions(uid);
            self.other.resubscribe(old, &pattern, self.of_other.sid_questions);
        }
    }

    /// Lets both connections do what they can. Returns whether there is more to do at once.
    fn step(&mut self) -> bool {
        let mut around = Surroundings {
            registry: self.poll.registry(),
            waker: &self.shared.waker,
            now: Instant::now(),
            insecure: self.insecure,
            #[cfg(feature = "tls")]
            tls: self.tls.as_mut(),
        };
        // What is short goes first.
        let other = self.other.step(&mut around, &mut self.of_other);
        let data = self.data.step(&mut around, &mut self.of_data);
        let has_more = other.has_more || data.has_more;
        if let Some(lost) = other.lost {
            let mut requests = self.shared.requests();
            requests.is_up = false;
            requests.frames.clear();
            requests.bytes = 0;
            drop(requests);
            self.of_other.waiting.clear();
            self.of_other.state.flush = Flush::NotAsked;
            let was_up = self.of_other.state.max_payload.take().is_some();
            self.tell_lost(&lost, was_up);
        }
        if let Some(lost) = data.lost {
            self.of_data.state.flush = Flush::NotAsked;
            let was_up = self.of_data.state.max_payload.take().is_some();
            self.tell_lost(&lost, was_up);
        }
        self.tell_up();
        has_more
    }

    /// Tells the node that both connections are up.
    fn tell_up(&mut self) {
        if let (None, Some(data), Some(other)) =
            (self.told_up, self.of_data.state.max_payload, self.of_other.state.max_payload)
        {
            let max_frame = data.min(other).min(FRAME_MAX);
            self.told_up = Some(max_frame);
            self.told_reasons.clear();
            log::info!("NATS: node {} is connected", self.shared.subjects.node());
            self.inbound.up(max_frame);
        }
    }

    /// Tells the node why it is not connected: at the loss, and each other reason once while there is no connection.
    fn tell_lost(&mut self, lost: &Lost, was_up: bool) {
        let reason = format!("{}: {}", lost.server, lost.why);
        let is_new = !self.told_reasons.contains(&reason) && self.told_reasons.len() < REASONS_MAX;
        let was_told = self.told_up.take().is_some();
        if was_told || is_new {
            let what = if was_up { "has lost its connection" } else { "cannot connect" };
            log::warn!("NATS: node {} {what} to {reason}", self.shared.subjects.node());
            self.inbound.down(&reason);
        }
        if is_new {
            self.told_reasons.push(reason);
        }
    }

    /// Whether the servers have taken all that waits. Connections that are not up have nothing to wait for.
    fn is_flushed(&mut self) -> bool {
        let has_frames = !self.of_other.waiting.is_empty() || !self.shared.requests().frames.is_empty();
        let is_done = |connection: &mut Connection, has_source: bool, state: &mut LinkState| {
            if !connection.is_up() || state.flush == Flush::Done {
                return true;
            }
            if state.flush == Flush::NotAsked && !has_source && connection.waiting() == 0 {
                state.flush = Flush::Asked;
                connection.flush();
            }
            false
        };
        let data = is_done(&mut self.data, !self.of_data.outboxes.is_empty(), &mut self.of_data.state);
        is_done(&mut self.other, has_frames, &mut self.of_other.state) && data
    }
}
