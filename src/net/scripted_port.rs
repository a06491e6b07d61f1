//! A listener on a scripted port: accepting may be interrupted, "would block", find that the peer has gone again, or
//! find no descriptor left, and edges come late. Each seed is a course of events; `POINTSMAN_NET_SEED=N` runs that
//! course alone.
//!
//! The port keeps the guarantees of the operating system: where accepting "would block" although a peer waits, an edge
//! follows. When all edges are reported and the listener has rested, every waiting peer has been accepted, as far as
//! there is room. At each end of a connection the next peer is accepted, without another edge that could hide a lost
//! edge.
//!
//! Faults that were planted in `listener.rs`, and caught, each by itself:
//!
//! - a rest never ends; the listener accepts while it rests; it goes on at once where there is no descriptor
//! - the message that there is room is ignored
//! - after "would block" it accepts on without an edge
//! - an edge is not taken, so that no other edge is reported
//! - a connection more than `max_connections` is accepted
//! - a listener that yields is not gone on with
//! - a peer that has gone again makes it rest, or ends accepting
//! - `unbind` closes the port before the waiting peers are accepted, answers though the port is open, or never

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::core::actor_ref::ActorRef;
use crate::net::connection::Connection;
use crate::net::driver::{Driver, DriverSlot};
use crate::net::listener::{ACCEPTS_MAX, REST};
use crate::net::readiness::Readiness;
use crate::net::scripted::{End, Rng, Seed, Wire, seeds};
use crate::net::socket::{ListenSocket, SocketAddress};
use crate::net::{Listener, Ready};
use crate::sync::{Mutex, lock};
use crate::testkit::TestSystem;
use crate::time::clock::{Clock, ManualClock};
use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::io;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A listener that takes so many turns at a time goes on for ever.
const TURNS_MAX: u64 = 10_000;

/// The port, and the peers behind it.
struct Queue {
    rng: Rng,
    /// All calls do what they can.
    is_calm: bool,
    token: Option<Token>,
    /// Peers that wait to be accepted.
    waiting: usize,
    /// There is an edge that the driver has not reported yet.
    edge: bool,
    accepted: u64,
    failures: u64,
    clock: ManualClock,
    /// Accepting has failed, and is to rest until then.
    rests_until: Duration,
    /// The number of "would block" since the last edge was reported. Twice, where the edge's message was under way.
    blocked: u32,
    is_closed: bool,
    /// The fault of the listener.
    fault: Option<&'static str>,
}

/// The listener's end of the port.
pub(crate) struct Port(StdArc<Mutex<Queue>>);

impl Queue {
    fn would_block(&mut self) -> io::Error {
        self.blocked += 1;
        self.edge |= self.waiting > 0;
        io::ErrorKind::WouldBlock.into()
    }

    fn accept(&mut self) -> io::Result<End> {
        if self.clock.now() < self.rests_until {
            self.fault = Some("it accepts while it is to rest");
        }
        if self.blocked > 2 {
            self.fault = Some("it accepts on although it would block");
        }
        match self.rng.below(10) {
            _ if self.is_calm => {}
            0 => return Err(io::ErrorKind::Interrupted.into()),
            1 => return Err(self.would_block()),
            2 => {
                self.failures += 1;
                self.rests_until = self.clock.now() + REST;
                return Err(io::Error::other("too many open files"));
            }
            3 if self.waiting > 0 => {
                self.waiting -= 1;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            _ => {}
        }
        if self.waiting == 0 {
            return Err(self.would_block());
        }
        self.waiting -= 1;
        self.accepted += 1;
        Ok(End(StdArc::new(Mutex::new(Wire::new(Rng(0), false, 0)))))
    }
}

impl Port {
    pub(crate) fn accept(&self) -> io::Result<End> {
        lock(&self.0).accept()
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Port")
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        lock(&self.0).is_closed = true;
    }
}

/// The test reports its readiness.
impl Source for Port {
    fn register(&mut self, _: &Registry, token: Token, _: Interest) -> io::Result<()> {
        lock(&self.0).token = Some(token);
        Ok(())
    }
    fn reregister(&mut self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }
    fn deregister(&mut self, _: &Registry) -> io::Result<()> {
        Ok(())
    }
}

/// The actor of a connection, which ends when it is told to.
struct Guest(Connection);

impl Actor for Guest {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, _: &mut Context<Ready>) -> HandlerResult {
        self.0.ready(ready);
        Ok(())
    }
}

/// A listener, its port and its connections.
struct Course {
    system: TestSystem,
    driver: StdArc<Driver>,
    queue: StdArc<Mutex<Queue>>,
    listener: Listener,
    guests: StdArc<Mutex<Vec<ActorRef<Ready>>>>,
    connections_max: usize,
    rng: Rng,
}

