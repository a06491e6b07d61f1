//! Marks and sinks for dead letters of a single type of message.

use crate::core::dead_letter::DeadLetter;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{HashMap, Mutex, lock};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::{Guarded, quietly};
use std::any::Any;
use std::any::TypeId;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc as StdArc;

/// The error of a second sink for the same type of message.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterSinkExists {
    /// The name of the type.
    pub message_type: &'static str,
}

impl fmt::Display for DeadLetterSinkExists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "undelivered messages of type {} have a sink already: drop its subscription first, or pass them on from there",
            self.message_type
        )
    }
}

impl std::error::Error for DeadLetterSinkExists {}

debug_by_display! { DeadLetterSinkExists }

/// The marks and sinks of a system, by types of messages.
#[derive(Default)]
pub(crate) struct Rules {
    /// The number of rules. Without any rule a dead letter costs one load.
    count: AtomicUsize,
    by_type: Mutex<ByType>,
}

#[derive(Default)]
pub(crate) struct ByType {
    marks: HashMap<TypeId, Guarded<StdArc<dyn Any + Send + Sync>>>,
    sinks: HashMap<TypeId, Guarded<StdArc<dyn Any + Send + Sync>>>,
}

/// Selects the messages of a single type that are suppressed.
pub(crate) struct Mark<M>(pub(crate) Box<dyn Fn(&M) -> bool + Send + Sync>);

/// Takes the messages of a single type.
pub(crate) struct Sink<M> {
    pub(crate) close: Box<dyn Fn(&mut M) + Send + Sync>,
    pub(crate) take: Box<dyn Fn(M, DeadLetter) + Send + Sync>,
}

impl<M> Sink<M> {
    /// Closes the message's reply port, and hands the message over. User code that panics loses the message, which is
    /// counted already.
    pub(crate) fn take(&self, mut message: M, letter: DeadLetter) {
        quietly(move || {
            (self.close)(&mut message);
            (self.take)(message, letter);
        });
    }
}

impl Rules {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed; a letter at the moment when a rule is added or removed may be treated by it or not.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns whether this message's letter is suppressed. Calls user code.
    pub(crate) fn is_suppressed<M: 'static>(&self, message: &M) -> bool {
        if self.is_empty() {
            return false;
        }
        let mark = lock(&self.by_type).marks.get(&TypeId::of::<M>()).map(|mark| StdArc::clone(mark));
        let Some(mark) = mark.and_then(|mark| mark.downcast::<Mark<M>>().ok()) else { return false };
        let mut is_suppressed = false;
        quietly(|| is_suppressed = (mark.0)(message));
        crate::util::panic::drop_guarded(mark);
        is_suppressed
    }

    /// The sink for messages of this type.
    pub(crate) fn sink<M: 'static>(&self) -> Option<StdArc<Sink<M>>> {
        if self.is_empty() {
            return None;
        }
        let sink = lock(&self.by_type).sinks.get(&TypeId::of::<M>()).map(|sink| StdArc::clone(sink));
        sink.and_then(|sink| sink.downcast().ok())
    }

    pub(crate) fn mark<M: 'static>(&self, mark: Mark<M>) {
        let mark = Guarded::new(StdArc::new(mark) as StdArc<dyn Any + Send + Sync>);
        let replaced = lock(&self.by_type).marks.insert(TypeId::of::<M>(), mark);
        if replaced.is_none() {
            // Ordering: Relaxed; see `is_empty`.
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        crate::util::panic::drop_guarded(replaced);
    }

    pub(crate) fn add_sink<M: 'static>(&self, sink: StdArc<Sink<M>>) -> Result<(), DeadLetterSinkExists> {
        let refused = match lock(&self.by_type).sinks.entry(TypeId::of::<M>()) {
            Entry::Occupied(_) => Some(sink),
            Entry::Vacant(place) => {
                place.insert(Guarded::new(sink));
                // Ordering: Relaxed; see `is_empty`.
                self.count.fetch_add(1, Ordering::Relaxed);
                None
            }
        };
        match refused {
            None => Ok(()),
            Some(refused) => {
                crate::util::panic::drop_guarded(refused);
                Err(DeadLetterSinkExists { message_type: std::any::type_name::<M>() })
            }
        }
    }

    pub(crate) fn remove_sink(&self, message_type: TypeId) {
        let removed = lock(&self.by_type).sinks.remove(&message_type);
        if removed.is_some() {
            // Ordering: Relaxed; see `is_empty`.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        crate::util::panic::drop_guarded(removed);
    }
}
