//! Models of the stand-ins of a link: watches, the end of the actor, the loss of its node, and the link's search for stand-ins that
//! are needed no more. Each live watch is told of one end, and never of an end that has not come.
//!
//! Mutations that these were seen to catch: a search that does not ask whether the stand-in is watched, or that takes one out to
//! which a further reference leads; a stand-in that is made behind the end of its link and lives on.

use crate::support::model;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use pointsman::loom_hooks::EndElsewhere;
use pointsman::loom_hooks::stand_ins::{Released, Slot, StandInCell, StandIns, StoodFor};

/// The end that a watcher was told of, and the number of ends.
#[derive(Default)]
struct Watch {
    end: Option<EndElsewhere>,
    count: usize,
}

/// A stand-in's cell: its watchers, and its end. References are counted as those of cells are.
struct Inner {
    references: AtomicU32,
    state: Mutex<CellState>,
    is_released: Arc<Released>,
}

#[derive(Default)]
struct CellState {
    end: Option<EndElsewhere>,
    watches: Vec<Arc<Mutex<Watch>>>,
}

struct Cell(Arc<Inner>);

impl Clone for Cell {
    fn clone(&self) -> Self {
        self.0.references.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.0.references.fetch_sub(1, Ordering::Release);
    }
}

impl StandInCell for Cell {
    fn is_at_rest(&self) -> bool {
        self.0.references.load(Ordering::Relaxed) == 1 && self.0.state.lock().unwrap().end.is_none()
    }

    fn is_forgotten(&self) -> bool {
        self.0.references.load(Ordering::Relaxed) == 1
    }

    fn end(&self, end: EndElsewhere) {
        let watches = {
            let mut state = self.0.state.lock().unwrap();
            if state.end.is_some() {
                return;
            }
            state.end = Some(end);
            std::mem::take(&mut state.watches)
        };
        watches.iter().for_each(|watch| told(watch, end));
    }
}

fn told(watch: &Mutex<Watch>, end: EndElsewhere) {
    let mut watch = watch.lock().unwrap();
    watch.end = Some(end);
    watch.count += 1;
}

/// The actor elsewhere, as its own node has it.
#[derive(Default)]
struct Peer {
    is_watched: bool,
    has_ended: bool,
    /// The notices for this node that are under way.
    notices: Vec<EndElsewhere>,
}

struct Far {
    slot: Slot<Cell>,
    has_ended: AtomicBool,
}

impl StoodFor for Far {
    type Cell = Cell;

    fn slot(&self) -> &Slot<Cell> {
        &self.slot
    }

    fn note_end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

struct World {
    list: StandIns<Far>,
    far: Arc<Far>,
    peer: Mutex<Peer>,
    has_link_ended: AtomicBool,
}

const ENDED: EndElsewhere = EndElsewhere { existed: true, node_down: false };
const DOWN: EndElsewhere = EndElsewhere { existed: true, node_down: true };

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            list: StandIns::new(),
            far: Arc::new(Far { slot: Slot::new(), has_ended: AtomicBool::new(false) }),
            peer: Mutex::new(Peer::default()),
            has_link_ended: AtomicBool::new(false),
        })
    }

    fn cell(&self) -> Cell {
        let make = |is_released| {
            let (references, state) = (AtomicU32::new(1), Mutex::new(CellState::default()));
            Some(Cell(Arc::new(Inner { references, state, is_released })))
        };
        let is_over = || {
            let node_down = self.has_link_ended.load(Ordering::Acquire);
            let is_over = node_down || self.far.has_ended.load(Ordering::Acquire);
            is_over.then_some(EndElsewhere { existed: false, node_down })
        };
        self.list.get_or_make(&self.far, make, is_over).expect("it is made")
    }

    /// An actor begins to watch: first in the cell, and then the cell tells its list.
    fn watch(&self, cell: &Cell) -> Arc<Mutex<Watch>> {
        let watch = Arc::new(Mutex::new(Watch::default()));
        let end = {
            let mut state = cell.0.state.lock().unwrap();
            if state.end.is_none() {
                state.watches.push(watch.clone());
            }
            state.end
        };
        match end {
            Some(end) => told(&watch, end),
            None => self.tell(&cell.0, true),
        }
        watch
    }

    /// The only watcher gives its watch and its reference back. The cell tells its list of that later, in a turn of its own.
    fn unwatch(&self, cell: Cell) {
        let inner = cell.0.clone();
        let was_watched = !std::mem::take(&mut inner.state.lock().unwrap().watches).is_empty();
        drop(cell);
        if was_watched {
            self.tell(&inner, false);
        }
    }

    fn tell(&self, cell: &Inner, is_watched: bool) {
        let told = self.list.watch(&self.far, &cell.is_released, is_watched, || {
            let mut peer = self.peer.lock().unwrap();
            assert_ne!(peer.is_watched, is_watched, "the peer hears what it knows");
            peer.is_watched = is_watched;
            if is_watched && peer.has_ended {
                peer.notices.push(ENDED);
            }
            true
        });
        assert!(told);
    }

    /// The actor ends at its node, which tells of it if it is watched.
    fn end(&self) {
        let mut peer = self.peer.lock().unwrap();
        peer.has_ended = true;
        if peer.is_watched {
            peer.notices.push(ENDED);
        }
    }

    /// The notices that are under way come in.
    fn take_notices(&self) {
        let notices = std::mem::take(&mut self.peer.lock().unwrap().notices);
        for end in notices {
            self.list.end_where(|_| true, end);
        }
    }

    fn lose_node(&self) {
        self.has_link_ended.store(true, Ordering::Release);
        self.list.end_where(|_| true, DOWN);
    }
}

