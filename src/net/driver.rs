//! The driver: what waits for sockets.
//!
//! The driver reads and writes nothing itself (except for the last bytes of connections whose actors have ended, see
//! `linger.rs`): it turns the operating system's edges into messages, by the rules of `readiness.rs`.
//!
//! An idle worker of the default dispatcher waits for sockets in place of a park, and sends the messages itself
//! ([`event_wait`](crate::scheduler::event_wait)). The driver's own thread waits for them where that dispatcher has no
//! workers that steal from each other, where all of its workers are busy, and as long as sockets linger.
//!
//! The thread starts with the first socket of a system and is joined at shutdown, after the last actor has ended and
//! the last bytes have gone out.
//!
//! A token is used again when its socket is gone or lingers. An event for the old socket may have been fetched before
//! that, or may come before a lingering socket has got its other token. Such an event reaches the owner of the new
//! socket, which finds nothing to read: readiness is a hint, never a promise.

use crate::core::actor_ref::ActorRef;
use crate::core::extensions::Extension;
use crate::dispatch::may_block::without_waiting;
use crate::net::linger::{Lingerers, Lingering};
use crate::net::outgoing::Outgoing;
use crate::net::readiness::{Raised, Readiness, ReadinessWord};
use crate::net::ready::Ready;
use crate::net::resolver::Resolver;
use crate::scheduler::affinity::unpinned;
use crate::scheduler::event_wait::{EventSource, EventWait};
use crate::scheduler::pool::Pool;
use crate::sync::{Arc, Mutex, OnceLock, lock, thread};
use crate::util::panic::Guarded;
use mio::event::{Event, Source};
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use slab::Slab;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::Duration;
use std::time::Instant;

/// At most this many events are fetched at a time.
const EVENTS_MAX: usize = 1024;
/// At most this many owners are looked through under a lock when a listener drains.
const DRAINS_MAX: usize = 256;
/// The token by which the driver itself is woken.
const WAKE: Token = Token(usize::MAX);
/// Tokens from here on belong to lingering sockets, lower tokens to actors.
const LINGERING_FROM: usize = usize::MAX / 2;

/// The driver's thread looks so often whether a worker waits for the sockets, while workers come and go; otherwise it
/// sleeps until a worker leaves the sockets. So long an
/// event may lie when the worker that should wait for it handles a message that takes longer than those before.
const TICK: Duration = Duration::from_millis(1);

/// The sockets of a system: its driver, which there is none of until the first socket, and what outgoing connections
/// share.
pub(crate) struct DriverSlot {
    /// The name of the driver's thread.
    thread_name: String,
    state: Mutex<State>,
    pub resolver: Resolver,
    pub outgoing: Outgoing,
}

#[derive(Default)]
enum State {
    #[default]
    NotYet,
    Running {
        driver: StdArc<Driver>,
        thread: thread::JoinHandle<()>,
    },
    Stopped,
}

/// The longest time for the last bytes of connections when no thread waits for the system's threads.
const LAST_BYTES: Duration = Duration::from_secs(2);

impl Extension for DriverSlot {
    /// Ends the driver when no socket lingers, or at `until`, and joins its thread. All actors have ended.
    fn stop(&self, until: Option<Instant>) {
        self.resolver.stop(until);
        // Without the wake-up the thread could not be joined.
        if let Some(thread) = self.end(until) {
            let _ = thread.join();
        }
    }

    /// As [`stop`](Extension::stop), but does not wait: other threads may wait for the caller.
    fn release(&self) {
        self.resolver.release();
        drop(self.end(Instant::now().checked_add(LAST_BYTES)));
    }
}

impl DriverSlot {
    /// Makes the place of the driver in the system of this name; no thread starts yet.
    pub(crate) fn new(system: &str) -> Self {
        Self {
            thread_name: format!("{system}-net"),
            state: Mutex::default(),
            resolver: Resolver::new(&format!("{system}-resolver")),
            outgoing: Outgoing::new(system),
        }
    }

    /// Returns the driver, and starts it if need be. Idle workers of `pool` wait for its sockets.
    ///
    /// # Errors
    ///
    /// The operating system refuses a poll or a thread, or the system has shut down.
    pub(crate) fn driver(&self, pool: Option<&Arc<Pool>>) -> io::Result<StdArc<Driver>> {
        let mut state = lock(&self.state);
        match &*state {
            State::Running { driver, .. } => Ok(driver.clone()),
            State::Stopped => Err(io::Error::other("the system is shut down: it takes no more sockets")),
            State::NotYet => {
                let (driver, thread) = Driver::start(&self.thread_name, pool.cloned())?;
                *state = State::Running { driver: driver.clone(), thread };
                Ok(driver)
            }
        }
    }

