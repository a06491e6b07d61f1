//! elfo: actors are tokio tasks that live in groups, each under a key. A group's router runs in the sender's thread, and
//! starts an actor with its first message. So here is one group for all, and another from which threads send.

use crate::living::Living;
use crate::peer::{Answer, Peer, Tell, Words};
use crate::tasks::runtime;
use crate::work::{Recipe, Work};
use crate::workload::ROUTEES;
use elfo::config::AnyConfig;
use elfo::prelude::*;
use elfo::routers::{MapRouter, Outcome};
use elfo::scope::{Scope, meta, try_trace_id};
use elfo::{ActorMeta, Addr, Local, Topology};
use futures_util::future::join_all;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use tokio::runtime::{Handle, Runtime};

#[message]
struct Start(u64);

#[message]
struct Stop(u64);

/// To an actor whose address is known.
#[message]
struct Parcel(u64, u64);

/// To one of the group's actors, each in turn.
#[message]
struct InTurn(u64, u64);

/// To all actors of the group.
#[message]
struct ToAll(u64, u64);

#[message(ret = u64)]
struct Next(u64);

/// Asks the actor at the address so many times.
#[message(ret = u64)]
struct Ask(Local<Addr>, u64);

/// What an actor of the group does, and where it says its address when it has started.
struct Starting {
    work: Work<Target>,
    address: Arc<OnceLock<Addr>>,
}

type Starts = Arc<Mutex<HashMap<u64, Starting>>>;

pub struct Elfo {
    runtime: Runtime,
    outside: Outside,
    starts: Starts,
    next: AtomicU64,
}

/// What threads send with: a context of an actor.
#[derive(Clone)]
struct Outside {
    context: Arc<Context>,
    meta: Arc<ActorMeta>,
}

thread_local! {
    /// The scope without which nothing can be sent: actors have one, and each of our threads makes its own.
    static SCOPE: OnceCell<Scope> = const { OnceCell::new() };
}

impl Outside {
    fn send<M: elfo::Message>(&self, message: M) {
        let sent = self.within(|| self.context.unbounded_send(message));
        assert!(sent.is_ok(), "the group lives");
    }

    fn send_to<M: elfo::Message>(&self, address: Addr, message: M) {
        let sent = self.within(|| self.context.unbounded_send_to(address, message));
        assert!(sent.is_ok(), "it lives");
    }

    fn within<R>(&self, run: impl FnOnce() -> R) -> R {
        match try_trace_id() {
            Some(_) => run(),
            None => self.scope().sync_within(run),
        }
    }

    fn scope(&self) -> Scope {
        SCOPE.with(|scope| scope.get_or_init(|| Scope::test(self.context.addr(), self.meta.clone())).clone())
    }

    async fn request<R: elfo::Request>(&self, address: Addr, request: R) -> R::Response {
        let asked = self.context.request_to(address, request).resolve();
        self.scope().within(asked).await.expect("it answers")
    }
}

/// The group of all actors. Those that are told in turn, or all, have the keys from 0.
fn actors(starts: Starts) -> Blueprint {
    let next = AtomicU64::new(0);
    let router = MapRouter::new(move |envelope| {
        msg!(match envelope {
            Start(key) | Stop(key) => Outcome::Unicast(*key),
            InTurn => {
                Outcome::Unicast(next.fetch_add(1, Ordering::Relaxed) % ROUTEES as u64)
            }
            ToAll => Outcome::Broadcast,
            _ => Outcome::Default,
        })
    });
    ActorGroup::new().router(router).exec(move |mut ctx: Context<(), u64>| {
        let starting = starts.lock().expect("nobody panics").remove(ctx.key()).expect("there is one");
        async move {
            let Starting { mut work, address } = starting;
            address.set(ctx.addr()).expect("it starts once");
            while let Some(envelope) = ctx.recv().await {
                msg!(match envelope {
                    Parcel(number, other) | InTurn(number, other) | ToAll(number, other) =>
                        work.handle([number, other]),
                    (Next(number), token) => ctx.respond(token, number + 1),
                    (Ask(address, asks), token) => {
                        let mut number = 0;
                        for _ in 0..asks {
                            number =
                                ctx.request_to(*address, Next(number)).resolve().await.expect("it answers");
                        }
                        ctx.respond(token, number);
                    }
                    Stop => break,
                    _ => {}
                });
            }
        }
    })
}

