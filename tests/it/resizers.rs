//! Pools whose size follows their load.

use crate::support::{LONG, ListsByHead, Stage, child, fail, query, wait_until};
use pointsman::actor::RecipientLoad;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, DefaultResizer, Manage, OptimalSizeExploringResizer, Resizer, RoundRobin,
    RouteContext, RouteeLoads, Routees, RoutingLogic, ScatterGatherFirstCompleted, SettingError,
    SmallestMailbox, TailChopping,
};
use pointsman::testkit::TestSystem;
use pointsman::time::ManualClock;
use pointsman::{DeadLetterReason, SendError, SpawnError};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Waits in its handler as long as somebody has the lock.
struct Worker {
    hold: Arc<Mutex<()>>,
    handled: Arc<AtomicUsize>,
}

impl Actor for Worker {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        drop(self.hold.lock());
        self.handled.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A system by a manual clock, whose pools can be held.
struct Yard {
    system: System,
    clock: ManualClock,
    hold: Arc<Mutex<()>>,
    handled: Arc<AtomicUsize>,
}

impl Yard {
    fn new() -> Self {
        let clock = ManualClock::new();
        let system = System::builder("yard")
            .clock(clock.clone())
            .seed(5)
            .dispatcher("hold", Dispatcher::blocking().thread_range(1..=16))
            .build()
            .unwrap();
        Self { system, clock, hold: Arc::default(), handled: Arc::default() }
    }

    fn pool(&self, size: usize, resizer: impl Resizer) -> Router<u64> {
        self.routed(size, resizer, RoundRobin::new())
    }

    fn routed(&self, size: usize, resizer: impl Resizer, logic: impl RoutingLogic<u64>) -> Router<u64> {
        let (hold, handled) = (self.hold.clone(), self.handled.clone());
        let recipe = move |_: &mut Context<u64>| Worker { hold: hold.clone(), handled: handled.clone() };
        let plan = self.system.router("pool").pool(size, recipe).dispatcher("hold");
        plan.resizer(resizer).logic(logic).spawn().unwrap()
    }

    fn end(self) -> pointsman::Ledger {
        let ledger = self.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        ledger
    }
}

/// The size once the head has done what it was told before.
fn size(router: &Router<u64>) -> usize {
    router.routees_by_head().unwrap().len()
}

fn tell(router: &Router<u64>, messages: u64) {
    (0..messages).for_each(|number| router.tell(number));
}

/// Notes what it is asked, and says what it is told to say.
#[derive(Default)]
struct Scripted {
    counts: Mutex<Vec<u64>>,
    /// Sizes, and messages since the time before.
    asked: Mutex<Vec<(usize, u64)>>,
    every: u64,
    delta: AtomicIsize,
    tick: Option<Duration>,
}

impl Scripted {
    fn every(every: u64) -> Arc<Self> {
        Arc::new(Self { every, ..Self::default() })
    }

    fn counts(&self) -> Vec<u64> {
        self.counts.lock().unwrap().clone()
    }

