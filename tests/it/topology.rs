//! Level one of the topology: which groups a message goes to, by which verb, and what becomes of its copies.

use crate::support::{LONG, Soon, Stage, Tell, hold, noting, panic_of, run_turns, while_time_passes};
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::topology::{DeclaredGroup, Outlet, SendMode, Topology, TopologyError};
use pointsman::{Mailbox, OverflowPolicy, SendError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Counts its clones.
#[derive(Debug)]
struct Order {
    number: u64,
    clones: Arc<AtomicUsize>,
}

impl Order {
    fn new(number: u64) -> Self {
        Self { number, clones: Arc::default() }
    }
}

impl Clone for Order {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::SeqCst);
        Self { number: self.number, clones: self.clones.clone() }
    }
}

#[derive(Message)]
enum LedgerMsg {
    Order(Order),
}

#[derive(Message)]
enum AuditMsg {
    Order(Order),
    Note(String),
}

/// Notes what it gets.
struct Clerk {
    name: &'static str,
    log: Sender<String>,
}

impl Actor for Clerk {
    type Message = Order;
    fn receive(&mut self, order: Order, _: &mut Context<Order>) -> HandlerResult {
        self.log.send(format!("{} {}", self.name, order.number))?;
        Ok(())
    }
}

struct Office {
    stage: Stage,
    topology: Topology,
}

impl Office {
    fn new() -> Self {
        Self::on(Stage::turns())
    }

    fn on(stage: Stage) -> Self {
        let topology = stage.system.topology();
        Self { stage, topology }
    }

    fn group<D: Send + 'static>(&self, name: &str) -> DeclaredGroup<D> {
        self.topology.local(name).expect("the name is free")
    }

    fn clerk(&self, name: &'static str) -> ActorRef<Order> {
        self.clerk_with(name, Mailbox::unbounded())
    }

    fn clerk_with(&self, name: &'static str, mailbox: Mailbox) -> ActorRef<Order> {
        let log = self.stage.log.clone();
        let recipe = move || Clerk { name, log: log.clone() };
        self.stage.system.actor(name).mailbox(mailbox).spawn(recipe).expect("the name is free")
    }

    /// Declares a group and mounts a clerk.
    fn clerks(&self, from: &DeclaredGroup<Order>, names: &[&'static str]) -> Vec<ActorRef<Order>> {
        let mount = |name: &&'static str| {
            let group = self.group(name);
            from.route_all_to::<Order, _>(&group);
            let clerk = self.clerk(name);
            group.mount(&clerk);
            clerk
        };
        names.iter().map(mount).collect()
    }
}

fn dead(stage: &Stage) -> u64 {
    stage.system.ledger().dead_lettered
}

/// Counts what its type refuses: takes none.
struct Wall;
impl Recipient<Order> for Wall {
    fn deliver(&self, order: Order) -> Result<(), SendError<Order>> {
        Err(SendError::Closed(order))
    }
    fn system(&self) -> Option<SystemRef> {
        None
    }
}

fn wall() -> ActorRef<Order> {
    ActorRef::to_recipient(Wall)
}

#[test]
fn a_name_is_given_once_and_keeps_the_rules_of_names() {
    let office = Office::new();
    let _first = office.group::<Order>("ledgers");
    let again = office.topology.local::<u32>("ledgers").expect_err("taken");
    assert_eq!(again, TopologyError::DuplicateGroup { name: "ledgers".to_owned() });
    assert!(matches!(office.topology.local::<u32>("a b"), Err(TopologyError::Name(_))));
    assert!(again.to_string().contains("name of its own"), "{again}");
}

#[test]
fn there_may_be_more_groups_than_a_byte_can_number() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let (log, got) = channel();
    for number in 0..300_usize {
        let group = office.group::<Order>(&format!("g{number}"));
        source.route_to(&group, move |order: &Order| order.number == number as u64);
        let log = log.clone();
        group.mount(&ActorRef::from_fn(move |_: Order| log.send(number).expect("it is kept")));
    }
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    outlet.send(Order::new(299)).expect("one takes it");
    assert_eq!(got.try_iter().collect::<Vec<_>>(), [299]);
    office.stage.end(&[]);
}

