//! A pool runs work-stealing workers.

use crate::measure::pulse::Pulse;
use crate::scheduler::current::is_worker_of;
use crate::scheduler::error::{JoinError, StartError};
use crate::scheduler::event_wait::EventWait;
use crate::scheduler::task::{Task, TaskRef};
use crate::scheduler::wake_sample::sample_outside;
use crate::scheduler::worker::Worker;
use crate::scheduler::{affinity, counters, current, launch};

use crate::scheduler::injector::Injector;
use crate::scheduler::launch::Launch;
use crate::scheduler::sleep::Sleep;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::deque::{self, Stealer};
use crate::sync::thread::JoinHandle;
use crate::sync::{Arc, CachePadded, Mutex, lock, thread_has_ended, thread_index};
use crate::util::reclaim::OnlineReader;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// Most workers in one pool.
pub(crate) const WORKER_COUNT_MAX: usize = 1024;

/// The settings of a pool of work-stealing workers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Name of the threads, followed by their number.
    pub name: String,
    /// Number of workers, `1..=`[`WORKER_COUNT_MAX`].
    pub thread_count: usize,
    /// One core for each worker, in order; the same core may be named more than once.
    pub pin_to: Option<Vec<usize>>,
    /// Messages per turn, at least 1.
    pub throughput: u32,
    /// How long a turn may go on handling messages; `None`: until its messages or its throughput are used up.
    pub deadline: Option<Duration>,
    /// How long a worker without work searches before it sleeps; zero: a single sweep over all queues.
    pub spin: Duration,
    /// Whether the task woken last on a worker runs next there.
    pub lifo: bool,
    /// Workers that share an idle word and an injector, `1..=32`; they steal from each other first.
    pub group_size: usize,
}

/// The hooks by which a worker reports to memory reclamation between its turns.
///
/// A worker is online from its start, except in `blocking`, during which its thread rests
/// ([`reclaim::go_offline_here`](crate::util::reclaim::go_offline_here)). The hooks are built and used on the worker's own thread
/// only.
pub(crate) trait TurnHooks {
    /// Reports, between two turns, that the thread holds nothing that it read before.
    fn quiescent(&mut self);
    /// Reports that the thread is about to sleep and reads nothing until `resume`. Returns false if the thread must not
    /// sleep yet, because this call may have woken tasks on this worker.
    fn rest(&mut self) -> bool;
    /// Reports that the thread is awake again, or that it did not sleep after all.
    fn resume(&mut self);
}

/// A running pool of workers that steal from each other.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) settings: Settings,
    /// One per group.
    pub(crate) injectors: Box<[CachePadded<Injector>]>,
    pub(crate) sleep: Sleep,
    /// One per worker.
    pub(crate) stealers: Box<[Stealer<TaskRef>]>,
    /// One per worker.
    pub(crate) pulses: Box<[StdArc<Pulse>]>,
    /// Set once, by `stop`.
    stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A worker is quiescent between two turns, and offline while it sleeps.
impl TurnHooks for OnlineReader<'_> {
    fn quiescent(&mut self) {
        if OnlineReader::quiescent(self) {
            self.collect();
        }
    }

    fn rest(&mut self) -> bool {
        let rests = OnlineReader::rest(self);
        if !rests {
            self.collect();
        }
        rests
    }

    fn resume(&mut self) {
        OnlineReader::resume(self);
    }
}

impl TurnHooks for () {
    fn quiescent(&mut self) {}
    fn rest(&mut self) -> bool {
        true
    }
    fn resume(&mut self) {}
}

impl Settings {
    /// Returns the default settings for `thread_count` workers.
    pub(crate) fn new(name: impl Into<String>, thread_count: usize) -> Self {
        Self {
            name: name.into(),
            thread_count,
            pin_to: None,
            throughput: 64,
            deadline: None,
            spin: Duration::from_micros(5),
            lifo: true,
            group_size: counters::SEAT_COUNT_MAX,
        }
    }

    fn check(&self) -> Result<(), StartError> {
        let thread_count = self.thread_count;
        if !(1..=WORKER_COUNT_MAX).contains(&thread_count) {
            return Err(StartError::ThreadCount { requested: thread_count, max: WORKER_COUNT_MAX });
        }
        if self.throughput == 0 {
            return Err(StartError::ZeroThroughput);
        }
        match &self.pin_to {
            Some(cores) if cores.len() != thread_count => {
                Err(StartError::PinCount { thread_count, core_count: cores.len() })
            }
            _ => Ok(()),
        }
    }
}

