//! Round robin goes by who sends: an actor wherever its turns run, a thread, the owner of a router value.

use crate::router_value::{Got, functions, who};
use crate::support::LONG;
use pointsman::SendError;
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::routing::{RoundRobin, RouterValue, RoutingLogic};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Runs jobs in the order in which they are given, each on one of some threads that live all the time.
struct Crew(Vec<Sender<Job>>);

type Job = (Box<dyn FnOnce() + Send>, Sender<()>);

impl Crew {
    fn new(count: usize) -> Self {
        let start = |_| {
            let (sender, jobs) = channel::<Job>();
            thread::spawn(move || {
                for (job, done) in jobs {
                    job();
                    done.send(()).expect("the test waits");
                }
            });
            sender
        };
        Self((0..count).map(start).collect())
    }

    fn run(&self, thread: usize, job: impl FnOnce() + Send + 'static) {
        let (done, is_done) = channel();
        self.0[thread % self.0.len()].send((Box::new(job), done)).expect("the thread lives");
        is_done.recv_timeout(LONG).expect("the job does not panic");
    }
}

/// The thread that the number-th message comes from: in no rhythm that ten routees have.
fn thread_of(number: usize) -> usize {
    number * number / 3 + number / 7
}

/// A system whose actors run on the thread that sends to them.
fn system() -> System {
    System::builder("senders").dispatcher("default", Dispatcher::calling_thread()).build().unwrap()
}

/// Sends on what it gets.
struct SendsOn<F>(F);

impl<F: FnMut(u64) + Send + 'static> Actor for SendsOn<F> {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        (self.0)(message);
        Ok(())
    }
}

fn sends_on(system: &System, send: impl FnMut(u64) + Send + 'static) -> ActorRef<u64> {
    let mut state = Some(SendsOn(send));
    system.spawn(move || state.take().expect("it does not fail")).unwrap()
}

fn group(system: &System, name: &str, logic: RoundRobin, count: usize) -> (Router<u64>, Got) {
    let (ports, got) = functions(count);
    (system.router(name).group(ports).logic(logic).spawn().unwrap(), got)
}

fn value(system: &System, count: usize) -> (RouterValue<u64, RoundRobin>, Got) {
    let (ports, got) = functions(count);
    (RouterValue::new(system, RoundRobin::new()).unwrap().with_routees(&ports), got)
}

/// Whether each is served in turn, wherever it begins.
fn assert_in_turn(got: &[usize], count: usize) {
    assert!(got.windows(2).all(|pair| pair[1] == pair[0] % count + 1), "{got:?}");
}

