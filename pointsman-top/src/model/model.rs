//! The readings of a system, from the oldest one to the newest one.

use crate::model::actors::Actors;
use crate::model::classes::Classes;
use crate::model::routers::Routers;
use crate::model::series::{HISTORY, Series};
use crate::model::workers::Workers;
use crate::reading::Reading;
use crate::snapshot::Snapshot;
use std::collections::VecDeque;

/// The readings of a system. The model outlives the system: the next one at the same address goes on in it.
#[derive(Debug, Clone, Default)]
pub struct Model {
    snapshot: Option<Snapshot>,
    /// The snapshot before, of the same run of the system.
    before: Option<Snapshot>,
    /// The moment of the newest snapshot, in seconds of the reader.
    read_at: Option<f64>,
    fault: Option<ReadFault>,
    new_starts: u32,
    new_start_at: Option<f64>,
    ticks: VecDeque<Tick>,
    /// Messages a second that all actors have handled.
    pub handled: Series,
    /// Messages that wait.
    pub queued: Series,
    /// The actors of the snapshots.
    pub actors: Actors,
    /// The classes of the snapshots.
    pub classes: Classes,
    /// The routers of the snapshots.
    pub routers: Routers,
    /// The threads of the snapshots.
    pub workers: Workers,
}

/// The finding of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// A snapshot.
    Snapshot,
    /// The first snapshot of another run of the system.
    NewStart,
    /// No snapshot.
    NoAnswer,
}

/// The reason why the newest readings have no snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadFault {
    /// The reason of the newest reading.
    pub text: String,
    /// The first reading without an answer, in seconds of the reader.
    pub since: f64,
}

impl Model {
    /// Takes a reading.
    pub fn take(&mut self, reading: Reading) {
        match reading.outcome {
            Ok(snapshot) => self.take_snapshot(reading.at, snapshot),
            Err(text) => {
                let since = self.fault.as_ref().map_or(reading.at, |fault| fault.since);
                self.fault = Some(ReadFault { text, since });
                self.push(Tick::NoAnswer);
                self.handled.push(None);
                self.queued.push(None);
                self.actors.miss();
                self.classes.miss();
                self.routers.miss();
                self.workers.miss();
            }
        }
    }

    fn take_snapshot(&mut self, at: f64, snapshot: Snapshot) {
        let is_new_start = self.snapshot.as_ref().is_some_and(|before| snapshot.is_new_start(before));
        if is_new_start {
            self.new_starts += 1;
            self.new_start_at = Some(at);
            self.snapshot = None;
            self.actors = Actors::default();
            self.routers = Routers::default();
            self.workers = Workers::default();
            self.classes.forget_counts();
        }
        self.before = self.snapshot.take();
        let span = self.before.as_ref().map(|before| snapshot.at - before.at).filter(|span| *span > 0.0);
        self.push(if is_new_start { Tick::NewStart } else { Tick::Snapshot });
        self.actors.take(&snapshot, span);
        self.classes.take(&snapshot, span);
        self.routers.take(&snapshot, span);
        self.workers.take(&snapshot, span);
        self.queued.push(Some(snapshot.ledger.queued as f64));
        self.snapshot = Some(snapshot);
        let handled = self.rate(|snapshot| snapshot.ledger.handled);
        self.handled.push(handled);
        self.read_at = Some(at);
        self.fault = None;
    }

    fn push(&mut self, tick: Tick) {
        if self.ticks.len() == HISTORY {
            self.ticks.pop_front();
        }
        self.ticks.push_back(tick);
    }

    /// The newest snapshot, which may be old while the server is away.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// The moment of the newest snapshot, in seconds of the reader.
    pub fn read_at(&self) -> Option<f64> {
        self.read_at
    }

    /// Why there is no newer snapshot; `None`: the newest reading has one.
    pub fn fault(&self) -> Option<&ReadFault> {
        self.fault.as_ref()
    }

    /// How often the system was seen to have begun anew.
    pub fn new_starts(&self) -> u32 {
        self.new_starts
    }

    /// The moment when the system was last seen to have begun anew, in seconds of the reader.
    pub fn new_start_at(&self) -> Option<f64> {
        self.new_start_at
    }

    /// The finding of a reading, counted back from the newest one, which is 0.
    pub fn tick(&self, readings: usize) -> Option<Tick> {
        let at = self.ticks.len().checked_sub(readings + 1)?;
        Some(self.ticks[at])
    }

    /// The seconds of the system between the two newest snapshots; `None` without two of the same run.
    pub fn span(&self) -> Option<f64> {
        let span = self.snapshot.as_ref()?.at - self.before.as_ref()?.at;
        (span > 0.0).then_some(span)
    }

