//! A worker's main loop: where the next task comes from, and where it goes after its turn.

use crate::scheduler::backoff::Wait;
use crate::scheduler::current;
use crate::scheduler::injector::Injector;
use crate::scheduler::pool::{Pool, TurnHooks};
use crate::scheduler::sleep::Place;
use crate::scheduler::task::{Outcome, TaskRef, Turn};
use crate::sync::deque::{self, Steal};
use crate::sync::{Arc, hint, thread};
use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

/// Every so many turns a worker looks into the injector although it has work of its own, so that tasks
/// from outside are not starved. A prime, as in Go's and tokio's schedulers: no rhythm of turns hits it.
const INJECTOR_INTERVAL: u32 = 61;

/// So many tasks in a row may come from the LIFO slot while others wait in the deque.
const LIFO_RUN_MAX: u32 = 3;

/// The longest pause between two sweeps of a search, in spin hints: about a microsecond. The pauses before, of half,
/// a quarter and so on, take as long together.
const PAUSE_MAX: u32 = 32;

/// The pause before the injector is looked at again where several tasks lay in it the last time: less than two
/// microseconds. More of them gather meanwhile, and each task more of its messages: a sender that is slower than the
/// workers would schedule an actor with each message otherwise, which costs it twice what the message does.
const GATHER: u32 = if crate::sync::EXPLORED { 0 } else { 64 };

/// So long a worker searches where tasks come sooner than that, if the settings do not say longer: to be woken would cost
/// as much, and one that is awake finds a task whose other finder has lost its core.
const SOON: Duration = Duration::from_micros(20);

/// So many searches in a row, about, decide whether tasks come soon.
const SOON_MAX: u32 = 4;

/// A worker, not yet running; [`Worker::run`] turns the calling thread into it.
#[derive(Debug)]
#[must_use = "a pool needs all its workers"]
pub struct Worker {
    pub(crate) core: Core,
}

/// A worker's private state. Shared with nobody: what is woken on the worker's own thread reaches it
/// through a thread-local pointer.
pub struct Core {
    pool: Arc<Pool>,
    index: usize,
    place: Place,
    deque: deque::Worker<TaskRef>,
    /// The task woken last by this worker; runs next, and cannot be stolen.
    slot: Cell<Option<TaskRef>>,
    /// What the running task is told; knows whether `slot` is filled while it runs.
    turn: Turn,
    /// Tasks taken from `slot` in a row.
    lifo_run: Cell<u32>,
    /// Tasks lie in `deque` of which no other worker was told.
    untold: Cell<bool>,
    /// Counted as searching in the group's idle word.
    searching: Cell<bool>,
    /// Number of [`StepAside`] guards alive: the running turn may block.
    aside: Cell<u32>,
    /// Busy turns since anything else happened.
    busy_run: Cell<u32>,
    /// Several tasks came from the injector the last time.
    crowded: Cell<bool>,
    /// How often of late a task came within [`SOON`], 0 to [`SOON_MAX`].
    soon: Cell<u32>,
    tick: Cell<u32>,
    random: Cell<u64>,
}

/// While it lives, nothing that this worker schedules waits for the running turn.
#[derive(Debug)]
pub(crate) struct StepAside<'a>(&'a Core);