#[test]
fn groups_that_were_declared_and_not_mounted_are_named_at_the_start() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let ledgers = office.group::<Order>("ledgers");
    let _audit = office.group::<u32>("audit");
    source.route_all_to::<Order, _>(&ledgers);
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    let unmounted = vec!["ledgers".to_owned(), "audit".to_owned()];
    assert_eq!(office.topology.start(), Err(TopologyError::Unmounted { groups: unmounted }));
    // Until then it is as if they had stopped.
    let refused = outlet.send(Order::new(7)).expect_err("nobody is there");
    assert!(matches!(&refused, SendError::Closed(order) if order.number == 7), "{refused:?}");
    ledgers.mount(&office.clerk("ledgers"));
    outlet.send(Order::new(8)).expect("somebody is there");
    office.stage.expect(&["ledgers 8"]);
    office.stage.end(&[]);
}

#[test]
fn routes_belong_to_the_senders_group() {
    let office = Office::new();
    let (web, batch) = (office.group::<Order>("web"), office.group::<Order>("batch"));
    let (left, right) = (office.group::<Order>("left"), office.group::<Order>("right"));
    web.route_all_to::<Order, _>(&left);
    batch.route_all_to::<Order, _>(&right);
    let (by_web, by_batch) = (web.outlet::<Order>(), batch.outlet::<Order>());
    web.mount(&wall());
    batch.mount(&wall());
    left.mount(&office.clerk("left"));
    right.mount(&office.clerk("right"));
    office.topology.start().expect("all are mounted");
    by_web.send(Order::new(1)).expect("taken");
    office.stage.expect(&["left 1"]);
    by_batch.send(Order::new(2)).expect("taken");
    office.stage.expect(&["right 2"]);
    office.stage.end(&[]);
}

type Verb = fn(&Outlet<Order>, Order) -> Result<(), SendError<Order>>;

#[test]
fn a_group_without_routes_reaches_nobody_and_gets_its_message_back() {
    let office = Office::new();
    let lonely = office.group::<Order>("lonely");
    let outlets = [lonely.outlet::<Order>(), lonely.outlet::<Order>()];
    lonely.mount(&wall());
    for outlet in outlets {
        let sends: [Verb; 3] = [
            |to, order| to.send(order),
            |to, order| to.try_send(order),
            |to, order| to.unbounded_send(order),
        ];
        for send in sends {
            let refused = send(&outlet, Order::new(3)).expect_err("nobody");
            assert!(matches!(&refused, SendError::NoRoute(order) if order.number == 3), "{refused:?}");
            assert!(refused.to_string().contains("route_to"), "{refused}");
        }
        assert!(outlet.destinations().is_empty());
    }
    assert_eq!(office.stage.system.ledger().handed_back, 6);
    office.stage.end(&[]);
}

#[test]
fn every_condition_is_asked_in_order_and_all_that_hold_count() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let (asked, order) = channel();
    let names = ["a", "b", "c"];
    for (index, name) in names.into_iter().enumerate() {
        let group = office.group::<Order>(name);
        let asked = asked.clone();
        source.route_to(&group, move |_: &Order| {
            asked.send(name).expect("it is kept");
            index != 1
        });
        group.mount(&office.clerk(name));
    }
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    let (report, sent) = outlet.send_by(Order::new(5), SendMode::Try);
    sent.expect("two take it");
    assert_eq!((report.accepted, report.full, report.closed), (2, 0, 0));
    assert_eq!(order.try_iter().collect::<Vec<_>>(), names);
    run_turns();
    office.stage.end(&["a 5", "c 5"]);
}

