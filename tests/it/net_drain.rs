//! A listener that drains: its connections finish their work, and the answer comes when all have closed.

use pointsman::net::{Connection, Listener, ReadOutcome, Ready, SocketAddress};
use pointsman::pattern::PipeError;
use pointsman::prelude::*;
use pointsman::shutdown::{Phase, PhaseOutcome};
use pointsman::time::ManualClock;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

/// Answers each request of four bytes with its bytes. While its listener drains, it ends behind the request that has
/// begun.
struct Session {
    connection: Connection,
    /// Told when the drain is seen.
    drains: Option<Sender<()>>,
    /// Whether it looks for a drain.
    looks: bool,
}

impl Actor for Session {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let Self { connection, drains, looks } = self;
        connection.ready(ready);
        let outcome = connection.fill(4096);
        while let Some(request) = connection.received().get(..4) {
            let request = request.to_vec();
            connection.consume(4);
            connection.write(&request);
        }
        connection.flush();
        let is_idle = connection.received().is_empty();
        if connection.is_draining() {
            if let Some(drains) = drains.take() {
                drains.send(())?;
            }
        }
        let is_over = matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_));
        if is_over || (*looks && connection.is_draining() && is_idle) {
            ctx.stop();
        }
        Ok(())
    }
}

/// A listener whose sessions tell of a drain.
fn listen(system: &System, looks: bool) -> (Listener, mpsc::Receiver<()>) {
    let (drains, drained) = mpsc::channel();
    let address = SocketAddress::tcp("127.0.0.1:0");
    let make =
        move |connection, _: &mut Context<Ready>| Session { connection, drains: Some(drains.clone()), looks };
    (system.listener("port", address).spawn(make).unwrap(), drained)
}

fn client_of(listener: &Listener) -> TcpStream {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

fn asks(client: &mut TcpStream, request: &[u8; 4]) {
    client.write_all(request).unwrap();
    let mut answer = [0; 4];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, request);
}

/// Sends a request, and half of the next in the same segment: so it has come when the answer does.
fn asks_and_begins(client: &mut TcpStream) {
    client.write_all(b"onceha").unwrap();
    let mut answer = [0; 4];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"once");
}

fn is_over(client: &mut TcpStream) -> bool {
    client.read(&mut [0]).unwrap() == 0
}

fn ends_balanced(system: System) {
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

#[test]
fn a_drain_lets_requests_finish_and_answers_when_all_connections_have_closed() {
    let system = System::builder("drain").build().unwrap();
    let (listener, drains) = listen(&system, true);
    let (mut idle, mut busy) = (client_of(&listener), client_of(&listener));
    asks(&mut idle, b"idle");
    asks_and_begins(&mut busy);
    let drain = listener.drain(LONG);
    (0..2).for_each(|_| drains.recv_timeout(LONG).unwrap());
    assert!(is_over(&mut idle), "it has nothing to do");
    let refused = TcpStream::connect(listener.local_addr().unwrap());
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    drop(idle);
    busy.write_all(b"lf").unwrap();
    let mut answer = Vec::new();
    busy.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"half");
    drop(busy);
    let report = drain.wait().unwrap();
    assert!(report.is_complete(), "{report}");
    assert_eq!((listener.connections(), listener.accepted()), (0, 2));
    // There is nothing left to drain.
    assert!(listener.drain(LONG).wait().unwrap().is_complete());
    listener.unbind().wait().unwrap();
    ends_balanced(system);
}

#[test]
fn a_drain_whose_limit_passes_says_how_many_are_left_and_lets_them_go_on() {
    let clock = ManualClock::new();
    let system = System::builder("drain").clock(clock.clone()).build().unwrap();
    let (listener, drains) = listen(&system, false);
    let mut clients = [client_of(&listener), client_of(&listener), client_of(&listener)];
    clients.iter_mut().for_each(|client| asks(client, b"here"));
    let drain = listener.drain(Duration::from_secs(5));
    (0..3).for_each(|_| drains.recv_timeout(LONG).unwrap());
    let [first, mut second, mut third] = clients;
    drop(first);
    wait_for(|| listener.connections() == 2);
    clock.advance(Duration::from_secs(5));
    let report = drain.wait().unwrap();
    assert_eq!((report.connections_left, report.is_complete()), (2, false));
    assert!(report.to_string().starts_with("2 connections did not close in time"), "{report}");
    asks(&mut second, b"more");
    asks(&mut third, b"more");
    // Two drains at once, each with its limit.
    let (short, long) = (listener.drain(Duration::ZERO), listener.drain(Duration::MAX));
    assert_eq!(short.wait().unwrap().connections_left, 2);
    drop((second, third));
    assert!(long.wait().unwrap().is_complete());
    ends_balanced(system);
}

