//! Model-checking of code that uses this crate's references and actors; exists only under `--cfg pointsman_loom`.
//!
//! Under that cfg the whole engine runs on [loom](https://docs.rs/loom). The guide is `docs/models.md`;
//! `loom-tests/user` in the repository is a package that follows it.
//!
//! ```ignore
//! use pointsman::model;
//! use pointsman::prelude::*;
//!
//! struct Sum(u64);
//!
//! impl Actor for Sum {
//!     type Message = u64;
//!     fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
//!         self.0 += number;
//!         Ok(())
//!     }
//! }
//!
//! model::check("two senders", 2, 100, || {
//!     let system = model::system("sums").build().expect("the settings are sound");
//!     let sum = system.spawn(|| Sum(0)).expect("the name is free");
//!     let other = sum.clone();
//!     let sender = loom::thread::spawn(move || other.tell(1u64));
//!     sum.tell(2u64);
//!     sender.join().expect("no panic");
//!     let ledger = system.shutdown(std::time::Duration::MAX).expect("the thread that stops an actor runs it");
//!     assert_eq!((ledger.handled, ledger.balance()), (2, 0));
//! });
//! ```

use crate::dispatch::dispatcher::Dispatcher;
use crate::sync::explore::{explore, panics};
use crate::system::{System, SystemBuilder};
use crate::time::clock::ManualClock;

/// Explores each execution of `run` that has at most `bound` preemptions, or of more if `LOOM_MAX_PREEMPTIONS` says so,
/// and prints how many there were.
///
/// `floor` is the smallest expected number of executions: a model that explores fewer than it did when it was written
/// no longer has the race that it is about.
///
/// # Panics
///
/// A model fails in these cases:
///
/// * `run` panics, or loom finds a deadlock, a leak or a race.
/// * Any code panics within an execution, also where the engine catches it, as in the destructor of a message: loom
///   reports a race by a panic at the access. Models in which an actor is to fail return [`Err`](crate::Failure) from
///   its handler.
/// * There were fewer executions than `floor`, unless `LOOM_MAX_PREEMPTIONS` is more than `bound`.
/// * `LOOM_MAX_DURATION` or `LOOM_MAX_PERMUTATIONS` is set: with those loom passes models that it has not finished.
///
/// When an execution has failed, the last lines on standard error say `model NAME FAILED in execution N`, with the first
/// three panics of that execution in their order, also where the process ends by SIGABRT: a destructor that panics
/// behind the first panic aborts it, and the test harness prints nothing more.
pub fn check(name: &str, bound: usize, floor: usize, run: impl Fn() + Send + Sync + 'static) {
    let before = panics();
    explore(name, bound, floor, move || {
        run();
        assert_eq!(panics(), before, "a panic in this execution was caught: its message stands above");
    });
}

/// Describes a system for models: it has no threads of its own, and its time stands still.
///
/// Its default dispatcher is the [calling thread](Dispatcher::calling_thread): the threads of the model run the actors,
/// on the thread that comes first. Loom explores at most four threads beside the main thread, and each costs, so no
/// thread only waits. A turn ends after two messages.
///
/// The clock stands at zero, so that an ask's limit is never reached; for models in which time passes give the builder
/// a [`ManualClock`] that you keep. Senders that wait for room ([`OverflowPolicy::Wait`](crate::OverflowPolicy::Wait))
/// go by it, too. `shutdown` goes by the machine's clock and needs [`Duration::MAX`](std::time::Duration::MAX), or an
/// execution does not repeat itself. Actors that name a dispatcher need it declared here, best as
/// `Dispatcher::calling_thread()` too.
pub fn system(name: &str) -> SystemBuilder {
    System::builder(name)
        .clock(ManualClock::new())
        .dispatcher("default", Dispatcher::calling_thread().throughput(2))
}