#[test]
fn parallel_routes_are_one_and_deliver_once() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let ledgers = office.group::<Order>("ledgers");
    let asked = Arc::new(AtomicUsize::new(0));
    for least in [10, 20] {
        let asked = asked.clone();
        source.route_to(&ledgers, move |order: &Order| {
            asked.fetch_add(1, Ordering::SeqCst);
            order.number >= least
        });
    }
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    ledgers.mount(&office.clerk("ledgers"));
    assert_eq!(outlet.destinations(), ["ledgers"]);
    let order = Order::new(30);
    let clones = order.clones.clone();
    let (report, sent) = outlet.send_by(order, SendMode::Try);
    sent.expect("taken");
    assert_eq!(report.recipients(), 1);
    outlet.send(Order::new(15)).expect("one of them holds");
    outlet.send(Order::new(5)).expect_err("none of them holds");
    assert_eq!((asked.load(Ordering::SeqCst), clones.load(Ordering::SeqCst)), (6, 0));
    office.stage.expect(&["ledgers 30", "ledgers 15"]);
    office.stage.end(&[]);
}

#[test]
fn circles_and_routes_to_oneself_are_rules_about_the_next_hop() {
    let office = Office::new();
    let (a, b) = (office.group::<Order>("a"), office.group::<Order>("b"));
    a.route_all_to::<Order, _>(&b).route_all_to::<Order, _>(&a);
    b.route_all_to::<Order, _>(&a);
    let (by_a, by_b) = (a.outlet::<Order>(), b.outlet::<Order>());
    a.mount(&office.clerk("a"));
    b.mount(&office.clerk("b"));
    by_b.send(Order::new(1)).expect("taken");
    office.stage.expect(&["a 1"]);
    by_a.send(Order::new(2)).expect("taken");
    run_turns();
    office.stage.end(&["a 2", "b 2"]);
}

#[test]
fn n_recipients_cost_n_minus_one_clones() {
    for (recipients, clones) in [(1, 0), (2, 1), (5, 4)] {
        let office = Office::new();
        let source = office.group::<Order>("source");
        let names = &["a", "b", "c", "d", "e"][..recipients];
        office.clerks(&source, names);
        let outlet = source.outlet::<Order>();
        source.mount(&wall());
        let order = Order::new(1);
        let counted = order.clones.clone();
        outlet.send(order).expect("taken");
        assert_eq!(counted.load(Ordering::SeqCst), clones);
        run_turns();
        let notes: Vec<String> = names.iter().map(|name| format!("{name} 1")).collect();
        office.stage.end(&notes.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn a_copy_that_is_refused_goes_to_the_next_one() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let clerks = office.clerks(&source, &["a", "b", "c"]);
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    clerks[0].stop();
    run_turns();
    let order = Order::new(1);
    let counted = order.clones.clone();
    let (report, sent) = outlet.send_by(order, SendMode::Try);
    sent.expect("two take it");
    assert_eq!((report.accepted, report.closed, counted.load(Ordering::SeqCst)), (2, 1, 1));
    assert_eq!(dead(&office.stage), 1);
    run_turns();
    let ledger = office.stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled), (3, 2), "{ledger}");
    office.stage.end(&["b 1", "c 1"]);
}

#[test]
fn refused_copies_are_dead_letters_that_name_who_refused() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let clerks = office.clerks(&source, &["a", "b", "c"]);
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    let (shown, letters) = channel();
    let _subscription =
        office.stage.system.dead_letters().subscribe(move |letter| _ = shown.send(letter.to_string()));
    clerks[0].stop();
    clerks[2].stop();
    run_turns();
    outlet.send(Order::new(1)).expect("one takes it");
    let letters: Vec<String> = letters.try_iter().collect();
    let of = |name: &str| format!("{} to /user/{name}: stopped", std::any::type_name::<Order>());
    assert_eq!(letters, [of("a"), of("c")]);
    office.stage.expect(&["b 1"]);
    office.stage.end(&[]);
}

