//! Signals of the operating system that begin a shutdown.

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
        let defaults = defaults()?;
        let mut signals = Signals::new(SIGNALS)?;
        let handle = signals.handle();
        let core = StdArc::downgrade(self.system.core());
        let listen = move || {
            let mut has_begun = false;
            for signal in signals.forever() {
                if has_begun {
                    // The second signal asks for an immediate end.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                let Some(core) = core.upgrade() else { return };
                // The run goes on by itself.
                drop(SystemRef::new(core).coordinated_shutdown().run(ShutdownReason::Signal(signal)));
                has_begun = true;
            }
        };
        thread::Builder::new().name("pointsman-signals".to_owned()).spawn(unpinned(listen))?;
        // Registered last: as long as a call may fail, a signal keeps its earlier effect.
        let listener = Listener::new(defaults);
        let close = handle.clone();
        let at_the_end = move || {
            drop(listener);
            close.close();
        };
        self.system.on_termination(at_the_end).map_err(|ended| {
            handle.close();
            io::Error::other(ended)
        })
    }
}

const SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// The listeners of the whole process, since signals are for the process.
struct Listeners {
    /// Systems that listen and have not ended.
    count: usize,
    /// Whether no system listens. Read by the handlers with the default effect, which stay in place for good.
    are_none: Option<StdArc<AtomicBool>>,
}

process_wide! {
    static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners { count: 0, are_none: None });
}

/// Registers handlers that have the default effect whenever no system listens: each registration for a signal takes the
/// default effect away.
fn defaults() -> io::Result<StdArc<AtomicBool>> {
    let mut listeners = lock(&LISTENERS);
    if let Some(are_none) = &listeners.are_none {
        return Ok(are_none.clone());
    }
    let are_none = StdArc::new(AtomicBool::new(true));
    for signal in SIGNALS {
        flag::register_conditional_default(signal, are_none.clone())?;
    }
    listeners.are_none = Some(are_none.clone());
    Ok(are_none)
}

/// Counted for as long as it lives.
struct Listener {
    are_none: StdArc<AtomicBool>,
}

impl Listener {
    fn new(are_none: StdArc<AtomicBool>) -> Self {
        let mut listeners = lock(&LISTENERS);
        listeners.count += 1;
        // Ordering: Relaxed; a signal that comes at this moment is taken the one way or the other.
        are_none.store(false, Ordering::Relaxed);
        Self { are_none }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listeners = lock(&LISTENERS);
        listeners.count -= 1;
        // Ordering: Relaxed; as in `new`.
        self.are_none.store(listeners.count == 0, Ordering::Relaxed);
    }
}
