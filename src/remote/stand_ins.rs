//! The stand-ins of a link: each actor elsewhere has at most one, which ends once.
//!
//! A stand-in and the reference to its actor keep each other. So each second the link looks for stand-ins to which nothing else
//! refers: those that have ended, and those that no actor watches. It takes them out, under the lock of this list, so that no
//! thread gets a reference meanwhile; the next watch makes another one. A stand-in that was taken out may still be told that it
//! is watched no more: the peer hears that from the one in its place alone.
//!
//! The list knows nothing of cells and links, so that it is modelled by loom.

use crate::core::elsewhere::EndElsewhere;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, lock};

/// The cell of a stand-in, as its list knows it. A clone is another reference to it.
pub(crate) trait StandInCell: Clone {
    /// Whether it lives, and nothing refers to it but its life, its parent and this list.
    fn is_at_rest(&self) -> bool;

    /// Whether it has ended, and nothing but this list refers to it.
    fn is_forgotten(&self) -> bool;

    /// Ends it. `end` is told to those who watch it, unless it has ended before.
    fn end(&self, end: EndElsewhere);
}

/// An actor elsewhere that may have a stand-in.
pub(crate) trait StoodFor {
    type Cell: StandInCell;

    /// The part that the list keeps in it.
    fn slot(&self) -> &Slot<Self::Cell>;

    /// No message reaches the actor any more.
    fn note_end(&self);
}

/// Whether a stand-in was taken out. Written and read with the lock of the list held.
pub(crate) struct Released(AtomicBool);

/// The stand-in of an actor elsewhere.
struct StandIn<C> {
    cell: C,
    is_released: Arc<Released>,
}

/// The part of an actor elsewhere that the list of its link keeps. It changes with the lock of the list held.
pub(crate) struct Slot<C> {
    /// Made when the actor is watched or stopped, and gone when nothing needs it.
    stand_in: Mutex<Option<StandIn<C>>>,
    /// Whether the peer has been told to watch the actor for this node.
    is_watched: AtomicBool,
}

/// The actors of a peer that have stand-ins.
pub(crate) struct StandIns<F>(Mutex<Lists<F>>);

struct Lists<F> {
    living: Vec<Arc<F>>,
    /// Those whose stand-ins have ended, and which may still be referred to.
    ended: Vec<Arc<F>>,
}

impl<C> Slot<C> {
    pub(crate) fn new() -> Self {
        Self { stand_in: Mutex::new(None), is_watched: AtomicBool::new(false) }
    }

    pub(crate) fn has_stand_in(&self) -> bool {
        lock(&self.stand_in).is_some()
    }

