//! Histories of nodes over a real server, judged by the checker of the simulation: connections are reset in the middle of batches,
//! a server is restarted, a receiver is slow, links are saturated, and a process is killed.

use crate::checker::{Account, Event, Incarnation, Log, Start, check};
use crate::support::{LIMIT, server_or_skip};
use pointsman::prelude::*;
use pointsman::remote::{DetectorSettings, LinkReport, Node, Policy, Wire};
use pointsman::{AnyActorRef, DeadLetterReason, Mailbox, OverflowPolicy, Terminated};
use pointsman_nats::{DevServer, Nats};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An incarnation, as it goes over the wire.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Address {
    node: u32,
    uid: u64,
    actor: u32,
}

impl From<Address> for Incarnation {
    fn from(Address { node, uid, actor }: Address) -> Self {
        Self { start: Start { node, uid }, place: 0, uid: actor }
    }
}

#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "test.Note", version = 1)]
enum Note {
    Numbered {
        from: Address,
        to: Address,
        number: u64,
        padding: Vec<u8>,
    },
    /// Here alone: watch an actor.
    Watch(ActorRef<Note>, Address),
    /// Here alone: send the numbers from `first` to each of these actors, and end.
    SendAndEnd {
        to: Vec<(ActorRef<Note>, Address)>,
        first: u64,
    },
}

/// The log of a node.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Event>>>);

impl Recorder {
    fn note(&self, event: Event) {
        self.0.lock().expect("no panic").push(event);
    }

    fn count(&self, is_it: impl Fn(&Event) -> bool) -> u64 {
        self.0.lock().expect("no panic").iter().filter(|event| is_it(event)).count() as u64
    }
}

/// How many numbers an actor sends before its end.
const LAST: u64 = 100;

/// The actor of a node.
struct Party {
    recorder: Recorder,
    own: Address,
    watched: Vec<(AnyActorRef, Incarnation)>,
    /// Waited for before the first message.
    gate: Arc<Mutex<Option<Receiver<()>>>>,
}

impl Actor for Party {
    type Message = Note;

    fn started(&mut self, ctx: &mut Context<Note>) -> HandlerResult {
        self.own.actor = ctx.me().untyped().map_or(0, |me| me.uid());
        Ok(())
    }

    fn receive(&mut self, note: Note, ctx: &mut Context<Note>) -> HandlerResult {
        if let Some(gate) = self.gate.lock().expect("no panic").take() {
            // An error is the end of the test.
            let _ = gate.recv();
        }
        let own = Incarnation::from(self.own);
        match note {
            Note::Numbered { from, to, number, .. } => {
                let (from, to) = (from.into(), to.into());
                self.recorder.note(Event::Delivered { at: own, from, to, number });
            }
            Note::Watch(target, of) => {
                ctx.watch(&target)?;
                self.recorder.note(Event::Watched { watcher: own, target: of.into() });
                self.watched.extend(target.untyped().map(|any| (any, of.into())));
            }
            Note::SendAndEnd { to, first } => {
                for number in first..first + LAST {
                    for (actor, address) in &to {
                        send(&self.recorder, (self.own, *address), actor, number, 10);
                    }
                }
                self.recorder.note(Event::Ended { actor: own });
                ctx.stop();
            }
        }
        Ok(())
    }

    fn terminated(&mut self, end: Terminated, _: &mut Context<Note>) -> HandlerResult {
        let known = self.watched.iter().find(|(any, _)| *any == end.actor);
        let (_, target) = known.ok_or_else(|| Failure::msg("nothing that it watches"))?;
        let (watcher, node_down) = (self.own.into(), end.node_down);
        self.recorder.note(Event::Terminated { watcher, target: *target, node_down });
        Ok(())
    }
}

/// Sends a number, and waits while the link is full.
fn send(
    recorder: &Recorder,
    (from, to): (Address, Address),
    actor: &ActorRef<Note>,
    number: u64,
    len: usize,
) {
    let mut note = Note::Numbered { from, to, number, padding: vec![b'.'; len] };
    let began = Instant::now();
    while let Err(error) = actor.try_tell(note) {
        assert!(began.elapsed() < LIMIT, "the link stays full");
        note = error.into_inner();
        std::thread::sleep(Duration::from_millis(1));
    }
    recorder.note(Event::Sent { from: from.into(), to: to.into(), number, accepted: true });
}

