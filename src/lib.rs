//! A lock-free message routing engine for actors, with its own scheduler.
//!
//! Actors without an async runtime: a hand-written work-stealing pool runs them. A router *is* its
//! reference: [`tell`](ActorRef::tell) on it runs the routing logic in the sender's thread and pushes straight
//! into the chosen routee's mailbox. Nothing is lost: every message sent is handled, dead-lettered, handed
//! back, or dropped by a policy that asked for it, and the [`Ledger`] counts each. The books of a system balance when
//! it has been shut down; what goes from one system to another on its way is in [both of theirs](Ledger), and the sum
//! balances.
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
//!     fn receive(&mut self, message: CacheMsg, _: &mut Context<CacheMsg>) -> Done {
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
//! | to write an actor | [`Actor`], [`Context`] |
//! | to start and stop the whole | [`System`], [`Dispatcher`] |
//! | to send and to ask | [`ActorRef`], [`Ask`], [`ReplyTo`] |
//! | to route: which router, when, what it costs | [`routing`], [the guide](guide::routers) |
//! | to ask several actors one question | [`ScatterGatherFirstCompleted`](routing::ScatterGatherFirstCompleted), [`TailChopping`](routing::TailChopping) |
//! | routers in GoAkt's words | [`goakt`], [the guide](guide::goakt) |
//! | an actor for each key, and services made of groups | [`topology`], [the guide](guide::topology) |
//! | pools whose size follows their load | [`Resizer`](routing::Resizer), [the guide](guide::resizing) |
//! | what happens when an actor fails | [`Strategy`], [`Failure`], [`Backoff`] |
//! | bounded mailboxes, and those in which urgent messages overtake | [`Mailbox`], [`Full`] |
//! | to find actors by their paths | [`SystemRef::actor_at`], [`Selection`] |
//! | to receive outside actors | [`Inbox`] |
//! | timers and time in tests | [`Context::after`], [`ManualClock`] |
//! | timers with names, a receive timeout | [`Context::timers`], [`Context::set_receive_timeout`] |
//! | to put messages aside, to change behaviour | [`Context::stash`], [`Behaviors`] |
//! | code that runs later, outside actors | [`SystemRef::scheduler`] |
//! | to test actors | `testkit` (feature `testkit`) |
//! | to check what you share beside messages, in all orders of threads | [the guide](guide::models) |
//! | sockets | `net` (feature `net`, on by default) |
//! | to end a service in phases, by a signal | [`shutdown`] |
//! | to tell whoever listens | [`Listeners`] |
//! | a future's result as a message | [`Context::pipe_to_self`] |
//! | settings from outside the code | [`Deployment`], `config` (feature `config`) |
//! | to hear of what happens | [`EventStream`] |
//! | where every message went | [`Ledger`], [`DeadLetters`] |
//! | how it all goes together | [`guide`] |
//!
//! # Guarantees
//!
//! A message is handled at most once. Messages of one sender (a thread, or an actor wherever it runs) to one actor are
//! handled in the order sent, unless the actor's [mailbox sorts](Mailbox#order) or the actor itself
//! [puts messages aside](Context::stash). The engine keeps these invariants; comments in the source cite them
//! by number, and `loom-tests` models them:
//!
//! 1. A delivery is in exactly one place: handled once, dead-lettered once, handed back once, dropped by a
//!    named policy once, skipped once because nobody wants it any more, or queued.
//! 2. Per sender and receiver, messages are handled in the order sent.
//! 3. At most one thread runs an actor at a time, and what it wrote in one turn is visible in the next.
//! 4. A message accepted by an open mailbox is handled without any further send, whichever worker sleeps.
//! 5. Immediate control acts before user messages not yet begun; positioned control keeps its place among them.
//! 6. After close, every push fails and returns its message; every message pushed before is drained.
//! 7. A sender that holds an old table of routees loses nothing, and no old table is freed while someone reads
//!    it.
//! 8. A mailbox's length never goes below zero nor counts a message twice; at quiescence it is exact.
//! 9. An ask completes exactly once; its slot, its timer and its waker are gone afterwards.
//! 10. A routee of a balancing pool never sleeps while the shared queue holds a message that it may take.
//! 11. Idle workers sleep; a job submitted while the last one falls asleep wakes one.
//! 12. Shutdown ends every thread and balances the ledger to 0.
//!
//! # How the source is laid out
//!
//! From the ground up, each resting on those before it: `sync` (the only door to atomics and threads), `payload` (what a
//! panic leaves behind), `grace` and `striped`, `mailbox`, `scheduler`, `dispatch`; then the core, whose parts know each
//! other: `actor`, `actor_ref`, `supervision`, `time`, `ledger`, `deployment`, `event_stream`, `error`; then what is made
//! of it: `routing`, `topology`, `net`, `pattern`, `shutdown`, `config`, `testkit`. The core names these only to hand out their builders
//! and to keep their state for a system; and in `error`, since the errors of spawning and of building hold what is wrong
//! with a router, a backoff, or the phases of the shutdown.
//!
//! What a function does may depend on its thread, too, by thread-locals, which `sync::per_thread` declares. Some are
//! caches; some say who the thread is (a worker, a reader, a task of the shutdown, the one with this number) or hold what
//! it is to run next. The others say what is under way on it:
//!
//! | thread-local | says | so that |
//! |---|---|---|
//! | `HOPS` in `routing/reference.rs` | how many routers the message has gone through that is being sent | routers in a circle end as an error |
//! | `LATEST` in `ledger.rs` | the books used last, and the thread's row in them | counting needs no search; a late reply is counted there |
//! | `TELLING` in `actor_ref/dead_letters.rs` | that subscribers are being told of a dead letter | those that come of that are counted and not told, or there were no end |
//! | `UNREAD` in `actor_ref/dead_letters.rs` | that what is dropped has been read by nobody | its reply ports tell *failed* from *ignored* |
//! | `KEEPS_OTHERS` in `dispatch/mod.rs` | that others wait for what runs, a timer's or a router's change | it is not let wait itself |
#![cfg_attr(not(pointsman_loom), deny(missing_docs))]
// In the mirrors shrunken sizes leave loops and comparisons empty, and in loom's internals are public through the hooks.
#![cfg_attr(
    any(pointsman_loom, pointsman_shuttle),
    allow(
        clippy::absurd_extreme_comparisons,
        clippy::len_without_is_empty,
        clippy::new_without_default,
        clippy::reversed_empty_ranges,
        clippy::unnecessary_literal_unwrap
    )
)]

