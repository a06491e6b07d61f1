//! Death watch.

use crate::support::*;
use pointsman::actor::WatchError;
use pointsman::prelude::*;
use pointsman::{FailureKind, Terminated};
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};

#[test]
fn the_end_of_a_watched_actor_is_told_once_however_often_it_is_watched() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    for _ in 0..3 {
        watch(&watcher, &watched);
    }
    watched.poison();
    wait_for_end(&stage, &watched);
    note(&watcher, "end");
    note(&watcher, "end");
    let mut notes: Vec<String> = (0..6).map(|_| stage.note()).collect();
    notes.sort();
    assert_eq!(notes, ["a Started 1", "a Stopped 1", "w Started 1", "w end", "w end", "w lost a"]);
    stage.end(&["w Stopped 1"]);
}

#[test]
fn a_restart_is_no_end_and_watches_survive_restarts_of_both_sides() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    watch(&watcher, &watched);
    fail(&watched);
    fail(&watcher);
    assert_eq!(query(&watched, |_, _| ()), Ok(()));
    assert_eq!(query(&watcher, |_, _| ()), Ok(()));
    let before: Vec<String> = stage.notes.try_iter().collect();
    assert!(before.iter().all(|note| !note.contains("lost")), "{before:?}");
    watched.stop();
    stage.expect(&["a Stopped 2", "w lost a"]);
    stage.end(&["w Stopped 2"]);
}

#[test]
fn an_actor_that_has_ended_is_told_of_at_once() {
    let stage = Stage::turns();
    let watched = stage.spawn(&stage.role("a"));
    watched.poison();
    wait_for_end(&stage, &watched);
    let watcher = stage.spawn(&stage.role("w"));
    watch(&watcher, &watched);
    stage.expect(&["a Started 1", "a Stopped 1", "w Started 1", "w lost a"]);
    // And again, if it is watched again.
    watch(&watcher, &watched);
    stage.expect(&["w lost a"]);
    stage.end(&["w Stopped 1"]);
}

#[test]
fn an_unwatched_actor_is_not_told_of_even_if_the_notice_is_queued() {
    let stage = Stage::threads("unwatch");
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    watch(&watcher, &watched);
    let other = watched.untyped().unwrap();
    let release = hold(&watcher);
    let any = other.clone();
    act(&watcher, move |_, ctx| {
        ctx.unwatch(&any);
        Ok(())
    });
    watched.stop();
    // The notice is in the watcher's lane by then, which is told in order of registration.
    wait_for_end(&stage, &watched);
    drop(release);
    note(&watcher, "end");
    assert_eq!(query(&watcher, |_, _| ()), Ok(()));
    let notes: Vec<String> = stage.notes.try_iter().collect();
    assert!(notes.iter().all(|note| !note.contains("lost")), "{notes:?}");
    stage.end(&["w Stopped 1"]);
}

#[test]
fn the_notice_is_behind_what_was_queued_before_the_end() {
    let stage = Stage::threads("behind");
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    watch(&watcher, &watched);
    let release = hold(&watcher);
    note(&watcher, "queued before");
    watched.stop();
    wait_for_end(&stage, &watched);
    drop(release);
    let notes: Vec<String> = (0..5).map(|_| stage.note()).collect();
    assert_eq!(notes[3..], ["w queued before", "w lost a"], "{notes:?}");
    stage.end(&["w Stopped 1"]);
}

#[test]
fn watch_with_brings_a_message_instead_of_the_hook() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    let target = watched.clone();
    query(&watcher, move |_, ctx| ctx.watch_with(&target, noting("own")).unwrap()).unwrap();
    watched.stop();
    let mut notes: Vec<String> = (0..4).map(|_| stage.note()).collect();
    notes[..3].sort();
    assert_eq!(notes[3], "w own");
    stage.end(&["w Stopped 1"]);
}

#[test]
fn another_notice_for_the_same_actor_is_refused_and_handed_back_until_it_is_unwatched() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    let target = watched.clone();
    query(&watcher, move |puppet, ctx| {
        ctx.watch(&target).unwrap();
        assert_eq!(ctx.watch(&target).ok(), Some(()), "the same again changes nothing");
        let refused = ctx.watch_with(&target, noting("refused")).unwrap_err();
        assert!(matches!(&refused, WatchError::OtherNotice { watched, .. } if watched.path().name() == "a"));
        assert!(refused.to_string().contains("/user/a is watched already"), "{refused}");
        // It is the very message.
        refused.into_inner().run(puppet, ctx).unwrap();
        ctx.unwatch(&target);
        ctx.watch_with(&target, noting("own")).unwrap();
        assert!(matches!(ctx.watch(&target), Err(WatchError::OtherNotice { .. })));
        assert!(matches!(ctx.watch_with(&target, noting("second")), Err(WatchError::OtherNotice { .. })));
    })
    .unwrap();
    watched.stop();
    let mut notes: Vec<String> = (0..5).map(|_| stage.note()).collect();
    notes[..4].sort();
    assert_eq!(notes, ["a Started 1", "a Stopped 1", "w Started 1", "w refused", "w own"]);
    stage.end(&["w Stopped 1"]);
}