    /// Tells the thread to end, and returns it if it was told.
    fn end(&self, until: Option<Instant>) -> Option<thread::JoinHandle<()>> {
        let State::Running { driver, thread } = std::mem::replace(&mut *lock(&self.state), State::Stopped)
        else {
            return None;
        };
        lock(&driver.inbox).stop = Some(until);
        driver.wake_thread().is_ok().then_some(thread)
    }
}

/// The state that the driver's thread and the owners of sockets share.
pub(crate) struct Driver {
    registry: Registry,
    waker: Waker,
    /// The owners by token. Locked to open and close a socket and once for each batch of events.
    owners: Mutex<Slab<StdArc<Owner>>>,
    inbox: Mutex<Inbox>,
    /// Locked by the thread that waits for the sockets.
    wait: Mutex<Wait>,
    /// The driver's own thread.
    thread: OnceLock<thread::Thread>,
}

/// The poll, and room for its events.
struct Wait {
    poll: Poll,
    events: Events,
    /// The owners to be told of the last events.
    raised: Vec<(StdArc<Owner>, Readiness)>,
}

/// The requests of other threads to the driver's thread.
#[derive(Default)]
struct Inbox {
    /// Sockets whose last bytes have to go out.
    lingering: Vec<Lingering>,
    /// The request to end, at the latest at this time if there is one.
    stop: Option<Option<Instant>>,
    /// The driver does not look here any more.
    closed: bool,
}

impl Inbox {
    fn has_requests(&self) -> bool {
        !self.lingering.is_empty() || self.stop.is_some()
    }
}

/// Sends the message of an owner.
pub(crate) type Tell = Box<dyn Fn() + Send + Sync>;

/// The owner of a socket.
pub(crate) struct Owner {
    word: ReadinessWord,
    tell: Tell,
    /// Identifies the listener that has accepted the socket; 0 for the other sockets.
    listener: usize,
}

impl Owner {
    /// Makes an owner that is told by `tell`, which does not panic.
    pub(crate) fn new(tell: Tell) -> Self {
        Self { word: ReadinessWord::new(), tell, listener: 0 }
    }

    /// Makes an owner of the actor `target`, which gets a [`Ready`] as the message that `wrap` makes of it. A panic of
    /// `wrap` ends the actor.
    pub(crate) fn actor<M: Send + 'static>(
        target: ActorRef<M>,
        wrap: impl Fn(Ready) -> M + Send + Sync + 'static,
    ) -> Self {
        // Its last owner may be the driver's thread, which a panic of its destructor must not reach.
        let wrap = Guarded::new(wrap);
        Self::new(Box::new(move || {
            // `wrap` is the user's code, and this may be the driver's thread.
            let told = catch_unwind(AssertUnwindSafe(|| {
                // Sent beyond the capacity: without this message no other would come. An actor that has ended refuses
                // it, and needs no readiness.
                target.send_beyond_capacity(wrap(Ready(())));
            }));
            if let Err(payload) = told {
                crate::util::panic::drop_guarded(payload);
                target.stop();
            }
        }))
    }

    /// Makes the owner one of the connections of this listener.
    pub(crate) fn of_listener(mut self, listener: usize) -> Self {
        self.listener = listener;
        self
    }

    /// Holds the first message back, until [`tell_first`](Self::tell_first).
    pub(crate) fn held_back(mut self) -> Self {
        self.word = ReadinessWord::held_back(Readiness::WRITABLE);
        self
    }

    /// Sends the message that was held back.
    pub(crate) fn tell_first(&self) {
        (self.tell)();
    }

    pub(crate) fn raise(&self, bits: Readiness) {
        if self.word.raise(bits) == Raised::Tell {
            (self.tell)();
        }
    }
}

/// The registration of a socket with the driver.
pub(crate) struct Registration {
    /// The driver, and the token of the socket; `None` for a socket that tells its owner itself.
    watched: Option<(StdArc<Driver>, Token)>,
    owner: StdArc<Owner>,
}

impl Driver {
    /// Makes a driver without a thread.
    pub(crate) fn new() -> io::Result<StdArc<Self>> {
        let poll = Poll::new()?;
        Ok(StdArc::new(Self {
            registry: poll.registry().try_clone()?,
            waker: Waker::new(poll.registry(), WAKE)?,
            owners: Mutex::new(Slab::new()),
            inbox: Mutex::new(Inbox::default()),
            wait: Mutex::new(Wait { poll, events: Events::with_capacity(EVENTS_MAX), raised: Vec::new() }),
            thread: OnceLock::new(),
        }))
    }

    #[cfg(test)]
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the sockets that the thread would take from its inbox.
    #[cfg(test)]
    pub(crate) fn take_lingering(&self) -> Vec<Lingering> {
        std::mem::take(&mut lock(&self.inbox).lingering)
    }

