//! Threads of dispatchers over time.

use crate::model::series::Series;
use crate::snapshot::{Snapshot, Worker};
use std::collections::BTreeMap;

/// The threads that the snapshots have, by the names of their dispatchers and their own.
#[derive(Debug, Clone, Default)]
pub struct Workers(BTreeMap<(String, String), WorkerHistory>);

/// A thread over time.
#[derive(Debug, Clone, Default)]
pub struct WorkerHistory {
    last: Option<Worker>,
    /// Messages a second.
    pub messages: Series,
    /// Turns a second.
    pub turns: Series,
    /// How often the thread has gone to sleep, a second.
    pub parks: Series,
    /// Tasks that the thread has stolen, a second.
    pub steals: Series,
    /// The part of the time in which the thread has searched for tasks, from 0 to 1.
    pub searching: Series,
    /// The moment, in seconds of the system, since which the thread was seen in the same turn.
    pub in_turn_since: Option<f64>,
}

impl Workers {
    /// The history of a thread.
    pub fn get(&self, dispatcher: &str, thread: &str) -> Option<&WorkerHistory> {
        self.0.get(&(dispatcher.to_owned(), thread.to_owned()))
    }

    /// Takes the threads of a snapshot, `span` seconds after the last one.
    pub(super) fn take(&mut self, snapshot: &Snapshot, span: Option<f64>) {
        let mut before = std::mem::take(&mut self.0);
        for dispatcher in &snapshot.dispatchers {
            for worker in &dispatcher.workers {
                let key = (dispatcher.name.clone(), worker.thread.clone());
                let mut history = before.remove(&key).unwrap_or_default();
                history.take(worker, snapshot.at, span);
                self.0.insert(key, history);
            }
        }
    }

    /// Notes a reading without an answer.
    pub(super) fn miss(&mut self) {
        for history in self.0.values_mut() {
            let WorkerHistory { messages, turns, parks, steals, searching, .. } = history;
            [messages, turns, parks, steals, searching].into_iter().for_each(|series| series.push(None));
        }
    }
}

impl WorkerHistory {
    fn take(&mut self, worker: &Worker, at: f64, span: Option<f64>) {
        let before = self.last.take();
        let rate = |count: fn(&Worker) -> u64| {
            let handled = count(worker).checked_sub(count(before.as_ref()?))?;
            Some(handled as f64 / span?)
        };
        self.messages.push(rate(|worker| worker.messages));
        self.turns.push(rate(|worker| worker.turns));
        self.parks.push(rate(|worker| worker.parks));
        self.steals.push(rate(|worker| worker.steals));
        let searched =
            before.as_ref().zip(span).map(|(before, span)| (worker.searching - before.searching) / span);
        self.searching.push(searched.map(|part| part.clamp(0.0, 1.0)));
        let is_same_turn = before.is_some_and(|before| {
            worker.running.is_some() && before.running == worker.running && before.turns == worker.turns
        });
        if !is_same_turn {
            self.in_turn_since = worker.running.as_ref().map(|_| at);
        }
        self.last = Some(worker.clone());
    }
}