impl Worker {
    pub(crate) fn new(pool: Arc<Pool>, index: usize, deque: deque::Worker<TaskRef>) -> Self {
        let place = pool.sleep.place(index);
        let turn = Turn::new(pool.settings.throughput).with_deadline(pool.settings.deadline);
        Self {
            core: Core {
                pool,
                index,
                place,
                deque,
                slot: Cell::new(None),
                turn,
                lifo_run: Cell::new(0),
                untold: Cell::new(false),
                searching: Cell::new(false),
                aside: Cell::new(0),
                busy_run: Cell::new(0),
                crowded: Cell::new(false),
                soon: Cell::new(0),
                tick: Cell::new(0),
                // Any odd number does for xorshift; neighbours begin their theft at different victims.
                random: Cell::new((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            },
        }
    }

    /// Works until the pool is stopped and nothing is left to run.
    pub fn run(self, mut hooks: impl TurnHooks) {
        let core = self.core;
        core.pool.sleep.take_seat(core.index);
        // SAFETY: `core` stays in its place to the end of this function, and the guard, declared after
        // it, is dropped before it.
        let _attached = unsafe { current::Attached::new(&core) };
        core.main_loop(&mut hooks);
        // Before the thread is a worker no more: the hooks may free what is a user's, who must not wait here.
        drop(hooks);
        debug_assert!(core.deque.is_empty(), "worker {} left tasks behind", core.index);
    }

    /// Takes what was pushed from outside before it runs; whether the others will be told of it before its first turn.
    #[cfg(all(test, not(pointsman_loom)))]
    pub(crate) fn takes_injected_and_will_tell(&self) -> bool {
        self.core.slot.set(self.core.take_injected(self.core.place.group));
        self.core.untold.get()
    }
}

impl Core {
    #[inline]
    pub(crate) fn belongs_to(&self, pool: &Pool) -> bool {
        std::ptr::eq(&*self.pool, pool)
    }

    /// Schedules a task from this worker's own thread.
    #[inline]
    pub(crate) fn schedule(&self, task: TaskRef) {
        let to_deque = if self.pool.settings.lifo && self.aside.get() == 0 {
            // An empty slot is filled without telling anyone: this worker runs it next, and asks a long turn
            // to end for it.
            self.turn.slot_was_filled();
            self.slot.replace(Some(task))
        } else {
            Some(task)
        };
        if let Some(task) = to_deque {
            self.deque.push(task);
            self.pool.sleep.notify(self.place.group);
        }
    }

    /// Makes all that waits for this worker available to others, until the guard is dropped.
    pub(crate) fn step_aside(&self) -> StepAside<'_> {
        self.aside.set(self.aside.get() + 1);
        if let Some(task) = self.slot.take() {
            self.turn.slot_was_emptied();
            self.deque.push(task);
        }
        self.untold.set(false);
        if !self.deque.is_empty() {
            self.pool.sleep.notify(self.place.group);
        }
        StepAside(self)
    }

    fn main_loop(&self, hooks: &mut impl TurnHooks) {
        while let Some(task) = self.next_task(hooks) {
            self.before_turn();
            match task.run(&self.turn) {
                Outcome::Idle => self.busy_run.set(0),
                Outcome::Requeue(task) => {
                    self.busy_run.set(0);
                    self.push_untold(task);
                    // It used its turn to the full, which is long: who came from outside meanwhile does not wait for
                    // more of those.
                    self.tick.set(INJECTOR_INTERVAL - 1);
                }
                Outcome::Busy(task) => {
                    self.push_untold(task);
                    self.wait_for_sender();
                }
            }
            hooks.quiescent();
        }
    }

    fn next_task(&self, hooks: &mut impl TurnHooks) -> Option<TaskRef> {
        self.next_own().or_else(|| self.take_gathered()).or_else(|| self.find(hooks))
    }

    /// The next task that needs no other worker, nor, mostly, the injector.
    #[inline]
    fn next_own(&self) -> Option<TaskRef> {
        let tick = self.tick.get().wrapping_add(1);
        self.tick.set(tick);
        if tick % INJECTOR_INTERVAL == 0 {
            if let Some(task) = self.take_injected(self.place.group) {
                // The slot's task would wait where nobody can help it.
                if let Some(waiting) = self.slot.take() {
                    self.push_untold(waiting);
                }
                return Some(task);
            }
        }
        if let Some(task) = self.slot.take() {
            let run = self.lifo_run.get();
            if run < LIFO_RUN_MAX || self.deque.is_empty() {
                self.lifo_run.set(run.saturating_add(1));
                return Some(task);
            }
            self.push_untold(task);
        }
        self.lifo_run.set(0);
        self.deque.pop()
    }

    /// Queues a task of which the others are told only if this worker turns to something else first.
    #[inline]
    fn push_untold(&self, task: TaskRef) {
        self.deque.push(task);
        self.untold.set(true);
    }

    /// Pays what is owed to the others before user code runs, for as long as it likes.
    #[inline]
    fn before_turn(&self) {
        // Whatever lay in the slot is what runs now, or was queued.
        self.turn.slot_was_emptied();
        self.leave_search();
        if self.untold.take() && !self.deque.is_empty() {
            self.pool.sleep.notify(self.place.group);
        }
    }

    /// Counts this worker as searching, unless enough others are and it need not; true if it is counted then.
    ///
    /// Never twice: it leaves once, and pushers would rely for ever on a searcher that there is not.
    fn join_search(&self, needed: bool) -> bool {
        if !self.searching.get() && (needed || self.pool.sleep.may_search(self.place.group)) {
            self.pool.sleep.begin_search(self.place.group);
            self.searching.set(true);
        }
        self.searching.get()
    }

    #[inline]
    fn leave_search(&self) {
        if self.searching.take() {
            self.pool.sleep.end_search(self.place.group, || self.pool.has_work());
        }
    }

    /// Takes what was pushed from outside into the worker's own group, after a pause if there is a crowd.
    fn take_gathered(&self) -> Option<TaskRef> {
        if self.crowded.take() && !self.pool.settings.spin.is_zero() {
            // Those who push meanwhile need wake nobody.
            self.join_search(false);
            (0..GATHER).for_each(|_| hint::spin_loop());
        }
        self.take_injected(self.place.group)
    }

    /// Takes all that was pushed from outside into a group: the first to run, the rest to the deque.
    fn take_injected(&self, group: usize) -> Option<TaskRef> {
        let injector: &Injector = &self.pool.injectors[group];
        let mut batch = injector.take();
        let first = batch.next()?;
        self.crowded.set(self.queue_rest(batch));
        Some(first)
    }

    /// Queues the rest of what was pushed from outside; whether there was any.
    #[inline(never)]
    fn queue_rest(&self, mut rest: impl Iterator<Item = TaskRef>) -> bool {
        let Some(second) = rest.next() else { return false };
        self.deque.push(second);
        // After the first push, not the last: moving a long list takes a while, and others can begin.
        self.pool.sleep.notify(self.place.group);
        for task in rest {
            // Whoever was woken may have taken the first one alone, and be in a long turn.
            self.push_untold(task);
        }
        true
    }

    /// Searches and sleeps until there is a task; `None` when the pool stops and nothing is left.
    #[cold]
    fn find(&self, hooks: &mut impl TurnHooks) -> Option<TaskRef> {
        let sleep = &self.pool.sleep;
        let mut idle_since = None;
        loop {
            let stopping = self.pool.is_stopping();
            if self.join_search(stopping) {
                if let Some(task) = self.search(hooks, &mut idle_since) {
                    self.learn_from(idle_since);
                    return Some(task);
                }
            }
            if stopping {
                self.leave_search();
                return None;
            }
            sleep.fall_asleep(
                self.place,
                self.searching.take(),
                // What is freed at the last moment may have scheduled actors here, for which the next search looks.
                || self.pool.has_work() || self.pool.is_stopping() || !hooks.rest(),
                || self.pool.is_stopping(),
            );
            self.searching.set(true);
            hooks.resume();
        }
    }

    /// Sweeps over the whole pool at least once, and again for as long as the settings say, or as tasks come [`SOON`].
    ///
    /// Ever longer pauses come between the first sweeps, for each sweep takes the injector's line from whoever pushes.
    /// Then it yields, to whoever may share the core: the very sender, where there are fewer cores than threads.
    fn search(&self, hooks: &mut impl TurnHooks, idle_since: &mut Option<Instant>) -> Option<TaskRef> {
        let spin = self.pool.settings.spin;
        let length = if self.soon.get() > SOON_MAX / 2 { spin.max(SOON) } else { spin };
        let mut began: Option<Instant> = None;
        let mut pause = 1_u32;
        loop {
            if let Some(task) = self.sweep() {
                return Some(task);
            }
            // A search holds nothing that the running turns could not spare. Behind the last sweep, too: what a worker that
            // had lost its core kept from being freed nobody might free while all sleep.
            hooks.quiescent();
            // What was freed may have scheduled actors here, where no sweep looks and no last look before a sleep.
            if let Some(task) = self.slot.take().or_else(|| self.deque.pop()) {
                return Some(task);
            }
            if spin.is_zero() {
                return None;
            }
            let now = Instant::now();
            idle_since.get_or_insert(now);
            if now - *began.get_or_insert(now) >= length || self.pool.is_stopping() {
                return None;
            }
            if pause <= PAUSE_MAX {
                (0..pause).for_each(|_| hint::spin_loop());
                pause *= 2;
            } else {
                thread::yield_now();
            }
        }
    }

    /// A task was found, by a worker that had nothing to do since then: asleep in between, perhaps, but would a longer
    /// search have found it?
    fn learn_from(&self, idle_since: Option<Instant>) {
        let Some(since) = idle_since else { return };
        let came_soon = since.elapsed() < SOON;
        let soon = self.soon.get();
        self.soon.set(if came_soon { (soon + 1).min(SOON_MAX) } else { soon / 2 });
    }

    /// Looks at every deque and injector once, own group first.
    fn sweep(&self) -> Option<TaskRef> {
        let group_count = self.pool.sleep.group_count();
        let own = self.place.group;
        (own..group_count)
            .chain(0..own)
            .find_map(|group| self.steal_from(group).or_else(|| self.take_injected(group)))
    }

    fn steal_from(&self, group: usize) -> Option<TaskRef> {
        let members = self.pool.sleep.members(group);
        let start = self.random_below(members.len());
        let victims = members.clone().skip(start).chain(members.take(start));
        victims.filter(|&victim| victim != self.index).find_map(|victim| {
            loop {
                match self.pool.stealers[victim].steal_batch_and_pop(&self.deque) {
                    Steal::Success(task) => {
                        // The rest of the batch lies in our deque now.
                        self.untold.set(true);
                        return Some(task);
                    }
                    Steal::Empty => return None,
                    // Another thief was faster: somebody made progress.
                    Steal::Retry => hint::spin_loop(),
                }
            }
        })
    }

    /// A number below `bound`, by xorshift; good enough to choose a victim.
    fn random_below(&self, bound: usize) -> usize {
        // One victim order in models: which one comes first is no race.
        if cfg!(pointsman_loom) {
            return 0;
        }
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        (random % bound as u64) as usize
    }

    /// Gives a sender that has claimed a place and not yet filled it the time to do so.
    /// Whoever schedules meanwhile wakes this thread.
    #[cold]
    fn wait_for_sender(&self) {
        let run = self.busy_run.get();
        self.busy_run.set(run.saturating_add(1));
        // Something else is runnable here: do that first.
        if self.has_slot_task() {
            return;
        }
        match Wait::after(run) {
            Wait::Spin => hint::spin_loop(),
            Wait::Yield => thread::yield_now(),
            Wait::Nap(length) => {
                // The deque holds nothing but such tasks, so look elsewhere before sleeping on them.
                if let Some(task) = self.sweep() {
                    self.slot.set(Some(task));
                } else if self.pool.sleep.nap(self.place, length, || self.pool.has_work_beside(self.index)) {
                    self.searching.set(true);
                }
            }
        }
    }

    fn has_slot_task(&self) -> bool {
        let task = self.slot.take();
        let has = task.is_some();
        self.slot.set(task);
        has
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest is the owner's alone.
        f.debug_struct("Core").field("index", &self.index).field("place", &self.place).finish_non_exhaustive()
    }
}

impl Drop for StepAside<'_> {
    fn drop(&mut self) {
        self.0.aside.set(self.0.aside.get() - 1);
    }
}
