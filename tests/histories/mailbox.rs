//! Mailboxes as queues: several threads send, one actor receives, and some end it.
//!
//! Planted faults that were found: a bounded mailbox that takes one message more; a poison pill that acts at once; a stop
//! that waits in the queue; a sorting mailbox that leaves urgent messages where they arrived.

use crate::recorder::{Clock, Dice, LONG, Timed, assert_linearizable, in_turn, is_linearizable, together};
use pointsman::SendError;
use pointsman::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use todc_utils::specifications::Specification;

/// Of each kind.
const HISTORIES: u64 = if cfg!(debug_assertions) { 300 } else { 4_000 };

/// Its number within the history, from which all else of it follows.
type Message = u8;

/// How urgent a message is where urgent ones overtake.
fn rank(message: Message) -> i64 {
    i64::from(message % 3)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// Accepted.
    Tell(Message),
    /// Refused, since the mailbox is full.
    Refused(Message),
    /// Refused, since the actor has ended.
    Closed(Message),
    /// Taken by the actor.
    Receive(Message),
    Poison,
    Stop,
    /// The actor ends: it takes no more messages from now on.
    End,
}

use Operation::*;

/// An object that is one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Queue {
    /// `None` is a poison pill.
    waiting: VecDeque<Option<Message>>,
    is_stopped: bool,
    has_ended: bool,
}

impl Queue {
    fn len(&self) -> usize {
        self.waiting.iter().flatten().count()
    }

    /// What all mailboxes do alike; `None` if that is not legal.
    fn after(&self, operation: Operation) -> Option<Self> {
        let mut after = self.clone();
        let legal = match operation {
            Tell(message) => {
                after.waiting.push_back(Some(message));
                !self.has_ended
            }
            Refused(_) => false,
            Closed(_) => self.has_ended,
            Receive(message) => {
                let first = after.waiting.pop_front();
                !self.is_stopped && !self.has_ended && first == Some(Some(message))
            }
            Poison => {
                after.waiting.push_back(None);
                true
            }
            Stop => {
                after.is_stopped = true;
                true
            }
            End => {
                after = Queue { has_ended: true, ..Queue::default() };
                self.is_stopped || self.waiting.front() == Some(&None)
            }
        };
        legal.then_some(after)
    }
}

fn applied(before: &Queue, after: Option<Queue>) -> (bool, Queue) {
    (after.is_some(), after.unwrap_or_else(|| before.clone()))
}

/// As many as there are, in the order sent.
struct Unbounded;

impl Specification for Unbounded {
    type State = Queue;
    type Operation = Operation;

    fn init() -> Queue {
        Queue::default()
    }

    fn apply(operation: &Operation, before: &Queue) -> (bool, Queue) {
        applied(before, before.after(*operation))
    }
}

/// At most so many; more are refused.
struct Bounded<const CAPACITY: usize>;

impl<const CAPACITY: usize> Specification for Bounded<CAPACITY> {
    type State = Queue;
    type Operation = Operation;

    fn init() -> Queue {
        Queue::default()
    }

    fn apply(operation: &Operation, before: &Queue) -> (bool, Queue) {
        let is_full = before.len() >= CAPACITY;
        match operation {
            Tell(_) if is_full => (false, before.clone()),
            Refused(_) => (is_full, before.clone()),
            _ => applied(before, before.after(*operation)),
        }
    }
}

/// At most so many; one more displaces the oldest.
struct Ring<const CAPACITY: usize>;

impl<const CAPACITY: usize> Specification for Ring<CAPACITY> {
    type State = Queue;
    type Operation = Operation;

    fn init() -> Queue {
        Queue::default()
    }

    fn apply(operation: &Operation, before: &Queue) -> (bool, Queue) {
        let mut queue = before.clone();
        if matches!(operation, Tell(_)) && queue.len() >= CAPACITY {
            queue.waiting.pop_front();
        }
        let after = queue.after(*operation);
        applied(before, after)
    }
}

/// The most urgent one first, and equal ones in the order sent.
struct Sorted;

impl Specification for Sorted {
    type State = Queue;
    type Operation = Operation;

    fn init() -> Queue {
        Queue::default()
    }

    fn apply(operation: &Operation, before: &Queue) -> (bool, Queue) {
        let after = before.after(*operation).map(|mut after| {
            // Stable. A pill's turn comes when what was there before it is handled.
            after.waiting.make_contiguous().sort_by_key(|message| message.map_or(i64::MAX, rank));
            after
        });
        applied(before, after)
    }
}

