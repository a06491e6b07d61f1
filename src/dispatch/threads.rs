//! Threads that come and go, and that are all joined in the end.

use crate::scheduler::JoinError;
use crate::sync::thread::{self, JoinHandle, Thread, ThreadId};
use crate::sync::{Arc, Mutex, lock, per_thread, thread_has_ended};
use std::cell::Cell;
use std::io;

/// The threads of one dispatcher.
#[derive(Debug)]
pub struct Threads {
    name: String,
    roster: Arc<Mutex<Roster>>,
}

#[derive(Debug, Default)]
struct Roster {
    /// How many were ever started; numbers their names.
    started_count: usize,
    handles: Vec<JoinHandle<()>>,
    /// Threads about to end, which are joined by whoever comes next.
    ended: Vec<ThreadId>,
}

/// Notes the end of a thread, however it comes.
struct NoteEnd(Arc<Mutex<Roster>>);

per_thread! {
    /// Whether the thread has noted its end: what it still runs are destructors of thread-locals.
    static ENDS: Cell<bool> = Cell::new(false);
}

impl Threads {
    pub fn new(name: &str) -> Self {
        // A zero byte in a thread's name would panic.
        Self { name: name.replace('\0', ""), roster: Arc::new(Mutex::new(Roster::default())) }
    }

    /// Starts a thread and joins those that have ended since the last start. The destructors of a thread that has
    /// noted its end may send, and so come here: it leaves the joining to others, for it may be one of those.
    pub fn spawn(&self, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let own_roster = self.roster.clone();
        let (thread, ended) = {
            let mut roster = lock(&self.roster);
            let name = format!("{}-{}", self.name, roster.started_count);
            let handle = thread::Builder::new().name(name).spawn(move || {
                // Made here: a thread that is refused has no end, and its closure is dropped under the lock.
                let _at_end = NoteEnd(own_roster);
                body();
            })?;
            let thread = handle.thread().clone();
            roster.started_count += 1;
            roster.handles.push(handle);
            let ends = ENDS.try_with(Cell::get).unwrap_or(true);
            (thread, if ends { Vec::new() } else { roster.take_ended() })
        };
        ended.into_iter().for_each(join);
        Ok(thread)
    }

    /// Unparks each of them.
    pub fn unpark_all(&self) {
        lock(&self.roster).handles.iter().for_each(|handle| handle.thread().unpark());
    }

    /// Whether all have ended.
    pub fn have_ended(&self) -> bool {
        lock(&self.roster).handles.iter().all(thread_has_ended)
    }

    /// Whether the calling thread is one of them.
    pub fn have_current(&self) -> bool {
        let me = thread::current().id();
        lock(&self.roster).handles.iter().any(|handle| handle.thread().id() == me)
    }

    /// Joins all, those included that are started meanwhile by the others.
    pub fn join_all(&self) -> Result<(), JoinError> {
        if self.have_current() {
            return Err(JoinError::OwnThread);
        }
        loop {
            let Some(handle) = lock(&self.roster).handles.pop() else { return Ok(()) };
            join(handle);
        }
    }
}

impl Roster {
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

impl Drop for NoteEnd {
    fn drop(&mut self) {
        let _ = ENDS.try_with(|ends| ends.set(true));
        lock(&self.0).ended.push(thread::current().id());
    }
}

/// Threads of ours don't unwind; should one, its message is on stderr already and the others are joined
/// all the same.
fn join(handle: JoinHandle<()>) {
    let _ = handle.join();
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::Threads;
    use crate::sync::{Arc, lock, thread};
    use std::cell::RefCell;
    use std::sync::mpsc::{Sender, channel};

    /// One that is not joined keeps its stack.
    #[test]
    fn a_thread_that_has_ended_is_joined_by_the_next_start() {
        let threads = Threads::new("comes and goes");
        for _ in 0..3 {
            threads.spawn(|| ()).expect("a thread");
            while lock(&threads.roster).ended.is_empty() {
                thread::yield_now();
            }
            assert_eq!(lock(&threads.roster).handles.len(), 1);
        }
        threads.join_all().expect("called by none of them");
    }

    /// As it does whose thread-locals send a message to an actor for which there is no thread.
    #[test]
    fn a_thread_whose_thread_locals_start_another_does_not_wait_for_itself() {
        struct Late(Arc<Threads>, Sender<()>);
        impl Drop for Late {
            fn drop(&mut self) {
                let ran = self.1.clone();
                self.0.spawn(move || ran.send(()).expect("the test listens")).expect("a thread");
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let threads = Arc::new(Threads::new("starts at its end"));
        let (ran, runs) = channel();
        let late = Late(threads.clone(), ran);
        let body = move || LATE.with(|slot| *slot.borrow_mut() = Some(late));
        threads.spawn(body).expect("a thread");
        runs.recv().expect("the second thread runs");
        threads.join_all().expect("called by none of them");
    }
}
