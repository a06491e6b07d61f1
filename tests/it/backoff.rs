//! Supervisors that wait before they create their child anew.

use crate::support::*;
use pointsman::Directive;
use pointsman::actor::RecipientLoad;
use pointsman::pattern::{Backoff, BackoffSupervisor, SettingError};
use pointsman::prelude::*;
use pointsman::{SendError, SpawnError, SystemBuilder};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A supervised puppet, with all that concerns it on one worker.
struct Ward {
    stage: Stage,
    supervisor: BackoffSupervisor<Tell>,
    probes: Cell<u32>,
}

/// Ends in its first turn.
struct Probe(Sender<()>);

impl Actor for Probe {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        ctx.stop();
        self.0.send(())?;
        Ok(())
    }
}

impl Ward {
    fn new(backoff: Backoff<Tell>) -> Self {
        Self::with(backoff, |role| role)
    }

    fn with(backoff: Backoff<Tell>, change: impl FnOnce(Role) -> Role) -> Self {
        Self::on(Stage::turns_with(Self::dispatcher), backoff, change)
    }

    fn dispatcher(builder: SystemBuilder) -> SystemBuilder {
        builder.dispatcher("one", Dispatcher::work_stealing().threads(1))
    }

    fn on(stage: Stage, backoff: Backoff<Tell>, change: impl FnOnce(Role) -> Role) -> Self {
        // The clones of one role count together.
        let role = change(stage.role("c"));
        let recipe = Mutex::new(role.recipe());
        let backoff = backoff.child(|child| child.dispatcher("one"));
        let supervisor = stage
            .system
            .actor("s")
            .dispatcher("one")
            .spawn_backoff(backoff, move |_: &mut Context<Tell>| recipe.lock().unwrap()())
            .unwrap();
        Self { stage, supervisor, probes: Cell::new(0) }
    }

    /// Waits until it is waited for the next child; tells after how many seconds that comes.
    fn next_child_after(&self, restarts: u32) -> u64 {
        wait_until(|| self.supervisor.restarts() == restarts && self.supervisor.child().is_none());
        for waited in 1..=100 {
            self.advance(SECOND);
            if self.supervisor.child().is_some() {
                return waited;
            }
        }
        panic!("no child after 100 s");
    }

    /// Moves the clock; returns when the supervisor has done what fell due.
    fn advance(&self, by: Duration) {
        self.stage.clock.advance(by);
        // A new actor has its turn after all that were woken before, since there is one worker.
        self.probes.set(self.probes.get() + 1);
        let (sender, turn) = channel();
        let name = format!("probe-{}", self.probes.get());
        let probe = self.stage.system.actor(&name).dispatcher("one");
        probe.spawn(move || Probe(sender.clone())).unwrap();
        turn.soon().unwrap();
    }

    fn end_child(&self) {
        self.supervisor.child().expect("there is one").stop();
    }

    fn wait_for_end(&self) {
        wait_for_end(&self.stage, &self.supervisor);
        assert!(self.supervisor.is_closed());
        assert_eq!(self.supervisor.child(), None);
    }

