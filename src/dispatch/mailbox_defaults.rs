//! A dispatcher may choose the mailboxes of its actors, and may demand properties of them.

use crate::dispatch::dispatcher::{Blocking, CallingThread, Dispatcher, Pinned, WorkStealing};
use crate::mailbox::kind::{MailboxChoice, MailboxRequirement};

/// The rules of a dispatcher for the mailboxes of its actors.
#[derive(Clone, Debug)]
pub struct Mailboxes {
    /// The mailbox of actors whose builder chooses none.
    pub own: Option<MailboxChoice>,
    /// The demand on the mailboxes of all its actors.
    pub required: Option<MailboxRequirement>,
}

impl Mailboxes {
    pub const NONE: Self = Self { own: None, required: None };
}

impl Dispatcher {
    pub(crate) fn mailboxes(&self) -> &Mailboxes {
        match self {
            Self::WorkStealing(recipe) => &recipe.mailboxes,
            Self::Blocking(recipe) => &recipe.mailboxes,
            Self::Pinned(recipe) => &recipe.mailboxes,
            Self::CallingThread(recipe) => &recipe.mailboxes,
        }
    }
}

macro_rules! say {
    ($($recipe:ident)*) => {$(
        impl $recipe {
            /// Gives actors on this dispatcher this mailbox, or the mailbox that the system knows by this name, unless
            /// their builders choose another. The engine's own actors are exempt.
            pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
                self.mailboxes.own = Some(mailbox.into());
                self
            }

            /// Demands this of the mailbox of each actor on this dispatcher. A mailbox that does not meet the demand is
            /// an error when the actor is created. If no mailbox was chosen for the actor, its mailbox [may be
            /// made](MailboxRequirement) to meet the demand. The engine's own actors are exempt.
            pub fn requires_mailbox(mut self, requirement: MailboxRequirement) -> Self {
                self.mailboxes.required = Some(requirement);
                self
            }
        }
    )*};
}

say!(WorkStealing Blocking Pinned CallingThread);
