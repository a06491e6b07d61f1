//! Actors: state behind a mailbox, run one message at a time.
//!
//! In reading order: `mod.rs` the [`Actor`] trait; `cell.rs` what an actor is in memory; `turn.rs` what a
//! worker does with it; `life.rs` how it begins, fails, restarts and ends; `context.rs` what a running actor
//! sees, with `own_timers.rs` and `watch.rs`; `builder.rs`, `mailbox_kind.rs`, `spawn.rs`, `children.rs`, `path.rs`
//! how actors come to be; `address.rs`, `lookup.rs`, `selection.rs`, `identify.rs` how they are found; `empty.rs`,
//! `temp.rs`, `graceful_stop.rs`, `inbox.rs` what refers to nobody or serves code outside; `system.rs` the whole, `guardians.rs` the top of its tree, `end.rs` its end.

mod address;
mod builder;
mod cell;
mod children;
mod context;
mod empty;
mod end;
mod graceful_stop;
mod guardians;
mod identify;
mod inbox;
mod life;
mod lookup;
mod mailbox_kind;
mod own_timers;
mod path;
mod path_error;
mod selection;
mod spawn;
mod system;
mod temp;
mod turn;
mod watch;

pub use address::Address;
pub use builder::{ActorBuilder, IntoActor};
pub use cell::{ActorGate, Control, Core, FullPolicy, Header, Kind, Local, VTable};
pub(crate) use cell::{gate, schedule, send_system};
pub use context::Context;
pub use identify::{ActorIdentity, ActorNotFound, Resolution};
pub use inbox::{Inbox, InboxError};
pub use lookup::LookupError;
pub(crate) use mailbox_kind::MailboxKind;
pub use mailbox_kind::{Full, Mailbox};
pub use own_timers::TimerKey;
pub use path::ActorPath;
pub(crate) use path::check_name;
pub use path_error::{PathError, PathFault};
pub use selection::{Delivered, SelectError, Selection};
pub(crate) use spawn::{Plan, spawn_cell, spawn_held};
pub use system::SystemCore;
pub use system::{System, SystemBuilder, SystemRef};
pub(crate) use turn::{ByContext, drop_guarded};

use crate::actor_ref::AnyRef;
use crate::supervision::{Failure, Strategy};

/// What a handler or hook returns: `Err` fails the actor, and its parent decides what happens.
pub type Done = Result<(), Failure>;

/// State that handles messages of one type, one at a time.
///
/// Only [`receive`](Self::receive) must be written. The hooks have Akka's defaults.
///
/// ```
/// use pointsman::prelude::*;
///
/// struct Counter {
///     count: u64,
/// }
///
/// struct Read;
/// impl Request for Read {
///     type Reply = u64;
/// }
///
/// enum CounterMsg {
///     Add(u64),
///     Read(Call<Read>),
/// }
///
/// impl From<Call<Read>> for CounterMsg {
///     fn from(call: Call<Read>) -> Self {
///         CounterMsg::Read(call)
///     }
/// }
///
/// impl Actor for Counter {
///     type Message = CounterMsg;
///     fn receive(&mut self, message: CounterMsg, _: &mut Context<CounterMsg>) -> Done {
///         match message {
///             CounterMsg::Add(more) => self.count += more,
///             CounterMsg::Read(call) => call.answer(|Read| self.count),
///         }
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("sums").build()?;
/// let counter = system.actor("counter").spawn(|| Counter { count: 0 })?;
/// counter.tell(CounterMsg::Add(40));
/// counter.tell(CounterMsg::Add(2));
/// assert_eq!(counter.ask(Read).wait()?, 42);
/// # Ok(())
/// # }
/// ```
///
/// # Delivery
///
/// Messages of one sender are handled in the order in which it sent them. A message is handled at most
/// once; one that is not handled becomes a dead letter, counted in the [`Ledger`](crate::Ledger).
pub trait Actor: Send + Sized + 'static {
    /// What it handles. Nothing is demanded of it but that it can go to another thread.
    type Message: Send + 'static;

    /// Handles one message.
    ///
    /// # Errors
    ///
    /// An error, like a panic, fails the actor: see [`Strategy`]. The message is not handled again.
    fn receive(&mut self, message: Self::Message, ctx: &mut Context<Self::Message>) -> Done;

    /// Runs before the first message of a new actor.
    ///
    /// # Errors
    ///
    /// An error is a [`FailureKind::Initialization`](crate::FailureKind), which stops the actor by default.
    fn started(&mut self, ctx: &mut Context<Self::Message>) -> Done {
        let _ = ctx;
        Ok(())
    }

    /// Runs when the actor has stopped: no message is handled after it. Its children have ended already.
    fn stopped(&mut self, ctx: &mut Context<Self::Message>) {
        let _ = ctx;
    }

    /// Runs on the old state before a restart. By default it stops all children and calls
    /// [`stopped`](Self::stopped); the new state is made once the children have ended. Children that an
    /// overriding hook keeps are restarted with their parent.
    ///
    /// # Errors
    ///
    /// An error or panic here changes nothing: the restart goes on.
    fn restarting(&mut self, failure: &Failure, ctx: &mut Context<Self::Message>) -> Done {
        let _ = failure;
        ctx.stop_children();
        self.stopped(ctx);
        Ok(())
    }

    /// Runs on the new state after a restart; by default it calls [`started`](Self::started).
    ///
    /// # Errors
    ///
    /// An error is a failure of initialization, as in [`started`](Self::started).
    fn restarted(&mut self, failure: &Failure, ctx: &mut Context<Self::Message>) -> Done {
        let _ = failure;
        self.started(ctx)
    }

    /// Runs when an actor that this one [watches](Context::watch) has ended. By default that is a failure
    /// (a death pact), which stops this actor too.
    ///
    /// # Errors
    ///
    /// As in [`receive`](Self::receive).
    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Self::Message>) -> Done {
        let _ = ctx;
        Err(Failure::death_pact(terminated.actor.path().as_str()))
    }

    /// How this actor judges the failures of its children. Asked at each failure.
    fn supervision(&self) -> Strategy {
        Strategy::default()
    }
}

/// The notice that a watched actor has ended for good (a restart is no end).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Terminated {
    /// Who has ended.
    pub actor: AnyRef,
}
