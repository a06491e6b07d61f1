//! The checker is checked: histories of a plain model break no promise, and each fault that is planted in one is reported as a
//! breach of its own promise.

use crate::checker::{Account, Child, Event, Incarnation, Log, Outcome, Start, check};
use crate::checker_children::check_last_messages;
use crate::random::Random;
use std::collections::VecDeque;

/// Two nodes without anything between: a queue for each direction, which may lose what it has. Each node has two actors; the
/// actors of the second node are watched by those of the first, and end after their last message. The first node has made two
/// actors on the second one, of which one is restarted and ends, and the other one lives until its node is lost.
struct Model {
    logs: [Log; 2],
    queues: [VecDeque<Event>; 2],
    accounts: [Account; 2],
    random: Random,
    next: u64,
}

fn start(node: u32) -> Start {
    Start { node, uid: 0xa0 + u64::from(node) }
}

fn child(number: u64) -> Child {
    Child { by: start(0), number }
}

fn actor(node: u32, place: u32) -> Incarnation {
    Incarnation { start: start(node), place, uid: 1 + place }
}

impl Model {
    fn run(seed: u64, lossy: bool) -> Vec<Log> {
        let log =
            |node| Log { process: node as usize, start: start(node), events: Vec::new(), is_cut_off: false };
        let mut model = Self {
            logs: [log(0), log(1)],
            queues: Default::default(),
            accounts: Default::default(),
            random: Random::new(seed),
            next: 1,
        };
        for place in 0..2 {
            let watch = Event::Watched { watcher: actor(0, place), target: actor(1, place) };
            model.logs[0].events.push(watch);
        }
        for child in [child(1), child(2)] {
            model.logs[0].events.push(Event::Deployed { child });
            model.logs[1].events.push(Event::StateMade { child, is_restart: false });
        }
        for _ in 0..200 {
            model.step(lossy);
        }
        model.end_children(lossy);
        model.end(lossy);
        model.logs.to_vec()
    }

    fn step(&mut self, lossy: bool) {
        let side = self.random.below(2) as usize;
        match self.random.below(8) {
            0..=3 => {
                let (from, to) = (self.any_actor(side), self.any_actor(1 - side));
                let number = self.number();
                self.logs[side].events.push(Event::Sent { from, to, number, accepted: true });
                self.queues[side].push_back(Event::Delivered { at: to, from, to, number });
                self.accounts[side].shipped += 1;
            }
            4 => {
                let (asker, to) = (self.any_actor(side), self.any_actor(1 - side));
                let ask = self.number();
                self.logs[side].events.push(Event::Asked { asker, to, ask });
                let outcome = if lossy && self.random.below(4) == 0 {
                    Outcome::Failed
                } else {
                    self.logs[1 - side].events.push(Event::AskHandled { at: to, ask });
                    Outcome::Reply { of: ask }
                };
                self.logs[side].events.push(Event::AskEnded { ask, outcome });
            }
            _ => self.deliver(side, lossy),
        }
    }

    fn deliver(&mut self, side: usize, lossy: bool) {
        let Some(event) = self.queues[side].pop_front() else { return };
        if lossy && self.random.below(5) == 0 {
            self.accounts[side].lost += 1;
            return;
        }
        self.accounts[side].confirmed += 1;
        self.logs[1 - side].events.push(event);
    }

    fn end_children(&mut self, lossy: bool) {
        let (ended, last) = (child(1), child(2));
        self.logs[1].events.extend([
            Event::WorkerGot { child: ended, number: 1 },
            Event::WorkerGot { child: ended, number: 2 },
            Event::StateDropped { child: ended, is_told: true },
            Event::StateMade { child: ended, is_restart: true },
            Event::StateDropped { child: ended, is_told: true },
            Event::StateDropped { child: last, is_told: true },
            Event::StateMade { child: last, is_restart: true },
            Event::WorkerSent { child: ended, number: 1 },
            Event::WorkerSent { child: ended, number: 2 },
        ]);
        self.logs[0].events.extend([1, 2].map(|number| Event::WatcherGot { child: ended, number }));
        self.logs[0].events.extend([Event::ChildEnded { child: ended }, Event::NameFreed { child: ended }]);
        if lossy {
            self.logs[0].events.push(Event::ChildEnded { child: last });
        } else {
            self.logs[0].events.push(Event::NameTaken { child: last });
            self.logs[0].events.push(Event::ChildLives { child: last, restarts: 1, last: 3 });
            self.logs[1].events.push(Event::WorkerGot { child: last, number: 3 });
            self.logs[1].events.push(Event::WorkerLives { child: last });
        }
    }