    fn asked(&self) -> Vec<(usize, u64)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resizer for Scripted {
    fn is_time_for_resize(&self, messages: u64) -> bool {
        self.counts.lock().unwrap().push(messages);
        messages > 0 && messages % self.every == 0
    }

    fn resize(&self, loads: &RouteeLoads) -> isize {
        self.asked.lock().unwrap().push((loads.len(), loads.new_messages()));
        self.delta.load(Ordering::SeqCst)
    }

    fn tick(&self) -> Option<Duration> {
        self.tick
    }
}

#[test]
fn a_resizer_of_the_users_own_has_no_tick_unless_it_says_so() {
    struct Own(Arc<Scripted>);
    impl Resizer for Own {
        fn is_time_for_resize(&self, messages: u64) -> bool {
            self.0.is_time_for_resize(messages)
        }
        fn resize(&self, loads: &RouteeLoads) -> isize {
            self.0.resize(loads)
        }
    }
    let yard = Yard::new();
    let resizer = Scripted::every(1000);
    let router = yard.pool(2, Own(resizer.clone()));
    assert_eq!(size(&router), 2, "the head has started");
    yard.clock.advance(Duration::from_secs(100));
    assert_eq!(size(&router), 2);
    assert_eq!(resizer.asked(), []);
    yard.end();
}

#[test]
fn under_full_load_a_pool_grows_1_2_3_4_5_6_8_10_with_each_ten_messages() {
    let yard = Yard::new();
    let held = yard.hold.lock().unwrap();
    let router = yard.pool(1, DefaultResizer::new().pressure_threshold(0));
    let mut sizes = vec![size(&router)];
    for _ in 0..8 {
        tell(&router, 9);
        assert_eq!(size(&router), sizes[sizes.len() - 1], "not before the tenth");
        tell(&router, 1);
        sizes.push(size(&router));
    }
    assert_eq!(sizes, [1, 2, 3, 4, 5, 6, 8, 10, 10]);
    drop(held);
    let handled = yard.handled.clone();
    wait_until(|| handled.load(Ordering::SeqCst) == 80);
    drop(router);
    yard.end();
}

#[test]
fn a_pool_with_a_free_routee_does_not_grow() {
    let yard = Yard::new();
    let router =
        yard.pool(2, DefaultResizer::new().pressure_threshold(0).messages_per_resize(1).lower_bound(2));
    wait_until(|| {
        router.routees_by_head().unwrap().iter().all(|routee| routee.load() == RecipientLoad::Idle)
    });
    let held = yard.hold.lock().unwrap();
    tell(&router, 1);
    assert_eq!(size(&router), 2, "one is free");
    tell(&router, 1);
    assert_eq!(size(&router), 3);
    drop(held);
    yard.end();
}

#[test]
fn a_new_pool_is_resized_before_it_routes() {
    for (asked, made) in [(5, 4), (15, 13), (0, 2), (1, 2)] {
        let yard = Yard::new();
        let router = yard.pool(asked, DefaultResizer::new().lower_bound(2).upper_bound(15));
        let first: Vec<_> = router.routees_by_head().unwrap();
        assert_eq!(first.len(), made, "{asked} routees asked for");
        yard.end();
    }
}

#[test]
fn an_idle_pool_shrinks_by_the_clock_without_traffic() {
    let yard = Yard::new();
    let router = yard.pool(5, DefaultResizer::new());
    let mut sizes = vec![size(&router)];
    for _ in 0..5 {
        yard.clock.advance(Duration::from_secs(10));
        sizes.push(size(&router));
    }
    assert_eq!(sizes, [4, 3, 2, 1, 1, 1]);
    yard.end();
}

#[test]
fn without_ticks_only_traffic_resizes() {
    let yard = Yard::new();
    let router = yard.pool(5, DefaultResizer::new().without_ticks(true));
    yard.clock.advance(Duration::from_secs(1 << 30));
    assert_eq!(size(&router), 4);
    // One at a time, so that nobody is busy when the head looks.
    for sent in 1..=10 {
        router.tell(0u64);
        wait_until(|| yard.handled.load(Ordering::SeqCst) == sent);
    }
    wait_until(|| size(&router) == 3);
    yard.end();
}

#[test]
fn ticks_come_with_a_resizer_and_end_with_the_router() {
    let system = TestSystem::new();
    let made = || Worker { hold: Arc::default(), handled: Arc::default() };
    let plain = system.router("plain").pool(2, move |_| made()).spawn().unwrap();
    let resizer = Arc::new(Scripted { every: 1, tick: Some(Duration::from_secs(1)), ..Scripted::default() });
    let ticking = system.router("ticking").pool(2, move |_| made()).resizer(resizer.clone()).spawn().unwrap();
    system.run_until_idle();
    let before = system.trace().len();
    system.advance(Duration::from_secs(60));
    assert_eq!(resizer.asked(), [(2, 0); 60]);
    let turns: Vec<String> = system.trace().split_off(before);
    assert!(turns.iter().all(|path| path == "/user/ticking"), "{turns:?}");
    ticking.stop();
    system.run_until_idle();
    let before = system.trace().len();
    system.advance(Duration::from_secs(3600));
    assert_eq!((system.trace().len(), resizer.asked().len()), (before, 60));
    plain.stop();
    system.finish();
}

#[test]
fn each_thread_counts_its_own_messages_a_broadcast_once_and_management_not_at_all() {
    let yard = Yard::new();
    let resizer = Scripted::every(3);
    let router = yard.pool(4, resizer.clone());
    assert_eq!(resizer.counts(), [0], "asked about a new pool");
    router.tell(1u64);
    assert_eq!(router.broadcast(2u64), 4);
    router.resize_to(3).unwrap();
    assert_eq!(size(&router), 3);
    router.try_tell(3u64).unwrap();
    assert_eq!(size(&router), 3);
    assert_eq!((resizer.counts(), resizer.asked()), (vec![0, 1, 2, 3], vec![(3, 3)]));
    // What other threads send comes to what they have sent before, not to this thread's count.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| tell(&router, 30));
        }
    });
    let counts = resizer.counts();
    assert_eq!(counts.len(), 4 + 90);
    tell(&router, 3);
    assert_eq!(resizer.counts()[94..], [4, 5, 6]);
    assert_eq!(size(&router), 3);
    let asked = resizer.asked();
    assert_eq!(asked.iter().map(|(_, new)| new).sum::<u64>(), 96, "{asked:?}");
    // Fewer triggers than by one thread, by less than one for each thread.
    let triggers = counts[4..].iter().filter(|count| *count % 3 == 0).count();
    assert_eq!(triggers, 30);
    assert!(asked.len() <= 32, "{asked:?}");
    yard.end();
}

