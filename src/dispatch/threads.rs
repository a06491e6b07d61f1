//! Threads of a dispatcher start and end at any time, and all of them are joined in the end.

use crate::measure::pulse::Pulse;
use crate::scheduler::affinity::unpinned;
use crate::scheduler::error::JoinError;
use crate::sync::thread::{self, JoinHandle, Thread, ThreadId};
use crate::sync::{Arc, Mutex, lock, per_thread, thread_has_ended};
use std::cell::Cell;
use std::io;
use std::sync::Arc as StdArc;

/// The threads of one dispatcher.
#[derive(Debug)]
pub(crate) struct Threads {
    name: String,
    thread_table: Arc<Mutex<ThreadTable>>,
}

#[derive(Debug, Default)]
struct ThreadTable {
    /// The number of threads ever started; numbers their names.
    started_count: usize,
    handles: Vec<JoinHandle<()>>,
    /// Threads about to end, which are joined by the next one that ends.
    ended: Vec<ThreadId>,
    /// Of the threads that have not ended.
    pulses: Vec<StdArc<Pulse>>,
}

/// Notes the end of a thread, also when the thread unwinds, and joins the threads that have ended before.
///
/// A thread that starts another must not join ended threads: destructors of their thread-locals may still run, and may
/// wait for the very actor whose turn the starting thread runs. So only two kinds of threads wait for an ended thread:
/// a thread that ends later, and the thread that joins all.
struct ThreadEndGuard(Arc<Mutex<ThreadTable>>, StdArc<Pulse>);

per_thread! {
    /// The thread table in which the thread has noted its end, if it has: after that, the thread runs only destructors of
    /// thread-locals.
    static ENDS_IN: Cell<*const Mutex<ThreadTable>> = Cell::new(std::ptr::null());
}

impl Threads {
    pub(crate) fn new(name: &str) -> Self {
        // A zero byte in a thread's name would panic.
        Self { name: name.replace('\0', ""), thread_table: Arc::new(Mutex::new(ThreadTable::default())) }
    }

    /// Starts a thread, and waits for none.
    pub(crate) fn spawn(&self, body: impl FnOnce(&StdArc<Pulse>) + Send + 'static) -> io::Result<Thread> {
        let own_roster = self.thread_table.clone();
        let pulse = Pulse::new();
        let own_pulse = pulse.clone();
        let mut thread_table = lock(&self.thread_table);
        let name = format!("{}-{}", self.name, thread_table.started_count);
        let body = move || {
            // The guard is made here: a thread that is refused has no end, and its closure is dropped under the lock.
            let at_end = ThreadEndGuard(own_roster, own_pulse);
            at_end.1.attach();
            body(&at_end.1);
        };
        let handle = thread::Builder::new().name(name).spawn(unpinned(body))?;
        let thread = handle.thread().clone();
        thread_table.started_count += 1;
        thread_table.handles.push(handle);
        thread_table.pulses.push(pulse);
        Ok(thread)
    }

    /// The pulses of the threads that have not ended.
    pub(crate) fn pulses(&self) -> Vec<StdArc<Pulse>> {
        lock(&self.thread_table).pulses.clone()
    }

    /// Unparks each of the threads.
    pub(crate) fn unpark_all(&self) {
        lock(&self.thread_table).handles.iter().for_each(|handle| handle.thread().unpark());
    }

    /// Returns whether all threads have ended.
    pub(crate) fn have_ended(&self) -> bool {
        lock(&self.thread_table).handles.iter().all(thread_has_ended)
    }

    /// Returns whether the calling thread is one of these threads.
    pub(crate) fn have_current(&self) -> bool {
        let me = thread::current().id();
        lock(&self.thread_table).handles.iter().any(|handle| handle.thread().id() == me)
    }

