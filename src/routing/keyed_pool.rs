//! Pools whose routees take the bare message where the router takes it with its key.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{IntoActor, by_context};
use crate::actor::spawn::spawn_held;
use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Leaving;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::deferred_send;
use crate::core::error::SendError;
use crate::core::pending_send::{PendingDelivery, RetryOutcome};
use crate::core::recipient::{DeliveryStatus, Leave, OwnRecipient};
use crate::core::system::{SystemCore, SystemRef};
use crate::mailbox::backpressure::NotFullNotify;
use crate::routing::builder::RouterBuilder;
use crate::routing::logics::consistent_hashing::Keyed;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::plan::{Initial, NewRoutee, RouteeSettings, RouterPlan};
use crate::routing::routees::EmptyRoutee;
use crate::sync::{Arc, Mutex, lock};
use crate::util::panic::{Guarded, drop_guarded};
use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::Arc as StdArc;
use std::task::Waker;
use std::time::Duration;

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
    /// A message that its routee refuses keeps its key, and is routed on or comes back whole. A question that waits for
    /// room at a routee which leaves keeps its key, too, and is routed on. A message that a routee *leaves behind* (at its deadline, by a failure, by its own stop after a farewell) has lost its key in the
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
            let recipe = by_context(move |ctx: &mut Context<A::Message>| recipe(ctx));
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

impl<M: Send + 'static> Strip<M> {
    /// As [`deliver`](OwnRecipient::deliver), where a wait for room is put off: what waits keeps its key, by which it goes
    /// back to the router if the routee refuses it after all.
    #[inline(never)]
    fn deliver_or_put_off<K: Send + 'static>(
        &self,
        message: Keyed<K, M>,
    ) -> Result<DeliveryStatus, SendError<Keyed<K, M>>> {
        let Keyed { key, message } = message;
        let (done, put_off) = deferred_send::put_off_as_before(|| self.target.forward_counted(message));
        match done {
            Ok(accepted) => {
                if let Some(put_off) = put_off {
                    put_off.wrapped_by(|later| Box::new(KeyedLater::<K, M>::new(later, key))).keep();
                }
                Ok(accepted)
            }
            // An actor that refuses a message has put nothing off.
            Err(refused) => Err(refused.map(|message| Keyed { key, message })),
        }
    }
}

impl<K: Send + 'static, M: Send + 'static> OwnRecipient<Keyed<K, M>> for Strip<M> {
    fn deliver(&self, message: Keyed<K, M>) -> Result<DeliveryStatus, SendError<Keyed<K, M>>> {
        if deferred_send::are_deferred() {
            return self.deliver_or_put_off(message);
        }
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
        let Leave { farewell, within, .. } = leave;
        let farewell = farewell.map(Keyed::into_message);
        self.target.send_leave(Leave { router, farewell, within }, leaving);
    }
}

/// The key of a message that waits for room. `None` once the message is on its way back to the router.
type Key<K> = StdArc<Mutex<Option<Guarded<K>>>>;

/// A bare message that waits for room at a routee, beside its key.
struct KeyedLater<K, M> {
    later: Box<dyn PendingDelivery>,
    key: Key<K>,
    message: PhantomData<fn(M)>,
}

impl<K, M> KeyedLater<K, M> {
    fn new(later: Box<dyn PendingDelivery>, key: K) -> Self {
        Self { later, key: StdArc::new(Mutex::new(Some(Guarded::new(key)))), message: PhantomData }
    }
}

impl<K: Send + 'static, M: Send + 'static> PendingDelivery for KeyedLater<K, M> {
    fn try_again(&mut self) -> RetryOutcome {
        self.later.try_again()
    }

    fn system(&self) -> &StdArc<SystemCore> {
        self.later.system()
    }

    fn cannot_wait(&self) -> bool {
        self.later.cannot_wait()
    }

    fn limit(&self) -> Duration {
        self.later.limit()
    }

    fn ring(&mut self, bell: &Arc<NotFullNotify>) {
        self.later.ring(bell);
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.later.wake_by(waker);
    }

    /// The message has lost its key, so it cannot go back as it was sent.
    fn is_message_of(&self, _: TypeId) -> bool {
        false
    }

    /// The way back takes the message with its key; the waiting message is bare.
    fn return_by(&mut self, way_back: Box<dyn Any + Send>) {
        if let Ok(router) = way_back.downcast::<ActorRef<Keyed<K, M>>>() {
            let way_back = PutOn { router: *router, key: self.key.clone() };
            self.later.return_by(Box::new(ActorRef::<M>::to_own_recipient(way_back)));
        }
    }

    fn refused(&self, reason: DeadLetterReason) {
        self.later.refused(reason);
    }

    fn abandon(self: Box<Self>, counters: Option<&SystemCore>, reason: DeadLetterReason) {
        self.later.abandon(counters, reason);
    }

    fn into_message(self: Box<Self>) -> (Box<dyn Any + Send>, usize) {
        self.later.into_message()
    }
}

/// Puts the key on again, on the way of one message back to the router.
struct PutOn<K, M> {
    router: ActorRef<Keyed<K, M>>,
    key: Key<K>,
}

impl<K: Send + 'static, M: Send + 'static> OwnRecipient<M> for PutOn<K, M> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        let key = lock(&self.key).take();
        let Some(key) = key else { return Err(SendError::Closed(message)) };
        let message = Keyed { key: key.into_inner(), message };
        self.router.pass_on_returning(message).map_err(|refused| {
            refused.map(|Keyed { key, message }| {
                drop_guarded(key);
                message
            })
        })
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        self.router.untyped()
    }

    fn system(&self) -> Option<SystemRef> {
        self.router.system().map(SystemRef::new)
    }
}