#[test]
fn the_result_is_ok_with_anybody_full_with_anybody_full_and_closed_otherwise() {
    let office = Office::on(Stage::turns());
    let source = office.group::<Order>("source");
    let small = || Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let clerks: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|name| {
            let group = office.group::<Order>(name);
            source.route_all_to::<Order, _>(&group);
            let clerk = office.clerk_with(name, small());
            group.mount(&clerk);
            clerk
        })
        .collect();
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    run_turns();

    clerks[0].tell(Order::new(1));
    let (report, sent) = outlet.send_by(Order::new(2), SendMode::Try);
    sent.expect("b has room");
    assert_eq!((report.accepted, report.full, report.closed), (1, 1, 0));

    let (report, sent) = outlet.send_by(Order::new(3), SendMode::Try);
    assert_eq!((report.accepted, report.full, report.closed), (0, 2, 0));
    assert!(matches!(sent, Err(SendError::Full(order)) if order.number == 3));

    run_turns();
    clerks[1].stop();
    run_turns();
    clerks[0].tell(Order::new(4));
    let refused = outlet.try_send(Order::new(5)).expect_err("one full, one closed");
    assert!(matches!(refused, SendError::Full(order) if order.number == 5));

    clerks[0].stop();
    run_turns();
    let refused = outlet.try_send(Order::new(6)).expect_err("both closed");
    assert!(matches!(refused, SendError::Closed(order) if order.number == 6));
    office.stage.end(&["a 1", "b 2"]);
}

#[test]
fn a_full_mailbox_that_drops_its_newest_counts_as_one_that_has_taken_the_copy() {
    for mode in [SendMode::Wait, SendMode::Within(LONG), SendMode::Try] {
        let office = Office::on(Stage::turns());
        let source = office.group::<Order>("source");
        let group = office.group::<Order>("group");
        source.route_all_to::<Order, _>(&group);
        let clerk = office.clerk_with("clerk", Mailbox::bounded(1).on_full(OverflowPolicy::DropNewest));
        group.mount(&clerk);
        let outlet = source.outlet::<Order>();
        source.mount(&wall());
        run_turns();
        outlet.send_by(Order::new(1), mode).1.expect("there is room");
        let (report, sent) = outlet.send_by(Order::new(2), mode);
        sent.expect("dropping is no refusal");
        assert_eq!((report.accepted, report.full, report.closed), (1, 0, 0), "{mode:?}");
        assert_eq!(office.stage.system.ledger().dropped, 1, "{mode:?}");
        run_turns();
        office.stage.end(&["clerk 1"]);
    }
}

#[test]
fn try_send_does_not_wait_where_the_mailbox_would_let_it() {
    let office = Office::on(Stage::threads("try"));
    let held =
        office.stage.system.actor("held").mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG)));
    let held = held.spawn(office.stage.role("held").recipe()).expect("the name is free");
    let release = hold(&held);
    held.try_send(noting("first")).expect("room for one");
    let refused = held.try_send(noting("second")).expect_err("full");
    assert!(matches!(refused, SendError::Full(_)));
    drop(release);
    held.send(noting("third")).wait().expect("there is room soon");
    office.stage.expect(&["held Started 1", "held first", "held third"]);
    office.stage.end(&["held Stopped 1"]);
}

#[test]
fn send_reaches_all_that_have_room_before_it_waits_for_one_that_has_none() {
    let office = Office::on(Stage::threads("first-pass"));
    let source = office.group::<u32>("source");
    let (full, free) = (office.group::<Tell>("full"), office.group::<Tell>("free"));
    let spawn = |name: &'static str| {
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG));
        office
            .stage
            .system
            .actor(name)
            .mailbox(mailbox)
            .spawn(office.stage.role(name).recipe())
            .expect("free")
    };
    let (full_one, free_one) = (spawn("full"), spawn("free"));
    source.route_only_to::<Tell, _>(&full, |_| true).expect("the only route");
    let outlet = source.outlet::<Tell>();
    source.mount(&ActorRef::from_fn(|_: u32| {}));
    full.mount(&full_one);
    free.mount(&free_one);
    office.stage.note();
    office.stage.note();
    let release = hold(&full_one);
    full_one.try_send(noting("before")).expect("room for one");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| outlet.send(noting("waited")));
        free_one.send(noting("free")).wait().expect("room");
        office.stage.expect(&["free free"]);
        drop(release);
        waits.join().expect("no panic").expect("there is room in the end");
    });
    office.stage.expect(&["full before", "full waited"]);
    office.stage.end(&["free Stopped 1", "full Stopped 1"]);
}

