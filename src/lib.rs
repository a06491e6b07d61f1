//! A lock-free message routing engine for actors, with its own scheduler.
//!
//! Actors without an async runtime: a hand-written work-stealing pool runs them. A router *is* its reference:
//! [`tell`](ActorRef::tell) on it runs the routing logic in the sender's thread and pushes straight into the chosen
//! routee's mailbox. Nothing is lost: every message sent is handled, dead-lettered, handed back, or dropped by a policy
//! that asked for it, and the [`Ledger`] counts each. The ledger of a system balances when the system has been shut
//! down. A message on its way from one system to another is in [both ledgers](Ledger), and the sum balances.
//!
//! ```
//! use pointsman::prelude::*;
//! use pointsman::routing::ConsistentHashing;
//! use std::collections::HashMap;
//!
//! struct Get(String);
//! impl Request for Get {
//!     type Reply = Option<u64>;
//! }
//!
//! struct Put(String, u64);
//!
//! #[derive(Message)] // From<Call<Get>> and From<Put>
//! enum CacheMsg {
//!     Get(Call<Get>),
//!     Put(Put),
//! }
//!
//! #[derive(Default)]
//! struct Cache {
//!     map: HashMap<String, u64>,
//! }
//!
//! impl Actor for Cache {
//!     type Message = CacheMsg;
//!     fn receive(&mut self, message: CacheMsg, _: &mut Context<CacheMsg>) -> HandlerResult {
//!         match message {
//!             CacheMsg::Get(call) => call.answer(|Get(key)| self.map.get(&key).copied()),
//!             CacheMsg::Put(Put(key, value)) => {
//!                 self.map.insert(key, value);
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::builder("shop").build()?;
//! let shards = system
//!     .router("shards")
//!     .pool(8, |_| Cache::default())
//!     .logic(ConsistentHashing::by(|message: &CacheMsg, key| match message {
//!         CacheMsg::Get(call) => key.feed(&call.request.0),
//!         CacheMsg::Put(put) => key.feed(&put.0),
//!     }))
//!     .spawn()?;
//! let cache: ActorRef<CacheMsg> = shards.to_ref(); // what everybody else holds
//! cache.tell(Put("apples".into(), 12));
//! assert_eq!(cache.ask(Get("apples".into())).wait()?, Some(12));
//!
//! let ledger = system.shutdown(std::time::Duration::from_secs(5))?;
//! assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (2, 2, 0));
//! # Ok(())
//! # }
//! ```
//!
//! # Where to go from here
//!
//! | you want | look at |
//! |---|---|
//! | to read about one subject | [the guides](guide): a page each, with a table of subjects |
//! | to write an actor | [`Actor`], [`Context`] |
//! | to start and stop the whole | [`System`], [`Dispatcher`] |
//! | to send and to ask | [`ActorRef`], [`Ask`], [`ReplyTo`] |
//! | to route: which router, when, what it costs | [`routing`], [the guide](guide::routers) |
//! | a routing logic of your own | [`RoutingLogic`](routing::RoutingLogic), [the guide](guide::routers) |
//! | handlers that block | [`Dispatcher::blocking`], [`Context::blocking`] |
//! | to ask several actors the same question | [`ScatterGatherFirstCompleted`](routing::ScatterGatherFirstCompleted), [`TailChopping`](routing::TailChopping) |
//! | routers in GoAkt's words | `routing::goakt` (feature `goakt`, on by default) |
//! | an actor for each key | [`group`], [the guide](guide::topology) |
//! | services made of groups | [`topology`], [the guide](guide::topology) |
//! | pools whose size follows their load | [`Resizer`](routing::Resizer), [the guide](guide::resizing) |
//! | what happens when an actor fails | [`Strategy`], [`Failure`], [`Backoff`](supervision::Backoff) |
//! | bounded mailboxes, and those in which urgent messages overtake | [`Mailbox`], [`OverflowPolicy`] |
//! | to find actors by their paths | [`SystemRef::actor_at`], [`Selection`](selection::Selection) |
//! | to receive outside actors | [`Inbox`](pattern::Inbox) |
//! | timers and time in tests | [`Context::timers`], [`ManualClock`](time::ManualClock) |
//! | a receive timeout | [`Context::set_receive_timeout`] |
//! | to put messages aside, to change behaviour | [`Context::stash`], [`Behaviors`](pattern::Behaviors) |
//! | code that runs later, outside actors | [`SystemRef::task_timer`] |
//! | to test actors | `testkit` (feature `testkit`) |
//! | to check what you share beside messages, in all orders of threads | [the guide](guide::models) |
//! | sockets | `net` (feature `net`, on by default) |
//! | to end a service in phases, by a signal | [`shutdown`] |
//! | to tell all listeners | [`Listeners`](pattern::Listeners) |
//! | a future's result as a message | [`Context::pipe_to_self`] |
//! | messages that wait for a future, streams, tokio | [`Context::hold`], [`Context::attach`], [the guide](guide::tokio) |
//! | settings from outside the code | [`Deployment`](settings::Deployment), `config` (feature `config`) |
//! | to hear of what happens | [`EventStream`](events::EventStream) |
//! | where every message went | [`Ledger`], [`DeadLetters`](dead_letters::DeadLetters) |
//! | statistics for the crates `metrics` and `tracing` | [the guide](guide::telemetry) (features `metrics`, `tracing`) |
//! | actors of other processes and machines | `remote`, the guide `remoting` (feature `remote`) |
//! | statistics over HTTP | `console` (feature `console`) |
//! | to see inside a running system | [`SystemRef::stats`], [`SystemRef::actors`], [`telemetry`], [the guide](guide::telemetry) |
//!
//! # Guarantees
//!
//! A message is handled at most once. Messages of one sender (a thread, or an actor wherever it runs) to one actor are
//! handled in the order sent, unless the actor's [mailbox sorts](Mailbox#order) or the actor itself
//! [puts messages aside](Context::stash). The engine keeps these invariants; comments in the source cite them
//! by number, and `loom-tests` models them:
//!
//! 1. A delivery is in exactly one place: handled once, dead-lettered once, handed back once, dropped by a named policy
//!    once, skipped once because it is no longer wanted, or queued.
//! 2. Per sender and receiver, messages are handled in the order sent.
//! 3. At most one thread runs an actor at a time, and its writes in a turn are visible in the next.
//! 4. A message accepted by an open mailbox is handled without any further send, whichever worker sleeps.
//! 5. Immediate control acts before user messages not yet begun; positioned control keeps its place among them.
//! 6. After close, every push fails and returns its message; every message pushed before is drained.
//! 7. A sender that holds an old table of routees loses nothing, and no old table is freed while a thread reads it.
//! 8. A mailbox's length never goes below zero nor counts a message twice; at quiescence it is exact.
//! 9. An ask completes exactly once; its slot, its timer and its waker are gone afterwards.
//! 10. A routee of a balancing pool never sleeps while the shared queue holds a message that it may take.
//! 11. Idle workers sleep; a job submitted while the last one falls asleep wakes one.
//! 12. Shutdown ends every thread and balances the ledger to 0.
// The documentation says which feature an item needs.
#![cfg_attr(
    docsrs,
    feature(doc_cfg),
    doc(auto_cfg(hide(
        pointsman_loom,
        pointsman_shuttle,
        pointsman_mirror,
        pointsman_asan,
        pointsman_tsan
    )))
)]
#![cfg_attr(not(pointsman_loom), deny(missing_docs))]
#![cfg_attr(not(any(pointsman_loom, pointsman_shuttle)), deny(unreachable_pub))]
// In the mirrors shrunken sizes leave loops and comparisons empty, and locks are large. In the mirror on loom, internals
// are public through the hooks.
#![cfg_attr(
    any(pointsman_loom, pointsman_shuttle),
    allow(
        clippy::absurd_extreme_comparisons,
        clippy::large_enum_variant,
        clippy::len_without_is_empty,
        clippy::new_without_default,
        clippy::reversed_empty_ranges,
        clippy::unnecessary_literal_unwrap
    )
)]