impl Course {
    fn new(seed: u64) -> Self {
        let (system, mut rng) = (TestSystem::builder().seed(seed).turn_limit(TURNS_MAX).build(), Rng(seed));
        let queue = Queue {
            rng: Rng(rng.next()),
            is_calm: false,
            token: None,
            waiting: 0,
            edge: false,
            accepted: 0,
            failures: 0,
            clock: system.clock().clone(),
            rests_until: Duration::ZERO,
            blocked: 0,
            is_closed: false,
            fault: None,
        };
        let (queue, guests) = (StdArc::new(Mutex::new(queue)), StdArc::<Mutex<Vec<_>>>::default());
        let connections_max = if rng.once_in(3) { usize::MAX } else { 1 + rng.below(5) };
        let driver = system.core().extensions.get::<DriverSlot>().driver(None).expect("a thread");
        let (port, welcomed) = (queue.clone(), guests.clone());
        let make = move |connection, ctx: &mut Context<Ready>| {
            lock(&welcomed).push(ctx.me().clone());
            Guest(connection)
        };
        let builder = system.listener("port", SocketAddress::tcp("none")).max_connections(connections_max);
        let listener = builder.spawn_on(|_| Ok(ListenSocket::Scripted(Port(port))), make);
        let listener = listener.expect("nothing refuses it");
        Self { system, driver, queue, listener, guests, connections_max, rng }
    }

    fn arrive(&mut self, peers: usize) {
        let mut queue = lock(&self.queue);
        queue.waiting += peers;
        queue.edge = true;
    }

    /// The driver reports the edge that it owes.
    fn report(&mut self) {
        let token = {
            let mut queue = lock(&self.queue);
            if !std::mem::take(&mut queue.edge) {
                return;
            }
            queue.blocked = 0;
            queue.token
        };
        if let Some(token) = token {
            self.driver.edge(token, Readiness::READABLE);
        }
    }

    /// A connection ends, if there is any.
    fn leave(&mut self) {
        let mut guests = lock(&self.guests);
        if !guests.is_empty() {
            let which = self.rng.below(guests.len());
            guests.swap_remove(which).stop();
        }
    }

    /// Returns a few peers, or more than are accepted at a time.
    fn peers(&mut self) -> usize {
        if self.rng.once_in(8) { 2 * ACCEPTS_MAX as usize } else { 1 + self.rng.below(3) }
    }

    fn step(&mut self) {
        let peers = self.peers();
        match self.rng.below(8) {
            0 | 1 => self.arrive(peers),
            2 | 3 => self.report(),
            4 => self.leave(),
            5 => self.system.advance(REST / 2),
            6 => {
                // The operating system may do so, too.
                lock(&self.queue).edge = true;
            }
            _ => {
                self.system.step();
            }
        }
        assert!(self.listener.connections() <= self.connections_max, "it has accepted too many");
    }

    /// All owed edges and messages come.
    fn settle(&mut self) {
        lock(&self.queue).is_calm = true;
        self.system.run_until_idle();
        self.system.advance(REST);
        self.report();
        self.system.run_until_idle();
    }

    fn run(mut self) {
        for _ in 0..100 {
            self.step();
        }
        self.settle();
        let is_unbound = self.rng.once_in(2);
        if is_unbound {
            // No edge reports these: `unbind` looks by itself.
            let peers = self.peers();
            let mut queue = lock(&self.queue);
            queue.waiting += peers;
            queue.blocked = 0;
            drop(queue);
            let unbound = self.system.advance_until(self.listener.unbind(), Duration::ZERO);
            assert!(unbound.is_ok_and(|answer| answer.is_ok()), "it is never answered");
            assert!(lock(&self.queue).is_closed, "the port is open still");
        }
        loop {
            let (waiting, count) = (lock(&self.queue).waiting, self.listener.connections());
            assert!(count <= self.connections_max);
            assert!(waiting == 0 || count == self.connections_max, "{waiting} wait though there is room");
            if waiting == 0 || is_unbound {
                break;
            }
            self.leave();
            self.system.run_until_idle();
        }
        let queue = lock(&self.queue);
        assert_eq!(queue.fault, None);
        assert_eq!(self.listener.accepted(), queue.accepted);
        assert_eq!(self.listener.accept_failures(), queue.failures);
        drop(queue);
        self.listener.stop();
        self.system.run_until_idle();
        assert_eq!((self.listener.connections(), lock(&self.queue).is_closed), (0, true));
        self.system.finish();
    }
}

#[test]
fn whoever_waits_is_accepted_as_far_as_there_is_room_whatever_the_port_does() {
    for seed in seeds(300) {
        let seed = Seed(seed);
        Course::new(seed.0).run();
    }
}