/// A message that says where it was handled.
#[derive(Clone)]
struct Ping(Sender<&'static str>);

struct Slow {
    name: &'static str,
    gate: Receiver<()>,
}

impl Actor for Slow {
    type Message = Ping;
    fn receive(&mut self, Ping(to): Ping, ctx: &mut Context<Ping>) -> HandlerResult {
        let _ = ctx.blocking(|| self.gate.recv());
        to.send(self.name)?;
        Ok(())
    }
}

#[test]
fn full_ones_are_waited_for_together_and_who_has_room_first_gets_it_first() {
    let office = Office::on(Stage::threads("together"));
    let source = office.group::<u32>("source");
    let mut gates = Vec::new();
    let mut slow = Vec::new();
    for name in ["a", "b", "c"] {
        let (open, gate) = channel();
        gates.push(open);
        let group = office.group::<Ping>(name);
        source.route_all_to::<Ping, _>(&group);
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG));
        let mut gate = Some(gate);
        let recipe = move || Slow { name, gate: gate.take().expect("made once") };
        let actor = office.stage.system.actor(name).mailbox(mailbox).spawn(recipe).expect("the name is free");
        group.mount(&actor);
        slow.push(actor);
    }
    let outlet = source.outlet::<Ping>();
    source.mount(&ActorRef::from_fn(|_: u32| {}));
    let (to, from) = channel();
    // One in the handler and one in the mailbox of each but the last.
    for actor in &slow[..2] {
        actor.send(Ping(to.clone())).wait().expect("room");
        actor.send(Ping(to.clone())).wait().expect("room");
    }
    std::thread::scope(|scope| {
        let (sent, send) = (to.clone(), &outlet);
        let waits = scope.spawn(move || send.send_by(Ping(sent), SendMode::Wait));
        // The first pass has reached the one with room, although it comes last.
        gates[2].send(()).expect("c lives");
        assert_eq!(from.soon(), Ok("c"));
        // The second full one has room before the first.
        for _ in 0..3 {
            gates[1].send(()).expect("b lives");
            assert_eq!(from.soon(), Ok("b"));
        }
        for _ in 0..3 {
            gates[0].send(()).expect("a lives");
            assert_eq!(from.soon(), Ok("a"));
        }
        let (report, sent) = waits.join().expect("no panic");
        sent.expect("all take it");
        assert_eq!((report.accepted, report.full), (3, 0));
    });
    drop(gates);
    office.stage.end(&[]);
}

#[test]
fn a_send_with_a_limit_hands_the_message_back_when_it_is_over() {
    let office = Office::on(Stage::threads("limit"));
    let source = office.group::<Order>("source");
    let mut releases = Vec::new();
    for name in ["a", "b"] {
        let group = office.group::<Order>(name);
        source.route_all_to::<Order, _>(&group);
        let (open, gate) = channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        releases.push(open);
        struct Held(Arc<std::sync::Mutex<Receiver<()>>>);
        impl Actor for Held {
            type Message = Order;
            fn receive(&mut self, _: Order, ctx: &mut Context<Order>) -> HandlerResult {
                let _ = ctx.blocking(|| self.0.lock().expect("not poisoned").recv());
                Ok(())
            }
        }
        let gate = Arc::new(gate);
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG));
        let actor = office.stage.system.actor(name).mailbox(mailbox).spawn(move || Held(gate.clone()));
        let actor = actor.expect("the name is free");
        actor.send(Order::new(0)).wait().expect("room");
        actor.send(Order::new(0)).wait().expect("room");
        group.mount(&actor);
    }
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    let refused = while_time_passes(&office.stage.clock, || {
        outlet.send_within(Order::new(9), Duration::from_millis(2)).expect_err("nobody makes room")
    });
    assert!(matches!(refused, SendError::Full(order) if order.number == 9));
    assert_eq!(dead(&office.stage), 1, "the other copy");
    drop(releases);
    office.stage.end(&[]);
}

