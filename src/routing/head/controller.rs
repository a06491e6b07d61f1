//! The controller of a routing logic: an actor that changes the logic while it routes.
//!
//! As in Akka the controller is a child of the head with a fixed name. It gets the management messages of the logic,
//! and the head gets none of these. The controller is created once, with the router, so that a restart of the head
//! finds it in its place, and it begins when the router routes.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::{ByContext, IntoActor};
use crate::actor::spawn::{ClassChoice, Plan, spawn_held};
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::{HeldBehind, RouterPlan};
use crate::routing::router::Router;
use crate::selection::lookup::LookupError;
use crate::util::panic::Guarded;
use std::sync::Arc as StdArc;

/// The controller's name below the head.
const NAME: &str = "routingLogicController";

/// A controller before its first turn.
pub(crate) struct HeldController {
    pub actor: AnyActorRef,
    pub held: Box<dyn HeldBehind>,
}

impl<M: Send + 'static, L: RoutingLogic<M>> RouterPlan<M, L> {
    /// Gives the logic a controller: an actor that shares the logic, and changes it by the messages that it takes. To
    /// be called after [`logic`](Self::logic). Senders get its reference by [`Router::controller`].
    ///
    /// The controller is a child of the router's head, on the head's dispatcher, named `routingLogicController`. It
    /// begins when the router routes already, and is no routee. A restart of the head restarts it in its place. It
    /// manages the router by asking the [head](Router::head) with [`Context::ask`]: a wait for the head, on whose
    /// dispatcher it is, may be [refused](crate::routing::ManageError::WouldBlockWorker). Failures of the controller
    /// are judged as by default, whatever [`on_failure`](Self::on_failure) says of routees, and if it ends, the router
    /// goes on without it.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::{RouteContext, Routees, RoutingLogic};
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// /// All to one routee.
    /// #[derive(Default)]
    /// struct Favourite(AtomicUsize);
    /// impl RoutingLogic<u64> for Favourite {
    ///     fn select(&self, _: &u64, routees: &Routees<u64>, _: &RouteContext) -> Option<usize> {
    ///         match routees.len() {
    ///             0 => None,
    ///             n => Some(self.0.load(Ordering::Relaxed) % n),
    ///         }
    ///     }
    /// }
    ///
    /// /// Says which.
    /// struct Chooser(Arc<Favourite>);
    /// impl Actor for Chooser {
    ///     type Message = usize;
    ///     fn receive(&mut self, index: usize, _: &mut Context<usize>) -> HandlerResult {
    ///         self.0.0.store(index, Ordering::Relaxed);
    ///         Ok(())
    ///     }
    /// }
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let router = system
    ///     .router("workers")
    ///     .pool(4, |_| Worker)
    ///     .logic(Favourite::default())
    ///     .controller(|logic, _| Chooser(logic.clone()))
    ///     .spawn()?;
    /// router.controller::<usize>()?.tell(3usize);
    /// # Ok(())
    /// # }
    /// ```
    pub fn controller<C, I>(
        mut self,
        recipe: impl FnMut(&StdArc<L>, &mut Context<C::Message>) -> I + Send + 'static,
    ) -> Self
    where
        C: Actor,
        I: IntoActor<Actor = C>,
    {
        let mut recipe = Guarded::new(recipe);
        self.controller = Some(Box::new(move |head: &AnyActorRef, dispatcher, logic: StdArc<L>| {
            let plan = Plan {
                parent: Ok(head.clone()),
                name: Some(NAME.to_owned()),
                dispatcher,
                mailbox: MailboxKind::Chosen(None),
                on_failure: Some(crate::core::strategy::Strategy::default()),
                routee_index: 0,
                stash_capacity: None,
                class: ClassChoice::OfType,
            };
            let recipe = ByContext(move |ctx: &mut Context<C::Message>| recipe(&logic, ctx));
            let held = spawn_held::<C, _>(plan, recipe)?;
            Ok(HeldController { actor: held.actor().any_local(), held: Box::new(held) })
        }));
        self
    }
}

impl<M: Send + 'static> Router<M> {
    /// Returns the [controller](RouterPlan::controller) of the router's logic, which takes `C`.
    ///
    /// # Errors
    ///
    /// [`LookupError::NoActor`]: the logic has none, or it has ended; [`LookupError::WrongType`]: the controller takes
    /// other messages.
    pub fn controller<C: Send + 'static>(&self) -> Result<ActorRef<C>, LookupError> {
        let head = &self.shared.info.head;
        let Some(controller) = head.core().children.get(NAME) else {
            return Err(LookupError::NoActor { path: head.path().join(NAME)? });
        };
        Ok(controller.typed()?)
    }
}