/// A node with its actor.
struct Member {
    system: System,
    recorder: Recorder,
    party: ActorRef<Note>,
    address: Address,
    /// Opens the actor's gate.
    opens: Option<Sender<()>>,
}

impl Member {
    fn start(url: &str, node: u32) -> Self {
        Self::start_with(url, node, Mailbox::unbounded(), false)
    }

    fn start_with(url: &str, number: u32, mailbox: Mailbox, is_gated: bool) -> Self {
        let detector = DetectorSettings::new()
            .heartbeat(Duration::from_millis(200))
            // No connection is lost for as long.
            .acceptable_pause(LIMIT);
        let node = Node::new(&format!("n{number}"))
            .engine(Nats::servers([url]))
            .message::<Note>()
            .policy(Policy::closed().allow_path("/user/*"))
            .detector(detector);
        let system = System::builder("demo").node(node).build().expect("a sound node");
        let recorder = Recorder::default();
        let (opens, gate) = channel();
        let gate = Arc::new(Mutex::new(is_gated.then_some(gate)));
        let own = Address { node: number, uid: system.remote().expect("it is a node").uid(), actor: 0 };
        let of_party = recorder.clone();
        let recipe =
            move || Party { recorder: of_party.clone(), own, watched: Vec::new(), gate: gate.clone() };
        let party = system.actor("party").mailbox(mailbox).spawn(recipe).expect("the name is free");
        let actor = party.untyped().expect("it is an actor").uid();
        Self { system, recorder, party, address: Address { actor, ..own }, opens: is_gated.then_some(opens) }
    }

    fn start_id(&self) -> Start {
        Start { node: self.address.node, uid: self.address.uid }
    }

