//! Lifecycle events as events of `tracing`.

use crate::core::lifecycle::{Lifecycle, Stuck};
use crate::core::strategy::Directive;
use crate::util::panic::quietly;
use tracing::{Level, debug, enabled, info, warn};

/// The target of the events.
const TARGET: &str = "pointsman";

/// Returns whether a subscriber of `tracing` wants warnings, so that no lines are logged in their place.
pub(crate) fn wants_warnings() -> bool {
    enabled!(target: TARGET, Level::WARN)
}

/// Returns whether a subscriber of `tracing` wants the starts and ends of actors.
pub(crate) fn wants_lives() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Emits an event. Subscribers are user code.
pub(crate) fn emit(event: &Lifecycle, system: &str) {
    quietly(|| match event {
        Lifecycle::Started(actor) => {
            debug!(target: TARGET, system, actor = %actor.path, uid = actor.uid, class = actor.class, "actor started");
        }
        Lifecycle::Stopped(actor) => {
            debug!(target: TARGET, system, actor = %actor.path, uid = actor.uid, class = actor.class, "actor stopped");
        }
        Lifecycle::Restarted(actor) => {
            info!(target: TARGET, system, actor = %actor.path, uid = actor.uid, class = actor.class, "actor restarted");
        }
        Lifecycle::Failed { actor, verdict, text } => {
            let verdict = match verdict {
                Some(Directive::Resume) => "resume",
                Some(Directive::Restart) => "restart",
                Some(Directive::Stop) => "stop",
                Some(Directive::Escalate) => "escalate",
                None => "as its group decides",
            };
            warn!(
                target: TARGET,
                system,
                actor = %actor.path,
                uid = actor.uid,
                class = actor.class,
                verdict,
                cause = text,
                "actor failed"
            );
        }
        Lifecycle::Resized { router, from, to } => {
            info!(target: TARGET, system, router = %router, from, to, "router resized");
        }
        Lifecycle::Stuck(stuck) => {
            let Stuck { actor, message_type, thread, lasted, .. } = stuck;
            warn!(
                target: TARGET,
                system,
                actor = %actor.path,
                uid = actor.uid,
                class = actor.class,
                message_type,
                thread,
                lasted = ?lasted,
                "handler stuck"
            );
        }
        Lifecycle::StuckEnded(Stuck { actor, lasted, .. }) => {
            warn!(
                target: TARGET,
                system,
                actor = %actor.path,
                uid = actor.uid,
                class = actor.class,
                lasted = ?lasted,
                "stuck handler ended"
            );
        }
    });
}