#[test]
fn a_message_of_the_broadcast_logic_counts_once() {
    let yard = Yard::new();
    let resizer = Scripted::every(100);
    let router = yard.routed(3, resizer.clone(), Broadcast);
    tell(&router, 2);
    assert_eq!(resizer.counts(), [0, 1, 2]);
    router.stop();
    wait_until(|| router.is_closed());
    yard.end();
}

/// Sends odd messages to the last routee, and lets the table be changed between choice and delivery.
struct SlowChoice {
    chosen: Mutex<Sender<()>>,
    go: Mutex<Receiver<()>>,
}

impl RoutingLogic<u64> for SlowChoice {
    fn select(&self, number: &u64, routees: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        if *number == 3 && routees.len() > 1 {
            self.chosen.lock().unwrap().send(()).unwrap();
            self.go.lock().unwrap().recv_timeout(LONG).unwrap();
        }
        Some((*number as usize % 2).min(routees.len() - 1))
    }
}

#[test]
fn a_message_that_a_leaving_routee_hands_back_counts_once() {
    let yard = Yard::new();
    let resizer = Scripted::every(100);
    let ((chosen, choice), (go, gate)) = (mpsc::channel(), mpsc::channel());
    let logic = SlowChoice { chosen: Mutex::new(chosen), go: Mutex::new(gate) };
    let router = yard.routed(2, resizer.clone(), logic);
    let held = yard.hold.lock().unwrap();
    router.tell(1u64);
    std::thread::scope(|scope| {
        scope.spawn(|| router.tell(3u64));
        choice.recv_timeout(LONG).unwrap();
        router.resize_to(1).unwrap();
        // Into the mailbox of the one that leaves, behind the place where it ends.
        go.send(()).unwrap();
    });
    drop(held);
    let handled = yard.handled.clone();
    wait_until(|| handled.load(Ordering::SeqCst) == 2);
    assert_eq!(resizer.counts().len(), 1 + 2, "{:?}", resizer.counts());
    yard.end();
}

