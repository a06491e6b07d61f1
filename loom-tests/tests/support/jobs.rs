//! A job for the scheduler's models: counts its wakes, and fails the model when two threads run it.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use pointsman::loom_hooks::{Pool, Ran, Settings, Task, TaskRef, Turn, Worker};
use std::ptr::NonNull;
use std::time::Duration;

/// What a job does in a turn, told how many it has handled before.
type Act = Box<dyn Fn(usize) + Send + Sync>;

#[repr(C)]
pub struct Job {
    task: Task,
    /// Wakes not yet handled; whoever raises it from 0 has the token.
    pending: AtomicUsize,
    /// Not atomic: two runners at a time are an error of the model.
    handled: UnsafeCell<usize>,
    act: Act,
    /// Until then its turns are in vain.
    ready: Option<Event>,
}

// SAFETY: `handled` is touched by the holder of the token only, which is what the models check.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

/// Something that happens once, for others to wait for.
#[derive(Clone)]
pub struct Event(Arc<AtomicUsize>);

/// Calls for the stop of a pool after so many jobs.
#[derive(Clone)]
pub struct StopAfter {
    left: Arc<AtomicUsize>,
    pool: Arc<Pool>,
}

impl Job {
    pub fn new(act: impl Fn(usize) + Send + Sync + 'static) -> Arc<Job> {
        Job::busy_until(None, act)
    }

    /// A job that stands for a mailbox whose sender has claimed a place and not filled it.
    pub fn busy_until(ready: Option<Event>, act: impl Fn(usize) + Send + Sync + 'static) -> Arc<Job> {
        Arc::new(Job {
            task: Task::new(Job::run),
            pending: AtomicUsize::new(0),
            handled: UnsafeCell::new(0),
            act: Box::new(act),
            ready,
        })
    }

    /// Sends the job something; schedules it if it was idle.
    pub fn wake(&self, schedule: impl FnOnce(TaskRef)) {
        if self.pending.fetch_add(1, Ordering::AcqRel) == 0 {
            // The token is ours: no runner may be left, and the next one must see what we write.
            // SAFETY: as above; loom reports it if not.
            self.handled.with_mut(|handled| unsafe { *handled += 0 });
            schedule(self.token());
        }
    }

    pub fn token(&self) -> TaskRef {
        // SAFETY: only `wake` calls this after winning the token, or a model that has made the job and not
        // yet given its token away; the models keep their jobs until all threads are joined.
        unsafe { TaskRef::new(NonNull::from(self).cast()) }
    }

    /// How many wakes were handled; only when nobody runs the job.
    pub fn handled(&self) -> usize {
        // SAFETY: the models ask after joining.
        self.handled.with(|handled| unsafe { *handled })
    }

    /// # Safety
    ///
    /// `RunFn`'s, for the task of a job.
    unsafe fn run(task: NonNull<Task>, turn: &Turn) -> Ran {
        // SAFETY: `token` made the pointer from a whole job.
        let job = unsafe { task.cast::<Job>().as_ref() };
        if job.ready.as_ref().is_some_and(|ready| !ready.has_happened()) {
            return Ran::Busy;
        }
        for _ in 0..turn.throughput() {
            // SAFETY: we hold the token; loom reports it if not.
            let before = job.handled.with_mut(|handled| unsafe {
                *handled += 1;
                *handled - 1
            });
            (job.act)(before);
            if job.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
                return Ran::Idle;
            }
        }
        Ran::Requeue
    }
}

impl Event {
    pub fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(0)))
    }

    pub fn happens(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    pub fn has_happened(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// Waits; a wait for what never happens exhausts the model's branches and so fails it.
    pub fn wait(&self) {
        while !self.has_happened() {
            thread::yield_now();
        }
    }
}

impl StopAfter {
    pub fn new(count: usize, pool: &Arc<Pool>) -> Self {
        Self { left: Arc::new(AtomicUsize::new(count)), pool: pool.clone() }
    }

    pub fn count_down(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.stop();
        }
    }
}

/// A pool without search rounds, and its workers, not yet running.
pub fn pool(worker_count: usize, change: impl FnOnce(&mut Settings)) -> (Arc<Pool>, Vec<Worker>) {
    let mut settings = Settings::new("model", worker_count);
    settings.spin = Duration::ZERO;
    change(&mut settings);
    Pool::assemble(settings).expect("good settings")
}

pub fn run(workers: Vec<Worker>) -> Vec<thread::JoinHandle<()>> {
    workers.into_iter().map(|worker| thread::spawn(move || worker.run(()))).collect()
}

pub fn join(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}
