//! Old tables: tables that a router has replaced and that may still be read. This file bounds their memory, and lets
//! changes wait while they take more.
//!
//! **Growth.** A table is freed when each thread that could be reading it has passed a quiescent state
//! (`util/reclaim.rs`). A single thread that does not, anywhere in the process, keeps all tables that were replaced
//! meanwhile, of all routers.
//!
//! **Bound.** Each router counts the bytes of its own old tables, so a router that is often changed keeps no other
//! router from changes. A router whose old tables take as much as they may changes nothing: the change waits on the
//! head's list, in the order in which changes were asked for, and is done when enough tables have been freed. Only the
//! head publishes, so nothing here is shared with senders.
//!
//! **End of the wait.** A thread that leaves a section frees nothing by itself, so the head looks again after a pause
//! that grows to [`PAUSE_MAX`], by the system's clock. A change that has waited as long as it may is refused. So a
//! thread that changes a router while it reads a table itself, as from a logic, waits for itself no longer than that.
//!
//! Changes of the head's own never wait: the end of a routee, which has no further end behind it, and the end of the
//! router.

use crate::actor::actor::HandlerResult;
use crate::actor::context::Context;
use crate::actor::turn::apply;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::RouterPlan;
use crate::routing::table_token::TableToken;
use crate::sync::lock;
use crate::util::reclaim;
use std::collections::VecDeque;
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::Duration;

/// The pauses between two looks: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// The old tables of a router that may not be freed yet.
#[derive(Debug, Default)]
pub(crate) struct OldTables {
    /// The table in use.
    current: Option<Weighed>,
    /// The tables before it, the oldest first. They are freed in this order.
    old: VecDeque<Weighed>,
    /// The bytes of `old`.
    bytes: usize,
}

/// A table with its size and a sign of its life.
#[derive(Debug)]
struct Weighed {
    token: StdWeak<TableToken>,
    bytes: usize,
}

impl OldTables {
    /// A table of so many bytes replaces the table in use; returns the token that it is to hold for as long as it
    /// lives.
    pub(crate) fn replace(&mut self, bytes: usize) -> StdArc<TableToken> {
        let token = StdArc::<TableToken>::default();
        let new = Weighed { token: StdArc::downgrade(&token), bytes };
        if let Some(former) = self.current.replace(new) {
            self.bytes += former.bytes;
            self.old.push_back(former);
        }
        token
    }

    /// The token of the table in use.
    pub(crate) fn current(&self) -> Option<StdArc<TableToken>> {
        self.current.as_ref()?.token.upgrade()
    }

    /// Returns how many old tables are not freed, if there is one and they take `bytes_max` or more.
    pub(crate) fn too_many(&mut self, bytes_max: usize) -> Option<usize> {
        while self.old.front().is_some_and(|oldest| oldest.token.strong_count() == 0) {
            self.bytes -= self.old.pop_front().map_or(0, |freed| freed.bytes);
        }
        (!self.old.is_empty() && self.bytes >= bytes_max).then_some(self.old.len())
    }
}

/// Changes that wait, in the order in which they were asked for.
pub(crate) struct WaitingChanges<M: Send + 'static> {
    /// Each change with the time until which it may wait.
    list: VecDeque<(Duration, Manage<M>)>,
    /// The pause before the next look; `None` if no look is due.
    pause: Option<Duration>,
}

impl<M: Send + 'static> Default for WaitingChanges<M> {
    fn default() -> Self {
        Self { list: VecDeque::new(), pause: None }
    }
}