    /// The first actor of the second node ends, and then all that is under way arrives.
    fn end(&mut self, lossy: bool) {
        self.logs[1].events.push(Event::Ended { actor: actor(1, 0) });
        while self.queues.iter().any(|queue| !queue.is_empty()) {
            self.deliver(0, lossy);
            self.deliver(1, lossy);
        }
        let told = Event::Terminated { watcher: actor(0, 0), target: actor(1, 0), node_down: false };
        self.logs[0].events.push(told);
        if lossy {
            let told = Event::Terminated { watcher: actor(0, 1), target: actor(1, 1), node_down: true };
            self.logs[0].events.extend([Event::Down { of: start(1) }, told]);
        }
        for side in 0..2 {
            let (own, other) = (start(side as u32), start(1 - side as u32));
            debug_assert_eq!(self.logs[side].start, own);
            let envelopes = self.accounts[1 - side].confirmed;
            self.logs[side].events.extend([
                Event::Books { balance: 0 },
                Event::Link { to: other, account: self.accounts[side] },
                Event::Received { from: other, envelopes, refused: 0 },
            ]);
        }
    }

    fn any_actor(&mut self, side: usize) -> Incarnation {
        actor(side as u32, self.random.below(2) as u32)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn promises(logs: &[Log]) -> Vec<&'static str> {
    check(logs).into_iter().map(|violation| violation.promise).collect()
}

/// Finds the first event of the log that `is_it` picks.
fn find(log: &Log, is_it: impl Fn(&Event) -> bool) -> usize {
    log.events.iter().position(is_it).expect("the history has such an event")
}

fn is_delivery(event: &Event) -> bool {
    matches!(event, Event::Delivered { .. })
}

/// The positions of two deliveries of one pair, in this order.
fn two_of_a_pair(log: &Log) -> (usize, usize) {
    let pair = |at: usize| match log.events[at] {
        Event::Delivered { from, to, .. } => Some((from, to)),
        _ => None,
    };
    let found = (0..log.events.len()).find_map(|one| {
        let of_one = pair(one)?;
        let other = (one + 1..log.events.len()).find(|other| pair(*other) == Some(of_one))?;
        Some((one, other))
    });
    found.expect("the history has two messages of a pair")
}

#[test]
fn histories_of_the_model_keep_all_promises() {
    for seed in 0..500 {
        for lossy in [false, true] {
            let violations = check(&Model::run(seed, lossy));
            assert!(violations.is_empty(), "seed {seed}, lossy {lossy}: {violations:#?}");
        }
    }
}

/// A fault, the promise that it breaks, and how it is planted in the logs of the model.
type Plant = (&'static str, &'static str, fn(&mut Vec<Log>));

const FAULTS: &[Plant] = &[
    ("a message is delivered twice", "D3", |logs| {
        let at = find(&logs[0], is_delivery);
        let event = logs[0].events[at];
        logs[0].events.insert(at, event);
    }),
    ("two messages of a pair change places", "D3", |logs| {
        let (one, other) = two_of_a_pair(&logs[1]);
        logs[1].events.swap(one, other);
    }),
    ("a message comes to the next incarnation", "D4", |logs| {
        let at = find(&logs[1], is_delivery);
        if let Event::Delivered { at, .. } = &mut logs[1].events[at] {
            at.uid += 10;
        }
    }),
    ("a message comes to another node", "D4", |logs| {
        let at = find(&logs[1], is_delivery);
        let event = logs[1].events.remove(at);
        logs[0].events.insert(0, event);
    }),
    ("a message was never sent", "D4", |logs| {
        let at = find(&logs[1], is_delivery);
        if let Event::Delivered { number, .. } = &mut logs[1].events[at] {
            *number += 100_000;
        }
    }),
    ("a refused message is delivered", "D4", |logs| {
        let at = find(&logs[1], is_delivery);
        let Event::Delivered { from, to, number, .. } = logs[1].events[at] else { unreachable!() };
        let sent = Event::Sent { from, to, number, accepted: true };
        let at = find(&logs[0], |event| *event == sent);
        logs[0].events[at] = Event::Sent { from, to, number, accepted: false };
    }),
    ("a message disappears", "D1", |logs| {
        let at = find(&logs[1], is_delivery);
        logs[1].events.remove(at);
    }),
    ("a loss is in no account", "D1", |logs| {
        for event in &mut logs[0].events {
            if let Event::Link { account, .. } = event {
                account.confirmed -= 1;
            }
        }
    }),
    ("a message is in two accounts", "D1", |logs| {
        for event in &mut logs[0].events {
            if let Event::Link { account, .. } = event {
                account.dead_here += 1;
            }
        }
    }),
    ("more is confirmed than has come", "D1", |logs| {
        for event in &mut logs[1].events {
            if let Event::Received { envelopes, refused, .. } = event {
                *envelopes += 1;
                *refused += 1;
            }
        }
    }),
    ("a ledger is off", "D2", |logs| {
        for event in &mut logs[1].events {
            if let Event::Books { balance } = event {
                *balance = -1;
            }
        }
    }),
    ("an end is told twice", "D8", |logs| {
        let at = find(&logs[0], |event| matches!(event, Event::Terminated { .. }));
        let event = logs[0].events[at];
        logs[0].events.push(event);
    }),
    ("an end is told after the watch was taken back", "D8", |logs| {
        let watch = Event::Unwatched { watcher: actor(0, 0), target: actor(1, 0) };
        let at = find(&logs[0], |event| matches!(event, Event::Terminated { .. }));
        logs[0].events.insert(at, watch);
    }),
    ("an end is never told", "D8", |logs| {
        logs[0].events.retain(|event| !matches!(event, Event::Terminated { node_down: false, .. }));
    }),
    ("the loss of a node is never told", "D8", |logs| {
        logs[0].events.retain(|event| !matches!(event, Event::Terminated { .. }));
        logs[0].events.push(Event::Down { of: start(1) });
    }),
    ("a message comes behind the notice of its sender's end", "D9", |logs| {
        let from_ended = |event: &Event| matches!(event, Event::Delivered { at, from, .. } if (*at, *from) == (actor(0, 0), actor(1, 0)));
        let at = find(&logs[0], from_ended);
        let event = logs[0].events.remove(at);
        logs[0].events.push(event);
    }),
    ("the notice of an end overtakes a last message, which never comes", "D9", |logs| {
        let from_ended = |event: &Event| matches!(event, Event::Delivered { at, from, .. } if (*at, *from) == (actor(0, 0), actor(1, 0)));
        let at = logs[0].events.iter().rposition(from_ended).expect("the actor has sent something");
        logs[0].events.remove(at);
    }),
    ("a message of an actor comes behind the notice of the child's end", "D9", |logs| {
        let at = find(&logs[0], |event| matches!(event, Event::WatcherGot { number: 2, .. }));
        let event = logs[0].events.remove(at);
        logs[0].events.push(event);
    }),
    ("a message comes from a node that was declared down here", "D10", |logs| {
        logs[1].events.insert(0, Event::Down { of: start(0) });
    }),
    ("a message of a node comes that had declared the other down", "D10", |logs| {
        logs[0].events.insert(0, Event::Down { of: start(1) });
        logs[0].events.retain(|event| !is_delivery(event));
    }),
    ("a child ends twice", "D18", |logs| logs[0].events.push(Event::ChildEnded { child: child(1) })),
    ("a child never ends", "D18", |logs| {
        logs[0].events.retain(|event| !matches!(event, Event::ChildEnded { .. }));
    }),
    ("a child ends and is a child still", "D18", |logs| {
        logs[0].events.insert(0, Event::ChildEnded { child: child(2) });
    }),
    ("a child was never made", "D18", |logs| {
        logs[0].events.retain(|event| !matches!(event, Event::Deployed { .. }));
    }),
    ("the name of a child stays taken", "D18", |logs| {
        logs[0].events.push(Event::NameTaken { child: child(1) });
    }),
    ("a child lives without its actor", "D18", |logs| {
        logs[1].events.retain(|event| !matches!(event, Event::WorkerLives { .. }));
    }),
    ("a child has two actors", "D18", |logs| logs[1].events.push(Event::WorkerLives { child: child(2) })),
    ("an actor outlives its child", "D18", |logs| {
        logs[1].events.push(Event::WorkerLives { child: child(1) });
    }),
    ("an actor outlives the process of its parent", "D18", |logs| {
        logs[0].is_cut_off = true;
    }),
    ("an actor lives on a node that has declared its parent's node down", "D18", |logs| {
        logs[1].events.push(Event::Down { of: start(0) });
    }),
    ("a state is dropped without `stopped`", "D18", |logs| {
        let at = find(&logs[1], |event| matches!(event, Event::StateDropped { .. }));
        logs[1].events[at] = Event::StateDropped { child: child(1), is_told: false };
    }),
    ("an actor is not restarted", "D18", |logs| {
        logs[1].events.retain(|event| !matches!(event, Event::StateMade { is_restart: true, .. }));
    }),
    ("an actor is restarted on its own", "D18", |logs| {
        logs[1].events.push(Event::StateMade { child: child(2), is_restart: true });
    }),
    ("an actor is suspended for ever", "D18", |logs| {
        logs[1].events.retain(|event| *event != Event::WorkerGot { child: child(2), number: 3 });
    }),
    ("a message comes to an actor twice", "D18", |logs| {
        logs[1].events.push(Event::WorkerGot { child: child(1), number: 2 });
    }),
    ("two messages for an actor change places", "D18", |logs| {
        let at = find(&logs[1], |event| matches!(event, Event::WorkerGot { .. }));
        logs[1].events.swap(at, at + 1);
    }),
    ("a message of an actor comes to its watcher twice", "D18", |logs| {
        let at = find(&logs[0], |event| matches!(event, Event::WatcherGot { .. }));
        let event = logs[0].events[at];
        logs[0].events.insert(at, event);
    }),
    ("an ask ends twice", "asks", |logs| {
        let at = find(&logs[0], |event| matches!(event, Event::AskEnded { .. }));
        let event = logs[0].events[at];
        logs[0].events.push(event);
    }),
    ("an ask never ends", "asks", |logs| {
        let at = find(&logs[0], |event| matches!(event, Event::AskEnded { .. }));
        logs[0].events.remove(at);
    }),
    ("an ask gets the reply of another", "asks", |logs| {
        let at =
            find(&logs[0], |event| matches!(event, Event::AskEnded { outcome: Outcome::Reply { .. }, .. }));
        if let Event::AskEnded { outcome: Outcome::Reply { of }, .. } = &mut logs[0].events[at] {
            *of += 100_000;
        }
    }),
    ("an ask has a reply and was never handled", "asks", |logs| {
        let at = find(&logs[1], |event| matches!(event, Event::AskHandled { .. }));
        logs[1].events.remove(at);
    }),
    ("an ask is handled twice", "asks", |logs| {
        let at = find(&logs[1], |event| matches!(event, Event::AskHandled { .. }));
        let event = logs[1].events[at];
        logs[1].events.push(event);
    }),
    ("an ask is handled that was never asked", "asks", |logs| {
        logs[1].events.push(Event::AskHandled { at: actor(1, 0), ask: 100_000 });
    }),
    ("an ask is handled by the next incarnation", "D4", |logs| {
        let at = find(&logs[1], |event| matches!(event, Event::AskHandled { .. }));
        if let Event::AskHandled { at, .. } = &mut logs[1].events[at] {
            at.uid += 10;
        }
    }),
];

#[test]
fn each_planted_fault_is_reported_as_a_breach_of_its_promise() {
    for (fault, promise, plant) in FAULTS {
        for seed in 0..20 {
            let mut logs = Model::run(seed, false);
            plant(&mut logs);
            let found = promises(&logs);
            assert!(found.contains(promise), "{fault}, seed {seed}: {found:?}");
        }
    }
    // Each promise has a fault.
    for promise in ["D1", "D2", "D3", "D4", "D8", "D9", "D10", "D18", "asks"] {
        assert!(FAULTS.iter().any(|(_, of, _)| *of == promise), "{promise}");
    }
}

#[test]
fn a_last_message_that_the_notice_of_an_end_has_overtaken_is_missing() {
    for seed in 0..20 {
        let mut logs = Model::run(seed, false);
        assert_eq!(check_last_messages(&logs), [], "seed {seed}");
        logs[0].events.retain(|event| !matches!(event, Event::WatcherGot { number: 2, .. }));
        let found = check_last_messages(&logs);
        assert!(matches!(&found[..], [one] if one.promise == "D9"), "seed {seed}: {found:?}");
    }
}

/// The log of a killed process says nothing of its last moments, which is no breach.
#[test]
fn a_log_that_was_cut_off_is_not_held_to_what_it_cannot_tell() {
    for seed in 0..100 {
        let mut logs = Model::run(seed, true);
        let half = logs[0].events.len() / 2;
        logs[0].events.truncate(half);
        logs[0].is_cut_off = true;
        let violations = check(&logs);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        // What the other one has got is still checked.
        let at = find(&logs[1], is_delivery);
        let event = logs[1].events[at];
        logs[1].events.insert(at, event);
        assert!(promises(&logs).contains(&"D3"), "seed {seed}");
    }
}
