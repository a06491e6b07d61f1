//! Actors: state behind a mailbox, run one message at a time.

pub(crate) mod actor; // the Actor trait
pub(crate) mod context; // the access of a running actor to itself and the system
pub(crate) mod recipe; // makes an actor's state
pub(crate) mod cell; // the whole memory of an actor
pub(crate) mod private; // the data that only its turns touch
pub(crate) mod turn; // one turn
pub(crate) mod lifecycle; // creation, failure, restart, end
pub(crate) mod supervise; // a parent judges a failure
pub(crate) mod child_hooks; // hooks of the engine's own parents
#[cfg(not(pointsman_loom))]
pub(crate) mod forward_hooks; // the hooks of an actor that wraps another one
pub(crate) mod watch; // death watch
pub(crate) mod passivate; // an end that leaves no message behind
pub(crate) mod leave_router; // the leave of a routee
pub(crate) mod hold; // messages wait for a future
pub(crate) mod poll_waker; // the waker of a future that an actor polls
pub(crate) mod held_futures; // the same, as data
pub(crate) mod own_tasks; // futures and streams that the turns poll
pub(crate) mod task_table; // the same, as data
pub(crate) mod attach; // streams whose items are messages
pub(crate) mod send_when_room; // sends that wait for room
pub(crate) mod stash; // messages put aside
pub(crate) mod stash_buffer; // the same, as data
pub(crate) mod timers; // timers of an actor
pub(crate) mod timer_table; // the same, as data
pub(crate) mod receive_timeout;
pub(crate) mod schedule_error; // errors of timers
pub(crate) mod unhandled; // messages that an actor does not handle
pub(crate) mod skip_unwanted; // messages whose asker has gone, or whose deadline is over
pub(crate) mod shared_queue_turn; // the turn of a routee of a balancing pool
pub(crate) mod capacity; // the capacity of a mailbox, changed at run time
pub(crate) mod ask_or_back; // asks of an actor that hand the request back
pub(crate) mod builder; // describes an actor
pub(crate) mod mailbox_choice; // the choice of its mailbox
pub(crate) mod spawn; // creates it
pub(crate) mod spawn_started; // creates it, and waits until it has started
pub(crate) mod guardians; // the top of the tree
pub(crate) mod system_end; // the end of a system
pub(crate) mod stepping; // systems whose actors run on the thread of a test
#[cfg(any(feature = "testkit", pointsman_loom))]
pub(crate) mod quiescence; // whether nothing is left to do

pub use crate::actor::actor::{Actor, HandlerResult};
pub use crate::actor::attach::{StreamEvent, StreamKey};
pub use crate::actor::builder::ActorBuilder;
pub use crate::actor::context::Context;
pub use crate::actor::recipe::IntoActor;
pub use crate::actor::spawn_started::StartupError;
pub use crate::actor::stash::StashError;
pub use crate::actor::watch::WatchError;
pub use crate::core::actor_ref::{ActorRef, RecipientLoad};
pub use crate::core::any_actor_ref::{AnyActorRef, WrongType};
pub use crate::core::control::Terminated;
pub use crate::core::deploy_fault::DeployFault;
pub use crate::core::into_message::IntoMessage;
pub use crate::core::recipient::Recipient;
pub use crate::core::send_future::SendFuture;
