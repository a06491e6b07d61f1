//! The state of an actor that this node has asked a peer to make, as the stand-in of the actor sees it.
//!
//! The stand-in and the actor each count their suspensions. The stand-in's count is that of the actor, plus the failures that this
//! node alone knows of: a request that was refused, or was not answered in time. A verdict on such a failure does not go to the peer.
//! It asks the peer again, unless the actor is there after all.
//!
//! A stand-in that waits for a verdict may fail again: a parent that restarts its children undoes one suspension of an actor whose
//! failure is still under way, and the actor fails again. Each of the two failures is judged, as those of an actor here are.
//!
//! The state knows nothing of cells and links, so that it is modelled by loom.

use crate::sync::{Mutex, lock};
use std::time::Duration;

/// The time within which a peer answers a request to make an actor.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The last answer of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The peer has not answered since this time of the system's clock.
    Awaited(Duration),
    Made,
    /// The peer has refused, or has not answered in time.
    Refused,
}

/// The fate of a parent's verdict on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The peer is told of it.
    Tell,
    /// The peer is asked again to make the actor, with so many suspensions.
    AskAgain { suspensions: u32 },
    /// The peer knows nothing of the failure, and has made the actor.
    Done,
}

/// The fate of a failure at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedThere {
    /// The stand-in fails.
    Fails,
    /// The stand-in waits for a verdict on a failure of which the peer knew nothing: the verdict is on this one.
    Waits,
}

/// The state of an actor that this node has asked a peer to make.
#[derive(Debug)]
pub(crate) struct DeploymentState(Mutex<Known>);

#[derive(Debug)]
struct Known {
    answer: Answer,
    /// Whether the peer was asked more than once: it may make an actor after the end of an earlier one.
    is_repeated: bool,
    /// Whether the stand-in was told to stop.
    is_stopping: bool,
    /// The suspensions of the stand-in.
    suspensions: u32,
    /// The failures of the stand-in without a verdict of which the peer knows nothing.
    failures_here: u32,
}

impl DeploymentState {
    /// The peer is asked for an actor with so many suspensions.
    pub(crate) fn new(suspensions: u32, now: Duration) -> Self {
        let answer = Answer::Awaited(now);
        let (is_repeated, is_stopping) = (false, false);
        Self(Mutex::new(Known { answer, is_repeated, is_stopping, suspensions, failures_here: 0 }))
    }

    /// The peer has made the actor.
    pub(crate) fn made(&self) {
        lock(&self.0).answer = Answer::Made;
    }

    /// The peer has made no actor.
    pub(crate) fn refused(&self) {
        lock(&self.0).answer = Answer::Refused;
    }

    /// Takes a request as refused that the peer has not answered in time. Returns whether it has not.
    pub(crate) fn refuse_overdue(&self, now: Duration) -> bool {
        let mut known = lock(&self.0);
        let is_overdue =
            matches!(known.answer, Answer::Awaited(since) if now.saturating_sub(since) >= ANSWER_WITHIN);
        if is_overdue {
            known.answer = Answer::Refused;
        }
        is_overdue
    }

    pub(crate) fn is_refused(&self) -> bool {
        lock(&self.0).answer == Answer::Refused
    }

    /// The stand-in is told to stop. Returns whether the request is refused. A thread that refuses it later sees the stop.
    pub(crate) fn stop(&self) -> bool {
        let mut known = lock(&self.0);
        known.is_stopping = true;
        known.answer == Answer::Refused
    }

    pub(crate) fn is_stopping(&self) -> bool {
        lock(&self.0).is_stopping
    }

    pub(crate) fn is_repeated(&self) -> bool {
        lock(&self.0).is_repeated
    }

    /// The stand-in is suspended, of which the peer is told.
    pub(crate) fn suspended(&self) {
        lock(&self.0).suspensions += 1;
    }

    /// A suspension is undone without a verdict, of which the peer is told.
    pub(crate) fn resumed(&self) {
        lock(&self.0).end_suspension();
    }