    /// How fast a count grows, a second, between the two newest snapshots.
    pub fn rate(&self, count: impl Fn(&Snapshot) -> u64) -> Option<f64> {
        let grown = count(self.snapshot.as_ref()?).checked_sub(count(self.before.as_ref()?))?;
        Some(grown as f64 / self.span()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Actor, Class, Dispatcher, Routee, Router, Running, Worker};

    /// A snapshot at a second, at which a pool of two routees has handled these numbers of messages.
    fn snapshot(at: f64, handled: [u64; 2]) -> Snapshot {
        let routees = [("a", 7), ("b", 8)].iter().zip(handled);
        let mut snapshot =
            Snapshot { system: "shop".to_owned(), at, sequence: at as u64, ..Snapshot::default() };
        snapshot.ledger.handled = handled.iter().sum();
        snapshot.ledger.sent = snapshot.ledger.handled;
        snapshot.routers.push(Router {
            path: "/user/pool".to_owned(),
            routees: routees
                .clone()
                .map(|((identity, uid), handled)| Routee {
                    identity: (*identity).to_owned(),
                    uid: *uid,
                    load: "idle".to_owned(),
                    handled,
                    ..Routee::default()
                })
                .collect(),
            ..Router::default()
        });
        snapshot.actors = routees
            .map(|((name, uid), handled)| Actor {
                path: format!("/user/pool/{name}"),
                uid: *uid,
                handled,
                ..Actor::default()
            })
            .collect();
        snapshot.classes.push(Class {
            name: "pool".to_owned(),
            handled: snapshot.ledger.handled,
            wait: vec![(1000, snapshot.ledger.handled)],
            ..Class::default()
        });
        snapshot
    }

    fn read(model: &mut Model, snapshot: Snapshot) {
        model.take(Reading { at: snapshot.at + 100.0, outcome: Ok(snapshot) });
    }

    fn miss(model: &mut Model, at: f64, text: &str) {
        model.take(Reading { at, outcome: Err(text.to_owned()) });
    }

    #[test]
    fn rates_are_by_the_clock_of_the_system() {
        let mut model = Model::default();
        read(&mut model, snapshot(1.0, [10, 10]));
        assert_eq!(model.rate(|snapshot| snapshot.ledger.handled), None);
        assert_eq!(model.span(), None);
        read(&mut model, snapshot(3.0, [40, 20]));
        assert_eq!(model.span(), Some(2.0));
        assert_eq!(model.rate(|snapshot| snapshot.ledger.handled), Some(20.0));
        assert_eq!(model.handled.last(), Some(20.0));
        let actors = &model.snapshot().expect("read").actors;
        assert_eq!(model.actors.rate(&actors[0]), Some(15.0));
        assert_eq!(model.actors.rate(&actors[1]), Some(5.0));
        assert_eq!(model.classes.get("pool").expect("a class").rates.last(), Some(20.0));
    }

    #[test]
    fn shares_are_parts_of_the_messages_of_an_interval() {
        let mut model = Model::default();
        read(&mut model, snapshot(1.0, [1000, 0]));
        read(&mut model, snapshot(2.0, [1030, 10]));
        let pool = model.routers.get("/user/pool").expect("a router");
        assert_eq!(pool.routees[0].shares.last(), Some(0.75));
        assert_eq!(pool.routees[1].shares.last(), Some(0.25));
        assert_eq!(pool.skew(), Some(1.5));
        assert_eq!((pool.rates.last(), pool.length()), (Some(40.0), 1));
        // Without messages there is no share.
        read(&mut model, snapshot(3.0, [1030, 10]));
        let pool = model.routers.get("/user/pool").expect("a router");
        assert_eq!((pool.routees[0].shares.last(), pool.rates.last()), (None, Some(0.0)));
        assert_eq!((pool.skew(), pool.length()), (None, 2));
    }

    #[test]
    fn a_new_routee_has_a_share_from_its_second_reading_on_and_a_gone_one_keeps_its_past() {
        let mut model = Model::default();
        read(&mut model, snapshot(1.0, [0, 0]));
        read(&mut model, snapshot(2.0, [10, 10]));
        for (at, handled) in [(3.0, 500), (4.0, 520)] {
            let mut resized = snapshot(at, [20 * (at as u64 - 2), 10]);
            resized.routers[0].routees[1] = Routee {
                identity: "c".to_owned(),
                uid: 9,
                load: "busy".to_owned(),
                handled,
                ..Routee::default()
            };
            read(&mut model, resized);
        }
        let pool = model.routers.get("/user/pool").expect("a router");
        let [a, c, gone] = &pool.routees[..] else { panic!("{pool:?}") };
        assert_eq!((a.shares.back(1), c.shares.back(1)), (Some(1.0), None));
        assert_eq!((a.shares.last(), c.shares.last()), (Some(0.5), Some(0.5)));
        assert_eq!((gone.identity.as_str(), gone.load.as_deref()), ("b", None));
        assert_eq!((gone.shares.last(), gone.shares.back(2)), (None, Some(0.5)));
        assert_eq!((pool.shared_among(0), pool.shared_among(1), pool.shared_among(2)), (2, 1, 2));
    }

    #[test]
    fn gone_routees_leave_when_their_past_is_too_old() {
        let mut model = Model::default();
        read(&mut model, snapshot(1.0, [0, 0]));
        read(&mut model, snapshot(2.0, [10, 10]));
        for at in 0..HISTORY + 1 {
            let mut smaller = snapshot(3.0 + at as f64, [20, 10]);
            smaller.routers[0].routees.pop();
            read(&mut model, smaller);
        }
        let pool = model.routers.get("/user/pool").expect("a router");
        assert_eq!(pool.routees.len(), 1, "{pool:?}");
    }

    #[test]
    fn a_server_that_is_away_leaves_the_last_picture_and_gaps() {
        let mut model = Model::default();
        read(&mut model, snapshot(1.0, [0, 0]));
        read(&mut model, snapshot(2.0, [10, 10]));
        miss(&mut model, 103.0, "cannot connect");
        miss(&mut model, 104.0, "still not");
        assert_eq!(model.snapshot().map(|snapshot| snapshot.at), Some(2.0));
        assert_eq!(model.fault(), Some(&ReadFault { text: "still not".to_owned(), since: 103.0 }));
        assert_eq!(
            (model.read_at(), model.tick(0), model.tick(2)),
            (Some(102.0), Some(Tick::NoAnswer), Some(Tick::Snapshot))
        );
        let pool = model.routers.get("/user/pool").expect("a router");
        assert_eq!((pool.routees[0].shares.last(), pool.routees[0].shares.back(2)), (None, Some(0.5)));

        // The same run goes on: its counts have grown over the whole gap.
        read(&mut model, snapshot(6.0, [30, 30]));
        assert_eq!((model.fault(), model.new_starts()), (None, 0));
        assert_eq!(model.handled.last(), Some(10.0));
    }

    #[test]
    fn counts_that_fall_begin_anew_without_negative_rates() {
        let mut model = Model::default();
        read(&mut model, snapshot(50.0, [1000, 1000]));
        read(&mut model, snapshot(51.0, [1100, 1100]));
        miss(&mut model, 152.0, "cannot connect");
        model.take(Reading { at: 153.0, outcome: Ok(snapshot(1.0, [5, 5])) });
        assert_eq!(
            (model.new_starts(), model.new_start_at(), model.tick(0)),
            (1, Some(153.0), Some(Tick::NewStart))
        );
        assert_eq!((model.handled.last(), model.span()), (None, None));
        let pool = model.routers.get("/user/pool").expect("a router");
        assert_eq!((pool.rates.last(), pool.routees[0].shares.last()), (None, None));
        let class = model.classes.get("pool").expect("a class");
        assert_eq!((class.rates.last(), class.rates.back(2)), (None, Some(200.0)));

        model.take(Reading { at: 154.0, outcome: Ok(snapshot(2.0, [6, 5])) });
        assert_eq!((model.new_starts(), model.handled.last()), (1, Some(1.0)));
        assert_eq!(model.classes.get("pool").expect("a class").wait_lately.count(), 1);
    }

    #[test]
    fn actors_that_the_server_counts_since_a_moment_have_rates_at_once() {
        let mut model = Model::default();
        let mut since = snapshot(1.0, [10, 20]);
        since.actors_since = Some(2.0);
        read(&mut model, since.clone());
        assert_eq!(model.actors.rate(&since.actors[1]), Some(10.0));
        // The next snapshot counts from the beginning, and cannot be compared.
        read(&mut model, snapshot(2.0, [10, 20]));
        assert_eq!(model.actors.rate(&since.actors[1]), None);
    }

    #[test]
    fn another_actor_of_the_same_number_has_a_past_of_its_own() {
        let mut model = Model::default();
        read(&mut model, snapshot(1.0, [10, 20]));
        let mut other = snapshot(2.0, [20, 30]);
        other.actors[0].path = "/user/other".to_owned();
        read(&mut model, other.clone());
        assert_eq!(model.actors.rate(&other.actors[0]), None);
        assert_eq!(model.actors.rate(&other.actors[1]), Some(10.0));
    }

    #[test]
    fn a_thread_that_stays_in_its_turn_is_seen_since_when() {
        let mut model = Model::default();
        let running = Some(Running { path: "/user/slow".to_owned(), uid: 3, class: "slow".to_owned() });
        for (at, turns) in [(1.0, 10), (2.0, 12), (3.0, 12), (4.0, 12)] {
            let mut now = snapshot(at, [0, 0]);
            let worker = Worker {
                thread: "w-0".to_owned(),
                turns,
                searching: at / 2.0,
                running: running.clone(),
                ..Worker::default()
            };
            now.dispatchers.push(Dispatcher {
                name: "default".to_owned(),
                workers: vec![worker],
                ..Dispatcher::default()
            });
            read(&mut model, now);
        }
        let worker = model.workers.get("default", "w-0").expect("a thread");
        assert_eq!(worker.in_turn_since, Some(2.0));
        assert_eq!((worker.turns.last(), worker.turns.back(2)), (Some(0.0), Some(2.0)));
        assert_eq!(worker.searching.last(), Some(0.5));
    }
}
