//! Asking: a request, the slot for its answer, and the asker that waits.

pub(crate) mod asking; // ActorRef::ask and its like
pub(crate) mod reply; // requests, calls and reply ports
pub(crate) mod slot; // the one-shot slot between a port and an asker
pub(crate) mod slot_pool; // memory for slots
pub(crate) mod ask; // the wait of an asker
pub(crate) mod ask_clock; // the clock of an ask
pub(crate) mod spin; // the time for which an asker stays awake
pub(crate) mod yield_guard; // whether it may yield meanwhile
pub(crate) mod error; // the errors of an ask
pub(crate) mod call_error; // one result in place of nested ones
#[cfg(feature = "tower")]
pub(crate) mod service; // references as services of tower
pub(crate) mod ask_or_back; // asks that hand the request back
pub(crate) mod ask_all; // asks of several recipients, with an answer of each
pub(crate) mod traced; // asks that name the replier
pub(crate) mod to_actor; // answers as messages
pub(crate) mod fork; // one question to several actors
#[cfg(feature = "remote")]
pub(crate) mod split; // ports that are split by clones of a request
pub(crate) mod expiring; // messages with a deadline
pub(crate) mod undelivered; // sinks that get undelivered messages

pub use crate::ask::ask::{Ask, Asker, PendingReply};
pub use crate::ask::ask_all::AskAll;
pub use crate::ask::ask_or_back::{AskFailedWith, AskOrBack};
pub use crate::ask::call_error::{CallError, FlatAsk, flatten};
pub use crate::ask::error::{AskError, AttemptEnd, NoReplyCause, RefusedBy};
pub use crate::ask::expiring::Expiring;
pub use crate::ask::fork::{Answerable, Attempt};
pub use crate::ask::reply::{Call, ReplyTo, Request, RequestTo};
#[cfg(feature = "tower")]
pub use crate::ask::service::ActorService;
pub use crate::core::ask_counts::ReplyCounts;
