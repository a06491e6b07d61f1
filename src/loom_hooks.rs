//! Internals for the models in `loom-tests`; exists only in the copy of the source that their build script widens.

pub use crate::ask::ask_clock::AskClock;
pub use crate::ask::{ask, reply, slot, slot_pool};
pub use crate::core::ask_counts;
pub use crate::dispatch::blocking::{BlockingPool, Settings as BlockingSettings};
pub use crate::dispatch::on_demand::OnDemand;
pub use crate::dispatch::pinned::PinnedThreads;
pub use crate::dispatch::{block_queue, shared_queue};
pub use crate::util::reclaim::{
    Domain, Member, OnlineReader, Published, RetiredValue, Section, go_offline_here, go_online,
    process_domain, section,
};

pub mod mailbox {
    pub use crate::mailbox::backpressure::{NotFullNotify, WakerPlace};
    pub use crate::mailbox::mailbox::*;
    pub use crate::mailbox::system_queue::Position;
    pub use crate::mailbox::{bounded, kind, priority};
}
pub use crate::core::elsewhere::EndElsewhere;
pub use crate::core::ledger::Counters;
pub use crate::group::key_table::GroupKeyTable as KeyTable;
pub use crate::measure::buckets;
pub use crate::measure::watch_pause::WatchPauses;
pub use crate::net::readiness;
pub use crate::remote::{
    batch, deployed_table, deployment_state, deployments, early_messages, far_state, far_table, outbox,
    ports, stand_ins,
};
pub use crate::routing::resizer::trigger::Trigger as ResizeTrigger;
pub use crate::scheduler::current::{blocking, on_worker};
pub use crate::scheduler::error::JoinError;
pub use crate::scheduler::event_wait::EventSource;
pub use crate::scheduler::injector::Injector;
pub use crate::scheduler::pool::{Pool, Settings, TurnHooks};
pub use crate::scheduler::task::{Ran, Task, TaskRef, Turn};
pub use crate::scheduler::worker::Worker;
pub use crate::sync::explore::explore;
pub use crate::time::alarm::{AlarmKey, Alarms};
pub use crate::util::per_thread::PerThread;
pub use crate::util::slabs::{Slabs, ThreadPlaces};
pub mod sync {
    pub use crate::sync::{Arc, asymmetric_fence, atomic, cell, thread};
}

/// Runs actors on the threads of the model; so few messages per turn that a turn ends by it.
pub fn calling_dispatcher() -> crate::dispatch::dispatcher::Dispatcher {
    crate::dispatch::dispatcher::Dispatcher::calling_thread().throughput(2)
}

/// The child of this name.
pub fn child(
    parent: &crate::core::any_actor_ref::AnyActorRef,
    name: &str,
) -> Option<crate::core::any_actor_ref::AnyActorRef> {
    parent.core().children.get(name)
}

/// One look whether the system is quiet.
pub fn is_quiet(system: &crate::core::system::SystemRef) -> bool {
    system.core().look_for_quiet().is_ok()
}