// The derive names this crate by its own name; inside it that name must exist too.
extern crate self as pointsman;

// The mirrors widen `pub(crate)` to `pub`, so that `loom_hooks` can show internals to their models. A user's own models
// run on the source as it is, without them.
pub mod actor;
pub mod ask;
#[cfg(feature = "config")]
pub mod config;
#[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
pub mod console;
mod core;
pub mod dispatch;
#[cfg(not(pointsman_loom))]
pub mod dump;
mod failure;
pub mod group;
#[cfg(not(pointsman_loom))]
pub mod guide;
#[cfg(pointsman_mirror)]
pub mod loom_hooks;
#[cfg(not(pointsman_loom))]
pub mod logs;
pub mod mailbox;
mod measure;
#[cfg(all(feature = "metrics", not(pointsman_loom)))]
mod metrics_publisher;
#[cfg(pointsman_loom)]
pub mod model;
#[cfg(any(feature = "net", pointsman_loom))]
pub mod net;
pub mod path;
pub mod pattern;
#[cfg(any(feature = "remote", pointsman_loom))]
pub mod remote;
pub mod routing;
mod scheduler;
pub mod selection;
pub mod settings;
pub mod shutdown;
mod sync;
pub mod system;
mod system_settings;
pub mod telemetry;
#[cfg(feature = "testkit")]
pub mod testkit;
mod thread_context;
pub mod time;
pub mod topology;
mod util;

