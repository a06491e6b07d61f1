//! Signals by polling, where nothing wakes the thread that waits for them: on Windows, where a handler may do little
//! more than set a flag. Replaces `signal_hook::iterator`, which does not exist there. Compiled for the tests
//! elsewhere, too.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, lock};
use signal_hook::{SigId, flag, low_level};
use std::io;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The longest wait of a signal for the thread that looks for it.
const NAP: Duration = Duration::from_millis(50);

/// Some signals, and whether they have come.
pub(crate) struct Signals {
    flags: Vec<Flag>,
    handle: Handle,
}

struct Flag {
    signal: i32,
    has_come: StdArc<AtomicBool>,
    id: SigId,
}

/// Ends the iteration over signals.
#[derive(Clone)]
pub(crate) struct Handle(StdArc<Closed>);

struct Closed {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Signals {
    /// Listens to these signals from now on.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a handler; then it listens to none.
    pub(crate) fn new(signals: impl IntoIterator<Item = i32>) -> io::Result<Self> {
        let closed = Closed { is_closed: Mutex::new(false), changed: Condvar::new() };
        let mut this = Self { flags: Vec::new(), handle: Handle(StdArc::new(closed)) };
        for signal in signals {
            let has_come = StdArc::new(AtomicBool::new(false));
            let id = flag::register(signal, has_come.clone())?;
            this.flags.push(Flag { signal, has_come, id });
        }
        Ok(this)
    }

    /// Returns the handle that ends the iteration.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Iterates over the signals that come, until the handle is closed. Signals of the same kind that come at once are
    /// one.
    pub(crate) fn forever(&mut self) -> impl Iterator<Item = i32> {
        std::iter::from_fn(|| {
            let closed = &*self.handle.0;
            let mut is_closed = lock(&closed.is_closed);
            while !*is_closed {
                // Ordering: Relaxed; nothing else is read for it.
                let come = self.flags.iter().find(|flag| flag.has_come.swap(false, Ordering::Relaxed));
                if let Some(flag) = come {
                    return Some(flag.signal);
                }
                is_closed = match closed.changed.wait_timeout(is_closed, NAP) {
                    Ok((is_closed, _)) => is_closed,
                    Err(poisoned) => poisoned.into_inner().0,
                };
            }
            None
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for flag in &self.flags {
            low_level::unregister(flag.id);
        }
    }
}

impl Handle {
    /// Ends the iteration.
    pub(crate) fn close(&self) {
        *lock(&self.0.is_closed) = true;
        self.0.changed.notify_all();
    }
}

// Miri has no signals.
#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::Signals;
    use signal_hook::consts::{SIGALRM, SIGUSR1, SIGUSR2};
    use signal_hook::low_level::raise;

    #[test]
    fn signals_are_told_of_once_each_until_the_handle_is_closed() {
        let mut signals = Signals::new([SIGUSR1, SIGUSR2]).expect("a handler is granted");
        let handle = signals.handle();
        raise(SIGUSR2).expect("it is sent");
        let mut come = signals.forever();
        assert_eq!(come.next(), Some(SIGUSR2));
        raise(SIGUSR1).expect("it is sent");
        assert_eq!(come.next(), Some(SIGUSR1));
        handle.close();
        assert_eq!(come.next(), None);
        assert_eq!(come.next(), None);
    }

    #[test]
    fn a_thread_that_waits_for_signals_ends_when_the_handle_is_closed() {
        let mut signals = Signals::new([SIGALRM]).expect("a handler is granted");
        let handle = signals.handle();
        let waits = std::thread::spawn(move || signals.forever().next());
        handle.close();
        assert_eq!(waits.join().expect("no panic"), None);
    }
}
