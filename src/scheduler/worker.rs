//! A worker's main loop takes the next task, runs a turn of it, and queues the task again if the task has more to do.

use crate::measure::flight::{FlightEventKind, is_recording};
use crate::measure::meter;
use crate::measure::pulse::Pulse;
use crate::scheduler::backoff::Wait;
use crate::scheduler::current;
use crate::scheduler::event_wait::Absence;
use crate::scheduler::injector::Injector;
use crate::scheduler::pool::{Pool, TurnHooks};
use crate::scheduler::sleep::{SleeperSlot, Slept};
use crate::scheduler::task::{Outcome, Task, TaskRef, Turn};
use crate::sync::deque::{self, Steal};
use crate::sync::{Arc, hint, thread};
use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

/// The number of turns after which a worker looks into the injector although it has tasks of its own, so that tasks
/// from outside are not starved. A prime, as in Go's and tokio's schedulers: no rhythm of turns hits it.
const INJECTOR_INTERVAL: u64 = 61;

/// The number of tasks in a row that may come from the LIFO slot while other tasks wait in the deque.
const LIFO_RUN_MAX: u32 = 3;

/// The longest pause between two sweeps of a search, in spin hints: about a microsecond. The shorter pauses before it
/// (half, a quarter and so on) take as long together.
const PAUSE_MAX: u32 = 32;

/// The pause, in spin hints, before a worker looks again into an injector that held several tasks the last time: less
/// than two microseconds. More tasks gather meanwhile, and more messages for each task. Without the pause, a sender
/// that is slower than the workers would schedule an actor with each message, which costs the sender twice what the
/// message does.
const GATHER: u32 = if crate::sync::EXPLORED { 0 } else { 64 };

/// The time for which a worker searches where tasks come sooner than that, if the settings do not say longer. To sleep
/// and be woken would cost as much, and an awake worker finds a task whose other finder has lost its core.
const SOON: Duration = Duration::from_micros(20);

/// The number of searches in a row, roughly, that decides whether tasks come soon.
const SOON_MAX: u32 = 4;

/// A worker that does not run yet; [`Worker::run`] turns the calling thread into it.
#[derive(Debug)]
#[must_use = "a pool needs all its workers"]
pub(crate) struct Worker {
    pub(crate) core: Core,
}

/// The private state of a worker, shared with no other thread. Code that wakes a task on the worker's own thread
/// reaches this state through a thread-local pointer.
pub(crate) struct Core {
    pool: Arc<Pool>,
    index: usize,
    place: SleeperSlot,
    deque: deque::Worker<TaskRef>,
    /// The task woken last by this worker; it runs next and cannot be stolen.
    slot: Cell<Option<TaskRef>>,
    /// The limits that the running task is told; also records whether `slot` is filled while the task runs.
    turn: Turn,
    /// Tasks taken from `slot` in a row.
    lifo_run: Cell<u32>,
    /// Whether tasks lie in `deque` for which no other worker was notified.
    untold: Cell<bool>,
    /// Whether this worker is counted as searching in the group's idle word.
    searching: Cell<bool>,
    /// Busy turns since anything else happened.
    busy_run: Cell<u32>,
    /// Whether several tasks came from the injector the last time.
    crowded: Cell<bool>,
    /// How often a task recently came within [`SOON`], 0 to [`SOON_MAX`].
    soon: Cell<u32>,
    /// How long this worker stays away from the source of events.
    absence: Cell<Absence>,
    /// Whether this worker's last sleep ended by an event.
    had_events: Cell<bool>,
    /// The turns that this worker has begun.
    turns: Cell<u64>,
    /// The number of turns after which this worker looks into the injector although it has tasks of its own.
    inject_at: Cell<u64>,
    pulse: StdArc<Pulse>,
    random: Cell<u64>,
}

/// A guard during whose life no task that this worker schedules waits for the running turn.
#[derive(Debug)]
pub(crate) struct StepAside<'a>(&'a Core);

impl Worker {
    pub(crate) fn new(pool: Arc<Pool>, index: usize, deque: deque::Worker<TaskRef>) -> Self {
        let place = pool.sleep.place(index);
        let pulse = pool.pulses[index].clone();
        let mut turn = Turn::new(pool.settings.throughput).with_deadline(pool.settings.deadline);
        if !pool.settings.spin.is_zero() && !crate::sync::EXPLORED {
            turn = turn.with_gather();
        }
        if !pool.settings.lifo {
            // For ever.
            turn.begin_detour();
        }
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
                busy_run: Cell::new(0),
                crowded: Cell::new(false),
                soon: Cell::new(0),
                absence: Cell::default(),
                had_events: Cell::new(false),
                turns: Cell::new(0),
                inject_at: Cell::new(INJECTOR_INTERVAL),
                pulse,
                // Xorshift takes any odd number; with different numbers, neighbours begin to steal at different
                // victims.
                random: Cell::new((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            },
        }
    }