#[test]
fn the_message_that_triggers_goes_by_the_old_table() {
    // Whoever triggers runs the head here.
    let system = System::builder("yard").dispatcher("default", Dispatcher::calling_thread()).build().unwrap();
    let handled = Arc::new(AtomicUsize::new(0));
    let count = handled.clone();
    let router = system
        .router("pool")
        .pool(0, move |_| Worker { hold: Arc::default(), handled: count.clone() })
        .resizer(DefaultResizer::new().lower_bound(0).messages_per_resize(1).without_ticks(true))
        .spawn()
        .unwrap();
    assert!(matches!(router.try_tell(1u64), Err(SendError::NoRoutee(1))), "nobody was there");
    router.try_tell(2u64).expect("somebody is there now");
    assert_eq!(handled.load(Ordering::SeqCst), 1);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_pool_that_has_lost_all_its_routees_stays_and_grows_when_messages_come() {
    let yard = Yard::new();
    let letters: Arc<Mutex<Vec<DeadLetterReason>>> = Arc::default();
    let router = yard.pool(1, DefaultResizer::new());
    router.routees_by_head().unwrap()[0].stop();
    wait_until(|| size(&router) == 0);
    let noted = letters.clone();
    let _listening = yard.system.dead_letters().subscribe(move |letter| {
        noted.lock().unwrap().push(letter.reason);
    });
    assert!(!router.is_closed());
    router.tell(7u64);
    assert_eq!(*letters.lock().unwrap(), [DeadLetterReason::NoRoutee]);
    assert_eq!(size(&router), 1);
    router.tell(8u64);
    let handled = yard.handled.clone();
    wait_until(|| handled.load(Ordering::SeqCst) == 1);
    yard.end();
}

#[derive(Clone)]
struct Get;

impl Request for Get {
    type Reply = u32;
}

/// Answers what it is asked.
struct Desk;

impl Actor for Desk {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        call.answer(|_| 7);
        Ok(())
    }
}

/// Looks at the size when it has to and at no other time.
fn still() -> DefaultResizer {
    DefaultResizer::new().lower_bound(0).without_ticks(true).messages_per_resize(1000)
}

#[test]
fn an_empty_pool_grows_when_a_question_finds_nobody_whatever_the_logic() {
    fn grows(logic: impl RoutingLogic<Call<Get>>) {
        let system = TestSystem::new();
        let plan = system.router("desks").pool(0, |_| Desk);
        let router = plan.logic(logic).resizer(still()).spawn().unwrap();
        let unheard = router.ask(Get);
        system.run_until_idle();
        assert!(unheard.wait().is_err());
        assert_eq!(router.routees_by_head().unwrap().len(), 1);
        let heard = router.ask(Get);
        system.run_until_idle();
        assert_eq!(heard.wait(), Ok(7));
        router.stop();
    }
    grows(RoundRobin::new());
    grows(ScatterGatherFirstCompleted::new());
    grows(TailChopping::new());
}

/// The head has yet to hear that the last routee has ended.
#[test]
fn a_message_that_finds_only_routees_that_have_ended_has_the_size_looked_at_whatever_the_logic() {
    fn looks(logic: impl RoutingLogic<Call<Get>>) {
        let system = TestSystem::new();
        let resizer = Scripted::every(1000);
        let plan = system.router("desks").pool(1, |_| Desk);
        let router = plan.logic(logic).resizer(resizer.clone()).spawn().unwrap();
        let routee = router.routees_by_head().unwrap().remove(0);
        routee.stop();
        while !routee.is_closed() {
            assert!(system.step());
        }
        assert_eq!(resizer.asked(), []);
        let asked = router.ask(Get);
        system.run_until_idle();
        assert_eq!(resizer.asked().iter().map(|(_, new)| *new).collect::<Vec<_>>(), [1]);
        assert!(asked.wait().is_err());
        router.stop();
    }
    looks(RoundRobin::new());
    looks(Broadcast);
    looks(ScatterGatherFirstCompleted::new());
    looks(TailChopping::new());
}

#[test]
fn a_message_for_which_the_logic_chooses_nobody_of_those_who_live_is_no_reason_to_look_at_the_size() {
    let yard = Yard::new();
    let logic = ConsistentHashing::by_option(|_: &u64, _| None);
    let router = yard.routed(10, still(), logic);
    // The look at the creation.
    assert_eq!(size(&router), 9);
    for _ in 0..5 {
        tell(&router, 1);
        assert_eq!(size(&router), 9);
    }
    yard.end();
}

