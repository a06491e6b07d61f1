//! The link between this start of the system and one start of a peer.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::remote::assembly::{Assembled, Assembly, AssemblyBudget};
use crate::remote::batch::Token;
use crate::remote::chokes::{ChokeNews, Chokes, LAPSES_AFTER, LOOK_AGAIN};
use crate::remote::control::{ControlReceiver, ControlSender};
use crate::remote::control_message::{ControlMessage, LaneReceipt, NumberedMessage};
use crate::remote::credit::{Arrival, CreditError, Receipt, ReceivingLane, SendingLane};
use crate::remote::data_gate::DataGate;
use crate::remote::deployed_table::DeployedTable;
use crate::remote::deployment::Deployment;
use crate::remote::deployments::Deployments;
use crate::remote::early_messages::EarlyMessages;
use crate::remote::far::Far;
use crate::remote::far::InternedFar;
use crate::remote::far_table::FarTable;
use crate::remote::fragment::Fragment;
use crate::remote::frame::{HEADER_LEN, Position, Prefix};
use crate::remote::hub::Hub;
use crate::remote::lane::Lane;
use crate::remote::link_report::{LinkReport, LinkState};
use crate::remote::log_limit::LogLimit;
use crate::remote::outbox::{EntryMemory, Outbox, OutboxLimits, Outgoing, PushError, Wake};
use crate::remote::peer_outbox::PeerOutbox;
use crate::remote::peer_watcher::PeerWatcher;
use crate::remote::policy::{Access, NotAllowed};
use crate::remote::ports::PortsFull;
use crate::remote::refusals::RefusalCounters;
use crate::remote::refused::Refused;
use crate::remote::reply_ports::{ExportedPort, ImportedPort};
use crate::remote::stand_ins::StandIns;
use crate::remote::uid::SystemUid;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{HashMap, Mutex, OnceLock, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The most ports in a message that tells of ports without answers. Such messages are kept until the peer acknowledges them.
const UNANSWERED_MAX: usize = 60;

/// The most watches of the peer that wait for the actor which carries them out; the peer sends a further one again.
const WATCHES_WAITING_MAX: usize = 10_000;

/// The longest time for which a batch waits for a message of control.
const FENCE_MAX: Duration = Duration::from_secs(1);

/// The least time between two messages about an unknown type.
const TOLD_AGAIN: Duration = Duration::from_secs(1);

/// The most unknown types of which is noted when the peer was told.
const UNKNOWN_TYPES_MAX: usize = 1000;

/// The link to the start of a peer that has this UID.
pub(crate) struct Link {
    pub(crate) hub: Arc<Hub>,
    pub(crate) peer: String,
    /// The UID of the peer; 0 until it is known.
    uid: AtomicU64,
    /// The number by which the node's table of ports knows this link.
    pub(crate) port_owner: u64,
    /// The UID of this start of the system.
    pub(crate) own_uid: u64,
    pub(crate) outbox: PeerOutbox,
    has_ended: AtomicBool,
    /// Set when the hub ends the link.
    pub(crate) ended_at: OnceLock<Duration>,
    /// The parts that exist once the link is active.
    active: OnceLock<ActiveParts>,
    /// The actors of the peer's lanes, as far as there are any.
    lane_actors: Mutex<Vec<Option<AnyActorRef>>>,
    /// The references to actors of the peer.
    pub(crate) fars: FarTable<InternedFar>,
    /// The actors of the peer that have stand-ins.
    pub(super) stand_ins: StandIns<Far>,
    /// The actor that watches actors here for the peer.
    watcher: Mutex<Option<AnyActorRef>>,
    /// The watches that wait for it.
    waiting_watches: AtomicUsize,
    /// The actors at the peer that this node has made.
    pub(crate) deployments: Deployments<Deployment>,
    pub(super) early: EarlyMessages<NumberedMessage>,
    /// The actors here that the peer has made.
    pub(crate) deployed: DeployedTable,
    /// The number of the last message of control that has acted, of those that data wait for.
    acted: AtomicU64,
    /// The ports of the peer that are not answered, and whether their askers wait.
    imports: Mutex<HashMap<Token, Arc<AtomicBool>>>,
    /// The place of the ports of the peer, in each lane.
    port_memories: Box<[EntryMemory]>,
    pub(crate) malformed: AtomicU64,
    pub(crate) stale: AtomicU64,
    /// The envelopes of the peer that were refused.
    pub(crate) refused: RefusalCounters,
    /// The actors here that the peer is told to send no more.
    chokes: Mutex<Chokes<AnyActorRef>>,
    /// The sends here that were refused, since the actor at the peer is choked.
    choked_sends: AtomicU64,
    refused_control: AtomicU64,
    lost_replies: AtomicU64,
    /// By the reason of the policy.
    not_allowed_lines: [LogLimit; NotAllowed::COUNT],
    watches_full_lines: LogLimit,
    unknown_type_lines: LogLimit,
    /// The numbers of unknown types, and the time when the peer was told of each.
    unknown_types: Mutex<HashMap<u64, Duration>>,
    /// The bytes of unfinished messages of the peer.
    pub(crate) assembly_budget: AssemblyBudget,
    /// The ports of the peer that get no answer, and of which it is still to be told.
    unanswered: Mutex<Vec<(Token, Refused)>>,
}

struct ActiveParts {
    sending: Mutex<Box<[SendingLane]>>,
    incoming: Box<[IncomingLane]>,
    control: Mutex<LinkControl>,
    /// The roles of the peer, for the policy.
    roles: Vec<String>,
}

/// The numbered streams of control, in both directions.
pub(crate) struct LinkControl {
    pub(crate) sender: ControlSender<NumberedMessage>,
    pub(crate) receiver: ControlReceiver,
    pub(crate) gate: DataGate<NumberedMessage>,
}

/// A lane on which the peer sends.
struct IncomingLane {
    credit: Mutex<ReceivingLane>,
    queue: Mutex<BatchQueue>,
    assembly: Mutex<Assembly>,
}

/// The batches that wait for the lane's actor.
#[derive(Default)]
struct BatchQueue {
    frames: VecDeque<Vec<u8>>,
    /// Whether the actor has been told and has not found the queue empty since.
    is_scheduled: bool,
    /// The time since when the first batch waits for a message of control.
    waits_since: Option<Duration>,
}

/// The fate of a batch that came.
pub(crate) enum Arrived {
    /// The lane's actor is to be told.
    Tell,
    /// The lane's actor will find it, or it was taken before.
    Done,
}

/// Whether a batch has no envelopes.
fn is_empty_batch(frame: &[u8]) -> bool {
    frame.len() == HEADER_LEN && Prefix::read(frame, u8::MAX).is_ok_and(|prefix| prefix.envelopes == 0)
}

/// The envelopes of a batch that the sums of its lane count.
pub(crate) fn counted_of(frame: &[u8]) -> u16 {
    match (Prefix::read(frame, u8::MAX), Position::read(frame)) {
        (Ok(prefix), Ok(position)) => position.counted(prefix.envelopes),
        _ => 0,
    }
}

/// A watch of the peer, or the end of one, which waits for the actor that carries it out.
pub(crate) struct WaitingWatch(Arc<Link>);

impl Drop for WaitingWatch {
    fn drop(&mut self) {
        // Ordering: Relaxed; a count.
        self.0.waiting_watches.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Link {
    /// Makes a link on which messages wait. The UID is 0 if it is not known yet.
    pub(crate) fn new(hub: Arc<Hub>, peer: &str, uid: u64, lanes: u8, limits: OutboxLimits) -> Self {
        let own_uid = hub.uid();
        let assembly_budget = AssemblyBudget::new(hub.settings.limits.assembly_of(1));
        // No credit before the peer has told its window.
        let outbox = PeerOutbox::new(peer, Outbox::new(own_uid, uid, lanes, 0, limits));
        Self {
            hub,
            peer: peer.to_owned(),
            uid: AtomicU64::new(uid),
            port_owner: if uid == 0 { SystemUid::fresh().get() } else { uid },
            own_uid,
            outbox,
            has_ended: AtomicBool::new(false),
            ended_at: OnceLock::new(),
            active: OnceLock::new(),
            lane_actors: Mutex::default(),
            fars: FarTable::new(),
            stand_ins: StandIns::new(),
            watcher: Mutex::default(),
            waiting_watches: AtomicUsize::new(0),
            deployments: Deployments::new(),
            early: EarlyMessages::new(),
            deployed: DeployedTable::new(),
            acted: AtomicU64::new(0),
            imports: Mutex::default(),
            port_memories: (0..lanes).map(|_| EntryMemory::default()).collect(),
            malformed: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            refused: RefusalCounters::default(),
            chokes: Mutex::default(),
            choked_sends: AtomicU64::new(0),
            refused_control: AtomicU64::new(0),
            lost_replies: AtomicU64::new(0),
            not_allowed_lines: Default::default(),
            watches_full_lines: LogLimit::default(),
            unknown_type_lines: LogLimit::default(),
            unknown_types: Mutex::default(),
            assembly_budget,
            unanswered: Mutex::default(),
        }
    }

    /// The UID of the peer; 0 as long as it is not known.
    pub(crate) fn uid(&self) -> u64 {
        // Ordering: Relaxed; it is set once with the hub's lock held, and a frame that goes out before has no use for it.
        self.uid.load(Ordering::Relaxed)
    }

    /// The link is to the start of the peer that has this UID, as far as is known.
    pub(crate) fn set_uid(&self, uid: u64) {
        // Ordering: Relaxed; see `uid`.
        self.uid.store(uid, Ordering::Relaxed);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.get().is_some() && !self.has_ended()
    }

    pub(crate) fn has_ended(&self) -> bool {
        // Ordering: Relaxed; the outbox decides whether a message is taken.
        self.has_ended.load(Ordering::Relaxed)
    }

    /// The peer has greeted: it sends on so many lanes, and has room for `window` bytes in each lane of ours. `own_window` is our
    /// room for each lane of the peer. `before_data` is called before any batch can go out. Returns the batches that wait and are
    /// larger than the peer's window.
    pub(crate) fn activate(
        &self,
        peer_lanes: u8,
        (window, own_window): (u64, u64),
        roles: &[String],
        before_data: impl FnOnce(),
    ) -> Vec<Vec<u8>> {
        let lanes = self.outbox.outbox().lanes();
        let incoming = |_| IncomingLane {
            credit: Mutex::new(ReceivingLane::new(own_window)),
            queue: Mutex::default(),
            assembly: Mutex::default(),
        };
        let parts = ActiveParts {
            sending: Mutex::new((0..lanes).map(|_| SendingLane::new(window)).collect()),
            incoming: (0..peer_lanes).map(incoming).collect(),
            control: Mutex::new(LinkControl {
                sender: ControlSender::new(),
                receiver: ControlReceiver::default(),
                gate: DataGate::new(peer_lanes),
            }),
            roles: roles.to_vec(),
        };
        if self.active.set(parts).is_err() {
            return Vec::new();
        }
        before_data();
        let mut too_large = Vec::new();
        // The engine is told by the caller, in any case.
        let _ = self.outbox.outbox().open(self.uid(), window, |frame, _| too_large.push(frame));
        too_large
    }

    /// Marks the link as ended. Returns false if it has ended before.
    pub(crate) fn end(&self) -> bool {
        // Ordering: Relaxed; see `has_ended`.
        !self.has_ended.swap(true, Ordering::Relaxed)
    }

    /// The lane of an actor's path. A selection and a reference to one actor have one lane.
    pub(crate) fn lane_of(&self, path: &str) -> usize {
        let lanes = self.outbox.outbox().lanes() as u64;
        // FNV-1a, as in the numbers of types: short, and equal in each run.
        let feed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325, feed);
        // The low bits of this hash are the worse ones.
        ((hash >> 32) % lanes) as usize
    }

    /// The lane of an answer to a port of the peer.
    pub(crate) fn lane_of_port(&self, token: &Token) -> usize {
        usize::from(token[0]) % self.outbox.outbox().lanes()
    }

    pub(crate) fn port_memory(&self, lane: usize) -> &EntryMemory {
        &self.port_memories[lane]
    }

    /// Keeps a port whose token goes to the peer.
    pub(crate) fn export(&self, port: ExportedPort) -> Result<Token, PortsFull> {
        let mut swept = Vec::new();
        let exported = self.hub.ports.export(port, self.port_owner, &mut swept);
        self.hub.tell_unwanted(swept);
        exported.map_err(|(_, full)| full)
    }

    /// Makes a port of the token of a peer.
    pub(crate) fn import(self: &Arc<Self>, token: Token) -> ImportedPort {
        let is_wanted =
            lock(&self.imports).entry(token).or_insert_with(|| Arc::new(AtomicBool::new(true))).clone();
        ImportedPort::new(self.clone(), token, is_wanted)
    }

    /// A port of the peer is answered, or dropped.
    pub(crate) fn forget_import(&self, token: &Token) {
        lock(&self.imports).remove(token);
    }

    /// The askers of these ports wait no more.
    pub(crate) fn unwanted(&self, tokens: &[Token]) {
        let imports = lock(&self.imports);
        for is_wanted in tokens.iter().filter_map(|token| imports.get(token)) {
            // Ordering: Relaxed; advice only.
            is_wanted.store(false, Ordering::Relaxed);
        }
    }

    /// Puts an envelope into the outbox, and tells the engine if need be.
    pub(crate) fn push(
        self: &Arc<Self>,
        lane: usize,
        envelope: &Outgoing<'_>,
        memory: &EntryMemory,
    ) -> Result<(), PushError> {
        let wake = self.outbox.outbox().push(lane, envelope, memory)?;
        self.wake(wake);
        Ok(())
    }

    /// As [`push`](Self::push), for a message that goes in fragments.
    pub(crate) fn push_large(self: &Arc<Self>, lane: usize, message: &Outgoing<'_>) -> Result<(), PushError> {
        let wake = self.outbox.outbox().push_large(lane, message)?;
        self.wake(wake);
        Ok(())
    }

    pub(crate) fn wake(self: &Arc<Self>, wake: Wake) {
        if wake == Wake::Engine {
            self.hub.outbox_has_something(self);
        }
    }

    /// Takes in a batch. An error means that the peer breaks the protocol.
    pub(crate) fn take_batch(&self, prefix: &Prefix, frame: Vec<u8>) -> Result<Arrived, CreditError> {
        let Some(lane) = self.incoming(prefix.lane) else { return Ok(Arrived::Done) };
        let Ok(position) = Position::read(&frame) else {
            self.count_malformed();
            return Ok(Arrived::Done);
        };
        // Held until the batch is queued, so that batches are queued in order.
        let mut credit = lock(&lane.credit);
        if credit.arrive(&position, prefix.envelopes, frame.len())? == Arrival::Repeat {
            return Ok(Arrived::Done);
        }
        let is_empty = prefix.envelopes == 0;
        if is_empty && frame.len() > HEADER_LEN {
            self.count_malformed();
            return Ok(Arrived::Done);
        }
        let mut queue = lock(&lane.queue);
        // A batch without envelopes costs no credit. It has a mark alone, and marks rise: the last one stands for those before it.
        let before = queue.frames.back_mut().filter(|before| is_empty && is_empty_batch(before));
        if let Some(before) = before {
            // A probe may show no mark.
            if Position::read(before).is_ok_and(|before| before.mark <= position.mark) {
                *before = frame;
            }
            return Ok(Arrived::Done);
        }
        queue.frames.push_back(frame);
        // One that waits for a message of control is told by that.
        if queue.waits_since.is_some() {
            return Ok(Arrived::Done);
        }
        let was_scheduled = std::mem::replace(&mut queue.is_scheduled, true);
        Ok(if was_scheduled { Arrived::Done } else { Arrived::Tell })
    }

    /// The next batch for the actor of a lane. Once it is `None`, the actor is told of the next one, or of the message of control
    /// that the next one waits for.
    pub(crate) fn next_batch(&self, lane: u8) -> Option<Vec<u8>> {
        let mut queue = lock(&self.incoming(lane)?.queue);
        let fence = queue.frames.front().map_or(0, |frame| Position::read(frame).map_or(0, |it| it.fence));
        // Ordering: Relaxed; were this look before the store of `note_acted`, the lock of this queue would be taken there later.
        if fence > self.acted.load(Ordering::Relaxed) && !self.has_ended() && !self.hub.is_stopping() {
            let now = self.hub.now();
            let since = *queue.waits_since.get_or_insert(now);
            if now.saturating_sub(since) < FENCE_MAX {
                queue.is_scheduled = false;
                return None;
            }
        }
        queue.waits_since = None;
        let next = queue.frames.pop_front();
        queue.is_scheduled = next.is_some();
        next
    }

    /// The actor of a lane begins to handle a batch. `goes_on`: its first envelope is a fragment.
    pub(crate) fn begin_batch(&self, lane: u8, frame: &[u8], goes_on: bool) {
        let (Some(incoming), Ok(position)) = (self.incoming(lane), Position::read(frame)) else { return };
        let charge = if is_empty_batch(frame) { 0 } else { frame.len() as u64 };
        lock(&incoming.assembly).begin_batch(position.offset, charge, goes_on, &self.assembly_budget);
    }

    /// Takes a fragment of the batch that was begun.
    pub(crate) fn assemble(&self, lane: u8, fragment: &Fragment<'_>) -> Assembled {
        let Some(incoming) = self.incoming(lane) else { return Assembled::Part };
        let mut assembly = lock(&incoming.assembly);
        let max = self.hub.settings.limits.large_message;
        let assembled = assembly.take(fragment, max, &self.assembly_budget, self.hub.now());
        // Another thread may have given it up at the end of the link, before this fragment.
        if self.has_ended() {
            assembly.give_up(&self.assembly_budget);
        }
        assembled
    }

    /// Gives up the messages of which no fragment has come for too long.
    pub(crate) fn expire_assemblies(&self, now: Duration) {
        let lanes = self.active.get().map_or(&[][..], |parts| &parts.incoming);
        lanes.iter().for_each(|lane| lock(&lane.assembly).expire(&self.assembly_budget, now));
    }

    /// The message of control that has this number has acted: batches that wait for it are handled.
    pub(crate) fn note_acted(self: &Arc<Self>, number: u64) {
        // Ordering: Relaxed; see `next_batch`.
        self.acted.fetch_max(number, Ordering::Relaxed);
        self.tell_waiting_lanes();
    }

    /// Tells the actors of lanes whose batches wait for messages of control.
    pub(crate) fn tell_waiting_lanes(self: &Arc<Self>) {
        for lane in 0..self.incoming_lanes() {
            let Some(incoming) = self.incoming(lane) else { return };
            let is_to_be_told = {
                let mut queue = lock(&incoming.queue);
                let waits = queue.waits_since.is_some() && !queue.is_scheduled && !queue.frames.is_empty();
                queue.is_scheduled |= waits;
                waits
            };
            if is_to_be_told {
                self.tell_lane(lane);
            }
        }
    }

    /// A batch of so many envelopes was handled. Returns the receipt that the peer is to be told now.
    pub(crate) fn consumed(
        &self,
        lane: u8,
        envelopes: u16,
        bytes: usize,
        now: Duration,
    ) -> Option<LaneReceipt> {
        let mut credit = lock(&self.incoming(lane)?.credit);
        credit.consumed(envelopes, bytes);
        // At the end of this system the peer is not kept in doubt.
        let receipt = if self.hub.is_stopping() { Some(credit.tell(now)) } else { credit.due(now) };
        receipt.map(|receipt| LaneReceipt::new(lane, &receipt))
    }

    /// The receipts of all lanes, with which an account ends.
    pub(crate) fn last_receipts(&self, now: Duration) -> Vec<LaneReceipt> {
        let lanes = self.active.get().map_or(&[][..], |parts| &parts.incoming);
        let tell =
            |(lane, incoming): (u8, &IncomingLane)| LaneReceipt::new(lane, &lock(&incoming.credit).tell(now));
        (0..).zip(lanes).map(tell).collect()
    }

    /// Whether nothing waits, and the peer has told of all that was shipped.
    pub(crate) fn is_settled(&self) -> bool {
        let Some(parts) = self.active.get() else { return true };
        let sending = lock(&parts.sending);
        sending.iter().enumerate().all(|(lane, sending)| {
            let (counts, _) = self.outbox.outbox().lane_counts(lane);
            counts.queued == 0 && sending.in_doubt(counts.shipped) == 0
        })
    }

    /// Sets the bytes that may be under way in each lane of the peer from now on.
    pub(crate) fn set_window(&self, window: u64) {
        let lanes = self.active.get().map_or(&[][..], |parts| &parts.incoming);
        lanes.iter().for_each(|lane| lock(&lane.credit).set_window(window));
    }

    /// The receipts that the peer is to be told now.
    pub(crate) fn receipts_due(&self, now: Duration) -> Vec<LaneReceipt> {
        let Some(parts) = self.active.get() else { return Vec::new() };
        let due = |(lane, incoming): (u8, &IncomingLane)| {
            lock(&incoming.credit).due(now).map(|receipt| LaneReceipt::new(lane, &receipt))
        };
        (0..).zip(&parts.incoming).filter_map(due).collect()
    }

    /// Takes a receipt of the peer.
    pub(crate) fn told(self: &Arc<Self>, receipt: &LaneReceipt) -> Result<(), CreditError> {
        let lane = usize::from(receipt.lane);
        let Some(parts) = self.active.get() else { return Ok(()) };
        let outbox = self.outbox.outbox();
        let wake = {
            let mut sending = lock(&parts.sending);
            let Some(sending) = sending.get_mut(lane) else { return Ok(()) };
            let (counts, bytes) = outbox.lane_counts(lane);
            if !sending.told(&receipt.receipt(), bytes, counts.shipped)? {
                return Ok(());
            }
            outbox.grant(lane, sending.limit())
        };
        self.wake(wake);
        Ok(())
    }

    /// Sends probes on lanes that have waited for receipts since the last call.
    pub(crate) fn probe(self: &Arc<Self>) {
        let Some(parts) = self.active.get() else { return };
        let settled: Vec<u64> = lock(&parts.sending).iter().map(SendingLane::settled_bytes).collect();
        for (lane, settled) in settled.into_iter().enumerate() {
            self.wake(self.outbox.outbox().probe(lane, settled));
        }
    }

    /// An actor here has more messages than `max`: the peer is to send it no more.
    pub(crate) fn choke(
        self: &Arc<Self>,
        of: (&str, u32),
        max: usize,
        actor: impl FnOnce() -> Option<AnyActorRef>,
    ) {
        let looks = {
            let mut chokes = lock(&self.chokes);
            if chokes.add(of, max, actor, self.hub.now()) {
                // With the lock held, so that the beginning and the end of a choke go out in their order.
                self.tell_choke(ChokeNews { path: of.0.to_owned(), uid: of.1, is_choked: true });
            }
            chokes.begin_looking()
        };
        if looks {
            self.look_at_chokes_later();
        }
    }

    fn tell_choke(&self, ChokeNews { path, uid, is_choked }: ChokeNews) {
        self.hub.send_on(self, &ControlMessage::Choke { path, uid, is_choked });
    }

    fn look_at_chokes_later(self: &Arc<Self>) {
        let Some(system) = self.hub.system() else { return };
        let link = Arc::downgrade(self);
        let look = move || {
            if let Some(link) = link.upgrade() {
                link.look_at_chokes();
            }
        };
        // A call that comes back is not needed: the system has ended.
        drop(system.timers().try_call_at(system.now() + LOOK_AGAIN, Box::new(look)));
    }

    fn look_at_chokes(self: &Arc<Self>) {
        let (ended, looks) = {
            let mut chokes = lock(&self.chokes);
            let (news, ended) =
                if self.has_ended() { (Vec::new(), chokes.clear()) } else { chokes.look(self.hub.now()) };
            // With the lock held: see `choke`.
            news.into_iter().for_each(|news| self.tell_choke(news));
            (ended, chokes.begin_looking())
        };
        // Without the lock: the last reference to an actor may be among them.
        drop(ended);
        if looks {
            self.look_at_chokes_later();
        }
    }

    /// The peer tells that one of its actors has too many messages, or no longer.
    pub(crate) fn choked(&self, path: &str, uid: u32, is_choked: bool) {
        let until = self.hub.now() + LAPSES_AFTER;
        self.fars.see_all_of(path, uid, |known| match is_choked {
            true => known.far.state.choke(until),
            false => known.far.state.unchoke(),
        });
    }

    /// A send was refused, since the actor at the peer is choked.
    pub(crate) fn count_choked_send(&self) {
        // Ordering: Relaxed; a statistic.
        self.choked_sends.fetch_add(1, Ordering::Relaxed);
    }

    /// Locks the control streams; `None` before the link is active.
    pub(crate) fn with_control<R>(&self, act: impl FnOnce(&mut LinkControl) -> R) -> Option<R> {
        self.active.get().map(|parts| act(&mut lock(&parts.control)))
    }

    /// The roles of the peer, for the policy.
    pub(crate) fn roles(&self) -> &[String] {
        self.active.get().map_or(&[][..], |parts| &parts.roles)
    }

    /// The accesses that the policy gives to the peer.
    pub(crate) fn access(&self) -> &Access {
        self.hub.settings.policy.access(&self.peer, self.roles())
    }

    /// Tells the actor of a lane that batches wait. It is made for the first of them.
    pub(crate) fn tell_lane(self: &Arc<Self>, lane: u8) {
        if self.has_ended() {
            return self.refuse_rest();
        }
        if self.hub.is_stopping() {
            return Lane::handle_rest(self, lane);
        }
        let mut actors = lock(&self.lane_actors);
        let place = usize::from(lane);
        if actors.len() <= place {
            actors.resize(place + 1, None);
        }
        if self.has_ended() {
            drop(actors);
            return self.refuse_rest();
        }
        if actors[place].is_none() {
            actors[place] = Lane::spawn(self, lane);
        }
        if let Some(actor) = &actors[place] {
            Lane::tell(actor);
        }
    }

    /// Ends the actors of the lanes, after the link has ended.
    pub(crate) fn end_lanes(&self) {
        let actors = std::mem::take(&mut *lock(&self.lane_actors));
        let watcher = lock(&self.watcher).take();
        actors.into_iter().flatten().chain(watcher).for_each(|actor| actor.stop());
        self.refuse_rest();
        let choked = lock(&self.chokes).clear();
        drop(choked);
        // The report of the link needs none of it.
        let _ = self.with_control(|control| {
            control.sender.clear();
            control.gate.clear();
        });
    }

    /// Counts the envelopes as refused that have come and are not handled any more.
    fn refuse_rest(&self) {
        for lane in 0..self.incoming_lanes() {
            while let Some(frame) = self.next_batch(lane) {
                self.refused.count(DeadLetterReason::NodeGone, counted_of(&frame).into());
            }
            if let Some(incoming) = self.incoming(lane) {
                lock(&incoming.assembly).give_up(&self.assembly_budget);
            }
        }
    }

    /// The asker of a port gets no answer. The peer is told within a second, by control, since its outbox has no room.
    pub(crate) fn refuse_later(self: &Arc<Self>, token: Token, refused: Refused) {
        let is_many = {
            let mut unanswered = lock(&self.unanswered);
            unanswered.push((token, refused));
            unanswered.len() >= UNANSWERED_MAX
        };
        if is_many {
            self.tell_unanswered();
        }
    }

    /// Tells the peer of the ports that get no answer.
    pub(crate) fn tell_unanswered(self: &Arc<Self>) {
        let unanswered = std::mem::take(&mut *lock(&self.unanswered));
        for some in unanswered.chunks(UNANSWERED_MAX) {
            self.hub.send_numbered(self, NumberedMessage::Unanswered(some.to_vec()));
        }
    }

    /// A reply to the peer is lost.
    pub(crate) fn count_lost_reply(&self) {
        // Ordering: Relaxed; a statistic.
        self.lost_replies.fetch_add(1, Ordering::Relaxed);
    }

    /// A watch or a stop of the peer was refused.
    pub(crate) fn count_refused_control(&self) {
        // Ordering: Relaxed; a statistic.
        self.refused_control.fetch_add(1, Ordering::Relaxed);
    }

    /// Logs that the policy does not let something in.
    pub(crate) fn log_not_allowed(&self, path: &str, why: NotAllowed) {
        let Some(left_out) = self.not_allowed_lines[why as usize].note(self.hub.now()) else { return };
        let peer = &self.peer;
        match left_out {
            0 => log::warn!("node {peer} is refused at {path}: {why}"),
            _ => log::warn!(
                "node {peer} is refused at {path}: {why}; {left_out} more refusals were not logged"
            ),
        }
    }

    /// Logs that the peer watches more actors here than it may.
    pub(crate) fn log_watches_full(&self) {
        let Some(left_out) = self.watches_full_lines.note(self.hub.now()) else { return };
        log::warn!(
            "node {} watches too many actors here: raise `[remote.limits] watches-per-peer`; {left_out} more of these were \
             not logged",
            self.peer
        );
    }

    /// The peer knows no type of message of this number.
    pub(crate) fn log_unknown_type(&self, id: u64) {
        let Some(left_out) = self.unknown_type_lines.note(self.hub.now()) else { return };
        let peer = &self.peer;
        let text =
            format!("node {peer} knows no type of message with the number {id:#018x}: register it there");
        match left_out {
            0 => log::warn!("{text}"),
            _ => log::warn!("{text}; {left_out} more of these were not logged"),
        }
    }

    /// Tells the peer, at most once a second, that a type is not registered here.
    pub(crate) fn tell_unknown_type(&self, id: u64) {
        let now = self.hub.now();
        {
            let mut told = lock(&self.unknown_types);
            if told.get(&id).is_some_and(|last| now.saturating_sub(*last) < TOLD_AGAIN) {
                return;
            }
            if told.len() >= UNKNOWN_TYPES_MAX {
                told.clear();
            }
            told.insert(id, now);
        }
        self.hub.send_on(self, &ControlMessage::UnknownType { id });
    }

    /// The actor that watches actors here for the peer, which is made for the first watch.
    pub(crate) fn watcher(self: &Arc<Self>) -> Option<AnyActorRef> {
        let mut watcher = lock(&self.watcher);
        if watcher.is_none() && !self.has_ended() {
            *watcher = PeerWatcher::spawn(self);
        }
        watcher.clone()
    }

    /// Counts a watch until the value is dropped.
    pub(crate) fn begin_watch(self: &Arc<Self>) -> WaitingWatch {
        // Ordering: Relaxed; a count.
        self.waiting_watches.fetch_add(1, Ordering::Relaxed);
        WaitingWatch(self.clone())
    }

    /// Whether there is room for a numbered message: one that is not taken comes again.
    pub(crate) fn has_room_for(&self, message: &NumberedMessage, control: &LinkControl) -> bool {
        match message {
            NumberedMessage::Watch { .. } | NumberedMessage::Unwatch { .. } => {
                // Ordering: Relaxed; a count.
                self.waiting_watches.load(Ordering::Relaxed) < WATCHES_WAITING_MAX
            }
            message => !message.waits_for_data() || !control.gate.is_full(),
        }
    }

    pub(crate) fn incoming_lanes(&self) -> u8 {
        self.active.get().map_or(0, |parts| parts.incoming.len() as u8)
    }

    fn incoming(&self, lane: u8) -> Option<&IncomingLane> {
        self.active.get()?.incoming.get(usize::from(lane))
    }

    pub(crate) fn count_malformed(&self) {
        // Ordering: Relaxed; a statistic.
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn report(&self, is_suspect: bool) -> LinkReport {
        let state = match (self.has_ended(), self.is_active()) {
            (true, _) => LinkState::Ended,
            (_, false) => LinkState::Waiting,
            (_, true) if is_suspect => LinkState::Suspect,
            (_, true) => LinkState::Up,
        };
        let mut report = LinkReport {
            node: self.peer.clone(),
            uid: self.uid(),
            state,
            queued: 0,
            shipped: 0,
            confirmed: 0,
            lost: 0,
            repeated: 0,
            in_doubt: 0,
            received: 0,
            incomplete: 0,
            choked: lock(&self.chokes).len() as u64,
            // Ordering: Relaxed; statistics.
            malformed: self.malformed.load(Ordering::Relaxed),
            stale: self.stale.load(Ordering::Relaxed),
            refused: self.refused.sum(),
            refused_control: self.refused_control.load(Ordering::Relaxed),
            lost_replies: self.lost_replies.load(Ordering::Relaxed),
            choked_sends: self.choked_sends.load(Ordering::Relaxed),
            overdue: self.with_control(|control| control.gate.overdue).unwrap_or_default(),
        };
        let parts = self.active.get();
        for lane in 0..self.outbox.outbox().lanes() {
            // The receipt first: the peer has told of no more than was shipped by then.
            let sending = parts.map(|parts| *lock(&parts.sending)[lane].receipt());
            let Receipt { received, lost, repeated, .. } = sending.unwrap_or_default();
            let (counts, _) = self.outbox.outbox().lane_counts(lane);
            report.queued += counts.queued;
            report.shipped += counts.shipped;
            report.confirmed += received;
            report.lost += lost;
            report.repeated += repeated;
        }
        report.in_doubt = report.shipped.saturating_sub(report.confirmed + report.lost);
        for lane in parts.iter().flat_map(|parts| &parts.incoming) {
            report.received += lock(&lane.credit).received();
            report.incomplete += lock(&lane.assembly).given_up();
        }
        report
    }
}