    #[track_caller]
    fn balances(self) {
        drop(self.supervisor);
        assert_eq!(self.stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

fn on_stop() -> Backoff<Tell> {
    Backoff::on_stop(SECOND, 8 * SECOND)
}

fn on_failure() -> Backoff<Tell> {
    Backoff::on_failure(SECOND, 8 * SECOND)
}

#[test]
fn an_ended_child_is_created_anew_after_delays_that_double_up_to_the_longest() {
    let ward = Ward::new(on_stop().manual_reset());
    let first = ward.supervisor.child().unwrap();
    let mut delays = Vec::new();
    for restarts in 1..=6 {
        ward.end_child();
        delays.push(ward.next_child_after(restarts));
    }
    assert_eq!(delays, [1, 2, 4, 8, 8, 8]);
    let last = ward.supervisor.child().unwrap();
    assert_eq!(first.path().to_string(), "/user/s/child");
    assert_eq!(last.path(), first.path());
    assert_ne!(last.uid(), first.uid());
    assert!(first.is_closed());
    ward.balances();
}

#[test]
fn the_reference_is_good_at_once_and_for_each_child() {
    let ward = Ward::new(on_stop());
    let anyone = ward.supervisor.to_ref();
    note(&anyone, "to the first");
    ward.stage.expect(&["c Started 1", "c to the first"]);
    assert_eq!(query(&anyone, |_, ctx| ctx.path().to_string()).as_deref(), Ok("/user/s/child"));
    ward.end_child();
    ward.next_child_after(1);
    note(&anyone, "to the second");
    ward.stage.expect(&["c Stopped 1", "c Started 2", "c to the second"]);
    // One delivery each, and one for each query.
    let ledger = ward.stage.system.ledger();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
    assert_eq!(anyone.path().to_string(), "/user/s");
    ward.balances();
}

#[test]
fn a_message_to_the_supervisors_reference_is_one_delivery() {
    let stage = Stage::turns();
    let role = stage.role("c");
    let supervisor = stage
        .system
        .actor("s")
        .spawn_backoff(on_stop(), move |_: &mut Context<Tell>| role.recipe()())
        .unwrap();
    for _ in 0..10 {
        note(&supervisor, "x");
    }
    (0..11).for_each(|_| drop(stage.note()));
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (10, 10, 0), "{ledger}");
    stage.end(&["c Stopped 1"]);
}

#[test]
fn a_failure_judged_with_restart_is_a_stop_and_a_creation_later() {
    let ward = Ward::new(on_failure().manual_reset());
    let first = ward.supervisor.child().unwrap();
    fail(&ward.supervisor);
    assert_eq!(ward.next_child_after(1), 1);
    assert!(first.is_closed());
    act(&ward.supervisor, |_, _| panic!("as told"));
    assert_eq!(ward.next_child_after(2), 2);
    // No hook of a restart in place.
    assert_eq!(query(&ward.supervisor, |_, _| ()), Ok(()));
    ward.stage.expect(&["c Started 1", "c Stopped 1", "c Started 2", "c Stopped 2", "c Started 3"]);
    ward.balances();
}

#[test]
fn on_failure_a_child_that_ends_by_itself_or_by_a_stop_verdict_ends_the_supervisor() {
    let by_itself = Ward::new(on_failure());
    by_itself.end_child();
    by_itself.wait_for_end();
    by_itself.balances();
    let by_verdict = Ward::new(on_failure().supervision(Strategy::stop()));
    fail(&by_verdict.supervisor);
    by_verdict.wait_for_end();
    by_verdict.balances();
    // By the default strategy a failed creation is an end.
    let unborn = Ward::with(on_failure(), |role| {
        role.on_hook(|hook, _| if hook == Hook::Recipe { Err(Failure::msg("no")) } else { Ok(()) })
    });
    unborn.wait_for_end();
    unborn.balances();
}

#[test]
fn on_failure_a_creation_that_fails_is_waited_for_if_the_strategy_says_restart() {
    let backoff = on_failure().manual_reset().supervision(Strategy::decide(|_| Directive::Restart));
    let ward = Ward::with(backoff, |role| {
        role.on_hook(|hook, number| match hook {
            Hook::Recipe if number < 3 => Err(Failure::msg("not yet")),
            _ => Ok(()),
        })
    });
    for restarts in 1..=2 {
        wait_until(|| ward.supervisor.restarts() == restarts);
        ward.advance(SECOND * restarts);
    }
    assert_eq!(query(&ward.supervisor, |_, _| ()), Ok(()));
    ward.stage.expect(&["c Started 3"]);
    ward.balances();
}

#[test]
fn on_failure_resume_keeps_the_child() {
    let ward = Ward::new(on_failure().supervision(Strategy::resume()));
    act(&ward.supervisor, |puppet, _| {
        puppet.value = 3;
        Err(Failure::msg("as told"))
    });
    assert_eq!(query(&ward.supervisor, |puppet, _| puppet.value), Ok(3));
    assert_eq!(ward.supervisor.restarts(), 0);
    ward.balances();
}

#[test]
fn on_stop_failures_restart_in_place_unless_the_strategy_stops() {
    let ward = Ward::new(on_stop());
    fail(&ward.supervisor);
    assert_eq!(query(&ward.supervisor, |_, _| ()), Ok(()));
    assert_eq!(ward.supervisor.restarts(), 0);
    ward.balances();
    let ward = Ward::new(on_stop().supervision(Strategy::stop()));
    fail(&ward.supervisor);
    assert_eq!(ward.next_child_after(1), 1);
    ward.balances();
}

#[test]
fn after_a_quiet_time_the_delay_starts_again_and_a_child_that_ends_before_does_not_count_as_quiet() {
    let ward = Ward::new(on_stop().reset_after(4 * SECOND));
    ward.end_child();
    assert_eq!(ward.next_child_after(1), 1);
    ward.advance(3 * SECOND);
    assert_eq!(ward.supervisor.restarts(), 1);
    ward.end_child();
    assert_eq!(ward.next_child_after(2), 2);
    ward.advance(4 * SECOND);
    assert_eq!(ward.supervisor.restarts(), 0);
    ward.end_child();
    assert_eq!(ward.next_child_after(1), 1);
    ward.balances();
}

#[test]
fn without_another_word_the_quiet_time_is_the_shortest_delay() {
    let ward = Ward::new(on_stop());
    ward.end_child();
    assert_eq!(ward.next_child_after(1), 1);
    ward.advance(SECOND - Duration::from_millis(1));
    assert_eq!(ward.supervisor.restarts(), 1);
    ward.advance(Duration::from_millis(1));
    assert_eq!(ward.supervisor.restarts(), 0);
    ward.balances();
}

#[test]
fn a_reset_by_hand_starts_the_delay_again_and_the_limit_too() {
    let ward = Ward::new(on_stop().manual_reset().max_restarts(2));
    for _ in 0..2 {
        for (restarts, delay) in [(1, 1), (2, 2)] {
            ward.end_child();
            assert_eq!(ward.next_child_after(restarts), delay);
        }
        ward.advance(100 * SECOND);
        assert_eq!(ward.supervisor.restarts(), 2);
        ward.supervisor.reset();
        wait_until(|| ward.supervisor.restarts() == 0);
    }
    ward.balances();
}

#[test]
fn beyond_the_limit_the_supervisor_stops() {
    for backoff in [on_stop().supervision(Strategy::stop()), on_failure()] {
        let ward = Ward::new(backoff.manual_reset().max_restarts(2));
        for restarts in 1..=2 {
            fail(&ward.supervisor);
            ward.next_child_after(restarts);
        }
        fail(&ward.supervisor);
        ward.wait_for_end();
        ward.balances();
    }
}

#[test]
fn a_limit_with_a_window_counts_within_it() {
    let ward = Ward::new(on_failure().manual_reset().max_restarts(1).within(10 * SECOND));
    fail(&ward.supervisor);
    ward.next_child_after(1);
    ward.advance(20 * SECOND);
    fail(&ward.supervisor);
    ward.next_child_after(2);
    fail(&ward.supervisor);
    ward.wait_for_end();
    ward.balances();
}

#[test]
fn what_is_said_of_the_child_at_several_calls_counts_all() {
    let stage = Stage::turns();
    let small = || Backoff::on_stop(SECOND, SECOND).child(|child| child.mailbox(Mailbox::bounded(1)));
    let spawn = |name: &str, backoff| {
        let recipe = Mutex::new(stage.role("child").recipe());
        stage
            .system
            .actor(name)
            .spawn_backoff(backoff, move |_: &mut Context<Tell>| (recipe.lock().unwrap())())
    };
    let refused = spawn("first", small().child(|child| child.dispatcher("none")).child(|child| child));
    assert!(matches!(refused, Err(SpawnError::UnknownDispatcher { .. })), "{refused:?}");
    let supervisor = spawn("second", small().child(|child| child.dispatcher("default"))).unwrap();
    let nothing = || Tell::new(|_, _| Ok(()));
    assert!(supervisor.try_tell(nothing()).is_ok());
    assert!(matches!(supervisor.try_tell(nothing()), Err(SendError::Full(_))));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn while_there_is_no_child_messages_are_refused() {
    let ward = Ward::new(on_stop());
    ward.end_child();
    wait_until(|| ward.supervisor.restarts() == 1);
    assert_eq!(ward.supervisor.load(), RecipientLoad::Suspended);
    assert!(!ward.supervisor.is_closed());
    let back = ward.supervisor.try_tell(Tell::new(|_, _| Ok(())));
    assert!(matches!(back, Err(SendError::Closed(_))));
    let before = ward.stage.system.ledger().dead_lettered;
    note(&ward.supervisor, "never");
    assert_eq!(ward.stage.system.ledger().dead_lettered, before + 1);
    ward.balances();
}

#[test]
fn while_there_is_no_child_a_function_may_handle_messages_and_after_the_end_nobody_does() {
    let handled = Arc::new(AtomicUsize::new(0));
    let seen = handled.clone();
    let ward = Ward::new(on_stop().without_child(move |message: Tell| {
        drop(message);
        seen.fetch_add(1, Ordering::SeqCst);
    }));
    note(&ward.supervisor, "to the child");
    ward.stage.expect(&["c Started 1", "c to the child"]);
    ward.end_child();
    wait_until(|| ward.supervisor.restarts() == 1);
    let before = ward.stage.system.ledger();
    note(&ward.supervisor, "to the function");
    assert!(ward.supervisor.try_tell(Tell::new(|_, _| Ok(()))).is_ok());
    assert_eq!(handled.load(Ordering::SeqCst), 2);
    let after = ward.stage.system.ledger();
    assert_eq!((after.handled, after.balance()), (before.handled + 2, 0), "{after}");
    // An ask whose port the function drops fails at once.
    assert_eq!(query(&ward.supervisor, |_, _| ()), Err(AskError::no_reply()));
    ward.supervisor.stop();
    ward.wait_for_end();
    note(&ward.supervisor, "to nobody");
    assert_eq!(handled.load(Ordering::SeqCst), 3);
    ward.balances();
}

#[test]
fn a_function_that_panics_takes_its_message_along_and_is_its_senders_panic() {
    let ward = Ward::new(on_stop().without_child(|_| panic!("as told")));
    ward.end_child();
    wait_until(|| ward.supervisor.restarts() == 1);
    let before = ward.stage.system.ledger().dead_lettered;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| note(&ward.supervisor, "x")));
    assert!(panicked.is_err());
    assert_eq!(ward.stage.system.ledger().dead_lettered, before + 1);
    ward.next_child_after(1);
    ward.balances();
}

/// What a supervisor of counters takes.
struct Counter;

impl Actor for Counter {
    type Message = u32;
    fn receive(&mut self, message: u32, ctx: &mut Context<u32>) -> HandlerResult {
        if message == 0 {
            ctx.stop();
        }
        Ok(())
    }
}

#[test]
fn after_a_last_message_the_child_is_not_created_anew() {
    let stage = Stage::turns();
    let backoff = || Backoff::on_stop(SECOND, SECOND).last_message(|message: &u32| *message == 0);
    let with_child =
        stage.system.actor("s").spawn_backoff(backoff(), |_: &mut Context<u32>| Counter).unwrap();
    with_child.tell(1u32);
    with_child.tell(0u32);
    wait_until(|| with_child.is_closed());
    assert_eq!(with_child.restarts(), 0);
    let without = stage.system.actor("t").spawn_backoff(backoff(), |_: &mut Context<u32>| Counter).unwrap();
    without.child().unwrap().stop();
    wait_until(|| without.restarts() == 1);
    without.tell(1u32);
    assert!(!without.is_closed());
    without.tell(0u32);
    wait_until(|| without.is_closed());
    stage.end(&[]);
}

#[test]
fn a_last_message_that_a_full_mailbox_hands_back_was_not_sent() {
    let stage = Stage::threads("full");
    let (entered, inside) = std::sync::mpsc::channel();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    struct Slow(std::sync::mpsc::Sender<()>, Arc<Mutex<std::sync::mpsc::Receiver<()>>>);
    impl Actor for Slow {
        type Message = u32;
        fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
            self.0.send(())?;
            let _ = self.1.lock().unwrap().recv();
            Ok(())
        }
    }
    let backoff = Backoff::on_stop(SECOND, SECOND)
        .last_message(|message: &u32| *message == 0)
        .child(|child| child.mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Reject)));
    let supervisor = stage
        .system
        .actor("s")
        .spawn_backoff(backoff, move |_: &mut Context<u32>| Slow(entered.clone(), held.clone()))
        .unwrap();
    supervisor.tell(1u32);
    inside.soon().unwrap();
    supervisor.tell(2u32);
    assert!(matches!(supervisor.try_tell(0u32), Err(SendError::Full(0))));
    supervisor.child().unwrap().stop();
    drop(release);
    wait_until(|| supervisor.restarts() == 1);
    stage.end(&[]);
}