    /// Joins all threads, including threads that other threads start meanwhile. A thread that has noted its end counts
    /// as one of these threads even if it is in no list, since another thread joins it then.
    pub(crate) fn join_all(&self) -> Result<(), JoinError> {
        let ends_here =
            ENDS_IN.try_with(|ends| ends.get() == Arc::as_ptr(&self.thread_table)).unwrap_or(true);
        if ends_here || self.have_current() {
            return Err(JoinError::OwnThread);
        }
        loop {
            let Some(handle) = lock(&self.thread_table).handles.pop() else { return Ok(()) };
            join(handle);
        }
    }
}

impl ThreadTable {
    fn take_ended(&mut self) -> Vec<JoinHandle<()>> {
        if self.ended.is_empty() {
            return Vec::new();
        }
        let ended = std::mem::take(&mut self.ended);
        let (ended, living) = std::mem::take(&mut self.handles)
            .into_iter()
            .partition(|handle| ended.contains(&handle.thread().id()));
        self.handles = living;
        ended
    }
}

impl Drop for ThreadEndGuard {
    fn drop(&mut self) {
        let _ = ENDS_IN.try_with(|ends| ends.set(Arc::as_ptr(&self.0)));
        let ended = {
            self.1.detach();
            let mut thread_table = lock(&self.0);
            thread_table.pulses.retain(|pulse| !StdArc::ptr_eq(pulse, &self.1));
            let ended = thread_table.take_ended();
            thread_table.ended.push(thread::current().id());
            ended
        };
        ended.into_iter().for_each(join);
    }
}

/// Joins a thread of the engine. Such a thread does not unwind; if one does, its message is on stderr already, and the
/// other threads are joined all the same.
fn join(handle: JoinHandle<()>) {
    let _ = handle.join();
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Pulse, StdArc, Threads};
    use crate::sync::{Arc, lock, thread};
    use std::cell::RefCell;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A thread that is not joined keeps its stack.
    #[test]
    fn a_thread_that_has_ended_is_joined_by_the_next_that_ends() {
        let threads = Threads::new("comes and goes");
        for _ in 0..3 {
            let id = threads.spawn(|_| ()).expect("a thread").id();
            while !lock(&threads.thread_table).ended.contains(&id) {
                thread::yield_now();
            }
            assert_eq!(lock(&threads.thread_table).handles.len(), 1);
        }
        threads.join_all().expect("called by none of them");
    }

    /// For example, destructors of the thread-locals ask the actor that starts the next thread.
    #[test]
    fn a_start_does_not_wait_for_the_thread_locals_of_a_thread_that_has_ended() {
        struct Late(Receiver<()>);
        impl Drop for Late {
            fn drop(&mut self) {
                let _ = self.0.recv();
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let threads = Threads::new("ends slowly");
        let (release, waits) = channel();
        let late = Late(waits);
        threads.spawn(move |_| LATE.with(|slot| *slot.borrow_mut() = Some(late))).expect("a thread");
        while lock(&threads.thread_table).ended.is_empty() {
            thread::yield_now();
        }
        threads.spawn(|_| ()).expect("a thread");
        drop(release);
        threads.join_all().expect("called by none of them");
    }

    /// For example, destructors of the thread-locals send a message to an actor for which there is no thread.
    #[test]
    fn a_thread_whose_thread_locals_start_another_does_not_wait_for_itself() {
        struct Late(Arc<Threads>, Sender<()>);
        impl Drop for Late {
            fn drop(&mut self) {
                let ran = self.1.clone();
                self.0.spawn(move |_| ran.send(()).expect("the test listens")).expect("a thread");
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let threads = Arc::new(Threads::new("starts at its end"));
        let (ran, runs) = channel();
        let late = Late(threads.clone(), ran);
        let body = move |_: &StdArc<Pulse>| LATE.with(|slot| *slot.borrow_mut() = Some(late));
        threads.spawn(body).expect("a thread");
        runs.recv().expect("the second thread runs");
        threads.join_all().expect("called by none of them");
    }
}
