//! What an actor puts aside, and when it comes back.

use crate::support::*;
use pointsman::actor::StashError;
use pointsman::prelude::*;
use pointsman::{SendError, Terminated};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Puts items aside until it is open.
enum Msg {
    Item(u32),
    Open,
    OpenAndShut,
    /// Makes a message up and stashes that.
    Invent(u32),
    Fail,
    Watch(AnyActorRef),
    Unwatch(AnyActorRef),
    Stashed(ReplyTo<usize>),
}

struct Door {
    open: bool,
    seen: Sender<String>,
}

impl Door {
    fn see(&self, what: impl std::fmt::Display) -> HandlerResult {
        self.seen.send(what.to_string())?;
        Ok(())
    }
}

impl Actor for Door {
    type Message = Msg;

    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match message {
            Msg::Item(item) if self.open => return self.see(item),
            Msg::Item(_) => {
                if let Err(StashError { message: Msg::Item(item), capacity }) = ctx.stash(message) {
                    return self.see(format_args!("{item} is over {capacity}"));
                }
            }
            Msg::Open => {
                self.open = true;
                ctx.unstash_all();
                assert_eq!(ctx.stashed(), 0);
                return self.see("open");
            }
            Msg::OpenAndShut => {
                ctx.unstash_all();
                return self.see("open and shut");
            }
            Msg::Invent(item) => ctx.stash(Msg::Item(item))?,
            Msg::Fail => return Err(Failure::msg("as told")),
            Msg::Watch(actor) => drop(ctx.watch(&actor)),
            Msg::Unwatch(actor) => ctx.unwatch(&actor),
            Msg::Stashed(reply_to) => drop(reply_to.send(ctx.stashed())),
        }
        Ok(())
    }

    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Msg>) -> HandlerResult {
        if self.open {
            return self.see(format_args!("lost {}", terminated.actor.path().name()));
        }
        ctx.stash_terminated(terminated)?;
        Ok(())
    }
}

struct Scene {
    stage: Stage,
    door: ActorRef<Msg>,
    seen: Receiver<String>,
}

fn scene(capacity: Option<usize>) -> Scene {
    let stage = Stage::turns();
    let (seen, sights) = channel();
    let mut builder = stage.system.actor("door");
    if let Some(capacity) = capacity {
        builder = builder.stash_capacity(capacity);
    }
    let mut made = 0;
    let recipe = move || {
        made += 1;
        // After a restart it is open.
        Door { open: made > 1, seen: seen.clone() }
    };
    let door = builder.spawn(recipe).unwrap();
    Scene { stage, door, seen: sights }
}

impl Scene {
    fn stashed(&self) -> usize {
        self.door.ask_with(Msg::Stashed).within(std::time::Duration::from_secs(1 << 40)).wait().unwrap()
    }

    #[track_caller]
    fn expect(&self, sights: &[&str]) {
        let seen: Vec<String> =
            sights.iter().map(|_| self.seen.soon().expect("there is more to see")).collect();
        assert_eq!(seen, sights);
    }

    /// Ends the system; nothing more is seen. Returns what was handled and what was dead-lettered.
    #[track_caller]
    fn end(self) -> (u64, u64) {
        let ledger = self.stage.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        assert_eq!(self.seen.try_iter().collect::<Vec<_>>(), [""; 0]);
        (ledger.handled, ledger.dead_lettered)
    }
}

#[test]
fn what_is_unstashed_is_handled_in_its_order_and_before_the_mailbox() {
    let scene = scene(None);
    for item in 1..=3 {
        scene.door.tell(Msg::Item(item));
    }
    assert_eq!(scene.stashed(), 3);
    scene.door.tell(Msg::Open);
    scene.door.tell(Msg::Item(4));
    scene.expect(&["open", "1", "2", "3", "4"]);
    // Each stashed one was handled twice, and the question once.
    assert_eq!(scene.end(), (3 + 1 + 1 + 3 + 1, 0));
}

