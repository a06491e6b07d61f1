//! Actors of a group that retire: nothing is lost, refused or out of order, and nobody meets the one before.

use crate::keyed_support::{Do, Note, books, closed, gently, lodgers, noted, plan, to};
use crate::support::{LONG, Stage};
use pointsman::actor::RecipientLoad;
use pointsman::group::{Group, RestartPolicy};
use pointsman::prelude::*;
use pointsman::routing::SmallestMailbox;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

#[test]
fn an_actor_that_retires_frees_its_key_and_the_next_message_creates_another() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.tell(to(1, "a").act(Do::Retire));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"]);
    assert!(group.is_empty());
    group.tell(to(1, "b"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 b"]);
    assert_eq!(books(stage).dead_lettered, 0);
}

#[test]
fn an_actor_with_messages_left_does_not_retire() {
    let stage = Stage::turns();
    let group = lodgers(&stage);
    group.tell(to(1, "a").act(Do::Retire));
    group.tell(to(1, "b"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 b"]);
    assert_eq!(group.len(), 1);
    group.tell(to(1, "c").act(Do::Retire));
    assert_eq!(noted(&stage), ["1 c", "1 stopped"]);
    assert_eq!(books(stage).dead_lettered, 0);
}

#[test]
fn a_retired_actor_is_not_restarted() {
    let stage = Stage::turns();
    let always = RestartPolicy::always(Duration::ZERO, Duration::ZERO);
    let group = plan(&stage).restart(always).spawn().unwrap();
    group.tell(to(1, "a").act(Do::Retire));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"]);
    assert!(group.is_empty());
    books(stage);
}

/// Retires at each message, and does something when it ends.
struct Leaver {
    path: String,
    log: Sender<String>,
    at_end: Arc<dyn Fn() + Send + Sync>,
}

impl Actor for Leaver {
    type Message = Note;

    fn receive(&mut self, note: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
        self.log.send(format!("{} {}", self.path, note.text))?;
        ctx.passivate();
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Self::Message>) {
        (self.at_end)();
        let _ = self.log.send(format!("{} stopped", self.path));
    }
}

type Anyone = Arc<OnceLock<Group<Note, u32>>>;

fn leavers(stage: &Stage, at_end: impl Fn(&Group<Note, u32>) + Send + Sync + 'static) -> Group<Note, u32> {
    let anyone = Anyone::default();
    let (log, known) = (stage.log.clone(), anyone.clone());
    let at_end: Arc<dyn Fn() + Send + Sync> = Arc::new(move || at_end(known.get().unwrap()));
    let group = stage
        .system
        .group("leavers")
        .keyed(
            |note: &Note| note.to.clone(),
            move |ctx: &mut Context<_>, _: &u32| {
                let path = ctx.me().path().to_string();
                let _ = log.send(format!("{path} begins"));
                Leaver { path, log: log.clone(), at_end: at_end.clone() }
            },
        )
        .spawn()
        .unwrap();
    let _ = anyone.set(group.clone());
    group
}

#[test]
fn what_comes_while_an_actor_ends_waits_for_the_next_one_which_has_its_name() {
    let stage = Stage::turns();
    let once = AtomicBool::new(false);
    let group = leavers(&stage, move |group| {
        if !once.swap(true, SeqCst) {
            group.tell(to(1, "b"));
            group.key(1).tell(to(1, "c"));
            assert_eq!(group.len(), 1);
        }
    });
    group.tell(to(1, "a"));
    let path = "/user/leavers/1";
    let expected = ["begins", "a", "stopped", "begins", "b", "c", "stopped"];
    assert_eq!(noted(&stage), expected.map(|event| format!("{path} {event}")));
    assert!(group.is_empty());
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered), (3, 0), "{ledger}");
}

#[test]
fn a_group_that_creates_nobody_refuses_what_comes_while_an_actor_ends() {
    let stage = Stage::turns();
    let group = leavers(&stage, |group| {
        assert_eq!(closed(group.try_tell(gently(1, "gently"))), Some("gently"));
        group.stop_spawning();
        assert_eq!(closed(group.try_tell(to(1, "late"))), Some("late"));
    });
    group.tell(to(1, "a"));
    assert_eq!(noted(&stage).len(), 3);
    assert!(group.is_empty());
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.handed_back, ledger.dead_lettered), (1, 2, 0), "{ledger}");
}