#[test]
fn a_worker_is_refused_instead_of_waiting() {
    let office = Office::on(Stage::threads("worker"));
    let full = office.clerk_with("full", Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG)));
    let (sender, got) = channel();
    struct Sends(ActorRef<Order>, Sender<bool>);
    impl Actor for Sends {
        type Message = ();
        fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
            // More than the other one could have handled meanwhile is not needed: it is told until it refuses.
            loop {
                if let Err(refused) = self.0.send(Order::new(1)).wait() {
                    self.1.send(matches!(refused, SendError::Full(_)))?;
                    return Ok(());
                }
            }
        }
    }
    let sends = office.stage.system.spawn(move || Sends(full.clone(), sender.clone())).expect("room");
    sends.tell(());
    assert_eq!(got.soon(), Ok(true));
    let _ = office.stage.system.shutdown(LONG).expect("nothing is stuck");
}

#[test]
fn an_unbounded_send_goes_beyond_the_capacity_and_leaves_it_as_it_is() {
    let office = Office::new();
    for policy in [OverflowPolicy::Reject, OverflowPolicy::DropNewest, OverflowPolicy::Wait(LONG)] {
        let clerk = office.clerk_with("clerk", Mailbox::bounded(2).on_full(policy));
        run_turns();
        for number in 0..5 {
            clerk.unbounded_send(Order::new(number)).expect("never full");
        }
        assert_eq!(clerk.queued(), Some(5));
        assert!(matches!(clerk.try_tell(Order::new(9)), Err(SendError::Full(_)) | Ok(())));
        run_turns();
        let notes: Vec<String> = office.stage.notes.try_iter().take(5).collect();
        assert_eq!(notes[4], "clerk 4");
        clerk.stop();
        run_turns();
        let refused = clerk.unbounded_send(Order::new(7)).expect_err("stopped");
        assert!(matches!(refused, SendError::Closed(order) if order.number == 7));
    }
    let _ = office.stage.notes.try_iter().count();
    office.stage.end(&[]);
}

#[test]
fn a_refused_message_comes_back_as_what_it_was_when_it_was_sent() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let (ledgers, audit) = (office.group::<LedgerMsg>("ledgers"), office.group::<AuditMsg>("audit"));
    source.route_all_to::<Order, _>(&ledgers).route_all_to::<Order, _>(&audit);
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    let (log, got) = channel();
    struct Ends<M>(std::marker::PhantomData<fn(M)>, Sender<&'static str>);
    impl<M: Send + 'static> Actor for Ends<M> {
        type Message = M;
        fn receive(&mut self, _: M, _: &mut Context<M>) -> HandlerResult {
            self.1.send("got one")?;
            Ok(())
        }
    }
    let log2 = log.clone();
    let ledger = office.stage.system.spawn(move || Ends::<LedgerMsg>(Default::default(), log.clone()));
    let auditor = office.stage.system.spawn(move || Ends::<AuditMsg>(Default::default(), log2.clone()));
    let (ledger, auditor) = (ledger.expect("room"), auditor.expect("room"));
    ledgers.mount(&ledger);
    audit.mount(&auditor);
    outlet.send(Order::new(1)).expect("both take it");
    auditor.tell("a note".to_owned());
    ledger.poison();
    auditor.poison();
    run_turns();
    assert_eq!(got.try_iter().count(), 3);
    let order = Order::new(2);
    let clones = order.clones.clone();
    let refused = outlet.send(order).expect_err("both have stopped").into_inner();
    assert_eq!((refused.number, clones.load(Ordering::SeqCst)), (2, 1));
    office.stage.end(&[]);
}

#[test]
fn a_message_that_cannot_be_cloned_has_one_destination() {
    let office = Office::new();
    let source = office.group::<u32>("source");
    let (first, second) = (office.group::<Tell>("first"), office.group::<Tell>("second"));
    source.route_only_to::<Tell, _>(&first, |_| true).expect("the only one");
    source.route_only_to::<Tell, _>(&first, |_| false).expect("to the same group");
    let refused = source.route_only_to::<Tell, _>(&second, |_| true).expect_err("another one");
    let to = ["first".to_owned(), "second".to_owned()];
    let message_type = std::any::type_name::<Tell>();
    assert_eq!(refused, TopologyError::SecondRoute { group: "source".to_owned(), to, message_type });
    assert_eq!(source.outlet::<Tell>().destinations(), [""; 0], "it is not mounted");
}

