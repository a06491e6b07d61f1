//! The hub: one for each system with a node. It holds the associations and links, and takes what comes from senders, the
//! engine and the timers.
//!
//! One lock guards the associations, and no user code runs under it. Actions that may run user code (events, dead letters, the
//! ends of links) are queued in order, and carried out without the lock by the thread that finds no other thread at it. The engine never calls the hub
//! from within a call of the hub, so the hub may call the engine with its lock held.

use crate::core::dead_letter::DeadLetterReason;
use crate::core::ledger::Ledger;
use crate::core::system::{SystemCore, SystemRef};
use crate::path::actor_path::ActorPath;
use crate::remote::association::{
    Association, AssociationSettings, Effect, Greeting, Input, PROTOCOL, Refusal, Side, Verdict,
};
use crate::remote::batch::{Batch, EnvelopeKind, Place};
use crate::remote::control_message::{ControlMessage, Hello, NumberedMessage};
use crate::remote::engine::{Channel, ChannelKind, Fabric, Inbound};
use crate::remote::frame::{FrameKind, PREFIX_LEN, Prefix};
use crate::remote::limits::Limits;
use crate::remote::link::{Arrived, Link, LinkControl};
use crate::remote::link_report::LinkReport;
use crate::remote::node::{NodeName, OnQuarantine};
use crate::remote::node_event::NodeEvent;
use crate::remote::outbox::OutboxLimits;
use crate::remote::policy::Policy;
use crate::remote::registry::Registry;
use crate::remote::uid::SystemUid;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, OnceLock, lock};
use crate::util::panic::quietly;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::Weak as StdWeak;
use std::time::{Duration, Instant};

/// The most links that have ended and are reported.
const ENDED_MAX: usize = 64;

/// The settings of a hub.
#[derive(Debug, Clone)]
pub(crate) struct HubSettings {
    pub(crate) name: NodeName,
    pub(crate) association: AssociationSettings,
    pub(crate) lanes: u8,
    pub(crate) outbox: OutboxLimits,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) on_quarantine: OnQuarantine,
}

pub(crate) struct Hub {
    me: StdWeak<Hub>,
    pub(crate) settings: HubSettings,
    pub(crate) registry: Registry,
    uid: AtomicU64,
    fabric: OnceLock<Arc<dyn Fabric>>,
    system: OnceLock<StdWeak<SystemCore>>,
    inner: Mutex<Inner>,
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
    /// The last system that has declared this one down, and the UID that it meant.
    quarantined: Option<(u64, u64)>,
    heartbeat: u32,
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
    pub(crate) fn new(settings: HubSettings, registry: Registry) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            settings,
            registry,
            uid: AtomicU64::new(SystemUid::fresh().get()),
            fabric: OnceLock::new(),
            system: OnceLock::new(),
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