/// Receives, and records it.
struct Receiver {
    clock: Arc<Clock>,
    /// Since when it may have taken its next message.
    since: u64,
    dice: Dice,
    history: Vec<Timed<Operation>>,
    report: Sender<(Vec<Timed<Operation>>, u64)>,
}

impl Actor for Receiver {
    type Message = Message;

    fn receive(&mut self, message: Message, _: &mut Context<Message>) -> HandlerResult {
        let returned = self.clock.now();
        self.history.push(Timed { called: self.since, returned, operation: Receive(message) });
        self.dice.pause();
        self.since = self.clock.now();
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Message>) {
        let _ = self.report.send((std::mem::take(&mut self.history), self.since));
    }
}

/// What the threads of one history do.
#[derive(Clone, Copy)]
struct Plan {
    senders: u8,
    /// By each sender.
    messages: u8,
    /// The senders end the actor themselves now and then.
    some_end: bool,
}

/// Lets threads send to an actor with this mailbox, and gives all that happened.
fn record(system: &SystemRef, mailbox: &Mailbox, plan: Plan, seed: u64) -> Vec<Timed<Operation>> {
    let clock = Arc::new(Clock::default());
    let (report, reports) = channel();
    let since = clock.now();
    let (of_actor, dice) = (clock.clone(), Dice::new(seed << 8));
    let recipe = move || Receiver {
        clock: of_actor.clone(),
        since,
        dice: dice.clone(),
        history: Vec::new(),
        report: report.clone(),
    };
    let actor: ActorRef<Message> =
        system.actor(&format!("receiver-{seed}")).mailbox(mailbox.clone()).spawn(recipe).expect("sound");
    let ended = actor.when_ended();
    let send = |sender: u8| {
        let (actor, clock) = (&actor, &clock);
        move || {
            let mut dice = Dice::new(seed << 8 | u64::from(sender + 1));
            let mut history = Vec::new();
            for number in 0..plan.messages {
                let message = sender * plan.messages + number;
                dice.pause();
                history.push(clock.time(
                    || actor.try_tell(message),
                    |told| match told {
                        Ok(()) => Tell(message),
                        Err(SendError::Full(_)) => Refused(message),
                        Err(SendError::Closed(_)) => Closed(message),
                        Err(other) => panic!("{other}"),
                    },
                ));
                if plan.some_end && dice.roll(3 * u64::from(plan.messages)) == 0 {
                    history.push(match dice.roll(3) {
                        0 => clock.time(|| actor.stop(), |()| Stop),
                        _ => clock.time(|| actor.poison(), |()| Poison),
                    });
                }
            }
            history
        }
    };
    let threads = (0..plan.senders).map(|sender| Box::new(send(sender)) as Box<_>).collect();
    let mut history = together(threads);
    history.push(clock.time(|| actor.poison(), |()| Poison));
    let (received, since) = reports.recv_timeout(LONG).expect("it ends");
    history.extend(received);
    ended.wait().expect("it ends");
    history.push(Timed { called: since, returned: clock.now(), operation: End });
    history
}

fn check<S: Specification<Operation = Operation>>(
    mailbox: &Mailbox,
    plan: Plan,
    change: impl Fn(&mut [Timed<Operation>]),
) {
    let system = System::builder("histories")
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .build()
        .expect("sound");
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let mut history = record(&system, mailbox, plan, seed);
        refused += history.iter().filter(|timed| matches!(timed.operation, Refused(_))).count();
        change(&mut history);
        assert_linearizable::<S>(history);
    }
    if mailbox.to_string().contains("Reject") {
        assert!(refused > 0, "no mailbox was ever full");
    }
    let ledger = system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
}

const THREE: Plan = Plan { senders: 3, messages: 9, some_end: false };
const THREE_THAT_END: Plan = Plan { some_end: true, ..THREE };

#[test]
fn a_mailbox_is_a_queue() {
    check::<Unbounded>(&Mailbox::unbounded(), THREE, |_| {});
}

#[test]
fn a_mailbox_is_a_queue_until_a_pill_in_it_or_a_stop_that_overtakes() {
    check::<Unbounded>(&Mailbox::unbounded(), THREE_THAT_END, |_| {});
}

