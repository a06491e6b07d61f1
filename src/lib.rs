//! Pointsman.
#![cfg_attr(not(pointsman_loom), deny(missing_docs))]
// In the mirror internals are public through the hooks, and shrunken sizes leave loops and comparisons empty.
#![cfg_attr(
    pointsman_loom,
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
mod dispatch;
mod error;
mod grace;
mod ledger;
#[cfg(pointsman_loom)]
pub mod loom_hooks;
mod mailbox;
#[cfg(any(feature = "net", pointsman_loom))]
pub mod net;
pub mod routing;
mod scheduler;
mod striped;
mod supervision;
mod sync;
mod time;

pub use actor::{
    Actor, ActorBuilder, ActorPath, Context, Done, Full, IntoActor, Mailbox, System, SystemBuilder,
    SystemRef, Terminated, TimerKey,
};
pub use actor_ref::{
    Accepted, ActorRef, AnyRef, Ask, AskError, Asker, Call, DeadLetter, DeadLetterReason, DeadLetters,
    LateReply, Load, Pending, Recipient, ReplySink, ReplyTo, Request, Subscription, WrongType,
};
pub use dispatch::Dispatcher;
pub use error::{BuildError, NameError, NameFault, SendError, ShutdownError, SpawnError};
pub use ledger::Ledger;
pub use routing::Router;
pub use scheduler::StartError;
pub use supervision::{Directive, Failure, FailureKind, Restart, Strategy};
pub use time::{Clock, ManualClock, OnAdvance, SystemClock};

/// What most programs use.
pub mod prelude {
    pub use crate::{
        Actor, ActorRef, AnyRef, Ask, AskError, Asker, Call, Context, Directive, Dispatcher, Done, Failure,
        Full, Mailbox, ReplyTo, Request, Restart, Router, Strategy, System, SystemRef, Terminated,
    };
}
