//! The event stream: who is told what, and until when.

use crate::support::*;
use pointsman::dead_letters::SuppressedDeadLetter;
use pointsman::events::{EventGroup, EventStream, Subscription};
use pointsman::prelude::*;
use pointsman::{DeadLetter, DeadLetterReason};
use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, PartialEq)]
struct Opened(u32);

#[derive(Debug, Clone, PartialEq)]
struct Closed(u32);

#[derive(Debug, Clone, PartialEq)]
enum Door {
    Opened(u32),
    Closed(u32),
}

impl From<Opened> for Door {
    fn from(Opened(number): Opened) -> Self {
        Door::Opened(number)
    }
}

impl From<Closed> for Door {
    fn from(Closed(number): Closed) -> Self {
        Door::Closed(number)
    }
}

fn any_door() -> EventGroup<Door> {
    EventGroup::new().with::<Opened>().with::<Closed>()
}

/// Passes on what it gets.
struct Porter(Sender<Door>);

impl Actor for Porter {
    type Message = Door;
    fn receive(&mut self, message: Door, _: &mut Context<Door>) -> HandlerResult {
        self.0.send(message)?;
        Ok(())
    }
}

fn porter(stage: &Stage) -> (ActorRef<Door>, Receiver<Door>) {
    let (sender, doors) = channel();
    (stage.system.spawn(move || Porter(sender.clone())).expect("room"), doors)
}

/// What has arrived, once the actor has handled everything.
fn seen(actor: &ActorRef<Door>, doors: &Receiver<Door>) -> Vec<Door> {
    actor.tell(Door::Closed(u32::MAX));
    let all = std::iter::from_fn(|| doors.soon().ok());
    all.take_while(|door| *door != Door::Closed(u32::MAX)).collect()
}

fn end(stage: Stage) -> pointsman::Ledger {
    let ledger = stage.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    ledger
}

#[test]
fn a_subscriber_gets_the_events_of_its_type_and_no_others() {
    let stage = Stage::turns();
    let (actor, doors) = porter(&stage);
    let events = stage.system.events();
    events.publish(&Opened(0));
    assert!(events.subscribe::<Opened, _>(&actor), "newly added");
    assert!(!events.subscribe::<Opened, _>(&actor), "known already");
    events.publish(&Opened(1));
    events.publish(&Closed(2));
    assert_eq!(seen(&actor, &doors), [Door::Opened(1)], "once, and not the other type");
    assert!(events.subscribe::<Closed, _>(&actor), "another type is another subscription");
    events.publish(&Closed(3));
    assert_eq!(seen(&actor, &doors), [Door::Closed(3)]);
    end(stage);
}

#[test]
fn a_group_stands_for_all_its_members() {
    let stage = Stage::turns();
    let (actor, doors) = porter(&stage);
    let events = stage.system.events();
    assert!(events.subscribe_group(any_door(), &actor));
    assert!(!events.subscribe_group(any_door(), &actor));
    events.publish(&Opened(1));
    events.publish(&Closed(2));
    assert_eq!(seen(&actor, &doors), [Door::Opened(1), Door::Closed(2)]);
    assert!(events.unsubscribe::<Door, _>(&actor));
    events.publish(&Opened(3));
    assert_eq!(seen(&actor, &doors), []);
    end(stage);
}

#[test]
fn unsubscribing_works_by_type_and_wholly() {
    let stage = Stage::turns();
    let ((actor, doors), (other, others)) = (porter(&stage), porter(&stage));
    let events = stage.system.events();
    for actor in [&actor, &other] {
        assert!(events.subscribe::<Opened, _>(actor) && events.subscribe::<Closed, _>(actor));
    }
    assert!(events.unsubscribe::<Opened, _>(&actor));
    assert!(!events.unsubscribe::<Opened, _>(&actor), "gone already");
    events.publish(&Opened(1));
    events.publish(&Closed(2));
    assert_eq!(seen(&actor, &doors), [Door::Closed(2)]);
    assert!(events.unsubscribe_all(&actor));
    assert!(!events.unsubscribe_all(&actor));
    events.publish(&Closed(3));
    assert_eq!(seen(&actor, &doors), []);
    assert_eq!(seen(&other, &others), [Door::Opened(1), Door::Closed(2), Door::Closed(3)]);
    end(stage);
}

