//! Senders that wait for room at an actor of a group which retires meanwhile.

use crate::keyed_support::{Do, Note, books, closed, gently, noted, plan, to};
use crate::support::{LONG, Stage};
use pointsman::group::{Group, KeyRoute};
use pointsman::prelude::*;
use std::cell::Cell;
use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// One message, and senders wait without end.
fn narrow() -> Mailbox {
    Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX))
}

// On a stage of turns a sender that waits runs the actors meanwhile: they are done when it looks again.

#[test]
fn a_message_that_waits_for_room_at_an_actor_that_retires_goes_to_the_next_one() {
    let stage = Stage::turns();
    let group = plan(&stage).mailbox(narrow()).spawn().unwrap();
    let multicast = |text| Note::new(KeyRoute::Multicast(vec![1]), text);
    group.tell(to(1, "a").act(Do::Retire));
    group.try_tell(to(1, "b").act(Do::Retire)).expect("the next one takes it");
    group.key(1).try_tell(to(1, "c").act(Do::Retire)).expect("and the next");
    group.try_tell(multicast("d")).expect("and the next");
    let lives = |text: &str| ["1 OnMessage".to_owned(), format!("1 {text}"), "1 stopped".to_owned()];
    let mut expected = ["a", "b", "c", "d"].map(lives).concat();
    expected.pop();
    assert_eq!(noted(&stage), expected);
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered, ledger.handed_back), (4, 0, 0), "{ledger}");
}

#[test]
fn one_that_creates_nobody_is_refused_as_before() {
    let stage = Stage::turns();
    let group = plan(&stage).mailbox(narrow()).spawn().unwrap();
    group.tell(to(1, "a").act(Do::Retire));
    assert_eq!(closed(group.try_tell(gently(1, "gently"))), Some("gently"));
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.handed_back, ledger.dead_lettered), (1, 1, 0), "{ledger}");
}

#[test]
fn a_message_that_finds_the_next_actor_full_too_waits_there() {
    let stage = Stage::turns();
    let known: Arc<OnceLock<Group<Note, u32>>> = Arc::default();
    let (anyone, log, once) = (known.clone(), stage.log.clone(), Arc::new(AtomicBool::new(false)));
    let group = stage
        .system
        .group("heirs")
        .keyed(
            |note: &Note| note.to.clone(),
            move |_: &mut Context<Note>, _: &u32| {
                let _ = log.send("begins".to_owned());
                Leaver { anyone: anyone.clone(), log: log.clone(), once: once.clone() }
            },
        )
        .mailbox(narrow())
        .spawn()
        .unwrap();
    let _ = known.set(group.clone());
    group.tell(to(1, "a").act(Do::Retire));
    group.try_tell(to(1, "b")).expect("it waits for its turn");
    assert_eq!(noted(&stage), ["a", "b", "begins", "begins", "between"]);
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered, ledger.handed_back), (3, 0, 0), "{ledger}");
}

/// Retires where it is told to; when the first ends, it sends one more to its key.
struct Leaver {
    anyone: Arc<OnceLock<Group<Note, u32>>>,
    log: std::sync::mpsc::Sender<String>,
    once: Arc<AtomicBool>,
}

impl Actor for Leaver {
    type Message = Note;

    fn receive(&mut self, note: Note, ctx: &mut Context<Note>) -> HandlerResult {
        self.log.send(note.text.to_owned())?;
        if note.act == Do::Retire {
            ctx.passivate();
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Note>) {
        if !self.once.swap(true, SeqCst) {
            self.anyone.get().expect("set first").tell(to(1, "between"));
        }
    }
}

thread_local! {
    /// How many comparisons of keys go well before one panics.
    static COMPARISONS_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// A key of which there is one.
#[derive(Clone)]
struct Brittle;

impl PartialEq for Brittle {
    fn eq(&self, _: &Self) -> bool {
        let left = COMPARISONS_LEFT.get();
        COMPARISONS_LEFT.set(left.and_then(|left| left.checked_sub(1)));
        assert_ne!(left, Some(0), "planted");
        true
    }
}

impl Eq for Brittle {}

impl Hash for Brittle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        "one".hash(state);
    }
}

impl Display for Brittle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one")
    }
}

/// Retires where it is told to; when the first ends, it sends one more to its key.
struct Goer {
    anyone: Arc<OnceLock<Group<bool, Brittle>>>,
    once: Arc<AtomicBool>,
}

impl Actor for Goer {
    type Message = bool;

    fn receive(&mut self, retires: bool, ctx: &mut Context<bool>) -> HandlerResult {
        if retires {
            ctx.passivate();
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<bool>) {
        if !self.once.swap(true, SeqCst) {
            self.anyone.get().expect("set first").tell(false);
        }
    }
}

#[test]
fn a_message_that_waits_is_counted_whichever_comparison_of_keys_takes_it_down() {
    let mut panics = 0;
    for left in 0.. {
        let stage = Stage::turns();
        let known: Arc<OnceLock<Group<bool, Brittle>>> = Arc::default();
        let (anyone, once) = (known.clone(), Arc::new(AtomicBool::new(false)));
        let recipe =
            move |_: &mut Context<bool>, _: &Brittle| Goer { anyone: anyone.clone(), once: once.clone() };
        let group =
            stage.system.group("heirs").by_key(|_: &bool| Brittle, recipe).mailbox(narrow()).spawn().unwrap();
        let _ = known.set(group.clone());
        group.tell(true);
        COMPARISONS_LEFT.set(Some(left));
        // Waits until the first has retired, and then where the next one has got another message.
        let sent = catch_unwind(AssertUnwindSafe(|| group.try_tell(false).is_ok()));
        let were_enough = COMPARISONS_LEFT.take().is_some();
        panics += u32::from(sent.is_err());
        books(stage);
        if were_enough {
            break;
        }
    }
    assert!(panics >= 3, "at first, when it goes on, and when it is to wait again");
}

const SENDERS: usize = 4;
const EACH: u64 = 2_000;

#[test]
fn a_storm_of_waits_and_retirements_loses_nothing_and_keeps_the_order() {
    /// The last number of each sender, over all lives.
    type Last = [AtomicU64; SENDERS];
    struct Brief(Arc<Last>, Sender<String>);
    impl Actor for Brief {
        type Message = (usize, u64);
        fn receive(
            &mut self,
            (sender, number): (usize, u64),
            ctx: &mut Context<(usize, u64)>,
        ) -> HandlerResult {
            let before = self.0[sender].swap(number, SeqCst);
            if before >= number {
                self.1.send(format!("{sender}: {before} came before {number}"))?;
            }
            ctx.passivate();
            Ok(())
        }
    }
    let (last, (faults, seen)) = (Arc::<Last>::default(), channel());
    let system = System::builder("waits").build().unwrap();
    let recipe = move |_: &mut Context<(usize, u64)>, _: &u32| Brief(last.clone(), faults.clone());
    let plan = system.group("brief").by_key(|_: &(usize, u64)| 1_u32, recipe);
    let group = plan.mailbox(narrow()).spawn().unwrap();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let group = group.to_ref();
            thread::spawn(move || (1..=EACH).all(|number| group.try_tell((sender, number)).is_ok()))
        })
        .collect();
    assert!(senders.into_iter().all(|sender| sender.join().unwrap()), "nobody is refused");
    let ended = group.head().when_ended();
    group.terminate("over");
    ended.within(LONG).wait().unwrap();
    drop(group);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [""; 0]);
    let sent = EACH * SENDERS as u64;
    assert_eq!((ledger.handled, ledger.dead_lettered, ledger.balance()), (sent, 0, 0), "{ledger}");
}
