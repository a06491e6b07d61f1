//! The mailboxes that a system has by name, and those that dispatchers give to their actors.

use crate::dispatch::dispatcher::Dispatcher;
use crate::mailbox::kind::{Choice, Mailbox, MailboxChoice, MailboxFault, MailboxRequirement};
use crate::settings::build_error::BuildError;
use std::collections::BTreeMap;

/// The mailboxes and requirements of a system.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes {
    /// By name.
    pub named: BTreeMap<String, Mailbox>,
    /// The options of dispatchers, by the name of the dispatcher.
    pub(crate) of_dispatchers: BTreeMap<String, MailboxRules>,
}

/// The rules of a dispatcher for the mailboxes of its actors.
#[derive(Debug)]
pub(crate) struct MailboxRules {
    /// The mailbox of actors whose builder chooses none.
    pub(crate) mailbox: Option<MailboxChoice>,
    /// The demand on the mailboxes of all its actors.
    pub(crate) required: Option<MailboxRequirement>,
}

impl Mailboxes {
    /// Collects the declarations of the system's builder.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: two mailboxes of one name, or a mailbox that no actor could have.
    pub(crate) fn new(
        declared: Vec<(String, Mailbox)>,
        dispatchers: &[(String, Dispatcher)],
    ) -> Result<Self, BuildError> {
        let mut all = Self::default();
        for (name, mailbox) in declared {
            mailbox
                .check()
                .map_err(|fault| BuildError::Mailbox { of: format!("mailbox {name:?}"), fault })?;
            if all.named.insert(name.clone(), mailbox).is_some() {
                return Err(BuildError::DuplicateMailbox { name });
            }
        }
        for (name, dispatcher) in dispatchers {
            let says =
                MailboxRules { mailbox: dispatcher.mailbox.clone(), required: dispatcher.requires_mailbox };
            let own =
                says.mailbox.as_ref().map(|choice| all.resolve(choice).and_then(|mailbox| mailbox.check()));
            own.unwrap_or(Ok(()))
                .map_err(|fault| BuildError::Mailbox { of: format!("dispatcher {name:?}"), fault })?;
            // What says nothing need not be looked up for each new actor.
            if says.mailbox.is_some() || says.required.is_some() {
                all.of_dispatchers.insert(name.clone(), says);
            }
        }
        Ok(all)
    }

    pub(crate) fn resolve(&self, choice: &MailboxChoice) -> Result<Mailbox, MailboxFault> {
        match &choice.0 {
            Choice::Recipe(mailbox) => Ok(mailbox.clone()),
            Choice::Name(name) => self.named.get(name).cloned().ok_or_else(|| MailboxFault::UnknownName {
                name: name.clone(),
                known: self.named.keys().cloned().collect(),
            }),
        }
    }
}
