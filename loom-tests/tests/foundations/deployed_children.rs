//! Models of the actors that nodes make on each other: a stand-in's state against its peer, messages that wait for a link, and the
//! table of the actors that a peer has made.
//!
//! Mutations that these were seen to catch: a stop that a refusal does not see (a stand-in that never ends); a refusal that lets
//! its request go out (an actor that nothing stops); a second failure that is not undone, or a verdict that the peer does not hear
//! of (a suspension for ever); a link that becomes active without its lock (a message behind a later one); a parent that is
//! stopped while another child is counted, and an actor that enters behind the end.

use crate::support::model;
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use pointsman::loom_hooks::EndElsewhere;
use pointsman::loom_hooks::deployed_table::{DeployedTable, TableActor};
use pointsman::loom_hooks::deployment_state::{DeploymentState, FailedThere, Judged};
use pointsman::loom_hooks::deployments::{Deployed, Deployments};
use pointsman::loom_hooks::early_messages::{Early, EarlyMessage, EarlyMessages};
use pointsman::loom_hooks::stand_ins::{Slot, StandInCell, StandIns, StoodFor};
use std::collections::VecDeque;
use std::time::Duration;

const UID: u32 = 7;
const IN_TIME: Duration = Duration::ZERO;
const TOO_LATE: Duration = Duration::from_secs(10);
const ENDED: EndElsewhere = EndElsewhere { existed: true, node_down: false };
const DOWN: EndElsewhere = EndElsewhere { existed: true, node_down: true };

/// A message to the peer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ToPeer {
    Deploy { suspensions: u32 },
    Suspend,
    Resume { judged: bool },
    Restart,
    Stop,
}

impl EarlyMessage for ToPeer {
    fn is_idempotent(&self) -> bool {
        false
    }

    fn deployed_uid(&self) -> Option<u32> {
        Some(UID)
    }
}

/// A message of the peer.
enum FromPeer {
    Deployed,
    Failed,
    Ended,
}

/// The cell of a stand-in: how often it has ended.
#[derive(Clone)]
struct Cell(Arc<AtomicUsize>);

impl StandInCell for Cell {
    fn is_at_rest(&self) -> bool {
        false
    }

    fn is_forgotten(&self) -> bool {
        false
    }

    fn end(&self, _: EndElsewhere) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Far(Slot<Cell>);

impl StoodFor for Far {
    type Cell = Cell;

    fn slot(&self) -> &Slot<Cell> {
        &self.0
    }

    fn note_end(&self) {}
}

struct Deployment(DeploymentState);

impl Deployed for Deployment {
    fn uid(&self) -> u32 {
        UID
    }

    fn state(&self) -> &DeploymentState {
        &self.0
    }
}

/// The stand-in as its own turns see it: the lock is the turn.
#[derive(Default)]
struct StandIn {
    suspensions: u32,
    is_failed: bool,
    /// The failures that the parent has not judged yet.
    unjudged: usize,
}

/// The actor at the peer.
#[derive(Clone, Copy)]
struct Worker;

impl TableActor for Worker {
    fn uid(&self) -> u32 {
        UID
    }
}

/// The actor's own count.
#[derive(Default)]
struct Peer {
    lives: bool,
    suspensions: u32,
    is_failed: bool,
    /// The next restarts that fail.
    failing_restarts: usize,
}

/// A parent here, its child at a peer, and what is under way between the two.
struct World {
    stand_in: Mutex<StandIn>,
    cell: Cell,
    deployments: Deployments<Deployment>,
    stand_ins: StandIns<Far>,
    early: EarlyMessages<ToPeer>,
    has_link_ended: AtomicBool,
    to_peer: Mutex<VecDeque<ToPeer>>,
    from_peer: Mutex<VecDeque<FromPeer>>,
    table: DeployedTable<Worker>,
    peer: Mutex<Peer>,
}

impl World {
    /// The request waits for the link.
    fn new() -> Arc<Self> {
        let (world, far) = Self::without_stand_in();
        world.make(&far);
        world.deployments.add(Arc::new(Deployment(DeploymentState::new(0, IN_TIME))));
        world.send(ToPeer::Deploy { suspensions: 0 });
        world
    }

