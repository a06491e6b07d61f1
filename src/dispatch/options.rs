//! The options that all kinds of dispatchers have.

use crate::dispatch::dispatcher::{Blocking, CallingThread, Dispatcher, Pinned, WorkStealing};
use crate::mailbox::kind::{MailboxChoice, MailboxRequirement};
use std::time::Duration;

/// The rules of a dispatcher for the mailboxes of its actors.
#[derive(Debug)]
pub(crate) struct MailboxRules {
    /// The mailbox of actors whose builder chooses none.
    pub(crate) mailbox: Option<MailboxChoice>,
    /// The demand on the mailboxes of all its actors.
    pub(crate) required: Option<MailboxRequirement>,
}

impl Dispatcher {
    pub(crate) fn mailbox_rules(&self) -> MailboxRules {
        let (mailbox, required) = match self {
            Self::WorkStealing(recipe) => (&recipe.mailbox, recipe.requires_mailbox),
            Self::Blocking(recipe) => (&recipe.mailbox, recipe.requires_mailbox),
            Self::Pinned(recipe) => (&recipe.mailbox, recipe.requires_mailbox),
            Self::CallingThread(recipe) => (&recipe.mailbox, recipe.requires_mailbox),
        };
        MailboxRules { mailbox: mailbox.clone(), required }
    }

    #[cfg(feature = "config")]
    pub(crate) fn mailbox_mut(&mut self) -> &mut Option<MailboxChoice> {
        match self {
            Self::WorkStealing(recipe) => &mut recipe.mailbox,
            Self::Blocking(recipe) => &mut recipe.mailbox,
            Self::Pinned(recipe) => &mut recipe.mailbox,
            Self::CallingThread(recipe) => &mut recipe.mailbox,
        }
    }
}

macro_rules! with_options {
    ($($recipe:ident)*) => {$(
        impl $recipe {
            /// Messages that an actor handles in one turn at most, at least 1, before other actors have their turns.
            /// Default: 64. On a work-stealing dispatcher, a turn that takes long may end earlier, see
            /// [`WorkStealing::lifo`].
            pub fn throughput(mut self, message_count: u32) -> Self {
                self.throughput = message_count;
                self
            }

            /// How long a turn may go on handling messages, counted from its first message. The turn ends with the
            /// message that is being handled then, as if [`throughput`](Self::throughput) were used up. Default: no
            /// limit. Zero: each turn handles one message.
            pub fn deadline(mut self, length: Duration) -> Self {
                self.deadline = Some(length);
                self
            }

            /// Gives actors on this dispatcher this mailbox, or the mailbox that the system knows by this name, unless
            /// their builders choose another. The engine's own actors are exempt.
            pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
                self.mailbox = Some(mailbox.into());
                self
            }

            /// Demands this of the mailbox of each actor on this dispatcher. A mailbox that does not meet the demand is
            /// an error when the actor is created. If no mailbox was chosen for the actor, its mailbox [may be
            /// made](MailboxRequirement) to meet the demand. The engine's own actors are exempt.
            pub fn requires_mailbox(mut self, requirement: MailboxRequirement) -> Self {
                self.requires_mailbox = Some(requirement);
                self
            }
        }

        impl From<$recipe> for Dispatcher {
            fn from(recipe: $recipe) -> Self {
                Self::$recipe(recipe)
            }
        }
    )*};
}

with_options!(WorkStealing Blocking Pinned CallingThread);
