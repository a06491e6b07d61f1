//! The hub: one for each system with a node. It holds the associations and links, and takes what comes from senders, the
//! engine and the timers.
//!
//! One lock guards the associations, and no user code runs under it. Actions that may run user code (events, dead letters, the
//! ends of links) are queued in order, and carried out without the lock by the thread that finds no other thread at it. The engine never calls the hub
//! from within a call of the hub, so the hub may call the engine with its lock held.

use crate::ask::error::AskError;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::elsewhere::EndElsewhere;
use crate::core::ledger::Ledger;
use crate::core::system::{SystemCore, SystemRef};
use crate::path::actor_path::ActorPath;
use crate::path::canonical_path::check_canonical;
use crate::remote::association::{
    Association, Effect, Greeting, Input, PROTOCOL, Refusal, Sends, Side, Verdict,
};
use crate::remote::batch::{Batch, Envelope, EnvelopeKind, Place, Token};
use crate::remote::control_message::{ControlMessage, Hello, NumberedMessage};
use crate::remote::deploy_message::parent_names;
use crate::remote::early_messages::{EARLY_MAX, Early};
use crate::remote::engine::{Channel, ChannelKind, Fabric, Inbound};
use crate::remote::frame::{FrameKind, PREFIX_LEN, Prefix, WINDOW_MIN};
use crate::remote::hub_settings::{HubSettings, NodeName};
use crate::remote::lane::Lane;
use crate::remote::limits::{FRAME_MAX, FRAME_REST};
use crate::remote::link::{Arrived, Link, LinkControl};
use crate::remote::link_report::LinkReport;
use crate::remote::node_event::NodeEvent;
use crate::remote::on_quarantine::OnQuarantine;
use crate::remote::peer_watcher::PeerWatcher;
use crate::remote::policy::{Incoming, Target};
use crate::remote::ports::{Ports, Unwanted};
use crate::remote::registry::Registry;
use crate::remote::reply_ports::ExportedPort;
use crate::remote::uid::SystemUid;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{HashMap, Mutex, OnceLock, lock, thread};
use crate::telemetry::link_stats::NodeStats;
use crate::util::panic::{drop_guarded, quietly};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::Weak as StdWeak;
use std::time::{Duration, Instant};

/// The most tokens in a control message.
const TOKENS_MAX: usize = 1000;

/// The number of a link to a start of a peer whose UID is not known.
const UNKNOWN_UID: u64 = 0;

/// The most links that have ended and are reported.
const ENDED_MAX: usize = 64;

/// How long exporters show a link that has ended: a few readings of a server of metrics.
const ENDED_SHOWN: Duration = Duration::from_secs(300);

pub(crate) struct Hub {
    me: StdWeak<Hub>,
    pub(crate) settings: HubSettings,
    pub(crate) registry: Registry,
    /// The reply ports that were sent to peers.
    pub(crate) ports: Ports<ExportedPort>,
    uid: AtomicU64,
    fabric: OnceLock<Arc<dyn Fabric>>,
    /// The most bytes that the engine carries in a frame.
    max_frame: AtomicUsize,
    system: OnceLock<StdWeak<SystemCore>>,
    /// Whether the system ends: all its actors have ended.
    is_stopping: AtomicBool,
    pub(crate) deploying: Box<dyn Deploying>,
    inner: Mutex<Inner>,
}

/// The most starts of one peer that are not linked and have links: references that a peer sends may name any.
const WAITING_LINKS_MAX: usize = 8;

/// Whether a link is active, a reference has it, or something waits on it.
fn is_needed(link: &Arc<Link>) -> bool {
    link.is_active() || Arc::strong_count(link) > 1 || link.outbox.outbox().counts().queued > 0
}

/// Carries out what concerns actors that one node has made on another.
pub(crate) trait Deploying: Send + Sync {
    /// Takes a message of the peer about a deployment.
    fn take(&self, link: &Arc<Link>, message: NumberedMessage);

    /// Looks after requests that the peer has not answered. Called each second.
    fn tick(&self, link: &Arc<Link>);

    /// The link has ended.
    fn link_ended(&self, link: &Arc<Link>);

