//! The surroundings in which the engine polls the futures of its users.
//!
//! A future of an async runtime may need a thread on which that runtime is entered, to find its timers and sockets. The
//! engine has no runtime, and depends on none. So a program says by
//! [`SystemBuilder::polls_within`](crate::SystemBuilder::polls_within) what is to surround each poll. The extension holds
//! the function. Each file that polls a future of a user, or drops one, does so by [`PollsWithin::run`].

use crate::core::extensions::Extension;
use crate::core::system::SystemCore;

/// Runs its argument once, with whatever a poll needs around it.
pub(crate) type Around = dyn Fn(&mut dyn FnMut()) + Send + Sync;

/// The function that surrounds each poll; `None` if the program has set none.
pub(crate) struct PollsWithin(pub Option<Box<Around>>);

impl Extension for PollsWithin {}

impl PollsWithin {
    pub(crate) fn of(core: &SystemCore) -> &Self {
        core.extensions.get()
    }

    /// Runs `act` within the function of the program.
    ///
    /// # Panics
    ///
    /// When the function of the program panics, or does not run `act`.
    pub(crate) fn run<T>(&self, act: impl FnOnce() -> T) -> T {
        let Some(around) = &self.0 else { return act() };
        let (mut act, mut done) = (Some(act), None);
        around(&mut || {
            if let Some(act) = act.take() {
                done = Some(act());
            }
        });
        done.expect(
            "the function given to `SystemBuilder::polls_within` did not call the function that it got",
        )
    }
}