/// The group whose only actor hands out what threads send with.
fn outside(started: mpsc::Sender<Outside>) -> Blueprint {
    ActorGroup::new().exec(move |mut ctx| {
        let started = started.clone();
        async move {
            let _ = started.send(Outside { context: Arc::new(ctx.pruned()), meta: meta() });
            while ctx.recv().await.is_some() {}
        }
    })
}

impl Elfo {
    pub fn start() -> Self {
        let runtime = runtime();
        let starts = Starts::default();
        let (started, begun) = mpsc::channel();
        let topology = Topology::empty();
        {
            let _entered = runtime.enter();
            let configurers = topology.local("system.configurers").entrypoint();
            let senders = topology.local("outside");
            let receivers = topology.local("actors");
            senders.route_all_to(&receivers);
            receivers.mount(actors(starts.clone()));
            senders.mount(outside(started));
            configurers.mount(elfo::batteries::configurer::fixture(&topology, AnyConfig::default()));
        }
        runtime.spawn(elfo::init::start(topology));
        let outside = begun.recv().expect("the group starts");
        Self { runtime, outside, starts, next: AtomicU64::new(0) }
    }

    /// Starts an actor of the group, and does not wait for that.
    fn begin(&self, work: Work<Target>) -> Target {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let address = Arc::default();
        let start = Starting { work, address: Arc::clone(&address) };
        self.starts.lock().expect("nobody panics").insert(key, start);
        let _entered = self.runtime.enter();
        self.outside.send(Start(key));
        Target { key, address, outside: self.outside.clone() }
    }

    fn answering(&self) -> Addr {
        *self.begin(Work::Live(Living::new())).address.wait()
    }
}

/// An actor's key, and its address as soon as it has one.
#[derive(Clone)]
pub struct Target {
    key: u64,
    address: Arc<OnceLock<Addr>>,
    outside: Outside,
}

impl Tell for Target {
    fn tell(&self, [number, other]: Words) {
        self.outside.send_to(*self.address.wait(), Parcel(number, other));
    }
}

#[derive(Clone)]
struct Routed(Outside);

impl Tell for Routed {
    fn tell(&self, [number, other]: Words) {
        self.0.send(InTurn(number, other));
    }
}

#[derive(Clone)]
struct Everybody(Outside);

impl Tell for Everybody {
    fn tell(&self, [number, other]: Words) {
        self.0.send(ToAll(number, other));
    }
}

impl Peer for Elfo {
    type Target = Target;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Target {
        self.begin(recipe.make(number))
    }

    fn spawn_all(&self, count: usize, recipe: Recipe<Self::Target>) -> Vec<Target> {
        let targets: Vec<_> = (0..count).map(|number| self.begin(recipe.make(number))).collect();
        // No actor is to wait for another's address.
        targets.iter().for_each(|target| _ = target.address.wait());
        targets
    }

    fn stop(&self, target: Target) {
        self.outside.send(Stop(target.key));
    }

    fn round_robin(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        assert_eq!(size, ROUTEES, "the group's router knows its size");
        self.spawn_all(size, recipe);
        Routed(self.outside.clone())
    }

    fn broadcast(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        self.spawn_all(size, recipe);
        Everybody(self.outside.clone())
    }

    fn answerer(&self) -> impl Answer {
        Asked {
            address: self.answering(),
            outside: self.outside.clone(),
            runtime: self.runtime.handle().clone(),
        }
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let (asker, answerer) = (self.answering(), self.answering());
        self.runtime.block_on(self.outside.request(asker, Ask(Local::from(answerer), asks)))
    }
}

#[derive(Clone)]
struct Asked {
    address: Addr,
    outside: Outside,
    runtime: Handle,
}

impl Answer for Asked {
    fn ask(&self, number: u64) -> u64 {
        self.runtime.block_on(self.outside.request(self.address, Next(number)))
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        let asks = numbers.map(|number| self.outside.request(self.address, Next(number)));
        self.runtime.block_on(join_all(asks)).into_iter().sum()
    }
}
