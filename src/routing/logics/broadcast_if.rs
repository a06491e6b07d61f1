//! Broadcast by a predicate: some messages go to all routees, and another logic routes the rest.

use crate::core::actor_ref::RecipientLoad;
use crate::core::error::SendError;
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::RouterPlan;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::settings::router::RouterSettings;
use crate::settings::setting_error::SettingError;
use crate::util::panic::Guarded;
use std::any::Any;
use std::fmt;

/// Sends the messages for which a predicate holds to all routees, as [`Broadcast`](crate::routing::Broadcast) does, and
/// the rest by another logic. Made by [`RouterPlan::broadcast_if`]. From Akka's typed pools (`withBroadcastPredicate`).
pub struct BroadcastIf<L, F> {
    logic: L,
    is_for_all: Guarded<F>,
}

impl<L, F> BroadcastIf<L, F> {
    /// Sends messages for which `is_for_all` holds to all routees, and the rest where `logic` says.
    pub fn new(is_for_all: F, logic: L) -> Self {
        Self { logic, is_for_all: Guarded::new(is_for_all) }
    }
}

impl<M, L, F> RoutingLogic<M> for BroadcastIf<L, F>
where
    M: Clone + Send + 'static,
    L: RoutingLogic<M>,
    F: Fn(&M) -> bool + Send + Sync + 'static,
{
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        self.logic.select(message, routees, cx)
    }

    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        match (self.is_for_all)(&message) {
            true => cx.deliver_to_all(message, routees).map(drop),
            false => self.logic.route(message, routees, cx),
        }
    }

    fn prepare(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        self.logic.prepare(routees)
    }

    fn prepared_bytes(&self, prepared: &(dyn Any + Send + Sync)) -> usize {
        self.logic.prepared_bytes(prepared)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.logic.check()
    }

    fn load(&self, routees: &Routees<M>) -> RecipientLoad {
        self.logic.load(routees)
    }

    fn name(&self) -> Option<&str> {
        self.logic.name()
    }

    fn configure(&mut self, settings: &RouterSettings) {
        self.logic.configure(settings);
    }

    fn replaced_by(self: Box<Self>, other: Box<dyn RoutingLogic<M>>) -> Box<dyn RoutingLogic<M>> {
        let Self { logic, is_for_all } = *self;
        Box::new(BroadcastIf { logic: Box::new(logic).replaced_by(other), is_for_all })
    }
}

impl<M: Clone + Send + 'static, L: RoutingLogic<M>> RouterPlan<M, L> {
    /// Sends the messages for which `is_for_all` holds to all routees, and the rest by the logic that was given before
    /// this. The predicate runs on the sender's thread.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// #[derive(Clone)]
    /// enum ShardMsg {
    ///     Put(String),
    ///     Flush,
    /// }
    /// # struct Shard;
    /// # impl Actor for Shard {
    /// #     type Message = ShardMsg;
    /// #     fn receive(&mut self, _: ShardMsg, _: &mut Context<ShardMsg>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let shards = system
    ///     .router("shards")
    ///     .pool(4, |_| Shard)
    ///     .broadcast_if(|message| matches!(message, ShardMsg::Flush))
    ///     .spawn()?;
    /// shards.tell(ShardMsg::Put("apples".into())); // to one
    /// shards.tell(ShardMsg::Flush); // to all four
    /// assert_eq!(system.ledger().sent, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn broadcast_if<F>(self, is_for_all: F) -> RouterPlan<M, BroadcastIf<L, F>>
    where
        F: Fn(&M) -> bool + Send + Sync + 'static,
    {
        self.map_logic(|logic| BroadcastIf::new(is_for_all, logic))
    }
}

impl<L: fmt::Debug, F> fmt::Debug for BroadcastIf<L, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastIf").field("logic", &self.logic).finish_non_exhaustive()
    }
}
