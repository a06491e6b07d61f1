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

pub(crate) mod dispatcher; // what the user says of the threads
pub(crate) mod running; // a dispatcher whose threads run
pub(crate) mod placement; // where one actor runs
pub mod blocking; // a growing pool of threads
pub mod pinned; // one thread for each actor
pub(crate) mod calling_thread; // the thread that wakes an actor
pub mod stepping; // the thread of a test
pub mod on_demand; // threads that end while they have no actors
pub(crate) mod threads; // threads that come and go
pub(crate) mod shared_queue; // one queue in front of several actors
pub(crate) mod mailbox_defaults; // what a dispatcher says of mailboxes
pub(crate) mod may_block; // whether the calling thread may wait
