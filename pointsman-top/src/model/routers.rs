//! Routers over time: which part of the messages each routee handles.

use crate::model::series::{HISTORY, Series};
use crate::snapshot::{Router, Snapshot};
use std::collections::BTreeMap;

/// The routers that the snapshots have, by their paths.
#[derive(Debug, Clone, Default)]
pub struct Routers(BTreeMap<String, RouterHistory>);

/// A router over time.
#[derive(Debug, Clone, Default)]
pub struct RouterHistory {
    /// The routees in the order of the router, and behind them those that have gone lately.
    pub routees: Vec<RouteeHistory>,
    /// Messages a second that the routees have handled.
    pub rates: Series,
}

/// A routee over time.
#[derive(Debug, Clone)]
pub struct RouteeHistory {
    /// The name or path of the routee.
    pub identity: String,
    /// The number of its incarnation.
    pub uid: u32,
    /// Messages a second.
    pub rates: Series,
    /// Its part of the messages that all routees have handled, from 0 to 1.
    pub shares: Series,
    /// Its load in words; `None`: it is a routee no more.
    pub load: Option<String>,
    /// The messages that wait for it, where that is known.
    pub queued: Option<u64>,
    handled: u64,
}

impl Routers {
    /// The history of a router.
    pub fn get(&self, path: &str) -> Option<&RouterHistory> {
        self.0.get(path)
    }

    /// Takes the routers of a snapshot, `span` seconds after the last one.
    pub(super) fn take(&mut self, snapshot: &Snapshot, span: Option<f64>) {
        let mut before = std::mem::take(&mut self.0);
        for router in &snapshot.routers {
            let mut history = before.remove(&router.path).unwrap_or_default();
            history.take(router, span);
            self.0.insert(router.path.clone(), history);
        }
    }

    /// Notes a reading without an answer.
    pub(super) fn miss(&mut self) {
        for history in self.0.values_mut() {
            history.rates.push(None);
            for routee in &mut history.routees {
                routee.rates.push(None);
                routee.shares.push(None);
            }
        }
    }
}

impl RouterHistory {
    fn take(&mut self, router: &Router, span: Option<f64>) {
        let mut before = std::mem::take(&mut self.routees);
        // The messages that each routee has handled since the reading before.
        let mut handled: Vec<Option<u64>> = Vec::with_capacity(router.routees.len());
        for routee in &router.routees {
            let known =
                before.iter().position(|known| known.uid == routee.uid && known.identity == routee.identity);
            let mut history = match known {
                Some(at) => {
                    let history = before.remove(at);
                    handled.push(routee.handled.checked_sub(history.handled));
                    history
                }
                None => {
                    handled.push(None);
                    RouteeHistory {
                        identity: routee.identity.clone(),
                        uid: routee.uid,
                        rates: Series::default(),
                        shares: Series::default(),
                        load: None,
                        queued: None,
                        handled: 0,
                    }
                }
            };
            history.handled = routee.handled;
            history.load = Some(routee.load.clone());
            history.queued = routee.queued;
            self.routees.push(history);
        }
        let handled_by_all =
            handled.iter().flatten().fold(0_u64, |sum, handled| sum.saturating_add(*handled));
        for (routee, handled) in self.routees.iter_mut().zip(&handled) {
            let rate = span.and_then(|span| handled.map(|handled| handled as f64 / span));
            let share = handled.filter(|_| handled_by_all > 0 && span.is_some());
            routee.rates.push(rate);
            routee.shares.push(share.map(|share| share as f64 / handled_by_all as f64));
        }
        for mut gone in before {
            gone.load = None;
            gone.queued = None;
            gone.rates.push(None);
            gone.shares.push(None);
            if !gone.shares.is_empty() {
                self.routees.push(gone);
            }
        }
        let is_compared = handled.iter().any(Option::is_some);
        self.rates.push(span.filter(|_| is_compared).map(|span| handled_by_all as f64 / span));
    }

    /// The routees that the router has.
    pub fn present(&self) -> impl Iterator<Item = &RouteeHistory> {
        self.routees.iter().filter(|routee| routee.load.is_some())
    }

    /// The number of routees whose share is known, at a reading counted back from the newest one.
    pub fn shared_among(&self, readings: usize) -> usize {
        self.routees.iter().filter(|routee| routee.shares.back(readings).is_some()).count()
    }

    /// The largest share by the mean share: 1 where all routees handle the same number of messages.
    pub fn skew(&self) -> Option<f64> {
        let largest = self.present().filter_map(|routee| routee.shares.last()).reduce(f64::max)?;
        Some(largest * self.shared_among(0) as f64)
    }

    /// The readings back to the oldest share, [`HISTORY`] at most.
    pub fn length(&self) -> usize {
        let has_share = |readings: &usize| self.shared_among(*readings) > 0;
        (0..HISTORY).rev().find(has_share).map_or(0, |readings| readings + 1)
    }
}