    fn make(&self, far: &Arc<Far>) {
        let is_over = || self.has_link_ended.load(Ordering::Relaxed).then_some(DOWN);
        self.stand_ins.get_or_make(far, |_| Some(self.cell.clone()), is_over).expect("it is made");
    }

    fn without_stand_in() -> (Arc<Self>, Arc<Far>) {
        let world = Self {
            stand_in: Mutex::new(StandIn::default()),
            cell: Cell(Arc::new(AtomicUsize::new(0))),
            deployments: Deployments::new(),
            stand_ins: StandIns::new(),
            early: EarlyMessages::new(),
            has_link_ended: AtomicBool::new(false),
            to_peer: Mutex::new(VecDeque::new()),
            from_peer: Mutex::new(VecDeque::new()),
            table: DeployedTable::new(),
            peer: Mutex::new(Peer::default()),
        };
        (Arc::new(world), Arc::new(Far(Slot::new())))
    }

    /// The actor was made, and both sides know it.
    fn made() -> Arc<Self> {
        let world = Self::new();
        world.activate();
        world.settle();
        world
    }

    fn send(&self, message: ToPeer) {
        match self.early.keep(message) {
            Early::Kept => {}
            Early::Active(message) => self.to_peer.lock().unwrap().push_back(message),
            Early::Full => panic!("few messages wait"),
        }
    }

    fn activate(&self) {
        self.early.send_all(|message| self.to_peer.lock().unwrap().push_back(message));
    }

    fn end_link(&self) {
        self.has_link_ended.store(true, Ordering::Relaxed);
        self.stand_ins.end_where(|_| true, DOWN);
        drop(self.deployments.take_all());
    }

    /// The stand-in's turn for control of its parent, as long as the link stands.
    fn control(&self, act: impl FnOnce(&mut StandIn, &DeploymentState)) {
        let mut stand_in = self.stand_in.lock().unwrap();
        if let Some(deployment) = self.deployments.get(UID) {
            if !self.has_link_ended.load(Ordering::Relaxed) {
                act(&mut stand_in, &deployment.0);
            }
        }
    }

    fn suspend(&self) {
        self.control(|stand_in, state| {
            stand_in.suspensions += 1;
            state.suspended();
            self.send(ToPeer::Suspend);
        });
    }

    fn restart(&self) {
        self.control(|stand_in, state| {
            match state.judged(IN_TIME) {
                Judged::Tell => self.send(ToPeer::Restart),
                Judged::AskAgain { suspensions } => self.send(ToPeer::Deploy { suspensions }),
                Judged::Done => {}
            }
            stand_in.suspensions -= 1;
            stand_in.is_failed = false;
        });
    }

    fn stop(&self) {
        self.control(|_, state| {
            if state.stop() && self.early.forget(UID) {
                self.end();
            } else {
                self.send(ToPeer::Stop);
            }
        });
    }

    /// Ends the stand-in, as the actor is not there.
    fn end(&self) {
        if self.deployments.remove(UID).is_some() {
            self.stand_ins.end_where(|_| true, ENDED);
        }
    }

    fn refuse_overdue(&self) {
        for overdue in self.deployments.refuse_overdue(TOO_LATE) {
            if self.early.forget(UID) && overdue.0.is_stopping() {
                self.end();
                continue;
            }
            self.control(|stand_in, state| {
                if !stand_in.is_failed && !state.is_stopping() {
                    state.fails_here();
                    stand_in.fail();
                }
            });
        }
    }

    /// The messages of the peer act.
    fn hear(&self) {
        loop {
            let next = self.from_peer.lock().unwrap().pop_front();
            match next {
                None => return,
                Some(FromPeer::Deployed) => self.control(|_, state| state.made()),
                Some(FromPeer::Failed) => {
                    self.control(|stand_in, state| match state.failed_there(stand_in.is_failed) {
                        FailedThere::Fails => stand_in.fail(),
                        FailedThere::Waits => {}
                    })
                }
                Some(FromPeer::Ended) => {
                    if self.deployments.get(UID).is_some_and(|deployment| deployment.0.is_repeated()) {
                        self.send(ToPeer::Stop);
                    }
                    self.end();
                }
            }
        }
    }

