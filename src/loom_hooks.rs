//! Internals for the models in `loom-tests`; exists only under `--cfg pointsman_loom`.

pub use crate::actor_ref::{ask, promise, reply, reply_counts, slot_memory};
pub use crate::dispatch::balancing;
pub use crate::dispatch::blocking::{BlockingPool, Settings as BlockingSettings};
pub use crate::dispatch::on_demand::OnDemand;
pub use crate::dispatch::pinned::PinnedThreads;
pub use crate::grace::{
    Domain, Garbage, Member, Published, Section, Standing, process_domain, rest_here, section, standing,
};
pub mod mailbox {
    pub use crate::mailbox::*;
}
pub use crate::ledger::Books;
pub use crate::net::readiness;
pub use crate::routing::resizer::trigger::Trigger as ResizeTrigger;
pub use crate::scheduler::current::{blocking, on_worker};
pub use crate::scheduler::error::JoinError;
pub use crate::scheduler::injector::Injector;
pub use crate::scheduler::task::{Ran, Task, TaskRef, Turn};
pub use crate::scheduler::worker::Worker;
pub use crate::scheduler::{Pool, Settings, TurnHooks};
pub use crate::striped::PerThread;
pub use crate::sync::explore::explore;
pub use crate::topology::table::Table as KeyTable;
pub mod sync {
    pub use crate::sync::{Arc, asymmetric_fence, atomic, cell, thread};
}

/// Runs actors on the threads of the model; so few messages per turn that a turn ends by it.
pub fn calling_dispatcher() -> crate::dispatch::Dispatcher {
    crate::dispatch::Dispatcher::calling_thread().throughput(2).into()
}

/// The child of this name.
pub fn child(parent: &crate::AnyRef, name: &str) -> Option<crate::AnyRef> {
    parent.core().children.get(name)
}

/// One look whether the system is quiet.
pub fn is_quiet(system: &crate::SystemRef) -> bool {
    system.core().look_for_quiet().is_ok()
}