#[test]
fn a_function_is_called_on_the_publishing_thread_until_its_subscription_is_dropped() {
    let stage = Stage::turns();
    let (sender, calls) = channel();
    let by_group = sender.clone();
    let subscription = stage.system.events().on(move |Opened(number): &Opened| {
        let _ = sender.send((*number, std::thread::current().id()));
    });
    let group = stage.system.events().on_group(any_door(), move |door: &Door| {
        let Door::Opened(number) = door else { return };
        let _ = by_group.send((number + 100, std::thread::current().id()));
    });
    let me = std::thread::current().id();
    stage.system.events().publish(&Opened(1));
    assert_eq!(calls.try_iter().collect::<Vec<_>>(), [(1, me), (101, me)]);
    drop(group);
    stage.system.events().publish(&Opened(2));
    assert_eq!(calls.try_iter().collect::<Vec<_>>(), [(2, me)]);
    drop(subscription);
    stage.system.events().publish(&Opened(3));
    assert!(calls.recv().is_err(), "the function is gone, and what it captured");
    end(stage);
}

#[test]
fn a_subscriber_that_panics_or_subscribes_while_it_is_told_harms_nobody() {
    let stage = Stage::turns();
    let (actor, doors) = porter(&stage);
    let events = stage.system.events();
    let _panics = events.on(|_: &Opened| panic!("as told"));
    let (stream, late) = (events.clone(), actor.clone());
    let _subscribes = events.on(move |Opened(_): &Opened| {
        stream.subscribe::<Opened, _>(&late);
        stream.publish(&Closed(9));
    });
    events.subscribe::<Closed, _>(&actor);
    events.publish(&Opened(1));
    assert_eq!(seen(&actor, &doors), [Door::Closed(9)], "it came too late for the first");
    events.publish(&Opened(2));
    assert_eq!(seen(&actor, &doors), [Door::Closed(9), Door::Opened(2)]);
    end(stage);
}

#[test]
fn a_subscriber_that_has_stopped_is_forgotten() {
    let stage = Stage::threads("stopped");
    let events = stage.system.events();
    let (actor, doors) = porter(&stage);
    assert!(events.subscribe_group(any_door(), &actor));
    actor.stop();
    wait_until(|| doors.recv().is_err());
    wait_until(|| actor.is_closed());
    events.publish(&Opened(1));
    assert_eq!(stage.system.ledger().sent, 0, "it was not even told");
    assert!(format!("{events:?}").ends_with("entries: 0 }"), "{events:?}");
    assert!(!events.subscribe::<Opened, _>(&actor), "nobody is added who has stopped");

    // A type that is never published keeps no list of the dead, either.
    for _ in 0..10 {
        let (actor, doors) = porter(&stage);
        assert!(events.subscribe::<Closed, _>(&actor));
        actor.stop();
        wait_until(|| doors.recv().is_err());
        wait_until(|| actor.is_closed());
    }
    assert!(format!("{events:?}").ends_with("entries: 1 }"), "{events:?}");
    end(stage);
}

#[test]
fn a_subscription_does_not_keep_the_system_in_memory() {
    let stage = Stage::turns();
    let (actor, doors) = porter(&stage);
    let events = stage.system.events().clone();
    assert!(events.subscribe::<Opened, _>(&actor));
    end(stage);
    assert!(format!("{events:?}").ends_with("entries: 0 }"), "{events:?}");
    assert!(!events.subscribe::<Closed, _>(&actor));
    assert!(doors.recv().is_err());
}