#[test]
fn a_bounded_mailbox_is_a_queue_that_refuses_when_it_is_full_and_only_then() {
    let one = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    check::<Bounded<1>>(&one, THREE, |_| {});
    let three = Mailbox::bounded(3).on_full(OverflowPolicy::Reject);
    check::<Bounded<3>>(&three, THREE_THAT_END, until_the_message_in_progress);
}

/// An owner looks for control, takes the next message, and then counts it out of the mailbox. A sender that comes between
/// the look and the count finds the mailbox full, although a stop that has come since does not hold up this message. So
/// the stop may act until this message is received, and no longer.
fn until_the_message_in_progress(history: &mut [Timed<Operation>]) {
    let received: Vec<u64> = history
        .iter()
        .filter(|timed| matches!(timed.operation, Receive(_)))
        .map(|timed| timed.returned)
        .collect();
    for stop in history.iter_mut().filter(|timed| timed.operation == Stop) {
        let next = received.iter().filter(|returned| **returned > stop.called).min();
        stop.returned = stop.returned.max(next.copied().unwrap_or(0));
    }
}

#[test]
fn a_mailbox_that_drops_its_oldest_drops_no_other() {
    let ring = Mailbox::bounded(2).on_full(OverflowPolicy::DropOldest);
    check::<Ring<2>>(&ring, Plan { messages: 6, ..THREE }, |_| {});
}

/// A message has arrived when it and all whose places are before it are there: not at the return of its own `tell` if
/// another one that was called before is still under way.
fn until_arrival(history: &mut [Timed<Operation>]) {
    let tells: Vec<(u64, u64)> = history
        .iter()
        .filter(|timed| matches!(timed.operation, Tell(_)))
        .map(|timed| (timed.called, timed.returned))
        .collect();
    for timed in history.iter_mut().filter(|timed| matches!(timed.operation, Tell(_))) {
        let before = tells.iter().filter(|(called, _)| *called < timed.returned);
        timed.returned = before.map(|(_, returned)| *returned).max().expect("itself");
    }
}

#[test]
fn in_a_sorting_mailbox_the_most_urgent_that_has_arrived_is_next() {
    let plan = Plan { senders: 2, messages: 7, ..THREE };
    check::<Sorted>(&Mailbox::priority(|message: &Message| rank(*message)), plan, until_arrival);
    let lanes = Mailbox::lanes(3, |message: &Message| rank(*message) as usize);
    check::<Sorted>(&lanes, plan, until_arrival);
}

#[test]
fn histories_of_no_queue_are_rejected() {
    let legal = |history: &[Operation]| is_linearizable::<Bounded<2>>(&in_turn(history.iter().copied()));
    assert!(legal(&[Tell(1), Tell(2), Refused(3), Receive(1), Tell(4), Receive(2), Receive(4)]));
    assert!(!legal(&[Tell(1), Tell(2), Receive(2), Receive(1)]), "out of order");
    assert!(!legal(&[Tell(1), Receive(1), Receive(1)]), "twice");
    assert!(!legal(&[Tell(1), Tell(2), Tell(3)]), "beyond the capacity");
    assert!(!legal(&[Tell(1), Refused(2)]), "refused without need");
    assert!(legal(&[Tell(1), Poison, Tell(2), Receive(1), End, Closed(3)]));
    assert!(!legal(&[Tell(1), Poison, Tell(2), Receive(1), Receive(2)]), "received after the pill");
    assert!(!legal(&[Tell(1), Stop, Receive(1)]), "begun after the stop");
    assert!(!legal(&[Tell(1), Poison, End]), "a pill that overtakes");
    assert!(!legal(&[Poison, End, Tell(1)]), "taken after the end");
    let sorted = |history: &[Operation]| is_linearizable::<Sorted>(&in_turn(history.iter().copied()));
    assert!(sorted(&[Tell(2), Tell(5), Tell(0), Receive(0), Receive(2), Receive(5)]));
    assert!(!sorted(&[Tell(2), Tell(0), Receive(2), Receive(0)]), "overtaken by what is less urgent");
    assert!(!sorted(&[Tell(2), Tell(5), Receive(5), Receive(2)]), "equal ones in another order");
    let ring = |history: &[Operation]| is_linearizable::<Ring<1>>(&in_turn(history.iter().copied()));
    assert!(ring(&[Tell(1), Tell(2), Receive(2)]));
    assert!(!ring(&[Tell(1), Tell(2), Receive(1), Receive(2)]), "nothing was displaced");
}