    /// The stand-in fails, and the peer knows nothing of it.
    pub(crate) fn fails_here(&self) {
        let mut known = lock(&self.0);
        known.suspensions += 1;
        known.failures_here += 1;
    }

    /// The actor has failed. `is_failed`: the stand-in waits for a verdict.
    pub(crate) fn failed_there(&self, is_failed: bool) -> FailedThere {
        let mut known = lock(&self.0);
        if is_failed && known.failures_here > 0 {
            known.failures_here -= 1;
            FailedThere::Waits
        } else {
            known.suspensions += 1;
            FailedThere::Fails
        }
    }

    /// The parent's verdict on a failure, which undoes a suspension of the stand-in.
    pub(crate) fn judged(&self, now: Duration) -> Judged {
        let mut known = lock(&self.0);
        known.end_suspension();
        if known.failures_here == 0 {
            return Judged::Tell;
        }
        known.failures_here -= 1;
        if known.answer == Answer::Made {
            return Judged::Done;
        }
        known.answer = Answer::Awaited(now);
        known.is_repeated = true;
        Judged::AskAgain { suspensions: known.suspensions - known.failures_here }
    }
}

impl Known {
    fn end_suspension(&mut self) {
        debug_assert!(self.suspensions > 0, "more suspensions are undone than there were");
        self.suspensions = self.suspensions.saturating_sub(1);
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn a_request_is_overdue_once_and_at_its_time() {
        let state = DeploymentState::new(0, NOW);
        assert!(!state.refuse_overdue(NOW + ANSWER_WITHIN - Duration::from_nanos(1)) && !state.is_refused());
        assert!(state.refuse_overdue(NOW + ANSWER_WITHIN) && state.is_refused());
        assert!(!state.refuse_overdue(NOW + 2 * ANSWER_WITHIN));
        // A late answer.
        state.made();
        assert!(!state.is_refused() && !state.refuse_overdue(Duration::MAX));
    }

    #[test]
    fn a_stop_meets_the_refusal_or_the_refusal_meets_the_stop() {
        let (stopped_first, refused_first) = (DeploymentState::new(0, NOW), DeploymentState::new(0, NOW));
        assert!(!stopped_first.stop() && !stopped_first.is_refused());
        stopped_first.refused();
        assert!(stopped_first.is_stopping());
        refused_first.refused();
        assert!(!refused_first.is_stopping() && refused_first.stop());
    }

    #[test]
    fn verdicts_on_failures_of_requests_ask_again_with_the_parents_suspensions() {
        let state = DeploymentState::new(1, NOW);
        state.refused();
        state.fails_here();
        state.suspended();
        assert!(!state.is_repeated());
        assert_eq!(state.judged(NOW), Judged::AskAgain { suspensions: 2 });
        assert!(state.is_repeated() && !state.refuse_overdue(NOW));
        state.resumed();
        state.resumed();
        state.made();
        assert_eq!(state.failed_there(false), FailedThere::Fails);
        assert_eq!(state.judged(NOW), Judged::Tell);
    }

    #[test]
    fn an_actor_that_is_made_late_hears_of_no_verdict_on_its_request() {
        let state = DeploymentState::new(0, NOW);
        assert!(state.refuse_overdue(NOW + ANSWER_WITHIN));
        state.fails_here();
        state.made();
        assert_eq!(state.judged(NOW), Judged::Done);
        assert!(!state.is_repeated());
    }

    #[test]
    fn a_verdict_is_on_the_failure_of_an_actor_that_was_made_late() {
        let state = DeploymentState::new(0, NOW);
        state.refused();
        state.fails_here();
        state.made();
        assert_eq!(state.failed_there(true), FailedThere::Waits);
        assert_eq!(state.failed_there(true), FailedThere::Fails);
        assert_eq!((state.judged(NOW), state.judged(NOW)), (Judged::Tell, Judged::Tell));
    }
}