#[test]
fn what_is_stashed_again_keeps_its_order() {
    let scene = scene(None);
    scene.door.tell(Msg::Item(1));
    scene.door.tell(Msg::Item(2));
    scene.door.tell(Msg::OpenAndShut);
    scene.door.tell(Msg::OpenAndShut);
    scene.door.tell(Msg::Item(3));
    scene.expect(&["open and shut", "open and shut"]);
    assert_eq!(scene.stashed(), 3);
    scene.door.tell(Msg::Open);
    scene.expect(&["open", "1", "2", "3"]);
    scene.end();
}

#[test]
fn a_second_unstash_goes_before_what_the_first_has_left() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let noted = |text: &'static str| {
        Tell::new(move |puppet, _| {
            puppet.note(format_args!("{text}"));
            Ok(())
        })
    };
    act(&actor, move |_, ctx| {
        ctx.stash(Tell::new(move |_, ctx| {
            ctx.stash(noted("inner 1"))?;
            ctx.stash(noted("inner 2"))?;
            ctx.unstash_all();
            Ok(())
        }))?;
        ctx.stash(noted("outer"))?;
        ctx.unstash_all();
        ctx.unstash_all();
        Ok(())
    });
    stage.expect(&["a Started 1", "a inner 1", "a inner 2", "a outer"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_full_stash_hands_the_message_back() {
    let scene = scene(Some(2));
    for item in 1..=3 {
        scene.door.tell(Msg::Item(item));
    }
    scene.expect(&["3 is over 2"]);
    assert_eq!(scene.stashed(), 2);
    assert_eq!(scene.stage.system.ledger().queued, 2);
    // Room is counted anew once all is unstashed.
    scene.door.tell(Msg::OpenAndShut);
    scene.expect(&["open and shut"]);
    assert_eq!(scene.stashed(), 2);
    assert_eq!(scene.end(), (3 + 1 + 1 + 2 + 1, 2));
    let error = StashError { message: (), capacity: 2 };
    assert!(error.to_string().starts_with("stash full: 2 are stashed"), "{error}");
}

#[test]
fn what_is_unstashed_needs_no_room_in_a_full_mailbox() {
    let stage = Stage::threads("bounded");
    let role = stage.role("a");
    let actor = stage.system.actor("a").mailbox(Mailbox::bounded(2)).spawn(role.recipe()).unwrap();
    query(&actor, |_, ctx| ["s1", "s2", "s3"].map(|text| ctx.stash(noting(text)).is_ok())).unwrap();
    let release = hold_then(&actor, |ctx| {
        ctx.unstash_all();
        Ok(())
    });
    note(&actor, "m1");
    note(&actor, "m2");
    assert!(matches!(actor.try_tell(noting("m3")), Err(SendError::Full(_))));
    drop(release);
    stage.expect(&["a Started 1", "a s1", "a s2", "a s3", "a m1", "a m2"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_stash_of_no_capacity_takes_nothing() {
    let scene = scene(Some(0));
    scene.door.tell(Msg::Item(1));
    scene.expect(&["1 is over 0"]);
    assert_eq!(scene.end(), (1, 0));
}

#[test]
fn the_books_know_what_is_stashed() {
    let scene = scene(None);
    scene.door.tell(Msg::Item(1));
    // One that nobody has sent.
    scene.door.tell(Msg::Invent(2));
    assert_eq!(scene.stashed(), 2);
    let ledger = scene.stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.queued, ledger.balance()), (5, 3, 2, 0), "{ledger}");
    assert_eq!(scene.door.queued(), Some(2));
    assert_eq!(scene.door.untyped().unwrap().queued(), 2);
    wait_until(|| scene.door.load() == pointsman::actor::RecipientLoad::Idle);
    scene.door.tell(Msg::Open);
    scene.expect(&["open", "1", "2"]);
    assert_eq!(scene.stashed(), 0);
    assert_eq!(scene.door.queued(), Some(0));
    let ledger = scene.stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (7, 7, 0), "{ledger}");
    scene.end();
}

#[test]
fn a_restart_brings_back_what_was_stashed_before_the_mailbox() {
    let scene = scene(None);
    scene.door.tell(Msg::Item(1));
    scene.door.tell(Msg::Item(2));
    scene.door.tell(Msg::Fail);
    scene.door.tell(Msg::Item(3));
    scene.expect(&["1", "2", "3"]);
    scene.end();
}

#[test]
fn what_is_stashed_at_the_end_is_dead_letters() {
    let scene = scene(None);
    let (letters, dead) = channel();
    let _subscription = scene.stage.system.dead_letters().subscribe(move |letter| {
        let _ = letters.send((letter.recipient.to_string(), letter.reason));
    });
    scene.door.tell(Msg::Item(1));
    scene.door.tell(Msg::Item(2));
    assert_eq!(scene.stashed(), 2);
    scene.door.stop();
    for _ in 0..2 {
        let letter = dead.soon().unwrap();
        assert_eq!(letter, ("/user/door".to_string(), pointsman::DeadLetterReason::Stopped));
    }
    assert_eq!(scene.end(), (3, 2));
}

#[test]
fn a_pill_waits_for_what_is_unstashed_and_not_for_what_is_stashed() {
    let pill = |open: bool| {
        let scene = scene(None);
        scene.door.tell(Msg::Item(1));
        if open {
            scene.door.tell(Msg::Open);
        }
        scene.door.poison();
        wait_until(|| scene.door.is_closed());
        if open {
            scene.expect(&["open", "1"]);
        }
        scene.end()
    };
    assert_eq!(pill(true), (3, 0));
    assert_eq!(pill(false), (1, 1));
}

#[test]
fn a_stop_goes_before_what_is_unstashed() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    act(&actor, |_, ctx| {
        for _ in 0..2 {
            ctx.stash(Tell::new(|puppet, ctx| {
                puppet.note("handled");
                ctx.stop();
                Ok(())
            }))?;
        }
        ctx.unstash_all();
        Ok(())
    });
    // Closed is not yet emptied.
    wait_until(|| stage.system.ledger().dead_lettered == 1);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.handled, ledger.dead_lettered), (2, 1), "{ledger}");
    stage.end(&["a \"handled\"", "a Started 1", "a Stopped 1"]);
}

