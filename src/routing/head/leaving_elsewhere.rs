//! The leave of routees elsewhere.
//!
//! A mailbox elsewhere cannot be closed at a position that senders here see. So the head waits until no sender can read a table
//! that has the routee: then all that was routed to the routee lies before the request to leave, and no message comes behind it.
//! A thread that reads the table for long delays the request, for a second at most. Messages that such a thread still routes to
//! the routee are dead letters there.

use crate::actor::turn::apply;
use crate::core::actor_ref::ActorRef;
use crate::core::control::Leaving;
use crate::core::recipient::Leave;
use crate::routing::head::head::Head;
use crate::routing::head::state::HeadState;
use crate::routing::logic::RoutingLogic;
use crate::routing::routees::Routee;
use crate::routing::router_info::RouterInfo;
use crate::routing::table_token::TableToken;
use crate::sync::{Mutex, lock};
use crate::util::panic::{Guarded, quietly};
use crate::util::reclaim;
use std::marker::PhantomData;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The longest time for which the head waits for a table to be freed.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The pauses between two looks: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(128);

/// Routees that are to be asked, each with its farewell.
struct Routees<M: Send + 'static> {
    list: Vec<(ActorRef<M>, Option<M>)>,
    router: ActorRef<M>,
    within: Option<Duration>,
}

impl<M: Send + 'static> Routees<M> {
    fn ask(self) {
        for (routee, farewell) in self.list {
            // Messages of a routee that gets copies are not routed again.
            let router = match routee.may_have_copies() {
                true => Routee::none().actor().clone(),
                false => self.router.clone(),
            };
            let leave = Leave { router, farewell, within: self.within };
            routee.send_leave(leave, Leaving::AtPosition);
        }
    }
}

/// Routees that are asked once: when their table is freed, or when the head waits no longer.
struct Waiting<M: Send + 'static, L> {
    routees: StdArc<Mutex<Option<Guarded<Routees<M>>>>>,
    logic: PhantomData<fn(L)>,
}

impl<M: Send + 'static, L> Clone for Waiting<M, L> {
    fn clone(&self) -> Self {
        Self { routees: self.routees.clone(), logic: PhantomData }
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Waiting<M, L> {
    fn ask(&self) {
        let routees = lock(&self.routees).take();
        if let Some(routees) = routees {
            quietly(|| routees.into_inner().ask());
        }
    }

    fn has_asked(&self) -> bool {
        lock(&self.routees).is_none()
    }

    /// Looks after a pause whether the table can be freed, and again after a longer one.
    fn look_later(self, info: StdArc<RouterInfo>, pause: Duration) {
        let due = info.system.now().saturating_add(pause);
        let system = info.system.clone();
        let look = move || {
            if self.has_asked() {
                return;
            }
            let head = info.head.clone();
            // A table is freed by the head, since that may run code of the user. One that has ended frees its tables at its end.
            let _ = head.send_positioned(apply::<Head<M, L>>(move |_, _| {
                reclaim::process_domain().collect();
                if !self.has_asked() {
                    self.look_later(info, PAUSE_MAX.min(pause * 2));
                }
                Ok(())
            }));
        };
        system.timers().call_at(due, Box::new(look));
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> HeadState<M, L> {
    /// Asks routees elsewhere to leave, when the table that has them is freed. They count the time that they may take themselves.
    pub(crate) fn release_elsewhere(
        &self,
        list: Vec<(ActorRef<M>, Option<M>)>,
        table: Option<StdArc<TableToken>>,
    ) {
        let routees = Routees { list, router: self.reference.clone(), within: self.leave.within };
        let routees = StdArc::new(Mutex::new(Some(Guarded::new(routees))));
        let waiting = Waiting::<M, L> { routees, logic: PhantomData };
        let (info, at_last, when_freed) = (self.shared.info.clone(), waiting.clone(), waiting.clone());
        let latest = info.system.now().saturating_add(WAIT_MAX);
        info.system.timers().call_at(latest, Box::new(move || at_last.ask()));
        if let Some(table) = table {
            table.when_freed(Box::new(move || when_freed.ask()));
        }
        waiting.look_later(info, PAUSE_MIN);
    }
}