impl Pool {
    /// Starts the workers and returns when each of them is in its place, pinned.
    ///
    /// `hooks` is called once on each worker's thread.
    ///
    /// # Errors
    ///
    /// If the settings are out of bounds, or a thread or a core cannot be had. The error is returned after
    /// every worker has reported, and all threads have ended by then.
    pub(crate) fn start<H: TurnHooks>(
        settings: Settings,
        hooks: impl Fn() -> H + Send + Sync + 'static,
    ) -> Result<Arc<Pool>, StartError> {
        let (pool, workers) = Pool::assemble(settings)?;
        let settings = &pool.settings;
        let available = settings.pin_to.as_ref().map(|_| affinity::available_cores());
        let launch = Launch::new();
        // The `Arc` of std, since the count only keeps the factory alive.
        let hooks = std::sync::Arc::new(hooks);
        let mut threads = Vec::with_capacity(workers.len());
        let mut refused = None;
        for (index, worker) in workers.into_iter().enumerate() {
            let core = settings.pin_to.as_ref().map(|cores| cores[index]);
            let (launch, hooks) = (launch.clone(), hooks.clone());
            let body = move || {
                let fault = match core {
                    Some(core) if !affinity::pin_current(core) => Some(core),
                    _ => None,
                };
                if launch.report(fault) {
                    worker.run(hooks());
                }
            };
            match launch::spawn(&settings.name, index, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    refused = Some(StartError::Thread(error));
                    break;
                }
            }
        }
        let fault = launch.wait_for_all(threads.len());
        let error = refused.or_else(|| {
            fault.map(|core| StartError::Core { core, available: available.unwrap_or_default() })
        });
        launch.decide(error.is_none());
        match error {
            None => {
                *lock(&pool.threads) = threads;
                Ok(pool)
            }
            Some(error) => {
                threads.into_iter().for_each(launch::join);
                Err(error)
            }
        }
    }

    /// Builds a pool and its workers, each to be run on a thread of its own by the caller.
    ///
    /// # Errors
    ///
    /// If the settings are out of bounds.
    pub(crate) fn assemble(settings: Settings) -> Result<(Arc<Pool>, Vec<Worker>), StartError> {
        settings.check()?;
        let deques: Vec<_> = (0..settings.thread_count).map(|_| deque::Worker::new_fifo()).collect();
        let sleep = Sleep::new(settings.thread_count, settings.group_size);
        let pool = Arc::new(Pool {
            injectors: (0..sleep.group_count()).map(|_| CachePadded::new(Injector::new())).collect(),
            sleep,
            stealers: deques.iter().map(deque::Worker::stealer).collect(),
            pulses: deques.iter().map(|_| Pulse::new()).collect(),
            stopping: AtomicBool::new(false),
            threads: Mutex::new(Vec::new()),
            settings,
        });
        let workers = deques.into_iter().enumerate();
        let workers = workers.map(|(index, deque)| Worker::new(pool.clone(), index, deque)).collect();
        Ok((pool, workers))
    }

    /// Hands a task to the pool, from any thread.
    ///
    /// On a worker of this pool, the task goes to the worker's LIFO slot, and the task that was in the slot goes to the
    /// worker's deque. On any other thread, the task goes to an injector.
    ///
    /// Some of the tasks are given to `sample` before, with the number of such tasks that the thread has met: those
    /// that are scheduled in a turn which is [measured](crate::scheduler::task::Turn::is_measured), and all that come from elsewhere while
    /// anything is measured.
    #[inline]
    pub(crate) fn schedule(&self, task: TaskRef, sample: impl FnOnce(NonNull<Task>, u64)) {
        current::with_worker(|worker| match worker {
            Some(worker) if worker.belongs_to(self) => worker.schedule(task, sample),
            _ => {
                sample_outside(task.pointer(), sample);
                self.inject(task);
            }
        });
    }

    /// Tells the workers to end once they find nothing more to run. Never blocks.
    ///
    /// The caller makes sure that no thread outside the pool schedules any more: a task that comes after the workers
    /// have ended would stay in its queue. Running turns may still schedule, and the pool runs those tasks to their
    /// end.
    pub(crate) fn stop(&self) {
        // Ordering: Relaxed; the fence in `unpark_all` orders it before the look at the handles, and
        // nothing is read on the strength of it.
        self.stopping.store(true, Ordering::Relaxed);
        self.sleep.unpark_all();
    }

    /// Waits until every worker has ended, after [`Pool::stop`].
    ///
    /// # Errors
    ///
    /// On a worker of this very pool, which would wait for itself; nothing has been done then.
    pub(crate) fn join(&self) -> Result<(), JoinError> {
        if is_worker_of(self) {
            return Err(JoinError::OwnThread);
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        threads.into_iter().for_each(launch::join);
        debug_assert!(!self.has_work(), "tasks were scheduled after the workers had ended");
        debug_assert!(self.sleep.is_deserted(), "a worker that has ended still counts: {:?}", self.sleep);
        Ok(())
    }

    /// Returns whether every worker has ended, after [`Pool::stop`].
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.threads).iter().all(thread_has_ended)
    }

    #[cold]
    fn inject(&self, task: TaskRef) {
        let group = match self.injectors.len() {
            1 => 0,
            // Threads outside the pool spread over the groups.
            group_count => thread_index::current().unwrap_or(0) % group_count,
        };
        if self.injectors[group].push(task) {
            // A running searcher would have taken the waiting tasks before this push. So the searchers may be without a
            // core.
            self.sleep.notify_of_waiting(group);
        } else {
            self.sleep.notify(group);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Relaxed; a worker about to sleep has a fence before this, and the other callers look again.
        self.stopping.load(Ordering::Relaxed)
    }

    /// Returns the place where idle workers wait for outside events.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "only sockets are a source of events"))]
    pub(crate) fn event_wait(&self) -> &EventWait {
        &self.sleep.events
    }

    /// Returns whether a worker sleeps, or is about to.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "only sockets are a source of events"))]
    pub(crate) fn has_sleeper(&self) -> bool {
        self.sleep.has_sleeper()
    }

    /// Returns whether any queue that a worker can take from holds a task.
    pub(crate) fn has_work(&self) -> bool {
        self.has_injected() || self.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    /// Returns the same for a worker that knows the content of its own deque: looks at all queues but that deque.
    pub(crate) fn has_work_beside(&self, worker: usize) -> bool {
        let mut others = self.stealers.iter().enumerate().filter(|&(index, _)| index != worker);
        self.has_injected() || others.any(|(_, stealer)| !stealer.is_empty())
    }

    fn has_injected(&self) -> bool {
        self.injectors.iter().any(|injector| !injector.is_empty())
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests;