#[test]
fn an_empty_pool_without_traffic_grows_to_its_lower_bound_at_the_tick() {
    let yard = Yard::new();
    let router = yard.pool(2, DefaultResizer::new().lower_bound(2));
    router.routees_by_head().unwrap().iter().for_each(ActorRef::stop);
    wait_until(|| size(&router) == 0);
    yard.clock.advance(Duration::from_secs(10));
    assert_eq!(size(&router), 2);
    yard.end();
}

#[test]
fn sizes_set_by_hand_keep_the_bounds() {
    let yard = Yard::new();
    let router = yard.pool(4, DefaultResizer::new().lower_bound(3).upper_bound(6));
    assert_eq!((router.resize_to(100).unwrap(), size(&router)), (6, 6));
    assert_eq!((router.resize_to(0).unwrap(), size(&router)), (3, 3));
    assert_eq!([100, -1, -100].map(|delta| router.adjust(delta).unwrap()), [6, 5, 3]);
    assert_eq!(size(&router), 3);
    router.routees_by_head().unwrap().iter().for_each(ActorRef::stop);
    wait_until(|| size(&router) == 0);
    assert_eq!((router.adjust(-1).unwrap(), router.adjust(0).unwrap(), size(&router)), (0, 0, 0));
    assert_eq!(router.adjust(1).unwrap(), 3);
    router.stop();
    wait_until(|| router.is_closed());
    yard.end();

    let yard = Yard::new();
    let router = yard.pool(4, DefaultResizer::new().lower_bound(0));
    assert_eq!((size(&router), router.resize_to(0).unwrap()), (3, 0));
    assert_eq!((size(&router), router.is_closed()), (0, false));
    yard.end();

    let yard = Yard::new();
    // By default a resizer of one's own allows all sizes but 0.
    let router = yard.pool(4, Scripted::every(10));
    router.resize_to(0).unwrap();
    assert_eq!(size(&router), 1);
    yard.end();
}

#[test]
fn a_resizer_that_makes_no_sense_and_one_for_a_group_are_errors_and_leave_the_name_free() {
    let yard = Yard::new();
    let worker = || Worker { hold: Arc::default(), handled: Arc::default() };
    let plan = || yard.system.router("pool").pool(2, move |_| worker());
    let error = plan().resizer(DefaultResizer::new().messages_per_resize(0)).spawn().unwrap_err();
    let SpawnError::Resizer { path, fault } = &error else { panic!("{error}") };
    assert_eq!(
        (path.as_str(), fault),
        ("/user/pool", &SettingError::new("messages_per_resize", 0, "at least 1"))
    );
    assert_eq!(error.to_string(), "resizer of /user/pool: messages_per_resize 0: must be at least 1");
    let error = plan().resizer(OptimalSizeExploringResizer::new().downsize_ratio(3.0)).spawn().unwrap_err();
    assert_eq!(
        error.to_string(),
        "resizer of /user/pool: downsize_ratio 3: must be at least 0 and at most 1"
    );
    let hasty = Scripted { every: 1, tick: Some(Duration::ZERO), ..Scripted::default() };
    let error = plan().resizer(hasty).spawn().unwrap_err();
    assert_eq!(error.to_string(), "resizer of /user/pool: tick 0: must be more than zero");
    let one = yard.system.spawn(worker).unwrap();
    let group = yard.system.router("pool").group([one]).resizer(DefaultResizer::new());
    let refused = group.spawn().unwrap_err();
    assert!(matches!(refused, SpawnError::ResizerOfGroup { .. }), "{refused}");
    plan().spawn().expect("the name is free");
    yard.end();
}

/// Waits in `resize`, when it is told to.
struct Slow {
    inside: Mutex<Sender<u64>>,
    go: Mutex<Receiver<()>>,
}

impl Resizer for Slow {
    fn is_time_for_resize(&self, messages: u64) -> bool {
        messages > 0
    }
    fn resize(&self, loads: &RouteeLoads) -> isize {
        self.inside.lock().unwrap().send(loads.messages()).unwrap();
        let _ = self.go.lock().unwrap().recv_timeout(LONG);
        0
    }
}