/// An actor begins to watch while the link searches for stand-ins that are not needed, and the watched actor ends. The watcher is told
/// once, and of the true end. Three threads: bound 3.
#[test]
fn watch_races_release_and_end() {
    model("stand_in_end_watch_races_release", &[15, 16], 3, 600, || {
        let world = World::new();
        // One that was used before, and is not watched.
        drop(world.cell());
        let searcher = thread::spawn({
            let world = world.clone();
            move || world.list.release(false)
        });
        let ender = thread::spawn({
            let world = world.clone();
            move || {
                world.end();
                world.take_notices();
            }
        });
        let cell = world.cell();
        let watch = world.watch(&cell);
        searcher.join().unwrap();
        ender.join().unwrap();
        world.take_notices();
        let told = watch.lock().unwrap();
        assert_eq!(told.count, 1, "a watcher is told once");
        assert!(world.peer.lock().unwrap().has_ended && told.end.is_some());
    });
}

/// As long as nothing ends, a watcher is told of nothing, whatever the link searches for. Then the end is told. Two threads.
#[test]
fn nothing_is_told_before_the_end() {
    model("stand_in_end_nothing_before_the_end", &[15, 16], 3, 140, || {
        let world = World::new();
        drop(world.cell());
        let searcher = thread::spawn({
            let world = world.clone();
            move || {
                world.list.release(false);
                world.list.release(false);
            }
        });
        let cell = world.cell();
        let first = world.watch(&cell);
        world.unwatch(cell);
        let cell = world.cell();
        let second = world.watch(&cell);
        searcher.join().unwrap();
        assert_eq!((first.lock().unwrap().count, second.lock().unwrap().count), (0, 0), "told of no end");
        world.end();
        world.take_notices();
        assert_eq!((first.lock().unwrap().count, second.lock().unwrap().count), (0, 1));
        assert_eq!(second.lock().unwrap().end, Some(ENDED));
    });
}

/// The only watcher gives up while the link searches for stand-ins that are not needed: the peer is told so, whichever comes first. Two
/// threads.
#[test]
fn unwatch_races_release() {
    model("stand_in_end_unwatch_races_release", &[15], 3, 15, || {
        let world = World::new();
        let cell = world.cell();
        let watch = world.watch(&cell);
        let searcher = thread::spawn({
            let world = world.clone();
            move || world.list.release(false)
        });
        world.unwatch(cell);
        searcher.join().unwrap();
        assert!(!world.peer.lock().unwrap().is_watched, "the peer watches for no watcher");
        world.list.release(false);
        assert!(!world.far.slot.has_stand_in(), "a stand-in is left");
        assert_eq!(watch.lock().unwrap().count, 0);
    });
}

/// An actor watches another one whose node is lost meanwhile: it is told, though nothing comes from there. Two threads.
#[test]
fn making_races_node_down() {
    model("stand_in_end_making_races_node_down", &[15, 16], 3, 50, || {
        let world = World::new();
        let loser = thread::spawn({
            let world = world.clone();
            move || world.lose_node()
        });
        let watch = world.watch(&world.cell());
        loser.join().unwrap();
        assert_eq!(watch.lock().unwrap().count, 1, "a watcher is told once");
    });
}

/// An actor watches while the actor ends and its node is lost: one end is told. One that begins later is told at once. Three threads:
/// bound 3.
#[test]
fn end_races_node_down() {
    model("stand_in_end_races_node_down", &[15, 16], 3, 600, || {
        let world = World::new();
        let ender = thread::spawn({
            let world = world.clone();
            move || {
                world.end();
                world.take_notices();
            }
        });
        let loser = thread::spawn({
            let world = world.clone();
            move || world.lose_node()
        });
        let cell = world.cell();
        let watch = world.watch(&cell);
        ender.join().unwrap();
        loser.join().unwrap();
        world.take_notices();
        assert_eq!(watch.lock().unwrap().count, 1, "a watcher is told once");
        let late = world.watch(&world.cell());
        assert_eq!(late.lock().unwrap().count, 1, "a late watcher is told at once");
        // Nothing refers to the stand-in any more but this thread.
        drop(cell);
        world.list.release(false);
        assert!(!world.far.slot.has_stand_in(), "a stand-in is left");
    });
}