    /// Reports an edge of the socket with this token, as the thread does.
    #[cfg(test)]
    pub(crate) fn edge(&self, token: Token, bits: Readiness) {
        let owner = lock(&self.owners).get(token.0).cloned();
        if let Some(owner) = owner {
            owner.raise(bits);
        }
    }

    fn start(
        thread_name: &str,
        pool: Option<Arc<Pool>>,
    ) -> io::Result<(StdArc<Self>, thread::JoinHandle<()>)> {
        let driver = Self::new()?;
        let served = driver.clone();
        // The messages to owners run code of users, which may end the system: that would wait for this very thread.
        let serve = move || without_waiting(|| served.serve(pool));
        let thread = thread::Builder::new().name(thread_name.to_owned()).spawn(unpinned(serve))?;
        Ok((driver, thread))
    }

    /// Registers a socket for its owner.
    ///
    /// # Errors
    ///
    /// The operating system refuses to watch it.
    pub(crate) fn register(
        self: &StdArc<Self>,
        socket: &mut impl Source,
        interest: Interest,
        owner: Owner,
    ) -> io::Result<Registration> {
        let owner = StdArc::new(owner);
        let token = Token(lock(&self.owners).insert(owner.clone()));
        let registration = Registration { watched: Some((self.clone(), token)), owner };
        // From here on the destructor clears up, also when the next line fails.
        self.registry.register(socket, token, interest)?;
        Ok(registration)
    }

    /// Tells the owners of a listener's connections that it drains.
    pub(crate) fn tell_drain(&self, listener: usize) {
        for first in (0..).step_by(DRAINS_MAX) {
            let owners: Vec<_> = {
                let owners = lock(&self.owners);
                if first >= owners.capacity() {
                    return;
                }
                let part = (first..first + DRAINS_MAX).filter_map(|key| owners.get(key));
                part.filter(|owner| owner.listener == listener).cloned().collect()
            };
            // Outside the lock: it runs code of users. The bit makes each look for the last input that has come.
            owners.iter().for_each(|owner| owner.raise(Readiness::READABLE));
        }
    }

    /// Sends the last bytes of a socket.
    fn linger(&self, lingering: Lingering) {
        {
            let mut inbox = lock(&self.inbox);
            if inbox.closed {
                return;
            }
            inbox.lingering.push(lingering);
        }
        // A wake-up fails only if the driver's own descriptor is gone; then the deadline has no effect either, and the
        // socket closes with the driver.
        let _ = self.wake_thread();
    }

    /// Makes the driver's thread look into its inbox, wherever it waits.
    fn wake_thread(&self) -> io::Result<()> {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        self.waker.wake()
    }

    /// Runs the loop of the driver's thread.
    fn serve(self: &StdArc<Self>, pool: Option<Arc<Pool>>) {
        self.thread.set(thread::current()).expect("it has one thread");
        if let Some(pool) = &pool {
            let driver: StdWeak<Self> = StdArc::downgrade(self);
            pool.event_wait().install(driver);
        }
        let mut lingerers = Lingerers::new(LINGERING_FROM);
        let mut stop: Option<Option<Instant>> = None;
        loop {
            let deadline = match (lingerers.next_deadline(), stop.flatten()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            let timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let mut wait = lock(&self.wait);
            wait.fetch(&self.owners, timeout);
            let sleeping = pool.as_ref().filter(|pool| pool.has_sleeper());
            if wait.tell_owners() {
                // Lets the workers go on first where cores are scarce: more events come together then, and each costs
                // less. With cores to spare this returns at once.
                thread::yield_now();
            }
            for event in &wait.events {
                match event.token() {
                    WAKE => {}
                    Token(token) if token >= LINGERING_FROM => lingerers.progress(token),
                    _ => {}
                }
            }
            drop(wait);
            let now = Instant::now();
            lingerers.expire(now);
            let mut inbox = lock(&self.inbox);
            stop = stop.or(inbox.stop);
            let more = std::mem::take(&mut inbox.lingering);
            let over = stop.flatten().is_some_and(|until| now >= until);
            if more.is_empty() && stop.is_some() && (lingerers.is_empty() || over) {
                inbox.closed = true;
                return;
            }
            drop(inbox);
            if let (Some(pool), true, true, None) = (sleeping, more.is_empty(), lingerers.is_empty(), stop) {
                // A worker that slept is awake now, or takes the sockets when it has nothing to do.
                self.leave_to_workers(pool.event_wait());
                continue;
            }
            for lingering in more {
                lingerers.add(lingering, &self.registry);
            }
            if stop.is_some() && lingerers.is_empty() {
                // All sockets could finish at once: look again instead of waiting for an event.
                let _ = self.waker.wake();
            }
        }
    }
}

impl Driver {
    /// Lets workers wait for the sockets. Returns when this thread has the sockets again, because there is a request in
    /// the inbox, or because no worker waits for them.
    fn leave_to_workers(&self, workers: &EventWait) {
        workers.offer();
        let mut seen = workers.departures();
        // Whether a worker has held the sockets for a tick.
        let (mut was_free, mut is_calm) = (false, false);
        loop {
            if !is_calm {
                thread::park_timeout(TICK);
            } else {
                workers.tell_departures(true);
                if workers.departures() == seen && !workers.is_free() && !lock(&self.inbox).has_requests() {
                    thread::park();
                }
                workers.tell_departures(false);
            }
            if lock(&self.inbox).has_requests() {
                workers.take_over();
                // A worker may have used up the wake-up that came with the request.
                let _ = self.waker.wake();
                return;
            }
            let (before, is_free) = (seen, workers.is_free());
            seen = workers.departures();
            if is_free && was_free && seen == before && workers.try_take() {
                return;
            }
            is_calm = !is_free && seen == before;
            was_free = is_free;
        }
    }
}

impl EventSource for Driver {
    fn wait(&self) -> bool {
        lock(&self.wait).fetch(&self.owners, None)
    }

