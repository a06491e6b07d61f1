//! The timers of one actor against a plain model: a queue, a list of what is set, and a clock.
//!
//! What an actor is told to set or cancel waits in its mailbox with the ticks that have come, so orders and ticks
//! meet in every way: cancelled or replaced while its tick is queued, set again by a late tick, gone with a state
//! that was restarted. The model is exact, also in the order of ticks that are due together.
//!
//! Planted faults that it was seen to find, shrunk to three or four commands: a name that is started anew without
//! cancelling the one that had it; timers that survive a restart; a fixed rate that does not skip what it has
//! missed.

use crate::support::{cases, fail};
use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use pointsman::timers::TimerKey;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Half a millisecond, since timers count whole ones: the unit of all times here.
const UNIT: Duration = Duration::from_micros(500);

const UNITS_PER_TICK: u64 = 2;

/// What the shortest period is taken for.
const SHORTEST: u64 = 2;

const NAMES: u64 = 3;

fn units(count: u64) -> Duration {
    UNIT * u32::try_from(count).expect("small")
}

/// What the actor is told.
#[derive(Debug, Clone)]
enum Order {
    Single {
        name: u64,
        delay: u64,
    },
    FixedDelay {
        name: u64,
        initial: u64,
        delay: u64,
    },
    FixedRate {
        name: u64,
        initial: u64,
        period: u64,
    },
    After {
        delay: u64,
    },
    Every {
        period: u64,
    },
    CancelNamed {
        name: u64,
    },
    CancelAllNamed,
    /// One that was set without a name, by any state so far.
    CancelKey {
        which: usize,
    },
    Fail {
        by_panic: bool,
    },
}

#[derive(Debug, Clone)]
enum Command {
    Tell(Order),
    /// The actor handles what it has.
    Rest,
    /// Time passes, and everything happens at its time.
    Advance(u64),
    /// Time passes at once.
    Jump(u64),
}

fn order() -> impl Strategy<Value = Order> {
    let (name, length) = (0..NAMES, 0..24_u64);
    prop_oneof![
        3 => (name.clone(), length.clone()).prop_map(|(name, delay)| Order::Single { name, delay }),
        2 => (name.clone(), length.clone(), length.clone())
            .prop_map(|(name, initial, delay)| Order::FixedDelay { name, initial, delay }),
        2 => (name.clone(), length.clone(), length.clone())
            .prop_map(|(name, initial, period)| Order::FixedRate { name, initial, period }),
        2 => length.clone().prop_map(|delay| Order::After { delay }),
        2 => length.prop_map(|period| Order::Every { period }),
        2 => name.prop_map(|name| Order::CancelNamed { name }),
        1 => Just(Order::CancelAllNamed),
        2 => any::<usize>().prop_map(|which| Order::CancelKey { which }),
        2 => any::<bool>().prop_map(|by_panic| Order::Fail { by_panic }),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        6 => order().prop_map(Command::Tell),
        2 => Just(Command::Rest),
        2 => (0..60_u64).prop_map(Command::Advance),
        2 => prop_oneof![4 => 0..60_u64, 1 => 0..2000_u64].prop_map(Command::Jump),
    ]
}

/// What is seen of the actor.
#[derive(Debug, PartialEq, Eq)]
enum Note {
    /// The timer set by this order, at this time.
    Rang {
        order: usize,
        at: Duration,
    },
    Cancelled(bool),
    /// Which names have timers, after each order.
    Active(Vec<bool>),
}

#[derive(Debug)]
enum Message {
    Order(usize, Order),
    Rang(usize),
}

struct Sleeper {
    notes: Sender<Note>,
    /// Of this state and those before it.
    keys: Arc<Mutex<Vec<TimerKey>>>,
}