#[test]
fn letters_of_all_kinds_come_by_their_group() {
    let stage = Stage::threads("letters");
    let (sender, letters) = channel();
    let told = sender.clone();
    let all = EventGroup::new().with::<DeadLetter>().with::<SuppressedDeadLetter>();
    let _all = stage.system.events().on_group(all, move |letter: &Letter| {
        let kind = match letter {
            Letter::Dead(letter) => match letter.reason {
                DeadLetterReason::Dropped => "dropped",
                DeadLetterReason::Unhandled => "unhandled",
                DeadLetterReason::Stopped => "dead",
                _ => "?",
            },
            Letter::Suppressed(SuppressedDeadLetter(letter)) => {
                assert_eq!(letter.reason, DeadLetterReason::Stopped);
                "suppressed"
            }
        };
        let _ = told.send(kind);
    });
    let _one = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send(if letter.reason == DeadLetterReason::Stopped { "dead too" } else { "too" });
    });
    stage.system.dead_letters().suppress(|number: &u64| *number == 0);
    let role = stage.role("a");
    let actor = stage
        .system
        .actor("a")
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::DropNewest))
        .spawn(role.recipe());
    let actor = actor.unwrap();
    let release = hold(&actor);
    note(&actor, "fits");
    note(&actor, "does not fit");
    drop(release);
    wait_until(|| actor.load() == pointsman::actor::RecipientLoad::Idle);
    query(&actor, |_, ctx| ctx.unhandled("what?")).unwrap();
    let dead: ActorRef<u64> = stage.system.spawn(|| Numbers).unwrap();
    dead.stop();
    wait_until(|| dead.is_closed());
    dead.tell(0u64);
    dead.tell(1u64);
    assert_eq!(
        letters.try_iter().collect::<Vec<_>>(),
        ["dropped", "too", "unhandled", "too", "suppressed", "dead", "dead too"]
    );
    let ledger = end(stage);
    assert_eq!((ledger.dropped, ledger.dead_lettered), (1, 2), "{ledger}");
}

/// A letter of either type of event.
enum Letter {
    Dead(DeadLetter),
    Suppressed(SuppressedDeadLetter),
}

impl From<DeadLetter> for Letter {
    fn from(letter: DeadLetter) -> Self {
        Letter::Dead(letter)
    }
}

impl From<SuppressedDeadLetter> for Letter {
    fn from(letter: SuppressedDeadLetter) -> Self {
        Letter::Suppressed(letter)
    }
}