#[test]
fn what_an_actor_sends_goes_exactly_round_on_whatever_threads_its_turns_run() {
    let system = system();
    let crew = Crew::new(4);
    let (plain, of_plain) = group(&system, "plain", RoundRobin::new(), 10);
    let (keeping, of_keeping) = group(&system, "keeping", RoundRobin::keeping_position(), 10);
    let (value, of_value) = value(&system, 10);
    let others = [&plain, &keeping].map(Router::to_ref);
    let actor = sends_on(&system, move |message| {
        plain.tell(message);
        keeping.tell(message);
        value.route(message);
    });
    for number in 0..100 {
        let (actor, others) = (actor.clone(), others.clone());
        crew.run(thread_of(number), move || {
            actor.tell(number as u64);
            // Threads have cursors of their own.
            others.iter().for_each(|router| router.tell(1000u64));
        });
    }
    for (got, count) in [(of_plain, 10), (of_keeping, 10), (of_value, 10)] {
        let of_actor: Vec<usize> =
            got.lock().unwrap().iter().filter(|(_, message)| *message < 1000).map(|(who, _)| *who).collect();
        assert_eq!(of_actor.len(), 100);
        assert_in_turn(&of_actor, count);
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_actor_goes_round_each_router_by_itself_and_over_its_restarts() {
    let system = system();
    let crew = Crew::new(3);
    let routers: Vec<(Router<u64>, Got)> =
        (0..5).map(|number| group(&system, &format!("r{number}"), RoundRobin::new(), 3 + number)).collect();
    let routes: Vec<ActorRef<u64>> = routers.iter().map(|(router, _)| router.to_ref()).collect();
    struct Fails(Vec<ActorRef<u64>>);
    impl Actor for Fails {
        type Message = u64;
        fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
            self.0[message as usize * 3 % 5].tell(message);
            if message % 9 == 0 { Err(Failure::msg("as told")) } else { Ok(()) }
        }
    }
    let actor = system.actor("fails").on_failure(pointsman::Strategy::default());
    let actor = actor.spawn(move || Fails(routes.clone())).unwrap();
    for number in 0..200 {
        let actor = actor.clone();
        crew.run(thread_of(number), move || actor.tell(number as u64));
    }
    for (number, (_, got)) in routers.iter().enumerate() {
        let got = who(got);
        assert_eq!(got.len(), 40);
        assert_in_turn(&got, 3 + number);
    }
    assert_eq!(actor.untyped().unwrap().restarts(), 23, "at 0, 9, ..., 198");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn actors_that_send_one_message_each_serve_the_routees_alike() {
    let system = system();
    for logic in [RoundRobin::new(), RoundRobin::keeping_position()] {
        let (router, got) = group(&system, "once", logic, 5);
        for number in 0..20u64 {
            let route = router.to_ref();
            let actor = sends_on(&system, move |message| route.tell(message));
            actor.tell(number);
            actor.stop();
        }
        assert_in_turn(&who(&got), 5);
        router.stop();
        router.when_ended().wait().unwrap();
        crate::support::wait_until(|| system.actor_at("/user/once").is_err());
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn the_position_of_a_value_goes_with_it_from_thread_to_thread_and_from_actor_to_actor() {
    let system = system();
    let crew = Crew::new(3);
    let (value, got) = value(&system, 10);
    let value = Arc::new(value);
    for number in 0..45 {
        let value = value.clone();
        crew.run(thread_of(number), move || value.route(number as u64));
    }
    // Where its owner leaves it for the next one.
    let place = Arc::new(Mutex::new(Arc::into_inner(value)));
    let actors = [0, 1, 2].map(|_| {
        let place = place.clone();
        let mut owned = None;
        sends_on(&system, move |message| {
            let value = owned.take().or_else(|| place.lock().unwrap().take()).expect("it was left here");
            value.route(message);
            if message == 6 {
                *place.lock().unwrap() = Some(value);
            } else {
                owned = Some(value);
            }
        })
    });
    // Also to owners that have had it before, and where a thread has used it since.
    let owners = [0, 1, 2, 0, 1, 0, 2];
    for (turn, owner) in owners.into_iter().enumerate() {
        for number in 0..7 {
            let actor = actors[owner].clone();
            crew.run(thread_of(number), move || actor.tell(number as u64));
        }
        if turn == 4 {
            place.lock().unwrap().as_ref().expect("it was left here").route(7u64);
        }
    }
    place.lock().unwrap().take().expect("it was left here").route(7u64);
    let got = who(&got);
    assert_eq!((got.len(), got[0]), (45 + 7 * owners.len() + 2, 1));
    assert_in_turn(&got, 10);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn actors_that_share_one_value_share_its_position() {
    let system = system();
    let (value, got) = value(&system, 4);
    let value = Arc::new(value);
    let actors = [0, 1, 2].map(|_| {
        let value = value.clone();
        sends_on(&system, move |message| value.route(message))
    });
    for number in 0..80 {
        actors[thread_of(number) % 3].tell(number as u64);
    }
    assert_in_turn(&who(&got), 4);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn actors_with_clones_of_one_value_go_exactly_round_each_by_itself() {
    let system = system();
    let (value, got) = value(&system, 4);
    let actors = [0, 1].map(|_| {
        let clone = value.clone();
        sends_on(&system, move |message| clone.route(message))
    });
    for number in 0..80u64 {
        // The second one twice as often.
        actors[usize::from(number % 3 > 0)].tell(u64::from(number % 3 > 0));
    }
    let got = std::mem::take(&mut *got.lock().unwrap());
    for actor in [0, 1] {
        let own: Vec<usize> =
            got.iter().filter(|(_, message)| *message == actor).map(|(who, _)| *who).collect();
        assert!(own.len() > 20);
        assert_in_turn(&own, 4);
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn threads_that_share_a_value_serve_the_routees_alike_and_find_the_one_that_lives() {
    let system = System::builder("senders").build().unwrap();
    let send = |value: &RouterValue<u64, RoundRobin>| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500u64).for_each(|message| value.route(message)));
            }
        });
    };
    let (value, got) = value(&system, 5);
    send(&value);
    let mut counts = [0; 5];
    who(&got).into_iter().for_each(|number| counts[number - 1] += 1);
    assert_eq!(counts, [400; 5]);
    let gone: Vec<ActorRef<u64>> = (0..3).map(|_| system.empty_ref(&"/user/gone".parse().unwrap())).collect();
    let (port, got) = functions(1);
    send(&value.with_routees(gone.iter().chain(&port)));
    assert_eq!(who(&got).len(), 2000);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

/// Takes all messages, and does something before it says so.
struct Looks<F>(F);

impl<F: Fn() + Send + Sync + 'static> Recipient<u64> for Looks<F> {
    fn deliver(&self, _: u64) -> Result<(), SendError<u64>> {
        Ok(())
    }
    fn is_closed(&self) -> bool {
        (self.0)();
        false
    }
}

#[test]
fn a_routee_that_routes_when_it_is_asked_whether_it_has_stopped_moves_no_other_cursor() {
    let system = system();
    let (within, of_within) = value(&system, 5);
    let (plain, of_plain) = group(&system, "plain", RoundRobin::new(), 5);
    let (ports, of_port) = functions(1);
    let asked = plain.to_ref();
    let looks = ActorRef::to_recipient(Looks(move || {
        within.route(0u64);
        asked.tell(0u64);
    }));
    let gone = sends_on(&system, |_| ());
    gone.stop();
    let routees = [&gone, &looks, &ports[0]];
    let outer = RouterValue::new(&system, RoundRobin::new()).unwrap().with_routees(routees);
    let clone = outer.clone();
    let [owner, other] = [outer, clone].map(|value| sends_on(&system, move |message| value.route(message)));
    // In turn to that which looks, in the place of the one that has stopped, and to the port.
    (1..=21u64).for_each(|message| owner.tell(message));
    assert_eq!(who(&of_within).len(), 11);
    assert_in_turn(&of_plain.lock().unwrap().iter().map(|(who, _)| *who).collect::<Vec<_>>(), 5);
    assert_eq!(who(&of_plain).len(), 11);
    let by_port: Vec<u64> = of_port.lock().unwrap().drain(..).map(|(_, message)| message).collect();
    assert_eq!(by_port, Vec::from_iter((2..=20u64).step_by(2)));
    // With the position that the other one has taken, the owner goes on by its own, which was noted.
    other.tell(100u64);
    owner.tell(200u64);
    let by_port: Vec<u64> = of_port.lock().unwrap().drain(..).map(|(_, message)| message).collect();
    assert_eq!(by_port, [100, 200]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// A logic of the user's own around this one is told nothing of who sends, and need not be.
struct Around(RoundRobin);

impl RoutingLogic<u64> for Around {
    fn select(
        &self,
        message: &u64,
        routees: &pointsman::routing::Routees<u64>,
        cx: &pointsman::routing::RouteContext<'_>,
    ) -> Option<usize> {
        self.0.select(message, routees, cx)
    }
}

#[test]
fn a_logic_around_round_robin_goes_by_the_sender_too() {
    let system = system();
    let crew = Crew::new(4);
    let (ports, got) = functions(7);
    let router = system.router("around").group(ports).logic(Around(RoundRobin::new())).spawn().unwrap();
    let actor = sends_on(&system, move |message| router.tell(message));
    for number in 0..70 {
        let actor = actor.clone();
        crew.run(thread_of(number), move || actor.tell(number as u64));
    }
    assert_in_turn(&who(&got), 7);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