// The derive names this crate by its own name; inside it that name must exist too.
extern crate self as pointsman;

// Internals are `pub` inside private modules, so that `loom_hooks` can show them to the models.
mod actor;
mod actor_ref;
#[cfg(feature = "config")]
pub mod config;
mod deployment;
mod dispatch;
mod error;
mod event_stream;
mod grace;
#[cfg(not(pointsman_loom))]
pub mod guide;
mod ledger;
#[cfg(pointsman_loom)]
pub mod loom_hooks;
mod mailbox;
#[cfg(pointsman_loom)]
pub mod model;
#[cfg(any(feature = "net", pointsman_loom))]
pub mod net;
mod pattern;
mod payload;
pub mod routing;
mod scheduler;
pub mod shutdown;
mod striped;
mod supervision;
mod sync;
#[cfg(feature = "testkit")]
pub mod testkit;
mod time;
pub mod topology;

pub use actor::{
    Actor, ActorBuilder, ActorIdentity, ActorNotFound, ActorPath, Address, Context, Delivered, Done, Full,
    IntoActor, LookupError, Mailbox, MailboxChoice, MailboxFault, MailboxRequirement, NamedTimers, PathError,
    PathFault, Resolution, SelectError, Selection, SkippingBuilder, System, SystemBuilder, SystemRef,
    Terminated, TimerKey, TimerName, WatchError,
};
pub use actor_ref::{
    Accepted, ActorRef, Answerable, Answered, AnyDeadLetter, AnyRef, Ask, AskError, AskOrBack, AskTarget,
    Asker, Attempt, AttemptEnd, AttemptFailure, Call, DeadLetter, DeadLetterLog, DeadLetterReason,
    DeadLetters, Dropped, Expiring, LateReply, Load, Pending, Recipient, ReplyCounts, ReplyTo, Request,
    SinkTaken, StatusFailure, SuppressedDeadLetter, Undelivered, Unhandled, Watchable, WrongType,
};
pub use deployment::{Deployment, PatternError};
pub use dispatch::{Blocking, CallingThread, Dispatcher, Kind as DispatcherKind, Pinned, WorkStealing};
pub use error::{
    AliasFault, BuildError, NameError, NameFault, ReceiveTimeoutError, ScheduleError, SendError,
    ShutdownError, SpawnError, StashError,
};
pub use event_stream::{EventGroup, EventStream, Members, Subscription};
pub use ledger::Ledger;
pub use pattern::{
    Backoff, BackoffError, BackoffSupervisor, Behavior, Behaviors, Handling, Inbox, InboxError, Listeners,
    Listening, PipeError,
};
pub use routing::{Router, goakt};
pub use scheduler::StartError;
pub use supervision::{Directive, Failure, FailureKind, Restart, Strategy};
pub use time::{Cancellable, Clock, ManualClock, OnAdvance, Scheduler, SystemClock};

#[cfg(feature = "macros")]
pub use pointsman_macros::Message;

/// The program in the README is one that compiles and runs.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// What most programs use.
pub mod prelude {
    #[cfg(feature = "macros")]
    pub use crate::Message;
    pub use crate::{
        Actor, ActorRef, AnyRef, Ask, AskError, Asker, Call, Context, Directive, Dispatcher, Done, Failure,
        Full, Mailbox, ReplyTo, Request, Restart, Router, SendError, SpawnError, Strategy, System, SystemRef,
        Terminated,
    };
}