#[test]
fn a_notice_can_be_stashed_until_it_is_unwatched() {
    let scene = scene(None);
    for (name, unwatched) in [("first", false), ("second", true)] {
        let watched = scene.stage.system.actor(name).spawn(scene.stage.role("w").recipe()).unwrap();
        let any = watched.untyped().unwrap();
        scene.door.tell(Msg::Watch(any.clone()));
        assert_eq!(scene.stashed(), usize::from(unwatched));
        watched.stop();
        wait_until(|| scene.stashed() == 1 + usize::from(unwatched));
        if unwatched {
            scene.door.tell(Msg::Unwatch(any));
            assert_eq!(scene.stashed(), 1);
        }
    }
    // A notice is no message.
    assert_eq!(scene.door.queued(), Some(0));
    scene.door.tell(Msg::Item(1));
    scene.door.tell(Msg::Open);
    scene.expect(&["open", "lost first", "1"]);
    scene.end();
}

#[test]
fn a_routee_that_leaves_gives_back_what_it_has_stashed() {
    let stage = Stage::turns();
    let (seen, sights) = channel();
    let doors = stage
        .system
        .router("doors")
        .pool(2, move |_| Door { open: false, seen: seen.clone() })
        .spawn()
        .unwrap();
    for item in 1..=4 {
        doors.to_ref().tell(Msg::Item(item));
    }
    let all_stashed = || stage.system.ledger().queued == 4 && stage.system.ledger().handled == 4;
    wait_until(all_stashed);
    doors.resize_to(1).unwrap();
    wait_until(|| stage.system.ledger().handled >= 6);
    doors.to_ref().tell(Msg::Open);
    let mut items: Vec<String> = (0..5).map(|_| sights.soon().unwrap()).collect();
    items.sort();
    assert_eq!(items, ["1", "2", "3", "4", "open"]);
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.dead_lettered), (0, 0), "{ledger}");
}