#[test]
fn triggers_during_a_resize_lead_to_one_more_that_sees_what_they_saw() {
    let yard = Yard::new();
    let (inside, resizes) = mpsc::channel();
    let (go, gate) = mpsc::channel();
    let router = yard.pool(1, Slow { inside: Mutex::new(inside), go: Mutex::new(gate) });
    router.tell(1u64);
    assert_eq!(resizes.recv_timeout(LONG), Ok(1));
    tell(&router, 5);
    go.send(()).unwrap();
    assert_eq!(resizes.recv_timeout(LONG), Ok(6));
    go.send(()).unwrap();
    assert_eq!(size(&router), 1, "the head has nothing else to do");
    assert_eq!(resizes.try_recv().ok(), None, "five triggers, one resize");
    go.send(()).unwrap();
    router.tell(7u64);
    assert_eq!(resizes.recv_timeout(LONG), Ok(7));
    drop(go);
    yard.end();
}

#[test]
fn a_resizer_sees_loads_queues_counts_and_the_clock() {
    struct Looks(Mutex<Vec<RouteeLoads>>);
    impl Resizer for Looks {
        fn is_time_for_resize(&self, _: u64) -> bool {
            false
        }
        fn resize(&self, loads: &RouteeLoads) -> isize {
            self.0.lock().unwrap().push(loads.clone());
            0
        }
    }
    let yard = Yard::new();
    let looks = Arc::new(Looks(Mutex::default()));
    let router = yard.pool(3, looks.clone());
    wait_until(|| {
        router.routees_by_head().unwrap().iter().all(|routee| routee.load() == RecipientLoad::Idle)
    });
    let held = yard.hold.lock().unwrap();
    tell(&router, 5);
    // All three have begun: two have one more each.
    wait_until(|| {
        router.routees_by_head().unwrap().iter().map(|routee| routee.queued().unwrap()).sum::<usize>() == 2
    });
    yard.clock.advance(Duration::from_secs(3));
    router.head().tell(Manage::AskResizer);
    assert_eq!(size(&router), 3);
    let loads = looks.0.lock().unwrap().pop().expect("asked");
    let mut each: Vec<usize> = loads
        .iter()
        .map(|load| if let RecipientLoad::Busy { queued } = load { queued } else { panic!("{load:?}") })
        .collect();
    each.sort_unstable();
    assert_eq!((each, loads.queued()), (vec![0, 1, 1], 2));
    assert_eq!((loads.messages(), loads.new_messages(), loads.now()), (5, 5, Duration::from_secs(3)));
    router.head().tell(Manage::AskResizer);
    assert_eq!(size(&router), 3);
    assert_eq!(looks.0.lock().unwrap().pop().expect("asked").new_messages(), 0);
    drop(held);
    yard.end();
}

/// Panics where and when it is told to.
#[derive(Default)]
struct Panics {
    in_time: AtomicBool,
    in_resize: AtomicBool,
    resizes: AtomicUsize,
}

impl Resizer for Panics {
    fn is_time_for_resize(&self, _: u64) -> bool {
        assert!(!self.in_time.load(Ordering::SeqCst), "planted");
        true
    }
    fn resize(&self, _: &RouteeLoads) -> isize {
        self.resizes.fetch_add(1, Ordering::SeqCst);
        assert!(!self.in_resize.load(Ordering::SeqCst), "planted");
        1
    }
    fn clamp(&self, size: usize) -> usize {
        size.min(3)
    }
}

#[test]
fn a_panic_on_the_senders_thread_unwinds_to_it_and_the_message_is_accounted_for() {
    let yard = Yard::new();
    let resizer = Arc::new(Panics::default());
    let router = yard.pool(1, resizer.clone());
    let caught = |send: &dyn Fn()| {
        crate::support::panic_of(send);
    };
    resizer.in_time.store(true, Ordering::SeqCst);
    caught(&|| router.tell(1u64));
    let handled = yard.handled.clone();
    wait_until(|| handled.load(Ordering::SeqCst) == 1);
    resizer.in_time.store(false, Ordering::SeqCst);
    router.resize_to(0).unwrap();
    assert_eq!(size(&router), 0);
    // Nobody takes these, and the sender's hands are not there to take them back.
    resizer.in_time.store(true, Ordering::SeqCst);
    caught(&|| router.tell(2u64));
    caught(&|| drop(router.try_tell(3u64)));
    resizer.in_time.store(false, Ordering::SeqCst);
    let ledger = yard.end();
    assert_eq!((ledger.dead_lettered, ledger.handed_back), (2, 0), "{ledger}");
}