    /// Runs tasks until the pool is stopped and no task is left.
    pub(crate) fn run(self, mut hooks: impl TurnHooks) {
        let core = self.core;
        core.pool.sleep.take_seat(core.index);
        core.pulse.attach();
        // SAFETY: `core` stays in its place to the end of this function, and the guard, declared after `core`, is
        // dropped before `core`.
        let _attached = unsafe { current::Attached::new(&core) };
        core.main_loop(&mut hooks);
        core.pulse.detach();
        // The hooks are dropped while the thread still counts as a worker: they may free values of a user, whose
        // destructors must not wait here.
        drop(hooks);
        debug_assert!(core.deque.is_empty(), "worker {} left tasks behind", core.index);
    }

    /// Takes the injected tasks before the worker runs; returns whether the worker will notify for them before its
    /// first turn.
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

    /// Schedules a task from this worker's own thread; `sample` is for some of the tasks, as in [`Pool::schedule`].
    #[inline]
    pub(crate) fn schedule(&self, task: TaskRef, sample: impl FnOnce(NonNull<Task>, u64)) {
        match self.turn.fills_slot() {
            true => self.fill_slot(task),
            false => self.schedule_aside(task, sample),
        }
    }

    #[inline]
    fn fill_slot(&self, task: TaskRef) {
        // An empty slot is filled without a notify: this worker runs the task next, and asks a long turn to end for it.
        self.turn.slot_was_filled();
        if let Some(task) = self.slot.replace(Some(task)) {
            self.queue(task);
        }
    }

    #[inline]
    fn queue(&self, task: TaskRef) {
        self.deque.push(task);
        self.pool.sleep.notify(self.place.group);
    }

    #[cold]
    fn schedule_aside(&self, task: TaskRef, sample: impl FnOnce(NonNull<Task>, u64)) {
        if self.turn.is_measured() {
            sample(task.pointer(), 0);
        }
        match self.turn.detours() {
            0 => self.fill_slot(task),
            _ => self.queue(task),
        }
    }

