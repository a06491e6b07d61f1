//! Takes tasks from threads that are not workers of the pool.
//!
//! The injector is an intrusive Treiber stack, linked through the tasks themselves and emptied as a whole:
//! 1. A push allocates nothing and is one compare-exchange.
//! 2. The only removal is "take everything", so the ABA problem of single pops does not exist.
//! 3. A task is in at most one queue ([`super::task`], rule 1), so one link per task is enough. The thread that took
//!    the list reads the link of a task before it passes that task on.
//! 4. The taker reverses the list: tasks leave in the order in which they came.

use crate::scheduler::task::{Task, TaskRef};
use crate::sync::atomic::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};

/// Tasks pushed from outside and not yet taken.
#[derive(Debug)]
pub(crate) struct Injector {
    newest: AtomicPtr<Task>,
}

/// Tasks taken from an injector, oldest first.
#[derive(Debug)]
pub(crate) struct Batch {
    oldest: Option<NonNull<Task>>,
}

impl Injector {
    pub(crate) fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Adds a task; the caller notifies the pool afterwards. Returns whether other tasks already waited.
    #[inline]
    pub(crate) fn push(&self, task: TaskRef) -> bool {
        let task = task.into_raw();
        // Ordering: Relaxed; only compared and stored, never followed, before the exchange confirms it.
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the token came with `task`, and the list owns it only once the exchange succeeds.
            let link = unsafe { TaskRef::link(task) };
            // Ordering: Relaxed; published by the exchange below.
            link.store(newest, Ordering::Relaxed);
            // Ordering: Release; pairs with the Acquire swap of `newest` in `take`. The taker sees the
            // link and all that the pusher did to the task, and, the later pushes being
            // read-modify-writes, the same of every older task in the list.
            match self.newest.compare_exchange_weak(
                newest,
                task.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return !newest.is_null(),
                Err(seen) => newest = seen,
            }
        }
    }

    /// Returns whether the injector is empty. After a `SeqCst` fence this sees every push that came before an earlier
    /// fence ([`super::sleep`]).
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed; the caller's fence orders it.
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// Takes everything.
    #[inline]
    pub(crate) fn take(&self) -> Batch {
        // An empty injector is the usual case; the look first spares that case the read-modify-write.
        if self.is_empty() {
            return Batch { oldest: None };
        }
        // Ordering: Acquire; pairs with the Release exchange of `newest` in `push`. We see the links.
        let newest = self.newest.swap(ptr::null_mut(), Ordering::Acquire);
        let mut rest = NonNull::new(newest);
        let mut oldest: Option<NonNull<Task>> = None;
        while let Some(task) = rest {
            // SAFETY: the swap gave us the tokens of the whole list.
            rest = unsafe { TaskRef::next(task) };
            // SAFETY: as above.
            let link = unsafe { TaskRef::link(task) };
            // Ordering: Relaxed; the list is ours alone.
            link.store(oldest.map_or(ptr::null_mut(), NonNull::as_ptr), Ordering::Relaxed);
            oldest = Some(task);
        }
        Batch { oldest }
    }
}

impl Iterator for Batch {
    type Item = TaskRef;

    fn next(&mut self) -> Option<TaskRef> {
        let task = self.oldest?;
        // The link is read before the task is handed on: its next holder may overwrite or free it.
        // SAFETY: the batch holds the tokens of all its tasks.
        self.oldest = unsafe { TaskRef::next(task) };
        // SAFETY: the token of this task leaves the batch with this value.
        Some(unsafe { TaskRef::new(task) })
    }
}
