//! The resolver looks host names up on threads of its own, since a look-up may take seconds.
//!
//! One lock guards the queue and the counts. A thread starts with a look-up that finds none idle, up to
//! [`THREADS_MAX`], and ends when none has come for [`IDLE`]. A thread within a look-up cannot be interrupted: a system
//! that ends waits for it as long as its owner allows, and then leaves the thread to end by itself.

use crate::dispatch::threads::Threads;
use crate::sync::{Condvar, Mutex, lock};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

/// At most so many names are looked up at a time; the others wait.
const THREADS_MAX: usize = 4;
/// A thread without work ends after this.
const IDLE: Duration = Duration::from_secs(10);

/// A look-up, with the use of its result. It is given an error if no thread can be had for it.
type Job = Box<dyn FnOnce(Option<io::Error>) + Send>;

/// Looks a `host:port` up.
pub(crate) type LookUp = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// Asks the operating system for the addresses of a `host:port`.
pub(crate) fn look_up(host_and_port: &str) -> io::Result<Vec<SocketAddr>> {
    host_and_port.to_socket_addrs().map(Iterator::collect)
}

/// The threads that look names up.
pub(crate) struct Resolver(StdArc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified for a job, for the end, and when a thread ends.
    changed: Condvar,
    threads: Threads,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// The threads that wait for a job.
    idle: usize,
    alive: usize,
    stopped: bool,
}

impl Resolver {
    /// Makes a resolver without a thread.
    pub(crate) fn new(thread_name: &str) -> Self {
        let (state, changed, threads) = (Mutex::default(), Condvar::new(), Threads::new(thread_name));
        Self(StdArc::new(Shared { state, changed, threads }))
    }

    /// Runs a job on a thread of the resolver.
    ///
    /// # Errors
    ///
    /// The system has ended. The job is dropped.
    pub(crate) fn run(&self, job: Job) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        if state.stopped {
            return Err(io::Error::other("the system is shut down: it looks no more names up"));
        }
        state.queue.push_back(job);
        if state.queue.len() <= state.idle || state.alive == THREADS_MAX {
            drop(state);
            self.0.changed.notify_all();
            return Ok(());
        }
        state.alive += 1;
        drop(state);
        let shared = self.0.clone();
        let Err(error) = self.0.threads.spawn(move |_| shared.serve()) else { return Ok(()) };
        let mut state = lock(&self.0.state);
        state.alive -= 1;
        // A living thread comes to the jobs, too.
        let left = if state.alive > 0 { VecDeque::new() } else { std::mem::take(&mut state.queue) };
        drop(state);
        // Also the jobs of callers whose threads were refused at the same time.
        left.into_iter().for_each(|job| job(Some(io::Error::new(error.kind(), error.to_string()))));
        Ok(())
    }

    /// Ends the threads that are idle, and forgets the waiting look-ups.
    pub(crate) fn release(&self) {
        let jobs = {
            let mut state = lock(&self.0.state);
            state.stopped = true;
            std::mem::take(&mut state.queue)
        };
        self.0.changed.notify_all();
        // They hold references to actors.
        drop(jobs);
    }

    /// As [`release`](Self::release), and joins the threads if they have ended by `until`.
    pub(crate) fn stop(&self, until: Option<Instant>) {
        self.release();
        let mut state = lock(&self.0.state);
        while state.alive > 0 {
            let Some(until) = until else {
                state = self.0.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        drop(state);
        // A caller on one of these threads cannot be: they run no code of users.
        let _ = self.0.threads.join_all();
    }
}

impl Shared {
    /// Runs the loop of a thread.
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                job(None);
                state = lock(&self.state);
                continue;
            }
            if state.stopped {
                break;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout(state, IDLE);
            let (woken, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                break;
            }
        }
        state.alive -= 1;
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn each_job_runs_though_there_are_more_than_threads_and_the_threads_are_joined() {
        let resolver = Resolver::new("names");
        let (gate, gates) = mpsc::channel::<()>();
        let gates = StdArc::new(Mutex::new(gates));
        let (done, results) = mpsc::channel();
        for number in 0..3 * THREADS_MAX {
            let (gates, done) = (gates.clone(), done.clone());
            let job = move |_: Option<io::Error>| {
                lock(&gates).recv().expect("the gate opens");
                done.send(number).expect("the test listens");
            };
            resolver.run(Box::new(job)).expect("a thread");
        }
        assert_eq!(lock(&resolver.0.state).alive, THREADS_MAX);
        (0..3 * THREADS_MAX).for_each(|_| gate.send(()).expect("they wait"));
        let mut numbers: Vec<_> = results.iter().take(3 * THREADS_MAX).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..3 * THREADS_MAX).collect::<Vec<_>>());
        resolver.stop(None);
        assert_eq!(lock(&resolver.0.state).alive, 0);
        assert!(resolver.run(Box::new(|_| panic!("it runs no more"))).is_err());
    }

    #[test]
    fn a_look_up_that_hangs_holds_an_end_up_no_longer_than_it_may() {
        let resolver = Resolver::new("names");
        let (release, held) = mpsc::channel::<()>();
        let (begin, begins) = mpsc::channel();
        let job = move |_: Option<io::Error>| {
            begin.send(()).expect("the test listens");
            let _ = held.recv();
        };
        resolver.run(Box::new(job)).expect("a thread");
        begins.recv().expect("it begins");
        resolver.stop(Some(Instant::now()));
        assert_eq!(lock(&resolver.0.state).alive, 1, "it hangs still");
        drop(release);
        resolver.stop(None);
        assert_eq!(lock(&resolver.0.state).alive, 0);
    }
}