#[test]
fn a_panic_on_the_head_keeps_the_size_and_the_next_trigger_comes() {
    let yard = Yard::new();
    let resizer = Arc::new(Panics::default());
    let router = yard.pool(1, resizer.clone());
    let first = resizer.resizes.load(Ordering::SeqCst);
    assert_eq!((size(&router), first), (2, 1));
    let routees = router.routees_by_head().unwrap();
    resizer.in_resize.store(true, Ordering::SeqCst);
    router.tell(1u64);
    assert_eq!(router.routees_by_head().unwrap(), routees);
    assert_eq!(resizer.resizes.load(Ordering::SeqCst), 2);
    resizer.in_resize.store(false, Ordering::SeqCst);
    router.tell(2u64);
    assert_eq!(size(&router), 3);
    yard.end();
}

#[test]
fn resizing_while_loaded_loses_nothing() {
    /// Grows and shrinks by turns, as often as it may.
    struct Restless(AtomicUsize);
    impl Resizer for Restless {
        fn is_time_for_resize(&self, messages: u64) -> bool {
            messages % 50 == 0
        }
        fn resize(&self, loads: &RouteeLoads) -> isize {
            let sizes = [7, 1, 5, 2, 8, 3];
            sizes[self.0.fetch_add(1, Ordering::SeqCst) % sizes.len()] - loads.len() as isize
        }
    }
    let yard = Yard::new();
    let resizer = Arc::new(Restless(AtomicUsize::new(0)));
    let (handled, hold) = (yard.handled.clone(), yard.hold.clone());
    let router = yard
        .system
        .router("pool")
        .pool(4, move |_| Worker { hold: hold.clone(), handled: handled.clone() })
        .resizer(resizer.clone())
        .spawn()
        .unwrap();
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                // Until the pool has been resized often enough meanwhile.
                let mut mine = 0;
                while mine < 10_000 || resizer.0.load(Ordering::SeqCst) < 20 {
                    router.tell(mine);
                    mine += 1;
                }
                sent.fetch_add(mine, Ordering::SeqCst);
            });
        }
    });
    let (sent, handled) = (sent.into_inner(), yard.handled.clone());
    wait_until(|| handled.load(Ordering::SeqCst) as u64 == sent);
    let ledger = yard.end();
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (sent, sent, 0), "{ledger}");
}

#[test]
fn a_pool_long_underutilized_shrinks_to_what_it_needs() {
    let yard = Yard::new();
    let held = yard.hold.lock().unwrap();
    let hour = Duration::from_secs(3600);
    let resizer = OptimalSizeExploringResizer::new().upper_bound(10).action_interval(hour);
    let router = yard.pool(10, resizer);
    wait_until(|| {
        router.routees_by_head().unwrap().iter().all(|routee| routee.load() == RecipientLoad::Idle)
    });
    // Five of ten are in use.
    tell(&router, 5);
    for hours in 1..=73 {
        assert_eq!(size(&router), 10, "after {hours} hours");
        yard.clock.advance(hour);
    }
    assert_eq!(size(&router), 4, "8 tenths of 5");
    drop(held);
    yard.end();
}

#[test]
fn a_pool_in_full_use_explores_by_the_clock() {
    let yard = Yard::new();
    let resizer = OptimalSizeExploringResizer::new()
        .upper_bound(16)
        .chance_of_exploration(1.0)
        .chance_of_ramping_down_when_full(0.0)
        .action_interval(Duration::from_secs(1));
    let router = yard.pool(2, resizer);
    assert_eq!(size(&router), 2, "and the head has set its timer");
    let mut sizes = Vec::new();
    let mut sent = 0;
    for _ in 0..5 {
        // All of what was sent before is handled, and then all routees are in use.
        let handled = yard.handled.clone();
        wait_until(|| handled.load(Ordering::SeqCst) == sent);
        let held = yard.hold.lock().unwrap();
        tell(&router, 32);
        sent += 32;
        yard.clock.advance(Duration::from_secs(1));
        sizes.push(size(&router));
        drop(held);
    }
    // The first look clears the idle time of a new pool, the second notes, and steps.
    assert_eq!(sizes, [2, 3, 4, 5, 6]);
    yard.end();
}

