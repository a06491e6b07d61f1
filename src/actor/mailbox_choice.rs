//! The choice of an actor's mailbox among the deployment, the builder, the dispatcher and the actor.

use crate::actor::actor::Actor;
use crate::core::error::SpawnError;
use crate::core::named_mailboxes::Mailboxes;
use crate::core::system::SystemCore;
use crate::mailbox::kind::{Choice, Mailbox, MailboxChoice, MailboxFault, MailboxRequirement, Prepared};

/// The entry of a plan for the mailbox.
#[derive(Debug, Clone)]
pub(crate) enum MailboxKind {
    /// For the engine's own actors: unbounded, regardless of what dispatchers choose and require.
    Unbounded,
    /// For a user's actor: the choice that the builder was given, if any.
    Chosen(Option<MailboxChoice>),
    /// As `Chosen`, for actors whose type has been asked already: for actors that are created under a lock.
    Asked(Option<MailboxChoice>, Answer),
}

/// The answer of a type of actor about its mailbox.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    own: Option<Mailbox>,
    required: Option<MailboxRequirement>,
}

impl Answer {
    /// Asks the type of actor; this calls user code.
    pub(crate) fn of<A: Actor>() -> Self {
        Self { own: A::mailbox(), required: A::mailbox_requirement() }
    }
}

impl Answer {
    /// Returns whether the type of actor says nothing.
    pub(crate) fn is_none(&self) -> bool {
        self.own.is_none() && self.required.is_none()
    }
}

impl MailboxKind {
    /// Chooses the mailbox that the system has under this name.
    pub(crate) fn named(name: &str) -> Self {
        Self::Chosen(Some(name.into()))
    }

    /// Chooses the mailbox that the system has under this name, in preference to the choice of the builder.
    pub(crate) fn or_named(self, name: Option<&str>) -> Self {
        match (self, name) {
            (own, None) => own,
            (Self::Asked(_, answer), Some(name)) => Self::Asked(Some(name.into()), answer),
            (_, Some(name)) => Self::named(name),
        }
    }

    /// Makes the same choice for actors that have given this answer.
    pub(crate) fn asked(self, answer: Answer) -> Self {
        match self {
            Self::Chosen(by_builder) | Self::Asked(by_builder, _) => Self::Asked(by_builder, answer),
            Self::Unbounded => Self::Unbounded,
        }
    }

    /// Checks what can be checked before anything is created and without the type of the actor.
    pub(crate) fn check(&self, path: &dyn Fn() -> String) -> Result<(), SpawnError> {
        match self {
            Self::Chosen(Some(MailboxChoice(Choice::Recipe(mailbox))))
            | Self::Asked(Some(MailboxChoice(Choice::Recipe(mailbox))), _) => {
                mailbox.check().map_err(|fault| refuse(path, fault))
            }
            _ => Ok(()),
        }
    }

    /// Chooses the mailbox of an actor of type `A` on the dispatcher of this name.
    ///
    /// The order is Akka's. The first of these that makes a choice wins:
    ///
    /// 1. the [deployment](crate::SystemBuilder::deploy), which has taken the builder's place by now;
    /// 2. the builder;
    /// 3. the dispatcher's own mailbox;
    /// 4. the actor: [`Actor::mailbox`], or else a mailbox that fulfils [`Actor::mailbox_requirement`];
    /// 5. a mailbox that fulfils the dispatcher's requirement;
    /// 6. the default, which is unbounded.
    ///
    /// Both requirements are checked in each case.
    #[inline]
    pub(crate) fn choose<A: Actor>(
        &self,
        system: &SystemCore,
        dispatcher: Option<&str>,
        path: &dyn Fn() -> String,
    ) -> Result<Prepared<A::Message>, SpawnError> {
        let (known, dispatcher) = (&system.mailboxes, system.dispatchers.resolve(dispatcher));
        let chosen = match self {
            Self::Unbounded => Ok(Mailbox::unbounded()),
            Self::Chosen(by_builder) => {
                choose(by_builder.as_ref(), A::mailbox, A::mailbox_requirement(), known, dispatcher)
            }
            Self::Asked(by_builder, Answer { own, required }) => {
                choose(by_builder.as_ref(), || own.clone(), *required, known, dispatcher)
            }
        };
        chosen.and_then(|mailbox| mailbox.prepare()).map_err(|fault| refuse(path, fault))
    }
}

#[inline]
fn choose(
    by_builder: Option<&MailboxChoice>,
    by_actor: impl FnOnce() -> Option<Mailbox>,
    by_actors_need: Option<MailboxRequirement>,
    known: &Mailboxes,
    dispatcher: &str,
) -> Result<Mailbox, MailboxFault> {
    let of_dispatcher = known.of_dispatchers.get(dispatcher);
    let by_dispatcher = of_dispatcher.and_then(|says| says.mailbox.as_ref());
    let by_dispatchers_need = of_dispatcher.and_then(|says| says.required);
    let mailbox = match by_builder.or(by_dispatcher) {
        Some(choice) => known.resolve(choice)?,
        None => by_actor()
            .or_else(|| by_actors_need.and_then(MailboxRequirement::mailbox))
            .or_else(|| by_dispatchers_need.and_then(MailboxRequirement::mailbox))
            .unwrap_or_default(),
    };
    let unmet = |requirement, dispatcher: Option<&str>| MailboxFault::Unmet {
        requirement,
        dispatcher: dispatcher.map(str::to_owned),
        mailbox: mailbox.to_string(),
    };
    match (by_actors_need, by_dispatchers_need) {
        (Some(need), _) if !mailbox.fulfils(need) => Err(unmet(need, None)),
        (_, Some(need)) if !mailbox.fulfils(need) => Err(unmet(need, Some(dispatcher))),
        _ => Ok(mailbox),
    }
}

impl SystemCore {
    /// Returns the mailbox that the system has under this name.
    pub(crate) fn named_mailbox(&self, name: &str) -> Result<Mailbox, MailboxFault> {
        self.mailboxes.resolve(&name.into())
    }
}

pub(crate) fn refuse(path: &dyn Fn() -> String, fault: MailboxFault) -> SpawnError {
    match fault {
        MailboxFault::ZeroCapacity => SpawnError::ZeroCapacity { path: path() },
        fault => SpawnError::Mailbox { path: path(), fault },
    }
}