struct Numbers;
impl Actor for Numbers {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn what_is_unhandled_is_told_with_recipient_and_type_and_counts_as_handled() {
    let stage = Stage::turns();
    let (sender, told) = channel();
    let _subscription = stage.system.events().on(move |letter: &DeadLetter| {
        let _ = sender.send((letter.reason, letter.to_string()));
    });
    let actor = stage.spawn(&stage.role("a"));
    let (reply_to, ask): (Sender<ReplyTo<u32>>, _) = channel();
    let asked = actor.ask_with(|port| {
        let _ = reply_to.send(port);
        Tell::new(|_, _| Ok(()))
    });
    let port = ask.recv().unwrap();
    act(&actor, move |_, ctx| {
        ctx.unhandled(port);
        Ok(())
    });
    assert_eq!(asked.wait(), Err(AskError::no_reply()), "the port went with the message");
    let (reason, text) = told.soon().unwrap();
    assert_eq!(reason, DeadLetterReason::Unhandled);
    assert!(text.contains("ReplyTo<u32> to /user/a: unhandled"), "{text}");
    let ledger = end(stage);
    assert_eq!((ledger.sent, ledger.handled), (2, 2), "{ledger}");
}

/// Runs when it is dropped.
struct AtDrop(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Drop for AtDrop {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

/// So many that the memory of those who have gone is used again.
const CROWD: usize = if cfg!(miri) { 8 } else { 200 };

#[test]
fn who_comes_to_the_address_of_one_that_has_gone_stays_subscribed() {
    let stage = Stage::turns();
    let crowd = |system: &SystemRef| -> Vec<_> {
        let recipe = || Porter(channel().0);
        (0..CROWD).map(|_| system.spawn(recipe).expect("room")).collect()
    };
    let gone: Vec<ActorRef<Door>> = crowd(&stage.system);
    let leaving = Arc::new(Mutex::new((gone.clone(), None)));
    let (handle, left) = (stage.system.handle().clone(), leaving.clone());
    let _first = stage.system.events().on(move |_: &Opened| {
        let (gone, last) = std::mem::take(&mut *left.lock().expect("not poisoned"));
        drop::<Option<Subscription>>(last);
        for gone in gone {
            handle.events().unsubscribe_all(&gone);
        }
    });
    assert!(gone.iter().all(|gone| stage.system.events().subscribe::<Opened, _>(gone)));
    // Dropped behind the others, with the list by which it is told.
    let (handle, (sender, come)) = (stage.system.handle().clone(), channel());
    let last = AtDrop(Some(Box::new(move || {
        let new = crowd(&handle);
        assert!(new.iter().all(|new| handle.events().subscribe::<Opened, _>(new)));
        let _ = sender.send(new);
    })));
    let last = stage.system.events().on(move |_: &Opened| _ = &last);
    leaving.lock().expect("not poisoned").1 = Some(last);
    gone.iter().for_each(ActorRef::stop);
    run_turns();
    drop(gone);
    stage.system.events().publish(&Opened(1));
    for new in come.try_recv().expect("dropped while it was told") {
        assert!(!stage.system.events().subscribe::<Opened, _>(&new), "it is still subscribed");
        new.stop();
    }
    run_turns();
    end(stage);
}

#[test]
fn who_subscribes_by_an_adapter_is_told_once_and_can_leave() {
    let stage = Stage::turns();
    let (actor, doors) = porter(&stage);
    let adapter = |actor: &ActorRef<Door>| actor.contramap(|Opened(number): Opened| Door::Opened(number));
    let events = stage.system.events();
    assert!(events.subscribe::<Opened, _>(&adapter(&actor)));
    let by_narrowing = actor.narrow::<Closed>();
    assert!(events.subscribe::<Closed, _>(&by_narrowing));
    assert!(!events.subscribe::<Closed, _>(&actor.narrow::<Closed>()), "the same reference");
    events.publish(&Opened(1));
    events.publish(&Closed(2));
    assert_eq!(seen(&actor, &doors), [Door::Opened(1), Door::Closed(2)]);
    assert!(events.unsubscribe::<Closed, _>(&actor.narrow::<Closed>()));
    assert!(!events.unsubscribe_all(&actor.narrow::<Closed>()));
    assert!(events.unsubscribe_all(&adapter(&actor)));
    events.publish(&Opened(3));
    events.publish(&Closed(4));
    assert_eq!(seen(&actor, &doors), []);
    end(stage);
}

/// Both doors, and whatever else opens.
#[derive(Debug, Clone, PartialEq)]
struct AnyOpened(u32);

impl From<Opened> for AnyOpened {
    fn from(Opened(number): Opened) -> Self {
        AnyOpened(number)
    }
}

fn any_opened() -> EventGroup<AnyOpened> {
    EventGroup::new().with::<Opened>()
}

impl From<AnyOpened> for Door {
    fn from(AnyOpened(number): AnyOpened) -> Self {
        Door::Opened(number + 1000)
    }
}

#[test]
fn who_subscribes_to_a_type_and_to_groups_that_have_it_is_told_once() {
    let stage = Stage::turns();
    let ((actor, doors), (other, others)) = (porter(&stage), porter(&stage));
    let events = stage.system.events();
    assert!(events.subscribe::<Opened, _>(&actor) && events.subscribe_group(any_door(), &actor));
    assert!(events.subscribe_group(any_opened(), &actor));
    assert!(events.subscribe_group(any_opened(), &other) && events.subscribe::<Opened, _>(&other));
    events.publish(&Opened(1));
    events.publish(&Closed(2));
    assert_eq!(seen(&actor, &doors), [Door::Opened(1), Door::Closed(2)]);
    assert_eq!(seen(&other, &others), [Door::Opened(1001)], "by the first of its subscriptions");
    // Each subscription stands for itself: with the one gone, the next one tells.
    assert!(events.unsubscribe::<AnyOpened, _>(&other));
    assert!(events.unsubscribe::<Door, _>(&actor));
    events.publish(&Opened(3));
    events.publish(&Closed(4));
    assert_eq!(seen(&actor, &doors), [Door::Opened(3)]);
    assert_eq!(seen(&other, &others), [Door::Opened(3)]);
    end(stage);
}

#[test]
fn a_member_can_be_taken_out_of_a_group() {
    let stage = Stage::turns();
    let (actor, doors) = porter(&stage);
    let events = stage.system.events();
    assert!(events.subscribe_group(any_door(), &actor) && events.subscribe::<Opened, _>(&actor));
    assert!(events.unsubscribe::<Opened, _>(&actor));
    assert!(!events.unsubscribe::<Opened, _>(&actor), "neither by itself nor by the group");
    events.publish(&Opened(1));
    events.publish(&Closed(2));
    assert_eq!(seen(&actor, &doors), [Door::Closed(2)]);
    // It may come back, by itself or with the group.
    assert!(events.subscribe_group(any_door(), &actor), "a part of it is new");
    assert!(!events.subscribe_group(any_door(), &actor));
    events.publish(&Opened(3));
    assert_eq!(seen(&actor, &doors), [Door::Opened(3)]);
    assert!(events.unsubscribe::<Door, _>(&actor) && !events.unsubscribe_all(&actor));
    end(stage);
}

/// Tells the event stream each time that it is compared, and panics then if it is to.
#[derive(Clone)]
struct Nosy {
    number: u32,
    events: EventStream,
    panics: Arc<AtomicBool>,
}

/// Two keys have been compared.
#[derive(Clone)]
struct Compared;

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        self.events.publish(&Compared);
        assert!(!self.panics.load(Ordering::Relaxed), "planted");
        self.number == other.number
    }
}

impl Eq for Nosy {}

impl Hash for Nosy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl Display for Nosy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

struct Idle;

impl Actor for Idle {
    type Message = Door;
    fn receive(&mut self, _: Door, _: &mut Context<Door>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn a_key_may_publish_or_panic_when_subscribers_are_compared() {
    let stage = Stage::turns();
    let events = stage.system.events().clone();
    let panics = Arc::new(AtomicBool::new(false));
    let first = Nosy { number: 7, events: events.clone(), panics: panics.clone() };
    let group =
        stage.system.group("nosy").by_key(move |_: &Door| first.clone(), |_, _| Idle).spawn().unwrap();
    let key = |number| group.key(Nosy { number, events: events.clone(), panics: panics.clone() });
    let compared = Arc::new(AtomicUsize::new(0));
    let counted = compared.clone();
    let counting = events.on(move |_: &Compared| _ = counted.fetch_add(1, Ordering::Relaxed));
    let entries = || format!("{events:?}").trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
    assert!(events.subscribe_group(any_door(), &key(7)) && events.subscribe::<Opened, _>(&key(8)));
    assert!(!events.subscribe_group(any_door(), &key(7)), "an equal one is there");
    assert!(events.subscribe::<Opened, _>(&key(7)), "once more, by itself");
    assert_eq!(entries(), "5");
    assert!(compared.load(Ordering::Relaxed) > 0);
    panics.store(true, Ordering::Relaxed);
    assert_eq!(panic_of(|| _ = events.unsubscribe_all(&key(7))), "planted");
    assert_eq!(panic_of(|| _ = events.subscribe::<Closed, _>(&key(7))), "planted");
    assert_eq!(entries(), "5", "it stays as it was");
    panics.store(false, Ordering::Relaxed);
    assert!(events.unsubscribe::<Door, _>(&key(7)) && events.unsubscribe_all(&key(7)));
    assert!(events.unsubscribe::<Opened, _>(&key(8)) && !events.unsubscribe_all(&key(8)));
    drop(counting);
    assert_eq!(entries(), "0");
    end(stage);
}