#[test]
fn behind_a_function_there_is_nothing_to_watch() {
    struct Function;
    impl pointsman::actor::Recipient<()> for Function {
        fn deliver(&self, (): ()) -> Result<(), pointsman::SendError<()>> {
            Ok(())
        }
    }
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    query(&watcher, |puppet, ctx| {
        let function = ActorRef::to_recipient(Function);
        assert!(matches!(ctx.watch(&function), Err(WatchError::NoActor { .. })));
        assert!(matches!(ctx.watch(function.untyped()), Err(WatchError::NoActor { .. })));
        let refused = ctx.watch_with(&function, noting("back")).unwrap_err();
        assert!(matches!(refused, WatchError::NoActor { .. }));
        refused.into_inner().run(puppet, ctx).unwrap();
    })
    .unwrap();
    stage.end(&["w Started 1", "w Stopped 1", "w back"]);
}

/// Tells of each notice whether the actor was alive when the watch began.
pub struct Confirming(pub Sender<bool>, pub AnyActorRef);

impl Actor for Confirming {
    type Message = ReplyTo<()>;
    fn started(&mut self, ctx: &mut Context<ReplyTo<()>>) -> HandlerResult {
        ctx.watch(&self.1)?;
        Ok(())
    }
    fn receive(&mut self, ready: ReplyTo<()>, _: &mut Context<ReplyTo<()>>) -> HandlerResult {
        let _ = ready.send(());
        Ok(())
    }
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<ReplyTo<()>>) -> HandlerResult {
        assert_eq!(terminated.actor, self.1);
        self.0.send(terminated.existence_confirmed)?;
        Ok(())
    }
}

#[test]
fn the_notice_says_whether_the_watch_came_in_time() {
    let stage = Stage::turns();
    let watched = stage.spawn(&stage.role("a"));
    let any = watched.untyped().unwrap();
    let watcher = |name| {
        let (sender, confirmed) = channel();
        let any = any.clone();
        let watcher =
            stage.system.actor(name).spawn(move || Confirming(sender.clone(), any.clone())).unwrap();
        watcher.ask_with(|ready| ready).wait().unwrap();
        confirmed
    };
    let early = watcher("early");
    watched.stop();
    assert_eq!(early.soon(), Ok(true));
    wait_for_end(&stage, &watched);
    let late = watcher("late");
    assert_eq!(late.soon(), Ok(false));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn watched_again_after_the_notice_was_queued_there_is_a_notice_again() {
    let stage = Stage::threads("again");
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    watch(&watcher, &watched);
    let release = hold(&watcher);
    let target = watched.clone();
    act(&watcher, move |puppet, ctx| {
        ctx.unwatch(&target);
        ctx.watch(&target)?;
        puppet.note(format_args!("watches again"));
        Ok(())
    });
    watched.stop();
    wait_for_end(&stage, &watched);
    drop(release);
    let mut notes: Vec<String> = (0..5).map(|_| stage.note()).collect();
    notes[..3].sort();
    assert_eq!(notes, ["a Started 1", "a Stopped 1", "w Started 1", "w watches again", "w lost a"]);
    assert_eq!(query(&watcher, |_, _| ()), Ok(()));
    stage.end(&["w Stopped 1"]);
}

#[test]
fn a_parent_that_watches_is_told_before_other_watchers_and_these_by_age() {
    // One thread that runs actors in the order in which they were woken.
    let stage = Stage::threads_with("order", |builder| {
        builder.dispatcher("one", Dispatcher::blocking().thread_range(1..=1))
    });
    let spawn =
        |role: &Role, name: &str| stage.system.actor(name).dispatcher("one").spawn(role.recipe()).unwrap();
    let old = spawn(&stage.role("old"), "old");
    let parent = spawn(&stage.role("parent"), "parent");
    let young = spawn(&stage.role("young"), "young");
    let role = stage.role("a");
    let watched =
        query(&parent, move |_, ctx| ctx.actor("a").dispatcher("one").spawn(role.recipe()).unwrap()).unwrap();
    for watcher in [&young, &old, &parent] {
        watch(watcher, &watched);
    }
    watched.stop();
    let notes: Vec<String> = (0..8).map(|_| stage.note()).collect();
    assert_eq!(notes[5..], ["parent lost a", "old lost a", "young lost a"], "{notes:?}");
    stage.end(&["old Stopped 1", "parent Stopped 1", "young Stopped 1"]);
}

#[test]
fn watching_oneself_changes_nothing() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    watch(&actor, &actor.clone());
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    actor.stop();
    wait_for_end(&stage, &actor);
    stage.expect(&["a Started 1", "a Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn a_message_about_ones_own_end_is_dropped_at_once() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let (sender, dropped) = channel::<()>();
    let message = Tell::new(move |_, _| Ok(sender.send(())?));
    query(&actor, |_, ctx| ctx.watch_with(&ctx.me().clone(), message).unwrap()).unwrap();
    assert_eq!(dropped.try_recv(), Err(TryRecvError::Disconnected));
    actor.stop();
    wait_for_end(&stage, &actor);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

/// Watches, and leaves `terminated` as it is.
struct Pact(AnyActorRef);

impl Actor for Pact {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        ctx.watch(&self.0)?;
        Ok(())
    }
}

#[test]
fn an_unhandled_notice_is_a_death_pact() {
    let kinds: Arc<Mutex<Vec<(FailureKind, String)>>> = Arc::default();
    let seen = kinds.clone();
    let stage = Stage::turns_with(|builder| {
        builder.supervision(Strategy::decide(move |failure| {
            seen.lock().unwrap().push((failure.kind(), failure.to_string()));
            Directive::Stop
        }))
    });
    let watched = stage.spawn(&stage.role("a"));
    let any = watched.untyped().unwrap();
    let pact = stage.system.actor("pact").spawn(move || Pact(any.clone())).unwrap();
    watched.stop();
    wait_until(|| pact.is_closed());
    let kinds = kinds.lock().unwrap();
    assert_eq!(kinds[0].0, FailureKind::DeathPact);
    assert!(kinds[0].1.contains("/user/a"), "{kinds:?}");
}

#[test]
fn by_default_a_death_pact_stops_the_actor() {
    let stage = Stage::turns();
    let watched = stage.spawn(&stage.role("a"));
    let any = watched.untyped().unwrap();
    let (sender, made) = channel();
    let recipe = move || {
        sender.send(())?;
        Ok::<_, Failure>(Pact(any.clone()))
    };
    let pact = stage.system.actor("pact").spawn(recipe).unwrap();
    watched.stop();
    wait_until(|| pact.is_closed());
    assert_eq!(made.try_iter().count(), 1);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

/// Re-creates its child under the same name in the notice of its end.
struct Nurse {
    log: Sender<usize>,
    generation: usize,
}

struct Short;

impl Actor for Short {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        ctx.stop();
        Ok(())
    }
}

impl Nurse {
    fn bear(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        self.generation += 1;
        let child = ctx.actor("child").spawn(|| Short)?;
        // The child ends at this very moment.
        ctx.watch(&child)?;
        Ok(())
    }
}

impl Actor for Nurse {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        self.bear(ctx)
    }
    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<()>) -> HandlerResult {
        assert_eq!(terminated.actor.path().name(), "child");
        assert!(ctx.child("child").is_none(), "the name is free");
        self.log.send(self.generation)?;
        if self.generation < 2000 { self.bear(ctx) } else { Ok(()) }
    }
}