/// Never handles what it is given.
struct Undecided;

impl Actor for Undecided {
    type Message = ();
    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        ctx.stash(())?;
        ctx.unstash_all();
        Ok(())
    }
}

#[test]
fn an_actor_that_only_stashes_and_unstashes_leaves_others_their_turn() {
    let one = Dispatcher::work_stealing().threads(1);
    let stage = Stage::threads_with("undecided", |builder| builder.dispatcher("one", one));
    let undecided = stage.system.actor("undecided").dispatcher("one").spawn(|| Undecided).unwrap();
    undecided.tell(());
    let actor = stage.system.actor("a").dispatcher("one").spawn(stage.role("a").recipe()).unwrap();
    for _ in 0..3 {
        assert_eq!(query(&actor, |_, _| ()), Ok(()));
    }
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.dead_lettered), (0, 1), "{ledger}");
}

/// Retires with a notice in its stash.
struct Retiring {
    watched: AnyActorRef,
    seen: Sender<&'static str>,
    stashed: bool,
}

impl Actor for Retiring {
    type Message = bool;

    fn started(&mut self, ctx: &mut Context<bool>) -> HandlerResult {
        Ok(ctx.watch(&self.watched)?)
    }

    fn receive(&mut self, retire: bool, ctx: &mut Context<bool>) -> HandlerResult {
        if retire {
            ctx.passivate();
        } else {
            ctx.unstash_all();
        }
        Ok(())
    }

    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<bool>) -> HandlerResult {
        if std::mem::replace(&mut self.stashed, true) {
            self.seen.send("seen")?;
        } else {
            ctx.stash_terminated(terminated).map_err(|_| Failure::msg("full"))?;
            self.seen.send("stashed")?;
        }
        Ok(())
    }
}

#[test]
fn an_actor_with_a_notice_in_its_stash_does_not_retire() {
    let stage = Stage::turns();
    let other = stage.spawn(&stage.role("o"));
    let (sender, seen) = channel();
    let watched = other.untyped().unwrap();
    let mut retiring = Some(Retiring { watched, seen: sender, stashed: false });
    let actor = stage.system.spawn(move || retiring.take().ok_or(Failure::msg("made once"))).unwrap();
    other.stop();
    assert_eq!(seen.soon(), Ok("stashed"));
    actor.tell(true);
    run_turns();
    assert!(!actor.is_closed());
    actor.tell(false);
    assert_eq!(seen.soon(), Ok("seen"));
    actor.tell(true);
    wait_until(|| actor.is_closed());
    stage.end(&["o Started 1", "o Stopped 1"]);
}

#[test]
fn a_mailbox_says_how_much_is_stashed_unless_the_builder_does() {
    let stage = Stage::turns();
    let stashed = |builder: pointsman::actor::ActorBuilder| {
        let door = builder.spawn(|| Door { open: false, seen: channel().0 }).unwrap();
        (0..5).for_each(|item| door.tell(Msg::Invent(item)));
        let asked = door.ask_with(Msg::Stashed);
        run_turns();
        // What finds the stash full fails the actor, which is stopped then.
        asked.wait().ok()
    };
    let builder = || stage.system.actor("door").on_failure(Strategy::stop());
    let bounded = || Mailbox::bounded(100).stash_capacity(5);
    assert_eq!(stashed(builder().mailbox(bounded())), Some(5));
    stage.system.actor_at("/user/door").unwrap().stop();
    run_turns();
    assert_eq!(stashed(builder().mailbox(bounded().stash_capacity(4))), None);
    assert_eq!(stashed(builder().mailbox(bounded().stash_capacity(4)).stash_capacity(5)), Some(5));
    stage.system.actor_at("/user/door").unwrap().stop();
    run_turns();
    assert_eq!(stashed(builder().mailbox(bounded()).stash_capacity(4)), None);
    assert_eq!(stashed(builder().mailbox(bounded().stash_capacity(usize::MAX))), Some(5));
    stage.end(&[]);
}