    /// The factory of routers of this name.
    fn router_factory(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>>;
}

/// An action that is carried out without the hub's lock.
type After = Box<dyn FnOnce(&Arc<Hub>) + Send>;

#[derive(Default)]
struct Inner {
    /// In the order of names.
    peers: BTreeMap<String, Peer>,
    /// The links that have ended last, for reports.
    ended: VecDeque<Arc<Link>>,
    /// The envelopes that were shipped by links which are not reported any more.
    retired_shipped: u64,
    /// The last reports of all links, once the node has ended.
    last_reports: Vec<LinkReport>,
    /// The last system that has declared this one down, and the UID that it meant.
    quarantined: Option<(u64, u64)>,
    /// The UIDs that this start of the system had before.
    old_uids: Vec<u64>,
    /// The temporary actors whose references were handed out.
    exports: HashMap<u32, ActorPath>,
    heartbeat: u32,
    /// The time when the lock was taken last to change something.
    now: Duration,
    /// The last tick: one that comes late tells of a pause of this node.
    ticked: Duration,
    after: VecDeque<After>,
    /// Whether a thread carries out what is queued.
    is_draining: bool,
    has_ended: bool,
}

/// The node of one name, as far as it is known.
struct Peer {
    association: Association,
    /// The links by UID: the active one, or those on which messages wait.
    links: BTreeMap<u64, Arc<Link>>,
    roles: Vec<String>,
    is_suspect: bool,
}

impl Hub {
    pub(crate) fn new(settings: HubSettings, registry: Registry, deploying: Box<dyn Deploying>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            registry,
            ports: Ports::new(settings.limits.pending_asks),
            settings,
            uid: AtomicU64::new(SystemUid::fresh().get()),
            fabric: OnceLock::new(),
            max_frame: AtomicUsize::new(FRAME_MAX),
            system: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            deploying,
            inner: Mutex::default(),
        })
    }

    pub(crate) fn uid(&self) -> u64 {
        // Ordering: Relaxed; it changes with the hub's lock held, and a look without the lock is a hint.
        self.uid.load(Ordering::Relaxed)
    }

    /// The system, while it lives.
    pub(crate) fn system(&self) -> Option<Arc<SystemCore>> {
        self.system.get()?.upgrade()
    }

    /// Whether the system ends: all its actors have ended.
    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Relaxed; it is set before the locks of the lanes are taken, which order it with batches that come.
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Duration {
        self.system().map_or(Duration::ZERO, |system| system.now())
    }

    /// The engine runs: the hub begins its heartbeats.
    pub(crate) fn started(&self, fabric: Arc<dyn Fabric>) {
        // Set once: a node is started once.
        let _ = self.fabric.set(fabric);
        self.arm();
    }

    /// The hub belongs to this system.
    pub(crate) fn serve(&self, system: &Arc<SystemCore>) {
        let _ = self.system.set(Arc::downgrade(system));
    }

    /// Sets the timer of the next heartbeat.
    fn arm(&self) {
        let Some(system) = self.system() else { return };
        let due = system.now() + self.settings.association.detector.heartbeat;
        let me = self.me.clone();
        let beat = move || {
            if let Some(hub) = me.upgrade() {
                hub.tick();
                hub.arm();
            }
        };
        // A call that comes back is not needed: the system has ended.
        drop(system.timers().try_call_at(due, Box::new(beat)));
    }

    // ---- the lock, and what is done without it

    /// Runs `act` with the hub's lock held, and then what has been queued.
    fn with<R>(&self, act: impl FnOnce(&mut Inner, Duration) -> R) -> R {
        let now = self.now();
        let result = {
            let mut inner = lock(&self.inner);
            inner.now = now;
            act(&mut inner, now)
        };
        self.drain();
        result
    }

    fn drain(&self) {
        let Some(hub) = self.me.upgrade() else { return };
        loop {
            let next = {
                let mut inner = lock(&self.inner);
                if inner.is_draining {
                    return;
                }
                let Some(next) = inner.after.pop_front() else { return };
                inner.is_draining = true;
                next
            };
            quietly(|| next(&hub));
            lock(&self.inner).is_draining = false;
        }
    }

    /// Sends a control frame; one that is lost comes again, or does not matter.
    fn send(&self, peer: &str, to: u64, message: &ControlMessage) {
        if let Some(fabric) = self.fabric.get() {
            let _ = fabric.publish(Channel::Control(peer), message.frame(self.uid(), to));
        }
    }

    fn publish(inner: &mut Inner, event: NodeEvent) {
        inner.after.push_back(Box::new(move |hub| {
            log::log!(event.level(), "{event}");
            if let Some(system) = hub.system() {
                system.events.publish(&event);
            }
        }));
    }

    // ---- peers and links

    /// The bytes that may be under way to this node in each lane of each of so many peers, which have so many lanes.
    fn window(&self, peers: usize, lanes: u8) -> u64 {
        let limits = &self.settings.limits;
        let of_lane = limits.window_of(peers) / usize::from(lanes.max(1));
        of_lane.max(limits.envelope + FRAME_REST).max(2 * limits.batch) as u64
    }

    fn greeting(&self, peers: usize) -> Greeting {
        let NodeName { system, cluster, node, .. } = self.settings.name.clone();
        let (lanes, window) = (self.settings.lanes, self.window(peers, self.settings.lanes));
        Greeting { protocol: PROTOCOL, cluster, system, node, uid: self.uid(), lanes, window, to: 0 }
    }

    /// The peer of this name, which is made if there is room for one more.
    fn peer<'a>(&self, inner: &'a mut Inner, name: &str, now: Duration) -> Option<&'a mut Peer> {
        if !inner.peers.contains_key(name) {
            if inner.has_ended || inner.peers.len() >= self.settings.limits.associations {
                return None;
            }
            let greeting = self.greeting(inner.peers.len() + 1);
            let association = Association::new(greeting, self.side(inner), self.settings.association, now);
            let peer = Peer { association, links: BTreeMap::new(), roles: Vec::new(), is_suspect: false };
            inner.peers.insert(name.to_owned(), peer);
        }
        inner.peers.get_mut(name)
    }

    /// Gives the association with a peer an input, and carries out what follows.
    fn input(&self, inner: &mut Inner, name: &str, input: Input, now: Duration) {
        if let Some(peer) = self.peer(inner, name, now) {
            let effects = peer.association.on(input, now);
            self.carry_out(inner, name, effects);
        }
    }

    /// Begins an association with a peer, if there is none.
    pub(crate) fn connect(&self, name: &str) {
        self.with(|inner, now| self.input(inner, name, Input::Wanted, now));
    }

    fn new_link(&self, name: &str, uid: u64) -> Option<Arc<Link>> {
        let hub = self.me.upgrade()?;
        // Ordering: Relaxed; see `envelope_max`.
        let outbox = self.settings.outbox.within_frame(self.max_frame.load(Ordering::Relaxed));
        Some(Arc::new(Link::new(hub, name, uid, self.settings.lanes, outbox)))
    }

    /// The link to the start of a peer that has this UID. It has ended already, if that start is gone.
    pub(crate) fn link(&self, name: &str, uid: u64) -> Option<Arc<Link>> {
        self.with(|inner, now| {
            if let Some(peer) = self.peer(inner, name, now) {
                if let Some(link) = peer.links.get(&uid) {
                    return Some(link.clone());
                }
                let is_gone = peer.association.is_dead(uid)
                    || peer.association.peer().is_some_and(|other| other != uid);
                if peer.links.len() >= WAITING_LINKS_MAX {
                    peer.links.retain(|_, link| is_needed(link));
                }
                if !is_gone && peer.links.len() < WAITING_LINKS_MAX {
                    let link = self.new_link(name, uid)?;
                    peer.links.insert(uid, link.clone());
                    return Some(link);
                }
            }
            self.ended_link(name, uid)
        })
    }

    /// The link to the present start of a peer, whose UID need not be known. It has ended already, if the peer is down; `None` if
    /// this node knows too many others, or ends.
    ///
    /// A start from which references have come, and which has not greeted yet, is not taken for it: a peer may name any.
    pub(crate) fn link_to(&self, name: &str) -> Option<Arc<Link>> {
        if let Some(link) = self.active_link(name) {
            return Some(link);
        }
        self.with(|inner, now| {
            let peer = self.peer(inner, name, now)?;
            let uid = peer.association.peer();
            if let Some(link) = peer.links.get(&uid.unwrap_or(UNKNOWN_UID)) {
                return Some(link.clone());
            }
            if peer.association.sends() == Sends::Refuse {
                return self.ended_link(name, UNKNOWN_UID);
            }
            let uid = uid.unwrap_or(UNKNOWN_UID);
            let link = self.new_link(name, uid)?;
            peer.links.insert(uid, link.clone());
            self.input(inner, name, Input::Wanted, now);
            Some(link)
        })
    }

    /// A link to a start of a peer that is gone.
    fn ended_link(&self, name: &str, uid: u64) -> Option<Arc<Link>> {
        let link = self.new_link(name, uid)?;
        link.end();
        link.outbox.outbox().close();
        Some(link)
    }

    /// The link with a node that is up.
    pub(crate) fn active_link(&self, name: &str) -> Option<Arc<Link>> {
        let inner = lock(&self.inner);
        let peer = inner.peers.get(name)?;
        peer.links.get(&peer.association.peer()?).filter(|link| link.is_active()).cloned()
    }

    /// The names of the nodes that are up.
    pub(crate) fn active_peers(&self) -> Vec<String> {
        let inner = lock(&self.inner);
        let is_up = |peer: &Peer| peer.links.values().any(|link| link.is_active());
        inner.peers.iter().filter(|(_, peer)| is_up(peer)).map(|(name, _)| name.clone()).collect()
    }

    /// Whether this start of the system has or had the UID. References do not tell which of its own they are of: 0.
    pub(crate) fn was_uid(&self, uid: u64) -> bool {
        uid == self.uid() || lock(&self.inner).old_uids.contains(&uid)
    }

    /// A reference to a temporary actor is handed out, so messages to it may come in.
    pub(crate) fn note_export(&self, actor: &AnyActorRef) {
        lock(&self.inner).exports.insert(actor.uid(), actor.path());
    }

    pub(crate) fn is_export(&self, uid: u32) -> bool {
        lock(&self.inner).exports.contains_key(&uid)
    }

    /// The most bytes of an encoded message in one piece.
    pub(crate) fn envelope_max(&self) -> usize {
        // Ordering: Relaxed; a limit that the engine checks again.
        let frame = self.max_frame.load(Ordering::Relaxed);
        self.settings.limits.envelope.min(frame.saturating_sub(FRAME_REST))
    }

    /// The most bytes of an encoded message that may go in fragments.
    pub(crate) fn message_max(&self) -> usize {
        // Ordering: Relaxed; as above.
        let has_room = self.max_frame.load(Ordering::Relaxed) >= WINDOW_MIN;
        if has_room { self.settings.limits.large_message } else { self.envelope_max() }
    }

    /// Tells peers that the askers of ports wait no more.
    pub(crate) fn tell_unwanted(&self, swept: Vec<Unwanted<ExportedPort>>) {
        if swept.is_empty() {
            return;
        }
        let mut by_peer: BTreeMap<u64, Vec<Token>> = BTreeMap::new();
        for Unwanted { peer, token, port } in swept {
            by_peer.entry(peer).or_default().push(token);
            drop_guarded(port);
        }
        let links: Vec<_> = {
            let inner = lock(&self.inner);
            let links = inner.peers.values().flat_map(|peer| peer.links.values());
            links.filter(|link| link.is_active() && by_peer.contains_key(&link.port_owner)).cloned().collect()
        };
        for link in links {
            for tokens in
                by_peer.get(&link.port_owner).into_iter().flat_map(|tokens| tokens.chunks(TOKENS_MAX))
            {
                self.send_on(&link, &ControlMessage::Unwanted(tokens.to_vec()));
            }
        }
    }

    /// A link is needed that is not active: greets the peer. Messages that wait for a peer which has refused this node become
    /// dead letters at once.
    pub(crate) fn want(&self, link: &Arc<Link>) {
        self.with(|inner, now| {
            self.input(inner, &link.peer, Input::Wanted, now);
            let is_refused =
                inner.peers.get(&link.peer).is_some_and(|peer| peer.association.sends() == Sends::Refuse);
            if is_refused && !link.is_active() {
                self.give_up_waiting(inner, &link.peer, now);
            }
        });
    }

    /// The outbox of a link has something, and its engine was not told.
    pub(crate) fn outbox_has_something(&self, link: &Arc<Link>) {
        if !link.is_active() {
            // The engine is told when the link becomes active: it looks through the outbox after this push.
            self.want(link);
        } else if let Some(fabric) = self.fabric.get() {
            fabric.wants_out(&link.outbox);
        }
    }

    fn carry_out(&self, inner: &mut Inner, name: &str, effects: Vec<Effect>) {
        for effect in effects {
            let Some(peer) = inner.peers.get_mut(name) else { return };
            let roles = &self.settings.name.roles;
            match effect {
                Effect::SendHello { to } => {
                    let hello = Hello::new(&peer.association.greeting(to), roles);
                    self.send(name, to, &ControlMessage::Hello(hello));
                }
                Effect::SendWelcome { to } => {
                    let hello = Hello::new(&peer.association.greeting(to), roles);
                    self.send(name, to, &ControlMessage::Welcome(hello));
                }
                Effect::SendRefused { to, why } => self.send(name, to, &ControlMessage::Refused(why)),
                Effect::SendQuarantined { to } => {
                    let message = ControlMessage::from(peer.association.side());
                    self.send(name, to, &message);
                }
                Effect::Activated { uid, lanes, window, .. } => {
                    self.activated(inner, name, uid, lanes, window)
                }
                Effect::Ended { uid, reason } => {
                    peer.is_suspect = false;
                    if let Some(link) = peer.links.remove(&uid) {
                        Self::end_link(inner, link);
                        let event = NodeEvent::Down { node: name.to_owned(), uid, reason: reason.into() };
                        Self::publish(inner, event);
                        self.tell_side(inner);
                    }
                }
                Effect::GiveUpWaiting => self.give_up_waiting(inner, name, self.now()),
                Effect::Suspected { uid } => {
                    peer.is_suspect = true;
                    Self::publish(inner, NodeEvent::Suspect { node: name.to_owned(), uid });
                }
                Effect::Reachable { uid } => {
                    peer.is_suspect = false;
                    Self::publish(inner, NodeEvent::Reachable { node: name.to_owned(), uid });
                }
                // A system that ends gives way already.
                Effect::GiveWay { .. } if self.is_stopping() => {}
                Effect::GiveWay { by } => {
                    // Told again with each frame that the other node gets.
                    if inner.quarantined.replace((by, self.uid())) != Some((by, self.uid())) {
                        Self::publish(inner, NodeEvent::Quarantined { by });
                        inner.after.push_back(Box::new(|hub| hub.give_way()));
                    }
                }
            }
        }
    }

    /// A peer does not answer: what waits for it becomes dead letters. Where actors here watch actors there, or have made them,
    /// they are told that the node is down; so that start of the peer is not talked to any more.
    fn give_up_waiting(&self, inner: &mut Inner, name: &str, now: Duration) {
        let Some(peer) = inner.peers.get_mut(name) else { return };
        let inactive = peer.links.values().filter(|link| !link.is_active()).cloned();
        let (ended, waiting): (Vec<_>, Vec<_>) = inactive.partition(|link| link.stand_ins.has_living());
        for link in &ended {
            peer.links.retain(|_, other| !Arc::ptr_eq(other, link));
            if link.uid() != UNKNOWN_UID {
                peer.association.bury(link.uid(), now);
            }
        }
        ended.into_iter().for_each(|link| Self::end_link(inner, link));
        inner.after.push_back(Box::new(move |hub| {
            waiting.iter().filter(|link| !link.is_active()).for_each(|link| hub.drop_waiting(link, false));
        }));
    }

    fn activated(&self, inner: &mut Inner, name: &str, uid: u64, lanes: u8, window: u64) {
        let Some(peer) = inner.peers.get_mut(name) else { return };
        peer.is_suspect = false;
        let mut links = std::mem::take(&mut peer.links);
        // Where a reference to this start has come before it greeted, the link of that goes on if anything hangs on it, and the
        // other one ends.
        let known = links.remove(&uid);
        let is_unused =
            |link: &Arc<Link>| link.outbox.outbox().counts().queued == 0 && !link.stand_ins.has_living();
        let link = match known {
            Some(known) if links.contains_key(&UNKNOWN_UID) && is_unused(&known) => {
                Self::end_link(inner, known);
                links.remove(&UNKNOWN_UID)
            }
            Some(known) => Some(known),
            None => links.remove(&UNKNOWN_UID),
        };
        let Some(link) = link.or_else(|| self.new_link(name, uid)) else { return };
        link.set_uid(uid);
        let Some(peer) = inner.peers.get_mut(name) else { return };
        let windows = (window, peer.association.greeting(0).window);
        let too_large = link.activate(lanes, windows, &peer.roles, || self.send_early(&link));
        peer.links.insert(uid, link.clone());
        // Those of other starts, which are gone.
        links.into_values().for_each(|link| Self::end_link(inner, link));
        self.tell_side(inner);
        let for_waiting = link.clone();
        Self::publish(inner, NodeEvent::Up { node: name.to_owned(), uid });
        inner.after.push_back(Box::new(move |hub| {
            for frame in too_large {
                hub.lose(&for_waiting, &frame, DeadLetterReason::TooLarge);
            }
            for_waiting.tell_watches();
        }));
        if let Some(fabric) = self.fabric.get() {
            fabric.wants_out(&link.outbox);
        }
    }

    /// The living members that this node sees: itself, and those that it is linked with.
    fn side(&self, inner: &Inner) -> Side {
        let living = inner.peers.iter().filter(|(_, peer)| peer.association.peer().is_some());
        let names = living.map(|(name, _)| name.as_str()).chain([self.settings.name.node.as_str()]);
        let (members, least) = names.fold((0, None::<&str>), |(members, least), name| {
            (members + 1, Some(least.map_or(name, |least| least.min(name))))
        });
        Side { members, least: least.unwrap_or_default().to_owned() }
    }

    /// The links of this node have changed.
    fn tell_side(&self, inner: &mut Inner) {
        let side = self.side(inner);
        inner.peers.values_mut().for_each(|peer| peer.association.set_side(side.clone()));
    }

    /// Ends a link that the association has given up: what hangs on it ends without the lock.
    fn end_link(inner: &mut Inner, link: Arc<Link>) {
        link.end();
        // Set once: a link is ended once.
        let _ = link.ended_at.set(inner.now);
        inner.ended.push_back(link.clone());
        if inner.ended.len() > ENDED_MAX {
            if let Some(oldest) = inner.ended.pop_front() {
                inner.retired_shipped += oldest.outbox.outbox().message_counts().shipped;
                inner.after.push_back(Box::new(move |_| oldest.release_stand_ins(true)));
            }
        }
        inner.after.push_back(Box::new(move |hub| {
            link.end_lanes();
            hub.drop_waiting(&link, true);
            for port in hub.ports.peer_down(link.port_owner) {
                port.fail(AskError::PeerGone { target: None });
            }
            link.end_stand_ins();
            hub.deploying.link_ended(&link);
            // They are closed for good, and equal to no later ones.
            drop(link.fars.take_all());
        }));
    }

    /// Makes dead letters of what waits for a peer.
    fn drop_waiting(&self, link: &Link, is_end: bool) {
        let outbox = link.outbox.outbox();
        if !is_end {
            // First: a push that the following look misses wakes again.
            outbox.begin_look();
        }
        outbox.end_with(is_end, |frame, _| self.lose(link, &frame, DeadLetterReason::NodeGone));
    }

    /// Makes dead letters of the messages of a batch that cannot go out, and ends its asks.
    fn lose(&self, link: &Link, frame: &[u8], reason: DeadLetterReason) {
        let (Some(system), Ok(batch)) = (self.system(), Batch::read(frame, u8::MAX, usize::MAX)) else {
            return;
        };
        for envelope in batch.envelopes() {
            for port in
                envelope.tokens.iter().filter_map(|token| self.ports.take(token, link.port_owner).ok())
            {
                port.fail(AskError::refused_for(reason));
            }
            self.dead_letter(&system, link, &envelope, reason);
        }
    }

    /// Counts an envelope as a dead letter, if it is a message, and shows it.
    fn dead_letter(
        &self,
        system: &SystemCore,
        link: &Link,
        envelope: &Envelope<'_>,
        reason: DeadLetterReason,
    ) {
        let (text, type_id) = match (envelope.ends(), envelope.place) {
            (EnvelopeKind::Tell | EnvelopeKind::AskEach, Place::Actor { path, type_id, .. }) => {
                (path, type_id)
            }
            (EnvelopeKind::Select, Place::Selection { text, type_id }) => (text, type_id),
            _ => return,
        };
        system.ledger().for_this_thread().dead_lettered(1);
        let message_type = self.registry.by_id(type_id).map_or("a message", |known| known.rust_name);
        let recipient = || self.path_at(&link.peer, text);
        system.dead_letters().publish(reason, message_type, recipient);
    }

    /// The path of an actor at a peer.
    pub(crate) fn path_at(&self, peer: &str, path: &str) -> ActorPath {
        let text = format!("pointsman://{}@{peer}{path}", self.settings.name.system);
        text.parse().unwrap_or_else(|_| crate::core::dead_letter::nowhere())
    }

    /// Gives way to a node that has declared this system down, as the settings say.
    fn give_way(&self) {
        match self.settings.on_quarantine {
            OnQuarantine::Rejoin => self.rejoin(),
            OnQuarantine::Event => {}
            OnQuarantine::Stop => {
                if let Some(system) = self.system() {
                    let system = SystemRef::new(system);
                    let _run = system.coordinated_shutdown().run("another node has declared this one down");
                }
            }
        }
    }

    /// Takes a new UID: all associations end and begin anew.
    pub(crate) fn rejoin(&self) {
        self.with(|inner, now| {
            let (old, new) = (self.uid(), SystemUid::fresh().get());
            // Ordering: Relaxed; see `uid`.
            self.uid.store(new, Ordering::Relaxed);
            inner.old_uids.push(old);
            if let Some(fabric) = self.fabric.get() {
                fabric.set_uid(new);
            }
            let names: Vec<String> = inner.peers.keys().cloned().collect();
            for name in names {
                let Some(peer) = inner.peers.get_mut(&name) else { continue };
                let effects = peer.association.rejoin(new, now);
                self.carry_out(inner, &name, effects);
                // Those on which messages wait have the old UID in their frames.
                let Some(peer) = inner.peers.get_mut(&name) else { continue };
                let links = std::mem::take(&mut peer.links);
                links.into_values().for_each(|link| Self::end_link(inner, link));
            }
            Self::publish(inner, NodeEvent::Rejoined { old, new });
        });
    }

    /// Sends the numbered messages that have waited for the link, before its data can go out.
    fn send_early(&self, link: &Link) {
        let now = self.now();
        link.early.send_all(|message| {
            let number = link.with_control(|control| control.sender.push(message.clone(), now));
            // The stream has room for as many as are kept.
            if let Some(Ok(number)) = number {
                if message.is_fence() {
                    link.outbox.outbox().fence_all(number);
                }
                if message.waits_for_data() {
                    // The engine is told when the link is active.
                    let _ = link.outbox.outbox().mark(number);
                }
                self.send(&link.peer, link.uid(), &ControlMessage::Numbered { number, message });
            }
        });
    }

    // ---- the numbered stream

    /// Sends a numbered message, or keeps it until the link is active. Returns false if too many wait, and it is lost.
    pub(crate) fn send_when_active(&self, link: &Arc<Link>, message: NumberedMessage) -> bool {
        match link.early.keep(message) {
            Early::Kept => true,
            Early::Active(message) => {
                self.send_numbered(link, message);
                true
            }
            Early::Full => {
                log::error!(
                    "a control message for node {} is lost: more than {EARLY_MAX} wait for the link to it",
                    link.peer
                );
                false
            }
        }
    }

    /// Sends a numbered message on a link. One that waits for data acts behind all that was sent before.
    pub(crate) fn send_numbered(&self, link: &Arc<Link>, message: NumberedMessage) {
        if !self.try_send_numbered(link, message) {
            self.fault(&link.peer, link.uid());
        }
    }

    /// As [`send_numbered`](Self::send_numbered), for callers that hold a lock. Returns false if the peer is to be given up.
    pub(crate) fn try_send_numbered(&self, link: &Arc<Link>, message: NumberedMessage) -> bool {
        let now = self.now();
        let mut wakes = Vec::new();
        // With the lock of the stream held, so that frames go out in the order of their numbers: the peer takes no other.
        let sent = link.with_control(|control| {
            // Nothing goes out behind the end, which empties the stream with this lock held.
            if link.has_ended() {
                return Some(());
            }
            let number = control.sender.push(message.clone(), now).ok()?;
            if message.waits_for_data() {
                wakes.push(link.outbox.outbox().mark(number));
            }
            if message.is_fence() {
                wakes.push(link.outbox.outbox().fence(number));
            }
            self.send(&link.peer, link.uid(), &ControlMessage::Numbered { number, message });
            Some(())
        });
        wakes.into_iter().for_each(|wake| link.wake(wake));
        sent.is_none_or(|sent| sent.is_some())
    }

    /// The peer breaks the protocol, or its control stream stands still.
    pub(crate) fn fault(&self, name: &str, uid: u64) {
        self.with(|inner, now| {
            if inner.peers.get(name).is_some_and(|peer| peer.association.peer() == Some(uid)) {
                self.input(inner, name, Input::Fault, now);
            }
        });
    }

    /// Sends a control message that is not numbered on a link.
    pub(crate) fn send_on(&self, link: &Link, message: &ControlMessage) {
        self.send(&link.peer, link.uid(), message);
    }

    /// Takes a numbered message of the peer.
    fn take_numbered(&self, link: &Arc<Link>, number: u64, message: NumberedMessage) {
        use crate::remote::control::Numbered;
        let now = self.now();
        let taken = link.with_control(|control| {
            let has_room = link.has_room_for(&message, control);
            let LinkControl { receiver, gate, .. } = control;
            let taken = if has_room { receiver.take(number) } else { Numbered::Gap };
            let acts_as_fence = taken == Numbered::Apply && message.is_fence();
            let due = match taken {
                Numbered::Apply if message.waits_for_data() => {
                    let bytes = message.waiting_bytes();
                    gate.wait(number, message, bytes, now);
                    std::iter::from_fn(|| gate.next(now)).collect()
                }
                Numbered::Apply => vec![message],
                Numbered::Repeat | Numbered::Gap => Vec::new(),
            };
            (due, (taken != Numbered::Gap).then(|| receiver.applied()), acts_as_fence)
        });
        let Some((due, ack, acts_as_fence)) = taken else { return };
        if let Some(upto) = ack {
            self.send_on(link, &ControlMessage::Ack { upto });
        }
        due.into_iter().for_each(|message| self.apply(link, message));
        if acts_as_fence {
            link.note_acted(number);
        }
    }

    /// A lane has handled a batch with this mark: control that has waited for it acts.
    pub(crate) fn mark_shown(&self, link: &Arc<Link>, lane: u8, mark: u64, has_envelopes: bool) {
        let now = self.now();
        let due = link.with_control(|control| {
            control.gate.show(lane, mark, has_envelopes, now);
            std::iter::from_fn(|| control.gate.next(now)).collect::<Vec<_>>()
        });
        due.unwrap_or_default().into_iter().for_each(|message| self.apply(link, message));
    }

    /// Carries out a numbered message of the peer.
    fn apply(&self, link: &Arc<Link>, message: NumberedMessage) {
        match message {
            NumberedMessage::Goodbye => {
                let from = link.uid();
                // All that the peer has sent was handled: its account ends without doubt.
                self.send_on(link, &ControlMessage::Credit(link.last_receipts(self.now())));
                self.with(|inner, now| self.input(inner, &link.peer, Input::Goodbye { from }, now));
            }
            NumberedMessage::Terminated { path, uid, existed } => {
                link.far_ended(&path, uid, EndElsewhere { existed, node_down: false });
            }
            NumberedMessage::Watch { path, uid } => {
                let target = self.target(link, &path, uid);
                let actor = self.actor_for(link, Incoming::Watch(target), &path, uid);
                let refused = match (actor, link.watcher()) {
                    (Ok(actor), Some(watcher)) => {
                        return PeerWatcher::watch(&watcher, actor, link.begin_watch());
                    }
                    (Err(DeadLetterReason::NotAllowed), _) => NumberedMessage::WatchRefused { path, uid },
                    _ => NumberedMessage::Terminated { path, uid, existed: false },
                };
                link.count_refused_control();
                self.send_numbered(link, refused);
            }
            NumberedMessage::Unwatch { path, uid } => {
                let target = self.target(link, &path, uid);
                let actor = self.actor_for(link, Incoming::Watch(target), &path, uid);
                if let Some((actor, watcher)) = actor.ok().zip(link.watcher()) {
                    PeerWatcher::unwatch(&watcher, actor, link.begin_watch());
                }
            }
            NumberedMessage::Stop { path, uid } => {
                match self.actor_for(link, Incoming::End(self.target(link, &path, uid)), &path, uid) {
                    Ok(actor) => actor.stop(),
                    Err(_) => link.count_refused_control(),
                }
            }
            NumberedMessage::WatchRefused { path, uid } => link.watch_refused(&path, uid),
            NumberedMessage::Pill { path, uid, is_kill } => {
                match self.actor_for(link, Incoming::End(self.target(link, &path, uid)), &path, uid) {
                    Ok(actor) if is_kill => actor.kill(),
                    Ok(actor) => actor.poison(),
                    Err(_) => link.count_refused_control(),
                }
            }
            NumberedMessage::Unanswered(ports) => {
                for (token, refused) in ports {
                    if let Ok(port) = self.ports.take(token, link.port_owner) {
                        quietly(|| port.refuse(refused));
                    }
                }
            }
            of_deployment @ (NumberedMessage::Deploy(_)
            | NumberedMessage::Deployed { .. }
            | NumberedMessage::DeployRefused { .. }
            | NumberedMessage::Failed { .. }
            | NumberedMessage::Verdict { .. }
            | NumberedMessage::Restarted { .. }
            | NumberedMessage::Ended { .. }) => self.deploying.take(link, of_deployment),
        }
    }

    /// An actor that a peer names, for the policy.
    pub(crate) fn target<'a>(&self, link: &Link, path: &'a str, uid: u32) -> Target<'a> {
        Target { path, is_export: self.is_export(uid), is_deployed: self.is_deployed(link, path, uid) }
    }

    /// Whether a peer has made the actor of this path and uid here.
    fn is_deployed(&self, link: &Link, path: &str, uid: u32) -> bool {
        let is_below = || {
            let mut names = path.split('/').skip(1);
            let [remote, deployer, _] = parent_names(&self.settings.name.system, &link.peer, "");
            names.next() == Some(&remote) && names.next() == Some(&deployer)
        };
        link.deployed.has(uid) && is_below()
    }

    /// The actor of this path and uid, if the policy lets the peer do this with it, or the reason for the refusal.
    pub(crate) fn actor_for(
        &self,
        link: &Link,
        incoming: Incoming<'_>,
        path: &str,
        uid: u32,
    ) -> Result<AnyActorRef, DeadLetterReason> {
        if let Err(why) = link.access().decide(incoming) {
            link.log_not_allowed(path, why);
            return Err(DeadLetterReason::NotAllowed);
        }
        let path = check_canonical(path, uid > 0).ok().and_then(|()| path.parse::<ActorPath>().ok());
        let found =
            path.zip(self.system()).and_then(|(path, system)| system.actor_at(&path.with_uid(uid)).ok());
        found.ok_or(DeadLetterReason::Stopped)
    }

    // ---- time

    /// A heartbeat's time is over.
    fn tick(&self) {
        let (links, pause) = self.with(|inner, now| {
            let heartbeat = self.settings.association.detector.heartbeat;
            let late = now.saturating_sub(inner.ticked).saturating_sub(heartbeat);
            inner.ticked = now;
            let pause = if late > heartbeat * 2 { late } else { Duration::ZERO };
            inner.heartbeat = inner.heartbeat.wrapping_add(1);
            if let (Some(fabric), false) = (self.fabric.get(), inner.has_ended) {
                let heartbeat = ControlMessage::Heartbeat { number: inner.heartbeat };
                let _ = fabric.publish(Channel::Heartbeat, heartbeat.frame(self.uid(), 0));
            }
            let names: Vec<String> = inner.peers.keys().cloned().collect();
            for name in &names {
                self.input(inner, name, Input::Tick, now);
            }
            let mut active = Vec::new();
            let Inner { peers, after, .. } = &mut *inner;
            for peer in peers.values_mut() {
                // A link that no reference has, and on which nothing waits, is not needed until there is one again.
                for link in peer.links.values().filter(|link| !link.is_active()) {
                    let alone = link.fars.take_alone();
                    after.push_back(Box::new(move |_| drop(alone)));
                }
                peer.links.retain(|_, link| is_needed(link));
                active.extend(peer.links.values().filter(|link| link.is_active()).cloned());
            }
            // So names that have greeted and not gone on leave room for others.
            inner.peers.retain(|_, peer| !peer.links.is_empty() || !peer.association.is_forgettable());
            let heartbeat = inner.heartbeat;
            for link in &active {
                link.outbox.outbox().set_heartbeat(heartbeat);
                // Later peers, and those with more lanes than this node, make windows smaller.
                link.set_window(self.window(active.len(), link.incoming_lanes()));
                link.assembly_budget.set_max(self.settings.limits.assembly_of(active.len()));
            }
            (active, pause)
        });
        links.iter().for_each(|link| self.tick_link(link, pause));
        self.tick_deployments();
        self.release_stand_ins();
        self.tell_unwanted(self.ports.sweep());
        self.forget_exports();
        self.count_returned();
    }

    /// Looks after requests to make actors, on links that are active and on those that wait.
    fn tick_deployments(&self) {
        let links: Vec<Arc<Link>> =
            lock(&self.inner).peers.values().flat_map(|peer| peer.links.values()).cloned().collect();
        for link in links {
            self.deploying.tick(&link);
            link.tell_waiting_lanes();
        }
    }

    /// Ends the stand-ins that nothing needs.
    fn release_stand_ins(&self) {
        let links: Vec<Arc<Link>> = {
            let inner = lock(&self.inner);
            let living = inner.peers.values().flat_map(|peer| peer.links.values());
            living.chain(&inner.ended).cloned().collect()
        };
        links.iter().for_each(|link| link.release_stand_ins(false));
    }

    /// Forgets the temporary actors that have ended.
    fn forget_exports(&self) {
        let Some(system) = self.system() else { return };
        lock(&self.inner).exports.retain(|_, path| system.actor_at(path).is_ok());
    }

    fn tick_link(&self, link: &Arc<Link>, pause: Duration) {
        let now = self.now();
        let due = link.with_control(|control| {
            control.sender.forgive(pause, now);
            control.sender.due(now)
        });
        match due {
            Some(Ok(due)) => {
                for (number, message) in due {
                    self.send_on(link, &ControlMessage::Numbered { number, message });
                }
            }
            Some(Err(_)) => return self.fault(&link.peer, link.uid()),
            None => {}
        }
        let overdue =
            link.with_control(|control| std::iter::from_fn(|| control.gate.next(now)).collect::<Vec<_>>());
        overdue.unwrap_or_default().into_iter().for_each(|message| self.apply(link, message));
        let receipts = link.receipts_due(now);
        if !receipts.is_empty() {
            self.send_on(link, &ControlMessage::Credit(receipts));
        }
        link.tell_unanswered();
        link.expire_assemblies(now);
        link.probe();
    }

    /// Counts envelopes as dead letters that the engine gave back after the ends of their links.
    fn count_returned(&self) {
        let ended: Vec<_> = lock(&self.inner).ended.iter().cloned().collect();
        let returned: u64 = ended.iter().map(|link| link.outbox.take_returned_late()).sum();
        if let (Some(system), 1..) = (self.system(), returned) {
            system.ledger().for_this_thread().dead_lettered(returned);
        }
    }

    // ---- frames

    /// Looks whether a frame of a peer is of its association. Returns the link.
    fn verdict(&self, name: &str, prefix: &Prefix) -> Option<Arc<Link>> {
        self.with(|inner, now| {
            let peer = self.peer(inner, name, now)?;
            let (verdict, effects) = peer.association.frame(prefix.from, prefix.to, now);
            let uid = peer.association.peer();
            self.carry_out(inner, name, effects);
            let peer = inner.peers.get(name)?;
            let link = peer.links.get(&uid.or(peer.association.peer())?)?;
            if verdict == Verdict::Drop {
                // Ordering: Relaxed; a statistic.
                link.stale.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            Some(link.clone())
        })
    }

    fn count_malformed(&self, name: &str) {
        let inner = lock(&self.inner);
        let links = inner.peers.get(name).into_iter().flat_map(|peer| peer.links.values());
        links.for_each(|link| link.count_malformed());
    }

    fn batch(&self, from: &str, frame: Vec<u8>) {
        let Ok(prefix) = Prefix::read(&frame, u8::MAX) else { return self.count_malformed(from) };
        if prefix.kind != FrameKind::Batch {
            return self.count_malformed(from);
        }
        let Some(link) = self.verdict(from, &prefix) else { return };
        if prefix.lane >= link.incoming_lanes() {
            return link.count_malformed();
        }
        match link.take_batch(&prefix, frame) {
            Ok(Arrived::Done) => {}
            Ok(Arrived::Tell) => link.tell_lane(prefix.lane),
            Err(_) => self.fault(from, link.uid()),
        }
    }

    fn control(&self, from: &str, frame: &[u8]) {
        let read = Prefix::read(frame, 1).ok().filter(|prefix| prefix.kind == FrameKind::Control);
        let (Some(prefix), Ok(message)) = (read, ControlMessage::read(frame)) else {
            return self.count_malformed(from);
        };
        let input = match message {
            ControlMessage::Hello(hello) | ControlMessage::Welcome(hello)
                if hello.greeting().node != from || hello.greeting().uid != prefix.from =>
            {
                return self.count_malformed(from);
            }
            ControlMessage::Hello(hello) => {
                self.note_roles(from, &hello);
                Input::Hello(hello.greeting())
            }
            ControlMessage::Welcome(hello) => {
                self.note_roles(from, &hello);
                Input::Welcome(hello.greeting())
            }
            ControlMessage::Refused(why) => return self.refused(from, prefix.to, why),
            ControlMessage::Quarantined { members, least } => {
                Input::Quarantined { from: prefix.from, to: prefix.to, side: Side { members, least } }
            }
            ControlMessage::Heartbeat { .. } => return self.count_malformed(from),
            of_link => {
                if let Some(link) = self.verdict(from, &prefix) {
                    self.control_of_link(&link, of_link);
                }
                return;
            }
        };
        self.with(|inner, now| self.input(inner, from, input, now));
    }

    fn note_roles(&self, name: &str, hello: &Hello) {
        self.with(|inner, now| {
            if let Some(peer) = self.peer(inner, name, now) {
                peer.roles.clone_from(&hello.roles);
            }
        });
    }

    fn refused(&self, name: &str, to: u64, why: Refusal) {
        self.with(|inner, now| {
            let Some(peer) = self.peer(inner, name, now) else { return };
            let effects = peer.association.on(Input::Refused { to, why }, now);
            if !effects.is_empty() {
                let event = NodeEvent::LinkRefused { node: name.to_owned(), reason: why.into() };
                Self::publish(inner, event);
            }
            self.carry_out(inner, name, effects);
        });
    }

    /// Carries out a control message that belongs to an association.
    fn control_of_link(&self, link: &Arc<Link>, message: ControlMessage) {
        match message {
            ControlMessage::Numbered { number, message } => self.take_numbered(link, number, message),
            ControlMessage::Ack { upto } => {
                let now = self.now();
                if let Some(Err(_)) = link.with_control(|control| control.sender.acked(upto, now)) {
                    self.fault(&link.peer, link.uid());
                }
            }
            ControlMessage::Credit(receipts)
                if receipts.iter().any(|receipt| link.told(receipt).is_err()) =>
            {
                self.fault(&link.peer, link.uid());
            }
            ControlMessage::Unwanted(tokens) => link.unwanted(&tokens),
            ControlMessage::Choke { path, uid, is_choked } => link.choked(&path, uid, is_choked),
            ControlMessage::UnknownType { id } => {
                link.log_unknown_type(id);
            }
            // Greetings have no link.
            _ => {}
        }
    }

    fn heartbeat(&self, from: &str, frame: &[u8]) {
        let read = Prefix::read(frame, 1).ok().filter(|prefix| prefix.kind == FrameKind::Control);
        let Some(prefix) = read else { return self.count_malformed(from) };
        if frame.len() < PREFIX_LEN
            || !matches!(ControlMessage::read(frame), Ok(ControlMessage::Heartbeat { .. }))
        {
            return self.count_malformed(from);
        }
        self.with(|inner, now| {
            // Nodes that are of no interest yet make no association.
            let Some(peer) = inner.peers.get_mut(from) else { return };
            let (_, effects) = peer.association.frame(prefix.from, 0, now);
            self.carry_out(inner, from, effects);
        });
    }

    // ---- reports and the end

    pub(crate) fn links(&self) -> Vec<LinkReport> {
        let inner = lock(&self.inner);
        let last = inner.last_reports.iter().cloned();
        let ended = inner.ended.iter().map(|link| (link, false));
        let living =
            inner.peers.values().flat_map(|peer| peer.links.values().map(|link| (link, peer.is_suspect)));
        last.chain(ended.chain(living).map(|(link, is_suspect)| link.report(is_suspect))).collect()
    }

    /// The accounts for exporters: one for each start of a peer, of links that live and of those that have ended lately. After a
    /// rejoin there may be several links to a start, of which the last one is shown.
    pub(crate) fn stats(&self) -> NodeStats {
        let now = self.now();
        let inner = lock(&self.inner);
        let is_shown =
            |link: &&Arc<Link>| link.ended_at.get().is_none_or(|at| now.saturating_sub(*at) < ENDED_SHOWN);
        let ended = inner.ended.iter().filter(is_shown).map(|link| (link, false));
        let living =
            inner.peers.values().flat_map(|peer| peer.links.values().map(|link| (link, peer.is_suspect)));
        let last: BTreeMap<(&str, u64), _> =
            ended.chain(living).map(|shown| ((shown.0.peer.as_str(), shown.0.uid()), shown)).collect();
        let links = last.into_values().map(|(link, is_suspect)| link.report(is_suspect).into()).collect();
        NodeStats { links }
    }

    /// Adds what waits here, and what was shipped.
    pub(crate) fn add_to_ledger(&self, ledger: &mut Ledger) {
        self.count_returned();
        let inner = lock(&self.inner);
        ledger.shipped += inner.retired_shipped;
        let living = inner.peers.values().flat_map(|peer| peer.links.values());
        for link in inner.ended.iter().chain(living) {
            let counts = link.outbox.outbox().message_counts();
            ledger.queued += counts.queued;
            ledger.shipped += counts.shipped;
        }
    }

    /// Waits until these links have given out what waits, as their peers make room, and the peers have told what has come, until
    /// `until` and not for too long.
    fn flush(&self, links: &[Arc<Link>], until: Option<Instant>) {
        let latest = Instant::now() + FLUSH_MAX;
        let by = until.map_or(latest, |until| until.min(latest));
        let waits = |link: &Arc<Link>| link.is_active() && !link.is_settled();
        while Instant::now() < by && links.iter().any(waits) {
            thread::sleep(FLUSH_STEP);
        }
    }

    /// Says goodbye, writes what waits, and ends the engine, at `until` at the latest.
    pub(crate) fn stop(&self, until: Option<Instant>) {
        // Ordering: Relaxed; see `is_stopping`.
        self.is_stopping.store(true, Ordering::Relaxed);
        let links = self.with(|inner, _| {
            let living = inner.peers.values().flat_map(|peer| peer.links.values());
            living.filter(|link| link.is_active()).cloned().collect::<Vec<_>>()
        });
        let now = self.now();
        for link in &links {
            // Messages that came for actors which have ended are refused, so that the peer is told of all.
            (0..link.incoming_lanes()).for_each(|lane| Lane::handle_rest(link, lane));
            self.send_on(link, &ControlMessage::Credit(link.last_receipts(now)));
            self.send_numbered(link, NumberedMessage::Goodbye);
        }
        self.flush(&links, until);
        let by =
            until.map_or(FLUSH_MAX, |until| until.saturating_duration_since(Instant::now()).min(FLUSH_MAX));
        if let Some(fabric) = self.fabric.get() {
            fabric.stop(by);
        }
        self.with(|inner, _| {
            inner.has_ended = true;
            for peer in std::mem::take(&mut inner.peers).into_values() {
                peer.links.into_values().for_each(|link| Self::end_link(inner, link));
            }
        });
        self.count_returned();
        // The links refer to this hub.
        let mut inner = lock(&self.inner);
        let ended = std::mem::take(&mut inner.ended);
        for link in &ended {
            inner.retired_shipped += link.outbox.outbox().message_counts().shipped;
            inner.last_reports.push(link.report(false));
        }
        drop(inner);
        drop(ended);
    }
}

