//! Methods of a router that GoAkt offers, and that the handle does not offer in other words.

use crate::core::actor_ref::ActorRef;
use crate::core::error::SendError;
use crate::routing::head::messages::ManageError;
use crate::routing::route_context::RouteContext;
use crate::routing::router::Router;
use crate::util::reclaim;

impl<M: Send + 'static> Router<M> {
    /// Returns the names of the routees, in the order of the table: in a pool in GoAkt's words the order of their
    /// numbers, `r0`, `r1` and so on, below the router. GoAkt's `GetRoutees`. [`routee_named`](Self::routee_named)
    /// finds the routee of a name.
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn routee_names(&self) -> Result<Vec<String>, ManageError> {
        Ok(self.routees()?.iter().map(|routee| routee.path().name().to_owned()).collect())
    }

    /// Returns the first routee of this name, one of those that [`routee_names`](Self::routee_names) lists; `None` if
    /// there is none, or no longer. GoAkt's `ActorOf` of a routee: in GoAkt names are unique in the whole system, and
    /// here below the router.
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
    /// for name in workers.routee_names()? {
    ///     assert!(workers.routee_named(&name)?.is_some());
    /// }
    /// assert!(workers.routee_named("r7")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn routee_named(&self, name: &str) -> Result<Option<ActorRef<M>>, ManageError> {
        Ok(self.routees()?.into_iter().find(|routee| routee.path().name() == name))
    }

    /// Sends a copy to every routee, whatever the logic, as [`broadcast`](Self::broadcast) does, and returns how many
    /// have taken it. A copy that its routee does not take is a dead letter, and the other routees get theirs. With no
    /// routees the message is sent as by `tell`.
    pub fn fan_out(&self, message: M) -> usize
    where
        M: Clone,
    {
        let shared = &self.shared;
        let taken = {
            let section = reclaim::section();
            let table = shared.table.read(&section);
            if table.is_empty() {
                Err(message)
            } else {
                let cx = RouteContext::of_new_message(&shared.info);
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
                self.tell(unsent);
                0
            }
        }
    }
}