#[test]
fn jitter_lengthens_each_delay_by_chance_and_alike_for_one_seed() {
    let delays = || {
        let backoff = Backoff::on_stop(10 * SECOND, 10 * SECOND).jitter(1.0).manual_reset();
        let ward = Ward::on(Stage::turns_of(7, Ward::dispatcher), backoff, |role| role);
        let delays: Vec<u64> = (1..=8)
            .map(|restarts| {
                ward.end_child();
                ward.next_child_after(restarts)
            })
            .collect();
        ward.balances();
        delays
    };
    let first = delays();
    assert!(first.iter().all(|delay| (10..=20).contains(delay)), "{first:?}");
    assert!(first.iter().any(|delay| *delay != first[0]), "{first:?}");
    assert_eq!(delays(), first);
}

#[test]
fn settings_that_make_no_sense_are_refused_and_leave_nothing_behind() {
    let stage = Stage::turns();
    let living = stage.system.living_actors();
    let refused = |backoff: Backoff<u32>| match stage
        .system
        .actor("s")
        .spawn_backoff(backoff, |_: &mut Context<u32>| Counter)
    {
        Err(SpawnError::Backoff(error)) => error,
        other => panic!("{other:?}"),
    };
    let (min, max) = (SECOND, 2 * SECOND);
    let shortest = SettingError::new("shortest delay", 0, "above 0");
    assert_eq!(refused(Backoff::on_stop(Duration::ZERO, max)), shortest);
    let longest = SettingError::new("longest delay", "1s", "at least the shortest, 2s");
    assert_eq!(refused(Backoff::on_stop(max, min)), longest);
    let jitter = |value: f64| SettingError::new("jitter", value, "between 0 and 1");
    for value in [1.5, f64::NAN] {
        assert_eq!(refused(Backoff::on_stop(min, max).jitter(value)), jitter(value));
    }
    let error = refused(Backoff::on_failure(min, max).reset_after(3 * SECOND));
    assert_eq!(error, SettingError::new("reset after", "3s", "between 1s and 2s, or manual"));
    assert_eq!(error.to_string(), "reset after 3s: must be between 1s and 2s, or manual");
    assert_eq!(stage.system.living_actors(), living);
    // A child that cannot be made takes its supervisor along.
    let backoff = Backoff::on_stop(min, max).child(|child| child.dispatcher("nowhere"));
    let none = stage.system.actor("s").spawn_backoff(backoff, |_: &mut Context<u32>| Counter);
    assert!(matches!(none, Err(SpawnError::UnknownDispatcher { .. })), "{none:?}");
    let backoff = Backoff::on_stop(min, max).child_name("a/b");
    let mut none = stage.system.actor("t").spawn_backoff(backoff, |_: &mut Context<u32>| Counter);
    assert!(matches!(none, Err(SpawnError::Name(_))), "{none:?}");
    wait_until(|| stage.system.living_actors() == living);
    wait_until(|| {
        none =
            stage.system.actor("s").spawn_backoff(Backoff::on_stop(min, max), |_: &mut Context<u32>| Counter);
        none.is_ok()
    });
    drop(none);
    stage.end(&[]);
}

