//! A member is the part behind a group that its topology starts, configures and ends.

use crate::ask::reply::Call;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::group::config::GroupConfig;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::status::{StatusReport, reports_to};
use crate::group::validate_config::ValidateConfig;
use crate::routing::head::messages::Drain;
use crate::routing::router::Router;
use crate::topology::config::log_failure;

/// A member is a group as its topology manages it: control goes this way, and never through the group's messages.
///
/// An actor, a router and a keyed group can be [mounted](crate::topology::DeclaredGroup::mount). Another type can be
/// mounted, too, if it implements this trait and `Clone`, and if its group's [`ActorRef`] implements `From` for it:
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::GroupMember;
///
/// /// An actor that is told to end at once, with messages in its mailbox.
/// #[derive(Clone)]
/// struct Hasty(ActorRef<u64>);
///
/// impl From<Hasty> for ActorRef<u64> {
///     fn from(hasty: Hasty) -> Self {
///         hasty.0
///     }
/// }
///
/// impl GroupMember for Hasty {
///     fn terminate(&self, _: &str) {
///         self.0.stop();
///     }
///     fn watched(&self) -> Option<AnyActorRef> {
///         self.0.untyped()
///     }
///     fn actors(&self) -> Vec<AnyActorRef> {
///         self.0.untyped().into_iter().collect()
///     }
/// }
/// # struct Idle;
/// # impl Actor for Idle {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// # let topology = system.topology();
/// let actor = system.actor("hasty").spawn(|| Idle)?;
/// topology.local("hasty")?.mount(&Hasty(actor));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "IntoMember")]
pub trait GroupMember: Send + Sync + 'static {
    /// Validates a new configuration in its first phase: the group says whether it could follow the configuration.
    /// Nothing is to change.
    ///
    /// # Errors
    ///
    /// The reason, for people. No group gets the new configuration then.
    fn validate(&self, config: &GroupConfig) -> Result<(), String> {
        let _ = config;
        Ok(())
    }

    /// Returns the actors that are to validate a change of the configuration themselves, after the group has: each is
    /// asked by a [`ValidateConfig`] request, and may refuse. By default there are none.
    fn validators(&self) -> Vec<ActorRef<Call<ValidateConfig>>> {
        Vec::new()
    }

    /// Follows the configuration from now on, in its second phase: no group has rejected its section. If this panics,
    /// the group gets the next configuration in any case.
    fn update(&self, config: &GroupConfig) {
        let _ = config;
    }

    /// Runs both phases in a single call: validates the configuration, and returns the function that puts it into
    /// effect. The section need not be read again for that.
    #[doc(hidden)]
    fn prepare<'a>(&'a self, config: &'a GroupConfig) -> Result<Box<dyn FnOnce() + 'a>, String> {
        self.validate(config)?;
        Ok(Box::new(|| self.update(config)))
    }

    /// Tells the group to end, in the way in which it ends politely. A second call tells the group to take no more
    /// messages, and to end once it has handled those that it has.
    fn terminate(&self, reason: &str);

    /// Returns the actor whose end is the group's end; `None` if the group has no end.
    fn watched(&self) -> Option<AnyActorRef>;

    /// Returns the present actors of the group.
    fn actors(&self) -> Vec<AnyActorRef>;

    /// Returns the actors that a pinger asks whether they are alive.
    #[doc(hidden)]
    fn pinged(&self) -> Vec<AnyActorRef> {
        self.actors()
    }

    /// Subscribes an actor to the statuses of the group's actors, under this name of the group. By default the
    /// subscriber is told nothing.
    fn subscribe_statuses(&self, name: &str, subscriber: &ActorRef<StatusReport<String>>) {
        let _ = (name, subscriber);
    }
}

impl<D: Send + 'static> GroupMember for ActorRef<D> {
    /// Closes the mailbox: the actor ends once it has handled the messages that it has. A router's head has no
    /// messages, so it ends at once and stops its pool: mount the [`Router`] itself.
    fn terminate(&self, _: &str) {
        if let Some(actor) = self.untyped() {
            actor.close_and_end();
        }
    }

    fn watched(&self) -> Option<AnyActorRef> {
        self.untyped()
    }

    fn actors(&self) -> Vec<AnyActorRef> {
        self.untyped().into_iter().collect()
    }
}

impl<D: Send + 'static> From<Router<D>> for ActorRef<D> {
    fn from(router: Router<D>) -> Self {
        router.to_ref()
    }
}

impl<D: Send + 'static> GroupMember for Router<D> {
    /// [Drains](Router::drain) the router, and waits for nothing.
    fn terminate(&self, _: &str) {
        // A head that is ending already is not told.
        if !self.head().is_closed() {
            drop(self.head().ask(Drain)); // the answer is of no use: the head's end is watched
        }
    }

    fn watched(&self) -> Option<AnyActorRef> {
        self.head().untyped()
    }

    fn actors(&self) -> Vec<AnyActorRef> {
        self.watched().into_iter().collect()
    }

    /// The routees that a pool has made are children of the head.
    fn pinged(&self) -> Vec<AnyActorRef> {
        let Some(head) = self.watched() else { return Vec::new() };
        let routees = head.core().children.all();
        std::iter::once(head).chain(routees).collect()
    }
}

impl<M: Send + 'static, K: GroupKey> From<Group<M, K>> for ActorRef<M> {
    fn from(group: Group<M, K>) -> Self {
        group.reference
    }
}

impl<M: Send + 'static, K: GroupKey> GroupMember for Group<M, K> {
    fn validate(&self, config: &GroupConfig) -> Result<(), String> {
        self.prepare_config(config).map(drop)
    }

    fn validators(&self) -> Vec<ActorRef<Call<ValidateConfig>>> {
        Group::validators(self)
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

    fn watched(&self) -> Option<AnyActorRef> {
        Some(self.head().clone())
    }

    fn actors(&self) -> Vec<AnyActorRef> {
        self.group_state.actors()
    }

    fn subscribe_statuses(&self, name: &str, subscriber: &ActorRef<StatusReport<String>>) {
        self.group_state.subscribe(reports_to(name, subscriber, K::to_string));
    }
}
