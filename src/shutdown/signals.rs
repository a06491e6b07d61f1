//! Signals of the operating system: those that begin a shutdown, and how any part of the engine listens to others.

use crate::core::system::SystemRef;
use crate::scheduler::affinity::unpinned;
use crate::shutdown::coordinated::CoordinatedShutdown;
#[cfg(windows)]
use crate::shutdown::polled_signals::Signals;
use crate::shutdown::report::ShutdownReason;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock, process_wide, thread};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
#[cfg(not(windows))]
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc as StdArc;

impl CoordinatedShutdown {
    /// Begins the run when the process gets SIGTERM or SIGINT, with [`ShutdownReason::Signal`]. A second signal while
    /// the run goes on ends the process at once, as it would by default. Without this call no code listens to signals.
    /// When the actors of all systems that listen have ended, a signal has its default effect again. Needs the feature
    /// `signals`.
    ///
    /// On Windows, Ctrl-C sends SIGINT, and SIGTERM comes only from the process itself. A thread looks for them 20
    /// times a second there; on other systems it sleeps until a signal comes.
    ///
    /// The main thread then [waits](Self::wait), also if other code begins the run:
    ///
    /// ```no_run
    /// use pointsman::prelude::*;
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let system = System::builder("shop").build()?;
    ///     system.coordinated_shutdown().on_signals()?;
    ///     let report = system.coordinated_shutdown().wait()?;
    ///     println!("{report}");
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// If the operating system refuses the handler or a thread; or if the system has ended.
    pub fn on_signals(&self) -> io::Result<()> {
        let core = StdArc::downgrade(self.system.core());
        let mut has_begun = false;
        let begin = move |signal| {
            if has_begun {
                // The second signal asks for an immediate end.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            if let Some(core) = core.upgrade() {
                // The run goes on by itself.
                drop(SystemRef::new(core).coordinated_shutdown().run(ShutdownReason::Signal(signal)));
                has_begun = true;
            }
        };
        listen(&self.system, "pointsman-signals", &SIGNALS, begin)
    }
}

/// Calls `on_signal` for each of these signals that comes until the actors of the system have ended, on a thread of its
/// own. When no system listens to a signal any more, the signal has its default effect again.
///
/// # Errors
///
/// As [`CoordinatedShutdown::on_signals`].
pub(crate) fn listen(
    system: &SystemRef,
    thread_name: &str,
    signals: &[i32],
    mut on_signal: impl FnMut(i32) + Send + 'static,
) -> io::Result<()> {
    signals.iter().try_for_each(|signal| default_effect(*signal))?;
    let mut coming = Signals::new(signals.iter().copied())?;
    let handle = coming.handle();
    let listen = move || coming.forever().for_each(&mut on_signal);
    thread::Builder::new().name(thread_name.to_owned()).spawn(unpinned(listen))?;
    // Registered last: as long as a call may fail, a signal keeps its earlier effect.
    let listeners: Vec<Listener> = signals.iter().map(|signal| Listener::new(*signal)).collect();
    let close = handle.clone();
    let at_the_end = move || {
        drop(listeners);
        close.close();
    };
    system.on_termination(at_the_end).map_err(|ended| {
        handle.close();
        io::Error::other(ended)
    })
}

const SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// The listeners to a signal in the whole process, since signals are for the process.
struct Listeners {
    /// Systems that listen and have not ended.
    count: usize,
    /// Whether no system listens. Read by the handler with the default effect, which stays in place for good.
    are_none: StdArc<AtomicBool>,
}

process_wide! {
    static LISTENERS: Mutex<BTreeMap<i32, Listeners>> = Mutex::new(BTreeMap::new());
}

/// Registers a handler that has the default effect whenever no system listens: each registration for a signal takes the
/// default effect away.
fn default_effect(signal: i32) -> io::Result<()> {
    if let Entry::Vacant(entry) = lock(&LISTENERS).entry(signal) {
        let are_none = StdArc::new(AtomicBool::new(true));
        flag::register_conditional_default(signal, are_none.clone())?;
        entry.insert(Listeners { count: 0, are_none });
    }
    Ok(())
}

/// Counted for as long as it lives.
struct Listener {
    signal: i32,
}

impl Listener {
    fn new(signal: i32) -> Self {
        Self::count(signal, |count| count + 1);
        Self { signal }
    }

    fn count(signal: i32, change: impl FnOnce(usize) -> usize) {
        if let Some(listeners) = lock(&LISTENERS).get_mut(&signal) {
            listeners.count = change(listeners.count);
            // Ordering: Relaxed; a signal that comes at this moment is taken the one way or the other.
            listeners.are_none.store(listeners.count == 0, Ordering::Relaxed);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        Self::count(self.signal, |count| count - 1);
    }
}
