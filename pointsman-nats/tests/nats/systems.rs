//! Systems whose nodes talk over a real server.

use crate::support::{LIMIT, TestNode, Told, server_or_skip};
use pointsman::SystemBuilder;
use pointsman::prelude::*;
use pointsman::remote::{
    ChannelKind, DetectorSettings, LinkReport, LinkState, Node, NodeEvent, Policy, Wire,
};
use pointsman_nats::{DevServer, Nats};
use serde::{Deserialize, Serialize};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Serialize, Deserialize)]
struct Double(u64);

impl Request for Double {
    type Reply = u64;
}

#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "test.Work", version = 1)]
enum Work {
    Note(u64, Vec<u8>),
    Double(Call<Double>),
}

/// Writes down the numbers of its notes.
struct Worker(Sender<u64>);

impl Actor for Worker {
    type Message = Work;

    fn receive(&mut self, work: Work, _: &mut Context<Work>) -> HandlerResult {
        match work {
            Work::Note(number, _) => self.0.send(number)?,
            Work::Double(call) => call.answer(|Double(number)| 2 * number),
        }
        Ok(())
    }
}

/// A system with a node, and what its node has told.
struct TestSystem {
    system: System,
    events: Receiver<NodeEvent>,
    /// The numbers that its worker has got.
    numbers: Receiver<u64>,
}

impl TestSystem {
    fn start(nats: Nats, name: &str) -> Self {
        Self::start_with(nats, name, |builder| builder)
    }

    fn start_with(nats: Nats, name: &str, change: impl FnOnce(SystemBuilder) -> SystemBuilder) -> Self {
        let detector = DetectorSettings::new()
            .heartbeat(Duration::from_millis(200))
            .acceptable_pause(Duration::from_secs(2));
        let node = Node::new(name)
            .engine(nats)
            .message::<Work>()
            .policy(Policy::closed().allow_path("/user/*"))
            .detector(detector)
            .down_after(Duration::from_secs(2));
        let system = change(System::builder("demo").node(node)).build().expect("a sound node");
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let subscription = system.events().on(move |event: &NodeEvent| {
            let _ = sender.lock().expect("no panic").send(event.clone());
        });
        std::mem::forget(subscription);
        let (sender, numbers) = channel();
        let sender = Arc::new(Mutex::new(sender));
        let worker = move || Worker(sender.lock().expect("no panic").clone());
        system.actor("worker").spawn(worker).expect("the name is free");
        Self { system, events, numbers }
    }