    /// The peer carries out what has come.
    fn serve(&self) {
        loop {
            let next = self.to_peer.lock().unwrap().pop_front();
            let mut peer = self.peer.lock().unwrap();
            match next {
                None => return,
                Some(ToPeer::Deploy { suspensions }) => {
                    if !self.table.has(UID) {
                        assert!(self.table.parent("p", |_| Some(Worker)).is_some());
                        self.table.enter(Worker, "p", suspensions, None);
                        *peer = Peer { lives: true, suspensions, ..Peer::default() };
                    }
                    self.answer(FromPeer::Deployed);
                }
                Some(ToPeer::Stop) => {
                    if self.table.has(UID) {
                        let _ = self.table.leave(UID);
                        peer.lives = false;
                    }
                    self.answer(FromPeer::Ended);
                }
                Some(_) if !self.table.has(UID) => {}
                Some(ToPeer::Suspend) => {
                    self.table.suspended(UID);
                    peer.suspensions += 1;
                }
                Some(verdict) if self.table.resumed(UID) => {
                    peer.suspensions = peer.suspensions.checked_sub(1).expect("below zero");
                    peer.is_failed &= verdict == ToPeer::Resume { judged: false };
                    if verdict == ToPeer::Restart && peer.failing_restarts > 0 {
                        peer.failing_restarts -= 1;
                        self.fail_there(&mut peer);
                    }
                }
                Some(verdict) => panic!("{verdict:?} has no suspension to undo"),
            }
        }
    }

    fn answer(&self, message: FromPeer) {
        self.from_peer.lock().unwrap().push_back(message);
    }

    /// The actor fails, unless it waits for a verdict.
    fn fail_there(&self, peer: &mut Peer) {
        if peer.lives && !std::mem::replace(&mut peer.is_failed, true) {
            peer.suspensions += 1;
            self.table.suspended(UID);
            self.answer(FromPeer::Failed);
        }
    }

    /// The parent judges what it knows, until nothing is under way.
    fn settle(&self) {
        loop {
            self.serve();
            self.hear();
            if self.to_peer.lock().unwrap().is_empty() {
                let is_left = std::mem::replace(&mut self.stand_in.lock().unwrap().unjudged, 0);
                (0..is_left).for_each(|_| self.restart());
                if is_left == 0 && self.to_peer.lock().unwrap().is_empty() {
                    return;
                }
            }
        }
    }

    fn ends(&self) -> usize {
        self.cell.0.load(Ordering::Relaxed)
    }

    /// The actor lives, and neither it nor its stand-in is suspended.
    fn assert_both_run(&self) {
        self.settle();
        let (stand_in, peer) = (self.stand_in.lock().unwrap(), self.peer.lock().unwrap());
        assert_eq!((stand_in.suspensions, peer.suspensions), (0, 0), "suspended for ever");
        assert!(peer.lives && !peer.is_failed && !stand_in.is_failed && self.ends() == 0);
        assert!(!self.table.resumed(UID), "the peer may undo a suspension that is not there");
    }

