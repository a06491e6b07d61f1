//! Where actors run: what a dispatcher is made of, and its running form.
//!
//! * [`work_stealing`](Dispatcher::work_stealing): few threads that never wait, one per core
//!   ([`crate::scheduler::pool`]).
//! * [`blocking`](Dispatcher::blocking): a growing pool of threads for handlers that block.
//! * [`pinned`](Dispatcher::pinned): one thread for each actor.
//! * [`calling_thread`](Dispatcher::calling_thread): no thread at all, whoever wakes an actor runs it; for
//!   tests.
//! * [`stepping`]: in the place of all these, the thread of a test.
//!
//! [`OnDemand`] lets the threads of the first two end while they have no actors.
//!
//! The same turn function runs everywhere; only who calls it differs. An actor's cell keeps a [`Home`],
//! which says where its token goes. A shared queue in front of several actors ([`balancing`]) is no home of its
//! own: they run where they are told, and find their messages in it.
//!
//! What several of these need: `threads.rs` joins threads that come and go, and `mailbox_defaults.rs` is what a dispatcher says
//! about its actors' mailboxes.

pub mod blocking;
pub(crate) mod calling_thread;
pub(crate) mod dispatcher;
pub(crate) mod mailbox_defaults;
pub(crate) mod may_block;
pub mod on_demand;
pub mod pinned;
pub(crate) mod placement;
pub(crate) mod running;
pub(crate) mod shared_queue;
pub mod stepping;
pub(crate) mod threads;