impl Sleeper {
    fn obey(&mut self, number: usize, order: Order, ctx: &mut Context<Message>) -> HandlerResult {
        let mut keys = self.keys.lock().unwrap();
        let ring = move || Message::Rang(number);
        match order {
            Order::Single { name, delay } => _ = ctx.timers().named(name).once(units(delay), ring()),
            Order::FixedDelay { name, initial, delay } => {
                ctx.timers().named(name).fixed_delay(units(initial), units(delay), ring);
            }
            Order::FixedRate { name, initial, period } => {
                ctx.timers().named(name).fixed_rate(units(initial), units(period), ring);
            }
            Order::After { delay } => keys.push(ctx.after(units(delay), ring())),
            Order::Every { period } => keys.push(ctx.every(units(period), ring)),
            Order::CancelNamed { name } => self.notes.send(Note::Cancelled(ctx.timers().cancel(name)))?,
            Order::CancelAllNamed => ctx.timers().cancel_named(),
            Order::CancelKey { which } if keys.is_empty() => _ = which,
            Order::CancelKey { which } => {
                let key = &keys[which % keys.len()];
                self.notes.send(Note::Cancelled(ctx.timers().cancel(key)))?;
            }
            Order::Fail { by_panic } => {
                drop(keys);
                return Err(fail("as told", by_panic));
            }
        }
        let active = (0..NAMES).map(|name| ctx.timers().is_active(name)).collect();
        self.notes.send(Note::Active(active))?;
        Ok(())
    }
}

impl Actor for Sleeper {
    type Message = Message;
    fn receive(&mut self, message: Message, ctx: &mut Context<Message>) -> HandlerResult {
        match message {
            Message::Order(number, order) => self.obey(number, order, ctx),
            Message::Rang(order) => Ok(self.notes.send(Note::Rang { order, at: ctx.now() })?),
        }
    }
}

/// One that is set.
struct Timer {
    order: usize,
    name: Option<u64>,
    due: u64,
    then: Then,
    /// When it fires: by tick, and among equals in the order in which they were set. `None` once its tick is queued.
    fires: Option<(u64, u64)>,
}

#[derive(Clone, Copy)]
enum Then {
    Gone,
    DelayedBy(u64),
    Every(u64),
}

enum Queued {
    Order(usize, Order),
    /// Of the timer with this number.
    Tick(u64),
}

#[derive(Default)]
struct Model {
    now: u64,
    mailbox: VecDeque<Queued>,
    /// By numbers that are never used again.
    set: BTreeMap<u64, Timer>,
    numbers: u64,
    insertions: u64,
    keys: Vec<u64>,
    notes: Vec<Note>,
    /// How often something rang.
    ticked: u64,
}

impl Model {
    fn fires(&mut self, due: u64) -> Option<(u64, u64)> {
        self.insertions += 1;
        Some((due.div_ceil(UNITS_PER_TICK).max(self.now / UNITS_PER_TICK), self.insertions))
    }

    fn start(&mut self, order: usize, name: Option<u64>, delay: u64, then: Then) {
        self.set.retain(|_, timer| name.is_none() || timer.name != name);
        let due = self.now + delay;
        let fires = self.fires(due);
        self.numbers += 1;
        self.set.insert(self.numbers, Timer { order, name, due, then, fires });
        if name.is_none() {
            self.keys.push(self.numbers);
        }
    }

    fn cancel(&mut self, is_meant: impl Fn(u64, &Timer) -> bool) -> bool {
        let before = self.set.len();
        self.set.retain(|number, timer| !is_meant(*number, timer));
        self.set.len() < before
    }

    fn obey(&mut self, number: usize, order: Order) {
        match order {
            Order::Single { name, delay } => self.start(number, Some(name), delay, Then::Gone),
            Order::FixedDelay { name, initial, delay } => {
                self.start(number, Some(name), initial, Then::DelayedBy(delay.max(SHORTEST)));
            }
            Order::FixedRate { name, initial, period } => {
                self.start(number, Some(name), initial, Then::Every(period.max(SHORTEST)));
            }
            Order::After { delay } => self.start(number, None, delay, Then::Gone),
            Order::Every { period } => {
                let period = period.max(SHORTEST);
                self.start(number, None, period, Then::Every(period));
            }
            Order::CancelNamed { name } => {
                let cancelled = self.cancel(|_, timer| timer.name == Some(name));
                self.notes.push(Note::Cancelled(cancelled));
            }
            Order::CancelAllNamed => _ = self.cancel(|_, timer| timer.name.is_some()),
            Order::CancelKey { .. } if self.keys.is_empty() => {}
            Order::CancelKey { which } => {
                let key = self.keys[which % self.keys.len()];
                let cancelled = self.cancel(|number, _| number == key);
                self.notes.push(Note::Cancelled(cancelled));
            }
            Order::Fail { .. } => return self.set.clear(),
        }
        let is_active = |name| self.set.values().any(|timer| timer.name == Some(name));
        self.notes.push(Note::Active((0..NAMES).map(is_active).collect()));
    }