    /// The stand-in has ended once, and no actor is left that the peer would stop with its link alone.
    fn assert_both_ended(&self) {
        self.settle();
        assert_eq!(self.ends(), 1, "the stand-in ends once");
        assert!(self.deployments.get(UID).is_none() && !self.peer.lock().unwrap().lives, "an actor lives on");
    }
}

impl StandIn {
    fn fail(&mut self) {
        self.suspensions += 1;
        self.is_failed = true;
        self.unjudged += 1;
    }
}

/// A request is taken as refused while its link becomes active and its stand-in is told to stop. Three threads: bound 3.
#[test]
fn overdue_races_activation_and_stop() {
    model("deployed_overdue_races_activation_and_stop", &[15], 3, 300, || {
        let world = World::new();
        let ticker = thread::spawn({
            let world = world.clone();
            move || world.refuse_overdue()
        });
        let hub = thread::spawn({
            let world = world.clone();
            move || world.activate()
        });
        world.stop();
        ticker.join().unwrap();
        hub.join().unwrap();
        world.assert_both_ended();
    });
}

/// A request is taken as refused while the answer comes; the parent's verdict asks again. Then the actor ends by itself.
/// Three threads: bound 3.
#[test]
fn overdue_races_answer() {
    model("deployed_overdue_races_answer", &[15], 3, 100, || {
        let world = World::new();
        world.activate();
        let ticker = thread::spawn({
            let world = world.clone();
            move || world.refuse_overdue()
        });
        let hub = thread::spawn({
            let world = world.clone();
            move || {
                world.serve();
                world.hear();
            }
        });
        world.suspend();
        ticker.join().unwrap();
        hub.join().unwrap();
        world.restart();
        world.assert_both_run();
        world.stop();
        world.assert_both_ended();
    });
}

/// A request that waits for its link is taken as refused while its stand-in is told to stop. Two threads.
#[test]
fn overdue_races_stop() {
    model("deployed_overdue_races_stop", &[15], 3, 8, || {
        let world = World::new();
        let ticker = thread::spawn({
            let world = world.clone();
            move || world.refuse_overdue()
        });
        world.stop();
        ticker.join().unwrap();
        assert_eq!(world.ends(), 1, "the stand-in ends once");
        world.activate();
        world.assert_both_ended();
    });
}

/// The answer to a request that was taken as refused comes while its stand-in is told to stop. Two threads.
#[test]
fn late_answer_races_stop() {
    model("deployed_late_answer_races_stop", &[15], 3, 15, || {
        let world = World::new();
        world.activate();
        world.refuse_overdue();
        let hub = thread::spawn({
            let world = world.clone();
            move || {
                world.serve();
                world.hear();
            }
        });
        world.stop();
        hub.join().unwrap();
        world.assert_both_ended();
    });
}

/// A stand-in is made while its link ends. Two threads.
#[test]
fn making_races_link_end() {
    model("deployed_making_races_link_end", &[15], 3, 5, || {
        let (world, far) = World::without_stand_in();
        let hub = thread::spawn({
            let world = world.clone();
            move || world.end_link()
        });
        world.make(&far);
        hub.join().unwrap();
        assert_eq!(world.ends(), 1, "the stand-in ends once");
    });
}

/// The link becomes active, and ends, while the stand-in is told to stop and its request is taken as refused. Three threads: bound 3.
#[test]
fn link_end_races_stop() {
    model("deployed_link_end_races_stop", &[15], 3, 100, || {
        let world = World::new();
        let hub = thread::spawn({
            let world = world.clone();
            move || {
                world.activate();
                world.end_link();
            }
        });
        let ticker = thread::spawn({
            let world = world.clone();
            move || world.refuse_overdue()
        });
        world.stop();
        hub.join().unwrap();
        ticker.join().unwrap();
        assert_eq!(world.ends(), 1, "the stand-in ends once");
    });
}

/// A parent that restarts suspends and restarts its child while this fails, and fails again when it is restarted. Two threads.
#[test]
fn verdicts_race_failures() {
    model("deployed_verdicts_race_failures", &[15], 3, 30, || {
        let world = World::made();
        world.peer.lock().unwrap().failing_restarts = 1;
        let peer = thread::spawn({
            let world = world.clone();
            move || {
                world.fail_there(&mut world.peer.lock().unwrap());
                world.serve();
                world.hear();
                world.serve();
                world.hear();
            }
        });
        world.suspend();
        world.restart();
        peer.join().unwrap();
        world.assert_both_run();
        world.stop();
        world.assert_both_ended();
    });
}

/// As before, and the failures are heard of while the peer goes on. Three threads: bound 2.
#[test]
fn hearing_races_failures() {
    model("deployed_hearing_races_failures", &[15], 2, 100, || {
        let world = World::made();
        world.peer.lock().unwrap().failing_restarts = 1;
        let peer = thread::spawn({
            let world = world.clone();
            move || {
                world.fail_there(&mut world.peer.lock().unwrap());
                world.serve();
            }
        });
        let hub = thread::spawn({
            let world = world.clone();
            move || world.hear()
        });
        world.suspend();
        world.restart();
        peer.join().unwrap();
        hub.join().unwrap();
        world.assert_both_run();
    });
}

/// A message of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Numbered {
    sender: u32,
    number: u32,
}

