//! The builder that describes an actor. `spawn.rs` creates the actor.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::{IntoActor, Recipe, by_context};
use crate::actor::spawn::{ClassChoice, Plan, spawn_cell, spawn_default, stash_limit};
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dispatchers::INTERNAL;
use crate::core::error::SpawnError;
use crate::core::strategy::Strategy;
use crate::core::system::SystemRef;
use crate::failure::Failure;
use crate::mailbox::kind::MailboxChoice;
use std::fmt;

impl<A: Actor> IntoActor for A {
    type Actor = A;
    fn into_actor(self) -> Result<A, Failure> {
        Ok(self)
    }
}

impl<A: Actor> IntoActor for Result<A, Failure> {
    type Actor = A;
    fn into_actor(self) -> Result<A, Failure> {
        self
    }
}

/// Describes an actor that is about to be created, by [`SystemRef::actor`](crate::SystemRef::actor) or
/// [`Context::actor`].
///
/// ```
/// use pointsman::prelude::*;
/// # struct Cache;
/// # impl Actor for Cache {
/// #     type Message = u32;
/// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let cache = system
///     .actor("cache")
///     .mailbox(Mailbox::bounded(4096).on_full(OverflowPolicy::Reject))
///     .on_failure(Strategy::default().max_restarts(3).within(std::time::Duration::from_secs(60)))
///     .spawn(|| Cache)?;
/// assert_eq!(cache.path().to_string(), "/user/cache");
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is created before `spawn`"]
pub struct ActorBuilder {
    pub(crate) plan: Plan,
}

impl<M: Send + 'static> Context<M> {
    /// Starts to describe a child of this actor under the given name.
    pub fn actor(&self, name: &str) -> ActorBuilder {
        ActorBuilder::new(Ok(self.me().any_local()), Some(name))
    }

    /// Creates a child under a generated name, with the defaults.
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn<A, I>(
        &self,
        recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        spawn_default::<A, _>(Ok(self.me().any_local()), without_context(recipe))
    }
}

impl SystemRef {
    /// Starts to describe a top-level actor under `/user`.
    pub fn actor(&self, name: &str) -> ActorBuilder {
        ActorBuilder::new(self.core().user(), Some(name))
    }

    /// Creates a top-level actor under a generated name, with the defaults.
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn<A, I>(
        &self,
        recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        spawn_default::<A, _>(self.core().user(), without_context(recipe))
    }
}

impl ActorBuilder {
    pub(crate) fn new(parent: Result<AnyActorRef, String>, name: Option<&str>) -> Self {
        Self { plan: Plan::new(parent, name.map(str::to_owned)) }
    }

    /// Prepares the builder for an actor of the engine: it ignores the user's settings for mailboxes and paths, and
    /// runs on the engine's own dispatcher if there is one.
    pub(crate) fn internal(mut self) -> Self {
        self.plan.mailbox = MailboxKind::Unbounded;
        self.dispatcher(INTERNAL)
    }

    /// Runs the actor on the dispatcher of this name instead of `"default"`.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.plan.dispatcher = Some(name.to_owned());
        self
    }

    /// Gives the actor this mailbox, or the mailbox that the system has under this name:
    /// [`SystemBuilder::mailbox`](crate::SystemBuilder::mailbox). Without this call the actor gets the first of these
    /// that exists:
    ///
    /// 1. the mailbox of its dispatcher;
    /// 2. the mailbox of its type ([`Actor::mailbox`]);
    /// 3. a mailbox that its type or its dispatcher [requires](crate::mailbox::MailboxRequirement);
    /// 4. an unbounded mailbox.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Cache;
    /// # impl Actor for Cache {
    /// #     type Message = u32;
    /// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").mailbox("small", Mailbox::bounded(64)).build()?;
    /// let named = system.actor("named").mailbox("small").spawn(|| Cache)?;
    /// let urgent_first = Mailbox::priority(|key: &u32| i64::from(*key));
    /// let own = system.actor("own").mailbox(urgent_first).spawn(|| Cache)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
        self.plan.mailbox = MailboxKind::Chosen(Some(mailbox.into()));
        self
    }

    /// Sets the strategy of the parent for failures of this actor, instead of the parent's own
    /// [`supervision`](Actor::supervision).
    pub fn on_failure(mut self, strategy: Strategy) -> Self {
        self.plan.on_failure = Some(strategy);
        self
    }

    /// Limits the messages that the actor may [stash](Context::stash) at a time; 0 allows none. The limit comes from
    /// the [deployment](crate::settings::Deployment::stash_capacity), or else from this call, or else from the
    /// [mailbox](crate::Mailbox::stash_capacity). Without any of the three there is no limit.
    pub fn stash_capacity(mut self, message_count: usize) -> Self {
        self.plan.stash_capacity = Some(stash_limit(message_count));
        self
    }

    /// Counts the actor in this class, instead of the class of its type: see [`telemetry`](crate::telemetry). A
    /// [deployment](crate::settings::Deployment::class) takes precedence.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Cache;
    /// # impl Actor for Cache {
    /// #     type Message = u32;
    /// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let cache = system.actor("cache").class("caches").spawn(|| Cache)?;
    /// assert_eq!(cache.untyped().expect("an actor").class(), "caches");
    /// # Ok(())
    /// # }
    /// ```
    pub fn class(mut self, name: &str) -> Self {
        self.plan.class = ClassChoice::Named(name.to_owned());
        self
    }

    /// Creates the actor. `recipe` makes its state, in the actor's first turn and again at each restart. So the recipe
    /// clones the values that it captured: `.spawn(move || Audit::new(log.clone()))`.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: a bad or taken name, an unknown dispatcher, a capacity of 0, a mailbox that the actor cannot
    /// have, a stopping parent, a system that is shut down. Nothing is left behind, and the name is free.
    pub fn spawn<A, I>(
        self,
        recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        spawn_cell::<A, _>(self.plan, without_context(recipe))
    }

    /// Creates the actor as [`spawn`](Self::spawn) does, with a recipe that gets the new actor's context. The path, the
    /// parent and, in a pool, the number of the actor are known before its state.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_with<A, I>(
        self,
        recipe: impl FnMut(&mut Context<A::Message>) -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        spawn_cell::<A, _>(self.plan, by_context(recipe))
    }
}

/// The recipe of an actor whose state needs no context.
pub(crate) fn without_context<A: Actor, I: IntoActor<Actor = A>>(
    mut recipe: impl FnMut() -> I + Send + 'static,
) -> impl Recipe<A> {
    by_context(move |_: &mut Context<A::Message>| recipe())
}

impl fmt::Debug for ActorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorBuilder")
            .field("parent", &self.plan.parent)
            .field("name", &self.plan.name)
            .field("mailbox", &self.plan.mailbox)
            .finish_non_exhaustive()
    }
}
