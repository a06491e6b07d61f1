//! Signals of the operating system that begin a shutdown.

use super::{CoordinatedShutdown, ShutdownReason};
use crate::actor::SystemRef;
use crate::sync::thread;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc as StdArc;

impl CoordinatedShutdown {
    /// Begins the run when the process gets SIGTERM or SIGINT, with [`ShutdownReason::Signal`]. A second signal
    /// while the run goes on ends the process at once, as it would by default. Nothing listens to signals unless
    /// this is called; what listens ends with the system's actors. Needs the feature `signals`.
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
        self.system.on_termination(move || close.close()).map_err(|ended| {
            handle.close();
            io::Error::other(ended)
        })
    }
}
