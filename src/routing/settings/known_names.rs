//! The names that sections may use.

use crate::core::dispatchers::Declared;
use crate::mailbox::kind::Mailbox;
use crate::path::address::SystemAddress;
use crate::routing::settings::logic_registry::LogicRegistry;
use crate::selection::selection::Selection;
use crate::settings::section_fault::SectionFault;

/// The names that a system knows before it starts.
pub(crate) struct KnownNames<'a> {
    pub logics: &'a LogicRegistry,
    dispatchers: Vec<&'a str>,
    mailboxes: Vec<&'a str>,
    /// The address that paths may begin with; `None` if the system's name is invalid.
    address: Option<SystemAddress>,
}

impl<'a> KnownNames<'a> {
    /// Returns the names of a system of this name, which is perhaps a node.
    pub(crate) fn new(
        system: &str,
        node: Option<&str>,
        logics: &'a LogicRegistry,
        dispatchers: &'a Declared,
        mailboxes: &'a [(String, Mailbox)],
    ) -> Self {
        let declared = dispatchers.dispatchers.iter().map(|(name, _)| name.as_str());
        let aliases = dispatchers.aliases.iter().map(|(name, _)| name.as_str());
        Self {
            logics,
            dispatchers: declared.chain(aliases).chain(["default"]).collect(),
            mailboxes: mailboxes.iter().map(|(name, _)| name.as_str()).collect(),
            address: node
                .map_or_else(|| SystemAddress::local(system), |node| SystemAddress::node(system, node))
                .ok(),
        }
    }

    pub(crate) fn check_dispatcher(&self, name: &str) -> Result<(), SectionFault> {
        one_of(name, &self.dispatchers)
            .map_err(|known| SectionFault::Dispatcher { name: name.to_owned(), known })
    }

    pub(crate) fn check_mailbox(&self, name: &str) -> Result<(), SectionFault> {
        one_of(name, &self.mailboxes).map_err(|known| SectionFault::Mailbox { name: name.to_owned(), known })
    }

    /// Checks the form of the path alone: actors come and go.
    pub(crate) fn check_path(&self, path: &str) -> Result<(), SectionFault> {
        self.address
            .as_ref()
            .map_or(Ok(()), |address| Selection::check(path, address))
            .map_err(SectionFault::Path)
    }
}

/// Returns the known names if `name` is none of them.
fn one_of(name: &str, known: &[&str]) -> Result<(), Vec<String>> {
    if known.contains(&name) {
        return Ok(());
    }
    let mut known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
    known.sort_unstable();
    known.dedup();
    Err(known)
}
