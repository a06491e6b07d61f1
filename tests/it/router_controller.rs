//! Actors that change a routing logic.

use crate::router_support::*;
use crate::support::*;
use pointsman::SpawnError;
use pointsman::prelude::*;
use pointsman::routing::{
    AdjustPoolSize, ManageError, RoundRobin, RouteContext, Routee, Routees, RoutingLogic,
};
use pointsman::selection::LookupError;
use pointsman::testkit::TestSystem;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// All messages to one routee.
#[derive(Default)]
struct Favourite(AtomicUsize);

impl RoutingLogic<u64> for Favourite {
    fn select(&self, _: &u64, routees: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        match routees.len() {
            0 => None,
            count => Some(self.0.load(Ordering::Relaxed) % count),
        }
    }
}

/// Says which.
struct Chooser(Arc<Favourite>);

/// What a chooser is told; `None` makes it fail.
struct Choose(Option<usize>, Option<ReplyTo<String>>);

impl Actor for Chooser {
    type Message = Choose;
    fn receive(&mut self, Choose(index, reply_to): Choose, ctx: &mut Context<Choose>) -> HandlerResult {
        self.0.0.store(index.ok_or(Failure::msg("as told"))?, Ordering::Relaxed);
        if let Some(reply_to) = reply_to {
            let _ = reply_to.send(ctx.path().to_string());
        }
        Ok(())
    }
}

fn choose(controller: &ActorRef<Choose>, index: usize) -> String {
    controller.ask_with(|reply_to| Choose(Some(index), Some(reply_to))).wait().unwrap()
}

#[test]
fn a_controller_changes_the_logic_while_messages_are_routed_also_after_the_head_was_restarted() {
    let stage = Stage::threads("controller");
    let parent = stage.spawn(
        &stage.role("parent").keep_children().strategy(|| Strategy::decide(|_| Directive::Restart).quiet()),
    );
    let (make, got) = workers();
    let router = query(&parent, move |_, ctx| {
        let plan = ctx.router("pool").pool(3, make).logic(Favourite::default());
        plan.controller(|logic: &Arc<Favourite>, _| Chooser(logic.clone())).spawn().unwrap()
    })
    .unwrap();
    let controller = router.controller::<Choose>().unwrap();
    assert_eq!(choose(&controller, 2), "/user/parent/pool/routingLogicController");
    router.tell(1u64);
    assert_eq!(got.recv_timeout(LONG), Ok((2, 1)));
    let routees = router.routees().unwrap();
    router.kill();
    assert_eq!(choose(&controller, 1), "/user/parent/pool/routingLogicController");
    assert_eq!(router.routees().unwrap(), routees, "it is no routee, and they are the same");
    assert_eq!(router.controller::<Choose>().unwrap(), controller, "created once");
    router.tell(2u64);
    assert_eq!(got.recv_timeout(LONG), Ok((1, 2)));
    // It does not keep a router from ending.
    router.drain().unwrap();
    wait_until(|| controller.is_closed());
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn unknown_management_is_refused_by_type() {
    let system = TestSystem::new();
    let (make, _got) = workers();
    let plain = system.router("plain").pool(1, make.clone()).spawn().unwrap();
    assert!(matches!(
        plain.controller::<Choose>(),
        Err(LookupError::NoActor { path }) if path.as_str() == "/user/plain/routingLogicController"
    ));
    let plan = system.router("pool").pool(1, make.clone()).logic(Favourite::default());
    let router = plan.controller(|logic: &Arc<Favourite>, _| Chooser(logic.clone())).spawn().unwrap();
    let wrong = router.controller::<String>().unwrap_err();
    assert!(matches!(&wrong, LookupError::WrongType(_)), "{wrong}");
    // A controller of a logic that is replaced makes no sense.
    let plan = system.router("late").pool(1, make);
    let late = plan.controller(|_: &Arc<RoundRobin>, _| Chooser(Arc::default())).logic(Favourite::default());
    let late = late.spawn().unwrap_err();
    assert!(matches!(&late, SpawnError::Logic { path, .. } if path == "/user/late"), "{late}");
    assert!(late.to_string().contains("after `logic`"), "{late}");
    plain.drain().unwrap();
    router.drain().unwrap();
    system.finish();
}

#[test]
fn a_controllers_failure_is_its_own() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let plan =
        system.router("pool").pool(2, make).logic(Favourite::default()).on_failure(Strategy::escalate());
    let router = plan.controller(|logic: &Arc<Favourite>, _| Chooser(logic.clone())).spawn().unwrap();
    let controller = router.controller::<Choose>().unwrap();
    controller.tell(Choose(None, None));
    controller.tell(Choose(Some(1), None));
    system.run_until_idle();
    router.tell(5u64);
    system.run_until_idle();
    assert_eq!(got.try_recv(), Ok((1, 5)));
    controller.stop();
    router.tell(6u64);
    system.run_until_idle();
    assert_eq!(got.try_recv(), Ok((1, 6)), "the router goes on without");
    router.drain().unwrap();
    system.finish();
}