    /// Makes all tasks that wait for this worker available to the other workers, until the guard is dropped.
    pub(crate) fn disable_lifo(&self) -> StepAside<'_> {
        self.turn.begin_detour();
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
            self.run_turn(task);
            hooks.quiescent();
        }
    }

    #[inline(always)]
    fn run_turn(&self, task: TaskRef) {
        self.before_turn();
        self.turns.set(self.turns.get() + 1);
        self.pulse.begin_turn(task.address().cast());
        match task.run(&self.turn) {
            Outcome::Idle => self.busy_run.set(0),
            Outcome::Requeue(task) => {
                self.busy_run.set(0);
                self.push_untold(task);
                // A turn that was used to the full is long, and tasks from outside that came meanwhile do not wait for
                // more such turns: the next look is into the injector.
                self.inject_at.set(0);
                self.turn.look_by(0);
            }
            Outcome::Busy(task) => {
                self.push_untold(task);
                self.wait_for_sender();
            }
        }
    }

    /// Runs turns as [`main_loop`](Self::main_loop) does and notes each, until the recording ends or there is no task at
    /// hand.
    #[cold]
    #[inline(never)]
    fn run_recorded(&self, hooks: &mut impl TurnHooks) {
        // The turn that `find` has begun.
        self.pulse.note(FlightEventKind::TurnEnds);
        while is_recording() {
            let looked_up = match self.turns.get() >= self.turn.look_at() {
                true => self.look_around(),
                false => None,
            };
            let Some(task) = looked_up.or_else(|| self.next_own()).or_else(|| self.take_gathered()) else {
                return;
            };
            self.pulse.note(FlightEventKind::TurnBegins);
            self.run_turn(task);
            self.pulse.note(FlightEventKind::TurnEnds);
            hooks.quiescent();
        }
    }

    fn next_task(&self, hooks: &mut impl TurnHooks) -> Option<TaskRef> {
        let looked_up = match self.turns.get() >= self.turn.look_at() {
            true => self.look_up(hooks),
            false => None,
        };
        looked_up.or_else(|| self.next_own()).or_else(|| self.take_gathered()).or_else(|| self.find(hooks))
    }

    /// Does the work that is due after many turns: decides whether the next turn is measured, and looks for outside events
    /// and into the injector. Returns the task from there, if there is one.
    #[cold]
    fn look_up(&self, hooks: &mut impl TurnHooks) -> Option<TaskRef> {
        if is_recording() {
            self.run_recorded(hooks);
        }
        self.look_around()
    }

    /// As [`look_up`](Self::look_up), which records turns first.
    fn look_around(&self) -> Option<TaskRef> {
        let turns = self.turns.get();
        self.pulse.show_turns(turns);
        self.pulse.works();
        self.turn.look_up(turns);
        let looks_outside = turns >= self.inject_at.get();
        if looks_outside {
            self.inject_at.set(turns + INJECTOR_INTERVAL);
        }
        self.turn.look_by(self.inject_at.get());
        if !looks_outside {
            return None;
        }
        self.pool.sleep.events.look(self.index);
        let task = self.take_injected(self.place.group)?;
        // The task in the slot would wait where no other worker can steal it.
        if let Some(waiting) = self.slot.take() {
            self.push_untold(waiting);
        }
        Some(task)
    }

    /// Returns the next task that takes no other worker and no injector to find.
    #[inline]
    fn next_own(&self) -> Option<TaskRef> {
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

    /// Queues a task without a notify; this worker notifies only if it runs another task first.
    #[inline]
    fn push_untold(&self, task: TaskRef) {
        self.deque.push(task);
        self.untold.set(true);
    }

    /// Ends the search and makes up for omitted notifies before user code runs, for as long as that code likes.
    #[inline]
    fn before_turn(&self) {
        // The task of the slot either runs now or was queued.
        self.turn.slot_was_emptied();
        self.leave_search();
        if self.untold.take() && !self.deque.is_empty() {
            self.pool.sleep.notify(self.place.group);
        }
    }

    /// Counts this worker as searching, unless enough other workers search and this search is not `needed`. Returns
    /// true if the worker is counted then.
    ///
    /// A worker is never counted twice: it leaves the search once, and pushers would rely for ever on a searcher that
    /// does not exist.
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

    /// Takes the tasks that were injected into the worker's own group, after a pause if there were several the last
    /// time.
    fn take_gathered(&self) -> Option<TaskRef> {
        if self.crowded.take() && !self.pool.settings.spin.is_zero() {
            // While this worker counts as searching, pushers need not wake another worker.
            self.join_search(false);
            (0..GATHER).for_each(|_| hint::spin_loop());
        }
        self.take_injected(self.place.group)
    }

    /// Takes all tasks that were injected into a group: returns the first to run and queues the rest in the deque.
    fn take_injected(&self, group: usize) -> Option<TaskRef> {
        let injector: &Injector = &self.pool.injectors[group];
        let mut batch = injector.take();
        let first = batch.next()?;
        self.crowded.set(self.queue_rest(batch));
        Some(first)
    }

    /// Queues the rest of the injected tasks; returns whether there were any.
    #[inline(never)]
    fn queue_rest(&self, mut rest: impl Iterator<Item = TaskRef>) -> bool {
        let Some(second) = rest.next() else { return false };
        self.deque.push(second);
        // The notify comes after the first push, not the last: moving a long list takes a while, and other workers can
        // begin.
        self.pool.sleep.notify(self.place.group);
        for task in rest {
            // The woken worker may have taken the first task alone and be in a long turn, so these tasks get a notify
            // of their own.
            self.push_untold(task);
        }
        true
    }

    /// Searches and sleeps until there is a task; returns `None` when the pool stops and no task is left.
    #[cold]
    fn find(&self, hooks: &mut impl TurnHooks) -> Option<TaskRef> {
        self.pulse.stops_working();
        let task = self.find_task(hooks);
        if task.is_some() {
            self.pulse.works();
        }
        if is_recording() && task.is_some() {
            // Its end is noted when this worker looks up, which comes before the next turn.
            self.pulse.note(FlightEventKind::TurnBegins);
            self.turn.look_by(0);
        }
        task
    }

    fn find_task(&self, hooks: &mut impl TurnHooks) -> Option<TaskRef> {
        self.pulse.show_turns(self.turns.get());
        self.pulse.rest();
        let sleep = &self.pool.sleep;
        let mut idle_since = None;
        loop {
            let stopping = self.pool.is_stopping();
            if self.join_search(stopping) {
                let began = meter::is_on().then(Instant::now);
                let found = self.search(hooks, &mut idle_since);
                if let Some(began) = began {
                    self.pulse.searched_since(began);
                }
                if let Some(task) = found {
                    self.learn_from(idle_since);
                    return Some(task);
                }
            }
            if stopping {
                self.leave_search();
                return None;
            }
            self.with_absence(Absence::ends);
            self.pulse.falls_asleep();
            if is_recording() {
                self.pulse.note(FlightEventKind::FallsAsleep);
            }
            let slept = sleep.fall_asleep(
                self.place,
                self.searching.take(),
                // A destructor that runs in `rest` may schedule actors on this worker; then the next search finds them.
                || self.pool.has_work() || self.pool.is_stopping() || !hooks.rest(),
                || self.pool.is_stopping(),
            );
            self.pulse.wakes();
            if is_recording() {
                self.pulse.note(FlightEventKind::Wakes);
            }
            self.searching.set(true);
            hooks.resume();
            self.after_sleep(slept);
            // A sweep does not look at the tasks that the handled events, or a destructor in `rest`, scheduled here.
            if let Some(task) = self.slot.take().or_else(|| self.deque.pop()) {
                return Some(task);
            }
        }
    }

    /// Handles the events for which this worker has slept, if there are any.
    fn after_sleep(&self, slept: Slept) {
        let sleep = &self.pool.sleep;
        self.had_events.set(slept == Slept::HasEvents);
        if slept == Slept::Parked {
            return;
        }
        if slept == Slept::HasEvents {
            sleep.events.handle();
        }
        if self.with_absence(Absence::begins) {
            sleep.wake_for_events(self.place.group);
        }
    }

    fn with_absence<R>(&self, change: impl FnOnce(&mut Absence) -> R) -> R {
        let mut absence = self.absence.take();
        let result = change(&mut absence);
        self.absence.set(absence);
        result
    }

    /// Sweeps over the whole pool at least once, and again for as long as the settings say, or as tasks come [`SOON`].
    ///
    /// The first sweeps have ever longer pauses between them, since each sweep takes the cache line of the injector
    /// from the pushing threads. After these pauses the worker yields instead, to a thread that may share its core: to
    /// the very sender, where there are fewer cores than threads.
    fn search(&self, hooks: &mut impl TurnHooks, idle_since: &mut Option<Instant>) -> Option<TaskRef> {
        let spin = self.pool.settings.spin;
        let length = if self.soon.get() > SOON_MAX / 2 { spin.max(SOON) } else { spin };
        let mut began: Option<Instant> = None;
        let mut pause = 1_u32;
        loop {
            if let Some(task) = self.sweep() {
                return Some(task);
            }
            // A search holds nothing that running turns could not spare. The report also follows the last sweep: memory
            // that a worker without a core kept from being freed might stay while all workers sleep.
            hooks.quiescent();
            // A destructor may have scheduled actors on this worker, where no sweep looks, and no last look before a
            // sleep.
            if let Some(task) = self.slot.take().or_else(|| self.deque.pop()) {
                return Some(task);
            }
            // Where the last task came with an event, the next one presumably does, too, and no search would see it.
            if spin.is_zero() || self.had_events.get() && self.pool.sleep.events.is_free() {
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

    /// Learns from a found task whether tasks come soon. `idle_since` is when the worker ran out of tasks. The worker
    /// may have slept since; the question is whether a longer search would have found the task.
    fn learn_from(&self, idle_since: Option<Instant>) {
        let Some(since) = idle_since else { return };
        let came_soon = since.elapsed() < SOON;
        let soon = self.soon.get();
        self.soon.set(if came_soon { (soon + 1).min(SOON_MAX) } else { soon / 2 });
    }

    /// Looks at every deque and injector once, its own group first.
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
                        self.pulse.count_steal();
                        if is_recording() {
                            self.pulse.note(FlightEventKind::Steals);
                        }
                        // The rest of the batch lies in this worker's deque now.
                        self.untold.set(true);
                        return Some(task);
                    }
                    Steal::Empty => return None,
                    // Another thief was faster, so another worker has made progress.
                    Steal::Retry => hint::spin_loop(),
                }
            }
        })
    }

    /// Returns a number below `bound`, by xorshift; good enough to choose a victim.
    fn random_below(&self, bound: usize) -> usize {
        // Models have a single order of victims: the order is no race.
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

    /// Gives a sender time to write the slot that it has claimed. A thread that schedules a task meanwhile wakes this
    /// worker.
    #[cold]
    fn wait_for_sender(&self) {
        let run = self.busy_run.get();
        self.busy_run.set(run.saturating_add(1));
        // Another task is runnable on this worker and comes first.
        if self.has_slot_task() {
            return;
        }
        match Wait::after(run) {
            Wait::Spin => hint::spin_loop(),
            Wait::Yield => thread::yield_now(),
            Wait::Nap(length) => {
                // The deque holds only tasks that wait for senders, so the worker looks elsewhere before it sleeps.
                if let Some(task) = self.sweep() {
                    self.slot.set(Some(task));
                } else if self.pool.sleep.nap(self.place, length, || self.pool.has_work_beside(self.index)) {
                    self.searching.set(true);
                }
            }
        }
    }

    /// Returns whether this worker has no task but the running one.
    pub(crate) fn has_no_other_task(&self) -> bool {
        !self.has_slot_task() && self.deque.is_empty()
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
        // The other fields belong to the owning thread alone.
        f.debug_struct("Core").field("index", &self.index).field("place", &self.place).finish_non_exhaustive()
    }
}

impl Drop for StepAside<'_> {
    fn drop(&mut self) {
        self.0.turn.end_detour();
    }
}