    fn look(&self) -> bool {
        lock(&self.wait).fetch(&self.owners, Some(Duration::ZERO))
    }

    fn handle(&self) {
        lock(&self.wait).tell_owners();
    }

    fn wake(&self) {
        // A wake-up fails only if the driver's own descriptor is gone; then no wait lasts.
        let _ = self.waker.wake();
    }
}

impl Wait {
    /// Waits for events, and notes the owners to be told. Returns whether there are any.
    fn fetch(&mut self, owners: &Mutex<Slab<StdArc<Owner>>>, timeout: Option<Duration>) -> bool {
        self.events.clear();
        match self.poll.poll(&mut self.events, timeout) {
            // Only a misuse of the poll itself can fail here, and without the poll every connection would hang.
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                panic!("cannot wait for sockets: {error}")
            }
            _ => {}
        }
        let owners = lock(owners);
        for event in &self.events {
            let Token(token) = event.token();
            let bits = readiness_of(event);
            if let (Some(owner), true, false) = (owners.get(token), token < LINGERING_FROM, bits.is_empty()) {
                self.raised.push((owner.clone(), bits));
            }
        }
        !self.raised.is_empty()
    }

    /// Tells the owners, outside their lock: it runs code of users. Returns whether there were any.
    fn tell_owners(&mut self) -> bool {
        let told = !self.raised.is_empty();
        for (owner, bits) in self.raised.drain(..) {
            owner.raise(bits);
        }
        told
    }
}

fn readiness_of(event: &Event) -> Readiness {
    let mut bits = Readiness::default();
    if event.is_readable() {
        bits = bits.and(Readiness::READABLE);
    }
    if event.is_writable() {
        bits = bits.and(Readiness::WRITABLE);
    }
    if event.is_error() || event.is_read_closed() || event.is_write_closed() {
        // The owner learns of the end by trying, whether it reads or writes.
        bits = bits.and(Readiness::READABLE).and(Readiness::WRITABLE).and(Readiness::READ_ENDS);
    }
    if event.is_priority() {
        // A read stops there, and gets less than it asked for although more has come.
        bits = bits.and(Readiness::READABLE).and(Readiness::READ_ENDS);
    }
    bits
}

impl Registration {
    /// Takes the bits that the driver has raised; rule 2 of `readiness.rs`.
    pub(crate) fn take(&self) -> Readiness {
        self.owner.word.take()
    }

    /// Makes the owner send itself a [`Ready`] with these bits, unless one is on its way.
    pub(crate) fn raise(&self, bits: Readiness) {
        self.owner.raise(bits);
    }

    /// Makes a registration without a driver, for a socket that tells its owner itself.
    #[cfg(any(test, feature = "testkit"))]
    pub(crate) fn without_driver(owner: Owner) -> Self {
        Self { watched: None, owner: StdArc::new(owner) }
    }

    pub(crate) fn owner(&self) -> &StdArc<Owner> {
        &self.owner
    }

    /// Gives the last bytes of the socket to the driver.
    pub(crate) fn linger(&self, lingering: Lingering) {
        if let Some((driver, _)) = &self.watched {
            driver.linger(lingering);
        }
    }

    /// Ends the registration of the socket.
    pub(crate) fn deregister(&self, socket: &mut impl Source) {
        if let Some((driver, _)) = &self.watched {
            // The socket is about to be closed or registered anew; an error says that the kernel has forgotten it
            // already, which does no harm.
            let _ = driver.registry.deregister(socket);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some((driver, Token(key))) = &self.watched else { return };
        let owner = lock(&driver.owners).try_remove(*key);
        // Dropped outside the lock: it may hold the last reference to an actor.
        drop(owner);
    }
}
