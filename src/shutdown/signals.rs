//! Signals of the operating system that begin a shutdown.

use super::{CoordinatedShutdown, ShutdownReason};
use crate::actor::SystemRef;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc as StdArc;

impl CoordinatedShutdown {
    /// Begins the run when the process gets SIGTERM or SIGINT, with [`ShutdownReason::Signal`]. A second signal
    /// while the run goes on ends the process at once, as it would by default. Nothing listens to signals unless
    /// this is called. When the system's actors have ended, a signal does again what it does by default.
    /// Needs the feature `signals`.
    ///
    /// The main thread then waits for the [outcome](Self::outcome), whoever begins the run:
    ///
    /// ```no_run
    /// use pointsman::prelude::*;
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let system = System::builder("shop").build()?;
    ///     system.coordinated_shutdown().on_signals()?;
    ///     let report = system.coordinated_shutdown().outcome().wait()?;
    ///     println!("{report}");
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// If the operating system refuses the handler or a thread; or if the system has ended.
    pub fn on_signals(&self) -> io::Result<()> {
        // What listens stays in place for good; so once the actors have ended a signal does what it does by default.
        let has_ended = StdArc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            flag::register_conditional_default(signal, has_ended.clone())?;
        }
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let handle = signals.handle();
        let core = StdArc::downgrade(self.system.core());
        let listen = move || {
            let mut has_begun = false;
            for signal in signals.forever() {
                if has_begun {
                    // Somebody is in a hurry.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                let Some(core) = core.upgrade() else { return };
                let _ = SystemRef::new(core).coordinated_shutdown().run(ShutdownReason::Signal(signal));
                has_begun = true;
            }
        };
        thread::Builder::new().name("pointsman-signals".to_owned()).spawn(listen)?;
        let close = handle.clone();
        let ended = has_ended.clone();
        let at_the_end = move || {
            // Ordering: Relaxed; a signal that comes at this moment is taken the one way or the other.
            ended.store(true, Ordering::Relaxed);
            close.close();
        };
        self.system.on_termination(at_the_end).map_err(|ended| {
            // Ordering: Relaxed; as above.
            has_ended.store(true, Ordering::Relaxed);
            handle.close();
            io::Error::other(ended)
        })
    }
}