    fn is_watched(&self) -> bool {
        // Ordering: Relaxed; the lock of the list orders.
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Takes the stand-in out, if `is_meant` holds for it.
    fn take(&self, is_meant: impl FnOnce(&C) -> bool) -> Option<StandIn<C>> {
        lock(&self.stand_in).take_if(|stand_in| is_meant(&stand_in.cell))
    }
}

impl<F: StoodFor> StandIns<F> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Lists { living: Vec::new(), ended: Vec::new() }))
    }

    /// The stand-in of an actor. If there is none, `make` makes it. `is_over` is asked afterwards: whether the link, or the actor, has
    /// ended; then the stand-in ends at once.
    pub(crate) fn get_or_make(
        &self,
        of: &Arc<F>,
        make: impl FnOnce(Arc<Released>) -> Option<F::Cell>,
        is_over: impl FnOnce() -> Option<EndElsewhere>,
    ) -> Option<F::Cell> {
        // The lock keeps a second one from being made.
        let mut lists = lock(&self.0);
        if let Some(stand_in) = &*lock(&of.slot().stand_in) {
            return Some(stand_in.cell.clone());
        }
        let is_released = Arc::new(Released(AtomicBool::new(false)));
        let cell = make(is_released.clone())?;
        *lock(&of.slot().stand_in) = Some(StandIn { cell: cell.clone(), is_released });
        let end = is_over();
        let list = if end.is_some() { &mut lists.ended } else { &mut lists.living };
        list.push(of.clone());
        drop(lists);
        if let Some(end) = end {
            Self::end(of, end);
        }
        Some(cell)
    }

    /// A stand-in is watched here, or not any more. `tell` tells the peer, if that is news for it, and returns whether it could.
    /// Returns false if it could not.
    pub(crate) fn watch(
        &self,
        of: &F,
        is_released: &Released,
        is_watched: bool,
        tell: impl FnOnce() -> bool,
    ) -> bool {
        // The lock orders this with `tell_watches`, and with the message of another stand-in of this actor.
        let _lists = lock(&self.0);
        // Ordering: Relaxed; the lock orders.
        let is_news = !is_released.0.load(Ordering::Relaxed)
            && of.slot().is_watched.swap(is_watched, Ordering::Relaxed) != is_watched;
        !is_news || tell()
    }

    /// Tells the peer of each actor that is watched, until `tell` returns false. Returns what the last call has returned.
    pub(crate) fn tell_watches(&self, tell: impl FnMut(&F) -> bool) -> bool {
        let lists = lock(&self.0);
        lists.living.iter().map(|of| &**of).filter(|of| of.slot().is_watched()).all(tell)
    }

    /// Whether there is a stand-in that has not ended.
    pub(crate) fn has_living(&self) -> bool {
        !lock(&self.0).living.is_empty()
    }

    /// Ends the stand-ins of the actors for which `is_meant` holds.
    pub(crate) fn end_where(&self, is_meant: impl Fn(&F) -> bool, end: EndElsewhere) {
        self.take_living(is_meant).iter().for_each(|of| Self::end(of, end));
    }

    /// Ends the stand-ins of the actors for which `is_meant` holds, as if the actors had ended before; they still take messages.
    pub(crate) fn refuse_where(&self, is_meant: impl Fn(&F) -> bool) {
        let end = EndElsewhere { existed: false, node_down: false };
        self.take_living(is_meant).iter().for_each(|of| Self::end_stand_in(of, end));
    }

    /// Counts the stand-ins of the actors for which `is_meant` holds among those that have ended, and returns the actors.
    fn take_living(&self, is_meant: impl Fn(&F) -> bool) -> Vec<Arc<F>> {
        let mut lists = lock(&self.0);
        let all = std::mem::take(&mut lists.living);
        let (ended, living) = all.into_iter().partition(|of| is_meant(of));
        lists.living = living;
        lists.ended.extend_from_slice(&ended);
        ended
    }

    /// Takes the stand-ins out to which nothing refers, or all that have ended.
    pub(crate) fn release(&self, with_all_ended: bool) {
        // They are dropped without the lock.
        let mut released = Vec::new();
        {
            let mut lists = lock(&self.0);
            let Lists { living, ended } = &mut *lists;
            ended.retain(|of| {
                let taken = of.slot().take(|cell| with_all_ended || cell.is_forgotten());
                let is_taken = taken.is_some();
                released.extend(taken.map(|stand_in| (of.clone(), stand_in)));
                !is_taken
            });
            living.retain(|of| {
                // A watcher has a reference.
                let slot = of.slot();
                let taken = if slot.is_watched() { None } else { slot.take(StandInCell::is_at_rest) };
                let is_taken = taken.is_some();
                released.extend(taken.map(|stand_in| {
                    // Ordering: Relaxed; the lock orders.
                    stand_in.is_released.0.store(true, Ordering::Relaxed);
                    (of.clone(), stand_in)
                }));
                !is_taken
            });
        }
        for (_, stand_in) in &released {
            // One that has ended is told of no second end.
            stand_in.cell.end(EndElsewhere { existed: true, node_down: false });
        }
    }

    /// The actor has ended, or its node is gone.
    fn end(of: &F, end: EndElsewhere) {
        of.note_end();
        Self::end_stand_in(of, end);
    }

    fn end_stand_in(of: &F, end: EndElsewhere) {
        let cell = lock(&of.slot().stand_in).as_ref().map(|stand_in| stand_in.cell.clone());
        if let Some(cell) = cell {
            cell.end(end);
        }
    }
}
