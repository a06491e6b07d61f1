//! The handle of a router in GoAkt's words.

use crate::core::actor_ref::ActorRef;
use crate::core::error::SendError;
use crate::routing::head::messages::ManageError;
use crate::routing::route_context::RouteContext;
use crate::util::reclaim;
use std::fmt;
use std::ops::Deref;

/// The handle of a router in GoAkt's words. It dereferences to the crate's own [`RouterHandle`](crate::Router), and
/// so to the [`ActorRef`] that routes.
///
/// # Waiting
///
/// [`routees`](Self::routees) and [`resize_by`](Self::resize_by) wait for the router's head, as
/// [there](crate::Router#waiting). An actor on a work-stealing worker asks the [head](crate::Router::head)
/// instead: `ctx.ask(router.head(), AdjustPoolSize::By(5), Msg::Resized)`.
pub struct RouterHandle<M: Send + 'static>(crate::Router<M>);

impl<M: Send + 'static> RouterHandle<M> {
    pub(crate) fn new(router: crate::Router<M>) -> Self {
        Self(router)
    }

    /// Returns the names of the routees, in the order of their numbers: `r0`, `r1` and so on, below the router. GoAkt's
    /// `GetRoutees`. [`routee`](Self::routee) finds the routee of a name. For the references of all see
    /// [`RouterHandle::routees`](crate::Router::routees) of the router that this dereferences to.
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn routees(&self) -> Result<Vec<String>, ManageError> {
        let routees = self.0.routees()?;
        Ok(routees.iter().map(|routee| routee.path().name().to_owned()).collect())
    }

    /// Returns the routee of this name, one of those that [`routees`](Self::routees) lists; `None` if there is none, or
    /// no longer. GoAkt's `ActorOf` of a routee: in GoAkt names are unique in the whole system, and here below the
    /// router.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let workers = system.spawn_router("workers", 2, |_| Worker).spawn()?;
    /// for name in workers.routees()? {
    ///     assert!(workers.routee(&name)?.is_some());
    /// }
    /// assert!(workers.routee("r7")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn routee(&self, name: &str) -> Result<Option<ActorRef<M>>, ManageError> {
        let routees = self.0.routees()?;
        Ok(routees.into_iter().find(|routee| routee.path().name() == name))
    }

    /// Adds `delta` routees, or removes so many if that is negative, the last routees first, but no more than there
    /// are. Removed routees handle their mailboxes. New routees get new numbers, which no routee of this router has had
    /// before. GoAkt's `AdjustRouterPoolSize`.
    ///
    /// Returns the size after. A message that is sent after that meets the routees of that time.
    ///
    /// # Errors
    ///
    /// [`ManageError`]; the size is then what it was.
    pub fn resize_by(&self, delta: i32) -> Result<usize, ManageError> {
        self.0.adjust(delta as isize)
    }

    /// Sends a copy to every routee, whatever the strategy, and returns how many have taken it. A copy that its routee
    /// does not take is a dead letter, and the other routees get theirs. With no routees the message is sent as by
    /// `tell`.
    pub fn fan_out(&self, message: M) -> usize
    where
        M: Clone,
    {
        let shared = &self.0.shared;
        let taken = {
            let section = reclaim::section();
            let table = shared.table.read(&section);
            if table.is_empty() {
                Err(message)
            } else {
                let row = shared.info.system.ledger().for_this_thread();
                row.sent(1);
                let cx = RouteContext::new(row, &shared.info);
                let taken = cx.deliver_to_all(message, table).map_err(SendError::into_inner);
                cx.settle();
                taken
            }
        };
        match taken {
            Ok(taken) => {
                // The system may have given the router a resizer.
                if let Some(resizing) = &shared.info.resizing {
                    resizing.sent(&shared.info.head);
                }
                taken
            }
            Err(unsent) => {
                self.0.tell(unsent);
                0
            }
        }
    }
}

impl<M: Send + 'static> Deref for RouterHandle<M> {
    type Target = crate::Router<M>;

    fn deref(&self) -> &crate::Router<M> {
        &self.0
    }
}

impl<M: Send + 'static> Clone for RouterHandle<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Send + 'static> fmt::Debug for RouterHandle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