/// Sends to its router while it is made.
fn greeting(asked: &Arc<AtomicUsize>, ctx: &mut Context<Choose>) -> Chooser {
    asked.fetch_add(1, Ordering::SeqCst);
    let router: ActorRef<u64> =
        ctx.parent().expect("a head").typed().expect("what routes stands at its head");
    router.tell(7u64);
    Chooser(Arc::default())
}

/// On its dispatcher a first turn comes as soon as it may.
fn at_once() -> System {
    System::builder("held").dispatcher("at-once", Dispatcher::calling_thread()).build().unwrap()
}

#[test]
fn a_controller_begins_when_the_router_routes() {
    let system = at_once();
    let (make, got) = workers();
    let asked = Arc::<AtomicUsize>::default();
    let counted = asked.clone();
    let plan = system.router("pool").pool(2, make).logic(Favourite::default()).head_dispatcher("at-once");
    let router = plan.controller(move |_: &Arc<Favourite>, ctx| greeting(&counted, ctx)).spawn().unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(got.recv_timeout(LONG), Ok((0, 7)));
    drop(router);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

/// Cannot route over anybody.
struct Picky;

impl RoutingLogic<u64> for Picky {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        None
    }
    fn prepare(&self, _: &[Routee<u64>]) -> Option<Box<dyn Any + Send + Sync>> {
        panic!("planted")
    }
}

#[test]
fn neither_routees_nor_the_controller_of_a_router_that_was_not_completed_begin() {
    let system = at_once();
    let asked = Arc::<AtomicUsize>::default();
    let (counted, made) = (asked.clone(), asked.clone());
    let worker = workers().0;
    let recipe = move |ctx: &mut Context<u64>| {
        made.fetch_add(1, Ordering::SeqCst);
        worker(ctx)
    };
    let plan = system.router("pool").pool(2, recipe).logic(Picky).head_dispatcher("at-once");
    let plan = plan.controller(move |_: &Arc<Picky>, ctx| greeting(&counted, ctx));
    assert_eq!(panic_of(|| drop(plan.spawn())), "planted");
    wait_until(|| system.actor_at("/user/pool").is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Manages its router, of which it is told.
struct Manager(Sender<Result<usize, String>>);

enum ManagerMsg {
    Grow(Router<u64>),
    Grown(Result<Result<usize, ManageError>, AskError>),
}

impl Actor for Manager {
    type Message = ManagerMsg;
    fn receive(&mut self, message: ManagerMsg, ctx: &mut Context<ManagerMsg>) -> HandlerResult {
        match message {
            ManagerMsg::Grow(router) => {
                self.0.send(router.resize_to(3).map_err(|error| error.to_string()))?;
                ctx.ask(router.head(), AdjustPoolSize::By(1), ManagerMsg::Grown);
            }
            ManagerMsg::Grown(size) => self.0.send(size?.map_err(|error| error.to_string()))?,
        }
        Ok(())
    }
}

#[test]
fn a_controller_on_the_only_thread_of_the_heads_dispatcher_is_told_not_to_wait_for_the_head() {
    for (threads, may_wait) in [(1, false), (2, true)] {
        let blocking = Dispatcher::blocking().thread_range(1..=threads);
        let system = System::builder("narrow").dispatcher("narrow", blocking).build().unwrap();
        let (make, _got) = workers();
        let (log, told) = channel();
        let plan = system.router("pool").pool(2, make).head_dispatcher("narrow").logic(Favourite::default());
        let router = plan.controller(move |_: &Arc<Favourite>, _| Manager(log.clone())).spawn().unwrap();
        router.controller::<ManagerMsg>().unwrap().tell(ManagerMsg::Grow(router.clone()));
        let waited = told.recv_timeout(LONG).expect("it does not wait for ever");
        match may_wait {
            true => assert_eq!(waited, Ok(3)),
            false => assert!(waited.unwrap_err().contains("only thread of the head's dispatcher")),
        }
        assert_eq!(told.recv_timeout(LONG), Ok(Ok(if may_wait { 4 } else { 3 })));
        // Somebody else may wait.
        assert_eq!(router.resize_to(2).unwrap(), 2);
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}