#[test]
fn in_the_notice_of_a_childs_end_its_name_is_free() {
    let system = System::builder("nurse")
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .build()
        .unwrap();
    let (log, generations) = channel();
    let mut nurse = Some(Nurse { log, generation: 0 });
    let _nurse = system.actor("nurse").spawn(move || nurse.take().ok_or(Failure::msg("made once"))).unwrap();
    for generation in 1..=2000 {
        assert_eq!(generations.soon(), Ok(generation));
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_late_notice_of_a_child_that_a_restart_has_stopped_does_not_reach_the_new_state() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let old = child(&actor, &stage.role("old"));
    watch(&actor, &old);
    fail(&actor);
    wait_for_end(&stage, &old);
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    let notes: Vec<String> = stage.notes.try_iter().collect();
    assert!(notes.iter().all(|note| !note.contains("lost")), "{notes:?}");
    stage.end(&["a Stopped 2"]);
}

#[test]
fn a_watcher_that_has_ended_is_told_nothing() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    let watched = stage.spawn(&stage.role("a"));
    watch(&watcher, &watched);
    watcher.stop();
    wait_for_end(&stage, &watcher);
    watched.stop();
    wait_for_end(&stage, &watched);
    let mut notes: Vec<String> = stage.notes.try_iter().collect();
    notes.sort();
    assert_eq!(notes, ["a Started 1", "a Stopped 1", "w Started 1", "w Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn many_watchers_are_each_told() {
    let stage = Stage::turns();
    let watched = stage.spawn(&stage.role("a"));
    let watchers: Vec<_> = (0..200).map(|_| stage.system.spawn(stage.role("w").recipe()).unwrap()).collect();
    for watcher in &watchers {
        watch(watcher, &watched);
    }
    watched.stop();
    let mut told = 0;
    while told < watchers.len() {
        told += usize::from(stage.note() == "w lost a");
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_router_is_watched_by_its_end_and_not_by_those_of_its_routees() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    let role = stage.role("r");
    let router = stage.system.router("all").pool(2, move |_| role.recipe()()).spawn().unwrap();
    let watched = router.clone();
    query(&watcher, move |_, ctx| ctx.watch(&watched)).unwrap().unwrap();
    let mut begun = [stage.note(), stage.note(), stage.note()];
    begun.sort();
    assert_eq!(begun, ["r Started 1", "r Started 2", "w Started 1"]);
    router.resize_to(1).unwrap();
    assert!(stage.note().starts_with("r Stopped"), "one of two, which is no end");
    router.stop();
    let mut last = [stage.note(), stage.note()];
    last.sort();
    assert!(last[0].starts_with("r Stopped") && last[1] == "w lost all", "{last:?}");
    stage.end(&["w Stopped 1"]);
}