    fn tick(&mut self, number: u64) {
        let Some(mut timer) = self.set.remove(&number) else { return };
        self.ticked += 1;
        self.notes.push(Note::Rang { order: timer.order, at: units(self.now) });
        timer.due = match timer.then {
            Then::Gone => return,
            Then::DelayedBy(delay) => self.now + delay,
            Then::Every(period) => {
                let missed = (self.now - timer.due) / period;
                timer.due + (missed + 1) * period
            }
        };
        timer.fires = self.fires(timer.due);
        self.set.insert(number, timer);
    }

    fn rest(&mut self) {
        while let Some(queued) = self.mailbox.pop_front() {
            match queued {
                Queued::Order(number, order) => self.obey(number, order),
                Queued::Tick(number) => self.tick(number),
            }
        }
    }

    /// What is due now comes into the mailbox.
    fn fire(&mut self) {
        let tick = self.now / UNITS_PER_TICK;
        let mut due: Vec<((u64, u64), u64)> = Vec::new();
        for (number, timer) in &mut self.set {
            if timer.fires.is_some_and(|(at, _)| at <= tick) {
                due.extend(timer.fires.take().map(|fires| (fires, *number)));
            }
        }
        due.sort_unstable();
        self.mailbox.extend(due.into_iter().map(|(_, number)| Queued::Tick(number)));
    }

    fn jump(&mut self, by: u64) {
        self.now += by;
        self.fire();
    }

    fn advance(&mut self, by: u64) {
        let end = self.now + by;
        self.rest();
        while let Some((tick, _)) = self.set.values().filter_map(|timer| timer.fires).min() {
            if tick * UNITS_PER_TICK > end {
                break;
            }
            self.now = self.now.max(tick * UNITS_PER_TICK);
            self.fire();
            self.rest();
        }
        self.now = end;
    }
}

fn run(seed: u64, commands: Vec<Command>) {
    let system = TestSystem::with_seed(seed);
    let (sender, notes) = channel();
    let keys = Arc::new(Mutex::new(Vec::new()));
    let recipe = move || Sleeper { notes: sender.clone(), keys: keys.clone() };
    let sleeper =
        system.actor("sleeper").on_failure(pointsman::Strategy::default().quiet()).spawn(recipe).unwrap();
    system.run_until_idle();
    let mut model = Model::default();
    let mut told = 0;
    for (number, command) in commands.into_iter().enumerate() {
        match command {
            Command::Tell(order) => {
                told += 1;
                sleeper.tell(Message::Order(number, order.clone()));
                model.mailbox.push_back(Queued::Order(number, order));
                continue;
            }
            Command::Rest => {
                system.run_until_idle();
                model.rest();
            }
            Command::Advance(by) => {
                system.advance(units(by));
                model.advance(by);
            }
            Command::Jump(by) => {
                system.clock().advance(units(by));
                model.jump(by);
                continue;
            }
        }
        assert_eq!(notes.try_iter().collect::<Vec<_>>(), std::mem::take(&mut model.notes), "at {number}");
    }
    system.run_until_idle();
    model.rest();
    assert_eq!(notes.try_iter().collect::<Vec<_>>(), model.notes, "at the end");
    sleeper.stop();
    system.run_until_idle();
    system.advance(Duration::from_secs(1000));
    assert_eq!(notes.try_iter().count(), 0, "what has ended hears of no timer");
    let ledger = system.finish();
    assert_eq!((ledger.sent, ledger.handled, ledger.ticked), (told, told, model.ticked), "{ledger}");
}

proptest! {
    #![proptest_config(cases("tests/properties/timers.seeds"))]

    #[test]
    fn what_rings_and_when_is_what_the_list_of_timers_says(
        seed in any::<u64>(),
        commands in vec(command(), 1..60),
    ) {
        run(seed, commands);
    }
}
