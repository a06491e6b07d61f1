//! Termination callbacks: code of the program that runs after every actor has ended.

use crate::core::extensions::Extension;
use crate::core::system::SystemRef;
use crate::shutdown::coordinated::ShutdownSetupError;
use crate::sync::{Mutex, lock};
use crate::util::panic::{drop_guarded, quietly};

type Callback = Box<dyn FnOnce() + Send>;

/// The termination callbacks of a single system; `None` after they have begun to run.
pub(crate) struct Callbacks(Mutex<Option<Vec<Callback>>>);

impl Callbacks {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Extension for Callbacks {
    /// Runs them, the last one first.
    fn tree_ended(&self, _: &str) {
        let callbacks = lock(&self.0).take();
        for callback in callbacks.into_iter().flatten().rev() {
            quietly(callback);
        }
    }
}

impl Default for Callbacks {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemRef {
    /// Calls `callback` after every actor has ended, for any reason, and before
    /// [`wait_until_ended`](Self::wait_until_ended) returns. Callbacks run in the reverse order of their registration
    /// (Akka), on the thread that ended the last actor, which waits for them: they should be short. The next callback
    /// runs also when a callback panics.
    ///
    /// # Errors
    ///
    /// [`ShutdownSetupError::SystemEnded`] when the callbacks have begun to run; this callback is dropped, and a panic
    /// of its destructor goes no further.
    pub fn on_termination(&self, callback: impl FnOnce() + Send + 'static) -> Result<(), ShutdownSetupError> {
        if let Some(callbacks) = &mut *lock(&self.core().extensions.get::<Callbacks>().0) {
            callbacks.push(Box::new(callback));
            return Ok(());
        }
        // Dropped before the error lies where it is returned: there the error would be leaked if this drop panicked.
        drop_guarded(callback);
        Err(ShutdownSetupError::SystemEnded { system: self.name().to_owned() })
    }
}