impl EarlyMessage for Numbered {
    fn is_idempotent(&self) -> bool {
        false
    }

    fn deployed_uid(&self) -> Option<u32> {
        Some(self.sender)
    }
}

/// The messages that a link has sent; none behind its end.
#[derive(Default)]
struct Stream {
    sent: Vec<Numbered>,
    refused: Vec<Numbered>,
    has_ended: bool,
}

impl Stream {
    fn send(&mut self, message: Numbered) {
        if self.has_ended { self.refused.push(message) } else { self.sent.push(message) }
    }
}

/// Two senders send while their link becomes active, and ends. Each message goes out once, before the end, or not at all, and those
/// of a sender in their order. Three threads: bound 3.
#[test]
fn early_messages_race_activation() {
    model("deployed_early_messages_race_activation", &[1, 2], 3, 300, || {
        let early = Arc::new(EarlyMessages::new());
        let stream = Arc::new(Mutex::new(Stream::default()));
        let lost = Arc::new(AtomicU32::new(0));
        let sender = |sender: u32| {
            let (early, stream, lost) = (early.clone(), stream.clone(), lost.clone());
            move || {
                for number in 0..2 {
                    match early.keep(Numbered { sender, number }) {
                        Early::Kept => {}
                        Early::Active(message) => stream.lock().unwrap().send(message),
                        Early::Full => _ = lost.fetch_add(1, Ordering::Relaxed),
                    }
                }
            }
        };
        let (first, second) = (thread::spawn(sender(1)), sender(2));
        let hub = thread::spawn({
            let (early, stream) = (early.clone(), stream.clone());
            move || {
                early.send_all(|message| stream.lock().unwrap().send(message));
                stream.lock().unwrap().has_ended = true;
                // It goes out once.
                early.send_all(|message| panic!("{message:?} goes out again"));
            }
        });
        second();
        first.join().unwrap();
        hub.join().unwrap();
        let Stream { sent, refused, .. } = &*stream.lock().unwrap();
        let count = sent.len() + refused.len() + lost.load(Ordering::Relaxed) as usize;
        assert_eq!(count, 4, "a message is lost or doubled: {sent:?} {refused:?}");
        for sender in 1..3 {
            let own = |list: &[Numbered]| -> Vec<u32> {
                list.iter().filter(|message| message.sender == sender).map(|message| message.number).collect()
            };
            let all = [own(sent), own(refused)].concat();
            assert!(all.is_sorted(), "out of order: {sent:?} {refused:?}");
        }
    });
}

/// A parent in the place of another one, or a child of it.
#[derive(Clone)]
struct Actor {
    uid: u32,
    state: Arc<Mutex<ActorState>>,
}

#[derive(Default)]
struct ActorState {
    is_stopped: bool,
    children: Vec<Actor>,
}

impl TableActor for Actor {
    fn uid(&self) -> u32 {
        self.uid
    }
}

impl Actor {
    fn new(uid: u32) -> Self {
        Self { uid, state: Arc::new(Mutex::new(ActorState::default())) }
    }

    /// Makes a child, unless this ends.
    fn child(&self, uid: u32) -> Option<Self> {
        let mut state = self.state.lock().unwrap();
        if state.is_stopped {
            return None;
        }
        let child = Self::new(uid);
        state.children.push(child.clone());
        Some(child)
    }

    fn stop(&self) {
        let children = {
            let mut state = self.state.lock().unwrap();
            state.is_stopped = true;
            std::mem::take(&mut state.children)
        };
        children.iter().for_each(Self::stop);
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().unwrap().is_stopped
    }
}

type Table = DeployedTable<Actor>;