impl<M: Send + 'static, L> RouterPlan<M, L> {
    /// Bounds the bytes of this router's old tables, 16 MiB by default.
    ///
    /// Each change of the routees leaves a table behind, which is freed when no thread can be reading it any more. A
    /// single thread that passes no quiescent state, anywhere in the process, keeps all tables:
    /// [`ManageError::OldTables`](crate::routing::ManageError::OldTables) lists the causes. While the tables of this
    /// router take as much as they may, its changes wait, in their order, [for a while](Self::change_within). Messages
    /// are routed meanwhile as before.
    ///
    /// The count has the table itself and the bytes of the logic's [index](RoutingLogic::prepared_bytes). One old table
    /// may be there in any case, however large; with 0 each change waits until the table before the last one is freed.
    pub fn old_tables_max(mut self, bytes: usize) -> Self {
        self.old_tables.bytes_max = bytes;
        self
    }

    /// Bounds the time that a change of this router may wait for old tables to be [freed](Self::old_tables_max), by the
    /// system's clock: 10 seconds by default. After that time the change is refused with
    /// [`ManageError::OldTables`](crate::routing::ManageError::OldTables), and the routees have not changed. With zero
    /// it is refused at once.
    ///
    /// A request for the [routees](crate::routing::Router::routees) waits behind the changes that were asked for before
    /// it, and is never refused. A resizer's change is refused at once, with a warning: the resizer is asked again
    /// anyway. A router that [drains](crate::routing::Router::drain) or stops refuses the changes that wait, with
    /// [`ManageError::Stopped`](crate::routing::ManageError::Stopped).
    pub fn change_within(mut self, limit: Duration) -> Self {
        self.old_tables.within = limit;
        self
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    /// Returns how many old tables keep the routees from being changed, after all that can be freed are freed; `None`
    /// if they may be changed.
    pub(crate) fn old_tables(&self) -> Option<usize> {
        reclaim::process_domain().collect();
        self.old_tables_by_now()
    }

    /// As [`old_tables`](Self::old_tables), of the tables that are not freed by now.
    fn old_tables_by_now(&self) -> Option<usize> {
        lock(&self.head_state.members).old_tables.too_many(self.head_state.old_tables.bytes_max)
    }

    /// Whether the routees cannot be changed. Looks at readers only if there is something to be freed.
    fn is_full(&self) -> bool {
        self.old_tables_by_now().is_some() && self.old_tables().is_some()
    }

    /// Returns a request that can be handled at once; keeps any other for later.
    pub(crate) fn unless_waiting(
        &mut self,
        message: Manage<M>,
        ctx: &mut Context<Manage<M>>,
    ) -> Option<Manage<M>> {
        let changes = match message {
            Manage::Adjust(_) | Manage::Add(_) | Manage::Remove(_) => true,
            // A list of the routees comes behind the changes that were asked for before.
            Manage::Routees(_) => false,
            Manage::Drain(_) | Manage::AskResizer => return Some(message),
        };
        let within = self.head_state.old_tables.within;
        let must_wait = !self.waiting.list.is_empty() || (changes && !within.is_zero() && self.is_full());
        if !must_wait || self.head_state.is_ending() {
            return Some(message);
        }
        let until = ctx.now().saturating_add(within);
        self.waiting.list.push_back((until, message));
        self.look_later(PAUSE_MIN, ctx);
        None
    }

    /// Looks again after a pause, unless a look is due anyway.
    fn look_later(&mut self, pause: Duration, ctx: &Context<Manage<M>>) {
        if self.waiting.list.is_empty() || self.waiting.pause.is_some() {
            return;
        }
        self.waiting.pause = Some(pause);
        let head = self.head_state.shared.info.head.clone();
        let look = move || {
            // If the head has ended, so have the changes that waited.
            let _ = head.send_positioned(apply(Self::look_again));
        };
        let timers = self.head_state.shared.info.system.timers();
        timers.call_at(ctx.now().saturating_add(pause), Box::new(look));
    }

    /// The pause is over: does the changes for which there is room, and refuses changes that have waited too long.
    fn look_again(&mut self, ctx: &mut Context<Manage<M>>) -> HandlerResult {
        let pause = self.waiting.pause.take().unwrap_or(PAUSE_MIN);
        let before = self.waiting.list.len();
        while let Some((until, message)) = self.waiting.list.pop_front() {
            let changes = !matches!(message, Manage::Routees(_));
            if changes && ctx.now() < until && !self.head_state.is_ending() && self.is_full() {
                self.waiting.list.push_front((until, message));
                break;
            }
            self.handle(message, ctx);
        }
        let has_moved = self.waiting.list.len() < before;
        self.look_later(if has_moved { PAUSE_MIN } else { PAUSE_MAX.min(pause * 2) }, ctx);
        Ok(())
    }

    /// The router ends: the waiting changes are refused.
    pub(crate) fn refuse_waiting(&mut self, ctx: &mut Context<Manage<M>>) {
        for (_, message) in std::mem::take(&mut self.waiting.list) {
            self.handle(message, ctx);
        }
    }

    /// The head is restarted: the changes wait on the head state meanwhile.
    pub(crate) fn leave_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        lock(&self.head_state.members).waiting = waiting;
    }

    /// The head has started, perhaps anew.
    pub(crate) fn take_waiting(&mut self, ctx: &Context<Manage<M>>) {
        self.waiting = std::mem::take(&mut lock(&self.head_state.members).waiting);
        self.waiting.pause = None;
        self.look_later(PAUSE_MIN, ctx);
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::OldTables;

    #[test]
    fn old_tables_are_weighed_until_they_are_freed_and_one_is_always_allowed() {
        let mut tables = OldTables::default();
        let first = tables.replace(100);
        assert_eq!(tables.too_many(0), None, "the one in use is not old");
        let second = tables.replace(10);
        assert_eq!(
            (tables.too_many(101), tables.too_many(100), tables.too_many(0)),
            (None, Some(1), Some(1))
        );
        let third = tables.replace(1);
        assert_eq!((tables.too_many(111), tables.too_many(110)), (None, Some(2)));
        drop(first);
        assert_eq!((tables.too_many(11), tables.too_many(10)), (None, Some(1)));
        drop(second);
        assert_eq!(tables.too_many(0), None);
        drop(third);
        assert_eq!(tables.too_many(0), None);
    }
}