#[test]
fn a_suspended_head_resizes_nothing_before_it_goes_on() {
    let stage = Stage::threads("suspended");
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let judged = move || {
        let held = held.clone();
        Strategy::decide(move |_| {
            let _ = held.lock().unwrap().recv();
            Directive::Resume
        })
    };
    let top = stage.spawn(&stage.role("top").strategy(judged));
    let parent = child(&top, &stage.role("parent").keep_children());
    let resizer = Scripted::every(2);
    let given = resizer.clone();
    let router = query(&parent, move |_, ctx| {
        let recipe = |_: &mut Context<u64>| Worker { hold: Arc::default(), handled: Arc::default() };
        ctx.router("pool").pool(1, recipe).resizer(given).spawn().unwrap()
    })
    .unwrap();
    resizer.delta.store(1, Ordering::SeqCst);
    fail(&parent);
    wait_until(|| router.head().load() == RecipientLoad::Suspended);
    tell(&router, 5);
    assert_eq!((resizer.counts(), resizer.asked()), (vec![0, 1, 2, 3, 4, 5], vec![]));
    release.send(()).unwrap();
    assert_eq!(size(&router), 2);
    assert_eq!(resizer.asked(), [(1, 5)], "one look, when all had been sent");
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

#[test]
fn a_pool_is_explored_at_each_tick_also_after_one_that_came_late() {
    let second = Duration::from_secs(1);
    let resizer = OptimalSizeExploringResizer::new()
        .upper_bound(100)
        .action_interval(second)
        .chance_of_exploration(1.0)
        .chance_of_ramping_down_when_full(0.0);
    let look = |at: Duration, messages: u64| {
        let full = RouteeLoads::new([RecipientLoad::Busy { queued: 1 }; 4]);
        resizer.resize(&full.with_messages(messages, 10).at(at))
    };
    look(second, 10);
    assert_eq!(look(second * 5 / 4, 10), 0, "not yet");
    assert!(look(second * 2 + second / 4, 20) > 0, "late");
    assert!(look(second * 3, 30) > 0, "when it was due");
    assert_eq!(look(second * 7 / 2, 40), 0, "not yet");
    assert!(look(second * 6 + second / 4, 50) > 0, "some were missed");
    assert!(look(second * 7, 60) > 0);
}

#[test]
fn an_empty_pool_grows_when_messages_come_by_way_of_a_router_that_goes_by_loads() {
    let system = TestSystem::new();
    let handled: Arc<AtomicUsize> = Arc::default();
    let inner = |name: &str| {
        let handled = handled.clone();
        let worker = move |_: &mut Context<u64>| Worker { hold: Arc::default(), handled: handled.clone() };
        let resizer = DefaultResizer::new().lower_bound(0).messages_per_resize(1000).without_ticks(true);
        system.router(name).pool(1, worker).resizer(resizer).spawn().unwrap()
    };
    let inners = ["one", "other"].map(inner);
    assert!(inners.iter().all(|inner| inner.routees_by_head().unwrap().is_empty()));
    let outer =
        system.router("outer").group(inners.iter().map(Router::to_ref)).logic(SmallestMailbox::new()).spawn();
    let outer = outer.unwrap();
    outer.tell(1u64);
    system.run_until_idle();
    assert_eq!(inners.iter().map(|inner| inner.routees_by_head().unwrap().len()).collect::<Vec<_>>(), [1, 1]);
    outer.tell(2u64);
    system.run_until_idle();
    assert_eq!((handled.load(Ordering::SeqCst), system.ledger().dead_lettered), (1, 1));
    outer.stop();
    inners.iter().for_each(|inner| inner.stop());
    system.finish();
}