#[test]
fn a_condition_that_panics_unwinds_to_the_sender_and_the_message_is_a_dead_letter() {
    let office = Office::new();
    let source = office.group::<Order>("source");
    let (a, b, c) = (office.group::<Order>("a"), office.group::<Order>("b"), office.group::<Order>("c"));
    source.route_all_to::<Order, _>(&a).route_all_to::<Order, _>(&b);
    source.route_to(&c, |order: &Order| if order.number == 13 { panic!("planted") } else { true });
    let outlet = source.outlet::<Order>();
    source.mount(&wall());
    a.mount(&office.clerk("a"));
    b.mount(&office.clerk("b"));
    c.mount(&office.clerk("c"));
    assert_eq!(panic_of(|| _ = outlet.send(Order::new(13))), "planted");
    run_turns();
    let ledger = office.stage.system.ledger();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    outlet.send(Order::new(14)).expect("all take it");
    run_turns();
    office.stage.end(&["a 13", "a 14", "b 14", "c 14"]);
}

#[test]
fn what_is_mounted_and_connected_can_be_looked_at_and_drawn() {
    let office = Office::new();
    let gateway = office.group::<Order>("gateway").entrypoint();
    let ledgers = office.group::<LedgerMsg>("ledgers");
    let audit = office.group::<AuditMsg>("audit");
    gateway.route_all_to::<Order, _>(&ledgers).route_to(&audit, |order: &Order| order.number > 9);
    ledgers.route_to(&audit, |note: &String| !note.is_empty());
    assert!(office.topology.locals().is_empty());
    gateway.mount(&wall());
    ledgers.mount(&ActorRef::from_fn(|_| {}));
    let names = || office.topology.locals().into_iter().map(|group| group.name).collect::<Vec<_>>();
    assert_eq!(names(), ["gateway", "ledgers"]);
    let groups = office.topology.locals();
    assert_eq!(
        groups.iter().map(|group| group.routes.len() + group.conditional_routes.len()).sum::<usize>(),
        1
    );
    audit.mount(&ActorRef::from_fn(|message: AuditMsg| match message {
        AuditMsg::Order(order) => drop(order),
        AuditMsg::Note(note) => drop(note),
    }));
    let groups = office.topology.locals();
    let always = groups.iter().flat_map(|from| from.routes.iter().map(|(to, _)| (&*from.name, &**to, false)));
    let conditional = groups
        .iter()
        .flat_map(|from| from.conditional_routes.iter().map(|(to, _)| (&*from.name, &**to, true)));
    assert_eq!(
        always.chain(conditional).collect::<Vec<_>>(),
        [("gateway", "ledgers", false), ("gateway", "audit", true), ("ledgers", "audit", true)]
    );
    let dot = office.topology.to_dot();
    assert!(dot.contains("\"gateway\" [peripheries=2];"), "{dot}");
    assert!(dot.contains("\"gateway\" -> \"ledgers\" [label=\"Order\"];"), "{dot}");
    assert!(dot.contains("\"ledgers\" -> \"audit\" [label=\"String\", style=dashed];"), "{dot}");
}

#[test]
fn a_router_can_be_mounted() {
    let office = Office::new();
    let source = office.group::<u64>("source");
    let pool = office.group::<u64>("pool");
    source.route_all_to::<u64, _>(&pool);
    let outlet = source.outlet::<u64>();
    let (worker, got) = crate::router_support::workers();
    let router = office.stage.system.router("pool").pool(3, worker).spawn().expect("the name is free");
    source.mount(&router.to_ref());
    pool.mount(&router.to_ref());
    for number in 0..6_u64 {
        outlet.try_send(number).expect("taken");
    }
    run_turns();
    assert_eq!(crate::router_support::shares(&got, 6), [(0, 2), (1, 2), (2, 2)].into());
    office.stage.end(&[]);
}
