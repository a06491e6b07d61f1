//! Dispatchers say on which threads actors run: their recipes, and their running form.
//!
//! * `work_stealing`: few threads that never wait, one per core
//!   ([`crate::scheduler::pool`]).
//! * `blocking`: a growing pool of threads for handlers that block.
//! * `pinned`: one thread for each actor.
//! * `calling_thread`: no thread at all; the thread that wakes an actor runs it; for
//!   tests.
//! * [`stepping`]: in the place of all these, the thread of a test.
//!
//! `OnDemand` lets the threads of the first two end while they have no actors.
//!
//! The same turn function runs everywhere; only its caller differs. An actor's cell keeps a `Home`, which says where
//! the actor's token goes. A shared queue in front of several actors (`balancing`) is no home of its own: the actors
//! run on their own dispatcher, and take their messages from the queue.
//!
//! Two files serve several of these:
//! * `threads.rs` joins threads that come and go;
//! * `mailbox_defaults.rs` has the rules of a dispatcher for the mailboxes of its actors.

pub(crate) mod dispatcher; // recipes for threads
pub(crate) mod running; // a dispatcher whose threads run
pub(crate) mod placement; // where a single actor runs
pub(crate) mod blocking; // a growing pool of threads
pub(crate) mod pinned; // one thread for each actor
pub(crate) mod calling_thread; // actors run on the thread that wakes them
pub(crate) mod stepping; // actors run on the thread of a test
pub(crate) mod on_demand; // threads that end while they have no actors
pub(crate) mod threads; // joins threads that come and go
pub(crate) mod shared_queue; // one queue in front of several actors
pub(crate) mod mailbox_defaults; // rules of a dispatcher for mailboxes
pub(crate) mod may_block; // whether the calling thread may wait