/// The peer makes an actor. Returns its parent and the actor; none, if the link has ended.
fn make(table: &Table, uid: u32) -> Option<(Actor, Actor)> {
    let parent =
        table.parent("p", |guardian| guardian.get_or_insert_with(|| Actor::new(100)).child(100 + uid))?;
    match parent.child(uid) {
        Some(child) => {
            table.enter(child.clone(), "p", 0, None);
            Some((parent, child))
        }
        None => {
            leave(table.leave_parent("p"));
            None
        }
    }
}

fn leave(parent: Option<Actor>) {
    if let Some(parent) = parent {
        parent.stop();
    }
}

/// A child ends, a second one comes below the same parent, and a third one too: the parent of each that lives is not stopped, and a
/// parent without children is. Three threads: bound 3.
#[test]
fn enter_races_leave() {
    model("deployed_enter_races_leave", &[14, 15], 3, 100, || {
        let table = Arc::new(Table::new());
        let first = make(&table, 1).expect("the link stands");
        let leaver = thread::spawn({
            let table = table.clone();
            move || leave(table.leave(1))
        });
        let maker = thread::spawn({
            let table = table.clone();
            move || make(&table, 2).expect("the parent takes it")
        });
        let third = make(&table, 3).expect("the parent takes it");
        leaver.join().unwrap();
        let second = maker.join().unwrap();
        assert!(!second.0.is_stopped() && !third.0.is_stopped(), "a parent is stopped that has a child");
        assert!(table.has(2) && table.has(3) && !table.has(1));
        leave(table.leave(2));
        assert!(!third.0.is_stopped(), "a parent is stopped that has a child");
        leave(table.leave(3));
        assert!([first, second, third].iter().all(|(parent, _)| parent.is_stopped()), "a parent is left");
        assert!(table.check_room(1).is_ok());
    });
}

/// A factory refuses to make an actor while another one comes below the same parent. Two threads.
#[test]
fn refusal_races_enter() {
    model("deployed_refusal_races_enter", &[14, 15], 3, 8, || {
        let table = Arc::new(Table::new());
        let refuser = thread::spawn({
            let table = table.clone();
            move || {
                let make =
                    |guardian: &mut Option<Actor>| guardian.get_or_insert_with(|| Actor::new(100)).child(101);
                assert!(table.parent("p", make).is_some());
                leave(table.leave_parent("p"));
            }
        });
        let (parent, _) = make(&table, 2).expect("the parent takes it");
        refuser.join().unwrap();
        assert!(!parent.is_stopped(), "a parent is stopped that has a child");
        leave(table.leave(2));
        assert!(parent.is_stopped() && table.check_room(1).is_ok(), "a parent is left");
    });
}

/// The link ends while two actors come: none is left. Three threads: bound 3.
#[test]
fn end_races_two_makers() {
    model("deployed_end_races_two_makers", &[15], 3, 100, || {
        let table = Arc::new(Table::new());
        let maker = thread::spawn({
            let table = table.clone();
            move || make(&table, 1)
        });
        let hub = thread::spawn({
            let table = table.clone();
            move || leave(table.end())
        });
        let second = make(&table, 2);
        let first = maker.join().unwrap();
        hub.join().unwrap();
        for (parent, child) in first.into_iter().chain(second) {
            assert!(parent.is_stopped() && child.is_stopped(), "a child lives on");
        }
        assert!(table.check_room(1).is_ok() && make(&table, 3).is_none(), "it has entered behind the end");
    });
}

/// The link ends while a child ends and another one comes: nothing is left. Three threads: bound 3.
#[test]
fn end_races_enter() {
    model("deployed_end_races_enter", &[15], 3, 100, || {
        let table = Arc::new(Table::new());
        make(&table, 1).expect("the link stands");
        let leaver = thread::spawn({
            let table = table.clone();
            move || leave(table.leave(1))
        });
        let hub = thread::spawn({
            let table = table.clone();
            move || leave(table.end())
        });
        let made = make(&table, 2);
        leaver.join().unwrap();
        hub.join().unwrap();
        assert!(
            made.is_none_or(|(parent, child)| parent.is_stopped() && child.is_stopped()),
            "a child lives on"
        );
        assert!(table.check_room(1).is_ok() && !table.has(2), "it has entered behind the end");
        assert!(make(&table, 3).is_none() && table.end().is_none());
    });
}