#[test]
fn a_failure_that_the_child_passes_on_restarts_supervisor_and_child() {
    let ward = Ward::new(on_failure().supervision(Strategy::escalate()));
    let first = ward.supervisor.child().unwrap();
    fail(&ward.supervisor);
    wait_until(|| ward.supervisor.child().is_some_and(|child| child != first));
    assert_eq!(query(&ward.supervisor, |_, _| ()), Ok(()));
    assert!(first.is_closed() && !ward.supervisor.is_closed());
    ward.balances();
}

#[test]
fn the_supervisor_is_watched_through_its_handle_and_outlives_its_children() {
    let ward = Ward::new(on_stop());
    let handle = ward.supervisor.clone();
    let watcher = ward.stage.spawn(&ward.stage.role("w"));
    query(&watcher, move |_, ctx| ctx.watch(&handle).unwrap()).unwrap();
    ward.end_child();
    ward.next_child_after(1);
    ward.supervisor.stop();
    let mut notes: Vec<String> = (0..6).map(|_| ward.stage.note()).collect();
    notes.sort();
    assert_eq!(
        notes,
        ["c Started 1", "c Started 2", "c Stopped 1", "c Stopped 2", "w Started 1", "w lost s"]
    );
    ward.balances();
}

#[test]
fn what_recipe_and_settings_captured_is_freed_with_the_supervisor() {
    let stage = Stage::turns();
    let token = Arc::new(());
    let (in_recipe, in_function) = (token.clone(), token.clone());
    let backoff = Backoff::on_failure(SECOND, SECOND).without_child(move |_: u32| {
        let _ = &in_function;
    });
    let supervisor = stage
        .system
        .actor("s")
        .spawn_backoff(backoff, move |_: &mut Context<u32>| {
            let _ = &in_recipe;
            Counter
        })
        .unwrap();
    supervisor.stop();
    wait_until(|| supervisor.is_closed());
    drop(supervisor);
    wait_until(|| Arc::strong_count(&token) == 1);
    stage.end(&[]);
}