/// The longest time for which the end of a system waits for its last messages to other nodes.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The time between two looks at what is left.
const FLUSH_STEP: Duration = Duration::from_millis(1);

/// The hub as its engine has it. The hub has the engine, so the engine keeps no hub.
pub(crate) struct HubInbound(StdWeak<Hub>);

impl HubInbound {
    pub(crate) fn of(hub: &Arc<Hub>) -> Arc<Self> {
        Arc::new(Self(Arc::downgrade(hub)))
    }
}

impl Inbound for HubInbound {
    fn up(&self, max_frame: usize) {
        if let Some(hub) = self.0.upgrade() {
            hub.up(max_frame);
        }
    }

    fn down(&self, why: &str) {
        if let Some(hub) = self.0.upgrade() {
            hub.down(why);
        }
    }

    fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>) {
        if let Some(hub) = self.0.upgrade() {
            hub.frame(from, kind, frame);
        }
    }

    fn no_listener(&self, node: &str, uid: u64) {
        if let Some(hub) = self.0.upgrade() {
            hub.no_listener(node, uid);
        }
    }
}

impl Inbound for Hub {
    fn up(&self, max_frame: usize) {
        // Ordering: Relaxed; see `envelope_max`.
        self.max_frame.store(max_frame, Ordering::Relaxed);
        self.with(|inner, _| {
            let links = inner.peers.values().flat_map(|peer| peer.links.values());
            links.for_each(|link| link.outbox.outbox().set_max_frame(max_frame));
            Self::publish(inner, NodeEvent::EngineUp);
        });
    }

    fn down(&self, why: &str) {
        self.with(|inner, _| Self::publish(inner, NodeEvent::EngineDown { why: why.to_owned() }));
    }

    fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>) {
        match kind {
            ChannelKind::Batch => self.batch(from, frame),
            ChannelKind::Control => self.control(from, &frame),
            ChannelKind::Heartbeat => self.heartbeat(from, &frame),
            // No names are registered yet.
            ChannelKind::Registry => {}
        }
    }

    fn no_listener(&self, _: &str, _: u64) {
        // A hint that is not asked for yet.
    }
}
