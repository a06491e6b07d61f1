//! Dispatchers say on which threads actors run.
//!
//! A [`Dispatcher`] describes the threads; the builder of the system names it, and an actor, a router or a group chooses
//! it by that name.

// In the place of all kinds, `stepping.rs` runs actors on the thread of a test. `on_demand.rs` lets the threads of a
// work-stealing or blocking dispatcher end while they have no actors.
//
// The same turn function runs everywhere; only its caller differs. An actor's cell keeps a `Placement`, which says where
// the actor's token goes. A shared queue in front of several actors (`shared_queue.rs`) is no placement: the actors run
// on their own dispatcher, and take their messages from the queue.
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
pub(crate) mod block_queue; // messages between several pushers and several takers
pub(crate) mod may_block; // whether the calling thread may wait

pub use crate::dispatch::dispatcher::{Dispatcher, DispatcherKind};
pub use crate::scheduler::error::StartError;