fn wait_for(seen: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !seen() {
        assert!(began.elapsed() < LONG, "it never comes");
        std::thread::yield_now();
    }
}

#[test]
fn peers_that_wait_at_the_port_are_served_and_told_to_end() {
    let system = System::builder("drain").build().unwrap();
    let (listener, _drains) = listen(&system, true);
    let mut clients: Vec<_> = (0..200).map(|_| client_of(&listener)).collect();
    let drain = listener.drain(LONG);
    clients.iter_mut().for_each(|client| assert!(is_over(client)));
    drop(clients);
    assert!(drain.wait().unwrap().is_complete());
    assert_eq!(listener.accepted(), 200);
    ends_balanced(system);
}

#[test]
fn a_drain_of_a_listener_that_stops_fails() {
    let system = System::builder("drain").build().unwrap();
    let (listener, _drains) = listen(&system, false);
    let mut client = client_of(&listener);
    asks(&mut client, b"here");
    let drain = listener.drain(LONG);
    listener.stop();
    assert!(drain.wait().is_err());
    assert!(is_over(&mut client));
    assert!(listener.drain(LONG).wait().is_err(), "no listener is left");
    ends_balanced(system);
}

#[test]
fn an_actor_hears_of_the_end_of_a_drain_by_a_message() {
    struct Keeper(Listener, Sender<usize>);
    enum KeeperMsg {
        Drain,
        Drained(Result<Result<pointsman::net::DrainReport, pointsman::AskError>, PipeError>),
    }
    impl Actor for Keeper {
        type Message = KeeperMsg;
        fn receive(&mut self, message: KeeperMsg, ctx: &mut Context<KeeperMsg>) -> HandlerResult {
            match message {
                KeeperMsg::Drain => {
                    let drain = self.0.drain(LONG);
                    ctx.pipe_to_self(drain, KeeperMsg::Drained)?;
                }
                KeeperMsg::Drained(report) => self.1.send(report??.connections_left)?,
            }
            Ok(())
        }
    }
    let system = System::builder("drain").build().unwrap();
    let (listener, _drains) = listen(&system, true);
    let (tell, told) = mpsc::channel();
    let mut client = client_of(&listener);
    asks(&mut client, b"here");
    let keeper = system.spawn(move || Keeper(listener.clone(), tell.clone())).unwrap();
    keeper.tell(KeeperMsg::Drain);
    assert!(is_over(&mut client));
    drop(client);
    assert_eq!(told.recv_timeout(LONG).unwrap(), 0);
    ends_balanced(system);
}

#[test]
fn a_coordinated_shutdown_drains_in_its_first_phase() {
    let system = System::builder("drain").build().unwrap();
    let (listener, drains) = listen(&system, true);
    let mut client = client_of(&listener);
    asks_and_begins(&mut client);
    let (stopping, port) = (listener.actor().when_ended(), listener.clone());
    let shutdown = system.coordinated_shutdown();
    shutdown
        .add_task(Phase::SERVICE_UNBIND, "drain the port", move || {
            let report = port.drain(Duration::from_secs(3)).wait()?;
            if report.is_complete() { Ok(()) } else { Err(Failure::msg(report.to_string())) }
        })
        .unwrap();
    let run = shutdown.run("the end of the test");
    drains.recv_timeout(LONG).unwrap();
    client.write_all(b"lf").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"half");
    drop(client);
    let report = run.wait().unwrap();
    let tasks: Vec<_> = report.phases.iter().flat_map(|phase| &phase.tasks).collect();
    assert!(tasks.iter().all(|task| task.outcome == PhaseOutcome::Done), "{report}");
    stopping.wait().unwrap();
    assert_eq!(report.ledger.balance(), 0);
    ends_balanced(system);
}