#[test]
fn a_group_that_ends_while_an_actor_ends_has_its_heir_handle_what_it_took() {
    let stage = Stage::turns();
    let once = AtomicBool::new(false);
    let group = leavers(&stage, move |group| {
        if !once.swap(true, SeqCst) {
            group.tell(to(1, "b"));
            group.terminate("over");
        }
    });
    group.tell(to(1, "a"));
    assert_eq!(noted(&stage).len(), 6);
    assert!(group.head().is_closed());
    let ledger = books(stage);
    assert_eq!((ledger.handled, ledger.dead_lettered), (2, 0), "{ledger}");
}

const KEYS: usize = 4;
const SENDERS: usize = 3;
const EACH: u64 = if cfg!(miri) { 50 } else { 20_000 };
const BURST: u64 = EACH / 50;

struct Numbered {
    key: usize,
    sender: usize,
    number: u64,
}

/// What the actors of one key leave to each other.
#[derive(Default)]
struct Estate {
    is_taken: AtomicBool,
    last: [AtomicU64; SENDERS],
}

struct Heir(Arc<[Estate; KEYS]>, usize, Sender<String>);

impl Actor for Heir {
    type Message = Numbered;

    fn receive(&mut self, message: Numbered, ctx: &mut Context<Numbered>) -> HandlerResult {
        let before = self.0[self.1].last[message.sender].swap(message.number, SeqCst);
        if before >= message.number {
            self.2.send(format!("{before} came before {}", message.number))?;
        }
        ctx.passivate();
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Numbered>) {
        self.0[self.1].is_taken.store(false, SeqCst);
    }
}

#[test]
fn a_storm_of_retirements_loses_nothing_and_keeps_the_order() {
    let system = System::builder("storm").build().unwrap();
    let (estates, lives) = (Arc::<[Estate; KEYS]>::default(), Arc::new(AtomicU64::new(0)));
    let (faults, seen) = channel();
    let (left, counted) = (estates.clone(), lives.clone());
    let group = system
        .group("heirs")
        .by_key(
            |message: &Numbered| message.key,
            move |_, key: &usize| {
                counted.fetch_add(1, SeqCst);
                if left[*key].is_taken.swap(true, SeqCst) {
                    let _ = faults.send("two at once".to_owned());
                }
                Heir(left.clone(), *key, faults.clone())
            },
        )
        .spawn()
        .unwrap();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let group = group.clone();
            thread::spawn(move || {
                for number in 1..=EACH {
                    // Where senders have the processor to themselves, nobody would ever find its mailbox empty.
                    while number % BURST == 0 && group.len() == KEYS {
                        thread::yield_now();
                    }
                    for key in 0..KEYS {
                        group.tell(Numbered { key, sender, number });
                    }
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let ended = group.head().when_ended();
    group.terminate("over");
    ended.within(LONG).wait().unwrap();
    drop(group);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [""; 0]);
    assert!(lives.load(SeqCst) > KEYS as u64, "somebody has retired");
    let sent = EACH * (KEYS * SENDERS) as u64;
    assert_eq!((ledger.handled, ledger.dead_lettered, ledger.balance()), (sent, 0, 0), "{ledger}");
}

#[test]
fn a_key_whose_actor_ends_by_retiring_is_known_as_one_with_nothing_to_do() {
    let stage = Stage::turns();
    let router = Arc::<OnceLock<Router<Note>>>::default();
    let (known, once) = (router.clone(), AtomicBool::new(false));
    let group = leavers(&stage, move |group| {
        if !once.swap(true, SeqCst) {
            assert_eq!(group.key(1).load(), RecipientLoad::Idle);
            known.get().unwrap().tell(to(1, "b"));
        }
    });
    let plan = stage.system.router("router").group([group.key(1)]).logic(SmallestMailbox::new());
    router.get_or_init(|| plan.spawn().unwrap()).tell(to(1, "a"));
    let expected = ["begins", "a", "stopped", "begins", "b", "stopped"];
    assert_eq!(noted(&stage), expected.map(|event| format!("/user/leavers/1 {event}")));
    // Nobody would be created for it any more.
    group.stop_spawning();
    assert_eq!(group.key(1).load(), RecipientLoad::Closed);
    assert_eq!(books(stage).dead_lettered, 0);
}