/// Dead letters: messages that no actor took, counted and published.
pub mod dead_letters {
    pub use crate::core::dead_letter::{DeadLetter, DeadLetterReason};
    pub use crate::core::dead_letter_log::DeadLetterLog;
    pub use crate::core::dead_letter_sinks::DeadLetterSinkExists;
    pub use crate::core::dead_letters::{DeadLetters, SuppressedDeadLetter};
}

/// The event stream: actors subscribe to the types of event that they want.
pub mod events {
    pub use crate::core::event_stream::{EventGroup, EventStream, Subscription};
}

/// Supervision: what a parent does about a failed child.
pub mod supervision {
    pub use crate::core::strategy::{Directive, Strategy};
    pub use crate::failure::{Failure, FailureKind, IntoFailure};
    pub use crate::pattern::backoff::{Backoff, BackoffSupervisor};
    pub use crate::settings::setting_error::SettingError;
}

/// Timers: of an actor, and of code outside actors.
pub mod timers {
    pub use crate::actor::schedule_error::ScheduleError;
    pub use crate::actor::timer_table::TimerKey;
    pub use crate::actor::timers::ActorTimers;
    pub use crate::core::cancellable::Cancellable;
    pub use crate::pattern::task_timer::TaskTimer;
}

pub use crate::actor::actor::{Actor, HandlerResult};
pub use crate::actor::context::Context;
pub use crate::ask::ask::{Ask, Asker};
pub use crate::ask::error::AskError;
pub use crate::ask::reply::{Call, ReplyTo, Request};
pub use crate::core::actor_ref::ActorRef;
pub use crate::core::any_actor_ref::AnyActorRef;
pub use crate::core::control::Terminated;
pub use crate::core::dead_letter::{DeadLetter, DeadLetterReason};
pub use crate::core::error::{SendError, ShutdownError, SpawnError};
pub use crate::core::ledger::Ledger;
pub use crate::core::strategy::{Directive, Strategy};
pub use crate::core::system::SystemRef;
pub use crate::dispatch::dispatcher::Dispatcher;
pub use crate::failure::{Failure, FailureKind};
pub use crate::mailbox::kind::{Mailbox, OverflowPolicy};
pub use crate::path::actor_path::ActorPath;
pub use crate::routing::router::Router;
pub use crate::settings::build_error::BuildError;
pub use crate::system::{System, SystemBuilder};

#[cfg(feature = "macros")]
pub use pointsman_macros::Message;

/// The program in the README is one that compiles and runs.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The items that most programs use.
pub mod prelude {
    #[cfg(feature = "macros")]
    pub use crate::Message;
    pub use crate::actor::actor::{Actor, HandlerResult};
    pub use crate::actor::context::Context;
    pub use crate::ask::ask::{Ask, Asker};
    pub use crate::ask::error::AskError;
    pub use crate::ask::reply::{Call, ReplyTo, Request};
    pub use crate::core::actor_ref::ActorRef;
    pub use crate::core::any_actor_ref::AnyActorRef;
    pub use crate::core::control::Terminated;
    pub use crate::core::error::{SendError, SpawnError};
    pub use crate::core::strategy::{Directive, Strategy};
    pub use crate::core::system::SystemRef;
    pub use crate::dispatch::dispatcher::Dispatcher;
    pub use crate::failure::Failure;
    pub use crate::mailbox::kind::{Mailbox, OverflowPolicy};
    pub use crate::routing::router::Router;
    pub use crate::system::System;
}
