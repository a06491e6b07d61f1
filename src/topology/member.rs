//! What stands behind a group, as the topology manages it.

use crate::core::actor_ref::ActorRef;
use crate::core::any_ref::AnyRef;
use crate::group::config::GroupConfig;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::status::{StatusReport, reports_to};
use crate::routing::head::messages::Drain;
use crate::routing::router::Router;
use crate::topology::config::log_failure;
use std::sync::Arc as StdArc;

/// What can be mounted as a group whose messages are of type `D`: an actor, a router, a keyed group.
///
/// Implemented for something else it lets that be one: see [`Member`].
pub trait Mount<D> {
    /// The address of the group.
    fn reference(&self) -> ActorRef<D>;

    /// What the topology manages it by.
    fn member(&self) -> StdArc<dyn Member>;
}

/// A group as a topology manages it: control goes this way, and never through the group's messages.
pub trait Member: Send + Sync + 'static {
    /// First phase of a new configuration: whether the group could go by it. Nothing is to change.
    ///
    /// # Errors
    ///
    /// The reason, for people. Then no group gets the new configuration.
    fn validate(&self, config: &GroupConfig) -> Result<(), String> {
        let _ = config;
        Ok(())
    }

    /// Second phase: goes by it from now on. No group has rejected its part. If it panics, the group gets the next
    /// configuration in any case.
    fn update(&self, config: &GroupConfig) {
        let _ = config;
    }

    /// Both phases in one: finds the configuration sound, and returns what goes by it. So what was read need not be read
    /// again.
    #[doc(hidden)]
    fn prepare<'a>(&'a self, config: &'a GroupConfig) -> Result<Box<dyn FnOnce() + 'a>, String> {
        self.validate(config)?;
        Ok(Box::new(|| self.update(config)))
    }

    /// Tells the group to end, in whatever way it ends politely; called again: to take no more messages, and to end
    /// once those that it has are handled.
    fn terminate(&self, reason: &str);

    /// The actor whose end is the group's; `None` if it has no end.
    fn watched(&self) -> Option<AnyRef>;

    /// The actors that there are in it now.
    fn actors(&self) -> Vec<AnyRef>;

    /// Tells how its actors are, and of each change, under this name of the group. By default nothing is told.
    fn subscribe_statuses(&self, name: &str, subscriber: &ActorRef<StatusReport<String>>) {
        let _ = (name, subscriber);
    }
}

/// Whatever stands behind a reference: one actor, or the head of a router whose handle was not mounted.
struct Plain(Option<AnyRef>);

impl Member for Plain {
    /// It takes no more messages, and ends once it has handled those that it has. A router's head has none, so
    /// it ends at once and stops its pool: mount the [`Router`] itself.
    fn terminate(&self, _: &str) {
        if let Some(actor) = &self.0 {
            actor.close_and_end();
        }
    }

    fn watched(&self) -> Option<AnyRef> {
        self.0.clone()
    }

    fn actors(&self) -> Vec<AnyRef> {
        self.0.iter().cloned().collect()
    }
}

impl<D: Send + 'static> Mount<D> for ActorRef<D> {
    fn reference(&self) -> ActorRef<D> {
        self.clone()
    }

    fn member(&self) -> StdArc<dyn Member> {
        StdArc::new(Plain(self.any()))
    }
}

impl<D: Send + 'static> Mount<D> for Router<D> {
    fn reference(&self) -> ActorRef<D> {
        self.to_ref()
    }

    fn member(&self) -> StdArc<dyn Member> {
        StdArc::new(self.clone())
    }
}

impl<D: Send + 'static> Member for Router<D> {
    /// [Drains](Router::drain) it, and waits for nothing.
    fn terminate(&self, _: &str) {
        // A head that ends already needs no telling.
        if !self.head().is_closed() {
            drop(self.head().ask(Drain)); // the answer is of no use: the head's end is watched
        }
    }

    fn watched(&self) -> Option<AnyRef> {
        self.head().any()
    }

    fn actors(&self) -> Vec<AnyRef> {
        self.watched().into_iter().collect()
    }
}

impl<M: Send + 'static, K: GroupKey> Mount<M> for Group<M, K> {
    fn reference(&self) -> ActorRef<M> {
        self.to_ref()
    }

    fn member(&self) -> StdArc<dyn Member> {
        StdArc::new(self.clone())
    }
}

impl<M: Send + 'static, K: GroupKey> Member for Group<M, K> {
    fn validate(&self, config: &GroupConfig) -> Result<(), String> {
        self.prepare_config(config).map(drop)
    }

    fn update(&self, config: &GroupConfig) {
        match self.prepare_config(config) {
            Ok(update) => update(),
            Err(reason) => log_failure(self.head().path().as_str(), &reason),
        }
    }

    fn prepare<'a>(&'a self, config: &'a GroupConfig) -> Result<Box<dyn FnOnce() + 'a>, String> {
        self.prepare_config(config)
    }

    fn terminate(&self, reason: &str) {
        Group::terminate(self, reason);
    }

    fn watched(&self) -> Option<AnyRef> {
        Some(self.head().clone())
    }

    fn actors(&self) -> Vec<AnyRef> {
        self.board.actors()
    }

    fn subscribe_statuses(&self, name: &str, subscriber: &ActorRef<StatusReport<String>>) {
        self.board.subscribe(reports_to(name, subscriber, K::to_string));
    }
}
