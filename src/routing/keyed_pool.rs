//! Pools whose routees take the bare message where the router takes it with its key.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{ByContext, IntoActor};
use crate::actor::spawn::spawn_held;
use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Leaving;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, Leave, Recipient};
use crate::core::system::SystemRef;
use crate::routing::builder::RouterBuilder;
use crate::routing::logics::consistent_hashing::Keyed;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::plan::{Initial, NewRoutee, RouteeSettings, RouterPlan};
use crate::routing::routees::EmptyRoutee;
use crate::util::panic::Guarded;
use std::sync::Arc as StdArc;

impl RouterBuilder {
    /// As [`pool`](Self::pool), of routees that take the bare message: the router takes the message as [`Keyed`],
    /// routes by that envelope, and strips it off. For actors whose messages hold no key, and that do not know of
    /// hashing. Akka's `ConsistentHashableEnvelope`.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::{ConsistentHashing, Keyed};
    ///
    /// struct Draws;
    /// impl Actor for Draws {
    ///     type Message = String;
    ///     fn receive(&mut self, _: String, _: &mut Context<String>) -> HandlerResult {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let by_customer: Router<Keyed<u64, String>> =
    ///     system.router("by-customer").keyed_pool(4, |_| Draws).logic(ConsistentHashing::new()).spawn()?;
    /// by_customer.tell(Keyed { key: 17, message: "a house".to_owned() });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Delivery
    ///
    /// A message that its routee refuses keeps its key, and is routed on or comes back whole. A message that a routee
    /// *leaves behind* (at its deadline, by a failure, by its own stop after a farewell) has lost its key in the
    /// mailbox. So that message is a dead letter and is not routed again. A removal without a deadline leaves nothing
    /// behind.
    ///
    /// # Errors
    ///
    /// As of [`pool`](Self::pool). A configuration that makes it a balancing pool is refused, since its routees take
    /// other messages than a shared queue would hold.
    pub fn keyed_pool<K, A, I>(
        self,
        size: usize,
        recipe: impl Fn(&mut Context<A::Message>) -> I + Send + Sync + 'static,
    ) -> RouterPlan<Keyed<K, A::Message>, RoundRobin>
    where
        K: Send + 'static,
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        let recipe = StdArc::new(Guarded::new(recipe));
        let make = move |head: &AnyActorRef, routee_index: u32, settings: &RouteeSettings| {
            let recipe = recipe.clone();
            let recipe = ByContext(move |ctx: &mut Context<A::Message>| recipe(ctx));
            let held = spawn_held::<A, _>(settings.plan(head, routee_index), recipe)?;
            let actor = ActorRef::to_own_recipient(Strip { target: held.actor().clone() });
            Ok(NewRoutee::Behind { actor, held: Box::new(held) })
        };
        let check = |parent: &AnyActorRef, settings: &RouteeSettings, path: &dyn Fn() -> String| {
            settings.check::<A>(parent, path)
        };
        let mut plan = self.plan(Initial::Pool { size, make: StdArc::new(make), check });
        plan.settings.are_behind = true;
        plan
    }
}

/// Strips the key off before a routee gets the message.
struct Strip<M> {
    target: ActorRef<M>,
}

impl<K: Send + 'static, M: Send + 'static> Recipient<Keyed<K, M>> for Strip<M> {
    fn deliver(&self, message: Keyed<K, M>) -> Result<DeliveryStatus, SendError<Keyed<K, M>>> {
        let Keyed { key, message } = message;
        self.target.forward_counted(message).map_err(|refused| refused.map(|message| Keyed { key, message }))
    }

    fn is_closed(&self) -> bool {
        self.target.is_closed()
    }

    fn load(&self) -> RecipientLoad {
        self.target.load()
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        self.target.untyped()
    }

    fn system(&self) -> Option<SystemRef> {
        self.target.system().map(SystemRef::new)
    }

    fn place(&self) -> Option<AnyActorRef> {
        self.target.place()
    }

    /// Leftovers in the mailbox have no key any more, so the router cannot take them.
    fn leave(&self, leave: Leave<Keyed<K, M>>, leaving: Leaving) {
        let router = ActorRef::to_own_recipient(EmptyRoutee);
        let farewell = leave.farewell.map(Keyed::into_message);
        self.target.send_leave(Leave { router, farewell }, leaving);
    }
}