#[test]
fn a_function_gets_the_last_message_too_though_the_supervisor_ends_by_it_at_once() {
    let system = System::builder("last").dispatcher("here", Dispatcher::calling_thread()).build().unwrap();
    let (sender, handled) = channel();
    let backoff = Backoff::on_stop(SECOND, SECOND)
        .last_message(|message: &u32| *message == 0)
        .child(|child| child.dispatcher("here"))
        .without_child(move |message| sender.send(message).unwrap());
    let supervisor =
        system.actor("s").dispatcher("here").spawn_backoff(backoff, |_: &mut Context<u32>| Counter).unwrap();
    supervisor.child().unwrap().stop();
    wait_until(|| supervisor.child().is_none());
    supervisor.tell(0u32);
    assert_eq!(handled.try_iter().collect::<Vec<_>>(), [0]);
    wait_until(|| supervisor.is_closed());
    assert_eq!(system.ledger().dead_lettered, 0);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// A supervisor below a puppet, which restarts it; and what kills it and returns when it has been told to restart.
fn below_a_puppet(
    stage: &Stage,
    backoff: Backoff<Tell>,
) -> (BackoffSupervisor<Tell>, impl FnOnce(&BackoffSupervisor<Tell>) + use<>) {
    let parent = stage.spawn(&stage.role("p"));
    stage.expect(&["p Started 1"]);
    let recipe = Mutex::new(stage.role("c").recipe());
    let (sender, judged) = channel();
    let supervisor = query(&parent, move |_, ctx| {
        let strategy = Strategy::decide(move |_| {
            let _ = sender.send(());
            Directive::Restart
        });
        let builder = ctx.actor("s").on_failure(strategy);
        builder.spawn_backoff(backoff, move |_: &mut Context<Tell>| recipe.lock().unwrap()()).unwrap()
    });
    stage.expect(&["c Started 1"]);
    let restart = move |supervisor: &BackoffSupervisor<Tell>| {
        supervisor.kill();
        judged.soon().unwrap();
        // Its verdict is on its way when it handles a message again.
        query(&parent, |_, _| ()).unwrap();
    };
    (supervisor.unwrap(), restart)
}

#[test]
fn a_failure_that_a_restart_of_the_supervisor_has_settled_makes_no_child_anew_that_ends_by_itself() {
    let stage = Stage::threads("settled");
    let (supervisor, restart) = below_a_puppet(&stage, on_failure());
    let first = supervisor.child().unwrap();
    // Keeps its parent from ending.
    let below = child(&first, &stage.role("g"));
    stage.expect(&["g Started 1"]);
    let release = hold(&below);
    fail(&first);
    wait_until(|| first.load() == RecipientLoad::Suspended);
    restart(&supervisor);
    drop(release);
    let mut notes = [stage.note(), stage.note(), stage.note()];
    notes.sort();
    assert_eq!(notes, ["c Started 2", "c Stopped 1", "g Stopped 1"]);
    wait_until(|| supervisor.child().is_some_and(|child| child != first));
    supervisor.child().unwrap().stop();
    wait_until(|| supervisor.is_closed() || supervisor.restarts() > 0);
    assert_eq!(supervisor.restarts(), 0);
    stage.end(&["c Stopped 2", "p Stopped 1"]);
}

#[test]
fn what_settings_captured_is_freed_though_the_supervisor_was_stopped_in_a_restart() {
    let stage = Stage::threads("freed");
    let token = Arc::new(());
    let in_function = token.clone();
    let backoff = on_failure().without_child(move |_: Tell| {
        let _ = &in_function;
    });
    let (supervisor, restart) = below_a_puppet(&stage, backoff);
    let release = hold(&supervisor.child().unwrap());
    restart(&supervisor);
    supervisor.stop();
    drop(release);
    wait_until(|| supervisor.is_closed());
    drop(supervisor);
    stage.end(&["c Stopped 1", "p Stopped 1"]);
    assert_eq!(Arc::strong_count(&token), 1);
}
