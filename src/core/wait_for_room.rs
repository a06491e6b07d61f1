//! Waiting for room in a full mailbox.

use crate::core::actor_ref::ActorRef;
use crate::core::cell::Local;
use crate::core::pending_send::{Waiter, wait_alone};
use crate::dispatch::stepping::left_to_wait;
use crate::mailbox::mailbox::{Pushed, Refused};
use crate::time::alarm::Alarms;
use std::time::{Duration, Instant};

/// Pushes as soon as there is room, within `limit` by the system's clock.
///
/// A thread that is itself the one to run the system's actors (a test's) does so until there is room; a message that
/// still finds none is refused at once.
pub fn push_waiting<M: Send + 'static>(
    to: &ActorRef<M>,
    local: &Local<M>,
    message: M,
    limit: Duration,
) -> Result<Pushed<M>, Refused<M>> {
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
        (None, Some(message)) => wait_on(to, local, message, left_to_wait(reached, limit)),
        (None, None) => unreachable!("the message is either pushed or kept"),
    }
}

fn wait_on<M: Send + 'static>(
    to: &ActorRef<M>,
    local: &Local<M>,
    message: M,
    limit: Duration,
) -> Result<Pushed<M>, Refused<M>> {
    if limit == Duration::MAX {
        return local.mailbox.push_waiting(message, None);
    }
    if limit.is_zero() || local.core.system.timers().is_real() {
        // Such a clock goes as fast as the one that threads sleep by.
        return local.mailbox.push_waiting(message, Instant::now().checked_add(limit));
    }
    wait_alone(Waiter::new(to.clone(), message, limit, 0)).map(|()| Pushed::Queued)
}