    fn wait_event(&self, what: &str, mut is_it: impl FnMut(&NodeEvent) -> bool) -> NodeEvent {
        let began = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(began.elapsed());
            let event = self.events.recv_timeout(left).unwrap_or_else(|_| panic!("{what} has not come"));
            if is_it(&event) {
                return event;
            }
        }
    }

    /// Finds the worker of a node. One that was declared down is asked again, until it has come back.
    fn find(&self, node: &str) -> ActorRef<Work> {
        let path = format!("pointsman://demo@{node}/user/worker");
        let began = Instant::now();
        loop {
            match self.system.resolve::<Work>(&path, LIMIT).wait() {
                Ok(found) => return found,
                Err(error) => assert!(began.elapsed() < LIMIT, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn link(&self) -> LinkReport {
        let links = self.system.remote().expect("it is a node").links();
        links.into_iter().next_back().expect("there is a link")
    }

    /// Waits until the account of the link has nothing under way.
    fn wait_settled(&self) -> LinkReport {
        let began = Instant::now();
        loop {
            let link = self.link();
            if link.queued == 0 && link.in_doubt == 0 {
                assert_eq!(link.shipped, link.confirmed + link.lost);
                return link;
            }
            assert!(began.elapsed() < LIMIT, "{link:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Tells a number, and waits while the link is full.
fn tell(far: &ActorRef<Work>, number: u64, len: usize) {
    let mut note = Work::Note(number, vec![b'.'; len]);
    let began = Instant::now();
    while let Err(error) = far.try_tell(note) {
        assert!(began.elapsed() < LIMIT, "the link stays full");
        note = error.into_inner();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn actors_of_two_nodes_tell_and_ask_over_a_server() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let start = |name| TestSystem::start(Nats::servers([server.url()]), name);
    let (n1, n2) = (start("n1"), start("n2"));
    let far = n1.find("n2");
    // So few do not choke the actor, which would refuse the ask.
    for number in 0..4_000 {
        tell(&far, number, 50);
    }
    assert_eq!(far.ask(Double(21)).within(LIMIT).wait().expect("an answer"), 42);
    let numbers: Vec<u64> = (0..4_000).map(|_| n2.numbers.recv_timeout(LIMIT).expect("a number")).collect();
    assert!(numbers.iter().copied().eq(0..4_000));
    let link = n1.wait_settled();
    assert_eq!((link.state, link.lost, link.repeated), (LinkState::Up, 0, 0));
    for asked in 0..100 {
        assert_eq!(n2.find("n1").ask(Double(asked)).within(LIMIT).wait().expect("an answer"), 2 * asked);
    }
}

/// One file has the settings of the node and those of its engine.
#[test]
fn a_configuration_names_the_node_and_the_servers() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let n2 = TestSystem::start(Nats::servers([server.url()]), "n2");
    let file = format!("[remote]\nnode = 'n7'\n[remote.nats]\nservers = ['{}']\n", server.url());
    let node = Node::new("unnamed").engine(Nats::configured()).message::<Work>();
    let builder = System::builder("demo").node(node).config(&file).expect("the file is right");
    let n7 = builder.build().expect("a sound node");
    assert_eq!(n7.remote().expect("it is a node").node(), "n7");
    let far = n7.resolve::<Work>("pointsman://demo@n2/user/worker", LIMIT).wait().expect("it is there");
    assert_eq!(far.ask(Double(3)).within(LIMIT).wait().expect("an answer"), 6);
    assert_eq!(n2.link().node, "n7");
}

/// The server is killed and started again while messages are under way. Those that come keep their order; each of the others
/// is counted as lost, and none twice.
#[test]
fn a_server_that_comes_back_costs_messages_and_no_order_and_each_is_counted() {
    let Some(mut server) = server_or_skip(DevServer::start) else { return };
    let start = |name| TestSystem::start(Nats::servers([server.url()]), name);
    let (n1, n2) = (start("n1"), start("n2"));
    let far = n1.find("n2");
    const COUNT: u64 = 30_000;
    for number in 0..COUNT {
        tell(&far, number, 1000);
        if number == COUNT / 3 || number == COUNT / 2 {
            server.restart().expect("it starts again");
        }
    }
    let link = n1.wait_settled();
    assert_eq!(link.state, LinkState::Up, "the nodes outlive the server");
    let mut numbers: Vec<u64> = n2.numbers.try_iter().collect();
    // What was confirmed was told to the actor, which may still handle it.
    let told = link.confirmed.min(COUNT);
    let received = n2.link().received;
    assert!(received <= COUNT + 1, "{received}");
    while (numbers.len() as u64) < received.min(told) {
        let Ok(number) = n2.numbers.recv_timeout(Duration::from_secs(5)) else { break };
        numbers.push(number);
    }
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "no message twice or before an earlier one");
    assert_eq!(link.repeated, 0);
    // The message of `resolve` is among them, or it is not: it is no message of an actor.
    let missing = COUNT - numbers.len() as u64;
    assert!(
        link.lost >= missing.saturating_sub(1) && link.lost <= missing + 1,
        "{link:?}, {missing} missing"
    );
}

#[test]
fn nodes_go_on_over_the_other_server() {
    let Some(mut first) = server_or_skip(DevServer::start) else { return };
    let second = DevServer::start().expect("it starts");
    let start = |name| TestSystem::start(Nats::servers([first.url(), second.url()]), name);
    let (n1, n2) = (start("n1"), start("n2"));
    let far = n1.find("n2");
    tell(&far, 1, 10);
    assert_eq!(n2.numbers.recv_timeout(LIMIT), Ok(1));
    first.kill().expect("it runs");
    n1.wait_event("the loss of the server", |event| matches!(event, NodeEvent::EngineDown { .. }));
    let answer = (0..).find_map(|_| far.ask(Double(4)).within(Duration::from_secs(1)).wait().ok());
    assert_eq!(answer, Some(8));
}

/// A process that is a node of its own: this program, called for the test [`peer`].
struct Peer(Child);

impl Peer {
    fn start(server: &DevServer) -> Self {
        let program = std::env::current_exe().expect("it has a name");
        let mut command = Command::new(program);
        command.args(["systems::peer", "--exact", "--nocapture"]).env("POINTSMAN_NATS_PEER", server.url());
        Self(command.spawn().expect("it starts"))
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status();
        assert!(status.expect("kill is there").success());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other process: a node until it is killed. Called as a test, it does nothing.
#[test]
fn peer() {
    let Some(url) = std::env::var_os("POINTSMAN_NATS_PEER") else { return };
    let system = TestSystem::start(Nats::servers([url.into_string().expect("UTF-8")]), "n2");
    // Ten times as long as any test waits.
    system.system.wait_until_ended(LIMIT * 10).expect_err("it is killed");
}

/// The other process is stopped, so it takes nothing and says nothing. Sending goes on until the link is full, and the peer
/// is suspected and declared down; when it goes on, it comes back under another UID.
#[cfg(unix)]
#[test]
fn a_peer_that_is_stopped_fills_its_link_and_comes_back_as_another_one() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let n1 = TestSystem::start(Nats::servers([server.url()]), "n1");
    let peer = Peer::start(&server);
    let far = n1.find("n2");
    let uid = n1.link().uid;
    let is_of = |event: &NodeEvent, of: u64| match event {
        NodeEvent::Suspect { uid, .. } | NodeEvent::Down { uid, .. } => *uid == of,
        _ => false,
    };
    peer.signal("STOP");
    // Never more than the limits of the link: the sender gets them back.
    let began = Instant::now();
    let mut refused = 0;
    while refused < 100 {
        refused += u32::from(far.try_tell(Work::Note(0, vec![b'.'; 10_000])).is_err());
        assert!(began.elapsed() < LIMIT, "the link takes messages without end");
    }
    n1.wait_event("the suspicion", |event| matches!(event, NodeEvent::Suspect { .. }) && is_of(event, uid));
    n1.wait_event("the end of the link", |event| {
        matches!(event, NodeEvent::Down { .. }) && is_of(event, uid)
    });
    assert!(far.try_tell(Work::Note(0, Vec::new())).is_err());
    peer.signal("CONT");
    let again = n1.find("n2");
    assert_ne!(n1.link().uid, uid, "it has taken another UID");
    assert_eq!(again.ask(Double(5)).within(LIMIT).wait().expect("an answer"), 10);
}

/// The other process is killed: the server knows at once that its node listens no more.
#[cfg(unix)]
#[test]
fn a_peer_that_is_killed_is_declared_down_and_its_next_start_is_another_one() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let n1 = TestSystem::start(Nats::servers([server.url()]), "n1");
    let first = Peer::start(&server);
    let far = n1.find("n2");
    let of = n1.link().uid;
    drop(first);
    n1.wait_event("the end of the link", |event| matches!(event, NodeEvent::Down { uid, .. } if *uid == of));
    assert!(far.try_tell(Work::Note(0, Vec::new())).is_err());
    let _second = Peer::start(&server);
    let again = n1.find("n2");
    assert!(again != far && n1.link().uid != of);
    assert_eq!(again.ask(Double(6)).within(LIMIT).wait().expect("an answer"), 12);
}

/// Blocks its worker from the message on, until the other channel is closed.
struct Blocker(Sender<()>, Arc<Mutex<Receiver<()>>>);

impl Actor for Blocker {
    type Message = ();

    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        self.0.send(())?;
        // An error is the end.
        let _ = self.1.lock().expect("no panic").recv();
        Ok(())
    }
}

/// D14: all workers of a node are blocked for longer than its peers bear a silence, and its heartbeats go out all the while.
#[test]
fn heartbeats_leave_while_all_workers_are_blocked() {
    const WORKERS: usize = 2;
    /// Those of 3 s; a peer bears a silence of 2 s.
    const BEATS: usize = 15;
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let nats = || Nats::servers([server.url()]);
    let dispatcher = Dispatcher::work_stealing().threads(WORKERS);
    let n1 = TestSystem::start_with(nats(), "n1", |builder| builder.dispatcher("default", dispatcher));
    let n2 = TestSystem::start(nats(), "n2");
    let listener = TestNode::connected(nats(), "n3", 3);
    let far = n2.find("n1");
    assert_eq!(far.ask(Double(1)).within(LIMIT).wait().expect("an answer"), 2);
    let (entered, blocked) = channel();
    let mut released = Vec::new();
    for _ in 0..WORKERS {
        let (release, until) = channel();
        released.push(release);
        let (entered, until) = (entered.clone(), Arc::new(Mutex::new(until)));
        let blocker = n1.system.spawn(move || Blocker(entered.clone(), until.clone())).expect("it lives");
        blocker.tell(());
    }
    for _ in 0..WORKERS {
        blocked.recv_timeout(LIMIT).expect("it blocks a worker");
    }
    let of_n1 = |told: &[Told]| {
        let is_beat = |told: &&Told| matches!(told, Told::Frame { from, kind: ChannelKind::Heartbeat, .. } if from == "n1");
        told.iter().filter(is_beat).count()
    };
    let before = of_n1(&listener.record.told());
    // Sends to the node do not block either, and wait for its workers.
    for number in 0..100 {
        assert!(far.try_tell(Work::Note(number, Vec::new())).is_ok());
    }
    listener.record.wait("heartbeats", |told| (of_n1(told) >= before + BEATS).then_some(()));
    let is_silence = |event: NodeEvent| matches!(event, NodeEvent::Suspect { .. } | NodeEvent::Down { .. });
    assert!(!n2.events.try_iter().any(is_silence), "it was heard all the while");
    assert_eq!((n2.link().state, n1.numbers.try_recv().ok()), (LinkState::Up, None));
    drop(released);
    let numbers: Vec<u64> = (0..100).map(|_| n1.numbers.recv_timeout(LIMIT).expect("a number")).collect();
    assert!(numbers.into_iter().eq(0..100));
}

/// D15: sending goes on to a peer that is stopped, and then over a server that is stopped. The memory stays below what may wait,
/// and actors of this node go on.
#[cfg(target_os = "linux")]
#[test]
fn memory_stays_under_the_caps_while_peer_and_server_are_silent() {
    use crate::support::{in_own_process, peak_memory};
    in_own_process("systems::memory_stays_under_the_caps_while_peer_and_server_are_silent", || {
        let Some(server) = server_or_skip(DevServer::start) else { return };
        let n1 = TestSystem::start(Nats::servers([server.url()]), "n1");
        let peer = Peer::start(&server);
        let local: ActorRef<Work> =
            n1.system.actor_at("/user/worker").expect("it lives").typed().expect("its type");
        let stop_server = |name: &str| {
            let status =
                Command::new("kill").args([format!("-{name}"), server.process_id().to_string()]).status();
            assert!(status.expect("kill is there").success());
        };
        let far = n1.find("n2");
        tell(&far, 0, 10_000);
        n1.wait_settled();
        let before = peak_memory();
        // The messages that wait in the outbox, and those under way.
        let bound = (64 << 20) + (8 << 20);
        let flood = |far: &ActorRef<Work>, what: &str| {
            // Several times the bound. A link that has ended takes none of it.
            let refused = (0..30_000u64)
                .filter(|number| far.try_tell(Work::Note(*number, vec![b'.'; 10_000])).is_err());
            assert!(refused.count() > 20_000, "{what}: the link takes messages without end");
            assert_eq!(local.ask(Double(4)).within(LIMIT).wait().expect("an answer"), 8, "{what}");
            let above = peak_memory() - before;
            assert!(above < bound, "{what}: {} MiB above the beginning", above >> 20);
        };
        peer.signal("STOP");
        flood(&far, "the peer is stopped");
        let uid = n1.link().uid;
        n1.wait_event(
            "the end of the link",
            |event| matches!(event, NodeEvent::Down { uid: of, .. } if *of == uid),
        );
        flood(&far, "the peer is down");
        peer.signal("CONT");
        let again = n1.find("n2");
        stop_server("STOP");
        flood(&again, "the server is stopped");
        stop_server("CONT");
        let answer =
            (0..).find_map(|_| n1.find("n2").ask(Double(5)).within(Duration::from_secs(1)).wait().ok());
        assert_eq!(answer, Some(10));
    });
}