    fn find(&self, node: u32) -> ActorRef<Note> {
        let path = format!("pointsman://demo@n{node}/user/party");
        let began = Instant::now();
        loop {
            match self.system.resolve::<Note>(&path, LIMIT).wait() {
                Ok(found) => return found,
                Err(error) => assert!(began.elapsed() < LIMIT, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn link(&self, to: Start) -> LinkReport {
        let links = self.system.remote().expect("it is a node").links();
        let is_it = |link: &LinkReport| link.uid == to.uid;
        links.into_iter().find(is_it).expect("there is a link")
    }

    /// Waits until the account of a link has nothing under way.
    fn settled(&self, to: Start) -> LinkReport {
        let began = Instant::now();
        loop {
            let link = self.link(to);
            if link.queued == 0 && link.in_doubt == 0 {
                return link;
            }
            assert!(began.elapsed() < LIMIT, "{link:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The accounts of all links before the numbered messages: what was sent to find each other.
type Before = Vec<((usize, usize), LinkReport)>;

/// Members that have found each other.
struct Group {
    members: Vec<Member>,
    /// By the places of who has it and whom it means.
    fars: Vec<((usize, usize), ActorRef<Note>)>,
    before: Before,
}

impl Group {
    fn new(members: Vec<Member>) -> Self {
        let pairs = pairs(members.len());
        let fars =
            pairs.iter().map(|&(at, of)| ((at, of), members[at].find(members[of].address.node))).collect();
        let before =
            pairs.iter().map(|&(at, of)| ((at, of), members[at].settled(members[of].start_id()))).collect();
        Self { members, fars, before }
    }

    fn far(&self, at: usize, of: usize) -> &ActorRef<Note> {
        &self.fars.iter().find(|(pair, _)| *pair == (at, of)).expect("they have met").1
    }

    /// Sends the numbers from one member to another.
    fn send_all(&self, (at, of): (usize, usize), numbers: std::ops::Range<u64>, len: usize) {
        let (from, to) = (&self.members[at], &self.members[of]);
        for number in numbers {
            send(&from.recorder, (from.address, to.address), self.far(at, of), number, len);
        }
    }

    /// Sends each message once, though it be refused. Returns how many were accepted.
    fn offer_all(&self, (at, of): (usize, usize), numbers: std::ops::Range<u64>, len: usize) -> u64 {
        let (Member { recorder, address: from, .. }, to) = (&self.members[at], self.members[of].address);
        let offer = |number| {
            let note = Note::Numbered { from: *from, to, number, padding: vec![b'.'; len] };
            let accepted = self.far(at, of).try_tell(note).is_ok();
            recorder.note(Event::Sent { from: (*from).into(), to: to.into(), number, accepted });
            u64::from(accepted)
        };
        numbers.map(offer).sum()
    }

    /// Lets a member watch the actor of another one.
    fn watch(&self, at: usize, of: usize) {
        let far = self.far(at, of).clone();
        self.members[at].party.tell(Note::Watch(far, self.members[of].address));
        let watched = || self.members[at].recorder.count(|event| matches!(event, Event::Watched { .. }));
        let before = watched();
        wait("the watch", || watched() > before || before > 0);
    }

    /// Waits until all is quiet, notes the accounts, ends the systems, and judges.
    fn judge(self) {
        let Self { members, before, fars } = self;
        drop(fars);
        for &((at, of), ref first) in &before {
            let (from, to) = (members[at].start_id(), members[of].start_id());
            let link = members[at].settled(to);
            let account = Account {
                queued: link.queued,
                shipped: link.shipped - first.shipped,
                confirmed: link.confirmed - first.confirmed,
                lost: link.lost - first.lost,
                in_doubt: link.in_doubt,
                dead_here: 0,
            };
            members[at].recorder.note(Event::Link { to, account });
            let (envelopes, refused) = handled(&members, &before, (at, of));
            members[of].recorder.note(Event::Received { from, envelopes, refused });
        }
        let logs: Vec<Log> =
            members.into_iter().enumerate().map(|(process, member)| member.log(process)).collect();
        let violations = check(&logs);
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

/// Waits until a member has handled all that has come from another one. Returns how many messages came, and were refused.
fn handled(members: &[Member], before: &Before, (at, of): (usize, usize)) -> (u64, u64) {
    let from = members[at].start_id();
    let first = &before.iter().find(|(pair, _)| *pair == (of, at)).expect("all have met").1;
    let envelopes = members[of].link(from).received - first.received;
    // A message that has come may still wait for its lane, and then for its actor.
    let refused = || members[of].link(from).refused.total() - first.refused.total();
    let is_delivered = |event: &Event| matches!(event, Event::Delivered { from: by, .. } if by.start == from);
    wait("the handling of what has come", || {
        members[of].recorder.count(is_delivered) + refused() >= envelopes
    });
    (envelopes, refused())
}

impl Member {
    /// Ends the system, and returns its log.
    fn log(self, process: usize) -> Log {
        let start = self.start_id();
        let Self { system, recorder, party, .. } = self;
        drop(party);
        let ledger = system.shutdown(LIMIT).expect("it ends");
        recorder.note(Event::Books { balance: ledger.balance() });
        let events = recorder.0.lock().expect("no panic").clone();
        Log { process, start, events, is_cut_off: false }
    }
}

fn pairs(count: usize) -> Vec<(usize, usize)> {
    (0..count).flat_map(|at| (0..count).filter(move |of| *of != at).map(move |of| (at, of))).collect()
}

fn wait(what: &str, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < LIMIT, "{what} has not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A proxy before a server. It resets a connection whenever so many bytes have gone to the server, wherever in an operation that is.
struct Resetting {
    url: String,
    resets: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Resetting {
    fn start(server: &DevServer, every: u64, most: u64) -> Self {
        let to = server.url().trim_start_matches("nats://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let url = format!("nats://{}", listener.local_addr().expect("it is bound"));
        let (resets, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, ends) = (resets.clone(), is_over.clone());
        let bytes = Arc::new(AtomicU64::new(0));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&to)) else { continue };
                let (bytes, counter) = (bytes.clone(), counter.clone());
                let (back, forth) = (server.try_clone(), client.try_clone());
                std::thread::spawn(move || {
                    let limit = move |more: usize| {
                        let sent = bytes.fetch_add(more as u64, Ordering::Relaxed);
                        let is_due = sent / every != (sent + more as u64) / every;
                        is_due && counter.fetch_add(1, Ordering::Relaxed) < most
                    };
                    copy(client, server, limit);
                });
                if let (Ok(back), Ok(forth)) = (back, forth) {
                    std::thread::spawn(move || copy(back, forth, |_| false));
                }
            }
        });
        Self { url, resets, is_over }
    }
}

impl Drop for Resetting {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.url.trim_start_matches("nats://"));
    }
}

/// Copies until either side ends, or `is_cut` says so: then a part of what was read goes on, and both sides are closed.
fn copy(mut from: TcpStream, mut to: TcpStream, mut is_cut: impl FnMut(usize) -> bool) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let is_last = is_cut(count);
        let part = if is_last { count / 2 } else { count };
        if to.write_all(&buffer[..part]).is_err() || is_last {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Waits until an actor has been told of an end.
fn told(member: &Member) {
    wait("the notice", || member.recorder.count(|event| matches!(event, Event::Terminated { .. })) > 0);
}

#[test]
fn connections_that_are_reset_in_the_middle_of_batches_keep_all_promises() {
    let Some(mut server) = server_or_skip(DevServer::start) else { return };
    const RESETS: u64 = 4;
    let proxy = Resetting::start(&server, 400_001, RESETS);
    let members =
        vec![Member::start(&proxy.url, 1), Member::start(&server.url(), 2), Member::start(&server.url(), 3)];
    let group = Group::new(members);
    group.watch(1, 0);
    group.watch(2, 0);
    let resets = || proxy.resets.load(Ordering::Relaxed);
    let sent = std::thread::scope(|scope| {
        let (group, resets) = (&group, &resets);
        for pair in [(1, 0), (1, 2), (2, 0), (2, 1)] {
            scope.spawn(move || group.send_all(pair, 0..3_000, 500));
        }
        // The member behind the proxy goes on until the last reset: how many bytes a reset costs is not known before.
        let through_the_proxy = [1, 2].map(|of| {
            scope.spawn(move || {
                let begun = Instant::now();
                let mut sent = 0;
                while sent < 3_000 || resets() < RESETS {
                    assert!(begun.elapsed() < LIMIT, "{} resets after {sent} messages", resets());
                    group.send_all((0, of), sent..sent + 100, 500);
                    sent += 100;
                }
                sent
            })
        });
        wait("the first resets", || resets() > 1);
        server.restart().expect("it starts again");
        through_the_proxy.map(|sender| sender.join().expect("it has sent all"))
    });
    // The actor that ends has handled all that was sent to it.
    for at in [1, 2] {
        group.members[at].settled(group.members[0].start_id());
        handled(&group.members, &group.before, (at, 0));
    }
    let last = [1, 2].map(|of| (group.far(0, of).clone(), group.members[of].address));
    group.members[0].party.tell(Note::SendAndEnd { to: last.to_vec(), first: sent[0].max(sent[1]) });
    told(&group.members[1]);
    told(&group.members[2]);
    group.judge();
}

#[test]
fn a_receiver_that_is_slow_costs_its_own_messages_alone() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let mailbox = Mailbox::bounded(50).on_full(OverflowPolicy::Reject);
    let members = vec![
        Member::start(&server.url(), 1),
        Member::start_with(&server.url(), 2, mailbox, true),
        Member::start(&server.url(), 3),
    ];
    let group = Group::new(members);
    let accepted = std::thread::scope(|scope| {
        let group = &group;
        for pair in [(0, 2), (2, 0), (1, 2)] {
            scope.spawn(move || group.send_all(pair, 0..5_000, 100));
        }
        let [first, _] =
            [(0, 1), (2, 1)].map(|pair| scope.spawn(move || group.offer_all(pair, 0..5_000, 100)));
        first.join().expect("it has sent all")
    });
    let slow = group.members[1].start_id();
    group.members[0].settled(slow);
    // All but those that its mailbox holds, the one that its actor has taken, and those that were refused at their node when it
    // had heard of the choke.
    let by_mailbox = || group.members[1].link(group.members[0].start_id()).refused.of(DeadLetterReason::Full);
    wait("the refusals by the mailbox", || by_mailbox() + 51 >= accepted);
    wait("the choke", || group.members[1].link(group.members[0].start_id()).choked == 1);
    // The others have got all of theirs.
    for (at, from) in [(2, 0), (0, 2), (2, 1)] {
        let by = group.members[from].start_id();
        let came = || {
            group.members[at]
                .recorder
                .count(|event| matches!(event, Event::Delivered { from, .. } if from.start == by))
        };
        wait("all messages of the others", || came() == 5_000);
    }
    let opens = group.members[1].opens.as_ref().expect("its actor waits");
    opens.send(()).expect("its actor waits");
    group.judge();
}

#[test]
fn a_quiet_watch_beside_saturated_links_is_told() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let group = Group::new(vec![Member::start(&server.url(), 1), Member::start(&server.url(), 2)]);
    let quiet = group.members[1].system.actor("quiet").spawn(|| Quiet).expect("the name is free");
    let of_quiet = Address { actor: quiet.untyped().expect("an actor").uid(), ..group.members[1].address };
    let path = "pointsman://demo@n2/user/quiet";
    let far = group.members[0].system.resolve::<Note>(path, LIMIT).wait().expect("it is there");
    let watched = || group.members[0].recorder.count(|event| matches!(event, Event::Watched { .. })) > 0;
    // The watcher gets none of the messages that saturate the links, behind which its notice would wait.
    let (recorder, own) = (group.members[0].recorder.clone(), group.members[0].address);
    let recipe = move || Party {
        recorder: recorder.clone(),
        own,
        watched: Vec::new(),
        gate: Arc::new(Mutex::new(None)),
    };
    let watcher = group.members[0].system.actor("watcher").spawn(recipe).expect("the name is free");
    watcher.tell(Note::Watch(far, of_quiet));
    wait("the watch", watched);
    let before = pairs(2)
        .into_iter()
        .map(|(at, of)| ((at, of), group.members[at].settled(group.members[of].start_id())))
        .collect();
    let group = Group { before, ..group };
    let is_told = AtomicBool::new(false);
    let (fills, full) = channel();
    std::thread::scope(|scope| {
        for (at, of) in pairs(2) {
            let (group, is_told, fills) = (&group, &is_told, fills.clone());
            scope.spawn(move || {
                let (from, to) = (group.members[at].address, group.members[of].address);
                for number in 0.. {
                    if is_told.load(Ordering::Relaxed) {
                        return;
                    }
                    let note = Note::Numbered { from, to, number, padding: vec![b'.'; 10_000] };
                    if group.far(at, of).try_tell(note).is_ok() {
                        let (from, to) = (from.into(), to.into());
                        group.members[at].recorder.note(Event::Sent { from, to, number, accepted: true });
                    } else {
                        let _ = fills.send((at, of));
                        std::thread::yield_now();
                    }
                }
            });
        }
        // The senders end in any case, or the scope would not.
        let ends = EndsSenders(&is_told);
        let mut saturated = std::collections::HashSet::new();
        while saturated.len() < 2 {
            saturated.insert(full.recv_timeout(LIMIT).expect("both links are full at times"));
        }
        quiet.stop();
        group.members[1].recorder.note(Event::Ended { actor: of_quiet.into() });
        told(&group.members[0]);
        drop(ends);
    });
    group.judge();
}

/// Sets a flag when it is dropped.
struct EndsSenders<'a>(&'a AtomicBool);

impl Drop for EndsSenders<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Quiet;

impl Actor for Quiet {
    type Message = Note;
    fn receive(&mut self, _: Note, _: &mut Context<Note>) -> HandlerResult {
        Ok(())
    }
}

/// The process of the other node: it writes its log line by line, until it is killed. Called as a test, it does nothing.
#[test]
fn other_process() {
    let Some(url) = std::env::var_os("POINTSMAN_NATS_HISTORY") else { return };
    let file = std::env::var_os("POINTSMAN_NATS_LOG").expect("it is set with the other");
    let member = Member::start(&url.into_string().expect("UTF-8"), 2);
    let mut file = std::fs::File::create(file).expect("a file can be made");
    let Address { uid, actor, .. } = member.address;
    writeln!(file, "{uid} {actor}").expect("there is room");
    let mut written = 0;
    let began = Instant::now();
    while began.elapsed() < LIMIT * 10 {
        let events = member.recorder.0.lock().expect("no panic")[written..].to_vec();
        for event in &events {
            let Event::Delivered { from, to, number, .. } = event else { continue };
            let line = format!("{} {} {} {} {number}\n", from.start.uid, from.uid, to.start.uid, to.uid);
            file.write_all(line.as_bytes()).expect("there is room");
        }
        written += events.len();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process of the second node.
struct Other {
    child: std::process::Child,
    file: std::path::PathBuf,
}

impl Other {
    fn start(server: &DevServer, number: u32) -> Self {
        let file = std::env::temp_dir().join(format!("pointsman-history-{}-{number}", std::process::id()));
        let mut command = std::process::Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["histories::other_process", "--exact", "--nocapture"]);
        command.env("POINTSMAN_NATS_HISTORY", server.url()).env("POINTSMAN_NATS_LOG", &file);
        Self { child: command.spawn().expect("it starts"), file }
    }

    /// Kills the process, and returns its log.
    fn kill(mut self, process: usize) -> Log {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
        let text = std::fs::read_to_string(&self.file).expect("it has written its log");
        let _ = std::fs::remove_file(&self.file);
        // The last line may be cut.
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let numbers = |line: &str| -> Vec<u64> {
            line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
        };
        let own = numbers(lines.next().expect("it has begun"));
        let start = Start { node: 2, uid: own[0] };
        let at = Incarnation { start, place: 0, uid: own[1] as u32 };
        let delivered = lines.map(|line| {
            let of = numbers(line);
            let from = Incarnation { start: Start { node: 1, uid: of[0] }, place: 0, uid: of[1] as u32 };
            let to = Incarnation { start: Start { node: 2, uid: of[2] }, place: 0, uid: of[3] as u32 };
            Event::Delivered { at, from, to, number: of[4] }
        });
        Log { process, start, events: delivered.collect(), is_cut_off: true }
    }
}

#[test]
fn a_process_that_is_killed_breaks_no_promise() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let n1 = Member::start(&server.url(), 1);
    let mut logs = Vec::new();
    let mut number = 0;
    for life in 0..3 {
        let other = Other::start(&server, life);
        // Until the node of this life answers; what is told to the one before does not count.
        let (far, to) = loop {
            let far = n1.find(2);
            let text = std::fs::read_to_string(&other.file).unwrap_or_default();
            let own: Vec<u64> = text
                .lines()
                .next()
                .into_iter()
                .flat_map(str::split_whitespace)
                .flat_map(str::parse)
                .collect();
            let link = n1.system.remote().expect("it is a node").links().into_iter().next_back();
            match (&own[..], link) {
                (&[uid, actor], Some(link)) if link.uid == uid => {
                    break (far, Address { node: 2, uid, actor: actor as u32 });
                }
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        for _ in 0..5_000 {
            let note = Note::Numbered { from: n1.address, to, number, padding: vec![b'.'; 200] };
            let accepted = far.try_tell(note).is_ok();
            n1.recorder.note(Event::Sent { from: n1.address.into(), to: to.into(), number, accepted });
            number += 1;
        }
        wait("some messages", || {
            std::fs::read_to_string(&other.file).is_ok_and(|text| text.lines().count() > 1_000)
        });
        logs.push(other.kill(life as usize + 1));
    }
    let came: usize = logs.iter().map(|log| log.events.len()).sum();
    assert!(came > 3_000, "{came} messages came");
    logs.push(n1.log(0));
    let violations = check(&logs);
    assert!(violations.is_empty(), "{violations:#?}");
}