    fn now(&self) -> Duration {
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
        let result = act(&mut lock(&self.inner), now);
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
            if let Some(system) = hub.system() {
                system.events.publish(&event);
            }
        }));
    }

    // ---- peers and links

    /// The bytes that may be under way to this node in each lane of a peer.
    fn window(&self) -> u64 {
        self.settings.limits.receive_window as u64
    }

    fn greeting(&self) -> Greeting {
        let NodeName { system, cluster, node, .. } = self.settings.name.clone();
        let (lanes, window) = (self.settings.lanes, self.window());
        Greeting { protocol: PROTOCOL, cluster, system, node, uid: self.uid(), lanes, window, to: 0 }
    }

    /// The peer of this name, which is made if there is room for one more.
    fn peer<'a>(&self, inner: &'a mut Inner, name: &str, now: Duration) -> Option<&'a mut Peer> {
        if !inner.peers.contains_key(name) {
            if inner.has_ended || inner.peers.len() >= self.settings.limits.associations {
                return None;
            }
            let side = Side { members: 1, least: self.settings.name.node.clone() };
            let association = Association::new(self.greeting(), side, self.settings.association, now);
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
        Some(Arc::new(Link::new(hub, name, uid, self.settings.lanes, self.settings.outbox)))
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
                if !is_gone {
                    let link = self.new_link(name, uid)?;
                    peer.links.insert(uid, link.clone());
                    return Some(link);
                }
            }
            let link = self.new_link(name, uid)?;
            link.end();
            link.outbox.outbox().close();
            Some(link)
        })
    }

    /// The outbox of a link has something, and its engine was not told.
    pub(crate) fn outbox_has_something(&self, link: &Arc<Link>) {
        if !link.is_active() {
            // The engine is told when the link becomes active: it looks through the outbox after this push.
            self.connect(&link.peer);
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
                    }
                }
                Effect::GiveUpWaiting => {
                    let links: Vec<_> = peer.links.values().cloned().collect();
                    inner.after.push_back(Box::new(move |hub| {
                        links
                            .iter()
                            .filter(|link| !link.is_active())
                            .for_each(|link| hub.drop_waiting(link, false));
                    }));
                }
                Effect::Suspected { uid } => {
                    peer.is_suspect = true;
                    Self::publish(inner, NodeEvent::Suspect { node: name.to_owned(), uid });
                }
                Effect::Reachable { uid } => {
                    peer.is_suspect = false;
                    Self::publish(inner, NodeEvent::Reachable { node: name.to_owned(), uid });
                }
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

    fn activated(&self, inner: &mut Inner, name: &str, uid: u64, lanes: u8, window: u64) {
        let Some(peer) = inner.peers.get_mut(name) else { return };
        peer.is_suspect = false;
        let mut links = std::mem::take(&mut peer.links);
        let Some(link) = links.remove(&uid).or_else(|| self.new_link(name, uid)) else { return };
        link.activate(lanes, window, self.window(), &peer.roles);
        peer.links.insert(uid, link.clone());
        // Those of other starts, which are gone.
        links.into_values().for_each(|link| Self::end_link(inner, link));
        Self::publish(inner, NodeEvent::Up { node: name.to_owned(), uid });
        if let Some(fabric) = self.fabric.get() {
            fabric.wants_out(&link.outbox);
        }
    }

    /// Ends a link that the association has given up: what hangs on it ends without the lock.
    fn end_link(inner: &mut Inner, link: Arc<Link>) {
        link.end();
        inner.ended.push_back(link.clone());
        if inner.ended.len() > ENDED_MAX {
            if let Some(oldest) = inner.ended.pop_front() {
                inner.retired_shipped += oldest.outbox.outbox().counts().shipped;
            }
        }
        inner.after.push_back(Box::new(move |hub| {
            link.end_lanes();
            hub.drop_waiting(&link, true);
        }));
    }

    /// Makes dead letters of what waits for a peer.
    fn drop_waiting(&self, link: &Link, is_end: bool) {
        let system = self.system();
        link.outbox.outbox().end_with(is_end, |frame, _| {
            let Some(system) = &system else { return };
            if let Ok(batch) = Batch::read(&frame, u8::MAX, usize::MAX) {
                for envelope in batch.envelopes() {
                    self.dead_letter(system, link, &envelope.kind, &envelope.place);
                }
            }
        });
        if !is_end {
            // The next push wakes again.
            link.outbox.outbox().begin_look();
        }
    }

    /// Counts an envelope as a dead letter, if it is a message, and shows it.
    fn dead_letter(&self, system: &SystemCore, link: &Link, kind: &EnvelopeKind, place: &Place<'_>) {
        let (text, type_id) = match (kind, *place) {
            (EnvelopeKind::Tell, Place::Actor { path, type_id, .. }) => (path, type_id),
            (EnvelopeKind::Select, Place::Selection { text, type_id }) => (text, type_id),
            _ => return,
        };
        system.ledger().for_this_thread().dead_lettered(1);
        let message_type = self.registry.by_id(type_id).map_or("a message", |known| known.rust_name);
        let recipient = || self.path_at(&link.peer, text);
        system.dead_letters().publish(DeadLetterReason::NodeGone, message_type, recipient);
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

    // ---- the numbered stream

    /// Sends a numbered message on a link. One that waits for data acts behind all that was sent before.
    pub(crate) fn send_numbered(&self, link: &Arc<Link>, message: NumberedMessage) {
        let now = self.now();
        let waits = message.waits_for_data();
        let pushed = link.with_control(|control| control.sender.push(message.clone(), now));
        match pushed {
            None => {}
            Some(Ok(number)) => {
                if waits {
                    link.wake(link.outbox.outbox().mark(number));
                }
                self.send(&link.peer, link.uid, &ControlMessage::Numbered { number, message });
            }
            Some(Err(_)) => self.fault(&link.peer, link.uid),
        }
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
        self.send(&link.peer, link.uid, message);
    }

    /// Takes a numbered message of the peer.
    fn take_numbered(&self, link: &Arc<Link>, number: u64, message: NumberedMessage) {
        use crate::remote::control::Numbered;
        let now = self.now();
        let taken = link.with_control(|control| {
            let LinkControl { receiver, gate, .. } = control;
            let taken = receiver.take(number);
            let due = match taken {
                Numbered::Apply if message.waits_for_data() => {
                    gate.wait(number, message, now);
                    std::iter::from_fn(|| gate.next(now)).collect()
                }
                Numbered::Apply => vec![message],
                Numbered::Repeat | Numbered::Gap => Vec::new(),
            };
            (due, (taken != Numbered::Gap).then(|| receiver.applied()))
        });
        let Some((due, ack)) = taken else { return };
        if let Some(upto) = ack {
            self.send_on(link, &ControlMessage::Ack { upto });
        }
        due.into_iter().for_each(|message| self.apply(link, message));
    }

    /// A lane has handled a batch with this mark: control that has waited for it acts.
    pub(crate) fn mark_shown(&self, link: &Arc<Link>, lane: u8, mark: u64) {
        let now = self.now();
        let due = link.with_control(|control| {
            control.gate.show(lane, mark);
            std::iter::from_fn(|| control.gate.next(now)).collect::<Vec<_>>()
        });
        due.unwrap_or_default().into_iter().for_each(|message| self.apply(link, message));
    }

    /// Carries out a numbered message of the peer.
    fn apply(&self, link: &Arc<Link>, message: NumberedMessage) {
        match message {
            NumberedMessage::Goodbye => {
                let from = link.uid;
                self.with(|inner, now| self.input(inner, &link.peer, Input::Goodbye { from }, now));
            }
        }
    }

    // ---- time

    /// A heartbeat's time is over.
    fn tick(&self) {
        let links = self.with(|inner, now| {
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
            for peer in inner.peers.values_mut() {
                // A link that no reference has, and on which nothing waits, is not needed until there is one again.
                peer.links.retain(|_, link| {
                    link.is_active()
                        || Arc::strong_count(link) > 1
                        || link.outbox.outbox().counts().queued > 0
                });
                active.extend(peer.links.values().filter(|link| link.is_active()).cloned());
            }
            let heartbeat = inner.heartbeat;
            active.iter().for_each(|link| link.outbox.outbox().set_heartbeat(heartbeat));
            active
        });
        links.iter().for_each(|link| self.tick_link(link));
        self.count_returned();
    }

    fn tick_link(&self, link: &Arc<Link>) {
        let now = self.now();
        let due = link.with_control(|control| control.sender.due(now));
        match due {
            Some(Ok(due)) => {
                for (number, message) in due {
                    self.send_on(link, &ControlMessage::Numbered { number, message });
                }
            }
            Some(Err(_)) => return self.fault(&link.peer, link.uid),
            None => {}
        }
        let overdue =
            link.with_control(|control| std::iter::from_fn(|| control.gate.next(now)).collect::<Vec<_>>());
        overdue.unwrap_or_default().into_iter().for_each(|message| self.apply(link, message));
        let receipts = link.receipts_due(now);
        if !receipts.is_empty() {
            self.send_on(link, &ControlMessage::Credit(receipts));
        }
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
            Err(_) => self.fault(from, link.uid),
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
                    self.fault(&link.peer, link.uid);
                }
            }
            ControlMessage::Credit(receipts) => {
                if receipts.iter().any(|receipt| link.told(receipt).is_err()) {
                    self.fault(&link.peer, link.uid);
                }
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
        let ended = inner.ended.iter().map(|link| (link, false));
        let living =
            inner.peers.values().flat_map(|peer| peer.links.values().map(|link| (link, peer.is_suspect)));
        ended.chain(living).map(|(link, is_suspect)| link.report(is_suspect)).collect()
    }

    /// Adds what waits here, and what was shipped.
    pub(crate) fn add_to_ledger(&self, ledger: &mut Ledger) {
        self.count_returned();
        let inner = lock(&self.inner);
        ledger.shipped += inner.retired_shipped;
        let living = inner.peers.values().flat_map(|peer| peer.links.values());
        for link in inner.ended.iter().chain(living) {
            let counts = link.outbox.outbox().counts();
            ledger.queued += counts.queued;
            ledger.shipped += counts.shipped;
        }
    }

    /// Says goodbye, writes what waits, and ends the engine, at `until` at the latest.
    pub(crate) fn stop(&self, until: Option<Instant>) {
        let links = self.with(|inner, _| {
            let living = inner.peers.values().flat_map(|peer| peer.links.values());
            living.filter(|link| link.is_active()).cloned().collect::<Vec<_>>()
        });
        links.iter().for_each(|link| self.send_numbered(link, NumberedMessage::Goodbye));
        let by =
            until.map_or(FLUSH_MAX, |until| until.saturating_duration_since(Instant::now()).min(FLUSH_MAX));
        if let Some(fabric) = self.fabric.get() {
            fabric.stop(by);
        }
        self.with(|inner, _| {
            inner.has_ended = true;
            let peers = std::mem::take(&mut inner.peers);
            let links = peers.into_values().flat_map(|peer| peer.links.into_values());
            links.for_each(|link| Self::end_link(inner, link));
        });
    }
}

/// The longest time for which the end of a system waits for its last messages to other nodes.
const FLUSH_MAX: Duration = Duration::from_secs(5);

impl Inbound for Hub {
    fn up(&self, _: usize) {
        self.with(|inner, _| Self::publish(inner, NodeEvent::EngineUp));
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
