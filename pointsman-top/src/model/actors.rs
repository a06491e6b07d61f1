//! Actors over time.

use crate::model::series::Series;
use crate::snapshot::{Actor, Snapshot};
use std::collections::HashMap;

/// The rates of the actors that the snapshots have, by the numbers of their incarnations.
#[derive(Debug, Clone, Default)]
pub struct Actors(HashMap<u32, ActorHistory>);

/// An actor over time.
#[derive(Debug, Clone)]
pub struct ActorHistory {
    path: String,
    /// The messages that the actor had handled at the last reading; `None`: that reading counted otherwise.
    handled: Option<u64>,
    /// Messages a second.
    pub rates: Series,
    /// The most messages that were seen to wait.
    pub queued_peak: u64,
}

impl Actors {
    /// The history of an actor.
    pub fn get(&self, actor: &Actor) -> Option<&ActorHistory> {
        self.0.get(&actor.uid).filter(|history| history.path == actor.path)
    }

    /// Messages a second of an actor at the newest reading.
    pub fn rate(&self, actor: &Actor) -> Option<f64> {
        self.get(actor)?.rates.last()
    }

    /// Takes the actors of a snapshot, `span` seconds after the last one.
    pub(super) fn take(&mut self, snapshot: &Snapshot, span: Option<f64>) {
        let mut before = std::mem::take(&mut self.0);
        for actor in &snapshot.actors {
            let mut history = match before.remove(&actor.uid) {
                Some(history) if history.path == actor.path => history,
                _ => ActorHistory {
                    path: actor.path.clone(),
                    handled: None,
                    rates: Series::default(),
                    queued_peak: 0,
                },
            };
            let rate = match (snapshot.actors_since, history.handled, span) {
                (Some(since), ..) => Some(actor.handled as f64 / since),
                (None, Some(before), Some(span)) => {
                    actor.handled.checked_sub(before).map(|handled| handled as f64 / span)
                }
                _ => None,
            };
            history.handled = snapshot.actors_since.is_none().then_some(actor.handled);
            history.queued_peak = history.queued_peak.max(actor.queued);
            history.rates.push(rate);
            self.0.insert(actor.uid, history);
        }
    }

    /// Notes a reading without an answer.
    pub(super) fn miss(&mut self) {
        self.0.values_mut().for_each(|history| history.rates.push(None));
    }
}
