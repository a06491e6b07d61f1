//! Waiting for room in a full mailbox.

use crate::actor::Local;
use crate::actor::left_to_wait;
use crate::mailbox::{Pushed, Refused};
use std::time::{Duration, Instant};

/// Pushes as soon as there is room, within `limit`.
///
/// A thread that is itself the one to run the system's actors (a test's) does so until there is room; what still
/// finds none then is refused at once.
pub fn push_waiting<M: Send>(local: &Local<M>, message: M, limit: Duration) -> Result<Pushed<M>, Refused<M>> {
    let mut message = Some(message);
    let mut pushed = None;
    let reached =
        local.core.system.run_turns(&mut || match message.take().map(|it| local.mailbox.push(it)) {
            Some(Err(Refused::Full(refused))) => {
                message = Some(refused);
                false
            }
            done => {
                pushed = done;
                true
            }
        });
    match (pushed, message) {
        (Some(pushed), _) => pushed,
        (None, Some(message)) => {
            let deadline = Instant::now().checked_add(left_to_wait(reached, limit));
            local.mailbox.push_waiting(message, deadline)
        }
        (None, None) => unreachable!("the message is either pushed or kept"),
    }
}
