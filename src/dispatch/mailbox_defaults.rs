//! What a dispatcher says about the mailboxes of its actors.

use crate::dispatch::dispatcher::{Blocking, CallingThread, Dispatcher, Pinned, WorkStealing};
use crate::mailbox::kind::{MailboxChoice, MailboxRequirement};

/// What a dispatcher says about the mailboxes of its actors.
#[derive(Clone, Debug)]
pub struct Mailboxes {
    /// For actors whose builder chooses none.
    pub own: Option<MailboxChoice>,
    /// For all its actors.
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
            /// Gives actors on this dispatcher this mailbox, or the one that the system knows by this name,
            /// unless their builders choose one. The engine's own actors are not meant.
            pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
                self.mailboxes.own = Some(mailbox.into());
                self
            }

            /// Demands this of the mailbox of each actor on this dispatcher: one that is not so is an error when
            /// the actor is created, and where nobody has chosen one it [may be made](MailboxRequirement) so. The
            /// engine's own actors are not meant.
            pub fn requires_mailbox(mut self, requirement: MailboxRequirement) -> Self {
                self.mailboxes.required = Some(requirement);
                self
            }
        }
    )*};
}

say!(WorkStealing Blocking Pinned CallingThread);
